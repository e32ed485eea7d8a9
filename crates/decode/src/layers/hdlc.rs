//! HDLC-lite: frames of Spinel on a serial line.
//!
//! ```text
//! +----+--------------+---------------+----+
//! | 7e | Spinel frame | CRC-16, 2 B   | 7e |   inside, 7d x stands for x XOR 20
//! +----+--------------+---------------+----+
//! ```
//!
//! Place: for pieces of a serial line, and records of private link types that begin with a flag.
//! Bytes whose check sum is wrong are shown, and not taken apart.
//! Sources: RFC 1662 §3 and §4.2; Spinel's draft (draft-rquattle-spinel-unified) §A.1.2.

use crc::{CRC_16_IBM_SDLC, Crc, NoTable};

use crate::line::FLAG;
use crate::model::{Frame, Layer, hex16};
use crate::next::Next;

/// Whether the first byte is one that a frame of Spinel has, with or without HDLC-lite around it.
pub(super) fn is_spinel(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|first| *first == FLAG || first & 0xc0 == 0x80)
}

/// A record of a private link type: HDLC-lite where it begins with a flag, else a bare frame.
pub(super) fn record(bytes: &[u8]) -> Next<'_> {
    match bytes.first() {
        Some(&FLAG) => Next::Hdlc(bytes),
        _ => Next::Spinel(bytes.into()),
    }
}

/// Explains bytes from one flag to the next; either flag may be missing.
pub(super) fn explain<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let is_flag = |byte: &u8| *byte == FLAG;
    let begin = bytes.iter().position(|byte| !is_flag(byte));
    let inner = bytes.get(begin.unwrap_or(bytes.len())..);
    let mut parts = inner.unwrap_or_default().splitn(2, is_flag);
    let body = parts.next().unwrap_or_default();
    let behind = parts.next();
    let mut content = unescaped(body);
    let layer = Layer::new("hdlc", "HDLC-lite").hidden("len", content.bytes.len());
    let refuse = |frame: &mut Frame, layer: Layer, content: &Content| {
        frame.push(layer);
        frame.say(format_args!("{} B on the line, no frame", body.len()));
        frame.payload(&content.bytes);
    };
    if content.bytes.len() > FRAME_LEN_MAX + CRC_LEN {
        refuse(frame, layer, &content);
        return frame.undecoded("hdlc", "longer than any Spinel frame, 1,300 B");
    }
    let split = content.bytes.split_last_chunk::<CRC_LEN>();
    let Some((spinel, sum)) = split.filter(|(spinel, _)| spinel.len() >= FRAME_LEN_MIN) else {
        refuse(frame, layer, &content);
        return frame.malformed("hdlc", "shorter than a Spinel frame");
    };
    let (sum, computed) = (u16::from_le_bytes(*sum), CRC.checksum(spinel));
    let is_right = sum == computed && !content.is_escape_open;
    let layer = layer
        .hidden("crc_ok", is_right)
        .remark("crc", if is_right { "right" } else { "wrong" })
        .hidden("crc", hex16(sum))
        .hidden("crc_computed", hex16(computed));
    if !is_right {
        let looks_like_spinel = matches!(spinel, [0x80..=0xbf, 0..=8, ..]);
        refuse(frame, layer, &content);
        if looks_like_spinel {
            frame.say("Spinel frame, damaged");
        }
        let reason = match behind {
            Some(_) => "check sum wrong",
            None => "cut off: no flag ends it",
        };
        return frame.malformed("hdlc", reason);
    }
    frame.push(layer);
    if behind.is_some_and(|behind| !behind.iter().all(is_flag)) {
        frame.undecoded("hdlc", "more bytes behind the frame");
    }
    let len = spinel.len();
    content.bytes.truncate(len);
    Next::Spinel(content.bytes.into())
}

/// Bytes with their escapes resolved.
struct Content {
    bytes: Vec<u8>,
    /// They end within an escape.
    is_escape_open: bool,
}

fn unescaped(body: &[u8]) -> Content {
    let mut content = Content {
        bytes: Vec::with_capacity(body.len()),
        is_escape_open: false,
    };
    for byte in body {
        if content.is_escape_open {
            content.bytes.push(byte ^ FLIP);
            content.is_escape_open = false;
        } else if *byte == ESCAPE {
            content.is_escape_open = true;
        } else {
            content.bytes.push(*byte);
        }
    }
    content
}

const ESCAPE: u8 = 0x7d;
const FLIP: u8 = 0x20;
const CRC_LEN: usize = 2;
/// A header and a command of one byte each.
const FRAME_LEN_MIN: usize = 2;
/// The longest Spinel frame, bytes: neither escaped nor with its check sum.
const FRAME_LEN_MAX: usize = 1_300;
const CRC: Crc<u16, NoTable> = Crc::<u16, NoTable>::new(&CRC_16_IBM_SDLC);
