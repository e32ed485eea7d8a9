//! The second channel of a connection, that of TCPlE: the calls of the link above.

use super::counters::HostCounters;
use super::peer::{Attributes, ChannelKind, Connection, Peer, State};
use super::{ChannelDrop, Handle, Host, STALLED_AFTER};
use crate::time::{Duration, Instant};
use crate::wire::tcple::Characteristic;

/// The SPSM of TCPlE's channel at this end: the first of those that are allocated as they are
/// needed.
const SERVICE: u16 = 0x0080;

/// The TCPlE that a device offers, and the interval that it asks of its connections.
#[derive(Debug)]
pub(super) struct Second {
    /// This device's characteristic of TCPlE, if it offers TCPlE.
    offered: Option<Characteristic>,
    /// The interval that TCPlE asks for, in units of 1.25 ms.
    led: Option<u16>,
}

impl Second {
    pub(super) const NONE: Self = Self {
        offered: None,
        led: None,
    };

    /// The attributes of TCPlE for a connection that begins.
    pub(super) const fn attributes(&self) -> Attributes {
        Attributes::offering(self.offered)
    }

    /// The interval that TCPlE asks for, in units of 1.25 ms.
    pub(super) const fn led(&self) -> Option<u16> {
        self.led
    }
}

impl Host<'_> {
    /// Offers TCPlE on connections that begin from now on; `held_len`: bytes of prefetched segments
    /// that are held.
    pub(crate) const fn offer_tcple(&mut self, held_len: u16) {
        self.second.offered = Some(Characteristic {
            service: SERVICE,
            held_len,
        });
    }

    /// Whether TCPlE's channel to this peer is open.
    pub(crate) fn has_tcple(&self, at: usize) -> bool {
        let connection = self.peers.get(at).and_then(Peer::connection);
        connection.is_some_and(Connection::has_tcple)
    }

    /// Bytes of prefetched segments that this peer holds.
    pub(crate) fn held_len(&self, at: usize) -> u16 {
        let connection = self.peers.get(at).and_then(Peer::connection);
        connection.map_or(0, |connection| connection.attributes.held_len())
    }

    /// The place of a connection.
    pub(crate) fn place_of(&self, handle: Handle) -> Option<usize> {
        self.peers.iter().position(|peer| peer.is_of(handle))
    }

    /// Sets the interval, in units of 1.25 ms, that a central requests for all its connections;
    /// `None`: the interval of its settings.
    pub(crate) const fn lead(&mut self, interval: Option<u16>) {
        self.second.led = interval;
    }

    /// Requests the signal strength of this peer from the controller.
    pub(crate) fn ask_rssi(&mut self, at: usize) {
        let peer = self.peers.get_mut(at);
        if let Some(connection) = peer.and_then(|peer| peer.connection.as_mut()) {
            connection.wishes.rssi = true;
        }
    }

    /// Gives up TCPlE's channel to this peer, which has broken a rule of its formats.
    pub(crate) fn fail_tcple(&mut self, at: usize) {
        let Self {
            peers, counters, ..
        } = self;
        let peer = peers.get_mut(at);
        if let Some(connection) = peer.and_then(|peer| peer.connection.as_mut())
            && connection.channels.tcple.state == State::Open
        {
            connection.fail(ChannelKind::Tcple, ChannelDrop::MalformedSignal, counters);
        }
    }
}

impl Connection {
    /// Whether TCPlE's channel is open.
    pub fn has_tcple(&self) -> bool {
        self.channels.tcple.state == State::Open
    }

    /// Closes TCPlE's channel where the peer has given no credit for it for long: packets go by the
    /// other one.
    pub(super) fn give_up_second(&mut self, counters: &mut HostCounters, now: Instant) {
        let is_stalled = |since: Instant| now.since(since) >= STALLED_AFTER;
        if self.channels.tcple.dry_since.is_some_and(is_stalled) {
            self.fail(ChannelKind::Tcple, ChannelDrop::Stalled, counters);
        }
    }

    /// The connection interval.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_micros(u64::from(self.timing.interval) * 1_250)
    }
}
