//! Results for programs: one JSON object a line.
//!
//! `schema` is the version of the keys, `record` the kind of a line: `run`, `flow`, `node`,
//! `link`, `sample` or `summary`. Each line has the point of the sweep, and all but `summary`
//! have the seed. Order: by point, by seed, and the summaries last.

use serde_json::{Map, Value, json};

use super::results::{DROPS, METRICS, NodeResult, RunResult, STATES, Summary};
use crate::medium::Fate;
use crate::scenario::{Plan, Point};
use motet::tcp::RetransmissionCause;

/// All results as JSON lines.
pub fn json_lines(plan: &Plan, results: &[RunResult]) -> String {
    let mut lines = Lines(String::new());
    for result in results {
        if let Some(point) = plan.points.get(result.point) {
            lines.run(plan, point, result);
        }
    }
    for (number, point) in plan.points.iter().enumerate() {
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        let is_complete = is_complete(&runs, plan.seeds.len());
        lines.summaries(point, &runs, is_complete);
    }
    lines.0
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

struct Lines(String);

impl Lines {
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
            self.push(&at("flow", json!(flow)));
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
        for sample in &result.samples {
            self.push(&at("sample", json!(sample)));
        }
    }

    fn summaries(&mut self, point: &Point, runs: &[&RunResult], is_complete: bool) {
        for metric in &METRICS {
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
        let mut line = Value::Object(line);
        round(&mut line);
        self.0.push_str(&line.to_string());
        self.0.push('\n');
    }
}

fn run_body(plan: &Plan, result: &RunResult) -> Value {
    json!({
        "scenario": plan.title,
        "complete": result.complete,
        "failure": result.failure,
        "joined_s": result.joined_s,
        "seconds": result.seconds,
        "goodput_kbps": result.goodput_kbps(),
        "fairness": result.fairness(),
        "retransmitted": result.retransmitted(),
        "timeouts": result.timeouts(),
        "frames": result.frames(),
        "frame_loss": result.frame_loss(),
        "link_retries": result.retried(),
        "fates": counts(&Fate::NAMES, &result.fates()),
        "packets_injected_lost": result.packets_injected_lost,
        "energy_mj": result.energy_mj(),
    })
}

fn node_body(number: usize, node: &NodeResult) -> Value {
    let counted = &node.counts;
    let causes = RetransmissionCause::ALL.map(RetransmissionCause::name);
    let total: u64 = counted.states_us.iter().sum();
    let states = STATES.iter().zip(counted.states_us);
    let radio: Map<String, Value> = states
        .map(|(name, us)| {
            let share = super::results::ratio(us, total);
            ((*name).to_owned(), json!(share))
        })
        .collect();
    json!({
        "node": number,
        "name": node.name,
        "parent": node.parent,
        "hops": node.hops,
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

/// To a millionth: enough for every figure, and short.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
