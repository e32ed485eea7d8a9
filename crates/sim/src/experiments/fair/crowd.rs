//! Crowds with nothing set: what users get who name no policy.
//!
//! Purpose: motes that hear each other, motes that do not, and floors of thirty, each mote with one
//! bulk flow to a host, under the policy that a border router has by itself and under none. Beside
//! the sum stands the share of all but the best, because a sum is easily raised by starving others.
//! A mote alone at the end of a chain stands beside them (`chains`).
//! Left out: floors for the paper's workload (`testbeds`), and policies that are named
//! (`combined`).

use std::sync::Arc;

use motet_taim::Policy;
use toml::Value;

use super::chains;
use super::trial::{Outcome, Trial, hosts};
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup, as_it_is};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Budget, Case, Experiment, Results};
use crate::net::network::NetworkOptions;
use crate::scenario::Document;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "combined-crowd",
    title: "Crowds behind one border router, with nothing set",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 4,
            seconds: 60,
        },
        Budget {
            runs: 10,
            seconds: 300,
        },
    ],
};

/// Where the motes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All hear each other and the border router.
    Star(u16),
    /// All hear the border router, and no mote another one.
    Hidden(u16),
    /// Anywhere on a floor that the seed makes, four hops deep at the least.
    Floor(u16),
    /// On the same floor, in a mesh that RPL forms.
    FloorByRpl(u16),
}

use Place::{Floor, FloorByRpl, Hidden, Star};

/// Every place, with its name.
const PLACES: [(&str, Place); 8] = [
    ("one", Star(1)),
    ("two", Star(2)),
    ("star", Star(10)),
    ("hidden 2", Hidden(2)),
    ("hidden 3", Hidden(3)),
    ("hidden 4", Hidden(4)),
    ("floor", Floor(30)),
    ("floor by RPL", FloorByRpl(30)),
];

const RADIOS: [&str; 3] = ["hamilton", "nrf52840", "telosb"];

/// The policy of a router that names none, and the one that it is compared with.
const POLICIES: [Policy; 2] = [Policy::Auto, Policy::None];

#[derive(Clone, Copy, Debug)]
struct Crowd {
    place: Place,
    radio: &'static str,
    policy: Policy,
}

impl Place {
    /// Whether it is measured with this radio: `TelosB`'s air is asked of floors alone.
    fn has(self, radio: &str) -> bool {
        radio != RADIOS[2] || matches!(self, Floor(_) | FloorByRpl(_))
    }

    /// How many motes are there.
    pub const fn motes(self) -> u16 {
        match self {
            Star(motes) | Hidden(motes) | Floor(motes) | FloorByRpl(motes) => motes,
        }
    }

    /// How its motes find their routes.
    const fn joining(self) -> &'static str {
        match self {
            FloorByRpl(_) => "rpl",
            _ => "static",
        }
    }

    /// The network there; besides its routes all is as where nothing is set.
    ///
    /// # Errors
    /// [`Failure::Topology`]: there is no such radio, or no such floor was found.
    pub fn network(self, radio: &str, seed: u64) -> Result<NetworkOptions, Failure> {
        let document = Document::new()
            .with("radio.profile", radio)
            .with("topology.joining", self.joining());
        let scenario = self.on(document, seed).scenario();
        let scenario = scenario.map_err(|error| Failure::Topology(error.to_string()))?;
        Ok(NetworkOptions {
            seed,
            ..scenario.network
        })
    }

    /// The keys of a scenario that make it.
    fn on(self, document: Document, seed: u64) -> Document {
        match self {
            Star(motes) => {
                // Two rows, three metres apart, on both sides of the border router.
                let seat = |mote: u16| {
                    let across = if mote.is_multiple_of(2) { 1.5 } else { -1.5 };
                    [f64::from(mote / 2) - f64::from(motes) / 4.0, across]
                };
                let seats = std::iter::once([0.0, 0.0]).chain((0..motes).map(seat));
                document.with("topology.positions", list(seats.map(list)))
            }
            Hidden(motes) => {
                let links = (1..=motes).flat_map(|mote| [(0, mote), (mote, 0)]);
                let link = |(from, to): (u16, u16)| {
                    Value::Array(vec![
                        i64::from(from).into(),
                        i64::from(to).into(),
                        HEARD_DB.into(),
                    ])
                };
                document.with("topology.links", list(links.map(link)))
            }
            // Lossless: seeds of experiments are small.
            Floor(motes) | FloorByRpl(motes) => document
                .with("topology.floor", i64::from(motes))
                .with("seed", seed.wrapping_add(super::FLOOR_SEEDS) as i64),
        }
    }
}

fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    Value::Array(values.into_iter().map(Into::into).collect())
}

impl Traffic for Crowd {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let motes = usize::from(self.place.motes());
        let trial = Trial {
            mesh: NetworkOptions {
                hosts: hosts(motes),
                ..self.place.network(self.radio, seed)?
            },
            senders: (1..=motes).collect(),
            bytes: None,
            limit: motet::time::Duration::from_secs(seconds),
            tunes: [as_it_is; 2],
        };
        let outcome = trial.run(self.policy)?;
        let figures = shares(&outcome, seconds);
        let mut run = outcome.into_run();
        run.figures.extend(figures);
        Ok(run)
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The goodput of all flows but the best, kb/s, and the flows that got nothing in the second half.
fn shares(outcome: &Outcome, seconds: u64) -> [(&'static str, f64); 2] {
    let all = outcome.arrived.iter().map(|arrived| {
        let last = arrived.last().copied().unwrap_or(0);
        let half = arrived.get(arrived.len() / 2).copied().unwrap_or(0);
        (last as f64 / 125.0 / seconds as f64, last > half)
    });
    let all: Vec<(f64, bool)> = all.collect();
    let best = all.iter().map(|(kbps, _)| *kbps).fold(0.0, f64::max);
    let rest = all.iter().map(|(kbps, _)| kbps).sum::<f64>() - best;
    let dead = all.iter().filter(|(_, lives)| !lives).count();
    [(REST, rest), (DEAD, dead as f64)]
}

fn point(place: &'static str, radio: &'static str, policy: &Policy) -> Point {
    let point = Point::default().with("design", place).with("radio", radio);
    point.with("policy", policy.name())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, place) in PLACES {
        for radio in RADIOS.into_iter().filter(|radio| place.has(radio)) {
            cases.extend(POLICIES.map(|policy| Case {
                point: point(name, radio, &policy),
                setup: Setup::hops(1),
                traffic: Arc::new(Crowd {
                    place,
                    radio,
                    policy,
                }),
            }));
        }
    }
    cases.extend(chains::cases());
    cases
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for radio in RADIOS {
        for (name, place) in PLACES.into_iter().filter(|(_, place)| place.has(radio)) {
            let [auto, none] = POLICIES.map(|policy| point(name, radio, &policy));
            let of = |point: &Point, figure| results.mean_of(point, |run| run.figure(figure));
            let row = |point: &Point, (figure, unit)| {
                results.derived(point.clone(), (figure, unit), of(point, figure))
            };
            if matches!(place, Star(1 | 2)) {
                let part = of(&auto, SUM.0) / of(&none, SUM.0);
                let part = results.derived(auto.clone(), ("goodput_ratio", "1"), part);
                rows.push(part.at_least(0.95).moonshot(1.0));
                rows.push(row(&auto, SUM));
                continue;
            }
            let worst = results.runs(&auto).map(|run| run.figure(JAIN)).collect();
            let worst = results.least(auto.clone(), ("jain_worst", "1"), worst);
            rows.push(worst.at_least(0.95).moonshot(0.99).extreme());
            rows.push(row(&auto, (DEAD, "1")).at_most(0.0));
            rows.push(match must(place, radio) {
                Some((must, Some(best))) => row(&auto, SUM).at_least(must).moonshot(best),
                Some((must, None)) => row(&auto, SUM).at_least(must),
                None => row(&auto, SUM),
            });
            rows.push(row(&auto, (REST, "kb/s")));
            let without = [(JAIN, "1"), (DEAD, "1"), SUM, (REST, "kb/s")];
            rows.extend(without.map(|figure| row(&none, figure)));
        }
    }
    rows.extend(chains::rows(results));
    results.all_judged_in_full(rows)
}

/// What the sum of all flows must be at a place, and would be at best where that is known, kb/s.
fn must(place: Place, radio: &str) -> Option<(f64, Option<f64>)> {
    let by_radio: &[(f64, Option<f64>)] = match place {
        Star(_) => &[(70.0, Some(80.0)), (95.0, Some(105.0))],
        Hidden(2) => &[(45.0, Some(60.0)), (60.0, Some(78.0))],
        Floor(_) | FloorByRpl(_) => &[(30.0, Some(39.0)), (44.0, Some(48.0)), (50.0, None)],
        Hidden(_) => &[],
    };
    let rank = RADIOS.iter().position(|known| *known == radio)?;
    by_radio.get(rank).copied()
}

const JAIN: &str = "jain";
const SUM: (&str, &str) = ("goodput", "kb/s");
const REST: &str = "goodput_but_best";
const DEAD: &str = "flows_dead";

/// The gain between nodes that hear each other, dB.
const HEARD_DB: f64 = -60.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each place carries something, and the share of all but the best is what the best leaves.
    #[test]
    fn every_place_runs() {
        for (name, place) in PLACES {
            let crowd = Crowd {
                place,
                radio: RADIOS[1],
                policy: POLICIES[0],
            };
            let run = crowd.run(&Setup::hops(1), 1, 20).unwrap();
            let [sum, rest] = [SUM.0, REST].map(|figure| run.figure(figure));
            assert!(sum > 5.0, "{name}: {sum} kb/s");
            let best = sum - rest;
            let even = sum / f64::from(place.motes());
            assert!(best >= even * 0.999, "{name}: {best} of {sum} kb/s");
        }
    }
}
