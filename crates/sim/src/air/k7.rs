//! Links of a real testbed, from a K7 connectivity trace.
//!
//! Purpose: gains that give each link the delivery ratio that was measured on it: either the mean
//! over the trace, or the value at a given moment and its changes from then on.
//! Place: a source of [`Gains`] beside geometry and matrices.
//! Left out: interference that the trace's own frames met; it counts as attenuation. A row without
//! a channel holds for every channel on which its link has no other row. A row without a source or
//! a destination is ignored.
//! Source: the format of the 6TiSCH simulator and of `Mercator`, gzipped or not: a line of JSON, a
//! line of column names, then rows like `datetime,src,dst,channel,mean_rssi,pdr,tx_count`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead, BufReader};

use crate::air::gains::{Gains, Later};
use crate::air::phy;
use crate::air::power::ratio;
use crate::files;
use crate::ordered;
use motet::time::{Duration, Instant};

/// A trace on one channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Nodes, numbered from 0: as in the trace if it has numbers, else in the order of names.
    pub nodes: usize,
    /// The measurements of each link, by sender and receiver: value and time, s; in order of time.
    pub links: Links,
    /// When the first measurement was, on any channel.
    began_s: u64,
}

/// One direction between two nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Mean over the frames received, dBm; none where none was, or it was not noted.
    pub rssi_dbm: Option<f64>,
    /// Frames received over frames sent, 0 to 1.
    pub delivery: f64,
}

/// A line that is no measurement.
#[derive(Debug)]
pub enum TraceError {
    /// The file cannot be read.
    Unreadable(std::io::Error),
    /// A line is not what it has to be.
    Line {
        /// The line's number, counted from 1.
        line: usize,
        /// The beginning of the line.
        text: String,
        /// The words allowed there.
        allowed: &'static str,
    },
    /// The names of the columns leave one out that nothing can do without.
    Column(&'static str),
    /// The trace has more nodes than are allowed.
    Nodes(usize),
    /// Nothing was measured on the channel asked for.
    Empty {
        /// The channel asked for.
        channel: u8,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::Line {
                line,
                text,
                allowed,
            } => write!(f, "line {line} is {text:?}, but must be {allowed}"),
            Self::Column(name) => write!(
                f,
                "has no column {name} among the names of its columns, but needs src, dst and pdr"
            ),
            Self::Nodes(nodes) => {
                write!(f, "has {nodes} nodes, but may have at most {NODES_MAX}")
            }
            Self::Empty { channel } => write!(f, "has no link on channel {channel}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// PSDU bytes of the frames that testbeds were measured with, by the traces' own heads.
pub const FRAME_LEN: usize = 100;

/// Reads what was measured on `channel`; `trace` may be gzipped.
///
/// # Errors
/// [`TraceError`]: callers put the file's name before it.
pub fn read(trace: &[u8], channel: u8) -> Result<Trace, TraceError> {
    let plain = files::plain(trace).map_err(TraceError::Unreadable)?;
    let mut columns = Columns::default();
    let mut rows = Vec::new();
    let mut at_s = 0;
    for (line, text) in (1..).zip(BufReader::new(plain).lines()) {
        let text = text.map_err(TraceError::Unreadable)?;
        let text = text.trim_start_matches(BYTE_ORDER_MARK).trim();
        // A description of the trace is an object, in the first line.
        if text.is_empty() || text.starts_with(['#', '{']) {
            continue;
        }
        let fields = fields(text);
        if let Some(named) = Columns::named(&fields) {
            columns = named?;
            continue;
        }
        let row = row(&fields, &columns, at_s).ok_or_else(|| TraceError::Line {
            line,
            text: files::beginning(text),
            allowed: ROW,
        })?;
        at_s = row.at_s;
        rows.push(row);
    }
    gathered(&rows, channel)
}

/// The links among `rows` as they are on `channel`.
fn gathered(rows: &[Row], channel: u8) -> Result<Trace, TraceError> {
    let measured = || {
        rows.iter()
            .filter_map(|row| Some((row, row.ends.as_ref()?)))
    };
    let numbers = numbers(measured().flat_map(|(_, ends)| ends));
    let nodes = numbers.values().max().map_or(0, |last| last + 1);
    if nodes > NODES_MAX {
        return Err(TraceError::Nodes(nodes));
    }
    let [mut here, mut anywhere] = [(); 2].map(|()| Links::new());
    for (row, [src, dst]) in measured() {
        let links = match &row.channels[..] {
            [] => &mut anywhere,
            channels if channels.contains(&channel) => &mut here,
            _ => continue,
        };
        if let (Some(from), Some(to)) = (numbers.get(src.as_str()), numbers.get(dst.as_str())) {
            links
                .entry((*from, *to))
                .or_default()
                .push((row.at_s, row.link));
        }
    }
    for (ends, measured) in anywhere {
        here.entry(ends).or_insert(measured);
    }
    if here.is_empty() {
        return Err(TraceError::Empty { channel });
    }
    for link in here.values_mut() {
        ordered::sort_by_key(link, |(at_s, _)| *at_s);
    }
    Ok(Trace {
        nodes,
        links: here,
        began_s: rows.iter().map(|row| row.at_s).min().unwrap_or(0),
    })
}

/// The number of each node: its own where all are numbers, else its place in their order.
fn numbers<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let names = ordered::set(names.map(String::as_str));
    let own: Option<Vec<usize>> = names.iter().map(|name| name.parse().ok()).collect();
    match own {
        Some(own) => ordered::map(names.into_iter().zip(own)),
        None => ordered::map(names.into_iter().zip(0..)),
    }
}

impl Trace {
    /// Exchanges the numbers of node 0 and node `root`.
    #[must_use]
    pub fn rooted_at(mut self, root: usize) -> Self {
        let number = |node: usize| match node {
            0 => root,
            node if node == root => 0,
            node => node,
        };
        let links = std::mem::take(&mut self.links).into_iter();
        self.links =
            ordered::map(links.map(|((from, to), link)| ((number(from), number(to)), link)));
        self
    }

    /// Nodes that sent or heard something on the channel.
    pub fn measured(&self) -> BTreeSet<usize> {
        ordered::set(self.links.keys().flat_map(|(from, to)| [*from, *to]))
    }

    /// Gains by the mean of each link, from transmitters at 0 dBm to receivers with this noise
    /// floor, such that a frame of `frame_len` bytes survives as often as measured. Links that
    /// lost nothing are as strong as their signal was.
    pub fn mean(&self, noise_dbm: f64, frame_len: usize) -> Gains {
        self.gains(|measured| {
            let mean = |of: fn(&Link) -> Option<f64>| {
                let values = measured.iter().filter_map(|(_, link)| of(link));
                let (sum, count) =
                    values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
                (count > 0).then(|| sum / f64::from(count))
            };
            let link = Link {
                rssi_dbm: mean(|link| link.rssi_dbm),
                delivery: mean(|link| Some(link.delivery)).unwrap_or(0.0),
            };
            link.gain_db(noise_dbm, frame_len)
        })
    }

    /// The same `from_s` seconds after the trace began, and each link's later changes, the
    /// origin of time being then. A link has what was measured last; before its first
    /// measurement, that.
    pub fn replay(&self, from_s: u64, noise_dbm: f64, frame_len: usize) -> (Gains, Vec<Later>) {
        let from_s = self.began_s.saturating_add(from_s);
        let gains = self.gains(|measured| {
            let known = measured.partition_point(|(at_s, _)| *at_s <= from_s);
            let link = measured.get(known.saturating_sub(1));
            link.map_or(f64::NEG_INFINITY, |(_, link)| {
                link.gain_db(noise_dbm, frame_len)
            })
        });
        let mut changes = Vec::new();
        for ((from, to), measured) in &self.links {
            let later = measured.iter().filter(|(at_s, _)| *at_s > from_s);
            changes.extend(later.map(|(at_s, link)| Later {
                at: Instant::ORIGIN + Duration::from_secs(at_s - from_s),
                from: *from,
                to: *to,
                db: link.gain_db(noise_dbm, frame_len),
            }));
        }
        ordered::sort_by_key(&mut changes, |change| (change.at, change.from, change.to));
        (gains, changes)
    }

    fn gains(&self, gain_db: impl Fn(&[(u64, Link)]) -> f64) -> Gains {
        Gains::from_fn(self.nodes, |from, to| {
            let measured = self.links.get(&(from, to));
            measured.map_or(f64::NEG_INFINITY, |measured| gain_db(measured))
        })
    }
}

impl Link {
    fn gain_db(&self, noise_dbm: f64, frame_len: usize) -> f64 {
        match self.delivery {
            nothing if nothing <= 0.0 => f64::NEG_INFINITY,
            part => match self.rssi_dbm.filter(|_| part >= LOSSLESS) {
                Some(rssi_dbm) => rssi_dbm,
                None => noise_dbm + sinr_db(part.min(LOSSLESS), frame_len),
            },
        }
    }
}

type Links = BTreeMap<(usize, usize), Vec<(u64, Link)>>;

struct Row {
    at_s: u64,
    /// Sender and receiver; none where it is a mean over several.
    ends: Option<[String; 2]>,
    /// The channels of the measurement; empty if the trace does not name them.
    channels: Vec<u8>,
    link: Link,
}

/// The position of each field in a line.
struct Columns {
    datetime: Option<usize>,
    src: usize,
    dst: usize,
    channel: Option<usize>,
    rssi: Option<usize>,
    pdr: usize,
}

impl Default for Columns {
    /// The usual ones, for a trace that does not name them.
    fn default() -> Self {
        Self {
            datetime: Some(0),
            src: 1,
            dst: 2,
            channel: Some(3),
            rssi: Some(4),
            pdr: 5,
        }
    }
}

impl Columns {
    /// The columns in a line of column names; `None` if the line is not one.
    fn named(names: &[&str]) -> Option<Result<Self, TraceError>> {
        let place = |wanted: &[&str]| {
            let is_it = |name: &&str| wanted.contains(&name.to_ascii_lowercase().as_str());
            names.iter().position(is_it)
        };
        let needed = |name: &'static str| place(&[name]).ok_or(TraceError::Column(name));
        place(&["src", "dst", "pdr"])?;
        let columns = || {
            Ok(Self {
                datetime: place(&["datetime", "timestamp"]),
                src: needed("src")?,
                dst: needed("dst")?,
                channel: place(&["channel", "channels"]),
                rssi: place(&["mean_rssi", "rssi"]),
                pdr: needed("pdr")?,
            })
        };
        Some(columns())
    }
}

/// The fields of a line; commas within brackets or quotes separate none.
fn fields(text: &str) -> Vec<&str> {
    let (mut is_quoted, mut depth) = (false, 0_u32);
    let separates = |letter: char| {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && !is_quoted && depth == 0
    };
    let fields = text.split(separates);
    fields
        .map(|field| field.trim().trim_matches('"').trim())
        .collect()
}

/// Reads a measurement. If it has no time, it has the time of the previous row, `before_s` seconds.
fn row(fields: &[&str], columns: &Columns, before_s: u64) -> Option<Row> {
    let field = |place: usize| fields.get(place).copied();
    let named = |place: Option<usize>| place.and_then(field).filter(|text| !is_open(text));
    let src = node(field(columns.src)?)?;
    let dst = node(field(columns.dst)?)?;
    let ends = src.zip(dst).map(|(src, dst)| [src, dst]);
    let delivery = match field(columns.pdr)? {
        open if is_open(open) => None,
        text => Some(text.parse().ok().filter(|pdr| (0.0..=1.0).contains(pdr))?),
    };
    Some(Row {
        at_s: named(columns.datetime).map_or(Some(before_s), seconds)?,
        // A row without a delivery ratio measures no link.
        ends: ends.filter(|[src, dst]| delivery.is_some() && src != dst),
        channels: named(columns.channel).map_or(Some(Vec::new()), channels)?,
        link: Link {
            rssi_dbm: match named(columns.rssi) {
                None => None,
                Some(text) => Some(text.parse().ok().filter(|dbm: &f64| dbm.is_finite())?),
            },
            delivery: delivery.unwrap_or(0.0),
        },
    })
}

/// Whether a field is empty, in any of the spellings that programs write for an empty field.
fn is_open(text: &str) -> bool {
    let nothing = ["", "none", "nan", "null", "[]", "-inf"];
    nothing.contains(&text.to_ascii_lowercase().as_str())
}

/// Outer none: no node. Inner none: several of them.
fn node(text: &str) -> Option<Option<String>> {
    if is_open(text) {
        return Some(None);
    }
    // A number may have become 3.0 on its way; a name is an address, in hexadecimal bytes.
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && (0.0..NODE_NUMBER_MAX).contains(&number) => {
            Some(Some((number as u64).to_string()))
        }
        Ok(_) => None,
        Err(_) => {
            let mut bytes = text.split(['-', ':']);
            let is_byte =
                |byte: &str| byte.len() == 2 && byte.bytes().all(|b| b.is_ascii_hexdigit());
            let is_address = text.len() > 2 && bytes.all(is_byte);
            is_address.then(|| Some(text.to_ascii_lowercase()))
        }
    }
}

/// One channel, or a list of them in brackets.
fn channels(text: &str) -> Option<Vec<u8>> {
    let list = text.trim_matches(['[', ']']);
    let channel = |text: &str| {
        let number = text.trim().parse::<f64>().ok()?;
        let is_one = number.fract() == 0.0 && (11.0..=26.0).contains(&number);
        is_one.then_some(number as u8)
    };
    list.split([',', ';', ' '])
        .filter(|text| !text.is_empty())
        .map(channel)
        .collect()
}

/// Seconds from some origin to a time like `2018-01-11 16:32:22`; what follows the seconds,
/// their parts or the zone, is left out.
fn seconds(datetime: &str) -> Option<u64> {
    let (date, time) = datetime.split_once([' ', 'T'])?;
    let time = time.split(['.', 'Z', '+']).next()?;
    let mut numbers = date
        .split('-')
        .chain(time.split(':'))
        .map(str::parse::<u64>);
    let mut next = |range: std::ops::RangeInclusive<u64>| {
        let number = numbers.next()?.ok()?;
        range.contains(&number).then_some(number)
    };
    let [year, month, day] = [next(1970..=9999)?, next(1..=12)?, next(1..=31)?];
    let [hour, minute, second] = [next(0..=23)?, next(0..=59)?, next(0..=60)?];
    // Years that begin in March have their leap day last: 153 days are five months.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (153 * month + 2) / 5 + day;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// The gain of a link that delivers this share of full frames, to a receiver with this noise
/// floor, from a sender of 0 dBm; `None` where it delivers none.
pub fn gain_of_delivery(delivery: f64, noise_dbm: f64) -> Option<f64> {
    let link = Link {
        rssi_dbm: None,
        delivery,
    };
    Some(link.gain_db(noise_dbm, FRAME_LEN)).filter(|gain| gain.is_finite())
}

/// The ratio at which a frame survives with this chance: survival only grows with it.
fn sinr_db(delivery: f64, frame_len: usize) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if phy::survival(ratio(middle), frame_len as f64 * 8.0) < delivery {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

const ROW: &str =
    "datetime (2018-01-31 23:59:59),src,dst,channel (11 to 26),mean_rssi,pdr (0 to 1),tx_count";

/// The byte order mark, with which some editors begin a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Numbers beyond are no nodes'.
const NODE_NUMBER_MAX: f64 = 1e6;

/// Beyond this no frame of a hundred was lost.
const LOSSLESS: f64 = 0.995;

/// Larger testbeds than any that was traced.
const NODES_MAX: usize = 1_000;

#[cfg(test)]
#[path = "tests/k7.rs"]
mod tests;
