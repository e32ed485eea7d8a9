//! The changes that an advertisement, or RPL, makes at this node.

use core::net::Ipv6Addr;

use super::{CAPABILITIES, Discovery, HAS_BORDER, KNOWS_EARO, PART_LEASE};
#[cfg(feature = "rpl")]
use crate::ip::Registration;
use crate::ip::ndp::{Advertised, AdvertisementClaims};
use crate::ip::neighbor_cache::IS_ROUTER;
use crate::ip::{self, Address, Iid, Ip, Neighbour, NextHop, PacketDrop, Prefix};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::time::{Duration, Instant};
use crate::wire::icmpv6::MessageView;
#[cfg(feature = "rpl")]
use crate::wire::ndp::PrefixBytes;
use crate::wire::ndp::{
    BorderRouter, LowpanContext, kind, prefix_in, restores_tcp, usable_prefix, valid_lifetime_s,
};

impl Discovery<'_> {
    /// Applies an advertisement (default route, prefix, contexts) if its sender, given by address
    /// and identifier, is the router of this link, or if there is no router yet. A change is
    /// applied only after the router has confirmed it (see [`ip::ndp`]). `to_one`: whether it was
    /// sent to this node alone.
    ///
    /// # Errors
    /// [`PacketDrop::BadNdp`]: its version is older than the known one of the same border router,
    /// and the router has not confirmed it.
    pub(super) fn on_advertisement(
        &mut self,
        (addr, neighbour): (Ipv6Addr, Iid),
        (advertisement, to_one): (MessageView<'_>, bool),
        queue: &mut PacketQueue<'_>,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), PacketDrop> {
        let summary = Summary::of(&advertisement);
        let lease = summary.lease;
        if self.solicitor.is_led() && lease == Duration::ZERO {
            // With RPL, a router lifetime of zero is ignored: RPL itself notices that its parent is
            // gone.
            return Ok(());
        }
        if IS_ROUTER && !to_one && lease > Duration::ZERO {
            self.hear_answer(&advertisement, summary.border.as_ref());
        }
        if self.solicitor.is_led() && self.is_part(&summary) {
            // It contains only the prefix, which RPL has already brought; the solicitor goes on to
            // request the rest.
            return Ok(());
        }
        let had_router = self.solicitor.router().copied();
        let had_prefix = self.prefix().copied();
        let was_asked = self.solicitor.has_asked(now);
        let said = AdvertisementClaims {
            lease,
            change: self.change(&advertisement, &summary),
            to_one,
        };
        // A router that has lost its table sends such an advertisement to a node for which it still
        // routes. What else has changed at such a router, this node asks only afterwards.
        if to_one && !was_asked && lease > Duration::ZERO && had_router == Some(addr) {
            self.registering_node.hasten(now);
        }
        let is_taken = self.solicitor.on_advertisement(addr, said, now, rng);
        if !is_taken {
            return match self.is_older(summary.border.as_ref()) {
                true => Err(PacketDrop::BadNdp),
                false => Ok(()),
            };
        }
        let has_router = lease > Duration::ZERO;
        if has_router {
            self.hear_offer(summary.offer, neighbour, now);
        }
        if !has_router {
            self.forget_router(ip);
        } else if !self.solicitor.is_led() {
            ip.set_default_route(Some(NextHop {
                interface: self.id,
                neighbour: Neighbour::One(neighbour),
            }));
        }
        let mut changed = had_router.is_some() != has_router;
        if !self.has_led_prefix {
            let prefix = prefix_of(had_prefix.as_ref(), &advertisement);
            changed |= self.set_prefix(ip, prefix, Duration::ZERO);
        }
        changed |= self.learn_contexts(&advertisement);
        self.is_router_extended = summary.knows_earo;
        if has_router {
            let moved = had_router != Some(addr) || had_prefix.as_ref() != self.prefix();
            let left = had_router.filter(|had| *had != addr);
            self.register_from_now(left, moved, queue, now, rng);
        }
        // A router whose parent RPL has chosen does not announce its first configuration, because
        // its children solicit it; except if it could not answer an earlier solicitation.
        let is_worth_telling =
            !self.solicitor.is_led() || had_router.is_some() || self.answer.take_owed();
        if changed && is_worth_telling && ip.forwards() {
            self.announce(queue, ip, now);
        }
        Ok(())
    }

    /// Whether an advertisement is only a part of the configuration: it has neither contexts nor
    /// their border router, while this node has the prefix and no contexts. Its sender still waits
    /// for both (RFC 6775 §8.1.1: contexts travel with the prefix).
    ///
    /// A part has a short lifetime. An advertisement with a longer one is complete: contexts and
    /// border routers are optional (RFC 6775 §4.2, §4.3).
    fn is_part(&self, summary: &Summary) -> bool {
        let has_rest = summary.has_contexts || summary.border.is_some();
        if !self.has_led_prefix || summary.lease > PART_LEASE || has_rest {
            return false;
        }
        self.border.is_none() && self.contexts.iter().next().is_none()
    }

    /// Takes contexts, and the border router that they come from; returns whether any is new.
    fn learn_contexts(&mut self, advertisement: &MessageView<'_>) -> bool {
        let mut changed = false;
        for (kind, body) in advertisement.options().bodies() {
            match kind {
                kind::CONTEXT => {
                    let context = LowpanContext::parse(body);
                    changed |= context.is_some_and(|context| self.contexts.learn(&context));
                }
                kind::BORDER_ROUTER if HAS_BORDER => {
                    self.border = BorderRouter::parse(body).or(self.border);
                }
                _ => {}
            }
        }
        changed
    }

    /// RPL chooses the router: contexts are solicited from `router` only, or from no router. In a
    /// mesh of motes without the feature `advertise` nobody would answer, so that a mote which has
    /// contexts of its application's does not ask.
    /// Neighbours without RPL are notified when the route upwards is lost, so that they can find
    /// another router.
    #[cfg(feature = "rpl")]
    pub(in crate::link) fn follow(
        &mut self,
        router: Option<Iid>,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) {
        self.registering_node.stop();
        let asks = IS_ROUTER || self.contexts.iter().next().is_none();
        self.solicitor.follow(router, asks, now, rng);
        if router.is_none() && self.neighbors.iter().any(Registration::is_routed) {
            self.announce(queue, ip, now);
        }
    }

    /// Takes the prefix that RPL has brought, or its end: an address is formed from it, and it is
    /// advertised to neighbours that RPL does not lead. In an option with the R flag the router's
    /// own address stands for the prefix (RFC 6550 §6.7.10).
    #[cfg(feature = "rpl")]
    pub(in crate::link) fn learn_prefix(
        &mut self,
        information: Option<&PrefixBytes>,
        ip: &mut Ip<'_>,
    ) {
        let usable = information.filter(|information| information.is_usable());
        let seconds = usable.map_or(0, PrefixBytes::valid_lifetime_s);
        // RPL ends the prefix itself. The lifetime for neighbours is bounded, so that they solicit
        // again from time to time.
        let lifetime = Duration::from_secs(u64::from(seconds)).min(Advertised::LIFETIME);
        let prefix = usable.filter(|_| seconds > 0);
        self.has_led_prefix = self.solicitor.is_led() && prefix.is_some();
        let prefix = prefix.map(|information| ip::with_iid(&information.prefix(), [0; 8]));
        self.set_prefix(ip, prefix, lifetime);
    }

    /// The prefix of the mesh.
    pub(super) fn prefix(&self) -> Option<&Ipv6Addr> {
        let advertised = self.advertised.as_ref();
        advertised.map(|advertised| &advertised.prefix)
    }

    /// Forms the address of the prefix. One prefix at a time: a new one ends the old, so that
    /// addresses never pile up. `lifetime`: how long it holds where no router says. Returns
    /// whether the prefix changed.
    fn set_prefix(
        &mut self,
        ip: &mut Ip<'_>,
        prefix: Option<Ipv6Addr>,
        lifetime: Duration,
    ) -> bool {
        let had = self.prefix().copied();
        if let Some(old) = had.filter(|_| prefix != had) {
            ip.remove_addresses(self.id, Prefix { addr: old, len: 64 });
            if self.takes_registrations() {
                self.neighbors.clear();
            }
        }
        self.advertised = prefix.map(|prefix| Advertised { prefix, lifetime });
        if !self.registering_node.is_duplicate() || prefix != had {
            self.add_address(ip);
        }
        prefix != had
    }

    /// Forms the address of the prefix, where there is one.
    pub(super) fn add_address(&self, ip: &mut Ip<'_>) {
        if let Some(prefix) = self.prefix() {
            ip.add_address(Address {
                addr: ip::with_iid(prefix, self.source.iid()),
                interface: self.id,
            });
        }
    }

    /// Whether an advertisement is older than what is known of the same border router (RFC 6775
    /// §4.3 and §8.1.3).
    fn is_older(&self, border: Option<&BorderRouter>) -> bool {
        matches!((border, &self.border), (Some(heard), Some(known))
            if heard.addr == known.addr && is_before(heard.version, known.version))
    }

    /// A number for the change that an advertisement would make here; `None`: it changes nothing.
    fn change(&self, advertisement: &MessageView<'_>, summary: &Summary) -> Option<u32> {
        let had = self.prefix();
        let prefix = match self.has_led_prefix {
            false => prefix_of(had, advertisement),
            true => had.copied(),
        };
        let mut digest = Digest(0);
        if prefix.as_ref() != had {
            digest.note(0, prefix.as_ref());
        }
        if let Some(offer) = self.offer.change(summary.offer) {
            let router = offer.map(ip::link_local);
            digest.note(u32::MAX, router.as_ref());
        }
        for (kind, body) in advertisement.options().bodies() {
            match kind {
                kind::CONTEXT => {
                    if let Some(context) = LowpanContext::parse(body)
                        && self.contexts.would_change(&context)
                    {
                        let [compress, ends] =
                            [context.compress, context.lifetime_min == 0].map(u8::from);
                        let word = [compress, ends, context.id, context.prefix_len];
                        digest.note(u32::from_be_bytes(word), Some(&context.prefix));
                    }
                }
                kind::BORDER_ROUTER if HAS_BORDER => {
                    if let Some(border) = BorderRouter::parse(body)
                        && self.is_news(&border)
                    {
                        digest.note(border.version, Some(&border.addr));
                    }
                }
                _ => {}
            }
        }
        (digest.0 != 0).then_some(digest.0)
    }

    /// Whether an advertisement is of another version, or of another border router.
    fn is_news(&self, border: &BorderRouter) -> bool {
        let is_other =
            |known: &BorderRouter| known.version != border.version || known.addr != border.addr;
        HAS_BORDER && self.border.as_ref().is_some_and(is_other)
    }
}

/// A number that stands for several prefixes, each with a word of its own; zero: for none.
#[derive(Clone, Copy)]
pub(super) struct Digest(pub(super) u32);

impl Digest {
    pub(super) fn note(&mut self, word: u32, prefix: Option<&Ipv6Addr>) {
        let octets = prefix.map(Ipv6Addr::octets).unwrap_or_default();
        for byte in word.to_be_bytes().iter().chain(&octets) {
            // FNV-1a.
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
        self.0 |= 1;
    }
}

/// Whether version `a` came before `b`: a number that grows, modulo 2^32.
pub(super) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// What an advertisement says as a whole.
struct Summary {
    /// The shortest lifetime above zero of its parts, so that the node solicits again before any
    /// part expires. Zero if the sender is no default router.
    lease: Duration,
    /// The border router that prefix and contexts come from.
    border: Option<BorderRouter>,
    has_contexts: bool,
    /// Whether the router announces support of EARO (RFC 8505 §6.1).
    knows_earo: bool,
    /// The border router that restores compressed TCP headers.
    offer: Option<Iid>,
}

impl Summary {
    fn of(advertisement: &MessageView<'_>) -> Self {
        let mut summary = Self {
            lease: Duration::ZERO,
            border: None,
            has_contexts: false,
            knows_earo: false,
            offer: None,
        };
        let mut shortest_s = u32::from(advertisement.router_lifetime_s());
        for (kind, body) in advertisement.options().bodies() {
            let lifetime_s = match kind {
                kind::PREFIX => usable_prefix(body).map_or(0, |prefix| valid_lifetime_s(prefix)),
                kind::CONTEXT => LowpanContext::parse(body).map_or(0, |context| {
                    summary.has_contexts = true;
                    u32::from(context.lifetime_min) * 60
                }),
                kind::BORDER_ROUTER if HAS_BORDER => {
                    BorderRouter::parse(body).map_or(0, |border| {
                        summary.border = summary.border.or(Some(border));
                        u32::from(border.lifetime_min) * 60
                    })
                }
                kind::EXPERIMENT => {
                    summary.offer = summary.offer.or(restores_tcp(body));
                    0
                }
                CAPABILITIES => {
                    summary.knows_earo |= body.get(1).is_some_and(|flags| flags & KNOWS_EARO != 0);
                    0
                }
                _ => 0,
            };
            if lifetime_s > 0 {
                shortest_s = shortest_s.min(lifetime_s);
            }
        }
        summary.lease = Duration::from_secs(u64::from(shortest_s));
        summary
    }
}

/// The prefix to have after an advertisement: that which the link has if it is among
/// several.
pub(super) fn prefix_of(
    had: Option<&Ipv6Addr>,
    advertisement: &MessageView<'_>,
) -> Option<Ipv6Addr> {
    let mut prefix = had.copied();
    let mut confirmed = false;
    for (kind, body) in advertisement.options().bodies() {
        let Some(information) = usable_prefix(body).filter(|_| kind == kind::PREFIX) else {
            continue;
        };
        let listed = ip::with_iid(&prefix_in(information), [0; 8]);
        match valid_lifetime_s(information) {
            0 if prefix == Some(listed) => prefix = None,
            0 => {}
            _ if had == Some(&listed) || !confirmed => (prefix, confirmed) = (Some(listed), true),
            _ => {}
        }
    }
    prefix
}

#[cfg(all(test, feature = "rpl"))]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::ip::InterfaceId;
    use crate::wire::LinkAddr;
    use crate::wire::cursor::Writer;
    use crate::wire::icmpv6::{Message, RouterAdvertisement};
    use crate::wire::ndp::{NdpOption, NdpOptions, PrefixInformation};

    const PARENT: Iid = [7; 8];
    const NOW: Instant = Instant::from_micros(1_000_000);

    fn information(lifetime_s: u32) -> PrefixInformation {
        PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: false,
            valid_lifetime_s: lifetime_s,
            preferred_lifetime_s: lifetime_s,
            prefix: Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 0),
        }
    }

    /// A discovery that RPL leads to `PARENT`, and has brought the prefix.
    fn led((queue, ip): (&mut PacketQueue<'_>, &mut Ip<'_>), rng: &mut Rng) -> Discovery<'static> {
        let settings = Settings {
            source: LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, 5]),
            eui64: [2, 0, 0, 0, 0, 0, 0, 5],
            solicits: true,
            registers: false,
            router: None,
            advertised: None,
        };
        let mut discovery = Discovery::new(settings, &mut []);
        discovery.start(InterfaceId(0), queue, ip, NOW, rng);
        discovery.follow(Some(PARENT), queue, ip, NOW, rng);
        discovery.learn_prefix(Some(&information(7_200).into()), ip);
        discovery
    }

    /// The parent advertises the prefix alone, for so long.
    fn advertise(
        discovery: &mut Discovery<'_>,
        lifetime_s: u32,
        (queue, ip): (&mut PacketQueue<'_>, &mut Ip<'_>),
        rng: &mut Rng,
    ) -> Result<(), PacketDrop> {
        let mut options = [0; 64];
        let mut w = Writer::new(&mut options);
        NdpOption::Prefix(information(lifetime_s))
            .emit(&mut w)
            .unwrap();
        let len = w.written();
        let message = Message::RouterAdvertisement(RouterAdvertisement {
            hop_limit: 64,
            flags: 0,
            router_lifetime_s: lifetime_s as u16,
            reachable_ms: 0,
            retransmit_ms: 0,
            options: NdpOptions::parse(&options[..len]).unwrap(),
        });
        let mut bytes = [0; 80];
        let len = message.emit(&mut bytes).unwrap();
        let advertisement = MessageView::parse(&bytes[..len]).unwrap();
        let from = (ip::link_local(PARENT), PARENT);
        discovery.on_advertisement(from, (advertisement, true), queue, ip, NOW, rng)
    }

    /// A part holds for a minute. An advertisement that holds for longer has neither contexts nor a
    /// border router to tell: whoever waited for these would ask for ever.
    #[test]
    fn an_advertisement_without_contexts_is_whole_where_it_holds_for_long() {
        for (lifetime_s, is_whole) in [(30, false), (60, false), (61, true), (1_800, true)] {
            let (mut bytes, mut table) = ([0; 1_024], [None; 2]);
            let mut queue = PacketQueue::new(&mut bytes);
            let mut ip = Ip::new(ip::Config::default(), &mut table);
            let mut rng = Rng::from_seed([1, 2]);
            let mut discovery = led((&mut queue, &mut ip), &mut rng);
            let outcome = advertise(&mut discovery, lifetime_s, (&mut queue, &mut ip), &mut rng);
            assert_eq!(outcome, Ok(()), "{lifetime_s} s");
            let router = discovery.solicitor.router();
            assert_eq!(router.is_some(), is_whole, "{lifetime_s} s");
        }
    }

    /// Somebody's advertisement without contexts once kept a mote from all packets for its
    /// lifetime: they came, compressed by a context that the mote did not ask for.
    #[test]
    fn headers_of_an_unknown_context_make_it_ask_once_a_minute() {
        let (mut bytes, mut table) = ([0; 1_024], [None; 2]);
        let mut queue = PacketQueue::new(&mut bytes);
        let mut ip = Ip::new(ip::Config::default(), &mut table);
        let mut rng = Rng::from_seed([1, 2]);
        let mut discovery = led((&mut queue, &mut ip), &mut rng);
        advertise(&mut discovery, 1_800, (&mut queue, &mut ip), &mut rng).unwrap();
        let mut asked = [0; 4];
        for second in 1..=200 {
            let now = NOW + Duration::from_secs(second);
            discovery.on_unknown_context(now);
            while queue.pop() {}
            discovery.poll(&mut queue, &mut ip, now, &mut rng);
            asked[(second / 60) as usize] += usize::from(!queue.is_empty());
        }
        assert!(
            asked[0] >= 1 && asked.iter().all(|times| *times <= 2),
            "{asked:?}"
        );
    }
}
