//! Fixed memory: rings over borrowed bytes. Knows no protocol.

#[cfg(any(feature = "entry", feature = "sleepy"))]
pub(crate) mod keyed_queues;
pub(crate) mod packet_queue;
pub(crate) mod ring;
pub(crate) mod whole;
