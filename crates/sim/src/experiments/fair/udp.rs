//! Datagrams at growing rates on the first testbed: where the mesh is full.

use std::sync::Arc;

use motet::time::{Duration, Instant};
use motet::wire::ipv6::Header;

use super::MOTES;
use super::goals::figure;
use super::testbed::Testbed;
use crate::Arena;
use crate::apps::App;
use crate::apps::readings::Readings;
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Budget, Case, Experiment, Results};
use crate::net::network::Network;
use crate::net::plan;
use crate::streams::{Purpose, stream};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "taim-udp",
    title: "UDP by rate in the first testbed (TAiM Fig 6)",
    cases,
    rows,
    axis: Some("interval_ms"),
    budget: [
        Budget {
            runs: 4,
            seconds: 300,
        },
        Budget {
            runs: 10,
            seconds: 600,
        },
    ],
};

/// From one datagram of a mote to its next: 0.1 to 2 a second.
const INTERVALS_MS: [u64; 8] = [10_000, 5_000, 2_500, 2_000, 1_667, 1_250, 1_000, 500];

const DESIGNS: [&str; 2] = ["b", "a"];

/// The share of a load that arrives where the mesh can carry it.
const DELIVERED: f64 = 0.97;

#[derive(Clone, Copy, Debug)]
struct Datagrams {
    design: &'static str,
    interval: Duration,
}

fn point(design: &'static str, interval_ms: u64) -> Point {
    Point::default()
        .with("transport", "udp")
        .with("design", design)
        .with("interval_ms", interval_ms)
}

fn cases() -> Vec<Case> {
    let of = |design: &'static str| {
        INTERVALS_MS.into_iter().map(move |ms| Case {
            point: point(design, ms),
            setup: Setup::hops(1),
            traffic: Arc::new(Datagrams {
                design,
                interval: Duration::from_millis(ms),
            }),
        })
    };
    DESIGNS.into_iter().flat_map(of).collect()
}

impl Traffic for Datagrams {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let options = Testbed::Corridor.network(seed, self.design)?;
        let mut network =
            Network::new(options, &arena).map_err(|error| Failure::Topology(error.to_string()))?;
        let until = Instant::ORIGIN + Duration::from_secs(seconds);
        let host = network.host(0).unwrap_or_default();
        let to = (network.addr(host), PORT);
        for mote in 1..=MOTES {
            let mut rng = stream(seed, mote as u32, Purpose::Application);
            let from = Instant::ORIGIN;
            let readings = Readings::new(to, LEN, self.interval, from, &mut rng).until(until);
            network.world.set_app(mote, App::Readings(readings));
        }
        if let Some(wire) = network.world.wire_mut() {
            wire.watch();
        }
        network.world.run_until(until + DRAIN);
        let delivered = delivered(&mut network);
        let sent = seconds as f64 * 1e6 / self.interval.as_micros() as f64;
        let parts = delivered.map(|count| count as f64 / sent);
        let worst = parts.iter().copied().fold(f64::INFINITY, f64::min);
        let parent = network.tree();
        let most = (1..=MOTES).max_by_key(|mote| parent.below(*mote).len());
        let bottleneck = most.map_or(f64::NAN, |mote| parts[mote - 1]);
        let rank = 1 + parts.iter().filter(|part| **part < bottleneck).count();
        Ok(Run {
            figures: vec![
                ("delivery", parts.iter().sum::<f64>() / MOTES as f64),
                ("delivery_worst", worst),
                ("delivery_of_bottleneck", bottleneck),
                ("bottleneck_rank", rank as f64),
            ],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// Datagrams of each mote that left the mesh.
fn delivered(network: &mut Network<'_>) -> [u64; MOTES] {
    let mut counts = [0; MOTES];
    let Some(wire) = network.world.wire_mut() else {
        return counts;
    };
    while let Some(passed) = wire.take_passed() {
        let header = Header::parse_start(&passed.packet).map(|(header, _)| header);
        let mote = header.ok().and_then(|header| plan::mesh_node(header.src));
        let count = mote.and_then(|mote| counts.get_mut(mote.checked_sub(1)?));
        if let Some(count) = count.filter(|_| passed.upwards) {
            *count += 1;
        }
    }
    counts
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for design in DESIGNS {
        // The highest rate at which, as at all below it, nearly all of it arrives.
        let is_carried = |ms: &&u64| figure(results, &point(design, **ms), "delivery") >= DELIVERED;
        let knee = INTERVALS_MS.iter().take_while(is_carried).last();
        let knee = knee.map_or(0.0, |ms| 1_000.0 / *ms as f64);
        let of_design = point(design, 0).without("interval_ms");
        let row = results
            .derived(of_design.clone(), ("knee_rate", "1/s"), knee)
            .paper(0.4);
        rows.push(row);
        let total = results.derived(of_design, ("knee_of_all", "1/s"), knee * MOTES as f64);
        rows.push(total.paper(12.0).identity());
        rows.extend(worst_motes(results, design));
    }
    for design in DESIGNS {
        for ms in INTERVALS_MS {
            for name in ["delivery", "delivery_worst", "delivery_of_bottleneck"] {
                if (name, ms) == ("delivery_worst", CARRIED_MS) {
                    // It is among the judged.
                    continue;
                }
                let point = point(design, ms);
                let value = figure(results, &point, name);
                let row = results.derived(point, (name, "1"), value);
                rows.push(match (design, name, ms) {
                    // The paper's mesh loses datagrams from 0.5 a second on.
                    ("b", "delivery", CROWDED_MS) => row.below(DELIVERED),
                    _ => row,
                });
            }
        }
    }
    rows
}

/// The paper's findings about the worst mote: below the knee it loses next to nothing; above it,
/// the worst mote (rank 1) is the parent of many.
fn worst_motes(results: &Results<'_>, design: &'static str) -> [Row; 2] {
    let [below, above] = [CARRIED_MS, CROWDED_MS].map(|ms| point(design, ms));
    let worst = figure(results, &below, "delivery_worst");
    let rank = figure(results, &above, "bottleneck_rank");
    let is_judged = design == "b";
    let worst = results.derived(below, ("delivery_worst", "1"), worst);
    let rank = results
        .derived(above, ("bottleneck_rank", "1"), rank)
        .paper(1.0);
    match is_judged {
        true => [worst.at_least(DELIVERED), rank.at_most(3.0)],
        false => [worst, rank],
    }
}

/// A rate that the paper's mesh carries, and one that it does not.
const CARRIED_MS: u64 = 2_500;
const CROWDED_MS: u64 = 1_000;

/// A datagram that fills one frame as the paper's segments do.
const LEN: usize = 38;

const PORT: u16 = 0xf0b1;

/// The time after which packets under way have arrived.
const DRAIN: Duration = Duration::from_secs(20);
