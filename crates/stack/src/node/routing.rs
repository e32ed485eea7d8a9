//! Where RPL meets IP and the links.
//!
//! RPL returns actions: its messages become packets here, its parent becomes the default route, and
//! the routes in DAOs become steps of the root's table. In turn RPL gets control messages,
//! acknowledgements of frames, and packets that contradict its ranks.
//! Left out: RPL itself (`rpl`), and the formats of routing headers on the air (`lowpan`).
//! Sources: RFC 6550 §9 and §11, RFC 6554 §4, RFC 6040 §4.2, RFC 9008.

#[cfg(feature = "root")]
#[path = "root.rs"]
mod root;
#[cfg(not(feature = "root"))]
#[path = "root_absent.rs"]
mod root;

use core::net::Ipv6Addr;

use super::{Classified, Node, mesh_mut};
use crate::ip::{
    self, ALL_RPL_NODES, Contradiction, Disposition, DodagPosition, Iid, Ingress, InterfaceId, Ip,
    Neighbour, NextHop, PacketDrop, Step,
    icmp::{self, ErrorKind},
};
use crate::link::{Class, Hop, Link, Mesh, Routing, Sent};
use crate::rpl::{self, ControlMessage, Destination, FrameReport, MessageOutcome, Rpl, RplRole};
use crate::time::{Deadlines, Instant};
use crate::wire::cursor::Writer;
use crate::wire::ipv6::{HEADER_LEN, Header, TrafficClass, next_header, take_over_ecn};
use crate::wire::rpl as wire;
use crate::wire::source_route::is_foreign;
use root::Root;

/// RPL on one of a node's links.
#[derive(Debug)]
pub(super) struct State<'m> {
    pub(super) rpl: Rpl<'m>,
    pub(super) interface: InterfaceId,
    /// When to look for a leaf that the root is to hear of.
    #[cfg(feature = "leaves")]
    pub(super) leaves_at: Option<Instant>,
    pub(super) root: Root,
}

impl<'m> State<'m> {
    /// Whether this node is the root: never without the feature `root`.
    pub(super) const fn is_root(&self) -> bool {
        self.rpl.is_root()
    }

    pub(super) fn into_rpl(self) -> Rpl<'m> {
        self.rpl
    }

    /// Lets RPL know which neighbour's frame has come over link `id`.
    pub(super) fn note_heard(&mut self, id: InterfaceId, link: &mut Link<'m>, now: Instant) {
        let mesh = link.mesh_mut().filter(|_| id == self.interface);
        if let Some(from) = mesh.and_then(Mesh::take_heard) {
            self.rpl.on_heard(from, now);
        }
    }
}

impl<'m> Node<'m> {
    /// Makes this node part of a DODAG over link `id`: a mote looks for one, a root begins its own.
    ///
    /// `candidates`: memory for neighbours that may become parents; eight are plenty, and a root
    /// needs none. `steps`: a root's memory for the motes below it, one each; a mote needs none.
    /// The role decides whether the node forwards: [`ip::Config::forwards`] has to agree. A router
    /// that takes registrations needs a route for each ([`Ip::new`](ip::Ip::new)).
    pub fn start_rpl(
        &mut self,
        id: InterfaceId,
        role: RplRole,
        candidates: &'m mut [rpl::Candidate],
        steps: &'m mut [Option<Step>],
        now: Instant,
    ) {
        self.polled_at = None;
        let iid = self.ip.iid_on(id);
        let mut rpl = Rpl::new(&rpl::Config { iid, role }, candidates);
        rpl.start(now, &mut self.rng);
        let is_root = rpl.is_root();
        let Self { links, ip, rng, .. } = self;
        ip.rpl_mut().lend(steps);
        if let Some(mesh) = mesh_mut(links, id) {
            mesh.report_frames();
            if !is_root {
                mesh.follow(None, ip, now, rng);
            }
        }
        self.routing = Some(State {
            rpl,
            interface: id,
            #[cfg(feature = "leaves")]
            leaves_at: None,
            root: Root::new(now),
        });
        self.place();
    }

    /// This node's part in RPL, to look at; `None` before [`Self::start_rpl`].
    pub fn rpl(&self) -> Option<&Rpl<'m>> {
        self.routing.as_ref().map(|routing| &routing.rpl)
    }

    /// The node's RPL, for example to request a repair. Poll the node afterwards.
    pub fn rpl_mut(&mut self) -> Option<&mut Rpl<'m>> {
        self.polled_at = None;
        self.routing.as_mut().map(|routing| &mut routing.rpl)
    }

    /// The motes below a root, each with its parent.
    pub fn routes_down(&self) -> impl Iterator<Item = &Step> {
        self.ip.rpl().steps()
    }

    /// When RPL has something to do. Each by itself: one that is due and waits for an event, as a
    /// leaf's turn may, hides no other.
    pub(super) fn add_routing_deadlines(&self, deadlines: &mut Deadlines) {
        let Some(routing) = self.routing.as_ref() else {
            return;
        };
        let rpl = &routing.rpl;
        deadlines.add(rpl.next_deadline());
        deadlines.add(routing.root.deadline());
        #[cfg(feature = "leaves")]
        deadlines.add(routing.leaves_at.filter(|_| rpl.can_advertise_leaf()));
    }

    /// Carries out what RPL wants.
    pub(super) fn poll_routing(&mut self, now: Instant) {
        let contradiction = self.ip.rpl_mut().take_contradiction();
        let Some(routing) = self.routing.as_mut() else {
            return;
        };
        if let Some(Contradiction { from, is_second }) = contradiction {
            routing.rpl.on_contradiction(from, is_second, now);
        }
        self.poll_root(now);
        self.poll_leaves(now);
        let mut has_worked = false;
        while let Some(routing) = self.routing.as_mut()
            && routing.rpl.next_deadline().is_some_and(|at| at <= now)
        {
            has_worked = true;
            let Some(action) = routing.rpl.poll(now, &mut self.rng) else {
                break;
            };
            match action {
                rpl::RplAction::Send { to, message } => self.send_routing(to, message),
                rpl::RplAction::Parent(parent) => self.follow(parent, now),
                rpl::RplAction::Prefix => self.number(),
                #[cfg(feature = "leaves")]
                rpl::RplAction::Leaf(leaf, outcome) => self.on_leaf_told(&leaf, outcome, now),
                #[cfg(feature = "leaves")]
                rpl::RplAction::LeavesLost => self.tell_all_leaves(now),
            }
        }
        // Ranks change without an action, too.
        if has_worked {
            self.place();
        }
    }

    /// From now on the default route leads over `parent`, and contexts are solicited from it.
    fn follow(&mut self, parent: Option<Iid>, now: Instant) {
        let Some(interface) = self.routing.as_ref().map(|routing| routing.interface) else {
            return;
        };
        let Self { links, ip, rng, .. } = self;
        if let Some(mesh) = mesh_mut(links, interface) {
            mesh.follow(parent, ip, now, rng);
        }
        match parent {
            Some(parent) => self.ip.set_default_route(Some(NextHop {
                interface,
                neighbour: Neighbour::One(parent),
            })),
            None => {
                self.ip.clear_default_route(interface);
            }
        }
    }

    /// The address in the DODAG's prefix is this node's from now on.
    fn number(&mut self) {
        let Self {
            links, ip, routing, ..
        } = self;
        let Some(routing) = routing else {
            return;
        };
        let prefix = routing.rpl.dodag().and_then(|dodag| dodag.prefix.as_ref());
        if let Some(mesh) = mesh_mut(links, routing.interface) {
            mesh.learn_prefix(prefix, ip);
        }
    }

    /// Passes this node's place in the DODAG to IP and to the link.
    fn place(&mut self) {
        let Self {
            routing, ip, links, ..
        } = self;
        let Some(routing) = routing.as_ref() else {
            return;
        };
        let (rpl, is_root) = (&routing.rpl, routing.is_root());
        let is_in = is_root || rpl.parent().is_some();
        let dodag = rpl
            .dodag()
            .filter(|dodag| is_in && dodag.mode == wire::mode::NON_STORING);
        let place = dodag.map(|dodag| DodagPosition {
            interface: routing.interface,
            instance: dodag.instance,
            rank: rpl.dag_rank(),
            unit: dodag.configuration.min_hop_rank_increase,
            root: dodag.id,
        });
        ip.rpl_mut().set_place(place, is_root);
        if let Some(mesh) = mesh_mut(links, routing.interface) {
            let routing = dodag.map(|dodag| Routing {
                root: dodag.id,
                is_compressed: dodag.is_compressed(),
                option_type: dodag.option_type(),
            });
            mesh.settle(routing, rpl.hops());
        }
    }

    /// Sends a message of RPL.
    pub(super) fn send_routing(&mut self, to: Destination, message: ControlMessage) {
        let Some(routing) = self.routing.as_ref() else {
            return;
        };
        let interface = routing.interface;
        let dst = match to {
            Destination::All => ALL_RPL_NODES,
            Destination::Neighbour(iid) => ip::link_local(iid),
            Destination::Root => match routing.rpl.dodag() {
                Some(dodag) => dodag.id,
                None => return,
            },
            #[cfg(feature = "root")]
            Destination::Node(addr) => addr,
        };
        let src = match to {
            Destination::All | Destination::Neighbour(_) => self.ip.source_for(&dst, interface),
            _ => routing.rpl.address(),
        };
        let Some((hop, src)) = self.ip.next_hop(&dst, interface).zip(src) else {
            return self.ip.counters.count(PacketDrop::NoRoute);
        };
        let mut packet = [0; HEADER_LEN + MESSAGE_LEN_MAX];
        let Some(len) = self.write_routing(message, (src, dst), &mut packet) else {
            return;
        };
        // A full queue drops it; RPL's timers send the next one.
        let packet = packet.get(..len).unwrap_or_default();
        if let Ok(link) = self.link_towards(hop) {
            let _ = link.queue([packet, &[]], Class::Control);
        }
    }

    /// Writes a message as a packet; returns its length. `None` where it does not fit.
    fn write_routing(
        &self,
        message: ControlMessage,
        (src, dst): (Ipv6Addr, Ipv6Addr),
        out: &mut [u8],
    ) -> Option<usize> {
        let routing = self.routing.as_ref()?;
        let mut w = Writer::new(out.get_mut(HEADER_LEN..)?);
        routing.rpl.emit(message, &mut w).ok()?;
        let hop_limit = match dst.is_unicast_link_local() || dst.is_multicast() {
            true => ip::ndp::HOP_LIMIT,
            false => self.ip.hop_limit(),
        };
        icmp::finish(w.written(), (src, dst), hop_limit, out).ok()
    }

    /// A control message of RPL for this node.
    pub(super) fn on_routing(
        &mut self,
        header: &Header,
        (code, body): (u8, &[u8]),
        ingress: &Ingress,
        now: Instant,
    ) -> Result<(), Disposition> {
        let ignored = Disposition::Drop(PacketDrop::IgnoredIcmp);
        let routing = self.routing.as_mut().ok_or(ignored)?;
        if routing.interface != ingress.interface {
            return Err(ignored);
        }
        routing.rpl.on_signal(ingress.signal_dbm);
        let heard = routing.rpl.on_message(
            header.src,
            header.dst.is_multicast(),
            (code, body),
            now,
            &mut self.rng,
        );
        // RPL counts what it drops, by its own reasons.
        if let Ok(MessageOutcome::Dao(dao)) = heard {
            self.on_dao(&dao, header.src, ingress, now);
        }
        Ok(())
    }

    /// Tells the root that the neighbour `lost` does not acknowledge frames that this node forwards
    /// to it. The packet was forwarded in fragments, so only the addresses of its header are known.
    fn report_lost_step(&mut self, id: InterfaceId, lost: Iid, now: Instant) {
        let Some(root) = self.ip.rpl().place().map(|place| place.root) else {
            return;
        };
        let step = NextHop {
            interface: id,
            neighbour: Neighbour::One(lost),
        };
        if self.ip.owns(&root, id) || self.ip.default_route() == Some(step) {
            return;
        }
        let routing = self.routing.as_ref();
        let prefix = routing.and_then(|routing| routing.rpl.address());
        let header = Header {
            traffic_class: TrafficClass::default(),
            flow_label: 0,
            payload_len: 0,
            next_header: next_header::NONE,
            hop_limit: self.ip.hop_limit(),
            src: root,
            dst: ip::with_iid(&prefix.unwrap_or(root), lost),
        };
        let mut quote = [0; HEADER_LEN];
        if header.emit(&mut quote).is_ok() {
            self.refuse(id, ErrorKind::SourceRoute, &header, &quote, now);
        }
    }

    /// Handles the outcome of a frame to a neighbour.
    pub(super) fn on_frame_sent(&mut self, id: InterfaceId, sent: Sent, now: Instant) {
        if let Some(routing) = self
            .routing
            .as_mut()
            .filter(|routing| routing.interface == id)
        {
            let Sent {
                to,
                attempts,
                unsent,
                acknowledged,
                is_step_lost,
            } = sent;
            let frame = FrameReport {
                attempts,
                unsent,
                acknowledged,
            };
            routing.rpl.on_sent(to, frame, now);
            self.must_poll_again = true;
            if is_step_lost {
                self.report_lost_step(id, to, now);
            }
        }
    }

    /// Takes a packet out of the one that it lies in, from `at` on, and judges it. `None`: it goes
    /// no further, and is counted.
    pub(super) fn open_tunnel<'p>(
        &mut self,
        outer: &Classified,
        packet: &'p mut [u8],
        at: usize,
        mut hop: Hop,
    ) -> Option<(Classified, &'p mut [u8], Hop)> {
        let interface = hop.ingress.interface;
        if !self.ip.rpl().opens(&outer.header, interface) {
            self.ip.counters.count(PacketDrop::Tunnel);
            return None;
        }
        let inner = packet.get_mut(at..)?;
        if !take_over_ecn(outer.header.traffic_class.ecn(), inner) {
            self.ip.counters.count(PacketDrop::Congestion);
            return None;
        }
        hop.ingress.option = None;
        let mut classified = self.classify(inner, &hop)?;
        let is_amiss = is_foreign(inner)
            || match classified.disposition {
                // A packet that came down through a tunnel must not go up again: the root would
                // send it back.
                Disposition::Forward(next) => self.ip.goes_up(&classified.header, next),
                // The root puts source routes only into the outer header, and no other node makes
                // source routes.
                Disposition::Route(_) => true,
                _ => false,
            };
        if is_amiss {
            classified.disposition = Disposition::Drop(PacketDrop::Tunnel);
        }
        Some((classified, inner, hop))
    }
}

/// The offset of the inner packet in a packet for this node; `None`: there is no inner packet.
pub(super) fn inner_at(
    ip: &Ip<'_>,
    header: &Header,
    to: Disposition,
    packet: &[u8],
) -> Option<usize> {
    let may_hold_one = matches!(
        header.next_header,
        next_header::IPV6 | next_header::ROUTING | next_header::HOP_BY_HOP
    );
    if to != Disposition::Local || !may_hold_one {
        return None;
    }
    let len = HEADER_LEN + usize::from(header.payload_len);
    let (protocol, inner) = ip
        .upper_layer((header, false), packet.get(HEADER_LEN..len)?)
        .ok()?;
    (protocol == next_header::IPV6).then(|| len - inner.len())
}

/// A DIO with configuration, prefix and metrics has 84 bytes, a DAO of a local instance 70.
const MESSAGE_LEN_MAX: usize = 96;
