//! Two motes with applications at the ends of a chain, and relays between them.

use embassy_futures::select::{Either, select};
use embassy_time::Timer;
use motet::ip::{self, Address, InterfaceId, Ip, Neighbour, NextHop, Prefix, Route};
use motet::link::{Action, Link, Mesh, MeshConfig, MeshStorage};
use motet::node::{ACTION_LEN_MAX, Node};
use motet::random::Rng;
use motet::time::Instant;
use motet::{mac, node};
use motet_embassy::{Config, Radio, Resources, Stack};
use motet_lab::net::plan;

use crate::air::{ChainOfRadios, LabRadio, PROFILE, SharedAir};
use crate::executor::{Executor, now_us};

/// A run's motes and tasks.
pub(crate) struct Run {
    pub(crate) executor: Executor,
    /// At one end of the chain.
    pub(crate) client: Stack,
    /// At the other.
    pub(crate) server: Stack,
    /// The server's address.
    pub(crate) address: std::net::Ipv6Addr,
}

/// What a run is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Setting {
    pub(crate) hops: u16,
    /// The chance that a frame is lost, besides what the air loses.
    pub(crate) frame_loss: f64,
    pub(crate) seed: u64,
}

/// Connections of each mote at one time.
pub(crate) const CONNECTIONS: usize = 2;

impl Run {
    pub(crate) fn new(setting: Setting) -> Self {
        let last = setting.hops;
        let air = ChainOfRadios::new(last + 1, setting.frame_loss, setting.seed);
        let mut executor = Executor::new(air.clone());
        for place in 1..last {
            let relay = relay(place, last, setting.seed);
            executor.spawn(run_relay(relay, LabRadio::new(&air, place)));
        }
        let client = mote(&mut executor, &air, 0, setting.seed, 1.min(last));
        let server = mote(&mut executor, &air, last, setting.seed, last - 1);
        Self {
            executor,
            client,
            server,
            address: plan::mesh_addr(last),
        }
    }
}

impl Run {
    /// Connections of both motes that nobody has and that are not free again; one of the server's
    /// is lent to whoever connects next.
    pub(crate) fn places_lost(&self) -> usize {
        let free = self.client.free_connections();
        let served = self.server.free_connections() + 1;
        (CONNECTIONS - free) + CONNECTIONS.saturating_sub(served)
    }
}

/// A mote with sockets, whose packets leave by `router`.
fn mote(executor: &mut Executor, air: &SharedAir, place: u16, seed: u64, router: u16) -> Stack {
    let resources: &'static Resources<CONNECTIONS, 2048, 1024, 2> =
        Box::leak(Box::new(Resources::new()));
    let mut config = Config::mesh(plan::PAN);
    config.mac.channel = plan::CHANNEL;
    config.mesh = mesh();
    let seed = [seed, u64::from(place) + 1];
    let radio = LabRadio::new(air, place);
    let mote = motet_embassy::new(resources, radio, plan::eui64(place), seed, config);
    let (stack, mut runner) = mote.expect("the radio fits the settings");
    stack.with_node(|node| {
        settle(node, place);
        node.ip_mut().set_default_route(Some(next_hop(router)));
    });
    executor.spawn(async move {
        runner.run().await;
    });
    stack
}

/// A node that passes packets on, for as long as the process lives.
fn relay(place: u16, last: u16, seed: u64) -> Node<'static> {
    let mut rng = Rng::from_seed([seed, u64::from(place) + 1]);
    let mut config = mac::Config::new(plan::PAN, plan::eui64(place));
    config.channel = plan::CHANNEL;
    let storage: &'static mut MeshStorage<12, 4, 8, 2, 2048> =
        Box::leak(Box::new(MeshStorage::EMPTY));
    let radio = (config, PROFILE.capabilities);
    let link = Mesh::new(mesh(), radio, storage.lend(), &mut rng);
    let link = Link::Mesh(link.expect("the radio fits the settings"));
    let links = Box::leak(Box::new([link]));
    let config = ip::Config {
        forwards: true,
        ..ip::Config::default()
    };
    let routes = Box::leak(Box::new([None; 2]));
    let ip = Ip::new(config, routes);
    let mut node = Node::without_tcp(links, ip, rng, Instant::ORIGIN);
    settle(&mut node, place);
    for (end, router) in [(0, place - 1), (last, place + 1)] {
        node.ip_mut().add_route(Route {
            prefix: Prefix::host(plan::mesh_addr(end)),
            next_hop: next_hop(router),
        });
    }
    node
}

/// Gives a node the address and the contexts of the lab's plan.
fn settle(node: &mut Node<'static>, place: u16) {
    node.ip_mut().add_address(Address {
        addr: plan::mesh_addr(place),
        interface: RADIO,
    });
    if let Some(mesh) = node.link_mut(RADIO).and_then(Link::mesh_mut) {
        *mesh.contexts_mut() = plan::contexts();
    }
}

/// Routes are those of the lab's plan: nobody has to find a router.
fn mesh() -> MeshConfig {
    MeshConfig {
        solicits: false,
        registers: false,
        ..MeshConfig::default()
    }
}

fn next_hop(place: u16) -> NextHop {
    NextHop {
        interface: RADIO,
        neighbour: Neighbour::One(plan::link_addr(place).iid()),
    }
}

async fn run_relay(mut node: Node<'static>, mut radio: LabRadio) {
    let (mut psdu, mut out) = ([0; 127], [0; ACTION_LEN_MAX]);
    loop {
        let now = || Instant::from_micros(now_us());
        while let Some((_, action)) = node.poll_action(now(), &mut out) {
            if let Action::Mesh(action) = action {
                radio.perform(action, &out);
            }
        }
        let until = async {
            match node.next_deadline() {
                Some(at) => Timer::at(embassy_time::Instant::from_micros(at.as_micros())).await,
                None => std::future::pending().await,
            }
        };
        if let Either::First(event) = select(radio.event(&mut psdu), until).await {
            node.on_event(RADIO, node::Event::Mesh(event), now());
        }
    }
}

const RADIO: InterfaceId = InterfaceId(0);
