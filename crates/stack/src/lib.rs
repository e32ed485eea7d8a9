//! Motet: TCP for motes.
//!
//! One `no_std`, allocation-free, sans-IO stack: TCP, IPv6, 6LoWPAN and the IEEE 802.15.4
//! MAC discipline, for devices with 32 KiB of RAM. A driver (firmware, border router or
//! the lab) feeds events into a [`node::Node`], takes actions out of it, and calls it again
//! at its next deadline. Time and randomness are arguments; nothing here reads a clock.
//!
//! Deliberately absent: `unsafe`, heap, callbacks, threads, globals.
#![no_std]
#![forbid(unsafe_code)]
// Bytes from the network must never reach a panic: the linked minimal node is checked to
// hold no panic machinery (`cargo xtask sizes`), and these lints keep it so at the source.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable
    )
)]

#[cfg(test)]
extern crate std;

/// Lets an error say its `reason()` wherever errors are printed or boxed. `$from`: which values
/// were caused by another error, and that one; `$field`: where every value has its cause.
macro_rules! speaks {
    ($error:ty $(, $from:pat => $source:ident)? $(; $field:ident)?) => {
        impl core::fmt::Display for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.reason())
            }
        }

        impl core::error::Error for $error {
            $(fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                match self {
                    $from => Some($source),
                    _ => None,
                }
            })?
            $(fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                Some(&self.$field)
            })?
        }
    };
}

pub mod ip;
pub mod limits;
pub mod lowpan;
pub mod mac;
pub mod node;
#[cfg(feature = "planted-bugs")]
pub mod planted;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
pub mod random;
pub mod storage;
#[cfg(feature = "tcp")]
pub mod tcp;
pub mod time;
pub mod udp;
pub mod wire;
