//! DNS messages: a question for an IPv6 address, and what may answer it.
//!
//! Place: [`names`](super::names) sends and receives them. Left out: caching (answers are used
//! once), questions over TCP, following aliases by further questions: a resolver that recurses,
//! which is asked for, sends the address of an alias along. Sources: RFC 1035 §4.1, RFC 2308 §2,
//! RFC 3596 §2.

use core::net::Ipv6Addr;

use domain::base::iana::{Class, Opcode, Rcode};
use domain::base::{Message, MessageBuilder, Name, Rtype};
use domain::dep::octseq::Array;
use domain::rdata::Aaaa;

use crate::error::Error;

/// A question: a header, the longest name, type and class.
pub(crate) type Question = Array<{ HEADER_LEN + NAME_LEN_MAX + 4 }>;

/// The meaning of a DNS message for the question that was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Not the answer to this question.
    Foreign,
    /// The first address of the name, or of what the name is an alias of.
    Address(Ipv6Addr),
    /// The name does not exist, or has no address.
    Unknown,
    /// The resolver could not find out, refuses, or cut its answer before the address.
    Failed,
}

/// The question for the address of `host`, numbered `id`.
///
/// # Errors
/// [`Error::Malformed`]: no name of a host (RFC 1035 §2.3.4).
pub(crate) fn question(id: u16, host: &str) -> Result<Question, Error> {
    question_of(id, host).ok_or(Error::Malformed)
}

fn question_of(id: u16, host: &str) -> Option<Question> {
    let name = Name::<Array<NAME_LEN_MAX>>::from_chars(host.chars()).ok()?;
    if name.is_root() {
        return None;
    }
    let mut message = MessageBuilder::from_target(Question::new()).ok()?;
    message.header_mut().set_id(id);
    message.header_mut().set_rd(true);
    let mut questions = message.question();
    questions.push((name, Rtype::AAAA)).ok()?;
    Some(questions.finish())
}

/// Reads `message` as the answer to `question`.
pub(crate) fn read_answer(message: &[u8], question: &Question) -> Answer {
    let messages = Message::from_octets(message)
        .ok()
        .zip(Message::from_octets(question.as_slice()).ok());
    let Some((message, question)) = messages else {
        return Answer::Foreign;
    };
    let header = message.header();
    if !message.is_answer(&question) || header.opcode() != Opcode::QUERY {
        return Answer::Foreign;
    }
    match header.rcode() {
        Rcode::NXDOMAIN => Answer::Unknown,
        Rcode::NOERROR => match first_address(&message) {
            Some(address) => Answer::Address(address),
            None if header.tc() => Answer::Failed,
            None => Answer::Unknown,
        },
        _ => Answer::Failed,
    }
}

/// The first address of the name that was asked for, or of what it is an alias of.
fn first_address(message: &Message<&[u8]>) -> Option<Ipv6Addr> {
    let name = message.canonical_name()?;
    let records = message.answer().ok()?.limit_to::<Aaaa>();
    let mut theirs = records
        .filter_map(Result::ok)
        .filter(|record| record.class() == Class::IN && *record.owner() == name);
    theirs.next().map(|record| record.data().addr())
}

const HEADER_LEN: usize = 12;
/// With its length bytes and the empty label (RFC 1035 §2.3.4).
const NAME_LEN_MAX: usize = 255;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7);
    /// A pointer to the name of the question (RFC 1035 §4.1.4).
    const ASKED: &[u8] = &[0xc0, 12];
    const RESPONSE: u8 = 0x80;
    const TRUNCATED: u8 = 2;

    fn asked(host: &str) -> Question {
        question(0x1234, host).unwrap()
    }

    /// An answer to `question` with these records.
    fn answer(question: &Question, records: &[Vec<u8>]) -> Vec<u8> {
        let mut message = question.as_slice().to_vec();
        message[2] |= RESPONSE;
        message[7] = records.len() as u8;
        message.extend(records.concat());
        message
    }

    /// A record of class IN (RFC 1035 §4.1.3).
    fn record(owner: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
        let fixed = [0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8];
        [owner, &fixed, data].concat()
    }

    fn alias(owner: &[u8], target: &[u8]) -> Vec<u8> {
        record(owner, 5, target)
    }

    fn address(owner: &[u8], last: u16) -> Vec<u8> {
        let mut segments = ADDRESS.segments();
        segments[7] = last;
        record(owner, 28, &Ipv6Addr::from(segments).octets())
    }

    #[test]
    fn a_question_is_what_rfc_1035_says() {
        let expected = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\
            \x04mote\x04home\x00\x00\x1c\x00\x01";
        assert_eq!(asked("mote.home").as_slice(), expected);
        assert_eq!(asked("mote.home.").as_slice(), expected);
    }

    #[test]
    fn what_is_no_name_is_not_asked_for() {
        let long_label = "x".repeat(64);
        let longest = std::format!(
            "{}.{}",
            ["x".repeat(63).as_str(); 3].join("."),
            "y".repeat(61)
        );
        let too_long = std::format!("{longest}y");
        let cases = [
            "",
            ".",
            "a..b",
            ".a",
            long_label.as_str(),
            too_long.as_str(),
        ];
        for host in cases {
            assert!(question(1, host).is_err(), "{host:?}");
        }
        assert_eq!(asked(&longest).len(), HEADER_LEN + NAME_LEN_MAX + 4);
    }

    #[test]
    fn an_address_is_found_behind_an_alias_and_is_of_its_name() {
        let question = asked("mote");
        let cases: [(&[Vec<u8>], Answer); 6] = [
            (
                &[alias(ASKED, b"\x01a\0"), address(b"\x01a\0", 7)],
                Answer::Address(ADDRESS),
            ),
            (
                &[address(b"\x01A\0", 7), alias(ASKED, b"\x01a\0")],
                Answer::Address(ADDRESS),
            ),
            (
                &[address(b"\x01b\0", 9), address(ASKED, 7)],
                Answer::Address(ADDRESS),
            ),
            (&[alias(ASKED, b"\x01a\0")], Answer::Unknown),
            (&[address(b"\x01b\0", 9)], Answer::Unknown),
            (&[alias(ASKED, ASKED)], Answer::Unknown),
        ];
        for (records, expected) in cases {
            let message = answer(&question, records);
            assert_eq!(read_answer(&message, &question), expected, "{records:02x?}");
        }
    }

    #[test]
    fn a_resolver_that_cannot_say_has_not_said_no() {
        let question = asked("mote");
        let with = |flags: u8, code: u8, records: &[Vec<u8>]| {
            let mut message = answer(&question, records);
            message[2] |= flags;
            message[3] |= code;
            read_answer(&message, &question)
        };
        let records = [address(ASKED, 7)];
        assert_eq!(with(0, 0, &[]), Answer::Unknown);
        assert_eq!(with(0, 3, &[]), Answer::Unknown);
        for code in [1, 2, 4, 5, 15] {
            assert_eq!(with(0, code, &[]), Answer::Failed, "code {code}");
            assert_eq!(with(0, code, &records), Answer::Failed, "code {code}");
        }
        assert_eq!(with(TRUNCATED, 0, &[]), Answer::Failed);
        assert_eq!(with(TRUNCATED, 0, &records), Answer::Address(ADDRESS));
    }

    #[test]
    fn the_answer_to_another_question_is_none() {
        let question = asked("mote");
        let good = answer(&question, &[address(ASKED, 7)]);
        for (at, changed) in [(0, 0x13), (2, 0x01), (2, 0x91), (5, 0), (13, b'r'), (18, 1)] {
            let mut wrong = good.clone();
            wrong[at] = changed;
            assert_eq!(read_answer(&wrong, &question), Answer::Foreign, "byte {at}");
        }
        let mut upper = good.clone();
        upper[13] = b'M';
        assert_eq!(read_answer(&upper, &question), Answer::Address(ADDRESS));
    }

    proptest! {
        #[test]
        fn no_message_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), host in "[a-z.]{1,20}") {
            if let Ok(question) = question(7, &host) {
                let _ = read_answer(&bytes, &question);
                let _ = read_answer(&answer(&question, std::slice::from_ref(&bytes)), &question);
                let good = answer(&question, &[address(ASKED, 7)]);
                for len in 0..good.len() {
                    let cut = read_answer(&good[..len], &question);
                    prop_assert_ne!(cut, Answer::Address(ADDRESS), "cut to {} of {}", len, host);
                }
            }
        }
    }
}
