//! The parent of each node, and since when, as a run's nodes report them.

use motet::ip::Neighbour;
use motet::link::Link;
use motet::rpl::INFINITE_RANK;
use motet::time::Instant;
use serde::{Deserialize, Serialize};

use super::network::{Network, RADIO};
use super::plan;

/// A node's parent became another one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Move {
    /// When, s since all motes had joined; before that negative.
    pub at_s: f64,
    /// The node that has another parent.
    pub node: usize,
    /// The parent before; none: it had none.
    pub from: Option<usize>,
    /// The parent from then on; none: the node has none any more, or is off.
    pub to: Option<usize>,
}

/// Parents as they are, and how they became so.
#[derive(Debug)]
pub struct Moves {
    parents: Vec<Option<usize>>,
    /// The last parent that each had.
    last: Vec<Option<usize>>,
    joined: Vec<Option<Instant>>,
    log: Vec<Entry>,
    looked_at: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    /// Whether the parent is another one than the last that the node had.
    is_change: bool,
    /// The node, its parent before and from then on.
    step: (usize, Option<usize>, Option<usize>),
}

impl Moves {
    /// A network of `nodes` mesh nodes, of which nothing is known yet.
    pub fn of(nodes: usize) -> Self {
        Self {
            parents: vec![None; nodes],
            last: vec![None; nodes],
            joined: vec![None; nodes],
            log: Vec::new(),
            looked_at: None,
        }
    }

    /// Notes every node's parent, unless nothing can have happened since the last time.
    pub fn look(&mut self, network: &Network<'_>) {
        let now = network.world.now();
        if self.looked_at.replace(now) == Some(now) {
            return;
        }
        for mote in 1..self.parents.len() {
            let node = network.world.node(mote);
            let parent = parent(network, mote);
            if parent.is_some() && node.global_address().is_some() {
                self.joined[mote].get_or_insert(now);
            }
            let from = std::mem::replace(&mut self.parents[mote], parent);
            let last = self.last[mote];
            self.last[mote] = parent.or(last);
            // The first parent is none that a node has moved to.
            if from != parent && last.is_some() {
                self.log.push(Entry {
                    at: now,
                    is_change: parent.is_some() && parent != last,
                    step: (mote, from, parent),
                });
            }
        }
    }

    /// When the last look was.
    pub fn looked_at(&self) -> Option<Instant> {
        self.looked_at
    }

    /// The parent of a node, or the last one that it had.
    pub fn parent(&self, node: usize) -> Option<usize> {
        self.last[node]
    }

    /// Hops to the border router, where parents lead there.
    pub fn hops(&self, node: usize) -> Option<usize> {
        let hops = self.up(node).count();
        (hops < self.parents.len()).then_some(hops)
    }

    /// The nodes from one to another, both included, where parents lead to the border router: up to
    /// the receiver or the border router, which alone knows the ways down.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let leads_up = |node| match self.up(node).last() {
            Some(last) => self.parent(last) == Some(0),
            None => true,
        };
        (leads_up(from) && leads_up(to)).then_some(())?;
        let mut path: Vec<usize> = self.up(from).take_while(|node| *node != to).collect();
        if path.len() < self.up(from).count() || to == 0 {
            path.push(to);
            return Some(path);
        }
        path.push(0);
        let mut down: Vec<usize> = self.up(to).collect();
        down.reverse();
        path.extend(down);
        Some(path)
    }

    /// A node and the parents above it, without the border router; no end where they lead in a
    /// circle, but not more than there are nodes.
    fn up(&self, node: usize) -> impl Iterator<Item = usize> {
        let up = std::iter::successors(Some(node), |node| self.parent(*node));
        up.take(self.parents.len() + 1).take_while(|node| *node > 0)
    }

    /// When a node first had an address and a parent, s after `from`.
    pub fn joined_s(&self, node: usize, from: Instant) -> Option<f64> {
        let joined = self.joined[node]?;
        Some(joined.since(from).as_micros() as f64 / 1e6)
    }

    /// How often a node's parent has become another one since `from`.
    pub fn changes(&self, node: usize, from: Instant) -> u64 {
        let is_own = |entry: &&Entry| entry.step.0 == node && entry.at >= from && entry.is_change;
        self.log.iter().filter(is_own).count() as u64
    }

    /// Every change but first parents, where all motes had joined at `joined`.
    pub fn log(&self, joined: Instant) -> Vec<Move> {
        let seconds = |at: Instant| match at >= joined {
            true => at.since(joined).as_micros() as f64 / 1e6,
            false => -(joined.since(at).as_micros() as f64) / 1e6,
        };
        let dated = self.log.iter().map(|entry| {
            let (node, from, to) = entry.step;
            Move {
                at_s: seconds(entry.at),
                node,
                from,
                to,
            }
        });
        dated.collect()
    }
}

/// The parent of a mote at this moment, if it has one.
pub fn parent(network: &Network<'_>, mote: usize) -> Option<usize> {
    let parent = plan::node_of_iid(up(network, mote)?)?;
    (parent < network.mesh_nodes()).then_some(parent)
}

/// A mote's way to the border router at this moment, by everyone's parent: the motes that it is
/// passed on by, then 0. None where it does not lead there.
pub fn way_up(network: &Network<'_>, mote: usize) -> Option<Vec<usize>> {
    if network.world.thread_router(0).is_some() {
        // The parent of a child is its default route, and there is one router.
        return up(network, mote).map(|_| vec![0]);
    }
    let mut way = Vec::new();
    let mut at = mote;
    while at > 0 && way.len() < network.mesh_nodes() {
        at = parent(network, at)?;
        way.push(at);
    }
    (at == 0).then_some(way)
}

/// The interface identifier of the neighbour that a node sends to by default.
fn up(network: &Network<'_>, node: usize) -> Option<[u8; 8]> {
    match network.world.node(node).ip().default_route()?.neighbour {
        Neighbour::One(iid) => Some(iid),
        Neighbour::Only | Neighbour::All => None,
    }
}

/// The rank of a node at this moment; none where it does not route by RPL, or is in no DODAG.
pub fn rank(network: &Network<'_>, node: usize) -> Option<u16> {
    let rank = network.world.node(node).rpl()?.rank();
    (rank != INFINITE_RANK).then_some(rank)
}

/// Expected transmissions of a frame to `parent`, as the link of `node` has counted them; none
/// where it has not heard an ACK from there.
pub fn etx(network: &Network<'_>, node: usize, parent: usize) -> Option<f64> {
    let Some(Link::Mesh(radio)) = network.world.node(node).link(RADIO) else {
        return None;
    };
    // Lossless: nodes have 16-bit numbers.
    let neighbor = radio.mac().neighbor(plan::link_addr(parent as u16))?;
    Some(f64::from(neighbor.etx()?) / 128.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ways of a tree: 0 above 1 and 4, 1 above 2, 2 above 3.
    #[test]
    fn a_path_climbs_to_the_router_unless_the_receiver_is_above() {
        let mut moves = Moves::of(9);
        for (node, parent) in [(1, 0), (2, 1), (3, 2), (4, 0), (5, 6), (6, 5), (8, 7)] {
            moves.last[node] = Some(parent);
        }
        for (from, to, path) in [
            (3, 0, &[3, 2, 1, 0][..]),
            (0, 3, &[0, 1, 2, 3]),
            (3, 4, &[3, 2, 1, 0, 4]),
            (3, 1, &[3, 2, 1]),
            // Node 1 knows no way down: the border router sends the packet back through it.
            (1, 3, &[1, 0, 1, 2, 3]),
            (0, 0, &[0]),
        ] {
            assert_eq!(moves.path(from, to).as_deref(), Some(path), "{from} {to}");
        }
        assert_eq!(moves.path(5, 0), None, "in a circle");
        assert_eq!(moves.path(0, 6), None, "in a circle");
        assert_eq!(moves.path(7, 0), None, "without a parent");
        assert_eq!(moves.path(3, 8), None, "below one without a parent");
    }
}
