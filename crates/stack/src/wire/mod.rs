//! Bytes to typed headers and back; stateless.
//!
//! Purpose: every header Motet reads or writes, as a typed value that cannot be malformed.
//! Place: the innermost layer; knows no protocol state, no time, no tables.
//! Left out: policy. A parser says what the bytes are, never what to do about them.

#[cfg(feature = "tcple")]
pub mod att;
pub mod checksum;
pub mod cursor;
pub mod icmpv6;
pub mod ieee802154;
pub mod ipv6;
pub mod ipv6_fragment;
#[cfg(feature = "ble")]
pub mod l2cap;
mod link_addr;
pub mod lollipop;
#[cfg(feature = "rpl")]
pub mod lorh;
pub mod lowpan_dispatch;
pub mod lowpan_frag;
pub mod lowpan_iphc;
pub mod lowpan_nhc;
pub mod ndp;
#[cfg(feature = "rpl")]
pub mod rpl;
#[cfg(feature = "rpl")]
pub mod rpl_option;
#[cfg(not(feature = "rpl"))]
#[path = "rpl_option_absent.rs"]
pub mod rpl_option;
#[cfg(feature = "rpl")]
pub mod source_route;
#[cfg(not(feature = "rpl"))]
#[path = "source_route_absent.rs"]
pub(crate) mod source_route;
pub mod tcp;
pub mod tcphc;
#[cfg(feature = "tcple")]
pub mod tcple;
pub mod udp;

pub use link_addr::LinkAddr;
pub(crate) use link_addr::same;
