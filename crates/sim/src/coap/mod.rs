//! CoAP as in the studies that compare it with TCP, as pure state machines.
//!
//! Purpose: confirmable requests with a body in blocks, one under way at a time, and requests that
//! are not confirmed. [`timing`] decides when a request is sent again and when it is given up,
//! [`sender`] numbers messages and blocks, [`receiver`] answers them. [`push`] and [`take`] are the
//! two sides of a whole body, firmware for example, also in sets of blocks. Place: bytes and
//! instants in, bytes and verdicts out; [`crate::apps::coap`] and [`crate::apps::push`] run them on
//! a node. Left out: observation, proxies, discovery, separate responses, DTLS. Sources: RFC 7252,
//! RFC 7959, RFC 7967, RFC 9177; draft-ietf-core-cocoa-03; `TCPlp` §9.

pub mod push;
pub mod receiver;
pub mod sender;
pub mod take;
pub mod timing;

/// UDP port of servers (RFC 7252 §6.1).
pub const PORT: u16 = 5_683;
