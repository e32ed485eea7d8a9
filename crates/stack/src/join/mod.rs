//! Joining a mesh with a key of one's own: CoJP above OSCORE.
//!
//! ```text
//! pledge                                    JRC (join registrar/coordinator)
//!   POST /j { network: PAN }  ----------->    derives the pledge's join key, checks the sequence
//!   { keys: [index, network key, sequence] }  <-----------
//! ```
//!
//! Purpose: a device that has only its own join key gets the key of the network, and no node in
//! between learns it. There is one request and one answer, both encrypted CoAP messages over UDP.
//! Place: an application passes in the datagrams of port 5683; links are not visible here. A node
//! with a [`JoinProxy`](crate::node::JoinProxy) carries them: in clear over the hop between a
//! pledge and a join proxy, sealed beyond it. Left out: short addresses, more than one key, EDHOC;
//! retransmissions, which are requests of their own. Source: RFC 9031 for the objects and the
//! names, RFC 8613 for OSCORE, RFC 7252 for CoAP.

mod coap;
mod exchange;
mod objects;
mod oscore;
mod proxy;
mod renewal;
#[cfg(test)]
mod tests;

pub(crate) use coap::{is_message, is_request};
pub use exchange::{DATAGRAM_LEN_MAX, JoinError, JoinKey, Pledge, UnverifiedRequest, hear};
pub use objects::{Configuration, Request};
pub(crate) use proxy::{Asker, StatelessProxy};
pub use renewal::{announce, confirming, is_confirmed};

/// The port of CoAP, of JRCs and join proxies (RFC 7252 §6.1).
pub const PORT: u16 = 5683;
