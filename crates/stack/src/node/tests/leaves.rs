//! A node without RPL below a mesh that has it: how its router learns of it, and forgets it.

use super::routing::{echo, hear, up};
use super::*;
use crate::ip::Iid;
use crate::rpl::{self, Candidate, RplRole};
use crate::udp::Inbox;
use crate::wire::cursor::Writer;
use crate::wire::rpl as wire;

/// The router, and the leaf below it.
const ROUTER: usize = 1;
const LEAF: usize = 2;
const PORT: u16 = 9;

/// What a node is in the DODAG.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Root,
    Router,
    Leaf,
}

/// Node `n`, which begins now. `places`: its memory for registrations.
fn member(n: usize, kind: Kind, places: usize, now: Instant) -> Node<'static> {
    let mut rng = Rng::from_seed([12, n as u64]);
    let config = MeshConfig {
        solicits: kind == Kind::Leaf,
        advertised: (kind == Kind::Root).then_some(Advertised {
            prefix: MESH,
            lifetime: Advertised::LIFETIME,
        }),
        ..MeshConfig::default()
    };
    let mac = mac::Config::new(0x4d54, eui(n));
    let capabilities = RadioCapabilities {
        auto_ack: false,
        ..RadioCapabilities::CC2420
    };
    let memory_of_mesh = MeshMemory {
        registrations: memory(Registration::EMPTY, places),
        ..memory_for(32, (4, crate::limits::MESH_PACKET_LEN_MAX))
    };
    let mut mesh = Mesh::new(config, (mac, capabilities), memory_of_mesh, &mut rng).unwrap();
    let mut links = Vec::new();
    if kind == Kind::Root {
        mesh.contexts_mut().set(0, MESH, 64, true);
        mesh.contexts_mut().set(1, HOST, 128, true);
    }
    links.push(Link::Mesh(mesh));
    let config = IpConfig {
        forwards: kind != Kind::Leaf,
        ..IpConfig::default()
    };
    let mut ip = Ip::new(config, memory(None, 4));
    if kind == Kind::Root {
        links.push(wire());
        ip.add_route(route_to_host());
    }
    let tcp = tcp_engine(&mut rng);
    let mut node = Node::new(Vec::leak(links), ip, tcp, rng, now);
    node.set_inbox(Inbox::new(&[PORT], memory(0, 1_000)));
    let (role, candidates, steps) = match kind {
        Kind::Root => (RplRole::Root(rpl::Root::new(MESH)), 0, 8),
        Kind::Router => (RplRole::Router, 8, 0),
        Kind::Leaf => return node,
    };
    let candidates = (0..candidates).map(|_| Candidate::EMPTY).collect();
    node.start_rpl(RADIO, role, Vec::leak(candidates), memory(None, steps), now);
    node
}

/// A root, a router and a leaf in a row, a minute after they began.
fn row(places: usize) -> World {
    let nodes = std::vec![
        member(0, Kind::Root, 4, Instant::ORIGIN),
        member(ROUTER, Kind::Router, places, Instant::ORIGIN),
        member(LEAF, Kind::Leaf, 0, Instant::ORIGIN),
    ];
    let mut world = World::of(nodes, 2);
    world.poll_all();
    world.run_for(Duration::from_secs(60));
    world
}

/// The router of the leaf, as the root knows it.
fn step(world: &World) -> Option<Iid> {
    let mut steps = world.nodes[0].routes_down();
    let step = steps.find(|step| step.child == link(LEAF).iid())?;
    assert!(step.is_leaf);
    Some(step.parent)
}

fn answers_ping(world: &mut World) -> bool {
    // A packet of several frames, which the tunnel makes longer.
    world.exchange(&packet(global(LEAF), 64, 300)).len() == 1
}

#[test]
fn a_leaf_is_reached_through_its_router() {
    let mut world = row(4);
    let router = &world.nodes[ROUTER];
    let way = router.ip().next_hop(&global(LEAF), RADIO);
    assert_eq!(way.unwrap().neighbour, Neighbour::One(link(LEAF).iid()));
    assert_eq!(step(&world), Some(link(ROUTER).iid()));
    for n in [ROUTER, LEAF] {
        let context = world.radio_of(n).contexts().get(1).unwrap();
        assert_eq!(context.prefix(), HOST, "node {n}");
    }
    assert!(answers_ping(&mut world));
    // What RPL leads has asked one router for contexts, and registered with none.
    assert_eq!(world.radio_of(0).registrations().count(), 0);
}

#[test]
fn a_registration_that_ends_is_taken_back_by_a_dao() {
    let mut world = row(4);
    let start = world.now;
    // Another node stands in its place.
    world.nodes[LEAF] = member(9, Kind::Router, 0, start);
    world.run_for(Duration::from_secs(58 * 60));
    assert!(step(&world).is_some());
    world.run_for(Duration::from_secs(4 * 60));
    let registered = world.radio_of(ROUTER).is_registered(link(LEAF).iid());
    assert!(!registered);
    let steps = world.nodes[0].routes_down();
    let leaves = steps.filter(|step| step.is_leaf);
    assert_eq!(leaves.count(), 0);
}

#[test]
fn a_router_that_began_anew_registers_its_leaf_when_that_speaks() {
    let mut world = row(4);
    let now = world.now;
    world.nodes[ROUTER] = member(ROUTER, Kind::Router, 4, now);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.radio_of(ROUTER).registrations().count(), 0);
    let sent = world.nodes[LEAF].send_datagram((HOST, PORT), PORT, b"a reading");
    assert_eq!(sent, Ok(()));
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.radio_of(ROUTER).registrations().count(), 1);
    assert_eq!(step(&world), Some(link(ROUTER).iid()));
    assert!(answers_ping(&mut world));
    // It knows the leaf now, and reminds it no more.
    for _ in 0..5 {
        let sent = world.nodes[LEAF].send_datagram((HOST, PORT), PORT, b"a reading");
        assert_eq!(sent, Ok(()));
        world.run_for(Duration::from_secs(100));
    }
    let counters = world.radio_of(ROUTER).registration_counters();
    assert_eq!(counters.accepted, 1);
}

#[test]
fn a_root_that_began_anew_hears_of_the_leaf_again() {
    let mut world = row(4);
    let now = world.now;
    world.nodes[0] = member(0, Kind::Root, 4, now);
    world.run_for(Duration::from_secs(60));
    assert_eq!(step(&world), Some(link(ROUTER).iid()));
    assert!(answers_ping(&mut world));
}

/// Whatever the root has lost, and nobody knows: a packet of the leaf shows that its answers have no
/// way.
#[test]
fn a_root_that_has_lost_the_leaf_asks_for_routes_when_that_speaks() {
    let mut world = row(4);
    let until = world.now + Duration::from_secs(1 << 30);
    world.nodes[0].ip.rpl_mut().expire(until);
    world.run_for(Duration::from_secs(60));
    assert_eq!(step(&world), None, "nobody says anything by itself");
    let speak = |world: &mut World| {
        let sent = world.nodes[LEAF].send_datagram((HOST, PORT), PORT, b"a reading");
        assert_eq!(sent, Ok(()));
    };
    speak(&mut world);
    world.run_for(Duration::from_secs(30));
    assert_eq!(step(&world), Some(link(ROUTER).iid()));
    assert!(answers_ping(&mut world));
    // For an address that is made up the root asks once an hour, though packets come from it each
    // four seconds; two of them are asked for a minute apart.
    let made_up = |world: &mut World, mote: usize, times: usize| {
        let before = requests(world);
        for _ in 0..times {
            let packet = echo(global(mote), HOST, 60);
            hear(world, (ROUTER, 0), &packet, Some(up(2)));
            world.run_for(Duration::from_secs(2));
        }
        requests(world).wrapping_sub(before)
    };
    assert_eq!(made_up(&mut world, 7, 1_800), 2, "requests in two hours");
    assert_eq!(made_up(&mut world, 8, 40), 1, "another one");
    // What comes to the root itself counts alike.
    world.run_for(Duration::from_secs(2 * 3_600));
    let before = requests(&world);
    let packet = echo(global(9), global(0), 60);
    hear(&mut world, (ROUTER, 0), &packet, Some(up(2)));
    world.run_for(Duration::from_secs(10));
    assert_eq!(requests(&world).wrapping_sub(before), 1);
}

/// The root's DTSN, which each request for all routes raises.
fn requests(world: &World) -> u8 {
    let mut bytes = [0; 100];
    let mut w = Writer::new(&mut bytes);
    let dio = rpl::ControlMessage::Dio { full: false };
    world.nodes[0].rpl().unwrap().emit(dio, &mut w).unwrap();
    let len = w.written();
    match wire::Message::parse(bytes[1], &bytes[4..len]) {
        Ok(wire::Message::Dio(dio)) => dio.dtsn,
        other => panic!("{other:?}"),
    }
}

/// A leaf loses its memory twice: below the root, and below a router, where a later transaction of
/// it is known. Back below the root it begins to count where it began in its first life.
#[test]
fn a_leaf_without_its_memory_is_found_below_a_router_of_its_former_life() {
    let leaf = |now| member(LEAF, Kind::Leaf, 0, now);
    let nodes = std::vec![
        member(0, Kind::Root, 4, Instant::ORIGIN),
        leaf(Instant::ORIGIN),
        member(9, Kind::Leaf, 0, Instant::ORIGIN),
    ];
    let mut world = World::of(nodes, 2);
    world.poll_all();
    world.run_for(Duration::from_secs(5));
    assert_eq!(step(&world), Some(link(0).iid()));
    let now = world.now;
    world.nodes[1] = member(ROUTER, Kind::Router, 4, now);
    world.nodes[2] = leaf(now);
    world.run_for(Duration::from_secs(30));
    assert_eq!(step(&world), Some(link(ROUTER).iid()));
    assert!(!world.radio_of(0).is_registered(link(LEAF).iid()));
    let now = world.now;
    world.nodes[1] = leaf(now);
    world.nodes[2] = member(9, Kind::Leaf, 0, now);
    world.run_for(Duration::from_secs(15));
    assert_eq!(step(&world), Some(link(0).iid()));
}

/// A router without memory for registrations does not answer to them, and the leaf goes on with it.
#[test]
fn a_router_that_lends_no_memory_registers_nobody() {
    let mut world = row(0);
    assert_eq!(world.radio_of(ROUTER).registrations().count(), 0);
    assert_eq!(step(&world), None);
    let leaf = &world.nodes[LEAF];
    assert_eq!(leaf.global_address(), Some(global(LEAF)));
    assert!(leaf.ip().default_route().is_some());
    let before = world.frames.len();
    world.run_for(Duration::from_secs(10 * 60));
    let asked = world.frames[before..].iter();
    let asked = asked.filter(|(node, frame)| *node == LEAF && frame.len() > 5);
    assert_eq!(asked.count(), 0, "it does not ask on and on");
}

#[test]
fn a_leaf_of_the_root_itself_needs_no_dao() {
    let nodes = std::vec![
        member(0, Kind::Root, 4, Instant::ORIGIN),
        member(1, Kind::Leaf, 0, Instant::ORIGIN),
    ];
    let mut world = World::of(nodes, 1);
    world.poll_all();
    world.run_for(Duration::from_secs(60));
    let steps: Vec<_> = world.nodes[0].routes_down().copied().collect();
    assert_eq!(steps.len(), 1);
    assert_eq!(
        (steps[0].child, steps[0].parent),
        (link(1).iid(), link(0).iid())
    );
    assert_eq!(world.exchange(&packet(global(1), 64, 300)).len(), 1);
}

/// A neighbour of the router registers ever anew: the root hears of it twice a second at most.
#[test]
fn a_leaf_that_registers_ever_anew_does_not_flood_the_root() {
    use crate::wire::ndp::{AddressRegistration, NdpOption, NdpOptions};
    let mut world = row(4);
    let before = world.nodes[0].ip().counters.delivered;
    for n in 0..200u16 {
        let owner = eui(LEAF);
        let registration = AddressRegistration {
            status: 0,
            opaque: 0,
            opaque_use: 0,
            reachable: true,
            transaction: Some((n % 128) as u8),
            lifetime_min: 60,
            owner: &owner,
        };
        let mut options = [0; 64];
        let mut w = Writer::new(&mut options);
        NdpOption::SourceLinkAddr(link(LEAF)).emit(&mut w).unwrap();
        NdpOption::AddressRegistration(registration)
            .emit(&mut w)
            .unwrap();
        let len = w.written();
        let message = Message::NeighborSolicitation {
            target: global(LEAF),
            options: NdpOptions::parse(&options[..len]).unwrap(),
        };
        let mut bytes = [0; 200];
        let (src, dst) = (link(LEAF).iid(), link(ROUTER).iid());
        let (src, dst) = (ip::link_local(src), ip::link_local(dst));
        let len = ip::icmp::write(&message, src, dst, 255, &mut bytes).unwrap();
        let hop = lowpan::LinkPair {
            src: link(LEAF),
            dst: link(ROUTER),
        };
        let mut payload = [0; PSDU_LEN_MAX];
        let none = lowpan::Contexts::new();
        let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
        let rest = &bytes[headers.uncompressed_len..len];
        let payload = [&payload[..headers.compressed_len], rest].concat();
        let frame = frame_from(hop.src, hop.dst, n as u8, &payload);
        world.at(Duration::ZERO, ROUTER, RADIO, Pending::Frame(frame));
        world.run_for(Duration::from_millis(50));
    }
    let heard = world.nodes[0].ip().counters.delivered - before;
    assert!((5..=24).contains(&heard), "{heard} in ten seconds");
    let dropped = |reason| world.nodes[ROUTER].ip().counters.dropped(reason);
    assert!(
        dropped(ip::PacketDrop::TooMany) > 50,
        "and answers to it are counted"
    );
    assert_eq!(world.radio_of(ROUTER).registrations().count(), 1);
}

/// What is to be said of its leaf waits until the mote itself has spoken; nothing else waits for
/// that.
#[test]
fn a_mote_that_is_to_speak_for_its_leaf_anew_keeps_its_timers() {
    let mut world = row(4);
    let refresh = |node: &mut Node<'_>| node.rpl_mut().map(rpl::Rpl::refresh_routes);
    assert!(refresh(&mut world.nodes[0]).is_some());
    world.poll_all();
    for step in 0..5_000 {
        world.run_for(Duration::from_millis(1));
        let router = &world.nodes[ROUTER];
        let routing = router.rpl().and_then(rpl::Rpl::next_deadline);
        if let Some(at) = routing.filter(|at| *at > world.now) {
            let own = router.next_deadline();
            assert!(
                own.is_some_and(|own| own <= at),
                "{step} ms: {own:?}, {at:?}"
            );
        }
    }
}
