//! Several honest senders of fragmented packets at once, at a receiver with few bodies to gather
//! them in: all of them are served.
//!
//! ```text
//! host ===== border router 0 ~~~ motes 1 to 4
//! ```

use super::*;
use crate::air::gains::{ChainAir, Gains};
use crate::cases::some_of;
use crate::stats::{Stat, jain};

const MOTES: usize = 4;

/// How long the transfers are watched.
const SPAN: Duration = Duration::from_secs(60);

/// Bytes that arrive of each mote's transfer in [`SPAN`], all at the same time, where the border
/// router gathers as many packets at a time as `bodies`.
fn bytes(bodies: usize, seed: u64) -> Vec<f64> {
    let arena = Arena::new();
    let mut nodes: Vec<_> = (0..=MOTES)
        .map(|n| NodeOptions::new(format!("mote {n}")))
        .collect();
    nodes[0].tables.bodies = bodies;
    for node in &mut nodes[1..] {
        node.parent = Parent::Node(0);
    }
    let air = ChainAir::CALIBRATED;
    let gains = Gains::from_fn(MOTES + 1, |_, _| air.one_hop_db);
    let mut options = NetworkOptions::new(nodes, gains);
    for mote in 1..MOTES {
        options.hosts.push(HostOptions::new(format!("host {mote}")));
    }
    options.seed = seed;
    let mut network = Network::new(options, &arena).unwrap();
    assert!(network.join(Duration::from_secs(59)), "{seed}");
    let hosts: Vec<usize> = (0..MOTES).map(|n| network.host(n).unwrap()).collect();
    for (mote, host) in (1..).zip(&hosts) {
        transfer::start(&mut network, (mote, *host), &arena);
    }
    let end = network.world.now() + SPAN;
    network.world.run_until(end);
    let received = |host: &usize| transfer::received(&network, *host) as f64;
    hosts.iter().map(received).collect()
}

/// With as many bodies as senders nobody is refused, and with fewer nobody starves: a packet that
/// finds no body costs its sender a window, not its connection.
#[test]
fn honest_senders_share_few_bodies() {
    for seeds in some_of([1..9u64, 101..109], 1) {
        let runs = |bodies: usize| -> Vec<Vec<f64>> {
            seeds.clone().map(|seed| bytes(bodies, seed)).collect()
        };
        let total = |runs: &[Vec<f64>]| runs.iter().flatten().sum::<f64>();
        let plenty = total(&runs(MOTES));
        for bodies in [3, 2, 1] {
            let runs = runs(bodies);
            let share = total(&runs) / plenty;
            let fair = Stat::of(&runs.iter().map(|run| jain(run)).collect::<Vec<_>>());
            let least = runs.iter().map(|run| {
                let mean = run.iter().sum::<f64>() / run.len() as f64;
                run.iter().copied().fold(f64::INFINITY, f64::min) / mean
            });
            let least = least.fold(f64::INFINITY, f64::min);
            let case = format!("{bodies} bodies, {seeds:?}");
            println!(
                "{case}: {share:.3} of goodput, Jain {:.3}, least {least:.3}",
                fair.mean
            );
            assert!(share >= 0.6, "{case}: {share}");
            assert!(
                fair.mean - fair.ci95.unwrap_or(f64::NAN) >= 0.9,
                "{case}: {fair:?}"
            );
            // Whoever is refused all the time still has a packet let in with each of its tries.
            assert!(least >= 0.25, "{case}: {least} of an equal share");
        }
    }
}
