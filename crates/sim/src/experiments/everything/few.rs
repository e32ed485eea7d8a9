//! Requirement 14: one or two flows have as much with the border router's policy as without it.
//!
//! Purpose: two motes in a row, the nearer one alone and both at once.
//! Left out: many flows, which the policy is for; see `fair`.

use std::sync::atomic::AtomicBool;

use super::interplay::Checks;
use crate::experiments::run::Failure;
use crate::experiments::written;

/// Notes for one and for two flows whether the policy leaves them what they have without it.
///
/// # Errors
/// Why a run does not count.
pub(super) fn check(seed: u64, checks: &mut Checks) -> Result<(), Failure> {
    for flows in 1..=2 {
        let with = goodput_kbps(seed, flows, "auto")?;
        let without = goodput_kbps(seed, flows, "none")?;
        let what = format!("{flows} flows have {with:.1} of {without:.1} kb/s");
        checks.note(14, what, without > 0.0 && with >= LEAST * without);
    }
    Ok(())
}

fn goodput_kbps(seed: u64, flows: usize, policy: &str) -> Result<f64, Failure> {
    let seed = seed & i64::MAX as u64;
    let mut text = format!(
        "seed = {seed}\nduration_s = {SECONDS}\nwarmup_s = 10\n[topology]\nchain = 2\n\
         [radio]\nprofile = \"nrf52840\"\n[router]\npolicy = \"{policy}\"\n"
    );
    for mote in 1..=flows {
        text += &format!("[[flow]]\nfrom = {mote}\n");
    }
    let result = written::finish(&text, seed, &AtomicBool::new(false))?;
    Ok(result.goodput_kbps())
}

/// The share of what they have without the policy.
const LEAST: f64 = 0.98;

const SECONDS: u64 = 70;
