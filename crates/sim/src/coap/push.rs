//! A body of known length to one server, in blocks: by Block1, or by Q-Block1.
//!
//! Purpose: what firmware goes by over CoAP. Block1 (RFC 7959) has one confirmed block under way.
//! Q-Block1 (RFC 9177) sends sets of ten that are not confirmed; the server continues a whole set,
//! and names the blocks that it misses. Place: bytes and instants in, bytes out. Left out:
//! resuming, which neither has: a server that has lost its place is sent everything again.

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType, ResponseType};

use motet::random::Rng;
use motet::time::{Duration, Instant};

use super::timing::{Algorithm, Due, Parameters, Timing};

/// How a body goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// RFC 7959.
    Block1,
    /// RFC 9177.
    QBlock1,
}

/// A body to one server.
#[derive(Debug)]
pub struct Push {
    mode: Mode,
    body_len: usize,
    block_len: usize,
    rng: Rng,
    /// The ID of the newest message.
    id: u16,
    /// Messages with an ID of their own: those with `id` and the IDs before it.
    messages: u32,
    /// Of Q-Block1: names the body (RFC 9175 §3).
    tag: u8,
    /// The next block that was never sent, since the body began.
    next: u32,
    /// Blocks to send at once.
    queue: Vec<u32>,
    /// Blocks below this have been sent once.
    sent: u32,
    /// Of Block1: the request under way.
    request: Option<(u16, u32)>,
    timing: Timing,
    /// Of Q-Block1: when to go on though nothing was heard.
    goes_on_at: Option<Instant>,
    /// Timeouts in a row without progress.
    idle: u32,
    outcome: Option<bool>,
    /// Bytes of the body that were sent again.
    pub resent: u64,
}

impl Push {
    /// A body of `body_len` bytes, in blocks of `block_len`: a power of two, 16 to 1,024.
    pub fn new(mode: Mode, (body_len, block_len): (usize, usize), mut rng: Rng) -> Self {
        let [_, tag, id @ ..] = rng.next_u32().to_be_bytes();
        let id = u16::from_be_bytes(id);
        Self {
            mode,
            body_len,
            block_len,
            id,
            messages: 0,
            tag,
            rng,
            next: 0,
            queue: Vec::new(),
            sent: 0,
            request: None,
            timing: Timing::new(Algorithm::Fixed, Parameters::RFC7252),
            goes_on_at: None,
            idle: 0,
            outcome: None,
            resent: 0,
        }
    }

    /// Whether the server has taken the body (`true`), or was given up.
    pub const fn outcome(&self) -> Option<bool> {
        self.outcome
    }

    /// When [`Self::poll`] has something to do though nothing comes; none: at once.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.mode {
            Mode::Block1 => self.timing.next_deadline(),
            Mode::QBlock1 => self.goes_on_at,
        }
    }

    /// The next message to send now.
    pub fn poll(&mut self, body: &[u8], now: Instant) -> Option<Vec<u8>> {
        if self.outcome.is_some() {
            return None;
        }
        match self.mode {
            Mode::Block1 => self.poll_block1(body, now),
            Mode::QBlock1 => self.poll_qblock1(body, now),
        }
    }

    fn poll_block1(&mut self, body: &[u8], now: Instant) -> Option<Vec<u8>> {
        if let Some((id, number)) = self.request {
            match self.timing.on_due(now)? {
                Due::Again => return Some(self.message(body, number, id)),
                Due::GivenUp => {
                    self.request = None;
                    self.idle += 1;
                }
            }
        }
        if self.idle > TRIES {
            self.outcome = Some(false);
            return None;
        }
        let id = self.take_id();
        self.request = Some((id, self.next));
        self.timing.begin(now, &mut self.rng);
        Some(self.message(body, self.next, id))
    }

    fn poll_qblock1(&mut self, body: &[u8], now: Instant) -> Option<Vec<u8>> {
        if self.queue.is_empty() {
            let is_due = self.goes_on_at.is_none_or(|at| now >= at);
            if !is_due {
                return None;
            }
            if self.goes_on_at.is_some() {
                self.idle += 1;
            }
            if self.idle > PROBES {
                self.outcome = Some(false);
                return None;
            }
            self.queue_set();
        }
        let number = self.queue.remove(0);
        if self.queue.is_empty() {
            let random = self.rng.uniform(NON_TIMEOUT_HALF);
            self.goes_on_at = Some(now + NON_TIMEOUT + random);
        }
        let id = self.take_id();
        Some(self.message(body, number, id))
    }

    /// The next set; at the body's end its last block, which makes the server say what it misses.
    fn queue_set(&mut self) {
        let blocks = self.blocks();
        let end = blocks.min(self.next + MAX_PAYLOADS);
        self.queue = (self.next..end).collect();
        if self.queue.is_empty() {
            self.queue.push(blocks - 1);
        }
        self.next = end;
    }

    /// A message has come from the server.
    pub fn on_message(&mut self, bytes: &[u8], now: Instant) {
        let Ok(answer) = Packet::from_bytes(bytes) else {
            return;
        };
        let MessageClass::Response(code) = answer.header.code else {
            return;
        };
        if !self.has_sent(answer.get_token()) {
            return;
        }
        if self.mode == Mode::Block1 {
            let is_ours = self
                .request
                .is_some_and(|(id, _)| id == answer.header.message_id);
            if !is_ours {
                return;
            }
            self.request = None;
            self.timing.on_answer(now);
        }
        match (code, self.mode) {
            (ResponseType::Changed, _) => self.outcome = Some(true),
            (ResponseType::Continue, Mode::Block1) => {
                self.idle = 0;
                self.next = (self.next + 1).min(self.blocks() - 1);
            }
            (ResponseType::Continue, Mode::QBlock1) => {
                // Of the set under way: the next one may go.
                if number_of(&answer, Q_BLOCK1).is_some_and(|last| last + 1 >= self.next) {
                    self.idle = 0;
                    self.goes_on_at = None;
                }
            }
            (ResponseType::RequestEntityIncomplete, Mode::QBlock1)
                if !answer.payload.is_empty() =>
            {
                self.idle = 0;
                let missing = numbers(&answer.payload);
                let known = missing.filter(|number| *number < self.next);
                let wanted: Vec<u32> = known.take(MAX_PAYLOADS as usize).collect();
                self.queue.retain(|number| !wanted.contains(number));
                self.queue.splice(0..0, wanted);
            }
            (ResponseType::RequestEntityIncomplete, _) => {
                self.idle += 1;
                (self.next, self.queue, self.goes_on_at) = (0, Vec::new(), None);
            }
            _ => self.outcome = Some(false),
        }
    }

    fn message(&mut self, body: &[u8], number: u32, id: u16) -> Vec<u8> {
        let from = number as usize * self.block_len;
        let end = self.body_len.min(from + self.block_len);
        let payload = body.get(from..end).unwrap_or_default();
        if number < self.sent {
            self.resent += payload.len() as u64;
        }
        self.sent = self.sent.max(number + 1);
        let mut packet = Packet::new();
        packet.header.message_id = id;
        packet.header.code = MessageClass::Request(RequestType::Put);
        packet.header.set_type(match self.mode {
            Mode::Block1 => MessageType::Confirmable,
            Mode::QBlock1 => MessageType::NonConfirmable,
        });
        packet.set_token(id.to_be_bytes().to_vec());
        packet.add_option(CoapOption::UriPath, PATH.to_vec());
        let more = end < self.body_len;
        let option = match self.mode {
            Mode::Block1 => CoapOption::Block1,
            Mode::QBlock1 => Q_BLOCK1,
        };
        packet.add_option(option, block_option(number, more, self.block_len));
        if number == 0 {
            packet.add_option(CoapOption::Size1, shortest(self.body_len as u32));
        }
        if self.mode == Mode::QBlock1 {
            packet.add_option(REQUEST_TAG, vec![self.tag]);
        }
        packet.payload = payload.to_vec();
        // Fails for tokens of more than eight bytes alone.
        packet.to_bytes().unwrap_or_default()
    }

    fn take_id(&mut self) -> u16 {
        self.id = self.id.wrapping_add(1);
        self.messages = self.messages.saturating_add(1);
        self.id
    }

    /// Whether a message of this body had this token; one of a body before it may be answered late.
    fn has_sent(&self, token: &[u8]) -> bool {
        let id = token.try_into().map(u16::from_be_bytes);
        id.is_ok_and(|id| u32::from(self.id.wrapping_sub(id)) < self.messages)
    }

    fn blocks(&self) -> u32 {
        self.body_len.div_ceil(self.block_len).max(1) as u32
    }
}

/// NUM, M and SZX in as few bytes as they need (RFC 7959 §2.2).
pub(super) fn block_option(number: u32, more: bool, len: usize) -> Vec<u8> {
    let exponent = len.clamp(16, 1_024).trailing_zeros() - 4;
    shortest((number << 4) | (u32::from(more) << 3) | exponent)
}

/// The number in a block option of this kind.
pub(super) fn number_of(packet: &Packet, option: CoapOption) -> Option<u32> {
    Some(value_of(packet, option)? >> 4)
}

/// The value of an option that is a whole number.
pub(super) fn value_of(packet: &Packet, option: CoapOption) -> Option<u32> {
    let bytes = packet.get_first_option(option)?;
    let fold = |value: u32, byte: &u8| (value << 8) | u32::from(*byte);
    (bytes.len() <= 4).then(|| bytes.iter().fold(0, fold))
}

fn shortest(value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default().to_vec()
}

/// A sequence of CBOR's whole numbers (RFC 8949 §3.1), as 4.08 lists what is missing.
pub(super) fn emit_numbers(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        match number {
            0..24 => bytes.push(number as u8),
            24..0x100 => bytes.extend([24, number as u8]),
            0x100..0x1_0000 => {
                bytes.push(25);
                bytes.extend((number as u16).to_be_bytes());
            }
            _ => {
                bytes.push(26);
                bytes.extend(number.to_be_bytes());
            }
        }
    }
    bytes
}

/// Reads such a sequence up to its end, or to what is none.
fn numbers(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (first, rest) = bytes.split_first()?;
        let len = match first {
            0..24 => 0,
            24 => 1,
            25 => 2,
            26 => 4,
            _ => return None,
        };
        let (own, rest) = rest.split_at_checked(len)?;
        bytes = rest;
        let fold = |value: u32, byte: &u8| (value << 8) | u32::from(*byte);
        Some(match len {
            0 => u32::from(*first),
            _ => own.iter().fold(0, fold),
        })
    })
}

/// The resource.
pub(super) const PATH: &[u8] = b"firmware";

/// Option numbers of RFC 9177 §4.1 and RFC 9175 §3.2.
pub(super) const Q_BLOCK1: CoapOption = CoapOption::Unknown(19);
pub(super) const REQUEST_TAG: CoapOption = CoapOption::Unknown(292);

/// MAX_PAYLOADS, NON_TIMEOUT, and the random part of NON_TIMEOUT_RANDOM (RFC 9177 §7.2).
pub(super) const MAX_PAYLOADS: u32 = 10;
const NON_TIMEOUT: Duration = Duration::from_secs(2);
const NON_TIMEOUT_HALF: Duration = Duration::from_secs(1);

/// Sets in a row that nothing is heard of before the server is given up: as patient as Block1.
const PROBES: u32 = 64;

/// How often a block of Block1 is given up, and tried again, before the server is: as patient as
/// `motet push` is over TCP.
const TRIES: u32 = 6;
