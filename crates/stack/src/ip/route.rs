//! Where a packet goes next: configured routes, then the default route learnt from a router.
//!
//! Left out: routing protocols. RPL (later) writes into this table; nothing here measures.
//! Sources: RFC 4861 §5.2 (next-hop determination), RFC 6775 §5.6 (route-over: only
//! link-local addresses are on-link).

use core::net::Ipv6Addr;

use super::{Iid, InterfaceId};

/// A prefix and the way to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destinations that take this route.
    pub prefix: Prefix,
    /// The interface and the neighbour that packets for `prefix` are handed to.
    pub next_hop: NextHop,
}

/// An IPv6 prefix; bits beyond `len` do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The address whose leading bits matter.
    pub addr: Ipv6Addr,
    /// How many leading bits, at most 128.
    pub len: u8,
}

/// One forwarding step: an interface and a neighbour on its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// The interface the packet leaves by.
    pub interface: InterfaceId,
    /// The node on that link.
    pub neighbour: Neighbour,
}

/// A node at the other end of a link. IP names it by its interface identifier; how a link
/// reaches it is the link's own matter.
// Numbered from 1 on, so that no route is all zeros: a static table of routes, and the memory of a
// node beside it, costs no flash then. That is 7 to 12 KB of a router's image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Neighbour {
    /// The one other node of a point-to-point link.
    Only = 1,
    /// Every node on the link: the packet is for a multicast group.
    All,
    /// The node with this interface identifier.
    One(Iid),
}

impl Prefix {
    /// The prefix that holds one address only.
    pub const fn host(addr: Ipv6Addr) -> Self {
        Self { addr, len: 128 }
    }

    /// Whether `addr` lies in this prefix.
    pub(crate) fn contains(&self, addr: &Ipv6Addr) -> bool {
        common_prefix_len(&self.addr, addr) >= self.len
    }
}

/// How many leading bits two addresses share.
///
/// Byte by byte: a device of 32 bits spends ten times the code on 128 bits at once, and on
/// passing addresses by value.
pub(super) fn common_prefix_len(a: &Ipv6Addr, b: &Ipv6Addr) -> u8 {
    let mut len = 0;
    for (a, b) in a.octets().iter().zip(&b.octets()) {
        let differ = a ^ b;
        if differ != 0 {
            return len + differ.leading_zeros() as u8;
        }
        len += 8;
    }
    len
}

/// The routes of one node.
#[derive(Debug)]
pub(super) struct Routes<'m> {
    table: &'m mut [Option<Route>],
    default: Option<NextHop>,
}

impl<'m> Routes<'m> {
    pub(super) fn new(table: &'m mut [Option<Route>]) -> Self {
        Self {
            table,
            default: None,
        }
    }

    /// The table it was lent.
    pub(super) fn into_memory(self) -> &'m mut [Option<Route>] {
        self.table
    }

    /// Adds or replaces the route to `route.prefix`; false when the table is full.
    pub(super) fn add(&mut self, route: Route) -> bool {
        let same = |slot: &&mut Option<Route>| slot.is_some_and(|r| r.prefix == route.prefix);
        let slot = match self.table.iter_mut().position(|slot| same(&slot)) {
            Some(index) => self.table.get_mut(index),
            None => self.table.iter_mut().find(|slot| slot.is_none()),
        };
        match slot {
            Some(slot) => {
                *slot = Some(route);
                true
            }
            None => false,
        }
    }

    pub(super) fn remove(&mut self, prefix: Prefix) {
        for slot in self.table.iter_mut() {
            if slot.is_some_and(|route| route.prefix == prefix) {
                *slot = None;
            }
        }
    }

    pub(super) fn set_default(&mut self, next_hop: Option<NextHop>) {
        self.default = next_hop;
    }

    pub(super) fn default(&self) -> Option<NextHop> {
        self.default
    }

    /// The longest configured prefix that holds `dst`, else the default route.
    pub(super) fn lookup(&self, dst: &Ipv6Addr) -> Option<NextHop> {
        #[cfg(test)]
        crate::tally::count(|tally| tally.lookups += 1);
        let mut best: Option<&Route> = None;
        for route in self.table.iter().flatten() {
            let longer = best.is_none_or(|b| route.prefix.len > b.prefix.len);
            if longer && route.prefix.contains(dst) {
                best = Some(route);
            }
        }
        best.map(|route| route.next_hop).or(self.default)
    }

    /// The next hop of the longest prefix that holds `addr`; `None`: only a default route leads
    /// there, or none.
    pub(super) fn side(&self, addr: &Ipv6Addr) -> Option<NextHop> {
        let routes = self.table.iter().flatten();
        let routes = routes.filter(|route| route.prefix.len > 0 && route.prefix.contains(addr));
        let best = routes.max_by_key(|route| route.prefix.len)?;
        Some(best.next_hop)
    }

    /// Whether a route leads over this interface to its only neighbour, as over a wire.
    pub(super) fn leads_by_wire(&self, interface: InterfaceId) -> bool {
        let hops = self.table.iter().flatten().map(|route| route.next_hop);
        hops.chain(self.default)
            .any(|hop| hop.interface == interface && hop.neighbour == Neighbour::Only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn via(interface: u8) -> NextHop {
        NextHop {
            interface: InterfaceId(interface),
            neighbour: Neighbour::Only,
        }
    }

    #[test]
    fn longest_prefix_wins_and_default_catches_the_rest() {
        let mut table = [None; 3];
        let mut routes = Routes::new(&mut table);
        let mesh: Ipv6Addr = "fd00:1::".parse().unwrap();
        let mote: Ipv6Addr = "fd00:1::7".parse().unwrap();
        assert!(routes.add(Route {
            prefix: Prefix {
                addr: mesh,
                len: 64
            },
            next_hop: via(1)
        }));
        assert!(routes.add(Route {
            prefix: Prefix::host(mote),
            next_hop: via(2)
        }));
        assert_eq!(routes.lookup(&mote), Some(via(2)));
        assert_eq!(routes.lookup(&"fd00:1::8".parse().unwrap()), Some(via(1)));
        assert_eq!(routes.lookup(&"2001:db8::1".parse().unwrap()), None);
        routes.set_default(Some(via(3)));
        assert_eq!(routes.lookup(&"2001:db8::1".parse().unwrap()), Some(via(3)));
        routes.remove(Prefix::host(mote));
        assert_eq!(routes.lookup(&mote), Some(via(1)));
    }

    #[test]
    fn adding_twice_replaces_and_a_full_table_refuses() {
        let mut table = [None; 1];
        let mut routes = Routes::new(&mut table);
        let prefix = Prefix::host(Ipv6Addr::LOCALHOST);
        assert!(routes.add(Route {
            prefix,
            next_hop: via(1)
        }));
        assert!(routes.add(Route {
            prefix,
            next_hop: via(2)
        }));
        assert_eq!(routes.lookup(&Ipv6Addr::LOCALHOST), Some(via(2)));
        let other = Prefix {
            addr: Ipv6Addr::UNSPECIFIED,
            len: 0,
        };
        assert!(!routes.add(Route {
            prefix: other,
            next_hop: via(3)
        }));
    }

    #[test]
    fn a_zero_length_prefix_holds_everything() {
        let all = Prefix {
            addr: Ipv6Addr::LOCALHOST,
            len: 0,
        };
        assert!(all.contains(&Ipv6Addr::UNSPECIFIED));
        assert!(Prefix::host(Ipv6Addr::LOCALHOST).contains(&Ipv6Addr::LOCALHOST));
        assert!(!Prefix::host(Ipv6Addr::LOCALHOST).contains(&Ipv6Addr::UNSPECIFIED));
    }
}
