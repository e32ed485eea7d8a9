//! `[thread]`: a network of Thread, whose router is the border router.

use motet::time::Duration;
use serde::Deserialize;
use toml::Table;

use super::defaults::section;
use super::error::ScenarioError;
use super::keys::Kind::{Integer, Number};
use super::keys::{Section, key};
use crate::net::network::{Joining, NetworkOptions, ThreadOptions};
use crate::net::topology::Tree;

/// The keys of `[thread]`.
pub(super) const SECTION: Section = Section {
    name: "thread",
    repeated: false,
    doc: "With `topology.joining` \"thread\" only: the lab's own Thread router in the place of the border router, and motes that are its children, awake or asleep. Frames are secured with a network key that all such networks of the lab have; headers of TCP are not compressed. The router's radio acknowledges by itself, and says for whom something waits, whatever `radio.profile` does. `docs/guide/thread.md` says what the router does.",
    keys: &[
        key(
            "children_max",
            Integer(1, 511),
            Some("64"),
            "Children that the router has room for; a mote too many finds no parent.",
        ),
        key(
            "child_timeout_s",
            Number(2.0, 1e6),
            Some("120.0"),
            "How long the router keeps a child that is silent, seconds; a child reports in good time.",
        ),
    ],
};

#[derive(Deserialize)]
struct Keys {
    children_max: usize,
    child_timeout_s: f64,
}

/// Makes the network one of Thread, where motes join so.
///
/// # Errors
/// Keys of `[thread]` without it; a mote that is no neighbour of the router; a key or a radio that
/// such a network has no use for.
pub(super) fn apply(
    network: &mut NetworkOptions,
    tree: &Tree,
    table: &Table,
) -> Result<(), ScenarioError> {
    let given = table.get("thread").and_then(toml::Value::as_table);
    if network.joining != Joining::Thread {
        return match given.and_then(|given| given.keys().next()) {
            None => Ok(()),
            Some(key) => Err(ScenarioError::new(format!(
                "thread.{key} must be left out unless topology.joining is \"thread\""
            ))),
        };
    }
    let wrong = |what: &str| {
        let sentence = format!("topology.joining is \"thread\", {what}");
        Err(ScenarioError::new(sentence))
    };
    if network.ble.is_some() {
        return wrong("but must be left out where a node's kind is \"ble\"");
    }
    if network.security.is_some() {
        return wrong(
            "so security.key and security.lab_key must be left out: such a network has a key of its own",
        );
    }
    let far = (1..network.nodes.len()).find(|mote| tree.parent(*mote) != Some(0));
    if let Some(mote) = far {
        return wrong(&format!(
            "so every mote has to be a neighbour of the border router, and node {mote} is not: use one hop"
        ));
    }
    let keys: Keys = section(table, "thread")?;
    network.thread = Some(ThreadOptions {
        children_max: keys.children_max,
        child_timeout: Duration::from_micros((keys.child_timeout_s * 1e6) as u64),
        ..ThreadOptions::default()
    });
    Ok(())
}
