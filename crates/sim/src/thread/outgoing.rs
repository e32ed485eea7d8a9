//! A frame before it has its numbers.

use motet::wire::LinkAddr;

/// A frame that is to be sent: it gets its counter and its sequence number when it goes.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) pan: u16,
    pub(super) from: LinkAddr,
    pub(super) to: LinkAddr,
    pub(super) payload: Vec<u8>,
    pub(super) is_secured: bool,
    /// Whether more waits for its receiver.
    pub(super) has_more: bool,
    /// The short address of the child that it waited for.
    pub(super) kept_for: Option<u16>,
}
