//! IPv6 over Bluetooth LE: packets with compressed headers, each an SDU of the channel to one peer.
//!
//! Place: above [`crate::ble::Host`], which has the channels. Headers are compressed as on a mesh
//! (RFC 6282). Packets are not fragmented here: L2CAP does that. A multicast packet is sent to each
//! peer once. Addresses are registered with the router as on a mesh; the router is the central, and
//! each peripheral is its neighbour.
//!
//! A packet waits in one common queue until its peer is known, then in that peer's queue until the
//! channel has credits. TCP is polled for a segment only when a channel can take it at once.
//!
//! Left out: compression of TCP headers, which a peer need not know; routing by RPL.
//! Source: RFC 7668 §3.

use super::arrival::{Arrival, Hop, Pulled, Refusal, Report, Scratch, TcpEgress};
use super::discovery::{self, Discovery, Received};
use super::{Advertised, Ask, LinkCounters, LinkDrop};
use crate::ble::{
    self, Change, ChannelKind, Config, DeviceAddr, Event, Host, MTU, Peer, SDU_HEADROOM,
};
use crate::ip::{Ingress, InterfaceId, Ip, Neighbour, NextHop, PacketDrop, Registration};
use crate::lowpan::{
    Contexts, HeaderForms, LinkPair, TcpForm, complete_udp_checksum, compress_form, decompress,
};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::storage::whole::Whole;
use crate::time::{Deadlines, Instant};
use crate::wire::cursor::copy;
use crate::wire::icmpv6::MessageView;
use crate::wire::ipv6::{HEADER_LEN, Header};
use crate::wire::lowpan_dispatch::{Dispatch, classify};
use crate::wire::{LinkAddr, tcphc};

#[path = "ble_distribute.rs"]
mod distribute;
#[cfg(feature = "entry")]
#[path = "ble_entry.rs"]
mod entry;
#[cfg(not(feature = "entry"))]
#[path = "ble_entry_absent.rs"]
mod entry;
#[cfg(feature = "tcple")]
#[path = "ble_tcple.rs"]
mod tcple;
#[cfg(not(feature = "tcple"))]
#[path = "ble_tcple_absent.rs"]
mod tcple;

#[cfg(feature = "tcple")]
pub use tcple::TcpleMemory;

/// A link to one device or several.
#[derive(Debug)]
pub struct Ble<'m> {
    id: InterfaceId,
    host: Host<'m>,
    discovery: Discovery<'m>,
    /// Packets of which it is not known yet which peer they are for.
    queue: PacketQueue<'m>,
    /// The peer that is looked at first when packets begin.
    turn: usize,
    /// Since when no channel has been open; `None`: one is.
    alone_since: Option<Instant>,
    counters: LinkCounters,
    /// Where packets from outside wait, flow by flow.
    #[cfg(feature = "entry")]
    flows: Option<&'m mut super::FlowQueues<'m>>,
    tcple: Option<tcple::Layer<'m>>,
}

/// The memory of a [`Ble`], borrowed for good.
#[derive(Debug)]
pub struct BleMemory<'m> {
    /// A place for each connection, 256 at most.
    pub peers: &'m mut [Peer<'m>],
    /// Whole packets before they are at their peer, with six bytes each.
    pub queue: &'m mut [u8],
    /// Neighbours that register their addresses with this node, where it is a router.
    pub registrations: &'m mut [Registration],
}

/// Settings of a [`Ble`] link.
#[derive(Clone, Copy, Debug)]
pub struct BleConfig {
    /// Settings of the Bluetooth host below the link.
    pub host: Config,
    /// Whether to look for a router. A border router is its link's router and does not.
    pub solicits: bool,
    /// Whether addresses are registered on this link (RFC 7668 §3.2.3).
    pub registers: bool,
    /// The information to advertise from the start.
    pub advertised: Option<Advertised>,
}

impl<'m> Ble<'m> {
    /// A link over a controller that has not started yet.
    pub fn new(config: BleConfig, memory: BleMemory<'m>) -> Self {
        let BleMemory {
            peers,
            queue,
            registrations,
        } = memory;
        debug_assert!(peers.len() <= PLACES_MAX, "a place has no number");
        let source = LinkAddr::Device(config.host.address.bytes);
        let settings = discovery::Settings {
            source,
            // With ff:fe in the middle, as the IEEE makes an EUI-64 of 48 bits.
            eui64: source.iid(),
            solicits: config.solicits,
            registers: config.registers,
            router: None,
            advertised: config.advertised,
        };
        Self {
            id: InterfaceId(0),
            host: Host::new(config.host, peers),
            discovery: Discovery::new(settings, registrations),
            queue: PacketQueue::new(queue),
            turn: 0,
            alone_since: None,
            counters: LinkCounters::default(),
            #[cfg(feature = "entry")]
            flows: None,
            tcple: None,
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> BleMemory<'m> {
        BleMemory {
            peers: self.host.into_memory(),
            queue: self.queue.into_memory(),
            registrations: self.discovery.into_memory(),
        }
    }

    /// The Bluetooth host below the link.
    pub const fn host(&self) -> &Host<'m> {
        &self.host
    }

    /// Contexts for header compression; a border router sets them before it starts.
    pub const fn contexts_mut(&mut self) -> &mut Contexts {
        &mut self.discovery.contexts
    }

    /// Whether a channel is open that takes no packet now: the controller or the peer is to make
    /// room first.
    pub fn is_busy(&self) -> bool {
        let mut open = (0..self.host.peers.len()).filter(|at| self.is_open(*at));
        open.any(|at| !self.host.is_ready(at))
    }

    /// Neighbours that have registered their addresses with this node.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.discovery.neighbor_cache().iter()
    }

    fn is_open(&self, at: usize) -> bool {
        self.host.peers.get(at).and_then(Peer::open).is_some()
    }

    /// Counts of SDUs that the link dropped, by reason.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// The link addresses of a hop from a peer to this node.
    fn pair_from(&self, peer: DeviceAddr) -> LinkPair {
        LinkPair {
            src: LinkAddr::Device(peer.bytes),
            dst: LinkAddr::Device(self.host.config().address.bytes),
        }
    }

    /// The link addresses of a hop from this node to a peer.
    fn pair_to(&self, peer: DeviceAddr) -> LinkPair {
        let LinkPair { src, dst } = self.pair_from(peer);
        LinkPair { src: dst, dst: src }
    }

    fn find(&self, neighbour: Neighbour) -> Option<usize> {
        find(&self.host, neighbour)
    }
}

/// Where the channel to a neighbour is.
fn find(host: &Host<'_>, neighbour: Neighbour) -> Option<usize> {
    let Neighbour::One(iid) = neighbour else {
        return None;
    };
    host.find(|addr| LinkAddr::Device(addr.bytes).iid() == iid)
}

impl<'m> Ble<'m> {
    pub(super) fn start(&mut self, id: InterfaceId, ip: &mut Ip<'_>, now: Instant, rng: &mut Rng) {
        self.id = id;
        rng.personalize(self.unique());
        self.discovery.start(id, &mut self.queue, ip, now, rng);
    }

    /// A number that no other node has.
    pub(super) const fn unique(&self) -> u64 {
        let device = LinkAddr::Device(self.host.config().address.bytes);
        u64::from_be_bytes(device.iid())
    }

    pub(super) fn reaches(&self, neighbour: Neighbour) -> bool {
        neighbour == Neighbour::All || self.find(neighbour).is_some()
    }

    pub(super) fn add_deadlines(&self, deadlines: &mut Deadlines) {
        deadlines.add(self.host.next_deadline());
        deadlines.add(self.alone_since.map(|since| since + ble::STALLED_AFTER));
        deadlines.add(self.discovery.next_deadline());
        self.add_entry_deadlines(deadlines);
        deadlines.add(self.tcple_deadline());
    }

    /// Takes what the controller reports.
    pub(super) fn on_event<'s>(
        &mut self,
        event: Event<'_>,
        scratch: &mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        let Some((peer, which, len)) = self.tell(event, now, rng) else {
            return Arrival::Nothing;
        };
        let arrival = match which {
            ChannelKind::Ip => self.on_sdu(peer, len, scratch, now),
            #[cfg(feature = "tcple")]
            ChannelKind::Tcple => self.on_tcple_sdu(peer, len, scratch, now),
        };
        arrival.unwrap_or_else(|reason| {
            self.counters.count(reason);
            Arrival::Nothing
        })
    }

    /// As [`Self::on_event`], of an event that brings no bytes.
    pub(super) fn note(&mut self, event: Event<'_>, now: Instant, rng: &mut Rng) {
        let sdu = self.tell(event, now, rng);
        debug_assert!(sdu.is_none(), "such an event brings an SDU");
    }

    /// Tells the host; returns the peer, the channel and the length of an SDU that is whole.
    fn tell(
        &mut self,
        event: Event<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<(usize, ChannelKind, u16)> {
        self.on_tcple_event(&event, now);
        if let Event::Completed { handle, .. } = event {
            let mut connections = self.host.connections();
            let taker = connections.find(|connection| connection.handle() == handle);
            // A packet that has left the controller was acknowledged by the other device's.
            if let Some(addr) = taker.map(ble::Connection::addr) {
                let iid = LinkAddr::Device(addr.bytes).iid();
                self.discovery.on_acknowledged(iid, now);
            }
        }
        match self.host.on_event(event, now) {
            Change::Nothing => None,
            Change::Up => {
                self.discovery.ask_again(now, rng);
                None
            }
            Change::Sdu { peer, which, len } => Some((peer, which, len)),
        }
    }

    /// A packet that is an SDU.
    fn on_sdu<'s>(
        &mut self,
        peer: usize,
        len: u16,
        scratch: &mut Scratch,
        now: Instant,
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let (start, len) = self.restore(peer, (0, len), scratch)?;
        self.observe(peer, (start, len), now);
        self.lend(peer, (start, len))
    }

    /// The hop from a peer; `None`: it is gone.
    fn hop_from(&self, peer: usize) -> Option<Hop> {
        let addr = self.host.peers.get(peer).and_then(Peer::open)?;
        let from = Neighbour::One(self.pair_from(addr).src.iid());
        Some(Hop {
            ingress: Ingress::whole(self.id, from),
            egress: TcpEgress::Begins(crate::tcphc::Origin::Outside),
            is_routed: false,
        })
    }

    /// Lends the packet that lies where a peer's SDUs are gathered.
    fn lend<'s>(
        &mut self,
        peer: usize,
        (start, len): (usize, u16),
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let hop = self.hop_from(peer).ok_or(LinkDrop::MalformedPacket)?;
        let place = self.host.peers.get_mut(peer);
        let memory = &mut place.ok_or(LinkDrop::MalformedPacket)?.inward;
        let lent = Whole::new(core::mem::take(memory), start, len, peer as u8);
        Ok(Arrival::Gathered(lent, hop))
    }

    /// Restores the headers of an SDU of `len` bytes where it was gathered, in front of what
    /// follows them; `skipped`: bytes at its beginning that are no part of the packet. Returns
    /// where the packet is, and its length.
    fn restore(
        &mut self,
        peer: usize,
        (skipped, len): (usize, u16),
        Scratch(scratch): &mut Scratch,
    ) -> Result<(usize, u16), LinkDrop> {
        let at = self.host.peers.get(peer);
        let addr = at.and_then(Peer::open).ok_or(LinkDrop::MalformedPacket)?;
        let link = self.pair_from(addr);
        let place = self.host.peers.get_mut(peer);
        let memory = &mut place.ok_or(LinkDrop::MalformedPacket)?.inward;
        let (begin, end) = (SDU_HEADROOM + skipped, SDU_HEADROOM + usize::from(len));
        let sdu = memory.get(begin..end).unwrap_or_default();
        match classify(sdu) {
            // L2CAP cuts packets up, and nothing above it (RFC 7668 §3.2).
            Err(_) | Ok(Dispatch::Fragment) => return Err(LinkDrop::Dispatch),
            Ok(_) => {}
        }
        let headers = decompress(sdu, link, &self.discovery.contexts, None, scratch)
            .map_err(|_| LinkDrop::Compression)?;
        if tcphc::IS_SUPPORTED && headers.tcp != TcpForm::Plain {
            return Err(LinkDrop::TcpCompression);
        }
        let behind = begin + headers.compressed_len;
        let start = behind.checked_sub(headers.uncompressed_len);
        let start = start.ok_or(LinkDrop::Compression)?;
        let len = end - start;
        if len > usize::from(MTU) {
            return Err(LinkDrop::MalformedPacket);
        }
        let restored = scratch.get(..headers.uncompressed_len);
        let packet = memory.get_mut(start..end).unwrap_or_default();
        copy(packet, restored.unwrap_or_default());
        if headers.udp_checksum_elided {
            complete_udp_checksum(packet);
        }
        Ok((start, len as u16))
    }

    /// Takes back the memory of a packet.
    pub(super) fn give_back(&mut self, whole: Whole<'m>) {
        let (memory, peer) = whole.into_memory();
        let Some(memory) = self.give_back_held(memory, peer) else {
            return;
        };
        if let Some(peer) = self.host.peers.get_mut(usize::from(peer)) {
            peer.inward = memory;
        }
    }

    pub(super) fn on_discovery(
        &mut self,
        (header, message): (&Header, &MessageView<'_>),
        ingress: &Ingress,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), PacketDrop> {
        let received = Received {
            header,
            message,
            ingress,
            // Both ends of a connection know that the other one is there.
            is_trusted: true,
            serves_sleepers: true,
        };
        let queue = &mut self.queue;
        self.discovery.on_message(received, queue, ip, now, rng)
    }

    /// The queue of whole packets for peers.
    pub(super) const fn waiting(&self) -> &PacketQueue<'m> {
        &self.queue
    }

    /// Queues a packet, in two pieces.
    pub(super) fn queue(&mut self, parts: [&[u8]; 2]) -> Result<(), Refusal> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > usize::from(MTU) {
            return Err(Refusal::TooBig { mtu: MTU.into() });
        }
        let queued = self.queue.push_parts(parts, 0);
        queued.then_some(()).ok_or(Refusal::Full)
    }

    /// The next order to the controller.
    // Not inlined: the node calls it in two places, and one copy spares 490 B.
    #[inline(never)]
    pub(super) fn poll_action(
        &mut self,
        ip: &mut Ip<'_>,
        mut pull: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
        rng: &mut Rng,
        out: &mut [u8],
    ) -> Option<ble::Action> {
        self.poll_tcple(now);
        self.discovery.poll(&mut self.queue, ip, now, rng);
        self.distribute(ip, now);
        self.distribute_flows(ip, now, out);
        match (0..self.host.peers.len()).any(|at| self.is_open(at)) {
            true => self.alone_since = None,
            false => _ = self.alone_since.get_or_insert(now),
        }
        loop {
            if let Some(action) = self.host.poll_action(now, out) {
                return Some(action);
            }
            if !self.begin_packet(ip, &mut pull, now) {
                return None;
            }
        }
    }

    /// Puts the next packet into a channel that takes one: one that waits, else a segment. Returns
    /// whether there was one.
    fn begin_packet(
        &mut self,
        ip: &mut Ip<'_>,
        pull: &mut impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
    ) -> bool {
        let count = self.host.peers.len();
        // As one that takes nothing: a connection that comes back soon finds what waits for it.
        let alone = self.alone_since.map(|since| now.since(since));
        let mut may_leave = alone.is_some_and(|alone| alone >= ble::STALLED_AFTER);
        for step in 0..count {
            let at = (self.turn + step).checked_rem(count).unwrap_or(0);
            // A peer that takes no packets may get more segments: TCP needs its unsuccessful
            // retransmissions to give the connection up.
            may_leave |= self.host.is_stalled(at, now);
            if !self.host.is_ready(at) {
                continue;
            }
            may_leave = true;
            let Some(Peer {
                waiting, outward, ..
            }) = self.host.peers.get_mut(at)
            else {
                continue;
            };
            if !waiting.is_empty() {
                let len = waiting.peek(outward);
                waiting.pop();
                self.turn = at + 1;
                self.begin(at, len, now);
                return true;
            }
        }
        if !may_leave || !self.may_pull(now) {
            return false;
        }
        let Some((place, memory)) = self.host.lend_outward() else {
            // A packet is on its way to each peer; one that has stalled may keep TCP waiting.
            _ = pull(ip, Ask::Nothing, &mut [0; HEADER_LEN]);
            return false;
        };
        let pulled = pull(ip, Ask::Any, memory);
        let to = pulled.as_ref().and_then(|pulled| self.find(pulled.to));
        let ready = to.filter(|at| self.host.is_ready(*at));
        if let (Some(pulled), None) = (&pulled, ready) {
            let packet = memory.get(..pulled.len).unwrap_or_default();
            match to {
                Some(at) => distribute::wait(&mut self.host, at, [packet, &[]], ip, now),
                None => ip.counters.count(PacketDrop::NoRoute),
            }
        }
        self.host
            .give_outward(place, ready.unwrap_or(place), memory);
        match (pulled, ready) {
            (None, _) => return self.begin_prefetched(ip, pull),
            (Some(pulled), Some(at)) => self.begin(at, pulled.len, now),
            (Some(_), None) => {}
        }
        true
    }

    /// Whether TCP may be polled for a segment. Its peer is known only afterwards, so no peer may
    /// have a packet waiting that the segment would have to queue behind, except a peer that has
    /// stopped taking packets.
    fn may_pull(&self, now: Instant) -> bool {
        self.host.peers.iter().enumerate().all(|(at, peer)| {
            let waits = peer.open().is_some() && !peer.waiting.is_empty();
            !waits || self.host.is_ready(at) || self.host.is_stalled(at, now)
        })
    }

    /// Sets the packet of `len` bytes on its way that lies with the peer at `at`.
    fn begin(&mut self, at: usize, len: usize, now: Instant) {
        if let Some(sdu) = self.sdu_for(at, len, now) {
            return self.begin_tcple(at, len, sdu);
        }
        if let Some(from) = self.compress(at, len) {
            self.host
                .begin(at, ChannelKind::Ip, from as u16, len as u16);
        }
    }

    /// Compresses the headers of the packet of `len` bytes that lies with the peer at `at`; returns
    /// where it begins then.
    fn compress(&mut self, at: usize, len: usize) -> Option<usize> {
        let addr = self.host.peers.get(at).and_then(Peer::open)?;
        let link = self.pair_to(addr);
        let peer = self.host.peers.get_mut(at)?;
        let packet = peer.outward.get(..len).unwrap_or_default();
        let mut head = [0; HEAD_LEN_MAX];
        let contexts = &self.discovery.contexts;
        let compressed = compress_form(packet, HeaderForms::default(), link, contexts, &mut head);
        let Ok(compressed) = compressed else {
            self.counters.count(LinkDrop::MalformedPacket);
            return None;
        };
        let head = head.get(..compressed.compressed_len).unwrap_or_default();
        // Compressed headers are never longer than those they stand for.
        let from = compressed.uncompressed_len.saturating_sub(head.len());
        copy(peer.outward.get_mut(from..len).unwrap_or_default(), head);
        Some(from)
    }

    pub(super) fn router(&self) -> Option<NextHop> {
        self.discovery.router()
    }

    pub(super) fn poll_report(&mut self) -> Option<Report<'m>> {
        let is_lost = self.discovery.take_lost_route();
        is_lost.then_some(Report::RouterGone)
    }
}

#[cfg(feature = "tcp-small")]
impl Ble<'_> {
    /// Payload and TCP options in a segment whose packets on the air are full, bytes.
    ///
    /// Room is left for what the header grows by on its way to this link: the hop limit counts
    /// down, and a host may use a flow label.
    pub(super) fn mss(&self, segments: &super::Segments) -> usize {
        let at = self.find(segments.to);
        let peer = at.and_then(|at| self.host.peers.get(at)?.open());
        let header = Header {
            hop_limit: segments.header.hop_limit.saturating_sub(1),
            ..segments.header
        };
        let pair = self.pair_to(peer.unwrap_or(self.host.config().address));
        let contexts = &self.discovery.contexts;
        let head = crate::lowpan::compressed_header_len(&header, pair, contexts) + FLOW_LABEL_LEN;
        let head = head + self.tcple_header_len();
        let sdu = usize::from(self.host.sdu_len_max(at));
        let tcp = crate::wire::tcp::HEADER_LEN;
        let in_packet = usize::from(MTU) - HEADER_LEN;
        sdu.saturating_sub(head).min(in_packet).saturating_sub(tcp)
    }
}

/// Memory of its own that a link lends out with packets: its place is a `u8`.
const PLACES_MAX: usize = 1 << u8::BITS;

/// The longest headers that are compressed: those of IPv6 and of extensions and UDP behind it.
const HEAD_LEN_MAX: usize = 100;

/// Bytes of traffic class and flow label in a compressed header (RFC 6282 §3.1.1).
#[cfg(feature = "tcp-small")]
const FLOW_LABEL_LEN: usize = 4;

#[cfg(test)]
#[path = "tests/ble.rs"]
mod tests;
