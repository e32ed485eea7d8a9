//! Bounds-checked reading and writing of bytes, without panics.
//!
//! Every parser takes a [`Reader`], every emitter a [`Writer`]; neither can index beyond
//! its slice, so no packet path pulls in panic machinery.

/// The bytes ended before the value did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncated;

impl Truncated {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        "the bytes end too early"
    }
}

speaks!(Truncated);

/// The value does not fit the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl Full {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        "the output is too short"
    }
}

speaks!(Full);

/// A cursor over received bytes; big-endian unless a method says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the first byte.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that have not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    pub const fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether every byte has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        self.chunk().copied()
    }

    /// Reads the next `N` bytes, which stay where they are: where they are many, a copy that passes
    /// through a result is made twice.
    pub(crate) fn chunk<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads the next `len` bytes, without a copy.
    pub fn slice(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads the next byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads the next two bytes, most significant first.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next two bytes, least significant first (IEEE 802.15.4).
    pub fn u16_le(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads the next four bytes, most significant first.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }
}

/// A cursor over an output buffer; big-endian unless a method says otherwise.
#[derive(Debug)]
pub struct Writer<'a> {
    rest: &'a mut [u8],
    written: usize,
}

impl<'a> Writer<'a> {
    /// A cursor at the first byte of `out`.
    pub const fn new(out: &'a mut [u8]) -> Self {
        Self {
            rest: out,
            written: 0,
        }
    }

    /// How many bytes have been written.
    pub const fn written(&self) -> usize {
        self.written
    }

    /// How many bytes the output still has room for.
    pub const fn room(&self) -> usize {
        self.rest.len()
    }

    /// Appends `bytes`, whole or not at all.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let rest = core::mem::take(&mut self.rest);
        if rest.len() < bytes.len() {
            self.rest = rest;
            return Err(Full);
        }
        for (to, from) in rest.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.rest = rest.get_mut(bytes.len()..).unwrap_or_default();
        self.written += bytes.len();
        Ok(())
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) -> Result<(), Full> {
        self.put(&[value])
    }

    /// Appends two bytes, most significant first.
    pub fn u16(&mut self, value: u16) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }

    /// Appends two bytes, least significant first (IEEE 802.15.4).
    pub fn u16_le(&mut self, value: u16) -> Result<(), Full> {
        self.put(&value.to_le_bytes())
    }

    /// Appends four bytes, most significant first.
    pub fn u32(&mut self, value: u32) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }
}

/// Copies as many bytes as both slices hold; returns how many.
pub fn copy(to: &mut [u8], from: &[u8]) -> usize {
    let len = to.len().min(from.len());
    // Split first so that the optimiser sees equal lengths and calls `memcpy`.
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
    }
    len
}
