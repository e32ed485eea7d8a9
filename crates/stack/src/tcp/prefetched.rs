//! The prefetched data of a connection: see `prefetch`.

/// Data that a connection has handed out and not sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefetched {
    /// Octets from SND.NXT on that were handed out, and octets of each of their segments.
    pub(super) len: u16,
    pub(super) segment_len: u16,
    /// When the first of these segments was handed out, ms modulo 2^32.
    pub(super) since_ms: u32,
    /// How long the segment sent last had been handed out before, ms.
    pub(super) was_out_ms: u16,
}
