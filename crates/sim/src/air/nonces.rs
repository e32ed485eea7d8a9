//! Nonces on the air: whether one was ever used for two frames.
//!
//! Purpose: an attacker that hears two frames with the same key and nonce learns the XOR of their
//! contents, and can forge frames. The check reads the transmitted frames, not the state of nodes.
//! Place: [`crate::air::Air`] shows every frame as it goes on the air, if the check is on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use motet::wire::LinkAddr;
use motet::wire::ieee802154::{FCS_LEN, Header};

/// Every nonce so far, by sender, key index and frame counter, with the frame that it was of.
#[derive(Debug, Default)]
pub struct Nonces {
    seen: HashMap<([u8; 8], u8, u32), Box<[u8]>>,
    /// Frames with a nonce that another frame had.
    pub repeated: u64,
}

impl Nonces {
    /// A frame goes on the air.
    pub fn note(&mut self, psdu: &[u8]) {
        let mpdu = psdu.get(..psdu.len().saturating_sub(FCS_LEN));
        let parsed = mpdu.and_then(|mpdu| Header::parse_secured(mpdu).ok());
        let Some((header, Some(auxiliary), _)) = parsed else {
            return;
        };
        let Some(LinkAddr::Extended(source)) = header.src.map(|src| src.addr) else {
            return;
        };
        let nonce = (source, auxiliary.key_index, auxiliary.counter);
        match self.seen.entry(nonce) {
            Entry::Occupied(seen) => self.repeated += u64::from(**seen.get() != *psdu),
            Entry::Vacant(place) => {
                place.insert(psdu.into());
            }
        }
    }

    /// How many nonces were used.
    pub fn count(&self) -> usize {
        self.seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motet::wire::ieee802154::{Auxiliary, Level, fcs};

    #[test]
    fn a_nonce_of_two_frames_is_found() {
        let frame = |counter, last| {
            let (to, from) = (LinkAddr::Extended([1; 8]), LinkAddr::Extended([2; 8]));
            let auxiliary = Auxiliary {
                level: Level::Mic32,
                counter,
                key_index: 1,
            };
            let mut out = [0; 127];
            let header = Header::data(7, to, from, 0);
            let len = header.emit_secured(&auxiliary, &mut out).unwrap();
            let mpdu = [&out[..len], &[1, 2, 3, last]].concat();
            let sum = fcs(&mpdu).to_le_bytes();
            [mpdu, sum.to_vec()].concat()
        };
        let mut nonces = Nonces::default();
        for (counter, last) in [(1, 0), (2, 0), (1, 0), (1, 9)] {
            nonces.note(&frame(counter, last));
        }
        assert_eq!((nonces.repeated, nonces.count()), (1, 2));
        nonces.note(&[1, 2]);
        assert_eq!(nonces.count(), 2);
    }
}
