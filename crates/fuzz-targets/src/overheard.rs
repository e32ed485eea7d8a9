//! A decoder that has the key of a Thread network, and hears what its nodes seal.
//!
//! The input is a program: MLE messages and data frames of some nodes, with arbitrary contents and
//! key sequences; the same damaged; frames in clear. So what is behind a right MIC is reached: the
//! TLVs of MLE, network data, datasets, mesh headers, fragments. Any of it gives an explanation.

use std::net::Ipv6Addr;

use motet::lowpan::{Contexts, LinkPair, compress};
use motet::mac::security::{KEY_LEN, NetworkKey, Software, index, seal};
use motet::thread::mle::{self, Builder, Ends, Numbers, command, tlv_type};
use motet::wire::ieee802154::{Auxiliary, Level, fcs};
use motet::wire::{LinkAddr, ipv6, udp};

use crate::input::Input;
use crate::{seeds, text};

/// Explains a capture of what a program makes.
pub(crate) fn run(bytes: &[u8]) {
    text::capture(&seeds::air_capture(&frames(bytes)));
}

/// The frames of a program, with their FCS.
fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut input = Input::new(bytes);
    let mut frames = Vec::new();
    while !input.is_empty() && frames.len() < FRAMES_MAX {
        let step = input.u8();
        let sender = input.u8();
        let counter = frames.len() as u32;
        let sequence = SEQUENCES[usize::from(input.u8()) % SEQUENCES.len()];
        let mut mpdu = match step % STEPS {
            0 => message(&mut input, sender, sequence, counter),
            1 => sealed(&mut input, sender, sequence, counter),
            _ => header(sender, sender.wrapping_add(1), counter, false, true)
                .into_iter()
                .chain(input.block().iter().copied())
                .collect(),
        };
        if step & DAMAGED != 0 {
            let at = usize::from(input.u8()) % mpdu.len();
            mpdu[at] ^= input.u8();
        }
        let fcs = fcs(&mpdu).to_le_bytes();
        frames.push([&mpdu[..], &fcs].concat());
    }
    frames
}

/// An MLE message: its command, and bytes that are TLVs or not.
fn message(input: &mut Input<'_>, sender: u8, sequence: u32, counter: u32) -> Vec<u8> {
    let receiver = sender.wrapping_add(1);
    let pair = LinkPair {
        src: LinkAddr::Extended(extended(sender)),
        dst: LinkAddr::Extended(extended(receiver)),
    };
    let [src, dst] = [pair.src, pair.dst].map(link_local);
    let mut out = [0; 400];
    let mut builder = Builder::new(input.u8() % 20, &mut out);
    let mut rest = Input::new(input.block());
    while !rest.is_empty() {
        let kind = rest.u8();
        builder.tlv(kind, &[rest.block()]);
    }
    let numbers = Numbers { sequence, counter };
    let ends = Ends { src, dst };
    let len = builder.seal(&KEY, &ends, numbers).unwrap_or(0);
    let packet = datagram(src, dst, &out[..len]);
    let mut payload = vec![0; packet.len()];
    let done = compress(&packet, pair, &Contexts::new(), &mut payload).expect("it shrinks");
    payload.truncate(done.compressed_len);
    payload.extend(&packet[done.uncompressed_len..]);
    let mut mpdu = header(sender, receiver, counter, false, false);
    mpdu.extend(payload);
    mpdu
}

/// A frame with a short source and a sealed payload: a mesh header or a fragment, as it comes.
fn sealed(input: &mut Input<'_>, sender: u8, sequence: u32, counter: u32) -> Vec<u8> {
    let auxiliary = Auxiliary {
        level: Level::Mic32,
        counter,
        key_index: index(sequence),
    };
    let mut mpdu = header(sender, sender.wrapping_add(1), counter, true, true);
    mpdu.push(0x0d);
    mpdu.extend(counter.to_le_bytes());
    mpdu.push(auxiliary.key_index);
    let mut body = input.block().to_vec();
    body.resize(body.len() + Level::Mic32.mic_len(), 0);
    let cipher = Software::new(&KEY.link_key(sequence));
    seal(&cipher, extended(sender), auxiliary, &mpdu, &mut body).expect("room for the MIC");
    mpdu.extend(body);
    mpdu
}

/// The header of a data frame of 2006 between two nodes, by their short or extended addresses.
fn header(from: u8, to: u8, counter: u32, is_secured: bool, is_short: bool) -> Vec<u8> {
    let modes = if is_short { 0x98 } else { 0xdc };
    let mut mpdu = vec![0x41 | u8::from(is_secured) << 3, modes, counter as u8];
    mpdu.extend(PAN.to_le_bytes());
    for node in [to, from] {
        match is_short {
            true => mpdu.extend(short(node).to_le_bytes()),
            false => mpdu.extend(extended(node).iter().rev()),
        }
    }
    mpdu
}

fn datagram(src: Ipv6Addr, dst: Ipv6Addr, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; ipv6::HEADER_LEN + udp::HEADER_LEN];
    let fixed = ipv6::Header {
        traffic_class: ipv6::TrafficClass::default(),
        flow_label: 0,
        payload_len: (udp::HEADER_LEN + payload.len()) as u16,
        next_header: udp::NEXT_HEADER,
        hop_limit: 255,
        src,
        dst,
    };
    let ports = udp::Header {
        src_port: mle::PORT,
        dst_port: mle::PORT,
    };
    fixed.emit(&mut packet).expect("40 bytes");
    let upper = packet.get_mut(ipv6::HEADER_LEN..).unwrap_or_default();
    ports.emit(payload.len(), upper).expect("8 bytes");
    packet.extend(payload);
    udp::fill_checksum(&src, &dst, &mut packet[ipv6::HEADER_LEN..]);
    packet
}

const fn extended(node: u8) -> [u8; 8] {
    [2, 0, 0, 0, 0, 0, 0, node % NODES]
}

fn short(node: u8) -> u16 {
    0x2c00 + u16::from(node % NODES)
}

fn link_local(link: LinkAddr) -> Ipv6Addr {
    let iid = u64::from_be_bytes(link.iid());
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(iid))
}

/// Seeds: a child that attaches and sends, with TLVs of every kind, and a routed fragment.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let tlv = |kind: u8, value: &[u8]| [&[kind, value.len() as u8], value].concat();
    let step = |kind: u8, sender: u8, sequence: u8, rest: &[u8]| {
        [&[kind, sender, sequence], rest].concat()
    };
    let message = |sender: u8, sequence: u8, command: u8, tlvs: &[Vec<u8>]| {
        let tlvs = tlvs.concat();
        let head = [command, tlvs.len() as u8];
        step(0, sender, sequence, &[&head[..], &tlvs].concat())
    };
    let network_data = [
        0x03, 20, 0, 64, 0xfd, 0x11, 0, 0x22, 0, 0, 0, 0, 0x05, 4, 0xa8, 0, 0x33, 0, 0x07, 2, 0x13,
        64, 0x0b, 9, 0x80, 1, 0x5d, 0x0d, 4, 0xa8, 0, 0xd1, 0x1f, 0x08, 4, 0x0b, 2, 0xfd, 0x2e,
    ];
    let dataset = [&tlv(5, &[9; 16])[..], &tlv(7, &[0xfd; 8]), &tlv(3, b"home")].concat();
    let source = tlv(tlv_type::SOURCE_ADDRESS, &short(1).to_be_bytes());
    let leader = tlv(tlv_type::LEADER_DATA, &[0, 0, 0, 1, 64, 5, 5, 11]);
    let response = message(
        1,
        0,
        command::CHILD_ID_RESPONSE,
        &[
            source.clone(),
            leader.clone(),
            tlv(tlv_type::ADDRESS16, &short(2).to_be_bytes()),
            tlv(tlv_type::NETWORK_DATA, &network_data),
        ],
    );
    // In a message of its own: both do not fit a frame.
    let dataset = [tlv(tlv_type::ACTIVE_DATASET, &dataset)];
    let response = [response, message(1, 0, command::DATA_RESPONSE, &dataset)].concat();
    let advertisement = message(
        1,
        3,
        command::ADVERTISEMENT,
        &[
            source,
            leader,
            tlv(tlv_type::ROUTE64, &[1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x51]),
            tlv(tlv_type::CONNECTIVITY, &[0, 1, 0, 0, 0, 1, 1, 5, 0, 1]),
            tlv(
                tlv_type::ADDRESS_REGISTRATION,
                &[0x80, 1, 2, 3, 4, 5, 6, 7, 8],
            ),
            tlv(tlv_type::TLV_REQUEST, &[10, 12]),
        ],
    );
    let routed = [
        0xb5, 0x2c, 1, 0x2c, 2, 0xc0, 56, 0, 7, 0x7a, 0x33, 0x3a, 0x80, 0,
    ];
    let data = |sequence| {
        step(
            1,
            2,
            sequence,
            &[&[routed.len() as u8][..], &routed].concat(),
        )
    };
    vec![
        [&response[..], &data(0), &advertisement, &data(3)].concat(),
        [response, step(1 | DAMAGED, 1, 0, &[2, 0x41, 0x60, 9, 1])].concat(),
    ]
}

/// The kinds of steps.
const STEPS: u8 = 3;
/// The bit of a step that damages its frame.
const DAMAGED: u8 = 0x80;
/// Nodes of the network.
const NODES: u8 = 4;
const PAN: u16 = 0xabcd;
/// Frames of a program.
const FRAMES_MAX: usize = 32;
/// Key sequences: neighbours, those with one index, one far ahead.
const SEQUENCES: [u32; 6] = [0, 1, 127, 128, 5_000, u32::MAX];
/// The key that [`motet_decode::explain`] has.
const KEY: NetworkKey = NetworkKey::new([0; KEY_LEN]);

#[cfg(test)]
mod tests {
    use super::*;

    /// What the nodes seal opens: otherwise the fuzzer would never come behind a MIC.
    #[test]
    fn seeds_are_opened() {
        for seed in seeds() {
            let capture = seeds::air_capture(&frames(&seed));
            let mut text = Vec::new();
            motet_decode::explain(capture, &mut text).expect("memory takes every byte");
            let text = String::from_utf8(text).expect("UTF-8");
            assert!(text.contains("MLE child ID response"), "{text}");
            assert!(text.contains("network name home"), "{text}");
        }
        let [first, _] = seeds().try_into().expect("two");
        let mut text = Vec::new();
        motet_decode::explain(seeds::air_capture(&frames(&first)), &mut text).expect("memory");
        let text = String::from_utf8(text).expect("UTF-8");
        // Of the key sequence at the begin, and of a later one.
        assert!(
            text.matches("6LoWPAN first fragment").count() >= 2,
            "{text}"
        );
        assert!(text.contains("hops left 5"), "{text}");
    }
}
