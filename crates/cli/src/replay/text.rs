//! The scenario of a capture, in TOML.

use std::collections::BTreeMap;

use motet_decode::{Seen, SeenFlow};
use motet_lab::air::k7::gain_of_delivery;
use motet_lab::air::profile::Profile;

use super::guess::{Guess, OVERHEARD_DB};

/// The scenario in TOML.
pub(super) fn scenario(seen: &Seen, name: &str, guess: &Guess) -> String {
    let mut text = format!("# What {name} shows. Node 0 is the border router.\n");
    for (node, number) in seen.nodes.iter().zip(0..) {
        text += &format!("# {number} is {node}\n");
    }
    let duration_s = seen.duration_s.max(6.0);
    text += &format!(
        "name = {name:?}\nseed = {}\nduration_s = {duration_s:.1}\nwarmup_s = 0.0\n{}\n[topology]\nlinks = [\n",
        guess.seed,
        radio(guess)
    );
    let links = links(guess);
    for ((from, to), gain) in &links {
        text += &format!("    [{from}, {to}, {gain:.2}],\n");
    }
    text += "]\n";
    if let Some(parents) = &seen.parents {
        text += &format!("parents = {parents:?}\n");
    }
    text += &stack(seen, guess);
    text += &wire(seen, guess);
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

/// Gains both ways of every link, and of pairs with a common neighbour as the guess has them.
fn links(guess: &Guess) -> BTreeMap<(usize, usize), f64> {
    let mut gains = BTreeMap::new();
    // Where all links lose alike, a link that seems to lose a little more has met other frames.
    let lossless = match guess.even_loss > 0.0 {
        true => LOSSLESS_BESIDE_NOISE,
        false => LOSSLESS,
    };
    let strong_db = match guess.is_faint {
        true => OVERHEARD_DB,
        false => STRONG_DB,
    };
    for ((a, b), delivery) in &guess.delivery {
        let gain = match delivery / (1.0 - guess.even_loss) {
            whole if whole >= lossless => strong_db,
            share => gain(share).unwrap_or(WEAK_DB),
        };
        gains.insert((*a, *b), gain);
        gains.insert((*b, *a), gain);
    }
    let Some(behind) = guess.apart.gain_db() else {
        return gains;
    };
    let direct: Vec<(usize, usize)> = gains.keys().copied().collect();
    for (a, b) in &direct {
        for (_, c) in direct.iter().filter(|(from, to)| from == b && to != a) {
            gains.entry((*a, *c)).or_insert(behind);
        }
    }
    gains
}

/// The radio, and the loss that all links have.
fn radio(guess: &Guess) -> String {
    let mut text = String::new();
    if guess.profile != "hamilton" {
        text += &format!("profile = {:?}\n", guess.profile);
    }
    if guess.even_loss > 0.0 {
        text += &format!("frame_loss = {:.4}\n", guess.even_loss);
    }
    match text.is_empty() {
        true => text,
        false => format!("\n[radio]\n{text}"),
    }
}

/// Settings of the stack that the capture shows.
fn stack(seen: &Seen, guess: &Guess) -> String {
    let mut text = String::new();
    if let Some(segments) = window(seen) {
        text += &format!("window_segments = {segments}\n");
    }
    if let Some(retry_s) = seen.retry_s.filter(|_| guess.names_delay) {
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
fn wire(seen: &Seen, guess: &Guess) -> String {
    let beyond: Vec<&SeenFlow> = seen.flows.iter().filter(|flow| flow.to.is_none()).collect();
    let waits = beyond.iter().filter_map(|flow| flow.beyond_s);
    let wait_s = waits.fold(f64::INFINITY, f64::min);
    let mut text = String::new();
    if wait_s.is_finite() {
        let delay_ms = (5e2 * (wait_s - HANDOVER_S)).clamp(0.0, 10_000.0);
        text += &format!("delay_ms = {delay_ms:.0}\n");
    }
    if guess.wire_loss > 0.0 {
        text += &format!("loss = {:.3}\n", guess.wire_loss);
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
/// A link that loses less than this loses nothing.
const LOSSLESS: f64 = 0.9995;
const LOSSLESS_BESIDE_NOISE: f64 = 0.97;
/// A link of which nothing is lost, as in TCPlp's testbed.
const STRONG_DB: f64 = -62.0;
const WEAK_DB: f64 = -101.0;
/// Flows written.
const FLOWS_MAX: usize = 64;
const WINDOW_MAX: u64 = 32;
