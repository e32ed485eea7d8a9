//! The prefixes that both ends of a link know and need not send.
//!
//! Place: filled by `node` from router advertisements (6CO), read by both directions of the
//! compression. Left out: lifetimes; `node` stops compressing with what has expired.
//! Sources: RFC 6282 §3.1.2, §3.2.2; RFC 6775 §5.4.

use core::net::Ipv6Addr;

use crate::limits::CONTEXTS_MAX;
use crate::wire::ndp::LowpanContext;

/// One context: a prefix of up to 128 bits that the air need not carry (RFC 6282 §3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    prefix: [u8; 16],
    prefix_len: u8,
    compress: bool,
}

/// The form of packets on the air, as far as their DODAG settles it.
#[cfg(feature = "rpl")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routing {
    /// The root's address, which is the DODAG's identifier.
    pub root: Ipv6Addr,
    /// T: routing headers are written as 6LoRH (RFC 9035 §3), else as RFC 6282 has it.
    pub is_compressed: bool,
    /// The type of the RPL option in hop-by-hop options, one of those of
    /// [`rpl_option`](crate::wire::rpl_option) (RFC 9008 §4.1.3).
    pub option_type: u8,
}

#[cfg(feature = "rpl")]
impl Routing {
    /// Whether routing headers are written as 6LoRH: always in a build without the feature
    /// `plain-rpl`, whose motes are in no other DODAG.
    pub(crate) const fn compresses(&self) -> bool {
        !cfg!(feature = "plain-rpl") || self.is_compressed
    }
}

/// The sixteen contexts of a 6LoWPAN, and what its DODAG settles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contexts {
    slots: [Option<Context>; CONTEXTS_MAX],
    #[cfg(feature = "rpl")]
    routing: Option<Routing>,
}

impl Contexts {
    /// A table in which no context is defined.
    pub const fn new() -> Self {
        Self {
            slots: [None; CONTEXTS_MAX],
            #[cfg(feature = "rpl")]
            routing: None,
        }
    }

    /// Takes over what the DODAG of this node settles; `None`: the node is in none, and no RPL
    /// packet information leaves it. Both forms of routing headers are understood either way.
    #[cfg(feature = "rpl")]
    pub const fn set_routing(&mut self, routing: Option<Routing>) {
        self.routing = routing;
    }

    /// The settings of this node's DODAG.
    #[cfg(feature = "rpl")]
    pub const fn routing(&self) -> Option<&Routing> {
        self.routing.as_ref()
    }

    /// Defines context `id` as the first `prefix_len` bits of `prefix`; replaces what it was.
    ///
    /// `compress`: it may be used to compress. A new context should only decompress until
    /// every neighbour knows it, a leaving one until none uses it (RFC 6775 §5.4.2).
    ///
    /// Returns whether `id` is below 16 and `prefix_len` at most 128.
    pub fn set(&mut self, id: u8, prefix: Ipv6Addr, prefix_len: u8, compress: bool) -> bool {
        let context = Context::new(prefix, prefix_len, compress);
        match (self.slots.get_mut(usize::from(id)), context) {
            (Some(slot), Some(context)) => {
                *slot = Some(context);
                true
            }
            _ => false,
        }
    }

    /// Takes over an advertised context, or forgets it when its lifetime is zero; returns
    /// whether that changed anything.
    pub(crate) fn learn(&mut self, option: &LowpanContext) -> bool {
        let changes = self.would_change(option);
        if option.lifetime_min == 0 {
            self.remove(option.id);
        } else {
            self.set(option.id, option.prefix, option.prefix_len, option.compress);
        }
        changes
    }

    /// Whether [`Self::learn`] would change anything.
    pub(crate) fn would_change(&self, option: &LowpanContext) -> bool {
        let context = match option.lifetime_min {
            0 => None,
            _ => Context::new(option.prefix, option.prefix_len, option.compress),
        };
        let is_possible = option.lifetime_min == 0 || context.is_some();
        is_possible && self.get(option.id).copied() != context
    }

    /// Uses no context to compress any more: no router has confirmed that neighbours still know
    /// them, but some may still use them (RFC 6775 §5.4.2).
    pub(crate) fn stop_compressing(&mut self) {
        for context in self.slots.iter_mut().flatten() {
            context.compress = false;
        }
    }

    /// The contexts that are defined, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &Context)> {
        let numbered = (0..).zip(&self.slots);
        numbered.filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }

    /// Forgets context `id`, 0 to 15; other values do nothing.
    pub fn remove(&mut self, id: u8) {
        if let Some(slot) = self.slots.get_mut(usize::from(id)) {
            *slot = None;
        }
    }

    /// Context `id`, if it is defined.
    pub fn get(&self, id: u8) -> Option<&Context> {
        self.slots.get(usize::from(id))?.as_ref()
    }

    /// The contexts that may be used to compress, with their identifiers.
    pub(crate) fn compressing(&self) -> impl Iterator<Item = (u8, &Context)> {
        self.iter().filter(|(_, context)| context.compress)
    }
}

impl Context {
    /// The prefix of link-local addresses, as if it were a context.
    pub(super) const LINK_LOCAL: Self = Self {
        prefix: [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        prefix_len: 64,
        compress: false,
    };

    fn new(prefix: Ipv6Addr, prefix_len: u8, compress: bool) -> Option<Self> {
        if prefix_len > 128 {
            return None;
        }
        let mut octets = prefix.octets();
        for (octet, mask) in octets.iter_mut().zip(masks(prefix_len)) {
            *octet &= mask;
        }
        Some(Self {
            prefix: octets,
            prefix_len,
            compress,
        })
    }

    /// The prefix, with zeros behind it.
    pub fn prefix(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.prefix)
    }

    /// How many leading bits of the prefix count, 0 to 128.
    pub const fn prefix_len(&self) -> u8 {
        self.prefix_len
    }

    /// Whether the context may be used to compress, not only to decompress.
    pub const fn compress(&self) -> bool {
        self.compress
    }

    /// The address made of this prefix and an interface identifier: bits that the prefix
    /// covers are the prefix's, others of the last 64 the identifier's, others zero
    /// (RFC 6282 §3.1.1).
    pub(crate) fn expand(&self, iid: &[u8; 8]) -> Ipv6Addr {
        let mut octets = [0; 16];
        if let Some(low) = octets.last_chunk_mut() {
            *low = *iid;
        }
        for ((octet, prefix), mask) in octets
            .iter_mut()
            .zip(&self.prefix)
            .zip(masks(self.prefix_len))
        {
            *octet = *octet & !mask | prefix;
        }
        Ipv6Addr::from(octets)
    }

    /// The first 64 bits, as unicast-prefix-based multicast addresses hold them (RFC 3306
    /// §4); `None` for a longer prefix, which such an address cannot have.
    pub(crate) fn multicast_prefix(&self) -> Option<[u8; 8]> {
        (self.prefix_len <= 64).then(|| high_64(self.prefix()))
    }
}

/// For each octet of an address, the bits that a prefix of `len` bits covers.
fn masks(len: u8) -> impl Iterator<Item = u8> {
    (0..16u8).map(move |index| {
        let covered = len.saturating_sub(index * 8).min(8);
        !(0xffu32 >> covered) as u8
    })
}

/// The first half of `addr`.
pub(super) const fn high_64(addr: Ipv6Addr) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = addr.octets();
    [a, b, c, d, e, f, g, h]
}

/// The second half of `addr`: of most addresses the interface identifier.
// Not inlined: each copy of eight bytes takes some forty of code.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub(super) const fn low_64(addr: Ipv6Addr) -> [u8; 8] {
    let [.., a, b, c, d, e, f, g, h] = addr.octets();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn context(prefix: &str, len: u8) -> Context {
        Context::new(prefix.parse().unwrap(), len, true).unwrap()
    }

    #[test]
    fn bits_come_from_prefix_then_identifier_then_zero() {
        let iid = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
        let cases = [
            ("fd00:1:2:3::", 64, "fd00:1:2:3:123:4567:89ab:cdef"),
            ("fd00:1:2:3::", 48, "fd00:1:2:0:123:4567:89ab:cdef"),
            ("fd00:1:2:3:ff00::", 68, "fd00:1:2:3:f123:4567:89ab:cdef"),
            ("fd00::7", 128, "fd00::7"),
            ("::", 0, "::123:4567:89ab:cdef"),
        ];
        for (prefix, len, expected) in cases {
            let expected: Ipv6Addr = expected.parse().unwrap();
            assert_eq!(
                context(prefix, len).expand(&iid),
                expected,
                "{prefix}/{len}"
            );
        }
    }

    #[test]
    fn bits_behind_the_prefix_are_dropped() {
        assert_eq!(
            context("fd00::ffff", 64).prefix(),
            context("fd00::", 64).prefix()
        );
        assert_eq!(
            context("fd00:ffff::", 20).prefix(),
            "fd00:f000::".parse::<Ipv6Addr>().unwrap()
        );
    }

    #[test]
    fn table() {
        let mut contexts = Contexts::new();
        let prefix = "fd00::".parse().unwrap();
        assert!(contexts.set(15, prefix, 64, true));
        assert!(contexts.set(3, prefix, 64, false));
        assert!(!contexts.set(16, prefix, 64, true));
        assert!(!contexts.set(1, prefix, 129, true));
        assert!(contexts.get(16).is_none() && contexts.get(1).is_none());
        assert!(!contexts.get(3).unwrap().compress());
        let mut compressing = contexts.compressing();
        assert!(matches!(compressing.next(), Some((15, context)) if context.prefix_len() == 64));
        assert!(compressing.next().is_none());
        drop(compressing);
        contexts.remove(15);
        assert!(contexts.get(15).is_none());
        contexts.set(4, prefix, 64, true);
        contexts.stop_compressing();
        assert!(contexts.compressing().next().is_none());
        assert!(contexts.get(4).is_some(), "it still decompresses");
    }

    proptest! {
        #[test]
        fn expansion_is_prefix_or_identifier(prefix: u128, len in 0u8..=128, iid: u64) {
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            let context = Context::new(Ipv6Addr::from(prefix), len, true).unwrap();
            let expected = prefix & mask | u128::from(iid) & !mask;
            prop_assert_eq!(context.expand(&iid.to_be_bytes()), Ipv6Addr::from(expected));
        }
    }
}
