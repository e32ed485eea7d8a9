//! The auxiliary security header.
//!
//! ```text
//!       1           4             1
//! +----------+---------------+-----------+
//! | security | frame counter | key index |
//! | control  |               |           |
//! +----------+---------------+-----------+
//!   bits: level 0-2, key identifier mode 3-4, reserved 5-7.  Least significant byte first.
//! ```
//!
//! Place: behind the addresses of a frame whose control field says that it is secured.
//! Left out: all levels that do not both encrypt and authenticate, all key identifier modes but 1.
//! Source: IEEE 802.15.4-2006 §7.6.2.

use super::{Header, ParseError, SECURITY, Version};
use crate::wire::cursor::{Full, Reader, Writer};

/// The auxiliary security header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auxiliary {
    /// How the frame is secured.
    pub level: Level,
    /// Never twice the same of one sender with one key.
    pub counter: u32,
    /// Which key: 1 to 255.
    pub key_index: u8,
}

/// A security level: payload encrypted, and authenticated together with the header (§7.6.2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// Level 5, ENC-MIC-32: encrypted, with 4 bytes of MIC.
    #[default]
    Mic32,
    /// Level 6, ENC-MIC-64: encrypted, with 8 bytes of MIC.
    Mic64,
    /// Level 7, ENC-MIC-128: encrypted, with 16 bytes of MIC.
    Mic128,
}

impl Level {
    /// All of them, the weakest first.
    pub const ALL: [Self; 3] = [Self::Mic32, Self::Mic64, Self::Mic128];

    /// The number by which frames and nonces name it.
    pub const fn number(self) -> u8 {
        match self {
            Self::Mic32 => 5,
            Self::Mic64 => 6,
            Self::Mic128 => 7,
        }
    }

    /// Bytes of the message integrity code behind the payload.
    pub const fn mic_len(self) -> usize {
        match self {
            Self::Mic32 => 4,
            Self::Mic64 => 8,
            Self::Mic128 => 16,
        }
    }

    /// The level that frames name by `number`; none that leaves out encryption or authentication.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            5 => Some(Self::Mic32),
            6 => Some(Self::Mic64),
            7 => Some(Self::Mic128),
            _ => None,
        }
    }
}

impl Auxiliary {
    /// How many bytes [`Self::emit`] writes.
    pub const LEN: usize = 6;

    /// Reads what follows the addresses.
    ///
    /// # Errors
    /// [`ParseError::Truncated`]; [`ParseError::Security`] for what is left out here, for a
    /// reserved bit, and for key index 0, which no key has.
    pub fn parse(r: &mut Reader<'_>) -> Result<Self, ParseError> {
        let control = r.u8()?;
        let level = Level::from_number(control & 7);
        let level = level
            .filter(|_| control >> 3 == KEY_INDEX_MODE)
            .ok_or(ParseError::Security)?;
        let counter = u32::from_le_bytes(r.array()?);
        match r.u8()? {
            0 => Err(ParseError::Security),
            key_index => Ok(Self {
                level,
                counter,
                key_index,
            }),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Full`] when the output is too short.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.u8(KEY_INDEX_MODE << 3 | self.level.number())?;
        w.put(&self.counter.to_le_bytes())?;
        w.u8(self.key_index)
    }
}

impl Header {
    /// Reads the header of `mpdu`, a frame without its FCS that may be secured; returns it, the
    /// auxiliary security header where there is one, and the remaining bytes: in a secured frame
    /// these are the encrypted payload and the MIC.
    ///
    /// # Errors
    /// As [`Self::parse`]; [`ParseError::Security`] for a secured frame of 2003, and as
    /// [`Auxiliary::parse`].
    pub fn parse_secured(mpdu: &[u8]) -> Result<(Self, Option<Auxiliary>, &[u8]), ParseError> {
        let (header, is_secured, mut r) = Self::read(mpdu, true)?;
        if !is_secured {
            return Ok((header, None, r.rest()));
        }
        if header.version != Version::V2006 {
            return Err(ParseError::Security);
        }
        let auxiliary = Auxiliary::parse(&mut r)?;
        Ok((header, Some(auxiliary), r.rest()))
    }

    /// Writes the header of a secured frame, its auxiliary security header included; returns the
    /// length. Such a frame is of version 2006, whatever `self` says.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit_secured(&self, auxiliary: &Auxiliary, out: &mut [u8]) -> Result<usize, Full> {
        let header = Self {
            version: Version::V2006,
            ..*self
        };
        let len = header.emit(out)?;
        if let Some(control) = out.first_mut() {
            *control |= SECURITY as u8;
        }
        let mut w = Writer::new(out.get_mut(len..).unwrap_or_default());
        auxiliary.emit(&mut w)?;
        Ok(len + Auxiliary::LEN)
    }
}

/// The key follows from the index and a default source (§7.6.2.2.2).
const KEY_INDEX_MODE: u8 = 1;
