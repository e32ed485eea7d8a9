//! The headers that RPL gives a packet when it leaves: an RPL option on its way up, a source route
//! on its way down, a tunnel around another node's packet.
//!
//! Place: between the queue and the fragmenter, where the route is looked up. So a packet that has
//! waited takes the present route. Source routes are a root's ([`super::source_route`]), and part
//! of the feature `root`. Left out: the routes themselves, which are IP's. Sources: RFC 6554 §4.1;
//! RFC 9008 §7 and §8: which packets carry what.

use core::net::Ipv6Addr;

use super::budget::Overhead;
use super::packet_meta::{PacketMeta, RplDirection};
#[cfg(feature = "root")]
use super::source_route::Route;
use crate::ip::{Iid, InterfaceId, Ip, NextHop, PacketDrop};
use crate::limits::ROUTING_LEN_MAX;
use crate::link::arrival::Sent;
use crate::lowpan::{Contexts, Routing};
use crate::mac::Outcome;
use crate::wire::LinkAddr;
#[cfg(feature = "root")]
use crate::wire::cursor::Writer;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{HEADER_LEN, Header, TrafficClass, next_header};
use crate::wire::route_form;
use crate::wire::rpl_option::Rpi;

/// A mesh link's notes for RPL.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Whether the node wants to know the outcomes of frames.
    pub(super) reports: bool,
    pub(super) sent: Option<Sent>,
    /// The neighbour whose frame came last, until the node has taken note of it.
    heard: Option<LinkAddr>,
    pub(super) overhead: Overhead,
}

impl State {
    /// Notes the outcome of a frame to one neighbour. `was_passed_on`: a fragment of a packet that
    /// this node has not gathered.
    pub(super) fn note(&mut self, outcome: &Outcome, was_passed_on: bool) {
        if self.reports && !outcome.to.is_broadcast() {
            let attempts = outcome.attempts.saturating_sub(outcome.unsent);
            self.sent = Some(Sent {
                to: outcome.to.iid(),
                attempts,
                unsent: outcome.unsent,
                acknowledged: (outcome.acknowledged || !outcome.delivered)
                    .then_some(outcome.acknowledged),
                is_step_lost: was_passed_on && !outcome.delivered && attempts > 0,
            });
        }
    }

    /// A frame of this neighbour came.
    pub(super) fn note_heard(&mut self, from: LinkAddr) {
        self.heard = Some(from).filter(|_| self.reports);
    }

    pub(super) fn take_heard(&mut self) -> Option<Iid> {
        self.heard.take().map(LinkAddr::iid)
    }

    pub(super) const fn has_report(&self) -> bool {
        self.sent.is_some()
    }

    /// Counts on what packets of this node's connections carry: an option up, a source route of
    /// `hops` hops within a tunnel down, plus [`HOPS_SPARE`] where routes are compressed: a
    /// connection keeps its MSS while its mote moves to a longer way.
    pub(super) fn settle(&mut self, routing: Option<&Routing>, hops: u8) {
        self.overhead = match routing {
            None => Overhead::default(),
            Some(routing) if routing.compresses() => Overhead {
                up: (OPTION_LORH_LEN, 0),
                down: (LORH_LEN.saturating_add(hops).saturating_add(HOPS_SPARE), 0),
            },
            Some(_) => {
                let steps = hops.saturating_sub(1).saturating_mul(8);
                Overhead {
                    up: (OPTION_LEN, OPTION_LEN),
                    down: (
                        steps.saturating_add(TUNNEL_LEN as u8 + STEPS_LEN),
                        steps.saturating_add(HEADER_LEN as u8 + STEPS_LEN),
                    ),
                }
            }
        };
    }
}

/// 6LoRH before the addresses of a route, each of which takes a byte where motes are numbered: the
/// page, the source route, the tunnel.
const LORH_LEN: u8 = 1 + 2 + 3;

/// The page, and an option of instance 0 whose sender is at a whole rank of 256.
const OPTION_LORH_LEN: u8 = 1 + 3;

/// A source routing header before its addresses, which take eight bytes each behind the first.
const STEPS_LEN: u8 = 8;

/// How many hops a packet still has to go that follows its source route from here.
pub(super) fn hops_left(packet: &[u8]) -> u8 {
    let left = packet.get(HEADER_LEN + route_form::SEGMENTS_LEFT_AT);
    left.copied().unwrap_or_default()
}

/// By so many hops a way may grow before the segments of a connection take a frame more.
const HOPS_SPARE: u8 = 3;

/// A hop-by-hop header with the RPL option.
const OPTION_LEN: u8 = 8;

/// The most that a first fragment with a source route grows by on its way, bytes: the source
/// address is written out behind the first hop, the hop limit counts down, congestion is marked.
pub(super) const ROUTED_SLACK: usize = 10;

/// The headers of RPL that a packet gets when it leaves.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    feature = "root",
    expect(
        clippy::large_enum_variant,
        reason = "there is one at a time, on the stack"
    )
)]
pub(super) enum InsertedHeaders {
    Nothing,
    /// An RPL option in a hop-by-hop header (RFC 6553).
    Option(Rpi),
    /// A tunnel to the root, and an RPL option: around the packet of a neighbour without RPL.
    #[cfg(feature = "leaves")]
    Tunnel(Rpi, Ipv6Addr),
    /// A source route of this root; within a tunnel, or in the packet itself.
    #[cfg(feature = "root")]
    Route(Route),
}

impl InsertedHeaders {
    /// The headers for a packet with `header` that leaves by `hop`.
    pub(super) fn of(ip: &Ip<'_>, header: &Header, hop: NextHop, meta: &PacketMeta) -> Self {
        if meta.way == RplDirection::Routed {
            return Self::Nothing;
        }
        let is_own = ip.owns(&header.src, hop.interface);
        #[cfg(feature = "root")]
        if let Some((place, path)) = ip.rpl().place().zip(ip.rpl().path(&header.dst)) {
            let route = Route::of(&path, place.root, is_own);
            return route.map_or(Self::Nothing, Self::Route);
        }
        let Some(option) = ip.rpl().option().filter(|_| ip.goes_up(header, hop)) else {
            return Self::Nothing;
        };
        match meta.way {
            RplDirection::Up { rank_error } => Self::Option(Rpi {
                rank_error,
                ..option
            }),
            _ if is_own => Self::Option(option),
            // Its sender knows no RPL (RFC 9008 §7.1.4).
            #[cfg(feature = "leaves")]
            _ => match ip.rpl().place() {
                Some(place) => Self::Tunnel(option, place.root),
                None => Self::Nothing,
            },
            #[cfg(not(feature = "leaves"))]
            _ => Self::Nothing,
        }
    }

    /// Whether the packet gets a header of its own in front of the one that it has.
    pub(super) const fn is_long(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Option(_))
    }

    /// Whether a first fragment grows on its way by more than the packet's own header does. With
    /// the routing headers of RFC 8138 it does not.
    pub(super) fn grows(&self, contexts: &Contexts) -> bool {
        let routing = contexts.routing();
        self.is_long() && !routing.is_some_and(Routing::compresses)
    }

    /// How many hops the packet has to go, if it goes down.
    pub(super) fn hops(&self) -> Option<u8> {
        match self {
            #[cfg(feature = "root")]
            Self::Route(route) => Some(route.len()),
            _ => None,
        }
    }

    /// The RPL option that goes with the packet.
    pub(super) const fn option(&self) -> Option<Rpi> {
        match self {
            Self::Option(option) => Some(*option),
            #[cfg(feature = "leaves")]
            Self::Tunnel(option, _) => Some(*option),
            _ => None,
        }
    }

    /// Bytes that it takes of a first fragment, about: compression says precisely.
    #[cfg_attr(
        not(feature = "root"),
        expect(unused_variables, reason = "what a root's routes take depends on it")
    )]
    pub(super) fn compressed_len(&self, contexts: &Contexts) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Option(_) => usize::from(OPTION_LEN),
            #[cfg(feature = "leaves")]
            Self::Tunnel(..) => TUNNEL_LEN + usize::from(OPTION_LEN),
            #[cfg(feature = "root")]
            Self::Route(route) => route_len(route.hops(), contexts.routing()),
        }
    }

    /// Puts it on the packet of `len` bytes at the start of `buffer`, whose header is `header`;
    /// returns the packet's length then.
    ///
    /// # Errors
    /// [`PacketDrop::NoRoute`]: the packet would be too long. It is as it was.
    pub(super) fn put_on(
        &self,
        ip: &Ip<'_>,
        id: InterfaceId,
        header: &Header,
        (buffer, len): (&mut [u8], usize),
    ) -> Result<usize, PacketDrop> {
        match self.visits() {
            Some(visits) => put(ip, id, header, visits, (buffer, len)).ok_or(PacketDrop::NoRoute),
            None => Ok(len),
        }
    }

    /// The nodes that the packet visits by a header of its own, and whether that is a tunnel's.
    fn visits(&self) -> Option<(&[Ipv6Addr], bool)> {
        match self {
            Self::Nothing | Self::Option(_) => None,
            #[cfg(feature = "leaves")]
            Self::Tunnel(_, root) => Some((core::slice::from_ref(root), true)),
            #[cfg(feature = "root")]
            Self::Route(route) => Some((route.hops(), route.is_tunnel())),
        }
    }
}

/// As [`InsertedHeaders::put_on`]: a packet that visits `hops`.
fn put(
    ip: &Ip<'_>,
    id: InterfaceId,
    header: &Header,
    (hops, is_tunnel): (&[Ipv6Addr], bool),
    (buffer, len): (&mut [u8], usize),
) -> Option<usize> {
    let (first, rest) = hops.split_first()?;
    let inner = match is_tunnel {
        true => next_header::IPV6,
        false => header.next_header,
    };
    let src = match is_tunnel {
        true => ip.source_for(first, id)?,
        false => header.src,
    };
    let mut route = [0; ROUTING_LEN_MAX];
    let route_len = match rest {
        [] => 0,
        _ => write_route((&src, first), rest, inner, &mut route)?,
    };
    let next_header = match rest {
        [] => inner,
        _ => next_header::ROUTING,
    };
    // A tunnel begins the packet anew, a route alone follows its header.
    let (at, added) = match is_tunnel {
        true => (0, HEADER_LEN + route_len),
        false => (HEADER_LEN, route_len),
    };
    let longer = len.checked_add(added).filter(|len| *len <= buffer.len())?;
    // From the end, since the old place and the new one overlap. `copy_within` would leave a panic
    // in the image that the optimiser does not rule out.
    for from in (at..len).rev() {
        let byte = *buffer.get(from)?;
        *buffer.get_mut(from + added)? = byte;
    }
    let outer = Header {
        // As the packet's own, and taken back from it at the tunnel's end (RFC 6040 §4.1).
        traffic_class: TrafficClass(header.traffic_class.0),
        flow_label: match is_tunnel {
            true => 0,
            false => header.flow_label,
        },
        payload_len: u16::try_from(longer - HEADER_LEN).ok()?,
        next_header,
        hop_limit: match is_tunnel {
            true => ip.hop_limit(),
            false => header.hop_limit,
        },
        src,
        dst: *first,
    };
    outer.emit(buffer).ok()?;
    let room = buffer.get_mut(HEADER_LEN..HEADER_LEN + route_len)?;
    copy(room, &route);
    Some(longer)
}

/// Writes the source route that a packet between `ends` begins with, which leads from the second of
/// them through `rest`; returns its length. `next_header`: of what follows.
#[cfg(all(feature = "root", feature = "plain-rpl"))]
fn write_route(
    (_, first): (&Ipv6Addr, &Ipv6Addr),
    rest: &[Ipv6Addr],
    next_header: u8,
    route: &mut [u8],
) -> Option<usize> {
    let mut w = Writer::new(route);
    route_form::emit(&mut w, next_header, first, rest).ok()?;
    Some(w.written())
}

/// As above, in the form of a build without `plain-rpl`.
#[cfg(all(feature = "root", not(feature = "plain-rpl")))]
fn write_route(
    (src, first): (&Ipv6Addr, &Ipv6Addr),
    rest: &[Ipv6Addr],
    next_header: u8,
    route: &mut [u8],
) -> Option<usize> {
    route_form::begin((src, first), rest, next_header, &mut Writer::new(route)).ok()
}

/// As above, of a node that is no root: it writes none.
#[cfg(not(feature = "root"))]
const fn write_route(
    _: (&Ipv6Addr, &Ipv6Addr),
    _: &[Ipv6Addr],
    _: u8,
    _: &mut [u8],
) -> Option<usize> {
    None
}

/// Bytes that a source route takes of a first fragment, about.
#[cfg(feature = "root")]
fn route_len(hops: &[Ipv6Addr], routing: Option<&Routing>) -> usize {
    let Some(routing) = routing.filter(|routing| routing.compresses()) else {
        return TUNNEL_LEN + 2 + 8 * hops.len();
    };
    let differ = |addr: &Ipv6Addr| {
        let differ = routing.root.to_bits() ^ addr.to_bits();
        16 - differ.leading_zeros() as usize / 8
    };
    let each = hops.iter().map(differ).max().unwrap_or(0);
    usize::from(LORH_LEN) + hops.len() * each.next_power_of_two()
}

/// An outer header compressed by contexts, and how it is announced.
const TUNNEL_LEN: usize = 16;
