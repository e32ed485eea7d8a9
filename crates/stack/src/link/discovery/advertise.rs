//! Router advertisements of this node, which carry prefix, contexts and border router: when it
//! sends them, and to whom.
//!
//! A unicast solicitation is answered at once, by unicast. A multicast solicitation is answered by
//! multicast, after a random delay, and only if the router has heard too few answers of other
//! routers until then: of eight routers that hear one another, one or two answer, and every waiting
//! node gets that answer. Unicast answers (RFC 6775 §6.3) would not be heard by other routers, so
//! each router would send one, of two frames and their retries. A lost answer is repaired by the
//! next solicitation: when the same node solicits again, a router needs to hear twice as many
//! answers to stay silent, and in the end all routers answer. So a node that hears only one router
//! gets its answer, too. From its third solicitation on the answer goes to that node alone: over a
//! link that loses most long frames, only a frame that is tried again until it is acknowledged
//! arrives. Where others solicit meanwhile, it goes to all.
//!
//! In a mesh of RPL only leaves solicit all routers, and most of them sleep. A router with
//! a radio that cannot announce waiting frames would never reach them: it answers the third
//! solicitation at the earliest, when no other router has.

use core::net::Ipv6Addr;

use super::learn::{Digest, is_before, prefix_of};
use super::{
    Discovery, Draft, HAS_BORDER, OVERRIDE, PART_LEASE, ROUTER, ROUTER_CAPABILITIES, Received,
    SOLICITED, capabilities, must_fit,
};
use crate::ip::ndp::Advertised;
use crate::ip::neighbor_cache::IS_ROUTER;
use crate::ip::{self, ALL_NODES, Iid, Ip, PacketDrop};
use crate::limits::{CONTEXTS_MAX, IPV6_MTU_MIN};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::time::{Duration, Instant};
use crate::wire::icmpv6::MessageView;
use crate::wire::icmpv6::kind::{NEIGHBOR_ADVERTISEMENT, ROUTER_ADVERTISEMENT};
use crate::wire::ndp::{
    BorderRouter, LowpanContext, PREFIX_HEAD, PrefixInformation, emit_link_addr, emit_mtu,
    emit_restores_tcp, kind,
};
use crate::wire::tcphc;

/// Longest advertisement: header, prefix, MTU, link address and every context in long form; the
/// offer to restore TCP headers; capabilities; where RPL forms the mesh, the border router.
pub(super) const OPTIONS_LEN_MAX: usize = match IS_ROUTER {
    true => {
        let offer = if tcphc::IS_SUPPORTED { 16 } else { 0 };
        32 + 8 + 16 + 24 * CONTEXTS_MAX + offer + 8 + if HAS_BORDER { 24 } else { 0 }
    }
    false => LIST_LEN_MAX,
};

/// The longest list of a few options: of a link address and a registration.
const LIST_LEN_MAX: usize = 16 + 40;

/// The longest wait before an answer to all (`MAX_RA_DELAY_TIME`, RFC 4861 §10): some 30 times the
/// air time of an answer, so few routers send theirs before they have heard another one.
const ANSWER_DELAY_MAX: Duration = Duration::from_millis(500);

/// The upper limit of `Answer::needed`.
const NEEDED_MAX: u8 = 64;

/// The value of `Answer::needed` from which the answer goes to the asker alone: at its third
/// solicitation in a row.
const NEEDED_ALONE: u8 = 4;

/// The pending answer to a solicitation that was sent to all routers.
#[derive(Debug)]
pub(super) struct Answer {
    /// When the advertisement is sent, unless others answer first.
    pub(super) at: Option<Instant>,
    /// The neighbour that sent the solicitation.
    asker: Iid,
    /// How many other routers have advertised the same meanwhile.
    heard: u8,
    /// How many advertisements of others make this one needless.
    needed: u8,
    /// A solicitation came when this router had nothing to advertise.
    is_owed: bool,
}

impl Answer {
    pub(super) const NONE: Self = Self {
        at: None,
        asker: [0; 8],
        heard: 0,
        needed: NEEDED_ALONE,
        is_owed: false,
    };

    /// `asker` has solicited all routers: answers after a random delay, or where `is_last` only
    /// once others have been silent for two solicitations.
    fn ask(&mut self, asker: Iid, is_last: bool, now: Instant, rng: &mut Rng) {
        if self.at.is_some() {
            if self.asker != asker {
                // The one answer is for both.
                self.needed = self.needed.min(NEEDED_ALONE - 1);
            }
            return;
        }
        let was_answered = is_last && self.needed >= NEEDED_ALONE;
        // Others that solicit by turns would keep one another from an answer.
        self.needed = match self.asker == asker || is_last && !was_answered {
            true => self.needed.saturating_mul(2).min(NEEDED_MAX),
            false => 1,
        };
        self.asker = asker;
        self.heard = 0;
        if !is_last || self.needed >= NEEDED_ALONE {
            self.at = Some(now + rng.uniform(ANSWER_DELAY_MAX));
        }
    }

    /// Where the answer goes.
    fn destination(&self) -> Ipv6Addr {
        match self.needed >= NEEDED_ALONE {
            true => ip::link_local(self.asker),
            false => ALL_NODES,
        }
    }

    /// Another router has advertised the same to all nodes.
    fn hear(&mut self) {
        self.heard = self.heard.saturating_add(1);
        if self.heard >= self.needed {
            self.at = None;
        }
    }

    /// Whether a solicitation could not be answered; true once.
    pub(super) fn take_owed(&mut self) -> bool {
        core::mem::take(&mut self.is_owed)
    }
}

impl Discovery<'_> {
    /// Answers a router solicitation, unless its sender is this node's own router.
    pub(super) fn on_solicitation(
        &mut self,
        received: Received<'_>,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), PacketDrop> {
        let header = received.header;
        if self.solicitor.router() == Some(&header.src) {
            return Ok(());
        }
        self.may_answer(received.is_trusted, now)?;
        let (solicitor, to_all) = (&self.solicitor, header.dst.is_multicast());
        let may_tell = match solicitor.is_led() {
            false => true,
            // It has a prefix before it knows the contexts.
            true if solicitor.has_parent() => {
                solicitor.router().is_some() || solicitor.is_unanswered()
            }
            // Without a route upwards this router serves no node; a unicast solicitation is
            // answered with that.
            true => !to_all,
        };
        let is_last = to_all && solicitor.is_led() && !received.serves_sleepers;
        let can_tell = self.advertised.is_some() && may_tell;
        // A node that gets only a part of the configuration now must get the rest later.
        self.answer.is_owed |= !is_last && (self.is_waiting() || !can_tell);
        if !can_tell {
            return Ok(());
        }
        if to_all {
            self.answer.ask(ip::iid_of(&header.src), is_last, now, rng);
        } else {
            self.advertise(queue, ip, header.src, now);
        }
        Ok(())
    }

    /// Notes a multicast advertisement of another router: it counts as an answer if its contents
    /// are the same as this node's.
    pub(super) fn hear_answer(
        &mut self,
        advertisement: &MessageView<'_>,
        border: Option<&BorderRouter>,
    ) {
        let had = self.prefix();
        let is_older = match (border, &self.border) {
            (Some(heard), Some(known)) => is_before(heard.version, known.version),
            _ => false,
        };
        if prefix_of(had, advertisement).as_ref() == had && !is_older {
            self.answer.hear();
        }
    }

    /// Whether the prefix is this node's own to hand out: never without the feature `border`.
    pub(super) fn is_border(&self) -> bool {
        cfg!(feature = "border") && !self.solicits && !self.solicitor.is_led()
    }

    /// Whether RPL has brought the prefix that this node would advertise, but the router has not
    /// advertised the contexts yet.
    fn is_waiting(&self) -> bool {
        self.solicitor.is_led() && self.solicitor.router().is_none()
    }

    /// The lifetime left of what this node advertises: a border router sets it, a relay counts it
    /// down. A part of a configuration has a short lifetime.
    fn lifetime_left(&self, advertised: &Advertised, now: Instant) -> Duration {
        if self.is_border() {
            return advertised.lifetime;
        }
        let learnt = self.solicitor.expires().map(|at| at.since(now));
        match self.solicitor.is_led() {
            false => learnt.unwrap_or(Duration::ZERO),
            // Without a way up it is no router for those that have a choice.
            true if !self.solicitor.has_parent() => Duration::ZERO,
            true => learnt.unwrap_or(PART_LEASE).min(advertised.lifetime),
        }
    }

    /// The version in a border router's advertisements: incremented when their contents have
    /// changed.
    fn renew_version(&mut self, advertised: &Advertised) {
        let mut digest = Digest(0);
        digest.note(0, Some(&advertised.prefix));
        for (id, context) in self.contexts.iter() {
            let word = [u8::from(context.compress()), 0, id, context.prefix_len()];
            digest.note(u32::from_be_bytes(word), Some(&context.prefix()));
        }
        let had = self.border.map_or(0, |border| border.version);
        let has_changed = core::mem::replace(&mut self.advertised_digest, digest.0) != digest.0;
        self.border = Some(BorderRouter {
            version: had.wrapping_add(u32::from(has_changed)),
            lifetime_min: minutes(advertised.lifetime.as_secs()),
            addr: ip::with_iid(&advertised.prefix, self.source.iid()),
        });
    }

    /// Queues an advertisement of what this node knows to `to`; nothing where it never knew a
    /// prefix. A solicitation is answered, too, where this node is no router any more: its silence
    /// would not prove that while it acknowledges frames.
    pub(super) fn advertise(
        &mut self,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        to: Ipv6Addr,
        now: Instant,
    ) {
        let Some(advertised) = self.advertised else {
            return;
        };
        if HAS_BORDER && self.registers && self.is_border() {
            self.renew_version(&advertised);
        }
        let seconds = self.lifetime_left(&advertised, now).as_secs();
        let [high, low] = (seconds.min(u32::from(u16::MAX)) as u16).to_be_bytes();
        let mut packet = Draft::new();
        let mut w = packet.writer();
        must_fit(w.put(&[ROUTER_ADVERTISEMENT, 0, 0, 0, ip.hop_limit(), 0, high, low]));
        must_fit(w.put(&[0; 8]));
        must_fit(emit_link_addr(&mut w, kind::SOURCE_LINK_ADDR, self.source));
        // Options with a lifetime of zero would withdraw the prefix and the contexts.
        if seconds > 0 {
            let prefix = PrefixInformation {
                prefix_len: 64,
                on_link: false,
                autonomous: true,
                router_address: false,
                valid_lifetime_s: seconds,
                preferred_lifetime_s: seconds,
                prefix: advertised.prefix,
            };
            must_fit(prefix.emit(&mut w, PREFIX_HEAD));
            for (id, context) in self.contexts.iter() {
                let context = LowpanContext {
                    id,
                    compress: context.compress(),
                    prefix_len: context.prefix_len(),
                    lifetime_min: minutes(seconds),
                    prefix: context.prefix(),
                };
                must_fit(context.emit(&mut w));
            }
            if let Some(border) = self.border.filter(|_| HAS_BORDER) {
                must_fit(border.emit(&mut w));
            }
            if let Some(router) = self.offer() {
                must_fit(emit_restores_tcp(&mut w, &router));
            }
        }
        self.offer.tell(self.offer(), to.is_multicast());
        must_fit(emit_mtu(&mut w, IPV6_MTU_MIN as u32));
        if self.takes_registrations() {
            must_fit(w.put(&capabilities(ROUTER_CAPABILITIES)));
        }
        let len = w.written();
        self.send(queue, ip, &to, len, &mut packet);
    }

    /// Answers a solicitation for this node's own address `target`: to its source, or to all nodes
    /// where its source is the unspecified address.
    pub(super) fn own_up(
        &self,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        asker: &Ipv6Addr,
        target: Ipv6Addr,
    ) {
        let (to, solicited) = match *asker == Ipv6Addr::UNSPECIFIED {
            true => (&ALL_NODES, 0),
            false => (asker, SOLICITED),
        };
        let router = if ip.forwards() { ROUTER } else { 0 };
        let flags = router | solicited | OVERRIDE;
        let mut packet = Draft::new();
        let mut w = packet.about(NEIGHBOR_ADVERTISEMENT, flags, &target);
        must_fit(emit_link_addr(&mut w, kind::TARGET_LINK_ADDR, self.source));
        let len = w.written();
        self.send(queue, ip, to, len, &mut packet);
    }

    /// Sends an advertisement to all neighbours at once: this node can route for them now, or can
    /// no longer.
    pub(in crate::link) fn announce(
        &mut self,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        now: Instant,
    ) {
        if IS_ROUTER {
            self.answer.at = None;
            self.advertise(queue, ip, ALL_NODES, now);
        }
    }

    /// Sends the answer to a solicitation of all routers, if it is due.
    pub(super) fn poll_answer(&mut self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, now: Instant) {
        if IS_ROUTER && self.answer.at.is_some_and(|at| now >= at) {
            self.answer.at = None;
            self.advertise(queue, ip, self.answer.destination(), now);
        }
    }
}

/// Whole minutes, rounded up, as options count them.
fn minutes(seconds: u32) -> u16 {
    seconds.div_ceil(60).min(u32::from(u16::MAX)) as u16
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "border")]
    use super::super::Settings;
    use super::*;
    use std::vec::Vec;

    const ASKER: Iid = [7; 8];

    /// How many of `routers` answer a solicitation, where all hear one another and an answer takes
    /// ten milliseconds.
    fn answers(routers: &mut [Answer], now: Instant, rng: &mut Rng) -> usize {
        routers
            .iter_mut()
            .for_each(|r| r.ask(ASKER, false, now, rng));
        let mut moments: Vec<_> = routers.iter().map(|r| r.at.unwrap()).collect();
        moments.sort_unstable();
        let mut on_air: Vec<Instant> = Vec::new();
        for at in moments {
            let heard = on_air.iter().filter(|began| at.since(**began) >= AIR);
            let router = routers.iter_mut().find(|r| r.at == Some(at)).unwrap();
            heard.for_each(|_| router.hear());
            if router.at.take().is_some() {
                on_air.push(at);
            }
        }
        on_air.len()
    }

    const AIR: Duration = Duration::from_millis(10);

    /// Where an option did not fit, it would be left out.
    #[test]
    #[cfg(feature = "border")]
    fn the_longest_advertisement_fits() {
        let advertised = Advertised {
            prefix: Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 0),
            lifetime: Advertised::LIFETIME,
        };
        let settings = Settings {
            source: crate::wire::LinkAddr::Extended(ASKER),
            eui64: ASKER,
            solicits: false,
            registers: true,
            router: None,
            advertised: Some(advertised),
        };
        let registrations = std::vec![ip::Registration::EMPTY; 2].leak();
        let mut discovery = Discovery::new(settings, registrations);
        let mut queue = PacketQueue::new(std::vec![0; 4_096].leak());
        let mut ip = Ip::new(ip::Config::default(), std::vec![None; 2].leak());
        let (now, mut rng) = (Instant::ORIGIN, Rng::from_seed([1, 2]));
        discovery.offer_own();
        for id in 0..CONTEXTS_MAX {
            discovery
                .contexts
                .set(id as u8, advertised.prefix, 128, true);
        }
        discovery.start(ip::InterfaceId(0), &mut queue, &mut ip, now, &mut rng);
        let mut bytes = [0; 1_000];
        let len = queue.peek(&mut bytes);
        let message = MessageView::parse(&bytes[crate::wire::ipv6::HEADER_LEN..len]).unwrap();
        let options: Vec<_> = message.options().bodies().map(|(kind, _)| kind).collect();
        let contexts = options.iter().filter(|it| **it == kind::CONTEXT);
        assert_eq!(contexts.count(), CONTEXTS_MAX);
        assert_eq!(options.last(), Some(&super::super::CAPABILITIES));
        let others = 4 + usize::from(tcphc::IS_SUPPORTED) + usize::from(HAS_BORDER);
        assert_eq!(options.len(), CONTEXTS_MAX + others);
    }

    #[test]
    fn who_asks_for_the_third_time_in_a_row_is_answered_alone() {
        let mut rng = Rng::from_seed([8, 9]);
        let mut answer = Answer::NONE;
        let mut asked = |asker| {
            answer.ask(asker, false, Instant::ORIGIN, &mut rng);
            answer.at = None;
            answer.destination()
        };
        let alone = ip::link_local(ASKER);
        let destinations = [ASKER; 4].map(&mut asked);
        assert_eq!(destinations, [ALL_NODES, ALL_NODES, alone, alone]);
        assert_eq!(asked([9; 8]), ALL_NODES, "another one");
    }

    /// A sleeping leaf once chose such a router, which acknowledged its frames and never reached
    /// it.
    #[test]
    fn a_router_that_cannot_serve_those_that_sleep_answers_last() {
        let mut rng = Rng::from_seed([8, 9]);
        let mut answer = Answer::NONE;
        let mut asked = |asker| {
            answer.ask(asker, true, Instant::ORIGIN, &mut rng);
            answer.at.take().map(|_| answer.destination())
        };
        let alone = ip::link_local(ASKER);
        assert_eq!([ASKER; 3].map(&mut asked), [None, None, Some(alone)]);
        assert_eq!([[9; 8]; 2].map(&mut asked), [None, None], "another one");
        // Two that solicit by turns.
        assert_eq!(asked(ASKER), Some(alone));
        assert_eq!(asked([9; 8]), None);
    }

    #[test]
    fn of_eight_routers_in_earshot_one_or_two_answer_and_more_when_asked_again() {
        let mut rng = Rng::from_seed([8, 8]);
        let mut sums = [0; 4];
        for _ in 0..100 {
            let mut routers: Vec<_> = (0..8).map(|_| Answer::NONE).collect();
            for (n, sum) in sums.iter_mut().enumerate() {
                let now = Instant::from_micros(4_000_000 * n as u64);
                *sum += answers(&mut routers, now, &mut rng);
            }
        }
        let [first, second, third, last] = sums;
        assert!((100..=140).contains(&first), "{sums:?}");
        assert!((200..=270).contains(&second), "{sums:?}");
        assert!((400..=500).contains(&third), "{sums:?}");
        assert_eq!(last, 800, "an asker that hears only one of them");
    }

    #[test]
    fn solicitations_that_come_together_have_one_answer() {
        let mut rng = Rng::from_seed([8, 9]);
        let mut answer = Answer::NONE;
        answer.ask(ASKER, false, Instant::ORIGIN, &mut rng);
        let at = answer.at;
        answer.ask([8; 8], false, Instant::from_micros(1_000), &mut rng);
        assert_eq!(answer.at, at);
        // The second of two that ask at once is answered, too, where the answer was for one alone.
        for _ in 0..3 {
            answer.at = None;
            answer.ask(ASKER, false, Instant::from_micros(2_000), &mut rng);
        }
        assert_eq!(answer.destination(), ip::link_local(ASKER));
        answer.ask([8; 8], false, Instant::from_micros(3_000), &mut rng);
        assert_eq!(answer.destination(), ALL_NODES);
    }
}
