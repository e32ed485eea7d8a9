//! CoAP messages: UDP port 5683.
//!
//! Place: under `udp`. The crate `coap-lite` does the parsing.
//! Source: RFC 7252.

use coap_lite::{CoapOption, MessageClass, MessageType, Packet};

use crate::model::{Frame, Layer, hex16};
use crate::next::Next;

/// UDP port of CoAP.
pub(super) const PORT: u16 = 5_683;

/// Explains a message.
pub(super) fn explain<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let packet = match Packet::from_bytes(bytes) {
        Ok(packet) => packet,
        Err(error) => {
            let reason = error.to_string();
            return frame.malformed(
                "coap",
                reason.strip_prefix("CoAP error: ").unwrap_or(&reason),
            );
        }
    };
    if packet.header.get_version() != 1 {
        return frame.undecoded(
            "coap",
            format!("CoAP version {}", packet.header.get_version()),
        );
    }
    let kind = match packet.header.get_type() {
        MessageType::Confirmable => "CON",
        MessageType::NonConfirmable => "NON",
        MessageType::Acknowledgement => "ACK",
        MessageType::Reset => "RST",
    };
    let code = packet.header.get_code();
    let name = code_name(packet.header.code, &code);
    let path: String = packet
        .get_option(CoapOption::UriPath)
        .into_iter()
        .flatten()
        .map(|segment| format!("/{}", printable(segment)))
        .collect();
    let path = Some(path).filter(|path| !path.is_empty());
    frame.say(format_args!(
        "CoAP {kind} {name} {}",
        path.as_deref().unwrap_or("")
    ));
    frame.push(
        Layer::new("coap", format!("{kind} {name}"))
            .hidden("type", kind)
            .with("code", code)
            .with("message_id", hex16(packet.header.message_id))
            .hidden("token_len", packet.get_token().len())
            .with(
                "token",
                Some(packet.get_token()).filter(|token| !token.is_empty()),
            )
            .with("path", path)
            .with(
                "options",
                packet
                    .options()
                    .map(|(_, values)| values.len())
                    .sum::<usize>(),
            ),
    );
    frame.payload(&packet.payload);
    Next::End
}

/// The meaning of a code, where `coap-lite` has a name for it; else the code itself.
fn code_name(class: MessageClass, code: &str) -> String {
    match class {
        MessageClass::Empty => "empty".into(),
        MessageClass::Reserved(_) => code.into(),
        MessageClass::Request(request) => format!("{request:?}").to_uppercase(),
        MessageClass::Response(response) => format!("{code} {}", words(&format!("{response:?}"))),
    }
}

/// `NotFound` as `not found`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Text from the network, without what a terminal could take for a command.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|letter| if letter.is_control() { '·' } else { letter })
        .collect()
}
