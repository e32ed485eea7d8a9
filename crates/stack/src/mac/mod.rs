//! IEEE 802.15.4 medium access: unslotted CSMA-CA in software, immediate ACKs, link retries.

pub mod config;
mod counters;
mod radio;

pub use config::Config;
pub use counters::{Counters, Drop};
pub use radio::{Action, Event, RadioCapabilities, RxMeta};

use crate::wire::LinkAddr;

/// A data frame for the layer above.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Who sent it over this hop.
    pub src: LinkAddr,
    /// This node's address as the frame had it, or [`LinkAddr::BROADCAST`].
    pub dst: LinkAddr,
    /// MAC payload: what follows the header, without FCS.
    pub payload: &'a [u8],
    /// The sender has more for us (frame pending bit).
    pub pending: bool,
    /// How it was heard.
    pub meta: RxMeta,
}

/// What became of an enqueued frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// As given at enqueueing.
    pub token: u16,
    /// As given at enqueueing.
    pub to: LinkAddr,
    /// Acknowledged, or broadcast.
    pub delivered: bool,
    /// Why the last attempt failed; `None` when delivered.
    pub reason: Option<Drop>,
    /// Attempts made, at least 1.
    pub attempts: u8,
}
