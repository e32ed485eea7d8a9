//! Requests over TCP, one at a time, and how long their answers take.
//!
//! Purpose: the latency of a path that carries next to nothing else.
//! Left out: lost frames on purpose; whoever wants them says so in the chain.

use motet::time::Duration;

use super::run::{Failure, Flow, JOIN_LIMIT, PORT, Run, WARM_UP};
use super::setup::Setup;
use crate::Arena;
use crate::apps::App;
use crate::apps::messages::{Client, Server, Shape};
use crate::net::chain::ChainOptions;
use crate::net::network::Network;
use crate::streams::{Purpose, stream};

/// Asks for `seconds`; `rtt_ms` of the run's one flow is the mean time to an answer.
///
/// # Errors
/// [`Failure`], which makes the run void.
pub(super) fn run(shape: Shape, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
    let arena = Arena::new();
    let options = ChainOptions {
        seed,
        ..setup.chain
    };
    let mut network = Network::new(options.network(), &arena)
        .map_err(|error| Failure::Topology(error.to_string()))?;
    if !network.join(JOIN_LIMIT) {
        return Err(Failure::NotJoined);
    }
    let (mote, host) = (
        usize::from(options.hops),
        network.host(0).unwrap_or_default(),
    );
    let began = network.world.now();
    let until = began + WARM_UP + Duration::from_secs(seconds);
    let ends = |node, peer: usize| network.ends(node, network.addr(peer), &arena);
    let answering = ends(host, mote).with(setup.receiver);
    let asking = ends(mote, host).with(setup.sender);
    let mut rng = stream(seed, u32::from(options.hops), Purpose::Application);
    let peer = (network.addr(host), PORT);
    let client = Client::new(peer, asking, shape, began + WARM_UP, &mut rng).until(until);
    network
        .world
        .set_app(host, App::Server(Server::new(PORT, answering, shape)));
    network.world.set_app(mote, App::Client(client));
    network.world.run_until(until + WARM_UP);
    let App::Client(client) = network.world.app(mote) else {
        return Err(Failure::NotJoined);
    };
    let (sent, arrived) = (client.due, client.tally.received);
    if client.is_broken || arrived < sent {
        return Err(Failure::Unfinished { sent, arrived });
    }
    let age = client.tally.mean_age().unwrap_or(Duration::ZERO);
    Ok(Run {
        flows: vec![Flow {
            rtt_ms: age.as_micros() as f64 / 1_000.0,
            ..Flow::default()
        }],
        ..Run::default()
    })
}
