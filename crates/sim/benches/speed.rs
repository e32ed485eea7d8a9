//! How fast the lab is: simulated seconds per second of one core.
//!
//! `cargo bench -p motet-lab` prints each figure beside its target. The whole stack is inside;
//! building the world is not counted.

use std::net::Ipv6Addr;
use std::time::Duration as Timespan;

use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::air::gains::{Gains, LogDistance};
use motet_lab::apps::content::Content;
use motet_lab::apps::readings::{Readings, Sink};
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::net::chain::{Chain, ChainOptions};
use motet_lab::net::network::{Joining, Network, NetworkOptions, NodeOptions, Parent, Tables};
use motet_lab::net::plan;
use motet_lab::streams::{Purpose, stream};

fn main() {
    // `cargo test` runs benches too, with no argument: one short round shows that they work.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let scale = if is_bench { 1 } else { 100 };
    saturated(1_000 / scale);
    few_and_many(if is_bench { 7 } else { 1 });
    readings(5_000, 120 / scale);
}

/// Three hops with one saturated TCP flow: four nodes, and the host.
fn saturated(seconds: u64) {
    let arena = Arena::new();
    let mut chain = Chain::new(ChainOptions::default(), &arena);
    assert!(chain.join(Duration::from_secs(60)), "the chain joins");
    let (host, mote) = (chain.host().expect("it is virtual"), chain.mote());
    let content = Content::endless([1, 1]);
    let receiving = Receiver::checking(4_242, chain.host_ends(&arena), content.clone());
    chain.world.set_app(host, App::Receiver(receiving));
    let sending = Sender::new(content, (plan::HOST, 4_242), chain.mote_ends(&arena));
    chain.world.set_app(mote, App::Sender(sending));
    let span = Duration::from_secs(seconds);
    let wall = run(&mut chain.world, span);
    report("4 nodes, saturated TCP", seconds, wall, 1_000.0);
}

/// Two grids whose nodes each send one frame a second to a neighbour, by turns: whatever else the
/// machine does meets both.
fn few_and_many(rounds: usize) {
    let arenas = [Arena::new(), Arena::new()];
    let mut few = neighbours(500, &arenas[0]);
    let mut many = neighbours(5_000, &arenas[1]);
    let mut rows = Vec::new();
    for _ in 0..rounds {
        let ([few_speed, few_cost], [many_speed, many_cost]) =
            (advance(&mut few, 30), advance(&mut many, 3));
        rows.push([few_speed, many_speed, many_cost / few_cost]);
    }
    let [few, many, ratio] = [0, 1, 2].map(|column| median(rows.iter().map(|row| row[column])));
    println!("500 nodes, 1 frame/s each: {few:.0} simulated s/s (target at least 30)");
    println!("5000 nodes, 1 frame/s each: {many:.1} simulated s/s (target at least 12)");
    println!("cost of a frame, 5000 nodes over 500: {ratio:.2} (target at most 1.5)");
}

/// Lets `seconds` pass; gives simulated seconds per second, and seconds per frame.
fn advance(network: &mut Network<'_>, seconds: u64) -> [f64; 2] {
    let before = transmissions(network);
    let wall = run(&mut network.world, Duration::from_secs(seconds));
    let frames = transmissions(network) - before;
    [seconds as f64 / wall, wall / frames as f64]
}

/// The middle one.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A grid whose nodes each send one frame a second to a neighbour.
fn neighbours(nodes: usize, arena: &Arena) -> Network<'_> {
    let mut network = grid(nodes, arena);
    for node in 1..nodes {
        let parent = network
            .tree()
            .parent(node)
            .expect("only the router has none");
        // Link-local: one hop, one frame.
        let to = (plan::link_local(parent as u16), PORT);
        let app = reading(node, to, Duration::from_secs(1));
        network.world.add_app(node, app);
        network
            .world
            .add_app(node, App::Sink(Sink::new(&[PORT], arena)));
    }
    network
        .world
        .add_app(0, App::Sink(Sink::new(&[PORT], arena)));
    // Memory is touched for the first time, and tables fill.
    run(&mut network.world, Duration::from_secs(1));
    network
}

/// A grid whose nodes each send a reading a minute to the host, through a tree.
fn readings(nodes: usize, seconds: u64) {
    let arena = Arena::new();
    let mut network = grid(nodes, &arena);
    let host = network.host(0).expect("it is virtual");
    network
        .world
        .add_app(host, App::Sink(Sink::new(&[PORT], &arena)));
    for node in 1..nodes {
        let app = reading(node, (plan::HOST, PORT), Duration::from_secs(60));
        network.world.add_app(node, app);
    }
    let wall = run(&mut network.world, Duration::from_secs(seconds));
    let arrived = match network.world.app(host) {
        App::Sink(sink) => sink.tally(PORT).map_or(0, |tally| tally.received),
        _ => 0,
    };
    let frames = transmissions(&network);
    let depth = (0..nodes).map(|node| network.tree().depth(node)).max();
    let name = format!(
        "{nodes} nodes, 1 reading/min each, {} hops deep ({frames} frames, {arrived} readings)",
        depth.unwrap_or_default()
    );
    report(&name, seconds, wall, 20.0);
}

/// Nodes 10 m apart, as many in each direction; the border router in the middle.
fn grid(nodes: usize, arena: &Arena) -> Network<'_> {
    let side = (nodes as f64).sqrt().ceil() as usize;
    let mut positions: Vec<[f64; 2]> = (0..nodes)
        .map(|n| [(n % side) as f64 * 10.0, (n / side) as f64 * 10.0])
        .collect();
    positions.swap(0, side / 2 * side + side / 2);
    let gains = Gains::log_distance(&positions, INDOORS, 1);
    let options = |n: usize| NodeOptions {
        tables: Tables::SMALL,
        parent: Parent::Shortest,
        ..NodeOptions::new(n.to_string())
    };
    let options = NetworkOptions {
        joining: Joining::Static,
        ..NetworkOptions::new((0..nodes).map(options).collect(), gains)
    };
    Network::new(options, arena).expect("each node has neighbours 10 m away")
}

fn reading<'m>(node: usize, to: (Ipv6Addr, u16), interval: Duration) -> App<'m> {
    let mut rng = stream(1, node as u32, Purpose::Application);
    App::Readings(Readings::new(to, 40, interval, Instant::ORIGIN, &mut rng))
}

fn transmissions(network: &Network<'_>) -> u64 {
    let macs = network.macs();
    macs.map(|mac| u64::from(mac.counters().transmissions))
        .sum()
}

/// Seconds of a core.
fn run(world: &mut motet_lab::net::world::World<'_>, span: Duration) -> f64 {
    let until = world.now() + span;
    let before = core_time();
    world.run_until(until);
    (core_time() - before).as_secs_f64()
}

/// What this thread has had of its core: on a machine with other work the wall clock would measure
/// that too.
#[cfg(target_os = "linux")]
fn core_time() -> Timespan {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Lossless: neither is negative.
    Timespan::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The wall clock stands in for it.
#[cfg(not(target_os = "linux"))]
fn core_time() -> Timespan {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

fn report(name: &str, seconds: u64, wall: f64, target: f64) {
    let speed = seconds as f64 / wall;
    println!("{name}: {speed:.0} simulated s/s (target at least {target})");
}

/// A building that lets a frame through for some 20 m, and be heard as noise for 60.
const INDOORS: LogDistance = LogDistance {
    loss_1m_db: 40.2,
    exponent: 4.0,
    shadowing_sigma_db: 0.0,
    node_sigma_db: 0.0,
};

/// Of those that 6LoWPAN compresses to four bits.
const PORT: u16 = 0xf0b2;
