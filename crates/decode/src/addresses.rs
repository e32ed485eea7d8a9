//! The nodes of each PAN: their extended addresses, and which short address is whose.
//!
//! Place: the layers tell what frames show; [`crate::secured`] asks, because a nonce is made of the
//! sender's extended address, also where its frame has the short one.
//! Left out: when a short address was given. A MIC proves which extended address is right, and a
//! newer one replaces an older.

use std::collections::{HashMap, VecDeque};

use motet::wire::LinkAddr;
use motet::wire::ieee802154::Address;

/// An extended address, most significant byte first.
pub(super) type Extended = [u8; 8];

/// What is known of the nodes of all PANs.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    pans: HashMap<u16, Pan>,
}

/// The nodes of one PAN.
#[derive(Clone, Debug, Default)]
struct Pan {
    /// Heard as sender or receiver, the latest last.
    heard: VecDeque<Extended>,
    of_short: HashMap<u16, Extended>,
}

impl Addresses {
    /// Notes a node, by an address in the header of a frame.
    pub(super) fn hear(&mut self, address: Address) {
        let LinkAddr::Extended(extended) = address.addr else {
            return;
        };
        let heard = &mut self.pan(address.pan_id).heard;
        if heard.back() == Some(&extended) {
            return;
        }
        heard.retain(|known| *known != extended);
        if heard.len() >= HEARD_MAX {
            heard.pop_front();
        }
        heard.push_back(extended);
    }

    /// Notes whose a short address is.
    pub(super) fn learn(&mut self, pan_id: u16, short: u16, extended: Extended) {
        // Two values are no node's: all nodes, and a node without a short address.
        if short >= UNASSIGNED {
            return;
        }
        self.hear(Address {
            pan_id,
            addr: LinkAddr::Extended(extended),
        });
        let of_short = &mut self.pan(pan_id).of_short;
        if of_short.len() >= SHORT_MAX && !of_short.contains_key(&short) {
            of_short.clear();
        }
        of_short.insert(short, extended);
    }

    /// The extended address of the node with this short one.
    pub(super) fn of_short(&self, pan_id: u16, short: u16) -> Option<Extended> {
        self.pans.get(&pan_id)?.of_short.get(&short).copied()
    }

    /// The extended addresses heard in a PAN, the latest first.
    pub(super) fn heard(&self, pan_id: u16) -> impl Iterator<Item = Extended> + '_ {
        let pan = self.pans.get(&pan_id).into_iter();
        pan.flat_map(|pan| pan.heard.iter().rev().copied())
    }

    fn pan(&mut self, pan_id: u16) -> &mut Pan {
        if self.pans.len() >= PANS_MAX && !self.pans.contains_key(&pan_id) {
            self.pans.clear();
        }
        self.pans.entry(pan_id).or_default()
    }
}

/// The first of the short addresses that are no node's (IEEE 802.15.4-2006 §7.5.3.1).
const UNASSIGNED: u16 = 0xfffe;
/// PANs remembered; beyond, all are forgotten.
const PANS_MAX: usize = 64;
/// Extended addresses of a PAN that are tried for a short one. The oldest is forgotten beyond that.
const HEARD_MAX: usize = 64;
/// Short addresses of a PAN; beyond, all are forgotten. A Thread network has up to 32 routers with
/// up to 511 children each.
const SHORT_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(addresses: &mut Addresses, pan_id: u16, last: u8) {
        addresses.hear(Address {
            pan_id,
            addr: LinkAddr::Extended([0, 0, 0, 0, 0, 0, 0, last]),
        });
    }

    #[test]
    fn each_pan_has_its_own_nodes() {
        let mut addresses = Addresses::default();
        heard(&mut addresses, 1, 7);
        heard(&mut addresses, 1, 8);
        heard(&mut addresses, 1, 7);
        heard(&mut addresses, 2, 9);
        let last = |addresses: &Addresses, pan| -> Vec<u8> {
            addresses.heard(pan).map(|extended| extended[7]).collect()
        };
        assert_eq!(last(&addresses, 1), [7, 8]);
        assert_eq!(last(&addresses, 2), [9]);
        assert!(last(&addresses, 3).is_empty());
        addresses.learn(1, 0x2c01, [1; 8]);
        assert_eq!(addresses.of_short(1, 0x2c01), Some([1; 8]));
        assert_eq!(addresses.of_short(2, 0x2c01), None);
        assert_eq!(last(&addresses, 1), [1, 7, 8]);
        addresses.learn(1, 0xffff, [2; 8]);
        assert_eq!(addresses.of_short(1, 0xffff), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut addresses = Addresses::default();
        for short in 0..40_000 {
            addresses.learn(1, short, u64::from(short).to_be_bytes());
        }
        assert_eq!(addresses.heard(1).count(), HEARD_MAX);
        assert!(addresses.pans[&1].of_short.len() <= SHORT_MAX);
        for pan in 0..1_000 {
            heard(&mut addresses, pan, 1);
        }
        assert!(addresses.pans.len() <= PANS_MAX);
    }
}
