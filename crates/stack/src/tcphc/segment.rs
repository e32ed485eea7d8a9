//! A TCP segment as the compressor sees it.

use crate::wire::tcp::{self, Flags, Header};
use crate::wire::tcphc;

/// A parsed header with what compression needs beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) header: Header,
    pub(super) checksum: u16,
    /// Whether the options are laid out as a restored header has them, so that they may be left
    /// out.
    canonical: bool,
    pub(super) header_len: u16,
    payload_len: u16,
}

impl Segment {
    /// Reads header and length of `segment`; `None` where there is no TCP header, or more
    /// bytes than a packet holds.
    pub(super) fn parse(segment: &[u8]) -> Option<Self> {
        let (header, payload) = Header::parse(segment).ok()?;
        let header_len = segment.len() - payload.len();
        let options = segment.get(tcp::HEADER_LEN..header_len)?;
        Some(Self {
            header,
            checksum: tcp::checksum_field(segment)?,
            canonical: tcphc::is_canonical(options),
            header_len: header_len as u16,
            payload_len: u16::try_from(payload.len()).ok()?,
        })
    }

    /// A `header` in front of data that are yet to come, a byte at least.
    pub(super) fn of_data(header: &[u8]) -> Option<Self> {
        let payload_len = 1;
        Self::parse(header).map(|seg| Self { payload_len, ..seg })
    }

    /// A restored header in front of `payload_len` bytes.
    pub(super) fn restored(header: Header, checksum: u16, payload_len: usize) -> Self {
        Self {
            header,
            checksum,
            canonical: true,
            header_len: header.header_len() as u16,
            payload_len: payload_len as u16,
        }
    }

    pub(super) const fn has(&self, flag: Flags) -> bool {
        self.header.flags.contains(flag)
    }

    pub(super) const fn seq(&self) -> u32 {
        self.header.seq
    }

    /// The number behind the last one it occupies.
    pub(super) fn end(&self) -> u32 {
        let flags = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        self.header
            .seq
            .wrapping_add(u32::from(self.payload_len))
            .wrapping_add(flags)
    }

    /// Whether the segment occupies sequence space.
    pub(super) fn occupies(&self) -> bool {
        self.end() != self.header.seq
    }

    pub(super) fn ack(&self) -> Option<u32> {
        self.has(Flags::ACK).then_some(self.header.ack)
    }

    pub(super) const fn window(&self) -> u16 {
        self.header.window
    }

    pub(super) const fn payload_len(&self) -> u16 {
        self.payload_len
    }

    pub(super) const fn timestamps(&self) -> Option<(u32, u32)> {
        self.header.options.timestamps
    }

    /// Whether an MH or CH can stand for it, SACK blocks aside.
    pub(super) fn is_compressible(&self) -> bool {
        self.canonical && self.header.urgent == 0 && tcphc::are_compressible(self.header.flags)
    }
}
