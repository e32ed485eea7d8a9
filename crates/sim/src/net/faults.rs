//! The faults of a bad network: it loses, repeats, delays and corrupts packets.
//!
//! Purpose: one judge for every packet that goes over a wire of the lab, real or pretended.
//! Left out: frames on the air, whose fate the medium decides.

use motet::random::Rng;
use motet::time::Duration;

use crate::streams::happens;

/// How often a packet meets with what. All zero: never.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Faults {
    /// The chance that it is lost.
    pub loss: f64,
    /// The chance that it comes twice.
    pub duplication: f64,
    /// The chance that it comes late, and so behind others.
    pub reordering: f64,
    /// The chance that bits of it are wrong, in a way that a checksum of 16 bits shows.
    pub corruption: f64,
    /// The longest time by which copies and late packets are behind.
    pub lag: Duration,
}

/// One copy of a packet that arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// How late the copy is.
    pub lag: Duration,
    /// The bytes that arrive.
    pub bytes: Box<[u8]>,
    /// They are not those that were sent.
    pub is_corrupted: bool,
}

/// Packets by their fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultTally {
    /// Packets that were sent.
    pub sent: u64,
    /// How many of these were lost.
    pub lost: u64,
    /// Copies of packets besides the first.
    pub duplicated: u64,
    /// Copies that came late.
    pub delayed: u64,
    /// Copies with wrong bits.
    pub corrupted: u64,
}

impl Faults {
    /// A network without faults.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        reordering: 0.0,
        corruption: 0.0,
        lag: Duration::ZERO,
    };

    /// A network that loses every packet.
    pub const LOSS: Self = Self {
        loss: 1.0,
        ..Self::NONE
    };

    /// The copies of `packet` that arrive: none, one or two. Bytes before `intact` are never
    /// corrupted. Counted in `tally`.
    pub fn judge(
        &self,
        packet: &[u8],
        intact: usize,
        rng: &mut Rng,
        tally: &mut FaultTally,
    ) -> impl Iterator<Item = Arrival> + use<> {
        tally.sent += 1;
        let is_lost = happens(rng, self.loss);
        let is_double = !is_lost && meets(rng, self.duplication);
        tally.lost += u64::from(is_lost);
        tally.duplicated += u64::from(is_double);
        let first = (!is_lost).then(|| {
            let is_late = meets(rng, self.reordering);
            self.copy(packet, intact, is_late, rng, tally)
        });
        let second = is_double.then(|| self.copy(packet, intact, true, rng, tally));
        first.into_iter().chain(second)
    }

    fn copy(
        &self,
        packet: &[u8],
        intact: usize,
        is_late: bool,
        rng: &mut Rng,
        tally: &mut FaultTally,
    ) -> Arrival {
        let mut bytes: Box<[u8]> = packet.into();
        let lag = if is_late {
            rng.uniform(self.lag)
        } else {
            Duration::ZERO
        };
        let is_corrupted = meets(rng, self.corruption) && corrupt(&mut bytes, intact, rng);
        tally.delayed += u64::from(is_late);
        tally.corrupted += u64::from(is_corrupted);
        Arrival {
            lag,
            bytes,
            is_corrupted,
        }
    }
}

impl FaultTally {
    /// Adds the fates of other packets.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.delayed += other.delayed;
        self.corrupted += other.corrupted;
    }
}

/// As [`happens`], but draws nothing for what never does: runs with losses alone stay what
/// they are, whatever other faults there may be elsewhere.
fn meets(rng: &mut Rng, p: f64) -> bool {
    p > 0.0 && happens(rng, p)
}

/// Flips bits of one octet behind `intact`; returns whether there is one.
///
/// A one's complement sum differs whenever a single 16-bit word does, unless that turns from
/// all zeros to all ones, which takes more than one octet.
fn corrupt(bytes: &mut [u8], intact: usize, rng: &mut Rng) -> bool {
    let len = bytes.len().saturating_sub(intact) as u32;
    let mask = 1 + rng.below(255) as u8;
    let at = intact + rng.below(len) as usize;
    match bytes.get_mut(at) {
        Some(byte) => {
            *byte ^= mask;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motet::wire::tcp::{fill_checksum, is_checksum_valid};

    #[test]
    fn packets_meet_with_what_is_asked_for_as_often_as_asked_for() {
        let faults = Faults {
            loss: 0.1,
            duplication: 0.2,
            reordering: 0.3,
            corruption: 0.4,
            lag: Duration::from_millis(5),
        };
        let (mut rng, mut tally) = (Rng::from_seed([3, 1]), FaultTally::default());
        let mut arrived = 0;
        for _ in 0..10_000 {
            for copy in faults.judge(&[0; 20], 0, &mut rng, &mut tally) {
                arrived += 1;
                assert!(copy.lag <= faults.lag);
                assert_eq!(copy.is_corrupted, copy.bytes.iter().any(|byte| *byte != 0));
            }
        }
        assert_eq!(tally.sent, 10_000);
        assert_eq!(arrived, tally.sent - tally.lost + tally.duplicated);
        for (count, low, high) in [
            (tally.lost, 900, 1_100),
            (tally.duplicated, 1_650, 1_950),
            // Every duplicate is late, and three tenths of what comes once.
            (tally.delayed, 4_250, 4_750),
            (tally.corrupted, 4_050, 4_550),
        ] {
            assert!((low..high).contains(&count), "{count}: {tally:?}");
        }
    }

    #[test]
    fn nothing_happens_where_nothing_is_asked_for() {
        let (mut rng, mut tally) = (Rng::from_seed([3, 1]), FaultTally::default());
        let copies: Vec<_> = Faults::NONE
            .judge(&[7; 9], 0, &mut rng, &mut tally)
            .collect();
        assert!(
            matches!(&copies[..], [copy] if copy.bytes[..] == [7; 9] && copy.lag == Duration::ZERO)
        );
    }

    #[test]
    fn every_corruption_shows_in_the_checksum() {
        let (src, dst) = (crate::net::plan::mesh_addr(1), crate::net::plan::HOST);
        let mut rng = Rng::from_seed([4, 1]);
        for len in 20..140 {
            let mut segment: Vec<u8> = (0..len).map(|n: u32| (n * 7) as u8).collect();
            segment[..20].fill(0);
            fill_checksum(&src, &dst, &mut segment);
            for _ in 0..50 {
                let mut wrong = segment.clone();
                assert!(corrupt(&mut wrong, 0, &mut rng));
                assert!(!is_checksum_valid(&src, &dst, &wrong));
            }
            let mut wrong = segment.clone();
            corrupt(&mut wrong, 20, &mut rng);
            assert_eq!(wrong[..20], segment[..20]);
        }
    }
}
