//! TCP where it meets the interfaces.
//!
//! Place: packets come from `receive`, `transmit` asks for a segment when there is room for
//! one. `segment_absent` stands in its place in a node built without the feature `tcp`.

use core::net::Ipv6Addr;

pub(super) use crate::tcp::Tcp;

use super::interface::{Interface, Radio};
use super::receive::UNKNOWN_PROTOCOL;
use super::transmit::{compressed_len, growth};
use super::{FIRST_INTERFACE, Node};
use crate::ip::{self, Disposition, InterfaceId, Ip, NextHop};
use crate::lowpan::{LinkPair, fragment};
use crate::random::Rng;
use crate::tcp::{self, IcmpError};
use crate::time::Instant;
use crate::wire::icmpv6::{Message, unreachable};
use crate::wire::ipv6::{self, Header, TrafficClass};
use crate::wire::tcp::{HEADER_LEN, NEXT_HEADER};
use crate::wire::tcphc;

impl<'m> Node<'m> {
    /// A node over its interfaces and layers. Addresses of the radios' links are formed
    /// here; what else it is called, its application or a router says.
    pub fn new(
        interfaces: &'m mut [Interface<'m>],
        ip: Ip<'m>,
        tcp: Tcp<'m>,
        rng: Rng,
        now: Instant,
    ) -> Self {
        Self::of_layers(interfaces, ip, tcp, rng, now)
    }

    /// Opens a connection to a port of `remote`, speaking from the address that fits it.
    ///
    /// # Errors
    /// [`Rejected`], with the buffers.
    pub fn connect(
        &mut self,
        remote: (Ipv6Addr, u16),
        buffers: tcp::Buffers<'m>,
        config: &'m tcp::Config,
        now: Instant,
    ) -> Result<tcp::Handle, Rejected<'m>> {
        self.polled_at = None;
        let Some(hop) = self.ip.next_hop(&remote.0, FIRST_INTERFACE) else {
            return Err(Rejected {
                error: ConnectError::NoRoute,
                buffers,
            });
        };
        let Some(local) = self.ip.source_for(&remote.0, hop.interface) else {
            return Err(Rejected {
                error: ConnectError::NoAddress,
                buffers,
            });
        };
        self.limit_mss(&remote.0, config.timestamps);
        let opened = self.tcp.connect(local, remote, buffers, config, now);
        opened.map_err(|r| Rejected {
            error: ConnectError::Tcp(r.error),
            buffers: r.buffers,
        })
    }

    /// TCP's calls: listen, accept, send, recv, shutdown and the rest. Poll the node after.
    pub fn tcp_mut(&mut self) -> &mut Tcp<'m> {
        self.polled_at = None;
        &mut self.tcp
    }

    /// TCP, to look at.
    pub const fn tcp(&self) -> &Tcp<'m> {
        &self.tcp
    }

    /// The MSS with `remote`, counted as RFC 6691 says: without options, which each segment
    /// subtracts. On a radio, what [`RadioConfig::mss_frames`](super::RadioConfig::mss_frames)
    /// hold; on a wire, what its MTU does. 0 where no route leads there.
    ///
    /// Payload per frame is asked of the MAC, and room is left for what the first fragment
    /// grows by on later hops, so that relays never find it too long. What header compression
    /// leaves out counts as payload, more of it where segments have `timestamps`.
    pub fn mss(&self, remote: &Ipv6Addr, timestamps: bool) -> u16 {
        let hop = self.ip.next_hop(remote, FIRST_INTERFACE);
        let interface = hop.and_then(|hop| self.interfaces.get(usize::from(hop.interface.0)));
        let payload = match (interface, hop) {
            (Some(Interface::Radio(radio)), Some(hop)) => {
                segment_payload(radio, &self.ip, remote, hop, timestamps)
            }
            (Some(Interface::Wire(wire)), _) => usize::from(wire.mtu) - HEADERS_LEN,
            _ => 0,
        };
        payload.min(usize::from(u16::MAX)) as u16
    }

    /// Tells TCP how large segments with `remote` may be, before it says so in a SYN.
    fn limit_mss(&mut self, remote: &Ipv6Addr, timestamps: bool) {
        let mss = self.mss(remote, timestamps);
        self.tcp.set_mss_limit(mss);
    }

    /// A segment for this node.
    pub(super) fn on_segment(
        &mut self,
        id: InterfaceId,
        header: &Header,
        segment: &[u8],
        now: Instant,
    ) -> Result<(), Disposition> {
        if self.tcp.is_absent() {
            return Err(UNKNOWN_PROTOCOL);
        }
        // Answers to a link-local peer would leave by the first interface: `poll_segment`.
        if header.src.is_unicast_link_local() && id != FIRST_INTERFACE {
            return Err(Disposition::Drop(ip::Drop::NotMine));
        }
        // An answer would wait for ever.
        if self.ip.next_hop(&header.src, id).is_none() {
            return Err(Disposition::Drop(ip::Drop::NoRoute));
        }
        let flags = segment.get(FLAGS_AT);
        if flags.is_some_and(|flags| flags & SYN != 0) {
            // Only compression asks which options there are.
            let timestamps = tcphc::IS_SUPPORTED && has_timestamps(segment);
            self.limit_mss(&header.src, timestamps);
        }
        let ecn = header.traffic_class.ecn() as u8;
        // TCP counts what it drops, by its own reasons.
        let _ = self
            .tcp
            .on_segment(header.src, header.dst, ecn, segment, now);
        Ok(())
    }

    /// An error about a packet this node sent; only TCP's are acted upon.
    pub(super) fn on_icmp_error(
        &mut self,
        message: &Message<'_>,
        now: Instant,
    ) -> Result<(), Disposition> {
        let ignored = Disposition::Drop(ip::Drop::IgnoredIcmp);
        let (error, invoking) = reported(message).ok_or(ignored)?;
        let (header, rest) = Header::parse_start(invoking).map_err(|_| ignored)?;
        if header.next_header != NEXT_HEADER {
            return Err(ignored);
        }
        self.tcp
            .on_icmp_error(header.src, header.dst, rest, error, now);
        Ok(())
    }
}

/// [`Node::connect`] failed; the buffers come back.
#[derive(Debug)]
pub struct Rejected<'m> {
    /// The reason.
    pub error: ConnectError,
    /// What was lent.
    pub buffers: tcp::Buffers<'m>,
}

/// Why [`Node::connect`] did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// No route leads there; with a router to come, later it may.
    NoRoute,
    /// No address of this node fits the destination's scope.
    NoAddress,
    /// TCP has no room for it.
    Tcp(tcp::OpenError),
}

/// What a message says of a packet that did not arrive, and the packet.
const fn reported<'a>(message: &Message<'a>) -> Option<(IcmpError, &'a [u8])> {
    Some(match *message {
        Message::DestinationUnreachable {
            code: unreachable::PROHIBITED | unreachable::PORT,
            invoking,
        } => (IcmpError::Hard, invoking),
        // Only "unknown next header" means that the peer has no TCP at all.
        Message::ParameterProblem {
            code: 1, invoking, ..
        } => (IcmpError::Hard, invoking),
        Message::PacketTooBig { mtu, invoking } => (IcmpError::PacketTooBig(mtu), invoking),
        Message::DestinationUnreachable { invoking, .. }
        | Message::ParameterProblem { invoking, .. }
        | Message::TimeExceeded { invoking, .. } => (IcmpError::Soft, invoking),
        _ => return None,
    })
}

fn has_timestamps(segment: &[u8]) -> bool {
    let parsed = crate::wire::tcp::Header::parse(segment);
    parsed.is_ok_and(|(header, _)| header.options.timestamps.is_some())
}

/// The most TCP payload towards `remote` that fills the frames a segment may; options count
/// as payload.
fn segment_payload(
    radio: &Radio<'_>,
    ip: &Ip<'_>,
    remote: &Ipv6Addr,
    hop: NextHop,
    timestamps: bool,
) -> usize {
    let (Some(src), Some(neighbour)) = (ip.source_for(remote, hop.interface), hop.neighbour) else {
        return 0;
    };
    let header = packet_header(src, *remote, 0, TrafficClass::default(), ip.hop_limit());
    let link = LinkPair {
        src: radio.mac.source(),
        dst: neighbour,
    };
    let frames = match radio.config.mss_frames {
        0 => usize::from(u8::MAX),
        frames => usize::from(frames),
    };
    let saved = match &radio.tcphc {
        Some(tcphc) if tcphc::IS_SUPPORTED => tcphc.bytes_saved(timestamps),
        _ => 0,
    };
    fragment::payload_for_frames(
        frames,
        radio.mac.payload_len_max(neighbour),
        (compressed_len(&header, link, radio) + HEADER_LEN).saturating_sub(saved),
        HEADERS_LEN,
        growth(&header, link, radio),
    )
}

/// Asks TCP for a segment that leaves by interface `id`; writes the whole packet to `out`.
pub(super) fn poll_segment(
    ip: &Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    now: Instant,
    out: &mut [u8],
) -> Option<usize> {
    let (head, body) = out.split_at_mut_checked(ipv6::HEADER_LEN)?;
    // TCP knows no interfaces: with link-local peers it speaks on the first one.
    let leaves_here = |dst: &Ipv6Addr| {
        let hop = ip.next_hop(dst, FIRST_INTERFACE);
        hop.is_some_and(|hop| hop.interface == id)
    };
    let segment = tcp.poll_segment(now, leaves_here, body)?;
    let len = segment.len as u16;
    let class = TrafficClass::new(segment.dscp, TrafficClass(segment.ecn).ecn());
    let header = packet_header(segment.src, segment.dst, len, class, ip.hop_limit());
    header.emit(head).ok()?;
    Some(ipv6::HEADER_LEN + segment.len)
}

fn packet_header(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    len: u16,
    traffic_class: TrafficClass,
    hop_limit: u8,
) -> Header {
    Header {
        traffic_class,
        flow_label: 0,
        payload_len: len,
        next_header: NEXT_HEADER,
        hop_limit,
        src,
        dst,
    }
}

/// Both headers of a segment, without options.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + HEADER_LEN;
/// Where a TCP header has its flags, and the one that asks for an MSS.
const FLAGS_AT: usize = 13;
const SYN: u8 = 0x02;
