//! Captures that Wireshark reads: of the air and of the wire.
//!
//! Purpose: one record for each frame or packet, stamped with virtual time, hence the same bytes
//! from the same run. Each record is written whole and at once, to a file or to a stream, so that a
//! capture can be watched live. A file appears under its name with its first record.
//! Left out: pcapng. Comments on dropped packets will need it. Every number is written least
//! significant byte first, so that every platform writes the same file.
//! Sources: the pcap Internet-Draft of the OPSAWG; <https://www.tcpdump.org/linktypes.html>; IEEE
//! 802.15.4 TAP link type specification, version 0 (its type-length-values are padded to four
//! bytes).

use std::fmt;
use std::io::{self, Write};
#[cfg(feature = "files")]
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use motet::time::Instant;

#[cfg(feature = "files")]
use crate::files::RecordFile;

/// The records of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Records {
    /// PSDUs with FCS (link type 195).
    Frames,
    /// The same behind a header with channel and signal strength at the receiver (283).
    TappedFrames,
    /// IPv6 packets (229).
    Packets,
    /// Packets of Bluetooth LE's link layer behind a header that says how each was received (256).
    Bluetooth,
    /// The packets between a Bluetooth host and its controller: H4, behind a header with the
    /// direction (link type 201).
    Hci,
}

/// A capture being written.
#[derive(Debug)]
pub struct Capture {
    target: Target,
    records: Records,
    scratch: Vec<u8>,
    /// The first failure to write; told at the end, so that a full disk stops no run.
    failed: Option<io::Error>,
}

/// The bytes of a capture in memory: clones share them, so that one writes and another takes.
#[derive(Clone, Debug, Default)]
pub struct Tape(Arc<Mutex<Vec<u8>>>);

impl Tape {
    /// A capture that is written here.
    ///
    /// # Errors
    /// None: memory takes everything.
    pub fn capture(&self, records: Records) -> io::Result<Capture> {
        Capture::stream(Box::new(self.clone()), records)
    }

    /// All that was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.all().clone()
    }

    /// What was written since the last call of this kind, which is then no longer here.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.all())
    }

    fn all(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.all().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The destination of a capture: a file, or a stream.
enum Target {
    /// A file that grows under its name.
    #[cfg(feature = "files")]
    File(RecordFile),
    /// A pipe or the like, written to record by record.
    Stream(Box<dyn Write + Send>),
}

impl Target {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            #[cfg(feature = "files")]
            Self::File(file) => file.append(bytes),
            Self::Stream(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "files")]
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Capture {
    /// Begins a capture that will be called `path` from its first record on.
    ///
    /// # Errors
    /// As [`RecordFile::create`].
    #[cfg(feature = "files")]
    pub fn create(path: &Path, records: Records, replace: bool) -> io::Result<Self> {
        let file = RecordFile::create(path, replace, &header(records))?;
        Ok(Self::begin(Target::File(file), records))
    }

    /// Begins a capture into a stream, which gets each record as soon as it is there.
    ///
    /// A reader that stops reading holds the run up; one that goes away ends the capture, and
    /// nothing else.
    ///
    /// # Errors
    /// When the stream does not take the header.
    pub fn stream(mut stream: Box<dyn Write + Send>, records: Records) -> io::Result<Self> {
        stream.write_all(&header(records))?;
        stream.flush()?;
        Ok(Self::begin(Target::Stream(stream), records))
    }

    fn begin(target: Target, records: Records) -> Self {
        Self {
            target,
            records,
            scratch: Vec::new(),
            failed: None,
        }
    }

    /// Whether its records are packets of Bluetooth LE's air.
    pub fn is_of_bluetooth(&self) -> bool {
        self.records == Records::Bluetooth
    }

    /// Writes one frame; `dbm` is its strength at the node it is for.
    pub fn frame(&mut self, at: Instant, psdu: &[u8], channel: u8, dbm: Option<f64>) {
        self.write(at, |record, records| {
            if records == Records::TappedFrames {
                tap_header(record, channel, dbm);
            }
            record.extend_from_slice(psdu);
        });
    }

    /// Writes one IPv6 packet, or one of Bluetooth LE's with its header.
    pub fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.write(at, |record, _| record.extend_from_slice(packet));
    }

    /// Writes one packet of H4's, on its way from the controller or to it.
    pub fn hci(&mut self, at: Instant, is_from_controller: bool, packet: &[u8]) {
        let way = u32::from(is_from_controller).to_be_bytes();
        self.write(at, |record, _| {
            record.extend_from_slice(&way);
            record.extend_from_slice(packet);
        });
    }

    /// Whether a record could not be written: those after it are dropped.
    pub const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Ends the capture; a file without any record gets its name.
    ///
    /// # Errors
    /// The first failure of any write, or of naming the file. The records before stay.
    pub fn finish(self) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.target {
            #[cfg(feature = "files")]
            Target::File(file) => file.finish(),
            Target::Stream(mut stream) => stream.flush(),
        }
    }

    /// Writes a record, which `fill` appends to its header.
    fn write(&mut self, at: Instant, fill: impl FnOnce(&mut Vec<u8>, Records)) {
        if self.failed.is_some() {
            return;
        }
        let record = &mut self.scratch;
        record.clear();
        record.resize(RECORD_HEADER_LEN, 0);
        fill(record, self.records);
        let len = (record.len() - RECORD_HEADER_LEN) as u32;
        let at_us = at.as_micros();
        // Both fit for a hundred years of virtual time.
        let header = [
            (at_us / 1_000_000) as u32,
            (at_us % 1_000_000) as u32,
            len,
            len,
        ];
        record[..RECORD_HEADER_LEN].copy_from_slice(&header.map(u32::to_le_bytes).concat());
        self.failed = self.target.append(record).err();
    }
}

/// The file header: times in microseconds, version 2.4, two fields that are zero, the longest
/// record, the link type.
fn header(records: Records) -> Vec<u8> {
    let link_type = match records {
        Records::Frames => LINKTYPE_IEEE802_15_4_WITHFCS,
        Records::TappedFrames => LINKTYPE_IEEE802_15_4_TAP,
        Records::Packets => LINKTYPE_IPV6,
        Records::Bluetooth => LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR,
        Records::Hci => LINKTYPE_BLUETOOTH_HCI_H4_WITH_PHDR,
    };
    let header = [MAGIC, 4 << 16 | 2, 0, 0, SNAP_LEN, link_type];
    header.map(u32::to_le_bytes).concat()
}

/// Version 0, a reserved byte, length; then FCS type, signal strength and channel, each as
/// type, length and value, padded to four bytes.
fn tap_header(record: &mut Vec<u8>, channel: u8, dbm: Option<f64>) {
    let at = record.len();
    record.extend_from_slice(&[0; 4]);
    let mut put = |kind: u16, value: &[u8]| {
        record.extend_from_slice(&kind.to_le_bytes());
        record.extend_from_slice(&(value.len() as u16).to_le_bytes());
        record.extend_from_slice(value);
        record.resize(at + (record.len() - at).next_multiple_of(4), 0);
    };
    put(TAP_FCS_TYPE, &[TAP_FCS_16_BIT]);
    if let Some(dbm) = dbm {
        put(TAP_RSS, &(dbm as f32).to_le_bytes());
    }
    put(TAP_CHANNEL, &[channel, 0, 0]);
    let len = (record.len() - at) as u16;
    record[at + 2..at + 4].copy_from_slice(&len.to_le_bytes());
}

/// Says that times are in microseconds, and by its order in which order bytes are.
const MAGIC: u32 = 0xa1b2_c3d4;
const LINKTYPE_IEEE802_15_4_WITHFCS: u32 = 195;
const LINKTYPE_BLUETOOTH_HCI_H4_WITH_PHDR: u32 = 201;
const LINKTYPE_IPV6: u32 = 229;
const LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR: u32 = 256;
const LINKTYPE_IEEE802_15_4_TAP: u32 = 283;

/// Seconds, microseconds, length captured and length on the air.
const RECORD_HEADER_LEN: usize = 16;

const SNAP_LEN: u32 = 65_535;
const TAP_FCS_TYPE: u16 = 0;
const TAP_RSS: u16 = 1;
const TAP_CHANNEL: u16 = 3;
const TAP_FCS_16_BIT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn frames_are_written_as_the_format_says() {
        let folder = folder();
        let path = folder.path().join("air.pcap");
        let mut capture = Capture::create(&path, Records::Frames, false).unwrap();
        capture.frame(
            Instant::from_micros(1_500_000),
            &[2, 0, 0x19, 0xf8, 0x38],
            26,
            None,
        );
        // Read while the capture goes on.
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
        assert_eq!(bytes[20..24], 195_u32.to_le_bytes());
        let expected = [1_u32, 500_000, 5, 5].map(u32::to_le_bytes).concat();
        assert_eq!(bytes[24..40], expected);
        assert_eq!(bytes[40..], [2, 0, 0x19, 0xf8, 0x38]);
        capture.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn packets_of_hci_have_their_way_before_them() {
        let folder = folder();
        let path = folder.path().join("hci.pcap");
        let mut capture = Capture::create(&path, Records::Hci, false).unwrap();
        let reset = [1, 3, 0x0c, 0];
        capture.hci(Instant::ORIGIN, false, &reset);
        capture.hci(Instant::ORIGIN, true, &[4, 0x0e, 4, 1, 3, 0x0c, 0]);
        capture.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[20..24], 201_u32.to_le_bytes());
        assert_eq!(bytes[40..48], [&[0, 0, 0, 0][..], &reset].concat());
        assert_eq!(bytes[64..68], [0, 0, 0, 1]);
    }

    #[test]
    fn a_stream_gets_each_record_at_once() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut capture = Capture::stream(Box::new(writer), Records::Frames).unwrap();
        let mut header = [0; 24];
        io::Read::read_exact(&mut reader, &mut header).unwrap();
        assert_eq!(header[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
        capture.frame(Instant::from_micros(7), &[2, 0, 1, 0, 0], 26, None);
        // Would wait for ever if the record still lay in a buffer.
        let mut record = [0; 21];
        io::Read::read_exact(&mut reader, &mut record).unwrap();
        assert_eq!(record[16..], [2, 0, 1, 0, 0]);
        drop(reader);
        for _ in 0..3 {
            capture.frame(Instant::from_micros(8), &[2, 0, 1, 0, 0], 26, None);
        }
        let gone = capture.finish().unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn tapped_frames_carry_channel_and_strength() {
        let folder = folder();
        let path = folder.path().join("air.pcap");
        let mut capture = Capture::create(&path, Records::TappedFrames, false).unwrap();
        capture.frame(Instant::ORIGIN, &[2, 0, 1, 0, 0], 26, Some(-62.0));
        capture.finish().unwrap();
        let record = std::fs::read(&path).unwrap()[40..].to_vec();
        let rss = (-62.0_f32).to_le_bytes();
        let head = [
            [0, 0, 28, 0],
            [0, 0, 1, 0],
            [1, 0, 0, 0],
            [1, 0, 4, 0],
            rss,
            [3, 0, 3, 0],
            [26, 0, 0, 0],
        ];
        assert_eq!(record[..28], head.concat());
        assert_eq!(record[28..], [2, 0, 1, 0, 0]);
    }
}
