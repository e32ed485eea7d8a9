//! What a capture shows of a network, to build it again: nodes, links, flows.
//!
//! Place: beside the report, for `motet replay`. A sniffer shows who sent how often and what was
//! acknowledged, as far as it heard them: sequence numbers show how much it missed. What follows
//! for the links is an estimate, and who disturbs whom is not shown at all.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::Examiner;
use super::control::Parents;
use super::link::Link;

/// A network as a capture shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Link addresses of the nodes, the border router first.
    pub nodes: Vec<String>,
    /// The links on which frames were acknowledged, one way each.
    pub links: Vec<SeenLink>,
    /// The parent of each node but the first, where each is known.
    pub parents: Option<Vec<usize>>,
    /// TCP flows that carried data, in the order of their begins.
    pub flows: Vec<SeenFlow>,
    /// The mean time between attempts of a frame, s, if there were any.
    pub retry_s: Option<f64>,
    /// From the first flow's begin to the capture's end, s.
    pub duration_s: f64,
}

/// A link one way.
#[derive(Clone, Debug)]
pub struct SeenLink {
    /// Numbers of its ends.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// Frames, and attempts at them, with those that the sniffer missed.
    pub frames: f64,
    /// As many for each frame as it took.
    pub attempts: f64,
    /// Both once the first flow's begin is over, which makes retries of its own.
    pub settled: (f64, f64),
    /// Times, s after the first flow's begin, in which it was much worse: from, to, share
    /// acknowledged.
    pub worse: Vec<(f64, f64, f64)>,
}

/// A TCP flow: the way that carried more.
#[derive(Clone, Debug)]
pub struct SeenFlow {
    /// The mote at each end; `None`: a host beyond the border router.
    pub from: Option<usize>,
    /// The receiver.
    pub to: Option<usize>,
    /// Payload, bytes.
    pub bytes: u64,
    /// Since the first flow's begin, s.
    pub start_s: f64,
    /// How long it lasted, s.
    pub seconds: f64,
    /// The longest segment, bytes.
    pub segment_bytes: u32,
    /// Most bytes that the end with the smaller window offers: that of a mote.
    pub window_bytes: Option<u64>,
    /// The usual time between the begins of messages, where there are pauses; and bytes of each.
    pub messages: Option<(f64, u64)>,
    /// The shortest time that the far end took to acknowledge, from the last hop on, s.
    pub beyond_s: Option<f64>,
    /// Segments sent again because they were lost beyond the last hop, of so many sent.
    pub lost_beyond: u64,
    /// Segments sent.
    pub segments: u64,
    /// Whether both ends closed it.
    pub is_closed: bool,
}

impl Examiner {
    /// What the frames so far show, to build the network again.
    pub fn seen(&self) -> Seen {
        let nodes = self.ordered();
        let number: BTreeMap<&str, usize> = nodes.iter().map(String::as_str).zip(0..).collect();
        let begins = self.flows.flows.iter().map(|(_, flow)| flow.span_s.0);
        let begin_s = begins.fold(f64::INFINITY, f64::min);
        let begin_s = if begin_s.is_finite() { begin_s } else { 0.0 };
        let links = self.stations.links.iter().filter_map(|((from, to), link)| {
            let ends = (*number.get(from.as_str())?, *number.get(to.as_str())?);
            let (missed, heard) = self.stations.nodes.get(from)?.shares();
            // Where attempts fail with the same chance, heard retries for each heard frame are
            // what the sniffer hears of the retries for each frame, whatever frames it missed.
            let all = |asked: u64, retries: u64| {
                let frames = asked as f64 / (1.0 - missed).max(0.05);
                let again = retries as f64 / asked.max(1) as f64 / heard;
                (frames, frames * (1.0 + again))
            };
            let (frames, attempts) = all(link.asked, link.retries);
            (link.acknowledged > 0).then(|| SeenLink {
                from: ends.0,
                to: ends.1,
                frames,
                attempts,
                settled: settled(link, begin_s, all),
                worse: worse(link, begin_s),
            })
        });
        let links: Vec<SeenLink> = links.collect();
        let nearest = nearest(&links);
        let parent = |node: &String| {
            let of_number = |parents: &Parents| number.get(parents.list.last()?.as_str()).copied();
            let registered = self.control.parents.get(node).and_then(of_number);
            let named = registered.or_else(|| self.routed_by(node, &nodes));
            // A sniffer that missed how it joined has seen where its frames went.
            named.or_else(|| nearest.get(number.get(node.as_str())?).copied())
        };
        let parents: Option<Vec<usize>> = nodes.iter().skip(1).map(parent).collect();
        let parents = parents.filter(|parents| is_tree(parents));
        let mut flows: Vec<SeenFlow> = self
            .flows
            .flows
            .iter()
            .filter_map(|(_, flow)| flow.seen(begin_s, |addr| node_of(addr, &nodes)))
            .collect();
        flows.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
        let gaps = self.stations.links.iter().map(|(_, link)| link.retry_s);
        let (sum_s, count) = gaps.fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let attempts: u64 = self
            .stations
            .links
            .iter()
            .map(|(_, link)| link.attempts)
            .sum();
        Seen {
            retry_s: (count >= RETRIES_MIN && count as f64 >= RETRY_SHARE * attempts as f64)
                .then(|| sum_s / count as f64),
            nodes,
            links,
            parents,
            flows,
            duration_s: self.stations.last_s - begin_s,
        }
    }

    /// The parent that a node's last DAO names.
    fn routed_by(&self, node: &String, nodes: &[String]) -> Option<usize> {
        let mut said = self
            .control
            .said
            .iter()
            .filter(|((_, what), _)| *what == "parent");
        said.find_map(|((target, _), said)| {
            let addr = target.split('/').next()?;
            let is_its = nodes.get(node_of(addr, nodes)?) == Some(node);
            is_its.then(|| node_of(&said.last, nodes))?
        })
    }

    /// The nodes that take part, the border router first: one that registers with nobody; of
    /// several, the one where packets of hosts beyond come and go, that others register with, and
    /// that gets most frames.
    fn ordered(&self) -> Vec<String> {
        let hears = |name: &str| {
            let links = self.stations.links.iter().filter(|((_, to), _)| to == name);
            links.map(|(_, link)| link.acknowledged).sum::<u64>()
        };
        let mut nodes: Vec<String> = self
            .stations
            .nodes
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| hears(name) > 0)
            .collect();
        let is_parent = |name: &String| {
            let mut all = self.control.parents.iter();
            all.any(|(_, parents)| parents.list.contains(name))
        };
        // In a mesh of RPL the root gives the DODAG its address.
        let roots = self
            .control
            .said
            .iter()
            .filter(|((_, what), _)| *what == "dodag");
        let roots: Vec<usize> = roots
            .filter_map(|(_, said)| node_of(&said.last, &nodes))
            .collect();
        let root_of_rpl = roots.first().and_then(|root| nodes.get(*root)).cloned();
        // Where packets of hosts beyond come from, and go to.
        let mut borders: BTreeMap<&str, i64> = BTreeMap::new();
        for ((addr, node), count) in self.flows.edges.iter() {
            if node_of(addr, &nodes).is_none() {
                *borders.entry(node).or_default() += count;
            }
        }
        let rank = |name: &String| {
            let registers = self.control.parents.get(name).is_some();
            (
                root_of_rpl.as_ref() != Some(name),
                registers,
                -borders.get(name.as_str()).unwrap_or(&0),
                !is_parent(name),
                u64::MAX - hears(name),
            )
        };
        if let Some(root) = nodes.iter().min_by_key(|name| rank(name)).cloned() {
            nodes.sort_by_key(|name| (*name != root, name.clone()));
        }
        nodes
    }
}

/// The parent of each node on the shortest way to the border router, number 0, over links that
/// carried a good part of the node's frames; of several, the one that carried most.
fn nearest(links: &[SeenLink]) -> BTreeMap<usize, usize> {
    let mut most: BTreeMap<usize, f64> = BTreeMap::new();
    for link in links {
        let frames = most.entry(link.from).or_default();
        *frames = frames.max(link.frames);
    }
    let carries = |link: &&SeenLink| {
        let most = most.get(&link.from).copied().unwrap_or(0.0);
        link.from != 0 && link.frames >= PART_MIN * most
    };
    let links: Vec<&SeenLink> = links.iter().filter(carries).collect();
    let mut parents = BTreeMap::new();
    let mut level = vec![0];
    while !level.is_empty() {
        let mut next: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
        let is_next = |link: &&&SeenLink| level.contains(&link.to);
        for link in links.iter().filter(is_next) {
            if !parents.contains_key(&link.from) {
                let best = next.entry(link.from).or_default();
                if link.frames > best.1 {
                    *best = (link.to, link.frames);
                }
            }
        }
        parents.extend(next.iter().map(|(node, (parent, _))| (*node, *parent)));
        level = next.into_keys().collect();
    }
    parents
}

/// Whether parents, that of node 1 first, lead to node 0 from everywhere.
fn is_tree(parents: &[usize]) -> bool {
    let above = |node: usize| parents.get(node.checked_sub(1)?).copied();
    (1..=parents.len()).all(|node| {
        let steps = std::iter::successors(Some(node), |node| above(*node));
        steps.take(parents.len() + 1).any(|node| node == 0)
    })
}

/// Frames and attempts in the pieces of time after the first flow's begin; `all` adds what the
/// sniffer missed.
fn settled(link: &Link, begin_s: f64, all: impl Fn(u64, u64) -> (f64, f64)) -> (f64, f64) {
    let later = link
        .spans
        .pieces()
        .filter(|([from_s, _], _)| *from_s >= begin_s + BEGIN_S);
    let (asked, retries) = later.fold((0, 0), |sum, (_, span)| {
        (sum.0 + span.asked, sum.1 + span.retries)
    });
    all(asked, retries)
}

/// Stretches in which a link was far worse than over all.
fn worse(link: &Link, begin_s: f64) -> Vec<(f64, f64, f64)> {
    let whole = link.acknowledged as f64 / link.attempts.max(1) as f64;
    let mut list = Vec::new();
    for ([from_s, to_s], span) in link.spans.pieces() {
        let (asked, retries) = (span.asked, span.retries);
        // Retries show lost attempts; a frame that was lost for good shows as many again.
        let attempts = asked + retries;
        let share = asked as f64 / attempts.max(1) as f64;
        if attempts >= 20 && share < 0.6 * whole {
            list.push((from_s - begin_s, to_s - begin_s, share));
        }
    }
    let row = &link.longest;
    if row.count >= 3 && row.to_s - row.from_s >= 1.0 {
        // It was mended between the last loss and the first frame that arrived.
        let to_s = f64::midpoint(row.to_s, row.until_s.max(row.to_s));
        let broken = (row.from_s - begin_s, to_s - begin_s, 0.0);
        list.retain(|(from_s, to_s, _)| *to_s <= broken.0 || *from_s >= broken.1);
        list.push(broken);
    }
    list
}

/// How long a flow opens its window, and the nodes find their pace.
const BEGIN_S: f64 = 4.0;
/// A link that carries less of a node's frames is no way that it takes.
const PART_MIN: f64 = 0.05;
/// Retries whose mean time says something: so many, and such a share of all attempts. A mote that
/// paces itself keeps clear of its neighbours, and the few retries that are left come at other
/// times.
const RETRY_SHARE: f64 = 0.15;
const RETRIES_MIN: u64 = 20;

/// The node that has an address, by its last seven bytes, which are its link address's own.
fn node_of(addr: &str, nodes: &[String]) -> Option<usize> {
    let addr: Ipv6Addr = addr.parse().ok()?;
    let octets = addr.octets();
    let has = |name: &String| {
        let bytes: Option<Vec<u8>> = name
            .split(':')
            .map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect();
        match bytes {
            Some(bytes) if bytes.len() == 8 => octets.ends_with(&bytes[1..]),
            _ => {
                let short = name
                    .strip_prefix("0x")
                    .and_then(|digits| u16::from_str_radix(digits, 16).ok());
                short.is_some_and(|short| {
                    octets.ends_with(&[0xff, 0xfe, 0, (short >> 8) as u8, short as u8])
                })
            }
        }
    };
    nodes.iter().position(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_follow_the_frames() {
        let link = |(from, to, frames)| SeenLink {
            from,
            to,
            frames,
            attempts: frames,
            settled: (frames, frames),
            worse: Vec::new(),
        };
        // Node 3 reached the border router by itself once, and sends by nodes 2 and 1.
        let carried = [
            (3, 2, 400.0),
            (3, 0, 1.0),
            (2, 1, 400.0),
            (2, 3, 200.0),
            (1, 0, 400.0),
            (1, 2, 200.0),
            (0, 1, 200.0),
        ];
        let found = nearest(&carried.map(link));
        assert_eq!(found, BTreeMap::from([(1, 0), (2, 1), (3, 2)]));
        assert!(is_tree(&[0, 1, 2]) && is_tree(&[]));
        assert!(!is_tree(&[0, 3, 2]) && !is_tree(&[0, 9]));
    }
}
