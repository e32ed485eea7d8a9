//! How long the radio and IEEE 802.15.4 take for what they do, µs.
//!
//! Sources: nRF52840 Product Specification §6.20.15; IEEE 802.15.4-2006 §6.4; and, for the delays
//! between antenna and events, which neither has, Nordic's models of the registers (nrf_hw_models).

/// `aTurnaroundTime`, 12 symbols, µs.
pub(crate) const TURNAROUND: u32 = 192;

/// An ACK's time on the air with preamble, delimiter and length, µs.
pub(crate) const ACK_AIR: u32 = 352;

/// Time from TXEN or RXEN to READY with fast ramp-up, µs (tTXEN,FAST and tRXEN,FAST).
pub(crate) const RAMP_UP: u32 = 40;

/// Time from DISABLE to DISABLED while transmitting, µs (tTXDIS in this mode), the longer of both.
pub(crate) const RAMP_DOWN: u32 = 21;

/// Time from START to the first bit at the antenna, µs.
pub(crate) const START_TO_AIR: u32 = 1;

/// Time from a frame's last bit at the antenna to PHYEND in the receiver, µs. (Nordic's driver has
/// 23 for this and [`START_TO_AIR`] together.)
pub(crate) const AIR_TO_END: u32 = 22;

/// How much later than its captured count an event may have happened, µs: the timer counts whole
/// microseconds.
pub(crate) const TICK: u32 = 1;

/// How far ahead a ramp-up is set at least, µs: what setting it takes.
pub(crate) const MARGIN: u32 = 4;

/// Longer than anything of ours is on the air with its waits, µs: twice a frame of 127 bytes.
pub(crate) const BUSY_MAX: u32 = 8_000;
