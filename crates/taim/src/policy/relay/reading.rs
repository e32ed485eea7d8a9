//! What the relay understands of a packet.

use motet::wire::ipv6::{self, Ecn};
use motet::wire::tcp::{self, Flags};

use crate::segment::{Direction, Segment};

/// What a packet is to the relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// The relay may keep it, answer it, or send it again. Its receive window, as it stands in the
    /// header.
    Plain(u16),
    /// It has extension headers, urgent data, or options that the relay does not know; or it comes
    /// from a host that speaks ECN, whose marks a retransmission may not carry (RFC 3168 §6.1.5).
    Foreign,
    /// It is not all here, or its checksum is wrong, so its receiver drops it.
    Broken,
}

impl Reading {
    /// Reads a packet, with the work of its checksum.
    pub(super) fn of(packet: &[u8], segment: &Segment) -> Self {
        if packet.len() != segment.packet_len {
            return Self::Broken;
        }
        let Ok((header, bytes)) = ipv6::Header::parse_start(packet) else {
            return Self::Broken;
        };
        let speaks_ecn = segment.direction == Direction::Down
            && (header.traffic_class.ecn() != Ecn::NotEct || segment.flags.intersects(Flags::CWR));
        let is_plain = !speaks_ecn
            && header.next_header == tcp::NEXT_HEADER
            && usize::from(header.payload_len) == bytes.len()
            && !segment.flags.intersects(Flags::URG);
        if !is_plain {
            return Self::Foreign;
        }
        let options = tcp::header_len(bytes).and_then(|len| bytes.get(tcp::HEADER_LEN..len));
        let window = bytes.get(WINDOW_AT..WINDOW_AT + 2);
        let window = window.and_then(|window| window.try_into().ok());
        let (Some(options), Some(window)) = (options, window) else {
            return Self::Broken;
        };
        if !tcp::is_checksum_valid(&header.src, &header.dst, bytes) {
            return Self::Broken;
        }
        match knows_all(options) {
            true => Self::Plain(u16::from_be_bytes(window)),
            false => Self::Foreign,
        }
    }
}

/// Whether the relay knows all options of a segment: those by which nothing depends on who sends.
fn knows_all(mut options: &[u8]) -> bool {
    loop {
        options = match options {
            [] | [END_OF_OPTIONS, ..] => return true,
            [NO_OPERATION, rest @ ..] => rest,
            [SACK | TIMESTAMPS, len, ..] if *len >= 2 => {
                options.get(usize::from(*len)..).unwrap_or_default()
            }
            _ => return false,
        };
    }
}

/// Where the window stands in a TCP header.
const WINDOW_AT: usize = 14;

/// Kinds of options (RFC 9293 §3.1, RFC 2018 §3, RFC 7323 §3.2).
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
