//! The settings in which connections run beside strangers, and the criteria.
//!
//! Purpose: each kind of stranger over one hop, over three, and over two of a mesh that forms
//! itself; bulk into the mesh and out of it; sources that are forged, eight of them and 64. Each
//! setting also runs with one bulk flow and with two in the strangers' place, with the same seeds:
//! the figures are ratios to these.

use super::{ChainTraffic, REQUEST_PORT, bulk_ratio, request_ratios};
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Case, Results};
use crate::net::network::Joining;
use crate::net::strangers::{StrangerPacket, Strangers};
use crate::stats::mean;

/// A chain, and which way its bulk goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BulkChain {
    hops: u16,
    is_rpl: bool,
    is_up: bool,
}

/// Traffic on a chain that may form itself.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Placed {
    traffic: ChainTraffic,
    is_rpl: bool,
}

impl Traffic for Placed {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        self.traffic.run_in(setup, (seed, seconds), |options| {
            if self.is_rpl {
                options.joining = Joining::Rpl;
            }
        })
    }

    fn segment(&self, setup: &Setup, seconds: u64) -> Segment {
        self.traffic.segment(setup, seconds)
    }
}

impl BulkChain {
    fn point(self) -> Point {
        Point::default()
            .with("hops", u64::from(self.hops))
            .with("design", if self.is_rpl { "rpl" } else { "given" })
            .with("direction", if self.is_up { "up" } else { "down" })
    }

    fn case(self, point: Point, traffic: ChainTraffic) -> Case {
        let traffic = Placed {
            traffic: ChainTraffic {
                is_up: self.is_up,
                ..traffic
            },
            is_rpl: self.is_rpl,
        };
        Case::new(point, chain(self.hops)).traffic(traffic)
    }

    /// Flows alone: one of bulk, and two.
    fn quiet(self) -> [(Point, ChainTraffic); 2] {
        let of = |(flow, bulk)| (self.point().with("flow", flow), ChainTraffic::flows(bulk));
        [("alone", 1), ("two", 2)].map(of)
    }

    /// The setting, and its traffic, with these strangers.
    fn disturbed(self, strangers: &Strangers) -> (Point, ChainTraffic) {
        let (name, size) = match strangers.kind {
            StrangerPacket::Datagrams(len) => ("datagrams", len),
            StrangerPacket::Echoes(len) => ("echoes", len),
            StrangerPacket::Syns(_) => ("syns", 0),
        };
        // Lossless: they are small, and whole.
        let point = self.point().with("attack", name).with("size", size as u64);
        let point = point.with("rate", strangers.per_s as u64);
        let point = point.with("sources", strangers.sources as u64);
        (point, ChainTraffic::strangers(*strangers))
    }
}

/// A chain as `motet run` has it.
pub fn chain(hops: u16) -> Setup {
    Setup::hops(hops).measured(100, true)
}

/// Every setting.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for place in PLACES {
        let disturbed = strangers_of(place).map(|strangers| place.disturbed(&strangers));
        let all = place.quiet().into_iter().chain(disturbed);
        cases.extend(all.map(|(point, traffic)| place.case(point, traffic)));
    }
    cases
}

/// The rows for the runs of [`cases`].
pub fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for place in PLACES {
        let [(alone, _), (two, _)] = place.quiet();
        for strangers in strangers_of(place) {
            let (point, _) = place.disturbed(&strangers);
            let own = || results.runs(&point);
            let bulk = own().zip(results.runs(&alone));
            let bulk: Vec<f64> = bulk.map(|(run, alone)| bulk_ratio(run, alone)).collect();
            let asked = own().zip(results.runs(&two));
            let asked = asked.map(|(run, two)| request_ratios(run, two));
            let (answered, times): (Vec<f64>, Vec<f64>) = asked.unzip();
            let row = |name, values: &[f64]| results.derived(point.clone(), name, mean(values));
            let judged = [
                row(BULK, &bulk).at_least(0.45),
                row(REQUESTS, &answered).at_least(0.95),
                row(LATENCY, &times).at_most(2.0),
            ];
            rows.extend(judged.map(|row| results.judged_in_full(row)));
        }
        if place == FORGED_AT {
            rows.push(results.judged_in_full(many_over_few(results, place)));
        }
    }
    rows
}

/// The goodput that bulk flows keep beside 64 forged sources, over that beside eight of the same
/// rate. Chance makes a difference of some percent between runs of one and the same setting.
fn many_over_few(results: &Results<'_>, place: BulkChain) -> Row {
    let [few, many] = FORGED.map(|strangers| place.disturbed(&strangers).0);
    let kbps = |point: &Point| {
        let first = |run: &Run| run.flows.first().map_or(0.0, |flow| flow.goodput_kbps);
        results.mean_of(point, first)
    };
    let ratio = kbps(&many) / kbps(&few);
    results.derived(many, MANY, ratio).at_least(0.95)
}

/// The strangers that send into this chain.
fn strangers_of(place: BulkChain) -> impl Iterator<Item = Strangers> {
    let forged = FORGED.into_iter().filter(move |_| place == FORGED_AT);
    FLOWS.into_iter().chain(forged)
}

const PLACES: [BulkChain; 4] = [
    FORGED_AT,
    BulkChain {
        is_up: true,
        ..FORGED_AT
    },
    BulkChain {
        hops: 1,
        ..FORGED_AT
    },
    BulkChain {
        hops: 2,
        is_rpl: true,
        is_up: false,
    },
];

/// Where sources are forged, too.
const FORGED_AT: BulkChain = BulkChain {
    hops: 3,
    is_rpl: false,
    is_up: false,
};

/// Strangers with one address each.
pub const FLOWS: [Strangers; 6] = [
    Strangers::one(StrangerPacket::Datagrams(1_000), 3.0),
    Strangers::one(StrangerPacket::Datagrams(20), 50.0),
    Strangers::one(StrangerPacket::Datagrams(200), 20.0),
    Strangers::one(StrangerPacket::Echoes(20), 50.0),
    Strangers::one(StrangerPacket::Echoes(1_000), 5.0),
    Strangers::one(StrangerPacket::Syns(REQUEST_PORT), 50.0),
];

/// As many datagrams a second, from eight forged sources and from 64.
pub const FORGED: [Strangers; 2] = [forged(8), forged(64)];

const fn forged(sources: usize) -> Strangers {
    Strangers {
        sources,
        ..Strangers::one(StrangerPacket::Datagrams(100), 64.0)
    }
}

const BULK: (&str, &str) = ("bulk_beside", "1");
const REQUESTS: (&str, &str) = ("requests_beside", "1");
const LATENCY: (&str, &str) = ("requests_latency", "1");
const MANY: (&str, &str) = ("bulk_beside_64_over_8", "1");
