//! A node: one of each layer, and the only place where layers meet.
//!
//! A driver loops over three calls: [`Node::on_event`] with what an interface reports,
//! [`Node::poll_action`] until it returns `None`, and [`Node::next_deadline`] to know when to
//! poll again though nothing happened. After a call of the application (`connect`, `send`,
//! `recv` …) it polls again too.
//!
//! Left out: clocks, interrupts, memory. `now` is an argument; the memory is the caller's.

#[cfg_attr(
    not(feature = "tcp"),
    expect(dead_code, reason = "nobody but TCP asks how long a segment may be")
)]
mod budget;
mod counters;
mod datagram;
mod discovery;
mod forward;
mod header_compression;
mod interface;
mod receive;
#[cfg(feature = "tcp")]
mod segment;
#[cfg(not(feature = "tcp"))]
#[path = "segment_absent.rs"]
mod segment;
mod transmit;

use core::net::Ipv6Addr;

use segment::Tcp;

pub use crate::ip::ndp::Advertised;
pub use counters::{Counters, Drop};
pub use datagram::DatagramError;
use header_compression::Onward;
pub use interface::{Forwarding, Hold, Interface, Radio, RadioConfig, RadioMemory, Relaying, Wire};
#[cfg(feature = "tcp")]
pub use segment::{ConnectError, Rejected};

use crate::ip::{self, Address, InterfaceId, Ip, NextHop};
use crate::limits::IPV6_MTU_MIN;
use crate::mac;
use crate::random::Rng;
use crate::tcphc;
use crate::time::{Duration, Instant, earliest};
use crate::udp::Inbox;

/// A host, relay or border router.
#[derive(Debug)]
pub struct Node<'m> {
    interfaces: &'m mut [Interface<'m>],
    ip: Ip<'m>,
    tcp: Tcp<'m>,
    rng: Rng,
    /// UDP, where the application wants it.
    inbox: Option<Inbox<'m>>,
    counters: Counters,
    /// When [`Self::poll_action`] last found nothing to do: whatever was due then waits for
    /// an event, not for the clock.
    polled_at: Option<Instant>,
    /// An interface has queued something for one that may have been polled before it.
    must_poll_again: bool,
    /// When to be polled once more because [`Self::poll_action`] dealt with a packet for this
    /// node: an application that was asked before that has not seen it.
    news_at: Option<Instant>,
}

/// What an interface reports.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// From a radio.
    Radio(mac::Event<'a>),
    /// A whole IPv6 packet from a wire.
    Packet(&'a [u8]),
}

/// What an interface shall do; bytes are in the caller's `out[..len]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// For a radio.
    Radio(mac::Action),
    /// Send this IPv6 packet down the wire.
    Packet {
        /// Bytes of `out`.
        len: usize,
    },
}

/// Bytes that [`Node::poll_action`] may write.
pub const ACTION_LEN_MAX: usize = IPV6_MTU_MIN;

impl<'m> Node<'m> {
    /// A node that speaks no TCP itself, as a relay may be; otherwise as
    #[cfg_attr(feature = "tcp", doc = "[`Self::new`].")]
    #[cfg_attr(not(feature = "tcp"), doc = "`new`, which the feature `tcp` adds.")]
    pub fn without_tcp(
        interfaces: &'m mut [Interface<'m>],
        ip: Ip<'m>,
        rng: Rng,
        now: Instant,
    ) -> Self {
        Self::of_layers(interfaces, ip, Tcp::absent(), rng, now)
    }

    fn of_layers(
        interfaces: &'m mut [Interface<'m>],
        ip: Ip<'m>,
        tcp: Tcp<'m>,
        rng: Rng,
        now: Instant,
    ) -> Self {
        let counters = Counters::default();
        let mut node = Self {
            interfaces,
            ip,
            tcp,
            rng,
            inbox: None,
            counters,
            polled_at: None,
            must_poll_again: false,
            news_at: None,
        };
        let Self {
            interfaces,
            ip,
            rng,
            ..
        } = &mut node;
        for (interface, id) in interfaces.iter_mut().zip(0..) {
            if let Interface::Radio(radio) = interface {
                start_radio(radio, ip, InterfaceId(id), now, rng);
            }
        }
        node
    }

    /// Takes what an interface reports.
    ///
    /// Of a frame that software acknowledges it does no more than find that out: the ACK is the
    /// first thing that [`Self::poll_action`] returns, and the packet is dealt with after that.
    pub fn on_event(&mut self, id: InterfaceId, event: Event<'_>, now: Instant) {
        self.polled_at = None;
        match event {
            Event::Radio(event) => {
                let Some(Interface::Radio(radio)) = self.interfaces.get_mut(usize::from(id.0))
                else {
                    return;
                };
                if let Some(frame) = radio.mac.on_event(event, now, &mut self.rng) {
                    let owes = radio.mac.owes_acknowledgment();
                    self.handle_kept(id, now);
                    self.keep_or_handle(id, &frame, owes, now);
                }
            }
            Event::Packet(packet) => {
                if matches!(
                    self.interfaces.get(usize::from(id.0)),
                    Some(Interface::Wire(_))
                ) {
                    let onward = Onward::Begins(tcphc::Origin::Outside);
                    self.on_packet(id, packet, onward, None, now);
                }
            }
        }
    }

    /// What an interface shall do next; call until `None`.
    ///
    /// `out`: at least [`ACTION_LEN_MAX`] bytes, or the MTU of a wire that carries more; holds
    /// the bytes that the action speaks of.
    pub fn poll_action(&mut self, now: Instant, out: &mut [u8]) -> Option<(InterfaceId, Action)> {
        if self.news_at.is_some_and(|at| now >= at) {
            self.news_at = None;
        }
        if let Some(action) = self.poll_acknowledgment(now, out) {
            return Some(action);
        }
        for id in self.interface_ids() {
            self.handle_kept(id, now);
        }
        loop {
            self.must_poll_again = false;
            for id in self.interface_ids() {
                if let Some(action) = self.poll_interface(id, now, out) {
                    return Some((id, action));
                }
            }
            if !self.must_poll_again {
                self.polled_at = Some(now);
                return None;
            }
        }
    }

    fn interface_ids(&self) -> impl Iterator<Item = InterfaceId> + use<> {
        (0..self.interfaces.len() as u8).map(InterfaceId)
    }

    /// The ACK that a radio owes: due a turnaround after the frame's end, it waits for nothing.
    fn poll_acknowledgment(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Option<(InterfaceId, Action)> {
        self.interfaces
            .iter_mut()
            .zip(0..)
            .find_map(|(interface, id)| match interface {
                Interface::Radio(radio) => {
                    let action = radio.mac.poll_acknowledgment(now, out)?;
                    Some((InterfaceId(id), Action::Radio(action)))
                }
                Interface::Wire(_) => None,
            })
    }

    /// When [`Self::poll_action`] has something to do though no event came; `None`: never.
    pub fn next_deadline(&self) -> Option<Instant> {
        // What was due at the last poll and is still there waits for room, hence an event. Each
        // source is asked by itself, so that one that waits hides none that comes later.
        let later =
            |at: Option<Instant>| at.filter(|at| self.polled_at.is_none_or(|polled| *at > polled));
        let mut deadline = earliest(later(self.tcp.next_deadline()), self.news_at);
        for interface in self.interfaces.iter() {
            if let Interface::Radio(radio) = interface {
                if radio.kept.is_some() {
                    return Some(Instant::ORIGIN);
                }
                deadline = earliest(deadline, later(radio.mac.next_deadline()));
                deadline = earliest(deadline, later(radio.datagrams.next_deadline()));
                deadline = earliest(deadline, later(radio.solicitor.next_deadline()));
            }
        }
        deadline
    }

    /// The next step towards `dst`, if the link that it leads over can have such a neighbour.
    /// A link-local `dst` is looked for on `on_link`.
    fn next_hop(&self, dst: &Ipv6Addr, on_link: InterfaceId) -> Option<NextHop> {
        let hop = self.ip.next_hop(dst, on_link)?;
        let interface = self.interfaces.get(usize::from(hop.interface.0))?;
        interface.reaches(hop.neighbour).then_some(hop)
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

    /// An interface, to look at.
    pub fn interface(&self, id: InterfaceId) -> Option<&Interface<'m>> {
        self.interfaces.get(usize::from(id.0))
    }

    /// An interface, to change its settings; a radio's go into force with its next packet.
    pub fn interface_mut(&mut self, id: InterfaceId) -> Option<&mut Interface<'m>> {
        self.interfaces.get_mut(usize::from(id.0))
    }

    /// What the node dropped between its layers.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// The clock's resolution.
const TICK: Duration = Duration::from_micros(1);

/// Forms the link-local address, and the global one where this node hands out the prefix.
fn start_radio(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    interface: InterfaceId,
    now: Instant,
    rng: &mut Rng,
) {
    rng.personalize(u64::from_be_bytes(radio.mac.config().extended));
    let iid = radio.mac.source().iid();
    ip.add_address(Address {
        addr: ip::link_local(iid),
        interface,
    });
    if let Some(advertised) = radio.advertised {
        ip.add_address(Address {
            addr: ip::with_iid(&advertised.prefix, iid),
            interface,
        });
        discovery::announce(radio, ip, interface, now);
    }
    if radio.config.solicits {
        radio.solicitor.start(now, rng);
    }
}

#[cfg(test)]
mod tests;
