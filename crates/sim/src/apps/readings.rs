//! Readings by UDP: one side sends them at a constant rate, the other counts them.
//!
//! Place: variants of [`crate::apps::App`]. A reading carries its number and the instant it was
//! made, so that its receiver knows what is missing and how long the others took.
//! Left out: CoAP's confirmable messages, which would be acknowledged.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::udp::Inbox;

use crate::Arena;
use crate::apps::ages::Ages;

/// Sends a reading each interval.
#[derive(Debug)]
pub struct Readings {
    to: (Ipv6Addr, u16),
    port: u16,
    interval: Duration,
    next: Instant,
    until: Instant,
    payload: Vec<u8>,
    /// Readings made so far.
    pub made: u32,
    /// How many of these the stack had no room for.
    pub refused: u32,
}

/// Receives readings.
#[derive(Debug)]
pub struct Sink<'m> {
    inbox: Option<Inbox<'m>>,
    /// Readings that came, by the port that they came to.
    tallies: Vec<(u16, Tally)>,
    reading: Vec<u8>,
}

/// Readings that came to one port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Readings, messages or answers that came whole.
    pub received: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// How old they were on arrival.
    pub ages: Ages,
}

impl Tally {
    /// The mean age on arrival.
    pub fn mean_age(&self) -> Option<Duration> {
        self.ages.mean()
    }

    /// Counts one that was made at `made_at`; its bytes are the caller's to count.
    pub(crate) fn count(&mut self, made_at: Instant, now: Instant) {
        self.received += 1;
        self.ages.count(now.since(made_at));
    }
}

impl Readings {
    /// Sends readings of `len` bytes (at least [`READING_LEN_MIN`]) to a port of somebody, the
    /// first within one interval from `from`: motes are not in step.
    pub fn new(
        to: (Ipv6Addr, u16),
        len: usize,
        interval: Duration,
        from: Instant,
        rng: &mut Rng,
    ) -> Self {
        Self {
            to,
            port: PORT,
            interval: interval.max(Duration::from_micros(1)),
            next: from + rng.uniform(interval),
            until: Instant::from_micros(u64::MAX),
            payload: vec![0x5a; len.max(READING_LEN_MIN)],
            made: 0,
            refused: 0,
        }
    }

    /// Makes none from `until` on.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = until;
        self
    }

    /// When the next one is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        (self.next < self.until).then_some(self.next)
    }

    /// The node is switched on again: no reading was made in between.
    pub(super) fn switch_on(&mut self, now: Instant) {
        while self.next <= now {
            self.next += self.interval;
        }
    }

    pub(crate) fn step(&mut self, node: &mut Node<'_>, now: Instant) -> bool {
        if self.next_deadline().is_none_or(|due| now < due) {
            return false;
        }
        let number = self.made.to_be_bytes();
        let made_at = now.as_micros().to_be_bytes();
        for (place, byte) in self
            .payload
            .iter_mut()
            .zip(number.into_iter().chain(made_at))
        {
            *place = byte;
        }
        self.made += 1;
        // A mote that has not joined yet loses its reading like one whose queue is full.
        if node
            .send_datagram(self.to, self.port, &self.payload)
            .is_err()
        {
            self.refused += 1;
        }
        while self.next <= now {
            self.next += self.interval;
        }
        true
    }
}

impl<'m> Sink<'m> {
    /// Receives at `ports`.
    pub fn new(ports: &[u16], arena: &'m Arena) -> Self {
        let memory = arena.alloc_slice_fill_copy(INBOX_LEN, 0);
        let tallies = ports.iter().map(|port| (*port, Tally::default()));
        Self {
            inbox: Some(Inbox::new(arena.alloc_slice_copy(ports), memory)),
            tallies: tallies.collect(),
            reading: vec![0; READING_LEN_MAX],
        }
    }

    /// The node is switched off, and what waited in the inbox is gone.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.inbox = take_inbox(node).or(self.inbox.take());
    }

    /// The datagrams that came to `port`.
    pub fn tally(&self, port: u16) -> Option<&Tally> {
        let mut tallies = self.tallies.iter();
        tallies
            .find(|(own, _)| *own == port)
            .map(|(_, tally)| tally)
    }

    pub(crate) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if let Some(inbox) = self.inbox.take() {
            node.set_inbox(inbox);
            return true;
        }
        let Some(inbox) = node.inbox_mut() else {
            return false;
        };
        let mut acted = false;
        while let Some(datagram) = inbox.recv(&mut self.reading) {
            acted = true;
            let mut tallies = self.tallies.iter_mut();
            let Some((_, tally)) = tallies.find(|(port, _)| *port == datagram.port) else {
                continue;
            };
            let made_at = self.reading[4..]
                .first_chunk()
                .map(|us| u64::from_be_bytes(*us));
            tally.count(Instant::from_micros(made_at.unwrap_or_default()), now);
            tally.bytes += datagram.len as u64;
        }
        acted
    }
}

/// An empty inbox over the memory of that of a node which is switched off.
pub(super) fn take_inbox<'m>(node: &mut Node<'m>) -> Option<Inbox<'m>> {
    let inbox = std::mem::replace(node.inbox_mut()?, Inbox::new(&[], &mut []));
    let (ports, memory) = inbox.into_memory();
    Some(Inbox::new(ports, memory))
}

/// A number and an instant.
pub const READING_LEN_MIN: usize = 12;

/// Longer ones are cut when read.
const READING_LEN_MAX: usize = 1_024;

/// Bytes of readings that wait to be read; they never do for long.
const INBOX_LEN: usize = 4_096;

/// The source port of readings: 6LoWPAN compresses it to four bits (RFC 6282 §4.3.1).
const PORT: u16 = 0xf0b1;
