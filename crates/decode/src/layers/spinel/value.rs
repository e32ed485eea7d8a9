//! The fields of a property's value, by their forms.
//!
//! Firmware of another age writes values that are shorter or longer than those known here: fields
//! that are missing at the end are left out, and bytes behind the last one are left over.

use motet::wire::cursor::{Reader, Truncated};

use super::names;
use super::packed::{data, packed};
use crate::model::{Audience, Field, Value, hex, hex16};

/// How a field is written, and shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// A boolean (`b`).
    Bool,
    /// An unsigned byte (`C`).
    U8,
    /// A signed byte (`c`), and the number by which it says that it is unknown.
    I8(Option<i8>),
    /// 16 bits (`S`).
    U16,
    /// 16 bits that people read in hexadecimal: an address, a PAN identifier.
    Hex16,
    /// 32 bits (`L`).
    U32,
    /// 64 bits (`X`).
    U64,
    /// A packed number (`i`).
    Packed,
    /// A small packed number with names, from 0 on.
    Named(&'static [&'static str]),
    /// A status.
    Status,
    /// A capability of the firmware.
    Cap,
    /// Capabilities of the radio, a bit each.
    RadioCaps,
    /// An EUI-64 (`E`).
    Eui64,
    /// Text, up to a NUL or the end.
    Text,
    /// Data behind its length (`d`), of which only the length is shown: a key.
    Secret,
}

/// A value, and what people read in its place where that differs.
type Shown = (Value, Option<String>);

impl Form {
    fn read(self, r: &mut Reader<'_>) -> Result<Shown, Truncated> {
        let plain = |value: Value| (value, None);
        Ok(match self {
            Self::Bool => {
                let is_set = r.u8()? != 0;
                let word = if is_set { "yes" } else { "no" };
                (is_set.into(), Some(word.into()))
            }
            Self::U8 => plain(r.u8()?.into()),
            Self::I8(unknown) => {
                let [byte] = r.array()?;
                let number = i8::from_le_bytes([byte]);
                plain((Some(number) != unknown).then_some(number).into())
            }
            Self::U16 => plain(r.u16_le()?.into()),
            Self::Hex16 => plain(hex16(r.u16_le()?)),
            Self::U32 => plain(u32::from_le_bytes(r.array()?).into()),
            Self::U64 => plain(u64::from_le_bytes(r.array()?).into()),
            Self::Packed => plain(packed(r)?.into()),
            Self::Named(words) => {
                let number = packed(r)?;
                let index = usize::try_from(number).ok();
                named(number, index.and_then(|index| words.get(index)).copied())
            }
            Self::Status => {
                let number = packed(r)?;
                named(number, names::status(number))
            }
            Self::Cap => {
                let number = packed(r)?;
                named(number, names::cap(number))
            }
            Self::RadioCaps => {
                let bits = packed(r)?;
                (bits.into(), Some(names::radio_caps(bits)))
            }
            Self::Eui64 => plain(hex(&r.array::<8>()?, ":").into()),
            Self::Text => plain(text(r).into()),
            Self::Secret => plain(format!("{} B, not shown", data(r)?.len()).into()),
        })
    }
}

/// A number, and for people its name with the number behind it.
fn named(number: u32, name: Option<&str>) -> Shown {
    let name = name.map(|name| format!("{name} ({number})"));
    (number.into(), name)
}

/// Text up to a NUL, without what a terminal could take for a command.
fn text(r: &mut Reader<'_>) -> String {
    let bytes = r.rest();
    let end = bytes.iter().position(|byte| *byte == 0);
    let (text, taken) = match end {
        Some(end) => (bytes.get(..end), end + 1),
        None => (Some(bytes), bytes.len()),
    };
    // Always there: it was measured above.
    let _ = r.slice(taken);
    let printable = |byte: &u8| match byte {
        0x20..0x7f => char::from(*byte),
        _ => '·',
    };
    let text = text.unwrap_or_default().trim_ascii_end();
    text.iter().map(printable).collect()
}

/// Reads fields one behind the other, as far as there are any.
pub(super) fn fields(
    known: &[(&'static str, Form)],
    r: &mut Reader<'_>,
    out: &mut Vec<Field>,
) -> Result<(), Truncated> {
    for &(key, form) in known {
        if r.is_empty() {
            break;
        }
        put(out, key, form.read(r)?);
    }
    Ok(())
}

/// Reads a list of fields of one form.
pub(super) fn list(
    key: &'static str,
    form: Form,
    r: &mut Reader<'_>,
    out: &mut Vec<Field>,
) -> Result<(), Truncated> {
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    while !r.is_empty() {
        let (value, text) = form.read(r)?;
        texts.push(text.map_or_else(|| value.clone(), Value::Text));
        values.push(value);
    }
    out.push(field(key, values, Audience::Programs));
    out.push(field(key, texts, Audience::People));
    Ok(())
}

fn put(out: &mut Vec<Field>, key: &'static str, (value, text): Shown) {
    match text {
        Some(text) => {
            out.push(field(key, value, Audience::Programs));
            out.push(field(key, text, Audience::People));
        }
        None => out.push(field(key, value, Audience::All)),
    }
}

/// A field for these readers.
pub(super) fn field(key: &'static str, value: impl Into<Value>, audience: Audience) -> Field {
    Field {
        key,
        value: value.into(),
        audience,
    }
}
