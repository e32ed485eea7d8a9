//! IPv6: whether a packet is for this node, its next hop, and ICMPv6 messages about it.
//!
//! Place: [`crate::node`] gets a `Disposition` for each packet or first fragment from here, and
//! then delivers, forwards or answers it. Neighbour discovery keeps the default route, the prefix
//! and the 6LoWPAN contexts; ICMPv6 messages are written here. With the feature `fragments` packets
//! that come in fragments are put together in `fragments`, which has memory of its own. No other
//! packet is stored here: packets are in the queues of links. Left out: multicast forwarding,
//! redirects.
//! Sources: RFC 8200, 4443, 4861, 4862, 6724, 6775.

mod address;
mod drops;
#[cfg(feature = "fragments")]
mod fragments;
pub mod icmp;
pub(crate) mod ndp;
pub(crate) mod neighbor_cache;
pub mod queue;
pub(crate) mod registering_node;
mod route;
#[cfg(feature = "rpl")]
mod rpl_routes;
#[cfg(not(feature = "rpl"))]
#[path = "rpl_routes_absent.rs"]
mod rpl_routes;
#[cfg(feature = "rpl")]
pub(crate) mod source_routes;

use core::net::Ipv6Addr;

pub use address::{ALL_NODES, ALL_ROUTERS, ALL_RPL_NODES, Address};
pub(crate) use address::{has_iid, iid_of};
#[cfg(feature = "mesh")]
pub(crate) use address::{link_local, solicited_node, with_iid};
pub use drops::{IpCounters, PacketDrop};
#[cfg(feature = "fragments")]
pub(crate) use fragments::{Fragment, Gathered};
#[cfg(feature = "fragments")]
pub use fragments::{FragmentCounters, FragmentSlot, Fragments};
pub use neighbor_cache::{Registration, RegistrationCounters, RegistrationRefusal};
pub use route::{Neighbour, NextHop, Prefix, Route};
pub(crate) use rpl_routes::RplRoutes;
#[cfg(feature = "rpl")]
pub(crate) use rpl_routes::{Contradiction, DodagPosition};
#[cfg(feature = "rpl")]
pub use source_routes::Step;
#[cfg(all(feature = "rpl", feature = "root"))]
pub(crate) use source_routes::StepError;

use address::Addresses;
use icmp::ErrorKind;
use route::Routes;

use crate::limits::IS_RELAY;
use crate::time::{Allowance, Instant};
use crate::wire::icmpv6;
use crate::wire::ipv6::{self, ExtensionHeader, Extensions, Header, next_header};
use crate::wire::ipv6_fragment;
use crate::wire::rpl_option::Rpi;

/// An interface identifier: the last 64 bits of a unicast address (RFC 4291 §2.5.1).
pub type Iid = [u8; 8];

/// Which of a node's interfaces; an index into the slice given to the node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InterfaceId(pub u8);

impl InterfaceId {
    /// The zone of link-local addresses on this interface (RFC 4007 §6): from 1 on, as scope ids
    /// number interfaces; 0 names none.
    pub(crate) const fn zone(self) -> u8 {
        self.0.wrapping_add(1)
    }

    /// The interface whose zone has this number; `None` for 0.
    pub(crate) const fn of_zone(zone: u8) -> Option<Self> {
        match zone.checked_sub(1) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The zone of a packet of this interface between two addresses: 0 where both are valid on
    /// every link.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(crate) fn zone_between(self, a: &Ipv6Addr, b: &Ipv6Addr) -> u8 {
        match a.is_unicast_link_local() || b.is_unicast_link_local() {
            true => self.zone(),
            false => 0,
        }
    }
}

/// A node's part in the network.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Hop limit of the packets it originates (RFC 4861 §6.2.1's default, and the value IPHC
    /// compresses to two bits).
    pub hop_limit: u8,
    /// Whether the node forwards packets of others. A build without the feature `relay` never does.
    pub forwards: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hop_limit: 64,
            forwards: false,
        }
    }
}

/// The hop that a packet came over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ingress {
    /// The interface that it came by.
    pub interface: InterfaceId,
    /// The neighbour that sent it.
    pub from: Neighbour,
    /// Whether the packet was sent to every node in reach.
    pub to_all: bool,
    /// The RPL option of the packet, which the link has taken off.
    pub option: Option<Rpi>,
    /// Received signal strength of the packet's frame, or of the last of its frames, dBm; 0 where
    /// the link does not measure it.
    #[cfg(feature = "rpl")]
    pub signal_dbm: i8,
}

impl Ingress {
    /// The hop of a packet that came to this node alone, by a link that takes packets as they are.
    #[cfg(any(feature = "cable", feature = "ble"))]
    pub(crate) const fn whole(interface: InterfaceId, from: Neighbour) -> Self {
        Self {
            interface,
            from,
            to_all: false,
            option: None,
            #[cfg(feature = "rpl")]
            signal_dbm: 0,
        }
    }
}

/// The way of a packet from here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disposition {
    /// The packet is for this node.
    Local,
    /// The packet goes on, with its hop limit one less.
    Forward(NextHop),
    /// The packet goes on to the next step that its routing header names, after the caller has
    /// advanced that header (`route_form::advance`).
    #[cfg_attr(
        not(feature = "rpl"),
        expect(dead_code, reason = "only RPL leads packets so")
    )]
    Route(NextHop),
    /// The packet ends here, and its source gets an ICMPv6 error.
    Refuse(ErrorKind),
    /// The packet ends here, and its source gets no ICMPv6 error.
    Drop(PacketDrop),
}

impl Disposition {
    /// Whether the packet is for this node.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Local)
    }
}

/// Whether a packet may go back to the neighbour that it came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    No,
    /// A source route leads it on from there.
    #[cfg_attr(
        not(feature = "rpl"),
        expect(dead_code, reason = "only a root has source routes")
    )]
    Routed,
}

/// Addresses and routes of one node, and the limits of its answers to strangers.
#[derive(Debug)]
pub struct Ip<'m> {
    config: Config,
    addresses: Addresses,
    routes: Routes<'m>,
    rpl: RplRoutes<'m>,
    errors: Allowance,
    echoes: Allowance,
    /// Packets and ICMPv6 errors counted since start.
    pub counters: IpCounters,
}

impl<'m> Ip<'m> {
    /// A node without addresses; `routes` bounds how many routes it can hold. Those that stand in
    /// it hold from the start.
    pub fn new(config: Config, routes: &'m mut [Option<Route>]) -> Self {
        Self {
            config,
            addresses: Addresses::default(),
            routes: Routes::new(routes),
            rpl: RplRoutes::default(),
            errors: icmp::ERRORS,
            echoes: icmp::ECHOES,
            counters: IpCounters::default(),
        }
    }

    /// Gives back the memory it was lent, with the routes as they were last.
    pub fn into_memory(self) -> &'m mut [Option<Route>] {
        self.routes.into_memory()
    }

    /// Hop limit of packets originated here.
    pub(crate) const fn hop_limit(&self) -> u8 {
        self.config.hop_limit
    }

    /// Whether this node forwards packets of others.
    pub(crate) const fn forwards(&self) -> bool {
        IS_RELAY && self.config.forwards
    }

    /// Adds an address; false when the table ([`crate::limits::ADDRESSES_MAX`]) is full.
    pub fn add_address(&mut self, address: Address) -> bool {
        self.addresses.add(address)
    }

    /// Forgets `interface`'s addresses inside `prefix`.
    pub fn remove_addresses(&mut self, interface: InterfaceId, prefix: Prefix) {
        self.addresses.remove(interface, prefix);
    }

    /// Gives `interface` these addresses in place of those that it had beside its link-local one.
    #[cfg(feature = "thread")]
    pub(crate) fn replace_addresses(
        &mut self,
        interface: InterfaceId,
        addresses: impl Iterator<Item = Ipv6Addr>,
    ) {
        self.addresses.forget(interface);
        for addr in addresses {
            self.addresses.add(Address { addr, interface });
        }
    }

    /// Sets the prefix of 64 bits that is valid within a mesh: its addresses are no sources of
    /// packets that leave the mesh where there are others.
    #[cfg(feature = "thread")]
    pub(crate) const fn set_mesh_local(&mut self, prefix: [u8; 8]) {
        self.addresses.mesh_local = Some(prefix);
    }

    /// The addresses of all interfaces, at most [`crate::limits::ADDRESSES_MAX`].
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.iter()
    }

    /// Adds or replaces a route; false when the table is full.
    pub fn add_route(&mut self, route: Route) -> bool {
        self.routes.add(route)
    }

    /// Removes the route to exactly `prefix`.
    pub fn remove_route(&mut self, prefix: Prefix) {
        self.routes.remove(prefix);
    }

    /// Sets or clears the route for everything without a better one. The router that a link learns
    /// next takes its place; a default route that no router shall replace is a [`Route`] to the
    /// prefix `::/0`.
    pub fn set_default_route(&mut self, next_hop: Option<NextHop>) {
        self.routes.set_default(next_hop);
    }

    /// Clears the default route if it leaves by `interface`, whose router has gone. Returns whether
    /// it did.
    pub(crate) fn clear_default_route(&mut self, interface: InterfaceId) -> bool {
        let route = self.default_route();
        let leaves_there = route.is_some_and(|hop| hop.interface == interface);
        if leaves_there {
            self.set_default_route(None);
        }
        leaves_there
    }

    /// The interface identifier of this node's addresses on `interface`; zeros before it has one.
    #[cfg(feature = "rpl")]
    pub(crate) fn iid_on(&self, interface: InterfaceId) -> Iid {
        let mut addresses = self.addresses();
        let found = addresses.find(|a| a.interface == interface && a.addr.is_unicast_link_local());
        found.map_or([0; 8], |a| iid_of(&a.addr))
    }

    /// The default route, if a router has been heard.
    pub fn default_route(&self) -> Option<NextHop> {
        self.routes.default()
    }

    /// The address to speak to `dst` from, given the interface the packet leaves by.
    pub(crate) fn source_for(&self, dst: &Ipv6Addr, egress: InterfaceId) -> Option<Ipv6Addr> {
        self.addresses.source_for(dst, egress)
    }

    /// The link of a link-local destination without a zone: the one on which this node has its
    /// first link-local address (RFC 4007 §6: the default zone is the node's choice).
    pub(crate) fn first_link(&self) -> InterfaceId {
        let mut addresses = self.addresses();
        let first = addresses.find(|a| a.addr.is_unicast_link_local());
        first.map_or(InterfaceId(0), |a| a.interface)
    }

    /// Whether unicast `addr` is this node's own, asked on interface `on`.
    pub(crate) fn owns(&self, addr: &Ipv6Addr, on: InterfaceId) -> bool {
        self.addresses.owns(addr, on)
    }

    /// The next step towards `dst`. A link-local destination stays on `on_link`, where its
    /// interface identifier names the neighbour (RFC 6775 §5.6: no resolution). `None` for the
    /// unspecified address.
    pub(crate) fn next_hop(&self, dst: &Ipv6Addr, on_link: InterfaceId) -> Option<NextHop> {
        if *dst == Ipv6Addr::UNSPECIFIED {
            return None;
        }
        if dst.is_multicast() {
            return Some(NextHop {
                interface: on_link,
                neighbour: Neighbour::All,
            });
        }
        if dst.is_unicast_link_local() {
            return Some(NextHop {
                interface: on_link,
                neighbour: Neighbour::One(iid_of(dst)),
            });
        }
        self.route(dst)
    }

    /// The next hop towards a global address. A root knows its own motes by their source routes;
    /// for an address in the prefix of its DODAG no other route is used.
    fn route(&self, dst: &Ipv6Addr) -> Option<NextHop> {
        match self.rpl.next_hop(dst) {
            Some(known) => known,
            None => self.routes.lookup(dst),
        }
    }

    /// This node's place in the DODAG, and the source routes of a root.
    #[cfg(feature = "rpl")]
    pub(crate) const fn rpl(&self) -> &RplRoutes<'m> {
        &self.rpl
    }

    /// The RPL option that a packet goes on with which came with `option`.
    pub(crate) fn forwarded_option(&self, option: Option<Rpi>) -> Option<Rpi> {
        self.rpl.forwarded(option)
    }

    /// Whether a packet with this header goes up the DODAG by `hop`.
    #[cfg(feature = "rpl")]
    pub(crate) fn goes_up(&self, header: &Header, hop: NextHop) -> bool {
        self.default_route() == Some(hop) && self.rpl.goes_up(header, hop.interface)
    }

    /// [`Self::rpl`], for `node` to change.
    #[cfg(feature = "rpl")]
    pub(crate) const fn rpl_mut(&mut self) -> &mut RplRoutes<'m> {
        &mut self.rpl
    }

    /// The disposition of a packet that came over the hop `ingress`. Only its headers are read, so
    /// a first fragment suffices. `rest`: the bytes behind the IPv6 header.
    ///
    /// Two rules depend on the link below. A packet with a unicast destination is dropped if it
    /// came in a broadcast frame: every neighbour would forward or answer a copy (RFC 1122 §3.3.6).
    /// And no packet is sent back to the neighbour that it came from: two routes that point at each
    /// other would turn one packet into as many frames as the hop limit allows. An exception is a
    /// source route, with which that neighbour makes no routing decision.
    pub(crate) fn disposition(
        &mut self,
        (header, rest): (&Header, &[u8]),
        ingress: &Ingress,
    ) -> Disposition {
        #[cfg(test)]
        crate::tally::count(|tally| tally.decisions += 1);
        if ingress.to_all && !header.dst.is_multicast() {
            return Disposition::Drop(PacketDrop::LinkBroadcast);
        }
        let interface = ingress.interface;
        let came_by = NextHop {
            interface,
            neighbour: ingress.from,
        };
        match self.decide((header, rest), ingress) {
            Disposition::Forward(hop) => {
                let router = self.default_route();
                match self.rpl.judge((header, rest), ingress, (hop, router)) {
                    Err(reason) => Disposition::Drop(reason),
                    Ok(Turn::No) if hop == came_by => Disposition::Refuse(ErrorKind::SentBack),
                    Ok(_) => Disposition::Forward(hop),
                }
            }
            disposition => disposition,
        }
    }

    /// The disposition of a packet before RPL judges the way that it takes.
    fn decide(&self, (header, rest): (&Header, &[u8]), ingress: &Ingress) -> Disposition {
        let interface = ingress.interface;
        let loops = header.src == Ipv6Addr::LOCALHOST || header.dst == Ipv6Addr::LOCALHOST;
        // No honest node sends a packet back to its source address.
        if header.src.is_multicast() || loops || self.addresses.owns(&header.src, interface) {
            return Disposition::Drop(PacketDrop::BadAddress);
        }
        if self.forwards() && self.is_forged(&header.src, ingress) {
            return Disposition::Drop(PacketDrop::ForgedSource);
        }
        if header.dst.is_multicast() {
            return match self.addresses.joined(&header.dst, self.forwards()) {
                true => Disposition::Local,
                false => Disposition::Drop(PacketDrop::NotMine),
            };
        }
        if self.addresses.owns(&header.dst, interface) {
            let owns = |addr: &Ipv6Addr| self.addresses.owns(addr, interface);
            let onward = match self.forwards() {
                true => self.rpl.source_route((header, rest), ingress, owns),
                false => None,
            };
            return onward.unwrap_or(Disposition::Local);
        }
        self.forwarding(header, interface)
    }

    /// Whether a packet that a wire brought, hence from outside the meshes, names a source inside
    /// one (RFC 2827): an address that a mesh leads to, or of a prefix that this node has its own
    /// address of there. A source that another wire leads to may as well come by this one.
    fn is_forged(&self, src: &Ipv6Addr, ingress: &Ingress) -> bool {
        if ingress.from != Neighbour::Only || src.is_unicast_link_local() {
            return false;
        }
        if self.rpl.next_hop(src).is_some() {
            return true;
        }
        match self.routes.side(src) {
            Some(next) => next.neighbour != Neighbour::Only,
            None => self.addresses().any(|own| {
                let prefix = Prefix {
                    addr: own.addr,
                    len: 64,
                };
                let is_inside = !self.routes.leads_by_wire(own.interface);
                own.interface != ingress.interface && is_inside && prefix.contains(src)
            }),
        }
    }

    /// Forwarding's own rules (RFC 8200 §3, RFC 4443 §3.1 and §3.3, RFC 4007 §9).
    fn forwarding(&self, header: &Header, interface: InterfaceId) -> Disposition {
        let stays_on_link =
            header.dst.is_unicast_link_local() || header.src.is_unicast_link_local();
        let is_none = |addr: &Ipv6Addr| *addr == Ipv6Addr::UNSPECIFIED;
        if stays_on_link || is_none(&header.src) || is_none(&header.dst) {
            return Disposition::Drop(PacketDrop::NotMine);
        }
        if !self.forwards() {
            return Disposition::Drop(PacketDrop::NotARouter);
        }
        if header.hop_limit <= 1 {
            return Disposition::Refuse(ErrorKind::HopLimitExceeded);
        }
        match self.route(&header.dst) {
            // On a wire, sending back where it came from would only loop until the hop limit
            // ends it; on a radio it is how a leaf's packet turns at its parent.
            Some(hop) if hop.interface == interface && hop.neighbour == Neighbour::Only => {
                Disposition::Refuse(ErrorKind::NoRoute)
            }
            Some(hop) => Disposition::Forward(hop),
            None => Disposition::Refuse(ErrorKind::NoRoute),
        }
    }

    /// Walks the extension headers of a packet for this node, acting on each, and returns the
    /// upper layer's protocol and bytes.
    ///
    /// `payload`: what follows the IPv6 header. `was_cut`: the packet came in fragments, which
    /// neighbour discovery and RPL messages must not (RFC 6980 §5), not even in an atomic fragment.
    ///
    /// # Errors
    /// [`Disposition::Drop`] or [`Disposition::Refuse`].
    pub(crate) fn upper_layer<'a>(
        &self,
        (header, mut was_cut): (&Header, bool),
        payload: &'a [u8],
    ) -> Result<(u8, &'a [u8]), Disposition> {
        let mut walk = Extensions::new(header.next_header, payload);
        let mut named_at = NEXT_HEADER_AT;
        loop {
            let at = ipv6::HEADER_LEN + payload.len() - walk.rest().len();
            match walk.next() {
                Ok(None) => {
                    let (protocol, upper) = (walk.next_header(), walk.rest());
                    let is_icmp = protocol == icmpv6::NEXT_HEADER;
                    if was_cut && is_icmp && icmpv6::is_between_neighbours(upper) {
                        return Err(Disposition::Drop(PacketDrop::BadNdp));
                    }
                    return Ok((protocol, upper));
                }
                Ok(Some(extension)) => {
                    accept_extension(&extension, at, named_at, header.dst.is_multicast())?;
                    was_cut |= extension.kind == next_header::FRAGMENT;
                }
                Err(_) => return Err(Disposition::Drop(PacketDrop::ExtensionHeader)),
            }
            // Each extension header names its successor in its first byte.
            named_at = at;
        }
    }

    /// Whether one more echo request is answered now.
    pub(crate) fn may_answer_echo(&mut self, now: Instant) -> bool {
        self.echoes.take(now)
    }

    /// Whether one more ICMPv6 error may be sent now (RFC 4443 §2.4 f).
    pub(crate) fn may_send_error(&mut self, now: Instant) -> bool {
        let allowed = self.errors.take(now);
        let counter = match allowed {
            true => &mut self.counters.errors_sent,
            false => &mut self.counters.errors_limited,
        };
        *counter = counter.wrapping_add(1);
        allowed
    }
}

/// The answer to a packet of an unknown protocol. The field that names it stands at offset 6
/// unless an extension header does.
pub(crate) const UNKNOWN_PROTOCOL: Disposition = Disposition::Refuse(ErrorKind::ParameterProblem {
    code: 1,
    pointer: NEXT_HEADER_AT as u32,
});

/// The place of the next header field in the fixed header.
const NEXT_HEADER_AT: usize = 6;

/// Acts on one extension header at offset `at` of its packet, named by the byte at `named_at`:
/// options and routing headers that this node would have to act on are refused by RFC 8200 §4.2 and
/// §4.4, since none is supported.
fn accept_extension(
    extension: &ExtensionHeader<'_>,
    at: usize,
    named_at: usize,
    to_many: bool,
) -> Result<(), Disposition> {
    let problem = |code, pointer: usize| {
        let pointer = pointer as u32;
        Err(Disposition::Refuse(ErrorKind::ParameterProblem {
            code,
            pointer,
        }))
    };
    match extension.kind {
        kind if ipv6_fragment::is_part(kind, extension.bytes) => {
            Err(Disposition::Drop(PacketDrop::Fragment))
        }
        // Hop-by-hop options stand first or nowhere; elsewhere an unknown next header (§4.3).
        next_header::HOP_BY_HOP if named_at != NEXT_HEADER_AT => problem(1, named_at),
        next_header::HOP_BY_HOP | next_header::DESTINATION_OPTIONS => {
            for option in ipv6::options(extension.bytes) {
                let Ok(option) = option else {
                    return Err(Disposition::Drop(PacketDrop::ExtensionHeader));
                };
                match option.kind >> 6 {
                    _ if rpl_routes::knows_option(option.kind) => {}
                    0 => {}
                    1 => return Err(Disposition::Drop(PacketDrop::ExtensionHeader)),
                    3 if to_many => return Err(Disposition::Drop(PacketDrop::ExtensionHeader)),
                    _ => return problem(2, at + option.offset),
                }
            }
            Ok(())
        }
        // Segments left is the fourth byte; with none left the header is skipped.
        next_header::ROUTING if extension.bytes.get(3).is_some_and(|left| *left != 0) => {
            problem(0, at + 2)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
