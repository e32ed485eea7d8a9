//! ICMPv6 messages a node writes: echo replies and errors.
//!
//! Sources: RFC 4443 (§2.4 for what an error may answer), RFC 8200 §4.2.

use core::net::Ipv6Addr;

use super::PacketDrop;
use crate::limits::IPV6_MTU_MIN;
use crate::time::Allowance;
use crate::wire::checksum::Checksum;
use crate::wire::cursor::{Full, copy};
use crate::wire::icmpv6::{self, Message, kind, unreachable};
use crate::wire::ipv6::{self, Extensions, Header, TrafficClass, next_header};

/// An error a node reports to the source of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ErrorKind {
    /// Destination unreachable, code 0: no route.
    NoRoute,
    /// The same: the only route leads back to the neighbour that sent the packet.
    SentBack,
    /// Destination unreachable, code 3: the last hop does not answer.
    AddressUnreachable,
    /// Destination unreachable, code 7: the next step of a source route does not answer (RFC 6554
    /// §4.2).
    SourceRoute,
    /// Destination unreachable, code 4: no application listens on the port.
    PortUnreachable,
    /// Packet too big for the next link.
    PacketTooBig {
        /// The MTU of the next link, bytes.
        mtu: u32,
    },
    /// Time exceeded, code 0: the hop limit has run out (RFC 4443 §3.3).
    HopLimitExceeded,
    /// Time exceeded, code 1: a fragment is missing.
    #[cfg(feature = "fragments")]
    ReassemblyTimeExceeded,
    /// Parameter problem (RFC 4443 §3.4): a header cannot be processed.
    ParameterProblem {
        /// 0 erroneous field, 1 unknown next header, 2 unknown option, 3 first fragment without all
        /// headers.
        code: u8,
        /// Offset of the offending octet.
        pointer: u32,
    },
}

impl ErrorKind {
    /// Packet too big and an unknown option may answer multicast (RFC 4443 §2.4 e.3).
    const fn may_answer_multicast(self) -> bool {
        matches!(
            self,
            Self::PacketTooBig { .. } | Self::ParameterProblem { code: 2, .. }
        )
    }

    /// The reason under which a packet counts as dropped if no error may be sent about it; `None`
    /// where it is counted elsewhere.
    pub(crate) const fn in_silence(self) -> Option<PacketDrop> {
        match self {
            Self::SentBack => None,
            Self::NoRoute
            | Self::AddressUnreachable
            | Self::SourceRoute
            | Self::PacketTooBig { .. }
            | Self::HopLimitExceeded => Some(PacketDrop::NoRoute),
            Self::PortUnreachable | Self::ParameterProblem { code: 1, .. } => {
                Some(PacketDrop::UnknownProtocol)
            }
            #[cfg(feature = "fragments")]
            Self::ReassemblyTimeExceeded => Some(PacketDrop::Fragment),
            Self::ParameterProblem { .. } => Some(PacketDrop::ExtensionHeader),
        }
    }

    /// The beginning of the ICMPv6 message of this error: what stands before the packet that it
    /// quotes.
    const fn fixed(self) -> Fixed {
        let (kind, code, word) = match self {
            Self::NoRoute | Self::SentBack => (kind::UNREACHABLE, unreachable::NO_ROUTE, 0),
            Self::AddressUnreachable => (kind::UNREACHABLE, unreachable::ADDRESS, 0),
            Self::SourceRoute => (kind::UNREACHABLE, unreachable::SOURCE_ROUTE, 0),
            Self::PortUnreachable => (kind::UNREACHABLE, unreachable::PORT, 0),
            Self::PacketTooBig { mtu } => (kind::TOO_BIG, 0, mtu),
            Self::HopLimitExceeded => (kind::TIME_EXCEEDED, 0, 0),
            #[cfg(feature = "fragments")]
            Self::ReassemblyTimeExceeded => (kind::TIME_EXCEEDED, 1, 0),
            Self::ParameterProblem { code, pointer } => (kind::PARAMETER, code, pointer),
        };
        let [a, b, c, d] = word.to_be_bytes();
        [kind, code, 0, 0, a, b, c, d]
    }
}

/// Type, code, a zero checksum and the fixed word of a message.
type Fixed = [u8; icmpv6::HEADER_LEN];

/// Limit on the ICMPv6 errors that a node sends: a burst of 10, as RFC 4443 §2.4 f proposes for a
/// small device, then one a second. That section's 10 a second, of two frames each, would be a
/// sixth of what a mesh carries over one hop, and any stranger can cause them.
pub(super) const ERRORS: Allowance = Allowance::new(10, 1_000);

/// Limit on the echo requests that a node answers: a burst of 32, then 20 a second.
pub(super) const ECHOES: Allowance = Allowance::new(32, 50);

/// Whether an error about `packet` may be sent at all (RFC 4443 §2.4 e).
///
/// `packet`: IPv6 header first; may be cut short, as a first fragment is.
pub(crate) fn may_answer(header: &Header, packet: &[u8], kind: ErrorKind) -> bool {
    let to_one_node = !header.dst.is_multicast() || kind.may_answer_multicast();
    let from_one_node = header.src != Ipv6Addr::UNSPECIFIED && !header.src.is_multicast();
    to_one_node && from_one_node && !may_be_error(header, packet)
}

/// Whether `packet` is an ICMPv6 error or redirect, or may be one because its headers cannot be
/// read.
fn may_be_error(header: &Header, packet: &[u8]) -> bool {
    let mut walk = Extensions::new(
        header.next_header,
        packet.get(ipv6::HEADER_LEN..).unwrap_or_default(),
    );
    loop {
        match walk.next() {
            // A later fragment does not show its protocol.
            Ok(Some(extension))
                if extension.kind != next_header::FRAGMENT || is_first(extension.bytes) => {}
            Ok(None) => break,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
    walk.next_header() == icmpv6::NEXT_HEADER
        && walk
            .rest()
            .first()
            .is_none_or(|kind| icmpv6::is_error(*kind) || *kind == REDIRECT)
}

/// Whether this fragment header is a packet's first: its offset is 0 (RFC 8200 §4.5).
fn is_first(fragment_header: &[u8]) -> bool {
    matches!(fragment_header, [_, _, 0, low, ..] if low >> 3 == 0)
}

/// ICMPv6 type of a redirect, which counts as an error here (RFC 4443 §2.4 e.2).
const REDIRECT: u8 = 137;

/// IPv6 and ICMPv6 headers of a message whose body lies elsewhere: the checksum covers both.
pub(crate) type Head = [u8; ipv6::HEADER_LEN + icmpv6::HEADER_LEN];

/// The head of an error about `offending` (IPv6 header first, sent by `to`), and how much of
/// `offending` follows it: as much as the minimum MTU holds.
pub(crate) fn error(
    kind: ErrorKind,
    offending: &[u8],
    to: Ipv6Addr,
    src: Ipv6Addr,
    hop_limit: u8,
) -> Option<(Head, &[u8])> {
    let quoted = offending
        .len()
        .min(IPV6_MTU_MIN - ipv6::HEADER_LEN - icmpv6::HEADER_LEN);
    let body = offending.get(..quoted)?;
    Some((head(kind.fixed(), body, src, to, hop_limit)?, body))
}

/// The head of the reply to an echo request, given by the word behind its checksum and its data,
/// which follow.
pub(crate) fn echo_reply(
    (word, data): ([u8; 4], &[u8]),
    to: Ipv6Addr,
    src: Ipv6Addr,
    hop_limit: u8,
) -> Option<Head> {
    let [a, b, c, d] = word;
    let fixed = [kind::ECHO_REPLY, 0, 0, 0, a, b, c, d];
    head(fixed, data, src, to, hop_limit)
}

/// The head of the message that begins with `fixed`, whose body lies elsewhere.
// Not inlined: it has two callers, and one copy saves flash.
#[inline(never)]
fn head(
    mut fixed: Fixed,
    body: &[u8],
    src: Ipv6Addr,
    dst: Ipv6Addr,
    hop_limit: u8,
) -> Option<Head> {
    let len = icmpv6::HEADER_LEN + body.len();
    let mut sum = Checksum::pseudo_header(&src, &dst, icmpv6::NEXT_HEADER, len);
    sum.add(&fixed);
    sum.add(body);
    let [_, _, high, low, ..] = &mut fixed;
    [*high, *low] = sum.finish().to_be_bytes();
    let mut head = [0; ipv6::HEADER_LEN + icmpv6::HEADER_LEN];
    let (first, rest) = head.split_at_mut(ipv6::HEADER_LEN);
    header(u16::try_from(len).ok()?, (src, dst), hop_limit)
        .emit(first)
        .ok()?;
    copy(rest, &fixed);
    Some(head)
}

/// The IPv6 header of a message of `len` bytes.
fn header(len: u16, (src, dst): (Ipv6Addr, Ipv6Addr), hop_limit: u8) -> Header {
    Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: len,
        next_header: icmpv6::NEXT_HEADER,
        hop_limit,
        src,
        dst,
    }
}

/// Writes `message` as a whole packet; returns its length.
///
/// # Errors
/// [`Full`] when `out` cannot hold it.
pub fn write(
    message: &Message<'_>,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    hop_limit: u8,
    out: &mut [u8],
) -> Result<usize, Full> {
    let body = out.get_mut(ipv6::HEADER_LEN..).ok_or(Full)?;
    let len = message.emit(body)?;
    finish(len, (src, dst), hop_limit, out)
}

/// Makes a message of `len` bytes, which stand in `out` behind room for an IPv6 header, a whole
/// packet; returns its length.
///
/// # Errors
/// [`Full`] when `out` does not hold it.
pub(crate) fn finish(
    len: usize,
    (src, dst): (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    out: &mut [u8],
) -> Result<usize, Full> {
    let (head, body) = out.split_at_mut_checked(ipv6::HEADER_LEN).ok_or(Full)?;
    icmpv6::fill_checksum(&src, &dst, body.get_mut(..len).ok_or(Full)?);
    let len16 = u16::try_from(len).map_err(|_| Full)?;
    header(len16, (src, dst), hop_limit).emit(head)?;
    Ok(ipv6::HEADER_LEN + len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Duration, Instant};
    use crate::wire::icmpv6::Echo;

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn packet(dst: &str, message: &Message<'_>) -> std::vec::Vec<u8> {
        let mut out = [0; 200];
        let len = write(message, ip("fd00::9"), ip(dst), 64, &mut out).unwrap();
        out[..len].to_vec()
    }

    fn answers(packet: &[u8], kind: ErrorKind) -> bool {
        may_answer(&Header::parse_start(packet).unwrap().0, packet, kind)
    }

    #[test]
    fn errors_answer_requests_only() {
        let echo = Echo {
            identifier: 1,
            sequence: 2,
            data: b"x",
        };
        let request = Message::EchoRequest(echo);
        let error = Message::TimeExceeded {
            code: 0,
            invoking: &[],
        };
        assert!(answers(&packet("fd00::1", &request), ErrorKind::NoRoute));
        assert!(
            !answers(&packet("fd00::1", &error), ErrorKind::NoRoute),
            "an error"
        );
        assert!(
            !answers(&packet("ff02::1", &request), ErrorKind::NoRoute),
            "to many"
        );
        assert!(answers(
            &packet("ff02::1", &request),
            ErrorKind::PacketTooBig { mtu: 1280 }
        ));
        let mut nameless = packet("fd00::1", &request);
        nameless[8..24].fill(0);
        assert!(!answers(&nameless, ErrorKind::NoRoute), "from nobody");
        let mut hidden = packet("fd00::1", &request);
        hidden[6] = next_header::FRAGMENT;
        hidden[42..44].fill(1);
        assert!(
            !answers(&hidden, ErrorKind::NoRoute),
            "could be the tail of an error"
        );
    }

    #[test]
    fn an_error_quotes_what_fits_and_sums_up() {
        let offending = [0x60; 2000];
        let (src, to) = (ip("fd00::1"), ip("fd00::9"));
        let (head, body) = error(ErrorKind::NoRoute, &offending, to, src, 64).unwrap();
        let packet = [&head[..], body].concat();
        assert_eq!(packet.len(), IPV6_MTU_MIN);
        let (header, message) = Header::parse(&packet).unwrap();
        assert_eq!((header.src, header.dst), (src, to));
        assert!(icmpv6::is_checksum_valid(&src, &to, message));
        assert!(matches!(
            Message::parse(message),
            Ok(Message::DestinationUnreachable { code: 0, invoking }) if invoking.len() == 1232
        ));
    }

    #[test]
    fn an_echo_comes_back_as_sent() {
        let (src, to) = (ip("fd00::1"), ip("fd00::9"));
        for data in [&b""[..], b"odd", b"even"] {
            let request = Echo {
                identifier: 7,
                sequence: 9,
                data,
            };
            let head = echo_reply(([0, 7, 0, 9], data), to, src, 64).unwrap();
            let packet = [&head[..], data].concat();
            let (_, message) = Header::parse(&packet).unwrap();
            assert!(icmpv6::is_checksum_valid(&src, &to, message));
            assert_eq!(Message::parse(message), Ok(Message::EchoReply(request)));
        }
    }

    #[test]
    fn errors_come_in_a_burst_then_one_a_second() {
        let mut budget = ERRORS;
        let start = Instant::from_micros(1_000_000);
        assert_eq!((0..50).filter(|_| budget.take(start)).count(), 10);
        let later = start + Duration::from_millis(2_500);
        assert_eq!((0..50).filter(|_| budget.take(later)).count(), 2);
        let much_later = start + Duration::from_secs(1_000_000);
        assert_eq!((0..50).filter(|_| budget.take(much_later)).count(), 10);
    }
}
