//! Options of neighbour discovery.
//!
//! ```text
//! +---------------+---------------+------------------------------+
//! |     Type      |    Length     |   8 * Length - 2 bytes       |
//! +---------------+---------------+------------------------------+
//! ```
//!
//! Place: inside the messages of [`icmpv6`](super::icmpv6). A known option of a length that is not
//! its own, and any unknown one, is [`NdpOption::Other`]; without the feature `advertise` so is one
//! that a leaf does not act on.
//! Sources: RFC 4861 §4.6; RFC 4944 §8; RFC 6775 §4; RFC 8505 §4.1. Type 253 is for experiments
//! (RFC 4727 §5.1.3); which one an option belongs to is said by its first bytes.

mod prefix;

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Writer, copy};
use super::{LinkAddr, tcphc};
pub(crate) use prefix::PREFIX_HEAD;
#[cfg(feature = "rpl")]
pub(crate) use prefix::PrefixBody;
#[cfg(feature = "rpl")]
pub use prefix::PrefixBytes;
pub use prefix::PrefixInformation;
#[cfg(feature = "mesh")]
pub(crate) use prefix::{prefix_in, usable_prefix, valid_lifetime_s};

/// An option whose length is 0 or reaches beyond the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl Malformed {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        "neighbour discovery option with an illegal length"
    }
}

speaks!(Malformed);

/// A list of options whose lengths have been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NdpOptions<'a>(pub(super) &'a [u8]);

impl<'a> NdpOptions<'a> {
    /// Checks the lengths of all options in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`]: the whole message is to be dropped.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            split(&mut r).ok_or(Malformed)?;
        }
        Ok(Self(bytes))
    }

    /// The options as on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The options, in the order of the message.
    pub fn iter(&self) -> impl Iterator<Item = NdpOption<'a>> + use<'a> {
        self.bodies()
            .map(|(kind, body)| NdpOption::parse(kind, body))
    }

    /// Type and body of each option: for readers of a few fields, which stay where they are.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut r = Reader::new(self.0);
        core::iter::from_fn(move || split(&mut r))
    }
}

fn split<'a>(r: &mut Reader<'a>) -> Option<(u8, &'a [u8])> {
    let kind = r.u8().ok()?;
    let len = usize::from(r.u8().ok()?) * 8;
    Some((kind, r.slice(len.checked_sub(2)?).ok()?))
}

/// One option of neighbour discovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpOption<'a> {
    /// Type 1, in the form for IEEE 802.15.4 (RFC 4944 §8).
    SourceLinkAddr(LinkAddr),
    /// Type 2, in the form for IEEE 802.15.4 (RFC 4944 §8).
    TargetLinkAddr(LinkAddr),
    /// Type 3: prefix information (RFC 4861 §4.6.2).
    Prefix(PrefixInformation),
    /// Type 5: the MTU of the link, bytes.
    Mtu(u32),
    /// Type 33: ARO or EARO.
    AddressRegistration(AddressRegistration<'a>),
    /// Type 34: a 6LoWPAN context, 6CO (RFC 6775 §4.2).
    Context(LowpanContext),
    /// Type 35: the authoritative border router, ABRO (RFC 6775 §4.3).
    BorderRouter(BorderRouter),
    /// Type 253, an option of ours: a border router restores compressed TCP headers
    /// (`docs/reference/tcphc.md`, section 7), and all routers up to it pass them.
    ///
    /// ```text
    /// +---------------+---------------+------------------------------+
    /// |  Type = 253   |  Length = 2   |    "TCPHC", version = 1      |
    /// +---------------+---------------+------------------------------+
    /// |          interface identifier of the border router           |
    /// +--------------------------------------------------------------+
    /// ```
    RestoresTcp {
        /// Interface identifier of the border router, as in its address of the mesh's prefix.
        router: [u8; 8],
    },
    /// An option of another type, or a known one of a length that is not its own.
    Other {
        /// Option type, 0 to 255.
        kind: u8,
        /// The bytes behind the length field: `8 * n - 2`.
        body: &'a [u8],
    },
}

/// Registration of an address with a router, or the answer to it (RFC 6775 §4.1, RFC 8505 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRegistration<'a> {
    /// 0 in a registration and where it succeeded, else why it failed: see
    /// [`mod@registration`].
    pub status: u8,
    /// Opaque data for the routing protocol that the I field names.
    pub opaque: u8,
    /// I field, 2 bits: the meaning of `opaque`; 0: the RPLInstanceID (RFC 9010 §6.1).
    pub opaque_use: u8,
    /// R: the registered node asks its router to make the address reachable.
    pub reachable: bool,
    /// T and TID: counts registrations of this address; `None`: a plain ARO.
    pub transaction: Option<u8>,
    /// Minutes; 0: the registration ends.
    pub lifetime_min: u16,
    /// The owner's EUI-64, or 8, 16, 24 or 32 bytes that prove ownership (ROVR).
    pub owner: &'a [u8],
}

/// Values of [`AddressRegistration::status`] (RFC 6775 §4.1, RFC 8505 §4.1).
pub mod registration {
    /// Registered, or removed as asked.
    pub const SUCCESS: u8 = 0;
    /// Another node owns the address.
    pub const DUPLICATE: u8 = 1;
    /// The router's table is full.
    pub const FULL: u8 = 2;
    /// A newer registration elsewhere replaced this one.
    pub const MOVED: u8 = 3;
    /// The router has given the registration up.
    pub const REMOVED: u8 = 4;
    /// The address cannot be on this link.
    pub const TOPOLOGY: u8 = 8;
}

/// A 6LoWPAN context (RFC 6775 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LowpanContext {
    /// Context identifier, 0 to 15.
    pub id: u8,
    /// May be used to compress; a context that is being withdrawn only decompresses.
    pub compress: bool,
    /// Leading bits of `prefix` that are valid, 0 to 128.
    pub prefix_len: u8,
    /// How long the context is valid, minutes; 0: it is withdrawn.
    pub lifetime_min: u16,
    /// The prefix, with zeros behind.
    pub prefix: Ipv6Addr,
}

/// The authoritative border router of this information (RFC 6775 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BorderRouter {
    /// Grows with each change of prefixes or contexts.
    pub version: u32,
    /// How long the information is valid, minutes; 0: 10,000 minutes.
    pub lifetime_min: u16,
    /// An address of the border router that the information comes from.
    pub addr: Ipv6Addr,
}

pub(crate) mod kind {
    pub(crate) const SOURCE_LINK_ADDR: u8 = 1;
    pub(crate) const TARGET_LINK_ADDR: u8 = 2;
    pub(crate) const PREFIX: u8 = 3;
    pub(super) const MTU: u8 = 5;
    pub(crate) const ADDRESS_REGISTRATION: u8 = 33;
    pub(crate) const CONTEXT: u8 = 34;
    pub(crate) const BORDER_ROUTER: u8 = 35;
    pub(crate) const EXPERIMENT: u8 = 253;
}

/// What the option [`NdpOption::RestoresTcp`] begins with: its name, and the version of the format
/// of headers.
const RESTORES_TCP: [u8; 6] = *b"TCPHC\x01";

const COMPRESS: u8 = 0x10;
const REACHABLE: u8 = 0x02;
const HAS_TRANSACTION: u8 = 0x01;

impl<'a> NdpOption<'a> {
    fn parse(kind: u8, body: &'a [u8]) -> Self {
        let known = match kind {
            // A leaf acts on none of what else there is: its builds leave that unread.
            _ if !cfg!(feature = "advertise")
                && !matches!(
                    kind,
                    kind::PREFIX | kind::ADDRESS_REGISTRATION | kind::CONTEXT | kind::EXPERIMENT
                ) =>
            {
                None
            }
            kind::SOURCE_LINK_ADDR => link_addr(body).map(Self::SourceLinkAddr),
            kind::TARGET_LINK_ADDR => link_addr(body).map(Self::TargetLinkAddr),
            kind::PREFIX => PrefixInformation::parse(body).map(Self::Prefix),
            kind::MTU => match *body {
                [_, _, a, b, c, d] => Some(Self::Mtu(u32::from_be_bytes([a, b, c, d]))),
                _ => None,
            },
            kind::ADDRESS_REGISTRATION => {
                AddressRegistration::parse(body).map(Self::AddressRegistration)
            }
            kind::CONTEXT => LowpanContext::parse(body).map(Self::Context),
            kind::BORDER_ROUTER => BorderRouter::parse(body).map(Self::BorderRouter),
            kind::EXPERIMENT => restores_tcp(body).map(|router| Self::RestoresTcp { router }),
            _ => None,
        };
        known.unwrap_or(Self::Other { kind, body })
    }

    /// Appends the option.
    ///
    /// # Errors
    /// [`Full`] when it does not fit, or a body is no `8 * n - 2` bytes long.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match *self {
            Self::SourceLinkAddr(addr) => emit_link_addr(w, kind::SOURCE_LINK_ADDR, addr),
            Self::TargetLinkAddr(addr) => emit_link_addr(w, kind::TARGET_LINK_ADDR, addr),
            Self::Prefix(prefix) => prefix.emit(w, PREFIX_HEAD),
            Self::Mtu(mtu) => emit_mtu(w, mtu),
            Self::AddressRegistration(registration) => registration.emit(w),
            Self::Context(context) => context.emit(w),
            Self::BorderRouter(router) => router.emit(w),
            Self::RestoresTcp { router } => emit_restores_tcp(w, &router),
            Self::Other { kind, body } => emit_other(w, kind, body),
        }
    }
}

/// The option of another experiment, or of another version, is none of ours.
pub(crate) fn restores_tcp(body: &[u8]) -> Option<[u8; 8]> {
    if !tcphc::IS_SUPPORTED {
        return None;
    }
    body.strip_prefix(&RESTORES_TCP)?.try_into().ok()
}

pub(crate) fn emit_restores_tcp(w: &mut Writer<'_>, router: &[u8; 8]) -> Result<(), Full> {
    w.put(&[kind::EXPERIMENT, 2])?;
    w.put(&RESTORES_TCP)?;
    w.put(router)
}

pub(crate) fn emit_mtu(w: &mut Writer<'_>, mtu: u32) -> Result<(), Full> {
    w.put(&[kind::MTU, 1, 0, 0])?;
    w.u32(mtu)
}

fn emit_other(w: &mut Writer<'_>, kind: u8, body: &[u8]) -> Result<(), Full> {
    let len = body.len() + 2;
    if !len.is_multiple_of(8) || len > 255 * 8 {
        return Err(Full);
    }
    w.put(&[kind, (len / 8) as u8])?;
    w.put(body)
}

/// RFC 4944 §8: a short address padded to one unit, an EUI-64 padded to two. Other padding
/// than zeros means another kind of link, as 48 bits that fill their unit do (RFC 4861 §4.6.1).
pub(crate) fn link_addr(body: &[u8]) -> Option<LinkAddr> {
    let mut r = Reader::new(body);
    #[cfg(feature = "ble")]
    if let Ok(device @ [_, _, padding @ ..]) = <&[u8; 6]>::try_from(body)
        && *padding != [0; 4]
    {
        return Some(LinkAddr::Device(*device));
    }
    let addr = match body.len() {
        6 => LinkAddr::Short(r.u16().ok()?),
        14 => LinkAddr::Extended(*r.chunk().ok()?),
        _ => return None,
    };
    r.rest().iter().all(|byte| *byte == 0).then_some(addr)
}

pub(crate) fn emit_link_addr(w: &mut Writer<'_>, kind: u8, addr: LinkAddr) -> Result<(), Full> {
    match addr {
        LinkAddr::Short(short) => {
            w.put(&[kind, 1])?;
            w.u16(short)?;
            w.put(&[0; 4])
        }
        LinkAddr::Extended(extended) => {
            w.put(&[kind, 2])?;
            w.put(&extended)?;
            w.put(&[0; 6])
        }
        #[cfg(feature = "ble")]
        LinkAddr::Device(device) => {
            w.put(&[kind, 1])?;
            w.put(&device)
        }
    }
}

impl<'a> AddressRegistration<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let ([status, opaque, flags, transaction, high, low], owner) = body.split_first_chunk()?;
        matches!(owner.len(), 8 | 16 | 24 | 32).then_some(Self {
            status: *status,
            opaque: *opaque,
            opaque_use: flags >> 2 & 3,
            reachable: flags & REACHABLE != 0,
            transaction: (flags & HAS_TRANSACTION != 0).then_some(*transaction),
            lifetime_min: u16::from_be_bytes([*high, *low]),
            owner,
        })
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let units = match self.owner.len() {
            len @ (8 | 16 | 24 | 32) => 1 + (len / 8) as u8,
            _ => return Err(Full),
        };
        let reachable = if self.reachable { REACHABLE } else { 0 };
        let has_transaction = self.transaction.map_or(0, |_| HAS_TRANSACTION);
        let flags = (self.opaque_use & 3) << 2 | reachable | has_transaction;
        let transaction = self.transaction.unwrap_or(0);
        let [high, low] = self.lifetime_min.to_be_bytes();
        let head = [kind::ADDRESS_REGISTRATION, units, self.status, self.opaque];
        w.put([head, [flags, transaction, high, low]].as_flattened())?;
        w.put(self.owner)
    }
}

impl LowpanContext {
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let ([prefix_len, flags, _, _, high, low], bits) = body.split_first_chunk()?;
        let len_max = match bits.len() {
            8 => 64,
            16 => 128,
            _ => return None,
        };
        let mut prefix = [0; 16];
        copy(&mut prefix, bits);
        (*prefix_len <= len_max).then_some(Self {
            id: flags & 15,
            compress: flags & COMPRESS != 0,
            prefix_len: *prefix_len,
            lifetime_min: u16::from_be_bytes([*high, *low]),
            prefix: Ipv6Addr::from(prefix),
        })
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let octets = self.prefix.octets();
        // The long form also where bits are set behind a short prefix, so that none is lost.
        let long = self.prefix_len > 64 || octets.iter().skip(8).any(|octet| *octet != 0);
        let flags = self.id & 15 | if self.compress { COMPRESS } else { 0 };
        w.put(&[
            kind::CONTEXT,
            if long { 3 } else { 2 },
            self.prefix_len,
            flags,
            0,
            0,
        ])?;
        w.u16(self.lifetime_min)?;
        let kept = if long { octets.len() } else { 8 };
        w.put(octets.get(..kept).ok_or(Full)?)
    }
}

impl BorderRouter {
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let [c, d, a, b, high, low, addr @ ..] = <&[u8; 22]>::try_from(body).ok()?;
        Some(Self {
            version: u32::from_be_bytes([*a, *b, *c, *d]),
            lifetime_min: u16::from_be_bytes([*high, *low]),
            addr: Ipv6Addr::from(*addr),
        })
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.put(&[kind::BORDER_ROUTER, 3])?;
        w.u16(self.version as u16)?;
        w.u16((self.version >> 16) as u16)?;
        w.u16(self.lifetime_min)?;
        w.put(&self.addr.octets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn emitted(option: NdpOption<'_>) -> Vec<u8> {
        let mut out = [0; 64];
        let mut w = Writer::new(&mut out);
        option.emit(&mut w).unwrap();
        let len = w.written();
        out[..len].to_vec()
    }

    #[test]
    fn every_option_round_trips() {
        let prefix = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0);
        let context = LowpanContext {
            id: 1,
            compress: true,
            prefix_len: 64,
            lifetime_min: 60,
            prefix,
        };
        let long = LowpanContext {
            prefix_len: 72,
            compress: false,
            ..context
        };
        let information = PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: false,
            valid_lifetime_s: u32::MAX,
            preferred_lifetime_s: 600,
            prefix,
        };
        let router = BorderRouter {
            version: 0x0001_0002,
            lifetime_min: 9,
            addr: prefix,
        };
        let cases = [
            (NdpOption::SourceLinkAddr(LinkAddr::Short(0x1234)), 8),
            (
                NdpOption::TargetLinkAddr(LinkAddr::Extended([1, 2, 3, 4, 5, 6, 7, 8])),
                16,
            ),
            (NdpOption::Prefix(information), 32),
            (NdpOption::Mtu(1280), 8),
            (NdpOption::AddressRegistration(REGISTRATION), 16),
            (
                NdpOption::AddressRegistration(AddressRegistration {
                    owner: &[7; 32],
                    ..REGISTRATION
                }),
                40,
            ),
            (NdpOption::Context(context), 16),
            (NdpOption::Context(long), 24),
            (NdpOption::BorderRouter(router), 24),
            (RESTORES, 16),
            (
                NdpOption::Other {
                    kind: 200,
                    body: &[9; 6],
                },
                8,
            ),
        ];
        let mut all = Vec::new();
        for (option, len) in cases {
            let bytes = emitted(option);
            assert_eq!(bytes.len(), len, "{option:?}");
            let parsed: Vec<_> = NdpOptions::parse(&bytes).unwrap().iter().collect();
            assert_eq!(parsed, [option]);
            all.extend(bytes);
        }
        let parsed: Vec<_> = NdpOptions::parse(&all).unwrap().iter().collect();
        assert_eq!(parsed, cases.map(|(option, _)| option));
    }

    const RESTORES: NdpOption<'_> = NdpOption::RestoresTcp {
        router: [2, 0, 0, 0xff, 0xfe, 0, 0, 9],
    };

    /// Another experiment, another version of ours, another length: none of ours, and no error.
    #[test]
    fn the_offer_to_restore_headers_is_known_by_all_of_its_head() {
        let bytes = emitted(RESTORES);
        let head = [253, 2, b'T', b'C', b'P', b'H', b'C', 1];
        assert_eq!(bytes[..8], head);
        for at in 2..8 {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let options = NdpOptions::parse(&other).unwrap();
            assert!(matches!(
                options.iter().next(),
                Some(NdpOption::Other { .. })
            ));
        }
        let short = [&[253, 1], &head[2..]].concat();
        let long = [&[253, 3], &bytes[2..], &[0; 8][..]].concat();
        for other in [short, long] {
            let options = NdpOptions::parse(&other).unwrap();
            assert!(matches!(
                options.iter().next(),
                Some(NdpOption::Other { kind: 253, .. })
            ));
        }
        for len in [0, 3, 255] {
            let mut other = bytes.clone();
            other[1] = len;
            assert_eq!(NdpOptions::parse(&other), Err(Malformed), "{len}");
        }
    }

    const REGISTRATION: AddressRegistration<'_> = AddressRegistration {
        status: registration::SUCCESS,
        opaque: 0x1e,
        opaque_use: 2,
        reachable: true,
        transaction: Some(0xf1),
        lifetime_min: 0x0102,
        owner: &[1, 2, 3, 4, 5, 6, 7, 8],
    };

    #[test]
    fn address_registration_byte_for_byte() {
        let owner = [1, 2, 3, 4, 5, 6, 7, 8];
        let plain = AddressRegistration {
            status: registration::FULL,
            opaque: 0,
            opaque_use: 0,
            reachable: false,
            transaction: None,
            ..REGISTRATION
        };
        for (registration, head) in [
            (REGISTRATION, [33, 2, 0, 0x1e, 0x0b, 0xf1, 1, 2]),
            (plain, [33, 2, 2, 0, 0, 0, 1, 2]),
        ] {
            let bytes = emitted(NdpOption::AddressRegistration(registration));
            assert_eq!(bytes, [head, owner].concat());
        }
        let odd = AddressRegistration {
            owner: &owner[..7],
            ..REGISTRATION
        };
        assert_eq!(odd.emit(&mut Writer::new(&mut [0; 64])), Err(Full));
    }

    #[test]
    fn context_option_byte_for_byte() {
        let bytes = [34, 2, 64, 0x13, 0, 0, 0, 10, 0xfd, 0, 0, 0, 0, 0, 0, 1];
        let Some(NdpOption::Context(context)) = NdpOptions::parse(&bytes).unwrap().iter().next()
        else {
            panic!("a context")
        };
        assert_eq!(
            (context.id, context.compress, context.lifetime_min),
            (3, true, 10)
        );
        assert_eq!(emitted(NdpOption::Context(context)), bytes);
    }

    #[test]
    fn known_options_of_strange_shape_are_not_interpreted() {
        let cases: &[&[u8]] = &[
            &[33, 1, 0, 0, 0, 0, 0, 9], // a registration without an owner
            // An address of 48 bits, where no link has such.
            #[cfg(not(feature = "ble"))]
            &[1, 1, 2, 0x42, 0, 0, 0, 1],
            &[
                1, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ], // a long address
            &[5, 2, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0], // a long MTU
            &[3, 1, 64, 0xc0, 0, 0, 0, 0],                     // a short prefix
            &[34, 2, 65, 0x10, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0], // 65 bits in 8 bytes
            &[34, 1, 0, 0x10, 0, 0, 0, 9],                     // no prefix at all
        ];
        for bytes in cases {
            let options = NdpOptions::parse(bytes).unwrap();
            assert!(
                matches!(options.iter().next(), Some(NdpOption::Other { .. })),
                "{bytes:02x?}"
            );
        }
    }

    #[test]
    fn bodies_that_fill_no_unit_are_refused() {
        let mut out = [0; 64];
        let option = NdpOption::Other {
            kind: 200,
            body: &[0; 7],
        };
        assert_eq!(option.emit(&mut Writer::new(&mut out)), Err(Full));
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_what_it_yields_round_trips(
            mut bytes in prop::collection::vec(any::<u8>(), 0..64), kind in prop_oneof![0u8..6, 33u8..36], len in 0u8..5,
        ) {
            if let Some(head) = bytes.first_chunk_mut::<2>() {
                *head = [kind, len];
            }
            if let Ok(options) = NdpOptions::parse(&bytes) {
                prop_assert_eq!(options.as_bytes(), &bytes[..]);
                for option in options.iter() {
                    let again = emitted(option);
                    let parsed: Vec<_> = NdpOptions::parse(&again).unwrap().iter().collect();
                    prop_assert_eq!(parsed, [option]);
                }
            }
        }
    }
}
