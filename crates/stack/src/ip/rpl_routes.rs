//! The routes that RPL has given IP: for packets on their way up, and from a root down.
//!
//! Place: the node stores RPL's results here, and IP's decisions read them: the check of a packet's
//! RPL option, the first hop from a root, the next address in a routing header. Left out: the
//! formation of the DODAG (`rpl`), and the formats on the air (`lowpan`).
//! Sources: RFC 6550 §11.2 (loop detection), RFC 6554 §4 (source routes), RFC 9008 (which packets
//! carry what).

use core::net::Ipv6Addr;

use super::icmp::ErrorKind;
use super::route::common_prefix_len;
#[cfg(feature = "root")]
use super::source_routes::{Path, StepError};
use super::source_routes::{SourceRoutes, Step};
use super::{
    Disposition, Iid, Ingress, InterfaceId, NEXT_HEADER_AT, Neighbour, NextHop, PacketDrop, Turn,
    accept_extension, iid_of,
};
#[cfg(feature = "root")]
use crate::time::Instant;
use crate::wire::ipv6::{Extensions, HEADER_LEN, Header};
use crate::wire::route_form::{self, ParseError, SourceRoute};
use crate::wire::rpl_option::{self, Rpi};

/// This node's place in a DODAG whose packets go up with an RPL option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DodagPosition {
    /// The interface of the DODAG.
    pub interface: InterfaceId,
    /// Which instance of RPL it is (RFC 6550 §5.1).
    pub instance: u8,
    /// This node's rank in whole ranks: `DAGRank` of RFC 6550 §3.5.1.
    pub rank: u16,
    /// `MinHopRankIncrease`: what a whole rank counts.
    pub unit: u16,
    /// The root's address, the DODAGID.
    pub root: Ipv6Addr,
}

/// The part of RPL's state that IP needs: this node's place in the DODAG, and a root's source
/// routes.
#[derive(Debug, Default)]
pub(crate) struct RplRoutes<'m> {
    place: Option<DodagPosition>,
    routes: SourceRoutes<'m>,
    contradiction: Option<Contradiction>,
}

/// A packet that went up although its option contradicts the ranks (RFC 6550 §11.2.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contradiction {
    /// The neighbour that sent it.
    pub from: Iid,
    /// Whether the packet had met another such hop before.
    pub is_second: bool,
}

impl<'m> RplRoutes<'m> {
    /// Lends a root memory for the motes of its DODAG.
    pub(crate) fn lend(&mut self, steps: &'m mut [Option<Step>]) {
        self.routes.lend(steps);
    }

    /// Takes the memory back that [`Self::lend`] got.
    pub(crate) fn take_steps(&mut self) -> &'m mut [Option<Step>] {
        core::mem::take(&mut self.routes).into_memory()
    }

    /// This node's place; `None`: it is in no DODAG, or in one without RPL options.
    pub(crate) fn set_place(&mut self, place: Option<DodagPosition>, is_root: bool) {
        self.place = place;
        #[cfg(feature = "root")]
        {
            let root = place.filter(|_| is_root);
            let root = root.map(|place| (place.root, place.interface));
            self.routes.set_root(root);
        }
        #[cfg(not(feature = "root"))]
        let _ = is_root;
    }

    pub(crate) const fn place(&self) -> Option<&DodagPosition> {
        self.place.as_ref()
    }
}

#[cfg(feature = "root")]
impl RplRoutes<'_> {
    /// Adds or replaces the step to a mote; one that ends at once is lost from now on. Returns
    /// whether another parent would be better.
    ///
    /// # Errors
    /// [`StepError`].
    pub(crate) fn set_step(&mut self, step: Step, now: Instant) -> Result<bool, StepError> {
        self.routes.set(step, now)
    }

    /// The parent could not pass a packet on to a mote. Returns whether that was a step.
    pub(crate) fn lose_step(&mut self, child: Iid, parent: Iid) -> bool {
        self.routes.lose(child, parent)
    }

    /// The motes find their places anew: the ways that are known keep out nothing that comes by
    /// another.
    pub(crate) fn doubt_steps(&mut self) {
        self.routes.doubt();
    }

    /// Whether any step is lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.routes.has_lost()
    }

    /// Forgets the steps that are lost: their motes are no longer reached by them.
    pub(crate) fn forget_lost(&mut self) {
        self.routes.forget_lost();
    }

    /// Forgets steps that are too old.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.routes.expire(now);
    }
}

impl RplRoutes<'_> {
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.routes.iter()
    }

    /// The last contradiction of ranks that a packet has shown since the last call.
    pub(crate) const fn take_contradiction(&mut self) -> Option<Contradiction> {
        self.contradiction.take()
    }

    /// The first step towards a mote of this root. `None`: ask other routes;
    /// `Some(None)`: no other route leads there.
    pub(super) fn next_hop(&self, dst: &Ipv6Addr) -> Option<Option<NextHop>> {
        self.routes.covers(dst).then(|| self.routes.next_hop(dst))
    }

    /// Whether an address can only be a mote's of this root, and no step leads there.
    #[cfg(feature = "root")]
    pub(crate) fn misses(&self, mote: &Ipv6Addr) -> bool {
        self.next_hop(mote) == Some(None)
    }

    /// All steps towards a mote of this root.
    #[cfg(feature = "root")]
    pub(crate) fn path(&self, dst: &Ipv6Addr) -> Option<Path> {
        self.routes.path(dst)
    }

    /// Whether a packet between these addresses goes up where it leaves by `interface`, towards the
    /// default router.
    pub(super) fn goes_up(&self, header: &Header, interface: InterfaceId) -> bool {
        let is_local = header.src.is_unicast_link_local() || header.dst.is_unicast_link_local();
        let is_here = self.place.is_some_and(|place| place.interface == interface);
        is_here && !is_local && !header.dst.is_multicast()
    }

    /// Whether the inner packet may be taken out of one with this header: a root put it there, or
    /// one of this root's own motes did (RFC 9008 §4).
    pub(crate) fn opens(&self, header: &Header, interface: InterfaceId) -> bool {
        self.place.is_some_and(|place| {
            place.interface == interface
                && (header.src == place.root || self.routes.covers(&header.src))
        })
    }

    /// The option of a packet that begins its way up here.
    pub(crate) fn option(&self) -> Option<Rpi> {
        self.place.map(|place| Rpi {
            down: false,
            rank_error: false,
            forwarding_error: false,
            instance: place.instance,
            sender_rank: place.sender_rank(),
        })
    }

    /// The option that a packet goes on with which came with `option`.
    pub(super) fn forwarded(&self, option: Option<Rpi>) -> Option<Rpi> {
        let option = option?;
        let place = self.place?;
        Some(Rpi {
            rank_error: option.rank_error || place.contradicts(&option),
            sender_rank: place.sender_rank(),
            ..option
        })
    }

    /// Checks a packet before it is forwarded over `hop`.
    ///
    /// No source route crosses the border of the mesh: otherwise hosts outside could send packets
    /// along any path in the mesh (RFC 6554 §5).
    ///
    /// One contradiction between a packet's option and the ranks (RFC 6550 §11.2.2.2) may be due to
    /// a rank that has just changed; two are a loop. `router`: the next hop of the default route; a
    /// packet from it that goes up would be sent back to it.
    ///
    /// # Errors
    /// [`PacketDrop::ExtensionHeader`], [`PacketDrop::Loop`], [`PacketDrop::Instance`].
    pub(super) fn judge(
        &mut self,
        (header, rest): (&Header, &[u8]),
        ingress: &Ingress,
        (hop, router): (NextHop, Option<NextHop>),
    ) -> Result<Turn, PacketDrop> {
        let is_inside = |interface| self.place.is_some_and(|place| place.interface == interface);
        if is_inside(ingress.interface) != is_inside(hop.interface)
            && let Some((_, [_, _, kind, ..])) = route_form::header_in(header.next_header, rest)
            && route_form::is_source_route(*kind)
        {
            return Err(PacketDrop::ExtensionHeader);
        }
        let is_routed =
            self.routes.covers(&header.dst) && hop.neighbour != Neighbour::One(iid_of(&header.dst));
        self.check_option(ingress, router)?;
        Ok(match is_routed {
            true => Turn::Routed,
            false => Turn::No,
        })
    }

    /// Checks the packet's RPL option, as described for [`Self::judge`].
    fn check_option(
        &mut self,
        ingress: &Ingress,
        router: Option<NextHop>,
    ) -> Result<(), PacketDrop> {
        let (Some(option), Neighbour::One(from)) = (&ingress.option, ingress.from) else {
            return Ok(());
        };
        let place = self.place.ok_or(PacketDrop::Instance)?;
        if place.instance != option.instance {
            return Err(PacketDrop::Instance);
        }
        let is_router = router
            == Some(NextHop {
                interface: ingress.interface,
                neighbour: ingress.from,
            });
        if !(place.contradicts(option) || is_router && !option.down) {
            return Ok(());
        }
        if !option.down {
            self.contradiction = Some(Contradiction {
                from,
                is_second: option.rank_error,
            });
        }
        match option.rank_error {
            true => Err(PacketDrop::Loop),
            false => Ok(()),
        }
    }

    /// The disposition of a packet for this node whose routing header names a further step. `None`:
    /// the packet ends here, or has no such header.
    ///
    /// Only packets from a mesh with a DODAG are forwarded: a host beyond the mesh could lead
    /// packets anywhere (RFC 6554 §5). `owns`: whether an address is this node's own.
    pub(super) fn source_route(
        &self,
        (header, rest): (&Header, &[u8]),
        ingress: &Ingress,
        owns: impl Fn(&Ipv6Addr) -> bool,
    ) -> Option<Disposition> {
        self.place
            .filter(|place| place.interface == ingress.interface)?;
        // A header that runs out of the packet is refused where the packet is taken apart.
        let (at, bytes) = route_form::header_in(header.next_header, rest)?;
        if cfg!(not(feature = "plain-rpl")) && at > 0 {
            return None;
        }
        let problem = {
            let pointer = (HEADER_LEN + at + route_form::SEGMENTS_LEFT_AT) as u32;
            Disposition::Refuse(ErrorKind::ParameterProblem { code: 0, pointer })
        };
        let route = match SourceRoute::parse(bytes) {
            Ok(route) => route,
            Err(ParseError::SegmentsLeft) => return Some(problem),
            Err(_) => return None,
        };
        let next = route.next_of(header)?;
        // Options in front come first (RFC 8200 §4.1): they may forbid what follows.
        let mut walk = Extensions::new(header.next_header, rest);
        if let Ok(Some(options)) = walk.next()
            && at > 0
            && let Err(disposition) = accept_extension(&options, HEADER_LEN, NEXT_HEADER_AT, false)
        {
            return Some(disposition);
        }
        // This node's own address once more means a loop, visited or yet to come.
        if route.any_other(header, owns) {
            return Some(problem);
        }
        let is_step = !next.is_multicast()
            && next != Ipv6Addr::UNSPECIFIED
            && next != Ipv6Addr::LOCALHOST
            && !next.is_unicast_link_local();
        if !is_step {
            return Some(Disposition::Drop(PacketDrop::ExtensionHeader));
        }
        // Nothing but a mote is reached by radio: no other route leads on from here.
        if common_prefix_len(&next, &header.dst) < 64 {
            return Some(Disposition::Refuse(ErrorKind::SourceRoute));
        }
        if header.hop_limit <= 1 {
            return Some(Disposition::Refuse(ErrorKind::HopLimitExceeded));
        }
        Some(Disposition::Route(NextHop {
            interface: ingress.interface,
            neighbour: Neighbour::One(iid_of(&next)),
        }))
    }
}

impl DodagPosition {
    /// The `SenderRank` of this node in RPL options: its rank, rounded down to a whole one. RFC
    /// 6550 §11.2 has `DAGRank` there, and most implementations the rank; where a whole rank counts
    /// 256, this is what RFC 8138 §6.3 sends as one byte.
    const fn sender_rank(&self) -> u16 {
        self.rank.saturating_mul(self.unit)
    }

    /// Whether a packet's RPL option contradicts the direction in which the packet travels, by the
    /// ranks of sender and node.
    fn contradicts(&self, option: &Rpi) -> bool {
        option.contradicts(self.rank, self.unit)
    }
}

/// Whether an option of this type is RPL's (RFC 6553, RFC 9008 §4.2). A packet that reaches its
/// destination with such an option is accepted.
pub(super) const fn knows_option(kind: u8) -> bool {
    matches!(kind, rpl_option::TYPE_6553 | rpl_option::TYPE_9008)
}
