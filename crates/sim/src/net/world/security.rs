//! The processor time of a node's cipher, and the frame counters that it stores so that they
//! outlive a reboot.
//!
//! Purpose: the stack counts the calls of its cipher, and its host stores bounds of frame counters.
//! Here both take effect: calls take time, and a node that is switched on again goes on behind its
//! bound. Left out: how long storing takes; flash writes a page in some milliseconds, and the stack
//! asks for the next counters while half of the last ones are left.

use motet::ip::InterfaceId;
use motet::mac::security::Reservation;
use motet::node::Action;
use motet::time::{Duration, Instant};
use motet_state::Past;

use super::joiner::Joiner;
use super::port::Attached;
use super::{Mote, World};
use crate::net::counter_store::CounterStore;
use crate::net::network::mac_of;

/// The host's side of one node's link security.
#[derive(Debug, Default)]
pub(super) struct SecurityState {
    /// The last reservation of frame counters, which outlives a reboot.
    stored: Option<Reservation>,
    /// The store by which the counters outlive the run, and the node's EUI-64 there.
    counter_store: Option<(CounterStore, [u8; 8])>,
    /// The duration of a call of the cipher.
    call: Duration,
    /// Calls that the processor has spent its time on.
    charged: u32,
    /// How the node gets its key, or gives others theirs.
    pub(super) joiner: Option<Joiner>,
}

impl SecurityState {
    /// Stores a node's reservation; returns whether it is stored.
    fn store(&mut self, reservation: Reservation) -> bool {
        let past = Past {
            sequence: reservation.sequence,
            counter: reservation.counter,
            number: 0,
        };
        let counter_store = self.counter_store.as_ref();
        let is_stored = counter_store.is_none_or(|(file, eui64)| file.store(*eui64, past));
        if is_stored {
            self.stored = Some(reservation);
        }
        is_stored
    }
}

impl World<'_> {
    /// The frame counters that a node has stored, in all its lives.
    pub fn stored(&self, mote: usize) -> Option<Reservation> {
        self.motes.get(mote)?.security.stored
    }

    /// Lets a node's counters outlive the run, under its EUI-64.
    pub fn set_counter_store(&mut self, mote: usize, counter_store: CounterStore, eui64: [u8; 8]) {
        let security = &mut self.motes[mote].security;
        security.stored = Some(counter_store.reservation(eui64));
        security.counter_store = Some((counter_store, eui64));
    }

    /// Sets the time that a call of a node's cipher takes.
    pub fn set_cipher(&mut self, mote: usize, call: Duration) {
        self.motes[mote].security.call = call;
    }
}

impl Mote<'_> {
    /// The node's next action, once the reservation that it asks for is stored and its cipher has
    /// had its time.
    pub(super) fn poll_action(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<(InterfaceId, Action)> {
        loop {
            let action = self.node.poll_action(now, buffer);
            self.charge(now);
            if action.is_some() || !(self.store(now) | self.join(now)) {
                return action;
            }
        }
    }

    /// Stores the node's reservations; returns whether there were any.
    fn store(&mut self, now: Instant) -> bool {
        let mut acted = false;
        while let Some((interface, reservation)) = self.node.poll_reservation(now) {
            let is_stored = self.security.store(reservation);
            self.node
                .on_reserved(interface, reservation, is_stored, now);
            acted = true;
        }
        acted
    }

    /// Does what is due in joining; returns whether anything was.
    fn join(&mut self, now: Instant) -> bool {
        let Self { security, node, .. } = self;
        let stored = security.stored;
        let joiner = security.joiner.as_mut();
        joiner.is_some_and(|joiner| joiner.step(node, stored, now))
    }

    /// Lets the processor spend the time that the cipher has taken since the last call.
    fn charge(&mut self, now: Instant) {
        let security = mac_of(&self.node).and_then(|mac| mac.security());
        let Some(calls) = security.map(|security| security.counters().cipher_calls) else {
            return;
        };
        let before = std::mem::replace(&mut self.security.charged, calls);
        // A stack that has just started counts anew.
        let new = calls.checked_sub(before).unwrap_or(calls);
        let radio = self.ports.iter_mut().find_map(Attached::radio_mut);
        if let Some(radio) = radio.filter(|_| new > 0) {
            radio.occupy(self.security.call.saturating_mul(new.into()), now);
        }
    }
}
