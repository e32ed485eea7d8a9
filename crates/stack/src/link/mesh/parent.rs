//! Settings of a parent of nodes that sleep.

use crate::time::Duration;

/// How packets for sleeping children are kept and sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndirectConfig {
    /// How long a child may be silent.
    pub child_timeout: Duration,
    /// Bytes of packets that wait for one child, seven more for each packet.
    pub child_bytes_max: usize,
    /// Whether one request brings all that waits; off, a frame upon each (OpenThread).
    pub drain: bool,
    /// Whether frames for a child that listens stand before all others (TCPlp §9.5).
    pub priority: bool,
    /// Whether they are tried as often as others, and soon again; off, once upon each request.
    pub retries: bool,
    /// Whether data of a child is taken as a request, too.
    pub data_asks: bool,
}

impl IndirectConfig {
    /// All that makes a child's receiver rest sooner.
    pub const DEFAULT: Self = Self {
        child_timeout: CHILD_TIMEOUT,
        child_bytes_max: usize::MAX,
        drain: true,
        priority: true,
        retries: true,
        data_asks: true,
    };
}

/// How long a child may be silent: two polls and a half at [`REST`](crate::mac::poll::REST).
pub(super) const CHILD_TIMEOUT: Duration = Duration::from_secs(600);
