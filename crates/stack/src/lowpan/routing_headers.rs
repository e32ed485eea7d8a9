//! What both forms of routing headers in memory have in common: the headers ahead of a compressed
//! IPv6 header, what a record keeps of them, and how tunnels follow from their packets.
//!
//! Place: below `routing`, which keeps routes as IPv6 has them, and below `routing_compressed`,
//! which keeps them as the air has them. Sources: RFC 8138; RFC 6040.

use core::net::Ipv6Addr;

use super::Encapsulation;
use super::contexts::low_64;
use super::restored::DecompressError;
use crate::wire::ipv6::{self, Ecn};
use crate::wire::lorh::RoutingHeaders;
use crate::wire::rpl_option::{self, Rpi};
use crate::wire::same;

/// Bytes of a packet that fragment headers do not number, less those that they number beside; where
/// the feature `rpl` is off, nothing.
pub type Unnumbered = i16;

/// How many of the first `len` bytes of a packet fragment headers number.
pub(super) const fn numbered(len: usize, unnumbered: Unnumbered) -> usize {
    shifted(len, -(unnumbered as isize))
}

/// How many bytes of a packet end where fragment headers count `numbered`: undoes [`numbered`].
pub(super) const fn unabridged(numbered: usize, unnumbered: Unnumbered) -> usize {
    shifted(numbered, unnumbered as isize)
}

/// `len` and `by` together, of which both are lengths of a packet's parts; none are below zero.
const fn shifted(len: usize, by: isize) -> usize {
    match len.wrapping_add_signed(by) {
        len if len > isize::MAX as usize => 0,
        len => len,
    }
}

/// Bytes of hop-by-hop options that hold the RPL option alone.
pub(super) const OPTION_LEN: usize = rpl_option::HEADER_LEN;

/// Routing headers ahead of a compressed IPv6 header, or none.
pub(super) struct LeadingHeaders<'a> {
    pub(super) headers: RoutingHeaders<'a>,
    /// Bytes read, the page included.
    len: usize,
    pub(super) unnumbered: i16,
}

impl<'a> LeadingHeaders<'a> {
    /// No routing headers: the compressed IPv6 header comes first.
    pub(super) fn none() -> Self {
        Self {
            headers: RoutingHeaders::default(),
            len: 0,
            unnumbered: 0,
        }
    }

    /// Reads the routing headers at the start of `bytes`, the page first; returns them and what
    /// follows.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecompressError> {
        let behind_page = bytes.get(1..).unwrap_or_default();
        let (headers, rest) = RoutingHeaders::parse(behind_page).map_err(DecompressError::Lorh)?;
        let leading = Self {
            headers,
            len: bytes.len() - rest.len(),
            unnumbered: 0,
        };
        Ok((leading, rest))
    }

    /// Length of the routing headers, the page's byte included.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn rpi(&self) -> Option<Rpi> {
        self.headers.rpi
    }

    pub(super) const fn unnumbered(&self) -> i16 {
        self.unnumbered
    }
}

/// The addresses from which the addresses of a tunnel's packet may be elided. `src`, `end`: of the
/// tunnel. An address is elided only if it follows both from the outer header (RFC 8138 §5.2.3) and
/// from the link addresses, because implementations differ in which of these they use.
pub(super) fn encapsulation(
    (src, end): (&Ipv6Addr, &Ipv6Addr),
    inner: &ipv6::Header,
    link: Encapsulation,
) -> Encapsulation {
    let both = |link: [u8; 8], outer: &Ipv6Addr, inner: &Ipv6Addr| {
        if same(&low_64(*outer), &link) {
            return link;
        }
        // A value that matches no inner address, so that it is not elided.
        let mut other = low_64(*inner);
        for byte in &mut other {
            *byte = !*byte;
        }
        other
    };
    Encapsulation {
        src: both(link.src, src, &inner.src),
        dst: both(link.dst, end, &inner.dst),
    }
}

/// The destination of an outer header that omits it: for a packet that goes up it is the root (RFC
/// 8138 §7).
pub(super) fn implied<'a>(
    rpi: Option<Rpi>,
    inner: &'a Ipv6Addr,
    root: &'a Ipv6Addr,
) -> &'a Ipv6Addr {
    match rpi {
        Some(Rpi { down: true, .. }) => inner,
        _ => root,
    }
}

/// Takes a mark of congestion over from the outer header; `None` where their traffic classes differ
/// otherwise, or the inner packet may not be marked.
pub(super) fn mark(inner: &mut ipv6::Header, outer: ipv6::TrafficClass) -> Option<()> {
    let is_new_mark = outer.ecn() == Ecn::Ce
        && inner.traffic_class.ecn() != Ecn::NotEct
        && outer.dscp() == inner.traffic_class.dscp();
    if is_new_mark {
        inner.traffic_class = outer;
    }
    (inner.traffic_class == outer).then_some(())
}

/// The routing of a first fragment, as a record keeps it. Nothing: all zeros, so that a static
/// record costs no flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordRouting {
    /// The RPL option's flags, and [`HAS_RPI`] where there is one.
    flags: u8,
    instance: u8,
    sender_rank: u16,
    unnumbered: i16,
}

/// A bit that no flag of an RPL option takes.
const HAS_RPI: u8 = 1;

impl RecordRouting {
    pub(super) const NOTHING: Self = Self {
        flags: 0,
        instance: 0,
        sender_rank: 0,
        unnumbered: 0,
    };

    pub(super) fn of(rpi: Option<Rpi>, unnumbered: i16) -> Self {
        let mut kept = Self {
            unnumbered,
            ..Self::NOTHING
        };
        if let Some(rpi) = rpi {
            kept.flags = rpi.flags() | HAS_RPI;
            kept.instance = rpi.instance;
            kept.sender_rank = rpi.sender_rank;
        }
        kept
    }

    pub(super) fn rpi(self) -> Option<Rpi> {
        let has_rpi = self.flags & HAS_RPI != 0;
        has_rpi.then(|| Rpi::of(self.flags, self.instance, self.sender_rank))
    }

    pub(super) const fn unnumbered(self) -> i16 {
        self.unnumbered
    }
}
