//! A transfer of a fixed size along a chain of motes: its duration, and the energy of the nodes.
//!
//! Purpose: the TCPHC paper's measurement. The farthest mote sends to the first; a mote beside the
//! middle of the chain may send datagrams to its parent at a constant rate meanwhile.
//! Left out: slow start and the like; there is one segment in flight.

use motet::time::Duration;

use super::run::{
    DRAIN_LIMIT, Failure, Flow, PORT, Run, drain, frames, joined, retransmissions, retries, verify,
};
use super::setup::{Setup, add_sibling};
use super::spent::Spent;
use super::traffic::Traffic;
use crate::Arena;
use crate::apps::content::Content;
use crate::apps::readings::{Readings, Sink};
use crate::apps::{App, Receiver, Sender};
use crate::net::network::{Network, NetworkOptions};
use crate::streams::{Purpose, stream};

/// The data that are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Bytes of the transfer.
    pub bytes: u64,
    /// Attempts that a MAC makes for each frame.
    pub attempts_max: u8,
    /// Datagrams of a mote that has no part in it.
    pub beside: Option<Datagrams>,
}

/// Datagrams at a constant rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams {
    /// Bytes of each message.
    pub len: usize,
    /// Time from one message to the next.
    pub interval: Duration,
}

/// Sends all of it, however long that takes.
impl Traffic for Transfer {
    fn run(&self, setup: &Setup, seed: u64, _seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let mut network = joined(self.network(setup, seed)?, &arena)?;
        let pair @ [sender, receiver] = [setup.mote(), 0];
        let ends = |node, peer: usize| network.ends(node, network.addr(peer), &arena);
        let content = Content::made([seed, 0], self.bytes);
        let receiving = ends(receiver, sender).with(setup.receiver);
        let receiving = Receiver::checking(PORT, receiving, content.clone());
        let sending = ends(sender, receiver).with(setup.sender);
        let peer = (network.addr(receiver), PORT);
        let sending = Sender::new(content, peer, sending);
        network.world.set_app(receiver, App::Receiver(receiving));
        network.world.set_app(sender, App::Sender(sending));
        self.disturb(&mut network, setup.mote(), seed, &arena);
        let began = network.world.now();
        let before = Spent::of(&network, setup.mote());
        let (frames_before, _) = frames(&network);
        let retries_before = retries(&network);
        drain(&mut network, &[pair], began + TRANSFER_LIMIT + DRAIN_LIMIT);
        verify(&network, &pair)?;
        let seconds = network.world.now().since(began).as_micros() as f64 / 1e6;
        let (frames, fates) = frames(&network);
        Ok(Run {
            flows: vec![Flow {
                goodput_kbps: self.bytes as f64 * 8.0 / 1_000.0 / seconds,
                ..Flow::default()
            }],
            frames: frames - frames_before,
            retries: retries(&network) - retries_before,
            bytes: self.bytes,
            fates,
            spent: Spent::of(&network, setup.mote()).since(&before),
            retransmissions: retransmissions(&network, sender),
            ..Run::default()
        })
    }
}

impl Transfer {
    fn network(&self, setup: &Setup, seed: u64) -> Result<NetworkOptions, Failure> {
        let mut options = setup.network(seed)?;
        if self.beside.is_some() {
            add_sibling(&mut options, middle(setup.mote()));
        }
        for node in &mut options.nodes {
            node.mac.attempts_max = self.attempts_max;
        }
        if let Some(segments) = setup.receiver_segments {
            options.nodes[0].window_segments = segments;
        }
        Ok(options)
    }

    /// Lets the mote beside the chain send to its parent.
    fn disturb<'m>(&self, network: &mut Network<'m>, mote: usize, seed: u64, arena: &'m Arena) {
        let Some(Datagrams { len, interval }) = self.beside else {
            return;
        };
        let (beside, parent) = (mote + 1, middle(mote) - 1);
        let mut rng = stream(seed, beside as u32, Purpose::Application);
        let to = (network.addr(parent), DATAGRAM_PORT);
        let readings = Readings::new(to, len, interval, network.world.now(), &mut rng);
        network.world.set_app(beside, App::Readings(readings));
        network
            .world
            .add_app(parent, App::Sink(Sink::new(&[DATAGRAM_PORT], arena)));
    }
}

/// The node that the disturbing mote stands beside.
const fn middle(mote: usize) -> usize {
    mote.div_ceil(2)
}

/// A thousand segments of a second each.
const TRANSFER_LIMIT: Duration = Duration::from_secs(1_000);

/// One of the ports that 6LoWPAN compresses to four bits (RFC 6282 §4.3.1).
const DATAGRAM_PORT: u16 = 0xf0b2;
