//! Header compression when nodes lose what they know, and between nodes that differ.

use std::sync::Arc;

use motet::link::Link;
use motet::mac::{Policy, Sleep};
use motet::random::Rng;
use motet::tcp::{HalfOpen, Listener, Memory, Slot, Tcp};
use motet::tcphc::{self, Context, End, Tcphc};
use motet::time::Duration;

use crate::Arena;
use crate::apps::{App, Receiver, Sender};
use crate::net::chain::ChainOptions;
use crate::net::network::{Joining, Network, NetworkOptions, RADIO};

const PORT: u16 = 4_242;
const LEN: usize = 40_000;

/// A transfer between two nodes of a chain, or one of them and the host.
struct Transfer<'m> {
    network: Network<'m>,
    arena: &'m Arena,
    sender: usize,
    receiver: usize,
    agrees: bool,
}

fn content() -> Arc<[u8]> {
    (0..LEN).map(|at| (at * 31 + at / 251) as u8).collect()
}

impl<'m> Transfer<'m> {
    /// Starts one over a chain with compression; `ends`: sender and receiver.
    fn start(options: &ChainOptions, ends: [usize; 2], arena: &'m Arena) -> Self {
        Self::over(options.network(), ends, arena)
    }

    fn over(options: NetworkOptions, [sender, receiver]: [usize; 2], arena: &'m Arena) -> Self {
        let agrees = options.nodes[0].agrees_on_compression;
        let mut network = Network::new(options, arena).unwrap();
        assert!(network.join(Duration::from_secs(60)));
        let ends = |node, peer: usize| network.ends(node, network.addr(peer), arena);
        let receiving = Receiver::new(PORT, ends(receiver, sender));
        let to = (network.addr(receiver), PORT);
        let sending = Sender::new(content(), to, ends(sender, receiver));
        network.world.set_app(receiver, App::Receiver(receiving));
        network.world.set_app(sender, App::Sender(sending));
        Self {
            network,
            arena,
            sender,
            receiver,
            agrees,
        }
    }

    fn received(&self) -> usize {
        match self.network.world.app(self.receiver) {
            App::Receiver(receiver) => receiver.content.len(),
            _ => 0,
        }
    }

    /// Runs until so many bytes have arrived.
    fn run_to(&mut self, len: usize) {
        let until = self.network.world.now() + Duration::from_secs(600);
        while self.received() < len {
            assert!(self.network.world.step(until), "{} bytes", self.received());
        }
    }

    /// Runs until both ends have closed; says whether all has arrived.
    fn run_to_end(&mut self) -> bool {
        let until = self.network.world.now() + Duration::from_secs(3_600);
        let is_closed = |transfer: &Self, node| {
            let progress = transfer.network.world.app(node).progress();
            progress.is_some_and(|progress| progress.closed)
        };
        while !is_closed(self, self.sender) || !is_closed(self, self.receiver) {
            assert!(
                self.network.world.step(until),
                "it ends, one way or another"
            );
        }
        match self.network.world.app(self.receiver) {
            App::Receiver(receiver) => receiver.content[..] == content()[..],
            _ => false,
        }
    }

    /// Gives a node a compressor that knows nothing, as after a start.
    fn forget_contexts(&mut self, node: usize) {
        let config = tcphc::Config {
            end: if node == 0 { End::Router } else { End::Mote },
            learned: self.agrees,
            ..tcphc::Config::DEFAULT
        };
        let contexts = self.arena.alloc_slice_fill_with(8, |_| Context::EMPTY);
        let mut rng = Rng::from_seed([99, node as u64]);
        let fresh = Tcphc::new(contexts, config, self.network.world.now(), &mut rng);
        let fresh = self.arena.alloc(fresh);
        self.network.world.with_node(node, |node, _| {
            if let Some(Link::Mesh(radio)) = node.link_mut(RADIO) {
                radio.set_tcphc(fresh);
            }
        });
    }

    /// Gives a node a TCP that knows nothing.
    fn forget_connections(&mut self, node: usize) {
        let memory = Memory {
            connections: self.arena.alloc_slice_fill_with(2, |_| Slot::EMPTY),
            listeners: self.arena.alloc_slice_fill_with(2, |_| Listener::EMPTY),
            half_open: self.arena.alloc_slice_fill_with(2, |_| HalfOpen::EMPTY),
        };
        let fresh = Tcp::new(memory, &mut Rng::from_seed([98, node as u64]));
        self.network
            .world
            .with_node(node, |node, _| *node.tcp_mut() = fresh);
    }

    /// Headers that a node has sent: full, mostly compressed, compressed, plain.
    fn sent(&self, node: usize) -> [u32; 4] {
        match self.network.world.node(node).link(RADIO) {
            Some(Link::Mesh(radio)) => radio.tcphc().map_or([0; 4], |t| t.counters().sent),
            _ => [0; 4],
        }
    }
}

fn compressed_chain() -> ChainOptions {
    ChainOptions {
        compression: Some(tcphc::Mode::Default),
        ..ChainOptions::default()
    }
}

/// Several routers: another one takes over.
#[test]
fn a_lost_context_is_made_anew_by_a_retransmission() {
    let options = compressed_chain();
    let (mote, host) = (3, 4);
    // The border router's is lost by its restart, or because another one takes its place.
    for (ends, loses) in [
        ([mote, host], 0),
        ([host, mote], 0),
        ([mote, host], mote),
        ([host, mote], mote),
    ] {
        let arena = Arena::new();
        let mut transfer = Transfer::start(&options, ends, &arena);
        transfer.run_to(LEN / 3);
        transfer.forget_contexts(loses);
        let began = transfer.network.world.now();
        transfer.run_to(LEN / 3 + 2_000);
        let pause = transfer.network.world.now().since(began);
        assert!(pause.as_millis() < 6_000, "{ends:?}, {loses}: {pause:?}");
        transfer.run_to(2 * LEN / 3);
        let before = transfer.sent(mote);
        assert!(transfer.run_to_end(), "{ends:?}, {loses}");
        let after = transfer.sent(mote);
        assert!(after[2] > before[2] + 20, "compressed again: {after:?}");
    }
}

#[test]
fn a_mote_that_restarts_ends_its_connection_cleanly() {
    let arena = Arena::new();
    let (mote, host) = (3, 4);
    let mut transfer = Transfer::start(&compressed_chain(), [host, mote], &arena);
    transfer.run_to(LEN / 3);
    transfer.forget_contexts(mote);
    transfer.forget_connections(mote);
    assert!(!transfer.run_to_end(), "a mote without memory cannot go on");
    let progress = transfer.network.world.app(host).progress().unwrap();
    assert!(progress.error.is_some(), "the host was told");
}

/// Motes and router compress, hosts see plain TCP, motes among each other.
#[test]
fn motes_compress_between_each_other() {
    for ends in [[3, 0], [0, 3], [3, 1]] {
        let arena = Arena::new();
        let mut transfer = Transfer::start(&compressed_chain(), ends, &arena);
        assert!(transfer.run_to_end());
        for end in ends {
            let [full, mostly, compressed, plain] = transfer.sent(end);
            assert_eq!(plain, 0, "{ends:?}");
            assert!(compressed > 20 * (full + mostly).min(2), "{ends:?}");
        }
        let between = (0..4).filter(|node| !ends.contains(node));
        for relay in between {
            assert_eq!(transfer.sent(relay), [0; 4], "relays have no part in it");
        }
    }
}

/// Where the ends agree on compression by the router's advertisements.
fn agreeing(hops: u16, frame_loss: f64) -> NetworkOptions {
    let options = ChainOptions {
        hops,
        frame_loss,
        ..compressed_chain()
    };
    let mut options = options.network();
    for node in &mut options.nodes {
        node.agrees_on_compression = true;
    }
    options
}

#[test]
fn a_peer_without_compression_gets_plain_segments() {
    let (mote, host) = (3, 4);
    for (ends, without) in [([mote, host], 0), ([host, mote], 0), ([host, mote], mote)] {
        let arena = Arena::new();
        let mut options = agreeing(3, 0.0);
        options.nodes[without].compression = None;
        let mut transfer = Transfer::over(options, ends, &arena);
        assert!(transfer.run_to_end(), "{ends:?} without {without}");
        let [full, mostly, compressed, plain] = transfer.sent(mote - without);
        assert_eq!([full, mostly, compressed], [0; 3], "{ends:?}");
        assert!(plain > 20, "{ends:?}: {plain}");
    }
}

/// However motes join; a router between that does not compress itself passes the offer on.
#[test]
fn motes_hear_the_offer_however_they_join() {
    let (mote, host) = (3, 4);
    for joining in [Joining::Advertised, Joining::Static, Joining::Rpl] {
        for ends in [[mote, host], [host, mote]] {
            let arena = Arena::new();
            let mut options = agreeing(3, 0.0);
            options.joining = joining;
            options.nodes[1].compression = None;
            let mut transfer = Transfer::over(options, ends, &arena);
            assert!(transfer.run_to_end(), "{joining:?} {ends:?}");
            for end in [0, mote] {
                let [full, mostly, compressed, plain] = transfer.sent(end);
                assert!(compressed > 20, "{joining:?} {ends:?} {end}: {compressed}");
                assert!(full + mostly + plain < 8, "{joining:?} {ends:?} {end}");
            }
        }
    }
}

#[test]
fn motes_agree_with_their_router_alone() {
    for (ends, is_compressed) in [([3, 0], true), ([0, 3], true), ([3, 1], false)] {
        let arena = Arena::new();
        let mut transfer = Transfer::over(agreeing(3, 0.0), ends, &arena);
        assert!(transfer.run_to_end());
        for end in ends {
            let [.., compressed, plain] = transfer.sent(end);
            let [most, least] = match is_compressed {
                true => [compressed, plain],
                false => [plain, compressed],
            };
            assert!(most > 20 && least < 2, "{ends:?}: {compressed} {plain}");
        }
    }
}

/// Of a router, of a mote, and of a mote that then reconnects.
#[test]
fn what_an_end_forgets_costs_little_and_is_agreed_again() {
    let (mote, host) = (3, 4);
    for ends in [[mote, host], [host, mote]] {
        let arena = Arena::new();
        let mut transfer = Transfer::over(agreeing(3, 0.0), ends, &arena);
        transfer.run_to(LEN / 3);
        transfer.forget_contexts(0);
        let began = transfer.network.world.now();
        transfer.run_to(LEN / 3 + 2_000);
        let pause = transfer.network.world.now().since(began);
        assert!(pause.as_millis() < 6_000, "{ends:?}: {pause:?}");
        assert!(transfer.run_to_end(), "{ends:?}");
    }
    let arena = Arena::new();
    let mut transfer = Transfer::over(agreeing(3, 0.0), [host, mote], &arena);
    transfer.run_to(LEN / 3);
    transfer.forget_contexts(mote);
    transfer.forget_connections(mote);
    assert!(!transfer.run_to_end(), "a mote without memory cannot go on");
}

/// A packet for a child that sleeps is delivered again and again, and is still the same packet.
#[test]
fn deliveries_to_a_sleeper_that_fail_make_nothing_plain() {
    let (leaf, host) = (1, 2);
    for seed in 1..=4 {
        let arena = Arena::new();
        let mut options = agreeing(1, 0.5);
        options.seed = seed;
        options.nodes[leaf].sleep = Some(Sleep::new(Policy::Fixed(Duration::from_secs(2))));
        let mut transfer = Transfer::over(options, [host, leaf], &arena);
        assert!(transfer.run_to_end(), "{seed}");
        let Some(Link::Mesh(radio)) = transfer.network.world.node(0).link(RADIO) else {
            panic!("a border router")
        };
        let failed = radio.indirect().unwrap().counters().failed;
        assert!(failed > 100, "{failed}");
        let [full, mostly, compressed, plain] = transfer.sent(0);
        let whole = full + mostly + plain;
        assert!(compressed > 4 * whole, "{seed}: {compressed} {whole}");
        assert!(plain < 4, "{seed}: {plain}");
    }
}
