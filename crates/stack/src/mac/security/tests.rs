//! CCM* against RFC 3610's packet vectors and another implementation; keys against Thread's own
//! example; frames against tshark are in `tests/tshark.rs`.

use ::ccm::aead::AeadInOut;
use ::ccm::aead::array::sizes::{U4, U8, U13, U16};
use ::ccm::{Ccm, KeyInit};
use proptest::prelude::*;

use std::format;
use std::vec;
use std::vec::Vec;

use super::ccm::{NONCE_LEN, open, seal};
use super::*;
use crate::wire::cursor::{Reader, Writer};
use crate::wire::ieee802154::ParseError;

const KEY: LinkKey = LinkKey::new([
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
]);

/// RFC 3610 §8: nonce from `first`, bytes 0, 1, 2 … of which the first `header_len` go in clear.
fn packet(first: [u8; 7], header_len: usize, len: usize, tag_len: usize) -> (Vec<u8>, Vec<u8>) {
    let mut nonce = [0; NONCE_LEN];
    nonce[..7].copy_from_slice(&first);
    nonce[7..].copy_from_slice(&[0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5]);
    let mut bytes: Vec<u8> = (0..len as u8).collect();
    let (header, message) = bytes.split_at_mut(header_len);
    let tag = seal(&Software::new(&KEY), &nonce, header, message, tag_len);
    (message.to_vec(), tag[..tag_len].to_vec())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter_map(|digit| (digit as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

#[test]
fn the_packet_vectors_of_rfc_3610_come_out() {
    let (message, tag) = packet([0, 0, 0, 3, 2, 1, 0], 8, 31, 8);
    let expected = "588c979a61c663d2f066d0c2c0f989806d5f6b61dac384";
    assert_eq!(message, bytes(expected));
    assert_eq!(tag, bytes("17e8d12cfdf926e0"));
    // Packet vector 2: a message that ends with a block.
    let (message, tag) = packet([0, 0, 0, 4, 3, 2, 1], 8, 32, 8);
    let expected = "72c91a36e135f8cf291ca894085c87e3cc15c439c9e43a3b";
    assert_eq!(message, bytes(expected));
    assert_eq!(tag, bytes("a091d56e10400916"));
}

/// Thread 1.1's example, which OpenThread's own tests have, too.
#[test]
fn link_keys_are_those_of_thread() {
    let network = NetworkKey::new([
        0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
        0xff,
    ]);
    let expected = bytes("de89c53af382b421e0fde5a9bae3bef0");
    assert_eq!(network.link_key(0).as_bytes()[..], expected[..]);
    assert_ne!(network.link_key(0), network.link_key(1));
}

#[test]
fn an_index_names_the_nearest_sequence() {
    for sequence in (0..300).chain([u32::MAX - 300, u32::MAX]) {
        for ahead in -64_i64..=63 {
            let Ok(meant) = u32::try_from(i64::from(sequence) + ahead) else {
                continue;
            };
            assert_eq!(sequence_of(index(meant), sequence), Some(meant));
        }
    }
    assert_eq!(sequence_of(0, 5), None);
    assert_eq!(sequence_of(129, 5), None);
    assert_eq!(sequence_of(index(u32::MAX), 0), None);
}

#[test]
fn keys_are_not_shown() {
    let shown = format!(
        "{:?} {KEY:?} {:?}",
        NetworkKey::new([7; 16]),
        Software::new(&KEY)
    );
    assert!(!shown.contains('7') && !shown.contains("19"), "{shown}");
}

#[test]
fn auxiliary_headers_are_read_as_they_are_written() {
    for level in Level::ALL {
        let auxiliary = Auxiliary {
            level,
            counter: 0x0102_0304,
            key_index: 128,
        };
        let mut out = [0; Auxiliary::LEN];
        auxiliary.emit(&mut Writer::new(&mut out)).unwrap();
        assert_eq!(out, [8 | level.number(), 4, 3, 2, 1, 128]);
        assert_eq!(Auxiliary::parse(&mut Reader::new(&out)), Ok(auxiliary));
        for len in 0..out.len() {
            let parsed = Auxiliary::parse(&mut Reader::new(&out[..len]));
            assert_eq!(parsed, Err(ParseError::Truncated));
        }
    }
    // Levels that leave out one of the two, other key modes, reserved bits; no key at all.
    for control in (0..=u8::MAX).filter(|control| !(0x0d..=0x0f).contains(control)) {
        let parsed = Auxiliary::parse(&mut Reader::new(&[control, 0, 0, 0, 0, 1]));
        assert_eq!(parsed, Err(ParseError::Security), "{control:#x}");
    }
    let parsed = Auxiliary::parse(&mut Reader::new(&[0x0d, 0, 0, 0, 0, 0]));
    assert_eq!(parsed, Err(ParseError::Security));
}

/// What the crate ccm makes of it: the message and its tag.
fn by_others(
    key: &LinkKey,
    nonce: &[u8; NONCE_LEN],
    header: &[u8],
    message: &[u8],
    tag_len: usize,
) -> (Vec<u8>, Vec<u8>) {
    let mut out = message.to_vec();
    let key = key.as_bytes().into();
    let nonce = nonce.into();
    macro_rules! tag {
        ($len:ty) => {
            Ccm::<::aes::Aes128, $len, U13>::new(key)
                .encrypt_inout_detached(nonce, header, out.as_mut_slice().into())
                .unwrap()
                .to_vec()
        };
    }
    let tag = match tag_len {
        4 => tag!(U4),
        8 => tag!(U8),
        _ => tag!(U16),
    };
    (out, tag)
}

proptest! {
    #[test]
    fn another_implementation_agrees(
        key: [u8; KEY_LEN],
        nonce: [u8; NONCE_LEN],
        header in prop::collection::vec(any::<u8>(), 0..64),
        message in prop::collection::vec(any::<u8>(), 0..128),
        tag_len in prop::sample::select(vec![4, 8, 16]),
        flipped: prop::sample::Index,
    ) {
        let key = LinkKey::new(key);
        let cipher = Software::new(&key);
        let mut sealed = message.clone();
        let tag = seal(&cipher, &nonce, &header, &mut sealed, tag_len);
        let tag = &tag[..tag_len];
        let others = by_others(&key, &nonce, &header, &message, tag_len);
        prop_assert_eq!((&sealed[..], tag), (&others.0[..], &others.1[..]));

        let mut opened = sealed.clone();
        prop_assert_eq!(open(&cipher, &nonce, &header, &mut opened, tag), Ok(()));
        prop_assert_eq!(&opened, &message);
        // One bit of anything: forged, and nothing of it is left to be read.
        let mut all = [&nonce[..], &header, &sealed, tag].concat();
        let at = flipped.index(all.len() * 8);
        all[at / 8] ^= 1 << (at % 8);
        let (nonce, rest) = all.split_at(NONCE_LEN);
        let (header, rest) = rest.split_at(header.len());
        let (sealed, tag) = rest.split_at(sealed.len());
        let mut opened = sealed.to_vec();
        let nonce = nonce.try_into().unwrap();
        prop_assert_eq!(open(&cipher, nonce, header, &mut opened, tag), Err(Forged));
        prop_assert!(opened.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_tag_of_another_length_is_forged(len in 0_usize..=BLOCK_LEN) {
        let cipher = Software::new(&KEY);
        let mut message = [1, 2, 3];
        let tag = seal(&cipher, &[0; NONCE_LEN], b"h", &mut message, 8);
        let opened = open(&cipher, &[0; NONCE_LEN], b"h", &mut message, &tag[..len]);
        prop_assert_eq!(opened.is_ok(), len == 8);
    }
}
