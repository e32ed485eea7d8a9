//! A long transfer between two nodes of a network, for tests that watch how much of it arrives.

use std::sync::Arc;

use super::*;
use crate::apps::{App, Receiver, Sender};

pub(super) const PORT: u16 = 4_242;

/// Lets `from` send `to` more than any of these tests sees arrive.
pub(super) fn start<'m>(network: &mut Network<'m>, (from, to): (usize, usize), arena: &'m Arena) {
    let remote = (network.addr(to), PORT);
    let ends = network.ends(to, network.addr(from), arena);
    let receiver = Receiver::new(PORT, ends);
    network.world.set_app(to, App::Receiver(receiver));
    let ends = network.ends(from, remote.0, arena);
    let content: Arc<[u8]> = vec![0x5a; 1_000_000].into();
    let sender = Sender::new(content, remote, ends);
    network.world.set_app(from, App::Sender(sender));
}

/// Bytes that have arrived at `to`.
pub(super) fn received(network: &Network<'_>, to: usize) -> usize {
    match network.world.app(to) {
        App::Receiver(receiver) => receiver.content.len(),
        _ => panic!("it was given one"),
    }
}
