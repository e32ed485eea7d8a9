//! A Thread router for the lab: the parent of all children in its network, and their way outside.
//!
//! ```text
//! air   → transmitter → mle ────→ children           commands, keys, short addresses
//!                     → packets → children, wire     secured frames, fragments, IPv6
//! ```
//!
//! Purpose: networks of Thread with Motet's children, without anybody's radio. It answers MLE as
//! OpenThread's router does, in the same order of messages and TLVs, hands out short addresses
//! and network data, keeps frames for children that sleep, and forgets those that are silent for
//! their timeout. Place: the node with it has a radio and a wire to hosts; [`crate::net::world`]
//! gives it the radio's events and carries out its actions. It is no part of the stack, whose
//! motes are children only. Left out: further routers, commissioning, CSL, services, and all that
//! a leader does for others. Source: Thread 1.1 as far as OpenThread shows it on the air;
//! captures of that are what its tests compare it with.

mod children;
mod messages;
mod outgoing;
mod packets;
mod transmitter;

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use motet::lowpan::Contexts;
use motet::mac::security::NetworkKey;
use motet::mac::{Action, Event, RadioCapabilities};
use motet::random::Rng;
use motet::time::{Duration, Instant, earliest};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{self, Command, FrameType, Header};

use self::children::{Child, Children};
use self::outgoing::Outgoing;
use self::packets::{Gathering, Seal};
use self::transmitter::Transmitter;

/// The settings of a network and of its one router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterOptions {
    /// The network key.
    pub network: NetworkKey,
    /// The key sequence to begin with.
    pub sequence: u32,
    /// The PAN identifier.
    pub pan: u16,
    /// The router's extended address.
    pub extended: [u8; 8],
    /// The mesh-local prefix.
    pub mesh_local: [u8; 8],
    /// The prefix of 64 bits in which children make their addresses.
    pub prefix: Ipv6Addr,
    /// The active timestamp of the dataset.
    pub timestamp: [u8; 8],
    /// Children that there is room for.
    pub children_max: usize,
    /// What the radio does by itself.
    pub radio: RadioCapabilities,
}

/// What such a router has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouterCounters {
    /// Children that were taken.
    pub attached: u32,
    /// Children that were silent for too long, or left.
    pub lost: u32,
    /// Data requests of children.
    pub polls: u32,
    /// Frames and messages that were not believed: wrong seals, old counters, strangers.
    pub refused: u32,
    /// Packets that had no way or no room.
    pub dropped: u32,
}

/// A Thread router.
#[derive(Debug)]
pub struct Router {
    options: RouterOptions,
    rng: Rng,
    seal: Seal,
    /// The counter of the next MLE message.
    mle_counter: u32,
    partition: u32,
    contexts: Contexts,
    children: Children,
    gathering: Gathering,
    transmitter: Transmitter,
    /// Messages that are sent later.
    later: Vec<(Instant, Outgoing)>,
    /// Packets for the wire.
    outside: VecDeque<Vec<u8>>,
    /// Orders to the radio besides those of transmissions.
    orders: VecDeque<Action>,
    advertises_at: Instant,
    advertises_every: Duration,
    tag: u16,
    counters: RouterCounters,
}

impl Router {
    /// A router that leads its network from `now` on.
    pub fn new(options: RouterOptions, mut rng: Rng, now: Instant) -> Self {
        let mut contexts = Contexts::default();
        contexts.set(0, of_64_bits(options.mesh_local), 64, true);
        contexts.set(PREFIX_CONTEXT, options.prefix, 64, true);
        let fcs_by_radio = options.radio.fcs_by_radio;
        Self {
            seal: Seal::new(options.network, options.sequence, options.extended),
            mle_counter: 0,
            partition: rng.next_u32(),
            contexts,
            children: Children::new(options.children_max),
            gathering: Gathering::default(),
            transmitter: Transmitter::new(fcs_by_radio, rng.derive()),
            later: Vec::new(),
            outside: VecDeque::new(),
            orders: VecDeque::from([Action::Listen]),
            advertises_at: now + ADVERTISES_FIRST,
            advertises_every: ADVERTISES_FIRST,
            tag: 0,
            counters: RouterCounters::default(),
            options,
            rng,
        }
    }

    /// What it has counted.
    pub const fn counters(&self) -> &RouterCounters {
        &self.counters
    }

    /// The addresses of all children: each with its short address and whether it sleeps.
    pub fn children(&self) -> impl Iterator<Item = ([u8; 8], u16, bool)> {
        let all = self.children.iter();
        all.map(|child| (child.extended, child.short, child.sleeps()))
    }

    /// Goes on to a later key sequence.
    pub fn rotate_key(&mut self, sequence: u32) {
        self.seal.go_on(sequence);
    }

    /// Begins again after its radio was off, with its memory: children, counters, and what waits
    /// for children that sleep.
    pub fn restart(&mut self) {
        self.transmitter.restart();
        self.later.clear();
        self.orders = VecDeque::from([Action::Listen]);
        let waiting: Vec<_> = self.children.waiting().collect();
        for addrs in waiting {
            self.say_pending(addrs, true);
        }
    }

    /// Takes a report of its radio.
    pub fn on_event(&mut self, event: Event<'_>, now: Instant) {
        match event {
            Event::FrameReceived { psdu, .. } => {
                let fcs_len = match self.options.radio.fcs_by_radio {
                    true => 0,
                    false => ieee802154::FCS_LEN,
                };
                if let Some(len) = psdu.len().checked_sub(fcs_len) {
                    self.on_frame(psdu.get(..len).unwrap_or_default(), now);
                }
            }
            event => {
                self.transmitter.on_event(event, now);
                self.settle(now);
            }
        }
    }

    /// The next order to its radio; bytes are in `out`.
    pub fn poll_action(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        self.on_time(now);
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        self.transmitter.poll_action(now, &mut self.seal, out)
    }

    /// When it has to be polled at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        let later = self.later.iter().map(|(at, _)| *at).min();
        let children = earliest(self.children.next_timeout(), Some(self.advertises_at));
        earliest(earliest(later, children), self.transmitter.deadline())
    }

    /// Does what is due.
    fn on_time(&mut self, now: Instant) {
        while let Some(due) = self.later.iter().position(|(at, _)| *at <= now) {
            let (_, message) = self.later.swap_remove(due);
            self.transmitter.push(message);
        }
        if self.advertises_at <= now {
            self.advertise();
            // Trickle (Thread 1.1 §5.16) without its suppression: there is no other router.
            self.advertises_every =
                (self.advertises_every + self.advertises_every).min(ADVERTISES_LAST);
            let half = Duration::from_micros(self.advertises_every.as_micros() / 2);
            self.advertises_at = now + half + self.rng.uniform(half);
        }
        let lost = self.children.forget_silent(now);
        self.counters.lost += lost;
        self.transmitter.on_time(now);
        self.settle(now);
    }

    /// Deals with frames that have come to an end.
    fn settle(&mut self, now: Instant) {
        while let Some((frame, is_delivered)) = self.transmitter.take_done() {
            let Some(child) = frame
                .kept_for
                .and_then(|short| self.children.by_short(short))
            else {
                continue;
            };
            child.is_served = false;
            if !is_delivered {
                child.put_back(frame, now);
            }
            let (addrs, waits) = (child.addrs(), child.waits());
            self.say_pending(addrs, waits);
        }
    }

    /// Lets the radio's ACKs say whether something waits for a child.
    fn say_pending(&mut self, addrs: [LinkAddr; 2], pending: bool) {
        use motet::mac::Pending;
        match self.options.radio.pending {
            Pending::None => {}
            Pending::OneForAll => {
                let pending = self.children.iter().any(Child::waits);
                self.orders
                    .push_back(Action::SetPending { of: None, pending });
            }
            Pending::PerNeighbour => {
                let orders = addrs.map(|addr| Action::SetPending {
                    of: Some(addr),
                    pending,
                });
                self.orders.extend(orders);
            }
        }
    }

    fn on_frame(&mut self, mpdu: &[u8], now: Instant) {
        let Ok((header, auxiliary, body)) = Header::parse_secured(mpdu) else {
            return;
        };
        if header.frame_type == FrameType::Ack {
            self.transmitter.on_ack(header.sequence, now);
            return self.settle(now);
        }
        let (Some(src), Some(dst)) = (header.src, header.dst) else {
            return;
        };
        let to_me = [
            LinkAddr::Extended(self.options.extended),
            LinkAddr::Short(OWN_SHORT),
            LinkAddr::BROADCAST,
        ];
        if dst.pan_id != self.options.pan || !to_me.contains(&dst.addr) {
            return;
        }
        let Some(auxiliary) = auxiliary else {
            if header.frame_type == FrameType::Data {
                self.on_payload(body, (src.addr, dst.addr), None, now);
            }
            return;
        };
        let child = self.children.by_link(src.addr);
        let known = child.as_ref().map(|child| child.extended);
        let sender = match src.addr {
            LinkAddr::Extended(extended) => Some(extended),
            _ => known,
        };
        let Some(sender) = sender else {
            self.counters.refused += 1;
            return;
        };
        let head_len = mpdu.len() - body.len();
        let opened = self.seal.open(mpdu, (&header, head_len), auxiliary, sender);
        let newest = child.map(|child| &mut child.mac_counter);
        let is_new = opened.as_ref().is_some_and(|(counter, _)| {
            newest.is_none_or(|newest| {
                newest.is_none_or(|newest| *counter > newest) && {
                    *newest = Some(*counter);
                    true
                }
            })
        });
        let Some((_, payload)) = opened.filter(|_| is_new) else {
            self.counters.refused += 1;
            return;
        };
        match header.frame_type {
            FrameType::Data => self.on_payload(&payload, (src.addr, dst.addr), Some(sender), now),
            FrameType::Command if Command::parse(&payload) == Ok(Command::DataRequest) => {
                self.on_poll(sender, now);
            }
            _ => {}
        }
    }

    /// A child asks for what waits for it.
    fn on_poll(&mut self, sender: [u8; 8], now: Instant) {
        let Some(child) = self.children.by_extended(sender) else {
            return;
        };
        self.counters.polls += 1;
        child.heard_at = now;
        if let Some(frame) = child.next_frame() {
            self.transmitter.push_first(frame);
        }
    }

    /// A packet from the wire.
    pub fn on_packet(&mut self, packet: &[u8], _now: Instant) {
        let is_sent = packets::destination(packet).is_some_and(|dst| self.send_to(dst, packet));
        self.counters.dropped += u32::from(!is_sent);
    }

    /// The next packet for the wire.
    pub fn poll_packet(&mut self) -> Option<Vec<u8>> {
        self.outside.pop_front()
    }
}

/// A prefix of 64 bits as an address.
fn of_64_bits(prefix: [u8; 8]) -> Ipv6Addr {
    Ipv6Addr::from_bits(u128::from(u64::from_be_bytes(prefix)) << 64)
}

/// The router's identifier is 1.
pub const OWN_SHORT: u16 = 0x0400;

/// The context of the prefix; that of the mesh-local prefix is 0.
const PREFIX_CONTEXT: u8 = 1;

/// The shortest and the longest time between advertisements (Thread 1.1 §5.16).
const ADVERTISES_FIRST: Duration = Duration::from_secs(1);
const ADVERTISES_LAST: Duration = Duration::from_secs(32);
