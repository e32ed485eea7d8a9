//! The reports to an observer of the world.

use super::World;
use super::bluetooth::Bluetooth;
use crate::air::log::{Happening, Log, LoggedFrame, Seen, Sort};
use crate::air::medium::{Deaf, Fate};
use crate::air::radio::State;
use crate::ble;

impl World<'_> {
    /// Begins to log happenings, at most `limit` between two calls that take them; `None` ends the
    /// log. It changes nothing else in the run.
    pub fn observe(&mut self, limit: Option<usize>) {
        self.air.log = limit.map(Log::new);
        if let Some(ble) = &mut self.ble {
            ble.air.observe(limit.is_some());
        }
    }

    /// Takes the events seen since the last look; nothing without an observer.
    pub fn take_seen(&mut self) -> Seen {
        let Some(log) = &mut self.air.log else {
            return Seen::default();
        };
        let mut seen = log.take();
        let places = &self.places;
        for happening in &mut seen.all {
            match happening {
                // Those of Bluetooth LE speak of nodes already, whose numbers are their places.
                Happening::Frame(frame) => {
                    frame.from = places.node(frame.from);
                    frame.to = frame.to.map(|place| places.node(place));
                }
                Happening::Radio(turn) => turn.node = places.node(turn.node),
            }
        }
        seen
    }

    /// The state of a node's first radio; none where it has none of IEEE 802.15.4.
    pub fn state(&self, mote: usize) -> Option<State> {
        Some(self.motes[mote].radios().next()?.state_now())
    }

    /// Tells the observer of packets of Bluetooth LE.
    pub(super) fn note_packets(&mut self) {
        let Self { air, ble, .. } = self;
        let (Some(log), Some(Bluetooth { air, nodes })) = (&mut air.log, ble) else {
            return;
        };
        let node = |device: usize| nodes.get(device).copied().unwrap_or(device);
        for packet in air.take_packets() {
            log.note(|| {
                Happening::Frame(LoggedFrame {
                    from: node(packet.from),
                    to: packet.to.map(node),
                    start: packet.start,
                    end: packet.end,
                    channel: packet.channel,
                    kind: match packet.is_of_connection {
                        true => Sort::Data,
                        false => Sort::Advertisement,
                    },
                    fate: match packet.arrival {
                        ble::Arrival::Nobodys => Fate::Unheard,
                        ble::Arrival::Unattended => Fate::Deaf(Deaf::Sleeping),
                        ble::Arrival::Lost => Fate::Injected,
                        ble::Arrival::Received => Fate::Received,
                    },
                    bytes: packet.bytes,
                })
            });
        }
    }
}
