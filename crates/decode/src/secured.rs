//! Frames that are opened with a key.
//!
//! Place: `envelope` calls [`Keys::open`] for a frame that is encrypted; the cipher is the stack's
//! own. A MIC shows which of several keys and addresses is right, so all that may be is tried:
//! the key sequences that a key index can stand for, and for a sender with a short address the
//! extended ones that were heard in its PAN.
//! Left out: keys that a frame names by a source of its own (other than Thread's well-known one),
//! and encrypted information elements.
//! Source: IEEE 802.15.4-2006 §7.5.8; Thread 1.1 §7.1.4 for the keys.

use std::collections::{HashMap, VecDeque};

use motet::mac::security::{self, LinkKey, NetworkKey, Software};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Address, Auxiliary};

use crate::addresses::{Addresses, Extended};

/// The keys by which frames of a network are decrypted.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The network's key, from which those of its links follow.
    pub(super) network: NetworkKey,
    /// Key sequences that are known to be in use, the latest first; never empty.
    sequences: VecDeque<u32>,
    /// The vain attempts that each PAN may still cost.
    patience: HashMap<u16, u32>,
    links: Links,
}

/// An encrypted frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed<'a> {
    /// The sender, as the frame names it.
    pub(super) sender: Address,
    /// Level, counter and key index.
    pub(super) auxiliary: Auxiliary,
    /// All that is in clear before the payload.
    pub(super) header: &'a [u8],
    /// The payload with the MIC behind it.
    pub(super) body: &'a [u8],
}

impl Keys {
    /// The keys that follow from `network`; `sequence` is where the key sequence stands, as far as
    /// is known.
    pub(super) fn new(network: NetworkKey, sequence: u32) -> Self {
        Self {
            network,
            sequences: VecDeque::from([sequence]),
            patience: HashMap::new(),
            links: Links::default(),
        }
    }

    /// Notes a key sequence that is in use.
    pub(super) fn learn(&mut self, sequence: u32) {
        if self.sequences.front() == Some(&sequence) {
            return;
        }
        self.sequences.retain(|known| *known != sequence);
        self.sequences.truncate(SEQUENCES_MAX - 1);
        self.sequences.push_front(sequence);
    }

    /// As for the begin of a capture, with the sequences that are known by now.
    pub(super) fn rewound(mut self) -> Self {
        self.patience.clear();
        self
    }

    /// The sender's extended address, which is learned, and the payload in clear of a frame.
    ///
    /// # Errors
    /// Why it stays closed, in words.
    pub(super) fn open(
        &mut self,
        addresses: &mut Addresses,
        sealed: Sealed<'_>,
    ) -> Result<(Extended, Vec<u8>), &'static str> {
        let Address { pan_id, addr } = sealed.sender;
        let open_from = |keys: &mut Self, source| {
            let payload = keys.open_from(source, sealed)?;
            Some((source, payload))
        };
        match addr {
            LinkAddr::Extended(source) => open_from(self, source).ok_or(WRONG_KEY),
            LinkAddr::Short(short) => {
                let known = addresses.of_short(pan_id, short);
                if let Some(opened) = known.and_then(|source| open_from(self, source)) {
                    return Ok(opened);
                }
                let opened = self.search(addresses, sealed).ok_or(match known {
                    Some(_) => WRONG_KEY,
                    None => UNKNOWN_SENDER,
                })?;
                addresses.learn(pan_id, short, opened.0);
                Ok(opened)
            }
            // No frame of 802.15.4 has such an address.
            LinkAddr::Device(_) => Err(UNKNOWN_SENDER),
        }
    }

    /// Opens a frame from a node with this extended address.
    fn open_from(&mut self, source: Extended, sealed: Sealed<'_>) -> Option<Vec<u8>> {
        let likely = self.likely(sealed.auxiliary.key_index);
        let mut tried = likely.iter();
        if let Some(found) = tried.find_map(|sequence| self.attempt(source, *sequence, sealed)) {
            return Some(found);
        }
        // A capture that begins long after the key sequence did may name it by its index alone.
        let first = u32::from(sealed.auxiliary.key_index.checked_sub(1)?);
        for round in 1..=ROUNDS_MAX {
            let sequence = first + round * INDICES;
            if !self.has_patience(sealed.sender.pan_id) {
                return None;
            }
            if let Some(found) = self.attempt(source, sequence, sealed) {
                return Some(found);
            }
        }
        None
    }

    /// Opens a frame by whatever extended address of its PAN does.
    fn search(&mut self, addresses: &Addresses, sealed: Sealed<'_>) -> Option<(Extended, Vec<u8>)> {
        let likely = self.likely(sealed.auxiliary.key_index);
        for source in addresses.heard(sealed.sender.pan_id) {
            for sequence in &likely {
                if !self.has_patience(sealed.sender.pan_id) {
                    return None;
                }
                if let Some(found) = self.attempt(source, *sequence, sealed) {
                    return Some((source, found));
                }
            }
        }
        None
    }

    /// The sequences that a key index stands for, as far as is known, the likeliest first.
    fn likely(&self, key_index: u8) -> Vec<u32> {
        let mut likely: Vec<u32> = self.sequences.iter().copied().collect();
        likely.retain(|sequence| security::index(*sequence) == key_index);
        let latest = self.sequences.front().copied().unwrap_or(0);
        // The nearest one may be behind the first, where the capture begins late.
        let nearest = security::sequence_of(key_index, latest);
        let first = key_index.checked_sub(1).map(u32::from);
        for sequence in nearest.into_iter().chain(first) {
            if !likely.contains(&sequence) {
                likely.push(sequence);
            }
        }
        likely
    }

    /// The payload in clear, if the frame is from `source` and of this sequence.
    fn attempt(&mut self, source: Extended, sequence: u32, sealed: Sealed<'_>) -> Option<Vec<u8>> {
        let cipher = self.links.of(&self.network, sequence);
        let payload = opened(cipher, source, sealed)?;
        self.patience.remove(&sealed.sender.pan_id);
        self.learn(sequence);
        Some(payload)
    }

    /// Whether one more attempt may fail.
    fn has_patience(&mut self, pan_id: u16) -> bool {
        let left = self.patience.entry(pan_id).or_insert(PATIENCE);
        *left = left.saturating_sub(1);
        *left > 0
    }
}

/// Ciphers that were in use lately, by their sequence; the latest last.
#[derive(Default)]
struct Links(VecDeque<(u32, Software)>);

impl Links {
    fn of(&mut self, network: &NetworkKey, sequence: u32) -> &Software {
        let known = self.0.iter().position(|(of, _)| *of == sequence);
        let known = known.and_then(|at| self.0.remove(at));
        if self.0.len() >= LINKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(known.unwrap_or_else(|| {
            let key = network.link_key(sequence);
            (sequence, Software::new(&key))
        }));
        let last = self.0.len() - 1;
        &self.0[last].1
    }
}

impl Clone for Links {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Links(..)")
    }
}

/// The payload in clear of a frame that is sealed with Thread's well-known key, which is no secret:
/// announcements of another channel are, since their receivers may have missed a change of keys.
pub(super) fn open_well_known(sealed: Sealed<'_>) -> Option<Vec<u8>> {
    let cipher = Software::new(&LinkKey::new(WELL_KNOWN_KEY));
    opened(&cipher, WELL_KNOWN_SENDER, sealed)
}

fn opened(cipher: &Software, source: Extended, sealed: Sealed<'_>) -> Option<Vec<u8>> {
    let mut body = sealed.body.to_vec();
    let payload = security::open(cipher, source, sealed.auxiliary, sealed.header, &mut body);
    payload.ok().map(|payload| payload.to_vec())
}

const WRONG_KEY: &str = "the payload is encrypted, and the key does not open it";
const UNKNOWN_SENDER: &str = "the payload is encrypted, and the key opens it by no extended address \
                              heard in this PAN";

/// How many sequences in a row have indices of their own.
const INDICES: u32 = 128;
/// Sequences with one index that are tried, of which nothing is known: with a rotation each 28 days
/// (Thread's default) that is more than a lifetime.
const ROUNDS_MAX: u32 = 16;
/// Sequences remembered.
const SEQUENCES_MAX: usize = 8;
/// Ciphers kept; each has 176 bytes.
const LINKS_MAX: usize = 32;
/// Attempts that may fail in one PAN in a row, beyond those with what is known; some 50 ms.
const PATIENCE: u32 = 4_096;

/// Thread's key of key identifier mode 2, as in OpenThread's `Mac::kMode2Key`.
const WELL_KNOWN_KEY: [u8; 16] = [
    0x78, 0x58, 0x16, 0x86, 0xfd, 0xb4, 0x58, 0x0f, 0xb0, 0x92, 0x54, 0x6a, 0xec, 0xbd, 0x15, 0x66,
];
/// The extended address in its nonces, whoever sends (`Mac::kMode2ExtAddress`).
const WELL_KNOWN_SENDER: Extended = [0x35, 0x06, 0xfe, 0xb8, 0x23, 0xd4, 0x87, 0x12];
