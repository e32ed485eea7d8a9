//! Chains with the whole stack inside.

use std::sync::Arc;

use motet::wire::icmpv6::{Echo, Message};

use super::*;
use crate::apps::{App, Receiver, Sender, Services};
use crate::capture::{Capture, Records};
use crate::net::bound;
use motet::link::Link;
use motet::{ip, tcp};

const PORT: u16 = 4_242;

/// Bytes in which every place differs from its neighbours.
fn content(len: usize) -> Arc<[u8]> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// What a transfer left behind.
struct Outcome {
    received: Vec<u8>,
    seconds: f64,
    bound_kbps: f64,
    frames: Vec<u64>,
    retries: u64,
    digest: Vec<(usize, usize, u64)>,
    /// TCP headers that both ends sent: full, mostly compressed, compressed, plain.
    tcp_headers: [u32; 4],
}

/// Sends `len` bytes up or down and checks that they arrive.
fn transfer(options: ChainOptions, up: bool, len: usize) -> Outcome {
    let arena = Arena::new();
    let mut chain = Chain::new(options, &arena);
    assert!(
        chain.join(Duration::from_secs(60)),
        "{options:?} does not come up"
    );
    let host = chain.host().unwrap();
    let (sender, receiver) = if up {
        (chain.mote(), host)
    } else {
        (host, chain.mote())
    };
    let ends = |chain: &Chain<'_>, node| {
        if node == host {
            Ends::host(&arena)
        } else {
            mote_ends(chain, &arena)
        }
    };
    let to = if up { plan::HOST } else { chain.mote_addr() };
    let receiving = Receiver::new(PORT, ends(&chain, receiver));
    chain.world.set_app(receiver, App::Receiver(receiving));
    let sending = Sender::new(content(len), (to, PORT), ends(&chain, sender));
    chain.world.set_app(sender, App::Sender(sending));
    let began = chain.world.now();
    let until = began + Duration::from_secs(3_600);
    let closed = |chain: &Chain<'_>, node: usize| {
        chain
            .world
            .app(node)
            .progress()
            .is_some_and(|progress| progress.closed)
    };
    while !(closed(&chain, sender) && closed(&chain, receiver)) {
        assert!(
            chain.world.step(until),
            "{options:?}, {len} bytes, up {up}: no end"
        );
    }
    let App::Receiver(end) = chain.world.app(receiver) else {
        panic!("it was given one")
    };
    let finished = end.progress.finished.expect("it saw the end");
    assert!(
        *end.content == *content(len),
        "{options:?}, {len} bytes, up {up}: not what was sent"
    );
    Outcome {
        received: end.content.clone(),
        seconds: finished.since(began).as_micros() as f64 / 1e6,
        bound_kbps: chain.path(true).unwrap().kbps(bound::Luck::Best),
        frames: chain.frames_by_hop(),
        retries: chain.link_retries(),
        digest: chain
            .world
            .links()
            .map(|((from, to), tally)| (from, to, tally.frames))
            .collect(),
        tcp_headers: tcp_headers(&chain),
    }
}

fn tcp_headers(chain: &Chain<'_>) -> [u32; 4] {
    let mut sum = [0; 4];
    for node in 0..=chain.mote() {
        if let Some(Link::Mesh(radio)) = chain.world.node(node).link(RADIO)
            && let Some(tcphc) = radio.tcphc()
        {
            for (sum, count) in sum.iter_mut().zip(tcphc.counters().sent) {
                *sum += count;
            }
        }
    }
    sum
}

fn mote_ends<'m>(chain: &Chain<'_>, arena: &'m Arena) -> Ends<'m> {
    Ends::mote(arena, plan::HOST, chain.window_segments())
}

impl Outcome {
    fn goodput_kbps(&self) -> f64 {
        self.received.len() as f64 * 8.0 / 1_000.0 / self.seconds
    }
}

#[test]
fn files_arrive_whole_over_any_chain() {
    for hops in [1, 2, 3, 5] {
        for frame_loss in [0.0, 0.05, 0.1] {
            for (len, up) in [(0, true), (1, false), (1_024, true), (20 * 1_024, false)] {
                let options = ChainOptions {
                    hops,
                    frame_loss,
                    ..ChainOptions::default()
                };
                transfer(options, up, len);
            }
        }
    }
}

#[test]
fn files_arrive_whole_with_compressed_tcp_headers() {
    let modes = [
        tcphc::Mode::Default,
        tcphc::Mode::InOrder,
        tcphc::Mode::Strict,
    ];
    for mode in modes {
        for relaying in [Relaying::Fragments, Relaying::Reassembly] {
            for (hops, frame_loss, len, up) in [
                (1, 0.0, 1, true),
                (2, 0.0, 20_480, false),
                (3, 0.1, 20_480, true),
                (3, 0.1, 20_480, false),
            ] {
                let options = ChainOptions {
                    hops,
                    frame_loss,
                    relaying,
                    compression: Some(mode),
                    ..ChainOptions::default()
                };
                let outcome = transfer(options, up, len);
                let [full, mostly, compressed, plain] = outcome.tcp_headers;
                assert!(full >= 1, "{options:?}: the opening");
                assert_eq!(plain, 0, "{options:?}");
                let segments = len as u32 / 500;
                assert!(compressed >= segments, "{options:?}: {compressed}");
                assert!(mostly + full <= compressed.max(8), "{options:?}");
            }
        }
    }
}

#[test]
fn files_arrive_whole_over_copy_free_relays() {
    for channels in [Channels::SINGLE, Channels::ALL] {
        for (hops, frame_loss) in [(2, 0.0), (3, 0.1), (6, 0.05)] {
            for (len, up) in [(1, true), (20 * 1_024, true), (20 * 1_024, false)] {
                let options = ChainOptions {
                    hops,
                    frame_loss,
                    channels,
                    ..copy_free()
                };
                transfer(options, up, len);
            }
        }
    }
}

#[test]
fn the_end_of_a_window_does_not_wait_in_relays() {
    // One segment at a time, and then the FIN: all of it ends, nothing follows.
    for len in [1, 462, 2 * 462] {
        let copied = ChainOptions {
            forwarding: Forwarding::Copy,
            ..copy_free()
        };
        let [with, without] = [copy_free(), copied].map(|options| transfer(options, true, len));
        let (with, without) = (with.seconds, without.seconds);
        assert!(with < 1.15 * without, "{len}: {with} s, copied {without} s");
    }
}

#[test]
fn a_radio_with_one_buffer_forwards_as_ever() {
    let options = ChainOptions {
        profile: Profile::HAMILTON,
        ..copy_free()
    };
    let copied = ChainOptions {
        forwarding: Forwarding::Copy,
        ..options
    };
    let [with, without] = [options, copied].map(|options| transfer(options, true, 20 * 1_024));
    assert_eq!(with.digest, without.digest);
}

/// Three hops of radios that can keep a frame.
fn copy_free() -> ChainOptions {
    ChainOptions {
        retry_delay: Duration::from_millis(10),
        pacing_step: Duration::from_micros(4_500),
        profile: Profile::TELOSB,
        forwarding: Forwarding::Immediate,
        ..ChainOptions::default()
    }
}

#[test]
fn relays_may_reassemble_each_packet() {
    let options = ChainOptions {
        relaying: Relaying::Reassembly,
        packet_loss: 0.05,
        ..ChainOptions::default()
    };
    for up in [true, false] {
        transfer(options, up, 20 * 1_024);
    }
}

#[test]
fn goodput_is_that_of_the_testbed() {
    // TCPlp §7.1 and §7.2: 64.1 kb/s over one hop, 19.5 over three, at d = 40 ms.
    for (hops, published) in [(1, 64.1), (3, 19.5)] {
        let outcome = transfer(
            ChainOptions {
                hops,
                ..ChainOptions::default()
            },
            true,
            250_000,
        );
        let goodput = outcome.goodput_kbps();
        assert!(
            (goodput / published - 1.0).abs() < 0.15,
            "{hops} hops: {goodput:.1} kb/s"
        );
        assert!(
            goodput < outcome.bound_kbps,
            "{goodput:.1} exceeds {:.1}",
            outcome.bound_kbps
        );
        assert_eq!(outcome.frames.len(), usize::from(hops));
    }
}

#[test]
fn the_estimate_is_made_of_real_frames() {
    let arena = Arena::new();
    let mut chain = Chain::new(
        ChainOptions {
            hops: 1,
            ..ChainOptions::default()
        },
        &arena,
    );
    assert!(chain.join(Duration::from_secs(60)));
    let frames = chain.segment_frames();
    assert_eq!(frames.frames.len(), 5, "{frames:?}");
    assert!(
        frames.frames[1..4]
            .iter()
            .all(|len| (120..=127).contains(len)),
        "{frames:?}"
    );
    assert_eq!(frames.ack_frames.len(), 1, "{frames:?}");
    assert!(
        (420..=470).contains(&frames.payload_len),
        "{frames:?}, the paper has 462"
    );
    assert!(
        (78.0..90.0).contains(&chain.estimate_kbps()),
        "{}",
        chain.estimate_kbps()
    );
}

#[test]
fn the_air_bites_and_the_retry_delay_heals() {
    let retries = |change: fn(&mut ChainOptions)| {
        let mut options = ChainOptions {
            retry_delay: Duration::ZERO,
            ..ChainOptions::default()
        };
        change(&mut options);
        transfer(options, true, 50_000).retries
    };
    let stock = retries(|_| {});
    let delayed = retries(|options| options.retry_delay = Duration::from_millis(40));
    assert!(
        delayed * 4 < stock * 3,
        "{delayed} with a delay, {stock} without"
    );
}

#[test]
fn every_radio_carries_a_transfer_at_its_own_cost() {
    // (profile, least and most kb/s over one hop, least share of the processor at the mote)
    for (profile, [least, most], cpu) in [
        (Profile::HAMILTON, [50.0, 80.0], 0.15),
        (Profile::TELOSB, [60.0, 95.0], 0.2),
        (Profile::NRF52840, [75.0, 115.0], 0.001),
        (Profile::RCP, [75.0, 115.0], 0.001),
    ] {
        let arena = Arena::new();
        let options = ChainOptions {
            hops: 1,
            profile,
            ..ChainOptions::default()
        };
        let mut chain = Chain::new(options, &arena);
        assert!(chain.join(Duration::from_secs(60)));
        let (host, mote) = (chain.host().unwrap(), chain.mote());
        let receiving = Receiver::new(PORT, chain.host_ends(&arena));
        chain.world.set_app(host, App::Receiver(receiving));
        let sending = Sender::new(
            content(200_000),
            (plan::HOST, PORT),
            chain.mote_ends(&arena),
        );
        chain.world.set_app(mote, App::Sender(sending));
        let until = chain.world.now() + Duration::from_secs(10);
        chain.world.run_until(until);
        let App::Receiver(end) = chain.world.app(host) else {
            panic!("it was set")
        };
        let kbps = end.content.len() as f64 * 8.0 / 10_000.0;
        assert!((least..most).contains(&kbps), "{kbps} kb/s: {profile:?}");
        let energy = chain.world.energy(mote).unwrap();
        assert!(energy.cpu_duty > cpu, "{energy:?}");
        assert_eq!(energy.radio_duty, 1.0, "it listens always");
        assert!(energy.radio_mj > energy.cpu_mj, "{energy:?}");
    }
}

/// What the stack does for frames and segments is time of the processor, and moves none of them.
#[test]
fn work_is_counted_and_moves_nothing() {
    let run = |sent_us, received_us, segment_us| {
        let arena = Arena::new();
        let options = ChainOptions {
            hops: 1,
            profile: Profile {
                frame_sent: Duration::from_micros(sent_us),
                frame_received: Duration::from_micros(received_us),
                segment: Duration::from_micros(segment_us),
                ..Profile::HAMILTON
            },
            ..ChainOptions::default()
        };
        let mut chain = Chain::new(options, &arena);
        assert!(chain.join(Duration::from_secs(60)));
        let (host, mote) = (chain.host().unwrap(), chain.mote());
        let receiving = Receiver::new(PORT, chain.host_ends(&arena));
        chain.world.set_app(host, App::Receiver(receiving));
        let sending = Sender::new(content(20_000), (plan::HOST, PORT), chain.mote_ends(&arena));
        chain.world.set_app(mote, App::Sender(sending));
        let until = chain.world.now() + Duration::from_secs(10);
        chain.world.run_until(until);
        let tcp = chain.world.node(mote).tcp().counters();
        let segments = u64::from(tcp.sent) + u64::from(tcp.received);
        let mac = chain.macs().nth(mote).unwrap().counters();
        let done = [mac.transmissions.into(), mac.received.into(), segments];
        (done, chain.world.usage(mote).unwrap().cpu().as_micros())
    };
    let (done @ [sent, received, segments], driver_us) = run(0, 0, 0);
    assert!(sent > 200 && received > 20 && segments > 60, "{done:?}");
    let all_us = driver_us + 100 * sent + 50 * received + 700 * segments;
    assert_eq!(run(100, 50, 700), (done, all_us));
}

#[test]
fn the_hold_rule_keeps_frames_of_one_path_apart() {
    let retries = |hold_ms| {
        let options = ChainOptions {
            retry_delay: Duration::from_millis(10),
            pacing_step: Duration::from_millis(hold_ms),
            ..ChainOptions::default()
        };
        transfer(options, true, 50_000).retries
    };
    let (held, stock) = (retries(7), retries(0));
    assert!(
        held * 3 < stock * 2,
        "{held} with the rule, {stock} without"
    );
}

#[test]
fn a_seed_decides_everything() {
    let run = |seed| {
        let options = ChainOptions {
            seed,
            frame_loss: 0.02,
            ..ChainOptions::default()
        };
        let outcome = transfer(options, true, 20_000);
        (outcome.seconds.to_bits(), outcome.digest)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn captures_are_whole_and_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let capture = |name: &str| {
        let arena = Arena::new();
        let mut chain = Chain::new(
            ChainOptions {
                hops: 2,
                ..ChainOptions::default()
            },
            &arena,
        );
        let paths = ["air", "wire"].map(|what| folder.path().join(format!("{name}-{what}.pcap")));
        let air = Capture::create(&paths[0], Records::TappedFrames, false).unwrap();
        let wire = Capture::create(&paths[1], Records::Packets, false).unwrap();
        chain.world.set_capture(Some(air));
        chain.world.wire_mut().unwrap().set_capture(wire);
        assert!(chain.join(Duration::from_secs(60)));
        let ends = chain.host_ends(&arena);
        let (host, mote) = (chain.host().unwrap(), chain.mote());
        chain
            .world
            .set_app(host, App::Receiver(Receiver::new(PORT, ends)));
        let ends = chain.mote_ends(&arena);
        let sender = Sender::new(content(3_000), (plan::HOST, PORT), ends);
        chain.world.set_app(mote, App::Sender(sender));
        chain
            .world
            .run_until(chain.world.now() + Duration::from_secs(10));
        chain.world.take_capture().unwrap().finish().unwrap();
        chain.world.wire_mut().unwrap().finish_capture().unwrap();
        let frames: u64 = chain
            .world
            .links()
            .map(|(_, tally)| tally.frames + tally.acks)
            .sum();
        let packets = chain.world.wire().unwrap().tally;
        (
            paths.map(|path| std::fs::read(path).unwrap()),
            frames,
            packets.up + packets.down,
        )
    };
    let ([air, wire], frames, packets) = capture("first");
    let (again, ..) = capture("second");
    assert_eq!([&air, &wire], [&again[0], &again[1]]);
    // Broadcast advertisements are for nobody in particular, hence on no link.
    assert!(
        records(&air) >= frames && records(&air) < frames + 40,
        "{frames}"
    );
    assert_eq!(records(&wire), packets);
}

/// How many records a little-endian capture has.
fn records(capture: &[u8]) -> u64 {
    let (mut rest, mut count) = (&capture[24..], 0);
    while let Some(len) = rest.get(8..12) {
        let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
        rest = &rest[16 + len..];
        count += 1;
    }
    count
}

#[test]
fn the_outside_exchanges_packets_with_the_mesh() {
    let arena = Arena::new();
    let options = ChainOptions {
        host: Host::Outside,
        hops: 2,
        ..ChainOptions::default()
    };
    let mut chain = Chain::new(options, &arena);
    assert!(chain.host().is_none() && chain.join(Duration::from_secs(60)));
    let ping = ping(plan::HOST, chain.mote_addr());
    chain.world.wire_mut().unwrap().watch();
    chain.world.inject_packet(&ping);
    let sent_at = chain.world.now();
    let answer = loop {
        assert!(
            chain.world.step(sent_at + Duration::from_secs(5)),
            "no answer"
        );
        if let Some(packet) = chain.world.take_packet() {
            break packet;
        }
    };
    assert_eq!(
        (answer[40], &answer[8..24]),
        (129, &chain.mote_addr().octets()[..])
    );
    let rtt = chain.world.now().since(sent_at);
    // Twice the wire, and four hops of a short frame.
    assert!((50..120).contains(&rtt.as_millis()), "{rtt:?}");
    let wire = chain.world.wire_mut().unwrap();
    assert!(!wire.take_passed().unwrap().upwards && wire.take_passed().unwrap().upwards);
}

/// An ICMPv6 echo request.
fn ping(src: Ipv6Addr, dst: Ipv6Addr) -> Vec<u8> {
    let echo = Echo {
        identifier: 1,
        sequence: 1,
        data: b"motet",
    };
    let message = Message::EchoRequest(echo);
    let mut packet = [0; 128];
    let len = ip::icmp::write(&message, src, dst, 64, &mut packet).unwrap();
    packet[..len].to_vec()
}

#[test]
fn motes_serve_echo_and_chargen() {
    let arena = Arena::new();
    let mut chain = Chain::new(ChainOptions::default(), &arena);
    assert!(chain.join(Duration::from_secs(60)));
    let ends = chain.mote_ends(&arena);
    let mote = chain.mote();
    chain
        .world
        .set_app(mote, App::Services(Box::new(Services::new(2, ends))));
    let host = chain.host().unwrap();
    let remote = (chain.mote_addr(), 0);
    let open = |chain: &mut Chain<'_>, port| {
        let memory = [2_048, 2_304].map(|len| &mut *vec![0; len].leak());
        let [send, recv] = memory;
        let settings = Box::leak(Box::new(tcp::Config::DEFAULT));
        chain.world.with_node(host, |node, now| {
            let buffers = tcp::Buffers::new(send, recv);
            node.connect((remote.0, port), buffers, settings, now)
                .unwrap()
        })
    };
    let (echo, chargen) = (open(&mut chain, 7), open(&mut chain, 19));
    chain.world.with_node(host, |node, now| {
        assert_eq!(node.tcp_mut().send(echo, b"hello", now), Ok(5));
        node.tcp_mut().shutdown(echo, now);
    });
    let until = chain.world.now() + Duration::from_secs(5);
    chain.world.run_until(until);
    chain.world.with_node(host, |node, _| {
        let mut bytes = [0; 80];
        assert_eq!(node.tcp_mut().recv(echo, &mut bytes), Ok(5));
        assert_eq!(bytes[..5], *b"hello");
        assert_eq!(
            node.tcp_mut().recv(echo, &mut bytes),
            Err(tcp::RecvError::Finished)
        );
        assert_eq!(node.tcp_mut().recv(chargen, &mut bytes), Ok(80));
        assert!(bytes.starts_with(b" !\"#$%&'"));
        node.tcp_mut().abort(chargen);
    });
    chain.world.run_until(until + Duration::from_secs(5));
    let App::Services(services) = chain.world.app(mote) else {
        panic!("it was given them")
    };
    assert_eq!(
        services.connections(),
        0,
        "ended connections give their buffers back"
    );
}

/// A dongle's seam: the MAC hears only how each attempt ended.
#[test]
fn a_radio_that_makes_attempts_by_itself_carries_as_much_as_the_same_radio_told_each_step() {
    for (hops, frame_loss) in [(1, 0.0), (3, 0.0), (2, 0.05)] {
        let options = |profile| ChainOptions {
            hops,
            profile,
            frame_loss,
            ..ChainOptions::default()
        };
        let total = 100_000;
        let own = transfer(options(Profile::RCP), true, total);
        let told = transfer(options(Profile::NRF52840), true, total);
        assert_eq!(own.received, told.received);
        let ratio = told.seconds / own.seconds;
        assert!(
            (0.9..1.1).contains(&ratio),
            "{hops} hops, {frame_loss}: {ratio:.2} of the goodput"
        );
        let down = transfer(options(Profile::RCP), false, 20_000);
        assert_eq!(down.received.len(), 20_000);
    }
}
