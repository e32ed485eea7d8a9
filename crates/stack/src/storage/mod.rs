//! Fixed memory: rings over borrowed bytes. Knows no protocol.

pub mod packet_queue;
pub mod ring;
pub mod whole;
