//! TCP over Bluetooth LE as `TCPlE`'s paper measured it: the designs, and what each experiment
//! sends.
//!
//! A mote that is a peripheral sends to a host right behind its border router, which is the
//! central. The BLE stack of all designs is the paper's: a buffer of 1,280 bytes that the host
//! fills again when it is empty, and 2.5 ms from the radio to TCP. **naive**: segments of one
//! packet, of which the buffer holds five. **tcplp-ble**: segments of five packets, of which it
//! holds one. **chip**: as naive, without timestamps. **bleach**: one segment in flight, as uIP has
//! it. All four have an interval of 50 ms. **tcple**: as tcplp-ble, with `TCPlE`.
//!
//! No constant is fitted: with this buffer the design naive gives the paper's figures for any delay
//! beyond the border router up to one interval, so the delay cannot be fitted; it is zero. Energies
//! of a reading are fits, as their rows say. Source: Performant TCP over BLE, §II, §III and §VI.

mod rows;
mod trial;

use motet::time::Duration;

use self::trial::{Load, Workload};
use super::row::Point;
use super::setup::Setup;
use super::{Budget, Case, Experiment};
use crate::ble::Profile;

const TWICE: [Budget; 2] = [
    Budget {
        runs: 5,
        seconds: 10,
    },
    Budget {
        runs: 10,
        seconds: 50,
    },
];

/// Motes join at the start, after one third and after two, as at 0, 20 and 40 s.
const THIRDS: [Budget; 2] = [
    Budget {
        runs: 5,
        seconds: 15,
    },
    Budget {
        runs: 10,
        seconds: 60,
    },
];

const fn experiment(
    id: &'static str,
    title: &'static str,
    cases: fn() -> Vec<Case>,
    rows: fn(&super::Results<'_>) -> Vec<super::row::Row>,
    axis: Option<&'static str>,
) -> Experiment {
    Experiment {
        id,
        title,
        cases,
        rows,
        axis,
        budget: TWICE,
    }
}

/// The experiments, in the order of the command's list.
pub const EXPERIMENTS: [Experiment; 7] = [
    experiment(
        "tcple-table4",
        "Goodput beside other radios (TCPlE Table IV)",
        table4_cases,
        rows::table4,
        None,
    ),
    experiment(
        "tcple-goodput",
        "Goodput by offered load (TCPlE Fig 8)",
        goodput_cases,
        rows::goodput,
        None,
    ),
    experiment(
        "tcple-loss",
        "Goodput by frame loss (TCPlE Fig 9)",
        loss_cases,
        rows::loss,
        Some("loss"),
    ),
    Experiment {
        budget: THIRDS,
        ..experiment(
            "tcple-fairness",
            "Peripherals that share a central (TCPlE Fig 10)",
            fairness_cases,
            rows::fairness,
            None,
        )
    },
    experiment(
        "tcple-energy",
        "Energy of a reading (TCPlE Table VII)",
        energy_cases,
        rows::energy,
        None,
    ),
    experiment(
        "tcple-rtt",
        "Round-trip times of readings (TCPlE Fig 12)",
        rtt_cases,
        rows::rtt,
        None,
    ),
    experiment(
        "tcple-ota",
        "A firmware update (TCPlE Fig 13)",
        ota_cases,
        rows::ota,
        None,
    ),
];

/// One of the designs that are compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::experiments) struct Design {
    pub(in crate::experiments) name: &'static str,
    /// Octets of a segment, timestamps included; `None`: as many as five packets hold.
    pub(in crate::experiments) smss: Option<u16>,
    /// Size of TCP's buffers, in segments.
    pub(in crate::experiments) segments: usize,
    pub(in crate::experiments) timestamps: bool,
    pub(in crate::experiments) has_tcple: bool,
    /// The BLE stack below it.
    pub(in crate::experiments) profile: Profile,
}

pub(in crate::experiments) const TCPLE: Design = Design {
    name: "tcple",
    smss: None,
    segments: 8,
    timestamps: true,
    has_tcple: true,
    profile: ONE_BUFFER,
};
pub(in crate::experiments) const TCPLP: Design = Design {
    name: "tcplp-ble",
    has_tcple: false,
    ..TCPLE
};
/// 189 bytes of data: what a packet of 251 holds behind headers of L2CAP (6), of IPv6 as they are
/// compressed (24) and of TCP with timestamps (32). The window is the ten segments that two
/// intervals carry.
pub(in crate::experiments) const NAIVE: Design = Design {
    name: "naive",
    smss: Some(189 + 12),
    segments: 10,
    ..TCPLP
};
/// Motet's own, without TCPlE.
const MOTET: Design = Design {
    name: "motet",
    profile: Profile::NRF52840,
    ..TCPLP
};
/// The naive design with the same packet, without timestamps.
const CHIP: Design = Design {
    name: "chip",
    smss: Some(201),
    timestamps: false,
    ..NAIVE
};
const BLEACH: Design = Design {
    name: "bleach",
    segments: 1,
    ..CHIP
};
const DESIGNS: [Design; 5] = [TCPLE, TCPLP, CHIP, NAIVE, BLEACH];

/// The paper's BLE stack: a buffer of 1,280 bytes, five packets, and 2 to 3 ms from the radio to
/// TCP (§V).
pub(in crate::experiments) const ONE_BUFFER: Profile = Profile {
    packets: 5,
    host_delay: Duration::from_micros(2_500),
    refills_when_empty: true,
    ..Profile::NRF52840
};

/// The connection interval, 50 ms, in units of 1.25 ms.
const INTERVAL: u16 = 40;

fn of(design: Design) -> Point {
    Point::default().with("design", design.name)
}

fn offered(design: Design, kbps: u64) -> Point {
    of(design).with("offered_kbps", kbps)
}

fn every(design: Design, interval_ms: u64) -> Point {
    of(design).with("interval_ms", interval_ms)
}

fn sized(design: Design, size: u64) -> Point {
    of(design).with("size", size)
}

fn lossy(design: Design, hundredths: u64) -> Point {
    of(design).with("loss", super::row::Value::Hundredths(hundredths))
}

fn case(point: Point, load: Load) -> Case {
    Case::new(point, Setup::hops(1)).traffic(load)
}

/// A load that is more than any design carries.
fn saturated(design: Design) -> Load {
    Load::of(design, Workload::Offered { kbps: 800 })
}

/// Sizes of Fig 3 and intervals of Fig 2 (as `interval`, ms); Fig 2 has 600 bytes.
const SIZES: [u64; 5] = [100, 300, 600, 800, 1000];
const INTERVALS: [u64; 3] = [25, 75, 100];

fn table4_cases() -> Vec<Case> {
    let mut cases = vec![
        case(
            offered(NAIVE, 600),
            Load::of(NAIVE, Workload::Offered { kbps: 600 }),
        ),
        case(of(TCPLP), saturated(TCPLP)),
    ];
    for design in [NAIVE, TCPLP] {
        let once = |size| Load::of(design, Workload::Once { size });
        cases.extend(SIZES.map(|size| case(sized(design, size), once(size))));
        cases.extend(INTERVALS.map(|ms| {
            let load = Load {
                interval: (ms * 4 / 5) as u16,
                ..once(600)
            };
            case(every(design, ms), load)
        }));
    }
    cases
}

/// Offered loads of Fig 8, kb/s.
const OFFERED: [u64; 4] = [50, 100, 200, 300];

fn goodput_cases() -> Vec<Case> {
    let mut cases: Vec<Case> = DESIGNS
        .map(|design| case(of(design), saturated(design)))
        .into();
    for design in DESIGNS {
        cases.extend(OFFERED.map(|kbps| {
            case(
                offered(design, kbps),
                Load::of(design, Workload::Offered { kbps }),
            )
        }));
    }
    cases
}

/// Losses of Fig 9, in hundredths.
const LOSSES: [u64; 4] = [0, 5, 10, 20];

fn loss_cases() -> Vec<Case> {
    let designs = [TCPLE, TCPLP, CHIP, BLEACH];
    let cases = designs.into_iter().flat_map(|design| {
        LOSSES.map(|hundredths| {
            let load = Load {
                error: hundredths as f64 / 100.0,
                ..Load::of(design, Workload::Each100Ms { size: 1000 })
            };
            case(lossy(design, hundredths), load)
        })
    });
    cases.collect()
}

/// The design of the first mote, and of the two that join later.
const TOGETHER: [(&str, [Design; 3]); 2] = [
    ("tcple", [TCPLE, TCPLE, TCPLE]),
    ("tcple and naive", [TCPLE, NAIVE, NAIVE]),
];

fn together(name: &'static str) -> Point {
    Point::default()
        .with("design", name)
        .with("offered_kbps", 200)
        .with("peripherals", 3)
}

fn fairness_cases() -> Vec<Case> {
    let cases = TOGETHER.map(|(name, designs)| {
        let load = Load {
            others: vec![designs[1], designs[2]],
            ..Load::of(designs[0], Workload::Offered { kbps: 200 })
        };
        case(together(name), load)
    });
    cases.into()
}

/// One reading a second, each answered.
fn readings(design: Design) -> Load {
    Load::of(design, Workload::Readings)
}

/// The two connection intervals whose cost and benefit are measured: the shortest, and seven times
/// that, in ms and in units of 1.25 ms.
const SHORT: (&str, u16) = ("7.5", 6);
const LONG: (&str, u16) = ("52.5", 42);

fn at_interval((ms, _): (&'static str, u16)) -> Point {
    of(TCPLP).with("interval_ms", ms)
}

fn saturated_at(interval: (&'static str, u16)) -> Point {
    at_interval(interval).with("offered_kbps", 800)
}

/// With and without events that the peripheral leaves out.
fn with_latency(policy: &'static str) -> Point {
    of(TCPLE).with("policy", policy)
}

const LATENCY: &str = "latency 4";

fn energy_cases() -> Vec<Case> {
    let designs = [TCPLE, TCPLP, CHIP, BLEACH];
    let mut cases: Vec<Case> = designs
        .map(|design| case(of(design), readings(design)))
        .into();
    for of in [SHORT, LONG] {
        let (_, interval) = of;
        let at = |load: Load| Load { interval, ..load };
        cases.push(case(at_interval(of), at(readings(TCPLP))));
        cases.push(case(saturated_at(of), at(saturated(TCPLP))));
    }
    let lazy = Load {
        latency: 4,
        ..readings(TCPLE)
    };
    cases.push(case(with_latency(LATENCY), lazy));
    cases
}

/// The published designs, and Motet's at the shortest interval, which is TCPlE's here.
fn rtt_cases() -> Vec<Case> {
    let published = DESIGNS.map(|design| case(of(design), readings(design)));
    let (ms, interval) = SHORT;
    let own = Load {
        interval,
        ..readings(MOTET)
    };
    let own = case(of(MOTET).with("interval_ms", ms), own);
    published.into_iter().chain([own]).collect()
}

fn ota_cases() -> Vec<Case> {
    [TCPLE, TCPLP, BLEACH]
        .map(|design| {
            case(
                of(design),
                Load::of(design, Workload::Update { size: 3000 }),
            )
        })
        .into()
}
