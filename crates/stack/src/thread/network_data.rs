//! Network data: what the leader of a network tells all its nodes.
//!
//! ```text
//!   type << 1 | stable, length, value               the type's first bit is bit 1 of the byte
//!   1 prefix    domain 1  bits 1  prefix  0 has route      RLOC16 2  flags 1   each
//!                                         2 border router  RLOC16 2  flags 2   each
//!                                         3 context        C 0x10 | id 4 bits  length 1
//! ```
//!
//! Place: takes the place of router advertisements. Left out: services and commissioning data,
//! which are skipped. Source: Thread 1.1 §5.18.

use core::net::Ipv6Addr;

use super::tlv::Tlvs;
use crate::wire::cursor::{self, Truncated};

/// Network data whose lengths were checked. As an iterator: its prefixes.
#[derive(Clone, Copy, Debug)]
pub struct NetworkData<'a>(Tlvs<'a>);

/// A prefix, and what border routers say of it.
#[derive(Clone, Copy, Debug)]
pub struct Prefix<'a> {
    /// The prefix, followed by zeros.
    pub addr: Ipv6Addr,
    /// Its length, at most 128 bits.
    pub bits: u8,
    /// Whether it stays when the border router leaves for a short time.
    pub is_stable: bool,
    pub(super) details: Tlvs<'a>,
}

/// The number that stands for a prefix in compressed addresses (RFC 6282 §3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// 0 to 15.
    pub id: u8,
    /// The bits of the prefix that it stands for.
    pub bits: u8,
    /// Whether it may be used to compress. One of a prefix that leaves the network only
    /// decompresses, until no packet uses it (RFC 6775 §5.4.2).
    pub compresses: bool,
}

/// A border router, or a router with a route to the outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BorderRouter {
    /// The router's RLOC16.
    pub rloc16: u16,
    /// Bits of [`flag`]; for an external route its one byte as the upper half.
    pub flags: u16,
}

impl BorderRouter {
    /// Whether all the flags in `wanted` are set.
    pub const fn is(&self, wanted: u16) -> bool {
        self.flags & wanted == wanted
    }
}

/// Flags of a [`BorderRouter`] (Thread 1.1 §5.18.3).
pub mod flag {
    /// Nodes may form addresses with the prefix by themselves.
    pub const SLAAC: u16 = 0x1000;
    /// These addresses are preferred.
    pub const PREFERRED: u16 = 0x2000;
    /// The router routes to anywhere.
    pub const DEFAULT_ROUTE: u16 = 0x0200;
    /// The prefix is one of this network.
    pub const ON_MESH: u16 = 0x0100;
    /// The router answers DNS queries.
    pub const DNS: u16 = 0x0080;
    /// The prefix is that of a domain of several networks (since Thread 1.2): a border router says
    /// which addresses in it are valid.
    pub const DOMAIN: u16 = 0x0040;
}

impl<'a> NetworkData<'a> {
    /// Checks all of it.
    ///
    /// # Errors
    /// [`Truncated`]: a TLV, a prefix or one of its details ends too early.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Truncated> {
        let tlvs = Tlvs::parse(bytes)?;
        let mut prefixes = tlvs.filter(|(kind, _)| kind >> 1 == PREFIX);
        prefixes.try_for_each(|(kind, value)| prefix(kind, value).map(|_| ()))?;
        Ok(Self(tlvs))
    }
}

impl<'a> Iterator for NetworkData<'a> {
    type Item = Prefix<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut prefixes = self.0.by_ref().filter(|(kind, _)| kind >> 1 == PREFIX);
        let (kind, value) = prefixes.next()?;
        prefix(kind, value).ok()
    }
}

impl<'a> Prefix<'a> {
    /// The 6LoWPAN context of the prefix.
    pub fn context(&self) -> Option<Context> {
        self.values(CONTEXT).find_map(|value| match *value {
            [first, bits, ..] => Some(Context {
                id: first & CONTEXT_ID,
                bits,
                compresses: first & COMPRESSES != 0,
            }),
            _ => None,
        })
    }

    /// The border routers that advertise the prefix.
    pub fn border_routers(&self) -> impl Iterator<Item = BorderRouter> + 'a {
        let entries = self
            .values(BORDER_ROUTER)
            .flat_map(|value| value.chunks_exact(4));
        entries.filter_map(|entry| match *entry {
            [r1, r0, f1, f0] => Some(router([r1, r0], [f1, f0])),
            _ => None,
        })
    }

    /// The routers with a route to the prefix, which is outside of this network.
    pub fn external_routes(&self) -> impl Iterator<Item = BorderRouter> + 'a {
        let entries = self
            .values(HAS_ROUTE)
            .flat_map(|value| value.chunks_exact(3));
        entries.filter_map(|entry| match *entry {
            [r1, r0, flags] => Some(router([r1, r0], [flags, 0])),
            _ => None,
        })
    }

    /// The values of all details of this type: of a router there may be a stable one and another.
    fn values(&self, wanted: u8) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let details = self.details;
        details.filter_map(move |(kind, value)| (kind >> 1 == wanted).then_some(value))
    }
}

const fn router(rloc16: [u8; 2], flags: [u8; 2]) -> BorderRouter {
    BorderRouter {
        rloc16: u16::from_be_bytes(rloc16),
        flags: u16::from_be_bytes(flags),
    }
}

/// Reads the value of a prefix TLV.
fn prefix(kind: u8, value: &[u8]) -> Result<Prefix<'_>, Truncated> {
    let [_domain, bits, rest @ ..] = value else {
        return Err(Truncated);
    };
    let len = usize::from(bits.div_ceil(8));
    let (bytes, details) = rest.split_at_checked(len).ok_or(Truncated)?;
    let mut addr = [0; 16];
    if *bits > 128 || cursor::copy(&mut addr, bytes) < len {
        return Err(Truncated);
    }
    Ok(Prefix {
        addr: Ipv6Addr::from(addr),
        bits: *bits,
        is_stable: kind & 1 != 0,
        details: Tlvs::parse(details)?,
    })
}

/// Types of network data.
const PREFIX: u8 = 1;
const HAS_ROUTE: u8 = 0;
pub(super) const BORDER_ROUTER: u8 = 2;
pub(super) const CONTEXT: u8 = 3;

/// The first byte of a context.
pub(super) const COMPRESSES: u8 = 0x10;
pub(super) const CONTEXT_ID: u8 = 0x0f;
