//! The receive ring: data in order, and data out of order in its place behind it.
//!
//! ```text
//!  memory:  | ring: capacity bytes                          | bitmap: 1 bit per ring byte |
//!  ring:      head → in order, unread (len) | hole | kept | hole | kept | free
//!                                           ^ rcv_nxt                   ^ beyond
//! ```
//! One slice of memory, one ninth of it bitmap: an out-of-order byte is written where it
//! will be read, and its bit is set, so reassembly needs no further memory and any pattern
//! of holes fits (TCPlp §4.3.2). Bits belong to ring places, not offsets: nothing moves. A
//! hole's last byte remembers when the range behind it grew.
//!
//! Place: input inserts, the application consumes, output derives the window and SACK
//! ranges. Left out: sequence numbers; offset 0 is the first byte not read yet, and `len`
//! is the offset of `RCV.NXT`.

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
        let mut buffer = Self {
            memory,
            capacity: 0,
            head: 0,
            len: 0,
            beyond: 0,
        };
        buffer.clear();
        buffer
    }

    /// Drops everything, in order or not, and offers all of the memory again.
    pub(super) fn clear(&mut self) {
        let most = recv_memory_len(u16::MAX);
        let capacity = self.memory.len().min(most) * 8 / 9;
        (self.len, self.beyond) = (0, 0);
        self.start_with(capacity as u16);
    }

    /// Makes an empty buffer offer `window` bytes at the most.
    pub(super) fn limit(&mut self, window: u16) {
        if window < self.capacity && self.len | self.beyond == 0 {
            self.start_with(window);
        }
    }

    fn start_with(&mut self, capacity: u16) {
        (self.capacity, self.head) = (capacity, 0);
        self.bitmap().fill(0);
    }

    /// Bytes of data that fit in all.
    pub const fn capacity(&self) -> u16 {
        self.capacity
    }

    /// Bytes in order that the application has not read.
    pub(crate) const fn len(&self) -> u16 {
        self.len
    }

    /// Whether no byte waits to be read.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The receive window: space behind the bytes in order. Out-of-order bytes lie in it.
    pub(crate) const fn window(&self) -> u16 {
        self.capacity - self.len
    }

    /// Whether bytes behind a hole are kept.
    pub(crate) const fn has_gaps(&self) -> bool {
        self.beyond != 0
    }

    /// The unread bytes that lie in one piece at the front; [`Self::consume`] frees them.
    pub(crate) fn front(&self) -> &[u8] {
        let ring = self
            .memory
            .get(..usize::from(self.capacity))
            .unwrap_or_default();
        let from = ring.get(usize::from(self.head)..).unwrap_or_default();
        from.get(..usize::from(self.len)).unwrap_or(from)
    }

    /// Copies unread bytes to `out` and frees them; returns how many.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
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
    pub(crate) fn consume(&mut self, count: u16) {
        let count = count.min(self.len);
        self.head = wrap(self.head, count, self.capacity);
        self.len -= count;
        self.beyond = self.beyond.saturating_sub(count);
    }

    /// Stores `data` that starts `gap` bytes after the bytes in order; the part beyond the window
    /// is cut. Returns by how many bytes the data in order grew. `insert(0, &[])` joins what
    /// [`Self::keep`] stored at offset 0.
    pub(super) fn insert(&mut self, gap: u32, data: &[u8]) -> u32 {
        if gap > 0 {
            self.keep(gap, data);
            return 0;
        }
        let start = u32::from(self.len);
        let mut end = start + self.write(start, data);
        if self.beyond != 0 {
            // Takes in the kept bytes that follow; the bits of all of them are not needed now.
            end = self.scan(end, false);
            self.set_received(start, end - start, false);
            if u32::from(self.beyond) <= end {
                self.beyond = 0;
            }
        }
        self.len = end as u16;
        end - start
    }

    /// Keeps `data` that starts `gap` bytes behind the bytes in order, even at no gap, as out
    /// of order.
    pub(super) fn keep(&mut self, gap: u32, data: &[u8]) {
        let start = u32::from(self.len) + gap;
        let count = self.write(start, data);
        if count > 0 {
            self.set_received(start, count, true);
            self.beyond = self.beyond.max((start + count) as u16);
        }
    }

    /// Writes `data` to its place from an offset on, as far as there is room; how much of it.
    fn write(&mut self, start: u32, data: &[u8]) -> u32 {
        let room = u32::from(self.capacity).saturating_sub(start);
        let data = data.get(..room as usize).unwrap_or(data);
        if !data.is_empty() {
            let at = wrap(self.head, start as u16, self.capacity);
            put(self.memory, self.capacity, at, data);
        }
        data.len() as u32
    }

    /// The first range of kept bytes that ends behind `from`: start and end, all of them
    /// offsets behind the bytes in order. Ranges do not touch. `(0, 0)`: there is none.
    pub(super) fn next_range(&self, from: u32) -> (u32, u32) {
        let len = u32::from(self.len);
        let start = self.scan(len + from, true);
        if start >= u32::from(self.beyond) {
            return (0, 0);
        }
        (start - len, self.scan(start, false) - len)
    }

    /// Notes that the range around `gap`, an offset behind the bytes in order, grew last: as
    /// number `count`, which it holds in the last byte of the hole before it.
    pub(super) fn note_latest(&mut self, gap: u32, count: u8) {
        let mut range = self.next_range(0);
        while range.1 != 0 && range.1 <= gap {
            range = self.next_range(range.1);
        }
        let place = self.hole_before(range.0);
        if let Some(stamp) = self.memory.get_mut(place) {
            *stamp = count;
        }
    }

    /// The range with the least key of at least `key_min`, and its key. Ranges are ordered by age,
    /// the number of changes since the range last grew (the latest change has the number `count`),
    /// then by position. The range `(0, 0)` means none. Numbers wrap at 256, so the order of older
    /// ranges is unknown.
    pub(super) fn next_by_age(&self, count: u8, key_min: u32) -> (u32, (u32, u32)) {
        let mut best = (u32::MAX, (0, 0));
        let mut range = self.next_range(0);
        while range.1 != 0 {
            let stamp = self.memory.get(self.hole_before(range.0)).copied();
            let age = count.wrapping_sub(stamp.unwrap_or(0));
            let key = u32::from(age) << 16 | range.0;
            if (key_min..best.0).contains(&key) {
                best = (key, range);
            }
            range = self.next_range(range.1);
        }
        best
    }

    /// Where the last byte of the hole before a range lies.
    fn hole_before(&self, start: u32) -> usize {
        match start.checked_sub(1) {
            Some(gap) => {
                let offset = u32::from(self.len) + gap;
                usize::from(wrap(self.head, offset as u16, self.capacity))
            }
            // Kept before anything was in order: there is no hole.
            None => usize::MAX,
        }
    }

    /// Gives the memory back; whatever is unread is lost.
    pub fn into_memory(self) -> &'m mut [u8] {
        self.memory
    }

    /// The first offset from `from` on whose bit is `wanted`, or [`Self::beyond`].
    fn scan(&self, from: u32, wanted: bool) -> u32 {
        let bits = self
            .memory
            .get(usize::from(self.capacity)..)
            .unwrap_or_default();
        let beyond = u32::from(self.beyond);
        let skip = if wanted { 0x00 } else { 0xff };
        let mut offset = from;
        while offset < beyond {
            let at = wrap(self.head, offset as u16, self.capacity);
            let byte = bits.get(usize::from(at >> 3)).copied().unwrap_or(0);
            if at & 7 == 0 && byte == skip && self.capacity - at >= 8 {
                offset += 8;
            } else if (byte >> (at & 7) & 1 == 1) == wanted {
                return offset;
            } else {
                offset += 1;
            }
        }
        beyond.max(from)
    }

    /// Sets or clears the bits of `count` bytes from `offset` on.
    fn set_received(&mut self, offset: u32, count: u32, set: bool) {
        let (capacity, mut at) = (self.capacity, wrap(self.head, offset as u16, self.capacity));
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
