//! What a diagnosis says: findings, then nodes, links and flows; for people on one page, for
//! programs as JSON.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::Examiner;
use super::findings;
use super::flows::Flow;
use super::list::Finding;
use crate::text::Look;

/// What is wrong in a network, worst first, and the counts behind it.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    frames: u64,
    duration_s: f64,
    findings: Vec<Finding>,
    nodes: Vec<NodeRow>,
    links: Vec<LinkRow>,
    flows: Vec<FlowRow>,
}

#[derive(Debug, Serialize)]
struct NodeRow {
    node: String,
    frames: u64,
    bytes: u64,
    retries: u64,
    /// Share of the capture's time in which it sent, %.
    duty_percent: f64,
    rssi_dbm: Option<f64>,
    first_s: f64,
    last_s: f64,
    longest_pause_s: f64,
    parents: Vec<String>,
    parent_changes: u64,
}

#[derive(Debug, Serialize)]
struct LinkRow {
    from: String,
    to: String,
    frames: u64,
    attempts: u64,
    retries: u64,
    acknowledged: u64,
    /// Failed attempts that met the frames of others.
    collided: u64,
    lost: u64,
    rssi_dbm: Option<f64>,
}

#[derive(Debug, Serialize)]
struct FlowRow {
    client: String,
    server: String,
    start_s: f64,
    end_s: f64,
    ended: &'static str,
    syns: u64,
    client_to_server: WayRow,
    server_to_client: WayRow,
}

#[derive(Debug, Serialize)]
struct WayRow {
    bytes: u64,
    segments: u64,
    retransmissions: Vec<AgainRow>,
    window_min: Option<u64>,
    window_max: Option<u64>,
    zero_windows: u64,
    zero_window_s: f64,
}

#[derive(Debug, Serialize)]
struct AgainRow {
    cause: &'static str,
    segments: u64,
    frames: Vec<u64>,
}

impl Diagnosis {
    pub(super) fn of(examiner: &Examiner) -> Self {
        let stations = &examiner.stations;
        let duration_s = stations.last_s.max(1e-9);
        let round = |value: f64, digits: f64| (value * digits).round() / digits;
        let nodes = stations.nodes.iter().map(|(name, node)| {
            let parents = examiner.control.parents.get(name);
            NodeRow {
                node: name.clone(),
                frames: node.frames,
                bytes: node.bytes,
                retries: node.retries,
                duty_percent: round(node.air_us as f64 / 1e4 / duration_s, 1e3),
                rssi_dbm: node.rssi_dbm().map(|dbm| round(dbm, 10.0)),
                first_s: node.first_s,
                last_s: node.last_s,
                longest_pause_s: node.pause.long_s,
                parents: parents.map_or(Vec::new(), |parents| parents.list.clone()),
                parent_changes: parents.map_or(0, |parents| parents.moves.count),
            }
        });
        let links = stations.links.iter().map(|((from, to), link)| LinkRow {
            from: from.clone(),
            to: to.clone(),
            frames: link.frames,
            attempts: link.attempts,
            retries: link.retries,
            acknowledged: link.acknowledged,
            collided: link.collided,
            lost: link.lost.count + link.lost_in_collisions.count,
            rssi_dbm: link.rssi_dbm().map(|dbm| round(dbm, 10.0)),
        });
        Self {
            frames: stations.frames,
            duration_s: stations.last_s,
            findings: findings::all(examiner),
            nodes: nodes.collect(),
            links: links.collect(),
            flows: examiner
                .flows
                .flows
                .iter()
                .map(|(_, flow)| FlowRow::of(flow))
                .collect(),
        }
    }

    /// Prints the findings, each with its frames.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn print_findings(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let title = match self.findings.len() {
            0 => "nothing found that is wrong".to_owned(),
            1 => "1 finding".to_owned(),
            many => format!("{many} findings, worst first"),
        };
        let head = format!("{} frames in {:.1} s: ", self.frames, self.duration_s);
        writeln!(out, "{head}{}", look.paint(Style::new().bold(), &title))?;
        for (finding, number) in self.findings.iter().zip(1..) {
            let style = match finding.severity {
                80.. => AnsiColor::Red.on_default().bold(),
                50.. => AnsiColor::Yellow.on_default(),
                _ => Style::new(),
            };
            let head = format!("{number:>3}  ");
            look.folded(out, (&head, head.len()), 5, style, &finding.sentence)?;
            if !finding.frames.is_empty() {
                let frames: Vec<String> = finding
                    .frames
                    .iter()
                    .map(|frame| format!("#{frame}"))
                    .collect();
                writeln!(out, "     frames {}", frames.join(" "))?;
            }
        }
        Ok(())
    }

    /// The columns of the table of nodes, and its rows.
    pub fn node_table(&self) -> (&'static [&'static str], Vec<Vec<String>>) {
        let rows = self.nodes.iter().map(|node| {
            vec![
                node.node.clone(),
                node.frames.to_string(),
                node.retries.to_string(),
                format!("{:.2}", node.duty_percent),
                node.rssi_dbm
                    .map_or(String::new(), |dbm| format!("{dbm:.0}")),
                format!("{:.1}", node.longest_pause_s),
                match node.parent_changes {
                    0 => String::new(),
                    moves => moves.to_string(),
                },
            ]
        });
        (
            &[
                "node", "frames", "retries", "duty %", "RSSI dBm", "pause s", "moves",
            ],
            rows.collect(),
        )
    }

    /// The columns of the table of links, and its rows.
    pub fn link_table(&self) -> (&'static [&'static str], Vec<Vec<String>>) {
        let rows = self
            .links
            .iter()
            .filter(|link| link.to != "broadcast")
            .map(|link| {
                vec![
                    format!("{} → {}", link.from, link.to),
                    link.frames.to_string(),
                    link.retries.to_string(),
                    link.collided.to_string(),
                    link.lost.to_string(),
                    link.rssi_dbm
                        .map_or(String::new(), |dbm| format!("{dbm:.0}")),
                ]
            });
        (
            &["link", "frames", "retries", "collided", "lost", "RSSI dBm"],
            rows.collect(),
        )
    }

    /// The columns of the table of flows, and its rows.
    pub fn flow_table(&self) -> (&'static [&'static str], Vec<Vec<String>>) {
        let rows = self.flows.iter().flat_map(|flow| {
            let ways = [
                (&flow.client, &flow.server, &flow.client_to_server),
                (&flow.server, &flow.client, &flow.server_to_client),
            ];
            ways.map(|(from, to, way)| {
                let again: u64 = way.retransmissions.iter().map(|again| again.segments).sum();
                let seconds = flow.end_s - flow.start_s;
                let kbps = if seconds > 0.0 {
                    way.bytes as f64 * 8e-3 / seconds
                } else {
                    0.0
                };
                vec![
                    format!("{from} → {to}"),
                    way.bytes.to_string(),
                    format!("{kbps:.1}"),
                    way.segments.to_string(),
                    again.to_string(),
                    way.zero_windows.to_string(),
                    flow.ended.to_owned(),
                ]
            })
        });
        let rows = rows.filter(|row| row[1] != "0" || row[3] != "0");
        (
            &[
                "flow", "bytes", "kb/s", "segments", "again", "closed", "ended",
            ],
            rows.collect(),
        )
    }
}

impl FlowRow {
    fn of(flow: &Flow) -> Self {
        let way = |way: usize| {
            let way = &flow.ways[way];
            let again = way.again.iter().filter(|(_, again)| again.events.count > 0);
            WayRow {
                bytes: way.bytes,
                segments: way.sent,
                retransmissions: again
                    .map(|(cause, again)| AgainRow {
                        cause,
                        segments: again.events.count,
                        frames: again.events.frames.clone(),
                    })
                    .collect(),
                window_min: way.window.map(|(least, _)| least),
                window_max: way.window.map(|(_, most)| most),
                zero_windows: way.closed.count,
                zero_window_s: way.closed_s,
            }
        };
        let ended = match flow.reset {
            Some(_) => "reset",
            None if flow.is_closed() => "closed",
            None => "open",
        };
        Self {
            client: flow.ends[0].clone(),
            server: flow.ends[1].clone(),
            start_s: flow.span_s.0,
            end_s: flow.span_s.1,
            ended,
            syns: flow.syns.count,
            client_to_server: way(0),
            server_to_client: way(1),
        }
    }
}
