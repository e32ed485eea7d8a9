//! A node with two radios, each on a channel of its own.
//!
//! ```text
//! border router 0 ~~~ relay 1 / its second radio, 2 ~~~ mote 3
//!            channel 11           channel 26
//! ```

use motet::ip::InterfaceId;

use super::*;
use crate::air::gains::{ChainAir, Gains};
use crate::apps::content::Content;
use crate::apps::{Ends, Receiver, Sender};
use crate::net::network::{NodeOptions, Parent};
use crate::net::world::{Conditions, World};

const NEAR: u8 = 11;
const FAR: u8 = 26;

/// The second interface of the relay.
const SECOND: InterfaceId = InterfaceId(1);

fn options() -> NetworkOptions {
    let nodes = (0..4_usize).map(|n| {
        let mut node = NodeOptions::new(n.to_string());
        node.parent = n.checked_sub(1).map_or(Parent::Shortest, Parent::Node);
        node
    });
    let mut options = NetworkOptions::new(nodes.collect(), Gains::chain(4, ChainAir::CALIBRATED));
    options.joining = Joining::Static;
    options
}

/// The relay: the radios of nodes 1 and 2 in one node.
fn relay<'m>(builder: Builder<'_, 'm>) -> Resident<'m> {
    let mut rng = stream(1, 1, Purpose::Stack);
    let mut fresh = NodeMemory::default();
    let radios = [1, 2].map(|n| Link::Mesh(builder.radio(n, &mut fresh, &mut rng)));
    let route = Route {
        prefix: Prefix::host(plan::mesh_addr(3)),
        next_hop: NextHop {
            interface: SECOND,
            neighbour: Neighbour::One(plan::link_addr(3).iid()),
        },
    };
    let config = ip::Config {
        forwards: true,
        ..ip::Config::default()
    };
    let mut ip = Ip::new(config, builder.arena.alloc_slice_fill_iter([Some(route)]));
    ip.add_address(Address {
        addr: plan::mesh_addr(1),
        interface: RADIO,
    });
    ip.set_default_route(Some(NextHop {
        interface: RADIO,
        neighbour: Neighbour::One(plan::link_addr(0).iid()),
    }));
    let tcp = tcp(&mut fresh, builder.arena, [1, 1, 1], &mut rng);
    let interfaces = builder.arena.alloc_slice_fill_iter(radios);
    let port = |interface, n: u16| {
        let options = &builder.options.nodes[usize::from(n)];
        Port::Air(RadioPort {
            interface,
            profile: options.profile,
            filter: Filter {
                pan: plan::PAN,
                extended: plan::eui64(n),
                short: options.mac.short,
            },
            channel: options.channel,
        })
    };
    Resident {
        node: Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN),
        // Not in the order of the interfaces: nothing may depend on it.
        ports: vec![port(SECOND, 2), port(RADIO, 1)],
        app: App::None,
    }
}

#[test]
fn a_node_with_two_radios_relays_from_one_to_the_other() {
    let arena = Arena::new();
    let mut options = options();
    let tree = options.tree().unwrap();
    for (n, node) in options.nodes.iter_mut().enumerate() {
        node.channel = if n < 2 { NEAR } else { FAR };
    }
    let builder = Builder::new(&options, &tree, plan::MESH_PREFIX, &arena);
    let residents = vec![
        builder.mesh_node(0, NodeMemory::default()),
        relay(builder),
        builder.mesh_node(3, NodeMemory::default()),
    ];
    // Four radios hear each other alike: only channels keep them apart.
    let gains = Gains::from_fn(4, |_, _| ChainAir::CALIBRATED.one_hop_db);
    let conditions = Conditions {
        seed: 1,
        frame_loss: 0.0,
    };
    let mut world = World::new(residents, &gains, None, conditions);
    let ends = |peer| Ends::mote(&arena, peer, 4);
    let receiver = Receiver::new(7, ends(plan::mesh_addr(3)));
    world.set_app(0, App::Receiver(receiver));
    let to = (plan::ROUTER_WIRED, 7);
    let sender = Sender::new(Content::made([1, 0], 20_000), to, ends(to.0));
    world.set_app(2, App::Sender(sender));
    world.run_until(Instant::ORIGIN + Duration::from_secs(60));
    let App::Receiver(receiver) = world.app(0) else {
        panic!("it was given one")
    };
    assert_eq!(receiver.received, 20_000);
    assert!(receiver.progress.finished.is_some());
    // The relay's first port is place 1 on the air, the other the one behind all nodes.
    let frames = |from, to| world.links().find(|(link, _)| *link == (from, to));
    for (from, to) in [(2, 1), (1, 2), (3, 0), (0, 3)] {
        assert!(frames(from, to).is_some(), "{from} to {to}");
    }
    assert_eq!(world.links().count(), 4);
}

#[test]
fn each_node_draws_from_a_stream_of_its_own_also_where_motes_come_later() {
    let arena = Arena::new();
    let places = |absent: &[usize]| -> Vec<u32> {
        let mut options = options();
        options.absent = absent.iter().copied().collect();
        let tree = options.tree().unwrap();
        let builder = Builder::new(&options, &tree, plan::MESH_PREFIX, &arena);
        // Behind the motes three hosts.
        let places = (0..options.nodes.len() + 3).map(|at| builder.place(at));
        places.collect()
    };
    for absent in [&[][..], &[3], &[2, 3]] {
        let places = places(absent);
        let draws = |place: &u32| stream(1, *place, Purpose::Stack).next_u64();
        let streams: std::collections::BTreeSet<u64> = places.iter().map(draws).collect();
        assert_eq!(streams.len(), places.len(), "{absent:?}: {places:?}");
        let there = (0..places.len()).filter(|at| !absent.contains(at));
        let of_those: Vec<u32> = there.map(|at| places[at]).collect();
        let before: Vec<u32> = (0..of_those.len() as u32).collect();
        assert_eq!(of_those, before, "as without {absent:?}");
    }
}
