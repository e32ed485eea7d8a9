//! Round-trip times as a TCP end would smooth them.

use motet::time::Duration;

/// A smoothed round-trip time and its variation.
///
/// Source: RFC 6298 §2.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Rtt {
    smoothed_us: u64,
    variation_us: u64,
    samples: u64,
}

impl Rtt {
    /// The first sample alone.
    pub(crate) fn of(sample: Duration) -> Self {
        let mut rtt = Self::default();
        rtt.add(sample);
        rtt
    }

    /// Adds a sample. One beyond [`SAMPLE_MAX`] is ignored: it is due to a step of the clock.
    pub(crate) fn add(&mut self, sample: Duration) {
        if sample > SAMPLE_MAX {
            return;
        }
        let sample_us = sample.as_micros();
        if self.samples == 0 {
            self.smoothed_us = sample_us;
            self.variation_us = sample_us / 2;
        } else {
            let error_us = self.smoothed_us.abs_diff(sample_us);
            self.variation_us = (3 * self.variation_us + error_us) / 4;
            self.smoothed_us = (7 * self.smoothed_us + sample_us) / 8;
        }
        self.samples += 1;
    }

    /// The smoothed round-trip time; none before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        (self.samples > 0).then_some(Duration::from_micros(self.smoothed_us))
    }

    /// The smoothed mean deviation of the flow's samples; none before the first.
    pub(crate) fn variation(&self) -> Option<Duration> {
        (self.samples > 0).then_some(Duration::from_micros(self.variation_us))
    }

    /// When an answer is overdue: the round-trip time and four times its variation, which is at
    /// least [`VARIATION_MIN`] in all.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let slack = Duration::from_micros(4 * self.variation_us).max(VARIATION_MIN);
        self.smoothed().map(|smoothed| smoothed + slack)
    }
}

/// Longer than any mesh takes, even one that a policy holds back.
const SAMPLE_MAX: Duration = Duration::from_secs(120);

/// Linux's least slack (`TCP_RTO_MIN`), the smallest in use: stacks of motes have a second.
pub(crate) const VARIATION_MIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_smoothed_as_rfc_6298_says() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::default();
        assert_eq!((rtt.smoothed(), rtt.timeout()), (None, None));
        rtt.add(ms(800));
        assert_eq!(rtt.smoothed(), Some(ms(800)));
        assert_eq!(rtt.timeout(), Some(ms(800 + 4 * 400)));
        rtt.add(ms(1_600));
        assert_eq!(rtt.smoothed(), Some(ms(900)));
        assert_eq!(rtt.variation(), Some(ms(500)));
        rtt.add(Duration::from_secs(4_000));
        assert_eq!(rtt.smoothed(), Some(ms(900)), "a leap of the clock");
    }

    #[test]
    fn a_steady_round_trip_leaves_linuxs_slack() {
        let mut rtt = Rtt::default();
        for _ in 0..200 {
            rtt.add(Duration::from_millis(50));
        }
        assert_eq!(rtt.timeout(), Some(Duration::from_millis(250)));
    }
}
