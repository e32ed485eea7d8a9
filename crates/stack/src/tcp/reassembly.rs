//! The receive ring: data in order, and data out of order in its place behind it.
//!
//! ```text
//!  memory:  | ring: capacity bytes                          | bitmap: 1 bit per ring byte |
//!  ring:      head → in order, unread (len) | hole | kept | hole | kept | free
//!                                           ^ rcv_nxt                   ^ beyond
//! ```
//! One slice of memory, one ninth of it bitmap: an out-of-order byte is written where it
//! will be read, and its bit is set, so reassembly needs no further memory and any pattern
//! of holes fits (TCPlp §4.3.2). Bits belong to ring places, not offsets: nothing moves.
//!
//! Place: input inserts, the application consumes, output derives the window and SACK
//! ranges. Left out: sequence numbers; offset 0 is the first byte not read yet, and `len`
//! is the offset of `RCV.NXT`.

use crate::planted::{Bug, planted};
use crate::storage::ring::{put, take, wrap};

/// Memory, bytes, that a receive window of `window` bytes takes with its bitmap.
pub const fn recv_memory_len(window: u16) -> usize {
    let window = window as usize;
    window + window.div_ceil(8)
}

/// Receive memory in use by a connection.
#[derive(Debug)]
pub struct RecvBuffer<'m> {
    memory: &'m mut [u8],
    capacity: u16,
    head: u16,
    len: u16,
    /// Offset behind the highest out-of-order byte kept; 0: nothing is out of order.
    beyond: u16,
}

impl<'m> RecvBuffer<'m> {
    /// An empty buffer over `memory`, of which eight ninths hold data, 65,535 bytes at most.
    pub fn new(memory: &'m mut [u8]) -> Self {
        let most = recv_memory_len(u16::MAX);
        let capacity = memory.len().min(most) * 8 / 9;
        let mut buffer = Self {
            memory,
            capacity: capacity as u16,
            head: 0,
            len: 0,
            beyond: 0,
        };
        buffer.bitmap().fill(0);
        buffer
    }

    /// Bytes of data that fit in all.
    pub const fn capacity(&self) -> u16 {
        self.capacity
    }

    /// Bytes in order, unread.
    pub const fn len(&self) -> u16 {
        self.len
    }

    /// Whether there is nothing to read.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The receive window: space behind the bytes in order. Out-of-order bytes lie in it.
    pub const fn window(&self) -> u16 {
        self.capacity.saturating_sub(self.len)
    }

    /// Whether bytes behind a hole are kept.
    pub const fn has_gaps(&self) -> bool {
        self.beyond != 0
    }

    /// The unread bytes that lie in one piece at the front; [`Self::consume`] frees them.
    pub fn front(&self) -> &[u8] {
        let ring = self
            .memory
            .get(..usize::from(self.capacity))
            .unwrap_or_default();
        let from = ring.get(usize::from(self.head)..).unwrap_or_default();
        from.get(..usize::from(self.len)).unwrap_or(from)
    }

    /// Copies unread bytes to `out` and frees them; returns how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(usize::from(self.len));
        take(
            self.memory,
            self.capacity,
            self.head,
            out.get_mut(..count).unwrap_or_default(),
        );
        self.consume(count as u16);
        count
    }

    /// Frees up to `count` unread bytes.
    pub fn consume(&mut self, count: u16) {
        let count = count.min(self.len);
        self.head = wrap(self.head, count, self.capacity);
        self.len -= count;
        self.beyond = self.beyond.saturating_sub(count);
    }

    /// Stores `data` that starts `gap` bytes behind the bytes in order; what exceeds the
    /// window is cut. Returns by how many bytes the data in order grew.
    pub(super) fn insert(&mut self, gap: u16, data: &[u8]) -> u16 {
        let start = u32::from(self.len) + u32::from(gap);
        let room = u32::from(self.capacity).saturating_sub(start);
        let Some(data) = data.get(..data.len().min(room as usize)) else {
            return 0;
        };
        let (start, count) = (start as u16, data.len() as u16);
        if count == 0 {
            return 0;
        }
        put(
            self.memory,
            self.capacity,
            wrap(self.head, start, self.capacity),
            data,
        );
        if gap > 0 {
            let count =
                count + u16::from(planted(Bug::ReassemblyOverlap) && room > u32::from(count));
            self.mark(start, count, true);
            self.beyond = self.beyond.max(start + count);
            return 0;
        }
        self.len += count;
        if self.beyond != 0 {
            self.join(start, count);
        }
        self.len - start
    }

    /// The first range of kept bytes that ends behind `from`, an offset behind the bytes in
    /// order: start and end, as such offsets. Ranges do not touch.
    pub(super) fn next_range(&self, from: u16) -> Option<(u16, u16)> {
        let start = self.scan(self.len.saturating_add(from), true);
        if start >= self.beyond {
            return None;
        }
        let end = self.scan(start, false).min(self.beyond);
        Some((start - self.len, end - self.len))
    }

    /// The range of kept bytes around the byte at `offset` behind the bytes in order.
    pub(super) fn range_around(&self, offset: u16) -> Option<(u16, u16)> {
        let last = self.last_range(offset.saturating_add(1));
        last.filter(|(_, end)| offset < *end)
    }

    /// The last range of kept bytes that starts before `limit`, an offset behind the bytes in
    /// order.
    pub(super) fn last_range(&self, limit: u16) -> Option<(u16, u16)> {
        let mut last = None;
        let mut from = 0;
        while let Some((start, end)) = self.next_range(from)
            && start < limit
        {
            last = Some((start, end));
            from = end;
        }
        last
    }

    /// Gives the memory back; whatever is unread is lost.
    pub fn into_memory(self) -> &'m mut [u8] {
        self.memory
    }

    /// Clears the bits of `count` bytes that came in order at `start`, and takes in the kept
    /// bytes that follow them.
    fn join(&mut self, start: u16, count: u16) {
        let end = self.scan(self.len, false).min(self.beyond.max(self.len));
        self.mark(start, count.saturating_add(end - self.len), false);
        self.len = end;
        if self.beyond <= self.len {
            self.beyond = 0;
        }
    }

    /// The first offset from `from` on whose bit is `wanted`, or [`Self::beyond`].
    fn scan(&self, from: u16, wanted: bool) -> u16 {
        let bits = self
            .memory
            .get(usize::from(self.capacity)..)
            .unwrap_or_default();
        let skip = if wanted { 0x00 } else { 0xff };
        let mut offset = from;
        while offset < self.beyond {
            let at = wrap(self.head, offset, self.capacity);
            let byte = bits.get(usize::from(at >> 3)).copied().unwrap_or(0);
            if at & 7 == 0 && byte == skip && self.capacity - at >= 8 {
                offset = offset.saturating_add(8);
            } else if (byte >> (at & 7) & 1 == 1) == wanted {
                return offset;
            } else {
                offset += 1;
            }
        }
        self.beyond.max(from)
    }

    /// Sets or clears the bits of `count` bytes from `offset` on.
    fn mark(&mut self, offset: u16, count: u16, set: bool) {
        let (capacity, mut at) = (self.capacity, wrap(self.head, offset, self.capacity));
        let bits = self.bitmap();
        for _ in 0..count {
            if let Some(byte) = bits.get_mut(usize::from(at >> 3)) {
                let bit = 1 << (at & 7);
                *byte |= bit;
                if !set {
                    *byte ^= bit;
                }
            }
            at += 1;
            if at >= capacity {
                at = 0;
            }
        }
    }

    fn bitmap(&mut self) -> &mut [u8] {
        self.memory
            .get_mut(usize::from(self.capacity)..)
            .unwrap_or_default()
    }
}
