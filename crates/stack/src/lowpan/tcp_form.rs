//! Packets in memory whose TCP header travels compressed.
//!
//! A compressed header takes the room of the one it stands for: zeros, then its bytes, right
//! in front of the payload. So a packet has its uncompressed length throughout, fragment
//! offsets need no translation, and a relay that only passes it on needs no context.
//!
//! Place: made by [`decompress`](super::decompress) or, at the sending end, by
//! [`TcpForm::put`]; emitted by [`compress_form`](super::compress_form). The receiving end
//! restores the TCP header where it stands. Source: `docs/reference/tcphc.md`, section 1.

use crate::wire::cursor::{Full, Writer};
use crate::wire::lowpan_nhc::Tcp;
use crate::wire::{tcp, tcphc};

/// The form in which a packet holds its TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TcpForm {
    /// Uncompressed; next header 6 on the air.
    #[default]
    Plain,
    /// Uncompressed; on the air it is a full header that names a context.
    Full {
        /// Identifier of the TCPHC context, 0 to 255.
        cid: u8,
    },
    /// A mostly compressed or compressed header, padded with zeros in front to its uncompressed
    /// length.
    Compressed,
}

impl TcpForm {
    /// Replaces the TCP header at the start of `segment` by its compressed form `header`; returns
    /// the packet's form.
    pub fn put(header: &[u8], uncompressed_len: usize, segment: &mut [u8]) -> Self {
        let mut w = Writer::new(segment.get_mut(..uncompressed_len).unwrap_or_default());
        let tcp = Tcp {
            header,
            uncompressed_len,
        };
        // A header is as long as `uncompressed_len` says in every form.
        Self::lay_out(&tcp, &mut w).unwrap_or_default()
    }

    /// Bytes of the compressed header at the start of `segment`, without the zeros before it.
    pub fn compressed(segment: &[u8]) -> &[u8] {
        let zeros = segment.iter().take_while(|byte| **byte == 0).count();
        segment.get(zeros..).unwrap_or_default()
    }

    /// Writes the TCP header, or in its room the compressed one.
    pub(super) fn lay_out(tcp: &Tcp<'_>, w: &mut Writer<'_>) -> Result<Self, Full> {
        if let [tcphc::FULL, cid, header @ ..] = tcp.header {
            w.put(header)?;
            return Ok(Self::Full { cid: *cid });
        }
        let zeros = tcp.uncompressed_len.checked_sub(tcp.header.len());
        let room = [0; tcp::HEADER_LEN_MAX];
        w.put(room.get(..zeros.ok_or(Full)?).ok_or(Full)?)?;
        w.put(tcp.header)?;
        Ok(Self::Compressed)
    }

    /// Bytes of TCP header at the start of `segment`; `None` where the segment is plain, or
    /// does not hold a whole header of this form.
    pub(super) fn header_len(self, segment: &[u8]) -> Option<usize> {
        match self {
            Self::Plain => None,
            Self::Full { .. } => tcp::header_len(segment),
            Self::Compressed => {
                let header = Self::compressed(segment);
                let lengths = tcphc::lengths(header).ok()?;
                let zeros = segment.len() - header.len();
                (zeros + lengths.compressed == lengths.uncompressed).then_some(lengths.uncompressed)
            }
        }
    }

    /// Writes what stands for the TCP header `header` on the air.
    pub(super) fn emit(self, header: &[u8], w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Plain => w.put(header),
            Self::Full { cid } => {
                w.put(&[tcphc::FULL, cid])?;
                w.put(header)
            }
            Self::Compressed => w.put(Self::compressed(header)),
        }
    }
}
