//! LOWPAN_TCPHC: compressed TCP headers.
//!
//! ```text
//! +---+---+---+---+---+---+---+---+   full header (FH): CID, then the TCP header as it is
//! | 0   0   0   0   0   0   0   1 |
//! +---+---+---+---+---+---+---+---+
//! | 1   0   0 | 0 | 1   1 | 1   1 |   mostly compressed (MH): every dynamic field in line
//! +---+---+---+---+---+---+---+---+
//! | 1   1   0 | 0 |  Seq  |  Ack  |   compressed (CH)
//! +---+---+---+---+---+---+---+---+
//! |   W   |CWR|ECE| F | P | T | S |   second byte of MH and CH
//! +---+---+---+---+---+---+---+---+
//! |              CID              |   then Seq (0, 1, 2, 4), Ack (0, 1, 2, 4), W (0, 1, 1,
//! +---+---+---+---+---+---+---+---+   2), checksum (2)
//! |   V   |   E   |   N   | 0   0 |   if T or S: modes of TSval and TSecr, SACK blocks - 1;
//! +---+---+---+---+---+---+---+---+   then TSval, TSecr, and two numbers for each block
//! ```
//!
//! Place: behind IPHC with NH = 1, in place of a TCP header; `tcphc` turns one into the other. What
//! stands here needs no context, so a relay can tell how long a header is, compressed and not. Left
//! out: C = 1 (16-bit CIDs), whose byte RFC 7400 gave to GHC.
//! Sources: draft-aayadi-6lowpan-tcphc-01 as far as it is known; `docs/reference/tcphc.md`.

use super::cursor::{Full, Reader, Truncated, Writer};
use super::tcp::{self, Flags, SackBlock, SackBlocks};

/// Bytes of the longest compressed header: a full one.
pub const HEADER_LEN_MAX: usize = FULL_OVERHEAD + tcp::HEADER_LEN_MAX;
/// The bytes by which a full header is longer than the TCP header in it.
pub const FULL_OVERHEAD: usize = 2;

/// First byte of a full header.
pub const FULL: u8 = 0x01;
const MOSTLY: u8 = 0x8f;
const COMPRESSED: u8 = 0xc0;

/// A header by its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header<'a> {
    /// FH: names the context and carries the whole TCP header.
    Full {
        /// Identifier of the context, 0 to 255.
        cid: u8,
        /// The TCP header with its options, 20 to 60 bytes by its own data offset.
        tcp: &'a [u8],
    },
    /// MH or CH: leaves out what the context holds.
    Compressed(Compressed),
}

/// The fields of an MH or a CH. Ports, ACK flag and data offset are implied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compressed {
    /// MH: every field in line. A CH with every field in line is another encoding.
    pub mostly: bool,
    /// Identifier of the context, 0 to 255.
    pub cid: u8,
    /// The set flags among CWR, ECE, FIN and PSH; no other flag.
    pub flags: Flags,
    /// The sequence number, as far as it is in line.
    pub seq: Field,
    /// The acknowledgment number, as far as it is in line.
    pub ack: Field,
    /// The receive window, as far as it is in line.
    pub window: Window,
    /// The TCP checksum of the uncompressed segment.
    pub checksum: u16,
    /// TSval and TSecr, as far as they are in line; `None`: no timestamps option.
    pub timestamps: Option<(Field, Field)>,
    /// SACK blocks, relative to the acknowledgment number.
    pub sack: RelativeBlocks,
}

/// A 32-bit field, as much of it as is in line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Field {
    /// No byte: the value is the reference that the context yields.
    #[default]
    Elided,
    /// The low 8 bits; the others follow from the reference.
    Low8(u8),
    /// The low 16 bits; the others follow from the reference.
    Low16(u16),
    /// All 32 bits are in line.
    Whole(u32),
}

/// The window, as much of it as is in line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Window {
    /// No byte: the value is the reference that the context yields.
    #[default]
    Elided,
    /// The low byte; the high one of the reference.
    Low(u8),
    /// The high byte; the low one of the reference. Understood, never sent.
    High(u8),
    /// Both bytes are in line.
    Whole(u16),
}

/// A SACK block relative to its segment's acknowledgment number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RelativeBlock {
    /// Left edge less acknowledgment number; up to 32,767.
    pub offset: u16,
    /// Right edge less left edge; 1 to 32,767.
    pub len: u16,
}

/// Up to four relative blocks in wire order; with timestamps up to three.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelativeBlocks {
    blocks: [RelativeBlock; tcp::SACK_BLOCKS_MAX],
    len: u8,
}

/// Why bytes are not a TCPHC header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated,
    /// The first byte is that of no TCPHC header.
    Unknown,
    /// An MH with a field that is not in line.
    MostlyModes,
    /// Reserved bits that are set.
    Reserved,
    /// Modes for timestamps, but no timestamps.
    ModesWithoutTimestamps,
    /// A count of SACK blocks without any.
    CountWithoutSack,
    /// Four SACK blocks beside timestamps: they would not fit a TCP header.
    TooManyBlocks,
    /// A SACK block of no length.
    EmptyBlock,
    /// A number in two bytes that fits one.
    NonMinimal,
    /// A TCP data offset below 5 words or beyond the packet.
    DataOffset,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "TCPHC header truncated",
            Self::Unknown => "not a TCPHC header",
            Self::MostlyModes => "mostly compressed TCPHC header with a compressed field",
            Self::Reserved => "TCPHC reserved bits set",
            Self::ModesWithoutTimestamps => "TCPHC timestamp modes without timestamps",
            Self::CountWithoutSack => "TCPHC SACK count without SACK",
            Self::TooManyBlocks => "TCPHC SACK blocks that fit no TCP header",
            Self::EmptyBlock => "TCPHC SACK block of no length",
            Self::NonMinimal => "TCPHC number longer than needed",
            Self::DataOffset => "TCPHC full header with a data offset outside the packet",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// Whether this build knows TCPHC at all: without the feature `tcphc` such headers are
/// unknown, and what would read them is not linked.
pub const IS_SUPPORTED: bool = cfg!(feature = "tcphc");

/// F: an end that speaks TCPHC has no more bytes in flight, and offers no window beyond it, for
/// numbers of 16 bits to be unambiguous.
pub const FLIGHT_MAX: u16 = 16_384;

/// Whether a NHC that starts with `first` is a TCPHC header, hence stands for TCP.
pub const fn is_tcphc(first: u8) -> bool {
    IS_SUPPORTED && matches!(first, FULL | MOSTLY | 0xc0..=0xcf)
}

/// How long a header is; needs no context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// Length of the header on the air, bytes.
    pub compressed: usize,
    /// As TCP header with options, bytes: what fragment offsets count.
    pub uncompressed: usize,
}

/// The lengths of the header at the start of `bytes`: for fragments and relays.
///
/// # Errors
/// [`ParseError`].
pub fn lengths(bytes: &[u8]) -> Result<Lengths, ParseError> {
    let (header, rest) = Header::parse(bytes)?;
    Ok(Lengths {
        compressed: bytes.len() - rest.len(),
        uncompressed: header.uncompressed_len(),
    })
}

impl<'a> Header<'a> {
    /// Reads a header; returns it and the segment's payload.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let mut r = Reader::new(bytes);
        let [first, second] = r.array()?;
        let header = match first {
            FULL => {
                let mut tcp = r;
                let [.., offset] = tcp.array::<13>()?;
                tcp.array::<7>()?;
                let len = usize::from(offset >> 4) * 4;
                if len < tcp::HEADER_LEN {
                    return Err(ParseError::DataOffset);
                }
                let tcp = r.slice(len).map_err(|_| ParseError::DataOffset)?;
                Self::Full { cid: second, tcp }
            }
            MOSTLY => Self::Compressed(Compressed::parse(first, second, &mut r)?),
            _ if first & 0xf0 == COMPRESSED => {
                Self::Compressed(Compressed::parse(first, second, &mut r)?)
            }
            _ => return Err(ParseError::Unknown),
        };
        Ok((header, r.rest()))
    }

    /// Appends the header.
    ///
    /// # Errors
    /// [`Full`].
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Full { cid, tcp } => {
                w.put(&[FULL, *cid])?;
                w.put(tcp)
            }
            Self::Compressed(header) => header.emit(w),
        }
    }

    /// Bytes of the TCP header it stands for.
    pub fn uncompressed_len(&self) -> usize {
        match self {
            Self::Full { tcp, .. } => tcp.len(),
            Self::Compressed(header) => header.uncompressed_len(),
        }
    }

    /// Identifier of the context that the header names.
    pub const fn cid(&self) -> u8 {
        match self {
            Self::Full { cid, .. } => *cid,
            Self::Compressed(header) => header.cid,
        }
    }
}

impl Compressed {
    fn parse(first: u8, second: u8, r: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mostly = first == MOSTLY;
        if mostly && second >> 6 != 3 {
            return Err(ParseError::MostlyModes);
        }
        let mut header = Self {
            mostly,
            cid: r.u8()?,
            flags: flags_of(second),
            seq: Field::parse(first >> 2, r)?,
            ack: Field::parse(first, r)?,
            window: match second >> 6 {
                0 => Window::Elided,
                1 => Window::Low(r.u8()?),
                2 => Window::High(r.u8()?),
                _ => Window::Whole(r.u16()?),
            },
            checksum: r.u16()?,
            ..Self::default()
        };
        if second & (HAS_TIMESTAMPS | HAS_SACK) != 0 {
            header.parse_options(second, r)?;
        }
        Ok(header)
    }

    fn parse_options(&mut self, second: u8, r: &mut Reader<'_>) -> Result<(), ParseError> {
        let (has_timestamps, has_sack) = (second & HAS_TIMESTAMPS != 0, second & HAS_SACK != 0);
        let modes = r.u8()?;
        if modes & 3 != 0 {
            return Err(ParseError::Reserved);
        }
        if !has_timestamps && modes >> 4 != 0 {
            return Err(ParseError::ModesWithoutTimestamps);
        }
        if has_timestamps && self.mostly && modes >> 4 != 0x0f {
            return Err(ParseError::MostlyModes);
        }
        let more_blocks = modes >> 2 & 3;
        if !has_sack && more_blocks != 0 {
            return Err(ParseError::CountWithoutSack);
        }
        if has_timestamps {
            let value = Field::parse(modes >> 6, r)?;
            let echo = Field::parse(modes >> 4, r)?;
            self.timestamps = Some((value, echo));
        }
        if has_sack {
            if has_timestamps && more_blocks == 3 {
                return Err(ParseError::TooManyBlocks);
            }
            for _ in 0..=more_blocks {
                let block = RelativeBlock {
                    offset: number(r)?,
                    len: number(r)?,
                };
                if block.len == 0 {
                    return Err(ParseError::EmptyBlock);
                }
                self.sack.push(block);
            }
        }
        Ok(())
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let form = if self.mostly {
            MOSTLY & 0xf0
        } else {
            COMPRESSED
        };
        let (window_mode, window) = self.window.parts();
        let mut second = window_mode << 6 | bits_of(self.flags);
        if self.timestamps.is_some() {
            second |= HAS_TIMESTAMPS;
        }
        if !self.sack.is_empty() {
            second |= HAS_SACK;
        }
        w.put(&[
            form | self.seq.mode() << 2 | self.ack.mode(),
            second,
            self.cid,
        ])?;
        self.seq.emit(w)?;
        self.ack.emit(w)?;
        match window_mode {
            0 => {}
            3 => w.u16(window)?,
            _ => w.u8(window as u8)?,
        }
        w.u16(self.checksum)?;
        if second & (HAS_TIMESTAMPS | HAS_SACK) == 0 {
            return Ok(());
        }
        let (value, echo) = self.timestamps.unwrap_or_default();
        let more_blocks = self.sack.len.saturating_sub(1);
        w.u8(value.mode() << 6 | echo.mode() << 4 | more_blocks << 2)?;
        value.emit(w)?;
        echo.emit(w)?;
        for block in self.sack.as_slice() {
            put_number(w, block.offset)?;
            put_number(w, block.len)?;
        }
        Ok(())
    }

    /// Bytes of the TCP header it stands for: options lie in one of four ways only.
    pub fn uncompressed_len(&self) -> usize {
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let sack = match self.sack.len {
            0 => 0,
            blocks => 4 + 8 * usize::from(blocks),
        };
        tcp::HEADER_LEN + timestamps + sack
    }
}

impl Field {
    fn parse(mode: u8, r: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(match mode & 3 {
            0 => Self::Elided,
            1 => Self::Low8(r.u8()?),
            2 => Self::Low16(r.u16()?),
            _ => Self::Whole(r.u32()?),
        })
    }

    fn emit(self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Elided => Ok(()),
            Self::Low8(bits) => w.u8(bits),
            Self::Low16(bits) => w.u16(bits),
            Self::Whole(value) => w.u32(value),
        }
    }

    const fn mode(self) -> u8 {
        match self {
            Self::Elided => 0,
            Self::Low8(_) => 1,
            Self::Low16(_) => 2,
            Self::Whole(_) => 3,
        }
    }
}

impl Window {
    const fn parts(self) -> (u8, u16) {
        match self {
            Self::Elided => (0, 0),
            Self::Low(byte) => (1, byte as u16),
            Self::High(byte) => (2, byte as u16),
            Self::Whole(window) => (3, window),
        }
    }
}

impl RelativeBlocks {
    /// The blocks, in the order of the option.
    pub fn as_slice(&self) -> &[RelativeBlock] {
        self.blocks.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether there is no block, hence no SACK option.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a block; returns whether it fitted.
    pub fn push(&mut self, block: RelativeBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = block;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// `blocks` relative to `ack`; `None` where one lies below it, is empty, or lies or
    /// reaches too far: such a header travels as FH.
    pub fn relative_to(ack: u32, blocks: &SackBlocks) -> Option<Self> {
        let mut relative = Self::default();
        for block in blocks.as_slice() {
            let offset = block.left.wrapping_sub(ack);
            let len = block.right.wrapping_sub(block.left);
            if offset > NUMBER_MAX || len > NUMBER_MAX || len == 0 {
                return None;
            }
            relative.push(RelativeBlock {
                offset: offset as u16,
                len: len as u16,
            });
        }
        Some(relative)
    }

    /// The blocks with `ack` added.
    pub fn absolute(&self, ack: u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for block in self.as_slice() {
            let left = ack.wrapping_add(u32::from(block.offset));
            let right = left.wrapping_add(u32::from(block.len));
            blocks.push(SackBlock { left, right });
        }
        blocks
    }
}

impl PartialEq for RelativeBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for RelativeBlocks {}

/// Whether an option area is one of the four that compressed forms can stand for: none,
/// `NOP NOP TS`, `NOP NOP SACK(n)`, or the first and then the second. Linux, FreeBSD and this
/// stack emit no others once a connection stands.
pub(crate) fn is_canonical(area: &[u8]) -> bool {
    let rest = match area {
        [1, 1, 8, 10, _, _, _, _, _, _, _, _, rest @ ..] => rest,
        area => area,
    };
    match rest {
        [] => true,
        [1, 1, 5, len, blocks @ ..] => {
            !blocks.is_empty() && blocks.len() & 7 == 0 && blocks.len() + 2 == usize::from(*len)
        }
        _ => false,
    }
}

/// Whether an MH or CH can carry `flags`: ACK, and of the others only those with a bit.
pub(crate) fn are_compressible(flags: Flags) -> bool {
    flags.contains(Flags::ACK) && flags.without(Flags::ACK).without(CARRIED) == Flags::EMPTY
}

/// Flags with a bit in MH and CH.
pub const CARRIED: Flags = Flags::CWR
    .with(Flags::ECE)
    .with(Flags::FIN)
    .with(Flags::PSH);

const HAS_TIMESTAMPS: u8 = 2;
const HAS_SACK: u8 = 1;
/// The largest number a SACK block's edges are given by.
const NUMBER_MAX: u32 = 0x7fff;

const FLAG_BITS: [(u8, Flags); 4] = [
    (0x20, Flags::CWR),
    (0x10, Flags::ECE),
    (0x08, Flags::FIN),
    (0x04, Flags::PSH),
];

fn flags_of(second: u8) -> Flags {
    let mut flags = Flags::EMPTY;
    for (bit, flag) in FLAG_BITS {
        if second & bit != 0 {
            flags = flags | flag;
        }
    }
    flags
}

fn bits_of(flags: Flags) -> u8 {
    let mut bits = 0;
    for (bit, flag) in FLAG_BITS {
        if flags.contains(flag) {
            bits |= bit;
        }
    }
    bits
}

/// A number below 128 in one byte, another in two with the top bit set.
fn number(r: &mut Reader<'_>) -> Result<u16, ParseError> {
    let first = r.u8()?;
    if first & 0x80 == 0 {
        return Ok(u16::from(first));
    }
    let value = u16::from_be_bytes([first & 0x7f, r.u8()?]);
    if value < 128 {
        return Err(ParseError::NonMinimal);
    }
    Ok(value)
}

fn put_number(w: &mut Writer<'_>, value: u16) -> Result<(), Full> {
    match value {
        0..=127 => w.u8(value as u8),
        _ => w.u16(0x8000 | value),
    }
}

#[cfg(test)]
#[path = "tests/tcphc.rs"]
mod tests;
