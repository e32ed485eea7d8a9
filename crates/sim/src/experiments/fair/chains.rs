//! One mote at the end of a chain with nothing set: `combined-crowd` beside its crowds.
//!
//! Purpose: what one bulk flow carries, by radio and by hops, and how long a request of one frame
//! takes beside the same without compressed headers.
//! Left out: paces and settings by hand (`combined-pacing`), chains of the papers (`tcplp-hops`).

use motet::time::Duration;

use crate::apps::messages::Shape;
use crate::experiments::ask::{self, Ask};
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::Setup;
use crate::experiments::{Case, Results};

/// A chain, its radio and relays, and what one flow must carry there and would at best, kb/s.
#[derive(Clone, Copy)]
struct Chain {
    radio: &'static str,
    forwarding: Option<&'static str>,
    channels: &'static str,
    hops: u64,
    goal: (f64, f64),
}

const fn chain(radio: &'static str, hops: u64, goal: (f64, f64)) -> Chain {
    Chain {
        radio,
        forwarding: None,
        channels: "single",
        hops,
        goal,
    }
}

/// The same with relays that keep no copy.
const fn immediate(hops: u64, goal: (f64, f64)) -> Chain {
    Chain {
        forwarding: Some("cit"),
        ..chain("telosb", hops, goal)
    }
}

/// The same on several channels.
const fn on_channels(chain: Chain) -> Chain {
    Chain {
        channels: "multi",
        ..chain
    }
}

const CHAINS: [Chain; 18] = [
    chain("hamilton", 1, (84.0, 86.0)),
    chain("hamilton", 2, (38.5, 42.0)),
    chain("hamilton", 3, (32.0, 34.0)),
    chain("hamilton", 4, (29.0, 30.0)),
    chain("hamilton", 6, (22.0, 25.0)),
    chain("nrf52840", 1, (104.0, 107.0)),
    chain("nrf52840", 2, (56.0, 60.0)),
    chain("nrf52840", 3, (36.0, 40.0)),
    chain("nrf52840", 4, (30.0, 36.0)),
    chain("nrf52840", 6, (27.0, 30.0)),
    on_channels(chain("nrf52840", 2, (52.0, 58.0))),
    chain("telosb", 3, (33.5, 37.0)),
    chain("telosb", 4, (29.0, 30.0)),
    chain("telosb", 6, (22.0, 24.0)),
    immediate(3, (41.0, 43.0)),
    immediate(6, (27.0, 30.0)),
    on_channels(immediate(3, (60.0, 64.0))),
    on_channels(immediate(6, (53.0, 58.0))),
];

impl Chain {
    fn point(&self) -> Point {
        let forwarding = self.forwarding.unwrap_or("copy");
        of_chain(self.radio, self.hops)
            .with("forwarding", forwarding)
            .with("channels", self.channels)
    }

    fn case(&self) -> Case {
        let setup = Setup::unset(self.hops as u16)
            .with("radio.profile", self.radio)
            .with("radio.channels", self.channels);
        let setup = match self.forwarding {
            Some(forwarding) => setup.with("stack.forwarding", forwarding),
            None => setup,
        };
        Case::new(self.point(), setup)
    }
}

/// One frame each way, once a second.
const REQUEST: Shape = Shape {
    message_len: 64,
    answer_len: 64,
    interval: Duration::from_secs(1),
};

const ASKED_HOPS: [u64; 3] = [1, 3, 6];
const ASKED_RADIOS: [&str; 2] = ["hamilton", "nrf52840"];

/// Headers as both ends agree, and as they are without.
const COMPRESSIONS: [&str; 2] = ["auto", "none"];

/// The share of an answer's time without compressed headers that must be left, and at best.
const LATENCY_LEFT: (f64, f64) = (0.75, 0.65);

fn of_chain(radio: &'static str, hops: u64) -> Point {
    let point = Point::default().with("design", "chain");
    point.with("radio", radio).with("hops", hops)
}

fn asked() -> impl Iterator<Item = (&'static str, u64)> {
    let of_radio = |radio| ASKED_HOPS.map(|hops| (radio, hops));
    ASKED_RADIOS.into_iter().flat_map(of_radio)
}

fn asking_point((radio, hops): (&'static str, u64), compression: &'static str) -> Point {
    let point = of_chain(radio, hops).with("flow", "request of 64 B");
    point.with("compression", compression)
}

/// Each chain with one flow, and some with requests.
pub(super) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = CHAINS.iter().map(Chain::case).collect();
    for (radio, hops) in asked() {
        cases.extend(COMPRESSIONS.map(|compression| {
            let setup = Setup::unset(hops as u16)
                .with("radio.profile", radio)
                .with("stack.compression", compression);
            Case::new(asking_point((radio, hops), compression), setup).traffic(Ask(REQUEST))
        }));
    }
    cases
}

/// The rows of these cases.
pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for chain in &CHAINS {
        let (must, moonshot) = chain.goal;
        let row = results.goodput(&chain.point());
        rows.push(row.at_least(must).moonshot(moonshot));
    }
    for asked in asked() {
        let points = COMPRESSIONS.map(|compression| asking_point(asked, compression));
        let medians = [0, 1].map(|of| results.mean_of(&points[of], |run| run.figure(ask::MEDIAN)));
        let [agreed, without] = points;
        let left = medians[0] / medians[1];
        let left = results.derived(agreed.clone(), ("latency_over_none", "1"), left);
        rows.push(left.at_most(LATENCY_LEFT.0).moonshot(LATENCY_LEFT.1));
        for (point, median) in [agreed, without].into_iter().zip(medians) {
            rows.push(results.derived(point, (ask::MEDIAN, "ms"), median));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::metric::GOODPUT;

    /// The shortest chain carries something, and requests are answered, sooner with compressed
    /// headers once the mote's first two minutes are over.
    #[test]
    fn a_chain_carries_a_flow_and_requests() {
        let cases = cases();
        let run = |case: &Case, seconds| case.traffic.run(&case.setup, 1, seconds).unwrap();
        let goodput = (GOODPUT.of)(&run(&cases[0], 20));
        assert!(goodput > 40.0, "{goodput} kb/s");
        let of_three_hops = |compression| {
            let point = asking_point((ASKED_RADIOS[1], 3), compression);
            let case = cases.iter().find(|case| case.point == point).unwrap();
            run(case, 20).figure(ask::MEDIAN)
        };
        let [agreed, without] = COMPRESSIONS.map(of_three_hops);
        assert!(agreed < 0.85 * without, "{agreed} of {without} ms");
    }
}
