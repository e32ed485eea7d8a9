//! The door between a node and what carries its packets.
//!
//! A node knows packets, a [`Link`] knows frames: packets go in and come out here, and all that
//! is smaller (frames, fragments, compressed headers, channels, link addresses) stays inside.
//! A link knows no transport. Of IP it asks where a packet goes, for two reasons: a fragment is
//! passed on before its packet is whole (RFC 8930), and a waiting packet's route is asked anew
//! when the packet leaves.
//!
//! The calls are of four kinds, as the node's own are: what happened goes in by `Link::on_event`,
//! packets of the node by `Link::queue` and `Link::forward`; actions are pulled by
//! `Link::poll_action`, which in turn pulls segments of the node's TCP when there is room for
//! one; and `Link::add_deadlines` says when to pull though nothing happened.
//!
//! Left out: addresses and routes (`ip`), what packets mean (`node`). No trait: links share no
//! code that is worth one, and an enum costs no table of functions.

mod arrival;
#[cfg(feature = "ble")]
mod ble;
#[cfg(not(feature = "ble"))]
#[path = "ble_absent.rs"]
mod ble;
#[cfg(feature = "router")]
mod cable;
#[cfg(not(feature = "router"))]
#[path = "cable_absent.rs"]
mod cable;
mod counters;
mod discovery;
mod event;
mod mesh;
#[cfg(feature = "tcp")]
mod offer;
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
#[cfg(feature = "sleepy")]
pub use mesh::{Child, Indirect, IndirectConfig, IndirectCounters};
#[cfg(feature = "router")]
pub use mesh::{FlowCounters, FlowEntry, FlowQueues, Thinning};
pub use mesh::{Forwarding, Hold, Mesh, MeshConfig, MeshMemory, MeshStorage, Relaying};
pub use serial::{Serial, SerialCounters, SerialMemory};

#[cfg(any(feature = "rpl", feature = "join"))]
use crate::ip::Iid;
#[cfg(feature = "rpl")]
use crate::ip::registrar::Registrar;
use crate::ip::{Ingress, InterfaceId, Ip, Neighbour, NextHop};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::storage::whole::Whole;
use crate::time::{Deadlines, Instant};
use crate::wire::icmpv6::Message;
use crate::wire::ipv6::Header;
#[cfg(feature = "rpl")]
use crate::wire::ndp::PrefixInformation;
pub(crate) use mesh::Budget;
#[cfg(feature = "tcp")]
pub(crate) use offer::{SHRINKS_HEADERS, Segments};

/// What a link asks of the node's TCP.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'b, 'm> {
    /// A segment.
    #[cfg_attr(
        not(any(feature = "router", feature = "ble")),
        expect(dead_code, reason = "links of whole packets ask so")
    )]
    Any,
    /// A segment within what the link allows, where that differs from header to header.
    Within(
        #[cfg_attr(
            not(feature = "tcp"),
            expect(dead_code, reason = "only TCP has segments")
        )]
        &'b Budget<'b, 'm>,
    ),
    /// A segment to this neighbour that TCP may not send yet, with so many bytes at most of all
    /// that were handed out like that.
    #[cfg(feature = "tcple")]
    Ahead(Neighbour, u16),
}

/// What carries packets to a node's neighbours: IP calls it an interface.
#[derive(Debug)]
#[cfg_attr(
    any(not(feature = "tcple"), feature = "sleepy"),
    expect(
        clippy::large_enum_variant,
        reason = "a border router has one cable beside its mesh; a box would need an allocator"
    )
)]
pub enum Link<'m> {
    /// IEEE 802.15.4 with 6LoWPAN.
    Mesh(Mesh<'m>),
    /// A point-to-point link that carries whole IPv6 packets: TUN, Ethernet behind an adapter.
    Cable(Cable<'m>),
    /// A point-to-point link that carries bytes, in which packets are framed (SLIP).
    Serial(Serial<'m>),
    /// Bluetooth LE.
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

    /// Whether this node sleeps on the link, and the link is to know what is expected.
    #[cfg(feature = "sleepy")]
    pub(crate) const fn takes_hints(&self) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.takes_hints(),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => false,
        }
    }

    /// Takes over when an answer may come; returns whether there is something to do about it.
    #[cfg(feature = "sleepy")]
    pub(crate) fn expect(&mut self, answer: Option<crate::hint::Expectation>) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.expect(answer),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => false,
        }
    }

    /// What the host shall store before the node sends on.
    #[cfg(feature = "security")]
    pub(crate) fn poll_reservation(&mut self, now: Instant) -> Option<Reservation> {
        match self {
            Self::Mesh(mesh) => mesh.poll_reservation(now),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => None,
        }
    }

    /// What became of it.
    #[cfg(feature = "security")]
    pub(crate) fn on_reserved(&mut self, what: Reservation, is_stored: bool, now: Instant) {
        match self {
            Self::Mesh(mesh) => mesh.on_reserved(what, is_stored, now),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => {}
        }
    }

    /// Whether frames of nodes without a key are taken from now on.
    #[cfg(feature = "join")]
    pub(crate) const fn serve_pledges(&mut self, serves: bool) {
        if let Self::Mesh(mesh) = self {
            mesh.serve_pledges(serves);
        }
    }

    /// The packet in clear that came last: its sender, and its length in `out`.
    #[cfg(feature = "join")]
    pub(crate) fn take_in_clear(&mut self, out: &mut [u8]) -> Option<(Iid, usize)> {
        match self {
            Self::Mesh(mesh) => mesh.take_in_clear(out),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => None,
        }
    }

    /// Sends a packet in clear to one neighbour, or to all.
    ///
    /// # Errors
    /// Why not.
    #[cfg(feature = "join")]
    pub(crate) fn send_in_clear(
        &mut self,
        to: Option<Iid>,
        packet: &[u8],
        now: Instant,
    ) -> Result<(), Refusal> {
        let Self::Mesh(mesh) = self else {
            return Err(Refusal::Full);
        };
        let sent = mesh.send_in_clear(to, packet, now);
        sent.map_err(|reason| match reason {
            crate::mac::FrameDrop::BadLength => Refusal::TooBig { mtu: 0 },
            _ => Refusal::Full,
        })
    }

    /// Notes the network key that will take the place of the one in force.
    #[cfg(feature = "join")]
    pub(crate) fn expect_key(&mut self, key: (crate::mac::security::NetworkKey, u32)) {
        if let Self::Mesh(mesh) = self {
            mesh.expect_key(key);
        }
    }

    /// Takes the key of the network, where the link has none yet; returns whether it waited for
    /// one.
    #[cfg(feature = "join")]
    pub(crate) fn unlock(
        &mut self,
        key: (crate::mac::security::NetworkKey, u32),
        stored: Option<Reservation>,
        now: Instant,
        rng: &mut Rng,
    ) -> bool {
        match self {
            Self::Mesh(mesh) if mesh.is_locked() => {
                mesh.unlock(key, stored, now, rng);
                true
            }
            _ => false,
        }
    }

    /// Whether there can be such a neighbour.
    pub(crate) fn reaches(&self, neighbour: Neighbour) -> bool {
        match self {
            Self::Mesh(_) => mesh::link_addr(neighbour).is_some(),
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

    /// Takes what the driver reports, up to the end of the first packet in it; `scratch` holds what
    /// comes of that. Returns with it what of the event is left, and is the next one; it is shorter
    /// than `event`.
    ///
    /// An event of another link's kind is a driver's mistake, and nothing happens.
    pub(crate) fn on_event<'e: 's, 's>(
        &mut self,
        event: Event<'e>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> (Arrival<'m, 's>, Option<Event<'e>>) {
        let arrival = match (self, event) {
            (Self::Mesh(mesh), Event::Mesh(event)) => mesh.on_event(event, ip, scratch, now, rng),
            (Self::Cable(cable), Event::Cable(packet)) => cable.on_packet(packet),
            (Self::Serial(serial), Event::Serial(bytes)) => return serial.on_bytes(bytes),
            #[cfg(feature = "ble")]
            (Self::Ble(ble), Event::Ble(event)) => ble.on_event(event, scratch, now, rng),
            _ => Arrival::Nothing,
        };
        (arrival, None)
    }

    /// As [`Self::on_event`], of an event that brings no bytes.
    pub(crate) fn note(&mut self, event: Event<'_>, now: Instant, rng: &mut Rng) {
        match (self, event) {
            (Self::Mesh(mesh), Event::Mesh(event)) => mesh.note(event, now, rng),
            #[cfg(feature = "ble")]
            (Self::Ble(ble), Event::Ble(event)) => ble.note(event, now, rng),
            _ => {}
        }
    }

    /// Whether something waits for [`Self::poll_arrival`].
    pub(crate) fn has_arrival(&self) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.has_arrival(),
            #[cfg(feature = "tcple")]
            Self::Ble(ble) => ble.has_arrival(),
            #[cfg(not(feature = "tcple"))]
            Self::Ble(_) => false,
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

    /// What waited for an acknowledgement to leave first.
    pub(crate) fn poll_arrival<'s>(
        &mut self,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        match self {
            Self::Mesh(mesh) => mesh.poll_arrival(ip, scratch, now, rng),
            #[cfg(feature = "tcple")]
            Self::Ble(ble) => ble.poll_released(now),
            #[cfg(not(feature = "tcple"))]
            Self::Ble(_) => Arrival::Nothing,
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

    /// Ends the path of `packet`, whose header is `header`, on this link: it is for this node, or
    /// leaves by another link (`leaves`).
    ///
    /// # Errors
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
            #[cfg(all(feature = "ble", feature = "router"))]
            Self::Ble(ble) if leaves => {
                ble.note_leaving(packet, now);
                Ok(())
            }
            Self::Ble(_) | Self::Cable(_) | Self::Serial(_) => Ok(()),
        }
    }

    /// A message of neighbour discovery that came over this link.
    ///
    /// # Errors
    /// Why it changed nothing.
    pub(crate) fn on_discovery(
        &mut self,
        (header, message): (&Header, &Message<'_>),
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

    /// Whether so many more packets of so many bytes in all fit into the queue.
    #[cfg(feature = "fragments")]
    pub(crate) fn has_room(&self, packets: usize, bytes: usize) -> bool {
        self.waiting().has_room(packets, bytes)
    }

    /// Whether so many packets of so many bytes together fit into the queue when nothing else waits
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
            #[cfg(all(feature = "ble", feature = "router"))]
            Self::Ble(ble) => ble.forward([head, rest], hop, ip, now),
            #[cfg(not(all(feature = "ble", feature = "router")))]
            Self::Ble(ble) => ble.queue([head, rest]),
        }
    }

    /// The acknowledgement that is owed: due a turnaround after the frame's end, it waits for
    /// nothing.
    pub(crate) fn poll_acknowledgment(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        match self {
            Self::Mesh(mesh) => mesh.poll_acknowledgment(now, out).map(Action::Mesh),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => None,
        }
    }

    /// What the driver shall do next; `None` where there is nothing now, or a report to take
    /// first.
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

    /// Begins to report what becomes of frames ([`Report::Sent`]), for RPL.
    #[cfg(feature = "rpl")]
    pub(crate) fn report_frames(&mut self) {
        if let Self::Mesh(mesh) = self {
            mesh.report_frames();
        }
    }

    /// Takes over how packets of this node's DODAG look, and how many hops the root is away;
    /// `None`: it is in none.
    #[cfg(feature = "rpl")]
    pub(crate) fn settle(&mut self, routing: Option<Routing>, hops: u8) {
        if let Self::Mesh(mesh) = self {
            mesh.settle(routing, hops);
        }
    }

    /// RPL leads from now on: contexts are asked of `router` alone, its preferred parent.
    #[cfg(feature = "rpl")]
    pub(crate) fn follow(&mut self, router: Option<Iid>, ip: &Ip<'_>, now: Instant, rng: &mut Rng) {
        if let Self::Mesh(mesh) = self {
            mesh.follow(router, ip, now, rng);
        }
    }

    /// Takes the prefix that RPL has brought, or its end: this node's address is formed from it.
    #[cfg(feature = "rpl")]
    pub(crate) fn learn_prefix(
        &mut self,
        information: Option<&PrefixInformation>,
        ip: &mut Ip<'_>,
    ) {
        if let Self::Mesh(mesh) = self {
            mesh.learn_prefix(information, ip);
        }
    }

    /// What neighbours have registered with this node; `None`: such a link has no registrations.
    #[cfg(feature = "rpl")]
    pub(crate) const fn registrar_mut(&mut self) -> Option<&mut Registrar<'m>> {
        match self {
            Self::Mesh(mesh) => Some(mesh.registrar_mut()),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => None,
        }
    }

    /// A packet of the neighbour `from`'s own was passed on, which takes no part in RPL: it hears
    /// of this router, unless it has registered.
    #[cfg(feature = "rpl")]
    pub(crate) fn remind(&mut self, from: Iid, ip: &Ip<'_>, now: Instant) {
        if let Self::Mesh(mesh) = self {
            mesh.remind(from, ip, now);
        }
    }

    /// Ends the registration of the neighbour with identifier `iid`, which is at another router
    /// now, and says so to it.
    #[cfg(feature = "rpl")]
    pub(crate) fn end_registration(&mut self, iid: Iid, ip: &Ip<'_>) {
        if let Self::Mesh(mesh) = self {
            mesh.end_registration(iid, ip);
        }
    }

    /// What the link has found out, where the node has to know.
    pub(crate) fn poll_report(&mut self) -> Option<Report<'m>> {
        match self {
            Self::Mesh(mesh) => mesh.poll_report(),
            Self::Ble(ble) => ble.poll_report(),
            Self::Cable(_) | Self::Serial(_) => None,
        }
    }

    /// Takes back what a report lent.
    pub(crate) fn end_report(&mut self, report: Report<'m>) {
        if let Self::Mesh(mesh) = self {
            mesh.end_report(report);
        }
    }
}
