//! What a session reports to its owner.

use motet::time::Instant;

use crate::Error;
use crate::frame::Status;
use crate::raw::Flags;

/// What a session reports to its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The radio is configured: it receives and sends from now on.
    Ready(RadioInfo),
    /// A frame came.
    Received(Received),
    /// A transmission has ended.
    Sent {
        /// How it ended.
        outcome: Outcome,
        /// When the frame's last symbol left the antenna: computed from the ACK where the radio
        /// hands it out, else the arrival of the radio's answer, which is later.
        at: Instant,
    },
    /// The radio is not configured any more. It is being configured anew; [`Self::Ready`] follows.
    Restarted(Cause),
    /// An energy scan has ended.
    ScanResult {
        /// The channel.
        channel: u8,
        /// The strongest power on it, dBm; `None`: the radio did not scan.
        rssi_dbm: Option<i8>,
    },
    /// The radio cannot be used; nothing follows.
    Failed(Error),
}

/// A radio's description of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RadioInfo {
    /// Its firmware in its own words.
    pub firmware: String,
    /// Version of the RCP API.
    pub api: u32,
    /// EUI-64 of the chip, big endian, whether or not it is in use.
    pub eui64: [u8; 8],
    /// Its functions.
    pub capabilities: RadioCaps,
    /// Its channels.
    pub channels: Vec<u8>,
}

/// Functions of a radio, in the bits of OpenThread. An RCP reports also those that its firmware
/// adds to the hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RadioCaps(pub u32);

impl RadioCaps {
    /// It waits for ACKs.
    pub const ACK_TIMEOUT: Self = Self(1);
    /// It scans energy.
    pub const ENERGY_SCAN: Self = Self(1 << 1);
    /// It retries.
    pub const TRANSMIT_RETRIES: Self = Self(1 << 2);
    /// It does CSMA.
    pub const CSMA_BACKOFF: Self = Self(1 << 3);
    /// It can send while its receiver was off.
    pub const SLEEP_TO_TX: Self = Self(1 << 4);
    /// It secures frames.
    pub const TRANSMIT_SEC: Self = Self(1 << 5);
    /// It sends at a time.
    pub const TRANSMIT_TIMING: Self = Self(1 << 6);
    /// It receives at a time.
    pub const RECEIVE_TIMING: Self = Self(1 << 7);
    /// It switches its receiver off and on by itself.
    pub const RX_ON_WHEN_IDLE: Self = Self(1 << 8);

    /// Whether it has all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A frame that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The frame without its FCS, which the radio has checked.
    pub psdu: Vec<u8>,
    /// Received signal strength, dBm; 127: unknown.
    pub rssi_dbm: i8,
    /// Link quality, 255 best; 0: unknown.
    pub lqi: u8,
    /// The channel it came on.
    pub channel: u8,
    /// The radio's remarks.
    pub flags: Flags,
    /// The radio's clock at the end of the frame's start delimiter (SFD), µs; unchanged, so it may
    /// wrap at 2^32 and starts anew when the radio does.
    pub sfd_us: Option<u64>,
    /// When the frame's last symbol was on the air, computed from the radio's clock; its arrival
    /// over the line where the radio gives no time.
    pub at: Instant,
}

/// How a transmission ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was acknowledged.
    Acked(Ack),
    /// It was sent, and asks for no ACK.
    Done,
    /// It asks for an ACK, and none came.
    NoAck,
    /// The channel was never found clear: it was not sent.
    Busy,
    /// The radio refused it with this status; `None`: it restarted or did not answer, and whether
    /// the frame was on the air is unknown.
    Failed(Option<Status>),
}

/// An ACK that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Something waits for this node: the frame pending bit.
    pub pending: bool,
    /// When its last symbol was on the air; as late as the radio's answer where the radio does not
    /// hand the ACK out.
    pub at: Instant,
    /// Received signal strength, dBm; `None` where the radio does not hand the ACK out.
    pub rssi_dbm: Option<i8>,
}

/// Why a radio has to be configured anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It reported a restart, with its reason.
    Status(Status),
    /// It did not answer for two seconds, and is reset.
    Silence,
    /// The line to it was opened anew.
    Line,
}

/// Why a session refuses a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The radio is not configured yet, or not again: wait for [`Event::Ready`].
    NotReady,
    /// The one before has not ended: wait for [`Event::Sent`] or [`Event::ScanResult`].
    InProgress,
    /// A frame of this many bytes, FCS aside: it has 3 to 125.
    Length(usize),
    /// The radio does not have the channel.
    NoSuchChannel(u8),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotReady => f.write_str("the radio is not configured yet"),
            Self::InProgress => f.write_str("the radio is still at the one before"),
            Self::Length(len) => write!(f, "a frame has 3 to 125 bytes before its FCS, not {len}"),
            Self::NoSuchChannel(channel) => write!(f, "the radio has no channel {channel}"),
        }
    }
}

impl std::error::Error for Refusal {}
