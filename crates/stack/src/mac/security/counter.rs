//! This node's frame counters: none is used twice, whatever becomes of its memory.
//!
//! Purpose: two frames of one key with one counter betray both. A counter is used only after a
//! bound above it was stored; a node that starts again begins at the bound. Place:
//! [`super::Security`] takes a counter for each frame that it seals. Left out: storing, which the
//! host does.

use crate::time::{Duration, Instant};

/// The frame counters that a node may use before it asks again. The host stores this before the
/// node sends on, so that it outlives a reboot.
///
/// A node that starts again is given the last one that was stored:
/// [`SecurityConfig::resume`](super::SecurityConfig::resume).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The key sequence that the node has.
    pub sequence: u32,
    /// The first frame counter that it has not used when it starts again.
    pub counter: u32,
}

/// The frame counters that this node may still use under its key.
#[derive(Debug)]
pub(super) struct Counters {
    /// The counter of the next frame.
    next: u32,
    /// The first counter that may not be used, since no reservation covers it.
    bound: u32,
    /// The reservation that the host is to store, and whether [`Self::poll`] has handed it out.
    asked: Option<(Reservation, bool)>,
    /// The sequence of the last reservation that was stored.
    stored_sequence: Option<u32>,
    /// The host could not store the reservation: when to ask it again. The origin: it could.
    failed_until: Instant,
}

impl Counters {
    /// Counters that begin at `first`, of which none is reserved yet.
    pub(super) const fn from(first: u32) -> Self {
        Self {
            next: first,
            bound: first,
            asked: None,
            stored_sequence: None,
            failed_until: Instant::ORIGIN,
        }
    }

    /// A counter that was never used; `None` where none is stored.
    pub(super) fn take(&mut self) -> Option<u32> {
        let counter = (self.next < self.bound).then_some(self.next)?;
        self.next = counter.saturating_add(1);
        Some(counter)
    }

    /// The next one, whether it may be used or not.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Whether frames wait until the host has stored the next ones; once it could not, they do not
    /// wait, but fail.
    pub(super) fn is_waiting(&self) -> bool {
        self.next >= self.bound && self.next != u32::MAX && self.deadline().is_none()
    }

    /// Whether no counter is left that may be used now.
    pub(super) const fn is_used_up(&self) -> bool {
        self.next >= self.bound
    }

    /// Whether half of the counters are used, so that a new key is due.
    pub(super) const fn is_half_used(&self) -> bool {
        self.next >= HALF
    }

    /// Begins with the first one again, for a new key.
    pub(super) const fn restart(&mut self) {
        *self = Self::from(0);
    }

    /// The reservation that the host shall store, each once.
    pub(super) fn poll(&mut self, sequence: u32, now: Instant) -> Option<Reservation> {
        self.retry(now);
        if self.deadline().is_some() {
            return None;
        }
        let left = self.bound - self.next;
        let needs = left < RESERVED / 2 && self.bound != u32::MAX;
        let is_asked = matches!(self.asked, Some((asked, _)) if asked.sequence == sequence);
        if !is_asked && (needs || self.stored_sequence != Some(sequence)) {
            let counter = match needs {
                true => self.next.saturating_add(RESERVED),
                false => self.bound,
            };
            self.asked = Some((Reservation { sequence, counter }, false));
        }
        let (asked, is_told) = self.asked.as_mut()?;
        let told = core::mem::replace(is_told, true);
        (!told).then_some(*asked)
    }

    /// If it is time to ask the host again, frames wait for its answer from now on.
    pub(super) fn retry(&mut self, now: Instant) {
        if now >= self.failed_until {
            self.failed_until = Instant::ORIGIN;
        }
    }

    /// When to ask the host again for a reservation that it could not store.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.failed_until.if_any()
    }

    /// The host has stored the reservation, or could not. An answer to an older question changes
    /// nothing.
    pub(super) fn on_stored(&mut self, reservation: Reservation, is_stored: bool, now: Instant) {
        if !matches!(self.asked, Some((asked, _)) if asked == reservation) {
            return;
        }
        self.asked = None;
        match is_stored {
            true => {
                self.bound = self.bound.max(reservation.counter);
                self.stored_sequence = Some(reservation.sequence);
                self.failed_until = Instant::ORIGIN;
            }
            false => self.failed_until = now + RETRY,
        }
    }
}

/// Counters reserved at one time. The next ones are asked for when half of them are left, so a page
/// of flash that stands 10,000 writes lasts for 41 million frames, 1.3 years at one a second.
const RESERVED: u32 = 8_192;

/// The counter at which a border router takes a new key.
const HALF: u32 = 1 << 31;

/// Until the host is asked again that could not store.
const RETRY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_micros(1_000_000);

    fn stored(counters: &mut Counters) -> Reservation {
        let asked = counters.poll(5, NOW).expect("asks");
        assert_eq!(counters.poll(5, NOW), None, "asks once");
        counters.on_stored(asked, true, NOW);
        asked
    }

    #[test]
    fn no_counter_is_used_that_was_not_stored() {
        let mut counters = Counters::from(100);
        assert!(counters.is_waiting());
        assert_eq!(counters.take(), None);
        assert_eq!(stored(&mut counters).counter, 100 + RESERVED);
        for counter in 100..100 + RESERVED / 2 {
            assert_eq!(counters.poll(5, NOW), None, "half are left");
            assert_eq!(counters.take(), Some(counter));
        }
        counters.take();
        // Asked for in time; the old bound holds until they are stored.
        let asked = counters.poll(5, NOW).expect("asks");
        assert_eq!(
            core::iter::from_fn(|| counters.take()).last(),
            Some(100 + RESERVED - 1)
        );
        assert!(counters.is_waiting());
        counters.on_stored(asked, true, NOW);
        assert_eq!(counters.take(), Some(100 + RESERVED));
    }

    #[test]
    fn a_storage_that_fails_stops_the_node_until_it_works() {
        let mut counters = Counters::from(0);
        let asked = counters.poll(5, NOW).expect("asks");
        counters.on_stored(asked, false, NOW);
        assert!(!counters.is_waiting(), "frames fail");
        assert_eq!((counters.take(), counters.poll(5, NOW)), (None, None));
        let later = counters.deadline().expect("asks again");
        let again = counters.poll(5, later).expect("asks again");
        assert_eq!(again, asked);
        counters.on_stored(again, true, later);
        assert_eq!(counters.take(), Some(0));
    }

    #[test]
    fn a_late_answer_stores_nothing_of_another_key() {
        let mut counters = Counters::from(HALF);
        let old = counters.poll(5, NOW).expect("asks");
        counters.restart();
        let new = counters.poll(6, NOW).expect("asks for the new key");
        counters.on_stored(old, true, NOW);
        assert_eq!(counters.take(), None);
        counters.on_stored(new, true, NOW);
        assert_eq!(counters.take(), Some(0));
    }

    #[test]
    fn the_last_counter_is_never_used() {
        let mut counters = Counters::from(u32::MAX - 2);
        assert!(counters.is_half_used());
        stored(&mut counters);
        assert_eq!(counters.take(), Some(u32::MAX - 2));
        assert_eq!(counters.take(), Some(u32::MAX - 1));
        assert_eq!((counters.take(), counters.is_waiting()), (None, false));
    }
}
