//! A mesh link: IEEE 802.15.4 with 6LoWPAN.
//!
//! Frames come in by [`inward`] and leave by [`outward`]; fragments of other nodes' packets go on
//! by [`forward`] before their packet is whole. [`tcp_headers`] is where compressed paths of TCP
//! headers begin and end, [`budget`] how long a segment may be, [`thinning`] where ACKs wait for
//! newer ones, [`entering`] where packets from outside wait, flow by flow. All seven work on one
//! [`Mesh`].
//! Left out: acknowledgements, retries and channels, which are the MAC's.

#[cfg_attr(
    not(feature = "tcp-small"),
    expect(dead_code, reason = "only TCP asks how long a segment may be")
)]
mod budget;
mod config;
#[cfg(feature = "sleepy")]
mod copies;
mod deferred;
#[cfg(feature = "entry")]
mod entering;
#[cfg(not(feature = "entry"))]
#[path = "entering_absent.rs"]
mod entering;
#[cfg(feature = "entry")]
mod flow_queues;
mod forward;
#[cfg(any(feature = "join", feature = "thread"))]
mod in_clear;
#[cfg(feature = "sleepy")]
mod indirect;
#[cfg(not(feature = "sleepy"))]
#[path = "indirect_absent.rs"]
mod indirect;
mod inward;
#[cfg(feature = "join")]
mod joining;
#[cfg(feature = "sleepy")]
mod kept_form;
mod last_hop;
mod memory;
mod neighbours;
#[cfg(feature = "leaves")]
mod neighbours_leaves;
#[cfg(feature = "rpl")]
mod neighbours_rpl;
#[cfg(feature = "tcp-small")]
mod offer;
mod outward;
mod pace;
#[cfg(feature = "pace")]
mod pace_search;
#[cfg(not(feature = "pace"))]
#[path = "pace_search_absent.rs"]
mod pace_search;
pub(super) mod packet_meta;
#[cfg(feature = "sleepy")]
mod parent;
#[cfg(all(feature = "entry", feature = "pace"))]
mod rests;
#[cfg(not(all(feature = "entry", feature = "pace")))]
#[path = "rests_absent.rs"]
mod rests;
#[cfg(feature = "rpl")]
mod routing;
#[cfg(not(feature = "rpl"))]
#[path = "routing_absent.rs"]
mod routing;
#[cfg(feature = "sleepy")]
mod share;
#[cfg(feature = "sleepy")]
mod sleep;
#[cfg(all(feature = "rpl", feature = "root"))]
mod source_route;
mod tcp_headers;
#[cfg(feature = "entry")]
mod thinning;
#[cfg(not(feature = "entry"))]
#[path = "thinning_absent.rs"]
mod thinning;
#[cfg(feature = "thread")]
mod thread;

pub(crate) use budget::Budget;
pub use config::{Forwarding, MeshConfig, Pacing, Relaying};
#[cfg(feature = "entry")]
pub use flow_queues::{FlowCounters, FlowEntry, FlowQueues};
#[cfg(feature = "sleepy")]
pub use indirect::Indirect;
pub use memory::{MeshMemory, MeshStorage};
use packet_meta::PacketMeta;
#[cfg(feature = "sleepy")]
pub use parent::{Child, IndirectConfig, IndirectCounters};
#[cfg(feature = "entry")]
pub use thinning::Thinning;

use super::arrival::Report;
use super::counters::{LinkCounters, LinkDrop};
use super::discovery::{Discovery, Received, Settings};
#[cfg(test)]
use crate::ip::ndp::Advertised;
use crate::ip::{self, Ingress, InterfaceId, Ip, Neighbour, NextHop};
use crate::lowpan::Contexts;
use crate::lowpan::datagram::Datagrams;
use crate::lowpan::fragment::Fragmenter;
#[cfg(feature = "security")]
use crate::mac::security::{Reservation, Security};
use crate::mac::{self, Class, Mac, RadioCapabilities, Unfit};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::storage::whole::Whole;
use crate::tcphc::Tcphc;
use crate::time::{Deadlines, Instant};
use crate::wire::LinkAddr;
use crate::wire::icmpv6::{MessageView, kind};
use crate::wire::ipv6::Header;
use config::MeshSettings;
use deferred::DeferredFrame;

/// The link over an IEEE 802.15.4 radio: MAC, 6LoWPAN, TCP header compression, neighbour discovery.
///
/// The fields of every frame come first, where a Cortex-M0+ reaches them with one instruction, and
/// large ones behind them. In the compiler's order a router is 200 B larger.
#[derive(Debug)]
#[repr(C)]
pub struct Mesh<'m> {
    outgoing: Fragmenter<'m>,
    /// The packets that wait for [`Self::outgoing`], whole and uncompressed.
    queue: PacketQueue<'m>,
    /// Since when the packet in `outgoing` has been here, as its frames count it.
    outgoing_since: Instant,
    /// What its TCP header began with before it was compressed: ports and sequence number.
    outgoing_head: [u8; 8],
    settings: MeshSettings,
    mac: Mac<'m>,
    datagrams: Datagrams<'m>,
    /// TCP header compression, where the network has it.
    tcphc: Option<&'m mut Tcphc<'m>>,
    /// Packets for nodes that sleep, where this one is their parent.
    #[cfg(feature = "sleepy")]
    indirect: Option<&'m mut Indirect<'m>>,
    /// The RPL option in force, and events for RPL.
    routing: routing::State,
    discovery: Discovery<'m>,
    /// The pace that a source has found for itself.
    pace_search: pace_search::PaceSearch,
    /// The border router's rests.
    rests: rests::Rests,
    last_hops: last_hop::LastHops,
    /// The frame whose packet is dealt with when its ACK has left.
    deferred: Option<DeferredFrame>,
    /// The frame in clear of a node that has no key yet, or for this one, which has none.
    #[cfg(feature = "join")]
    heard_in_clear: Option<joining::WaitingFrame>,
    /// The child of a Thread network that this node is, in place of neighbour discovery.
    #[cfg(feature = "thread")]
    thread: Option<&'m mut crate::thread::Child>,
    /// Where ACKs that enter the mesh wait for newer ones.
    #[cfg(feature = "entry")]
    thinning: Option<&'m mut Thinning>,
    /// Where packets that enter the mesh wait, flow by flow.
    #[cfg(feature = "entry")]
    flows: Option<&'m mut FlowQueues<'m>>,
    counters: LinkCounters,
    /// The tag of a packet that was given up on its link, until its source has got an error.
    undelivered: Option<u16>,
    /// The class of the packet in `outgoing`: data or control.
    outgoing_class: Class,
}

impl<'m> Mesh<'m> {
    /// A link over a radio and borrowed memory. `mac`: settings of its MAC; `radio`: what the
    /// radio can do. Where the pace is measured, link retries double.
    ///
    /// # Errors
    /// As [`MeshConfig::check`].
    // Inlined, so that a radio that is known when the node is built costs no check.
    #[inline(always)]
    pub fn new(
        config: MeshConfig,
        (mac, radio): (mac::Config, RadioCapabilities),
        memory: MeshMemory<'m>,
        rng: &mut Rng,
    ) -> Result<Self, Unfit> {
        config.check(&mac, &radio)?;
        Ok(Self::of(config, (mac, radio), memory, rng))
    }

    /// As [`Self::new`], of settings that are known to fit.
    pub(crate) fn of(
        config: MeshConfig,
        (mut mac, radio): (mac::Config, RadioCapabilities),
        memory: MeshMemory<'m>,
        rng: &mut Rng,
    ) -> Self {
        mac.retry_doubles |= config.pacing.is_measured();
        let (source, eui64) = (mac.source(), mac.extended);
        let mac = Mac::of(mac, radio, memory.frames, memory.neighbors, rng);
        let (records, bodies) = (memory.records, memory.bodies);
        let body_len = memory.body_len;
        // 802.15.4 keeps the order of one neighbour's frames.
        let any_order = false;
        Self {
            discovery: {
                let settings = Settings {
                    source,
                    eui64,
                    solicits: config.solicits,
                    registers: config.registers,
                    router: config.parent.map(LinkAddr::iid),
                    advertised: config.advertised,
                };
                Discovery::new(settings, memory.registrations)
            },
            settings: MeshSettings::of(&config),
            pace_search: pace_search::PaceSearch::NEW,
            rests: rests::Rests::NEW,
            last_hops: last_hop::LastHops::default(),
            mac,
            tcphc: None,
            outgoing: Fragmenter::new(memory.outgoing),
            outgoing_class: Class::Control,
            outgoing_since: Instant::ORIGIN,
            outgoing_head: [0; 8],
            undelivered: None,
            datagrams: Datagrams::new(records, bodies, body_len, any_order, &mut rng.derive()),
            queue: PacketQueue::new(memory.queue),
            routing: routing::State::default(),
            #[cfg(feature = "sleepy")]
            indirect: None,
            deferred: None,
            #[cfg(feature = "join")]
            heard_in_clear: None,
            #[cfg(feature = "thread")]
            thread: None,
            #[cfg(feature = "entry")]
            thinning: None,
            #[cfg(feature = "entry")]
            flows: None,
            counters: LinkCounters::default(),
        }
    }

    /// Gives back the memory it was lent, TCP header compression included.
    pub fn into_memory(self) -> (MeshMemory<'m>, Option<&'m mut Tcphc<'m>>) {
        let (frames, neighbors) = self.mac.into_memory();
        let body_len = self.datagrams.body_len();
        let (records, bodies) = self.datagrams.into_memory();
        let memory = MeshMemory {
            frames,
            neighbors,
            records,
            bodies,
            body_len,
            outgoing: self.outgoing.into_memory(),
            queue: self.queue.into_memory(),
            registrations: self.discovery.into_memory(),
        };
        (memory, self.tcphc)
    }

    /// Begins the tags of this node's packets anew, at a random one.
    pub fn renew_tags(&mut self, rng: &mut Rng) {
        self.datagrams.renew_tags(rng);
    }

    /// Contexts for header compression; a border router sets them before it starts.
    pub fn contexts_mut(&mut self) -> &mut Contexts {
        &mut self.discovery.contexts
    }

    /// Contexts as discovery keeps them.
    pub const fn contexts(&self) -> &Contexts {
        &self.discovery.contexts
    }

    /// Turns TCP header compression on, before the link is given to a node, whose TCP then
    /// keeps its windows short; a build without the feature `tcphc` leaves it off.
    ///
    /// Where compression is agreed ([`Config::learned`](crate::tcphc::Config::learned)), a border
    /// router offers it from then on in its advertisements.
    pub fn set_tcphc(&mut self, tcphc: &'m mut Tcphc<'m>) {
        if tcphc.is_offering() {
            self.discovery.offer_own();
        }
        self.tcphc = Some(tcphc);
        self.pass_offer();
    }

    /// Where no advertisement comes, as in a mesh whose routes are set by hand: the border router
    /// with this link address restores compressed TCP headers, and all relays up to it pass them.
    pub fn set_tcphc_offer(&mut self, router: LinkAddr) {
        self.discovery.set_offer(router);
        self.pass_offer();
    }

    /// Lets the compressor know what this node's router offers.
    fn pass_offer(&mut self) {
        if let Some(tcphc) = self.tcphc.as_deref_mut() {
            tcphc.set_offer(self.discovery.offer());
        }
    }

    /// TCP header compression, where it is on.
    pub fn tcphc(&self) -> Option<&Tcphc<'m>> {
        self.tcphc.as_deref()
    }

    /// The MAC below the link.
    pub const fn mac(&self) -> &Mac<'m> {
        &self.mac
    }
}

#[cfg(feature = "security")]
impl<'m> Mesh<'m> {
    /// Seals frames from now on, and believes no others; before the link is given to a node. Its
    /// MAC's [`short_source`](crate::mac::Config::short_source) must be off: nonces are made of
    /// extended addresses.
    ///
    /// The node sends nothing before its host has stored a bound of its frame counters:
    /// [`Node::poll_reservation`](crate::node::Node::poll_reservation).
    pub fn set_security(&mut self, security: &'m mut Security<'m>) {
        self.mac.set_security(security);
    }

    /// Gives back what [`Self::set_security`] was lent.
    pub fn take_security(&mut self) -> Option<&'m mut Security<'m>> {
        self.mac.take_security()
    }

    /// Takes the key of this sequence, if it is later than the one in force; the node's frames then
    /// bring the others to it. For a border router whose host has rotated the key.
    pub fn rotate_key(&mut self, sequence: u32, now: Instant) {
        if let Some(security) = self.mac.security_mut() {
            security.rotate(sequence, now);
        }
    }

    /// The reservation of frame counters that the host shall store.
    pub(crate) fn poll_reservation(&mut self, now: Instant) -> Option<Reservation> {
        self.mac.poll_reservation(now)
    }

    /// The host has stored the frame counters of `what`, or could not.
    pub(crate) fn on_reserved(&mut self, what: Reservation, is_stored: bool, now: Instant) {
        self.mac.on_reserved(what, is_stored, now);
    }
}

impl<'m> Mesh<'m> {
    /// Whether a whole packet waits for the air behind the one being fragmented.
    pub fn has_packet_waiting(&self) -> bool {
        !self.queue.is_empty() || self.has_entering()
    }

    /// Fragmented packets under way, and counters of the others.
    pub const fn datagrams(&self) -> &Datagrams<'m> {
        &self.datagrams
    }

    /// Counters of the packets that the link passed on and dropped.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

impl<'m> Mesh<'m> {
    /// The queue of whole packets for the mesh.
    pub(in crate::link) const fn waiting(&self) -> &PacketQueue<'m> {
        &self.queue
    }

    pub(super) fn start(&mut self, id: InterfaceId, ip: &mut Ip<'_>, now: Instant, rng: &mut Rng) {
        rng.personalize(u64::from_be_bytes(self.mac.config().extended));
        self.discovery.start(id, &mut self.queue, ip, now, rng);
        // One that sleeps asks a parent that is known from the start.
        #[cfg(feature = "sleepy")]
        if self.takes_hints() {
            self.keep_way_up();
        }
    }

    /// Whether such a neighbour can exist on a mesh.
    pub(super) fn reaches(&self, neighbour: Neighbour) -> bool {
        link_addr(neighbour).is_some()
    }

    /// A number that no other node has: the EUI-64.
    #[cfg(feature = "tcp-small")]
    pub(super) const fn unique(&self) -> u64 {
        u64::from_be_bytes(self.mac.config().extended)
    }

    pub(super) fn add_deadlines(&self, deadlines: &mut Deadlines) {
        if self.has_arrival() {
            return deadlines.add(Some(Instant::ORIGIN));
        }
        deadlines.add(self.mac.next_deadline());
        deadlines.add(self.datagrams.next_deadline());
        deadlines.add(self.discovery.next_deadline());
        deadlines.add(self.indirect_deadline());
        self.add_thinning_deadlines(deadlines);
        self.add_entering_deadlines(deadlines);
        #[cfg(feature = "thread")]
        deadlines.add(self.thread_deadline());
    }

    pub(crate) fn poll_acknowledgment(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<mac::Action> {
        self.mac.poll_acknowledgment(now, out)
    }

    // Out of line: inside its one caller, the two fight for registers; that costs a router with RPL
    // 300 B.
    #[inline(never)]
    pub(super) fn on_discovery(
        &mut self,
        (header, message): (&Header, &MessageView<'_>),
        ingress: &Ingress,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), ip::PacketDrop> {
        #[cfg(feature = "thread")]
        if self.thread.is_some() {
            return Err(ip::PacketDrop::IgnoredIcmp);
        }
        let is_trusted = match ingress.from {
            Neighbour::One(iid) => self.mac.is_trusted(LinkAddr::from_iid(iid)),
            Neighbour::Only | Neighbour::All => false,
        };
        let received = Received {
            header,
            message,
            ingress,
            is_trusted,
            serves_sleepers: self.mac.radio().says_pending(),
        };
        if let (kind::ROUTER_SOLICITATION, Neighbour::One(iid)) = (message.kind, ingress.from)
            && header.dst.is_multicast()
        {
            self.end_sleep(LinkAddr::from_iid(iid));
        }
        let queue = &mut self.queue;
        let outcome = self.discovery.on_message(received, queue, ip, now, rng);
        self.keep_way_up();
        outcome
    }

    /// Strangers do not push the way up out of the table of neighbours.
    fn keep_way_up(&mut self) {
        let way_up = self.discovery.way_up();
        self.mac.keep(way_up.map(LinkAddr::from_iid));
        let neighbor_cache = self.discovery.neighbor_cache();
        self.mac
            .keep_children(|addr| neighbor_cache.holds(addr.iid()));
    }

    pub(super) fn give_back(&mut self, whole: Whole<'m>) {
        self.datagrams.give_back(whole);
    }

    /// Takes back what a report lent.
    pub(crate) fn end_report(&mut self, report: Report<'m>) {
        match report {
            Report::Undelivered(packet) => self.outgoing.give_back(packet.buffer),
            #[cfg(feature = "rpl")]
            Report::Sent(_) => {}
            Report::RouterGone => {}
        }
    }

    /// The way to the router of this link, while there is one.
    pub(super) fn router(&self) -> Option<NextHop> {
        self.discovery.router()
    }

    /// Begins to report the outcomes of frames ([`Report::Sent`]), for RPL.
    #[cfg(feature = "rpl")]
    pub(crate) fn report_frames(&mut self) {
        self.routing.reports = true;
    }

    /// Takes over how packets of this node's DODAG look, and how many hops the root is away;
    /// `None`: it is in none.
    #[cfg(feature = "rpl")]
    pub(crate) fn settle(&mut self, routing: Option<crate::lowpan::Routing>, hops: u8) {
        self.routing.settle(routing.as_ref(), hops);
        self.discovery.contexts.set_routing(routing);
        self.settings.pacing.hops_up = hops;
    }

    /// Counts a frame that led to nothing.
    fn count(&mut self, reason: LinkDrop) {
        self.counters.count(reason);
    }
}

/// Changes that tests of the node make inside.
#[cfg(test)]
impl<'m> Mesh<'m> {
    pub(crate) fn settings_mut(&mut self) -> &mut MeshSettings {
        &mut self.settings
    }

    pub(crate) fn mac_mut(&mut self) -> &mut Mac<'m> {
        &mut self.mac
    }

    pub(crate) fn datagrams_mut(&mut self) -> &mut Datagrams<'m> {
        &mut self.datagrams
    }

    pub(crate) fn advertised_mut(&mut self) -> &mut Option<Advertised> {
        &mut self.discovery.advertised
    }

    pub(crate) fn announce(&mut self, ip: &Ip<'_>, now: Instant) {
        self.discovery.announce(&mut self.queue, ip, now);
    }

    pub(crate) fn asks_at(&self) -> Option<Instant> {
        self.discovery.next_deadline()
    }
}

/// The link address of a neighbour. `None`: [`Neighbour::Only`] means nothing on a mesh, and the
/// address that all nodes share belongs to no single node.
pub(super) fn link_addr(neighbour: Neighbour) -> Option<LinkAddr> {
    match neighbour {
        Neighbour::Only => None,
        Neighbour::All => Some(LinkAddr::BROADCAST),
        Neighbour::One(iid) => Some(LinkAddr::from_iid(iid)).filter(|addr| !addr.is_broadcast()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_neighbour_has_the_address_of_all() {
        let all = Neighbour::One(LinkAddr::BROADCAST.iid());
        assert_eq!(link_addr(all), None);
        assert_eq!(link_addr(Neighbour::Only), None);
        assert_eq!(link_addr(Neighbour::All), Some(LinkAddr::BROADCAST));
        for addr in [LinkAddr::Short(7), LinkAddr::Extended([2; 8])] {
            assert_eq!(link_addr(Neighbour::One(addr.iid())), Some(addr));
        }
    }
}
