//! Packets that go no further than to the neighbour that takes them.
//!
//! Purpose: a source waits until a relay has passed a frame on ([`pace`](super::pace)). A frame for
//! the relay itself is not passed on, so the next one may follow at once. Memory: the packets whose
//! frames wait in the MAC are few; of older ones nobody asks.

/// The newest packets that go no further, by their tags, and whether each is of neighbour discovery
/// or routing, which is no flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastHops([Option<(u16, bool)>; PACKETS]);

impl LastHops {
    pub(super) fn note(&mut self, tag: u16, is_control: bool) {
        self.0.rotate_right(1);
        if let Some(newest) = self.0.first_mut() {
            *newest = Some((tag, is_control));
        }
    }

    /// Whether the packet of this tag is a control message; `None`: it goes further.
    pub(super) fn of(&self, tag: u16) -> Option<bool> {
        let mut kept = self.0.iter().flatten();
        kept.find(|(other, _)| *other == tag)
            .map(|(_, is_control)| *is_control)
    }
}

/// As many as a MAC's queue usually has frames.
const PACKETS: usize = 8;
