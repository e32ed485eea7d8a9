//! Motet for C: one archive, one header (`include/motet.h`), a node in the caller's memory.
//!
//! Events go in, actions come out, and sockets are numbers, as in any C library: failures are
//! negative error numbers. A number says which socket it was given out for: one that is closed, or
//! another node's, is refused.
//!
//! Place: around [`motet::node::Node`]. This is the one crate for devices with `unsafe`: C hands
//! over pointers, of which `memory` makes slices and `node` a node. Left out: drivers, clocks,
//! names.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![expect(
    non_camel_case_types,
    reason = "these are the names that C programs use"
)]

#[cfg(feature = "relay")]
mod below;
#[cfg(not(feature = "relay"))]
#[path = "below_absent.rs"]
mod below;
mod config;
mod errno;
mod events;
#[cfg(feature = "tcphc")]
mod headers;
#[cfg(not(feature = "tcphc"))]
#[path = "headers_absent.rs"]
mod headers;
#[cfg(feature = "join")]
mod join;
#[cfg(feature = "join")]
mod joining;
#[cfg(not(feature = "join"))]
#[path = "joining_absent.rs"]
mod joining;
mod memory;
mod node;
#[cfg(feature = "security")]
mod record;
#[cfg(feature = "security")]
mod security;
#[cfg(feature = "sleepy")]
mod sleep;
mod sockets;
mod tcp;
mod udp;

pub use config::*;
pub use errno::*;
pub use events::*;
#[cfg(feature = "join")]
pub use join::*;
pub use node::*;
#[cfg(feature = "security")]
pub use record::*;
#[cfg(feature = "security")]
pub use security::*;
#[cfg(feature = "sleepy")]
pub use sleep::*;
pub use sockets::*;
pub use tcp::*;
pub use udp::*;

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
