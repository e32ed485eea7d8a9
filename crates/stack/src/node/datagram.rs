//! UDP where it meets the links.

use core::net::Ipv6Addr;

use super::Node;
use crate::ip::{Disposition, InterfaceId, NextHop, icmp::ErrorKind};
use crate::link::{Class, Refusal};
use crate::remote::Remote;
use crate::time::Instant;
use crate::udp::{self, Inbox};
use crate::wire::cursor::copy;
use crate::wire::ipv6::{self, Ecn, Header, TrafficClass};
use crate::wire::udp::{HEADER_LEN, Header as Ports, NEXT_HEADER};

/// Why a datagram was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramError {
    /// No route leads to the destination.
    NoRoute,
    /// No address of this node fits the destination's scope.
    NoAddress,
    /// Longer than a packet may be, or than the queue. With the feature `fragments` a packet may
    /// have 1,500 bytes, and leaves in fragments where a link is too narrow for it.
    TooLong,
    /// No room in the queue: try again later.
    QueueFull,
}

impl DatagramError {
    /// The meaning of the error, in a few English words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoRoute => "no route leads there",
            Self::NoAddress => "no address of this node fits the destination",
            Self::TooLong => "datagram longer than a packet or the queue may be",
            Self::QueueFull => "no room in the queue",
        }
    }
}

speaks!(DatagramError);

/// Both headers of a datagram with `payload`: addresses and ports from where to where. `None`: it
/// is too long.
pub(super) fn head(
    (src, dst): (Ipv6Addr, Ipv6Addr),
    (src_port, dst_port): (u16, u16),
    hop_limit: u8,
    payload: &[u8],
) -> Option<[u8; ipv6::HEADER_LEN + HEADER_LEN]> {
    let ports = Ports { src_port, dst_port };
    let udp = udp::header(&src, &dst, ports, payload)?;
    let len = HEADER_LEN.saturating_add(payload.len());
    let header = Header {
        traffic_class: TrafficClass::new(0, Ecn::NotEct),
        flow_label: 0,
        payload_len: u16::try_from(len).ok()?,
        next_header: NEXT_HEADER,
        hop_limit,
        src,
        dst,
    };
    let mut head = [0; ipv6::HEADER_LEN + HEADER_LEN];
    header.emit(&mut head).ok()?;
    copy(head.get_mut(ipv6::HEADER_LEN..)?, &udp);
    Some(head)
}

impl<'m> Node<'m> {
    /// Opens the ports of `inbox`, in which their datagrams are then stored.
    pub fn set_inbox(&mut self, inbox: Inbox<'m>) {
        self.inbox = Some(inbox);
    }

    /// The inbox, to read from.
    pub fn inbox_mut(&mut self) -> Option<&mut Inbox<'m>> {
        self.inbox.as_mut()
    }

    /// Sends `payload` from `port` to `remote`, an address and a port. Poll the node after.
    ///
    /// A link-local address may belong to a different node on each link, and a group has members on
    /// each link: [`Remote::zone`] selects the link. Without it, the first link with a link-local
    /// address is used. The answer to a datagram goes to its sender, zone and all:
    /// [`Received::from`](udp::Received::from).
    ///
    /// # Errors
    /// [`DatagramError`]; nothing was sent.
    pub fn send_datagram(
        &mut self,
        remote: impl Into<Remote>,
        port: u16,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        self.send_to(&remote.into(), port, payload)
    }

    fn send_to(&mut self, remote: &Remote, port: u16, payload: &[u8]) -> Result<(), DatagramError> {
        self.polled_at = None;
        let dst = remote.addr;
        let hop = self.hop_to(remote).ok_or(DatagramError::NoRoute)?;
        let src = self.ip.source_for(&dst, hop.interface);
        let src = src.ok_or(DatagramError::NoAddress)?;
        let ports = (port, remote.port);
        let head = head((src, dst), ports, self.ip.hop_limit(), payload);
        let head = head.ok_or(DatagramError::TooLong)?;
        let queued = self.queue_or_cut(hop, &head, payload, Class::Own);
        let link = self.link_towards(hop).map_err(|_| DatagramError::NoRoute)?;
        queued.map_err(|refusal| match refusal {
            Refusal::TooBig { .. } => DatagramError::TooLong,
            // To try again would be in vain.
            _ if !link.may_hold(1, head.len() + payload.len()) => DatagramError::TooLong,
            Refusal::Full | Refusal::Congestion => DatagramError::QueueFull,
        })
    }

    /// The next hop to `remote`, on the link that its zone names.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn hop_to(&self, remote: &Remote) -> Option<NextHop> {
        let on_link = InterfaceId::of_zone(remote.zone);
        let on_link = on_link.unwrap_or_else(|| self.ip.first_link());
        self.next_hop(&remote.addr, on_link)
    }

    /// A datagram for this node.
    pub(super) fn on_datagram(
        &mut self,
        id: InterfaceId,
        header: &Header,
        datagram: &[u8],
        now: Instant,
    ) -> Result<(), Disposition> {
        #[cfg(feature = "thread")]
        if super::mesh_mut(self.links, id).is_some_and(|it| it.takes_mle(header, datagram, now)) {
            return Ok(());
        }
        let zone = id.zone_between(&header.src, &header.dst);
        if self.takes_join((header, zone), datagram, now) {
            return Ok(());
        }
        let inbox = self.inbox.as_mut();
        match inbox.is_some_and(|inbox| inbox.put(&header.src, &header.dst, zone, datagram)) {
            true => Ok(()),
            false => Err(Disposition::Refuse(ErrorKind::PortUnreachable)),
        }
    }
}
