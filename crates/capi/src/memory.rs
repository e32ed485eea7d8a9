//! The caller's memory, cut into what a node works in; and the caller's pointers.
//!
//! One function ([`Carver::take`]) both measures and cuts, so that the size that C is told and the
//! size that is used cannot differ.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::{ptr, slice};

use crate::errno::{Errno, MOTET_EFAULT};

/// Cuts pieces off memory, one behind the other.
pub(crate) struct Carver {
    /// Null while only lengths are asked.
    base: *mut u8,
    used: Option<usize>,
}

/// Room for `count` values, none of them written yet.
pub(crate) struct Piece<T> {
    start: *mut T,
    count: usize,
    of: PhantomData<T>,
}

impl Carver {
    /// A carver that measures lengths and cuts nothing.
    pub(crate) const fn measure() -> Self {
        Self::of(ptr::null_mut())
    }

    /// Cuts from `base`, which is aligned to [`ALIGN`]; that the pieces lie in one allocation is the
    /// business of whoever writes to them.
    pub(crate) const fn of(base: *mut u8) -> Self {
        Self {
            base,
            used: Some(0),
        }
    }

    /// Cuts the next piece: `count` values of `T`.
    pub(crate) fn take<T>(&mut self, count: usize) -> Piece<T> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let at = self.cut(align_of::<T>(), count.checked_mul(size_of::<T>()));
        Piece {
            start: self.base.wrapping_add(at).cast(),
            count,
            of: PhantomData,
        }
    }

    /// Where the next `len` bytes begin; `None`: more than can be.
    // One copy for all types, and not inlined: 300 bytes less of code.
    #[inline(never)]
    fn cut(&mut self, align: usize, len: Option<usize>) -> usize {
        let at = self
            .used
            .and_then(|used| used.checked_next_multiple_of(align));
        self.used = at.zip(len).and_then(|(at, len)| at.checked_add(len));
        at.unwrap_or(0)
    }

    /// Bytes so far; `None`: more than there are addresses.
    pub(crate) const fn used(&self) -> Option<usize> {
        self.used
    }
}

impl<T> Piece<T> {
    /// Fills the piece with what `value` gives.
    ///
    /// # Safety
    /// The piece was cut from memory that is valid for writes over the whole of what the [`Carver`]
    /// used, and that nobody else touches for as long as the result lives.
    pub(crate) unsafe fn fill(self, mut value: impl FnMut() -> T) -> &'static mut [T] {
        for index in 0..self.count {
            // SAFETY: inside the piece, which is aligned and ours.
            unsafe { self.start.add(index).write(value()) };
        }
        // SAFETY: as above, and all values have been written.
        unsafe { slice::from_raw_parts_mut(self.start, self.count) }
    }

    /// Writes the one value of the piece.
    ///
    /// # Safety
    /// As [`Self::fill`]; the piece was taken for one value.
    pub(crate) unsafe fn write(self, value: T) -> &'static mut T {
        // SAFETY: inside the piece, which is aligned and ours.
        unsafe {
            self.start.write(value);
            &mut *self.start
        }
    }
}

/// The bytes that C lends to be read; `start` is null only where `len` is 0.
///
/// # Safety
/// Where it is not null, `start` is valid for reads of `len` bytes while the result is used.
pub(crate) unsafe fn bytes<'a>(start: *const u8, len: usize) -> Result<&'a [u8], Errno> {
    match (start.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Errno(MOTET_EFAULT)),
        // SAFETY: the caller's promise; no object is longer than `isize::MAX`.
        (false, len) => Ok(unsafe { slice::from_raw_parts(start, len.min(LEN_MAX)) }),
    }
}

/// The bytes that C lends to be written; `start` is null only where `len` is 0.
///
/// # Safety
/// Where it is not null, `start` is valid for writes of `len` bytes, which nobody else touches
/// while the result is used.
pub(crate) unsafe fn bytes_mut<'a>(start: *mut u8, len: usize) -> Result<&'a mut [u8], Errno> {
    match (start.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Errno(MOTET_EFAULT)),
        // SAFETY: the caller's promise; no object is longer than `isize::MAX`.
        (false, len) => Ok(unsafe { slice::from_raw_parts_mut(start, len.min(LEN_MAX)) }),
    }
}

/// A value that C lends to write to.
///
/// # Safety
/// Where it is neither null nor misaligned, `place` is valid for writes, and nobody else touches it
/// while the result is used.
pub(crate) unsafe fn place<'a, T>(place: *mut T) -> Result<&'a mut MaybeUninit<T>, Errno> {
    match place.is_null() || !place.is_aligned() {
        true => Err(Errno(MOTET_EFAULT)),
        // SAFETY: the caller's promise; what was there is not read.
        false => Ok(unsafe { &mut *place.cast() }),
    }
}

/// A value that C lends to read from.
///
/// # Safety
/// Where it is neither null nor misaligned, `place` is valid for reads, and holds a value.
pub(crate) unsafe fn value<T: Copy>(place: *const T) -> Result<T, Errno> {
    match place.is_null() || !place.is_aligned() {
        true => Err(Errno(MOTET_EFAULT)),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { *place }),
    }
}

/// Alignment of a node's memory, bytes: enough for whatever is in it.
pub(crate) const ALIGN: usize = 8;

const LEN_MAX: usize = isize::MAX as usize;
