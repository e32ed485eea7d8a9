//! The driver's access to RADIO, TIMER and PPI.
//!
//! Left out: what is set once and for all (format, CRC, PPI's ends), which is its maker's business.

use crate::packet::Packet;

/// The registers, of the chip or of a model.
///
/// The timer counts microseconds in 32 bits. PPI copies its count to a capture register at each
/// [`Event::PhyEnd`], and triggers [`Task::TransmitEnable`] at the count that
/// [`Self::transmit_at`] sets.
pub trait Registers {
    /// Triggers a task.
    fn trigger(&mut self, task: Task);

    /// Whether an event has happened since it was last cleared.
    fn is_set(&self, event: Event) -> bool;

    /// Clears an event.
    fn clear(&mut self, event: Event);

    /// Sets which events trigger which tasks.
    fn set_shortcuts(&mut self, shortcuts: Shortcuts);

    /// Sets which bytes the next start sends from or receives into.
    fn set_packet(&mut self, packet: &'static Packet);

    /// Orders memory. Bytes of packets that were written before this are there for the radio when
    /// a register is written after it; bytes that the radio had written when a register was read
    /// before this are there for what reads them after it.
    fn fence(&mut self);

    /// Tunes to a channel, 11 to 26, from the next ramp-up on.
    fn set_channel(&mut self, channel: u8);

    /// Sets the power of the next frame, dBm: one that the radio has.
    fn set_power_dbm(&mut self, dbm: i8);

    /// Sets the energy beyond which a channel is busy, also without a carrier: in the radio's units
    /// (CCAEDTHRES).
    fn set_busy_energy(&mut self, energy: u8);

    /// The state of RADIO.
    fn state(&self) -> State;

    /// Whether the frame received last had a good CRC.
    fn is_crc_good(&self) -> bool;

    /// The strength of the frame received last as the radio measures it, dBm.
    fn rssi_dbm(&self) -> i8;

    /// Whether the high-frequency clock runs from the crystal.
    fn has_crystal(&self) -> bool;

    /// How hot the chip was when that was last measured, in quarters of 1 °C; begins the next
    /// measurement, which takes less than 100 µs.
    fn heat(&mut self) -> i32;

    /// The timer's count, µs.
    fn count(&mut self) -> u32;

    /// The timer's count at the last [`Event::PhyEnd`].
    fn captured(&self) -> u32;

    /// Lets the radio ramp up to transmit at this count, which must not be over; `None`: never.
    fn transmit_at(&mut self, count: Option<u32>);
}

/// Tasks of RADIO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// TXEN.
    TransmitEnable,
    /// RXEN.
    ReceiveEnable,
    /// START.
    Start,
    /// DISABLE.
    Disable,
}

/// Events of RADIO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// FRAMESTART: a length has been received.
    FrameStart,
    /// BCMATCH: [`HEAD_BITS`] have been received.
    HeadMatch,
    /// PHYEND: the last bit of a frame was received, or sent.
    PhyEnd,
    /// CCAIDLE: the channel is clear.
    ChannelClear,
    /// CCABUSY: the channel is busy.
    ChannelBusy,
}

/// Which events trigger which tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortcuts {
    /// No shortcut.
    None,
    /// DISABLED to RXEN, RXREADY to START, ADDRESS to RSSISTART, FRAMESTART to BCSTART.
    Receive,
    /// DISABLED to RXEN, RXREADY to CCASTART.
    Assess,
    /// TXREADY to START, PHYEND to DISABLE.
    Transmit,
}

/// States of RADIO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// DISABLED.
    Disabled,
    /// RXRU or TXRU.
    RampingUp,
    /// RXIDLE: ready to receive, not started.
    ReceiveIdle,
    /// RX: listens, receives or assesses.
    Receiving,
    /// TXIDLE or TX.
    Transmitting,
    /// RXDISABLE or TXDISABLE.
    RampingDown,
}

/// Bytes of a frame after which [`Event::HeadMatch`] happens: the longest header that names its
/// receiver, and a byte more.
pub const HEAD_LEN: usize = 24;

/// [`HEAD_LEN`] in bits, with the length byte before it.
pub const HEAD_BITS: u32 = 8 * (1 + HEAD_LEN as u32);
