//! 6LoWPAN neighbour discovery on one link: what an advertisement changes, and what this node
//! advertises itself.
//!
//! Place: between [`ip::ndp`], which decides what is believed, and the link's queue. Shared by
//! the links that compress headers by contexts.
//! Sources: RFC 4861 §6, RFC 6775 §5.4, §6.3 and §8.1 (a relay passes on what it learnt).

use core::net::Ipv6Addr;

use super::mesh::{Mark, MeshConfig};
use crate::ip::ndp::{Advertised, Due, Said, Solicitor};
use crate::ip::{
    self, ALL_NODES, Address, Iid, Ingress, InterfaceId, Ip, Neighbour, NextHop, Prefix,
};
use crate::limits::{CONTEXTS_MAX, IPV6_MTU_MIN};
use crate::lowpan::Contexts;
use crate::mac::Class;
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::time::{Allowance, Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::cursor::Writer;
use crate::wire::icmpv6::{Message, RouterAdvertisement};
use crate::wire::ipv6;
use crate::wire::ndp::{LowpanContext, NdpOption, NdpOptions, PrefixInformation};

/// Solicitations answered at once, as when the neighbours of a router all start together, and
/// milliseconds for each more: what asks more often than that is no neighbour that joins.
const ANSWERS_MAX: u8 = 32;
const ANSWERS_INTERVAL_MS: u16 = 250;

/// Longest advertisement: header, prefix, MTU, link address and every context in long form.
const OPTIONS_LEN_MAX: usize = 32 + 8 + 16 + 24 * CONTEXTS_MAX;

/// What a link has learnt of its router, and tells its other neighbours.
#[derive(Debug)]
pub(super) struct Discovery {
    pub(super) id: InterfaceId,
    /// This node's address on the link.
    source: LinkAddr,
    /// Whether to look for a router.
    solicits: bool,
    solicitor: Solicitor,
    /// The default route led to the router of this link, which has gone; no other one was looked
    /// for yet.
    has_lost_route: bool,
    /// Solicitations that are answered: of strangers, and of neighbours that acknowledge. So
    /// made-up sources leave the router's answers to its own neighbours alone.
    answers: [Allowance; 2],
    pub(super) advertised: Option<Advertised>,
    /// For header compression.
    pub(super) contexts: Contexts,
}

/// A message of neighbour discovery, and the hop that it came over.
#[derive(Clone, Copy)]
pub(super) struct Received<'a> {
    pub(super) header: &'a ipv6::Header,
    pub(super) message: &'a Message<'a>,
    pub(super) ingress: &'a Ingress,
    /// Whether the neighbour that sent it acknowledges frames.
    pub(super) is_trusted: bool,
}

impl Discovery {
    /// `source`: this node's address on the link.
    pub(super) fn new(config: &MeshConfig, source: LinkAddr) -> Self {
        Self {
            id: InterfaceId(0),
            source,
            solicits: config.solicits,
            solicitor: Solicitor::new(config.parent.map(LinkAddr::iid)),
            has_lost_route: false,
            answers: [const { Allowance::new(ANSWERS_MAX, ANSWERS_INTERVAL_MS) }; 2],
            advertised: config.advertised,
            contexts: Contexts::default(),
        }
    }

    /// Forms the link-local address, and the global one where this node hands out the prefix.
    pub(super) fn start(
        &mut self,
        id: InterfaceId,
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) {
        self.id = id;
        let iid = self.source.iid();
        ip.add_address(Address {
            addr: ip::link_local(iid),
            interface: id,
        });
        if let Some(advertised) = self.advertised {
            ip.add_address(Address {
                addr: ip::with_iid(&advertised.prefix, iid),
                interface: id,
            });
            self.announce(queue, ip, now);
        }
        if self.solicits {
            self.solicitor.start(now, rng);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.solicitor.next_deadline()
    }

    /// A neighbour has acknowledged a frame.
    pub(super) fn on_acknowledged(&mut self, by: Iid) {
        self.solicitor.on_acknowledged(by);
    }

    /// Acts on a message.
    ///
    /// # Errors
    /// Why it changed nothing.
    pub(super) fn on_message(
        &mut self,
        received: Received<'_>,
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), ip::PacketDrop> {
        let Received {
            header, message, ..
        } = received;
        let from = self.sender(ip, &received).ok_or(ip::PacketDrop::BadNdp)?;
        let is_from_nobody = header.src.is_unspecified();
        match message {
            // Answers go to one node (RFC 6775 §6.3), and not to where they were learnt.
            Message::RouterSolicitation { .. } if is_from_nobody => {
                return Err(ip::PacketDrop::BadNdp);
            }
            Message::RouterSolicitation { .. } => {
                if self.solicitor.router() != Some(header.src) {
                    self.may_answer(received.is_trusted, now)?;
                    self.advertise(queue, ip, header.src, now);
                }
            }
            Message::RouterAdvertisement(advertisement) => {
                if !header.src.is_unicast_link_local() {
                    return Err(ip::PacketDrop::BadNdp);
                }
                let said = (*advertisement, !header.dst.is_multicast());
                let changed = self.on_advertisement((header.src, from), said, ip, now, rng);
                if changed && ip.forwards() {
                    self.announce(queue, ip, now);
                }
            }
            // Detection of duplicates asks the group of the address alone (RFC 4861 §7.1.1).
            Message::NeighborSolicitation { target, .. }
                if is_from_nobody && header.dst != ip::solicited_node(target) =>
            {
                return Err(ip::PacketDrop::BadNdp);
            }
            Message::NeighborSolicitation { target, .. } if ip.owns(target, self.id) => {
                self.may_answer(received.is_trusted, now)?;
                self.own_up(queue, ip, header.src, *target);
            }
            _ => return Err(ip::PacketDrop::IgnoredIcmp),
        }
        Ok(())
    }

    /// The neighbour that a message came from. `None` where it did not come from the link itself,
    /// as its hop limit proves, or not from the neighbour whose address it bears: identifiers
    /// derive from link addresses (RFC 4861 §6.1 and §7.1, RFC 6775 §5.2).
    fn sender(&self, ip: &Ip<'_>, received: &Received<'_>) -> Option<Iid> {
        let header = received.header;
        let Neighbour::One(from) = received.ingress.from else {
            return None;
        };
        let back = NextHop {
            interface: self.id,
            neighbour: received.ingress.from,
        };
        let is_its_own = header.src.is_unspecified()
            || (ip::iid_of(&header.src) == from && ip.next_hop(&header.src, self.id) == Some(back));
        (header.hop_limit == ip::ndp::HOP_LIMIT && is_its_own).then_some(from)
    }

    /// Takes one of the answers that a neighbour may have now.
    fn may_answer(&mut self, is_trusted: bool, now: Instant) -> Result<(), ip::PacketDrop> {
        let [strangers, neighbours] = &mut self.answers;
        let allowed = match is_trusted {
            true => neighbours.take(now),
            false => strangers.take(now),
        };
        allowed.then_some(()).ok_or(ip::PacketDrop::TooMany)
    }

    /// Takes an advertisement from `router` (its address, and its identifier) if it comes from the
    /// router of this link or there is none yet: default route, prefix, contexts. What it changes
    /// holds only once the router has confirmed it (see [`ip::ndp`]). `to_one`: whether it was
    /// sent to this node alone. Returns whether that changed anything.
    fn on_advertisement(
        &mut self,
        (addr, neighbour): (Ipv6Addr, Iid),
        (advertisement, to_one): (RouterAdvertisement<'_>, bool),
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> bool {
        let lease = lease(&advertisement);
        let had_router = self.solicitor.router().is_some();
        let said = Said {
            lease,
            change: self.change(&advertisement),
            to_one,
        };
        if !self.solicitor.on_advertisement(addr, said, now, rng) {
            return false;
        }
        let has_router = lease > Duration::ZERO;
        if has_router {
            ip.set_default_route(Some(NextHop {
                interface: self.id,
                neighbour: Neighbour::One(neighbour),
            }));
        } else {
            self.forget_router(ip);
        }
        let mut changed = self.take_prefix(ip, &advertisement) || had_router != has_router;
        for option in advertisement.options.iter() {
            if let NdpOption::Context(context) = option {
                changed |= self.contexts.learn(&context);
            }
        }
        changed
    }

    /// Does what the solicitor finds due.
    pub(super) fn poll(
        &mut self,
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) {
        match self.solicitor.poll(now, rng) {
            None => {}
            Some(Due::Expired) => {
                self.forget_router(ip);
                if ip.forwards() {
                    self.announce(queue, ip, now);
                }
            }
            Some(Due::Solicit(to)) => {
                let mut bytes = [0; 16];
                let options = only(NdpOption::SourceLinkAddr(self.source), &mut bytes);
                self.send(queue, ip, to, &Message::RouterSolicitation { options });
            }
        }
    }

    /// The router has gone.
    fn forget_router(&mut self, ip: &mut Ip<'_>) {
        self.has_lost_route |= ip.clear_default_route(self.id);
        self.contexts.stop_compressing();
    }

    /// The way to the router of this link, while there is one.
    pub(super) fn router(&self) -> Option<NextHop> {
        let router = self.solicitor.router()?;
        Some(NextHop {
            interface: self.id,
            neighbour: Neighbour::One(ip::iid_of(&router)),
        })
    }

    /// Whether the default route went with the router of this link; true once for each time.
    pub(super) fn take_lost_route(&mut self) -> bool {
        core::mem::take(&mut self.has_lost_route)
    }

    /// What an advertisement would change here, boiled down to a number; `None`: nothing.
    fn change(&self, advertisement: &RouterAdvertisement<'_>) -> Option<u32> {
        let had = self.advertised.map(|advertised| advertised.prefix);
        let prefix = prefix_of(had, advertisement);
        let mut digest = 0;
        let mut note = |word: u32, prefix: Option<Ipv6Addr>| {
            let octets = prefix.map(|prefix| prefix.octets()).unwrap_or_default();
            for byte in word.to_be_bytes().into_iter().chain(octets) {
                // FNV-1a.
                digest = (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
            digest |= 1;
        };
        if prefix != had {
            note(0, prefix);
        }
        for option in advertisement.options.iter() {
            if let NdpOption::Context(context) = option
                && self.contexts.would_change(&context)
            {
                let [compress, ends] = [context.compress, context.lifetime_min == 0].map(u8::from);
                let word = [compress, ends, context.id, context.prefix_len];
                note(u32::from_be_bytes(word), Some(context.prefix));
            }
        }
        (digest != 0).then_some(digest)
    }

    /// Forms the address of the prefix advertised. One prefix at a time: a new one ends the old, so
    /// that addresses never pile up. Returns whether the prefix changed.
    fn take_prefix(&mut self, ip: &mut Ip<'_>, advertisement: &RouterAdvertisement<'_>) -> bool {
        let had = self.advertised.map(|advertised| advertised.prefix);
        let prefix = prefix_of(had, advertisement);
        if let Some(old) = had.filter(|_| prefix != had) {
            ip.remove_addresses(self.id, Prefix { addr: old, len: 64 });
        }
        if let Some(prefix) = prefix {
            let addr = ip::with_iid(&prefix, self.source.iid());
            ip.add_address(Address {
                addr,
                interface: self.id,
            });
        }
        self.advertised = prefix.map(|prefix| Advertised {
            prefix,
            lifetime: Duration::ZERO,
        });
        prefix != had
    }

    /// How long what this node advertises still holds: a border router says, a relay counts down.
    fn lifetime_left(&self, advertised: &Advertised, now: Instant) -> Duration {
        if !self.solicits {
            return advertised.lifetime;
        }
        let expires = self.solicitor.expires();
        expires.map_or(Duration::ZERO, |at| at.since(now))
    }

    /// Queues an advertisement of what this node knows to `to`; nothing where it never knew a prefix. A
    /// solicitation is answered, too, where this node is no router any more: its silence would not
    /// prove that while it acknowledges frames.
    fn advertise(&self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, to: Ipv6Addr, now: Instant) {
        let Some(advertised) = self.advertised else {
            return;
        };
        let seconds = self.lifetime_left(&advertised, now).as_secs();
        let mut bytes = [0; OPTIONS_LEN_MAX];
        let mut w = Writer::new(&mut bytes);
        let prefix = PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: false,
            valid_lifetime_s: seconds,
            preferred_lifetime_s: seconds,
            prefix: advertised.prefix,
        };
        // The options fit by construction, so none is left out.
        let _ = NdpOption::SourceLinkAddr(self.source).emit(&mut w);
        // Without lifetime they would be withdrawn, and what they name with them.
        if seconds > 0 {
            let _ = NdpOption::Prefix(prefix).emit(&mut w);
            for (id, context) in self.contexts.iter() {
                let option = NdpOption::Context(LowpanContext {
                    id,
                    compress: context.compress(),
                    prefix_len: context.prefix_len(),
                    lifetime_min: seconds.div_ceil(60).min(u32::from(u16::MAX)) as u16,
                    prefix: context.prefix(),
                });
                let _ = option.emit(&mut w);
            }
        }
        let _ = NdpOption::Mtu(IPV6_MTU_MIN as u32).emit(&mut w);
        let len = w.written();
        let options = bytes
            .get(..len)
            .and_then(|bytes| NdpOptions::parse(bytes).ok());
        let message = Message::RouterAdvertisement(RouterAdvertisement {
            hop_limit: ip.hop_limit(),
            flags: 0,
            router_lifetime_s: seconds.min(u32::from(u16::MAX)) as u16,
            reachable_ms: 0,
            retransmit_ms: 0,
            options: options.unwrap_or_default(),
        });
        self.send(queue, ip, to, &message);
    }

    /// Answers a solicitation for this node's own address `target`: to its source, or to all nodes
    /// where its source is the unspecified address.
    fn own_up(&self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, asker: Ipv6Addr, target: Ipv6Addr) {
        let (to, solicited) = match asker.is_unspecified() {
            true => (ALL_NODES, 0),
            false => (asker, SOLICITED),
        };
        let router = if ip.forwards() { ROUTER } else { 0 };
        let mut bytes = [0; 16];
        let option = NdpOption::TargetLinkAddr(self.source);
        let advertisement = Message::NeighborAdvertisement {
            flags: router | solicited | OVERRIDE,
            target,
            options: only(option, &mut bytes),
        };
        self.send(queue, ip, to, &advertisement);
    }

    /// Tells all neighbours at once that this node can route for them, or can no longer.
    pub(super) fn announce(&self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, now: Instant) {
        self.advertise(queue, ip, ALL_NODES, now);
    }

    /// Queues a message for a neighbour or for all of them.
    fn send(&self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, to: Ipv6Addr, message: &Message<'_>) {
        let Some(src) = ip.source_for(&to, self.id) else {
            return;
        };
        let mut packet = [0; ipv6::HEADER_LEN + 16 + OPTIONS_LEN_MAX];
        if let Ok(len) = ip::icmp::write(message, src, to, ip::ndp::HOP_LIMIT, &mut packet) {
            let packet = packet.get(..len).unwrap_or_default();
            // A full queue drops it; the solicitor asks again.
            queue.push(packet, Mark::own(Class::Control).to_bits());
        }
    }
}

/// How long all that an advertisement says holds: its shortest lifetime above zero, so that
/// it is asked for again before any of it ends. Zero where the sender is no default router.
fn lease(advertisement: &RouterAdvertisement<'_>) -> Duration {
    let router_s = u32::from(advertisement.router_lifetime_s);
    let lifetimes = advertisement.options.iter().map(|option| match option {
        NdpOption::Prefix(information) if is_usable(&information) => information.valid_lifetime_s,
        NdpOption::Context(context) => u32::from(context.lifetime_min) * 60,
        _ => 0,
    });
    let shortest_s = lifetimes.filter(|s| *s > 0).fold(router_s, u32::min);
    Duration::from_secs(u64::from(shortest_s))
}

/// Whether addresses may be formed from a prefix (RFC 4862 §5.5.3).
fn is_usable(information: &PrefixInformation) -> bool {
    information.autonomous
        && information.prefix_len == 64
        && !information.prefix.is_unicast_link_local()
        && !information.prefix.is_multicast()
}

/// The prefix to have after an advertisement: that which the link has if it is among
/// several.
fn prefix_of(had: Option<Ipv6Addr>, advertisement: &RouterAdvertisement<'_>) -> Option<Ipv6Addr> {
    let mut prefix = had;
    let mut confirmed = false;
    for option in advertisement.options.iter() {
        let NdpOption::Prefix(information) = option else {
            continue;
        };
        let listed = Some(ip::with_iid(&information.prefix, [0; 8]));
        if !is_usable(&information) {
            continue;
        }
        match information.valid_lifetime_s {
            0 if listed == prefix => prefix = None,
            0 => {}
            _ if listed == had => (prefix, confirmed) = (had, true),
            _ if !confirmed => (prefix, confirmed) = (listed, true),
            _ => {}
        }
    }
    prefix
}

/// Flags of a neighbour advertisement (RFC 4861 §4.4).
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// A list of one option, which `bytes` must hold; one of a link address does.
fn only<'a>(option: NdpOption<'_>, bytes: &'a mut [u8; 16]) -> NdpOptions<'a> {
    let mut w = Writer::new(bytes);
    let emitted = option.emit(&mut w);
    debug_assert!(emitted.is_ok(), "the option is too long");
    let len = w.written();
    let list = bytes.get(..len).map(NdpOptions::parse);
    list.and_then(Result::ok).unwrap_or_default()
}
