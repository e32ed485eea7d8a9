//! A list of slices that stay the application's, with a ring for small writes.
//!
//! Place: one of the two kinds of [`SendBuffer`](super::SendBuffer), which passes its calls on.
//! A build without the feature `slices` has the file `slices_absent.rs` in its place.

use core::cell::Cell;

use crate::storage::ring::Ring;
use crate::wire::cursor::copy;

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

    pub(super) fn clear(&mut self) {
        self.copies.clear();
        (self.count, self.len) = (0, 0);
    }

    pub(super) fn len(&self) -> u16 {
        self.len
    }

    pub(super) fn copy_room(&self) -> u16 {
        let fits = self.ends_in_copy() || self.has_place();
        match fits {
            true => self.copies.room().min(u16::MAX - self.len),
            false => 0,
        }
    }

    /// Whether there is room for whatever comes, a slice or a copy.
    pub(super) fn has_room(&self) -> bool {
        self.has_place() && (self.copies.capacity() == 0 || self.copy_room() > 0)
    }

    /// Where bytes are copied to.
    pub(super) fn copies(&mut self) -> &mut Ring<'m> {
        &mut self.copies
    }

    /// Copies what fits of `data` to the end; returns how many bytes that is.
    pub(super) fn push(&mut self, data: &[u8]) -> usize {
        let data = data.get(..usize::from(self.copy_room())).unwrap_or(data);
        let len = self.copies.push(data);
        self.note_copied(len as u16);
        len
    }

    /// `len` bytes were appended to the copies.
    pub(super) fn note_copied(&mut self, len: u16) {
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

    pub(super) fn peek(&self, offset: u16, out: &mut [u8]) -> usize {
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

    pub(super) fn consume(&mut self, count: u16) {
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
