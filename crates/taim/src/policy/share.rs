//! The state of a flow under [`admission`](super::admission), and how long its packets may wait.
//!
//! Purpose: what a flow was served, whether it is late, and how patient its sender is. Place: a
//! `Gate` has one for each place in the table of flows.

use motet::time::{Duration, Instant};

use super::HOLD_MAX;
use crate::flow::{Flow, HeldPacket};
use crate::segment::Direction;

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes delivered to it and by it; less would be owed to it otherwise.
    pub(super) served: u64,
    /// When the flow last was heavy.
    pub(super) heavy_at: Option<Instant>,
    /// When the flow was last heard of.
    pub(super) last: Option<Instant>,
    /// The flow's place among those that wait.
    pub(super) place: Option<WaitingFlow>,
    /// Until when it counts as inside.
    pub(super) until: Option<Instant>,
    /// When another packet of it goes if it has not answered by then.
    pub(super) nudged: Option<Instant>,
    /// How often in a row it was inside and did not answer in time, and whether its mote has sent
    /// bytes again since its last answer.
    pub(super) late: u8,
    pub(super) was_repeated: bool,
    /// Answers at times of the mote's own, less the others, 0 to [`OWN_MAX`].
    own: u8,
    /// How often the mote ran out of data, weighed against its prompt answers, 0 to [`DRY_MAX`].
    dry: u8,
    /// The flow's data that was sent again while its acknowledgments waited.
    repeats: Option<Repeats>,
    /// How long its sender waits before it sends again, where that is fixed, and since when that
    /// is known.
    timeout: Option<(Duration, Instant)>,
}

/// Where and until when a flow waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingFlow {
    /// The service of the flow at that time.
    pub(super) served: u64,
    pub(super) turn: u64,
    pub(super) due: Instant,
    pub(super) urgent: Instant,
}

/// Data that is sent again and again while its acknowledgment waits.
#[derive(Clone, Copy, Debug)]
struct Repeats {
    /// Sequence number of the first byte. Successive segments of a retransmitted window have
    /// different numbers, and are no repeats.
    seq: u32,
    /// When the segment was last sent again.
    at: Instant,
    /// How long after the time before.
    gap: Duration,
    /// How many gaps in a row were alike.
    alike: u8,
}

impl Share {
    /// Whether the flow was heard of lately.
    pub(super) fn is_heard(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.since(last) < ACTIVE)
    }

    /// Whether the flow has less than others because its segments are lost.
    pub(super) const fn is_behind(&self) -> bool {
        self.late > 1 || self.late == 1 && self.was_repeated
    }

    /// The flow is over: it wants no place any more, and does not count any more. A next one from
    /// the same port is another flow.
    pub(super) const fn end(&mut self) {
        (self.last, self.own, self.dry) = (None, 0, 0);
    }

    /// Data came behind an acknowledgment; `is_own`: at a time of the mote's own.
    pub(super) fn note_answer(&mut self, is_own: bool) {
        self.own = match is_own {
            true => (self.own + 1).min(OWN_MAX),
            false => self.own.saturating_sub(1),
        };
    }

    /// New data came behind an acknowledgment; `ran_dry`: see [`SegmentEffect::ran_dry`].
    ///
    /// [`SegmentEffect::ran_dry`]: crate::flow::SegmentEffect::ran_dry
    pub(super) fn note_dry(&mut self, ran_dry: bool) {
        self.dry = match ran_dry {
            true => (self.dry + DRY_WEIGHT).min(DRY_MAX),
            false => self.dry.saturating_sub(1),
        };
    }

    /// Whether the mote runs out of data again and again: it sends messages of a few segments, and
    /// what is let in need not trigger more. Each end of a message once kept all others out until
    /// an answer was overdue: eight motes with 1,500 bytes each two seconds had a third of them
    /// through, and a bulk flow beside them a seventeenth of what it has.
    pub(super) fn runs_dry(&self) -> bool {
        self.dry >= DRY_MIN
    }

    /// Whether the flow sends at times of its own, as one with readings does: nothing that is let
    /// in triggers its data.
    pub(super) const fn has_own_time(&self) -> bool {
        self.own >= OWN_MIN
    }

    /// The flow's data was sent again while acknowledgments of it wait. Most senders double their
    /// timeout each time; equal gaps mean a sender whose timeout does not depend on round trips.
    pub(super) fn note_repeat(&mut self, flow: &Flow, seq: u32, now: Instant) {
        let Some(held) = flow.first(Direction::Down) else {
            return;
        };
        let is_same = |before: &Repeats| before.at >= held.since && before.seq == seq;
        let before = self.repeats.filter(is_same);
        let gap = now.since(before.map_or(held.since, |before| before.at));
        let alike = match before {
            Some(Repeats {
                gap: other, alike, ..
            }) if gap <= other + fourth(other) => alike.saturating_add(1),
            _ => 0,
        };
        if alike >= ALIKE_MIN {
            self.timeout = Some((gap, now));
        }
        self.repeats = Some(Repeats {
            seq,
            at: now,
            gap,
            alike,
        });
    }

    /// How long a packet of it may wait.
    pub(super) fn hold_max(&self, now: Instant) -> Duration {
        let Some((timeout, since)) = self.timeout else {
            return HOLD_MAX;
        };
        // A little less than the timeout, and a twentieth more every ten seconds: it may have
        // been taken for one wrongly.
        let steps = now.since(since).as_micros() / Duration::from_secs(10).as_micros();
        let part = timeout.as_micros() / 20;
        let longest = part.saturating_mul(steps.saturating_add(16));
        HOLD_MAX.min(Duration::from_micros(longest))
    }
}

/// The time for which the first held packet of a flow may be held before a timer runs out: that of
/// the host for data, and that of the mote for what acknowledges its data.
pub(super) fn patience(flow: &Flow) -> Duration {
    let has_data = |packet: &HeldPacket| packet.end().is_some();
    if !flow.first(Direction::Down).is_some_and(has_data) {
        return mote_patience(flow).unwrap_or(Duration::ZERO);
    }
    let host = flow.host_patience().unwrap_or(RTO_MIN);
    let mote = mote_patience(flow).filter(|_| flow.awaits_ack());
    mote.map_or(host, |mote| host.min(mote))
}

/// The time for which an acknowledgment may be held before the mote's timer runs out, all it can
/// take through the mesh left aside; none before the first round trip is known.
///
/// A sender's timeout follows the round trips that it sees, so the holding may grow step by step,
/// but not begin with more than the shortest timeout.
fn mote_patience(flow: &Flow) -> Option<Duration> {
    let (sender, mesh) = (flow.sender_timeout()?, flow.mesh.timeout()?);
    Some(sender.max(RTO_MIN) - mesh)
}

/// The shortest retransmission timeout (RFC 6298 §2.4).
pub(super) const RTO_MIN: Duration = Duration::from_secs(1);

/// A flow that was silent for longer does not count when flows are compared.
const ACTIVE: Duration = Duration::from_secs(60);

/// By how many answers at times of its own a flow is known as one with readings, and how many are
/// remembered: a reading may come right behind an acknowledgment that had to wait.
const OWN_MIN: u8 = 2;
const OWN_MAX: u8 = 4;

/// For how many prompt answers it is remembered that a mote ran dry, for how many at most, and how
/// many of these must be left: messages of up to sixteen segments are known by it. Found on stars
/// and floors whose seeds no experiment uses.
const DRY_WEIGHT: u8 = 16;
const DRY_MAX: u8 = 48;
const DRY_MIN: u8 = 8;

/// How many gaps in a row must be alike to be neither chance nor a probe before a timeout.
const ALIKE_MIN: u8 = 3;

const fn fourth(span: Duration) -> Duration {
    Duration::from_micros(span.as_micros() / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mote whose messages take a few segments is soon known by its pauses, one that sends
    /// without an end is not, though a few of its answers come late.
    #[test]
    fn a_flow_with_messages_is_known_by_its_pauses() {
        for (segments, expected) in [(1, true), (4, true), (8, true), (40, false), (90, false)] {
            let mut share = Share::default();
            for answer in 0..400_u32 {
                share.note_dry(answer % segments == 0);
                // From the second message on, until behind the last answer of each.
                let is_end = answer > 40 && answer % segments == segments - 1;
                assert!(!is_end || share.runs_dry() == expected, "{segments}");
            }
            share.end();
            assert!(!share.runs_dry());
        }
    }

    /// Of a flow with readings four of five answers come at times of the mote's own; of one that
    /// answers, hardly any do. A flow that is over leaves nothing to the next one.
    #[test]
    fn a_flow_with_readings_is_known_by_its_times() {
        for (own_in_five, expected) in [(0, false), (1, false), (4, true), (5, true)] {
            let mut share = Share::default();
            for answer in 0..40 {
                share.note_answer(answer % 5 < own_in_five);
                let is_known = answer > 10;
                assert!(
                    !is_known || share.has_own_time() == expected,
                    "{own_in_five}"
                );
            }
            share.end();
            assert!(!share.has_own_time());
        }
    }
}
