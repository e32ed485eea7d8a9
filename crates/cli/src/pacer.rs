//! Virtual time paced by the wall clock.
//!
//! The air's clock follows the wall clock. When the host is so late that the air could not
//! keep up, the whole air waits: its clock falls behind by the excess, for good, so that a
//! busy machine never becomes a missed ACK. Both the lateness and the waiting are counted.

#![cfg_attr(
    not(target_os = "linux"),
    expect(
        dead_code,
        reason = "elsewhere no kernel takes part, and time is virtual"
    )
)]

use std::time;

use motet::time::{Duration, Instant};

/// Lateness that the air makes up for by catching up, rather than by waiting: below the
/// time of a frame, so that the kernel sees no burst.
const TOLERANCE: Duration = Duration::from_millis(5);

/// Maps the wall clock to the air's.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// The start, on the real clock and on the air's.
    started: (time::Instant, Instant),
    lateness: Lateness,
}

/// How late the host was for the air's events.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Lateness {
    /// Times that the air had something to do.
    pub(crate) turns: u64,
    /// Sum of the lateness over all turns.
    pub(crate) total: Duration,
    /// The greatest lateness of a turn.
    pub(crate) max: Duration,
    /// How far the air's clock has fallen behind the wall clock.
    pub(crate) waited: Duration,
}

impl Pacer {
    /// The air's clock goes on from `air`, now.
    pub(crate) fn start(air: Instant) -> Self {
        Self {
            started: (time::Instant::now(), air),
            lateness: Lateness::default(),
        }
    }

    /// The air's time that belongs to a moment of the wall clock.
    pub(crate) fn at(&self, wall: time::Instant) -> Instant {
        let (started, air) = self.started;
        let elapsed = wall.saturating_duration_since(started);
        let elapsed = Duration::from_micros(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
        air + (elapsed - self.lateness.waited)
    }

    /// The present of the air's virtual time.
    pub(crate) fn now(&self) -> Instant {
        self.at(time::Instant::now())
    }

    /// How long until the air's clock reads `due`; zero when it has passed.
    pub(crate) fn until(&self, due: Instant) -> time::Duration {
        time::Duration::from_micros(due.since(self.now()).as_micros())
    }

    /// The air's time to run to, given that its next event is at `due`.
    pub(crate) fn turn(&mut self, due: Option<Instant>) -> Instant {
        let now = self.now();
        let Some(due) = due.filter(|due| *due <= now) else {
            return now;
        };
        let late = now.since(due);
        self.lateness.turns += 1;
        self.lateness.total = self.lateness.total + late;
        self.lateness.max = self.lateness.max.max(late);
        let excess = late - TOLERANCE;
        self.lateness.waited = self.lateness.waited + excess;
        due + (late - excess)
    }

    /// How late the host has been.
    pub(crate) fn lateness(&self) -> Lateness {
        self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_air_catches_up_when_the_host_is_a_little_late_and_waits_when_it_is_very() {
        let start = Instant::from_micros(7_000_000);
        let ago = |ms| time::Instant::now() - time::Duration::from_millis(ms);
        let mut pacer = Pacer {
            started: (ago(1_000), start),
            lateness: Lateness::default(),
        };

        // Nothing was due, so the host is not late.
        let now = pacer.turn(None);
        assert!(now >= start + Duration::from_secs(1));
        assert!(pacer.turn(Some(now + Duration::from_secs(60))) >= now);
        assert_eq!(pacer.lateness().turns, 0);

        // A millisecond late: the air is where the clock is.
        let due = start + (pacer.now().since(start) - Duration::from_millis(1));
        assert!(pacer.turn(Some(due)) >= due + Duration::from_millis(1));

        // Half a second late: the air goes on from where it should have been.
        let due = start + Duration::from_millis(500);
        let now = pacer.turn(Some(due));
        assert_eq!(now, due + TOLERANCE);
        let lateness = pacer.lateness();
        assert_eq!(lateness.turns, 2);
        assert!(lateness.max >= Duration::from_millis(500));
        assert_eq!(lateness.waited, lateness.max - TOLERANCE);
        // And stays there.
        assert!(pacer.now().since(now) < Duration::from_millis(400));
    }
}
