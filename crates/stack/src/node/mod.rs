//! A node: one of each layer, and the only place where layers meet.
//!
//! A driver loops over three calls: [`Node::on_event`] with what a link's driver reports,
//! [`Node::poll_action`] until it returns `None`, and [`Node::next_deadline`] to know when to
//! poll again though nothing happened. After a call of the application (`connect`, `send`,
//! `recv` …) it polls again too. [`Node`] states the contract of these calls.
//!
//! Left out: clocks, interrupts, memory. `now` is an argument; the memory is the caller's.

mod datagram;
mod deliver;
#[cfg(feature = "sleepy")]
mod expect;
#[cfg(not(feature = "sleepy"))]
#[path = "expect_absent.rs"]
mod expect;
mod forward;
#[cfg(feature = "fragments")]
mod fragments;
#[cfg(not(feature = "fragments"))]
#[path = "fragments_absent.rs"]
mod fragments;
#[cfg(feature = "join")]
mod joiner;
#[cfg(feature = "join")]
mod joining;
#[cfg(not(feature = "join"))]
#[path = "joining_absent.rs"]
mod joining;
#[cfg(feature = "leaves")]
mod leaves;
#[cfg(all(feature = "rpl", not(feature = "leaves")))]
#[path = "leaves_absent.rs"]
mod leaves;
#[cfg(feature = "rpl")]
mod routing;
#[cfg(not(feature = "rpl"))]
#[path = "routing_absent.rs"]
mod routing;
#[cfg(feature = "tcp-small")]
mod segment;
#[cfg(not(feature = "tcp-small"))]
#[path = "segment_absent.rs"]
mod segment;

use core::net::Ipv6Addr;

use segment::{Tcp, poll_segment};

pub use datagram::DatagramError;
#[cfg(feature = "join")]
pub use joiner::{JoinState, Joiner, JoinerConfig};
#[cfg(feature = "join")]
pub use joining::{JoinCounters, JoinProxy, JoinRole};
#[cfg(feature = "tcp-small")]
pub use segment::{ConnectError, Rejected};

use crate::ip::{Disposition, InterfaceId, Ip, NextHop};
use crate::limits::{BLE_DATA_LEN_MAX, IPV6_MTU_MIN, PSDU_LEN_MAX};
#[cfg(feature = "security")]
use crate::link::Reservation;
pub use crate::link::{Action, Event};
use crate::link::{Ask, Link, Mesh};
use crate::random::Rng;
use crate::time::{Deadlines, Duration, Instant};
use crate::udp::Inbox;
use crate::wire::ipv6::Header;

/// A host, relay or border router: one stack over its links.
///
/// A node does no input or output. It takes events, gives actions and names deadlines; a driver
/// feeds it, carries the actions out and keeps the clock.
///
/// ```
/// use motet::ip::InterfaceId;
/// use motet::mac::{self, RadioCapabilities};
/// use motet::mote::{MoteConfig, MoteStorage};
/// use motet::node::{Action, Event};
/// use motet::time::{Duration, Instant};
///
/// let mut storage = MoteStorage::<1, 2048>::EMPTY; // a static, in firmware
/// let config = MoteConfig::new(0x4d54, *b"Motet\0\0\x01", RadioCapabilities::CC2420, [1, 2]);
/// let (node, [_buffers]) = storage.lend(&config, Instant::ORIGIN)?;
///
/// // What a driver does each time it wakes.
/// let (radio, now, mut out) = (InterfaceId(0), Instant::ORIGIN, [0; 127]);
/// while let Some((_link, Action::Mesh(wish))) = node.poll_action(now, &mut out) {
///     if let mac::Action::AssessChannel = wish {
///         let clear = mac::Event::ChannelAssessed { clear: true }; // as the radio says
///         node.on_event(radio, Event::Mesh(clear), now);
///     }
/// }
/// assert!(node.next_deadline() > Some(now)); // sleep until then, or until an interrupt
/// # Ok::<(), motet::mac::Unfit>(())
/// ```
///
/// # What to call, in which order
///
/// 1. Lend memory once: all of a mote's by [`MoteStorage`](crate::mote::MoteStorage), or part by
///    part to `new` or [`Self::without_tcp`]. Addresses and routes that no router will give are
///    set by [`Self::ip_mut`].
/// 2. Hand each report of a driver to [`Self::on_event`], in the order of the reports.
/// 3. Call [`Self::poll_action`] until it returns `None`. Carry out each action before the next
///    call, which overwrites `out`.
/// 4. With the feature `security`, call `poll_reservation` until it returns `None`.
/// 5. Let the application run: `connect` and `tcp_mut` for streams, [`Self::send_datagram`] and
///    [`Self::inbox_mut`] for datagrams. These calls send nothing by themselves: go through step 3
///    again.
/// 6. Sleep until the next event or until [`Self::next_deadline`]; go on with step 2 or step 3.
///
/// # Who owns the memory
///
/// The caller owns all of it and lends it for `'m`: links, tables and queues when they are made,
/// the buffers of a connection with `connect` or `accept`. `Tcp::remove` returns those buffers once
/// the connection is over; an error of `connect` or `accept` returns them at once.
/// [`Self::into_layers`] takes the node apart and returns the rest. The bytes of an event are
/// borrowed for that call only.
///
/// # What a node promises
///
/// - No call waits, and each call does a bounded amount of work.
/// - The same calls with the same arguments give the same actions and the same bytes. Time is the
///   argument `now`; all randomness comes from the [`Rng`] that the node was made with.
/// - No bytes from the network make it panic. Each dropped frame, packet or segment is counted by
///   reason in the layer that dropped it.
/// - Each action is returned once. If a radio never answers an action, the attempt fails at a
///   deadline: [`Config::answer_timeout`](crate::mac::Config::answer_timeout).
/// - TCP is asked for a segment only when the link has room for it. No segment that TCP counts as
///   sent is refused further down.
/// - Where software acknowledges frames, the ACK is the first action after the event of its frame.
///
/// A node never reads a clock, allocates, calls back, blocks, or starts a thread.
///
/// # What a node expects
///
/// - `now` never goes back, not even while the device sleeps.
/// - The seed is unique: no other node has it, and no other start of this node.
/// - Each event names the link whose driver reports it. An event for a link that does not exist,
///   or of another link's kind, changes nothing.
/// - Calls come on time. A late call delays what was due;
///   [the deadlines of a radio driver](crate::mac#deadlines-of-a-radio-driver) say what it costs.
#[derive(Debug)]
pub struct Node<'m> {
    links: &'m mut [Link<'m>],
    ip: Ip<'m>,
    tcp: Tcp<'m>,
    rng: Rng,
    /// RPL, where a link has it.
    #[cfg(feature = "rpl")]
    routing: Option<routing::State<'m>>,
    /// UDP, where the application wants it.
    inbox: Option<Inbox<'m>>,
    /// Packets that come in fragments, where the application has lent memory for them.
    #[cfg(feature = "fragments")]
    fragments: Option<crate::ip::Fragments<'m>>,
    /// The node's part in joining.
    #[cfg(feature = "join")]
    join_proxy: Option<&'m mut JoinProxy>,
    /// Until when the answer to a datagram may come.
    #[cfg(feature = "sleepy")]
    answer_until: Option<Instant>,
    /// When [`Self::poll_action`] last found nothing to do: whatever was due then waits for
    /// an event, not for the clock.
    polled_at: Option<Instant>,
    /// A link has queued something for one that may have been polled before it.
    must_poll_again: bool,
    /// When to be polled once more because [`Self::poll_action`] dealt with a packet for this
    /// node: an application that was asked before that has not seen it.
    news_at: Option<Instant>,
}

/// The parts of a node that is taken apart: each layer gives the memory back that it was lent.
#[derive(Debug)]
pub struct Layers<'m> {
    /// The links, in the order of their interface numbers.
    pub links: &'m mut [Link<'m>],
    /// IP, with its addresses and routes.
    pub ip: Ip<'m>,
    /// RPL, where the node has it.
    #[cfg(feature = "rpl")]
    pub rpl: Option<crate::rpl::Rpl<'m>>,
    /// A root's memory for the motes below it.
    #[cfg(feature = "rpl")]
    pub steps: &'m mut [Option<crate::ip::Step>],
    /// TCP with its connections, listeners and half-open entries.
    #[cfg(feature = "tcp-small")]
    pub tcp: Tcp<'m>,
    /// UDP, where the application wanted it.
    pub inbox: Option<Inbox<'m>>,
    /// Packets in fragments, where the application had lent memory for them.
    #[cfg(feature = "fragments")]
    pub fragments: Option<crate::ip::Fragments<'m>>,
}

/// Bytes that [`Node::poll_action`] may write: a packet where a link can carry whole ones, a data
/// packet of a Bluetooth LE controller in a build with `ble`, a frame in a build with meshes alone.
pub const ACTION_LEN_MAX: usize = if cfg!(any(feature = "cable", feature = "entry")) {
    IPV6_MTU_MIN
} else if cfg!(feature = "ble") {
    BLE_DATA_LEN_MAX
} else {
    PSDU_LEN_MAX
};

impl<'m> Node<'m> {
    /// A node that speaks no TCP itself, as a relay may be; otherwise as
    #[cfg_attr(feature = "tcp-small", doc = "[`Self::new`].")]
    #[cfg_attr(
        not(feature = "tcp-small"),
        doc = "`new`, which the feature `tcp` adds."
    )]
    pub fn without_tcp(links: &'m mut [Link<'m>], ip: Ip<'m>, rng: Rng, now: Instant) -> Self {
        Self::of_layers(links, ip, Tcp::absent(), rng, now)
    }

    fn of_layers(
        links: &'m mut [Link<'m>],
        mut ip: Ip<'m>,
        tcp: Tcp<'m>,
        mut rng: Rng,
        now: Instant,
    ) -> Self {
        for (link, id) in links.iter_mut().zip(0..) {
            link.start(InterfaceId(id), &mut ip, now, &mut rng);
        }
        Self {
            links,
            ip,
            tcp,
            rng,
            #[cfg(feature = "rpl")]
            routing: None,
            inbox: None,
            #[cfg(feature = "fragments")]
            fragments: None,
            #[cfg(feature = "join")]
            join_proxy: None,
            #[cfg(feature = "sleepy")]
            answer_until: None,
            polled_at: None,
            must_poll_again: false,
            news_at: None,
        }
    }

    /// Takes the node apart, so that its memory can be lent to something else, or to the next node.
    pub fn into_layers(self) -> Layers<'m> {
        #[cfg(feature = "rpl")]
        let mut ip = self.ip;
        #[cfg(not(feature = "rpl"))]
        let ip = self.ip;
        Layers {
            links: self.links,
            #[cfg(feature = "rpl")]
            rpl: self.routing.map(routing::State::into_rpl),
            #[cfg(feature = "rpl")]
            steps: ip.rpl_mut().take_steps(),
            ip,
            #[cfg(feature = "tcp-small")]
            tcp: self.tcp,
            inbox: self.inbox,
            #[cfg(feature = "fragments")]
            fragments: self.fragments,
        }
    }

    /// Takes what the driver of link `id` reports.
    ///
    /// Where software acknowledges a frame, this only finds that out: the ACK is the first action
    /// that [`Self::poll_action`] returns, and the packet is processed after it.
    // Not inlined, as `next_deadline`: in a device's main loop, their frames would lie below all
    // work of the stack, 200 B of the call stack.
    #[inline(never)]
    pub fn on_event(&mut self, id: InterfaceId, event: Event<'_>, now: Instant) {
        self.polled_at = None;
        // Most events of a radio bring nothing, and need no memory to unpack it in.
        if !event.brings_bytes() {
            let Self { links, rng, .. } = self;
            let link = links.get_mut(usize::from(id.0));
            return link.map_or((), |link| link.note(event, now, rng));
        }
        let mut rest = Some(event);
        // Each turn leaves less of the event.
        while rest.is_some() {
            rest = self.on_link(id, rest, now);
        }
    }

    /// The next action of a link's driver; call until `None`.
    ///
    /// `out`: at least [`ACTION_LEN_MAX`] bytes, or the MTU of a cable that carries more; a frame's
    /// ([`PSDU_LEN_MAX`]) where all links are meshes. Holds the bytes that the action speaks of.
    /// A link over Bluetooth LE cuts its data packets so that they fit.
    pub fn poll_action(&mut self, now: Instant, out: &mut [u8]) -> Option<(InterfaceId, Action)> {
        if self.news_at.is_some_and(|at| now >= at) {
            self.news_at = None;
        }
        // Only a radio's links acknowledge, and have packets that wait for that.
        if cfg!(feature = "mesh") {
            if let Some(action) = self.poll_acknowledgment(now, out) {
                return Some(action);
            }
            self.poll_arrivals(now);
        }
        self.poll_fragments(now);
        loop {
            self.must_poll_again = false;
            self.poll_routing(now);
            self.poll_joining(now);
            for id in self.interface_ids() {
                if let Some(action) = self.poll_link(id, now, out) {
                    return Some((id, action));
                }
            }
            let has_news = self.hint(now);
            if !self.must_poll_again && !has_news {
                self.polled_at = Some(now);
                return None;
            }
        }
    }

    fn interface_ids(&self) -> impl Iterator<Item = InterfaceId> + use<> {
        (0..self.links.len() as u8).map(InterfaceId)
    }

    /// The ACK that a link owes.
    fn poll_acknowledgment(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<(InterfaceId, Action)> {
        self.links.iter_mut().zip(0..).find_map(|(link, id)| {
            let action = link.mesh_mut()?.poll_acknowledgment(now, out)?;
            Some((InterfaceId(id), Action::Mesh(action)))
        })
    }

    /// The next action of one link's driver.
    fn poll_link(&mut self, id: InterfaceId, now: Instant, out: &mut [u8]) -> Option<Action> {
        loop {
            let Self {
                links,
                ip,
                tcp,
                rng,
                ..
            } = self;
            let link = links.get_mut(usize::from(id.0))?;
            let pull = |ip: &Ip<'_>, ask: Ask<'_, 'm>, out: &mut [u8]| {
                poll_segment(ip, tcp, id, ask, now, out)
            };
            let action = link.poll_action(ip, pull, now, rng, out);
            if action.is_some() {
                return action;
            }
            let report = link.poll_report()?;
            self.on_report(id, report, now);
        }
    }

    /// When [`Self::poll_action`] has something to do though no event came; `None`: never.
    #[inline(never)]
    pub fn next_deadline(&self) -> Option<Instant> {
        // Work that was due at the last poll and is still pending waits for room, which an event
        // will make.
        let mut deadlines = Deadlines::after(self.polled_at);
        deadlines.add(self.tcp.next_deadline());
        deadlines.add(self.news_at);
        self.add_routing_deadlines(&mut deadlines);
        deadlines.add(self.fragments_deadline());
        for link in self.links.iter() {
            link.add_deadlines(&mut deadlines);
        }
        deadlines.first()
    }

    /// The reservation that the host has to store so that it outlives a reboot, and the link it is
    /// for; call until `None` after [`Self::poll_action`]. Each reservation is returned once. Until
    /// [`Self::on_reserved`] answers, the node may have to stop sending: it uses no frame counter
    /// before a bound above it was stored.
    #[cfg(feature = "security")]
    pub fn poll_reservation(&mut self, now: Instant) -> Option<(InterfaceId, Reservation)> {
        self.links.iter_mut().zip(0..).find_map(|(link, id)| {
            let reservation = link.mesh_mut()?.poll_reservation(now)?;
            Some((InterfaceId(id), reservation))
        })
    }

    /// The host has stored it, or could not: then frames are dropped and counted
    /// ([`NoCounter`](crate::mac::FrameDrop::NoCounter)) when those are used that were stored
    /// before, and the host is asked again after 10 s.
    #[cfg(feature = "security")]
    pub fn on_reserved(
        &mut self,
        id: InterfaceId,
        reservation: Reservation,
        is_stored: bool,
        now: Instant,
    ) {
        self.polled_at = None;
        if let Some(mesh) = mesh_mut(self.links, id) {
            mesh.on_reserved(reservation, is_stored, now);
        }
    }

    /// The next step towards `dst`, if the link that it leads over can have such a neighbour.
    /// A link-local `dst` is looked for on `on_link`.
    fn next_hop(&self, dst: &Ipv6Addr, on_link: InterfaceId) -> Option<NextHop> {
        let hop = self.ip.next_hop(dst, on_link)?;
        let link = self.link(hop.interface)?;
        link.reaches(hop.neighbour).then_some(hop)
    }

    /// Addresses and routes, to change.
    pub fn ip_mut(&mut self) -> &mut Ip<'m> {
        self.polled_at = None;
        &mut self.ip
    }

    /// Addresses and routes, to look at.
    pub const fn ip(&self) -> &Ip<'m> {
        &self.ip
    }

    /// The address that hosts beyond the mesh know this node by; `None` until configured.
    pub fn global_address(&self) -> Option<Ipv6Addr> {
        let mut addresses = self.ip.addresses();
        addresses
            .find(|a| !a.addr.is_unicast_link_local())
            .map(|a| a.addr)
    }

    /// A link, to look at.
    pub fn link(&self, id: InterfaceId) -> Option<&Link<'m>> {
        self.links.get(usize::from(id.0))
    }

    /// A link, to change its settings; a mesh link's go into force with its next packet.
    pub fn link_mut(&mut self, id: InterfaceId) -> Option<&mut Link<'m>> {
        self.links.get_mut(usize::from(id.0))
    }
}

/// Link `id`, where it is a mesh: for what no other link has, as keys, RPL's reports and sleep.
fn mesh_mut<'l, 'm>(links: &'l mut [Link<'m>], id: InterfaceId) -> Option<&'l mut Mesh<'m>> {
    links.get_mut(usize::from(id.0))?.mesh_mut()
}

/// All links of a node that are meshes.
#[cfg(any(feature = "join", feature = "sleepy"))]
fn meshes_mut<'l, 'm>(links: &'l mut [Link<'m>]) -> impl Iterator<Item = &'l mut Mesh<'m>> {
    links.iter_mut().filter_map(Link::mesh_mut)
}

/// A packet's header, its length, and its way from here.
struct Classified {
    header: Header,
    /// Length of the packet, bytes; padding may follow it in the buffer.
    len: usize,
    disposition: Disposition,
}

/// The resolution of [`Instant`], 1 µs.
const TICK: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests;
