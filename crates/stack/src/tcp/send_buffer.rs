//! Bytes unacknowledged or unsent.
//!
//! Place: filled by the application, read by output at any offset (first transmission and
//! retransmission alike), shortened from the front by acknowledgments. Two kinds behind one
//! interface: a plain ring that copies its data, and a list of slices that stay the application's,
//! with a ring for small writes.
//! Left out: sequence numbers; the first byte in the buffer is the first unacknowledged one.

use core::cell::Cell;

use crate::storage::ring::Ring;
use crate::wire::cursor::copy;

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
            Kind::Slices(queue) => &mut queue.copies,
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
            Kind::Slices(queue) => {
                queue.has_place() && (queue.copies.capacity() == 0 || queue.copy_room() > 0)
            }
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

/// One piece of a [`SliceQueue`].
#[derive(Clone, Copy, Debug)]
pub struct Piece<'m> {
    /// `None`: the next `len` bytes of the ring.
    data: Option<&'m [u8]>,
    len: u16,
}

impl Piece<'_> {
    /// An entry that is not in use.
    pub const EMPTY: Self = Self { data: None, len: 0 };
}

/// A short list of slices owned by the application, and a ring for what must be copied.
///
/// The slices must outlive the connection's use of them, which the lifetime says: constant
/// tables and firmware images in flash, or buffers the application parks.
#[derive(Debug)]
pub struct SliceQueue<'m> {
    /// At most 255; the first `count` are in use.
    pieces: &'m mut [Piece<'m>],
    copies: Ring<'m>,
    count: u8,
    len: u16,
}

impl<'m> SliceQueue<'m> {
    /// An empty queue of up to `pieces.len()` pieces (255 at most); `copies` backs the
    /// pieces that are copied.
    pub fn new(pieces: &'m mut [Piece<'m>], copies: &'m mut [u8]) -> Self {
        let places = pieces.len().min(usize::from(u8::MAX));
        Self {
            pieces: pieces.get_mut(..places).unwrap_or_default(),
            copies: Ring::new(copies),
            count: 0,
            len: 0,
        }
    }

    /// Appends `data` without copying it: all of it, or none when the list is full or would
    /// hold more than 65,535 bytes.
    pub(super) fn push_slice(&mut self, data: &'m [u8]) -> bool {
        let room = usize::from(u16::MAX - self.len);
        if data.len() > room {
            return false;
        }
        let len = data.len() as u16;
        let piece = Piece {
            data: Some(data),
            len,
        };
        let fits = data.is_empty() || self.append(piece);
        if fits {
            self.len += len;
        }
        fits
    }

    fn clear(&mut self) {
        self.copies.clear();
        (self.count, self.len) = (0, 0);
    }

    fn len(&self) -> u16 {
        self.len
    }

    fn copy_room(&self) -> u16 {
        let fits = self.ends_in_copy() || self.has_place();
        match fits {
            true => self.copies.room().min(u16::MAX - self.len),
            false => 0,
        }
    }

    /// Copies what fits of `data` to the end; returns how many bytes that is.
    fn push(&mut self, data: &[u8]) -> usize {
        let data = data.get(..usize::from(self.copy_room())).unwrap_or(data);
        let len = self.copies.push(data);
        self.note_copied(len as u16);
        len
    }

    /// `len` bytes were appended to the copies.
    fn note_copied(&mut self, len: u16) {
        if len == 0 {
            return;
        }
        self.len += len;
        let last = usize::from(self.count).wrapping_sub(1);
        let last = self.pieces.get_mut(last);
        if let Some(last) = last.filter(|last| last.data.is_none()) {
            last.len += len;
        } else {
            let fits = self.append(Piece { data: None, len });
            debug_assert!(fits, "copy_room said there is a place");
        }
    }

    fn peek(&self, offset: u16, out: &mut [u8]) -> usize {
        let (mut skip, mut copied, mut done) = (offset, 0, 0);
        for piece in self.pieces.iter().take(usize::from(self.count)) {
            if skip < piece.len {
                let rest = out.get_mut(done..).unwrap_or_default();
                let len = rest.len().min(usize::from(piece.len - skip));
                let rest = rest.get_mut(..len).unwrap_or_default();
                done += match piece.data {
                    None => self.copies.peek(copied + skip, rest),
                    Some(data) => copy(rest, data.get(usize::from(skip)..).unwrap_or_default()),
                };
                skip = 0;
            } else {
                skip -= piece.len;
            }
            if piece.data.is_none() {
                copied += piece.len;
            }
        }
        done
    }

    fn consume(&mut self, count: u16) {
        let mut left = count.min(self.len);
        self.len -= left;
        while left > 0 {
            let Some(piece) = self.pieces.first_mut() else {
                break;
            };
            let step = left.min(piece.len);
            match &mut piece.data {
                None => self.copies.consume(step),
                Some(data) => *data = data.get(usize::from(step)..).unwrap_or_default(),
            }
            piece.len -= step;
            left -= step;
            if piece.len == 0 {
                self.drop_first();
            }
        }
    }

    fn has_place(&self) -> bool {
        usize::from(self.count) < self.pieces.len()
    }

    fn in_use(&mut self) -> &mut [Piece<'m>] {
        let count = usize::from(self.count);
        self.pieces.get_mut(..count).unwrap_or_default()
    }

    /// Whether there are pieces, and the last one is copied.
    fn ends_in_copy(&self) -> bool {
        let last = usize::from(self.count).wrapping_sub(1);
        let last = self.pieces.get(last);
        last.is_some_and(|piece| piece.data.is_none())
    }

    fn append(&mut self, piece: Piece<'m>) -> bool {
        match self.pieces.get_mut(usize::from(self.count)) {
            Some(place) => {
                *place = piece;
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// The pieces behind move up: there are a few at most.
    fn drop_first(&mut self) {
        let pieces = Cell::from_mut(self.in_use()).as_slice_of_cells();
        for pair in pieces.windows(2) {
            if let [place, next] = pair {
                place.set(next.get());
            }
        }
        self.count -= 1;
    }
}
