//! Simulations of Cooja, Contiki's simulator.
//!
//! Of its radio media the unit disk graph (UDGM, with or without constant loss) and the directed
//! graph are read; of others only the positions. Source: the files of Contiki-NG's tests and
//! Cooja's radiomediums.

use roxmltree::{Document, Node};

use super::{Layout, Topology, check_nodes, gain_of, renumber};

pub(super) fn topology(text: &str, title: &str) -> Result<Topology, String> {
    let document = Document::parse(text).map_err(|error| format!("it is no XML: {error}"))?;
    let mut motes: Vec<Mote> = Vec::new();
    for node in document.descendants().filter(|node| is_mote(*node)) {
        let number = motes.len() + 1;
        motes.push(mote(node, number).ok_or_else(|| format!("its mote {number} has no position"))?);
        check_nodes(number)?;
    }
    let medium = document
        .descendants()
        .find(|node| node.has_tag_name("radiomedium"))
        .ok_or("it has no radio medium")?;
    let kind = medium.text().unwrap_or_default().trim();
    let kind = kind.rsplit('.').next().unwrap_or_default();
    let mut remarks = Vec::new();
    let order = order(&motes);
    let root = order.first().copied().unwrap_or(0);
    let numbers = renumber(motes.len(), root);
    let layout = match kind {
        "UDGM" | "UDGMConstantLoss" => disk(&motes, medium, kind == "UDGM", &numbers),
        "DirectedGraphMedium" => graph(medium, motes.len(), &numbers)?,
        other => {
            remarks.push(format!(
                "the radio medium {other}: [path_loss] says what is heard"
            ));
            Layout::Positions(places(&motes, &numbers))
        }
    };
    let named = |tag: &str| {
        document
            .descendants()
            .filter(|node| node.has_tag_name(tag))
            .count()
    };
    for (tag, what) in [
        ("motetype", "firmware"),
        ("plugin", "plugins"),
        ("script", "scripts"),
    ] {
        if named(tag) > 0 {
            remarks.push(format!("{what} ({} of <{tag}>)", named(tag)));
        }
    }
    let names = names(&motes, &numbers);
    let simulation = document
        .descendants()
        .find(|node| node.has_tag_name("title"));
    let given = simulation
        .and_then(|node| node.text())
        .map(str::trim)
        .unwrap_or_default();
    Ok(Topology {
        title: match given {
            "" | "My simulation" => title.to_owned(),
            given => given.to_owned(),
        },
        format: "a simulation of Cooja",
        names,
        layout,
        remarks,
    })
}

/// Whether it is a mote, and not the number of one in the settings of a plugin.
fn is_mote(node: Node<'_, '_>) -> bool {
    let mut children = node.children();
    node.has_tag_name("mote") && children.any(|child| child.has_tag_name("interface_config"))
}

/// What the motes are called, in the order of their new numbers.
fn names(motes: &[Mote], numbers: &[usize]) -> Vec<String> {
    let mut names = vec![String::new(); motes.len()];
    for (mote, number) in motes.iter().zip(numbers) {
        if let Some(name) = names.get_mut(*number) {
            *name = match mote.kind.is_empty() {
                true => mote.id.to_string(),
                false => format!("{} ({})", mote.id, mote.kind),
            };
        }
    }
    names
}

/// Where the motes are, in the order of their new numbers.
fn places(motes: &[Mote], numbers: &[usize]) -> Vec<[f64; 2]> {
    let mut places = vec![[0.0; 2]; motes.len()];
    for (mote, number) in motes.iter().zip(numbers) {
        if let Some(place) = places.get_mut(*number) {
            *place = [mote.place[0], mote.place[1]];
        }
    }
    places
}

struct Mote {
    id: i64,
    /// What its firmware is called.
    kind: String,
    place: [f64; 3],
}

/// Reads a mote of either layout: below its type, or beside it with the type's identifier.
fn mote(node: Node<'_, '_>, number: usize) -> Option<Mote> {
    let configs = || {
        node.children()
            .filter(|child| child.has_tag_name("interface_config"))
    };
    let named =
        |part: &str| configs().find(|config| config.text().unwrap_or_default().contains(part));
    let position = named("Position")?;
    let at = |axis: &str| {
        let child = position.children().find(|child| child.has_tag_name(axis));
        let text = child
            .and_then(|child| child.text().map(str::to_owned))
            .or_else(|| {
                let pos = position
                    .children()
                    .find(|child| child.has_tag_name("pos"))?;
                pos.attribute(axis).map(str::to_owned)
            })?;
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|metres| metres.abs() < 1e6)
    };
    let id = configs().find_map(|config| {
        let id = config.children().find(|child| child.has_tag_name("id"))?;
        id.text()?.trim().parse().ok()
    });
    let identifier = node
        .children()
        .find(|child| child.has_tag_name("motetype_identifier"));
    let identifier = identifier.and_then(|child| child.text()).map(str::trim);
    let kind = match identifier {
        Some(identifier) => {
            let mut kinds = node
                .document()
                .descendants()
                .filter(|kind| kind.has_tag_name("motetype"));
            kinds.find(|kind| {
                let named = kind
                    .children()
                    .find(|child| child.has_tag_name("identifier"));
                named.and_then(|child| child.text()).map(str::trim) == Some(identifier)
            })
        }
        None => node
            .parent()
            .filter(|parent| parent.has_tag_name("motetype")),
    };
    let text = |tag: &str| {
        let child = kind?.children().find(|child| child.has_tag_name(tag))?;
        child.text().map(|text| text.trim().to_owned())
    };
    let source = text("source").and_then(|path| Some(path.rsplit('/').next()?.to_owned()));
    Some(Mote {
        id: id.unwrap_or(number as i64),
        kind: source.or_else(|| text("description")).unwrap_or_default(),
        place: [at("x")?, at("y")?, at("z").unwrap_or(0.0)],
    })
}

/// The motes, the one that is likely the root first: by its firmware's name, else the lowest
/// number.
fn order(motes: &[Mote]) -> Vec<usize> {
    let is_root = |mote: &Mote| {
        let kind = mote.kind.to_ascii_lowercase();
        ["border", "root", "server", "sink", "coordinator"]
            .iter()
            .any(|word| kind.contains(word))
    };
    let mut order: Vec<usize> = (0..motes.len()).collect();
    order.sort_by_key(|place| motes.get(*place).map(|mote| (!is_root(mote), mote.id)));
    order
}

/// Within the range of transmission frames arrive with a chance that falls with the square of the
/// distance, or not at all with distance; within that of interference they only disturb.
fn disk(motes: &[Mote], medium: Node<'_, '_>, falls: bool, numbers: &[usize]) -> Layout {
    let value = |tag: &str, default: f64| {
        let child = medium.children().find(|child| child.has_tag_name(tag));
        let text = child.and_then(|child| child.text());
        let value = text.and_then(|text| text.trim().parse().ok());
        value
            .filter(|value: &f64| value.is_finite() && *value >= 0.0)
            .unwrap_or(default)
    };
    let range: f64 = value("transmitting_range", 50.0);
    let interference: f64 = value("interference_range", 100.0);
    let sent = value("success_ratio_tx", 1.0);
    let received = value("success_ratio_rx", 1.0);
    let mut links = Vec::new();
    for (a, from) in motes.iter().zip(numbers) {
        for (b, to) in motes.iter().zip(numbers).filter(|(_, to)| *to != from) {
            let squares = a.place.iter().zip(b.place).map(|(a, b)| (a - b) * (a - b));
            let distance = squares.sum::<f64>().sqrt();
            let ratio = (distance * distance / (range * range)).min(1.0);
            let delivery = match falls {
                true => sent * (1.0 - ratio * (1.0 - received)),
                false => sent * received,
            };
            if distance <= range
                && let Some(gain) = gain_of(delivery)
            {
                links.push((*from, *to, gain));
            } else if distance <= interference {
                links.push((*from, *to, DISTURBS_DB));
            }
        }
    }
    links.sort_by_key(|(from, to, _)| (*from, *to));
    Layout::Links(links)
}

/// Edges with the chance of a frame.
fn graph(medium: Node<'_, '_>, motes: usize, numbers: &[usize]) -> Result<Layout, String> {
    let mut links = Vec::new();
    for edge in medium.children().filter(|child| child.has_tag_name("edge")) {
        let number = |tag: &str| {
            let child = edge.descendants().find(|child| child.has_tag_name(tag));
            child
                .and_then(|child| child.text())
                .and_then(|text| text.trim().parse::<f64>().ok())
        };
        let end = |tag: &str| {
            number(tag)
                .filter(|end| *end >= 0.0)
                .map(|end| end as usize)
        };
        let (Some(from), Some(to)) = (end("source"), end("radio")) else {
            return Err("an edge of its directed graph has no two ends".into());
        };
        let (Some(from), Some(to)) = (numbers.get(from), numbers.get(to)) else {
            return Err(format!(
                "an edge of its directed graph leads beyond its {motes} motes"
            ));
        };
        if let Some(gain) = gain_of(number("ratio").unwrap_or(1.0)).filter(|_| from != to) {
            links.push((*from, *to, gain));
        }
    }
    links.sort_by_key(|(from, to, _)| (*from, *to));
    match links.is_empty() {
        true => Err("its directed graph has no edges".into()),
        false => Ok(Layout::Links(links)),
    }
}

/// Heard as a disturbance only.
const DISTURBS_DB: f64 = -106.0;
