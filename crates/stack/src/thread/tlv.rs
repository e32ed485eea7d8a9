//! Type, length, value: the one form of datasets, of MLE and of network data.

use crate::wire::cursor::{self, Full, Reader, Truncated, Writer};

/// TLVs whose lengths were checked, so that each of them can be read.
///
/// As an iterator: the type byte and the value of each, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Tlvs<'a>(Reader<'a>);

impl<'a> Tlvs<'a> {
    /// The TLVs of `bytes`.
    ///
    /// # Errors
    /// [`Truncated`]: the last one is longer than the bytes that are left.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Truncated> {
        let tlvs = Self(Reader::new(bytes));
        let mut rest = tlvs.0;
        while !rest.is_empty() {
            read(&mut rest)?;
        }
        Ok(tlvs)
    }

    /// The value of the first TLV of this type.
    pub fn find(mut self, kind: u8) -> Option<&'a [u8]> {
        self.find_map(|(other, value)| (other == kind).then_some(value))
    }

    /// The first `N` bytes of the first TLV of this type; `None` where it is absent or shorter.
    pub fn array<const N: usize>(self, kind: u8) -> Option<[u8; N]> {
        let mut array = [0; N];
        self.fill(kind, &mut array).then_some(array)
    }

    /// The first bytes of the first TLVs of these types, one behind the other; `N` of them in all.
    pub(super) fn gather<const N: usize>(self, types: &[(u8, usize)]) -> Option<[u8; N]> {
        let mut values = [0; N];
        let mut rest = &mut values[..];
        for &(kind, len) in types {
            let (value, others) = rest.split_at_mut_checked(len)?;
            if !self.fill(kind, value) {
                return None;
            }
            rest = others;
        }
        Some(values)
    }

    /// Copies the first bytes of the first TLV of this type; false where there are too few.
    #[inline(never)]
    pub(super) fn fill(self, kind: u8, out: &mut [u8]) -> bool {
        let value = self.find(kind).unwrap_or_default();
        cursor::copy(out, value) == out.len()
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        read(&mut self.0).ok()
    }
}

fn read<'a>(r: &mut Reader<'a>) -> Result<(u8, &'a [u8]), Truncated> {
    let kind = r.u8()?;
    let len = match r.u8()? {
        EXTENDED => r.u16()?,
        len => u16::from(len),
    };
    Ok((kind, r.slice(usize::from(len))?))
}

/// Writes a TLV whose value is `parts`, one behind the other: at most 254 bytes.
///
/// # Errors
/// [`Full`]: the output is too short.
pub(super) fn put(w: &mut Writer<'_>, kind: u8, parts: &[&[u8]]) -> Result<(), Full> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    w.put(&[kind, len as u8])?;
    parts.iter().try_for_each(|part| w.put(part))
}

/// The length of a TLV whose length follows in two bytes.
const EXTENDED: u8 = 0xff;
