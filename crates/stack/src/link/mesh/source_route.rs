//! The source route that a root puts on a packet.
//!
//! Place: what [`InsertedHeaders`](super::routing::InsertedHeaders) holds of a packet on its way
//! down, in a build with the feature `root`: a mote is no root.
//! Sources: RFC 6554 §4.1; RFC 9008 §7 and §8.

use core::net::Ipv6Addr;

use crate::ip;
use crate::limits::ROUTE_HOPS_MAX;

/// A source route, within a tunnel or in the packet itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    hops: [Ipv6Addr; ROUTE_HOPS_MAX],
    len: u8,
    is_tunnel: bool,
    ends_at_leaf: bool,
}

impl Route {
    /// The source route along `path`; `None` where the destination is a neighbour that needs none.
    /// `is_own`: the root itself has written the packet.
    pub(super) fn of(path: &ip::source_routes::Path, root: Ipv6Addr, is_own: bool) -> Option<Self> {
        let leaf = usize::from(path.ends_at_leaf());
        let motes = path.motes();
        let motes = motes.get(..motes.len() - leaf).unwrap_or_default();
        if motes.len() + leaf < 2 {
            return None;
        }
        let mut route = Self {
            hops: [Ipv6Addr::UNSPECIFIED; ROUTE_HOPS_MAX],
            len: motes.len() as u8,
            is_tunnel: !is_own || leaf > 0,
            ends_at_leaf: leaf > 0,
        };
        for (hop, mote) in route.hops.iter_mut().zip(motes) {
            *hop = ip::with_iid(&root, *mote);
        }
        Some(route)
    }

    pub(super) fn hops(&self) -> &[Ipv6Addr] {
        self.hops.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// How many hops the packet has to go.
    pub(super) fn len(&self) -> u8 {
        self.len + u8::from(self.ends_at_leaf)
    }

    pub(super) const fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }
}
