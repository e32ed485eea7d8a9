//! Networks that forward below IP: mesh addressing headers and broadcasts (RFC 4944 §5.2, §11.1).

use motet::lowpan::{Contexts, LinkPair};
use motet::wire::LinkAddr;
use motet::wire::lowpan_frag::Header as FragmentHeader;
use motet::wire::lowpan_mesh::{Broadcast, Header as MeshHeader, LEN_MAX};

use super::super::model::{Status, Value};
use super::mesh::{A, Air, B, C, compressed, datagram, last, link_local};

const X: LinkAddr = LinkAddr::Short(0x2c00);
const Y: LinkAddr = LinkAddr::Short(0x5001);

/// A mesh header in front of `payload`.
fn meshed(originator: LinkAddr, destination: LinkAddr, hops_left: u8, payload: &[u8]) -> Vec<u8> {
    let header = MeshHeader {
        hops_left,
        originator,
        destination,
    };
    let mut out = [0; LEN_MAX];
    let len = header.emit(&mut out).expect("room");
    [&out[..len], payload].concat()
}

/// A packet compressed between two nodes.
fn lowpan(src: LinkAddr, dst: LinkAddr, packet: &[u8]) -> Vec<u8> {
    let (mut payload, taken) = compressed(packet, LinkPair { src, dst }, &Contexts::new());
    payload.extend_from_slice(&packet[taken..]);
    payload
}

#[test]
fn elided_addresses_are_those_of_the_mesh_header() {
    for (originator, destination, hops_left) in [(X, Y, 14), (A, Y, 15), (X, B, 200), (A, B, 0)] {
        let (src, dst) = (link_local(originator), link_local(destination));
        let packet = datagram(src, dst, 9, b"ten bytes.");
        let payload = lowpan(originator, destination, &packet);
        // Two addresses and nothing of them in line.
        assert!(payload.len() < 24, "{} B", payload.len());
        let mut air = Air::new(&[]);
        let payload = meshed(originator, destination, hops_left, &payload);
        // The frame itself goes between two other nodes.
        let psdu = air.frame(LinkAddr::Short(7), C, &payload);
        let frame = air.hear(psdu);
        assert_eq!(frame.status, Status::Decoded);
        assert_eq!(last(&frame, "ipv6", "packet"), &Value::Bytes(packet));
        assert_eq!(last(&frame, "mesh", "hops_left"), &hops_left.into());
        assert_eq!(last(&frame, "udp", "checksum_ok"), &true.into());
    }
}

#[test]
fn a_broadcast_has_a_sequence() {
    let all = "ff03::1".parse().expect("an address");
    let packet = datagram(link_local(X), all, 9, b"to all");
    let payload = lowpan(X, LinkAddr::BROADCAST, &packet);
    let mut header = [0; 2];
    Broadcast { sequence: 77 }.emit(&mut header).expect("room");
    let behind = [&header[..], &payload].concat();
    let mut air = Air::new(&[]);
    let payload = meshed(X, LinkAddr::BROADCAST, 3, &behind);
    let psdu = air.frame(Y, LinkAddr::BROADCAST, &payload);
    let frame = air.hear(psdu);
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(last(&frame, "broadcast", "sequence"), &77_u8.into());
    assert_eq!(last(&frame, "ipv6", "packet"), &Value::Bytes(packet));
}

#[test]
fn fragments_belong_together_by_originator_and_final_address() {
    let packet = datagram(link_local(X), link_local(Y), 9, &[0x5a; 150]);
    let fragments = |tag: u16| {
        let (start, taken) = compressed(&packet, LinkPair { src: X, dst: Y }, &Contexts::new());
        let mut header = FragmentHeader {
            datagram_size: packet.len() as u16,
            datagram_tag: tag,
            datagram_offset: None,
        };
        let mut payloads = Vec::new();
        let mut out = [0; 5];
        let len = header.emit(&mut out).expect("room");
        payloads.push([&out[..len], &start, &packet[taken..120]].concat());
        header.datagram_offset = Some(120 / 8);
        let len = header.emit(&mut out).expect("room");
        payloads.push([&out[..len], &packet[120..]].concat());
        payloads
    };
    let mut air = Air::new(&[]);
    let [first, second] = fragments(7).try_into().expect("two");
    // One fragment is heard on the first hop, the other one on the second hop.
    let psdu = air.frame(X, A, &meshed(X, Y, 5, &first));
    assert_eq!(air.hear(psdu).status, Status::Fragment);
    // Of another originator, by way of the same two nodes: it is not of this packet.
    let psdu = air.frame(A, Y, &meshed(LinkAddr::Short(9), Y, 4, &second));
    assert_eq!(air.hear(psdu).status, Status::Fragment);
    let psdu = air.frame(A, Y, &meshed(X, Y, 4, &second));
    let frame = air.hear(psdu);
    assert_eq!(frame.status, Status::Decoded);
    assert_eq!(last(&frame, "ipv6", "packet"), &Value::Bytes(packet));
}

#[test]
fn a_mesh_header_that_ends_early_is_malformed() {
    let whole = meshed(A, B, 15, &[0x50]);
    let mut air = Air::new(&[]);
    for len in 1..=whole.len() {
        let psdu = air.frame(X, Y, &whole[..len]);
        let frame = air.hear(psdu);
        let problem = frame.status.problem().expect("a problem");
        // Without a byte behind it the header itself is whole.
        let layer = if len == whole.len() - 1 {
            "lowpan"
        } else {
            "mesh"
        };
        assert_eq!(problem.layer, layer, "{len} B: {}", problem.reason);
    }
}
