//! IEEE 802.15.4 on the nRF52840, for `motet-embassy`.
//!
//! # Place
//!
//! [`Driver`] carries out a MAC's actions on [`Registers`]: those of the chip, through
//! `embassy-nrf`, or those of a model. The interrupt does what must be in time: it filters frames
//! by address and sets off ACKs, which a timer then starts by itself, so that a task that computes
//! for a second costs no ACK. `Radio` is the driver as a task sees it.
//!
//! Left out: security, pending bits for children that sleep, other chips of the family, and power:
//! the timer keeps the high-frequency clock on.
//!
//! Sources: nRF52840 Product Specification, RADIO, TIMER, PPI and TEMP, and its errata.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![deny(unsafe_code)]

mod counters;
mod driver;
mod filter;
#[cfg(all(target_arch = "arm", target_os = "none"))]
mod hardware;
mod outputs;
mod packet;
mod registers;
mod strength;
mod times;

pub use counters::Counters;
pub use driver::{CAPABILITIES, CrystalOff, Driver};
pub use filter::Filter;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub use hardware::{InterruptHandler, Radio, eui64, seed};
pub use packet::{Frames, Packet};
pub use registers::{Event, HEAD_BITS, HEAD_LEN, Registers, Shortcuts, State, Task};
