//! No run exceeds its bound: chains of every kind, lucky ones too.

use rayon::prelude::*;

use super::*;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};

/// A transfer over a chain.
#[derive(Clone, Copy, Debug)]
struct Case {
    options: ChainOptions,
    up: bool,
    len: u64,
    /// With every backoff of a first attempt at its shortest: as lucky as a run can be.
    is_lucky: bool,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let profiles = [
        Profile::HAMILTON,
        Profile::TELOSB,
        Profile::NRF52840,
        Profile::IDEAL,
    ];
    for (number, profile) in (0_u64..).zip(profiles) {
        let is_shared = profile.capabilities.shared_buffer;
        for (hops, deaf, is_multi, mode) in [
            (1, true, false, None),
            (1, false, false, Some(tcphc::Mode::default())),
            (2, true, false, None),
            (3, false, true, Some(tcphc::Mode::default())),
        ] {
            let base = ChainOptions {
                hops,
                deaf,
                profile,
                compression: mode,
                mss_frames: if deaf { 5 } else { 12 },
                window_segments: if deaf { 8 } else { 4 },
                retry_delay: Duration::from_millis(5),
                forwarding: match is_multi && !is_shared {
                    true => Forwarding::Immediate,
                    false => Forwarding::Copy,
                },
                channels: match is_multi && !is_shared {
                    true => Channels::ALL,
                    false => Channels::SINGLE,
                },
                ..ChainOptions::default()
            };
            let seeds = (1..=3).map(|seed| seed + 10 * number);
            let ways = [true, false].into_iter();
            let lens = [300, 2_000, 40_000];
            cases.extend(seeds.zip(lens).flat_map(|(seed, len)| {
                let options = ChainOptions { seed, ..base };
                ways.clone().flat_map(move |up| {
                    [true, false].map(|is_lucky| Case {
                        options,
                        up,
                        len,
                        is_lucky,
                    })
                })
            }));
        }
    }
    cases
}

/// The goodput of a case, its bound and its estimate, kb/s.
fn measured(case: Case) -> [f64; 3] {
    let arena = Arena::new();
    let mut chain = Chain::new(case.options, &arena);
    assert!(chain.join(Duration::from_secs(60)), "{case:?}");
    let (bound, estimate) = (chain.bound_kbps(), chain.estimate_kbps());
    let mut options = case.options.network();
    for node in &mut options.nodes {
        node.mac.be_min = if case.is_lucky { 0 } else { node.mac.be_min };
    }
    let mut network = Network::new(options, &arena).unwrap();
    assert!(network.join(Duration::from_secs(60)), "{case:?}");
    let (mote, host) = (chain.mote(), network.host(0).unwrap());
    let (from, to) = if case.up { (mote, host) } else { (host, mote) };
    let [from_addr, to_addr] = [from, to].map(|node| network.addr(node));
    let content = Content::made([case.options.seed, 1], case.len);
    let reading = network.ends(to, from_addr, &arena);
    let reading = Receiver::checking(PORT, reading, content.clone());
    network.world.set_app(to, App::Receiver(reading));
    let sending = network.ends(from, to_addr, &arena);
    let sending = Sender::new(content, (to_addr, PORT), sending);
    let began = network.world.now();
    network.world.set_app(from, App::Sender(sending));
    let finished = loop {
        assert!(
            network.world.step(began + Duration::from_secs(3_600)),
            "{case:?}"
        );
        let progress = network.world.app(to).progress();
        if let Some(at) = progress.and_then(|progress| progress.finished) {
            break at;
        }
    };
    let seconds = finished.since(began).as_micros() as f64 / 1e6;
    [case.len as f64 / 125.0 / seconds, bound, estimate]
}

#[test]
fn no_run_exceeds_the_bound_however_lucky() {
    let cases = cases();
    assert!(cases.len() >= 192, "{}", cases.len());
    let runs: Vec<([f64; 3], Case)> = cases
        .into_par_iter()
        .map(|case| (measured(case), case))
        .collect();
    for ([goodput, bound, _], case) in &runs {
        assert!(goodput < bound, "{goodput} of {bound} kb/s: {case:?}");
    }
    let share = |[goodput, bound, _]: [f64; 3]| goodput / bound;
    let nearest = runs.iter().map(|(run, _)| share(*run)).fold(0.0, f64::max);
    assert!(nearest > 0.85, "{nearest}: a bound that nothing comes near");
    // What the papers add up is no bound, and has another name.
    let above = runs
        .iter()
        .any(|([goodput, _, estimate], _)| goodput > estimate);
    assert!(above, "no run exceeds the estimate");
}

const PORT: u16 = 4_242;
