//! Time that never runs backwards, whatever the caller's clock does.

use motet::time::Instant;

/// Turns the caller's time into one that never runs backwards.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// The caller's time when it was last read.
    outside: Instant,
    /// The router's own time at that moment.
    inside: Instant,
}

impl Clock {
    /// Our time, now that it is `outside` by the caller's. A step back counts as no time.
    pub(crate) fn read(&mut self, outside: Instant) -> Instant {
        self.inside += outside.since(self.outside);
        self.outside = outside;
        self.inside
    }

    /// Whether the caller's time is before that of the last reading.
    pub(crate) fn is_step_back(&self, outside: Instant) -> bool {
        outside < self.outside
    }

    /// Our time when the clock was last read.
    pub(crate) const fn now(&self) -> Instant {
        self.inside
    }

    /// When the router's time will be `inside`, by the caller's clock as it was last read.
    pub(crate) fn outside(&self, inside: Instant) -> Instant {
        self.outside + inside.since(self.inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_back_is_no_time_and_what_follows_counts() {
        let at = Instant::from_micros;
        let mut clock = Clock::default();
        assert_eq!(clock.read(at(100)), at(100));
        assert_eq!(clock.read(at(40)), at(100));
        assert_eq!(clock.read(at(45)), at(105));
        assert_eq!(clock.outside(at(115)), at(55));
        assert_eq!(clock.outside(at(3)), at(45), "what is past is due now");
        assert_eq!(clock.read(at(u64::MAX)), at(u64::MAX));
    }
}
