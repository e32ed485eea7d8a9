//! What a connection has handed out before it may send it: see `prefetch`.

/// What a connection has handed out and not sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefetched {
    /// Octets behind SND.NXT, and of each segment of them.
    pub(super) len: u16,
    pub(super) segment_len: u16,
    /// When the first of them was handed out, ms.
    pub(super) since_ms: u32,
    /// How long the one sent last had been out, ms.
    pub(super) was_out_ms: u16,
}
