//! Attackers of a world: when they send, and the fates of their frames.
//!
//! Place: the calendar says when one's time has come; [`super::super::attack`] makes its frame.
//! Left out: an attacker that moves with links that change.

use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;

use super::World;
use crate::air::Event;
use crate::air::gains::Gain;
use crate::air::medium::{Frame, Placement};
use crate::net::attack::{AttackOptions, COUNTER_FROM, Forger, Overheard, PER_S_MAX, Target};
use crate::net::network::mac_of;
use crate::net::plan;
use crate::streams::{Purpose, stream};

/// An attacker in its place.
#[derive(Debug)]
pub(super) struct Attacker {
    /// The attacker's place on the air, behind those of all nodes.
    place: usize,
    near: usize,
    target: Target,
    /// The mean time between two frames.
    interval: Duration,
    /// When the frame was due that it sends next.
    due: Instant,
    forger: Forger,
    /// Frames that it has sent.
    sent: u64,
    rng: motet::random::Rng,
}

impl World<'_> {
    /// Puts an attacker on the air, heard by these listeners, in ascending order, wherever the node
    /// is tuned that it is near.
    pub(crate) fn add_attacker(
        &mut self,
        options: &AttackOptions,
        target: Target,
        (placement, listeners): (&Placement, &[Gain]),
        seed: u64,
    ) {
        let attacker = self.attackers.len();
        // Lossless: nobody has four thousand million attackers.
        let mut rng = stream(seed, attacker as u32, Purpose::Attack);
        let interval = Duration::from_micros((1e6 / options.per_s.clamp(1e-6, PER_S_MAX)) as u64);
        let due = self.now() + rng.uniform(interval);
        let place = self.air.medium.add_transmitter(placement, listeners);
        self.air.calendar.schedule(due, Event::Attack { attacker });
        self.attackers.push(Attacker {
            place,
            near: options.near,
            target,
            interval,
            due,
            forger: Forger::new(options, rng.derive()),
            sent: 0,
            rng,
        });
    }

    /// An attacker's time has come: it listens before it talks, as it wants to be heard, but not
    /// for long.
    pub(super) fn attack(&mut self, attacker: usize, now: Instant) {
        let is_quiet = |near: usize| !self.air.medium.is_receiving(near) && self.may_reboot(near);
        let waiting = self.attackers.get(attacker);
        let Some(waiting) = waiting.filter(|_| !self.attacks_ended) else {
            return;
        };
        if now.since(waiting.due) < PATIENCE && !is_quiet(waiting.near) {
            let again = now + LISTENS_EVERY;
            let event = Event::Attack { attacker };
            return self.air.calendar.schedule(again, event);
        }
        let security = mac_of(&self.motes[waiting.near].node).and_then(|mac| mac.security());
        let seal = security.map(|security| (security.level(), security.sequence()));
        let channel = self.air.medium.channel(waiting.near);
        let routing = self.overheard(waiting.near, waiting.target.addr);
        let attacking = &mut self.attackers[attacker];
        // What it overheard before its neighbour was switched off still holds.
        attacking.target.seal = seal.or(attacking.target.seal);
        let before = attacking.target.routing.take();
        attacking.target.routing = routing.or(before);
        let psdu = attacking.forger.next(&attacking.target);
        // Half to one and a half times as long, so that it keeps no step with anybody.
        let Attacker { interval, rng, .. } = attacking;
        let pause = Duration::from_micros(interval.as_micros() / 2) + rng.uniform(*interval);
        attacking.due += pause;
        attacking.sent += u64::from(!psdu.is_empty());
        let (place, due) = (attacking.place, attacking.due.max(now));
        if self.air.medium.channel(place) != channel {
            self.air.medium.set_channel(place, channel, now);
        }
        if !psdu.is_empty() {
            // Only the nonces of nodes must be unique, not those of attackers.
            let nonces = self.air.nonces.take();
            self.air.transmit(place, Frame::new(&psdu), None, now);
            self.air.nonces = nonces;
        }
        let at = due.max(now + LISTENS_EVERY);
        self.air.calendar.schedule(at, Event::Attack { attacker });
    }

    /// The place in routing of the node that is `addr` on its link, from overheard messages.
    fn overheard(&self, near: usize, addr: LinkAddr) -> Option<Overheard> {
        let rpl = self.motes.get(near)?.node.rpl()?;
        let dodag = *rpl.dodag()?;
        let roots = self.motes.iter().flat_map(|mote| mote.node.routes_down());
        let steps: Vec<_> = roots.copied().collect();
        let rank_of = |iid: [u8; 8]| {
            let known = rpl.candidates().find(|candidate| candidate.iid() == iid);
            known.map(motet::rpl::Candidate::rank)
        };
        let unit = dodag.configuration.min_hop_rank_increase;
        let [above, below] = [
            rpl.rank().saturating_sub(unit),
            rpl.rank().saturating_add(unit),
        ];
        let parent = rpl.parent();
        let children = steps.iter().filter(|step| step.parent == addr.iid());
        let children: Vec<_> = children.map(|step| step.child).collect();
        let others = rpl.candidates().map(motet::rpl::Candidate::iid);
        let others = others.filter(|iid| Some(*iid) != parent && !children.contains(iid));
        let above = parent.map(|iid| (iid, rank_of(iid).unwrap_or(above)));
        let rest = children.iter().copied().chain(others);
        let rest = rest.map(|iid| (iid, rank_of(iid).unwrap_or(below)));
        let named = above.into_iter().chain(rest).filter_map(|(iid, rank)| {
            // Lossless: nodes are numbered with 16 bits.
            let node = plan::node_of_iid(iid)?;
            Some((plan::link_addr(node as u16), rank))
        });
        Some(Overheard {
            dodag,
            rank: rpl.rank(),
            neighbours: named.collect(),
            steps,
        })
    }

    /// Frames that attackers have sent.
    pub(crate) fn attack_frames(&self) -> u64 {
        self.attackers.iter().map(|attacker| attacker.sent).sum()
    }

    /// No attacker sends anything any more.
    pub(crate) fn end_attacks(&mut self) {
        self.attacks_ended = true;
    }

    /// A frame for the node at `to` has left the air: the attackers beside that node overhear it.
    pub(super) fn overhear(&mut self, to: usize, frame: &Frame) {
        let near = self.attackers.iter_mut();
        for attacker in near.filter(|attacker| attacker.near == to) {
            attacker.forger.hear(frame.psdu());
        }
    }

    /// Forged frames that nodes have accepted, by their counters and tables: data frames that were
    /// accepted without decryption, and neighbours with a frame counter that only an attacker uses.
    pub fn forgeries_believed(&self) -> u64 {
        let macs = self.motes.iter().filter_map(|mote| mac_of(&mote.node));
        let secured = macs.filter_map(|mac| Some((mac, mac.security()?)));
        let believed = secured.map(|(mac, security)| {
            let unopened = mac
                .counters()
                .received
                .saturating_sub(security.counters().opened);
            let forged = security
                .neighbours()
                .filter(|(_, counter)| *counter >= COUNTER_FROM);
            u64::from(unopened) + forged.count() as u64
        });
        believed.sum()
    }

    /// Whether a place on the air is a node's, not an attacker's.
    pub(super) fn is_nodes(&self, place: usize) -> bool {
        self.attackers
            .iter()
            .all(|attacker| attacker.place != place)
    }
}

/// How often an attacker looks whether the air is free, and for how long it does so.
const LISTENS_EVERY: Duration = Duration::from_micros(500);
const PATIENCE: Duration = Duration::from_millis(30);
