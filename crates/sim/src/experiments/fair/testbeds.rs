//! The paper's workload on floors like its testbeds.

use std::sync::Arc;

use motet::tcp::Config;

use super::goals::{figure, makespans, over_time, row, timeouts};
use super::testbed::{LIMIT, Testbed};
use super::trial::Trial;
use super::{ADMISSION, Declared, MOTES, NONE, declared};
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Budget, Case, Experiment, Results};

pub(super) const FIRST: Experiment = Experiment {
    id: "taim-testbed1",
    title: "Fairness in a room and its corridor (TAiM Figs 4, 5, 10, 11)",
    cases: || cases(Testbed::Corridor),
    rows: |results| rows(results, &CORRIDOR),
    axis: None,
    budget: BUDGET,
};

pub(super) const SECOND: Experiment = Experiment {
    id: "taim-testbed2",
    title: "Fairness in an office's lattice (TAiM Figs 13 to 15)",
    cases: || cases(Testbed::Lattice),
    rows: |results| rows(results, &LATTICE),
    axis: None,
    budget: BUDGET,
};

const BUDGET: [Budget; 2] = [
    Budget {
        runs: 4,
        seconds: 0,
    },
    Budget {
        runs: 10,
        seconds: 0,
    },
];

/// The paper's figures: Jain's index and the greatest over the least, without TAiM and with it.
struct Published {
    none: [f64; 2],
    taim: [f64; 2],
    /// The designs in which motes differ as much without a policy as there is something to mend.
    uneven: &'static [&'static str],
}

const CORRIDOR: Published = Published {
    none: [0.947, 3.6],
    taim: [0.994, 1.7],
    uneven: &["a"],
};

const LATTICE: Published = Published {
    none: [0.989, 1.7],
    taim: [0.997, 1.3],
    uneven: &[],
};

const DESIGNS: [&str; 3] = ["a", "b", "b12"];

/// In which the design must not be without TAiM's own criteria.
const JUDGED: [&str; 2] = ["a", "b"];

const SPACINGS_MS: [u64; 4] = [15, 20, 35, 45];

/// One segment of 38 bytes at a time, five hundred in all (TAiM, section II.A).
#[derive(Clone, Copy, Debug)]
struct StopAndWait {
    testbed: Testbed,
    policy: Declared,
    design: &'static str,
}

const MESSAGE_LEN: u16 = 38;
const MESSAGES: u64 = 500;

fn policies(design: &str) -> Vec<Declared> {
    let mut all = vec![NONE, ADMISSION];
    let spacings = SPACINGS_MS.iter().filter(|_| JUDGED.contains(&design));
    all.extend(spacings.map(|ms| declared("taim", Some(*ms))));
    all.push(declared("taim-literal", None));
    all.push(declared("fq", Some(35)));
    all
}

fn cases(testbed: Testbed) -> Vec<Case> {
    let of = |design: &'static str| {
        policies(design).into_iter().map(move |policy| Case {
            point: policy.point(design),
            setup: Setup::hops(1),
            traffic: Arc::new(StopAndWait {
                testbed,
                policy,
                design,
            }),
        })
    };
    DESIGNS.into_iter().flat_map(of).collect()
}

impl Traffic for StopAndWait {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let trial = Trial {
            mesh: self.testbed.network(seed, self.design)?,
            senders: (1..=MOTES).collect(),
            bytes: Some(MESSAGES * u64::from(MESSAGE_LEN)),
            limit: LIMIT,
            tunes: [small, plain],
        };
        Ok(trial.run(self.policy.policy())?.into_run())
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// As BLIP has it: small segments without options.
fn small(config: &mut Config) {
    plain(config);
    config.smss = MESSAGE_LEN;
    config.nagle = false;
}

fn plain(config: &mut Config) {
    config.timestamps = false;
    config.sack = false;
}

fn rows(results: &Results<'_>, paper: &Published) -> Vec<Row> {
    let mut rows = Vec::new();
    // The paper's own pair first: shown beside it, and not judged.
    for design in DESIGNS {
        let none = NONE.point(design);
        rows.push(row(results, &none, "jain").paper(paper.none[0]));
        rows.push(row(results, &none, "max_min").paper(paper.none[1]));
    }
    for design in DESIGNS {
        rows.extend(admission(results, design));
    }
    for design in JUDGED {
        rows.extend(best_taim(results, design, paper));
    }
    for design in DESIGNS {
        let none = NONE.point(design);
        for name in ["jain_windows", "max_min_windows", "makespan_s", "total_rto"] {
            rows.push(row(results, &none, name));
        }
        for policy in policies(design).into_iter().skip(2) {
            let point = policy.point(design);
            let names = ["jain", "max_min", "jain_windows", "held_rto", "total_rto"];
            rows.extend(names.map(|name| row(results, &point, name)));
            rows.extend(makespans(results, &point, &none));
        }
    }
    rows
}

/// Over windows of two minutes, the first among them.
fn admission(results: &Results<'_>, design: &'static str) -> Vec<Row> {
    let (none, point) = (NONE.point(design), ADMISSION.point(design));
    let [median, worst] = makespans(results, &point, &none);
    let mut rows = vec![
        row(results, &point, "jain_windows")
            .at_least(0.997)
            .moonshot(1.0),
        row(results, &point, "max_min_windows")
            .at_most(1.1)
            .moonshot(1.03),
        row(results, &point, "jain_first")
            .at_least(0.997)
            .moonshot(1.0),
        row(results, &point, "max_min_first")
            .at_most(1.1)
            .moonshot(1.03),
        median.at_least(1.0).moonshot(1.05),
        worst.at_least(0.97).extreme(),
    ];
    rows.extend(timeouts(results, &point, &none));
    let [minutes, first] = over_time(results, &point, &none);
    rows.extend([minutes.at_least(0.8), first.at_least(1.0)]);
    rows.push(row(results, &point, "jain"));
    rows.push(row(results, &point, "max_min"));
    rows
}

/// TAiM with the fairest spacing of the sweep that costs at most a twentieth of the time.
fn best_taim(results: &Results<'_>, design: &'static str, paper: &Published) -> Vec<Row> {
    let none = NONE.point(design);
    let makespan = |point: &Point| makespans(results, point, &none)[0].value;
    let points = SPACINGS_MS.map(|ms| declared("taim", Some(ms)).point(design));
    let fast: Vec<&Point> = points
        .iter()
        .filter(|point| makespan(point) >= 0.95)
        .collect();
    let jain = |point: &Point| figure(results, point, "jain");
    let best = fast.into_iter().max_by(|a, b| jain(a).total_cmp(&jain(b)));
    let by_time = || {
        points
            .iter()
            .max_by(|a, b| makespan(a).total_cmp(&makespan(b)))
    };
    let Some(best) = best.or_else(by_time) else {
        return Vec::new();
    };
    let [median, _] = makespans(results, best, &none);
    let without = figure(results, &none, "max_min");
    let with = row(results, best, "max_min").paper(paper.taim[1]);
    let part = with.value / without;
    let part = results.derived(best.clone(), ("max_min_over_none", "1"), part);
    let published = (100.0 * paper.taim[1] / paper.none[1]).round() / 100.0;
    let part = part.paper(published);
    let mut rows = vec![
        row(results, best, "jain")
            .paper(paper.taim[0])
            .at_least(0.975),
        with,
        match paper.uneven.contains(&design) {
            true => part.at_most(0.75),
            false => part,
        },
        median.at_least(0.95),
    ];
    // The paper's figure 11: shown; the criteria are those above.
    rows.extend(over_time(results, best, &none));
    for row in &mut rows {
        row.point = best.without("spacing_ms");
    }
    rows
}

#[cfg(test)]
mod tests {
    use motet_taim::Policy;

    use super::*;

    /// Motes without timestamps, one segment at a time: behind queues by deficit round robin a
    /// fifth of their segments were sent again too early, for a flow's ACKs went at once or a round
    /// later.
    #[test]
    fn flows_of_one_segment_seldom_time_out_behind_the_queues_of_flows() {
        let trial = Trial {
            mesh: Testbed::Corridor.network(1, "a").expect("a testbed"),
            senders: (1..=MOTES).collect(),
            bytes: Some(100 * u64::from(MESSAGE_LEN)),
            limit: LIMIT,
            tunes: [small, plain],
        };
        let outcome = trial.run(Policy::None).expect("it runs");
        let (timeouts, segments) = (outcome.timeouts, outcome.segments);
        assert!(30 * timeouts < segments, "{timeouts} of {segments}");
    }
}
