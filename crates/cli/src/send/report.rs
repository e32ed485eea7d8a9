//! The report of a finished transfer: a summary for people, one object for programs.

use std::collections::BTreeMap;

use anstyle::Style;
use motet::time::Duration;
use serde::Serialize;

use crate::{
    error::Error,
    grid::{Cell, Grid, Head},
    output::{self, BAD, BOLD, DIM, GOOD, Out},
    pacer::Lateness,
};

/// A finished transfer. The order of the fields is the order of the JSON keys; the first
/// fourteen are a promise to programs, more may follow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Report {
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// SHA-256 of the file, hexadecimal.
    pub(super) sha256_sent: String,
    /// SHA-256 of what the far end read, hexadecimal.
    pub(super) sha256_received: String,
    /// Radio hops between mote and border router.
    pub(super) hops: u16,
    /// Time from the first SYN until the far end had read the end of the file, s; the air's clock.
    pub(super) seconds: f64,
    /// Bytes of the file over `seconds`.
    pub(super) goodput_kbps: f64,
    /// The goodput that no run can exceed on this radio over so many hops, kb/s; `None` where that
    /// is not known.
    pub(super) bound_kbps: Option<f64>,
    /// Mean round-trip time that the sender measured; `None` when it could not.
    pub(super) rtt_ms: Option<f64>,
    /// Segments that the sender sent, from its SYN on, retransmissions included.
    pub(super) segments: u64,
    /// Segments among `segments_sent` that never arrived.
    pub(super) segments_lost: u64,
    /// Segments sent again, for any cause.
    pub(super) retransmissions: u64,
    /// Retransmission timeouts of the sender (RFC 6298).
    pub(super) timeouts: u64,
    /// Frames sent again by a link, all hops and both directions.
    pub(super) link_retries: u64,
    /// Frames on the air without link ACKs, retries included.
    pub(super) frames: u64,

    /// The goodput estimated from frame times, kb/s, which runs may exceed.
    pub(super) estimate_kbps: f64,
    /// The direction of the file: `up` (to the host) or `down`.
    pub(super) direction: &'static str,
    /// The sender of the file, whose TCP measured `rtt_ms`, `retransmissions` and `timeouts`:
    /// `mote`, `kernel`, or `host` in virtual time.
    pub(super) sender: &'static str,
    /// Whether time was virtual and the host ran this stack.
    #[serde(rename = "virtual")]
    pub(super) in_virtual_time: bool,
    /// `retransmissions` by cause, those that happened.
    pub(super) retransmissions_by_cause: BTreeMap<&'static str, u64>,
    /// Frames on the air by hop, the mote's hop first.
    pub(super) frames_by_hop: Vec<u64>,
    /// Buffers of each TCP end, full segments.
    pub(super) window_segments: usize,
    /// Congestion control of the simulated ends: `reno` or `cubic`.
    pub(super) congestion: &'static str,
    /// The window from which fast recovery need not stall, full segments; `None` when the
    /// sender could not tell.
    pub(super) window_advised_segments: Option<u32>,
    /// How late the host was; `None` in virtual time.
    pub(super) lateness: Option<LatenessReport>,
    /// The path of the capture.
    pub(super) pcap: Option<String>,
    /// The path of the trace.
    pub(super) trace: Option<String>,
    /// Seed of every random choice.
    pub(super) seed: u64,
    /// The share of the transfer's time in which the radio of a mote that sleeps was not asleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) radio_duty: Option<f64>,
    /// And what radio and processor used meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) energy_mj: Option<f64>,
}

/// How late the host ran the air's events, milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct LatenessReport {
    pub(super) mean_ms: f64,
    pub(super) max_ms: f64,
    /// How long the whole air waited for the host, ms.
    pub(super) air_waited_ms: f64,
}

impl From<Lateness> for LatenessReport {
    fn from(lateness: Lateness) -> Self {
        let ms = |time: Duration| time.as_micros() as f64 / 1_000.0;
        Self {
            mean_ms: rounded(ms(lateness.total) / lateness.turns.max(1) as f64),
            max_ms: rounded(ms(lateness.max)),
            air_waited_ms: rounded(ms(lateness.waited)),
        }
    }
}

impl Report {
    /// Whether the far end has the file, bit for bit.
    pub(super) fn matches(&self) -> bool {
        self.sha256_sent == self.sha256_received
    }

    /// Prints the report to `out`.
    pub(super) fn print(&self, as_json: bool, out: Out) -> Result<(), Error> {
        if as_json {
            return output::json_to(out, self);
        }
        // Just so much that the digits of SHA-256 fit 80 columns.
        let mut grid = Grid::new(vec![
            Head::fixed("").words(),
            Head::fixed("").words().prose(),
        ]);
        for (name, style, value) in self.rows() {
            grid.push([Cell::styled(name, DIM), Cell::styled(value, style)]);
        }
        grid.print(out).map(|_| ())
    }

    fn rows(&self) -> Vec<(&'static str, Style, String)> {
        let plain = Style::new();
        let (verdict, style) = if self.matches() {
            ("equal at both ends", GOOD)
        } else {
            ("DIFFERENT", BAD)
        };
        let mut rows = vec![
            (
                "file",
                plain,
                format!("{} bytes, {}", thousands(self.bytes), self.route()),
            ),
            ("SHA-256 sent", plain, self.sha256_sent.clone()),
            ("SHA-256 read", plain, self.sha256_received.clone()),
            ("content", style, verdict.to_owned()),
            ("time", plain, format!("{:.2} s", self.seconds)),
            ("goodput", BOLD, self.goodput()),
            (
                "RTT",
                plain,
                self.rtt_ms
                    .map_or_else(|| "not measured".to_owned(), |ms| format!("{ms:.0} ms")),
            ),
            ("window", plain, self.window_text()),
            ("segments", plain, self.segments_text()),
            ("retransmitted", plain, self.causes()),
            ("link retries", plain, thousands(self.link_retries)),
            ("frames", plain, self.frames_text()),
        ];
        if let Some((duty, energy_mj)) = self.radio_duty.zip(self.energy_mj) {
            let text = format!("on {:.2} % of the time, {energy_mj:.1} mJ", 100.0 * duty);
            rows.push(("mote's radio", plain, text));
        }
        if let Some(late) = self.lateness {
            rows.push((
                "host lateness",
                plain,
                format!(
                    "mean {:.2} ms, max {:.1} ms; the air waited {:.1} ms",
                    late.mean_ms, late.max_ms, late.air_waited_ms
                ),
            ));
        }
        if let Some(path) = &self.pcap {
            rows.push(("capture", plain, path.clone()));
        }
        if let Some(path) = &self.trace {
            rows.push(("trace", plain, path.clone()));
        }
        rows
    }

    /// The window; and a larger one, where that helps after a loss.
    fn window_text(&self) -> String {
        let window = self.window_segments;
        match self.window_advised_segments {
            Some(advised) if advised as usize > window => {
                format!("{window} segments; with {advised}, fast recovery need not stall")
            }
            _ => format!("{window} segments"),
        }
    }

    fn route(&self) -> String {
        let hops = if self.hops == 1 {
            "1 hop".to_owned()
        } else {
            format!("{} hops", self.hops)
        };
        let host = if self.in_virtual_time {
            "a simulated host"
        } else {
            "this kernel"
        };
        match self.direction {
            "up" => format!("from a mote over {hops} to {host}"),
            _ => format!("from {host} over {hops} to a mote"),
        }
    }

    fn goodput(&self) -> String {
        if self.bytes == 0 {
            return "nothing to carry".to_owned();
        }
        let bound = self
            .bound_kbps
            .map_or_else(String::new, |bound| format!("bound {bound:.1} kb/s, "));
        format!(
            "{:.1} kb/s ({bound}frame-time estimate {:.1} kb/s)",
            self.goodput_kbps, self.estimate_kbps
        )
    }

    fn causes(&self) -> String {
        let causes: Vec<String> = self
            .retransmissions_by_cause
            .iter()
            .map(|(cause, count)| format!("{count} {cause}"))
            .collect();
        let timeouts = match self.timeouts {
            0 => String::new(),
            1 => "; 1 timeout passed".to_owned(),
            more => format!("; {more} timeouts passed"),
        };
        match causes.is_empty() {
            true => format!("none by {}{timeouts}", self.whose()),
            false => format!(
                "{} by {} ({}{timeouts})",
                self.retransmissions,
                self.whose(),
                causes.join(", ")
            ),
        }
    }

    fn whose(&self) -> &'static str {
        match self.sender {
            "mote" => "the mote",
            "kernel" => "this kernel",
            _ => "the simulated host",
        }
    }

    fn segments_text(&self) -> String {
        let percent = 100.0 * self.segments_lost as f64 / self.segments.max(1) as f64;
        format!(
            "{} sent, {} lost ({percent:.1} %)",
            thousands(self.segments),
            self.segments_lost
        )
    }

    fn frames_text(&self) -> String {
        let by_hop: Vec<String> = self
            .frames_by_hop
            .iter()
            .map(|count| thousands(*count))
            .collect();
        format!(
            "{} (by hop from the mote: {})",
            thousands(self.frames),
            by_hop.join(", ")
        )
    }
}

/// Groups digits in threes: `250 000`.
fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Rounds to three decimals: further ones carry no information.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use motet_lab::keys::hex;

    use super::*;

    #[test]
    fn numbers_are_grouped_in_threes() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1 000"),
            (1_234_567, "1 234 567"),
        ] {
            assert_eq!(thousands(value), text);
        }
    }

    #[test]
    fn the_promised_keys_come_first_and_in_order() {
        let report = Report {
            bytes: 3,
            sha256_sent: hex(&[0xab]),
            sha256_received: hex(&[0xab]),
            hops: 1,
            seconds: 1.0,
            goodput_kbps: 0.024,
            bound_kbps: Some(80.0),
            rtt_ms: None,
            segments: 4,
            segments_lost: 0,
            retransmissions: 0,
            timeouts: 0,
            link_retries: 0,
            frames: 9,
            estimate_kbps: 70.0,
            direction: "up",
            sender: "mote",
            in_virtual_time: true,
            retransmissions_by_cause: BTreeMap::new(),
            frames_by_hop: vec![9],
            window_segments: 4,
            congestion: "reno",
            window_advised_segments: Some(7),
            lateness: None,
            pcap: None,
            trace: None,
            seed: 1,
            radio_duty: None,
            energy_mj: None,
        };
        let text = serde_json::to_string(&report).unwrap();
        let promised = "bytes sha256_sent sha256_received hops seconds goodput_kbps bound_kbps \
                        rtt_ms segments segments_lost retransmissions timeouts link_retries frames";
        let places: Vec<usize> = promised
            .split(' ')
            .map(|key| text.find(&format!("\"{key}\":")).unwrap())
            .collect();
        assert!(places.is_sorted());
        assert!(text.find("\"direction\":").unwrap() > *places.last().unwrap());
        assert!(report.matches());
        assert_eq!(report.causes(), "none by the mote");
        let down = Report {
            sender: "kernel",
            retransmissions: 2,
            timeouts: 1,
            retransmissions_by_cause: BTreeMap::from([("timeout", 2)]),
            ..report.clone()
        };
        assert_eq!(
            down.causes(),
            "2 by this kernel (2 timeout; 1 timeout passed)"
        );
        for (advised, text) in [
            (None, "4 segments"),
            (Some(4), "4 segments"),
            (Some(5), "4 segments; with 5, fast recovery need not stall"),
        ] {
            let report = Report {
                window_advised_segments: advised,
                ..report.clone()
            };
            assert_eq!(report.window_text(), text);
        }
    }
}
