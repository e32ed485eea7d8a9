//! The search for the best times by hand, which the measured pace is held against.
//!
//! Forty settings for each chain: holds of 0 to 8 ms, each with retries after up to 2, 5, 10 and 20
//! ms. A row names the best of them, and what the times that `combined-pacing` takes are of it:
//! seeds differ, and so does the best of 40 that are close.

use super::super::metric::GOODPUT;
use super::super::row::{Point, Row};
use super::super::{Budget, Case, Experiment, Results};
use super::{Air, CHAINS, Chain, IN_OTHER_AIR, Pace, Times};

/// `motet reproduce combined-pacing-search`.
pub(in super::super) const EXPERIMENT: Experiment = Experiment {
    id: "combined-pacing-search",
    title: "The best of 40 settings by hand for each chain of combined-pacing",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 3,
            seconds: 20,
        },
        Budget {
            runs: 4,
            seconds: 30,
        },
    ],
};

/// Times for a hop under the hold rule: a name, µs.
const HOLDS: [(&str, u64); 10] = [
    ("hold 0 ms", 0),
    ("hold 2 ms", 2_000),
    ("hold 2.5 ms", 2_500),
    ("hold 3 ms", 3_000),
    ("hold 3.5 ms", 3_500),
    ("hold 4 ms", 4_000),
    ("hold 5 ms", 5_000),
    ("hold 6 ms", 6_000),
    ("hold 7 ms", 7_000),
    ("hold 8 ms", 8_000),
];

/// The values of d that are tried, ms.
const DELAYS: [u64; 4] = [2, 5, 10, 20];

/// A chain in its air, with the ACK rule, and the times that `combined-pacing` takes there.
struct Searched {
    air: Option<Air>,
    chain: usize,
    ack_every: u64,
    taken: Times,
}

impl Searched {
    fn all() -> impl Iterator<Item = Self> {
        let of_chain = |(chain, of): (usize, &Chain)| {
            let [eighth, second] = of.by_hand;
            [(8, eighth), (2, second)].map(|(ack_every, taken)| Self {
                air: None,
                chain,
                ack_every,
                taken,
            })
        };
        let elsewhere = IN_OTHER_AIR.map(|(air, chain, taken)| Self {
            air: Some(air),
            chain,
            ack_every: 8,
            taken,
        });
        CHAINS
            .iter()
            .enumerate()
            .flat_map(of_chain)
            .chain(elsewhere)
    }

    fn case(&self, (hold, delay_ms): (usize, u64)) -> Case {
        let (name, hold_us) = HOLDS[hold];
        let pace = Pace::Fixed(name, (hold_us, delay_ms));
        match self.air {
            Some(air) => air.case(self.chain, self.taken, pace),
            None => CHAINS[self.chain].case(pace, self.ack_every),
        }
    }

    /// The point of this setting, whatever the times.
    fn point(&self) -> Point {
        let of_one = self.case((0, DELAYS[0])).point;
        of_one.without("design").without("retry_delay_ms")
    }

    /// The rows for the goodput of each setting, kb/s.
    fn rows(&self, results: &Results<'_>, goodput: &[f64]) -> [Row; 4] {
        let tried = || settings().zip(goodput.iter().copied());
        let best = tried().max_by(|a, b| a.1.total_cmp(&b.1));
        let ((hold, delay_ms), best) = best.unwrap_or_default();
        let is_taken = |(hold, delay_ms): (usize, u64)| (HOLDS[hold].1, delay_ms) == self.taken;
        let taken = tried().find(|(setting, _)| is_taken(*setting));
        let taken = taken.map_or(f64::NAN, |(_, goodput)| goodput);
        let row = |name, value| results.derived(self.point(), name, value);
        [
            row(("best_goodput", "kb/s"), best),
            row(("best_hold", "ms"), HOLDS[hold].1 as f64 / 1_000.0),
            row(("best_retry_delay", "ms"), delay_ms as f64),
            row(("taken_over_best", "1"), taken / best),
        ]
    }
}

/// Places in [`HOLDS`], and d, ms.
fn settings() -> impl Iterator<Item = (usize, u64)> {
    (0..HOLDS.len()).flat_map(|hold| DELAYS.map(|delay_ms| (hold, delay_ms)))
}

fn cases() -> Vec<Case> {
    let of_chain = |searched: Searched| settings().map(move |setting| searched.case(setting));
    Searched::all().flat_map(of_chain).collect()
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let goodput = results.means(GOODPUT);
    let of_chains = goodput.chunks(HOLDS.len() * DELAYS.len());
    Searched::all()
        .zip(of_chains)
        .flat_map(|(searched, goodput)| searched.rows(results, goodput))
        .collect()
}
