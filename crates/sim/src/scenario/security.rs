//! `[security]`: a mesh with a key.

use motet::time::Duration;
use motet::wire::ieee802154::Level;
use serde::Deserialize;
use toml::Table;

use super::defaults::section;
use super::error::ScenarioError;
use super::keys::Kind::{Choice, File, Flag, Nodes, Number};
use super::keys::{Section, key};
use super::sources::ScenarioFiles;
use crate::keys::{KeyFile, SECRET_LEN};
use crate::net::network::{Cipher, NetworkOptions, SecurityOptions};
use crate::net::plan;

/// The keys of `[security]`.
pub(super) const SECTION: Section = Section {
    name: "security",
    repeated: false,
    doc: "Link security: every frame is encrypted and authenticated, and nothing else is believed. A mote that is switched on again goes on with its frame counters. `docs/security.md` says what that protects, and what not.",
    keys: &[
        key(
            "key",
            File,
            None,
            "The key file, as `motet keys new` makes it; its owner alone may read it. Without it there is no security.",
        ),
        key(
            "lab_key",
            Flag,
            Some("false"),
            "In the place of `key`: a key that every reader of the lab's source knows, for runs that anybody is to repeat.",
        ),
        key(
            "level",
            Choice(&["mic32", "mic64", "mic128"]),
            Some("\"mic32\""),
            "How long the message integrity code of a frame is: 4, 8 or 16 bytes. Frames of a lower level are refused.",
        ),
        key(
            "rotate_s",
            Number(0.0, 1e9),
            Some("0.0"),
            "After how long the border router takes the next link key, seconds, at least 1; motes follow. 0: each 28 days.",
        ),
        key(
            "joining",
            Choice(&["provisioned", "cojp"]),
            Some("\"provisioned\""),
            "How motes get the network key: they have it from the start, or ask the border router for it by CoJP, each with a join key of its own; motes that have it pass the requests of others on.",
        ),
        key(
            "revoked",
            Nodes,
            Some("[]"),
            "Motes that have another network key, as those that were left behind when all others got a new one. With `cojp` they get none, as do those that the key file revokes.",
        ),
        key(
            "cipher",
            Choice(&["radio", "software"]),
            Some("\"radio\""),
            "What encrypts, which costs time: the radio in line with its buffers, or the processor.",
        ),
    ],
};

#[derive(Deserialize)]
struct Keys {
    key: Option<String>,
    lab_key: bool,
    level: String,
    rotate_s: f64,
    joining: String,
    revoked: Vec<usize>,
    cipher: String,
}

/// Gives the mesh its key, where the file names one.
///
/// # Errors
/// A key file that cannot be read, a node that is none, keys that do nothing without another.
pub(super) fn apply(
    network: &mut NetworkOptions,
    table: &Table,
    files: ScenarioFiles<'_>,
) -> Result<(), ScenarioError> {
    let Some(given) = table.get("security") else {
        return Ok(());
    };
    let keys: Keys = section(table, "security")?;
    if keys.key.is_some() == keys.lab_key {
        let first = given.as_table().and_then(|given| given.keys().next());
        return Err(ScenarioError::new(match keys.lab_key {
            true => "security.lab_key is true, but must be left out with security.key".to_owned(),
            false => format!(
                "security.{} must be left out without security.key, which names a key file, or \
                 security.lab_key = true",
                first.map_or("key", String::as_str)
            ),
        }));
    }
    if !network.has_mesh() {
        let given = if keys.lab_key { "lab_key" } else { "key" };
        return Err(ScenarioError::new(format!(
            "security.{given} must be left out with radio.kind \"ble\", which has security of its own"
        )));
    }
    if keys.rotate_s > 0.0 && keys.rotate_s < ROTATES_AFTER_MIN_S {
        return Err(ScenarioError::new(format!(
            "security.rotate_s is {}, but must be 0 or at least {ROTATES_AFTER_MIN_S}: a mote \
             learns of the next key at most once a second",
            keys.rotate_s
        )));
    }
    let found = match &keys.key {
        Some(file) => key_file(file, files)?,
        None => KeyFile::new(LAB_SECRET),
    };
    let file = keys.key.as_deref().unwrap_or_default();
    let damaged = || ScenarioError::new(format!("{file}: the key file is damaged"));
    let first = found.keys().ok_or_else(damaged)?;
    let nodes = network.nodes.len();
    for &node in &keys.revoked {
        if node == 0 || node >= nodes {
            return Err(ScenarioError::new(format!(
                "security.revoked has {node}, but must have numbers of motes, 1 to {}",
                nodes - 1
            )));
        }
        network.nodes[node].is_revoked = true;
    }
    let mut join_secret = None;
    if keys.joining == "cojp" {
        join_secret = Some(found.join_secret().map_err(ScenarioError::new)?);
        for (number, node) in (0..).zip(&mut network.nodes) {
            node.is_revoked |= found.is_revoked(plan::eui64(number));
        }
    }
    network.security = Some(SecurityOptions {
        level: match keys.level.as_str() {
            "mic64" => Level::Mic64,
            "mic128" => Level::Mic128,
            _ => Level::Mic32,
        },
        rotates_after: (keys.rotate_s > 0.0)
            .then(|| Duration::from_micros((keys.rotate_s * 1e6) as u64)),
        cipher: match keys.cipher.as_str() {
            "software" => Cipher::Software,
            _ => Cipher::Radio,
        },
        join_secret,
        name: Some(first.name),
        ..SecurityOptions::new(first.network, first.sequence)
    });
    Ok(())
}

/// The file of that name: first as any file that a scenario names, no pipe, no directory.
fn key_file(file: &str, files: ScenarioFiles<'_>) -> Result<KeyFile, ScenarioError> {
    let named = files.read("security.key", file)?;
    let found = match files.given.has(file) {
        true => KeyFile::parse(named.text()?, &named.file),
        false => KeyFile::read(&named.file),
    };
    found.map_err(ScenarioError::new)
}

/// The shortest time from one link key to the next, s. A node reminds neighbours that have an
/// earlier key of the one in force once a second (`mac::security`); where keys follow one another
/// faster, motes are left behind: with 0.5 s the sixth mote of a chain, with 0.2 s the second.
const ROTATES_AFTER_MIN_S: f64 = 1.0;

/// No secret: `security.lab_key`.
const LAB_SECRET: &[u8; SECRET_LEN] = b"Motet's lab: a key for all alike";
