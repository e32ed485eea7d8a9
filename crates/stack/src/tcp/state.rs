//! The states of a connection.
//!
//! Source: RFC 9293 §3.3.2. Differs: a passive socket is a [`Listener`](super::Listener), and a
//! passive open is in SYN-RECEIVED as an entry of the half-open table; a connection is in
//! LISTEN when its buffers wait for such an entry to be done, and in SYN-RECEIVED only by
//! simultaneous open.

/// The state of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// No connection; see [`Connection::error`](super::Connection::error) for why.
    Closed,
    /// Accepted in advance: the next handshake that a listener completes is this one's.
    Listen,
    /// Our SYN waits for an answer.
    SynSent,
    /// SYNs crossed; ours is not acknowledged yet.
    SynReceived,
    /// The handshake is done; data can be sent both ways.
    Established,
    /// We closed; our FIN is not acknowledged yet.
    FinWait1,
    /// We closed, the peer knows, and may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged yet.
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged yet.
    LastAck,
    /// Both closed; waiting out old segments.
    TimeWait,
}

impl State {
    /// Whether `next` can follow at once: the arrows of RFC 9293 Figure 5, and what its notes add.
    ///
    /// One transition is added: LISTEN may become ESTABLISHED, because a half-open entry was in
    /// SYN-RECEIVED in between. One is removed: a connection that sends a reset is CLOSED, not in
    /// TIME-WAIT (note 3).
    pub(super) const fn may_become(self, next: Self) -> bool {
        match self {
            _ if matches!(next, Self::Closed) => !matches!(self, Self::Closed),
            Self::Closed => matches!(next, Self::Listen | Self::SynSent),
            Self::Listen => {
                matches!(next, Self::SynSent | Self::SynReceived | Self::Established)
            }
            Self::SynSent => matches!(next, Self::SynReceived | Self::Established),
            Self::SynReceived => {
                matches!(next, Self::Listen | Self::Established | Self::FinWait1)
            }
            Self::Established => matches!(next, Self::FinWait1 | Self::CloseWait),
            Self::FinWait1 => matches!(next, Self::FinWait2 | Self::Closing | Self::TimeWait),
            Self::FinWait2 | Self::Closing => matches!(next, Self::TimeWait),
            Self::CloseWait => matches!(next, Self::LastAck),
            Self::LastAck | Self::TimeWait => false,
        }
    }

    /// Whether both sides know each other's sequence numbers.
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived
        )
    }

    /// Whether the application may hand over more data to send (before the handshake's end,
    /// data wait).
    pub(crate) const fn may_send(self) -> bool {
        matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait
        )
    }

    /// Whether data or a FIN of ours may be on the way.
    pub(super) const fn transmits(self) -> bool {
        matches!(
            self,
            Self::Established | Self::FinWait1 | Self::CloseWait | Self::Closing | Self::LastAck
        )
    }

    /// Whether the peer may still send data.
    pub(crate) const fn may_receive(self) -> bool {
        matches!(
            self,
            Self::Listen
                | Self::SynSent
                | Self::SynReceived
                | Self::Established
                | Self::FinWait1
                | Self::FinWait2
        )
    }
}
