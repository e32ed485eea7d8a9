//! A mesh with a key, a mote of it that reboots, and a stranger without the key beside that mote.
//!
//! Purpose: counts the messages that are lost because of the stranger. Each run is made twice with
//! the same seed, without the stranger and with it. A chain of three hops, whose last mote sends a
//! message a second to the host over TCP. The stranger is there from the start, so that the chain
//! also has to form beside it. A Hamilton has no time for 200 frames of 90 bytes a second: each
//! takes 3.1 ms of air, 0.5 ms for its ACK and 1.1 ms to be copied out of the radio. Unsecured
//! frames, which cost no decryption, overload it as well. The same is measured with nRF52840s,
//! whose radio writes frames into memory by DMA.
//! Left out: the effect of the stranger's air time alone, which `combined-security` measures.

use motet::mac::security::NetworkKey;
use motet::time::Duration;

use crate::Arena;
use crate::apps::App;
use crate::apps::messages::{Client, Server, Shape};
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, PORT, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Case, Results};
use crate::net::attack::{AttackOptions, Forgery, Frames};
use crate::net::network::{Joining, Network, NetworkOptions, Parent, SecurityOptions};
use crate::net::outages::{Outages, Switch};
use crate::net::run::{self, Next};
use crate::streams::{Purpose, stream};

/// A stranger beside a mote that reboots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stranger {
    joining: Joining,
    /// The mote that the stranger is beside.
    node: u64,
    kind: Forgery,
    /// Frames that strangers send a second.
    rate: u64,
    radio: Radio,
}

/// The radio that all nodes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Radio {
    Hamilton,
    Nrf52840,
}

/// The outcome of the messages of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Outcome {
    /// Part of the messages that did not arrive; all, where the chain did not form in time.
    lost: f64,
    /// Whether every mote has an address and a way to the border router in the end.
    is_whole: bool,
}

impl Traffic for Stranger {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let seconds = LONGER * seconds;
        let quiet = self.outcome(self.options(setup, seed)?, seconds)?;
        let mut options = self.options(setup, seed)?;
        options.attackers = vec![AttackOptions {
            near: self.node as usize,
            per_s: self.rate as f64,
            frames: Frames::Forged(self.kind),
            is_elsewhere: false,
        }];
        let beside = self.outcome(options, seconds)?;
        Ok(Run {
            figures: vec![
                (LOST.0, beside.lost - quiet.lost),
                (LOST_ANYWAY.0, quiet.lost),
                (JOINED.0, f64::from(u8::from(beside.is_whole))),
            ],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Stranger {
    fn options(&self, setup: &Setup, seed: u64) -> Result<NetworkOptions, Failure> {
        let mut options = setup.network(seed)?;
        options.joining = self.joining;
        if self.joining == Joining::Rpl {
            for node in &mut options.nodes {
                node.parent = Parent::Shortest;
            }
        }
        Ok(options)
    }

    /// The chain that it is beside.
    fn setup(&self) -> Setup {
        let profile = match self.radio {
            Radio::Hamilton => "hamilton",
            Radio::Nrf52840 => "nrf52840",
        };
        let mut setup = Setup::hops(HOPS as u16).with("radio.profile", profile);
        setup.beyond.security = Some(KEY);
        setup
    }

    /// Sends a message each second for `seconds`; the mote reboots once, a quarter into that time.
    fn outcome(&self, options: NetworkOptions, seconds: u64) -> Result<Outcome, Failure> {
        let (arena, seed) = (Arena::new(), options.seed);
        let sender = options.nodes.len() - 1;
        let mut network =
            Network::new(options, &arena).map_err(|error| Failure::Topology(error.to_string()))?;
        if !network.join(FORMS_WITHIN) {
            return Ok(Outcome {
                lost: 1.0,
                is_whole: false,
            });
        }
        let host = network.host(0).unwrap_or_default();
        let began = network.world.now();
        let until = began + Duration::from_secs(seconds);
        let mut rng = stream(seed, sender as u32, Purpose::Application);
        let receiving = network.ends(host, network.addr(sender), &arena);
        let sending = network.ends(sender, network.addr(host), &arena);
        let to = (network.addr(host), PORT);
        let server = Server::new(PORT, receiving, SHAPE).beginning_anew();
        let client = Client::new(to, sending, SHAPE, began, &mut rng).until(until);
        network.world.set_app(host, App::Server(server));
        let client = App::Client(client.beginning_anew());
        network.world.set_app(sender, client);
        let mut outages = Outages::default();
        let off_at = began + Duration::from_secs(seconds / 4);
        outages.add(off_at, self.node as usize, Switch::Off);
        outages.add(off_at + OFF_FOR, self.node as usize, Switch::On);
        run::run(&mut network, until + LAST_ON_ITS_WAY, |network| {
            outages.pass(network, &arena, |_, _, _| {});
            outages
                .next_at()
                .map_or(Next::At(until + LAST_ON_ITS_WAY), Next::At)
        });
        let (App::Client(client), App::Server(server)) =
            (network.world.app(sender), network.world.app(host))
        else {
            return Err(Failure::NotJoined);
        };
        if server.is_broken {
            let at = server.tally.bytes;
            return Err(Failure::BytesDiffer { at });
        }
        let arrived = server.tally.received.min(client.due);
        Ok(Outcome {
            lost: 1.0 - arrived as f64 / client.due.max(1) as f64,
            is_whole: network.has_joined(),
        })
    }

    fn point(&self) -> Point {
        let (name, _) = Forgery::ALL[self.kind as usize];
        let design = match (self.joining, self.radio) {
            (Joining::Rpl, Radio::Hamilton) => "rpl",
            (Joining::Rpl, Radio::Nrf52840) => "rpl, nrf52840",
            (Joining::Advertised | Joining::Static | Joining::Thread, Radio::Hamilton) => "given",
            (Joining::Advertised | Joining::Static | Joining::Thread, Radio::Nrf52840) => {
                "given, nrf52840"
            }
        };
        Point::default()
            .with("hops", HOPS)
            .with("key", "mic32")
            .with("design", design)
            .with("node", self.node)
            .with("attack", name)
            .with("rate", self.rate)
    }
}

/// Every setting.
pub fn cases() -> Vec<Case> {
    let of = |it: Stranger| Case::new(it.point(), it.setup()).traffic(it);
    strangers().map(of).collect()
}

/// Every row that follows from the runs of [`cases`].
pub fn rows(results: &Results<'_>) -> Vec<Row> {
    let of = |stranger: Stranger| {
        let point = stranger.point();
        let lost = results.runs(&point).map(|run| run.figure(LOST.0));
        let worst = lost.fold(f64::NEG_INFINITY, f64::max);
        let row = |name, value| results.derived(point.clone(), name, value);
        let mean = |name: (&'static str, _)| {
            let mean = results.mean_of(&point, |run| run.figure(name.0));
            row(name, mean)
        };
        [
            results.judged_in_full(mean(LOST).at_most(LOST_MAX)),
            row(LOST_WORST, worst).at_most(LOST_MAX).extreme(),
            results.judged_in_full(mean(JOINED).at_least(1.0)),
            mean(LOST_ANYWAY),
        ]
    };
    strangers().flat_map(of).collect()
}

fn strangers() -> impl Iterator<Item = Stranger> {
    let joinings = [Joining::Advertised, Joining::Rpl].into_iter();
    joinings.flat_map(|joining| {
        let kinds = ATTACKS.into_iter();
        kinds.flat_map(move |(kind, rate, radio)| {
            (1..=HOPS).map(move |node| Stranger {
                joining,
                node,
                kind,
                rate,
                radio,
            })
        })
    })
}

/// The attacks: the forgery, the frames a second, and the radios of the mesh.
const ATTACKS: [(Forgery, u64, Radio); 7] = [
    (Forgery::Source, 20, Radio::Hamilton),
    (Forgery::Source, 50, Radio::Hamilton),
    (Forgery::Source, 100, Radio::Hamilton),
    (Forgery::Source, RATE_MAX, Radio::Hamilton),
    (Forgery::Source, RATE_MAX, Radio::Nrf52840),
    (Forgery::Number, RATE_MAX, Radio::Hamilton),
    (Forgery::Ack, RATE_MAX, Radio::Hamilton),
];

/// More frames of 90 bytes leave no air for a mesh.
const RATE_MAX: u64 = 200;

/// Any key: it is no secret here.
const KEY: SecurityOptions = SecurityOptions::new(NetworkKey::new(*b"motet experiment"), 0);

const HOPS: u64 = 3;

/// One way: TCP acknowledges the messages, nobody answers them.
const SHAPE: Shape = Shape {
    message_len: 64,
    answer_len: 0,
    interval: Duration::from_secs(1),
};

/// A chain forms within a minute where nobody disturbs it.
const FORMS_WITHIN: Duration = Duration::from_secs(120);

/// How long a mote is off that reboots.
const OFF_FOR: Duration = Duration::from_secs(1);

/// A message that is sent at the end of a run has arrived by then.
const LAST_ON_ITS_WAY: Duration = Duration::from_secs(10);

/// A hundredth of the messages is to be several of them: these runs are this many times as long as
/// others.
const LONGER: u64 = 4;

/// More of the messages than without the stranger.
const LOST_MAX: f64 = 0.01;

const LOST: (&str, &str) = ("lost_to_strangers", "1");
/// The greatest loss of all runs.
const LOST_WORST: (&str, &str) = ("lost_to_strangers_worst", "1");
const LOST_ANYWAY: (&str, &str) = ("lost_without_strangers", "1");
const JOINED: (&str, &str) = ("joined", "1");

#[cfg(test)]
mod tests {
    use super::*;

    /// A share of ten decryptions a second loses most messages of these.
    #[test]
    fn strangers_keep_no_mote_out_and_cost_no_messages() {
        let worst = |it: &Stranger| {
            // A Hamilton has no time for so many: that is measured by the experiment.
            let is_too_much = it.rate == RATE_MAX && it.radio == Radio::Hamilton;
            it.kind == Forgery::Source && it.rate >= 100 && !is_too_much && it.node < HOPS
        };
        let jobs: Vec<Stranger> = strangers().filter(worst).collect();
        assert_eq!(jobs.len(), 8);
        crate::parallel::map(jobs, |it| {
            let run = it.run(&it.setup(), 2, 50).expect("the run counts");
            assert!(run.figure(LOST.0) <= LOST_MAX, "{it:?}: {:?}", run.figures);
            assert_eq!(run.figure(JOINED.0).to_bits(), 1.0_f64.to_bits(), "{it:?}");
        });
    }

    #[test]
    fn every_setting_is_told_from_the_others() {
        let points: Vec<Point> = strangers().map(|it| it.point()).collect();
        for (n, point) in points.iter().enumerate() {
            assert!(!points[..n].contains(point), "{point}");
        }
    }
}
