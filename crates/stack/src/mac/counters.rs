//! Counters of the MAC: every frame that it sent, heard or discarded, and why.

/// Why the MAC discarded a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FrameDrop {
    /// Not a frame: shorter than its header says, or a reserved frame type.
    Malformed,
    /// The frame check sequence does not match.
    BadFcs,
    /// A frame version or header this stack does not speak (security, information
    /// elements, IEEE 802.15.4-2015 and later).
    Unsupported,
    /// Secured frame: there is no key.
    Secured,
    /// The destination is in another PAN.
    OtherPan,
    /// The destination is another node.
    OtherNode,
    /// Without a source address, or with one that cannot be a single neighbour's.
    BadSource,
    /// The neighbour repeated a frame whose ACK it missed. Acknowledged, not delivered.
    Duplicate,
    /// An ACK that no frame waits for.
    StrayAck,
    /// An ACK with the sequence number waited for, but not when a receiver of our frame
    /// would have sent it: it answers another node's frame.
    MistimedAck,
    /// A MAC command (association, data request): not served.
    Command,
    /// A beacon frame: this stack uses none.
    Beacon,
    /// An ACK not sent: the frame was reported too late for its sender to hear the answer.
    AckTooLate,
    /// Payload longer than a frame to that neighbour carries, or empty.
    BadLength,
    /// No room in the queue for a frame of that class.
    QueueFull,
    /// The channel stayed busy in the last attempt.
    ChannelBusy,
    /// The last attempt was not acknowledged.
    NoAck,
    /// The radio did not answer in the last attempt, or said that it failed.
    RadioSilent,
    /// Taken back by the layer above before its first attempt.
    Cancelled,
    /// The frame has been at this node for longer than frames may
    /// ([`Config::frame_age_max`](super::Config::frame_age_max)).
    TooOld,
    /// The neighbour has not acknowledged the last frames, or never acknowledged one; it gets no
    /// frames for some time.
    Silent,
    /// The frame is not secured, and this node has a key.
    #[cfg(feature = "security")]
    Unsecured,
    /// Secured at a lower level than this node's.
    #[cfg(feature = "security")]
    LowLevel,
    /// Secured with a key that is neither this node's, nor its previous one, nor a later one.
    #[cfg(feature = "security")]
    UnknownKey,
    /// The frame counter is not above the last one of this sender: a replay, or a frame that
    /// another one overtook.
    #[cfg(feature = "security")]
    Replayed,
    /// The frame counter is 2^32 - 1, which no frame may have (IEEE 802.15.4-2006 §7.5.8.2).
    #[cfg(feature = "security")]
    LastCounter,
    /// The MIC is wrong: the frame was changed on its way, or sealed without the key.
    #[cfg(feature = "security")]
    Forged,
    /// The sender has not answered a challenge yet, so the frame may be a recording.
    #[cfg(feature = "security")]
    Unproven,
    /// The sender is unknown, and too many frames of unknown senders were decrypted lately.
    #[cfg(feature = "security")]
    Rationed,
    /// Secured by another node of a Thread network than the parent of this child.
    #[cfg(feature = "security")]
    NotParent,
    /// No frame counter was left to send the frame with: the next ones were not stored, or all are
    /// used.
    #[cfg(feature = "security")]
    NoCounter,
}

impl FrameDrop {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed frame",
            Self::BadFcs => "frame check sequence wrong",
            Self::Unsupported => "frame version or header not supported",
            Self::Secured => "secured frame without a key",
            Self::OtherPan => "frame for another PAN",
            Self::OtherNode => "frame for another node",
            Self::BadSource => "frame without a source that can be answered",
            Self::Duplicate => "frame repeated by the neighbour",
            Self::StrayAck => "ACK that nobody waits for",
            Self::MistimedAck => "ACK at a time of its own",
            Self::Command => "MAC commands are not served",
            Self::Beacon => "beacons are not used",
            Self::AckTooLate => "frame reported too late to acknowledge",
            Self::BadLength => "frame payload of an illegal length",
            Self::QueueFull => "frame queue full",
            Self::ChannelBusy => "channel busy in the last attempt",
            Self::NoAck => "no ACK in the last attempt",
            Self::RadioSilent => "radio silent in the last attempt",
            Self::Cancelled => "taken back before its first attempt",
            Self::TooOld => "frame waited too long",
            Self::Silent => "the neighbour has not answered for some time",
            #[cfg(feature = "security")]
            Self::Unsecured => "frame without security",
            #[cfg(feature = "security")]
            Self::LowLevel => "frame secured at too low a level",
            #[cfg(feature = "security")]
            Self::UnknownKey => "frame secured with another key",
            #[cfg(feature = "security")]
            Self::Replayed => "frame counter of the past",
            #[cfg(feature = "security")]
            Self::LastCounter => "frame counter at its end",
            #[cfg(feature = "security")]
            Self::Forged => "message integrity code wrong",
            #[cfg(feature = "security")]
            Self::Unproven => "secured frame of a neighbour that has not answered a challenge",
            #[cfg(feature = "security")]
            Self::Rationed => "too many secured frames of strangers",
            #[cfg(feature = "security")]
            Self::NotParent => "secured frame of a node that is not the parent",
            #[cfg(feature = "security")]
            Self::NoCounter => "no frame counter stored to send with",
        }
    }
}

speaks!(FrameDrop);

impl FrameDrop {
    /// How many reasons there are.
    #[cfg(not(feature = "security"))]
    pub const COUNT: usize = Self::Silent as usize + 1;
    /// How many reasons there are.
    #[cfg(feature = "security")]
    pub const COUNT: usize = Self::NoCounter as usize + 1;
}

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Debug, Default)]
pub struct MacCounters {
    /// Frames queued. All of them are delivered, or dropped for [`FrameDrop::ChannelBusy`],
    /// [`FrameDrop::NoAck`], [`FrameDrop::RadioSilent`], [`FrameDrop::TooOld`],
    /// [`FrameDrop::Silent`] or [`FrameDrop::Cancelled`], or still queued.
    pub accepted: u32,
    /// Frames that were acknowledged, or sent to all nodes in reach.
    pub delivered: u32,
    /// Attempts that put a frame on the air.
    pub transmissions: u32,
    /// Attempts after the first of a frame.
    pub retries: u32,
    /// Channel assessments that found it busy; where they are the radio's, attempts that did.
    pub channel_busy: u32,
    /// Attempts given up because the channel stayed busy.
    pub csma_failures: u32,
    /// Attempts without an ACK in time, whoever waited for it.
    pub ack_timeouts: u32,
    /// Answers the radio owed and did not give, and attempts that it said had failed.
    pub radio_resets: u32,
    /// ACKs that software sent, not the radio.
    pub acks_sent: u32,
    /// ACKs among [`Self::acks_sent`] that were handed to the radio more than
    /// [`super::Config::ack_slack`] too late. A neighbour with the same setting ignores them; the
    /// driver reports frames too late.
    pub acks_late: u32,
    /// The error in the time of the last [`FrameDrop::MistimedAck`], µs; negative: it came too
    /// early. If there are many, the time stamps of this driver, or of a neighbour's, are late by
    /// about this much.
    pub mistimed_by_us: i32,
    /// Data frames passed to the layer above.
    pub received: u32,
    /// Frames that were copied to the radio ahead of time and had to be copied again.
    pub reloads: u32,
    /// Frames queued to wait for a condition. A frame that is neither fired nor flushed, and
    /// neither waits nor was cancelled, was sent the normal way: another frame was queued behind
    /// it, which must not overtake it.
    pub conditional: u32,
    /// Frames among [`Self::conditional`] that were fired by their condition. Each is counted in
    /// one of the next two as well.
    pub immediate: u32,
    /// Frames among [`Self::immediate`] whose first attempt succeeded: acknowledged, where an ACK
    /// was asked for.
    pub immediate_delivered: u32,
    /// Frames among [`Self::immediate`] whose first attempt failed: retried the normal way, or
    /// given up.
    pub immediate_failed: u32,
    /// Frames among [`Self::conditional`] that left the normal way because their condition did not
    /// come true in time, or that it fired during the backoff.
    pub flushed: u32,
    drops: [u32; FrameDrop::COUNT],
}

impl MacCounters {
    /// Frames discarded for `reason` since start.
    pub fn dropped(&self, reason: FrameDrop) -> u32 {
        self.drops.get(reason as usize).copied().unwrap_or_default()
    }

    pub(super) fn drop(&mut self, reason: FrameDrop) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
    }
}
