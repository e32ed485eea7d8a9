//! ICMPv6 messages: echo, errors, and neighbour discovery.
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |     Type      |     Code      |           Checksum            |
//! +---------------+---------------+-------------------------------+
//! |                         message body                          |
//! ```
//!
//! Place: read and written by `ip`. [`ndp`](super::ndp) reads the options of neighbour
//! discovery. Left out: everything else arrives as [`Message::Other`].
//! Sources: RFC 4443; RFC 4861 §4.

use core::net::Ipv6Addr;

use super::checksum;
use super::cursor::{Full, Reader, Truncated, Writer};
use super::ndp::{Malformed, NdpOptions};

/// The IPv6 next header value of ICMPv6.
pub const NEXT_HEADER: u8 = 58;
/// Bytes before the invoking packet in an error message, or before the data of an echo.
pub const HEADER_LEN: usize = 8;

const CHECKSUM_AT: usize = 2;

/// An ICMPv6 message (RFC 4443; RFC 4861 §4 for neighbour discovery).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Type 1. `code`: see [`mod@unreachable`].
    DestinationUnreachable {
        /// The reason: a value of [`mod@unreachable`] (RFC 4443 §3.1).
        code: u8,
        /// The start of the packet that could not be delivered.
        invoking: &'a [u8],
    },
    /// Type 2: the packet is longer than the next link carries (RFC 4443 §3.2).
    PacketTooBig {
        /// The MTU of the next link, bytes.
        mtu: u32,
        /// The start of the packet that was too big.
        invoking: &'a [u8],
    },
    /// Type 3. Code 0: hop limit; 1: reassembly time.
    TimeExceeded {
        /// 0: the hop limit; 1: the time for reassembly.
        code: u8,
        /// The start of the packet that was dropped.
        invoking: &'a [u8],
    },
    /// Type 4. Code 0: header field; 1: next header; 2: option.
    ParameterProblem {
        /// 0: a header field; 1: the next header; 2: an IPv6 option.
        code: u8,
        /// Offset of the error in the invoking packet, bytes.
        pointer: u32,
        /// The start of the packet that was dropped.
        invoking: &'a [u8],
    },
    /// Type 128 (RFC 4443 §4.1).
    EchoRequest(Echo<'a>),
    /// Type 129 (RFC 4443 §4.2).
    EchoReply(Echo<'a>),
    /// Type 133 (RFC 4861 §4.1).
    RouterSolicitation {
        /// The link address of the source, unless it is unspecified.
        options: NdpOptions<'a>,
    },
    /// Type 134 (RFC 4861 §4.2).
    RouterAdvertisement(RouterAdvertisement<'a>),
    /// Type 135 (RFC 4861 §4.3).
    NeighborSolicitation {
        /// The IPv6 address whose link address is asked for.
        target: Ipv6Addr,
        /// Source link address, address registration.
        options: NdpOptions<'a>,
    },
    /// Type 136 (RFC 4861 §4.4).
    NeighborAdvertisement {
        /// Router 0x80, solicited 0x40, override 0x20.
        flags: u8,
        /// The address whose link address the message gives.
        target: Ipv6Addr,
        /// Target link address, address registration.
        options: NdpOptions<'a>,
    },
    /// Type 137 (RFC 4861 §4.5).
    Redirect {
        /// The first hop to use instead; the destination itself where that is a neighbour.
        target: Ipv6Addr,
        /// The destination that the redirect is about.
        destination: Ipv6Addr,
        /// Target link address, redirected header.
        options: NdpOptions<'a>,
    },
    /// Any other type, such as RPL's 155.
    Other {
        /// ICMPv6 type, 0 to 255.
        kind: u8,
        /// ICMPv6 code, defined by the type.
        code: u8,
        /// The bytes behind the checksum, from byte 4 of the message on.
        body: &'a [u8],
    },
}

/// An echo request or reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Chosen by the sender of the request.
    pub identifier: u16,
    /// Counted by the sender of the request.
    pub sequence: u16,
    /// Any bytes; the reply repeats those of the request.
    pub data: &'a [u8],
}

/// A router advertisement (RFC 4861 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterAdvertisement<'a> {
    /// Hop limit that hosts shall use; 0: no word on it.
    pub hop_limit: u8,
    /// Managed 0x80, other configuration 0x40, preference 0x18 (RFC 4191).
    pub flags: u8,
    /// How long the sender is a default router, seconds; 0: it is none.
    pub router_lifetime_s: u16,
    /// Reachable time, milliseconds; 0: no word on it.
    pub reachable_ms: u32,
    /// Time between solicitations, milliseconds; 0: no word on it.
    pub retransmit_ms: u32,
    /// Options, usually prefixes (type 3), contexts (34) and the MTU (5).
    pub options: NdpOptions<'a>,
}

/// Codes of [`Message::DestinationUnreachable`] (RFC 4443 §3.1).
pub mod unreachable {
    /// No route to the destination.
    pub const NO_ROUTE: u8 = 0;
    /// A policy forbids the packet, such as a firewall's.
    pub const PROHIBITED: u8 = 1;
    /// The last hop cannot reach it.
    pub const ADDRESS: u8 = 3;
    /// No application listens on the port.
    pub const PORT: u8 = 4;
    /// The next step of a source route cannot be reached (RFC 6554 §4.2).
    pub const SOURCE_ROUTE: u8 = 7;
}

pub(crate) mod kind {
    pub(crate) const UNREACHABLE: u8 = 1;
    pub(crate) const TOO_BIG: u8 = 2;
    pub(crate) const TIME_EXCEEDED: u8 = 3;
    pub(crate) const PARAMETER: u8 = 4;
    pub(crate) const ECHO_REQUEST: u8 = 128;
    pub(crate) const ECHO_REPLY: u8 = 129;
    pub(crate) const ROUTER_SOLICITATION: u8 = 133;
    pub(crate) const ROUTER_ADVERTISEMENT: u8 = 134;
    pub(crate) const NEIGHBOR_SOLICITATION: u8 = 135;
    pub(crate) const NEIGHBOR_ADVERTISEMENT: u8 = 136;
    pub(crate) const REDIRECT: u8 = 137;
    pub(crate) const RPL: u8 = 155;
}

/// Whether a message that begins with these bytes goes from one neighbour to another: of neighbour
/// discovery, or RPL's.
pub(crate) const fn is_between_neighbours(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [kind::ROUTER_SOLICITATION..=kind::REDIRECT | kind::RPL, ..]
    )
}

/// Why bytes are not an ICMPv6 message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within a fixed field.
    Truncated,
    /// An echo or a neighbour discovery message with a code other than 0.
    Code,
    /// A neighbour discovery option of length 0 or beyond the message (RFC 4861 §4.6).
    OptionLength,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "ICMPv6 message truncated",
            Self::Code => "ICMPv6 message with a code that it cannot have",
            Self::OptionLength => "neighbour discovery option with an illegal length",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl From<Malformed> for ParseError {
    fn from(_: Malformed) -> Self {
        Self::OptionLength
    }
}

/// A message whose fields stay where they are: a node reads a few of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageView<'a> {
    /// ICMPv6 type.
    pub(crate) kind: u8,
    /// ICMPv6 code, defined by the type.
    pub(crate) code: u8,
    /// The fields behind the checksum that each message of the type has.
    fixed: &'a [u8],
    /// What follows them: options, data, or the packet that an error is about.
    pub(crate) rest: &'a [u8],
}

impl<'a> MessageView<'a> {
    /// As [`Message::parse`].
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(message);
        let [kind, code, _, _] = r.array()?;
        if matches!(kind, kind::ECHO_REQUEST..=kind::REDIRECT) && code != 0 {
            return Err(ParseError::Code);
        }
        let is_ndp = is_ndp(kind);
        let len = match kind {
            kind::UNREACHABLE..=kind::PARAMETER | kind::ECHO_REQUEST | kind::ECHO_REPLY => 4,
            _ if !is_ndp => 0,
            kind::ROUTER_SOLICITATION => 4,
            kind::ROUTER_ADVERTISEMENT => 12,
            kind::REDIRECT => 36,
            _ => 20,
        };
        let fixed = r.slice(len)?;
        let rest = r.rest();
        if is_ndp {
            NdpOptions::parse(rest)?;
        }
        Ok(Self {
            kind,
            code,
            fixed,
            rest,
        })
    }

    /// The word behind the checksum; zeros where the type has none.
    pub(crate) fn first_word(&self) -> [u8; 4] {
        self.fixed.first_chunk().copied().unwrap_or_default()
    }

    /// The flags of an advertisement of a neighbour.
    fn flags(&self) -> u8 {
        let [flags, ..] = self.first_word();
        flags
    }

    /// How long the sender of a router advertisement is a default router, seconds.
    pub(crate) fn router_lifetime_s(&self) -> u16 {
        let [_, _, high, low] = self.first_word();
        u16::from_be_bytes([high, low])
    }

    /// The target of a solicitation, an advertisement of a neighbour, or a redirect.
    pub(crate) fn target(&self) -> Ipv6Addr {
        let target = self.fixed.get(4..).and_then(<[u8]>::first_chunk);
        Ipv6Addr::from(target.copied().unwrap_or_default())
    }

    /// The options of a message of neighbour discovery; of another one, none.
    pub(crate) const fn options(&self) -> NdpOptions<'a> {
        match is_ndp(self.kind) {
            true => NdpOptions(self.rest),
            false => NdpOptions(&[]),
        }
    }

    fn echo(&self) -> Echo<'a> {
        let [a, b, c, d] = self.first_word();
        Echo {
            identifier: u16::from_be_bytes([a, b]),
            sequence: u16::from_be_bytes([c, d]),
            data: self.rest,
        }
    }
}

impl<'a> Message<'a> {
    /// Reads `message`, from its type on. The checksum is not verified: see
    /// [`is_checksum_valid`]; nor is the hop limit of 255, which neighbour discovery needs.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        let view = MessageView::parse(message)?;
        let MessageView { kind, code, .. } = view;
        let word = u32::from_be_bytes(view.first_word());
        Ok(match kind {
            kind::UNREACHABLE | kind::TOO_BIG | kind::TIME_EXCEEDED | kind::PARAMETER => {
                Self::parse_error(kind, code, word, view.rest)
            }
            kind::ECHO_REQUEST => Self::EchoRequest(view.echo()),
            kind::ECHO_REPLY => Self::EchoReply(view.echo()),
            _ if is_ndp(kind) => Self::ndp(&view),
            _ => Self::Other {
                kind,
                code,
                body: view.rest,
            },
        })
    }

    fn parse_error(kind: u8, code: u8, word: u32, invoking: &'a [u8]) -> Self {
        match kind {
            kind::UNREACHABLE => Self::DestinationUnreachable { code, invoking },
            kind::TOO_BIG => Self::PacketTooBig {
                mtu: word,
                invoking,
            },
            kind::TIME_EXCEEDED => Self::TimeExceeded { code, invoking },
            _ => Self::ParameterProblem {
                code,
                pointer: word,
                invoking,
            },
        }
    }

    fn ndp(view: &MessageView<'a>) -> Self {
        let options = view.options();
        match view.kind {
            kind::ROUTER_SOLICITATION => Self::RouterSolicitation { options },
            kind::ROUTER_ADVERTISEMENT => {
                let [hop_limit, flags, _, _] = view.first_word();
                let word_at = |at| view.fixed.get(at..).and_then(<[u8]>::first_chunk);
                let number_at = |at| word_at(at).map_or(0, |word| u32::from_be_bytes(*word));
                Self::RouterAdvertisement(RouterAdvertisement {
                    hop_limit,
                    flags,
                    router_lifetime_s: view.router_lifetime_s(),
                    reachable_ms: number_at(4),
                    retransmit_ms: number_at(8),
                    options,
                })
            }
            kind::NEIGHBOR_SOLICITATION => Self::NeighborSolicitation {
                target: view.target(),
                options,
            },
            kind::NEIGHBOR_ADVERTISEMENT => Self::NeighborAdvertisement {
                flags: view.flags(),
                target: view.target(),
                options,
            },
            _ => Self::Redirect {
                target: view.target(),
                destination: Ipv6Addr::from(view.fixed.last_chunk().copied().unwrap_or_default()),
                options,
            },
        }
    }

    /// Writes the message with a zero checksum; returns its length. [`fill_checksum`]
    /// completes it.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let (kind, code) = self.kind_and_code();
        let mut w = Writer::new(out);
        w.put(&[kind, code, 0, 0])?;
        match *self {
            Self::DestinationUnreachable { invoking, .. } | Self::TimeExceeded { invoking, .. } => {
                emit_error(&mut w, 0, invoking)
            }
            Self::PacketTooBig { mtu, invoking } => emit_error(&mut w, mtu, invoking),
            Self::ParameterProblem {
                pointer, invoking, ..
            } => emit_error(&mut w, pointer, invoking),
            Self::EchoRequest(echo) | Self::EchoReply(echo) => echo.emit(&mut w),
            Self::RouterSolicitation { options } => emit_ndp(&mut w, 0, &[], options),
            Self::RouterAdvertisement(advertisement) => advertisement.emit(&mut w),
            Self::NeighborSolicitation { target, options } => {
                emit_ndp(&mut w, 0, &[target], options)
            }
            Self::NeighborAdvertisement {
                flags,
                target,
                options,
            } => emit_ndp(&mut w, flags, &[target], options),
            Self::Redirect {
                target,
                destination,
                options,
            } => emit_ndp(&mut w, 0, &[target, destination], options),
            Self::Other { body, .. } => w.put(body),
        }?;
        Ok(w.written())
    }

    const fn kind_and_code(&self) -> (u8, u8) {
        match *self {
            Self::DestinationUnreachable { code, .. } => (kind::UNREACHABLE, code),
            Self::PacketTooBig { .. } => (kind::TOO_BIG, 0),
            Self::TimeExceeded { code, .. } => (kind::TIME_EXCEEDED, code),
            Self::ParameterProblem { code, .. } => (kind::PARAMETER, code),
            Self::EchoRequest(_) => (kind::ECHO_REQUEST, 0),
            Self::EchoReply(_) => (kind::ECHO_REPLY, 0),
            Self::RouterSolicitation { .. } => (kind::ROUTER_SOLICITATION, 0),
            Self::RouterAdvertisement(_) => (kind::ROUTER_ADVERTISEMENT, 0),
            Self::NeighborSolicitation { .. } => (kind::NEIGHBOR_SOLICITATION, 0),
            Self::NeighborAdvertisement { .. } => (kind::NEIGHBOR_ADVERTISEMENT, 0),
            Self::Redirect { .. } => (kind::REDIRECT, 0),
            Self::Other { kind, code, .. } => (kind, code),
        }
    }
}

impl Echo<'_> {
    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.u16(self.identifier)?;
        w.u16(self.sequence)?;
        w.put(self.data)
    }
}

impl RouterAdvertisement<'_> {
    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.put(&[self.hop_limit, self.flags])?;
        w.u16(self.router_lifetime_s)?;
        w.u32(self.reachable_ms)?;
        w.u32(self.retransmit_ms)?;
        w.put(self.options.as_bytes())
    }
}

fn emit_error(w: &mut Writer<'_>, word: u32, invoking: &[u8]) -> Result<(), Full> {
    w.u32(word)?;
    w.put(invoking)
}

fn emit_ndp(
    w: &mut Writer<'_>,
    flags: u8,
    addrs: &[Ipv6Addr],
    options: NdpOptions<'_>,
) -> Result<(), Full> {
    w.put(&[flags, 0, 0, 0])?;
    for addr in addrs {
        w.put(&addr.octets())?;
    }
    w.put(options.as_bytes())
}

/// Whether a message of this type is read as one of neighbour discovery. Only links over radios
/// discover neighbours.
const fn is_ndp(kind: u8) -> bool {
    cfg!(feature = "mesh") && matches!(kind, kind::ROUTER_SOLICITATION..=kind::REDIRECT)
}

/// Whether a message of this type reports an error: never answered by an error.
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Whether `message` carries the right checksum.
pub fn is_checksum_valid(src: &Ipv6Addr, dst: &Ipv6Addr, message: &[u8]) -> bool {
    checksum::is_valid(src, dst, NEXT_HEADER, message)
}

/// Computes and stores the checksum of `message`.
pub fn fill_checksum(src: &Ipv6Addr, dst: &Ipv6Addr, message: &mut [u8]) {
    checksum::fill(src, dst, NEXT_HEADER, message, CHECKSUM_AT, false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LinkAddr;
    use crate::wire::ndp::NdpOption;
    use proptest::prelude::*;
    use std::vec;

    #[test]
    fn every_message_round_trips() {
        let mut options = [0; 8];
        NdpOption::SourceLinkAddr(LinkAddr::Short(7))
            .emit(&mut Writer::new(&mut options))
            .unwrap();
        let options = NdpOptions::parse(&options).unwrap();
        let (target, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(1, 2, 3, 4, 5, 6, 7, 8));
        let invoking = &[0x60, 0, 0][..];
        let echo = Echo {
            identifier: 1,
            sequence: 2,
            data: b"abc",
        };
        let advertisement = RouterAdvertisement {
            hop_limit: 64,
            flags: 0x40,
            router_lifetime_s: 1800,
            reachable_ms: 1,
            retransmit_ms: 2,
            options,
        };
        let messages = [
            (
                1,
                Message::DestinationUnreachable {
                    code: unreachable::PORT,
                    invoking,
                },
            ),
            (
                2,
                Message::PacketTooBig {
                    mtu: 1280,
                    invoking,
                },
            ),
            (3, Message::TimeExceeded { code: 1, invoking }),
            (
                4,
                Message::ParameterProblem {
                    code: 2,
                    pointer: 6,
                    invoking,
                },
            ),
            (128, Message::EchoRequest(echo)),
            (129, Message::EchoReply(echo)),
            (133, Message::RouterSolicitation { options }),
            (134, Message::RouterAdvertisement(advertisement)),
            (135, Message::NeighborSolicitation { target, options }),
            (
                136,
                Message::NeighborAdvertisement {
                    flags: 0xe0,
                    target,
                    options,
                },
            ),
            (
                137,
                Message::Redirect {
                    target,
                    destination,
                    options,
                },
            ),
            (
                155,
                Message::Other {
                    kind: 155,
                    code: 1,
                    body: b"DIO",
                },
            ),
        ];
        for (kind, message) in messages {
            let mut out = [0; 100];
            let len = message.emit(&mut out).unwrap();
            assert_eq!(out[0], kind);
            assert_eq!(Message::parse(&out[..len]), Ok(message));
            assert_eq!(message.emit(&mut out[..len - 1]), Err(Full));
            fill_checksum(&target, &destination, &mut out[..len]);
            assert!(is_checksum_valid(&target, &destination, &out[..len]));
            assert_eq!(Message::parse(&out[..len]), Ok(message));
        }
    }

    #[test]
    fn refused() {
        let ns = |tail: &[u8]| [&[135, 0, 0, 0, 0, 0, 0, 0][..], &[0; 16], tail].concat();
        let cases = [
            ("empty", vec![], ParseError::Truncated),
            ("no checksum", vec![128, 0, 0], ParseError::Truncated),
            ("half an echo", vec![128, 0, 0, 0, 1], ParseError::Truncated),
            ("half an error", vec![1, 0, 0, 0, 1], ParseError::Truncated),
            ("half an advertisement", vec![134; 0x0f], ParseError::Code),
            (
                "half a target",
                ns(&[])[..20].to_vec(),
                ParseError::Truncated,
            ),
            (
                "echo with a code",
                vec![128, 1, 0, 0, 0, 0, 0, 0],
                ParseError::Code,
            ),
            (
                "option of length 0",
                ns(&[1, 0, 0, 0, 0, 0, 0, 0]),
                ParseError::OptionLength,
            ),
            (
                "option beyond the end",
                ns(&[1, 2, 0, 0, 0, 0, 0, 0]),
                ParseError::OptionLength,
            ),
            ("half an option", ns(&[1]), ParseError::OptionLength),
        ];
        for (name, bytes, reason) in cases {
            assert_eq!(Message::parse(&bytes), Err(reason), "{name}");
        }
    }

    /// What follows the fields of other messages is no list of options: its lengths are not
    /// checked.
    #[test]
    fn only_neighbour_discovery_has_options() {
        let rest = [1, 1, 0, 0, 0, 0, 0, 0];
        for (kind, fields) in [
            (kind::TOO_BIG, 4),
            (kind::ECHO_REQUEST, 4),
            (kind::ROUTER_SOLICITATION, 4),
            (kind::ROUTER_ADVERTISEMENT, 12),
            (kind::REDIRECT, 36),
            (kind::RPL, 0),
        ] {
            // A build without links over radios reads no fields of neighbour discovery.
            let has_fields = kind < kind::ROUTER_SOLICITATION || is_ndp(kind);
            let fields = vec![0; if has_fields { fields } else { 0 }];
            let message = [&[kind, 0, 0, 0][..], &fields, &rest].concat();
            let view = MessageView::parse(&message).unwrap();
            assert_eq!(view.rest, rest, "{kind}");
            let options = if is_ndp(kind) { &rest[..] } else { &[] };
            assert_eq!(view.options().as_bytes(), options, "{kind}");
        }
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_what_it_yields_round_trips(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in prop_oneof![1u8..5, 128u8..138, any::<u8>()],
        ) {
            if let Some([first, code]) = bytes.first_chunk_mut() {
                *first = kind;
                *code &= 1;
            }
            if let Ok(message) = Message::parse(&bytes) {
                let mut out = [0; 100];
                let len = message.emit(&mut out).unwrap();
                prop_assert_eq!(Message::parse(&out[..len]), Ok(message));
            }
        }
    }
}
