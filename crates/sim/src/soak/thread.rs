//! A network of Thread: one router, children awake and asleep, a transfer with each, and faults.
//!
//! Purpose: tests the stack's child beside the lab's router: frames that get lost, keys that
//! rotate, a router that goes off and comes back with its memory, motes that start anew. What
//! must hold: bytes in order, once, equal; no nonce twice; in the end every mote is a child and
//! every transfer is whole.
//! Left out: attackers, who are the matter of `cargo xtask interop thread-child`; several
//! routers.

use motet::link::Link;
use motet::mac::security::Security;
use motet::mac::{Policy, Sleep};
use motet::thread::{Child, ChildState};
use motet::time::Duration;

use super::dice::Dice;
use super::{RunTally, SealTally, Seen};
use crate::Arena;
use crate::air::gains::{ChainAir, Gains};
use crate::air::profile::Profile;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::net::network::{
    Joining, Network, NetworkOptions, NodeOptions, Parent, RADIO, Tables, ThreadOptions,
};

/// Runs the network of a seed for about `span`, then until all transfers are over.
pub(super) fn run(seed: u64, span: Duration) -> Seen {
    let arena = Arena::new();
    let mut dice = Dice::new(seed, PURPOSE);
    let mut seen = Seen::default();
    let network = match Network::new(options(&mut dice, seed), &arena) {
        Ok(mut network) => {
            network.world.take_nonces();
            network
        }
        Err(error) => {
            seen.failure = Some(format!("no network: {error}"));
            return seen;
        }
    };
    let mut lab = Lab {
        arena: &arena,
        dice,
        network,
        transfers: Vec::new(),
        sequence: 0,
        tally: RunTally::default(),
    };
    let failure = lab.go(span).err();
    let seconds = lab.network.world.now().as_micros() as f64 / 1e6;
    seen.failure = failure.map(|what| format!("{what}, {seconds:.3} s into the run of Thread"));
    seen.seconds = seconds;
    seen.tally = lab.result();
    seen
}

/// Motes around a router.
fn options(dice: &mut Dice, seed: u64) -> NetworkOptions {
    let motes = dice.range(1, 5) as usize;
    let profile = dice.pick(&[Profile::HAMILTON, Profile::NRF52840]);
    let nodes = (0..=motes).map(|n| {
        let policy = dice.pick(&[
            None,
            None,
            Some(Policy::Adaptive),
            Some(Policy::Fixed(Duration::from_millis(500))),
            Some(Policy::Hinted(Duration::from_secs(5))),
        ]);
        NodeOptions {
            profile,
            sleep: policy.filter(|_| n > 0).map(Sleep::new),
            tables: Tables::RELAY,
            parent: match n {
                0 => Parent::Shortest,
                _ => Parent::Node(0),
            },
            ..NodeOptions::new(n.to_string())
        }
    });
    let nodes: Vec<_> = nodes.collect();
    let gains = Gains::from_fn(motes + 1, |_, _| ChainAir::CALIBRATED.one_hop_db);
    NetworkOptions {
        seed,
        joining: Joining::Thread,
        thread: Some(ThreadOptions::default()),
        frame_loss: f64::from(dice.range(0, 10)) / 100.0,
        ..NetworkOptions::new(nodes, gains)
    }
}

/// A transfer between a mote and the host: where its receiver is, and how much it has to get.
#[derive(Debug)]
struct Transfer {
    to: (usize, usize),
    len: u64,
}

#[derive(Debug)]
struct Lab<'m> {
    arena: &'m Arena,
    dice: Dice,
    network: Network<'m>,
    transfers: Vec<Transfer>,
    sequence: u32,
    tally: RunTally,
}

impl<'m> Lab<'m> {
    fn go(&mut self, span: Duration) -> Result<(), String> {
        if !self.network.join(JOINED_WITHIN) {
            return Err("not all motes found the router".to_owned());
        }
        // The last mote has no transfer: it may start anew at any time.
        let motes = self.network.mesh_nodes() - 1;
        for mote in 1..motes.max(2) {
            self.transfer(mote)?;
        }
        let end = self.network.world.now() + span;
        while self.network.world.now() < end {
            self.trouble(motes);
            self.pass(Duration::from_secs(1));
            self.check()?;
        }
        self.network.world.set_frame_loss(0.0);
        let limit = self.network.world.now() + PATIENCE;
        while !self.is_over() && self.network.world.now() < limit {
            self.pass(Duration::from_secs(1));
            self.check()?;
        }
        self.judge()
    }

    fn pass(&mut self, span: Duration) {
        let until = self.network.world.now() + span;
        self.network.world.run_until(until);
        self.tally.events += 1;
    }

    /// A transfer up or down.
    fn transfer(&mut self, mote: usize) -> Result<(), String> {
        let host = self.network.host(0).ok_or("no host")?;
        let (from, to) = match self.dice.chance(0.5) {
            true => (mote, host),
            false => (host, mote),
        };
        let len = u64::from(self.dice.scale(500, 60_000));
        // Lossless: a network has few nodes.
        let port = PORT + mote as u16;
        let content = || Content::made([mote as u64, len], len);
        let remote = (self.network.addr(to), port);
        let ends = self.network.ends(to, self.network.addr(from), self.arena);
        let receiver = Receiver::checking(port, ends, content());
        let place = self.network.world.add_app(to, App::Receiver(receiver));
        let ends = self.network.ends(from, remote.0, self.arena);
        let sender = Sender::new(content(), remote, ends);
        self.network.world.add_app(from, App::Sender(sender));
        self.tally.connects += 1;
        let to = (to, place);
        self.transfers.push(Transfer { to, len });
        Ok(())
    }

    /// Something may happen to the network.
    fn trouble(&mut self, motes: usize) {
        match self.dice.range(0, 199) {
            0 => {
                self.sequence += 1;
                self.network.rotate_key(self.sequence);
            }
            1 | 2 => self.restart(0),
            3 | 4 if motes > 1 => self.restart(motes),
            5 => {
                let loss = f64::from(self.dice.range(0, 15)) / 100.0;
                self.network.world.set_frame_loss(loss);
            }
            _ => return,
        }
        self.tally.troubles += 1;
    }

    /// A node goes off, and comes back some seconds later.
    fn restart(&mut self, node: usize) {
        let off = self.dice.scale_ms(100, 10_000);
        self.network.switch_off(node);
        self.pass(off);
        self.network.switch_on(node, self.arena);
        self.tally.reboots += 1;
    }

    fn receivers(&self) -> impl Iterator<Item = (&Transfer, &Receiver<'m>)> {
        self.transfers.iter().filter_map(|transfer| {
            let (node, place) = transfer.to;
            match self.network.world.apps(node).get(place)? {
                App::Receiver(receiver) => Some((transfer, receiver)),
                _ => None,
            }
        })
    }

    fn is_over(&self) -> bool {
        let whole = self
            .receivers()
            .all(|(transfer, receiver)| receiver.received >= transfer.len);
        whole && self.children_missing().is_none()
    }

    /// The first mote that is no child of the router.
    fn children_missing(&self) -> Option<usize> {
        (1..self.network.mesh_nodes()).find(|mote| {
            let child = self.child(*mote);
            child.is_none_or(|child| child.state() != ChildState::Attached)
        })
    }

    fn child(&self, mote: usize) -> Option<&Child> {
        match self.network.world.node(mote).link(RADIO)? {
            Link::Mesh(mesh) => mesh.thread(),
            _ => None,
        }
    }

    /// Checks what holds at any moment.
    fn check(&self) -> Result<(), String> {
        let (repeated, _) = self.network.world.nonces();
        if repeated > 0 {
            return Err("a nonce came again with another frame".to_owned());
        }
        let mut receivers = self.receivers();
        match receivers.find(|(_, receiver)| receiver.differs_at.is_some()) {
            Some((transfer, receiver)) => Err(format!(
                "node {} got another byte than was sent, at {:?}",
                transfer.to.0, receiver.differs_at
            )),
            None => Ok(()),
        }
    }

    /// Checks what holds in the end.
    fn judge(&self) -> Result<(), String> {
        if let Some(mote) = self.children_missing() {
            let router = self.network.world.thread_router(0);
            let counters = router.map(|router| *router.counters());
            let child = self.child(mote);
            let refusal = child.and_then(Child::refusal);
            let own = child.map(|child| *child.counters());
            let sleeps = self
                .network
                .mac(mote)
                .is_some_and(|mac| mac.sleep().is_some());
            let sequence = self.network.mac(mote).and_then(|mac| mac.security());
            let sequence = sequence.map(Security::sequence);
            return Err(format!(
                "mote {mote} is no child: {refusal:?}, sleeps {sleeps}, sequence {sequence:?} of {}, {own:?}, {counters:?}",
                self.sequence
            ));
        }
        let mut receivers = self.receivers();
        match receivers.find(|(transfer, receiver)| receiver.received != transfer.len) {
            Some((transfer, receiver)) => Err(format!(
                "node {} got {} of {} bytes",
                transfer.to.0, receiver.received, transfer.len
            )),
            None => Ok(()),
        }
    }

    fn result(&self) -> RunTally {
        let mut tally = self.tally;
        let world = &self.network.world;
        tally.frames = world.links().map(|(_, tally)| tally.frames).sum();
        for mac in self.network.macs() {
            tally.seals.add(&SealTally::of(mac));
        }
        let nodes = (0..world.nodes()).map(|node| world.node(node));
        tally.segments = nodes
            .map(|node| u64::from(node.tcp().counters().sent))
            .sum();
        tally
    }
}

/// A separate random stream.
const PURPOSE: u64 = 20;
const PORT: u16 = 7_000;
/// Motes attach within a second where nothing is lost.
const JOINED_WITHIN: Duration = Duration::from_secs(120);
/// A connection whose segments were lost for long waits for its timer.
const PATIENCE: Duration = Duration::from_secs(900);
