//! Links of a real testbed, from a K7 connectivity trace.
//!
//! Purpose: gains that give each link the delivery ratio that was measured on it.
//! Place: a source of [`Gains`] beside geometry and matrices.
//! Left out: change over the time of a trace: each link has its mean; interference that the
//! trace's own frames met counts as attenuation.
//! Source: the format of the 6TiSCH simulator and of `Mercator`: a line of JSON, a line of
//! column names, then `datetime,src,dst,channel,mean_rssi,pdr,tx_count`, gzipped or not.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use crate::gains::Gains;
use crate::phy;
use crate::power::ratio;

/// The mean of each link of a trace on one channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Links {
    /// Nodes, numbered from 0.
    pub nodes: usize,
    /// By sender and receiver: mean signal strength (dBm) and delivery ratio.
    pub links: BTreeMap<(usize, usize), Link>,
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
            Self::Line { line, allowed } => write!(f, "line {line}: must be {allowed}"),
            Self::Empty { channel } => write!(f, "has no link on channel {channel}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// Reads the links on `channel`; `trace` may be gzipped.
///
/// # Errors
/// [`TraceError`]: callers put the file's name before it.
pub fn read(trace: &[u8], channel: u8) -> Result<Links, TraceError> {
    let plain: Box<dyn Read + '_> = match trace {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::GzDecoder::new(trace)),
        _ => Box::new(trace),
    };
    let mut sums: BTreeMap<(usize, usize), [f64; 3]> = BTreeMap::new();
    let mut nodes = 0;
    for (line, text) in (1..).zip(BufReader::new(plain).lines()) {
        let text = text.map_err(TraceError::Unreadable)?;
        // A description, and the names of the columns.
        if line <= 2 || text.trim().is_empty() {
            continue;
        }
        let row = row(&text).ok_or(TraceError::Line { line, allowed: ROW })?;
        nodes = nodes.max(row.src + 1).max(row.dst + 1);
        if row.channel == channel {
            let [count, rssi, delivery] = sums.entry((row.src, row.dst)).or_default();
            *count += 1.0;
            *rssi += row.rssi_dbm;
            *delivery += row.delivery;
        }
    }
    if sums.is_empty() {
        return Err(TraceError::Empty { channel });
    }
    let mean = |[count, rssi, delivery]: [f64; 3]| Link {
        rssi_dbm: rssi / count,
        delivery: delivery / count,
    };
    let links = sums.into_iter().map(|(ends, sums)| (ends, mean(sums)));
    Ok(Links {
        nodes,
        links: links.collect(),
    })
}

impl Links {
    /// Gains from transmitters at 0 dBm to receivers with this noise floor, such that a frame
    /// of `frame_len` bytes survives as often as measured. Links that lost nothing are as
    /// strong as their signal was.
    pub fn gains(&self, noise_dbm: f64, frame_len: usize) -> Gains {
        Gains::from_fn(self.nodes, |from, to| {
            let link = self
                .links
                .get(&(from, to))
                .filter(|link| link.delivery > 0.0);
            link.map_or(f64::NEG_INFINITY, |link| {
                if link.delivery >= LOSSLESS {
                    link.rssi_dbm
                } else {
                    noise_dbm + sinr_db(link.delivery, frame_len)
                }
            })
        })
    }
}

struct Row {
    src: usize,
    dst: usize,
    channel: u8,
    rssi_dbm: f64,
    delivery: f64,
}

fn row(text: &str) -> Option<Row> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let [_, src, dst, channel, rssi, delivery, _] = fields[..] else {
        return None;
    };
    let node = |text: &str| text.parse().ok().filter(|node| *node < NODES_MAX);
    let delivery = delivery.parse().ok()?;
    Some(Row {
        src: node(src)?,
        dst: node(dst)?,
        channel: channel.parse().ok().filter(|c| (11..=26).contains(c))?,
        // Nothing received, nothing measured.
        rssi_dbm: match rssi {
            "" | "None" => f64::NEG_INFINITY,
            rssi => rssi.parse().ok().filter(|rssi: &f64| rssi.is_finite())?,
        },
        delivery: (0.0..=1.0).contains(&delivery).then_some(delivery)?,
    })
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

const ROW: &str = "datetime,src,dst,channel (11 to 26),mean_rssi,pdr (0 to 1),tx_count";

/// Beyond this no frame of a hundred was lost.
const LOSSLESS: f64 = 0.995;

/// Larger testbeds than any that was traced.
const NODES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n";

    fn trace(rows: &str) -> Result<Links, TraceError> {
        read(format!("{HEAD}{rows}").as_bytes(), 26)
    }

    #[test]
    fn links_have_the_delivery_that_was_measured() {
        let rows = "t,0,1,26,-70.0,1.0,100\nt,1,0,26,-88.0,0.5,100\nt,1,0,26,-88.0,0.7,100\n\
                    t,0,2,26,,0.0,100\nt,0,2,11,-60.0,1.0,100\n";
        let links = trace(rows).unwrap();
        assert_eq!((links.nodes, links.links.len()), (3, 3));
        let gains = links.gains(-101.4, 100);
        assert_eq!((gains.get(0, 1), gains.get(0, 2)), (Some(-70.0), None));
        let sinr = gains.get(1, 0).unwrap() + 101.4;
        let survives = phy::survival(ratio(sinr), 800.0);
        assert!((survives - 0.6).abs() < 1e-6, "{survives}");
    }

    #[test]
    fn broken_lines_are_named() {
        for broken in [
            "t,0,1,26,-70.0,1.0",
            "t,0,1,27,-70.0,1.0,100",
            "t,0,1,26,-70.0,1.1,100",
            "t,0,1,26,-70.0,NaN,100",
            "t,0,x,26,-70.0,1.0,100",
            "t,0,99999999,26,-70.0,1.0,100",
        ] {
            let error = trace(&format!("t,0,1,26,-70.0,1.0,100\n{broken}\n")).unwrap_err();
            assert!(
                matches!(error, TraceError::Line { line: 4, .. }),
                "{broken}"
            );
        }
        let empty = trace("t,0,1,11,-70.0,1.0,100\n").unwrap_err();
        assert!(matches!(empty, TraceError::Empty { channel: 26 }));
        let cut = read(&[0x1f, 0x8b, 8], 26).unwrap_err();
        assert!(matches!(cut, TraceError::Unreadable(_)));
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
        let gains = links.gains(-101.4, 100);
        let heard: usize = (0..50).map(|node| gains.listeners(node).len()).sum();
        // As counted by another program: pairs with any frame received on this channel.
        assert_eq!(heard, 386);
    }
}
