//! Loss detection and the scoreboard: what was sent, what arrived, what to send again.
//!
//! Place: output enters what it sends, input what is acknowledged; `ack` decides. One table
//! of runs serves SACK recovery (RFC 6675), RACK-TLP (RFC 8985), New Reno (RFC 6582) and
//! Karn's rule alike: what lies between SND.UNA and SND.NXT is cut into runs of bytes that
//! share a fate and a time of transmission. Windows of 2 to 8 segments fit one run per
//! segment; beyond, neighbours that were sent closest together are merged, which only makes
//! RACK slower to judge them.
//!
//! Times are the low 16 bits of the millisecond clock: ages up to 65 s are told apart, and
//! nothing stays unjudged longer than an RTO.

use core::cell::Cell;

use crate::limits::SENT_RUNS_MAX;

/// What is known about a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks(u8);

impl Marks {
    /// The peer holds it, out of order.
    pub(super) const SACKED: Self = Self(1);
    /// Deemed lost.
    pub(super) const LOST: Self = Self(2);
    /// A retransmission of it is on the way.
    pub(super) const RESENT: Self = Self(4);
    /// It was retransmitted at least once: no RTT can be told from it (Karn).
    pub(super) const EVER_RESENT: Self = Self(8);

    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    const fn with(self, mark: Self) -> Self {
        Self(self.0 | mark.0)
    }

    const fn without(self, mark: Self) -> Self {
        Self(self.0 & !mark.0)
    }

    /// Lost, and not sent again since.
    const fn is_due(self) -> bool {
        self.0 & (Self::SACKED.0 | Self::LOST.0 | Self::RESENT.0) == Self::LOST.0
    }

    /// What two unlike runs are as one: due if one of them is, and held by nobody.
    const fn worse(self, other: Self) -> Self {
        let both = self.sent(other);
        match self.is_due() || other.is_due() {
            true => both.without(Self::RESENT),
            false => both,
        }
    }

    /// The same while something is sent again: the whole counts as sent, and a part that was
    /// due waits until it is deemed lost anew. Were it due, sending one part again could make
    /// another due, and so on without end.
    const fn sent(self, other: Self) -> Self {
        Self(self.0 | other.0).without(Self::SACKED)
    }

    /// Counted as in the network (RFC 6675 `pipe`).
    const fn is_in_flight(self) -> bool {
        !self.has(Self::SACKED) && !self.is_due()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Run {
    len: u16,
    sent_at: u16,
    marks: Marks,
}

/// The runs between SND.UNA and SND.NXT, in order. Offsets count from SND.UNA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scoreboard {
    runs: [Run; SENT_RUNS_MAX],
    count: u8,
}

/// What one acknowledgment delivered; filled while it is entered in the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    now: u16,
    min_rtt: u16,
    /// When what is acknowledged was sent, if the peer echoes that.
    echo: Option<u16>,
    /// Offset behind the highest byte known delivered before.
    highest: u32,
    /// Bytes newly known to have arrived.
    pub(super) bytes: u32,
    /// Round trip of the latest segment never retransmitted, ms.
    pub(super) rtt: Option<u16>,
    /// The newest transmission among them: its age and the offset behind it.
    pub(super) newest: Option<(u16, u32)>,
    /// Something arrived that was sent before what was known to have arrived.
    pub(super) reordered: bool,
}

impl Delivery {
    /// The record of an acknowledgment that arrives at `now_ms` for a scoreboard without marks.
    pub(super) const fn in_order(now_ms: u32) -> Self {
        Self {
            now: now_ms as u16,
            min_rtt: 0,
            echo: None,
            highest: 0,
            bytes: 0,
            rtt: None,
            newest: None,
            reordered: false,
        }
    }

    fn note(&mut self, run: Run, end: u32) {
        let age = self.now.wrapping_sub(run.sent_at);
        if !run.marks.has(Marks::EVER_RESENT) {
            self.rtt = Some(self.rtt.map_or(age, |rtt| rtt.min(age)));
            self.reordered |= end < self.highest;
        } else if age < self.min_rtt
            || self
                .echo
                .is_some_and(|echo| (run.sent_at.wrapping_sub(echo) as i16) > 0)
        {
            // An answer to an earlier time, or sooner than any round trip, answers the
            // original (RFC 8985 §6.2 step 2).
            return;
        }
        let newer = |(newest, newest_end)| age < newest || age == newest && end > newest_end;
        if self.newest.is_none_or(newer) {
            self.newest = Some((age, end));
        }
    }
}

impl Scoreboard {
    pub(super) const NEW: Self = Self {
        runs: [Run {
            len: 0,
            sent_at: 0,
            marks: Marks(0),
        }; SENT_RUNS_MAX],
        count: 0,
    };

    /// Forgets everything outstanding.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// The record of an acknowledgment that arrives now.
    ///
    /// `echo_ms`: its echoed timestamp, on our clock.
    pub(super) fn delivery(&self, now_ms: u32, min_rtt: u16, echo_ms: Option<u32>) -> Delivery {
        Delivery {
            min_rtt,
            echo: echo_ms.map(|echo| echo as u16),
            highest: self.highest_sacked(),
            ..Delivery::in_order(now_ms)
        }
    }

    /// Whether all was sent once, and nothing is known of it.
    pub(super) fn is_plain(&self) -> bool {
        self.view().iter().all(|run| run.marks == Marks(0))
    }

    /// Enters `len` new bytes sent at `now_ms`.
    pub(super) fn push(&mut self, len: u16, now_ms: u32) {
        self.make_room(1, Marks::worse);
        let run = Run {
            len,
            sent_at: now_ms as u16,
            marks: Marks(0),
        };
        self.insert(usize::from(self.count), run);
    }

    /// Takes `bytes` cumulatively acknowledged off the front.
    pub(super) fn acknowledge(&mut self, bytes: u32, delivery: &mut Delivery) {
        let (mut left, mut end) = (bytes, 0);
        while left > 0 {
            let Some(first) = self.runs().first_mut() else {
                return;
            };
            let run = *first;
            let step = left.min(u32::from(run.len));
            end += step;
            left -= step;
            if !run.marks.has(Marks::SACKED) {
                delivery.bytes += step;
                delivery.note(run, end);
            }
            first.len -= step as u16;
            if first.len == 0 {
                self.remove(0);
            }
        }
    }

    /// Marks the bytes between two offsets as held by the peer.
    pub(super) fn sack(&mut self, left: u32, right: u32, delivery: &mut Delivery) {
        self.make_room(2, Marks::worse);
        self.cut_at(left);
        self.cut_at(right);
        let mut end = 0;
        for run in self.runs() {
            let start = end;
            end += u32::from(run.len);
            if start >= left && end <= right && !run.marks.has(Marks::SACKED) {
                delivery.bytes += u32::from(run.len);
                delivery.note(*run, end);
                run.marks = run.marks.with(Marks::SACKED);
            }
        }
    }

    /// Bytes believed to be in the network (RFC 6675 §4 `SetPipe`).
    pub(super) fn in_flight(&self) -> u32 {
        self.sum(Marks::is_in_flight)
    }

    /// Bytes the peer holds out of order.
    pub(super) fn sacked(&self) -> u32 {
        self.sum(|marks| marks.has(Marks::SACKED))
    }

    /// The first bytes lost and not sent again since: offset and length.
    pub(super) fn first_due(&self) -> Option<(u32, u16)> {
        self.first(Marks::is_due)
    }

    /// The first bytes below the highest held by the peer that were sent once and are not
    /// deemed lost (RFC 6675 §4 `NextSeg` rule 3).
    pub(super) fn first_doubtful(&self) -> Option<(u32, u16)> {
        let found = self.first(|marks| marks.0 == 0)?;
        (found.0 < self.highest_sacked()).then_some(found)
    }

    /// The last bytes sent, at most `len_max`: for a tail loss probe.
    pub(super) fn tail(&self, len_max: u16) -> Option<(u32, u16)> {
        let last = self.view().last()?;
        let len = last.len.min(len_max);
        Some((self.sum(|_| true).saturating_sub(u32::from(len)), len))
    }

    /// Enters a retransmission of `len` bytes from `offset` on.
    pub(super) fn resend(&mut self, offset: u32, len: u16, now_ms: u32) {
        let until = offset + u32::from(len);
        self.make_room(2, Marks::sent);
        self.cut_at(offset);
        self.cut_at(until);
        let mut end = 0;
        for run in self.runs() {
            let start = end;
            end += u32::from(run.len);
            if start < until && end > offset && !run.marks.has(Marks::SACKED) {
                run.marks = run.marks.with(Marks::RESENT).with(Marks::EVER_RESENT);
                run.sent_at = now_ms as u16;
            }
        }
    }

    /// Deems the first `len_max` bytes outstanding lost. Says whether that is news.
    pub(super) fn lose_first(&mut self, len_max: u16) -> bool {
        self.make_room(1, Marks::worse);
        self.cut_at(u32::from(len_max));
        match self.runs().first_mut() {
            Some(run) => run.lose(),
            None => false,
        }
    }

    /// Deems everything lost that the peer does not hold, if sent at least `age_min` ms ago;
    /// the first run in any case (RFC 6675 §5.1, RFC 8985 §6.3).
    pub(super) fn lose_all(&mut self, now_ms: u32, age_min: u16) {
        // The peer acknowledged nothing, yet holds the first byte: it has reneged.
        if self
            .view()
            .first()
            .is_some_and(|run| run.marks.has(Marks::SACKED))
        {
            self.forget_sacks();
        }
        for (index, run) in self.runs().iter_mut().enumerate() {
            if index == 0 || (now_ms as u16).wrapping_sub(run.sent_at) >= age_min {
                run.lose();
            }
        }
    }

    /// Nothing is lost after all.
    pub(super) fn absolve(&mut self) {
        for run in self.runs() {
            run.marks = run.marks.without(Marks::LOST).without(Marks::RESENT);
        }
    }

    /// Forgets what the peer said it holds; it may discard it (RFC 2018 §8).
    pub(super) fn forget_sacks(&mut self) {
        for run in self.runs() {
            run.marks = run.marks.without(Marks::SACKED);
        }
    }

    /// RFC 6675 §4 `IsLost`: lost is what has `threshold` separate ranges, or more than
    /// `threshold − 1` segments of bytes, held by the peer above it. Says whether any is news.
    pub(super) fn lose_by_count(&mut self, threshold: u8, smss: u16) -> bool {
        let (mut ranges, mut bytes, mut news, mut above_sacked) = (0, 0, false, false);
        let enough = u32::from(threshold.saturating_sub(1)) * u32::from(smss);
        for run in self.runs().iter_mut().rev() {
            let sacked = run.marks.has(Marks::SACKED);
            if sacked {
                ranges += u8::from(!above_sacked);
                bytes += u32::from(run.len);
            } else if (ranges >= threshold || bytes > enough) && !run.marks.has(Marks::RESENT) {
                news |= run.lose();
            }
            above_sacked = sacked;
        }
        news
    }

    /// RFC 8985 §6.2 step 5: lost is what was sent before `newest` was, by more than
    /// the reordering window.
    ///
    /// `newest`: time of transmission (low 16 bits, ms) and end offset of the newest segment
    /// delivered. `rtt`: its round trip. Returns whether any loss is news, and the wait
    /// until the next run would be deemed lost.
    pub(super) fn lose_by_time(
        &mut self,
        now_ms: u32,
        newest: (u16, i32),
        limit_ms: u32,
    ) -> (bool, Option<u16>) {
        let now = now_ms as u16;
        let newest_age = now.wrapping_sub(newest.0);
        let (mut news, mut wait, mut end) = (false, None, 0_i32);
        for run in self.runs() {
            end += i32::from(run.len);
            if !run.marks.is_in_flight() {
                continue;
            }
            let age = now.wrapping_sub(run.sent_at);
            if age > newest_age || age == newest_age && end < newest.1 {
                match limit_ms.checked_sub(u32::from(age)) {
                    None | Some(0) => news |= run.lose(),
                    Some(rest) => wait = Some(wait.unwrap_or(0).max(rest as u16)),
                }
            }
        }
        (news, wait)
    }

    /// Whether the peer holds `threshold` segments or ranges out of order.
    pub(super) fn is_sacked_beyond(&self, threshold: u8, smss: u16) -> bool {
        let runs = self
            .view()
            .iter()
            .filter(|run| run.marks.has(Marks::SACKED))
            .count();
        runs >= usize::from(threshold)
            || self.sacked() > u32::from(threshold.saturating_sub(1)) * u32::from(smss)
    }

    fn highest_sacked(&self) -> u32 {
        let (mut end, mut highest) = (0, 0);
        for run in self.view() {
            end += u32::from(run.len);
            if run.marks.has(Marks::SACKED) {
                highest = end;
            }
        }
        highest
    }

    fn sum(&self, wanted: fn(Marks) -> bool) -> u32 {
        let runs = self.view().iter();
        runs.filter(|run| wanted(run.marks))
            .map(|run| u32::from(run.len))
            .sum()
    }

    fn first(&self, wanted: fn(Marks) -> bool) -> Option<(u32, u16)> {
        let mut start = 0;
        for run in self.view() {
            if wanted(run.marks) {
                return Some((start, run.len));
            }
            start += u32::from(run.len);
        }
        None
    }

    /// Makes a run boundary at `offset`, if a run spans it; there is a free place.
    fn cut_at(&mut self, offset: u32) {
        let mut start = 0;
        for (index, run) in self.runs().iter_mut().enumerate() {
            let end = start + u32::from(run.len);
            if offset <= start {
                return;
            }
            if offset < end {
                let mut rest = *run;
                run.len = (offset - start) as u16;
                rest.len = (end - offset) as u16;
                self.insert(index + 1, rest);
                return;
            }
            start = end;
        }
    }

    /// Merges neighbours until `places` are free: those of one kind sent closest together;
    /// if there are none, the last two, as sent and not known to be held.
    fn make_room(&mut self, places: usize, unite: fn(Marks, Marks) -> Marks) {
        while usize::from(self.count) + places > SENT_RUNS_MAX {
            let mut best = (u16::MAX, usize::from(self.count).saturating_sub(2));
            for (index, pair) in self.view().windows(2).enumerate() {
                if let [a, b] = pair
                    && a.marks == b.marks
                {
                    let apart = b.sent_at.wrapping_sub(a.sent_at);
                    let apart = apart.min(apart.wrapping_neg());
                    if apart < best.0 {
                        best = (apart, index);
                    }
                }
            }
            self.merge(best.1, unite);
        }
    }

    fn merge(&mut self, index: usize, unite: fn(Marks, Marks) -> Marks) {
        let Some(second) = self.runs.get(index + 1).copied() else {
            return;
        };
        self.remove(index + 1);
        if let Some(first) = self.runs.get_mut(index) {
            first.len = first.len.saturating_add(second.len);
            if (second.sent_at.wrapping_sub(first.sent_at) as i16) > 0 {
                first.sent_at = second.sent_at;
            }
            if first.marks != second.marks {
                first.marks = unite(first.marks, second.marks);
            }
        }
    }

    fn insert(&mut self, index: usize, run: Run) {
        let (mut carried, mut at) = (run, index);
        self.count = self.count.saturating_add(1);
        while at < usize::from(self.count)
            && let Some(place) = self.runs.get_mut(at)
        {
            core::mem::swap(place, &mut carried);
            at += 1;
        }
    }

    fn remove(&mut self, index: usize) {
        let runs = Cell::from_mut(self.runs().get_mut(index..).unwrap_or_default());
        for pair in runs.as_slice_of_cells().windows(2) {
            if let [place, next] = pair {
                place.set(next.get());
            }
        }
        self.count = self.count.saturating_sub(1);
    }

    fn view(&self) -> &[Run] {
        self.runs.get(..usize::from(self.count)).unwrap_or_default()
    }

    fn runs(&mut self) -> &mut [Run] {
        self.runs
            .get_mut(..usize::from(self.count))
            .unwrap_or_default()
    }
}

impl Run {
    /// Deems the run lost; true if that is news.
    fn lose(&mut self) -> bool {
        let news = self.marks.is_in_flight();
        if news {
            self.marks = self.marks.with(Marks::LOST).without(Marks::RESENT);
        }
        news
    }
}
