//! The air of Bluetooth LE as a part of the world.
//!
//! Place: nodes with a port [`Port::Ble`] have a controller on it. It keeps a calendar of its own,
//! and the world goes on with whichever calendar has the next event.

use motet::ble::{Action, Event};
use motet::node;
use motet::time::Instant;

use super::port::{Attached, Kind, Port};
use super::{Conditions, Mote, Resident, World};
use crate::air::LinkTally;
use crate::air::medium::{Deaf, Fate};
use crate::ble;
use crate::streams::{Purpose, stream};

/// The air, and whose its controllers are.
#[derive(Debug)]
pub(super) struct Bluetooth {
    pub(super) air: ble::Air,
    /// The node of each controller.
    pub(super) nodes: Vec<usize>,
}

impl Bluetooth {
    /// The Bluetooth LE air of these residents; `None` if no resident has a controller.
    pub(super) fn of(residents: &[Resident<'_>], conditions: Conditions) -> Option<Self> {
        let ports = residents.iter().flat_map(|resident| &resident.ports);
        let devices: Vec<_> = ports
            .filter_map(|port| match port {
                Port::Ble(port) => Some((port.address, port.profile)),
                _ => None,
            })
            .collect();
        let rng = stream(conditions.seed, 0, Purpose::Bluetooth);
        let air = ble::Conditions::with_error(conditions.frame_loss);
        (!devices.is_empty()).then(|| Self {
            air: ble::Air::new(&devices, air, rng),
            nodes: Vec::new(),
        })
    }

    /// The tally from each node to each other one.
    pub(super) fn links(&self) -> impl Iterator<Item = ((usize, usize), LinkTally)> {
        let node = |device: usize| self.nodes.get(device).copied().unwrap_or_default();
        self.air.tallies().map(move |((from, to), tally)| {
            let mut counted = LinkTally {
                frames: tally.packets,
                bytes: tally.bytes,
                ..LinkTally::default()
            };
            let fates = &mut counted.frame_fates;
            fates[Fate::Injected.index()] = tally.lost;
            fates[Fate::Deaf(Deaf::Sleeping).index()] = tally.unattended;
            // The one on the air is counted as received until it turns out otherwise.
            fates[Fate::Received.index()] = tally.packets - tally.lost - tally.unattended;
            ((node(from), node(to)), counted)
        })
    }
}

impl World<'_> {
    /// The chance from now on that the central of a connection over Bluetooth LE drops a packet
    /// that it received, as though its CRC were wrong.
    pub fn set_dropped_by_central(&mut self, part: f64) {
        if let Some(ble) = &mut self.ble {
            ble.air.set_dropped_by_central(part);
        }
    }

    /// The air of Bluetooth LE, where a node has a controller.
    pub fn ble(&self) -> Option<&ble::Air> {
        Some(&self.ble.as_ref()?.air)
    }

    /// The same, to change what it is like.
    pub fn ble_mut(&mut self) -> Option<&mut ble::Air> {
        Some(&mut self.ble.as_mut()?.air)
    }

    /// The number of a node's controller.
    pub fn device(&self, mote: usize) -> Option<usize> {
        self.motes[mote].ports.iter().find_map(Attached::device)
    }

    /// The next thing that a controller outside is to do, with the bytes that it speaks of: of a
    /// node with a port [`Port::Controller`].
    pub fn take_command(&mut self, mote: usize) -> Option<(Action, Box<[u8]>)> {
        let mut ports = self.motes[mote].ports.iter_mut();
        ports.find_map(|port| match &mut port.kind {
            Kind::Controller(commands) => commands.pop_front(),
            _ => None,
        })
    }

    /// Passes a report of the external controller to such a node.
    pub fn report(&mut self, mote: usize, event: Event<'_>) {
        let now = self.now();
        let Mote { node, ports, .. } = &mut self.motes[mote];
        let is_there = |port: &&Attached| matches!(port.kind, Kind::Controller(_));
        if let Some(port) = ports.iter().find(is_there) {
            node.on_event(port.interface, node::Event::Ble(event), now);
        }
        self.drive(mote, now);
    }

    /// Lets the next thing happen on that air if it is due by `until`, and nothing else before;
    /// says whether there was one.
    pub(super) fn step_ble(&mut self, until: Instant) -> bool {
        let Some(Bluetooth { air, nodes }) = &mut self.ble else {
            return false;
        };
        let other = self.air.calendar.next_at();
        let due = air.next_at().filter(|at| *at <= until);
        let Some(now) = due.filter(|at| other.is_none_or(|other| *at <= other)) else {
            return false;
        };
        self.air.calendar.advance_to(now);
        air.step(now);
        let count = nodes.len();
        self.note_packets();
        for device in 0..count {
            let Some(ble) = &self.ble else { break };
            if ble.air.has_report(device) {
                self.drive(ble.nodes[device], now);
            }
        }
        true
    }

    /// Switches the controllers of a node off, or on.
    pub(super) fn power_ble(&mut self, mote: usize, is_on: bool) {
        let now = self.now();
        let Self { ble, motes, .. } = self;
        let Some(ble) = ble else { return };
        ble.air.advance_to(now);
        for device in motes[mote].ports.iter().filter_map(Attached::device) {
            match is_on {
                true => ble.air.switch_on(device),
                false => ble.air.switch_off(device),
            }
        }
    }
}
