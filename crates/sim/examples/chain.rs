//! Saturated uplinks over a chain in virtual time, as a table.
//!
//! `cargo run --release -p motet-lab --example chain -- [SECONDS] [SEEDS]`

use std::sync::Arc;

use motet::time::Duration;
use motet_lab::Arena;
use motet_lab::app::{App, Receiver, Sender};
use motet_lab::chain::{Chain, ChainOptions};
use motet_lab::medium::Fate;
use motet_lab::plan;

fn main() {
    let number = |n: usize, default| {
        std::env::args()
            .nth(n)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (seconds, seeds) = (number(1, 60), number(2, 2));
    for hops in 1..=4 {
        run(hops, 40, seconds, seeds, |_| {});
    }
    run(1, 0, seconds, seeds, |_| {});
    for d in [0, 5, 30, 100] {
        run(3, d, seconds, seeds, |_| {});
    }
    println!("hold 7 ms:");
    for hops in 2..=4 {
        run(hops, 10, seconds, seeds, |options| {
            options.hold_step = Duration::from_millis(7);
        });
    }
    println!("no deaf, no hidden:");
    run(3, 0, seconds, seeds, |options| {
        (options.deaf, options.hidden) = (false, false);
    });
    println!("no deaf:");
    run(3, 0, seconds, seeds, |options| options.deaf = false);
    println!("no hidden:");
    run(3, 0, seconds, seeds, |options| options.hidden = false);
}

fn run(hops: u16, d: u64, seconds: u64, seeds: u64, change: impl Fn(&mut ChainOptions)) {
    let (mut goodput, mut sent, mut resent, mut fates) = (0.0, 0, 0, [0; Fate::COUNT]);
    let (mut arrived, mut causes) = (0, [0; 8]);
    let (mut retries, mut frames, mut timeouts, mut wall, mut srtt) = (0, 0, 0, 0.0, 0);
    for seed in 1..=seeds {
        let started = std::time::Instant::now();
        let window = if hops >= 4 { 7 } else { 4 };
        let mut options = ChainOptions {
            hops,
            seed,
            retry_delay: Duration::from_millis(d),
            window_segments: window,
            ..ChainOptions::default()
        };
        change(&mut options);
        let arena = Arena::new();
        let mut chain = Chain::new(options, &arena);
        if !chain.join(Duration::from_secs(60)) {
            println!("{hops} hops: not joined at {:?}", chain.world.now());
            return;
        }
        let (host, mote) = (chain.host().unwrap(), chain.mote());
        let content: Arc<[u8]> = vec![0x5a; 4_000_000].into();
        chain.world.set_app(
            host,
            App::Receiver(Receiver::new(4242, chain.host_ends(&arena))),
        );
        let ends = chain.mote_ends(&arena);
        chain.world.set_app(
            mote,
            App::Sender(Sender::new(content, (plan::HOST, 4242), ends)),
        );
        let warm = chain.world.now() + Duration::from_secs(5);
        chain.world.run_until(warm);
        let read = |chain: &Chain<'_>| match chain.world.app(host) {
            App::Receiver(receiver) => receiver.content.len(),
            _ => 0,
        };
        let before = read(&chain);
        chain.world.run_until(warm + Duration::from_secs(seconds));
        goodput += (read(&chain) - before) as f64 * 8.0 / 1000.0 / seconds as f64;
        let counters = chain.world.node(mote).tcp().counters();
        sent += counters.sent;
        arrived += chain.world.wire().map_or(0, |wire| wire.tally.up);
        for (sum, count) in causes.iter_mut().zip(counters.retransmissions) {
            *sum += count;
        }
        resent += counters
            .retransmissions
            .iter()
            .map(|n| u32::from(*n))
            .sum::<u32>();
        timeouts += counters.retransmissions[0];
        if let Some(progress) = chain.world.app(mote).progress() {
            srtt += progress.telemetry.srtt_ms;
        }
        for (_, tally) in chain.world.links() {
            for (sum, count) in fates.iter_mut().zip(tally.frame_fates) {
                *sum += count;
            }
        }
        retries += chain.link_retries();
        frames += chain.frames_by_hop().iter().sum::<u64>();
        wall += started.elapsed().as_secs_f64();
        if std::env::var_os("VERBOSE").is_some() {
            for mac in chain.macs() {
                println!("  {:?}", mac.counters());
            }
            println!("  {counters:?}");
            for node in 0..chain.world.nodes() {
                let node = chain.world.node(node);
                println!(
                    "  {:?} {:?} {:?}",
                    node.counters(),
                    node.ip().counters,
                    node.tcp().counters()
                );
            }
        }
    }
    let runs = seeds as f64;
    println!(
        "{hops} hops d={d:<3} {:5.1} kb/s  sent {sent} lost {:.2} % resent {resent} timeouts {timeouts} srtt {} retries {retries} of {frames} speed {:.0}x",
        goodput / runs,
        100.0 * (1.0 - arrived as f64 / f64::from(sent)),
        u64::from(srtt) / seeds,
        (seconds * seeds) as f64 / wall
    );
    let total: u64 = fates.iter().sum();
    let named: Vec<String> = Fate::NAMES
        .iter()
        .zip(fates)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {:.1}", 100.0 * count as f64 / total as f64))
        .collect();
    println!("    {}; causes {causes:?}", named.join(", "));
}
