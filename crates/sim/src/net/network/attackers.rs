//! Attackers beside nodes of a network: the addresses and settings that they know, and the nodes
//! that hear them.

use super::NetworkOptions;
use crate::air::gains::{Gain, Gains};
use crate::air::medium::Placement;
use crate::net::attack::Target;
use crate::net::topology::Tree;
use crate::net::world::World;
use crate::ordered;

impl NetworkOptions {
    /// Puts attackers on the air: each is heard as the node is that it is near, and by that node as
    /// well as any other is.
    pub(super) fn set_attackers(&self, world: &mut World<'_>, gains: &Gains, tree: &Tree) {
        for attacker in &self.attackers {
            let near = attacker.near;
            let Some(node) = self.nodes.get(near) else {
                continue;
            };
            let mut listeners = gains.listeners(near).to_vec();
            let loudest = listeners.iter().map(|gain| gain.db);
            let db = loudest.fold(f64::NEG_INFINITY, f64::max);
            listeners.push(Gain { to: near, db });
            ordered::sort_by_key(&mut listeners, |gain| gain.to);
            let parent = tree.parent(near);
            let children = (0..self.nodes.len()).filter(|n| tree.parent(*n) == Some(near));
            let target = Target {
                addr: self.link_addr(near),
                neighbours: parent
                    .into_iter()
                    .chain(children)
                    .map(|n| self.link_addr(n))
                    .collect(),
                seal: None,
                routing: None,
            };
            let placement = Placement {
                transmit_dbm: node.profile.transmit_dbm,
                noise_dbm: node.profile.noise_dbm(),
                channel: node.channel,
            };
            world.add_attacker(attacker, target, (&placement, &listeners), self.seed);
        }
    }
}
