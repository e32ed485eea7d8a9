//! Flows of kind `readings`: a sensor's, which wait in a queue and go in batches.

use toml::{Table, Value};

use super::error::ScenarioError;
use super::model::{FlowEnd, FlowKind, FlowSettings, seconds};
use crate::apps::backlog::Sensor;

/// Fills in the defaults of a flow of readings: those of the anemometers.
pub(super) fn fill(flow: &mut Table) {
    if flow.get("kind").and_then(Value::as_str) != Some(FlowKind::Readings.name()) {
        return;
    }
    let len = Sensor::ANEMOMETER.reading_len as i64;
    flow.entry("message_bytes").or_insert(Value::Integer(len));
    // Whoever has a smaller queue, and says nothing of batches, wants it sent when it is full.
    if let Some(queue) = flow.get("queue").filter(|_| !flow.contains_key("batch")) {
        let batch = queue.as_integer().map(|queue| queue.min(BATCH));
        flow.insert("batch".to_owned(), Value::Integer(batch.unwrap_or(BATCH)));
    }
}

/// Refuses what cannot be sent, or never is.
///
/// # Errors
/// One sentence with the keys and their values.
pub(super) fn check(flow: &FlowSettings) -> Result<(), ScenarioError> {
    if flow.kind != FlowKind::Readings {
        return Ok(());
    }
    if flow.batch > flow.queue {
        return Err(ScenarioError::new(format!(
            "flow.batch is {}, but must be at most flow.queue, which is {}: it would never be whole",
            flow.batch, flow.queue
        )));
    }
    if flow.from == FlowEnd::Host {
        return Err(ScenarioError::new(
            "flow.from is \"host\", but must be a mote, which has the sensor, with flow.kind \
             \"readings\"",
        ));
    }
    Ok(())
}

/// The sensor that makes a flow's readings.
pub(super) fn sensor(flow: &FlowSettings) -> Sensor {
    Sensor {
        reading_len: flow.message_bytes,
        interval: seconds(flow.interval_s),
        queue: flow.queue,
        batch: flow.batch,
    }
}

/// Readings in a batch, unless the file says so.
const BATCH: i64 = Sensor::ANEMOMETER.batch as i64;
