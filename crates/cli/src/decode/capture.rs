//! Capture files: pcap and pcapng, either byte order, microseconds or nanoseconds.
//!
//! Place: the first step of `decode`; hands on records with their link type and time.
//! Left out: what is in a record (`link`).
//! Sources: the pcap and pcapng Internet-Drafts of the OPSAWG; the crate `pcap-file` does the
//! reading, but for the rules it applies more strictly than the programs that write captures.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use crate::output;

/// A link-layer type, as the registry of capture formats numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkType(pub(super) u32);

/// One captured frame.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Nanoseconds since 1970.
    pub(super) epoch_ns: u64,
    /// What the bytes begin with.
    pub(super) link_type: LinkType,
    /// Bytes on the air; may be more than were captured.
    pub(super) original_len: u32,
    /// The captured bytes.
    pub(super) data: Vec<u8>,
}

/// Why a capture cannot be read (further).
#[derive(Debug)]
pub(super) enum CaptureError {
    /// The system would not open or read it.
    Io(io::Error),
    /// Frames of a kind nobody here reads.
    LinkType(LinkType),
    /// Nothing in it at all.
    Empty,
    /// It begins like no capture; says what it looks like where that is known.
    Foreign(&'static str),
    /// It ends in the middle of its own header.
    HeaderTruncated,
    /// It ends in the middle of a record (from 1) or block.
    Truncated {
        /// The record that is cut.
        record: u64,
    },
    /// A record (from 1) or block contradicts the format.
    Damaged {
        /// The record that cannot be read.
        record: u64,
        /// The reader's words.
        reason: String,
    },
}

/// A capture, open for reading.
pub(super) struct Capture {
    format: Format,
    /// Records handed out so far.
    records: u64,
}

enum Format {
    Pcap {
        reader: PcapReader<Input>,
        link_type: LinkType,
    },
    PcapNg(PcapNgReader<Input>),
}

type Input = BufReader<Box<dyn Read>>;

impl Capture {
    /// Opens a file, or standard input where the path is `-`.
    pub(super) fn open(path: &Path) -> Result<Self, CaptureError> {
        let input: Box<dyn Read> = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let file = File::open(path).map_err(CaptureError::Io)?;
            if file.metadata().map_err(CaptureError::Io)?.is_dir() {
                return Err(CaptureError::Io(io::ErrorKind::IsADirectory.into()));
            }
            Box::new(file)
        };
        Self::new(input)
    }

    /// Reads the header of a capture.
    pub(super) fn new(input: Box<dyn Read>) -> Result<Self, CaptureError> {
        // The first bytes decide; they are put back in front of the rest.
        let mut input = BufReader::new(input);
        let mut magic = Vec::new();
        input
            .by_ref()
            .take(4)
            .read_to_end(&mut magic)
            .map_err(CaptureError::Io)?;
        let more = !input.fill_buf().map_err(CaptureError::Io)?.is_empty();
        let kind = kind_of(&magic, more)?;
        let input: Input = BufReader::new(Box::new(io::Cursor::new(magic).chain(input)));
        let format = match kind {
            Kind::Pcap => {
                let reader = PcapReader::new(input).map_err(in_header)?;
                // The upper half of the field holds the length of the FCS, which the types
                // we know say by themselves.
                let link_type = LinkType(u32::from(reader.header().datalink) & 0xffff);
                Format::Pcap { reader, link_type }
            }
            Kind::PcapNg => Format::PcapNg(PcapNgReader::new(input).map_err(in_header)?),
        };
        Ok(Self { format, records: 0 })
    }

    /// The next record, or `None` at the end of the file.
    pub(super) fn next_record(&mut self) -> Option<Result<Record, CaptureError>> {
        let record = self.records + 1;
        let result = match &mut self.format {
            Format::Pcap { reader, link_type } => next_pcap(reader, *link_type)?,
            Format::PcapNg(reader) => next_pcapng(reader)?,
        };
        self.records = record;
        Some(result.map_err(|error| at_record(error, record)))
    }
}

enum Kind {
    Pcap,
    PcapNg,
}

/// Tells a capture from other files by its first four bytes.
fn kind_of(magic: &[u8], more: bool) -> Result<Kind, CaptureError> {
    let known = [
        (MAGIC_US, Kind::Pcap),
        (MAGIC_NS, Kind::Pcap),
        (MAGIC_US.swap_bytes(), Kind::Pcap),
        (MAGIC_NS.swap_bytes(), Kind::Pcap),
        (MAGIC_NG, Kind::PcapNg),
    ];
    let Ok(head) = <[u8; 4]>::try_from(magic) else {
        let begins_well = known
            .iter()
            .any(|(number, _)| number.to_be_bytes().starts_with(magic));
        return Err(match magic {
            [] => CaptureError::Empty,
            _ if begins_well => CaptureError::HeaderTruncated,
            _ => CaptureError::Foreign(""),
        });
    };
    let number = u32::from_be_bytes(head);
    match known.into_iter().find(|(known, _)| *known == number) {
        Some((_, kind)) if more => Ok(kind),
        Some(_) => Err(CaptureError::HeaderTruncated),
        None => Err(CaptureError::Foreign(match head {
            [0x1f, 0x8b, ..] => "it is compressed with gzip; decompress it first",
            [0x28, 0xb5, 0x2f, 0xfd] => "it is compressed with zstd; decompress it first",
            [0xa1, 0xb2, 0xcd, 0x34] | [0x34, 0xcd, 0xb2, 0xa1] => {
                "it is in the patched pcap format of old Linux systems; convert it with editcap"
            }
            [b's', b'n', b'o', b'o'] => "it is a snoop capture; convert it with editcap",
            _ => "",
        })),
    }
}

fn next_pcap(
    reader: &mut PcapReader<Input>,
    link_type: LinkType,
) -> Option<Result<Record, PcapError>> {
    let fraction_ns = match reader.header().ts_resolution {
        TsResolution::MicroSecond => 1_000,
        TsResolution::NanoSecond => 1,
    };
    // The raw record: the checked one refuses every frame longer than the snap length, which
    // is just what a snap length makes of long frames.
    Some(reader.next_raw_packet()?.map(|packet| Record {
        epoch_ns: u64::from(packet.ts_sec) * 1_000_000_000
            + u64::from(packet.ts_frac) * fraction_ns,
        link_type,
        original_len: packet.orig_len,
        data: packet.data.into_owned(),
    }))
}

/// The next packet of a pcapng file; blocks of other kinds are passed over.
fn next_pcapng(reader: &mut PcapNgReader<Input>) -> Option<Result<Record, PcapError>> {
    loop {
        let block = match reader.next_block()? {
            Ok(block) => block.into_owned(),
            Err(error) => return Some(Err(error)),
        };
        // `pcap-file` takes the timestamp for nanoseconds whatever the interface says its
        // unit is; undo that and apply the unit here.
        let (interface, units, original_len, data) = match block {
            Block::EnhancedPacket(packet) => (
                packet.interface_id,
                packet.timestamp.as_nanos() as u64,
                packet.original_len,
                packet.data,
            ),
            Block::Packet(packet) => {
                // Two 32-bit halves, upper first, in either byte order; read as one number,
                // they are exchanged in little-endian files.
                let units = match reader.section().endianness {
                    Endianness::Big => packet.timestamp,
                    Endianness::Little => packet.timestamp.rotate_left(32),
                };
                (
                    u32::from(packet.interface_id),
                    units,
                    packet.original_len,
                    packet.data,
                )
            }
            Block::SimplePacket(packet) => (0, 0, packet.original_len, packet.data),
            _ => continue,
        };
        let Some(interface) = reader.interfaces().get(interface as usize) else {
            return Some(Err(PcapError::InvalidInterfaceId(interface)));
        };
        let mut data = data.into_owned();
        // A simple packet is padded to four bytes and does not say where it ends but by the
        // lengths of the frame and of the interface's snap length.
        let snap_len = if interface.snaplen == 0 {
            u32::MAX
        } else {
            interface.snaplen
        };
        data.truncate(original_len.min(snap_len) as usize);
        return Some(Ok(Record {
            epoch_ns: timestamp_ns(interface, units),
            link_type: LinkType(u32::from(interface.linktype)),
            original_len,
            data,
        }));
    }
}

/// Nanoseconds since 1970 of a timestamp in the interface's own unit.
fn timestamp_ns(interface: &InterfaceDescriptionBlock<'_>, units: u64) -> u64 {
    let mut resolution = 6;
    let mut offset_s = 0;
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfTsResol(value) => resolution = *value,
            InterfaceDescriptionOption::IfTsOffset(value) => offset_s = *value,
            _ => {}
        }
    }
    // With the top bit set the unit is a power of two, else of ten.
    let per_second = match resolution & 0x7f {
        power if resolution & 0x80 != 0 => 1_u128.checked_shl(u32::from(power)),
        power => 10_u128.checked_pow(u32::from(power)),
    };
    // A unit too fine for 128 bits makes every time zero.
    let ns = per_second.map_or(0, |per_second| {
        u128::from(units) * 1_000_000_000 / per_second
    });
    let offset_ns = u128::from(offset_s) * 1_000_000_000;
    u64::try_from(ns.wrapping_add(offset_ns)).unwrap_or(u64::MAX)
}

fn in_header(error: PcapError) -> CaptureError {
    match at_record(error, 0) {
        CaptureError::Truncated { .. } => CaptureError::HeaderTruncated,
        other => other,
    }
}

fn at_record(error: PcapError, record: u64) -> CaptureError {
    match error {
        PcapError::IncompleteBuffer => CaptureError::Truncated { record },
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            CaptureError::Truncated { record }
        }
        PcapError::IoError(error) => CaptureError::Io(error),
        other => CaptureError::Damaged {
            record,
            reason: other.to_string(),
        },
    }
}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&plain(error)),
            Self::LinkType(LinkType(number)) => {
                let name = match DataLink::from(*number) {
                    DataLink::Unknown(_) => String::new(),
                    name => format!(" ({name:?})"),
                };
                write!(
                    f,
                    "its link type {number}{name} is not supported; supported are {}",
                    LinkType::SUPPORTED
                )
            }
            Self::Empty => write!(f, "the file is empty, name a pcap or pcapng capture"),
            Self::Foreign("") => write!(f, "not a pcap or pcapng capture, name one that is"),
            Self::Foreign(hint) => write!(f, "not a pcap or pcapng capture: {hint}"),
            Self::HeaderTruncated => write!(f, "the capture is cut short within its file header"),
            Self::Truncated { record } => {
                write!(
                    f,
                    "the capture is cut short within record {record}; the records before it are complete"
                )
            }
            Self::Damaged { record, reason } => {
                write!(
                    f,
                    "the capture is damaged at record {record} ({reason}); the records before it are complete"
                )
            }
        }
    }
}

/// An error of the system without its number.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file, check the path".into(),
        io::ErrorKind::PermissionDenied => {
            "not readable by this user, check its permissions".into()
        }
        io::ErrorKind::IsADirectory => "it is a directory, name a capture file".into(),
        _ => output::describe(error),
    }
}

/// First bytes of a pcap file with microseconds, big-endian.
const MAGIC_US: u32 = 0xa1b2_c3d4;
/// First bytes of a pcap file with nanoseconds, big-endian.
const MAGIC_NS: u32 = 0xa1b2_3c4d;
/// Type of the section header block that every pcapng file begins with; a palindrome.
const MAGIC_NG: u32 = 0x0a0d_0d0a;
