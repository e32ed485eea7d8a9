//! Motet's TCP behind packetdrill's user-space interface.
//!
//! Purpose: `packetdrill --so_filename=libmotet_packetdrill.so --so_flags=… script.pkt`
//! judges the stack from outside, with the same sockets, profiles and clock as
//! `motet-conformance` does from inside: both sit on [`motet_conformance::host`].
//!
//! Place: [`interface`] is the table of C functions, which lie in `slots`; [`shared`] is the host
//! behind a lock, with the rendezvous of blocked calls. Time is virtual: it passes in `usleep`
//! and while `netdev_receive` waits for a segment, and creeps by a microsecond at each look at
//! it.
//!
//! Left out: UDP, IPv4.
//! Source: packetdrill's `so_testing.h` contract, as this project's documents describe it.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod interface;
mod marshal;
mod names;
pub mod shared;
mod slots;
