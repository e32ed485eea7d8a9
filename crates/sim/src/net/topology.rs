//! The tree of a mesh: the parent of each mote.
//!
//! Purpose: finds each mote's parent along the path of fewest expected transmissions, or checks
//! given parents. It refuses a tree that cannot work, and names the node.
//! Left out: changes. The tree stays the same for the length of a run.
//! Sources: ETX, De Couto et al., `MobiCom` 2003; Dijkstra 1959.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;

use crate::air::gains::Gains;
use crate::air::phy;
use crate::air::power::ratio;
use crate::net::network::NODES_MAX;
use crate::ordered;

/// A node, as far as the tree must know it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Station<'a> {
    /// The node's name in errors.
    pub name: &'a str,
    /// The node's parent, if that is given.
    pub parent: Option<usize>,
    /// The transmit power, dBm.
    pub transmit_dbm: f64,
    /// The noise floor of the receiver, dBm.
    pub noise_dbm: f64,
    /// The radio channel.
    pub channel: u8,
}

/// Why no mesh can be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TopologyError {
    /// The network has no border router.
    Empty,
    /// The network has more nodes than there are addresses.
    TooMany(usize),
    /// The gains speak of another number of nodes.
    GainsDiffer {
        /// Nodes that the gains speak of.
        gains: usize,
        /// The number of nodes of the mesh.
        nodes: usize,
    },
    /// No node on its channel hears it well enough for a link, both ways.
    Unheard(String),
    /// The node has neighbours, but no path leads from them to the border router.
    Unreachable(String),
    /// The node and the parent given to it do not hear each other well enough for a link.
    ParentUnheard {
        /// The node's name.
        node: String,
        /// The parent given to it.
        parent: String,
    },
    /// The parent given to it does not exist, or is itself.
    NoSuchParent(String),
    /// The node's parents lead back to itself.
    Loop(String),
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a network needs a border router: its first node"),
            Self::TooMany(nodes) => {
                write!(f, "{nodes} nodes are too many: {NODES_MAX} are allowed")
            }
            Self::GainsDiffer { gains, nodes } => {
                write!(
                    f,
                    "gains are given for {gains} nodes, but there are {nodes}"
                )
            }
            Self::Unheard(node) => write!(
                f,
                "no node on its channel has a link with node {node}: move it nearer to another \
                 or raise its power"
            ),
            Self::Unreachable(node) => write!(
                f,
                "no path of links leads from node {node} to the border router"
            ),
            Self::ParentUnheard { node, parent } => write!(
                f,
                "node {node} and its parent {parent} do not hear each other"
            ),
            Self::NoSuchParent(node) => write!(f, "the parent of node {node} is no other node"),
            Self::Loop(node) => {
                write!(
                    f,
                    "the parents of node {node} lead in a circle, not to the border router"
                )
            }
        }
    }
}

impl std::error::Error for TopologyError {}

/// The parent of each node; node 0 is the root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    parents: Vec<Option<usize>>,
    depths: Vec<usize>,
    children: Vec<usize>,
    /// For each node the nodes below it, and the child that leads there.
    below: Vec<Vec<(usize, usize)>>,
}

impl Tree {
    /// The next hop towards the root; `None` for the root.
    pub fn parent(&self, node: usize) -> Option<usize> {
        *self.parents.get(node)?
    }

    /// Hops to the root.
    pub fn depth(&self, node: usize) -> usize {
        self.depths.get(node).copied().unwrap_or_default()
    }

    /// Hops to the farthest node below.
    pub fn height(&self, node: usize) -> usize {
        let deepest = self.below(node).iter().map(|(below, _)| self.depth(*below));
        deepest.max().map_or(0, |depth| depth - self.depth(node))
    }

    /// How many nodes have `node` as their parent.
    pub fn children(&self, node: usize) -> usize {
        self.children.get(node).copied().unwrap_or_default()
    }

    /// Every node below `node`, with the child that leads there.
    pub fn below(&self, node: usize) -> &[(usize, usize)] {
        self.below.get(node).map_or(&[], Vec::as_slice)
    }

    /// The nodes from one to another, both included: up to a common ancestor, and down again.
    pub fn path(&self, from: usize, to: usize) -> Vec<usize> {
        let (mut up, mut down) = (vec![from], vec![to]);
        while let (Some(a), Some(b)) = (up.last().copied(), down.last().copied())
            && a != b
        {
            let (climbs, at) = if self.depth(a) >= self.depth(b) {
                (&mut up, a)
            } else {
                (&mut down, b)
            };
            let Some(parent) = self.parent(at) else {
                break;
            };
            climbs.push(parent);
        }
        down.pop();
        up.extend(down.into_iter().rev());
        up
    }

    /// `parents` must lead every node to the root.
    fn new(stations: &[Station<'_>], parents: Vec<Option<usize>>) -> Result<Self, TopologyError> {
        let nodes = parents.len();
        let mut tree = Self {
            depths: vec![0; nodes],
            children: vec![0; nodes],
            below: vec![Vec::new(); nodes],
            parents,
        };
        for (node, station) in stations.iter().enumerate().skip(1) {
            let mut child = node;
            while let Some(parent) = tree.parents[child] {
                tree.below[parent].push((node, child));
                tree.depths[node] += 1;
                if tree.depths[node] >= nodes {
                    return Err(TopologyError::Loop(station.name.into()));
                }
                child = parent;
            }
            if let Some(parent) = tree.parents[node] {
                tree.children[parent] += 1;
            }
        }
        Ok(tree)
    }
}

/// The nodes from which no path of links leads to the first, by numbers.
pub fn without_path(stations: &[Station<'_>], gains: &Gains) -> BTreeSet<usize> {
    let found = shortest(stations, gains);
    ordered::set((1..found.len()).filter(|n| found[*n].is_none()))
}

/// The tree of these stations; the first is the root. Those `left_out` have no parent.
///
/// # Errors
/// [`TopologyError`], naming the first node that cannot take part.
pub fn tree(
    stations: &[Station<'_>],
    gains: &Gains,
    left_out: &BTreeSet<usize>,
) -> Result<Tree, TopologyError> {
    let nodes = stations.len();
    match nodes {
        0 => return Err(TopologyError::Empty),
        _ if nodes > NODES_MAX => return Err(TopologyError::TooMany(nodes)),
        _ if nodes != gains.nodes() => {
            let gains = gains.nodes();
            return Err(TopologyError::GainsDiffer { gains, nodes });
        }
        _ => {}
    }
    let present = || (1..nodes).filter(|node| !left_out.contains(node));
    for node in present() {
        check_parent(stations, gains, node)?;
    }
    let found = if stations.iter().skip(1).all(|node| node.parent.is_some()) {
        vec![None; nodes]
    } else {
        shortest(stations, gains)
    };
    let mut parents = vec![None; nodes];
    for node in present() {
        let parent = stations[node].parent.or(found[node]);
        let name = || stations[node].name.to_owned();
        parents[node] = Some(parent.ok_or_else(|| match is_heard(stations, gains, node) {
            true => TopologyError::Unreachable(name()),
            false => TopologyError::Unheard(name()),
        })?);
    }
    Tree::new(stations, parents)
}

/// Expected transmissions of a full frame and its ACK over a link from `from` to `to`, with
/// signals `margin_db` weaker than the gains say; huge where no frame passes.
///
/// Only noise counts: the traffic of other nodes is not known in advance.
pub fn expected_transmissions(
    [from, to]: [&Station<'_>; 2],
    there_db: f64,
    back_db: f64,
    margin_db: f64,
) -> f64 {
    let delivery = |from: &Station<'_>, to: &Station<'_>, gain_db: f64, len: usize| {
        let sinr_db = from.transmit_dbm + gain_db - margin_db - to.noise_dbm;
        phy::survival(ratio(sinr_db), len as f64 * 8.0)
    };
    let there = delivery(from, to, there_db, FRAME_LEN);
    let back = delivery(to, from, back_db, phy::ACK_LEN);
    1.0 / (there * back).max(f64::MIN_POSITIVE)
}

/// The cost of the link from `node` to `parent`, in 1/1024 of a transmission, if there is one.
fn cost(stations: &[Station<'_>], gains: &Gains, node: usize, parent: usize) -> Option<u64> {
    #[cfg(test)]
    tests::COSTS.with(|costs| costs.set(costs.get() + 1));
    let (from, to) = (stations.get(node)?, stations.get(parent)?);
    if from.channel != to.channel {
        return None;
    }
    let (there, back) = (gains.get(node, parent)?, gains.get(parent, node)?);
    // In a large mesh nearly all pairs: no frame passes, whatever the exact chance.
    if from.transmit_dbm + there - to.noise_dbm < HOPELESS_DB {
        return None;
    }
    if expected_transmissions([from, to], there, back, 0.0) > ETX_MAX {
        return None;
    }
    let etx = expected_transmissions([from, to], there, back, FADE_MARGIN_DB).min(ETX_MAX);
    // Whole numbers: sums along paths must not depend on their order.
    Some((etx * COST_MIN as f64) as u64)
}

fn check_parent(stations: &[Station<'_>], gains: &Gains, node: usize) -> Result<(), TopologyError> {
    let Some(parent) = stations[node].parent else {
        return Ok(());
    };
    let name = stations[node].name.to_owned();
    if parent == node || parent >= stations.len() {
        return Err(TopologyError::NoSuchParent(name));
    }
    if cost(stations, gains, node, parent).is_some() {
        return Ok(());
    }
    Err(match is_heard(stations, gains, node) {
        false => TopologyError::Unheard(name),
        true => TopologyError::ParentUnheard {
            node: name,
            parent: stations[parent].name.to_owned(),
        },
    })
}

fn is_heard(stations: &[Station<'_>], gains: &Gains, node: usize) -> bool {
    let mut listeners = gains.listeners(node).iter();
    listeners.any(|gain| cost(stations, gains, node, gain.to).is_some())
}

/// Everyone's parent on the path of least cost to node 0. Those whose parent is given take
/// part with it only.
fn shortest(stations: &[Station<'_>], gains: &Gains) -> Vec<Option<usize>> {
    let mut best = vec![u64::MAX; stations.len()];
    let mut parents = vec![None; stations.len()];
    let mut frontier = BinaryHeap::from([Reverse((0, 0))]);
    best[0] = 0;
    while let Some(Reverse((so_far, parent))) = frontier.pop() {
        if so_far > best[parent] {
            continue;
        }
        for gain in gains.listeners(parent) {
            let node = gain.to;
            let is_allowed = stations[node].parent.is_none_or(|given| given == parent);
            // In a dense mesh nearly all pairs: the path known already is as good as any by way
            // of this parent, and what exactly the link costs need not be known.
            if !is_allowed || so_far + COST_MIN >= best[node] {
                continue;
            }
            let Some(cost) = cost(stations, gains, node, parent) else {
                continue;
            };
            if so_far + cost < best[node] {
                best[node] = so_far + cost;
                parents[node] = Some(parent);
                frontier.push(Reverse((best[node], node)));
            }
        }
    }
    parents
}

/// One transmission, in the unit of [`cost`]: no link needs fewer.
const COST_MIN: u64 = 1024;

/// A link that needs more transmissions than the MAC makes is none.
const ETX_MAX: f64 = 8.0;

/// So far below the noise not one full frame of a million survives.
const HOPELESS_DB: f64 = -8.0;

/// Links are judged as if their signal were this much weaker, so that paths avoid those that
/// the next passer-by breaks. The least margin that OpenThread gives its second-best link
/// quality (10 dB) less the error of a quick measurement, 4 dB.
const FADE_MARGIN_DB: f64 = 6.0;

/// PSDU bytes of a full frame.
const FRAME_LEN: usize = 127;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How often the exact cost of a link was asked for.
        pub(super) static COSTS: Cell<usize> = const { Cell::new(0) };
    }

    /// All hear all: the number of links grows as the square of the nodes, the work must not.
    #[test]
    fn few_links_of_a_dense_mesh_are_weighed() {
        let nodes = 400;
        let all: Vec<Station<'_>> = stations(&["x"]).into_iter().cycle().take(nodes).collect();
        let air = Gains::from_fn(nodes, |from, to| -50.0 - (from + to) as f64 / 100.0);
        let before = COSTS.get();
        let tree = whole(&all, &air).unwrap();
        assert!((1..nodes).all(|node| tree.parent(node) == Some(0)));
        let asked = COSTS.get() - before;
        assert!(asked <= 2 * nodes, "{asked} links weighed");
    }

    /// A tree of all.
    fn whole(stations: &[Station<'_>], gains: &Gains) -> Result<Tree, TopologyError> {
        tree(stations, gains, &BTreeSet::new())
    }

    #[test]
    fn nodes_without_a_path_may_be_left_out() {
        let five = stations(&["root", "a", "alone", "deaf", "b"]);
        let both = [(0, 1), (1, 4)];
        let air = Gains::from_fn(5, |from, to| {
            let hears = both.contains(&(from, to)) || both.contains(&(to, from));
            // Node 3 is heard by the root, and hears nobody.
            match hears || (from, to) == (3, 0) {
                true => -60.0,
                false => f64::NEG_INFINITY,
            }
        });
        let out = without_path(&five, &air);
        assert_eq!(out, BTreeSet::from([2, 3]));
        assert!(whole(&five, &air).is_err());
        let tree = tree(&five, &air, &out).unwrap();
        let parents: Vec<_> = (0..5).map(|n| tree.parent(n)).collect();
        assert_eq!(parents, [None, Some(0), None, None, Some(1)]);
        assert_eq!((tree.children(0), tree.below(0).len()), (1, 2));
    }

    fn stations(names: &[&'static str]) -> Vec<Station<'static>> {
        names
            .iter()
            .map(|name| Station {
                name,
                parent: None,
                transmit_dbm: 0.0,
                noise_dbm: -101.4,
                channel: 26,
            })
            .collect()
    }

    /// Symmetric gains; what is not named is not heard.
    fn gains(nodes: usize, links: &[(usize, usize, f64)]) -> Gains {
        Gains::from_fn(nodes, |from, to| {
            let link = links
                .iter()
                .find(|(a, b, _)| [(*a, *b), (*b, *a)].contains(&(from, to)));
            link.map_or(f64::NEG_INFINITY, |(.., db)| *db)
        })
    }

    #[test]
    fn what_is_hopeless_costs_more_than_a_link_may() {
        let two = stations(&["a", "b"]);
        let gain_db = HOPELESS_DB + two[1].noise_dbm - two[0].transmit_dbm;
        let etx = expected_transmissions([&two[0], &two[1]], gain_db, 0.0, 0.0);
        assert!(etx > 1e6, "{etx}");
    }

    #[test]
    fn paths_go_by_the_nearest_common_ancestor() {
        let six = stations(&["0", "1", "2", "3", "4", "5"]);
        let links = [(0, 1), (1, 2), (1, 3), (3, 4), (0, 5)].map(|(a, b)| (a, b, -60.0));
        let tree = whole(&six, &gains(6, &links)).unwrap();
        let cases: [(usize, usize, &[usize]); 5] = [
            (4, 0, &[4, 3, 1, 0]),
            (0, 2, &[0, 1, 2]),
            (2, 4, &[2, 1, 3, 4]),
            (5, 4, &[5, 0, 1, 3, 4]),
            (1, 4, &[1, 3, 4]),
        ];
        for (from, to, path) in cases {
            assert_eq!(tree.path(from, to), path, "{from} to {to}");
        }
    }

    #[test]
    fn paths_have_the_fewest_expected_transmissions() {
        let four = stations(&["root", "a", "b", "far"]);
        // 97 dB down, a link hardly survives its margin: two good hops cost less.
        let air = gains(
            4,
            &[(0, 1, -60.0), (0, 2, -97.0), (1, 2, -60.0), (2, 3, -60.0)],
        );
        let tree = whole(&four, &air).unwrap();
        assert_eq!(
            (0..4).map(|n| tree.parent(n)).collect::<Vec<_>>(),
            [None, Some(0), Some(1), Some(2)]
        );
        assert_eq!((tree.depth(3), tree.children(1)), (3, 1));
        assert_eq!([0, 1, 3].map(|n| tree.height(n)), [3, 2, 0]);
        assert_eq!(tree.below(0), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(tree.below(2), [(3, 3)]);
    }

    #[test]
    fn a_given_parent_stands() {
        let mut three = stations(&["root", "a", "b"]);
        three[2].parent = Some(1);
        let air = gains(3, &[(0, 1, -60.0), (0, 2, -60.0), (1, 2, -60.0)]);
        assert_eq!(whole(&three, &air).unwrap().parent(2), Some(1));
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let refusal = |links: &[(usize, usize, f64)], parents: [Option<usize>; 4]| {
            let mut four = stations(&["root", "a", "b", "c"]);
            for (station, parent) in four.iter_mut().zip(parents) {
                station.parent = parent;
            }
            whole(&four, &gains(4, links)).unwrap_err()
        };
        let none = [None; 4];
        let pairs = [(0, 1, -60.0), (2, 3, -60.0)];
        let all = [(0, 1, -60.0), (1, 2, -60.0), (2, 3, -60.0)];
        assert_eq!(
            refusal(&[(0, 1, -60.0), (1, 2, -60.0)], none),
            TopologyError::Unheard("c".into())
        );
        assert_eq!(
            refusal(&pairs, none),
            TopologyError::Unreachable("b".into())
        );
        assert_eq!(
            refusal(&all, [None, None, None, Some(1)]),
            TopologyError::ParentUnheard {
                node: "c".into(),
                parent: "a".into()
            }
        );
        assert_eq!(
            refusal(&all, [None, None, Some(3), Some(2)]),
            TopologyError::Loop("b".into())
        );
        assert_eq!(
            refusal(&all, [None, Some(9), None, None]),
            TopologyError::NoSuchParent("a".into())
        );
        assert_eq!(whole(&[], &gains(0, &[])), Err(TopologyError::Empty));
        assert!(matches!(
            whole(&stations(&["root"]), &gains(3, &[])),
            Err(TopologyError::GainsDiffer { gains: 3, nodes: 1 })
        ));
    }

    #[test]
    fn other_channels_hear_nothing() {
        let mut two = stations(&["root", "a"]);
        two[1].channel = 11;
        assert_eq!(
            whole(&two, &gains(2, &[(0, 1, -60.0)])),
            Err(TopologyError::Unheard("a".into()))
        );
    }
}
