//! A parent's side of indirect transmission: the child that has asked, and the frame pending bit of
//! the answer.
//!
//! Place: part of [`Mac`]. The link keeps the packets: of each frame that may be a request it takes
//! the sender ([`Mac::take_asked`]), and says before the ACK leaves whether something waits
//! ([`Mac::answer_pending`]). Frames for a child that listens come with
//! [`Class::Indirect`](super::Class): they stand before all others, and are tried again soon. Left
//! out: radios that acknowledge by themselves, which [`Action::SetPending`](super::Action) tells.
//!
//! Source: IEEE 802.15.4-2006 §7.5.6.3 and §7.5.6.4.

use super::queue::FrameSlot;
use super::{Frame, FrameDrop, Mac};
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ieee802154::{Command, Header};

/// The state that a parent's MAC needs to answer children that ask for their packets.
#[derive(Debug)]
pub(super) struct Serving {
    /// Whether a link above keeps packets for children.
    is_on: bool,
    /// The last frame that asked for an ACK.
    asked: Option<PollingFrame>,
    /// The frame pending bit of the ACK that is due.
    pending: bool,
    /// The child for which the link keeps more packets than the MAC has queued.
    more_for: Option<LinkAddr>,
    /// Attempts at a frame for a child.
    attempts_max: u8,
    /// The sequence number of the last frame, where it was given up.
    unanswered: Option<u8>,
}

/// A frame that may ask for what waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PollingFrame {
    pub(crate) by: LinkAddr,
    /// Whether the frame is a data request, and not data.
    pub(crate) is_request: bool,
    /// The frame is not verified yet, so its sender address may be forged: only the ACK depends on
    /// it.
    #[cfg(feature = "security")]
    pub(crate) is_forgeable: bool,
}

impl Serving {
    pub(super) const OFF: Self = Self {
        is_on: false,
        asked: None,
        pending: false,
        more_for: None,
        attempts_max: u8::MAX,
        unanswered: None,
    };

    /// A frame with this sequence number has ended.
    pub(super) fn on_end(&mut self, dsn: Option<u8>, delivered: bool) {
        self.unanswered = dsn.filter(|_| !delivered);
    }

    /// The frame pending bit of the ACK that is due, which is over with it.
    pub(super) fn take_pending(&mut self) -> bool {
        core::mem::take(&mut self.pending)
    }

    /// Slots that frames of other classes leave to those for children.
    pub(super) const fn reserved(&self) -> usize {
        self.is_on as usize
    }

    /// A data frame has come, which was or is acknowledged.
    pub(super) fn on_data(&mut self, by: LinkAddr) {
        self.note(by, false);
    }

    /// A frame was heard that is not believed yet.
    #[cfg(feature = "security")]
    pub(super) fn on_heard(&mut self, by: LinkAddr, is_request: bool) {
        self.note(by, is_request);
        if let Some(asked) = &mut self.asked {
            asked.is_forgeable = true;
        }
    }

    fn note(&mut self, by: LinkAddr, is_request: bool) {
        self.pending = false;
        if self.is_on {
            self.asked = Some(PollingFrame {
                by,
                is_request,
                #[cfg(feature = "security")]
                is_forgeable: false,
            });
        }
    }

    /// Whether more waits for this neighbour than is queued.
    pub(super) fn has_more(&self, to: &LinkAddr) -> bool {
        self.more_for.is_some_and(|child| child.is(to))
    }
}

impl Mac<'_> {
    /// Data requests are answered from now on. `attempts_max`: at a frame for a child, where that
    /// is fewer than at others.
    pub(crate) fn serve(&mut self, attempts_max: u8) {
        self.serving.is_on = true;
        self.serving.attempts_max = attempts_max;
    }

    /// The sender of the last frame that may be a request, once.
    pub(crate) fn take_asked(&mut self) -> Option<PollingFrame> {
        self.serving.asked.take()
    }

    /// Says in the ACK that is due whether something waits for its receiver.
    pub(crate) fn answer_pending(&mut self, pending: bool) {
        self.serving.pending = pending;
    }

    /// Says in the frames for `child` that more follows.
    pub(crate) fn set_more(&mut self, child: Option<LinkAddr>) {
        self.serving.more_for = child;
    }

    /// Queues a frame that may have been sent before, then with this sequence number: its receiver
    /// takes it for a repetition if it has it.
    ///
    /// # Errors
    /// As [`Mac::enqueue`].
    pub(crate) fn enqueue_again(
        &mut self,
        frame: &Frame<'_>,
        dsn: Option<u8>,
    ) -> Result<(), FrameDrop> {
        let index = self.push(frame)?;
        if let Some(slot) = self.queue.get_mut(index) {
            slot.dsn = dsn;
        }
        self.release_to(frame.to);
        Ok(())
    }

    /// The sequence number of the frame whose outcome was just taken, where it was given up after
    /// an attempt.
    pub(crate) const fn unanswered(&self) -> Option<u8> {
        self.serving.unanswered
    }

    /// Whether the frame whose outcome was just taken promised another one.
    pub(crate) const fn has_promised(&self) -> bool {
        self.promises
    }

    /// A command: repeated ones are served again, since they ask the same.
    pub(super) fn on_command(
        &mut self,
        header: &Header,
        payload: &[u8],
        end: Instant,
    ) -> Result<(), FrameDrop> {
        let (src, dst) = self.filter(header)?;
        self.on_request(src, payload)?;
        if header.ack_request && !dst.is_broadcast() {
            self.owe_acknowledgment(header.sequence, end);
        }
        Ok(())
    }

    /// A command from `src` that is to be believed.
    pub(super) fn on_request(&mut self, src: LinkAddr, payload: &[u8]) -> Result<(), FrameDrop> {
        if !self.serving.is_on || Command::parse(payload) != Ok(Command::DataRequest) {
            return Err(FrameDrop::Command);
        }
        self.neighbors.heard(src);
        self.serving.note(src, true);
        Ok(())
    }

    /// Attempts in all at the frame in this slot.
    pub(super) fn attempts_max(&self, slot: &FrameSlot) -> u8 {
        match slot.is_indirect {
            true => self.config.attempts_max.min(self.serving.attempts_max),
            false => self.patient_attempts(slot.to),
        }
    }
}
