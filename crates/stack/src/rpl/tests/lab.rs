//! Nodes joined by a lossy graph, in virtual time: no radio, no collisions, no queues.

use std::boxed::Box;
use std::collections::{BTreeMap, BinaryHeap};
use std::vec;
use std::vec::Vec;

use core::cmp::Reverse;
use core::net::Ipv6Addr;

use crate::random::Rng;
use crate::rpl::iid::Iid;
use crate::rpl::{
    Candidate, Config, ControlMessage, Destination, FrameReport, INFINITE_RANK, MessageDrop,
    MessageOutcome, Root, Route, Rpl, RplAction, RplRole, routes,
};
use crate::time::{Duration, Instant};
use crate::wire::cursor::Writer;
use crate::wire::lollipop;
use crate::wire::rpl_option::Rpi;

pub(super) const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0);

/// As the MAC: attempts of a frame, and the time of one.
const ATTEMPTS: u8 = 8;
const ATTEMPT_US: u64 = 8_000;

pub(super) struct Lab {
    pub(super) nodes: Vec<Node>,
    /// The chance that a frame of one arrives at the other.
    pub(super) links: Vec<Vec<f64>>,
    pub(super) now: Instant,
    pub(super) graph: BTreeMap<Ipv6Addr, Route>,
    pub(super) loops: u32,
    rng: Rng,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    count: u64,
}

pub(super) struct Node {
    pub(super) rpl: Rpl<'static>,
    pub(super) is_on: bool,
    pub(super) parent: Option<usize>,
    pub(super) prefix: Option<Ipv6Addr>,
    pub(super) parent_changes: u32,
    /// Frames sent, each attempt counted.
    pub(super) frames: u32,
    pub(super) messages: Vec<(Instant, RplAction)>,
    /// Packets with data that arrived, at the root.
    pub(super) arrived: u32,
    role: RplRole,
    rng: Rng,
    boots: u64,
    woken: Option<Instant>,
}

enum Event {
    Wake {
        node: usize,
    },
    Arrives {
        at: usize,
        from: usize,
        to_all: bool,
        packet: Packet,
    },
    Sent {
        by: usize,
        boots: u64,
        to: usize,
        attempts: u8,
        acknowledged: bool,
    },
}

#[derive(Clone)]
struct Packet {
    src: Ipv6Addr,
    /// `None`: a message of the link.
    up: Option<Rpi>,
    down: Vec<usize>,
    /// An RPL control message; empty: a packet with data.
    bytes: Vec<u8>,
    hops: u8,
}

pub(super) fn iid(node: usize) -> [u8; 8] {
    [0, 0, 0, 0xff, 0xfe, 0, (node >> 8) as u8, node as u8]
}

pub(super) fn index(iid: [u8; 8]) -> usize {
    usize::from(iid[6]) << 8 | usize::from(iid[7])
}

pub(super) fn addr(node: usize) -> Ipv6Addr {
    Iid::of(&iid(node)).within(&PREFIX)
}

pub(super) fn link_local(node: usize) -> Ipv6Addr {
    Iid::of(&iid(node)).within(&Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0))
}

impl Lab {
    /// Node 0 is the root, the other nodes are routers; all are off.
    pub(super) fn new(links: Vec<Vec<f64>>, seed: u64) -> Self {
        let roles = (0..links.len()).map(|node| match node {
            0 => RplRole::Root(Root::new(PREFIX)),
            _ => RplRole::Router,
        });
        let roles = roles.collect();
        Self::with_roles(links, roles, seed)
    }

    pub(super) fn with_roles(links: Vec<Vec<f64>>, roles: Vec<RplRole>, seed: u64) -> Self {
        let mut rng = Rng::from_seed([seed, 0x6c61_6200]);
        let nodes = roles.into_iter().enumerate().map(|(node, role)| Node {
            rpl: rpl(node, role, 8),
            is_on: false,
            parent: None,
            prefix: None,
            parent_changes: 0,
            frames: 0,
            messages: Vec::new(),
            arrived: 0,
            role,
            rng: rng.derive(),
            boots: 0,
            woken: None,
        });
        let nodes = nodes.collect();
        Self {
            nodes,
            links,
            now: Instant::ORIGIN,
            graph: BTreeMap::new(),
            loops: 0,
            rng,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            count: 0,
        }
    }

    /// Switches a node on, with empty memory.
    pub(super) fn switch_on(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        it.rpl = rpl(node, it.role, 8);
        it.rng = self.rng.derive();
        it.is_on = true;
        it.boots += 1;
        it.parent = None;
        it.prefix = None;
        it.woken = None;
        it.rpl.start(self.now, &mut it.rng);
        if node == 0 {
            self.graph.clear();
        }
        self.poll(node);
    }

    pub(super) fn switch_off(&mut self, node: usize) {
        self.nodes[node].is_on = false;
    }

    pub(super) fn switch_all_on(&mut self) {
        for node in 0..self.nodes.len() {
            self.switch_on(node);
        }
    }

    pub(super) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        self.run_while(until, |_| true);
    }

    /// Runs while `goes_on`, at most until then; whether it ceased to before.
    pub(super) fn run_while(&mut self, until: Instant, goes_on: impl Fn(&Self) -> bool) -> bool {
        while let Some(Reverse((at, key))) = self.queue.peek().copied() {
            if !goes_on(self) {
                return true;
            }
            if at > until.as_micros() {
                break;
            }
            self.queue.pop();
            self.now = Instant::from_micros(at);
            let event = self.events.remove(&key).expect("queued once");
            self.happen(event);
        }
        self.now = until;
        !goes_on(self)
    }

    /// Sends a packet with data from a mote to the root.
    pub(super) fn send_up(&mut self, from: usize) {
        let packet = Packet {
            src: addr(from),
            up: Some(Rpi::default()),
            down: Vec::new(),
            bytes: Vec::new(),
            hops: 0,
        };
        self.forward_up(from, packet);
    }

    /// Motes that a path of good links joins to the root.
    pub(super) fn joinable(&self) -> Vec<usize> {
        let best = self.best_etx();
        let motes = 1..self.nodes.len();
        motes.filter(|node| best[*node].is_finite()).collect()
    }

    /// Whether the root can send to a mote, by a path whose links work.
    pub(super) fn reaches(&self, mote: usize) -> bool {
        self.path_to(addr(mote)).is_some_and(|path| {
            let mut from = 0;
            path.iter().all(|to| {
                let works = self.nodes[*to].is_on && self.links[from][*to] > 0.0;
                from = *to;
                works
            })
        })
    }

    /// Over which nodes the root sends to `target`.
    pub(super) fn path_to(&self, target: Ipv6Addr) -> Option<Vec<usize>> {
        let mut path = vec![];
        let mut at = target;
        while at != addr(0) {
            path.push(index(Iid::of_addr(&at).octets()));
            let route = self.graph.get(&at)?;
            if path.len() > self.nodes.len() {
                return None;
            }
            at = route.parent;
        }
        path.reverse();
        Some(path)
    }

    /// ETX of each node's path along the parents, by the true loss of the links; `None`: no path.
    pub(super) fn path_etx(&self, node: usize) -> Option<f64> {
        let (mut at, mut sum) = (node, 0.0);
        for _ in 0..self.nodes.len() {
            if at == 0 {
                return Some(sum);
            }
            let parent = self.nodes[at].parent.filter(|_| self.nodes[at].is_on)?;
            sum += self.etx(at, parent);
            at = parent;
        }
        None
    }

    /// ETX of each node's best path by links of at most 4.
    pub(super) fn best_etx(&self) -> Vec<f64> {
        let mut best = vec![f64::INFINITY; self.nodes.len()];
        best[0] = 0.0;
        for _ in 0..self.nodes.len() {
            for a in 0..best.len() {
                for b in 0..best.len() {
                    if self.links[a][b] * self.links[b][a] > 0.25
                        && self.nodes[a].is_on
                        && self.nodes[b].is_on
                    {
                        best[a] = best[a].min(best[b] + self.etx(a, b));
                    }
                }
            }
        }
        best
    }

    /// Sum over the motes of the ETX of their paths, to that of the best tree.
    pub(super) fn etx_ratio(&self) -> f64 {
        let best = self.best_etx();
        let motes = 1..self.nodes.len();
        let are = motes
            .clone()
            .map(|node| self.path_etx(node).expect("a path"));
        are.sum::<f64>() / motes.map(|node| best[node]).sum::<f64>()
    }

    /// Nodes whose parents lead back to themselves.
    pub(super) fn in_loops(&self) -> Vec<usize> {
        let leads_back = |node: &usize| {
            let mut at = *node;
            for _ in 0..self.nodes.len() {
                match self.nodes[at].parent.filter(|_| self.nodes[at].is_on) {
                    Some(parent) if parent == *node => return true,
                    Some(parent) => at = parent,
                    None => return false,
                }
            }
            false
        };
        (1..self.nodes.len()).filter(leads_back).collect()
    }

    fn etx(&self, a: usize, b: usize) -> f64 {
        1.0 / (self.links[a][b] * self.links[b][a])
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((at.as_micros(), self.count)));
        self.events.insert(self.count, event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake { node } => {
                if self.nodes[node].woken == Some(self.now) {
                    self.nodes[node].woken = None;
                    self.poll(node);
                }
            }
            Event::Sent {
                by,
                boots,
                to,
                attempts,
                acknowledged,
            } => {
                let node = &mut self.nodes[by];
                if node.is_on && node.boots == boots {
                    node.rpl
                        .on_sent(iid(to), FrameReport::of(attempts, acknowledged), self.now);
                    self.poll(by);
                }
            }
            Event::Arrives {
                at,
                from,
                to_all,
                packet,
            } => {
                if self.nodes[at].is_on {
                    self.arrive(at, from, to_all, packet);
                    self.poll(at);
                }
            }
        }
    }

    fn arrive(&mut self, at: usize, from: usize, to_all: bool, mut packet: Packet) {
        self.nodes[at].rpl.on_heard(iid(from), self.now);
        if !packet.down.is_empty() {
            packet.down.remove(0);
            if let Some(next) = packet.down.first().copied() {
                return self.transmit(at, next, packet);
            }
        } else if let Some(option) = &mut packet.up
            && at != 0
        {
            let now = self.now;
            if is_loop(&mut self.nodes[at].rpl, from, option, now) {
                self.loops += 1;
                return;
            }
            return self.forward_up(at, packet);
        }
        self.deliver(at, to_all, &packet);
    }

    fn deliver(&mut self, at: usize, to_all: bool, packet: &Packet) {
        let now = self.now;
        let node = &mut self.nodes[at];
        let Some((code, body)) = packet.bytes.get(1).zip(packet.bytes.get(4..)) else {
            node.arrived += 1;
            return;
        };
        let rng = &mut node.rng;
        let heard = node
            .rpl
            .on_message(packet.src, to_all, (*code, body), now, rng);
        let Ok(MessageOutcome::Dao(dao)) = heard else {
            return;
        };
        let dodag = *node.rpl.dodag().unwrap();
        let mut is_entered = true;
        for route in routes(&dao, &dodag) {
            let is_old = self
                .graph
                .get(&route.target)
                .is_some_and(|old| lollipop::is_newer(old.sequence, route.sequence));
            match is_old {
                true => {
                    node.rpl.count(MessageDrop::OldSequence);
                    is_entered = false;
                }
                false if route.lifetime == Duration::ZERO => _ = self.graph.remove(&route.target),
                false => _ = self.graph.insert(route.target, route),
            }
        }
        let status = match is_entered {
            true => crate::rpl::status::ENTERED,
            false => crate::rpl::status::REJECTED,
        };
        if let Some(ack) = Rpl::acknowledge(&dao, status) {
            let bytes = self.emitted(0, ack);
            self.send_down(packet.src, bytes);
        }
    }

    fn emitted(&self, node: usize, message: ControlMessage) -> Vec<u8> {
        let mut bytes = [0; 200];
        let mut w = Writer::new(&mut bytes);
        self.nodes[node].rpl.emit(message, &mut w).unwrap();
        let len = w.written();
        bytes[..len].to_vec()
    }

    fn send_down(&mut self, target: Ipv6Addr, bytes: Vec<u8>) {
        if let Some(path) = self.path_to(target)
            && let Some(first) = path.first().copied()
        {
            let packet = Packet {
                src: addr(0),
                up: None,
                down: path,
                bytes,
                hops: 0,
            };
            self.transmit(0, first, packet);
        }
    }

    fn forward_up(&mut self, at: usize, mut packet: Packet) {
        packet.hops += 1;
        if let (Some(parent), true) = (self.nodes[at].parent, packet.hops < 64) {
            let rank = self.nodes[at].rpl.dag_rank();
            if let Some(option) = &mut packet.up {
                option.sender_rank = rank;
            }
            self.transmit(at, parent, packet);
        }
    }

    fn chance(&mut self, p: f64) -> bool {
        f64::from(self.rng.below(1 << 24)) < p * f64::from(1 << 24)
    }

    /// One frame with its attempts.
    fn transmit(&mut self, by: usize, to: usize, packet: Packet) {
        let (mut attempts, mut acknowledged, mut arrives) = (0, false, None);
        while attempts < ATTEMPTS && !acknowledged {
            attempts += 1;
            self.nodes[by].frames += 1;
            if self.nodes[to].is_on && self.chance(self.links[by][to]) {
                arrives = arrives.or(Some(attempts));
                acknowledged = self.chance(self.links[to][by]);
            }
        }
        let after = |attempts: u8| Duration::from_micros(u64::from(attempts) * ATTEMPT_US);
        if let Some(attempt) = arrives {
            let event = Event::Arrives {
                at: to,
                from: by,
                to_all: false,
                packet,
            };
            self.push(self.now + after(attempt), event);
        }
        let boots = self.nodes[by].boots;
        let event = Event::Sent {
            by,
            boots,
            to,
            attempts,
            acknowledged,
        };
        self.push(self.now + after(attempts), event);
    }

    fn broadcast(&mut self, by: usize, packet: &Packet) {
        self.nodes[by].frames += 1;
        for at in 0..self.nodes.len() {
            if at != by && self.nodes[at].is_on && self.chance(self.links[by][at]) {
                let event = Event::Arrives {
                    at,
                    from: by,
                    to_all: true,
                    packet: packet.clone(),
                };
                self.push(self.now + Duration::from_micros(ATTEMPT_US), event);
            }
        }
    }

    fn poll(&mut self, node: usize) {
        for turn in 0.. {
            assert!(turn < 100, "node {node} has something to do for ever");
            let it = &mut self.nodes[node];
            let Some(action) = it.rpl.poll(self.now, &mut it.rng) else {
                break;
            };
            it.messages.push((self.now, action));
            match action {
                RplAction::Parent(parent) => {
                    it.parent_changes += 1;
                    it.parent = parent.map(index);
                    assert_eq!(it.rpl.parent(), parent);
                    assert_eq!(parent.is_some(), it.rpl.rank() != INFINITE_RANK);
                }
                RplAction::Prefix => {
                    let prefix = it.rpl.dodag().and_then(|dodag| dodag.prefix);
                    it.prefix = prefix.map(|prefix| prefix.prefix());
                }
                RplAction::Leaf(..) | RplAction::LeavesLost => {}
                RplAction::Send { to, message } => self.send(node, to, message),
            }
        }
        let it = &mut self.nodes[node];
        if let Some(at) = it.rpl.next_deadline() {
            let at = at.max(self.now);
            assert!(
                at > self.now,
                "node {node} is due at once, and does nothing"
            );
            if it.woken.is_none_or(|woken| woken != at) {
                it.woken = Some(at);
                self.push(at, Event::Wake { node });
            }
        }
    }

    fn send(&mut self, node: usize, to: Destination, message: ControlMessage) {
        let mut packet = Packet {
            src: link_local(node),
            up: None,
            down: Vec::new(),
            bytes: self.emitted(node, message),
            hops: 0,
        };
        match to {
            Destination::All => self.broadcast(node, &packet),
            Destination::Neighbour(to) => self.transmit(node, index(to), packet),
            Destination::Node(_) => unreachable!("the lab answers DAOs itself"),
            Destination::Root => {
                packet.src = addr(node);
                packet.up = Some(Rpi::default());
                self.forward_up(node, packet);
            }
        }
    }
}

fn rpl(node: usize, role: RplRole, slots: usize) -> Rpl<'static> {
    let slots = Box::leak(vec![Candidate::EMPTY; slots].into_boxed_slice());
    let config = Config {
        iid: iid(node),
        role,
    };
    Rpl::new(&config, slots)
}

/// A chain of nodes, each of which reaches the next with this chance.
pub(super) fn chain(nodes: usize, p: f64) -> Vec<Vec<f64>> {
    let mut links = vec![vec![0.0; nodes]; nodes];
    for node in 1..nodes {
        links[node - 1][node] = p;
        links[node][node - 1] = p;
    }
    links
}

/// A floor with nodes at random places in a strip of `width` by 1, the root at its end. The chance
/// falls from near 1 at a third of the reach to 0 at the reach.
pub(super) fn floor(nodes: usize, width: f64, reach: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = Rng::from_seed([seed, 0x666c_6f6f]);
    for _ in 0..1000 {
        let mut unit = || f64::from(rng.below(1 << 20)) / f64::from(1 << 20);
        let mut places = vec![(0.0, 0.5)];
        places.extend((1..nodes).map(|_| (unit() * width, unit())));
        let mut links = vec![vec![0.0; nodes]; nodes];
        for a in 0..nodes {
            for b in 0..a {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let far = (dx * dx + dy * dy).sqrt() / reach;
                let p = (1.5 - 1.5 * far).clamp(0.0, 0.98);
                // Both directions differ a little.
                links[a][b] = p * (0.9 + 0.1 * unit());
                links[b][a] = p * (0.9 + 0.1 * unit());
            }
        }
        let lab = Lab::new(links, seed);
        let mut lab = lab;
        for node in &mut lab.nodes {
            node.is_on = true;
        }
        if lab.best_etx().iter().all(|etx| etx.is_finite()) {
            return lab.links;
        }
    }
    panic!("no connected floor of {nodes} nodes with reach {reach}");
}

/// What IP makes of a packet's option on its way up: RPL is told of a contradiction, and the second
/// one ends the packet.
fn is_loop(rpl: &mut Rpl<'_>, from: usize, option: &mut Rpi, now: Instant) -> bool {
    let unit = rpl.dodag().map_or(0, crate::rpl::Dodag::unit);
    let is_second = option.rank_error;
    if option.contradicts(rpl.dag_rank(), unit) || rpl.parent() == Some(iid(from)) {
        rpl.on_contradiction(iid(from), is_second, now);
        option.rank_error = true;
        option.sender_rank = rpl.dag_rank();
        return is_second;
    }
    option.sender_rank = rpl.dag_rank();
    false
}
