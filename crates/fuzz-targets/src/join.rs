//! A pledge and its registrar (JRC), and an unreliable, hostile network between them.
//!
//! The input is a program: requests, answers and announcements, delivered in any order, again,
//! changed, or as any bytes; and correctly sealed OSCORE messages whose plaintext is arbitrary, so
//! that the parsers behind the tag (options, CBOR) get arbitrary bytes. OSCORE is implemented here
//! a second time, from RFC 8613, with foreign crates for AES-CCM and HKDF. Invariants: nothing is
//! accepted that was not sealed; an answer is accepted once, and so is a request; the sequence of
//! announcements never goes back, and each accepted announcement is confirmed.

use aes::Aes128;
use ccm::aead::AeadInOut;
use ccm::aead::array::sizes::{U8, U13};
use ccm::{Ccm, KeyInit};
use hkdf::Hkdf;
use motet::join::{
    Configuration, DATAGRAM_LEN_MAX, JoinError, JoinKey, Pledge, Request, announce, confirming,
    hear, is_confirmed,
};
use motet::mac::security::{KEY_LEN, NetworkKey};
use sha2::Sha256;

use crate::input::Input;

/// Runs a pledge and its registrar through a program.
pub(crate) fn run(bytes: &[u8]) {
    let _reached = reach(bytes);
}

/// Counts of a program: answers that a pledge took, announcements that it took, requests that were
/// answered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Reached {
    answers: u32,
    announcements: u32,
    requests: u32,
}

fn reach(bytes: &[u8]) -> Reached {
    let mut input = Input::new(bytes);
    let first = input.u32();
    let mut world = World {
        pledge: Pledge::new(&KEY, EUI64, first),
        oracle: Oracle::new(),
        asked: None,
        requests: Vec::new(),
        answers: Vec::new(),
        announcements: Vec::new(),
        last: None,
        number: 0,
        heard: None,
        sealed: Vec::new(),
        reached: Reached::default(),
    };
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.reached
}

struct World {
    pledge: Pledge,
    oracle: Oracle,
    /// The number of the request that may still be answered.
    asked: Option<u32>,
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
    announcements: Vec<(u32, Vec<u8>)>,
    /// The number of the last request that the registrar has answered.
    last: Option<u32>,
    /// The next number of its announcements.
    number: u32,
    /// The number of the last announcement that the pledge has believed.
    heard: Option<u32>,
    /// Every configuration that was ever sealed for the pledge.
    sealed: Vec<Configuration>,
    reached: Reached,
}

impl World {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        match op & 7 {
            0 => self.ask(),
            1 => {
                if let Some(mut request) = picked(&self.requests, input.u8()) {
                    change(&mut request, op & 8 != 0, input);
                    self.answer(&request, configuration(input));
                }
            }
            2 => {
                if let Some(mut answer) = picked(&self.answers, input.u8()) {
                    change(&mut answer, op & 8 != 0, input);
                    self.take_answer(&answer, false);
                }
            }
            3 => {
                let number = (op & 8 != 0).then(|| input.u16().into());
                let asked = self.asked.unwrap_or_default();
                let answer = self.oracle.answer(asked, number, input.block());
                self.take_answer(&answer, true);
            }
            4 => {
                let number = u32::from(input.u16()) << (op >> 3 & 16);
                let request = self.oracle.request(number, input.block());
                self.answer(&request, configuration(input));
            }
            5 => self.announce(configuration(input)),
            6 => {
                if op & 8 != 0 {
                    let number = u32::from(input.u16());
                    let announcement = self.oracle.announcement(number, input.block());
                    self.take_announcement(&announcement, (Some(number), true), true);
                } else if let Some((number, mut datagram)) = picked(&self.announcements, input.u8())
                {
                    let is_changed = op & 16 != 0;
                    change(&mut datagram, is_changed, input);
                    self.take_announcement(&datagram, (Some(number), !is_changed), false);
                }
            }
            _ => {
                let any = input.block();
                self.take_answer(any, false);
                self.take_announcement(any, (None, false), false);
                self.answer(any, configuration(input));
                let _whose = confirming(any);
                assert!(!is_confirmed(&KEY, EUI64, self.number, any), "by nobody");
            }
        }
    }

    fn ask(&mut self) {
        let mut out = [0; DATAGRAM_LEN_MAX];
        let number = self.pledge.next_sequence();
        let asked = self.pledge.ask(&Request { pan: 0xcafe }, &mut out);
        assert_eq!(asked.is_none(), number == u32::MAX, "it asks while it can");
        let Some(len) = asked else {
            return;
        };
        assert_eq!(self.pledge.next_sequence(), number + 1, "a number again");
        self.asked = Some(number);
        self.requests.push(out[..len].to_vec());
    }

    /// The registrar hears a request.
    fn answer(&mut self, request: &[u8], given: Configuration) {
        let Ok(heard) = hear(request) else {
            return;
        };
        let mut out = [0; DATAGRAM_LEN_MAX];
        let key = match heard.eui64 == EUI64 {
            true => KEY,
            false => JoinKey::of_secret(b"of others", heard.eui64),
        };
        let answered = heard.answer(&key, self.last, |_| Ok(given), &mut out);
        let Ok(len) = answered else {
            return;
        };
        assert_eq!(heard.eui64, EUI64, "nobody else has asked");
        let number = heard.sequence();
        assert!(self.last.is_none_or(|last| number > last), "answered twice");
        self.last = Some(number);
        self.sealed.push(given);
        self.answers.push(out[..len].to_vec());
        self.reached.requests += 1;
    }

    /// Delivers an answer to the pledge. `is_sealed`: it was sealed with the right key, whatever
    /// its contents.
    fn take_answer(&mut self, datagram: &[u8], is_sealed: bool) {
        match self.pledge.on_answer(datagram) {
            Ok(given) => {
                assert!(self.asked.take().is_some(), "nothing was asked");
                self.believe(given, is_sealed);
                self.reached.answers += 1;
            }
            Err(JoinError::Refused(_)) => self.asked = None,
            Err(JoinError::NotAsked | JoinError::Forged) => {}
            // The error may come before or after the tag was verified. Only an answer whose tag was
            // right uses up the request.
            Err(JoinError::Malformed | JoinError::Replayed) => {
                if is_sealed {
                    self.asked = None;
                }
            }
        }
    }

    fn announce(&mut self, given: Configuration) {
        let mut out = [0; DATAGRAM_LEN_MAX];
        let len = announce(&KEY, EUI64, self.number, &given, &mut out).expect("it fits");
        self.sealed.push(given);
        self.announcements.push((self.number, out[..len].to_vec()));
        self.number += 1;
    }

    /// The pledge hears an announcement; `number`: of the one that it is, or was before it was
    /// changed.
    fn take_announcement(
        &mut self,
        datagram: &[u8],
        (number, is_whole): (Option<u32>, bool),
        is_sealed: bool,
    ) {
        let mut out = [0; DATAGRAM_LEN_MAX];
        let taken = self.pledge.on_announcement(datagram, &mut out);
        if let Some(number) = number.filter(|_| is_whole && !is_sealed) {
            let is_new = self.heard.is_none_or(|heard| number >= heard);
            assert_eq!(taken.is_ok(), is_new, "announcements never go back");
        }
        let Ok((given, len)) = taken else {
            return;
        };
        self.believe(given, is_sealed);
        self.reached.announcements += 1;
        if let Some(number) = number {
            // Type, code and token of a message are not protected.
            if is_whole {
                assert!(is_confirmed(&KEY, EUI64, number, &out[..len]), "a receipt");
            }
            assert!(!is_confirmed(&KEY, EUI64, number ^ 1, &out[..len]));
            assert!(self.heard.is_none_or(|heard| number >= heard), "back");
            self.heard = Some(number);
        }
    }

    fn believe(&mut self, given: Configuration, is_sealed: bool) {
        match is_sealed {
            true => self.sealed.push(given),
            false => assert!(self.sealed.contains(&given), "nobody has sealed that"),
        }
    }
}

/// One of several, if there is any.
fn picked<T: Clone>(all: &[T], pick: u8) -> Option<T> {
    all.get(usize::from(pick) % all.len().max(1)).cloned()
}

/// Changes a byte of a datagram.
fn change(datagram: &mut [u8], is_wanted: bool, input: &mut Input<'_>) {
    if is_wanted {
        let at = usize::from(input.u8()) % datagram.len();
        datagram[at] ^= input.u8() | 1;
    }
}

fn configuration(input: &mut Input<'_>) -> Configuration {
    Configuration {
        network: NetworkKey::new([input.u8(); KEY_LEN]),
        sequence: u32::from(input.u8()),
    }
}

/// OSCORE between the pledge and its registrar, by RFC 8613 and nothing of `motet`.
struct Oracle {
    /// The OSCORE sender keys: of the pledge, and of the registrar.
    pledge: [u8; KEY_LEN],
    registrar: [u8; KEY_LEN],
    common_iv: [u8; 13],
}

impl Oracle {
    fn new() -> Self {
        Self {
            pledge: derived(PLEDGE, "Key"),
            registrar: derived(REGISTRAR, "Key"),
            common_iv: derived(&[], "IV"),
        }
    }

    /// A request of the pledge, of that number.
    fn request(&self, number: u32, text: &[u8]) -> Vec<u8> {
        let partial = partial(number);
        let flags = partial.len() as u8 | 0x08 | 0x10;
        let option = [&[flags][..], &partial, &[8], &EUI64].concat();
        let of = (PLEDGE, &partial[..]);
        let sealed = self.sealed(&self.pledge, of, of, text);
        message(2, &number.to_be_bytes(), &option, &sealed)
    }

    /// An answer to a request of the pledge, with a number of its own if it has one.
    fn answer(&self, asked: u32, number: Option<u32>, text: &[u8]) -> Vec<u8> {
        let asked_partial = partial(asked);
        let request = (PLEDGE, &asked_partial[..]);
        let own = number.map(partial);
        let (option, of) = match &own {
            Some(own) => (
                [&[own.len() as u8][..], own].concat(),
                (REGISTRAR, &own[..]),
            ),
            None => (Vec::new(), request),
        };
        let sealed = self.sealed(&self.registrar, request, of, text);
        message(0x44, &asked.to_be_bytes(), &option, &sealed)
    }

    /// A message of the registrar's own, of that number.
    fn announcement(&self, number: u32, text: &[u8]) -> Vec<u8> {
        let partial = partial(number);
        let option = [&[partial.len() as u8 | 0x08][..], &partial, REGISTRAR].concat();
        let of = (REGISTRAR, &partial[..]);
        let sealed = self.sealed(&self.registrar, of, of, text);
        message(2, &EUI64, &option, &sealed)
    }

    /// The text, encrypted, with its tag; `request` and `own`: identifier and partial IV of the
    /// request and of the message itself.
    fn sealed(
        &self,
        key: &[u8; KEY_LEN],
        request: (&[u8], &[u8]),
        (id, partial): (&[u8], &[u8]),
        text: &[u8],
    ) -> Vec<u8> {
        let mut nonce = [0; 13];
        nonce[0] = id.len() as u8;
        nonce[8 - id.len()..8].copy_from_slice(id);
        nonce[13 - partial.len()..].copy_from_slice(partial);
        for (byte, iv) in nonce.iter_mut().zip(self.common_iv) {
            *byte ^= iv;
        }
        let (id, partial) = request;
        let external = [
            &[0x85, 1, 0x81, 10][..],
            &string(id),
            &string(partial),
            &[0x40],
        ]
        .concat();
        let aad = [&[0x83, 0x68][..], b"Encrypt0", &[0x40], &string(&external)].concat();
        let mut out = text[..text.len().min(TEXT_LEN_MAX)].to_vec();
        let tag = Ccm::<Aes128, U8, U13>::new(key.into())
            .encrypt_inout_detached((&nonce).into(), &aad, out.as_mut_slice().into())
            .expect("a short text");
        out.extend(tag);
        out
    }
}

/// Key material of the side called `id` (RFC 8613 §3.2.1).
fn derived<const N: usize>(id: &[u8], what: &str) -> [u8; N] {
    let (kind, len) = (0x60 | what.len() as u8, N as u8);
    let info = [
        &[0x85][..],
        &string(id),
        &string(&EUI64),
        &[10, kind],
        what.as_bytes(),
        &[len],
    ];
    let mut out = [0; N];
    let hkdf = Hkdf::<Sha256>::new(Some(&[]), KEY.as_bytes());
    let expanded = hkdf.expand(&info.concat(), &mut out);
    expanded.expect("short key material");
    out
}

/// A byte string of CBOR, of fewer than 24 bytes.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&[0x40 | bytes.len() as u8][..], bytes].concat()
}

/// A sequence number without its leading zeros.
fn partial(number: u32) -> Vec<u8> {
    let zeros = (number.leading_zeros() as usize / 8).min(3);
    number.to_be_bytes()[zeros..].to_vec()
}

/// A message of CoAP with an OSCORE option.
fn message(code: u8, token: &[u8], option: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = option.len() as u8;
    let begin = [0x50 | token.len() as u8, code, 0, 1];
    let option_begin = match len.checked_sub(13) {
        Some(more) => vec![0x9d, more],
        None => vec![0x90 | len],
    };
    [&begin[..], token, &option_begin, option, &[0xff], payload].concat()
}

const KEY: JoinKey = JoinKey::new([9; KEY_LEN]);
const EUI64: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 7];
const PLEDGE: &[u8] = b"";
const REGISTRAR: &[u8] = b"JRC";

/// So that the message with its tag fits a datagram.
const TEXT_LEN_MAX: usize = 80;

/// A request, its answer, and both once more; announcements in two orders; plaintexts that are
/// right, and plaintexts that are not.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let zero = [0; 4];
    let program = |steps: &[&[u8]]| [&zero[..], &steps.concat()].concat();
    let key = [7; KEY_LEN];
    // Code, then (of a request) the path, the marker, a map of the keys or of the PAN.
    let given = [
        &[0xff, 0xa1, 2, 0x83, 1, 0x50][..],
        &key,
        &[0x44, 0, 0, 0, 0],
    ]
    .concat();
    let asking = [2, 0xb1, b'j', 0xff, 0xa1, 5, 0x42, 0xca, 0xfe];
    let answer = [&[0x44][..], &given].concat();
    let announcement = [&[2, 0xb1, b'j'][..], &given].concat();
    let block = |text: &[u8]| [&[text.len() as u8][..], text].concat();
    vec![
        program(&[&[0, 1, 0, 3, 4, 2, 0, 2, 0, 1, 0, 3, 4]]),
        program(&[&[0, 9, 0, 20, 1, 3, 4, 1, 0, 3, 4, 10, 0, 30, 1]]),
        program(&[&[5, 1, 1, 5, 2, 2, 6, 1, 6, 0, 6, 1, 0x16, 1, 15, 1]]),
        program(&[&[0, 3], &block(&answer), &[0, 11, 0, 5], &block(&answer)]),
        program(&[
            &[4, 0, 9],
            &block(&asking),
            &[1, 2],
            &[4, 0, 8],
            &block(&asking),
        ]),
        program(&[
            &[14, 0, 5],
            &block(&announcement),
            &[14, 0, 4],
            &block(&announcement),
        ]),
        program(&[&[7, 12, 0x52, 2, 0, 1, 0, 0, 0x91, 0, 0xff, 1, 2, 3, 4, 5]]),
        [&[0xff, 0xff, 0xff, 0xfe][..], &[0, 0, 1, 0, 3, 4, 2, 0]].concat(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that stops at the door proves nothing: what the oracle seals is believed, too.
    #[test]
    fn the_seeds_come_behind_the_tag() {
        let reached: Vec<_> = seeds().iter().map(|seed| reach(seed)).collect();
        let counts = |answers, announcements, requests| Reached {
            answers,
            announcements,
            requests,
        };
        assert_eq!(
            reached,
            [
                counts(1, 0, 1),
                counts(0, 0, 1),
                counts(0, 2, 0),
                counts(2, 0, 0),
                counts(0, 0, 1),
                counts(0, 1, 0),
                counts(0, 0, 0),
                counts(1, 0, 1),
            ]
        );
    }
}
