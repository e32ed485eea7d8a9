//! The memory of a parent that its children share: which packets are kept, and which are dropped
//! for want of room.
//!
//! A child may use what the others leave. When room is needed, the oldest packet of the child with
//! the most bytes is dropped first. So a child that does not poll any more leaves each other child
//! its share, however much is sent to it. Children that are overdue, because they have been silent
//! for longer than ever before, count together as one child, and their bytes count
//! [`OVERDUE_WEIGHT`] times, except the first [`OVERDUE_FREE`] of each. A packet whose delivery is
//! under way is never dropped. Of several copies of a TCP segment only one is kept, at the position
//! of the first: the newest, unless segments of the same connection follow; see
//! [`copies`](super::copies).
//!
//! Place: part of [`Indirect`]; `divert` passes packets to it.
//! Left out: the order in which children are served, which follows from their polls.

use super::copies::copied;
use super::parent::Child;
use super::{Indirect, PacketMeta, link_addr};
use crate::ip;
use crate::limits::IPV6_MTU_MIN;
use crate::link::arrival::TcpEgress;
use crate::lowpan::TcpForm;
use crate::storage::keyed_queues::OVERHEAD;
use crate::time::Instant;
use crate::wire::tcphc;

impl Indirect<'_> {
    /// Whether a packet of 1,280 bytes to this neighbour would be kept without dropping another
    /// packet of the same child; true for a neighbour that is no child. Required for segments of
    /// this node's TCP, which counts them as sent.
    pub(super) fn has_room(&self, to: ip::Neighbour) -> bool {
        let key = link_addr(to).and_then(|addr| self.find(&addr));
        key.is_none_or(|key| {
            let (bytes_max, total) = (self.config.child_bytes_max, IPV6_MTU_MIN + OVERHEAD);
            let own = self.queues.bytes_for(key);
            let with = own.saturating_add(total);
            let is_allowed = own == 0 || with <= bytes_max;
            let others = self
                .keys()
                .filter(|other| *other != key && self.goes_first(*other).is_some());
            let fullest = others.map(|other| self.queues.bytes_for(other)).max();
            self.queues.has_room(key, IPV6_MTU_MIN, bytes_max)
                || (is_allowed && fullest.is_some_and(|fullest| own == 0 || fullest > with))
        })
    }

    /// Keeps a packet for a child, in the place of an older copy or behind all that wait for it.
    /// Returns whether it was kept. A build without the feature `copies` keeps each copy.
    pub(super) fn keep(&mut self, key: u8, packet: &[u8], meta: PacketMeta, now: Instant) -> bool {
        (cfg!(feature = "copies") && self.merge(key, packet, meta, now)) || {
            self.make_room(key, packet.len(), now);
            let bytes_max = self.config.child_bytes_max;
            let kept = self.queues.push(key, packet, meta.to_bits(), bytes_max);
            let count = match kept {
                true => &mut self.counters.kept,
                false => &mut self.counters.full,
            };
            *count = count.wrapping_add(1);
            kept
        }
    }

    /// Replaces a waiting packet by `packet` if that is a newer copy of it, or leaves the older one
    /// where later segments of the connection wait behind it; returns whether one of both is kept.
    fn merge(&mut self, key: u8, packet: &[u8], meta: PacketMeta, now: Instant) -> bool {
        if meta.egress == TcpEgress::As(TcpForm::Compressed) {
            return false;
        }
        let is_begun = self.serving == Some(key) || self.has_part(key, now);
        let begun = usize::from(is_begun);
        let older = self.queues.packets(key).enumerate().map(|(nth, kept)| {
            let goes_as = PacketMeta::from_bits(kept.meta).goes_as(meta);
            (nth >= begun && goes_as, kept.packet)
        });
        let Some((nth, goes_on)) = copied(packet, older) else {
            return false;
        };
        // Headers compressed by the context that the older packet sets follow it.
        let is_compressed = |bits| {
            let egress = PacketMeta::from_bits(bits).egress;
            tcphc::IS_SUPPORTED && egress == TcpEgress::As(TcpForm::Compressed)
        };
        let is_followed = self
            .queues
            .packets(key)
            .skip(nth)
            .any(|kept| is_compressed(kept.meta));
        if is_followed {
            return false;
        }
        // What the sender has sent since then would be older than what goes before it.
        if goes_on {
            self.counters.merged = self.counters.merged.wrapping_add(1);
            return true;
        }
        if nth == 0 {
            self.forget_delivery(key);
        }
        let bytes_max = self.config.child_bytes_max;
        let place = (key, nth);
        let is_put = self
            .queues
            .replace(place, packet, meta.to_bits(), bytes_max);
        match is_put {
            true => self.counters.merged = self.counters.merged.wrapping_add(1),
            // It is longer, and has to stand behind the others.
            false => self.drop_nth(key, nth),
        }
        is_put
    }

    /// The packet for a child behind `nth` others goes nowhere.
    pub(super) fn drop_nth(&mut self, key: u8, nth: usize) {
        self.queues.remove(key, nth);
        if nth == 0 {
            self.forget_delivery(key);
        }
        self.counters.dropped = self.counters.dropped.wrapping_add(1);
    }

    /// Forgets the attempts at the first packet for a child: they say nothing of the next one.
    pub(super) fn forget_delivery(&mut self, key: u8) {
        if let Some(child) = self.child(key) {
            let _ = child.take_halt();
            child.failures = 0;
        }
    }

    /// Drops what has to go for a packet of `len` bytes for a child, where that makes room for it.
    fn make_room(&mut self, key: u8, len: usize, now: Instant) {
        let (bytes_max, total) = (self.config.child_bytes_max, len.saturating_add(OVERHEAD));
        if total > bytes_max.min(self.queues.capacity()) {
            return;
        }
        loop {
            let own = self.queues.bytes_for(key).saturating_add(total);
            let victim = if own > bytes_max {
                key
            } else if self.queues.room() < total {
                self.fullest(key, total, now)
            } else {
                return;
            };
            let Some(nth) = self.goes_first(victim) else {
                return;
            };
            self.drop_nth(victim, nth);
        }
    }

    /// The child whose packets take most memory once `total` more bytes wait for the child `key`:
    /// that child itself, if others have as much. If all overdue children together have too much,
    /// the fullest of them.
    ///
    /// A child `key` that is overdue, and of which no packet can be dropped, takes no room from
    /// others. A child that is not overdue has room for one packet.
    fn fullest(&self, key: u8, total: usize, now: Instant) -> u8 {
        let others = self.keys().filter(|other| *other != key);
        let (mut present, mut overdue, mut all_overdue) = ((key, 0), (key, 0), 0_usize);
        for child in core::iter::once(key).chain(others) {
            let is_overdue = self.is_overdue(child, now);
            let is_own = child == key;
            if self.goes_first(child).is_none() && !(is_own && is_overdue) {
                continue;
            }
            let more = if is_own { total } else { 0 };
            let bytes = self.queues.bytes_for(child).saturating_add(more);
            let fullest = match is_overdue {
                true => &mut overdue,
                false => &mut present,
            };
            if bytes > fullest.1 {
                *fullest = (child, bytes);
            }
            if is_overdue {
                all_overdue = all_overdue.saturating_add(bytes.saturating_sub(OVERDUE_FREE));
            }
        }
        let is_too_much = all_overdue.saturating_mul(OVERDUE_WEIGHT) > present.1;
        match is_too_much || present.1 == 0 {
            true => overdue.0,
            false => present.0,
        }
    }

    /// The place of the first packet for a child that may be dropped: behind the packet whose
    /// delivery is under way.
    fn goes_first(&self, key: u8) -> Option<usize> {
        let begun = usize::from(self.serving == Some(key));
        (self.queues.count(key) > begun).then_some(begun)
    }

    fn is_overdue(&self, key: u8, now: Instant) -> bool {
        let child = self.children.get(usize::from(key));
        let timeout = self.config.child_timeout;
        child.is_some_and(|child| child.is_overdue(timeout, now))
    }

    /// Whether the child has acknowledged a part of its first packet, and still has that part.
    fn has_part(&self, key: u8, now: Instant) -> bool {
        let child = self.children.get(usize::from(key));
        let halt = child.and_then(Child::halted);
        halt.is_some_and(|halt| halt.taken > 0 && halt.is_recent(now))
    }
}

/// Bytes of an overdue child that count for nothing: a SYN, since the child may have begun to rest
/// for longer than before.
const OVERDUE_FREE: usize = 128;

/// How many times the further bytes of overdue children count: almost no air is left to them if
/// others need it.
const OVERDUE_WEIGHT: usize = 64;

#[cfg(test)]
#[path = "tests/share.rs"]
mod tests;
