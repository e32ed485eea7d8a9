//! Tables of links and places: TOSSIM's gains, K7 traces, CSV.

use std::collections::BTreeMap;

use motet_lab::air::k7;

use super::{GAIN_MIN_DB, Layout, Topology, gain_of};

/// TOSSIM's topology: `gain FROM TO DB`, and `noise NODE FLOOR DEVIATION`. The noise figures
/// describe TOSSIM's radio and are not taken over.
pub(super) fn tossim(text: &str, title: &str) -> Result<Topology, String> {
    let mut named = Named::default();
    let mut noises = 0;
    let mut links = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match &words[..] {
            [] => {}
            [word, ..] if word.starts_with(['#', '%']) => {}
            ["gain", from, to, db] => {
                let db =
                    decibel(db).ok_or_else(|| format!("line {number} has no gain in dB: {db}"))?;
                links.push((named.of(from)?, named.of(to)?, db));
            }
            ["noise", ..] => noises += 1,
            _ => return Err(format!("line {number} is neither gain nor noise of TOSSIM")),
        }
    }
    let mut remarks = Vec::new();
    if noises > 0 {
        remarks.push(format!(
            "the noise of single nodes ({noises}): the radio's profile has its own"
        ));
    }
    Ok(named.topology(title, "gains of TOSSIM", links, remarks))
}

/// A connectivity trace: each link with its mean over the trace, on the channel with most links.
pub(super) fn k7(bytes: &[u8], title: &str) -> Result<Topology, String> {
    let traces = (11..=26)
        .rev()
        .map(|channel| k7::read(bytes, channel).map(|trace| (channel, trace)));
    let mut best: Option<(usize, u8, k7::Trace)> = None;
    let mut refused: Option<String> = None;
    for trace in traces {
        match trace {
            Ok((channel, trace)) => {
                let links = trace.links.len();
                if best.as_ref().is_none_or(|(most, ..)| links > *most) {
                    best = Some((links, channel, trace));
                }
            }
            Err(error) => refused = Some(error.to_string()),
        }
    }
    let Some((_, channel, trace)) = best else {
        return Err(refused.unwrap_or_else(|| "it has no links".into()));
    };
    let links = trace.links.iter().filter_map(|((from, to), measured)| {
        let delivery = measured.iter().map(|(_, link)| link.delivery).sum::<f64>();
        let delivery = delivery / measured.len().max(1) as f64;
        Some((*from, *to, gain_of(delivery)?))
    });
    Ok(Topology {
        title: title.to_owned(),
        format: "a connectivity trace (K7)",
        names: (0..trace.nodes).map(|node| node.to_string()).collect(),
        layout: Layout::Links(links.collect()),
        remarks: vec![format!(
            "changes over time, and channels other than {channel}; topology.k7 of a scenario has them"
        )],
    })
}

/// CSV with a line of column names.
pub(super) fn csv(text: &str, title: &str) -> Result<Topology, String> {
    let mut lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    let (head, _) = lines.next().ok_or("it is empty")?;
    let separator = [';', '\t', ',']
        .into_iter()
        .find(|letter| head.contains(*letter))
        .unwrap_or(',');
    let fields = |line: &str| -> Vec<String> {
        let fields = line.split(separator);
        fields
            .map(|field| field.trim().trim_matches('"').to_owned())
            .collect()
    };
    let head: Vec<String> = fields(head)
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let place = |names: &[&str]| {
        let is_named = |head: &String| names.iter().any(|name| head == name);
        head.iter().position(is_named)
    };
    let rows = lines.map(|(line, number)| (fields(line), number));
    let [x, y] = [place(&["x", "x_m"]), place(&["y", "y_m"])];
    if let (Some(x), Some(y)) = (x, y) {
        let id = place(&["id", "node", "name", "mote"]);
        return positions(rows, (id, x, y), title, &head);
    }
    let ends = [
        place(&["from", "src", "source", "tx", "sender"]),
        place(&["to", "dst", "dest", "destination", "rx", "receiver"]),
    ];
    let values = [
        (place(&["gain", "gain_db"]), Value::Gain),
        (place(&["pdr", "prr", "delivery", "ratio"]), Value::Delivery),
        (place(&["rssi", "rssi_dbm", "mean_rssi"]), Value::Gain),
        (place(&["etx"]), Value::Etx),
    ];
    let value = values
        .into_iter()
        .find_map(|(place, value)| Some((place?, value)));
    let (Some(from), Some(to), Some(value)) = (ends[0], ends[1], value) else {
        return Err(FORMATS.into());
    };
    links(rows, (from, to, value), title)
}

/// What a column says of a link.
#[derive(Clone, Copy)]
enum Value {
    /// dB, which is dBm from a sender of 0 dBm.
    Gain,
    Delivery,
    Etx,
}

type Rows<'a> = &'a mut dyn Iterator<Item = (Vec<String>, usize)>;

fn positions(
    mut rows: impl Iterator<Item = (Vec<String>, usize)>,
    (id, x, y): (Option<usize>, usize, usize),
    title: &str,
    head: &[String],
) -> Result<Topology, String> {
    let rows: Rows<'_> = &mut rows;
    let (mut names, mut places) = (Vec::new(), Vec::new());
    for (fields, line) in rows {
        let metre = |place: usize| {
            let metre = fields
                .get(place)
                .and_then(|field| field.parse::<f64>().ok());
            metre.filter(|metre| metre.abs() <= 1e6)
        };
        let (Some(x), Some(y)) = (metre(x), metre(y)) else {
            return Err(format!("line {line} has no x and y in metres"));
        };
        let name = id.and_then(|id| fields.get(id).cloned());
        names.push(name.unwrap_or_else(|| names.len().to_string()));
        places.push([x, y]);
    }
    let known = ["x", "y", "x_m", "y_m", "id", "node", "name", "mote"];
    let others: Vec<&str> = head
        .iter()
        .map(String::as_str)
        .filter(|name| !known.contains(name))
        .collect();
    Ok(Topology {
        title: title.to_owned(),
        format: "positions in CSV",
        names,
        layout: Layout::Positions(places),
        remarks: match others.is_empty() {
            true => Vec::new(),
            false => vec![format!("the columns {}", others.join(", "))],
        },
    })
}

fn links(
    mut rows: impl Iterator<Item = (Vec<String>, usize)>,
    (from, to, (place, value)): (usize, usize, (usize, Value)),
    title: &str,
) -> Result<Topology, String> {
    let rows: Rows<'_> = &mut rows;
    let mut named = Named::default();
    let mut links = Vec::new();
    for (fields, line) in rows {
        let field = |place: usize| fields.get(place).map(String::as_str).unwrap_or_default();
        let number = field(place).parse::<f64>().ok();
        let gain = match value {
            Value::Gain => number.filter(|db| (-1e3..=0.0).contains(db)).map(Some),
            Value::Delivery => number
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .map(gain_of),
            // Of both ways one transmission, the other its acknowledgment.
            Value::Etx => number
                .filter(|etx| *etx >= 1.0)
                .map(|etx| gain_of((1.0 / etx).sqrt())),
        };
        let gain = gain
            .ok_or_else(|| format!("line {line} has no number for its link: {}", field(place)))?;
        let ends = (named.of(field(from))?, named.of(field(to))?);
        links.extend(gain.map(|gain| (ends.0, ends.1, gain)));
    }
    Ok(named.topology(title, "links in CSV", links, Vec::new()))
}

/// Nodes by the names that a table gives them.
#[derive(Default)]
struct Named {
    numbers: BTreeMap<String, usize>,
}

impl Named {
    fn of(&mut self, name: &str) -> Result<usize, String> {
        if name.is_empty() {
            return Err("a link has no name for one of its ends".into());
        }
        let next = self.numbers.len();
        if next > super::NODES_MAX {
            return Err(format!("it has more than {} nodes", super::NODES_MAX));
        }
        Ok(*self.numbers.entry(name.to_owned()).or_insert(next))
    }

    /// The nodes in the order of their names, numbers by their value.
    fn topology(
        self,
        title: &str,
        format: &'static str,
        links: Vec<(usize, usize, f64)>,
        remarks: Vec<String>,
    ) -> Topology {
        let mut order: Vec<(String, usize)> = self.numbers.into_iter().collect();
        order.sort_by_key(|(name, _)| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
        let mut numbers = vec![0; order.len()];
        for ((_, old), new) in order.iter().zip(0..) {
            if let Some(number) = numbers.get_mut(*old) {
                *number = new;
            }
        }
        let numbered = links.into_iter().filter_map(|(from, to, gain)| {
            let ends = (*numbers.get(from)?, *numbers.get(to)?);
            (ends.0 != ends.1 && gain >= GAIN_MIN_DB).then_some((ends.0, ends.1, gain))
        });
        let mut links: Vec<(usize, usize, f64)> = numbered.collect();
        links.sort_by_key(|(from, to, _)| (*from, *to));
        Topology {
            title: title.to_owned(),
            format,
            names: order.into_iter().map(|(name, _)| name).collect(),
            layout: Layout::Links(links),
            remarks,
        }
    }
}

fn decibel(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|db: &f64| (-1e3..=0.0).contains(db))
}

const FORMATS: &str = "it is neither a topology of OTNS (YAML), a simulation of Cooja (.csc), gains of TOSSIM, a \
                       K7 trace, nor CSV with the columns x and y, or from, to and one of gain, rssi, pdr and etx";
