//! One slot for all connections: many read, one writes.
//!
//! A writer holds the slot only while it stores a piece, so that others read what is stored already
//! while more comes in. What `HEAD` is told meanwhile is added up after each piece: to ask the slot
//! itself would give up what a writer has not finished.

use core::cell::{Cell, RefCell};
use core::ops::{Deref, DerefMut};

use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::mutex::{Mutex, MutexGuard};
use embedded_storage_async::nor_flash::NorFlash;

use crate::slot::{Held, Slot, SlotError, Stored};

/// A slot that several connections have.
#[derive(Debug)]
pub(crate) struct Shared<F, S> {
    slot: Mutex<NoopRawMutex, Slot<F, S>>,
    has_writer: Cell<bool>,
    /// What is stored, while there is a writer.
    progress: RefCell<Option<Stored>>,
}

/// How much of an image is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) stored: u32,
    /// Bytes of the whole.
    pub(crate) total: u32,
    pub(crate) is_verified: bool,
    /// Changes whenever bytes that were stored no longer are.
    pub(crate) epoch: u32,
}

/// The right to write; dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Writer<'s>(&'s Cell<bool>);

/// The slot while a writer changes it.
#[derive(Debug)]
pub(crate) struct Change<'s, F, S> {
    slot: MutexGuard<'s, NoopRawMutex, Slot<F, S>>,
    progress: &'s RefCell<Option<Stored>>,
}

impl<F: NorFlash, S: NorFlash> Shared<F, S> {
    pub(crate) const fn new(slot: Slot<F, S>) -> Self {
        Self {
            slot: Mutex::new(slot),
            has_writer: Cell::new(false),
            progress: RefCell::new(None),
        }
    }

    /// The right to write; `None` while another has it. What is stored is added up, so that those
    /// who ask meanwhile are told the truth.
    pub(crate) async fn begin_writing(&self) -> Option<Writer<'_>> {
        if self.has_writer.replace(true) {
            return None;
        }
        let writer = Writer(&self.has_writer);
        let mut slot = self.slot.lock().await;
        // Flash that fails here fails the writer as well.
        let _ = slot.held().await;
        *self.progress.borrow_mut() = slot.progress();
        Some(writer)
    }

    /// The slot, for the writer.
    pub(crate) async fn change(&self) -> Change<'_, F, S> {
        Change {
            slot: self.slot.lock().await,
            progress: &self.progress,
        }
    }

    /// What is stored, also while there is a writer.
    pub(crate) async fn held(&self) -> Result<Held, SlotError> {
        if self.has_writer.get() {
            let progress = self.progress.borrow();
            return Ok(progress.as_ref().map_or(Held::default(), Stored::held));
        }
        self.slot.lock().await.held().await
    }

    /// How much of an image is stored.
    pub(crate) async fn extent(&self) -> Extent {
        let slot = self.slot.lock().await;
        Extent {
            stored: slot.stored(),
            total: slot.total(),
            is_verified: slot.is_verified(),
            epoch: slot.epoch(),
        }
    }

    /// Fills `out` with bytes that are stored since `epoch`; returns whether all are.
    pub(crate) async fn read(&self, at: u32, out: &mut [u8], epoch: u32) -> bool {
        let mut slot = self.slot.lock().await;
        slot.epoch() == epoch && slot.read(at, out).await == Ok(out.len())
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<F, S> Deref for Change<'_, F, S> {
    type Target = Slot<F, S>;

    fn deref(&self) -> &Slot<F, S> {
        &self.slot
    }
}

impl<F, S> DerefMut for Change<'_, F, S> {
    fn deref_mut(&mut self) -> &mut Slot<F, S> {
        &mut self.slot
    }
}

impl<F, S> Drop for Change<'_, F, S> {
    fn drop(&mut self) {
        *self.progress.borrow_mut() = self.slot.progress();
    }
}
