//! A server's side of [`super::push`]: takes blocks, hands bytes on in their order, and answers.
//!
//! Memory: blocks of Q-Block1 that came ahead of a missing one wait here, for two sets at most.

use std::collections::BTreeMap;

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType, ResponseType};

use super::push::{MAX_PAYLOADS, PATH, Q_BLOCK1, block_option, emit_numbers, value_of};

/// A server's state for one body.
#[derive(Debug, Default)]
pub struct Taker {
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
}

/// What a request asks for.
#[derive(Debug)]
pub struct Taken {
    /// A body of so many bytes begins.
    pub begins: Option<u32>,
    /// Bytes to store behind those before.
    pub bytes: Vec<u8>,
    /// These were the last.
    pub ends: bool,
    request: Packet,
    number: u32,
    is_queued: bool,
    /// The block is the last of its set, or the first that has come of a newer one: it is time to
    /// say what is missing.
    closes: bool,
}

impl Taker {
    /// Takes a message; none where it is no PUT of a block to this resource.
    pub fn on_message(&mut self, message: &[u8]) -> Option<Taken> {
        let request = Packet::from_bytes(message).ok()?;
        let is_put = request.header.code == MessageClass::Request(RequestType::Put);
        if !is_put || request.get_first_option(CoapOption::UriPath)? != PATH {
            return None;
        }
        let queued = value_of(&request, Q_BLOCK1);
        let option = queued.or(value_of(&request, CoapOption::Block1));
        let option = option.unwrap_or(0);
        let number = option >> 4;
        let is_queued = queued.is_some();
        if number == 0 && (self.ended.is_some() || (!is_queued && self.next > 1)) {
            *self = Self::default();
        }
        let is_last = option & 8 == 0;
        if is_last {
            self.last = Some(number);
        }
        let set = |number: u32| number / MAX_PAYLOADS;
        let is_newer = number >= self.seen && self.seen > 0 && set(number) > set(self.seen - 1);
        let mut taken = Taken {
            begins: None,
            bytes: Vec::new(),
            ends: false,
            number,
            is_queued,
            closes: is_last || is_newer || set(number + 1) > set(number),
            request,
        };
        self.seen = self.seen.max(number + 1);
        self.take(&mut taken);
        Some(taken)
    }

    fn take(&mut self, taken: &mut Taken) {
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

    /// The body has ended: it was stored and verified, or refused.
    pub fn end(&mut self, is_right: bool) {
        self.ended = Some(is_right);
    }

    /// The answer, once what was asked for is done.
    pub fn answer(&self, taken: &Taken) -> Option<Vec<u8>> {
        let code = match self.ended {
            Some(true) => ResponseType::Changed,
            Some(false) => ResponseType::BadRequest,
            None if taken.is_queued => self.answer_of_set(taken)?,
            None if taken.number < self.next => ResponseType::Continue,
            None => ResponseType::RequestEntityIncomplete,
        };
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
    fn answer_of_set(&self, taken: &Taken) -> Option<ResponseType> {
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

#[cfg(test)]
mod tests {
    use motet::random::Rng;
    use motet::time::{Duration, Instant};

    use super::super::push::{Mode, Push};
    use super::*;

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
            let taken = taker.on_message(&message).expect("a block");
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
                let taken = taker.on_message(&message).expect("a block");
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
}
