//! ICMPv6: answers, and what sources are told.

use super::*;

#[test]
fn motes_answer_ping_of_any_size() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        let mut world = World::chain(3, relaying);
        for len in [48, 100, 500, 1280] {
            let answers = world.exchange(&packet(global(3), 64, len));
            assert_eq!(answers.len(), 1, "{relaying:?} {len}");
            let data = bytes(len - 48);
            let reply = Message::EchoReply(Echo {
                identifier: 1,
                sequence: 2,
                data: &data,
            });
            assert_eq!(icmp(&answers[0]), (global(3), reply), "{relaying:?} {len}");
        }
    }
}

#[test]
fn sources_are_told_why_a_packet_went_no_further() {
    let mut world = World::chain(3, Relaying::Fragments);
    let mut answer = |packet: &[u8]| -> (Ipv6Addr, u8, u8, u32) {
        let answers = world.exchange(packet);
        assert_eq!(answers.len(), 1);
        let (src, message) = icmp(&answers[0]);
        match message {
            Message::DestinationUnreachable { code, .. } => (src, 1, code, 0),
            Message::PacketTooBig { mtu, .. } => (src, 2, 0, mtu),
            Message::TimeExceeded { code, .. } => (src, 3, code, 0),
            Message::ParameterProblem { code, pointer, .. } => (src, 4, code, pointer),
            other => panic!("{other:?}"),
        }
    };
    let border = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    assert_eq!(
        answer(&packet(global(9), 64, 100)),
        (border, 1, 0, 0),
        "unknown mote"
    );
    assert_eq!(
        answer(&packet(global(3), 64, 1300)),
        (border, 2, 0, 1280),
        "too big"
    );
    assert_eq!(
        answer(&packet(global(3), 1, 100)),
        (border, 3, 0, 0),
        "spent at the border"
    );
    assert_eq!(
        answer(&packet(global(3), 2, 100)),
        (global(1), 3, 0, 0),
        "spent at a relay"
    );
    assert_eq!(
        answer(&packet(global(3), 2, 600)),
        (global(1), 3, 0, 0),
        "from a first fragment"
    );
    let mut udp = packet(global(2), 64, 100);
    udp[6] = 17;
    assert_eq!(answer(&udp), (global(2), 1, 4, 0), "no such port");
    udp[6] = 132;
    assert_eq!(answer(&udp), (global(2), 4, 1, 6), "no such protocol");
}

#[test]
fn a_node_without_tcp_knows_no_segments() {
    let mut ip = Ip::new(IpConfig::default(), memory(None, 1));
    let addr = global(1);
    ip.add_address(Address {
        addr,
        interface: RADIO,
    });
    let hop = NextHop {
        interface: RADIO,
        neighbour: Neighbour::Only,
    };
    ip.set_default_route(Some(hop));
    let interfaces = Vec::leak(std::vec![wire()]);
    let (rng, now) = (Rng::from_seed([1, 2]), Instant::ORIGIN);
    let mut node = Node::without_tcp(interfaces, ip, rng, now);
    let mut segment = packet(addr, 64, 100);
    segment[6] = crate::wire::tcp::NEXT_HEADER;
    node.on_event(RADIO, Event::Cable(&segment), now);
    let mut out = [0; ACTION_LEN_MAX];
    let answer = node.poll_action(now, &mut out);
    let Some((_, Action::Cable { len })) = answer else {
        panic!("{answer:?}");
    };
    let (_, message) = icmp(&out[..len]);
    let refused = matches!(
        message,
        Message::ParameterProblem {
            code: 1,
            pointer: 6,
            ..
        }
    );
    assert!(refused, "{message:?}");
    assert_eq!(node.next_deadline(), None);
}

#[test]
fn a_source_is_told_that_the_last_hop_does_not_answer() {
    for len in [60, 600] {
        let mut world = World::chain(2, Relaying::Reassembly);
        let start = world.now;
        world.deaf = Some((1, start..start + Duration::from_secs(60)));
        let answers = world.exchange(&packet(global(1), 64, len));
        assert_eq!(answers.len(), 1, "{len}");
        let (_, message) = icmp(&answers[0]);
        let Message::DestinationUnreachable { code: 3, invoking } = message else {
            panic!("{message:?}");
        };
        assert_eq!(invoking.len(), len);
        // Of a packet lost half way nothing is known of its last hop.
        assert!(world.exchange(&packet(global(2), 64, len)).is_empty());
        world.deaf = None;
        assert_eq!(world.exchange(&packet(global(1), 64, len)).len(), 1);
    }
}

#[test]
fn a_packet_whose_route_goes_while_it_waits_is_a_counted_drop() {
    let mut world = World::chain(2, Relaying::Reassembly);
    let frame = frame_of(&packet(global(2), 64, 60), link(1), 90);
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: world.now,
    };
    let event = mac::Event::FrameReceived { psdu: &frame, meta };
    let now = world.now;
    world.nodes[1].on_event(RADIO, Event::Mesh(event), now);
    world.nodes[1].poll_arrivals(now);
    assert!(world.radio_of(1).has_packet_waiting());
    let prefix = Prefix::host(global(2));
    world.nodes[1].ip_mut().remove_route(prefix);
    world.nodes[1].ip_mut().set_default_route(None);
    world.run_for(Duration::from_secs(1));
    let counters = world.nodes[1].ip().counters;
    assert_eq!(counters.dropped(ip::PacketDrop::NoRoute), 1);
    assert!(!world.radio_of(1).has_packet_waiting());
}

#[test]
fn nobody_is_not_answered() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut echo = [0; 60];
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: b"x",
    });
    for (n, hop_limit) in [64, 255].into_iter().enumerate() {
        let src = Ipv6Addr::UNSPECIFIED;
        let len = ip::icmp::write(&request, src, global(1), hop_limit, &mut echo).unwrap();
        let frames = world.frames.len();
        let frame = frame_of(&echo[..len], link(1), 80 + n as u8);
        world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.frames.len(), frames + 1, "the ACK alone, {hop_limit}");
    }
    let counters = world.nodes[1].ip().counters;
    assert_eq!(counters.dropped(ip::PacketDrop::BadAddress), 1);
}

/// No link may have so small an MTU (RFC 8201 §4), and nobody is told of a packet that it did
/// not send.
#[test]
fn errors_that_cannot_be_true_are_refused() {
    let group = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 9);
    // (case, the MTU or else a closed port, source and destination of what it quotes, refused)
    for (case, mtu, src, dst, refused) in [
        ("true", Some(1_280), global(1), HOST, false),
        ("below the minimum", Some(1_279), global(1), HOST, true),
        ("nothing fits", Some(0), global(1), HOST, true),
        ("to a group", Some(1_280), global(1), group, true),
        ("somebody else's", Some(1_280), global(2), HOST, true),
        ("nobody's", None, group, HOST, true),
        ("a port", None, global(1), HOST, false),
    ] {
        let mut world = World::chain(1, Relaying::Fragments);
        let header = Header {
            traffic_class: TrafficClass::default(),
            flow_label: 0,
            payload_len: 20,
            next_header: crate::wire::tcp::NEXT_HEADER,
            hop_limit: 60,
            src,
            dst,
        };
        let mut quoted = [0; 60];
        header.emit(&mut quoted).unwrap();
        let mut out = [0; 200];
        let invoking = &quoted[..];
        let message = match mtu {
            Some(mtu) => Message::PacketTooBig { mtu, invoking },
            None => Message::DestinationUnreachable { code: 4, invoking },
        };
        let len = ip::icmp::write(&message, HOST, global(1), 64, &mut out).unwrap();
        world.exchange(&out[..len]);
        let dropped = world.nodes[1]
            .ip()
            .counters
            .dropped(ip::PacketDrop::UntrueError);
        assert_eq!(dropped, u32::from(refused), "{case}");
    }
}

/// A packet whose first fragment finds no room is lost here, not passed on.
#[test]
fn a_first_fragment_without_room_is_not_counted_as_forwarded() {
    let mut world = World::with_queue(2, Relaying::Fragments, Duration::ZERO, 4);
    let (before, relayed) = (world.nodes[1].ip().counters.forwarded, world.relayed(1));
    let whole = packet(HOST, 64, 400);
    for tag in 1..=6 {
        let start = [0xc0 | (400_u16 >> 8) as u8, 400_u16 as u8, 0, tag];
        let dispatch = [crate::wire::lowpan_dispatch::IPV6];
        let payload = [&start[..], &dispatch, &whole[..64]].concat();
        let frame = frame_from(link(2), link(1), 100 + tag, &payload);
        world.deliver(1, RADIO, &Pending::Frame(frame));
    }
    world.poll(1);
    let full = world
        .radio_of(1)
        .counters()
        .dropped(LinkDrop::RelayQueueFull);
    let forwarded = world.nodes[1].ip().counters.forwarded - before;
    assert!(full > 0 && forwarded > 0, "{full} refused");
    assert_eq!(forwarded, world.relayed(1) - relayed);
    assert_eq!(forwarded + full, 6);
}

impl World {
    fn relayed(&self, node: usize) -> u32 {
        self.radio_of(node).counters().fragments_relayed
    }
}
