//! Results for programs: one JSON object a line.
//!
//! `schema` is the version of the keys, `record` the kind of a line: `run`, `flow`, `node`, `link`,
//! `move`, `hour`, `sample`, `group` or `summary`. Each line has the point of the sweep, and all
//! but `group` and `summary` have the seed. Order: by point, by seed, and the summaries last.

use serde_json::{Map, Value, json};

use super::metrics::{Group, METRICS, Metric, Spread, Summary, groups};
use crate::air::medium::Fate;
use crate::scenario::{DROPS, FlowResult, NodeResult, RunResult, STATES};
use crate::scenario::{Plan, Point};
use motet::tcp::RetransmissionCause;

/// All results as JSON lines.
pub fn json_lines(plan: &Plan, results: &[RunResult]) -> String {
    let mut text = String::new();
    each_line(plan, results, |_, line| {
        text.push_str(&Value::Object(line).to_string());
        text.push('\n');
    });
    text
}

/// Gives each line to `take`, with the number of its point.
pub(super) fn each_line(
    plan: &Plan,
    results: &[RunResult],
    take: impl FnMut(usize, Map<String, Value>),
) {
    let mut lines = Lines { number: 0, take };
    for result in results {
        if let Some(point) = plan.points.get(result.point) {
            lines.number = result.point;
            lines.run(plan, point, result);
        }
    }
    for (number, point) in plan.points.iter().enumerate() {
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        let is_complete = is_complete(&runs, plan.seeds.len());
        lines.number = number;
        lines.summaries(point, &runs, is_complete);
    }
}

/// Whether a point was run with every seed, and each run went to its end.
fn is_complete(runs: &[&RunResult], seeds: usize) -> bool {
    runs.len() == seeds && runs.iter().all(|run| run.complete)
}

/// The values of a sweep at one point, as JSON.
pub(super) fn point_values(point: &Point) -> Value {
    let values = point
        .values
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)));
    Value::Object(values.collect())
}

/// Lines on their way to whoever takes them.
struct Lines<T> {
    /// The point that they are about.
    number: usize,
    take: T,
}

impl<T: FnMut(usize, Map<String, Value>)> Lines<T> {
    fn run(&mut self, plan: &Plan, point: &Point, result: &RunResult) {
        let at = |record: &str, body: Value| {
            let mut line = Map::new();
            line.insert("record".into(), record.into());
            line.insert("point".into(), point_values(point));
            line.insert("seed".into(), result.seed.into());
            line.extend(body.as_object().cloned().unwrap_or_default());
            Value::Object(line)
        };
        self.push(&at("run", run_body(plan, result)));
        for flow in &result.flows {
            self.push(&at("flow", flow_body(flow)));
        }
        for (node, result) in result.nodes.iter().enumerate() {
            self.push(&at("node", node_body(node, result)));
        }
        for link in &result.links {
            let body = json!({
                "from": link.from,
                "to": link.to,
                "frames": link.frames,
                "delivered": rounded(link.delivered()),
                "fates": counts(&Fate::NAMES, &link.fates),
            });
            self.push(&at("link", body));
        }
        for step in &result.moves {
            let body = json!({
                "node": step.node,
                "at_s": step.at_s,
                "from": step.from,
                "to": step.to,
            });
            self.push(&at("move", body));
        }
        for hour in &result.hours {
            self.push(&at("hour", json!(hour)));
        }
        for sample in &result.samples {
            self.push(&at("sample", json!(sample)));
        }
    }

    fn summaries(&mut self, point: &Point, runs: &[&RunResult], is_complete: bool) {
        let groups = groups(runs);
        for metric in &METRICS {
            for group in &groups {
                if let Some(spread) = metric.spread(group, runs) {
                    self.push(&group_body(point, group, metric, &spread, is_complete));
                }
            }
            for (flow, summary) in metric.summaries(runs) {
                let Summary { value, ci95, runs } = summary;
                self.push(&json!({
                    "record": "summary",
                    "point": point_values(point),
                    "flow": flow,
                    "metric": metric.name,
                    "unit": metric.unit,
                    "value": rounded(value),
                    "ci95": ci95.map(rounded),
                    "runs": runs,
                    "complete": is_complete,
                }));
            }
        }
    }

    fn push(&mut self, value: &Value) {
        let mut line = Map::new();
        line.insert("schema".into(), super::SCHEMA.into());
        line.extend(value.as_object().cloned().unwrap_or_default());
        line.values_mut().for_each(round);
        (self.take)(self.number, line);
    }
}

fn run_body(plan: &Plan, result: &RunResult) -> Value {
    let mut body = json!({
        "scenario": plan.title,
        "complete": result.complete,
        "failure": result.trouble(),
        "outcomes": outcomes(result),
        "joined_s": result.joined_s,
        "seconds": result.seconds,
        "goodput_kbps": result.goodput_kbps(),
        "bound_kbps": result.bound_kbps,
        "fairness": result.fairness(),
        "retransmitted": result.retransmitted(),
        "timeouts": result.timeouts(),
        "frames": result.frames(),
        "frame_loss": result.frame_loss(),
        "link_retries": result.retried(),
        "fates": counts(&Fate::NAMES, &result.fates()),
        "packets_injected_lost": result.packets_injected_lost,
        "acks_thinned": result.acks_thinned,
        "energy_mj": result.energy_mj(),
        "energy_uj_per_byte": result.energy_uj_per_byte(),
    });
    // Of a run that was searched for alone.
    if let (Some(reachable), Some(body)) = (result.reachable_kbps, body.as_object_mut()) {
        body.insert("reachable_kbps".into(), reachable.into());
    }
    body
}

/// How many flows ended in which way.
fn outcomes(result: &RunResult) -> Value {
    let mut counts = Map::new();
    for flow in &result.flows {
        let name = json!(flow.outcome).as_str().unwrap_or_default().to_owned();
        let count = counts.entry(name).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or_default() + 1);
    }
    Value::Object(counts)
}

fn flow_body(flow: &FlowResult) -> Value {
    let likeness = &flow.likeness;
    let failed = flow.outcome.is_failure();
    json!({
        "flow": flow.flow,
        "from": flow.from,
        "to": flow.to,
        "kind": likeness.kind,
        "direction": likeness.direction,
        "hops": likeness.hops,
        "size_bytes": (likeness.bytes > 0).then_some(likeness.bytes),
        "outcome": flow.outcome,
        "error": failed.then(|| flow.outcome.sentence()),
        "connections_lost": flow.connections_lost,
        "bytes": flow.bytes,
        "counted_bytes": flow.counted_bytes,
        "goodput_kbps": flow.goodput_kbps,
        "finished_s": flow.finished_s,
        "resent_bytes": flow.resent_bytes,
        "rtt_ms": flow.rtt_ms,
        "cwnd_segments": flow.cwnd_segments,
        "messages": flow.messages,
        "delivered": flow.delivered(),
        "latency_ms": flow.latency_ms,
        "latency_p50_ms": flow.latency_p50_ms,
        "latency_p95_ms": flow.latency_p95_ms,
        "latency_max_ms": flow.latency_max_ms,
        "energy_mj": flow.energy_mj,
        "energy_uj_per_byte": flow.energy_uj_per_byte(),
        "intact": flow.intact,
    })
}

fn group_body(
    point: &Point,
    group: &Group,
    metric: &Metric,
    spread: &Spread,
    is_complete: bool,
) -> Value {
    json!({
        "record": "group",
        "point": point_values(point),
        "group": group.name,
        "kind": group.likeness.kind,
        "direction": group.likeness.direction,
        "hops": group.likeness.hops,
        "flows": group.flows.len(),
        "metric": metric.name,
        "unit": metric.unit,
        "of_flows": spread.flows,
        "mean": spread.mean.value,
        "ci95": spread.mean.ci95,
        "runs": spread.mean.runs,
        "best": spread.best,
        "p50": spread.p50,
        "p95": spread.p95,
        "worst": spread.worst,
        "complete": is_complete,
    })
}

fn node_body(number: usize, node: &NodeResult) -> Value {
    let counted = &node.counts;
    let causes = RetransmissionCause::ALL.map(RetransmissionCause::name);
    let total: u64 = counted.states_us.iter().sum();
    let states = STATES.iter().zip(counted.states_us);
    let radio: Map<String, Value> = states
        .map(|(name, us)| {
            let share = crate::stats::ratio(us, total);
            ((*name).to_owned(), json!(share))
        })
        .collect();
    json!({
        "node": number,
        "name": node.name,
        "parent": node.parent,
        "hops": node.hops,
        "rank": node.rank,
        "etx": node.etx,
        "joined_s": node.joined_s,
        "parent_changes": node.parent_changes,
        "control_frames": counted.control_frames,
        "control_s": counted.control_us as f64 / 1e6,
        "transmissions": counted.transmissions,
        "retries": counted.retries,
        "channel_busy": counted.channel_busy,
        "segments": counted.segments,
        "retransmissions": counts(&causes, &counted.retransmissions),
        "drops": counts(&DROPS, &counted.drops),
        "radio_duty": (total > 0).then(|| counted.radio_duty()),
        "cpu_duty": (total > 0).then(|| counted.cpu_duty()),
        "radio_mj": (total > 0).then_some(counted.radio_mj),
        "cpu_mj": (total > 0).then_some(counted.cpu_mj),
        "battery_days": node.battery_days,
        "radio": if total > 0 { Value::Object(radio) } else { Value::Null },
    })
}

/// Named counts but those that are zero.
fn counts(names: &[&str], counts: &[u64]) -> Value {
    let named = names.iter().zip(counts).filter(|(_, count)| **count > 0);
    Value::Object(
        named
            .map(|(name, count)| ((*name).to_owned(), json!(count)))
            .collect(),
    )
}

fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            *value = json!(rounded(number.as_f64().unwrap_or_default()));
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(values) => values.values_mut().for_each(round),
        _ => {}
    }
}

/// Rounds to a millionth: enough for every figure, and short.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
