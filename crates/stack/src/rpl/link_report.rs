//! What the link reports of neighbours: what became of frames to them, and that they are heard.
//!
//! Over most radios an acknowledgement shows that a neighbour is there, and the attempts before it
//! how good the link is. A radio that does not tell of acknowledgements shows neither: then each
//! probe is a question, a DIS to one neighbour, and its answer, a DIO, stands for the
//! acknowledgement.

use super::iid::Iid;
use super::{Rpl, is_due};
use crate::time::Instant;

/// What became of a frame to one neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameReport {
    /// Attempts in which the frame went out: they measure the link.
    pub attempts: u8,
    /// Attempts in which it did not, because the channel was busy or the radio failed: they say
    /// nothing of the link, but that the air is full.
    pub unsent: u8,
    /// Whether the last attempt was acknowledged; else the frame was given up. `None`: the radio
    /// does not know, so that nothing is measured.
    pub acknowledged: Option<bool>,
}

impl FrameReport {
    /// A frame that went out in each of its attempts.
    pub const fn of(attempts: u8, acknowledged: bool) -> Self {
        Self {
            attempts,
            unsent: 0,
            acknowledged: Some(acknowledged),
        }
    }
}

impl Rpl<'_> {
    /// The link has sent a frame to the neighbour `to`, or given it up. A frame that never went out
    /// shows nothing of the link.
    pub fn on_sent(&mut self, to: [u8; 8], frame: FrameReport, now: Instant) {
        let to = Iid::of(&to);
        match frame.acknowledged {
            Some(acknowledged) => {
                self.is_blind &= !acknowledged;
                self.measure(to, (frame.attempts, frame.unsent), acknowledged, now);
            }
            None => self.see_nothing(to),
        }
    }

    /// A frame of the neighbour `from` came, of whatever kind, for this node or for all;
    /// authenticated, where the link authenticates frames. A neighbour that was given up because it
    /// took no frames is tried again at once.
    pub fn on_heard(&mut self, from: [u8; 8], now: Instant) {
        self.is_dirty |= self.candidates.heard_again(Iid::of(&from), now);
    }

    /// `attempts`: those in which the frame went out, and those in which it did not.
    fn measure(&mut self, to: Iid, attempts: (u8, u8), acknowledged: bool, now: Instant) {
        let (sent, unsent) = attempts;
        let is_parent = self.is_parent(to);
        let is_settled = is_parent && self.is_settled(now);
        self.candidates
            .on_sent(to, (sent, acknowledged), is_settled, now);
        if self.is_probed(to) {
            // The probe's result is used to choose the next one.
            self.probed = None;
            self.probe_at = None;
            self.pace_probes(sent.saturating_add(unsent), acknowledged);
        }
        if acknowledged {
            self.proven.note(to);
        }
        self.is_dirty = true;
    }

    fn is_probed(&self, iid: Iid) -> bool {
        self.probed == Some(iid)
    }

    /// A frame went to `to`, and the radio does not know whether it arrived: from now on neighbours
    /// are asked for answers.
    fn see_nothing(&mut self, to: Iid) {
        let is_first = !core::mem::replace(&mut self.is_blind, true);
        if is_first && self.is_probed(to) {
            // That probe was no question.
            self.probed = None;
            self.probe_at = None;
            self.is_dirty = true;
        }
    }

    /// The neighbour has answered this node's question.
    pub(super) fn on_answered(&mut self, by: Iid, now: Instant) {
        if self.is_blind {
            self.measure(by, (1, 0), true, now);
        }
    }

    /// Counts a question that was not answered in time as a frame that was given up.
    pub(super) fn end_question(&mut self, now: Instant) {
        if let Some(probed) = self.probed
            && self.is_blind
            && is_due(self.probe_at, now)
        {
            self.measure(probed, (QUESTION_ATTEMPTS, 0), false, now);
        }
    }
}

/// What an unanswered question counts as: the attempts of most radios at a frame (IEEE
/// 802.15.4-2006 table 86, `macMaxFrameRetries`).
const QUESTION_ATTEMPTS: u8 = 4;
