//! Frame counters in a file, so that none is used twice, even after a power cut.
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
//! Purpose: two frames with the same key and counter reveal each other's contents. The stack uses a
//! counter only after its host has stored a bound above it; this crate is that storage for hosts
//! with a file system.
//! Place: between a host and its disk. It knows no protocol.
//!
//! # What holds
//!
//! - Counters stored by [`Counters::keep`] survive a power cut at any moment: a new file is written
//!   and synced, then renamed over the old one, and the folder is synced, too.
//! - A file that is damaged, restored from a copy, or missing although it existed, is refused. A
//!   record holds the creation time of its own file, which no copy has; and the lock file, which is
//!   written in place, holds the number of the newest record.
//! - One process has a file at a time.
//!
//! Left out: a disk that goes back as a whole, as an image of a machine or of a file system does,
//! and a folder that is moved away and back. No file on that disk can detect this. If a file system
//! keeps no creation time, a folder that was restored as a whole is not noticed, either.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod disk;
mod error;
mod identity;
pub mod record;
mod store;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use identity::{Identity, IdentityFile, Parent};
pub use record::{KeyName, Past};
pub use store::Counters;
