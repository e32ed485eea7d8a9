//! Requirements 10 and 15: prefetched segments wait at the border router until their TCP has sent
//! them, and each air has its own traffic alone.
//!
//! Purpose: what the border router holds is followed in the captures of Bluetooth LE's air and of
//! the wire: a prefetched segment is held from its packet until a release, which comes by the same
//! connection, and passes the wire behind that.

use std::collections::{HashMap, HashSet};
use std::net::Ipv6Addr;

use motet::tcp::RetransmissionCause;
use motet::wire::LinkAddr;

use super::frames::{Heard, Key, Segment, Tcple};
use super::rules::{MANY, count, has_prefix, segments};
use super::{Checks, Trace};
use crate::net::plan;
use crate::scenario::NodeResult;

pub(super) fn check(trace: &Trace<'_>, checks: &mut Checks) {
    held(trace, checks);
    timers(trace, checks);
    airs(trace, checks);
}

/// The segments that one mote has sent ahead.
#[derive(Debug, Default)]
struct Ahead {
    /// Those that wait for their release: number of the connection, key, bytes.
    held: Vec<(u64, Key, u64)>,
    /// How many of these there were at most.
    most: usize,
}

/// Follows what is held.
fn held(trace: &Trace<'_>, checks: &mut Checks) {
    let mut all: Vec<&Heard> = trace.over_ble.iter().chain(&trace.wire).collect();
    all.sort_by_key(|heard| heard.at_us);
    let mut motes: HashMap<&str, Ahead> = HashMap::new();
    let (mut ahead, mut passed, mut released) = (0, 0, 0);
    for heard in all {
        let Some(connection) = heard.connection.as_deref() else {
            let Some(segment) = &heard.segment else {
                continue;
            };
            let key = segment.key();
            let mut own = motes.values_mut();
            let is_held = own.any(|mote| mote.held.iter().any(|(_, it, _)| *it == key));
            passed += u64::from(is_held);
            continue;
        };
        let mote = motes.entry(connection).or_default();
        match (heard.tcple, &heard.segment) {
            (Some(Tcple::Ahead(flow)), Some(segment)) => {
                mote.held.push((flow, segment.key(), segment.len.into()));
                mote.most = mote.most.max(mote.held.len());
                ahead += 1;
            }
            (Some(Tcple::Release(flow, bytes)), _) => {
                released += mote.release(flow, bytes);
            }
            // It passes by those that are held of its connection, which are obsolete.
            (_, Some(segment)) => mote
                .held
                .retain(|(_, (src, dst, ..), _)| (*src, *dst) != (segment.src, segment.dst)),
            _ => {}
        }
    }
    let most = motes.values().map(|mote| mote.most).max();
    let most = most.unwrap_or_default();
    let what = format!("{most} segments of a mote held at once, of {EACH}");
    checks.note(10, what, (1..=EACH).contains(&most));
    let what = format!("{passed} of {ahead} segments sent ahead passed before {released} releases");
    checks.note(10, what, released >= MANY && passed == 0);
}

impl Ahead {
    /// Takes the oldest of a connection that `bytes` release; returns how many these were.
    fn release(&mut self, flow: u64, bytes: u64) -> u64 {
        if bytes == 0 {
            self.held.retain(|(own, ..)| *own != flow);
            return 0;
        }
        let (mut left, mut released) = (bytes, 0);
        self.held.retain(|(own, _, len)| {
            let goes = *own == flow && left > 0;
            if goes {
                left = left.saturating_sub((*len).max(1));
                released += 1;
            }
            !goes
        });
        released
    }
}

/// Prefetched bytes start no timer.
fn timers(trace: &Trace<'_>, checks: &mut Checks) {
    let of = |count: fn(&NodeResult) -> u64| -> u64 {
        let nodes = trace.roles.on_ble.iter();
        let nodes = nodes.filter_map(|node| trace.result.nodes.get(*node));
        nodes.map(count).sum()
    };
    let sent = of(|node| node.counts.segments);
    let timeouts = of(|node| node.counts.retransmissions[RetransmissionCause::Timeout as usize]);
    checks.part(
        10,
        "segments without a timeout over Bluetooth LE",
        [sent - timeouts.min(sent), sent],
        (MANY, 10),
    );
}

/// What is prefetched, and by whom; whose segments are on which air.
fn airs(trace: &Trace<'_>, checks: &mut Checks) {
    let unaided = trace.roles.unaided().map(addr_over_ble);
    let is_its = |segment: &Segment| [segment.src.0, segment.dst.0].map(Some).contains(&unaided);
    let heard = || trace.over_ble.iter();
    let of_its = heard().filter(|it| it.segment.as_ref().is_some_and(is_its));
    let of_its: HashSet<&str> = of_its.filter_map(|it| it.connection.as_deref()).collect();
    let ahead = heard().filter(|it| matches!(it.tcple, Some(Tcple::Ahead(_))));
    let connection = ahead.filter_map(|it| it.connection.as_deref());
    let (without, with): (Vec<&str>, Vec<&str>) = connection.partition(|it| of_its.contains(it));
    let what = format!("{} segments prefetched", with.len());
    checks.note(15, what, with.len() as u64 >= MANY);
    let what = format!(
        "{} segments prefetched by a mote without TCPlE, on {} connections",
        without.len(),
        of_its.len()
    );
    checks.note(15, what, !of_its.is_empty() && without.is_empty());
    let mesh = segments(&trace.mesh);
    let own = mesh
        .clone()
        .filter(|(_, it)| !is_beside(it.src.0) && !is_beside(it.dst.0));
    let what = "the mesh's own segments on its air";
    checks.part(15, what, [count(own), count(mesh)], (MANY, 0));
    let over_ble = segments(&trace.over_ble);
    let own = over_ble
        .clone()
        .filter(|(_, it)| is_beside(it.src.0) || is_beside(it.dst.0));
    let what = "Bluetooth LE's own segments on its air";
    checks.part(15, what, [count(own), count(over_ble)], (MANY, 0));
}

/// The address of mote `n` over Bluetooth LE.
fn addr_over_ble(n: usize) -> Ipv6Addr {
    // Lossless: nodes have 16-bit numbers.
    let device = LinkAddr::Device(plan::device_addr(n as u16).bytes);
    plan::addr_of(plan::prefix_over_ble(plan::MESH_PREFIX), device)
}

/// Whether this is the address of a mote over Bluetooth LE.
fn is_beside(addr: Ipv6Addr) -> bool {
    has_prefix(addr, plan::prefix_over_ble(plan::MESH_PREFIX))
}

/// Segments that the border router may hold of a mote: two rounds of one segment.
const EACH: usize = 2;
