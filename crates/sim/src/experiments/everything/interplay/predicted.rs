//! Requirement 9: header prediction takes as many segments behind a decompressor as without one.
//!
//! Purpose: a mote beside the border router sends, and then receives, with compressed headers and
//! without.
//! Left out: flows that contend, whose losses decide what is predicted.

use std::sync::atomic::{AtomicBool, AtomicU64};

use super::Checks;
use super::tallies::{Counter, Tallies};
use crate::experiments::run::Failure;
use crate::experiments::written;
use crate::scenario::Watch;

/// Notes whether the motes' share of predicted segments is the same either way.
///
/// # Errors
/// Why a run does not count.
pub(in crate::experiments::everything) fn predicted(
    seed: u64,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let [compressed, whole] = ["tcphc", "none"].map(|it| share(seed & i64::MAX as u64, it));
    let (compressed, whole) = (compressed?, whole?);
    let what = format!("{compressed:.4} of segments predicted, {whole:.4} without TCPHC");
    let is_alike = (compressed - whole).abs() <= DIFFERENCE;
    checks.note(9, what, whole > 0.5 && is_alike);
    Ok(())
}

fn share(seed: u64, compression: &str) -> Result<f64, Failure> {
    let text = format!(
        "seed = {seed}\nduration_s = 110\nwarmup_s = 10\n[topology]\nchain = 1\n\
         [radio]\nprofile = \"nrf52840\"\n[stack]\ncompression = \"{compression}\"\n\
         [[flow]]\nfrom = 1\nbytes = {UP}\n\
         [[flow]]\nfrom = \"host\"\nto = 1\nstart_s = {DOWN_AT_S}\n"
    );
    let mut session = written::open(&text, seed)?;
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let mut tallies = Tallies::default();
    while !session.advance(session.now() + super::LOOK, &watch) {
        session.inspect(|network| tallies.look(network));
    }
    let of = |counter| tallies.sum(counter, |node| node > 0) as f64;
    let share = of(Counter::Predicted) / of(Counter::Received).max(1.0);
    written::close(session)?;
    Ok(share)
}

/// What the mote sends first, bytes, and when the host begins: that is over by then.
const UP: u64 = 400_000;
const DOWN_AT_S: u64 = 55;

/// How far the shares may be apart.
const DIFFERENCE: f64 = 0.01;
