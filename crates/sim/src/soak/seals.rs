//! Link security in a run: the rules that must hold for all senders, and a tally.
//!
//! Place: `mesh` draws the key and the attackers; `lab` calls the check after each step.
//! Left out: the effects that a forged or replayed frame would have if it were accepted.

use std::collections::BTreeMap;

use motet::mac::{FrameDrop, Mac};

use crate::net::network::Network;

/// The key sequences and frame counters that nodes have believed so far, by node.
#[derive(Debug, Default)]
pub(super) struct Seals(BTreeMap<usize, Believed>);

/// The highest key sequence that a node has accepted, and the last frame counter that it has
/// accepted from each neighbour. Neither may decrease, even after a reboot.
#[derive(Debug, Default)]
struct Believed {
    sequence: u32,
    counters: BTreeMap<[u8; 8], u32>,
}

impl Seals {
    /// Judges what nodes have sent and believed.
    ///
    /// # Errors
    /// Which rule was broken.
    pub(super) fn check(&mut self, network: &Network<'_>) -> Result<(), String> {
        let world = &network.world;
        let (repeated, _) = world.nonces();
        if repeated > 0 {
            return Err("a nonce came again with another frame".to_owned());
        }
        if network.network_key().is_none() {
            return Ok(());
        }
        if world.forgeries_believed() > 0 {
            return Err("a forged frame was believed".to_owned());
        }
        for node in 0..network.mesh_nodes() {
            let security = network.mac(node).and_then(|mac| mac.security());
            let Some(security) = security.filter(|it| !it.is_locked() && world.is_on(node)) else {
                continue;
            };
            let before = self.0.entry(node).or_default();
            let sequence = security.sequence();
            if sequence < before.sequence {
                return Err(format!("node {node} went back to key {sequence}"));
            }
            before.sequence = sequence;
            for (addr, counter) in security.neighbours() {
                let last = before.counters.insert(addr, counter);
                if let Some(last) = last.filter(|last| counter < *last) {
                    return Err(format!(
                        "node {node} believed frame {counter} of {addr:02x?} after frame {last}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The counters of nodes with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SealTally {
    /// Copies sealed.
    pub sealed: u64,
    /// Frames whose MIC was right.
    pub opened: u64,
    /// Frames whose MIC was wrong.
    pub forged: u64,
    /// Frames whose counter had been used.
    pub replayed: u64,
    /// Frames of those that had proved nothing.
    pub unproven: u64,
    /// Frames that were not decrypted, because too many strangers sent some.
    pub rationed: u64,
    /// Neighbours that have proved that they have the key.
    pub proven: u64,
    /// Later keys taken.
    pub rotations: u64,
}

impl SealTally {
    pub(super) fn of(mac: &Mac<'_>) -> Self {
        let Some(security) = mac.security() else {
            return Self::default();
        };
        let counters = security.counters();
        let dropped = |why| u64::from(mac.counters().dropped(why));
        Self {
            sealed: counters.sealed.into(),
            opened: counters.opened.into(),
            forged: dropped(FrameDrop::Forged),
            replayed: dropped(FrameDrop::Replayed),
            unproven: dropped(FrameDrop::Unproven),
            rationed: dropped(FrameDrop::Rationed),
            proven: counters.proven.into(),
            rotations: counters.rotations.into(),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.sealed += other.sealed;
        self.opened += other.opened;
        self.forged += other.forged;
        self.replayed += other.replayed;
        self.unproven += other.unproven;
        self.rationed += other.rationed;
        self.proven += other.proven;
        self.rotations += other.rotations;
    }
}
