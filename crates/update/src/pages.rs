//! Flash, read at any place.

use embedded_storage_async::nor_flash::NorFlash;

/// Flash whose reads need no alignment.
#[derive(Debug)]
pub(crate) struct Pages<F> {
    flash: F,
}

impl<F: NorFlash> Pages<F> {
    pub(crate) const fn new(flash: F) -> Self {
        Self { flash }
    }

    /// Bytes of a page.
    pub(crate) const PAGE: u32 = F::ERASE_SIZE as u32;

    /// Whole pages.
    pub(crate) fn count(&self) -> u32 {
        (self.flash.capacity() / F::ERASE_SIZE.max(1)) as u32
    }

    /// Fills `out` with the bytes from `at` on.
    pub(crate) async fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), F::Error> {
        let unit = F::READ_SIZE.max(1);
        if (at as usize).is_multiple_of(unit) && out.len().is_multiple_of(unit) {
            return self.flash.read(at, out).await;
        }
        let mut window = [0; WINDOW_LEN];
        let mut at = at as usize;
        for part in out.chunks_mut(WINDOW_LEN / 2) {
            let skipped = at % unit;
            let len = (skipped + part.len()).next_multiple_of(unit);
            // Fits: a unit has no more than a quarter of the window (`Slot::open` looks).
            if let Some(window) = window.get_mut(..len) {
                self.flash.read((at - skipped) as u32, window).await?;
                if let Some(read) = window.get(skipped..skipped + part.len()) {
                    part.copy_from_slice(read);
                }
            }
            at += part.len();
        }
        Ok(())
    }

    /// Erases the page that begins at `at`.
    pub(crate) async fn erase(&mut self, at: u32) -> Result<(), F::Error> {
        self.flash.erase(at, at + Self::PAGE).await
    }

    /// Writes whole words at a word's begin.
    pub(crate) async fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), F::Error> {
        self.flash.write(at, bytes).await
    }
}

/// Bytes that a read which is not aligned has a copy of.
const WINDOW_LEN: usize = 128;

/// The largest unit of reading or writing that is served, bytes.
pub(crate) const UNIT_MAX: usize = 32;
