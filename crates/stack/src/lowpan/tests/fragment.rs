use core::net::Ipv6Addr;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::lowpan::decompress;
use crate::wire::LinkAddr;

const LINK: LinkPair = LinkPair {
    src: LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1]),
    dst: LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]),
};
const ONWARD: LinkPair = LinkPair {
    src: LINK.dst,
    dst: LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3]),
};

fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    let mesh: Ipv6Addr = "fd6d:6f74:6574:1::".parse().unwrap();
    let host: Ipv6Addr = "fd6d:6f74:6574::".parse().unwrap();
    assert!(contexts.set(0, mesh, 64, true) && contexts.set(1, host, 64, true));
    contexts
}

/// An IPv6 packet of `len` bytes with next header TCP, from the node of `LINK` to the host.
fn packet(len: usize, hop_limit: u8) -> Vec<u8> {
    let src: Ipv6Addr = "fd6d:6f74:6574:1:4d:6f74:6574:1".parse().unwrap();
    let dst: Ipv6Addr = "fd6d:6f74:6574::1".parse().unwrap();
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((len - 40) as u16).to_be_bytes());
    packet.extend([6, hop_limit]);
    packet.extend(src.octets());
    packet.extend(dst.octets());
    packet.extend((40..len).map(|i| (i * 5) as u8));
    packet
}

/// All frames of a packet.
fn frames(packet: &[u8], max: usize, slack: u8) -> Vec<Vec<u8>> {
    let mut buffer = [0; 1280];
    let mut outgoing = Fragmenter::new(&mut buffer);
    outgoing.buffer()[..packet.len()].copy_from_slice(packet);
    outgoing
        .start(
            packet.len(),
            HeaderForms::default(),
            LINK,
            0x1234,
            max,
            slack,
        )
        .unwrap();
    let mut frames = Vec::new();
    let mut out = [0; 127];
    while let Some(len) = outgoing.next(&contexts(), &mut out).unwrap() {
        assert!(len <= max);
        frames.push(out[..len].to_vec());
        assert!(frames.len() < 300, "ends");
    }
    assert!(outgoing.is_idle());
    frames
}

/// The frames' contents put together again.
fn gathered(frames: &[Vec<u8>], link: LinkPair) -> Vec<u8> {
    let mut packet = Vec::new();
    let mut out = [0; 1400];
    let mut restore = |compressed: &[u8], size| {
        let restored = decompress(compressed, link, &contexts(), size, &mut out).unwrap();
        let mut start = out[..restored.uncompressed_len].to_vec();
        start.extend(&compressed[restored.compressed_len..]);
        start
    };
    if let [alone] = frames {
        return restore(alone, None);
    }
    for (nth, frame) in frames.iter().enumerate() {
        let (header, piece) = Header::parse(frame).unwrap();
        assert_eq!((header.is_first(), header.datagram_tag), (nth == 0, 0x1234));
        assert_eq!(
            header.offset_bytes(),
            packet.len(),
            "nothing is missing between"
        );
        match nth {
            0 => packet = restore(piece, Some(header.datagram_size)),
            _ => packet.extend(piece),
        }
        let last = nth + 1 == frames.len();
        assert_eq!(packet.len() == usize::from(header.datagram_size), last);
        assert!(last || packet.len() % 8 == 0);
    }
    packet
}

#[test]
fn what_fits_one_frame_is_not_fragmented() {
    let headers = frames(&packet(40, 64), 104, 0)[0].len();
    let most = 40 + 104 - headers;
    assert_eq!(
        frames(&packet(most, 64), 104, FIRST_SLACK).len(),
        1,
        "slack does not matter"
    );
    assert_eq!(frames(&packet(most + 1, 64), 104, FIRST_SLACK).len(), 2);
}

#[test]
fn a_first_fragment_leaves_slack() {
    let tight = frames(&packet(500, 64), 104, 0);
    let slack = frames(&packet(500, 64), 104, 10);
    assert!(tight[0].len() > 104 - 8 && tight[0].len() <= 104);
    assert!(slack[0].len() > 94 - 8 && slack[0].len() <= 94);
    assert_eq!(slack[1].len(), 5 + 96, "later ones are full");
}

#[test]
fn lengths_that_cannot_be_sent() {
    let mut buffer = [0; 1600];
    let mut outgoing = Fragmenter::new(&mut buffer);
    for len in [0, MESH_PACKET_LEN_MAX + 1, 1601] {
        assert_eq!(
            outgoing.start(len, HeaderForms::default(), LINK, 1, 104, 0),
            Err(FragmentError::BadLength)
        );
    }
    let mut out = [0; 127];
    assert_eq!(outgoing.next(&contexts(), &mut out), Ok(None));
    assert_eq!(
        outgoing.start(60, HeaderForms::default(), LINK, 1, 104, 0),
        Ok(())
    );
    assert_eq!(
        outgoing.next(&contexts(), &mut out),
        Err(FragmentError::Malformed),
        "not IPv6"
    );
    assert!(outgoing.is_idle());
    for max in [0, 3, 8, 12] {
        let packet = packet(200, 64);
        outgoing.buffer()[..200].copy_from_slice(&packet);
        outgoing
            .start(200, HeaderForms::default(), LINK, 1, max, 0)
            .unwrap();
        assert_eq!(
            outgoing.next(&contexts(), &mut out),
            Err(FragmentError::NoRoom),
            "{max}"
        );
        assert!(outgoing.is_idle());
    }
}

#[test]
fn a_lost_fragment_ends_the_packet() {
    let mut buffer = [0; 1280];
    let mut outgoing = Fragmenter::new(&mut buffer);
    outgoing.buffer()[..500].copy_from_slice(&packet(500, 64));
    outgoing
        .start(500, HeaderForms::default(), LINK, 7, 104, 0)
        .unwrap();
    let mut out = [0; 127];
    assert!(outgoing.next(&contexts(), &mut out).unwrap().is_some());
    assert!(!outgoing.abort(8));
    assert!(outgoing.abort(7));
    assert!(!outgoing.abort(7));
    assert_eq!(outgoing.next(&contexts(), &mut out), Ok(None));
}

#[test]
fn a_relay_passes_a_first_fragment_on_within_the_slack() {
    for (slack, fits) in [(FIRST_SLACK, true), (0, false)] {
        // 104 bytes: a first fragment without slack is nearly full.
        let sent = frames(&packet(500, 64), 104, slack);
        let (header, piece) = Header::parse(&sent[0]).unwrap();
        let mut start = [0; 200];
        let size = Some(header.datagram_size);
        let restored = decompress(piece, LINK, &contexts(), size, &mut start).unwrap();
        let payload = &piece[restored.compressed_len..];
        let len = restored.uncompressed_len + payload.len();
        start[restored.uncompressed_len..len].copy_from_slice(payload);
        start[7] -= 1;
        let mut out = [0; 127];
        let onward = forward_first(
            restored.first(&start[..len]),
            header,
            ONWARD,
            &contexts(),
            104,
            &mut out,
        );
        if fits {
            let mut relayed = sent.clone();
            relayed[0] = out[..onward.unwrap()].to_vec();
            assert!(relayed[0].len() > sent[0].len(), "the header grew");
            assert_eq!(gathered(&relayed, ONWARD), packet(500, 63));
        } else {
            assert_eq!(onward, Err(FragmentError::NoRoom));
        }
    }
}

#[test]
fn payload_for_frames_cannot_be_exceeded() {
    assert_eq!(payload_for_frames(0, 104, 20, 60, 0), 0);
    assert_eq!(payload_for_frames(1, 104, 20, 60, 0), 84);
    assert_eq!(
        payload_for_frames(1, 104, 120, 60, 0),
        0,
        "not even the headers fit"
    );
    assert_eq!(payload_for_frames(2, 20, 30, 60, 0), 0);
    assert_eq!(
        payload_for_frames(100, 104, 20, 60, 0),
        1220,
        "IPv6's minimum MTU"
    );
}

proptest! {
    #[test]
    fn fragments_make_the_packet_again(len in 41usize..=1280, max in 60usize..=116, slack in 0u8..12) {
        let packet = packet(len, 64);
        let frames = frames(&packet, max, slack);
        prop_assert_eq!(gathered(&frames, LINK), packet);
    }

    /// The MSS computed from a number of frames fills exactly that many.
    #[test]
    fn payload_for_frames_fills_them(count in 1usize..12, max in 80usize..=116, slack in 0u8..12) {
        let headers = frames(&packet(40, 64), max, 0)[0].len();
        let payload = payload_for_frames(count, max, headers, 40, usize::from(slack));
        prop_assert_eq!(frames(&packet(40 + payload, 64), max, slack).len(), count);
        if 40 + payload < 1280 {
            prop_assert_eq!(frames(&packet(41 + payload, 64), max, slack).len(), count + 1);
        }
    }

    /// Any bytes given as a packet are cut into frames of at most `max` bytes, or refused; then the
    /// fragmenter is idle again.
    #[test]
    fn any_bytes_as_a_packet_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 1..300), max in 0usize..130, slack: u8) {
        let mut buffer = [0; 1280];
        let mut outgoing = Fragmenter::new(&mut buffer);
        outgoing.buffer()[..bytes.len()].copy_from_slice(&bytes);
        outgoing.start(bytes.len(), HeaderForms::default(), LINK, 1, max, slack).unwrap();
        let mut out = [0; 127];
        for _ in 0..400 {
            match outgoing.next(&contexts(), &mut out) {
                Ok(Some(len)) => prop_assert!(len <= max),
                Ok(None) | Err(_) => break,
            }
        }
        prop_assert!(outgoing.is_idle(), "every packet ends");
    }
}
