//! The address filter in a radio chip: which frames it accepts, and which it acknowledges.
//!
//! Place: `radio` filters each received frame with it; `air` finds the destination of a frame with
//! it, to count the frame's fate there.
//! Source: IEEE 802.15.4-2006 §7.5.6.2 (third level of filtering).

use motet::wire::LinkAddr;
use motet::wire::ieee802154::{ACK_LEN, FCS_LEN, Header, PAN_BROADCAST};

/// The addresses a radio answers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter {
    /// PAN identifier.
    pub pan: u16,
    /// EUI-64, canonical order.
    pub extended: [u8; 8],
    /// Short address, if there is one.
    pub short: Option<u16>,
}

impl Filter {
    /// Whether the frame is for this radio, and for it alone.
    pub fn is_mine(&self, header: &Header) -> bool {
        let Some(dst) = header.dst else { return false };
        let mine = match dst.addr {
            LinkAddr::Short(short) => Some(short) == self.short && !dst.addr.is_broadcast(),
            LinkAddr::Extended(extended) => extended == self.extended,
            LinkAddr::Device(_) => false,
        };
        mine && self.is_my_pan(dst.pan_id)
    }

    /// Whether the driver gets the frame.
    pub fn accepts(&self, header: &Header) -> bool {
        match header.dst {
            // ACKs and beacons: the MAC knows whether it waits for one.
            None => true,
            Some(dst) if dst.addr.is_broadcast() => self.is_my_pan(dst.pan_id),
            Some(_) => self.is_mine(header),
        }
    }

    fn is_my_pan(&self, pan: u16) -> bool {
        pan == self.pan || pan == PAN_BROADCAST
    }
}

/// The header of a PSDU that arrived whole.
pub fn header(psdu: &[u8]) -> Option<Header> {
    let mpdu = psdu.get(..psdu.len().checked_sub(FCS_LEN)?)?;
    Header::parse_secured(mpdu).ok().map(|(header, ..)| header)
}

/// The ACK of a frame with this sequence number, which says whether something waits: PSDU with FCS.
pub fn ack(sequence: u8, pending: bool) -> [u8; ACK_LEN] {
    let mut psdu = [0; ACK_LEN];
    let emitted = Header::ack(sequence, pending).emit_frame(&[], &mut psdu);
    debug_assert_eq!(emitted, Ok(ACK_LEN), "an ACK has three bytes and its FCS");
    psdu
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Filter = Filter {
        pan: 0x4d54,
        extended: [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
        short: Some(7),
    };

    #[test]
    fn frames_pass_by_address() {
        let other = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]);
        let data = |pan, dst| Header::data(pan, dst, other, 9);
        // (name, header, accepted, mine alone)
        let cases = [
            (
                "extended",
                data(ME.pan, LinkAddr::Extended(ME.extended)),
                true,
                true,
            ),
            ("another node", data(ME.pan, other), false, false),
            (
                "another PAN",
                data(0, LinkAddr::Extended(ME.extended)),
                false,
                false,
            ),
            (
                "any PAN",
                data(PAN_BROADCAST, LinkAddr::Extended(ME.extended)),
                true,
                true,
            ),
            ("short", data(ME.pan, LinkAddr::Short(7)), true, true),
            ("broadcast", data(ME.pan, LinkAddr::BROADCAST), true, false),
            ("ACK", Header::ack(9, false), true, false),
        ];
        for (name, header, accepted, mine) in cases {
            assert_eq!(
                (ME.accepts(&header), ME.is_mine(&header)),
                (accepted, mine),
                "{name}"
            );
        }
    }

    #[test]
    fn an_ack_is_the_one_seen_on_air() {
        // From a capture of two RIOT nodes.
        assert_eq!(ack(0x19, false), [0x02, 0x00, 0x19, 0xf8, 0x38]);
        assert!(header(&ack(0x19, true)).is_some() && header(&[2]).is_none());
    }
}
