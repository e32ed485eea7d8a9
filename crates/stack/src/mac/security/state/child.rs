//! A child in a Thread network: the key is everybody's, and the parent alone is believed.
//!
//! The parent's frames bear its short address, and its extended address is in their nonces: MLE has
//! told both. Others are refused before the cipher runs; nobody is challenged, and nobody reminded
//! of a key. Place: part of [`Security`]; the link says who the parent is.

use super::Security;
use crate::time::Instant;
#[cfg(feature = "sleepy")]
use crate::wire::LinkAddr;

/// The parent, once there is one.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Bond {
    extended: [u8; 8],
    rloc16: Option<u16>,
}

impl Security<'_> {
    /// Believes nobody from now on but the neighbours that [`Self::bind`] names. Returns whether
    /// there is room for two of them.
    pub(crate) fn set_child(&mut self) -> bool {
        self.bond = Some(Bond::default());
        self.peers.len() >= 2
    }

    /// Believes a neighbour that has answered this node's challenge by MLE, beside the parent, and
    /// forgets all others: one that comes back is believed from the counter on that it tells then.
    /// With it: its key sequence, and its first frame counter that is new. `is_anew`: that holds
    /// for one that is bound, too.
    pub(crate) fn bind(
        &mut self,
        neighbour: Option<([u8; 8], (u32, u32))>,
        is_anew: bool,
        now: Instant,
    ) {
        let parent = self.bond.filter(|bond| bond.rloc16.is_some());
        let parent = parent.map(|bond| bond.extended);
        let extended = neighbour.map(|(extended, _)| extended);
        self.peers
            .retain(|addr| [parent, extended].contains(&Some(addr)));
        if let Some((extended, next)) = neighbour
            && (is_anew || self.peers.find(extended).is_none())
        {
            self.peers.bind(extended, next, now);
        }
    }

    /// The parent is this neighbour, which was bound before; `None`: there is no parent now.
    pub(in crate::mac) fn set_parent(&mut self, parent: Option<([u8; 8], u16)>) {
        let extended = parent.map_or([0; 8], |(extended, _)| extended);
        let rloc16 = parent.map(|(_, rloc16)| rloc16);
        self.bond = Some(Bond { extended, rloc16 });
    }

    /// A frame counter for a message of MLE, whose counters are from the same row.
    pub(crate) fn take_counter(&mut self) -> Option<u32> {
        self.own.take()
    }

    /// Whether this node is a child in a Thread network.
    pub(in crate::mac) const fn is_child(&self) -> bool {
        self.bond.is_some()
    }

    /// Whether it is one without a parent.
    pub(in crate::mac) const fn has_no_parent(&self) -> bool {
        matches!(self.bond, Some(Bond { rloc16: None, .. }))
    }

    /// The extended address of the parent, if `short` is its short one.
    pub(in crate::mac) fn extended_of(&self, short: u16) -> Option<[u8; 8]> {
        let bond = self.bond.filter(|bond| bond.rloc16 == Some(short))?;
        Some(bond.extended)
    }

    /// The address by which a neighbour is polled: the parent's short one for the parent.
    #[cfg(feature = "sleepy")]
    pub(in crate::mac) fn polled_as(&self, addr: LinkAddr) -> LinkAddr {
        match self.bond {
            Some(Bond {
                extended,
                rloc16: Some(rloc16),
            }) if addr.is(&LinkAddr::Extended(extended)) => LinkAddr::Short(rloc16),
            _ => addr,
        }
    }

    /// Whether a frame of this neighbour is refused unread.
    pub(super) fn refuses(&self, source: [u8; 8]) -> bool {
        self.is_child() && self.peers.find(source).is_none()
    }
}
