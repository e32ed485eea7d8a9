//! Passive opens: listeners, half-open connections, SYN cookies.
//!
//! A listener is a port and a reference to its settings. A SYN costs one compact entry of a fixed
//! table, never buffers; the application lends those when it accepts a connection whose handshake
//! is done. When the table is full, the SYN-ACK itself carries the state (a SYN cookie); an entry
//! is made when the peer answers the cookie.
//!
//! Place: `arrival` finds the listener or the entry, and acts on the results of the functions here.
//! Left out: data; data that arrive between the handshake and `accept` are dropped, and the peer
//! retransmits them. Sources: RFC 9293 §3.10.7.2, RFC 4987 §3, RFC 6528.

use core::net::Ipv6Addr;

use super::SegmentDrop;
use super::config::{Config, HAS_LISTEN};
use super::facts::Facts;
use super::segment::Segment;
use super::seq::SeqNum;
use super::timers::{deadline, has_come};
use super::types::Endpoints;
use crate::limits::TCP_LISTENERS_MAX;
use crate::wire::tcp::Flags;

/// A place for a passive socket.
#[derive(Clone, Copy, Debug)]
pub struct Listener<'m> {
    /// `None`: the place is free.
    pub(super) config: Option<&'m Config>,
    pub(super) port: u16,
    /// The local address it is bound to; unspecified: every one.
    pub(super) local: Ipv6Addr,
    pub(super) generation: u32,
}

impl Listener<'_> {
    /// A place without a listener.
    pub const EMPTY: Self = Self {
        config: None,
        port: 0,
        local: Ipv6Addr::UNSPECIFIED,
        generation: 0,
    };
}

/// A place for a connection whose handshake is under way, or done and not accepted yet.
///
/// 60 bytes.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction. In the
/// compiler's order a mote is 100 B larger.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HalfOpen {
    /// The listener, in the low bits; the top one: a challenge ACK is due; below that: it was
    /// reported that it waits for `accept`; below that, two bits: how many challenge ACKs
    /// were due since the deadline was armed.
    listener: u8,
    /// [`Stage`] in bits 0 and 1, what was agreed upon in bits 2 to 4; in bits 5 to 7 retries, and
    /// once ready, whether there were any (5), whether it had to wait for a slot (6) and whether
    /// data came too early (7).
    bits: u8,
    /// The peer's MSS option, or what the link carries if that is less.
    pub(super) smss: u16,
    /// Until the handshake is done, the MSS that we announce; then the peer's window, from the
    /// segment that completed it.
    rmss_or_window: u16,
    pub(super) ends: Endpoints,
    pub(super) irs: SeqNum,
    pub(super) iss: SeqNum,
    /// TSval to echo. Without timestamps, of an entry that is ready: the SYN-ACK's round trip,
    /// ms; 0: unknown.
    pub(super) ts_recent: u32,
    /// When to send the SYN-ACK again, or to give the entry up; as [`super::timers`] counts.
    pub(super) deadline: u32,
}

/// A table of passive opens; where the build has none, an empty one, and the compiler leaves out
/// what would look into it.
pub(super) const fn possible<T>(table: &[T]) -> &[T] {
    match HAS_LISTEN {
        true => table,
        false => &[],
    }
}

/// As [`possible`].
pub(super) const fn possible_mut<T>(table: &mut [T]) -> &mut [T] {
    match HAS_LISTEN {
        true => table,
        false => &mut [],
    }
}

/// How far a [`HalfOpen`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Free,
    /// A SYN-ACK is to be sent.
    SynAckDue,
    /// The SYN-ACK waits for its acknowledgment.
    SynReceived,
    /// The handshake is done; `accept` is awaited.
    Ready,
}

/// The options that both sides of a connection offered in their SYNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Whether timestamps are used (RFC 7323).
    pub timestamps: bool,
    /// Whether selective acknowledgments are used (RFC 2018).
    pub sack: bool,
    /// Whether explicit congestion notification is used (RFC 3168).
    pub ecn: bool,
}

impl HalfOpen {
    /// A place without a handshake.
    pub const EMPTY: Self = Self {
        ends: Endpoints::NONE,
        irs: SeqNum::new(0),
        iss: SeqNum::new(0),
        ts_recent: 0,
        deadline: 0,
        smss: 0,
        rmss_or_window: 0,
        listener: 0,
        bits: 0,
    };

    /// An entry of `listener` that announces an MSS of `rmss`.
    pub(super) fn new(ends: &Endpoints, listener: u8, agreed: Facts, rmss: u16) -> Self {
        Self {
            ends: *ends,
            listener,
            bits: agreed.agreed() << 2,
            rmss_or_window: rmss,
            ..Self::EMPTY
        }
    }

    pub(super) const fn listener(&self) -> u8 {
        self.listener & LISTENER
    }

    pub(super) const fn stage(&self) -> Stage {
        match self.bits & 3 {
            0 => Stage::Free,
            1 => Stage::SynAckDue,
            2 => Stage::SynReceived,
            _ => Stage::Ready,
        }
    }

    pub(super) fn set_stage(&mut self, stage: Stage) {
        self.bits = self.bits & !3 | stage as u8;
    }

    /// Checks a segment for this handshake by RFC 9293 §3.10.7.4, PAWS first (RFC 7323 §5.3).
    /// `window`: the window that the SYN-ACK announced. `Ok`: the segment acknowledges our SYN.
    ///
    /// # Errors
    /// The first check that it fails: `OldTimestamp`, `NoTimestamp`, those of [`Segment::check`],
    /// and `UnacceptableAck` or, once our SYN was acknowledged, `AckOfUnsent`.
    pub(super) fn judge(&self, seg: &Segment<'_>, window: u16) -> Result<(), SegmentDrop> {
        if self.agreed().has(Facts::TIMESTAMPS) && !seg.has(Flags::RST) {
            match seg.timestamps() {
                Some((value, _)) if (value.wrapping_sub(self.ts_recent) as i32) < 0 => {
                    return Err(SegmentDrop::OldTimestamp);
                }
                // A SYN need not bear a timestamp: its sender may have given them up.
                None if !seg.has(Flags::SYN) => return Err(SegmentDrop::NoTimestamp),
                _ => {}
            }
        }
        seg.check(self.irs.plus(1), window)?;
        match seg.ack() == self.iss.plus(1) {
            true => Ok(()),
            // In ESTABLISHED, where nothing was sent yet.
            false if self.stage() == Stage::Ready => Err(SegmentDrop::AckOfUnsent),
            false => Err(SegmentDrop::UnacceptableAck),
        }
    }

    /// Whether the segment repeats the SYN that began the handshake, while that is under way.
    pub(super) fn is_syn_again(&self, seg: &Segment<'_>) -> bool {
        let control = Flags::SYN | Flags::ACK | Flags::RST;
        let is_syn = seg.flags.bits() & control.bits() == Flags::SYN.bits();
        is_syn && seg.seq == self.irs && self.stage() != Stage::Ready
    }

    /// Handles a retransmitted SYN: the SYN-ACK is sent again. `agreed`: the options of this SYN
    /// that this node supports. An option that any of the SYNs lacks is not used: the peer may have
    /// dropped it because of the path (RFC 3168 §6.1.1.1), and its last SYN counts.
    pub(super) fn on_syn_again(&mut self, syn: &Segment<'_>, agreed: Facts) {
        self.bits &= agreed.agreed() << 2 | !((Facts::AGREED as u8) << 2);
        self.smss = self.smss.min(syn.mss);
        self.note_timestamp(syn);
        self.set_stage(Stage::SynAckDue);
    }

    /// Sets TS.Recent (RFC 7323 §4.3), if `seg`, which passed [`Self::judge`], begins at the octet
    /// that was acknowledged last, or before.
    pub(super) fn note_timestamp(&mut self, seg: &Segment<'_>) {
        if let Some((value, _)) = seg.timestamps()
            && self.agreed().has(Facts::TIMESTAMPS)
            && !seg.seq.after(self.irs.plus(1))
        {
            self.ts_recent = value;
        }
    }

    /// A challenge ACK is due (RFC 9293 §3.10.7.4, RFC 5961): at most three until the entry's next
    /// deadline, so that a flood on one handshake neither reveals anything about another nor costs
    /// it anything; there is no limit if [`Config::challenge_interval_ms`] is 0.
    pub(super) fn challenge(&mut self, config: &Config) {
        if self.listener & CHALLENGES != CHALLENGES {
            self.listener += CHALLENGE;
        } else if config.challenge_interval_ms != 0 {
            return;
        }
        self.listener |= CHALLENGE_DUE;
    }

    /// Whether a challenge ACK is due.
    pub(super) const fn is_challenge_due(&self) -> bool {
        self.listener & CHALLENGE_DUE != 0
    }

    /// Takes the mark that a challenge ACK is due; returns whether it was set.
    pub(super) fn take_challenge(&mut self) -> bool {
        let was_due = self.is_challenge_due();
        self.listener &= !CHALLENGE_DUE;
        was_due
    }

    /// Whether the entry waits for `accept`, and that was not reported; marks it reported.
    pub(super) fn take_arrived(&mut self) -> bool {
        let is_new = self.stage() == Stage::Ready && self.listener & REPORTED == 0;
        if is_new {
            self.listener |= REPORTED;
        }
        is_new
    }

    /// Whether a SYN-ACK or a challenge ACK is to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.stage() == Stage::SynAckDue || !self.is_free() && self.is_challenge_due()
    }

    pub(super) const fn is_free(&self) -> bool {
        self.bits & 3 == 0
    }

    pub(super) fn agreed(&self) -> Facts {
        Facts::of_agreed(self.bits >> 2)
    }

    /// The MSS to announce; only before [`Stage::Ready`].
    pub(super) const fn rmss(&self) -> u16 {
        self.rmss_or_window
    }

    /// The peer's window, octets; only in [`Stage::Ready`].
    pub(super) const fn window(&self) -> u16 {
        self.rmss_or_window
    }

    pub(super) const fn retries(&self) -> u8 {
        self.bits >> 5
    }

    /// Handles the deadline: another SYN-ACK, or the end of the entry.
    ///
    /// `is_full`: no connection can be accepted. The time to accept then counts twice, since the
    /// peer's end is established; segments that it sends later are answered with a reset. With the
    /// default settings that is one minute, as long as Linux waits with five SYN-ACKs for room in a
    /// queue.
    pub(super) fn on_deadline(&mut self, config: &Config, is_full: bool, now: u32) {
        if self.is_free() || !has_come(self.deadline, now) {
            return;
        }
        if is_full && self.stage() == Stage::Ready && !self.is_prolonged() {
            self.bits |= PROLONGED;
            self.deadline = deadline(now, u32::from(config.accept_timeout_ms));
            return;
        }
        let most = config.syn_retransmissions_max.min(7);
        if self.stage() == Stage::Ready || self.retries() >= most {
            self.set_stage(Stage::Free);
        } else {
            // Also where the last one found no way out: a peer that cannot be answered must not
            // keep the entry.
            self.bits += 1 << 5;
            self.set_stage(Stage::SynAckDue);
            self.arm(config, now);
        }
    }

    /// A SYN-ACK was sent: waits for its acknowledgment.
    pub(super) fn on_syn_ack_sent(&mut self, config: &Config, now: u32) {
        self.set_stage(Stage::SynReceived);
        self.arm(config, now);
    }

    /// How long to wait for a SYN-ACK to go out, then for its answer.
    pub(super) fn arm(&mut self, config: &Config, now: u32) {
        self.listener &= !CHALLENGES;
        let wait = u32::from(config.rto_initial_ms) << self.retries();
        self.deadline = deadline(now, wait.min(u32::from(config.rto_max_ms)));
    }

    /// The SYN-ACK is acknowledged: notes its round trip, ms, in `ts_recent`, where timestamps do
    /// not use it. It means nothing if [`Self::was_resent`]. A repeated SYN also caused two
    /// SYN-ACKs: the time may then be that of the later one, too short, and the RTO is as without
    /// it.
    pub(super) fn measure(&mut self, config: &Config, now: u32) {
        if !self.agreed().has(Facts::TIMESTAMPS) {
            let wait = u32::from(config.rto_initial_ms) << 5;
            let rtt = now.wrapping_sub(self.deadline.wrapping_sub(wait));
            // Rounded up, as what rests on it must not come early.
            self.ts_recent = rtt.wrapping_add(31) >> 5;
        }
    }

    /// The handshake is done; the application has some time to accept.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn on_acknowledged(&mut self, window: u16, config: &Config, now: u32) {
        let resent = u8::from(self.retries() > 0);
        self.listener &= !CHALLENGES;
        self.bits = self.bits & 0x1f | resent << 5;
        self.rmss_or_window = window;
        self.set_stage(Stage::Ready);
        self.deadline = deadline(now, u32::from(config.accept_timeout_ms));
    }

    /// Whether a done handshake had to wait for a slot; only in [`Stage::Ready`].
    pub(super) const fn is_prolonged(&self) -> bool {
        self.bits & PROLONGED != 0
    }

    /// Notes that data came before `accept`, and were dropped.
    pub(super) fn miss_data(&mut self) {
        self.bits |= 1 << 7;
    }

    /// Whether data came before `accept`, and were dropped; only in [`Stage::Ready`].
    pub(super) const fn has_missed_data(&self) -> bool {
        self.bits & 1 << 7 != 0
    }

    /// Whether the SYN-ACK was sent more than once; only in [`Stage::Ready`].
    pub(super) const fn was_resent(&self) -> bool {
        self.bits & 1 << 5 != 0
    }
}

/// Parts of [`HalfOpen::listener`]; the lowest is all that [`TCP_LISTENERS_MAX`] needs.
const LISTENER: u8 = CHALLENGE - 1;
const CHALLENGE: u8 = 1 << 4;
const CHALLENGES: u8 = 3 * CHALLENGE;
const REPORTED: u8 = 1 << 6;
const CHALLENGE_DUE: u8 = 1 << 7;
const _: () = assert!(TCP_LISTENERS_MAX <= LISTENER as usize + 1);
/// The bit of [`HalfOpen::bits`] that [`HalfOpen::is_prolonged`] reads.
const PROLONGED: u8 = 1 << 6;

/// The offers in `syn` that `config` lets us take.
pub(super) fn agree(config: &Config, syn: &Segment<'_>) -> Facts {
    let mut agreed = Facts::offered_by(config);
    agreed.keep_offered(&syn.header().options, syn.mss);
    if !syn.has(Flags::ECE | Flags::CWR) {
        agreed.clear(Facts::ECN);
    }
    agreed
}

/// SYN cookies: an ISS that proves that its acknowledger received it (RFC 4987 §3.6).
///
/// ```text
///  31    27 26   24 23                      0
/// | period | MSS   | keyed hash              |
/// ```
/// `period`: 64 s, modulo 32. The hash covers both ends, the peer's ISN, period and MSS.
pub(super) mod cookie {
    use super::SeqNum;

    /// MSS values that a cookie can carry, bytes: common ones of meshes, of IPv6's least MTU, of
    /// Ethernet.
    const MSS: [u16; 8] = [MSS_MIN, 128, 256, 408, 462, 536, 1220, 1440];

    /// The least MSS that a cookie can carry, bytes.
    pub(in crate::tcp) const MSS_MIN: u16 = 64;

    /// Cookies are good for this many periods after their own.
    const PERIODS_MAX: u32 = 1;

    /// How long a cookie is good for, at most: its own period and those after it.
    pub(in crate::tcp) const LIFETIME_MS: u32 = (PERIODS_MAX + 1) << PERIOD_SHIFT;

    /// A period is 2^16 ms.
    const PERIOD_SHIFT: u32 = 16;

    pub(in crate::tcp) const fn period(now_ms: u32) -> u32 {
        now_ms >> PERIOD_SHIFT & 31
    }

    /// The index of the largest MSS not above `mss`.
    pub(in crate::tcp) fn mss_index(mss: u16) -> u32 {
        let above = MSS
            .iter()
            .position(|known| *known > mss)
            .unwrap_or(MSS.len());
        above.saturating_sub(1) as u32
    }

    pub(in crate::tcp) const fn make(period: u32, mss_index: u32, hash: u64) -> SeqNum {
        SeqNum::new(period << 27 | mss_index << 24 | hash as u32 & 0x00ff_ffff)
    }

    /// The period and MSS index that a cookie claims, if it is not outdated.
    pub(in crate::tcp) fn claims(cookie: SeqNum, now_ms: u32) -> Option<(u32, u32)> {
        let then = cookie.get() >> 27;
        let age = period(now_ms).wrapping_sub(then) & 31;
        (age <= PERIODS_MAX).then_some((then, cookie.get() >> 24 & 7))
    }

    pub(in crate::tcp) fn mss(index: u32) -> u16 {
        MSS.get(index as usize).copied().unwrap_or(MSS_MIN)
    }
}
