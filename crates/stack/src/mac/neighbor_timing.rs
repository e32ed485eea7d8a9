//! The timing of a neighbour, at a node that measures its pace: how long frames take, how far apart
//! the frames come that go on to the neighbour, and whether several nodes send them.

use super::flow::Flow;
use super::immediate::FLUSH_AFTER;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

#[derive(Clone, Debug)]
pub(super) struct NeighborTiming {
    /// The duration of the last acknowledged exchange, from the assessment to the ACK, µs; it
    /// always fits the type. 0: not known.
    exchange_us: u16,
    /// Assessments before frames for it that found the channel busy; they grow old as attempts do.
    busy: u16,
    /// The time between the starts of arriving frames that go on to this neighbour, µs: three of
    /// four such times are longer. 0: not known.
    apart_us: u16,
    /// When the last of those had come.
    came_at: Instant,
    /// Until when the last fragment of the neighbour waits for the next one, in
    /// [`promise_ticks`]. 0: the neighbour promised none.
    promised_until: u16,
    /// Promises of the neighbour, in a row, that were not kept in time.
    broken_promises: u8,
    /// The busiest sender of frames for this neighbour, folded, this node included; 0: none yet.
    sender: u16,
    /// The share of these frames that other nodes send, in 255ths: at most half.
    others: u8,
    /// Attempts in a row that were acknowledged before the last that was not.
    run: u8,
    /// The share of attempts right behind a failed one that failed, too, in 65,535ths.
    again: u16,
    /// Whether the last attempt was not acknowledged.
    has_failed: bool,
    flow: Flow,
}

impl NeighborTiming {
    /// A neighbour without measurements: all zeros, so that a static table costs no flash.
    pub(super) const NONE: Self = Self {
        exchange_us: 0,
        busy: 0,
        apart_us: 0,
        came_at: Instant::ORIGIN,
        promised_until: 0,
        broken_promises: 0,
        sender: 0,
        others: 0,
        run: 0,
        again: 0,
        has_failed: false,
        flow: Flow::NONE,
    };

    pub(super) fn exchange(&self) -> Option<Duration> {
        (self.exchange_us > 0).then_some(Duration::from_micros(self.exchange_us.into()))
    }

    pub(super) fn took(&mut self, exchange: Duration) {
        self.exchange_us = u16::try_from(exchange.as_micros()).unwrap_or(u16::MAX);
    }

    /// Notes whether an attempt was acknowledged.
    pub(super) fn note_attempt(&mut self, has_succeeded: bool) {
        if self.has_failed {
            match has_succeeded {
                true => self.again -= self.again.div_ceil(AGAIN_PAST),
                false => self.again += (u16::MAX - self.again) / AGAIN_PAST,
            }
        }
        if has_succeeded {
            let before = if self.has_failed { 0 } else { self.run };
            self.run = before.saturating_add(1);
        }
        self.has_failed = !has_succeeded;
    }

    /// Exchanges that this node leaves to others that it does not hear, once an attempt has failed;
    /// `None`: none. `failed`: the share of all attempts that failed, in 255ths.
    ///
    /// A winner of the air leaves time for a train. Each train costs two frames that fail. A third
    /// more or less of it carries as much between two sources; of four some share unevenly with
    /// either. A node whose last 64 frames were all acknowledged, however far apart, leaves time
    /// for one frame. On links that lose frames for other reasons that costs less than a hundredth
    /// of goodput.
    pub(super) fn exchanges_left(&self, failed: u8, now: Instant) -> Option<u64> {
        if self.has_won(failed, now) {
            Some(TRAIN)
        } else if self.run >= UNDISTURBED_MIN {
            Some(SINGLE)
        } else {
            None
        }
    }

    /// Whether this node had the air before its last attempt failed, and shares it with nodes that
    /// it does not hear. `failed`: the share of all attempts that failed, in 255ths. Noise hits a
    /// retry no more often than another frame; a source that sends a train of frames hits the
    /// retry, too.
    fn has_won(&self, failed: u8, now: Instant) -> bool {
        let [again, _] = self.again.to_be_bytes();
        let is_near = self.flow.is_near && self.flows(now);
        is_near && self.run >= RUN_MIN && again >= failed.saturating_add(TRAINS)
    }

    pub(super) const fn note_busy(&mut self) {
        self.busy = self.busy.saturating_add(1);
    }

    pub(super) const fn grow_old(&mut self) {
        self.busy /= 2;
    }

    pub(super) const fn busy(&self) -> u16 {
        self.busy
    }

    pub(super) const fn flow(&self) -> Flow {
        self.flow
    }

    pub(super) const fn note_flow(&mut self, flow: Flow) {
        self.flow = flow;
    }

    /// Notes that a frame had come `at` and `from` a node, and returns how far apart such frames
    /// begin, once it is known.
    ///
    /// A frame that had to be sent again comes late, and the one behind it soon: neither is to move
    /// what is known by much. So that changes in small steps, whatever the difference, and falls
    /// three times as fast as it rises. Frames that come far apart do not follow each other, and
    /// say nothing.
    pub(super) fn note_arrival(&mut self, from: LinkAddr, at: Instant) -> Option<Duration> {
        self.note_sender(from);
        if self.apart(at).is_none() {
            // Another flow may have another pace.
            self.apart_us = 0;
        }
        let apart = at.since(self.came_at).as_micros();
        let longest = u64::from(self.exchange_us) * FOLLOWS;
        self.came_at = at;
        if let Ok(apart) = u16::try_from(apart)
            && u64::from(apart) < longest
        {
            let known = self.apart_us;
            let (less, more) = (known / STEPS, known / (3 * STEPS));
            self.apart_us = match known {
                0 => apart,
                // Not `clamp`, which links a panic.
                _ => apart.max(known - less).min(known.saturating_add(more)),
            };
        }
        self.apart(at)
    }

    /// Notes that a fragment of the neighbour had come `at`, and `until` when it waits for the next
    /// one here, if the neighbour has promised that. If this fragment was promised, it has kept the
    /// promise if it came in time to fire the waiting one.
    pub(super) fn note_promise(&mut self, at: Instant, until: Option<Instant>) {
        if self.promised_until > 0 {
            let left = self.promised_until.wrapping_sub(promise_ticks(at));
            self.broken_promises = match left <= LEFT_MAX {
                true => 0,
                false => self.broken_promises.saturating_add(1),
            };
        }
        self.promised_until = until.map_or(0, |until| promise_ticks(until).max(1));
    }

    /// Whether the neighbour's next fragment is likely to come in time to fire the one before it,
    /// if that promises it.
    ///
    /// A source that slows down because its frames fail may have a pace longer than
    /// [`FLUSH_AFTER`]. Each of its frames then waits at its router in vain, and goes on just
    /// before the next one leaves the source. The two disturb each other, so that the source stays
    /// slow, at half of its goodput.
    pub(super) const fn keeps_promises(&self) -> bool {
        self.broken_promises < BROKEN_MAX
    }

    /// Counts a frame of a packet of several that goes to this neighbour, from another one or from
    /// this node itself.
    pub(super) fn note_sender(&mut self, from: LinkAddr) {
        let from = folded(from);
        if self.sender == 0 {
            self.sender = from;
        }
        if self.sender == from {
            self.others -= self.others.div_ceil(LAST);
            return;
        }
        self.others += (u8::MAX - self.others) / LAST;
        if self.others > u8::MAX / 2 {
            self.sender = from;
            self.others = u8::MAX - self.others;
        }
    }

    /// Whether nodes other than the busiest sent at least a quarter of the last frames for this
    /// neighbour, however long ago.
    pub(super) const fn is_shared(&self) -> bool {
        self.others >= u8::MAX / SHARED
    }

    /// The time between the starts of frames that go on to the neighbour, while they come.
    pub(super) fn apart(&self, now: Instant) -> Option<Duration> {
        let is_known = self.apart_us > 0 && now.since(self.came_at) < FLOW_FOR;
        is_known.then_some(Duration::from_micros(self.apart_us.into()))
    }

    /// Whether `from` sent more than three quarters of the last frames for this neighbour.
    pub(super) fn is_mostly_of(&self, from: LinkAddr) -> bool {
        self.sender == folded(from) && !self.is_shared()
    }

    /// Whether nobody contended for the neighbour's last frames, and these were sent lately.
    pub(super) fn is_orderly(&self, now: Instant) -> bool {
        self.flow.is_orderly && self.flows(now)
    }

    /// Whether this node contended with others for the neighbour's last frames, lately.
    pub(super) fn contends(&self, now: Instant) -> bool {
        self.flow.contends && self.flows(now)
    }

    /// Whether the neighbour took a frame of the flow lately: what is known of one that is over
    /// says nothing of the next one.
    fn flows(&self, now: Instant) -> bool {
        now.since(self.flow.taken_at) < FLOW_FOR
    }
}

/// An address in 16 bits, none of them all zeros. Two neighbours seldom have the same; they then
/// count as one. A neighbour that uses a short and a long address counts as two.
fn folded(addr: LinkAddr) -> u16 {
    let [a, b, c, d, e, f, g, h] = addr.iid();
    u16::from_be_bytes([a ^ c ^ e ^ g, b ^ d ^ f ^ h]).max(1)
}

/// Time in steps of 256 µs, which come round after 17 s.
const fn promise_ticks(at: Instant) -> u16 {
    (at.as_micros() >> 8) as u16
}

/// Retries over which the share of failed ones is averaged. Over a quarter as many that share would
/// vary so much that a lone source on a link that loses one frame in twenty lost a tenth of its
/// goodput to waits for nobody.
const AGAIN_PAST: u16 = 64;

/// Others send trains of frames where retries fail so much more often than all attempts do, a
/// twelfth.
const TRAINS: u8 = u8::MAX / 12;

/// Exchanges that the winner of the air leaves to the others at the least.
const TRAIN: u64 = 24;

/// Exchanges within which another node, whose frame has failed, too, has sent it again: its wait is
/// no longer than one, and the frame takes no longer than another.
const SINGLE: u64 = 2;

/// Frames in a row, all acknowledged, from which on a node is undisturbed: a third of a second of
/// an upload. Of half as many, links that lose one frame in fifty pay a hundredth of goodput.
const UNDISTURBED_MIN: u8 = 64;

/// Frames in a row that make a node the winner of the air: two, since the first may have been the
/// last of the others' pauses.
const RUN_MIN: u8 = 2;

/// A flow is over that pauses for longer: for more than the first two timeouts of a sender, of one
/// second and of two (RFC 6298 §2, §5.5).
const FLOW_FOR: Duration = Duration::from_millis(3_500);

/// Frames over which the parts of nodes are averaged: six segments of five frames.
const LAST: u8 = 32;

/// A neighbour is shared if at least one frame in this many is not from its busiest sender. Short
/// messages beside bulk data stay below that.
const SHARED: u8 = 4;

/// Exchanges between two frames that do not follow each other.
const FOLLOWS: u64 = 8;

/// One step is so small a part of what is known: at forty frames a second it has found another
/// pace, a seventh slower, within three seconds. Four times as large steps cost relays that copy a
/// twentieth of goodput.
const STEPS: u16 = 256;

/// The longest time left of a wait when its fragment has come, in [`promise_ticks`]:
/// [`FLUSH_AFTER`], and as much for copies. Since the ticks come round, one in 280 of the fragments
/// that come later than 17 s counts as in time; the price is up to [`BROKEN_MAX`] waits in vain.
const LEFT_MAX: u16 = ((2 * FLUSH_AFTER.as_micros()) >> 8) as u16;

/// Promises broken in a row from which on the next one is not relied on. Against ACKs that come the
/// other way a few in a row are broken; if only two counted, flows down a chain lost a fiftieth.
const BROKEN_MAX: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: LinkAddr = LinkAddr::Short(7);

    /// The time known once frames have come so far apart, ms, `times` times.
    fn after(times: usize, apart_ms: &[u64]) -> Option<u64> {
        let mut timing = NeighborTiming::NONE;
        timing.took(Duration::from_millis(5));
        let mut at = Instant::from_micros(1_000_000);
        for ms in apart_ms.iter().cycle().take(times * apart_ms.len()) {
            at += Duration::from_millis(*ms);
            timing.note_arrival(CHILD, at);
        }
        timing.apart(at).map(Duration::as_micros)
    }

    #[test]
    fn frames_tell_how_far_apart_they_come() {
        assert_eq!(after(1, &[20]), None);
        assert_eq!(after(2, &[20]), Some(20_000));
        let near = |apart: Option<u64>, us: u64| apart.unwrap().abs_diff(us) <= us / 64;
        // Late ones, and those behind them, move it little.
        assert!(near(after(200, &[20, 20, 20, 28, 12]), 20_000));
        assert!(near(after(200, &[20, 20, 20, 39]), 20_000));
        // The next segment says nothing.
        assert_eq!(after(200, &[20, 20, 20, 20, 40]), Some(20_000));
        assert_eq!(after(200, &[20, 20, 400]), Some(20_000));
    }

    #[test]
    fn another_pace_is_found() {
        let mut timing = NeighborTiming::NONE;
        timing.took(Duration::from_millis(5));
        let mut at = Instant::from_micros(1_000_000);
        for (ms, frames) in [(20, 10), (23, 160), (17, 160), (20, 160)] {
            for _ in 0..frames {
                at += Duration::from_millis(ms);
                timing.note_arrival(CHILD, at);
            }
            assert_eq!(timing.apart(at), Some(Duration::from_millis(ms)));
        }
    }

    /// A flow that ended says nothing of what a node does later, nor of the next one's pace.
    #[test]
    fn what_came_long_ago_says_nothing() {
        let mut timing = NeighborTiming::NONE;
        timing.took(Duration::from_millis(5));
        let begin = Instant::from_micros(1_000_000);
        let ms = |ms: u64| begin + Duration::from_millis(ms);
        timing.note_arrival(CHILD, ms(0));
        timing.note_arrival(CHILD, ms(20));
        timing.note_flow(Flow {
            taken_at: ms(20),
            is_orderly: true,
            contends: true,
            is_near: true,
            ..Flow::NONE
        });
        for has_succeeded in [false, false, false, false, true, true, false] {
            timing.note_attempt(has_succeeded);
        }
        timing.again = u16::MAX;
        for (at, apart) in [(3_519, Some(Duration::from_millis(20))), (3_520, None)] {
            assert_eq!(timing.apart(ms(at)), apart, "{at}");
            assert_eq!(timing.is_orderly(ms(at)), apart.is_some(), "{at}");
            assert_eq!(timing.contends(ms(at)), apart.is_some(), "{at}");
            assert_eq!(timing.has_won(0, ms(at)), apart.is_some(), "{at}");
        }
        assert_eq!(timing.note_arrival(CHILD, ms(9_000)), None);
        let next = timing.note_arrival(CHILD, ms(9_030));
        assert_eq!(next, Some(Duration::from_millis(30)));
    }

    /// A fragment waits for the next one unless the last eight promised ones came too late to fire
    /// the waiting one. That waits for 30 ms from when it has been copied, here 2.2 ms. A fragment
    /// that was not promised may come at any time.
    #[test]
    fn promises_are_relied_on_while_they_are_kept() {
        let mut timing = NeighborTiming::NONE;
        let mut at = Instant::from_micros(1_000_000);
        for (times, apart_ms, more_follow, is_relied_on) in [
            (20, 20, true, true),
            (20, 31, true, true),
            (7, 33, true, true),
            (1, 32, true, true),
            (7, 44, true, true),
            (1, 44, true, false),
            (1, 44, false, false),
            (300, 90, false, false),
            (1, 90, true, false),
            (1, 31, false, true),
            (10, 90, false, true),
            (1, 90, true, true),
            (8, 5_000, true, false),
        ] {
            for _ in 0..times {
                at += Duration::from_millis(apart_ms);
                let until = at + Duration::from_micros(2_200) + FLUSH_AFTER;
                timing.note_promise(at, more_follow.then_some(until));
            }
            assert_eq!(timing.keeps_promises(), is_relied_on, "{at:?}");
        }
    }

    /// Before the first ACK nobody knows which frames follow each other.
    #[test]
    fn nothing_is_known_before_the_first_exchange() {
        let mut timing = NeighborTiming::NONE;
        for ms in [1, 2, 3] {
            let at = Instant::from_micros(1_000_000 + ms * 1_000);
            assert_eq!(timing.note_arrival(CHILD, at), None);
        }
    }

    /// Sends frames of each node in turn, `times` times over; returns whether several nodes share
    /// the neighbour then.
    fn is_shared_after(
        timing: &mut NeighborTiming,
        times: usize,
        turn: &[(LinkAddr, usize)],
    ) -> bool {
        for _ in 0..times {
            for &(from, frames) in turn {
                (0..frames).for_each(|_| timing.note_sender(from));
            }
        }
        timing.is_shared()
    }

    /// A neighbour is shared by nodes that each send a fair part, and no longer when only one is
    /// left.
    #[test]
    fn several_senders_share_a_neighbour() {
        let others = [
            LinkAddr::Short(8),
            LinkAddr::Extended([7, 0, 9, 0, 0, 0, 1, 1]),
        ];
        for other in others {
            let mut timing = NeighborTiming::NONE;
            for (times, turn, is_shared) in [
                (64, &[(CHILD, 1)][..], false),
                // Two, by whole segments and frame by frame; three; then the second of them alone.
                (8, &[(CHILD, 5), (other, 5)], true),
                (40, &[(CHILD, 1), (other, 1)], true),
                (8, &[(CHILD, 5), (other, 5), (LinkAddr::Short(9), 5)], true),
                (48, &[(other, 1)], false),
                (8, &[(CHILD, 5), (other, 5)], true),
            ] {
                let seen = is_shared_after(&mut timing, times, turn);
                assert_eq!(seen, is_shared, "{turn:?}");
            }
        }
    }

    /// A short message now and then, beside somebody's bulk data, is no second flow.
    #[test]
    fn a_short_message_shares_nothing() {
        let mut timing = NeighborTiming::NONE;
        for (bulk, is_shared) in [(35, false), (20, false), (10, true)] {
            let turn = [(CHILD, bulk), (LinkAddr::Short(8), 5)];
            let seen = is_shared_after(&mut timing, 20, &turn);
            assert_eq!(seen, is_shared, "{bulk}");
        }
    }

    /// Among sixteen senders the busiest one changes, and what the others send stays within a half.
    #[test]
    fn the_parts_of_others_stay_within_a_half() {
        let mut timing = NeighborTiming::NONE;
        for number in 0..10_000_u32 {
            let sender = number.wrapping_mul(0x9e37_79b9) >> 28;
            timing.note_sender(LinkAddr::Short(sender as u16));
            assert!(timing.others <= u8::MAX / 2, "{}", timing.others);
        }
        assert!(timing.is_shared());
    }

    #[test]
    fn an_address_folds_to_what_is_not_none() {
        for (bytes, known) in [
            ([2, 0, 0, 0, 0, 0, 0, 0], 1),
            ([1, 2, 3, 4, 5, 6, 7, 8], 0x0208),
        ] {
            assert_eq!(folded(LinkAddr::Extended(bytes)), known, "{bytes:x?}");
        }
        assert_ne!(folded(LinkAddr::Short(1)), folded(LinkAddr::Short(2)));
    }
}
