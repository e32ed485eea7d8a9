//! Segments: received segments, and the headers of segments to send.
//!
//! Place: [`Segment`] is made from the parsed header of a received segment with a right checksum,
//! and trimmed to its new part as it passes the checks; [`Head`] is filled word by word and written
//! in front of the payload. Left out: parsing (`wire`), and the choice of contents (`output`).

use super::SegmentDrop;
use super::config::SMSS_DEFAULT;
use super::facts::Facts;
use super::send_buffer::SendBuffer;
use super::seq::SeqNum;
use super::types::Endpoints;
use crate::offer::Offer;
use crate::wire::tcp::{Flags, HEADER_LEN_MAX, Header, SackBlock, fill_checksum};

/// A received segment; `seq`, `flags` and `payload` shrink as parts are dealt with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    header: &'a Header,
    pub(super) seq: SeqNum,
    pub(super) flags: Flags,
    pub(super) payload: &'a [u8],
    /// The MSS for segments to the sender: the least of its option and what the path to it carries.
    pub(super) mss: u16,
    /// The MSS that we announce to the sender: what that path lets us take.
    pub(super) rmss: u16,
    /// The packet arrived with congestion experienced (RFC 3168).
    pub(super) is_ce: bool,
    /// The segment begins with octets that were received before: they are reported by DSACK (RFC
    /// 2883) and cut off.
    pub(super) is_known: bool,
}

impl<'a> Segment<'a> {
    /// `offer`: of the path to the segment's sender.
    pub(super) fn new(header: &'a Header, payload: &'a [u8], is_ce: bool, offer: Offer) -> Self {
        let mss = header.options.mss.unwrap_or(SMSS_DEFAULT);
        Self {
            header,
            seq: SeqNum::new(header.seq),
            flags: header.flags,
            payload,
            mss: mss.min(offer.smss),
            rmss: offer.rmss,
            is_ce,
            is_known: false,
        }
    }

    /// SEG.ACK; means nothing without the flag.
    pub(super) const fn ack(&self) -> SeqNum {
        SeqNum::new(self.header.ack)
    }

    /// SEG.WND: the window that the segment announces, octets; unscaled.
    pub(super) const fn window(&self) -> u16 {
        self.header.window
    }

    /// TSval and TSecr of the timestamps option (RFC 7323 §3.2).
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
    #[inline(never)]
    pub(super) fn seq_len(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.has(Flags::SYN))
            + u32::from(self.has(Flags::FIN))
    }

    /// The checks of RFC 9293 §3.10.7.4 that numbers and flags decide, in their order: that any of
    /// it lies in the window of `window` octets from RCV.NXT on, then resets, SYNs and the ACK bit.
    ///
    /// A shut window takes no text, but ACK, URG and RST at its place are still valid (MUST-66),
    /// and so is a FIN that needs no space. A reset must hit RCV.NXT exactly (RFC 5961 §3).
    ///
    /// # Errors
    /// `OutsideWindow`, `ConnectionReset`, `InexactReset`, `SynInWindow`, `NoAck`: by the first
    /// check that it fails.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn check(&self, rcv_nxt: SeqNum, window: u16) -> Result<(), SegmentDrop> {
        let window = i32::from(window);
        let offset = self.seq.offset_from(rcv_nxt);
        let is_acceptable = match offset < 0 {
            true => window > 0 && offset + self.seq_len() as i32 > 0,
            false => offset < window.max(1),
        };
        Err(if !is_acceptable {
            SegmentDrop::OutsideWindow
        } else if self.has(Flags::RST) {
            match offset {
                0 => SegmentDrop::ConnectionReset,
                _ => SegmentDrop::InexactReset,
            }
        } else if self.has(Flags::SYN) {
            SegmentDrop::SynInWindow
        } else if !self.has(Flags::ACK) {
            SegmentDrop::NoAck
        } else {
            return Ok(());
        })
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

/// A header under construction, in 32-bit words: every option this engine sends is padded
/// to whole words, in the layout of Linux, so words are all it takes.
#[derive(Debug)]
pub(super) struct Head {
    words: [u32; HEADER_LEN_MAX / 4],
    len: usize,
    /// The place of the SACK option, if there is one.
    sack_at: usize,
}

/// The TCP header of a segment that is about to be sent, options and all, and its data, bytes.
pub(crate) struct PlannedHeader<'a> {
    head: &'a Head,
    data_len: u16,
    mss_frames: u8,
}

impl PlannedHeader<'_> {
    /// How much data there are to send behind it, bytes; a FIN may count as one.
    pub(crate) const fn data_len(&self) -> u16 {
        self.data_len
    }

    /// Frames of a full segment of its connection ([`Config::mss_frames`](super::Config)).
    pub(crate) const fn mss_frames(&self) -> u8 {
        self.mss_frames
    }

    /// Writes the header to `out`, with a checksum of zero; called only by links that need the
    /// header's contents, which most do not.
    pub(crate) fn emit<'o>(&self, out: &'o mut [u8; HEADER_LEN_MAX]) -> &'o [u8] {
        self.head.write(out);
        out.get(..self.head.len * 4).unwrap_or_default()
    }
}

impl Head {
    pub(super) fn new(ends: &Endpoints, seq: SeqNum, ack: SeqNum) -> Self {
        let mut head = Self {
            words: [0; HEADER_LEN_MAX / 4],
            len: 0,
            sack_at: 0,
        };
        head.push(u32::from(ends.local_port) << 16 | u32::from(ends.remote_port));
        head.push(seq.get());
        head.push(ack.get());
        // Flags and window, checksum and urgent pointer: filled in when it is finished.
        head.len = 5;
        head
    }

    /// The options of a SYN that are set in `facts`; `timestamps`: TSval and TSecr.
    pub(super) fn push_syn_options(&mut self, mss: u16, facts: Facts, timestamps: (u32, u32)) {
        self.push(MSS | u32::from(mss));
        let mut lead = NOP_NOP;
        if facts.has(Facts::SACK) {
            lead = SACK_PERMITTED;
            if !facts.has(Facts::TIMESTAMPS) {
                self.push(NOP_NOP | SACK_PERMITTED >> 16);
            }
        }
        if facts.has(Facts::TIMESTAMPS) {
            self.push_timestamps(lead, timestamps);
        }
    }

    /// The timestamps option behind two octets of padding.
    pub(super) fn push_padded_timestamps(&mut self, timestamps: (u32, u32)) {
        self.push_timestamps(NOP_NOP, timestamps);
    }

    /// A SACK block; the first one opens the option, which must be the last one.
    pub(super) fn push_sack(&mut self, left: SeqNum, right: SeqNum) {
        if self.sack_at == 0 {
            self.sack_at = self.len;
            self.push(NOP_NOP | SACK);
        }
        if let Some(word) = self.words.get_mut(self.sack_at) {
            *word += SACK_BLOCK_LEN;
        }
        self.push(left.get());
        self.push(right.get());
    }

    /// Writes the header and, behind it, `data` octets of `payload` from an offset on, then
    /// the checksum. Returns the length of the whole; `None` when `out` is too short.
    pub(super) fn finish(
        &mut self,
        ends: &Endpoints,
        (flags, window): (Flags, u16),
        payload: Option<(&SendBuffer<'_>, u16)>,
        data: u16,
        out: &mut [u8],
    ) -> Option<usize> {
        self.put_flags((flags, window));
        let out = out.get_mut(..self.len * 4 + usize::from(data))?;
        let (head, rest) = out.split_at_mut_checked(self.len * 4)?;
        self.write(head);
        if let Some((buffer, offset)) = payload {
            buffer.peek(offset, rest);
        }
        fill_checksum(&ends.local, &ends.remote, out);
        Some(out.len())
    }

    /// The header as it is now, for the link to look at.
    pub(super) fn planned(
        &mut self,
        (flags, window): (Flags, u16),
        data_len: u16,
        mss_frames: u8,
    ) -> PlannedHeader<'_> {
        self.put_flags((flags, window));
        PlannedHeader {
            head: self,
            data_len,
            mss_frames,
        }
    }

    fn put_flags(&mut self, (flags, window): (Flags, u16)) {
        if let Some(word) = self.words.get_mut(3) {
            *word = (self.len as u32) << 28 | u32::from(flags.bits()) << 16 | u32::from(window);
        }
    }

    fn write(&self, out: &mut [u8]) {
        for (to, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(&self.words) {
            *to = word.to_be_bytes();
        }
    }

    fn push_timestamps(&mut self, lead: u32, (value, echo): (u32, u32)) {
        self.push(lead | TIMESTAMPS);
        self.push(value);
        self.push(echo);
    }

    fn push(&mut self, word: u32) {
        if let Some(place) = self.words.get_mut(self.len) {
            *place = word;
            self.len += 1;
        }
    }
}

/// Kinds and lengths of the options, where they stand in a word.
const NOP_NOP: u32 = 0x0101_0000;
const MSS: u32 = 0x0204_0000;
const SACK_PERMITTED: u32 = 0x0402_0000;
const TIMESTAMPS: u32 = 0x080a;
/// Kind and length of a SACK option without blocks (RFC 2018 §3).
const SACK: u32 = 0x0502;
const SACK_BLOCK_LEN: u32 = 8;
