//! Capture files: pcap and pcapng, either byte order, microseconds or nanoseconds; and the bytes of
//! a serial line, without times.
//!
//! Place: the first step of `decode`; hands on records with their link type and time.
//! Left out: what is in a record (`link`).
//! Sources: the pcap Internet-Draft of the OPSAWG. The crate `pcap-file` reads pcap files, but for
//! the rules that it applies more strictly than the programs that write captures; `pcapng` reads
//! the others, `line` the bytes of a serial line.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};

use pcap_file::pcap::PcapReader;
use pcap_file::{DataLink, PcapError, TsResolution};

use super::line::{Line, Piece};
use super::{odd_pcap, pcapng};

/// A link-layer type, as the registry of capture formats numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkType(pub u32);

/// One captured frame.
#[derive(Clone, Debug)]
pub struct Record {
    /// Nanoseconds since 1970.
    pub epoch_ns: u64,
    /// The protocol of the first byte.
    pub link_type: LinkType,
    /// Bytes on the air; may be more than were captured.
    pub original_len: u32,
    /// The captured bytes.
    pub data: Vec<u8>,
}

/// Why a capture cannot be read (further).
#[derive(Debug)]
pub enum CaptureError {
    /// The system did not open the file or did not read it.
    Io(io::Error),
    /// The frames are of a link type that `decode` does not read.
    LinkType(LinkType),
    /// The file is empty.
    Empty,
    /// The file is not a capture. The text names the format that it looks like, if known.
    Foreign(&'static str),
    /// The file is a capture, and was to be the bytes of a serial line.
    NoLine,
    /// The file ends in the middle of its own header.
    HeaderTruncated,
    /// The file ends in the middle of a record (from 1) or block.
    Truncated {
        /// The record that is cut.
        record: u64,
    },
    /// A record (from 1) or block contradicts the format.
    Damaged {
        /// The record that cannot be read.
        record: u64,
        /// The reader's words about the error.
        reason: String,
    },
}

/// A capture, open for reading.
pub struct Capture {
    format: Format,
    /// Records read so far.
    records: u64,
    /// Those read ahead.
    ahead: VecDeque<Result<Record, CaptureError>>,
}

enum Format {
    Pcap {
        reader: PcapReader<Input>,
        link_type: LinkType,
    },
    PcapNg(pcapng::Reader),
    Line(Line),
}

pub(super) type Input = BufReader<Box<dyn Read>>;

impl Capture {
    /// A capture that is in memory.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, CaptureError> {
        Self::new(Box::new(io::Cursor::new(bytes)))
    }

    /// Reads the header of a capture; what follows is read record by record.
    ///
    /// # Errors
    /// It is no capture, or cut short.
    pub fn new(input: Box<dyn Read>) -> Result<Self, CaptureError> {
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
        if let (Kind::Pcap, Ok(magic)) = (&kind, <[u8; 4]>::try_from(&magic[..])) {
            let odd = odd_pcap::kind(magic, input.buffer());
            odd.map_or(Ok(()), |what| Err(CaptureError::Foreign(what)))?;
        }
        let input: Input = BufReader::new(Box::new(io::Cursor::new(magic).chain(input)));
        let format = match kind {
            Kind::Pcap => {
                let reader = PcapReader::new(input).map_err(in_header)?;
                // The upper half of the field holds the length of the FCS. The types that
                // `decode` reads imply that length.
                let link_type = LinkType(u32::from(reader.header().datalink) & 0xffff);
                Format::Pcap { reader, link_type }
            }
            Kind::PcapNg => Format::PcapNg(pcapng::Reader::new(input).map_err(in_header)?),
        };
        Ok(Self {
            format,
            records: 0,
            ahead: VecDeque::new(),
        })
    }

    /// Reads the bytes of a serial line with Spinel. Each record is a frame, or what lies between
    /// two; all have the time 0.
    ///
    /// # Errors
    /// It is a capture, or cannot be read.
    pub fn of_serial_line(mut input: Box<dyn Read>) -> Result<Self, CaptureError> {
        let mut magic = Vec::new();
        let mut head = input.by_ref().take(4);
        head.read_to_end(&mut magic).map_err(CaptureError::Io)?;
        if kind_of(&magic, true).is_ok() {
            return Err(CaptureError::NoLine);
        }
        let input: Input = BufReader::new(Box::new(io::Cursor::new(magic).chain(input)));
        Ok(Self {
            format: Format::Line(Line::new(input)),
            records: 0,
            ahead: VecDeque::new(),
        })
    }

    /// The next record, or `None` at the end of the file.
    pub fn next_record(&mut self) -> Option<Result<Record, CaptureError>> {
        match self.ahead.pop_front() {
            Some(record) => Some(record),
            None => self.read_record(),
        }
    }

    /// Reads ahead as far as the record at this place from here, unless the capture ends before.
    pub(super) fn ahead(&mut self, at: usize) -> Option<&Record> {
        while self.ahead.len() <= at && self.ahead.back().is_none_or(Result::is_ok) {
            let record = self.read_record()?;
            self.ahead.push_back(record);
        }
        self.kept(at)
    }

    /// The record at this place from here, if it has been read ahead.
    pub(super) fn kept(&self, at: usize) -> Option<&Record> {
        self.ahead.get(at)?.as_ref().ok()
    }

    fn read_record(&mut self) -> Option<Result<Record, CaptureError>> {
        let record = self.records + 1;
        let result = match &mut self.format {
            Format::Pcap { reader, link_type } => next_pcap(reader, *link_type)?,
            Format::PcapNg(reader) => reader.next_record()?,
            Format::Line(line) => line.next_piece()?.map(of_piece).map_err(PcapError::IoError),
        };
        self.records = record;
        Some(result.map_err(|error| at_record(error, record)))
    }
}

impl Iterator for Capture {
    type Item = Result<Record, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record()
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let records = &self.records;
        f.debug_struct("Capture").field("records", records).finish()
    }
}

impl std::error::Error for CaptureError {}

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
            [0x7e, 0x80..=0xbf, ..] => {
                "it begins as a serial line with Spinel does; motet decode --spinel reads that"
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

fn of_piece(piece: Piece) -> Record {
    Record {
        epoch_ns: 0,
        link_type: LinkType::SERIAL_LINE,
        original_len: piece.len,
        data: piece.data,
    }
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
            Self::NoLine => write!(
                f,
                "it is a pcap or pcapng capture and not the bytes of a serial line, leave out --spinel"
            ),
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
        _ => describe(error),
    }
}

/// The system's words without its number, to end a sentence with.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_lowercase().chain(chars));
    first.map(Iterator::collect).unwrap_or_default()
}

/// First bytes of a pcap file with microseconds, big-endian.
const MAGIC_US: u32 = 0xa1b2_c3d4;
/// First bytes of a pcap file with nanoseconds, big-endian.
const MAGIC_NS: u32 = 0xa1b2_3c4d;
/// Type of the section header block that every pcapng file begins with; a palindrome.
const MAGIC_NG: u32 = 0x0a0d_0d0a;
