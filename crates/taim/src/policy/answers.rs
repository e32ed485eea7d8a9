//! The answers that flows owe for what admission has let in.
//!
//! Purpose: an acknowledgment that is let in triggers as many bytes as it acknowledges. Its flow
//! owes an answer until these have come, or are overdue. A sender's round trips tell little of when
//! they are: before flows contend, acknowledgments and data wait in the mesh's queues many times as
//! long as the mesh takes where few flows are inside. One answer that did not come then once kept
//! all other flows out for seconds. So the time from a packet that is let in to the first answer is
//! smoothed apart, for each flow since flows contend; a flow without a sample is expected to answer
//! as all others do. A sender that is not allowed to send by an acknowledgment, because its
//! congestion window is shut, answers nothing, and costs that time alone.
//! Source: Motet's own; the smoothing is that of RFC 6298 §2.

use motet::time::{Duration, Instant};

use crate::flow::{OVERDUE_MAX, SegmentEffect};
use crate::flows::FlowId;
use crate::rtt::{Rtt, VARIATION_MIN};
use crate::segment::Segment;

/// What flows owe, and how long their answers take.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Of each flow, by its place in the table.
    flows: Vec<Owed>,
    /// The times of all flows together.
    all: Rtt,
    /// Whether flows contended when the last answer came.
    contended: bool,
    /// How long the first answers of the quickest flow take, and when flows are compared again.
    quickest: Option<Duration>,
    compares_at: Option<Instant>,
}

/// What one flow owes.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// Bytes that are to come.
    bytes: u32,
    /// When the first packet was let in that is not answered.
    asked: Option<Instant>,
    /// How long the first answer took.
    took: Rtt,
    /// Answers in a row that came overdue.
    overdue: u8,
}

impl Answers {
    /// A packet has been let in that triggers `bytes` bytes.
    pub(super) fn ask(&mut self, id: FlowId, bytes: u32, now: Instant) {
        let owed = self.owed(id);
        owed.bytes = owed.bytes.saturating_add(bytes);
        owed.asked.get_or_insert(now);
    }

    /// How long the flow may take from now on; none before any flow has answered.
    pub(super) fn patience(&mut self, id: FlowId) -> Option<Duration> {
        let own = patience(&self.owed(id).took);
        own.or_else(|| patience(&self.all))
    }

    /// Whether an answer came late: it took far longer than those of the quickest flow, of all
    /// whose place `counts`. These are compared once in [`COMPARES_EVERY`].
    pub(super) fn is_late(
        &mut self,
        took: Duration,
        counts: impl Fn(usize) -> bool,
        now: Instant,
    ) -> bool {
        if self.compares_at.is_none_or(|at| at <= now) {
            self.compares_at = Some(now + COMPARES_EVERY);
            let flows = self.flows.iter().enumerate();
            let counted = flows.filter(|(place, _)| counts(*place));
            self.quickest = counted.filter_map(|(_, owed)| owed.took.smoothed()).min();
        }
        let late_after = |quickest: Duration| quickest.saturating_mul(2) + VARIATION_MIN;
        self.quickest
            .map(late_after)
            .is_some_and(|late| took > late)
    }

    /// How long the flow's first answers take.
    pub(super) fn usual(&mut self, id: FlowId) -> Option<Duration> {
        self.owed(id).took.smoothed()
    }

    /// A segment has come out of the mesh. `contend`: whether flows contend. Returns whether its
    /// flow owes nothing more, if the segment is an answer.
    pub(super) fn note(
        &mut self,
        id: FlowId,
        segment: &Segment,
        news: &SegmentEffect,
        (contend, now): (bool, Instant),
    ) -> bool {
        if contend && !self.contended {
            // What was measured before is of a mesh with all flows inside.
            self.all = Rtt::default();
            (self.quickest, self.compares_at) = (None, None);
            for owed in &mut self.flows {
                (owed.asked, owed.took, owed.overdue) = (None, Rtt::default(), 0);
            }
        }
        self.contended = contend;
        let is_answer = news.new_bytes > 0 || news.newly_acknowledged > 0;
        let owed = self.owed(id);
        // A retransmission may have been sent before the packet came (Karn).
        let asked = match is_answer || news.is_retransmission {
            true => owed.asked.take().filter(|_| !news.is_retransmission),
            false => None,
        };
        let sample = asked.and_then(|asked| owed.sample(now.since(asked)));
        let left = owed.bytes.saturating_sub(news.new_bytes);
        // Less than a segment is not worth waiting for: its sender may have no more. One that sends
        // a segment which is not full has no more. Eight motes with messages of 1,500 bytes, the
        // last part of which waits for the acknowledgment of the others (Nagle), once had a third
        // of them through: each turn lasted until the rest of a full answer was overdue.
        owed.bytes = match left < segment.payload_len || segment.payload_len == 0 || news.is_short {
            true => 0,
            false => left,
        };
        let is_even = owed.bytes == 0;
        if let Some(sample) = sample.filter(|_| contend) {
            self.owed(id).took.add(sample);
            self.all.add(sample);
        }
        is_even
    }

    /// Its flow's answers are overdue: no more is expected.
    pub(super) fn write_off(&mut self, id: FlowId) {
        self.owed(id).bytes = 0;
    }

    /// The flow is over.
    pub(super) fn forget(&mut self, id: FlowId) {
        *self.owed(id) = Owed::default();
    }

    fn owed(&mut self, id: FlowId) -> &mut Owed {
        if self.flows.len() <= id.index() {
            self.flows.resize(id.index() + 1, Owed::default());
        }
        &mut self.flows[id.index()]
    }
}

impl Owed {
    /// The sample of an answer that took so long. One that came overdue may have been sent by a
    /// timer, and is none, unless answers come overdue again and again: then the mesh has become
    /// slower. Such a sample is cut to the timeout.
    fn sample(&mut self, took: Duration) -> Option<Duration> {
        let timeout = self.took.timeout().unwrap_or(took.min(FIRST_MAX));
        self.overdue = match took > timeout {
            true => self.overdue.saturating_add(1),
            false => 0,
        };
        (self.overdue == 0 || self.overdue > OVERDUE_MAX).then(|| took.min(timeout))
    }
}

/// The time after which an answer is overdue. Twice the variation, not four times as for a timer:
/// to let the next flow in while one is late costs little, and to wait for what does not come, all
/// flows' time.
fn patience(took: &Rtt) -> Option<Duration> {
    let slack = took.variation()?.saturating_mul(2).max(VARIATION_MIN);
    took.smoothed().map(|smoothed| smoothed + slack)
}

/// How often flows are compared.
const COMPARES_EVERY: Duration = Duration::from_secs(1);

/// How long an answer may take before any has been measured.
pub(super) const FIRST_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use motet::wire::tcp::Flags;

    use super::*;
    use crate::segment::{Direction, FlowKey};

    const FLOW: FlowId = FlowId::at(0);
    const OTHER: FlowId = FlowId::at(1);

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(1_000) + Duration::from_millis(ms)
    }

    /// A segment with `len` bytes, all of them new or sent again; returns whether `id` is even.
    fn came(answers: &mut Answers, id: FlowId, len: u32, is_new: bool, ms: u64) -> bool {
        let segment = Segment {
            flow: FlowKey {
                mote: Ipv6Addr::LOCALHOST,
                mote_port: 1,
                peer: Ipv6Addr::UNSPECIFIED,
                peer_port: 2,
            },
            direction: Direction::Up,
            seq: 0,
            ack: Some(0),
            flags: Flags::ACK,
            payload_len: len,
            packet_len: 60 + len as usize,
            mss: None,
        };
        let news = SegmentEffect {
            new_bytes: if is_new { len } else { 0 },
            is_short: is_new && len < FULL,
            is_retransmission: !is_new,
            ..SegmentEffect::default()
        };
        answers.note(id, &segment, &news, (true, at(ms)))
    }

    /// Bytes of a full segment.
    const FULL: u32 = 300;

    /// One acknowledgment of two segments brings two, or what the mote has: a segment that is not
    /// full is its last.
    #[test]
    fn a_flow_owes_as_much_as_was_acknowledged() {
        for (bytes, lens, even) in [
            (800, &[400, 400][..], &[false, true][..]),
            (800, &[400, 300], &[false, true]),
            (800, &[299], &[true]),
            (1_200, &[400, 299], &[false, true]),
            (400, &[400], &[true]),
            (0, &[400], &[true]),
            (800, &[0], &[true]),
        ] {
            let mut answers = Answers::default();
            came(&mut answers, OTHER, 1, true, 0);
            answers.ask(FLOW, bytes, at(10));
            let found: Vec<bool> = (lens.iter())
                .map(|len| came(&mut answers, FLOW, *len, true, 60))
                .collect();
            assert_eq!(found, even, "{bytes}");
        }
        let mut answers = Answers::default();
        answers.ask(FLOW, 800, at(0));
        answers.write_off(FLOW);
        assert!(came(&mut answers, FLOW, 400, true, 60));
    }

    /// The quickest flow says what is late, as long as it counts.
    #[test]
    fn an_answer_is_late_beside_those_of_the_quickest_flow() {
        let ms = Duration::from_millis;
        let mut answers = Answers::default();
        assert!(
            !answers.is_late(ms(60_000), |_| true, at(0)),
            "nobody has answered"
        );
        came(&mut answers, OTHER, 1, true, 0);
        for round in 0..20 {
            for (id, took) in [(FLOW, 50), (OTHER, 700)] {
                let asked = 2_000 + 1_000 * round;
                answers.ask(id, 400, at(asked));
                came(&mut answers, id, 400, true, asked + took);
            }
        }
        // Twice 50 ms, or twice 700 ms, and the slack of a timer.
        for (counts, second, late) in [(FLOW, 30, 300), (FLOW, 31, 300), (OTHER, 32, 1_600)] {
            let is_late = |answers: &mut Answers, took| {
                let counts = |place| place == counts.index();
                answers.is_late(ms(took), counts, at(1_000 * second))
            };
            assert!(!is_late(&mut answers, late), "{counts:?}");
            assert!(is_late(&mut answers, late + 1), "{counts:?}");
        }
    }

    /// An answer that never came once took seconds from all flows.
    #[test]
    fn the_time_of_answers_is_measured_since_flows_contend() {
        let mut answers = Answers::default();
        assert_eq!(answers.patience(FLOW), None);
        answers.ask(FLOW, 400, at(0));
        // Flows contend from here on: this was asked before.
        came(&mut answers, FLOW, 400, true, 3_000);
        assert_eq!(answers.patience(FLOW), None);
        for round in 0..20 {
            let asked = 4_000 + 100 * round;
            answers.ask(FLOW, 400, at(asked));
            came(&mut answers, FLOW, 400, true, asked + 50);
        }
        let ms = Duration::from_millis;
        assert_eq!(answers.patience(FLOW), Some(ms(250)));
        assert_eq!(answers.patience(OTHER), Some(ms(250)), "as all others do");
        // What is sent again says nothing, nor what comes overdue, unless it does so in a row.
        answers.ask(FLOW, 400, at(10_000));
        came(&mut answers, FLOW, 400, false, 10_100);
        for (round, grows) in [(0, false), (1, false), (2, true)] {
            let asked = 20_000 + 5_000 * round;
            answers.ask(FLOW, 400, at(asked));
            came(&mut answers, FLOW, 400, true, asked + 4_000);
            let patience = answers.patience(FLOW).expect("it has answered");
            assert_eq!(patience > ms(250), grows, "{round}");
        }
        answers.forget(FLOW);
        assert!(answers.patience(FLOW) < Some(ms(300)));
    }
}
