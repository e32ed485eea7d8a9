//! 6LoWPAN mesh addressing and broadcast headers, of networks that forward below IP.
//!
//! Place: `lowpan` calls [`headers`] before all else. Behind them addresses are the originator's
//! and the final one: interface identifiers derive from those, and fragments belong together by
//! them.
//! Source: RFC 4944 §5.2, §11.1.

use motet::lowpan::LinkPair;
use motet::wire::lowpan_mesh::{Broadcast, Header, ParseError};

use super::mac::link_addr;
use crate::model::{Frame, Layer};

/// Explains the headers in front of `payload`, if there are any; returns between which nodes the
/// packet goes below IP, and what follows them.
pub(super) fn headers<'a>(
    frame: &mut Frame,
    link: LinkPair,
    payload: &'a [u8],
) -> Option<(LinkPair, &'a [u8])> {
    let (header, payload) = match Header::parse(payload) {
        Ok(found) => found,
        Err(ParseError::Truncated) if !payload.is_empty() => {
            frame.malformed("mesh", ParseError::Truncated.reason());
            return None;
        }
        // `lowpan` says what is wrong with a broadcast header that stands alone.
        Err(_) => return Some((link, payload)),
    };
    let [originator, destination] = [header.originator, header.destination].map(link_addr);
    frame.between(&originator, &destination);
    frame.push(
        Layer::new("mesh", format!("{originator} → {destination}"))
            .hidden("originator", originator)
            .hidden("destination", destination)
            .with("hops_left", header.hops_left),
    );
    frame.say(format_args!("6LoWPAN mesh, {} B", payload.len()));
    let pair = LinkPair {
        src: header.originator,
        dst: header.destination,
    };
    match Broadcast::parse(payload) {
        Ok((broadcast, payload)) => {
            frame.push(Layer::new("broadcast", "").with("sequence", broadcast.sequence));
            Some((pair, payload))
        }
        Err(ParseError::Truncated) if !payload.is_empty() => {
            frame.malformed("mesh", ParseError::Truncated.reason());
            None
        }
        Err(_) => Some((pair, payload)),
    }
}
