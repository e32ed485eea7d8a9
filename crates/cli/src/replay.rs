//! `motet replay`: the network of a capture, as a scenario.
//!
//! Place: `motet-decode` says what the capture shows; this file writes it in the words of a
//! scenario. Left out: what no capture shows, such as settings of CSMA and who disturbs whom: two
//! nodes with a common neighbour that were never heard to talk are taken to disturb each other,
//! as in TCPlp's testbed.

use std::path::PathBuf;

use motet_decode::{CaptureError, Examiner, Seen, SeenFlow};
use motet_lab::air::k7::gain_of_delivery;
use motet_lab::air::profile::Profile;

use crate::error::Error;
use crate::import;
use crate::source::Source;

/// Make a scenario of a capture: its nodes, links with their losses over time, and flows.
///
/// Running the scenario gives a network like the one that was captured. Retries and missing
/// acknowledgments show how much a link loses; where the capture shows no more, defaults stand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet replay air.pcap | motet run -\n  \
                        motet replay home.pcap --key team.key --out again.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Write the scenario to this file.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

/// Runs `motet replay`.
///
/// # Errors
/// [`Error::Input`]: the file is no capture, or shows no network.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let unreadable = |error: CaptureError| args.source.unreadable(&error);
    let (mut capture, mut decoder) = args.source.open(false)?;
    let mut examiner = Examiner::new();
    while let Some(record) = capture.next_record() {
        let record = record.map_err(unreadable)?;
        if !record.link_type.is_supported() {
            return Err(unreadable(CaptureError::LinkType(record.link_type)));
        }
        examiner.observe(&decoder.decode(&record));
    }
    let name = args.source.file.display().to_string();
    let seen = examiner.seen();
    if seen.nodes.len() < 2 || seen.links.is_empty() {
        return Err(Error::input(format!(
            "{name} shows no mesh: no two nodes of IEEE 802.15.4 acknowledge each other's frames"
        )));
    }
    import::write(&scenario(&seen, &name), args.out.as_deref(), args.force)
}

/// The scenario in TOML.
fn scenario(seen: &Seen, name: &str) -> String {
    let mut text = format!("# What {name} shows. Node 0 is the border router.\n");
    for (node, number) in seen.nodes.iter().zip(0..) {
        text += &format!("# {number} is {node}\n");
    }
    let duration_s = seen.duration_s.max(6.0);
    text += &format!(
        "name = {name:?}\nduration_s = {duration_s:.1}\nwarmup_s = 0.0\n\n[topology]\nlinks = [\n"
    );
    let links = links(seen);
    for ((from, to), gain) in &links {
        text += &format!("    [{from}, {to}, {gain:.2}],\n");
    }
    text += "]\n";
    if let Some(parents) = &seen.parents {
        text += &format!("parents = {parents:?}\n");
    }
    text += &stack(seen);
    text += &wire(seen);
    let flows: Vec<&SeenFlow> = seen.flows.iter().take(FLOWS_MAX).collect();
    for flow in &flows {
        text += &flow_text(flow, duration_s);
    }
    if flows.is_empty() {
        text += "\n# The capture shows no TCP flow.\n[[flow]]\n";
    }
    for link in &seen.links {
        for (from_s, to_s, share) in link
            .worse
            .iter()
            .filter(|(from_s, ..)| *from_s < duration_s - 1.0)
        {
            let at_s = from_s.max(0.0);
            text += &format!(
                "\n[[fault]]\nkind = \"link\"\nnode = {}\nto = {}\nat_s = {at_s:.1}\nfor_s = {:.1}\n",
                link.from,
                link.to,
                (to_s - at_s).max(1.0)
            );
            if let Some(gain) = gain(share.sqrt()) {
                text += &format!("gain_db = {gain:.2}\n");
            }
        }
    }
    text
}

/// Gains both ways of every link, and of pairs with a common neighbour that were not heard.
fn links(seen: &Seen) -> std::collections::BTreeMap<(usize, usize), f64> {
    let mut gains = std::collections::BTreeMap::new();
    // A way that is hardly taken is no good one, or routing would have taken it.
    let busiest = seen
        .links
        .iter()
        .map(|link| link.attempts)
        .max()
        .unwrap_or(0);
    for link in &seen.links {
        // An attempt succeeds if the frame arrives and its ACK does. A crowded link loses some by
        // collisions, which the lab makes by itself.
        let gain = match link.acknowledged {
            usual if usual >= COLLISIONS && link.attempts * 20 >= busiest => STRONG_DB,
            share => gain(share.sqrt()).unwrap_or(WEAK_DB),
        };
        for pair in [(link.from, link.to), (link.to, link.from)] {
            let known = gains.entry(pair).or_insert(gain);
            *known = f64::max(*known, gain);
        }
    }
    let direct: Vec<(usize, usize)> = gains.keys().copied().collect();
    for (a, b) in &direct {
        for (_, c) in direct.iter().filter(|(from, to)| from == b && to != a) {
            gains.entry((*a, *c)).or_insert(BEHIND_DB);
        }
    }
    gains
}

/// Settings of the stack that the capture shows.
fn stack(seen: &Seen) -> String {
    let mut text = String::new();
    if let Some(segments) = window(seen) {
        text += &format!("window_segments = {segments}\n");
    }
    if let Some(retry_s) = seen.retry_s {
        // A random part of the delay, half of it in the mean, follows a frame's own time. Naming
        // it turns pacing off, so that the usual one is not named.
        let delay_ms = (2e3 * (retry_s - ATTEMPT_S)).clamp(0.0, 500.0);
        if !(15.0..=75.0).contains(&delay_ms) {
            text += &format!("retry_delay_ms = {}\n", (delay_ms / 5.0).round() as u64 * 5);
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\n[stack]\n{text}"),
    }
}

/// The wire beyond the border router, as far as flows to a host show it.
fn wire(seen: &Seen) -> String {
    let beyond: Vec<&SeenFlow> = seen.flows.iter().filter(|flow| flow.to.is_none()).collect();
    let waits = beyond.iter().filter_map(|flow| flow.beyond_s);
    let wait_s = waits.fold(f64::INFINITY, f64::min);
    let mut text = String::new();
    if wait_s.is_finite() {
        let delay_ms = (5e2 * (wait_s - HANDOVER_S)).clamp(0.0, 10_000.0);
        text += &format!("delay_ms = {delay_ms:.0}\n");
    }
    let lost: u64 = beyond.iter().map(|flow| flow.lost_beyond).sum();
    let sent: u64 = beyond.iter().map(|flow| flow.segments).sum();
    let loss = lost as f64 / sent.max(1) as f64;
    if lost >= 3 && loss >= 0.02 {
        text += &format!("loss = {:.3}\n", loss.min(0.5));
    }
    match text.is_empty() {
        true => text,
        false => format!("\n[wire]\n{text}"),
    }
}

fn gain(delivery: f64) -> Option<f64> {
    gain_of_delivery(delivery, Profile::HAMILTON.noise_dbm())
}

/// The window that flows had, in segments.
fn window(seen: &Seen) -> Option<u64> {
    let of = |flow: &SeenFlow| {
        let segment = u64::from(flow.segment_bytes).max(1);
        Some((flow.window_bytes? + segment / 2) / segment).filter(|segments| *segments > 0)
    };
    seen.flows
        .iter()
        .filter_map(of)
        .max()
        .map(|most| most.clamp(1, WINDOW_MAX))
}

fn flow_text(flow: &SeenFlow, duration_s: f64) -> String {
    let end = |end: Option<usize>| match end {
        Some(node) => node.to_string(),
        None => "\"host\"".to_owned(),
    };
    let kbps = flow.bytes as f64 * 8e-3 / flow.seconds.max(1e-3);
    let mut text = format!(
        "\n# {} B in {:.1} s: {kbps:.1} kb/s\n[[flow]]\nfrom = {}\nto = {}\n",
        flow.bytes,
        flow.seconds,
        end(flow.from),
        end(flow.to)
    );
    match flow.messages {
        Some((interval_s, bytes)) => {
            let (interval_s, bytes) = (interval_s.clamp(0.01, 1e4), bytes.clamp(1, 100_000));
            text += &format!(
                "kind = \"periodic\"\ninterval_s = {interval_s:.2}\nmessage_bytes = {bytes}\n"
            );
        }
        None if flow.is_closed => text += &format!("bytes = {}\n", flow.bytes),
        None => {}
    }
    if flow.start_s >= 0.05 && flow.start_s < duration_s - 1.0 {
        text += &format!("start_s = {:.2}\n", flow.start_s);
    }
    text
}

/// From one attempt to the next without a delay: the frame, the wait for its ACK, CSMA.
const ATTEMPT_S: f64 = 0.009;
/// From the last hop to the wire and back to the air, without any delay there.
const HANDOVER_S: f64 = 0.008;
/// Attempts that succeed on a good link in a busy mesh: the rest are collisions.
const COLLISIONS: f64 = 0.5;
/// A link of which nothing is lost, as in TCPlp's testbed.
const STRONG_DB: f64 = -62.0;
const WEAK_DB: f64 = -101.0;
/// How two nodes hear each other that have a neighbour between them there.
const BEHIND_DB: f64 = -87.0;
/// Flows written.
const FLOWS_MAX: usize = 64;
const WINDOW_MAX: u64 = 32;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use motet_decode::{Capture, Decoder};
    use motet_lab::capture::{Capture as LabCapture, Records};
    use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

    use super::*;

    /// What the air of a scenario shows.
    fn seen(text: &str) -> Seen {
        let plan = Plan::parse(text, Path::new("s.toml"), Overrides::default());
        let plan = plan.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("air.pcap");
        let file = std::fs::File::create(&path).unwrap();
        let captures = Captures {
            air: Some(LabCapture::stream(Box::new(file), Records::Frames).unwrap()),
            ..Captures::default()
        };
        let watch = Watch {
            stop: &AtomicBool::new(false),
            done_ms: &AtomicU64::new(0),
        };
        plan.run(&watch, captures);
        let mut decoder = Decoder::new(&[]);
        let mut examiner = Examiner::new();
        for record in Capture::of_bytes(std::fs::read(&path).unwrap()).unwrap() {
            examiner.observe(&decoder.decode(&record.unwrap()));
        }
        examiner.seen()
    }

    fn kbps(seen: &Seen) -> f64 {
        let bytes: u64 = seen.flows.iter().map(|flow| flow.bytes).sum();
        bytes as f64 * 8e-3 / seen.duration_s
    }

    #[test]
    fn a_replay_carries_what_the_captured_network_did() {
        let chain =
            |hops: u32, more: &str| format!("duration_s = 40\n[topology]\nchain = {hops}\n{more}");
        let cases = [
            chain(1, "[[flow]]\n"),
            chain(3, "[[flow]]\n"),
            chain(2, "[[flow]]\nfrom = \"host\"\nto = 2\n"),
            chain(3, "joining = \"rpl\"\n[[flow]]\n"),
            chain(2, "[wire]\nloss = 0.06\n[[flow]]\n"),
            chain(3, "[stack]\nwindow_segments = 1\n[[flow]]\n"),
            chain(
                2,
                "[[flow]]\nkind = \"periodic\"\ninterval_s = 4\nmessage_bytes = 900\n",
            ),
            chain(
                3,
                "[[fault]]\nkind = \"link\"\nnode = 2\nto = 1\nat_s = 10\nfor_s = 8\n[[flow]]\n",
            ),
        ];
        for case in cases {
            let before = seen(&case);
            let replay = scenario(&before, "air.pcap");
            let [before, after] = [kbps(&before), kbps(&seen(&replay))];
            let change = after / before - 1.0;
            assert!(
                change.abs() < 0.15,
                "{before:.1} became {after:.1}:\n{case}\n{replay}"
            );
        }
    }

    #[test]
    fn a_network_without_flows_has_a_scenario_too() {
        let mut quiet = seen("duration_s = 10\n[topology]\nchain = 2\n[[flow]]\nbytes = 100\n");
        quiet.flows.clear();
        quiet.duration_s = 0.5;
        let text = scenario(&quiet, "a \"name\".pcap");
        let plan = Plan::parse(&text, Path::new("s.toml"), Overrides::default());
        assert!(
            plan.is_ok(),
            "{:?}\n{text}",
            plan.err().map(|error| error.to_string())
        );
    }
}
