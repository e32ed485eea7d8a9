//! Motes that sleep at one parent, some of which are off while much is sent to them.
//!
//! Purpose: a child that does not ask any more must not take the memory of its parent, nor its air,
//! from its siblings. Each run is made twice, with and without the children that are off, and the
//! siblings' messages are compared. Sources: OpenThread, issue 13395. The setting is the project's:
//! children five metres from the border router, to each of which the host sends at an interval.

use motet::mac::poll::REST_REACHABLE;
use motet::mac::{Policy, Sleep};
use motet::random::Rng;
use motet::time::{Duration, Instant};

use crate::Arena;
use crate::air::gains::{Gains, LogDistance};
use crate::apps::App;
use crate::apps::messages::{Client, Server, Shape};
use crate::apps::readings::{Readings, Sink, Tally};
use crate::experiments::metric::Metric;
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, PORT, Run, joined};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Case, Results};
use crate::net::network::{HostOptions, Network, NetworkOptions, NodeOptions};
use crate::streams::{Purpose, stream};

/// The transport of the host's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A connection to each, on which each message is answered.
    Tcp,
    /// Datagrams without an answer.
    Udp,
}

/// Messages to one mote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// The transport that carries the messages.
    pub transport: Transport,
    /// Bytes of each message.
    pub message_len: usize,
    /// Time from one message to the next.
    pub interval: Duration,
}

/// A parent's children, some of which are off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Siblings {
    /// The number of sleeping motes around the border router.
    pub children: usize,
    /// How many of them are switched off for good, after a minute.
    pub dead: usize,
    /// When each child asks its parent for packets.
    pub policy: Policy,
    /// How long the parent keeps a silent child.
    pub child_timeout: Duration,
    /// The messages to each mote that stays.
    pub load: Load,
    /// The messages to each mote that is off, from then on.
    pub flood: Load,
}

/// Part of the siblings' messages that arrived (over TCP: that were answered).
pub const SIBLING_DELIVERY: Metric = Metric {
    name: "sibling_delivery",
    unit: "1",
    of: |run| run.figure("sibling_delivery"),
};

/// Their mean latency beside children that are off, as a multiple of that without.
pub const SIBLING_LATENCY: Metric = Metric {
    name: "sibling_latency",
    unit: "1",
    of: |run| run.figure("sibling_latency"),
};

/// The share of messages delivered without children that are off.
const DELIVERY_ALONE: (&str, &str) = ("sibling_delivery_alone", "1");

/// How many messages the siblings got, and how late.
struct Delivery {
    delivered: f64,
    mean_s: f64,
    max_s: f64,
}

impl Siblings {
    /// The setting that OpenThread's users reported: three children that ask each two seconds, one
    /// of which is off.
    pub const REPORTED: Self = Self {
        children: 3,
        dead: 1,
        policy: Policy::Fixed(Duration::from_secs(2)),
        child_timeout: Duration::from_secs(600),
        load: Load {
            transport: Transport::Tcp,
            message_len: 64,
            interval: Duration::from_secs(5),
        },
        flood: Load {
            transport: Transport::Udp,
            message_len: 600,
            interval: Duration::from_millis(100),
        },
    };

    /// The mesh: children on a circle around the border router.
    fn network(&self, seed: u64) -> NetworkOptions {
        let mut positions = vec![[0.0, 0.0]];
        positions.extend((0..self.children).map(|n| {
            let angle = std::f64::consts::TAU * n as f64 / self.children as f64;
            [RADIUS_M * angle.cos(), RADIUS_M * angle.sin()]
        }));
        let mut nodes = vec![NodeOptions::new("border")];
        nodes.extend((1..=self.children).map(|n| NodeOptions::new(format!("mote {n}"))));
        for node in &mut nodes[1..] {
            node.sleep = Some(Sleep::new(self.policy));
        }
        nodes[0].indirect.child_timeout = self.child_timeout;
        let gains = Gains::log_distance(&positions, LogDistance::OFFICE, seed);
        let host = HostOptions {
            connections: self.children.max(1),
            ..HostOptions::new("host")
        };
        NetworkOptions {
            seed,
            hosts: vec![host],
            ..NetworkOptions::new(nodes, gains)
        }
    }

    /// One run of so many seconds, with or without those that are off: without, nothing is sent to
    /// them.
    fn measure(&self, seed: u64, seconds: u64, has_dead: bool) -> Result<Delivery, Failure> {
        let arena = Arena::new();
        let mut network = joined(self.network(seed), &arena)?;
        let begin = network.world.now();
        let ends_at = begin + Duration::from_secs(seconds);
        let host = network.host(0).unwrap_or_default();
        let first_alive = 1 + self.dead;
        let rng = |mote: usize| stream(seed, mote as u32, Purpose::Application);
        let mut flows = Vec::new();
        for mote in first_alive..=self.children {
            let (ends, times) = ([host, mote], [begin, ends_at]);
            let load = &self.load;
            let places = load.begin((&mut network, &arena), ends, times, &mut rng(mote));
            flows.push((mote, places));
        }
        if has_dead {
            let off_at = begin + OFF_AFTER;
            network.world.run_until(off_at);
            for mote in 1..first_alive {
                let (ends, times) = ([host, mote], [off_at, ends_at]);
                let flood = &self.flood;
                flood.begin((&mut network, &arena), ends, times, &mut rng(mote));
                network.switch_off(mote);
            }
        }
        network
            .world
            .run_until(ends_at + self.policy.rest() + ARRIVE_WITHIN);
        Ok(Delivery::of(&network, host, &flows))
    }
}

impl Load {
    /// Lets the host send to a mote; returns the places of the sender at the host, and of the
    /// receiver.
    fn begin<'m>(
        &self,
        (network, arena): (&mut Network<'m>, &'m Arena),
        [host, mote]: [usize; 2],
        [begin, ends_at]: [Instant; 2],
        rng: &mut Rng,
    ) -> [usize; 2] {
        let remote = (network.addr(mote), PORT);
        let shape = Shape {
            message_len: self.message_len,
            answer_len: ANSWER_LEN,
            interval: self.interval,
        };
        let [sending, receiving] = [
            network.ends(host, remote.0, arena),
            network.ends(mote, network.addr(host), arena),
        ];
        let world = &mut network.world;
        match self.transport {
            Transport::Tcp => {
                let server = Server::new(PORT, receiving, shape).beginning_anew();
                let client = Client::new(remote, sending, shape, begin, rng);
                let client = client.until(ends_at).beginning_anew();
                let read = world.add_app(mote, App::Server(server));
                [world.add_app(host, App::Client(client)), read]
            }
            Transport::Udp => {
                let (len, interval) = (self.message_len, self.interval);
                let readings = Readings::new(remote, len, interval, begin, rng);
                let sink = world.add_app(mote, App::Sink(Sink::new(&[PORT], arena)));
                [
                    world.add_app(host, App::Readings(readings.until(ends_at))),
                    sink,
                ]
            }
        }
    }
}

impl Delivery {
    /// The outcome of these flows: to which mote, and by which senders and receivers.
    fn of(network: &Network<'_>, host: usize, flows: &[(usize, [usize; 2])]) -> Self {
        let (mut due, mut arrived, mut age_s, mut max_s) = (0, 0, 0.0, 0.0_f64);
        for (mote, [sender, receiver]) in flows {
            let ends = [
                network.world.apps(host).get(*sender),
                network.world.apps(*mote).get(*receiver),
            ];
            let (made, tally): (u64, Option<&Tally>) = match ends {
                [Some(App::Client(client)), _] => (client.due, Some(&client.tally)),
                [Some(App::Readings(readings)), Some(App::Sink(sink))] => {
                    (readings.made.into(), sink.tally(PORT))
                }
                _ => (0, None),
            };
            let received = tally.map_or(0, |tally| tally.received);
            let seconds = |age: Duration| age.as_micros() as f64 / 1e6;
            let mean = tally.and_then(Tally::mean_age).map_or(0.0, seconds);
            let max = tally
                .and_then(|tally| tally.ages.max())
                .map_or(0.0, seconds);
            due += made;
            arrived += received;
            age_s += mean * received as f64;
            max_s = max_s.max(max);
        }
        Self {
            delivered: arrived as f64 / due as f64,
            mean_s: age_s / arrived as f64,
            max_s,
        }
    }
}

impl Traffic for Siblings {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let seconds = LONGER * seconds;
        let [alone, beside] = [false, true].map(|has_dead| self.measure(seed, seconds, has_dead));
        let (alone, beside) = (alone?, beside?);
        Ok(Run {
            figures: vec![
                ("sibling_delivery", beside.delivered),
                (DELIVERY_ALONE.0, alone.delivered),
                ("sibling_latency", beside.mean_s / alone.mean_s),
                ("sibling_latency_s", beside.mean_s),
                ("sibling_latency_max_s", beside.max_s),
                ("sibling_latency_max_alone_s", alone.max_s),
            ],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// Settings of [`cases`]: children, those that are off, the policy's name and the siblings'
/// transport.
fn settings() -> Vec<(Point, Siblings)> {
    let policies = [
        ("fixed", Policy::Fixed(Duration::from_secs(2))),
        ("adaptive", Policy::Adaptive),
        ("hinted", Policy::Hinted(REST_REACHABLE)),
    ];
    let transports = [("tcp", Transport::Tcp), ("udp", Transport::Udp)];
    let mut settings = Vec::new();
    for (children, dead) in [(3, 1), (6, 2), (12, 6)] {
        for (policy_name, policy) in policies {
            // Longer than its rest, so that each message waits for one request.
            let interval = match policy {
                Policy::Hinted(rest) => rest + Duration::from_secs(40),
                _ => Siblings::REPORTED.load.interval,
            };
            for (transport_name, transport) in transports {
                let point = Point::default()
                    .with("nodes", children as u64)
                    .with("without", dead as u64)
                    .with("policy", policy_name)
                    .with("transport", transport_name);
                let siblings = Siblings {
                    children,
                    dead,
                    policy,
                    load: Load {
                        transport,
                        interval,
                        ..Siblings::REPORTED.load
                    },
                    ..Siblings::REPORTED
                };
                settings.push((point, siblings));
            }
        }
    }
    settings
}

/// The settings of an experiment with children that are off.
pub fn cases() -> Vec<Case> {
    let settings = settings().into_iter();
    let case = |(point, siblings)| Case::new(point, Setup::hops(1)).traffic(siblings);
    settings.map(case).collect()
}

/// The rows for the runs of [`cases`]: siblings get as much as they get without the motes that are
/// off.
pub fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (point, _) in settings() {
        let judged = [
            results.row(&point, SIBLING_DELIVERY).at_least(0.98),
            results.row(&point, SIBLING_LATENCY).at_most(1.2),
        ];
        rows.extend(judged.map(|row| results.judged_in_full(row)));
        let alone = results.mean_of(&point, |run| run.figure(DELIVERY_ALONE.0));
        rows.push(results.derived(point, DELIVERY_ALONE, alone));
    }
    rows
}

/// Some motes get a message in a hundred seconds: these runs are this many times as long as others.
const LONGER: u64 = 4;

/// Distance from the border router to each child, m.
const RADIUS_M: f64 = 5.0;

/// Bytes of an answer.
const ANSWER_LEN: usize = 20;

/// When the children that do not stay are switched off.
const OFF_AFTER: Duration = Duration::from_secs(60);

/// How long the last message may take, once its mote has asked.
const ARRIVE_WITHIN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(siblings: Siblings, seconds: u64) {
        let run = siblings.run(&Setup::hops(1), 1, seconds).expect("it runs");
        let at = format!("{siblings:?}: {:?}", run.figures);
        println!("{at}");
        let figure = |name| run.figure(name);
        // Without those that are off it may be that not all arrives: nobody sends a datagram again.
        let least = 0.98 * figure("sibling_delivery_alone").min(1.0);
        assert!(figure("sibling_delivery") >= least, "{at}");
        assert!(figure("sibling_latency") <= 1.2, "{at}");
    }

    #[test]
    fn a_child_that_is_off_takes_nothing_from_its_siblings() {
        check(Siblings::REPORTED, 60);
        let datagrams = Load {
            transport: Transport::Udp,
            message_len: 300,
            ..Siblings::REPORTED.load
        };
        check(
            Siblings {
                children: 6,
                dead: 4,
                load: datagrams,
                ..Siblings::REPORTED
            },
            60,
        );
    }

    /// The parent forgets a silent child within the run, and what is sent to that child then goes
    /// on the air.
    #[test]
    fn nor_does_one_that_is_a_child_no_longer() {
        let short = Siblings {
            children: 6,
            dead: 2,
            child_timeout: Duration::from_secs(20),
            ..Siblings::REPORTED
        };
        check(short, 60);
    }
}
