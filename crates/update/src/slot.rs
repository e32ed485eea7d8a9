//! A slot for one image: written page by page, resumed after a power cut, verified, and pending.
//!
//! Order: a page is erased and written, then noted; the whole is verified, then MCUboot's trailer
//! makes it pending, then that is noted. A power cut between two of these steps costs what was
//! not noted: a page at most. What the notes say is believed only as far as flash bears it out: a
//! digest is always that of the bytes in flash, for the boot loader may have exchanged them since.

use embassy_futures::yield_now;
use embedded_storage_async::nor_flash::{NorFlash, NorFlashError};
use sha2::{Digest as _, Sha256};

use crate::image::{Header, ImageError, Version};
use crate::journal::{DIGEST_LEN, ERASED, Entry, Journal, Phase, RECORD_LEN};
use crate::pages::{Pages, UNIT_MAX};
use crate::verify::{Demands, summed};

/// A slot in flash, MCUboot's secondary one, and its notes.
///
/// `F` is the slot's partition and `S` that of the notes, two pages at least. The last page of the
/// slot belongs to MCUboot's trailer.
#[derive(Debug)]
pub struct Slot<F, S = F> {
    pages: Pages<F>,
    journal: Journal<S>,
    demands: Demands,
    /// The newest note, where flash bears it out.
    noted: Entry,
    phase: Phase,
    /// Bytes of the whole image.
    total: u32,
    /// Bytes in flash; a multiple of its words but at the image's end.
    written: u32,
    /// Bytes behind them that make no whole word yet.
    tail: [u8; UNIT_MAX],
    tail_len: usize,
    /// Of `written` and `tail`; `None` where nobody has added them up since a reset.
    sum: Option<Sha256>,
    /// An operation has begun and not ended: its future was dropped, or flash has failed.
    is_unsettled: bool,
    /// Nothing in the slot is pending.
    is_withdrawn: bool,
    /// All pages are erased before the first is written.
    erases_ahead: bool,
    /// Pages below this place, and not below `written`, are erased.
    erased: u32,
    /// Changes whenever bytes that were stored no longer are.
    epoch: u32,
}

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Bytes stored.
    pub len: u32,
    /// Whether they are a whole image that was verified.
    pub is_verified: bool,
    /// SHA-256 of the bytes stored.
    pub sha256: [u8; 32],
}

/// What is stored, for those who ask while a writer has the slot.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) len: u32,
    pub(crate) sum: Sha256,
}

impl Stored {
    pub(crate) fn held(&self) -> Held {
        Held {
            len: self.len,
            is_verified: false,
            sha256: self.sum.clone().finalize().into(),
        }
    }
}

/// Why a slot refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotError {
    /// The image is longer than the slot, its trailer aside.
    TooLarge,
    /// The bytes begin elsewhere than those stored end, or the image's length is another one.
    Misplaced,
    /// The image is not one to take.
    Image(ImageError),
    /// Flash has failed, or has units that the slot does not serve.
    Flash,
}

impl<F, S> Slot<F, S> {
    /// What is stored as far as it is added up: without a wait.
    pub(crate) fn progress(&self) -> Option<Stored> {
        let sum = self.sum.clone()?;
        let len = self.written + self.tail_len as u32;
        Some(Stored { len, sum })
    }
}

impl<F: NorFlash, S: NorFlash> Slot<F, S> {
    /// A slot as a reset has left it. An image that the notes call verified is verified again,
    /// which takes as long as reading it: the boot loader may have put another one there.
    ///
    /// # Errors
    /// [`SlotError::Flash`]: flash fails; a slot of less than two pages, notes of less than two;
    /// words of more than 32 bytes, pages that are no multiple of 32 bytes.
    pub async fn open(image: F, notes: S, demands: Demands) -> Result<Self, SlotError> {
        let mut pages = Pages::new(image);
        let notes = Pages::new(notes);
        let fits = |read: usize, write: usize, erase: usize| {
            read <= UNIT_MAX
                && UNIT_MAX.is_multiple_of(write.max(1))
                && erase >= RECORD_LEN
                && erase.is_multiple_of(RECORD_LEN)
        };
        let is_served = fits(F::READ_SIZE, F::WRITE_SIZE, F::ERASE_SIZE)
            && fits(S::READ_SIZE, S::WRITE_SIZE, S::ERASE_SIZE)
            && pages.count() >= 2
            && notes.count() >= 2;
        if !is_served {
            return Err(SlotError::Flash);
        }
        let journal = Journal::open(notes).await.map_err(flash)?;
        let mut newest = journal.newest();
        let is_whole = newest.phase == Phase::Verified || newest.stored % Pages::<F>::PAGE == 0;
        if newest.total > capacity(&pages) || newest.stored > newest.total || !is_whole {
            newest = Entry::default();
        }
        if newest.phase == Phase::Verified {
            let verdict = demands.judge(&mut pages, newest.total).await;
            let is_right = verdict.map_err(flash)?.is_ok();
            // The boot loader puts there what ran before: as right an image, but another one.
            let sum = summed(&mut pages, newest.total).await.map_err(flash)?;
            if !is_right || begin_of(&sum) != newest.digest {
                newest = Entry::default();
            }
        }
        let mut slot = Self {
            pages,
            journal,
            demands,
            noted: newest,
            phase: newest.phase,
            total: newest.total,
            written: newest.stored,
            tail: [0; UNIT_MAX],
            tail_len: 0,
            sum: None,
            is_unsettled: false,
            is_withdrawn: false,
            erases_ahead: false,
            erased: 0,
            epoch: 0,
        };
        slot.settle();
        Ok(slot)
    }

    /// The same slot, but all pages that an image needs are erased before the first is written,
    /// and not each before it is. A sender then has no pause within an upload; but where the
    /// processor stands still for an erasure, the device does nothing else for seconds.
    #[must_use]
    pub const fn erasing_ahead(mut self) -> Self {
        self.erases_ahead = true;
        self
    }

    /// The longest image that fits, bytes.
    pub fn capacity(&self) -> u32 {
        capacity(&self.pages)
    }

    /// Bytes stored.
    pub fn stored(&self) -> u32 {
        self.written + self.tail_len as u32
    }

    /// Whether they are a whole image that was verified.
    pub fn is_verified(&self) -> bool {
        self.phase == Phase::Verified
    }

    /// Bytes of the whole image, of which some are stored.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Changes whenever bytes that were stored no longer are: two reads with the same number in
    /// between are of one image.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What is stored, with its digest: read from flash where that was not yet done since a reset.
    ///
    /// # Errors
    /// [`SlotError::Flash`].
    pub async fn held(&mut self) -> Result<Held, SlotError> {
        self.settle();
        let sha256 = self.added_up().await?.finalize().into();
        Ok(Held {
            len: self.stored(),
            is_verified: self.is_verified(),
            sha256,
        })
    }

    /// The version of the image that is stored and was verified.
    pub(crate) async fn verified_version(&mut self) -> Option<Version> {
        let mut header = [0; Header::LEN];
        let read = self.pages.read(0, &mut header).await;
        let header = read.ok().and_then(|()| Header::parse(&header).ok())?;
        self.is_verified().then_some(header.version)
    }

    /// Whether the header of an image of `total` bytes is stored, and no more of it.
    pub(crate) async fn announces(
        &mut self,
        total: u32,
        header: &[u8; Header::LEN],
    ) -> Result<bool, SlotError> {
        self.settle();
        let is_alone = self.phase == Phase::Receiving && self.stored() == Header::LEN as u32;
        if !is_alone || self.total != total {
            return Ok(false);
        }
        let mut stored = [0; Header::LEN];
        Ok(self.read(0, &mut stored).await? == stored.len() && stored == *header)
    }

    /// Begins an image of `total` bytes, the first of which are `header`. What was stored is given
    /// up, and no longer pending.
    ///
    /// # Errors
    /// All: the slot is as it was after any but [`SlotError::Flash`].
    pub async fn begin(&mut self, total: u32, header: &[u8; Header::LEN]) -> Result<(), SlotError> {
        if total > self.capacity() {
            return Err(SlotError::TooLarge);
        }
        let judged = self.demands.judge_header(header, total);
        judged.map_err(SlotError::Image)?;
        self.restart(total).await
    }

    /// Adds bytes behind those stored.
    ///
    /// # Errors
    /// [`SlotError::Misplaced`]: more than the image has. [`SlotError::Flash`].
    pub async fn append(&mut self, bytes: &[u8]) -> Result<(), SlotError> {
        self.settle();
        let room = self.total.saturating_sub(self.stored());
        if self.phase != Phase::Receiving || bytes.len() > room as usize {
            return Err(SlotError::Misplaced);
        }
        let mut sum = self.added_up().await?;
        self.is_unsettled = true;
        if !self.is_withdrawn {
            self.withdraw().await?;
        }
        if self.erases_ahead {
            self.erase_up_to(self.total).await?;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.take(rest).await?;
        }
        if self.stored() == self.total && self.tail_len > 0 {
            self.write_tail().await?;
        }
        sum.update(bytes);
        self.sum = Some(sum);
        self.is_unsettled = false;
        Ok(())
    }

    /// Erases the next page that the image under way needs and that is not erased; returns whether
    /// there are more.
    pub(crate) async fn erase_next(&mut self) -> Result<bool, SlotError> {
        self.settle();
        let begin = self.written.next_multiple_of(Pages::<F>::PAGE);
        let at = self.erased.max(begin);
        if self.phase != Phase::Receiving || at >= self.total {
            return Ok(false);
        }
        self.is_unsettled = true;
        self.erase_up_to(at + 1).await?;
        self.is_unsettled = false;
        Ok(self.erased < self.total)
    }

    /// Verifies the image that is now whole, and makes it pending: MCUboot tries it at the next
    /// reset, and keeps it if it confirms itself. An image that does not pass is given up.
    ///
    /// # Errors
    /// [`SlotError::Image`]: the verdict. [`SlotError::Misplaced`]: bytes are missing.
    /// [`SlotError::Flash`].
    pub async fn finish(&mut self) -> Result<Version, SlotError> {
        if self.phase != Phase::Receiving || self.written != self.total {
            return Err(SlotError::Misplaced);
        }
        self.is_unsettled = true;
        let verdict = self.demands.judge(&mut self.pages, self.total).await;
        let version = match verdict.map_err(flash)? {
            Ok(version) => version,
            Err(error) => {
                self.give_up().await?;
                return Err(SlotError::Image(error));
            }
        };
        self.added_up().await?;
        self.is_withdrawn = false;
        self.make_pending().await?;
        self.note(Phase::Verified, self.total).await?;
        self.is_unsettled = false;
        Ok(version)
    }

    /// Fills `out` with the bytes from `at` on, as far as they are stored; returns how many.
    ///
    /// # Errors
    /// [`SlotError::Flash`].
    pub async fn read(&mut self, at: u32, out: &mut [u8]) -> Result<usize, SlotError> {
        let count = out.len().min(self.written.saturating_sub(at) as usize);
        let Some((from_flash, rest)) = out.split_at_mut_checked(count) else {
            return Ok(0);
        };
        self.pages.read(at, from_flash).await.map_err(flash)?;
        let skipped = at.saturating_sub(self.written) as usize;
        let tail = self.tail.get(skipped..self.tail_len).unwrap_or_default();
        for (place, byte) in rest.iter_mut().zip(tail) {
            *place = *byte;
        }
        Ok(count + rest.len().min(tail.len()))
    }

    /// Gives up what is stored.
    ///
    /// # Errors
    /// [`SlotError::Flash`].
    pub async fn give_up(&mut self) -> Result<(), SlotError> {
        self.note(Phase::Empty, 0).await?;
        self.total = 0;
        self.rewind(0);
        self.is_unsettled = false;
        Ok(())
    }
}

impl<F: NorFlash, S: NorFlash> Slot<F, S> {
    /// Notes that nothing of the new image is stored. The one before stays pending until the first
    /// of its pages is about to be erased. Where no more than a first page was written since pages
    /// were erased, that one alone is erased again: a client that announces one image after another
    /// wears no others out.
    async fn restart(&mut self, total: u32) -> Result<(), SlotError> {
        self.settle();
        let page = Pages::<F>::PAGE;
        let erased = match self.written <= page {
            true if self.erased > page => self.erased,
            _ => 0,
        };
        let is_first_used = self.written > 0;
        self.is_unsettled = true;
        self.total = total;
        self.note(Phase::Receiving, 0).await?;
        self.rewind(0);
        if erased > 0 && is_first_used {
            self.pages.erase(0).await.map_err(flash)?;
        }
        self.erased = erased;
        self.is_unsettled = false;
        Ok(())
    }

    /// Erases the trailer of an image that is pending: one that is about to be replaced, or one
    /// whose power was cut before it was noted that it is.
    async fn withdraw(&mut self) -> Result<(), SlotError> {
        let trailer = self.capacity();
        if !self.is_blank(trailer).await {
            self.pages.erase(trailer).await.map_err(flash)?;
        }
        self.is_withdrawn = true;
        Ok(())
    }

    /// Erases the pages from the next one to write up to this place; after a reset again, for one
    /// whose erasure was cut may read as if it were erased. Other tasks run between two of them.
    async fn erase_up_to(&mut self, end: u32) -> Result<(), SlotError> {
        let begin = self.written.next_multiple_of(Pages::<F>::PAGE);
        self.erased = self.erased.max(begin);
        while self.erased < end {
            self.pages.erase(self.erased).await.map_err(flash)?;
            self.erased += Pages::<F>::PAGE;
            if self.erased < end {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Whether a page has nothing but erased bytes. What cannot be read is not blank.
    async fn is_blank(&mut self, page: u32) -> bool {
        let mut block = [0; UNIT_MAX];
        for at in (page..page + Pages::<F>::PAGE).step_by(UNIT_MAX) {
            let read = self.pages.read(at, &mut block).await;
            if read.is_err() || block.iter().any(|byte| *byte != ERASED) {
                return false;
            }
        }
        true
    }

    /// Takes bytes up to the end of a page, or of a word, and returns those that are left.
    async fn take<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], SlotError> {
        let unit = F::WRITE_SIZE.max(1);
        if self.tail_len > 0 || bytes.len() < unit {
            let missing = unit - self.tail_len;
            let (now, rest) = bytes.split_at(missing.min(bytes.len()));
            if let Some(place) = self.tail.get_mut(self.tail_len..self.tail_len + now.len()) {
                place.copy_from_slice(now);
            }
            self.tail_len += now.len();
            if self.tail_len == unit {
                self.write_tail().await?;
            }
            return Ok(rest);
        }
        let page_left = Pages::<F>::PAGE - self.written % Pages::<F>::PAGE;
        let whole = bytes.len() - bytes.len() % unit;
        let (now, rest) = bytes.split_at(whole.min(page_left as usize));
        self.put(now, now.len() as u32).await?;
        Ok(rest)
    }

    /// Writes the bytes that make a word, or end the image.
    async fn write_tail(&mut self) -> Result<(), SlotError> {
        let unit = F::WRITE_SIZE.max(1);
        let mut word = [ERASED; UNIT_MAX];
        let len = self.tail_len;
        for (place, byte) in word.iter_mut().zip(self.tail.iter().take(len)) {
            *place = *byte;
        }
        self.tail_len = 0;
        let word = word.get(..unit).unwrap_or_default();
        self.put(word, len as u32).await
    }

    /// Writes words that begin and end in one page, of which `len` bytes count; the page is erased
    /// before its first word, and noted behind its last.
    async fn put(&mut self, words: &[u8], len: u32) -> Result<(), SlotError> {
        if self.written.is_multiple_of(Pages::<F>::PAGE) {
            self.erase_up_to(self.written + 1).await?;
        }
        self.pages.write(self.written, words).await.map_err(flash)?;
        self.written += len;
        if self.written.is_multiple_of(Pages::<F>::PAGE) && self.written < self.total {
            self.note(Phase::Receiving, self.written).await?;
        }
        Ok(())
    }

    async fn note(&mut self, phase: Phase, stored: u32) -> Result<(), SlotError> {
        let entry = Entry {
            phase,
            stored,
            total: self.total,
            digest: match (&self.sum, phase) {
                (Some(sum), Phase::Verified) => begin_of(sum),
                _ => [0; DIGEST_LEN],
            },
        };
        self.journal.note(entry).await.map_err(flash)?;
        self.noted = entry;
        self.phase = phase;
        Ok(())
    }

    /// Writes the magic number at the slot's end by which MCUboot knows a pending image. Where a
    /// power cut has torn an earlier one, its page is erased first.
    async fn make_pending(&mut self) -> Result<(), SlotError> {
        let trailer = self.capacity();
        // The magic's 16 bytes end the slot; where a word is longer, it fills the word's end.
        let unit = F::WRITE_SIZE.max(MAGIC.len());
        let mut word = [ERASED; UNIT_MAX];
        if let Some(place) = word.get_mut(unit - MAGIC.len()..unit) {
            place.copy_from_slice(&magic(F::WRITE_SIZE));
        }
        let at = trailer + Pages::<F>::PAGE - unit as u32;
        let mut there = [0; UNIT_MAX];
        let there = there.get_mut(..unit).unwrap_or_default();
        let is_read = self.pages.read(at, there).await.is_ok();
        if !is_read || there.iter().any(|byte| *byte != ERASED) {
            self.pages.erase(trailer).await.map_err(flash)?;
        }
        let word = word.get(..unit).unwrap_or_default();
        self.pages.write(at, word).await.map_err(flash)
    }

    /// Falls back to what holds for sure: a page's begin where an operation has not ended, and
    /// where an image is whole that nobody has verified.
    fn settle(&mut self) {
        let is_unverified =
            self.phase == Phase::Receiving && self.total > 0 && self.stored() >= self.total;
        if !self.is_unsettled && !is_unverified {
            return;
        }
        let newest = self.noted;
        self.phase = newest.phase;
        self.total = newest.total;
        // Notes of a part are of whole pages, and never of all: the last page waits for the
        // verdict.
        let held = newest.stored;
        self.rewind(held);
        self.is_unsettled = false;
    }

    fn rewind(&mut self, held: u32) {
        self.epoch = self.epoch.wrapping_add(1);
        // Words behind that place may be written.
        self.erased = 0;
        self.written = held;
        self.tail_len = 0;
        self.sum = None;
    }

    /// The sum over all that is stored.
    async fn added_up(&mut self) -> Result<Sha256, SlotError> {
        if let Some(sum) = &self.sum {
            return Ok(sum.clone());
        }
        let mut added = summed(&mut self.pages, self.written).await.map_err(flash)?;
        added.update(self.tail.get(..self.tail_len).unwrap_or_default());
        self.sum = Some(added.clone());
        Ok(added)
    }
}

/// All but the last page.
fn capacity<F: NorFlash>(pages: &Pages<F>) -> u32 {
    pages.count().saturating_sub(1) * Pages::<F>::PAGE
}

/// The first bytes of a digest.
fn begin_of(sum: &Sha256) -> [u8; DIGEST_LEN] {
    let whole: [u8; 32] = sum.clone().finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = whole;
    [a, b, c, d, e, f, g, h]
}

fn flash<E: NorFlashError>(_: E) -> SlotError {
    SlotError::Flash
}

/// MCUboot's magic number of a pending image. Where a word has more than 8 bytes, it says how many.
fn magic(unit: usize) -> [u8; 16] {
    match u8::try_from(unit) {
        Ok(unit @ 9..) => {
            let mut magic = MAGIC_OF_WORDS;
            if let Some(first) = magic.first_mut() {
                *first = unit;
            }
            magic
        }
        _ => MAGIC,
    }
}

/// `BOOT_MAGIC_VALUES`. Source: MCUboot, design document, "Image trailer".
const MAGIC: [u8; 16] = [
    0x77, 0xc2, 0x95, 0xf3, 0x60, 0xd2, 0xef, 0x7f, 0x35, 0x52, 0x50, 0x0f, 0x2c, 0xb6, 0x79, 0x80,
];

/// The same for words of more than 8 bytes: the first two bytes are their length.
const MAGIC_OF_WORDS: [u8; 16] = [
    0, 0, 0x2d, 0xe1, 0x5d, 0x29, 0x41, 0x0b, 0x8d, 0x77, 0x67, 0x9c, 0x11, 0x0f, 0x1f, 0x8a,
];
