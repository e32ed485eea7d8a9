//! Which frames are for this node, and which it acknowledges.
//!
//! Source: IEEE 802.15.4-2006 §7.5.6.2 (third level of filtering) and §7.5.6.4.2.

use motet::mac;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{FrameType, Header, PAN_BROADCAST};

/// The addresses that a node answers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter {
    /// PAN identifier.
    pub pan: u16,
    /// EUI-64, most significant byte first.
    pub extended: [u8; 8],
    /// Short address, if there is one.
    pub short: Option<u16>,
}

/// The filter's decision on a frame with a good CRC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilterDecision {
    /// Whether the frame is handed to the node.
    pub(crate) is_for_node: bool,
    /// The sequence number of the ACK that answers the frame; `None`: no ACK.
    pub(crate) answer: Option<u8>,
}

impl Filter {
    /// The addresses of a node with these settings.
    pub const fn of(config: &mac::Config) -> Self {
        Self {
            pan: config.pan,
            extended: config.extended,
            short: config.short,
        }
    }

    /// Judges a frame by its first bytes.
    pub(crate) fn judge(&self, head: &[u8]) -> FilterDecision {
        const NOBODY: FilterDecision = FilterDecision {
            is_for_node: false,
            answer: None,
        };
        let Ok((header, _)) = Header::parse(head) else {
            return NOBODY;
        };
        let Some(dst) = header.dst else {
            // ACKs and beacons: the MAC knows whether it waits for one.
            return FilterDecision {
                is_for_node: true,
                ..NOBODY
            };
        };
        let is_my_pan = dst.pan_id == self.pan || dst.pan_id == PAN_BROADCAST;
        let short = self.short.map(LinkAddr::Short);
        let is_mine = dst.addr == LinkAddr::Extended(self.extended) || Some(dst.addr) == short;
        let is_broadcast = dst.addr.is_broadcast();
        let is_answered = header.ack_request
            && is_mine
            && !is_broadcast
            && matches!(header.frame_type, FrameType::Data | FrameType::Command);
        FilterDecision {
            is_for_node: is_my_pan && (is_mine || is_broadcast),
            answer: (is_my_pan && is_answered).then_some(header.sequence),
        }
    }
}
