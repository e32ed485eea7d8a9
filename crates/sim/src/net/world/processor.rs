//! The processor time of a node's work above its driver: for each frame, and for each segment of
//! TCP.
//!
//! Purpose: the instructions for both were counted (`cargo xtask peers`), and a profile has their
//! time. Place: called once a node has done all it can. The time counts for duty cycle and charge,
//! and delays no frame: the delay until a frame is on the air is part of the driver's constants,
//! which were fitted on whole frames. Left out: datagrams above IP, applications, and a host on a
//! wire.
//! Flash is another matter: while it is erased or written nothing runs at all.

use motet::time::{Duration, Instant};

use super::Mote;
use super::port::Attached;
use crate::apps::App;
use crate::net::network::mac_of;

/// The work of a node up to the last charge of its processor: attempts to send a frame, frames
/// received, and segments of TCP sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work([u32; 3]);

impl Mote<'_> {
    /// Charges the processor with what was done since the last call.
    pub(super) fn charge_work(&mut self) {
        let Some(mac) = mac_of(&self.node) else {
            return;
        };
        let (mac, tcp) = (mac.counters(), self.node.tcp().counters());
        let segments = tcp.sent.wrapping_add(tcp.received);
        let done = [mac.transmissions, mac.received, segments];
        let Work(before) = std::mem::replace(&mut self.work, Work(done));
        if done == before {
            return;
        }
        // A stack that has just started counts anew.
        let since = |kind: usize| done[kind].checked_sub(before[kind]).unwrap_or(done[kind]);
        if let Some(radio) = self.ports.iter_mut().find_map(Attached::radio_mut) {
            radio.work([0, 1, 2].map(since));
        }
    }

    /// Lets the processor stand still for as long as applications have worked on its flash.
    pub(super) fn charge_flash(&mut self, now: Instant) {
        let halts = self.apps.iter_mut().map(App::take_halt);
        let halt = halts.fold(Duration::ZERO, |sum, halt| sum + halt);
        if halt > Duration::ZERO
            && let Some(radio) = self.ports.iter_mut().find_map(Attached::radio_mut)
        {
            radio.occupy(halt, now);
        }
    }
}
