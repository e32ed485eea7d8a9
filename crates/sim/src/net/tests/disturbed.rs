//! Neighbours that are there but lose most frames: leaving silent neighbours alone must not
//! cost those that would answer the next frame.

use super::*;
use crate::air::gains::{ChainAir, Gains};
use crate::cases::some_of;
use crate::stats::Estimate;

/// How long a transfer is watched.
const SPAN: Duration = Duration::from_secs(60);

/// What disturbs the air.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// Each frame, ACKs too, is lost with this chance.
    Loss(f64),
    /// Nothing is heard at all for the first of these spans, then everything for the second,
    /// and so on.
    Bursts(Duration, Duration),
}

/// Bytes of a transfer over `hops` hops that arrive in [`SPAN`].
fn bytes(disturbance: Disturbance, (hops, up): (usize, bool), backs_off: bool, seed: u64) -> f64 {
    let arena = Arena::new();
    let mut nodes: Vec<_> = (0..=hops)
        .map(|n| NodeOptions::new(format!("mote {n}")))
        .collect();
    for (n, node) in nodes.iter_mut().enumerate() {
        node.mac.backs_off_from_silent = backs_off;
        if let Some(parent) = n.checked_sub(1) {
            node.parent = Parent::Node(parent);
        }
    }
    let mut options = NetworkOptions::new(nodes, Gains::chain(hops + 1, ChainAir::CALIBRATED));
    options.seed = seed;
    let mut network = Network::new(options, &arena).unwrap();
    assert!(network.join(Duration::from_secs(59)), "{seed}");
    let host = network.host(0).unwrap();
    let (from, to) = if up { (hops, host) } else { (host, hops) };
    transfer::start(&mut network, (from, to), &arena);
    // Neighbours that have never acknowledged anything are strangers, which is another matter.
    let start = network.world.now() + Duration::from_secs(3);
    network.world.run_until(start);
    let before = transfer::received(&network, to);
    assert!(before > 0, "{seed}");
    let end = start + SPAN;
    let mut is_disturbed = false;
    while network.world.now() < end {
        is_disturbed = !is_disturbed;
        let (loss, span) = match disturbance {
            Disturbance::Loss(loss) => (loss, SPAN),
            Disturbance::Bursts(span, _) if is_disturbed => (1.0, span),
            Disturbance::Bursts(_, span) => (0.0, span),
        };
        network.world.set_frame_loss(loss);
        let next = (network.world.now() + span).min(end);
        network.world.run_until(next);
    }
    (transfer::received(&network, to) - before) as f64
}

/// Goodput with back-off over that without, of the same seeds, with its interval.
fn share(disturbance: Disturbance, way: (usize, bool), seeds: core::ops::Range<u64>) -> Estimate {
    let pairs: Vec<[f64; 2]> = seeds
        .map(|seed| [true, false].map(|backs_off| bytes(disturbance, way, backs_off, seed)))
        .collect();
    let ratio = |left_out: Option<usize>| {
        let kept = pairs
            .iter()
            .enumerate()
            .filter(|(n, _)| Some(*n) != left_out);
        let [with, without] = kept.fold([0.0, 0.0], |[a, b], (_, [x, y])| [a + x, b + y]);
        with / without
    };
    let without: Vec<f64> = (0..pairs.len()).map(|n| ratio(Some(n))).collect();
    Estimate::jackknife(ratio(None), &without, pairs.len())
}

/// Down, the border router is the one that gives frames up; up, the mote is.
#[test]
fn a_disturbed_neighbour_is_not_left_alone() {
    let ms = Duration::from_millis;
    let mut cases = Vec::new();
    for disturbance in [
        Disturbance::Loss(0.3),
        Disturbance::Loss(0.45),
        Disturbance::Loss(0.6),
        Disturbance::Bursts(ms(500), ms(1_000)),
        Disturbance::Bursts(ms(800), ms(2_000)),
        Disturbance::Bursts(ms(1_200), ms(3_000)),
    ] {
        for way in [(1, false), (1, true), (2, false)] {
            // Over two hops so little is left of TCP then that a few segments decide.
            if matches!(disturbance, Disturbance::Loss(loss) if loss > 0.3) && way.0 > 1 {
                continue;
            }
            cases.extend([1..9, 101..109].map(|seeds| (disturbance, way, seeds)));
        }
    }
    for (disturbance, way, seeds) in some_of(cases, 9) {
        let share = share(disturbance, way, seeds.clone());
        let low = share.interval.map_or(f64::NAN, |interval| interval.low);
        assert!(
            low >= 0.95,
            "{disturbance:?}, {way:?}, {seeds:?}: {share:?}"
        );
    }
}
