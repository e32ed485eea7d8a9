//! The messages between pledge and JRC, in CBOR.
//!
//! Source: RFC 9031 §8.4: `Join_Request` and `Configuration` are maps of a few labels.

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error as DecodeError;
use minicbor::encode::write::{Cursor, EndOfSlice};
use minicbor::encode::{Encoder, Error as EncodeError};

use crate::mac::security::{KEY_LEN, NetworkKey, index};

/// The object does not fit the buffer.
type Full = EncodeError<EndOfSlice>;

/// Labels of `CoJP` (§8.4, table 2).
const LINK_LAYER_KEYS: u32 = 2;
const NETWORK: u32 = 5;

/// Pairs of a map that are looked at: it has six labels at most.
const PAIRS_MAX: u64 = 8;

/// A pledge's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The PAN that it wants to join.
    pub pan: u16,
}

impl Request {
    /// Reads it.
    ///
    /// # Errors
    /// The bytes are no request, or one for something else than to join as a node.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut d = Decoder::new(bytes);
        let mut pan = None;
        for_each_pair(&mut d, |label, d| {
            match label {
                NETWORK => pan = d.bytes()?.try_into().ok().map(u16::from_be_bytes),
                _ => return Err(DecodeError::message("a label that is not understood")),
            }
            Ok(())
        })?;
        let pan = pan.ok_or_else(|| DecodeError::message("no PAN"))?;
        Ok(Self { pan })
    }

    /// Writes it; returns its length.
    pub(super) fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut e = Encoder::new(Cursor::new(out));
        e.map(1)?.u32(NETWORK)?.bytes(&self.pan.to_be_bytes())?;
        Ok(e.writer().position())
    }
}

/// The JRC's answer to a pledge.
///
/// `Link_Layer_Key` (§8.4.3.1): key identifier, value, additional information. The value is the
/// network key, from which link keys follow; the additional information is the key sequence to
/// begin with, in four bytes, and the identifier is that sequence's key index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The key of the network.
    pub network: NetworkKey,
    /// Which of its link keys to begin with.
    pub sequence: u32,
}

impl Configuration {
    /// Reads it, and skips all parameters but keys.
    ///
    /// # Errors
    /// The bytes are no configuration, or have no key, or more than one.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut d = Decoder::new(bytes);
        let mut found = None;
        for_each_pair(&mut d, |label, d| {
            match label {
                LINK_LAYER_KEYS => found = Some(Self::parse_keys(d)?),
                _ => d.skip()?,
            }
            Ok(())
        })?;
        found.ok_or_else(|| DecodeError::message("no key"))
    }

    fn parse_keys(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let len = d.array()?;
        let id = d.u8()?;
        let has_usage = !matches!(d.datatype()?, Type::Bytes);
        if has_usage {
            d.i32()?;
        }
        let value: Option<[u8; KEY_LEN]> = d.bytes()?.try_into().ok();
        let information = d.bytes()?.try_into().ok().map(u32::from_be_bytes);
        let (Some(value), Some(sequence)) = (value, information) else {
            return Err(DecodeError::message("a key of another kind"));
        };
        if len != Some(3 + u64::from(has_usage)) || id != index(sequence) {
            return Err(DecodeError::message("a key of another kind"));
        }
        Ok(Self {
            network: NetworkKey::new(value),
            sequence,
        })
    }

    /// Writes it; returns its length.
    pub(super) fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut e = Encoder::new(Cursor::new(out));
        e.map(1)?.u32(LINK_LAYER_KEYS)?.array(3)?;
        e.u8(index(self.sequence))?.bytes(self.network.as_bytes())?;
        e.bytes(&self.sequence.to_be_bytes())?;
        Ok(e.writer().position())
    }
}

/// Reads a map of definite length and nothing behind it.
fn for_each_pair(
    d: &mut Decoder<'_>,
    mut pair: impl FnMut(u32, &mut Decoder<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let pairs = d.map()?.filter(|&pairs| pairs <= PAIRS_MAX);
    let pairs = pairs.ok_or_else(|| DecodeError::message("too many pairs"))?;
    for _ in 0..pairs {
        let label = d.u32()?;
        pair(label, d)?;
    }
    match d.position() == d.input().len() {
        true => Ok(()),
        false => Err(DecodeError::message("bytes behind the map")),
    }
}
