//! Outgoing packets: the MAC pulls. A packet is made only when the MAC has room for its frames, and
//! TCP is polled for a segment only then, so that a segment that TCP counts as sent is never
//! dropped here.

use core::net::Ipv6Addr;

use super::budget::{Budget, growth};
use super::pace::ExchangeTimes;
use super::packet_meta::{PacketMeta, RplDirection};
use super::routing::{InsertedHeaders, ROUTED_SLACK, hops_left};
use super::{Mesh, link_addr, tcp_headers};
use crate::ip::{self, InterfaceId, Ip, Neighbour, NextHop};
use crate::limits::{IS_RELAY, PSDU_LEN_MAX};
use crate::link::Ask;
use crate::link::arrival::{Pulled, Report, TcpEgress, Undelivered};
use crate::lowpan::{HeaderForms, LinkPair, TcpForm, compressed_header_len};
use crate::mac::{self, Class, Frame, Outcome};
use crate::random::Rng;
use crate::tcphc;
use crate::time::{Duration, Instant};
use crate::wire::cursor::copy;
use crate::wire::ipv6::{HEADER_LEN, Header};
use crate::wire::lowpan_frag::FIRST_LEN;
use crate::wire::{LinkAddr, tcphc as wire};

impl<'m> Mesh<'m> {
    /// The radio's next action; `None` where there is nothing now, or a report to take first.
    // Out of line: inlined in the node's poll, its frame would lie below the work that a kept
    // frame makes, which is the call stack at its deepest.
    #[inline(never)]
    pub(in crate::link) fn poll_action(
        &mut self,
        ip: &mut Ip<'_>,
        mut pull: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
        rng: &mut Rng,
        out: &mut [u8],
    ) -> Option<mac::Action> {
        self.datagrams.expire(now);
        self.poll_discovery(ip, now, rng);
        self.pass_offer();
        #[cfg(feature = "thread")]
        self.poll_thread(ip, now, rng);
        self.end_entering_deadline();
        loop {
            self.queue_due(ip, now);
            self.fill_mac(ip, &mut pull, now);
            self.fill_indirect(ip, now);
            if let Some(action) = self.poll_shown() {
                return Some(action);
            }
            if let Some(action) = self.mac.poll_action(now, rng, out) {
                return Some(action);
            }
            self.note_polled(now);
            // A frame's end makes room for the next one: another round, unless there was none.
            let outcome = self.mac.poll_outcome()?;
            let router = ip
                .default_route()
                .filter(|hop| hop.interface == self.discovery.id);
            self.on_outcome(router.map(|hop| hop.neighbour), &outcome, now);
            if self.undelivered.is_some() || self.routing.has_report() {
                return None;
            }
        }
    }

    /// A router that has gone, or the packet that was given up on its link.
    pub(in crate::link) fn poll_report(&mut self) -> Option<Report<'m>> {
        if self.discovery.take_lost_route() {
            return Some(Report::RouterGone);
        }
        #[cfg(feature = "rpl")]
        if let Some(sent) = self.routing.sent.take() {
            return Some(Report::Sent(sent));
        }
        let tag = self.undelivered.take()?;
        let last_hop = self.outgoing.link().dst.iid();
        let form = self.outgoing.tcp_form();
        #[cfg(feature = "rpl")]
        let is_step_lost = self.mac.has_lost(self.outgoing.link().dst);
        let buffer = self.outgoing.lend(tag)?;
        Some(Report::Undelivered(Undelivered {
            buffer,
            last_hop,
            form,
            head: self.outgoing_head,
            #[cfg(feature = "rpl")]
            is_step_lost,
        }))
    }

    /// Handles the outcome of a frame. Delivered: leave the neighbour alone while it forwards.
    /// Lost: drop the packet's other fragments. `router`: the neighbour that the default route over
    /// this link leads to.
    pub(super) fn on_outcome(
        &mut self,
        router: Option<Neighbour>,
        outcome: &Outcome,
        now: Instant,
    ) {
        self.on_indirect_outcome(outcome, now);
        #[cfg(feature = "thread")]
        self.note_sent(outcome, now);
        let was_passed_on = !outcome.delivered && self.datagrams.fragment_lost(outcome.token);
        #[cfg(feature = "rpl")]
        // Where a link is busy both ways a frame is given up now and then: that loses a packet, and
        // no step.
        let was_passed_on = was_passed_on && self.mac.has_lost(outcome.to);
        self.routing.note(outcome, was_passed_on);
        let is_router = router == Some(Neighbour::One(outcome.to.iid()));
        if outcome.delivered {
            self.pace(is_router, outcome, now);
        }
        if outcome.acknowledged {
            self.discovery.on_acknowledged(outcome.to.iid(), now);
        }
        if outcome.delivered {
            return;
        }
        if outcome.reason != Some(mac::FrameDrop::TooOld) {
            self.discovery.on_given_up(outcome.to.iid(), now);
        }
        if self.outgoing.abort(outcome.token) {
            self.outgoing_class = Class::Control;
        }
        self.mac.cancel(outcome.token);
        // Only a neighbour or a radio that did not answer is reported: a channel that stayed busy,
        // and a frame that became too old, are congestion (RFC 4443 §3.1, RFC 6069). A packet that
        // another node fragmented cannot be quoted in an ICMPv6 error; for it only a lost step of a
        // source route is noted.
        let is_unanswered = matches!(
            outcome.reason,
            Some(mac::FrameDrop::NoAck | mac::FrameDrop::Silent | mac::FrameDrop::RadioSilent)
        );
        if is_unanswered && self.outgoing.holds(outcome.token) {
            self.undelivered = Some(outcome.token);
        }
    }

    /// Leaves the neighbour alone that has taken a frame which it passes on. `is_router`: whether
    /// it goes up from there.
    pub(super) fn pace(&mut self, is_router: bool, outcome: &Outcome, now: Instant) {
        let last_hop = self.last_hops.of(outcome.token);
        if last_hop == Some(true) {
            return;
        }
        let goes_further = last_hop.is_none();
        let pacing = &self.settings.pacing;
        let until = match pacing.is_measured() {
            false if !goes_further => return,
            false => now + pacing.after(is_router),
            // Broadcast frames, and frames to sleeping children, are not forwarded further.
            true if outcome.to.is_broadcast() || self.sleeps(outcome.to) => return,
            true => {
                let took = ExchangeTimes {
                    exchange: now.since(outcome.started),
                    copy: outcome.copied,
                };
                let mut flow = self.settings.flow(is_router, took, outcome, now, &self.mac);
                let begins = self.mac.flow(outcome.to).token != outcome.token;
                self.mac.note_flow(outcome.to, flow);
                if !flow.follows {
                    return;
                }
                let way = (is_router, goes_further);
                let mut pace = self.measured_pace(way, took, outcome, now);
                if begins && goes_further {
                    pace = pace + self.settings.gap(is_router, &self.mac);
                }
                let pace_of = (pace, took.exchange);
                flow.is_orderly =
                    (self.settings).is_orderly(is_router, pace_of, outcome.to, now, &self.mac);
                self.mac.note_flow(outcome.to, flow);
                // The next attempt begins with its copy.
                let until = outcome.started + (pace - outcome.copied);
                if !is_router && self.has_hidden() {
                    if !begins {
                        self.count_frame(took, goes_further, outcome, now);
                    }
                    return self
                        .mac
                        .pause(outcome.to, until.max(self.rests.until()), now);
                }
                until
            }
        };
        if until > now {
            self.mac.pause(outcome.to, until, now);
        }
    }

    /// Whether motes may send that do not hear this node. With a channel for each link its own
    /// neighbours are such motes: each frame of theirs meets it deaf while it sends on another
    /// channel.
    fn has_hidden(&self) -> bool {
        let pacing = &self.settings.pacing;
        pacing.has_hidden() || !self.mac.config().channels.is_single() && pacing.hops_up == 0
    }

    /// Notes the first fragment of a packet of `src`. `is_far`: whether another node sent the
    /// packet. Of a stranger nothing is noted: a source address may be invented.
    pub(super) fn note_first_fragment(&mut self, src: LinkAddr, is_far: bool, now: Instant) {
        let may_be_hidden = is_far || !self.mac.config().channels.is_single();
        if may_be_hidden && self.mac.is_trusted(src) {
            self.rests.meet(src, now);
        }
    }

    /// Counts a frame that a border router has sent down, of a packet of several.
    fn count_frame(
        &mut self,
        took: ExchangeTimes,
        goes_further: bool,
        outcome: &Outcome,
        now: Instant,
    ) {
        let stream = (outcome.to, outcome.token);
        self.rests.count(stream, took, goes_further, now);
    }

    /// The time from the start of a frame of a flow to the start of the next one. The way of a
    /// frame: whether it goes to this node's router, and whether further from there.
    fn measured_pace(
        &mut self,
        (is_router, goes_further): (bool, bool),
        took: ExchangeTimes,
        outcome: &Outcome,
        now: Instant,
    ) -> Duration {
        let (settings, mac, to) = (&self.settings, &self.mac, outcome.to);
        let pace = match goes_further {
            true => settings.pace(is_router, took, mac),
            false => Duration::ZERO,
        };
        let pace = settings.following(pace, mac.apart(to, now), mac);
        let yielding = settings.yielding(is_router, (pace, took), to, now, mac);
        if !goes_further || !settings.may_search(is_router, to, now, mac) {
            return yielding;
        }
        let quiet = settings.answered(took.exchange);
        self.pace_search.note(outcome, (took.exchange, quiet), now);
        if yielding > pace.saturating_mul(2) {
            // Another source sends over the same router: the search would measure its traffic, too.
            self.pace_search.leave();
        }
        self.pace_search.slowed(yielding)
    }

    /// Moves fragments into the MAC's queue while it has room for them.
    fn fill_mac(
        &mut self,
        ip: &mut Ip<'_>,
        pull: &mut impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
    ) {
        while self.mac.room(self.outgoing_class) > 0 {
            if self.outgoing.is_idle() && !self.next_packet(ip, pull, now) {
                return;
            }
            // The first fragment finds out whether the others are worth their room; others wait
            // for that no longer than one attempt at a neighbour that is silent.
            let dst = self.outgoing.link().dst;
            if !self.outgoing.is_idle() && self.mac.is_doubtful(dst) {
                if !self.mac.is_failing(dst) {
                    return;
                }
                self.outgoing.abort(self.outgoing.tag());
                self.outgoing_class = Class::Control;
                continue;
            }
            let mut frame = [0; PSDU_LEN_MAX];
            let (link, tag) = (self.outgoing.link(), self.outgoing.tag());
            match self.outgoing.next(&self.discovery.contexts, &mut frame) {
                Ok(Some(len)) => {
                    let payload = frame.get(..len).unwrap_or_default();
                    // There is room, and the fragmenter keeps to the length that the MAC allows.
                    let queued = self.mac.enqueue(&Frame {
                        to: link.dst,
                        token: tag,
                        payload,
                        class: self.outgoing_class,
                        since: self.outgoing_since,
                    });
                    debug_assert!(queued.is_ok(), "room was asked for");
                    self.charge_frame(len);
                }
                Ok(None) => {}
                Err(_) => ip.counters.count(ip::PacketDrop::Malformed),
            }
            if self.outgoing.is_idle() {
                self.outgoing_class = Class::Control;
            }
        }
    }

    /// Puts the next packet into the fragmenter: one that waits, else a segment. Returns whether
    /// there was one.
    fn next_packet(
        &mut self,
        ip: &mut Ip<'_>,
        pull: &mut impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
    ) -> bool {
        let is_own_turn = self.takes_own_turn();
        if let Some(front) = self.queue.front() {
            let (meta, whole) = (PacketMeta::from_bits(front.meta), front.len);
            if self.mac.room(meta.class) == 0 {
                return false;
            }
            if meta.class == Class::Own {
                if is_own_turn && self.next_segment(ip, pull, now) {
                    return true;
                }
                if self.is_entering_turn() {
                    if !self.has_few_ahead() {
                        return false;
                    }
                    if self.next_entering(ip, now) {
                        return true;
                    }
                }
                self.give_entering_turn();
            }
            let len = self.queue.peek(self.outgoing.buffer());
            let is_whole = len == whole;
            self.queue.pop();
            let hop = self.hop_of_packet(ip, len, meta).filter(|_| is_whole);
            self.set_off(ip, len, hop, meta, now);
            return true;
        }
        if is_own_turn && self.next_segment(ip, pull, now) {
            return true;
        }
        self.next_entering(ip, now) || self.next_segment(ip, pull, now)
    }

    /// Puts the next segment of this node's TCP into the fragmenter; returns whether there was one.
    fn next_segment(
        &mut self,
        ip: &mut Ip<'_>,
        pull: &mut impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        now: Instant,
    ) -> bool {
        if self.mac.room(Class::Own) == 0 {
            return false;
        }
        let (budget, buffer) = Budget::lend(self);
        let pulled = pull(ip, Ask::Within(&budget), buffer);
        if let Some(Pulled { len, header, to }) = pulled {
            if IS_RELAY && let Some(neighbour) = link_addr(to) {
                self.judge_own(neighbour, len, ip);
            }
            self.set_off(
                ip,
                len,
                Some((header, to)),
                PacketMeta::own(Class::Own),
                now,
            );
        }
        pulled.is_some()
    }

    /// The next hop of the packet of `len` bytes in the fragmenter's buffer: its route may have
    /// changed or disappeared while it waited. `None`: no route leads over this link.
    pub(super) fn hop_of_packet(
        &mut self,
        ip: &Ip<'_>,
        len: usize,
        meta: PacketMeta,
    ) -> Option<(Header, Neighbour)> {
        let packet = self.outgoing.buffer().get(..len).unwrap_or_default();
        let (header, _) = Header::parse_start(packet).ok()?;
        let hop = match meta.way {
            RplDirection::Routed => Some(NextHop {
                interface: self.discovery.id,
                neighbour: Neighbour::One(ip::iid_of(&header.dst)),
            }),
            RplDirection::Begins | RplDirection::Up { .. } => {
                ip.next_hop(&header.dst, self.discovery.id)
            }
        };
        let hop = hop.filter(|hop| hop.interface == self.discovery.id)?;
        Some((header, hop.neighbour))
    }

    /// As [`Self::begin`], unless the packet waits for a neighbour that sleeps.
    pub(super) fn set_off(
        &mut self,
        ip: &mut Ip<'_>,
        len: usize,
        hop: Option<(Header, Neighbour)>,
        meta: PacketMeta,
        now: Instant,
    ) {
        if !hop.is_some_and(|(_, to)| self.divert(to, len, meta, now)) {
            self.begin(ip, len, hop, meta, now);
        }
    }

    /// Sets the packet of `len` bytes in the fragmenter's buffer on its way. `hop`: its header,
    /// and the neighbour that it goes to.
    pub(super) fn begin(
        &mut self,
        ip: &mut Ip<'_>,
        len: usize,
        hop: Option<(Header, Neighbour)>,
        meta: PacketMeta,
        now: Instant,
    ) {
        let hop = hop.and_then(|(header, to)| Some((header, to, link_addr(to)?)));
        let Some((header, to, neighbour)) = hop else {
            self.outgoing.discard();
            return ip.counters.count(ip::PacketDrop::NoRoute);
        };
        #[cfg(feature = "thread")]
        let neighbour = self.taker(neighbour);
        // A header that another node has compressed has been ageing since its arrival.
        let since = match meta.egress {
            TcpEgress::As(TcpForm::Compressed) => meta.since(now),
            _ => now,
        };
        if now.since(since) > self.mac.config().frame_age_max {
            self.outgoing.discard();
            return ip.counters.count(ip::PacketDrop::TooOld);
        }
        let departure = self.departure(ip, &header, (to, neighbour), &meta);
        self.settings.pacing.note_down(match meta.way {
            // It stands at its next step already.
            RplDirection::Routed => Some(hops_left(self.outgoing.buffer()).saturating_add(1)),
            RplDirection::Begins | RplDirection::Up { .. } => departure.inserted.hops(),
        });
        let tag = self.datagrams.new_tag();
        // A packet on a source route is for its next step, and goes further from there.
        let goes_further =
            meta.way == RplDirection::Routed && hops_left(self.outgoing.buffer()) > 0;
        if !goes_further
            && matches!(&to, Neighbour::One(to) if ip::has_iid(&header.dst, to))
            && is_on_link(ip, self.discovery.id, header.dst)
        {
            self.last_hops.note(tag, meta.class == Class::Control);
        }
        let tcp = match meta.egress {
            TcpEgress::As(form) => form,
            TcpEgress::Begins(origin) => self.compress(len, (&header, &departure), origin, now),
        };
        let Departure {
            link,
            inserted,
            slack,
            len_max,
            ..
        } = departure;
        let outgoing = &mut self.outgoing;
        let len = match inserted.put_on(ip, self.discovery.id, &header, (outgoing.buffer(), len)) {
            Ok(len) => len,
            Err(reason) => {
                outgoing.discard();
                return ip.counters.count(reason);
            }
        };
        let rpi = inserted.option();
        let forms = HeaderForms { tcp, rpi };
        let started = outgoing.start(len, forms, link, tag, len_max, slack as u8);
        debug_assert!(started.is_ok(), "queues hold no empty packets");
        self.outgoing_class = meta.class;
        self.outgoing_since = since;
    }
}

/// How a packet leaves: over which link, and with how much beside its IPv6 packet.
pub(super) struct Departure {
    link: LinkPair,
    inserted: InsertedHeaders,
    /// Bytes of the compressed IPv6 header, and by how many it may grow on later hops.
    header_len: usize,
    slack: usize,
    /// The longest payload of a frame.
    len_max: usize,
}

impl Mesh<'_> {
    /// How a packet leaves for the neighbour `to`, with its link address.
    pub(super) fn departure(
        &self,
        ip: &Ip<'_>,
        header: &Header,
        (to, neighbour): (Neighbour, LinkAddr),
        meta: &PacketMeta,
    ) -> Departure {
        let contexts = &self.discovery.contexts;
        let link = LinkPair {
            src: self.mac.source_to(neighbour),
            dst: neighbour,
        };
        let header_len = compressed_header_len(header, link, contexts);
        let next = NextHop {
            interface: self.discovery.id,
            neighbour: to,
        };
        let inserted = InsertedHeaders::of(ip, header, next, meta);
        let slack = match inserted.grows(contexts) {
            true => ROUTED_SLACK,
            false => growth(header, link, contexts, header_len),
        };
        Departure {
            link,
            inserted,
            header_len,
            slack,
            len_max: self.mac.payload_len_max(neighbour),
        }
    }

    /// Compresses the TCP header of the packet of `len` bytes in the fragmenter's buffer.
    pub(super) fn compress(
        &mut self,
        len: usize,
        (header, departure): (&Header, &Departure),
        origin: tcphc::Origin,
        now: Instant,
    ) -> TcpForm {
        if !wire::IS_SUPPORTED {
            return TcpForm::Plain;
        }
        let inserted_len = departure.inserted.compressed_len(&self.discovery.contexts);
        let others = FIRST_LEN + departure.header_len + departure.slack + inserted_len;
        let room = departure.len_max.saturating_sub(others);
        let packet = self.outgoing.buffer().get_mut(..len).unwrap_or_default();
        let segment = packet.get(HEADER_LEN..).unwrap_or_default();
        copy(&mut self.outgoing_head, segment);
        let tcphc = self.tcphc.as_deref_mut();
        tcp_headers::compress(tcphc, (header, packet), origin, room, now)
    }
}

/// Whether a destination is link-local, or under the prefix of an address of this node on that
/// link. Behind a router may be a host whose interface identifier is the router's.
fn is_on_link(ip: &Ip<'_>, interface: InterfaceId, dst: Ipv6Addr) -> bool {
    let prefix = |addr: Ipv6Addr| addr.to_bits() >> 64;
    let mut own = ip.addresses().filter(|own| own.interface == interface);
    dst.is_unicast_link_local() || own.any(|own| prefix(own.addr) == prefix(dst))
}
