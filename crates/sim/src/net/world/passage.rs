//! Packets on their way between a node and the wire, and past the border router's fairness.

use motet::node;
use motet::tcp::RetransmissionCause;
use motet::time::Instant;
use motet_taim::Direction;

use super::port::{Attached, Kind};
use super::{Mote, World};
use crate::air::{End, Event, WirePacket};
use crate::net::fairness::Fairness;
use crate::net::wire::Wire;

impl World<'_> {
    /// Makes the border router fair.
    pub fn set_fairness(&mut self, fairness: Option<Fairness>) {
        self.fairness = fairness;
    }

    /// The router that makes the border router fair, if there is one.
    pub fn fairness(&self) -> Option<&Fairness> {
        self.fairness.as_ref()
    }

    /// The same, to ask for its status.
    pub fn fairness_mut(&mut self) -> Option<&mut Fairness> {
        self.fairness.as_mut()
    }

    /// Lets all packets go that the border router holds.
    pub fn end_fairness(&mut self) {
        if let Some(fairness) = &mut self.fairness {
            fairness.end();
        }
        self.release(self.now());
    }

    pub(super) fn deliver(&mut self, mote: usize, packet: &[u8], now: Instant) {
        let Mote {
            node,
            ports,
            is_off: false,
            thread,
            ..
        } = &mut self.motes[mote]
        else {
            return;
        };
        if let Some(router) = thread {
            router.on_packet(packet, now);
            return self.drive(mote, now);
        }
        let takes = |port: &&Attached| matches!(port.kind, Kind::Wire | Kind::Tap(_));
        if let Some(port) = ports.iter().find(takes) {
            node.on_event(port.interface, node::Event::Cable(packet), now);
            self.drive(mote, now);
        }
    }

    /// A packet is at the end of a wire; on its way into the mesh it may have to wait there.
    pub(super) fn arrive(&mut self, parcel: WirePacket, now: Instant) {
        let WirePacket { to, packet } = parcel;
        match to {
            End::Mote(_) if self.is_router(to) => {
                if self.offer(Direction::Down, &packet, now) {
                    self.enter(&packet, now);
                }
                self.release(now);
            }
            End::Mote(mote) => self.deliver(mote, &packet, now),
            End::Outside => {
                if let Some(wire) = &mut self.wire {
                    wire.deliver_outside(packet);
                }
            }
        }
    }

    /// A node sends down its wire; what leaves the mesh may have to wait.
    pub(super) fn send(&mut self, mote: usize, packet: &[u8], now: Instant) {
        let from = End::Mote(mote);
        let is_router = self.is_router(from);
        if is_router && self.loses_inside() {
            return;
        }
        if !is_router || self.offer(Direction::Up, packet, now) {
            self.carry(from, packet, now);
        }
        // The node is being driven: what goes to it now has to wait until that is over.
        self.plan_release(now);
    }

    /// A packet that may pass goes into the mesh, unless it is lost on purpose.
    fn enter(&mut self, packet: &[u8], now: Instant) {
        if !self.loses_inside() {
            self.deliver(self.router(), packet, now);
        }
    }

    fn loses_inside(&mut self) -> bool {
        self.wire.as_mut().is_some_and(Wire::loses_inside)
    }

    fn is_router(&self, end: End) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.router() == end)
    }

    /// Whether a packet passes the border router now.
    fn offer(&mut self, direction: Direction, packet: &[u8], now: Instant) -> bool {
        let Self {
            fairness, motes, ..
        } = self;
        let Some(fairness) = fairness else {
            return true;
        };
        fairness.offer(direction, packet, now, |mote| timeouts(motes, mote))
    }

    /// Lets packets go that the border router has held.
    pub(super) fn release(&mut self, now: Instant) {
        while let Some(copy) = self.copied(now) {
            self.enter(&copy, now);
        }
        while let Some((direction, packet)) = self.released(now) {
            match direction {
                Direction::Up => self.carry(End::Mote(self.router()), &packet, now),
                Direction::Down => self.enter(&packet, now),
            }
        }
        self.plan_release(now);
    }

    fn plan_release(&mut self, now: Instant) {
        let fairness = self.fairness.as_mut();
        if let Some(at) = fairness.and_then(|fairness| fairness.plan(now)) {
            self.air.calendar.schedule(at, Event::Release);
        }
    }

    fn released(&mut self, now: Instant) -> Option<(Direction, Box<[u8]>)> {
        let motes = &self.motes;
        let fairness = self.fairness.as_mut()?;
        fairness.poll(now, |mote| timeouts(motes, mote))
    }

    fn copied(&mut self, now: Instant) -> Option<Box<[u8]>> {
        self.fairness.as_mut()?.poll_copy(now)
    }

    fn router(&self) -> usize {
        match self.wire.as_ref().map(Wire::router) {
            Some(End::Mote(mote)) => mote,
            _ => 0,
        }
    }

    pub(super) fn carry(&mut self, from: End, packet: &[u8], now: Instant) {
        let Some(wire) = &mut self.wire else { return };
        for (to, arrival, packet) in wire.carry(from, packet, now) {
            let arrives = Event::Packet(Box::new(WirePacket { to, packet }));
            self.air.calendar.schedule(arrival, arrives);
        }
    }
}

/// Retransmission timeouts of a mote so far.
fn timeouts(motes: &[Mote<'_>], mote: usize) -> u16 {
    let mote = motes.get(mote).filter(|mote| !mote.is_off);
    mote.map_or(0, |mote| {
        mote.node
            .tcp()
            .counters()
            .retransmitted(RetransmissionCause::Timeout)
    })
}
