//! What stands between a node with a key and those without one: it asks, relays or answers.
//!
//! Place: a [`Node`](crate::node::Node) that was given a [`Porch`] hands it the datagrams in clear
//! of its neighbours, and those for the port of CoAP. A relay's go on by themselves; the others
//! wait for the application, one at a time. Source: RFC 9031 §5 to §7.

use core::net::Ipv6Addr;

use super::coap::{Message, POST};
use super::exchange::{DATAGRAM_LEN_MAX, hear};
use super::relay::{Asker, Relay};
use super::renewal::confirming;
use crate::random::Rng;
use crate::remote::Remote;
use crate::time::{Allowance, Instant};
use crate::wire::cursor;

/// What a node does about joining.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It has the key, and takes another one from the registrar at this address. It relays for
    /// nobody.
    Member(Ipv6Addr),
    /// It has no key, and asks for one.
    Pledge,
    /// As a member; besides, it passes requests of neighbouring pledges on to the registrar at this
    /// address.
    Relay(Ipv6Addr),
    /// It gives the key to those that may have it.
    Registrar,
}

/// What a porch has done; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PorchCounters {
    /// Requests of pledges passed on.
    pub relayed: u32,
    /// Answers passed back.
    pub returned: u32,
    /// Datagrams that waited for the application.
    pub taken: u32,
    /// Dropped: neither a request nor an answer, for another port, damaged, or an answer to no
    /// request that this relay passed on.
    pub refused: u32,
    /// Dropped: one was passed on within the last second, or another one waits.
    pub rationed: u32,
}

/// The door of a mesh with a key; see [`Node::set_porch`](crate::node::Node::set_porch).
#[derive(Debug)]
pub struct Porch {
    role: Role,
    relay: Relay,
    requests: Allowance,
    waiting: Option<Waiting>,
    counters: PorchCounters,
}

/// A datagram for the application.
#[derive(Debug)]
struct Waiting {
    from: Remote,
    len: u8,
    bytes: [u8; DATAGRAM_LEN_MAX],
}

impl Porch {
    /// `rng`: draws the secret with which a relay marks its tokens.
    pub fn new(role: Role, rng: &mut Rng) -> Self {
        Self {
            role,
            relay: Relay::new(rng),
            requests: Allowance::new(1, REQUEST_INTERVAL_MS),
            waiting: None,
            counters: PorchCounters::default(),
        }
    }

    /// What the node does.
    pub const fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn set_role(&mut self, role: Role) {
        self.role = role;
        self.waiting = None;
    }

    /// Whether it wants frames in clear that are for all.
    pub(crate) const fn serves_pledges(&self) -> bool {
        matches!(self.role, Role::Relay(_) | Role::Registrar)
    }

    /// What it did.
    pub const fn counters(&self) -> &PorchCounters {
        &self.counters
    }

    /// Takes a datagram that a neighbour sent in clear, over the link that `remote` names. Writes
    /// into `out` what goes to the registrar; returns the registrar's address, and the length.
    pub(crate) fn on_neighbour(
        &mut self,
        (iid, remote): ([u8; 8], Remote),
        datagram: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Option<(Ipv6Addr, usize)> {
        let Role::Relay(registrar) = self.role else {
            self.keep_of_neighbour(remote, datagram);
            return None;
        };
        let relayed = self.relay.outward((iid, remote.zone), datagram, now, out);
        let Some(len) = relayed else {
            count(&mut self.counters.refused);
            return None;
        };
        // Last, so that only requests count.
        if !self.requests.take(now) {
            count(&mut self.counters.rationed);
            return None;
        }
        count(&mut self.counters.relayed);
        Some((registrar, len))
    }

    /// Counts a packet in clear that is no datagram for the port of CoAP, or is damaged.
    pub(crate) fn refuse(&mut self) {
        count(&mut self.counters.refused);
    }

    /// Whether a datagram to the port of CoAP, from `remote`, may be about joining. All others are
    /// for the application.
    pub(crate) fn is_meant(&self, remote: &Remote, datagram: &[u8]) -> bool {
        match self.role {
            Role::Relay(registrar) | Role::Member(registrar) => {
                remote.addr == registrar && Message::parse(datagram).is_some()
            }
            Role::Registrar => hear(datagram).is_ok() || confirming(datagram).is_some(),
            Role::Pledge => false,
        }
    }

    /// Takes a datagram of which [`Self::is_meant`] is true. Writes into `out` what goes to a
    /// neighbour, if anything; returns which neighbour, and the length.
    pub(crate) fn on_remote(
        &mut self,
        remote: Remote,
        datagram: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Option<(Asker, usize)> {
        let is_request = Message::parse(datagram).is_some_and(|message| message.code == POST);
        if is_request || !matches!(self.role, Role::Relay(_)) {
            self.keep(remote, datagram);
            return None;
        }
        let returned = self.relay.homeward(datagram, now, out);
        count(match returned {
            Some(_) => &mut self.counters.returned,
            None => &mut self.counters.refused,
        });
        returned
    }

    /// Keeps a datagram in clear, where it may be about a key.
    fn keep_of_neighbour(&mut self, from: Remote, datagram: &[u8]) {
        let is_wanted = match self.role {
            Role::Registrar => hear(datagram).is_ok(),
            Role::Pledge => Message::parse(datagram).is_some(),
            Role::Relay(_) | Role::Member(_) => false,
        };
        match is_wanted {
            true => self.keep(from, datagram),
            false => count(&mut self.counters.refused),
        }
    }

    fn keep(&mut self, from: Remote, datagram: &[u8]) {
        if datagram.len() > DATAGRAM_LEN_MAX {
            return count(&mut self.counters.refused);
        }
        if self.waiting.is_some() {
            return count(&mut self.counters.rationed);
        }
        count(&mut self.counters.taken);
        let mut bytes = [0; DATAGRAM_LEN_MAX];
        let len = cursor::copy(&mut bytes, datagram) as u8;
        self.waiting = Some(Waiting { from, len, bytes });
    }

    /// The datagram that waits: from where, and its length in `out`.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> Option<(Remote, usize)> {
        let waiting = self.waiting.take()?;
        let bytes = waiting.bytes.get(..usize::from(waiting.len))?;
        Some((waiting.from, cursor::copy(out, bytes)))
    }
}

fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

/// Between two requests that a relay passes on, ms.
const REQUEST_INTERVAL_MS: u16 = 1_000;
