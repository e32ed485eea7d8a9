//! The status of a router as a table for people, in a plain terminal.

use std::net::Ipv6Addr;

use super::snapshot::{Counters, FlowRow, MoteRow, Others, RadioRow, Snapshot, Traffic};
use crate::{
    grid::{self, Grid, Head},
    hosts,
    output::{BOLD, DIM},
};

/// The lines of the table, without line feeds.
pub(super) fn lines(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = summary(snapshot);
    let motes: Vec<Vec<String>> = snapshot.motes.iter().map(mote_cells).collect();
    let flows: Vec<Vec<String>> = snapshot.flows.iter().map(flow_cells).collect();
    if motes.is_empty() {
        lines.push("No TCP flow has passed yet.".to_owned());
        return lines;
    }
    if let Some(places) = places(snapshot) {
        lines.push(String::new());
        lines.extend(places);
    }
    lines.push(String::new());
    lines.extend(grid(&MOTE_HEADS, &motes));
    lines.extend(further("motes", &snapshot.other_motes));
    if !flows.is_empty() {
        lines.push(String::new());
        lines.extend(grid(&FLOW_HEADS, &flows));
        lines.extend(further("flows", &snapshot.other_flows));
    }
    lines
}

/// The motes' names and addresses, as lines of hosts(5).
pub(super) fn hosts_lines(snapshot: &Snapshot) -> Vec<String> {
    let motes = snapshot.motes.iter();
    let named = motes.filter_map(|mote| Some((mote.mote, mote.place.name.as_ref()?)));
    named.map(|(addr, name)| hosts::line(addr, name)).collect()
}

/// Where the motes of our own border router are, if it names any.
fn places(snapshot: &Snapshot) -> Option<Vec<String>> {
    let ours = snapshot
        .motes
        .iter()
        .filter(|mote| mote.place.name.is_some());
    let name_of = |addr: Ipv6Addr| {
        let mote = snapshot.motes.iter().find(|mote| mote.mote == addr);
        mote.and_then(|mote| mote.place.name.as_deref())
    };
    let cells = |mote: &MoteRow| {
        let place = &mote.place;
        let parent = match (place.parent, place.hops) {
            (_, Some(1)) => "router",
            (Some(parent), _) => name_of(parent).unwrap_or("-"),
            (None, _) => "-",
        };
        let figure = |value: Option<f64>, decimals: usize, unit: &str| match value {
            Some(value) => format!("{value:.decimals$}{unit}"),
            None => "-".to_owned(),
        };
        vec![
            place.name.clone().unwrap_or_default(),
            mote.mote.to_string(),
            place.hops.map_or("-".to_owned(), |hops| hops.to_string()),
            parent.to_owned(),
            figure(place.rssi_dbm, 0, " dBm"),
            figure(place.etx, 2, ""),
        ]
    };
    let rows: Vec<Vec<String>> = ours.map(cells).collect();
    (!rows.is_empty()).then(|| grid(&PLACE_HEADS, &rows))
}

const PLACE_HEADS: [(&str, u8); 6] = [
    ("mote", 0),
    ("address", 0),
    ("hops", 2),
    ("parent", 0),
    ("signal", 0),
    ("ETX", 1),
];

/// The radio in one line.
fn radio_line(radio: &RadioRow) -> String {
    let state = match (radio.ready, radio.restarts) {
        (false, _) => ", away".to_owned(),
        (true, 0) => String::new(),
        (true, 1) => ", restarted once".to_owned(),
        (true, times) => format!(", restarted {times} times"),
    };
    format!(
        "radio {} at {}, EUI-64 {}, channel {}, PAN {:#06x}{state}",
        radio.firmware, radio.url, radio.eui64, radio.channel, radio.pan
    )
}

/// One line for all that has no line of its own.
fn further(what: &str, others: &Others) -> Option<String> {
    let Others { count, traffic } = others;
    (*count > 0).then(|| {
        format!(
            "and {count} further {what}, together {:.1} kb/s, {} up, {} down",
            traffic.goodput_1min_kbps,
            size(traffic.bytes_up),
            size(traffic.bytes_down),
        )
    })
}

fn summary(snapshot: &Snapshot) -> Vec<String> {
    let queue = snapshot.nfqueue.map(|number| format!(", queue {number}"));
    let (window, inside) = (snapshot.window, snapshot.inside.unwrap_or(0));
    let window = window.map(|window| format!(" ({inside} of {window} flows inside)"));
    let spacing = snapshot.spacing_ms.map(|ms| format!(" (every {ms:.0} ms)"));
    let head = format!(
        "{BOLD}{}{BOLD:#}{}, {}{}{}, for {}",
        snapshot.interface,
        queue.unwrap_or_default(),
        snapshot.policy,
        window.unwrap_or_default(),
        spacing.unwrap_or_default(),
        span(snapshot.uptime_s),
    );
    let figure = |value: Option<f64>, decimals| match value {
        Some(value) => format!("{value:.decimals$}"),
        None => "-".to_owned(),
    };
    let fairness = format!(
        "Jain {} over 1 min, {} over 10; max/min {}, {}",
        figure(snapshot.jain_1min, 3),
        figure(snapshot.jain_10min, 3),
        figure(snapshot.max_min_1min, 2),
        figure(snapshot.max_min_10min, 2),
    );
    let remarks = remarks(&snapshot.counters);
    let mut lines = vec![head];
    lines.extend(snapshot.radio.as_ref().map(radio_line));
    lines.push(fairness);
    if !remarks.is_empty() {
        lines.push(remarks.join("; "));
    }
    lines
}

/// What was counted that is worth a word, a remark each.
fn remarks(counters: &Counters) -> Vec<String> {
    let passed = [
        (counters.table_full, "because the flow table was full"),
        (counters.mote_full, "because their mote had too many flows"),
        (counters.queue_full, "because too many were held"),
    ];
    let unheld = passed.iter().filter(|(count, _)| *count > 0);
    let unheld = unheld.map(|(count, why)| format!("{count} passed at once {why}"));
    let events = [
        (
            counters.dropped,
            "packets of no connection dropped beyond their part of the air",
        ),
        (counters.resent, "lost segments sent again from here"),
        (
            counters.overruns,
            "times the kernel let packets pass unseen",
        ),
        (counters.gone, "held packets went with their interface"),
        (counters.elsewhere, "packets of other interfaces"),
        (
            counters.forged,
            "dropped because their source claims to be inside",
        ),
        (
            counters.evicted,
            "packets given up half put together, because others needed their memory",
        ),
        (
            counters.no_memory,
            "fragments without memory to put their packet together in",
        ),
        (counters.rules_restored, "times the rules were put in again"),
    ];
    let events = events.iter().filter(|(count, _)| *count > 0);
    let events = events.map(|(count, what)| format!("{count} {what}"));
    unheld.chain(events).collect()
}

/// Columns with the highest numbers are left out first where there is no room.
const MOTE_HEADS: [(&str, u8); 10] = [
    ("mote", 0),
    ("hops", 1),
    ("flows", 3),
    ("kb/s", 0),
    ("10 min", 4),
    ("up", 2),
    ("down", 2),
    ("held", 5),
    ("on average", 7),
    ("resent", 6),
];

const FLOW_HEADS: [(&str, u8); 10] = [
    ("flow", 0),
    ("kb/s", 0),
    ("10 min", 4),
    ("up", 2),
    ("down", 2),
    ("mesh RTT", 1),
    ("wired RTT", 5),
    ("held", 6),
    ("on average", 7),
    ("resent", 3),
];

fn mote_cells(mote: &MoteRow) -> Vec<String> {
    let place = &mote.place;
    let hops = place.hops.map_or("-".to_owned(), |hops| hops.to_string());
    let mut cells = vec![mote.mote.to_string(), hops, mote.flows.to_string()];
    let (before, after) = traffic_cells(&mote.traffic);
    cells.extend(before);
    cells.extend(after);
    cells
}

fn flow_cells(flow: &FlowRow) -> Vec<String> {
    let end = |addr: Ipv6Addr, port: u16| format!("[{addr}]:{port}");
    let (mote, peer) = (
        end(flow.mote, flow.mote_port),
        end(flow.peer, flow.peer_port),
    );
    let mut cells = vec![format!("{mote} {peer}")];
    let (before, after) = traffic_cells(&flow.traffic);
    cells.extend(before);
    cells.push(round_trip(flow.mesh_rtt_ms, flow.mesh_rtt_variation_ms));
    cells.push(round_trip(flow.wired_rtt_ms, flow.wired_rtt_variation_ms));
    cells.extend(after);
    cells
}

/// Goodput and bytes; then what was held, how long, and what was sent again.
fn traffic_cells(traffic: &Traffic) -> ([String; 4], [String; 3]) {
    let held = traffic.held_packets + traffic.held_now as u64;
    let share = match traffic.packets {
        0 => "-".to_owned(),
        packets => format!("{:.0} %", 100.0 * held as f64 / packets as f64),
    };
    let mean = match traffic.held_packets {
        0 => "-".to_owned(),
        packets => format!("{:.0} ms", 1e3 * traffic.held_s / packets as f64),
    };
    (
        [
            format!("{:.1}", traffic.goodput_1min_kbps),
            format!("{:.1}", traffic.goodput_10min_kbps),
            size(traffic.bytes_up),
            size(traffic.bytes_down),
        ],
        [share, mean, traffic.retransmissions.to_string()],
    )
}

fn round_trip(rtt_ms: Option<f64>, variation_ms: Option<f64>) -> String {
    match (rtt_ms, variation_ms) {
        (Some(rtt), Some(variation)) => format!("{rtt:.0} ±{variation:.0} ms"),
        (Some(rtt), None) => format!("{rtt:.0} ms"),
        _ => "-".to_owned(),
    }
}

/// Bytes, in a unit that leaves three digits or so.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.0} GB", bytes as f64 / 1e9),
    }
}

fn span(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{} min", whole / 60),
        3_600..86_400 => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
        _ => format!("{} days {} h", whole / 86_400, whole / 3_600 % 24),
    }
}

/// The lines of a table: names to the left, figures to the right.
fn grid(heads: &[(&str, u8)], rows: &[Vec<String>]) -> Vec<String> {
    let heads = heads.iter().enumerate().map(|(place, (text, leaves))| {
        let head = Head::new(text, *leaves);
        if place == 0 { head.words() } else { head }
    });
    let mut grid = Grid::new(heads.collect());
    rows.iter().for_each(|row| grid.push(row.clone()));
    let (mut lines, left_out) = grid.lines(grid::columns());
    if !left_out.is_empty() {
        let columns = left_out.join(", ");
        let note = format!("{columns}: no room here, see --json");
        lines.push(format!("{DIM}{note}{DIM:#}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::snapshot::{
        MeshPosition,
        tests::{crowded, few_carry},
    };

    #[test]
    fn a_crowd_is_summed_up_in_one_line_each() {
        let few = lines(&crowded(256, few_carry)).join("\n");
        assert!(!few.contains("further"), "{few}");
        let many = lines(&crowded(8_192, |n| 10 + few_carry(n)));
        assert!(many.len() < 530, "{}", many.len());
        for what in ["flows", "motes"] {
            let line = format!("and 7936 further {what}, together ");
            let found = many.iter().find(|said| said.starts_with(&line));
            assert!(found.unwrap().ends_with("79 kB up, 0 B down"), "{found:?}");
        }
    }

    #[test]
    fn motes_of_our_own_are_named_with_their_parents_and_links() {
        let mut snapshot = crowded(3, few_carry);
        assert_eq!(places(&snapshot), None);
        assert!(hosts_lines(&snapshot).is_empty());
        let nearest = snapshot.motes[1].mote;
        for (row, (name, hops, rssi_dbm)) in snapshot.motes[1..]
            .iter_mut()
            .zip([("mote1", 1, Some(-61.4)), ("mote2", 2, None)])
        {
            row.place = MeshPosition {
                name: Some(name.to_owned()),
                parent: (hops > 1).then_some(nearest),
                hops: Some(hops),
                rssi_dbm,
                etx: rssi_dbm.map(|_| 1.25),
            };
        }
        let lines = places(&snapshot).unwrap();
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let (first, second) = (words(&lines[1]), words(&lines[2]));
        assert_eq!(
            first,
            [
                "mote1",
                "fd00:0:0:1::1",
                "1",
                "router",
                "-61",
                "dBm",
                "1.25"
            ]
        );
        assert_eq!(second, ["mote2", "fd00:0:0:1::2", "2", "mote1", "-", "-"]);
        let hosts = hosts_lines(&snapshot);
        assert_eq!(hosts, ["fd00:0:0:1::1\tmote1", "fd00:0:0:1::2\tmote2"]);
    }

    #[test]
    fn a_radio_is_named_with_its_firmware() {
        let mut snapshot = crowded(0, few_carry);
        let radio = RadioRow {
            url: "spinel+hdlc+uart:///dev/ttyACM0".to_owned(),
            firmware: "OPENTHREAD/1.0".to_owned(),
            eui64: "18b4300000000001".to_owned(),
            channel: 26,
            pan: 0xcd,
            ready: true,
            restarts: 0,
        };
        let expected = "radio OPENTHREAD/1.0 at spinel+hdlc+uart:///dev/ttyACM0, EUI-64 18b4300000000001, channel 26, \
                        PAN 0x00cd";
        snapshot.radio = Some(radio.clone());
        assert_eq!(lines(&snapshot)[1], expected);
        snapshot.radio = Some(RadioRow {
            ready: false,
            ..radio
        });
        assert_eq!(lines(&snapshot)[1], format!("{expected}, away"));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["a".to_owned(), "10.0".to_owned()],
            vec!["long".to_owned(), "±7".to_owned()],
        ];
        let lines = grid(&[("x", 0), ("kb/s", 0)], &rows);
        assert_eq!(lines.get(1).unwrap(), "a     10.0");
        assert_eq!(lines.get(2).unwrap(), "long    ±7");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(size(9_999), "9999 B");
        assert_eq!(size(20_480), "20 kB");
        assert_eq!(size(12_345_678), "12 MB");
        assert_eq!(span(59.9), "59 s");
        assert_eq!(span(7_980.0), "2 h 13 min");
        assert_eq!(span(200_000.0), "2 days 7 h");
        assert_eq!(round_trip(Some(312.4), Some(40.0)), "312 ±40 ms");
        assert_eq!(round_trip(None, None), "-");
    }
}
