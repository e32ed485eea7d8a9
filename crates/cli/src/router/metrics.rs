//! A router in Prometheus' words.
//!
//! Source: Prometheus' text exposition format, version 0.0.4. Base units, counters end in
//! `_total`.

use std::fmt::Write as _;

use super::snapshot::{FlowRow, MoteRow, Snapshot, Traffic};

/// The text's media type, for HTTP (Prometheus' exposition format).
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that [`Snapshot`] has. What has no row of its own is summed up in gauges: a flow that
/// gets a row leaves that sum, which a counter never does.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    of_the_router(&mut page, snapshot);
    let flows: Vec<_> = snapshot.flows.iter().map(flow_labels).collect();
    let flows: Vec<_> = flows.into_iter().zip(&snapshot.flows).collect();
    let motes: Vec<_> = snapshot.motes.iter().map(mote_labels).collect();
    let motes: Vec<_> = motes.into_iter().zip(&snapshot.motes).collect();
    let traffic = flows.iter().map(|(labels, row)| (&**labels, &row.traffic));
    of_traffic(&mut page, "flow", Sum::Own, &traffic.collect::<Vec<_>>());
    of_round_trips(&mut page, &flows);
    let traffic = motes.iter().map(|(labels, row)| (&**labels, &row.traffic));
    of_traffic(&mut page, "mote", Sum::Own, &traffic.collect::<Vec<_>>());
    for (what, others) in [
        ("flows", &snapshot.other_flows),
        ("motes", &snapshot.other_motes),
    ] {
        let name = format!("motet_other_{what}");
        let help = format!("Those of {what} that have no row of their own.");
        page.family(&name, "gauge", &help);
        page.sample(&name, "", others.count as f64);
        let all = [("", &others.traffic)];
        of_traffic(&mut page, &format!("other_{what}"), Sum::Others, &all);
    }
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
    of_places(&mut page, &motes);
    page.text
}

/// Where the motes of our own border router are, and how good its links to them are.
fn of_places(page: &mut Page, motes: &[(String, &MoteRow)]) {
    let name = "motet_mote_hops";
    let help = "Hops to our own border router, by way of the mote's parent.";
    page.family(name, "gauge", help);
    for (labels, mote) in motes {
        let place = &mote.place;
        let parent = place.parent.map(|parent| parent.to_string());
        let labels = format!("{labels},parent=\"{}\"", parent.unwrap_or_default());
        page.maybe(name, &labels, place.hops.map(|hops| hops as f64));
    }
    let name = "motet_mote_rssi_dbm";
    page.family(name, "gauge", "Signal strength of the mote's frames.");
    for (labels, mote) in motes {
        page.maybe(name, labels, mote.place.rssi_dbm);
    }
    let name = "motet_mote_etx";
    let help = "Attempts for each frame to the mote that it acknowledged.";
    page.family(name, "gauge", help);
    for (labels, mote) in motes {
        page.maybe(name, labels, mote.place.etx);
    }
}

fn flow_labels(flow: &FlowRow) -> String {
    format!(
        "mote=\"{}\",mote_port=\"{}\",peer=\"{}\",peer_port=\"{}\"",
        flow.mote, flow.mote_port, flow.peer, flow.peer_port
    )
}

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

/// Whether a sum is over one flow or mote, or over all that have no row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    /// One flow's or mote's traffic: what is counted only grows.
    Own,
    /// The traffic of all that have no row at the moment: nothing is a counter.
    Others,
}

impl Sum {
    /// How the family of `name` is called, and its kind: a counter is where it ends in `_total`.
    fn family(self, who: &str, name: &str) -> (String, &'static str) {
        match (self, name.strip_suffix("_total")) {
            (Self::Own, Some(_)) => (format!("motet_{who}_{name}"), "counter"),
            (Self::Others, Some(name)) => (format!("motet_{who}_{name}"), "gauge"),
            (_, None) => (format!("motet_{who}_{name}"), "gauge"),
        }
    }
}

fn of_traffic(page: &mut Page, who: &str, sum: Sum, rows: &[(&str, &Traffic)]) {
    let with = |labels: &str, label: &str| match labels {
        "" => label.to_owned(),
        labels => format!("{labels},{label}"),
    };
    let (name, kind) = sum.family(who, "bytes_total");
    page.family(&name, kind, "New bytes of TCP's streams.");
    for (labels, traffic) in rows {
        let up = with(labels, "direction=\"up\"");
        page.sample(&name, &up, traffic.bytes_up as f64);
        let down = with(labels, "direction=\"down\"");
        page.sample(&name, &down, traffic.bytes_down as f64);
    }
    let (name, kind) = sum.family(who, "goodput_bits_per_second");
    page.family(&name, kind, "Goodput, both ways.");
    for (labels, traffic) in rows {
        let minute = with(labels, "window=\"1min\"");
        page.sample(&name, &minute, traffic.goodput_1min_kbps * 1e3);
        let minutes = with(labels, "window=\"10min\"");
        page.sample(&name, &minutes, traffic.goodput_10min_kbps * 1e3);
    }
    for (name, help, value) in COLUMNS {
        let (name, kind) = sum.family(who, name);
        page.family(&name, kind, help);
        for (labels, traffic) in rows {
            page.sample(&name, labels, value(traffic));
        }
    }
}

/// End of a name, help, and the value.
type Column = (&'static str, &'static str, fn(&Traffic) -> f64);

const COLUMNS: [Column; 6] = [
    ("packets_total", "Packets, both ways.", |row| {
        row.packets as f64
    }),
    (
        "retransmissions_total",
        "Segments that were sent again.",
        |row| row.retransmissions as f64,
    ),
    ("packets_held", "Packets that are held.", |row| {
        row.held_now as f64
    }),
    ("held_packets_total", "Packets that were held.", |row| {
        row.held_packets as f64
    }),
    ("held_seconds_total", "How long packets were held.", |row| {
        row.held_s
    }),
    (
        "held_longest_seconds",
        "The longest that a packet was held.",
        |row| row.held_longest_ms / 1e3,
    ),
];

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

    /// Writes a sample; none where the value is unknown.
    fn maybe(&mut self, name: &str, labels: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.sample(name, labels, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::snapshot::tests::{crowded, few_carry};
    use std::collections::HashMap;

    /// The samples of all families of a kind.
    fn samples(page: &str, kind: &str) -> HashMap<String, f64> {
        let families: Vec<_> = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|line| line.strip_suffix(kind))
            .map(str::trim)
            .collect();
        let rows = page.lines().filter(|line| !line.starts_with('#'));
        let rows = rows.map(|line| line.rsplit_once(' ').unwrap());
        let of_kind = rows.filter(|(series, _)| {
            let name = series.split('{').next().unwrap();
            families.contains(&name)
        });
        of_kind
            .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn no_counter_goes_back_when_a_flow_gets_a_row() {
        let before = crowded(8_192, |n| 10 + few_carry(n));
        // All go on, and one that had no row carries much.
        let quiet = 8_191;
        let after = crowded(8_192, |n| {
            20 + few_carry(n) + if n == quiet { 100_000 } else { 0 }
        });
        let has_row = |snapshot: &Snapshot| {
            let mut flows = snapshot.flows.iter();
            flows.any(|flow| flow.peer_port == quiet)
        };
        assert_eq!((has_row(&before), has_row(&after)), (false, true));
        let pages = [&before, &after].map(text);
        let [first, second] = [&pages[0], &pages[1]].map(|page| samples(page, "counter"));
        let mut compared = 0;
        for (series, count) in &first {
            if let Some(later) = second.get(series) {
                assert!(later >= count, "{series}: {count}, then {later}");
                compared += 1;
            }
        }
        assert!(compared > 2_000, "{compared}");
        // What a counter is, and what is none, their names say.
        assert!(first.keys().all(|name| name.contains("_total")));
        let gauges = samples(&pages[0], "gauge");
        assert!(!gauges.keys().any(|name| name.contains("_total")));
        assert_eq!(gauges["motet_other_flows"], 7_936.0);
        assert_eq!(gauges["motet_flows"], 8_192.0);
        let named: f64 = first
            .iter()
            .filter(|(name, _)| name.starts_with("motet_flow_bytes_total"))
            .map(|(_, bytes)| bytes)
            .sum();
        let rest = gauges["motet_other_flows_bytes{direction=\"up\"}"];
        assert_eq!(named + rest, 8_192.0 * 10.0 + 82.0 * 1_000.0);
    }

    #[test]
    fn a_crowd_makes_a_page_that_a_database_bears() {
        let page = text(&crowded(8_192, few_carry));
        assert!(page.lines().count() < 10_000, "{}", page.lines().count());
    }

    #[test]
    fn the_dashboard_names_metrics_that_exist() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../packaging/grafana/motet-router.json"
        );
        let dashboard = std::fs::read_to_string(file).unwrap();
        let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
        let page = text(&crowded(8_192, few_carry));
        let mut named = 0;
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let expression = target["expr"].as_str().unwrap();
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let names = expression.split(|c| !is_name(c));
                for name in names.filter(|name| name.starts_with("motet_")) {
                    assert!(page.contains(&format!("# TYPE {name} ")), "{name}");
                    named += 1;
                }
            }
        }
        assert!(named >= 16, "{named}");
    }
}
