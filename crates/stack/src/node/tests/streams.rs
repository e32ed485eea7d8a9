//! Packets and streams over several hops.

use super::*;

#[test]
fn a_stream_crosses_three_hops_both_ways() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        let mut world = World::chain(3, relaying);
        let data = bytes(5_000);
        let host = world.host();
        transfer(&mut world, 3, host, HOST, &data);
        let mut world = World::chain(3, relaying);
        transfer(&mut world, host, 3, global(3), &data);
        let relayed = world.radio_of(2).counters().fragments_relayed;
        assert_eq!(
            relayed > 20,
            relaying == Relaying::Fragments,
            "{relaying:?} {relayed}"
        );
    }
}

#[test]
fn the_mss_fills_its_frames_and_relays_never_find_a_fragment_too_long() {
    let mut world = World::chain(3, Relaying::Fragments);
    let mss = world.nodes[3].mss((HOST, 9), true);
    // 5 frames of 104 bytes; FRAG1 4, FRAGN 5 each; IPHC with contexts 0 and 1, and later
    // the source's identifier, the hop limit and a mark: 14; the first ends on a unit.
    assert_eq!(mss, 80 + 3 * 96 + 99 - 20);
    let config: &'static tcp::Config = Box::leak(Box::new(tcp::Config {
        smss: mss,
        timestamps: false,
        ecn: false,
        ..SETTINGS
    }));
    let now = world.now;
    let host = world.host();
    let listener = world.nodes[host]
        .tcp_mut()
        .listen(None, 9, &SETTINGS)
        .unwrap();
    let buffers = Buffers::new(memory(0, 2048), memory(0, 2304));
    let sender = world.nodes[3]
        .connect((HOST, 9), buffers, config, now)
        .unwrap();
    world.run_for(Duration::from_secs(1));
    let now = world.now;
    let buffers = Buffers::new(memory(0, 2048), memory(0, 2304));
    world.nodes[host]
        .tcp_mut()
        .accept(listener, buffers, now)
        .unwrap();
    let before = world.frames.len();
    world.nodes[3]
        .tcp_mut()
        .send(sender, &bytes(usize::from(mss)), now)
        .unwrap();
    world.run_for(Duration::from_secs(1));
    let data_frames = |node: usize| {
        let frames = world.frames[before..].iter();
        let data = frames.filter(|(n, frame)| *n == node && frame.len() > 60);
        // Not repetitions.
        data.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((data_frames(3), data_frames(2), data_frames(1)), (5, 5, 5));
    assert_eq!(
        world
            .radio_of(2)
            .counters()
            .dropped(LinkDrop::FragmentTooLong),
        0
    );
}

/// How long after `span` in which its router is deaf a mote's segment arrives, sent when that span
/// begins; `compressing`: the nodes that compress headers.
fn arrives_after(span: Duration, compressing: &[usize]) -> Duration {
    let mut world = World::agreeing(1, Relaying::Fragments, compressing);
    let (host, now) = (world.host(), world.now);
    let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
    let listener = world.nodes[host].tcp_mut().listen(None, 9, &SETTINGS);
    let sender = world.nodes[1].connect((HOST, 9), buffers(), &SETTINGS, now);
    let (listener, sender) = (listener.unwrap(), sender.unwrap());
    world.run_for(Duration::from_secs(1));
    let now = world.now;
    let tcp = world.nodes[host].tcp_mut();
    let receiver = tcp.accept(listener, buffers(), now).unwrap();
    world.deaf = Some((0, now..now + span));
    world.nodes[1]
        .tcp_mut()
        .send(sender, &bytes(300), now)
        .unwrap();
    world.run_for(span);
    let begin = world.now;
    loop {
        let received = world.nodes[host].tcp_mut().recv(receiver, &mut [0; 512]);
        if received == Ok(300) {
            return world.now.since(begin);
        }
        assert!(world.now.since(begin) < Duration::from_secs(60));
        world.run_for(Duration::from_millis(20));
    }
}

/// A segment that its own link gave up is treated as RFC 6069 treats one that a router reports.
/// Doubled timeouts would have it sent again 7, 15 and 31 s after the first time.
#[test]
fn what_its_own_link_gives_up_takes_a_doubling_back() {
    // A neighbour that is silent for long is tried less often by the MAC itself.
    for (ms, most_ms) in [
        (3_300, 1_300),
        (4_600, 1_300),
        (7_900, 1_300),
        (16_000, 4_000),
    ] {
        for compressing in [&[][..], &[0, 1]] {
            let waited = arrives_after(Duration::from_millis(ms), compressing);
            assert!(waited < Duration::from_millis(most_ms), "{ms}: {waited:?}");
        }
    }
}

/// A border router's peers on radio and wire each keep what their own link carries, in whatever
/// order their SYNs came, until they are accepted.
#[test]
fn peers_on_radio_and_wire_keep_the_mss_of_their_link() {
    let mut found = Vec::new();
    for radio_first in [true, false] {
        let mut world = World::chain(1, Relaying::Fragments);
        let (mote, host) = (1, world.host());
        let router = world.nodes[0].tcp_mut();
        let listener = router.listen(None, 9, &SETTINGS).unwrap();
        let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
        let order = match radio_first {
            true => [mote, host],
            false => [host, mote],
        };
        for from in order {
            let now = world.now;
            world.nodes[from]
                .connect((global(0), 9), buffers(), &SETTINGS, now)
                .unwrap();
            world.run_for(Duration::from_secs(1));
        }
        for from in order {
            let (now, router) = (world.now, &mut world.nodes[0]);
            let peer = router.tcp_mut().accept(listener, buffers(), now).unwrap();
            let connection = router.tcp().connection(peer).unwrap();
            let (remote, smss) = (
                connection.endpoints().remote,
                connection.telemetry().smss_bytes,
            );
            assert_eq!(remote == HOST, from == host, "the one that waited longest");
            let of_both = world.nodes[0]
                .mss((remote, 9), true)
                .min(world.nodes[from].mss((global(0), 9), true));
            // Timestamps take 12.
            assert_eq!(smss, of_both.min(SETTINGS.smss) - 12, "{remote}");
            found.push((from == host, smss));
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 2, "one for each link: {found:?}");
}

/// Connections of a mote that ask for longer segments have them, either way and whoever opens them;
/// others beside them keep what the link says.
#[test]
fn a_connection_may_have_longer_segments_than_its_link_says() {
    static LONG: tcp::Config = tcp::Config {
        mss_frames: 12,
        ..SETTINGS
    };
    let buffers = || Buffers::new(memory(0, 4096), memory(0, 4608));
    for compressing in [&[][..], &[0, 3]] {
        let mut world = World::compressing(3, Relaying::Fragments, compressing);
        let host = world.host();
        let smss = |world: &World, node: usize, handle| {
            let connection = world.nodes[node].tcp().connection(handle).unwrap();
            connection.telemetry().smss_bytes
        };
        let (mut found, mut sender) = (Vec::new(), None);
        for (port, config) in [(80, &LONG), (9, &SETTINGS)] {
            let [own, peers] = world.nodes[3].mss_with((HOST, port), config);
            for (from, to, addr) in [(host, 3, global(3)), (3, host, HOST)] {
                let [calling, listening] = match from {
                    3 => [config, &SETTINGS],
                    _ => [&SETTINGS, config],
                };
                let now = world.now;
                let listener = world.nodes[to].tcp_mut().listen(None, port, listening);
                let caller = world.nodes[from].connect((addr, port), buffers(), calling, now);
                let (listener, caller) = (listener.unwrap(), caller.unwrap());
                world.run_for(Duration::from_secs(1));
                let (now, tcp) = (world.now, world.nodes[to].tcp_mut());
                let called = tcp.accept(listener, buffers(), now).unwrap();
                let (mote, beyond) = match from {
                    3 => (caller, called),
                    _ => (called, caller),
                };
                if (from, port) == (3, 80) {
                    sender = Some(caller);
                }
                // Timestamps take 12.
                let bound = |mss: u16| mss.min(SETTINGS.smss) - 12;
                assert!(smss(&world, 3, mote) <= bound(own), "{port} {from}");
                assert!(smss(&world, host, beyond) <= bound(peers), "{port} {from}");
                found.push((port, smss(&world, 3, mote), smss(&world, host, beyond)));
            }
        }
        let [down, up, short_down, short_up] = found[..] else {
            unreachable!()
        };
        for (long, short) in [(down, short_down), (up, short_up)] {
            assert!(long.1 > 2 * short.1 && long.2 > 2 * short.2, "{found:?}");
        }
        // A full segment is sent as such.
        let (before, now) = (world.frames.len(), world.now);
        let sender = sender.unwrap();
        let segment = usize::from(smss(&world, 3, sender));
        let tcp = world.nodes[3].tcp_mut();
        tcp.send(sender, &bytes(segment), now).unwrap();
        world.run_for(Duration::from_secs(2));
        let frames = world.frames[before..].iter();
        let data_frames = frames.filter(|(node, frame)| *node == 3 && frame.len() > 90);
        let data_frames: std::collections::BTreeSet<_> = data_frames.collect();
        assert!(
            (11..=12).contains(&data_frames.len()),
            "{}",
            data_frames.len()
        );
    }
}

/// Sends a packet in fragments, as a foreign stack does that leaves no slack.
fn inject(world: &mut World, hop: lowpan::LinkPair, len_max: usize, packet: &[u8]) {
    let mut buffer = [0; IPV6_MTU_MIN];
    buffer[..packet.len()].copy_from_slice(packet);
    let mut outgoing = lowpan::fragment::Fragmenter::new(&mut buffer);
    outgoing
        .start(packet.len(), TcpForm::Plain.into(), hop, 77, len_max, 0)
        .unwrap();
    let mut payload = [0; PSDU_LEN_MAX];
    for sequence in 0.. {
        let contexts = world.radio_of(0).contexts();
        let Some(len) = outgoing.next(contexts, &mut payload).unwrap() else {
            break;
        };
        let header = crate::wire::ieee802154::Header::data(0x4d54, hop.dst, hop.src, sequence);
        let mut out = [0; PSDU_LEN_MAX];
        let len = header.emit_frame(&payload[..len], &mut out).unwrap();
        let frame = Pending::Frame(out[..len].to_vec());
        world.at(Duration::ZERO, 2, RADIO, frame);
        world.run_for(Duration::from_millis(20));
    }
    world.run_for(Duration::from_secs(2));
}

#[test]
fn a_relay_passes_on_what_no_slack_was_left_for() {
    // A mote that fills its first fragment, and one whose short addresses leave more room.
    for (src, len_max) in [(link(3), 104), (LinkAddr::Short(7), 110)] {
        let mut world = World::chain(3, Relaying::Fragments);
        let mut request = packet(HOST, 64, 800);
        let (mut header, _) = Header::parse(&request).unwrap();
        header.src = ip::with_iid(&MESH, src.iid());
        header.emit(&mut request).unwrap();
        icmpv6::fill_checksum(&header.src, &HOST, &mut request[40..]);
        let hop = lowpan::LinkPair { src, dst: link(2) };
        let gathered = |world: &World| world.radio_of(2).datagrams().counters().reassembled;
        let before = gathered(&world);
        inject(&mut world, hop, len_max, &request);
        let host = world.host();
        // The border router has no route for the second answer, and says so.
        assert!(world.nodes[host].ip().counters.delivered > 0, "{src:?}");
        let gathered = gathered(&world) - before;
        assert_eq!(gathered, 1, "reassembled, then cut anew: {src:?}");
    }
}

#[test]
fn an_extension_header_longer_than_a_frame_is_carried() {
    let mut world = World::chain(2, Relaying::Fragments);
    let plain = packet(global(2), 64, 100);
    let (mut header, echo) = Header::parse(&plain).unwrap();
    header.next_header = 60;
    header.payload_len += 208;
    let mut options = [0u8; 208];
    options[..4].copy_from_slice(&[58, 25, 5, 204]);
    options[4..].fill(9);
    let mut long = [0u8; 40].to_vec();
    header.emit(&mut long).unwrap();
    long.extend(options);
    long.extend(echo);
    assert_eq!(world.exchange(&long).len(), 1);
}

#[test]
fn a_lost_frame_is_repeated_on_its_link_and_tcp_never_knows() {
    for lost in [3, 7, 12] {
        let mut world = World::chain(2, Relaying::Fragments);
        world.lose = Some(lost);
        let data = bytes(3_000);
        let host = world.host();
        transfer(&mut world, 2, host, HOST, &data);
        let retries: u32 = (0..=2)
            .map(|n| world.radio_of(n).mac().counters().retries)
            .sum();
        assert!(retries >= 1, "the {lost}th frame was repeated");
        assert_eq!(world.nodes[2].tcp().counters().retransmissions, [0; _]);
    }
}

#[test]
fn a_fragment_given_up_takes_its_packet_with_it_and_tcp_repairs() {
    let mut world = World::chain(2, Relaying::Fragments);
    // The border router hears nothing for longer than eight attempts last.
    let deaf_from = world.now + Duration::from_millis(300);
    world.deaf = Some((0, deaf_from..deaf_from + Duration::from_millis(1_200)));
    let data = bytes(3_000);
    let host = world.host();
    transfer(&mut world, 2, host, HOST, &data);
    let relay = world.radio_of(1).mac().counters();
    assert!(
        relay.dropped(mac::FrameDrop::NoAck) >= 1,
        "a frame was given up"
    );
    let ends = [world.radio_of(1).datagrams(), world.radio_of(0).datagrams()];
    let orphans: u32 = ends
        .iter()
        .map(|d| d.counters().dropped(datagram::FragmentDrop::SiblingLost))
        .sum();
    assert!(
        orphans + relay.dropped(mac::FrameDrop::Cancelled) > 0,
        "its siblings were not sent"
    );
}

#[test]
fn a_segment_without_room_does_not_hide_the_retry_that_makes_room() {
    let patient = Duration::from_millis(500);
    let mut world = World::with_queue(1, Relaying::Fragments, patient, 12);
    let now = world.now;
    let buffers = Buffers::new(memory(0, 2048), memory(0, 2304));
    let host = world.host();
    let listener = world.nodes[host]
        .tcp_mut()
        .listen(None, 9, &SETTINGS)
        .unwrap();
    let sender = world.nodes[1]
        .connect((HOST, 9), buffers, &SETTINGS, now)
        .unwrap();
    world.run_for(Duration::from_secs(1));
    let (now, buffers) = (world.now, Buffers::new(memory(0, 2048), memory(0, 2304)));
    let tcp = world.nodes[host].tcp_mut();
    tcp.accept(listener, buffers, now).unwrap();
    // Nobody answers: frames fill the queue between retries while TCP's timers run out.
    world.deaf = Some((0, now..now + Duration::from_secs(30)));
    world.nodes[1]
        .tcp_mut()
        .send(sender, &bytes(2048), now)
        .unwrap();
    // As long as frames wait, something is tried or ended: no later than after a retry delay, a
    // backoff and a frame.
    let pause_max = patient + Duration::from_millis(50);
    let step = Duration::from_millis(10);
    let (mut before, mut since) = (None, world.now);
    while world.now < now + Duration::from_secs(20) {
        world.run_for(step);
        let mac = world.radio_of(1).mac();
        let ends = [
            mac::FrameDrop::NoAck,
            mac::FrameDrop::Silent,
            mac::FrameDrop::TooOld,
        ];
        let ended = ends.map(|reason| mac.counters().dropped(reason));
        let progress = (mac.counters().transmissions, ended);
        if mac.queue_len() == 0 || before.replace(progress) != Some(progress) {
            since = world.now;
        }
        let paused = world.now.since(since);
        assert!(
            paused <= pause_max + step,
            "{paused:?} without a frame at {:?}",
            world.now
        );
    }
    // The first segment and what TCP's timers sent again, after 1, 2, 4 and 8 s.
    let counters = world.radio_of(1).mac().counters();
    let ends = [
        mac::FrameDrop::NoAck,
        mac::FrameDrop::Silent,
        mac::FrameDrop::TooOld,
    ];
    let given_up: u32 = ends.iter().map(|reason| counters.dropped(*reason)).sum();
    assert!(given_up >= 5, "{given_up}");
    let tries = counters.transmissions;
    assert!(tries >= 2 * u32::from(mac::config::ATTEMPTS_MAX), "{tries}");
}

#[test]
fn traffic_class_travels() {
    let mut world = World::chain(2, Relaying::Fragments);
    let mut marked = packet(global(2), 64, 600);
    let class = TrafficClass::new(0x2e, ipv6::Ecn::Ce);
    let (header, _) = Header::parse(&marked).unwrap();
    Header {
        traffic_class: class,
        ..header
    }
    .emit(&mut marked)
    .unwrap();
    world.at(Duration::ZERO, 0, WIRE, Pending::Packet(marked));
    world.run_for(Duration::from_secs(2));
    assert_eq!(
        world.nodes[2].ip().counters.delivered,
        3,
        "the advertisement, the answer to the registration, and the ping"
    );
}
