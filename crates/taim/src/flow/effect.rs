//! What a segment says about the flow that it belongs to.

use motet::time::Duration;

/// The news of a segment about its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SegmentEffect {
    /// Bytes that had not passed before.
    pub(crate) new_bytes: u32,
    /// Bytes of the other direction that it acknowledges for the first time.
    pub(crate) newly_acknowledged: u32,
    /// Whether all its bytes are sent again.
    pub(crate) is_retransmission: bool,
    /// Whether its numbers are far from those of its flow.
    pub(crate) is_stray: bool,
    /// The time, before this segment, in which neither end had anything to send: all data were
    /// acknowledged, and the segment of the mote that ends it was not triggered by an
    /// acknowledgment.
    pub(crate) rested: Duration,
    /// The bytes of this segment that belong to a stream, and not to a request or a response: those
    /// of a response beyond [`ANSWER_BYTES_MAX`](super::ANSWER_BYTES_MAX), and those that an end
    /// sends while the other end only acknowledges, except the first segment of a flow, which may
    /// be a request. Retransmitted bytes count twice: a starving sender sends nothing else.
    pub(crate) streamed: u32,
    /// The full segments that it stands for: none, one, or two if its bytes are sent again, for a
    /// starving sender sends nothing else.
    pub(crate) full: u8,
    /// Whether it brings new bytes and is not full, so that its sender has no more for now.
    pub(crate) is_short: bool,
    /// Whether it comes long behind an acknowledgment, and behind the end of a message: the mote
    /// had nothing more to send.
    pub(crate) ran_dry: bool,
    /// How long after an acknowledgment went into the mesh these new bytes of the mote came, which
    /// are the first since then; none where they are sent again.
    pub(crate) took: Option<Duration>,
}
