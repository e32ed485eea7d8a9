//! What only frames made here can show: contexts, elided checksums, fragments lost and doubled,
//! several hops, messages that no capture at hand holds.

use std::net::Ipv6Addr;

use motet::lowpan::{Contexts, LinkPair, compress};
use motet::wire::LinkAddr;
use motet::wire::icmpv6::{self, Message, RouterAdvertisement};
use motet::wire::ieee802154::{FrameType, Header as MacHeader};
use motet::wire::ipv6::Header as Ipv6Header;
use motet::wire::lowpan_frag::Header as FragmentHeader;
use motet::wire::ndp::{LowpanContext, NdpOption, NdpOptions};
use motet::wire::tcp::{self, Flags};
use motet::wire::udp;

use super::super::capture::{LinkType, Record};
use super::super::model::{Frame, Status, Value};
use super::super::{Context, Decoder};
use super::{field, with_fcs};

pub(super) const PAN: u16 = 0x4d54;
pub(super) const A: LinkAddr = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1]);
pub(super) const B: LinkAddr = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]);
pub(super) const C: LinkAddr = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3]);

pub(super) fn prefix() -> Ipv6Addr {
    "fd6d:6f74:6574:1::".parse().expect("an address")
}

/// The address that a node makes of a prefix.
pub(super) fn address(prefix: Ipv6Addr, link: LinkAddr) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(prefix) | u128::from(u64::from_be_bytes(link.iid())))
}

pub(super) fn link_local(link: LinkAddr) -> Ipv6Addr {
    address("fe80::".parse().expect("an address"), link)
}

pub(super) fn packet(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ipv6Header {
        traffic_class: Default::default(),
        flow_label: 0,
        payload_len: payload.len() as u16,
        next_header,
        hop_limit: 64,
        src,
        dst,
    };
    let mut out = vec![0; 40];
    header.emit(&mut out).expect("room");
    [out, payload.to_vec()].concat()
}

fn segment(src: Ipv6Addr, dst: Ipv6Addr, header: tcp::Header, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; header.header_len()];
    header.emit(&mut out).expect("room");
    out.extend_from_slice(payload);
    tcp::fill_checksum(&src, &dst, &mut out);
    packet(src, dst, tcp::NEXT_HEADER, &out)
}

pub(super) fn datagram(src: Ipv6Addr, dst: Ipv6Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; udp::HEADER_LEN];
    udp::Header {
        src_port: 0xf0b1,
        dst_port: port,
    }
    .emit(payload.len(), &mut out)
    .expect("room");
    out.extend_from_slice(payload);
    udp::fill_checksum(&src, &dst, &mut out);
    packet(src, dst, udp::NEXT_HEADER, &out)
}

pub(super) fn message(src: Ipv6Addr, dst: Ipv6Addr, message: &Message<'_>) -> Vec<u8> {
    let mut out = vec![0; 512];
    let len = message.emit(&mut out).expect("room");
    out.truncate(len);
    icmpv6::fill_checksum(&src, &dst, &mut out);
    packet(src, dst, icmpv6::NEXT_HEADER, &out)
}

/// The bytes behind the MAC header: IPHC, and the length of what it compressed.
pub(super) fn compressed(packet: &[u8], link: LinkPair, contexts: &Contexts) -> (Vec<u8>, usize) {
    let mut out = vec![0; packet.len()];
    let done = compress(packet, link, contexts, &mut out).expect("room");
    out.truncate(done.compressed_len);
    (out, done.uncompressed_len)
}

/// A network on the air, and a decoder that listens.
pub(super) struct Air {
    pub(super) decoder: Decoder,
    pub(super) contexts: Contexts,
    sequence: u8,
    now_ns: u64,
}

impl Air {
    pub(super) fn new(given: &[Context]) -> Self {
        let mut contexts = Contexts::new();
        contexts.set(0, prefix(), 64, true);
        Self {
            decoder: Decoder::new(given),
            contexts,
            sequence: 0,
            now_ns: 0,
        }
    }

    pub(super) fn hear(&mut self, psdu: Vec<u8>) -> Frame {
        self.now_ns += 4_000_000;
        self.decoder.decode(&Record {
            epoch_ns: self.now_ns,
            link_type: LinkType::IEEE802154,
            original_len: psdu.len() as u32,
            data: psdu,
        })
    }

    /// A data frame with the next sequence number.
    pub(super) fn frame(&mut self, src: LinkAddr, dst: LinkAddr, payload: &[u8]) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut out = vec![0; 127];
        let header = MacHeader::data(PAN, dst, src, self.sequence);
        let len = header
            .emit_frame(payload, &mut out)
            .expect("a frame's worth");
        out.truncate(len);
        out
    }

    /// Sends a packet in one frame.
    pub(super) fn send(&mut self, src: LinkAddr, dst: LinkAddr, packet: &[u8]) -> Frame {
        let (mut payload, taken) = compressed(packet, LinkPair { src, dst }, &self.contexts);
        payload.extend_from_slice(&packet[taken..]);
        let psdu = self.frame(src, dst, &payload);
        self.hear(psdu)
    }

    /// The frames of a packet in fragments.
    fn fragments(&mut self, src: LinkAddr, dst: LinkAddr, tag: u16, packet: &[u8]) -> Vec<Vec<u8>> {
        let (compressed, taken) = compressed(packet, LinkPair { src, dst }, &self.contexts);
        let mut header = FragmentHeader {
            datagram_size: packet.len() as u16,
            datagram_tag: tag,
            datagram_offset: None,
        };
        let with_header = |header: &FragmentHeader, parts: &[&[u8]]| {
            let mut out = vec![0; header.header_len()];
            header.emit(&mut out).expect("room");
            [&out[..], &parts.concat()].concat()
        };
        let first_end = (taken + 32).next_multiple_of(8);
        let mut payloads = vec![with_header(
            &header,
            &[&compressed, &packet[taken..first_end]],
        )];
        for (index, piece) in packet[first_end..].chunks(64).enumerate() {
            header.datagram_offset = Some(((first_end + index * 64) / 8) as u8);
            payloads.push(with_header(&header, &[piece]));
        }
        payloads
            .iter()
            .map(|payload| self.frame(src, dst, payload))
            .collect()
    }

    fn advertise(&mut self) -> Frame {
        self.advertise_option(NdpOption::Context(LowpanContext {
            id: 0,
            compress: true,
            prefix_len: 64,
            lifetime_min: 60,
            prefix: prefix(),
        }))
    }

    fn advertise_option(&mut self, option: NdpOption<'_>) -> Frame {
        let mut options = [0; 64];
        let mut writer = motet::wire::cursor::Writer::new(&mut options);
        option.emit(&mut writer).expect("room");
        let len = writer.written();
        let advertisement = Message::RouterAdvertisement(RouterAdvertisement {
            hop_limit: 64,
            flags: 0,
            router_lifetime_s: 1_800,
            reachable_ms: 0,
            retransmit_ms: 0,
            options: NdpOptions::parse(&options[..len]).expect("one option"),
        });
        let all_nodes = "ff02::1".parse().expect("an address");
        let packet = message(link_local(B), all_nodes, &advertisement);
        self.send(B, LinkAddr::BROADCAST, &packet)
    }
}

pub(super) fn last<'a>(frame: &'a Frame, layer: &str, key: &str) -> &'a Value {
    let layer = frame
        .layers
        .iter()
        .rev()
        .find(|found| found.name == layer)
        .expect("the layer is there");
    &layer
        .fields
        .iter()
        .find(|found| found.key == key)
        .expect("the field is there")
        .value
}

#[test]
fn an_unknown_next_header_leaves_the_addresses_in_front_of_it() {
    let mut air = Air::new(&[]);
    // Link-local addresses from the frame, hop limit 64, then a header of no known kind.
    let psdu = air.frame(A, B, &[0x7e, 0x33, 0x80, 1, 2, 3]);
    let frame = air.hear(psdu);
    let Status::Undecoded(problem) = &frame.status else {
        panic!("{:?}", frame.status)
    };
    assert_eq!(problem.layer, "iphc");
    for (key, end) in [("src", A), ("dst", B)] {
        let expected = address("fe80::".parse().unwrap(), end);
        assert_eq!(last(&frame, "ipv6", key), &Value::from(expected));
    }
    assert_eq!(last(&frame, "ipv6", "hop_limit"), &Value::from(64_u8));
}

#[test]
fn contexts_are_learned_from_router_advertisements() {
    let (src, dst) = (address(prefix(), A), address(prefix(), B));
    let packet = datagram(src, dst, 9, b"ten bytes.");
    let mut air = Air::new(&[]);
    let blind = air.send(A, B, &packet);
    let Status::Undecoded(problem) = &blind.status else {
        panic!("{:?}", blind.status)
    };
    assert_eq!(
        problem.reason,
        "6LoWPAN context unknown; give it with --context 0=PREFIX/LEN"
    );
    assert_eq!(air.advertise().status, Status::Decoded);
    let seen = air.send(A, B, &packet);
    assert_eq!(seen.status, Status::Decoded);
    assert_eq!(last(&seen, "ipv6", "packet"), &Value::Bytes(packet.clone()));
    // The same knowledge from the command line.
    let mut told = Air::new(&[Context {
        id: 0,
        prefix: prefix(),
        len: 64,
    }]);
    assert_eq!(
        last(&told.send(A, B, &packet), "ipv6", "packet"),
        &Value::Bytes(packet)
    );
}

#[test]
fn the_offer_to_restore_tcp_headers_is_named() {
    let router = [2, 0, 0, 0xff, 0xfe, 0, 0, 9];
    let frame = Air::new(&[]).advertise_option(NdpOption::RestoresTcp { router });
    assert_eq!(frame.status, Status::Decoded);
    let shown = format!("{:?}", last(&frame, "icmpv6", "options"));
    assert!(shown.contains("restores_tcp"), "{shown}");
    assert!(shown.contains("02:00:00:ff:fe:00:00:09"), "{shown}");
}

#[test]
fn an_elided_udp_checksum_is_restored() {
    let (src, dst) = (link_local(A), link_local(B));
    let packet = datagram(src, dst, 0xf0b2, b"short");
    let mut air = Air::new(&[]);
    // IPHC, everything elided, NHC: UDP with both ports in four bits and no checksum.
    let payload = [&[0x7e, 0x33, 0b1111_0111, 0x12][..], b"short"].concat();
    let psdu = air.frame(A, B, &payload);
    let frame = air.hear(psdu);
    assert_eq!(last(&frame, "ipv6", "packet"), &Value::Bytes(packet));
    assert_eq!(last(&frame, "udp", "checksum_ok"), &Value::Bool(true));
    assert_eq!(
        last(&frame, "nhc", "checksum"),
        &Value::Text("elided".into())
    );
}

fn data(seq: u32) -> tcp::Header {
    tcp::Header {
        src_port: 4_000,
        dst_port: 7,
        seq,
        ack: 500,
        flags: Flags::ACK | Flags::PSH,
        window: 900,
        ..Default::default()
    }
}

#[test]
fn fragments_come_together_whatever_their_order() {
    let (src, dst) = (address(prefix(), A), address(prefix(), B));
    let body: Vec<u8> = (0..380_u16).map(|value| value as u8).collect();
    let packet = segment(src, dst, data(1), &body);
    for order in [
        [0, 1, 2, 3, 4, 5, 6],
        [6, 5, 4, 3, 2, 1, 0],
        [3, 0, 6, 1, 5, 2, 4],
    ] {
        let mut air = Air::new(&[Context {
            id: 0,
            prefix: prefix(),
            len: 64,
        }]);
        let fragments = air.fragments(A, B, 9, &packet);
        assert_eq!(fragments.len(), 7);
        let heard: Vec<Frame> = order
            .iter()
            .map(|index| air.hear(fragments[*index].clone()))
            .collect();
        let (complete, before) = heard.split_last().expect("seven");
        assert!(
            before.iter().all(|frame| frame.status == Status::Fragment),
            "{order:?}"
        );
        assert_eq!(complete.status, Status::Decoded, "{order:?}");
        assert_eq!(
            last(complete, "ipv6", "packet"),
            &Value::Bytes(packet.clone()),
            "{order:?}"
        );
        assert_eq!(
            last(complete, "tcp", "checksum_ok"),
            &Value::Bool(true),
            "{order:?}"
        );
    }
}

#[test]
fn a_lost_fragment_leaves_the_datagram_open_and_a_doubled_one_changes_nothing() {
    let (src, dst) = (address(prefix(), A), address(prefix(), B));
    let packet = segment(src, dst, data(1), &[7; 200]);
    let mut air = Air::new(&[Context {
        id: 0,
        prefix: prefix(),
        len: 64,
    }]);
    let fragments = air.fragments(A, B, 9, &packet);
    for fragment in [0, 0, 2, 2, 3] {
        let frame = air.hear(fragments[fragment].clone());
        assert_eq!(frame.status, Status::Fragment);
    }
    assert_eq!(air.decoder.tally.link_repeats, 2);
    assert_eq!(air.decoder.reassembly.pending(), 1);
    assert_eq!(air.hear(fragments[1].clone()).status, Status::Decoded);
    assert_eq!(air.decoder.reassembly.pending(), 0);
    // Late copies, with sequence numbers of their own, do not start a new datagram.
    let fragments = air.fragments(A, B, 9, &packet);
    assert_eq!(air.hear(fragments[2].clone()).status, Status::Fragment);
    assert_eq!(air.decoder.reassembly.pending(), 0);
}

#[test]
fn a_segment_on_three_hops_is_one_segment() {
    let (src, dst) = (address(prefix(), A), address(prefix(), C));
    let mut air = Air::new(&[Context {
        id: 0,
        prefix: prefix(),
        len: 64,
    }]);
    let first = segment(src, dst, data(1_000), b"hello");
    let second = segment(src, dst, data(1_005), b"world");
    for (packet, expected) in [
        (&first, Value::Null),
        (&second, Value::Null),
        (&first, "retransmission".into()),
    ] {
        for (from, to) in [(A, B), (B, C)] {
            let frame = air.send(from, to, packet);
            assert_eq!(last(&frame, "tcp", "relation"), &expected);
        }
    }
    let conversation = air.decoder.conversations.iter().next().expect("one");
    let [there, back] = &conversation.directions;
    assert_eq!(
        (
            there.bytes(),
            there.segments(),
            there.retransmissions(),
            there.hops()
        ),
        (10, 3, 1, 2)
    );
    assert_eq!((back.bytes(), back.segments()), (0, 0));
}

#[test]
fn a_damaged_segment_is_malformed() {
    let (src, dst) = (link_local(A), link_local(B));
    let mut packet = segment(src, dst, data(1), b"hello");
    *packet.last_mut().expect("bytes") ^= 1;
    let frame = Air::new(&[]).send(A, B, &packet);
    let Status::Malformed(problem) = frame.status else {
        panic!("{:?}", frame.status)
    };
    assert_eq!(problem.reason, "TCP checksum wrong");
}

#[test]
fn coap_is_read() {
    let (src, dst) = (link_local(A), link_local(B));
    // CON GET, id 0x1234, token aa bb, Uri-Path "sensors", "temp".
    let request = [
        &[0x42, 0x01, 0x12, 0x34, 0xaa, 0xbb, 0xb7][..],
        b"sensors",
        &[0x04],
        b"temp",
    ]
    .concat();
    let frame = Air::new(&[]).send(A, B, &datagram(src, dst, 5_683, &request));
    assert_eq!(frame.status, Status::Decoded);
    assert!(
        frame.summary.ends_with("CoAP CON GET /sensors/temp"),
        "{}",
        frame.summary
    );
    assert_eq!(field(&frame, "coap", "type"), &Value::Text("CON".into()));
    assert_eq!(field(&frame, "coap", "message_id"), &Value::Hex(0x1234, 4));
    assert_eq!(field(&frame, "coap", "token_len"), &Value::Number(2));
    // An answer with a payload; then a message whose option reaches beyond it.
    let answer = [&[0x62, 0x45, 0x12, 0x34, 0xaa, 0xbb, 0xff][..], b"21.5"].concat();
    let frame = Air::new(&[]).send(B, A, &datagram(dst, src, 5_683, &answer));
    assert_eq!(field(&frame, "coap", "code"), &Value::Text("2.05".into()));
    assert_eq!(
        field(&frame, "payload", "data"),
        &Value::Bytes(b"21.5".to_vec())
    );
    let frame = Air::new(&[]).send(A, B, &datagram(src, dst, 5_683, &request[..10]));
    assert!(
        matches!(frame.status, Status::Malformed(_)),
        "{:?}",
        frame.status
    );
}

#[test]
fn rpl_dio_is_read() {
    let dodag: Ipv6Addr = "fd00::1".parse().expect("an address");
    let mut body = vec![0, 240, 1, 0, 0x88 | 0x10, 3, 0, 0];
    body.extend(dodag.octets());
    // DODAG configuration, RFC 6550 §6.7.6.
    body.extend([4, 14, 0, 8, 12, 10, 7, 0, 1, 0, 0, 1, 0, 30, 0, 60]);
    let dio = Message::Other {
        kind: 155,
        code: 1,
        body: &body,
    };
    let all_rpl_nodes = "ff02::1a".parse().expect("an address");
    let packet = message(link_local(A), all_rpl_nodes, &dio);
    let frame = Air::new(&[]).send(A, LinkAddr::BROADCAST, &packet);
    assert_eq!(frame.status, Status::Decoded);
    assert!(frame.summary.ends_with("RPL DIO"), "{}", frame.summary);
    for (key, expected) in [
        ("instance", Value::Number(0)),
        ("version", Value::Number(240)),
        ("rank", Value::Number(256)),
        ("grounded", Value::Bool(true)),
        ("mode", "storing with multicast".into()),
        ("dtsn", Value::Number(3)),
        ("dodag", dodag.into()),
    ] {
        assert_eq!(field(&frame, "rpl", key), &expected, "{key}");
    }
    let cut = Message::Other {
        kind: 155,
        code: 1,
        body: &body[..30],
    };
    let packet = message(link_local(A), all_rpl_nodes, &cut);
    let frame = Air::new(&[]).send(A, LinkAddr::BROADCAST, &packet);
    let Status::Malformed(problem) = frame.status else {
        panic!("{:?}", frame.status)
    };
    assert_eq!(problem.reason, "option 4 runs beyond the message");
}

#[test]
fn an_error_names_the_packet_it_is_about() {
    let (src, dst) = (link_local(A), link_local(B));
    let invoking = segment(dst, src, data(1), b"");
    let error = Message::DestinationUnreachable {
        code: 4,
        invoking: &invoking,
    };
    let frame = Air::new(&[]).send(A, B, &message(src, dst, &error));
    assert!(
        frame
            .summary
            .ends_with("ICMPv6 destination unreachable: port"),
        "{}",
        frame.summary
    );
    assert_eq!(
        field(&frame, "icmpv6", "about"),
        &Value::Text(format!("{dst} → {src} TCP 4000 → 7"))
    );
}

#[test]
fn frames_that_nobody_reads_say_why() {
    let tail = [&[1][..], &[0; 20]].concat();
    let kind = "802.15.4 frame type reserved or not supported";
    let cases = [
        (0x8849_u16, false, "802.15.4 security is not supported"),
        (
            0x9a41,
            false,
            "802.15.4 information elements are not supported",
        ),
        (
            0x9941,
            false,
            "802.15.4 sequence number suppression is not supported",
        ),
        (0x8844, false, kind),
        (0x8846, false, kind),
        (0x8847, false, kind),
        (0xb841, true, "802.15.4 frame version reserved"),
        (0x8441, true, "802.15.4 addressing mode reserved"),
        // Of 2015, and multipurpose.
        (0xa441, true, "802.15.4 addressing mode reserved"),
        (0x0045, true, "802.15.4 addressing mode reserved"),
        (0x100d, true, "802.15.4 frame version reserved"),
    ];
    for (control, malformed, reason) in cases {
        let psdu = with_fcs(&[&control.to_le_bytes()[..], &tail].concat());
        let frame = Air::new(&[]).hear(psdu);
        let problem = frame
            .status
            .problem()
            .unwrap_or_else(|| panic!("{control:04x}"));
        assert_eq!(problem.reason, reason, "{control:04x}");
        assert_eq!(
            matches!(frame.status, Status::Malformed(_)),
            malformed,
            "{control:04x}"
        );
        assert_eq!(problem.layer, "mac");
    }
}

#[test]
fn beacons_and_commands_are_read() {
    let mut header = MacHeader::data(PAN, LinkAddr::BROADCAST, LinkAddr::Short(1), 7);
    header.frame_type = FrameType::Command;
    let mut out = vec![0; 127];
    let len = header.emit_frame(&[7], &mut out).expect("room");
    let frame = Air::new(&[]).hear(out[..len].to_vec());
    assert!(
        frame.summary.ends_with("802.15.4 beacon request"),
        "{}",
        frame.summary
    );

    header.frame_type = FrameType::Beacon;
    header.dst = None;
    header.pan_id_compression = false;
    let mut out = vec![0; 127];
    let len = header
        .emit_frame(&[0xff, 0xcf, 0, 0, b'x'], &mut out)
        .expect("room");
    let frame = Air::new(&[]).hear(out[..len].to_vec());
    assert_eq!(field(&frame, "beacon", "beacon_order"), &Value::Number(15));
    assert_eq!(
        field(&frame, "beacon", "pan_coordinator"),
        &Value::Bool(true)
    );
    assert_eq!(
        field(&frame, "payload", "data"),
        &Value::Bytes(b"x".to_vec())
    );
}

/// A ZEP datagram in a bare IPv6 packet.
fn over_zep(zep: &[u8]) -> Frame {
    let packet = datagram(link_local(A), link_local(B), 17_754, zep);
    Decoder::new(&[]).decode(&Record {
        epoch_ns: 0,
        link_type: LinkType(229),
        original_len: packet.len() as u32,
        data: packet,
    })
}

#[test]
fn zep_of_either_version_is_opened() {
    let ack = [0x02, 0x00, 0x19, 0xf8, 0x38];
    // As a RIOT node sent it.
    let v2 = [
        &[b'E', b'X', 2, 1, 26, 0x75, 0x80, 1, 0xff][..],
        &[0xee, 0xaa, 0xba, 0x79, 0x00, 0xc1, 0x7e, 0x40],
        &[0; 14],
        &[5],
        &ack,
    ]
    .concat();
    let v1 = [
        &[b'E', b'X', 1, 26, 0x75, 0x80, 1, 0xff][..],
        &[0; 7],
        &[5],
        &ack,
    ]
    .concat();
    for (name, zep) in [("version 2", &v2), ("version 1", &v1)] {
        let frame = over_zep(zep);
        assert_eq!(frame.status, Status::Decoded, "{name}");
        assert_eq!(
            field(&frame, "zep", "channel"),
            &Value::Number(26),
            "{name}"
        );
        assert_eq!(field(&frame, "mac", "seq"), &Value::Number(0x19), "{name}");
        assert_eq!(field(&frame, "mac", "fcs_ok"), &Value::Bool(true), "{name}");
    }
    // Mode 0: measurements of the receiver where the FCS was, and its word on it in the last bit.
    let mut measured = v2.clone();
    measured[7] = 0;
    for (quality, is_right) in [(0xeb, true), (0x6b, false)] {
        measured[36] = quality;
        let frame = over_zep(&measured);
        assert_eq!(frame.status == Status::Decoded, is_right);
        assert_eq!(field(&frame, "mac", "fcs_ok"), &Value::Bool(is_right));
    }

    assert!(
        over_zep(&[b'E', b'X', 2, 2, 0, 0, 0, 9])
            .summary
            .ends_with("ZEP acknowledgement")
    );
    assert!(
        over_zep(&[&[b'E', b'X', 2, 255][..], &[0; 28]].concat())
            .summary
            .ends_with("ZEP hello")
    );
    for (zep, reason) in [
        (&v2[..20], "ZEP header truncated"),
        (
            &v2[..35],
            "ZEP length 5 exceeds the 3 bytes in the datagram",
        ),
        (b"EZ", "not a ZEP datagram"),
        (b"EX\x03", "ZEP version 3 is unknown"),
        (b"EX\x02\x07", "ZEP type 7 is unknown"),
    ] {
        let frame = over_zep(zep);
        let problem = frame.status.problem().unwrap_or_else(|| panic!("{reason}"));
        assert_eq!(problem.reason, reason);
    }
}

#[test]
fn packets_within_packets_have_a_bottom() {
    let (src, dst) = (link_local(A), link_local(B));
    let mut nested = datagram(src, dst, 9, b"core");
    for _ in 0..3 {
        nested = packet(src, dst, 41, &nested);
    }
    let frame = Air::new(&[]).send(A, B, &nested[..]);
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(
        frame
            .layers
            .iter()
            .filter(|layer| layer.name == "ipv6")
            .count(),
        4
    );
    let deeper = packet(src, dst, 41, &nested);
    let frame = Decoder::new(&[]).decode(&Record {
        epoch_ns: 0,
        link_type: LinkType(229),
        original_len: deeper.len() as u32,
        data: deeper,
    });
    let Status::Undecoded(problem) = frame.status else {
        panic!("{:?}", frame.status)
    };
    assert_eq!(problem.reason, "packets nested too deeply");
}
