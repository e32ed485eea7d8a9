//! The TAP header of IEEE 802.15.4 captures: what the receiver knew about the frame.
//!
//! ```text
//! +---------+----------+-----------------+ then TLVs, each padded to 4 bytes:
//! | version | reserved |  header length  |  type (2), length (2), value
//! +---------+----------+-----------------+ everything little-endian
//! ```
//!
//! Source: "IEEE 802.15.4 TAP Link Type Specification" (Exegin), link type 283.

use motet::wire::cursor::{Reader, Truncated};

use crate::model::{Frame, Layer, Value, group};
use crate::next::{Fcs, Next};

/// Explains a record of link type 283.
pub(super) fn explain<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let header = (|| Ok::<_, Truncated>((r.u8()?, r.u8()?, r.u16_le()?)))();
    let Ok((version, _reserved, header_len)) = header else {
        return frame.malformed("tap", "TAP header truncated");
    };
    if version != 0 {
        return frame.undecoded("tap", format!("TAP version {version}, not 0"));
    }
    let Some(Ok(mut tlvs)) = usize::from(header_len)
        .checked_sub(HEADER_LEN)
        .map(|len| r.slice(len).map(Reader::new))
    else {
        return frame.malformed(
            "tap",
            format!("TAP header length {header_len} does not fit the record"),
        );
    };
    let mut layer = Layer::new("tap", "");
    // The specification's default: a frame without a TLV for the FCS type has no FCS.
    let mut fcs = Fcs::Absent;
    while !tlvs.is_empty() {
        match tlv(&mut tlvs) {
            Ok((TYPE_FCS, [kind, ..])) => {
                fcs = match kind {
                    0 => Fcs::Absent,
                    1 => Fcs::Crc16,
                    2 => Fcs::Crc32,
                    other => return frame.malformed("tap", format!("FCS type {other} is unknown")),
                };
                layer = layer.hidden("fcs_type", *kind);
            }
            Ok((kind, value)) => layer = known(layer, kind, value),
            Err(Truncated) => {
                frame.push(layer);
                return frame.malformed("tap", "TLV runs beyond the TAP header");
            }
        }
    }
    frame.push(layer);
    Next::Mac(r.rest(), fcs)
}

fn tlv<'a>(r: &mut Reader<'a>) -> Result<(u16, &'a [u8]), Truncated> {
    let kind = r.u16_le()?;
    let len = usize::from(r.u16_le()?);
    let value = r.slice(len)?;
    r.slice(len.next_multiple_of(4) - len)?;
    Ok((kind, value))
}

/// Adds a TLV's fields; one that is unknown or shorter than its type needs is kept as bytes.
fn known(layer: Layer, kind: u16, value: &[u8]) -> Layer {
    let mut r = Reader::new(value);
    let as_bytes = || group([("type", Value::from(kind)), ("value", Value::from(value))]);
    let mut read = || -> Result<(&'static str, Value), Truncated> {
        Ok(match kind {
            TYPE_RSS => ("rssi_dbm", real(f32::from_le_bytes(r.array()?))),
            2 => ("bit_rate", u32::from_le_bytes(r.array()?).into()),
            TYPE_CHANNEL => ("channel", r.u16_le()?.into()),
            5 => ("start_of_frame_ns", u64::from_le_bytes(r.array()?).into()),
            6 => ("end_of_frame_ns", u64::from_le_bytes(r.array()?).into()),
            7 => ("asn", u64::from_le_bytes(r.array()?).into()),
            8 => ("slot_start_ns", u64::from_le_bytes(r.array()?).into()),
            9 => ("slot_length_us", u32::from_le_bytes(r.array()?).into()),
            TYPE_LQI => ("lqi", r.u8()?.into()),
            11 => ("frequency_khz", real(f32::from_le_bytes(r.array()?))),
            _ => ("tlv", as_bytes()),
        })
    };
    let (key, field) = read().unwrap_or_else(|Truncated| ("tlv", as_bytes()));
    let layer = layer.with(key, field);
    // The channel page follows the channel; page 0 is the 2003 PHY and goes without saying.
    match (kind, r.u8()) {
        (TYPE_CHANNEL, Ok(page)) if page != 0 => layer.with("channel_page", page),
        _ => layer,
    }
}

/// A number, or null for an infinity, which JSON has not.
fn real(value: f32) -> Value {
    if value.is_finite() {
        Value::Real(f64::from(value))
    } else {
        Value::Null
    }
}

const HEADER_LEN: usize = 4;
const TYPE_FCS: u16 = 0;
const TYPE_RSS: u16 = 1;
const TYPE_CHANNEL: u16 = 3;
const TYPE_LQI: u16 = 10;
