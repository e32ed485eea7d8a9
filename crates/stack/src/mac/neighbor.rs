//! The MAC's entry for each neighbour: sequence numbers heard, links used.
//!
//! Entries are borrowed slots. When all are taken the least recently used makes place, first
//! one of those that never acknowledged a frame: forged source addresses push each other out. The
//! neighbour that the way up leads over keeps its slot.
//!
//! A neighbour that acknowledges can be trusted to take what is for it. One that never did may
//! not exist, since source addresses can be made up, and one that took none of the last
//! [`UNANSWERED_MAX`] frames is silent: it may be off. All of these share one [`Allowance`] of
//! attempts in vain, and the silent are left alone for ever longer. An ACK ends that at once; a
//! frame heard from the neighbour ends the wait, so that the next frame for it goes.
//!
//! Between the two stands a neighbour that is there but badly disturbed: its frames have all
//! their attempts, but from [`UNANSWERED_DOUBT`] on they no longer hold up those of others.

use super::flow::Flow;
use super::neighbor_timing::NeighborTiming;
use super::radio::OFFLOADS;
use crate::storage::least;
use crate::time::{Allowance, Duration, Instant};
use crate::wire::LinkAddr;

/// One neighbour, borrowed from the caller; [`Neighbor::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Whether the entry is in use.
    known: bool,
    addr: LinkAddr,
    /// The last sequence number that was to be acknowledged.
    dsn: Option<u8>,
    /// When `dsn` was first heard.
    dsn_at: Instant,
    used_at: Instant,
    /// The sequence number of the last frame for all, and when it was first heard, in [`ticks`].
    for_all: Option<(u8, u8)>,
    /// When a fragment last came from it, in [`ticks`].
    fragment_at: u8,
    attempts: u16,
    successes: u16,
    /// Whether the neighbour has ever acknowledged a frame.
    acknowledges: bool,
    /// Frames given up since it last did, because it did not.
    unanswered: u8,
    /// Times of this neighbour's exchanges, for a pace that is measured.
    timing: NeighborTiming,
    /// No new frame to this neighbour before then; while it is in doubt, none is taken.
    held_until: Instant,
}

impl Neighbor {
    /// An empty slot: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        known: false,
        addr: LinkAddr::Short(0),
        dsn: None,
        dsn_at: Instant::ORIGIN,
        used_at: Instant::ORIGIN,
        for_all: None,
        fragment_at: 0,
        attempts: 0,
        successes: 0,
        acknowledges: false,
        unanswered: 0,
        timing: NeighborTiming::NONE,
        held_until: Instant::ORIGIN,
    };

    /// The neighbour that this entry is about; `None` for a free entry.
    pub const fn addr(&self) -> Option<LinkAddr> {
        if self.known { Some(self.addr) } else { None }
    }

    fn is(&self, addr: LinkAddr) -> bool {
        self.known && self.addr.is(&addr)
    }

    const fn is_silent(&self) -> bool {
        self.unanswered >= UNANSWERED_MAX
    }

    const fn is_trusted(&self) -> bool {
        self.acknowledges && !self.is_silent()
    }

    const fn is_doubtful(&self) -> bool {
        !self.acknowledges || self.unanswered >= UNANSWERED_DOUBT
    }

    /// Expected transmissions per delivered frame in units of 1/128, as RPL's ETX metric
    /// has it (RFC 6551 §4.3.2); `None` before the first success.
    ///
    /// Counted over the last 128 attempts or so: at that many both counts halve.
    pub fn etx(&self) -> Option<u16> {
        let etx = (u32::from(self.attempts) * 128).checked_div(u32::from(self.successes))?;
        Some(u16::try_from(etx).unwrap_or(u16::MAX))
    }
}

#[derive(Debug)]
pub(super) struct Neighbors<'m> {
    table: &'m mut [Neighbor],
    /// Whether a neighbour that does not acknowledge is doubted; none is where no ACKs are asked
    /// for.
    doubts: bool,
    /// Whether the radio does not tell which frames are acknowledged: who never acknowledged one is
    /// then no stranger.
    is_blind: bool,
    /// The neighbour whose entry is never replaced.
    kept: Option<LinkAddr>,
    /// Attempts in vain at neighbours that are in doubt.
    in_vain: Allowance,
}

impl<'m> Neighbors<'m> {
    pub(super) fn new(table: &'m mut [Neighbor], doubts: bool) -> Self {
        for entry in table.iter_mut() {
            *entry = Neighbor::EMPTY;
        }
        Self {
            doubts: doubts && !table.is_empty(),
            is_blind: false,
            table,
            kept: None,
            in_vain: Allowance::new(IN_VAIN_MAX, IN_VAIN_INTERVAL_MS),
        }
    }

    /// Protects the entry of `addr`, because the way up leads over it. Otherwise a node that
    /// acknowledges under many addresses could push it out while nothing is sent to it.
    pub(super) const fn keep(&mut self, addr: Option<LinkAddr>) {
        self.kept = addr;
    }

    /// The radio does not know whether a frame was acknowledged. Until it knows of another one, no
    /// neighbour is doubted: none could show that it is there.
    pub(super) const fn see_nothing(&mut self) {
        self.is_blind = true;
    }

    /// Whether a neighbour that does not acknowledge is doubted.
    const fn may_doubt(&self) -> bool {
        self.doubts && !(OFFLOADS && self.is_blind)
    }

    /// The entries it was lent.
    pub(super) fn into_memory(self) -> &'m mut [Neighbor] {
        self.table
    }

    /// Whether `addr` acknowledges frames for it, as far as is known. With an empty table every
    /// neighbour counts as trusted; a broadcast needs no trust.
    pub(super) fn is_trusted(&self, addr: LinkAddr) -> bool {
        addr.is_broadcast()
            || !self.may_doubt()
            || self.find(addr).is_some_and(Neighbor::is_trusted)
    }

    /// Whether `addr` has not taken the last frames for it.
    pub(super) fn is_silent(&self, addr: LinkAddr) -> bool {
        self.may_doubt() && self.find(addr).is_some_and(Neighbor::is_silent)
    }

    /// Whether `addr` may not be there, so that frames for it shall not hold up frames for others.
    pub(super) fn is_doubtful(&self, addr: LinkAddr) -> bool {
        self.may_doubt()
            && !addr.is_broadcast()
            && self.find(addr).is_none_or(Neighbor::is_doubtful)
    }

    /// Whether to begin with a frame for `addr`, or to try again: not when it is in doubt and
    /// either it is left alone for now or enough was tried in vain.
    pub(super) fn is_worth_trying(&mut self, addr: LinkAddr, now: Instant) -> bool {
        let is_left_alone = |entry: &Neighbor| entry.is_silent() && now < entry.held_until;
        self.is_trusted(addr)
            || (!self.find(addr).is_some_and(is_left_alone) && self.in_vain.allows(now))
    }

    /// Whether enough failed attempts are left in the allowance to try one more neighbour unasked.
    #[cfg(feature = "security")]
    pub(super) fn has_attempts_to_spare(&mut self, now: Instant) -> bool {
        !self.may_doubt() || self.in_vain.allows_beyond(IN_VAIN_MAX / 2, now)
    }

    /// Whether to retry a frame that `addr` has requested: if it has acknowledged the last one, or
    /// while the allowance lasts. A child that has not acknowledged the last one may be asleep, if
    /// the request was forged.
    pub(super) fn is_worth_insisting(&mut self, addr: LinkAddr, now: Instant) -> bool {
        match self.find(addr).is_some_and(|entry| entry.unanswered > 0) {
            // An attempt at one that is not trusted was counted when it failed.
            true if self.is_trusted(addr) => self.in_vain.take(now),
            true => self.in_vain.allows(now),
            false => self.is_trusted(addr) || self.in_vain.allows(now),
        }
    }

    /// A frame that `addr` had requested was given up without an ACK. Since the request may have
    /// been forged, only this is noted, and nothing else about the neighbour.
    pub(super) fn missed(&mut self, addr: LinkAddr, now: Instant) {
        if let Some(entry) = self.entry(addr, now) {
            entry.unanswered = entry.unanswered.max(1);
        }
    }

    /// A frame for `addr` was given up because it was not acknowledged.
    pub(super) fn gave_up(&mut self, addr: LinkAddr, now: Instant) {
        let doubts = self.may_doubt();
        let Some(entry) = self.entry(addr, now) else {
            return;
        };
        entry.unanswered = entry.unanswered.saturating_add(1);
        if let Some(more) = entry
            .unanswered
            .checked_sub(UNANSWERED_MAX)
            .filter(|_| doubts)
        {
            let wait = ALONE_MIN.saturating_mul(1 << more.min(ALONE_DOUBLINGS_MAX));
            entry.held_until = now + wait;
        }
    }

    /// A frame came that says it is from `addr`. That may be made up: what follows is tried
    /// at once, but nothing is trusted yet.
    pub(super) fn heard(&mut self, addr: LinkAddr) {
        let doubts = self.may_doubt();
        if let Some(entry) = self.table.iter_mut().find(|entry| entry.is(addr))
            && doubts
            && entry.is_silent()
        {
            entry.held_until = Instant::ORIGIN;
        }
    }

    pub(super) fn find(&self, addr: LinkAddr) -> Option<&Neighbor> {
        self.table.iter().find(|entry| entry.is(addr))
    }

    /// Whether `src` repeats the frame it sent last; remembers `dsn` if not.
    ///
    /// Only frames to be acknowledged are repeated, so only those are asked about. With a
    /// table of no entries nothing is ever a duplicate.
    pub(super) fn is_duplicate(
        &mut self,
        src: LinkAddr,
        dsn: u8,
        now: Instant,
        lifetime: Duration,
    ) -> bool {
        let repeats = self.repeats(src, dsn, now, lifetime);
        let Some(entry) = self.entry(src, now) else {
            return false;
        };
        if repeats {
            return true;
        }
        entry.dsn = Some(dsn);
        entry.dsn_at = now;
        false
    }

    /// Whether a frame for all was heard from `src` before, on another channel: such a frame goes
    /// out on each in turn, and a node that has just sent on one of them is home again for the
    /// next.
    pub(super) fn is_swept(&mut self, src: LinkAddr, dsn: u8, now: Instant) -> bool {
        let Some(entry) = self.entry(src, now) else {
            return false;
        };
        let tick = ticks(now);
        let is_recent = |then: u8| tick.wrapping_sub(then) <= 1;
        if matches!(entry.for_all, Some((known, then)) if known == dsn && is_recent(then)) {
            return true;
        }
        entry.for_all = Some((dsn, tick));
        false
    }

    /// Whether a frame with `dsn` from `src` would be a repetition.
    pub(super) fn repeats(&self, src: LinkAddr, dsn: u8, now: Instant, lifetime: Duration) -> bool {
        self.find(src)
            .is_some_and(|entry| entry.dsn == Some(dsn) && now.since(entry.dsn_at) < lifetime)
    }

    /// Counts one attempt over the link to `addr`, and how long it took, from the assessment to the
    /// ACK, if that came.
    pub(super) fn record(&mut self, addr: LinkAddr, exchange: Option<Duration>, now: Instant) {
        if !self.is_trusted(addr) {
            match exchange.is_some() {
                true => self.in_vain.give_back(),
                false => _ = self.in_vain.take(now),
            }
        }
        self.is_blind &= exchange.is_none();
        let Some(entry) = self.entry(addr, now) else {
            return;
        };
        if entry.attempts >= ETX_WINDOW {
            entry.attempts /= 2;
            entry.successes /= 2;
            entry.timing.grow_old();
        }
        entry.attempts += 1;
        entry.successes += u16::from(exchange.is_some());
        entry.timing.note_attempt(exchange.is_some());
        if let Some(exchange) = exchange {
            entry.acknowledges = true;
            entry.unanswered = 0;
            entry.timing.took(exchange);
        }
    }

    /// How long the last frame took that `addr` acknowledged, if any is known.
    pub(super) fn exchange(&self, addr: LinkAddr) -> Option<Duration> {
        self.find(addr)?.timing.exchange()
    }

    /// The ETX towards `addr`, as [`Neighbor::etx`]; `None` where the table does not have it.
    pub(super) fn etx(&self, addr: LinkAddr) -> Option<u16> {
        self.find(addr)?.etx()
    }

    /// A frame for `addr` found the channel busy, before an attempt or instead of it.
    pub(super) fn note_busy(&mut self, addr: LinkAddr) {
        if let Some(entry) = self.table.iter_mut().find(|entry| entry.is(addr)) {
            entry.timing.note_busy();
        }
    }

    /// As [`Self::etx`], with each assessment in vain for one more attempt.
    pub(super) fn effort(&self, addr: LinkAddr) -> Option<u16> {
        let entry = self.find(addr)?;
        let tried = u32::from(entry.attempts) + u32::from(entry.timing.busy());
        let effort = (tried * 128).checked_div(u32::from(entry.successes))?;
        Some(u16::try_from(effort).unwrap_or(u16::MAX))
    }

    /// The exponent of the first backoff that frames for `addr` need: one more than the logarithm
    /// of their effort, attempts that fail and assessments in vain included; `None` where that says
    /// nothing. A sender that wins its air finds it free because others do not: with a short
    /// backoff it would win more of it still. So this holds for a flow alone that is orderly.
    pub(super) fn exponent(&self, addr: LinkAddr, now: Instant) -> Option<u8> {
        self.find(addr)
            .filter(|entry| entry.timing.is_orderly(now))?;
        let effort = self.effort(addr)?;
        Some((effort.max(EFFORT_ONE) / EFFORT_ONE).ilog2() as u8 + 1)
    }

    /// Whether no other node seems to use the air when frames go to `addr`: of the last attempts
    /// few found the channel busy, and most were acknowledged.
    pub(super) fn is_alone(&self, addr: LinkAddr) -> bool {
        self.find(addr).is_some_and(|entry| {
            let failed = entry.attempts.saturating_sub(entry.successes);
            entry.attempts >= ATTEMPTS_KNOWN
                && entry.timing.busy() < entry.attempts / BUSY_PART
                && failed <= entry.attempts / FAILED_PART
        })
    }

    /// A fragment came from `addr`: more of its packet follow.
    pub(super) fn note_fragment(&mut self, addr: LinkAddr, now: Instant) {
        if IS_PACED && let Some(entry) = self.table.iter_mut().find(|entry| entry.is(addr)) {
            entry.fragment_at = ticks(now);
        }
    }

    /// Whether a fragment came from `addr` lately, within two ticks. They wrap: for three of every
    /// 256 this may be so of none.
    pub(super) fn sends_fragments(&self, addr: LinkAddr, now: Instant) -> bool {
        let is_late = |then: u8| ticks(now).wrapping_sub(then) <= FRAGMENTS_FOR;
        IS_PACED
            && self
                .find(addr)
                .is_some_and(|entry| is_late(entry.fragment_at))
    }

    /// Notes that a fragment from `addr` had come `at`, and `until` when it waits here for the next
    /// one, if its sender has promised that.
    pub(super) fn note_promise(&mut self, addr: LinkAddr, at: Instant, until: Option<Instant>) {
        if let Some(entry) = self.table.iter_mut().find(|entry| entry.is(addr)) {
            entry.timing.note_promise(at, until);
        }
    }

    /// Whether the last fragments that `addr` promised came in time to fire the waiting one.
    pub(super) fn keeps_promises(&self, addr: LinkAddr) -> bool {
        self.find(addr)
            .is_none_or(|entry| entry.timing.keeps_promises())
    }

    /// The time that this node leaves to others that it does not hear, once a frame for `addr` has
    /// failed; `None`: none.
    pub(super) fn left_to_others(&self, addr: LinkAddr, now: Instant) -> Option<Duration> {
        let entry = self.find(addr)?;
        let failed = u32::from(entry.attempts.saturating_sub(entry.successes)) * 255;
        let failed = failed.checked_div(entry.attempts.into())?;
        // Lossless: it is at most 255.
        let exchanges = entry.timing.exchanges_left(failed as u8, now)?;
        Some(entry.timing.exchange()?.saturating_mul(exchanges))
    }

    /// Whether this node is a source that contends with others for `addr`, lately.
    pub(super) fn contends(&self, addr: LinkAddr, now: Instant) -> bool {
        self.find(addr)
            .is_some_and(|entry| entry.timing.contends(now))
    }

    pub(super) fn flow(&self, addr: LinkAddr) -> Flow {
        self.find(addr)
            .map_or(Flow::NONE, |entry| entry.timing.flow())
    }

    pub(super) fn note_flow(&mut self, addr: LinkAddr, flow: Flow) {
        if let Some(entry) = self.entry(addr, flow.taken_at) {
            entry.timing.note_flow(flow);
        }
    }

    /// Notes that a frame that goes on to `addr` had come `at` and `from` a node. Returns how far
    /// apart such frames begin, once that is known.
    pub(super) fn note_arrival(
        &mut self,
        addr: LinkAddr,
        from: LinkAddr,
        at: Instant,
    ) -> Option<Duration> {
        let entry = self.table.iter_mut().find(|entry| entry.is(addr))?;
        entry.timing.note_arrival(from, at)
    }

    /// Counts `frames` of a packet of `from`, this node itself, that go to `addr`.
    pub(super) fn note_own(&mut self, addr: LinkAddr, from: LinkAddr, frames: usize) {
        if let Some(entry) = self.table.iter_mut().find(|entry| entry.is(addr)) {
            (0..frames).for_each(|_| entry.timing.note_sender(from));
        }
    }

    /// Whether several nodes sent the last frames that go to `addr`.
    pub(super) fn is_shared(&self, addr: LinkAddr) -> bool {
        self.find(addr)
            .is_some_and(|entry| entry.timing.is_shared())
    }

    /// Whether `from` sent most of the last frames that go to `addr`.
    pub(super) fn is_mostly_of(&self, addr: LinkAddr, from: LinkAddr) -> bool {
        self.find(addr)
            .is_some_and(|entry| entry.timing.is_mostly_of(from))
    }

    /// How far apart frames begin that go on to `addr`, as far as is known.
    pub(super) fn apart(&self, addr: LinkAddr, now: Instant) -> Option<Duration> {
        self.find(addr)?.timing.apart(now)
    }

    pub(super) fn pause(&mut self, addr: LinkAddr, until: Instant, now: Instant) {
        if let Some(entry) = self.entry(addr, now) {
            entry.held_until = entry.held_until.max(until);
        }
    }

    /// When a frame to `addr` may begin; of a silent neighbour it need not wait for being
    /// dropped.
    pub(super) fn held_until(&self, addr: LinkAddr) -> Instant {
        let entry = self.find(addr).filter(|_| !self.is_silent(addr));
        entry.map_or(Instant::ORIGIN, |entry| entry.held_until)
    }

    fn entry(&mut self, addr: LinkAddr, now: Instant) -> Option<&mut Neighbor> {
        let known = self.table.iter().position(|entry| entry.is(addr));
        let place = known.or_else(|| {
            let kept = self.kept;
            let rank = |entry: &Neighbor| {
                let known = u8::from(entry.known) << 2;
                let acknowledges = u8::from(entry.acknowledges) << 1;
                let was_tried = u8::from(entry.attempts > 0);
                entry.used_at.rank(known | acknowledges | was_tried)
            };
            let may_go = |entry: &Neighbor| kept.is_none_or(|kept| !entry.is(kept));
            let ranks = self.table.iter();
            let ranks = ranks.map(|entry| may_go(entry).then(|| rank(entry)));
            least(ranks)
        });
        let entry = self.table.get_mut(place?)?;
        if known.is_none() {
            *entry = Neighbor {
                known: true,
                addr,
                ..Neighbor::EMPTY
            };
        }
        entry.used_at = now;
        Some(entry)
    }
}

/// Time in steps of 2^20 µs, a little over a second: more than sixteen channels take for one frame.
const fn ticks(now: Instant) -> u8 {
    (now.as_micros() >> 20) as u8
}

/// Whether this build measures its pace.
const IS_PACED: bool = cfg!(feature = "pace");

/// Ticks for which a neighbour counts as one that sends fragments.
const FRAGMENTS_FOR: u8 = 2;

/// The effort of one attempt for each frame (RFC 6551 §4.3.2).
const EFFORT_ONE: u16 = 128;

/// Attempts after which is known whether others use the air.
const ATTEMPTS_KNOWN: u16 = 32;

/// A node is alone if less than one in so many of its attempts finds the channel busy. Of ten
/// senders that hear each other none is, not even one that wins most of the air.
const BUSY_PART: u16 = 8;

/// And if no more than one in so many of its attempts fails, which is one at most. A sender that it
/// does not hear costs more of them, even one that starves; to that short backoffs would leave less
/// yet. At one in sixteen, three such senders had a quarter less without their best.
const FAILED_PART: u16 = 64;

/// Attempts after which old ones count half. Chosen arbitrarily: some tens of packets.
pub(super) const ETX_WINDOW: u16 = 128;

/// Frames in a row, with all their attempts, after which a neighbour is silent: 64 attempts over
/// a second and a half. Where three of five frames are lost, ACKs too, one attempt in six is
/// acknowledged, and 64 in a row fail once in 70,000 times. And one burst of noise ends no
/// neighbour: of a window of four segments each falls with its first frame, and so do the next.
const UNANSWERED_MAX: u8 = 8;

/// Frames in a row after which those for this neighbour no longer hold up others: sixteen
/// attempts over half a second, more than any neighbour's own burst of frames lasts.
const UNANSWERED_DOUBT: u8 = 2;

/// How long a silent neighbour is left alone at first.
const ALONE_MIN: Duration = Duration::from_millis(250);

/// How often that time doubles at most: to 4 s. A TCP whose timeout is longer finds out with each
/// retransmission.
const ALONE_DOUBLINGS_MAX: u8 = 4;

/// Attempts in vain at neighbours in doubt: two frames with all their attempts at once, and then
/// one attempt each [`IN_VAIN_INTERVAL_MS`]: 3 % of the time, at 8 ms for an attempt.
const IN_VAIN_MAX: u8 = 16;
const IN_VAIN_INTERVAL_MS: u16 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: LinkAddr = LinkAddr::Short(1);

    /// Whether the parent is still known when `strangers` strangers were heard and have
    /// acknowledged.
    fn outlives(strangers: u16, is_kept: bool) -> bool {
        let mut table = [const { Neighbor::EMPTY }; 4];
        let mut neighbors = Neighbors::new(&mut table, true);
        neighbors.keep(is_kept.then_some(PARENT));
        neighbors.record(PARENT, Some(Duration::ZERO), Instant::ORIGIN);
        for n in 0..strangers {
            let (addr, now) = (
                LinkAddr::Short(100 + n),
                Instant::from_micros(1 + u64::from(n)),
            );
            neighbors.is_duplicate(addr, 7, now, Duration::from_secs(1));
            neighbors.record(addr, Some(Duration::ZERO), now);
        }
        neighbors.is_trusted(PARENT)
    }

    #[test]
    fn a_frame_for_all_is_heard_once_however_many_channels_it_goes_out_on() {
        let mut table = [const { Neighbor::EMPTY }; 2];
        let mut neighbors = Neighbors::new(&mut table, true);
        let at = |ms: u64| Instant::from_micros(4_000_000 + 1_000 * ms);
        for (dsn, ms, swept) in [
            (7, 0, false),
            (7, 8, true),
            (7, 120, true),
            (8, 130, false),
            (7, 140, false),
            // The numbers have come round.
            (7, 3_000, false),
        ] {
            assert_eq!(
                neighbors.is_swept(PARENT, dsn, at(ms)),
                swept,
                "{dsn} at {ms}"
            );
        }
        assert!(
            !neighbors.is_swept(LinkAddr::Short(2), 7, at(3_000)),
            "another's"
        );
        // Frames for one node count for themselves.
        assert!(!neighbors.is_duplicate(PARENT, 7, at(3_001), Duration::from_secs(1)));
    }

    /// The frames that come for one neighbour say nothing about those for another, nor about
    /// unknown nodes; a neighbour that was forgotten begins anew.
    #[cfg(feature = "pace")]
    #[test]
    fn how_far_apart_frames_come_is_known_of_each_neighbour() {
        let mut table = [const { Neighbor::EMPTY }; 2];
        let mut neighbors = Neighbors::new(&mut table, true);
        let at = |ms: u64| Instant::from_micros(1_000_000 + 1_000 * ms);
        let [other, stranger] = [2, 3].map(LinkAddr::Short);
        for addr in [PARENT, other] {
            neighbors.record(addr, Some(Duration::from_millis(5)), at(0));
        }
        for ms in [0, 16, 32] {
            neighbors.note_arrival(PARENT, other, at(ms));
        }
        let apart = neighbors.apart(PARENT, at(33));
        assert_eq!(apart, Some(Duration::from_millis(16)));
        assert_eq!(neighbors.note_arrival(other, PARENT, at(40)), None);
        assert_eq!(neighbors.note_arrival(stranger, PARENT, at(41)), None);
        assert!(neighbors.find(stranger).is_none());
        neighbors.record(stranger, Some(Duration::from_millis(5)), at(50));
        neighbors.record(PARENT, Some(Duration::from_millis(5)), at(60));
        assert_eq!(neighbors.apart(PARENT, at(60)), None);
    }

    /// A frame of an orderly flow backs off the longer, the more its neighbour's frames cost; and
    /// who seldom fails, and seldom finds the channel busy, is alone.
    #[cfg(feature = "pace")]
    #[test]
    fn a_first_backoff_follows_the_effort() {
        // Attempts, of which so many fail, and assessments in vain.
        for (attempts, failed, busy, exponent, is_alone) in [
            (31, 0, 0, Some(1), false),
            (32, 0, 0, Some(1), true),
            (80, 0, 9, Some(1), true),
            (80, 0, 10, Some(1), false),
            (80, 1, 0, Some(1), true),
            (80, 2, 0, Some(1), false),
            (60, 1, 0, Some(1), false),
            (80, 41, 0, Some(2), false),
            (80, 0, 79, Some(1), false),
            (80, 0, 80, Some(2), false),
            (80, 40, 80, Some(3), false),
            (80, 80, 0, None, false),
        ] {
            let mut table = [const { Neighbor::EMPTY }; 2];
            let mut neighbors = Neighbors::new(&mut table, true);
            let now = Instant::from_micros(1_000_000);
            for attempt in 0..attempts {
                let took = (attempt >= failed).then_some(Duration::from_millis(5));
                neighbors.record(PARENT, took, now);
            }
            (0..busy).for_each(|_| neighbors.note_busy(PARENT));
            assert_eq!(neighbors.exponent(PARENT, now), None, "it is not orderly");
            let flow = Flow {
                is_orderly: true,
                taken_at: now,
                ..Flow::NONE
            };
            neighbors.note_flow(PARENT, flow);
            let case = (attempts, failed, busy);
            assert_eq!(neighbors.exponent(PARENT, now), exponent, "{case:?}");
            assert_eq!(neighbors.is_alone(PARENT), is_alone, "{case:?}");
        }
        let neighbors = Neighbors::new(&mut [], true);
        assert_eq!(neighbors.exponent(PARENT, Instant::ORIGIN), None);
        assert!(!neighbors.is_alone(PARENT));
    }

    /// Whether this node has won the air after each attempt of a series, as often as it failed.
    #[cfg(feature = "pace")]
    fn won(is_near: bool, attempts: impl Iterator<Item = bool>) -> (usize, usize) {
        let mut table = [const { Neighbor::EMPTY }; 2];
        let mut neighbors = Neighbors::new(&mut table, true);
        let now = Instant::from_micros(1_000_000);
        neighbors.record(PARENT, Some(Duration::from_millis(5)), now);
        let flow = Flow {
            is_near,
            ..Flow::NONE
        };
        neighbors.note_flow(PARENT, flow);
        let (mut failed, mut won) = (0, 0);
        let mut is_retry = false;
        for succeeds in attempts {
            let took = succeeds.then_some(Duration::from_millis(5));
            neighbors.record(PARENT, took, now);
            if !succeeds && !is_retry {
                failed += 1;
                let train = Duration::from_millis(24 * 5);
                won += usize::from(neighbors.left_to_others(PARENT, now) == Some(train));
            }
            is_retry = !succeeds;
        }
        (won, failed)
    }

    /// Noise, however much, hits retries as often as other frames; trains of others hit them more
    /// often. A source that gets one frame through has no train of its own.
    #[cfg(feature = "pace")]
    #[test]
    fn who_loses_retries_more_often_shares_the_air() {
        let mut rng = crate::random::Rng::from_seed([1, 2]);
        for percent in [1, 5, 10, 20, 30, 50] {
            let noise = (0..20_000).map(|_| rng.below(100) >= percent);
            let (won, failed) = won(true, noise);
            assert!(won * 20 <= failed, "{percent} %: {won} of {failed}");
        }
        let trains = |len: usize| (0..10_000).map(move |n| n % (len + 2) > 1);
        for (is_near, len, expected) in [
            (true, 8, true),
            (true, 20, true),
            (true, 60, true),
            (true, 1, false),
            (false, 20, false),
        ] {
            let (won, failed) = won(is_near, trains(len));
            assert_eq!(won * 10 >= failed * 9, expected, "{len}: {won} of {failed}");
            assert!(expected || won == 0, "{len}: {won} of {failed}");
        }
    }

    /// A node that nobody has disturbed for 64 frames leaves others the time of two frames, once
    /// one of its own fails; a failure sooner than that leaves them none.
    #[cfg(feature = "pace")]
    #[test]
    fn a_source_that_was_undisturbed_for_long_leaves_time_for_a_frame() {
        let mut table = [const { Neighbor::EMPTY }; 2];
        let mut neighbors = Neighbors::new(&mut table, true);
        let (now, took) = (Instant::ORIGIN, Duration::from_millis(5));
        for (frames, left) in [(63, None), (64, Some(10)), (1, None), (400, Some(10))] {
            for _ in 0..frames {
                neighbors.record(PARENT, Some(took), now);
            }
            neighbors.record(PARENT, None, now);
            let left = left.map(Duration::from_millis);
            assert_eq!(neighbors.left_to_others(PARENT, now), left, "{frames}");
        }
    }

    /// Two or three seconds after a fragment its sender counts as one that sends none.
    #[cfg(feature = "pace")]
    #[test]
    fn a_fragment_is_remembered_for_seconds() {
        let mut table = [const { Neighbor::EMPTY }; 2];
        let mut neighbors = Neighbors::new(&mut table, true);
        let at = Instant::from_micros(9_000_000);
        assert!(!neighbors.sends_fragments(PARENT, at));
        neighbors.note_fragment(PARENT, at);
        assert!(
            !neighbors.sends_fragments(PARENT, at),
            "it is no neighbour yet"
        );
        neighbors.record(PARENT, Some(Duration::from_millis(5)), at);
        neighbors.note_fragment(PARENT, at);
        for (later_ms, sends) in [(0, true), (2_000, true), (3_200, false), (100_000, false)] {
            let now = at + Duration::from_millis(later_ms);
            assert_eq!(neighbors.sends_fragments(PARENT, now), sends, "{later_ms}");
        }
    }

    #[test]
    fn strangers_that_acknowledge_do_not_push_out_the_way_up() {
        assert!(outlives(3, false), "there is room for them");
        assert!(!outlives(4, false), "the least recently used goes");
        assert!(outlives(300, true));
    }
}
