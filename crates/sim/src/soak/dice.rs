//! Random choices of a run, all from its seed.

use motet::random::Rng;
use motet::time::Duration;

use crate::streams::happens;

/// A generator with the kinds of draw that a run needs.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Rng);

impl Dice {
    /// The dice of the run with this seed, for one purpose of it.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self(Rng::from_seed([seed, SOAK ^ purpose]))
    }

    /// Dice of their own, so that what one part draws shifts no other.
    pub(crate) fn derive(&mut self) -> Self {
        Self(self.0.derive())
    }

    /// The generator itself, for what takes one.
    pub(crate) fn rng(&mut self) -> &mut Rng {
        &mut self.0
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Whether something of probability `p` happens.
    pub(crate) fn chance(&mut self, p: f64) -> bool {
        happens(&mut self.0, p)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: u32, high: u32) -> u32 {
        low + self.0.below((high - low).saturating_add(1))
    }

    /// A number from `low` to `high`, each power of two equally likely: small ones are as
    /// frequent as large ones.
    pub(crate) fn scale(&mut self, low: u32, high: u32) -> u32 {
        let bits = |n: u32| 32 - n.max(1).leading_zeros();
        let wanted = self.range(bits(low), bits(high));
        let top = 1_u64 << wanted;
        let drawn = top / 2 + u64::from(self.0.below((top / 2).max(1) as u32));
        (drawn as u32).clamp(low, high)
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u32) as usize]
    }

    /// A span from zero to `max`.
    pub(crate) fn span(&mut self, max: Duration) -> Duration {
        self.0.uniform(max)
    }

    /// A span of milliseconds, by [`Self::scale`].
    pub(crate) fn scale_ms(&mut self, low: u32, high: u32) -> Duration {
        Duration::from_millis(u64::from(self.scale(low, high)))
    }
}

/// "soak": keeps these streams apart from those of [`crate::streams`].
const SOAK: u64 = 0x736f_616b << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_range_and_reach_its_ends() {
        let mut dice = Dice::new(1, 0);
        for (low, high) in [(0, 3), (1, 1), (5, 9), (64, 1220)] {
            let range: Vec<u32> = (0..2_000).map(|_| dice.range(low, high)).collect();
            let scale: Vec<u32> = (0..2_000).map(|_| dice.scale(low, high)).collect();
            assert!(range.iter().chain(&scale).all(|n| (low..=high).contains(n)));
            assert!(range.contains(&low) && range.contains(&high) || high > 1_000);
            assert!(scale.iter().any(|n| *n <= low + 1 + low / 8));
        }
        let small = (0..2_000).filter(|_| dice.scale(1, 65_535) < 256).count();
        assert!(
            (800..1_200).contains(&small),
            "{small}: half the powers of two"
        );
    }
}
