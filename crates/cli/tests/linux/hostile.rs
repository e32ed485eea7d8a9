//! Routing headers and options that no honest root sends, and errors: what a mote does with them,
//! and what Linux does in its place.

use std::{fmt, net::Ipv6Addr};

use motet::wire::{
    icmpv6,
    ipv6::{HEADER_LEN, next_header},
};
use motet_lab::{Arena, net::plan};

use crate::air::{Form, Mesh, ping};
use crate::judge::{Routers, Row};
use crate::peer::NotPermitted;

/// What a node does with a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Deed {
    /// Sends it on to this address.
    Forwards(Ipv6Addr),
    /// Answers the echo request in it.
    Answers,
    /// Sends an ICMPv6 error: type, code, pointer.
    Refuses(u8, u8, u32),
    /// Nothing.
    Drops,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forwards(next) => write!(f, "forwards to ::{:x}", next.segments()[7]),
            Self::Answers => f.write_str("answers"),
            Self::Refuses(3, ..) => f.write_str("refuses: hop limit"),
            Self::Refuses(4, code, at) => write!(f, "refuses: problem {code} at {at}"),
            Self::Refuses(kind, code, _) => write!(f, "refuses: {kind}/{code}"),
            Self::Drops => f.write_str("drops"),
        }
    }
}

impl Deed {
    /// Of what a node sent.
    fn of<'p>(sent: impl Iterator<Item = &'p [u8]>) -> Self {
        for packet in sent {
            let kind = packet.get(HEADER_LEN).copied().unwrap_or_default();
            match packet.get(6).copied() {
                Some(icmpv6::NEXT_HEADER) if kind == 129 => return Self::Answers,
                Some(icmpv6::NEXT_HEADER) if (1..=4).contains(&kind) => {
                    let pointer = [4, 5, 6, 7].map(|at| packet[HEADER_LEN + at]);
                    let pointer = u32::from_be_bytes(pointer);
                    return Self::Refuses(kind, packet[HEADER_LEN + 1], pointer);
                }
                Some(next_header::ROUTING | next_header::HOP_BY_HOP) => {
                    let octets: [u8; 16] = packet[24..40].try_into().expect("sixteen bytes");
                    return Self::Forwards(Ipv6Addr::from(octets));
                }
                _ => {}
            }
        }
        Self::Drops
    }
}

/// A packet to mote 1, what the RFCs ask for, and what Linux does where that is something else.
struct Case {
    name: &'static str,
    packet: Vec<u8>,
    asked: Deed,
    linux: Option<Deed>,
}

/// Offsets in a packet that begins with an IPv6 header and a routing header.
const SEGMENTS_LEFT: u32 = 43;
const ROUTING_TYPE: u32 = 42;

/// The node in question.
const MOTE: u16 = 1;

pub(crate) fn checks(routers: &mut Routers) -> Result<Vec<Row>, NotPermitted> {
    let arena = Arena::new();
    let mut mesh = Mesh::chain(&arena, 3, Form::PLAIN);
    let router = routers.at(plan::mesh_addr(MOTE))?;
    let mut rows = Vec::new();
    for case in cases() {
        let theirs = Deed::of(router.give(&case.packet).iter().map(Vec::as_slice));
        // Twice: the number of one forged frame may be that of the root's last.
        let heard = [0, 1].map(|_| mesh.forge(0, MOTE, &case.packet)).concat();
        let ours = Deed::of(heard.iter().map(|hop| hop.packet.as_slice()));
        let note = match &case.linux {
            None => format!("{ours}, both"),
            Some(_) => format!("Motet {ours}, Linux {theirs}"),
        };
        // Where Linux is known to do otherwise, a kernel that has mended it is as welcome.
        let is_known = theirs == case.asked || Some(&theirs) == case.linux.as_ref();
        let pass = ours == case.asked && is_known;
        let note = match pass {
            true => note,
            false => format!("Motet {ours}, Linux {theirs}, asked for: {}", case.asked),
        };
        rows.push(Row {
            check: case.name.to_owned(),
            value: f64::from(u8::from(ours == theirs)),
            unit: "1",
            pass,
            note,
        });
    }
    Ok(rows)
}

/// A routing header of type `kind` over `addrs`, which lack their first 15 bytes, before an echo
/// request; then what `change` makes of the packet.
fn case(
    name: &'static str,
    (kind, segments_left, addrs): (u8, u8, &[u8]),
    asked: Deed,
    change: impl FnOnce(&mut Vec<u8>),
) -> Case {
    let dst = plan::mesh_addr(MOTE);
    // The checksum is that of the true destination.
    let last = addrs.last().filter(|_| segments_left > 0);
    let end = last.map_or(dst, |last| plan::mesh_addr(u16::from(*last)));
    let mut packet = ping(plan::mesh_addr(0), end, 56, 1);
    packet[24..40].copy_from_slice(&dst.octets());
    packet[6] = next_header::ROUTING;
    let pad = addrs.len().wrapping_neg() % 8;
    let units = (addrs.len() + pad) / 8;
    let mut header = vec![icmpv6::NEXT_HEADER, units as u8, kind, segments_left];
    header.extend([0xff, (pad << 4) as u8, 0, 0]);
    header.extend(addrs);
    header.resize(8 + units * 8, 0);
    packet.splice(HEADER_LEN..HEADER_LEN, header);
    change(&mut packet);
    let payload_len = (packet.len() - HEADER_LEN) as u16;
    packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
    Case {
        name,
        packet,
        asked,
        linux: None,
    }
}

impl Case {
    fn but_linux(mut self, deed: Deed) -> Self {
        self.linux = Some(deed);
        self
    }

    /// A routing header whose addresses are whole, so that `addrs` may be any.
    fn whole(name: &'static str, addrs: &[Ipv6Addr], asked: Deed) -> Self {
        let bytes: Vec<u8> = addrs.iter().flat_map(Ipv6Addr::octets).collect();
        case(name, (3, addrs.len() as u8, &bytes), asked, |packet| {
            packet[44] = 0;
        })
    }
}

fn cases() -> Vec<Case> {
    use Deed::{Answers, Drops, Forwards, Refuses};
    let same = |_: &mut Vec<u8>| {};
    let to = |n: u16| plan::mesh_addr(n);
    let group: Ipv6Addr = "ff02::1a".parse().expect("an address");
    let option = |kind: u8| {
        move |packet: &mut Vec<u8>| {
            packet.splice(HEADER_LEN..HEADER_LEN, [packet[6], 0, kind, 4, 0, 0, 0, 0]);
            packet[6] = next_header::HOP_BY_HOP;
        }
    };
    let loop_found = || Refuses(4, 0, SEGMENTS_LEFT);
    let unread = || Refuses(4, 0, ROUTING_TYPE);
    let loopback = Ipv6Addr::LOCALHOST;
    vec![
        case("an honest route", (3, 2, &[2, 3]), Forwards(to(2)), same),
        case("an honest route at its end", (3, 0, &[4, 5]), Answers, same),
        case(
            "more padding than needed",
            (3, 8, &[2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0]),
            Forwards(to(2)),
            |packet| packet[45] = 0x80,
        ),
        case(
            "a segment more than addresses",
            (3, 3, &[2, 3]),
            Refuses(4, 0, SEGMENTS_LEFT),
            same,
        ),
        case(
            "255 segments, two addresses",
            (3, 255, &[2, 3]),
            Refuses(4, 0, SEGMENTS_LEFT),
            same,
        ),
        // A group on the way: both drop it (RFC 6554 §4.2).
        Case::whole("the next segment is a group", &[group, to(3)], Drops),
        // Addresses of which no source route consists (RFC 6554 §4.1 has those of the DODAG). Linux
        // sends on what its routes allow.
        Case::whole(
            "the next segment is ::",
            &[Ipv6Addr::UNSPECIFIED, to(3)],
            Drops,
        )
        .but_linux(Forwards(Ipv6Addr::UNSPECIFIED)),
        Case::whole("the next segment is ::1", &[loopback, to(3)], Drops)
            .but_linux(Forwards(loopback)),
        Case::whole(
            "the next segment is link-local",
            &[plan::link_local(2), to(3)],
            Drops,
        )
        .but_linux(Forwards(plan::link_local(2))),
        // RFC 6554 §4.2 asks for a parameter problem at the second visit at the latest, which Linux
        // does not find; Motet finds every repeated own address at the first one.
        case(
            "this node twice, another between",
            (3, 4, &[1, 2, 1, 3]),
            loop_found(),
            same,
        )
        .but_linux(Forwards(to(2))),
        case(
            "this node again later",
            (3, 3, &[2, 1, 3]),
            loop_found(),
            same,
        )
        .but_linux(Forwards(to(2))),
        case(
            "this node visited before",
            (3, 1, &[1, 3]),
            loop_found(),
            same,
        )
        .but_linux(Forwards(to(3))),
        case("hop limit 1", (3, 2, &[2, 3]), Refuses(3, 0, 0), |packet| {
            packet[7] = 1;
        }),
        case("hop limit 0", (3, 2, &[2, 3]), Refuses(3, 0, 0), |packet| {
            packet[7] = 0;
        }),
        // Lengths that contradict each other: Motet names the header that it cannot read (RFC 8200
        // §4.4), Linux drops, or counts as far as RFC 6554 §4.2 has it.
        case(
            "addresses that do not fill it",
            (3, 1, &[2, 3, 4]),
            unread(),
            |packet| packet[44] = 0xee,
        )
        .but_linux(Drops),
        case("no address, a segment left", (3, 1, &[]), unread(), same).but_linux(Refuses(
            4,
            0,
            SEGMENTS_LEFT,
        )),
        case("longer than the packet", (3, 1, &[2, 3]), Drops, |packet| {
            packet[41] = 40;
        }),
        case("type 2, a segment left", (2, 1, &[2]), unread(), same),
        case("type 0, a segment left", (0, 1, &[2]), unread(), same),
        // Linux knows segment routing, and has it switched off.
        case("type 4, a segment left", (4, 1, &[2]), unread(), same).but_linux(Drops),
        case("type 253, a segment left", (253, 1, &[2]), unread(), same),
        case("type 253 at its end", (253, 0, &[2]), Answers, same),
        case(
            "RPL option 0x23, a segment left",
            (3, 2, &[2, 3]),
            Forwards(to(2)),
            option(0x23),
        ),
        // Its type says that a node which does not know it is to drop the packet: why RFC 9008 has
        // another one.
        case(
            "RPL option 0x63, a segment left",
            (3, 2, &[2, 3]),
            Forwards(to(2)),
            option(0x63),
        )
        .but_linux(Drops),
        case(
            "unknown option, to be skipped",
            (3, 2, &[2, 3]),
            Forwards(to(2)),
            option(0x1e),
        ),
        case(
            "unknown option, to be dropped",
            (3, 2, &[2, 3]),
            Drops,
            option(0x5e),
        ),
        case(
            "unknown option, to be refused",
            (3, 2, &[2, 3]),
            Refuses(4, 2, 42),
            option(0x9e),
        ),
    ]
}
