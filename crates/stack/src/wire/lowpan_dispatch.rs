//! The dispatch: what the first byte of a 6LoWPAN payload announces.
//!
//! Place: between `mac` and `lowpan`. Left out: parsing of formats that this stack does not
//! support; they are only distinguished, so that each has its own drop reason.
//! Sources: RFC 4944 §5.1, RFC 6282 §2, RFC 6971 §13.2.2, RFC 8025 §3, RFC 8138 §4, RFC 8931 §5.

/// A format that this stack reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// One byte, then an IPv6 packet as it is.
    Ipv6,
    /// A compressed IPv6 header (`011xxxxx`, RFC 6282 §3.1).
    Iphc,
    /// The first fragment of a packet or a later one (`11000xxx`, `11100xxx`, RFC 4944 §5.3).
    Fragment,
    /// 6LoWPAN routing headers (RFC 8138, page 1), then LOWPAN_IPHC.
    #[cfg(feature = "rpl")]
    Routed,
}

/// A format that this stack recognises and drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// The payload has no byte.
    Empty,
    /// Not a LoWPAN frame (`00xxxxxx`).
    NotLowpan,
    /// LOWPAN_HC1 (RFC 4944 §10), which RFC 6282 replaces.
    Hc1,
    /// Broadcast header of mesh-under, LOWPAN_BC0 (RFC 4944 §11.1).
    Broadcast,
    /// Depth-first forwarding of mesh-under (RFC 6971 §13.2.2).
    DepthFirst,
    /// Mesh addressing header of mesh-under (RFC 4944 §5.2).
    Mesh,
    /// Escape to an extended dispatch (RFC 8066).
    Escape,
    /// Recoverable fragment or its acknowledgment (RFC 8931).
    RecoverableFragment,
    /// 6LoWPAN routing header (RFC 8138, page 1), where the feature `rpl` is off.
    RoutingHeader,
    /// A page other than 0 and 1 (RFC 8025 §3).
    Page,
    /// A value that no RFC has assigned.
    Reserved,
}

impl Unsupported {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Empty => "empty 6LoWPAN payload",
            Self::NotLowpan => "not a 6LoWPAN frame",
            Self::Hc1 => "6LoWPAN HC1 compression is not supported",
            Self::Broadcast => "6LoWPAN BC0 broadcast header is not supported",
            Self::DepthFirst => "6LoWPAN depth-first forwarding is not supported",
            Self::Mesh => "6LoWPAN mesh header is not supported",
            Self::Escape => "6LoWPAN escape dispatch is not supported",
            Self::RecoverableFragment => "6LoWPAN recoverable fragments are not supported",
            Self::RoutingHeader => "6LoWPAN routing header is not supported",
            Self::Page => "6LoWPAN dispatch page is not supported",
            Self::Reserved => "6LoWPAN dispatch is reserved",
        }
    }
}

speaks!(Unsupported);

/// The dispatch byte of an uncompressed IPv6 packet.
pub const IPV6: u8 = 0x41;

/// Returns the format with which `payload` (of a data frame) starts.
///
/// # Errors
/// [`Unsupported`]; the frame is dropped.
pub fn classify(payload: &[u8]) -> Result<Dispatch, Unsupported> {
    let first = *payload.first().ok_or(Unsupported::Empty)?;
    match first {
        IPV6 => Ok(Dispatch::Ipv6),
        0b0110_0000..=0b0111_1111 => Ok(Dispatch::Iphc),
        0b1100_0000..=0b1100_0111 | 0b1110_0000..=0b1110_0111 => Ok(Dispatch::Fragment),
        0b0000_0000..=0b0011_1111 => Err(Unsupported::NotLowpan),
        0x40 => Err(Unsupported::Escape),
        0x42 => Err(Unsupported::Hc1),
        0x43 => Err(Unsupported::DepthFirst),
        0x50 => Err(Unsupported::Broadcast),
        0b1000_0000..=0b1011_1111 => Err(Unsupported::Mesh),
        0b1110_1000..=0b1110_1011 => Err(Unsupported::RecoverableFragment),
        // In page 1, `10xxxxxx` is a routing header; in page 0, a mesh header.
        0xf1 if payload.get(1).is_some_and(|next| next >> 6 == 0b10) => {
            #[cfg(feature = "rpl")]
            return Ok(Dispatch::Routed);
            #[cfg(not(feature = "rpl"))]
            Err(Unsupported::RoutingHeader)
        }
        0xf0..=0xff => Err(Unsupported::Page),
        _ => Err(Unsupported::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assigned_dispatch() {
        let cases: [(&[u8], Result<Dispatch, Unsupported>); 20] = [
            (&[], Err(Unsupported::Empty)),
            (&[0x00], Err(Unsupported::NotLowpan)),
            (&[0x3f], Err(Unsupported::NotLowpan)),
            (&[0x40], Err(Unsupported::Escape)),
            (&[0x41, 0x60], Ok(Dispatch::Ipv6)),
            (&[0x42], Err(Unsupported::Hc1)),
            (&[0x43], Err(Unsupported::DepthFirst)),
            (&[0x50], Err(Unsupported::Broadcast)),
            (&[0x51], Err(Unsupported::Reserved)),
            (&[0x60], Ok(Dispatch::Iphc)),
            (&[0x7f], Ok(Dispatch::Iphc)),
            (&[0x80], Err(Unsupported::Mesh)),
            (&[0xbf], Err(Unsupported::Mesh)),
            (&[0xc7], Ok(Dispatch::Fragment)),
            (&[0xc8], Err(Unsupported::Reserved)),
            (&[0xe0], Ok(Dispatch::Fragment)),
            (&[0xea], Err(Unsupported::RecoverableFragment)),
            #[cfg(feature = "rpl")]
            (&[0xf1, 0xa0], Ok(Dispatch::Routed)),
            #[cfg(not(feature = "rpl"))]
            (&[0xf1, 0xa0], Err(Unsupported::RoutingHeader)),
            (&[0xf1, 0x60], Err(Unsupported::Page)),
            (&[0xf2], Err(Unsupported::Page)),
        ];
        for (payload, expected) in cases {
            assert_eq!(classify(payload), expected, "{payload:02x?}");
        }
    }

    #[test]
    fn every_byte_has_an_answer_with_words() {
        for first in 0..=255u8 {
            if let Err(reason) = classify(&[first]) {
                assert!(!reason.reason().is_empty());
            }
        }
    }
}
