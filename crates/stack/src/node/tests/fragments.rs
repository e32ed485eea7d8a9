//! IPv6 fragments between hosts and motes.

use super::*;
use crate::ip::{FragmentSlot, PacketDrop};
use crate::node::datagram::head;
use crate::udp::Inbox;
use crate::wire::ipv6_fragment::FragmentHeader;

/// A chain in which every node has memory for two packets in fragments.
fn lent(hops: usize, relaying: Relaying) -> World {
    let mut world = World::chain(hops, relaying);
    for node in &mut world.nodes {
        node.lend_fragments(memory(FragmentSlot::EMPTY, 2));
    }
    world
}

/// `packet` in fragments that end there, of the part behind its IPv6 header.
fn cut(packet: &[u8], ends: &[usize]) -> Vec<Vec<u8>> {
    let (head, part) = packet.split_at(40);
    let starts = [&[0], ends].concat();
    let ends = ends.iter().copied().chain([part.len()]);
    let pieces = starts.into_iter().zip(ends);
    let pieces = pieces.map(|(start, end)| {
        let place = FragmentHeader {
            next_header: head[6],
            offset: start as u16,
            more: end < part.len(),
            identification: 0x1234,
        };
        let mut fragment = [head, &place.emit(), &part[start..end]].concat();
        let len = fragment.len() as u16 - 40;
        fragment[4..6].copy_from_slice(&len.to_be_bytes());
        fragment[6] = ipv6::next_header::FRAGMENT;
        fragment
    });
    pieces.collect()
}

/// Puts together what [`cut`] made, whatever the order.
fn joined(fragments: &[Vec<u8>]) -> Vec<u8> {
    let mut head = fragments[0][..40].to_vec();
    let mut part = std::vec![0; 1_460];
    let mut len = 0;
    for fragment in fragments {
        assert!(fragment.len() <= IPV6_MTU_MIN, "{}", fragment.len());
        let (header, payload) = Header::parse(fragment).unwrap();
        assert_eq!(header.next_header, ipv6::next_header::FRAGMENT);
        let place = FragmentHeader::parse(payload.first_chunk().unwrap());
        let (start, bytes) = (usize::from(place.offset), &payload[8..]);
        part[start..start + bytes.len()].copy_from_slice(bytes);
        head[6] = place.next_header;
        if !place.more {
            len = start + bytes.len();
        }
    }
    head[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    [&head, &part[..len]].concat()
}

/// What comes back of these packets within ten seconds of the last.
fn exchange_all(world: &mut World, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (last, others) = packets.split_last().unwrap();
    for packet in others {
        world.at(Duration::ZERO, 0, WIRE, Pending::Packet(packet.clone()));
    }
    world.exchange(last)
}

#[test]
fn motes_answer_pings_that_come_in_fragments() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        let mut world = lent(3, relaying);
        for len in [1_448, 1_500] {
            let request = packet(global(3), 64, len);
            for _ in 0..3 {
                let answers = exchange_all(&mut world, &cut(&request, &[1_232]));
                assert_eq!(answers.len(), 2, "{relaying:?} {len}");
                let whole = joined(&answers);
                let (src, message) = icmp(&whole);
                let data = bytes(len - 48);
                let reply = Message::EchoReply(Echo {
                    identifier: 1,
                    sequence: 2,
                    data: &data,
                });
                assert_eq!((src, message), (global(3), reply), "{relaying:?} {len}");
            }
        }
        assert_eq!(world.nodes[3].fragments().unwrap().counters().whole, 6);
        assert!(world.nodes[3].fragments().unwrap().is_empty());
        // Relays have put nothing together.
        assert_eq!(world.nodes[1].fragments().unwrap().counters().whole, 0);
    }
}

#[test]
fn a_short_answer_to_fragments_is_whole() {
    let mut world = lent(2, Relaying::Fragments);
    let request = packet(global(2), 64, 200);
    let answers = exchange_all(&mut world, &cut(&request, &[48, 96]));
    assert_eq!(answers.len(), 1);
    let (src, message) = icmp(&answers[0]);
    assert_eq!(src, global(2));
    assert!(matches!(message, Message::EchoReply(echo) if echo.data == bytes(152)));
}

#[test]
fn without_memory_nothing_is_said() {
    let mut world = World::chain(2, Relaying::Fragments);
    let request = packet(global(2), 64, 1_448);
    assert!(exchange_all(&mut world, &cut(&request, &[1_232])).is_empty());
    world.run_for(Duration::from_secs(70));
    let counters = world.nodes[2].ip().counters;
    assert_eq!(counters.dropped(PacketDrop::Fragment), 2);
    assert_eq!(counters.errors_sent, 0);
}

#[test]
fn atomic_fragments_need_no_memory() {
    for mut world in [
        World::chain(2, Relaying::Fragments),
        lent(2, Relaying::Fragments),
    ] {
        let request = packet(global(2), 64, 200);
        for _ in 0..2 {
            let answers = exchange_all(&mut world, &cut(&request, &[]));
            assert_eq!(answers.len(), 1);
            assert!(matches!(icmp(&answers[0]), (_, Message::EchoReply(_))));
        }
    }
}

#[test]
fn what_stays_away_is_reported_once() {
    let mut world = lent(2, Relaying::Fragments);
    let request = packet(global(2), 64, 1_448);
    let [first, rest] = cut(&request, &[1_232]).try_into().unwrap();
    assert!(world.exchange(&first).is_empty());
    world.run_for(Duration::from_secs(45));
    // A packet that is for nobody lets the clock go on.
    let mut nothing = packet(global(1), 64, 60);
    nothing[0] = 0;
    let answers = world.exchange(&nothing);
    let [answer] = answers.as_slice() else {
        panic!("{} answers", answers.len());
    };
    let (src, message) = icmp(answer);
    let Message::TimeExceeded { code: 1, invoking } = message else {
        panic!("{message:?}");
    };
    assert_eq!(src, global(2));
    // As it came, a few hops on.
    assert_eq!(invoking[..7], first[..7]);
    assert_eq!(invoking[8..], first[8..invoking.len()]);
    assert_eq!(answer.len(), IPV6_MTU_MIN);
    // Its rest alone brings nothing, not even after a minute.
    assert!(world.exchange(&rest).is_empty());
    world.run_for(Duration::from_secs(55));
    assert!(world.exchange(&nothing).is_empty());
    assert!(world.nodes[2].fragments().unwrap().is_empty());
}

#[test]
fn datagrams_come_and_go_in_fragments() {
    let mut world = lent(2, Relaying::Fragments);
    let (host, payload) = (world.host(), bytes(1_452));
    for node in [2, host] {
        world.nodes[node].set_inbox(Inbox::new(&[7], memory(0, 4_000)));
    }
    // The host's own wire carries 1,500 bytes, the mesh 1,280.
    let front = head((HOST, global(2)), (9, 7), 64, &payload).unwrap();
    let packet = [&front[..], &payload].concat();
    for fragment in cut(&packet, &[704]) {
        world.at(Duration::ZERO, 0, WIRE, Pending::Packet(fragment));
    }
    world.run_for(Duration::from_secs(5));
    let mut out = [0; 1_500];
    let received = world.nodes[2].inbox_mut().unwrap().recv(&mut out).unwrap();
    assert_eq!((received.from, received.len), ((HOST, 9).into(), 1_452));
    assert_eq!(out[..1_452], payload);

    world.nodes[2]
        .send_datagram((HOST, 7), 7, &payload)
        .unwrap();
    world.run_for(Duration::from_secs(5));
    let received = world.nodes[host]
        .inbox_mut()
        .unwrap()
        .recv(&mut out)
        .unwrap();
    assert_eq!(
        (received.from, received.len),
        ((global(2), 7).into(), 1_452)
    );
    assert_eq!(out[..1_452], payload);
    let longer = bytes(1_453);
    let refused = world.nodes[2].send_datagram((HOST, 7), 7, &longer);
    assert_eq!(refused, Err(DatagramError::TooLong));
}

#[test]
fn segments_in_fragments_reach_tcp() {
    let mut world = lent(1, Relaying::Fragments);
    let mut syn = std::vec![0; 40 + 24];
    let header = Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: 24,
        next_header: crate::wire::tcp::NEXT_HEADER,
        hop_limit: 64,
        src: HOST,
        dst: global(1),
    };
    header.emit(&mut syn).unwrap();
    // To a closed port, with an option for the largest segment.
    let segment = [
        0x30, 0x39, 0, 99, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 2, 0x10, 0, 0, 0, 0, 0, 2, 4, 4, 0xc4,
    ];
    syn[40..].copy_from_slice(&segment);
    let mut sum = crate::wire::checksum::Checksum::pseudo_header(&HOST, &global(1), 6, 24);
    sum.add(&syn[40..]);
    syn[56..58].copy_from_slice(&sum.finish().to_be_bytes());
    // No fragment but the last may have another length than a multiple of eight.
    let too_short = exchange_all(&mut world, &cut(&syn, &[16]));
    let (_, message) = icmp(&too_short[0]);
    assert!(
        matches!(
            message,
            Message::ParameterProblem {
                code: 3,
                pointer: 0,
                ..
            }
        ),
        "{message:?}"
    );
    syn.extend([0; 8]);
    syn[4..6].copy_from_slice(&32_u16.to_be_bytes());
    syn[56..58].fill(0);
    let mut sum = crate::wire::checksum::Checksum::pseudo_header(&HOST, &global(1), 6, 32);
    sum.add(&syn[40..]);
    syn[56..58].copy_from_slice(&sum.finish().to_be_bytes());
    let mut fragments = cut(&syn, &[24]);
    for fragment in &mut fragments {
        fragment[40 + 4..40 + 8].copy_from_slice(&[9; 4]);
    }
    let answers = exchange_all(&mut world, &fragments);
    assert_eq!(answers.len(), 1);
    let (header, reset) = Header::parse(&answers[0]).unwrap();
    assert_eq!(header.next_header, crate::wire::tcp::NEXT_HEADER);
    assert_eq!(reset[13] & 4, 4, "a reset");
}

#[test]
fn errors_about_what_came_in_fragments_are_those_of_the_whole() {
    let mut world = lent(2, Relaying::Fragments);
    let payload = bytes(1_400);
    let front = head((HOST, global(2)), (9, 7), 64, &payload).unwrap();
    let packet = [&front[..], &payload].concat();
    let answers = exchange_all(&mut world, &cut(&packet, &[1_232]));
    assert_eq!(answers.len(), 1);
    let (_, message) = icmp(&answers[0]);
    let Message::DestinationUnreachable { code: 4, invoking } = message else {
        panic!("{message:?}");
    };
    assert_eq!(
        (invoking[6], &invoking[40..]),
        (17, &packet[40..invoking.len()])
    );
}

/// A fragment in a fragment is nobody's packet.
#[test]
fn a_part_of_a_part_is_dropped() {
    let mut world = lent(1, Relaying::Fragments);
    let inner = cut(&packet(global(1), 64, 400), &[96]);
    for fragment in inner {
        let nested = cut(&fragment, &[48]);
        assert!(exchange_all(&mut world, &nested).is_empty());
    }
    world.run_for(Duration::from_secs(70));
    let node = &world.nodes[1];
    assert!(node.fragments().unwrap().is_empty());
    assert_eq!(node.ip().counters.dropped(PacketDrop::Fragment), 2);
}

/// Those of others go through a router as they are, but for the hop limit.
#[test]
fn routers_pass_fragments_on_untouched() {
    let mut world = lent(2, Relaying::Reassembly);
    let host = world.host();
    let request = packet(global(2), 64, 1_448);
    for mut fragment in cut(&request, &[1_232]) {
        // From the mote, to the host.
        let (src, dst) = (global(2).octets(), HOST.octets());
        fragment[8..24].copy_from_slice(&src);
        fragment[24..40].copy_from_slice(&dst);
        let hop = world.nodes[2].next_hop(&HOST, RADIO).unwrap();
        world.nodes[2]
            .enqueue_control(hop, [&fragment, &[]])
            .unwrap();
        world.poll(2);
        let mut came = Vec::new();
        while came.is_empty() {
            world.run_for(Duration::from_micros(500));
            let arrived = world.events.extract_if(.., |_, (node, _, _)| *node == host);
            came.extend(arrived.filter_map(|(_, (_, _, pending))| match pending {
                Pending::Packet(bytes) => Some(bytes),
                _ => None,
            }));
        }
        fragment[7] -= 2;
        assert_eq!(came, [fragment]);
    }
    for node in 0..=1 {
        assert!(world.nodes[node].fragments().unwrap().is_empty());
    }
}

/// Neighbour discovery and RPL never come in fragments, nor in one that is the whole (RFC 6980 §5).
#[test]
fn what_neighbours_say_is_not_taken_in_fragments() {
    use crate::wire::checksum::Checksum;
    use crate::wire::icmpv6;
    // Types 133 to 137 are those of neighbour discovery, 155 is RPL's.
    for kind in [133, 134, 135, 136, 137, 155] {
        for (ends, behind_options) in [(&[][..], false), (&[], true), (&[16], false), (&[16], true)]
        {
            let mut world = lent(1, Relaying::Fragments);
            let mut message =
                [&[kind, 0, 0, 0][..], &[0; 4], &global(1).octets(), &[0; 8]].concat();
            let mut sum = Checksum::pseudo_header(&HOST, &global(1), 58, message.len());
            sum.add(&message);
            message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
            assert!(icmpv6::is_checksum_valid(&HOST, &global(1), &message));
            let options: &[u8] = match behind_options {
                true => &[58, 0, 1, 4, 0, 0, 0, 0],
                false => &[],
            };
            let header = Header {
                traffic_class: TrafficClass::default(),
                flow_label: 0,
                payload_len: (options.len() + message.len()) as u16,
                next_header: if behind_options { 60 } else { 58 },
                hop_limit: 64,
                src: HOST,
                dst: global(1),
            };
            let mut packet = std::vec![0; 40];
            header.emit(&mut packet).unwrap();
            packet.extend(options);
            packet.extend(&message);
            let case = (kind, ends, behind_options);
            let delivered = world.nodes[1].ip().counters.delivered;
            assert!(
                exchange_all(&mut world, &cut(&packet, ends)).is_empty(),
                "{case:?}"
            );
            let counters = world.nodes[1].ip().counters;
            assert_eq!(counters.delivered, delivered, "{case:?}");
            assert_eq!(counters.dropped(PacketDrop::BadNdp), 1, "{case:?}");
        }
    }
}

#[test]
fn packets_that_never_become_whole_are_counted_whichever_fragment_is_missing() {
    let mut world = lent(1, Relaying::Fragments);
    let request = packet(global(1), 64, 1_448);
    let [_, rest] = cut(&request, &[1_232]).try_into().unwrap();
    assert!(world.exchange(&rest).is_empty());
    world.run_for(Duration::from_secs(70));
    let node = &world.nodes[1];
    assert_eq!(node.fragments().unwrap().counters().timed_out, 1);
    assert_eq!(node.ip().counters.dropped(PacketDrop::Fragment), 1);
    assert_eq!(node.ip().counters.errors_sent, 0);
}

/// A queue that holds the datagram, but not its fragments with their headers, never will.
#[test]
fn a_datagram_whose_fragments_never_fit_is_too_long() {
    let payload = bytes(1_400);
    // The datagram, two headers of a fragment more, and a record of six bytes for each.
    let needed = 40 + 8 + 1_400 + 2 * 8 + 40 + 2 * 6;
    for (room, outcome) in [(needed, Ok(())), (needed - 1, Err(DatagramError::TooLong))] {
        let mut world = lent(1, Relaying::Fragments);
        let memory = MeshMemory {
            queue: memory(0, room),
            ..mesh_memory(8, 4)
        };
        let mac = (mac::Config::new(0x4d54, eui(1)), RadioCapabilities::CC2420);
        let mut rng = Rng::from_seed([7, 1]);
        let config = MeshConfig::default();
        world.nodes[1].links[0] = Link::Mesh(Mesh::new(config, mac, memory, &mut rng).unwrap());
        let sent = world.nodes[1].send_datagram((HOST, 7), 7, &payload);
        assert_eq!(sent, outcome, "{room}");
    }
}
