//! Packets through a DODAG: options, source routes and tunnels, as bytes on the air.

use super::*;
use crate::ip::PacketDrop;
use crate::limits::MESH_PACKET_LEN_MAX;
use crate::lowpan::{HeaderForms, LinkPair, fragment::Fragmenter};
use crate::rpl::{self, Candidate, FrameReport, RplRole};
use crate::wire::cursor::Writer;
use crate::wire::icmpv6::unreachable;
use crate::wire::ipv6::{HOP_LIMIT_AT, next_header};
use crate::wire::lowpan_dispatch::{Dispatch, classify};
use crate::wire::rpl::configuration::{COMPRESSED, RPI_0X23};
use crate::wire::rpl_option::{Rpi, TYPE_6553, TYPE_9008};
use crate::wire::source_route;
use crate::wire::{ieee802154, lowpan_frag};

/// The four forms of routing on the air: flags of the DODAG's configuration.
const FORMS: [u8; 4] = [COMPRESSED | RPI_0X23, COMPRESSED, RPI_0X23, 0];

/// A neighbour of everybody that is no node of the mesh.
const STRANGER: usize = 9;

/// How packets go through a mesh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    flags: u8,
    relaying: Relaying,
    forwarding: Forwarding,
}

pub(super) const VARIANTS: [Variant; 5] = [
    of(COMPRESSED | RPI_0X23, Relaying::Fragments, Forwarding::Copy),
    of(0, Relaying::Fragments, Forwarding::Copy),
    of(COMPRESSED, Relaying::Fragments, Forwarding::Immediate),
    of(COMPRESSED, Relaying::Reassembly, Forwarding::Copy),
    of(RPI_0X23, Relaying::Reassembly, Forwarding::Copy),
];

const fn of(flags: u8, relaying: Relaying, forwarding: Forwarding) -> Variant {
    Variant {
        flags,
        relaying,
        forwarding,
    }
}

/// Node `n` of a mesh that forms itself; 0 is the root.
fn member(n: usize, variant: Variant) -> Node<'static> {
    let mut rng = Rng::from_seed([11, n as u64]);
    let config = MeshConfig {
        relaying: variant.relaying,
        forwarding: variant.forwarding,
        solicits: false,
        registers: false,
        ..MeshConfig::default()
    };
    let mac = mac::Config::new(0x4d54, eui(n));
    let capabilities = RadioCapabilities {
        auto_ack: false,
        ..RadioCapabilities::CC2420
    };
    let memory_of_mesh = memory_for(32, (4, MESH_PACKET_LEN_MAX));
    let mut mesh = Mesh::new(config, (mac, capabilities), memory_of_mesh, &mut rng).unwrap();
    mesh.contexts_mut().set(0, MESH, 64, true);
    mesh.contexts_mut().set(1, HOST, 128, true);
    let mut links = std::vec![Link::Mesh(mesh)];
    let config = IpConfig {
        forwards: true,
        ..IpConfig::default()
    };
    let mut ip = Ip::new(config, memory(None, 8));
    if n == 0 {
        links.push(wire());
        ip.add_address(Address {
            addr: WIRED,
            interface: WIRE,
        });
        ip.add_route(route_to_host());
    }
    let tcp = tcp_engine(&mut rng);
    let mut node = Node::new(Vec::leak(links), ip, tcp, rng, Instant::ORIGIN);
    let (role, candidates, steps) = match n {
        0 => {
            let mut root = rpl::Root::new(MESH);
            root.configuration.flags = variant.flags;
            (RplRole::Root(root), 0, 8)
        }
        _ => (RplRole::Router, 8, 0),
    };
    let candidates = (0..candidates).map(|_| Candidate::EMPTY).collect();
    let candidates = Vec::leak(candidates);
    node.start_rpl(
        RADIO,
        role,
        candidates,
        memory(None, steps),
        Instant::ORIGIN,
    );
    node
}

/// The root's address on its wire.
const WIRED: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

/// A chain that has formed itself.
pub(super) fn dodag(hops: usize, variant: Variant) -> World {
    let nodes = (0..=hops).map(|n| member(n, variant)).collect();
    let mut world = World::of(nodes, hops);
    world.poll_all();
    world.run_for(Duration::from_secs(90));
    for n in 1..=hops {
        let parent = world.nodes[n].rpl().unwrap().parent();
        assert_eq!(parent, Some(link(n - 1).iid()), "{variant:?}, mote {n}");
    }
    let known = world.nodes[0].routes_down().count();
    assert_eq!(known, hops, "{variant:?}");
    world.frames.clear();
    world
}

pub(super) fn usual(hops: usize) -> World {
    dodag(hops, VARIANTS[0])
}

/// The RPL option of a packet from rank `rank` up.
pub(super) fn up(rank: u16) -> Rpi {
    Rpi {
        sender_rank: rank * 256,
        ..Rpi::default()
    }
}

fn rank(world: &World, n: usize) -> u16 {
    world.nodes[n].rpl().unwrap().dag_rank()
}

pub(super) fn dropped(world: &World, n: usize, reason: PacketDrop) -> u32 {
    world.nodes[n].ip().counters.dropped(reason)
}

/// A packet that begins with these headers, `payload` behind them.
pub(super) fn with_headers(
    (src, dst): (Ipv6Addr, Ipv6Addr),
    next_header: u8,
    payload: &[u8],
) -> Vec<u8> {
    let header = Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: payload.len() as u16,
        next_header,
        hop_limit: 64,
        src,
        dst,
    };
    let mut packet = std::vec![0; ipv6::HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend(payload);
    packet
}

pub(super) fn echo(src: Ipv6Addr, dst: Ipv6Addr, len: usize) -> Vec<u8> {
    let mut packet = packet(dst, 64, len);
    let data = bytes(len - 48);
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: &data,
    });
    ip::icmp::write(&request, src, dst, 64, &mut packet).unwrap();
    packet
}

/// `inner` within a packet between these.
pub(super) fn tunnelled(ends: (Ipv6Addr, Ipv6Addr), inner: &[u8]) -> Vec<u8> {
    with_headers(ends, next_header::IPV6, inner)
}

/// The bytes of a routing header, and what follows it.
fn routed(next_header: u8, dst: Ipv6Addr, hops: &[Ipv6Addr], payload: &[u8]) -> Vec<u8> {
    let mut out = [0; 200];
    let mut w = Writer::new(&mut out);
    source_route::emit(&mut w, next_header, &dst, hops).unwrap();
    let len = w.written();
    [&out[..len], payload].concat()
}

/// Lets node `to` hear a packet from the neighbour `from`, in as many frames as it takes.
pub(super) fn hear(world: &mut World, (from, to): (usize, usize), packet: &[u8], rpi: Option<Rpi>) {
    let hop = LinkPair {
        src: link(from),
        dst: link(to),
    };
    let contexts = world.radio_of(to).contexts().clone();
    let mut buffer = std::vec![0; MESH_PACKET_LEN_MAX];
    let mut outgoing = Fragmenter::new(&mut buffer);
    outgoing.buffer()[..packet.len()].copy_from_slice(packet);
    let forms = HeaderForms {
        tcp: TcpForm::Plain,
        rpi,
    };
    let tag = 40_000 + world.sequence as u16;
    outgoing
        .start(packet.len(), forms, hop, tag, 80, 10)
        .unwrap();
    let mut frames = Vec::new();
    let mut payload = [0; PSDU_LEN_MAX];
    while let Some(len) = outgoing.next(&contexts, &mut payload).unwrap() {
        frames.push(payload[..len].to_vec());
    }
    for (n, payload) in frames.iter().enumerate() {
        world.sequence += 1;
        let sequence = 100 + world.sequence as u8 % 100;
        let header = ieee802154::Header {
            // So that a relay may wait for the next one.
            frame_pending: n + 1 < frames.len(),
            ..ieee802154::Header::data(0x4d54, hop.dst, hop.src, sequence)
        };
        let mut out = [0; PSDU_LEN_MAX];
        let len = header.emit_frame(payload, &mut out).unwrap();
        let delay = Duration::from_millis(20 * n as u64);
        world.at(delay, to, RADIO, Pending::Frame(out[..len].to_vec()));
    }
    world.run_for(Duration::from_secs(2));
}

/// A packet on the air, or the beginning of one.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) from: usize,
    pub(super) to: LinkAddr,
    header: Header,
    bytes: Vec<u8>,
    rpi: Option<Rpi>,
    /// As the frame carries it, behind a fragment header.
    payload: Vec<u8>,
}

/// What the nodes have said, but for control messages of RPL and neighbour discovery; a frame that
/// was repeated counts once.
pub(super) fn said(world: &World) -> Vec<Heard> {
    let mut heard = Vec::new();
    let mut last = None;
    for (from, frame) in &world.frames {
        let psdu = &frame[..frame.len() - 2];
        let Ok((header, mut payload)) = ieee802154::Header::parse(psdu) else {
            continue;
        };
        let (Some(src), Some(dst)) = (header.src, header.dst) else {
            continue;
        };
        if dst.addr.is_broadcast() || last.replace((from, frame)) == Some((from, frame)) {
            continue;
        }
        let mut size = None;
        if classify(payload) == Ok(Dispatch::Fragment) {
            let (fragment, rest) = lowpan_frag::Header::parse(payload).unwrap();
            if fragment.datagram_offset.is_some() {
                continue;
            }
            (size, payload) = (Some(fragment.datagram_size), rest);
        }
        let hop = LinkPair {
            src: src.addr,
            dst: dst.addr,
        };
        let mut bytes = std::vec![0; 400];
        let contexts = world.radio_of(0).contexts();
        let headers = lowpan::decompress(payload, hop, contexts, size, &mut bytes).unwrap();
        let rest = &payload[headers.compressed_len..];
        bytes.truncate(headers.uncompressed_len);
        bytes.extend(rest);
        let (header, behind) = Header::parse_start(&bytes).unwrap();
        let is_control = header.next_header == icmpv6::NEXT_HEADER
            && matches!(behind.first(), Some(133..=136 | 155));
        if !is_control {
            heard.push(Heard {
                from: *from,
                to: dst.addr,
                header,
                rpi: headers.rpi,
                payload: payload.to_vec(),
                bytes,
            });
        }
    }
    heard
}

pub(super) fn said_by(world: &World, n: usize) -> Vec<Heard> {
    said(world).into_iter().filter(|h| h.from == n).collect()
}

/// The errors that a node has sent, as long as they fit a frame: type, code, and to whom.
fn errors_of(world: &World, n: usize) -> Vec<(u8, u8, Ipv6Addr)> {
    let errors = said_by(world, n).into_iter().filter_map(|heard| {
        let is_error = heard.header.next_header == icmpv6::NEXT_HEADER
            && heard.header.src == global(n)
            && icmpv6::is_error(heard.bytes[40]);
        is_error.then(|| (heard.bytes[40], heard.bytes[41], heard.header.dst))
    });
    errors.collect()
}

pub(super) fn answers_echo(answers: &[Vec<u8>], from: Ipv6Addr, len: usize) -> bool {
    answers.iter().any(|answer| {
        let (src, message) = icmp(answer);
        let is_reply = matches!(message, Message::EchoReply(echo) if echo.data.len() == len - 48);
        src == from && is_reply
    })
}

#[test]
fn packets_go_up_with_an_option_and_down_by_source_routes_in_every_form() {
    for flags in FORMS {
        let mut world = dodag(3, of(flags, Relaying::Fragments, Forwarding::Copy));
        let answers = world.exchange(&packet(global(3), 64, 80));
        assert!(answers_echo(&answers, global(3), 80), "{flags:#x}");
        let said = said(&world);
        let steps: Vec<_> = said.iter().map(|heard| (heard.from, heard.to)).collect();
        let there = [(0, link(1)), (1, link(2)), (2, link(3))];
        let back = [(3, link(2)), (2, link(1)), (1, link(0))];
        assert_eq!(steps, [there, back].concat(), "{flags:#x}");
        let (down, upwards) = said.split_at(3);
        for (heard, hop_limit) in down.iter().zip([64, 63, 62]) {
            assert_eq!(heard.header.src, global(0));
            assert_eq!(heard.header.hop_limit, hop_limit, "of the tunnel");
            // One less than it was before the root passed it on.
            let inner = heard.bytes.len() - 80;
            assert_eq!(heard.bytes[inner + HOP_LIMIT_AT], 63, "within it");
        }
        for heard in upwards {
            let expected = up(rank(&world, heard.from));
            assert_eq!(heard.rpi, Some(expected), "{flags:#x}");
            assert_eq!(heard.header.src, global(3), "no tunnel");
        }
        for heard in &said {
            let is_compressed = flags & COMPRESSED != 0;
            assert_eq!(heard.payload[0] == 0xf1, is_compressed, "{heard:?}");
            if !is_compressed && heard.rpi.is_some() {
                let kind = [TYPE_6553, TYPE_9008][usize::from(flags & RPI_0X23 != 0)];
                let option = [6, kind, 4, 0, 0];
                assert!(heard.payload.windows(5).any(|w| w == option), "{heard:?}");
            }
        }
    }
}

#[test]
fn a_packet_of_the_minimum_mtu_reaches_a_mote_three_hops_away() {
    for variant in VARIANTS {
        let mut world = dodag(3, variant);
        for len in [1280, 1273, 1241, 700] {
            let answers = world.exchange(&packet(global(3), 64, len));
            assert!(answers_echo(&answers, global(3), len), "{variant:?}, {len}");
        }
        let answers = world.exchange(&packet(global(3), 64, 1288));
        let [answer] = &answers[..] else {
            panic!("{} answers", answers.len());
        };
        let (_, message) = icmp(answer);
        assert!(matches!(message, Message::PacketTooBig { mtu: 1280, .. }));
    }
}

/// How many frames each fragmented packet took that a node sent; retries do not count.
fn frames_of_packets(world: &World, node: usize) -> Vec<usize> {
    let mut packets: Vec<(u16, std::collections::BTreeSet<Option<u8>>)> = Vec::new();
    for (_, psdu) in world.frames.iter().filter(|(n, _)| *n == node) {
        let parsed = ieee802154::Header::parse(&psdu[..psdu.len() - 2]);
        let payload = parsed.map_or(&[][..], |(_, payload)| payload);
        let Ok((fragment, _)) = lowpan_frag::Header::parse(payload) else {
            continue;
        };
        let tag = fragment.datagram_tag;
        match packets.iter_mut().rev().find(|(known, _)| *known == tag) {
            Some((_, offsets)) => {
                offsets.insert(fragment.datagram_offset);
            }
            None => packets.push((tag, [fragment.datagram_offset].into())),
        }
    }
    packets.iter().map(|(_, offsets)| offsets.len()).collect()
}

#[test]
fn segments_fill_the_frames_that_they_may_at_every_hop() {
    static SETTINGS: tcp::Config = tcp::Config::DEFAULT;
    for variant in VARIANTS {
        for (from, to, target, port) in [(3, 4, HOST, 9), (4, 3, global(3), 10)] {
            let mut world = dodag(3, variant);
            let sent = [7; 8_000];
            transfer_with(&mut world, (from, to, (target, port)), &sent, &SETTINGS);
            for hop in 1..=3 {
                let node = if from == 4 { hop - 1 } else { hop };
                let frames = frames_of_packets(&world, node);
                let full = frames.iter().filter(|frames| **frames == 5).count();
                let case = std::format!("{variant:?} from {from}, node {node}: {frames:?}");
                assert!(
                    full >= 12 && frames.iter().all(|frames| *frames <= 5),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn motes_reach_each_other_through_the_root() {
    for variant in VARIANTS {
        let mut world = dodag(3, variant);
        transfer(&mut world, 3, 2, global(2), &bytes(2_000));
        transfer(&mut world, 2, 3, global(3), &bytes(2_000));
    }
}

#[test]
fn a_packet_for_a_mote_that_lost_its_address_does_not_go_to_and_fro() {
    let mut world = usual(1);
    let prefix = Prefix {
        addr: MESH,
        len: 64,
    };
    world.nodes[1].ip_mut().remove_addresses(RADIO, prefix);
    world.exchange(&packet(global(1), 64, 80));
    assert!(said(&world).len() <= 3, "{:?}", said(&world));
}

#[test]
fn a_packet_against_the_ranks_is_flagged_first_and_then_dropped() {
    for flags in FORMS {
        for len in [70, 300] {
            let mut world = dodag(2, of(flags, Relaying::Fragments, Forwarding::Copy));
            let own = rank(&world, 1);
            let packet = echo(global(STRANGER), HOST, len);
            // From a child: as it should be.
            hear(&mut world, (STRANGER, 1), &packet, Some(up(own + 1)));
            let heard = said_by(&world, 1);
            assert_eq!(heard[0].rpi, Some(up(own)), "{flags:#x}, {len}");
            // From an equal or from above: flagged, and passed on.
            for (rank, dropped_before) in [(own, 0), (own - 1, 1)] {
                world.frames.clear();
                hear(&mut world, (STRANGER, 1), &packet, Some(up(rank)));
                let heard = said_by(&world, 1);
                let flagged = Rpi {
                    rank_error: true,
                    ..up(own)
                };
                assert_eq!(heard[0].rpi, Some(flagged), "{flags:#x}, {len}");
                // The root has no rank to contradict.
                assert_eq!(dropped(&world, 0, PacketDrop::Loop), 0);
                // For the second time.
                world.frames.clear();
                let again = Rpi {
                    rank_error: true,
                    ..up(rank)
                };
                hear(&mut world, (STRANGER, 1), &packet, Some(again));
                assert_eq!(dropped(&world, 1, PacketDrop::Loop), dropped_before + 1);
                let is_packet = |heard: &Heard| heard.header.dst == HOST;
                assert!(!said_by(&world, 1).iter().any(is_packet));
                world.run_for(Duration::from_secs(120));
            }
            // One of another instance goes nowhere.
            let other = Rpi {
                instance: 7,
                ..up(own + 1)
            };
            world.frames.clear();
            hear(&mut world, (STRANGER, 1), &packet, Some(other));
            assert_eq!(dropped(&world, 1, PacketDrop::Instance), 1);
            assert!(said_by(&world, 1).is_empty());
        }
    }
}

/// A node's option carries its rank of that moment, even if RPL has had no message since.
#[test]
fn a_rank_that_changes_is_in_the_next_option() {
    let mut world = usual(2);
    let before = rank(&world, 2);
    for _ in 0..8 {
        let now = world.now;
        let rpl = world.nodes[2].rpl_mut().unwrap();
        rpl.on_sent(link(1).iid(), FrameReport::of(7, true), now);
        world.run_for(Duration::from_millis(20));
    }
    assert!(rank(&world, 2) > before);
    for n in 0..=2 {
        let place = world.nodes[n].ip().rpl().place().unwrap();
        assert_eq!(place.rank, rank(&world, n), "node {n}");
    }
}

/// Mote 1 takes its own child for its router: the child's next packet shows it.
#[test]
fn a_loop_of_two_ends_with_the_packet_that_shows_it() {
    let mut world = usual(2);
    let wrong = NextHop {
        interface: RADIO,
        neighbour: Neighbour::One(link(2).iid()),
    };
    world.nodes[1].ip_mut().set_default_route(Some(wrong));
    let now = world.now;
    let buffers = Buffers::new(memory(0, 512), memory(0, 512));
    world.nodes[2]
        .connect((HOST, 9), buffers, &SETTINGS, now)
        .unwrap();
    world.run_for(Duration::from_millis(200));
    let packets = said(&world);
    let of_tcp = |heard: &&Heard| heard.header.src == global(2) && heard.header.dst == HOST;
    assert_eq!(packets.iter().filter(of_tcp).count(), 1, "{packets:?}");
    assert_eq!(dropped(&world, 1, PacketDrop::SentBack), 1);
}

#[test]
fn a_foreign_tunnel_is_not_opened() {
    let inner = echo(HOST, global(2), 60);
    let answers_nothing = |world: &mut World, packet: &[u8], name: &str| {
        world.frames.clear();
        let answers = world.exchange(packet);
        assert!(!answers_echo(&answers, global(2), 60), "{name}");
        let is_inner = |heard: &Heard| heard.header.src == HOST && heard.header.dst == global(2);
        assert!(!said(world).iter().any(is_inner), "{name}");
    };
    let mut world = usual(3);
    // From beyond the mesh, to each address of the root, and to motes one and more hops away.
    for (name, dst) in [
        ("wire", WIRED),
        ("root", global(0)),
        ("mote 1", global(1)),
        ("mote 3", global(3)),
    ] {
        for src in [HOST, global(STRANGER), global(3)] {
            answers_nothing(&mut world, &tunnelled((src, dst), &inner), name);
        }
    }
    // From a neighbour that is not the root.
    let before = dropped(&world, 1, PacketDrop::Tunnel);
    world.frames.clear();
    let packet = tunnelled((global(STRANGER), global(1)), &inner);
    hear(&mut world, (STRANGER, 1), &packet, None);
    assert_eq!(dropped(&world, 1, PacketDrop::Tunnel), before + 1);
    assert!(said_by(&world, 1).is_empty());
    // In the root's name: what would go up again, another tunnel, a source route.
    let onward = echo(HOST, global(1), 60);
    let onward = routed(next_header::IPV6, global(1), &[global(2)], &onward);
    for (name, inner) in [
        ("up", echo(global(2), HOST, 60)),
        ("nested", tunnelled((global(0), global(1)), &inner)),
        (
            "routed",
            with_headers((HOST, global(1)), next_header::ROUTING, &onward),
        ),
    ] {
        let before = dropped(&world, 1, PacketDrop::Tunnel);
        world.frames.clear();
        let packet = tunnelled((global(0), global(1)), &inner);
        hear(&mut world, (STRANGER, 1), &packet, None);
        let is_answer = |heard: &Heard| heard.header.src == global(1);
        let (answers, others): (Vec<_>, Vec<_>) =
            said_by(&world, 1).into_iter().partition(is_answer);
        assert!(others.is_empty(), "{name}: {others:?}");
        assert!(answers.len() <= 1, "{name}");
        // What is not opened at all is of a protocol that a mote does not have.
        let after = dropped(&world, 1, PacketDrop::Tunnel);
        assert_eq!(after - before, u32::from(name != "nested"), "{name}");
    }
}

/// RFC 9008 §7.1.4: a router tunnels what a node without RPL sends up; the root opens that.
#[test]
fn a_packet_without_an_option_goes_up_within_a_tunnel() {
    for variant in VARIANTS {
        for len in [80, 1_280] {
            let mut world = dodag(2, variant);
            let packet = echo(global(STRANGER), HOST, len);
            hear(&mut world, (STRANGER, 2), &packet, None);
            let heard = said(&world);
            let up = heard.iter().filter(|heard| heard.from > 0);
            let ends = up.map(|heard| (heard.header.src, heard.header.dst));
            let expected = [(global(2), global(0)); 2];
            assert!(ends.eq(expected), "{variant:?}, {len}: {heard:?}");
            assert_eq!(world.nodes[0].ip().counters.forwarded, 1, "{variant:?}");
        }
    }
}

#[test]
fn a_source_route_from_beyond_the_mesh_is_refused_at_its_border() {
    let mut world = usual(3);
    for (n, (dst, next)) in (0..).zip([(1, 2), (2, 3), (3, 2)]) {
        let request = echo(HOST, global(next), 60);
        let payload = routed(
            icmpv6::NEXT_HEADER,
            global(dst),
            &[global(next)],
            &request[40..],
        );
        let packet = with_headers((HOST, global(dst)), next_header::ROUTING, &payload);
        let answers = world.exchange(&packet);
        assert!(answers.is_empty());
        assert!(said(&world).is_empty(), "{:?}", said(&world));
        assert_eq!(dropped(&world, 0, PacketDrop::ExtensionHeader), 2 * n + 1);
        // Nor does one leave it.
        let payload = routed(icmpv6::NEXT_HEADER, HOST, &[global(3)], &request[40..]);
        let packet = with_headers((global(3), HOST), next_header::ROUTING, &payload);
        hear(&mut world, (STRANGER, 0), &packet, Some(up(20)));
        assert_eq!(dropped(&world, 0, PacketDrop::ExtensionHeader), 2 * n + 2);
        world.frames.clear();
        assert_eq!(world.nodes[0].ip().counters.forwarded, 0);
    }
}

/// RFC 6554 §4.2, in one frame, in fragments that a relay passes on, and gathered first.
#[test]
fn hostile_source_routes_are_refused() {
    let link_local = ip::link_local(link(2).iid());
    let multicast = ip::ALL_NODES;
    let outside = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 3);
    let (problem, unreachable) = (Some((4, 0)), Some((1, unreachable::SOURCE_ROUTE)));
    // Names, the addresses behind the first, a change of the header, and the error due.
    type Case<'c> = (&'c str, &'c [Ipv6Addr], fn(&mut [u8]), Option<(u8, u8)>);
    let cases: [Case<'_>; 12] = [
        ("own address", &[global(1), global(2)], |_| (), problem),
        (
            "own address again",
            &[global(2), global(1), global(3)],
            |_| (),
            problem,
        ),
        (
            "own link-local address",
            &[global(2), ip::link_local(link(1).iid())],
            |_| (),
            problem,
        ),
        ("multicast", &[multicast, global(2)], |_| (), None),
        ("link-local", &[link_local, global(2)], |_| (), None),
        ("outside", &[outside, global(2)], |_| (), unreachable),
        (
            "more segments than addresses",
            &[global(2), global(3)],
            |header| header[3] = 3,
            problem,
        ),
        (
            "CmprI that leaves no whole address",
            &[global(2), global(3)],
            |header| header[4] = 0xcf,
            problem,
        ),
        (
            "CmprE that leaves no whole address",
            &[global(2), global(3)],
            |header| header[4] = 0xf3,
            problem,
        ),
        ("type 0", &[global(2)], |header| header[2] = 0, problem),
        ("type 2", &[global(2)], |header| header[2] = 2, problem),
        (
            "padding beyond the header",
            &[global(2), global(3)],
            |header| header[5] = 0xf0,
            problem,
        ),
    ];
    for variant in VARIANTS {
        let mut world = dodag(2, variant);
        for len in [20, 400] {
            for (name, hops, change, error) in cases {
                world.frames.clear();
                let before = dropped(&world, 1, PacketDrop::ExtensionHeader);
                let mut payload = routed(59, global(1), hops, &bytes(len));
                change(&mut payload);
                let ends = (global(0), global(1));
                let packet = with_headers(ends, next_header::ROUTING, &payload);
                hear(&mut world, (0, 1), &packet, None);
                let context = (variant, len, name);
                let expected = error.map(|(kind, code)| (kind, code, global(0)));
                let errors = errors_of(&world, 1);
                assert_eq!(errors, Vec::from_iter(expected), "{context:?}");
                let others = said_by(&world, 1);
                assert_eq!(others.len(), errors.len(), "{context:?}: {others:?}");
                let after = dropped(&world, 1, PacketDrop::ExtensionHeader);
                assert_eq!(after - before, u32::from(error.is_none()), "{context:?}");
            }
            // And one that is as it should be.
            world.frames.clear();
            let payload = routed(59, global(1), &[global(2)], &bytes(len));
            let packet = with_headers((global(0), global(1)), next_header::ROUTING, &payload);
            hear(&mut world, (0, 1), &packet, None);
            assert_eq!(said_by(&world, 1)[0].to, link(2), "{variant:?}, {len}");
        }
    }
}

#[test]
fn the_root_hears_of_a_step_that_does_not_answer_and_forgets_it() {
    for variant in VARIANTS {
        for len in [80, 600] {
            let mut world = dodag(3, variant);
            let now = world.now;
            world.deaf = Some((3, now..now + Duration::from_secs(40)));
            let child = link(3).iid();
            let knows = |world: &World| {
                let mut steps = world.nodes[0].routes_down();
                steps.any(|step| step.child == child)
            };
            // One frame that is given up loses a packet: on a busy link that happens.
            world.exchange(&packet(global(3), 64, len));
            assert_eq!(errors_of(&world, 2), [], "{variant:?}, {len}");
            assert!(knows(&world), "{variant:?}, {len}");
            // The router's own probes of routes may come between the frames.
            let mut errors = Vec::new();
            for _ in 0..3 {
                world.exchange(&packet(global(3), 64, len));
                errors.extend(errors_of(&world, 2));
                if !errors.is_empty() {
                    break;
                }
            }
            let expected = (1, unreachable::SOURCE_ROUTE, global(0));
            assert!(errors.contains(&expected), "{variant:?}, {len}: {errors:?}");
            assert!(!knows(&world), "{variant:?}, {len}");
            // The mote was away for some seconds only: it is not lost until its next DAO is due.
            world.run_for(Duration::from_secs(60));
            let answers = world.exchange(&packet(global(3), 64, len));
            assert!(answers_echo(&answers, global(3), len), "{variant:?}, {len}");
        }
    }
}

/// A DAO about mote `target` that this parent leads to, for so many minutes.
fn dao(target: Ipv6Addr, parent: Ipv6Addr, (sequence, lifetime): (u8, u8)) -> Vec<u8> {
    use crate::wire::rpl::{self, Dao, RplOption, RplOptions, Target, Transit};
    let mut options = [0; 64];
    let mut w = Writer::new(&mut options);
    let target_option = RplOption::Target(Target {
        prefix_len: 128,
        prefix: target,
    });
    let transit = RplOption::Transit(Transit {
        external: false,
        path_control: 0x80,
        sequence,
        lifetime,
        parent: Some(parent),
    });
    for option in [target_option, transit] {
        option.emit(&mut w).unwrap();
    }
    let len = w.written();
    let dao = rpl::Message::Dao(Dao {
        instance: 0,
        ack_requested: false,
        sequence: 1,
        dodag: None,
        options: RplOptions::parse(&options[..len]).unwrap(),
    });
    let mut message = [0; 100];
    let mut w = Writer::new(&mut message);
    dao.emit(&mut w).unwrap();
    let len = w.written();
    let other = Message::Other {
        kind: message[0],
        code: message[1],
        body: &message[4..len],
    };
    let mut packet = std::vec![0; 200];
    let len = ip::icmp::write(&other, target, global(0), 64, &mut packet).unwrap();
    packet.truncate(len);
    packet
}

/// One forged DAO silenced a mote until its own next one, minutes later.
#[test]
fn a_forged_dao_silences_nobody() {
    let nobody = ip::with_iid(&MESH, [9; 8]);
    for (name, by, target, parent, lifetime) in [
        ("by another neighbour", STRANGER, 2, global(1), 30),
        ("below nobody", 1, 3, nobody, 30),
        ("a loop", 1, 2, global(3), 30),
        ("as the root's own neighbour", 1, 3, global(0), 30),
        ("gone, by another neighbour", STRANGER, 3, global(2), 0),
    ] {
        let mut world = usual(3);
        let steps = |world: &World| -> Vec<_> { world.nodes[0].routes_down().copied().collect() };
        let before = steps(&world);
        let child = link(target).iid();
        let known = before.iter().find(|step| step.child == child).unwrap();
        let sequence = crate::wire::lollipop::next(known.sequence);
        let forged = dao(global(target), parent, (sequence, lifetime));
        hear(&mut world, (by, 0), &forged, Some(up(20)));
        assert_eq!(steps(&world), before, "{name}");
        let rpl = world.nodes[0].rpl().unwrap();
        assert_eq!(rpl.dropped(rpl::MessageDrop::StrangeWay), 1, "{name}");
        let answers = world.exchange(&packet(global(3), 64, 80));
        assert!(answers_echo(&answers, global(3), 80), "{name}");
    }
    // By the way that a mote's own takes it is believed, but the root asks whether that is true.
    let mut world = usual(3);
    let known = world.nodes[0]
        .routes_down()
        .find(|step| step.child == link(3).iid());
    let sequence = crate::wire::lollipop::next(known.unwrap().sequence);
    let forged = dao(global(3), global(2), (sequence, 0));
    hear(&mut world, (1, 0), &forged, Some(up(20)));
    assert_eq!(world.nodes[0].routes_down().count(), 2);
    world.run_for(Duration::from_secs(15));
    let answers = world.exchange(&packet(global(3), 64, 80));
    assert!(answers_echo(&answers, global(3), 80));
}

/// An error about a route of nobody's takes no step away.
#[test]
fn an_untrue_report_of_a_broken_route_changes_nothing() {
    let cases = [
        ("not this root's packet", HOST, global(3), global(2)),
        ("of another router's child", global(0), global(3), global(1)),
        (
            "of a mote that is not there",
            global(0),
            global(8),
            global(2),
        ),
    ];
    for (name, src, dst, from) in cases {
        let mut world = usual(3);
        let invoking = with_headers((src, dst), next_header::NONE, &[]);
        let error = Message::DestinationUnreachable {
            code: unreachable::SOURCE_ROUTE,
            invoking: &invoking,
        };
        let mut packet = [0; 200];
        let len = ip::icmp::write(&error, from, global(0), 64, &mut packet).unwrap();
        hear(&mut world, (1, 0), &packet[..len], Some(up(20)));
        assert_eq!(world.nodes[0].routes_down().count(), 3, "{name}");
        // Nor does one that comes another way than its sender's packets.
        let mut strange = [0; 200];
        let invoking = with_headers((global(0), global(3)), next_header::NONE, &[]);
        let error = Message::DestinationUnreachable {
            code: unreachable::SOURCE_ROUTE,
            invoking: &invoking,
        };
        let len = ip::icmp::write(&error, global(2), global(0), 64, &mut strange).unwrap();
        hear(&mut world, (STRANGER, 0), &strange[..len], Some(up(20)));
        assert_eq!(world.nodes[0].routes_down().count(), 3, "{name}");
        // Nor does one that comes from beyond the mesh.
        let mut true_one = [0; 200];
        let invoking = with_headers((global(0), global(3)), next_header::NONE, &[]);
        let error = Message::DestinationUnreachable {
            code: unreachable::SOURCE_ROUTE,
            invoking: &invoking,
        };
        let len = ip::icmp::write(&error, global(2), global(0), 64, &mut true_one).unwrap();
        world.exchange(&true_one[..len]);
        assert_eq!(world.nodes[0].routes_down().count(), 3, "{name}");
    }
}

#[test]
fn hop_limits_count_within_and_without_a_tunnel() {
    for flags in FORMS {
        let mut world = dodag(3, of(flags, Relaying::Fragments, Forwarding::Copy));
        // The relays count the tunnel's.
        let answers = world.exchange(&packet(global(3), 2, 80));
        assert!(answers_echo(&answers, global(3), 80), "{flags:#x}");
        let answers = world.exchange(&packet(global(3), 1, 80));
        let (_, message) = icmp(&answers[0]);
        assert!(
            matches!(message, Message::TimeExceeded { .. }),
            "{flags:#x}"
        );
        // A tunnel that is at its end on the way.
        for len in [20, 400] {
            let payload = routed(59, global(1), &[global(2), global(3)], &bytes(len));
            let ends = (global(0), global(1));
            let mut packet = with_headers(ends, next_header::ROUTING, &payload);
            packet[HOP_LIMIT_AT] = 1;
            world.frames.clear();
            hear(&mut world, (0, 1), &packet, None);
            assert_eq!(errors_of(&world, 1), [(3, 0, global(0))], "{flags:#x}");
        }
    }
}

/// A tunnel's outer congestion mark is copied into the inner header (RFC 6040 §4.2).
#[test]
fn marks_of_congestion_come_out_of_a_tunnel() {
    for flags in FORMS {
        for (inner_ecn, outer_ecn, is_dropped) in [
            (0, 0, false),
            (0, 3, true),
            (1, 3, false),
            (2, 3, false),
            (3, 2, false),
        ] {
            let mut world = dodag(1, of(flags, Relaying::Fragments, Forwarding::Copy));
            let mut inner = echo(HOST, global(1), 60);
            inner[1] |= inner_ecn << 4;
            let mut packet = tunnelled((global(0), global(1)), &inner);
            packet[1] |= outer_ecn << 4;
            hear(&mut world, (0, 1), &packet, None);
            let counted = dropped(&world, 1, PacketDrop::Congestion);
            let context = (flags, inner_ecn, outer_ecn);
            assert_eq!(counted == 1, is_dropped, "{context:?}");
            assert_eq!(said_by(&world, 1).is_empty(), is_dropped, "{context:?}");
        }
    }
}

/// Hop-by-hop options that hold more than the RPL option are the packet's own.
#[test]
fn hop_by_hop_options_with_more_than_rpls_stay_in_their_packet() {
    for flags in FORMS {
        let option = [TYPE_6553, 4, 0, 0, 0x14, 0];
        let more = [&[58, 1][..], &option, &[1, 6, 0, 0, 0, 0, 0, 0]].concat();
        // Up, and out of the mesh.
        let mut world = dodag(2, of(flags, Relaying::Fragments, Forwarding::Copy));
        let request = echo(global(STRANGER), HOST, 60);
        let payload = [&more[..], &request[40..]].concat();
        let packet = with_headers((global(STRANGER), HOST), next_header::HOP_BY_HOP, &payload);
        hear(&mut world, (STRANGER, 2), &packet, Some(up(20)));
        let heard = said_by(&world, 1);
        assert_eq!(heard[0].bytes[40..], payload, "{flags:#x}");
        assert_eq!(heard[0].rpi, Some(up(rank(&world, 1))));
        assert_eq!(world.nodes[0].ip().counters.forwarded, 1);
        // In front of a source route, and at its end.
        let mut chain = routed(icmpv6::NEXT_HEADER, global(1), &[global(2)], &[]);
        let request = echo(global(0), global(2), 60);
        chain.extend(&request[40..]);
        let mut payload = [&more[..], &chain].concat();
        payload[0] = next_header::ROUTING;
        let ends = (global(0), global(1));
        let packet = with_headers(ends, next_header::HOP_BY_HOP, &payload);
        world.frames.clear();
        hear(&mut world, (0, 1), &packet, None);
        let onward = &said_by(&world, 1)[0];
        assert_eq!((onward.to, onward.header.dst), (link(2), global(2)));
        let reply = &said_by(&world, 2)[0];
        assert_eq!(reply.header.dst, global(0), "{flags:#x}");
        assert_eq!(reply.bytes[40], 129, "an echo reply");
    }
}

/// RFC 8200 §4.2: each router on a source route is the packet's destination, and reads its options.
#[test]
fn options_before_a_source_route_are_obeyed() {
    for (kind, error) in [(0x5e, None), (0x9e, Some((4, 2))), (0xde, Some((4, 2)))] {
        let mut world = usual(2);
        let option = [next_header::ROUTING, 0, kind, 4, 0, 0, 0, 0];
        let route = routed(59, global(1), &[global(2)], &bytes(20));
        let payload = [&option[..], &route].concat();
        let ends = (global(0), global(1));
        let packet = with_headers(ends, next_header::HOP_BY_HOP, &payload);
        hear(&mut world, (0, 1), &packet, None);
        let expected = error.map(|(kind, code)| (kind, code, global(0)));
        assert_eq!(errors_of(&world, 1), Vec::from_iter(expected), "{kind:#x}");
        let others = said_by(&world, 1).len() - errors_of(&world, 1).len();
        assert_eq!(others, 0, "{kind:#x}");
        let drops = dropped(&world, 1, PacketDrop::ExtensionHeader);
        assert_eq!(drops, u32::from(error.is_none()), "{kind:#x}");
    }
}
