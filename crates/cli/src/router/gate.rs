//! The gate between the mesh and the TUN interface of a router on a radio: the policy says when
//! each packet passes, and what it holds waits here.

use std::{collections::BTreeMap, os::fd::AsFd as _, time};

use motet::time::Instant;
use motet_router::port::PacketPort;
use motet_taim::{Config, Decision, Direction, Packet, PacketId, Router, Status};

use crate::{error::Error, live, radio_node::RadioNode};

/// The interface, the policy, and the packets that it holds.
#[derive(Debug)]
pub(super) struct Gate {
    port: PacketPort,
    router: Router,
    held: BTreeMap<PacketId, (Direction, Box<[u8]>)>,
    packets: u64,
    room: Vec<u8>,
}

impl Gate {
    pub(super) fn new(port: PacketPort, config: Config) -> Self {
        Self {
            room: vec![0; usize::from(port.mtu())],
            port,
            router: Router::new(config),
            held: BTreeMap::new(),
            packets: 0,
        }
    }

    /// The policy and what it has seen.
    pub(super) fn status(&mut self, now: Instant) -> Status {
        self.router.status(now)
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
        let due = self.router.next_deadline().map(|due| due.since(now));
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
        self.router.release_all();
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
        let id = PacketId(self.packets);
        self.packets += 1;
        let shown = Packet {
            id,
            direction,
            headers: packet,
            len: packet.len(),
        };
        match self.router.on_packet(&shown, node.world.now()) {
            Decision::Pass => self.pass(node, direction, packet),
            Decision::Hold => drop(self.held.insert(id, (direction, packet.into()))),
        }
    }

    /// Lets go what the policy says by now; whether that is anything.
    fn release(&mut self, node: &mut RadioNode<'_>) -> bool {
        let mut has_passed = false;
        while let Some(copy) = self.router.poll_copy(node.world.now()) {
            has_passed = true;
            node.world.inject_at(0, copy);
        }
        while let Some(id) = self.router.poll(node.world.now()) {
            has_passed = true;
            if let Some((direction, packet)) = self.held.remove(&id) {
                self.pass(node, direction, &packet);
            }
        }
        while let Some(id) = self.router.poll_dropped() {
            self.held.remove(&id);
        }
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
