//! Bluetooth LE in a scenario: what the keys of its radio mean, and which keys do nothing with it.

use toml::{Table, Value};

use super::document::Document;
use super::error::{Rule, ScenarioError};
use super::keys::{Key, RadioKind, SECTIONS, Section};
use super::model::RadioSettings;
use super::relevance::given;
use crate::net::network::{BleOptions, NetworkOptions};
use motet::ble::Phy;

/// The air of this radio, if it is Bluetooth LE's.
///
/// # Errors
/// An interval between two steps.
pub(super) fn options(radio: &RadioSettings) -> Result<Option<BleOptions>, ScenarioError> {
    if radio.kind != BLE {
        return Ok(None);
    }
    let interval = radio.interval_ms / 1.25;
    if interval.fract() != 0.0 {
        return Err(ScenarioError::new(format!(
            "radio.interval_ms is {}, but must be a multiple of 1.25",
            radio.interval_ms
        )));
    }
    Ok(Some(BleOptions {
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
    }))
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
        return Err(ScenarioError::new(error).of_table("node", number));
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

/// Keys of `[[node]]` and `[[fault]]`.
fn tables(document: &Document) -> Result<(), ScenarioError> {
    let list = |name: &str| {
        let tables = document.table.get(name).and_then(Value::as_array);
        let tables = tables.into_iter().flatten().filter_map(Value::as_table);
        (1..).zip(tables).collect::<Vec<(usize, &Table)>>()
    };
    for (number, node) in list("node") {
        let keys = Section::named("node").into_iter();
        let keys = keys.flat_map(Section::all_keys);
        let foreign = keys.filter(|key| key.only == Some(RadioKind::Ieee802154));
        let mut values = foreign.filter_map(|key| Some((key.name, node.get(key.name)?)));
        if let Some((key, value)) = values.next() {
            let error = useless(&format!("node.{key}"), value, MESH);
            return Err(error.of_table("node", number));
        }
    }
    for (number, fault) in list("fault") {
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
    ScenarioError::new(format!(
        "{path} is {value}, but must be left out unless radio.kind is \"{kind}\""
    ))
}

/// `radio.kind` of Bluetooth LE.
pub(super) const BLE: &str = "ble";
const MESH: &str = "802.15.4";
