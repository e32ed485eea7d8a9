//! UDP: datagrams to and from ports, for applications that need no more.
//!
//! Place: a [`crate::node::Node`] that was given an [`Inbox`] keeps datagrams for its ports there,
//! unread; `Inbox::recv` checks and unwraps them. Sending is the node's matter: it knows
//! addresses and routes. A node without an inbox answers that its ports are closed; in a build
//! without the feature `inbox` no node has one.
//! Left out: connected sockets, multicast. A packet in fragments comes here once it is whole.
//! Sources: RFC 768, RFC 8200 §8.1, RFC 1122 §4.1.

#[cfg(feature = "inbox")]
mod inbox;
#[cfg(not(feature = "inbox"))]
#[path = "inbox_absent.rs"]
mod inbox;

use core::net::Ipv6Addr;

use crate::wire::checksum::Checksum;
use crate::wire::cursor::copy;
use crate::wire::udp::{HEADER_LEN, Header, NEXT_HEADER};

pub use inbox::Inbox;
#[cfg(feature = "inbox")]
pub use inbox::{Received, UdpCounters};

/// The header of a datagram with `payload`, checksum included.
pub(crate) fn header(
    src: &Ipv6Addr,
    dst: &Ipv6Addr,
    ports: Header,
    payload: &[u8],
) -> Option<[u8; HEADER_LEN]> {
    const CHECKSUM_AT: usize = 6;
    let mut header = [0; HEADER_LEN];
    ports.emit(payload.len(), &mut header).ok()?;
    let mut sum = Checksum::pseudo_header(
        src,
        dst,
        NEXT_HEADER,
        HEADER_LEN.wrapping_add(payload.len()),
    );
    sum.add(&header);
    sum.add(payload);
    // A checksum of zero would mean "no checksum", which IPv6 does not allow. All ones are the same
    // sum.
    let sum = match sum.finish() {
        0 => u16::MAX,
        sum => sum,
    };
    copy(header.get_mut(CHECKSUM_AT..)?, &sum.to_be_bytes());
    Some(header)
}
