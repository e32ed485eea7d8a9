//! A client's requests: a body in blocks, one after the other.
//!
//! Each block is a PUT of its own, numbered by Block1 (RFC 7959 §2.2). If a block is given up, the
//! next one follows, so one lost block does not lose the body (`TCPlp` §9.1). A server that needs
//! whole bodies discards such a body. Differs: RFC 7959 has block sizes of 16 to 1,024 bytes,
//! powers of two. As in the study a block here may have any length; the option then has the next
//! power of two above it, and both ends know the length.

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType};

use motet::random::Rng;
use motet::time::Instant;

use super::timing::{Due, Timing};

/// One block of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Which body it belongs to.
    pub body: u16,
    /// The block's place in the body, counted from 0.
    pub number: u32,
    /// Whether another block follows.
    pub more: bool,
    /// The length of all blocks but the last, bytes.
    pub len: usize,
    /// The block's bytes.
    pub bytes: Vec<u8>,
}

/// Sends blocks, one at a time where they are confirmed.
#[derive(Clone, Debug)]
pub struct Sender {
    /// None: blocks are not confirmed.
    timing: Option<Timing>,
    path: &'static str,
    next_id: u16,
    /// The block under way.
    request: Option<Vec<u8>>,
    /// Requests sent again.
    pub retransmissions: u64,
    /// Blocks given up.
    pub given_up: u64,
}

impl Sender {
    /// Puts blocks to `path`; without `timing` they are not confirmed.
    pub fn new(path: &'static str, timing: Option<Timing>, rng: &mut Rng) -> Self {
        Self {
            timing,
            path,
            next_id: rng.next_u32() as u16,
            request: None,
            retransmissions: 0,
            given_up: 0,
        }
    }

    /// Whether no block is under way.
    pub fn is_idle(&self) -> bool {
        self.request.is_none()
    }

    /// The time until which an answer to the present request may come.
    pub fn answer_until(&self) -> Option<Instant> {
        self.timing.as_ref()?.answer_until()
    }

    /// When [`Self::on_due`] has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timing.as_ref()?.next_deadline()
    }

    /// The request that carries `block`; it is under way then, where it is confirmed.
    pub fn send(&mut self, block: &Block, now: Instant, rng: &mut Rng) -> Vec<u8> {
        debug_assert!(self.is_idle(), "NSTART is 1 (RFC 7252 §4.7)");
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let bytes = request(self.path, id, self.timing.is_some(), block);
        if let Some(timing) = &mut self.timing {
            timing.begin(now, rng);
            self.request = Some(bytes.clone());
        }
        bytes
    }

    /// The message to send again, if the time has come; a request that is given up makes room for
    /// the next.
    pub fn on_due(&mut self, now: Instant) -> Option<&[u8]> {
        match self.timing.as_mut()?.on_due(now)? {
            Due::Again => {
                self.retransmissions += 1;
                self.request.as_deref()
            }
            Due::GivenUp => {
                self.given_up += 1;
                self.request = None;
                None
            }
        }
    }

    /// A message has come; whether it answers the block under way.
    pub fn on_message(&mut self, bytes: &[u8], now: Instant) -> bool {
        let answer = Packet::from_bytes(bytes).ok();
        let request = self
            .request
            .as_deref()
            .and_then(|own| Packet::from_bytes(own).ok());
        let Some((answer, request)) = answer.zip(request) else {
            return false;
        };
        let is_end = matches!(
            answer.header.get_type(),
            MessageType::Acknowledgement | MessageType::Reset
        );
        let is_ours = is_end && answer.header.message_id == request.header.message_id;
        if is_ours {
            self.request = None;
            if let Some(timing) = &mut self.timing {
                timing.on_answer(now);
            }
        }
        is_ours
    }
}

/// A PUT of one block.
fn request(path: &str, id: u16, is_confirmed: bool, block: &Block) -> Vec<u8> {
    let mut packet = Packet::new();
    packet.header.message_id = id;
    packet.header.code = MessageClass::Request(RequestType::Put);
    packet.header.set_type(match is_confirmed {
        true => MessageType::Confirmable,
        false => MessageType::NonConfirmable,
    });
    packet.set_token(block.body.to_be_bytes().to_vec());
    packet.add_option(CoapOption::UriPath, path.as_bytes().to_vec());
    packet.add_option(CoapOption::Block1, block_option(block));
    if !is_confirmed {
        // No answer of any class is wanted (RFC 7967 §2.1).
        packet.add_option(CoapOption::NoResponse, vec![26]);
    }
    packet.payload.clone_from(&block.bytes);
    // Fails for tokens of more than eight bytes alone.
    packet.to_bytes().unwrap_or_default()
}

/// NUM, M and SZX in as few bytes as they need (RFC 7959 §2.2).
fn block_option(block: &Block) -> Vec<u8> {
    let size = block.len.clamp(16, 1_024).next_power_of_two();
    let exponent = size.trailing_zeros() - 4;
    let value = (block.number << 4) | (u32::from(block.more) << 3) | exponent;
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::receiver::Receiver;
    use super::super::timing::{Algorithm, Parameters};
    use super::*;
    use motet::time::Duration;

    fn block(number: u32, more: bool, len: usize) -> Block {
        Block {
            body: 7,
            number,
            more,
            len,
            bytes: vec![0x5a; len],
        }
    }

    fn sender(is_confirmed: bool) -> (Sender, Rng) {
        let mut rng = Rng::from_seed([1, 2]);
        let timing = is_confirmed.then(|| Timing::new(Algorithm::Fixed, Parameters::RFC7252));
        (Sender::new("r", timing, &mut rng), rng)
    }

    #[test]
    fn blocks_are_numbered_as_rfc_7959_has_it() {
        // (number, more, length, the option's value)
        for (number, more, len, value) in [
            (0, true, 64, vec![0x0a]),
            (1, true, 64, vec![0x1a]),
            (2, false, 64, vec![0x22]),
            (0, false, 16, vec![]),
            (18, true, 1_024, vec![0x01, 0x2e]),
            (3, true, 454, vec![0x3d]),
        ] {
            assert_eq!(block_option(&block(number, more, len)), value);
        }
    }

    /// RFC 7252 §3: version 1, confirmable, two bytes of token; PUT; its number; path; block; body.
    #[test]
    fn a_request_has_eleven_bytes_besides_its_block() {
        let (mut sender, mut rng) = sender(true);
        let bytes = sender.send(&block(0, true, 64), Instant::ORIGIN, &mut rng);
        assert_eq!(bytes[..2], [0x42, 3]);
        assert_eq!(bytes[4..12], [0, 7, 0xb1, b'r', 0xd1, 3, 0x0a, 0xff]);
        assert_eq!(bytes.len(), 12 + 64);
    }

    #[test]
    fn one_block_is_under_way_until_it_is_answered_or_given_up() {
        let (mut sender, mut rng) = sender(true);
        let mut receiver = Receiver::default();
        let now = Instant::ORIGIN;
        let first = sender.send(&block(0, true, 64), now, &mut rng);
        let heard = receiver.on_message(&first).expect("a request");
        let answer = heard.answer.expect("confirmed");
        assert!(!sender.on_message(&first, now), "no answer");
        assert!(sender.on_message(&answer, now) && sender.is_idle());
        assert!(!sender.on_message(&answer, now), "once");
        sender.send(&block(1, true, 64), now, &mut rng);
        assert!(!sender.on_message(&answer, now), "of another block");
        let mut sent = 1;
        while let Some(due) = sender.next_deadline() {
            sent += u32::from(sender.on_due(due).is_some());
        }
        assert_eq!((sent, sender.given_up, sender.is_idle()), (5, 1, true));
        let third = sender.send(
            &block(2, false, 64),
            now + Duration::from_secs(99),
            &mut rng,
        );
        assert!(receiver.on_message(&third).is_some());
    }

    #[test]
    fn what_is_not_confirmed_is_not_under_way() {
        let (mut sender, mut rng) = sender(false);
        let bytes = sender.send(&block(0, false, 64), Instant::ORIGIN, &mut rng);
        assert_eq!(bytes[0], 0x52);
        assert!(sender.is_idle() && sender.next_deadline().is_none());
        let heard = Receiver::default().on_message(&bytes).expect("a request");
        assert!(heard.answer.is_none() && heard.block.is_some());
    }
}
