//! The interval of a central's connections, by how many packets are lost.
//!
//! A packet that is lost ends its connection event, or the next one in a row does, and the rest of
//! the interval is lost with it: the more losses, the shorter the interval that carries most. A
//! central has one interval for all its connections, so that their events do not drift into one
//! another, and it is as long as there are connections, so that each has time for some packets.
//!
//! Source: none; the shares and times are those at which the lab's air carries most.

use super::event::{EventReport, Phy};

/// The losses that a central has seen, and the pace that it chooses for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    received: u16,
    lost: u16,
    level: u8,
}

impl Pace {
    pub(super) const NEW: Self = Self {
        received: 0,
        lost: 0,
        level: 0,
    };

    /// Counts the packets of a connection event that the controller reports.
    pub(super) fn on_report(&mut self, report: &EventReport) {
        // An event that the peripheral skipped lost no packet.
        let missed = u16::from(report.is_missed && report.good > 0);
        self.received = self.received.saturating_add(report.good);
        self.lost = self.lost.saturating_add(report.bad.saturating_add(missed));
        let all = self.received.saturating_add(self.lost);
        if all < SAMPLE {
            return;
        }
        let lost = u32::from(self.lost) * 1000;
        let exceeds = |permille: u16| lost > u32::from(permille) * u32::from(all);
        let level = usize::from(self.level);
        if LEVELS.get(level).is_some_and(|above| exceeds(*above)) {
            self.level += 1;
        } else if let Some(below) = level.checked_sub(1).and_then(|at| LEVELS.get(at))
            && !exceeds(below * 2 / 3)
        {
            self.level -= 1;
        }
        (self.received, self.lost) = (0, 0);
    }

    /// Whether so many packets are lost that shorter intervals carry more.
    #[cfg(feature = "tcple")]
    pub(super) const fn is_lossy(self) -> bool {
        self.level > 0
    }

    /// The interval for `connections` connections, in units of 1.25 ms; `usual`: without losses.
    pub(super) fn interval(self, usual: u16, connections: u16, phy: Phy) -> u16 {
        let shares = match phy {
            Phy::Le1M => SHARES_1M,
            Phy::Le2M => SHARES_2M,
        };
        let level = usize::from(self.level).checked_sub(1);
        let Some(share) = level.and_then(|level| shares.get(level)) else {
            return usual;
        };
        share.saturating_mul(connections.max(1)).min(usual)
    }
}

/// Packets after which their losses count: a second of a connection that is busy.
const SAMPLE: u16 = 600;

/// Losses above which an interval is shorter, in thousandths of all packets received. It becomes
/// longer again at two thirds of that. A packet that the peer missed counts too, since no answer
/// comes.
const LEVELS: [u16; 3] = [15, 40, 100];

/// For each level of `LEVELS`, the part of the interval for each connection, in units of 1.25 ms.
const SHARES_1M: [u16; 3] = [16, 12, 8];
const SHARES_2M: [u16; 3] = [16, 6, 6];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ble::Handle;

    fn lose(pace: &mut Pace, bad: u16, good: u16) {
        pace.on_report(&EventReport {
            handle: Handle(0),
            counter: 0,
            good,
            bad,
            unacknowledged: 0,
            is_missed: false,
        });
    }

    #[test]
    fn the_interval_falls_as_losses_grow_and_rises_again() {
        let mut pace = Pace::NEW;
        let losses = [0, 5, 20, 20, 50, 120, 200, 200, 30, 30, 10, 5, 0];
        let seen = losses.map(|permille| {
            lose(&mut pace, permille, 1000 - permille);
            pace.interval(40, 1, Phy::Le1M)
        });
        assert_eq!(seen, [40, 40, 16, 16, 12, 8, 8, 8, 12, 12, 16, 40, 40]);
    }

    #[test]
    fn each_connection_has_a_share_and_none_more_than_usual() {
        let mut pace = Pace::NEW;
        lose(&mut pace, 50, 950);
        lose(&mut pace, 50, 950);
        let at = |connections, phy| pace.interval(40, connections, phy);
        assert_eq!((at(0, Phy::Le1M), at(1, Phy::Le1M)), (12, 12));
        assert_eq!((at(2, Phy::Le2M), at(9, Phy::Le2M)), (12, 40));
    }

    #[test]
    fn few_packets_say_nothing() {
        let mut pace = Pace::NEW;
        lose(&mut pace, 100, 400);
        assert_eq!(pace.interval(40, 1, Phy::Le1M), 40);
    }
}
