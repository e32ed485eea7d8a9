//! Bytes to typed headers and back; stateless.
//!
//! Purpose: every header Motet reads or writes, as a typed value that cannot be malformed.
//! Place: the innermost layer; knows no protocol state, no time, no tables.
//! Left out: policy. A parser says what the bytes are, never what to do about them.
//!
//! ```
//! use motet::wire::{ipv6, udp};
//!
//! let (src, dst) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
//! let payload = b"21.5 C";
//! let mut packet = [0; 64];
//!
//! // Emit: the IPv6 header, the UDP header, the payload, and then the checksum over all three.
//! let fixed = ipv6::Header {
//!     traffic_class: ipv6::TrafficClass::default(),
//!     flow_label: 0,
//!     payload_len: (udp::HEADER_LEN + payload.len()) as u16,
//!     next_header: udp::NEXT_HEADER,
//!     hop_limit: 64,
//!     src,
//!     dst,
//! };
//! let ports = udp::Header { src_port: 5683, dst_port: 5683 };
//! let at = fixed.emit(&mut packet)?;
//! let body = at + ports.emit(payload.len(), &mut packet[at..])?;
//! let end = body + payload.len();
//! packet[body..end].copy_from_slice(payload);
//! udp::fill_checksum(&src, &dst, &mut packet[at..end]);
//!
//! // Parse: bytes behind the length that the header states are cut off.
//! let (header, datagram) = ipv6::Header::parse(&packet)?;
//! assert_eq!(header, fixed);
//! assert!(udp::is_checksum_valid(&header.src, &header.dst, datagram));
//! assert_eq!(udp::Header::parse(datagram)?, (ports, &payload[..]));
//!
//! // A damaged packet is an error that says why.
//! let error = ipv6::Header::parse(&packet[..50]).unwrap_err();
//! assert_eq!(error.reason(), "IPv6 payload shorter than its length field");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What every parser promises
//!
//! - It takes any bytes, of any length, and never panics. It allocates nothing and keeps no state.
//!   Its work is linear in the length. What it returns may borrow from the bytes.
//! - It checks the *form*: the bytes suffice, each length field fits the bytes behind it, versions
//!   and reserved modes are ones that it can read.
//! - It does not check the *meaning*: addresses, ports, sequence numbers, contexts, lifetimes, hop
//!   limits and whether a message is expected are for the protocol above.
//! - It verifies no checksum. The receiver of a packet does, by `is_checksum_valid` of [`udp`],
//!   [`tcp`] or [`icmpv6`], which need the addresses of the IPv6 header. In a node, UDP, TCP and
//!   ICMPv6 verify what is addressed to the node, and a relay verifies nothing that it forwards as
//!   it came. The FCS of a frame is checked by [`ieee802154::check_fcs`], before the header is
//!   parsed.
//! - A parser of a header returns the payload, too. It ends where the length field says; bytes
//!   behind that are padding. In a format without a length field the payload is all that follows.
//! - Types and options that a receiver must tolerate are no errors: they are a variant such as
//!   [`icmpv6::Message::Other`] or [`ndp::NdpOption::Other`], or are skipped, as TCP options are.
//!
//! # Emit and parse
//!
//! `emit` writes to the caller's bytes, a slice or a [`cursor::Writer`]. It fails with
//! [`cursor::Full`] if the bytes are too few, or if a value does not fit its field; the bytes
//! written until then mean nothing. A field that follows from others (the data offset of TCP, the
//! length of UDP, the flags of a compressed header) is no field of the value.
//!
//! `parse` reads what `emit` wrote as the same value. `emit` writes what `parse` read so that it
//! reads as the same value again. The bytes are the same as well, with four exceptions:
//!
//! - A checksum is emitted as zero, and `fill_checksum` completes it.
//! - Reserved bits that the value does not hold are emitted as zero.
//! - Options that were skipped are not emitted.
//! - If a format can encode a value in several ways, `emit` chooses the shortest one
//!   ([`lowpan_iphc`], [`lowpan_nhc`]).
//!
//! Routing headers are written by functions that take the addresses of a path, and read as an
//! iterator over the same addresses.
//!
//! # Errors
//!
//! Each format has an error type with one variant for each way to be malformed. `reason()` states
//! it in words, for counters and captures, and the type implements [`core::error::Error`]. Formats
//! with one way to be malformed return [`cursor::Truncated`] or `None` instead. An error means that
//! the bytes are to be dropped and the reason counted.

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
pub mod lowpan_mesh;
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
#[cfg(all(feature = "rpl", any(test, not(feature = "plain-rpl"))))]
pub(crate) mod source_route_compressed;
pub mod tcp;
pub mod tcphc;
#[cfg(feature = "tcple")]
pub mod tcple;
pub mod udp;

pub use link_addr::LinkAddr;
pub(crate) use link_addr::same;
/// The form of source routes in the memory of this build.
#[cfg(any(not(feature = "rpl"), feature = "plain-rpl"))]
pub(crate) use source_route as route_form;
#[cfg(all(feature = "rpl", not(feature = "plain-rpl")))]
pub(crate) use source_route_compressed as route_form;
