//! The begin of a flow of kind `push`.

use std::net::Ipv6Addr;

use motet::random::Rng;

use super::model::{FlowEnd, PushSettings, Scenario, Schedule, Transport};
use crate::Arena;
use crate::apps::push::{BlockPusher, Order, Pusher, Target};
use crate::apps::{App, Ends};
use crate::coap::push::Mode;
use crate::net::moves;
use crate::net::network::Network;

/// The begin of one mote's part of a push.
pub(super) struct Start<'f, 'm> {
    /// Whether it is the first of the push: then the host begins, too.
    pub(super) is_first: bool,
    pub(super) image: Vec<u8>,
    /// The host's place in the world, and the mote's.
    pub(super) nodes: [usize; 2],
    pub(super) push: &'f PushSettings,
    pub(super) rng: Rng,
    pub(super) arena: &'m Arena,
}

impl<'m> Start<'_, 'm> {
    /// Adds what runs at both ends; returns its places.
    pub(super) fn run(
        self,
        scenario: &Scenario,
        network: &mut Network<'m>,
        [sending, receiving]: [Ends<'m>; 2],
    ) -> [usize; 2] {
        let [host, mote] = self.nodes;
        let arena = self.arena;
        let takes = match self.push.transport {
            Transport::Tcp => App::firmware(receiving, self.push.mss_frames),
            Transport::Coap | Transport::Qblock => App::block_taker(arena),
        };
        let takes = network.world.add_app(mote, takes);
        if self.is_first {
            let pushes = self.pusher(scenario, network, sending);
            return [network.world.add_app(host, pushes), takes];
        }
        let mut apps = network.world.apps(host).iter();
        // The motes of a push begin at the same moment, so the last one is theirs.
        let is_pusher = |app: &App<'_>| matches!(app, App::Pusher(_) | App::BlockPusher(_));
        [apps.rposition(is_pusher).unwrap_or_default(), takes]
    }

    fn pusher(self, scenario: &Scenario, network: &Network<'m>, ends: Ends<'m>) -> App<'m> {
        let targets = targets(scenario, network, self.push);
        let mode = match self.push.transport {
            Transport::Tcp => {
                let order = order(self.push.schedule);
                let now = network.world.now();
                return App::Pusher(Pusher::new(self.image, targets, order, ends, now));
            }
            Transport::Coap => Mode::Block1,
            Transport::Qblock => Mode::QBlock1,
        };
        let motes = targets.iter().map(|target| target.addr);
        let in_turn = self.push.schedule == Schedule::Sequential;
        let blocks = (mode, self.push.block_bytes);
        let pusher = BlockPusher::new(self.image, motes, in_turn, blocks, self.rng, self.arena);
        App::BlockPusher(pusher)
    }
}

/// The motes of the push that begins with flow `first`, with their sources as parents are now.
pub(super) fn targets(
    scenario: &Scenario,
    network: &Network<'_>,
    push: &PushSettings,
) -> Vec<Target> {
    let flows = scenario.flows.iter().skip(push.first).take(push.motes);
    let motes: Vec<usize> = flows
        .filter_map(|flow| match flow.to {
            FlowEnd::Node(mote) => Some(mote),
            FlowEnd::Host => None,
        })
        .collect();
    let target = |mote: &usize| {
        let way = moves::way_up(network, *mote).unwrap_or_default();
        let source = way.iter().find(|above| motes.contains(above));
        let source = source.filter(|_| push.schedule == Schedule::Tree);
        // A neighbour is reached without any route by its link-local address.
        let source_addr = source.map(|source| {
            let addr = network.addr(*source);
            match way.first() == Some(source) {
                true => link_local(addr),
                false => addr,
            }
        });
        Target {
            addr: network.addr(*mote),
            source: source.and_then(|source| motes.iter().position(|mote| mote == source)),
            source_addr,
        }
    };
    motes.iter().map(target).collect()
}

fn link_local(addr: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c, d] = addr.segments();
    Ipv6Addr::new(0xfe80, 0, 0, 0, a, b, c, d)
}

/// The order of a schedule.
pub(super) const fn order(schedule: Schedule) -> Order {
    match schedule {
        Schedule::Sequential => Order::InTurn,
        Schedule::Parallel => Order::AtOnce,
        Schedule::Tree => Order::Tree,
    }
}
