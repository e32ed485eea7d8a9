//! How strongly each node hears each other.
//!
//! Purpose: path gains in decibels, from geometry, from a matrix, or from the calibrated chain;
//! kept as a list of audible receivers for each sender, so that the processing of a frame does not
//! grow with the number of nodes out of range.
//! Source: log-distance model and constants, Rappaport §4.9, 40.2 dB at 1 m for 2.44 GHz.

use std::collections::BTreeMap;
use std::sync::Arc;

use motet::random::Rng;
use motet::time::Instant;

use crate::streams::{Purpose, gaussian, stream};

/// One listener of a transmitter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// The listening node.
    pub to: usize,
    /// Received over transmitted power, dB; negative.
    pub db: f64,
}

/// The gains between nodes: for each transmitter its listeners, by ascending node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gains {
    /// Shared: every run of a scenario reads them, and a dense mesh has millions.
    from: Arc<[Vec<Gain>]>,
}

/// A gain that changes while a run goes on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Later {
    /// When the gain changes.
    pub at: Instant,
    /// The transmitter.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The gain from then on, dB; below [`NEGLIGIBLE_DB`] nothing is heard.
    pub db: f64,
}

impl Gains {
    /// `nodes` nodes, none of which hears another.
    pub fn none(nodes: usize) -> Self {
        Self {
            from: vec![Vec::new(); nodes].into(),
        }
    }

    /// Gains in dB by `matrix[transmitter][receiver]`; entries below [`NEGLIGIBLE_DB`], and
    /// the diagonal, mean that nothing is heard.
    pub fn from_matrix(matrix: &[Vec<f64>]) -> Self {
        Self::from_fn(matrix.len(), |from, to| {
            matrix
                .get(from)
                .and_then(|row| row.get(to))
                .copied()
                .unwrap_or(f64::NEG_INFINITY)
        })
    }

    /// Gains by a function of transmitter and receiver.
    pub fn from_fn(nodes: usize, mut gain_db: impl FnMut(usize, usize) -> f64) -> Self {
        let from = (0..nodes)
            .map(|from| {
                (0..nodes)
                    .filter(|to| *to != from)
                    .map(|to| Gain {
                        to,
                        db: gain_db(from, to),
                    })
                    .filter(|gain| gain.db >= NEGLIGIBLE_DB)
                    .collect()
            })
            .collect();
        Self { from }
    }

    /// Gains between nodes at `positions` (metres).
    pub fn log_distance(positions: &[[f64; 2]], model: LogDistance, seed: u64) -> Self {
        let mut rng = stream(seed, 0, Purpose::Shadowing);
        let offsets: Vec<f64> = positions
            .iter()
            .map(|_| model.node_sigma_db * gaussian(&mut rng))
            .collect();
        let best = offsets.iter().copied().fold(0.0, f64::max);
        let cells = Cells::new(positions, model.range(best));
        let mut lists: Vec<Vec<Gain>> = vec![Vec::new(); positions.len()];
        let mut add = |from: usize, to: usize, db: f64| {
            if let Some(listeners) = lists.get_mut(from)
                && db >= NEGLIGIBLE_DB
            {
                listeners.push(Gain { to, db });
            }
        };
        // Each pair once, the lower number first and both in ascending order: so do the lists
        // ascend.
        for one in 0..positions.len() {
            let near = cells.near(positions[one]).filter(|other| *other > one);
            let mut near: Vec<usize> = near.collect();
            near.sort_unstable();
            for other in near {
                let loss_db = model.loss_db(positions, one, other, seed);
                add(one, other, offsets[other] - loss_db);
                add(other, one, offsets[one] - loss_db);
            }
        }
        Self { from: lists.into() }
    }

    /// The calibrated chain of `nodes` nodes, numbered along it.
    pub fn chain(nodes: usize, chain: ChainAir) -> Self {
        Self::along(nodes, |node| node, chain)
    }

    /// Nodes at `place`s along such a chain; several may be at one, and hear each other as
    /// neighbours do.
    pub(crate) fn along(nodes: usize, place: impl Fn(usize) -> usize, chain: ChainAir) -> Self {
        Self::from_fn(nodes, |from, to| match place(from).abs_diff(place(to)) {
            0 | 1 => chain.one_hop_db,
            2 => chain.two_hops_db,
            _ => chain.beyond_db,
        })
    }

    /// These gains, where nobody hears nodes that are `apart`, nor do they hear others; node 0 and
    /// each of them hear one another at `db`, where that is given.
    pub fn apart(&self, is_apart: impl Fn(usize) -> bool, db: Option<f64>) -> Self {
        let lists = self.from.iter().enumerate().map(|(from, listeners)| {
            let keeps = |gain: &&Gain| !is_apart(from) && !is_apart(gain.to);
            let mut kept: Vec<Gain> = listeners.iter().filter(keeps).copied().collect();
            let spokes = (0..self.nodes()).filter(|to| match from {
                0 => is_apart(*to),
                _ => *to == 0 && is_apart(from),
            });
            kept.extend(spokes.filter_map(|to| Some(Gain { to, db: db? })));
            kept.sort_unstable_by_key(|gain| gain.to);
            kept
        });
        Self {
            from: lists.collect(),
        }
    }

    /// These gains, but for the link between two nodes, which is of `db` both ways.
    #[cfg(all(feature = "captures", feature = "firmware"))]
    pub(crate) fn with_link(&self, [one, other]: [usize; 2], db: f64) -> Self {
        let own = |from, to| (from, to) == (one, other) || (from, to) == (other, one);
        Self::from_fn(self.nodes(), |from, to| match own(from, to) {
            true => db,
            false => self.get(from, to).unwrap_or(f64::NEG_INFINITY),
        })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.from.len()
    }

    /// The nodes that hear `from`, and the gain to each.
    pub fn listeners(&self, from: usize) -> &[Gain] {
        self.from.get(from).map_or(&[], Vec::as_slice)
    }

    /// The gain from `from` to `to`, dB, unless negligible.
    pub fn get(&self, from: usize, to: usize) -> Option<f64> {
        let listeners = self.listeners(from);
        let found = listeners.binary_search_by_key(&to, |gain| gain.to).ok()?;
        listeners.get(found).map(|gain| gain.db)
    }
}

/// Path loss that grows with the logarithm of the distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogDistance {
    /// Loss at one metre, dB: free space at 2.44 GHz.
    pub loss_1m_db: f64,
    /// n: 2 in free space, 3 in an office.
    pub exponent: f64,
    /// Standard deviation of the loss between pairs at equal distance, dB.
    pub shadowing_sigma_db: f64,
    /// Standard deviation of how well single nodes hear, dB: makes links asymmetric.
    pub node_sigma_db: f64,
}

impl LogDistance {
    /// An office without shadowing.
    pub const OFFICE: Self = Self {
        loss_1m_db: 40.2,
        exponent: 3.0,
        shadowing_sigma_db: 0.0,
        node_sigma_db: 0.0,
    };

    /// The loss of a path, dB. Shadowing depends only on the two ends of the path, so it is the
    /// same in both directions. The sensitivity of nodes, which differs, is not part of it.
    fn loss_db(&self, positions: &[[f64; 2]], from: usize, to: usize, seed: u64) -> f64 {
        let ([ax, ay], [bx, by]) = (positions[from], positions[to]);
        let distance = libm::hypot(ax - bx, ay - by).max(1.0);
        let shadowing = if self.shadowing_sigma_db == 0.0 {
            0.0
        } else {
            let pair = ((from.min(to) as u64) << 32) | from.max(to) as u64;
            let mut rng = stream(seed, 1, Purpose::Shadowing);
            let mut rng = Rng::from_seed([rng.next_u64(), pair]);
            self.shadowing_sigma_db * gaussian(&mut rng)
        };
        self.loss_1m_db + 10.0 * self.exponent * libm::log10(distance) + shadowing
    }

    /// How far a signal is worth anything, metres, to a node that hears by `best_db` better
    /// than others, on a path as lucky as one in a thousand million is.
    fn range(&self, best_db: f64) -> f64 {
        let luck_db = 6.0 * self.shadowing_sigma_db + best_db;
        let loss_db = luck_db - NEGLIGIBLE_DB - self.loss_1m_db;
        libm::pow(10.0, loss_db / (10.0 * self.exponent)).max(1.0)
    }
}

/// Nodes by the square that they are in, so that nodes out of range are skipped.
struct Cells {
    side: f64,
    nodes: BTreeMap<[i64; 2], Vec<usize>>,
}

impl Cells {
    fn new(positions: &[[f64; 2]], side: f64) -> Self {
        let mut cells = Self {
            side,
            nodes: BTreeMap::new(),
        };
        for (node, position) in positions.iter().enumerate() {
            let cell = cells.of(*position);
            cells.nodes.entry(cell).or_default().push(node);
        }
        cells
    }

    fn of(&self, position: [f64; 2]) -> [i64; 2] {
        // The cast saturates; scenarios have positions within 1,000 km.
        position.map(|metres| libm::floor(metres / self.side) as i64)
    }

    /// Everyone within one side of `position`, and some more.
    fn near(&self, position: [f64; 2]) -> impl Iterator<Item = usize> {
        let [x, y] = self.of(position);
        let cells = (-1..=1).flat_map(move |dx| (-1..=1).map(move |dy| [x + dx, y + dy]));
        cells
            .filter_map(|cell| self.nodes.get(&cell))
            .flatten()
            .copied()
    }
}

/// Gains along the chain on which TCPlp's multi-hop figures are calibrated.
///
/// Each hop goes through a wall or a floor as well as distance, so that power falls faster
/// along the chain than in an open office: a neighbour is sensed, the node after it can
/// still be decoded but lies below the threshold of the clear channel assessment, and all
/// further ones vanish in the noise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChainAir {
    /// Gain to the neighbour, dB.
    pub one_hop_db: f64,
    /// Gain to the neighbour's neighbour, dB.
    pub two_hops_db: f64,
    /// Gain to every node further away, dB.
    pub beyond_db: f64,
}

impl ChainAir {
    /// Received at -62, -87 and (nothing) -112 dBm from 0 dBm: 25 dB a wall.
    pub const CALIBRATED: Self = Self {
        one_hop_db: -62.0,
        two_hops_db: -87.0,
        beyond_db: -112.0,
    };

    /// Everyone senses everyone: no terminal is hidden from another.
    pub const NO_HIDDEN: Self = Self {
        one_hop_db: -50.0,
        two_hops_db: -65.0,
        beyond_db: -65.0,
    };
}

/// Weaker than this no signal matters: 20 dB below the noise floor of the best receiver at
/// 0 dBm, so that a hundred such interferers equal the noise.
pub const NEGLIGIBLE_DB: f64 = -121.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_costs_what_the_exponent_says() {
        let gains = Gains::log_distance(
            &[[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]],
            LogDistance::OFFICE,
            1,
        );
        let near = gains.get(0, 1).unwrap();
        let far = gains.get(0, 2).unwrap();
        assert!((near + 70.2).abs() < 1e-9, "{near}");
        assert!((near - far - 9.03).abs() < 0.01, "{far}");
        assert_eq!(gains.get(1, 0), gains.get(0, 1));
    }

    #[test]
    fn the_list_holds_only_who_hears_something() {
        let gains = Gains::from_matrix(&[
            vec![0.0, -60.0, f64::NEG_INFINITY],
            vec![-61.0, 0.0, -300.0],
            vec![-90.0, -62.0, 0.0],
        ]);
        assert_eq!(gains.listeners(0).len(), 1);
        assert_eq!(gains.get(1, 2), None);
        assert_eq!(gains.get(2, 0), Some(-90.0));
        assert_eq!(gains.get(1, 1), None);
    }

    #[test]
    fn offsets_make_links_asymmetric_and_shadowing_does_not() {
        let positions = [[0.0, 0.0], [10.0, 0.0], [10.0, 5.0]];
        let shadowed = LogDistance {
            shadowing_sigma_db: 6.0,
            ..LogDistance::OFFICE
        };
        let gains = Gains::log_distance(&positions, shadowed, 3);
        assert_eq!(gains.get(0, 1), gains.get(1, 0));
        assert_ne!(gains, Gains::log_distance(&positions, shadowed, 4));
        let uneven = LogDistance {
            node_sigma_db: 2.0,
            ..LogDistance::OFFICE
        };
        let gains = Gains::log_distance(&positions, uneven, 3);
        assert_ne!(gains.get(0, 1), gains.get(1, 0));
    }
}
