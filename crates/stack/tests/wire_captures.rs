//! The formats against bytes that nobody on the project wrote: plugtest vectors, a capture of
//! two RIOT nodes, and tcpdump's own test captures.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use motet::lowpan::{
    Contexts, HeaderForms, LinkPair, Routing, compress, compress_form, decompress,
};
use motet::wire::ieee802154::{self, FrameType, Header, check_fcs};
use motet::wire::lowpan_dispatch::{Dispatch, classify};
use motet::wire::rpl_option::{self, Rpi};
use motet::wire::{LinkAddr, icmpv6, ipv6, lowpan_frag, ndp, tcp};
use pcap_file::pcap::PcapReader;

/// A file of the shared data, or `None` where it is not there and need not be.
fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let file = root.join("data/captures").join(path);
    if file.exists() {
        return Some(file);
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{} is missing; set MOTET_SHARED", file.display());
    println!("not run: {} is missing; set MOTET_SHARED", file.display());
    None
}

fn frames(path: &str) -> Option<Vec<Vec<u8>>> {
    let mut reader = PcapReader::new(File::open(shared(path)?).unwrap()).unwrap();
    let mut frames = Vec::new();
    // Raw, for some of tcpdump's captures claim a snapshot length of zero.
    while let Some(packet) = reader.next_raw_packet() {
        frames.push(packet.unwrap().data.into_owned());
    }
    Some(frames)
}

fn link(header: &Header) -> LinkPair {
    LinkPair {
        src: header.src.unwrap().addr,
        dst: header.dst.unwrap().addr,
    }
}

/// Decompresses a whole packet, checking that compression leads back to it.
fn packet(payload: &[u8], link: LinkPair) -> Vec<u8> {
    let contexts = Contexts::new();
    let mut out = [0; 1500];
    let done = decompress(payload, link, &contexts, None, &mut out).unwrap();
    let packet = [
        &out[..done.uncompressed_len],
        &payload[done.compressed_len..],
    ]
    .concat();
    let again = compress(&packet, link, &contexts, &mut out).unwrap();
    let frame = [
        &out[..again.compressed_len],
        &packet[again.uncompressed_len..],
    ]
    .concat();
    let mut out = [0; 1500];
    let done = decompress(&frame, link, &contexts, None, &mut out).unwrap();
    assert_eq!(
        [&out[..done.uncompressed_len], &frame[done.compressed_len..]].concat(),
        packet
    );
    packet
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

#[test]
fn plugtest_frames_decompress_to_the_given_packets() {
    let Some(file) = shared("openthread-plugtest-vectors/vectors.json") else {
        return;
    };
    let vectors: serde_json::Value = serde_json::from_reader(File::open(file).unwrap()).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 8);
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let psdu = hex(vector["frame_with_fcs"].as_str().unwrap());
        let (header, payload) = Header::parse(check_fcs(&psdu).unwrap()).unwrap();
        let expected = hex(vector["ipv6"].as_str().unwrap());
        assert_eq!(packet(payload, link(&header)), expected, "{name}");
        let mut again = [0; 127];
        let len = header.emit_frame(payload, &mut again).unwrap();
        assert_eq!(again[..len], psdu, "{name}");
    }
}

/// Fragments of one packet, by offset.
type Pieces = BTreeMap<usize, Vec<u8>>;

#[test]
fn riot_capture_parses_entirely_and_its_tcp_stream_comes_out_whole() {
    let Some(frames) = frames("riot-zep-tcp/tcp-over-6lowpan-wpan.pcap") else {
        return;
    };
    assert_eq!(frames.len(), 56);
    let mut acks = 0;
    let mut packets = Vec::new();
    let mut pieces: BTreeMap<u16, Pieces> = BTreeMap::new();
    for psdu in &frames {
        let (header, payload) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
        if header.frame_type == FrameType::Ack {
            acks += 1;
            continue;
        }
        let mut again = [0; 127];
        let len = header.emit_frame(payload, &mut again).unwrap();
        assert_eq!(again[..len], psdu[..]);
        match classify(payload).unwrap() {
            Dispatch::Fragment => {
                packets.extend(reassemble(&mut pieces, payload, link(&header)));
            }
            _ => packets.push(packet(payload, link(&header))),
        }
    }
    assert!(pieces.is_empty(), "every fragment found its packet");
    assert_eq!(acks, 24);

    let mut streams: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let (mut solicitations, mut echoes) = (0, 0);
    for packet in &packets {
        let (ip, payload) = ipv6::Header::parse(packet).unwrap();
        if ip.next_header == icmpv6::NEXT_HEADER {
            assert!(icmpv6::is_checksum_valid(&ip.src, &ip.dst, payload));
            match icmpv6::Message::parse(payload).unwrap() {
                icmpv6::Message::RouterSolicitation { options } => {
                    let addr = ndp::NdpOption::SourceLinkAddr(LinkAddr::from_iid(iid(ip.src)));
                    assert_eq!(options.iter().collect::<Vec<_>>(), [addr]);
                    solicitations += 1;
                }
                icmpv6::Message::EchoRequest(_) | icmpv6::Message::EchoReply(_) => echoes += 1,
                other => panic!("unexpected {other:?}"),
            }
        } else {
            assert!(tcp::is_checksum_valid(&ip.src, &ip.dst, payload));
            collect(&mut streams, payload);
        }
    }
    assert_eq!((solicitations, echoes), (8, 4));
    let text = b"hello-from-riot-over-6lowpan";
    let uplink = &streams[&45434];
    assert_eq!(uplink.len(), 628);
    assert!(uplink.starts_with(&[&text[..], text].concat()));
    assert!(
        uplink[2 * text.len()..].iter().all(|byte| *byte == 0),
        "600 bytes, zero-filled"
    );
    assert!(streams[&8080].is_empty());
}

fn iid(addr: Ipv6Addr) -> [u8; 8] {
    addr.octets()[8..].try_into().unwrap()
}

/// Takes a fragment in; returns the packet if it was the last one missing.
fn reassemble(
    pieces: &mut BTreeMap<u16, Pieces>,
    payload: &[u8],
    link: LinkPair,
) -> Option<Vec<u8>> {
    let (fragment, body) = lowpan_frag::Header::parse(payload).unwrap();
    let mut out = [0; 1500];
    let size = fragment.datagram_size;
    let body = match fragment.is_first() {
        true => {
            let done = decompress(body, link, &Contexts::new(), Some(size), &mut out).unwrap();
            [&out[..done.uncompressed_len], &body[done.compressed_len..]].concat()
        }
        false => body.to_vec(),
    };
    let held = pieces.entry(fragment.datagram_tag).or_default();
    held.insert(fragment.offset_bytes(), body);
    let mut whole = Vec::new();
    for (offset, piece) in held {
        if *offset == whole.len() {
            whole.extend(&*piece);
        }
    }
    if whole.len() < usize::from(size) {
        return None;
    }
    assert_eq!(whole.len(), usize::from(size));
    pieces.remove(&fragment.datagram_tag);
    Some(whole)
}

/// Puts a segment's bytes where they belong in the stream from its source port.
fn collect(streams: &mut BTreeMap<u16, Vec<u8>>, segment: &[u8]) {
    let (header, payload) = tcp::Header::parse(segment).unwrap();
    let mut again = [0; tcp::HEADER_LEN_MAX];
    let len = header.emit(&mut again).unwrap();
    again[16..18].copy_from_slice(&segment[16..18]);
    assert_eq!(again[..len], segment[..segment.len() - payload.len()]);
    // Initial sequence numbers, in four bytes before the stream.
    let stream = streams.entry(header.src_port).or_default();
    if header.flags.contains(tcp::Flags::SYN) {
        assert_eq!(header.options.mss, Some(1220));
        *stream = header.seq.to_be_bytes().to_vec();
        return;
    }
    let isn = u32::from_be_bytes(stream[..4].try_into().unwrap());
    let at = 4 + header.seq.wrapping_sub(isn.wrapping_add(1)) as usize;
    if header.flags.contains(tcp::Flags::FIN) {
        assert_eq!(
            at + payload.len(),
            stream.len(),
            "FIN stands at the stream's end"
        );
        stream.drain(..4);
    } else if !payload.is_empty() {
        assert_eq!(at, stream.len(), "in order, once");
        stream.extend(payload);
    }
}

#[test]
fn frames_of_tcpdump_are_refused_each_with_its_reason() {
    use ieee802154::ParseError::{InformationElements, Version2015};
    // All four are of the 2015 version; the beacons hold information elements, too.
    let cases = [
        ("802_15_4-data.pcap", Version2015),
        ("802_15_4-oobr-2.pcap", Version2015),
        ("802_15_4_beacon.pcap", InformationElements),
        ("802_15_4-oobr-1.pcap", InformationElements),
    ];
    for (name, reason) in cases {
        let Some(frames) = frames(&format!("tcpdump/{name}")) else {
            return;
        };
        for frame in &frames {
            assert_eq!(
                Header::parse(&frame[..frame.len() - 2]),
                Err(reason),
                "{name}"
            );
            for cut in 0..frame.len() {
                let _ = Header::parse(&frame[..cut]);
            }
        }
    }
}

#[test]
fn tcp_options_of_linux_and_of_accurate_ecn() {
    let Some(handshake) = frames("tcpdump/tcp-handshake-nano.pcap") else {
        return;
    };
    // Linux cooked capture, IPv4.
    for (frame, syn) in handshake.iter().zip([true, true, false]) {
        let segment = &frame[16 + 20..];
        let (header, payload) = tcp::Header::parse(segment).unwrap();
        assert_eq!(header.flags.contains(tcp::Flags::SYN), syn);
        assert_eq!(header.options.sack_permitted, syn);
        assert!(payload.is_empty() && header.options.timestamps.is_some());
    }
    let (syn, _) = tcp::Header::parse(&handshake[0][36..]).unwrap();
    assert_eq!(
        (syn.options.mss, syn.options.window_scale),
        (Some(1360), Some(7))
    );
    let mut again = [0; tcp::HEADER_LEN_MAX];
    let len = syn.emit(&mut again).unwrap();
    again[16..18].copy_from_slice(&handshake[0][52..54]);
    assert_eq!(
        again[..len],
        handshake[0][36..],
        "a SYN of Linux, byte for byte"
    );

    let frames = frames("tcpdump/accecn_handshake.pcap").unwrap();
    // Ethernet, IPv4; the second and third segment hold an AccECN option, which is skipped.
    let flags = |frame: &[u8]| tcp::Header::parse(&frame[34..]).unwrap().0.flags;
    assert!(flags(&frames[0]).contains(tcp::Flags::AE | tcp::Flags::CWR | tcp::Flags::ECE));
    assert!(!flags(&frames[1]).contains(tcp::Flags::AE));
    for frame in &frames {
        let (header, _) = tcp::Header::parse(&frame[34..]).unwrap();
        assert!(header.options.timestamps.is_some());
    }
}

#[test]
fn rpl_messages_are_icmpv6_of_another_kind() {
    for name in [
        "rpl-14-dao",
        "rpl-19-pickdag",
        "rpl-26-senddaoack",
        "rpl-dao-oobr",
    ] {
        let Some(frames) = frames(&format!("tcpdump/{name}.pcap")) else {
            return;
        };
        for frame in &frames {
            // Ethernet.
            let (ip, payload) = ipv6::Header::parse(&frame[14..]).unwrap();
            assert_eq!(ip.next_header, icmpv6::NEXT_HEADER);
            let message = icmpv6::Message::parse(payload).unwrap();
            let icmpv6::Message::Other {
                kind: 155, body, ..
            } = message
            else {
                panic!("{name}: {message:?}")
            };
            assert_eq!(body.len() + 4, payload.len());
        }
    }
}

/// Messages of a root that nobody on the project wrote, as they would cross a mesh: beside each goes
/// RPL packet information, in both forms, and it comes back byte for byte.
#[test]
fn rpl_messages_cross_a_mesh_in_both_forms() {
    let link = LinkPair {
        src: LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, 1]),
        dst: LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, 2]),
    };
    let rpi = Some(Rpi {
        sender_rank: 0x0180,
        ..Rpi::default()
    });
    for name in [
        "rpl-14-dao",
        "rpl-19-pickdag",
        "rpl-26-senddaoack",
        "rpl-dao-oobr",
    ] {
        let Some(frames) = frames(&format!("tcpdump/{name}.pcap")) else {
            return;
        };
        for frame in &frames {
            // Ethernet.
            let packet = &frame[14..];
            let (ip, _) = ipv6::Header::parse(packet).unwrap();
            for is_compressed in [false, true] {
                let mut contexts = Contexts::new();
                contexts.set_routing(Some(Routing {
                    root: ip.dst,
                    is_compressed,
                    option_type: rpl_option::TYPE_6553,
                }));
                let mut out = [0; 2048];
                let forms = HeaderForms {
                    rpi,
                    ..HeaderForms::default()
                };
                let done = compress_form(packet, forms, link, &contexts, &mut out).unwrap();
                let mut payload = out[..done.compressed_len].to_vec();
                payload.extend(&packet[done.uncompressed_len..]);
                assert_eq!(payload[0] == 0xf1, is_compressed, "{name}");
                let done = decompress(&payload, link, &contexts, None, &mut out).unwrap();
                let mut again = out[..done.uncompressed_len].to_vec();
                again.extend(&payload[done.compressed_len..]);
                assert_eq!((&again[..], done.rpi), (packet, rpi), "{name}");
            }
        }
    }
}
