//! The security state of a node with a key: its keys, its counters, its neighbours with the key.
//!
//! ```text
//! heard     admit: level, key index, counter; the share of strangers               no cipher
//! believed  open: MIC, then a later key, then the neighbour's counter
//! sent      seal: a counter of its own for every copy into the radio
//! ```
//!
//! Place: the MAC calls [`Security::admit`] when a frame is heard and is acknowledged,
//! [`Security::open`] when the ACK has left, and remembers nothing of it in between.
//! Left out: what the frames mean, which is the MAC's (`secured`).
//! Source: IEEE 802.15.4-2006 §7.5.8.2; Thread 1.1 §7.1.4 and §7.1.5 for the sequence of keys.

#[cfg(feature = "cit")]
mod ahead;
#[cfg(not(feature = "cit"))]
#[path = "state/ahead_absent.rs"]
mod ahead;
#[cfg(not(feature = "thread"))]
#[path = "state/child_absent.rs"]
mod child;
#[cfg(feature = "thread")]
mod child;
#[cfg(feature = "join")]
mod given;
mod look;
mod rotation;
mod strangers;

use ahead::Ahead;
#[cfg(feature = "thread")]
use child::Bond;

use super::counter::{Counters, Reservation};
use super::engine::{Engine, Keyed};
use super::keys::{LinkKey, NetworkKey, index};
use super::peers::{Peer, Peers};
use super::proof::{Challenges, Proof};
use super::sealed::Sealed;
use super::settings::{SecurityConfig, SecurityCounters};
use super::{ccm, open, seal};
use crate::mac::counters::FrameDrop;
use crate::random::Rng;
use crate::time::{Allowance, Duration, Instant};
use crate::wire::cursor;
use crate::wire::ieee802154::{Auxiliary, Header, Level};

/// Link security of a node; see [`Mesh::set_security`](crate::link::Mesh::set_security).
#[derive(Debug)]
pub struct Security<'m> {
    network: NetworkKey,
    level: Level,
    engine: Engine,
    rotates_after: Option<Duration>,
    guard_time: Duration,
    sequence: u32,
    keyed: Keyed,
    /// When the node took this key.
    since: Option<Instant>,
    previous: Option<Previous>,
    own: Counters,
    peers: Peers<'m>,
    challenges: Challenges,
    /// Frames of strangers that are decrypted.
    decryptions: Allowance,
    /// Link keys that are derived because a frame names a later one than the next.
    derivations: Allowance,
    /// The link key of the next sequence, once a frame has named it.
    next_link_key: Option<LinkKey>,
    /// Challenges that strangers are sent, and answers to theirs.
    proofs: Allowance,
    /// Proofs for neighbours that use an earlier key.
    reminders: Allowance,
    /// The frame that is opened when its ACK has left.
    pub(in crate::mac) sealed: Option<Sealed>,
    /// What is computed before the frame has come that it is for.
    ahead: Ahead,
    parent: Parent,
    /// Whether the node has no key yet.
    #[cfg(feature = "join")]
    is_locked: bool,
    /// The network key that will take the place of this one, and its first sequence.
    #[cfg(feature = "join")]
    next: Option<(NetworkKey, u32)>,
    /// Whether there is a new neighbour that was not reported yet.
    has_news: bool,
    /// The parent in a Thread network, where this node is a child there.
    #[cfg(feature = "thread")]
    bond: Option<Bond>,
    counters: SecurityCounters,
}

/// The key before this one.
#[derive(Debug)]
struct Previous {
    sequence: u32,
    key: LinkKey,
    until: Instant,
}

/// The neighbour that the way up leads over.
#[derive(Debug, Default)]
struct Parent {
    addr: Option<[u8; 8]>,
    /// Whether the parent has acknowledged a frame since it last sent an authentic one.
    has_acknowledged: bool,
    /// Challenges that it left unanswered, and when it may get the next one.
    unanswered: u8,
    asks_from: Instant,
    /// The parent has answered none of the challenges: another node may be sending ACKs in its
    /// name.
    is_disbelieved: bool,
}

impl<'m> Security<'m> {
    /// `table`: an entry for each neighbour; 16 suit a mote. A neighbour more pushes out another
    /// that is neither parent nor child.
    pub fn new(config: &SecurityConfig, table: &'m mut [Peer]) -> Self {
        let key = config.network.link_key(config.sequence);
        Self {
            network: config.network,
            level: config.level,
            engine: config.engine,
            rotates_after: config.rotates_after,
            guard_time: config.guard_time,
            sequence: config.sequence,
            keyed: Keyed::new(config.engine, &key),
            since: None,
            previous: None,
            own: Counters::from(config.counter),
            peers: Peers::new(table),
            challenges: Challenges::default(),
            decryptions: strangers::DECRYPTIONS,
            derivations: strangers::DERIVATIONS,
            next_link_key: None,
            proofs: strangers::PROOFS,
            reminders: rotation::REMINDERS,
            sealed: None,
            ahead: Ahead::default(),
            parent: Parent::default(),
            #[cfg(feature = "join")]
            is_locked: false,
            #[cfg(feature = "join")]
            next: None,
            has_news: false,
            #[cfg(feature = "thread")]
            bond: None,
            counters: SecurityCounters {
                keys_made: 1,
                ..SecurityCounters::default()
            },
        }
    }

    /// Whether the node has no key yet.
    pub const fn is_locked(&self) -> bool {
        #[cfg(feature = "join")]
        return self.is_locked;
        #[cfg(not(feature = "join"))]
        return false;
    }

    /// Gives back the entries it was lent.
    pub fn into_memory(self) -> &'m mut [Peer] {
        self.peers.into_memory()
    }

    /// Bytes that a frame is longer by.
    pub(in crate::mac) const fn overhead(&self) -> usize {
        Auxiliary::LEN + self.level.mic_len()
    }

    /// Whether frames wait for the host to store counters.
    pub(in crate::mac) fn is_waiting(&self) -> bool {
        self.is_locked() || self.own.is_waiting()
    }

    /// The reservation of counters that the host shall store, handed out once.
    pub(in crate::mac) fn poll_reservation(&mut self, now: Instant) -> Option<Reservation> {
        match self.is_locked() {
            true => None,
            false => self.own.poll(self.sequence, now),
        }
    }

    /// The host has stored `reservation`, or could not.
    pub(in crate::mac) fn on_reserved(
        &mut self,
        reservation: Reservation,
        is_stored: bool,
        now: Instant,
    ) {
        let failures = &mut self.counters.storage_failures;
        *failures = failures.wrapping_add(u32::from(!is_stored));
        self.own.on_stored(reservation, is_stored, now);
    }

    /// Whether the node has no counter to send with.
    pub(in crate::mac) const fn has_no_counter(&self) -> bool {
        self.own.is_used_up()
    }

    /// Writes a frame, sealed, without its FCS; returns its length.
    ///
    /// `clear_len`: bytes of the payload that stay in clear. `source`: this node.
    /// `None` without a counter to send it with, or where `out` is too short.
    pub(in crate::mac) fn seal(
        &mut self,
        header: &Header,
        (payload, clear_len): (&[u8], usize),
        source: [u8; 8],
        out: &mut [u8],
    ) -> Option<usize> {
        let counter = self.own.take()?;
        let auxiliary = Auxiliary {
            level: self.level,
            counter,
            key_index: index(self.sequence),
        };
        let header_len = header.emit_secured(&auxiliary, out).ok()?;
        let len = header_len + payload.len() + self.level.mic_len();
        let frame = out.get_mut(..len)?;
        cursor::copy(frame.get_mut(header_len..).unwrap_or_default(), payload);
        let (clear, body) = frame.split_at_mut_checked(header_len + clear_len)?;
        self.count_calls(clear.len(), payload.len().saturating_sub(clear_len));
        seal(&self.keyed, source, auxiliary, clear, body)?;
        self.counters.sealed = self.counters.sealed.wrapping_add(1);
        Some(len)
    }

    /// Opens a frame where it is; takes over a later key and its sender's counter, where that is
    /// known to be there. Returns the length of its payload, and whether its sender is known.
    ///
    /// # Errors
    /// [`FrameDrop::Forged`]; and as [`Self::admit`], since a frame before it may have changed what
    /// held then.
    pub(in crate::mac) fn open(
        &mut self,
        source: [u8; 8],
        auxiliary: Auxiliary,
        (header, body): (&[u8], &mut [u8]),
        now: Instant,
    ) -> Result<(usize, bool), FrameDrop> {
        let sequence = self.sequence_of(&auxiliary, now)?;
        if let Some(peer) = self.peers.find(source) {
            peer.admits(sequence, auxiliary.counter)?;
        }
        self.count_calls(
            header.len(),
            body.len().saturating_sub(auxiliary.level.mic_len()),
        );
        let opened = match self.other_cipher(sequence) {
            None => open(&self.keyed, source, auxiliary, header, body),
            Some(keyed) => open(&keyed, source, auxiliary, header, body),
        };
        let Ok(payload_len) = opened.map(|payload| payload.len()) else {
            if let Some(peer) = self.peers.find_mut(source) {
                peer.mute(now);
            }
            return Err(FrameDrop::Forged);
        };
        self.counters.opened = self.counters.opened.wrapping_add(1);
        self.rotate(sequence, now);
        let numbers = (sequence, auxiliary.counter);
        let is_known = self.peers.believe(source, numbers, now);
        // The frame was authentic; its decryption is given back, since the allowance is for
        // forgeries.
        if self.is_stranger(source, now) {
            self.decryptions.give_back();
        }
        if self.parent.addr == Some(source) && is_known {
            self.parent = Parent {
                addr: self.parent.addr,
                ..Parent::default()
            };
        }
        Ok((payload_len, is_known))
    }

    fn count_calls(&mut self, header_len: usize, payload_len: usize) {
        let calls = ccm::calls(header_len, payload_len);
        self.counters.cipher_calls = self.counters.cipher_calls.wrapping_add(calls);
    }

    /// The way up leads over this neighbour.
    pub(in crate::mac) fn keep_parent(&mut self, addr: Option<[u8; 8]>) {
        if self.parent.addr != addr {
            self.parent = Parent {
                addr,
                ..Parent::default()
            };
        }
    }

    /// Says which neighbours keep their entries beside the parent.
    pub(in crate::mac) fn keep_children(&mut self, is_child: impl Fn([u8; 8]) -> bool) {
        let parent = self.parent.addr;
        self.peers
            .keep(|addr| parent == Some(addr) || is_child(addr));
    }

    /// A frame was acknowledged, by whomever.
    pub(in crate::mac) fn on_acknowledged(&mut self, by: [u8; 8]) {
        self.parent.has_acknowledged |= self.parent.addr == Some(by);
    }

    /// Whether ACKs of this neighbour count for nothing: until it sends something authentic.
    pub(in crate::mac) fn disbelieves(&self, addr: [u8; 8]) -> bool {
        self.parent.is_disbelieved && self.parent.addr == Some(addr)
    }

    /// A challenge for a parent that acknowledges, but has sent nothing authentic for long. One
    /// that never has is asked where this node sleeps: a parent that does not know the node either
    /// asks while nobody listens.
    pub(in crate::mac) fn doubt_parent(
        &mut self,
        sleeps: bool,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<([u8; 8], Proof)> {
        if self.is_child() {
            return None;
        }
        let addr = self.parent.addr.filter(|_| self.parent.has_acknowledged)?;
        let is_quiet = match self.peers.silence(addr, now) {
            Some(silence) => silence >= QUIET_MAX,
            None => sleeps,
        };
        if !is_quiet {
            return None;
        }
        if now < self.parent.asks_from {
            return None;
        }
        if self.parent.unanswered >= UNANSWERED_MAX {
            let is_news = !core::mem::replace(&mut self.parent.is_disbelieved, true);
            let lost = &mut self.counters.parents_lost;
            *lost = lost.wrapping_add(u32::from(is_news));
            return None;
        }
        let challenge = self.make_challenge(addr, now, rng)?;
        self.parent.asks_from = now + DOUBT_PACE;
        self.parent.unanswered += 1;
        self.counters.challenges = self.counters.challenges.wrapping_add(1);
        let challenge = Some(challenge);
        let answer = None;
        Some((addr, Proof { challenge, answer }))
    }

    /// Whether a neighbour was taken in since the last call.
    pub(in crate::mac) const fn take_news(&mut self) -> bool {
        core::mem::replace(&mut self.has_news, false)
    }
}

/// How long a parent may acknowledge without sending an authentic frame. Chosen arbitrarily: longer
/// than a pause between ACKs of TCP.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// The time between challenges for such a parent, and how many it may leave unanswered.
const DOUBT_PACE: Duration = Duration::from_secs(2);
const UNANSWERED_MAX: u8 = 3;
