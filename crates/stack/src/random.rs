//! Seeded randomness: SipHash as a keyed pseudo-random function.
//!
//! Purpose: unpredictable ISNs, ports, tags and identifiers, and backoffs that differ from
//! node to node, from one injected 128-bit seed. SipHash-2-4 in counter mode serves as the
//! generator, so a device carries one primitive for both jobs.
//! Left out: entropy. The driver provides the seed: a TRNG in a device, a number in the lab.
//! Sources: Aumasson and Bernstein, SipHash (2012); RFC 6528 §3 for the keyed hash.

use core::hash::Hasher;
use siphasher::sip::SipHasher24;

use crate::time::Duration;

/// A deterministic generator; the same seed gives the same sequence on every platform.
#[derive(Clone, Debug)]
pub struct Rng {
    key: (u64, u64),
    counter: u64,
}

impl Rng {
    /// A generator keyed with 128 bits. Whoever knows the seed knows every later value.
    pub fn from_seed(seed: [u64; 2]) -> Self {
        let [a, b] = seed;
        Self {
            key: (a, b),
            counter: 0,
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let value = sip_hash(self.key, &[&[self.counter.to_le_bytes()]]);
        self.counter = self.counter.wrapping_add(1);
        value
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number in `0..bound`; 0 when `bound` is 0. Bias below 2^-32 · `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// A span uniform in `[0, max]`, at 1 µs resolution; `max` is cut to 71 minutes.
    pub fn uniform(&mut self, max: Duration) -> Duration {
        let bound = u32::try_from(max.as_micros())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        Duration::from_micros(u64::from(self.below(bound)))
    }

    /// A generator for one named purpose, independent of this one and of its siblings.
    pub fn derive(&mut self) -> Self {
        Self::from_seed([self.next_u64(), self.next_u64()])
    }

    /// A secret for [`KeyedHash`].
    pub fn keyed_hash(&mut self) -> KeyedHash {
        KeyedHash {
            key: (self.next_u64(), self.next_u64()),
        }
    }
}

/// A keyed hash (SipHash-2-4) whose key never leaves this value.
#[derive(Clone, Debug)]
pub struct KeyedHash {
    key: (u64, u64),
}

impl KeyedHash {
    /// Hashes eight bytes after eight bytes, parts in order.
    pub fn hash(&self, parts: &[&[[u8; 8]]]) -> u64 {
        sip_hash(self.key, parts)
    }
}

/// The one use of the hasher, so that its code is there once.
fn sip_hash(key: (u64, u64), parts: &[&[[u8; 8]]]) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(key.0, key.1);
    for part in parts {
        for word in *part {
            hasher.write_u64(u64::from_le_bytes(*word).to_le());
        }
    }
    hasher.finish()
}
