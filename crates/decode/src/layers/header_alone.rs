//! The IPv6 header of a packet whose next compressed header is not known: who sends to whom.
//!
//! Place: beside `lowpan`. The header stands before the one that cannot be read (RFC 6282 §3), so
//! that it is restored as if nothing followed.

use motet::lowpan::{Contexts, LinkPair, decompress};
use motet::wire::ipv6;

use crate::model::{Frame, Layer};

/// Shows the addresses of a packet that begins with the compressed header `iphc`.
pub(super) fn show(frame: &mut Frame, iphc: &[u8], pair: LinkPair, contexts: &Contexts) {
    let Some(alone) = with_nothing_behind(iphc) else {
        return;
    };
    let mut out = [0; ipv6::HEADER_LEN];
    if decompress(&alone, pair, contexts, None, &mut out).is_err() {
        return;
    }
    let Ok((header, _)) = ipv6::Header::parse_start(&out) else {
        return;
    };
    frame.between(header.src, header.dst);
    frame.say("IPv6, next header unknown");
    frame.push(
        Layer::new("ipv6", format!("{} → {}", header.src, header.dst))
            .hidden("src", header.src)
            .hidden("dst", header.dst)
            .with("hop_limit", header.hop_limit),
    );
}

/// The compressed header with its next header in line: none.
fn with_nothing_behind(iphc: &[u8]) -> Option<Vec<u8>> {
    let (&[first, second], in_line) = iphc.split_first_chunk()?;
    if first & NEXT_HEADER_COMPRESSED == 0 {
        return None;
    }
    let traffic_len = match first & TRAFFIC {
        0x00 => 4,
        0x08 => 3,
        0x10 => 1,
        _ => 0,
    };
    let before_len = usize::from(second & CONTEXTS != 0) + traffic_len;
    let (before, behind) = in_line.split_at_checked(before_len)?;
    let base = [first & !NEXT_HEADER_COMPRESSED, second];
    Some([&base[..], before, &[ipv6::next_header::NONE], behind].concat())
}

/// NH of RFC 6282 §3.1.1.
const NEXT_HEADER_COMPRESSED: u8 = 0x04;
/// TF.
const TRAFFIC: u8 = 0x18;
/// CID: a byte of context identifiers follows.
const CONTEXTS: u8 = 0x80;
