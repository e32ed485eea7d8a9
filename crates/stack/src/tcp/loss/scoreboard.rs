//! The scoreboard: what was sent, what arrived, what to send again.
//!
//! Place: [`Loss`](super::Loss) records transmissions and acknowledgments here; `detection`
//! decides on losses. One table of runs serves SACK recovery (RFC 6675), RACK-TLP (RFC 8985), New
//! Reno (RFC 6582) and Karn's rule alike: what lies between SND.UNA and SND.NXT is cut into runs
//! of bytes that share a fate and a time of transmission. Windows of 2 to 8 segments fit one run
//! per segment; beyond, neighbours that were sent closest together are merged, which only makes
//! RACK slower to judge them.
//!
//! The states of the runs are four words with one bit per run, so most queries are a few operations
//! on words, and no loop runs while all words are zero.
//!
//! Times are 16 bits, counted from an epoch that moves on: what was sent longer ago than
//! 32 s may be underestimated, but never below 32 s.

use crate::limits::SENT_RUNS_MAX;
use crate::tcp::config::{HAS_RECOVERY, HAS_SACK};
use crate::tcp::seq::SeqNum;

/// Consecutive bytes that were sent at one time and share a fate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, align(4))]
struct Run {
    /// Length, bytes; 0: an unused entry.
    len: u16,
    /// When the run was sent last, ms after the epoch.
    sent_at: u16,
}

/// The runs between SND.UNA and SND.NXT, in order. Offsets count from SND.UNA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Scoreboard {
    /// One bit per run, the lowest for the first one.
    marks: [u16; 4],
    /// The origin of `sent_at`; ms modulo 2^32.
    epoch: u32,
    /// The runs; the used entries come first.
    runs: [Run; SENT_RUNS_MAX],
}

/// The peer holds the run, out of order (SACK).
const SACKED: usize = 0;
/// The run is deemed lost (RFC 6675 §4, RFC 8985 §6.2).
const LOST: usize = 1;
/// A retransmission of the run is in the network.
const RESENT: usize = 2;
/// The run was retransmitted at least once: it gives no RTT sample (RFC 6298 §3, Karn).
const EVER_RESENT: usize = 3;

/// The delivery that one acknowledgment reports; filled while it is entered in the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Delivery {
    /// When the acknowledgment arrived, ms modulo 2^32.
    pub(in crate::tcp) now_ms: u32,
    /// SND.UNA before; offsets count from there.
    pub(in crate::tcp) base: SeqNum,
    /// Octets by which it moved SND.UNA on.
    pub(in crate::tcp) acked: u32,
    /// Since data were last acknowledged, or first sent into an empty network; ms.
    pub(in crate::tcp) elapsed: u32,
    /// How long ago the timestamp that it echoes was sent, ms, or [`NONE`].
    pub(in crate::tcp) echo: u32,
    /// The least age, ms, of a retransmission that this acknowledgment can be the answer to (RFC
    /// 8985 §6.2 step 2): the minimum RTT, and the age of the echoed timestamp. A younger one was
    /// not yet received.
    pub(in crate::tcp) age_min: u32,
    /// Offset behind the highest byte known delivered before.
    pub(in crate::tcp) highest: u32,
    /// Bytes newly known to have arrived.
    pub(in crate::tcp) bytes: u32,
    /// Age of the latest segment never retransmitted, ms, or [`NONE`]; see [`Self::round_trip`].
    pub(in crate::tcp) rtt: u32,
    /// How long ago the latest retransmission was sent of what it covers, whatever else is known of
    /// that, ms, or [`NONE`].
    pub(in crate::tcp) resent_age: u32,
    /// The newest transmission among them: its age, ms, or [`NONE`].
    pub(in crate::tcp) newest_age: u32,
    /// The offset behind that transmission, from [`Self::base`].
    pub(in crate::tcp) newest_end: u32,
    /// A delivered segment was sent before another that was already known to be delivered.
    pub(in crate::tcp) reordered: bool,
}

/// Stands for a time or an age that is not known.
pub(in crate::tcp) const NONE: u32 = u32::MAX;

impl Delivery {
    /// The round trip that it measured without a timestamp, ms, or [`NONE`].
    ///
    /// None where it covers anything retransmitted (RFC 6298 §3): the peer then answers the
    /// repair of a hole, and what was sent once behind that has waited there for as long as the
    /// repair took.
    pub(in crate::tcp) fn round_trip(&self) -> u32 {
        match self.resent_age {
            NONE => self.rtt,
            _ => NONE,
        }
    }

    /// Whether it acknowledges something sent once, no earlier than any retransmission that it
    /// covers: the network has carried new data since, and a timeout backed off is over (RFC 6298
    /// §5).
    pub(in crate::tcp) fn answers_new_data(&self) -> bool {
        self.rtt != NONE && self.rtt <= self.resent_age
    }

    fn note(&mut self, age: u32, end: u32, was_resent: bool) {
        if !was_resent {
            self.rtt = self.rtt.min(age);
            self.reordered |= end < self.highest;
        } else if age < self.age_min {
            return;
        }
        if HAS_RECOVERY
            && (age < self.newest_age || age == self.newest_age && end > self.newest_end)
        {
            self.newest_age = age;
            self.newest_end = end;
        }
    }
}

impl Scoreboard {
    pub(super) const NEW: Self = Self {
        marks: [0; 4],
        epoch: 0,
        runs: [Run { len: 0, sent_at: 0 }; SENT_RUNS_MAX],
    };

    /// Forgets every run of outstanding bytes.
    pub(super) fn clear(&mut self) {
        *self = Self::NEW;
    }

    /// Deems everything lost for good.
    pub(super) fn give_up(&mut self) {
        self.marks = [0, u16::MAX, 0, 0];
    }

    /// The record of an acknowledgment that arrives now, and acknowledges nothing yet.
    ///
    /// `age_min`: see [`Delivery::age_min`].
    pub(super) fn delivery(&self, now_ms: u32, age_min: u32) -> Delivery {
        Delivery {
            now_ms,
            base: SeqNum::new(0),
            acked: 0,
            elapsed: 0,
            echo: NONE,
            age_min,
            highest: match HAS_RECOVERY {
                true => self.highest_sacked(),
                false => 0,
            },
            bytes: 0,
            rtt: NONE,
            resent_age: NONE,
            newest_age: NONE,
            newest_end: 0,
            reordered: false,
        }
    }

    /// Whether every run was sent once, and none is known to be delivered or lost.
    pub(super) fn is_plain(&self) -> bool {
        self.marks == [0; 4]
    }

    /// Enters `len` new bytes sent at `now_ms`.
    pub(super) fn push(&mut self, len: u16, now_ms: u32) {
        self.make_room(1);
        let sent_at = self.stamp(now_ms);
        for run in &mut self.runs {
            if run.len == 0 {
                *run = Run { len, sent_at };
                return;
            }
        }
    }

    /// Takes `bytes` cumulatively acknowledged off the front.
    pub(super) fn acknowledge(&mut self, bytes: u32, delivery: &mut Delivery) {
        let (mut left, mut end) = (bytes, 0);
        while left > 0 && self.runs[0].len > 0 {
            let Run { len, sent_at } = self.runs[0];
            let step = left.min(u32::from(len));
            end += step;
            left -= step;
            let age = self.age(sent_at, delivery.now_ms);
            let was_resent = self.marks[EVER_RESENT] & 1 != 0;
            if was_resent {
                delivery.resent_age = delivery.resent_age.min(age);
            }
            if self.held() & 1 == 0 {
                delivery.bytes += step;
                delivery.note(age, end, was_resent);
            }
            self.runs[0].len -= step as u16;
            if self.runs[0].len == 0 {
                self.remove(0);
            }
        }
    }

    /// Marks the bytes between two offsets as held by the peer.
    pub(super) fn sack(&mut self, left: u32, right: u32, delivery: &mut Delivery) {
        let news = self.select(left, right) & !self.held();
        self.marks[SACKED] |= news;
        let mut end = 0;
        for (index, run) in self.runs.iter().enumerate() {
            end += u32::from(run.len);
            if news >> index & 1 != 0 {
                delivery.bytes += u32::from(run.len);
                let was_resent = self.marks[EVER_RESENT] >> index & 1 != 0;
                let age = self.age(run.sent_at, delivery.now_ms);
                if was_resent {
                    delivery.resent_age = delivery.resent_age.min(age);
                }
                delivery.note(age, end, was_resent);
            }
        }
    }

    /// Bytes believed not to be in the network any more: held by the peer, or lost and not
    /// sent again (RFC 6675 §4 `SetPipe`).
    pub(super) fn gone(&self) -> u32 {
        self.sum(self.held() | self.due())
    }

    /// Bytes the peer holds out of order.
    pub(super) fn sacked(&self) -> u32 {
        self.sum(self.held())
    }

    /// Bytes that the peer holds; and of the bytes that it does not hold, the ones deemed lost and
    /// the ones sent again.
    pub(super) fn fates(&self) -> [u32; 3] {
        let [sacked, lost, resent, _] = self.all_marks();
        [sacked, lost & !sacked, resent & !sacked].map(|marks| self.sum(marks))
    }

    /// The first bytes lost and not sent again since: offset and length; 0: none.
    pub(super) fn first_due(&self) -> (u32, u16) {
        self.first(self.due())
    }

    /// The first bytes below the highest held by the peer that were sent once and are not
    /// deemed lost (RFC 6675 §4 `NextSeg` rule 3): offset and length; 0: none.
    pub(super) fn first_doubtful(&self) -> (u32, u16) {
        let [sacked, lost, resent, ever_resent] = self.all_marks();
        self.first(up_to_highest(sacked) & !(sacked | lost | resent | ever_resent))
    }

    /// The bits of all runs in use.
    fn used(&self) -> u16 {
        let used = self.runs.iter().take_while(|run| run.len > 0);
        used.fold(0, |bits, _| bits << 1 | 1)
    }

    /// Length of the last run of bytes sent; 0: there is none.
    pub(super) fn tail_len(&self) -> u32 {
        let used = self.runs.iter().take_while(|run| run.len > 0);
        used.last().map_or(0, |run| u32::from(run.len))
    }

    /// Enters a retransmission of `len` bytes from `offset` on.
    pub(super) fn resend(&mut self, offset: u32, len: u16, now_ms: u32) {
        let sent_at = self.stamp(now_ms);
        let which = self.select(offset, offset + u32::from(len)) & !self.held();
        self.marks[RESENT] |= which;
        self.marks[EVER_RESENT] |= which;
        for (index, run) in self.runs.iter_mut().enumerate() {
            if which >> index & 1 != 0 {
                run.sent_at = sent_at;
            }
        }
    }

    /// Deems the first `len_max` bytes outstanding lost. Returns whether any of them is newly lost.
    pub(super) fn lose_first(&mut self, len_max: u32) -> bool {
        let which = self.select(0, len_max);
        self.lose(which & 1)
    }

    /// Deems everything lost that the peer does not hold, if sent at least `age_min` ms ago;
    /// the first run in any case (RFC 6675 §5.1, RFC 8985 §6.3).
    pub(super) fn lose_all(&mut self, now_ms: u32, age_min: u32) {
        // The peer acknowledged nothing, yet holds the first byte: it has reneged (RFC 2018 §8).
        if self.held() & 1 != 0 {
            self.marks[SACKED] = 0;
        }
        if !HAS_RECOVERY {
            let all = self.used();
            self.lose(all);
            return;
        }
        self.lose_by_time(now_ms, (0, i32::MAX), age_min);
        if self.runs[0].len > 0 {
            self.lose(1);
        }
    }

    /// Nothing is lost after all.
    pub(super) fn absolve(&mut self) {
        self.marks[LOST] = 0;
        self.marks[RESENT] = 0;
    }

    /// RFC 6675 §4 `IsLost`: a run is lost if the peer has received, above it, [`DUP_THRESHOLD`]
    /// separate ranges, or more than `DUP_THRESHOLD - 1` segments' worth of bytes. Returns whether
    /// a run is newly lost.
    pub(super) fn lose_by_count(&mut self, smss: u32) -> bool {
        let (mut ranges, mut bytes, mut lost) = (0, 0, 0);
        let sacked = self.held();
        for (index, run) in self.runs.iter().enumerate().rev() {
            if sacked >> index & 1 == 0 {
                if ranges >= DUP_THRESHOLD || bytes > enough(smss) {
                    lost |= 1 << index;
                }
            } else {
                ranges += u8::from(sacked >> index & 2 == 0);
                bytes += u32::from(run.len);
            }
        }
        self.lose(lost & !self.marks[RESENT])
    }

    /// RFC 8985 §6.2 step 5: a run is lost if it was sent earlier than `newest` by more than the
    /// reordering window.
    ///
    /// `newest`: age, ms, and end offset of the newest segment delivered. `limit_ms`: its round
    /// trip and the reordering window. Returns whether a run is newly lost, and the time, ms, until
    /// the remaining runs sent before `newest` can be judged; 0: there are none.
    pub(super) fn lose_by_time(
        &mut self,
        now_ms: u32,
        newest: (u32, i32),
        limit_ms: u32,
    ) -> (bool, u32) {
        let (mut lost, mut wait, mut end) = (0, 0, 0);
        let gone = self.held() | self.due();
        for (index, run) in self.runs.iter().enumerate() {
            if run.len == 0 {
                break;
            }
            end += i32::from(run.len);
            let age = self.age(run.sent_at, now_ms);
            let (newest_age, newest_end) = newest;
            if gone >> index & 1 == 0 && (age > newest_age || age == newest_age && end < newest_end)
            {
                if age >= limit_ms {
                    lost |= 1 << index;
                } else {
                    wait = (limit_ms - age).max(wait);
                }
            }
        }
        (self.lose(lost), wait)
    }

    /// Whether the peer holds [`DUP_THRESHOLD`] runs, or more segments' bytes than one fewer,
    /// out of order.
    pub(super) fn is_sacked_beyond(&self, smss: u32) -> bool {
        let mut rest = self.held();
        for _ in 1..DUP_THRESHOLD {
            // Takes the lowest bit off.
            rest &= rest.wrapping_sub(1);
        }
        rest != 0 || self.sacked() > enough(smss)
    }

    /// Offset behind the highest byte held by the peer.
    fn highest_sacked(&self) -> u32 {
        self.sum(up_to_highest(self.held()))
    }

    fn due(&self) -> u16 {
        let [sacked, lost, resent, _] = self.all_marks();
        lost & !(sacked | resent)
    }

    /// Deems these runs lost, as far as they are in the network; true if that is news.
    fn lose(&mut self, which: u16) -> bool {
        let news = which & !(self.held() | self.due());
        self.marks[LOST] |= news;
        self.marks[RESENT] &= !news;
        news != 0
    }

    /// The runs that the peer holds out of order.
    const fn held(&self) -> u16 {
        match HAS_SACK {
            true => self.marks[SACKED],
            false => 0,
        }
    }

    const fn all_marks(&self) -> [u16; 4] {
        let [_, lost, resent, ever_resent] = self.marks;
        [self.held(), lost, resent, ever_resent]
    }

    /// Bytes of the runs whose bits are set in `which`.
    fn sum(&self, which: u16) -> u32 {
        let (mut which, mut sum) = (which, 0);
        for run in &self.runs {
            if which == 0 {
                break;
            }
            if which & 1 != 0 {
                sum += u32::from(run.len);
            }
            which >>= 1;
        }
        sum
    }

    /// The first of these runs: offset and length; 0: none.
    fn first(&self, which: u16) -> (u32, u16) {
        if which == 0 {
            return (0, 0);
        }
        let (mut which, mut start) = (which, 0);
        for run in &self.runs {
            if which & 1 != 0 {
                return (start, run.len);
            }
            which >>= 1;
            start += u32::from(run.len);
        }
        (0, 0)
    }

    /// Milliseconds since a run was sent.
    fn age(&self, sent_at: u16, now_ms: u32) -> u32 {
        now_ms
            .wrapping_sub(self.epoch)
            .wrapping_sub(u32::from(sent_at))
    }

    /// `now_ms` as `sent_at` counts it.
    fn stamp(&mut self, now_ms: u32) -> u16 {
        let now = now_ms.wrapping_sub(self.epoch);
        let ahead = now.saturating_sub(u32::from(u16::MAX));
        if ahead > 0 {
            let step = ahead.saturating_add(1 << 15);
            self.epoch = self.epoch.wrapping_add(step);
            for run in &mut self.runs {
                run.sent_at = u32::from(run.sent_at).saturating_sub(step) as u16;
            }
        }
        now_ms.wrapping_sub(self.epoch) as u16
    }

    /// The runs between two offsets, cut out of longer ones.
    fn select(&mut self, left: u32, right: u32) -> u16 {
        self.make_room(2);
        let from = self.cut_at(left);
        let to = self.cut_at(right);
        (1 << to) - (1 << from)
    }

    /// Makes a run boundary at `offset`, if a run spans it; there is a free place. Returns
    /// the index of the run behind it.
    fn cut_at(&mut self, offset: u32) -> usize {
        let mut left = offset;
        for (index, run) in self.runs.iter_mut().enumerate() {
            let len = u32::from(run.len);
            if left == 0 || len == 0 {
                return index;
            }
            if left < len {
                let rest = Run {
                    len: (len - left) as u16,
                    ..*run
                };
                run.len = left as u16;
                self.insert(index + 1, rest);
                return index + 1;
            }
            left -= len;
        }
        SENT_RUNS_MAX
    }

    /// Merges neighbouring runs until `places` are free: first runs in the same state that were
    /// sent closest together; if there are none, the last two runs. A merged run of two states does
    /// not count as received. It is due for retransmission only if no part of it is in flight:
    /// otherwise retransmitting one part could make another part due, without end.
    fn make_room(&mut self, places: usize) {
        while let Some(run) = self.runs.get(SENT_RUNS_MAX - places)
            && run.len > 0
        {
            let marks = self.marks.iter();
            let unlike = marks.fold(0, |unlike, mark| unlike | (mark ^ mark >> 1));
            let mut best = (NONE, 0);
            for (index, pair) in self.runs.windows(2).enumerate() {
                if let [a, b] = pair
                    && b.len > 0
                {
                    let apart = match unlike >> index & 1 {
                        0 => u32::from(a.sent_at.abs_diff(b.sent_at)),
                        _ => NONE,
                    };
                    if apart < best.0 || best.0 == NONE {
                        best = (apart, index);
                    }
                }
            }
            let bit = 1 << best.1;
            for mark in &mut self.marks {
                *mark |= *mark >> 1 & bit;
            }
            self.marks[SACKED] &= !(unlike & bit);
            let second = self.remove(best.1 + 1);
            if let Some(first) = self.runs.get_mut(best.1) {
                first.len = first.len.saturating_add(second.len);
                first.sent_at = first.sent_at.max(second.sent_at);
            }
        }
    }

    /// Puts `run` at `index`, with the marks of the one before it; the last place is free.
    fn insert(&mut self, index: usize, run: Run) {
        let before = (1 << index) - 1;
        for mark in &mut self.marks {
            *mark = *mark & before | *mark << 1 & !before;
        }
        let mut carried = run;
        for place in self.runs.iter_mut().skip(index) {
            core::mem::swap(place, &mut carried);
        }
    }

    fn remove(&mut self, index: usize) -> Run {
        let before = (1 << index) - 1;
        for mark in &mut self.marks {
            *mark = *mark & before | *mark >> 1 & !before;
        }
        let mut carried = Run::default();
        for place in self.runs.iter_mut().skip(index).rev() {
            core::mem::swap(place, &mut carried);
        }
        carried
    }
}

/// The bits of `marks` and all below the highest of them.
const fn up_to_highest(marks: u16) -> u16 {
    let mut bits = marks;
    bits |= bits >> 1;
    bits |= bits >> 2;
    bits |= bits >> 4;
    bits | bits >> 8
}

/// Bytes above a run of which the peer must hold more for the run to be deemed lost (RFC 6675 §4
/// `IsLost`).
fn enough(smss: u32) -> u32 {
    smss * u32::from(DUP_THRESHOLD - 1)
}

/// Duplicate ACKs, or segments held out of order, after which a segment is deemed lost (RFC 5681
/// §3.2).
pub(super) const DUP_THRESHOLD: u8 = 3;
