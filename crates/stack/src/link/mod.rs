//! The interface between a node and the links that carry its packets.
//!
//! A node handles packets, a [`Link`] handles frames. Packets go in and come out here; frames,
//! fragments, compressed headers, channels and link addresses stay inside. A link knows no
//! transport protocol. It calls IP for the next hop of a packet, for two reasons: a fragment is
//! forwarded before its packet is complete (RFC 8930), and the route of a waiting packet is looked
//! up again when it leaves.
//!
//! The calls are of four kinds, as the node's own are: events go in by `Link::on_event`, packets of
//! the node by `Link::queue` and `Link::forward`; actions are pulled by `Link::poll_action`, which
//! in turn pulls segments of the node's TCP when there is room for one; and `Link::add_deadlines`
//! gives the times at which to pull without an event. A new kind of link implements these calls and
//! no others: each match names all kinds. For features of a mesh alone (keys, sleep, RPL's reports,
//! registrations) the node uses `Link::mesh_mut`.
//!
//! Left out: addresses and routes (`ip`), what packets mean (`node`). No trait: links share no
//! code that is worth one, and an enum costs no table of functions.

mod arrival;
#[cfg(feature = "ble")]
mod ble;
#[cfg(not(feature = "ble"))]
#[path = "ble_absent.rs"]
mod ble;
#[cfg(feature = "cable")]
mod cable;
#[cfg(not(feature = "cable"))]
#[path = "cable_absent.rs"]
mod cable;
mod counters;
#[cfg(feature = "mesh")]
mod discovery;
mod event;
#[cfg(feature = "mesh")]
mod mesh;
#[cfg(not(feature = "mesh"))]
#[path = "mesh_absent.rs"]
mod mesh;
#[cfg(feature = "tcp-small")]
mod offer;
#[cfg(feature = "serial")]
mod serial;
#[cfg(not(feature = "serial"))]
#[path = "serial_absent.rs"]
mod serial;

pub use crate::ip::ndp::Advertised;
#[cfg(feature = "rpl")]
pub(crate) use crate::lowpan::Routing;
pub(crate) use crate::mac::Class;
#[cfg(feature = "security")]
pub(crate) use crate::mac::security::Reservation;
#[cfg(feature = "rpl")]
pub(crate) use arrival::Sent;
pub(crate) use arrival::{Arrival, Hop, Pulled, Refusal, Report, Scratch};
pub use ble::Ble;
#[cfg(feature = "tcple")]
pub use ble::TcpleMemory;
#[cfg(feature = "ble")]
pub use ble::{BleConfig, BleMemory};
pub use cable::Cable;
pub use counters::{LinkCounters, LinkDrop};
pub use event::{Action, Event};
pub use mesh::Mesh;
#[cfg(feature = "sleepy")]
pub use mesh::{Child, Indirect, IndirectConfig, IndirectCounters};
#[cfg(feature = "entry")]
pub use mesh::{FlowCounters, FlowEntry, FlowQueues, Thinning};
#[cfg(feature = "mesh")]
pub use mesh::{Forwarding, MeshConfig, MeshMemory, MeshStorage, Pacing, Relaying};
pub use serial::Serial;
#[cfg(feature = "serial")]
pub use serial::{SerialCounters, SerialMemory};

use crate::ip::{Ingress, InterfaceId, Ip, Neighbour, NextHop};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::storage::whole::Whole;
use crate::time::{Deadlines, Instant};
use crate::wire::icmpv6::MessageView;
use crate::wire::ipv6::Header;
pub(crate) use mesh::Budget;
#[cfg(feature = "tcp-small")]
use offer::HEADERS_LEN;
#[cfg(feature = "tcp-small")]
pub(crate) use offer::{SHRINKS_HEADERS, Segments};

/// The request of a link for a segment of the node's TCP.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'b, 'm> {
    /// Any segment: a link that carries whole packets takes each.
    #[cfg_attr(
        not(any(feature = "cable", feature = "ble")),
        expect(dead_code, reason = "links of whole packets ask so")
    )]
    Any,
    /// No segment: the link has no room, and TCP shall see what time it is.
    #[cfg(any(feature = "cable", feature = "ble"))]
    Nothing,
    /// A segment within what the link allows, where that differs from header to header.
    Within(
        #[cfg_attr(
            not(feature = "tcp-small"),
            expect(dead_code, reason = "only TCP has segments")
        )]
        &'b Budget<'b, 'm>,
    ),
    /// A segment to this neighbour that TCP may not send yet. With it, the neighbour holds at most
    /// this many bytes that were handed out like that.
    #[cfg(feature = "tcple")]
    Prefetch(Neighbour, u16),
}

/// A link carries packets to a node's neighbours: IP calls it an interface.
#[derive(Debug)]
#[cfg_attr(
    any(not(feature = "tcple"), feature = "sleepy"),
    expect(
        clippy::large_enum_variant,
        reason = "a border router has one cable beside its mesh; a box would need an allocator"
    )
)]
pub enum Link<'m> {
    /// An IEEE 802.15.4 network with 6LoWPAN, routed over.
    Mesh(Mesh<'m>),
    /// A point-to-point link that carries whole IPv6 packets: TUN, Ethernet behind an adapter.
    Cable(Cable<'m>),
    /// A point-to-point link that carries bytes, in which packets are framed (SLIP).
    Serial(Serial<'m>),
    /// Connections over Bluetooth LE (RFC 7668).
    Ble(Ble<'m>),
}

impl<'m> Link<'m> {
    /// The mesh, where it is one.
    pub const fn mesh(&self) -> Option<&Mesh<'m>> {
        match self {
            Self::Mesh(mesh) => Some(mesh),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => None,
        }
    }

    /// As [`Self::mesh`], to change its settings; they go into force with its next packet.
    pub const fn mesh_mut(&mut self) -> Option<&mut Mesh<'m>> {
        match self {
            Self::Mesh(mesh) => Some(mesh),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => None,
        }
    }

    /// Gives the link its number, and IP the addresses that the link forms by itself.
    pub(crate) fn start(&mut self, id: InterfaceId, ip: &mut Ip<'_>, now: Instant, rng: &mut Rng) {
        match self {
            Self::Mesh(mesh) => mesh.start(id, ip, now, rng),
            Self::Cable(cable) | Self::Serial(Serial { cable, .. }) => cable.start(id),
            Self::Ble(ble) => ble.start(id, ip, now, rng),
        }
    }

    /// Whether such a neighbour can exist on this link.
    pub(crate) fn reaches(&self, neighbour: Neighbour) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.reaches(neighbour),
            Self::Cable(_) | Self::Serial(_) => true,
            Self::Ble(ble) => ble.reaches(neighbour),
        }
    }

    /// Whether it is known that this neighbour is not there now, though there can be one. A mesh
    /// finds that out by asking.
    pub(crate) fn misses(&self, neighbour: Neighbour) -> bool {
        match self {
            Self::Mesh(_) | Self::Cable(_) | Self::Serial(_) => false,
            Self::Ble(ble) => !ble.reaches(neighbour),
        }
    }

    /// Adds when to poll though nothing happened.
    pub(crate) fn add_deadlines(&self, deadlines: &mut Deadlines) {
        match self {
            Self::Mesh(mesh) => mesh.add_deadlines(deadlines),
            Self::Ble(ble) => ble.add_deadlines(deadlines),
            Self::Cable(_) | Self::Serial(_) => {}
        }
    }

    /// Handles an event of the driver, up to the end of the first packet in it; `scratch` holds the
    /// resulting packet. Also returns the rest of the event, which is the next event, and shorter
    /// than `event`.
    ///
    /// An event of another kind of link is a mistake of the driver, and is ignored.
    pub(crate) fn on_event<'e: 's, 's>(
        &mut self,
        event: Event<'e>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> (Arrival<'m, 's>, Option<Event<'e>>) {
        let arrival = match self {
            Self::Mesh(mesh) => match event {
                Event::Mesh(event) => mesh.on_event(event, ip, scratch, now, rng),
                _ => Arrival::Nothing,
            },
            Self::Cable(cable) => match event {
                Event::Cable(packet) => cable.on_packet(packet),
                _ => Arrival::Nothing,
            },
            Self::Serial(serial) => match event {
                Event::Serial(bytes) => return serial.on_bytes(bytes),
                _ => Arrival::Nothing,
            },
            #[cfg(feature = "ble")]
            Self::Ble(ble) => match event {
                Event::Ble(event) => ble.on_event(event, scratch, now, rng),
                _ => Arrival::Nothing,
            },
            #[cfg(not(feature = "ble"))]
            Self::Ble(_) => Arrival::Nothing,
        };
        (arrival, None)
    }

    /// As [`Self::on_event`], of an event that brings no bytes.
    pub(crate) fn note(&mut self, event: Event<'_>, now: Instant, rng: &mut Rng) {
        match self {
            Self::Mesh(mesh) => {
                if let Event::Mesh(event) = event {
                    mesh.note(event, now, rng);
                }
            }
            #[cfg(feature = "ble")]
            Self::Ble(ble) => {
                if let Event::Ble(event) = event {
                    ble.note(event, now, rng);
                }
            }
            #[cfg(not(feature = "ble"))]
            Self::Ble(_) => {}
            Self::Cable(_) | Self::Serial(_) => {}
        }
    }

    /// Whether something waits for [`Self::poll_arrival`].
    pub(crate) fn has_arrival(&self) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.has_arrival(),
            Self::Ble(ble) => ble.has_arrival(),
            Self::Cable(_) | Self::Serial(_) => false,
        }
    }

    /// How long the segment that this link brought last, and the data that it acknowledges, waited
    /// at the peer, ms.
    #[cfg(feature = "tcple")]
    pub(crate) const fn take_waited(&mut self) -> u16 {
        match self {
            Self::Ble(ble) => ble.take_waited(),
            Self::Mesh(_) | Self::Cable(_) | Self::Serial(_) => 0,
        }
    }

    /// The next arrival that had waited until an acknowledgment had left.
    pub(crate) fn poll_arrival<'s>(
        &mut self,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        match self {
            Self::Mesh(mesh) => mesh.poll_arrival(ip, scratch, now, rng),
            Self::Ble(ble) => ble.poll_released(now),
            Self::Cable(_) | Self::Serial(_) => Arrival::Nothing,
        }
    }

    /// Takes back the memory of a packet that was gathered from fragments.
    pub(crate) fn give_back(&mut self, whole: Whole<'m>) {
        match self {
            Self::Mesh(mesh) => mesh.give_back(whole),
            Self::Cable(_) => {}
            Self::Serial(serial) => serial.give_back(whole),
            Self::Ble(ble) => ble.give_back(whole),
        }
    }

    /// Restores the headers of `packet`, whose IPv6 header is `header`, because its path on this
    /// link ends here: it is for this node, or leaves by another link (`leaves`).
    ///
    /// # Errors
    ///
    /// A counted [`LinkDrop`].
    pub(crate) fn end_path(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        hop: &mut Hop,
        leaves: bool,
        now: Instant,
    ) -> Result<(), LinkDrop> {
        match self {
            Self::Mesh(mesh) => mesh.end_path(header, packet, hop, leaves, now),
            Self::Ble(ble) if leaves => {
                ble.note_leaving(packet, now);
                Ok(())
            }
            Self::Ble(_) | Self::Cable(_) | Self::Serial(_) => Ok(()),
        }
    }

    /// Handles a message of neighbour discovery that came over this link.
    ///
    /// # Errors
    /// Why the message changed nothing.
    pub(crate) fn on_discovery(
        &mut self,
        (header, message): (&Header, &MessageView<'_>),
        ingress: &Ingress,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), crate::ip::PacketDrop> {
        match self {
            Self::Mesh(mesh) => mesh.on_discovery((header, message), ingress, ip, now, rng),
            Self::Cable(_) | Self::Serial(_) => Err(crate::ip::PacketDrop::IgnoredIcmp),
            Self::Ble(ble) => ble.on_discovery((header, message), ingress, ip, now, rng),
        }
    }

    /// Queues a packet of this node's own, in two pieces.
    pub(crate) fn queue(&mut self, parts: [&[u8]; 2], class: Class) -> Result<(), Refusal> {
        match self {
            Self::Mesh(mesh) => mesh.queue(parts, class),
            Self::Cable(cable) | Self::Serial(Serial { cable, .. }) => cable.queue(parts),
            Self::Ble(ble) => ble.queue(parts),
        }
    }

    /// Whether `packets` more packets of `bytes` bytes in all fit into the queue.
    #[cfg(feature = "fragments")]
    pub(crate) fn has_room(&self, packets: usize, bytes: usize) -> bool {
        self.waiting().has_room(packets, bytes)
    }

    /// Whether `packets` packets of `bytes` bytes in all fit into the queue when nothing else waits
    /// there.
    pub(crate) fn may_hold(&self, packets: usize, bytes: usize) -> bool {
        self.waiting().may_hold(packets, bytes)
    }

    const fn waiting(&self) -> &PacketQueue<'m> {
        match self {
            Self::Mesh(mesh) => mesh.waiting(),
            Self::Cable(cable) | Self::Serial(Serial { cable, .. }) => cable.waiting(),
            Self::Ble(ble) => ble.waiting(),
        }
    }

    /// Queues a packet that came from `hop`: `head` is its beginning, hop limit counted down, and
    /// `rest` what follows. Congestion may be marked on it.
    pub(crate) fn forward(
        &mut self,
        (head, rest): (&mut [u8], &[u8]),
        hop: &Hop,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), Refusal> {
        match self {
            Self::Mesh(mesh) => mesh.forward((head, rest), hop, ip, now, rng),
            Self::Cable(cable) | Self::Serial(Serial { cable, .. }) => cable.queue([head, rest]),
            Self::Ble(ble) => ble.forward([head, rest], hop, ip, now),
        }
    }

    /// The driver's next action; `None` where there is nothing now, or a report to take first.
    ///
    /// `pull`: writes a packet of this node's TCP for this link, where there is one, within the
    /// budget; a link without one takes any.
    pub(crate) fn poll_action(
        &mut self,
        ip: &mut Ip<'_>,
        pull: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
        rng: &mut Rng,
        out: &mut [u8],
    ) -> Option<Action> {
        match self {
            Self::Mesh(mesh) => mesh.poll_action(ip, pull, now, rng, out).map(Action::Mesh),
            Self::Cable(cable) => {
                let len = cable.poll_packet(ip, pull, out)?;
                Some(Action::Cable { len })
            }
            Self::Serial(serial) => {
                let len = serial.poll_bytes(ip, pull, out)?;
                Some(Action::Serial { len })
            }
            #[cfg(feature = "ble")]
            Self::Ble(ble) => ble.poll_action(ip, pull, now, rng, out).map(Action::Ble),
            #[cfg(not(feature = "ble"))]
            Self::Ble(_) => None,
        }
    }

    /// The way to the router that the link has learnt of, while it serves.
    pub(crate) fn router(&self) -> Option<NextHop> {
        match self {
            Self::Mesh(mesh) => mesh.router(),
            Self::Ble(ble) => ble.router(),
            Self::Cable(_) | Self::Serial(_) => None,
        }
    }

    /// The next fact that the link has found out and the node has to know.
    pub(crate) fn poll_report(&mut self) -> Option<Report<'m>> {
        match self {
            Self::Mesh(mesh) => mesh.poll_report(),
            Self::Ble(ble) => ble.poll_report(),
            Self::Cable(_) | Self::Serial(_) => None,
        }
    }
}

/// Questions about the path over a link, for TCP. The node asks before TCP announces an MSS, and
/// makes a [`tcp::Offer`](crate::tcp::Offer) of the answers.
#[cfg(feature = "tcp-small")]
impl Link<'_> {
    /// The longest segments that this node sends, and that the peer should send: payload and TCP
    /// options, bytes; 0: no segment fits.
    ///
    /// `is_carried`: whether headers are compressed. Own segments are then sized for the usual
    /// compressed header of bulk data, because [`Budget`] cuts segments with longer headers. The
    /// peer's segments are sized for the longest one, because the peer may be a host that does not
    /// know of the compression.
    pub(crate) fn mss(&self, segments: &Segments, is_carried: bool) -> [u16; 2] {
        let bytes = match self {
            Self::Mesh(mesh) => mesh.mss(segments, is_carried),
            Self::Cable(cable) | Self::Serial(Serial { cable, .. }) => {
                [usize::from(cable.mtu()) - HEADERS_LEN; 2]
            }
            Self::Ble(ble) => [ble.mss(segments); 2],
        };
        bytes.map(|bytes| bytes.min(usize::from(u16::MAX)) as u16)
    }

    /// Whether the headers of a connection are compressed here. `ports`: its local and its remote
    /// one, where the peer chose both.
    pub(crate) fn is_carried(
        &self,
        segments: &Segments,
        ports: Option<(u16, u16)>,
        now: Instant,
    ) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.is_carried(segments, ports, now),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => false,
        }
    }

    /// The most bytes that a connection may have in flight.
    pub(crate) fn flight_max(&self) -> u16 {
        match self {
            Self::Mesh(mesh) => mesh.flight_max(),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => u16::MAX,
        }
    }

    /// A number that no other node has, where the link knows one: its EUI-64.
    pub(crate) const fn unique(&self) -> Option<u64> {
        match self {
            Self::Mesh(mesh) => Some(mesh.unique()),
            Self::Ble(ble) => Some(ble.unique()),
            Self::Cable(_) | Self::Serial(_) => None,
        }
    }
}
