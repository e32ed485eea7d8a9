//! Events and actions between the MAC and a radio driver.
//!
//! The driver reports [`Event`]s and carries out [`Action`]s in the order it gets them; one
//! answer at most belongs to each action, and answers come in the order of the actions.
//! After [`Action::Fire`] and [`Action::Transmit`] the radio goes back by itself to what
//! was last asked of it, listening or sleeping.
//!
//! Left out: registers, interrupts, copies. How long a copy between microcontroller and
//! radio takes, and whether the radio hears anything meanwhile, is the driver's matter.
//!
//! Source: IEEE 802.15.4-2006 §6.2 for the PHY's services; `Preload` and `Fire` are the
//! two halves of its PD-DATA.request, apart so that a frame can be fired with no copy.

use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// A report of a radio driver to the MAC.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A whole frame has been received and copied out of the radio.
    FrameReceived {
        /// PSDU as on air: header, payload, FCS; without the FCS where
        /// [`RadioCapabilities::fcs_by_radio`] says so.
        psdu: &'a [u8],
        /// Signal strength, channel and time of the frame.
        meta: RxMeta,
    },
    /// The first bytes of a frame that has come whole, with a good FCS, and is copied out of the
    /// radio next: may fire a frame that waits for it ([`super::Mac::enqueue_conditional`]). A
    /// driver need not report it; then the whole frame fires it, later by the time of its copy.
    FrameHead {
        /// MAC header and at least one byte more, from the first byte of the PSDU.
        head: &'a [u8],
    },
    /// The frame of the last [`Action::Preload`] is in the radio.
    Preloaded,
    /// Answer to [`Action::AssessChannel`], 128 µs after it was asked.
    ChannelAssessed {
        /// No energy or carrier above the threshold, and no frame being received.
        clear: bool,
    },
    /// The frame of [`Action::Fire`] or [`Action::Transmit`] was sent.
    TransmitDone {
        /// When the frame's last symbol left the antenna, however late that is reported, up to
        /// [`RadioCapabilities::stamp_delay_max`] too late: its ACK and the interframe spacing are
        /// timed from here.
        at: Instant,
    },
    /// Answer to [`Action::Fire`] of a radio that assesses the channel or takes ACKs by itself
    /// ([`RadioCapabilities::assesses`], [`RadioCapabilities::takes_acks`]), instead of
    /// [`Self::TransmitDone`]: the attempt is over. One that belongs to no attempt under way is
    /// ignored.
    Sent {
        /// How it ended.
        outcome: AttemptOutcome,
        /// When the frame's last symbol left the antenna, as [`Self::TransmitDone`] has it; a radio
        /// that does not tell may give the time of its answer. Of no meaning where the frame was
        /// not sent.
        at: Instant,
    },
}

/// How one attempt of a radio at a frame ended: one [`Action::Fire`], with the assessments and the
/// ACK that the radio deals with by itself. Retries are the MAC's: a radio that retries by itself
/// is told not to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttemptOutcome {
    /// It was sent and acknowledged. Of a frame that asks for no ACK it means the same as
    /// [`Self::Done`].
    Acked {
        /// Whether the ACK said that something waits for this node: the frame pending bit. Only a
        /// node that sleeps needs it; `true` where the radio does not tell.
        pending: bool,
    },
    /// It was sent. Either it asks for no ACK, or its ACK comes as a frame
    /// ([`RadioCapabilities::takes_acks`] off). A radio that takes ACKs and says this of a frame
    /// that asks for one has not seen it: it counts as [`Self::NoAck`].
    Done,
    /// It was sent, it asks for an ACK, and none came in time.
    NoAck,
    /// It was sent, it asks for an ACK, and the radio does not tell whether one came: Linux, and
    /// drivers that report only that a frame has left. The frame is done with. It says nothing of
    /// the link, for good or bad, does not show that the neighbour is there, and has no frame
    /// pending bit: a node that sleeps cannot use such a radio.
    Unknown,
    /// The channel was not found clear in the whole attempt: it was not sent. It says nothing of
    /// the link to the neighbour.
    Busy,
    /// The radio refused it, or does not know what became of it. Counts as
    /// [`FrameDrop::RadioSilent`](super::FrameDrop::RadioSilent) does: the radio is tuned and
    /// switched on again, and the frame is tried again. It says nothing of the link either.
    Failed,
}

/// How a frame was heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxMeta {
    /// Received signal strength (RSSI), dBm.
    pub rssi_dbm: i8,
    /// Link quality, 255 best (IEEE 802.15.4-2006 §6.9.8).
    pub lqi: u8,
    /// Channel, 11 to 26 at 2.4 GHz.
    pub channel: u8,
    /// When the frame's last symbol was on the air, up to
    /// [`RadioCapabilities::stamp_delay_max`] too late; the ACK is timed from here.
    pub at: Instant,
}

/// An order of the MAC to a radio. Frame bytes are in the caller's `out[..len]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Copy this PSDU (FCS included unless [`RadioCapabilities::fcs_by_radio`]) into the radio;
    /// answered by [`Event::Preloaded`].
    /// Replaces what was preloaded before.
    Preload {
        /// Bytes of the frame, at the start of `out`.
        len: usize,
    },
    /// Assess the channel once, 8 symbols (128 µs); answered by
    /// [`Event::ChannelAssessed`]. A [`Action::Transmit`] that follows cancels it.
    AssessChannel,
    /// Transmit what is preloaded, one turnaround (192 µs) from now, or from the end of an ACK
    /// that the radio is sending by itself; answered by [`Event::TransmitDone`]. The frame
    /// stays preloaded where buffers are separate.
    ///
    /// A radio that assesses the channel by itself makes one whole attempt, which begins with its
    /// backoff; one that does this or takes ACKs by itself answers by `Event::Sent`. A later
    /// [`Action::Preload`] gives an attempt up that was not answered yet: from then on its answer
    /// must not be reported.
    Fire,
    /// Transmit an immediate ACK without assessing the channel; answered by
    /// [`Event::TransmitDone`]. Leaves a preloaded frame alone where buffers are separate.
    Transmit {
        /// Bytes of the ACK, at the start of `out`.
        len: usize,
        /// When the frame's first symbol goes on air: a turnaround after the frame that it answers.
        at: Instant,
    },
    /// Receive from now on, until [`Action::Sleep`].
    Listen,
    /// Switch the receiver off; whatever is preloaded may be kept or lost as
    /// [`RadioCapabilities::shared_buffer`] tells.
    Sleep,
    /// Tune to this channel; cancels an assessment, as [`Action::Transmit`] does.
    ChangeChannel {
        /// Channel number, 11 to 26 at 2.4 GHz.
        channel: u8,
    },
    /// From now on the ACKs that the radio sends by itself say that something waits for their
    /// receiver, or nothing: the frame pending bit. Only a parent of sleeping nodes asks for it,
    /// and only where [`RadioCapabilities::pending`] says that the radio can.
    SetPending {
        /// The neighbour whose frames are acknowledged in this way; `None`: all data requests,
        /// where the radio has one flag.
        of: Option<LinkAddr>,
        /// Value of the frame pending bit.
        pending: bool,
    },
}

/// How a radio that acknowledges by itself knows whether something waits for a sleeping neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pending {
    /// The radio cannot tell: its node is no parent of sleeping nodes.
    None,
    /// One flag for the ACKs of all data requests (AT86RF233: `AACK_SET_PD`). A child for which
    /// nothing waits then listens in vain while something waits for another one.
    OneForAll,
    /// A table of neighbours, whose frames of any kind are acknowledged so (nRF52840: the source
    /// match table of Nordic's driver).
    PerNeighbour,
}

/// The capabilities of a radio; part of its profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RadioCapabilities {
    /// One buffer for both directions (AT86RF23x): reception and ACKs overwrite the
    /// preloaded frame, so it is copied anew for each attempt, after the backoff. Radios
    /// with separate buffers (CC2420, DMA from RAM) are preloaded before the backoff, once.
    pub shared_buffer: bool,
    /// The radio answers frames with ACKs itself; the MAC then emits none.
    pub auto_ack: bool,
    /// Time to tune to another channel.
    pub channel_switch: Duration,
    /// The most by which the driver's stamps of a frame's end ([`RxMeta::at`],
    /// [`Event::TransmitDone`]) may be too late. Zero: hardware takes the time. Where software
    /// takes it, the longest time from a frame's end to the line that reads the clock.
    ///
    /// An ACK is then accepted earlier by this, and later by twice this: its own stamp may be
    /// late, and a neighbour with such a driver sends it late. What that costs: an attempt
    /// without an ACK waits for twice this longer; within the wider span an ACK for another
    /// node's frame with the same sequence number counts as ours; and a neighbour that assesses
    /// the channel between frame and late ACK finds it clear.
    pub stamp_delay_max: Duration,
    /// The radio appends the FCS and checks it, and keeps it to itself: neither
    /// [`Action::Preload`] and [`Action::Transmit`] nor [`Event::FrameReceived`] have its two
    /// bytes, and a frame that fails the check is not reported.
    pub fcs_by_radio: bool,
    /// How ACKs that the radio sends by itself say that something waits.
    pub pending: Pending,
    /// The radio does unslotted CSMA-CA by itself: one [`Action::Fire`] is a whole attempt with its
    /// backoffs, and is answered by [`Event::Sent`]. The MAC then neither backs off nor asks for
    /// assessments. Its settings [`Config::be_min`](super::Config::be_min),
    /// [`be_max`](super::Config::be_max) and
    /// [`csma_backoffs_max`](super::Config::csma_backoffs_max) are for the driver to hand on to the
    /// radio. The radio listens during its backoffs, and acknowledges by itself what it hears then.
    pub assesses: bool,
    /// The radio waits for the ACK of a frame by itself and reports both in one: [`Event::Sent`] is
    /// its answer to [`Action::Fire`]. No stamps are compared then, so that
    /// [`Self::stamp_delay_max`] and [`Config::ack_wait`](super::Config::ack_wait) have no effect.
    /// [`Config::answer_timeout`](super::Config::answer_timeout) has to exceed the longest
    /// attempt and, where the radio is behind a line, the delay of that line.
    pub takes_acks: bool,
}

impl RadioCapabilities {
    /// AT86RF233 as TCPlp drives it: one shared buffer, ACKs by hardware, and CSMA in
    /// software. Channel switching: the PLL settles in 11 µs (data sheet, tTR20 typical).
    pub const AT86RF233: Self = Self {
        shared_buffer: true,
        auto_ack: true,
        channel_switch: Duration::from_micros(11),
        stamp_delay_max: Duration::ZERO,
        fcs_by_radio: false,
        pending: Pending::OneForAll,
        assesses: false,
        takes_acks: false,
    };

    /// CC2420: two FIFOs of 128 B; 48 µs to switch channels (the CIT paper's measurement).
    pub const CC2420: Self = Self {
        shared_buffer: false,
        auto_ack: true,
        channel_switch: Duration::from_micros(48),
        stamp_delay_max: Duration::ZERO,
        fcs_by_radio: false,
        pending: Pending::None,
        assesses: false,
        takes_acks: false,
    };

    /// A radio that makes whole attempts by itself, as co-processors and vendors' drivers do:
    /// backoffs, assessments, ACKs in both directions, and the FCS. What differs among them is
    /// [`Self::pending`] and [`Self::stamp_delay_max`].
    pub const OFFLOADING: Self = Self {
        shared_buffer: false,
        auto_ack: true,
        channel_switch: Duration::ZERO,
        stamp_delay_max: Duration::ZERO,
        fcs_by_radio: true,
        pending: Pending::None,
        assesses: true,
        takes_acks: true,
    };

    /// Whether an ACK can say that something waits for a neighbour that sleeps: the MAC's own ACKs
    /// can.
    pub const fn says_pending(&self) -> bool {
        !self.auto_ack || !matches!(self.pending, Pending::None)
    }

    /// Whether the backoffs and assessments are the radio's.
    pub(super) const fn backs_off(&self) -> bool {
        OFFLOADS && self.assesses
    }

    /// Whether the radio makes attempts, or parts of them, that the MAC does not see.
    pub(crate) const fn is_offloading(&self) -> bool {
        OFFLOADS && (self.assesses || self.takes_acks)
    }
}

/// Whether this build has radios that make attempts by themselves; a node without them pays nothing
/// for it.
pub(super) const OFFLOADS: bool = cfg!(feature = "offload");
