//! Queues of whole packets, one for each key, in one piece of borrowed bytes.
//!
//! Place: behind a parent's link, where packets wait for children that sleep, and where packets
//! enter a mesh, flow by flow. Each key has its packets in order. Removing a packet moves the
//! packets behind it together, so that no gap is ever left. Left out: the receivers or flows, of
//! which only the numbers, the keys, are known here.

use crate::wire::cursor::copy;

/// Queued packets, each with its key and a word (`meta`) of its owner's.
#[derive(Debug)]
pub(crate) struct KeyedQueues<'m> {
    bytes: &'m mut [u8],
    used: usize,
}

/// A packet in one of the queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueuedPacket<'a> {
    /// The word given to [`KeyedQueues::push`] with this packet.
    pub meta: u32,
    /// The bytes of the packet.
    pub packet: &'a [u8],
}

/// Position and header of a packet in the memory.
#[derive(Clone, Copy)]
struct Record {
    at: usize,
    len: usize,
    key: u8,
    meta: u32,
}

impl Record {
    const fn end(self) -> usize {
        self.at.saturating_add(OVERHEAD).saturating_add(self.len)
    }
}

impl<'m> KeyedQueues<'m> {
    /// Empty queues over `bytes`. Each packet takes its length and [`OVERHEAD`].
    pub(crate) fn new(bytes: &'m mut [u8]) -> Self {
        Self { bytes, used: 0 }
    }

    /// Gives back the memory that [`Self::new`] was given.
    pub(crate) fn into_memory(self) -> &'m mut [u8] {
        self.bytes
    }

    /// As [`Self::push`] without `bytes_max`, for a packet that lies in two pieces.
    pub(crate) fn push_parts(&mut self, key: u8, [head, tail]: [&[u8]; 2], meta: u32) -> bool {
        let total = head.len().saturating_add(tail.len());
        let Ok(len) = u16::try_from(total) else {
            return false;
        };
        let total = total.saturating_add(OVERHEAD);
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let Some((record, _)) = room.split_at_mut_checked(total) else {
            return false;
        };
        let [high, low] = len.to_be_bytes();
        let [a, b, c, d] = meta.to_be_bytes();
        let Some((start, body)) = record.split_first_chunk_mut::<OVERHEAD>() else {
            return false;
        };
        if len == 0 {
            return false;
        }
        *start = [high, low, key, a, b, c, d];
        let at = copy(body, head);
        copy(body.get_mut(at..).unwrap_or_default(), tail);
        self.used += total;
        true
    }

    /// Free memory, bytes, for packets and the [`OVERHEAD`] of each.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len().saturating_sub(self.used)
    }

    /// Size of the memory, bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Moves packets for which `is_meant` is true from the queue of `from` to that of `to`. The
    /// order of all packets in the memory stays. Returns how many packets were moved, and the bytes
    /// that they take, overheads included.
    #[cfg(feature = "entry")]
    pub(crate) fn hand_over(
        &mut self,
        from: u8,
        to: u8,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> (u16, usize) {
        let (mut at, mut count, mut total) = (0, 0u16, 0usize);
        while let Some(record) = self.record_at(at) {
            at = record.end();
            let start = record.at.saturating_add(OVERHEAD);
            let packet = self.bytes.get(start..record.end()).unwrap_or_default();
            if record.key != from || !is_meant(packet) {
                continue;
            }
            if let Some(key) = self.bytes.get_mut(record.at.saturating_add(KEY_AT)) {
                *key = to;
                count = count.saturating_add(1);
                total = total.saturating_add(record.end() - record.at);
            }
        }
        (count, total)
    }

    /// Whether a packet of `len` bytes for `key` has room now. An empty queue counts as having room
    /// even for a packet that never fits.
    #[cfg(feature = "sleepy")]
    pub(crate) fn has_room(&self, key: u8, len: usize, bytes_max: usize) -> bool {
        let total = len.saturating_add(OVERHEAD);
        let own = self.bytes_for(key);
        (self.room() >= total || self.used == 0)
            && (own.saturating_add(total) <= bytes_max || own == 0)
    }

    /// The packets in the queue of `key`, the oldest first.
    pub(crate) fn packets(&self, key: u8) -> impl Iterator<Item = QueuedPacket<'_>> {
        let of_key = self.records().filter(move |record| record.key == key);
        of_key.filter_map(|record| self.packet(record))
    }

    fn packet(&self, record: Record) -> Option<QueuedPacket<'_>> {
        let start = record.at.saturating_add(OVERHEAD);
        Some(QueuedPacket {
            meta: record.meta,
            packet: self.bytes.get(start..record.end())?,
        })
    }

    /// Removes the packet of `key` that `nth` older ones precede; false: there is none.
    pub(crate) fn remove(&mut self, key: u8, nth: usize) -> bool {
        let Some(record) = self.nth(key, nth) else {
            return false;
        };
        self.shift(record.end(), record.at)
    }

    /// Moves all bytes from index `from` on to index `to`; false, and nothing is moved: there is no
    /// room.
    fn shift(&mut self, from: usize, to: usize) -> bool {
        let Some(len) = self.used.checked_sub(from) else {
            return false;
        };
        let end = to.saturating_add(len);
        if self.used.max(end) > self.bytes.len() {
            return false;
        }
        if to <= from {
            let used = self.bytes.get_mut(..self.used).unwrap_or_default();
            if from <= used.len() {
                used.copy_within(from.., to);
            }
            self.used = end;
            return true;
        }
        // Byte after byte, from the last on: `copy_within` would leave a panic in the image here.
        for at in (from..self.used).rev() {
            let byte = self.bytes.get(at).copied();
            if let (Some(byte), Some(place)) = (byte, self.bytes.get_mut(at + (to - from))) {
                *place = byte;
            }
        }
        self.used = end;
        true
    }

    fn nth(&self, key: u8, nth: usize) -> Option<Record> {
        self.records().filter(|record| record.key == key).nth(nth)
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let record = self.record_at(at)?;
            at = record.end();
            Some(record)
        })
    }

    fn record_at(&self, at: usize) -> Option<Record> {
        let used = self.bytes.get(..self.used)?;
        let head = used.get(at..)?.first_chunk::<OVERHEAD>()?;
        let &[high, low, key, a, b, c, d] = head;
        Some(Record {
            at,
            len: usize::from(u16::from_be_bytes([high, low])),
            key,
            meta: u32::from_be_bytes([a, b, c, d]),
        })
    }
}

#[cfg(any(feature = "sleepy", test))]
impl KeyedQueues<'_> {
    /// Appends a packet to the queue of `key`, if there is room and the queue then takes
    /// `bytes_max` bytes at most, overheads included. Returns whether it did.
    pub(crate) fn push(&mut self, key: u8, packet: &[u8], meta: u32, bytes_max: usize) -> bool {
        let total = packet.len().saturating_add(OVERHEAD);
        self.bytes_for(key).saturating_add(total) <= bytes_max
            && self.push_parts(key, [packet, &[]], meta)
    }

    /// The oldest packet in the queue of `key`.
    pub(crate) fn first(&self, key: u8) -> Option<QueuedPacket<'_>> {
        self.packets(key).next()
    }

    /// Removes the oldest packet in the queue of `key`; false: the queue is empty.
    pub(crate) fn pop(&mut self, key: u8) -> bool {
        self.remove(key, 0)
    }

    /// Replaces the packet of `key` that `nth` older ones precede. False, and nothing is changed:
    /// there is no such packet, or no room for a longer one, within `bytes_max` as in
    /// [`Self::push`].
    pub(crate) fn replace(
        &mut self,
        (key, nth): (u8, usize),
        packet: &[u8],
        meta: u32,
        bytes_max: usize,
    ) -> bool {
        let (Some(record), Ok(len)) = (self.nth(key, nth), u16::try_from(packet.len())) else {
            return false;
        };
        let others = self.bytes_for(key).saturating_sub(record.len);
        let start = record.at.saturating_add(OVERHEAD);
        let behind = start.saturating_add(packet.len());
        let is_allowed = !packet.is_empty() && others.saturating_add(packet.len()) <= bytes_max;
        if !is_allowed || !self.shift(record.end(), behind) {
            return false;
        }
        let record = self.bytes.get_mut(record.at..behind).unwrap_or_default();
        if let Some((head, body)) = record.split_first_chunk_mut::<OVERHEAD>() {
            let [high, low] = len.to_be_bytes();
            let [a, b, c, d] = meta.to_be_bytes();
            *head = [high, low, key, a, b, c, d];
            copy(body, packet);
        }
        true
    }

    /// Removes all packets of `key`; returns how many there were.
    pub(crate) fn clear(&mut self, key: u8) -> usize {
        let count = self.count(key);
        for _ in 0..count {
            self.pop(key);
        }
        count
    }

    /// Number of packets in the queue of `key`.
    pub(crate) fn count(&self, key: u8) -> usize {
        self.records().filter(|record| record.key == key).count()
    }

    /// Bytes that the queue of `key` takes, overheads included.
    pub(crate) fn bytes_for(&self, key: u8) -> usize {
        let of_key = self.records().filter(|record| record.key == key);
        of_key.map(|record| record.end() - record.at).sum()
    }
}

/// Bytes in front of each packet: length, key and the owner's word.
pub(crate) const OVERHEAD: usize = 7;

/// Index of the key in those bytes.
#[cfg(feature = "entry")]
const KEY_AT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize, u32),
        Remove(usize),
        Replace(usize, usize, u32),
    }

    /// Lengths and words of packets, and how many older packets precede them: mostly none.
    fn any_step() -> impl Strategy<Value = Step> {
        let nth = || prop_oneof![3 => Just(0), 1 => 0usize..5];
        prop_oneof![
            2 => (0usize..80, any::<u32>()).prop_map(|(len, meta)| Step::Push(len, meta)),
            1 => nth().prop_map(Step::Remove),
            1 => (nth(), 0usize..80, any::<u32>())
                .prop_map(|(nth, len, meta)| Step::Replace(nth, len, meta)),
        ]
    }

    proptest! {
        #[test]
        fn is_a_bounded_queue_for_each(
            capacity in 0usize..300,
            bytes_max in 0usize..200,
            steps in prop::collection::vec((0u8..3, any_step()), 0..100),
        ) {
            let mut memory = std::vec![0; capacity];
            let mut queues = KeyedQueues::new(&mut memory);
            let mut model: [VecDeque<(Vec<u8>, u32)>; 3] = Default::default();
            for (key, step) in steps {
                let bytes = |queue: &VecDeque<(Vec<u8>, u32)>| -> usize {
                    queue.iter().map(|(packet, _)| packet.len() + OVERHEAD).sum()
                };
                let used: usize = model.iter().map(bytes).sum();
                let queue = &mut model[usize::from(key)];
                let packet_of = |(len, meta): (usize, u32)| -> Vec<u8> {
                    (0..len).map(|i| (meta as usize + i) as u8).collect()
                };
                match step {
                    Step::Push(len, meta) => {
                        let packet = packet_of((len, meta));
                        let total = len + OVERHEAD;
                        let fits = len > 0 && used + total <= capacity && bytes(queue) + total <= bytes_max;
                        prop_assert_eq!(queues.push(key, &packet, meta, bytes_max), fits);
                        if fits {
                            queue.push_back((packet, meta));
                        }
                    }
                    Step::Remove(nth) => {
                        prop_assert_eq!(queues.remove(key, nth), queue.remove(nth).is_some());
                    }
                    Step::Replace(nth, len, meta) => {
                        let packet = packet_of((len, meta));
                        let former = queue.get(nth).map_or(0, |(packet, _)| packet.len());
                        let fits = nth < queue.len()
                            && len > 0
                            && used - former + len <= capacity
                            && bytes(queue) - former + len <= bytes_max;
                        prop_assert_eq!(queues.replace((key, nth), &packet, meta, bytes_max), fits);
                        if fits {
                            queue[nth] = (packet, meta);
                        }
                    }
                }
                for (key, queue) in (0..).zip(&model) {
                    let first = queue.front().map(|(packet, meta)| QueuedPacket { meta: *meta, packet });
                    prop_assert_eq!(queues.first(key), first);
                    prop_assert_eq!(queues.count(key), queue.len());
                    prop_assert_eq!(queues.bytes_for(key), bytes(queue));
                    let packets = queues.packets(key).map(|queued| (queued.packet.to_vec(), queued.meta));
                    prop_assert!(packets.eq(queue.iter().cloned()));
                }
            }
            #[cfg(feature = "entry")]
            {
                let meant = |packet: &[u8]| packet.len().is_multiple_of(2);
                let moved = model[2].iter().filter(|(packet, _)| meant(packet));
                let moved = (moved.clone().count(), moved.map(|(packet, _)| packet.len() + OVERHEAD).sum());
                let (count, bytes) = queues.hand_over(2, 0, meant);
                prop_assert_eq!((usize::from(count), bytes), moved);
                prop_assert_eq!(queues.count(0), model[0].len() + moved.0);
                let left = model[2].iter().map(|(packet, _)| &packet[..]);
                let left = left.filter(|packet| !meant(packet));
                prop_assert!(queues.packets(2).map(|queued| queued.packet).eq(left));
                let used = model.iter().flatten().map(|(packet, _)| packet.len() + OVERHEAD).sum::<usize>();
                prop_assert_eq!(queues.room(), queues.capacity() - used);
                let moved = model[2].iter().filter(|(packet, _)| meant(packet));
                let moved: Vec<_> = moved.cloned().collect();
                model[0].extend(moved);
            }
            let waiting = model[1].len();
            prop_assert_eq!(queues.clear(1), waiting);
            prop_assert_eq!((queues.count(1), queues.count(0)), (0, model[0].len()));
        }
    }
}
