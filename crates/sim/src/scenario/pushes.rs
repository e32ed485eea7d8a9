//! Flows of kind `push`: new firmware for motes. A `[[flow]]` becomes one flow for each mote.

use motet::time::Instant;
use toml::{Table, Value};

use super::error::{ScenarioError, shown};
use super::model::{FlowEnd, FlowKind, FlowSettings, PushSettings, Schedule, Transport};
use super::outcome::Outcome;
use crate::apps::push::IMAGE_LEN_MIN;
use crate::apps::{App, Stored};

/// Fills in the defaults of a push.
pub(super) fn fill(flow: &mut Table) {
    if flow.get("kind").and_then(Value::as_str) != Some(FlowKind::Push.name()) {
        return;
    }
    flow.entry("bytes").or_insert(Value::Integer(IMAGE_LEN));
    // It is the host that pushes; to whom, `motes` says.
    flow.insert("from".to_owned(), Value::from("host"));
    flow.insert("to".to_owned(), Value::Integer(1));
}

/// The flows of a `[[flow]]` that is a push, one for each mote: of `motes`, or of all.
///
/// # Errors
/// One sentence with the key and its value.
pub(super) fn spread(
    flow: FlowSettings,
    motes: &[i64],
    all: &[usize],
    first: usize,
) -> Result<Vec<FlowSettings>, ScenarioError> {
    let Some(push) = &flow.push else {
        return Ok(vec![flow]);
    };
    check(&flow, push)?;
    let mut named = Vec::new();
    for mote in motes {
        let known = usize::try_from(*mote)
            .ok()
            .filter(|mote| all.contains(mote));
        match known {
            Some(known) if !named.contains(&known) => named.push(known),
            Some(_) => {
                return Err(ScenarioError::new(format!("flow.motes has {mote} twice")));
            }
            None => {
                return Err(ScenarioError::new(format!(
                    "flow.motes has {mote}, but must have numbers of motes, 1 to {}",
                    all.last().copied().unwrap_or(1)
                )));
            }
        }
    }
    let named = if named.is_empty() { all } else { &named };
    let of = |mote: &usize| FlowSettings {
        to: FlowEnd::Node(*mote),
        push: Some(PushSettings {
            first,
            motes: named.len(),
            ..push.clone()
        }),
        ..flow.clone()
    };
    Ok(named.iter().map(of).collect())
}

fn check(flow: &FlowSettings, push: &PushSettings) -> Result<(), ScenarioError> {
    if !cfg!(feature = "firmware") {
        return Err(ScenarioError::new(
            "flow.kind is \"push\", but this build of the lab has no firmware",
        ));
    }
    if !(IMAGE_LEN_MIN as u64..=IMAGE_LEN_MAX).contains(&flow.bytes) {
        return Err(ScenarioError::new(format!(
            "flow.bytes is {}, but must be {IMAGE_LEN_MIN} to {IMAGE_LEN_MAX} with flow.kind \
             \"push\": that is what a mote's flash has room for",
            flow.bytes
        )));
    }
    if push.schedule == Schedule::Tree && push.transport != Transport::Tcp {
        return Err(ScenarioError::new(
            "flow.schedule is \"tree\", but must be \"sequential\" or \"parallel\" unless \
             flow.transport is \"tcp\": it is over HTTP that a mote fetches from another",
        ));
    }
    if !push.block_bytes.is_power_of_two() {
        return Err(ScenarioError::new(format!(
            "flow.block_bytes is {}, but must be a power of two (RFC 7959)",
            push.block_bytes
        )));
    }
    Ok(())
}

/// Refuses two pushes to one mote, and datagrams to the host beside CoAP.
///
/// # Errors
/// One sentence.
pub(super) fn check_all(flows: &[FlowSettings]) -> Result<(), ScenarioError> {
    let mut motes = Vec::new();
    for flow in flows.iter().filter(|flow| flow.push.is_some()) {
        if motes.contains(&flow.to) {
            return Err(ScenarioError::new(format!(
                "node {} is in two flows of kind \"push\", but has one slot for an image",
                shown_end(flow.to)
            )));
        }
        motes.push(flow.to);
    }
    let over_coap = |flow: &&FlowSettings| flow.push.is_some() && !flow.is_tcp();
    let mut ends = flows
        .iter()
        .filter(over_coap)
        .flat_map(|flow| [flow.from, flow.to]);
    let is_udp = |flow: &FlowSettings| flow.kind == FlowKind::Udp;
    let mixed = ends.find(|end| flows.iter().any(|flow| is_udp(flow) && flow.to == *end));
    match mixed {
        Some(end) => Err(ScenarioError::new(format!(
            "flow.to is {}, but must be another node where flow.kind is \"udp\": a push over CoAP \
             takes the datagrams there",
            shown_end(end)
        ))),
        None => Ok(()),
    }
}

fn shown_end(end: FlowEnd) -> String {
    match end {
        FlowEnd::Host => shown(Value::from("host")),
        FlowEnd::Node(node) => node.to_string(),
    }
}

/// How the mote of a push does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushed {
    pub(super) stored: Stored,
    /// Bytes that were sent again.
    pub(super) resent: u64,
    /// Nobody tries any more.
    pub(super) is_over: bool,
    has_failed: bool,
}

impl Pushed {
    /// Of the host's end and the mote's; `mote`: its place in the push.
    pub(super) fn of([host, mote_end]: [&App<'_>; 2], mote: usize) -> Option<Self> {
        let (image, resent, outcome) = match host {
            App::Pusher(pusher) => (pusher.image(), pusher.resent(mote), pusher.outcome(mote)),
            App::BlockPusher(pusher) => (pusher.image(), pusher.resent(mote), pusher.outcome(mote)),
            _ => return None,
        };
        Some(Self {
            stored: mote_end.stored(image)?,
            resent,
            is_over: outcome.is_some(),
            has_failed: outcome == Some(false),
        })
    }

    pub(super) fn outcome(&self) -> Outcome {
        match (self.stored.pending_since, self.has_failed) {
            (Some(_), _) => Outcome::Complete,
            (None, true) => Outcome::TimedOut,
            (None, false) => Outcome::Running,
        }
    }
}

/// How long it took until a mote's image was pending, s.
pub(super) fn took_s(began: Instant, pending: Option<Instant>) -> Option<f64> {
    Some(pending?.since(began).as_micros() as f64 / 1e6)
}

/// Bytes of an image, unless the file says so.
const IMAGE_LEN: i64 = 250_000;

/// The longest image: half of 1 MiB without boot loader, notes and MCUboot's trailer.
const IMAGE_LEN_MAX: u64 = 484 * 1_024;
