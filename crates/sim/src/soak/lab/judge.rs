//! Checks of a network at the end of a run, and its counters.
//!
//! Place: `lab` asks once everything has come to rest.
//! Left out: whether routes lead to all motes (`routing`), and whether all answer
//! (`active_outsiders`).

use motet::link::Link;
use motet::mac::{Channels, Mac};

use super::super::RunTally;
use super::super::rest;
use super::active_outsiders::ActiveOutsiders;
use super::{Frames, Lab, PORT};
use crate::air::LinkTally;
use crate::net::network::RADIO;

impl Lab<'_> {
    pub(super) fn is_at_rest(&self) -> bool {
        let mut nodes = (0..self.ends.len()).map(|node| self.network.world.node(node));
        self.sessions.live().next().is_none()
            && nodes.all(|node| node.tcp().next_deadline().is_none())
    }

    pub(super) fn check_rest(&mut self) -> Result<(), String> {
        if !self.is_at_rest() {
            let live = self.sessions.live().count();
            return Err(format!(
                "does not come to rest: {live} sessions, or some timer of TCP, are left"
            ));
        }
        self.check_frames()?;
        for node in 0..self.ends.len() {
            let (places, config) = (self.ends[node].places, self.ends[node].config);
            let addr = self.network.addr(node);
            let free = self.network.world.with_node(node, |stack, now| {
                rest::check_places(stack.tcp_mut(), places, (addr, PORT), config, now)
            });
            free.map_err(|what| format!("node {node}: {what}"))?;
        }
        Ok(())
    }

    /// Checks that the MACs counted the frames that were on the air, and that no frame reached
    /// anybody twice.
    fn check_frames(&self) -> Result<(), String> {
        let world = &self.network.world;
        let mut sum = self.lost_counts;
        for node in 0..self.network.mesh_nodes() {
            sum.add(&Frames::of(world.node(node)));
        }
        let in_mesh =
            |((from, to), _): &((usize, usize), _)| *from < self.in_mesh && *to < self.in_mesh;
        let on_air = world.links().filter(in_mesh);
        let on_air: u64 = on_air.map(|(_, tally)| tally.frames).sum();
        let fates = |tally: &LinkTally| tally.frame_fates.iter().sum::<u64>();
        if let Some(((from, to), tally)) = world.links().find(|(_, t)| fates(t) != t.frames) {
            return Err(format!(
                "from {from} to {to}: frames without a fate, {tally:?}"
            ));
        }
        if let Some(Link::Ble(_)) = world.node(0).link(RADIO) {
            // A controller repeats packets by itself, and its host counts SDUs.
            return Ok(());
        }
        let nodes = self.network.mesh_nodes() as u64;
        // Frames for all, and what still was on the air when a node rebooted or the run ended.
        let others = world.broadcasts() + nodes;
        if on_air > sum.attempts || on_air + others < sum.attempts {
            return Err(format!(
                "MACs count {} attempts, but {on_air} frames were on the air",
                sum.attempts
            ));
        }
        // Without a key, nodes also receive the frames of attackers.
        let forged = match self.network.network_key() {
            None => world.attack_frames(),
            Some(_) => 0,
        };
        // A broadcast frame is received by many nodes. A node that reboots between two attempts of
        // a frame does not recognise the second as a duplicate.
        let again = (sum.attempts - on_air + self.tally.reboots + forged) * nodes;
        if sum.received > sum.sent + again {
            return Err(format!(
                "{} frames were received of {} that were sent",
                sum.received, sum.sent
            ));
        }
        // A broadcast fragment is sent on each channel in turn: a node that changes its channel
        // meanwhile may hear it twice. An interrupted delivery to a sleeping mote may resume with a
        // fragment that the mote already has, but whose sequence number its MAC has forgotten.
        let is_alone = |mac: &Mac<'_>| mac.config().channels == Channels::SINGLE;
        let repeats = match self.network.macs().all(is_alone) {
            true => sum.repeated.saturating_sub(sum.sleep.resumed),
            false => 0,
        };
        // A node remembers a dozen neighbours. If it forgets a neighbour between two attempts, or
        // if an attacker has sent in that neighbour's name meanwhile, it does not recognise the
        // second attempt as a duplicate.
        let knows_all = !self
            .active_outsiders
            .as_ref()
            .is_some_and(ActiveOutsiders::confuses);
        if repeats + sum.contradicting > 0 && self.tally.reboots == 0 && knows_all {
            return Err(format!(
                "{repeats} fragments repeat others, {} contradict them",
                sum.contradicting
            ));
        }
        Ok(())
    }

    pub(super) fn result(&self) -> RunTally {
        let mut tally = self.tally;
        let world = &self.network.world;
        if let Some(wire) = world.wire() {
            tally.faults.add(&wire.fault_tally);
        }
        tally.sleep.add(&self.lost_counts.sleep);
        tally.seals.add(&self.lost_counts.seals);
        for node in 0..world.nodes() {
            let frames = Frames::of(world.node(node));
            tally.sleep.add(&frames.sleep);
            tally.seals.add(&frames.seals);
            tally.segments += u64::from(world.node(node).tcp().counters().sent);
        }
        tally.outsiders = self.outsiders();
        tally.frames = world.links().map(|(_, tally)| tally.frames).sum();
        tally
    }
}
