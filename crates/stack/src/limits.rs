//! Every table size and bound that is not borrowed from the caller, in one place.

/// IPv6's minimum link MTU, bytes (RFC 8200 §5): the largest packet a mesh carries.
pub const IPV6_MTU_MIN: usize = 1280;

/// IEEE 802.15.4 `aMaxPHYPacketSize`: PSDU bytes, FCS included.
pub const PSDU_LEN_MAX: usize = 127;

/// Contexts a 6LoWPAN may define (RFC 6282 §3.1.2: four bits).
pub const CONTEXTS_MAX: usize = 16;
