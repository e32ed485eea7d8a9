//! The bench itself.

#[path = "decisions.rs"]
mod decisions;

use std::{
    fs,
    net::Ipv6Addr,
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use motet::time::Duration as Span;
use motet_router::{
    fair::{Fair, interface_index},
    namespace,
    port::{LinkKind, PacketPort, PortConfig, precise_timers},
    rules::Rules,
    wake::{self, Bell, Wake},
};
use motet_taim::{Config, Fq, Policy};

pub(super) fn main() {
    // `cargo test` runs benches too, with no argument: one short round shows that they work.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let scale = if is_bench { 1 } else { 100 };
    decisions::report(FLOWS, scale, segment);
    let namespace = match namespace::enter() {
        Ok(namespace) => namespace,
        Err(error) => return println!("not run: {error}"),
    };
    let open = |name, host, routes| {
        let config = PortConfig {
            name,
            host,
            routes,
            link: Some(LinkKind::Tun),
            ..PortConfig::default()
        };
        PacketPort::open(&namespace, &config)
    };
    let ports =
        open("mesh0", addr(1, 1), &[]).and_then(|mesh| Ok((mesh, open("wire0", addr(2, 1), &[])?)));
    let (mesh, wire) = match ports {
        Ok(ports) => ports,
        Err(error) => return println!("not run: {error}"),
    };
    fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").expect("our own network");
    let mut path = Path {
        mesh,
        wire,
        number: 0,
    };
    let rules = Rules::new("mesh0", QUEUE).expect("a plain name");
    let rules = match rules.install() {
        Ok(rules) => rules,
        Err(error) => return println!("not run: {error}"),
    };
    // Every flow is known before anything is measured.
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        // The rules let packets by while nobody has the queue.
        let without = path.measure(scale);
        let daemon = Daemon::start(Policy::None);
        path.flood(FLOWS);
        let with = path.measure(scale);
        daemon.end();
        rounds.push((without, with));
    }
    let daemon = Daemon::start(Policy::Fq(Fq { spacing: SPACING }));
    let late = path.lateness(2_000 / scale);
    daemon.end();
    drop(rules);
    report(&rounds, &late);
}

fn report(rounds: &[(Figures, Figures)], late: &[Duration]) {
    let median = |value: fn(&(Figures, Figures)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let rate = median(|(_, with)| with.rate);
    let without = median(|(without, _)| without.rate);
    println!("{FLOWS} flows, policy none, median of {ROUNDS} rounds:");
    println!(
        "  packets a second     {rate:>9.0}     (target 50000; {without:.0} without the queue)"
    );
    let ratio = median(|(without, with)| with.rate / without.rate);
    println!("    over without it    {ratio:>9.2}");
    let added = median(|(without, with)| with.p50_us - without.p50_us);
    let p50 = median(|(without, _)| without.p50_us);
    println!(
        "  added to a packet    {added:>9.1} µs  (p50; target 50; {p50:.1} without the queue)"
    );
    let at = |share: f64| {
        let at = (late.len() as f64 * share) as usize;
        late.get(at.min(late.len() - 1))
            .map_or(0.0, |late| late.as_secs_f64() * 1e3)
    };
    println!("100 packets a second by fair queueing:");
    println!("  late by              {:>9.3} ms  (p50)", at(0.5));
    println!(
        "  late by              {:>9.3} ms  (p99; target 1)",
        at(0.99)
    );
}

/// From mesh to wire, through this kernel.
struct Path {
    mesh: PacketPort,
    wire: PacketPort,
    /// Of the next segment.
    number: u32,
}

struct Figures {
    /// Packets a second, with [`WINDOW`] of them on their way.
    rate: f64,
    /// Time from one interface to the other, with one on its way.
    p50_us: f64,
}

impl Path {
    fn measure(&mut self, scale: u32) -> Figures {
        let packets = 200_000 / scale;
        let start = Instant::now();
        self.flood(packets);
        let rate = f64::from(packets) / start.elapsed().as_secs_f64();
        let mut times: Vec<Duration> = (0..2_000 / scale).map(|_| self.cross()).collect();
        times.sort_unstable();
        let p50_us = times[times.len() / 2].as_secs_f64() * 1e6;
        Figures { rate, p50_us }
    }

    /// Sends segments of all flows in turn, as fast as they come out.
    fn flood(&mut self, packets: u32) {
        let (mut sent, mut came) = (0, 0);
        while came < packets {
            while sent < packets && sent - came < WINDOW {
                self.send();
                sent += 1;
            }
            came += self.take();
        }
    }

    fn cross(&mut self) -> Duration {
        let start = Instant::now();
        self.send();
        while self.take() == 0 {}
        start.elapsed()
    }

    /// How late packets leave that are let go one a [`SPACING`], in order.
    fn lateness(&mut self, packets: u32) -> Vec<Duration> {
        let spacing = Duration::from_micros(SPACING.as_micros());
        // The first tells the router of the flows, and some are always there to be let go.
        for _ in 0..packets.min(STANDING) {
            self.send();
        }
        let (mut last, mut late) = (None, Vec::new());
        let mut sent = packets.min(STANDING);
        while late.len() + 1 < packets as usize {
            if self.take() == 0 {
                continue;
            }
            let now = Instant::now();
            if let Some(last) = last.replace(now) {
                late.push(now.duration_since(last).saturating_sub(spacing));
            }
            if sent < packets {
                self.send();
                sent += 1;
            }
        }
        late.sort_unstable();
        late
    }

    fn send(&mut self) {
        let flow = self.number % FLOWS;
        let segment = segment(flow, self.number / FLOWS);
        self.number += 1;
        self.mesh.send(&segment).expect("room in the kernel");
    }

    /// Waits for packets; returns how many have come.
    fn take(&mut self) -> u32 {
        self.wire.wait(Some(PATIENCE)).expect("ppoll");
        let mut came = 0;
        let mut buf = [0; 1_280];
        while let Some(len) = self.wire.recv(&mut buf).expect("an open port") {
            came += u32::from(buf[..len][6] == TCP);
        }
        came
    }
}

/// The daemon's loop, in a thread of its own.
struct Daemon {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    bell: Bell,
}

impl Daemon {
    fn start(policy: Policy) -> Self {
        let interface = interface_index("mesh0").expect("it is there");
        let mut fair = Fair::open(QUEUE, interface, Config::new(policy)).expect("a free queue");
        let mut wake = Wake::new().expect("a pipe");
        let (stop, bell) = (Arc::new(AtomicBool::new(false)), wake.bell());
        let is_over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            precise_timers().expect("prctl");
            while !is_over.load(Ordering::Relaxed) {
                if fair.turn().expect("a queue") {
                    continue;
                }
                let fds = [fair.as_fd(), wake.as_fd()];
                wake::wait(&fds, fair.due_in()).expect("ppoll");
                wake.clear().expect("a pipe");
            }
            fair.close().expect("a queue");
        });
        Self { thread, stop, bell }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
        self.thread.join().expect("the loop is content");
    }
}

/// Data of a flow's mote: 40 bytes of it, in the flow's order.
fn segment(flow: u32, round: u32) -> Vec<u8> {
    const DATA_LEN: u32 = 40;
    let mut packet = vec![0x60, 0, 0, 0, 0, 20 + DATA_LEN as u8, TCP, 64];
    // Lossless: there are 5,000 flows.
    packet.extend(addr(1, 2 + (flow / 50) as u16).octets());
    packet.extend(addr(2, 2).octets());
    packet.extend((1_024 + (flow % 50) as u16).to_be_bytes());
    packet.extend(80_u16.to_be_bytes());
    packet.extend((round * DATA_LEN).to_be_bytes());
    packet.extend([0, 0, 0, 1, 5 << 4, 0x10, 4, 0]);
    // Nobody looks at the checksum: there is no host on the way.
    packet.extend([0; 4 + DATA_LEN as usize]);
    packet
}

/// Host `n` of one side.
fn addr(side: u16, n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, side, 0, 0, 0, 0, 0, n)
}

const QUEUE: u16 = 5;
const FLOWS: u32 = 5_000;
const ROUNDS: usize = 5;

/// Packets on their way at a time: fewer than any queue in between has room for.
const WINDOW: u32 = 200;

/// A hundred packets a second.
const SPACING: Span = Span::from_millis(10);

/// Packets that wait at a time, so that there always is one to let go.
const STANDING: u32 = 100;

const PATIENCE: Duration = Duration::from_secs(5);

const TCP: u8 = 6;
