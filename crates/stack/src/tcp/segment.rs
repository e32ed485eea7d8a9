//! The typed segment that the engine takes.
//!
//! Place: made of a verified, parsed header when a segment arrives; trimmed to what is new as
//! it passes the checks. Left out: emission, which `output` does straight into the packet.

use super::seq::SeqNum;
use crate::wire::tcp::{Flags, Header, SackBlock};

/// A received segment; `seq`, `flags` and `payload` shrink as parts are dealt with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    header: &'a Header,
    pub(super) seq: SeqNum,
    pub(super) flags: Flags,
    pub(super) payload: &'a [u8],
    /// The packet arrived with congestion experienced (RFC 3168).
    pub(super) is_ce: bool,
}

impl<'a> Segment<'a> {
    pub(super) fn new(header: &'a Header, payload: &'a [u8], is_ce: bool) -> Self {
        Self {
            header,
            seq: SeqNum::new(header.seq),
            flags: header.flags,
            payload,
            is_ce,
        }
    }

    /// SEG.ACK; means nothing without the flag.
    pub(super) const fn ack(&self) -> SeqNum {
        SeqNum::new(self.header.ack)
    }

    /// SEG.WND.
    pub(super) const fn window(&self) -> u16 {
        self.header.window
    }

    /// TSval and TSecr.
    pub(super) const fn timestamps(&self) -> Option<(u32, u32)> {
        self.header.options.timestamps
    }

    pub(super) fn sack_blocks(&self) -> &'a [SackBlock] {
        self.header.options.sack.as_slice()
    }

    pub(super) const fn header(&self) -> &'a Header {
        self.header
    }

    pub(super) const fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }

    /// SEG.LEN: payload, SYN and FIN, in sequence space.
    pub(super) fn seq_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.has(Flags::SYN))
            + u32::from(self.has(Flags::FIN))
    }

    /// Takes off a SYN: what remains starts behind it.
    pub(super) fn strip_syn(&mut self) {
        if self.has(Flags::SYN) {
            self.flags = self.flags.without(Flags::SYN);
            self.seq = self.seq.plus(1);
        }
    }

    /// Takes `count` octets of payload off the front.
    pub(super) fn strip_front(&mut self, count: u32) {
        self.payload = self.payload.get(count as usize..).unwrap_or_default();
        self.seq = self.seq.plus(count);
    }
}
