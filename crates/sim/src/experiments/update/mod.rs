//! New firmware for a mesh: along the tree, from the host, and over CoAP.
//!
//! Purpose: Motet's own experiment. 250 kB for twelve motes in three branches; the receiver is
//! `motet-update`'s, flash, digests and the signature cost an nRF52840's time. Place: a run is a
//! scenario with a flow of kind `push`, as `motet run` has it.

mod layout;
mod trial;
pub mod unmodified;

use self::trial::{CUTS, Carrier, Setting, Trial};
use self::unmodified::Unmodified;
use super::row::{Point, Row};
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::stats::mean;

/// The experiments, in the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-update",
    title: "New firmware for twelve motes: the tree, the host alone, and CoAP",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 3,
            seconds: 0,
        },
        // Updates of unmodified devices with packets lost differ by a third from seed to seed.
        Budget {
            runs: 20,
            seconds: 0,
        },
    ],
}];

const fn trial(
    profile: &'static str,
    setting: Setting,
    schedule: &'static str,
    carrier: Carrier,
) -> Trial {
    Trial {
        profile,
        schedule,
        carrier,
        setting,
        mss_frames: None,
    }
}

/// The rivals of the tree: the host's own transfers, over TCP and over CoAP. Blocks of 64 bytes are
/// left to one mote: twelve would take hours.
fn rivals(profile: &'static str) -> Vec<Trial> {
    let carriers = [
        Carrier::Tcp,
        Carrier::Block1(256),
        Carrier::Block1(1_024),
        Carrier::QBlock1(256),
        Carrier::QBlock1(1_024),
    ];
    let of = |carrier: Carrier| {
        ["sequential", "parallel"].map(|order| trial(profile, Setting::All, order, carrier))
    };
    carriers.into_iter().flat_map(of).collect()
}

const fn tree(profile: &'static str, setting: Setting) -> Trial {
    trial(profile, setting, "tree", Carrier::Tcp)
}

/// The tree and the host alone with segments as other connections have them by default, in place of
/// `/firmware`'s own: rows without a criterion.
fn short_segments() -> [Trial; 2] {
    ["tree", "sequential"].map(|schedule| Trial {
        mss_frames: Some(5),
        ..trial(HAMILTON, Setting::All, schedule, Carrier::Tcp)
    })
}

/// One mote, by TCP and by each size of Block1.
const ONE: [Trial; 4] = [
    trial(HAMILTON, Setting::One, "sequential", Carrier::Tcp),
    trial(HAMILTON, Setting::One, "sequential", Carrier::Block1(64)),
    trial(HAMILTON, Setting::One, "sequential", Carrier::Block1(256)),
    trial(HAMILTON, Setting::One, "sequential", Carrier::Block1(1_024)),
];

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for profile in [HAMILTON, NRF] {
        trials.push(tree(profile, Setting::All));
        trials.extend(rivals(profile));
    }
    trials.extend(short_segments());
    trials.extend(ONE);
    for setting in [
        Setting::Readings,
        Setting::RelayedReadings,
        Setting::Asleep,
        Setting::Cuts,
    ] {
        trials.push(tree(HAMILTON, setting));
    }
    trials
}

fn cases() -> Vec<Case> {
    // A tree of branches is no chain: of the setup, runs take nothing.
    let case = |trial: Trial| Case::new(trial.point(), Setup::hops(1)).traffic(trial);
    let blocks = unmodified().into_iter().flatten();
    let blocks = blocks.map(|one| Case::new(one.point(), Setup::hops(1)).traffic(one));
    trials().into_iter().map(case).chain(blocks).collect()
}

/// Updates of unmodified devices, each without and with the policy `relay`.
fn unmodified() -> Vec<[Unmodified; 2]> {
    let airs = UNMODIFIED.iter().map(|(air, ..)| *air);
    let pairs = airs.map(|(hops, frame_loss, packet_loss)| {
        [false, true].map(|relays| Unmodified {
            relays,
            frame_loss,
            packet_loss,
            ..Unmodified::new(hops)
        })
    });
    pairs.collect()
}

/// The rows of unmodified devices: what the relay makes of their time, and that readers beside
/// them fare no worse.
fn unmodified_rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (pair, (_, must, moonshot)) in unmodified().into_iter().zip(UNMODIFIED) {
        let points = pair.map(|one| one.point());
        for point in &points {
            let value = figure(results, point, DONE_S.0);
            rows.push(results.derived(point.clone(), DONE_S, value));
        }
        let over = |name| ratio_of(results, [&points[1], &points[0]], name);
        let done = results.derived(points[1].clone(), ("done_ratio", "1"), over(DONE_S.0));
        let done = done.at_most(must);
        rows.push(match moonshot {
            Some(moonshot) => done.moonshot(moonshot),
            None => done,
        });
        let p95 = over("latency_p95_ms");
        rows.push(
            results
                .derived(points[1].clone(), ("latency_p95_ratio", "1"), p95)
                .at_most(NO_WORSE),
        );
        let delivery = over("delivery");
        rows.push(
            results
                .derived(points[1].clone(), ("delivery_ratio", "1"), delivery)
                .at_least(0.999),
        );
    }
    rows
}

fn figure(results: &Results<'_>, point: &Point, name: &str) -> f64 {
    results.mean_of(point, |run| run.figure(name))
}

fn row(results: &Results<'_>, trial: Trial, (name, unit): (&'static str, &'static str)) -> Row {
    let point = trial.point();
    let value = figure(results, &point, name);
    results.derived(point, (name, unit), value)
}

/// The mean over seeds of one trial's figure over another's.
fn ratio(results: &Results<'_>, [over, under]: [Trial; 2], name: &str) -> f64 {
    ratio_of(results, [&over.point(), &under.point()], name)
}

/// The same, of two points.
fn ratio_of(results: &Results<'_>, [over, under]: [&Point; 2], name: &str) -> f64 {
    let pairs = results.runs(over).zip(results.runs(under));
    let ratios = pairs.map(|(over, under)| over.figure(name) / under.figure(name));
    mean(&ratios.collect::<Vec<_>>())
}

/// The trial that is done first, in the mean.
fn soonest(results: &Results<'_>, trials: &[Trial]) -> Option<Trial> {
    let done = |trial: &Trial| figure(results, &trial.point(), DONE_S.0);
    let soonest = trials.iter().min_by(|a, b| done(a).total_cmp(&done(b)));
    soonest.copied()
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = whole(results, HAMILTON);
    rows.extend(short_segments().map(|one| row(results, one, DONE_S)));
    if let Some(soonest) = soonest(results, &ONE[1..]) {
        let part = ratio(results, [ONE[0], soonest], DONE_S.0);
        let row = results.derived(ONE[0].point(), ("done_ratio", "1"), part);
        rows.push(row.at_most(0.7).moonshot(0.5).about("over the best Block1"));
    }
    rows.extend(ONE.map(|one| row(results, one, DONE_S)));
    rows.extend(readings_rows(results));
    for setting in [Setting::Asleep, Setting::Cuts] {
        let trial = tree(HAMILTON, setting);
        rows.push(row(results, trial, ("motes_done", "1")).at_least(12.0));
        rows.push(row(results, trial, DONE_S));
    }
    let cuts = tree(HAMILTON, Setting::Cuts);
    let resent = figure(results, &cuts.point(), "resent_bytes") / CUTS as f64;
    rows.push(results.derived(cuts.point(), ("resent_bytes_a_cut", "B"), resent));
    rows.extend(whole(results, NRF));
    rows.extend(unmodified_rows(results));
    rows
}

/// The rows of readings beside a push: with the border router's default policy they are judged.
fn readings_rows(results: &Results<'_>) -> Vec<Row> {
    let of = |setting| {
        let trial = tree(HAMILTON, setting);
        [
            ("delivery", "1"),
            ("latency_p95_ms", "ms"),
            ("latency_p95_worst_ms", "ms"),
            DONE_S,
        ]
        .map(|figure| row(results, trial, figure))
    };
    let [delivery, p95, worst, done] = of(Setting::Readings);
    let judged = [
        delivery.at_least(0.99).moonshot(0.999),
        p95.at_most(2_000.0).moonshot(1_000.0),
        worst,
        done,
    ];
    judged
        .into_iter()
        .chain(of(Setting::RelayedReadings))
        .collect()
}

/// The rows of one radio: those of Hamilton have criteria.
fn whole(results: &Results<'_>, profile: &'static str) -> Vec<Row> {
    let is_judged = profile == HAMILTON;
    let judged = |row: Row, must: f64, moonshot: f64| match is_judged {
        true => row.at_most(must).moonshot(moonshot),
        false => row,
    };
    let tree = tree(profile, Setting::All);
    let rivals = rivals(profile);
    let sequential = rivals[0];
    let mut rows = vec![
        judged(row(results, tree, DONE_S), 300.0, 160.0),
        judged(row(results, sequential, DONE_S), 720.0, 590.0),
    ];
    if let Some(best) = soonest(results, &rivals) {
        let part = ratio(results, [tree, best], DONE_S.0);
        let row = results.derived(tree.point(), ("done_ratio", "1"), part);
        rows.push(judged(row, 0.5, 0.3));
    }
    let energy = ratio(results, [tree, sequential], "energy_mj");
    let energy = results.derived(tree.point(), ("energy_ratio", "1"), energy);
    rows.push(judged(energy, 0.5, 0.4));
    rows.extend(
        rivals
            .iter()
            .skip(1)
            .map(|rival| row(results, *rival, DONE_S)),
    );
    rows
}

/// Hops, frame loss and packet loss in hundredths; the must and the moonshot.
type Judged = ((usize, u64, u64), f64, Option<f64>);

/// The airs of updates of unmodified devices, and what of
/// their time the relay may take.
const UNMODIFIED: [Judged; 6] = [
    ((3, 3, 0), 0.93, Some(0.85)),
    ((3, 10, 0), 0.82, Some(0.7)),
    ((1, 0, 10), 0.75, Some(0.6)),
    ((3, 0, 10), 0.75, Some(0.6)),
    ((1, 0, 0), NO_WORSE, None),
    ((3, 0, 0), NO_WORSE, None),
];

/// What counts as no change for the worse.
const NO_WORSE: f64 = 1.02;

const HAMILTON: &str = "hamilton";
const NRF: &str = "nrf52840";

const DONE_S: (&str, &str) = ("done_s", "s");
