//! Messages by which a network keeps itself together: who sends how many, and what contradicts.

use super::tally::{Events, Table};
use super::view::{View, number, of};
use crate::model::Value;

/// The messages of the control plane.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// By sender and kind.
    pub(super) messages: Table<(String, String), Events>,
    /// By kind alone, from however many senders.
    pub(super) kinds: Table<String, Kind>,
    /// What each sender announces: prefixes, versions, ranks, modes, DTSN.
    pub(super) said: Table<(String, &'static str), Said>,
    /// First fragments, and those that came to their end, by sender.
    pub(super) fragments: Table<String, Fragments>,
    /// ICMPv6 errors by sender and meaning.
    pub(super) errors: Table<(String, String), Events>,
    /// Refusals: of registrations, of DAOs.
    pub(super) refused: Table<(String, String), Events>,
    /// The router that each node registers with.
    pub(super) parents: Table<String, Parents>,
    /// Packets that pass the same node twice.
    pub(super) loops: Table<String, Events>,
    passed: Table<(String, String), u64>,
    /// Marks of congestion by the sender of the frame.
    pub(super) marks: Table<String, Events>,
}

/// A kind of message.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) events: Events,
    pub(super) senders: Table<String, u64>,
}

/// Values of one announcement, in the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) values: Vec<(String, Events)>,
    pub(super) last: String,
    /// How often it changed.
    pub(super) changes: Events,
}

#[derive(Debug, Default)]
pub(super) struct Fragments {
    pub(super) first: Events,
    pub(super) later: Events,
    pub(super) complete: u64,
    /// Later fragments of a datagram whose first was not heard from this sender.
    pub(super) orphans: Events,
    tags: Table<u64, bool>,
}

#[derive(Debug, Default)]
pub(super) struct Parents {
    last: String,
    pub(super) moves: Events,
    pub(super) list: Vec<String>,
}

impl Control {
    /// Notes a frame that is no repeat.
    pub(super) fn observe(&mut self, view: View<'_>) {
        let (frame, at_s) = (view.0.number, view.at_s());
        let src = view.text("mac", "src").unwrap_or("?").to_owned();
        if let Some(kind) = kind_of(view) {
            if let Some(events) = self.messages.at((src.clone(), kind.clone())) {
                events.add(frame, at_s);
            }
            if let Some(row) = self.kinds.at(kind) {
                row.events.add(frame, at_s);
                if let Some(count) = row.senders.at(src.clone()) {
                    *count += 1;
                }
            }
        }
        self.fragment(view, &src);
        self.icmp(view, &src);
        self.rpl(view, &src);
        self.circle(view, &src);
        if view.text("ipv6", "ecn") == Some("CE")
            && let Some(events) = self.marks.at(src)
        {
            events.add(frame, at_s);
        }
    }

    fn say(&mut self, view: View<'_>, src: &str, what: &'static str, value: String) {
        let (frame, at_s) = (view.0.number, view.at_s());
        let Some(said) = self.said.at((src.to_owned(), what)) else {
            return;
        };
        if said.last != value {
            if !said.last.is_empty() {
                said.changes.add(frame, at_s);
            }
            said.last.clone_from(&value);
        }
        let is_full = said.values.len() >= VALUES_MAX;
        match said.values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, events)) => events.add(frame, at_s),
            None if !is_full => {
                let mut events = Events::default();
                events.add(frame, at_s);
                said.values.push((value, events));
            }
            None => {}
        }
    }

    fn fragment(&mut self, view: View<'_>, src: &str) {
        let Some(tag) = view.number("fragment", "datagram_tag") else {
            return;
        };
        let (frame, at_s) = (view.0.number, view.at_s());
        let to = view.text("mac", "dst").unwrap_or("?");
        let Some(row) = self.fragments.at(format!("{src} → {to}")) else {
            return;
        };
        let is_first = view.flag("fragment", "first") == Some(true);
        if is_first {
            row.first.add(frame, at_s);
            if let Some(known) = row.tags.at(tag) {
                *known = true;
            }
        } else {
            row.later.add(frame, at_s);
            if row.tags.get(&tag).is_none() {
                row.orphans.add(frame, at_s);
            }
        }
        // A datagram is whole where the layers above it are there.
        row.complete += u64::from(!matches!(view.0.status.name(), "fragment"));
    }

    fn icmp(&mut self, view: View<'_>, src: &str) {
        let Some(kind) = view.number("icmpv6", "type") else {
            return;
        };
        let (frame, at_s) = (view.0.number, view.at_s());
        let title = view
            .layer("icmpv6")
            .map_or(String::new(), |layer| layer.title.clone());
        match kind {
            1..=4 => {
                let from = view.text("ipv6", "src").unwrap_or(src).to_owned();
                if let Some(events) = self.errors.at((from, title)) {
                    events.add(frame, at_s);
                }
            }
            134 => {
                for option in view.groups("icmpv6", "options") {
                    if let Some(Value::Text(prefix)) = of(option, "prefix")
                        && of(option, "context").is_none()
                    {
                        self.say(view, src, "prefix", prefix.clone());
                    }
                }
            }
            135 | 136 => {
                for option in view.groups("icmpv6", "options") {
                    self.registration(view, src, kind, option);
                }
            }
            _ => {}
        }
    }

    fn registration(
        &mut self,
        view: View<'_>,
        src: &str,
        kind: u64,
        option: &[crate::model::Field],
    ) {
        let (frame, at_s) = (view.0.number, view.at_s());
        let Some(lifetime) = of(option, "lifetime_min").filter(|_| of(option, "owner").is_some())
        else {
            return;
        };
        let dst = view.text("mac", "dst").unwrap_or("?");
        if kind == 136 {
            let status = of(option, "registration")
                .map(ToString::to_string)
                .unwrap_or_default();
            if !status.contains("success")
                && !status.is_empty()
                && let Some(events) = self.refused.at((src.to_owned(), status))
            {
                events.add(frame, at_s);
            }
            return;
        }
        if number(lifetime) == Some(0) || dst == "broadcast" {
            return;
        }
        let Some(parents) = self.parents.at(src.to_owned()) else {
            return;
        };
        if !parents.last.is_empty() && parents.last != dst {
            parents.moves.add(frame, at_s);
        }
        dst.clone_into(&mut parents.last);
        if !parents.list.iter().any(|known| known == dst) && parents.list.len() < VALUES_MAX {
            parents.list.push(dst.to_owned());
        }
    }

    fn rpl(&mut self, view: View<'_>, src: &str) {
        let Some(layer) = view.layer("rpl") else {
            return;
        };
        if layer.title == "DIO" {
            let said = [
                ("version", view.number("rpl", "version")),
                ("rank", view.number("rpl", "rank")),
                ("DTSN", view.number("rpl", "dtsn")),
            ];
            for (what, value) in said {
                if let Some(value) = value {
                    self.say(view, src, what, value.to_string());
                }
            }
            for what in ["mode", "dodag"] {
                if let Some(value) = view.text("rpl", what) {
                    self.say(view, src, what, value.to_owned());
                }
            }
            for option in view.groups("rpl", "options") {
                if let (Some(Value::Text(prefix)), Some(_)) =
                    (of(option, "prefix"), of(option, "autonomous"))
                {
                    self.say(view, src, "prefix", prefix.clone());
                }
            }
        }
        let mut target = String::new();
        for option in view.groups("rpl", "options") {
            if let Some(value) = of(option, "target") {
                target = value.to_string();
            }
            let lifetime = of(option, "lifetime_units").and_then(number);
            let origin = view.text("ipv6", "src").unwrap_or(src).to_owned();
            match (lifetime, of(option, "parent")) {
                (Some(0), _) => {
                    if let Some(events) = self.messages.at((origin, "no-path DAO".to_owned())) {
                        events.add(view.0.number, view.at_s());
                    }
                }
                (Some(_), Some(Value::Text(parent))) => {
                    let (target, parent) = (target.clone(), parent.clone());
                    self.say(view, &target, "parent", parent);
                }
                _ => {}
            }
        }
        if layer.title == "DAO-ACK"
            && view
                .number("rpl", "status")
                .is_some_and(|status| status > 0)
        {
            let key = (src.to_owned(), "DAO".to_owned());
            if let Some(events) = self.refused.at(key) {
                events.add(view.0.number, view.at_s());
            }
        }
    }

    /// A packet that one node sends on twice goes in a circle.
    fn circle(&mut self, view: View<'_>, src: &str) {
        let Some(layer) = view.layer("ipv6") else {
            return;
        };
        let (Some(hop_limit), Some(tcp)) = (view.number("ipv6", "hop_limit"), view.layer("tcp"))
        else {
            return;
        };
        let key = |key: &str| {
            of(&tcp.fields, key)
                .map(ToString::to_string)
                .unwrap_or_default()
        };
        let [seq, ack, check] = ["seq", "ack", "checksum"].map(key);
        let packet = format!("{} {seq} {ack} {check}", layer.title);
        if let Some(known) = self.passed.at((src.to_owned(), packet)) {
            if *known > hop_limit
                && let Some(events) = self.loops.at(src.to_owned())
            {
                events.add(view.0.number, view.at_s());
            }
            *known = hop_limit;
        }
    }
}

/// The kind of a control message, if the frame holds one.
fn kind_of(view: View<'_>) -> Option<String> {
    if let Some(layer) = view.layer("rpl") {
        return Some(layer.title.clone());
    }
    if let Some(kind) = view.number("icmpv6", "type") {
        let layer = view.layer("icmpv6")?;
        return (133..=137).contains(&kind).then(|| layer.title.clone());
    }
    if view.text("mac", "type") == Some("beacon") {
        return Some("beacon".into());
    }
    view.layer("command").map(|layer| layer.title.clone())
}

/// Values remembered of each announcement.
const VALUES_MAX: usize = 16;
