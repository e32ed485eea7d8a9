use motet::wire::ieee802154::Header as MacHeader;

use super::*;
use crate::air::filter;

/// The PSDU of a data frame for node 1.
fn psdu(payload: &[u8]) -> Vec<u8> {
    let addr = |n: u8| LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, n]);
    let header = MacHeader::data(0x4d54, addr(0), addr(1), 7);
    let mut out = vec![0; 127];
    let len = header.emit_frame(payload, &mut out).expect("it fits");
    out.truncate(len);
    out
}

/// Link-local addresses from link addresses, hop limit 64, and the next header compressed too.
const IPHC: [u8; 2] = [0x7e, 0x33];
/// The same with the next header in line.
const IPHC_INLINE: [u8; 2] = [0x7a, 0x33];
/// Ports of four bits each, and a checksum.
const UDP: [u8; 4] = [0xf3, 0x12, 0xab, 0xcd];
/// An RPL option as 6LoRH: no instance, one byte of rank.
const RPI: [u8; 3] = [0x83, 0x05, 0x10];

#[test]
fn packets_are_told_by_what_they_carry_behind_whatever_routing_added() {
    let page = [lorh::PAGE_1];
    let hop_by_hop = [0xe1, 6, 0x23, 4, 0, 0, 1, 0];
    let cases: [(&str, Vec<u8>, Option<u64>); 10] = [
        ("UDP", [&IPHC[..], &UDP].concat(), Some(0)),
        ("TCP", [&IPHC_INLINE[..], &[6], &[0; 20]].concat(), Some(0)),
        (
            "an echo request",
            [&IPHC_INLINE[..], &[58, 128, 0]].concat(),
            Some(0),
        ),
        ("a DIO", [&IPHC_INLINE[..], &[58, 155, 1]].concat(), None),
        (
            "an ICMPv6 error",
            [&IPHC_INLINE[..], &[58, 1, 0]].concat(),
            None,
        ),
        (
            "UDP with 6LoRH",
            [&page[..], &RPI, &IPHC, &UDP].concat(),
            Some(4),
        ),
        (
            "a DAO with 6LoRH",
            [&page[..], &RPI, &IPHC_INLINE, &[58, 155, 2]].concat(),
            None,
        ),
        (
            "UDP behind a hop-by-hop header",
            [&IPHC[..], &hop_by_hop, &UDP].concat(),
            Some(8),
        ),
        (
            "TCP behind one that is not compressed",
            [&IPHC_INLINE[..], &[0, 6, 0, 1, 4, 0, 0, 0, 0], &[0; 20]].concat(),
            Some(8),
        ),
        ("nothing known", vec![0x3f, 1, 2], None),
    ];
    for (name, payload, extras) in cases {
        let mut census = Census::default();
        let psdu = psdu(&payload);
        census.note(0, &psdu, Some(1));
        // The ACK is of the frame's kind.
        census.note(1, &filter::ack(7, false), Some(0));
        let [sent, ack] = [0, 1].map(|node| census.sent(node));
        let time = [phy::air_time(psdu.len()), phy::air_time(phy::ACK_LEN)];
        let is_users = extras.is_some();
        assert_eq!(sent.packets, u64::from(is_users), "{name}");
        assert_eq!(sent.routing_bytes, extras.unwrap_or(0), "{name}");
        for (sent, time) in [sent, ack].into_iter().zip(time) {
            let (users, control) = match is_users {
                true => (time, Duration::ZERO),
                false => (Duration::ZERO, time),
            };
            assert_eq!(
                (sent.user_time, sent.control_time),
                (users, control),
                "{name}"
            );
            assert_eq!(sent.control_frames, u64::from(!is_users), "{name}");
        }
    }
}

#[test]
fn later_fragments_are_of_the_kind_of_their_first() {
    let first = |tag: u8, rest: &[u8]| psdu(&[&[0xc0 | 1, 0, 0, tag][..], rest].concat());
    let next = |tag: u8| psdu(&[0xe0 | 1, 0, 0, tag, 5, 1, 2, 3]);
    let mut census = Census::default();
    census.note(0, &first(1, &[&IPHC[..], &UDP].concat()), Some(1));
    census.note(
        0,
        &first(2, &[&IPHC_INLINE[..], &[58, 155, 1]].concat()),
        Some(1),
    );
    for (tag, control) in [(1, 1), (2, 2), (1, 2), (3, 3)] {
        census.note(0, &next(tag), Some(1));
        assert_eq!(census.sent(0).control_frames, control, "tag {tag}");
    }
    // Tags are a sender's own.
    census.note(4, &next(1), Some(1));
    assert_eq!(census.sent(4).control_frames, 1);
    assert_eq!(census.sent(0).packets, 1);
}
