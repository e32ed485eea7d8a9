//! The values of Spinel's frames: fields one behind the other, without names or tags.
//!
//! Firmware of other ages writes structs that are shorter or longer than those known here. So a
//! field that is missing is `None`, as is one that is cut off and all behind it; what is longer
//! than known stays unread. Numbers are little endian, except for an EUI-64.
//!
//! Letters behind the methods are those of Spinel's packing format.
//!
//! Source: Spinel's draft (draft-rquattle-spinel-unified) §3.

/// Reads fields from the front of a value.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from `value`.
    pub const fn new(value: &'a [u8]) -> Self {
        Self(value)
    }

    /// Whether every field has been read.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A packed unsigned number (`i`): 7 bits a byte, the lowest first; a byte below 0x80 ends it.
    pub fn packed(&mut self) -> Option<u32> {
        let mut value = 0_u32;
        for shift in (0..u32::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u32::from(byte & 0x7f);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                break;
            }
            value |= shifted;
            if byte < 0x80 {
                return Some(value);
            }
        }
        // Larger than any number in use: what is behind it cannot be found.
        self.0 = &[];
        None
    }

    /// A boolean (`b`).
    pub fn bool(&mut self) -> Option<bool> {
        self.u8().map(|byte| byte != 0)
    }

    /// An unsigned byte (`C`).
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A signed byte (`c`).
    pub fn i8(&mut self) -> Option<i8> {
        self.array().map(i8::from_le_bytes)
    }

    /// An unsigned number of 16 bits (`S`).
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// An unsigned number of 32 bits (`L`).
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// An unsigned number of 64 bits (`X`).
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An EUI-64 (`E`), in the order in which it is written: big endian.
    pub fn eui64(&mut self) -> Option<[u8; 8]> {
        self.array()
    }

    /// Data, or a struct, behind its length of 16 bits (`d`).
    pub fn data(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(self.u16()?);
        let Some((data, rest)) = self.0.split_at_checked(len) else {
            self.0 = &[];
            return None;
        };
        self.0 = rest;
        Some(data)
    }

    /// All that is left (`D`).
    pub const fn rest(self) -> &'a [u8] {
        self.0
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let Some((array, rest)) = self.0.split_first_chunk() else {
            self.0 = &[];
            return None;
        };
        self.0 = rest;
        Some(*array)
    }
}

/// Writes fields one behind the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Nothing written yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// A packed unsigned number (`i`).
    #[must_use]
    pub fn packed(mut self, mut value: u32) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    /// A boolean (`b`).
    #[must_use]
    pub fn bool(self, value: bool) -> Self {
        self.u8(value.into())
    }

    /// An unsigned byte (`C`).
    #[must_use]
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    /// A signed byte (`c`).
    #[must_use]
    pub fn i8(self, value: i8) -> Self {
        self.rest(&value.to_le_bytes())
    }

    /// An unsigned number of 16 bits (`S`).
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.rest(&value.to_le_bytes())
    }

    /// An unsigned number of 32 bits (`L`).
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.rest(&value.to_le_bytes())
    }

    /// An unsigned number of 64 bits (`X`).
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.rest(&value.to_le_bytes())
    }

    /// An EUI-64 (`E`), in the order in which it is written: big endian.
    #[must_use]
    pub fn eui64(self, value: [u8; 8]) -> Self {
        self.rest(&value)
    }

    /// Data, or a struct, behind its length of 16 bits (`d`); what is beyond 65,535 bytes is left
    /// out.
    #[must_use]
    pub fn data(self, data: &[u8]) -> Self {
        let len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        self.u16(len)
            .rest(data.get(..usize::from(len)).unwrap_or_default())
    }

    /// Bytes as they are (`D`).
    #[must_use]
    pub fn rest(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packed_numbers_are_written_low_bits_first() {
        for (value, bytes) in [
            (0, &[0][..]),
            (0x7f, &[0x7f]),
            (0x80, &[0x80, 1]),
            (0xb0, &[0xb0, 1]),
            (513, &[0x81, 4]),
            (0x1303, &[0x83, 0x26]),
            (0x1f_ffff, &[0xff, 0xff, 0x7f]),
            (u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            assert_eq!(Writer::new().packed(value).finish(), bytes, "{value}");
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.packed(), Some(value), "{value}");
            assert!(reader.is_empty());
        }
        // Zeros ahead are superfluous and do no harm.
        assert_eq!(Reader::new(&[0x83, 0]).packed(), Some(3));
        for wrong in [
            &[][..],
            &[0x80],
            &[0xff, 0xff, 0xff, 0xff, 0x1f],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 1],
        ] {
            let mut reader = Reader::new(wrong);
            assert_eq!(reader.packed(), None, "{wrong:x?}");
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn nothing_is_read_behind_a_field_that_is_cut_off() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u8(), Some(1));
        assert_eq!(reader.u32(), None);
        assert_eq!(reader.u8(), None);
        let mut reader = Reader::new(&[3, 0, 1, 2]);
        assert_eq!(reader.data(), None);
        assert_eq!(reader.rest(), []);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (packed, byte, signed, short) in any::<(u32, u8, i8, u16)>(),
            (long, longest, eui64, flag) in any::<(u32, u64, [u8; 8], bool)>(),
            data in prop::collection::vec(any::<u8>(), 0..300),
            cut in 0_usize..400,
        ) {
            let bytes = Writer::new()
                .packed(packed).u8(byte).i8(signed).u16(short).u32(long).u64(longest)
                .eui64(eui64).bool(flag).data(&data).rest(b"rest").finish();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.packed(), Some(packed));
            prop_assert_eq!(reader.u8(), Some(byte));
            prop_assert_eq!(reader.i8(), Some(signed));
            prop_assert_eq!(reader.u16(), Some(short));
            prop_assert_eq!(reader.u32(), Some(long));
            prop_assert_eq!(reader.u64(), Some(longest));
            prop_assert_eq!(reader.eui64(), Some(eui64));
            prop_assert_eq!(reader.bool(), Some(flag));
            prop_assert_eq!(reader.data(), Some(&data[..]));
            prop_assert_eq!(reader.rest(), b"rest");

            // The same, cut off: what is read is right, and then nothing more comes.
            let mut reader = Reader::new(&bytes[..cut.min(bytes.len())]);
            let read = [
                reader.packed().map(u64::from), reader.u8().map(u64::from),
                reader.u16().map(u64::from), reader.u64(),
            ];
            let gap = read.iter().position(Option::is_none).unwrap_or(read.len());
            prop_assert!(read.iter().skip(gap).all(Option::is_none));
        }
    }
}
