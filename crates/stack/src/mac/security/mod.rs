//! Link security of IEEE 802.15.4: frames that only those can write, and read, that have the key.
//!
//! ```text
//! header  auxiliary security header                 payload     MIC
//!         control 1   frame counter 4   key index 1  encrypted   4, 8 or 16
//! \______________ authenticated ___________________/
//! ```
//!
//! The nonce is made of the sender's extended address, its frame counter and the level, so that two
//! frames of one key share none. [`seal`] and [`open`] do not ask whether a counter is new;
//! [`Security`], which a node has, does. Place: between the codec of frames,
//! [`crate::wire::ieee802154`], and a MAC or an analyser that has a key. Left out: frames that are
//! authenticated but not encrypted, implicit keys and key sources (key identifier modes 0, 2 and
//! 3), short source addresses in the nonce (2015), beacons, and frames of 2003, whose security was
//! another one. Source: IEEE 802.15.4-2006 §7.5.8, §7.6.3.2, annex B.

mod aes;
pub(crate) mod ccm;
mod counter;
mod engine;
mod keys;
mod peers;
mod proof;
mod sealed;
mod settings;
mod state;
#[cfg(test)]
mod tests;

pub use ccm::{BLOCK_LEN, Block, Cipher, Forged};
pub use counter::Reservation;
pub use engine::Engine;
#[cfg(feature = "thread")]
pub(crate) use engine::Keyed;
#[cfg(any(feature = "join", feature = "thread"))]
pub(crate) use keys::upper_half;
pub use keys::{KEY_LEN, LinkKey, NetworkKey, Software, index, sequence_of};
pub use peers::Peer;
pub(super) use proof::Proof;
pub(super) use sealed::Sealed;
pub use settings::{GUARD_TIME, ROTATES_AFTER, SecurityConfig, SecurityCounters};
pub use state::Security;

use ccm::NONCE_LEN;

use crate::wire::ieee802154::{Auxiliary, Level};

/// The nonce of a frame (§7.6.3.2).
///
/// `source`: its sender's extended address, most significant byte first.
fn nonce(source: [u8; 8], counter: u32, level: Level) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    let [address @ .., a, b, c, d, last] = &mut nonce;
    *address = source;
    [*a, *b, *c, *d] = counter.to_be_bytes();
    *last = level.number();
    nonce
}

/// Encrypts the payload of a frame where it is, and writes its MIC behind it.
///
/// `header`: all that goes in clear before it, the auxiliary security header included (and of a MAC
/// command its identifier). `body`: the payload, with room for the MIC behind it.
/// Returns nothing where `body` is shorter than the MIC, and leaves it as it was.
pub fn seal(
    cipher: &impl Cipher,
    source: [u8; 8],
    auxiliary: Auxiliary,
    header: &[u8],
    body: &mut [u8],
) -> Option<()> {
    let mic_len = auxiliary.level.mic_len();
    let payload_len = body.len().checked_sub(mic_len)?;
    let (payload, mic) = body.split_at_mut(payload_len);
    let nonce = nonce(source, auxiliary.counter, auxiliary.level);
    let tag = ccm::seal(cipher, &nonce, header, payload, mic_len);
    for (place, byte) in mic.iter_mut().zip(tag) {
        *place = byte;
    }
    Some(())
}

/// Decrypts the payload of a frame where it is, if its MIC is right; returns the payload.
///
/// The arguments are those of [`seal`].
///
/// # Errors
/// [`Forged`], for a frame without room for a MIC too; its payload then holds zeros.
pub fn open<'a>(
    cipher: &impl Cipher,
    source: [u8; 8],
    auxiliary: Auxiliary,
    header: &[u8],
    body: &'a mut [u8],
) -> Result<&'a mut [u8], Forged> {
    let mic_len = auxiliary.level.mic_len();
    let payload_len = body.len().checked_sub(mic_len).ok_or(Forged)?;
    let (payload, mic) = body.split_at_mut(payload_len);
    let nonce = nonce(source, auxiliary.counter, auxiliary.level);
    ccm::open(cipher, &nonce, header, payload, mic)?;
    Ok(payload)
}
