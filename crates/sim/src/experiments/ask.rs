//! Requests over TCP, one at a time, and how long their answers take.
//!
//! Purpose: the latency of a path that carries next to nothing else.
//! Left out: injected frame losses, which are a setting of the chain.

use motet::time::Duration;

use super::run::{Failure, Flow, PORT, Run, WARM_UP, joined};
use super::setup::Setup;
use super::traffic::Traffic;
use crate::Arena;
use crate::apps::App;
use crate::apps::messages::{Client, Server, Shape};
use crate::streams::{Purpose, stream};

/// The figure of a run that is the median time to an answer, ms.
pub const MEDIAN: &str = "request_p50";

/// The mote at the end of the chain asks the host, now and then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask(pub Shape);

/// Asks for `seconds`; `rtt_ms` of the run's one flow is the mean time to an answer, and [`MEDIAN`]
/// the median.
impl Traffic for Ask {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let Self(shape) = *self;
        let arena = Arena::new();
        let mut network = joined(setup.network(seed)?, &arena)?;
        let (mote, host) = (setup.mote(), network.host(0).unwrap_or_default());
        let began = network.world.now();
        let until = began + WARM_UP + Duration::from_secs(seconds);
        let ends = |node, peer: usize| network.ends(node, network.addr(peer), &arena);
        let answering = ends(host, mote).with(setup.receiver);
        let asking = ends(mote, host).with(setup.sender);
        let mut rng = stream(seed, mote as u32, Purpose::Application);
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
        let median = client.tally.ages.quantile(0.5).unwrap_or(Duration::ZERO);
        Ok(Run {
            figures: vec![(MEDIAN, median.as_micros() as f64 / 1_000.0)],
            flows: vec![Flow {
                rtt_ms: age.as_micros() as f64 / 1_000.0,
                ..Flow::default()
            }],
            ..Run::default()
        })
    }
}
