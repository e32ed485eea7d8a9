//! Faults: nodes that go off or reboot, and links that change, while a scenario runs.

use motet::time::Instant;
use serde::Deserialize;
use toml::Table;

use super::defaults::{fill, into, repeated};
use super::error::ScenarioError;
use super::keys::Section;
use super::model::{
    FaultKind, FaultSettings, FlowEnd, FlowKind, FlowSettings, Scenario, Timing, seconds,
};
use crate::air::gains::Later;
use crate::apps::FIRMWARE_CONNECTIONS;
use crate::net::outages::{Outages, Switch};

#[derive(Deserialize)]
struct FaultKeys {
    kind: Option<FaultKind>,
    node: Option<usize>,
    to: Option<usize>,
    gain_db: Option<f64>,
    at_s: Option<f64>,
    for_s: Option<f64>,
}

/// The faults of a mesh of `nodes` nodes.
pub(super) fn faults(
    table: &Table,
    nodes: usize,
    timing: &Timing,
) -> Result<Vec<FaultSettings>, ScenarioError> {
    let Some(section) = Section::named("fault") else {
        return Ok(Vec::new());
    };
    let mut faults: Vec<FaultSettings> = Vec::new();
    for (fault, number) in repeated(table, "fault").into_iter().zip(1..) {
        let fault = into("fault", fill(section, fault))
            .and_then(|keys| fault_of(&keys, nodes, timing))
            .and_then(|fault| check_alone(fault, &faults));
        faults.push(fault.map_err(|error| error.of_table("fault", number))?);
    }
    Ok(faults)
}

fn fault_of(
    keys: &FaultKeys,
    nodes: usize,
    timing: &Timing,
) -> Result<FaultSettings, ScenarioError> {
    let wrong = |sentence: String| ScenarioError::new(sentence);
    let missing =
        |name: &str, what: &str| wrong(format!("there is no fault.{name}, but it must {what}"));
    let of_mesh = |name: &str, node: usize| match node < nodes {
        true => Ok(node),
        false => Err(wrong(format!(
            "fault.{name} is {node}, but must be the number of a node, 0 to {}",
            nodes - 1
        ))),
    };
    let kind = keys.kind;
    let kind = kind.ok_or_else(|| missing("kind", "be \"off\", \"reboot\" or \"link\""))?;
    let node = keys.node;
    let node = node.ok_or_else(|| missing("node", "say which node has the fault"))?;
    let node = of_mesh("node", node)?;
    let at_s = keys.at_s;
    let at_s = at_s.ok_or_else(|| missing("at_s", "say when the fault begins"))?;
    if at_s >= timing.duration_s {
        return Err(wrong(format!(
            "fault.at_s is {at_s}, but must be less than duration_s, which is {}",
            timing.duration_s
        )));
    }
    let to = match (kind, keys.to) {
        (FaultKind::Link, Some(to)) => Some(of_mesh("to", to)?),
        (FaultKind::Link, None) => return Err(missing("to", "say where the link leads")),
        (FaultKind::Off | FaultKind::Reboot, _) => None,
    };
    if to == Some(node) {
        return Err(wrong(format!(
            "fault.node and fault.to are both {node}, but must differ"
        )));
    }
    Ok(FaultSettings {
        kind,
        node,
        to,
        gain_db: keys.gain_db.unwrap_or(f64::NEG_INFINITY),
        at_s,
        for_s: keys
            .for_s
            .or((kind == FaultKind::Reboot).then_some(REBOOT_S)),
    })
}

/// Nothing is broken twice at one time.
fn check_alone(
    fault: FaultSettings,
    earlier: &[FaultSettings],
) -> Result<FaultSettings, ScenarioError> {
    let mut numbered = earlier.iter().zip(1..);
    let rival = numbered.find(|(other, _)| other.breaks() == fault.breaks() && other.meets(&fault));
    let Some((rival, number)) = rival else {
        return Ok(fault);
    };
    let what = match fault.to {
        Some(to) => format!("the link between nodes {} and {to}", fault.node),
        None => format!("node {}", fault.node),
    };
    let until = match rival.for_s {
        Some(for_s) => format!("to {} s", rival.at_s + for_s),
        None => "on".to_owned(),
    };
    Err(ScenarioError::new(format!(
        "fault.at_s is {}, but {what} has another fault at that time, [[fault]] {number} from {} s \
         {until}",
        fault.at_s, rival.at_s
    )))
}

impl FaultSettings {
    /// The part that the fault breaks: a node, or a link, whichever way it is named.
    fn breaks(&self) -> (usize, Option<usize>) {
        match self.to {
            Some(to) => (self.node.min(to), Some(self.node.max(to))),
            None => (self.node, None),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        let end_s = |fault: &Self| fault.at_s + fault.for_s.unwrap_or(f64::INFINITY);
        self.at_s < end_s(other) && other.at_s < end_s(self)
    }

    fn span(&self, from: Instant) -> (Instant, Option<Instant>) {
        let at = from + seconds(self.at_s);
        (at, self.for_s.map(|for_s| at + seconds(for_s)))
    }
}

impl Scenario {
    /// When nodes go off and come back, where the time of faults counts from `from`.
    pub fn outages(&self, from: Instant) -> Outages {
        let mut outages = Outages::default();
        for fault in self.faults.iter().filter(|fault| fault.to.is_none()) {
            let (begins, ends) = fault.span(from);
            outages.add(begins, fault.node, Switch::Off);
            if let Some(ends) = ends {
                outages.add(ends, fault.node, Switch::On);
            }
        }
        outages
    }

    /// The changes of links by faults. `from`: the origin of the faults' times. A change of the
    /// link in a trace takes effect after the fault has ended.
    pub fn link_faults(&self, from: Instant) -> Vec<Later> {
        let mut changes = Vec::new();
        for fault in &self.faults {
            let Some(to) = fault.to else { continue };
            for link in [(fault.node, to), (to, fault.node)] {
                self.break_link(fault, link, from, &mut changes);
            }
        }
        changes
    }

    fn break_link(
        &self,
        fault: &FaultSettings,
        (from, to): (usize, usize),
        origin: Instant,
        changes: &mut Vec<Later>,
    ) {
        let (begins, ends) = fault.span(origin);
        let change = |at, db| Later { at, from, to, db };
        let own = |later: &&Later| (later.from, later.to) == (from, to);
        let traced = || self.network.later.iter().filter(own);
        let is_meanwhile = |at: Instant| at >= begins && ends.is_none_or(|ends| at <= ends);
        changes.push(change(begins, fault.gain_db));
        let meanwhile = traced()
            .map(|later| later.at)
            .filter(|at| is_meanwhile(*at));
        changes.extend(meanwhile.map(|at| change(at, fault.gain_db)));
        if let Some(ends) = ends {
            let before = traced().filter(|later| later.at <= ends);
            let last = before.max_by_key(|later| later.at);
            let gain = last.map(|later| later.db);
            let gain = gain.or_else(|| self.network.gains.get(from, to));
            changes.push(change(ends, gain.unwrap_or(f64::NEG_INFINITY)));
        }
    }
}

impl FlowSettings {
    /// Whether the flow opens a new connection after a loss: if a fault switches one of its ends
    /// off, or if the flow has no end.
    pub(super) fn begins_anew(&self, faults: &[FaultSettings]) -> bool {
        if matches!(self.kind, FlowKind::Readings | FlowKind::Push) {
            return true;
        }
        let mut outages = faults.iter().filter(|fault| fault.to.is_none());
        outages.any(|fault| [self.from, self.to].contains(&FlowEnd::Node(fault.node)))
    }

    /// Connections that the TCP of its receiver has room for: a sender that has lost its end
    /// comes back while the receiver still has its own.
    pub(super) fn places_received(&self, faults: &[FaultSettings]) -> usize {
        if self.push.is_some() {
            return FIRMWARE_CONNECTIONS;
        }
        1 + usize::from(self.begins_anew(faults))
    }
}

/// How long a reboot takes where the scenario does not say, s.
const REBOOT_S: f64 = 1.0;
