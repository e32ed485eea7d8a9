//! The updates that people run tonight: blocks over plain TCP, to a device with lwIP's settings,
//! through any border router.
//!
//! Purpose: one scenario for the rows of `combined-update` and for `motet plan`. The host sends a
//! block, waits for one byte, and sends the next, as ESPHome does. The device has what ESP-IDF
//! gives lwIP, as far as this stack's settings reach: four segments of 12 frames, ACKs delayed by
//! 250 ms, neither SACK nor timestamps nor ECN. The mesh has what OpenThread has: 16 attempts for a
//! frame, no pace, one queue at the border router. Other motes send readings meanwhile.
//! `cargo xtask peers` has lwIP itself.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use crate::air::gains::ChainAir;
use crate::experiments::row::{Point, Value};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::written;
use crate::scenario::{FlowKind, FlowResult, Outcome, RunResult, latency_p95_ms_of};

/// One such update, and what is around it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Unmodified {
    /// Radio hops from the border router to the device.
    pub hops: usize,
    /// Bytes that the host sends before it waits for a byte.
    pub block_bytes: u64,
    /// Other motes that send 64 bytes every ten seconds.
    pub readers: usize,
    /// How often the device asks its parent for frames, s; none: it is awake.
    pub poll_s: Option<f64>,
    /// Whether the border router relays ([`motet_taim::Policy::Relay`]).
    pub relays: bool,
    /// Chance that a frame is lost on the air, hundredths.
    pub frame_loss: u64,
    /// Chance that a packet is lost in the mesh, hundredths.
    pub packet_loss: u64,
    /// Whether no mote is below the device, as below one that sleeps.
    pub is_leaf: bool,
}

/// What a run of it has measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Bytes of the image a second: of the blocks that were answered, in the time that they took.
    /// A block that hangs at the end counts with its time.
    pub bytes_per_s: f64,
    /// The longest time from a block's first byte to the device's answer, or to the end of the
    /// run, s.
    pub block_longest_s: f64,
    /// Whether the connection held.
    pub held: bool,
    /// Part of the readings that arrived, where there are readers.
    pub delivery: Option<f64>,
    /// The delay that nineteen of twenty readings do not exceed, of all readers together, ms.
    pub latency_p95_ms: Option<f64>,
}

impl Unmodified {
    /// An update of an awake device `hops` away, without loss, beside twelve readers.
    pub const fn new(hops: usize) -> Self {
        Self {
            hops,
            block_bytes: 8_192,
            readers: 12,
            poll_s: None,
            relays: false,
            frame_loss: 0,
            packet_loss: 0,
            is_leaf: false,
        }
    }

    /// The scenario, as `motet run` reads it; it runs for `seconds`.
    pub fn document(&self, seconds: u64) -> String {
        let device = self.hops;
        let mut text = format!("duration_s = {seconds}.0\nwarmup_s = 0.0\n");
        let policy = if self.relays { "relay" } else { "none" };
        let (frame_loss, loss) = (hundredths(self.frame_loss), hundredths(self.packet_loss));
        let topology = self.topology();
        // One frame each time the device asks.
        let drain = if self.poll_s.is_some() {
            "drain = false\n"
        } else {
            ""
        };
        // Nothing fails that writes to a string.
        let _ = write!(
            text,
            "{topology}[radio]\nprofile = \"nrf52840\"\nframe_loss = {frame_loss}\n\
             [router]\npolicy = \"{policy}\"\nflow_queues = false\nthin_acks = false\nloss = {loss}\n\
             [stack]\nretry_delay_ms = 0\nlink_attempts = 16\n{drain}\
             [[node]]\nid = {device}\nsack = false\ntimestamps = false\necn = false\nmss_frames = 12\nack_delay_ms = 250\n"
        );
        if let Some(poll_s) = self.poll_s {
            let _ = write!(text, "sleep = \"fixed\"\nsleep_interval_s = {poll_s:.3}\n");
        }
        let block = self.block_bytes;
        let _ = write!(
            text,
            "[[flow]]\nkind = \"request\"\nfrom = \"host\"\nto = {device}\n\
             interval_s = {GAP_S}\nmessage_bytes = {block}\nanswer_bytes = 1\n"
        );
        for mote in self.readers() {
            let _ = write!(
                text,
                "[[flow]]\nkind = \"periodic\"\nfrom = {mote}\ninterval_s = 10.0\nmessage_bytes = 64\n"
            );
        }
        text
    }

    /// Runs it for `seconds` with a seed, or until `stop` is set.
    ///
    /// # Errors
    /// Why the scenario could not be run, in words.
    pub fn run(&self, seed: u64, seconds: u64, stop: &AtomicBool) -> Result<Measured, String> {
        let result = written::finish(&self.document(seconds), seed, stop);
        let result = result.map_err(|failure| failure.to_string())?;
        self.measured(&result, seconds)
            .ok_or_else(|| "no block has arrived".to_owned())
    }

    fn measured(&self, result: &RunResult, seconds: u64) -> Option<Measured> {
        let is_update = |flow: &&FlowResult| flow.likeness.kind == FlowKind::Request;
        let update = result.flows.iter().find(is_update)?;
        let readings = || result.flows.iter().filter(|flow| !is_update(flow));
        let [_, blocks] = update.messages?;
        let sums = readings().filter_map(|flow| flow.messages);
        let [due, came] = sums.fold([0, 0], |[a, b], [due, came]| [a + due, b + came]);
        let (mean_s, longest_s) = (update.latency_ms? / 1e3, update.latency_max_ms? / 1e3);
        let (time_s, block_longest_s) = block_times(blocks, [mean_s, longest_s], seconds as f64);
        Some(Measured {
            bytes_per_s: (blocks * self.block_bytes) as f64 / time_s,
            block_longest_s,
            held: update.outcome == Outcome::Running && update.connections_lost.unwrap_or(0) == 0,
            delivery: (due > 0).then(|| came as f64 / due as f64),
            latency_p95_ms: latency_p95_ms_of(readings()),
        })
    }

    /// The motes that send readings: those of other branches first, then those of the device's, but
    /// for the device, again and again.
    fn readers(&self) -> Vec<usize> {
        let [own, all] = [self.branch(), self.motes()];
        let others = (own + 1..=all).chain((1..=own).filter(|mote| *mote != self.hops));
        others.cycle().take(self.readers).collect()
    }

    /// The motes of the device's branch: a device that sleeps has nobody below it.
    fn branch(&self) -> usize {
        match self.is_leaf || self.poll_s.is_some() {
            true => self.hops,
            false => self.depth(),
        }
    }

    /// The motes of another branch.
    fn depth(&self) -> usize {
        self.hops.max(DEPTH_MIN)
    }

    fn motes(&self) -> usize {
        self.branch() + (BRANCHES - 1) * self.depth()
    }

    /// The branch of a node, and its hops from the border router.
    fn place(&self, node: usize) -> (usize, usize) {
        let own = self.branch();
        match node.checked_sub(own + 1) {
            Some(beyond) => (1 + beyond / self.depth(), 1 + beyond % self.depth()),
            None => (0, node),
        }
    }

    /// Three branches, where neighbours and neighbours of neighbours hear each other as in the
    /// calibrated chain.
    fn topology(&self) -> String {
        let air = ChainAir::CALIBRATED;
        let nodes = self.motes() + 1;
        let mut links = String::new();
        for from in 0..nodes {
            for to in (0..nodes).filter(|to| *to != from) {
                let ((branch, up), (other, down)) = (self.place(from), self.place(to));
                let apart = match branch == other {
                    true => up.abs_diff(down),
                    // By the border router, which is of every branch.
                    false => up + down,
                };
                let gain = match apart {
                    1 => air.one_hop_db,
                    2 => air.two_hops_db,
                    _ => continue,
                };
                // Nothing fails that writes to a string.
                let _ = write!(links, "[{from}, {to}, {gain:.1}], ");
            }
        }
        let parent = |mote: usize| match self.place(mote).1 {
            1 => 0,
            _ => mote - 1,
        };
        let parents: Vec<usize> = (1..nodes).map(parent).collect();
        format!("[topology]\nlinks = [{links}]\nparents = {parents:?}\n")
    }

    /// The point of an experiment.
    pub(super) fn point(&self) -> Point {
        let policy = if self.relays { "relay" } else { "none" };
        // What is lost.
        let lost = match self.frame_loss {
            0 => "packets",
            _ => "frames",
        };
        Point::default()
            .with("flow", "unmodified")
            .with("hops", self.hops as u64)
            .with("design", lost)
            .with(
                "loss",
                Value::Hundredths(self.frame_loss + self.packet_loss),
            )
            .with("policy", policy)
    }
}

impl Traffic for Unmodified {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let stop = AtomicBool::new(false);
        let result = written::finish(&self.document(SECONDS), seed, &stop)?;
        let measured = self.measured(&result, SECONDS).ok_or(Failure::NotFormed)?;
        let mut figures = vec![("done_s", IMAGE_BYTES / measured.bytes_per_s)];
        figures.extend(measured.delivery.map(|part| ("delivery", part)));
        figures.extend(measured.latency_p95_ms.map(|p95| ("latency_p95_ms", p95)));
        Ok(Run {
            figures,
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The time that blocks took, and the longest time of one, s, in a run of `seconds`; `answered`:
/// mean and longest of those that were answered. The last one is under way at the end; where it
/// takes longer than any before, it hangs, and counts.
fn block_times(blocks: u64, answered: [f64; 2], seconds: f64) -> (f64, f64) {
    let [mean_s, longest_s] = answered;
    let time_s = blocks as f64 * (mean_s + GAP_S / 2.0);
    let rest_s = seconds - time_s;
    match rest_s > longest_s + GAP_S {
        true => (seconds, rest_s),
        false => (time_s, longest_s),
    }
}

fn hundredths(value: u64) -> String {
    format!("{}.{:02}", value / 100, value % 100)
}

/// The host looks so often whether it may send the next block, s.
const GAP_S: f64 = 0.001;

const BRANCHES: usize = 3;

/// The motes of a branch, at least.
const DEPTH_MIN: usize = 4;

/// Virtual time of a run of the experiment, s: some hundred blocks.
const SECONDS: u64 = 300;

/// Bytes of the image whose time a row says.
const IMAGE_BYTES: f64 = 900_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::scenario::{Overrides, Plan};

    #[test]
    fn blocks_count_by_the_time_that_they_took() {
        // Four blocks of 60 s, and half of another one, in 270 s: not four fifths of the rate.
        let (time_s, longest_s) = block_times(4, [60.0, 70.0], 270.0);
        assert!((time_s - 240.0).abs() < 0.01, "{time_s}");
        assert_eq!(longest_s, 70.0);
        // The fifth one hangs.
        let (time_s, longest_s) = block_times(4, [20.0, 30.0], 270.0);
        assert_eq!(time_s, 270.0);
        assert!((longest_s - 190.0).abs() < 0.01, "{longest_s}");
    }

    /// What differs between an awake device and one that sleeps is the device alone.
    #[test]
    fn a_leaf_has_the_mesh_of_a_device_that_sleeps() {
        for hops in [1, 3, 6] {
            let awake = Unmodified {
                is_leaf: true,
                ..Unmodified::new(hops)
            };
            let asleep = Unmodified {
                poll_s: Some(1.0),
                ..awake
            };
            assert_eq!(awake.topology(), asleep.topology());
            assert_eq!(awake.readers(), asleep.readers());
        }
    }

    #[test]
    fn every_plan_is_a_scenario() {
        for hops in [1, 3, 8] {
            for poll_s in [None, Some(1.0)] {
                for readers in [0, 12, 100] {
                    let update = Unmodified {
                        poll_s,
                        readers,
                        relays: true,
                        frame_loss: 3,
                        ..Unmodified::new(hops)
                    };
                    let document = update.document(10);
                    Plan::parse(&document, Path::new(""), Overrides::default()).unwrap();
                    assert!(!update.readers().contains(&hops));
                }
            }
        }
    }

    #[test]
    fn branches_meet_at_the_border_router() {
        let update = Unmodified {
            poll_s: Some(1.0),
            ..Unmodified::new(1)
        };
        let places = [0, 1, 2, 5, 6, 9].map(|node| update.place(node));
        assert_eq!(places, [(0, 0), (0, 1), (1, 1), (1, 4), (2, 1), (2, 4)]);
        let update = Unmodified::new(5);
        assert_eq!(
            [5, 6, 15].map(|node| update.place(node)),
            [(0, 5), (1, 1), (2, 5)]
        );
    }
}
