//! IEEE 802.15.4 on the ESP32-C6 and ESP32-H2, for `motet-embassy`, by Espressif's `esp-radio`.
//!
//! # Place
//!
//! [`Esp`] is a [`Chip`](motet_embassy::offload::Chip) on [`Hardware`]: the driver of `esp-radio`,
//! or one that a test plays. The radio assesses the channel once for each frame, waits for its ACK,
//! filters by address and sends ACKs. Backoffs, times and the meaning of its reports are made here.
//!
//! Left out: energy scans, pending bits for children that sleep, several channels, since
//! `esp-radio` offers none of them.
//!
//! Sources: `esp-radio` 1.0.0-beta.1, module `ieee802154`; IEEE 802.15.4-2006 §7.5.1.4.
#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]

mod chip;
#[cfg(all(target_arch = "riscv32", target_os = "none"))]
mod hardware;
mod raw;
mod reports;
#[cfg(test)]
mod tests;

pub use chip::{CAPABILITIES, Configuration, Esp, Hardware};
#[cfg(all(target_arch = "riscv32", target_os = "none"))]
pub use hardware::{Radio, eui64, new, seed};
pub use raw::Raw;
pub use reports::{Reports, Transmission};
