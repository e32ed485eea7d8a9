//! A byte ring over borrowed memory, and the two copies every ring needs.
//!
//! Place: TCP's send buffer and receive buffer. Left out: anything about sequence numbers.

use crate::wire::cursor::copy;

/// Bytes in order, added at the end, taken from the front. Holds up to 65,535.
#[derive(Debug)]
pub(crate) struct Ring<'m> {
    /// The memory, at most 65,535 bytes.
    bytes: &'m mut [u8],
    head: u16,
    len: u16,
}

impl<'m> Ring<'m> {
    /// An empty ring over `bytes`; of longer memory the first 65,535 bytes are used.
    pub(crate) fn new(bytes: &'m mut [u8]) -> Self {
        let used = bytes.len().min(usize::from(u16::MAX));
        Self {
            bytes: bytes.get_mut(..used).unwrap_or_default(),
            head: 0,
            len: 0,
        }
    }

    /// Gives back the memory that [`Self::new`] was given, up to 65,535 bytes.
    pub(crate) fn into_memory(self) -> &'m mut [u8] {
        self.bytes
    }

    /// Bytes that fit in all.
    pub(crate) const fn capacity(&self) -> u16 {
        self.bytes.len() as u16
    }

    /// Number of bytes in the ring.
    #[cfg(feature = "tcp-small")]
    pub(crate) const fn len(&self) -> u16 {
        self.len
    }

    /// Whether the ring has no bytes.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Free space of the ring, bytes.
    pub(crate) fn room(&self) -> u16 {
        self.capacity().saturating_sub(self.len)
    }

    /// Appends what fits of `data`; returns how many bytes that is.
    pub(crate) fn push(&mut self, data: &[u8]) -> usize {
        let mut rest = data;
        // Up to the end of the memory, then from its beginning.
        for _ in 0..2 {
            let count = copy(self.spare(), rest);
            self.len += count as u16;
            rest = rest.get(count..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
        }
        data.len() - rest.len()
    }

    /// The free room after the last byte, as one contiguous slice: all of an empty ring, else up to
    /// the end of its memory. Bytes written to its front become part of the ring by
    /// [`Self::commit`].
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        if self.is_empty() {
            self.head = 0;
        }
        let head = usize::from(self.head);
        let end = head + usize::from(self.len);
        let spare = match end.checked_sub(self.bytes.len()) {
            Some(wrapped) => self.bytes.get_mut(wrapped..head),
            None => self.bytes.get_mut(end..),
        };
        spare.unwrap_or_default()
    }

    /// Appends `count` bytes that were written to [`Self::spare`], as far as there is room.
    #[cfg(feature = "tcp-small")]
    pub(crate) fn commit(&mut self, count: u16) {
        self.len += count.min(self.room());
    }

    /// Copies bytes into `out`, starting `offset` behind the front; returns how many.
    pub(crate) fn peek(&self, offset: u16, out: &mut [u8]) -> usize {
        let len = out.len().min(usize::from(self.len.saturating_sub(offset)));
        let capacity = self.capacity();
        let at = wrap(self.head, offset, capacity);
        take(
            self.bytes,
            capacity,
            at,
            out.get_mut(..len).unwrap_or_default(),
        );
        len
    }

    /// The `len` bytes that start `offset` behind the front, in two pieces where they lie at both
    /// ends of the memory; both empty where there are fewer bytes.
    #[cfg(feature = "ble")]
    pub(crate) fn parts(&self, offset: u16, len: u16) -> [&[u8]; 2] {
        if len > self.len.saturating_sub(offset) {
            return [&[]; 2];
        }
        let at = wrap(self.head, offset, self.capacity());
        let (start, end) = self.bytes.split_at_checked(at.into()).unwrap_or_default();
        let behind = usize::from(len).min(end.len());
        let before = usize::from(len) - behind;
        [
            end.get(..behind).unwrap_or_default(),
            start.get(..before).unwrap_or_default(),
        ]
    }

    /// Drops up to `count` bytes from the front.
    pub(crate) fn consume(&mut self, count: u16) {
        let count = count.min(self.len);
        self.head = wrap(self.head, count, self.capacity());
        self.len = self.len.saturating_sub(count);
    }

    /// Drops all bytes of the ring.
    #[cfg(feature = "tcp-small")]
    pub(crate) fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
    }
}

/// The index `offset` behind `at` in a ring of `capacity`; both below or equal to it.
pub(crate) fn wrap(at: u16, offset: u16, capacity: u16) -> u16 {
    let sum = u32::from(at) + u32::from(offset);
    match sum.checked_sub(u32::from(capacity)) {
        Some(wrapped) => wrapped as u16,
        None => sum as u16,
    }
}

/// Copies `data` into the ring that the first `capacity` of `bytes` form, from index `at`.
#[cfg(feature = "tcp-small")]
pub(crate) fn put(bytes: &mut [u8], capacity: u16, at: u16, data: &[u8]) {
    let ring = bytes.get_mut(..usize::from(capacity)).unwrap_or_default();
    let done = copy(ring.get_mut(usize::from(at)..).unwrap_or_default(), data);
    if let Some(rest) = data.get(done..) {
        copy(ring, rest);
    }
}

/// Fills `out` from the ring that the first `capacity` of `bytes` form, from index `at`.
pub(crate) fn take(bytes: &[u8], capacity: u16, at: u16, out: &mut [u8]) {
    let ring = bytes.get(..usize::from(capacity)).unwrap_or_default();
    let done = copy(out, ring.get(usize::from(at)..).unwrap_or_default());
    if let Some(rest) = out.get_mut(done..) {
        copy(rest, ring);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn a_ring_is_a_bounded_queue(capacity in 0usize..20, steps in prop::collection::vec((any::<bool>(), 0usize..25, any::<u8>()), 0..60)) {
            let mut memory = vec![0; capacity];
            let mut ring = Ring::new(&mut memory);
            let mut model = VecDeque::new();
            for (push, count, value) in steps {
                if push {
                    let data: Vec<u8> = (0..count).map(|i| value.wrapping_add(i as u8)).collect();
                    let expected = count.min(capacity - model.len());
                    prop_assert_eq!(ring.push(&data), expected);
                    model.extend(&data[..expected]);
                } else {
                    ring.consume(count as u16);
                    model.drain(..count.min(model.len()));
                }
                prop_assert_eq!(usize::from(ring.len()), model.len());
                let offset = usize::from(value) % (model.len() + 1);
                let mut out = vec![0; count];
                let got = ring.peek(offset as u16, &mut out);
                let expected: Vec<u8> = model.iter().skip(offset).take(count).copied().collect();
                prop_assert_eq!(&out[..got], &expected[..]);
            }
        }
    }
}
