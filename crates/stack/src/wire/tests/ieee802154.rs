use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

fn addr() -> impl Strategy<Value = LinkAddr> {
    prop_oneof![
        any::<u16>().prop_map(LinkAddr::Short),
        any::<[u8; 8]>().prop_map(LinkAddr::Extended),
    ]
}

fn address() -> impl Strategy<Value = Address> {
    (prop_oneof![Just(0x4d54u16), any::<u16>()], addr())
        .prop_map(|(pan_id, addr)| Address { pan_id, addr })
}

fn header() -> impl Strategy<Value = Header> {
    let kind = prop_oneof![
        Just(FrameType::Beacon),
        Just(FrameType::Data),
        Just(FrameType::Ack),
        Just(FrameType::Command)
    ];
    let version = prop_oneof![Just(Version::V2003), Just(Version::V2006)];
    (
        kind,
        version,
        any::<[bool; 3]>(),
        any::<u8>(),
        prop::option::of(address()),
        prop::option::of(address()),
        address(),
    )
        .prop_map(|(frame_type, version, bits, sequence, dst, src, other)| {
            let (dst, src) = match frame_type {
                FrameType::Ack => (None, None),
                FrameType::Beacon => (None, src.or(Some(other))),
                _ => (
                    dst,
                    if dst.is_none() {
                        src.or(Some(other))
                    } else {
                        src
                    },
                ),
            };
            let mut header = Header {
                frame_type,
                version,
                frame_pending: bits[0],
                ack_request: bits[1],
                pan_id_compression: bits[2],
                sequence,
                dst,
                src,
            };
            header.pan_id_compression = header.compresses_pan_id();
            header
        })
}

#[test]
fn fcs_check_value() {
    assert_eq!(fcs(b"123456789"), 0x2189);
    // 802.15.4-2006 §7.2.1.9: the acknowledgment frame of its example.
    assert_eq!(fcs(&[0x02, 0x00, 0x6a]).to_le_bytes(), [0xe4, 0x79]);
}

#[test]
fn ack_frame() {
    let mut out = [0; 8];
    let len = Header::ack(0x56, true).emit_frame(&[], &mut out).unwrap();
    assert_eq!((len, &out[..3]), (ACK_LEN, &[0x12, 0x00, 0x56][..]));
    let (header, payload) = Header::parse(check_fcs(&out[..len]).unwrap()).unwrap();
    assert_eq!((header, payload), (Header::ack(0x56, true), &[][..]));
}

#[test]
fn data_frame_with_extended_addresses_costs_23_bytes_of_mac() {
    let (dst, src) = (LinkAddr::Extended([2; 8]), LinkAddr::Extended([4; 8]));
    let header = Header::data(0x4d54, dst, src, 7);
    assert_eq!(header.header_len() + FCS_LEN, 23);
    assert_eq!(header.payload_len_max(), 104);
    let mut out = [0; 200];
    assert_eq!(header.emit_frame(&[0; 104], &mut out), Ok(127));
    assert_eq!(header.emit_frame(&[0; 105], &mut out), Err(Full));
    assert_eq!(header.emit_frame(&[0; 104], &mut out[..126]), Err(Full));
}

#[test]
fn refused_frames_name_their_reason() {
    let frame = |control: u16, rest: &[u8]| [&control.to_le_bytes()[..], rest].concat();
    let body = [
        1, 0x54, 0x4d, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let data = 0x8841;
    let cases = [
        ("empty", vec![], ParseError::Truncated),
        ("one byte", vec![0x41], ParseError::Truncated),
        (
            "no sequence number",
            frame(data, &[]),
            ParseError::Truncated,
        ),
        (
            "half an address",
            frame(data, &body[..4]),
            ParseError::Truncated,
        ),
        ("type 4", frame(data & !7 | 4, &body), ParseError::FrameType),
        (
            "multipurpose",
            frame(data & !7 | 5, &body),
            ParseError::FrameType,
        ),
        (
            "fragment",
            frame(data & !7 | 6, &body),
            ParseError::FrameType,
        ),
        (
            "extended",
            frame(data & !7 | 7, &body),
            ParseError::FrameType,
        ),
        ("security", frame(data | 8, &body), ParseError::Security),
        (
            "version 2015",
            frame(data | 2 << 12, &body),
            ParseError::Version2015,
        ),
        (
            "version 3",
            frame(data | 3 << 12, &body),
            ParseError::ReservedVersion,
        ),
        (
            "IEs",
            frame(data | 2 << 12 | 1 << 9, &body),
            ParseError::InformationElements,
        ),
        (
            "no sequence",
            frame(data | 2 << 12 | 1 << 8, &body),
            ParseError::SequenceSuppressed,
        ),
        (
            "dst mode 1",
            frame(0x8441, &body),
            ParseError::ReservedAddressingMode,
        ),
        (
            "src mode 1",
            frame(0x4841, &body),
            ParseError::ReservedAddressingMode,
        ),
        (
            "compression without src",
            frame(0x0841, &body),
            ParseError::PanIdCompression,
        ),
        (
            "data without addresses",
            frame(0x0001, &body),
            ParseError::Addressing,
        ),
        (
            "beacon with a destination",
            frame(0x8800, &body),
            ParseError::Addressing,
        ),
        (
            "beacon without a source",
            frame(0x0000, &body),
            ParseError::Addressing,
        ),
        (
            "ACK with an address",
            frame(0x0802, &body),
            ParseError::Addressing,
        ),
        (
            "ACK with a payload",
            frame(0x0002, &[1, 2]),
            ParseError::TrailingBytes,
        ),
    ];
    for (name, mpdu, reason) in cases {
        assert_eq!(Header::parse(&mpdu), Err(reason), "{name}");
        assert!(!reason.reason().is_empty());
    }
    assert!(Header::parse(&frame(data, &body)).is_ok());
    assert_eq!(check_fcs(&[0]), Err(ParseError::Truncated));
    assert_eq!(check_fcs(&[0; 128]), Err(ParseError::TooLong));
    assert_eq!(check_fcs(&[1, 2, 3]), Err(ParseError::Fcs));
}

#[test]
fn commands_of_every_identifier_with_every_length() {
    let lengths: [(u8, &[usize]); 9] = [
        (1, &[1]),
        (2, &[3]),
        (3, &[1]),
        (4, &[0]),
        (5, &[0]),
        (6, &[0]),
        (7, &[0]),
        (8, &[7, 8]),
        (9, &[1]),
    ];
    for (id, legal) in lengths {
        for len in 0..12 {
            let mut payload = vec![id];
            payload.extend((0..len as u8).map(|i| 0xa0 + i));
            let parsed = Command::parse(&payload);
            if legal.contains(&len) {
                let mut out = [0; 16];
                let emitted = parsed.unwrap().emit(&mut out).unwrap();
                assert_eq!(out[..emitted], payload, "command {id}");
            } else {
                assert_eq!(
                    parsed,
                    Err(ParseError::CommandLength),
                    "command {id}, {len} bytes"
                );
            }
        }
    }
    for id in [0, 10, 255] {
        assert_eq!(Command::parse(&[id]), Err(ParseError::CommandId));
    }
    assert_eq!(Command::parse(&[]), Err(ParseError::Truncated));
}

#[test]
fn beacon_with_every_list() {
    let payload = [
        0xff, 0xcf, // no periodic beacons, final slot 15, coordinator, association permitted
        0x82, 0x02, 0x34, 0x12, 0x2e, 0x78, 0x56, 0x1f, // two slots, the second receives
        0x11, 0x01, 0x00, 8, 7, 6, 5, 4, 3, 2, 1, // one short and one extended address
        0xaa, 0xbb,
    ];
    let beacon = Beacon::parse(&payload).unwrap();
    assert_eq!(beacon.superframe.beacon_order, 15);
    assert!(beacon.superframe.pan_coordinator && beacon.superframe.association_permit);
    assert!(!beacon.superframe.battery_life_extension && beacon.gts_permit);
    let slots: Vec<GuaranteedSlot> = beacon.guaranteed_slots().collect();
    let slot = |device, start, len, receive| GuaranteedSlot {
        device,
        start,
        len,
        receive,
    };
    assert_eq!(
        slots,
        [slot(0x1234, 14, 2, false), slot(0x5678, 15, 1, true)]
    );
    let pending: Vec<LinkAddr> = beacon.pending().collect();
    assert_eq!(
        pending,
        [
            LinkAddr::Short(1),
            LinkAddr::Extended([1, 2, 3, 4, 5, 6, 7, 8])
        ]
    );
    assert_eq!(beacon.payload, [0xaa, 0xbb]);
    let mut out = [0; 64];
    let len = beacon.emit(&mut out).unwrap();
    assert_eq!(out[..len], payload);

    for len in 0..payload.len() - 2 {
        assert_eq!(
            Beacon::parse(&payload[..len]),
            Err(ParseError::Truncated),
            "{len} bytes"
        );
    }
    assert_eq!(
        Beacon::parse(&[0, 0, 0, 0x44]),
        Err(ParseError::PendingAddresses)
    );
}

proptest! {
    #[test]
    fn fcs_is_the_shift_register(bytes in prop::collection::vec(any::<u8>(), 0..127)) {
        let bitwise = bytes.iter().fold(0u16, |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x8408 } else { 0 })
        });
        prop_assert_eq!(fcs(&bytes), bitwise);
    }

    #[test]
    fn emitted_headers_parse_back(header in header(), payload in prop::collection::vec(any::<u8>(), 0..80)) {
        let payload = if header.frame_type == FrameType::Ack { &[][..] } else { &payload };
        let mut out = [0; PSDU_LEN_MAX];
        let len = header.emit_frame(payload, &mut out).unwrap();
        prop_assert_eq!(len, header.header_len() + payload.len() + FCS_LEN);
        prop_assert_eq!(Header::parse(check_fcs(&out[..len]).unwrap()), Ok((header, payload)));
    }

    #[test]
    fn what_parses_is_emitted_byte_for_byte(mut bytes in prop::collection::vec(any::<u8>(), 0..140), control in 0u16..=0xffff) {
        if let Some(field) = bytes.first_chunk_mut::<2>() {
            // Bit 7 is reserved and not kept; clear what would refuse most frames.
            *field = (control & !0x0388 & !0x2004).to_le_bytes();
        }
        if let Ok((header, payload)) = Header::parse(&bytes) {
            let mut out = [0; HEADER_LEN_MAX];
            let len = header.emit(&mut out).unwrap();
            prop_assert_eq!(&out[..len], &bytes[..bytes.len() - payload.len()]);
        }
    }

    #[test]
    fn no_parser_panics(bytes in prop::collection::vec(any::<u8>(), 0..140)) {
        let _ = check_fcs(&bytes);
        let _ = Header::parse(&bytes);
        let mut out = [0; 160];
        if let Ok(beacon) = Beacon::parse(&bytes) {
            prop_assert_eq!(beacon.guaranteed_slots().count(), beacon.gts.len());
            let len = beacon.emit(&mut out).unwrap();
            prop_assert_eq!(Beacon::parse(&out[..len]), Ok(beacon));
        }
        if let Ok(command) = Command::parse(&bytes) {
            let len = command.emit(&mut out).unwrap();
            prop_assert_eq!(&out[..len], &bytes);
        }
    }
}
