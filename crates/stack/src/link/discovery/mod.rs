//! 6LoWPAN neighbour discovery on one link: the effect of advertisements, this node's own
//! advertisements, and the registration of addresses.
//!
//! Place: between [`ip::ndp`], [`ip::registering_node`] and [`ip::neighbor_cache`], which decide,
//! and the link's queue. Shared by the links that compress headers by contexts.
//!
//! Calls for the node above, which the link ([`Mesh`](super::Mesh)) passes on:
//! - `is_registered(iid)`: a neighbour has registered the address with this identifier, which lies
//!   in the mesh's prefix. Packets for it go to it directly, as `Neighbour::One(iid)`.
//! - `poll_registration()`: the registrations that have changed since the last call, one per call:
//!   begun or renewed (`lifetime_min` above zero), or ended. Call it until `None` after each event
//!   and each poll: an unreported end is dropped when its memory is needed. With `is_routed` the
//!   neighbour wants this router to advertise it in RPL (RFC 9010 §9.2); `tid` is then the path
//!   sequence. A sender that acknowledges nothing is never reported.
//! - `follow(router)`: RPL chooses the router. From then on prefix and default route come from RPL;
//!   contexts are solicited from `router` only, by unicast, if none are known or when they expire.
//!   Such a node registers no address: its DAO gives its place.
//! - `learn_prefix(information)`: the prefix of a DIO, from which the address is formed.
//!
//! Left out: neighbour unreachability detection of registered neighbours. A registration holds
//! until it ends (RFC 6775 §5.5 in place of §8.2's probes), and the MAC notices silence. Sources:
//! RFC 4861 §6, RFC 6775 §5.4, §5.5, §6.3, §6.5 and §8.1 (a relay passes on what it learnt), RFC
//! 8505 §5 and §6.

mod advertise;
mod learn;
mod offer;
mod register;

use super::mesh::packet_meta::PacketMeta;
use crate::ip::ndp::{Advertised, Due, Solicitor};
use crate::ip::neighbor_cache::{IS_ROUTER, NeighborCache};
use crate::ip::registering_node::RegisteringNode;
use crate::ip::{
    self, Address, Iid, Ingress, InterfaceId, Ip, Neighbour, NextHop, PacketDrop, Registration,
};
use crate::lowpan::Contexts;
use crate::mac::Class;
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::time::{Allowance, Duration, Instant, earliest};
use crate::wire::LinkAddr;
use crate::wire::cursor::{Full, Writer};
use crate::wire::icmpv6::{MessageView, kind};
use crate::wire::ipv6;
use crate::wire::ndp::{self, BorderRouter, emit_link_addr};
use crate::wire::same;
use advertise::{Answer, OPTIONS_LEN_MAX};
use core::net::Ipv6Addr;
use offer::Offer;

/// The token bucket of answers to solicitations: a burst, for neighbours that all start together,
/// and the milliseconds for each further answer. Joining neighbours do not solicit more often.
const ANSWERS_MAX: u8 = 32;
const ANSWERS_INTERVAL_MS: u16 = 250;

/// Frames in a row that a router may leave unacknowledged, each with all its retries, before
/// another router is sought: about one second of a bulk transfer.
const UNTAKEN_MAX: u8 = 3;

/// The lifetime in advertisements of a router that knows the prefix and waits for the contexts: no
/// node may rely on a part of the configuration for longer than a few requests for the rest take.
const PART_LEASE: Duration = Duration::from_secs(60);

/// Whether this build keeps which border router its prefix and contexts come from, and advertises
/// it: several routers tell of it in a mesh that forms by itself.
const HAS_BORDER: bool = cfg!(feature = "rpl") && IS_ROUTER;

/// Capabilities of a 6LoWPAN node (6CIO, RFC 7400 §3.4), as an option of which only the flags
/// differ.
const CAPABILITIES: u8 = 36;

/// The capability flag of 6CIO for support of EARO (RFC 8505 §4.3).
const KNOWS_EARO: u8 = 0x02;

/// A link's neighbour discovery: the configuration learnt from its router, and its advertisements
/// to other neighbours.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction, and the large
/// ones last. In the compiler's order a router is 90 B larger, a mote with all parts 390 B.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Discovery<'m> {
    pub(super) id: InterfaceId,
    /// Whether to look for a router.
    solicits: bool,
    /// Whether addresses are registered on this link.
    registers: bool,
    /// Frames in a row that the router did not acknowledge.
    untaken: u8,
    /// Whether RPL has brought the prefix, so that no advertisement changes it.
    has_led_prefix: bool,
    /// The default route over the router of this link is gone, and no other default route has been
    /// sought yet.
    has_lost_route: bool,
    /// Whether the router knows EARO.
    is_router_extended: bool,
    /// This node's address on the link.
    source: LinkAddr,
    solicitor: Solicitor,
    neighbors: NeighborCache<'m>,
    registering_node: RegisteringNode,
    pub(super) advertised: Option<Advertised>,
    /// The border router that prefix and contexts come from; at the border router itself, its last
    /// advertised option.
    border: Option<BorderRouter>,
    /// A digest of the prefix and contexts that a border router has advertised last.
    advertised_digest: u32,
    /// Whether compressed TCP headers are restored on the way up.
    offer: Offer,
    /// The answer to a solicitation of all routers.
    answer: Answer,
    /// Limits of answers to solicitations: one for strangers, one for neighbours that have
    /// acknowledged frames. So made-up source addresses cannot use up the answers for real
    /// neighbours.
    answers: [Allowance; 2],
    /// The prefixes that header compression may elide (RFC 6282 §3.1.2).
    pub(super) contexts: Contexts,
    /// This node's EUI-64, the owner in its own registrations.
    eui64: [u8; 8],
}

/// Settings of discovery on one link.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    /// This node's address on the link, and its EUI-64.
    pub(super) source: LinkAddr,
    pub(super) eui64: [u8; 8],
    /// Whether to look for a router.
    pub(super) solicits: bool,
    /// Whether addresses are registered on this link.
    pub(super) registers: bool,
    /// The only router to accept.
    pub(super) router: Option<Iid>,
    /// The information to advertise from the start.
    pub(super) advertised: Option<Advertised>,
}

/// A message of neighbour discovery, and the hop that it came over.
#[derive(Clone, Copy)]
pub(super) struct Received<'a> {
    pub(super) header: &'a ipv6::Header,
    pub(super) message: &'a MessageView<'a>,
    pub(super) ingress: &'a Ingress,
    /// Whether the neighbour that sent it acknowledges frames.
    pub(super) is_trusted: bool,
    /// Whether the radio can say that something waits for a neighbour that sleeps.
    pub(super) serves_sleepers: bool,
}

impl<'m> Discovery<'m> {
    /// `registrations`: memory for neighbours' registrations.
    pub(super) fn new(settings: Settings, registrations: &'m mut [Registration]) -> Self {
        Self {
            id: InterfaceId(0),
            source: settings.source,
            eui64: settings.eui64,
            solicits: settings.solicits,
            registers: settings.registers,
            solicitor: Solicitor::new(settings.router),
            untaken: 0,
            has_led_prefix: false,
            has_lost_route: false,
            answers: [const { Allowance::new(ANSWERS_MAX, ANSWERS_INTERVAL_MS) }; 2],
            answer: Answer::NONE,
            advertised: settings.advertised,
            border: None,
            advertised_digest: 0,
            contexts: Contexts::default(),
            offer: Offer::NONE,
            registering_node: RegisteringNode::new(),
            is_router_extended: false,
            neighbors: NeighborCache::new(registrations),
        }
    }

    /// Neither looks for a router nor registers: something else does in its place.
    #[cfg(feature = "thread")]
    pub(super) const fn be_quiet(&mut self) {
        (self.solicits, self.registers) = (false, false);
        self.advertised = None;
    }

    /// Gives back the memory it was lent.
    pub(super) fn into_memory(self) -> &'m mut [Registration] {
        self.neighbors.into_memory()
    }

    /// The neighbour cache: addresses that neighbours have registered with this node.
    pub(super) const fn neighbor_cache(&self) -> &NeighborCache<'m> {
        &self.neighbors
    }

    /// [`Self::neighbor_cache`], to take the registrations that have changed.
    #[cfg(feature = "leaves")]
    pub(super) const fn neighbor_cache_mut(&mut self) -> &mut NeighborCache<'m> {
        &mut self.neighbors
    }

    /// Forms the link-local address, and the global one where this node hands out the prefix.
    pub(super) fn start(
        &mut self,
        id: InterfaceId,
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) {
        self.id = id;
        let iid = self.source.iid();
        ip.add_address(Address {
            addr: ip::link_local(iid),
            interface: id,
        });
        if let Some(advertised) = self.advertised.filter(|_| IS_ROUTER) {
            ip.add_address(Address {
                addr: ip::with_iid(&advertised.prefix, iid),
                interface: id,
            });
            self.announce(queue, ip, now);
        }
        if self.solicits {
            self.solicitor.start(now, rng);
        }
    }

    /// A new neighbour can be reached: a solicitation that no router has answered is repeated.
    #[cfg(any(feature = "ble", feature = "security"))]
    pub(super) fn ask_again(&mut self, now: Instant, rng: &mut Rng) {
        if self.solicits {
            self.solicitor.ask_again(now, rng);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let own = earliest(
            self.solicitor.next_deadline(),
            self.registering_node.next_deadline(),
        );
        let own = earliest(own, self.offer.next_deadline());
        let first = match IS_ROUTER {
            true => earliest(own, self.answer.at),
            false => own,
        };
        match self.takes_registrations() {
            true => earliest(first, self.neighbors.next_deadline()),
            false => first,
        }
    }

    /// A neighbour has acknowledged a frame.
    pub(super) fn on_acknowledged(&mut self, by: Iid, now: Instant) {
        self.solicitor.on_acknowledged(by);
        if self.solicitor.is_way_up(&by) {
            self.untaken = 0;
            if !self.registering_node.is_in_trouble() {
                self.solicitor.firm();
            }
        }
        if self.takes_registrations() {
            self.neighbors.on_acknowledged(by, now);
        }
    }

    /// A frame to a neighbour was given up. After several in a row to the router another router is
    /// sought: otherwise it might take hours to notice that the router is gone.
    pub(super) fn on_given_up(&mut self, to: Iid, now: Instant) {
        if self.solicitor.is_way_up(&to) {
            self.untaken = self.untaken.saturating_add(1);
            if self.untaken >= UNTAKEN_MAX {
                self.solicitor.loosen(now);
            }
        }
    }

    /// Headers came that no context here explains: the router has one that this node does not know.
    pub(super) fn on_unknown_context(&mut self, now: Instant) {
        self.solicitor.hasten(Duration::ZERO, now);
    }

    /// Whether this node solicits all routers: any router may answer, by multicast.
    #[cfg(feature = "sleepy")]
    pub(super) const fn is_searching(&self) -> bool {
        self.solicitor.is_searching()
    }

    /// The neighbour that the way up leads over: its entry in the tables below is no stranger's.
    pub(super) fn way_up(&self) -> Option<Iid> {
        self.solicitor.way_up()
    }

    /// Acts on a message.
    ///
    /// # Errors
    /// Why it changed nothing.
    pub(super) fn on_message(
        &mut self,
        received: Received<'_>,
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), PacketDrop> {
        let Received {
            header, message, ..
        } = received;
        let owned = self.registration(&received)?;
        let from = self.sender(ip, &received, owned.is_some());
        let from = from.ok_or(PacketDrop::BadNdp)?;
        let is_from_nobody = header.src == Ipv6Addr::UNSPECIFIED;
        match message.kind {
            // Answers go to one node (RFC 6775 §6.3), and not to where they were learnt.
            kind::ROUTER_SOLICITATION if is_from_nobody => Err(PacketDrop::BadNdp),
            // RFC 4861 §6.2.6: hosts discard them.
            kind::ROUTER_SOLICITATION if !IS_ROUTER || (!ip.forwards() && !self.is_border()) => {
                Err(PacketDrop::IgnoredIcmp)
            }
            kind::ROUTER_SOLICITATION => self.on_solicitation(received, queue, ip, now, rng),
            kind::ROUTER_ADVERTISEMENT => {
                if !header.src.is_unicast_link_local() {
                    return Err(PacketDrop::BadNdp);
                }
                let said = (*message, !header.dst.is_multicast());
                self.on_advertisement((header.src, from), said, queue, ip, now, rng)
            }
            kind::NEIGHBOR_SOLICITATION => {
                let target = message.target();
                // Duplicate address detection is sent only to the address's solicited-node group
                // (RFC 4861 §7.1.1).
                if is_from_nobody && header.dst != ip::solicited_node(&target) {
                    return Err(PacketDrop::BadNdp);
                }
                match owned {
                    Some(owned) => {
                        self.on_registration(&received, (from, target), &owned, queue, ip, now)
                    }
                    None if ip.owns(&target, self.id) => {
                        self.may_answer(received.is_trusted, now)?;
                        self.own_up(queue, ip, &header.src, target);
                        Ok(())
                    }
                    None => Err(PacketDrop::IgnoredIcmp),
                }
            }
            kind::NEIGHBOR_ADVERTISEMENT => {
                self.on_answer((header.src, message.options()), ip, now, rng)
            }
            _ => Err(PacketDrop::IgnoredIcmp),
        }
    }

    /// The neighbour that sent a message. `None` where the message did not come from this link, by
    /// its hop limit, or where its source address is not the sender's: identifiers derive from link
    /// addresses (RFC 4861 §6.1 and §7.1, RFC 6775 §5.2). An address that is only being registered
    /// has no route yet.
    fn sender(&self, ip: &Ip<'_>, received: &Received<'_>, registers: bool) -> Option<Iid> {
        let header = received.header;
        let Neighbour::One(from) = received.ingress.from else {
            return None;
        };
        let is_back = |hop: &NextHop| {
            hop.interface == self.id
                && matches!(&hop.neighbour, Neighbour::One(iid) if same(iid, &from))
        };
        let leads_back = || {
            registers
                || ip
                    .next_hop(&header.src, self.id)
                    .as_ref()
                    .is_some_and(is_back)
        };
        let is_its_own = header.src == Ipv6Addr::UNSPECIFIED
            || (ip::has_iid(&header.src, &from) && leads_back());
        (header.hop_limit == ip::ndp::HOP_LIMIT && is_its_own).then_some(from)
    }

    /// Takes one of the answers that a neighbour may have now.
    fn may_answer(&mut self, is_trusted: bool, now: Instant) -> Result<(), PacketDrop> {
        let [strangers, neighbours] = &mut self.answers;
        let allowed = match is_trusted {
            true => neighbours.take(now),
            false => strangers.take(now),
        };
        allowed.then_some(()).ok_or(PacketDrop::TooMany)
    }

    /// Sends the solicitations, answers and registrations that are due, and removes expired
    /// entries.
    pub(super) fn poll(
        &mut self,
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) {
        self.poll_offer(queue, ip, now);
        match self.solicitor.poll(now, rng) {
            None => {}
            Some(Due::Expired) => {
                self.forget_router(ip);
                if ip.forwards() {
                    self.announce(queue, ip, now);
                }
            }
            Some(Due::Solicit(to)) => self.solicit(queue, ip, to),
        }
        self.poll_answer(queue, ip, now);
        self.poll_registrant(queue, ip, now);
        if self.takes_registrations() {
            self.neighbors.expire(now);
        }
    }

    /// Sends a router solicitation to `to`.
    fn solicit(&self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, to: Ipv6Addr) {
        let mut packet = Draft::new();
        let mut w = packet.writer();
        must_fit(w.put(&[kind::ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0]));
        must_fit(emit_link_addr(
            &mut w,
            ndp::kind::SOURCE_LINK_ADDR,
            self.source,
        ));
        if self.registers {
            must_fit(w.put(&capabilities(KNOWS_EARO)));
        }
        let len = w.written();
        self.send(queue, ip, &to, len, &mut packet);
    }

    /// The router has gone: gives up the default route, contexts and registrations it brought.
    fn forget_router(&mut self, ip: &mut Ip<'_>) {
        if !self.solicitor.is_led() {
            self.has_lost_route |= ip.clear_default_route(self.id);
        }
        self.contexts.stop_compressing();
        self.offer.end();
        self.registering_node.stop();
    }

    /// The way to the router of this link, while there is one.
    pub(super) fn router(&self) -> Option<NextHop> {
        let router = self.solicitor.router()?;
        Some(NextHop {
            interface: self.id,
            neighbour: Neighbour::One(ip::iid_of(router)),
        })
    }

    /// Whether the default route went with the router of this link; true once for each time.
    pub(super) fn take_lost_route(&mut self) -> bool {
        core::mem::take(&mut self.has_lost_route)
    }

    /// Queues a message of `len` bytes for a neighbour or for all of them.
    fn send(
        &self,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        to: &Ipv6Addr,
        len: usize,
        packet: &mut Draft,
    ) {
        if let Some(src) = ip.source_for(to, self.id) {
            packet.send(queue, src, to, len);
        }
    }
}

/// A message that is being written, with room for its IPv6 header.
struct Draft([u8; ipv6::HEADER_LEN + 16 + OPTIONS_LEN_MAX]);

impl Draft {
    const fn new() -> Self {
        Self([0; ipv6::HEADER_LEN + 16 + OPTIONS_LEN_MAX])
    }

    /// Writes from the message's type on.
    fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.0.get_mut(ipv6::HEADER_LEN..).unwrap_or_default())
    }

    /// Writes the beginning of a solicitation or advertisement of `target`, up to its options.
    fn about(&mut self, kind: u8, flags: u8, target: &Ipv6Addr) -> Writer<'_> {
        let mut w = self.writer();
        must_fit(w.put(&[kind, 0, 0, 0, flags, 0, 0, 0]));
        must_fit(w.put(&target.octets()));
        w
    }

    /// Queues the message of `len` bytes, from this node's address `src`.
    fn send(&mut self, queue: &mut PacketQueue<'_>, src: Ipv6Addr, to: &Ipv6Addr, len: usize) {
        let finished = ip::icmp::finish(len, (src, *to), ip::ndp::HOP_LIMIT, &mut self.0);
        if let Ok(len) = finished {
            let packet = self.0.get(..len).unwrap_or_default();
            // If the queue is full, the message is dropped; it is repeated later.
            queue.push(packet, PacketMeta::own(Class::Control).to_bits());
        }
    }
}

/// Takes the outcome of writing a part of a message, which fits its [`Draft`] by construction.
fn must_fit(written: Result<(), Full>) {
    debug_assert!(
        written.is_ok(),
        "a draft has room for each part of each message"
    );
}

/// The capability option (6CIO, RFC 7400 §3.4) with these flags.
const fn capabilities(flags: u8) -> [u8; 8] {
    [CAPABILITIES, 1, 0, flags, 0, 0, 0, 0]
}

/// A router that takes registrations and makes their addresses reachable (L, P and E of RFC 8505
/// §4.3).
const ROUTER_CAPABILITIES: u8 = 0x10 | 0x04 | KNOWS_EARO;

/// Flags of a neighbour advertisement (RFC 4861 §4.4).
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a draft has room")]
    fn a_part_that_does_not_fit_is_noticed() {
        let mut draft = Draft::new();
        let mut w = draft.writer();
        must_fit(w.put(&[0; 16 + OPTIONS_LEN_MAX]));
        must_fit(w.put(&capabilities(0)));
    }
}
