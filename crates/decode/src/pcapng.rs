//! pcapng files, block by block.
//!
//! Place: under `capture`, which has recognised the file. Sections, interfaces and packets are
//! read; blocks and options of every other kind are passed over, and a text in one of them may
//! hold any bytes.
//! Left out: comments, names of hosts, secrets, statistics.
//! Source: draft-ietf-opsawg-pcapng. The reader of the crate `pcap-file` (2.0) is stricter than
//! the draft: it refuses an option list without `opt_endofopt`, which a reader must not rely on
//! ("Options"), and texts that are not UTF-8.

use std::io::{self, Read};

use pcap_file::PcapError;

use super::capture::{Input, LinkType, Record};

/// A pcapng file, open behind the header of its first section.
pub(super) struct Reader {
    input: Input,
    order: Order,
    /// The interfaces of the section, in the order in which packets number them.
    interfaces: Vec<Interface>,
}

/// The byte order of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Big,
    Little,
}

/// The interface that captured a packet.
struct Interface {
    link_type: u16,
    /// Bytes of each packet that were kept; zero: all of them.
    snap_len: u32,
    /// The unit of timestamps, as `if_tsresol` writes it.
    resolution: u8,
    /// Seconds to add to every timestamp.
    offset_s: i64,
}

/// A block without its type and its two lengths.
struct Block {
    kind: u32,
    /// Empty where `kind` is one that no function here reads.
    body: Vec<u8>,
}

impl Reader {
    /// Reads the header of the first section.
    pub(super) fn new(input: Input) -> Result<Self, PcapError> {
        let mut reader = Self {
            input,
            order: Order::Little,
            interfaces: Vec::new(),
        };
        match reader.next_block()? {
            Some(block) if block.kind == SECTION_HEADER => reader.begin_section(&block.body)?,
            _ => return Err(PcapError::InvalidField("the first block is no section")),
        }
        Ok(reader)
    }

    /// The next packet, or `None` at the end of the file.
    pub(super) fn next_record(&mut self) -> Option<Result<Record, PcapError>> {
        loop {
            let block = match self.next_block() {
                Ok(block) => block?,
                Err(error) => return Some(Err(error)),
            };
            let read = match block.kind {
                SECTION_HEADER => self.begin_section(&block.body),
                INTERFACE => self.add_interface(&block.body),
                PACKET | SIMPLE_PACKET | ENHANCED_PACKET => return Some(self.packet(&block)),
                _ => Ok(()),
            };
            if let Err(error) = read {
                return Some(Err(error));
            }
        }
    }

    /// Reads a block and checks its two lengths; `None` at the end of the file.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                          block type                           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                      block total length                       |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// /             body, padded to a multiple of 32 bits             /
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                      block total length                       |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    fn next_block(&mut self) -> Result<Option<Block>, PcapError> {
        let mut kind = Vec::new();
        let mut first = self.input.by_ref().take(4);
        first.read_to_end(&mut kind).map_err(PcapError::IoError)?;
        if kind.is_empty() {
            return Ok(None);
        }
        let kind = <[u8; 4]>::try_from(kind).map_err(|_| PcapError::IncompleteBuffer)?;
        let kind = self.order.u32(kind);
        let len = self.four()?;
        let mut body = Vec::new();
        if kind == SECTION_HEADER {
            // The length is in the byte order that the field behind it announces.
            let magic = self.four()?;
            self.order = match u32::from_be_bytes(magic) {
                BYTE_ORDER_MAGIC => Order::Big,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => Order::Little,
                _ => return Err(PcapError::InvalidField("a section of unknown byte order")),
            };
            body.extend(magic);
        }
        let len = self.order.u32(len);
        let body_len = len.checked_sub(FRAMING_LEN + body.len() as u32);
        let (Some(body_len), true) = (body_len, len.is_multiple_of(4)) else {
            return Err(PcapError::InvalidField("a block of impossible length"));
        };
        if READ.contains(&kind) && len > BLOCK_LEN_MAX {
            return Err(PcapError::InvalidField("a block of more than 16 MiB"));
        }
        let mut bytes = self.input.by_ref().take(body_len.into());
        let passed = if READ.contains(&kind) {
            bytes.read_to_end(&mut body).map(|len| len as u64)
        } else {
            io::copy(&mut bytes, &mut io::sink())
        };
        if passed.map_err(PcapError::IoError)? < u64::from(body_len) {
            return Err(PcapError::IncompleteBuffer);
        }
        let trailer = self.four()?;
        if self.order.u32(trailer) != len {
            return Err(PcapError::InvalidField("a block's two lengths differ"));
        }
        Ok(Some(Block { kind, body }))
    }

    fn four(&mut self) -> Result<[u8; 4], PcapError> {
        let mut bytes = [0; 4];
        let read = self.input.read_exact(&mut bytes);
        read.map(|()| bytes).map_err(PcapError::IoError)
    }

    /// Forgets the interfaces of the section before; [`Reader::next_block`] has noted the order.
    fn begin_section(&mut self, body: &[u8]) -> Result<(), PcapError> {
        let mut fields = self.fields(body);
        let _magic = fields.u32()?;
        if fields.u16()? != VERSION_MAJOR {
            return Err(PcapError::InvalidField("a section of unknown version"));
        }
        self.interfaces.clear();
        Ok(())
    }

    fn add_interface(&mut self, body: &[u8]) -> Result<(), PcapError> {
        let mut fields = self.fields(body);
        let link_type = fields.u16()?;
        let _reserved = fields.u16()?;
        let mut interface = Interface {
            link_type,
            snap_len: fields.u32()?,
            resolution: MICROSECONDS,
            offset_s: 0,
        };
        while let Some((code, value)) = fields.option()? {
            match (code, value) {
                (IF_TSRESOL, &[resolution]) => interface.resolution = resolution,
                (IF_TSOFFSET, value) if value.len() == 8 => {
                    interface.offset_s = self.fields(value).u64()?.cast_signed();
                }
                (IF_TSRESOL | IF_TSOFFSET, _) => {
                    return Err(PcapError::InvalidField("an option of another length"));
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Reads any of the three kinds of packet; their options come last, and none is of use.
    fn packet(&self, block: &Block) -> Result<Record, PcapError> {
        let mut fields = self.fields(&block.body);
        let number = match block.kind {
            ENHANCED_PACKET => fields.u32()?,
            PACKET => {
                let number = fields.u16()?;
                let _drops = fields.u16()?;
                number.into()
            }
            _ => 0,
        };
        let interface = self
            .interfaces
            .get(number as usize)
            .ok_or(PcapError::InvalidInterfaceId(number))?;
        let (units, captured_len) = match block.kind {
            // A simple packet is padded to four bytes, and only its original length and the snap
            // length say where its bytes end.
            SIMPLE_PACKET => (0, None),
            // The upper half of a timestamp comes first in either byte order.
            _ => {
                let units = u64::from(fields.u32()?) << 32 | u64::from(fields.u32()?);
                (units, Some(fields.u32()?))
            }
        };
        let original_len = fields.u32()?;
        // A length in the block counts, be it beyond the snap length: writers copy the latter from
        // files whose frames did not keep to it.
        let data = match captured_len {
            Some(len) => fields.take(len as usize)?.to_vec(),
            None => {
                // Here it says only which bytes of the last four are padding.
                let snap_len = Some(interface.snap_len as usize)
                    .filter(|len| *len > 0 && fields.rest.len() <= len.next_multiple_of(4));
                let mut data = fields.rest.to_vec();
                data.truncate(snap_len.unwrap_or(usize::MAX).min(original_len as usize));
                data
            }
        };
        Ok(Record {
            epoch_ns: interface.epoch_ns(units),
            link_type: LinkType(interface.link_type.into()),
            original_len,
            data,
        })
    }

    const fn fields<'a>(&self, rest: &'a [u8]) -> Fields<'a> {
        Fields {
            rest,
            order: self.order,
        }
    }
}

impl Interface {
    /// Nanoseconds since 1970 of a timestamp in the interface's own unit; times before 1970 and
    /// times beyond the range become the nearest one in range.
    fn epoch_ns(&self, units: u64) -> u64 {
        // With the top bit set the unit is a power of two, else of ten.
        let per_second = match self.resolution & 0x7f {
            power if self.resolution & 0x80 != 0 => 1_u128.checked_shl(u32::from(power)),
            power => 10_u128.checked_pow(u32::from(power)),
        };
        // A unit too fine for 128 bits makes every time zero.
        let ns = per_second.map_or(0, |per_second| {
            u128::from(units) * 1_000_000_000 / per_second
        });
        // At most 2^64 units of a second are 2^94 nanoseconds, far from the limit of the type.
        let ns = ns.cast_signed() + i128::from(self.offset_s) * 1_000_000_000;
        ns.clamp(0, u64::MAX.into()) as u64
    }
}

impl Order {
    const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        }
    }
}

/// The fields of a block's body, taken from the front.
struct Fields<'a> {
    rest: &'a [u8],
    order: Order,
}

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], PcapError> {
        let split = self.rest.split_at_checked(len);
        let (taken, rest) = split.ok_or(PcapError::InvalidField("a field beyond its block"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes an unsigned number of `LEN` bytes, at most eight.
    fn number<const LEN: usize>(&mut self) -> Result<u64, PcapError> {
        let bytes = self.take(LEN)?.iter();
        let fold = |number, byte: &u8| number << 8 | u64::from(*byte);
        Ok(match self.order {
            Order::Big => bytes.fold(0, fold),
            Order::Little => bytes.rev().fold(0, fold),
        })
    }

    fn u16(&mut self) -> Result<u16, PcapError> {
        Ok(self.number::<2>()? as u16)
    }

    fn u32(&mut self) -> Result<u32, PcapError> {
        Ok(self.number::<4>()? as u32)
    }

    fn u64(&mut self) -> Result<u64, PcapError> {
        self.number::<8>()
    }

    /// The code and value of the next option; `None`: the list is at its end, which the block's
    /// end marks as well as `opt_endofopt` does.
    fn option(&mut self) -> Result<Option<(u16, &'a [u8])>, PcapError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (code, len) = (self.u16()?, self.u16()?);
        if code == OPT_ENDOFOPT {
            return Ok(None);
        }
        let padded = self.take(usize::from(len).next_multiple_of(4))?;
        Ok(padded.get(..usize::from(len)).map(|value| (code, value)))
    }
}

/// Block types; that of a section is the same in either byte order.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// The blocks of which a function here reads the body.
const READ: [u32; 5] = [
    SECTION_HEADER,
    INTERFACE,
    PACKET,
    SIMPLE_PACKET,
    ENHANCED_PACKET,
];

/// Bytes of a block around its body: the type and two lengths.
const FRAMING_LEN: u32 = 12;
/// The longest block that is read into memory; Wireshark has the same limit.
const BLOCK_LEN_MAX: u32 = 16 << 20;
/// The first field of a section, as its own byte order writes it.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const VERSION_MAJOR: u16 = 1;

/// Codes of options.
const OPT_ENDOFOPT: u16 = 0;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// The unit of timestamps where no `if_tsresol` says otherwise.
const MICROSECONDS: u8 = 6;
