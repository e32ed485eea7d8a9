//! Measures of a mesh that forms itself: the time to form, the time to repair, and the cost.
//!
//! Purpose: what the experiments `mesh-*` measure, as functions of a network that runs. They read
//! the state of nodes, the air and the applications, and not that of the routing protocol.

use std::collections::BinaryHeap;
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::icmpv6::{self, Echo, Message};
use motet::wire::ipv6::{HEADER_LEN, Header, TrafficClass};

use crate::Arena;
use crate::air::census::Sent;
use crate::air::gains::LogDistance;
use crate::apps::App;
use crate::net::floor::{Floor, FloorOptions};
use crate::net::network::{Host, HostOptions, Network, NetworkOptions, NodeOptions, Tables};
use crate::net::outages::{Outages, Switch};
use crate::net::plan;
use crate::net::run::{self, Next};
use crate::net::topology::expected_transmissions;

/// A generated floor as a network whose host is outside the lab, for joining and repair. `None` if
/// no floor with these settings was found.
pub fn floor(motes: usize, seed: u64) -> Option<NetworkOptions> {
    let node = NodeOptions::new("");
    let options = FloorOptions {
        motes,
        hops: if motes < FEW { HOPS_FEW } else { HOPS_MANY },
        loss: WALLS,
        transmit_dbm: node.profile.transmit_dbm,
        noise_dbm: node.profile.noise_dbm(),
    };
    let floor = Floor::generate(&options, seed)?;
    let nodes = (0..=motes).map(|n| NodeOptions {
        tables: if n == 0 { Tables::RELAY } else { Tables::SMALL },
        ..NodeOptions::new(n.to_string())
    });
    Some(NetworkOptions {
        seed,
        hosts: vec![HostOptions {
            kind: Host::Outside,
            ..HostOptions::new("host")
        }],
        ..NetworkOptions::new(nodes.collect(), floor.gains)
    })
}

/// The time at which each mote first answered an echo request of the host, by node. `None` for the
/// border router, and for motes that had not answered by `limit`.
///
/// Each mote gets at most one request a second, and the mesh at most twenty, so that echoes hardly
/// load it. `outages` switches nodes off and on.
pub fn answers<'m>(
    network: &mut Network<'m>,
    arena: &'m Arena,
    outages: &mut Outages,
    limit: Instant,
) -> Vec<Option<Instant>> {
    answers_of(network, arena, outages, limit, |_, _| true)
}

/// As [`answers`], but a mote gets requests only once `is_worth_asking` is true for it.
pub fn answers_of<'m>(
    network: &mut Network<'m>,
    arena: &'m Arena,
    outages: &mut Outages,
    limit: Instant,
    is_worth_asking: impl Fn(&Network<'m>, usize) -> bool,
) -> Vec<Option<Instant>> {
    let nodes = network.mesh_nodes();
    let mut answered = vec![None; nodes];
    let mut asked: Vec<Option<Instant>> = vec![None; nodes];
    let mut next = network.world.now();
    // Identifies the echo requests of this call, so that late answers to earlier requests do not
    // count.
    let round = (next.as_micros() / 1_000) as u16;
    run::run(network, limit, |network| {
        outages.pass(network, arena, |_, _, _| {});
        let now = network.world.now();
        while let Some(packet) = network.world.take_packet() {
            let mote = (1..nodes).find(|mote| is_answer(&packet, network.addr(*mote), round));
            if let Some(mote) = mote {
                answered[mote].get_or_insert(now);
            }
        }
        if now >= next {
            next = now + ASK_EVERY;
            let is_due = |asked: &Option<Instant>| asked.is_none_or(|at| now >= at + ASK_AGAIN);
            let waiting = (1..nodes).filter(|mote| answered[*mote].is_none());
            let longest = waiting
                .filter(|mote| is_due(&asked[*mote]) && is_worth_asking(network, *mote))
                .min_by_key(|n| asked[*n]);
            if let Some(mote) = longest {
                asked[mote] = Some(now);
                let request = echo_request(network.addr(mote), round);
                network.world.inject_packet(&request);
            }
        }
        match answered.iter().skip(1).all(Option::is_some) {
            true => Next::Over,
            false => {
                let at = outages.next_at().map_or(next, |at| at.min(next));
                Next::At(at.min(now + LOOK_EVERY))
            }
        }
    });
    answered
}

/// An echo request of the host.
pub(super) fn echo_request(to: Ipv6Addr, round: u16) -> Vec<u8> {
    let echo = Echo {
        identifier: round,
        sequence: 0,
        data: &[],
    };
    let mut packet = vec![0; HEADER_LEN + icmpv6::HEADER_LEN];
    let (header, message) = packet.split_at_mut(HEADER_LEN);
    let fits = "the packet is as long as both";
    let len = Message::EchoRequest(echo).emit(message).expect(fits);
    icmpv6::fill_checksum(&plan::HOST, &to, &mut message[..len]);
    let ipv6 = Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: len as u16,
        next_header: icmpv6::NEXT_HEADER,
        hop_limit: 64,
        src: plan::HOST,
        dst: to,
    };
    ipv6.emit(header).expect(fits);
    packet
}

fn is_answer(packet: &[u8], from: Ipv6Addr, round: u16) -> bool {
    echo_reply(packet) == Some((from, round))
}

/// The mote that sent an echo reply, and the identifier of its request. `None`: `packet` is no echo
/// reply.
pub(super) fn echo_reply(packet: &[u8]) -> Option<(Ipv6Addr, u16)> {
    let (header, message) = Header::parse(packet).ok()?;
    match Message::parse(message) {
        Ok(Message::EchoReply(echo)) => Some((header.src, echo.identifier)),
        _ => None,
    }
}

/// How a transfer outlived that its mote's parent was switched off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repair {
    /// From then until the receiver read a byte that the sender's TCP did not have at that
    /// moment, s; none: not by the limit.
    pub seconds: Option<f64>,
    /// Connections that were lost.
    pub connections_lost: u32,
}

/// Switches the parent of `mote` off at once and for good, and watches the receiver until `limit`.
/// The first application of `mote` must be a [`Sender`](crate::apps::Sender), that of `receiver`
/// the matching [`Receiver`](crate::apps::Receiver). `None` if the parent is the border router, or
/// unknown.
pub fn repair<'m>(
    network: &mut Network<'m>,
    [mote, receiver]: [usize; 2],
    limit: Instant,
) -> Option<Repair> {
    let parent = crate::net::moves::parent(network, mote).filter(|parent| *parent > 0)?;
    let App::Sender(sender) = network.world.app(mote) else {
        return None;
    };
    let taken = sender.taken();
    let from = network.world.now();
    network.switch_off(parent);
    let has_more = |network: &Network<'m>| match network.world.app(receiver) {
        App::Receiver(receiver) => receiver.received > taken,
        _ => false,
    };
    let moved = run::run(network, limit, |network| match has_more(network) {
        true => Next::Over,
        false => Next::Event,
    });
    let seconds = network.world.now().since(from).as_micros() as f64 / 1e6;
    let progress = network.world.app(mote).progress()?;
    let is_lost = progress.closed && progress.finished.is_none();
    Some(Repair {
        seconds: moved.then_some(seconds),
        connections_lost: progress.lost + u32::from(is_lost),
    })
}

/// Reboots the border router for a second, and gives the time from its return until the last mote
/// has answered the host, s; none: not by `limit`.
pub fn reboot<'m>(network: &mut Network<'m>, arena: &'m Arena, limit: Instant) -> Option<f64> {
    let mut outages = Outages::default();
    let back = network.world.now() + Duration::from_secs(1);
    network.switch_off(0);
    outages.add(back, 0, Switch::On);
    network.world.run_until(back);
    let answered = answers(network, arena, &mut outages, limit);
    last(&answered).map(|at| at.since(back).as_micros() as f64 / 1e6)
}

/// The last of the motes' answers, if all have answered.
pub fn last(answered: &[Option<Instant>]) -> Option<Instant> {
    let all: Option<Vec<Instant>> = answered.iter().skip(1).copied().collect();
    all?.into_iter().max()
}

/// The expected transmissions on all motes' paths to the border router by these parents, over
/// those on the best paths, both by the links' true loss; none where a path does not lead there.
pub fn etx_ratio(options: &NetworkOptions, parents: &[Option<usize>]) -> Option<f64> {
    let (best, _) = best_tree(options);
    let mut sums = [0.0, 0.0];
    for (mote, best) in best.iter().enumerate().skip(1) {
        let mut at = mote;
        let mut path = 0.0;
        for _ in 0..options.nodes.len() {
            let Some(parent) = parents.get(at).copied().flatten() else {
                break;
            };
            path += link_etx(options, at, parent)?;
            at = parent;
        }
        if at != 0 {
            return None;
        }
        sums[0] += path;
        sums[1] += best;
    }
    Some(sums[0] / sums[1])
}

/// Motes that good links lead to from the border router whichever one other mote is off.
pub fn doubly_reached(options: &NetworkOptions) -> Vec<usize> {
    let nodes = options.nodes.len();
    let neighbours: Vec<Vec<usize>> = (0..nodes)
        .map(|node| {
            let heard = options.gains.listeners(node).iter().map(|gain| gain.to);
            let is_good =
                |to: &usize| link_etx(options, node, *to).is_some_and(|etx| etx < GOOD_ETX);
            heard.filter(is_good).collect()
        })
        .collect();
    let mut safe = vec![true; nodes];
    for off in 1..nodes {
        let mut reached = vec![false; nodes];
        (reached[0], reached[off]) = (true, true);
        let mut frontier = vec![0];
        while let Some(node) = frontier.pop() {
            for to in &neighbours[node] {
                if !std::mem::replace(&mut reached[*to], true) {
                    frontier.push(*to);
                }
            }
        }
        for (safe, reached) in safe.iter_mut().zip(reached) {
            *safe &= reached;
        }
    }
    (1..nodes).filter(|node| safe[*node]).collect()
}

/// Expected transmissions from a node to its neighbour; none where neither hears the other.
fn link_etx(options: &NetworkOptions, from: usize, to: usize) -> Option<f64> {
    let (there, back) = (options.gains.get(from, to)?, options.gains.get(to, from)?);
    let end = |node: usize| options.nodes.get(node).map(NodeOptions::station);
    Some(expected_transmissions(
        [&end(from)?, &end(to)?],
        there,
        back,
        0.0,
    ))
}

/// The least sum of expected transmissions from each node to the border router, and the parent
/// by which it has it.
fn best_tree(options: &NetworkOptions) -> (Vec<f64>, Vec<Option<usize>>) {
    let mut best = vec![f64::INFINITY; options.nodes.len()];
    let mut parents = vec![None; options.nodes.len()];
    best[0] = 0.0;
    let mut frontier = BinaryHeap::from([Reached { sum: 0.0, node: 0 }]);
    while let Some(Reached { sum, node: parent }) = frontier.pop() {
        if sum > best[parent] {
            continue;
        }
        for gain in options.gains.listeners(parent) {
            let Some(etx) = link_etx(options, gain.to, parent) else {
                continue;
            };
            if sum + etx < best[gain.to] {
                best[gain.to] = sum + etx;
                parents[gain.to] = Some(parent);
                frontier.push(Reached {
                    sum: sum + etx,
                    node: gain.to,
                });
            }
        }
    }
    (best, parents)
}

/// A node and what a way to it costs; the nearest is the greatest.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Reached {
    sum: f64,
    node: usize,
}

impl Eq for Reached {}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let nearer = other.sum.total_cmp(&self.sum);
        nearer.then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The frames that all mesh nodes have sent, by node; the world must have taken a census.
pub fn sent(network: &Network<'_>) -> Vec<Sent> {
    let nodes = 0..network.mesh_nodes();
    nodes.map(|node| network.world.sent(node)).collect()
}

/// Air time of control frames since `before`, of motes times the time since then.
pub fn control_airtime(network: &Network<'_>, before: &[Sent], span: Duration) -> f64 {
    let now = sent(network);
    let control = now.iter().zip(before).map(|(now, before)| {
        let [now, before] = [now, before].map(|sent| sent.control_time.as_micros());
        now - before
    });
    let motes = network.mesh_nodes().saturating_sub(1).max(1) as f64;
    control.sum::<u64>() as f64 / (motes * span.as_micros() as f64)
}

/// Bytes that routing added to a packet of a user on the air since `before`, in the mean over the
/// frames that begin one, each attempt counted; none where there was none.
pub fn routing_bytes(network: &Network<'_>, before: &[Sent]) -> Option<f64> {
    let now = sent(network);
    let since = |of: fn(&Sent) -> u64| -> u64 {
        let both = now.iter().zip(before);
        both.map(|(now, before)| of(now) - of(before)).sum()
    };
    let packets = since(|sent| sent.packets);
    (packets > 0).then(|| since(|sent| sent.routing_bytes) as f64 / packets as f64)
}

/// Walls in the way, and antennas that are not alike.
const WALLS: LogDistance = LogDistance {
    shadowing_sigma_db: 4.0,
    node_sigma_db: 1.0,
    ..LogDistance::OFFICE
};

/// Hops of the deepest mote below so many motes, and from there on.
const FEW: usize = 100;
const HOPS_FEW: usize = 4;
const HOPS_MANY: usize = 6;

/// The expected transmissions (ETX) of a link that a path may count on, at most.
const GOOD_ETX: f64 = 2.0;

/// Time between two echo requests to any motes, and between two to one mote.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How exactly answers are timed.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
