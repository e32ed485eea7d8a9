//! Joining by CoJP between the nodes of a world: pledges, and the registrar that gives them the
//! key.
//!
//! Purpose: it gives [`motet::node::Joiner`] the storage of firmware, does the part of a border
//! router's host in joining, and keeps the state that outlives a reboot. Left out: the processor
//! time of a request and an answer, which occurs once in a mote's life. Source: RFC 9031 §4 and §8.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::ops::Bound::{Excluded, Unbounded};

use motet::Remote;
use motet::join::{
    Configuration, DATAGRAM_LEN_MAX, JoinKey, PORT, Request, UnverifiedRequest, announce,
    confirming, hear, is_confirmed,
};
use motet::link::Link;
use motet::mac::security::{NetworkKey, Reservation, Security};
use motet::node::{self, JoinerConfig, Node};
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;
use motet_state::Past;

use super::World;
use crate::keys::JoinSecret;
use crate::net::counter_store::{CounterStore, SenderNumbers};
use crate::net::network::{RADIO, mac_of};
use crate::net::plan;
use crate::ordered;

/// A node's part in joining (RFC 9031).
#[derive(Debug)]
pub enum Joiner {
    /// A pledge: a node that has no key of its own yet, or got one so.
    Pledge(Box<PledgeState>),
    /// The registrar (JRC), which gives the key to the nodes that may have it.
    Registrar(Box<RegistrarState>),
}

/// A pledge, through all its lives.
#[derive(Debug)]
pub struct PledgeState {
    joiner: node::Joiner,
    numbers: SenderNumbers,
}

/// A registrar's state of the devices that join.
#[derive(Debug)]
pub struct RegistrarState {
    secret: JoinSecret,
    given: Configuration,
    pan: u16,
    /// The mesh's, of which devices have their addresses.
    prefix: Ipv6Addr,
    revoked: BTreeSet<[u8; 8]>,
    /// For each device that has joined, the number of its last request that was answered.
    last: BTreeMap<[u8; 8], u32>,
    /// For each device that asked in an earlier run, the number of its last request that may have
    /// been answered.
    before: BTreeMap<[u8; 8], u32>,
    /// Where the numbers of all devices are kept, unless the devices themselves do that there.
    kept: Option<CounterStore>,
    /// The next number of the registrar's own messages, whatever the device.
    number: u32,
    numbers: SenderNumbers,
    renewal: Option<Renewal>,
}

/// A change to another network key, which is announced to one device after the other.
#[derive(Debug)]
struct Renewal {
    given: Configuration,
    /// Devices that have not confirmed yet, each with the number and the bytes of the message sent
    /// to it.
    untold: BTreeMap<[u8; 8], (u32, Vec<u8>)>,
    /// The device that was told last, and when the next one is.
    told: [u8; 8],
    tell_at: Instant,
    /// When the border router changes to the key, even if not all devices have confirmed.
    ends_at: Instant,
}

impl PledgeState {
    /// `registrar`: the address that it relays requests to once it has the key; `None`: the root of
    /// the DODAG that the node will be in. `counter_store`: where its numbers go on from one run to
    /// the next, if anything keeps them.
    pub fn new(
        key: JoinKey,
        (eui64, pan): ([u8; 8], u16),
        registrar: Option<Ipv6Addr>,
        counter_store: Option<&CounterStore>,
        rng: Rng,
    ) -> Self {
        let numbers = SenderNumbers::new(counter_store, eui64);
        let config = JoinerConfig {
            key,
            eui64,
            pan,
            number: numbers.first(),
            registrar,
        };
        Self {
            joiner: node::Joiner::new(config, rng),
            numbers,
        }
    }

    /// Does what is due; returns whether anything was.
    fn step(&mut self, node: &mut Node<'_>, stored: Option<Reservation>, now: Instant) -> bool {
        let acted = self.joiner.poll(node, stored, now);
        let Some(bound) = self.joiner.poll_number() else {
            return acted;
        };
        let is_stored = self.numbers.store(bound);
        self.joiner.on_number(bound, is_stored, now);
        // Again, since it may ask now.
        self.joiner.poll(node, stored, now) | acted
    }
}

impl RegistrarState {
    /// Join keys follow from `secret`; `key`: the network key and the sequence to begin with; the
    /// `revoked` devices get none.
    pub fn new(
        secret: JoinSecret,
        (network, sequence): (NetworkKey, u32),
        prefix: Ipv6Addr,
        revoked: BTreeSet<[u8; 8]>,
    ) -> Self {
        Self {
            secret,
            given: Configuration { network, sequence },
            pan: plan::PAN,
            prefix,
            revoked,
            last: BTreeMap::new(),
            before: BTreeMap::new(),
            kept: None,
            number: 0,
            numbers: SenderNumbers::default(),
            renewal: None,
        }
    }

    /// Continues the message numbers of earlier runs from a counter store: those of the registrar's
    /// own messages, stored under its `eui64`, and the last request number of each of the
    /// `devices`, so that recorded requests are refused.
    #[must_use]
    pub fn with_counter_store(
        mut self,
        counter_store: Option<&CounterStore>,
        eui64: [u8; 8],
        devices: impl Iterator<Item = [u8; 8]>,
    ) -> Self {
        self.numbers = SenderNumbers::new(counter_store, eui64);
        self.number = self.numbers.first();
        let last = |device| counter_store?.at_start(device).number.checked_sub(1);
        let before = devices.filter_map(|device| Some((device, last(device)?)));
        self.before = ordered::map(before);
        self
    }

    /// As [`Self::with_counter_store`], of a mesh with this PAN identifier whose devices keep their
    /// numbers elsewhere: the number of each request is stored before it is answered.
    #[must_use]
    pub fn keeping(self, counter_store: &CounterStore, (eui64, pan): ([u8; 8], u16)) -> Self {
        let devices = std::iter::empty();
        Self {
            pan,
            kept: Some(counter_store.clone()),
            ..self.with_counter_store(Some(counter_store), eui64, devices)
        }
    }

    /// The number of the last request of a device that may have been answered.
    fn last_of(&self, eui64: [u8; 8]) -> Option<u32> {
        let kept = |store: &CounterStore| store.stored(eui64).number.checked_sub(1);
        let last = self.last.get(&eui64).or(self.before.get(&eui64)).copied();
        last.or_else(|| self.kept.as_ref().and_then(kept))
    }

    /// Stores that this request is answered; returns whether that is stored, if it has to be.
    fn keep(&self, eui64: [u8; 8], number: u32) -> bool {
        let past = Past {
            number: number.saturating_add(1),
            ..Past::default()
        };
        let kept = self.kept.as_ref();
        kept.is_none_or(|store| store.store(eui64, past))
    }

    fn step(&mut self, node: &mut Node<'_>, now: Instant) -> bool {
        let mut datagram = [0; DATAGRAM_LEN_MAX];
        let mut acted = false;
        while let Some((from, len)) = node.recv_join(&mut datagram) {
            acted = true;
            let datagram = &datagram[..len];
            match hear(datagram) {
                Ok(heard) => self.answer(&heard, &from, node, now),
                Err(_) => self.on_confirmation(datagram),
            }
        }
        acted | self.tell(node, now)
    }

    /// Answers a device that asks for the key, unless it is revoked.
    fn answer(
        &mut self,
        heard: &UnverifiedRequest<'_>,
        from: &Remote,
        node: &mut Node<'_>,
        now: Instant,
    ) {
        if self.revoked.contains(&heard.eui64) {
            return;
        }
        let key = self.secret.key(heard.eui64);
        let last = self.last_of(heard.eui64);
        let (given, pan) = (self.given, self.pan);
        let given = Configuration {
            sequence: sequence_of(node),
            ..given
        };
        let mut out = [0; DATAGRAM_LEN_MAX];
        let configure = |request: Request| match request.pan == pan {
            true => Ok(given),
            false => Err(FORBIDDEN),
        };
        if let Ok(len) = heard.answer(&key, last, configure, &mut out)
            && self.keep(heard.eui64, heard.sequence())
        {
            self.last.insert(heard.eui64, heard.sequence());
            // A pledge that hears nothing asks again.
            let _is_sent = node.send_join(from, &out[..len], now);
            self.inform(heard.eui64);
        }
    }

    /// Begins to give all others another network key.
    fn replace(&mut self, given: Configuration, revoked: BTreeSet<[u8; 8]>, now: Instant) {
        self.revoked = revoked;
        self.renewal = Some(Renewal {
            given,
            untold: BTreeMap::new(),
            told: [0; 8],
            tell_at: now,
            ends_at: now + RENEWAL_MAX,
        });
        for eui64 in self.last.keys().copied().collect::<Vec<_>>() {
            self.inform(eui64);
        }
    }

    /// Announces the coming key to a device, if a change is under way.
    fn inform(&mut self, eui64: [u8; 8]) {
        let key = self.secret.key(eui64);
        let is_revoked = self.revoked.contains(&eui64);
        let Some(renewal) = self.renewal.as_mut().filter(|_| !is_revoked) else {
            return;
        };
        // One that cannot be told now takes over the key as it joins again.
        if !self.numbers.allows(self.number) {
            return;
        }
        let mut out = [0; DATAGRAM_LEN_MAX];
        if let Some(len) = announce(&key, eui64, self.number, &renewal.given, &mut out) {
            let announced = (self.number, out[..len].to_vec());
            renewal.untold.insert(eui64, announced);
            self.number += 1;
        }
    }

    fn on_confirmation(&mut self, datagram: &[u8]) {
        let Some((renewal, eui64)) = self.renewal.as_mut().zip(confirming(datagram)) else {
            return;
        };
        let key = self.secret.key(eui64);
        let told = renewal.untold.get(&eui64);
        if told.is_some_and(|(number, _)| is_confirmed(&key, eui64, *number, datagram)) {
            renewal.untold.remove(&eui64);
        }
    }

    /// Tells the next device, or goes over to the new key when all have confirmed, or time is over.
    fn tell(&mut self, node: &mut Node<'_>, now: Instant) -> bool {
        let due = self.renewal.as_mut().filter(|it| now >= it.tell_at);
        let Some(renewal) = due else {
            return false;
        };
        // From here on no link key of that sequence or a later one is of the former network key.
        node.expect_key(&renewal.given);
        let is_over = sequence_of(node) >= renewal.given.sequence;
        if is_over || renewal.untold.is_empty() || now >= renewal.ends_at {
            self.given = renewal.given;
            if let Some(Link::Mesh(mesh)) = node.link_mut(RADIO) {
                mesh.rotate_key(self.given.sequence, now);
            }
            self.renewal = None;
            return true;
        }
        renewal.tell_at = now + TELL_EVERY;
        let mut after = renewal.untold.range((Excluded(renewal.told), Unbounded));
        let next = after.next().or_else(|| renewal.untold.first_key_value());
        let Some((eui64, (_, datagram))) = next else {
            return false;
        };
        renewal.told = *eui64;
        let addr = plan::addr_of(self.prefix, LinkAddr::Extended(*eui64));
        // It is told again until it confirms.
        node.send_join(&(addr, PORT).into(), datagram, now).is_ok()
    }
}

/// The sequence of the link key that a node's radio has in force.
fn sequence_of(node: &Node<'_>) -> u32 {
    let security = mac_of(node).and_then(|mac| mac.security());
    security.map_or(0, Security::sequence)
}

impl Joiner {
    pub(super) fn step(
        &mut self,
        node: &mut Node<'_>,
        stored: Option<Reservation>,
        now: Instant,
    ) -> bool {
        match self {
            Self::Pledge(pledge) => pledge.step(node, stored, now),
            Self::Registrar(registrar) => registrar.step(node, now),
        }
    }

    pub(super) fn rest(&mut self) {
        match self {
            Self::Pledge(pledge) => pledge.joiner.restart(),
            Self::Registrar(_) => {}
        }
    }

    /// When the joiner wants to be called though nothing has come.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Pledge(pledge) => pledge.joiner.next_deadline(),
            Self::Registrar(registrar) => registrar.renewal.as_ref().map(|renewal| renewal.tell_at),
        }
    }

    /// The key in force that a node has.
    fn given(&self) -> Option<Configuration> {
        match self {
            Self::Pledge(pledge) => pledge.joiner.given(),
            Self::Registrar(registrar) => Some(registrar.given),
        }
    }
}

impl World<'_> {
    /// Sets the joining role of a node, which it keeps across reboots.
    pub fn set_joiner(&mut self, mote: usize, joiner: Joiner) {
        self.motes[mote].security.joiner = Some(joiner);
    }

    /// Lets the registrar announce another network key to all devices but the `revoked` ones. Its
    /// link keys begin with this sequence or later. Returns whether there is a registrar.
    pub fn replace_key(
        &mut self,
        (network, sequence): (NetworkKey, u32),
        revoked: impl Iterator<Item = [u8; 8]>,
    ) -> bool {
        let now = self.now();
        let mote = &mut self.motes[0];
        let Some(Joiner::Registrar(registrar)) = &mut mote.security.joiner else {
            return false;
        };
        // The new sequence is later than that of the key in force, so that no key index stands for
        // two keys, and later than those that may come into force during the announcements.
        let next = sequence_of(&mote.node).saturating_add(SEQUENCES_BETWEEN);
        let sequence = sequence.max(next);
        let given = Configuration { network, sequence };
        registrar.replace(given, ordered::set(revoked), now);
        self.drive(0, now);
        true
    }

    /// Whether a mote is without a key that its host will ask for.
    pub fn awaits_key(&self, mote: usize) -> bool {
        self.motes.get(mote).is_some_and(|mote| {
            let security = mac_of(&mote.node).and_then(|mac| mac.security());
            let asks = matches!(&mote.security.joiner, Some(it @ Joiner::Pledge(_)) if it.deadline().is_some());
            asks && security.is_some_and(Security::is_locked)
        })
    }

    /// The key that a mote has by joining.
    pub fn given(&self, mote: usize) -> Option<Configuration> {
        self.motes.get(mote)?.security.joiner.as_ref()?.given()
    }
}

/// The step from the key sequence in force to the first one of another network key. The index of a
/// frame names a sequence up to 63 ahead: motes that are not up to date understand it, too.
const SEQUENCES_BETWEEN: u32 = 16;

/// The time between the announcements to two devices, and the longest time that all announcements
/// together take.
const TELL_EVERY: Duration = Duration::from_millis(250);
const RENEWAL_MAX: Duration = Duration::from_secs(60);

/// The response code to a pledge of another PAN, 4.03 (RFC 7252 §5.9.2.4).
const FORBIDDEN: u8 = 0x83;
