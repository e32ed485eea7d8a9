//! The addresses that this machine's own routes place behind an interface.
//!
//! Purpose: finds forged packets. A packet from another interface whose source lies behind this one
//! is forged (RFC 2827, BCP 38). Default routes are ignored, since they cover every address.
//! Place: [`crate::outside`] makes rules of the addresses, and [`crate::fair`] checks the source of
//! each packet from the queue. Left out: routing policies and tables by source; link-local
//! addresses, which no router passes on.
//!
//! Source: the kernel's `net/ipv6/route.c`, which writes `/proc/net/ipv6_route`.

use std::{
    fs::File,
    io::{self, Read as _},
    net::Ipv6Addr,
};

/// Prefixes, the longest first, and whether each is behind the interface.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Inside {
    prefixes: Vec<Prefix>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Prefix {
    bits: u128,
    len: u8,
    is_inside: bool,
}

impl Inside {
    /// Reads from the kernel's routes which addresses are behind `interface` now.
    pub fn read(interface: &str) -> io::Result<Self> {
        let mut text = String::new();
        File::open(ROUTES)?
            .take(ROUTES_LEN_MAX)
            .read_to_string(&mut text)?;
        Ok(Self::parse(&text, interface))
    }

    pub(crate) fn parse(text: &str, interface: &str) -> Self {
        let mut prefixes: Vec<Prefix> = text
            .lines()
            .filter_map(|line| Prefix::parse(line, interface))
            .take(PREFIXES_MAX)
            .collect();
        // A router's own addresses stand beside the prefix that they are of, once on each
        // interface.
        prefixes.sort_by_key(|prefix| (u8::MAX - prefix.len, prefix.bits, prefix.is_inside));
        prefixes.dedup_by_key(|prefix| (prefix.len, prefix.bits));
        // Without any inside there is nothing to compare with.
        if !prefixes.iter().any(|prefix| prefix.is_inside) {
            prefixes.clear();
        }
        Self { prefixes }
    }

    /// Whether `addr` is behind the interface: the longest prefix that holds it leads there.
    pub fn has(&self, addr: &Ipv6Addr) -> bool {
        let bits = addr.to_bits();
        let mut prefixes = self.prefixes.iter();
        let longest = prefixes.find(|prefix| prefix.holds(bits));
        longest.is_some_and(|prefix| prefix.is_inside)
    }

    /// The prefixes as a list in which the first prefix that holds an address says whether it is
    /// inside; an address that no prefix holds is not. Prefixes that change nothing are left out.
    pub(crate) fn cuts(&self) -> Vec<(Ipv6Addr, u8, bool)> {
        let place = self.prefixes.iter().enumerate();
        let cuts = place.filter(|(place, prefix)| {
            // Behind it, the longest of the shorter ones comes first.
            let mut shorter = self.prefixes.iter().skip(place + 1);
            let around = shorter.find(|shorter| shorter.holds(prefix.bits));
            prefix.is_inside != around.is_some_and(|around| around.is_inside)
        });
        let cuts = cuts.map(|(_, cut)| (Ipv6Addr::from_bits(cut.bits), cut.len, cut.is_inside));
        cuts.collect()
    }

    /// Whether the packet that begins with `head` names a source behind the interface.
    pub fn has_source_of(&self, head: &[u8]) -> bool {
        let source = head
            .get(SOURCE_AT..)
            .and_then(|rest| rest.first_chunk::<16>());
        source.is_some_and(|source| self.has(&Ipv6Addr::from(*source)))
    }
}

impl Prefix {
    /// A line of the kernel's: destination and length, source and length, next hop, metric, two
    /// counters, flags, and the interface's name.
    fn parse(line: &str, interface: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [to, len, _, from_len, _, _, _, _, flags, device] = words.as_slice() else {
            return None;
        };
        let len = u8::from_str_radix(len, 16).ok()?;
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let bits = u128::from_str_radix(to, 16).ok()?;
        let addr = Ipv6Addr::from_bits(bits);
        let is_elsewhere = addr.is_unicast_link_local() || addr.is_multicast();
        let is_real = flags & REJECTS == 0 && *from_len == "00";
        (len > 0 && len <= 128 && is_real && !is_elsewhere).then_some(Self {
            bits,
            len,
            is_inside: *device == interface,
        })
    }

    const fn holds(&self, bits: u128) -> bool {
        // A length of 0 is none of ours, so that this shifts by less than 128.
        (self.bits ^ bits) >> (128 - self.len as u32) == 0
    }
}

/// Where the kernel lists its routes.
const ROUTES: &str = "/proc/net/ipv6_route";

/// Bytes of the list that are read: some 30,000 routes.
const ROUTES_LEN_MAX: u64 = 4 << 20;

/// Prefixes that are known: each packet may be compared with all of them.
const PREFIXES_MAX: usize = 4_096;

/// `RTF_REJECT`: such a route leads nowhere.
const REJECTS: u32 = 0x200;

/// Where an IPv6 header has its source.
const SOURCE_AT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
fd120000000000010000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001    wpan0
fd120000000000010000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 80200001    wpan0
fd120000000000010000000000000099 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000003 00000000 00000005     eth0
fd340000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
fd560000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000002 00000000 00000001    wpan0
ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001    wpan0
no route
";

    #[test]
    fn the_longest_prefix_says_where_an_address_is() {
        let inside = Inside::parse(TEXT, "wpan0");
        for (addr, is_inside) in [
            ("fd12:0:0:1::7", true),
            ("fd12:0:0:1::1", true),
            ("fd12:0:0:1::99", false),
            ("fd12:0:0:2::7", false),
            ("fd34::7", false),
            ("fd56::7", false),
            ("2001:db8::7", false),
            ("fe80::7", false),
        ] {
            let addr: Ipv6Addr = addr.parse().unwrap();
            assert_eq!(inside.has(&addr), is_inside, "{addr}");
            let head = [&[0; 8][..], &addr.octets(), &[0; 16]].concat();
            assert_eq!(inside.has_source_of(&head), is_inside, "{addr}");
        }
        assert!(!inside.has_source_of(&[0; 20]));
        assert_eq!(Inside::parse(TEXT, "wpan1"), Inside::default());
    }

    #[test]
    fn only_prefixes_that_change_something_are_cuts() {
        let cuts = Inside::parse(TEXT, "wpan0").cuts();
        let expected = [("fd12:0:0:1::99", 128, false), ("fd12:0:0:1::", 64, true)];
        let expected = expected.map(|(addr, len, is)| (addr.parse().unwrap(), len, is));
        assert_eq!(cuts, expected);
        assert_eq!(Inside::parse(TEXT, "wpan1").cuts(), []);
        // One inside what is outside of what is inside.
        let line = TEXT.lines().nth(1).unwrap();
        let text = [
            line.replace(" 40 ", " 20 "),
            line.replace(" 40 ", " 30 ").replace("wpan0", "eth0"),
            line.to_owned(),
        ];
        let cuts = Inside::parse(&text.join("\n"), "wpan0").cuts();
        let kinds: Vec<_> = cuts.iter().map(|(_, len, is)| (*len, *is)).collect();
        assert_eq!(kinds, [(64, true), (48, false), (32, true)]);
    }

    #[test]
    fn hostile_lines_are_no_routes() {
        let line = TEXT.lines().nth(1).unwrap();
        for (from, to) in [(" 40 ", " 81 "), ("fd12", "xd12"), ("00000001 ", "")] {
            assert_eq!(Prefix::parse(&line.replace(from, to), "wpan0"), None);
        }
        assert!(Prefix::parse(line, "wpan0").is_some());
    }

    #[test]
    fn this_machines_own_routes_can_be_read() {
        // A kernel without IPv6 has no such file.
        if std::fs::exists(ROUTES).unwrap() {
            let _ = Inside::read("lo").unwrap();
        }
    }
}
