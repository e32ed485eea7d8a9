//! One push, and what it took.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use motet::random::Rng;

use super::layout::Layout;
use crate::experiments::row::{Point, Value};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::written::finish;
use crate::scenario::{FlowKind, FlowResult, Outcome, RunResult, latency_p95_ms_of};

/// A push of 250 kB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trial {
    /// The radio and its driver.
    pub(super) profile: &'static str,
    pub(super) schedule: &'static str,
    pub(super) carrier: Carrier,
    pub(super) setting: Setting,
    /// Frames of a TCP segment; none: as many as `/firmware` has by default, as all that is judged.
    pub(super) mss_frames: Option<u64>,
}

/// What carries the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carrier {
    Tcp,
    /// CoAP by Block1, in blocks of so many bytes.
    Block1(u64),
    /// By Q-Block1.
    QBlock1(u64),
}

/// To whom, and what else happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Setting {
    /// To twelve motes.
    All,
    /// To twelve motes, each of which sends readings meanwhile.
    Readings,
    /// The same, with the policy `relay` at the border router.
    RelayedReadings,
    /// To twelve motes, four of which sleep.
    Asleep,
    /// To twelve motes, which lose power at [`CUTS`] random instants.
    Cuts,
    /// To one mote over three hops; the wire loses one packet of twenty.
    One,
}

impl Trial {
    pub(super) fn point(self) -> Point {
        let point = Point::default()
            .with("design", self.profile)
            .with("flow", self.setting.name())
            .with("policy", self.schedule);
        let point = match self.mss_frames {
            Some(frames) => point.with("mss_frames", frames),
            None => point,
        };
        match self.carrier {
            Carrier::Tcp => point.with("transport", "tcp"),
            Carrier::Block1(size) => point
                .with("transport", "block1")
                .with("size", Value::Whole(size)),
            Carrier::QBlock1(size) => point
                .with("transport", "qblock1")
                .with("size", Value::Whole(size)),
        }
    }

    fn document(self, seed: u64) -> String {
        let Self {
            profile, schedule, ..
        } = self;
        let mut text = format!("duration_s = {}.0\nwarmup_s = 0.0\n", self.limit_s());
        match self.setting {
            Setting::One => text.push_str("[topology]\nchain = 3\n[wire]\nloss = 0.05\n"),
            _ => {
                let (links, parents) = (self.layout().links(), self.layout().parents());
                let _ = write!(text, "[topology]\nlinks = {links}\nparents = {parents:?}\n");
            }
        }
        let _ = write!(text, "[radio]\nprofile = \"{profile}\"\n");
        if self.setting == Setting::Asleep {
            for mote in self.layout().ends() {
                let _ = write!(text, "[[node]]\nid = {mote}\nsleep = \"hinted\"\n");
            }
        }
        let _ = write!(
            text,
            "[[flow]]\nkind = \"push\"\nschedule = \"{schedule}\"\n"
        );
        if let Some(frames) = self.mss_frames {
            let _ = writeln!(text, "mss_frames = {frames}");
        }
        if self.setting == Setting::One {
            text.push_str("motes = [3]\n");
        }
        let _ = match self.carrier {
            Carrier::Tcp => Ok(()),
            Carrier::Block1(size) => write!(text, "transport = \"coap\"\nblock_bytes = {size}\n"),
            Carrier::QBlock1(size) => {
                write!(text, "transport = \"qblock\"\nblock_bytes = {size}\n")
            }
        };
        if self.setting == Setting::RelayedReadings {
            text.push_str("[router]\npolicy = \"relay\"\n");
        }
        if self.setting.has_readings() {
            for mote in 1..=MOTES {
                let _ = write!(
                    text,
                    "[[flow]]\nkind = \"periodic\"\nfrom = {mote}\ninterval_s = 10.0\nmessage_bytes = 64\n"
                );
            }
        }
        if self.setting == Setting::Cuts {
            for (at, mote) in cuts(seed) {
                let _ = write!(
                    text,
                    "[[fault]]\nkind = \"reboot\"\nnode = {mote}\nat_s = {at:.3}\n"
                );
            }
        }
        text
    }

    fn layout(self) -> Layout {
        match self.setting {
            Setting::Asleep => Layout::FourEnds,
            _ => Layout::Branches,
        }
    }

    /// How long a push may take, s: readings are counted no longer than a push takes at most.
    const fn limit_s(self) -> u64 {
        match self.setting {
            Setting::Readings | Setting::RelayedReadings => 300,
            _ => 4_000,
        }
    }

    /// The figures of a run.
    fn figures(self, result: &RunResult) -> Vec<(&'static str, f64)> {
        let pushes = result
            .flows
            .iter()
            .filter(|flow| flow.likeness.kind == FlowKind::Push);
        let pushes: Vec<&FlowResult> = pushes.collect();
        let limit = self.limit_s() as f64;
        let done = pushes.iter().map(|flow| flow.finished_s.unwrap_or(limit));
        let complete = pushes
            .iter()
            .filter(|flow| flow.outcome == Outcome::Complete && flow.intact);
        let resent: u64 = pushes.iter().filter_map(|flow| flow.resent_bytes).sum();
        let mut figures = vec![
            ("done_s", done.fold(0.0, f64::max)),
            ("motes_done", complete.count() as f64),
            ("energy_mj", result.energy_mj()),
            ("resent_bytes", resent as f64),
        ];
        let readings = result
            .flows
            .iter()
            .filter(|flow| flow.likeness.kind != FlowKind::Push);
        let readings: Vec<&FlowResult> = readings.collect();
        if !readings.is_empty() {
            let sums = readings.iter().filter_map(|flow| flow.messages);
            let [due, came] = sums.fold([0, 0], |[a, b], [due, came]| [a + due, b + came]);
            let p95 = || readings.iter().filter_map(|flow| flow.latency_p95_ms);
            figures.push(("delivery", came as f64 / due.max(1) as f64));
            let of_all = latency_p95_ms_of(readings.iter().copied());
            figures.push(("latency_p95_ms", of_all.unwrap_or(limit * 1e3)));
            figures.push(("latency_p95_worst_ms", p95().fold(0.0, f64::max)));
        }
        figures
    }
}

impl Traffic for Trial {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let stop = AtomicBool::new(false);
        Ok(Run {
            figures: self.figures(&finish(&self.document(seed), seed, &stop)?),
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Setting {
    const fn has_readings(self) -> bool {
        matches!(self, Self::Readings | Self::RelayedReadings)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Readings => "readings",
            Self::RelayedReadings => "readings-relay",
            Self::Asleep => "asleep",
            Self::Cuts => "cuts",
            Self::One => "one",
        }
    }
}

/// When which mote loses power: each mote's cuts lie apart, so that one is over before the next.
fn cuts(seed: u64) -> Vec<(f64, usize)> {
    let mut rng = Rng::from_seed([seed, 0x0063_7574]);
    let mut cuts: Vec<(f64, usize)> = Vec::new();
    while cuts.len() < CUTS {
        let at = f64::from(rng.below(CUTS_WITHIN_MS)) / 1e3 + 1.0;
        let mote = rng.below(MOTES as u32) as usize + 1;
        if cuts
            .iter()
            .all(|(other, own)| *own != mote || (at - other).abs() > CUTS_APART_S)
        {
            cuts.push((at, mote));
        }
    }
    cuts
}

const MOTES: usize = 12;

/// Power cuts of a run.
pub(super) const CUTS: usize = 10;

/// They fall while a tree's push goes on.
const CUTS_WITHIN_MS: u32 = 250_000;

/// Between two cuts of one mote, s.
const CUTS_APART_S: f64 = 30.0;
