//! The Active Operational Dataset of a network, which its owner exports.
//!
//! Purpose: reads the TLVs that a child needs and skips all others. Left out: pending datasets, the
//! security policy, the channel mask. Source: Thread 1.1 §8.10.1.

use super::tlv::Tlvs;
use crate::mac::security::{KEY_LEN, NetworkKey};

/// The longest dataset, bytes (Thread 1.1 §8.10.1).
pub const DATASET_LEN_MAX: usize = 254;

/// What a child needs of a dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dataset {
    /// Channel, 11 to 26.
    pub channel: u8,
    /// The identifier of the PAN.
    pub pan: u16,
    /// The key of the network.
    pub network: NetworkKey,
    /// The first 64 bits of the addresses that are valid within the mesh.
    pub mesh_local_prefix: [u8; 8],
    /// The active timestamp, as it is sent: which version of the dataset this is.
    pub timestamp: [u8; 8],
}

/// Why a dataset cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatasetError {
    /// A character is no hexadecimal digit, or a digit has no other half.
    NotHex,
    /// More than [`DATASET_LEN_MAX`] bytes.
    TooLong,
    /// The last TLV ends too early.
    Truncated,
    /// There is no channel in it, or no usable length of it.
    NoChannel,
    /// The channel is none of the 2.4 GHz band, 11 to 26.
    OtherBand,
    /// There is no PAN identifier.
    NoPan,
    /// There is no network key of 16 bytes.
    NoKey,
    /// There is no mesh-local prefix of 8 bytes.
    NoPrefix,
    /// There is no active timestamp of 8 bytes.
    NoTimestamp,
}

impl DatasetError {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NotHex => "the dataset is not written in pairs of hexadecimal digits",
            Self::TooLong => "the dataset is longer than 254 bytes",
            Self::Truncated => "the dataset ends too early",
            Self::NoChannel => "the dataset names no channel",
            Self::OtherBand => "the dataset's channel is not one of 11 to 26",
            Self::NoPan => "the dataset names no PAN",
            Self::NoKey => "the dataset has no network key",
            Self::NoPrefix => "the dataset has no mesh-local prefix",
            Self::NoTimestamp => "the dataset has no active timestamp",
        }
    }
}

speaks!(DatasetError);

impl Dataset {
    /// Reads the TLVs of a dataset. Where a type is there twice, the first one counts.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DatasetError> {
        if bytes.len() > DATASET_LEN_MAX {
            return Err(DatasetError::TooLong);
        }
        let tlvs = Tlvs::parse(bytes).map_err(|_| DatasetError::Truncated)?;
        let mut dataset = Self {
            channel: 0,
            pan: 0,
            network: NetworkKey::new([0; KEY_LEN]),
            mesh_local_prefix: [0; 8],
            timestamp: [0; 8],
        };
        let (mut place, mut pan, mut key) = ([0; 3], [0; 2], [0; KEY_LEN]);
        let needed: [(u8, &mut [u8], DatasetError); 5] = [
            (CHANNEL, &mut place, DatasetError::NoChannel),
            (PAN, &mut pan, DatasetError::NoPan),
            (NETWORK_KEY, &mut key, DatasetError::NoKey),
            (
                MESH_LOCAL_PREFIX,
                &mut dataset.mesh_local_prefix,
                DatasetError::NoPrefix,
            ),
            (
                ACTIVE_TIMESTAMP,
                &mut dataset.timestamp,
                DatasetError::NoTimestamp,
            ),
        ];
        for (kind, value, error) in needed {
            if !tlvs.fill(kind, value) {
                return Err(error);
            }
        }
        dataset.channel = match place {
            [0, 0, channel @ 11..=26] => channel,
            _ => return Err(DatasetError::OtherBand),
        };
        dataset.pan = u16::from_be_bytes(pan);
        dataset.network = NetworkKey::new(key);
        Ok(dataset)
    }

    /// As [`Self::parse`], of hexadecimal digits. Blanks are skipped, and a last line `Done`, which
    /// `ot-ctl` prints, is as well.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn parse_hex(text: &str) -> Result<Self, DatasetError> {
        let text = text.trim();
        let text = text.strip_suffix("Done").unwrap_or(text);
        let mut digits = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
        let mut bytes = [0; DATASET_LEN_MAX];
        let mut len = 0;
        while let Some(high) = digits.next() {
            let low = digits.next().ok_or(DatasetError::NotHex)?;
            let [high, low] = [high, low].map(|digit| char::from(digit).to_digit(16));
            let (high, low) = high.zip(low).ok_or(DatasetError::NotHex)?;
            *bytes.get_mut(len).ok_or(DatasetError::TooLong)? = (high << 4 | low) as u8;
            len += 1;
        }
        Self::parse(bytes.get(..len).unwrap_or_default())
    }
}

/// Types of a dataset's TLVs.
const CHANNEL: u8 = 0;
const PAN: u8 = 1;
const NETWORK_KEY: u8 = 5;
const MESH_LOCAL_PREFIX: u8 = 7;
const ACTIVE_TIMESTAMP: u8 = 14;
