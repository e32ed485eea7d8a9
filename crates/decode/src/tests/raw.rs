//! Frames secured with an AES key of no known network.

use motet::mac::security::{self, LinkKey, Software};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Address, Auxiliary, Level};

use super::super::addresses::Addresses;
use super::super::capture::LinkType;
use super::super::model::{Frame, Value};
use super::super::raw::{Counter, RawKeys, RawSealed};
use super::super::{Decoder, Record, Status};
use super::field;

const KEY: [u8; 16] = [0xa5; 16];
const SENDER: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 1];

fn hear(decoder: &mut Decoder, link_type: LinkType, data: Vec<u8>) -> Frame {
    decoder.decode(&Record {
        epoch_ns: 0,
        link_type,
        original_len: data.len() as u32,
        data,
    })
}

/// A frame from [`SENDER`] in key identifier mode `mode`, with key index 3.
fn sealed(mode: u8, counter: u32) -> Vec<u8> {
    let mut mpdu = vec![0x69, 0xdc, 12, 0xce, 0xfa, 2, 0, 0, 0, 0, 0, 0, 2];
    mpdu.extend(SENDER.iter().rev());
    mpdu.push(5 | mode << 3);
    mpdu.extend(counter.to_le_bytes());
    mpdu.extend(&[9, 9, 9, 9, 9, 9, 9, 9][..[0, 0, 4, 8][usize::from(mode)]]);
    if mode > 0 {
        mpdu.push(3);
    }
    let auxiliary = Auxiliary {
        level: Level::Mic32,
        counter,
        key_index: 3,
    };
    let mut body = b"\x3fclear____".to_vec();
    let cipher = Software::new(&LinkKey::new(KEY));
    security::seal(&cipher, SENDER, auxiliary, &mpdu, &mut body).expect("room for the MIC");
    [mpdu, body].concat()
}

fn is_open(frame: &Frame) -> bool {
    frame
        .status
        .problem()
        .is_some_and(|problem| problem.layer == "lowpan")
}

#[test]
fn a_raw_key_opens_every_key_identifier_mode() {
    for mode in 0..4 {
        let mut decoder = Decoder::new(&[]);
        decoder.open_with_raw([1; 16], None);
        decoder.open_with_raw(KEY, None);
        let frame = hear(&mut decoder, LinkType::IEEE802154_NOFCS, sealed(mode, 1));
        assert!(is_open(&frame), "{mode}: {:?}", frame.status);
    }
}

#[test]
fn a_key_index_limits_a_key_to_its_frames() {
    for (index, mode, opens) in [(3, 1, true), (4, 1, false), (4, 0, true), (3, 2, true)] {
        let mut decoder = Decoder::new(&[]);
        decoder.open_with_raw(KEY, Some(index));
        let frame = hear(&mut decoder, LinkType::IEEE802154_NOFCS, sealed(mode, 1));
        assert_eq!(is_open(&frame), opens, "{index} {mode}: {:?}", frame.status);
        assert!(opens || matches!(frame.status, Status::Undecoded(_)));
    }
}

#[test]
fn a_wrong_key_and_a_changed_frame_stay_closed() {
    let mut decoder = Decoder::new(&[]);
    decoder.open_with_raw([0x5a; 16], None);
    let frame = hear(&mut decoder, LinkType::IEEE802154_NOFCS, sealed(0, 1));
    assert!(!is_open(&frame));
    decoder.open_with_raw(KEY, None);
    let mut changed = sealed(0, 1);
    *changed.last_mut().unwrap() ^= 1;
    assert!(!is_open(&hear(
        &mut decoder,
        LinkType::IEEE802154_NOFCS,
        changed
    )));
}

/// IEEE 802.15.4-2006 annex C.2.2: a data frame at level 4, which has no MIC.
#[test]
fn the_standards_own_example_is_decrypted() {
    let key = std::array::from_fn(|at| 0xc0 + at as u8);
    let sender = [0xac, 0xde, 0x48, 0, 0, 0, 0, 1];
    let mut keys = RawKeys::default();
    keys.add(key, None);
    let sealed = RawSealed {
        sender: Address {
            pan_id: 0x4321,
            addr: LinkAddr::Extended(sender),
        },
        level: 4,
        counter: Counter::Frame(5),
        key_index: None,
        header: &[],
        body: &[0xd4, 0x3e, 0x02, 0x2b],
    };
    let (source, clear) = keys.open(&mut Addresses::default(), sealed).unwrap();
    assert_eq!((source, &clear[..]), (sender, &b"abcd"[..]));
}

/// The example of annex C.2.1, a beacon at level 2: clear, with a MIC of eight bytes.
#[test]
fn a_mic_without_encryption_is_checked() {
    let key = std::array::from_fn(|at| 0xc0 + at as u8);
    let mut beacon = vec![
        0x08, 0xd0, 0x84, 0x21, 0x43, 1, 0, 0, 0, 0, 0x48, 0xde, 0xac,
    ];
    beacon.extend([2, 5, 0, 0, 0, 0x55, 0xcf, 0, 0, 0x51, 0x52, 0x53, 0x54]);
    beacon.extend([0x22, 0x3b, 0xc1, 0xec, 0x84, 0x1a, 0xb5, 0x53]);
    for (changed, right) in [(0, true), (1, false)] {
        let mut beacon = beacon.clone();
        *beacon.last_mut().unwrap() ^= changed;
        let mut decoder = Decoder::new(&[]);
        decoder.open_with_raw(key, None);
        let frame = hear(&mut decoder, LinkType::IEEE802154_NOFCS, beacon);
        assert_eq!(field(&frame, "mic", "right"), &Value::Bool(right));
    }
}

#[test]
fn keys_are_never_shown() {
    let mut decoder = Decoder::new(&[]);
    decoder.open_with_raw(KEY, None);
    let header =
        motet::wire::ieee802154::Header::data(1, LinkAddr::BROADCAST, LinkAddr::Short(5), 9);
    let mut psdu = [0; 60];
    let payload = [&[0x00][..], &KEY].concat();
    let len = header.emit_frame(&payload, &mut psdu).unwrap();
    let frame = hear(&mut decoder, LinkType::IEEE802154, psdu[..len].to_vec());
    assert!(
        frame.layers.iter().any(|layer| layer.name == "hidden"),
        "{frame:?}"
    );
}
