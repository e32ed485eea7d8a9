//! Counters of a host: drops by reason, and reasons to close a channel.

/// Why a PDU or a signal led to nothing, or a channel was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelDrop {
    /// Data of a connection that is not there.
    UnknownConnection,
    /// A PDU for a channel that is not there.
    UnknownChannel,
    /// A data packet that goes on with a PDU of which there is no beginning.
    StrayContinuation,
    /// A PDU that is shorter than its header says, or longer.
    CutPdu,
    /// A signal that is malformed, or names a channel that is not there.
    MalformedSignal,
    /// A signal that this host does not know; it was rejected.
    UnknownSignal,
    /// A response to a request that was not sent.
    StrayAnswer,
    /// More signals at once than answers can wait.
    AnswersFull,
    /// The rest of an SDU did not come before its connection or channel was over.
    CutSdu,
    /// The channel was closed: an SDU beyond the MTU.
    SduTooLong,
    /// The channel was closed: a K-frame beyond the MPS, or beyond its SDU.
    FrameTooLong,
    /// The channel was closed: a K-frame without a credit.
    NoCredit,
    /// The channel was closed: credits past 65,535.
    CreditOverflow,
    /// The connection was closed: a request had no answer.
    NoAnswer,
    /// The controller refused a command.
    CommandRefused,
    /// A report of a controller that cannot be true.
    BadReport,
    /// TCPlE's channel was closed: no credit for it came for seconds.
    #[cfg(feature = "tcple")]
    Stalled,
    /// TCPlE's channel was closed: an SDU began before the other channel's was whole.
    #[cfg(feature = "tcple")]
    Mixed,
}

impl ChannelDrop {
    /// The meaning of the drop, in a few English words for a report.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownConnection => "data of an unknown connection",
            Self::UnknownChannel => "unknown L2CAP channel",
            Self::StrayContinuation => "continuation without a beginning",
            Self::CutPdu => "L2CAP PDU of another length than its header says",
            Self::MalformedSignal => "malformed L2CAP signal",
            Self::UnknownSignal => "unknown L2CAP signal",
            Self::StrayAnswer => "answer to nothing asked",
            Self::AnswersFull => "more signals than answers can wait",
            Self::CutSdu => "the rest of an SDU did not come",
            Self::SduTooLong => "SDU beyond the MTU",
            Self::FrameTooLong => "K-frame beyond the MPS",
            Self::NoCredit => "K-frame without a credit",
            Self::CreditOverflow => "credits past 65,535",
            Self::NoAnswer => "no answer to a request",
            Self::CommandRefused => "command refused by the controller",
            Self::BadReport => "untrue report of the controller",
            #[cfg(feature = "tcple")]
            Self::Stalled => "no credits for TCPlE's channel",
            #[cfg(feature = "tcple")]
            Self::Mixed => "SDUs of two channels mixed",
        }
    }

    /// How many reasons there are.
    #[cfg(feature = "tcple")]
    pub const COUNT: usize = Self::Mixed as usize + 1;
    /// How many reasons there are.
    #[cfg(not(feature = "tcple"))]
    pub const COUNT: usize = Self::BadReport as usize + 1;
}

speaks!(ChannelDrop);

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct HostCounters {
    /// SDUs that were received as a whole and handed up.
    pub sdus_received: u32,
    /// SDUs given to the controller whole.
    pub sdus_sent: u32,
    drops: [u32; ChannelDrop::COUNT],
}

impl HostCounters {
    /// How many PDUs or SDUs were dropped for `reason`.
    pub fn dropped(&self, reason: ChannelDrop) -> u32 {
        self.drops.get(reason as usize).copied().unwrap_or_default()
    }

    pub(super) fn count(&mut self, reason: ChannelDrop) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
    }
}
