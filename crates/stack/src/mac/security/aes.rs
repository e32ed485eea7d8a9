//! AES-128, encryption alone: two blocks at a time, with no table and no branch on what is secret.
//!
//! ```text
//! word p  = bit p of all 32 bytes
//! its byte r = row r of both blocks; bits 0 to 3 there are the columns of the first block,
//!              bits 4 to 7 those of the second
//! ```
//!
//! In that order a step down the rows is a rotation of the word by 8, and a step along a row
//! rotates four bits. Reading the blocks in as little-endian words, a column each, and exchanging
//! the number of the word for the number of the bit within each byte makes it; the same exchange
//! undoes it. Place: [`super::ccm`] calls it for frames. It is here because every bound of an index
//! is known to the compiler: the crate `aes` can panic for all it knows, and takes twice the flash.
//! Left out: decryption, which CCM* has no use for; keys of 192 and 256 bits. Source: FIPS 197; the
//! circuit of the S-box is Boyar and Peralta's of 113 gates (IACR 2011/332).

use super::ccm::Block;

/// Rounds of AES with a 128-bit key (FIPS 197 §5).
const ROUNDS: usize = 10;

/// The same bit of each byte of two blocks, for each of the eight bits.
type State = [u32; 8];

/// The keys of all rounds, 176 bytes.
///
/// Both blocks have the same key, so a word of a [`State`] would say everything twice. Here its
/// lower halves of bytes belong to one bit, its upper halves to the next one.
#[derive(Clone)]
pub(super) struct Aes128([[u32; 4]; ROUNDS + 1]);

impl Aes128 {
    /// Expands `key` (FIPS 197 §5.2).
    pub(super) fn new(key: &Block) -> Self {
        let mut columns = columns_of(key);
        let mut keys = [[0; 4]; ROUNDS + 1];
        let mut constant = 1;
        for round in &mut keys {
            *round = packed(columns);
            let [a, b, c, d] = &mut columns;
            *a ^= substituted(d.rotate_right(8)) ^ constant;
            *b ^= *a;
            *c ^= *b;
            *d ^= *c;
            constant = doubled(constant);
        }
        Self(keys)
    }

    /// Encrypts two blocks, each by itself (FIPS 197 §5.1).
    pub(super) fn encrypt(&self, [first, second]: &mut [Block; 2]) {
        let [a, b, c, d] = columns_of(first);
        let [e, f, g, h] = columns_of(second);
        let mut state = exchanged([a, b, c, d, e, f, g, h]);
        let [start, middle @ .., last] = &self.0;
        add_key(&mut state, start);
        for key in middle {
            sub_bytes(&mut state);
            shift_rows(&mut state);
            mix_columns(&mut state);
            add_key(&mut state, key);
        }
        sub_bytes(&mut state);
        shift_rows(&mut state);
        add_key(&mut state, last);
        let [a, b, c, d, e, f, g, h] = exchanged(state);
        write(first, [a, b, c, d]);
        write(second, [e, f, g, h]);
    }
}

/// Words of four bytes, the lowest one first.
fn columns_of(block: &Block) -> [u32; 4] {
    let mut columns = [0; 4];
    for (column, bytes) in columns.iter_mut().zip(block.as_chunks().0) {
        *column = u32::from_le_bytes(*bytes);
    }
    columns
}

fn write(block: &mut Block, columns: [u32; 4]) {
    for (bytes, column) in block.as_chunks_mut().0.iter_mut().zip(columns) {
        *bytes = column.to_le_bytes();
    }
}

/// Bit `p` of word `n` becomes bit `n` of word `p`, in each byte of its own.
///
/// Each of three steps exchanges one bit of both numbers, of words side by side, and then moves the
/// words so that those are side by side that the next step exchanges: 210 B less than three steps
/// that name their words.
#[inline(never)]
fn exchanged(mut state: State) -> State {
    for (by, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f)] {
        for [low, high] in state.as_chunks_mut().0 {
            let differs = (*low >> by ^ *high) & mask;
            *high ^= differs;
            *low ^= differs << by;
        }
        let [a, b, c, d, e, f, g, h] = state;
        state = [a, c, e, g, b, d, f, h];
    }
    state
}

/// The key of a round, of its four columns.
fn packed([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    let [a, b, c, d, e, f, g, h] = exchanged([a, b, c, d, 0, 0, 0, 0]);
    [a | b << 4, c | d << 4, e | f << 4, g | h << 4]
}

/// Four bytes through the S-box.
fn substituted(word: u32) -> u32 {
    let mut state = exchanged([word, 0, 0, 0, 0, 0, 0, 0]);
    sub_bytes(&mut state);
    let [word, ..] = exchanged(state);
    word
}

/// A byte times x in GF(2^8).
const fn doubled(byte: u32) -> u32 {
    ((byte << 1) ^ ((byte >> 7) * 0x11b)) & 0xff
}

fn add_key(state: &mut State, key: &[u32; 4]) {
    for (words, packed) in state.as_chunks_mut().0.iter_mut().zip(key) {
        let [even, odd] = words;
        let (low, high) = (packed & 0x0f0f_0f0f, packed & 0xf0f0_f0f0);
        *even ^= low | low << 4;
        *odd ^= high | high >> 4;
    }
}

/// Row r goes back by r columns.
fn shift_rows(state: &mut State) {
    for word in state {
        // Rows 2 and 3 by two columns, then rows 1 and 3 by one.
        let differs = (*word ^ *word >> 2) & 0x3333_0000;
        let x = *word ^ differs ^ differs << 2;
        *word = x & 0x00ff_00ff | x >> 1 & 0x7700_7700 | x << 3 & 0x8800_8800;
    }
}

/// Each byte becomes twice itself, three times the next of its column, and the two after that.
fn mix_columns(state: &mut State) {
    let [.., last] = *state;
    // Of the bit below: what it and the next row make, doubled.
    let carried = last ^ last.rotate_right(8);
    let mut below = carried;
    for (p, word) in state.iter_mut().enumerate() {
        let next = word.rotate_right(8);
        let pair = *word ^ next;
        let mut doubled = below;
        // x^8 is x^4 + x^3 + x + 1.
        if matches!(p, 1 | 3 | 4) {
            doubled ^= carried;
        }
        *word = doubled ^ next ^ pair.rotate_right(16);
        below = pair;
    }
}

/// The S-box, of 32 bytes at a time (FIPS 197 §5.1.1).
#[inline(never)]
fn sub_bytes(state: &mut State) {
    // The circuit counts bits from the highest.
    let [u7, u6, u5, u4, u3, u2, u1, u0] = *state;
    let y14 = u3 ^ u5;
    let y13 = u0 ^ u6;
    let y9 = u0 ^ u3;
    let y8 = u0 ^ u5;
    let t0 = u1 ^ u2;
    let y1 = t0 ^ u7;
    let y4 = y1 ^ u3;
    let y12 = y13 ^ y14;
    let y2 = y1 ^ u0;
    let y5 = y1 ^ u6;
    let y3 = y5 ^ y8;
    let t1 = u4 ^ y12;
    let y15 = t1 ^ u5;
    let y20 = t1 ^ u1;
    let y6 = y15 ^ u7;
    let y10 = y15 ^ t0;
    let y11 = y20 ^ y9;
    let y7 = u7 ^ y11;
    let y17 = y10 ^ y11;
    let y19 = y10 ^ y8;
    let y16 = t0 ^ y11;
    let y21 = y13 ^ y16;
    let y18 = u0 ^ y16;
    let t2 = y12 & y15;
    let t4 = y3 & y6 ^ t2;
    let t6 = y4 & u7 ^ t2;
    let t7 = y13 & y16;
    let t9 = y5 & y1 ^ t7;
    let t11 = y2 & y7 ^ t7;
    let t12 = y9 & y11;
    let t14 = y14 & y17 ^ t12;
    let t16 = y8 & y10 ^ t12;
    let t21 = t4 ^ y20 ^ t14;
    let t22 = t6 ^ t16 ^ y19;
    let t23 = t9 ^ t14 ^ y21;
    let t24 = t11 ^ t16 ^ y18;
    let [t29, t33, t37, t40] = inverse([t21, t22, t23, t24]);
    let t41 = t40 ^ t37;
    let t42 = t29 ^ t33;
    let t43 = t29 ^ t40;
    let t44 = t33 ^ t37;
    let t45 = t42 ^ t41;
    let z0 = t44 & y15;
    let z1 = t37 & y6;
    let z2 = t33 & u7;
    let z3 = t43 & y16;
    let z4 = t40 & y1;
    let z5 = t29 & y7;
    let z6 = t42 & y11;
    let z7 = t45 & y17;
    let z8 = t41 & y10;
    let z9 = t44 & y12;
    let z10 = t37 & y3;
    let z11 = t33 & y4;
    let z12 = t43 & y13;
    let z13 = t40 & y5;
    let z14 = t29 & y2;
    let z15 = t42 & y9;
    let z16 = t45 & y14;
    let z17 = t41 & y8;
    *state = mapped([
        z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, z10, z11, z12, z13, z14, z15, z16, z17,
    ]);
}

/// The inverse in GF(2^4), as the circuit has it.
fn inverse([t21, t22, t23, t24]: [u32; 4]) -> [u32; 4] {
    let t25 = t21 ^ t22;
    let t26 = t21 & t23;
    let t27 = t24 ^ t26;
    let t29 = t25 & t27 ^ t22;
    let t33 = (t22 ^ t26) & (t23 ^ t24) ^ t24;
    let t36 = t24 & (t27 ^ t33);
    let t37 = t36 ^ t23 ^ t33;
    let t40 = t25 ^ t29 & (t27 ^ t36);
    [t29, t33, t37, t40]
}

/// The affine map behind the inverse, of the products that it is made of.
fn mapped(products: [u32; 18]) -> State {
    let [
        z0,
        z1,
        z2,
        z3,
        z4,
        z5,
        z6,
        z7,
        z8,
        z9,
        z10,
        z11,
        z12,
        z13,
        z14,
        z15,
        z16,
        z17,
    ] = products;
    let tc1 = z15 ^ z16;
    let tc2 = z10 ^ tc1;
    let tc3 = z9 ^ tc2;
    let tc4 = z0 ^ z2;
    let tc5 = z1 ^ z0;
    let tc6 = z3 ^ z4;
    let tc7 = z12 ^ tc4;
    let tc8 = z7 ^ tc6;
    let tc9 = z8 ^ tc7;
    let tc10 = tc8 ^ tc9;
    let tc11 = tc6 ^ tc5;
    let tc12 = z3 ^ z5;
    let tc13 = z13 ^ tc1;
    let tc14 = tc4 ^ tc12;
    let tc16 = z6 ^ tc8;
    let tc17 = z14 ^ tc10;
    let tc18 = tc13 ^ tc14;
    let tc20 = z15 ^ tc16;
    let tc21 = tc2 ^ z11;
    let tc26 = tc17 ^ tc20;
    let s3 = tc3 ^ tc11;

    [
        !(z12 ^ tc18),
        !(tc10 ^ tc18),
        tc21 ^ tc17,
        tc14 ^ s3,
        s3,
        !(tc26 ^ z17),
        !(s3 ^ tc16),
        tc3 ^ tc16,
    ]
}

#[cfg(test)]
mod tests {
    use ::aes::cipher::{BlockCipherEncrypt, KeyInit};
    use proptest::prelude::*;

    use super::*;

    /// FIPS 197, appendix C.1 and appendix B.
    #[test]
    fn the_examples_of_fips_197_come_out() {
        let counted = core::array::from_fn(|at| at as u8);
        let mut pair = [core::array::from_fn(|at| (at * 0x11) as u8), [0; 16]];
        Aes128::new(&counted).encrypt(&mut pair);
        assert_eq!(
            u128::from_be_bytes(pair[0]),
            0x69c4e0d86a7b0430d8cdb78070b4c55a
        );
        let key = 0x2b7e151628aed2a6abf7158809cf4f3c_u128.to_be_bytes();
        let plain = 0x3243f6a8885a308d313198a2e0370734_u128.to_be_bytes();
        let mut pair = [[0; 16], plain];
        Aes128::new(&key).encrypt(&mut pair);
        assert_eq!(
            u128::from_be_bytes(pair[1]),
            0x3925841d02dc09fbdc118597196a0b32
        );
    }

    /// The S-box by its definition: the inverse in GF(2^8), then an affine map.
    #[test]
    fn every_byte_goes_through_the_s_box() {
        let times = |a: u32, b: u32| {
            let powers = core::iter::successors(Some(a), |power| Some(doubled(*power)));
            powers
                .zip(0..8)
                .fold(0, |sum, (power, bit)| sum ^ (power * (b >> bit & 1)))
        };
        for byte in 0..=0xff {
            let inverse = (0..=0xff)
                .find(|other| times(byte, *other) == 1)
                .unwrap_or(0);
            let mapped = (0..5).fold(0x63, |sum, by| {
                sum ^ (inverse << by | inverse >> (8 - by)) & 0xff
            });
            assert_eq!(
                substituted(byte * 0x0101_0101),
                mapped * 0x0101_0101,
                "{byte:#x}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_crate_aes_encrypts_alike(key: [u8; 16], first: [u8; 16], second: [u8; 16]) {
            let mut pair = [first, second];
            Aes128::new(&key).encrypt(&mut pair);
            let oracle = ::aes::Aes128::new(&key.into());
            for (block, own) in [first, second].into_iter().zip(pair) {
                let mut block = block.into();
                oracle.encrypt_block(&mut block);
                prop_assert_eq!(&block[..], &own[..]);
            }
        }
    }
}
