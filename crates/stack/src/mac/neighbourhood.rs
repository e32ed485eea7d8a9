//! What the link asks and tells the MAC about its neighbours.
//!
//! Place: the table itself is `neighbor`; here are the questions and notes of pacing, forwarding
//! and discovery.

use super::{Class, Flow, FrameSlot, Mac};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

impl Mac<'_> {
    /// Starts no new frame to `to` before `until`; retries of one already begun go on.
    ///
    /// For pacing by the layer above: a relay that has just been given a frame needs the
    /// air to pass it on.
    pub(crate) fn pause(&mut self, to: LinkAddr, until: Instant, now: Instant) {
        self.neighbors.pause(to, until, now);
    }

    /// How long the last frame took that `to` acknowledged, from the assessment to the ACK.
    pub(crate) fn exchange(&self, to: LinkAddr) -> Option<Duration> {
        self.neighbors.exchange(to)
    }

    /// Attempts for each frame that `to` took of late, in units of 1/128; `None` before the first.
    pub(crate) fn etx(&self, to: LinkAddr) -> Option<u16> {
        self.neighbors.etx(to)
    }

    /// Attempts and assessments in vain for each frame that `to` took of late, in units of 1/128;
    /// `None` before the first.
    pub(crate) fn effort(&self, to: LinkAddr) -> Option<u16> {
        self.neighbors.effort(to)
    }

    /// The notes of the link above on the packets that go to `to`.
    pub(crate) fn flow(&self, to: LinkAddr) -> Flow {
        self.neighbors.flow(to)
    }

    /// Notes what goes to `to`.
    pub(crate) fn note_flow(&mut self, to: LinkAddr, flow: Flow) {
        self.neighbors.note_flow(to, flow);
    }

    /// Notes that a frame that goes on to `to` had come `at` and `from` a node. Returns how far
    /// apart such frames begin, once that is known.
    pub(crate) fn note_arrival(
        &mut self,
        to: LinkAddr,
        from: LinkAddr,
        at: Instant,
    ) -> Option<Duration> {
        self.neighbors.note_arrival(to, from, at)
    }

    /// Notes that a fragment from `from` had come `at`, and `until` when it waits in the radio for
    /// the next one of the same sender, if that has promised it.
    pub(crate) fn note_promise(&mut self, from: LinkAddr, at: Instant, until: Option<Instant>) {
        self.neighbors.note_promise(from, at, until);
    }

    /// Whether a fragment from `from` may wait in the radio for the next one: whether the last ones
    /// that `from` promised came in time to fire the waiting one.
    pub(crate) fn keeps_promises(&self, from: LinkAddr) -> bool {
        self.neighbors.keeps_promises(from)
    }

    /// Notes that this node sends a packet of its own to `to`, in several `frames`.
    pub(crate) fn note_own(&mut self, to: LinkAddr, frames: usize) {
        let from = self.source();
        self.neighbors.note_own(to, from, frames);
    }

    /// Whether the last frames that go to `to` are of several nodes, and enough of them wait that
    /// those nodes should send less. `segment`: frames of a full one.
    pub(crate) fn is_crowded(&self, to: LinkAddr, segment: usize) -> bool {
        let (len, slots) = (self.queue.len(), self.slots(Class::Forward));
        self.marking_threshold.is_reached(len, slots, segment) && self.neighbors.is_shared(to)
    }

    /// Whether frames of several nodes go to `to`.
    pub(crate) fn is_shared(&self, to: LinkAddr) -> bool {
        self.neighbors.is_shared(to)
    }

    /// Whether no other node seems to use the air when frames go to `to`.
    pub(crate) fn is_alone(&self, to: LinkAddr) -> bool {
        self.neighbors.is_alone(to)
    }

    /// A fragment came from `from`: more of its packet follow.
    pub(crate) fn note_fragment(&mut self, from: LinkAddr, now: Instant) {
        self.neighbors.note_fragment(from, now);
    }

    /// Whether a fragment came from `to` lately.
    pub(crate) fn sends_fragments(&self, to: LinkAddr, now: Instant) -> bool {
        self.neighbors.sends_fragments(to, now)
    }

    /// How far apart frames begin that go on to `to`, as far as is known, while they come.
    pub(crate) fn apart(&self, to: LinkAddr, now: Instant) -> Option<Duration> {
        self.neighbors.apart(to, now)
    }

    /// Whether a neighbour has acknowledged a frame, and not missed all of late: it is there,
    /// which a source address alone does not prove.
    pub(crate) fn is_trusted(&self, addr: LinkAddr) -> bool {
        self.neighbors.is_trusted(addr)
    }

    /// Whether a neighbour has not acknowledged any of the last few frames, or ever one.
    #[cfg(feature = "rpl")]
    pub(crate) fn has_lost(&self, to: LinkAddr) -> bool {
        self.neighbors.is_doubtful(to)
    }

    /// Whether a frame to a neighbour that may not be there is under way or waits: another
    /// one is then better kept back.
    pub(crate) fn is_doubtful(&self, to: LinkAddr) -> bool {
        self.neighbors.is_doubtful(to) && self.queue.count(|slot| slot.to.is(&to)) > 0
    }

    /// Whether a frame waits for this neighbour, or is under way.
    #[cfg(feature = "entry")]
    pub(crate) fn has_frame_for(&self, to: LinkAddr) -> bool {
        self.queue.count(|slot| slot.to.is(&to)) > 0
    }

    /// Whether a frame to a neighbour that has taken none of late has failed again.
    pub(crate) fn is_failing(&self, to: LinkAddr) -> bool {
        let failed = |slot: &FrameSlot| slot.to.is(&to) && slot.attempts > 0;
        self.neighbors.is_silent(to) && self.queue.count(failed) > 0
    }
}
