//! Numbers as Spinel writes them: packed, or little endian.
//!
//! Source: Spinel's draft (draft-rquattle-spinel-unified) §3.

use motet::wire::cursor::{Reader, Truncated};

/// A packed unsigned number (`i`): 7 bits a byte, the lowest first; a byte below 0x80 ends it. One
/// above 32 bits counts as truncated.
pub(super) fn packed(r: &mut Reader<'_>) -> Result<u32, Truncated> {
    let mut value = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let byte = r.u8()?;
        let bits = u32::from(byte & 0x7f);
        let shifted = bits << shift;
        if shifted >> shift != bits {
            break;
        }
        value |= shifted;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Truncated)
}

/// Data, or a struct, behind its length of 16 bits (`d`).
pub(super) fn data<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let len = r.u16_le()?;
    r.slice(usize::from(len))
}
