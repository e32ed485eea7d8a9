//! Fixed memory: rings over borrowed bytes. Knows no protocol.

pub(crate) mod packet_queue;
pub(crate) mod ring;
pub(crate) mod whole;
