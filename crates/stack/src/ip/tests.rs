//! Tests of what IP decides on packets, and of how it reads extension headers.

use super::*;
use crate::wire::LinkAddr;
use crate::wire::ipv6::TrafficClass;

const RADIO: InterfaceId = InterfaceId(0);
const WIRE: InterfaceId = InterfaceId(1);

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn header(src: &str, dst: &str) -> Header {
    Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: 0,
        next_header: 6,
        hop_limit: 64,
        src: ip(src),
        dst: ip(dst),
    }
}

fn border_router(table: &mut [Option<Route>]) -> Ip<'_> {
    let mut node = Ip::new(
        Config {
            forwards: true,
            ..Config::default()
        },
        table,
    );
    for (text, interface) in [("fe80::1", RADIO), ("fd00:1::1", RADIO), ("fd00::2", WIRE)] {
        assert!(node.add_address(Address {
            addr: ip(text),
            interface
        }));
    }
    let to_mote = NextHop {
        interface: RADIO,
        neighbour: Neighbour::One(LinkAddr::Short(7).iid()),
    };
    let to_host = NextHop {
        interface: WIRE,
        neighbour: Neighbour::Only,
    };
    assert!(node.add_route(Route {
        prefix: Prefix::host(ip("fd00:1::7")),
        next_hop: to_mote
    }));
    let wired = Prefix {
        addr: ip("fd00::"),
        len: 64,
    };
    assert!(node.add_route(Route {
        prefix: wired,
        next_hop: to_host
    }));
    node
}

/// A hop from a neighbour that no route leads to.
fn came_by(interface: InterfaceId) -> Ingress {
    Ingress {
        interface,
        from: Neighbour::One([9; 8]),
        to_all: false,
        option: None,
        #[cfg(feature = "rpl")]
        signal_dbm: 0,
    }
}

/// RFC 3704 §2.4: a host with two wires may send by either, whichever of them leads to it.
#[test]
fn a_source_of_another_wire_is_no_forgery_and_one_of_a_mesh_is() {
    const OTHER: InterfaceId = InterfaceId(3);
    let mut table = [None; 4];
    let mut node = border_router(&mut table);
    let by_other = NextHop {
        interface: OTHER,
        neighbour: Neighbour::Only,
    };
    let prefix = Prefix {
        addr: ip("2001:db8:a::"),
        len: 48,
    };
    assert!(node.add_route(Route {
        prefix,
        next_hop: by_other
    }));
    assert!(node.add_address(Address {
        addr: ip("2001:db8:b::2"),
        interface: OTHER
    }));
    let came_by = Ingress {
        from: Neighbour::Only,
        ..came_by(WIRE)
    };
    for (src, forged) in [
        ("2001:db8:a::9", false),
        ("2001:db8:b::9", false),
        ("2001:db8:c::9", false),
        ("fd00:1::7", true),
        ("fd00:1::99", true),
    ] {
        let header = header(src, "fd00:1::7");
        let disposition = node.disposition((&header, &[]), &came_by);
        let drop = Disposition::Drop(PacketDrop::ForgedSource);
        assert_eq!(disposition == drop, forged, "{src}: {disposition:?}");
    }
}

#[test]
fn dispositions_of_a_border_router() {
    let mut table = [None; 4];
    let mut node = border_router(&mut table);
    let to_mote = NextHop {
        interface: RADIO,
        neighbour: Neighbour::One(LinkAddr::Short(7).iid()),
    };
    let to_host = NextHop {
        interface: WIRE,
        neighbour: Neighbour::Only,
    };
    let refuse = Disposition::Refuse;
    let drop = Disposition::Drop;
    let cases = [
        ("to me", "fd00::1", "fd00:1::1", WIRE, Disposition::Local),
        (
            "to all nodes",
            "fe80::9",
            "ff02::1",
            RADIO,
            Disposition::Local,
        ),
        (
            "to all routers",
            "fe80::9",
            "ff02::2",
            RADIO,
            Disposition::Local,
        ),
        (
            "group not joined",
            "fe80::9",
            "ff02::fb",
            RADIO,
            drop(PacketDrop::NotMine),
        ),
        (
            "host to mote",
            "fd00::1",
            "fd00:1::7",
            WIRE,
            Disposition::Forward(to_mote),
        ),
        (
            "mote to host",
            "fd00:1::7",
            "fd00::1",
            RADIO,
            Disposition::Forward(to_host),
        ),
        (
            "mote to mote turns here",
            "fd00:1::8",
            "fd00:1::7",
            RADIO,
            Disposition::Forward(to_mote),
        ),
        (
            "back where it came from",
            "fd00::1",
            "fd00::77",
            WIRE,
            refuse(ErrorKind::NoRoute),
        ),
        (
            "unknown mote",
            "fd00::1",
            "fd00:1::99",
            WIRE,
            refuse(ErrorKind::NoRoute),
        ),
        (
            "link-local of others",
            "fe80::9",
            "fe80::8",
            RADIO,
            drop(PacketDrop::NotMine),
        ),
        (
            "link-local source abroad",
            "fe80::9",
            "fd00::1",
            RADIO,
            drop(PacketDrop::NotMine),
        ),
        (
            "unspecified source",
            "::",
            "fd00::1",
            RADIO,
            drop(PacketDrop::NotMine),
        ),
        (
            "multicast source",
            "ff02::1",
            "fd00:1::1",
            RADIO,
            drop(PacketDrop::BadAddress),
        ),
        (
            "loopback",
            "::1",
            "fd00:1::1",
            RADIO,
            drop(PacketDrop::BadAddress),
        ),
        (
            "my own, to me",
            "fd00:1::1",
            "fd00:1::1",
            RADIO,
            drop(PacketDrop::BadAddress),
        ),
        (
            "my own, on its way",
            "fd00::2",
            "fd00:1::7",
            WIRE,
            drop(PacketDrop::BadAddress),
        ),
        (
            "fe80::1 of the other link",
            "fe80::1",
            "ff02::1",
            WIRE,
            Disposition::Local,
        ),
    ];
    for (name, src, dst, interface, want) in cases {
        assert_eq!(
            node.disposition((&header(src, dst), &[]), &came_by(interface)),
            want,
            "{name}"
        );
    }
    let last_hop = Header {
        hop_limit: 1,
        ..header("fd00::1", "fd00:1::7")
    };
    assert_eq!(
        node.disposition((&last_hop, &[]), &came_by(WIRE)),
        refuse(ErrorKind::HopLimitExceeded)
    );
}

#[test]
fn nowhere_and_everywhere_are_no_next_hop() {
    let mut table = [None; 4];
    let mut node = border_router(&mut table);
    node.set_default_route(Some(NextHop {
        interface: WIRE,
        neighbour: Neighbour::Only,
    }));
    assert!(node.next_hop(&ip("2001:db8::1"), RADIO).is_some());
    assert_eq!(node.next_hop(&ip("::"), RADIO), None);
    assert!(node.next_hop(&ip("fe80::ff:fe00:7"), RADIO).is_some());
}

#[test]
fn the_highest_option_kinds_are_not_answered_when_sent_to_many() {
    let mut table = [];
    let node = Ip::new(Config::default(), &mut table);
    for (kind, dst, answered) in [
        (0x85, "fd00::2", true),
        (0x85, "ff02::1", true),
        (0xc5, "fd00::2", true),
        (0xc5, "ff02::1", false),
    ] {
        let header = Header {
            next_header: 60,
            ..header("fd00::1", dst)
        };
        let payload = [6, 0, kind, 2, 0, 0, 1, 0];
        let disposition = node.upper_layer((&header, false), &payload);
        let refused = matches!(disposition, Err(Disposition::Refuse(_)));
        assert_eq!(refused, answered, "{kind:#x} to {dst}");
    }
}

#[test]
fn a_leaf_forwards_nothing() {
    let mut table = [None; 1];
    let mut node = Ip::new(Config::default(), &mut table);
    node.set_default_route(Some(NextHop {
        interface: RADIO,
        neighbour: Neighbour::Only,
    }));
    let disposition = node.disposition((&header("fd00::1", "fd00::2"), &[]), &came_by(RADIO));
    assert_eq!(disposition, Disposition::Drop(PacketDrop::NotARouter));
}

#[test]
fn extension_headers_are_acted_upon() {
    let mut table = [];
    let node = Ip::new(Config::default(), &mut table);
    let problem = |code, pointer| {
        Err(Disposition::Refuse(ErrorKind::ParameterProblem {
            code,
            pointer,
        }))
    };
    let dropped = |reason| Err(Disposition::Drop(reason));
    type Case<'a> = (&'a str, u8, &'a [u8], Result<u8, Disposition>);
    let cases: [Case<'_>; 10] = [
        ("none", 6, &[1, 2], Ok(6)),
        ("padding only", 0, &[6, 0, 1, 4, 0, 0, 0, 0], Ok(6)),
        ("skippable option", 60, &[6, 0, 0x05, 2, 0, 0, 1, 0], Ok(6)),
        (
            "discard option",
            60,
            &[6, 0, 0x45, 2, 0, 0, 1, 0],
            dropped(PacketDrop::ExtensionHeader),
        ),
        (
            "report option",
            60,
            &[6, 0, 0, 0x85, 1, 0, 0, 0],
            problem(2, 43),
        ),
        ("spent routing header", 43, &[6, 0, 4, 0, 0, 0, 0, 0], Ok(6)),
        (
            "routing header",
            43,
            &[6, 0, 4, 1, 0, 0, 0, 0],
            problem(0, 42),
        ),
        (
            "fragment",
            44,
            &[6, 0, 0, 1, 0, 0, 0, 0],
            dropped(PacketDrop::Fragment),
        ),
        ("atomic fragment", 44, &[6, 0, 0, 0, 0, 0, 0, 0], Ok(6)),
        (
            "late hop-by-hop",
            60,
            &[0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0],
            problem(1, 40),
        ),
    ];
    for (name, next, payload, want) in cases {
        let header = Header {
            next_header: next,
            ..header("fd00::1", "fd00::2")
        };
        let got = node
            .upper_layer((&header, false), payload)
            .map(|(protocol, _)| protocol);
        assert_eq!(got, want, "{name}");
    }
}
