//! Which cipher encrypts: AES in software, or the chip's.

use super::ccm::{Block, Cipher};
use super::keys::{LinkKey, Software};

/// The implementation of AES-128 that encrypts blocks.
#[derive(Clone, Copy, Debug)]
pub enum Engine {
    /// AES in software, in constant time; its expanded key takes 176 bytes.
    Software,
    /// The AES of the chip: encrypts two blocks, each by itself, with this key.
    Chip(fn(&LinkKey, &mut [Block; 2])),
}

/// The cipher with a key, ready for frames.
#[derive(Debug)]
pub(crate) enum Keyed {
    Software(Software),
    Chip(fn(&LinkKey, &mut [Block; 2]), LinkKey),
}

impl Keyed {
    pub(crate) fn new(engine: Engine, key: &LinkKey) -> Self {
        match engine {
            Engine::Software => Self::Software(Software::new(key)),
            Engine::Chip(encrypt) => Self::Chip(encrypt, *key),
        }
    }
}

impl Cipher for Keyed {
    fn encrypt(&self, pair: &mut [Block; 2]) {
        match self {
            Self::Software(software) => software.encrypt(pair),
            Self::Chip(encrypt, key) => encrypt(key, pair),
        }
    }
}
