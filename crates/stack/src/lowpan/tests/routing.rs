//! Routing headers in both forms, whole and in fragments, from hop to hop.

use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::datagram::{Datagrams, FragmentDrop, FragmentHandling, FragmentOutcome, Key, Record};
use super::fragment::{FIRST_SLACK, FragmentError, Fragmenter, forward_first};
use super::*;
use crate::limits::{IPV6_MTU_MIN, MESH_PACKET_LEN_MAX};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::cursor::Writer;
use crate::wire::ipv6::{Ecn, TrafficClass, next_header};
use crate::wire::rpl_option::{TYPE_6553, TYPE_9008};
use crate::wire::source_route::{self, SourceRoute};
use crate::wire::{lorh, lowpan_frag, lowpan_iphc, udp};

const fn link_of(id: u16) -> LinkAddr {
    let [high, low] = id.to_be_bytes();
    LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, high, low])
}

const fn mote(id: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0x004d, 0x6f74, 0x6574, id)
}

const ROOT: Ipv6Addr = mote(0);
const OUTSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5);

const fn hop(from: u16, to: u16) -> LinkPair {
    LinkPair {
        src: link_of(from),
        dst: link_of(to),
    }
}

fn contexts(is_compressed: bool) -> Contexts {
    let mut contexts = Contexts::new();
    assert!(contexts.set(0, mote(0), 64, true));
    contexts.set_routing(Some(Routing {
        root: ROOT,
        is_compressed,
        option_type: TYPE_9008,
    }));
    contexts
}

const RPI: Rpi = Rpi {
    down: true,
    rank_error: false,
    forwarding_error: false,
    instance: 0,
    sender_rank: 0x0300,
};

fn header(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8) -> ipv6::Header {
    ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: 0,
        next_header,
        hop_limit: 64,
        src,
        dst,
    }
}

fn packet(header: &ipv6::Header, payload: &[u8]) -> Vec<u8> {
    let header = ipv6::Header {
        payload_len: payload.len() as u16,
        ..*header
    };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend(payload);
    packet
}

/// A UDP packet from outside to a mote, `len` bytes long.
fn from_outside(to: Ipv6Addr, len: usize) -> Vec<u8> {
    let mut datagram = vec![0x5a; len - ipv6::HEADER_LEN];
    for (index, byte) in datagram.iter_mut().enumerate() {
        *byte = (index * 7 + index / 256) as u8;
    }
    let ports = udp::Header {
        src_port: 40000,
        dst_port: 0xf0b1,
    };
    let payload_len = datagram.len() - udp::HEADER_LEN;
    ports.emit(payload_len, &mut datagram).unwrap();
    udp::fill_checksum(&OUTSIDE, &to, &mut datagram);
    packet(&header(OUTSIDE, to, udp::NEXT_HEADER), &datagram)
}

/// The routing header that leads from `path`'s first address through the others; nothing for one
/// address.
fn route(next_header: u8, path: &[Ipv6Addr]) -> Vec<u8> {
    let (dst, rest) = path.split_first().unwrap();
    if rest.is_empty() {
        return Vec::new();
    }
    let mut out = vec![0; 1000];
    let mut w = Writer::new(&mut out);
    source_route::emit(&mut w, next_header, dst, rest).unwrap();
    let len = w.written();
    out.truncate(len);
    out
}

/// `inner` in a tunnel of the root's along `path`.
fn tunnelled(path: &[Ipv6Addr], inner: &[u8]) -> Vec<u8> {
    let (inner_header, _) = ipv6::Header::parse(inner).unwrap();
    let outer = ipv6::Header {
        traffic_class: inner_header.traffic_class,
        hop_limit: 63,
        ..header(ROOT, path[0], next_header::IPV6)
    };
    routed(&outer, path, inner)
}

/// A packet with `header` and `payload` along `path`.
fn routed(header: &ipv6::Header, path: &[Ipv6Addr], payload: &[u8]) -> Vec<u8> {
    let route = route(header.next_header, path);
    let header = ipv6::Header {
        next_header: match route.is_empty() {
            true => header.next_header,
            false => next_header::ROUTING,
        },
        dst: path[0],
        ..*header
    };
    packet(&header, &[&route[..], payload].concat())
}

/// The whole packet in one payload, and how many bytes of it are compressed headers.
fn compressed(
    packet: &[u8],
    rpi: Option<Rpi>,
    link: LinkPair,
    contexts: &Contexts,
) -> (Vec<u8>, Compressed) {
    let mut out = vec![0; packet.len() + 64];
    let forms = HeaderForms {
        rpi,
        ..HeaderForms::default()
    };
    let done = compress_form(packet, forms, link, contexts, &mut out).unwrap();
    out.truncate(done.compressed_len);
    out.extend(&packet[done.uncompressed_len..]);
    (out, done)
}

fn restored(
    bytes: &[u8],
    link: LinkPair,
    contexts: &Contexts,
    size: Option<u16>,
) -> Result<(Vec<u8>, Decompressed), DecompressError> {
    let mut out = [0; 4096];
    let done = decompress(bytes, link, contexts, size, &mut out)?;
    let mut packet = out[..done.uncompressed_len].to_vec();
    packet.extend(&bytes[done.compressed_len..]);
    Ok((packet, done))
}

/// Compresses and restores; returns the compressed headers.
#[track_caller]
fn round_trip(packet: &[u8], rpi: Option<Rpi>, link: LinkPair, contexts: &Contexts) -> Vec<u8> {
    let (bytes, done) = compressed(packet, rpi, link, contexts);
    let (again, undone) = restored(&bytes, link, contexts, None).unwrap();
    assert_eq!(again, packet);
    assert_eq!((undone.rpi, undone.unnumbered), (rpi, done.unnumbered));
    assert_eq!(
        (undone.compressed_len, undone.uncompressed_len),
        (done.compressed_len, done.uncompressed_len)
    );
    bytes[..done.compressed_len].to_vec()
}

#[test]
fn every_form_byte_for_byte() {
    let path = [mote(1), mote(2), mote(3)];
    let inner = from_outside(mote(3), 60);
    let own = packet(&header(ROOT, mote(3), 58), &[1; 8]);
    let up = packet(&header(mote(3), ROOT, 58), &[1; 8]);
    let rising = Rpi { down: false, ..RPI };
    let outside: [u8; 16] = OUTSIDE.octets();
    let iid3 = [0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3];
    let udp = [&[0xf1, 0x9c, 0x40, 0xb1][..], &inner[46..48]].concat();
    type Case = (&'static str, Vec<u8>, Option<Rpi>, LinkPair, Vec<u8>);
    let cases: [Case; 6] = [
        (
            "upwards, first hop",
            up.clone(),
            Some(rising),
            hop(3, 2),
            [
                &[0xf1, 0x83, 5, 3, 0x7a, 0x75, 58][..],
                &[0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 0],
            ]
            .concat(),
        ),
        (
            "upwards, last hop",
            up,
            Some(rising),
            hop(1, 0),
            [&[0xf1, 0x83, 5, 3, 0x7a, 0x57, 58][..], &iid3].concat(),
        ),
        (
            "the root's own, three hops",
            routed(&header(ROOT, mote(3), 58), &path, &[1; 8]),
            None,
            hop(0, 1),
            [&[0xf1, 0x81, 0, 1, 2, 0x7a, 0x75, 58][..], &iid3].concat(),
        ),
        (
            "the root's own, one hop",
            own,
            None,
            hop(0, 3),
            vec![0x7a, 0x77, 58],
        ),
        (
            "a tunnel of three hops",
            tunnelled(&path, &inner),
            Some(RPI),
            hop(0, 1),
            [
                &[0xf1, 0x82, 0, 1, 2, 3, 0x93, 5, 3, 0xa1, 6, 63, 0x7e, 0x05][..],
                &outside,
                &iid3,
                &udp,
            ]
            .concat(),
        ),
        (
            "its last hop",
            tunnelled(&path[2..], &inner),
            None,
            hop(2, 3),
            [
                &[0xf1, 0x80, 0, 3, 0xa1, 6, 63, 0x7e, 0x07][..],
                &outside,
                &udp,
            ]
            .concat(),
        ),
    ];
    for (name, packet, rpi, link, bytes) in cases {
        let got = round_trip(&packet, rpi, link, &contexts(true));
        assert_eq!(got, bytes, "{name}: {got:02x?}");
    }
}

#[test]
fn what_fragment_headers_number() {
    let path = [mote(1), mote(2), mote(3)];
    let own = packet(&header(ROOT, mote(3), 58), &[1; 8]);
    let along = routed(&header(ROOT, mote(3), 58), &path, &[1; 8]);
    let tunnel = tunnelled(&path, &from_outside(mote(3), 100));
    // A routing header of two addresses is 16 bytes long.
    let cases = [
        ("nothing", &own, None, 0, 0),
        ("RPL option", &own, Some(RPI), -8, 0),
        ("source route", &along, None, 0, 16),
        ("source route and option", &along, Some(RPI), -8, 16),
        ("tunnel", &tunnel, None, 0, 40 + 16),
        ("tunnel and option", &tunnel, Some(RPI), -8, 40 + 16),
    ];
    for (name, packet, rpi, in_nhc, in_lorh) in cases {
        for (is_compressed, expected) in [(false, in_nhc), (true, in_lorh)] {
            let contexts = contexts(is_compressed);
            let (_, done) = compressed(packet, rpi, hop(0, 1), &contexts);
            assert_eq!(done.unnumbered, expected, "{name}");
            round_trip(packet, rpi, hop(0, 1), &contexts);
        }
    }
}

/// Either form is read whatever the DODAG settles, and without any.
#[test]
fn an_option_in_any_form_is_taken_out() {
    let plain = packet(&header(mote(3), ROOT, 58), &[1; 8]);
    let rising = Rpi {
        down: false,
        instance: 0x1e,
        ..RPI
    };
    for kind in [TYPE_6553, TYPE_9008] {
        let option = rising.header(58, kind);
        let with = packet(
            &header(mote(3), ROOT, next_header::HOP_BY_HOP),
            &[&option[..], &[1; 8]].concat(),
        );
        let uncompressed = [&[0x41][..], &with].concat();
        let in_line = [&[0x7a, 0x77, 0][..], &with[40..]].concat();
        let nhc = [&[0x7e, 0x77, 0xe0, 58, 6][..], &option[2..], &[1; 8]].concat();
        for (name, bytes) in [
            ("uncompressed", &uncompressed),
            ("in line", &in_line),
            ("compressed", &nhc),
        ] {
            for contexts in [contexts(true), contexts(false), {
                let mut none = contexts(true);
                none.set_routing(None);
                none
            }] {
                let (packet, done) = restored(bytes, hop(3, 0), &contexts, None).unwrap();
                assert_eq!(packet, plain, "{name}");
                assert_eq!((done.rpi, done.unnumbered), (Some(rising), -8), "{name}");
                let size = Some(with.len() as u16);
                let first = restored(&bytes[..bytes.len() - 3], hop(3, 0), &contexts, size);
                assert_eq!(first.unwrap().0, plain[..plain.len() - 3], "{name}");
                let short = restored(bytes, hop(3, 0), &contexts, Some(with.len() as u16 - 1));
                assert_eq!(short, Err(DecompressError::DatagramSize), "{name}");
            }
        }
    }
    // Where another option stands beside it, and behind a 6LoRH that says the same, it stays.
    let two = [58, 1, 0x63, 4, 0, 0, 1, 0, 5, 6, 0, 0, 0, 0, 0, 0];
    let forms = packet(
        &header(mote(3), ROOT, next_header::HOP_BY_HOP),
        &[&two[..], &[1; 8]].concat(),
    );
    round_trip(&forms, None, hop(3, 2), &contexts(false));
    round_trip(&forms, Some(RPI), hop(3, 2), &contexts(true));
    let option = rising.header(58, TYPE_6553);
    let with = packet(
        &header(mote(3), ROOT, next_header::HOP_BY_HOP),
        &[&option[..], &[1; 8]].concat(),
    );
    round_trip(&with, Some(RPI), hop(3, 2), &contexts(true));
}

#[test]
fn a_node_in_no_dodag_writes_no_option() {
    let plain = packet(&header(mote(3), ROOT, 58), &[1; 8]);
    let mut contexts = contexts(true);
    contexts.set_routing(None);
    let (bytes, done) = compressed(&plain, Some(RPI), hop(3, 0), &contexts);
    assert_eq!((&bytes[..3], done.unnumbered), (&[0x7a, 0x77, 58][..], 0));
}

#[test]
fn what_6lorh_cannot_express_goes_as_next_headers() {
    let path = [mote(1), mote(2), mote(3)];
    let inner = from_outside(mote(3), 60);
    let outer = header(ROOT, mote(1), next_header::IPV6);
    let flow_label = 7;
    let long: Vec<_> = (1..=17).map(mote).collect();
    let traffic_class = TrafficClass::new(0, Ecn::Ce);
    let options = [43, 0, 1, 4, 0, 0, 0, 0];
    let behind_options = {
        let mut rest = route(58, &path);
        rest.extend([1; 8]);
        let header = header(ROOT, mote(1), next_header::DESTINATION_OPTIONS);
        packet(&header, &[&options[..], &rest].concat())
    };
    let twice = {
        let mut first = route(next_header::ROUTING, &path);
        first.extend(route(58, &path));
        packet(&header(ROOT, mote(1), next_header::ROUTING), &first)
    };
    let cases = [
        (
            "a route that is not the root's",
            routed(&header(mote(9), mote(3), 58), &path, &[1; 8]),
        ),
        (
            "a tunnel along one",
            routed(&header(mote(9), mote(3), 41), &path, &inner),
        ),
        (
            "a flow label",
            routed(
                &ipv6::Header {
                    flow_label,
                    ..outer
                },
                &path,
                &inner,
            ),
        ),
        (
            "a mark that the inner packet cannot have",
            routed(
                &ipv6::Header {
                    traffic_class,
                    ..outer
                },
                &path,
                &inner,
            ),
        ),
        ("too many hops", tunnelled(&long, &inner)),
        ("other extension headers", behind_options),
    ];
    for (name, packet) in cases {
        let (bytes, _) = compressed(&packet, None, hop(0, 1), &contexts(true));
        assert_eq!(bytes[0] >> 5, 0b011, "{name}: IPHC at once");
        round_trip(&packet, None, hop(0, 1), &contexts(true));
        // The option is written as a 6LoRH all the same.
        let bytes = round_trip(&packet, Some(RPI), hop(0, 1), &contexts(true));
        assert_eq!(bytes[..3], [0xf1, 0x93, 5], "{name}");
    }
    // Of two source routes the first one is compressed.
    let bytes = round_trip(&twice, None, hop(0, 1), &contexts(true));
    assert_eq!(bytes[..5], [0xf1, 0x81, 0, 1, 2]);
}

#[test]
fn an_encapsulator_other_than_the_root_is_written() {
    let inner = from_outside(mote(3), 60);
    for (from, len) in [(mote(9), 1), (mote(0x909), 2), (OUTSIDE, 16)] {
        // Up to the root: a router speaks for its leaf.
        let up = packet(&header(from, ROOT, next_header::IPV6), &inner);
        let bytes = round_trip(&up, None, hop(9, 1), &contexts(true));
        let encapsulator = &from.octets()[16 - len..];
        assert_eq!(bytes[..4], [0xf1, 0xa1 + len as u8, 6, 64]);
        assert_eq!(&bytes[4..4 + len], encapsulator);
        // Elsewhere its destination would count on an address that is not the root's.
        let across = packet(&header(from, mote(2), next_header::IPV6), &inner);
        let bytes = round_trip(&across, None, hop(9, 1), &contexts(true));
        assert_eq!(bytes[0] >> 5, 0b011);
        // Down to the inner destination (a DODAG that stores routes).
        let down = packet(&header(from, mote(3), next_header::IPV6), &inner);
        let bytes = round_trip(&down, Some(RPI), hop(9, 3), &contexts(true));
        assert_eq!(bytes[..6], [0xf1, 0x93, 5, 3, 0xa1 + len as u8, 6]);
    }
}

#[test]
fn visited_addresses_are_forgotten() {
    let path = [mote(1), mote(2), mote(3), mote(4)];
    let inner = from_outside(mote(4), 60);
    let mut tunnel = tunnelled(&path, &inner);
    let mut own = routed(&header(ROOT, mote(4), 58), &path, &[1; 8]);
    for at in 0..path.len() {
        let (bytes, done) = compressed(&tunnel, None, hop(0, 1), &contexts(true));
        let (again, undone) = restored(&bytes, hop(0, 1), &contexts(true), None).unwrap();
        assert_eq!(again, tunnelled(&path[at..], &inner));
        let numbered = |packet: &[u8], unnumbered: i16| packet.len() - unnumbered as usize;
        assert_eq!(numbered(&tunnel, done.unnumbered), inner.len());
        assert_eq!(numbered(&again, undone.unnumbered), inner.len());

        let (bytes, _) = compressed(&own, None, hop(0, 1), &contexts(true));
        let (again, _) = restored(&bytes, hop(0, 1), &contexts(true), None).unwrap();
        let expected = routed(&header(ROOT, mote(4), 58), &path[at..], &[1; 8]);
        assert_eq!(again, expected);
        let next = path.get(at + 1).copied();
        assert_eq!(source_route::advance(&mut tunnel), next);
        assert_eq!(source_route::advance(&mut own), next);
    }
}

/// The route may name the final destination, too.
#[test]
fn a_route_that_ends_at_the_destination_is_not_longer() {
    let iid = [0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3];
    let head = [0xf1, 0x82, 0, 1, 2, 3, 0x7a, 0x75, 58];
    let bytes = [&head[..], &iid, &[1; 8]].concat();
    let (packet, _) = restored(&bytes, hop(0, 1), &contexts(true), None).unwrap();
    let path = [mote(1), mote(2), mote(3)];
    let expected = routed(&header(ROOT, mote(3), 58), &path, &[1; 8]);
    assert_eq!(packet, expected);
}

#[test]
fn congestion_marks_go_into_the_inner_packet() {
    let mut inner = from_outside(mote(3), 60);
    for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        inner[1] = (ecn as u8) << 4;
        let mut tunnel = tunnelled(&[mote(1), mote(3)], &inner);
        assert_eq!(tunnel[1], inner[1]);
        tunnel[1] |= (Ecn::Ce as u8) << 4;
        let (bytes, _) = compressed(&tunnel, None, hop(0, 1), &contexts(true));
        assert_eq!(bytes[0], 0xf1);
        let (again, _) = restored(&bytes, hop(0, 1), &contexts(true), None).unwrap();
        inner[1] = (Ecn::Ce as u8) << 4;
        assert_eq!(again, tunnelled(&[mote(1), mote(3)], &inner));
    }
}

#[test]
fn refused_routing_headers_name_their_reason() {
    let known = contexts(true);
    let mut unknown = contexts(true);
    unknown.set_routing(None);
    let end = [0x7a, 0x77, 58];
    let long = [&[0x90, 0][..], &[7; 17]].concat();
    let to_destination = [&[0x8f, 0][..], &[7; 16]].concat();
    let cases: [(&str, &Contexts, &[u8], DecompressError); 6] = [
        (
            "unknown and critical",
            &known,
            &[0x80, 9],
            DecompressError::Lorh(lorh::ParseError::Critical),
        ),
        (
            "two tunnels",
            &known,
            &[0xa1, 6, 1, 0xa1, 6, 1],
            DecompressError::Lorh(lorh::ParseError::Order),
        ),
        (
            "a tunnel from nobody",
            &unknown,
            &[0xa1, 6, 1],
            DecompressError::NoRoot,
        ),
        ("17 hops", &known, &long, DecompressError::RouteLength),
        (
            "17 hops to the destination",
            &known,
            &to_destination,
            DecompressError::RouteLength,
        ),
        (
            "another page behind",
            &known,
            &[0x83, 5, 1, 0xf1],
            DecompressError::Iphc(lowpan_iphc::ParseError::Dispatch),
        ),
    ];
    for (name, contexts, headers, reason) in cases {
        let bytes = [&[0xf1][..], headers, &end].concat();
        let refused = restored(&bytes, hop(0, 1), contexts, None);
        assert_eq!(refused, Err(reason), "{name}");
        assert!(!reason.reason().is_empty());
    }
    // An elective one is skipped.
    let bytes = [&[0xf1, 0xa2, 0x3f, 1, 2][..], &end, &[1; 8]].concat();
    let (packet, _) = restored(&bytes, hop(3, 2), &known, None).unwrap();
    assert_eq!(packet[40..], [1; 8]);
}

// Laws

/// A path and what it is for.
#[derive(Clone, Debug)]
struct Trip {
    path: Vec<Ipv6Addr>,
    is_tunnel: bool,
    is_compressed: bool,
    rpi: Option<Rpi>,
    class: u8,
    hop_limit: u8,
    payload: usize,
}

/// Addresses that differ from the others in their last `16 - shared` bytes.
fn address(shared: u16, id: u16) -> Ipv6Addr {
    let mut octets = mote(id).octets();
    if let Some(byte) = octets.get_mut(usize::from(shared)).filter(|_| shared < 15) {
        *byte ^= 0x55;
    }
    Ipv6Addr::from(octets)
}

fn any_rpi() -> impl Strategy<Value = Rpi> {
    let rank = prop_oneof![Just(0x0300u16), any::<u16>()];
    let instance = prop_oneof![Just(0u8), any::<u8>()];
    (any::<[bool; 3]>(), instance, rank).prop_map(|([down, r, f], instance, sender_rank)| Rpi {
        down,
        rank_error: r,
        forwarding_error: f,
        instance,
        sender_rank,
    })
}

fn trip(hops_max: usize) -> impl Strategy<Value = Trip> {
    let shared = prop_oneof![4 => Just(15u16), 1 => 0u16..15];
    let path = prop::collection::vec((shared, 1u16..5), 1..=hops_max);
    let payload = prop_oneof![0usize..60, 0usize..=1200];
    let rpi = prop::option::of(any_rpi());
    let kind = (any::<bool>(), any::<bool>());
    (path, kind, rpi, any::<u8>(), 40u8..=255, payload).prop_map(
        |(path, (is_tunnel, is_compressed), rpi, class, hop_limit, payload)| Trip {
            // No address comes twice.
            path: (0..)
                .zip(&path)
                .map(|(at, (shared, id))| address(*shared, at * 60 + id))
                .collect(),
            is_tunnel,
            is_compressed,
            rpi,
            class,
            hop_limit,
            payload,
        },
    )
}

impl Trip {
    fn end(&self) -> Ipv6Addr {
        *self.path.last().unwrap()
    }

    /// The packet that arrives at the end, and that which leaves the root.
    fn packets(&self) -> (Vec<u8>, Vec<u8>) {
        let len = ipv6::HEADER_LEN + udp::HEADER_LEN + self.payload;
        let mut inner = from_outside(self.end(), len);
        inner[0] = 0x60 | self.class >> 4;
        inner[1] = self.class << 4;
        inner[7] = self.hop_limit;
        if self.is_tunnel {
            let mut packet = tunnelled(&self.path, &inner);
            packet[7] = self.hop_limit - 1;
            return (inner, packet);
        }
        inner[8..24].copy_from_slice(&ROOT.octets());
        let (header, payload) = ipv6::Header::parse(&inner).unwrap();
        let packet = routed(&header, &self.path, payload);
        (inner, packet)
    }
}

/// A table at one mote.
fn table() -> Datagrams<'static> {
    let records = vec![Record::EMPTY; 2].leak();
    let bodies = vec![0; MESH_PACKET_LEN_MAX].leak();
    let mut rng = Rng::from_seed([7, 7]);
    Datagrams::new(records, bodies, MESH_PACKET_LEN_MAX, false, &mut rng)
}

/// The frames of a packet over one hop.
fn frames(
    packet: &[u8],
    rpi: Option<Rpi>,
    link: LinkPair,
    contexts: &Contexts,
    len_max: usize,
) -> Result<Vec<Vec<u8>>, FragmentError> {
    let mut buffer = vec![0; MESH_PACKET_LEN_MAX];
    let mut outgoing = Fragmenter::new(&mut buffer);
    outgoing.buffer()[..packet.len()].copy_from_slice(packet);
    let forms = HeaderForms {
        rpi,
        ..HeaderForms::default()
    };
    outgoing.start(packet.len(), forms, link, 77, len_max, FIRST_SLACK)?;
    let mut frames = Vec::new();
    let mut out = [0; 127];
    while let Some(len) = outgoing.next(contexts, &mut out)? {
        assert!(len <= len_max);
        frames.push(out[..len].to_vec());
    }
    Ok(frames)
}

/// What a mote has gathered from the frames of one packet.
fn gathered(frames: &[Vec<u8>], link: LinkPair, contexts: &Contexts) -> (Vec<u8>, Option<Rpi>) {
    if let [alone] = frames {
        let (packet, done) = restored(alone, link, contexts, None).unwrap();
        return (packet, done.rpi);
    }
    let mut table = table();
    for frame in frames {
        let (header, bytes) = lowpan_frag::Header::parse(frame).unwrap();
        let key = Key {
            from: link.src,
            tag: header.datagram_tag,
            size: header.datagram_size,
        };
        let outcome = if header.is_first() {
            let size = Some(header.datagram_size);
            let (start, done) = restored(bytes, link, contexts, size).unwrap();
            let first = done.first(&start);
            table.on_first(
                key,
                first,
                FragmentHandling::Reassemble,
                true,
                Instant::ORIGIN,
            )
        } else {
            table.on_next(key, header.offset_bytes(), bytes, Instant::ORIGIN)
        };
        if let FragmentOutcome::Complete(id) = outcome {
            let (mut whole, forms) = table.lend(id).unwrap();
            return (whole.packet().to_vec(), forms.rpi);
        }
        assert_eq!(outcome, FragmentOutcome::Stored);
    }
    panic!("the packet is whole");
}

/// What a relay changes before it passes a packet on; `None` where it does not see the whole route.
fn relay(packet: &mut [u8], rpi: &mut Option<Rpi>) -> Option<Ipv6Addr> {
    ipv6::count_down(packet);
    if let Some(rpi) = rpi {
        rpi.sender_rank = rpi.sender_rank.wrapping_add(0x0100);
    }
    source_route::advance(packet)
}

/// Passes the frames of one packet on; `None`: it has to be gathered first.
fn passed_on(
    frames: &[Vec<u8>],
    (came, onward): (LinkPair, LinkPair),
    contexts: &Contexts,
    len_max: usize,
) -> Option<Vec<Vec<u8>>> {
    let mut frames = frames.to_vec();
    let (header, bytes) = lowpan_frag::Header::parse(frames.first()?).ok()?;
    let size = Some(header.datagram_size);
    let (mut start, mut done) = restored(bytes, came, contexts, size).unwrap();
    relay(&mut start, &mut done.rpi)?;
    let mut out = [0; 127];
    let first = done.first(&start);
    let len = forward_first(first, header, onward, contexts, len_max, &mut out).ok()?;
    *frames.first_mut()? = out[..len].to_vec();
    Some(frames)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A packet, and any start of it, is restored byte for byte, compressed or not.
    #[test]
    fn restoring_undoes_compression(trip in trip(16), from in 0u16..4, to in 0u16..4, cut in 0usize..400) {
        let contexts = contexts(trip.is_compressed);
        let (_, packet) = trip.packets();
        let link = hop(from, to);
        let (bytes, done) = compressed(&packet, trip.rpi, link, &contexts);
        let (again, undone) = restored(&bytes, link, &contexts, None).unwrap();
        prop_assert_eq!(&again, &packet);
        prop_assert_eq!((undone.rpi, undone.unnumbered), (trip.rpi, done.unnumbered));
        prop_assert_eq!(undone.compressed_len, done.compressed_len);

        // The start of the packet alone restores to the same bytes.
        let start = &packet[..cut.clamp(ipv6::HEADER_LEN, packet.len())];
        let (bytes, done) = compressed(start, trip.rpi, link, &contexts);
        let size = Some(numbered(packet.len(), done.unnumbered) as u16);
        let (again, undone) = restored(&bytes, link, &contexts, size).unwrap();
        prop_assert_eq!(&again, start);
        prop_assert_eq!((undone.rpi, undone.unnumbered), (trip.rpi, done.unnumbered));
    }

    /// Over every hop of the path, fragments passed on as they come where there is room.
    #[test]
    fn a_packet_arrives_along_its_path(trip in trip(8), len_max in 76usize..=116, relays: u8) {
        let contexts = contexts(trip.is_compressed);
        let (inner, packet) = trip.packets();
        let mut rpi = trip.rpi;
        let mut link = hop(0, 1);
        let mut sent = frames(&packet, rpi, link, &contexts, len_max);
        for at in 1..trip.path.len() as u16 {
            let Ok(came) = &sent else { break };
            let onward = hop(at, at + 1);
            let may_pass = came.len() > 1 && relays >> at & 1 == 0;
            let passed = may_pass.then(|| passed_on(came, (link, onward), &contexts, len_max));
            let passed = passed.flatten();
            sent = match passed {
                Some(frames) => Ok(frames),
                None => {
                    let (mut packet, mut rpi) = gathered(came, link, &contexts);
                    prop_assert!(relay(&mut packet, &mut rpi).is_some());
                    frames(&packet, rpi, onward, &contexts, len_max)
                }
            };
            if let Some(rpi) = &mut rpi {
                rpi.sender_rank = rpi.sender_rank.wrapping_add(0x0100);
            }
            link = onward;
        }
        // Addresses that share nothing may leave a first fragment no room.
        let Ok(sent) = sent else {
            let shares_little = trip.path.iter().any(|addr| addr.octets()[..15] != ROOT.octets()[..15]);
            prop_assert!(shares_little);
            return Ok(());
        };
        let (arrived, last_rpi) = gathered(&sent, link, &contexts);
        prop_assert_eq!(last_rpi, rpi);
        let (header, _) = ipv6::Header::parse(&arrived).unwrap();
        prop_assert_eq!(header.dst, trip.end());
        let hops = trip.path.len() as u8 - 1;
        let mut walk = ipv6::Extensions::new(header.next_header, &arrived[40..]);
        while let Some(extension) = walk.next().unwrap() {
            prop_assert_eq!(SourceRoute::parse(extension.bytes).unwrap().segments_left, 0);
        }
        if trip.is_tunnel {
            prop_assert_eq!(header.hop_limit, trip.hop_limit - 1 - hops);
            prop_assert_eq!(walk.rest(), &inner);
        } else {
            prop_assert_eq!(header.hop_limit, trip.hop_limit - hops);
            prop_assert_eq!(header.src, ROOT);
            prop_assert_eq!(walk.rest(), &inner[40..]);
        }
    }

    #[test]
    fn hostile_frames_are_refused_or_restored(
        mut bytes in prop::collection::vec(any::<u8>(), 1..127),
        kinds in prop::collection::vec((0usize..5, 0u8..8), 0..6),
        is_compressed: bool,
        is_known: bool,
        size in prop::option::of(0u16..2048),
        room in 0usize..600,
    ) {
        // Routing headers of plausible lengths, then IPHC.
        let mut at = 1;
        bytes[0] = 0xf1;
        for (len, kind) in kinds {
            if let Some([first, second]) = bytes.get_mut(at..at + 2) {
                *first = if kind == 6 { 0xa0 | (*first & 0x13) } else { 0x80 | len as u8 };
                *second = kind;
                at += match kind {
                    0..=4 => 2 + ((len + 1) << kind),
                    5 => 4 + usize::from(*first & 1 == 0) + usize::from(*first & 2 == 0) - 1,
                    _ => 2 + usize::from(*first & 31),
                };
            }
        }
        if let Some(byte) = bytes.get_mut(at) {
            *byte = *byte & 0x1f | 0x60;
        }
        let mut contexts = contexts(is_compressed);
        if !is_known {
            contexts.set_routing(None);
        }
        let mut out = vec![0; room];
        if let Ok(done) = decompress(&bytes, hop(0, 1), &contexts, size, &mut out) {
            prop_assert!(done.uncompressed_len <= room && done.compressed_len <= bytes.len());
            let packet = [&out[..done.uncompressed_len], &bytes[done.compressed_len..]].concat();
            let (bytes, made) = compressed(&packet, done.rpi, hop(0, 1), &contexts);
            let size = size.map(|size| {
                numbered(unabridged(usize::from(size), done.unnumbered), made.unnumbered) as u16
            });
            let (again, undone) = restored(&bytes, hop(0, 1), &contexts, size).unwrap();
            prop_assert_eq!(again, packet);
            prop_assert!(undone.rpi == done.rpi || !is_known);
        }
    }
}

#[test]
fn every_shared_length() {
    for is_compressed in [false, true] {
        let contexts = contexts(is_compressed);
        for shared in 0..=15 {
            for others in 0..=15 {
                let path = [
                    address(shared, 1),
                    address(others, 2),
                    address(shared, 0x303),
                ];
                let tunnel = tunnelled(&path, &from_outside(path[2], 100));
                round_trip(&tunnel, Some(RPI), hop(0, 1), &contexts);
                let own = routed(&header(ROOT, path[2], 58), &path, &[1; 8]);
                round_trip(&own, None, hop(0, 1), &contexts);
            }
        }
    }
}

/// The largest packet from outside takes the largest body.
#[test]
fn a_packet_of_the_minimum_mtu_travels_in_a_tunnel() {
    let path: Vec<_> = (1..=16).map(|id| address(8 + id % 2 * 7, id)).collect();
    let inner = from_outside(path[15], IPV6_MTU_MIN);
    let packet = tunnelled(&path, &inner);
    assert_eq!(packet.len(), MESH_PACKET_LEN_MAX);
    for is_compressed in [false, true] {
        let contexts = contexts(is_compressed);
        let frames = frames(&packet, Some(RPI), hop(0, 1), &contexts, 116).unwrap();
        let (again, rpi) = gathered(&frames, hop(0, 1), &contexts);
        assert_eq!((again, rpi), (packet.clone(), Some(RPI)));
    }
}

/// Later fragments keep their offsets, so a relay that would number the first one otherwise gathers
/// the packet.
#[test]
fn a_relay_keeps_to_the_numbering_of_the_sender() {
    let path = [mote(1), mote(2), mote(3)];
    let packet = tunnelled(&path, &from_outside(mote(3), 400));
    for rpi in [None, Some(RPI)] {
        for sender in [false, true] {
            let (came, onward) = (hop(0, 1), hop(1, 2));
            let sent = frames(&packet, rpi, came, &contexts(sender), 104).unwrap();
            assert!(sent.len() > 3);
            let onwards = |relay| passed_on(&sent, (came, onward), &contexts(relay), 104);
            assert!(onwards(sender).is_some());
            assert_eq!(onwards(!sender), None);
        }
    }
}

/// The option counts in `datagram_size`, and takes no room in a body.
#[test]
fn a_body_of_the_minimum_mtu_serves_a_mesh_without_tunnels() {
    let packet = packet(&header(mote(3), ROOT, 58), &[7; IPV6_MTU_MIN - 40]);
    let contexts = contexts(false);
    let frames = frames(&packet, Some(RPI), hop(3, 2), &contexts, 104).unwrap();
    let mut rng = Rng::from_seed([7, 7]);
    let (mut records, mut bodies) = ([Record::EMPTY; 1], [0; IPV6_MTU_MIN]);
    let mut table = Datagrams::new(&mut records, &mut bodies, IPV6_MTU_MIN, false, &mut rng);
    let mut last = None;
    for frame in &frames {
        let (header, bytes) = lowpan_frag::Header::parse(frame).unwrap();
        assert_eq!(header.datagram_size, 1288);
        let key = Key {
            from: link_of(3),
            tag: header.datagram_tag,
            size: header.datagram_size,
        };
        last = Some(match header.is_first() {
            true => {
                let (start, done) = restored(bytes, hop(3, 2), &contexts, Some(1288)).unwrap();
                let first = done.first(&start);
                table.on_first(
                    key,
                    first,
                    FragmentHandling::Reassemble,
                    true,
                    Instant::ORIGIN,
                )
            }
            false => table.on_next(key, header.offset_bytes(), bytes, Instant::ORIGIN),
        });
    }
    let Some(FragmentOutcome::Complete(id)) = last else {
        panic!("{last:?}");
    };
    let (mut whole, forms) = table.lend(id).unwrap();
    assert_eq!((&*whole.packet(), forms.rpi), (&packet[..], Some(RPI)));
}

/// A fragment that came first was put where it would lie without routing headers.
#[test]
fn a_first_fragment_that_shifts_others_gives_its_packet_up() {
    for (unnumbered, outcome) in [
        (0, FragmentOutcome::Stored),
        (-8, FragmentOutcome::Drop(FragmentDrop::Overlap)),
        (56, FragmentOutcome::Drop(FragmentDrop::Overlap)),
    ] {
        let mut rng = Rng::from_seed([7, 7]);
        let (mut records, mut bodies) = ([Record::EMPTY; 1], [0; 400]);
        let mut table = Datagrams::new(&mut records, &mut bodies, 400, true, &mut rng);
        let key = Key {
            from: link_of(3),
            tag: 1,
            size: 200,
        };
        let stored = table.on_next(key, 96, &[1; 48], Instant::ORIGIN);
        assert_eq!(stored, FragmentOutcome::Stored);
        let bytes = vec![2; unabridged(48, unnumbered)];
        let first = First {
            bytes: &bytes,
            forms: HeaderForms::default(),
            unnumbered,
        };
        let got = table.on_first(
            key,
            first,
            FragmentHandling::Reassemble,
            true,
            Instant::ORIGIN,
        );
        assert_eq!(got, outcome, "{unnumbered}");
        assert_eq!(table.is_empty(), unnumbered != 0);
    }
}
