//! Topologies of OpenThread's network simulator, as its commands `save` and `load` have them.
//!
//! Positions are in units of 0.1 m, with a third dimension. Source: the examples of
//! openthread/ot-ns.

use yaml_rust2::{Yaml, YamlLoader};

use super::{GAIN_MIN_DB, Layout, Topology, check_nodes, gain_at, renumber};

pub(super) fn topology(text: &str, title: &str) -> Result<Topology, String> {
    check_depth(text)?;
    let documents =
        YamlLoader::load_from_str(text).map_err(|error| format!("it is no YAML: {error}"))?;
    let document = documents.first().ok_or("it is empty")?;
    let list = document["nodes"]
        .as_vec()
        .ok_or("it has no list of nodes, as OTNS writes it")?;
    let shift = triple(&document["network"]["pos-shift"]).unwrap_or([0.0; 3]);
    check_nodes(list.len())?;
    let mut remarks = Vec::new();
    let mut nodes = Vec::new();
    for (entry, number) in list.iter().zip(1..) {
        nodes.push(node(entry, shift, &mut remarks).ok_or_else(|| {
            format!("node {number} of its list has no pos with two or three numbers")
        })?);
    }
    unknown(document, &["network", "nodes"], "the file", &mut remarks);
    unknown(
        &document["network"],
        &["pos-shift"],
        "network",
        &mut remarks,
    );
    let root = nodes.iter().position(|node| node.kind == "br");
    let root = root
        .or_else(|| nodes.iter().position(|node| node.kind == "router"))
        .unwrap_or(0);
    let numbers = renumber(nodes.len(), root);
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|node| numbers.get(*node).copied());
    let ordered: Vec<&Node> = order.iter().filter_map(|node| nodes.get(*node)).collect();
    let sleepy: Vec<&str> = ordered
        .iter()
        .filter(|node| node.kind.contains("sed"))
        .map(|node| node.id.as_str())
        .collect();
    if !sleepy.is_empty() {
        remarks.push(format!("the sleep of {}, awake here", sleepy.join(", ")));
    }
    Ok(Topology {
        title: title.to_owned(),
        format: "a topology of OTNS",
        names: ordered
            .iter()
            .map(|node| format!("{} ({})", node.id, node.kind))
            .collect(),
        layout: layout(&ordered),
        remarks,
    })
}

struct Node {
    id: String,
    kind: String,
    /// Metres.
    place: [f64; 3],
}

fn node(entry: &Yaml, shift: [f64; 3], remarks: &mut Vec<String>) -> Option<Node> {
    let [x, y, z] = triple(&entry["pos"]).or_else(|| {
        Some([
            number(&entry["x"])?,
            number(&entry["y"])?,
            number(&entry["z"]).unwrap_or(0.0),
        ])
    })?;
    let place = [x + shift[0], y + shift[1], z + shift[2]].map(|units| units * METRES);
    let id = entry["id"]
        .as_i64()
        .map_or_else(|| "?".to_owned(), |id| id.to_string());
    unknown(
        entry,
        &["id", "type", "pos", "x", "y", "z"],
        &format!("node {id}"),
        remarks,
    );
    Some(Node {
        kind: entry["type"].as_str().unwrap_or("router").to_owned(),
        id,
        place,
    })
}

/// On one floor positions say it; else gains by the distance through the building.
fn layout(nodes: &[&Node]) -> Layout {
    let first = nodes.first().map_or(0.0, |node| node.place[2]);
    if nodes
        .iter()
        .all(|node| (node.place[2] - first).abs() < 1e-6)
    {
        return Layout::Positions(
            nodes
                .iter()
                .map(|node| [node.place[0], node.place[1]])
                .collect(),
        );
    }
    let mut links = Vec::new();
    for (from, a) in nodes.iter().enumerate() {
        for (to, b) in nodes.iter().enumerate().filter(|(to, _)| *to != from) {
            let squares = a.place.iter().zip(b.place).map(|(a, b)| (a - b) * (a - b));
            let gain = gain_at(squares.sum::<f64>().sqrt());
            if gain >= GAIN_MIN_DB {
                links.push((from, to, gain));
            }
        }
    }
    Layout::Links(links)
}

/// Notes the keys of a table that are not read.
fn unknown(table: &Yaml, known: &[&str], of: &str, remarks: &mut Vec<String>) {
    let Some(table) = table.as_hash() else {
        return;
    };
    let names = table
        .keys()
        .filter_map(Yaml::as_str)
        .filter(|name| !known.contains(name));
    let names: Vec<&str> = names.take(8).collect();
    if !names.is_empty() && remarks.len() < REMARKS_MAX {
        remarks.push(format!("{} of {of}", names.join(", ")));
    }
}

fn triple(value: &Yaml) -> Option<[f64; 3]> {
    let list = value.as_vec()?;
    let at = |place: usize| list.get(place).and_then(number);
    Some([at(0)?, at(1)?, at(2).unwrap_or(0.0)])
}

fn number(value: &Yaml) -> Option<f64> {
    let number = value
        .as_f64()
        .or(value.as_i64().map(|whole| whole as f64))?;
    (-1e7..=1e7).contains(&number).then_some(number)
}

/// Refuses what would expand without end, or nest deeper than any topology.
fn check_depth(text: &str) -> Result<(), String> {
    let mut depth = 0_u32;
    for letter in text.chars() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err("it nests lists too deeply".into());
        }
    }
    let deep =
        |line: &str| line.len() - line.trim_start_matches([' ', '-', '?']).len() > INDENT_MAX;
    if text.lines().any(deep) {
        return Err("it nests lists too deeply".into());
    }
    let is_anchor = |word: &str| word.len() > 1 && word.starts_with(['&', '*']);
    match text.split_whitespace().any(is_anchor) {
        true => Err("it has anchors or aliases of YAML, which are not read".into()),
        false => Ok(()),
    }
}

/// OTNS's unit.
const METRES: f64 = 0.1;
const DEPTH_MAX: u32 = 16;
const INDENT_MAX: usize = 64;
const REMARKS_MAX: usize = 16;
