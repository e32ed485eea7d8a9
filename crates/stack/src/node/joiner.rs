//! Joining, the sequence: a pledge asks until it has the key, then follows the network's keys.
//!
//! Purpose: what firmware, the C API and the lab each had to do around [`crate::join`] and
//! [`JoinProxy`]: when to ask, which numbers to store first, what to do with an answer, and which
//! role the node has afterwards. Place: beside a node, which its host polls first. Left out: the
//! registrar's side; storage, which is the host's. Source: RFC 9031 §4.3 for the sequence and §8
//! for the messages; RFC 8613 §7.2.1 for numbers that are each used once.

use core::net::Ipv6Addr;

use super::joining::{JoinProxy, JoinRole};
use super::{Link, Mesh, Node};
use crate::ip::ALL_NODES;
use crate::join::{Configuration, DATAGRAM_LEN_MAX, JoinError, JoinKey, PORT, Pledge, Request};
use crate::link::Reservation;
use crate::random::Rng;
use crate::time::{Duration, Instant};

/// What a device that joins is given when it is made.
#[derive(Clone, Copy, Debug)]
pub struct JoinerConfig {
    /// The device's own key.
    pub key: JoinKey,
    /// Its EUI-64, most significant byte first.
    pub eui64: [u8; 8],
    /// The PAN identifier of the mesh.
    pub pan: u16,
    /// The first number that no request with this key has had: the last one that
    /// [`Joiner::poll_number`] gave and the host stored, 0 at first.
    pub number: u32,
    /// The address of the registrar, to which the node passes on the requests of others once it has
    /// the key. `None`: the root of the DODAG that it is in. A node without RPL then takes no
    /// further key.
    pub registrar: Option<Ipv6Addr>,
}

/// How far a [`Joiner`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinState {
    /// It asks, and has had no answer: no neighbour with the key is in reach, or the registrar does
    /// not know the device, or only under another key. It asks again.
    Asking,
    /// As [`Self::Asking`]; the last answer was refused for this reason, or is a refusal.
    Refused(JoinError),
    /// It does not ask, because the host has not stored the numbers of its requests
    /// ([`Joiner::poll_number`]).
    Unstored,
    /// It does not ask any more: each number was used. The device needs another key of its own.
    Exhausted,
    /// It has the key.
    Joined,
}

/// The part of a pledge's host in joining, for a node that was lent a [`JoinProxy`] with
/// [`JoinRole::Pledge`], and whose links have a security without a key
/// ([`Security::locked`](crate::mac::security::Security::locked)).
///
/// After [`Node::poll_action`] has returned `None`, call [`Self::poll`], then [`Self::poll_number`]
/// until it returns `None`; if either did something, begin with `poll_action` again. It
/// sleeps until the earlier of the node's deadline and [`Self::next_deadline`].
#[derive(Debug)]
pub struct Joiner {
    config: JoinerConfig,
    pledge: Pledge,
    rng: Rng,
    numbers: Numbers,
    /// When the pledge asks next, and how long it waits then.
    ask_at: Option<Instant>,
    wait: Duration,
    /// Sealed frames that it has heard.
    heard: u32,
    refusal: Option<JoinError>,
    given: Option<Configuration>,
    /// The key that was announced.
    next: Option<Configuration>,
    follows_root: bool,
}

/// The numbers of requests that the host has stored.
#[derive(Debug)]
struct Numbers {
    /// The first one that is not stored.
    bound: u32,
    /// The bound that the host has to store now, and whether it was told.
    wanted: Option<(u32, bool)>,
    has_failed: bool,
}

impl Joiner {
    /// `rng`: spreads the requests of devices that are switched on at one time.
    pub fn new(config: JoinerConfig, rng: Rng) -> Self {
        Self {
            pledge: Pledge::new(&config.key, config.eui64, config.number),
            rng,
            numbers: Numbers {
                bound: config.number,
                wanted: None,
                has_failed: false,
            },
            ask_at: None,
            wait: WAIT_MIN,
            heard: 0,
            refusal: None,
            given: None,
            next: None,
            follows_root: config.registrar.is_none(),
            config,
        }
    }

    /// Does what is due; returns whether anything was: then poll the node again.
    ///
    /// `stored`: the last reservation of frame counters that the node's host stored, also before a
    /// reboot.
    pub fn poll(&mut self, node: &mut Node<'_>, stored: Option<Reservation>, now: Instant) -> bool {
        if self.given.is_some() {
            self.follow(node);
            return self.renew(node, now);
        }
        if let Some(given) = self.take_answer(node) {
            self.given = Some(given);
            node.unlock(&given, stored, self.role(), now);
            return true;
        }
        self.ask(node, now)
    }

    /// The configuration in an answer to the last request.
    fn take_answer(&mut self, node: &mut Node<'_>) -> Option<Configuration> {
        let mut datagram = [0; DATAGRAM_LEN_MAX];
        while let Some((_, len)) = node.recv_join(&mut datagram) {
            let datagram = datagram.get(..len).unwrap_or_default();
            match self.pledge.on_answer(datagram) {
                Ok(given) => return Some(given),
                // Of another request, or of another pledge in reach.
                Err(JoinError::NotAsked) => {}
                Err(error) => self.refusal = Some(error),
            }
        }
        None
    }

    /// Sends a request if one is due; returns whether it was sent.
    fn ask(&mut self, node: &mut Node<'_>, now: Instant) -> bool {
        // Nodes that are switched on at one time do not ask at one time.
        let first = || now + self.rng.uniform(WAIT_MIN);
        let ask_at = *self.ask_at.get_or_insert_with(first);
        let ask_at = self.sooner(ask_at, node, now);
        // A number that an earlier start has used would encrypt a second request with the same
        // nonce.
        let is_due = now >= ask_at && !self.is_exhausted();
        if !is_due || !self.numbers.allow(self.pledge.next_sequence()) {
            return false;
        }
        self.ask_at = Some(now + self.wait + self.rng.uniform(WAIT_MIN));
        self.wait = self.wait.saturating_mul(2).min(WAIT_MAX);
        let mut datagram = [0; DATAGRAM_LEN_MAX];
        let request = Request {
            pan: self.config.pan,
        };
        let Some(len) = self.pledge.ask(&request, &mut datagram) else {
            return false;
        };
        let datagram = datagram.get(..len).unwrap_or_default();
        node.send_join(&(ALL_NODES, PORT).into(), datagram, now)
            .is_ok()
    }

    /// What the node does once it has the key.
    fn role(&self) -> JoinRole {
        match self.config.registrar {
            Some(registrar) => JoinRole::Proxy(registrar),
            None => JoinRole::Member(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// Lets the node relay to the root that it has now.
    fn follow(&mut self, node: &mut Node<'_>) {
        if !self.follows_root {
            return;
        }
        let root = root_of(node);
        if root.is_none() || root == self.config.registrar {
            return;
        }
        self.config.registrar = root;
        if let Some(proxy) = node.take_join_proxy() {
            *proxy = JoinProxy::new(self.role(), &mut self.rng);
            node.set_join_proxy(proxy);
        }
    }

    /// When the pledge sends its next request. If it has reached the longest interval, it begins
    /// anew with the shortest one as soon as it hears a neighbour that has the key.
    fn sooner(&mut self, ask_at: Instant, node: &Node<'_>, now: Instant) -> Instant {
        let heard = mesh_of(node).map_or(0, Mesh::unknown_keys);
        if core::mem::replace(&mut self.heard, heard) == heard {
            return ask_at;
        }
        // Such frames may be forged, so they shorten only the longest wait.
        if self.wait < WAIT_MAX {
            return ask_at;
        }
        self.wait = WAIT_MIN;
        let ask_at = ask_at.min(now + self.rng.uniform(WAIT_MIN));
        self.ask_at = Some(ask_at);
        ask_at
    }

    /// Takes another key from the registrar; returns whether there was one.
    fn renew(&mut self, node: &mut Node<'_>, now: Instant) -> bool {
        let mut acted = false;
        let (mut datagram, mut out) = ([0; DATAGRAM_LEN_MAX], [0; DATAGRAM_LEN_MAX]);
        while let Some((from, len)) = node.recv_join(&mut datagram) {
            acted = true;
            let datagram = datagram.get(..len).unwrap_or_default();
            if let Ok((next, len)) = self.pledge.on_announcement(datagram, &mut out) {
                self.next = Some(next);
                node.expect_key(&next);
                // It is told again until this arrives.
                let _is_sent = node.send_join(&from, out.get(..len).unwrap_or_default(), now);
            }
        }
        // A node that starts again knows of it only what is stored.
        if let Some(next) = &self.next {
            node.expect_key(next);
        }
        // Only the key in force is the one to begin with after a restart.
        if let Some(next) = self
            .next
            .filter(|next| mesh_of(node).map_or(0, Mesh::key_sequence) >= next.sequence)
        {
            (self.given, self.next) = (Some(next), None);
        }
        acted
    }

    /// The bound that the host has to store so that it outlives a reboot, before a request is sent:
    /// no request has this number or a later one yet. Each bound is returned once, and answered by
    /// [`Self::on_number`].
    pub fn poll_number(&mut self) -> Option<u32> {
        let (bound, is_told) = self.numbers.wanted.as_mut()?;
        (!core::mem::replace(is_told, true)).then_some(*bound)
    }

    /// The host has stored the bound that [`Self::poll_number`] gave, or could not: then it is
    /// asked again after 10 s. Call [`Self::poll`] then.
    pub fn on_number(&mut self, bound: u32, is_stored: bool, now: Instant) {
        let wanted = self.numbers.wanted.map(|(wanted, _)| wanted);
        if wanted != Some(bound) {
            return;
        }
        self.numbers.wanted = None;
        self.numbers.has_failed = !is_stored;
        match is_stored {
            true => self.numbers.bound = bound,
            false => self.ask_at = Some(now + STORE_AGAIN),
        }
    }

    /// When to call [`Self::poll`] though nothing has come; `None`: never.
    pub fn next_deadline(&self) -> Option<Instant> {
        let waits = self.given.is_some() || self.numbers.wanted.is_some_and(|(_, told)| told);
        (!waits && !self.is_exhausted()).then(|| self.ask_at.unwrap_or(Instant::ORIGIN))
    }

    /// How far it is.
    pub fn state(&self) -> JoinState {
        if self.given.is_some() {
            return JoinState::Joined;
        }
        if self.is_exhausted() {
            return JoinState::Exhausted;
        }
        if self.numbers.wanted.is_some() || self.numbers.has_failed {
            return JoinState::Unstored;
        }
        self.refusal.map_or(JoinState::Asking, JoinState::Refused)
    }

    const fn is_exhausted(&self) -> bool {
        self.pledge.next_sequence() == u32::MAX
    }

    /// The key in force that the node has from its registrar.
    pub const fn given(&self) -> Option<Configuration> {
        self.given
    }

    /// The node is switched off and on again, and this outlives it: requests go on behind the last
    /// one, and an answer to that is no longer accepted.
    pub fn restart(&mut self) {
        let next = self.pledge.next_sequence();
        self.pledge = Pledge::new(&self.config.key, self.config.eui64, next);
        self.ask_at = None;
        self.wait = WAIT_MIN;
        self.refusal = None;
    }
}

impl Numbers {
    /// Whether the request with this number may be sent; otherwise it asks the host for more.
    fn allow(&mut self, number: u32) -> bool {
        if number < self.bound {
            return true;
        }
        if self.wanted.is_none() {
            self.wanted = Some((number.saturating_add(AT_ONE_TIME), false));
        }
        false
    }
}

fn mesh_of<'n, 'm>(node: &'n Node<'m>) -> Option<&'n Mesh<'m>> {
    node.links.iter().find_map(Link::mesh)
}

#[cfg(feature = "rpl")]
fn root_of(node: &Node<'_>) -> Option<Ipv6Addr> {
    node.rpl()?.dodag().map(|dodag| dodag.id)
}

#[cfg(not(feature = "rpl"))]
const fn root_of(_: &Node<'_>) -> Option<Ipv6Addr> {
    None
}

/// Time between requests at first, and at most; up to as much as the first again at random. A join
/// proxy passes on one request a second, whoever asks.
const WAIT_MIN: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_secs(16);

/// Numbers that the host stores at one time: some minutes of requests for each write of flash.
const AT_ONE_TIME: u32 = 64;

/// The time after which a host that could not store a bound is asked again, as
/// [`Node::on_reserved`]'s.
const STORE_AGAIN: Duration = Duration::from_secs(10);
