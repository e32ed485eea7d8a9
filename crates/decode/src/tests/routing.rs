//! What RPL and 6LoWPAN neighbour discovery send: messages, options, and headers of packets.

use std::net::Ipv6Addr;

use motet::lowpan::LinkPair;
use motet::wire::cursor::Writer;
use motet::wire::icmpv6::{self, Message};
use motet::wire::ipv6::next_header;
use motet::wire::lorh;
use motet::wire::ndp::{AddressRegistration, NdpOption, NdpOptions, registration};
use motet::wire::rpl::{
    self, Configuration, Dao, DaoAck, Dio, Dis, Metrics, RouteInformation, RplOption, RplOptions,
    Solicited, Target, Transit, mode,
};
use motet::wire::rpl_option::{Rpi, TYPE_9008};
use motet::wire::source_route;
use motet::wire::udp;

use super::super::model::{Frame, Status, Value};
use super::field;
use super::mesh::{
    A, Air, B, C, address, compressed, datagram, link_local, message, packet, prefix,
};

fn root() -> Ipv6Addr {
    "fd6d:6f74:6574:1::1".parse().expect("an address")
}

fn dio() -> rpl::Message<'static> {
    rpl::Message::Dio(Dio {
        instance: 30,
        version: 240,
        rank: 512,
        grounded: true,
        mode: mode::NON_STORING,
        preference: 0,
        dtsn: 241,
        dodag: root(),
        options: RplOptions::default(),
    })
}

/// A control message from A to B.
fn send(air: &mut Air, control: rpl::Message<'_>, options: &[RplOption<'_>]) -> Frame {
    let mut out = [0; 300];
    let mut w = Writer::new(&mut out);
    control.emit(&mut w).expect("room");
    for option in options {
        option.emit(&mut w).expect("room");
    }
    let len = w.written();
    let (src, dst) = (link_local(A), link_local(B));
    icmpv6::fill_checksum(&src, &dst, &mut out[..len]);
    air.send(A, B, &packet(src, dst, icmpv6::NEXT_HEADER, &out[..len]))
}

/// The options of a layer as people read them.
fn options(frame: &Frame, layer: &str) -> Vec<String> {
    let Value::List(list) = field(frame, layer, "options") else {
        panic!("a list")
    };
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn the_options_of_a_dio_are_put_into_words() {
    let etx = Metrics::etx_object(192);
    let configuration = Configuration {
        flags: 0x30,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 1024,
        min_hop_rank_increase: 256,
        objective: 1,
        default_lifetime: 30,
        lifetime_unit_s: 60,
    };
    let route = RouteInformation {
        prefix_len: 32,
        preference: 1,
        lifetime_s: 600,
        prefix: "2001:db8::".parse().expect("an address"),
    };
    let list = [
        RplOption::Configuration(configuration),
        RplOption::Metrics(Metrics::parse(&etx).expect("ours")),
        RplOption::Route(route),
    ];
    let frame = send(&mut Air::new(&[]), dio(), &list);
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(
        options(&frame, "rpl"),
        [
            "dio interval min 12 (dio interval doublings 8, redundancy 10, max rank increase 1024, \
             min hop rank increase 256, objective 1, objective name MRHOF, default lifetime 30, \
             lifetime unit 60 s, compressed, rpl option 0x23, path control size 0)",
            "metric ETX (etx 1.5, kind 7, flags 0x0000, 00 c0)",
            "route 2001:db8::/32 (preference 1, lifetime 600 s)",
        ]
    );
}

#[test]
fn solicitations_and_destinations_are_put_into_words() {
    let mut air = Air::new(&[]);
    let solicited = Solicited {
        instance: Some(30),
        dodag: Some(root()),
        version: None,
    };
    let dis = rpl::Message::Dis(Dis::default());
    let frame = send(&mut air, dis, &[RplOption::Solicited(solicited)]);
    assert_eq!(
        options(&frame, "rpl"),
        ["solicited information (instance 30, dodag fd6d:6f74:6574:1::1)"]
    );

    let dao = rpl::Message::Dao(Dao {
        instance: 30,
        ack_requested: true,
        sequence: 7,
        dodag: None,
        options: RplOptions::default(),
    });
    let target = Target {
        prefix_len: 128,
        prefix: address(prefix(), A),
    };
    let transit = Transit {
        external: true,
        path_control: 0x80,
        sequence: 241,
        lifetime: 30,
        parent: Some(root()),
    };
    let list = [
        RplOption::Target(target),
        RplOption::Descriptor(7),
        RplOption::Transit(transit),
    ];
    let frame = send(&mut air, dao, &list);
    assert_eq!(field(&frame, "rpl", "ack_requested"), &Value::Bool(true));
    assert_eq!(
        options(&frame, "rpl"),
        [
            "target fd6d:6f74:6574:1:4d:6f74:6574:1/128",
            "descriptor 0x00000007",
            "transit sequence 241 (external, path control 0x80, lifetime units 30, \
             parent fd6d:6f74:6574:1::1)",
        ]
    );

    let ack = rpl::Message::DaoAck(DaoAck {
        instance: 30,
        sequence: 7,
        status: 130,
        dodag: None,
        options: RplOptions::default(),
    });
    let frame = send(&mut air, ack, &[]);
    assert_eq!(field(&frame, "rpl", "meaning"), &"rejected".into());
}

#[test]
fn an_option_of_a_wrong_length_is_malformed_and_shown() {
    let short = RplOption::Other {
        kind: 9,
        body: &[1, 2, 3],
    };
    let frame = send(&mut Air::new(&[]), dio(), &[short]);
    let Status::Malformed(problem) = &frame.status else {
        panic!("{:?}", frame.status)
    };
    assert_eq!(
        problem.reason,
        "option 9 is too short or too long for its type"
    );
    assert_eq!(options(&frame, "rpl"), ["option 9 (01 02 03)"]);
}

#[test]
fn a_registration_says_whose_and_how_it_went() {
    let option = NdpOption::AddressRegistration(AddressRegistration {
        status: registration::FULL,
        opaque: 0,
        opaque_use: 0,
        reachable: true,
        transaction: Some(9),
        lifetime_min: 60,
        owner: &[2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
    });
    let mut out = [0; 16];
    option.emit(&mut Writer::new(&mut out)).expect("room");
    let answer = Message::NeighborAdvertisement {
        flags: 0x40,
        target: address(prefix(), A),
        options: NdpOptions::parse(&out).expect("ours"),
    };
    let frame = Air::new(&[]).send(B, A, &message(link_local(B), link_local(A), &answer));
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(
        options(&frame, "icmpv6"),
        [
            "registration neighbor cache full (owner 02:4d:6f:74:65:74:00:01, lifetime min 60, \
             reachable, transaction 9, opaque 0x00)"
        ]
    );
}

/// A source route from B over C to A.
fn route(next_header: u8) -> Vec<u8> {
    let [b, c, a] = [B, C, A].map(|link| address(prefix(), link));
    let mut out = [0; 64];
    let mut w = Writer::new(&mut out);
    source_route::emit(&mut w, next_header, &b, &[c, a]).expect("room");
    let len = w.written();
    out[..len].to_vec()
}

#[test]
fn a_source_route_leads_to_the_address_that_the_checksum_covers() {
    let [b, c, a] = [B, C, A].map(|link| address(prefix(), link));
    let datagram = datagram(root(), a, 7, b"hello");
    let routed = [route(udp::NEXT_HEADER), datagram[40..].to_vec()].concat();
    let mut packet = packet(root(), b, next_header::ROUTING, &routed);
    let mut air = Air::new(&[super::super::Context {
        id: 0,
        prefix: prefix(),
        len: 64,
    }]);
    for left in [2, 1, 0] {
        let frame = air.send(A, B, &packet);
        assert_eq!(frame.status, Status::Decoded, "{left}");
        assert_eq!(
            field(&frame, "extension", "segments_left"),
            &Value::Number(left)
        );
        if left == 2 {
            let list = Value::List(vec![c.into(), a.into()]);
            assert_eq!(field(&frame, "extension", "addresses"), &list);
        }
        let _at_the_end = source_route::advance(&mut packet);
    }
    // More segments left than there are addresses.
    packet[40 + source_route::SEGMENTS_LEFT_AT] = 3;
    let frame = air.send(A, B, &packet);
    let problem = frame.status.problem().expect("a problem");
    assert_eq!(problem.layer, "extension", "{}", problem.reason);
}

#[test]
fn routing_headers_are_read_and_the_packet_behind_them() {
    let mut air = Air::new(&[super::super::Context {
        id: 0,
        prefix: prefix(),
        len: 64,
    }]);
    let [b, c, a] = [B, C, A].map(|link| address(prefix(), link));
    let inner = datagram(root(), a, 7, b"hello");
    let (mut iphc, taken) = compressed(&inner, LinkPair { src: C, dst: B }, &air.contexts);
    iphc.extend_from_slice(&inner[taken..]);
    let rpi = Rpi {
        down: true,
        instance: 30,
        sender_rank: 0x0200,
        ..Rpi::default()
    };
    let mut out = [0; 100];
    let mut w = Writer::new(&mut out);
    w.u8(lorh::PAGE_1).expect("room");
    lorh::emit_segments(&mut w, &root(), &[b, c, a]).expect("room");
    lorh::emit_rpi(&mut w, rpi).expect("room");
    lorh::emit_tunnel(&mut w, 63, &root(), &root()).expect("room");
    let len = w.written();
    let payload = [&out[..len], &iphc].concat();

    let listened = |air: &mut Air| {
        let psdu = air.frame(C, B, &payload);
        let frame = air.hear(psdu);
        assert_eq!(frame.status, Status::Decoded);
        let port = field(&frame, "udp", "dst_port").clone();
        assert_eq!(port, Value::Number(7));
        frame
    };
    let ends = [B, C, A].map(|link| Value::from(address(Ipv6Addr::UNSPECIFIED, link)));
    let frame = listened(&mut air);
    assert_eq!(
        field(&frame, "lorh", "segment_ends"),
        &Value::List(ends.to_vec())
    );
    // The root's address is known once a DIO was heard.
    assert_eq!(send(&mut air, dio(), &[]).status, Status::Decoded);
    let frame = listened(&mut air);
    let list = [b, c, a].map(Value::from);
    assert_eq!(
        field(&frame, "lorh", "segments"),
        &Value::List(list.to_vec())
    );
    let lorhs: Vec<_> = frame
        .layers
        .iter()
        .filter(|layer| layer.name == "lorh")
        .collect();
    let titles: Vec<_> = lorhs.iter().map(|layer| layer.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "source route, 3 to go",
            "RPL packet information",
            "IPv6 in IPv6"
        ]
    );
    let value = |layer: usize, key: &str| {
        let fields = &lorhs[layer].fields;
        fields
            .iter()
            .find(|field| field.key == key)
            .map(|field| field.value.clone())
    };
    assert_eq!(value(1, "rpl_instance"), Some(30_u8.into()));
    assert_eq!(value(1, "down"), Some(true.into()));
    assert_eq!(value(1, "sender_rank"), Some(0x0200_u16.into()));
    assert_eq!(value(2, "hop_limit"), Some(63_u8.into()));
    assert_eq!(value(2, "encapsulator"), Some(root().into()));
}

#[test]
fn routing_headers_that_cannot_be_read_say_why() {
    let cases: [(&[u8], bool, &str); 3] = [
        (
            &[0x80, 6, 0, 0],
            false,
            "critical 6LoWPAN routing header of unknown type",
        ),
        (&[0x80, 4, 0], true, "6LoWPAN routing header truncated"),
        (
            &[0x83, 5, 1, 0x83, 5, 1],
            true,
            "6LoWPAN routing headers out of order",
        ),
    ];
    for (headers, malformed, reason) in cases {
        let mut air = Air::new(&[]);
        let psdu = air.frame(A, B, &[&[lorh::PAGE_1], headers].concat());
        let frame = air.hear(psdu);
        let problem = frame.status.problem().expect("a problem");
        assert_eq!((problem.layer, problem.reason.as_str()), ("lorh", reason));
        let is_malformed = matches!(frame.status, Status::Malformed(_));
        assert_eq!(is_malformed, malformed, "{reason}");
    }
}

#[test]
fn the_option_of_either_type_is_read() {
    let rpi = Rpi {
        rank_error: true,
        forwarding_error: true,
        instance: 1,
        sender_rank: 3,
        ..Rpi::default()
    };
    let (src, dst) = (link_local(A), link_local(B));
    let datagram = datagram(src, dst, 7, b"hello");
    let header = rpi.header(udp::NEXT_HEADER, TYPE_9008);
    let routed = [&header[..], &datagram[40..]].concat();
    let frame = Air::new(&[]).send(A, B, &packet(src, dst, next_header::HOP_BY_HOP, &routed));
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(
        options(&frame, "extension"),
        ["rpl instance 1 (rank error, forwarding error, sender rank 3)"]
    );
}
