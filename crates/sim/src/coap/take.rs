//! A server's side of [`super::push`]: takes blocks, hands bytes on in their order, and answers.
//!
//! Messages come late and again, also long after their body has ended: a client sends a block anew
//! whenever an old answer asks for it. What is known of such a message must begin nothing. A body
//! is named by its client and a Request-Tag (RFC 9175 §3), as Q-Block1 always has one (RFC 9177
//! §4.3). Of Block1 without a tag, a message is recognized as a copy of an earlier one (RFC 7252
//! §4.5), and only a first block that is none begins a body.
//!
//! Memory: blocks of Q-Block1 that came ahead of a missing one wait here, for two sets at most. The
//! last `PAST_MAX` bodies are remembered by their names and first blocks, the last
//! `ANSWERED_MAX` messages of Block1 by their hashes and answers: a lab has room for that, a
//! device would keep those of the last minutes alone.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType, ResponseType};
use motet::Remote;

use super::push::{
    MAX_PAYLOADS, PATH, Q_BLOCK1, REQUEST_TAG, block_option, emit_numbers, value_of,
};

/// A server's state: the body under way, or the one that has ended last, and what is known of those
/// before.
#[derive(Debug, Default)]
pub struct Taker {
    body: Body,
    /// Bodies with a tag before it, the last one last.
    past: VecDeque<Past>,
    /// Messages of Block1, and their answers.
    answered: VecDeque<(Message, Option<Vec<u8>>)>,
}

/// One body.
#[derive(Debug, Default)]
struct Body {
    name: Option<Name>,
    /// What its first block brought, once that has come.
    first: Option<First>,
    /// The next block to hand on.
    next: u32,
    /// Blocks that came too early.
    ahead: BTreeMap<u32, Vec<u8>>,
    /// The number of the last block, once it has come.
    last: Option<u32>,
    /// One more than the highest number that has come.
    seen: u32,
    /// The body is complete: whether it was right.
    ended: Option<bool>,
    /// What the body had brought was forgotten once.
    was_lost: bool,
}

/// The client that sends a body, and the Request-Tag, which Block1 may come without.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Name(Remote, Option<Vec<u8>>);

/// The length of a body (Size1) and its first block. A tag has few bits, and might come again.
#[derive(Clone, PartialEq, Eq, Debug)]
struct First(Option<u32>, Vec<u8>);

/// A body that another one has followed.
#[derive(Debug)]
struct Past {
    name: Name,
    first: Option<First>,
    ended: Option<bool>,
}

/// The sender of a message and a digest of its bytes, which include the message ID and the token: a
/// retransmission has the same ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Message(Remote, u64);

/// What a request asks for.
#[derive(Debug)]
pub struct Taken {
    /// A body of so many bytes begins.
    pub begins: Option<u32>,
    /// Bytes to store behind those before.
    pub bytes: Vec<u8>,
    /// These were the last.
    pub ends: bool,
    /// [`Taker::lose`] was called: the client sends the body again.
    pub was_lost: bool,
    request: Packet,
    number: u32,
    is_queued: bool,
    /// The block is the last of its set, or the first that has come of a newer one: it is time to
    /// say what is missing.
    closes: bool,
    /// A message of Block1.
    copy: Option<Message>,
    origin: Origin,
}

/// Which body a message is of.
#[derive(Debug)]
enum Origin {
    /// The present one.
    Present,
    /// One with a tag before it, and whether that was right; `None` if it never ended.
    Past(Option<bool>),
    /// Another one of which this is no first block.
    Unknown,
    /// The message has come before: this was its answer.
    Again(Option<Vec<u8>>),
}

impl Taker {
    /// Takes a message; none where it is no PUT of a block to this resource.
    pub fn on_message(&mut self, from: Remote, message: &[u8]) -> Option<Taken> {
        let request = Packet::from_bytes(message).ok()?;
        let is_put = request.header.code == MessageClass::Request(RequestType::Put);
        if !is_put || request.get_first_option(CoapOption::UriPath)? != PATH {
            return None;
        }
        let queued = value_of(&request, Q_BLOCK1);
        let is_queued = queued.is_some();
        let option = queued.or(value_of(&request, CoapOption::Block1));
        let option = option.unwrap_or(0);
        let number = option >> 4;
        let copy = (!is_queued).then(|| Message::new(from, message));
        let origin = self.origin(from, &request, number, copy);
        let mut taken = Taken {
            begins: None,
            bytes: Vec::new(),
            ends: false,
            was_lost: false,
            number,
            is_queued,
            closes: true,
            request,
            copy,
            origin,
        };
        if matches!(taken.origin, Origin::Present) {
            self.body.take(&mut taken, option & 8 == 0);
        }
        Some(taken)
    }

    /// Finds the body that a message is of, and turns to it if it is a new one.
    fn origin(
        &mut self,
        from: Remote,
        request: &Packet,
        number: u32,
        copy: Option<Message>,
    ) -> Origin {
        let before = self.answered.iter().find(|(known, _)| Some(*known) == copy);
        if let Some((_, answer)) = before {
            return Origin::Again(answer.clone());
        }
        let tag = request.get_first_option(REQUEST_TAG).cloned();
        let is_queued = copy.is_none();
        let name = Name(from, tag.or(is_queued.then(Vec::new)));
        let size = value_of(request, CoapOption::Size1);
        let first = (number == 0).then(|| First(size, request.payload.clone()));
        let body = &self.body;
        let is_present = body.name.as_ref().is_none_or(|present| *present == name);
        let fits = |known: &Option<First>| first.is_none() || known.is_none() || *known == first;
        let is_known = is_present && (name.1.is_none() || fits(&body.first));
        let is_past = |past: &&Past| past.name == name && fits(&past.first);
        let is_new = match &name.1 {
            None if is_present => number == 0 && (body.ended.is_some() || body.next > 1),
            None => number == 0,
            // Of a body that is not known the first block may still come, but it ends no other one.
            Some(_) => !is_known && (number == 0 || body.name.is_none() || body.ended.is_some()),
        };
        if !is_known && let Some(past) = self.past.iter().rfind(is_past) {
            return Origin::Past(past.ended);
        }
        if is_new {
            self.turn();
        } else if !is_present {
            return Origin::Unknown;
        }
        self.body.name = Some(name);
        if self.body.first.is_none() {
            self.body.first = first;
        }
        Origin::Present
    }

    /// Leaves the present body for another one.
    fn turn(&mut self) {
        let body = std::mem::take(&mut self.body);
        if let Some(name) = body.name.filter(|name| name.1.is_some()) {
            self.past.push_back(Past {
                name,
                first: body.first,
                ended: body.ended,
            });
            self.past.drain(..self.past.len().saturating_sub(PAST_MAX));
        }
    }

    /// The body has ended: it was stored and verified, or refused.
    pub fn end(&mut self, is_right: bool) {
        self.body.ended = Some(is_right);
    }

    /// What the body has brought so far is needed once more: its client sends it again.
    pub fn lose(&mut self) {
        let body = &mut self.body;
        (body.next, body.last, body.was_lost) = (0, None, true);
        body.ahead.clear();
    }

    /// The answer, once what was asked for is done.
    pub fn answer(&mut self, taken: &Taken) -> Option<Vec<u8>> {
        if let Origin::Again(answer) = &taken.origin {
            return answer.clone();
        }
        let answer = self
            .code(taken)
            .and_then(|code| self.body.emit(code, taken));
        if let Some(copy) = taken.copy {
            self.answered.push_back((copy, answer.clone()));
            self.answered
                .drain(..self.answered.len().saturating_sub(ANSWERED_MAX));
        }
        answer
    }

    fn code(&self, taken: &Taken) -> Option<ResponseType> {
        match taken.origin {
            Origin::Past(Some(true)) => Some(ResponseType::Changed),
            Origin::Past(Some(false)) => Some(ResponseType::BadRequest),
            // Another client has taken its place.
            Origin::Past(None) => Some(ResponseType::Conflict),
            // Of Q-Block1 nothing is said: the blocks that the present body misses are others.
            Origin::Unknown if taken.is_queued => None,
            Origin::Unknown => Some(ResponseType::RequestEntityIncomplete),
            Origin::Present | Origin::Again(_) => self.body.code(taken),
        }
    }
}

impl Message {
    fn new(from: Remote, message: &[u8]) -> Self {
        let mut digest = DefaultHasher::new();
        message.hash(&mut digest);
        Self(from, digest.finish())
    }
}

impl Body {
    fn take(&mut self, taken: &mut Taken, is_last: bool) {
        let number = taken.number;
        taken.was_lost = self.was_lost;
        if is_last {
            self.last = Some(number);
        }
        let set = |number: u32| number / MAX_PAYLOADS;
        let is_newer = number >= self.seen && self.seen > 0 && set(number) > set(self.seen - 1);
        taken.closes = is_last || is_newer || set(number + 1) > set(number);
        self.seen = self.seen.max(number + 1);
        let room = if taken.is_queued { 2 * MAX_PAYLOADS } else { 1 };
        if self.ended.is_some() || taken.number < self.next || taken.number >= self.next + room {
            return;
        }
        if taken.number == 0 {
            let known = value_of(&taken.request, CoapOption::Size1);
            taken.begins = known.or(Some(taken.request.payload.len() as u32));
        }
        let payload = taken.request.payload.clone();
        self.ahead.insert(taken.number, payload);
        while let Some(block) = self.ahead.remove(&self.next) {
            taken.bytes.extend(block);
            self.next += 1;
        }
        taken.ends = self.last.is_some_and(|last| self.next > last);
    }

    fn code(&self, taken: &Taken) -> Option<ResponseType> {
        match self.ended {
            Some(true) => Some(ResponseType::Changed),
            Some(false) => Some(ResponseType::BadRequest),
            None if taken.is_queued => self.code_of_set(taken),
            None if taken.number < self.next => Some(ResponseType::Continue),
            None => Some(ResponseType::RequestEntityIncomplete),
        }
    }

    fn emit(&self, code: ResponseType, taken: &Taken) -> Option<Vec<u8>> {
        let mut answer = Packet::new();
        answer.set_token(taken.request.get_token().to_vec());
        answer.header.message_id = taken.request.header.message_id;
        answer
            .header
            .set_type(match taken.request.header.get_type() {
                MessageType::Confirmable => MessageType::Acknowledgement,
                _ => MessageType::NonConfirmable,
            });
        answer.header.code = MessageClass::Response(code);
        let len = taken.request.payload.len().next_power_of_two();
        match (code, taken.is_queued) {
            (ResponseType::Continue, true) => {
                answer.add_option(Q_BLOCK1, block_option(self.next - 1, true, len));
            }
            (ResponseType::Continue, false) => {
                answer.add_option(CoapOption::Block1, block_option(taken.number, true, len));
            }
            (ResponseType::RequestEntityIncomplete, true) => {
                let missing = (self.next..self.seen).filter(|n| !self.ahead.contains_key(n));
                answer.payload = emit_numbers(missing.take(MAX_PAYLOADS as usize));
                answer.add_option(CoapOption::ContentFormat, MISSING_BLOCKS.to_vec());
            }
            _ => {}
        }
        answer.to_bytes().ok()
    }

    /// Whether a set is to be continued, or blocks are missing; none: neither yet.
    fn code_of_set(&self, taken: &Taken) -> Option<ResponseType> {
        let is_whole = self.next >= self.seen;
        let is_set = self.next.is_multiple_of(MAX_PAYLOADS) && !taken.bytes.is_empty();
        match (is_whole, is_set) {
            (true, true) => Some(ResponseType::Continue),
            (false, _) if taken.closes => Some(ResponseType::RequestEntityIncomplete),
            _ => None,
        }
    }
}

/// application/missing-blocks+cbor-seq (RFC 9177 §12.3): 272.
const MISSING_BLOCKS: [u8; 2] = [1, 16];

/// Bodies that are remembered. Those of a client that is over are asked for by messages that are
/// still on their way.
const PAST_MAX: usize = 8;

/// Messages of Block1 that are remembered: more than a client with one under way sends over a mesh
/// within EXCHANGE_LIFETIME, 247 s (RFC 7252 §4.8.2).
const ANSWERED_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use motet::random::Rng;
    use motet::time::{Duration, Instant};

    use super::super::push::{Mode, Push};
    use super::*;

    const CLIENT: Remote = Remote {
        addr: std::net::Ipv6Addr::LOCALHOST,
        port: 7,
        zone: 0,
    };

    /// Sends a body of 50 blocks; `is_lost` says which messages never arrive, by their number.
    fn sent(mode: Mode, mut is_lost: impl FnMut(u32) -> bool) -> (Vec<u8>, Option<bool>, u64) {
        let body: Vec<u8> = (0..50 * 64 - 7).map(|n| (n * 7 / 3) as u8).collect();
        let mut push = Push::new(mode, (body.len(), 64), Rng::from_seed([1, 2]));
        let (mut taker, mut stored) = (Taker::default(), Vec::new());
        let (mut now, mut number) = (Instant::ORIGIN, 0);
        while push.outcome().is_none() && number < 10_000 {
            let Some(message) = push.poll(&body, now) else {
                now = push.next_deadline().unwrap_or(now + Duration::from_secs(1));
                continue;
            };
            number += 1;
            if is_lost(number) {
                continue;
            }
            let taken = taker.on_message(CLIENT, &message).expect("a block");
            if taken.begins.is_some() {
                stored.clear();
            }
            stored.extend(&taken.bytes);
            if taken.ends {
                taker.end(stored == body);
            }
            if let Some(answer) = taker.answer(&taken) {
                number += 1;
                if !is_lost(number) {
                    push.on_message(&answer, now);
                }
            }
        }
        let is_same = stored == body;
        assert!(is_same || push.outcome() != Some(true));
        (stored, push.outcome(), push.resent)
    }

    #[test]
    fn bodies_arrive_whole_whatever_is_lost() {
        for mode in [Mode::Block1, Mode::QBlock1] {
            let (_, outcome, resent) = sent(mode, |_| false);
            assert_eq!((outcome, resent), (Some(true), 0), "{mode:?}");
            for percent in [5, 10, 20, 30] {
                let mut rng = Rng::from_seed([7, percent]);
                let (_, outcome, resent) = sent(mode, |_| u64::from(rng.below(100)) < percent);
                assert_eq!(outcome, Some(true), "{mode:?} {percent}");
                assert!(resent > 0, "{mode:?} {percent}");
            }
            let (_, outcome, _) = sent(mode, |number| number > 20);
            assert_eq!(outcome, Some(false), "{mode:?}");
        }
    }

    #[test]
    fn a_server_that_forgot_everything_gets_everything_again() {
        let body = vec![7; 30 * 64];
        for mode in [Mode::Block1, Mode::QBlock1] {
            let mut push = Push::new(mode, (body.len(), 64), Rng::from_seed([3, 4]));
            let (mut taker, mut stored) = (Taker::default(), Vec::<u8>::new());
            let mut now = Instant::ORIGIN;
            let mut messages = 0;
            while push.outcome().is_none() {
                let Some(message) = push.poll(&body, now) else {
                    now = push.next_deadline().unwrap_or(now + Duration::from_secs(1));
                    continue;
                };
                messages += 1;
                if messages == 15 {
                    (taker, stored) = (Taker::default(), Vec::new());
                }
                let taken = taker.on_message(CLIENT, &message).expect("a block");
                stored.extend(&taken.bytes);
                if taken.ends {
                    taker.end(stored == body);
                }
                if let Some(answer) = taker.answer(&taken) {
                    push.on_message(&answer, now);
                }
            }
            assert_eq!(push.outcome(), Some(true), "{mode:?}");
        }
    }

    /// A server, what it has stored, and all messages that it got.
    #[derive(Default)]
    struct Server {
        taker: Taker,
        stored: Vec<u8>,
        messages: Vec<Vec<u8>>,
    }

    impl Server {
        /// Takes a message; returns the code of its answer.
        fn take(&mut self, message: &[u8], body: &[u8]) -> (Option<Vec<u8>>, Option<MessageClass>) {
            let taken = self.taker.on_message(CLIENT, message).expect("a block");
            if taken.begins.is_some() {
                self.stored.clear();
            }
            self.stored.extend(&taken.bytes);
            if taken.ends {
                self.taker.end(self.stored == body);
            }
            let answer = self.taker.answer(&taken);
            let code = answer.as_deref().map(|answer| {
                let answer = Packet::from_bytes(answer).expect("a message");
                answer.header.code
            });
            (answer, code)
        }

        /// Gets a whole body, and behind each message of it those that `late` has: none of these
        /// may change anything.
        fn get(&mut self, mode: Mode, seed: u64, body: &[u8], late: &[Vec<u8>]) {
            let mut push = Push::new(mode, (body.len(), 64), Rng::from_seed([seed, 1]));
            let mut now = Instant::ORIGIN;
            while push.outcome().is_none() {
                let Some(message) = push.poll(body, now) else {
                    now = push.next_deadline().unwrap_or(now + Duration::from_secs(1));
                    continue;
                };
                if let (Some(answer), _) = self.take(&message, body) {
                    push.on_message(&answer, now);
                }
                self.messages.push(message);
                for message in late.iter().chain(&self.messages.clone()) {
                    let before = self.stored.clone();
                    let (answer, _) = self.take(message, body);
                    assert_eq!(self.stored, before, "{mode:?}");
                    if let Some(answer) = answer.filter(|_| late.contains(message)) {
                        push.on_message(&answer, now);
                    }
                }
            }
            assert_eq!((push.outcome(), push.resent), (Some(true), 0), "{mode:?}");
            assert_eq!(self.stored, body, "{mode:?}");
        }
    }

    /// Blocks that were under way for long, and blocks that an old answer has asked for once more,
    /// come while their body is taken, behind its end, and while another one is taken.
    #[test]
    fn late_blocks_begin_nothing() {
        const CHANGED: Option<MessageClass> = Some(MessageClass::Response(ResponseType::Changed));
        let body = |step: u32| {
            (0..25 * 64)
                .map(|n| (n * step / 2) as u8)
                .collect::<Vec<u8>>()
        };
        let [first, second] = [body(3), body(5)];
        for mode in [Mode::Block1, Mode::QBlock1] {
            let mut server = Server::default();
            server.get(mode, 1, &first, &[]);
            let mut late = std::mem::take(&mut server.messages);
            for message in late.clone() {
                let mut again = Packet::from_bytes(&message).expect("a message");
                if mode == Mode::QBlock1 {
                    // Sent anew, under another number and token.
                    again.header.message_id = again.header.message_id.wrapping_add(100);
                    again.set_token(again.header.message_id.to_be_bytes().to_vec());
                    late.push(again.to_bytes().expect("a message"));
                }
            }
            for message in &late {
                let (_, code) = server.take(message, &first);
                assert_eq!(server.stored, first, "{mode:?}");
                // A copy in Block1 gets the answer that it got.
                assert!(mode == Mode::Block1 || code == CHANGED, "{mode:?}");
            }
            server.get(mode, 2, &second, &late);
            server.get(mode, 3, &first, &[]);
        }
    }

    /// Two clients may draw the same tag, and one client may draw a tag again: a body is told from
    /// others by its client, tag and first block together.
    #[test]
    fn a_tag_names_a_body_of_its_client_and_its_first_block() {
        let mut push = Push::new(Mode::QBlock1, (64, 64), Rng::from_seed([1, 1]));
        let message = push.poll(&[1; 64], Instant::ORIGIN).expect("a block");
        let mut other = message.clone();
        *other.last_mut().expect("a payload") = 2;
        let stranger = Remote { port: 8, ..CLIENT };
        let mut taker = Taker::default();
        for (from, message, begins) in [
            (CLIENT, &message, true),
            (CLIENT, &message, false),
            (stranger, &message, true),
            (CLIENT, &message, false),
            (CLIENT, &other, true),
            (stranger, &message, false),
            (CLIENT, &message, false),
        ] {
            let taken = taker.on_message(from, message).expect("a block");
            assert_eq!(taken.begins.is_some(), begins);
            if taken.ends {
                taker.end(true);
            }
        }
    }

    /// A mote that was reset knows none of the bodies before. A late block of one of these ends no
    /// other one, and is not answered.
    #[test]
    fn a_late_block_of_a_body_before_a_reset_ends_no_other_one() {
        let blocks = |fill: u8, seed| {
            let mut push = Push::new(Mode::QBlock1, (64 * 4, 64), Rng::from_seed([seed, 1]));
            let block = |_| {
                push.poll(&[fill; 64 * 4], Instant::ORIGIN)
                    .expect("a block")
            };
            (0..4).map(block).collect::<Vec<_>>()
        };
        let (before, present) = (blocks(1, 1), blocks(2, 9));
        let mut taker = Taker::default();
        for (number, message) in present.iter().enumerate() {
            for late in before.iter().skip(1).filter(|_| number > 0) {
                let taken = taker.on_message(CLIENT, late).expect("a block");
                assert!(taken.begins.is_none() && taken.bytes.is_empty());
                assert!(taker.answer(&taken).is_none());
            }
            let taken = taker.on_message(CLIENT, message).expect("a block");
            assert_eq!(taken.begins.is_some(), number == 0, "{number}");
            assert_eq!(taken.bytes, [2; 64], "{number}");
        }
    }
}
