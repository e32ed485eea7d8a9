//! Prefix information, which router advertisements and DIOs have in common.
//!
//! Behind type and length:
//! ```text
//! +---------------+---------------+
//! | Prefix length |L|A|R|reserved |
//! +---------------+---------------+-------------------------------+
//! |                        valid lifetime                         |
//! |                      preferred lifetime                       |
//! |                           reserved                            |
//! |                    prefix, or an address (R)                  |
//! +---------------------------------------------------------------+
//! ```
//! Sources: RFC 4861 §4.6.2; RFC 6275 §7.2 for R; RFC 6550 §6.7.10.

use core::net::Ipv6Addr;

use super::kind;
use crate::wire::cursor::{Full, Writer};

/// Prefix information (RFC 4861 §4.6.2; RFC 6275 §7.2 for the R flag), field by field: for callers
/// that read or write an option. What a mote keeps is `PrefixBytes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInformation {
    /// Leading bits of `prefix` that are valid.
    pub prefix_len: u8,
    /// The prefix is on-link; never set in a route-over mesh.
    pub on_link: bool,
    /// Hosts may form addresses from it.
    pub autonomous: bool,
    /// `prefix` holds the router's whole address.
    pub router_address: bool,
    /// Seconds; all ones: for ever.
    pub valid_lifetime_s: u32,
    /// Seconds; all ones: for ever.
    pub preferred_lifetime_s: u32,
    /// The prefix; bits behind `prefix_len` mean nothing unless `router_address` is set.
    pub prefix: Ipv6Addr,
}

/// Type and length of prefix information.
pub(crate) const PREFIX_HEAD: [u8; 2] = [kind::PREFIX, 4];

const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
const ROUTER_ADDRESS: u8 = 0x20;

impl PrefixInformation {
    pub(in crate::wire) fn parse(body: &[u8]) -> Option<Self> {
        let body: &PrefixBody = body.try_into().ok()?;
        let information = Self::of(body.first_chunk()?, prefix_in(body));
        (information.prefix_len <= 128).then_some(information)
    }

    const fn of(head: &[u8; HEAD_LEN], prefix: Ipv6Addr) -> Self {
        let [prefix_len, flags, _, _, _, _, d, e, f, g] = *head;
        Self {
            prefix_len,
            on_link: flags & ON_LINK != 0,
            autonomous: flags & AUTONOMOUS != 0,
            router_address: flags & ROUTER_ADDRESS != 0,
            valid_lifetime_s: valid_lifetime_s(head),
            preferred_lifetime_s: u32::from_be_bytes([d, e, f, g]),
            prefix,
        }
    }

    /// Appends the option; `head`: its type and length.
    pub(crate) fn emit(&self, w: &mut Writer<'_>, head: [u8; 2]) -> Result<(), Full> {
        w.put(&head)?;
        self.emit_body(w)
    }

    fn emit_body(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.on_link, ON_LINK)
            | flag(self.autonomous, AUTONOMOUS)
            | flag(self.router_address, ROUTER_ADDRESS);
        w.put(&[self.prefix_len, flags])?;
        w.u32(self.valid_lifetime_s)?;
        w.u32(self.preferred_lifetime_s)?;
        w.u32(0)?;
        w.put(&self.prefix.octets())
    }
}

/// The body of prefix information as it came: what stands behind type and length, with reserved
/// bits. A mote reads a field or two of it where it lies.
pub(crate) type PrefixBody = [u8; PREFIX_LEN];

const PREFIX_LEN: usize = 30;

/// Bytes of a body up to its reserved word: length of the prefix, flags, both lifetimes.
const HEAD_LEN: usize = 10;

/// The body of prefix information, if nodes may form addresses from the prefix.
pub(crate) fn usable_prefix(body: &[u8]) -> Option<&PrefixBody> {
    let body: &PrefixBody = body.try_into().ok()?;
    is_usable(body, &prefix_in(body)).then_some(body)
}

/// Whether nodes may form addresses from a prefix, of which `head` is what its option begins with
/// (RFC 4862 §5.5.3).
fn is_usable(head: &[u8], prefix: &Ipv6Addr) -> bool {
    matches!(head, [64, flags, ..] if flags & AUTONOMOUS != 0)
        && !prefix.is_unicast_link_local()
        && !prefix.is_multicast()
}

/// The prefix in the body of prefix information.
pub(crate) fn prefix_in(body: &PrefixBody) -> Ipv6Addr {
    Ipv6Addr::from(body.last_chunk().copied().unwrap_or_default())
}

/// How long addresses of a prefix are valid, seconds; all ones: for ever. `head`: what its option
/// begins with, behind type and length.
pub(crate) const fn valid_lifetime_s(head: &[u8]) -> u32 {
    match *head {
        [_, _, a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Prefix information that a mote keeps and hands on: bytes of its option with reserved bits
/// cleared. Its fields: [`Self::information`].
#[cfg(feature = "rpl")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixBytes {
    head: [u8; HEAD_LEN],
    prefix: Ipv6Addr,
}

#[cfg(feature = "rpl")]
impl PrefixBytes {
    /// Takes the body of an option.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(crate) fn of(body: &PrefixBody) -> Self {
        let mut head = [0; HEAD_LEN];
        for ((to, from), mask) in head.iter_mut().zip(body).zip(DEFINED) {
            *to = from & mask;
        }
        let prefix = prefix_in(body);
        Self { head, prefix }
    }

    /// The prefix; bits behind its length mean nothing unless it holds the router's whole address.
    pub const fn prefix(&self) -> Ipv6Addr {
        self.prefix
    }

    /// Its fields: length, flags, lifetimes and prefix.
    pub const fn information(&self) -> PrefixInformation {
        PrefixInformation::of(&self.head, self.prefix)
    }

    /// How long addresses of it are valid, seconds; all ones: for ever.
    pub const fn valid_lifetime_s(&self) -> u32 {
        valid_lifetime_s(&self.head)
    }

    /// Whether nodes may form addresses from it (RFC 4862 §5.5.3).
    pub(crate) fn is_usable(&self) -> bool {
        is_usable(&self.head, &self.prefix)
    }

    /// Appends the option; `head`: its type and length.
    pub(crate) fn emit(&self, w: &mut Writer<'_>, head: [u8; 2]) -> Result<(), Full> {
        w.put(&head)?;
        w.put(&self.head)?;
        w.put(&[0; 4])?;
        w.put(&self.prefix.octets())
    }
}

/// The bits of [`PrefixBytes::head`] that are defined.
#[cfg(feature = "rpl")]
const DEFINED: &[u8; HEAD_LEN] = &[0xff, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

#[cfg(feature = "rpl")]
impl From<PrefixInformation> for PrefixBytes {
    fn from(information: PrefixInformation) -> Self {
        let mut body = [0; PREFIX_LEN];
        // It fits by construction.
        let _ = information.emit_body(&mut Writer::new(&mut body));
        Self::of(&body)
    }
}
