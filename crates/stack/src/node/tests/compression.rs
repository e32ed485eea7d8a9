//! Compressed TCP headers, from end to end of the mesh.

use super::*;

/// Headers that a node sent: full, mostly compressed, compressed, plain.
fn sent(world: &World, node: usize) -> [u32; 4] {
    let tcphc = world.radio_of(node).tcphc();
    tcphc.map_or([0; 4], |tcphc| tcphc.counters().sent)
}

fn no_header_was_refused(world: &World) {
    for node in 0..=world.hops {
        let refused = world
            .radio_of(node)
            .counters()
            .dropped(LinkDrop::TcpCompression);
        assert_eq!(refused, 0, "node {node}");
    }
}

/// Motes and router compress, hosts see plain TCP, motes among each other.
#[test]
fn streams_cross_a_mesh_whose_relays_hold_no_contexts() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        // From mote 3 to the host and back, and to a mote, past mote 2 each time.
        for (from, to) in [(3, 4), (4, 3), (3, 1), (1, 3)] {
            let mut world = World::compressing(3, relaying, &[0, 1, 3]);
            let target = if to == 4 { HOST } else { global(to) };
            transfer(&mut world, from, to, target, &bytes(6_000));
            no_header_was_refused(&world);
            let ends = match (from.min(to), from.max(to)) {
                (1, 3) => [1, 3],
                _ => [0, 3],
            };
            for end in ends {
                let [full, _, compressed, plain] = sent(&world, end);
                assert!(full > 0, "{relaying:?} {from} to {to}: {end} opened");
                assert!(compressed >= 5, "{relaying:?} {from} to {to}: {compressed}");
                assert_eq!(plain, 0, "{relaying:?} {from} to {to}");
            }
        }
    }
}

#[test]
fn whatever_frame_is_lost_the_stream_goes_on() {
    for lost in 0..60 {
        let mut world = World::compressing(2, Relaying::Fragments, &[0, 2]);
        // Its retries are lost too: the receiver is deaf for longer than they last.
        let span = world.now..world.now + Duration::from_millis(40 * lost);
        world.lose = Some(lost as usize);
        world.deaf = Some((1, span));
        transfer(&mut world, 2, 3, HOST, &bytes(4_000));
    }
}

#[test]
fn a_peer_without_contexts_gets_nothing_that_takes_one() {
    for end in [0, 2] {
        for (from, to, target) in [(2, 3, HOST), (3, 2, global(2))] {
            let mut world = World::compressing(2, Relaying::Fragments, &[end]);
            transfer(&mut world, from, to, target, &bytes(4_000));
            no_header_was_refused(&world);
            let [_, mostly, compressed, _] = sent(&world, end);
            assert_eq!((mostly, compressed), (0, 0), "node {end}, {from} to {to}");
        }
    }
}

#[test]
fn errors_quote_nothing_of_a_compressed_header() {
    let mut world = World::compressing(1, Relaying::Fragments, &[1]);
    // A compressed header for a context that nobody has, to a host beyond the wire.
    let mut packet = std::vec![0; ipv6::HEADER_LEN + 20];
    let header = Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: 20,
        next_header: crate::wire::tcp::NEXT_HEADER,
        hop_limit: 64,
        src: global(1),
        dst: HOST,
    };
    header.emit(&mut packet).unwrap();
    let compressed = [0xc0, 0, 9, 0xab, 0xcd];
    packet[ipv6::HEADER_LEN + 15..].copy_from_slice(&compressed);
    let mut payload = [0; PSDU_LEN_MAX];
    let hop = lowpan::LinkPair {
        src: link(1),
        dst: link(0),
    };
    let contexts = world.radio_of(0).contexts().clone();
    let form = TcpForm::Compressed.into();
    let made = lowpan::compress_form(&packet, form, hop, &contexts, &mut payload).unwrap();
    let frames = world.frames.len();
    let psdu = frame_from(link(1), link(0), 90, &payload[..made.compressed_len]);
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: world.now,
    };
    let event = mac::Event::FrameReceived { psdu: &psdu, meta };
    let now = world.now;
    world.nodes[0].on_event(RADIO, Event::Mesh(event), now);
    world.run_for(Duration::from_secs(1));
    let counters = world.radio_of(0).counters();
    assert_eq!(counters.dropped(LinkDrop::TcpCompression), 1);
    assert_eq!(world.frames.len(), frames + 1, "an acknowledgement alone");
}

/// What was compressed elsewhere and waits here for longer than its numbers are sure to be
/// understood goes no further, whether it waits whole or in fragments.
#[test]
fn a_relay_passes_nothing_on_that_is_too_old() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        let delay = mac::config::RETRY_DELAY_MAX;
        let mut world = World::build(3, relaying, delay, 8, (&[0, 3], false));
        let now = world.now;
        let tcp = world.nodes[4].tcp_mut();
        let listener = tcp.listen(None, 9, &SETTINGS).unwrap();
        let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
        let sender = world.nodes[3]
            .connect((HOST, 9), buffers(), &SETTINGS, now)
            .unwrap();
        world.run_for(Duration::from_secs(1));
        let now = world.now;
        let tcp = world.nodes[4].tcp_mut();
        let receiver = tcp.accept(listener, buffers(), now).unwrap();
        // The relay may not speak to the next hop for three seconds.
        let held = now + Duration::from_secs(3);
        let mesh = world.nodes[2].link_mut(RADIO).unwrap().mesh_mut();
        let mac = mesh.unwrap().mac_mut();
        mac.pause(link(1), held, now);
        let tcp = world.nodes[3].tcp_mut();
        assert_eq!(tcp.send(sender, &bytes(1_200), now), Ok(1_200));
        world.run_for(Duration::from_millis(3_100));
        let mac = world.radio_of(2).mac().counters();
        assert!(mac.dropped(mac::FrameDrop::TooOld) > 0, "{relaying:?}");
        let whole = world.nodes[2].ip().counters.dropped(ip::PacketDrop::TooOld);
        assert_eq!(whole > 0, relaying == Relaying::Reassembly, "{whole}");
        world.run_for(Duration::from_secs(20));
        let mut received = 0;
        let mut room = [0; 2048];
        let tcp = world.nodes[4].tcp_mut();
        while let Ok(count @ 1..) = tcp.recv(receiver, &mut room) {
            received += count;
        }
        assert_eq!(received, 1_200, "{relaying:?}: it was sent again");
    }
}

/// Numbers of 16 bits are sure only within `FLIGHT_MAX`, however large the buffers are.
#[test]
fn windows_of_compressed_connections_are_short() {
    for compressing in [&[][..], &[0, 1]] {
        for (from, to) in [(1, 2), (2, 1)] {
            let mut world = World::compressing(1, Relaying::Fragments, compressing);
            let target = (if to == 2 { HOST } else { global(1) }, 9);
            let settings: &tcp::Config = Box::leak(Box::new(tcp::Config {
                accept_window: u16::MAX,
                ..SETTINGS
            }));
            let memory_len = tcp::recv_memory_len(u16::MAX);
            let buffers = || Buffers::new(memory(0, 65_535), memory(0, memory_len));
            let now = world.now;
            let listening = world.nodes[to].tcp_mut();
            let listener = listening.listen(None, target.1, settings).unwrap();
            let handles = [
                world.nodes[from].connect(target, buffers(), settings, now),
                Ok(world.nodes[to]
                    .tcp_mut()
                    .accept(listener, buffers(), now)
                    .unwrap()),
            ];
            world.run_for(Duration::from_secs(2));
            for (node, handle) in [from, to].into_iter().zip(handles) {
                let connection = world.nodes[node].tcp().connection(handle.unwrap());
                let window = connection.unwrap().telemetry().snd_wnd_bytes;
                let is_short = !compressing.is_empty();
                assert_eq!(window, if is_short { 16_384 } else { 65_535 }, "{node}");
            }
        }
    }
}

/// What is agreed between a mote and its border router.
mod agreed {
    use super::super::discovery::advertise_to;
    use super::*;
    #[cfg(feature = "tcphc")]
    use crate::mote::{MoteConfig, MoteStorage};

    const FAR: usize = 3;

    fn chain(ends: &[usize]) -> World {
        World::agreeing(FAR, Relaying::Fragments, ends)
    }

    /// Advertisements that a node sent, and how many of them offer to restore headers.
    fn offers(world: &World, node: usize) -> bool {
        let option = *b"TCPHC\x01";
        let mut frames = world.frames.iter().filter(|(n, _)| *n == node);
        frames.any(|(_, frame)| frame.windows(option.len()).any(|bytes| bytes == option))
    }

    #[test]
    fn a_stream_to_or_from_the_host_or_the_router_is_compressed() {
        for relaying in [Relaying::Fragments, Relaying::Reassembly] {
            for (from, to) in [(FAR, 4), (4, FAR), (FAR, 0), (0, FAR)] {
                let mut world = World::agreeing(FAR, relaying, &[0, FAR]);
                let target = if to == 4 { HOST } else { global(to) };
                transfer(&mut world, from, to, target, &bytes(6_000));
                no_header_was_refused(&world);
                for end in [0, FAR] {
                    let [full, _, compressed, plain] = sent(&world, end);
                    // The SYN of a host, and of the border router itself, is plain.
                    let opens = end == 0 && to == FAR;
                    let opening = 1 - u32::from(opens);
                    assert!((opening..=3).contains(&full), "{from} to {to}: {full}");
                    assert!(compressed >= 5, "{from} to {to}: {compressed}");
                    assert_eq!(plain, u32::from(opens), "{from} to {to}");
                }
            }
        }
    }

    /// A mote that takes all its memory from one static has a context for each connection; after a
    /// start it opens plain for two minutes.
    #[cfg(feature = "tcphc")]
    #[test]
    fn a_mote_in_one_static_compresses_where_that_is_offered() {
        for is_offered in [true, false] {
            let ends: &[usize] = if is_offered { &[0] } else { &[] };
            let mut world = World::agreeing(1, Relaying::Fragments, ends);
            let storage: &mut MoteStorage<'_, 2, 2048> = Box::leak(Box::new(MoteStorage::EMPTY));
            let capabilities = RadioCapabilities {
                auto_ack: false,
                ..RadioCapabilities::CC2420
            };
            let config = MoteConfig::new(0x4d54, eui(1), capabilities, [7, 1]);
            let (mote, _) = storage.lend(&config, world.now).unwrap();
            core::mem::swap(mote, &mut world.nodes[1]);
            world.poll_all();
            for (port, is_early) in [(9, true), (10, false)] {
                let after = Duration::from_secs(if is_early { 20 } else { 110 });
                world.run_for(after);
                transfer_with(&mut world, (1, 2, (HOST, port)), &bytes(6_000), &SETTINGS);
                no_header_was_refused(&world);
                for end in [0, 1] {
                    let [full, mostly, compressed, _] = sent(&world, end);
                    let all = full + mostly + compressed;
                    let compresses = is_offered && !is_early;
                    assert_eq!(all == 0, !compresses, "node {end}, port {port}: {all}");
                    assert_eq!(compressed >= 5, compresses, "node {end}, port {port}");
                }
            }
        }
    }

    #[test]
    fn the_offer_goes_from_router_to_router_and_only_from_there() {
        for (ends, is_offered) in [(&[0, FAR][..], true), (&[0], true), (&[1, 2, FAR], false)] {
            let world = chain(ends);
            for node in 0..FAR {
                assert_eq!(offers(&world, node), is_offered, "{ends:?} {node}");
            }
        }
    }

    #[test]
    fn between_motes_and_to_plain_motes_all_is_plain() {
        for (ends, from, to) in [
            (&[0, 1, FAR][..], FAR, 1),
            (&[0, 1], FAR, 4),
            (&[0, 1], 4, FAR),
            (&[1, FAR], FAR, 4),
            (&[1, FAR], 4, FAR),
        ] {
            let mut world = chain(ends);
            let target = if to == 4 { HOST } else { global(to) };
            transfer(&mut world, from, to, target, &bytes(3_000));
            for node in 0..=FAR {
                let [full, mostly, compressed, _] = sent(&world, node);
                assert_eq!([full, mostly, compressed], [0; 3], "{ends:?} {node}");
            }
        }
    }

    #[test]
    fn an_offer_does_not_end_because_somebody_says_so() {
        let mut world = chain(&[0, FAR]);
        let to = ip::link_local(link(1).iid());
        let lifetime = Advertised::LIFETIME.as_secs();
        advertise_to(&mut world, (0, 0), to, lifetime as u16, &[(MESH, lifetime)]);
        world.run_for(Duration::from_secs(60));
        transfer(&mut world, FAR, 4, HOST, &bytes(3_000));
        let [_, _, compressed, _] = sent(&world, FAR);
        assert!(compressed >= 5, "{compressed}");
    }

    /// A part of the way that does not pass such headers takes the offer from all below.
    #[test]
    fn an_offer_that_ends_ends_all_the_way_down() {
        let mut world = chain(&[0, FAR]);
        let to = ip::link_local(link(1).iid());
        let lifetime = Advertised::LIFETIME.as_secs();
        let prefixes = [(MESH, lifetime)];
        // It answers without the offer when it is asked about that, too.
        world.deaf = Some((0, world.now..world.now + Duration::from_secs(15)));
        for _ in 0..15 {
            advertise_to(&mut world, (0, 0), to, lifetime as u16, &prefixes);
            world.run_for(Duration::from_secs(1));
        }
        world.run_for(Duration::from_secs(60));
        transfer(&mut world, FAR, 4, HOST, &bytes(3_000));
        let [full, mostly, compressed, plain] = sent(&world, FAR);
        assert_eq!([full, mostly, compressed], [0; 3]);
        assert!(plain > 5);
    }

    /// After a lost SYN the first timeout is three seconds (RFC 6298 §5.7); a segment that its own
    /// link gave up does not wait for it, whatever its header became.
    #[test]
    fn what_its_own_link_gives_up_is_sent_again_soon() {
        static BARE: tcp::Config = tcp::Config {
            timestamps: false,
            ..SETTINGS
        };
        for ends in [&[][..], &[0, 1]] {
            let mut world = World::agreeing(1, Relaying::Fragments, ends);
            let (host, now) = (world.host(), world.now);
            let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
            let listener = world.nodes[host].tcp_mut().listen(None, 9, &BARE).unwrap();
            world.deaf = Some((0, now..now + Duration::from_millis(900)));
            let sender = world.nodes[1].connect((HOST, 9), buffers(), &BARE, now);
            world.run_for(Duration::from_secs(4));
            let now = world.now;
            let tcp = world.nodes[host].tcp_mut();
            let receiver = tcp.accept(listener, buffers(), now).unwrap();
            world.deaf = Some((0, now..now + Duration::from_millis(700)));
            let tcp = world.nodes[1].tcp_mut();
            tcp.send(sender.unwrap(), &bytes(60), now).unwrap();
            world.run_for(Duration::from_millis(2_000));
            let received = world.nodes[host].tcp_mut().recv(receiver, &mut [0; 512]);
            assert_eq!(received, Ok(60), "{ends:?}");
            let [_, mostly, compressed, _] = sent(&world, 1);
            assert_eq!(mostly + compressed > 0, !ends.is_empty());
        }
    }

    #[test]
    fn whatever_frame_is_lost_the_stream_goes_on() {
        for lost in 0..40 {
            let mut world = World::agreeing(2, Relaying::Fragments, &[0, 2]);
            let span = world.now..world.now + Duration::from_millis(60 * lost);
            world.lose = Some(lost as usize);
            world.deaf = Some((1, span));
            let (from, to) = if lost % 2 == 0 { (2, 3) } else { (3, 2) };
            let target = if to == 3 { HOST } else { global(2) };
            transfer(&mut world, from, to, target, &bytes(4_000));
            let [_, _, compressed, _] = sent(&world, 2);
            // After a second the SYN was repeated twice, and the second time it was plain.
            assert!(compressed > 0 || lost > 16, "{lost}");
        }
    }
}
