//! Source routes and tunnels: Linux in the place of each mote of a path.

use motet::wire::{
    cursor::Writer,
    icmpv6,
    ipv6::{HEADER_LEN, next_header},
    source_route::{self, SourceRoute},
};
use motet_lab::{Arena, net::plan};
use std::net::Ipv6Addr;

use crate::air::{Form, Mesh, OnAir, ping};
use crate::judge::{Routers, Row};
use crate::peer::NotPermitted;

const ICMPV6: u8 = icmpv6::NEXT_HEADER;

/// Offset of the hop limit in an IPv6 header.
const HOP_LIMIT_AT: usize = 7;

/// Motes of the chain.
const HOPS: u16 = 6;

/// The longest source route that a root of Motet's writes.
const LONGEST: u16 = 16;

pub(crate) fn checks(routers: &mut Routers) -> Result<Vec<Row>, NotPermitted> {
    let mut rows = Vec::new();
    for (name, form) in [
        ("RFC 6282 headers, option 0x23", Form::PLAIN),
        ("RFC 6282 headers, option 0x63", Form::OLD),
        ("RFC 8138 headers", Form::COMPRESSED),
    ] {
        rows.extend(in_the_place_of_each_mote(routers, name, form)?);
    }
    rows.push(a_path_of_kernels(routers)?);
    rows.extend(routes_of_any_shape(routers)?);
    rows.push(by_turns(routers)?);
    Ok(rows)
}

/// Echo requests from outside to motes 2 to [`HOPS`], short ones and of 1,280 bytes: what relay `n`
/// got goes into a router with its address. The router is to send what the relay sent; a router in
/// the place of the mote is to answer as the mote did.
fn in_the_place_of_each_mote(
    routers: &mut Routers,
    name: &str,
    form: Form,
) -> Result<[Row; 3], NotPermitted> {
    let arena = Arena::new();
    let mut mesh = Mesh::chain(&arena, HOPS.into(), form);
    let mut without_option = 0;
    let (mut relayed, mut as_relayed, mut opened, mut as_answered) = (0, 0, 0, 0);
    for mote in 2..=HOPS {
        for (sequence, len) in [48, 100, 400, 1_280].into_iter().enumerate() {
            let request = ping(plan::HOST, plan::mesh_addr(mote), len, sequence as u16);
            let (heard, came) = mesh.send(&request);
            let way: Vec<OnAir> = (0..mote)
                .filter_map(|n| heard.iter().find(|hop| is_down(hop, n)).cloned())
                .collect();
            for pair in way.windows(2) {
                let sent = routers
                    .at(plan::mesh_addr(pair[0].to))?
                    .give(&pair[0].packet);
                relayed += 1;
                as_relayed += usize::from(sent == [expected(&pair[0], &pair[1], form)]);
            }
            let router = routers.at(plan::mesh_addr(mote))?;
            // Without a routing header it takes a kernel with a tunnel interface to open it.
            let last = match way.as_slice() {
                [.., before, _] if form.is_compressed => Some(advanced(&before.packet)),
                way => way.last().map(|last| last.packet.clone()),
            };
            let answers = last.map(|last| router.give(&last));
            opened += 1;
            let mut up = heard.iter().filter(|hop| (hop.from, hop.to) == (1, 0));
            let comes_with_option = up.any(|hop| hop.packet[6] == ICMPV6 && hop.rpi.is_some());
            let leaves_without = came.iter().all(|came| came[6] == ICMPV6);
            without_option += usize::from(comes_with_option && leaves_without);
            as_answered += usize::from(match (answers.as_deref(), came.as_slice()) {
                (Some([answer]), [came]) => is_same_answer(answer, came),
                _ => false,
            });
        }
    }
    let due = usize::from((2..=HOPS).map(|mote| mote - 1).sum::<u16>()) * 4;
    assert_eq!(relayed, due, "{name}: packets are missing on the air");
    let unit = "packets";
    Ok([
        Row::all(&format!("forwards, {name}"), unit, as_relayed, relayed)
            .with(format!("of {relayed}: every byte as the mote's")),
        Row::all(
            &format!("ends the tunnel, {name}"),
            unit,
            as_answered,
            opened,
        )
        .with(format!("of {opened}: the echo answered as by the mote")),
        Row::all(
            &format!("leaves the mesh bare, {name}"),
            unit,
            without_option,
            opened,
        )
        .with(format!("of {opened}: RPL's option stays within")),
    ])
}

/// Whether a packet goes down from node `n` with a source route, or in a tunnel of which compression
/// has left no route.
fn is_down(hop: &OnAir, n: u16) -> bool {
    let routing = [next_header::ROUTING, next_header::IPV6];
    (hop.from, hop.to) == (n, n + 1) && hop.packet.get(6).is_some_and(|next| routing.contains(next))
}

/// What a router sends that gets what is in `got`, where the relay sent `passed_on`. Compressed
/// headers leave the visited addresses out: there it is what Motet's own function makes of it.
fn expected(got: &OnAir, passed_on: &OnAir, form: Form) -> Vec<u8> {
    if !form.is_compressed {
        return passed_on.packet.clone();
    }
    let advanced = advanced(&got.packet);
    assert_eq!(
        steps_left(&advanced),
        steps_left(&passed_on.packet),
        "the relay has changed the route"
    );
    advanced
}

/// A packet one segment further on, by Motet's own code.
fn advanced(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[HOP_LIMIT_AT] -= 1;
    let next = source_route::advance(&mut packet);
    next.expect("a segment is left");
    packet
}

/// Where a packet goes, and the addresses that it has yet to visit.
fn steps_left(packet: &[u8]) -> Vec<Ipv6Addr> {
    let dst = destination(packet);
    let Some(route) = route_of(packet) else {
        return vec![dst];
    };
    let visited = route.len() - usize::from(route.segments_left);
    std::iter::once(dst)
        .chain(route.addrs(dst).skip(visited))
        .collect()
}

fn destination(packet: &[u8]) -> Ipv6Addr {
    let octets: [u8; 16] = packet[24..40].try_into().expect("sixteen bytes");
    Ipv6Addr::from(octets)
}

fn route_of(packet: &[u8]) -> Option<SourceRoute<'_>> {
    if packet[6] != next_header::ROUTING {
        return None;
    }
    let len = (usize::from(*packet.get(HEADER_LEN + 1)?) + 1) * 8;
    SourceRoute::parse(packet.get(HEADER_LEN..HEADER_LEN + len)?).ok()
}

/// Same ends and message: hop limit and flow label are each node's own.
fn is_same_answer(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one[4..7] == other[4..7] && one[8..] == other[8..]
}

/// One packet of 1,280 bytes from outside over a route of [`LONGEST`] routers, all of Linux.
fn a_path_of_kernels(routers: &mut Routers) -> Result<Row, NotPermitted> {
    let arena = Arena::new();
    let mut mesh = Mesh::chain(&arena, LONGEST.into(), Form::PLAIN);
    let request = ping(plan::HOST, plan::mesh_addr(LONGEST), 1_280, 1);
    let (heard, came) = mesh.send(&request);
    let first = heard.iter().find(|hop| is_down(hop, 0));
    let mut packet = first.expect("the root sends it").packet.clone();
    let mut hops = 0;
    for n in 1..=LONGEST {
        let sent = routers.at(plan::mesh_addr(n))?.give(&packet);
        let [only] = sent.as_slice() else {
            break;
        };
        packet.clone_from(only);
        hops += 1;
    }
    let is_answered = came
        .first()
        .is_some_and(|came| is_same_answer(&packet, came));
    Ok(Row {
        check: "a path of kernels, 1,280 bytes inside".to_owned(),
        value: f64::from(hops),
        unit: "hops",
        pass: hops == LONGEST && is_answered,
        note: "the last one answers as the mote did".to_owned(),
    })
}

/// Source routes whose addresses share any number of bytes, with the router anywhere on the path.
fn routes_of_any_shape(routers: &mut Routers) -> Result<[Row; 2], NotPermitted> {
    const CASES: usize = 400;
    let own = plan::mesh_addr(1);
    let router = routers.at(own)?;
    let mut random = Random(0x5eed);
    let (mut same, mut alike) = (0, 0);
    for case in 0..CASES {
        let len = 2 + random.below(15);
        let place = random.below(len - 1);
        let mut path: Vec<Ipv6Addr> = (0..len).map(|n| random.near(own, n)).collect();
        path[place] = own;
        let mut packet = routed(&path);
        for _ in 0..place {
            packet = advanced(&packet);
        }
        let ours = advanced(&packet);
        let sent = router.give(&packet);
        let [theirs] = sent.as_slice() else {
            println!(
                "case {case}: Linux sends {} packets for {path:?}",
                sent.len()
            );
            continue;
        };
        same += usize::from(*theirs == ours);
        alike += usize::from(means_the_same(theirs, &ours));
    }
    let identical = same as f64 / CASES as f64;
    Ok([
        Row::all("forwards routes of any shape", "packets", alike, CASES)
            .with(format!("of {CASES}: same route, next hop and payload")),
        Row {
            check: "forwards routes of any shape: same bytes".to_owned(),
            value: (identical * 1_000.0).round() / 1_000.0,
            unit: "1",
            pass: same > 0,
            note: "the rest: Linux compresses the addresses anew".to_owned(),
        },
    ])
}

/// Paths on which Linux and Motet take turns, over motes whose addresses share 14 or 15 bytes: what
/// Linux compresses anew, Motet has to follow.
fn by_turns(routers: &mut Routers) -> Result<Row, NotPermitted> {
    const CASES: usize = 40;
    const MOTES: [u16; 6] = [0x101, 0x102, 0x103, 0x201, 0x202, 0x301];
    let mut random = Random(0xface);
    let mut arrived = 0;
    for _ in 0..CASES {
        let mut path = MOTES.map(plan::mesh_addr);
        for left in (1..path.len()).rev() {
            path.swap(left, random.below(left + 1));
        }
        let turn = random.below(2);
        let mut packet = routed(&path);
        let mut visited = vec![destination(&packet)];
        for (place, addr) in path.iter().enumerate().take(path.len() - 1) {
            packet = match place % 2 == turn {
                true => routers.at(*addr)?.give(&packet).pop().unwrap_or(packet),
                false => advanced(&packet),
            };
            visited.push(destination(&packet));
        }
        arrived += usize::from(visited == path);
    }
    Ok(
        Row::all("Linux and Motet take turns", "packets", arrived, CASES)
            .with(format!("of {CASES} visit every address in order")),
    )
}

/// A packet of the root's own with a route over `path`.
pub(crate) fn routed(path: &[Ipv6Addr]) -> Vec<u8> {
    let (first, rest) = path.split_first().expect("a path");
    let mut bytes = [0; 400];
    let mut writer = Writer::new(&mut bytes);
    source_route::emit(&mut writer, next_header::NONE, first, rest).expect("it fits");
    let len = writer.written();
    let mut packet = ping(plan::mesh_addr(0), *first, HEADER_LEN + len, 0);
    packet[6] = next_header::ROUTING;
    packet[HEADER_LEN..].copy_from_slice(&bytes[..len]);
    packet.extend(b"payload");
    let payload_len = (packet.len() - HEADER_LEN) as u16;
    packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
    packet
}

fn means_the_same(theirs: &[u8], ours: &[u8]) -> bool {
    let [Some(one), Some(other)] = [theirs, ours].map(route_of) else {
        return false;
    };
    // All of the fixed header but the length of what follows.
    let is_header_same = theirs[..4] == ours[..4] && theirs[6..40] == ours[6..40];
    is_header_same
        && (one.next_header, one.segments_left) == (other.next_header, other.segments_left)
        && steps_left(theirs) == steps_left(ours)
        && theirs.ends_with(b"payload")
}

/// Knuth's MMIX sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// A unicast address that shares its first bytes with `addr`, any number of them; `n` makes it
    /// unlike the others.
    fn near(&mut self, addr: Ipv6Addr, n: usize) -> Ipv6Addr {
        let mut octets = addr.octets();
        let shared = 1 + self.below(15);
        for octet in &mut octets[shared..] {
            *octet = self.below(256) as u8;
        }
        octets[15] = 2 + n as u8;
        Ipv6Addr::from(octets)
    }
}
