//! Frames that are opened with a key.
//!
//! Place: `envelope` calls [`open`] for a frame that is encrypted; the cipher is the stack's own.
//! Left out: short source addresses, whose nonce needs an address that the frame does not show,
//! key sources, and encrypted information elements.
//! Source: IEEE 802.15.4-2006 §7.5.8; Thread 1.1 §7.1.4 for the keys.

use motet::mac::security::{self, NetworkKey, Software};
use motet::wire::ieee802154::Auxiliary;

/// The keys by which frames of a network are decrypted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// The network's key, from which those of its links follow.
    pub(super) network: NetworkKey,
    /// Where the key sequence stands, as far as is known.
    pub(super) sequence: u32,
}

/// The payload in clear of a frame from `source`: `header` is all that is in clear before the
/// payload, `body` the payload with the MIC behind it.
///
/// # Errors
/// Why it stays closed, in words.
pub(super) fn open(
    keys: &mut Keys,
    source: [u8; 8],
    auxiliary: Auxiliary,
    (header, body): (&[u8], &[u8]),
) -> Result<Vec<u8>, &'static str> {
    let key_index = auxiliary.key_index;
    // Where the capture begins long after the key sequence did, the nearest one may be behind it.
    let nearest = security::sequence_of(key_index, keys.sequence);
    let first = u32::from(key_index.saturating_sub(1));
    for sequence in nearest.into_iter().chain([first]) {
        let cipher = Software::new(&keys.network.link_key(sequence));
        let mut body = body.to_vec();
        if let Ok(payload) = security::open(&cipher, source, auxiliary, header, &mut body) {
            let payload = payload.to_vec();
            keys.sequence = sequence;
            return Ok(payload);
        }
    }
    Err("the payload is encrypted, and the key does not open it")
}
