//! The rules by which counts become findings.

use std::collections::BTreeMap;

use super::Examiner;
use super::link::{Link, Loss};
use super::list::{Finding, Findings};
use super::rules::{
    Weakness, contradiction, counted, limit_of, many_retries, weakening, worsening,
};
use super::stations::{Node, Restart};
use super::tally::Events;

/// All findings, worst first.
pub(super) fn all(of: &Examiner) -> Vec<Finding> {
    let mut found = Findings::default();
    found.captures(of);
    found.links(of);
    found.weak(of);
    found.nodes(of);
    found.floods(of);
    found.contradictions(of);
    found.routing(of);
    found.fragments(of);
    found.errors(of);
    for (_, flow) in of.flows.flows.iter() {
        found.flow(flow);
    }
    found.list.sort_by(|a, b| {
        let key = |finding: &Finding| (u32::MAX - finding.severity, finding.code);
        key(a).cmp(&key(b)).then_with(|| a.subject.cmp(&b.subject))
    });
    found.list
}

impl Findings {
    fn captures(&mut self, of: &Examiner) {
        let all = of.stations.frames.max(1);
        let share = |events: &Events| 100.0 * events.count as f64 / all as f64;
        let wrong = &of.stations.wrong_fcs;
        if wrong.count >= 5 && share(wrong) >= 2.0 {
            let text = format!(
                "{} of {all} frames ({:.0} %) came with a wrong FCS: a weak signal, collisions or interference",
                wrong.count,
                share(wrong)
            );
            self.add(40, "wrong-fcs", "capture", text, &wrong.frames);
        }
        let malformed = &of.stations.malformed;
        if malformed.count >= 3 {
            let text = format!(
                "{} frames are malformed though their FCS is right: what sent them is broken or hostile",
                malformed.count
            );
            self.add(55, "malformed", "capture", text, &malformed.frames);
        }
        let closed = &of.stations.closed;
        if closed.count > 0 && share(closed) >= 1.0 {
            let text = format!(
                "{} frames ({:.0} %) stay encrypted: give their key with --key, or they are of another network",
                closed.count,
                share(closed)
            );
            self.add(10, "encrypted", "capture", text, &closed.frames);
        }
        let stray = &of.stations.stray_acks;
        if stray.count >= 20 && stray.peak >= 20 && share(stray) >= 1.0 {
            let text = format!(
                "{} acknowledgments, up to {} in ten seconds, belong to no frame: somebody forges them, and \
                 senders believe that lost frames have arrived",
                stray.count, stray.peak
            );
            self.add(80, "stray-acks", "capture", text, &stray.frames);
        }
        if of.stations.pans.len() > 1 {
            let list: Vec<String> = of
                .stations
                .pans
                .iter()
                .take(8)
                .map(|(pan, events)| format!("{pan:#06x} ({} frames)", events.count))
                .collect();
            let text = format!(
                "several networks share the channel: PANs {}",
                list.join(", ")
            );
            self.add(8, "several-pans", "capture", text, &[]);
        }
    }

    fn links(&mut self, of: &Examiner) {
        for ((src, dst), link) in of.stations.links.iter() {
            let name = format!("{src} → {dst}");
            if link.asked >= 5 && link.acknowledged == 0 {
                let text = format!(
                    "{dst} never acknowledges {src}: none of {} frames got an ACK in {} attempts",
                    link.asked, link.attempts
                );
                let frames = match link.lost.count {
                    0 => &link.lost_in_collisions.frames,
                    _ => &link.lost.frames,
                };
                self.add(85, "no-acks", &name, text, frames);
                continue;
            }
            self.lossy(&name, link, of.stations.are_timed());
        }
    }

    /// Senders that were heard weakly while their frames failed, each by the link that shows it for
    /// longest.
    fn weak(&mut self, of: &Examiner) {
        let mut senders: BTreeMap<&str, (Weakness, &str)> = BTreeMap::new();
        for ((src, dst), link) in of.stations.links.iter() {
            let Some(weak) = weakening(link) else {
                continue;
            };
            let known = senders.get(src.as_str());
            if known.is_none_or(|(known, _)| weak.length_s() > known.length_s()) {
                senders.insert(src, (weak, dst));
            }
        }
        for (src, (weak, dst)) in senders {
            let ([from_s, to_s], [worst, best]) = (weak.times, weak.dbm);
            let [failed, usual] = weak.failed.map(|rate| 100.0 * rate);
            let text = format!(
                "{src} was heard weakly here from {from_s:.0} to {to_s:.0} s, {worst:.0} dBm instead of {best:.0} dBm, and \
                 {failed:.0} attempts for 100 frames to {dst} failed instead of {usual:.0}"
            );
            self.add(59, "weak-link", src, text, &[]);
        }
    }

    fn lossy(&mut self, name: &str, link: &Link, are_timed: bool) {
        let asked = link.asked.max(1) as f64;
        let (lost, retried) = (link.lost.count as f64 / asked, link.own_retries());
        let in_collisions = link.lost_in_collisions.count as f64 / asked;
        // The sniffer's own: the receiver is elsewhere.
        let strength = link.rssi_dbm();
        let strength =
            strength.map_or(String::new(), |dbm| format!(", heard here at {dbm:.0} dBm"));
        // After its last success a link may have broken for good.
        let broken = link.last_s - link.last_acked_s;
        let at_end = link.lost_at_end();
        if at_end.count >= 5 && broken >= 2.0 && at_end.to_s > link.last_acked_s {
            let text = format!(
                "the link {name} broke at {:.1} s: since then {} frames and no acknowledgment",
                link.last_acked_s, at_end.count
            );
            self.add(90, "broken-link", name, text, &at_end.frames);
        } else if link.longest.count >= 3 && link.longest.to_s - link.longest.from_s >= 1.0 {
            let row = &link.longest;
            let text = format!(
                "the link {name} was broken from {:.1} to {:.1} s: {} frames in a row got no acknowledgment",
                row.from_s, row.to_s, row.count
            );
            self.add(89, "broken-link", name, text, &row.frames);
        } else if link.lost.count >= 8 && lost >= 0.1 {
            let text = format!(
                "the link {name} loses {:.1} % of its frames for good ({} of {}), between {:.1} and {:.1} s{strength}",
                100.0 * lost,
                link.lost.count,
                link.asked,
                link.lost.span_s.0,
                link.lost.span_s.1
            );
            self.add(70, "lossy-link", name, text, &link.lost.frames);
        } else if let Some((from_s, worst, usual)) = worsening(link) {
            let text = format!(
                "the link {name} got worse from {from_s:.0} s on: {:.0} retries for 100 frames instead of {:.0}{strength}",
                100.0 * worst,
                100.0 * usual
            );
            self.add(57, "worse-link", name, text, &[]);
        } else if link.asked >= 200 && retried >= many_retries(link) {
            let text = format!(
                "the link {name} needs {:.0} retries for 100 frames{strength}",
                100.0 * retried
            );
            self.add(35, "retries", name, text, &[]);
        } else if are_timed
            && link.lost_in_collisions.count >= 8
            && in_collisions >= MANY_COLLISIONS
        {
            let text = format!(
                "the link {name} loses {:.0} % of its frames ({} of {}) while others near {} send at the same time",
                100.0 * in_collisions,
                link.lost_in_collisions.count,
                link.asked,
                name.rsplit(" → ").next().unwrap_or_default()
            );
            let frames = &link.lost_in_collisions.frames;
            self.add(56, "collisions", name, text, frames);
        }
    }

    fn nodes(&mut self, of: &Examiner) {
        let mut idle = Vec::new();
        let mut to_each: BTreeMap<&str, Vec<&Link>> = BTreeMap::new();
        for ((_, dst), link) in of.stations.links.iter() {
            to_each.entry(dst).or_default().push(link);
        }
        for (name, node) in of.stations.nodes.iter() {
            let to_it = to_each.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            self.silence(of, name, node, to_it);
            let back = &node.steps_back;
            if back.count >= IMPOSTOR_MIN && back.count * 50 >= node.frames {
                let text = format!(
                    "somebody else sends in the name of {name}: its sequence numbers go back {} times in {} frames",
                    back.count, node.frames
                );
                self.add(88, "impostor", name, text, &back.frames);
            }
            if node.replays.count >= 3 {
                let text = format!(
                    "{} secured frames of {name} have a frame counter that was there before: they are replayed, or \
                     the node has lost its counter",
                    node.replays.count
                );
                self.add(86, "replays", name, text, &node.replays.frames);
            }
            let hears = to_it.iter().any(|link| link.acknowledged > 0);
            if !hears && (node.frames <= 2 || node.data_frames == 0) {
                idle.push(name.clone());
            }
        }
        if idle.len() >= STRANGERS_MIN && idle.len() * 2 >= of.stations.nodes.len() {
            let text = format!(
                "{} nodes send a few frames and take none: somebody invents them to fill tables",
                idle.len()
            );
            self.add(84, "invented-nodes", "network", text, &[]);
        }
    }

    /// A node that is not heard for long, while others still talk to it over these links.
    fn silence(&mut self, of: &Examiner, name: &str, node: &Node, to_it: &[&Link]) {
        let usual = (node.last_s - node.first_s - node.pause.long_s) / node.frames.max(2) as f64;
        let end = of.stations.last_s;
        let asked_in_vain = |from_s: f64, to_s: f64| {
            let mut links = to_it.iter();
            links.any(|link| link.loses_between(from_s, to_s) == Some(Loss::Link))
        };
        let at_end = end - node.last_s;
        if node.frames >= 10
            && at_end >= SILENCE_S
            && at_end > 20.0 * usual
            && asked_in_vain(node.last_s, end)
        {
            let text = format!(
                "{name} fell silent at {:.1} s and was not heard again for {at_end:.0} s: it is off, out of power or out of reach",
                node.last_s
            );
            self.add(95, "silent", name, text, &[node.pause.frames[1]]);
            return;
        }
        let lost = to_it.iter().map(|link| link.lost_at_end());
        let lost = lost.filter(|row| row.to_s > node.last_s);
        let in_vain = lost.map(|row| row.attempts).max().unwrap_or(0);
        if node.frames >= 10 && in_vain >= IN_VAIN && at_end >= 0.2 && at_end > 8.0 * usual {
            let text = format!(
                "{name} fell silent at {:.1} s: none of {in_vain} attempts to send to it was acknowledged from then to the \
                 capture's end",
                node.last_s
            );
            self.add(95, "silent", name, text, &[node.pause.frames[1]]);
            return;
        }
        // Behind frames that the sniffer missed, numbers do not follow either.
        let is_well_heard = node.shares().1 >= HEARD_WELL;
        // Somebody else's numbers, sent in its name, jump as well.
        if let Some(restart) = &node.restart
            && node.steps_back.count < IMPOSTOR_MIN
            && is_well_heard
        {
            let text = restarted(name, restart);
            self.add(76, "reboot", name, text, &[restart.frame]);
            return;
        }
        let pause = &node.pause;
        let back = pause.began_s + pause.long_s;
        let is_missed = asked_in_vain(pause.began_s, back) && pause.long_s > 8.0 * usual;
        let has_restarted =
            node.asked_after > 0 && pause.before >= 10 && pause.jumps && is_well_heard;
        if node.frames >= 10 && pause.long_s >= 0.8 && (is_missed || has_restarted) {
            let (code, what) = match node.asked_after > 0 && is_well_heard {
                false => ("pause", "it was out of reach or stood still"),
                true => (
                    "reboot",
                    "it asks for a router again, probably after a restart",
                ),
            };
            let though = match is_missed {
                true => ", though others sent to it",
                false => "",
            };
            let text = format!(
                "{name} was not heard from {:.1} to {back:.1} s{though}: {what}",
                pause.began_s
            );
            self.add(75, code, name, text, &pause.frames);
        }
    }

    fn floods(&mut self, of: &Examiner) {
        let mut loud: BTreeMap<&str, Vec<(&str, &Events)>> = BTreeMap::new();
        for ((src, kind), events) in of.control.messages.iter() {
            if events.peak >= limit_of(kind) {
                loud.entry(kind).or_default().push((src, events));
            }
        }
        for (kind, row) in of.control.kinds.iter() {
            let limit = limit_of(kind);
            // Many that send little each are a flood, too.
            let loud = loud.remove(kind.as_str()).unwrap_or_default();
            let is_loud = !loud.is_empty();
            for (src, events) in loud {
                let text = format!(
                    "{src} floods the network: {} of {kind}, up to {} in ten seconds",
                    counted(events.count, "message"),
                    events.peak
                );
                self.add(
                    82,
                    "flood",
                    &format!("{kind} of {src}"),
                    text,
                    &events.frames,
                );
            }
            let is_new = |name: &String| {
                of.stations
                    .nodes
                    .get(name)
                    .is_none_or(|node| node.frames <= 3)
            };
            let new = row.senders.iter().filter(|(name, _)| is_new(name)).count();
            if !is_loud && new >= 8 && new * 2 >= row.senders.len() && row.events.peak >= 2 * limit
            {
                let text = format!(
                    "{} senders together flood the network with {kind}: up to {} in ten seconds",
                    row.senders.len(),
                    row.events.peak
                );
                self.add(83, "flood", kind, text, &row.events.frames);
            }
        }
        for ((name, kind), events) in of.control.messages.iter() {
            if kind == "no-path DAO" && events.count >= 3 {
                let text = format!(
                    "routes to {name} are withdrawn {} times by no-path DAOs",
                    events.count
                );
                self.add(78, "no-path", name, text, &events.frames);
            }
        }
    }

    fn contradictions(&mut self, of: &Examiner) {
        for ((name, what), said) in of.control.said.iter() {
            let changes = said.changes.count;
            let values: Vec<&str> = said
                .values
                .iter()
                .map(|(value, _)| value.as_str())
                .take(4)
                .collect();
            let values = values.join(", ");
            let Some((limit, severity, text)) = contradiction(what, name, changes, &values) else {
                continue;
            };
            // On its way to rest a rank takes many values, and a node that joins some parents; what
            // comes and goes takes few.
            let few = said.values.len() as u64;
            let settles = match *what {
                "rank" => changes < 4 * few,
                "parent" => changes < 2 * few,
                _ => false,
            };
            if changes >= limit && !settles {
                self.add(
                    severity,
                    "contradiction",
                    &format!("{what} of {name}"),
                    text,
                    &said.changes.frames,
                );
            }
        }
    }

    fn routing(&mut self, of: &Examiner) {
        for (name, parents) in of.control.parents.iter() {
            if parents.moves.count >= 2 {
                let text = format!(
                    "{name} changes its parent {} times, among {}",
                    parents.moves.count,
                    parents.list.join(", ")
                );
                self.add(60, "moves", name, text, &parents.moves.frames);
            }
        }
        for ((name, why), events) in of.control.refused.iter() {
            if events.count >= 2 {
                let text = format!(
                    "{name} refuses {}: {why}",
                    counted(events.count, "registration")
                );
                self.add(72, "refused", name, text, &events.frames);
            }
        }
        for (name, events) in of.control.loops.iter() {
            if events.count >= 3 {
                let text = format!(
                    "packets go in a circle: {name} sends {} of them on again",
                    events.count
                );
                self.add(87, "loop", name, text, &events.frames);
            }
        }
        for (name, events) in of.control.marks.iter() {
            if events.count >= 10 {
                let text = format!(
                    "{name} marks {} packets as congested: its queue is full",
                    events.count
                );
                self.add(30, "congestion", name, text, &events.frames);
            }
        }
    }

    fn fragments(&mut self, of: &Examiner) {
        for (name, row) in of.control.fragments.iter() {
            let open = row.first.count.saturating_sub(row.complete);
            if open >= 5 && open * 5 >= row.first.count {
                let text = format!(
                    "of {} fragmented packets from {name} {open} are never completed",
                    row.first.count
                );
                self.add(73, "incomplete", name, text, &row.first.frames);
            }
            if row.orphans.count >= 10 && row.orphans.count * 10 >= row.later.count {
                let text = format!(
                    "{} later fragments from {name} belong to no first one: somebody forges them, or the first were lost",
                    row.orphans.count
                );
                self.add(71, "orphans", name, text, &row.orphans.frames);
            }
        }
    }

    fn errors(&mut self, of: &Examiner) {
        for ((name, title), events) in of.control.errors.iter() {
            let text = format!(
                "{name} reports {} of \"{title}\"",
                counted(events.count, "error")
            );
            let severity = if events.count >= 5 { 65 } else { 45 };
            self.add(severity, "icmp-error", name, text, &events.frames);
        }
    }
}

/// What shows that a node has restarted.
fn restarted(name: &str, restart: &Restart) -> String {
    let (last, times) = match restart.count {
        1 => ("", String::new()),
        count => ("last ", format!(" {count} times")),
    };
    format!(
        "{name} was {last}not heard from {:.1} to {:.1} s, then asks for a router with a sequence number that does \
         not follow: it has probably restarted{times}",
        restart.from_s, restart.to_s
    )
}

/// A silence that is one.
const SILENCE_S: f64 = 5.0;
/// Attempts at a node that is off: a sender makes about as many before it gives a frame up.
const IN_VAIN: u64 = 6;
/// The share of a node's attempts that is heard, from which on what follows shows what it does.
const HEARD_WELL: f64 = 0.5;
/// Sequence numbers that go back before somebody else sends them.
const IMPOSTOR_MIN: u64 = 5;
/// Frames lost in collisions, as a share, that TCP does not make up for by its pace.
const MANY_COLLISIONS: f64 = 0.15;
/// Nodes that are hardly heard before they count as invented.
const STRANGERS_MIN: usize = 12;
