//! The form in memory of builds without `plain-rpl`, beside the form that has RFC 6554's headers: the
//! same frames mean the same in both, hop after hop.

use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::lowpan::{HeaderForms, Routing, compress_form, decompress};
use crate::wire::LinkAddr;
use crate::wire::ipv6::{Ecn, TrafficClass};
use crate::wire::lorh::RoutingHeaders;
use crate::wire::rpl_option::TYPE_9008;
use crate::wire::source_route as plain;

const fn mote(id: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0x004d, 0x6f74, 0x6574, id)
}

const ROOT: Ipv6Addr = mote(0);
const OUTSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5);
const LINK: LinkPair = LinkPair {
    src: LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0xaa, 1]),
    dst: LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0xaa, 2]),
};
const RPI: Rpi = Rpi {
    down: true,
    rank_error: false,
    forwarding_error: false,
    instance: 0,
    sender_rank: 0x0300,
};

fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    assert!(contexts.set(0, ROOT, 64, true));
    contexts.set_routing(Some(Routing {
        root: ROOT,
        is_compressed: true,
        option_type: TYPE_9008,
    }));
    contexts
}

fn header(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, payload_len: usize) -> ipv6::Header {
    ipv6::Header {
        traffic_class: TrafficClass::new(0, Ecn::Ect0),
        flow_label: 0,
        payload_len: payload_len as u16,
        next_header,
        hop_limit: 63,
        src,
        dst,
    }
}

/// What a root sends along `path`: a packet of its own, or one from outside in a tunnel.
fn from_root(path: &[Ipv6Addr], is_tunnel: bool) -> Vec<u8> {
    let (first, rest) = path.split_first().unwrap();
    let last = *path.last().unwrap();
    let (mut inner, kind) = (vec![1; 8], if is_tunnel { 41 } else { 58 });
    if is_tunnel {
        let mut packet = vec![0; ipv6::HEADER_LEN];
        header(OUTSIDE, last, 58, 8).emit(&mut packet).unwrap();
        inner = [packet, inner].concat();
    }
    let mut route = [0; 400];
    let mut w = Writer::new(&mut route);
    if !rest.is_empty() {
        plain::emit(&mut w, kind, first, rest).unwrap();
    }
    let len = w.written();
    let next_header = if len > 0 { next_header::ROUTING } else { kind };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    let outer = header(ROOT, *first, next_header, len + inner.len());
    outer.emit(&mut packet).unwrap();
    [&packet[..], &route[..len], &inner].concat()
}

fn compressed(packet: &[u8], rpi: Option<Rpi>) -> Vec<u8> {
    let mut out = vec![0; packet.len() + 64];
    let forms = HeaderForms {
        rpi,
        ..HeaderForms::default()
    };
    let done = compress_form(packet, forms, LINK, &contexts(), &mut out).unwrap();
    out.truncate(done.compressed_len);
    out.extend(&packet[done.uncompressed_len..]);
    out
}

/// A frame in the form of this module: the packet, how much fragment headers do not number, and its
/// RPL option.
fn restored(frame: &[u8]) -> (Vec<u8>, i16, Option<Rpi>) {
    let (mut leading, rest) = match frame[0] {
        lorh::PAGE_1 => LeadingHeaders::parse(frame).unwrap(),
        _ => (LeadingHeaders::none(), frame),
    };
    let (iphc, rest) = lowpan_iphc::Header::parse(rest).unwrap();
    let mut out = [0; 1500];
    let mut packet = Restored::new(&mut out);
    restore(&mut leading, &mut packet, (&iphc, rest), LINK, &contexts()).unwrap();
    let len = packet.len;
    packet.fill_lengths(len + rest.len()).unwrap();
    let packet = [&out[..len], rest].concat();
    (packet, leading.unnumbered(), leading.rpi())
}

/// The routing headers that [`begin`] writes, and what it leaves to be compressed.
fn begun(packet: &[u8], rpi: Option<Rpi>) -> Result<(Vec<u8>, ipv6::Header, Vec<u8>, i16), Full> {
    let (header, rest) = ipv6::Header::parse(packet).unwrap();
    let mut begun = PartlyCompressed {
        header,
        rest,
        encapsulation: Encapsulation::link(LINK),
        #[cfg(feature = "plain-rpl")]
        option: None,
        unnumbered: 0,
    };
    let mut out = [0; 400];
    let mut w = Writer::new(&mut out);
    begin(&mut begun, rpi, true, &contexts(), &mut w)?;
    let len = w.written();
    let rest = begun.rest.to_vec();
    Ok((out[..len].to_vec(), begun.header, rest, begun.unnumbered))
}

/// Takes a packet from hop to hop in both forms.
fn walk(path: &[Ipv6Addr], is_tunnel: bool, rpi: Option<Rpi>) {
    let mut frame = compressed(&from_root(path, is_tunnel), rpi);
    for (at, here) in path.iter().enumerate() {
        let (mut packet, unnumbered, option) = restored(&frame);
        let mut other = [0; 1500];
        let done = decompress(&frame, LINK, &contexts(), None, &mut other).unwrap();
        let mut other = [
            &other[..done.uncompressed_len],
            &frame[done.compressed_len..],
        ]
        .concat();
        let number = |len: usize, unnumbered: i16| len as i16 - unnumbered;
        assert_eq!(
            number(packet.len(), unnumbered),
            number(other.len(), done.unnumbered)
        );
        assert_eq!(option, rpi);
        let (outer, rest) = ipv6::Header::parse(&packet).unwrap();
        assert_eq!((outer.src, outer.dst), (ROOT, *here));
        let next = path.get(at + 1).copied();
        let (route, next_header, behind) = split(outer.next_header, rest);
        assert_eq!(route.next_of(&outer), next);
        assert_eq!(usize::from(route.segments_left), path.len() - at - 1);
        assert_eq!(next_header, if is_tunnel { 41 } else { 58 });
        let (_, other_rest) = ipv6::Header::parse(&other).unwrap();
        assert!(other_rest.ends_with(behind));
        assert!(!route.any_other(&outer, |addr| addr == here), "no loop");
        let is_ahead = |addr: &Ipv6Addr| path[at + 1..path.len() - 1].contains(addr);
        assert_eq!(route.any_other(&outer, is_ahead), at + 2 < path.len());

        let before = packet.clone();
        assert_eq!(source_route::advance(&mut packet), next);
        let Some(next) = next else {
            assert_eq!(packet, before, "the end");
            return;
        };
        assert_eq!(packet[24..40], next.octets());
        let after = packet.clone();
        assert_eq!(source_route::retreat(&mut packet), Some(*here));
        assert_eq!(packet, before);

        plain::advance(&mut other).unwrap();
        let onward = compressed(&other, rpi);
        let (bytes, header, rest, unnumbered) = begun(&after, rpi).unwrap();
        let headers = match bytes.first() {
            None => RoutingHeaders::default(),
            Some(_) => RoutingHeaders::parse(&bytes[1..]).unwrap().0,
        };
        let expected = match onward[0] {
            lorh::PAGE_1 => RoutingHeaders::parse(&onward[1..]).unwrap().0,
            _ => RoutingHeaders::default(),
        };
        let visits = |headers: &RoutingHeaders<'_>| headers.segments.iter(ROOT).collect::<Vec<_>>();
        assert_eq!(visits(&headers), visits(&expected));
        assert_eq!(
            (headers.rpi, headers.tunnel),
            (expected.rpi, expected.tunnel)
        );
        assert_eq!(header.dst, *path.last().unwrap());
        assert_eq!(header.next_header, 58);
        assert_eq!(rest, [1; 8]);
        assert_eq!(
            number(after.len(), unnumbered),
            number(other.len(), done.unnumbered)
        );
        let came = frame.len() - rest.len();
        assert!(bytes.len() <= came, "no longer than it came");
        frame = onward;
    }
}

#[test]
fn each_form_takes_a_packet_to_the_same_steps() {
    let near: Vec<_> = (1..=16).map(mote).collect();
    for len in 1..=16 {
        for is_tunnel in [false, true] {
            for rpi in [None, Some(RPI)] {
                walk(&near[..len], is_tunnel, rpi);
            }
        }
    }
}

proptest! {
    #[test]
    fn each_form_takes_any_packet_to_the_same_steps(
        ids in prop::collection::btree_set(1u16..0x0fff, 1..9),
        far in any::<bool>(),
        is_tunnel in any::<bool>(),
        has_option in any::<bool>(),
    ) {
        let mut path: Vec<_> = ids.iter().map(|id| {
            // Some that share less with their neighbours.
            let wide = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, *id, 1, 2, *id);
            if id % 5 == 0 { wide } else { mote(*id) }
        }).collect();
        if far {
            path.push(mote(0xf00f));
        }
        walk(&path, is_tunnel, has_option.then_some(RPI));
    }

    #[test]
    fn a_header_from_the_air_never_panics(
        body in prop::collection::vec(any::<u8>(), 0..60),
        fixed in any::<[u8; 3]>(),
        kind in prop_oneof![Just(254u8), Just(3)],
    ) {
        let [left, index, len] = fixed;
        let mut route = vec![58, 0, kind, left, index, len];
        route.extend(body);
        route.resize(route.len().next_multiple_of(8), 0);
        route[1] = (route.len() / 8 - 1) as u8;
        let mut packet = vec![0; ipv6::HEADER_LEN];
        let outer = header(ROOT, mote(1), next_header::ROUTING, route.len());
        outer.emit(&mut packet).unwrap();
        packet.extend(&route);
        let _ = begun(&packet, None);
        let before = packet.clone();
        if source_route::advance(&mut packet).is_some() {
            prop_assert_eq!(packet.len(), before.len());
            source_route::retreat(&mut packet);
        }
    }
}

#[test]
fn a_destination_at_the_end_of_its_route_is_visited_once() {
    // The lists name 1, 2 and 3, and the packet's own header names 3.
    let iphc = compressed(&from_root(&[mote(3)], false), None);
    let frame = [&[0xf1, 0x82, 0, 1, 2, 3][..], &iphc].concat();
    let (mut packet, ..) = restored(&frame);
    assert_eq!(source_route::advance(&mut packet), Some(mote(2)));
    assert_eq!(source_route::advance(&mut packet), Some(mote(3)));
    let (bytes, header, ..) = begun(&packet, None).unwrap();
    assert!(bytes.is_empty(), "the header says it all");
    assert_eq!(header.dst, mote(3));
    assert_eq!(source_route::advance(&mut packet), None);
}

#[test]
fn the_next_address_stays_in_one_list_with_others_as_long() {
    let wide = |id| Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, id, 1, 2, id);
    let path = [wide(1), wide(2), wide(3), wide(4)];
    let frame = compressed(&from_root(&path, true), None);
    assert_eq!(frame[1..3], [0x83, 3]);
    let (mut packet, ..) = restored(&frame);
    source_route::advance(&mut packet).unwrap();
    let (bytes, ..) = begun(&packet, None).unwrap();
    assert_eq!(bytes[1..3], [0x82, 3]);
    // Where the others are shorter it begins a list of its own.
    let frame = compressed(
        &from_root(&[wide(1), mote(2), mote(3), mote(4)], true),
        None,
    );
    let (mut packet, ..) = restored(&frame);
    source_route::advance(&mut packet).unwrap();
    let (bytes, ..) = begun(&packet, None).unwrap();
    assert_eq!(bytes[1..8], [0x80, 0, 2, 0x81, 0, 3, 4]);
}

#[test]
fn what_6lorh_cannot_express_goes_no_further() {
    let frame = compressed(&from_root(&[mote(1), mote(2), mote(3)], true), None);
    let (mut packet, ..) = restored(&frame);
    packet[3] = 7;
    assert_eq!(begun(&packet, None), Err(Full), "a flow label");
    // A tunnel alone goes as it is, and so does RFC 6554's header.
    let mut tunnel = from_root(&[mote(3)], true);
    tunnel[3] = 7;
    let (bytes, header, ..) = begun(&tunnel, None).unwrap();
    assert_eq!((bytes.len(), header.next_header), (0, next_header::IPV6));
    let plain = from_root(&[mote(1), mote(2), mote(3)], true);
    let (bytes, header, rest, _) = begun(&plain, None).unwrap();
    assert_eq!((bytes.len(), header.next_header), (0, next_header::ROUTING));
    assert_eq!(rest, plain[40..]);
}

#[test]
fn a_route_that_is_too_long_is_refused() {
    let iphc = compressed(&from_root(&[mote(3)], false), None);
    let list: Vec<u8> = (1..=17).collect();
    let frame = [&[0xf1, 0x80 | 16, 0][..], &list, &iphc].concat();
    let (mut leading, rest) = LeadingHeaders::parse(&frame).unwrap();
    let (iphc, rest) = lowpan_iphc::Header::parse(rest).unwrap();
    let mut out = [0; 400];
    let mut packet = Restored::new(&mut out);
    let refused = restore(&mut leading, &mut packet, (&iphc, rest), LINK, &contexts());
    assert_eq!(refused, Err(DecompressError::RouteLength));
}

#[test]
fn a_route_of_hundreds_of_addresses_is_refused() {
    let iphc = compressed(&from_root(&[mote(3)], false), None);
    let list = [&[0x9f, 0][..], &[1; 32]].concat();
    let frame = [&[0xf1][..], &list.repeat(9), &iphc].concat();
    let (mut leading, rest) = LeadingHeaders::parse(&frame).unwrap();
    let (iphc, rest) = lowpan_iphc::Header::parse(rest).unwrap();
    let mut out = [0; 400];
    let mut packet = Restored::new(&mut out);
    let refused = restore(&mut leading, &mut packet, (&iphc, rest), LINK, &contexts());
    assert_eq!(refused, Err(DecompressError::RouteLength));
}

#[test]
fn the_end_of_a_route_is_one_of_its_addresses() {
    // [1, 2], with 1 once more as the end.
    let header = header(ROOT, mote(1), next_header::ROUTING, 0);
    let mut lists = [0; 40];
    let mut list = Writer::new(&mut lists);
    lorh::emit_segments(&mut list, &ROOT, &[mote(1), mote(2)]).unwrap();
    let len = list.written();
    let mut route = SourceRoute {
        segments: Segments::in_bytes(&lists[..len]),
        index: 0,
        segments_left: 2,
        end: &mote(1).octets(),
    };
    let is_own = |addr: &Ipv6Addr| *addr == mote(1);
    assert!(route.any_other(&header, is_own));
    // At the end, whatever comes next is the end again.
    (route.index, route.segments_left) = (2, 255);
    assert_eq!(route.next_of(&header), Some(mote(1)));
    assert!(route.any_other(&header, is_own));
    // A route that ends before it does not visit it.
    (route.index, route.segments_left) = (0, 1);
    assert!(!route.any_other(&header, is_own));
}
