//! Settings of a child, what its owner sees of it, and its counters.

use crate::random::Rng;
use crate::thread::Dataset;
use crate::thread::mle::MleError;
use crate::time::Duration;

/// What makes a node of a network this one, and not another: to be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The extended address, which the MAC has as well.
    pub extended: [u8; 8],
    /// The interface identifier of the mesh-local address (ML-EID).
    pub iid: [u8; 8],
}

impl Identity {
    /// A new one: a random, locally administered extended address, and a random identifier.
    pub fn random(rng: &mut Rng) -> Self {
        let [first, rest @ ..] = rng.next_u64().to_be_bytes();
        let [a, b, c, d, e, f, g] = rest;
        Self {
            extended: [first & 0xfc | 0x02, a, b, c, d, e, f, g],
            iid: rng.next_u64().to_be_bytes(),
        }
    }
}

/// A router that a child is attached to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parent {
    /// Its extended address.
    pub extended: [u8; 8],
    /// Its short address, which is also where it is in the mesh.
    pub rloc16: u16,
}

/// Where a child was attached; stored, it spares the search after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Place {
    /// The parent.
    pub parent: Parent,
    /// The short address that the parent has given to the child.
    pub rloc16: u16,
}

/// Settings of a child.
#[derive(Clone, Copy, Debug)]
pub struct ChildConfig {
    /// The network.
    pub dataset: Dataset,
    /// Who this node is.
    pub identity: Identity,
    /// How long the parent keeps a child that it does not hear:
    /// [`CHILD_TIMEOUT`](super::CHILD_TIMEOUT).
    pub timeout: Duration,
    /// Where the child was attached before it started again.
    pub former: Option<Place>,
}

/// Whether a child has a parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChildState {
    /// It looks for one.
    Searching,
    /// It has one.
    Attached,
    /// It has left the network, and does nothing more.
    Left,
}

/// Why the last attempt to attach led to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No router of the network has answered: there is none in reach, or the key is another one.
    Silence,
    /// The routers in reach have this version, which is too old.
    Version(u16),
    /// The router has refused: it has no address left, or does not want another child.
    Status(u8),
}

/// Counters of a child; all wrap at 2^32, those of dropped messages end at 65,535.
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
    pub(super) dropped: [u16; MleDrop::COUNT],
}

impl ChildCounters {
    /// Messages dropped for `reason` since start.
    pub fn dropped(&self, reason: MleDrop) -> u32 {
        let count = self.dropped.get(reason as usize);
        count.map_or(0, |count| (*count).into())
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
    /// From beyond the link, by its addresses or its hop limit; for another node; or with a wrong
    /// checksum.
    NotLocal,
    /// One more than is opened in so short a time.
    Rationed,
}

impl MleDrop {
    /// How many reasons there are.
    pub const COUNT: usize = Self::Rationed as usize + 1;

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
            Self::Rationed => "MLE message in a flood",
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
