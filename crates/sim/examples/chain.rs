//! Saturated uplinks over a chain in virtual time, as a table.
//!
//! `cargo run --release -p motet-lab --example chain -- [SECONDS] [SEEDS]`

use std::sync::Arc;

use motet::link::Mesh;
use motet::tcp::RetransmissionCause;
use motet::time::Duration;
use motet_lab::Arena;
use motet_lab::air::medium::Fate;
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::net::chain::{Chain, ChainOptions};
use motet_lab::net::network::RADIO;
use motet_lab::net::plan;

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
            options.pacing_step = Duration::from_millis(7);
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

/// Runs one setting with every seed, and prints a line of sums and one of fates.
fn run(hops: u16, d: u64, seconds: u64, seeds: u64, change: impl Fn(&mut ChainOptions)) {
    let mut sums = Sums::default();
    for seed in 1..=seeds {
        let window = if hops >= 4 { 7 } else { 4 };
        let mut options = ChainOptions {
            hops,
            seed,
            retry_delay: Duration::from_millis(d),
            window_segments: window,
            ..ChainOptions::default()
        };
        change(&mut options);
        let started = std::time::Instant::now();
        let arena = Arena::new();
        let mut chain = Chain::new(options, &arena);
        if !chain.join(Duration::from_secs(60)) {
            println!("{hops} hops: not joined at {:?}", chain.world.now());
            return;
        }
        sums.goodput_kbps += send(&mut chain, &arena, seconds);
        sums.add(&chain);
        sums.wall_s += started.elapsed().as_secs_f64();
        if std::env::var_os("VERBOSE").is_some() {
            print_counters(&chain);
        }
    }
    print!("{hops} hops d={d:<3} ");
    sums.print(seconds, seeds);
}

/// Lets the chain's mote send for 5 s and then for `seconds`; the goodput of the latter, kb/s.
fn send<'m>(chain: &mut Chain<'m>, arena: &'m Arena, seconds: u64) -> f64 {
    let (host, mote) = (chain.host().unwrap(), chain.mote());
    let content: Arc<[u8]> = vec![0x5a; 4_000_000].into();
    let receiver = Receiver::new(4242, chain.host_ends(arena));
    chain.world.set_app(host, App::Receiver(receiver));
    let sender = Sender::new(content, (plan::HOST, 4242), chain.mote_ends(arena));
    chain.world.set_app(mote, App::Sender(sender));
    let warm = chain.world.now() + Duration::from_secs(5);
    chain.world.run_until(warm);
    let read = |chain: &Chain<'_>| match chain.world.app(host) {
        App::Receiver(receiver) => receiver.content.len(),
        _ => 0,
    };
    let before = read(chain);
    chain.world.run_until(warm + Duration::from_secs(seconds));
    (read(chain) - before) as f64 * 8.0 / 1000.0 / seconds as f64
}

/// What the runs of one setting counted.
#[derive(Default)]
struct Sums {
    goodput_kbps: f64,
    sent: u32,
    resent: u32,
    arrived: u64,
    causes: [u16; RetransmissionCause::ALL.len()],
    fates: [u64; Fate::COUNT],
    retries: u64,
    frames: u64,
    srtt_ms: u32,
    wall_s: f64,
}

impl Sums {
    fn add(&mut self, chain: &Chain<'_>) {
        let counters = chain.world.node(chain.mote()).tcp().counters();
        self.sent += counters.sent;
        self.arrived += chain.world.wire().map_or(0, |wire| wire.tally.up);
        for (sum, count) in self.causes.iter_mut().zip(counters.retransmissions) {
            *sum += count;
            self.resent += u32::from(count);
        }
        if let Some(progress) = chain.world.app(chain.mote()).progress() {
            self.srtt_ms += progress.telemetry.srtt_ms;
        }
        for (_, tally) in chain.world.links() {
            for (sum, count) in self.fates.iter_mut().zip(tally.frame_fates) {
                *sum += count;
            }
        }
        self.retries += chain.link_retries();
        self.frames += chain.frames_by_hop().iter().sum::<u64>();
    }

    fn print(&self, seconds: u64, seeds: u64) {
        println!(
            "{:5.1} kb/s  sent {} lost {:.2} % resent {} timeouts {} srtt {} retries {} of {} speed {:.0}x",
            self.goodput_kbps / seeds as f64,
            self.sent,
            100.0 * (1.0 - self.arrived as f64 / f64::from(self.sent)),
            self.resent,
            self.causes[RetransmissionCause::Timeout as usize],
            u64::from(self.srtt_ms) / seeds,
            self.retries,
            self.frames,
            (seconds * seeds) as f64 / self.wall_s
        );
        let total: u64 = self.fates.iter().sum();
        let named: Vec<String> = Fate::NAMES
            .iter()
            .zip(self.fates)
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{name} {:.1}", 100.0 * count as f64 / total as f64))
            .collect();
        println!("    {}; causes {:?}", named.join(", "), self.causes);
    }
}

/// Prints all that the chain's nodes counted.
fn print_counters(chain: &Chain<'_>) {
    for mac in chain.macs() {
        println!("  {:?}", mac.counters());
    }
    for node in 0..chain.world.nodes() {
        let node = chain.world.node(node);
        println!(
            "  {:?} {:?} {:?}",
            node.link(RADIO)
                .and_then(|link| link.mesh())
                .map(Mesh::counters),
            node.ip().counters,
            node.tcp().counters()
        );
    }
}
