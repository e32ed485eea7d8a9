//! Requirement 4: the frames that leave without an assessment of the channel, by their times on the
//! air.
//!
//! Purpose: what conditional immediate transmission sends leaves a turnaround behind the frame that
//! fires it, or behind the ACK for that one; whatever assesses the channel needs eight symbols
//! more. Left out: frames to all, which fire nothing.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::frames::{Heard, Kind, read};
use super::{Checks, Interplay};
use crate::capture::Tape;
use crate::experiments::run::Failure;
use crate::experiments::written;
use crate::net::plan;

/// Frames that left at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Fired {
    /// First attempts at a frame.
    pub(super) first: u64,
    /// Repeats, and how many of them left at once.
    pub(super) repeats: u64,
    pub(super) repeats_at_once: u64,
    /// Forged data frames to nodes.
    forged: u64,
    /// The nodes whose frames forged ones fired, and when.
    by_forgeries: Vec<(usize, u64)>,
}

/// The frame that a node has just taken: until when it or its ACK lasted, whether it was data,
/// which alone fires anything (a request is answered at once, too), and whether it was forged.
#[derive(Clone, Copy)]
struct Last {
    over_us: u64,
    is_data: bool,
    is_forged: bool,
}

impl Fired {
    /// Those of a capture that the mesh's key has opened.
    pub(super) fn of(mesh: &[Heard]) -> Self {
        let mut fired = Self::default();
        let mut last: HashMap<usize, Last> = HashMap::new();
        // By the number of its ACK, a frame's receiver; none where two frames of the number wait
        // for one at once, far from each other: the ACK may be either's.
        let mut due: HashMap<Option<u64>, (Option<usize>, Last)> = HashMap::new();
        for heard in mesh {
            let is_forged = heard.kind == Kind::Data && !heard.is_readable;
            if heard.kind == Kind::Ack {
                let acked = due.remove(&heard.sequence);
                let acked = acked.filter(|(_, it)| heard.at_us < it.over_us + ACK_WITHIN_US);
                if let Some((Some(node), before)) = acked {
                    let over_us = heard.over_us;
                    last.insert(node, Last { over_us, ..before });
                }
                continue;
            }
            if let Some(from) = heard
                .from
                .filter(|_| heard.kind == Kind::Data && !is_forged)
            {
                fired.note(heard, from, last.get(&from).copied());
            }
            if let Some(to) = heard.to {
                let over_us = heard.over_us;
                let own = Last {
                    over_us,
                    is_data: heard.kind == Kind::Data,
                    is_forged,
                };
                fired.forged += u64::from(is_forged);
                // Without an ACK it may not have heard this one, and fires nothing.
                last.remove(&to);
                let waits = due.get(&heard.sequence).map(|(_, it)| it.over_us);
                let is_alone = waits.is_none_or(|it| it + ACK_WITHIN_US <= heard.at_us);
                due.insert(heard.sequence, (is_alone.then_some(to), own));
            }
        }
        fired
    }

    fn note(&mut self, heard: &Heard, from: usize, last: Option<Last>) {
        let since = |last: &Last| heard.at_us.checked_sub(last.over_us);
        let last = last.filter(|last| last.is_data);
        let at_once = last.filter(|last| since(last).is_some_and(|it| it < ASSESSED_US));
        self.repeats += u64::from(heard.is_repeat);
        let Some(by) = at_once else { return };
        match heard.is_repeat {
            true => self.repeats_at_once += 1,
            false => self.first += 1,
        }
        if by.is_forged {
            self.by_forgeries.push((from, heard.at_us));
        }
    }
}

/// Notes whether frames that an attacker forges fire a relay's more often than the MAC says: once,
/// and then not for a second and longer.
///
/// # Errors
/// Why the run does not count.
pub(in crate::experiments::everything) fn forged(
    seed: u64,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let fired = Fired::of(&attacked(seed & i64::MAX as u64)?);
    let Fired { first, forged, .. } = fired;
    let what = format!("{forged} forged frames beside {first} that left at once");
    checks.note(4, what, forged >= LEAST && first >= LEAST);
    let mut last = HashMap::new();
    let mut early = 0;
    for (node, at_us) in &fired.by_forgeries {
        let before = last.insert(*node, *at_us);
        early += usize::from(before.is_some_and(|it| at_us - it < MUTED_US));
    }
    let all = fired.by_forgeries.len();
    let what = format!("{early} of {all} frames fired by forged ones within a second of another");
    checks.note(4, what, early == 0);
    Ok(())
}

/// The mesh of a chain that an attacker sends forged heads into, opened.
fn attacked(seed: u64) -> Result<Vec<Heard>, Failure> {
    let text = format!(
        "seed = {seed}\nduration_s = 60\nwarmup_s = 10\n[topology]\nchain = 3\n\
         [radio]\nprofile = \"nrf52840\"\n[stack]\nforwarding = \"cit\"\n\
         [security]\nlab_key = true\n[[flow]]\nfrom = 3\n\
         [[attacker]]\nnear = 1\nkind = \"head\"\nper_s = 20\n"
    );
    let mut session = written::open(&text, seed)?;
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method's path is of one lifetime of networks, and a session calls for any"
    )]
    let key = session.inspect(|network| network.network_key());
    let [wire, mesh, over_ble] = [(); 3].map(|()| Tape::default());
    Interplay::record(&mut session, [&wire, &mesh, &over_ble])
        .map_err(|error| Failure::Topology(error.to_string()))?;
    written::run(session, &AtomicBool::new(false))?;
    Ok(read(&mesh, key, plan::MESH_PREFIX))
}

/// From the end of a frame to the start of the next, where the channel is assessed between them: a
/// receiver's turnaround of 192 µs and 128 µs at least; what fires needs the first alone, and up to
/// 90 µs of a driver.
const ASSESSED_US: u64 = 300;

/// From the end of a frame to the start of its ACK: a turnaround of 192 µs, and a little.
const ACK_WITHIN_US: u64 = 250;

/// The shortest time for which a forgery mutes a neighbour's heads.
const MUTED_US: u64 = 990_000;

/// Fewer frames show nothing.
const LEAST: u64 = 100;
