//! TCP where it meets the links.
//!
//! Place: packets come from `deliver`, and a link pulls a segment when there is room for one.
//! `segment_absent` stands in its place in a node built without the feature `tcp`.

use core::cell::Cell;
use core::net::Ipv6Addr;

pub(super) use crate::tcp::Tcp;

use super::Node;
use crate::ip::{self, Disposition, InterfaceId, Ip, NextHop, UNKNOWN_PROTOCOL};
use crate::limits::IPV6_MTU_MIN;
use crate::link::{Ask, Link, Pulled, SHRINKS_HEADERS, Segments};
use crate::offer::Offer;
use crate::random::Rng;
use crate::remote::Remote;
use crate::tcp::{self, Endpoints, IcmpError, IncomingSegment, PlannedHeader, Reachability};
use crate::time::Instant;
use crate::wire::icmpv6::{MessageView, kind, unreachable};
use crate::wire::ipv6::{self, Header, TrafficClass};
use crate::wire::tcp::{HEADER_LEN_MAX, NEXT_HEADER};

impl<'m> Node<'m> {
    /// A node over its links and layers. The link-local addresses of mesh links are formed here;
    /// further addresses come from the application or from a router.
    pub fn new(
        links: &'m mut [Link<'m>],
        ip: Ip<'m>,
        mut tcp: Tcp<'m>,
        rng: Rng,
        now: Instant,
    ) -> Self {
        for unique in links.iter().filter_map(Link::unique) {
            // Two nodes with one seed must not share TCP's secrets, even where the caller drew
            // them first.
            tcp.personalize(unique);
        }
        Self::of_layers(links, ip, tcp, rng, now)
    }

    /// Opens a connection to `remote`, an address and a port, from the source address that fits it.
    ///
    /// A link-local address may belong to a different node on each link: [`Remote::zone`] selects
    /// the link. Without it, the first link with a link-local address is used.
    ///
    /// # Errors
    /// [`Rejected`], with the buffers.
    pub fn connect(
        &mut self,
        remote: impl Into<Remote>,
        buffers: tcp::Buffers<'m>,
        config: &'m tcp::Config,
        now: Instant,
    ) -> Result<tcp::Handle, Rejected<'m>> {
        self.open(remote.into(), buffers, config, now)
    }

    // Not inlined: its frame would lie below the work of the stack in the main loop of a device,
    // 150 B of the call stack.
    #[inline(never)]
    fn open(
        &mut self,
        mut remote: Remote,
        buffers: tcp::Buffers<'m>,
        config: &'m tcp::Config,
        now: Instant,
    ) -> Result<tcp::Handle, Rejected<'m>> {
        self.polled_at = None;
        let (error, buffers) = match self.way_to(&remote) {
            Ok((hop, local)) => {
                remote.zone = hop.interface.zone_between(&local, &remote.addr);
                let settings = (config.timestamps, config.mss_frames);
                let segments = self.segments(hop, (local, remote.addr), settings);
                let offer = self.offer(hop, &segments, None, now);
                match self.tcp.connect(local, remote, buffers, config, offer, now) {
                    Ok(handle) => return Ok(handle),
                    Err(rejected) => (ConnectError::Tcp(rejected.error), rejected.buffers),
                }
            }
            Err(error) => (error, buffers),
        };
        Err(Rejected { error, buffers })
    }

    /// The next hop to `remote`, and which of this node's addresses to speak from.
    fn way_to(&self, remote: &Remote) -> Result<(NextHop, Ipv6Addr), ConnectError> {
        let hop = self.hop_to(remote).ok_or(ConnectError::NoRoute)?;
        let local = self.ip.source_for(&remote.addr, hop.interface);
        Ok((hop, local.ok_or(ConnectError::NoAddress)?))
    }

    /// TCP's calls: listen, accept, send, recv, shutdown and the rest. Poll the node after.
    // What is due already stays known as seen: a call sets deadlines in the future alone, and an
    // application that calls each time it wakes could not let the node sleep otherwise.
    pub fn tcp_mut(&mut self) -> &mut Tcp<'m> {
        &mut self.tcp
    }

    /// The node's TCP, read-only: its connections, listeners and counters.
    pub const fn tcp(&self) -> &Tcp<'m> {
        &self.tcp
    }

    /// The MSS for segments to `remote`, counted without options (RFC 6691), which each segment
    /// subtracts. On a mesh link it fills
    /// [`MeshConfig::mss_frames`](crate::link::MeshConfig::mss_frames); on a cable it fills the
    /// MTU. 0 if there is no route. The port is ignored.
    ///
    /// The payload per frame comes from the MAC. Room is left for the growth of the first fragment
    /// on later hops, so that it never becomes too long for a relay. Bytes that header compression
    /// usually saves count as payload, more of them if segments have `timestamps`. Segments are
    /// shorter if compression saves less than usual, if the connection turns out not to be
    /// compressed, and from a peer that does not know about the compression.
    pub fn mss(&self, remote: impl Into<Remote>, timestamps: bool) -> u16 {
        let [own, _] = self.mss_to(&remote.into(), (timestamps, 0));
        own
    }

    /// The MSS to announce to `remote`: as [`Self::mss`], but smaller if `remote` is outside the
    /// mesh and cannot know how long a compressed header becomes. Receive buffers are measured in
    /// this size.
    pub fn rmss(&self, remote: impl Into<Remote>, timestamps: bool) -> u16 {
        let [_, peers] = self.mss_to(&remote.into(), (timestamps, 0));
        peers
    }

    /// [`Self::mss`] and [`Self::rmss`] of a connection with these settings.
    pub fn mss_with(&self, remote: impl Into<Remote>, config: &tcp::Config) -> [u16; 2] {
        self.mss_to(&remote.into(), (config.timestamps, config.mss_frames))
    }

    fn mss_to(&self, remote: &Remote, settings: (bool, u8)) -> [u16; 2] {
        self.way_to(remote).map_or([0; 2], |(hop, local)| {
            let segments = self.segments(hop, (local, remote.addr), settings);
            self.mss_over(hop, &segments, true)
        })
    }

    /// The segments of a connection between a local and a remote address that leave by `hop`;
    /// whether they have time stamps, and the frames of a full one.
    const fn segments(
        &self,
        hop: NextHop,
        (local, remote): (Ipv6Addr, Ipv6Addr),
        (timestamps, frames): (bool, u8),
    ) -> Segments {
        Segments {
            header: packet_header(local, remote, 0, NO_CLASS, self.ip.hop_limit()),
            to: hop.neighbour,
            timestamps,
            frames,
        }
    }

    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn mss_over(&self, hop: NextHop, segments: &Segments, is_carried: bool) -> [u16; 2] {
        let link = self.link(hop.interface);
        link.map_or([0; 2], |link| link.mss(segments, is_carried))
    }

    /// The offer of the path over `hop` to a connection. `ports`: its local and its remote one,
    /// where the peer chose both.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn offer(
        &self,
        hop: NextHop,
        segments: &Segments,
        ports: Option<(u16, u16)>,
        now: Instant,
    ) -> Offer {
        let link = self.link(hop.interface);
        let is_carried = link.is_some_and(|link| link.is_carried(segments, ports, now));
        let is_carried = is_carried && SHRINKS_HEADERS;
        let [smss, rmss] = self.mss_over(hop, segments, is_carried);
        // A connection of any link may move to another one.
        let flights = self.links.iter().map(Link::flight_max);
        Offer {
            smss,
            rmss,
            flight_max: flights.min().unwrap_or(u16::MAX),
        }
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
        let no_route = Disposition::Drop(ip::PacketDrop::NoRoute);
        let zone = id.zone_between(&header.src, &header.dst);
        let hop = self.next_hop(&header.src, id).ok_or(no_route)?;
        // An answer that cannot leave, or not within its zone, would wait for ever.
        if zone != 0 && hop.interface != id {
            return Err(no_route);
        }
        let flags = segment.get(FLAGS_AT);
        let offer = match flags.is_some_and(|flags| flags & SYN != 0) {
            true => self.offer_to(hop, (header, zone), segment, now),
            false => Offer::UNBOUNDED,
        };
        let incoming = IncomingSegment {
            src: header.src,
            dst: header.dst,
            zone,
            ecn: header.traffic_class.ecn() as u8,
            offer,
            bytes: segment,
        };
        #[cfg(feature = "tcple")]
        if let Some(link) = self.links.get_mut(usize::from(id.0)) {
            self.tcp.note_waited(link.take_waited());
        }
        // TCP counts what it drops, by its own reasons.
        let _ = self.tcp.on_segment(&incoming, now);
        Ok(())
    }

    /// The offer of the path back over `hop` to the connection that `segment` begins.
    fn offer_to(
        &mut self,
        hop: NextHop,
        (header, zone): (&Header, u8),
        segment: &[u8],
        now: Instant,
    ) -> Offer {
        let frames = self
            .tcp
            .mss_frames((&header.dst, &header.src), zone, segment);
        // The options and all ports are needed for header compression only.
        let parsed = SHRINKS_HEADERS.then(|| tcp_header(segment)).flatten();
        let timestamps = parsed.is_some_and(|tcp| tcp.options.timestamps.is_some());
        let ports = parsed.map_or((0, 0), |tcp| (tcp.dst_port, tcp.src_port));
        let segments = self.segments(hop, (header.dst, header.src), (timestamps, frames));
        self.offer(hop, &segments, Some(ports), now)
    }

    /// Handles an ICMPv6 error about a packet of this node; only errors about TCP segments have an
    /// effect. Errors that cannot be true are dropped: an MTU below 1,280 bytes (RFC 8201 §4), and
    /// errors about multicast packets, which this node never sends beyond its own link.
    pub(super) fn on_icmp_error(
        &mut self,
        id: InterfaceId,
        message: &MessageView<'_>,
        now: Instant,
    ) -> Result<(), Disposition> {
        let ignored = Disposition::Drop(ip::PacketDrop::IgnoredIcmp);
        let (error, invoking) = reported(message).ok_or(ignored)?;
        let (header, rest) = Header::parse_start(invoking).map_err(|_| ignored)?;
        let is_sent_here = self.ip.owns(&header.src, id) && !header.dst.is_multicast();
        if !is_sent_here
            || matches!(error, IcmpError::PacketTooBig(mtu) if mtu < IPV6_MTU_MIN as u32)
        {
            return Err(Disposition::Drop(ip::PacketDrop::UntrueError));
        }
        if header.next_header != NEXT_HEADER {
            return Err(ignored);
        }
        self.on_tcp_undelivered(id, &header, rest, Some(error), now);
        Ok(())
    }

    /// A packet of this node with `header` was given up on its own link `id`; `segment`: what
    /// follows the header. For TCP's retransmission timer, though not for the connection's soft
    /// error, that is as if a router said so: RFC 6069 knows ICMP messages only, this is the
    /// stack's own choice. The TCP header is not looked for behind a routing header.
    pub(super) fn on_own_undelivered(
        &mut self,
        id: InterfaceId,
        header: &Header,
        segment: &[u8],
        now: Instant,
    ) {
        if header.next_header == NEXT_HEADER {
            self.on_tcp_undelivered(id, header, segment, None, now);
        }
    }

    fn on_tcp_undelivered(
        &mut self,
        id: InterfaceId,
        header: &Header,
        segment: &[u8],
        error: Option<IcmpError>,
        now: Instant,
    ) {
        let zone = id.zone_between(&header.src, &header.dst);
        self.tcp
            .on_undelivered(&header.src, &header.dst, zone, segment, error, now);
    }
}

/// [`Node::connect`] failed; the buffers come back.
#[derive(Debug)]
pub struct Rejected<'m> {
    /// Why the connection was not opened.
    pub error: ConnectError,
    /// The buffers that were lent for the connection.
    pub buffers: tcp::Buffers<'m>,
}

impl Rejected<'_> {
    /// The meaning of the error, in a few English words.
    pub const fn reason(&self) -> &'static str {
        self.error.reason()
    }
}

speaks!(Rejected<'_>; error);

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

impl ConnectError {
    /// The meaning of the error, in a few English words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoRoute => "no route leads there",
            Self::NoAddress => "no address of this node fits the destination",
            Self::Tcp(_) => "TCP did not open the connection",
        }
    }
}

speaks!(ConnectError, Self::Tcp(error) => error);

/// The error that a message reports about a packet that did not arrive, and the packet.
fn reported<'a>(message: &MessageView<'a>) -> Option<(IcmpError, &'a [u8])> {
    let error = match (message.kind, message.code) {
        (kind::UNREACHABLE, unreachable::PROHIBITED | unreachable::PORT) => IcmpError::Hard,
        // Only "unknown next header" means that the peer has no TCP at all.
        (kind::PARAMETER, 1) => IcmpError::Hard,
        (kind::TOO_BIG, _) => IcmpError::PacketTooBig(u32::from_be_bytes(message.first_word())),
        (kind::UNREACHABLE, unreachable::NO_ROUTE | unreachable::ADDRESS) => IcmpError::Disrupted,
        (kind::UNREACHABLE | kind::PARAMETER | kind::TIME_EXCEEDED, _) => IcmpError::Soft,
        _ => return None,
    };
    Some((error, message.rest))
}

fn tcp_header(segment: &[u8]) -> Option<crate::wire::tcp::Header> {
    let parsed = crate::wire::tcp::Header::parse(segment).ok();
    parsed.map(|(header, _)| header)
}

/// Polls TCP for a segment that leaves by link `id`; writes the whole packet to `out`. `ask`: the
/// limits of the link.
pub(super) fn poll_segment(
    ip: &Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    ask: Ask<'_, '_>,
    now: Instant,
    out: &mut [u8],
) -> Option<Pulled> {
    let budget = match ask {
        Ask::Any => None,
        Ask::Within(budget) => Some(budget),
        #[cfg(any(feature = "cable", feature = "ble"))]
        Ask::Nothing => None,
        #[cfg(feature = "tcple")]
        Ask::Prefetch(to, len_max) => return poll_prefetch(ip, tcp, (id, to), len_max, now, out),
    };
    #[cfg(any(feature = "cable", feature = "ble"))]
    let is_full = matches!(ask, Ask::Nothing);
    let (head, body) = out.split_at_mut_checked(ipv6::HEADER_LEN)?;
    // TCP calls `way` for each segment before it makes the segment: the last call is for the
    // segment that is returned.
    let path = Cell::new(None);
    let way = |ends: &Endpoints| {
        let on_link = InterfaceId::of_zone(ends.zone).unwrap_or(id);
        let hop = ip.next_hop(&ends.remote, on_link);
        let hop = hop.filter(|hop| ends.zone == 0 || hop.interface == on_link);
        path.set(hop.filter(|hop| hop.interface == id));
        match (hop, path.get()) {
            (None, _) => Reachability::Missing,
            (_, None) => Reachability::Shut,
            #[cfg(any(feature = "cable", feature = "ble"))]
            _ if is_full => Reachability::Full,
            (_, Some(hop)) => match budget.is_none_or(|budget| budget.takes(hop.neighbour)) {
                true => Reachability::Open,
                false => Reachability::Shut,
            },
        }
    };
    let payload_max = |ends: &Endpoints, tcp: &PlannedHeader<'_>| {
        let Some((budget, hop)) = budget.filter(|_| SHRINKS_HEADERS).zip(path.get()) else {
            return u16::MAX;
        };
        let header = packet_header(ends.local, ends.remote, 0, NO_CLASS, ip.hop_limit());
        let mut bytes = [0; HEADER_LEN_MAX];
        let budget = budget.filling(tcp.mss_frames());
        let (len, tcp) = (tcp.data_len(), tcp.emit(&mut bytes));
        budget.payload_behind(&header, (tcp, len), hop.neighbour, now)
    };
    let segment = tcp.poll_segment_within(now, way, payload_max, body);
    let segment = segment.as_ref()?;
    let len = segment.len as u16;
    let class = TrafficClass::new(segment.dscp, TrafficClass(segment.ecn).ecn());
    let header = packet_header(segment.src, segment.dst, len, class, ip.hop_limit());
    header.emit(head).ok()?;
    Some(Pulled {
        len: ipv6::HEADER_LEN + segment.len,
        header,
        to: path.get()?.neighbour,
    })
}

/// Polls TCP for a segment to a neighbour that TCP may not send yet; see [`Ask::Prefetch`]. If
/// there are data, but none of them may be prefetched now, the packet has a length of zero.
#[cfg(feature = "tcple")]
fn poll_prefetch(
    ip: &Ip<'_>,
    tcp: &mut Tcp<'_>,
    (id, to): (InterfaceId, ip::Neighbour),
    len_max: u16,
    now: Instant,
    out: &mut [u8],
) -> Option<Pulled> {
    let (head, body) = out.split_at_mut_checked(ipv6::HEADER_LEN)?;
    let is_wanted = |ends: &Endpoints| {
        let hop = ip.next_hop(&ends.remote, InterfaceId::of_zone(ends.zone).unwrap_or(id));
        hop.is_some_and(|hop| hop.interface == id && hop.neighbour == to)
    };
    let unspecified = Ipv6Addr::UNSPECIFIED;
    let (src, dst, len, dscp) = match tcp.poll_prefetch(now, is_wanted, len_max, body) {
        tcp::Prefetch::Segment(segment) => (segment.src, segment.dst, segment.len, segment.dscp),
        tcp::Prefetch::Later => (unspecified, unspecified, 0, 0),
        tcp::Prefetch::Nothing => return None,
    };
    let class = TrafficClass::new(dscp, TrafficClass(0).ecn());
    let header = packet_header(src, dst, len as u16, class, ip.hop_limit());
    if len > 0 {
        header.emit(head).ok()?;
    }
    Some(Pulled {
        len: if len > 0 { ipv6::HEADER_LEN + len } else { 0 },
        header,
        to,
    })
}

const fn packet_header(
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

const NO_CLASS: TrafficClass = TrafficClass(0);
/// Offset of the flags in a TCP header, bytes, and the value of SYN, the flag with which an MSS is
/// announced.
const FLAGS_AT: usize = 13;
const SYN: u8 = 0x02;
