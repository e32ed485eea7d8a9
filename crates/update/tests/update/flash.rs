//! Flash that a test can cut the power of: words and pages are torn, and what was written twice is
//! found.

use std::cell::{Cell, RefCell};

use embassy_futures::yield_now;
use embedded_storage_async::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use sha2::{Digest as _, Sha256};

/// The flash of a device.
pub(crate) struct Chip {
    pub(crate) bytes: RefCell<Vec<u8>>,
    /// Words written and pages erased so far.
    pub(crate) operations: Cell<u64>,
    /// Which of them finds no power.
    pub(crate) cut_at: Cell<u64>,
    /// Pages erased since the chip was made, by their place in it.
    pub(crate) erasures: RefCell<Vec<usize>>,
    /// Whether other tasks run during an operation.
    pub(crate) yields: Cell<bool>,
    seed: Cell<u64>,
}

impl Chip {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            bytes: RefCell::new(vec![0xFF; len]),
            operations: Cell::new(0),
            erasures: RefCell::default(),
            cut_at: Cell::new(u64::MAX),
            yields: Cell::new(false),
            seed: Cell::new(1),
        }
    }

    /// The power comes again, and is cut at the operation after `operations` more.
    pub(crate) fn power_up(&self, operations: u64, seed: u64) {
        self.operations.set(0);
        self.cut_at.set(operations);
        self.seed.set(seed.wrapping_mul(2).wrapping_add(1));
    }

    pub(crate) fn has_power(&self) -> bool {
        self.operations.get() <= self.cut_at.get()
    }

    pub(crate) fn part<const R: usize, const W: usize, const E: usize>(
        &self,
        from: usize,
        len: usize,
    ) -> Part<'_, R, W, E> {
        Part {
            chip: self,
            from,
            len,
        }
    }

    /// Counts an operation: whole, torn, or none for want of power.
    fn begin(&self) -> Operation {
        let number = self.operations.get();
        self.operations.set(number + 1);
        match number.cmp(&self.cut_at.get()) {
            std::cmp::Ordering::Less => Operation::Whole,
            std::cmp::Ordering::Equal => Operation::Torn,
            std::cmp::Ordering::Greater => Operation::None,
        }
    }

    fn random(&self) -> u8 {
        let mut x = self.seed.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.seed.set(x);
        (x >> 24) as u8
    }
}

enum Operation {
    Whole,
    Torn,
    None,
}

/// A partition: `R`, `W` and `E` are the units of reading, writing and erasing.
pub(crate) struct Part<'c, const R: usize, const W: usize, const E: usize> {
    chip: &'c Chip,
    from: usize,
    len: usize,
}

#[derive(Debug)]
pub(crate) struct NoPower;

impl NorFlashError for NoPower {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl<const R: usize, const W: usize, const E: usize> ErrorType for Part<'_, R, W, E> {
    type Error = NoPower;
}

impl<const R: usize, const W: usize, const E: usize> ReadNorFlash for Part<'_, R, W, E> {
    const READ_SIZE: usize = R;

    async fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), NoPower> {
        let at = offset as usize;
        assert!(at.is_multiple_of(R) && out.len().is_multiple_of(R));
        assert!(at + out.len() <= self.len, "a read beyond the partition");
        if !self.chip.has_power() {
            return Err(NoPower);
        }
        let bytes = self.chip.bytes.borrow();
        out.copy_from_slice(&bytes[self.from + at..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.len
    }
}

impl<const R: usize, const W: usize, const E: usize> NorFlash for Part<'_, R, W, E> {
    const WRITE_SIZE: usize = W;
    const ERASE_SIZE: usize = E;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NoPower> {
        let (from, to) = (from as usize, to as usize);
        assert!(from.is_multiple_of(E) && to.is_multiple_of(E) && to <= self.len);
        for page in (from..to).step_by(E) {
            if self.chip.yields.get() {
                yield_now().await;
            }
            let operation = self.chip.begin();
            self.chip.erasures.borrow_mut().push(self.from + page);
            let mut bytes = self.chip.bytes.borrow_mut();
            for byte in &mut bytes[self.from + page..][..E] {
                match operation {
                    Operation::Whole => *byte = 0xFF,
                    Operation::Torn => *byte |= self.chip.random(),
                    Operation::None => return Err(NoPower),
                }
            }
            if !matches!(operation, Operation::Whole) {
                return Err(NoPower);
            }
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, words: &[u8]) -> Result<(), NoPower> {
        let at = offset as usize;
        assert!(at.is_multiple_of(W) && words.len().is_multiple_of(W));
        assert!(at + words.len() <= self.len, "a write beyond the partition");
        for (index, word) in words.chunks(W).enumerate() {
            if self.chip.yields.get() {
                yield_now().await;
            }
            let operation = self.chip.begin();
            let mut bytes = self.chip.bytes.borrow_mut();
            let place = &mut bytes[self.from + at + index * W..][..W];
            match operation {
                Operation::Whole => {
                    let is_erased = place.iter().all(|byte| *byte == 0xFF);
                    assert!(is_erased, "a word at {at} + {index} words is written twice");
                    place.copy_from_slice(word);
                }
                Operation::Torn => {
                    for (byte, new) in place.iter_mut().zip(word) {
                        *byte &= new | self.chip.random();
                    }
                    return Err(NoPower);
                }
                Operation::None => return Err(NoPower),
            }
        }
        Ok(())
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// An image as MCUboot's documentation describes it, byte by byte, without a signature.
pub(crate) fn image(payload: &[u8], version: [u8; 8]) -> Vec<u8> {
    let mut image = Vec::new();
    image.extend(0x96f3_b83d_u32.to_le_bytes());
    image.extend([0; 4]);
    image.extend(32_u16.to_le_bytes());
    image.extend(0_u16.to_le_bytes());
    image.extend((payload.len() as u32).to_le_bytes());
    image.extend([0; 4]);
    image.extend(version);
    image.extend([0; 4]);
    image.extend(payload);
    let hash = sha256(&image);
    image.extend(0x6907_u16.to_le_bytes());
    image.extend(40_u16.to_le_bytes());
    image.extend(0x10_u16.to_le_bytes());
    image.extend(32_u16.to_le_bytes());
    image.extend(hash);
    image
}

/// Bytes that differ with the seed.
pub(crate) fn noise(len: usize, seed: u8) -> Vec<u8> {
    let mut sum = sha256(&[seed]);
    let mut bytes = Vec::new();
    while bytes.len() < len {
        bytes.extend(sum);
        sum = sha256(&sum);
    }
    bytes.truncate(len);
    bytes
}
