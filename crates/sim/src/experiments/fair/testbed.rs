//! Floors like the two testbeds of the TAiM paper.
//!
//! Purpose: thirty motes each, two to five hops deep, with a mote that is the parent of many. The
//! paper shows the places on a plan without measures; so they are made after its description, and
//! each seed shadows other links.

use motet::time::Duration;

use super::{FLOOR_SEEDS, MOTES};
use crate::air::gains::{Gains, LogDistance};
use crate::air::profile::{Profile, tinyos};
use crate::experiments::run::Failure;
use crate::net::network::{Joining, NetworkOptions, NodeOptions, Tables};
use crate::net::topology::Tree;

use super::trial::hosts;

/// Which of the paper's two testbeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Testbed {
    /// A room and the corridor before it, -15 dBm.
    Corridor,
    /// A lattice in an office, -25 dBm.
    Lattice,
}

/// The mote in the door of the first testbed: node 21, as in the paper.
const DOOR: usize = 21;

/// Attenuation of the wall between room and corridor, dB. The mote in the door has none.
const WALL_DB: f64 = 15.0;

const WALKS: LogDistance = LogDistance {
    shadowing_sigma_db: 3.0,
    node_sigma_db: 1.0,
    ..LogDistance::OFFICE
};

impl Testbed {
    /// The testbed of a seed.
    pub(super) fn network(self, seed: u64, design: &str) -> Result<NetworkOptions, Failure> {
        // Shadowing may cut a mote off, leave too few hops, or no parent of many.
        let found = (0..ATTEMPTS_MAX).find_map(|n| {
            let shadows = seed.wrapping_add(FLOOR_SEEDS).wrapping_add(n * 1_000_000);
            let options = self.shadowed(seed, shadows, design);
            let tree = options.tree().ok()?;
            let is_alike = (2..=5).contains(&tree.height(0)) && most_below(&tree) >= BOTTLENECK;
            is_alike.then_some(options)
        });
        found.ok_or_else(|| Failure::Topology("no such testbed was found".to_owned()))
    }

    fn shadowed(self, seed: u64, shadows: u64, design: &str) -> NetworkOptions {
        let positions = self.positions();
        let free = Gains::log_distance(&positions, WALKS, shadows);
        let gains = Gains::from_fn(positions.len(), |from, to| {
            let wall_db = if self.has_wall(from, to) {
                WALL_DB
            } else {
                0.0
            };
            free.get(from, to)
                .map_or(f64::NEG_INFINITY, |db| db - wall_db)
        });
        let nodes = (0..=MOTES).map(|n| self.node(n, design)).collect();
        NetworkOptions {
            seed,
            joining: Joining::Static,
            hosts: hosts(MOTES),
            frame_loss: if design == "a" { 0.0 } else { AMBIENT_LOSS },
            ..NetworkOptions::new(nodes, gains)
        }
    }

    /// TelosB with TinyOS's CSMA, and one segment of one frame at a time.
    fn node(self, n: usize, design: &str) -> NodeOptions {
        let mut node = NodeOptions::new(n.to_string());
        node.profile = Profile {
            transmit_dbm: match self {
                Self::Corridor => -15.0,
                Self::Lattice => -25.0,
            },
            ..Profile::TELOSB
        };
        node.mac = tinyos(&node.mac);
        node.mss_frames = 1;
        node.window_segments = 1;
        node.tables = if n == 0 { Tables::RELAY } else { Tables::SMALL };
        if n == 0 && design == "b12" {
            node.tables.queue_frames = B12_FRAMES;
            node.tables.packet_queue_len = B12_PACKETS * PACKET_LEN;
        }
        node
    }

    /// Metres; the border router first.
    fn positions(self) -> Vec<[f64; 2]> {
        let motes = (1..=MOTES).map(|n| self.position(n));
        let router = match self {
            Self::Corridor => [0.0, 4.0],
            Self::Lattice => [0.0, 0.0],
        };
        std::iter::once(router).chain(motes).collect()
    }

    fn position(self, n: usize) -> [f64; 2] {
        let (column, row) = ((n - 1) % 5, (n - 1) / 5);
        match self {
            // Fifteen motes in a room of 12 by 8 m, one in its door, fourteen along the corridor.
            Self::Corridor if n == DOOR => [12.0, 0.0],
            Self::Corridor if n <= 15 => [1.0 + 2.5 * column as f64, 1.5 + 2.5 * row as f64],
            Self::Corridor => {
                let along = n - if n > DOOR { 17 } else { 16 };
                [14.0 + 2.0 * along as f64, -1.0 - (along % 2) as f64]
            }
            // Five by six, 2.2 m apart.
            Self::Lattice => [1.0 + 2.2 * column as f64, 1.0 + 2.2 * row as f64],
        }
    }

    fn has_wall(self, a: usize, b: usize) -> bool {
        let is_in_room = |n: usize| n <= 15;
        let is_in_door = a == DOOR || b == DOOR;
        self == Self::Corridor && !is_in_door && is_in_room(a) != is_in_room(b)
    }
}

/// Part of the frames that are lost besides those that the air loses, ACKs included: with it
/// datagrams begin to be lost at the paper's rate.
const AMBIENT_LOSS: f64 = 0.2;

/// Twelve packets of one frame: in the MAC's queue, and before it.
const B12_FRAMES: usize = 4;
const B12_PACKETS: usize = 8;

/// Bytes that an acknowledgment takes in the queue of packets, about.
const PACKET_LEN: usize = 70;

const ATTEMPTS_MAX: u64 = 200;

/// Motes below the mote that has most of them, at the least: the papers' trees have such parents.
const BOTTLENECK: usize = 5;

fn most_below(tree: &Tree) -> usize {
    let all = (1..=MOTES).map(|mote| tree.below(mote).len());
    all.max().unwrap_or(0)
}

/// The longest that the workload may take.
pub(super) const LIMIT: Duration = Duration::from_secs(4 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_as_deep_as_the_papers_and_have_a_parent_of_many() {
        for testbed in [Testbed::Corridor, Testbed::Lattice] {
            for seed in 1..=8 {
                let options = testbed.network(seed, "a").expect("a testbed");
                let tree = options.tree().expect("it is connected");
                assert!((2..=5).contains(&tree.height(0)), "{testbed:?} {seed}");
                assert!(most_below(&tree) >= 5, "{testbed:?} {seed}");
            }
        }
    }
}
