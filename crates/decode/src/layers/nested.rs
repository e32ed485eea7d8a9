//! Elements within an information element, and fields of an element's content.

use motet::wire::cursor::{Reader, Truncated};

use crate::model::{Field, Value, group};

/// Hands out the elements nested in one: whether it is long, its number, its content.
///
/// # Errors
/// One is longer than what is left.
pub(super) fn nested<'a>(
    content: &'a [u8],
    mut each: impl FnMut(bool, u16, &'a [u8]),
) -> Result<(), &'static str> {
    let mut r = Reader::new(content);
    while !r.is_empty() {
        let descriptor = r.u16_le().map_err(cut)?;
        let is_long = descriptor >> 15 != 0;
        let (id, len) = match is_long {
            true => (descriptor >> 11 & 0xf, descriptor & 0x7ff),
            false => (descriptor >> 8 & 0x7f, descriptor & 0xff),
        };
        each(is_long, id, r.slice(usize::from(len)).map_err(cut)?);
    }
    Ok(())
}

/// What is said of elements that are cut off.
pub(super) fn cut(_: Truncated) -> &'static str {
    "an information element longer than what is left of the frame"
}

/// Fields by name.
pub(super) fn known(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Vec<Field> {
    match group(fields) {
        Value::Group(fields) => fields,
        _ => Vec::new(),
    }
}
