//! Keys that have no effect in their scenario.
//!
//! Purpose: the author of `answer_bytes` under a bulk flow expects answers, so the key is refused.
//! Only keys in the file are checked, not defaults. Left out: `[stack]` and `[[node]]` (`parts`);
//! keys whose effect depends on another key's value by degrees, such as a path loss in a network
//! whose nodes are all close together.

use toml::{Table, Value};

use super::document::Document;
use super::error::ScenarioError;

/// Checks that every key of the file has an effect in some point of its sweep.
///
/// # Errors
/// The first key without an effect, and the condition for it.
pub(super) fn check(document: &Document) -> Result<(), ScenarioError> {
    layout(document)?;
    flows(document)?;
    faults(document)
}

/// Keys that belong to one of the ways to lay nodes out, or to a night.
fn layout(document: &Document) -> Result<(), ScenarioError> {
    for (section, key, needs) in LAYOUT_KEYS {
        let paths = given(document, section, key);
        let table = match section {
            "interference" => "interference",
            _ => "topology",
        };
        let is_there = |needed: &str| {
            has(document, table, needed) || is_swept(document, &format!("{table}.{needed}"))
        };
        let has = needs.split(' ').any(is_there);
        if let (Some((path, value)), false) = (paths.first(), has) {
            let needs = needs.replace(' ', &format!(" or {table}."));
            return Err(ScenarioError::new(format!(
                "{path} is {value}, but must be left out without {table}.{needs}"
            )));
        }
    }
    Ok(())
}

/// Keys that only some kinds of flow have.
fn flows(document: &Document) -> Result<(), ScenarioError> {
    let flows = document.table.get("flow").and_then(Value::as_array);
    let flows: Vec<&Table> = flows
        .into_iter()
        .flatten()
        .filter_map(Value::as_table)
        .collect();
    for (key, having) in FLOW_KEYS {
        let having = having.split(' ').collect::<Vec<_>>();
        let may_have = |flow: &Table| {
            let kinds = kinds(document, flow);
            kinds.iter().any(|kind| having.contains(kind))
        };
        let allowed = having.join("\" or \"");
        for (number, flow) in (1..).zip(&flows) {
            if let (Some(value), false) = (flow.get(key), may_have(flow)) {
                let error = ScenarioError::new(format!(
                    "flow.{key} is {value}, but must be left out unless flow.kind is \"{allowed}\""
                ));
                return Err(error.of_table("flow", number));
            }
        }
        let is_swept = is_swept(document, &format!("flow.{key}"));
        if is_swept && !flows.iter().any(|flow| may_have(flow)) {
            return Err(ScenarioError::new(format!(
                "sweep.flow.{key} must be left out unless a flow.kind is \"{allowed}\""
            )));
        }
    }
    Ok(())
}

/// Keys that only links have.
fn faults(document: &Document) -> Result<(), ScenarioError> {
    if is_swept(document, "fault.kind") {
        return Ok(());
    }
    let faults = document.table.get("fault").and_then(Value::as_array);
    let faults = faults.into_iter().flatten().filter_map(Value::as_table);
    for (number, fault) in (1..).zip(faults) {
        let kind = fault.get("kind").and_then(Value::as_str);
        let given = LINK_KEYS
            .iter()
            .find_map(|key| Some((key, fault.get(*key)?)));
        if let (Some((key, value)), Some("off" | "reboot")) = (given, kind) {
            let error = ScenarioError::new(format!(
                "fault.{key} is {value}, but must be left out unless fault.kind is \"link\""
            ));
            return Err(error.of_table("fault", number));
        }
    }
    Ok(())
}

/// The kinds that a flow has in the points of the sweep.
fn kinds<'a>(document: &'a Document, flow: &'a Table) -> Vec<&'a str> {
    let swept = document.sweep.iter().find(|(path, _)| path == "flow.kind");
    match swept {
        Some((_, values)) => values.iter().filter_map(Value::as_str).collect(),
        None => vec![flow.get("kind").and_then(Value::as_str).unwrap_or("bulk")],
    }
}

/// The full names and values of the keys that the file has in `section`: of the key `key`, or of
/// all if it is empty.
pub(super) fn given<'a>(
    document: &'a Document,
    section: &str,
    key: &str,
) -> Vec<(String, &'a Value)> {
    let is_asked = |name: &str| key.is_empty() || name == key;
    let table = document.table.get(section).and_then(Value::as_table);
    let keys = table.into_iter().flatten();
    let mut given: Vec<(String, &Value)> = keys
        .filter(|(name, _)| is_asked(name))
        .map(|(name, value)| (format!("{section}.{name}"), value))
        .collect();
    for (path, values) in &document.sweep {
        let name = path
            .strip_prefix(section)
            .and_then(|rest| rest.strip_prefix('.'));
        if let (true, Some(value)) = (name.is_some_and(is_asked), values.first()) {
            given.push((format!("sweep.{path}"), value));
        }
    }
    given
}

fn has(document: &Document, section: &str, key: &str) -> bool {
    let table = document.table.get(section).and_then(Value::as_table);
    table.is_some_and(|table| table.contains_key(key))
}

fn is_swept(document: &Document, path: &str) -> bool {
    document.sweep.iter().any(|(swept, _)| swept == path)
}

/// Section, key (empty: all of the section), and the keys of which it needs one: of `[topology]`,
/// or of `[interference]` itself.
const LAYOUT_KEYS: [(&str, &str, &str); 9] = [
    ("topology", "hidden", "chain"),
    ("topology", "k7_hour", "k7"),
    ("topology", "root", "k7"),
    ("topology", "floor_hops", "floor"),
    ("topology", "seed", "positions floor"),
    ("path_loss", "", "positions floor"),
    ("interference", "day_from_h", "night"),
    ("interference", "day_to_h", "night"),
    ("interference", "hour", "night"),
];

/// Keys of a fault that only links have.
const LINK_KEYS: [&str; 2] = ["to", "gain_db"];

/// Keys, and the kinds of flow that have them.
const FLOW_KEYS: [(&str, &str); 13] = [
    ("from", "bulk periodic request udp readings"),
    ("to", "bulk periodic request udp readings"),
    ("motes", "push"),
    ("schedule", "push"),
    ("transport", "push"),
    ("block_bytes", "push"),
    ("mss_frames", "push"),
    ("bytes", "bulk push"),
    ("interval_s", "periodic request udp readings"),
    ("message_bytes", "periodic request udp readings"),
    ("answer_bytes", "request"),
    ("queue", "readings"),
    ("batch", "readings"),
];
