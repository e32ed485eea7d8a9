//! Encrypted frames whose sender is named by its short address.

use motet::mac::security::{self, NetworkKey, Software};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Auxiliary, Level};

use super::super::model::{Frame, Status};
use super::mesh::{A, Air, B, PAN};
use super::with_fcs;

pub(super) const KEY: NetworkKey = NetworkKey::new([7; 16]);
pub(super) const SHORT: u16 = 0x2c01;

pub(super) fn eui64(addr: LinkAddr) -> [u8; 8] {
    match addr {
        LinkAddr::Extended(bytes) => bytes,
        _ => panic!("an extended address"),
    }
}

/// A frame from the short address of `owner`, sealed by it; the payload is no 6LoWPAN.
pub(super) fn sealed(pan: u16, owner: LinkAddr, sequence: u32, counter: u32) -> Vec<u8> {
    let auxiliary = Auxiliary {
        level: Level::Mic32,
        counter,
        key_index: security::index(sequence),
    };
    // Data, secured, PAN id once, version 2006, both addresses short.
    let mut mpdu = vec![0x49, 0x98, counter as u8];
    mpdu.extend(pan.to_le_bytes());
    mpdu.extend(0x2c00_u16.to_le_bytes());
    mpdu.extend(SHORT.to_le_bytes());
    mpdu.push(0x0d);
    mpdu.extend(counter.to_le_bytes());
    mpdu.push(auxiliary.key_index);
    let mut body = b"\x3fclear____".to_vec();
    let cipher = Software::new(&KEY.link_key(sequence));
    security::seal(&cipher, eui64(owner), auxiliary, &mpdu, &mut body).expect("room for the MIC");
    mpdu.extend(body);
    with_fcs(&mpdu)
}

pub(super) fn air() -> Air {
    let mut air = Air::new(&[]);
    air.decoder.open_with(KEY, 0);
    air
}

/// Whether the frame's payload is in clear.
pub(super) fn is_open(frame: &Frame) -> bool {
    let Status::Undecoded(problem) = &frame.status else {
        panic!("{:?}", frame.status)
    };
    match problem.layer {
        "lowpan" => true,
        "security" => false,
        other => panic!("{other}: {}", problem.reason),
    }
}

fn reason(frame: &Frame) -> &str {
    &frame.status.problem().expect("a problem").reason
}

#[test]
fn a_short_sender_is_one_of_those_heard_in_its_pan() {
    let mut air = air();
    let closed = air.hear(sealed(PAN, A, 0, 1));
    assert!(!is_open(&closed));
    assert!(reason(&closed).contains("no extended address heard"));
    // Any frame from A and one from another node.
    for src in [A, B] {
        let psdu = air.frame(src, LinkAddr::BROADCAST, &[0]);
        air.hear(psdu);
    }
    assert!(is_open(&air.hear(sealed(PAN, A, 0, 2))));
    assert!(is_open(&air.hear(sealed(PAN, A, 0, 3))));
    // The same addresses in another PAN are other nodes.
    assert!(!is_open(&air.hear(sealed(PAN + 1, A, 0, 4))));
    // The short address is given to another node.
    assert!(is_open(&air.hear(sealed(PAN, B, 0, 5))));
    assert!(is_open(&air.hear(sealed(PAN, B, 0, 6))));
}

#[test]
fn keys_are_followed_over_their_sequences() {
    let mut air = air();
    let psdu = air.frame(A, LinkAddr::BROADCAST, &[0]);
    air.hear(psdu);
    for (counter, sequence) in (10..).zip([0, 1, 5, 60, 120, 180, 181, 180, 179, 300, 301]) {
        let frame = air.hear(sealed(PAN, A, sequence, counter));
        assert!(is_open(&frame), "{sequence}");
    }
    // Far ahead of all that was heard.
    assert!(is_open(&air.hear(sealed(PAN, A, 181 + 9 * 128, 40))));
}

#[test]
fn a_second_look_opens_what_came_too_early() {
    let mut air = air();
    let early = sealed(PAN, A, 200, 1);
    assert!(!is_open(&air.hear(early.clone())));
    // Association response of B: the short address is A's.
    let mut mpdu = vec![0x63, 0xcc, 9];
    mpdu.extend(PAN.to_le_bytes());
    for addr in [A, B] {
        mpdu.extend(eui64(addr).iter().rev());
    }
    mpdu.extend([2, SHORT as u8, (SHORT >> 8) as u8, 0]);
    let frame = air.hear(with_fcs(&mpdu));
    assert_eq!(frame.status, Status::Decoded, "{:?}", frame.layers);
    assert!(is_open(&air.hear(sealed(PAN, A, 200, 2))));
    let mut again = Air::new(&[]);
    again.decoder = air.decoder.rewound();
    assert_eq!(again.decoder.frames(), 0);
    assert!(is_open(&again.hear(early)));
}

#[test]
fn a_wrong_key_opens_nothing_and_is_named() {
    let mut air = Air::new(&[]);
    air.decoder.open_with(NetworkKey::new([8; 16]), 0);
    for src in [A, B] {
        let psdu = air.frame(src, LinkAddr::BROADCAST, &[0]);
        air.hear(psdu);
    }
    for counter in 0..10_000 {
        let frame = air.hear(sealed(PAN, A, 0, counter));
        assert!(!is_open(&frame));
        assert!(reason(&frame).contains("no extended address heard"));
    }
}
