//! Mesh Link Establishment, Thread's messages between neighbours: UDP port 19788.
//!
//! Place: under `udp`. The stack's codec opens the messages; `tlvs`, `network_data` and `dataset`
//! put their content into words. They teach the decoder whose a short address is, the key sequence,
//! and the 6LoWPAN contexts of the network.
//! Left out: whether a message answers another one.
//! Sources: `draft-ietf-mle` 00; Thread 1.1 §4 and §5.18.

mod dataset;
mod network_data;
mod tlvs;
mod values;

use std::net::IpAddr;

use motet::thread::Tlvs;
use motet::thread::mle::{self, Ends, MleError, command, tlv_type};
use motet::thread::network_data::NetworkData;
use motet::wire::cursor::{Reader, Truncated};

use super::Decoder;
use crate::conversation::End;
use crate::model::{Frame, Layer, Value};
use crate::next::Next;

pub(super) use motet::thread::mle::PORT;

/// The UDP port of Thread's network management, which is CoAP.
pub(super) const MANAGEMENT_PORT: u16 = 61_631;

/// Explains a message.
pub(super) fn explain<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    ends: [End; 2],
    bytes: &'a [u8],
) -> Next<'a> {
    frame.say("MLE");
    match bytes {
        [SUITE_SECURED, ..] => secured(decoder, frame, ends, bytes),
        [SUITE_NONE, command, tlvs @ ..] => {
            let layer = Layer::new("mle", command_name(*command)).remark("secured", "no");
            let Ok(tlvs) = Tlvs::parse(tlvs) else {
                frame.push(layer);
                return frame.malformed("mle", MleError::BadTlv.reason());
            };
            show(decoder, frame, layer, *command, tlvs);
            Next::End
        }
        [] | [SUITE_NONE] => frame.malformed("mle", MleError::Truncated.reason()),
        [suite, ..] => frame.undecoded("mle", format!("MLE security suite {suite}")),
    }
}

/// Explains a message that is encrypted.
fn secured<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    ends: [End; 2],
    bytes: &'a [u8],
) -> Next<'a> {
    let layer = match header(bytes) {
        Ok(layer) => layer,
        Err(Truncated) => return frame.malformed("mle", MleError::Truncated.reason()),
    };
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (ends[0].0, ends[1].0) else {
        return frame.undecoded("mle", "MLE in IPv4");
    };
    let Some(keys) = &mut decoder.keys else {
        frame.push(layer);
        return frame.undecoded("mle", "the message is encrypted");
    };
    let ends = Ends { src, dst };
    let mut bytes = bytes.to_vec();
    let message = match mle::open(&keys.network, &ends, &mut bytes) {
        Ok(message) => message,
        Err(error) => {
            frame.push(layer);
            return match error {
                MleError::Forged => frame.undecoded(
                    "mle",
                    "the message is encrypted, and the key does not open it",
                ),
                MleError::Unsecured => frame.undecoded("mle", error.reason()),
                MleError::Truncated | MleError::BadTlv => frame.malformed("mle", error.reason()),
            };
        }
    };
    if decoder.now.countable() {
        keys.learn(message.numbers.sequence);
        learn(decoder, &ends, message.command, message.tlvs);
    }
    let layer = Layer {
        title: command_name(message.command),
        ..layer
    };
    show(decoder, frame, layer, message.command, message.tlvs);
    Next::End
}

/// The auxiliary security header as a layer (IEEE 802.15.4-2006 §7.6.2, with the key source of key
/// identifier mode 2).
fn header(bytes: &[u8]) -> Result<Layer, Truncated> {
    let mut r = Reader::new(bytes);
    let [_suite, control] = r.array()?;
    let counter = u32::from_le_bytes(r.array()?);
    let sequence = r.u32()?;
    let index = r.u8()?;
    Ok(Layer::new("mle", "encrypted")
        .hidden("security_control", control)
        .with("frame_counter", counter)
        .with("key_sequence", sequence)
        .hidden("key_index", index))
}

/// Keeps the keys of datasets from being shown, which commissioners and border routers read and
/// write by CoAP: the bytes behind CoAP's payload marker.
pub(super) fn hide_keys(decoder: &mut Decoder, message: &[u8]) {
    let markers = message
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == 0xff);
    for (at, _) in markers {
        let payload = message.get(at + 1..).unwrap_or_default();
        decoder.secrets.extend(dataset::secrets(payload));
    }
}

/// Adds the layer of a message, TLV by TLV.
fn show(decoder: &mut Decoder, frame: &mut Frame, layer: Layer, command: u8, tlvs: Tlvs<'_>) {
    let secrets = tlvs
        .filter(|(kind, _)| matches!(*kind, tlv_type::ACTIVE_DATASET | tlvs::PENDING_DATASET))
        .flat_map(|(_, value)| dataset::secrets(value));
    decoder.secrets.extend(secrets);
    let address = tlvs.array(tlv_type::ADDRESS16).map(u16::from_be_bytes);
    let given = address.map_or_else(String::new, |address| format!(", address 0x{address:04x}"));
    frame.say(format_args!("MLE {}{given}", layer.title));
    let list: Vec<Value> = tlvs.map(|(kind, value)| tlvs::value(kind, value)).collect();
    frame.push(layer.hidden("command", command).with("tlvs", list));
}

/// Remembers what an authenticated message says of its ends and of the network.
fn learn(decoder: &mut Decoder, ends: &Ends, command: u8, tlvs: Tlvs<'_>) {
    if let Some(pan) = decoder.now.pan {
        if let Some(short) = tlvs.array(tlv_type::SOURCE_ADDRESS) {
            let short = u16::from_be_bytes(short);
            decoder.addresses.learn(pan, short, ends.sender());
        }
        let given = tlvs.array(tlv_type::ADDRESS16);
        if let Some(short) = given.filter(|_| command == command::CHILD_ID_RESPONSE) {
            // The receiver's address is made of its extended one, as the sender's is.
            let answered = Ends {
                src: ends.dst,
                dst: ends.src,
            };
            let short = u16::from_be_bytes(short);
            decoder.addresses.learn(pan, short, answered.sender());
        }
    }
    let dataset = tlvs.find(tlv_type::ACTIVE_DATASET);
    if let Some(prefix) = dataset.and_then(dataset::mesh_local_prefix) {
        decoder.learn_context(0, prefix, 64, true);
    }
    if let Some(bytes) = tlvs.find(tlv_type::NETWORK_DATA)
        && let Ok(data) = NetworkData::parse(bytes)
    {
        for prefix in data {
            if let Some(context) = prefix.context() {
                decoder.learn_context(context.id, prefix.addr, context.bits, true);
            }
        }
        // Where no dataset was heard, the address of a server tells the mesh-local prefix.
        if decoder.contexts.get(0).is_none()
            && let Some(prefix) = network_data::mesh_local_prefix(bytes)
        {
            decoder.learn_context(0, prefix, 64, true);
        }
    }
}

/// Thread 1.1 §4.4; 18 to 20 as in OpenThread.
fn command_name(command: u8) -> String {
    let name = match command {
        command::LINK_REQUEST => "link request",
        command::LINK_ACCEPT => "link accept",
        command::LINK_ACCEPT_AND_REQUEST => "link accept and request",
        3 => "link reject",
        command::ADVERTISEMENT => "advertisement",
        5 => "update",
        6 => "update request",
        command::DATA_REQUEST => "data request",
        command::DATA_RESPONSE => "data response",
        command::PARENT_REQUEST => "parent request",
        command::PARENT_RESPONSE => "parent response",
        command::CHILD_ID_REQUEST => "child ID request",
        command::CHILD_ID_RESPONSE => "child ID response",
        command::CHILD_UPDATE_REQUEST => "child update request",
        command::CHILD_UPDATE_RESPONSE => "child update response",
        command::ANNOUNCE => "announce",
        16 => "discovery request",
        17 => "discovery response",
        18 => "link metrics management request",
        19 => "link metrics management response",
        20 => "link probe",
        99 => "time sync",
        other => return format!("command {other}"),
    };
    name.to_owned()
}

/// The first byte of a message: secured as frames of IEEE 802.15.4 are, or not at all.
const SUITE_SECURED: u8 = 0;
const SUITE_NONE: u8 = 255;
