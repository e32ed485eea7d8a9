//! The host's side of Spinel, through which an IEEE 802.15.4 radio co-processor (RCP) is driven:
//! a dongle with OpenThread's `ot-rcp`.
//!
//! Purpose: a [`Session`] starts and configures an RCP, sends and receives frames through it, and
//! configures it anew when it restarts. Place: between a serial line, or any other stream of bytes,
//! and a MAC that leaves CSMA, ACKs and their waiting times to the radio. A session does no I/O and
//! reads no clock: bytes and the time go in; bytes, events and a deadline come out. Left out: the
//! line; frames secured by the RCP; frames in a slot of time of the receiver (CSL); several
//! interfaces behind one line; NCPs, which have Thread's stack of their own.
//!
//! Sources: Spinel's draft (draft-rquattle-spinel-unified), OpenThread's `spinel.h`, and what
//! firmware does.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod frame;
pub mod hdlc;
pub mod packed;
pub mod raw;

mod error;
mod session;

pub use error::Error;
pub use session::{
    Ack, Cause, Counters, Event, LOG_LEN_MAX, Outcome, Peer, Promiscuous, RadioCaps, RadioInfo,
    Received, Refusal, RoundTrip, Session, Settings,
};
