//! A server's side: takes each block once, and answers those that are to be confirmed.

use std::collections::VecDeque;

use coap_lite::{CoapOption, MessageClass, MessageType, Packet, RequestType, ResponseType};

/// A server's state for one client.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Message IDs of the last messages: a retransmission is answered again, but processed once.
    seen: VecDeque<u16>,
}

/// A receiver's verdict on a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageResult {
    /// The answer to send.
    pub answer: Option<Vec<u8>>,
    /// Number of the body, number of the block in it, and its bytes; `None` for a duplicate.
    pub block: Option<(u16, u32, Vec<u8>)>,
}

impl Receiver {
    /// Takes a request; none where it is no PUT.
    pub fn on_message(&mut self, bytes: &[u8]) -> Option<MessageResult> {
        let packet = Packet::from_bytes(bytes).ok()?;
        if packet.header.code != MessageClass::Request(RequestType::Put) {
            return None;
        }
        let is_confirmed = match packet.header.get_type() {
            MessageType::Confirmable => true,
            MessageType::NonConfirmable => false,
            MessageType::Acknowledgement | MessageType::Reset => return None,
        };
        let id = packet.header.message_id;
        let option = packet.get_first_option(CoapOption::Block1);
        let option = option.cloned().unwrap_or_default();
        let fold = |value: u32, byte: &u8| (value << 8) | u32::from(*byte);
        let value = option.iter().take(3).fold(0, fold);
        let body = packet.get_token().first_chunk().copied();
        let is_new = !self.seen.contains(&id);
        if is_new {
            self.seen.push_back(id);
            self.seen.drain(..self.seen.len().saturating_sub(SEEN_MAX));
        }
        let block = is_new.then(|| {
            let body = u16::from_be_bytes(body.unwrap_or_default());
            (body, value >> 4, packet.payload.clone())
        });
        let has_more = value & 8 != 0;
        let answer = is_confirmed.then(|| answer(&packet, option, has_more));
        Some(MessageResult {
            answer: answer.flatten(),
            block,
        })
    }
}

/// The acknowledgment with its response (RFC 7959 §2.9.1).
fn answer(request: &Packet, option: Vec<u8>, has_more: bool) -> Option<Vec<u8>> {
    let mut answer = Packet::new();
    answer.header.set_type(MessageType::Acknowledgement);
    answer.header.message_id = request.header.message_id;
    answer.header.code = MessageClass::Response(match has_more {
        true => ResponseType::Continue,
        false => ResponseType::Changed,
    });
    answer.set_token(request.get_token().to_vec());
    answer.add_option(CoapOption::Block1, option);
    answer.to_bytes().ok()
}

/// Messages that a client may have sent within EXCHANGE_LIFETIME (RFC 7252 §4.8.2), one at a time
/// and each answered soon.
const SEEN_MAX: usize = 256;
