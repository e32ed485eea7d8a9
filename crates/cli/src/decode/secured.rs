//! Frames that are opened with a key.
//!
//! Place: `envelope` calls [`open`] for a frame that is encrypted; the cipher is the stack's own.
//! Left out: short source addresses, whose nonce needs an address that the frame does not show,
//! key sources, and encrypted information elements.
//! Source: IEEE 802.15.4-2006 §7.5.8; Thread 1.1 §7.1.4 for the keys.

use motet::mac::security::{self, Software};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Auxiliary, Level};

use crate::keys::Keys;

/// A frame that is encrypted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secured<'a> {
    pub(super) src: Option<LinkAddr>,
    pub(super) level: u8,
    pub(super) key_mode: u8,
    pub(super) counter: Option<u32>,
    pub(super) key_index: Option<u8>,
    /// All that is in clear before the payload.
    pub(super) header: &'a [u8],
    /// The payload, and the MIC behind it.
    pub(super) body: &'a [u8],
}

/// The payload of a frame in clear.
///
/// # Errors
/// Why it stays closed, in words.
pub(super) fn open(keys: Option<&mut Keys>, frame: &Secured<'_>) -> Result<Vec<u8>, &'static str> {
    let keys = keys.ok_or("the payload is encrypted")?;
    let Some(LinkAddr::Extended(source)) = frame.src else {
        return Err(
            "the payload is encrypted, and its nonce has an address that is not in the frame",
        );
    };
    let level = Level::ALL
        .into_iter()
        .find(|level| level.number() == frame.level)
        .ok_or("the payload is encrypted, and nothing shows which key is right")?;
    let (1, Some(counter), Some(key_index)) = (frame.key_mode, frame.counter, frame.key_index)
    else {
        return Err("the payload is encrypted with a key of another kind");
    };
    let auxiliary = Auxiliary {
        level,
        counter,
        key_index,
    };
    // Where the capture begins long after the key sequence did, the nearest one may be behind it.
    let nearest = security::sequence_of(key_index, keys.sequence);
    let first = u32::from(key_index.saturating_sub(1));
    for sequence in nearest.into_iter().chain([first]) {
        let cipher = Software::new(&keys.network.link_key(sequence));
        let mut body = frame.body.to_vec();
        if let Ok(payload) = security::open(&cipher, source, auxiliary, frame.header, &mut body) {
            let payload = payload.to_vec();
            keys.sequence = sequence;
            return Ok(payload);
        }
    }
    Err("the payload is encrypted, and the key does not open it")
}
