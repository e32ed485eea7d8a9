//! The gate between the mesh and the TUN interface of a router on a radio: the policy says when
//! each packet passes, and what it holds waits here.

use std::{os::fd::AsFd as _, time};

use motet::time::Instant;
use motet_router::port::PacketPort;
use motet_taim::{self as taim, Config, Decision, Direction, Status};

use crate::{error::Error, live, radio_node::RadioNode};

/// The interface, the policy, and the packets that it holds.
#[derive(Debug)]
pub(super) struct Gate {
    port: PacketPort,
    policy: taim::Gate,
    room: Vec<u8>,
}

impl Gate {
    pub(super) fn new(port: PacketPort, config: Config) -> Self {
        Self {
            room: vec![0; usize::from(port.mtu())],
            port,
            policy: taim::Gate::new(config),
        }
    }

    /// The policy and what it has seen.
    pub(super) fn status(&mut self, now: Instant) -> Status {
        self.policy.status(now)
    }

    /// Carries what there is either way, lets the node work, and waits for more, `nap` at most.
    ///
    /// # Errors
    /// The interface is gone, or the radio cannot be used any more.
    pub(super) fn turn(
        &mut self,
        node: &mut RadioNode<'_>,
        nap: time::Duration,
    ) -> Result<(), Error> {
        // Before it waits: what the node has taken from the air by now is not to lie until then.
        let mut rounds = 0;
        while self.carry(node)? {
            rounds += 1;
            if rounds == ROUNDS_MAX {
                return Ok(());
            }
        }
        let now = node.world.now();
        let due = self
            .policy
            .router()
            .next_deadline()
            .map(|due| due.since(now));
        let due = due.map(|due| time::Duration::from_micros(due.as_micros()));
        node.rest(&[self.port.as_fd()], due.map_or(nap, |due| nap.min(due)))
    }

    /// Carries what there is either way, and lets the node work; whether a packet passed, so that
    /// there may be more to do.
    fn carry(&mut self, node: &mut RadioNode<'_>) -> Result<bool, Error> {
        let mut room = std::mem::take(&mut self.room);
        let heard = self.hear(node, &mut room);
        self.room = room;
        heard?;
        node.exchange()?;
        let mut has_passed = false;
        while let Some(packet) = node.world.take_at(0) {
            has_passed = true;
            self.offer(node, Direction::Up, &packet);
        }
        Ok(self.release(node) || has_passed)
    }

    /// Lets all go that is held: the router is about to end.
    pub(super) fn open(&mut self, node: &mut RadioNode<'_>) {
        self.policy.release_all();
        self.release(node);
    }

    fn hear(&mut self, node: &mut RadioNode<'_>, room: &mut [u8]) -> Result<(), Error> {
        while let Some(len) = self.port.recv(room).map_err(|error| live::broken(&error))? {
            let packet = room.get(..len).unwrap_or_default();
            self.offer(node, Direction::Down, packet);
        }
        Ok(())
    }

    /// A packet comes to the gate.
    fn offer(&mut self, node: &mut RadioNode<'_>, direction: Direction, packet: &[u8]) {
        let (_, decision) = self.policy.offer(direction, packet, node.world.now());
        if decision == Decision::Pass {
            self.pass(node, direction, packet);
        }
    }

    /// Lets go what the policy says by now; whether that is anything.
    fn release(&mut self, node: &mut RadioNode<'_>) -> bool {
        let mut has_passed = false;
        while let Some(copy) = self.policy.poll_copy(node.world.now()) {
            has_passed = true;
            node.world.inject_at(0, copy);
        }
        while let Some(packet) = self.policy.poll(node.world.now()) {
            has_passed = true;
            self.pass(node, packet.direction, &packet.bytes);
        }
        while self.policy.poll_dropped().is_some() {}
        has_passed
    }

    fn pass(&mut self, node: &mut RadioNode<'_>, direction: Direction, packet: &[u8]) {
        match direction {
            Direction::Down => node.world.inject_at(0, packet),
            // What the kernel cannot take is lost, as on any wire.
            Direction::Up => drop(self.port.send(packet)),
        }
    }
}

/// Rounds after which the router looks to its other duties, though packets still pass.
const ROUNDS_MAX: usize = 16;
