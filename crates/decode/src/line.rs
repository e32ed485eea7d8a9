//! The bytes of a serial line, cut at the flags of HDLC-lite.
//!
//! Place: under `capture`, for files that are no captures: each piece is one record.
//! Left out: escapes and check sums (`layers::hdlc`); times and directions, which such a file does
//! not have.

use std::io::{self, BufRead, BufReader, Read};

/// A file of bytes as they went over a line.
pub(super) struct Line {
    input: BufReader<Box<dyn Read>>,
}

/// What lies between two flags: a frame, a damaged frame, or noise.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Its first bytes, at most [`PIECE_LEN_MAX`], with the flags around it. Of several flags
    /// before it there is only one.
    pub(super) data: Vec<u8>,
    /// All its bytes.
    pub(super) len: u32,
    /// It holds more than flags.
    has_body: bool,
}

impl Line {
    pub(super) fn new(input: BufReader<Box<dyn Read>>) -> Self {
        Self { input }
    }

    /// The next piece, or `None` where only flags are left.
    pub(super) fn next_piece(&mut self) -> Option<io::Result<Piece>> {
        let mut piece = Piece::default();
        loop {
            let bytes = match self.input.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Some(Err(error)),
            };
            if bytes.is_empty() {
                return piece.has_body.then_some(Ok(piece));
            }
            let (taken, is_whole) = piece.take(bytes);
            self.input.consume(taken);
            if is_whole {
                return Some(Ok(piece));
            }
        }
    }
}

impl Piece {
    /// Takes bytes up to the flag that ends the piece: how many, and whether there was one.
    fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (taken, byte) in (1..).zip(bytes) {
            let is_flag = *byte == FLAG;
            if is_flag && !self.has_body {
                (self.data, self.len) = (vec![FLAG], 1);
                continue;
            }
            self.has_body = true;
            self.len = self.len.saturating_add(1);
            if self.data.len() < PIECE_LEN_MAX {
                self.data.push(*byte);
            }
            if is_flag {
                return (taken, true);
            }
        }
        (bytes.len(), false)
    }
}

/// The byte before and behind each frame (RFC 1662 §3.1).
pub(crate) const FLAG: u8 = 0x7e;

/// Bytes of a piece that are kept. The longest Spinel frame has 1,302 bytes with its check sum,
/// twice that if each is escaped.
const PIECE_LEN_MAX: usize = 4_096;
