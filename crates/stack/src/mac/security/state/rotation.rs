//! The change from one key to the next.
//!
//! In a build without the feature `rotation` a node keeps the link key that it begins with, and
//! knows no other.

use super::super::keys::sequence_of;
use super::{Keyed, NetworkKey, Previous, Security};
use crate::time::{Allowance, Duration, Instant};

impl Security<'_> {
    /// Takes a later key, which valid frames then carry to the others. An earlier sequence changes
    /// nothing; in a build without the feature `rotation` a later one does not, either.
    pub fn rotate(&mut self, sequence: u32, now: Instant) {
        if !ROTATES || sequence <= self.sequence {
            return;
        }
        let former = self.network.link_key(self.sequence);
        let network = self.network_of(sequence);
        // Another network key shuts a revoked node out, which knows the former one: that ends soon.
        let guard_time = match network == self.network {
            true => self.guard_time,
            false => self.guard_time.min(REVOKED_GUARD_TIME),
        };
        self.previous = Some(Previous {
            sequence: self.sequence,
            key: former,
            until: now + guard_time,
        });
        self.network = network;
        self.sequence = sequence;
        self.since = Some(now);
        self.keyed = Keyed::new(self.engine, &network.link_key(sequence));
        self.ahead.forget();
        self.next_link_key = None;
        let counters = &mut self.counters;
        counters.keys_made = counters.keys_made.wrapping_add(2);
        counters.rotations = counters.rotations.wrapping_add(1);
        // Counters go on: whatever was stored last, none comes back. Only where they would not last
        // do they begin anew, and wait until that is stored.
        if self.own.is_half_used() {
            self.own.restart();
        }
    }

    /// Takes the next key where that is due, and asks for counters again that could not be stored.
    pub(in crate::mac) fn rotate_if_due(&mut self, now: Instant) {
        if self.is_locked() {
            return;
        }
        self.own.retry(now);
        if !ROTATES {
            return;
        }
        let since = *self.since.get_or_insert(now);
        let Some(after) = self.rotates_after else {
            return;
        };
        if (now.since(since) >= after || self.own.is_half_used())
            && let Some(next) = self.sequence.checked_add(1)
        {
            self.rotate(next, now);
        }
    }

    /// When [`Self::rotate_if_due`] or [`Self::poll_reservation`] has something to do.
    pub(in crate::mac) fn deadline(&self) -> Option<Instant> {
        let rotates_at = self.since.zip(self.rotates_after).filter(|_| ROTATES);
        let rotates_at = rotates_at.map(|(since, after)| since + after);
        crate::time::earliest(rotates_at, self.own.deadline())
    }

    /// Whether to remind the sender of a frame with this key index, which names an earlier key. The
    /// sender has missed a rotation; any frame sealed with the key in force makes it follow. The
    /// frame is refused unopened, so it may be forged: hence the limit, of which strangers leave a
    /// part to neighbours that are known.
    pub(in crate::mac) fn reminds(&mut self, source: [u8; 8], index: u8, now: Instant) -> bool {
        if !ROTATES {
            return false;
        }
        let named = sequence_of(index, self.sequence);
        let is_earlier = !self.is_child() && named.is_some_and(|it| it < self.sequence);
        let may_remind = match self.peers.find(source).is_some() {
            true => self.reminders.allows(now),
            false => self.reminders.is_full(now),
        };
        let reminds = is_earlier && may_remind && self.reminders.take(now);
        let count = &mut self.counters.reminders;
        *count = count.wrapping_add(u32::from(reminds));
        reminds
    }

    /// The network key that the link key of this sequence follows from.
    pub(super) const fn network_of(&self, sequence: u32) -> NetworkKey {
        #[cfg(feature = "join")]
        if let Some((network, first)) = self.next
            && sequence >= first
        {
            return network;
        }
        let _ = sequence;
        self.network
    }
}

/// Whether keys follow one another in this build.
pub(super) const ROTATES: bool = cfg!(feature = "rotation");

/// Reminders sent at once, and milliseconds for each more.
pub(super) const REMINDERS: Allowance = Allowance::new(2, 1_000);

/// How long the former link key stays valid once the network has another key. All nodes know that
/// key by then, and go over with the first frame that they hear.
const REVOKED_GUARD_TIME: Duration = Duration::from_secs(60);
