//! OSCORE against the vectors of RFC 8613, appendix C; objects against the example of RFC 9031;
//! both sides against each other, and against damage. Another implementation judges in
//! `cargo xtask interop cojp`.

use proptest::prelude::*;

use std::format;
use std::string::ToString as _;
use std::vec::Vec;

use super::objects::{Configuration, Request};
use super::oscore::{Context, Header, Ids, Number, Partial};
use super::*;
use crate::mac::security::{KEY_LEN, NetworkKey};
use crate::wire::cursor::Writer;

const EUI64: [u8; 8] = [0x02, 0, 0, 0, 0, 0, 0, 7];
const KEY: JoinKey = JoinKey::new([0x11; KEY_LEN]);
const PAN: Request = Request { pan: 0xcafe };
const GIVEN: Configuration = Configuration {
    network: NetworkKey::new([0x77; KEY_LEN]),
    sequence: 300,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// A context of RFC 8613, appendix C.
fn context(sender: &[u8], recipient: &[u8], context: Option<&[u8]>) -> Context {
    let secret = bytes("0102030405060708090a0b0c0d0e0f10");
    let ids = Ids {
        sender,
        recipient,
        context,
    };
    Context::derive(&secret, &bytes("9e7ca92223786340"), ids).unwrap()
}

/// Appendices C.1 and C.3: the nonces tell the common IV and the identifiers.
#[test]
fn nonces_are_those_of_the_vectors() {
    let nonce = |context: &Context, id: &[u8], sequence| {
        let partial = Partial::new(sequence);
        context.nonce(Number { id, partial }).unwrap().to_vec()
    };
    let plain = context(&[], &[1], None);
    assert_eq!(nonce(&plain, &[], 0), bytes("4622d4dd6d944168eefb54987c"));
    assert_eq!(nonce(&plain, &[1], 0), bytes("4722d4dd6d944169eefb54987c"));
    let named = context(&[], &[1], Some(&bytes("37cbf3210017a2d3")));
    assert_eq!(nonce(&named, &[], 0), bytes("2ca58fb85ff1b81c0b7181b85e"));
    assert_eq!(nonce(&named, &[1], 0), bytes("2da58fb85ff1b81d0b7181b85e"));
}

/// Appendices C.4, C.6 and C.7: a GET of "tv1", and "Hello World!".
#[test]
fn messages_are_sealed_and_opened_as_in_the_vectors() {
    let request = Number {
        id: &[],
        partial: Partial::new(20),
    };
    let sealed = |context: &Context, text: &str| {
        let mut text = bytes(text);
        let len = text.len();
        text.extend([0; 8]);
        assert_eq!(context.seal(request, &mut text, len), Some(len + 8));
        text
    };
    let client = context(&[], &[1], None);
    let tv1 = "01b3747631";
    assert_eq!(sealed(&client, tv1), bytes("612f1092f1776f1c1668b3825e"));
    let id_context = bytes("37cbf3210017a2d3");
    let named = context(&[], &[1], Some(&id_context));
    assert_eq!(sealed(&named, tv1), bytes("72cd7273fd331ac45cffbe55c3"));
    let server = context(&[1], &[], None);
    let hello = "45ff48656c6c6f20576f726c6421";
    let mut answer = sealed(&server, hello);
    let expected = bytes("dbaad1e9a7e7b2a813d3c31524378303cdafae119106");
    assert_eq!(answer, expected);
    assert_eq!(client.open(request, request, &mut answer), Some(14));
    assert_eq!(answer[..14], bytes(hello));
    answer = expected;
    answer[3] ^= 1;
    assert_eq!(client.open(request, request, &mut answer), None);
}

/// The options of C.4 and C.6.
#[test]
fn options_are_those_of_the_vectors() {
    let id_context = bytes("37cbf3210017a2d3");
    for (context, expected) in [
        (None, "0914"),
        (Some(&id_context[..]), "19140837cbf3210017a2d3"),
    ] {
        let header = Header {
            partial: Some(Partial::new(20)),
            context,
            id: Some(&[]),
        };
        let mut out = [0; Header::LEN_MAX];
        let mut w = Writer::new(&mut out);
        header.emit(&mut w).unwrap();
        let len = w.written();
        assert_eq!(out[..len], bytes(expected));
        let read = Header::parse(&out[..len]).unwrap();
        assert_eq!((read.context, read.id), (context, Some(&[][..])));
        assert_eq!(read.partial.unwrap().sequence(), Some(20));
    }
    assert!(Header::parse(&[0x20]).is_none(), "a reserved flag");
    assert!(
        Header::parse(&[0x06, 1, 2, 3, 4, 5, 6]).is_none(),
        "a number of 6 bytes"
    );
    assert!(
        Header::parse(&[0x10, 9, 1]).is_none(),
        "a context cut short"
    );
}

/// RFC 9031, appendix A, asks for the network cafe.
#[test]
fn a_request_is_that_of_the_example() {
    let mut out = [0; 16];
    let len = PAN.emit(&mut out).unwrap();
    assert_eq!(out[..len], bytes("a10542cafe"));
    assert_eq!(Request::parse(&out[..len]).unwrap(), PAN);
    // A border router's role, a PAN of three bytes, bytes behind, none, a map without an end.
    for other in [
        "a2010105 42cafe",
        "a10543cafe00",
        "a10542cafe00",
        "a0",
        "bf0542cafeff",
        "",
    ] {
        assert!(
            Request::parse(&bytes(&other.replace(' ', ""))).is_err(),
            "{other}"
        );
    }
}

#[test]
fn a_configuration_has_one_key() {
    let mut out = [0; 64];
    let len = GIVEN.emit(&mut out).unwrap();
    assert_eq!(Configuration::parse(&out[..len]).unwrap(), GIVEN);
    let key = "77".repeat(KEY_LEN);
    // With a usage, and with a short address beside it.
    let with = bytes(&format!("a202 84 18 2d 00 50{key}440000012c 038142af93").replace(' ', ""));
    assert_eq!(Configuration::parse(&with).unwrap(), GIVEN);
    // The example of RFC 9031 has a key without a sequence: not one of ours.
    let other = bytes("a202820150e6bf4287c2d7618d6a9687445ffd33e6038142af93");
    assert!(Configuration::parse(&other).is_err());
    let wrong_index = bytes(&format!("a102830150{key}440000012c"));
    assert!(Configuration::parse(&wrong_index).is_err());
}

fn asked(pledge: &mut Pledge) -> Vec<u8> {
    let mut out = [0; DATAGRAM_LEN_MAX];
    let len = pledge.ask(&PAN, &mut out).unwrap();
    out[..len].to_vec()
}

fn answered(request: &[u8], key: &JoinKey, last: Option<u32>) -> Result<Vec<u8>, JoinError> {
    let mut out = [0; DATAGRAM_LEN_MAX];
    let configure = |request| match request == PAN {
        true => Ok(GIVEN),
        false => Err(0x83),
    };
    let len = hear(request)?.answer(key, last, configure, &mut out)?;
    Ok(out[..len].to_vec())
}

#[test]
fn a_pledge_gets_the_key_of_the_network() {
    let mut pledge = Pledge::new(&KEY, EUI64, 40);
    let request = asked(&mut pledge);
    assert_eq!(pledge.next_sequence(), 41);
    let heard = hear(&request).unwrap();
    assert_eq!((heard.eui64, heard.sequence()), (EUI64, 40));
    let answer = answered(&request, &KEY, Some(39)).unwrap();
    assert!(!answer.windows(8).any(|part| part == [0x77; 8]), "in clear");
    assert_eq!(pledge.on_answer(&answer), Ok(GIVEN));
    assert_eq!(pledge.on_answer(&answer), Err(JoinError::NotAsked));
}

#[test]
fn recordings_and_other_keys_get_nothing() {
    let mut pledge = Pledge::new(&KEY, EUI64, 0);
    let request = asked(&mut pledge);
    assert_eq!(answered(&request, &KEY, Some(0)), Err(JoinError::Replayed));
    let other = JoinKey::of_secret(b"another", EUI64);
    assert_eq!(answered(&request, &other, None), Err(JoinError::Forged));
    let answer = answered(&request, &KEY, None).unwrap();
    let next = asked(&mut pledge);
    assert_eq!(pledge.on_answer(&answer), Err(JoinError::NotAsked));
    // What was an answer to an earlier request is none to this one, even under its token.
    let mut moved = answer.clone();
    moved[4..8].copy_from_slice(&1_u32.to_be_bytes());
    assert_eq!(pledge.on_answer(&moved), Err(JoinError::Forged));
    let answer = answered(&next, &KEY, Some(0)).unwrap();
    assert_eq!(pledge.on_answer(&answer), Ok(GIVEN));
}

#[test]
fn a_registrar_may_say_no() {
    let mut pledge = Pledge::new(&KEY, EUI64, 0);
    let request = asked(&mut pledge);
    let mut out = [0; DATAGRAM_LEN_MAX];
    let no = |_| Err(0x83);
    let len = hear(&request).unwrap().answer(&KEY, None, no, &mut out);
    let refused = pledge.on_answer(&out[..len.unwrap()]);
    assert_eq!(refused, Err(JoinError::Refused(0x83)));
    assert_eq!(refused.unwrap_err().to_string(), "the registrar says 4.03");
}

#[test]
fn numbers_end() {
    let mut pledge = Pledge::new(&KEY, EUI64, u32::MAX);
    assert_eq!(pledge.ask(&PAN, &mut [0; DATAGRAM_LEN_MAX]), None);
    let mut pledge = Pledge::new(&KEY, EUI64, 0);
    assert_eq!(pledge.ask(&PAN, &mut [0; 20]), None);
    assert_eq!(pledge.next_sequence(), 1, "a number is never used again");
}

proptest! {
    #[test]
    fn damage_gives_nothing(at in 0..70_usize, flip in 1..=255_u8) {
        let mut pledge = Pledge::new(&KEY, EUI64, 5);
        let mut request = asked(&mut pledge);
        let answer = answered(&request, &KEY, None).unwrap();
        // Type, identifier and names of hosts are not authenticated: they give the same key, or
        // nothing.
        if let Some(byte) = request.get_mut(at) {
            *byte ^= flip;
        }
        let _ = answered(&request, &KEY, None);
        let mut damaged = answer;
        if let Some(byte) = damaged.get_mut(at) {
            *byte ^= flip;
        }
        if let Ok(configuration) = pledge.on_answer(&damaged) {
            prop_assert_eq!(configuration, GIVEN);
        }
    }

    #[test]
    fn nothing_panics(datagram: Vec<u8>) {
        let mut pledge = Pledge::new(&KEY, EUI64, 0);
        asked(&mut pledge);
        let _ = pledge.on_answer(&datagram);
        let _ = answered(&datagram, &KEY, None);
        let _ = Configuration::parse(&datagram);
        let _ = Request::parse(&datagram);
    }
}

#[test]
fn an_announcement_is_confirmed_once_believed() {
    let mut pledge = Pledge::new(&KEY, EUI64, 0);
    let (mut datagram, mut out) = ([0; DATAGRAM_LEN_MAX], [0; DATAGRAM_LEN_MAX]);
    let len = announce(&KEY, EUI64, 5, &GIVEN, &mut datagram).unwrap();
    let datagram = &datagram[..len];
    let (given, len) = pledge.on_announcement(datagram, &mut out).unwrap();
    assert_eq!(given, GIVEN);
    let answer = &out[..len];
    assert_eq!(confirming(answer), Some(EUI64));
    assert!(is_confirmed(&KEY, EUI64, 5, answer));
    assert!(!is_confirmed(&KEY, EUI64, 6, answer), "of another number");
    assert!(!is_confirmed(&JoinKey::new([1; KEY_LEN]), EUI64, 5, answer));
    assert!(!is_confirmed(&KEY, EUI64, 5, datagram), "it is no answer");

    // The answer was lost: the same bytes come again.
    let mut again = [0; DATAGRAM_LEN_MAX];
    assert_eq!(
        pledge.on_announcement(datagram, &mut again),
        Ok((GIVEN, len))
    );
    assert_eq!(&again[..len], answer);

    let mut earlier = [0; DATAGRAM_LEN_MAX];
    let len = announce(&KEY, EUI64, 4, &GIVEN, &mut earlier).unwrap();
    let replayed = pledge.on_announcement(&earlier[..len], &mut again);
    assert_eq!(replayed, Err(JoinError::Replayed));
    for bit in 0..datagram.len() * 8 {
        let mut bad = datagram.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        // Header, token and the type of the message are CoAP's own, and not protected.
        let is_believed = pledge.on_announcement(&bad, &mut again).is_ok();
        let is_protected = bit / 8 >= 4 + 8;
        assert!(!is_protected || !is_believed, "bit {bit}");
    }
}
