//! A router in Prometheus' words.
//!
//! Source: Prometheus' text exposition format, version 0.0.4. Base units, counters end in
//! `_total`.

use std::fmt::Write as _;

use super::snapshot::{FlowRow, MoteRow, Others, Snapshot, Traffic};

/// What the text is, for HTTP.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that [`Snapshot`] has. What has no row of its own is in one with the labels `others`, so
/// that sums over a family are those of all.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    of_the_router(&mut page, snapshot);
    let flows: Vec<_> = snapshot.flows.iter().map(flow_labels).collect();
    let flows: Vec<_> = flows.into_iter().zip(&snapshot.flows).collect();
    let motes: Vec<_> = snapshot.motes.iter().map(mote_labels).collect();
    let motes: Vec<_> = motes.into_iter().zip(&snapshot.motes).collect();
    let traffic = flows.iter().map(|(labels, row)| (&**labels, &row.traffic));
    let traffic = traffic.chain(others(OTHER_FLOWS, &snapshot.other_flows));
    of_traffic(&mut page, "flow", &traffic.collect::<Vec<_>>());
    of_round_trips(&mut page, &flows);
    let traffic = motes.iter().map(|(labels, row)| (&**labels, &row.traffic));
    let traffic = traffic.chain(others(OTHER_MOTES, &snapshot.other_motes));
    of_traffic(&mut page, "mote", &traffic.collect::<Vec<_>>());
    page.family("motet_flows", "gauge", "Flows that are known, in all.");
    let known = snapshot.flows.len() + snapshot.other_flows.count;
    page.sample("motet_flows", "", known as f64);
    page.family("motet_motes", "gauge", "Motes that are known, in all.");
    let known = snapshot.motes.len() + snapshot.other_motes.count;
    page.sample("motet_motes", "", known as f64);
    page.family("motet_mote_flows", "gauge", "Flows that are known.");
    for (labels, mote) in &motes {
        page.sample("motet_mote_flows", labels, mote.flows as f64);
    }
    page.family(
        "motet_mote_hops",
        "gauge",
        "Hops to our own border router, by way of the mote's parent.",
    );
    for (labels, mote) in &motes {
        let parent = mote.parent.map(|parent| parent.to_string());
        let labels = format!("{labels},parent=\"{}\"", parent.unwrap_or_default());
        page.maybe(
            "motet_mote_hops",
            &labels,
            mote.hops.map(|hops| hops as f64),
        );
    }
    page.text
}

fn flow_labels(flow: &FlowRow) -> String {
    format!(
        "mote=\"{}\",mote_port=\"{}\",peer=\"{}\",peer_port=\"{}\"",
        flow.mote, flow.mote_port, flow.peer, flow.peer_port
    )
}

/// What has no row of its own, where there is anything.
fn others<'a>(
    labels: &'static str,
    others: &'a Others,
) -> impl Iterator<Item = (&'a str, &'a Traffic)> {
    let row = (others.count > 0).then_some((labels, &others.traffic));
    row.into_iter()
}

const OTHER_FLOWS: &str =
    "mote=\"others\",mote_port=\"others\",peer=\"others\",peer_port=\"others\"";
const OTHER_MOTES: &str = "mote=\"others\"";

fn mote_labels(mote: &MoteRow) -> String {
    format!("mote=\"{}\"", mote.mote)
}

fn of_the_router(page: &mut Page, snapshot: &Snapshot) {
    let name = "motet_router_info";
    page.family(name, "gauge", "Policy and interface of the router.");
    let (policy, interface) = (&snapshot.policy, &snapshot.interface);
    let labels = format!("policy=\"{policy}\",interface=\"{interface}\"");
    page.sample(name, &labels, 1.0);
    let name = "motet_router_uptime_seconds";
    page.family(name, "gauge", "How long the router has run.");
    page.sample(name, "", snapshot.uptime_s);
    let name = "motet_fairness_jain";
    page.family(name, "gauge", "Jain's index of the motes' goodputs.");
    page.maybe(name, "window=\"1min\"", snapshot.jain_1min);
    page.maybe(name, "window=\"10min\"", snapshot.jain_10min);
    let name = "motet_fairness_max_min_ratio";
    page.family(name, "gauge", "The greatest goodput over the least.");
    page.maybe(name, "window=\"1min\"", snapshot.max_min_1min);
    page.maybe(name, "window=\"10min\"", snapshot.max_min_10min);
    let name = "motet_admission_window";
    page.family(name, "gauge", "Flows that may be in the mesh at a time.");
    page.maybe(name, "", snapshot.window.map(|flows| flows as f64));
    let name = "motet_admission_inside";
    page.family(name, "gauge", "Flows that are in the mesh.");
    page.maybe(name, "", snapshot.inside.map(|flows| flows as f64));
    let name = "motet_spacing_seconds";
    page.family(name, "gauge", "Time between two packets.");
    page.maybe(name, "", snapshot.spacing_ms.map(|ms| ms / 1e3));
    let name = "motet_router_events_total";
    page.family(name, "counter", "Events since the router began.");
    let counters = serde_json::to_value(snapshot.counters).unwrap_or_default();
    for (event, count) in counters.as_object().into_iter().flatten() {
        let labels = format!("event=\"{event}\"");
        page.maybe(name, &labels, count.as_f64());
    }
}

fn of_traffic(page: &mut Page, who: &str, rows: &[(&str, &Traffic)]) {
    let name = format!("motet_{who}_bytes_total");
    page.family(&name, "counter", "New bytes of TCP's streams.");
    for (labels, traffic) in rows {
        let up = format!("{labels},direction=\"up\"");
        page.sample(&name, &up, traffic.bytes_up as f64);
        let down = format!("{labels},direction=\"down\"");
        page.sample(&name, &down, traffic.bytes_down as f64);
    }
    let name = format!("motet_{who}_goodput_bits_per_second");
    page.family(&name, "gauge", "Goodput, both ways.");
    for (labels, traffic) in rows {
        let minute = format!("{labels},window=\"1min\"");
        page.sample(&name, &minute, traffic.goodput_1min_kbps * 1e3);
        let minutes = format!("{labels},window=\"10min\"");
        page.sample(&name, &minutes, traffic.goodput_10min_kbps * 1e3);
    }
    let columns: [Column; 6] = [
        ("packets_total", "counter", "Packets, both ways.", |row| {
            row.packets as f64
        }),
        (
            "retransmissions_total",
            "counter",
            "Segments that were sent again.",
            |row| row.retransmissions as f64,
        ),
        ("packets_held", "gauge", "Packets that are held.", |row| {
            row.held_now as f64
        }),
        (
            "held_packets_total",
            "counter",
            "Packets that were held.",
            |row| row.held_packets as f64,
        ),
        (
            "held_seconds_total",
            "counter",
            "How long packets were held.",
            |row| row.held_s,
        ),
        (
            "held_longest_seconds",
            "gauge",
            "The longest that a packet was held.",
            |row| row.held_longest_ms / 1e3,
        ),
    ];
    for (suffix, kind, help, value) in columns {
        let name = format!("motet_{who}_{suffix}");
        page.family(&name, kind, help);
        for (labels, traffic) in rows {
            page.sample(&name, labels, value(traffic));
        }
    }
}

/// End of a name, kind, help, and the value.
type Column = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Traffic) -> f64,
);

fn of_round_trips(page: &mut Page, flows: &[(String, &FlowRow)]) {
    let side = |labels: &str, side| format!("{labels},side=\"{side}\"");
    let name = "motet_flow_rtt_seconds";
    let help = "Smoothed round trip on either side of the router.";
    page.family(name, "gauge", help);
    for (labels, row) in flows {
        page.maybe(name, &side(labels, "mesh"), row.mesh_rtt_ms.map(seconds));
        page.maybe(name, &side(labels, "wired"), row.wired_rtt_ms.map(seconds));
    }
    let name = "motet_flow_rtt_variation_seconds";
    page.family(name, "gauge", "Its smoothed mean deviation.");
    for (labels, row) in flows {
        let (mesh, wired) = (row.mesh_rtt_variation_ms, row.wired_rtt_variation_ms);
        page.maybe(name, &side(labels, "mesh"), mesh.map(seconds));
        page.maybe(name, &side(labels, "wired"), wired.map(seconds));
    }
}

fn seconds(ms: f64) -> f64 {
    ms / 1e3
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            labels => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    /// What is not known has no sample.
    fn maybe(&mut self, name: &str, labels: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.sample(name, labels, value);
        }
    }
}
