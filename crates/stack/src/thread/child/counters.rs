//! What a child has done, and why it dropped messages.

use crate::thread::mle::MleError;

/// Counters of a child; all wrap at 2^32.
#[derive(Clone, Copy, Default, Debug)]
pub struct ChildCounters {
    /// Times that it was attached.
    pub attached: u32,
    /// Times that it has lost its parent.
    pub lost: u32,
    /// Messages sent.
    pub sent: u32,
    /// Messages of the parent, and answers of candidates, that were believed.
    pub believed: u32,
    /// Announcements of another channel or PAN, which are not followed.
    pub announces: u32,
    pub(super) dropped: [u32; MleDrop::COUNT],
}

impl ChildCounters {
    /// Messages dropped for `reason` since start.
    pub fn dropped(&self, reason: MleDrop) -> u32 {
        let count = self.dropped.get(reason as usize);
        count.copied().unwrap_or_default()
    }
}

/// Why a message of MLE was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MleDrop {
    /// Shorter than its header, or with a TLV that ends too early.
    Malformed,
    /// Without security, or of another suite.
    Unsecured,
    /// Changed, or sealed with another key.
    Forged,
    /// Of a neighbour that is not the parent, and from which nothing is awaited.
    NotParent,
    /// A counter that is not above the last one: a recording, or overtaken.
    Replayed,
    /// An answer to no open question, or with another challenge's response.
    Unasked,
    /// A TLV is missing that the command needs, or cannot be read.
    Incomplete,
    /// Of a router whose version is too old.
    OldVersion,
    /// A command that is not for children.
    NotForChildren,
    /// From beyond the link, by its addresses or its hop limit, or with a wrong checksum.
    NotLocal,
}

impl MleDrop {
    /// How many reasons there are.
    pub const COUNT: usize = Self::NotLocal as usize + 1;

    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "MLE message of a wrong length",
            Self::Unsecured => "MLE message without security",
            Self::Forged => "MLE message sealed with another key",
            Self::NotParent => "MLE message of another router",
            Self::Replayed => "MLE counter of the past",
            Self::Unasked => "MLE answer that nobody waits for",
            Self::Incomplete => "MLE message that lacks a TLV",
            Self::OldVersion => "MLE answer of a router of an old version",
            Self::NotForChildren => "MLE message that is for routers",
            Self::NotLocal => "MLE message that is damaged or from beyond the link",
        }
    }
}

speaks!(MleDrop);

impl From<MleError> for MleDrop {
    fn from(error: MleError) -> Self {
        match error {
            MleError::Truncated | MleError::BadTlv => Self::Malformed,
            MleError::Unsecured => Self::Unsecured,
            MleError::Forged => Self::Forged,
        }
    }
}
