//! What waits for the line.

use crate::hdlc;

/// Bytes that the line has not taken yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// Bytes that it has taken since the session began.
    taken: u64,
}

impl Output {
    /// Appends a frame. Returns the position of its end, for [`Self::is_sent`]; `None`: there is no
    /// room.
    pub(super) fn push(&mut self, frame: &[u8]) -> Option<u64> {
        if self.bytes.len() > ROOM {
            return None;
        }
        hdlc::encode(frame, &mut self.bytes);
        Some(self.taken + self.bytes.len() as u64)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The line has taken so many more bytes.
    pub(super) fn on_written(&mut self, len: usize) {
        let len = len.min(self.bytes.len());
        self.bytes.drain(..len);
        self.taken += len as u64;
    }

    /// Whether all bytes before this one are sent.
    pub(super) const fn is_sent(&self, end: u64) -> bool {
        self.taken >= end
    }

    /// Drops what the line has not taken.
    pub(super) fn clear(&mut self) {
        self.taken += self.bytes.len() as u64;
        self.bytes.clear();
    }
}

/// Bytes that may wait when another frame comes: a request, a frame to send and some resets are
/// less than half of it.
const ROOM: usize = 4_096;
