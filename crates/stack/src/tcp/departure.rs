//! Departure of segments: the connection whose turn it is to send, and the time of the next
//! segment.
//!
//! Place: `node` pulls segments from here when there is room for one; [`super::output`] decides
//! what a connection sends, and writes it. This file has the order of turns, replies to strangers,
//! the clock and look-ups in the tables.

use super::clock::LONG_STEP;
use super::config::Config;
use super::connection::Connection;
use super::facts::Facts;
use super::listener::{possible, possible_mut};
use super::reply::Reply;
use super::segment::{Head, PlannedHeader};
use super::seq::SeqNum;
use super::state::State;
use super::timers::{NEVER, present, wait_until};
use super::types::{Endpoints, OutgoingSegment, Reachability, count};
use super::{RetransmissionCause, Tcp};
use crate::time::{Duration, Instant};
use crate::wire::tcp::Flags;

impl<'m> Tcp<'m> {
    /// Writes the next segment to send, if any, to `out`, which holds a whole one (the MSS
    /// and 60 bytes).
    ///
    /// `room`: whether a packet between these ends could be sent on now; asked before a segment
    /// is counted sent, because one refused afterwards would be a loss of our own making.
    pub fn poll_segment(
        &mut self,
        now: Instant,
        mut room: impl FnMut(&Endpoints) -> bool,
        out: &mut [u8],
    ) -> Option<OutgoingSegment> {
        let way = |ends: &Endpoints| match room(ends) {
            true => Reachability::Open,
            false => Reachability::Shut,
        };
        self.poll_segment_within(now, way, |_, _| u16::MAX, out)
    }

    /// As [`Self::poll_segment`], for links on which the length of a header depends on its
    /// contents, and for routes that may be missing.
    ///
    /// `way`: asked as `room` is.
    ///
    /// `payload_max`: how many bytes of new data the link takes, at least 1, behind this TCP header
    /// between these ends; a longer segment is cut to that. It is not called for retransmissions:
    /// cutting them would cost an additional segment.
    pub(crate) fn poll_segment_within(
        &mut self,
        now: Instant,
        mut way: impl FnMut(&Endpoints) -> Reachability,
        mut payload_max: impl FnMut(&Endpoints, &PlannedHeader<'_>) -> u16,
        out: &mut [u8],
    ) -> Option<OutgoingSegment> {
        self.set_now(now);
        self.on_deadline();
        // By turns, so that no flood of strangers silences the connections.
        for _ in 0..2 {
            self.strangers_turn = !self.strangers_turn;
            let outgoing = match self.strangers_turn {
                true => self.poll_answer(&mut way, out),
                false => self.poll_connection(&mut way, &mut payload_max, out),
            };
            if let Some(outgoing) = &outgoing {
                self.note_sent(outgoing.cause);
            }
            if outgoing.is_some() {
                return outgoing;
            }
        }
        None
    }

    /// Sends the answer to a peer that has no connection.
    fn poll_answer(
        &mut self,
        way: &mut impl FnMut(&Endpoints) -> Reachability,
        out: &mut [u8],
    ) -> Option<OutgoingSegment> {
        if let Some(reply) = &self.reply
            && way(&reply.ends) == Reachability::Open
        {
            let outgoing = Self::emit_reply(reply, out);
            if outgoing.is_some() {
                self.reply = None;
            }
            return outgoing;
        }
        let entries = possible(self.memory.half_open).iter();
        let due = entries
            .enumerate()
            .find(|(_, entry)| entry.is_due() && way(&entry.ends) == Reachability::Open);
        let (index, _) = due?;
        self.emit_half_open(index, out)
    }

    /// The next segment of the connection whose turn it is.
    fn poll_connection(
        &mut self,
        way: &mut impl FnMut(&Endpoints) -> Reachability,
        payload_max: &mut impl FnMut(&Endpoints, &PlannedHeader<'_>) -> u16,
        out: &mut [u8],
    ) -> Option<OutgoingSegment> {
        // One turn more than there are slots: the one behind the last wraps.
        for _ in 0..=self.memory.connections.len() {
            let Some(slot) = self.memory.connections.get_mut(usize::from(self.turn)) else {
                self.turn = 0;
                continue;
            };
            self.turn = self.turn.wrapping_add(1);
            if let Some(connection) = &mut slot.0
                && let Some(plan) = connection.plan()
            {
                match way(&connection.ends) {
                    Reachability::Open => return connection.emit(plan, payload_max, out),
                    Reachability::Shut => {}
                    #[cfg(any(feature = "cable", feature = "ble"))]
                    Reachability::Full => connection.on_wait(&plan),
                    Reachability::Missing => connection.on_no_route(&plan),
                }
            }
        }
        None
    }

    /// When [`Self::poll_segment`] must be called at the latest, even without an event.
    /// `None`: nothing will ever happen by itself.
    pub fn next_deadline(&self) -> Option<Instant> {
        let mut wait = NEVER;
        let since = present(self.now_ms, 0);
        for slot in self.memory.connections.iter() {
            if let Some(connection) = &slot.0 {
                wait = wait.min(connection.wait(since));
            }
        }
        for entry in possible(self.memory.half_open) {
            if !entry.is_free() {
                wait = wait.min(wait_until(entry.deadline, since));
            }
        }
        // In 32nds of a millisecond, rounded up: not before it is due.
        let wait_us = (u64::from(wait) * 125 + 3) >> 2;
        (wait != NEVER).then(|| self.tick + Duration::from_micros(wait_us))
    }

    /// The SYN-ACK of a half-open connection, or a challenge ACK.
    fn emit_half_open(&mut self, index: usize, out: &mut [u8]) -> Option<OutgoingSegment> {
        let now = self.present();
        let entry = possible(self.memory.half_open).get(index)?;
        let challenge = entry.is_challenge_due();
        let config = possible(self.memory.listeners)
            .get(usize::from(entry.listener()))?
            .config?;
        let ends = entry.ends;
        let (_, ts_offset) = self.initial_numbers(&ends);
        let agreed = entry.agreed();
        let clock = self.now_ms.wrapping_add(ts_offset);
        let flags = match (challenge, agreed.has(Facts::ECN)) {
            (true, _) => Flags::EMPTY,
            (false, true) => Flags::SYN | Flags::ECE,
            (false, false) => Flags::SYN,
        };
        let reply = Reply {
            ends,
            seq: entry.iss.plus(u32::from(challenge)),
            ack: entry.irs.plus(1),
            flags: Flags::ACK | flags,
            window: self.window_to_promise(entry.listener(), config),
            mss: entry.rmss(),
            timestamps: (clock, entry.ts_recent),
            agreed,
        };
        let mut outgoing = Self::emit_reply(&reply, out);
        if let Some(outgoing) = &mut outgoing
            && let Some(entry) = possible_mut(self.memory.half_open).get_mut(index)
        {
            outgoing.dscp = config.dscp;
            if !entry.take_challenge() {
                if entry.retries() > 0 {
                    outgoing.cause = Some(RetransmissionCause::Handshake);
                }
                entry.on_syn_ack_sent(config, now);
            }
        }
        outgoing
    }

    /// The window that a SYN-ACK announces: of the buffers that already wait for the connection, or
    /// the one that the settings promise.
    pub(super) fn window_to_promise(&self, listener: u8, config: &Config) -> u16 {
        let waiting = self.waiting_for(listener);
        let waiting = waiting.and_then(|index| self.at(index));
        let window = waiting.map_or(config.accept_window, |connection| connection.recv.window());
        window.min(self.window_max())
    }

    /// Writes a segment that belongs to no connection.
    fn emit_reply(reply: &Reply, out: &mut [u8]) -> Option<OutgoingSegment> {
        let ends = &reply.ends;
        let mut head = Head::new(ends, reply.seq, reply.ack);
        if reply.flags.contains(Flags::SYN) {
            head.push_syn_options(reply.mss, reply.agreed, reply.timestamps);
        } else if reply.agreed.has(Facts::TIMESTAMPS) {
            head.push_padded_timestamps(reply.timestamps);
        }
        let len = head.finish(ends, (reply.flags, reply.window), None, 0, out)?;
        Some(OutgoingSegment {
            src: ends.local,
            dst: ends.remote,
            zone: ends.zone,
            ecn: 0,
            dscp: 0,
            len,
            cause: None,
        })
    }

    fn note_sent(&mut self, cause: Option<RetransmissionCause>) {
        self.counters.sent = self.counters.sent.wrapping_add(1);
        if let Some(cause) = cause {
            count(self.counters.retransmissions.get_mut(cause as usize));
        }
    }

    pub(super) fn on_deadline(&mut self) {
        let now = self.present();
        for index in 0..self.memory.connections.len() {
            if let Some(connection) = self.at_mut(index) {
                connection.on_deadline();
            }
        }
        let is_full = self.free_slot().is_none();
        for entry in possible_mut(self.memory.half_open)
            .iter_mut()
            .filter(|entry| !entry.is_free())
        {
            let listener = possible(self.memory.listeners).get(usize::from(entry.listener()));
            if let Some(config) = listener.and_then(|listener| listener.config) {
                entry.on_deadline(config, is_full, now);
            }
        }
    }

    /// Brings the millisecond clock up to `now`; it never goes back. Frees the slots of orphans
    /// that are over.
    pub(super) fn set_now(&mut self, now: Instant) {
        let passed_us = now.since(self.tick).as_micros();
        // Of several calls at the same time only the first finds that the clock has advanced.
        let step = match passed_us == u64::from(self.tick_part_us) {
            true => 0,
            false => self.advance(passed_us),
        };
        let (now_ms, part) = (self.now_ms, self.now_part);
        for slot in self.memory.connections.iter_mut() {
            if let Some(connection) = &mut slot.0 {
                if step >= LONG_STEP {
                    connection.leap(step, now_ms, part);
                }
                connection.set_now(now_ms, part);
                if connection.is_orphan() && connection.is_over() {
                    slot.0 = None;
                }
            }
        }
    }

    /// Advances the clock to `passed_us` after [`Self::tick`]; returns the step in units of 1,024
    /// µs.
    ///
    /// It divides with 32 bits: a 64-bit division costs a Cortex-M0+ some 900 bytes of flash and as
    /// many cycles. So periods of 2^32 µs, which is 4,294,967 · 1000 + 296, are converted first, in
    /// three rounds at most.
    fn advance(&mut self, passed_us: u64) -> u32 {
        let step = u32::try_from(passed_us >> 10).unwrap_or(u32::MAX);
        let (mut left_us, mut ms) = (passed_us, 0_u32);
        while left_us >> 32 != 0 {
            let periods = (left_us >> 32) as u32;
            left_us = u64::from(periods) * 296 + u64::from(left_us as u32);
            ms = ms.wrapping_add(periods.wrapping_mul(PERIOD_MS));
        }
        let last_ms = left_us as u32 / 1000;
        let rest_us = left_us as u32 - last_ms * 1000;
        let tick = self.tick.as_micros().wrapping_add(passed_us);
        self.tick = Instant::from_micros(tick.wrapping_sub(u64::from(rest_us)));
        self.tick_part_us = rest_us as u16;
        ms = ms.wrapping_add(last_ms);
        self.now_ms = self.now_ms.wrapping_add(ms);
        // Of a millisecond's 32nds, the even ones, and whether more has passed; half a
        // microsecond is what `next_deadline` rounds up.
        self.now_part = (rest_us * 2 / 125 * 2 + u32::from(rest_us * 2 % 125 > 1)) as u8;
        if step >= LONG_STEP {
            self.leap(ms);
        }
        step
    }

    /// The clock has moved by `moved_ms`, modulo 2^32, at once: no cookie is valid any more, and
    /// handshakes count [`LEAP_COUNTS_MS`] of that time as waited.
    fn leap(&mut self, moved_ms: u32) {
        self.cookie_sent_at = None;
        let moved = moved_ms.saturating_sub(LEAP_COUNTS_MS) << 5;
        for entry in possible_mut(self.memory.half_open).iter_mut() {
            entry.deadline = entry.deadline.wrapping_add(moved);
        }
    }

    /// The present, as deadlines count it.
    pub(super) fn present(&self) -> u32 {
        present(self.now_ms, self.now_part)
    }

    /// The connection between two ends.
    pub(super) fn find(&mut self, ends: &Endpoints) -> Option<&mut Connection<'m>> {
        let mut connections = self
            .memory
            .connections
            .iter_mut()
            .flat_map(|slot| &mut slot.0);
        connections.find(|c| c.state() != State::Closed && c.is_between(ends))
    }

    /// The connection that waits for the next handshake of a listener.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn waiting_for(&self, listener: u8) -> Option<usize> {
        self.position(|c| c.waits_for(listener))
    }

    fn position(&self, wanted: impl Fn(&Connection<'m>) -> bool) -> Option<usize> {
        (0..self.memory.connections.len()).find(|index| self.at(*index).is_some_and(&wanted))
    }

    pub(super) fn at(&self, index: usize) -> Option<&Connection<'m>> {
        self.memory.connections.get(index)?.0.as_ref()
    }

    pub(super) fn at_mut(&mut self, index: usize) -> Option<&mut Connection<'m>> {
        self.memory.connections.get_mut(index)?.0.as_mut()
    }

    /// ISS and timestamp offset between two ends (RFC 6528 §3, RFC 7323 §5.4): a keyed hash,
    /// and for the ISS a clock of 4 µs ticks on top, read once a millisecond.
    pub(super) fn initial_numbers(&self, ends: &Endpoints) -> (SeqNum, u32) {
        let hash = self.hash_ends(ends, 0);
        let clock = self.now_ms.wrapping_mul(250);
        (
            SeqNum::new((hash as u32).wrapping_add(clock)),
            (hash >> 32) as u32,
        )
    }

    /// The keyed hash of two ends and a `salt`; key and node identifier are this node's own.
    pub(super) fn hash_ends(&self, ends: &Endpoints, salt: u64) -> u64 {
        let ports = u32::from(ends.local_port) << 16 | u32::from(ends.remote_port);
        let ports = u64::from(ends.zone) << 32 | u64::from(ports);
        let (local, remote) = (ends.local.octets(), ends.remote.octets());
        self.hash.hash(&[
            local.as_chunks().0,
            remote.as_chunks().0,
            &[ports.to_le_bytes(), (salt ^ self.id).to_le_bytes()],
        ])
    }
}

/// Half of the time in which the first SYN-ACK is answered or sent again: no handshake ends by a
/// leap of the clock, and none is kept for ever by a driver whose every step is a leap.
const LEAP_COUNTS_MS: u32 = 512;
/// Whole milliseconds in 2^32 µs.
const PERIOD_MS: u32 = 4_294_967;
