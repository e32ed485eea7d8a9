//! Captures that Wireshark reads: of the air and of the wire.
//!
//! Purpose: one record for each frame or packet, stamped with virtual time, hence the same
//! bytes from the same run. A capture appears under its name only when it is whole.
//! Left out: pcapng. Comments on dropped packets will need it.
//! Sources: <https://www.tcpdump.org/linktypes.html>; IEEE 802.15.4 TAP link type
//! specification, version 0 (its type-length-values are padded to four bytes).

use std::io::{self, BufWriter};
use std::path::Path;

use motet::time::Instant;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use crate::files::NewFile;
use crate::power::Power;

/// What a capture's records are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Records {
    /// PSDUs with FCS (link type 195).
    Frames,
    /// The same behind a header with channel and signal strength at the receiver (283).
    TappedFrames,
    /// IPv6 packets (229).
    Packets,
}

/// A capture being written.
#[derive(Debug)]
pub struct Capture {
    writer: PcapWriter<BufWriter<NewFile>>,
    records: Records,
    scratch: Vec<u8>,
    /// The first failure to write; told at the end, so that a full disk stops no run.
    failed: Option<io::Error>,
}

impl Capture {
    /// Begins a capture that will be called `path`.
    ///
    /// # Errors
    /// As [`NewFile::create`].
    pub fn create(path: &Path, records: Records, replace: bool) -> io::Result<Self> {
        let file = NewFile::create(path, replace)?;
        let header = PcapHeader {
            datalink: match records {
                Records::Frames => DataLink::IEEE802_15_4,
                Records::TappedFrames => DataLink::IEEE802_15_4_TAP,
                Records::Packets => DataLink::IPV6,
            },
            snaplen: SNAP_LEN,
            ts_resolution: TsResolution::MicroSecond,
            // Stated, so that every platform writes the same file.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(BufWriter::new(file), header).map_err(into_io)?;
        Ok(Self {
            writer,
            records,
            scratch: Vec::new(),
            failed: None,
        })
    }

    /// Writes one frame; `power` is its strength at the node it is for.
    pub fn frame(&mut self, at: Instant, psdu: &[u8], channel: u8, power: Option<Power>) {
        let mut record = std::mem::take(&mut self.scratch);
        record.clear();
        if self.records == Records::TappedFrames {
            tap_header(&mut record, channel, power);
        }
        record.extend_from_slice(psdu);
        self.write(at, &record);
        self.scratch = record;
    }

    /// Writes one IPv6 packet.
    pub fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.write(at, packet);
    }

    /// Ends the capture and gives it its name.
    ///
    /// # Errors
    /// The first failure of any write, or of naming the file; nothing stays behind then.
    pub fn finish(self, replace: bool) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        // Writes what is left in the buffer.
        let file = self.writer.into_writer().into_inner();
        file.map_err(io::IntoInnerError::into_error)?.keep(replace)
    }

    fn write(&mut self, at: Instant, record: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let at = std::time::Duration::from_micros(at.as_micros());
        let len = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let written = self.writer.write_packet(&PcapPacket::new(at, len, record));
        self.failed = written.err().map(into_io);
    }
}

/// Version 0, a reserved byte, length; then FCS type, signal strength and channel, each as
/// type, length and value, padded to four bytes.
fn tap_header(record: &mut Vec<u8>, channel: u8, power: Option<Power>) {
    record.extend_from_slice(&[0; 4]);
    let mut put = |kind: u16, value: &[u8]| {
        record.extend_from_slice(&kind.to_le_bytes());
        record.extend_from_slice(&(value.len() as u16).to_le_bytes());
        record.extend_from_slice(value);
        record.resize(record.len().next_multiple_of(4), 0);
    };
    put(TAP_FCS_TYPE, &[TAP_FCS_16_BIT]);
    if let Some(power) = power {
        put(TAP_RSS, &(power.dbm() as f32).to_le_bytes());
    }
    put(TAP_CHANNEL, &[channel, 0, 0]);
    let len = record.len() as u16;
    record[2..4].copy_from_slice(&len.to_le_bytes());
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

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
        assert!(!path.exists(), "unfinished captures have another name");
        capture.finish(false).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
        assert_eq!(bytes[20..24], 195_u32.to_le_bytes());
        let expected = [1_u32, 500_000, 5, 5].map(u32::to_le_bytes).concat();
        assert_eq!(bytes[24..40], expected);
        assert_eq!(bytes[40..], [2, 0, 0x19, 0xf8, 0x38]);
    }

    #[test]
    fn tapped_frames_carry_channel_and_strength() {
        let folder = folder();
        let path = folder.path().join("air.pcap");
        let mut capture = Capture::create(&path, Records::TappedFrames, false).unwrap();
        capture.frame(
            Instant::ORIGIN,
            &[2, 0, 1, 0, 0],
            26,
            Some(Power::from_dbm(-62.0)),
        );
        capture.finish(false).unwrap();
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
