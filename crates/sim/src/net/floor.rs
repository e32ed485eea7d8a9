//! Generated floors: motes at random on a floor of an office, deep enough to be a mesh.
//!
//! Purpose: networks for experiments that no one has chosen by hand. The border router is at one
//! end of an oblong floor, the motes anywhere on it; walls are in the path loss and its
//! shadowing. A floor on which a mote is cut off, or none is far enough away, is thrown away and
//! another one drawn, longer where motes were too near.

use std::collections::BTreeSet;

use motet::random::Rng;

use super::topology::{self, Station};
use crate::air::gains::{Gains, LogDistance};
use crate::streams::{Purpose, stream};

/// The settings of a floor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FloorOptions {
    /// Motes, besides the border router.
    pub motes: usize,
    /// How many hops the mote that is farthest away must have at least, on the path of fewest
    /// expected transmissions.
    pub hops: usize,
    /// Loss of signal by distance.
    pub loss: LogDistance,
    /// Transmit power of all, dBm.
    pub transmit_dbm: f64,
    /// Noise of all receivers, dBm.
    pub noise_dbm: f64,
}

/// A floor with all its motes connected.
#[derive(Clone, PartialEq, Debug)]
pub struct Floor {
    /// Where nodes are, metres, the border router first.
    pub positions: Vec<[f64; 2]>,
    /// How well they hear each other.
    pub gains: Gains,
}

impl Floor {
    /// The floor of a seed; none where such a floor was not found.
    pub fn generate(options: &FloorOptions, seed: u64) -> Option<Self> {
        let mut rng = stream(seed, 0, Purpose::Floor);
        let mut length_m = range_m(options) * options.hops as f64 * LENGTH_PER_HOP;
        for _ in 0..ATTEMPTS_MAX {
            let floor = Self::draw(options, length_m, &mut rng);
            match floor.depth(options) {
                Some(hops) if hops >= options.hops => return Some(floor),
                Some(_) => length_m *= LONGER,
                None => {}
            }
        }
        None
    }

    fn draw(options: &FloorOptions, length_m: f64, rng: &mut Rng) -> Self {
        let width_m = length_m * WIDTH_PER_LENGTH;
        let mut unit = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        // Rounds to a centimetre, so that a report or a scenario shows exactly the positions of the
        // run.
        let round = |metres: f64| (metres * 100.0).round() / 100.0;
        let router = [0.0, round(width_m / 2.0)];
        let mote = |_| [round(length_m * unit()), round(width_m * unit())];
        let positions: Vec<[f64; 2]> = std::iter::once(router)
            .chain((0..options.motes).map(mote))
            .collect();
        let gains = Gains::log_distance(&positions, options.loss, rng.next_u64());
        Self { positions, gains }
    }

    /// Hops of the mote farthest away; none where one is cut off.
    fn depth(&self, options: &FloorOptions) -> Option<usize> {
        let station = Station {
            name: "",
            parent: None,
            transmit_dbm: options.transmit_dbm,
            noise_dbm: options.noise_dbm,
            channel: 0,
        };
        let stations = vec![station; self.positions.len()];
        let tree = topology::tree(&stations, &self.gains, &BTreeSet::new()).ok()?;
        Some(tree.height(0))
    }
}

/// How far a good link reaches without shadowing, metres.
fn range_m(options: &FloorOptions) -> f64 {
    let loss = &options.loss;
    let budget_db = options.transmit_dbm - options.noise_dbm - SNR_DB - loss.loss_1m_db;
    libm::pow(10.0, budget_db / (10.0 * loss.exponent)).max(1.0)
}

/// The signal-to-noise ratio of a link that a tree chooses, dB: that of a frame which arrives, and
/// the margin of [`topology`].
const SNR_DB: f64 = 10.0;

/// Part of a hop's range that it brings a packet forward, about.
const LENGTH_PER_HOP: f64 = 0.7;

/// The factor by which the next floor is longer.
const LONGER: f64 = 1.04;

const WIDTH_PER_LENGTH: f64 = 0.4;

/// Floors that are tried at most; most seeds need few.
const ATTEMPTS_MAX: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::profile::Profile;

    fn options(motes: usize, hops: usize) -> FloorOptions {
        FloorOptions {
            motes,
            hops,
            loss: LogDistance {
                shadowing_sigma_db: 4.0,
                node_sigma_db: 1.0,
                ..LogDistance::OFFICE
            },
            transmit_dbm: Profile::HAMILTON.transmit_dbm,
            noise_dbm: Profile::HAMILTON.noise_dbm(),
        }
    }

    #[test]
    fn floors_are_as_deep_as_asked_for_and_differ_by_seed() {
        for (motes, hops) in [(30, 4), (100, 6)] {
            let options = options(motes, hops);
            let floors: Vec<Floor> = (1..=20)
                .map(|seed| Floor::generate(&options, seed).expect("a floor"))
                .collect();
            for floor in &floors {
                assert_eq!(floor.positions.len(), motes + 1);
                let depth = floor.depth(&options).expect("all are connected");
                assert!((hops..=hops + 3).contains(&depth), "{depth} hops");
            }
            assert_ne!(floors[0], floors[1]);
            assert_eq!(Floor::generate(&options, 1).as_ref(), Some(&floors[0]));
        }
    }

    #[test]
    fn impossible_floors_are_not_found() {
        assert_eq!(Floor::generate(&options(3, 9), 1), None);
    }
}
