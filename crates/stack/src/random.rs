//! Seeded randomness: SipHash as a keyed pseudo-random function.
//!
//! Purpose: unpredictable ISNs, ports, tags and identifiers, and backoffs that differ from
//! node to node, from one injected 128-bit seed. SipHash-2-4 in counter mode serves as the
//! generator, so a device carries one primitive for both jobs.
//! Left out: entropy. The driver provides the seed: a TRNG in a device, a number in the lab.
//! Sources: Aumasson and Bernstein, SipHash (2012); RFC 6528 §3 for the keyed hash.

use crate::time::Duration;

/// A deterministic generator; the same seed gives the same sequence on every platform.
#[derive(Clone, Debug)]
pub struct Rng {
    key: (u64, u64),
    counter: u64,
}

impl Rng {
    /// A generator keyed with 128 bits. An attacker that knows the seed knows every later value.
    pub fn from_seed(seed: [u64; 2]) -> Self {
        let [a, b] = seed;
        Self {
            key: (a, b),
            counter: 0,
        }
    }

    /// Makes this generator its owner's own: `id` is a number that no other node has, such as
    /// its EUI-64. Nodes that were given one seed, as copies of an image may be, then draw
    /// nothing in common. It adds no secrecy: link addresses are known.
    pub(crate) fn personalize(&mut self, id: u64) {
        let word = |part: u64| sip_hash(self.key, &[&[id.to_le_bytes(), part.to_le_bytes()]]);
        self.key = (word(self.counter), word(!self.counter));
    }

    /// The next 64 bits of the generator.
    pub fn next_u64(&mut self) -> u64 {
        let value = sip_hash(self.key, &[&[self.counter.to_le_bytes()]]);
        self.counter = self.counter.wrapping_add(1);
        value
    }

    /// Skips the next `count` draws of 64 bits, as if their values had been used.
    pub fn skip(&mut self, count: u64) {
        self.counter = self.counter.wrapping_add(count);
    }

    /// The next 32 bits of the generator, taken from one 64-bit number.
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

    /// A [`KeyedHash`] with a random key of 128 bits.
    pub(crate) fn keyed_hash(&mut self) -> KeyedHash {
        KeyedHash {
            key: (self.next_u64(), self.next_u64()),
        }
    }
}

/// A keyed hash (SipHash-2-4) whose key never leaves this value.
#[derive(Clone, Debug)]
pub(crate) struct KeyedHash {
    key: (u64, u64),
}

impl KeyedHash {
    /// Without a secret: for an owner that has nothing to hash.
    #[cfg(feature = "tcp-small")]
    pub(crate) const UNKEYED: Self = Self { key: (0, 0) };

    /// Hashes eight bytes after eight bytes, parts in order.
    pub(crate) fn hash(&self, parts: &[&[[u8; 8]]]) -> u64 {
        sip_hash(self.key, parts)
    }
}

/// SipHash-2-4 of whole words. A hasher of any bytes, as the crate `siphasher` has, takes 700 bytes
/// more of a Cortex-M4's flash.
fn sip_hash((low, high): (u64, u64), parts: &[&[[u8; 8]]]) -> u64 {
    let mut state = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    // The last word is the message's length: its lowest byte, in the highest.
    let mut end: u64 = 0;
    for part in parts {
        for word in *part {
            mix(&mut state, u64::from_le_bytes(*word), 2);
            end = end.wrapping_add(8 << 56);
        }
    }
    mix(&mut state, end, 2);
    state[2] ^= 0xff;
    mix(&mut state, 0, 4);
    state.into_iter().fold(0, |hash, word| hash ^ word)
}

/// Takes a word into SipHash's state, by so many rounds.
#[inline(never)]
fn mix(state: &mut [u64; 4], word: u64, rounds: u32) {
    let [mut a, mut b, mut c, mut d] = *state;
    d ^= word;
    for _ in 0..rounds {
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32);
        a = a.wrapping_add(d);
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        c = c.rotate_left(32);
    }
    *state = [a ^ word, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::{Duration, Rng, sip_hash};
    use proptest::prelude::*;
    use siphasher::sip::SipHasher24;
    use std::vec::Vec;

    #[test]
    fn values_are_sip_hashes_of_a_counter() {
        // Key 00 01 .. 0f, messages of eight bytes: vectors_sip64[8] of the reference code is
        // of 00 01 .. 07; here the messages are the counter, least significant byte first.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let counter = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
        let mut rng = Rng {
            key: key.into(),
            counter,
        };
        assert_eq!(rng.next_u64(), 0x93f5_f579_9a93_2462);
        assert_eq!(rng.counter, counter + 1);
    }

    #[test]
    fn longer_messages_have_the_hashes_of_the_reference() {
        // vectors_sip64[0, 16, 24, 48] of the reference code: messages 00 01 .. of that many bytes.
        let key = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let bytes: [u8; 48] = core::array::from_fn(|place| place as u8);
        for (len, hash) in [
            (0, 0x726f_db47_dd0e_0e31),
            (16, 0x3f2a_cc7f_57c2_9bdb),
            (24, 0xb8ad_50c6_f649_af94),
            (48, 0xe612_a3cb_9ecb_a951),
        ] {
            let (words, rest) = bytes[..len].as_chunks();
            assert!(rest.is_empty());
            // However it is parted.
            let (first, second) = words.split_at(words.len() / 2);
            assert_eq!(sip_hash(key, &[first, second]), hash);
        }
    }

    #[test]
    fn derived_generators_and_hashes_differ() {
        let mut rng = Rng::from_seed([1, 2]);
        let mut streams = [rng.derive(), rng.derive(), rng];
        let [a, b, c] = streams.each_mut().map(Rng::next_u64);
        assert!(a != b && b != c && a != c);
        let mut rng = Rng::from_seed([1, 2]);
        let words = [*b"12345678"];
        let [a, b] = [rng.keyed_hash(), rng.keyed_hash()].map(|hash| hash.hash(&[&words]));
        assert_ne!(a, b);
    }

    proptest! {
        #[test]
        fn hashes_are_those_of_the_crate_siphasher(low: u64, high: u64, words: Vec<[u8; 8]>) {
            let theirs = SipHasher24::new_with_keys(low, high).hash(words.as_flattened());
            prop_assert_eq!(sip_hash((low, high), &[&words]), theirs);
        }

        #[test]
        fn stays_below_its_bound(seed: [u64; 2], bound: u32, max in 0u64..u64::from(u32::MAX)) {
            let mut rng = Rng::from_seed(seed);
            prop_assert!(rng.below(bound) < bound.max(1));
            let max = Duration::from_micros(max);
            prop_assert!(rng.uniform(max) <= max);
        }
    }
}
