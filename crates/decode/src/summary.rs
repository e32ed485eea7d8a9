//! The summary of a capture: counts, reasons, TCP conversations.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use anstyle::Style;
use serde::Serialize;

use super::Decoder;
use super::conversation::{Conversation, Direction, End};
use super::model::{Frame, Problem, Status};
use super::text::Look;

/// Counts over all frames.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Frames so far.
    pub(super) frames: u64,
    /// Frames that repeat the sender's last: retries of the link.
    pub(super) link_repeats: u64,
    /// Capture time of the first frame.
    pub(super) start_ns: Option<u64>,
    end_ns: u64,
    bytes: u64,
    statuses: BTreeMap<&'static str, u64>,
    reasons: BTreeMap<(&'static str, Problem), u64>,
}

impl Tally {
    /// Counts an explained frame.
    pub(super) fn count(&mut self, frame: &Frame) {
        self.frames += 1;
        self.bytes += frame.captured_len as u64;
        self.end_ns = self.end_ns.max(frame.epoch_ns);
        let status = frame.status.name();
        *self.statuses.entry(status).or_default() += 1;
        if let Some(problem) = frame.status.problem() {
            let mut key = (status, problem.clone());
            if self.reasons.len() >= REASONS_MAX && !self.reasons.contains_key(&key) {
                key.1.reason = "other reasons".into();
            }
            *self.reasons.entry(key).or_default() += 1;
        }
    }

    fn of(&self, status: &Status) -> u64 {
        self.statuses.get(status.name()).copied().unwrap_or(0)
    }
}

/// The closing summary.
#[derive(Debug, Serialize)]
pub struct Summary {
    frames: u64,
    captured_bytes: u64,
    duration_s: f64,
    decoded: u64,
    fragments: u64,
    undecoded: u64,
    malformed: u64,
    link_repeats: u64,
    /// Datagrams of which fragments are missing.
    incomplete_datagrams: u64,
    reasons: Vec<Reason>,
    conversations: Vec<Talk>,
    /// TCP segments of conversations beyond what is kept.
    untracked_segments: u64,
}

#[derive(Debug, Serialize)]
struct Reason {
    status: &'static str,
    layer: &'static str,
    reason: String,
    frames: u64,
}

#[derive(Debug, Serialize)]
struct Talk {
    stream: usize,
    client: String,
    server: String,
    start_s: f64,
    duration_s: f64,
    ended: &'static str,
    client_to_server: DirectionSummary,
    server_to_client: DirectionSummary,
}

#[derive(Debug, Serialize)]
struct DirectionSummary {
    bytes: u64,
    missing_bytes: u64,
    segments: u64,
    retransmissions: u64,
    hops: usize,
}

impl Summary {
    /// Sums up what `decoder` has seen.
    pub(super) fn of(decoder: &Decoder) -> Self {
        let tally = &decoder.tally;
        let start_ns = tally.start_ns.unwrap_or(0);
        let problem = Problem {
            layer: "",
            reason: String::new(),
        };
        Self {
            frames: tally.frames,
            captured_bytes: tally.bytes,
            duration_s: seconds_between(start_ns, tally.end_ns),
            decoded: tally.of(&Status::Decoded),
            fragments: tally.of(&Status::Fragment),
            undecoded: tally.of(&Status::Undecoded(problem.clone())),
            malformed: tally.of(&Status::Malformed(problem)),
            link_repeats: tally.link_repeats,
            incomplete_datagrams: decoder.reassembly.pending() + decoder.reassembly.abandoned,
            reasons: tally
                .reasons
                .iter()
                .map(|((status, problem), frames)| Reason {
                    status,
                    layer: problem.layer,
                    reason: problem.reason.clone(),
                    frames: *frames,
                })
                .collect(),
            conversations: decoder
                .conversations
                .iter()
                .enumerate()
                .map(|(stream, conversation)| Talk::of(stream, conversation, start_ns))
                .collect(),
            untracked_segments: decoder.conversations.untracked,
        }
    }

    /// Prints the summary for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn print(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let title = |text: &str| look.paint(Style::new().bold(), text);
        writeln!(
            out,
            "{}  {} B in {:.6} s",
            title(&counted(self.frames, "frame")),
            self.captured_bytes,
            self.duration_s
        )?;
        let parts = [
            (self.decoded, "decoded"),
            (
                self.fragments,
                "fragments before the last of their datagram",
            ),
            (self.undecoded, "not decoded"),
            (self.malformed, "malformed"),
            (self.link_repeats, "repeated by their sender (link retries)"),
            (
                self.incomplete_datagrams,
                "datagrams with fragments missing",
            ),
            (
                self.untracked_segments,
                "TCP segments of further conversations",
            ),
        ];
        for (number, what) in parts.iter().filter(|(number, _)| *number > 0) {
            writeln!(out, "{number:>9}  {what}")?;
        }
        if !self.reasons.is_empty() {
            writeln!(out, "{}", title("Not explained"))?;
        }
        for reason in &self.reasons {
            let what = if reason.status == "malformed" {
                "malformed"
            } else {
                "not decoded"
            };
            let line = format!(
                "{:>9}  {what} at {}: {}",
                reason.frames, reason.layer, reason.reason
            );
            look.paragraph(out, 11, &line)?;
        }
        if !self.conversations.is_empty() {
            writeln!(out, "{}", title("TCP conversations"))?;
        }
        for talk in &self.conversations {
            talk.print(look, out)?;
        }
        Ok(())
    }
}

impl Talk {
    fn of(stream: usize, conversation: &Conversation, start_ns: u64) -> Self {
        let [client, server] = &conversation.ends;
        let [there, back] = &conversation.directions;
        let (first, last) = conversation.span_ns;
        let ended = match () {
            () if conversation.reset => "reset",
            () if conversation.is_closed() => "closed",
            () => "open",
        };
        Self {
            stream,
            client: end(client),
            server: end(server),
            start_s: seconds_between(start_ns, first),
            duration_s: seconds_between(first, last),
            ended,
            client_to_server: DirectionSummary::of(there),
            server_to_client: DirectionSummary::of(back),
        }
    }

    fn print(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let line = format!(
            "{:>9}  {} ↔ {}, {:.6} s from {:.6} s, {}",
            self.stream, self.client, self.server, self.duration_s, self.start_s, self.ended
        );
        look.paragraph(out, 11, &line)?;
        for (arrow, way) in [("→", &self.client_to_server), ("←", &self.server_to_client)] {
            if way.segments == 0 {
                continue;
            }
            let mut line = format!(
                "           {arrow} {} B in {}, {}",
                way.bytes,
                counted(way.segments, "segment"),
                counted(way.retransmissions, "retransmission")
            );
            if way.missing_bytes > 0 {
                line += &format!(", {} B not in the capture", way.missing_bytes);
            }
            if way.hops > 1 {
                line += &format!(", over {} hops", way.hops);
            }
            look.paragraph(out, 11, &line)?;
        }
        Ok(())
    }
}

impl DirectionSummary {
    fn of(direction: &Direction) -> Self {
        Self {
            bytes: direction.bytes(),
            missing_bytes: direction.missing(),
            segments: direction.segments(),
            retransmissions: direction.retransmissions(),
            hops: direction.hops(),
        }
    }
}

fn end((address, port): &End) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    }
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

fn seconds_between(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

/// Distinct reasons counted; some hold numbers, which a hostile capture can vary at will.
const REASONS_MAX: usize = 256;
