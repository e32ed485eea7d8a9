//! What a slot holds, noted so that no power cut can blur it.
//!
//! Place: at least two pages of flash beside the slot. Records follow one another; the newest whole
//! one holds. A page is erased only when a newer record than all of its own stands in the page
//! before it, and a record that a power cut has torn fails its sum: so either the record counts or
//! the one before it does. Where records are, is found by reading: RAM holds nothing that a reset
//! could lose.

use embedded_storage_async::nor_flash::NorFlash;
use sha2::{Digest as _, Sha256};

use crate::pages::Pages;

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) phase: Phase,
    /// Bytes stored.
    pub(crate) stored: u32,
    /// Bytes of the whole image.
    pub(crate) total: u32,
    /// The first bytes of the SHA-256 of a whole image; zeros of others.
    pub(crate) digest: [u8; DIGEST_LEN],
}

/// How far an image is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Phase {
    /// Nothing is stored.
    #[default]
    Empty,
    /// A part is stored.
    Receiving,
    /// The whole is stored, was verified, and is pending.
    Verified,
}

/// The records of one slot.
#[derive(Debug)]
pub(crate) struct Journal<S> {
    pages: Pages<S>,
    /// The place of the next record.
    next: u32,
    /// The number of the newest record.
    sequence: u32,
    newest: Entry,
}

impl<S: NorFlash> Journal<S> {
    /// Finds the newest record.
    pub(crate) async fn open(mut pages: Pages<S>) -> Result<Self, S::Error> {
        let count = pages.count();
        let mut newest: Option<(u32, u32, Entry)> = None;
        for page in 0..count {
            for at in records(page, Pages::<S>::PAGE) {
                let mut record = [0; RECORD_LEN];
                // What cannot be read, because error correction gives a torn word up, is no record.
                if pages.read(at, &mut record).await.is_ok()
                    && let Some((sequence, entry)) = parse(&record)
                    && newest.is_none_or(|(newest, ..)| sequence > newest)
                {
                    newest = Some((sequence, at, entry));
                }
            }
        }
        let mut journal = Self {
            pages,
            next: 0,
            sequence: 0,
            newest: Entry::default(),
        };
        if let Some((sequence, at, entry)) = newest {
            journal.sequence = sequence;
            journal.newest = entry;
            journal.next = at + RECORD_LEN as u32;
        }
        Ok(journal)
    }

    /// The newest record.
    pub(crate) const fn newest(&self) -> Entry {
        self.newest
    }

    /// Appends a record.
    pub(crate) async fn note(&mut self, entry: Entry) -> Result<(), S::Error> {
        let at = self.place().await?;
        let record = emit(self.sequence.wrapping_add(1), entry);
        // Whatever becomes of it, its place is used up.
        self.next = at + RECORD_LEN as u32;
        self.pages.write(at, &record).await?;
        self.sequence = self.sequence.wrapping_add(1);
        self.newest = entry;
        Ok(())
    }

    /// A place for the next record: behind the newest, past places that power cuts have torn, or at
    /// the begin of the next page, which is then erased.
    async fn place(&mut self) -> Result<u32, S::Error> {
        let page_len = Pages::<S>::PAGE;
        while self.sequence > 0 && !self.next.is_multiple_of(page_len) {
            let mut there = [0; RECORD_LEN];
            let is_read = self.pages.read(self.next, &mut there).await.is_ok();
            if is_read && there.iter().all(|byte| *byte == ERASED) {
                return Ok(self.next);
            }
            self.next += RECORD_LEN as u32;
        }
        let pages = self.pages.count().max(1);
        let page = (self.next / page_len) % pages;
        let at = page * page_len;
        self.pages.erase(at).await?;
        Ok(at)
    }
}

/// Where the records of a page are: it is a whole number of them (`Slot::open` looks).
fn records(page: u32, page_len: u32) -> impl Iterator<Item = u32> {
    let first = page * page_len;
    (first..first + page_len).step_by(RECORD_LEN)
}

/// A record: number, bytes stored, bytes of the whole and phase, each 4 bytes; the first 8 bytes of
/// the image's SHA-256; then the first 8 bytes of the SHA-256 of those 24.
fn emit(sequence: u32, entry: Entry) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    let phase = match entry.phase {
        Phase::Empty => 1,
        Phase::Receiving => 2,
        Phase::Verified => 3,
    };
    let fields = [sequence, entry.stored, entry.total, phase];
    for (place, field) in record.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    if let Some(place) = record.get_mut(FIELDS_LEN..SUMMED_LEN) {
        place.copy_from_slice(&entry.digest);
    }
    let (summed, place) = record.split_at_mut(SUMMED_LEN);
    place.copy_from_slice(&check(summed));
    record
}

fn parse(record: &[u8; RECORD_LEN]) -> Option<(u32, Entry)> {
    let (summed, sum) = record.split_at(SUMMED_LEN);
    if sum != check(summed) {
        return None;
    }
    let mut fields = summed.chunks_exact(4).map(|field| {
        let field = <[u8; 4]>::try_from(field);
        field.map(u32::from_le_bytes)
    });
    let mut field = || fields.next()?.ok();
    let (sequence, stored, total, phase) = (field()?, field()?, field()?, field()?);
    let phase = match phase {
        1 => Phase::Empty,
        2 => Phase::Receiving,
        3 => Phase::Verified,
        _ => return None,
    };
    let digest = summed.get(FIELDS_LEN..)?.try_into().ok()?;
    let entry = Entry {
        phase,
        stored,
        total,
        digest,
    };
    Some((sequence, entry))
}

fn check(bytes: &[u8]) -> [u8; RECORD_LEN - SUMMED_LEN] {
    let sum: [u8; 32] = Sha256::digest(bytes).into();
    let [a, b, c, d, e, f, g, h, ..] = sum;
    [a, b, c, d, e, f, g, h]
}

/// Bytes of a record: one write where the flash's unit is 32 bytes, eight where it is 4.
pub(crate) const RECORD_LEN: usize = 32;

/// Bytes of the numbers at its begin.
const FIELDS_LEN: usize = 16;

/// Bytes of an image's SHA-256 in it.
pub(crate) const DIGEST_LEN: usize = 8;

/// Bytes that the sum is over.
const SUMMED_LEN: usize = 24;

/// A byte of flash after it was erased.
pub(crate) const ERASED: u8 = 0xFF;
