//! A link's notes on the packets that go to one neighbour.

use crate::time::Instant;

/// The link's notes on the packets that go to one neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    /// The packet that the last frame was of.
    pub(crate) token: u16,
    /// Whether that packet followed another one closely.
    pub(crate) follows: bool,
    /// When the neighbour took that frame.
    pub(crate) taken_at: Instant,
    /// Whether this node is a source that contends with others for the neighbour.
    pub(crate) contends: bool,
    /// Whether this node is their source, and they go no further than to the next router, so that
    /// no pace keeps them apart.
    pub(crate) is_near: bool,
    /// Whether nobody else contends for its frames, so that their backoffs may be short.
    pub(crate) is_orderly: bool,
}

impl Flow {
    /// A flow of which no packet has left yet.
    pub(crate) const NONE: Self = Self {
        token: 0,
        follows: false,
        taken_at: Instant::ORIGIN,
        contends: false,
        is_near: false,
        is_orderly: false,
    };
}
