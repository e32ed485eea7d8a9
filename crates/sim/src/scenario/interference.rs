//! `[interference]`: what other systems do on the channel, by day and by night.

use serde::Deserialize;
use toml::Table;

use super::defaults::section;
use super::error::ScenarioError;
use super::keys::Kind::{File, Flag, Nodes, Number};
use super::keys::{Section, key};
use super::sources::ScenarioFiles;
use crate::air::noise::{Hours, Noise};
use crate::net::network::Interference;

/// The keys of `[interference]`.
pub(super) const SECTION: Section = Section {
    name: "interference",
    repeated: false,
    doc: "What other systems do on the channel, as it was recorded.",
    keys: &[
        key(
            "trace",
            File,
            None,
            "A recording of noise, gzipped or not: a power in dBm a line, a thousand a second (TOSSIM's noise traces). Where it is louder than a receiver's own noise it takes its place; it repeats.",
        ),
        key(
            "night",
            File,
            None,
            "Another recording, of the hours in which nobody works; `trace` is then heard from `day_from_h` to `day_to_h` only.",
        ),
        key(
            "day_from_h",
            Number(0.0, 24.0),
            Some("8.0"),
            "`night` only: when people begin to work, hours of the day.",
        ),
        key(
            "day_to_h",
            Number(0.0, 24.0),
            Some("18.0"),
            "`night` only: when they stop, hours of the day; later than `day_from_h`.",
        ),
        key(
            "hour",
            Number(0.0, 24.0),
            Some("0.0"),
            "`night` only: what time of the day it is when the nodes are switched on, hours.",
        ),
        key("nodes", Nodes, Some("[]"), "Who hears it; empty: everyone."),
        key(
            "offset_db",
            Number(-100.0, 100.0),
            Some("0.0"),
            "Added to every sample, dB.",
        ),
        key(
            "together",
            Flag,
            Some("true"),
            "Whether all hear the same moment of it, as of one near source; false: each another one. Which, the seed says.",
        ),
    ],
};

#[derive(Clone, Debug, Deserialize)]
struct Keys {
    trace: Option<String>,
    night: Option<String>,
    day_from_h: f64,
    day_to_h: f64,
    hour: f64,
    nodes: Vec<usize>,
    offset_db: f64,
    together: bool,
}

/// The noise that each node hears, if any; empty without interference.
///
/// # Errors
/// One sentence: keys that contradict each other, or a file that is no recording.
pub(super) fn interference(
    table: &Table,
    files: ScenarioFiles<'_>,
    nodes: usize,
) -> Result<Option<Interference>, ScenarioError> {
    if !table.contains_key("interference") {
        return Ok(None);
    }
    let keys: Keys = section(table, "interference")?;
    let Some(trace) = &keys.trace else {
        return Err(ScenarioError::new(
            "[interference] has no trace, but must name a file",
        ));
    };
    if let Some(unknown) = keys.nodes.iter().find(|node| **node >= nodes) {
        return Err(ScenarioError::new(format!(
            "interference.nodes has {unknown}, but must have numbers of nodes, 0 to {}",
            nodes - 1
        )));
    }
    let mut noise = recording(files, "interference.trace", trace, keys.offset_db)?;
    if let Some(night) = &keys.night {
        if keys.day_from_h >= keys.day_to_h {
            return Err(ScenarioError::new(format!(
                "interference.day_from_h is {}, but must be less than interference.day_to_h, which is {}",
                keys.day_from_h, keys.day_to_h
            )));
        }
        let hours = Hours {
            from: keys.day_from_h,
            to: keys.day_to_h,
            now: keys.hour,
        };
        let night = recording(files, "interference.night", night, keys.offset_db)?;
        noise = noise.by_day(night, hours);
    }
    Ok(Some(Interference {
        noise,
        nodes: keys.nodes,
        together: keys.together,
    }))
}

/// The recording that `key` names.
fn recording(
    files: ScenarioFiles<'_>,
    key: &str,
    name: &str,
    offset_db: f64,
) -> Result<Noise, ScenarioError> {
    let file = files.read(key, name)?;
    Noise::read(&file.bytes, offset_db)
        .map_err(|error| ScenarioError::new(error.to_string()).within(&file.file))
}
