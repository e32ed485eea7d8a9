//! Connections into a chain, beside unsolicited traffic from outside.
//!
//! Over TCP, a host sends bulk data to the mote at the end of the chain, and a request every other
//! second. Besides, strangers send datagrams, echo requests or SYNs. Two figures judge the border
//! router: [`bulk_ratio`], the ratio of the goodput to that without strangers, and
//! [`request_ratios`], the share of requests that are answered and the ratio of their latency to
//! that beside a second bulk flow.
//! Left out: attackers on the air, which a key keeps off (`combined-security`).

mod rows;

use motet::time::{Duration, Instant};

use crate::Arena;
use crate::apps::content::Content;
use crate::apps::messages::{Client, Server, Shape};
use crate::apps::{App, Receiver, Sender};
use crate::experiments::run::{Failure, Flow, PORT, Run, WARM_UP, joined};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::net::network::{Network, NetworkOptions};
use crate::net::run::{Next, run};
use crate::net::strangers::{StrangerTraffic, Strangers};
use crate::streams::{Purpose, stream};

pub use self::rows::{FLOWS, FORGED, cases, chain, rows};

/// The traffic into the chain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChainTraffic {
    /// Bulk flows between the host and the last mote.
    pub bulk: usize,
    /// Whether the bulk flows go out of the mesh.
    pub is_up: bool,
    /// How many ask something every other second: the last mote, then the one before it, and so on.
    pub readers: usize,
    /// Strangers that send at the same time.
    pub strangers: Option<Strangers>,
    /// Whether flows have queues of their own at the border router.
    pub queues_flows: bool,
}

impl ChainTraffic {
    /// One bulk flow into the mesh and requests, beside these.
    pub const fn strangers(strangers: Strangers) -> Self {
        Self {
            strangers: Some(strangers),
            ..Self::flows(1)
        }
    }

    /// This many bulk flows into the mesh, and requests; no other traffic.
    pub const fn flows(bulk: usize) -> Self {
        Self {
            bulk,
            is_up: false,
            readers: 1,
            strangers: None,
            queues_flows: true,
        }
    }

    /// A run over the network of `setup`, modified by `change`.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn run_in(
        &self,
        setup: &Setup,
        (seed, seconds): (u64, u64),
        change: impl FnOnce(&mut NetworkOptions),
    ) -> Result<Run, Failure> {
        let mut options = setup.network(seed)?;
        options.queues_flows = self.queues_flows;
        change(&mut options);
        let arena = Arena::new();
        let mut network = joined(options, &arena)?;
        let from = network.world.now() + WARM_UP;
        let to = from + Duration::from_secs(seconds);
        let apps = self.start(&mut network, setup, (seed, to), &arena);
        let began = network.world.now();
        let mut stranger_traffic = self
            .strangers
            .map(|strangers| StrangerTraffic::new(strangers, began));
        let mut pass = |network: &mut Network<'_>, until| {
            run(network, until, |network| {
                let next = stranger_traffic
                    .as_mut()
                    .map(|stranger_traffic| stranger_traffic.send(network));
                Next::At(next.unwrap_or(until))
            });
        };
        pass(&mut network, from);
        let before = apps.figures(&network);
        pass(&mut network, to);
        apps.result(&network, &before, seconds)
    }

    /// Starts the flows.
    fn start<'m>(
        &self,
        network: &mut Network<'m>,
        setup: &Setup,
        (seed, to): (u64, Instant),
        arena: &'m Arena,
    ) -> Apps {
        let (host, mote) = (
            network.host(0).unwrap_or_default(),
            network.mesh_nodes() - 1,
        );
        let [sender, receiver] = if self.is_up {
            [mote, host]
        } else {
            [host, mote]
        };
        let mut bulk = Vec::new();
        for number in 0..self.bulk {
            let port = PORT + number as u16;
            let content = Content::endless([seed, number as u64]);
            let receiving = network.ends(receiver, network.addr(sender), arena);
            let receiving = receiving.with(setup.receiver);
            let receiving = Receiver::checking(port, receiving, content.clone());
            let peer = network.addr(receiver);
            let sending = network.ends(sender, peer, arena).with(setup.sender);
            let sending = Sender::new(content, (peer, port), sending).until(to);
            let place = network.world.add_app(receiver, App::Receiver(receiving));
            bulk.push((receiver, place));
            network.world.add_app(sender, App::Sender(sending));
        }
        let shape = Shape {
            message_len: MESSAGE_LEN,
            answer_len: MESSAGE_LEN,
            interval: REQUEST_EVERY,
        };
        let mut rng = stream(seed, 0, Purpose::Application);
        let mut clients = Vec::new();
        for number in 0..self.readers {
            let (asked, port) = (mote - number % mote, REQUEST_PORT + number as u16);
            let peer = network.addr(asked);
            let answering = network.ends(asked, network.addr(host), arena);
            let server = Server::new(port, answering, shape);
            network.world.add_app(asked, App::Server(server));
            let asking = network.ends(host, peer, arena);
            let now = network.world.now();
            let client = Client::new((peer, port), asking, shape, now, &mut rng);
            let client = App::Client(client.until(to));
            clients.push(network.world.add_app(host, client));
        }
        Apps {
            host,
            bulk,
            clients,
        }
    }
}

impl Traffic for ChainTraffic {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        self.run_in(setup, (seed, seconds), |_| {})
    }

    /// Half of the flows are no bulk: the arithmetic of one is no bound.
    fn segment(&self, setup: &Setup, seconds: u64) -> Segment {
        Segment {
            bound: None,
            ..setup.segment(seconds)
        }
    }
}

/// The part of its goodput alone that the first bulk flow keeps. `alone`: a run of
/// [`ChainTraffic::flows`] with one flow, in the same setting and with the same seed.
pub fn bulk_ratio(run: &Run, alone: &Run) -> f64 {
    let kbps = |run: &Run| run.flows.first().map_or(0.0, |flow| flow.goodput_kbps);
    kbps(run) / kbps(alone)
}

/// The share of requests that were answered, and the ratio of their mean latency to that of
/// `beside_bulk`: a run of [`ChainTraffic::flows`] with two flows, in the same setting and with the
/// same seed.
pub fn request_ratios(run: &Run, beside_bulk: &Run) -> (f64, f64) {
    let part = run.figure(ANSWERED) / run.figure(ASKED);
    (part, run.figure(LATENCY) / beside_bulk.figure(LATENCY))
}

/// Requests that were due; requests that were answered; their mean latency, ms; and the 95th
/// percentile of the latency over the whole run, of the slowest reader.
pub const ASKED: &str = "requests_asked";
/// The requests answered: see [`ASKED`].
pub const ANSWERED: &str = "requests_answered";
/// The mean time to an answer, ms: see [`ASKED`].
pub const LATENCY: &str = "requests_ms";
/// The 95th percentile of the time to an answer, ms: see [`ASKED`].
pub const LATENCY_P95: &str = "requests_p95_ms";

/// The numbers of the applications in the network.
struct Apps {
    host: usize,
    /// Receivers of bulk, by node and place.
    bulk: Vec<(usize, usize)>,
    /// The host's clients, by their place among its applications.
    clients: Vec<usize>,
}

/// The counts of the applications so far.
struct Figures {
    bytes: Vec<u64>,
    asked: u64,
    answered: u64,
    /// Sum over the answers, ms.
    waited_ms: f64,
    p95_ms: f64,
}

impl Apps {
    fn figures(&self, network: &Network<'_>) -> Figures {
        let received = |(node, place): &(usize, usize)| match &network.world.apps(*node)[*place] {
            App::Receiver(receiver) => receiver.received,
            _ => 0,
        };
        let mut figures = Figures {
            bytes: self.bulk.iter().map(received).collect(),
            asked: 0,
            answered: 0,
            waited_ms: 0.0,
            p95_ms: 0.0,
        };
        let ms = |age: Option<Duration>| age.map_or(0.0, |age| age.as_micros() as f64 / 1e3);
        for place in &self.clients {
            if let App::Client(client) = &network.world.apps(self.host)[*place] {
                let Client { due, tally, .. } = client;
                figures.asked += due;
                figures.answered += tally.received;
                figures.waited_ms += ms(tally.mean_age()) * tally.received as f64;
                figures.p95_ms = figures.p95_ms.max(ms(tally.ages.quantile(0.95)));
            }
        }
        figures
    }

    fn result(
        &self,
        network: &Network<'_>,
        before: &Figures,
        seconds: u64,
    ) -> Result<Run, Failure> {
        let differs =
            self.bulk
                .iter()
                .find_map(|(node, place)| match &network.world.apps(*node)[*place] {
                    App::Receiver(receiver) => receiver.differs_at,
                    _ => None,
                });
        if let Some(at) = differs {
            return Err(Failure::BytesDiffer { at });
        }
        let after = self.figures(network);
        let bytes = before.bytes.iter().zip(&after.bytes);
        let flows = bytes.map(|(before, after)| Flow {
            goodput_kbps: (after - before) as f64 / 125.0 / seconds as f64,
            ..Flow::default()
        });
        let answered = (after.answered - before.answered) as f64;
        Ok(Run {
            flows: flows.collect(),
            figures: vec![
                (ASKED, (after.asked - before.asked) as f64),
                (ANSWERED, answered),
                (
                    LATENCY,
                    (after.waited_ms - before.waited_ms) / answered.max(1.0),
                ),
                (LATENCY_P95, after.p95_ms),
            ],
            ..Run::default()
        })
    }
}

/// Bytes of a request, and of its answer.
const MESSAGE_LEN: usize = 64;

const REQUEST_EVERY: Duration = Duration::from_secs(2);

/// Where requests are answered: above the ports of bulk flows.
const REQUEST_PORT: u16 = PORT + 100;

#[cfg(test)]
#[path = "../tests/chain_traffic.rs"]
mod tests;
