//! IEEE 802.15.4 on Nordic's nRF52, nRF53 and nRF54L, for `motet-embassy`, by Nordic's own driver.
//!
//! # Place
//!
//! [`Nordic`] is a [`Chip`](motet_embassy::offload::Chip) on [`Hardware`]: the crate `nrf-802154`,
//! or a driver that a test plays. The driver backs off, assesses, waits for ACKs, filters by
//! address, sends ACKs with the pending bit of each neighbour, and shares the radio with Bluetooth
//! LE. Here its errors become outcomes, and its clock that of the node.
//!
//! Source: `nrf-802154` 0.1.0, and `nrf_802154.h` of nrfxlib.
#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]

mod chip;
mod clock;
#[cfg(all(target_arch = "arm", target_os = "none"))]
mod hardware;
#[cfg(test)]
mod tests;

pub use chip::{CAPABILITIES, Failure, Hardware, Meta, Nordic};
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub use hardware::{Radio, new};
