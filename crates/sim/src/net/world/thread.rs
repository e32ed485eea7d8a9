//! A Thread router in the place of a node's stack, and the short addresses of children.
//!
//! Purpose: a node with a router has a radio and a wire as a border router has; what comes by
//! either goes to the router, and its orders to the radio and its packets to the wire. Children
//! get their short addresses from it, which their radios have to filter by.

use motet::time::Instant;

use super::port::{Attached, Kind};
use super::{Mote, World};
use crate::net::network::mac_of;
use crate::thread::Router;

impl<'m> World<'m> {
    /// Puts a Thread router in the place of a node's stack; all other nodes with a radio may be
    /// its children.
    pub fn set_thread_router(&mut self, mote: usize, router: Router) {
        self.motes[mote].thread = Some(Box::new(router));
        self.has_thread = true;
        self.drive(mote, self.now());
    }

    /// The Thread router of a node.
    pub fn thread_router(&self, mote: usize) -> Option<&Router> {
        self.motes.get(mote)?.thread.as_deref()
    }

    /// Lets the caller act on a Thread router, which then does what follows.
    pub fn with_thread_router<T>(
        &mut self,
        mote: usize,
        act: impl FnOnce(&mut Router, Instant) -> T,
    ) -> Option<T> {
        let now = self.now();
        let router = self.motes.get_mut(mote)?.thread.as_deref_mut()?;
        let result = act(router, now);
        self.drive(mote, now);
        Some(result)
    }

    /// Carries out the orders of a node's Thread router, and sends its packets down the wire;
    /// returns whether there were any.
    pub(super) fn act_for_thread(&mut self, mote: usize, buffer: &mut [u8], now: Instant) -> bool {
        let mut acted = false;
        loop {
            let Mote { thread, ports, .. } = &mut self.motes[mote];
            let Some(router) = thread else {
                return acted;
            };
            if let Some(action) = router.poll_action(now, buffer) {
                acted = true;
                if let Some(radio) = ports.iter_mut().find_map(Attached::radio_mut) {
                    radio.command(action, buffer, &mut self.air, now);
                }
            } else if let Some(packet) = router.poll_packet() {
                acted = true;
                self.send(mote, &packet, now);
            } else {
                return acted;
            }
        }
    }

    /// Lets a child's radio accept frames to the short address that the child has now.
    pub(super) fn follow_short_address(&mut self, mote: usize) {
        let Mote { node, ports, .. } = &mut self.motes[mote];
        let Some(mac) = mac_of(node) else {
            return;
        };
        let short = mac.config().short;
        let radio = ports.iter_mut().find_map(|port| match &mut port.kind {
            Kind::Air(radio) => Some(radio),
            _ => None,
        });
        if let Some(radio) = radio
            && radio.short() != short
        {
            let before = radio.set_short(short);
            self.air.rename((before, short), radio.place());
        }
    }
}
