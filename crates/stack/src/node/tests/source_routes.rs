//! Source routes that motes follow in every build, and those that no packet may bring. `cargo xtask
//! check features` runs these tests in a build without the feature `plain-rpl`, too.

use super::routing::{VARIANTS, answers_echo, dodag, dropped, hear, said, said_by};
use super::routing::{echo, tunnelled, usual, with_headers};
use super::*;
use crate::ip::PacketDrop;
use crate::wire::cursor::Writer;
use crate::wire::ipv6::next_header;
use crate::wire::lorh::{self, Segments};
use crate::wire::lowpan_frag;
use crate::wire::source_route_compressed::{self as in_memory, SourceRoute};

/// A packet from the root that has its source route in the form of a mote's memory: from mote 1 to
/// mote 2 and 3.
fn literal(src: Ipv6Addr, has_options: bool) -> Vec<u8> {
    let (mut lists, mut route) = ([0; 80], [0; 120]);
    let mut list = Writer::new(&mut lists);
    lorh::emit_segments(&mut list, &src, &[global(1), global(2)]).unwrap();
    let len = list.written();
    let form = SourceRoute {
        segments: Segments::in_bytes(&lists[..len]),
        index: 0,
        segments_left: 2,
        end: &global(3).octets(),
    };
    let mut w = Writer::new(&mut route);
    in_memory::emit(&mut w, next_header::NONE, &form).unwrap();
    let len = w.written();
    let ends = (src, global(1));
    match has_options {
        false => with_headers(ends, next_header::ROUTING, &route[..len]),
        true => {
            let options = [next_header::ROUTING, 0, 1, 4, 0, 0, 0, 0];
            let payload = [&options[..], &route[..len]].concat();
            with_headers(ends, next_header::HOP_BY_HOP, &payload)
        }
    }
}

/// The frames of a packet in clear IPv6, in two fragments where it is cut.
fn frames_of(packet: &[u8], cut: Option<usize>) -> Vec<Vec<u8>> {
    let Some(cut) = cut else {
        return std::vec![frame_of(packet, link(1), 1)];
    };
    let fragment = |offset, rest: &[u8]| {
        let header = lowpan_frag::Header {
            datagram_size: packet.len() as u16,
            datagram_tag: 77,
            datagram_offset: offset,
        };
        let mut out = [0; 8];
        let len = header.emit(&mut out).unwrap();
        [&out[..len], rest].concat()
    };
    let (first, rest) = packet.split_at(cut);
    let first = [&[crate::wire::lowpan_dispatch::IPV6], first].concat();
    let fragments = [fragment(None, &first), fragment(Some(cut as u8 / 8), rest)];
    let frames = (1..).zip(fragments);
    frames
        .map(|(n, payload)| frame_from(link(0), link(1), n, &payload))
        .collect()
}

#[test]
fn packets_follow_their_source_routes_whole_and_in_fragments() {
    // Those of meshes whose routing headers 6LoWPAN compresses.
    for variant in [VARIANTS[0], VARIANTS[2], VARIANTS[3]] {
        let mut world = dodag(3, variant);
        for len in [80, 700, 1_280] {
            world.frames.clear();
            let answers = world.exchange(&packet(global(3), 64, len));
            assert!(answers_echo(&answers, global(3), len), "{variant:?}, {len}");
            let mut steps: Vec<_> = said(&world).iter().map(|h| (h.from, h.to)).collect();
            steps.truncate(3);
            let there = [(0, link(1)), (1, link(2)), (2, link(3))];
            assert_eq!(steps, there, "{variant:?}, {len}");
        }
        for n in 0..=3 {
            assert_eq!(dropped(&world, n, PacketDrop::ExtensionHeader), 0);
        }
    }
}

#[test]
fn a_route_in_the_form_of_memory_is_refused_from_the_air() {
    for variant in [VARIANTS[0], VARIANTS[3]] {
        let mut world = dodag(3, variant);
        let refused = |world: &World| {
            world
                .radio_of(1)
                .counters()
                .dropped(LinkDrop::MalformedPacket)
        };
        // Whole, and cut in front of the routing header, before its type, and behind that.
        for (has_options, cut) in [
            (false, None),
            (true, None),
            (false, Some(40)),
            (false, Some(48)),
            (true, Some(40)),
            (true, Some(48)),
            (true, Some(56)),
        ] {
            let before = refused(&world);
            world.frames.clear();
            for (n, frame) in (0..).zip(frames_of(&literal(global(0), has_options), cut)) {
                let delay = Duration::from_millis(20 * n);
                world.at(delay, 1, RADIO, Pending::Frame(frame));
            }
            world.run_for(Duration::from_secs(2));
            let context = (variant, has_options, cut);
            assert_eq!(said_by(&world, 1).len(), 0, "{context:?}");
            assert_eq!(refused(&world) - before, 1, "{context:?}");
        }
    }
}

#[test]
fn a_route_in_the_form_of_memory_is_refused_within_a_tunnel_and_from_outside() {
    let mut world = usual(3);
    for has_options in [false, true] {
        world.frames.clear();
        let before = dropped(&world, 1, PacketDrop::Tunnel);
        let packet = tunnelled((global(0), global(1)), &literal(HOST, has_options));
        hear(&mut world, (0, 1), &packet, None);
        assert_eq!(said_by(&world, 1).len(), 0);
        assert_eq!(dropped(&world, 1, PacketDrop::Tunnel) - before, 1);

        let before = dropped(&world, 0, PacketDrop::ExtensionHeader);
        let answers = world.exchange(&literal(HOST, has_options));
        assert!(answers.is_empty() && said(&world).is_empty());
        assert_eq!(dropped(&world, 0, PacketDrop::ExtensionHeader) - before, 1);
    }
}

/// No other header in front of the routing header is walked where the route is advanced.
#[cfg(not(feature = "plain-rpl"))]
#[test]
fn a_route_behind_options_is_not_followed() {
    let mut world = usual(3);
    for has_options in [false, true] {
        let packet = literal(global(0), has_options);
        let (header, rest) = Header::parse(&packet).unwrap();
        let ingress = ip::Ingress {
            interface: RADIO,
            from: Neighbour::One(link(0).iid()),
            to_all: false,
            option: None,
            signal_dbm: 0,
        };
        let disposition = world.nodes[1].ip.disposition((&header, rest), &ingress);
        let is_route = matches!(disposition, Disposition::Route(_));
        assert_eq!(is_route, !has_options, "{disposition:?}");
    }
}

#[test]
fn a_packet_whose_route_ends_does_not_go_on() {
    let mut world = usual(2);
    let now = world.now;
    let root = &mut world.nodes[0];
    let Link::Cable(cable) = &root.links[1] else {
        panic!("no cable");
    };
    let hop = cable.hop();
    let mut packet = echo(HOST, global(1), 60);
    let mut classified = root.classify(&packet, &hop).unwrap();
    let Disposition::Forward(next) = classified.disposition else {
        panic!("{:?}", classified.disposition);
    };
    classified.disposition = Disposition::Route(next);
    root.on_classified(WIRE, classified, &mut packet, hop, now);
    assert_eq!(dropped(&world, 0, PacketDrop::ExtensionHeader), 1);
    assert_eq!(world.nodes[0].ip().counters.forwarded, 0);
}
