//! What strangers and stale routes can make a node send.

use super::*;
use crate::wire::lowpan_dispatch::IPV6;
use crate::wire::lowpan_frag;
use crate::wire::ndp::NdpOptions;

/// A packet with this message from `src`, in a frame from `by`, reaches node 1. Frames that it
/// sends in answer, ACKs aside.
fn answers(
    world: &mut World,
    message: &Message<'_>,
    (by, src): (LinkAddr, Ipv6Addr),
    dst: Ipv6Addr,
    hop_limit: u8,
) -> usize {
    let mut out = [0; 100];
    let len = ip::icmp::write(message, src, dst, hop_limit, &mut out).unwrap();
    let payload = [&[IPV6], &out[..len]].concat();
    let to = match dst.is_multicast() {
        true => LinkAddr::BROADCAST,
        false => link(1),
    };
    let frame = frame_from(by, to, world.frames.len() as u8, &payload);
    let before = world.frames.len();
    world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
    world.run_for(Duration::from_millis(400));
    let sent = world.frames.get(before..).unwrap_or_default();
    let is_answer = |(node, frame): &&(usize, Vec<u8>)| *node == 1 && frame.len() > 5;
    sent.iter().filter(is_answer).count()
}

fn solicitations(target: Ipv6Addr) -> [Message<'static>; 2] {
    let options = NdpOptions::default();
    [
        Message::NeighborSolicitation { target, options },
        Message::RouterSolicitation { options },
    ]
}

#[test]
fn no_packet_goes_back_to_where_it_came_from() {
    for len in [60, 600] {
        let mut world = World::chain(2, Relaying::Fragments);
        let next_hop = NextHop {
            interface: RADIO,
            neighbour: Neighbour::One(link(1).iid()),
        };
        // What node 0 believes to be below node 1 is below nobody, and node 1's router is node 0.
        let prefix = Prefix::host(global(9));
        world.nodes[0]
            .ip_mut()
            .add_route(Route { prefix, next_hop });
        let before = world.frames.len();
        let answers = world.exchange(&packet(global(9), 255, len));
        assert_eq!(answers.len(), 1, "{len}");
        let (src, message) = icmp(&answers[0]);
        assert_eq!(src, global(1));
        let no_route = matches!(message, Message::DestinationUnreachable { code: 0, .. });
        assert!(no_route, "{message:?}");
        let data = world.frames[before..].iter().filter(|(_, f)| f.len() > 5);
        assert!(data.clone().count() <= 16, "{} frames", data.count());
        let counters = world.nodes[1].ip().counters;
        assert_eq!(counters.dropped(ip::PacketDrop::SentBack), 1);
    }
}

#[test]
fn solicitations_are_answered_to_the_neighbour_itself_and_nobody_else() {
    let mut world = World::chain(2, Relaying::Fragments);
    let own = ip::link_local(link(1).iid());
    let neighbour = ip::link_local(link(2).iid());
    for message in solicitations(own) {
        // (case, from whose frame, source, hop limit, answered)
        for (case, by, src, hop_limit, answered) in [
            ("the neighbour", link(2), neighbour, 255, true),
            ("by its other address", link(2), global(2), 255, true),
            ("from beyond the link", link(2), neighbour, 254, false),
            ("a host beyond the mesh", link(2), HOST, 255, false),
            ("another mote", link(0), global(2), 255, false),
            ("another's address", link(0), neighbour, 255, false),
            ("nobody", link(2), Ipv6Addr::UNSPECIFIED, 255, false),
        ] {
            let sent = answers(&mut world, &message, (by, src), own, hop_limit);
            assert_eq!(sent > 0, answered, "{case}: {message:?}");
        }
    }
    // Detection of duplicates goes to the group, and so does the answer.
    let [solicitation, _] = solicitations(own);
    let asks = (link(2), Ipv6Addr::UNSPECIFIED);
    let group = ip::solicited_node(&own);
    assert_eq!(answers(&mut world, &solicitation, asks, group, 255), 1);
}

/// A real neighbour's address can be forged, so what it asks for is bounded too.
#[test]
fn solicitations_and_pings_are_answered_so_often_and_no_more() {
    let neighbour = ip::link_local(link(2).iid());
    let own = ip::link_local(link(1).iid());
    let [neighbor, router] = solicitations(own);
    let ping = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 1,
        data: b"x",
    });
    // (message, answers in 20 s of 50 requests a second)
    for (message, least, most) in [(neighbor, 90, 115), (router, 90, 115), (ping, 400, 435)] {
        let mut world = World::chain(2, Relaying::Fragments);
        let mut out = [0; 100];
        let len = ip::icmp::write(&message, neighbour, own, 255, &mut out).unwrap();
        let payload = [&[IPV6], &out[..len]].concat();
        let before = world.frames.len();
        for n in 0..1_000u32 {
            let frame = frame_from(link(2), link(1), n as u8, &payload);
            world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
            world.run_for(Duration::from_millis(20));
        }
        let sent = world.frames[before..].iter();
        // An advertisement takes two frames, of which the first is full.
        let is_answer = |(node, frame): &&(usize, Vec<u8>)| {
            *node == 1 && frame.len() > 5 && (frame.len() < 100 || message != router)
        };
        let count = sent.filter(is_answer).count();
        assert!((least..=most).contains(&count), "{count}: {message:?}");
        let counters = world.nodes[1].ip().counters;
        assert!(counters.dropped(ip::PacketDrop::TooMany) > 500);
    }
}

/// Made-up sources use up only what strangers are answered: a neighbour is answered beside them.
#[test]
fn solicitations_of_strangers_leave_a_neighbour_its_answers() {
    let own = ip::link_local(link(1).iid());
    let mut world = World::chain(2, Relaying::Fragments);
    let [solicitation, _] = solicitations(own);
    // Node 2 has acknowledged what node 1 sent it: it is no stranger.
    let neighbour = (link(2), ip::link_local(link(2).iid()));
    assert!(answers(&mut world, &solicitation, neighbour, own, 255) > 0);
    let mut out = [0; 100];
    for n in 0..1_000u32 {
        let made_up = link(100 + n as usize % 60);
        let src = ip::link_local(made_up.iid());
        let len = ip::icmp::write(&solicitation, src, own, 255, &mut out).unwrap();
        let payload = [&[IPV6], &out[..len]].concat();
        let frame = frame_from(made_up, link(1), n as u8, &payload);
        world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
        world.run_for(Duration::from_millis(20));
    }
    assert!(
        world.nodes[1]
            .ip()
            .counters
            .dropped(ip::PacketDrop::TooMany)
            > 500
    );
    assert!(answers(&mut world, &solicitation, neighbour, own, 255) > 0);
}

/// A packet of several fragments for a mote that is off waits for its first one's attempts,
/// seven delays of a quarter of a second on average. Others do not wait behind it.
#[test]
fn a_silent_neighbour_does_not_keep_the_fragmenter() {
    let patient = Duration::from_millis(500);
    let mut world = World::with_queue(2, Relaying::Reassembly, patient, 32);
    let (host, start) = (world.host(), world.now);
    world.deaf = Some((2, start..start + Duration::from_secs(600)));
    let long = || Pending::Packet(packet(global(2), 64, 600));
    let dropped = |world: &World, reason| world.radio_of(1).mac().counters().dropped(reason);
    while dropped(&world, mac::FrameDrop::Silent) == 0 {
        world.at(Duration::ZERO, 0, WIRE, long());
        world.run_for(Duration::from_secs(3));
        assert!(world.now < start + Duration::from_secs(60), "silent by now");
    }
    for round in 0..5 {
        // The neighbour is asked again.
        world.run_for(Duration::from_secs(10));
        let given_up = dropped(&world, mac::FrameDrop::NoAck);
        let tried = world.radio_of(1).mac().counters().ack_timeouts;
        world.at(Duration::ZERO, 0, WIRE, long());
        world.run_for(Duration::from_millis(200));
        assert!(
            world.radio_of(1).mac().counters().ack_timeouts > tried,
            "{round}"
        );
        let answered = world.nodes[host].ip().counters.delivered;
        let ping = Pending::Packet(packet(global(1), 64, 60));
        world.at(Duration::ZERO, 0, WIRE, ping);
        world.run_for(Duration::from_millis(200));
        assert_eq!(
            dropped(&world, mac::FrameDrop::NoAck),
            given_up,
            "still being tried"
        );
        assert_eq!(
            world.nodes[host].ip().counters.delivered,
            answered + 1,
            "{round}"
        );
    }
}

/// A first fragment, of a packet of `size` bytes, that carries an echo request to `dst`.
fn first_fragment(dst: Ipv6Addr, size: u16) -> Vec<u8> {
    let header = lowpan_frag::Header {
        datagram_size: size,
        datagram_tag: 7,
        datagram_offset: None,
    };
    let mut start = packet(dst, 64, 72);
    start[4..6].copy_from_slice(&(size - 40).to_be_bytes());
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit(&mut out).unwrap();
    let payload = [&out[..len], &[IPV6], &start].concat();
    frame_from(link(0), link(1), 200, &payload)
}

#[test]
fn only_a_router_says_that_a_packet_is_too_big() {
    // (to whom, whether the node that it comes to must gather it to pass it on, said)
    for (dst, relaying, said) in [
        (global(2), Relaying::Reassembly, 1),
        (global(2), Relaying::Fragments, 0),
        (global(1), Relaying::Reassembly, 0),
    ] {
        let mut world = World::chain(2, relaying);
        let frame = first_fragment(dst, 1_400);
        world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
        let told = to_host(&mut world);
        assert!(told.iter().all(|by| *by == (1_280, global(1))), "{told:?}");
        assert_eq!(told.len(), said, "{dst} {relaying:?}");
    }
    // What a host has cut by itself is put together at its end or nowhere.
    let mut world = World::chain(2, Relaying::Fragments);
    let mut fragment = packet(global(2), 64, 1_000);
    fragment[6] = ipv6::next_header::FRAGMENT;
    for offset in [[0, 1], [1, 0]] {
        fragment[40..48].copy_from_slice(&[58, 0, offset[0], offset[1], 0, 0, 0, 9]);
        fragment[48] = 128;
        world.at(Duration::ZERO, 0, WIRE, Pending::Packet(fragment.clone()));
        assert_eq!(to_host(&mut world), []);
    }
}

/// The MTUs that the host is told within ten seconds, and by whom.
fn to_host(world: &mut World) -> Vec<(u32, Ipv6Addr)> {
    // What is for nobody brings no answer of its own.
    let mut nothing = packet(global(1), 64, 60);
    nothing[0] = 0;
    let answers = world.exchange(&nothing);
    let told = answers.iter().filter_map(|answer| match icmp(answer) {
        (src, Message::PacketTooBig { mtu, .. }) => Some((mtu, src)),
        _ => None,
    });
    told.collect()
}
