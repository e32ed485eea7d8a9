//! The neighbours that have shown that they have the key, and the last frame counter of each.
//!
//! Purpose: a counter that is not above the last one is of a recording. An entry is made only of a
//! frame that answers a fresh challenge, so that neither recordings nor forgeries open or push out
//! any.
//! Place: [`super::Security`] asks it before the cipher runs, and tells it after the MIC was right.
//! Left out: challenges, which are in [`super::proof`].

#[cfg(feature = "cit")]
mod muting;
#[cfg(not(feature = "cit"))]
#[path = "peers/muting_absent.rs"]
mod muting;

use muting::Muting;

use crate::mac::counters::FrameDrop;
use crate::storage::least;
use crate::time::{Duration, Instant};

/// A neighbour with the key, borrowed from the caller; [`Peer::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct Peer {
    addr: [u8; 8],
    is_known: bool,
    /// Whether the neighbour is a parent or child: its entry is never replaced.
    is_kin: bool,
    /// The key sequence of its last frame, and the first counter that is new.
    sequence: u32,
    next: u32,
    /// When the last believed frame came, in ticks.
    believed_at: u32,
    /// Whether its heads fire nothing.
    muting: Muting,
}

impl Peer {
    /// An empty slot: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        addr: [0; 8],
        is_known: false,
        is_kin: false,
        sequence: 0,
        next: 0,
        believed_at: 0,
        muting: Muting::NONE,
    };

    /// Key sequence of the last frame that was believed of this neighbour, and the counter behind
    /// that frame's.
    pub(super) const fn next(&self) -> (u32, u32) {
        (self.sequence, self.next)
    }

    /// Whether a frame with this counter would be new.
    pub(super) fn admits(&self, sequence: u32, counter: u32) -> Result<(), FrameDrop> {
        match (sequence, counter) {
            numbers if numbers >= self.next() => Ok(()),
            _ if self.next() == (sequence, counter.saturating_add(1)) => Err(FrameDrop::Duplicate),
            _ => Err(FrameDrop::Replayed),
        }
    }

    /// Notes a forgery in this neighbour's name: its heads are not trusted for a while.
    pub(super) fn mute(&mut self, now: Instant) {
        self.muting.begin(ticks(now));
    }

    /// Whether the heads of this neighbour's frames fire frames that wait for them.
    #[cfg(feature = "cit")]
    pub(super) fn fires(&self, now: Instant) -> bool {
        self.muting.is_over(ticks(now))
    }
}

/// The table of neighbours with the key, in borrowed memory.
#[derive(Debug)]
pub(super) struct Peers<'m>(&'m mut [Peer]);

impl<'m> Peers<'m> {
    pub(super) fn new(table: &'m mut [Peer]) -> Self {
        table.fill(Peer::EMPTY);
        Self(table)
    }

    pub(super) fn into_memory(self) -> &'m mut [Peer] {
        self.0
    }

    pub(super) fn find(&self, addr: [u8; 8]) -> Option<&Peer> {
        self.0
            .iter()
            .find(|peer| peer.is_known && peer.addr == addr)
    }

    pub(super) fn find_mut(&mut self, addr: [u8; 8]) -> Option<&mut Peer> {
        let mut known = self.0.iter_mut();
        known.find(|peer| peer.is_known && peer.addr == addr)
    }

    /// The address of each, and its last frame counter.
    pub(super) fn counters(&self) -> impl Iterator<Item = ([u8; 8], u32)> {
        let known = self.0.iter().filter(|peer| peer.is_known);
        known.map(|peer| (peer.addr, peer.next.saturating_sub(1)))
    }

    /// Whether one more neighbour finds room without pushing another out.
    pub(super) fn has_room(&self) -> bool {
        self.0.iter().any(|peer| !peer.is_known)
    }

    /// Takes over the counter of an authentic frame of `addr`; false where it has no entry.
    pub(super) fn believe(
        &mut self,
        addr: [u8; 8],
        (sequence, counter): (u32, u32),
        now: Instant,
    ) -> bool {
        let Some(peer) = self.find_mut(addr) else {
            return false;
        };
        (peer.sequence, peer.next) = (sequence, counter.saturating_add(1));
        peer.believed_at = ticks(now);
        true
    }

    /// Makes an entry, instead of the one longest silent where there is no room; false where all
    /// are of parents and children.
    pub(super) fn insert(
        &mut self,
        addr: [u8; 8],
        (sequence, counter): (u32, u32),
        is_kin: bool,
        now: Instant,
    ) -> bool {
        let now = ticks(now);
        let rank = |peer: &Peer| {
            let age = now.wrapping_sub(peer.believed_at);
            u64::from(peer.is_known) << 32 | u64::from(!age)
        };
        let ranks = self.0.iter();
        let ranks = ranks.map(|peer| (!peer.is_kin).then(|| rank(peer)));
        let Some(peer) = least(ranks).and_then(|index| self.0.get_mut(index)) else {
            return false;
        };
        *peer = Peer {
            addr,
            is_known: true,
            is_kin,
            sequence,
            next: counter.saturating_add(1),
            believed_at: now,
            ..Peer::EMPTY
        };
        true
    }

    /// Makes an entry of a neighbour that has shown by other means that it has the key. `next`: its
    /// key sequence, and its first counter that is new.
    #[cfg(feature = "thread")]
    pub(super) fn bind(&mut self, addr: [u8; 8], next: (u32, u32), now: Instant) {
        if let Some(former) = self.find_mut(addr) {
            *former = Peer::EMPTY;
        }
        if self.insert(addr, next, false, now)
            && let Some(peer) = self.find_mut(addr)
        {
            (_, peer.next) = next;
        }
    }

    /// How many neighbours there is room for.
    #[cfg(feature = "thread")]
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all neighbours but these.
    #[cfg(feature = "thread")]
    pub(super) fn retain(&mut self, is_kept: impl Fn([u8; 8]) -> bool) {
        let others = self.0.iter_mut().filter(|peer| !is_kept(peer.addr));
        others.for_each(|peer| *peer = Peer::EMPTY);
    }

    /// Sets anew which entries are never replaced.
    pub(super) fn keep(&mut self, is_kin: impl Fn([u8; 8]) -> bool) {
        for peer in self.0.iter_mut().filter(|peer| peer.is_known) {
            peer.is_kin = is_kin(peer.addr);
        }
    }

    /// Since when this neighbour has sent nothing authentic; `None` where it has no entry.
    pub(super) fn silence(&self, addr: [u8; 8], now: Instant) -> Option<Duration> {
        let peer = self.find(addr)?;
        let past = ticks(now).wrapping_sub(peer.believed_at);
        Some(Duration::from_micros(u64::from(past) << TICK_SHIFT))
    }
}

/// Ticks since the origin, modulo 2^32: 50 days.
const fn ticks(now: Instant) -> u32 {
    (now.as_micros() >> TICK_SHIFT) as u32
}

/// A tick is 1,024 µs: a division by 1,000 takes 900 bytes of a processor that has none.
const TICK_SHIFT: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// The instant `ms` milliseconds after the origin.
    fn after(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    #[test]
    fn a_counter_must_be_above_the_last_of_its_key_or_of_a_later_key() {
        let peer = Peer {
            sequence: 5,
            next: 10,
            ..Peer::EMPTY
        };
        for (numbers, expected) in [
            ((5, 10), Ok(())),
            ((6, 0), Ok(())),
            ((5, 9), Err(FrameDrop::Duplicate)),
            ((5, 8), Err(FrameDrop::Replayed)),
            ((4, 100), Err(FrameDrop::Replayed)),
        ] {
            assert_eq!(peer.admits(numbers.0, numbers.1), expected, "{numbers:?}");
        }
    }

    #[cfg(feature = "cit")]
    #[test]
    fn forgeries_mute_a_neighbour_for_longer_each_time_up_to_a_minute() {
        let mut peer = Peer::EMPTY;
        assert!(peer.fires(after(0)));
        let mut at_ms = 100_000;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            peer.mute(after(at_ms));
            // One that comes meanwhile prolongs nothing.
            peer.mute(after(at_ms + seconds * 500));
            assert!(
                !peer.fires(after(at_ms + seconds * 1_000 - 5)),
                "{seconds} s"
            );
            at_ms += seconds * 1_000 + 20;
            assert!(peer.fires(after(at_ms)), "{seconds} s");
        }
        // That ends a minute after the last of these times.
        at_ms += 55_000;
        peer.mute(after(at_ms));
        assert!(!peer.fires(after(at_ms + 59_000)));
        at_ms += 125_000;
        peer.mute(after(at_ms));
        assert!(!peer.fires(after(at_ms + 990)) && peer.fires(after(at_ms + 1_005)));
    }

    #[test]
    fn a_full_table_takes_the_entry_that_was_silent_for_longest() {
        let mut table = [Peer::EMPTY; 2];
        let mut peers = Peers::new(&mut table);
        for n in [1, 2] {
            assert!(peers.has_room());
            assert!(peers.insert([n; 8], (5, 0), false, after(100 * u64::from(n))));
        }
        assert!(!peers.has_room());
        assert!(peers.believe([1; 8], (5, 1), after(300)));
        assert!(peers.insert([3; 8], (5, 0), false, after(400)));
        assert!(peers.find([1; 8]).is_some() && peers.find([2; 8]).is_none());
        assert_eq!(peers.find([1; 8]).map(Peer::next), Some((5, 2)));
        // All are of parents and children.
        peers.keep(|_| true);
        assert!(!peers.insert([4; 8], (5, 0), false, after(500)));
        assert!(!peers.believe([4; 8], (5, 0), after(500)));
    }
}
