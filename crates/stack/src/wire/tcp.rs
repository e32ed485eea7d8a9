//! TCP segments: header and options, typed.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          Source Port          |       Destination Port        |
//! +-------------------------------+-------------------------------+
//! |                        Sequence Number                        |
//! +---------------------------------------------------------------+
//! |                    Acknowledgment Number                      |
//! +-------+-----+-+-+-+-+-+-+-+-+-+-------------------------------+
//! |  Data |     |A|C|E|U|A|P|R|S|F|                               |
//! | Offset|Rsrvd|E|W|C|R|C|S|S|Y|I|            Window             |
//! |       |     | |R|E|G|K|H|T|N|N|                               |
//! +-------+-----+-+-+-+-+-+-+-+-+-+-------------------------------+
//! |           Checksum            |         Urgent Pointer        |
//! +-------------------------------+-------------------------------+
//! |            options, a multiple of four bytes, up to 40        |
//! ```
//!
//! Place: between `ip` and the `tcp` engine. Left out: sequence arithmetic, and options nobody here
//! acts upon; those are skipped, and lost when a header is emitted again.
//! Sources: RFC 9293 §3.1, §3.2; RFC 7323; RFC 2018; RFC 3168; RFC 9768 (the AE bit).

use core::net::Ipv6Addr;
use core::ops::BitOr;

use super::checksum;
use super::cursor::{Full, Truncated, Writer};

/// The IPv6 next header value of TCP.
pub const NEXT_HEADER: u8 = 6;
/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// Bytes of the longest header: a data offset of 15 words.
pub const HEADER_LEN_MAX: usize = 60;
/// Bytes of options that a header holds at most.
pub const OPTIONS_LEN_MAX: usize = HEADER_LEN_MAX - HEADER_LEN;
/// SACK blocks that fit a header without timestamps (RFC 2018 §3); with timestamps, three.
pub const SACK_BLOCKS_MAX: usize = 4;

/// Bytes that timestamps take with the padding before them (RFC 7323 appendix A).
pub const TIMESTAMPS_LEN: usize = 12;
/// Where the data offset stands, in the upper half of its byte.
const OFFSET_AT: usize = 12;
const CHECKSUM_AT: usize = 16;

/// A TCP header. Ports to urgent pointer are as on the wire, in host order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Port of the sender, 0 to 65,535.
    pub src_port: u16,
    /// Port of the receiver, 0 to 65,535.
    pub dst_port: u16,
    /// Sequence number of the first byte (of the SYN, if there is one).
    pub seq: u32,
    /// Acknowledgment number; means nothing without [`Flags::ACK`].
    pub ack: u32,
    /// Control bits, reserved ones included.
    pub flags: Flags,
    /// Receive window, bytes, before scaling (RFC 7323 §2.2).
    pub window: u16,
    /// Urgent pointer; means nothing without [`Flags::URG`].
    pub urgent: u16,
    /// The options this stack knows.
    pub options: Options,
}

/// Why bytes are not a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer than the 20 bytes of a header without options.
    Truncated,
    /// The data offset is below 5 words or points beyond the segment.
    DataOffset,
    /// An option's length is below 2 or beyond the header (RFC 9293, MUST-7).
    OptionLength,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "TCP header truncated",
            Self::DataOffset => "TCP data offset outside the segment",
            Self::OptionLength => "TCP option with an illegal length",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl Header {
    /// Reads the header of `segment`; returns it and the payload. The checksum is not
    /// verified: see [`is_checksum_valid`].
    ///
    /// # Errors
    /// [`ParseError`]; every one means that the segment is dropped.
    pub fn parse(segment: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut header = Self::default();
        let payload = header.read(segment)?;
        Ok((header, payload))
    }

    /// As [`Self::parse`], but in place; returns the payload. A `Result` with the header in it
    /// would be copied on its way.
    ///
    /// # Errors
    ///
    /// [`ParseError`]; the header then holds nothing of use.
    pub fn read<'a>(&mut self, segment: &'a [u8]) -> Result<&'a [u8], ParseError> {
        let (fixed, rest) = segment
            .split_first_chunk::<HEADER_LEN>()
            .ok_or(ParseError::Truncated)?;
        let mut words = [0; HEADER_LEN / 4];
        for (word, bytes) in words.iter_mut().zip(fixed.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        let [ports, seq, ack, control, check] = words;
        let options_len = ((control >> 28) as usize * 4)
            .checked_sub(HEADER_LEN)
            .ok_or(ParseError::DataOffset)?;
        let (options, payload) = rest
            .split_at_checked(options_len)
            .ok_or(ParseError::DataOffset)?;
        *self = Self {
            src_port: (ports >> 16) as u16,
            dst_port: ports as u16,
            seq,
            ack,
            flags: Flags((control >> 16) as u16 & Flags::MASK),
            window: control as u16,
            urgent: check as u16,
            options: Options::NONE,
        };
        self.options.read(options)?;
        Ok(payload)
    }

    /// Bytes that [`Self::emit`] writes: a multiple of four.
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// Writes the header with a zero checksum; returns its length. When the payload stands
    /// behind it, [`fill_checksum`] completes the segment.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short or the options exceed 40 bytes.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let len = self.header_len();
        if len > HEADER_LEN_MAX {
            return Err(Full);
        }
        let mut w = Writer::new(out);
        w.u16(self.src_port)?;
        w.u16(self.dst_port)?;
        w.u32(self.seq)?;
        w.u32(self.ack)?;
        w.u16((len as u16 / 4) << 12 | self.flags.0 & Flags::MASK)?;
        w.u16(self.window)?;
        w.u16(0)?;
        w.u16(self.urgent)?;
        self.options.emit(&mut w)?;
        Ok(len)
    }
}

/// Whether `segment` (header and payload) carries the right checksum (RFC 9293, MUST-3).
pub fn is_checksum_valid(src: &Ipv6Addr, dst: &Ipv6Addr, segment: &[u8]) -> bool {
    checksum::is_valid(src, dst, NEXT_HEADER, segment)
}

/// Computes and stores the checksum of `segment`, header and payload (RFC 9293, MUST-2).
pub fn fill_checksum(src: &Ipv6Addr, dst: &Ipv6Addr, segment: &mut [u8]) {
    checksum::fill(src, dst, NEXT_HEADER, segment, CHECKSUM_AT, false);
}

/// Bytes of the header at the start of `segment`, options included; `None` where it does not
/// hold them all.
pub fn header_len(segment: &[u8]) -> Option<usize> {
    let len = usize::from(segment.get(OFFSET_AT)? >> 4) * 4;
    (HEADER_LEN..=segment.len()).contains(&len).then_some(len)
}

/// The checksum field of `segment`, as received.
pub fn checksum_field(segment: &[u8]) -> Option<u16> {
    checksum::field(segment, CHECKSUM_AT)
}

/// The twelve bits behind the data offset: three reserved, AE, and the eight control bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// The sequence number is the initial one (RFC 9293 §3.1).
    pub const SYN: Self = Self(1 << 1);
    /// The connection is reset.
    pub const RST: Self = Self(1 << 2);
    /// The data so far should be handed to the application.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(1 << 4);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(1 << 5);
    /// ECN echo: the receiver met a congestion mark (RFC 3168 §6.1).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 7);
    /// Accurate ECN (RFC 9768); with the reserved bits, kept but not acted upon.
    pub const AE: Self = Self(1 << 8);

    const MASK: u16 = 0x0fff;

    /// No flag is set.
    pub const EMPTY: Self = Self(0);

    /// The twelve bits of `bits`.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::MASK)
    }

    /// The twelve bits as a number; FIN is the lowest.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The bits above CWR: reserved (3) and AE, AE lowest.
    pub const fn reserved(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// `self` with the bits of `other` set; `|` in constants.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `self` with the bits of `other` cleared.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

/// The options this stack acts upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Maximum segment size, bytes (RFC 9293 §3.7.1); meant for SYNs.
    pub mss: Option<u16>,
    /// Window scale shift count as received; RFC 7323 §2.3 bounds its use to 14.
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018 §2); meant for SYNs.
    pub sack_permitted: bool,
    /// TSval and TSecr, in ticks of each sender's clock (RFC 7323 §3).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018 §3).
    pub sack: SackBlocks,
}

/// One block of a SACK option: `left` the first sequence number held, `right` the one after
/// the last. As on the wire: nothing says that the block is sensible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// The first sequence number of the block.
    pub left: u32,
    /// The sequence number behind the last one of the block.
    pub right: u32,
}

/// Up to four SACK blocks, in wire order.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; SACK_BLOCKS_MAX],
    len: u8,
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl SackBlocks {
    /// The blocks, in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// How many blocks there are, at most [`SACK_BLOCKS_MAX`].
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no block, hence no SACK option.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a block; returns whether it fitted.
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = block;
                self.len += 1;
                true
            }
            None => false,
        }
    }
}

impl Options {
    /// The options of a header of 20 bytes: none.
    pub const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks {
            blocks: [SackBlock { left: 0, right: 0 }; SACK_BLOCKS_MAX],
            len: 0,
        },
    };

    /// Reads an option area. Of a repeated option the last one counts; options of unknown
    /// kind, or of a known kind with a length that is legal but not its own, are skipped.
    ///
    /// # Errors
    /// [`ParseError::OptionLength`].
    pub fn parse(area: &[u8]) -> Result<Self, ParseError> {
        let mut options = Self::NONE;
        options.read(area)?;
        Ok(options)
    }

    /// As [`Self::parse`], into options that are still empty.
    fn read(&mut self, area: &[u8]) -> Result<(), ParseError> {
        // What nearly every segment of a connection carries, and nothing else (RFC 7323
        // appendix A).
        if let [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10, body @ ..] = area
            && body.len() == 8
        {
            self.take(kind::TIMESTAMPS, body);
            return Ok(());
        }
        let mut rest = area;
        while let [kind, tail @ ..] = rest {
            match *kind {
                kind::END => break,
                kind::NOP => rest = tail,
                kind => {
                    let len = tail.first().map_or(0, |len| usize::from(*len));
                    let split = rest.split_at_checked(len);
                    let ([_, _, body @ ..], next) = split.ok_or(ParseError::OptionLength)? else {
                        return Err(ParseError::OptionLength);
                    };
                    self.take(kind, body);
                    rest = next;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let value = u32::from_be_bytes([a, b, c, d]);
                self.timestamps = Some((value, u32::from_be_bytes([e, f, g, h])));
            }
            (kind::SACK, body) => {
                let (blocks, []) = body.as_chunks::<8>() else {
                    return;
                };
                self.sack.len = 0;
                for (slot, &[a, b, c, d, e, f, g, h]) in self.sack.blocks.iter_mut().zip(blocks) {
                    slot.left = u32::from_be_bytes([a, b, c, d]);
                    slot.right = u32::from_be_bytes([e, f, g, h]);
                    self.sack.len += 1;
                }
            }
            _ => {}
        }
    }

    /// Bytes that the options take in a header: a multiple of four; above
    /// [`OPTIONS_LEN_MAX`] they cannot be sent.
    pub fn len(&self) -> usize {
        match self.len_aligned() {
            len if len > OPTIONS_LEN_MAX => self.len_packed().next_multiple_of(4),
            len => len,
        }
    }

    /// Whether there is no option at all.
    pub fn is_empty(&self) -> bool {
        self.len_packed() == 0
    }

    /// The layout of Linux (`tcp_options_write`): every option starts so that its 32-bit
    /// fields are aligned, SACK-permitted sharing a word with the timestamps' first bytes.
    fn len_aligned(&self) -> usize {
        let sack_permitted = self.sack_permitted && self.timestamps.is_none();
        (if self.mss.is_some() { 4 } else { 0 })
            + (if sack_permitted { 4 } else { 0 })
            + (if self.timestamps.is_some() {
                TIMESTAMPS_LEN
            } else {
                0
            })
            + (if self.window_scale.is_some() { 4 } else { 0 })
            + (if self.sack.is_empty() {
                0
            } else {
                4 + 8 * self.sack.len()
            })
    }

    /// Without padding between options: only for options that another stack packed that tightly.
    fn len_packed(&self) -> usize {
        (if self.mss.is_some() { 4 } else { 0 })
            + (if self.sack_permitted { 2 } else { 0 })
            + (if self.timestamps.is_some() { 10 } else { 0 })
            + (if self.window_scale.is_some() { 3 } else { 0 })
            + (if self.sack.is_empty() {
                0
            } else {
                2 + 8 * self.sack.len()
            })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let packed = self.len_aligned() > OPTIONS_LEN_MAX;
        let nops = |w: &mut Writer<'_>, count: usize| match packed {
            true => Ok(()),
            false => w.put([kind::NOP; 2].get(..count).unwrap_or_default()),
        };
        if let Some(mss) = self.mss {
            w.put(&[kind::MSS, 4])?;
            w.u16(mss)?;
        }
        if self.sack_permitted {
            if self.timestamps.is_none() {
                nops(w, 2)?;
            }
            w.put(&[kind::SACK_PERMITTED, 2])?;
        }
        if let Some((value, echo)) = self.timestamps {
            if !self.sack_permitted {
                nops(w, 2)?;
            }
            w.put(&[kind::TIMESTAMPS, 10])?;
            w.u32(value)?;
            w.u32(echo)?;
        }
        if let Some(shift) = self.window_scale {
            nops(w, 1)?;
            w.put(&[kind::WINDOW_SCALE, 3, shift])?;
        }
        if !self.sack.is_empty() {
            nops(w, 2)?;
            w.put(&[kind::SACK, 2 + 8 * self.sack.len])?;
            for block in self.sack.as_slice() {
                w.u32(block.left)?;
                w.u32(block.right)?;
            }
        }
        if packed {
            let padding = self.len() - self.len_packed();
            w.put([kind::END; 3].get(..padding).unwrap_or_default())?;
        }
        Ok(())
    }
}

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const SYN: [u8; 40] = [
        0xc0, 0x01, 0x00, 0x50, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfd, 0xe8, 0, 0, 0,
        0, // header
        2, 4, 5, 0xa0, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7,
    ];

    fn emitted(header: &Header) -> Vec<u8> {
        let mut out = [0xee; HEADER_LEN_MAX];
        let len = header.emit(&mut out).unwrap();
        assert_eq!(len, header.header_len());
        out[..len].to_vec()
    }

    #[test]
    fn linux_syn_is_read_and_written_byte_for_byte() {
        let (header, payload) = Header::parse(&SYN).unwrap();
        assert_eq!((header.src_port, header.dst_port), (0xc001, 80));
        assert_eq!(
            (header.seq, header.flags, header.window),
            (0x0102_0304, Flags::SYN, 65000)
        );
        assert_eq!(header.options.mss, Some(1440));
        assert_eq!(header.options.window_scale, Some(7));
        assert!(header.options.sack_permitted);
        assert_eq!(header.options.timestamps, Some((9, 0)));
        assert!(payload.is_empty());
        assert_eq!(emitted(&header), SYN);
    }

    #[test]
    fn canonical_option_areas_round_trip_byte_for_byte() {
        let ts = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let sack = [1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4];
        let areas: [(&str, Vec<u8>); 6] = [
            ("none", vec![]),
            ("timestamps", ts.to_vec()),
            ("one SACK block", sack.to_vec()),
            ("both", [ts, sack].concat()),
            ("MSS and SACK-permitted", vec![2, 4, 1, 0, 1, 1, 4, 2]),
            ("window scale", vec![1, 3, 3, 2]),
        ];
        for (name, area) in areas {
            let mut out = [0; OPTIONS_LEN_MAX];
            let mut w = Writer::new(&mut out);
            let options = Options::parse(&area).unwrap();
            options.emit(&mut w).unwrap();
            let len = w.written();
            assert_eq!(out[..len], area, "{name}");
            assert_eq!(options.len(), len, "{name}");
        }
    }

    #[test]
    fn hostile_options() {
        type Expected = Result<Option<u16>, ParseError>;
        let cases: [(&str, &[u8], Expected); 12] = [
            ("no length", &[2], Err(ParseError::OptionLength)),
            ("length 0", &[2, 0, 5, 0xa0], Err(ParseError::OptionLength)),
            ("length 1", &[2, 1, 5, 0xa0], Err(ParseError::OptionLength)),
            (
                "length beyond the area",
                &[2, 5, 5, 0xa0],
                Err(ParseError::OptionLength),
            ),
            (
                "unknown beyond the area",
                &[254, 9, 0, 0],
                Err(ParseError::OptionLength),
            ),
            (
                "unknown, then MSS",
                &[254, 4, 0, 0, 2, 4, 1, 0],
                Ok(Some(256)),
            ),
            ("unknown of length 2", &[69, 2, 2, 4, 1, 0], Ok(Some(256))),
            (
                "repeated: the last counts",
                &[2, 4, 1, 0, 2, 4, 2, 0],
                Ok(Some(512)),
            ),
            ("MSS of another legal length", &[2, 3, 7, 1], Ok(None)),
            ("nothing is read behind the end", &[0, 2, 0, 7], Ok(None)),
            ("SACK with half a block", &[5, 6, 0, 0, 0, 0], Ok(None)),
            ("no-operations only", &[1, 1, 1, 1], Ok(None)),
        ];
        for (name, area, expected) in cases {
            let parsed = Options::parse(area);
            assert_eq!(parsed.map(|options| options.mss), expected, "{name}");
            if let Ok(options) = parsed {
                assert!(options.sack.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn hostile_headers() {
        assert_eq!(Header::parse(&SYN[..19]), Err(ParseError::Truncated));
        assert_eq!(Header::parse(&SYN[..39]), Err(ParseError::DataOffset));
        let mut short = SYN;
        short[12] = 0x40;
        assert_eq!(Header::parse(&short), Err(ParseError::DataOffset));
    }

    #[test]
    fn reserved_bits_are_kept() {
        let mut segment = SYN;
        segment[12] |= 0x0f;
        let (header, _) = Header::parse(&segment).unwrap();
        assert_eq!(header.flags.reserved(), 0x0f);
        assert_eq!(emitted(&header), segment);
    }

    #[test]
    fn too_many_options_are_refused_not_truncated() {
        let mut header = Header::default();
        header.options.timestamps = Some((1, 2));
        header.options.mss = Some(1);
        header.options.window_scale = Some(1);
        while header.options.sack.push(SackBlock { left: 1, right: 2 }) {}
        assert_eq!(header.options.sack.len(), SACK_BLOCKS_MAX);
        assert_eq!(header.emit(&mut [0; 100]), Err(Full));
        assert_eq!(Header::default().emit(&mut [0; 19]), Err(Full));
    }

    #[test]
    fn checksum_is_filled_and_checked() {
        let (src, dst) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        let mut segment = SYN;
        assert!(!is_checksum_valid(&src, &dst, &segment));
        fill_checksum(&src, &dst, &mut segment);
        assert!(is_checksum_valid(&src, &dst, &segment));
        assert!(checksum_field(&segment).is_some());
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_what_it_yields_round_trips(mut bytes in prop::collection::vec(any::<u8>(), 0..80), words in 0u8..16) {
            if let Some(offset) = bytes.get_mut(12) {
                *offset = words << 4 | *offset & 0x0f;
            }
            if let Ok((header, payload)) = Header::parse(&bytes) {
                prop_assert!(payload.len() <= bytes.len() - HEADER_LEN);
                let again = emitted(&header);
                prop_assert_eq!(Header::parse(&again), Ok((header, &[][..])));
            }
        }

        /// Real option kinds in any order and packing, so that parsing gets past the kinds.
        #[test]
        fn plausible_options_round_trip(pieces in prop::collection::vec((0usize..7, any::<u64>()), 0..8)) {
            let mut area = Vec::new();
            for (kind, value) in pieces {
                let v = value.to_be_bytes();
                let option: Vec<u8> = match kind {
                    0 => vec![1],
                    1 => vec![2, 4, v[0], v[1]],
                    2 => vec![3, 3, v[0]],
                    3 => vec![4, 2],
                    4 => [&[5, 10][..], &v].concat(),
                    5 => [&[5, 26][..], &v, &v, &v].concat(),
                    _ => [&[8, 10][..], &v].concat(),
                };
                if area.len() + option.len() <= OPTIONS_LEN_MAX {
                    area.extend(option);
                }
            }
            let options = Options::parse(&area).unwrap();
            let header = Header { options, ..Header::default() };
            let again = emitted(&header);
            prop_assert_eq!(Header::parse(&again).unwrap().0, header);
        }
    }
}
