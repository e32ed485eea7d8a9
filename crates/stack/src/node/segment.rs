//! TCP where it meets the interfaces.
//!
//! Place: packets come from `receive`, `transmit` asks for a segment when there is room for
//! one. `segment_absent` stands in its place in a node built without the feature `tcp`.

use core::net::Ipv6Addr;

pub(super) use crate::tcp::Tcp;

use super::Node;
use super::budget::Budget;
use super::header_compression::flow;
use super::interface::Interface;
use super::receive::UNKNOWN_PROTOCOL;
use crate::ip::{self, Disposition, InterfaceId, Ip, NextHop};
use crate::limits::IPV6_MTU_MIN;
use crate::offer::Offer;
use crate::random::Rng;
use crate::remote::Remote;
use crate::tcp::{self, Endpoints, IcmpError, Incoming, PlannedHeader};
use crate::tcphc::Tcphc;
use crate::time::Instant;
use crate::wire::icmpv6::{Message, unreachable};
use crate::wire::ipv6::{self, Header, TrafficClass};
use crate::wire::tcp::{HEADER_LEN, HEADER_LEN_MAX, NEXT_HEADER, TIMESTAMPS_LEN};
use crate::wire::tcphc;

impl<'m> Node<'m> {
    /// A node over its interfaces and layers. Addresses of the radios' links are formed
    /// here; what else it is called, its application or a router says.
    pub fn new(
        interfaces: &'m mut [Interface<'m>],
        ip: Ip<'m>,
        mut tcp: Tcp<'m>,
        rng: Rng,
        now: Instant,
    ) -> Self {
        for interface in interfaces.iter() {
            if let Interface::Radio(radio) = interface {
                // Two nodes with one seed must not share TCP's secrets, even where the caller drew
                // them first.
                tcp.personalize(u64::from_be_bytes(radio.mac.config().extended));
            }
        }
        Self::of_layers(interfaces, ip, tcp, rng, now)
    }

    /// Opens a connection to `remote`, an address and a port, speaking from the address that fits it.
    ///
    /// A link-local address may be another node's on each link: [`Remote::zone`] says on which.
    /// Without it, the first interface serves that has a link-local address.
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
                let would_carry =
                    |tcphc: &Tcphc<'_>| tcphc.would_carry(&flow(local, remote.addr), now);
                let is_carried = self.tcphc_of(hop).is_some_and(would_carry);
                let ends = (&local, &remote.addr);
                let offer = self.offer(hop, ends, config.timestamps, is_carried);
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

    /// TCP, to look at.
    pub const fn tcp(&self) -> &Tcp<'m> {
        &self.tcp
    }

    /// The MSS with `remote`, counted as RFC 6691 says: without options, which each segment
    /// subtracts. On a radio, what [`RadioConfig::mss_frames`](super::RadioConfig::mss_frames)
    /// hold; on a wire, what its MTU does. 0 where no route leads there. The port does not count.
    ///
    /// Payload per frame is asked of the MAC, and room is left for what the first fragment
    /// grows by on later hops, so that relays never find it too long. What header compression
    /// usually leaves out counts as payload, more of it where segments have `timestamps`;
    /// segments that it leaves less out of are shorter, and so is what a peer sends that
    /// cannot know, and what belongs to connections that turn out to be plain.
    pub fn mss(&self, remote: impl Into<Remote>, timestamps: bool) -> u16 {
        self.mss_to(&remote.into(), timestamps, Shrinks::Usually)
    }

    /// The MSS to announce to `remote`: [`Self::mss`], but where `remote` is outside the mesh and
    /// cannot know how long a header becomes. What a receive buffer is measured in.
    pub fn rmss(&self, remote: impl Into<Remote>, timestamps: bool) -> u16 {
        self.mss_to(&remote.into(), timestamps, Shrinks::ForPeer)
    }

    fn mss_to(&self, remote: &Remote, timestamps: bool, shrinks: Shrinks) -> u16 {
        self.way_to(remote).map_or(0, |(hop, local)| {
            self.mss_over(hop, (&local, &remote.addr), timestamps, shrinks)
        })
    }

    /// As [`Self::mss`], of a connection between these addresses whose segments leave by `hop`;
    /// `shrinks`: what to count on of the radio's header compression.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn mss_over(
        &self,
        hop: NextHop,
        (local, remote): (&Ipv6Addr, &Ipv6Addr),
        timestamps: bool,
        shrinks: Shrinks,
    ) -> u16 {
        let payload = match self.interfaces.get(usize::from(hop.interface.0)) {
            Some(Interface::Radio(radio)) => {
                let budget = Budget::of(radio);
                let options = if timestamps { TIMESTAMPS_LEN } else { 0 };
                let uncompressed = HEADER_LEN + options;
                let tcphc = budget.tcphc.filter(|_| tcphc::IS_SUPPORTED);
                let compressed = match (tcphc, shrinks) {
                    (None, _) | (_, Shrinks::Never) => uncompressed,
                    // A peer in the mesh cuts what it sends as this node does.
                    (Some(tcphc), Shrinks::ForPeer) if !flow(*local, *remote).within_mesh => {
                        tcphc.header_len_max(timestamps)
                    }
                    (Some(tcphc), _) => tcphc.header_len_usual(timestamps),
                };
                let header = packet_header(*local, *remote, 0, NO_CLASS, self.ip.hop_limit());
                let payload = budget.payload(&header, hop, (compressed, uncompressed));
                // Each segment counts its options out.
                if payload == 0 { 0 } else { payload + options }
            }
            Some(Interface::Wire(wire)) => usize::from(wire.mtu) - HEADERS_LEN,
            None => 0,
        };
        payload.min(usize::from(u16::MAX)) as u16
    }

    /// The header compression of the radio that `hop` leads over.
    fn tcphc_of(&self, hop: NextHop) -> Option<&Tcphc<'m>> {
        match self.interfaces.get(usize::from(hop.interface.0))? {
            Interface::Radio(radio) => Budget::of(radio).tcphc.filter(|_| tcphc::IS_SUPPORTED),
            Interface::Wire(_) => None,
        }
    }

    /// What the path over `hop` offers to a connection. `is_carried`: its headers are compressed.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn offer(
        &self,
        hop: NextHop,
        ends: (&Ipv6Addr, &Ipv6Addr),
        timestamps: bool,
        is_carried: bool,
    ) -> Offer {
        let mss = |shrinks| self.mss_over(hop, ends, timestamps, shrinks);
        let is_carried = is_carried && tcphc::IS_SUPPORTED;
        let smss = mss(match is_carried {
            true => Shrinks::Usually,
            false => Shrinks::Never,
        });
        let rmss = match is_carried {
            true => mss(Shrinks::ForPeer),
            false => smss,
        };
        // A connection of any interface may move to one that compresses.
        let flight_max = match self.interfaces.iter().any(compresses) {
            true => tcphc::FLIGHT_MAX,
            false => u16::MAX,
        };
        Offer {
            smss,
            rmss,
            flight_max,
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
        // An answer that cannot leave, or not within its zone, would wait for ever.
        let zone = id.zone_between(&header.src, &header.dst);
        let hop = self.next_hop(&header.src, id);
        let hop = hop.filter(|hop| zone == 0 || hop.interface == id);
        let hop = hop.ok_or(Disposition::Drop(ip::Drop::NoRoute))?;
        let flags = segment.get(FLAGS_AT);
        let offer = match flags.is_some_and(|flags| flags & SYN != 0) {
            true => self.offer_to(hop, header, segment),
            false => Offer::UNBOUNDED,
        };
        let incoming = Incoming {
            src: header.src,
            dst: header.dst,
            zone,
            ecn: header.traffic_class.ecn() as u8,
            offer,
            bytes: segment,
        };
        // TCP counts what it drops, by its own reasons.
        let _ = self.tcp.on_segment(&incoming, now);
        Ok(())
    }

    /// What the path back over `hop` offers to the connection that `segment` begins.
    fn offer_to(&self, hop: NextHop, header: &Header, segment: &[u8]) -> Offer {
        // Only compression asks which options there are.
        let parsed = tcphc::IS_SUPPORTED.then(|| tcp_header(segment)).flatten();
        let timestamps = parsed.is_some_and(|tcp| tcp.options.timestamps.is_some());
        let is_carried = self.tcphc_of(hop).is_some_and(|tcphc| {
            let flow = flow(header.dst, header.src);
            parsed.is_some_and(|tcp| tcphc.carries(&flow, (tcp.dst_port, tcp.src_port)))
        });
        self.offer(hop, (&header.dst, &header.src), timestamps, is_carried)
    }

    /// An error about a packet this node sent; only TCP's are acted upon. Some cannot be true:
    /// no link has a smaller MTU than IPv6's minimum (RFC 8201 §4), and this node sends to groups
    /// nothing that has to fit another link than its own.
    pub(super) fn on_icmp_error(
        &mut self,
        id: InterfaceId,
        message: &Message<'_>,
        now: Instant,
    ) -> Result<(), Disposition> {
        let ignored = Disposition::Drop(ip::Drop::IgnoredIcmp);
        let (error, invoking) = reported(message).ok_or(ignored)?;
        let (header, rest) = Header::parse_start(invoking).map_err(|_| ignored)?;
        let is_sent_here = self.ip.owns(&header.src, id) && !header.dst.is_multicast();
        if !is_sent_here
            || matches!(error, IcmpError::PacketTooBig(mtu) if mtu < IPV6_MTU_MIN as u32)
        {
            return Err(Disposition::Drop(ip::Drop::UntrueError));
        }
        if header.next_header != NEXT_HEADER {
            return Err(ignored);
        }
        let zone = id.zone_between(&header.src, &header.dst);
        self.tcp
            .on_icmp_error(header.src, header.dst, zone, rest, error, now);
        Ok(())
    }
}

/// Whether this link compresses TCP headers.
const fn compresses(interface: &Interface<'_>) -> bool {
    match interface {
        Interface::Radio(radio) => tcphc::IS_SUPPORTED && radio.tcphc.is_some(),
        Interface::Wire(_) => false,
    }
}

/// What an MSS counts on of header compression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shrinks {
    /// On nothing: the connection is plain.
    Never,
    /// On what headers are sure to shrink by: the peer may be a host that knows nothing of it.
    ForPeer,
    /// On what headers of bulk data shrink by: `poll_segment` cuts the others.
    Usually,
}

/// [`Node::connect`] failed; the buffers come back.
#[derive(Debug)]
pub struct Rejected<'m> {
    /// The reason.
    pub error: ConnectError,
    /// What was lent.
    pub buffers: tcp::Buffers<'m>,
}

impl Rejected<'_> {
    /// The reason in words.
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
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoRoute => "no route leads there",
            Self::NoAddress => "no address of this node fits the destination",
            Self::Tcp(_) => "TCP did not open the connection",
        }
    }
}

speaks!(ConnectError, Self::Tcp(error) => error);

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

fn tcp_header(segment: &[u8]) -> Option<crate::wire::tcp::Header> {
    let parsed = crate::wire::tcp::Header::parse(segment).ok();
    parsed.map(|(header, _)| header)
}

/// Asks TCP for a segment that leaves by interface `id`; writes the whole packet to `out`.
/// `budget`: the interface's, where it is a radio.
pub(super) fn poll_segment(
    ip: &Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    budget: Option<Budget<'_, '_>>,
    now: Instant,
    out: &mut [u8],
) -> Option<usize> {
    let (head, body) = out.split_at_mut_checked(ipv6::HEADER_LEN)?;
    let leaves_here = |ends: &Endpoints| {
        let is_of_zone = ends.zone == 0 || ends.zone == id.zone();
        let hop = ip.next_hop(&ends.remote, id);
        is_of_zone && hop.is_some_and(|hop| hop.interface == id)
    };
    let payload_max = |ends: &Endpoints, tcp: &PlannedHeader<'_>| {
        let Some(budget) = budget.filter(|_| tcphc::IS_SUPPORTED) else {
            return u16::MAX;
        };
        let header = packet_header(ends.local, ends.remote, 0, NO_CLASS, ip.hop_limit());
        let mut bytes = [0; HEADER_LEN_MAX];
        let (len, tcp) = (tcp.data_len(), tcp.emit(&mut bytes));
        let hop = ip.next_hop(&ends.remote, id);
        hop.map_or(u16::MAX, |hop| {
            budget.payload_behind(&header, (tcp, len), hop, now)
        })
    };
    let segment = tcp.poll_segment_within(now, leaves_here, payload_max, body);
    let segment = segment.as_ref()?;
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

const NO_CLASS: TrafficClass = TrafficClass(0);
/// Both headers of a segment, without options.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + HEADER_LEN;
/// Where a TCP header has its flags, and the one that asks for an MSS.
const FLAGS_AT: usize = 13;
const SYN: u8 = 0x02;
