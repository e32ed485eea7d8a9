//! Bluetooth LE in a scenario: what the keys of its radio mean, and which keys do nothing with it.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::defaults::repeated;
use super::document::{Document, id_of};
use super::error::{Rule, ScenarioError};
use super::keys::{Key, RadioKind, SECTIONS, Section};
use super::model::RadioSettings;
use super::relevance::given;
use crate::air::gains::Gains;
use crate::net::network::{BleOptions, NetworkOptions, Parent};
use motet::ble::Phy;

/// The network that `make` makes of these gains, with its motes over Bluetooth LE on an air of
/// their own.
///
/// # Errors
/// As `make`; a mote or a setting that cannot be.
pub(super) fn network(
    table: &Table,
    radio: &RadioSettings,
    gains: Gains,
    make: impl FnOnce(Gains) -> Result<NetworkOptions, ScenarioError>,
) -> Result<NetworkOptions, ScenarioError> {
    let motes = motes(table, radio, gains.nodes())?;
    if motes.is_empty() {
        return make(gains);
    }
    let mut network = make(match radio.kind == BLE {
        true => gains,
        false => gains.apart(|n| motes.contains(&n), None),
    })?;
    for (n, node) in network.nodes.iter_mut().enumerate() {
        if motes.contains(&n) {
            (node.is_ble, node.parent) = (true, Parent::Node(0));
        }
    }
    network.ble = Some(options(radio)?);
    Ok(network)
}

/// The motes that are on Bluetooth LE: all, or those whose [`[node]]` says so.
///
/// # Errors
/// `node.kind` at the border router, or of a mesh where there is none; no mote in the mesh, or more
/// on Bluetooth LE than a central has room for.
fn motes(
    table: &Table,
    radio: &RadioSettings,
    nodes: usize,
) -> Result<BTreeSet<usize>, ScenarioError> {
    let mut motes = BTreeSet::new();
    for (node, number) in repeated(table, "node").iter().zip(1..) {
        let id = node.get("id").and_then(Value::as_integer);
        let id = id.and_then(|id| usize::try_from(id).ok());
        let Some((id, kind)) = id.zip(node.get("kind").and_then(Value::as_str)) else {
            continue;
        };
        let unless = match (id, kind == BLE) {
            (0, _) => "for the border router, which has each radio that its motes have",
            (_, false) if radio.kind == BLE => "unless radio.kind is \"802.15.4\"",
            (_, true) => {
                motes.insert(id);
                continue;
            }
            _ => continue,
        };
        let error = format!("node.kind is \"{kind}\", but must be left out {unless}");
        return Err(ScenarioError::new(error).of_node(number, Some(id)));
    }
    if radio.kind == BLE {
        return Ok((1..nodes).collect());
    }
    if motes.len() + 1 >= nodes {
        return Err(ScenarioError::new(
            "node.kind is \"ble\" at every mote: set radio.kind to \"ble\" and topology.peripherals",
        ));
    }
    if motes.len() > MOTES_MAX {
        return Err(ScenarioError::new(format!(
            "node.kind is \"ble\" at {} motes, but must be at {MOTES_MAX} at most, as many as a \
             border router is connected to",
            motes.len()
        )));
    }
    Ok(motes)
}

/// What the keys of Bluetooth LE mean.
///
/// # Errors
/// An interval between two steps.
pub(super) fn options(radio: &RadioSettings) -> Result<BleOptions, ScenarioError> {
    let interval = radio.interval_ms / 1.25;
    if interval.fract() != 0.0 {
        return Err(ScenarioError::new(format!(
            "radio.interval_ms is {}, but must be a multiple of 1.25",
            radio.interval_ms
        )));
    }
    Ok(BleOptions {
        phy: match radio.phy.as_str() {
            "2M" => Phy::Le2M,
            _ => Phy::Le1M,
        },
        // Lossless: a checked number.
        interval: interval as u16,
        is_adaptive: radio.adaptive,
        latency: radio.latency,
        has_mic: radio.mic,
        drift_ppm: radio.drift_ppm,
        rssi_dbm: radio.rssi_dbm,
        rssi_sigma_db: radio.rssi_sigma_db,
        tcple_motes: if radio.tcple { usize::MAX } else { 0 },
        ..BleOptions::DEFAULT
    })
}

/// Applies the key `tcple` of `[[node]]` to the nodes.
///
/// # Errors
/// A node has `tcple` although `radio.tcple` is off, or is the border router.
pub(super) fn apply_to_nodes(
    network: &mut NetworkOptions,
    tables: &[Table],
) -> Result<(), ScenarioError> {
    let is_offered = network.ble.is_some_and(|ble| ble.tcple_motes > 0);
    for (node, number) in tables.iter().zip(1..) {
        let id = node.get("id").and_then(Value::as_integer);
        let id = id.and_then(|id| usize::try_from(id).ok());
        let (Some(id), Some(tcple)) = (id, node.get("tcple").and_then(Value::as_bool)) else {
            continue;
        };
        let unless = match (tcple, is_offered) {
            (_, false) => "unless radio.tcple is true",
            (false, true) if id == 0 => "for the border router: set radio.tcple",
            _ => {
                if let Some(node) = network.nodes.get_mut(id) {
                    node.lacks_tcple = !tcple;
                }
                continue;
            }
        };
        let error = format!("node.tcple is {tcple}, but must be left out {unless}");
        return Err(ScenarioError::new(error).of_node(number, Some(id)));
    }
    Ok(())
}

/// Checks that every key has an effect with the radio that the file has.
///
/// # Errors
/// The first that has none.
pub(super) fn check(document: &Document) -> Result<(), ScenarioError> {
    let radio = document.table.get("radio").and_then(Value::as_table);
    let kind = radio.and_then(|radio| radio.get("kind")?.as_str());
    let is_ble = kind == Some(BLE);
    if !is_ble && has_motes(document) {
        return of_motes(document);
    }
    let (foreign, other) = match is_ble {
        true => (RadioKind::Ieee802154, MESH),
        false => (RadioKind::Ble, BLE),
    };
    let foreign: Vec<(String, &Value)> = SECTIONS
        .iter()
        .flat_map(|section| foreign_keys(section, foreign).map(move |key| (section.name, key)))
        .flat_map(|(section, key)| given(document, section, key))
        .collect();
    if let Some((path, value)) = foreign.first() {
        let paths = foreign.iter().map(|(path, _)| path.clone()).collect();
        return Err(useless(path, value, other).by(match is_ble {
            true => Rule::OfMesh(paths),
            false => Rule::OfBle(paths),
        }));
    }
    if !is_ble {
        return Ok(());
    }
    let is_rpl = |(_, value): &(String, &Value)| has(value, "rpl");
    if let Some((path, value)) = given(document, "topology", "joining")
        .into_iter()
        .find(is_rpl)
    {
        return Err(useless(&path, value, MESH));
    }
    tables(document)
}

/// Whether a `[[node]]` of a mesh is a mote over Bluetooth LE.
fn has_motes(document: &Document) -> bool {
    list(document, "node").any(|(_, node)| is_mote(node))
}

/// Checks the keys of the motes over Bluetooth LE beside a mesh: those of the mesh alone do nothing
/// there.
fn of_motes(document: &Document) -> Result<(), ScenarioError> {
    if let Some((path, value)) = given(document, "topology", "peripherals").first() {
        return Err(useless(path, value, BLE));
    }
    for (number, node) in list(document, "node") {
        let is_ble = is_mote(node);
        let foreign = match is_ble {
            true => RadioKind::Ieee802154,
            false => RadioKind::Ble,
        };
        if let Some((key, value)) = foreign_in(node, foreign) {
            let kind = if is_ble { MESH } else { BLE };
            let error = ScenarioError::new(format!(
                "node.{key} is {value}, but must be left out unless node.kind is \"{kind}\"{}",
                if is_ble { "" } else { ", or radio.kind" }
            ));
            return Err(error.of_node(number, id_of(node)));
        }
    }
    link_faults(document)
}

/// Checks that no fault of a link is of a mote over Bluetooth LE: the air there has no gains.
fn link_faults(document: &Document) -> Result<(), ScenarioError> {
    let motes = list(document, "node").filter(|(_, node)| is_mote(node));
    let motes: Vec<i64> = motes.filter_map(|(_, node)| integer(node, "id")).collect();
    for (number, fault) in list(document, "fault") {
        let is_link = fault.get("kind").is_some_and(|kind| has(kind, "link"));
        let ends = ["node", "to"].map(|key| (key, integer(fault, key)));
        let mut ends = ends.into_iter().filter(|_| is_link);
        let on_ble = ends.find_map(|(key, end)| Some((key, end.filter(|it| motes.contains(it))?)));
        if let Some((key, end)) = on_ble {
            let error = ScenarioError::new(format!(
                "fault.{key} is {end}, but must be a node of the mesh where fault.kind is \"link\": \
                 node.kind is \"{BLE}\" there, so let the mote fail by \"off\" or \"reboot\""
            ));
            return Err(error.of_table("fault", number));
        }
    }
    Ok(())
}

fn is_mote(node: &Table) -> bool {
    node.get("kind").and_then(Value::as_str) == Some(BLE)
}

fn integer(table: &Table, key: &str) -> Option<i64> {
    table.get(key).and_then(Value::as_integer)
}

/// The keys of a section that mean something only with this radio; an empty name stands for all of
/// the section. Those of `[[node]]` are checked table by table.
fn foreign_keys(section: &Section, only: RadioKind) -> impl Iterator<Item = &'static str> {
    // Interference is on the channels of IEEE 802.15.4.
    let whole = section.name == "interference" && only == RadioKind::Ieee802154;
    let keys: &[Key] = if section.name == "node" {
        &[]
    } else {
        section.keys
    };
    let keys = keys.iter().filter(move |key| key.only == Some(only));
    whole
        .then_some("")
        .into_iter()
        .chain(keys.map(|key| key.name))
}

/// The tables of a repeated section, by their numbers.
fn list<'d>(document: &'d Document, name: &str) -> impl Iterator<Item = (usize, &'d Table)> {
    let tables = document.table.get(name).and_then(Value::as_array);
    (1..).zip(tables.into_iter().flatten().filter_map(Value::as_table))
}

/// The first key of a `[[node]]` that means something only with this radio.
fn foreign_in(node: &Table, only: RadioKind) -> Option<(&'static str, &Value)> {
    let mut keys = Section::named("node")
        .into_iter()
        .flat_map(Section::all_keys);
    keys.find_map(|key| Some((key.name, node.get(key.name)?)).filter(|_| key.only == Some(only)))
}

/// Keys of `[[node]]` and `[[fault]]`.
fn tables(document: &Document) -> Result<(), ScenarioError> {
    for (number, node) in list(document, "node") {
        if let Some((key, value)) = foreign_in(node, RadioKind::Ieee802154) {
            let error = useless(&format!("node.{key}"), value, MESH);
            return Err(error.of_node(number, id_of(node)));
        }
    }
    for (number, fault) in list(document, "fault") {
        if let Some(kind) = fault.get("kind").filter(|kind| has(kind, "link")) {
            return Err(useless("fault.kind", kind, MESH).of_table("fault", number));
        }
    }
    Ok(())
}

/// Whether a value is this text, or a list that has it.
fn has(value: &Value, text: &str) -> bool {
    let all = value
        .as_array()
        .map_or(std::slice::from_ref(value), |all| all);
    all.iter().any(|value| value.as_str() == Some(text))
}

fn useless(path: &str, value: &Value, kind: &str) -> ScenarioError {
    // Beside a mesh, motes of their own have the keys of Bluetooth LE, too.
    let or = match kind == BLE && path.starts_with("radio.") {
        true => ", or node.kind is at a mote",
        false => "",
    };
    ScenarioError::new(format!(
        "{path} is {value}, but must be left out unless radio.kind is \"{kind}\"{or}"
    ))
}

/// Motes that a border router is connected to over Bluetooth LE, as in `topology.peripherals`.
const MOTES_MAX: usize = 20;

/// `radio.kind` of Bluetooth LE.
pub(super) const BLE: &str = "ble";
const MESH: &str = "802.15.4";
