//! Frame counters in a file, so that none is used twice whatever becomes of the power.
//!
//! ```no_run
//! use motet_state::{Counters, KeyName, Past};
//!
//! let (network_key, eui64) = ([7; 16], *b"Motet\0\0\x01");
//! let mut counters = Counters::open("/var/lib/motet".as_ref(), KeyName::of(&network_key), "mote")?;
//! let past = counters.past(eui64); // the node goes on here
//! counters.keep(eui64, Past { counter: past.counter + 8_192, ..past })?; // on the disk by now
//! # Ok::<(), motet_state::Error>(())
//! ```
//!
//! Purpose: two frames of one key with one counter betray both. The stack uses a counter only after
//! its host has stored a bound above it; this is such a host's storage where there is a file
//! system.
//! Place: between a host and its disk. It knows no protocol.
//!
//! # What holds
//!
//! - What [`Counters::keep`] has kept outlives a power cut at any moment: a new file is written,
//!   brought to the disk, and takes the old one's name, which is brought to the disk, too.
//! - A file that is damaged, was put back from a copy, or is missing though it was there opens
//!   nothing. A record names the moment when its own file was made, which no copy has; and the lock
//!   file, which is written in place, names the newest record.
//! - One process has a file at a time.
//!
//! Left out: a disk that goes back as a whole, as an image of a machine or of a file system does,
//! and a folder that is moved away and back. No file on that disk can tell. Where a file system
//! keeps no moment of making, a folder that was put back as a whole is not noticed, either.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod disk;
mod error;
pub mod record;
mod store;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use record::{KeyName, Past};
pub use store::Counters;
