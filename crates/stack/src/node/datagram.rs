//! UDP where it meets the interfaces.

use core::net::Ipv6Addr;

use super::header_compression::Mark;
use super::{FIRST_INTERFACE, Node};
use crate::ip::{Disposition, icmp::ErrorKind};
use crate::mac::Class;
use crate::udp::{self, Inbox};
use crate::wire::ipv6::{Ecn, Header, TrafficClass};
use crate::wire::udp::{HEADER_LEN, Header as Ports, NEXT_HEADER};

/// Why a datagram was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramError {
    /// No route leads there.
    NoRoute,
    /// No address of this node fits the destination's scope.
    NoAddress,
    /// Longer than a packet may be.
    TooLong,
    /// No room in the queue: try again later.
    QueueFull,
}

impl DatagramError {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoRoute => "no route leads there",
            Self::NoAddress => "no address of this node fits the destination",
            Self::TooLong => "datagram longer than a packet may be",
            Self::QueueFull => "no room in the queue",
        }
    }
}

speaks!(DatagramError);

impl<'m> Node<'m> {
    /// Opens the ports of `inbox`; what comes for them waits there.
    pub fn set_inbox(&mut self, inbox: Inbox<'m>) {
        self.inbox = Some(inbox);
    }

    /// The inbox, to read from.
    pub fn inbox_mut(&mut self) -> Option<&mut Inbox<'m>> {
        self.inbox.as_mut()
    }

    /// Sends `payload` from `port` to a port of `remote`. Poll the node after.
    ///
    /// # Errors
    /// [`DatagramError`]; nothing was sent.
    pub fn send_datagram(
        &mut self,
        remote: (Ipv6Addr, u16),
        port: u16,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        self.polled_at = None;
        let (dst, dst_port) = remote;
        let hop = self.next_hop(&dst, FIRST_INTERFACE);
        let hop = hop.ok_or(DatagramError::NoRoute)?;
        let src = self.ip.source_for(&dst, hop.interface);
        let src = src.ok_or(DatagramError::NoAddress)?;
        let ports = Ports {
            src_port: port,
            dst_port,
        };
        let udp = udp::header(&src, &dst, ports, payload).ok_or(DatagramError::TooLong)?;
        let len = HEADER_LEN.saturating_add(payload.len());
        let header = Header {
            traffic_class: TrafficClass::new(0, Ecn::NotEct),
            flow_label: 0,
            payload_len: u16::try_from(len).map_err(|_| DatagramError::TooLong)?,
            next_header: NEXT_HEADER,
            hop_limit: self.ip.hop_limit(),
            src,
            dst,
        };
        let mut head = [0; crate::wire::ipv6::HEADER_LEN + HEADER_LEN];
        header.emit(&mut head).map_err(|_| DatagramError::TooLong)?;
        let at = crate::wire::ipv6::HEADER_LEN;
        crate::wire::cursor::copy(head.get_mut(at..).unwrap_or_default(), &udp);
        let total = head.len().saturating_add(payload.len());
        let queue = self.queue_for(hop, total);
        let queue = queue.map_err(|_| DatagramError::TooLong)?;
        match queue.push_parts([&head, payload], Mark::own(Class::Own).to_bits()) {
            true => Ok(()),
            false => Err(DatagramError::QueueFull),
        }
    }

    /// A datagram for this node.
    pub(super) fn on_datagram(
        &mut self,
        header: &Header,
        datagram: &[u8],
    ) -> Result<(), Disposition> {
        let inbox = self.inbox.as_mut();
        match inbox.is_some_and(|inbox| inbox.put(&header.src, &header.dst, datagram)) {
            true => Ok(()),
            false => Err(Disposition::Refuse(ErrorKind::PortUnreachable)),
        }
    }
}
