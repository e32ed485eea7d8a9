//! Whole packets waiting, first in first out, in one ring of borrowed bytes.
//!
//! Place: behind a router's interfaces, where packets of very different lengths wait; they share
//! memory by the byte. By itself it is a drop-tail queue; other policies are outside, and use
//! [`PacketQueue::len`].

use super::ring::Ring;

/// Packets in order, each with a word of its owner's.
#[derive(Debug)]
pub(crate) struct PacketQueue<'m> {
    ring: Ring<'m>,
    count: u16,
}

/// The packet at the front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Front {
    /// Length of the packet, bytes.
    pub len: usize,
    /// The word given to [`PacketQueue::push`] with this packet.
    pub meta: u32,
}

impl<'m> PacketQueue<'m> {
    /// An empty queue over `bytes`, of which the first 65,535 are used. Each packet takes
    /// its length and [`RECORD_OVERHEAD`].
    pub(crate) fn new(bytes: &'m mut [u8]) -> Self {
        Self {
            ring: Ring::new(bytes),
            count: 0,
        }
    }

    /// Gives back the memory that [`Self::new`] was given.
    pub(crate) fn into_memory(self) -> &'m mut [u8] {
        self.ring.into_memory()
    }

    /// Appends a packet, whole or not at all. `meta`: whatever the owner wants back with it.
    /// Returns whether it fitted.
    pub(crate) fn push(&mut self, packet: &[u8], meta: u32) -> bool {
        self.push_parts([packet, &[]], meta)
    }

    /// As [`Self::push`] for a packet that lies in two pieces: a new header and what it
    /// stands before.
    pub(crate) fn push_parts(&mut self, parts: [&[u8]; 2], meta: u32) -> bool {
        let [head, tail] = parts;
        let total = head.len().saturating_add(tail.len());
        let Ok(len) = u16::try_from(total) else {
            return false;
        };
        if total + RECORD_OVERHEAD > usize::from(self.ring.room()) {
            return false;
        }
        self.ring.push(&len.to_be_bytes());
        self.ring.push(&meta.to_be_bytes());
        self.ring.push(head);
        self.ring.push(tail);
        self.count = self.count.saturating_add(1);
        true
    }

    /// Bytes that are free, for packets and [`RECORD_OVERHEAD`] of each.
    #[cfg(any(feature = "fragments", feature = "inbox", test))]
    pub(crate) fn room(&self) -> usize {
        usize::from(self.ring.room())
    }

    /// Whether there is room for `packets` more packets of `bytes` bytes in all.
    #[cfg(feature = "fragments")]
    pub(crate) fn has_room(&self, packets: usize, bytes: usize) -> bool {
        len_of(packets, bytes) <= self.room()
    }

    /// Whether `packets` packets of `bytes` bytes in all fit an empty queue.
    pub(crate) fn may_hold(&self, packets: usize, bytes: usize) -> bool {
        len_of(packets, bytes) <= usize::from(self.ring.capacity())
    }

    /// The oldest packet's length and word.
    pub(crate) fn front(&self) -> Option<Front> {
        // Most polls find nothing, and need not read the ring for that.
        if self.is_empty() {
            return None;
        }
        self.front_at(0)
    }

    fn front_at(&self, at: u16) -> Option<Front> {
        let mut record = [0; RECORD_OVERHEAD];
        if self.ring.peek(at, &mut record) < RECORD_OVERHEAD {
            return None;
        }
        let [len_high, len_low, meta @ ..] = record;
        Some(Front {
            len: usize::from(u16::from_be_bytes([len_high, len_low])),
            meta: u32::from_be_bytes(meta),
        })
    }

    /// Every packet's length and word, the oldest first.
    #[cfg(any(feature = "inbox", test))]
    pub(crate) fn packets(&self) -> impl Iterator<Item = Front> {
        let mut at = 0u16;
        (0..self.count).map_while(move |_| {
            let front = self.front_at(at)?;
            at = at.saturating_add((RECORD_OVERHEAD + front.len) as u16);
            Some(front)
        })
    }

    /// Copies the oldest packet, as much of it as `out` holds; returns how much.
    pub(crate) fn peek(&self, out: &mut [u8]) -> usize {
        let len = self.front().map_or(0, |front| front.len).min(out.len());
        let out = out.get_mut(..len).unwrap_or_default();
        self.ring.peek(RECORD_OVERHEAD as u16, out)
    }

    /// The oldest packet, in two pieces where it lies at both ends of the memory.
    #[cfg(feature = "ble")]
    pub(crate) fn front_parts(&self) -> [&[u8]; 2] {
        let len = self.front().map_or(0, |front| front.len);
        self.ring.parts(RECORD_OVERHEAD as u16, len as u16)
    }

    /// Removes the oldest packet; false when there is none.
    pub(crate) fn pop(&mut self) -> bool {
        let Some(front) = self.front() else {
            return false;
        };
        self.ring.consume((RECORD_OVERHEAD + front.len) as u16);
        self.count = self.count.saturating_sub(1);
        true
    }

    /// How many packets are queued.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether no packet is queued.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Bytes in front of each packet: its length and word.
pub(crate) const RECORD_OVERHEAD: usize = 6;

/// Memory that `packets` packets of `bytes` bytes in all take, overheads included; bytes.
const fn len_of(packets: usize, bytes: usize) -> usize {
    packets
        .saturating_mul(RECORD_OVERHEAD)
        .saturating_add(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn is_a_bounded_queue(
            capacity in 0usize..200,
            steps in prop::collection::vec(prop::option::of((0usize..80, any::<u32>())), 0..100),
        ) {
            let mut memory = std::vec![0; capacity];
            let mut queue = PacketQueue::new(&mut memory);
            let mut model: VecDeque<(Vec<u8>, u32)> = VecDeque::new();
            for step in steps {
                let used: usize = model.iter().map(|(packet, _)| packet.len() + 6).sum();
                match step {
                    Some((len, meta)) => {
                        let packet: Vec<u8> = (0..len).map(|i| (meta as usize + i) as u8).collect();
                        let fits = used + len + 6 <= capacity;
                        prop_assert_eq!(queue.push(&packet, meta), fits);
                        if fits {
                            model.push_back((packet, meta));
                        }
                    }
                    None => prop_assert_eq!(queue.pop(), model.pop_front().is_some()),
                }
                let front = model.front().map(|(packet, meta)| Front { len: packet.len(), meta: *meta });
                prop_assert_eq!(queue.front(), front);
                let mut out = [0; 100];
                let len = queue.peek(&mut out);
                prop_assert_eq!(&out[..len], model.front().map_or(&[][..], |(packet, _)| packet));
                #[cfg(feature = "ble")]
                prop_assert_eq!(queue.front_parts().concat(), model.front().map_or(std::vec![], |(packet, _)| packet.clone()));
                let fronts = model.iter().map(|(packet, meta)| Front { len: packet.len(), meta: *meta });
                prop_assert!(queue.packets().eq(fronts));
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn what_cannot_fit_is_refused() {
        let mut memory = std::vec![0; 70_000];
        let mut queue = PacketQueue::new(&mut memory);
        let packet = std::vec![1; 70_000];
        assert!(!queue.push(&packet, 0));
        assert!(!queue.push(&packet[..65_530], 0));
        assert!(queue.push(&packet[..65_529], 7));
        assert!(!queue.push(&[], 0));
        let mut short = [0; 4];
        assert_eq!(queue.peek(&mut short), 4);
        assert!(queue.pop() && !queue.pop());
    }
}
