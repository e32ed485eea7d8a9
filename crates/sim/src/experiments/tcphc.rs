//! The TCPHC paper's measurements, and the same with a full TCP.
//!
//! **The paper's setting** (`tcphc-clean`, `tcphc-lossy`). 48 kB in segments of 48 B along one to
//! five hops of motes; uIP's TCP: one segment in flight, acknowledged at once, sent again after 1.5
//! s. `TelosB`'s radio, the paper's currents. The paper sends from the border router to a mote,
//! here the mote sends; either way data go all hops and ACKs all hops back. For losses a mote
//! beside the middle of the chain sends datagrams to its neighbour, with place and rate chosen by
//! us: the paper gives neither. **Sizes** (`tcphc-size`). TCP's own segments through compressor and
//! decompressor, over a path that loses and reorders. **`combined-tcphc`.** `TCPlp`'s settings with
//! and without compression; no paper has measured this.

use motet::tcp::Config;
use motet::tcphc::Mode;
use motet::time::Duration;

use super::headers::Headers;
use super::metric::{
    ENERGIES_PER_KB, ENERGY, FRAMES, GOODPUT, Metric, RETRANSMISSIONS, TIME, TRANSMIT_ENERGY,
};
use super::row::{Point, Row, Value};
use super::run::Run;
use super::setup::Setup;
use super::transfer::{Datagrams, Transfer};
use super::{Budget, Case, Experiment, Results};
use crate::air::energy::Currents;
use crate::air::profile::Profile;

/// The experiments, in the order of the command's list.
pub const EXPERIMENTS: [Experiment; 3] = [
    Experiment {
        id: "tcphc-clean",
        title: "TCP header compression, nobody else on the air (TCPHC Fig 4)",
        cases: clean_cases,
        rows: clean_rows,
        axis: Some("hops"),
        budget: CLEAN,
    },
    Experiment {
        id: "tcphc-lossy",
        title: "TCP header compression beside a constant flow (TCPHC Fig 5)",
        cases: lossy_cases,
        rows: lossy_rows,
        axis: Some("hops"),
        budget: LOSSY,
    },
    Experiment {
        id: "tcphc-size",
        title: "Lengths of compressed TCP headers, and what comes out of them (TCPHC III)",
        cases: size_cases,
        rows: size_rows,
        axis: None,
        budget: [SIZES_QUICK, SIZES_FULL],
    },
];

/// The project's own experiment on TCPHC.
pub const COMBINED: Experiment = Experiment {
    id: "combined-tcphc",
    title: "TCP header compression under full-scale TCP",
    cases: combined_cases,
    rows: combined_rows,
    axis: Some("hops"),
    budget: [
        Budget {
            runs: 20,
            seconds: 60,
        },
        Budget {
            runs: 30,
            seconds: 120,
        },
    ],
};

/// A transfer lasts as long as it does. Runs without losses hardly differ.
const CLEAN: [Budget; 2] = [
    Budget {
        runs: 5,
        seconds: 1,
    },
    Budget {
        runs: 15,
        seconds: 1,
    },
];

/// Losses are rare, and each costs a timeout.
const LOSSY: [Budget; 2] = [
    Budget {
        runs: 25,
        seconds: 1,
    },
    Budget {
        runs: 100,
        seconds: 1,
    },
];

const SIZES_QUICK: Budget = Budget {
    runs: 4,
    seconds: 1,
};

const SIZES_FULL: Budget = Budget {
    runs: 40,
    ..SIZES_QUICK
};

const HOPS: [u64; 5] = [1, 2, 3, 4, 5];

/// The values of the key `compression`.
const COMPRESSION: [&str; 2] = ["none", "tcphc"];

/// The paper's transfer: 1,000 segments.
const BYTES: u64 = 48_000;

/// Contiki's CSMA sends a frame three times.
const ATTEMPTS_MAX: u8 = 3;

/// The external node's datagrams: so many that segments are lost in spite of link retries.
const DATAGRAMS: Datagrams = Datagrams {
    len: 48,
    interval: Duration::from_millis(15),
};

/// uIP: no options, one segment of 48 B; `UIP_RTO` is three pulses of 0.5 s, below which its
/// whole-number estimate does not fall.
fn uip(config: &mut Config) {
    config.rmss = 48;
    config.smss = 48;
    config.rto_initial_ms = 1_500;
    config.rto_min_ms = 1_500;
    config.rto_slop_ms = 0;
    config.ack_every = 1;
    config.ack_delay_ms = 0;
    config.nagle = false;
    config.timestamps = false;
    config.sack = false;
    config.dsack = false;
    config.limited_transmit = false;
    config.rack = false;
    config.tail_loss_probe = false;
    config.prr = false;
    config.undo = false;
    config.ecn = false;
    config.congestion_control = false;
}

/// Data of 462 B beside timestamps.
fn five_frames(config: &mut Config) {
    config.rmss = 474;
    config.smss = 474;
}

fn mode_of(compression: &str) -> Option<Mode> {
    // A single path with link ACKs keeps the order.
    (compression == COMPRESSION[1]).then_some(Mode::InOrder)
}

fn point(hops: u64, compression: &'static str, flow: &'static str) -> Point {
    Point::default()
        .with("hops", hops)
        .with("compression", compression)
        .with("flow", flow)
}

fn transfer(hops: u64, compression: &'static str, beside: Option<Datagrams>) -> Case {
    let transfer = Transfer {
        bytes: BYTES,
        attempts_max: ATTEMPTS_MAX,
        beside,
    };
    let mut setup = Setup::hops(hops as u16).window_segments(1);
    setup.beyond.profile = Some(Profile {
        currents: Currents::TELOSB_TCPHC,
        ..Profile::TELOSB
    });
    setup.beyond.compression = mode_of(compression);
    // Reading would otherwise move the window's edge so far that an update goes out at once.
    setup.receiver_segments = Some(4);
    setup.sender = uip;
    setup.receiver = uip;
    let flow = if beside.is_some() { "two" } else { "alone" };
    Case::new(point(hops, compression, flow), setup).traffic(transfer)
}

fn pairs_of(hops: impl IntoIterator<Item = u64>, beside: Option<Datagrams>) -> Vec<Case> {
    let both = |hops| COMPRESSION.map(|compression| transfer(hops, compression, beside));
    hops.into_iter().flat_map(both).collect()
}

/// The share of a metric that compression saves, of its value without compression.
fn saved(results: &Results<'_>, hops: u64, flow: &'static str, metric: Metric) -> f64 {
    let [without, with] =
        COMPRESSION.map(|compression| results.mean(&point(hops, compression, flow), metric));
    1.0 - with / without
}

fn saved_row(results: &Results<'_>, hops: u64, flow: &'static str, saving: Saving) -> Row {
    let value = saved(results, hops, flow, saving.metric);
    let point = point(hops, COMPRESSION[1], flow);
    results.derived(point, (saving.name, "1"), value)
}

/// A row's name, and what it is a part of.
#[derive(Clone, Copy)]
struct Saving {
    name: &'static str,
    metric: Metric,
}

const TIME_SAVED: Saving = Saving {
    name: "time_saved",
    metric: TIME,
};
const TRANSMIT_SAVED: Saving = Saving {
    name: "transmit_energy_saved",
    metric: TRANSMIT_ENERGY,
};
const ENERGY_SAVED: Saving = Saving {
    name: "energy_saved",
    metric: ENERGY,
};

fn clean_cases() -> Vec<Case> {
    pairs_of(HOPS.into_iter().rev(), None)
}

fn clean_rows(results: &Results<'_>) -> Vec<Row> {
    let saving = |hops, saving| saved_row(results, hops, "alone", saving);
    let mut rows = vec![
        saving(5, TRANSMIT_SAVED).paper(0.17).between(0.1, 0.2),
        saving(5, TIME_SAVED).paper(0.09).between(0.06, 0.14),
        saving(5, ENERGY_SAVED).paper(0.17),
    ];
    let spared = |hops| {
        let [without, with] = COMPRESSION
            .map(|compression| results.mean(&point(hops, compression, "alone"), TRANSMIT_ENERGY));
        without - with
    };
    let steps = HOPS
        .windows(2)
        .map(|pair| spared(pair[1]) / spared(pair[0]));
    let name = ("transmit_energy_spared_least_step", "1");
    let all = Point::default().with("compression", COMPRESSION[1]);
    rows.push(results.least(all, name, steps.collect()).at_least(1.0));
    for hops in HOPS.into_iter().rev() {
        let over_none = |name, cpu_s: fn(&Run) -> f64| {
            let [without, with] = COMPRESSION.map(|compression| {
                let runs = results.runs(&point(hops, compression, "alone"));
                runs.map(cpu_s).sum::<f64>()
            });
            results.derived(
                point(hops, COMPRESSION[1], "alone"),
                (name, "1"),
                with / without,
            )
        };
        rows.push(over_none("cpu_time_over_none", cpu_s).at_most(1.0));
        rows.push(over_none("driver_time_over_none", |run| run.spent.cpu_s));
    }
    for hops in [4, 3, 2, 1] {
        rows.extend([TRANSMIT_SAVED, TIME_SAVED, ENERGY_SAVED].map(|which| saving(hops, which)));
    }
    rows.extend(absolute(results, &[TIME, TRANSMIT_ENERGY, ENERGY]));
    rows
}

/// Processor time, that of the compressor included, s.
fn cpu_s(run: &Run) -> f64 {
    let each = Profile::TELOSB.compression.as_micros() as f64 / 1e6;
    run.spent.cpu_s + run.spent.compressions * each
}

fn absolute(results: &Results<'_>, metrics: &[Metric]) -> Vec<Row> {
    let of_case = |case: &Case| {
        metrics
            .iter()
            .map(|metric| results.row(&case.point, *metric))
            .collect::<Vec<_>>()
    };
    results.cases().flat_map(of_case).collect()
}

fn lossy_cases() -> Vec<Case> {
    let mut cases = pairs_of(HOPS.into_iter().rev(), Some(DATAGRAMS));
    cases.extend(pairs_of([5], None));
    cases
}

fn lossy_rows(results: &Results<'_>) -> Vec<Row> {
    let saving = |hops, saving| saved_row(results, hops, "two", saving);
    let alone = saved(results, 5, "alone", TIME);
    let mut rows = vec![
        // Judged by the next row: the paper saves more here than on a clean path.
        saving(5, TIME_SAVED).paper(0.15).repeat(),
        results
            .derived(
                point(5, COMPRESSION[1], "two"),
                ("time_saved_less_that_alone", "1"),
                saved(results, 5, "two", TIME) - alone,
            )
            .at_least(0.0),
        // No radio sleeps: energy follows from time.
        saving(5, ENERGY_SAVED)
            .paper(0.15)
            .between(0.08, 0.2)
            .identity(),
        saving(5, TRANSMIT_SAVED),
    ];
    for hops in [3, 4, 5] {
        let [without, with] = COMPRESSION
            .map(|compression| results.mean(&point(hops, compression, "two"), RETRANSMISSIONS));
        let name = ("retransmissions_over_none", "1");
        let row = results.derived(point(hops, COMPRESSION[1], "two"), name, with / without);
        rows.push(row.below(1.0));
    }
    for hops in [4, 3, 2, 1] {
        rows.extend([TRANSMIT_SAVED, TIME_SAVED, ENERGY_SAVED].map(|which| saving(hops, which)));
    }
    rows.extend(absolute(
        results,
        &[RETRANSMISSIONS, TIME, TRANSMIT_ENERGY, ENERGY],
    ));
    rows
}

/// Names of the modes, the one the paper's figure is judged in first.
const MODES: [(&str, Mode); 4] = [
    ("in order", Mode::InOrder),
    ("default", Mode::Default),
    ("strict", Mode::Strict),
    ("draft", Mode::Draft),
];

/// Paths of the size experiment: lost and reordered packets of a thousand.
const PATHS: [(&str, u16, u16); 3] = [
    ("clean", 0, 0),
    ("loses", 50, 0),
    ("loses and reorders", 50, 50),
];

/// The paths a mode is tried on: the draft's rule does not survive losses; what it misreads may
/// leave a connection without an end.
fn paths_of(mode: Mode) -> &'static [(&'static str, u16, u16)] {
    match mode {
        Mode::Draft => &PATHS[..1],
        _ => &PATHS,
    }
}

const TRANSPORTS: [&str; 2] = ["uIP", "full"];

fn size_point(transport: &'static str, mode: &'static str, path: &'static str) -> Point {
    Point::default()
        .with("compression", "tcphc")
        .with("transport", transport)
        .with("policy", mode)
        .with("design", path)
}

fn size_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in TRANSPORTS {
        for (name, mode) in MODES {
            for &(path, loss, reordering) in paths_of(mode) {
                let full = transport == TRANSPORTS[1];
                let headers = Headers {
                    bytes: if full { 10 * BYTES } else { BYTES },
                    loss,
                    reordering,
                };
                let mut setup = Setup::hops(3).window_segments(if full { 4 } else { 1 });
                setup.beyond.compression = Some(mode);
                setup.sender = if full { five_frames } else { uip };
                setup.receiver = setup.sender;
                cases.push(Case::new(size_point(transport, name, path), setup).traffic(headers));
            }
        }
    }
    cases
}

fn size_rows(results: &Results<'_>) -> Vec<Row> {
    let mean = |point: &Point, of: fn(&Run) -> f64| results.mean_of(point, of);
    let short = |mode| {
        let point = size_point("uIP", mode, "clean");
        let value = mean(&point, |run| run.headers.part_up_to(6));
        results.derived(point, ("headers_up_to_6_bytes", "1"), value)
    };
    let mut rows = vec![short("in order").paper(0.95).at_least(0.95), short("draft")];
    let wrong = |point: Point| {
        let wrong = mean(&point, |run| run.headers.wrong as f64);
        results.derived(point, ("headers_wrong", "1"), wrong)
    };
    for transport in TRANSPORTS {
        for (path, ..) in PATHS {
            rows.push(wrong(size_point(transport, "strict", path)).at_most(0.0));
        }
    }
    for transport in TRANSPORTS {
        for (mode, rules) in MODES {
            for (path, ..) in paths_of(rules) {
                let point = size_point(transport, mode, path);
                let length = mean(&point, |run| run.headers.mean());
                rows.push(results.derived(point.clone(), ("header_length", "B"), length));
                let refused = mean(&point, |run| run.headers.refused as f64);
                rows.push(results.derived(point.clone(), ("headers_refused", "1"), refused));
                if mode != "strict" {
                    rows.push(wrong(point));
                }
            }
        }
    }
    rows
}

const COMBINED_HOPS: [u64; 4] = [3, 1, 2, 4];

/// Packets lost at the border router's wire, each way, %: link retries cannot bring these back.
const LOSS_PERCENT: [u64; 2] = [0, 5];

fn combined_point(hops: u64, loss_percent: u64, compression: &'static str) -> Point {
    Point::default()
        .with("hops", hops)
        .with("loss", Value::Hundredths(loss_percent))
        .with("compression", compression)
}

fn combined_settings() -> impl Iterator<Item = (u64, u64)> {
    let of_loss = |loss| COMBINED_HOPS.map(|hops| (hops, loss));
    LOSS_PERCENT.into_iter().flat_map(of_loss)
}

fn combined_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (hops, loss_percent) in combined_settings() {
        for compression in COMPRESSION {
            // The mode that trusts no path.
            let setup = Setup::hops(hops as u16)
                .with("wire.loss", loss_percent as f64 / 100.0)
                .with("stack.compression", compression);
            cases.push(Case::new(
                combined_point(hops, loss_percent, compression),
                setup,
            ));
        }
    }
    cases
}

fn combined_rows(results: &Results<'_>) -> Vec<Row> {
    let over_none = |hops, loss, metric: Metric, name: &'static str| {
        let [without, with] = COMPRESSION
            .map(|compression| results.mean(&combined_point(hops, loss, compression), metric));
        let point = combined_point(hops, loss, COMPRESSION[1]);
        results.derived(point, (name, "1"), with / without)
    };
    let mut rows = Vec::new();
    for (hops, loss) in combined_settings() {
        let gain = over_none(hops, loss, GOODPUT, "goodput_over_none");
        rows.push(match (hops, loss) {
            (3, 0) => gain.at_least(1.06),
            _ => gain,
        });
        rows.push(over_none(hops, loss, FRAMES, "frames_over_none"));
        let [transmit, all] = ENERGIES_PER_KB;
        rows.push(over_none(hops, loss, transmit, "transmit_energy_over_none"));
        rows.push(over_none(hops, loss, all, "energy_over_none"));
    }
    for case in results.cases() {
        rows.push(results.goodput(&case.point));
        for metric in [FRAMES].into_iter().chain(ENERGIES_PER_KB) {
            rows.push(results.row(&case.point, metric));
        }
    }
    rows
}
