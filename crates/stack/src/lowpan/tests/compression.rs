//! Compression and decompression against each other, and against RFC 6282's own examples.

use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::wire::ipv6::{self, Ecn, TrafficClass, next_header};
use crate::wire::lowpan_dispatch::Unsupported;
use crate::wire::{lowpan_iphc, lowpan_nhc, udp};

const A: LinkAddr = LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1]);
const B: LinkAddr = LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]);
const LINK: LinkPair = LinkPair { src: A, dst: B };

fn addr(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn on(prefix: &str, link: LinkAddr) -> Ipv6Addr {
    let bits = u128::from(addr(prefix)) | u128::from(u64::from_be_bytes(link.iid()));
    Ipv6Addr::from(bits)
}

/// The lab's plan: the mesh is context 0, the wired side context 1.
fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    assert!(contexts.set(0, addr("fd6d:6f74:6574:1::"), 64, true));
    assert!(contexts.set(1, addr("fd6d:6f74:6574::"), 64, true));
    contexts
}

fn packet(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let header = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: payload.len() as u16,
        next_header,
        hop_limit: 64,
        src,
        dst,
    };
    with_header(&header, payload)
}

fn with_header(header: &ipv6::Header, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; ipv6::HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend(payload);
    packet
}

/// Compresses, returns the whole frame payload and the length of its headers.
fn compressed(packet: &[u8], link: LinkPair, contexts: &Contexts) -> (Vec<u8>, Compressed) {
    let mut out = vec![0; packet.len()];
    let done = compress(packet, link, contexts, &mut out).unwrap();
    out.truncate(done.compressed_len);
    out.extend(&packet[done.uncompressed_len..]);
    (out, done)
}

fn restored(
    bytes: &[u8],
    link: LinkPair,
    contexts: &Contexts,
) -> Result<(Vec<u8>, Decompressed), DecompressError> {
    let mut out = [0; 2048];
    let done = decompress(bytes, link, contexts, None, &mut out)?;
    let mut packet = out[..done.uncompressed_len].to_vec();
    packet.extend(&bytes[done.compressed_len..]);
    Ok((packet, done))
}

#[track_caller]
fn round_trip(packet: &[u8], link: LinkPair, contexts: &Contexts) -> Vec<u8> {
    let (bytes, done) = compressed(packet, link, contexts);
    assert!(done.compressed_len <= done.uncompressed_len);
    let (again, undone) = restored(&bytes, link, contexts).unwrap();
    assert_eq!(again, packet);
    assert_eq!(undone.uncompressed_len, done.uncompressed_len);
    assert_eq!(undone.compressed_len, done.compressed_len);
    bytes[..done.compressed_len].to_vec()
}

#[test]
fn unicast_addresses_take_their_shortest_form() {
    let short = LinkPair {
        src: LinkAddr::Short(0x1234),
        dst: LinkAddr::Short(0x5678),
    };
    let mesh = "fd6d:6f74:6574:1::";
    let cases: [(&str, Ipv6Addr, Ipv6Addr, LinkPair, &[u8]); 9] = [
        (
            "link-local, derived",
            on("fe80::", A),
            on("fe80::", B),
            LINK,
            &[0x7a, 0x33, 6],
        ),
        (
            "derived from short",
            addr("fe80::ff:fe00:1234"),
            addr("fe80::ff:fe00:5678"),
            short,
            &[0x7a, 0x33, 6],
        ),
        (
            "16 bits",
            addr("fe80::ff:fe00:7"),
            addr("fe80::ff:fe00:8"),
            LINK,
            &[0x7a, 0x22, 6, 0, 7, 0, 8],
        ),
        (
            "64 bits",
            addr("fe80::1"),
            on("fe80::", B),
            LINK,
            &[0x7a, 0x13, 6, 0, 0, 0, 0, 0, 0, 0, 1],
        ),
        (
            "context 0, no CID",
            on(mesh, A),
            on(mesh, B),
            LINK,
            &[0x7a, 0x77, 6],
        ),
        (
            "mote to host: contexts 0 and 1",
            on(mesh, A),
            addr("fd6d:6f74:6574::1"),
            LINK,
            &[0x7a, 0xf5, 0x01, 6, 0, 0, 0, 0, 0, 0, 0, 1],
        ),
        (
            "context and 16 bits",
            addr("fd6d:6f74:6574::ff:fe00:abcd"),
            on(mesh, B),
            LINK,
            &[0x7a, 0xe7, 0x10, 6, 0xab, 0xcd],
        ),
        (
            "unspecified",
            Ipv6Addr::UNSPECIFIED,
            on("fe80::", B),
            LINK,
            &[0x7a, 0x43, 6],
        ),
        (
            "in full",
            on("fe80::", A),
            addr("2001:db8::1"),
            LINK,
            &[
                0x7a, 0x30, 6, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            ],
        ),
    ];
    for (name, src, dst, link, expected) in cases {
        let bytes = round_trip(&packet(src, dst, 6, &[1, 2, 3]), link, &contexts());
        assert_eq!(bytes, expected, "{name}");
    }
}

#[test]
fn multicast_addresses_take_their_shortest_form() {
    let cases: [(&str, u8, &[u8]); 6] = [
        ("ff02::1", 0x3b, &[1]),
        ("ff05::2:3", 0x3a, &[5, 2, 0, 3][..]),
        ("ff02::1:ff00:1234", 0x39, &[2, 1, 0xff, 0, 0x12, 0x34]),
        ("ff32:40:fd6d:6f74:6574:1:0:7", 0x3c, &[0x32, 0, 0, 0, 0, 7]),
        (
            "ff7e:540:fd6d:6f74:6574:1:1234:5678",
            0x3c,
            &[0x7e, 5, 0x12, 0x34, 0x56, 0x78],
        ),
        (
            "ff02:0:0:1::1",
            0x38,
            &[0xff, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
        ),
    ];
    for (text, second, in_line) in cases {
        let bytes = round_trip(
            &packet(on("fe80::", A), addr(text), 6, &[]),
            LINK,
            &contexts(),
        );
        let expected = [&[0x7a, second, 6][..], in_line].concat();
        assert_eq!(bytes, expected, "{text}");
    }
    // The same with the prefix of context 1: identifiers are needed.
    let host = addr("ff32:40:fd6d:6f74:6574:0:0:7");
    let bytes = round_trip(&packet(on("fe80::", A), host, 6, &[]), LINK, &contexts());
    assert_eq!(bytes, [0x7a, 0xbc, 0x01, 6, 0x32, 0, 0, 0, 0, 7]);
}

#[test]
fn context_bits_beyond_64_override_the_identifier() {
    let mut contexts = Contexts::new();
    // 112 bits: only the last sixteen come from the identifier, whatever form it has.
    contexts.set(0, addr("2001:db8::1:2:3:0"), 112, true);
    let src = addr("2001:db8::1:2:3:1");
    let bytes = round_trip(&packet(src, on("fe80::", B), 6, &[]), LINK, &contexts);
    assert_eq!(
        bytes,
        [0x7a, 0x73, 6],
        "elided, for the link address ends in 1 too"
    );
    // All 128 bits: the address itself is the context.
    contexts.set(0, addr("2001:db8::7"), 128, true);
    let bytes = round_trip(
        &packet(addr("2001:db8::7"), on("fe80::", B), 6, &[]),
        LINK,
        &contexts,
    );
    assert_eq!(bytes, [0x7a, 0x73, 6]);
    // 48 bits: the sixteen bits up to the identifier are zero, or the context does not serve.
    contexts.set(0, addr("2001:db8:1::"), 48, true);
    let bytes = round_trip(
        &packet(on("2001:db8:1::", A), on("fe80::", B), 6, &[]),
        LINK,
        &contexts,
    );
    assert_eq!(bytes, [0x7a, 0x73, 6]);
    let other = packet(on("2001:db8:1:1::", A), on("fe80::", B), 6, &[]);
    assert_eq!(round_trip(&other, LINK, &contexts).len(), 3 + 16);
}

#[test]
fn contexts_that_must_not_compress_still_decompress() {
    let mut theirs = Contexts::new();
    theirs.set(0, addr("fd00::"), 64, true);
    let mut ours = Contexts::new();
    ours.set(0, addr("fd00::"), 64, false);
    let packet = packet(on("fd00::", A), on("fd00::", B), 6, &[]);
    let (bytes, _) = compressed(&packet, LINK, &theirs);
    assert_eq!(bytes.len(), 3);
    assert_eq!(restored(&bytes, LINK, &ours).unwrap().0, packet);
    assert_eq!(compressed(&packet, LINK, &ours).0.len(), 3 + 32);
}

/// UDP behind hop-by-hop options: everything elided.
#[test]
fn extension_headers_lose_their_padding_and_get_it_back() {
    let option = [0x64, 4, 0, 0x1e, 1, 0];
    let udp = [0xf0, 0xb1, 0xf0, 0xb2, 0, 9, 0xab, 0xcd, 0x55];
    let exact = [&[17, 0][..], &option, &udp].concat();
    let bytes = round_trip(
        &packet(on("fe80::", A), on("fe80::", B), 0, &exact),
        LINK,
        &contexts(),
    );
    assert_eq!(
        bytes,
        [
            0x7e, 0x33, 0xe1, 6, 0x64, 4, 0, 0x1e, 1, 0, 0xf3, 0x12, 0xab, 0xcd
        ]
    );

    let cases: [(&str, &[u8], usize); 8] = [
        ("no padding", &[5, 4, 1, 2, 3, 4], 6),
        ("Pad1", &[5, 3, 1, 2, 3, 0], 5),
        ("PadN of two", &[5, 2, 1, 2, 1, 0], 4),
        ("PadN of six, nothing else", &[1, 4, 0, 0, 0, 0], 0),
        (
            "PadN of seven",
            &[5, 5, 1, 2, 3, 4, 5, 1, 5, 0, 0, 0, 0, 0],
            7,
        ),
        (
            "PadN of eight is too long",
            &[5, 4, 1, 2, 3, 4, 1, 6, 0, 0, 0, 0, 0, 0],
            14,
        ),
        (
            "PadN that is not zero",
            &[5, 2, 1, 2, 1, 0, 1, 5, 0, 0, 0, 0, 9, 0],
            14,
        ),
        ("two Pad1", &[5, 2, 1, 2, 0, 0], 6),
    ];
    for (name, options, kept) in cases {
        let units = (options.len() + 2) / 8 - 1;
        let payload = [&[6, units as u8][..], options, &[7; 20]].concat();
        for (kind, first) in [(0, 0xe0), (60, 0xe6)] {
            let packet = packet(on("fe80::", A), on("fe80::", B), kind, &payload);
            let bytes = round_trip(&packet, LINK, &contexts());
            let expected = [&[0x7e, 0x33, first, 6, kept as u8][..], &options[..kept]].concat();
            assert_eq!(bytes, expected, "{name}");
        }
    }
}

#[test]
fn an_inner_packet_derives_from_the_outer_one() {
    let inner = packet(
        on("fd6d:6f74:6574:1::", B),
        on("fd6d:6f74:6574:1::", A),
        6,
        &[9; 4],
    );
    let outer = packet(on("fe80::", B), on("fe80::", A), next_header::IPV6, &inner);
    // The link is another: the outer addresses are in line, the inner identifiers are not.
    let bytes = round_trip(&outer, LINK, &contexts());
    assert_eq!(bytes.len(), 2 + 16 + 1 + 3);
    assert_eq!(bytes[18..], [0xee, 0x7a, 0x77, 6]);
}

/// What follows may be the middle of a packet that only looks like the header it names.
#[test]
fn nothing_is_compressed_behind_a_fragment_header() {
    let fragment = [60, 0, 0, 9, 0, 0, 0, 7, 6, 0, 1, 4, 0, 0, 0, 0];
    let packet = packet(on("fe80::", A), on("fe80::", B), 44, &fragment);
    let bytes = round_trip(&packet, LINK, &contexts());
    assert_eq!(bytes, [0x7e, 0x33, 0xe4, 60, 0, 0, 9, 0, 0, 0, 7]);
}

#[test]
fn what_length_fields_do_not_imply_stays_as_it_is() {
    let udp_too_short = [0, 1, 0, 2, 0, 8, 0xab, 0xcd, 0x55];
    let bytes = round_trip(
        &packet(on("fe80::", A), on("fe80::", B), 17, &udp_too_short),
        LINK,
        &contexts(),
    );
    assert_eq!(bytes, [0x7a, 0x33, 17]);
    let long = [&[6, 40][..], &[0; 8 * 41 - 2]].concat();
    let bytes = round_trip(
        &packet(on("fe80::", A), on("fe80::", B), 43, &long),
        LINK,
        &contexts(),
    );
    assert_eq!(bytes, [0x7a, 0x33, 43], "routing header over 255 bytes");
}

#[test]
fn first_fragments_are_compressed_as_the_whole() {
    let udp = [
        &[0xf0, 0xb1, 0xf0, 0xb2, 0, 108, 0xab, 0xcd][..],
        &[0x55; 100],
    ]
    .concat();
    let packet = packet(on("fe80::", A), on("fe80::", B), 17, &udp);
    let mut out = [0; 100];
    let whole = compress(&packet, LINK, &contexts(), &mut out).unwrap();
    let head = out[..whole.compressed_len].to_vec();
    let start = compress(&packet[..64], LINK, &contexts(), &mut out).unwrap();
    assert_eq!((whole, &head[..]), (start, &out[..start.compressed_len]));
    // Too early an end leaves the UDP header in line, valid all the same.
    let early = compress(&packet[..44], LINK, &contexts(), &mut out).unwrap();
    assert_eq!(
        (early.uncompressed_len, &out[..3]),
        (40, &[0x7a, 0x33, 17][..])
    );

    let frag1 = [&head[..], &packet[48..64]].concat();
    let mut again = [0; 100];
    let done = decompress(
        &frag1,
        LINK,
        &contexts(),
        Some(packet.len() as u16),
        &mut again,
    )
    .unwrap();
    assert_eq!(again[..done.uncompressed_len], packet[..48]);
    let short = decompress(&frag1, LINK, &contexts(), Some(63), &mut again);
    assert_eq!(short, Err(DecompressError::DatagramSize));
}

#[test]
fn elided_udp_checksums_are_restored() {
    let (src, dst) = (on("fe80::", A), on("fe80::", B));
    let mut udp = [0xf0, 0xb1, 0xf0, 0xb2, 0, 11, 0, 0, 1, 2, 3];
    udp::fill_checksum(&src, &dst, &mut udp);
    let packet = packet(src, dst, 17, &udp);
    let frame = [0x7e, 0x33, 0xf7, 0x12, 1, 2, 3];
    let (again, done) = restored(&frame, LINK, &contexts()).unwrap();
    assert_eq!((again, done.udp_checksum_elided), (packet.clone(), false));

    let mut out = [0; 51];
    let done = decompress(&frame[..5], LINK, &contexts(), Some(51), &mut out).unwrap();
    assert!(done.udp_checksum_elided);
    out[48..].copy_from_slice(&[1, 2, 3]);
    complete_udp_checksum(&mut out);
    assert_eq!(out[..], packet);

    // Behind a routing header the checksum is over an address that nobody here knows.
    let routed = [0x7e, 0x33, 0xe3, 6, 0, 1, 0, 0, 0, 0, 0xf7, 0x12, 1, 2, 3];
    let refused = restored(&routed, LINK, &contexts());
    assert_eq!(refused, Err(DecompressError::ChecksumBehindRouting));
}

#[test]
fn uncompressed_packets_pass() {
    let packet = packet(on("fe80::", A), on("fe80::", B), 17, &[7; 9]);
    let frame = [&[0x41][..], &packet].concat();
    let (again, done) = restored(&frame, LINK, &contexts()).unwrap();
    assert_eq!((again, done.compressed_len), (packet.clone(), 41));
    let mut out = [0; 40];
    let first = decompress(&frame[..45], LINK, &contexts(), Some(49), &mut out);
    assert_eq!(first.map(|done| done.uncompressed_len), Ok(40));
    let longer = decompress(&frame, LINK, &contexts(), Some(48), &mut out);
    assert_eq!(longer, Err(DecompressError::DatagramSize));
    let truncated = decompress(&frame[..45], LINK, &contexts(), None, &mut out);
    assert_eq!(truncated, Err(DecompressError::DatagramSize));
}

#[test]
fn refused_frames_name_their_reason() {
    let hop_by_hop = |count: usize| [&[0x7e, 0x33][..], &[0xe1, 0].repeat(count)].concat();
    let tail = |bytes: &[u8]| [bytes, &[0xe0, 6, 0]].concat();
    let mut long = contexts();
    long.set(2, addr("fd00::"), 65, true);
    let iphc = DecompressError::Iphc;
    let nhc = DecompressError::Nhc;
    let cases = [
        (
            "empty",
            vec![],
            DecompressError::Unsupported(Unsupported::Empty),
        ),
        (
            "HC1",
            vec![0x42, 0],
            DecompressError::Unsupported(Unsupported::Hc1),
        ),
        ("fragment", vec![0xc0, 0, 0, 0], DecompressError::Fragment),
        ("half", vec![0x7a], iphc(lowpan_iphc::ParseError::Truncated)),
        (
            "reserved",
            vec![0x7e, 0x34],
            iphc(lowpan_iphc::ParseError::ReservedMode),
        ),
        (
            "context 9",
            vec![0x7a, 0xf3, 0x90, 6],
            DecompressError::Context,
        ),
        (
            "multicast context 9",
            vec![0x7a, 0xbc, 9, 6, 0, 0, 0, 0, 0, 0],
            DecompressError::Context,
        ),
        (
            "65 bits",
            vec![0x7a, 0xbc, 2, 6, 0, 0, 0, 0, 0, 0],
            DecompressError::MulticastPrefix,
        ),
        (
            "NHC missing",
            vec![0x7e, 0x33],
            nhc(lowpan_nhc::ParseError::Truncated),
        ),
        (
            "GHC",
            vec![0x7e, 0x33, 0xd0],
            nhc(lowpan_nhc::ParseError::Unknown),
        ),
        (
            "routing of 5",
            vec![0x7e, 0x33, 0xe2, 6, 5, 0, 0, 0, 0, 0],
            DecompressError::ExtensionLength,
        ),
        (
            "nine headers",
            tail(&hop_by_hop(8)),
            DecompressError::TooManyHeaders,
        ),
        (
            "IPv4",
            vec![0x41, 0x45],
            DecompressError::Ipv6(ipv6::ParseError::Truncated),
        ),
    ];
    for (name, frame, reason) in cases {
        assert_eq!(restored(&frame, LINK, &long), Err(reason), "{name}");
        assert!(!reason.reason().is_empty());
    }
    assert!(restored(&tail(&hop_by_hop(7)), LINK, &long).is_ok());
    let packet = packet(on("fe80::", A), on("fe80::", B), 6, &[1]);
    let (frame, _) = compressed(&packet, LINK, &long);
    let no_room = decompress(&frame, LINK, &long, None, &mut [0; 39]);
    assert_eq!(no_room, Err(DecompressError::Full));
    let too_long = vec![0x7a, 0x33, 6]
        .into_iter()
        .chain([0; 65536])
        .collect::<Vec<_>>();
    assert_eq!(
        decompress(&too_long, LINK, &long, None, &mut [0; 40]),
        Err(DecompressError::DatagramSize)
    );
}

#[test]
fn compression_refuses_what_is_no_packet_and_never_truncates() {
    let packet = packet(addr("2001:db8::1"), addr("2001:db8::2"), 6, &[1, 2, 3]);
    let mut out = [0; 100];
    let cut = compress(&packet[..39], LINK, &contexts(), &mut out);
    assert_eq!(cut, Err(CompressError::Malformed));
    let longer = [&packet[..], &[0]].concat();
    let longer = compress(&longer, LINK, &contexts(), &mut out);
    assert_eq!(longer, Err(CompressError::Malformed));
    let len = compress(&packet, LINK, &contexts(), &mut out)
        .unwrap()
        .compressed_len;
    for room in 0..len {
        let refused = compress(&packet, LINK, &contexts(), &mut out[..room]);
        assert_eq!(refused, Err(CompressError::Full), "{room} bytes");
    }
    assert!(compress(&packet, LINK, &contexts(), &mut out[..len]).is_ok());
}

// Laws

fn link_addr() -> impl Strategy<Value = LinkAddr> {
    prop_oneof![
        any::<u16>().prop_map(LinkAddr::Short),
        any::<[u8; 8]>().prop_map(LinkAddr::Extended),
        Just(A),
    ]
}

fn any_contexts() -> impl Strategy<Value = Contexts> {
    let one = (
        0u8..16,
        any::<u128>(),
        prop_oneof![Just(64u8), 0u8..=128],
        any::<bool>(),
    );
    prop::collection::vec(one, 0..6).prop_map(|all| {
        let mut contexts = Contexts::new();
        for (id, prefix, len, compress) in all {
            assert!(contexts.set(id, Ipv6Addr::from(prefix), len, compress));
        }
        contexts
    })
}

/// A recipe for an address, so that every form of compression is met often.
#[derive(Clone, Debug)]
enum Recipe {
    Random(u128),
    LinkLocal(Identifier),
    InContext(u8, Identifier),
    Multicast(u8, u64, u32),
    PrefixMulticast(u8, [u8; 6]),
    Unspecified,
}

#[derive(Clone, Debug)]
enum Identifier {
    OfLink,
    Short(u16),
    Random(u64),
}

fn identifier() -> impl Strategy<Value = Identifier> {
    prop_oneof![
        Just(Identifier::OfLink),
        any::<u16>().prop_map(Identifier::Short),
        any::<u64>().prop_map(Identifier::Random),
    ]
}

fn recipe() -> impl Strategy<Value = Recipe> {
    prop_oneof![
        any::<u128>().prop_map(Recipe::Random),
        identifier().prop_map(Recipe::LinkLocal),
        (0u8..16, identifier()).prop_map(|(id, iid)| Recipe::InContext(id, iid)),
        (any::<u8>(), any::<u64>(), 0u32..64)
            .prop_map(|(flags, group, zeros)| { Recipe::Multicast(flags, group, zeros) }),
        (0u8..16, any::<[u8; 6]>()).prop_map(|(id, bits)| Recipe::PrefixMulticast(id, bits)),
        Just(Recipe::Unspecified),
    ]
}

impl Recipe {
    fn cook(&self, link: LinkAddr, contexts: &Contexts) -> Ipv6Addr {
        let iid = |iid: &Identifier| match iid {
            Identifier::OfLink => link.iid(),
            Identifier::Short(short) => LinkAddr::Short(*short).iid(),
            Identifier::Random(bits) => bits.to_be_bytes(),
        };
        // Where that context is not defined, any other will do.
        let context = |id: u8| {
            contexts
                .get(id)
                .or_else(|| (0..16).find_map(|id| contexts.get(id)))
        };
        match self {
            Self::Random(bits) => Ipv6Addr::from(*bits),
            Self::LinkLocal(form) => {
                let bits = 0xfe80u128 << 112 | u128::from(u64::from_be_bytes(iid(form)));
                Ipv6Addr::from(bits)
            }
            Self::InContext(id, form) => match context(*id) {
                Some(context) => context.expand(&iid(form)),
                None => Ipv6Addr::LOCALHOST,
            },
            Self::Multicast(flags, group, zeros) => {
                let high = 0xff00u128 << 112 | u128::from(*flags) << 112;
                Ipv6Addr::from(high | u128::from(group >> zeros))
            }
            Self::PrefixMulticast(id, bits) => {
                let Some(context) = context(*id) else {
                    return addr("ff02::1");
                };
                let mut octets = [0xff; 16];
                octets[4..12].copy_from_slice(&context.prefix().octets()[..8]);
                octets[1..3].copy_from_slice(&bits[..2]);
                octets[3] = context.prefix_len();
                octets[12..].copy_from_slice(&bits[2..]);
                Ipv6Addr::from(octets)
            }
            Self::Unspecified => Ipv6Addr::UNSPECIFIED,
        }
    }
}

/// What stands behind an IPv6 header, outermost first.
#[derive(Clone, Debug)]
enum Layer {
    Options {
        destination: bool,
        options: Vec<(u8, Vec<u8>)>,
        zeros: bool,
    },
    Sized {
        mobility: bool,
        units: u8,
        fill: u8,
    },
    Fragment([u8; 7]),
    Ipv6(Fields),
}

#[derive(Clone, Debug)]
struct Fields {
    class: u8,
    label: u32,
    hop_limit: u8,
    src: Recipe,
    dst: Recipe,
}

fn fields() -> impl Strategy<Value = Fields> {
    let class = prop_oneof![Just(0u8), 0u8..4, any::<u8>()];
    let label = prop_oneof![Just(0u32), 0u32..=0xf_ffff];
    let hop_limit = prop_oneof![Just(1u8), Just(64), Just(255), any::<u8>()];
    (class, label, hop_limit, recipe(), recipe()).prop_map(|(class, label, hop_limit, src, dst)| {
        Fields {
            class,
            label,
            hop_limit,
            src,
            dst,
        }
    })
}

fn layer() -> impl Strategy<Value = Layer> {
    let option = (0u8..8, prop::collection::vec(0u8..3, 0..9));
    prop_oneof![
        3 => (any::<bool>(), prop::collection::vec(option, 0..4), any::<bool>())
            .prop_map(|(destination, options, zeros)| Layer::Options { destination, options, zeros }),
        2 => (any::<bool>(), 0u8..40, any::<u8>())
            .prop_map(|(mobility, units, fill)| Layer::Sized { mobility, units, fill }),
        1 => any::<[u8; 7]>().prop_map(Layer::Fragment),
        2 => fields().prop_map(Layer::Ipv6),
    ]
}

#[derive(Clone, Debug)]
enum Upper {
    Udp {
        ports: (u16, u16),
        checksum: u16,
        lie: u16,
    },
    Other(u8),
}

fn upper() -> impl Strategy<Value = Upper> {
    let port = || prop_oneof![any::<u16>(), 0xf000u16..=0xf0ff, 0xf0b0u16..=0xf0bf];
    prop_oneof![
        (
            (port(), port()),
            any::<u16>(),
            prop_oneof![4 => Just(0u16), 1 => 1u16..4]
        )
            .prop_map(|(ports, checksum, lie)| Upper::Udp {
                ports,
                checksum,
                lie
            }),
        any::<u8>().prop_map(Upper::Other),
    ]
}

fn build(
    fields: &Fields,
    layers: &[Layer],
    upper: &Upper,
    payload: &[u8],
    link: LinkPair,
    contexts: &Contexts,
) -> Vec<u8> {
    let (mut bytes, mut kind) = match upper {
        Upper::Udp {
            ports,
            checksum,
            lie,
        } => {
            let len = (8 + payload.len() as u16) ^ lie;
            let head = [ports.0, ports.1, len, *checksum].map(u16::to_be_bytes);
            ([head.as_flattened(), payload].concat(), udp::NEXT_HEADER)
        }
        Upper::Other(kind) => (payload.to_vec(), *kind),
    };
    for layer in layers.iter().rev() {
        let (head, this) = match layer {
            Layer::Options {
                destination,
                options,
                zeros,
            } => {
                let mut body: Vec<u8> = Vec::new();
                for (kind, data) in options {
                    body.push(*kind);
                    if *kind != 0 {
                        body.push(data.len() as u8);
                        body.extend(data);
                    }
                }
                let padding = (8 - (body.len() + 2) % 8) % 8;
                match (padding, zeros) {
                    (0, _) => {}
                    (1, _) | (_, false) => body.extend(vec![0; padding]),
                    (n, true) => {
                        body.extend([1, n as u8 - 2]);
                        body.extend(vec![0; n - 2]);
                    }
                }
                let units = (body.len() + 2) / 8 - 1;
                (
                    [&[kind, units as u8][..], &body].concat(),
                    if *destination { 60 } else { 0 },
                )
            }
            Layer::Sized {
                mobility,
                units,
                fill,
            } => {
                let body = vec![*fill; 8 * usize::from(*units) + 6];
                (
                    [&[kind, *units][..], &body].concat(),
                    if *mobility { 135 } else { 43 },
                )
            }
            Layer::Fragment(body) => ([&[kind][..], body].concat(), 44),
            Layer::Ipv6(fields) => {
                let inner = ip_header(fields, kind, bytes.len(), link, contexts);
                (with_header(&inner, &[]), next_header::IPV6)
            }
        };
        bytes = [head, bytes].concat();
        kind = this;
    }
    with_header(
        &ip_header(fields, kind, bytes.len(), link, contexts),
        &bytes,
    )
}

fn ip_header(
    fields: &Fields,
    next_header: u8,
    len: usize,
    link: LinkPair,
    contexts: &Contexts,
) -> ipv6::Header {
    ipv6::Header {
        traffic_class: TrafficClass(fields.class),
        flow_label: fields.label,
        payload_len: len as u16,
        next_header,
        hop_limit: fields.hop_limit,
        src: fields.src.cook(link.src, contexts),
        dst: fields.dst.cook(link.dst, contexts),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn decompression_undoes_compression(
        fields in fields(),
        layers in prop::collection::vec(layer(), 0..4),
        upper in upper(),
        payload in prop::collection::vec(any::<u8>(), 0..24),
        src in link_addr(),
        dst in link_addr(),
        contexts in any_contexts(),
        cut in 0usize..1000,
    ) {
        let link = LinkPair { src, dst };
        let packet = build(&fields, &layers, &upper, &payload, link, &contexts);
        let (bytes, done) = compressed(&packet, link, &contexts);
        prop_assert!(done.compressed_len <= done.uncompressed_len);
        let (again, undone) = restored(&bytes, link, &contexts).unwrap();
        prop_assert_eq!(&again, &packet);
        prop_assert_eq!(undone.compressed_len, done.compressed_len);
        // Compressing what came out yields the same bytes: the form is canonical.
        prop_assert_eq!(&compressed(&again, link, &contexts).0, &bytes);

        // The start of the packet alone, as a relay holds it, restores to the same bytes.
        let start = &packet[..cut.clamp(ipv6::HEADER_LEN, packet.len())];
        let (bytes, _) = compressed(start, link, &contexts);
        let mut out = [0; 2048];
        let size = Some(packet.len() as u16);
        let undone = decompress(&bytes, link, &contexts, size, &mut out).unwrap();
        let again = [&out[..undone.uncompressed_len], &bytes[undone.compressed_len..]].concat();
        prop_assert_eq!(&again, start);
    }

    #[test]
    fn hostile_frames_are_refused_or_restored(
        mut bytes in prop::collection::vec(any::<u8>(), 0..127),
        iphc: bool,
        nhc in 0usize..120,
        contexts in any_contexts(),
        size in prop::option::of(any::<u16>()),
        room in 0usize..400,
    ) {
        if let Some(first) = bytes.first_mut().filter(|_| iphc) {
            *first = *first & 0x1f | 0x60;
        }
        if let Some(byte) = bytes.get_mut(nhc) {
            *byte |= 0xe0;
        }
        let mut out = vec![0; room];
        if let Ok(done) = decompress(&bytes, LINK, &contexts, size, &mut out) {
            prop_assert!(done.uncompressed_len <= room && done.compressed_len <= bytes.len());
            let (_, rest) = ipv6::Header::parse_start(&out[..done.uncompressed_len]).unwrap();
            prop_assert!(rest.len() + ipv6::HEADER_LEN == done.uncompressed_len);
            // What has been restored can be compressed, to the same packet again.
            let packet = [&out[..done.uncompressed_len], &bytes[done.compressed_len..]].concat();
            let (bytes, _) = compressed(&packet, LINK, &contexts);
            let mut again = [0; 2048];
            let undone = decompress(&bytes, LINK, &contexts, size, &mut again).unwrap();
            let again = [&again[..undone.uncompressed_len], &bytes[undone.compressed_len..]].concat();
            prop_assert_eq!(again, packet);
        }
        complete_udp_checksum(&mut bytes);
        let _ = compress(&bytes, LINK, &contexts, &mut out);
    }
}

#[test]
fn congestion_marks_survive() {
    let mut header = ipv6::Header::parse(&packet(on("fe80::", A), on("fe80::", B), 6, &[]))
        .unwrap()
        .0;
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        header.traffic_class = TrafficClass::new(0x2a, ecn);
        round_trip(&with_header(&header, &[]), LINK, &contexts());
    }
}
