//! Thread's messages that captures at hand do not hold: datasets, key rotation, discovery, damage.

use std::net::Ipv6Addr;

use motet::thread::mle::{Builder, Ends, Numbers, command, tlv_type};
use motet::wire::udp;

use super::super::Look;
use super::super::model::{Frame, Status, Value};
use super::mesh::{A, Air, B, PAN, last, link_local, packet};
use super::secured::{KEY, SHORT, air, eui64, is_open, sealed};

/// A message from A to B.
fn message(air: &mut Air, sequence: u32, command: u8, tlvs: &[(u8, &[u8])]) -> Frame {
    let ends = Ends {
        src: link_local(A),
        dst: link_local(B),
    };
    let mut out = [0; 120];
    let mut builder = Builder::new(command, &mut out);
    for (kind, value) in tlvs {
        builder.tlv(*kind, &[value]);
    }
    let numbers = Numbers {
        sequence,
        counter: 7,
    };
    let len = builder.seal(&KEY, &ends, numbers).expect("room");
    carry(air, &out[..len])
}

/// The payload of a datagram from A to B.
fn carry(air: &mut Air, payload: &[u8]) -> Frame {
    air.send(
        A,
        B,
        &datagram(link_local(A), link_local(B), 19_788, payload),
    )
}

fn datagram(src: Ipv6Addr, dst: Ipv6Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; udp::HEADER_LEN];
    let ports = udp::Header {
        src_port: port,
        dst_port: port,
    };
    ports.emit(payload.len(), &mut out).expect("room");
    out.extend_from_slice(payload);
    udp::fill_checksum(&src, &dst, &mut out);
    packet(src, dst, udp::NEXT_HEADER, &out)
}

/// All that is shown of a frame, to people and to programs, without blanks.
fn shown(frame: &Frame) -> String {
    let mut text = Vec::new();
    Look::PLAIN
        .frame(&mut text, frame)
        .expect("memory takes it");
    serde_json::to_writer(&mut text, frame).expect("memory takes it");
    let mut text = String::from_utf8(text).expect("UTF-8");
    text.retain(|letter| !letter.is_whitespace());
    text
}

fn context(air: &Air, id: u8) -> Option<String> {
    let context = air.decoder.contexts.get(id)?;
    Some(format!("{}/{}", context.prefix(), context.prefix_len()))
}

#[test]
fn a_message_tells_whose_a_short_address_is_and_the_key_sequence() {
    let source = (tlv_type::SOURCE_ADDRESS, &SHORT.to_be_bytes()[..]);
    let mut air = air();
    // So far ahead that the index alone does not tell it.
    let sequence = 70_000;
    let frame = message(&mut air, sequence, command::ADVERTISEMENT, &[source]);
    assert_eq!(frame.status, Status::Decoded);
    assert!(
        frame.summary.ends_with("MLE advertisement"),
        "{}",
        frame.summary
    );
    assert_eq!(last(&frame, "mle", "key_sequence"), &sequence.into());
    assert_eq!(air.decoder.addresses.of_short(PAN, SHORT), Some(eui64(A)));
    assert!(is_open(&air.hear(sealed(PAN, A, sequence, 1))));
    assert!(is_open(&air.hear(sealed(PAN, A, sequence + 1, 2))));
}

#[test]
fn a_child_id_response_gives_its_receiver_an_address() {
    let given = [(tlv_type::ADDRESS16, &SHORT.to_be_bytes()[..])];
    let mut air = air();
    message(&mut air, 0, command::CHILD_UPDATE_RESPONSE, &given);
    assert_eq!(air.decoder.addresses.of_short(PAN, SHORT), None);
    let frame = message(&mut air, 0, command::CHILD_ID_RESPONSE, &given);
    assert!(
        frame.summary.ends_with(", address 0x2c01"),
        "{}",
        frame.summary
    );
    assert_eq!(air.decoder.addresses.of_short(PAN, SHORT), Some(eui64(B)));
    assert!(is_open(&air.hear(sealed(PAN, B, 0, 1))));
}

#[test]
fn contexts_come_from_network_data_and_the_dataset() {
    let mut air = air();
    // fd11:22::/64 with context 3, its length 64, and a border router.
    let prefix = [
        0x03, 20, 0, 64, 0xfd, 0x11, 0, 0x22, 0, 0, 0, 0, 0x05, 4, 0xa8, 0, 0x33, 0, 0x07, 2, 0x13,
        64,
    ];
    let dataset = [0x07, 8, 0xfd, 0, 0x0d, 0xb8, 0, 0, 0, 0];
    let frame = message(
        &mut air,
        0,
        command::DATA_RESPONSE,
        &[
            (tlv_type::NETWORK_DATA, &prefix),
            (tlv_type::ACTIVE_DATASET, &dataset),
        ],
    );
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(context(&air, 3).as_deref(), Some("fd11:22::/64"));
    assert_eq!(context(&air, 0).as_deref(), Some("fd00:db8::/64"));
    let shown = shown(&frame);
    for words in [
        "prefixfd11:22::/64(context3,borderrouter0xa800(preferencemedium,slaac,preferred,defaultroute,onmesh)",
        "meshlocalprefixfd00:db8::/64",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    let again = air.decoder.rewound();
    assert!(again.contexts.get(3).is_some());
}

#[test]
fn a_server_in_the_mesh_tells_the_mesh_local_prefix() {
    let mut air = air();
    // Service 0 of Thread, its data 5d; a server at 0xa800 with its address and port.
    let mut data = vec![0x0b, 27, 0x80, 1, 0x5d, 0x0d, 22, 0xa8, 0];
    let server: Ipv6Addr = "fd00:db8::1234:5678:9abc:def0".parse().expect("an address");
    data.extend(server.octets());
    data.extend([0xd1, 0x1f, 0, 0]);
    // A length that is not the one of an address and a port says nothing.
    message(
        &mut air,
        0,
        command::DATA_RESPONSE,
        &[(tlv_type::NETWORK_DATA, &data)],
    );
    assert_eq!(context(&air, 0), None);
    data.truncate(data.len() - 2);
    (data[1], data[6]) = (25, 20);
    let frame = message(
        &mut air,
        0,
        command::DATA_RESPONSE,
        &[(tlv_type::NETWORK_DATA, &data)],
    );
    assert_eq!(context(&air, 0).as_deref(), Some("fd00:db8::/64"));
    assert!(
        shown(&frame).contains("servicedata5d,server0xa800"),
        "{}",
        shown(&frame)
    );
}

#[test]
fn keys_in_datasets_are_not_shown() {
    let other_key = [0xc3; 16];
    let mut dataset = vec![0x05, 16];
    dataset.extend(other_key);
    dataset.extend([0x04, 16]);
    dataset.extend([0xd4; 16]);
    dataset.extend([0x03, 4]);
    dataset.extend(b"home");
    let mut air = air();
    for kind in [tlv_type::ACTIVE_DATASET, 25] {
        let frame = message(&mut air, 0, command::CHILD_ID_RESPONSE, &[(kind, &dataset)]);
        assert_eq!(frame.status, Status::Decoded);
        let shown = shown(&frame);
        assert!(shown.contains("networknamehome"), "{shown}");
        assert!(shown.contains("networkkey16B,notshown"), "{shown}");
        assert!(
            !shown.contains("c3c3c3") && !shown.contains("d4d4d4"),
            "{shown}"
        );
    }
    // The same in network management, which is CoAP: 2.04 Changed with the dataset behind it.
    let coap = [&[0x60, 0x44, 0, 1, 0xff][..], &dataset].concat();
    let management = datagram(link_local(A), link_local(B), 61_631, &coap);
    let frame = air.send(A, B, &management);
    assert!(frame.summary.contains("CoAP"), "{}", frame.summary);
    let shown = shown(&frame);
    assert!(
        !shown.contains("c3c3c3") && !shown.contains("d4d4d4"),
        "{shown}"
    );
    assert!(shown.contains("shownaszeros"), "{shown}");
    // The key that was given is not shown in whatever stands around it, nor a part of it.
    for payload in [&[7; 16][..], &[&[1; 9][..], &[7; 5]].concat()] {
        let frame = air.send(A, B, &datagram(link_local(A), link_local(B), 9, payload));
        assert!(!self::shown(&frame).contains("07070707"));
    }
}

#[test]
fn a_message_without_security_is_read_without_a_key() {
    let mut air = Air::new(&[]);
    // Discovery request: Thread discovery with a version, its flags behind.
    let frame = carry(&mut air, &[255, 16, 26, 4, 128, 2, 0x40, 0]);
    assert_eq!(frame.status, Status::Decoded);
    assert!(
        shown(&frame).contains("discoveryrequestversion4"),
        "{}",
        shown(&frame)
    );
    let cases: [(&[u8], &str); 6] = [
        (&[255, 16, 26, 4, 128], "TLV that ends too early"),
        (&[255], "shorter than its header"),
        (&[0, 0x15, 1, 2], "shorter than its header"),
        (&[3, 1], "MLE security suite 3"),
        (&[0; 40], "the message is encrypted"),
        (&[0x55; 1], "MLE security suite 85"),
    ];
    for (payload, reason) in cases {
        let frame = carry(&mut air, payload);
        let problem = frame.status.problem().expect("a problem");
        assert!(problem.reason.contains(reason), "{}", problem.reason);
    }
}

#[test]
fn what_cannot_be_taken_apart_is_shown_as_bytes() {
    let mut air = air();
    let tlvs: [(u8, &[u8]); 4] = [
        (tlv_type::LEADER_DATA, &[1, 2, 3]),
        (200, &[0xab]),
        (tlv_type::NETWORK_DATA, &[3, 9, 0]),
        (tlv_type::ROUTE64, &[1, 255, 0, 0, 0, 0, 0, 0, 0, 0x5a]),
    ];
    let frame = message(&mut air, 0, command::ADVERTISEMENT, &tlvs);
    assert_eq!(frame.status, Status::Decoded);
    let Value::List(list) = last(&frame, "mle", "tlvs") else {
        panic!("a list")
    };
    assert_eq!(list.len(), 4);
    for words in [
        "tlvleaderdata(bytes010203)",
        "tlv200(bytesab)",
        "tlvnetworkdata(bytes030900)",
        "tlvroute(",
    ] {
        assert!(shown(&frame).contains(words), "{}", shown(&frame));
    }
}

#[test]
fn a_changed_message_teaches_nothing() {
    let mut air = air();
    let ends = Ends {
        src: link_local(A),
        dst: link_local(B),
    };
    let mut out = [0; 64];
    let mut builder = Builder::new(command::ADVERTISEMENT, &mut out);
    builder.tlv(tlv_type::SOURCE_ADDRESS, &[&SHORT.to_be_bytes()]);
    let len = builder.seal(&KEY, &ends, Numbers::default()).expect("room");
    for at in 0..len {
        let mut message = out[..len].to_vec();
        message[at] ^= 0x80;
        let frame = carry(&mut air, &message);
        assert!(frame.status.problem().is_some(), "byte {at}");
        assert_eq!(air.decoder.addresses.of_short(PAN, SHORT), None);
    }
    // From another address than the one that sealed it.
    let moved = datagram(link_local(B), link_local(A), 19_788, &out[..len]);
    let frame = air.send(B, A, &moved);
    let problem = frame.status.problem().expect("a problem");
    assert!(problem.reason.contains("the key does not open it"));
}
