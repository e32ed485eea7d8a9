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
            neighbour: Some(link(n - 1)),
        };
        assert_eq!(node.ip().default_route(), Some(up), "mote {n}");
        assert_eq!(world.radio_of(n).contexts.get(1).unwrap().prefix(), HOST);
    }
}

#[test]
fn an_expired_lease_is_passed_on_and_a_new_one_too() {
    let mut world = World::chain(2, Relaying::Fragments);
    let compressing = |world: &World, n| world.radio_of(n).contexts.compressing().count();
    let routes = |world: &World| [1, 2].map(|n| world.nodes[n].ip().default_route().is_some());
    assert_eq!((routes(&world), compressing(&world, 2)), ([true; 2], 2));
    let start = world.now;
    world.deaf = Some((0, start..start + Duration::from_secs(3 * 60 * 60)));
    world.run_for(Duration::from_secs(2 * 60 * 60 - 10));
    assert_eq!(
        routes(&world),
        [true; 2],
        "both leases end together, two hops or one"
    );
    world.run_for(Duration::from_secs(30));
    assert_eq!(routes(&world), [false; 2]);
    assert_eq!((compressing(&world, 1), compressing(&world, 2)), (0, 0));
    assert!(world.radio_of(1).contexts.get(0).is_some(), "decompresses");
    // Mote 2 still asks, and mote 1 has nothing to tell.
    world.run_for(Duration::from_secs(10 * 60));
    assert_eq!(routes(&world), [false; 2]);
    world.run_for(Duration::from_secs(60 * 60));
    assert_eq!((routes(&world), compressing(&world, 2)), ([true; 2], 2));
    assert_eq!(world.exchange(&packet(global(2), 64, 100)).len(), 1);
}

/// An advertisement of `prefixes`, each with its lifetime, from node `by` in the name of `of`.
fn advertise(world: &mut World, by: usize, of: usize, router_s: u16, prefixes: &[(Ipv6Addr, u32)]) {
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
    let len = ip::icmp::write(&message, src, ip::ALL_NODES, 255, &mut bytes).unwrap();
    let hop = lowpan::LinkPair {
        src: link(by),
        dst: LinkAddr::BROADCAST,
    };
    let mut payload = [0; PSDU_LEN_MAX];
    let none = lowpan::Contexts::new();
    let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
    let rest = &bytes[headers.uncompressed_len..len];
    let payload = [&payload[..headers.compressed_len], rest].concat();
    let header = crate::wire::ieee802154::Header::data(0x4d54, hop.dst, hop.src, 5);
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit_frame(&payload, &mut out).unwrap();
    let frame = Pending::Frame(out[..len].to_vec());
    world.at(Duration::ZERO, 1, RADIO, frame);
    world.run_for(Duration::from_millis(500));
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
    assert_eq!(world.nodes[1].ip().counters.dropped(ip::Drop::BadNdp), 2);
}

#[test]
fn a_new_prefix_takes_the_place_of_the_old_all_the_way_down() {
    let mut world = World::chain(2, Relaying::Fragments);
    let prefix = |n: u16| Ipv6Addr::new(0xfd00, 0, 0, n, 0, 0, 0, 0);
    let named = |n: usize, of: u16| Some(ip::with_iid(&prefix(of), link(n).iid()));
    advertise(&mut world, 0, 0, 1000, &[(prefix(7), 1000), (MESH, 1000)]);
    assert_eq!(
        world.nodes[1].global_address(),
        named(1, 1),
        "still among them"
    );
    for round in 2..12 {
        let prefixes = [(prefix(round), 1000), (prefix(99), 1000)];
        advertise(&mut world, 0, 0, 1000, &prefixes);
        for n in [1, 2] {
            assert_eq!(world.nodes[n].global_address(), named(n, round), "mote {n}");
            assert_eq!(world.nodes[n].ip().addresses().count(), 2, "mote {n}");
        }
    }
    advertise(&mut world, 0, 0, 1000, &[(prefix(11), 0)]);
    assert_eq!(world.nodes[1].global_address(), None, "withdrawn");
}

#[test]
fn the_shortest_lifetime_decides_when_to_ask_again() {
    let mut world = World::chain(1, Relaying::Fragments);
    advertise(&mut world, 0, 0, 1000, &[(MESH, 40)]);
    let asks_at = world.radio_of(1).solicitor.next_deadline().unwrap();
    assert!(
        asks_at <= world.now + Duration::from_secs(30),
        "{asks_at:?}"
    );
    // Asked, the border router renews it.
    world.run_for(Duration::from_secs(100));
    assert!(world.nodes[1].ip().default_route().is_some());
    advertise(&mut world, 0, 0, 0, &[]);
    world.run_for(Duration::from_secs(5));
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
    assert_eq!(world.nodes[1].ip().counters.dropped(ip::Drop::BadNdp), 1);
}

#[test]
fn an_idle_node_has_no_reason_to_wake_but_its_lease() {
    let world = World::chain(1, Relaying::Fragments);
    let deadline = world.nodes[1].next_deadline().unwrap();
    assert!(
        deadline > world.now + Duration::from_secs(60 * 60),
        "{deadline:?}"
    );
    assert_eq!(world.nodes[world.host()].next_deadline(), None);
}
