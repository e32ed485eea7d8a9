//! Keys of `[stack]` and `[[node]]` that would do nothing at the nodes they are written for.
//!
//! Purpose: a window for a relay, or an `ack_every` for a mote that only sends, has no effect, and
//! its author would wait for one. The role of a node follows from tree and flows, so a key must
//! have an effect in at least one point of the sweep.
//! Left out: most keys of the MAC, which every node has, since motes join over the air; and values
//! that repeat the default.

use toml::{Table, Value};

use super::defaults::{filled, repeated};
use super::document::{Document, id_of};
use super::error::{ScenarioError, shown};
use super::keys::{Part, Section};
use super::model::{FlowEnd, FlowKind, FlowSettings, Scenario};
use super::sweep::Point;
use crate::net::network::Joining;
use crate::net::topology::Tree;

/// Checks that every key of `[stack]`, of each `[[node]]` and of their sweep has an effect in
/// some point.
///
/// # Errors
/// The first key without an effect, and the condition for it.
pub(super) fn check(document: &Document, points: &[Point]) -> Result<(), ScenarioError> {
    let stack = document.table.get("stack").and_then(Value::as_table);
    for (name, value) in stack.into_iter().flatten() {
        let part = Part::needed_by(name, std::slice::from_ref(value));
        if part.is_some_and(|part| !part.is_anyones(points)) && !is_default(name, value) {
            return Err(idle(&format!("stack.{name}"), value, "no node", part));
        }
    }
    for (path, values) in &document.sweep {
        let Some(name) = path.strip_prefix("stack.") else {
            continue;
        };
        let part = Part::needed_by(name, values);
        if part.is_some_and(|part| !part.is_anyones(points)) {
            let values = Value::Array(values.clone());
            return Err(idle(&format!("sweep.{path}"), &values, "no node", part));
        }
    }
    for (node, number) in repeated(&document.table, "node").iter().zip(1..) {
        let id = id_of(node);
        check_node(document, points, node, id).map_err(|error| error.of_node(number, id))?;
    }
    Ok(())
}

fn check_node(
    document: &Document,
    points: &[Point],
    node: &Table,
    id: Option<usize>,
) -> Result<(), ScenarioError> {
    let Some(id) = id else { return Ok(()) };
    let others = filled(&document.table, "stack")?;
    for (name, value) in node {
        let is_swept = |(path, _): &(String, _)| path.strip_prefix("stack.") == Some(name);
        if others.get(name) == Some(value) && !document.sweep.iter().any(is_swept) {
            continue;
        }
        let part = Part::needed_by(name, std::slice::from_ref(value));
        if part.is_some_and(|part| !part.is_of(id, points)) {
            let node = format!("node {id} is none that");
            return Err(idle(&format!("node.{name}"), value, &node, part));
        }
    }
    Ok(())
}

/// Whether a key of `[stack]` only repeats its default.
fn is_default(name: &str, value: &Value) -> bool {
    filled(&Table::new(), "stack").is_ok_and(|stack| stack.get(name) == Some(value))
}

fn idle(path: &str, value: &Value, who: &str, part: Option<Part>) -> ScenarioError {
    let does = match part {
        None | Some(Part::Ends) => "is an end of a TCP connection",
        Some(Part::Sends) => "sends data over TCP",
        Some(Part::Receives) => "receives data over TCP",
        Some(Part::Compresses) => "is an end of TCP's path in the mesh",
        Some(Part::Relays) => "passes on packets of others",
        Some(Part::Keeps) => {
            "passes on packets of others with a radio that can keep a frame (telosb, nrf52840)"
        }
        Some(Part::Paces) => "has two hops ahead of it",
        Some(Part::AsksRegularly) => "sleeps with sleep \"fixed\"",
        Some(Part::TakesHints) => "sleeps with sleep \"hinted\"",
        Some(Part::Sleeps) => "sleeps",
        Some(Part::ServesSleepers) => "is the parent of one that sleeps",
        Some(Part::SharesSleep) => "sleeps or is the parent of one that does",
    };
    let value = shown(value);
    ScenarioError::new(format!(
        "{path} is {value}, but must be left out: {who} {does}"
    ))
}

impl Part {
    /// The part that a key of `[stack]` needs in order to do anything, if not every node has it.
    fn needed_by(key: &str, values: &[Value]) -> Option<Self> {
        let key = Section::named("stack")?.key(key)?;
        let keeps = values.iter().any(|value| value.as_str() == Some("cit"));
        match key.needs? {
            Self::Relays if keeps => Some(Self::Keeps),
            part => Some(part),
        }
    }

    fn is_anyones(self, points: &[Point]) -> bool {
        let mut points = points.iter();
        points.any(|point| !self.nodes(&point.scenario).is_empty())
    }

    fn is_of(self, node: usize, points: &[Point]) -> bool {
        let mut points = points.iter();
        points.any(|point| self.nodes(&point.scenario).contains(&node))
    }

    /// The nodes that have it, some of them more than once.
    fn nodes(self, scenario: &Scenario) -> Vec<usize> {
        let flows = || scenario.flows.iter();
        let over_tcp = || flows().filter(|flow| flow.is_tcp());
        let is_answered = |flow: &FlowSettings| flow.kind == FlowKind::Request;
        let ends = || over_tcp().flat_map(|flow| [flow.from, flow.to]);
        let answering = over_tcp().filter(|flow| is_answered(flow));
        match self {
            Self::Ends => ends().filter_map(mote).collect(),
            Self::Sends => {
                let answerers = answering.map(|flow| flow.to);
                let pushes = over_tcp().filter(|flow| flow.push.is_some());
                let answerers = answerers.chain(pushes.map(|flow| flow.to));
                let senders = over_tcp().map(|flow| flow.from).chain(answerers);
                senders.filter_map(mote).collect()
            }
            Self::Receives => {
                let askers = answering.map(|flow| flow.from);
                let receivers = over_tcp().map(|flow| flow.to).chain(askers);
                receivers.filter_map(mote).collect()
            }
            Self::Compresses => ends().map(|end| mote(end).unwrap_or(ROOT)).collect(),
            Self::Relays => flows()
                .flat_map(|flow| between(&scenario.tree, flow))
                .collect(),
            Self::Keeps => {
                let mut relays = Self::Relays.nodes(scenario);
                relays.retain(|relay| {
                    let radio = scenario.network.nodes.get(*relay);
                    radio.is_some_and(|node| !node.profile.capabilities.shared_buffer)
                });
                relays
            }
            Self::Paces => {
                let tree = &scenario.tree;
                let is_far = |node: &usize| tree.depth(*node) > 1 || tree.height(*node) > 1;
                (0..scenario.stacks.len()).filter(is_far).collect()
            }
            Self::AsksRegularly => sleepers_by(scenario, "fixed"),
            Self::TakesHints => sleepers_by(scenario, "hinted"),
            Self::Sleeps => sleepers(scenario),
            Self::ServesSleepers => parents_of_sleepers(scenario),
            Self::SharesSleep => [sleepers(scenario), parents_of_sleepers(scenario)].concat(),
        }
    }
}

fn sleepers(scenario: &Scenario) -> Vec<usize> {
    let nodes = scenario.network.nodes.iter().enumerate();
    let sleepers = nodes.filter(|(_, node)| node.sleep.is_some());
    sleepers.map(|(n, _)| n).collect()
}

/// The sleeping nodes with this policy.
fn sleepers_by(scenario: &Scenario, policy: &str) -> Vec<usize> {
    let mut sleepers = sleepers(scenario);
    sleepers.retain(|node| scenario.stacks[*node].sleep == policy);
    sleepers
}

/// The nodes that may be a sleeping node's parent: its parent, or, where motes choose their parents
/// themselves, every node that does not sleep.
fn parents_of_sleepers(scenario: &Scenario) -> Vec<usize> {
    let sleepers = sleepers(scenario);
    if scenario.network.joining != Joining::Rpl || sleepers.is_empty() {
        let parents = sleepers.iter().filter_map(|n| scenario.tree.parent(*n));
        return parents.collect();
    }
    let nodes = 0..scenario.stacks.len();
    nodes.filter(|n| !sleepers.contains(n)).collect()
}

fn mote(end: FlowEnd) -> Option<usize> {
    match end {
        FlowEnd::Host => None,
        FlowEnd::Node(node) => Some(node),
    }
}

/// The nodes that pass on a flow's packets within the mesh.
fn between(tree: &Tree, flow: &FlowSettings) -> Vec<usize> {
    let upwards = |end| {
        let first = mote(end).unwrap_or(ROOT);
        std::iter::successors(Some(first), |node| tree.parent(*node)).collect::<Vec<_>>()
    };
    let (from, to) = (upwards(flow.from), upwards(flow.to));
    let Some(meeting) = from.iter().find(|node| to.contains(node)) else {
        return Vec::new();
    };
    let below = |path: &[usize]| -> Vec<usize> {
        let below = path.iter().take_while(|node| *node != meeting);
        below.skip(1).copied().collect()
    };
    let mut relays = [below(&from), below(&to)].concat();
    let ends = [from.first(), to.first()];
    if !ends.contains(&Some(meeting)) {
        relays.push(*meeting);
    }
    relays
}

/// The border router.
const ROOT: usize = 0;
