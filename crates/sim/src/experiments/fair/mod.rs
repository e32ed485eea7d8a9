//! Fairness at the border router: TAiM, flow admission and fair queueing, against none.
//!
//! Purpose: thirty motes behind one border router all send to one host. Each setting runs with the
//! same seeds under every policy, and ratios compare the runs of one seed. Each seed gives another
//! floor, and none of these floors was used to choose the constants of a policy.
//!
//! - `combined-fairness`: full windows on generated floors, for twenty minutes.
//! - `combined-crowd`: stars, senders that do not hear each other, and floors, with nothing set.
//! - `taim-testbed1`, `-testbed2`: the paper's workload, 500 segments of 38 bytes from every mote,
//!   one at a time, on floors like its testbeds. Design `a` has no loss but the air's own; in `b`
//!   every fifth frame is lost besides; in `b12` the border router's mote has room for twelve
//!   packets.
//! - `taim-udp`: datagrams at growing rates on the first testbed.
//!
//! Place: `trial` makes a run, `testbed` the floors of the paper, `udp` the datagrams.
//! Source: Park and Paek, *TAiM*, for floors, workload and figures.

mod chains;
mod combined;
pub mod crowd;
mod goals;
mod testbed;
mod testbeds;
pub mod trial;
mod udp;

use motet_taim::{Admission, Fq, Policy, Taim};

use super::Experiment;
use super::row::Point;

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 5] = [
    testbeds::FIRST,
    testbeds::SECOND,
    udp::EXPERIMENT,
    combined::EXPERIMENT,
    crowd::EXPERIMENT,
];

/// A policy as a point names it, with the spacing that is declared for it.
#[derive(Clone, Copy, Debug)]
struct Declared {
    name: &'static str,
    spacing_ms: Option<u64>,
}

const fn declared(name: &'static str, spacing_ms: Option<u64>) -> Declared {
    Declared { name, spacing_ms }
}

/// The policy with which every other is compared.
const NONE: Declared = declared("none", None);

const ADMISSION: Declared = declared("admission", None);

impl Declared {
    fn point(self, design: &'static str) -> Point {
        let point = Point::default()
            .with("policy", self.name)
            .with("design", design);
        match self.spacing_ms {
            Some(ms) => point.with("spacing_ms", ms),
            None => point,
        }
    }

    fn policy(self) -> Policy {
        let spacing = |usual| {
            let ms = self.spacing_ms.map(motet::time::Duration::from_millis);
            ms.unwrap_or(usual)
        };
        let taim = Taim::default();
        match self.name {
            "admission" => Policy::Admission(Admission::default()),
            // A sweep is of spacings that stay.
            "taim" => Policy::Taim(Taim {
                spacing: spacing(taim.spacing),
                adapts: false,
                ..taim
            }),
            "taim-literal" => Policy::Taim(Taim {
                literal: true,
                spacing: spacing(taim.spacing),
                ..taim
            }),
            "fq" => Policy::Fq(Fq {
                spacing: spacing(Fq::default().spacing),
            }),
            _ => Policy::None,
        }
    }
}

/// Motes of every floor.
const MOTES: usize = 30;

/// Far from the seeds of the floors on which the constants of the policies were chosen.
const FLOOR_SEEDS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_eight_floors_are_run() {
        for experiment in EXPERIMENTS {
            for budget in experiment.budget {
                assert!(2 * budget.runs >= 8, "{}", experiment.id);
            }
        }
    }
}
