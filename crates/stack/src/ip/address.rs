//! The addresses of a node, and which of them to speak from.
//!
//! Sources: RFC 4291 §2.8 (addresses a node answers to), RFC 6724 §5 rules 1, 2 and 8
//! (source selection; the other rules need addresses a mote does not have).

use core::net::Ipv6Addr;

use super::route::{Prefix, common_prefix_len};
use super::{Iid, InterfaceId};
use crate::limits::ADDRESSES_MAX;

/// All nodes on the link (RFC 4291 §2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers on the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// All nodes on the link that speak RPL (RFC 6550 §6).
pub const ALL_RPL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a);

/// One address of one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// A unicast address of this node (RFC 4291 §2.5).
    pub addr: Ipv6Addr,
    /// The interface that has the address.
    pub interface: InterfaceId,
}

/// The addresses of one node.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    table: [Option<Address>; ADDRESSES_MAX],
    /// The prefix of 64 bits whose addresses are valid within a mesh alone.
    #[cfg(feature = "thread")]
    pub(super) mesh_local: Option<[u8; 8]>,
}

impl Addresses {
    /// Adds an address; true when it is there afterwards.
    pub(super) fn add(&mut self, address: Address) -> bool {
        if self.table.contains(&Some(address)) {
            return true;
        }
        match self.table.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => {
                *slot = Some(address);
                true
            }
            None => false,
        }
    }

    /// Forgets the addresses of `interface` inside `prefix`.
    pub(super) fn remove(&mut self, interface: InterfaceId, prefix: Prefix) {
        for slot in &mut self.table {
            if slot.is_some_and(|a| a.interface == interface && prefix.contains(&a.addr)) {
                *slot = None;
            }
        }
    }

    /// Forgets the addresses of `interface` but the link-local one.
    #[cfg(feature = "thread")]
    pub(super) fn forget(&mut self, interface: InterfaceId) {
        for slot in &mut self.table {
            let stays = |a: &Address| a.interface != interface || a.addr.is_unicast_link_local();
            if !slot.as_ref().is_some_and(stays) {
                *slot = None;
            }
        }
    }

    /// How well an address of this node suits to speak to `dst` from, the best being 128: as many
    /// bits as they have in common (RFC 6724 §5 rule 8). Within a Thread network the prefix alone
    /// counts, so that the first of several addresses is taken, not the one that changes with the
    /// place; and an address that is valid there alone is the last choice for others (rule 2).
    fn nearness(&self, addr: &Ipv6Addr, dst: &Ipv6Addr) -> u8 {
        let bits = common_prefix_len(addr, dst);
        #[cfg(feature = "thread")]
        if let Some(prefix) = self.mesh_local {
            let is_local = addr.octets().starts_with(&prefix);
            return match bits.min(64) {
                ..64 if is_local => 0,
                bits => bits + 1,
            };
        }
        bits
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Address> {
        self.table.iter().flatten()
    }

    /// Whether a unicast `dst` names this node. A link-local address counts only on its
    /// own link, because the same one may exist on another (RFC 4007 §6).
    pub(super) fn owns(&self, dst: &Ipv6Addr, arrived_on: InterfaceId) -> bool {
        let on_link = dst.is_unicast_link_local();
        self.iter()
            .any(|a| a.addr == *dst && (!on_link || a.interface == arrived_on))
    }

    /// Whether this node listens to the multicast group `dst`: all nodes, all routers (when
    /// it is one), all nodes that speak RPL, and the solicited-node group of each of its addresses.
    pub(super) fn joined(&self, dst: &Ipv6Addr, is_router: bool) -> bool {
        *dst == ALL_NODES
            || (cfg!(feature = "rpl") && *dst == ALL_RPL_NODES)
            || (is_router && *dst == ALL_ROUTERS)
            || self.iter().any(|a| solicited_node(&a.addr) == *dst)
    }

    /// The address to speak to `dst` from when the packet leaves by `egress`.
    pub(super) fn source_for(&self, dst: &Ipv6Addr, egress: InterfaceId) -> Option<Ipv6Addr> {
        let wants_link_local = dst.is_unicast_link_local() || dst.is_multicast();
        let mut best: Option<(u32, Ipv6Addr)> = None;
        for address in self.iter() {
            let is_link_local = address.addr.is_unicast_link_local();
            if is_link_local != wants_link_local {
                continue;
            }
            let leaves_here = address.interface == egress;
            if is_link_local && !leaves_here {
                continue;
            }
            let score =
                u32::from(self.nearness(&address.addr, dst)) + if leaves_here { 256 } else { 0 };
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, address.addr));
            }
        }
        best.map(|(_, addr)| addr)
    }
}

/// The solicited-node multicast group of `addr` (RFC 4291 §2.7.1).
pub(crate) fn solicited_node(addr: &Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = addr.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// `prefix`'s leading 64 bits joined with an interface identifier (RFC 4862 §5.5.3).
pub(crate) fn with_iid(prefix: &Ipv6Addr, iid: Iid) -> Ipv6Addr {
    let mut octets = prefix.octets();
    if let Some(low) = octets.last_chunk_mut() {
        *low = iid;
    }
    Ipv6Addr::from(octets)
}

/// The link-local address of an interface identifier (RFC 4862 §5.3).
pub(crate) fn link_local(iid: Iid) -> Ipv6Addr {
    with_iid(&Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), iid)
}

/// Whether the last 64 bits of an address are this identifier.
// Not inlined: it has several callers, and one copy saves flash.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub(crate) fn has_iid(addr: &Ipv6Addr, iid: &Iid) -> bool {
    addr.octets().ends_with(iid)
}

/// The last 64 bits of an address.
pub(crate) fn iid_of(addr: &Ipv6Addr) -> Iid {
    let [.., a, b, c, d, e, f, g, h] = addr.octets();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    const RADIO: InterfaceId = InterfaceId(0);
    const WIRE: InterfaceId = InterfaceId(1);

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn border_router() -> Addresses {
        let mut addresses = Addresses::default();
        for (text, interface) in [
            ("fe80::1", RADIO),
            ("fd00:1::1", RADIO),
            ("fd00::2", WIRE),
            ("fe80::2", WIRE),
        ] {
            assert!(addresses.add(Address {
                addr: ip(text),
                interface
            }));
        }
        addresses
    }

    #[test]
    fn source_follows_scope_then_interface_then_prefix() {
        let addresses = border_router();
        let cases = [
            (
                "link-local peer on the radio",
                "fe80::9",
                RADIO,
                Some("fe80::1"),
            ),
            (
                "link-local peer on the wire",
                "fe80::9",
                WIRE,
                Some("fe80::2"),
            ),
            ("mote", "fd00:1::9", RADIO, Some("fd00:1::1")),
            ("host", "fd00::1", WIRE, Some("fd00::2")),
            ("far host by the wire", "2001:db8::1", WIRE, Some("fd00::2")),
            ("all nodes", "ff02::1", RADIO, Some("fe80::1")),
        ];
        for (name, dst, egress, want) in cases {
            assert_eq!(
                addresses.source_for(&ip(dst), egress),
                want.map(ip),
                "{name}"
            );
        }
        let only_link_local = {
            let mut addresses = Addresses::default();
            addresses.add(Address {
                addr: ip("fe80::1"),
                interface: RADIO,
            });
            addresses
        };
        assert_eq!(only_link_local.source_for(&ip("2001:db8::1"), RADIO), None);
    }

    #[test]
    fn ownership_and_groups() {
        let addresses = border_router();
        assert!(addresses.owns(&ip("fe80::1"), RADIO));
        assert!(
            !addresses.owns(&ip("fe80::1"), WIRE),
            "link-local is of one link"
        );
        assert!(
            addresses.owns(&ip("fd00:1::1"), WIRE),
            "global answers on every interface"
        );
        assert!(addresses.joined(&ip("ff02::1"), false));
        assert!(!addresses.joined(&ip("ff02::2"), false));
        assert!(addresses.joined(&ip("ff02::2"), true));
        assert!(addresses.joined(&ip("ff02::1:ff00:2"), false));
        assert!(!addresses.joined(&ip("ff02::1:ff00:3"), false));
    }

    #[test]
    fn a_full_table_refuses_and_removal_frees() {
        let mut addresses = Addresses::default();
        for n in 0..ADDRESSES_MAX {
            let addr = Ipv6Addr::from_bits(0xfd << 120 | n as u128);
            assert!(addresses.add(Address {
                addr,
                interface: RADIO
            }));
        }
        let extra = Address {
            addr: ip("fe80::5"),
            interface: RADIO,
        };
        assert!(!addresses.add(extra));
        addresses.remove(
            RADIO,
            Prefix {
                addr: ip("fd00::"),
                len: 8,
            },
        );
        assert!(addresses.add(extra));
    }
}
