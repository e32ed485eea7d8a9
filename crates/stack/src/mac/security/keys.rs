//! Keys of links: from one network key, a new one at each step of a sequence.
//!
//! Source: Thread 1.1 §7.1.4 and §7.1.5, whose rule analysers of captures know: one network
//! key shows them every link key.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::aes::Aes128;
use super::ccm::{Block, Cipher};
use crate::wire::cursor;

/// Length of an AES-128 key, bytes.
pub const KEY_LEN: usize = 16;

/// The key of a network, which only its members know. It never encrypts a frame: the keys that do
/// are derived from it.
///
/// The [`Debug`](core::fmt::Debug) form does not show the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NetworkKey([u8; KEY_LEN]);

impl NetworkKey {
    /// A key of these bytes.
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The network key of that number, of those that follow from one secret: the upper half of
    /// HMAC-SHA256(secret, "motet network" ‖ number).
    pub fn of_secret(secret: &[u8], number: u32) -> Self {
        Self(upper_half(
            secret,
            &[b"motet network", &number.to_be_bytes()],
        ))
    }

    /// The 16 bytes of the key, for an analyser of captures.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// The key of links while the key sequence stands at `sequence`: the upper half of
    /// HMAC-SHA256(network key, sequence ‖ "Thread").
    pub fn link_key(&self, sequence: u32) -> LinkKey {
        LinkKey(upper_half(&self.0, &[&sequence.to_be_bytes(), b"Thread"]))
    }

    /// The key of MLE messages at that sequence: the lower half, of which [`Self::link_key`] is the
    /// upper one.
    #[cfg(feature = "thread")]
    pub fn mle_key(&self, sequence: u32) -> LinkKey {
        let [lower, _] = hmac(&self.0, &[&sequence.to_be_bytes(), b"Thread"]);
        LinkKey(lower)
    }
}

impl core::fmt::Debug for NetworkKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("NetworkKey(..)")
    }
}

/// The key that encrypts frames; see [`NetworkKey::link_key`].
///
/// The [`Debug`](core::fmt::Debug) form does not show the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkKey([u8; KEY_LEN]);

impl LinkKey {
    /// A key of these bytes.
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the key, for a chip that does AES in hardware.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl core::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LinkKey(..)")
    }
}

/// The upper half of HMAC-SHA256(key, message).
pub(crate) fn upper_half(key: &[u8], message: &[&[u8]]) -> [u8; KEY_LEN] {
    let [_, upper] = hmac(key, message);
    upper
}

/// Both halves of HMAC-SHA256(key, message), the first one first.
fn hmac(key: &[u8], message: &[&[u8]]) -> [[u8; KEY_LEN]; 2] {
    let mut halves = [[0; KEY_LEN]; 2];
    // A key of any length is good for HMAC.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) {
        message.iter().for_each(|part| mac.update(part));
        cursor::copy(halves.as_flattened_mut(), &mac.finalize().into_bytes());
    }
    halves
}

/// The key index by which frames name the key of `sequence`: 1 to 128.
pub const fn index(sequence: u32) -> u8 {
    (sequence % INDICES) as u8 + 1
}

/// The sequence that `index` names, the nearest one to `sequence`: ahead of it by up to 63, or
/// behind it by up to 64. `None` for an index that no sequence has, and where it would lie beyond
/// either end of the sequence.
pub const fn sequence_of(index: u8, sequence: u32) -> Option<u32> {
    if index == 0 || index as u32 > INDICES {
        return None;
    }
    let ahead = (index as u32 - 1 + INDICES - sequence % INDICES) % INDICES;
    match ahead < INDICES / 2 {
        true => sequence.checked_add(ahead),
        false => sequence.checked_sub(INDICES - ahead),
    }
}

/// AES-128 in software, with its key expanded.
pub struct Software(Aes128);

impl Software {
    /// Expands `key` to its eleven round keys.
    pub fn new(key: &LinkKey) -> Self {
        Self(Aes128::new(&key.0))
    }
}

impl core::fmt::Debug for Software {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Software(..)")
    }
}

impl Cipher for Software {
    fn encrypt(&self, pair: &mut [Block; 2]) {
        self.0.encrypt(pair);
    }
}

/// How many sequences in a row have indices of their own.
const INDICES: u32 = 128;
