//! One end's context of a connection: 84 bytes.
//!
//! Place: the compressor reads and advances the sending half, the decompressor the receiving half,
//! and each validated segment confirms something about what was sent.
//! Left out: addresses; a keyed hash of both stands for them, and the TCP checksum, which covers
//! the addresses themselves, for the rest. Distances are kept as 16 bits where a larger one would
//! be of no use.

use crate::time::Instant;
use crate::wire::tcp::Flags;

use super::Mode;
use super::agreed::Agreement;
use super::numbers::{UNKNOWN, after, behind, behind_by, clip, distance, grow};
use super::rules::{Cure, FLIGHT_MAX, Rules};
use super::segment::Segment;
use super::windows::{Set, WindowSet};

/// One connection's context, borrowed from the caller; [`Context::EMPTY`] to begin with.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction: bytes up to
/// 31 from the start, halfwords up to 62. In the compiler's order a mote is 190 B larger.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Context {
    pub(super) cid: u8,
    /// Window sets, two bits each, and how often the last window was sent: see [`WindowSet`].
    sets: u8,
    /// Keyed hash of the remote address: bounds how many contexts one node takes.
    pub(super) remote: u16,
    /// Low half of the peer's initial sequence number: tells a repeated SYN from a new one.
    pub(super) peer_isn: u16,
    /// How far L_ack, the highest acknowledgment the peer is known to hold, is behind `u_ack`.
    pub(super) l_ack_behind: u16,
    /// How far L_tsecr, the highest TSecr the peer is known to hold, is behind `u_tsecr`.
    pub(super) l_tsecr_behind: u16,
    /// The highest right edge sent, less `u_ack`.
    edge_ahead: u16,
    /// The windows sent and validated last.
    pub(super) last_window: u16,
    pub(super) r_window: u16,
    /// Windows the peer may hold; those since the pair; those since the tpair.
    windows: [u16; 3],
    /// A new TSval whose echo will confirm: `u_tsval`, `u_tsecr`, `u_ack` less its own.
    pub(super) tpair: (u16, u16, u16),
    /// Keyed hash of the local and the remote address.
    pub(super) addresses: u32,
    pub(super) ports: (u16, u16),
    bits: u32,
    /// When something was last sent or validated, in units of [`TICK_SHIFT`].
    active_at: u32,

    // Sent. "u" is the highest value sent, "l" the highest the peer is known to hold.
    pub(super) u_seq: u32,
    pub(super) u_ack: u32,
    pub(super) u_tsval: u32,
    pub(super) u_tsecr: u32,
    /// New data whose acknowledgment will confirm: `u_seq` less its end; `u_ack` less its ack.
    pub(super) pair: (u16, u16),

    // Validated. L_seq is `r_ack`, and L_tsval `r_tsecr`, while the bits say so.
    pub(super) r_seq: u32,
    pub(super) r_ack: u32,
    pub(super) r_tsval: u32,
    pub(super) r_tsecr: u32,

    /// Whether both ends compress, where that is agreed.
    pub(super) agreement: Agreement,
}

/// The life of a context, from the SYN to the end of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The context belongs to no connection.
    Free,
    /// A SYN has named the context; only full headers are sent.
    Offered,
    /// Both ends have the context; all forms of headers are sent.
    Active,
    /// The connection is over; late segments are still understood.
    Quarantine,
}

/// The form of header by which a segment travelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Compressed header (CH): fields by their low bits, or left out.
    Compressed,
    /// Mostly compressed header (MH).
    Mostly,
    /// Full header (FH), or plain TCP.
    Full,
}

/// Bits of [`Context::bits`], of which each states one fact about the context.
pub(super) mod bit {
    /// `u_seq` has a value: something was sent.
    pub(in crate::tcphc) const U_SEQ: u32 = 1 << 16;
    pub(in crate::tcphc) const U_ACK: u32 = 1 << 17;
    pub(in crate::tcphc) const U_TS: u32 = 1 << 18;
    pub(in crate::tcphc) const R_SEQ: u32 = 1 << 19;
    pub(in crate::tcphc) const R_ACK: u32 = 1 << 20;
    pub(in crate::tcphc) const R_TS: u32 = 1 << 21;
    pub(in crate::tcphc) const R_WINDOW: u32 = 1 << 22;
    /// `r_ack` stands for L_seq, the highest sequence number the peer is known to hold.
    pub(in crate::tcphc) const L_SEQ: u32 = 1 << 23;
    /// `r_tsecr` stands for L_tsval, the highest TSval the peer is known to hold.
    pub(in crate::tcphc) const L_TSVAL: u32 = 1 << 24;
    /// `edge_ahead` counts every window sent.
    pub(in crate::tcphc) const EDGE: u32 = 1 << 25;
    /// Something was validated since the last sending.
    pub(in crate::tcphc) const HEARD: u32 = 1 << 26;
    /// Send an MH next: the peer repeats itself.
    pub(in crate::tcphc) const REFRESH: u32 = 1 << 27;
    /// Send an FH next: the peer's references jumped.
    pub(in crate::tcphc) const REFRESH_FULL: u32 = 1 << 28;
    /// Send FH until something is validated: perhaps the peer has no context.
    pub(in crate::tcphc) const UNSURE: u32 = 1 << 29;
    /// A FIN was sent; received. Quarantine when both are acknowledged.
    pub(in crate::tcphc) const FIN_SENT: u32 = 1 << 30;
    pub(in crate::tcphc) const FIN_HEARD: u32 = 1 << 31;
    /// This end opened the connection.
    pub(in crate::tcphc) const OPENER: u32 = 1 << 6;
    /// The opener has its SYN-ACK: what it sends next makes the context active.
    pub(in crate::tcphc) const ANSWERED: u32 = 1 << 7;
    /// This end joined late: segments beyond `u_seq` may have been sent before.
    pub(in crate::tcphc) const JOINED: u32 = 1 << 12;
    pub(in crate::tcphc) const U_TSECR: u32 = 1 << 10;
    /// A segment passed that was not counted: its TSval may be echoed.
    pub(in crate::tcphc) const UNCOUNTED: u32 = 1 << 13;
    pub(in crate::tcphc) const R_TSECR: u32 = 1 << 11;
    pub(in crate::tcphc) const OUR_FIN_ACKED: u32 = 1 << 8;
    pub(in crate::tcphc) const PEER_FIN_ACKED: u32 = 1 << 9;
}

const STATE_MASK: u32 = 3;
const SHIFT_AT: u32 = 2;
const SHIFT_MASK: u32 = 0xf << SHIFT_AT;

/// 2^16 µs: an idle time, not a clock.
const TICK_SHIFT: u32 = 16;
/// 2^24 µs, 16.8 s: what echoes are dated in.
const SPELL_SHIFT: u32 = 24;
/// As many of them as `active_at` counts.
const SPELL_MASK: u32 = u32::MAX >> (SPELL_SHIFT - TICK_SHIFT);
/// Two of the context's bits hold the number of spells.
const UNHEARD_AT: u32 = 14;
const UNHEARD_MAX: u32 = 3;

impl Context {
    /// A context of no connection.
    pub const EMPTY: Self = Self {
        addresses: 0,
        ports: (0, 0),
        remote: 0,
        peer_isn: 0,
        cid: 0,
        sets: 0b0011_1111,
        bits: 0,
        active_at: 0,
        u_seq: 0,
        u_ack: 0,
        u_tsval: 0,
        u_tsecr: 0,
        l_ack_behind: UNKNOWN,
        l_tsecr_behind: UNKNOWN,
        edge_ahead: 0,
        last_window: 0,
        windows: [0; 3],
        pair: (UNKNOWN, 0),
        tpair: (UNKNOWN, 0, 0),
        r_seq: 0,
        r_ack: 0,
        r_tsval: 0,
        r_tsecr: 0,
        r_window: 0,
        agreement: Agreement::BOTH,
    };

    pub(super) const fn state(&self) -> State {
        match self.bits & STATE_MASK {
            0 => State::Free,
            1 => State::Offered,
            2 => State::Active,
            _ => State::Quarantine,
        }
    }

    pub(super) const fn set_state(&mut self, state: State) {
        self.bits = self.bits & !STATE_MASK | state as u32;
    }

    /// The connection is over, if `over`: its slot goes to the first connection that needs one.
    pub(super) const fn end_if(&mut self, over: bool) {
        if over {
            self.set_state(State::Quarantine);
        }
    }

    /// Begins anew in the middle of the connection, where nothing is known: full headers until
    /// something is validated.
    pub(super) fn join_late(&mut self) {
        *self = Self {
            addresses: self.addresses,
            ports: self.ports,
            remote: self.remote,
            cid: self.cid,
            active_at: self.active_at,
            bits: self.bits & SHIFT_MASK,
            agreement: self.agreement,
            ..Self::EMPTY
        };
        self.set_state(State::Active);
        self.put(bit::UNSURE | bit::JOINED, true);
        self.put_set(Set::Held, WindowSet::Many);
    }

    /// Called when any segment except a reset is sent or received. A connection that looked
    /// finished, but that both ends have not closed, is active again.
    pub(super) const fn go_on(&mut self) {
        self.set_state(State::Active);
    }

    pub(super) const fn has(&self, bits: u32) -> bool {
        self.bits & bits == bits
    }

    pub(super) const fn put(&mut self, bits: u32, on: bool) {
        self.bits = if on {
            self.bits | bits
        } else {
            self.bits & !bits
        };
    }

    /// `value` if it is known.
    pub(super) fn reference(&self, known: u32, value: u32) -> Option<u32> {
        self.has(known).then_some(value)
    }

    pub(super) const fn shift(&self) -> u32 {
        (self.bits & SHIFT_MASK) >> SHIFT_AT
    }

    /// Our window's scale; RFC 7323 §2.3 bounds it to 14.
    pub(super) fn set_shift(&mut self, shift: u8) {
        self.bits = self.bits & !SHIFT_MASK | u32::from(shift.min(14)) << SHIFT_AT;
    }

    pub(super) const fn touch(&mut self, now: Instant) {
        self.active_at = (now.as_micros() >> TICK_SHIFT) as u32;
    }

    /// How often a spell ([`SPELL_SHIFT`]) has ended since something was validated, 3 at the
    /// most: below 2, that was less than 33.6 s ago.
    pub(super) const fn unheard_spells(&self, now: Instant) -> u32 {
        let before = self.active_at >> (SPELL_SHIFT - TICK_SHIFT);
        let spells = ((now.as_micros() >> SPELL_SHIFT) as u32).wrapping_sub(before);
        let known = self.bits >> UNHEARD_AT & UNHEARD_MAX;
        // What is counted as active_at moves on is never counted twice.
        match (spells & SPELL_MASK).saturating_add(known) {
            sum if sum < UNHEARD_MAX => sum,
            _ => UNHEARD_MAX,
        }
    }

    pub(super) const fn put_unheard_spells(&mut self, spells: u32) {
        self.bits = self.bits & !(UNHEARD_MAX << UNHEARD_AT) | spells << UNHEARD_AT;
    }

    /// Seconds since something was sent or validated; wraps after nine years.
    pub(super) const fn idle_s(&self, now: Instant) -> u32 {
        let ticks = ((now.as_micros() >> TICK_SHIFT) as u32).wrapping_sub(self.active_at);
        // 2^16 us are 0.0655 s: one part in 15.26, and a little less than one in 15.
        (ticks >> 4).saturating_add(ticks >> 8)
    }

    pub(super) fn set(&self, which: Set) -> WindowSet {
        let value = self.windows.get(which as usize).copied().unwrap_or(0);
        match self.sets >> (2 * which as u32) & 3 {
            0 => WindowSet::Many,
            1 => WindowSet::High((value >> 8) as u8),
            2 => WindowSet::One(value),
            _ => WindowSet::Empty,
        }
    }

    pub(super) fn put_set(&mut self, which: Set, set: WindowSet) {
        let (kind, value) = match set {
            WindowSet::Many => (0, 0),
            WindowSet::High(high) => (1, u16::from(high) << 8),
            WindowSet::One(window) => (2, window),
            WindowSet::Empty => (3, 0),
        };
        let at = 2 * which as u32;
        self.sets = self.sets & !(3 << at) | kind << at;
        if let Some(slot) = self.windows.get_mut(which as usize) {
            *slot = value;
        }
    }

    /// How often, up to three times, the last window went out explicitly.
    pub(super) const fn repeats(&self) -> u8 {
        self.sets >> 6
    }

    const fn put_repeats(&mut self, repeats: u8) {
        self.sets = self.sets & 0x3f | repeats << 6;
    }

    /// L_seq: the peer holds everything before it.
    pub(super) const fn l_seq(&self) -> Option<u32> {
        if self.has(bit::L_SEQ) && !after(self.r_ack, self.u_seq) {
            Some(self.r_ack)
        } else {
            None
        }
    }

    pub(super) const fn l_tsval(&self) -> Option<u32> {
        if self.has(bit::L_TSVAL) && !after(self.r_tsecr, self.u_tsval) {
            Some(self.r_tsecr)
        } else {
            None
        }
    }

    pub(super) const fn l_ack(&self) -> Option<u32> {
        behind(self.u_ack, self.l_ack_behind)
    }

    pub(super) const fn l_tsecr(&self) -> Option<u32> {
        behind(self.u_tsecr, self.l_tsecr_behind)
    }

    /// The highest right edge sent, this segment's included, less its own `ack`; `None`:
    /// no bound is known.
    pub(super) fn edge_beyond(&self, ack: u32, window: u16) -> Option<u32> {
        let own = u32::from(window) << self.shift();
        if !self.has(bit::EDGE | bit::U_ACK) {
            return None;
        }
        if self.edge_ahead == UNKNOWN {
            return Some(FLIGHT_MAX * 4);
        }
        let earlier = self.u_ack.wrapping_add(u32::from(self.edge_ahead));
        Some(own.max(distance(earlier, ack).max(0) as u32))
    }

    /// Counts a segment as sent. `explicit`: its window was in line.
    pub(super) fn on_sent(&mut self, seg: &Segment, explicit: bool, rules: Rules, now: Instant) {
        let first = !self.has(bit::U_SEQ);
        let ahead = first || after(seg.end(), self.u_seq);
        let ack_newest = seg
            .ack()
            .is_none_or(|ack| !self.has(bit::U_ACK) || !after(self.u_ack, ack));
        let newest = (ahead || seg.end() == self.u_seq) && ack_newest;
        let repeated = !first && seg.occupies() && after(self.u_seq, seg.seq());
        let new_tsval = seg
            .timestamps()
            .is_some_and(|(value, _)| self.is_new_tsval(seg, value, rules));

        self.count_window(seg.window(), explicit, newest || !rules.cured(Cure::Probes));
        if repeated {
            self.pair.0 = UNKNOWN;
        }
        self.advance(seg);
        for set in [Set::Held, Set::SincePair, Set::SinceTpair] {
            self.put_set(set, self.set(set).with(seg.window()));
        }
        if let Some(ack) = seg.ack() {
            let ack_behind = behind_by(self.u_ack, ack);
            if self.pair.0 == UNKNOWN && ahead && !repeated && seg.occupies() && ack_newest {
                self.pair = (behind_by(self.u_seq, seg.end()), ack_behind);
                self.put_set(Set::SincePair, WindowSet::One(seg.window()));
            }
            // Segments that share a TSval would confirm one another (cure 1).
            let counted = !self.has(bit::UNCOUNTED);
            let sure = new_tsval && newest && counted || !rules.cured(Cure::SharedTimestamp);
            if new_tsval {
                // Whatever passed before has this TSval at the most.
                self.put(bit::UNCOUNTED, false);
            }
            if let Some((value, echo)) = seg.timestamps()
                && self.tpair.0 == UNKNOWN
                && sure
            {
                let value_behind = behind_by(self.u_tsval, value);
                self.tpair = (value_behind, behind_by(self.u_tsecr, echo), ack_behind);
                self.put_set(Set::SinceTpair, WindowSet::One(seg.window()));
            }
            // The acknowledged data were received, though not seen at this end.
            if !self.has(bit::R_SEQ) {
                self.r_seq = ack;
                self.put(bit::R_SEQ, true);
            }
        }
        if rules.mode == Mode::Draft {
            (self.u_tsval, self.u_tsecr) = (seg.header.seq, seg.header.ack);
        }
        self.follow_fins(seg);
        self.put(bit::HEARD, false);
        self.put_unheard_spells(self.unheard_spells(now));
        self.touch(now);
    }

    /// Whether the TSval of this segment is new, so that an echo of it proves that this segment, or
    /// a later one, has arrived. Unknown for the first segments of an end that joined the
    /// connection late.
    fn is_new_tsval(&self, seg: &Segment, value: u32, rules: Rules) -> bool {
        match self.has(bit::U_TS) {
            true => after(value, self.u_tsval),
            false => seg.has(Flags::SYN) || !rules.cured(Cure::Uncounted),
        }
    }

    fn follow_fins(&mut self, seg: &Segment) {
        if seg.has(Flags::FIN) {
            self.put(bit::FIN_SENT, true);
        }
        if self.has(bit::FIN_HEARD) && seg.ack().is_some_and(|ack| !after(self.r_seq, ack)) {
            self.put(bit::PEER_FIN_ACKED, true);
        }
    }

    /// Moves the highest values sent, and with them all that is kept as a distance to them.
    fn advance(&mut self, seg: &Segment) {
        let by = self.step(bit::U_SEQ, self.u_seq, seg.end());
        if let Some(by) = by {
            grow(&mut self.pair.0, by);
            self.u_seq = seg.end();
        }
        if let Some(ack) = seg.ack() {
            self.advance_ack(ack, seg.window());
        }
        let Some((value, echo)) = seg.timestamps() else {
            return;
        };
        if let Some(by) = self.step(bit::U_TS, self.u_tsval, value) {
            grow(&mut self.tpair.0, by);
            self.u_tsval = value;
        }
        if seg.ack().is_some()
            && let Some(by) = self.step(bit::U_TSECR, self.u_tsecr, echo)
        {
            grow(&mut self.l_tsecr_behind, by);
            grow(&mut self.tpair.1, by);
            self.u_tsecr = echo;
        }
    }

    /// How far `value` is ahead of `highest`, if it is; 0 when it is the first (`known` gets set).
    pub(super) fn step(&mut self, known: u32, highest: u32, value: u32) -> Option<u32> {
        if !self.has(known) {
            self.put(known, true);
            return Some(0);
        }
        after(value, highest).then(|| value.wrapping_sub(highest))
    }

    /// Follows the window sent, and how often in a row it was explicit on a segment that the
    /// peer takes it from.
    fn count_window(&mut self, window: u16, explicit: bool, counts: bool) {
        if window != self.last_window {
            self.put_repeats(0);
            self.last_window = window;
        }
        if explicit && counts {
            self.put_repeats((self.repeats() + 1).min(REPEATS));
        }
    }

    fn advance_ack(&mut self, ack: u32, window: u16) {
        let own = u32::from(window) << self.shift();
        if let Some(by) = self.step(bit::U_ACK, self.u_ack, ack) {
            grow(&mut self.l_ack_behind, by);
            grow(&mut self.pair.1, by);
            grow(&mut self.tpair.2, by);
            if self.edge_ahead != UNKNOWN {
                self.edge_ahead = clip(u32::from(self.edge_ahead).saturating_sub(by));
            }
            self.u_ack = ack;
        }
        let edge = distance(ack.wrapping_add(own), self.u_ack).max(0) as u32;
        self.edge_ahead = self.edge_ahead.max(clip(edge));
    }

    /// Forgets what the peer was known to hold: after a far-away segment it means nothing (cure 7).
    pub(super) fn forget_sent(&mut self, seg: &Segment) {
        self.u_seq = seg.end();
        self.put(bit::U_SEQ, true);
        self.l_ack_behind = UNKNOWN;
        self.pair.0 = UNKNOWN;
        self.tpair.0 = UNKNOWN;
        self.put_set(Set::Held, WindowSet::Many);
        self.put(bit::L_SEQ | bit::EDGE | bit::U_ACK, false);
        self.put_repeats(0);
    }

    /// Whether both directions are over.
    pub(super) const fn is_closed(&self) -> bool {
        self.has(bit::OUR_FIN_ACKED | bit::PEER_FIN_ACKED)
    }
}

/// Explicit windows in a row after which one may be left out on hope.
pub(super) const REPEATS: u8 = 3;
/// A distance that no segment of the same connection should have from a reference (cure 7).
pub(super) const FAR: u32 = 32_768;

/// A mote has tens of kilobytes.
const _: () = assert!(size_of::<Context>() <= 84);
