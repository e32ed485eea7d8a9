//! The events in the calendar of a world.
//!
//! Place: radios and the medium schedule their own moments, [`crate::net::world`] those of nodes
//! and packets.

use crate::air::gains::Later;
use crate::air::medium::FrameId;
use crate::air::radio::Due;

/// Something that happens at an instant of virtual time. Two words long, because the calendar moves
/// each event many times; rare and long variants are boxed.
#[derive(Debug)]
pub enum Event {
    /// A node's deadline has come.
    Deadline {
        /// The node that has the deadline.
        mote: usize,
    },
    /// A moment a radio waits for.
    Radio {
        /// The frame's place on the air.
        place: usize,
        /// Which of the frame's moments is due.
        due: Due,
    },
    /// A frame's last symbol has left the air.
    FrameEnd {
        /// The frame.
        id: FrameId,
    },
    /// A node's processor is free for what happened while it was copying.
    Resume {
        /// The node whose timer it is.
        mote: usize,
    },
    /// A gain changes.
    Gain(Box<Later>),
    /// A packet arrives at the end of a wire.
    Packet(Box<WirePacket>),
    /// An attacker may send.
    Attack {
        /// The attacker's number.
        attacker: usize,
    },
    /// The border router may let a packet go that it held.
    Release,
}

/// A packet on a wire.
#[derive(Debug)]
pub struct WirePacket {
    /// The end it arrives at.
    pub to: End,
    /// The packet's bytes.
    pub packet: Box<[u8]>,
}

/// Where a wire ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// At a simulated node.
    Mote(usize),
    /// Outside the simulated world.
    Outside,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_two_words() {
        assert!(size_of::<Event>() <= 16);
    }
}
