//! Results as tables by column, for notebooks and data frames.
//!
//! Purpose: the same figures as in the JSON lines, rounded the same way. A column has one type in
//! all runs. A nested object has a column for each of its members, named `object.member`.
//! Left out: lines of kind `group`, `move` and `hour`.

use serde_json::{Map, Value};

use super::lines::each_line;
use crate::air::medium::Fate;
use crate::scenario::{DROPS, Plan, RunResult, STATES};
use motet::tcp::RetransmissionCause;

/// One table; all its columns are of the same length.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// How many rows it has.
    pub rows: usize,
    /// The point of the sweep by number, each swept key, then what was found.
    pub columns: Vec<Column>,
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// As in the JSON lines.
    pub name: String,
    /// The values by row; none where the line has nothing or `null`.
    pub values: Values,
}

/// Values of one type.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Counts and numbers of things.
    Whole(Vec<Option<u64>>),
    /// Measured figures.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
    /// Names and sentences.
    Text(Vec<Option<String>>),
}

/// The rows of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// A row for each run.
    Runs,
    /// A row for each flow of each run.
    Flows,
    /// A row for each node of each run.
    Nodes,
    /// A row for each link of each run that carried anything.
    Links,
    /// A row for each flow and moment of the first seed of each point.
    Samples,
    /// A row for each metric of each point.
    Summary,
}

/// The types that a column may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Whole,
    Real,
    Flag,
    Text,
}

use Type::{Flag, Real, Text, Whole};

/// The table of what `results` gave.
pub fn table(plan: &Plan, results: &[RunResult], of: Of) -> Table {
    let mut columns = of.columns(plan);
    let mut rows = 0;
    each_line(plan, results, |point, line| {
        if line.get("record").and_then(Value::as_str) == Some(of.record()) {
            rows += 1;
            for column in &mut columns {
                column.push(point, &line);
            }
        }
    });
    let columns = columns.into_iter().map(|found| Column {
        name: found.name,
        values: found.values,
    });
    Table {
        rows,
        columns: columns.collect(),
    }
}

impl Of {
    /// The kind of lines that it is made of.
    const fn record(self) -> &'static str {
        match self {
            Self::Runs => "run",
            Self::Flows => "flow",
            Self::Nodes => "node",
            Self::Links => "link",
            Self::Samples => "sample",
            Self::Summary => "summary",
        }
    }

    /// The table's own keys, without those that nest others.
    const fn keys(self) -> &'static [(&'static str, Type)] {
        match self {
            Self::Runs => RUNS,
            Self::Flows => FLOWS,
            Self::Nodes => NODES,
            Self::Links => LINKS,
            Self::Samples => SAMPLES,
            Self::Summary => SUMMARY,
        }
    }

    /// The names under keys that nest others: counts, of which a line leaves out zeros, or shares.
    fn nested(self) -> Vec<(&'static str, Vec<&'static str>, Type)> {
        let fates = || ("fates", Fate::NAMES.to_vec(), Whole);
        match self {
            Self::Runs | Self::Links => vec![fates()],
            Self::Nodes => {
                let causes = RetransmissionCause::ALL.map(RetransmissionCause::name);
                vec![
                    ("retransmissions", causes.to_vec(), Whole),
                    ("drops", DROPS.to_vec(), Whole),
                    ("radio", STATES.to_vec(), Real),
                ]
            }
            Self::Flows => vec![("messages", vec!["due", "arrived"], Whole)],
            Self::Samples | Self::Summary => Vec::new(),
        }
    }

    fn columns(self, plan: &Plan) -> Vec<Filling> {
        let mut columns = vec![Filling::new("point", ValueSource::Point, Whole)];
        let swept = plan.points.first().map(|point| &point.values[..]);
        for (at, (key, _)) in swept.unwrap_or_default().iter().enumerate() {
            let values = plan.points.iter().filter_map(|point| point.values.get(at));
            let types: Vec<Type> = values.map(|(_, value)| Type::of(value)).collect();
            columns.push(Filling::new(key, ValueSource::Swept, Type::of_all(&types)));
        }
        if self != Self::Summary {
            columns.push(Filling::new("seed", ValueSource::Own, Whole));
        }
        let own = self.keys().iter();
        columns.extend(own.map(|(name, kind)| Filling::new(name, ValueSource::Own, *kind)));
        for (key, names, kind) in self.nested() {
            for (at, name) in names.iter().enumerate() {
                let place = ValueSource::Nested(key, name, at);
                columns.push(Filling::new(&format!("{key}.{name}"), place, kind));
            }
        }
        columns
    }
}

impl Type {
    /// The narrowest one that a swept value has.
    fn of(value: &toml::Value) -> Self {
        match value {
            toml::Value::Boolean(_) => Flag,
            toml::Value::Integer(0..) => Whole,
            toml::Value::Integer(_) | toml::Value::Float(_) => Real,
            _ => Text,
        }
    }

    /// One for all of these.
    fn of_all(types: &[Self]) -> Self {
        let all = |of: &[Self]| types.iter().all(|own| of.contains(own));
        match types.first() {
            Some(Flag) if all(&[Flag]) => Flag,
            Some(Whole) if all(&[Whole]) => Whole,
            Some(Whole | Real) if all(&[Whole, Real]) => Real,
            _ => Text,
        }
    }
}

/// A column under construction.
struct Filling {
    name: String,
    place: ValueSource,
    values: Values,
}

/// Where a column's value is in a line.
#[derive(Clone, Copy)]
enum ValueSource {
    /// Not in it: the number of the point.
    Point,
    /// Among the values of the sweep.
    Swept,
    /// Under the column's own name.
    Own,
    /// Under a key, by a name; or by a place, where the line has a list.
    Nested(&'static str, &'static str, usize),
}

impl Filling {
    fn new(name: &str, place: ValueSource, kind: Type) -> Self {
        let values = match kind {
            Whole => Values::Whole(Vec::new()),
            Real => Values::Real(Vec::new()),
            Flag => Values::Flag(Vec::new()),
            Text => Values::Text(Vec::new()),
        };
        Self {
            name: name.to_owned(),
            place,
            values,
        }
    }

    fn push(&mut self, point: usize, line: &Map<String, Value>) {
        let number = Value::from(point);
        let found = match self.place {
            ValueSource::Point => Some(&number),
            ValueSource::Swept => line.get("point").and_then(|point| point.get(&self.name)),
            ValueSource::Own => line.get(&self.name),
            ValueSource::Nested(key, name, at) => line.get(key).and_then(|nested| match nested {
                Value::Array(list) => list.get(at),
                nested => nested.get(name),
            }),
        };
        // Counts of zero are left out of a line; where there is no list of any, there are none.
        let is_counted = match self.place {
            ValueSource::Nested(key, ..) => line.get(key).is_some_and(Value::is_object),
            _ => false,
        };
        match &mut self.values {
            Values::Whole(all) => {
                let zero = is_counted.then_some(0);
                all.push(found.and_then(Value::as_u64).or(zero));
            }
            Values::Real(all) => all.push(found.and_then(Value::as_f64)),
            Values::Flag(all) => all.push(found.and_then(Value::as_bool)),
            Values::Text(all) => all.push(found.and_then(text)),
        }
    }
}

/// A value in words; none of `null`.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

const RUNS: &[(&str, Type)] = &[
    ("scenario", Text),
    ("complete", Flag),
    ("failure", Text),
    ("joined_s", Real),
    ("seconds", Real),
    ("goodput_kbps", Real),
    ("bound_kbps", Real),
    ("fairness", Real),
    ("retransmitted", Real),
    ("timeouts", Whole),
    ("frames", Whole),
    ("frame_loss", Real),
    ("link_retries", Real),
    ("packets_injected_lost", Whole),
    ("acks_thinned", Whole),
    ("energy_mj", Real),
    ("energy_uj_per_byte", Real),
];

const FLOWS: &[(&str, Type)] = &[
    ("flow", Whole),
    ("from", Text),
    ("to", Text),
    ("kind", Text),
    ("direction", Text),
    ("hops", Whole),
    ("size_bytes", Whole),
    ("outcome", Text),
    ("error", Text),
    ("connections_lost", Whole),
    ("bytes", Whole),
    ("counted_bytes", Whole),
    ("goodput_kbps", Real),
    ("finished_s", Real),
    ("resent_bytes", Whole),
    ("rtt_ms", Real),
    ("cwnd_segments", Real),
    ("delivered", Real),
    ("latency_ms", Real),
    ("latency_p50_ms", Real),
    ("latency_p95_ms", Real),
    ("latency_max_ms", Real),
    ("energy_mj", Real),
    ("energy_uj_per_byte", Real),
    ("intact", Flag),
];

const NODES: &[(&str, Type)] = &[
    ("node", Whole),
    ("name", Text),
    ("parent", Whole),
    ("hops", Whole),
    ("rank", Whole),
    ("etx", Real),
    ("joined_s", Real),
    ("parent_changes", Whole),
    ("control_frames", Whole),
    ("control_s", Real),
    ("transmissions", Whole),
    ("retries", Whole),
    ("channel_busy", Whole),
    ("segments", Whole),
    ("radio_duty", Real),
    ("cpu_duty", Real),
    ("radio_mj", Real),
    ("cpu_mj", Real),
    ("battery_days", Real),
];

const LINKS: &[(&str, Type)] = &[
    ("from", Whole),
    ("to", Whole),
    ("frames", Whole),
    ("delivered", Real),
];

const SAMPLES: &[(&str, Type)] = &[
    ("flow", Whole),
    ("at_s", Real),
    ("goodput_kbps", Real),
    ("rtt_ms", Whole),
    ("cwnd_bytes", Whole),
    ("ssthresh_bytes", Whole),
    ("window_bytes", Whole),
    ("inflight_bytes", Whole),
];

const SUMMARY: &[(&str, Type)] = &[
    ("flow", Whole),
    ("metric", Text),
    ("unit", Text),
    ("value", Real),
    ("ci95", Real),
    ("runs", Whole),
    ("complete", Flag),
];

#[cfg(test)]
#[path = "tests/columns.rs"]
mod tests;
