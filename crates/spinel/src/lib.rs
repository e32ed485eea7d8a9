//! The host's side of Spinel, through which an IEEE 802.15.4 radio co-processor (RCP) is driven:
//! its framing and its values.
//!
//! Sources: Spinel's draft (draft-rquattle-spinel-unified), OpenThread's `spinel.h`, and what
//! firmware does.

pub mod frame;
pub mod hdlc;
pub mod packed;
pub mod raw;
