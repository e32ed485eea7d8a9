//! No run of a scenario exceeds its bound: those that did, and drawn ones.

use std::fmt::Write;

use motet::random::Rng;
use rayon::prelude::*;

use super::*;

/// Goodput and bound of each run of a scenario, kb/s.
fn measured(text: &str) -> Vec<[f64; 2]> {
    let plan = plan(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let runs = results(&plan);
    let of_run = |run: &RunResult| {
        assert!(run.failure.is_none(), "{text}: {:?}", run.failure);
        run.bound_kbps.map(|bound| [run.goodput_kbps(), bound])
    };
    runs.iter().filter_map(of_run).collect()
}

/// A radio that backs off by itself does so with the standard's exponent, whatever the MAC has.
/// Between motes that compress headers for the border router only, segments are shorter; between
/// others, with the header that most segments have, they would take one frame more. And of long
/// backoffs chance spares much, even in a thousand frames.
#[test]
fn runs_that_exceeded_a_bound_do_not() {
    for text in [
        "duration_s = 30\nwarmup_s = 6\n[topology]\nchain = 2\njoining = \"static\"\n[radio]\n\
         profile = \"rcp\"\n[stack]\nhold_ms = 7\nbe_min = 8\n[[flow]]\n",
        "duration_s = 60\nwarmup_s = 10\n[topology]\nchain = 7\njoining = \"static\"\n[radio]\n\
         profile = \"nrf52840\"\n[stack]\nforwarding = \"cit\"\npacing = \"off\"\nbe_min = 8\n\
         mss_frames = 6\ntimestamps = false\n[[flow]]\nfrom = 5\nto = 7\n",
        "seeds = 2\nduration_s = 200\n[topology]\nchain = 2\njoining = \"static\"\n[radio]\n\
         profile = \"nrf52840\"\n[stack]\ncompression = \"tcphc\"\nretry_delay_ms = 5\n\
         mss_frames = 11\nack_every = 255\n[[flow]]\nfrom = 1\nto = 2\n",
        "seed = 1\nseeds = 48\nduration_s = 58\n[topology]\nchain = 1\njoining = \"static\"\n[radio]\n\
         profile = \"nrf52840\"\n[stack]\ncompression = \"none\"\npacing = \"off\"\nbe_min = 8\n\
         mss_frames = 2\nwindow_segments = 12\n[wire]\ndelay_ms = 1\nhost_ack_every = 255\n\
         host_ack_delay_ms = 500\n[[flow]]\n",
    ] {
        let runs = measured(text);
        assert!(!runs.is_empty(), "{text}");
        let part = |[goodput, bound]: &[f64; 2]| goodput / bound;
        let nearest = runs.iter().map(part).fold(0.0, f64::max);
        assert!((0.2..1.0).contains(&nearest), "{nearest}: {text}");
    }
}

/// A scenario of one flow, drawn at random.
fn drawn(number: u64) -> String {
    let mut rng = Rng::from_seed([62, number]);
    let mut any = |count: u32| rng.below(count);
    let profile = ["hamilton", "telosb", "nrf52840", "rcp", "ideal"][any(5) as usize];
    let hops = 1 + any(8);
    let mut text = format!("seed = {number}\nduration_s = 20\nwarmup_s = 5\n[topology]\n");
    let nodes = match any(3) {
        0 => 1 + any(6),
        _ => hops,
    };
    let place = if nodes == hops { "chain" } else { "floor" };
    let hops_of_floor = if place == "floor" {
        "floor_hops = 1\n"
    } else {
        ""
    };
    let channels = ["single", "single", "multi"][any(3) as usize];
    let _ = write!(
        text,
        "{place} = {nodes}\n{hops_of_floor}joining = \"static\"\n[radio]\nprofile = \"{profile}\"\n\
         channels = \"{channels}\"\nframe_loss = {}\n[stack]\nmss_frames = {}\nwindow_segments = {}\n\
         compression = \"{}\"\ntimestamps = {}\n",
        [0.0, 0.0, 0.01][any(3) as usize],
        1 + any(12),
        2 + any(14),
        ["auto", "none", "tcphc"][any(3) as usize],
        any(2) == 0,
    );
    if any(2) == 0 && profile != "rcp" {
        let _ = write!(text, "pacing = \"off\"\nbe_min = {}\n", any(9));
    }
    if any(2) == 0 && matches!(profile, "telosb" | "nrf52840") && nodes > 1 && nodes == hops {
        text += "forwarding = \"cit\"\n";
    }
    if any(2) == 0 {
        text += "[security]\nlab_key = true\n";
    }
    let flow = match any(3) {
        0 => format!("[wire]\ndelay_ms = 1\n[[flow]]\nfrom = \"host\"\nto = {nodes}\n"),
        1 => "[[flow]]\n".to_owned(),
        _ => "[wire]\nhost_ack_every = 8\nhost_ack_delay_ms = 500\n[[flow]]\n".to_owned(),
    };
    text + &flow
}

#[test]
fn no_drawn_scenario_exceeds_its_bound() {
    let scenarios: Vec<String> = (0..60).map(drawn).collect();
    let runs: Vec<(Vec<[f64; 2]>, String)> = scenarios
        .into_par_iter()
        .map(|text| (measured(&text), text))
        .collect();
    assert!(runs.iter().filter(|(runs, _)| !runs.is_empty()).count() >= 40);
    let mut nearest = 0.0_f64;
    for (runs, text) in &runs {
        for [goodput, bound] in runs {
            assert!(goodput < bound, "{goodput} of {bound} kb/s:\n{text}");
            nearest = nearest.max(goodput / bound);
        }
    }
    assert!(nearest > 0.8, "{nearest}: a bound that nothing comes near");
}
