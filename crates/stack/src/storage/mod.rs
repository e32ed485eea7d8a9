//! Fixed memory: rings over borrowed bytes. Knows no protocol.

pub(crate) mod packet_queue;
pub(crate) mod ring;
#[cfg(any(feature = "router", feature = "sleepy"))]
pub(crate) mod shelf;
pub(crate) mod whole;
