//! DNS messages: a question for an IPv6 address, and what may answer it.
//!
//! Place: [`names`](super::names) sends and receives them. Left out: caching (answers are used
//! once), following aliases by further questions: a resolver that recurses, which is asked for,
//! sends the address of an alias along. Sources: RFC 1035 §4.1, RFC 3596 §2.

use core::net::Ipv6Addr;

use crate::error::Error;

/// Room for any question.
pub(crate) const QUESTION_LEN_MAX: usize = HEADER_LEN + NAME_LEN_MAX + 4;

/// What a message is to whoever asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Not the answer to this question.
    Foreign,
    /// The name's first address.
    Address(Ipv6Addr),
    /// The resolver knows no address.
    Unknown,
}

/// Writes the question for the address of `host`, numbered `id`; returns its length.
///
/// # Errors
/// [`Error::Malformed`]: no name of a host (RFC 1035 §2.3.4).
pub(crate) fn write_question(
    id: u16,
    host: &str,
    out: &mut [u8; QUESTION_LEN_MAX],
) -> Result<usize, Error> {
    let [id_high, id_low] = id.to_be_bytes();
    // Recursion desired, one question.
    let header = [id_high, id_low, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let mut message = Message { out, len: 0 };
    message.put(&header)?;
    for label in host.strip_suffix('.').unwrap_or(host).split('.') {
        let is_label = (1..=LABEL_LEN_MAX).contains(&label.len());
        let len = u8::try_from(label.len()).ok().filter(|_| is_label);
        message.put(&[len.ok_or(Error::Malformed)?])?;
        message.put(label.as_bytes())?;
    }
    message.put(&[0])?;
    if message.len > HEADER_LEN + NAME_LEN_MAX {
        return Err(Error::Malformed);
    }
    message.put(&AAAA_IN)?;
    Ok(message.len)
}

/// What `message` says to `question`, which [`write_question`] wrote.
pub(crate) fn read_answer(message: &[u8], question: &[u8]) -> Answer {
    answers(message, question).map_or(Answer::Foreign, |answers| {
        first_address(answers).map_or(Answer::Unknown, Answer::Address)
    })
}

/// The records of an answer, and how many they are said to be; `None`: it is no answer to
/// `question`.
fn answers<'a>(message: &'a [u8], question: &[u8]) -> Option<(&'a [u8], u16)> {
    let (header, rest) = message.split_first_chunk::<HEADER_LEN>()?;
    let (asked, question) = question.split_first_chunk::<HEADER_LEN>()?;
    let [
        id_high,
        id_low,
        flags,
        _,
        questions_high,
        questions_low,
        count_high,
        count_low,
        ..,
    ] = *header;
    let is_ours = [id_high, id_low] == asked[..2];
    let is_response = flags & RESPONSE_AND_OPCODE == RESPONSE;
    let (repeated, records) = rest.split_at_checked(question.len())?;
    let is_question = [questions_high, questions_low] == [0, 1];
    let is_ours = is_ours && is_response && is_question && repeated.eq_ignore_ascii_case(question);
    // An error has no records, whatever the resolver counts.
    is_ours.then_some((records, u16::from_be_bytes([count_high, count_low])))
}

fn first_address((mut records, count): (&[u8], u16)) -> Option<Ipv6Addr> {
    // Each record takes eleven bytes at least: the message bounds the loop.
    for _ in 0..count {
        let fields = after_name(records)?;
        let (fixed, data) = fields.split_first_chunk::<RECORD_LEN>()?;
        let [kind @ .., len_high, len_low] = *fixed;
        let len = usize::from(u16::from_be_bytes([len_high, len_low]));
        let (data, rest) = data.split_at_checked(len)?;
        if kind[..4] == AAAA_IN
            && let Ok(address) = <[u8; 16]>::try_from(data)
        {
            return Some(address.into());
        }
        records = rest;
    }
    None
}

/// What follows a name: labels up to an empty one or to a pointer (RFC 1035 §4.1.4).
fn after_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (&len, rest) = bytes.split_first()?;
        match len {
            0 => return Some(rest),
            len if len & POINTER == POINTER => return rest.get(1..),
            len => bytes = rest.get(usize::from(len)..)?,
        }
    }
}

/// A message being written.
struct Message<'o> {
    out: &'o mut [u8; QUESTION_LEN_MAX],
    len: usize,
}

impl Message<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.len + bytes.len();
        let room = self.out.get_mut(self.len..end).ok_or(Error::Malformed)?;
        room.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

const HEADER_LEN: usize = 12;
/// With its length bytes and the empty label (RFC 1035 §2.3.4).
const NAME_LEN_MAX: usize = 255;
const LABEL_LEN_MAX: usize = 63;
/// Type, class, time to live, length of the data.
const RECORD_LEN: usize = 10;
/// Type 28, class 1.
const AAAA_IN: [u8; 4] = [0, 28, 0, 1];
const RESPONSE: u8 = 0x80;
const RESPONSE_AND_OPCODE: u8 = 0xf8;
const POINTER: u8 = 0xc0;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7);

    fn question(host: &str) -> Vec<u8> {
        let mut out = [0; QUESTION_LEN_MAX];
        let len = write_question(0x1234, host, &mut out).unwrap();
        out[..len].to_vec()
    }

    /// An answer to `question` with these records.
    fn answer(question: &[u8], records: &[&[u8]]) -> Vec<u8> {
        let mut message = question.to_vec();
        message[2] |= RESPONSE;
        message[7] = records.len() as u8;
        message.extend(records.concat());
        message
    }

    fn address_record() -> Vec<u8> {
        let mut record = Vec::from([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
        record.extend(ADDRESS.octets());
        record
    }

    #[test]
    fn a_question_is_what_rfc_1035_says() {
        let expected = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\
            \x04mote\x04home\x00\x00\x1c\x00\x01";
        assert_eq!(question("mote.home"), expected);
        assert_eq!(question("mote.home."), expected);
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
            let mut out = [0; QUESTION_LEN_MAX];
            let written = write_question(1, host, &mut out);
            assert_eq!(written, Err(Error::Malformed), "{host:?}");
        }
        assert_eq!(question(&longest).len(), QUESTION_LEN_MAX);
    }

    #[test]
    fn an_address_is_found_behind_an_alias() {
        let question = question("mote");
        let alias = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x03\x01a\0".as_slice();
        let message = answer(&question, &[alias, &address_record()]);
        assert_eq!(read_answer(&message, &question), Answer::Address(ADDRESS));
        let message = answer(&question, &[alias]);
        assert_eq!(read_answer(&message, &question), Answer::Unknown);
    }

    #[test]
    fn the_answer_to_another_question_is_none() {
        let question = question("mote");
        let good = answer(&question, &[&address_record()]);
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
            let mut out = [0; QUESTION_LEN_MAX];
            if let Ok(len) = write_question(7, &host, &mut out) {
                let question = &out[..len];
                let _ = read_answer(&bytes, question);
                let _ = read_answer(&answer(question, &[&bytes]), question);
                let good = answer(question, &[&address_record()]);
                for len in 0..good.len() {
                    let cut = read_answer(&good[..len], question);
                    prop_assert_ne!(cut, Answer::Address(ADDRESS), "cut to {} of {}", len, String::from(&*host));
                }
            }
        }
    }
}
