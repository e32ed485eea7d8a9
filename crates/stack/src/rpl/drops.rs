//! Reasons for dropping control messages.

use crate::wire::rpl::ParseError;

/// Why a control message was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageDrop {
    /// The message is malformed, or of a type that is not read here.
    Malformed(ParseError),
    /// DIS and DIO: not from a link-local address. DAO-ACK: neither from the root nor from the
    /// parent.
    BadSource,
    /// A message that a node of this role does not act on, or not now.
    Unwanted,
    /// The message belongs to another RPL instance.
    OtherInstance,
    /// The message belongs to another DODAG than the one that this node is in.
    OtherDodag,
    /// The rank is 0, or lies between the root's and the least rank of its children.
    BadRank,
    /// A second neighbour claims the rank of this DODAG's root.
    SecondRoot,
    /// The version is older than the known one, or not comparable with it (RFC 6550 §7.2).
    OldVersion,
    /// The version is newer, and the parent has not announced it itself.
    StrangeVersion,
    /// The first DIO of a DODAG does not hold its configuration.
    NoConfiguration,
    /// A configuration that cannot work; in a build without the feature `plain-rpl` also one that
    /// does not compress routing headers.
    BadConfiguration,
    /// A mode of operation that is unknown, or not that of the DODAG.
    BadMode,
    /// Every slot for candidates holds a better one.
    NoRoom,
    /// The message came more often than messages are answered.
    TooMany,
    /// A DAO without a target that can be reached, or of targets that are not this DODAG's.
    BadTarget,
    /// The path sequence of a DAO is older than the known one of its target.
    OldSequence,
    /// The root's graph has no room.
    GraphFull,
    /// A DAO that came by another neighbour of the root than its routes lead over.
    StrangeWay,
}

impl MessageDrop {
    /// Number of reasons that are counted apart.
    pub const COUNT: usize = 18;

    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        self.parts().1
    }

    pub(super) const fn index(self) -> usize {
        self.parts().0
    }

    const fn parts(&self) -> (usize, &'static str) {
        match self {
            Self::Malformed(error) => (0, error.reason()),
            Self::BadSource => (1, "RPL message of a source that cannot have sent it"),
            Self::Unwanted => (2, "RPL message that is not for this node's role"),
            Self::OtherInstance => (3, "RPL message of another instance"),
            Self::OtherDodag => (4, "RPL message of another DODAG"),
            Self::BadRank => (5, "DIO with an illegal rank"),
            Self::SecondRoot => (6, "DIO of a second root"),
            Self::OldVersion => (7, "DIO of an older or unrelated version"),
            Self::StrangeVersion => (8, "DIO of a new version that the parent has not confirmed"),
            Self::NoConfiguration => (9, "first DIO without a configuration"),
            Self::BadConfiguration => (10, "DIO with a configuration that cannot work"),
            Self::BadMode => (11, "DIO with another mode of operation"),
            Self::NoRoom => (12, "no room for one more candidate parent"),
            Self::TooMany => (13, "RPL message beyond what is answered"),
            Self::BadTarget => (14, "DAO without a legal target"),
            Self::OldSequence => (15, "DAO older than what is known"),
            Self::GraphFull => (16, "no room in the root's graph"),
            Self::StrangeWay => (17, "DAO that came another way than its routes lead"),
        }
    }
}

speaks!(MessageDrop, Self::Malformed(error) => error);

impl From<ParseError> for MessageDrop {
    fn from(error: ParseError) -> Self {
        Self::Malformed(error)
    }
}
