//! Five nodes that form a mesh by RPL, among them a root, while an input forges messages, cuts
//! links, reports frames and reboots nodes in any order.
//!
//! The air is simple: a message arrives within milliseconds, or not at all. Invariants after each
//! step: a parent is a proven candidate that is nearer to the root; each dropped message is
//! counted; a node sends at most `SENT_PER_SECOND_MAX` messages a second; and a packet on its way
//! up is delivered or dropped, whatever was forged. A packet that was dropped for a loop ends the
//! loop within `CALM`, the time after which a node under attack reacts again.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use motet::ip::Step;
use motet::random::Rng;
use motet::rpl::{
    Candidate, Config, ControlMessage, Destination, FrameReport, INFINITE_RANK, Leaf, MessageDrop,
    MessageOutcome, Root, Rpl, RplAction, RplRole, routes,
};
use motet::time::{Duration, Instant};
use motet::wire::cursor::Writer;
use motet::wire::rpl_option::Rpi;

use crate::input::Input;
use crate::wire::MESH;

const NODES: usize = 5;

/// The most messages that a node sends within a second: replies to eight requests, which it may
/// send at once, and the messages of a mote that has just found its place.
const SENT_PER_SECOND_MAX: usize = 40;

/// After this time a node that was under attack may react to a contradiction again.
const CALM: Duration = Duration::from_secs(5);

/// Each packet that goes round ends one loop. Nodes that have lost the root may make another one
/// with higher ranks, until these have grown by as much as the DODAG allows.
const ROUNDS_MAX: usize = 12;

/// Runs a mesh through a program.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut candidates = vec![[const { Candidate::EMPTY }; 8]; NODES];
    let seed = u64::from(input.u8());
    let nodes = candidates.iter_mut().enumerate().map(|(n, memory)| Node {
        rpl: started(
            n,
            memory,
            Instant::ORIGIN,
            &mut Rng::from_seed([seed, n as u64]),
        ),
        rng: Rng::from_seed([seed, 100 + n as u64]),
        sent_at: VecDeque::new(),
    });
    let mut mesh = Mesh {
        nodes: nodes.collect(),
        // A chain with one way around its middle.
        links: [0b0_0010, 0b0_1101, 0b1_0010, 0b1_0010, 0b0_1100],
        now: Instant::ORIGIN,
        air: VecDeque::new(),
        said: VecDeque::new(),
        steps: Vec::new(),
    };
    mesh.run_for(Duration::from_secs(u64::from(input.u8() & 63)));
    while !input.is_empty() {
        mesh.step(&mut input);
        mesh.run_for(Duration::ZERO);
        mesh.check();
    }
    mesh.run_for(Duration::from_secs(30));
    mesh.check();
}

/// A node that has just been switched on; 0 is the root.
fn started<'m>(n: usize, memory: &'m mut [Candidate], now: Instant, rng: &mut Rng) -> Rpl<'m> {
    let role = match n {
        0 => RplRole::Root(Root::new(MESH)),
        _ => RplRole::Router,
    };
    let mut rpl = Rpl::new(&Config { iid: iid(n), role }, memory);
    rpl.start(now, rng);
    rpl
}

/// The interface identifier of node `n`; from [`NODES`] on, of a stranger.
fn iid(n: usize) -> [u8; 8] {
    [0, 0, 0, 0xff, 0xfe, 0, 0, n as u8 + 1]
}

fn node_of(iid: [u8; 8]) -> Option<usize> {
    (0..NODES).find(|n| self::iid(*n) == iid)
}

fn link_local(n: usize) -> Ipv6Addr {
    with_iid(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), n)
}

fn with_iid(prefix: Ipv6Addr, n: usize) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.to_bits() >> 64 << 64 | u128::from(u64::from_be_bytes(iid(n))))
}

struct Node<'m> {
    rpl: Rpl<'m>,
    rng: Rng,
    /// When the node sent its last messages.
    sent_at: VecDeque<Instant>,
}

/// A message on its way.
struct Packet {
    at: Instant,
    to: usize,
    src: Ipv6Addr,
    to_all: bool,
    bytes: Vec<u8>,
}

struct Mesh<'m> {
    nodes: Vec<Node<'m>>,
    /// For each node the nodes that hear it, one bit each.
    links: [u8; NODES],
    now: Instant,
    air: VecDeque<Packet>,
    /// The last messages that nodes have sent, to be forged.
    said: VecDeque<Vec<u8>>,
    /// The root's graph of routes, step by step.
    steps: Vec<Step>,
}

impl Mesh<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let (n, other) = (usize::from(op >> 3) % NODES, input.u8());
        // Also two that are no nodes of the mesh.
        let peer = usize::from(other) % (NODES + 2);
        match op & 7 {
            0 => {
                let code = input.u8();
                let body = input.block();
                let from = self.source(peer, other);
                self.hear(
                    n,
                    from,
                    other & 128 != 0,
                    &[&[155, code, 0, 0], body].concat(),
                );
            }
            1 => self.run_for(Duration::from_millis(u64::from(input.u16()))),
            2 => {
                let peer = usize::from(other) % NODES;
                self.links[n] ^= 1 << peer;
                // Most links go both ways.
                if other & 64 == 0 {
                    self.links[peer] ^= 1 << n;
                }
            }
            3 => {
                let drawn = input.u8();
                let frame = FrameReport {
                    attempts: drawn & 15,
                    unsent: drawn >> 6,
                    acknowledged: (drawn & 32 == 0).then_some(drawn & 16 != 0),
                };
                let now = self.now;
                self.nodes[n].rpl.on_sent(iid(peer), frame, now);
            }
            4 => self.reboot(n),
            5 => self.send_up(n),
            6 => self.command(n, other, peer),
            _ => self.forge(n, (peer, other), input),
        }
    }

    /// The link-local address of a neighbour, or another of its addresses.
    fn source(&self, peer: usize, other: u8) -> Ipv6Addr {
        match other & 64 {
            0 => link_local(peer),
            _ => with_iid(MESH, peer),
        }
    }

    /// Delivers to a node a copy of an earlier message of another node, with some bytes changed.
    fn forge(&mut self, n: usize, (peer, other): (usize, u8), input: &mut Input<'_>) {
        let pick = usize::from(input.u8());
        let Some(mut bytes) = self.said.get(pick % self.said.len().max(1)).cloned() else {
            return;
        };
        for _ in 0..input.u8() & 3 {
            let (at, value) = (usize::from(input.u8()), input.u8());
            let len = bytes.len();
            bytes[at % len] = value;
        }
        let from = self.source(peer, other);
        self.hear(n, from, other & 128 != 0, &bytes);
    }

    fn command(&mut self, n: usize, what: u8, peer: usize) {
        let now = self.now;
        let rpl = &mut self.nodes[n].rpl;
        match what >> 5 {
            0 => rpl.repair(),
            1 if rpl.can_advertise_leaf() => {
                let (iid, lifetime_min) = (iid(NODES + peer), u16::from(what & 3));
                let leaf = Leaf {
                    iid,
                    sequence: what,
                    lifetime_min,
                };
                rpl.advertise_leaf(leaf, now);
            }
            1 => {}
            2 => rpl.leave(),
            3 => rpl.on_contradiction(iid(peer), false, now),
            4 => rpl.on_contradiction(iid(peer), true, now),
            _ => rpl.refresh_routes(),
        }
    }

    fn reboot(&mut self, n: usize) {
        let Node { rpl, rng, .. } = &mut self.nodes[n];
        let (iid, role) = (iid(n), RplRole::Leaf);
        let nobody = Rpl::new(&Config { iid, role }, &mut []);
        let memory = std::mem::replace(rpl, nobody).into_memory();
        *rpl = started(n, memory, self.now, rng);
        if n == 0 {
            self.steps.clear();
        }
    }

    /// Gives a node a message, and checks that a drop is counted.
    fn hear(&mut self, n: usize, from: Ipv6Addr, to_all: bool, bytes: &[u8]) {
        let now = self.now;
        let Node { rpl, rng, .. } = &mut self.nodes[n];
        let Some((head, body)) = bytes.split_first_chunk::<4>() else {
            return;
        };
        let counts = counts_of(rpl);
        let heard = rpl.on_message(from, to_all, (head[1], body), now, rng);
        let pairs = counts_of(rpl).into_iter().zip(counts);
        let changes: u16 = pairs
            .map(|(after, before)| after.wrapping_sub(before))
            .sum();
        match heard {
            Err(MessageDrop::Malformed(_)) => assert_eq!(changes, 0),
            Err(reason) => assert_eq!(changes, 1, "{reason:?} is not counted"),
            Ok(MessageOutcome::Done) => assert_eq!(changes, 0),
            Ok(MessageOutcome::Dao(dao)) => {
                assert_eq!(n, 0, "a mote that keeps routes");
                let Some(dodag) = rpl.dodag().copied() else {
                    return;
                };
                for route in routes(&dao, &dodag).take(64) {
                    self.steps.truncate(16);
                    self.steps.push(Step {
                        child: low(&route.target),
                        parent: low(&route.parent),
                        sequence: route.sequence,
                        is_leaf: route.is_external,
                        is_lost: false,
                        losses: 0,
                        via: low(&from),
                        until: now + route.lifetime,
                    });
                }
                if let Some(answer) = Rpl::acknowledge(&dao, 0) {
                    self.send(0, Destination::Node(from), answer);
                }
            }
        }
    }

    /// Puts a message of a node on the air, and reports the outcome of its frame.
    fn send(&mut self, n: usize, to: Destination, message: ControlMessage) {
        let node = &mut self.nodes[n];
        let mut out = [0; 300];
        let mut w = Writer::new(&mut out);
        if node.rpl.emit(message, &mut w).is_err() {
            return;
        }
        let len = w.written();
        let bytes = out[..len].to_vec();
        node.sent_at.push_back(self.now);
        while node.sent_at.len() > SENT_PER_SECOND_MAX {
            let first = node.sent_at.pop_front().expect("not empty");
            let span = self.now.since(first);
            assert!(span >= Duration::from_secs(1), "node {n} floods: {span:?}");
        }
        self.said.push_back(bytes.clone());
        if self.said.len() > 8 {
            self.said.pop_front();
        }
        let mut put = |to, src, to_all| {
            self.air.push_back(Packet {
                at: self.now + Duration::from_millis(5),
                to,
                src,
                to_all,
                bytes: bytes.clone(),
            });
        };
        match to {
            Destination::All => {
                for to in (0..NODES).filter(|to| self.links[n] >> to & 1 == 1 && *to != n) {
                    put(to, link_local(n), true);
                }
            }
            Destination::Neighbour(neighbour) => {
                let to = node_of(neighbour);
                let to = to.filter(|to| self.links[n] >> to & 1 == 1 && *to != n);
                if let Some(to) = to {
                    put(to, link_local(n), false);
                }
                let is_acknowledged = to.is_some_and(|to| self.links[to] >> n & 1 == 1);
                let attempts = if is_acknowledged { 1 } else { 8 };
                let frame = FrameReport::of(attempts, is_acknowledged);
                self.nodes[n].rpl.on_sent(neighbour, frame, self.now);
            }
            Destination::Node(addr) => {
                let src = self.nodes[n].rpl.address();
                if let (Some(to), Some(src), 0) = (node_of(low(&addr)), src, n) {
                    put(to, src, false);
                }
            }
            Destination::Root => {
                let rpl = &self.nodes[n].rpl;
                let root = rpl.dodag().and_then(|dodag| node_of(low(&dodag.id)));
                if let (Some(to @ 0), Some(src)) = (root, rpl.address()) {
                    put(to, src, false);
                }
            }
        }
    }

    /// Lets time go by.
    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            for n in 0..NODES {
                self.poll(n);
            }
            let due = self
                .nodes
                .iter()
                .filter_map(|node| node.rpl.next_deadline());
            let next = due.chain(self.air.front().map(|packet| packet.at)).min();
            let Some(next) = next.filter(|at| *at <= end) else {
                break;
            };
            assert!(next > self.now || !self.air.is_empty(), "it wakes at once");
            self.now = self.now.max(next);
            while let Some(packet) = self.air.pop_front_if(|packet| packet.at <= self.now) {
                self.hear(packet.to, packet.src, packet.to_all, &packet.bytes);
                self.poll(packet.to);
            }
        }
        self.now = end;
    }

    fn poll(&mut self, n: usize) {
        for round in 0.. {
            assert!(round < 100, "node {n} never rests");
            let Node { rpl, rng, .. } = &mut self.nodes[n];
            if rpl.next_deadline().is_none_or(|at| at > self.now) {
                return;
            }
            match rpl.poll(self.now, rng) {
                Some(RplAction::Send { to, message }) => self.send(n, to, message),
                Some(RplAction::Parent(parent)) => assert_eq!(parent, rpl.parent()),
                Some(RplAction::Prefix | RplAction::Leaf(..) | RplAction::LeavesLost) => {}
                None => {
                    let next = rpl.next_deadline();
                    assert!(
                        next.is_none_or(|at| at > self.now),
                        "node {n} wakes at once"
                    );
                    return;
                }
            }
        }
    }

    /// Sends a packet up from a node; where it goes round in a loop, that is gone when the nodes
    /// may react again.
    fn send_up(&mut self, n: usize) {
        for _ in 0..ROUNDS_MAX {
            if !self.goes_round(n) {
                return;
            }
            self.run_for(CALM);
        }
        let root = Root::new(MESH);
        let is_forged = |node: &Node<'_>| {
            let dodag = node.rpl.dodag();
            dodag.is_some_and(|dodag| dodag.configuration != root.configuration)
        };
        // A node that has accepted a forged configuration may allow higher ranks, and so count up
        // for longer.
        let counts_on = self.nodes.iter().any(is_forged);
        assert!(
            counts_on || !self.goes_round(n),
            "a loop outlives its packets"
        );
    }

    /// Whether a packet is dropped for a loop.
    fn goes_round(&mut self, from: usize) -> bool {
        let (mut at, mut option) = (from, None::<Rpi>);
        for _ in 0..4 * NODES {
            let node = &self.nodes[at];
            let Some((parent, dodag)) = node.rpl.parent().zip(node.rpl.dodag()) else {
                return false;
            };
            let (unit, instance) = (dodag.configuration.min_hop_rank_increase, dodag.instance);
            let mut sent = option.unwrap_or_default();
            (sent.instance, sent.sender_rank) =
                (instance, node.rpl.dag_rank().saturating_mul(unit));
            let to = node_of(parent).filter(|to| self.links[at] >> to & 1 == 1);
            let now = self.now;
            let is_acknowledged = to.is_some_and(|to| self.links[to] >> at & 1 == 1);
            let attempts = 1 + 7 * u8::from(!is_acknowledged);
            let frame = FrameReport::of(attempts, is_acknowledged);
            self.nodes[at].rpl.on_sent(parent, frame, now);
            self.poll(at);
            let Some(to) = to.filter(|to| *to != 0) else {
                return false;
            };
            let rpl = &mut self.nodes[to].rpl;
            let Some(dodag) = rpl.dodag().filter(|dodag| dodag.instance == instance) else {
                return false;
            };
            let unit = dodag.configuration.min_hop_rank_increase;
            let by_parent = rpl.parent() == Some(iid(at));
            if rpl.parent().is_none() {
                return false;
            }
            if by_parent || sent.contradicts(rpl.dag_rank(), unit) {
                rpl.on_contradiction(iid(at), sent.rank_error, now);
                let is_over = by_parent || sent.rank_error;
                sent.rank_error = true;
                self.poll(to);
                if is_over {
                    return true;
                }
            }
            (at, option) = (to, Some(sent));
        }
        panic!("a packet goes round for ever");
    }

    fn check(&self) {
        for (n, node) in self.nodes.iter().enumerate() {
            let rpl = &node.rpl;
            let Some(parent) = rpl.parent() else {
                assert!(n == 0 || rpl.rank() == INFINITE_RANK, "node {n} by nobody");
                continue;
            };
            assert_ne!(n, 0, "a root with a parent");
            let candidate = rpl.candidates().find(|it| it.iid() == parent);
            let candidate = candidate.expect("a parent that is no candidate");
            assert!(candidate.is_proven(), "a parent that never answered");
            assert!(candidate.rank() < rpl.rank(), "a parent further down");
        }
    }
}

fn low(addr: &Ipv6Addr) -> [u8; 8] {
    (addr.to_bits() as u64).to_be_bytes()
}

fn counts_of(rpl: &Rpl<'_>) -> [u16; REASONS.len()] {
    REASONS.map(|reason| rpl.dropped(reason))
}

/// Each that a message may be dropped for, but for those that do not parse.
const REASONS: [MessageDrop; MessageDrop::COUNT - 1] = [
    MessageDrop::BadSource,
    MessageDrop::Unwanted,
    MessageDrop::OtherInstance,
    MessageDrop::OtherDodag,
    MessageDrop::BadRank,
    MessageDrop::SecondRoot,
    MessageDrop::OldVersion,
    MessageDrop::StrangeVersion,
    MessageDrop::NoConfiguration,
    MessageDrop::BadConfiguration,
    MessageDrop::BadMode,
    MessageDrop::NoRoom,
    MessageDrop::TooMany,
    MessageDrop::BadTarget,
    MessageDrop::OldSequence,
    MessageDrop::GraphFull,
    MessageDrop::StrangeWay,
];

/// Programs to start from.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let wait = |ms: u16| [[1, 0].as_slice(), &ms.to_be_bytes()].concat();
    let op = |kind: u8, n: u8, rest: &[u8]| [&[kind | n << 3], rest].concat();
    let up = |n: u8| op(5, n, &[0]);
    let flood: Vec<_> = (0..40).map(|_| op(0, 1, &[5, 0, 2, 0, 0])).collect();
    // A rank of 129 in node 4's name, which is below node 1, then a packet.
    let forged = op(7, 1, &[4, 7, 3, 6, 0, 7, 129, 9, 240]);
    [
        vec![wait(20_000), up(4), op(2, 0, &[1]), wait(60_000), up(4)],
        vec![op(4, 0, &[0]), wait(30_000), op(4, 2, &[0]), up(3), up(4)],
        vec![wait(9_000), forged.clone(), up(1), up(4), forged, up(4)],
        vec![flood.concat(), wait(500), flood.concat(), up(2)],
        vec![op(6, 0, &[0]), wait(5_000), op(6, 3, &[64]), up(4)],
        vec![op(3, 4, &[3, 31]), op(3, 4, &[2, 8]), wait(999), up(4)],
    ]
    .map(|program| [&[1, 40][..], &program.concat()].concat())
    .to_vec()
}
