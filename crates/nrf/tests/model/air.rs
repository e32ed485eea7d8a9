//! Frames at the antenna.

use super::{BYTE_US, HEADER_BYTES};

/// A frame at the antenna.
#[derive(Clone, Debug)]
pub(crate) struct OnAir {
    /// Its first preamble bit, µs.
    pub(crate) start: u64,
    /// How much later than that it begins, ns, less than 1,000: another node's microseconds are not
    /// this one's, whose timer counts whole ones.
    pub(crate) later_ns: u64,
    /// The length that it says it has.
    pub(crate) phr: u8,
    /// The bytes after it, FCS included.
    pub(crate) psdu: Vec<u8>,
    pub(crate) channel: u8,
    pub(crate) is_crc_good: bool,
    /// Its strength at this radio's antenna, dBm: as it comes in, or goes out.
    pub(crate) dbm: i8,
    /// Energy of another kind, which no receiver takes for a frame.
    pub(crate) is_noise: bool,
}

impl OnAir {
    /// A frame without its FCS.
    pub(crate) fn good(start: u64, mpdu: &[u8]) -> Self {
        Self::of(start, [mpdu, &[0, 0]].concat())
    }

    /// A frame with its FCS.
    pub(crate) fn of(start: u64, psdu: Vec<u8>) -> Self {
        Self {
            start,
            later_ns: 0,
            phr: psdu.len() as u8,
            psdu,
            channel: 26,
            is_crc_good: true,
            dbm: -60,
            is_noise: false,
        }
    }

    /// Its last bit, whole µs.
    pub(crate) fn end(&self) -> u64 {
        self.start + (HEADER_BYTES + self.received_len() as u64) * BYTE_US
    }

    /// Its last bit, ns.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end() * 1_000 + self.later_ns
    }

    /// How many bytes a radio takes for the PSDU.
    pub(super) fn received_len(&self) -> usize {
        usize::from(self.phr).min(127)
    }
}
