//! Outwards: interfaces pull. A packet is made only when the MAC has room for its frames, and
//! TCP is asked for a segment only then: what TCP counted as sent is on its way.

use super::budget::{Budget, compressed_len, growth};
use super::discovery;
use super::header_compression::{self, Mark, Onward};
use super::interface::{Interface, Radio, Wire, link_addr};
use super::segment::{Tcp, poll_segment};
use super::{Action, Node};
use crate::ip::{self, InterfaceId, Ip, Neighbour};
use crate::limits::PSDU_LEN_MAX;
use crate::lowpan::{LinkPair, TcpForm};
use crate::mac::{self, Class, Frame, Outcome};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::ipv6::Header;
use crate::wire::lowpan_frag::FIRST_LEN;

impl Node<'_> {
    /// What one interface shall do next.
    // Out of line: inlined in `poll_action`, its frame would lie below the work that a kept frame
    // makes, which is the call stack at its deepest.
    #[inline(never)]
    pub(super) fn poll_interface(
        &mut self,
        id: InterfaceId,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Action> {
        loop {
            let Self {
                interfaces,
                ip,
                tcp,
                rng,
                ..
            } = self;
            let action = match interfaces.get_mut(usize::from(id.0))? {
                Interface::Radio(radio) => poll_radio(radio, ip, tcp, id, now, rng, out),
                Interface::Wire(wire) => poll_wire(wire, ip, tcp, id, now, out),
            };
            if action.is_some() || !self.report_undelivered(id, now) {
                return action;
            }
        }
    }
}

fn poll_radio(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    now: Instant,
    rng: &mut Rng,
    out: &mut [u8],
) -> Option<Action> {
    radio.datagrams.expire(now);
    discovery::poll(radio, ip, id, now, rng);
    loop {
        fill_mac(radio, ip, tcp, id, now);
        if let Some(action) = radio.mac.poll_action(now, rng, out) {
            return Some(Action::Radio(action));
        }
        // A frame's end makes room for the next one: another round, unless there was none.
        let outcome = radio.mac.poll_outcome()?;
        let router = ip.default_route().filter(|hop| hop.interface == id);
        on_outcome(radio, router.map(|hop| hop.neighbour), &outcome, now);
        if radio.undelivered.is_some() {
            return None;
        }
    }
}

/// What became of a frame: the neighbour that took it needs the air now, and the other
/// fragments of a lost packet are not worth theirs. `router`: the neighbour that this radio's
/// default route leads to.
fn on_outcome(radio: &mut Radio<'_>, router: Option<Neighbour>, outcome: &Outcome, now: Instant) {
    let is_router = router == Some(Neighbour::One(outcome.to.iid()));
    let hold = radio.config.hold.after(is_router);
    if outcome.delivered && hold > Duration::ZERO {
        radio.mac.hold(outcome.to, now + hold, now);
    }
    if outcome.delivered && radio.mac.config().acknowledged {
        radio.solicitor.on_acknowledged(outcome.to.iid());
    }
    if !outcome.delivered {
        // Of a frame that grew old there is nothing to report.
        if outcome.reason != Some(mac::Drop::TooOld) {
            radio.undelivered = Some(outcome.token);
        }
        radio.datagrams.fragment_lost(outcome.token);
        if radio.outgoing.abort(outcome.token) {
            radio.outgoing_class = Class::Control;
        }
        radio.mac.cancel(outcome.token);
    }
}

/// Moves fragments into the MAC's queue while it has room for them.
fn fill_mac(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    now: Instant,
) {
    while radio.mac.room(radio.outgoing_class) > 0 {
        if radio.outgoing.is_idle() && !next_packet(radio, ip, tcp, id, now) {
            return;
        }
        // The first fragment finds out whether the others are worth their room; others wait
        // for that no longer than one attempt at a neighbour that is silent.
        let dst = radio.outgoing.link().dst;
        if !radio.outgoing.is_idle() && radio.mac.is_doubtful(dst) {
            if !radio.mac.is_failing(dst) {
                return;
            }
            radio.outgoing.abort(radio.outgoing.tag());
            radio.outgoing_class = Class::Control;
            continue;
        }
        let mut frame = [0; PSDU_LEN_MAX];
        let (link, tag) = (radio.outgoing.link(), radio.outgoing.tag());
        match radio.outgoing.next(&radio.contexts, &mut frame) {
            Ok(Some(len)) => {
                let payload = frame.get(..len).unwrap_or_default();
                // There is room, and the fragmenter keeps to the length that the MAC allows.
                let queued = radio.mac.enqueue(&Frame {
                    to: link.dst,
                    token: tag,
                    payload,
                    class: radio.outgoing_class,
                    since: radio.outgoing_since,
                });
                debug_assert!(queued.is_ok(), "room was asked for");
            }
            Ok(None) => {}
            Err(_) => ip.counters.count(ip::Drop::Malformed),
        }
        if radio.outgoing.is_idle() {
            radio.outgoing_class = Class::Control;
        }
    }
}

/// Puts the next packet into the fragmenter: one that waits, else a segment. Returns whether
/// there was one.
fn next_packet(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    now: Instant,
) -> bool {
    if let Some(front) = radio.queue.front() {
        let mark = Mark::from_bits(front.mark);
        if radio.mac.room(mark.class) == 0 {
            return false;
        }
        let len = radio.queue.peek(radio.outgoing.buffer());
        radio.queue.pop();
        start(radio, ip, id, len, mark, now);
        return true;
    }
    if radio.mac.room(Class::Own) == 0 {
        return false;
    }
    let (budget, buffer) = Budget::lend(radio);
    let len = poll_segment(ip, tcp, id, Some(budget), now, buffer);
    if let Some(len) = len {
        start(radio, ip, id, len, Mark::own(Class::Own), now);
    }
    len.is_some()
}

/// Sets the packet of `len` bytes in the fragmenter's buffer on its way.
fn start(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    id: InterfaceId,
    len: usize,
    mark: Mark,
    now: Instant,
) {
    let packet = radio.outgoing.buffer().get(..len).unwrap_or_default();
    let hop = Header::parse_start(packet).ok().and_then(|(header, _)| {
        let hop = ip.next_hop(&header.dst, id);
        let hop = hop.filter(|hop| hop.interface == id)?;
        Some((link_addr(hop.neighbour)?, header))
    });
    // The route may have gone, or turned, while the packet waited: then it goes nowhere.
    let Some((neighbour, header)) = hop else {
        radio.outgoing.discard();
        return ip.counters.count(ip::Drop::NoRoute);
    };
    let link = LinkPair {
        src: radio.mac.source(),
        dst: neighbour,
    };
    // What was compressed elsewhere has aged since it came.
    let since = match mark.onward {
        Onward::As(TcpForm::Compressed) => mark.since(now),
        _ => now,
    };
    if now.since(since) > radio.mac.config().frame_age_max {
        radio.outgoing.discard();
        return ip.counters.count(ip::Drop::TooOld);
    }
    let slack = growth(&header, link, &radio.contexts);
    let tag = radio.datagrams.new_tag();
    let len_max = radio.mac.payload_len_max(neighbour);
    let tcp = match mark.onward {
        Onward::As(form) => form,
        Onward::Begins(origin) => {
            let others = FIRST_LEN + compressed_len(&header, link, &radio.contexts) + slack;
            let room = len_max.saturating_sub(others);
            let packet = radio.outgoing.buffer().get_mut(..len).unwrap_or_default();
            header_compression::compress(radio.tcphc.as_deref_mut(), packet, origin, room, now)
        }
    };
    let started = radio
        .outgoing
        .start(len, tcp, link, tag, len_max, slack as u8);
    debug_assert!(started.is_ok(), "queues hold no empty packets");
    radio.outgoing_class = mark.class;
    radio.outgoing_since = since;
}

fn poll_wire(
    wire: &mut Wire<'_>,
    ip: &mut Ip<'_>,
    tcp: &mut Tcp<'_>,
    id: InterfaceId,
    now: Instant,
    out: &mut [u8],
) -> Option<Action> {
    while let Some(front) = wire.queue.front() {
        let len = wire.queue.peek(out);
        wire.queue.pop();
        if len == front.len {
            return Some(Action::Packet { len });
        }
        // Rather none than half a packet, where `out` is shorter than the wire's MTU.
        ip.counters.count(ip::Drop::QueueFull);
    }
    let len = poll_segment(ip, tcp, id, None, now, out)?;
    Some(Action::Packet { len })
}
