//! Packets that go no further than to the neighbour that takes them.
//!
//! Purpose: a source waits until a relay has passed a frame on ([`pace`](super::pace)). A frame for
//! the relay itself is not passed on, so the next one may follow at once. Memory: the packets whose
//! frames wait in the MAC are few; of older ones nobody asks.

/// The newest packets that go no further, by their tags.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastHops([Option<u16>; PACKETS]);

impl LastHops {
    pub(super) fn note(&mut self, tag: u16) {
        self.0.rotate_right(1);
        if let Some(newest) = self.0.first_mut() {
            *newest = Some(tag);
        }
    }

    pub(super) fn has(&self, tag: u16) -> bool {
        self.0.contains(&Some(tag))
    }
}

/// As many as a MAC's queue usually has frames.
const PACKETS: usize = 8;
