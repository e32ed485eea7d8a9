//! Links of a real testbed, from a K7 connectivity trace.
//!
//! Purpose: gains that give each link the delivery ratio that was measured on it: its mean
//! over the trace, or what it was at a moment and how it changed from there.
//! Place: a source of [`Gains`] beside geometry and matrices.
//! Left out: interference that the trace's own frames met; it counts as attenuation.
//! Source: the format of the 6TiSCH simulator and of `Mercator`: a line of JSON, a line of
//! column names, then `datetime,src,dst,channel,mean_rssi,pdr,tx_count`, gzipped or not.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};

use crate::files;
use crate::gains::{Gains, Later};
use crate::phy;
use crate::power::ratio;
use motet::time::{Duration, Instant};

/// A trace on one channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Nodes, numbered from 0.
    pub nodes: usize,
    /// By sender and receiver: what was measured, with when that was, s; in order of time.
    pub links: BTreeMap<(usize, usize), Vec<(u64, Link)>>,
    /// When the first measurement was, on any channel.
    began_s: u64,
}

/// One direction between two nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Mean over the frames received, dBm.
    pub rssi_dbm: f64,
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
        /// Counted from 1.
        line: usize,
        /// How it begins.
        text: String,
        /// What is allowed there.
        allowed: &'static str,
    },
    /// Nothing was measured on the channel asked for.
    Empty {
        /// That channel.
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
            Self::Empty { channel } => write!(f, "has no link on channel {channel}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// Reads what was measured on `channel`; `trace` may be gzipped.
///
/// # Errors
/// [`TraceError`]: callers put the file's name before it.
pub fn read(trace: &[u8], channel: u8) -> Result<Trace, TraceError> {
    let plain = files::unzipped(trace);
    let mut links: BTreeMap<(usize, usize), Vec<(u64, Link)>> = BTreeMap::new();
    let (mut nodes, mut began_s) = (0, u64::MAX);
    for (line, text) in (1..).zip(BufReader::new(plain).lines()) {
        let text = text.map_err(TraceError::Unreadable)?;
        // A description, and the names of the columns.
        if line <= 2 || text.trim().is_empty() {
            continue;
        }
        let row = row(&text).ok_or_else(|| TraceError::Line {
            line,
            text: files::beginning(&text),
            allowed: ROW,
        })?;
        nodes = nodes.max(row.src + 1).max(row.dst + 1);
        began_s = began_s.min(row.at_s);
        if row.channel == channel {
            let link = links.entry((row.src, row.dst)).or_default();
            link.push((row.at_s, row.link));
        }
    }
    if links.is_empty() {
        return Err(TraceError::Empty { channel });
    }
    for link in links.values_mut() {
        link.sort_by_key(|(at_s, _)| *at_s);
    }
    Ok(Trace {
        nodes,
        links,
        began_s,
    })
}

impl Trace {
    /// Gains by the mean of each link, from transmitters at 0 dBm to receivers with this noise
    /// floor, such that a frame of `frame_len` bytes survives as often as measured. Links that
    /// lost nothing are as strong as their signal was.
    pub fn mean(&self, noise_dbm: f64, frame_len: usize) -> Gains {
        self.gains(|measured| {
            let count = measured.len() as f64;
            let mean = |of: fn(&Link) -> f64| {
                measured.iter().map(|(_, link)| of(link)).sum::<f64>() / count
            };
            let link = Link {
                rssi_dbm: mean(|link| link.rssi_dbm),
                delivery: mean(|link| link.delivery),
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
        changes.sort_by_key(|change| (change.at, change.from, change.to));
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
            all if all >= LOSSLESS => self.rssi_dbm,
            part => noise_dbm + sinr_db(part, frame_len),
        }
    }
}

struct Row {
    at_s: u64,
    src: usize,
    dst: usize,
    channel: u8,
    link: Link,
}

fn row(text: &str) -> Option<Row> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let [datetime, src, dst, channel, rssi, delivery, _] = fields[..] else {
        return None;
    };
    let node = |text: &str| text.parse().ok().filter(|node| *node < NODES_MAX);
    let delivery = delivery.parse().ok()?;
    Some(Row {
        at_s: seconds(datetime)?,
        src: node(src)?,
        dst: node(dst)?,
        channel: channel.parse().ok().filter(|c| (11..=26).contains(c))?,
        link: Link {
            // Nothing received, nothing measured.
            rssi_dbm: match rssi {
                "" | "None" => f64::NEG_INFINITY,
                rssi => rssi.parse().ok().filter(|rssi: &f64| rssi.is_finite())?,
            },
            delivery: (0.0..=1.0).contains(&delivery).then_some(delivery)?,
        },
    })
}

/// Seconds from some origin to a time like `2018-01-11 16:32:22`.
fn seconds(datetime: &str) -> Option<u64> {
    let (date, time) = datetime.split_once([' ', 'T'])?;
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

/// Beyond this no frame of a hundred was lost.
const LOSSLESS: f64 = 0.995;

/// Larger testbeds than any that was traced.
const NODES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n";

    fn trace(rows: &str) -> Result<Trace, TraceError> {
        read(format!("{HEAD}{rows}").as_bytes(), 26)
    }

    #[test]
    fn links_have_the_delivery_that_was_measured() {
        let rows = "2018-01-31 23:59:58,0,1,26,-70.0,1.0,100\n2018-01-31 23:59:58,1,0,26,-88.0,0.5,100\n2018-01-31 23:59:58,1,0,26,-88.0,0.7,100\n\
                    2018-01-31 23:59:58,0,2,26,,0.0,100\n2018-01-31 23:59:58,0,2,11,-60.0,1.0,100\n";
        let links = trace(rows).unwrap();
        assert_eq!((links.nodes, links.links.len()), (3, 3));
        let gains = links.mean(-101.4, 100);
        assert_eq!((gains.get(0, 1), gains.get(0, 2)), (Some(-70.0), None));
        let sinr = gains.get(1, 0).unwrap() + 101.4;
        let survives = phy::survival(ratio(sinr), 800.0);
        assert!((survives - 0.6).abs() < 1e-6, "{survives}");
    }

    #[test]
    fn a_link_changes_when_it_did() {
        let rows = "2018-02-28 23:00:00,0,2,26,-60.0,1.0,100\n\
                    2018-03-01 00:00:10,0,1,26,-72.0,1.0,100\n\
                    2018-02-28 23:30:00,0,1,26,-71.0,1.0,100\n\
                    2018-03-01 00:00:20,0,1,26,,0.0,100\n";
        let trace = trace(rows).unwrap();
        let (gains, later) = trace.replay(3_600, -101.4, 100);
        assert_eq!(
            (gains.get(0, 1), gains.get(0, 2)),
            (Some(-71.0), Some(-60.0))
        );
        let later: Vec<(u64, f64)> = later
            .iter()
            .map(|change| (change.at.as_micros() / 1_000_000, change.db))
            .collect();
        assert_eq!(later, [(10, -72.0), (20, f64::NEG_INFINITY)]);
        let (gains, later) = trace.replay(0, -101.4, 100);
        assert_eq!((gains.get(0, 1), later.len()), (Some(-71.0), 3));
    }

    #[test]
    fn broken_lines_are_named() {
        for broken in [
            "2018-01-31 23:59:58,0,1,26,-70.0,1.0",
            "2018-13-31 23:59:58,0,1,26,-70.0,1.0,100",
            "yesterday,0,1,26,-70.0,1.0,100",
            "2018-01-31 23:59:58,0,1,27,-70.0,1.0,100",
            "2018-01-31 23:59:58,0,1,26,-70.0,1.1,100",
            "2018-01-31 23:59:58,0,1,26,-70.0,NaN,100",
            "2018-01-31 23:59:58,0,x,26,-70.0,1.0,100",
            "2018-01-31 23:59:58,0,99999999,26,-70.0,1.0,100",
        ] {
            let error = trace(&format!(
                "2018-01-31 23:59:58,0,1,26,-70.0,1.0,100\n{broken}\n"
            ))
            .unwrap_err();
            assert!(
                matches!(error, TraceError::Line { line: 4, .. }),
                "{broken}"
            );
        }
        let empty = trace("2018-01-31 23:59:58,0,1,11,-70.0,1.0,100\n").unwrap_err();
        assert!(matches!(empty, TraceError::Empty { channel: 26 }));
        let cut = read(&[0x1f, 0x8b, 8], 26).unwrap_err();
        assert!(matches!(cut, TraceError::Unreadable(_)));
    }

    /// A small file, and more of it than a trace may have.
    #[test]
    fn a_zipped_file_cannot_fill_the_memory() {
        use std::io::Write as _;
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(HEAD.as_bytes()).unwrap();
        let block = vec![b'\n'; 1 << 20];
        for _ in 0..65 {
            zip.write_all(&block).unwrap();
        }
        let error = read(&zip.finish().unwrap(), 26).unwrap_err().to_string();
        assert!(error.contains("longer than 64 MiB"), "{error}");
    }

    #[test]
    fn a_published_trace_is_read() {
        let shared = std::env::var("MOTET_SHARED")
            .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into());
        let Ok(bytes) = std::fs::read(format!("{shared}/data/traces/grenoble_7.k7.gz")) else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "no trace");
            println!("not run: no trace in {shared}");
            return;
        };
        let links = read(&bytes, 26).unwrap();
        assert_eq!(links.nodes, 50);
        let gains = links.mean(-101.4, 100);
        let heard: usize = (0..50).map(|node| gains.listeners(node).len()).sum();
        // As counted by another program: pairs with any frame received on this channel.
        assert_eq!(heard, 386);
    }
}
