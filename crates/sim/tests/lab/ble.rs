//! Nodes with TCP over controllers and air.

use std::net::Ipv6Addr;

use motet::ble::{self, Config, DeviceAddr, GapRole, INWARD_LEN, Peer, PeerMemory, Phy, Timing};
use motet::ip::{self, InterfaceId, Ip, Registration};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Advertised, Ble, BleConfig, BleMemory, Link};
use motet::node::{self, Node};
use motet::random::Rng;
use motet::tcp::{self, HalfOpen, Listener, Slot, Tcp};
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;
use motet_lab::ble::{Air, Conditions, Packet, Profile};
use motet_lab::capture::{Capture, Records};

const ID: InterfaceId = InterfaceId(0);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0);
const PORT: u16 = 5001;

fn memory<T>(items: Vec<T>) -> &'static mut [T] {
    Box::leak(items.into_boxed_slice())
}

const fn device(n: u8) -> DeviceAddr {
    DeviceAddr {
        bytes: [0xc2, 0x11, 0x22, 0x33, 0x44, n],
        is_random: true,
    }
}

fn link_local(n: u8) -> Ipv6Addr {
    let iid = LinkAddr::Device(device(n).bytes).iid();
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(u64::from_be_bytes(iid)))
}

/// What a run is to be like.
#[derive(Clone, Copy)]
struct Setup {
    phy: Phy,
    /// In units of 1.25 ms.
    interval: u16,
    is_adaptive: bool,
    latency: u16,
    error: f64,
    peripherals: usize,
    seed: u64,
}

const ONE: Setup = Setup {
    phy: Phy::Le1M,
    interval: 40,
    is_adaptive: false,
    latency: 0,
    error: 0.0,
    peripherals: 1,
    seed: 1,
};

fn node(n: u8, role: GapRole, setup: &Setup) -> Node<'static> {
    let is_central = role == GapRole::Central;
    let places = if is_central { setup.peripherals } else { 1 };
    let place = || {
        Peer::new(PeerMemory {
            inward: memory(vec![0; INWARD_LEN]),
            outward: memory(vec![0; IPV6_MTU_MIN]),
            queue: memory(vec![0; 3000]),
        })
    };
    let host = Config {
        phy: setup.phy,
        timing: Timing {
            interval: setup.interval,
            latency: setup.latency,
            timeout: 400,
        },
        is_adaptive: setup.is_adaptive,
        ..Config::new(device(n), role)
    };
    let config = BleConfig {
        host,
        solicits: !is_central,
        registers: true,
        advertised: is_central.then_some(Advertised {
            prefix: PREFIX,
            lifetime: Advertised::LIFETIME,
        }),
    };
    let registrations = if is_central { setup.peripherals } else { 0 };
    let link = Ble::new(
        config,
        BleMemory {
            peers: memory((0..places).map(|_| place()).collect()),
            queue: memory(vec![0; 4000]),
            registrations: memory(vec![Registration::EMPTY; registrations]),
        },
    );
    let mut rng = Rng::from_seed([setup.seed, n.into()]);
    let tcp = Tcp::new(
        tcp::Memory {
            connections: memory((0..8).map(|_| Slot::EMPTY).collect()),
            listeners: memory(vec![Listener::EMPTY]),
            half_open: memory(vec![HalfOpen::EMPTY; 8]),
        },
        &mut rng,
    );
    let ip = Ip::new(
        ip::Config {
            forwards: is_central,
            ..ip::Config::default()
        },
        &mut [],
    );
    Node::new(memory(vec![Link::Ble(link)]), ip, tcp, rng, Instant::ORIGIN)
}

/// A central and its peripherals, each of which sends as much as it can.
struct Lab {
    air: Air,
    nodes: Vec<Node<'static>>,
    flows: Vec<Flow>,
}

struct Flow {
    sender: tcp::Handle,
    receiver: tcp::Handle,
    received: u64,
}

impl Lab {
    fn new(setup: Setup) -> Self {
        let profile = Profile {
            connections: setup.peripherals,
            packets: 12 * setup.peripherals as u8,
            ..Profile::NRF52840
        };
        let others = (0..setup.peripherals).map(|n| (device(n as u8 + 2), Profile::NRF52840));
        let devices: Vec<_> = std::iter::once((device(1), profile))
            .chain(others)
            .collect();
        let rng = Rng::from_seed([setup.seed, 99]);
        let central = node(1, GapRole::Central, &setup);
        let others = (0..setup.peripherals).map(|n| node(n as u8 + 2, GapRole::Peripheral, &setup));
        Self {
            air: Air::new(&devices, Conditions::with_error(0.0), rng),
            nodes: std::iter::once(central).chain(others).collect(),
            flows: Vec::new(),
        }
    }

    fn settle(&mut self) {
        let now = self.air.now();
        let mut out = [0; node::ACTION_LEN_MAX];
        loop {
            let mut acted = self.step_flows(now);
            for (at, node) in self.nodes.iter_mut().enumerate() {
                while let Some(report) = self.air.poll_report(at) {
                    report.tell(|event| node.on_event(ID, node::Event::Ble(event), now));
                    acted = true;
                }
                while let Some((_, action)) = node.poll_action(now, &mut out) {
                    let node::Action::Ble(action) = action else {
                        panic!("{action:?}");
                    };
                    let len = match action {
                        ble::Action::Data { len, .. } | ble::Action::SetAdvertisingData { len } => {
                            len
                        }
                        _ => 0,
                    };
                    self.air.command(at, action, &out[..len]);
                    acted = true;
                }
            }
            if !acted {
                return;
            }
        }
    }

    fn step_flows(&mut self, now: Instant) -> bool {
        let mut acted = false;
        for (n, flow) in self.flows.iter_mut().enumerate() {
            let tcp = self.nodes[n + 1].tcp_mut();
            while tcp
                .send(flow.sender, &[7; 600], now)
                .is_ok_and(|sent| sent > 0)
            {
                acted = true;
            }
            let tcp = self.nodes[0].tcp_mut();
            let mut out = [0; 2000];
            while let Ok(len @ 1..) = tcp.recv(flow.receiver, &mut out) {
                flow.received += len as u64;
                acted = true;
            }
        }
        acted
    }

    fn run(&mut self, time: Duration) {
        let until = self.air.now() + time;
        loop {
            self.settle();
            let deadlines = self.nodes.iter().filter_map(Node::next_deadline);
            let next = deadlines.chain(self.air.next_at()).min().unwrap_or(until);
            let next = next.max(self.air.now() + Duration::from_micros(1));
            if next >= until {
                self.air.step(until);
                return self.settle();
            }
            self.air.step(next);
        }
    }

    /// Runs until all motes have an address and a route.
    fn join(&mut self) {
        for _ in 0..100 {
            self.run(Duration::from_millis(200));
            let mut motes = self.nodes[1..].iter();
            if motes.all(|mote| mote.global_address().is_some()) {
                return;
            }
        }
        panic!("the motes find no router");
    }

    fn connect(&mut self) {
        let now = self.air.now();
        let buffers = || tcp::Buffers::new(memory(vec![0; 4096]), memory(vec![0; 4608]));
        let config: &'static tcp::Config = Box::leak(Box::new(tcp::Config {
            timestamps: false,
            ..tcp::Config::DEFAULT
        }));
        let listener = self.nodes[0].tcp_mut().listen(None, PORT, config).unwrap();
        for n in 1..self.nodes.len() {
            let remote = (link_local(1), PORT);
            let sender = self.nodes[n]
                .connect(remote, buffers(), config, now)
                .unwrap();
            let receiver = self.nodes[0].tcp_mut().accept(listener, buffers(), now);
            self.flows.push(Flow {
                sender,
                receiver: receiver.unwrap(),
                received: 0,
            });
        }
    }

    /// Goodput of each flow, kb/s, over ten seconds that begin a second after the connections.
    fn goodput(setup: Setup) -> Vec<f64> {
        let mut lab = Self::new(setup);
        lab.join();
        lab.connect();
        lab.run(Duration::from_secs(1));
        lab.air.set_conditions(Conditions::with_error(setup.error));
        // A central that adapts needs a second for each step.
        lab.run(Duration::from_secs(if setup.is_adaptive { 8 } else { 1 }));
        let before: Vec<u64> = lab.flows.iter().map(|flow| flow.received).collect();
        lab.run(Duration::from_secs(10));
        let flows = lab.flows.iter().zip(before);
        flows
            .map(|(flow, before)| (flow.received - before) as f64 * 8.0 / 10_000.0)
            .collect()
    }
}

#[test]
fn one_flow_fills_the_air_and_no_more() {
    // The bound of `ble_limits.py bounds` for an event that fills the interval, without a MIC.
    for (phy, least, bound) in [(Phy::Le1M, 690.0, 787.0), (Phy::Le2M, 1230.0, 1400.0)] {
        let goodput = Lab::goodput(Setup { phy, ..ONE })[0];
        assert!((least..bound).contains(&goodput), "{phy:?}: {goodput}");
    }
}

#[test]
fn loss_costs_less_where_events_are_short() {
    let at = |interval| {
        Lab::goodput(Setup {
            interval,
            error: 0.05,
            ..ONE
        })[0]
    };
    let (short, long) = (at(12), at(80));
    assert!(short > 500.0, "{short}");
    assert!(short > long, "{short} {long}");
}

/// As good as the best of the intervals that are tried, but for a tenth.
#[test]
fn a_central_finds_the_interval_that_suits_the_losses() {
    for (phy, error) in [
        (Phy::Le1M, 0.0),
        (Phy::Le1M, 0.05),
        (Phy::Le1M, 0.1),
        (Phy::Le2M, 0.2),
    ] {
        let setup = Setup { phy, error, ..ONE };
        let best = [6, 8, 12, 16, 40]
            .map(|interval| Lab::goodput(Setup { interval, ..setup })[0])
            .into_iter()
            .fold(0.0, f64::max);
        let adaptive = Setup {
            is_adaptive: true,
            ..setup
        };
        let found = Lab::goodput(adaptive)[0];
        assert!(found >= 0.9 * best, "{phy:?}, {error}: {found} of {best}");
    }
}

#[test]
fn shorter_intervals_keep_six_connections_apart() {
    let setup = Setup {
        is_adaptive: true,
        error: 0.05,
        ..ONE
    };
    let one = Lab::goodput(setup)[0];
    let six = Lab::goodput(Setup {
        peripherals: 6,
        ..setup
    });
    let (sum, squares) = six
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    assert!(sum >= 0.8 * one, "{six:?} of {one}");
    assert!(sum * sum / (6.0 * squares) >= 0.95, "{six:?}");
}

#[test]
fn six_peripherals_share_the_air() {
    let one = Lab::goodput(ONE)[0];
    let six = Lab::goodput(Setup {
        peripherals: 6,
        ..ONE
    });
    let (sum, squares) = six
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    assert!(sum >= 0.8 * one, "{six:?} of {one}");
    assert!(sum * sum / (6.0 * squares) >= 0.95, "{six:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let setup = Setup { error: 0.1, ..ONE };
    assert_eq!(Lab::goodput(setup), Lab::goodput(setup));
}

#[test]
fn a_connection_ends_after_silence_and_begins_again() {
    let mut lab = Lab::new(ONE);
    lab.join();
    let connections = |lab: &Lab| match lab.nodes[1].link(ID) {
        Some(Link::Ble(ble)) => ble.host().connections().count(),
        _ => 0,
    };
    assert_eq!(connections(&lab), 1);
    lab.air.set_conditions(Conditions::with_error(1.0));
    lab.run(Duration::from_millis(3_900));
    assert_eq!(connections(&lab), 1, "4 s are allowed");
    lab.run(Duration::from_millis(300));
    assert_eq!(connections(&lab), 0);
    lab.air.set_conditions(Conditions::with_error(0.0));
    lab.run(Duration::from_secs(3));
    assert_eq!(connections(&lab), 1);
}

#[test]
fn a_peripheral_with_latency_sleeps_while_nothing_is_said() {
    let charge = |latency| {
        let mut lab = Lab::new(Setup { latency, ..ONE });
        lab.join();
        lab.run(Duration::from_secs(5));
        let before = lab.air.usage(1);
        lab.run(Duration::from_secs(10));
        let after = lab.air.usage(1);
        (
            after.wakes - before.wakes,
            after.charge_uc() - before.charge_uc(),
        )
    };
    let (all, full) = charge(0);
    let (some, saved) = charge(9);
    assert_eq!(all, 200, "twenty events a second");
    assert!((20..=22).contains(&some), "{some}");
    // `ble_limits.py energy`: 2.35 µC an event.
    assert!((full / 200.0 - 2.35).abs() < 0.25, "{}", full / 200.0);
    assert!(saved < full / 7.0, "{saved} of {full}");
}

#[test]
fn a_capture_is_what_tshark_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("air.pcap");
    let mut lab = Lab::new(ONE);
    lab.air.set_capture(Some(
        Capture::create(&path, Records::Bluetooth, true).unwrap(),
    ));
    lab.join();
    lab.connect();
    lab.run(Duration::from_secs(1));
    lab.air.take_capture().unwrap().finish().unwrap();
    let sent = lab.flows[0].received / 1220;
    let tshark = |filter: &str| {
        let output = std::process::Command::new("tshark")
            .args([
                "-r",
                path.to_str().unwrap(),
                "-Y",
                filter,
                "-T",
                "fields",
                "-e",
                "frame.number",
            ])
            .output()
            .expect("tshark is installed");
        assert!(output.status.success());
        output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64
    };
    let segments = tshark("tcp.len == 1220");
    assert!(segments >= sent, "{segments} of {sent}");
    for filter in [
        "_ws.malformed",
        "btle.crc.incorrect",
        "_ws.expert.severity == 8388608",
    ] {
        assert_eq!(tshark(filter), 0, "{filter}");
    }
}

/// What is said at any moment waits for the next event: half an interval on average (TCPlE has 3.75 ms of 7.5).
#[test]
fn what_is_said_waits_half_an_interval() {
    for interval in [6, 40] {
        let mut lab = Lab::new(Setup { interval, ..ONE });
        lab.join();
        lab.connect();
        let mut flow = lab.flows.remove(0);
        lab.run(Duration::from_secs(1));
        lab.air.observe(true);
        let interval_us = u64::from(interval) * 1_250;
        let (mut waited, count) = (0, 100);
        for n in 0..count {
            // Long enough for a delayed ACK, and at all parts of an interval alike.
            let part = n * 618 % 1_000 * interval_us / 1_000;
            lab.run(Duration::from_micros(300_000 + part));
            lab.air.take_packets();
            let said = lab.air.now();
            let tcp = lab.nodes[1].tcp_mut();
            assert_eq!(tcp.send(flow.sender, &[7; 20], said), Ok(20));
            lab.run(Duration::from_micros(2 * interval_us));
            let all = lab.air.take_packets();
            let says = |packet: &&Packet| packet.from == 1 && packet.bytes.len() > SEGMENT_LEN;
            let sent = all.iter().find(says).expect("it is sent");
            waited += sent.start.since(said).as_micros();
            let tcp = lab.nodes[0].tcp_mut();
            flow.received += tcp.recv(flow.receiver, &mut [0; 600]).unwrap() as u64;
        }
        assert_eq!(flow.received, 20 * count);
        let (mean, half) = (waited / count, interval_us / 2);
        assert!(mean.abs_diff(half) <= half / 10, "{mean} µs of {half}");
    }
}

/// A record of a packet with a segment of 20 bytes is longer, and one of the link layer's own is not.
const SEGMENT_LEN: usize = 60;
