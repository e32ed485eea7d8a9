//! Power on the air, in integers.
//!
//! Purpose: sums of interferers must not depend on the order in which frames began, so
//! power is a whole number of attowatts, not a float: -120 dBm is 1,000 of them.

use std::ops::{Add, AddAssign, SubAssign};

/// A power in attowatts (10^-18 W). `u64` holds up to +42 dBm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Power(u64);

impl Power {
    /// No power at all.
    pub const ZERO: Self = Self(0);

    /// `dbm` decibels over one milliwatt.
    pub fn from_dbm(dbm: f64) -> Self {
        // Beyond +40 dBm no such radio exists; the cast saturates at either end.
        Self((libm::pow(10.0, dbm.min(40.0) / 10.0) * ATTOWATTS_PER_MILLIWATT + 0.5) as u64)
    }

    /// Decibels over one milliwatt; -150 for anything weaker than that.
    pub fn dbm(self) -> f64 {
        10.0 * libm::log10(self.0.max(1) as f64 / ATTOWATTS_PER_MILLIWATT)
    }

    /// Whole attowatts.
    pub const fn attowatts(self) -> u64 {
        self.0
    }

    /// `attowatts` as a power.
    pub const fn from_attowatts(attowatts: u64) -> Self {
        Self(attowatts)
    }

    /// The power less `part`, at least zero.
    pub const fn saturating_sub(self, part: Self) -> Self {
        Self(self.0.saturating_sub(part.0))
    }
}

impl Add for Power {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Power {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Power {
    fn sub_assign(&mut self, other: Self) {
        debug_assert!(self.0 >= other.0, "more power left the air than had come");
        *self = self.saturating_sub(other);
    }
}

/// A ratio given in decibels, as a factor.
pub fn ratio(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

const ATTOWATTS_PER_MILLIWATT: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_convert_both_ways() {
        for (dbm, attowatts) in [
            (0.0, 1_000_000_000_000_000),
            (-30.0, 1_000_000_000_000),
            (-120.0, 1_000),
        ] {
            assert_eq!(Power::from_dbm(dbm).attowatts(), attowatts);
            assert!((Power::from_attowatts(attowatts).dbm() - dbm).abs() < 1e-9);
        }
        assert_eq!(Power::from_dbm(f64::NEG_INFINITY), Power::ZERO);
    }

    #[test]
    fn a_sum_forgets_nothing_and_no_order() {
        let parts = [-40.0, -97.3, -63.1, -101.8].map(Power::from_dbm);
        let mut sum = Power::ZERO;
        for part in parts {
            sum += part;
        }
        for part in [parts[2], parts[0], parts[3], parts[1]] {
            sum -= part;
        }
        assert_eq!(sum, Power::ZERO);
    }
}
