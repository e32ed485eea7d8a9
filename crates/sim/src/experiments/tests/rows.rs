//! What holds of the rows of every experiment, whatever the runs give.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use motet::random::Rng;
use motet::tcp::Config;

use super::super::header_tally::HeaderTally;
use super::super::run::{Flow, Run};
use super::super::setup::{Setup, Tune};
use super::super::spent::Spent;
use super::super::{Case, Effort, Measured, Results, all};
use super::*;
use crate::cases::some_of;

fn row(value: f64) -> Row {
    let figure = Estimate {
        value,
        interval: Some(Interval::around(value, 0.0)),
        runs: 3,
    };
    let row = Row::new("id", Point::default(), ("goodput", "kb/s"), f64::NAN);
    row.measured(figure, [figure; 2])
}

#[test]
fn limits_are_those_that_the_criterion_says() {
    let near = |value| row(value).paper(20.0).near_paper(0.15).pass();
    assert_eq!(near(17.0), Some(true));
    assert_eq!(near(23.1), Some(false));
    assert_eq!(near(f64::NAN), Some(false));
    assert_eq!(row(1.0).pass(), None);
    assert_eq!(row(1.0).at_most(1.0).pass(), Some(true));
    assert_eq!(row(1.0).below(1.0).pass(), Some(false));
    assert_eq!(row(0.9).at_least(1.0).pass(), Some(false));
    assert_eq!(row(2.0).between(1.0, 2.0).pass(), Some(true));
}

#[test]
fn the_whole_interval_decides_on_both_sets() {
    let set = |value, half: Option<f64>| Estimate {
        value,
        interval: half.map(|half| Interval::around(value, half)),
        runs: 3,
    };
    let good = set(10.0, Some(1.0));
    let cases = [
        (good, good, true),
        (good, set(10.0, Some(2.0)), false),
        (set(10.0, Some(2.0)), good, false),
        (good, set(8.0, Some(0.0)), false),
        (good, set(10.0, None), false),
        (good, set(10.0, Some(f64::NAN)), false),
        (good, set(11.5, Some(1.0)), false),
    ];
    for (first, second, holds) in cases {
        let row = row(10.0).between(9.0, 12.0).measured(good, [first, second]);
        assert_eq!(row.pass(), Some(holds), "{first:?}, {second:?}");
    }
}

#[test]
fn what_is_judged_is_what_is_printed() {
    assert_eq!(row(19.123_49).value, 19.12);
    assert_eq!(row(0.000_123_456).value, 0.000_123_5);
    assert_eq!(row(0.0).value, 0.0);
    for value in [19.124, 19.125, 19.126, 85.0, 0.999_96, 1_234.51] {
        let bound = row(1.0).bound(Some(value)).bound.unwrap();
        assert!((1.0..1.001).contains(&(bound / value)), "{value}: {bound}");
    }
}

/// An experiment, and what its runs are made of, which takes a network for each setting.
struct Prepared {
    experiment: super::super::Experiment,
    segments: Vec<super::super::setup::Segment>,
    /// What tells each setting from others.
    names: Vec<u64>,
}

fn prepared() -> &'static [Prepared] {
    use std::sync::OnceLock;
    static PREPARED: OnceLock<Vec<Prepared>> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let prepare = |experiment: super::super::Experiment| {
            let cases = (experiment.cases)();
            Prepared {
                experiment,
                segments: cases.iter().map(|case| case.segment(60)).collect(),
                names: cases.iter().map(|case| fnv1a(&name_of(case))).collect(),
            }
        };
        all().into_iter().map(prepare).collect()
    })
}

/// Rows of an experiment from made-up runs, each figure of each run another one: the same settings
/// give the same figures, in whatever experiment. Every figure is raised by `shift` of its part that
/// `direction` picks at random.
fn synthetic(prepared: &Prepared, direction: u64, shift: f64) -> Vec<Row> {
    let runs = prepared.names.iter().map(|name| {
        let run = |seed| run_of(*name, seed, direction, shift);
        (0..RUNS).map(run).collect()
    });
    let measured = Measured {
        experiment: prepared.experiment.id,
        cases: (prepared.experiment.cases)(),
        segments: prepared.segments.clone(),
        runs: runs.collect(),
        is_full: true,
    };
    (prepared.experiment.rows)(&Results {
        measured: &measured,
        seeds: &[0, 1, 2],
    })
}

const RUNS: u64 = 3;

/// Experiments in groups: two that share a setting are in one group, so that what moves the rows of
/// a group moves those of no other.
fn groups() -> Vec<Vec<&'static Prepared>> {
    let mut groups: Vec<Vec<&Prepared>> = Vec::new();
    for prepared in prepared() {
        let shares = |other: &&Prepared| {
            let mut names = other.names.iter();
            names.any(|name| prepared.names.contains(name))
        };
        let (joined, apart): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| group.iter().any(shares));
        let mut group: Vec<_> = joined.into_iter().flatten().collect();
        group.push(prepared);
        groups = apart;
        groups.push(group);
    }
    groups
}

/// What tells a setting from others, the same in every run: of a change of TCP's settings what it
/// makes of them, since where its code lies is another place each time.
fn name_of(case: &Case) -> String {
    let tuned = |tune: Tune| {
        let mut config = Config::default();
        tune(&mut config);
        config
    };
    let Setup {
        receiver_segments,
        sender,
        receiver,
        ..
    } = case.setup;
    // However its keys say it, a setting is the network that comes of them.
    let air = (case.setup.network(1), receiver_segments);
    let tcp = [sender, receiver].map(tuned);
    let name = format!("{air:?} {tcp:?} {:?}", case.traffic);
    assert!(!name.contains("0x"), "an address: {name}");
    name
}

/// The hash FNV-1a of a text.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A run whose figures its setting decides, not its experiment.
fn run_of(name: u64, seed: u64, direction: u64, shift: f64) -> Run {
    let hash = fnv1a(&format!("{name} {seed}"));
    let mut plain = Rng::from_seed([hash, 0]);
    let mut shifted = Rng::from_seed([hash, direction + 1]);
    let unit = |rng: &mut Rng| f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let mut figure = |typical: f64| {
        let value = typical * (1.0 + 0.2 * unit(&mut plain));
        value * (1.0 + shift * (2.0 * unit(&mut shifted) - 1.0))
    };
    let mut flow = || Flow {
        goodput_kbps: figure(20.0),
        loss: figure(0.01),
        rtt_ms: figure(500.0),
        cwnd: figure(0.8),
        timeouts: figure(1.0),
        fast_retransmissions: figure(5.0),
        ..Flow::default()
    };
    let flows = vec![flow(), flow()];
    // Counts are large, so that shifts show.
    Run {
        flows,
        frames: figure(1e9) as u64,
        retries: figure(1e8) as u64,
        bytes: 1_000_000_000,
        spent: Spent {
            transmit_mj: figure(100.0),
            total_mj: figure(1_000.0),
            cpu_s: figure(10.0),
            compressions: figure(1_000.0),
        },
        retransmissions: figure(1e9) as u64,
        headers: HeaderTally {
            lens: BTreeMap::from([(5, figure(1e9) as u64), (9, figure(1e8) as u64)]),
            exact: 0,
            wrong: figure(1e9) as u64,
            refused: figure(1e9) as u64,
        },
        figures: FIGURES.map(|name| (name, figure(typical(name)))).to_vec(),
        ..Run::default()
    }
}

/// What a figure is about: of a share something must be missing.
fn typical(name: &str) -> f64 {
    match name {
        "jain" | "delivery" => 0.5,
        _ => 10.0,
    }
}

/// What runs of the experiments `mesh-*`, `taim-*`, `tcple-*`, `combined-fairness`,
/// `combined-crowd`, `combined-ble`, `combined-security`, `combined-outsiders`, `combined-update`
/// and `combined-all` measure.
const FIGURES: [&str; 87] = [
    "lost",
    "joined",
    "age",
    "age_mean",
    "age_p90",
    "energy",
    "radio_duty_cycle",
    "cpu_duty_cycle",
    "reliability",
    "other_retransmissions",
    "idle_duty",
    "awake",
    "current",
    "tcp_buffer",
    "interval",
    "energy_per_byte",
    "jain",
    "max_min",
    "jain_first",
    "max_min_first",
    "jain_windows",
    "max_min_windows",
    "jain_minute",
    "makespan_s",
    "first_finish_s",
    "hop_weighted",
    "held_rto",
    "total_rto",
    "delivery_worst",
    "delivery_of_bottleneck",
    "bottleneck_rank",
    "joined_s",
    "repair_s",
    "connections_lost",
    "reboot_s",
    "etx_ratio",
    "control_airtime",
    "goodput",
    "goodput_static",
    "routing_bytes",
    "delivery",
    "parent_changes_per_h",
    "forgeries_accepted",
    "nonces_repeated",
    "rotations",
    "image",
    "parent_memory",
    "rtt_at_multiples",
    "lost_to_strangers",
    "lost_without_strangers",
    "sibling_delivery",
    "sibling_delivery_alone",
    "sibling_latency",
    "goodput_but_best",
    "flows_dead",
    "requests_asked",
    "requests_answered",
    "requests_ms",
    "done_s",
    "energy_mj",
    "latency_p95_ms",
    "latency_p95_worst_ms",
    "motes_done",
    "resent_bytes",
    "request_p50",
    "request_p95",
    "goodput_ble",
    "repair_restart_s",
    "repair_ble_s",
    "repair_asleep_s",
    "relay_carried",
    "energy_per_byte_ble",
    "interplay_1",
    "interplay_2",
    "interplay_3",
    "interplay_4",
    "interplay_5",
    "interplay_6",
    "interplay_7",
    "interplay_8",
    "interplay_9",
    "interplay_10",
    "interplay_11",
    "interplay_12",
    "interplay_13",
    "interplay_14",
    "interplay_15",
];

fn all_rows() -> Vec<Row> {
    let rows_of = |prepared| synthetic(prepared, 0, 0.0);
    prepared().iter().flat_map(rows_of).collect()
}

fn is_judged(row: &Row) -> bool {
    row.pass().is_some()
}

#[test]
fn nothing_is_judged_but_predictions() {
    let mut of_role: HashMap<&str, usize> = HashMap::new();
    for row in all_rows() {
        *of_role.entry(row.evidence.name()).or_default() += 1;
        let criterion = row.criterion.as_ref();
        let is_criterion = criterion.is_some_and(|c| c.judged != Judged::Never);
        let expected = row.evidence == Evidence::Prediction && is_criterion;
        assert_eq!(
            is_judged(&row),
            expected,
            "{} {}",
            row.experiment,
            row.metric
        );
    }
    assert_eq!(of_role.len(), 4, "{of_role:?}");
    let fit = row(20.0).paper(20.0).near_paper(0.15).fit();
    assert_eq!((fit.pass(), fit.meets()), (None, Some(true)));
    assert_eq!(row(20.0).at_least(1.0).identity().pass(), None);
    assert_eq!(row(20.0).at_least(1.0).repeat().pass(), None);
}

#[test]
fn every_entry_of_the_unjudged_has_a_row() {
    let idle = super::super::unjudged::idle(&all_rows());
    assert!(idle.is_empty(), "{idle:#?}");
}

#[test]
fn figures_of_fits_are_fits() {
    // Experiment, metric, and a key of the point with its value: what the calibration lists.
    let fits = [
        ("tcplp-onehop", "goodput", "mote to mote"),
        ("tcplp-onehop", "full_frame_time", ""),
        ("tcplp-retrydelay", "loss", "hops=3 retry_delay_ms=0"),
        ("tcplp-retrydelay", "goodput", "hops=1 retry_delay_ms=40"),
        ("tcplp-hops", "goodput", "hops=1 window_segments=4"),
        ("tcplp-hops", "goodput", "hops=2 window_segments=4"),
        ("tcplp-window", "knee", ""),
        ("tcplp-baselines", "goodput", "hops=1 design=TCPlp"),
        ("tcplp-fairness", "goodput", "hops=1 flow=alone"),
        ("cit-onehop", "throughput", "design=whole"),
        ("cit-onehop", "throughput", "design=no copies"),
    ];
    let rows = all_rows();
    for (experiment, metric, point) in fits {
        let at = format!("{experiment} {metric} {point}");
        let mut of_fit = rows.iter().filter(|row| {
            let is_there = row.point.to_string().contains(point);
            row.experiment == experiment && row.metric == metric && is_there
        });
        let row = of_fit.next().unwrap_or_else(|| panic!("no {at}"));
        assert_eq!(row.evidence, Evidence::Fit, "{at}");
    }
    // The time that a TelosB takes to handle a frame was chosen on all of CIT's Fig 4.
    let of_figure = |row: &&Row| row.experiment == "cit-copying" && row.metric != "gain";
    for row in rows.iter().filter(of_figure) {
        assert!(
            row.evidence == Evidence::Fit || row.criterion.is_none(),
            "{row:?}"
        );
    }
}

/// Round-trip times follow from window and goodput, energies of radios that never sleep from
/// time, and models from what they are fed with.
#[test]
fn identities_are_no_predictions() {
    let identities = [
        ("tcplp-retrydelay", "rtt_least_step"),
        ("tcplp-retrydelay", "rtt_0_over_30"),
        ("tcplp-window", "rtt_growth"),
        ("tcplp-model", "eq2_over_measured"),
        ("tcplp-model", "eq1_over_measured"),
        ("tcplp-fairness", "eq2_over_measured"),
        ("cit-throughput", "throughput_after_header"),
        ("tcphc-lossy", "energy_saved"),
        ("combined-pacing", "goodput_over_estimate"),
        ("combined-multihop", "goodput_over_estimate"),
    ];
    let rows = all_rows();
    for (experiment, metric) in identities {
        let of_name: Vec<&Row> = rows
            .iter()
            .filter(|row| (row.experiment, row.metric) == (experiment, metric))
            .collect();
        assert!(!of_name.is_empty(), "no {experiment} {metric}");
        for row in of_name {
            assert!(!is_judged(row), "{experiment} {metric} at {}", row.point);
        }
    }
}

#[test]
fn no_figure_has_two_rows() {
    let mut seen = BTreeSet::new();
    for row in all_rows() {
        let point: BTreeSet<String> = row.point.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let at = format!("{} {} {} {point:?}", row.experiment, row.metric, row.unit);
        assert!(seen.insert(at.clone()), "{at}");
    }
}

/// Moves every measured figure in many random directions at once and looks at how the rows
/// move: a judged row whose movements are a combination of those of fits and of other judged
/// rows says nothing that they do not say.
#[test]
fn nothing_judged_follows_from_other_judged_rows_or_fits() {
    let rows = all_rows();
    let of_fits = rows
        .iter()
        .filter(|row| row.evidence == Evidence::Fit)
        .count();
    let judged = rows.iter().filter(|row| is_judged(row)).count();
    assert!(
        of_fits > 10 && judged > 50,
        "{of_fits} fits, {judged} judged"
    );
    let tried = some_of(groups(), 6);
    let follow: Vec<String> = tried.iter().flat_map(|group| following(group)).collect();
    assert!(follow.is_empty(), "{follow:#?}");
}

/// The judged rows of a group of experiments whose movements others explain.
fn following(group: &[&Prepared]) -> Vec<String> {
    let rows_of = |direction, shift| {
        let of = move |prepared: &&Prepared| synthetic(prepared, direction, shift);
        group.iter().flat_map(of)
    };
    let rows: Vec<Row> = rows_of(0, 0.0).collect();
    let is_fit = |row: &Row| row.evidence == Evidence::Fit;
    let counted = rows.iter().filter(|row| is_fit(row) || is_judged(row));
    let directions = counted.count() as u64 + 10;
    let moves: Vec<Vec<f64>> = (1..=directions)
        .map(|direction| {
            let pair = rows_of(direction, SHIFT).zip(rows_of(direction, -SHIFT));
            pair.map(|(up, down)| up.value - down.value).collect()
        })
        .collect();
    let of_row = |number: usize| -> Vec<f64> { moves.iter().map(|all| all[number]).collect() };
    let mut known: Vec<Vec<f64>> = Vec::new();
    let numbered = || rows.iter().enumerate();
    for (number, _) in numbered().filter(|(_, row)| is_fit(row)) {
        known.extend(remainder(of_row(number), &known));
    }
    let mut follow = Vec::new();
    for (number, row) in numbered().filter(|(_, row)| is_judged(row) && moves_smoothly(row)) {
        match remainder(of_row(number), &known) {
            Some(new) => known.push(new),
            None => follow.push(format!("{} {} {}", row.experiment, row.metric, row.point)),
        }
    }
    follow
}

/// Whether a row's value follows the figures without leaps, and claims nothing that stands beside
/// the figures it is made of.
fn moves_smoothly(row: &Row) -> bool {
    // A knee is one of a few rates, minutes are counted, and a lead that changes hands is none:
    // they leap, or stay.
    const LEAPING: [&str; 3] = ["knee_rate", "fairer_minutes", "radio_apart"];
    // Claims of a paper: not judging them would hide a miss.
    const CLAIMED: [&str; 4] = [
        "radio_tcp_over_coap",
        "radio_coap_over_unrel",
        "radio_single_over_batch",
        "cost_of_reliability",
    ];
    let is_claimed = CLAIMED.contains(&row.metric)
        || (row.experiment, row.metric) == ("tcplp-adaptive", "goodput_over_up");
    !LEAPING.contains(&row.metric) && !is_claimed
}

const SHIFT: f64 = 1e-4;

/// The part of `movement` that `known` movements, orthonormal ones, do not explain, at length
/// 1; `None` where nothing is left.
fn remainder(movement: Vec<f64>, known: &[Vec<f64>]) -> Option<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let scaled =
        |vector: Vec<f64>, by: f64| -> Vec<f64> { vector.iter().map(|x| x * by).collect() };
    let length = dot(&movement, &movement).sqrt();
    let mut rest = scaled(movement, 1.0 / length);
    for direction in known.iter().chain(known) {
        let part = dot(&rest, direction);
        for (x, along) in rest.iter_mut().zip(direction) {
            *x -= part * along;
        }
    }
    let left = dot(&rest, &rest).sqrt();
    (left > 1e-3).then(|| scaled(rest, 1.0 / left))
}

#[test]
fn dependent_movements_are_found() {
    let unit = |vector: &[f64]| remainder(vector.to_vec(), &[]).unwrap();
    let known = vec![unit(&[1.0, 1.0, 0.0])];
    assert!(remainder(vec![2.0, 2.0, 0.0], &known).is_none());
    assert!(remainder(vec![2.0, 1.0, 0.0], &known).is_some());
    assert!(
        remainder(vec![0.0; 3], &known).is_none(),
        "a row that nothing moves"
    );
}

/// Three runs are the least that an interval means something with.
#[test]
fn every_budget_gives_either_set_an_interval() {
    for experiment in all() {
        for effort in [Effort::Quick, Effort::Full] {
            let runs = experiment.budget(effort).runs;
            assert!(runs >= 3, "{}: {runs} in a set", experiment.id);
        }
    }
}

#[test]
fn every_row_has_a_unit_and_is_judged_in_it() {
    let units = [
        "1", "kb/s", "ms", "s", "B", "mJ", "mJ/kB", "µJ/B", "µJ", "µA", "%", "segments", "1/kB",
        "1/100 s", "1/h", "1/s",
    ];
    let mut unit_of = BTreeMap::new();
    let rows = all_rows();
    assert!(rows.len() > 300, "{} rows", rows.len());
    for row in rows {
        let at = format!(
            "{} ({}) {}, {}",
            row.experiment, row.point, row.metric, row.unit
        );
        assert!(units.contains(&row.unit), "{at}: no such unit");
        // What is spent is given for a transfer, and elsewhere for what it carried.
        let kind = (row.metric, row.unit.ends_with("/kB"));
        let known = *unit_of.entry(kind).or_insert(row.unit);
        assert_eq!(row.unit, known, "{at}: one name, one unit");
        let Some(criterion) = row.criterion else {
            continue;
        };
        let text = &criterion.text;
        assert!(
            !text.contains("of the paper") || row.paper.is_some(),
            "{at}: {text}"
        );
        assert!(
            !text.contains("bound") || row.bound.is_some(),
            "{at}: {text}"
        );
        let words: Vec<&str> = text.split(' ').collect();
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        for pair in words.windows(2).filter(|pair| is_number(pair[0])) {
            // A criterion may be a share of something; its words say of what.
            let is_unit = units[1..].contains(&pair[1]) && pair[1] != "%";
            let is_other = is_unit && pair[1] != row.unit;
            assert!(!is_other, "{at}: {text}");
        }
        let ends = [criterion.min, criterion.max];
        let ends = ends.into_iter().filter(|end| end.is_finite());
        // A share in percent, or milliseconds for seconds, would be further off.
        for (end, paper) in ends.zip(row.paper.into_iter().cycle()) {
            let is_far = end > 0.0 && !(0.1..=10.0).contains(&(end / paper));
            assert!(!is_far, "{at}: {text}, and the paper says {paper}");
        }
        let is_share = ["loss", "link_retries", "cwnd", "jain"].contains(&row.metric);
        let is_above = |value: f64| value.is_finite() && value > 1.0;
        let said = [row.paper.unwrap_or(0.0), criterion.min, criterion.max];
        assert!(
            !(is_share && said.into_iter().any(is_above)),
            "{at}: {text}"
        );
    }
}
