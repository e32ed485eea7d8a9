//! Clients that hold a mote's places: gone without a word, stalled, or silent on purpose.

use motet::tcp::{Config, Handle};
use motet::time::Duration;
use motet::wire::tcp as wire;

use crate::Arena;
use crate::apps::{App, Services};
use crate::net::chain::ChainOptions;
use crate::net::faults::Faults;
use crate::net::network::{Network, NetworkOptions};
use crate::net::plan;

use super::*;

/// A mote one hop away with [`PLACES`] places, and a host whose applications the test is.
struct Bench<'m> {
    network: Network<'m>,
}

/// A client's end, and how many bytes it lets come before its window is shut.
fn connect(bench: &mut Bench<'_>, port: u16, window: usize) -> Handle {
    let remote = (bench.network.addr(MOTE), port);
    let host = bench.network.host(0).unwrap();
    let [send, recv] =
        [2_048, tcp::recv_memory_len(window as u16)].map(|len| &mut *vec![0; len].leak());
    let settings: &'static Config = &Config::DEFAULT;
    bench.network.world.with_node(host, |node, now| {
        node.connect(remote, Buffers::new(send, recv), settings, now)
            .unwrap()
    })
}

impl<'m> Bench<'m> {
    fn new(arena: &'m Arena) -> Self {
        Self::with(arena, None)
    }

    fn with(arena: &'m Arena, application: Option<Application>) -> Self {
        Self::serving(arena, |services| services.with(application))
    }

    fn serving(arena: &'m Arena, change: impl FnOnce(Services<'m>) -> Services<'m>) -> Self {
        let chain = ChainOptions {
            hops: 1,
            ..ChainOptions::default()
        };
        let mut options: NetworkOptions = chain.network();
        options.nodes[MOTE].tables.connections = PLACES;
        options.nodes[MOTE].tables.listeners = LISTENERS;
        options.hosts[0].connections = 4 * PLACES;
        let mut network = Network::new(options, arena).unwrap();
        assert!(network.join(Duration::from_secs(60)));
        let ends = network.ends(MOTE, plan::HOST, arena);
        let services = change(Services::new(PLACES, ends));
        network
            .world
            .set_app(MOTE, App::Services(Box::new(services)));
        Self { network }
    }

    fn run(&mut self, seconds: u64) {
        let until = self.network.world.now() + Duration::from_secs(seconds);
        self.network.world.run_until(until);
    }

    /// From now on nothing passes between the mesh and the host.
    fn cut(&mut self, is_cut: bool) {
        let faults = if is_cut { Faults::LOSS } else { Faults::NONE };
        self.network.world.wire_mut().unwrap().set_faults(faults);
    }

    fn held(&self) -> usize {
        let App::Services(services) = self.network.world.app(MOTE) else {
            panic!("it was given them")
        };
        services.connections()
    }

    /// Seconds until every place is free, and as many clients as there are places are served.
    fn seconds_until_free(&mut self, patience: u64) -> Option<u64> {
        let seconds = (0..patience).find(|_| {
            self.run(1);
            self.held() == 0
        })?;
        self.cut(false);
        for _ in 0..PLACES {
            let echo = connect(self, ECHO, 2_048);
            self.send(echo, b"still here");
            self.run(10);
            assert_eq!(self.read(echo), b"still here", "after {seconds} s");
        }
        Some(seconds)
    }

    fn send(&mut self, handle: Handle, bytes: &[u8]) {
        let host = self.network.host(0).unwrap();
        self.network.world.with_node(host, |node, now| {
            assert_eq!(node.tcp_mut().send(handle, bytes, now), Ok(bytes.len()));
        });
    }

    fn read(&mut self, handle: Handle) -> Vec<u8> {
        let host = self.network.host(0).unwrap();
        self.network.world.with_node(host, |node, _| {
            let mut all = Vec::new();
            let mut bytes = [0; 256];
            while let Ok(len) = node.tcp_mut().recv(handle, &mut bytes) {
                all.extend_from_slice(&bytes[..len]);
            }
            all
        })
    }

    fn is_open(&self, handle: Handle) -> bool {
        let host = self.network.host(0).unwrap();
        let tcp = self.network.world.node(host).tcp();
        tcp.connection(handle)
            .is_some_and(|connection| connection.state() == State::Established)
    }
}

/// Clients of these ports, each with a receive buffer of so many bytes, take every place of a mote;
/// after `seconds` they vanish, if `they_vanish`, and every place is free again in time.
fn places_come_back(ports: [u16; PLACES], buffer: usize, seconds: u64, they_vanish: bool) {
    let arena = Arena::new();
    let mut bench = Bench::new(&arena);
    for port in ports {
        connect(&mut bench, port, buffer);
    }
    bench.run(seconds);
    assert_eq!(bench.held(), PLACES);
    if they_vanish {
        bench.cut(true);
    }
    let seconds = bench.seconds_until_free(1_000);
    assert!(seconds.is_some_and(|s| s <= 125), "{seconds:?}");
}

#[test]
fn a_service_that_is_left_out_has_no_listener() {
    let arena = Arena::new();
    let mut bench = Bench::serving(&arena, |services| services.only(&[ECHO]));
    let clients = [ECHO, DISCARD].map(|port| connect(&mut bench, port, 2_048));
    bench.run(10);
    assert_eq!(clients.map(|client| bench.is_open(client)), [true, false]);
}

#[test]
fn places_of_clients_that_vanish_while_idle_come_back() {
    places_come_back([ECHO, DISCARD, ECHO, DISCARD], 2_048, 5, true);
}

#[test]
fn places_of_clients_that_vanish_with_a_shut_window_come_back() {
    places_come_back([CHARGEN; PLACES], 300, 20, true);
}

/// They live, and answer every probe; chargen's text waits for ever all the same.
#[test]
fn places_of_clients_that_keep_their_window_shut_come_back() {
    places_come_back([CHARGEN; PLACES], 300, 20, false);
}

/// Keepalive is for clients that are gone: a user at a terminal may think for some minutes, and a
/// client of a small service for as long as nobody else needs its place.
#[test]
fn a_client_that_is_merely_idle_keeps_its_place() {
    let arena = Arena::new();
    let mut bench = Bench::with(&arena, Some(Application::Shell));
    let clients = [ECHO, DISCARD, 23].map(|port| connect(&mut bench, port, 2_048));
    let [echo, ..] = clients;
    bench.run(280);
    assert!(clients.iter().all(|client| bench.is_open(*client)));
    bench.send(echo, b"back again");
    bench.run(40);
    assert_eq!(bench.read(echo), b"back again");
    // That of the shell has lost its place.
    assert_eq!(
        clients.map(|client| bench.is_open(client)),
        [true, true, false]
    );
    bench.run(1_800);
    assert_eq!(bench.held(), 2);
    bench.send(echo, b"half an hour");
    bench.run(1);
    assert_eq!(bench.read(echo), b"half an hour");
}

/// A request is a matter of a minute, sent in one go or byte by byte.
#[test]
fn a_request_that_never_ends_loses_its_place() {
    let arena = Arena::new();
    let mut bench = Bench::with(&arena, Some(Application::Http));
    let silent = connect(&mut bench, 80, 2_048);
    let slow = connect(&mut bench, 80, 2_048);
    // Its answer is taken, but it never closes.
    let stays = connect(&mut bench, 80, 2_048);
    bench.run(1);
    bench.send(stays, b"GET / HTTP/1.1\r\n\r\n");
    for byte in b"GET / HTTP/1.1\r\nX: ".iter().cycle().take(28) {
        bench.send(slow, &[*byte]);
        bench.run(2);
    }
    assert_eq!(bench.held(), 3);
    assert!(!bench.read(stays).is_empty());
    bench.run(8);
    assert_eq!(bench.held(), 0);
    assert!(!bench.is_open(silent) && !bench.is_open(slow));
}

/// Clients that hold every place, idle or byte by byte, and one that has a request.
#[test]
fn the_oldest_idle_client_yields_to_a_newcomer() {
    for (port, trickles) in [
        (80, false),
        (80, true),
        (ECHO, false),
        (iperf3::PORT, false),
    ] {
        let arena = Arena::new();
        let mut bench = Bench::with(&arena, Some(Application::Http));
        let mut idle = Vec::new();
        for _ in 0..PLACES {
            idle.push(connect(&mut bench, port, 2_048));
            bench.run(2);
        }
        assert_eq!(bench.held(), PLACES, "{port}");
        for round in 0..2 {
            let client = connect(&mut bench, 80, 2_048);
            for _ in 0..4 {
                if trickles {
                    let open: Vec<_> = idle.iter().copied().filter(|c| bench.is_open(*c)).collect();
                    open.into_iter().for_each(|client| bench.send(client, b"X"));
                }
                bench.run(2);
            }
            assert!(!bench.is_open(idle[round]), "{port}: the oldest");
            assert!(
                idle[round + 1..]
                    .iter()
                    .all(|client| bench.is_open(*client)),
                "{port}"
            );
            bench.send(client, b"GET / HTTP/1.1\r\n\r\n");
            bench.run(2);
            let answer = String::from_utf8(bench.read(client)).expect("text");
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{port}: {answer}");
            // It keeps its place for now, and has been active later than the others.
        }
    }
}

/// A counter that has reached its end still lets newcomers in: so many SYNs are a stranger's work
/// of minutes.
#[test]
fn the_oldest_idle_client_yields_after_any_number_of_refusals() {
    let arena = Arena::new();
    let mut bench = Bench::with(&arena, Some(Application::Http));
    let idle: Vec<_> = (0..PLACES)
        .map(|_| connect(&mut bench, 80, 2_048))
        .collect();
    bench.run(5);
    assert_eq!(bench.held(), PLACES);
    let mote = bench.network.addr(MOTE);
    bench.network.world.with_node(MOTE, |node, now| {
        let tcp = node.tcp_mut();
        for number in 0..u32::from(u16::MAX) + 100 {
            let header = wire::Header {
                src_port: 1_024 + (number % 60_000) as u16,
                dst_port: 80,
                flags: wire::Flags::SYN,
                window: 1_000,
                ..wire::Header::default()
            };
            let mut bytes = [0; wire::HEADER_LEN];
            header.emit(&mut bytes).unwrap();
            wire::fill_checksum(&plan::HOST, &mote, &mut bytes);
            let incoming = tcp::IncomingSegment {
                src: plan::HOST,
                dst: mote,
                zone: 0,
                ecn: 0,
                offer: tcp::Offer::UNBOUNDED,
                bytes: &bytes,
            };
            let _ = tcp.on_segment(&incoming, now);
        }
        assert_eq!(tcp.counters().dropped(SegmentDrop::NoSlot), u16::MAX);
    });
    // Those are forgotten, and all places are taken again.
    bench.run(60);
    let more = PLACES - bench.held();
    for _ in 0..more {
        connect(&mut bench, 80, 2_048);
    }
    bench.run(5);
    assert_eq!(bench.held(), PLACES);
    let client = connect(&mut bench, 80, 2_048);
    bench.run(15);
    assert!(bench.is_open(client), "{:?}", idle);
}

/// Clients that are at work are no newcomer's prey.
#[test]
fn clients_at_work_keep_their_places() {
    let arena = Arena::new();
    let mut bench = Bench::with(&arena, Some(Application::Http));
    let busy: Vec<_> = (0..PLACES)
        .map(|_| connect(&mut bench, ECHO, 2_048))
        .collect();
    bench.run(5);
    let newcomer = connect(&mut bench, 80, 2_048);
    for _ in 0..20 {
        for client in &busy {
            bench.send(*client, b"at work");
        }
        bench.run(3);
        for client in &busy {
            assert_eq!(bench.read(*client), b"at work");
        }
    }
    assert!(!bench.is_open(newcomer));
    // Once one of them is done there is a place.
    close(&mut bench, busy[0]);
    let newcomer = connect(&mut bench, 80, 2_048);
    bench.run(10);
    assert!(bench.is_open(newcomer));
}

/// Whether a client that now begins a test is asked for its parameters.
fn is_asked(bench: &mut Bench<'_>) -> bool {
    let control = connect(bench, iperf3::PORT, 2_048);
    bench.send(control, &[b'z'; 37]);
    bench.run(10);
    let answer = bench.read(control);
    let host = bench.network.host(0).unwrap();
    bench
        .network
        .world
        .with_node(host, |node, _| node.tcp_mut().abort(control));
    bench.run(2);
    // PARAM_EXCHANGE
    answer == [9]
}

/// What a client has said before it says no more, and whether its next test is let in while it
/// stalls, and when its time is over.
#[test]
fn a_stalled_iperf3_client_does_not_hold_the_test() {
    let cookie = [b'a'; 37];
    let object = br#"{"tcp":true,"time":10,"parallel":1}"#;
    let mut parameters = (object.len() as u32).to_be_bytes().to_vec();
    parameters.extend(object);
    for (stalls, streams) in [
        ("before its parameters", 0),
        ("before its streams", 0),
        ("in the test", 1),
    ] {
        let arena = Arena::new();
        let mut bench = Bench::new(&arena);
        let control = connect(&mut bench, iperf3::PORT, 2_048);
        bench.send(control, &cookie);
        if stalls != "before its parameters" {
            bench.send(control, &parameters);
        }
        bench.run(5);
        for _ in 0..streams {
            let stream = connect(&mut bench, iperf3::PORT, 2_048);
            bench.send(stream, &cookie);
        }
        bench.run(5);
        assert!(!is_asked(&mut bench), "{stalls}: one test at a time");
        bench.run(150);
        assert!(bench.is_open(control) || bench.held() == 0, "{stalls}");
        assert!(is_asked(&mut bench), "{stalls}");
        bench.run(150);
        assert_eq!(bench.held(), 0, "{stalls}: every place is free again");
    }
}

/// A client that never names its test, or whose test is refused and that stays, has a place
/// for so long only.
#[test]
fn newcomers_and_those_who_should_leave_lose_their_places() {
    let arena = Arena::new();
    let mut bench = Bench::new(&arena);
    let silent = connect(&mut bench, iperf3::PORT, 2_048);
    let test = connect(&mut bench, iperf3::PORT, 2_048);
    bench.run(2);
    bench.send(test, &[b'a'; 37]);
    bench.run(2);
    let refused = connect(&mut bench, iperf3::PORT, 2_048);
    bench.run(2);
    bench.send(refused, &[b'b'; 37]);
    bench.send(silent, b"abc");
    for _ in 0..30 {
        // A byte now and then: the connection is never idle.
        bench.run(10);
        for trickling in [silent, refused] {
            let host = bench.network.host(0).unwrap();
            bench.network.world.with_node(host, |node, now| {
                let _ = node.tcp_mut().send(trickling, b"x", now);
            });
        }
    }
    assert_eq!(bench.held(), 0);
}

#[test]
fn the_generated_text_is_that_of_the_rfc() {
    let text: String = (0..2 * LINE_LEN)
        .map(|place| char::from(generated(place)))
        .collect();
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap();
    assert!(first.starts_with(" !\"#$%&'()*+,-./0123456789") && first.len() == 72);
    assert_eq!(lines.next().unwrap()[..71], first[1..]);
    assert_eq!(generated(GENERATED_PERIOD), generated(0));
}

const MOTE: usize = 1;
const PLACES: usize = 4;

#[test]
fn a_web_server_answers_client_after_client() {
    let arena = Arena::new();
    let mut bench = Bench::with(&arena, Some(Application::Http));
    for _ in 0..3 * PLACES {
        let client = connect(&mut bench, 80, 2_048);
        bench.send(client, b"GET / HTTP/1.1\r\nHost: mote\r\n\r\n");
        bench.run(10);
        let answer = String::from_utf8(bench.read(client)).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nhello from a mote\n"), "{answer}");
        close(&mut bench, client);
        bench.run(10);
    }
    assert_eq!(bench.held(), 0);
}

#[test]
fn a_line_without_an_end_takes_no_more_than_a_line() {
    let arena = Arena::new();
    let mut bench = Bench::with(&arena, Some(Application::Shell));
    let client = connect(&mut bench, 23, 2_048);
    for _ in 0..8 {
        bench.send(client, &[b'x'; 1_000]);
        bench.run(10);
    }
    bench.read(client);
    bench.send(client, b"\r\necho on it goes\r\n");
    bench.run(10);
    let answer = String::from_utf8(bench.read(client)).expect("text");
    assert!(answer.starts_with("no command xxx"), "{answer}");
    assert!(answer.len() < 1_200, "{}", answer.len());
    assert!(answer.ends_with("> on it goes\r\n> "), "{answer}");
}

fn close(bench: &mut Bench<'_>, handle: Handle) {
    let host = bench.network.host(0).unwrap();
    bench
        .network
        .world
        .with_node(host, |node, now| node.tcp_mut().close(handle, now));
}

/// What `HEAD` says about a mote's firmware: `Content-Length`.
fn stored(bench: &mut Bench<'_>) -> usize {
    let client = connect(bench, 80, 2_048);
    bench.send(client, b"HEAD /firmware HTTP/1.0\r\n\r\n");
    bench.run(10);
    let said = String::from_utf8(bench.read(client)).unwrap();
    let mut lines = said.lines();
    let len = lines.find_map(|line| line.strip_prefix("Content-Length: "));
    len.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

/// Power that goes costs a page, and flash makes the processor stand still: 85 ms for each page, 41
/// µs for each word.
#[test]
fn firmware_outlives_a_mote_that_is_switched_off() {
    let arena = Arena::new();
    let mut bench = Bench::serving(&arena, |services| services.with_firmware(None));
    let busy_us = |bench: &Bench<'_>| {
        let usage = bench.network.world.usage(MOTE).unwrap();
        usage.cpu().as_micros()
    };
    let before = busy_us(&bench);
    let client = connect(&mut bench, 80, 2_048);
    bench.run(2);
    let mut request = b"PUT /firmware HTTP/1.0\r\nContent-Length: 20000\r\n\r\n".to_vec();
    // A header of MCUboot's format; nobody looks behind it before the image is whole.
    request.extend(0x96f3_b83d_u32.to_le_bytes());
    request.extend([0, 0, 0, 0, 32, 0, 0, 0, 0x80, 0x3e, 0, 0]);
    request.extend([0; 16]);
    request.resize(request.len() + 11_000, 7);
    for piece in request.chunks(500) {
        bench.send(client, piece);
        bench.run(2);
    }
    assert_eq!(stored(&mut bench), 11_032);
    let busy = busy_us(&bench) - before;
    let flash = 3 * 85_000 + 11_032 / 4 * 41;
    assert!(busy > flash, "{busy} µs, of which flash takes {flash}");
    bench.network.switch_off(MOTE);
    bench.run(5);
    bench.network.switch_on(MOTE, &arena);
    assert!(bench.network.join(Duration::from_secs(60)));
    assert_eq!(stored(&mut bench), 8_192);
}
