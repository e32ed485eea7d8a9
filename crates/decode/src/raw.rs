//! Frames that are opened with a given AES key, whatever network it is of.
//!
//! Place: `envelope` calls [`RawKeys::open`] for a secured frame. Every security level of IEEE
//! 802.15.4 is read, and the nonce of TSCH, which holds the slot number in the place of a
//! counter. What is tried is bounded: the keys, and for a sender with a short address the
//! extended ones heard in its PAN. Source: IEEE 802.15.4-2006 §7.6.3.2, annex B; 2015 §9.3.3.2
//! for TSCH.

use motet::mac::security::{BLOCK_LEN, Block, Cipher, KEY_LEN, LinkKey, Software};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::Address;

use crate::addresses::{Addresses, Extended};

/// Keys of links, with the key index of the frames that they are for.
#[derive(Default)]
pub(super) struct RawKeys {
    keys: Vec<RawKey>,
    /// Attempts left that may fail at senders whose extended address is unknown.
    patience: u32,
}

struct RawKey {
    bytes: [u8; KEY_LEN],
    cipher: Software,
    /// `None`: for all frames.
    index: Option<u8>,
}

/// A secured frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSealed<'a> {
    /// The sender, as the frame names it.
    pub(super) sender: Address,
    /// The security level, 1 to 7.
    pub(super) level: u8,
    /// The frame counter, or the slot number of TSCH.
    pub(super) counter: Counter,
    /// The key index; `None` in implicit mode.
    pub(super) key_index: Option<u8>,
    /// All that is in clear before the payload.
    pub(super) header: &'a [u8],
    /// The payload with the MIC behind it.
    pub(super) body: &'a [u8],
}

/// What keeps nonces apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    Frame(u32),
    /// The absolute slot number of TSCH, of which 40 bits count.
    Slot(u64),
}

impl RawKeys {
    /// Adds a key; without an index it is for all frames.
    pub(super) fn add(&mut self, bytes: [u8; KEY_LEN], index: Option<u8>) {
        self.patience = PATIENCE;
        self.keys.push(RawKey {
            bytes,
            cipher: Software::new(&LinkKey::new(bytes)),
            index,
        });
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys' bytes, which are not to be shown.
    pub(super) fn secrets(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.keys.iter().map(|key| key.bytes.to_vec())
    }

    /// As for the begin of a capture.
    pub(super) fn rewound(mut self) -> Self {
        self.patience = PATIENCE;
        self
    }

    /// The sender's extended address and the payload in clear of a frame.
    ///
    /// # Errors
    /// Why it stays closed, in words.
    pub(super) fn open(
        &mut self,
        addresses: &mut Addresses,
        sealed: RawSealed<'_>,
    ) -> Result<(Extended, Vec<u8>), &'static str> {
        let is_meant = |key: &RawKey| match (key.index, sealed.key_index) {
            (Some(index), Some(of)) => index == of,
            _ => true,
        };
        if !self.keys.iter().any(is_meant) {
            return Err("the payload is encrypted, and its key index is of another key");
        }
        let attempt = |source: Extended| {
            let mut keys = self.keys.iter().filter(|key| is_meant(key));
            keys.find_map(|key| Some((source, opened(&key.cipher, source, sealed)?)))
        };
        let Address { pan_id, addr } = sealed.sender;
        let short = match addr {
            LinkAddr::Extended(source) => return attempt(source).ok_or(WRONG_KEY),
            LinkAddr::Short(short) => short,
            // No frame of 802.15.4 has such an address.
            LinkAddr::Device(_) => return Err(WRONG_KEY),
        };
        if let Some(found) = addresses.of_short(pan_id, short).and_then(&attempt) {
            return Ok(found);
        }
        // Without a MIC any address seems to open it.
        if sealed.level & 3 == 0 {
            return Err(UNKNOWN_SENDER);
        }
        let mut tried = 0;
        let candidates: Vec<Extended> = addresses.heard(pan_id).collect();
        let candidates = candidates.into_iter().take(self.patience as usize);
        let found = candidates.inspect(|_| tried += 1).find_map(attempt);
        match found {
            Some(found) => {
                self.patience = PATIENCE;
                addresses.learn(pan_id, short, found.0);
                Ok(found)
            }
            None => {
                self.patience = self.patience.saturating_sub(tried);
                Err(UNKNOWN_SENDER)
            }
        }
    }
}

impl std::fmt::Debug for RawKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawKeys(..)")
    }
}

/// The payload in clear, if the frame is from `source` and of this key. At level 4, which has no
/// MIC, nothing shows whether it is.
fn opened(cipher: &Software, source: Extended, sealed: RawSealed<'_>) -> Option<Vec<u8>> {
    let mic_len = mic_len(sealed.level);
    let body_len = sealed.body.len().checked_sub(mic_len)?;
    let (body, mic) = sealed.body.split_at_checked(body_len)?;
    let nonce = nonce(source, sealed.counter, sealed.level);
    let is_encrypted = sealed.level & 4 != 0;
    let mut payload = body.to_vec();
    if is_encrypted {
        for (at, chunk) in (1..).zip(payload.chunks_mut(BLOCK_LEN)) {
            apply(chunk, &block(cipher, counter_block(nonce, at)));
        }
    }
    if mic_len > 0 {
        let clear = match is_encrypted {
            true => [sealed.header, &[]],
            false => [sealed.header, &payload],
        };
        let message = if is_encrypted { &payload[..] } else { &[] };
        let mut tag = tag(cipher, nonce, mic_len, &clear.concat(), message);
        apply(&mut tag, &block(cipher, counter_block(nonce, 0)));
        if tag.get(..mic_len)? != mic {
            return None;
        }
    }
    Some(payload)
}

/// Bytes of the MIC at a security level.
pub(super) const fn mic_len(level: u8) -> usize {
    match level & 3 {
        0 => 0,
        level => 2 << level,
    }
}

fn nonce(source: Extended, counter: Counter, level: u8) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    let (address, rest) = nonce.split_at_mut(source.len());
    address.copy_from_slice(&source);
    let number = match counter {
        Counter::Frame(counter) => u64::from(counter) << 8 | u64::from(level),
        Counter::Slot(slot) => slot,
    };
    let [.., a, b, c, d, e] = number.to_be_bytes();
    rest.copy_from_slice(&[a, b, c, d, e]);
    nonce
}

/// CBC-MAC over the header and the message (annex B.4.1).
fn tag(
    cipher: &Software,
    nonce: [u8; NONCE_LEN],
    mic_len: usize,
    header: &[u8],
    message: &[u8],
) -> Block {
    let flags = if header.is_empty() { 0 } else { 0x40 } | ((mic_len as u8 - 2) / 2) << 3 | 1;
    let mut first = counter_block(nonce, message.len() as u16);
    first[0] = flags;
    let mut state = block(cipher, first);
    let len = (header.len() as u16).to_be_bytes();
    let header = [&len, header].concat();
    let parts = [if flags & 0x40 == 0 { &[][..] } else { &header }, message];
    for chunk in parts.iter().flat_map(|part| part.chunks(BLOCK_LEN)) {
        apply(&mut state, chunk);
        state = block(cipher, state);
    }
    state
}

fn counter_block(nonce: [u8; NONCE_LEN], at: u16) -> Block {
    let mut block = [0; BLOCK_LEN];
    let [first, middle @ .., high, low] = &mut block;
    *first = 1;
    *middle = nonce;
    [*high, *low] = at.to_be_bytes();
    block
}

fn block(cipher: &Software, block: Block) -> Block {
    let mut pair = [block, [0; BLOCK_LEN]];
    cipher.encrypt(&mut pair);
    pair[0]
}

fn apply(bytes: &mut [u8], mask: &[u8]) {
    for (byte, mask) in bytes.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

const WRONG_KEY: &str = "the payload is encrypted, and no key opens it";
const UNKNOWN_SENDER: &str = "the payload is encrypted, and no key opens it by an extended address \
                              heard in this PAN";
const NONCE_LEN: usize = 13;
/// Addresses that may be tried in vain in a row.
const PATIENCE: u32 = 4_096;
