//! The reports of a driver to the MAC.

use motet::mac::{self, AttemptOutcome, RxMeta};
use motet::time::Instant;

use crate::air::medium::Frame;

/// A report of a driver to the MAC: [`motet::mac::Event`] with its bytes inside.
#[derive(Clone, Debug)]
pub enum Output {
    /// The frame is in the radio.
    Preloaded,
    /// The channel was assessed.
    Assessed {
        /// Whether the channel was clear.
        clear: bool,
    },
    /// The frame, or the ACK that software asked for, left at this instant.
    TransmitDone(Instant),
    /// The radio's own attempt has ended so; the frame left at this instant, if it did.
    Sent(AttemptOutcome, Instant),
    /// The first bytes of a frame that came without error, and no more.
    Head(Frame),
    /// A frame was copied out of the radio.
    Frame(Frame, RxMeta),
}

impl Output {
    /// Tells `listener` about it in the MAC's own words.
    pub fn tell<T>(&self, listener: impl FnOnce(mac::Event<'_>) -> T) -> T {
        match self {
            Self::Preloaded => listener(mac::Event::Preloaded),
            Self::Assessed { clear } => listener(mac::Event::ChannelAssessed { clear: *clear }),
            Self::TransmitDone(at) => listener(mac::Event::TransmitDone { at: *at }),
            Self::Sent(outcome, at) => listener(mac::Event::Sent {
                outcome: *outcome,
                at: *at,
            }),
            Self::Head(head) => listener(mac::Event::FrameHead { head: head.psdu() }),
            Self::Frame(frame, meta) => listener(mac::Event::FrameReceived {
                psdu: frame.psdu(),
                meta: *meta,
            }),
        }
    }
}
