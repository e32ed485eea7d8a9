//! Dense floors: many motes that hear one another, as outsiders set them up.
//!
//! Purpose: networks of 80 to 200 motes for the question whether all of them join. A grid, a room
//! full of motes, an office of desks: each drawn by a seed, none chosen by hand.
//! Left out: deep floors of few motes, which `net::floor` draws.

use motet::random::Rng;

use crate::air::gains::{Gains, LogDistance};
use crate::net::network::{Host, HostOptions, Joining, NetworkOptions, NodeOptions};
use crate::streams::{Purpose, stream};

/// The shape of a floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Motes 2 to 4 m apart in a square.
    Grid,
    /// Motes anywhere in 10 m by 10 m.
    SmallRoom,
    /// Motes anywhere in 20 m by 20 m.
    LargeRoom,
    /// Desks some 4 m apart in the rooms of a floor 64 m wide.
    Office,
}

impl Shape {
    /// All shapes, in the order of the rows.
    pub const ALL: [Self; 4] = [Self::Grid, Self::SmallRoom, Self::LargeRoom, Self::Office];

    /// The shape in a row's point.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::SmallRoom => "room of 10 m",
            Self::LargeRoom => "room of 20 m",
            Self::Office => "office",
        }
    }
}

/// A floor that a seed has drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct DenseFloor {
    /// How the nodes are placed.
    pub shape: Shape,
    /// Where nodes are, metres, the border router first.
    pub positions: Vec<[f64; 2]>,
}

impl DenseFloor {
    /// The floor of this shape that a seed draws.
    pub fn draw(shape: Shape, seed: u64) -> Self {
        let mut rng = stream(seed, shape as u32, Purpose::Floor);
        let motes = MOTES_MIN + below(&mut rng, MOTES_MAX - MOTES_MIN + 1);
        let positions = match shape {
            Shape::Grid => grid(motes, &mut rng),
            Shape::SmallRoom => room(motes, 10.0, &mut rng),
            Shape::LargeRoom => room(motes, 20.0, &mut rng),
            Shape::Office => office(motes, &mut rng),
        };
        Self { shape, positions }
    }

    /// The floor as a mesh that forms itself by RPL, whose host is the caller. Its nodes have the
    /// default settings of a scenario.
    pub fn network(&self, seed: u64) -> NetworkOptions {
        network_at(&self.positions, seed)
    }
}

/// The network of nodes at these positions, metres, in the air of an office.
pub fn network_at(positions: &[[f64; 2]], seed: u64) -> NetworkOptions {
    let nodes = (0..positions.len()).map(|n| NodeOptions::new(n.to_string()));
    let gains = Gains::log_distance(positions, LogDistance::OFFICE, seed);
    NetworkOptions {
        seed,
        joining: Joining::Rpl,
        hosts: vec![HostOptions {
            kind: Host::Outside,
            ..HostOptions::new("host")
        }],
        ..NetworkOptions::new(nodes.collect(), gains)
    }
}

/// Draws `each` floors of each shape, with seeds from `seed` on.
pub fn floors(each: u64, seed: u64) -> Vec<DenseFloor> {
    let seeds = (0..each).map(|n| seed.wrapping_add(n));
    seeds
        .flat_map(|seed| Shape::ALL.map(|shape| DenseFloor::draw(shape, seed)))
        .collect()
}

/// Row by row, the border router anywhere among them.
fn grid(motes: usize, rng: &mut Rng) -> Vec<[f64; 2]> {
    let spacing = tenths(2.0 + 2.0 * unit(rng));
    let nodes = motes + 1;
    let columns = (1..).find(|columns| columns * columns >= nodes);
    let columns = columns.unwrap_or(nodes);
    let place = |n: usize| {
        let (row, column) = (n / columns, n % columns);
        [column as f64 * spacing, row as f64 * spacing].map(tenths)
    };
    let mut positions: Vec<_> = (0..nodes).map(place).collect();
    positions.swap(0, below(rng, nodes));
    positions
}

fn room(motes: usize, side_m: f64, rng: &mut Rng) -> Vec<[f64; 2]> {
    let place = |_| [0; 2].map(|_: usize| hundredths(side_m * unit(rng)));
    (0..=motes).map(place).collect()
}

/// Rooms of nine desks, of which some stand empty, side by side and row behind row until there are
/// desks enough.
fn office(motes: usize, rng: &mut Rng) -> Vec<[f64; 2]> {
    let mut positions = Vec::new();
    let rooms_a_row = (OFFICE_WIDTH_M / ROOM_M) as usize;
    for number in 0.. {
        let corner = [number % rooms_a_row, number / rooms_a_row].map(|n| n as f64 * ROOM_M);
        if below(rng, 3) == 0 {
            continue;
        }
        for desk in 0..DESKS * DESKS {
            let at = [desk % DESKS, desk / DESKS].map(|n| n as f64 * DESK_M);
            let mut jitter = || DESK_JITTER_M * (2.0 * unit(rng) - 1.0);
            let at = [0, 1].map(|axis| tenths(corner[axis] + at[axis] + jitter()));
            positions.push(at);
            if positions.len() > motes {
                return positions;
            }
        }
    }
    positions
}

/// A random number, at least 0, less than 1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    (unit(rng) * bound as f64) as usize
}

fn tenths(metres: f64) -> f64 {
    (metres * 10.0).round() / 10.0
}

fn hundredths(metres: f64) -> f64 {
    (metres * 100.0).round() / 100.0
}

/// Motes of a floor, besides the border router.
const MOTES_MIN: usize = 80;
const MOTES_MAX: usize = 200;

/// The widest floor of OpenThread's simulator, and rooms that leave a corridor between them.
const OFFICE_WIDTH_M: f64 = 64.0;
const ROOM_M: f64 = 16.0;

/// Desks along each side of a room, how far apart, and how exactly.
const DESKS: usize = 3;
const DESK_M: f64 = 4.0;
const DESK_JITTER_M: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_dense_connected_and_differ_by_seed() {
        let drawn = floors(10, 1);
        assert_eq!(drawn.len(), 40);
        for floor in &drawn {
            let motes = floor.positions.len() - 1;
            assert!((MOTES_MIN..=MOTES_MAX).contains(&motes), "{motes}");
            let network = floor.network(1);
            assert!(network.tree().is_ok(), "{:?} is cut in two", floor.shape);
            let heard = network.gains.listeners(0).len();
            assert!(heard >= 5, "{:?}: {heard} hear the router", floor.shape);
        }
        assert_eq!(drawn, floors(10, 1));
        assert_ne!(drawn[0], floors(10, 2)[0]);
    }
}
