//! The RPL option (RPL packet information), which each packet in an RPL instance has for its next
//! router.
//!
//! ```text
//! +---------------+---------------+---------------+---------------+
//! |  Next Header  | Hdr Ext Len=0 | 0x63 or 0x23  | Opt Data Len=4|
//! +-+-+-+---------+---------------+---------------+---------------+
//! |O|R|F|0 0 0 0 0| RPLInstanceID |          SenderRank           |
//! +-+-+-+---------+---------------+-------------------------------+
//! ```
//!
//! Place: `lowpan` takes the option out of packets and puts it in, here as hop-by-hop options and
//! in [`lorh`](super::lorh) compressed. Left out: hop-by-hop options that hold more than this one;
//! they stay in their packet.
//! Sources: RFC 6553 §3; RFC 6550 §11.2; RFC 9008 §4.2.

use super::cursor::{Reader, Truncated};

/// Bytes of hop-by-hop options that hold this option and nothing else.
pub const HEADER_LEN: usize = 8;

/// The option's type of RFC 6553. A node that does not know it drops the packet.
pub const TYPE_6553: u8 = 0x63;
/// The option's type of RFC 9008. A node that does not know it skips the option.
pub const TYPE_9008: u8 = 0x23;

/// RPL packet information, the content of the option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rpi {
    /// O: the packet is on its way down.
    pub down: bool,
    /// R: a router has seen the packet travel against the order of ranks.
    pub rank_error: bool,
    /// F: the sender had no route down.
    pub forwarding_error: bool,
    /// `RPLInstanceID` (RFC 6550 §5.1).
    pub instance: u8,
    /// `DAGRank` of the node that sent the packet over this hop, or its rank: implementations
    /// differ.
    pub sender_rank: u16,
}

const DOWN: u8 = 0x80;
const RANK_ERROR: u8 = 0x40;
const FORWARDING_ERROR: u8 = 0x20;

impl Rpi {
    /// Whether a router has already found the packet on a hop that contradicts the ranks:
    /// `rank_error`.
    pub(crate) const fn is_looping(self) -> bool {
        self.rank_error
    }

    /// Whether the direction of a packet contradicts the ranks (RFC 6550 §11.2.2.2): it goes up
    /// from a sender that is not farther from the root than the receiver, or down from one that is
    /// farther. `rank`: DAGRank of the receiver; `unit`: MinHopRankIncrease. The option may have
    /// the sender's rank or its DAGRank, since implementations differ; in a packet that goes up, 0
    /// means unknown.
    pub fn contradicts(&self, rank: u16, unit: u16) -> bool {
        let sender = match self.sender_rank.checked_div(unit) {
            // Less than the root's: in whole ranks already.
            None | Some(0) => self.sender_rank,
            Some(rank) => rank,
        };
        match self.down {
            false => sender != 0 && sender <= rank,
            true => sender > rank,
        }
    }

    /// Reads hop-by-hop options that hold this option and nothing else. `header`: the whole
    /// extension header. Returns the option's type and its fields; `None` for any other hop-by-hop
    /// options.
    pub fn parse(header: &[u8]) -> Option<(u8, Self)> {
        match *header {
            [
                _,
                0,
                kind @ (TYPE_6553 | TYPE_9008),
                4,
                flags,
                instance,
                high,
                low,
            ] => {
                let sender_rank = u16::from_be_bytes([high, low]);
                Some((kind, Self::of(flags, instance, sender_rank)))
            }
            _ => None,
        }
    }

    /// Reads the content of the option, of which bytes behind the first four are TLVs of which
    /// none is defined.
    ///
    /// # Errors
    /// [`Truncated`].
    pub fn parse_content(content: &[u8]) -> Result<Self, Truncated> {
        let mut r = Reader::new(content);
        let [flags, instance] = r.array()?;
        Ok(Self::of(flags, instance, r.u16()?))
    }

    /// Hop-by-hop options that hold this option, of type `kind`, and nothing else.
    pub const fn header(self, next_header: u8, kind: u8) -> [u8; HEADER_LEN] {
        let [high, low] = self.sender_rank.to_be_bytes();
        let flags = self.flags();
        [next_header, 0, kind, 4, flags, self.instance, high, low]
    }

    /// O, R and F in the three highest bits of `flags`.
    pub(crate) const fn of(flags: u8, instance: u8, sender_rank: u16) -> Self {
        Self {
            down: flags & DOWN != 0,
            rank_error: flags & RANK_ERROR != 0,
            forwarding_error: flags & FORWARDING_ERROR != 0,
            instance,
            sender_rank,
        }
    }

    /// The flag bits O, R and F: undoes [`Self::of`].
    pub(crate) const fn flags(self) -> u8 {
        (self.down as u8) << 7 | (self.rank_error as u8) << 6 | (self.forwarding_error as u8) << 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn byte_for_byte() {
        let rpi = Rpi {
            down: true,
            rank_error: false,
            forwarding_error: true,
            instance: 0x1e,
            sender_rank: 0x0280,
        };
        let header = rpi.header(17, TYPE_9008);
        assert_eq!(header, [17, 0, 0x23, 4, 0xa0, 0x1e, 2, 0x80]);
        assert_eq!(Rpi::parse(&header), Some((TYPE_9008, rpi)));
        assert_eq!(Rpi::parse_content(&header[4..]), Ok(rpi));
    }

    #[test]
    fn other_hop_by_hop_options_are_left_alone() {
        let cases: [(&str, &[u8]); 5] = [
            ("too short", &[17, 0, 0x63, 4, 0, 0, 0]),
            ("another option", &[17, 0, 5, 4, 0, 0, 0, 0]),
            ("padding", &[17, 0, 1, 4, 0, 0, 0, 0]),
            ("shorter content", &[17, 0, 0x63, 3, 0, 0, 0, 0]),
            (
                "more behind",
                &[17, 1, 0x63, 4, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0],
            ),
        ];
        for (name, header) in cases {
            assert_eq!(Rpi::parse(header), None, "{name}");
        }
        assert_eq!(Rpi::parse_content(&[0; 3]), Err(Truncated));
    }

    #[test]
    fn what_goes_another_way_than_it_says_contradicts() {
        let cases = [
            ("from a child", 5, false, false),
            ("of the same rank", 4, false, true),
            ("from above", 3, false, true),
            ("of its source", 0, false, false),
            ("from a child in full", 5 * 128 + 127, false, false),
            ("of the same rank in full", 4 * 128 + 127, false, true),
            ("from above in full", 130, false, true),
            ("down from above", 3, true, false),
            ("down from a child", 5, true, true),
            ("down from a child in full", 5 * 128, true, true),
        ];
        for (name, sender_rank, down, expected) in cases {
            let rpi = Rpi {
                down,
                sender_rank,
                ..Rpi::default()
            };
            assert_eq!(rpi.contradicts(4, 128), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_is_emitted_byte_for_byte(
            next in any::<u8>(), kind in prop_oneof![Just(0x63u8), Just(0x23)],
            flags in 0u8..8, instance in any::<u8>(), rank in any::<u16>(),
        ) {
            let [high, low] = rank.to_be_bytes();
            let header = [next, 0, kind, 4, flags << 5, instance, high, low];
            let (parsed_kind, rpi) = Rpi::parse(&header).unwrap();
            prop_assert_eq!(rpi.header(next, parsed_kind), header);
        }
    }
}
