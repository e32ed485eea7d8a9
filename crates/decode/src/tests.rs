//! Formats of files and link types, and hostile bytes, below the command line.

mod compressed;
mod diagnosis;
mod kinds;
mod mesh;
mod raw;
mod routing;
mod secured;
mod spinel;
mod thread;
mod under;

use std::io::Cursor;

use motet::wire::LinkAddr;
use motet::wire::ieee802154::Header;
use proptest::prelude::*;

use super::capture::{Capture, CaptureError, LinkType, Record};
use super::model::{Frame, Status, Value};
use super::{Context, Decoder, Ending};

/// An ICMPv6 echo request between link-local addresses made of EUI-64s, FCS included.
const FRAME: [u8; 43] = [
    0x61, 0xdc, 0x01, 0x54, 0x4d, 0x02, 0, 0, 0, 0, 0, 0, 0x02, 0x01, 0, 0, 0, 0, 0, 0, 0x02, 0x7a,
    0x33, 0x3a, 0x80, 0x00, 0, 0, 0x12, 0x34, 0, 1, b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7',
    b'8', 0, 0,
];

/// [`FRAME`] with its FCS right.
fn frame() -> Vec<u8> {
    let (mpdu, _) = FRAME.split_at(FRAME.len() - 2);
    with_fcs(mpdu)
}

fn with_fcs(mpdu: &[u8]) -> Vec<u8> {
    let fcs = motet::wire::ieee802154::fcs(mpdu).to_le_bytes();
    [mpdu, &fcs].concat()
}

/// Writes numbers in one byte order.
struct Bytes {
    big: bool,
    out: Vec<u8>,
}

impl Bytes {
    fn u16(mut self, value: u16) -> Self {
        self.out.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.out.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.out.extend(if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        });
        self
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.out.extend_from_slice(bytes);
        self
    }
}

/// A pcap file of one record at 1,700,000,000.000_123_456 s or as near as it can say.
fn pcap(big: bool, nanoseconds: bool, link_type: u32, data: &[u8]) -> Vec<u8> {
    let (magic, fraction) = if nanoseconds {
        (0xa1b2_3c4d, 123_456)
    } else {
        (0xa1b2_c3d4, 123)
    };
    let len = data.len() as u32;
    Bytes {
        big,
        out: Vec::new(),
    }
    .u32(magic)
    .u16(2)
    .u16(4)
    .u32(0)
    .u32(0)
    .u32(65_535)
    .u32(link_type)
    .u32(1_700_000_000)
    .u32(fraction)
    .u32(len)
    .u32(len)
    .put(data)
    .out
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let len = (body.len() + padding.len() + 12) as u32;
    Bytes {
        big,
        out: Vec::new(),
    }
    .u32(kind)
    .u32(len)
    .put(body)
    .put(&padding)
    .u32(len)
    .out
}

/// A pcapng file of one interface and one enhanced packet; `resolution` as `if_tsresol`.
fn pcapng(big: bool, resolution: Option<u8>, units: u64, link_type: u16, data: &[u8]) -> Vec<u8> {
    let bytes = || Bytes {
        big,
        out: Vec::new(),
    };
    let section = bytes()
        .u32(0x1a2b_3c4d)
        .u16(1)
        .u16(0)
        .u32(u32::MAX)
        .u32(u32::MAX)
        .out;
    let mut interface = bytes().u16(link_type).u16(0).u32(0);
    if let Some(resolution) = resolution {
        interface = interface
            .u16(9)
            .u16(1)
            .put(&[resolution, 0, 0, 0])
            .u16(0)
            .u16(0);
    }
    let len = data.len() as u32;
    let packet = bytes()
        .u32(0)
        .u32((units >> 32) as u32)
        .u32(units as u32)
        .u32(len)
        .u32(len)
        .put(data)
        .out;
    let blocks = [
        block(big, 0x0a0d_0d0a, &section),
        block(big, 1, &interface.out),
        // Name resolution: of no interest, passed over.
        block(big, 4, &bytes().u16(0).u16(0).out),
        block(big, 6, &packet),
    ];
    blocks.concat()
}

fn records(file: Vec<u8>) -> Result<Vec<Record>, CaptureError> {
    let mut capture = Capture::new(Box::new(Cursor::new(file)))?;
    let mut records = Vec::new();
    while let Some(record) = capture.next_record() {
        records.push(record?);
    }
    Ok(records)
}

fn decoded(link_type: LinkType, data: &[u8]) -> Frame {
    Decoder::new(&[]).decode(&record(link_type, data))
}

fn record(link_type: LinkType, data: &[u8]) -> Record {
    Record {
        epoch_ns: 0,
        link_type,
        original_len: data.len() as u32,
        data: data.to_vec(),
    }
}

fn field<'a>(frame: &'a Frame, layer: &str, key: &str) -> &'a Value {
    let layer = frame
        .layers
        .iter()
        .find(|found| found.name == layer)
        .expect("the layer is there");
    &layer
        .fields
        .iter()
        .find(|found| found.key == key)
        .expect("the field is there")
        .value
}

#[test]
fn every_kind_of_file_holds_the_same_record() {
    const US: u64 = 1_700_000_000_000_123;
    const NS: u64 = 1_700_000_000_000_123_456;
    let data = frame();
    for big in [false, true] {
        let files = [
            (
                "pcap, microseconds",
                pcap(big, false, 195, &data),
                US * 1_000,
            ),
            ("pcap, nanoseconds", pcap(big, true, 195, &data), NS),
            (
                "pcapng, default unit",
                pcapng(big, None, US, 195, &data),
                US * 1_000,
            ),
            (
                "pcapng, microseconds",
                pcapng(big, Some(6), US, 195, &data),
                US * 1_000,
            ),
            (
                "pcapng, nanoseconds",
                pcapng(big, Some(9), NS, 195, &data),
                NS,
            ),
            (
                "pcapng, 2^-10 s",
                pcapng(big, Some(0x8a), 1_700_000_000 << 10 | 512, 195, &data),
                1_700_000_000_500_000_000,
            ),
        ];
        for (name, file, epoch_ns) in files {
            let records =
                records(file).unwrap_or_else(|error| panic!("{name}, big {big}: {error}"));
            let [record] = records.as_slice() else {
                panic!("{name}: {} records", records.len())
            };
            assert_eq!(record.epoch_ns, epoch_ns, "{name}, big {big}");
            assert_eq!(record.link_type, LinkType(195), "{name}, big {big}");
            assert_eq!(record.data, data, "{name}, big {big}");
            assert_eq!(
                record.original_len as usize,
                data.len(),
                "{name}, big {big}"
            );
        }
    }
}

/// A pcapng file whose section, interface and packet each have an option list of their own.
fn pcapng_with_options(big: bool, lists: [&[u8]; 3], data: &[u8]) -> Vec<u8> {
    let file = pcapng(big, None, 1_500, 195, data);
    let number = |at: usize| {
        let bytes = file[at..at + 4].try_into().expect("four bytes");
        match big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        }
    };
    let mut lists = lists.into_iter();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let (kind, len) = (number(at), number(at + 4) as usize);
        let mut body = file[at + 8..at + len - 4].to_vec();
        // Each kind of block but that of name resolution has a list.
        if kind != 4 {
            body.extend(lists.next().expect("a list per block"));
        }
        out.extend(block(big, kind, &body));
        at += len;
    }
    out
}

fn option(big: bool, code: u16, value: &[u8]) -> Vec<u8> {
    let bytes = Bytes {
        big,
        out: Vec::new(),
    };
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    let bytes = bytes.u16(code).u16(value.len() as u16);
    bytes.put(value).put(&padding).out
}

#[test]
fn an_option_list_may_end_with_its_block() {
    let data = frame();
    for big in [false, true] {
        let end = [0; 4];
        let comment = option(big, 1, b"no mark behind");
        let resolution = option(big, 9, &[9]);
        let offset = option(big, 14, &Bytes { big, out: vec![] }.u64(2).out);
        let flags = option(big, 2, &[0; 4]);
        let interface = [resolution, offset].concat();
        for mark in [&[][..], &end] {
            let lists = [&comment, &interface, &flags].map(|list| [list, mark].concat());
            let lists = lists.each_ref().map(Vec::as_slice);
            let read = records(pcapng_with_options(big, lists, &data)).expect("well formed");
            assert_eq!(read.len(), 1);
            assert_eq!(read[0].epoch_ns, 2_000_001_500);
            assert_eq!(read[0].data, data);
        }
    }
}

#[test]
fn options_of_no_use_to_decode_may_hold_anything() {
    let text = option(false, 1, b"\xff\xfe is no UTF-8");
    // `if_tzone`: four bytes by the draft.
    let zone = option(false, 10, &[0, 0, 0, 1]);
    let data = frame();
    let read = records(pcapng_with_options(false, [&text, &zone, &text], &data));
    assert_eq!(read.expect("well formed").len(), 1);
}

#[test]
fn an_interface_may_be_older_than_1970_but_no_option_longer_than_its_block() {
    let before = option(false, 14, &(-5_i64).to_le_bytes());
    let read = records(pcapng_with_options(false, [&[], &before, &[]], &frame()));
    assert_eq!(read.expect("well formed")[0].epoch_ns, 0);
    let mut long = option(false, 2, b"wpan");
    long[2] = 40;
    let read = records(pcapng_with_options(false, [&[], &long, &[]], &frame()));
    assert!(
        matches!(read, Err(CaptureError::Damaged { .. })),
        "{read:?}"
    );
}

#[test]
fn flags_above_the_link_type_are_not_part_of_it() {
    // FCS length 2, as libpcap stores it for some devices.
    let records = records(pcap(false, false, 0x2400_0000 | 195, &frame())).expect("well formed");
    assert_eq!(records[0].link_type, LinkType(195));
}

#[test]
fn a_file_cut_anywhere_is_an_error_and_never_a_shorter_capture() {
    let data = frame();
    let file = pcap(false, false, 195, &data);
    let whole = records(file.clone()).expect("well formed").len();
    for cut in 0..file.len() {
        match (cut, records(file[..cut].to_vec())) {
            (0, Err(CaptureError::Empty)) | (1..24, Err(CaptureError::HeaderTruncated)) => {}
            // The header alone is a capture without frames.
            (24, Ok(none)) => assert!(none.is_empty()),
            (25.., Err(CaptureError::Truncated { record: 1 })) => {}
            (_, other) => panic!("cut at {cut}: {other:?}"),
        }
    }
    assert_eq!(whole, 1);
    let file = pcapng(false, None, 1, 195, &data);
    let last_block = file.len() - 32 - data.len().next_multiple_of(4);
    for cut in last_block + 1..file.len() {
        assert!(
            matches!(
                records(file[..cut].to_vec()),
                Err(CaptureError::Truncated { record: 1 })
            ),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_frame_longer_than_the_snap_length_is_read() {
    let data = frame();
    let mut file = pcap(false, false, 195, &data[..30]);
    file[16..20].copy_from_slice(&30_u32.to_le_bytes());
    file[36..40].copy_from_slice(&43_u32.to_le_bytes());
    let records = records(file).expect("well formed");
    assert_eq!((records[0].data.len(), records[0].original_len), (30, 43));
    let frame = Decoder::new(&[]).decode(&records[0]);
    assert_eq!(
        field(&frame, "mac", "fcs_ok"),
        &Value::Null,
        "the FCS was not captured"
    );
    assert!(
        !matches!(frame.status, Status::Malformed(_)),
        "{:?}",
        frame.status
    );
}

#[test]
fn a_packet_of_pcapng_is_as_long_as_it_says() {
    let data = frame();
    let mut file = pcapng(false, None, 0, 195, &data);
    // The snap length stands behind the section's block, and type, length and link type.
    file[40..44].copy_from_slice(&13_u32.to_le_bytes());
    let records = records(file).expect("well formed");
    assert_eq!(records[0].data, data);
}

#[test]
fn a_simple_packet_ends_at_its_original_length_or_the_snap_length() {
    let data = frame();
    let simple = |snap_len: u32, kept: usize| {
        let whole = pcapng(false, None, 0, 195, &data);
        // The section's block has 28 bytes, the interface's 20. Its snap length is set anew.
        let mut file = whole[..48].to_vec();
        file[40..44].copy_from_slice(&snap_len.to_le_bytes());
        let body = Bytes {
            big: false,
            out: Vec::new(),
        };
        let body = body.u32(data.len() as u32).put(&data[..kept]).out;
        file.extend(block(false, 3, &body));
        let records = records(file).expect("well formed");
        (records[0].data.clone(), records[0].original_len as usize)
    };
    for (snap_len, kept, shown) in [
        (0, data.len(), data.len()),
        (13, 13, 13),
        // Its writer did not keep to it.
        (13, data.len(), data.len()),
        (65_535, data.len(), data.len()),
    ] {
        let found = simple(snap_len, kept);
        assert_eq!(found, (data[..shown].to_vec(), data.len()), "{snap_len}");
    }
}

#[test]
fn every_link_type_leads_to_the_same_frame() {
    let psdu = frame();
    let mpdu = &psdu[..psdu.len() - 2];
    let phy = [&[0, 0, 0, 0, 0xa7, psdu.len() as u8][..], &psdu].concat();
    // FCS type 1, RSS -71.5 dBm, channel 26 page 0, LQI 200.
    let tap_header = [
        &[0, 0, 36, 0][..],
        &[0, 0, 1, 0, 1, 0, 0, 0],
        &[1, 0, 4, 0, 0, 0, 0x8f, 0xc2],
        &[3, 0, 3, 0, 26, 0, 0, 0],
        &[10, 0, 1, 0, 200, 0, 0, 0],
    ]
    .concat();
    let tap = [&tap_header[..], &psdu].concat();
    let tap_without_fcs = [&[0, 0, 4, 0][..], mpdu].concat();
    let monitor = [&[0xff; 12][..], &[0x00, 0xf6], mpdu].concat();
    let reference = decoded(LinkType::IEEE802154, &psdu);
    assert_eq!(field(&reference, "mac", "fcs_ok"), &Value::Bool(true));
    for (name, link_type, data, fcs) in [
        ("without FCS", LinkType::IEEE802154_NOFCS, mpdu, Value::Null),
        (
            "PHY header",
            LinkType::IEEE802154_NONASK_PHY,
            &phy,
            Value::Bool(true),
        ),
        ("TAP", LinkType::IEEE802154_TAP, &tap, Value::Bool(true)),
        (
            "TAP without FCS",
            LinkType::IEEE802154_TAP,
            &tap_without_fcs,
            Value::Null,
        ),
        ("Linux monitor", LinkType(1), &monitor, Value::Null),
    ] {
        let mut decoder = Decoder::new(&[]);
        if name == "Linux monitor" {
            decoder.end_frames_in(Ending::Nothing);
        }
        let frame = decoder.decode(&record(link_type, data));
        assert_eq!(frame.summary, reference.summary, "{name}");
        assert_eq!(frame.status, reference.status, "{name}");
        assert_eq!(field(&frame, "mac", "fcs_ok"), &fcs, "{name}");
        assert_eq!(frame.layers.last(), reference.layers.last(), "{name}");
    }
    let frame = decoded(LinkType::IEEE802154_TAP, &tap);
    assert_eq!(field(&frame, "tap", "rssi_dbm"), &Value::Real(-71.5));
    assert_eq!(field(&frame, "tap", "channel"), &Value::Number(26));
    assert_eq!(field(&frame, "tap", "lqi"), &Value::Number(200));
}

#[test]
fn malformed_link_headers_say_why() {
    let cases: [(&str, LinkType, &[u8], &str); 9] = [
        (
            "empty PHY",
            LinkType::IEEE802154_NONASK_PHY,
            &[],
            "PHY header truncated",
        ),
        (
            "no delimiter",
            LinkType::IEEE802154_NONASK_PHY,
            &[0, 0, 0, 0, 0xa5, 1, 2],
            "start-of-frame delimiter 0xa5, not 0xa7",
        ),
        (
            "PHY length",
            LinkType::IEEE802154_NONASK_PHY,
            &[0, 0, 0, 0, 0xa7, 5, 2],
            "PHY length 5 exceeds the 1 captured bytes",
        ),
        (
            "TAP header",
            LinkType::IEEE802154_TAP,
            &[0, 0, 9, 0, 1],
            "TAP header length 9 does not fit the record",
        ),
        (
            "TAP length",
            LinkType::IEEE802154_TAP,
            &[0, 0, 3, 0, 1],
            "TAP header length 3 does not fit the record",
        ),
        (
            "TAP TLV",
            LinkType::IEEE802154_TAP,
            &[0, 0, 8, 0, 1, 0, 9, 0],
            "TLV runs beyond the TAP header",
        ),
        (
            "no frame at all",
            LinkType::IEEE802154,
            &[],
            "802.15.4 frame truncated",
        ),
        ("no IP", LinkType(101), &[], "IPv6 header truncated"),
        (
            "IP version",
            LinkType(101),
            &[0x70; 60],
            "IP version is not 6",
        ),
    ];
    for (name, link_type, data, reason) in cases {
        match decoded(link_type, data).status {
            Status::Malformed(problem) => assert_eq!(problem.reason, reason, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_wrong_fcs_is_named_and_nothing_is_learned_from_the_frame() {
    let mut data = frame();
    data[0] ^= 0x20;
    let frame = decoded(LinkType::IEEE802154, &data);
    let Status::Malformed(problem) = frame.status else {
        panic!("{:?}", frame.status)
    };
    assert!(
        problem.reason.starts_with("802.15.4 FCS wrong"),
        "{}",
        problem.reason
    );
}

#[test]
fn repeats_and_acknowledgments_name_their_frame() {
    let mut decoder = Decoder::new(&[]);
    let mut hear = |data: &[u8], epoch_ns| {
        decoder.decode(&Record {
            epoch_ns,
            link_type: LinkType::IEEE802154,
            original_len: data.len() as u32,
            data: data.to_vec(),
        })
    };
    let data = hear(&frame(), 0);
    assert_eq!(field(&data, "mac", "repeat_of"), &Value::Null);
    let again = hear(&frame(), 5_000_000);
    assert_eq!(field(&again, "mac", "repeat_of"), &Value::Number(1));
    // A retry that has learned of another frame behind it.
    let mut more_behind = FRAME[..FRAME.len() - 2].to_vec();
    more_behind[0] |= 0x10;
    let again = hear(&with_fcs(&more_behind), 7_000_000);
    assert_eq!(field(&again, "mac", "repeat_of"), &Value::Number(1));
    // Meanwhile, out of its earshot, another node begins.
    more_behind[2] = 0x77;
    let other = hear(&with_fcs(&more_behind), 7_100_000);
    assert_eq!(field(&other, "mac", "repeat_of"), &Value::Null);
    let ack = hear(&with_fcs(&[0x02, 0x00, 0x01]), 7_800_000);
    assert_eq!(field(&ack, "mac", "acknowledges"), &Value::Number(3));
    let stray = hear(&with_fcs(&[0x02, 0x00, 0x02]), 8_000_000);
    assert_eq!(field(&stray, "mac", "acknowledges"), &Value::Null);
    assert_eq!(decoder.tally.link_repeats, 2);
}

#[test]
fn a_frame_for_all_on_each_channel_is_no_retry() {
    let for_all = Header::data(1, LinkAddr::BROADCAST, LinkAddr::Short(5), 9);
    assert!(!for_all.ack_request);
    let mut psdu = [0; 40];
    let len = for_all.emit_frame(&[0x7a, 0x33, 1], &mut psdu).unwrap();
    let mut decoder = Decoder::new(&[]);
    for channel in 0..16 {
        let frame = decoder.decode(&Record {
            epoch_ns: channel * 2_000_000,
            link_type: LinkType::IEEE802154,
            original_len: len as u32,
            data: psdu[..len].to_vec(),
        });
        let copy_of = (channel > 0).then_some(Value::Number(1));
        let expected = copy_of.unwrap_or(Value::Null);
        assert_eq!(field(&frame, "mac", "repeat_of"), &expected);
    }
    assert_eq!(decoder.tally.link_repeats, 0);
}

#[test]
fn contexts_are_read_from_the_command_line() {
    let context = |id, prefix: &str, len| {
        Ok(Context {
            id,
            prefix: prefix.parse().expect("an address"),
            len,
        })
    };
    assert_eq!(
        str::parse::<Context>("0=fd00::/64"),
        context(0, "fd00::", 64)
    );
    assert_eq!(
        str::parse::<Context>("15=2001:db8::1/128"),
        context(15, "2001:db8::1", 128)
    );
    assert_eq!(str::parse::<Context>("1=fd00::"), context(1, "fd00::", 64));
    for wrong in [
        "",
        "fd00::/64",
        "16=fd00::/64",
        "0=fd00::/129",
        "0=10.0.0.0/8",
        "x=fd00::/64",
    ] {
        assert!(str::parse::<Context>(wrong).is_err(), "{wrong}");
    }
}

const LINK_TYPES: [u32; 13] = [0, 1, 12, 101, 113, 147, 195, 215, 228, 229, 230, 276, 283];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_are_beyond_explanation(
        kind in 0..LINK_TYPES.len(),
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..160), 1..5),
    ) {
        let mut decoder = Decoder::new(&[]);
        for data in frames {
            let record = Record {
                epoch_ns: 0,
                link_type: LinkType(LINK_TYPES[kind]),
                original_len: data.len() as u32,
                data,
            };
            let frame = decoder.decode(&record);
            prop_assert!(!frame.summary.is_empty());
            let json = serde_json::to_string(&frame).expect("serializable");
            prop_assert!(!json.contains('\n'));
        }
    }

    #[test]
    fn damaged_frames_are_explained(
        at in 0usize..41, bit in 0u8..8, len in 1usize..=41, tail in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut mpdu = FRAME[..len].to_vec();
        mpdu.extend(tail);
        if let Some(byte) = mpdu.get_mut(at) {
            *byte ^= 1 << bit;
        }
        let frame = decoded(LinkType::IEEE802154_NOFCS, &mpdu);
        prop_assert!(!frame.summary.chars().any(char::is_control));
    }

    #[test]
    fn no_file_is_beyond_an_answer(
        big: bool,
        ng: bool,
        changes in prop::collection::vec((0usize..200, any::<u8>()), 1..6),
        cut in 0usize..200,
    ) {
        let mut file = if ng {
            pcapng(big, Some(9), 7, 195, &frame())
        } else {
            pcap(big, true, 195, &frame())
        };
        file.truncate(file.len().saturating_sub(cut.saturating_sub(100)));
        for (at, byte) in changes {
            if let Some(there) = file.get_mut(at) {
                *there = byte;
            }
        }
        if let Err(error) = records(file) {
            let sentence = error.to_string();
            prop_assert!(!sentence.is_empty() && !sentence.contains('\n'));
        }
    }
}
