//! The table of contexts: finds the context of a segment.
//!
//! Purpose: finds contexts by addresses and ports or by addresses and identifier, makes them when
//! connections open, moves them when an identifier passes to another connection, and reuses the
//! slots of those idle for longest. Place: compressor and decompressor look up contexts here. Left
//! out: the contents of a context, which are [`context`](super::context)'s.
//! Source: `docs/reference/tcphc.md`, section 2.

use core::net::Ipv6Addr;

use crate::random::KeyedHash;
use crate::time::Instant;
use crate::wire::tcp::Flags;

use super::belief::awaits_answer;
use super::config::REUSE_AFTER;
use super::context::{Context, State, bit};
use super::rules::{Cure, Rules};
use super::segment::Segment;
use super::windows::{Set, WindowSet};
use super::{End, Flow, Tcphc};

/// The key by which a context is looked up: the two addresses, hashed, and the remote one.
pub(super) struct Key {
    addresses: u32,
    remote: Ipv6Addr,
}

impl Tcphc<'_> {
    pub(super) fn key(&self, flow: &Flow) -> Key {
        let ends = [flow.local, flow.remote];
        let (met, addresses) = self.met;
        Key {
            addresses: match ends == met {
                true => addresses,
                false => hash_of(&self.hash, ends),
            },
            remote: flow.remote,
        }
    }

    /// As [`Self::key`], for a flow that will be looked up again soon: its hash is kept.
    pub(super) fn meet(&mut self, flow: &Flow) -> Key {
        let key = self.key(flow);
        self.met = ([flow.local, flow.remote], key.addresses);
        key
    }

    /// The remote node by itself; few segments need it.
    pub(super) fn remote(&self, key: &Key) -> u16 {
        self.hash.hash(&[&halves(key.remote)]) as u16
    }

    fn find(&self, key: &Key, is_it: impl Fn(&Context) -> bool) -> Option<usize> {
        self.contexts.iter().position(|context| {
            context.state() != State::Free && context.addresses == key.addresses && is_it(context)
        })
    }

    pub(super) fn find_cid(&self, key: &Key, cid: u8) -> Option<usize> {
        self.find(key, |context| context.cid == cid)
    }

    pub(super) fn find_ports(&self, key: &Key, ports: (u16, u16)) -> Option<usize> {
        self.find(key, |context| context.ports == ports)
    }

    /// The context that an outgoing segment travels under; `None`: plain.
    pub(super) fn context_to_send(
        &mut self,
        key: &Key,
        ports: (u16, u16),
        seg: &Segment,
        flow: &Flow,
        now: Instant,
    ) -> Option<usize> {
        let found = self.find_ports(key, ports);
        let opens = seg.has(Flags::SYN) && !seg.has(Flags::ACK);
        let context = found.and_then(|at| self.contexts.get(at));
        let is_known = context.is_some_and(|it| it.has(bit::U_SEQ) && it.u_seq != seg.end());
        if self.is_offering() && (opens || is_known && seg.has(Flags::SYN)) {
            // A host's, or a stranger's: what the mote sends makes or ends the context.
            return None;
        }
        if let Some(at) = found {
            let is_mote = self.config.learned && self.config.end == End::Mote;
            let context = self.contexts.get_mut(at)?;
            let is_new = context.u_seq != seg.end() || context.state() == State::Quarantine;
            // A mote's answer to another SYN begins a connection; its host's SYN was plain.
            let begins = opens || is_mote && seg.has(Flags::SYN);
            let reopened = begins && is_new && self.rules.cured(Cure::Poisoning);
            // A SYN that was not this connection's, for that goes on without an answer to it.
            let goes_on = awaits_answer(context, self.rules) && !seg.has(Flags::SYN);
            if !reopened && !goes_on || seg.has(Flags::RST) {
                return Some(at);
            }
            // What it held was of an earlier connection, whether or not there will be another.
            context.set_state(State::Free);
        } else if seg.has(Flags::RST) || seg.has(Flags::SYN) && !opens && !self.config.learned {
            return None;
        }
        if !self.may_begin(flow, now) {
            return None;
        }
        let at = found.or_else(|| self.free_slot(key, now))?;
        if found.is_none() && !opens && self.is_used_plain(at, now) {
            return None;
        }
        let cid = self.choose_cid(key, flow, now)?;
        let remote = self.remote(key);
        let (rules, is_agreed) = (self.rules, self.config.learned);
        let context = self.contexts.get_mut(at)?;
        *context = new_context((key, remote), ports, cid, now);
        if opens {
            context.set_state(State::Offered);
            context.put(bit::OPENER | bit::EDGE, true);
        } else if rules.cured(Cure::Recreated) {
            // The peer may not get the header that creates it (cure 9).
            context.join_late();
        } else {
            context.set_state(State::Active);
            context.put(bit::EDGE, true);
        }
        if is_agreed && !opens {
            context.peer_isn = seg.header.ack.wrapping_sub(1) as u16;
        }
        if let (true, Some(shift)) = (seg.has(Flags::SYN), seg.header.options.window_scale) {
            context.set_shift(shift);
        }
        Some(at)
    }

    /// Whether this end sends compressed headers in this direction at all. Where that is agreed, a
    /// mote does towards the border router that offers to restore them, and what lies beyond.
    pub(super) fn speaks_with(&self, flow: &Flow) -> bool {
        let is_there = |iid| !flow.within_mesh || flow.remote.octets().last_chunk() == Some(iid);
        match self.config.end {
            _ if !self.config.learned => true,
            End::Router => true,
            End::Mote => self.offer.as_ref().is_some_and(is_there),
        }
    }

    /// Whether this end may make a context of its own accord now.
    pub(super) fn may_begin(&self, flow: &Flow, now: Instant) -> bool {
        now >= self.quiet_until.max(self.vain.1) && self.speaks_with(flow) && !self.is_offering()
    }

    /// Offers compression once more in a connection that has gone plain, if that is due; after an
    /// offer in vain under another identifier, since the other end may use the first for another
    /// connection.
    pub(super) fn offer_again(&mut self, at: usize, key: &Key, flow: &Flow, now: Instant) {
        let Some(context) = self.contexts.get(at) else {
            return;
        };
        let agreement = context.agreement;
        if self.config.end == End::Router || !agreement.is_due(now) {
            return;
        }
        // What is on its way under the identifier should still be understood.
        let cid = match agreement.was_refused() {
            true => self.choose_cid(key, flow, now),
            false => Some(context.cid),
        };
        if let Some(cid) = cid
            && let Some(context) = self.contexts.get_mut(at)
        {
            context.cid = cid;
            context.put(bit::UNSURE, true);
            context.agreement.offer_again(now);
        }
    }

    /// The context that an incoming full header with a valid checksum belongs to, made or
    /// moved if need be; `None`: it changes none.
    pub(super) fn context_received(
        &mut self,
        key: &Key,
        cid: u8,
        seg: &Segment,
        now: Instant,
    ) -> Option<usize> {
        let ports = (seg.header.dst_port, seg.header.src_port);
        let found = self.find_ports(key, ports);
        let opens = seg.has(Flags::SYN) && !seg.has(Flags::ACK);
        let cured = self.rules.cured(Cure::Poisoning);
        let is_agreed = self.config.learned;
        if let Some(at) = found {
            let context = self.contexts.get_mut(at)?;
            let is_other = context.peer_isn != seg.seq() as u16;
            let is_other = is_other && seg.has(Flags::SYN) && self.config.end == End::Router;
            // A mote that has restarted names another one; its SYN-ACK may have another number.
            let renamed = is_agreed
                && !context.has(bit::OPENER)
                && (context.cid != cid || is_other && !opens);
            if opens {
                let same = context.peer_isn == seg.seq() as u16 && context.has(bit::R_SEQ);
                let same = same && !renamed;
                if same {
                    context.take_repeated_syn(seg, self.rules);
                    context.agreement.go_compressed();
                }
                // Both opened at once: that stays plain.
                if same || context.has(bit::OPENER) && context.state() == State::Offered {
                    return None;
                }
                if !cured {
                    return Some(at);
                }
            } else if seg.has(Flags::SYN) && !renamed {
                return on_answer(context, cid, seg, self.rules).then_some(at);
            } else if awaits_answer(context, self.rules) {
                return None;
            } else if context.cid == cid && !renamed || seg.has(Flags::RST) {
                return Some(at);
            }
        } else if seg.has(Flags::RST) || seg.has(Flags::SYN) && !opens && !is_agreed {
            return None;
        }
        let at = match found {
            Some(at) => at,
            None => match self.find_cid(key, cid) {
                // The context belongs to another open connection: only a new connection may replace
                // it.
                Some(at) if opens || self.is_over(at) => at,
                Some(_) => return None,
                None => self.free_slot(key, now)?,
            },
        };
        self.make_received(at, (key, ports, cid), seg, now)
    }

    /// Makes the context that an incoming full header names, at slot `at`.
    fn make_received(
        &mut self,
        at: usize,
        (key, ports, cid): (&Key, (u16, u16), u8),
        seg: &Segment,
        now: Instant,
    ) -> Option<usize> {
        let remote = self.remote(key);
        self.contexts.get_mut(at)?.set_state(State::Free);
        // The other end gives each identifier to one connection: an earlier one is dead, and its
        // context would be taken for this one's.
        let earlier = self.find_cid(key, cid);
        if let Some(earlier) = earlier.and_then(|at| self.contexts.get_mut(at)) {
            earlier.set_state(State::Free);
        }
        let context = self.contexts.get_mut(at)?;
        *context = new_context((key, remote), ports, cid, now);
        context.peer_isn = seg.seq() as u16;
        if seg.has(Flags::SYN) && !seg.has(Flags::ACK) {
            context.set_state(State::Offered);
            context.put(bit::EDGE, true);
        } else {
            context.set_state(State::Active);
            context.put_set(Set::Held, WindowSet::Many);
        }
        Some(at)
    }

    fn is_over(&self, at: usize) -> bool {
        self.contexts
            .get(at)
            .is_some_and(|context| context.state() == State::Quarantine)
    }

    /// Whether a connection that is plain for now uses the context. It gives way to a connection
    /// that opens, but not to one that is plain likewise: by turns they would forget how often each
    /// was refused, and use up identifiers.
    fn is_used_plain(&self, at: usize, now: Instant) -> bool {
        self.contexts.get(at).is_some_and(|context| {
            let is_over = matches!(context.state(), State::Free | State::Quarantine);
            !is_over && context.agreement.is_plain() && context.idle_s(now) < EVICT_AFTER_S
        })
    }

    /// A slot for a new connection: free, else the one longest idle of those that may go.
    /// Connections that are over go first; their late segments are then unknown, which costs
    /// a retransmission, and their identifiers rest all the same.
    pub(super) fn free_slot(&self, key: &Key, now: Instant) -> Option<usize> {
        let remote = self.remote(key);
        let mine = |c: &&Context| c.state() != State::Free && c.remote == remote;
        let taken = self.contexts.iter().filter(mine).count();
        let crowded = taken >= usize::from(self.config.contexts_per_remote);
        let rank = |context: &Context| {
            let idle_s = context.idle_s(now);
            match context.state() {
                State::Free if crowded => None,
                State::Free => Some(u32::MAX),
                _ if crowded && context.remote != remote => None,
                State::Quarantine => Some(idle_s.saturating_add(EVICT_OVER_BONUS_S)),
                // It is of no use now; the connection is offered compression again all the same.
                _ if context.agreement.is_plain() => Some(idle_s),
                _ => (idle_s >= EVICT_AFTER_S).then_some(idle_s),
            }
        };
        let ranked = self.contexts.iter().enumerate();
        let ranked = ranked.filter_map(|(at, context)| rank(context).map(|rank| (rank, at)));
        ranked.max_by_key(|(rank, _)| *rank).map(|(_, at)| at)
    }

    /// Whether the next identifier has rested.
    pub(super) fn has_cid(&self, now: Instant) -> bool {
        let quarter = self.quarters.get(usize::from(self.next_cid >> 5));
        let left = quarter.copied().flatten();
        left.is_none_or(|left| now.since(left) >= REUSE_AFTER)
    }

    /// An identifier that was not used between these addresses for [`REUSE_AFTER`]; `None`
    /// when connections come faster than that allows.
    fn choose_cid(&mut self, key: &Key, flow: &Flow, now: Instant) -> Option<u8> {
        let high = match (flow.within_mesh, self.config.end) {
            (true, _) => flow.local > flow.remote,
            (false, end) => end == End::Router,
        };
        for _ in 0..=CID_MASK {
            let low = self.next_cid;
            if !self.has_cid(now) {
                return None;
            }
            self.next_cid = (low + 1) & CID_MASK;
            if self.next_cid & 0x1f == 0
                && let Some(slot) = self.quarters.get_mut(usize::from(low >> 5))
            {
                *slot = Some(now);
            }
            let cid = low | if high { !CID_MASK } else { 0 };
            if self.find_cid(key, cid).is_none() {
                return Some(cid);
            }
        }
        None
    }
}

pub(super) fn hash_of(hash: &KeyedHash, [local, remote]: [Ipv6Addr; 2]) -> u32 {
    hash.hash(&[&halves(local), &halves(remote)]) as u32
}

fn halves(addr: Ipv6Addr) -> [[u8; 8]; 2] {
    let bits = u128::from(addr);
    [
        ((bits >> 64) as u64).to_be_bytes(),
        (bits as u64).to_be_bytes(),
    ]
}

fn new_context((key, remote): (&Key, u16), ports: (u16, u16), cid: u8, now: Instant) -> Context {
    let mut context = Context::EMPTY;
    context.addresses = key.addresses;
    context.remote = remote;
    context.ports = ports;
    context.cid = cid;
    context.touch(now);
    context
}

/// A SYN-ACK came; returns whether it is the first answer to our SYN.
fn on_answer(context: &mut Context, cid: u8, seg: &Segment, rules: Rules) -> bool {
    let first = context.state() == State::Offered && !context.has(bit::ANSWERED);
    if !first || context.cid != cid || !context.has(bit::OPENER) {
        // Our ACK of that SYN may have been lost, so the next header is an MH, with all fields.
        context.put(bit::REFRESH, context.cid == cid);
        if context.cid == cid {
            context.take_repeated_syn(seg, rules);
        }
        return false;
    }
    context.peer_isn = seg.seq() as u16;
    context.put(bit::ANSWERED, true);
    if seg.header.options.window_scale.is_none() {
        context.set_shift(0);
    }
    true
}

/// Idle for this long, a context may be taken away.
const EVICT_AFTER_S: u32 = 60;
/// Contexts of ended connections are reused before idle ones.
const EVICT_OVER_BONUS_S: u32 = 1 << 30;
/// The part of an identifier that counts; the top bit says which end chose.
pub(super) const CID_MASK: u8 = 0x7f;
