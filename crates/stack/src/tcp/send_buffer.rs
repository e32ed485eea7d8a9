//! Bytes unacknowledged or unsent.
//!
//! Place: filled by the application, read by output at any offset (first transmission and
//! retransmission alike), shortened from the front by acknowledgments. Two kinds behind one
//! interface: a plain ring that copies its data, and a list of slices that stay the application's,
//! with a ring for small writes.
//! Left out: sequence numbers; the first byte in the buffer is the first unacknowledged one.

use super::slices::SliceQueue;
use crate::storage::ring::Ring;

/// The bytes that a connection has to send and may have to send again.
#[derive(Debug)]
pub struct SendBuffer<'m>(Kind<'m>);

#[derive(Debug)]
enum Kind<'m> {
    /// One memory block, into which the application's bytes are copied.
    Ring(Ring<'m>),
    /// Refers to the application's own constant data, copies only short pieces.
    Slices(&'m mut SliceQueue<'m>),
}

impl<'m> SendBuffer<'m> {
    /// A ring over `bytes`; up to 65,535 are used.
    pub fn ring(bytes: &'m mut [u8]) -> Self {
        Self(Kind::Ring(Ring::new(bytes)))
    }

    /// Refers to the application's own constant data where it can, and copies short pieces.
    ///
    /// A build without the feature `slices` has no queue for it.
    pub fn slices(queue: &'m mut SliceQueue<'m>) -> Self {
        Self(Kind::Slices(queue))
    }

    /// Bytes queued, sent or not, that are not acknowledged.
    pub(crate) fn len(&self) -> u16 {
        match &self.0 {
            Kind::Ring(ring) => ring.len(),
            Kind::Slices(queue) => queue.len(),
        }
    }

    /// Whether every byte queued has been acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that [`Self::push`] would take.
    pub(crate) fn room(&self) -> u16 {
        match &self.0 {
            Kind::Ring(ring) => ring.room(),
            Kind::Slices(queue) => queue.copy_room(),
        }
    }

    /// Copies what fits of `data` to the end; returns how many bytes that is.
    pub(crate) fn push(&mut self, data: &[u8]) -> usize {
        match &mut self.0 {
            Kind::Ring(ring) => ring.push(data),
            Kind::Slices(queue) => queue.push(data),
        }
    }

    /// The room in one piece for bytes that are copied, to be filled from its front; then
    /// [`Self::commit`].
    pub(super) fn spare(&mut self) -> &mut [u8] {
        let most = usize::from(self.room());
        let spare = self.copies().spare();
        let most = most.min(spare.len());
        spare.get_mut(..most).unwrap_or_default()
    }

    /// Takes `count` bytes that were written to [`Self::spare`], which are not more than it has.
    pub(super) fn commit(&mut self, count: u16) {
        self.copies().commit(count);
        self.note_copied(count);
    }

    /// Takes `data` by reference, if this buffer refers to data and has a place left; returns
    /// whether it does.
    pub(super) fn push_slice(&mut self, data: &'m [u8]) -> bool {
        match &mut self.0 {
            Kind::Slices(queue) => queue.push_slice(data),
            Kind::Ring(_) => false,
        }
    }

    /// Where bytes are copied to.
    fn copies(&mut self) -> &mut Ring<'m> {
        match &mut self.0 {
            Kind::Ring(ring) => ring,
            Kind::Slices(queue) => queue.copies(),
        }
    }

    /// `len` bytes were appended to the copies.
    fn note_copied(&mut self, len: u16) {
        if let Kind::Slices(queue) = &mut self.0 {
            queue.note_copied(len);
        }
    }

    /// Whether there is room for whatever comes, a slice or a copy.
    pub(super) fn has_room(&self) -> bool {
        match &self.0 {
            Kind::Ring(ring) => ring.room() > 0,
            Kind::Slices(queue) => queue.has_room(),
        }
    }

    /// Copies bytes into `out`, starting `offset` behind the first one held; returns how many.
    pub(super) fn peek(&self, offset: u16, out: &mut [u8]) -> usize {
        match &self.0 {
            Kind::Ring(ring) => ring.peek(offset, out),
            Kind::Slices(queue) => queue.peek(offset, out),
        }
    }

    /// Drops everything, slices and copies.
    pub(super) fn clear(&mut self) {
        match &mut self.0 {
            Kind::Ring(ring) => ring.clear(),
            Kind::Slices(queue) => queue.clear(),
        }
    }

    /// Drops the first `count` bytes, which the peer has acknowledged.
    pub(super) fn consume(&mut self, count: u16) {
        match &mut self.0 {
            Kind::Ring(ring) => ring.consume(count),
            Kind::Slices(queue) => queue.consume(count),
        }
    }
}
