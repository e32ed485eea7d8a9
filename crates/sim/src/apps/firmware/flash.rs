//! The flash of a simulated mote, with the times of the nRF52840's, and what digests of its bytes
//! cost.
//!
//! The processor stands still while a page is erased or a word is written, for it fetches its code
//! from the same flash. The bytes change at once; [`Flash::take_halt`] then says how long nobody
//! may run. Source: Nordic, nRF52840 Product Specification v1.7, §4.3 (NVMC): `t_ERASEPAGE` 85 ms,
//! `t_WRITE` 41 µs.
//!
//! SHA-256 and ECDSA are charged here, too, since their work goes with flash: each byte written has
//! just been added to a digest, each byte read is about to be (what a `GET` reads is not, and pays
//! nevertheless), and behind a verified signature the trailer is written. Source: SEGGER emCrypt in
//! C on a Cortex-M4 at 168 MHz (MK66FN2M0): SHA-256 2.11 MB/s, 80 cycles a byte; ECDSA over P-256
//! verified in 82.91 ms, 13.9 million cycles. Both at the nRF52840's 64 MHz.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use embedded_storage_async::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};
use motet::time::Duration;

/// The flash of one mote; it outlives a power cut.
#[derive(Debug)]
pub(in crate::apps) struct Flash {
    bytes: RefCell<Vec<u8>>,
    halt: Cell<Duration>,
    /// Bytes at the slot's begin that were ever written.
    stored: Cell<usize>,
}

impl Flash {
    pub(in crate::apps) fn new() -> Rc<Self> {
        Rc::new(Self {
            bytes: RefCell::new(vec![0xFF; NOTES_LEN + SLOT_LEN]),
            halt: Cell::new(Duration::ZERO),
            stored: Cell::new(0),
        })
    }

    /// How many bytes the slot has held at most, words filled up.
    pub(in crate::apps) fn stored(&self) -> usize {
        self.stored.get()
    }

    /// Whether the slot begins with these bytes.
    pub(in crate::apps) fn begins_with(&self, image: &[u8]) -> bool {
        let bytes = self.bytes.borrow();
        bytes.get(NOTES_LEN..NOTES_LEN + image.len()) == Some(image)
    }

    /// The slot for an image, and the notes about it.
    pub(in crate::apps) fn partitions(self: &Rc<Self>) -> (Partition, Partition) {
        let part = |from, len| Partition {
            flash: self.clone(),
            from,
            len,
        };
        (part(NOTES_LEN, SLOT_LEN), part(0, NOTES_LEN))
    }

    /// How long the processor stands still because of what was erased and written since the last
    /// call.
    pub(in crate::apps) fn take_halt(&self) -> Duration {
        self.halt.take()
    }

    /// Waits until nobody stands still any more.
    async fn halt(&self, span: Duration) {
        self.halt.set(self.halt.get() + span);
        let mut has_waited = false;
        poll_fn(|_| {
            if std::mem::replace(&mut has_waited, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// A part of a mote's flash.
#[derive(Debug)]
pub(in crate::apps) struct Partition {
    flash: Rc<Flash>,
    from: usize,
    len: usize,
}

impl Partition {
    /// Whether this is the image's, and not that of the notes.
    fn is_slot(&self) -> bool {
        self.from == NOTES_LEN
    }

    fn check(&self, at: u32, len: usize, unit: usize) -> Result<(), NorFlashErrorKind> {
        let at = at as usize;
        if !at.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(NorFlashErrorKind::NotAligned);
        }
        if at + len > self.len {
            return Err(NorFlashErrorKind::OutOfBounds);
        }
        Ok(())
    }
}

impl ErrorType for Partition {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Partition {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), NorFlashErrorKind> {
        self.check(offset, out.len(), 1)?;
        {
            let bytes = self.flash.bytes.borrow();
            out.copy_from_slice(&bytes[self.from + offset as usize..][..out.len()]);
        }
        self.flash.halt(summed(out.len())).await;
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.len
    }
}

impl NorFlash for Partition {
    const WRITE_SIZE: usize = WORD_LEN;
    const ERASE_SIZE: usize = PAGE_LEN;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
        let len = to.saturating_sub(from) as usize;
        self.check(from, len, PAGE_LEN)?;
        self.flash.bytes.borrow_mut()[self.from + from as usize..][..len].fill(0xFF);
        let pages = (len / PAGE_LEN) as u64;
        self.flash
            .halt(Duration::from_micros(pages * PAGE_ERASE_US))
            .await;
        Ok(())
    }

    async fn write(&mut self, offset: u32, words: &[u8]) -> Result<(), NorFlashErrorKind> {
        self.check(offset, words.len(), WORD_LEN)?;
        let from = self.from + offset as usize;
        {
            let mut bytes = self.flash.bytes.borrow_mut();
            for (place, byte) in bytes[from..][..words.len()].iter_mut().zip(words) {
                *place &= byte;
            }
        }
        let count = (words.len() / WORD_LEN) as u64;
        let mut halt = Duration::from_micros(count * WORD_WRITE_US) + summed(words.len());
        let end = offset as usize + words.len();
        if self.is_slot() && end > SLOT_LEN - PAGE_LEN {
            halt = halt + SIGNATURE_CHECK;
        } else if self.is_slot() {
            self.flash.stored.set(end.max(self.flash.stored.get()));
        }
        self.flash.halt(halt).await;
        Ok(())
    }
}

/// How long SHA-256 of so many bytes takes.
fn summed(len: usize) -> Duration {
    Duration::from_micros((len as u64 * SHA256_NS).div_ceil(1_000))
}

/// SHA-256 of a byte, ns: 80 cycles.
const SHA256_NS: u64 = 1_250;

/// The check of a signature by ECDSA over P-256.
const SIGNATURE_CHECK: Duration = Duration::from_micros(217_600);

/// `t_ERASEPAGE`.
const PAGE_ERASE_US: u64 = 85_000;

/// `t_WRITE`.
const WORD_WRITE_US: u64 = 41;

const WORD_LEN: usize = 4;
const PAGE_LEN: usize = 4_096;

/// Two pages of notes.
const NOTES_LEN: usize = 2 * PAGE_LEN;

/// Half of 1 MiB, without 24 KiB for a boot loader and notes.
const SLOT_LEN: usize = 488 * 1_024;
