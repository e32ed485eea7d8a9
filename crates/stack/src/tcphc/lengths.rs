//! The length of a compressed header, computed before the segment is made.
//!
//! Purpose: the MSS announced to a peer, and the limit of a segment that has to fit its frame,
//! depend on these lengths. Place: beside the compressor, which makes the same choices when the
//! segment leaves.
//! Source: `docs/reference/tcphc.md`, section 5.

use crate::time::Instant;
use crate::wire::cursor::Writer;
#[cfg(feature = "tcp-small")]
use crate::wire::tcp;
use crate::wire::tcphc::{self, Header};

#[cfg(feature = "tcp-small")]
use super::Mode;
use super::choose::frame_for;
use super::segment::Segment;
use super::{Flow, Tcphc};

#[cfg(feature = "tcp-small")]
impl Tcphc<'_> {
    /// CH: base and context 3, sequence and acknowledgment number, window and checksum 2 each.
    const LEN_MAX: usize = 3 + 2 + 2 + 2 + 2;
    /// The byte before options; TSval, and TSecr in full until something has confirmed one.
    const LEN_MAX_TIMESTAMPS: usize = 1 + 2 + 4;
    /// CH: base and context 3, sequence number and checksum 2 each.
    const LEN_USUAL: usize = 3 + 2 + 2;
    /// The byte before options, 2 for each of them.
    const LEN_USUAL_TIMESTAMPS: usize = 1 + 2 + 2;
    /// FH of a segment with timestamps.
    const FULL_WITH_TIMESTAMPS: usize =
        tcp::HEADER_LEN + tcp::TIMESTAMPS_LEN + tcphc::FULL_OVERHEAD;

    /// The greatest usual length of a header of new data in an open connection, bytes: used for the
    /// MSS announced to a peer that cannot compute [`Self::header_len`]. Each field has at most two
    /// bytes; only TSecr has four, in the first flight of the passive end. Longer ones (MH, FH,
    /// numbers near zero) are the exception.
    pub(crate) const fn header_len_max(&self, timestamps: bool) -> usize {
        match (timestamps, self.config.mode) {
            // They travel in full headers.
            (true, Mode::Draft) => Self::FULL_WITH_TIMESTAMPS,
            (true, _) => Self::LEN_MAX + Self::LEN_MAX_TIMESTAMPS,
            (false, _) => Self::LEN_MAX,
        }
    }

    /// The usual length of a header of bulk data, bytes: nothing new is acknowledged and the window
    /// stays as it is. The MSS of a node may count on it if the node asks for [`Self::header_len`]
    /// before it sends a segment.
    pub(crate) const fn header_len_usual(&self, timestamps: bool) -> usize {
        let len = match self.config.mode {
            // Beside the window, nothing may be left out on trust.
            Mode::Strict => Self::LEN_USUAL + 2,
            _ => Self::LEN_USUAL,
        };
        match (timestamps, self.config.mode) {
            (true, Mode::Draft) => Self::FULL_WITH_TIMESTAMPS,
            (true, _) => len + Self::LEN_USUAL_TIMESTAMPS,
            (false, _) => len,
        }
    }
}

impl Tcphc<'_> {
    /// Bytes that [`Self::compress`] would make of the TCP header `header` if it left now in
    /// front of new data of this node; nothing changes. Its checksum does not matter.
    pub(crate) fn header_len(&self, flow: &Flow, header: &[u8], now: Instant) -> usize {
        let full = header.len() + tcphc::FULL_OVERHEAD;
        let Some(seg) = Segment::of_data(header) else {
            return full;
        };
        let ports = (seg.header.src_port, seg.header.dst_port);
        let found = self.find_ports(&self.key(flow), ports);
        let Some(context) = found.and_then(|at| self.contexts.get(at)) else {
            return match self.would_carry(flow, now) {
                true => full,
                false => header.len(),
            };
        };
        let agreement = context.agreement;
        let is_due = agreement.is_due(now) && !self.is_offering();
        if agreement.is_plain() && !is_due || !self.speaks_with(flow) {
            return header.len();
        }
        if is_due {
            return full;
        }
        // On a copy: what is found out of the context on the way is found again when it leaves.
        match frame_for(&mut { *context }, &seg, self.rules, now) {
            Some(frame) => {
                let mut room = [0; tcphc::HEADER_LEN_MAX];
                let mut w = Writer::new(&mut room);
                match Header::Compressed(frame).emit(&mut w) {
                    Ok(()) => w.written(),
                    Err(_) => full,
                }
            }
            None => full,
        }
    }
}
