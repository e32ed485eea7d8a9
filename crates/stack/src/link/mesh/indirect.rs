//! Indirect transmission: whole packets for sleeping children wait here until the child polls.
//!
//! Only a data request makes its sender a child. A child is removed that is not heard for
//! [`IndirectConfig::child_timeout`], or solicits all routers: it has restarted, and listens. Its
//! packets are compressed and fragmented only when it listens, so compression state does not age.
//!
//! Without link security an attacker can send requests in a child's name while the child does not
//! listen. So a packet is kept until the child has acknowledged all its frames. A failing delivery
//! costs few attempts (`Neighbors::is_worth_insisting`), and a request that comes meanwhile begins
//! another one. A child that acknowledges nothing for that time is removed, however many requests
//! come in its name. A packet is dropped when [`DELIVERIES_MAX`] deliveries have broken off.
//!
//! Place: between the queue of whole packets and the MAC, beside [`outward`](super::outward), with
//! its own fragmenter, so that packets to other nodes do not delay it. Memory is bounded for each
//! child and for all ([`share`](super::share)). In a full table a new child replaces one that never
//! acknowledged a frame: its address may be made up. Left out: broadcast frames.
//!
//! Sources: IEEE 802.15.4-2006 §7.5.6.3; TCPlp §9.5 and appendix C.

use super::parent::{Child, IndirectConfig, IndirectCounters, Progress};
use super::{Mesh, PacketMeta, link_addr};
use crate::ip::{self, Ip};
use crate::limits::PSDU_LEN_MAX;
use crate::lowpan::fragment::Fragmenter;
use crate::mac::{self, Action, Class, Frame, Outcome, Pending, PollingFrame};
use crate::storage::keyed_queues::KeyedQueues;
use crate::storage::least;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::cursor::copy;

/// The packets of a parent's children, and the children.
#[derive(Debug)]
pub struct Indirect<'m> {
    pub(super) config: IndirectConfig,
    pub(super) children: &'m mut [Child],
    pub(super) queues: KeyedQueues<'m>,
    outgoing: Fragmenter<'m>,
    /// The child whose packet is in `outgoing`, or in the MAC.
    pub(super) serving: Option<u8>,
    /// The child that was served last.
    last: u8,
    /// How far the delivery of the packet in `outgoing` is.
    progress: Progress,
    /// Frames that it was cut into.
    cut: u8,
    /// Frames of that packet in the MAC.
    in_mac: u8,
    /// Whether a frame of that packet was acknowledged.
    is_begun: bool,
    /// Whether that child has sent another request since then.
    has_asked_again: bool,
    /// The flag that the radio was set to show in its ACKs to all children.
    is_any_shown: bool,
    pub(super) counters: IndirectCounters,
}

impl<'m> Indirect<'m> {
    /// Queues for children over borrowed memory. `children`: at most 255 are used; `packets`: those
    /// that wait, with seven bytes each; `outgoing`: the packet being cut up, as
    /// [`MeshMemory::outgoing`](super::MeshMemory).
    pub fn new(
        config: IndirectConfig,
        children: &'m mut [Child],
        packets: &'m mut [u8],
        outgoing: &'m mut [u8],
    ) -> Self {
        children.fill(Child::EMPTY);
        Self {
            config,
            children,
            queues: KeyedQueues::new(packets),
            outgoing: Fragmenter::new(outgoing),
            serving: None,
            last: 0,
            progress: Progress::NONE,
            cut: 0,
            in_mac: 0,
            is_begun: false,
            has_asked_again: false,
            is_any_shown: false,
            counters: IndirectCounters::default(),
        }
    }

    /// Gives back the memory it was lent: children, packets, the packet being cut up.
    pub fn into_memory(self) -> (&'m mut [Child], &'m mut [u8], &'m mut [u8]) {
        let outgoing = self.outgoing.into_memory();
        (self.children, self.queues.into_memory(), outgoing)
    }

    /// The addresses of this node's sleeping children.
    pub fn children(&self) -> impl Iterator<Item = LinkAddr> {
        self.children.iter().filter_map(Child::addr)
    }

    /// Packets that wait for all children together.
    pub fn waiting(&self) -> usize {
        self.keys().map(|key| self.queues.count(key)).sum()
    }

    /// The indices of the table of children, free entries included.
    pub(super) fn keys(&self) -> core::ops::Range<u8> {
        0..self.children.len().min(usize::from(u8::MAX)) as u8
    }

    /// Counts of requests, and of packets for children.
    pub const fn counters(&self) -> &IndirectCounters {
        &self.counters
    }

    pub(super) fn find(&self, addr: &LinkAddr) -> Option<u8> {
        let mut children = (0..u8::MAX).zip(self.children.iter());
        children.find_map(|(key, child)| child.is(addr).then_some(key))
    }

    pub(super) fn child(&mut self, key: u8) -> Option<&mut Child> {
        self.children.get_mut(usize::from(key))
    }

    /// Notes a frame from a possible child; returns whether the frame pending bit is set in its
    /// ACK. `radio`: how the radio sets that bit, if it sends ACKs by itself.
    pub(super) fn on_asked(
        &mut self,
        asked: PollingFrame,
        radio: Option<Pending>,
        is_trusted: impl Fn(LinkAddr) -> bool,
        now: Instant,
    ) -> bool {
        let known = self.find(&asked.by);
        let key = match known {
            Some(key) => key,
            None if asked.is_request => match self.adopt(asked.by, is_trusted) {
                Some(key) => key,
                None => return false,
            },
            None => return false,
        };
        let waits = self.queues.count(key) > 0;
        let asks = asked.is_request || self.config.data_asks;
        let counters = &mut self.counters;
        counters.requests = counters.requests.wrapping_add(u32::from(asked.is_request));
        let is_any_shown = self.is_any_shown;
        let Some(child) = self.children.get_mut(usize::from(key)) else {
            return false;
        };
        child.heard(known.is_none(), now);
        child.requests = child.requests.saturating_add(asked.is_request.into());
        self.has_asked_again |= asked.is_request && self.serving == Some(key);
        let says = asks
            && match radio {
                None => waits,
                Some(Pending::None) => false,
                Some(Pending::OneForAll) => asked.is_request && is_any_shown,
                Some(Pending::PerNeighbour) => child.is_shown,
            };
        if says {
            child.awake_until = now + LISTENS;
        } else if asked.is_request {
            child.awake_until = Instant::ORIGIN;
        }
        says
    }

    /// Whether the ACK to this neighbour has the frame pending bit set. Unlike `on_asked`, it does
    /// not treat the frame as a request, because the frame may be forged.
    #[cfg(feature = "security")]
    fn waits_for(&self, asked: PollingFrame) -> bool {
        let asks = asked.is_request || self.config.data_asks;
        let key = self.find(&asked.by);
        asks && key.is_some_and(|key| self.queues.count(key) > 0)
    }

    /// Makes a node a child, where there is room; or instead of another that may not exist.
    fn adopt(&mut self, addr: LinkAddr, is_trusted: impl Fn(LinkAddr) -> bool) -> Option<u8> {
        let rank = |child: &Child| {
            let is_another = u8::from(!child.is_over_of(&addr)) << 1;
            child
                .heard_at
                .rank(is_another | u8::from(child.last_addr().is_some()))
        };
        let may_go = |key: u8, child: &Child| match child.last_addr() {
            None => true,
            // A node that is a child again keeps its entry.
            Some(former) if child.is_over => former.is(&addr) || !child.is_shown,
            Some(other) => !is_trusted(other) && !child.is_shown && self.serving != Some(key),
        };
        let ranks = (0..u8::MAX).zip(self.children.iter());
        let ranks = ranks.map(|(key, child)| may_go(key, child).then(|| rank(child)));
        let Some(key) = least(ranks).map(|key| key as u8) else {
            self.counters.strangers = self.counters.strangers.wrapping_add(1);
            return None;
        };
        self.end(key);
        let is_shown = self.child(key).is_some_and(|child| child.is_shown);
        if let Some(child) = self.child(key) {
            *child = Child::new(addr, is_shown);
        }
        self.counters.children = self.counters.children.wrapping_add(1);
        Some(key)
    }

    /// Ends a child: its packets are dropped.
    fn end(&mut self, key: u8) {
        let dropped = self.queues.clear(key);
        self.counters.dropped = self.counters.dropped.wrapping_add(dropped as u32);
        if self.serving == Some(key) {
            self.abort();
        }
        if let Some(child) = self.child(key)
            && child.addr().is_some()
        {
            child.is_over = true;
            child.awake_until = Instant::ORIGIN;
            self.counters.gone = self.counters.gone.wrapping_add(1);
        }
    }

    /// Gives up the delivery under way; the packet waits on.
    fn abort(&mut self) {
        let (serving, progress) = (self.serving.take(), self.progress);
        if let Some(child) = serving.and_then(|key| self.child(key)) {
            child.halt(progress);
        }
        self.in_mac = 0;
        self.is_begun = false;
        self.outgoing.discard();
    }

    /// Removes children and packets whose time is over.
    fn expire(&mut self, now: Instant) {
        for key in self.keys() {
            let timeout = self.config.child_timeout;
            let Some(child) = self.child(key) else {
                return;
            };
            if now >= child.awake_until {
                child.awake_until = Instant::ORIGIN;
            }
            if child.addr().is_some() && now >= child.heard_at + timeout {
                self.end(key);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let timeout = self.config.child_timeout;
        let children = self.children.iter().filter(|child| child.addr().is_some());
        children.map(|child| child.next_deadline(timeout)).min()
    }

    /// The child to send to next: one that listens, and for which something waits; the one after
    /// the child served last, so that all have their turn.
    fn next_ready(&self) -> Option<u8> {
        let len = self.children.len().min(usize::from(u8::MAX));
        let first = usize::from(self.last).saturating_add(1);
        let ready = |key: &u8| {
            let child = self.children.get(usize::from(*key));
            child.is_some_and(Child::is_awake) && self.queues.count(*key) > 0
        };
        let turns = (0..len).filter_map(|turn| first.saturating_add(turn).checked_rem(len));
        turns.map(|key| key as u8).find(ready)
    }

    /// The order to show in ACKs whether packets wait, if that has changed.
    fn poll_shown(&mut self, radio: Pending) -> Option<Action> {
        match radio {
            Pending::None => None,
            Pending::OneForAll => {
                let pending = self.keys().any(|key| self.queues.count(key) > 0);
                (core::mem::replace(&mut self.is_any_shown, pending) != pending)
                    .then_some(Action::SetPending { of: None, pending })
            }
            Pending::PerNeighbour => {
                let Self {
                    children, queues, ..
                } = self;
                (0..u8::MAX)
                    .zip(children.iter_mut())
                    .find_map(|(key, child)| {
                        let pending = child.addr().is_some() && queues.count(key) > 0;
                        let of = child.last_addr();
                        let is_news = core::mem::replace(&mut child.is_shown, pending) != pending;
                        if child.is_over && !pending {
                            *child = Child::EMPTY;
                        }
                        is_news.then_some(Action::SetPending { of, pending })
                    })
            }
        }
    }

    /// The child whose frames in the MAC need the frame pending bit set.
    fn more_for(&self) -> Option<LinkAddr> {
        let key = self.serving?;
        let more = !self.outgoing.is_idle() || self.queues.count(key) > 1;
        self.children
            .get(usize::from(key))?
            .last_addr()
            .filter(|_| more)
    }

    /// Goes on with a packet where its last delivery broke off, if one did.
    fn resume(&mut self, key: u8, now: Instant) {
        let (tag, digest) = (self.outgoing.tag(), self.outgoing.digest());
        let halt = self.child(key).and_then(Child::take_halt);
        let begin = Progress {
            tag,
            digest,
            at: now,
            ..Progress::NONE
        };
        let known = halt.filter(|halt| halt.is_known(digest, now));
        let is_uncertain = known.is_some_and(|halt| halt.dsn.is_some());
        self.counters.resumed = self.counters.resumed.wrapping_add(u32::from(is_uncertain));
        self.progress = known.unwrap_or(begin);
        self.outgoing.set_tag(self.progress.tag);
        self.cut = 0;
    }

    /// A frame of the packet under way has ended; `promised`: the frame said that more follow.
    fn on_outcome(&mut self, delivered: bool, promised: bool, now: Instant) {
        let Some(key) = self.serving else {
            return;
        };
        let drains = self.config.drain && promised;
        self.progress.at = now;
        if delivered {
            self.progress.taken = self.progress.taken.saturating_add(1);
            self.in_mac = self.in_mac.saturating_sub(1);
            let is_whole = self.outgoing.is_idle() && self.in_mac == 0;
            self.is_begun = !is_whole;
            if let Some(child) = self.child(key) {
                child.awake_until = match drains {
                    true => now + LISTENS,
                    false => Instant::ORIGIN,
                };
                child.heard(false, now);
                child.failing_since = Instant::ORIGIN;
                if is_whole {
                    child.failures = 0;
                }
            }
            if is_whole {
                self.queues.pop(key);
                self.serving = None;
                self.counters.delivered = self.counters.delivered.wrapping_add(1);
            }
            return;
        }
        self.on_failure(key, now);
    }

    /// A frame for this child was given up: the child was not there, or the frame was disturbed.
    fn on_failure(&mut self, key: u8, now: Instant) {
        let broke_off = self.is_begun;
        self.abort();
        self.counters.failed = self.counters.failed.wrapping_add(1);
        let (asked_again, timeout) = (self.has_asked_again, self.config.child_timeout);
        let Some(child) = self.child(key) else {
            return;
        };
        if !asked_again {
            child.awake_until = Instant::ORIGIN;
        }
        child.failing_since = child.failing_since.if_any().unwrap_or(now);
        let since = child.failing_since;
        child.failures = child.failures.saturating_add(u8::from(broke_off));
        if now >= since + timeout {
            self.end(key);
        } else if child.failures >= DELIVERIES_MAX {
            self.drop_first(key);
        }
    }

    /// The first packet for a child goes nowhere.
    fn drop_first(&mut self, key: u8) {
        self.drop_nth(key, 0);
    }
}

impl<'m> Mesh<'m> {
    /// Makes this node a parent: packets for nodes that sleep wait in `indirect`. Call it before
    /// the link is given to a node. A radio that acknowledges by itself must be able to set the
    /// frame pending bit; otherwise the call has no effect.
    pub fn serve_sleepers(&mut self, indirect: &'m mut Indirect<'m>) {
        if !self.mac.radio().says_pending() {
            return;
        }
        self.mac.serve(match indirect.config.retries {
            true => u8::MAX,
            false => 1,
        });
        self.indirect = Some(indirect);
    }

    /// Takes the packets of children out again, to lend their memory to a later link.
    pub fn take_indirect(&mut self) -> Option<&'m mut Indirect<'m>> {
        self.indirect.take()
    }

    /// The children and what waits for them, where this node is a parent.
    pub fn indirect(&self) -> Option<&Indirect<'m>> {
        self.indirect.as_deref()
    }

    /// Whether packets for this neighbour wait until it asks.
    pub(super) fn sleeps(&self, addr: LinkAddr) -> bool {
        let indirect = self.indirect.as_deref();
        indirect.is_some_and(|indirect| indirect.find(&addr).is_some())
    }

    /// Notes the sender of the frame that has just come, before its ACK leaves.
    pub(super) fn note_asked(&mut self, now: Instant) {
        let Some(asked) = self.mac.take_asked() else {
            return;
        };
        let Some(indirect) = self.indirect.as_deref_mut() else {
            return;
        };
        #[cfg(feature = "security")]
        if asked.is_forgeable {
            // A stranger that sleeps, as after this parent's reboot, must listen for its challenge.
            let is_strange = asked.is_request && self.mac.challenges(asked.by);
            return self
                .mac
                .answer_pending(is_strange || indirect.waits_for(asked));
        }
        let radio = self.mac.radio();
        let radio = radio.auto_ack.then_some(radio.pending);
        let mac = &self.mac;
        let pending = indirect.on_asked(asked, radio, |addr| mac.is_trusted(addr), now);
        self.mac.answer_pending(pending);
    }

    /// A neighbour has asked all routers: whatever it was, it listens now.
    pub(super) fn end_sleep(&mut self, addr: LinkAddr) {
        if let Some(indirect) = self.indirect.as_deref_mut()
            && let Some(key) = indirect.find(&addr)
        {
            indirect.end(key);
        }
    }

    /// Keeps the packet of `len` bytes in the fragmenter's buffer, where it goes to a child.
    /// Returns whether it does.
    pub(super) fn divert(
        &mut self,
        to: ip::Neighbour,
        len: usize,
        meta: PacketMeta,
        now: Instant,
    ) -> bool {
        let Some(indirect) = self.indirect.as_deref_mut() else {
            return false;
        };
        let Some(key) = link_addr(to).and_then(|addr| indirect.find(&addr)) else {
            return false;
        };
        let packet = self.outgoing.buffer().get(..len).unwrap_or_default();
        indirect.keep(key, packet, meta, now);
        self.outgoing.discard();
        true
    }

    /// Moves fragments for the child that listens into the MAC's queue, while it has room for them.
    pub(super) fn fill_indirect(&mut self, ip: &mut Ip<'_>, now: Instant) {
        if let Some(indirect) = self.indirect.as_deref_mut() {
            indirect.expire(now);
        }
        while self.send_indirect(ip, now).is_some() {}
        let more_for = self.indirect.as_deref().and_then(Indirect::more_for);
        self.mac.set_more(more_for);
    }

    /// One step of that; `None`: there is nothing more to do now.
    fn send_indirect(&mut self, ip: &mut Ip<'_>, now: Instant) -> Option<()> {
        let indirect = self.indirect.as_deref_mut()?;
        let class = match indirect.config.priority {
            true => Class::Indirect,
            false => Class::Own,
        };
        if self.mac.room(class) == 0 {
            return None;
        }
        let is_idle = indirect.outgoing.is_idle();
        let key = match indirect.serving {
            // All of the packet is in the MAC.
            Some(_) if is_idle => return None,
            Some(key) => key,
            None => return self.begin_indirect(ip, now),
        };
        let is_awake = indirect.child(key).is_some_and(|child| child.is_awake());
        // A frame upon each request: the rest waits for the next one, but no other child for that.
        if !is_awake || (!indirect.config.drain && indirect.in_mac > 0) {
            let others = indirect.in_mac == 0 && indirect.next_ready().is_some();
            return others.then(|| indirect.abort());
        }
        let mut frame = [0; PSDU_LEN_MAX];
        let contexts = &self.discovery.contexts;
        let next = indirect.outgoing.next(contexts, &mut frame);
        let Ok(Some(len)) = next else {
            indirect.abort();
            indirect.drop_first(key);
            return Some(());
        };
        indirect.cut = indirect.cut.saturating_add(1);
        if indirect.cut <= indirect.progress.taken {
            return Some(());
        }
        let frame = Frame {
            to: indirect.outgoing.link().dst,
            token: indirect.outgoing.tag(),
            payload: frame.get(..len).unwrap_or_default(),
            class,
            since: now,
        };
        let queued = self.mac.enqueue_again(&frame, indirect.progress.dsn.take());
        debug_assert!(queued.is_ok(), "room was asked for");
        indirect.in_mac = indirect.in_mac.saturating_add(1);
        Some(())
    }

    /// Puts the next packet for a child that listens into the fragmenter of such packets.
    fn begin_indirect(&mut self, ip: &mut Ip<'_>, now: Instant) -> Option<()> {
        let indirect = self.indirect.as_deref_mut()?;
        let key = indirect.next_ready()?;
        let addr = indirect.child(key)?.last_addr()?;
        let kept = indirect.queues.first(key)?;
        // What waited here has not aged.
        let meta = PacketMeta::from_bits(kept.meta).since_now(now);
        let len = copy(indirect.outgoing.buffer(), kept.packet);
        let (class, since) = (self.outgoing_class, self.outgoing_since);
        let head = self.outgoing_head;
        core::mem::swap(&mut self.outgoing, &mut indirect.outgoing);
        let hop = self.hop_of_packet(ip, len, meta);
        let meta = self.keep_form(ip, (key, len), hop, meta, now);
        self.begin(ip, len, hop, meta, now);
        let is_begun = !self.outgoing.is_idle() && self.outgoing.link().dst.is(&addr);
        if !is_begun {
            self.outgoing.discard();
        }
        (self.outgoing_class, self.outgoing_since) = (class, since);
        self.outgoing_head = head;
        let indirect = self.indirect.as_deref_mut()?;
        core::mem::swap(&mut self.outgoing, &mut indirect.outgoing);
        match is_begun {
            true => {
                (indirect.serving, indirect.last) = (Some(key), key);
                (indirect.is_begun, indirect.has_asked_again) = (false, false);
                indirect.resume(key, now);
            }
            false => indirect.drop_first(key),
        }
        Some(())
    }

    /// Notes the outcome of a frame, where it was one for a child.
    pub(super) fn on_indirect_outcome(&mut self, outcome: &Outcome, now: Instant) {
        let promised = self.mac.has_promised();
        if let Some(indirect) = self.indirect.as_deref_mut()
            && indirect.serving.is_some()
            && indirect.outgoing.tag() == outcome.token
        {
            indirect.progress.dsn = self.mac.unanswered();
            indirect.on_outcome(outcome.delivered, promised, now);
        }
    }

    /// The flags about waiting packets that a radio which acknowledges by itself has to show, if
    /// they have changed.
    pub(super) fn poll_shown(&mut self) -> Option<Action> {
        let radio = self.mac.radio();
        let indirect = self.indirect.as_deref_mut()?;
        let shown = match radio.auto_ack {
            true => indirect.poll_shown(radio.pending),
            false => None,
        };
        // Without a radio that knows them, former children leave at once.
        if !radio.auto_ack || radio.pending != Pending::PerNeighbour {
            for child in indirect.children.iter_mut().filter(|child| child.is_over) {
                *child = Child::EMPTY;
            }
        }
        shown
    }

    pub(super) fn indirect_deadline(&self) -> Option<Instant> {
        self.indirect.as_deref().and_then(Indirect::next_deadline)
    }
}

/// How long a child listens after an ACK has promised it a packet, as its parent assumes; a child
/// that has given up asks again.
const LISTENS: Duration = mac::poll::ANSWER_TIMEOUT;

/// Deliveries of one packet that break off, each upon a request (OpenThread:
/// `kMaxPollTriggeredTxAttempts`).
const DELIVERIES_MAX: u8 = 4;

#[cfg(test)]
#[path = "tests/indirect.rs"]
mod tests;
