//! HDLC-lite: frames in a stream of bytes, each between two flags and behind a check sum.
//!
//! A frame is `7e`, its bytes, CRC-16/X.25 of these, low byte first, and `7e`. The bytes `7e`,
//! `7d`, `11`, `13` and `f8` inside are written as `7d` and the byte XOR `20`. One flag may end a
//! frame and begin the next. After an error the decoder is in step again at the next flag.
//!
//! Source: RFC 1662 §3 and §4.2; Spinel's draft (draft-rquattle-spinel-unified) §A.1.2.

use crc::{CRC_16_IBM_SDLC, Crc, Digest, NoTable};

/// The longest Spinel frame, bytes: neither escaped nor with its check sum.
pub const FRAME_LEN_MAX: usize = 1_300;

/// What was dropped of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCounters {
    /// Frames whose check sum was right.
    pub frames: u64,
    /// Frames, or noise between two flags, whose check sum was wrong.
    pub wrong_crc: u64,
    /// Frames longer than [`FRAME_LEN_MAX`].
    pub too_long: u64,
    /// Frames that ended within an escape, or before they held a header, a command and a check
    /// sum.
    pub half: u64,
    /// Bytes of all that was dropped, escapes resolved.
    pub bytes_dropped: u64,
}

/// Finds frames in a stream of bytes that comes in pieces of any length.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    frame: Vec<u8>,
    is_escaped: bool,
    /// The frame is too long: its other bytes are dropped, too.
    is_skipping: bool,
    /// The frame has been handed out: the next byte begins another one.
    is_taken: bool,
    counters: LineCounters,
}

impl Decoder {
    /// The next whole frame without its check sum; `bytes` is what remains behind it.
    ///
    /// `None`: all bytes were taken, and end in no frame.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<&[u8]> {
        if self.is_taken {
            self.begin();
        }
        while let Some((byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if *byte != FLAG {
                self.push(*byte);
            } else if self.ends_frame() {
                self.is_taken = true;
                let len = self.frame.len() - CRC_LEN;
                return self.frame.get(..len);
            }
        }
        None
    }

    /// The stream begins anew: drops the frame that had come in part.
    pub fn reset(&mut self) {
        if !self.is_taken && !self.frame.is_empty() {
            self.counters.half += 1;
            self.drop_frame();
        }
        self.begin();
    }

    /// What was dropped so far.
    pub const fn counters(&self) -> &LineCounters {
        &self.counters
    }

    fn begin(&mut self) {
        self.frame.clear();
        (self.is_escaped, self.is_skipping, self.is_taken) = (false, false, false);
    }

    fn push(&mut self, byte: u8) {
        if self.is_skipping {
            self.counters.bytes_dropped += 1;
        } else if byte == ESCAPE && !self.is_escaped {
            self.is_escaped = true;
        } else if self.frame.len() == FRAME_LEN_MAX + CRC_LEN {
            self.counters.too_long += 1;
            self.counters.bytes_dropped += 1;
            self.drop_frame();
            self.is_skipping = true;
        } else {
            let flip = if self.is_escaped { FLIP } else { 0 };
            self.frame.push(byte ^ flip);
            self.is_escaped = false;
        }
    }

    /// Handles a flag: whether it ends a frame whose check sum is right.
    fn ends_frame(&mut self) -> bool {
        // A flag that begins a frame, or fills the time between two.
        if self.frame.is_empty() && !self.is_escaped {
            self.is_skipping = false;
            return false;
        }
        let is_half = self.is_escaped || self.frame.len() < FRAME_LEN_MIN + CRC_LEN;
        let (bytes, sum) = self
            .frame
            .split_at(self.frame.len().saturating_sub(CRC_LEN));
        if is_half {
            self.counters.half += 1;
        } else if CRC.checksum(bytes).to_le_bytes() == sum {
            self.counters.frames += 1;
            return true;
        } else {
            self.counters.wrong_crc += 1;
        }
        self.drop_frame();
        self.begin();
        false
    }

    fn drop_frame(&mut self) {
        self.counters.bytes_dropped += self.frame.len() as u64;
        self.frame.clear();
    }
}

/// Appends `frame` to `out` as it goes over a line.
///
/// `frame`: a Spinel frame of at most [`FRAME_LEN_MAX`] bytes.
pub fn encode(frame: &[u8], out: &mut Vec<u8>) {
    debug_assert!(frame.len() <= FRAME_LEN_MAX, "a frame that no RCP takes");
    let mut sum: Digest<'_, u16, NoTable> = CRC.digest();
    sum.update(frame);
    out.push(FLAG);
    for byte in frame.iter().chain(&sum.finalize().to_le_bytes()) {
        match *byte {
            // The last three are those of software flow control, and one that some vendors use.
            FLAG | ESCAPE | 0x11 | 0x13 | 0xf8 => out.extend([ESCAPE, *byte ^ FLIP]),
            byte => out.push(byte),
        }
    }
    out.push(FLAG);
}

const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
const FLIP: u8 = 0x20;
/// A header and a command of one byte each.
const FRAME_LEN_MIN: usize = 2;
const CRC_LEN: usize = 2;
const CRC: Crc<u16, NoTable> = Crc::<u16, NoTable>::new(&CRC_16_IBM_SDLC);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(decoder: &mut Decoder, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        while let Some(frame) = decoder.next(&mut bytes) {
            found.push(frame.to_vec());
        }
        found
    }

    fn encoded(frame: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(frame, &mut out);
        out
    }

    #[test]
    fn what_is_wrong_is_counted_and_the_next_frame_found() {
        let good = [0x81, 2, 1];
        let long = vec![0x55; FRAME_LEN_MAX + 1];
        let long = [&[FLAG][..], &long, &CRC.checksum(&long).to_le_bytes()].concat();
        let count = |wrong_crc, too_long, half, bytes_dropped| LineCounters {
            frames: 1,
            wrong_crc,
            too_long,
            half,
            bytes_dropped,
        };
        for (noise, counters) in [
            (&b"boot: ok\r\n"[..], count(1, 0, 0, 10)),
            (&[FLAG, FLAG, FLAG], count(0, 0, 0, 0)),
            (&[FLAG, 0x80, 6, 0, 0x70, 1, 2], count(1, 0, 0, 6)),
            (&[FLAG, 1, 2, 3], count(0, 0, 1, 3)),
            (&[FLAG, 0x81, 2, 1, 0, ESCAPE], count(0, 0, 1, 4)),
            (&[ESCAPE], count(0, 0, 1, 0)),
            (&long, count(0, 1, 0, FRAME_LEN_MAX as u64 + 3)),
        ] {
            let mut decoder = Decoder::default();
            let bytes = [noise, &encoded(&good)].concat();
            assert_eq!(all(&mut decoder, &bytes), [good], "{noise:x?}");
            assert_eq!(*decoder.counters(), counters, "{noise:x?}");
        }
    }

    #[test]
    fn one_flag_may_end_a_frame_and_begin_the_next() {
        let (one, two) = (encoded(&[0x81, 2, 1]), encoded(&[0x82, 2, 2]));
        let bytes = [&one[..], &two[1..]].concat();
        let found = all(&mut Decoder::default(), &bytes);
        assert_eq!(found, [[0x81, 2, 1], [0x82, 2, 2]]);
    }

    #[test]
    fn the_longest_frame_passes() {
        let frame = vec![0x7e; FRAME_LEN_MAX];
        let bytes = encoded(&frame);
        assert_eq!(all(&mut Decoder::default(), &bytes), [frame]);
    }

    #[test]
    fn a_stream_that_begins_anew_keeps_nothing_of_the_old_one() {
        let frame = encoded(&[0x81, 2, 1]);
        let mut decoder = Decoder::default();
        assert!(all(&mut decoder, &frame[..4]).is_empty());
        decoder.reset();
        assert_eq!(all(&mut decoder, &frame).len(), 1);
        let counters = decoder.counters();
        assert_eq!((counters.half, counters.bytes_dropped), (1, 3));
    }

    proptest! {
        #[test]
        fn frames_come_out_however_the_stream_is_cut(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 2..40), 1..6),
            cut in 1_usize..30,
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|frame| encoded(frame)).collect();
            let mut decoder = Decoder::default();
            let found: Vec<Vec<u8>> =
                bytes.chunks(cut).flat_map(|piece| all(&mut decoder, piece)).collect();
            prop_assert_eq!(&found, &frames);
            prop_assert_eq!(decoder.counters().bytes_dropped, 0);
        }

        #[test]
        fn noise_is_bounded_and_passed_over(
            noise in prop::collection::vec(any::<u8>(), 0..4_000),
            piece in 1_usize..500,
        ) {
            let mut decoder = Decoder::default();
            for piece in noise.chunks(piece) {
                all(&mut decoder, piece);
                prop_assert!(decoder.frame.len() <= FRAME_LEN_MAX + CRC_LEN);
            }
            let good = vec![0x81, 2, 1];
            // The first flag ends what the noise left.
            let found = all(&mut decoder, &encoded(&good));
            prop_assert_eq!(found.last(), Some(&good));
        }
    }
}
