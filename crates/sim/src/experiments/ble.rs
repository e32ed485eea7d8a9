//! TCP over Bluetooth LE, with and without the measures that make it fast.
//!
//! Motes send as much as they can to hosts right behind the border router. **motet**: the stack as
//! it is, with 4 KiB of TCP buffers in all; it queues two SDUs, so that a connection event
//! continues, and chooses the connection interval by the losses. **tcple** is `TCPlE` on its
//! authors' BLE stack, with a host that acknowledges each segment. **tcplp-ble** and **naive** are
//! what its authors compare it with, on the same BLE stack: an interval of 50 ms whatever is lost,
//! and a buffer of 1,280 bytes that is filled again when it is empty. tcplp-ble has segments of
//! five packets, naive segments of 189 bytes and a window of ten.
//!
//! Losses are drawn independently for each packet.
//! Sources: Performant TCP over BLE, §II and §VI; criteria are the project's.

use motet::ble::Phy;
use motet::tcp::Config;
use motet::time::Duration;

use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Ends, Receiver, Sender};
use crate::ble::Profile;
use crate::ble::estimate::SduTimes;
use crate::net::network::{BleOptions, HostOptions, Network, NetworkOptions};
use crate::net::run::{Next, run};
use crate::stats::median;

use super::metric::{GOODPUT, JAIN, Metric, RTT};
use super::row::{Point, Row, Value};
use super::run::{
    DRAIN_LIMIT, Failure, Flow, PORT, Run, drain, frames, joined, received, retransmissions, verify,
};
use super::setup::{Segment, Setup};
use super::tcple::{NAIVE, ONE_BUFFER, TCPLE, TCPLP};
use super::traffic::Traffic;
use super::{Budget, Case, Experiment, Results};

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-ble",
    title: "TCP over Bluetooth LE: events that go on, and an interval that follows the losses",
    cases,
    rows,
    axis: Some("loss"),
    budget: [
        Budget {
            runs: 5,
            seconds: 10,
        },
        Budget {
            runs: 10,
            seconds: 60,
        },
    ],
}];

const DESIGNS: [&str; 4] = [MOTET, TCPLE.name, TCPLP.name, NAIVE.name];
const MOTET: &str = "motet";

const PHYS: [(&str, Phy); 2] = [("1M", Phy::Le1M), ("2M", Phy::Le2M)];

/// The share of lost packets, in hundredths.
const LOSSES: [u64; 4] = [0, 5, 10, 20];

/// How many motes there are beside the one that is measured.
const PERIPHERALS: [u64; 5] = [2, 3, 4, 5, 6];

fn point(design: &'static str, phy: &'static str, loss: u64, peripherals: u64) -> Point {
    Point::default()
        .with("design", design)
        .with("phy", phy)
        .with("loss", Value::Hundredths(loss))
        .with("peripherals", peripherals)
}

fn cases() -> Vec<Case> {
    let mut points = Vec::new();
    for (phy, _) in PHYS {
        for loss in LOSSES {
            points.extend(DESIGNS.map(|design| (design, phy, loss, 1)));
        }
        points.extend(PERIPHERALS.map(|motes| (MOTET, phy, 0, motes)));
    }
    points.push((MOTET, "1M", 5, 6));
    let case = |(design, phy, loss, peripherals)| {
        let of_name = |(name, _): &&(&str, Phy)| *name == phy;
        let traffic = Saturated {
            design,
            phy: PHYS.iter().find(of_name).map_or(Phy::Le1M, |(_, phy)| *phy),
            error: loss as f64 / 100.0,
            motes: peripherals as usize,
        };
        Case::new(point(design, phy, loss, peripherals), Setup::hops(1)).traffic(traffic)
    };
    points.into_iter().map(case).collect()
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let one = |design, phy, loss| point(design, phy, loss, 1);
    let mut rows = vec![
        results.goodput(&one(MOTET, "1M", 0)).at_least(690.0),
        results.goodput(&one(MOTET, "2M", 0)).at_least(1230.0),
        results.goodput(&one(MOTET, "1M", 5)).at_least(500.0),
        results.row(&one(MOTET, "1M", 0), BUFFER).at_most(4096.0),
        results.row(&one(MOTET, "2M", 0), BUFFER).at_most(4096.0),
    ];
    for (phy, loss) in [("1M", 0), ("2M", 0), ("1M", 5)] {
        let six = point(MOTET, phy, loss, 6);
        let share = results.mean(&six, GOODPUT) / results.mean(&one(MOTET, phy, loss), GOODPUT);
        let name = ("goodput_over_one_flow", "1");
        rows.push(results.derived(six.clone(), name, share).at_least(0.8));
        rows.push(results.row(&six, JAIN).at_least(0.95));
    }
    for (phy, _) in PHYS {
        for loss in LOSSES {
            let of = |design| results.mean(&one(design, phy, loss), GOODPUT);
            let parts = DESIGNS[1..].iter().map(|other| of(MOTET) / of(other));
            let name = ("goodput_over_others", "1");
            let row = results.least(one(MOTET, phy, loss), name, parts.collect());
            rows.push(row.at_least(1.0));
        }
    }
    for (phy, _) in PHYS {
        let of = |design| results.mean(&one(design, phy, 0), ENERGY);
        let name = ("energy_over_tcple", "1");
        let row = results.derived(one(MOTET, phy, 0), name, of(MOTET) / of(TCPLE.name));
        rows.push(row.at_most(1.0));
    }
    let judged: Vec<Point> = rows
        .iter()
        .filter(|row| row.metric == GOODPUT.name)
        .map(|row| row.point.clone())
        .collect();
    for case in results.cases() {
        if !judged.contains(&case.point) {
            rows.push(results.goodput(&case.point));
        }
        rows.push(results.row(&case.point, INTERVAL));
        rows.push(results.row(&case.point, ENERGY));
        rows.push(results.row(&case.point, RTT));
    }
    rows
}

const BUFFER: Metric = figure("tcp_buffer", "B", |run| run.figure("tcp_buffer"));
const INTERVAL: Metric = figure("interval", "ms", |run| run.figure("interval"));
const ENERGY: Metric = figure("energy_per_byte", "µJ/B", |run| {
    run.figure("energy_per_byte")
});

const fn figure(name: &'static str, unit: &'static str, of: fn(&Run) -> f64) -> Metric {
    Metric { name, unit, of }
}

/// Each mote sends to a host of its own as long as the run goes on.
#[derive(Clone, Copy, Debug)]
struct Saturated {
    design: &'static str,
    phy: Phy,
    error: f64,
    motes: usize,
}

impl Traffic for Saturated {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        // Motes join where nothing is lost: how long that takes is no question here.
        let mut network = joined(self.network(seed), &arena)?;
        network.world.set_frame_loss(self.error);
        let from = network.world.now() + WARM_UP;
        let to = from + Duration::from_secs(seconds);
        let pairs: Vec<[usize; 2]> = (0..self.motes)
            .map(|n| [n + 1, network.host(n).unwrap_or_default()])
            .collect();
        let mut buffers = 0;
        for (number, [mote, host]) in pairs.iter().copied().enumerate() {
            let content = Content::endless([seed, number as u64]);
            let port = PORT + number as u16;
            let receiving = network.ends(host, network.addr(mote), &arena);
            let receiving = receiving.with(|config| self.set_acks(config));
            let receiver = Receiver::checking(port, receiving, content.clone());
            let ends = self.ends(&network, mote, host, &arena);
            buffers = ends
                .memory_len(network.world.node(mote))
                .unwrap_or_default();
            let peer = (network.addr(host), port);
            let sender = Sender::new(content, peer, ends).until(to);
            network.world.set_app(host, App::Receiver(receiver));
            network.world.set_app(mote, App::Sender(sender));
        }
        network.world.run_until(from);
        let before = Counts::of(&network, &pairs);
        let mut rtts = Vec::new();
        run(&mut network, to, |network| {
            let progress = network.world.app(1).progress();
            rtts.extend(progress.map(|progress| f64::from(progress.telemetry.srtt_ms)));
            Next::At(network.world.now() + SAMPLE_EVERY)
        });
        let after = Counts::of(&network, &pairs);
        let interval = interval_ms(&network);
        drain(&mut network, &pairs, to + DRAIN_LIMIT);
        for pair in &pairs {
            verify(&network, pair)?;
        }
        let rtt_ms = median(&mut rtts);
        let bytes: Vec<u64> = after.since(&before);
        let flow = |bytes: &u64| Flow {
            goodput_kbps: *bytes as f64 * 8.0 / 1_000.0 / seconds as f64,
            rtt_ms,
            ..Flow::default()
        };
        let all: u64 = bytes.iter().sum();
        let (frames, fates) = frames(&network);
        Ok(Run {
            flows: bytes.iter().map(flow).collect(),
            bytes: all,
            frames,
            fates,
            retransmissions: retransmissions(&network, 1),
            figures: vec![
                ("tcp_buffer", buffers as f64),
                ("interval", interval),
                (
                    "energy_per_byte",
                    (after.energy_uj - before.energy_uj) / all as f64,
                ),
            ],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        let times = SduTimes {
            phy: self.phy,
            has_mic: false,
            ack_every: u8::MAX,
        };
        let len = PAYLOAD_LEN_MAX;
        Segment {
            payload_len: len,
            bound: Some(times.goodput_kbps(len, len + HEADERS_LEN_MIN, HEADERS_LEN_MIN)),
            estimate: None,
        }
    }
}

impl Saturated {
    /// How the hosts acknowledge: `TCPlE` has delayed ACKs off.
    fn set_acks(&self, config: &mut Config) {
        config.ack_delay_ms = HOST_ACK_DELAY_MS;
        if self.design == TCPLE.name {
            config.ack_every = 1;
        }
    }

    fn network(&self, seed: u64) -> NetworkOptions {
        let is_motet = self.design == MOTET;
        let profile = match is_motet {
            true => Profile::NRF52840,
            false => ONE_BUFFER,
        };
        let is_tcple = self.design == TCPLE.name;
        let options = NetworkOptions::over_ble(
            self.motes,
            BleOptions {
                phy: self.phy,
                is_adaptive: is_motet,
                tcple_motes: if is_tcple { usize::MAX } else { 0 },
                profile,
                ..BleOptions::DEFAULT
            },
        );
        let host = |n: usize| HostOptions {
            delay: Duration::ZERO,
            ..HostOptions::new(format!("host {n}"))
        };
        NetworkOptions {
            seed,
            hosts: (0..self.motes).map(host).collect(),
            ..options
        }
    }

    /// The sending end of a mote.
    fn ends<'m>(
        &self,
        network: &Network<'m>,
        mote: usize,
        host: usize,
        arena: &'m Arena,
    ) -> Ends<'m> {
        let (segments, change): (usize, fn(&mut Config)) = match self.design {
            MOTET => (3, |config| config.timestamps = false),
            name if name == NAIVE.name => (NAIVE.segments, |config| {
                config.smss = NAIVE.smss.unwrap_or(config.smss);
            }),
            _ => (TCPLP.segments, |_| {}),
        };
        let ends = Ends::mote(arena, network.addr(host), segments).with(change);
        debug_assert!(mote > 0, "the border router sends nothing");
        match self.design {
            MOTET => ends.receiving(RECEIVED_LEN),
            _ => ends,
        }
    }
}

/// The counters at one moment.
struct Counts {
    bytes: Vec<u64>,
    /// Energy of all motes, µJ.
    energy_uj: f64,
}

impl Counts {
    fn of(network: &Network<'_>, pairs: &[[usize; 2]]) -> Self {
        let world = &network.world;
        let energy = |[mote, _]: &[usize; 2]| {
            let usage = world.ble()?.usage(world.device(*mote)?);
            Some(usage.energy_uj())
        };
        Self {
            bytes: pairs.iter().map(|pair| received(network, pair)).collect(),
            energy_uj: pairs.iter().filter_map(energy).sum(),
        }
    }

    fn since(&self, before: &Self) -> Vec<u64> {
        let all = self.bytes.iter().zip(&before.bytes);
        all.map(|(after, before)| after - before).collect()
    }
}

/// The interval of the first connection, ms.
fn interval_ms(network: &Network<'_>) -> f64 {
    use crate::net::network::RADIO;
    use motet::link::Link;
    match network.world.node(0).link(RADIO) {
        Some(Link::Ble(ble)) => {
            let first = ble.host().connections().next();
            first.map_or(f64::NAN, |first| f64::from(first.timing().interval) * 1.25)
        }
        _ => f64::NAN,
    }
}

/// The receive buffer of a mote that only sends, bytes: 200 of data, and TCP's own notes.
const RECEIVED_LEN: u16 = 200;

/// The time by which Linux delays ACKs, ms.
const HOST_ACK_DELAY_MS: u16 = 40;

/// The largest segment in an SDU of the MTU, and its shortest headers: both addresses elided.
const PAYLOAD_LEN_MAX: usize = 1280 - 40 - 20;
const HEADERS_LEN_MIN: usize = 3 + 20;

/// The steps to another interval take a second each.
const WARM_UP: Duration = Duration::from_secs(10);

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
