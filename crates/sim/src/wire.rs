//! The wired link between the border router and the host.
//!
//! Purpose: a one-way delay, and the packet loss that experiments inject at the border
//! router, after link retries and reassembly (`TCPlp` §9.4). One end is the border
//! router; the other is a simulated host, or the outside: a caller with a kernel.
//! Left out: bandwidth and queueing. It is some hundred times faster than the mesh.

use std::collections::VecDeque;
use std::io;

use motet::random::Rng;
use motet::time::{Duration, Instant};

use crate::capture::Capture;
use crate::streams::happens;

/// Where a wire ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// At a simulated node.
    Mote(usize),
    /// Outside the simulated world.
    Outside,
}

/// A point-to-point wire.
#[derive(Debug)]
pub struct Wire {
    ends: [End; 2],
    delay: Duration,
    loss: f64,
    rng: Rng,
    capture: Option<Capture>,
    outbox: VecDeque<Box<[u8]>>,
    passed: Option<VecDeque<Passed>>,
    /// What it carried and lost.
    pub tally: WireTally,
}

/// A packet that passed a wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// When it entered the wire.
    pub at: Instant,
    /// Out of the mesh.
    pub upwards: bool,
    /// The packet.
    pub packet: Box<[u8]>,
}

/// What a wire carried and lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireTally {
    /// Packets from the mesh.
    pub up: u64,
    /// Packets to the mesh.
    pub down: u64,
    /// Packets lost on purpose, not counted above.
    pub lost: u64,
}

impl Wire {
    /// A wire from the border router `router` to `far`.
    ///
    /// `delay`: one way. `loss`: the chance that a packet is lost at the border router,
    /// either way.
    pub fn new(router: usize, far: End, delay: Duration, loss: f64, rng: Rng) -> Self {
        Self {
            ends: [End::Mote(router), far],
            delay,
            loss,
            rng,
            capture: None,
            outbox: VecDeque::new(),
            passed: None,
            tally: WireTally::default(),
        }
    }

    /// Keeps a copy of every packet that passes, for [`Self::take_passed`].
    pub fn watch(&mut self) {
        self.passed.get_or_insert_default();
    }

    /// The next packet that passed the border router's wired side since [`Self::watch`].
    pub fn take_passed(&mut self) -> Option<Passed> {
        self.passed.as_mut()?.pop_front()
    }

    /// Writes every packet that passes the border router's wired side to `capture`.
    pub fn set_capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// As [`Capture::finish`].
    pub fn finish_capture(&mut self, replace: bool) -> io::Result<()> {
        self.capture
            .take()
            .map_or(Ok(()), |capture| capture.finish(replace))
    }

    /// `from` sends `packet` at `now`; gives the other end and the instant of arrival there
    /// unless the packet is lost.
    pub fn carry(&mut self, from: End, packet: &[u8], now: Instant) -> Option<(End, Instant)> {
        let to = if from == self.ends[0] {
            self.ends[1]
        } else {
            self.ends[0]
        };
        if happens(&mut self.rng, self.loss) {
            self.tally.lost += 1;
            return None;
        }
        let arrival = now + self.delay;
        let upwards = from == self.ends[0];
        *(if upwards {
            &mut self.tally.up
        } else {
            &mut self.tally.down
        }) += 1;
        if let Some(capture) = &mut self.capture {
            capture.packet(now, packet);
        }
        if let Some(passed) = &mut self.passed {
            passed.push_back(Passed {
                at: now,
                upwards,
                packet: packet.into(),
            });
        }
        Some((to, arrival))
    }

    /// A packet has reached the outside.
    pub(crate) fn deliver_outside(&mut self, packet: Box<[u8]>) {
        self.outbox.push_back(packet);
    }

    /// The next packet that has reached the outside.
    pub fn take_outside(&mut self) -> Option<Box<[u8]>> {
        self.outbox.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Purpose, stream};

    #[test]
    fn packets_arrive_later_or_not_at_all() {
        let rng = stream(1, 0, Purpose::PacketLoss);
        let delay = Duration::from_millis(20);
        let mut wire = Wire::new(0, End::Mote(4), delay, 0.25, rng);
        let arrivals = (0..4_000)
            .filter_map(|us| {
                let from = if us % 2 == 0 {
                    End::Mote(0)
                } else {
                    End::Mote(4)
                };
                let now = Instant::from_micros(us);
                let (to, at) = wire.carry(from, &[0x60], now)?;
                assert!(to != from && at == now + delay);
                Some(())
            })
            .count() as u64;
        assert_eq!(arrivals, wire.tally.up + wire.tally.down);
        assert_eq!(arrivals + wire.tally.lost, 4_000);
        assert!((900..1_100).contains(&wire.tally.lost), "{:?}", wire.tally);
    }
}
