//! The checks of each requirement.
//!
//! Place: `interplay` calls [`all`] once a run is over. What a check counts stands in its words.

use std::collections::{HashMap, HashSet};
use std::net::Ipv6Addr;

use super::fired::Fired;
use super::frames::{Heard, Key, Segment};
use super::tallies::Counter;
use super::{Checks, Trace};
use crate::air::radio::State;
use crate::experiments::everything::network::{DIES_AT_S, REBOOTS_AT_S, ROTATES_S};
use crate::net::fairness::Datagrams;
use crate::net::plan;
use crate::scenario::{FlowEnd, NodeResult, Outcome};

/// Checks all requirements that a run shows.
pub(super) fn all(trace: &Trace<'_>, checks: &mut Checks) {
    headers(trace, checks);
    order(trace, checks);
    waits(trace, checks);
    attempts(trace, checks);
    flags(trace, checks);
    frames(trace, checks);
    contexts(trace, checks);
    sleep(trace, checks);
    admission(trace, checks);
}

/// Checks what congestion marks show: requirements 5 and 6, of a run that has many.
pub(super) fn marks(trace: &Trace<'_>, checks: &mut Checks) {
    congestion(trace, checks);
    echoes(trace, checks);
}

/// Requirement 1: what a packet looks like on each of its links.
fn headers(trace: &Trace<'_>, checks: &mut Checks) {
    let wire = segments(&trace.wire);
    let right = count(wire.clone().filter(|(_, it)| it.is_sum_right));
    checks.part(
        1,
        "right checksums on the wire",
        [right, count(wire)],
        (MANY, 0),
    );
    let mut first = HashMap::new();
    let (mut compressed, mut all) = (0, 0);
    for heard in trace.mesh.iter().filter(|it| !it.is_repeat) {
        let datagram = heard.fragment.map(|it| (heard.from, heard.to, it.tag));
        if heard.fragment.is_some_and(|it| it.is_first) {
            first.insert(datagram, heard.is_compressed);
        }
        let Some(segment) = &heard.segment else {
            continue;
        };
        if !segment.has("SYN") && !segment.has("RST") {
            let was =
                heard.is_compressed || datagram.is_some() && first.get(&datagram) == Some(&true);
            all += 1;
            compressed += u64::from(was);
        }
    }
    checks.part(1, "TCPHC in the mesh", [compressed, all], (MANY, 50));
    let over_ble = segments(&trace.over_ble);
    let plain = count(over_ble.clone().filter(|(heard, _)| !heard.is_compressed));
    checks.part(
        1,
        "no TCPHC over Bluetooth LE",
        [plain, count(over_ble)],
        (MANY, 0),
    );
    let hidden = trace.sealed.iter().filter(|it| !it.is_readable).count() as u64;
    checks.part(
        1,
        "frames hidden without the key",
        [hidden, trace.sealed.len() as u64],
        (MANY, 0),
    );
}

/// Requirement 2: the border router keeps the order of a flow, and holds nothing for too long.
fn order(trace: &Trace<'_>, checks: &mut Checks) {
    let tallies = trace.tallies;
    let kept = tallies.left - tallies.disordered;
    checks.part(
        2,
        "out of the policy in order",
        [kept, tallies.left],
        (MANY, 0),
    );
    note_held(2, trace, checks);
    let sent: u64 = trace
        .result
        .nodes
        .iter()
        .map(|node| node.counts.segments)
        .sum();
    let calm = sent.saturating_sub(tallies.timeouts_held);
    checks.part(
        2,
        "segments without a timeout while held",
        [calm, sent],
        (MANY, 10),
    );
    // Those that passed the wire once, by their place there.
    let mut places: HashMap<Key, (usize, bool)> = HashMap::new();
    for (place, (_, segment)) in segments(&trace.wire).enumerate() {
        let entry = places.entry(segment.key()).or_insert((place, true));
        entry.1 = entry.0 == place;
    }
    let (mut in_order, mut all) = (0, 0);
    let (mut last, mut seen) = (HashMap::new(), HashSet::new());
    let down = segments(&trace.mesh).filter(|(heard, it)| heard.from == Some(0) && it.len > 0);
    for (_, segment) in down {
        let Some((place, true)) = places.get(&segment.key()) else {
            continue;
        };
        if !seen.insert(segment.key()) {
            continue;
        }
        let before = last.entry((segment.src, segment.dst)).or_insert(*place);
        all += 1;
        in_order += u64::from(*before <= *place);
        *before = (*before).max(*place);
    }
    checks.part(2, "into the mesh in order", [in_order, all], (MANY, 1));
}

/// Requirement 3: no frame waits in a radio for longer than it may.
fn waits(trace: &Trace<'_>, checks: &mut Checks) {
    let tallies = trace.tallies;
    let conditional = tallies.sum(Counter::Conditional, |_| true);
    checks.note(
        3,
        format!("{conditional} frames waited in radios"),
        conditional >= MANY,
    );
    let in_time = tallies.waiting - tallies.overdue;
    let what = "glances at waits of 30 ms at most";
    checks.part(3, what, [in_time, tallies.waiting], (MANY, 0));
    // From a segment's last frame into a relay to its last frame out of it.
    let mut came: HashMap<(usize, Key), u64> = HashMap::new();
    let (mut soon, mut all) = (0, 0);
    for (heard, segment) in segments(&trace.mesh) {
        let ends = [segment.src.0, segment.dst.0].map(plan::mesh_node);
        if ends
            .iter()
            .flatten()
            .any(|node| trace.roles.asleep.contains(node))
        {
            continue;
        }
        let from = heard
            .from
            .and_then(|from| came.remove(&(from, segment.key())));
        if let Some(at_us) = from {
            all += 1;
            soon += u64::from(heard.at_us - at_us <= PASSED_ON_US);
        }
        let relay = heard.to.filter(|to| *to > 0 && !ends.contains(&Some(*to)));
        if let Some(relay) = relay {
            came.insert((relay, segment.key()), heard.at_us);
        }
    }
    checks.part(
        3,
        "segments passed on within a second",
        [soon, all],
        (MANY, 10),
    );
}

/// Requirement 4: what goes without an assessment of the channel is the first attempt at a frame.
fn attempts(trace: &Trace<'_>, checks: &mut Checks) {
    let fired = Fired::of(&trace.mesh);
    let first = fired.first;
    checks.note(4, format!("{first} frames left at once"), first >= MANY);
    checks.part(
        4,
        "repeats that assessed the channel",
        [fired.repeats - fired.repeats_at_once, fired.repeats],
        (MANY, 0),
    );
}

/// Requirement 5: what a link has marked comes back as ECE.
fn congestion(trace: &Trace<'_>, checks: &mut Checks) {
    let on_wire = segments(&trace.wire).map(|(_, it)| it);
    let [up, all_up] = echoed(on_wire, |it| is_mesh(it.src.0));
    let at_ends = segments(&trace.mesh).filter(|(heard, segment)| {
        let is_end = |node: Option<usize>, addr| node.is_some() && node == plan::mesh_node(addr);
        is_end(heard.to, segment.dst.0) || is_end(heard.from, segment.src.0)
    });
    let at_ends = at_ends.map(|(_, it)| it);
    let [down, all_down] = echoed(at_ends, |it| is_mesh(it.dst.0));
    checks.part(
        5,
        "marks that come back as ECE",
        [up + down, all_up + all_down],
        (MANY / 4, 50),
    );
}

/// Marked segments of those that are meant, of which one of the other end's next segments has ECE,
/// and how many were marked.
fn echoed<'t>(
    seen: impl Iterator<Item = &'t Segment>,
    is_meant: impl Fn(&Segment) -> bool,
) -> [u64; 2] {
    let (mut open, mut echoed, mut all) = (HashMap::new(), 0, 0);
    for segment in seen {
        if segment.is_marked && segment.len > 0 && is_meant(segment) {
            open.entry((segment.dst, segment.src)).or_insert(0);
        }
        let back = (segment.src, segment.dst);
        let Some(passed) = open.get_mut(&back) else {
            continue;
        };
        *passed += 1;
        let is_echo = segment.has("ECE");
        if is_echo || *passed > ECHO_WITHIN {
            echoed += u64::from(is_echo);
            all += 1;
            open.remove(&back);
        }
    }
    [echoed, all]
}

/// Requirement 6: the flags of a segment are the same on both sides of the compressor.
fn flags(trace: &Trace<'_>, checks: &mut Checks) {
    let mut sides: HashMap<Key, [Vec<&[String]>; 2]> = HashMap::new();
    let in_mesh = segments(&trace.mesh);
    let in_mesh = in_mesh.filter(|(heard, _)| [heard.from, heard.to].contains(&Some(0)));
    for (side, segment) in segments(&trace.wire)
        .map(|(_, it)| (0, it))
        .chain(in_mesh.map(|(_, it)| (1, it)))
    {
        sides.entry(segment.key()).or_default()[side].push(&segment.flags);
    }
    let (mut same, mut all, mut pushed) = (0, 0, 0);
    for [wire, mesh] in sides.values_mut() {
        // Where a copy was lost between them, nobody knows which one.
        if wire.len() == mesh.len() {
            wire.sort();
            mesh.sort();
            all += mesh.len() as u64;
            same += count(
                wire.iter()
                    .zip(mesh.iter())
                    .filter(|(one, other)| one == other),
            );
            pushed += count(mesh.iter().filter(|it| it.iter().any(|flag| flag == "PSH")));
        }
    }
    checks.part(6, "the same flags on both sides", [same, all], (MANY, 0));
    checks.note(6, format!("{pushed} segments with PSH"), pushed > 0);
}

/// Requirement 6: thinning leaves the ACKs that say what was marked. An echo that never entered the
/// mesh counts as thinned only if a later ACK of its flow entered soon. If none did, the border
/// router had no way to the mote.
fn echoes(trace: &Trace<'_>, checks: &mut Checks) {
    let mut entered: HashMap<Key, u64> = HashMap::new();
    for (heard, segment) in segments(&trace.mesh) {
        entered.entry(segment.key()).or_insert(heard.at_us);
    }
    let down: Vec<_> = segments(&trace.wire)
        .filter(|(_, it)| is_mesh(it.dst.0))
        .collect();
    let soon = |at_us: u64| at_us..at_us + REPLACED_WITHIN_US;
    let (mut kept, mut all) = (0, 0);
    for (place, (heard, echo)) in down.iter().enumerate() {
        if !echo.has("ECE") || echo.has("SYN") {
            continue;
        }
        let mut later = down.iter().skip(place + 1).take_while(|(it, _)| {
            // The wire is in order.
            soon(heard.at_us).contains(&it.at_us)
        });
        let is_replaced = later.any(|(it, segment)| {
            let at_us = entered.get(&segment.key());
            (segment.src, segment.dst) == (echo.src, echo.dst)
                && at_us.is_some_and(|at_us| soon(it.at_us).contains(at_us))
        });
        all += 1;
        kept += u64::from(entered.contains_key(&echo.key()) || !is_replaced);
    }
    let what = "echoes of marks not thinned";
    checks.part(6, what, [kept, all], (MANY / 4, 20));
}

/// Twice as long as an ACK waits for a newer one at the most.
const REPLACED_WITHIN_US: u64 = 1_000_000;

/// Requirement 7: a segment fills as many frames as its MSS was made for, and no more. That counts
/// headers of the usual length. One that mends a context is longer; the host that cuts segments
/// knows nothing of it and cannot leave room, so that such a segment may take one frame more, if
/// few are.
fn frames(trace: &Trace<'_>, checks: &mut Checks) {
    let nodes = trace.scenario.network.nodes.iter();
    let promised = nodes
        .map(|node| usize::from(node.mss_frames))
        .max()
        .unwrap_or_default();
    let mut datagrams: HashMap<_, (HashSet<u64>, bool)> = HashMap::new();
    let (mut within, mut more, mut all) = (0, 0, 0);
    for heard in trace.mesh.iter().filter(|it| !it.is_repeat) {
        let datagram = heard.fragment.map(|it| (heard.from, heard.to, it.tag));
        if let Some(fragment) = heard.fragment {
            let (offsets, is_long) = datagrams.entry(datagram).or_default();
            if fragment.is_first {
                offsets.clear();
                *is_long = heard.header_len.is_none_or(|len| len > HEADER_LEN);
            }
            offsets.insert(fragment.offset);
        }
        if heard.segment.as_ref().is_some_and(|it| it.len > 0) {
            let datagram = datagrams.get(&datagram);
            let (frames, is_long) =
                datagram.map_or((1, false), |(offsets, is_long)| (offsets.len(), *is_long));
            all += 1;
            within += u64::from(frames <= promised || is_long && frames == promised + 1);
            more += u64::from(frames > promised);
        }
    }
    let what = format!("segments in {promised} frames or less, or one more for their header");
    checks.part(7, &what, [within, all], (MANY, 0));
    let what = format!("segments in {promised} frames or less");
    checks.part(7, &what, [all - more, all], (MANY, 50));
}

/// Requirement 8: a context that was lost is mended by the next copy of the segment.
fn contexts(trace: &Trace<'_>, checks: &mut Checks) {
    let tallies = trace.tallies;
    let restored = tallies.sum(Counter::Restored, |_| true);
    let discarded = tallies.sum(Counter::Discarded, |_| true);
    checks.part(
        8,
        "headers restored",
        [restored, restored + discarded],
        (MANY, 10),
    );
    // When a segment out of the mesh was restored: it passed the wire.
    let mut restored = HashMap::new();
    for (heard, segment) in segments(&trace.wire).filter(|(_, it)| it.len > 0) {
        restored.entry(place(segment)).or_insert(heard.at_us);
    }
    let is_refused = refusals(trace, &restored);
    // When a segment first came to its end, and how often; and of those out of the mesh, how often
    // until it was restored, from neighbours that the border router believes.
    let mut copies: HashMap<_, (u64, u32)> = HashMap::new();
    let mut until: HashMap<_, (u64, u32)> = HashMap::new();
    for (heard, segment) in segments(&trace.mesh).filter(|(_, it)| it.len > 0) {
        let end = match is_mesh(segment.dst.0) {
            true => plan::mesh_node(segment.dst.0),
            false => Some(0),
        };
        if heard.to.is_some() && heard.to == end {
            let key = place(segment);
            copies.entry(key).or_insert((heard.at_us, 0)).1 += 1;
            let restored = restored.get(&key);
            let is_lost = restored.is_none_or(|restored| heard.at_us < *restored);
            if end == Some(0) && is_lost && !is_refused(heard) {
                until.entry(key).or_insert((heard.at_us, 0)).1 += 1;
            }
        }
    }
    let mut note = |what: &str, own: &[u32], least: u64| {
        let all = own.len() as u64;
        let often = own.iter().filter(|copies| **copies > 2).count() as u64;
        checks.part(8, what, [all - often, all], (least, 10));
    };
    let all: Vec<u32> = copies.values().map(|(_, copies)| *copies).collect();
    note("segments that came no third time", &all, MANY);
    for (what, at_s) in [
        ("behind the relay's death", DIES_AT_S),
        ("behind the turn of the key", ROTATES_S),
        ("behind the border router's restart", REBOOTS_AT_S),
    ] {
        let [from, to] = [at_s, at_s + MENDED_WITHIN_S];
        let [from, to] = [from, to].map(|at_s| trace.joined_us + at_s * 1_000_000);
        let own = until
            .values()
            .filter(|(at_us, _)| (from..to).contains(at_us));
        let own: Vec<u32> = own.map(|(_, copies)| *copies).collect();
        let what = format!("segments {what} restored by their second copy");
        note(&what, &own, MANY / 4);
    }
}

/// Whether the border router cannot have taken a frame in: it is off, or it has restarted and has
/// passed on nothing yet that this neighbour brought. It refuses the frames of neighbours that have
/// not answered its challenge, and no context sees them. `restored`: when segments passed the wire.
fn refusals(trace: &Trace<'_>, restored: &HashMap<Place, u64>) -> impl Fn(&Heard) -> bool {
    let off_at = trace.joined_us + REBOOTS_AT_S * 1_000_000;
    // The last copy of each segment before it was restored.
    let mut brought: HashMap<(Option<usize>, Place), u64> = HashMap::new();
    let behind = segments(&trace.mesh).filter(|(it, _)| it.to == Some(0) && it.at_us >= off_at);
    for (heard, segment) in behind {
        let key = place(segment);
        if restored.get(&key).is_some_and(|at_us| heard.at_us < *at_us) {
            brought.insert((heard.from, key), heard.at_us);
        }
    }
    let mut believed: HashMap<Option<usize>, u64> = HashMap::new();
    for ((from, _), at_us) in brought {
        let since = believed.entry(from).or_insert(at_us);
        *since = at_us.min(*since);
    }
    move |heard| {
        let believed = believed.get(&heard.from);
        heard.at_us >= off_at && believed.is_none_or(|since| heard.at_us < *since)
    }
}

/// Where a segment lies: its ends, sequence number and length.
type Place = ((Ipv6Addr, u64), (Ipv6Addr, u64), u32, u32);

fn place(segment: &Segment) -> Place {
    (segment.src, segment.dst, segment.seq, segment.len)
}

/// Requirement 11: leaves sleep by one policy and pass nothing on; relays are awake.
fn sleep(trace: &Trace<'_>, checks: &mut Checks) {
    let (roles, result) = (trace.roles, trace.result);
    let is_asleep = |node: usize| roles.asleep.contains(&node);
    let requests = trace.mesh.iter().filter(|it| it.is_request);
    let own = requests
        .clone()
        .filter(|it| it.from.is_some_and(is_asleep))
        .count() as u64;
    checks.part(
        11,
        "requests of motes that sleep",
        [own, requests.count() as u64],
        (MANY / 4, 0),
    );
    let nodes = result
        .nodes
        .iter()
        .enumerate()
        .skip(1)
        .take(trace.scenario.network.nodes.len() - 1);
    let is_relay =
        |node: usize| !is_asleep(node) && !roles.on_ble.contains(&node) && trace.died != Some(node);
    let is_awake = |node: &NodeResult| node.counts.share(State::Sleep) == 0.0;
    let awake = nodes
        .clone()
        .all(|(number, node)| !is_relay(number) || is_awake(node));
    checks.note(11, "motes that pass on are awake", awake);
    let duty =
        |(number, node): (usize, &NodeResult)| is_asleep(number).then(|| node.counts.radio_duty());
    let most = nodes.filter_map(duty).fold(0.0, f64::max);
    let what = format!("a leaf's radio is on for {most:.4} of its time");
    checks.note(11, what, most < REST);
    let sent = segments(&trace.mesh).filter(|(heard, _)| heard.from.is_some_and(is_asleep));
    let own = count(
        sent.clone()
            .filter(|(heard, it)| heard.from == plan::mesh_node(it.src.0)),
    );
    checks.part(
        11,
        "segments of their own from leaves",
        [own, count(sent)],
        (1, 0),
    );
}

/// Requirements 12 and 13: where the policy holds, the router's queues mark and drop nothing; what
/// is not TCP is not held.
fn admission(trace: &Trace<'_>, checks: &mut Checks) {
    let tallies = trace.tallies;
    note_held(12, trace, checks);
    let queued = tallies.sum(Counter::Queued, |node| node == 0);
    let dropped = tallies.sum(Counter::QueueDropped, |node| node == 0);
    checks.part(
        12,
        "packets not dropped by the router's queues",
        [queued - dropped.min(queued), queued],
        (MANY, 0),
    );
    let marked = tallies.sum(Counter::Marked, |node| node == 0);
    checks.part(
        12,
        "packets not marked by the router",
        [queued - marked.min(queued), queued],
        (MANY, 0),
    );
    for (way, Datagrams { entered, held }) in ["out of", "into"].iter().zip(tallies.datagrams) {
        let what = format!("datagrams {way} the mesh not held");
        checks.part(13, &what, [entered - held, entered], (MANY / 4, 0));
    }
    let to = FlowEnd::Node(trace.roles.coap);
    let coap = trace.result.flows.iter().find(|flow| flow.to == to);
    let outcome = coap.map(|flow| flow.outcome);
    let what = format!("the image over CoAP is {outcome:?}");
    checks.note(13, what, outcome == Some(Outcome::Complete));
}

/// Notes whether the policy held anything at all, without which what it does shows nothing.
fn note_held(requirement: usize, trace: &Trace<'_>, checks: &mut Checks) {
    let held = trace.tallies.held;
    checks.note(requirement, format!("{held} packets held"), held >= MANY);
}

/// Segments of a capture, but for those that a link repeats.
pub(super) fn segments(heard: &[Heard]) -> impl Iterator<Item = (&Heard, &Segment)> + Clone {
    let heard = heard.iter().filter(|it| !it.is_repeat);
    heard.filter_map(|it| Some((it, it.segment.as_ref()?)))
}

pub(super) fn count<T>(all: impl Iterator<Item = T>) -> u64 {
    all.count() as u64
}

fn is_mesh(addr: Ipv6Addr) -> bool {
    has_prefix(addr, plan::MESH_PREFIX)
}

pub(super) fn has_prefix(addr: Ipv6Addr, prefix: Ipv6Addr) -> bool {
    addr.to_bits() >> 64 == prefix.to_bits() >> 64
}

/// Fewer show nothing of what a whole run does.
pub(super) const MANY: u64 = 100;

/// The longest usual header of a compressed segment with timestamps, bytes
/// (`docs/reference/tcphc.md`, section 5).
const HEADER_LEN: u64 = 18;

/// Segments of the other end within which a mark comes back: its ACKs under way, and one delayed.
const ECHO_WITHIN: u32 = 8;

/// How long behind an event its traces in contexts are looked for.
const MENDED_WITHIN_S: u64 = 60;

/// How long a relay may keep a segment: other frames go first, and some of its own are repeated.
const PASSED_ON_US: u64 = 1_000_000;

/// The share of its time in which a leaf's radio is on, at most: what all of them may have on
/// average, and a leaf that lost its parent as much again.
const REST: f64 = 0.033;
