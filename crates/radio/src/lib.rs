//! IEEE 802.15.4 radios of a Unix host.
//!
//! Purpose: opens a radio that a [`RadioUrl`] names, and keeps it usable: a dongle with
//! OpenThread's `ot-rcp` on a serial line, an RCP that is a program behind a pseudo-terminal, or an
//! interface of Linux's own IEEE 802.15.4.
//! Place: between a program's main loop and [`motet_spinel::Session`]; this crate owns descriptors
//! and processes, and the session the protocol. The time is an argument here, too, so that the
//! caller's clock is the only one. Left out: SPI, other framings than HDLC, other systems than
//! Unix.
//!
//! A radio that is unplugged, or whose program ends, is opened again for as long as it takes.
//!
//! Sources: OpenThread's radio URL (`docs/radio-url` of its daemon); termios(3), pty(7),
//! packet(7).
#![cfg(unix)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
mod line;
mod mac;
#[cfg(target_os = "linux")]
mod node_radio;
mod spinel;
mod url;
mod why;
#[cfg(target_os = "linux")]
mod wpan;

pub use error::Error;
pub use mac::{MacRadio, Notice};
#[cfg(target_os = "linux")]
pub use node_radio::{NodeRadio, RadioChange};
pub use spinel::{Event, SpinelRadio};
pub use url::{BadUrl, Parity, RadioUrl, Uart};
#[cfg(target_os = "linux")]
pub use wpan::{Change, Fault, WpanMonitor, WpanRadio};
