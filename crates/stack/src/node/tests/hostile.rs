//! What no well-behaved neighbour sends.

use super::*;

#[test]
fn ipv6_fragments_are_refused_with_a_count() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut fragment = packet(global(1), 64, 100);
    fragment[6] = 44;
    assert!(world.exchange(&fragment).is_empty());
    assert_eq!(
        world.nodes[1]
            .ip()
            .counters
            .dropped(ip::PacketDrop::Fragment),
        1
    );
}

/// A frame from node 0 to `to` that holds `packet` as it is.
#[test]
fn what_is_for_one_node_is_not_taken_from_a_frame_for_all() {
    let mut world = World::chain(2, Relaying::Fragments);
    for (target, broadcast) in [(global(1), true), (global(2), true), (global(2), false)] {
        let to = if broadcast {
            LinkAddr::BROADCAST
        } else {
            link(1)
        };
        let (frames, drops) = (world.frames.len(), ip::PacketDrop::LinkBroadcast);
        let dropped = world.nodes[1].ip().counters.dropped(drops);
        let frame = frame_of(&packet(target, 64, 60), to, 77);
        world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
        world.run_for(Duration::from_secs(1));
        let dropped = world.nodes[1].ip().counters.dropped(drops) - dropped;
        assert_eq!(dropped == 1, broadcast, "{target}");
        assert_eq!(world.frames.len() == frames, broadcast, "{target}");
    }
}

#[test]
fn padding_behind_a_packet_is_cut_off() {
    let mut world = World::chain(1, Relaying::Fragments);
    for len in [60, 600] {
        let mut padded = packet(global(1), 64, len);
        padded.extend([0; 7]);
        let answers = world.exchange(&padded);
        assert_eq!(answers.len(), 1, "{len}");
        assert_eq!(answers[0].len(), len);
    }
}

#[test]
fn no_half_packets_leave_by_a_wire() {
    let mut world = World::chain(1, Relaying::Fragments);
    let border = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    // The wire takes 1,500 bytes, `out` in these tests 1,280.
    assert!(world.exchange(&packet(border, 64, 1400)).is_empty());
    assert_eq!(world.exchange(&packet(border, 64, 1280))[0].len(), 1280);
}

#[test]
fn hostile_frames_are_counted_drops() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut rng = Rng::from_seed([3, 4]);
    let header = crate::wire::ieee802154::Header::data(0x4d54, link(1), link(0), 1);
    for n in 0..3_000u32 {
        let mut payload = [0; 80];
        for byte in &mut payload {
            *byte = rng.next_u32() as u8;
        }
        payload[0] = [0x60, 0x7a, 0xc0, 0xe0, 0x41, 0xf0][n as usize % 6] | payload[0] & 7;
        let mut out = [0; PSDU_LEN_MAX];
        let header = crate::wire::ieee802154::Header {
            sequence: n as u8,
            ..header
        };
        let len = header
            .emit_frame(&payload[..rng.below(80) as usize], &mut out)
            .unwrap();
        world.at(
            Duration::from_millis(50),
            1,
            RADIO,
            Pending::Frame(out[..len].to_vec()),
        );
        world.run_for(Duration::from_millis(60));
    }
    let counters = world.radio_of(1).counters();
    assert!(counters.dropped(LinkDrop::Compression) > 100);
    assert!(counters.dropped(LinkDrop::Dispatch) > 100);
    assert!(
        world
            .radio_of(1)
            .datagrams()
            .counters()
            .dropped(datagram::FragmentDrop::NoRecord)
            > 10
    );
    let answers = world.exchange(&packet(global(1), 64, 100));
    assert_eq!(answers.len(), 1, "and the mote still answers");
}

/// Frames of an honest mesh with bytes changed, radio answers nobody asked for, packets of any
/// kind by wire: the node under attack always comes to rest, and afterwards sleeps.
#[test]
fn no_sequence_of_events_keeps_a_node_busy() {
    let mut world = World::chain(2, Relaying::Fragments);
    let host = world.host();
    transfer(&mut world, 2, host, HOST, &bytes(3_000));
    world.exchange(&packet(global(2), 64, 600));
    let corpus: Vec<Vec<u8>> = world.frames.iter().map(|(_, f)| f.clone()).collect();
    for attacked in [0, 1] {
        let mut rng = Rng::from_seed([attacked as u64, 6]);
        let node = &mut world.nodes[attacked];
        let (mut now, mut out) = (world.now, [0; ACTION_LEN_MAX]);
        let mut rest = |node: &mut Node<'_>, now: Instant| {
            let rounds = core::iter::from_fn(|| node.poll_action(now, &mut out)).take(1_000);
            assert!(rounds.count() < 1_000, "never rests");
            assert!(
                node.next_deadline().is_none_or(|at| at > now),
                "wakes at once"
            );
        };
        for n in 0..8_000u32 {
            now += rng.uniform(Duration::from_millis(5));
            let mut frame = corpus[rng.below(corpus.len() as u32) as usize].clone();
            frame[2] = n as u8;
            for _ in 0..rng.below(4) {
                let at = rng.below(frame.len() as u32 - 2) as usize;
                frame[at] = rng.next_u32() as u8;
            }
            let mpdu = frame.len() - 2;
            let fcs = crate::wire::ieee802154::fcs(&frame[..mpdu]);
            frame[mpdu..].copy_from_slice(&fcs.to_le_bytes());
            let meta = RxMeta {
                rssi_dbm: 0,
                lqi: 0,
                channel: 26,
                at: now,
            };
            let psdu = &frame[..];
            let event = match rng.below(9) {
                0 => Event::Mesh(mac::Event::Preloaded),
                1 => Event::Mesh(mac::Event::ChannelAssessed { clear: n & 1 == 0 }),
                2 => Event::Mesh(mac::Event::TransmitDone { at: now }),
                3 => Event::Mesh(mac::Event::FrameHead { head: psdu }),
                4 => Event::Cable(&psdu[psdu.len().min(21)..]),
                _ => Event::Mesh(mac::Event::FrameReceived { psdu, meta }),
            };
            let id = if matches!(event, Event::Cable(_)) {
                WIRE
            } else {
                RADIO
            };
            node.on_event(id, event, now);
            rest(node, now);
        }
        // A radio that never answers is all that still happens.
        let mut wakes = 0;
        let end = now + Duration::from_secs(600);
        while let Some(at) = node.next_deadline().filter(|at| *at < end) {
            rest(node, at);
            wakes += 1;
            assert!(wakes < 20_000, "does not sleep");
        }
        let Some(Link::Mesh(radio)) = node.link(RADIO) else {
            panic!("a radio")
        };
        assert!(radio.datagrams().is_empty(), "every record was given up");
        assert!(node.ip().addresses().count() <= 3);
    }
}

/// BCP 38: a host beyond the wire is none of the mesh's motes, and cannot answer in their name.
#[test]
fn a_source_inside_does_not_come_from_outside() {
    let mut world = World::chain(3, Relaying::Fragments);
    let router = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
    // (source, destination, refused)
    for (src, dst, refused) in [
        (HOST, global(3), false),
        (stranger, global(3), false),
        // A mote that there is, one that there is not, and the router's own on either side.
        (global(2), global(3), true),
        (global(9), global(3), true),
        (global(2), router, true),
        (global(1), ip::ALL_NODES, true),
        (HOST, router, false),
    ] {
        let mut packet = packet(dst, 64, 60);
        packet[8..24].copy_from_slice(&src.octets());
        let count = |world: &World| {
            let counters = world.nodes[0].ip().counters;
            counters.dropped(ip::PacketDrop::ForgedSource)
        };
        let (before, frames) = (count(&world), world.frames.len());
        world.at(Duration::ZERO, 0, WIRE, Pending::Packet(packet));
        world.run_for(Duration::from_secs(1));
        assert_eq!(count(&world) - before, u32::from(refused), "{src} to {dst}");
        if refused {
            assert_eq!(world.frames.len(), frames, "{src} to {dst}");
        }
    }
    // From inside the same source is its own.
    let before = world.nodes[0].ip().counters;
    let answers = world.exchange(&packet(global(3), 64, 60));
    assert_eq!(answers.len(), 1);
    let after = world.nodes[0].ip().counters;
    let reason = ip::PacketDrop::ForgedSource;
    assert_eq!(after.dropped(reason), before.dropped(reason));
}
