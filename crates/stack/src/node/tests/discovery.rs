//! Router advertisements: addresses, contexts and routes down the chain.

use super::*;

#[test]
fn advertisements_walk_down_the_chain() {
    let world = World::chain(3, Relaying::Fragments);
    for n in 1..=3 {
        let node = &world.nodes[n];
        assert_eq!(node.global_address(), Some(global(n)), "mote {n}");
        let up = NextHop {
            interface: RADIO,
            neighbour: Neighbour::One(link(n - 1).iid()),
        };
        assert_eq!(node.ip().default_route(), Some(up), "mote {n}");
        assert_eq!(world.radio_of(n).contexts().get(1).unwrap().prefix(), HOST);
    }
}

/// Which neighbour is the router follows from what was learnt, not from what was configured.
#[test]
fn frames_to_a_router_that_was_learnt_are_held_as_frames_upwards() {
    let mut world = World::chain(1, Relaying::Fragments);
    let Some(Link::Mesh(radio)) = world.nodes[1].link_mut(RADIO) else {
        panic!("a radio");
    };
    radio.settings_mut().pacing = Pacing {
        pace_percent: 0,
        step: Duration::from_millis(500),
        hops_up: 3,
        hops_down: 0,
    };
    let before = world.frames.len();
    for _ in 0..2 {
        let sent = world.nodes[1].send_datagram((HOST, 7), 7, b"a reading");
        assert_eq!(sent, Ok(()));
    }
    world.poll(1);
    let sent = |world: &World| {
        let frames = world.frames[before..].iter();
        // ACKs are short.
        let readings = frames.filter(|(from, frame)| *from == 1 && frame.len() > 20);
        readings.count()
    };
    world.run_for(Duration::from_millis(700));
    assert_eq!(sent(&world), 1, "a second after the first was taken");
    world.run_for(Duration::from_secs(1));
    assert_eq!(sent(&world), 2);
}

#[test]
fn an_expired_lease_is_passed_on_and_a_new_one_too() {
    let mut world = World::chain(2, Relaying::Fragments);
    let compressing = |world: &World, n| world.radio_of(n).contexts().compressing().count();
    let routes = |world: &World| [1, 2].map(|n| world.nodes[n].ip().default_route().is_some());
    assert_eq!((routes(&world), compressing(&world, 2)), ([true; 2], 2));
    let start = world.now;
    world.deaf = Some((0, start..start + Duration::from_secs(3 * 60 * 60)));
    world.run_for(Duration::from_secs(2 * 60 * 60 - 20));
    assert_eq!(
        routes(&world),
        [true; 2],
        "both leases end together, two hops or one"
    );
    world.run_for(Duration::from_secs(40));
    assert_eq!(routes(&world), [false; 2]);
    assert_eq!((compressing(&world, 1), compressing(&world, 2)), (0, 0));
    assert!(
        world.radio_of(1).contexts().get(0).is_some(),
        "decompresses"
    );
    // Mote 2 still asks, and mote 1 has nothing to tell.
    world.run_for(Duration::from_secs(10 * 60));
    assert_eq!(routes(&world), [false; 2]);
    world.run_for(Duration::from_secs(60 * 60));
    assert_eq!((routes(&world), compressing(&world, 2)), ([true; 2], 2));
    assert_eq!(world.exchange(&packet(global(2), 64, 100)).len(), 1);
}

/// An advertisement of `prefixes`, each with its lifetime, from node `by` in the name of `of`.
fn advertise(world: &mut World, by: usize, of: usize, router_s: u16, prefixes: &[(Ipv6Addr, u32)]) {
    advertise_to(world, (by, of), ip::ALL_NODES, router_s, prefixes);
    world.run_for(Duration::from_millis(500));
}

/// The same to all and then, as the answers to what mote 1 asks, to it alone.
fn confirm(world: &mut World, router_s: u16, prefixes: &[(Ipv6Addr, u32)]) {
    let start = world.now;
    world.deaf = Some((0, start..start + Duration::from_secs(60)));
    advertise(world, 0, 0, router_s, prefixes);
    for _ in 0..10 {
        let to = ip::link_local(link(1).iid());
        advertise_to(world, (0, 0), to, router_s, prefixes);
        world.run_for(Duration::from_secs(1));
    }
    // What mote 1 passes on is asked about in turn.
    world.run_for(Duration::from_secs(10));
    world.deaf = None;
}

/// As [`advertise`], to one or all; nobody has reacted yet.
pub(super) fn advertise_to(
    world: &mut World,
    (by, of): (usize, usize),
    to: Ipv6Addr,
    router_s: u16,
    prefixes: &[(Ipv6Addr, u32)],
) {
    use crate::wire::ndp::{NdpOption, NdpOptions, PrefixInformation};
    let mut options = [0; 100];
    let mut w = crate::wire::cursor::Writer::new(&mut options);
    for (prefix, valid_lifetime_s) in prefixes {
        let information = PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: false,
            valid_lifetime_s: *valid_lifetime_s,
            preferred_lifetime_s: *valid_lifetime_s,
            prefix: *prefix,
        };
        NdpOption::Prefix(information).emit(&mut w).unwrap();
    }
    let len = w.written();
    let message = Message::RouterAdvertisement(icmpv6::RouterAdvertisement {
        hop_limit: 64,
        flags: 0,
        router_lifetime_s: router_s,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: NdpOptions::parse(&options[..len]).unwrap(),
    });
    let mut bytes = [0; 200];
    let src = ip::link_local(link(of).iid());
    let len = ip::icmp::write(&message, src, to, 255, &mut bytes).unwrap();
    let hop = lowpan::LinkPair {
        src: link(by),
        dst: match to.is_multicast() {
            true => LinkAddr::BROADCAST,
            false => link(1),
        },
    };
    let mut payload = [0; PSDU_LEN_MAX];
    let none = lowpan::Contexts::new();
    let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
    let rest = &bytes[headers.uncompressed_len..len];
    let payload = [&payload[..headers.compressed_len], rest].concat();
    world.sequence += 1;
    let frame = frame_from(hop.src, hop.dst, world.sequence as u8, &payload);
    world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
}

/// What mote 1 and mote 2 know: addresses, default routes, contexts, and when they ask again.
fn known(world: &World) -> Vec<(Vec<Address>, Option<NextHop>, lowpan::Contexts)> {
    let of = |n: usize| {
        let ip = world.nodes[n].ip();
        let addresses = ip.addresses().copied().collect();
        (
            addresses,
            ip.default_route(),
            world.radio_of(n).contexts().clone(),
        )
    };
    [1, 2].map(of).to_vec()
}

/// In the router's name, with its link address: to all, to one, many times a second.
#[test]
fn what_is_forged_in_the_routers_name_moves_nothing() {
    let evil = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 0);
    let all = ip::ALL_NODES;
    let one = ip::link_local(link(1).iid());
    // (case, sent to, router lifetime, prefixes with their lifetimes)
    type Case<'a> = (&'a str, &'a [Ipv6Addr], u16, &'a [(Ipv6Addr, u32)]);
    let cases: [Case<'_>; 5] = [
        ("another prefix", &[all], 9_000, &[(evil, 9_000)]),
        ("the same alone", &[one], 9_000, &[(evil, 9_000)]),
        ("both", &[all, one], 9_000, &[(evil, 9_000), (MESH, 0)]),
        ("it stops", &[all, one], 0, &[]),
        ("it stops soon", &[all, one], 20, &[(MESH, 20)]),
    ];
    for (name, to, router_s, prefixes) in cases {
        let mut world = World::chain(2, Relaying::Fragments);
        let before = known(&world);
        let frames = world.frames.len();
        for n in 0..300 {
            advertise_to(&mut world, (0, 0), to[n % to.len()], router_s, prefixes);
            world.run_for(Duration::from_millis(100));
            assert!(known(&world) == before, "{name}, after {n}");
        }
        world.run_for(Duration::from_secs(30));
        assert!(known(&world) == before, "{name}, later");
        // A question, its answer of two frames and their ACKs, every four seconds.
        let asked = world.frames[frames..].iter();
        let asked = asked.filter(|(node, frame)| *node == 1 && frame.len() > 5);
        assert!(
            (1..=10).contains(&asked.clone().count()),
            "{name}: {}",
            asked.count()
        );
    }
}

/// What node 0 advertises from now on.
fn advertises(world: &mut World, advertised: Option<Advertised>) {
    let Some(Link::Mesh(radio)) = world.nodes[0].links.first_mut() else {
        panic!("a radio");
    };
    *radio.advertised_mut() = advertised;
}

/// A router that acknowledges the questions has not gone, even if its answers do not arrive.
#[test]
fn the_router_does_not_stop_while_it_acknowledges() {
    let mut world = World::chain(2, Relaying::Fragments);
    let before = known(&world);
    advertises(&mut world, None);
    for n in 0..60 {
        advertise_to(&mut world, (0, 0), ip::ALL_NODES, 0, &[]);
        world.run_for(Duration::from_secs(1));
        assert!(known(&world) == before, "after {n} s");
    }
    // A router that has gone does not.
    let start = world.now;
    world.deaf = Some((0, start..start + Duration::from_secs(60)));
    for _ in 0..30 {
        advertise_to(&mut world, (0, 0), ip::ALL_NODES, 0, &[]);
        world.run_for(Duration::from_secs(1));
    }
    assert_eq!(world.nodes[1].ip().default_route(), None);
}

/// One that stops goes on to acknowledge frames; asked, it says so, and so does who had it.
#[test]
fn a_router_that_stops_says_so_to_whoever_asks() {
    let mut world = World::chain(2, Relaying::Fragments);
    let stopped = Advertised {
        prefix: MESH,
        lifetime: Duration::ZERO,
    };
    advertises(&mut world, Some(stopped));
    let now = world.now;
    let Node { links, ip, .. } = &mut world.nodes[0];
    let Some(Link::Mesh(radio)) = links.first_mut() else {
        panic!("a radio");
    };
    radio.announce(ip, now);
    world.run_for(Duration::from_secs(30));
    for n in [1, 2] {
        assert_eq!(world.nodes[n].ip().default_route(), None, "mote {n}");
    }
}

#[test]
fn what_the_router_itself_changes_is_known_soon() {
    let mut world = World::chain(2, Relaying::Fragments);
    let prefix = Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 0, 0);
    let now = world.now;
    let Node { links, ip, .. } = &mut world.nodes[0];
    let Some(Link::Mesh(radio)) = links.first_mut() else {
        panic!("a radio");
    };
    *radio.advertised_mut() = radio.advertised_mut().map(|advertised| Advertised {
        prefix,
        ..advertised
    });
    radio.contexts_mut().set(0, prefix, 64, true);
    radio.announce(ip, now);
    world.run_for(Duration::from_secs(12));
    for n in [1, 2] {
        let addr = Some(ip::with_iid(&prefix, link(n).iid()));
        assert_eq!(world.nodes[n].global_address(), addr, "mote {n}");
        assert_eq!(
            world.radio_of(n).contexts().get(0).unwrap().prefix(),
            prefix
        );
    }
}

#[test]
fn only_the_router_itself_is_believed() {
    let mut world = World::chain(2, Relaying::Fragments);
    let evil = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 0);
    let before = world.nodes[1].ip().default_route();
    for (by, of) in [(2, 0), (2, 2)] {
        advertise(&mut world, by, of, 100, &[(evil, 100)]);
        advertise(&mut world, by, of, 0, &[(MESH, 0)]);
        assert_eq!(world.nodes[1].ip().default_route(), before, "{by} as {of}");
        assert_eq!(
            world.nodes[1].global_address(),
            Some(global(1)),
            "{by} as {of}"
        );
    }
    assert_eq!(
        world.nodes[1].ip().counters.dropped(ip::PacketDrop::BadNdp),
        2
    );
}

#[test]
fn a_new_prefix_takes_the_place_of_the_old_all_the_way_down() {
    let mut world = World::chain(2, Relaying::Fragments);
    let prefix = |n: u16| Ipv6Addr::new(0xfd00, 0, 0, n, 0, 0, 0, 0);
    let named = |n: usize, of: u16| Some(ip::with_iid(&prefix(of), link(n).iid()));
    confirm(&mut world, 1000, &[(prefix(7), 1000), (MESH, 1000)]);
    assert_eq!(
        world.nodes[1].global_address(),
        named(1, 1),
        "still among them"
    );
    for round in 2..8 {
        let prefixes = [(prefix(round), 1000), (prefix(99), 1000)];
        confirm(&mut world, 1000, &prefixes);
        for n in [1, 2] {
            assert_eq!(world.nodes[n].global_address(), named(n, round), "mote {n}");
            assert_eq!(world.nodes[n].ip().addresses().count(), 2, "mote {n}");
        }
    }
    confirm(&mut world, 1000, &[(prefix(7), 0)]);
    assert_eq!(world.nodes[1].global_address(), None, "withdrawn");
}

#[test]
fn the_shortest_lifetime_decides_when_to_ask_again() {
    let mut world = World::chain(1, Relaying::Fragments);
    confirm(&mut world, 1000, &[(MESH, 40)]);
    let asks_at = world.radio_of(1).asks_at().unwrap();
    assert!(
        asks_at <= world.now + Duration::from_secs(30),
        "{asks_at:?}"
    );
    // Asked, the border router renews it.
    world.run_for(Duration::from_secs(100));
    assert!(world.nodes[1].ip().default_route().is_some());
    confirm(&mut world, 0, &[]);
    world.run_for(Duration::from_secs(20));
    assert!(world.nodes[1].ip().default_route().is_some(), "asked again");
}

#[test]
fn discovery_from_beyond_the_link_is_dropped() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut out = [0; 100];
    let solicitation = Message::RouterSolicitation {
        options: Default::default(),
    };
    let len = ip::icmp::write(&solicitation, HOST, global(1), 64, &mut out).unwrap();
    assert!(world.exchange(&out[..len]).is_empty());
    assert_eq!(
        world.nodes[1].ip().counters.dropped(ip::PacketDrop::BadNdp),
        1
    );
}

#[test]
fn an_idle_node_has_no_reason_to_wake_but_its_registration_and_its_lease() {
    let world = World::chain(1, Relaying::Fragments);
    let deadline = world.nodes[1].next_deadline().unwrap();
    assert!(
        deadline > world.now + Duration::from_secs(35 * 60),
        "{deadline:?}"
    );
    assert_eq!(world.nodes[world.host()].next_deadline(), None);
}
