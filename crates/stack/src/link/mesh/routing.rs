//! What RPL makes of a packet when it leaves: an RPL option on its way up, a source route on its
//! way down, a tunnel around another node's packet.
//!
//! Place: between the queue and the fragmenter, where the route is asked. So a packet that waited
//! takes the way that is known when it leaves. Left out: the ways themselves, which are IP's.
//! Sources: RFC 6554 §4.1; RFC 9008 §7 and §8: which packets carry what.

use core::net::Ipv6Addr;

use super::mark::{Mark, Way};
use crate::ip::{self, InterfaceId, Ip, NextHop, PacketDrop};
use crate::limits::{ROUTE_HOPS_MAX, ROUTING_LEN_MAX};
use crate::link::arrival::Sent;
use crate::lowpan::{Contexts, Routing};
use crate::mac::Outcome;
use crate::wire::cursor::{Writer, copy};
use crate::wire::ipv6::{HEADER_LEN, Header, TrafficClass, next_header};
use crate::wire::rpl_option::Rpi;
use crate::wire::source_route;

/// What a mesh link knows of RPL.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Whether the node wants to know what becomes of frames.
    pub(super) reports: bool,
    pub(super) sent: Option<Sent>,
    /// Bytes that routing adds to a first fragment, and of these those that fragments number.
    pub(super) overhead: (u8, u8),
}

impl State {
    /// Notes what became of a frame to one neighbour. `was_passed_on`: a fragment of a packet that
    /// this node has not gathered.
    pub(super) fn note(&mut self, outcome: &Outcome, was_passed_on: bool) {
        if self.reports && !outcome.to.is_broadcast() {
            self.sent = Some(Sent {
                to: outcome.to.iid(),
                attempts: outcome.attempts,
                acknowledged: outcome.delivered,
                is_step_lost: was_passed_on && !outcome.delivered && outcome.attempts > 0,
            });
        }
    }

    pub(super) const fn has_report(&self) -> bool {
        self.sent.is_some()
    }

    /// Counts on what packets of this node's connections carry, the longer way of the two: a source
    /// route of so many hops down, an option up.
    pub(super) fn settle(&mut self, routing: Option<&Routing>, hops: u8) {
        self.overhead = match routing {
            None => (0, 0),
            Some(routing) if routing.is_compressed => (LORH_LEN.saturating_add(hops), 0),
            Some(_) => (OPTION_LEN, OPTION_LEN),
        };
    }
}

/// 6LoRH before the addresses of a route, each of which takes a byte where motes are numbered: the
/// page, the source route, the tunnel.
const LORH_LEN: u8 = 1 + 2 + 3;

/// How many hops a packet has before it that is to be led on from here by its source route.
pub(super) fn hops_left(packet: &[u8]) -> u8 {
    let left = packet.get(HEADER_LEN + source_route::SEGMENTS_LEFT_AT);
    left.copied().unwrap_or_default()
}

/// A hop-by-hop header with the RPL option.
const OPTION_LEN: u8 = 8;

/// What a first fragment with a source route grows by at most on its way: the source address is
/// written out behind the first hop, the hop limit counts down, congestion is marked.
pub(super) const ROUTED_SLACK: usize = 10;

/// What a packet gets.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, on the stack"
)]
pub(super) enum Dress {
    Nothing,
    /// An RPL option.
    Option(Rpi),
    /// A tunnel to the root, and an RPL option.
    Tunnel(Rpi, Ipv6Addr),
    /// A source route; within a tunnel, or in the packet itself.
    Route(Route),
}

/// A source route as a packet gets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    hops: [Ipv6Addr; ROUTE_HOPS_MAX],
    len: u8,
    is_tunnel: bool,
    ends_at_leaf: bool,
}

impl Route {
    fn hops(&self) -> &[Ipv6Addr] {
        self.hops.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Dress {
    /// What a packet of `header` gets that leaves by `hop`.
    pub(super) fn of(ip: &Ip<'_>, header: &Header, hop: NextHop, mark: &Mark) -> Self {
        let Some(place) = ip.rpl().place().filter(|_| mark.way != Way::Routed) else {
            return Self::Nothing;
        };
        let is_own = ip.owns(&header.src, hop.interface);
        if let Some(path) = ip.rpl().path(&header.dst) {
            return Self::down(&path, place.root, is_own);
        }
        let Some(option) = ip.rpl().option().filter(|_| ip.goes_up(header, hop)) else {
            return Self::Nothing;
        };
        match mark.way {
            Way::Up { rank_error } => Self::Option(Rpi {
                rank_error,
                ..option
            }),
            _ if is_own => Self::Option(option),
            // Its sender knows no RPL (RFC 9008 §7.1.4).
            _ => Self::Tunnel(option, place.root),
        }
    }

    fn down(path: &ip::Path, root: Ipv6Addr, is_own: bool) -> Self {
        let leaf = usize::from(path.ends_at_leaf());
        let motes = path.motes();
        let motes = motes.get(..motes.len() - leaf).unwrap_or_default();
        if motes.len() + leaf < 2 {
            return Self::Nothing;
        }
        let mut route = Route {
            hops: [Ipv6Addr::UNSPECIFIED; ROUTE_HOPS_MAX],
            len: motes.len() as u8,
            is_tunnel: !is_own || leaf > 0,
            ends_at_leaf: leaf > 0,
        };
        for (hop, mote) in route.hops.iter_mut().zip(motes) {
            *hop = ip::with_iid(&root, *mote);
        }
        Self::Route(route)
    }

    /// Whether the packet gets a header of its own in front of the one that it has.
    pub(super) const fn is_long(&self) -> bool {
        matches!(self, Self::Tunnel(..) | Self::Route(_))
    }

    /// How many hops it has before it, where it goes down.
    pub(super) fn hops(&self) -> Option<u8> {
        match self {
            Self::Route(route) => Some(route.len + u8::from(route.ends_at_leaf)),
            Self::Nothing | Self::Option(_) | Self::Tunnel(..) => None,
        }
    }

    /// What goes beside the packet.
    pub(super) const fn option(&self) -> Option<Rpi> {
        match self {
            Self::Option(option) | Self::Tunnel(option, _) => Some(*option),
            Self::Nothing | Self::Route(_) => None,
        }
    }

    /// Bytes that it takes of a first fragment, about: compression says precisely.
    pub(super) fn compressed_len(&self, contexts: &Contexts) -> usize {
        let routing = contexts.routing();
        let is_compressed = routing.is_some_and(|routing| routing.is_compressed);
        match self {
            Self::Nothing => 0,
            Self::Option(_) => usize::from(OPTION_LEN),
            Self::Tunnel(..) => TUNNEL_LEN + usize::from(OPTION_LEN),
            Self::Route(route) if is_compressed => {
                let root = routing.map_or(Ipv6Addr::UNSPECIFIED, |routing| routing.root);
                let differ = |addr: &Ipv6Addr| {
                    let differ = root.to_bits() ^ addr.to_bits();
                    16 - differ.leading_zeros() as usize / 8
                };
                let each = route.hops().iter().map(differ).max().unwrap_or(0);
                usize::from(LORH_LEN) + route.hops().len() * each.next_power_of_two()
            }
            Self::Route(route) => TUNNEL_LEN + 2 + 8 * route.hops().len(),
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
        let (hops, is_tunnel) = match self {
            Self::Nothing | Self::Option(_) => return Ok(len),
            Self::Tunnel(_, root) => (core::slice::from_ref(root), true),
            Self::Route(route) => (route.hops(), route.is_tunnel),
        };
        put(ip, id, header, (hops, is_tunnel), (buffer, len)).ok_or(PacketDrop::NoRoute)
    }
}

/// As [`Dress::put_on`]: a packet that visits `hops`.
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
    let mut route = [0; ROUTING_LEN_MAX];
    let mut w = Writer::new(&mut route);
    if !rest.is_empty() {
        source_route::emit(&mut w, inner, first, rest).ok()?;
    }
    let route_len = w.written();
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
        src: match is_tunnel {
            true => ip.source_for(first, id)?,
            false => header.src,
        },
        dst: *first,
    };
    outer.emit(buffer).ok()?;
    let room = buffer.get_mut(HEADER_LEN..HEADER_LEN + route_len)?;
    copy(room, &route);
    Some(longer)
}

/// An outer header compressed by contexts, and how it is announced.
const TUNNEL_LEN: usize = 16;
