//! A connection, as both its ends know it.

use std::collections::VecDeque;

use motet::ble::{Phy, Timing};
use motet::time::{Duration, Instant};

use super::channel::ChannelMap;

/// The ends of a connection, in [`Connection::ends`].
pub(super) const CENTRAL: usize = 0;
pub(super) const PERIPHERAL: usize = 1;

/// A connection of Bluetooth LE's link layer.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) ends: [End; 2],
    pub(super) access_address: u32,
    pub(super) crc_init: u32,
    pub(super) map: ChannelMap,
    pub(super) timing: Timing,
    /// The longest time that a connection event may take.
    pub(super) event_len: Duration,
    pub(super) phy: Phy,
    /// The number of the next event, and when it begins.
    pub(super) counter: u16,
    pub(super) anchor: Instant,
    /// The event that goes on.
    pub(super) event: Option<ConnectionEvent>,
    /// The change that the central has proposed and the peripheral has heard, at the connection
    /// event with this number.
    pub(super) proposed: Option<(u16, Change)>,
    pub(super) change: Option<(u16, Change)>,
    /// The changes that the central proposes after that, one at a time.
    pub(super) waiting: VecDeque<Change>,
    /// The PHY that was asked for.
    pub(super) phy_wanted: Phy,
    /// Which part of the central's interval it has.
    pub(super) slot: usize,
    /// Events in a row that had no time because of other connections.
    pub(super) skipped: u32,
    /// When the peripheral last heard the central: since then clocks drift.
    pub(super) synchronised_at: Instant,
    /// By how much the next event is later by its central's clock, in millionths of a microsecond.
    pub(super) drift_rest: i64,
    pub(super) is_over: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct End {
    pub(super) device: usize,
    /// Control packets that wait; they go before data.
    pub(super) controls: VecDeque<Pdu>,
    pub(super) data: VecDeque<Pdu>,
    /// The last packet sent, until it is acknowledged; `Some(None)`: an empty one.
    pub(super) flying: Option<Option<Pdu>>,
    /// The next sequence number to send, and the one expected.
    pub(super) sn: bool,
    pub(super) nesn: bool,
    /// The longest payload that the host wants to send, and that both ends agree on.
    pub(super) wanted: u16,
    pub(super) octets: u16,
    /// When the other end was last heard: then its time begins anew.
    pub(super) heard_at: Instant,
    /// Events in a row that it left out with nothing to say.
    pub(super) left_out: u16,
    /// The procedure that it has begun, and those that wait for its end (§5.2).
    pub(super) asked: Option<Procedure>,
    pub(super) to_ask: VecDeque<Ask>,
    /// Whether what it sent last was sent before.
    pub(super) is_repeating: bool,
    /// Data packets that have left the buffer, and that the host was not told about.
    pub(super) completed: u16,
    /// The device was switched off: it neither sends nor hears any more.
    pub(super) is_gone: bool,
}

/// The payload of a data packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pdu {
    /// The LLID field: the beginning of an L2CAP PDU, more of one, or control.
    pub(super) llid: u8,
    pub(super) bytes: Vec<u8>,
    /// With it the host's data packet is complete.
    pub(super) ends_packet: bool,
}

pub(super) const CONTINUATION: u8 = 1;
pub(super) const START: u8 = 2;
pub(super) const CONTROL: u8 = 3;

/// An event that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionEvent {
    pub(super) channel: u8,
    /// When the connection event is over at the latest.
    pub(super) until: Instant,
    /// Whether the peripheral listens.
    pub(super) is_attended: bool,
    /// Whether the peripheral's clock is accurate enough to find the beginning of the event.
    pub(super) is_found: bool,
    /// Packets in a row that each end received with a bad check sum.
    pub(super) bad: [u8; 2],
    /// Packets that each end received with a good check sum, and with a bad one.
    pub(super) heard: [[u16; 2]; 2],
    /// Whether an end waited for a packet and heard nothing.
    pub(super) missed: [bool; 2],
    /// Whether each end has said that it has more data (the MD bit).
    pub(super) more: [bool; 2],
    pub(super) started: Instant,
    /// When the packet on the air began, and how long its payload is.
    pub(super) begun: Instant,
    pub(super) payload_len: usize,
}

/// A procedure of control packets. An end begins one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Procedure {
    Length,
    Phy,
    Timing,
}

/// How a procedure begins: with a control packet, or with what a central proposes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Pdu(Procedure, Vec<u8>),
    Propose(Change),
}

/// A change of a connection at an instant (a connection event's number).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Phy(Phy),
    /// Times, the longest event, and how much later than usual the first event begins.
    Timing(Timing, Duration, Duration),
}

impl ConnectionEvent {
    /// Notes that a packet for `end` was missed. `listens`: whether that end listened. A central
    /// also notices a packet that the peripheral missed, since no answer comes.
    pub(super) fn missed_by(mut self, end: usize, listens: bool) -> Self {
        self.missed[end] |= listens;
        self.missed[CENTRAL] |= end == PERIPHERAL;
        self
    }
}

impl End {
    pub(super) fn new(device: usize, now: Instant) -> Self {
        Self {
            device,
            controls: VecDeque::new(),
            data: VecDeque::new(),
            flying: None,
            sn: false,
            nesn: false,
            wanted: OCTETS_MIN,
            octets: OCTETS_MIN,
            heard_at: now,
            left_out: 0,
            asked: None,
            to_ask: VecDeque::new(),
            is_repeating: false,
            completed: 0,
            is_gone: false,
        }
    }

    /// Whether a device is at this end.
    pub(super) fn is_of(&self, device: usize) -> bool {
        self.device == device && !self.is_gone
    }

    /// Whether the end has a packet to send.
    pub(super) fn has_more(&self) -> bool {
        !self.controls.is_empty() || !self.data.is_empty()
    }

    /// Whether the end may leave a connection event out.
    pub(super) fn is_idle(&self) -> bool {
        !self.has_more() && !matches!(self.flying, Some(Some(_)))
    }
}

impl Connection {
    pub(super) fn interval(&self) -> Duration {
        interval(&self.timing)
    }

    /// Whether a device takes part in it.
    pub(super) fn is_of(&self, device: usize) -> bool {
        !self.is_over && self.ends.iter().any(|end| end.is_of(device))
    }
}

/// From one event to the next.
pub(super) fn interval(timing: &Timing) -> Duration {
    Duration::from_micros(1_250 * u64::from(timing.interval))
}

/// The payload of a packet before its length was spoken of, bytes.
const OCTETS_MIN: u16 = 27;
