use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn emitted(header: &Header<'_>) -> Vec<u8> {
    let mut out = [0xee; HEADER_LEN_MAX];
    let mut w = Writer::new(&mut out);
    header.emit(&mut w).unwrap();
    let len = w.written();
    out[..len].to_vec()
}

/// PSH, CWR and ECE are carried.
#[test]
fn every_form_round_trips_byte_for_byte() {
    // Name, bytes, length of the TCP header they stand for.
    let cases = [
        ("shortest", "c00005abcd", 20),
        ("low bytes", "c54005112233abcd", 20),
        ("halves and a high byte", "ca80051122334455abcd", 20),
        ("all in line", "cfc0051122334411223344ffffabcd", 20),
        ("mostly compressed", "8fc0051122334411223344ffffabcd", 20),
        ("every flag", "c03c05abcd", 20),
        ("timestamps elided", "c00205abcd00", 32),
        ("timestamps of both widths", "c00205abcd60112233", 32),
        (
            "mostly, with timestamps",
            "8fc2051122334411223344ffffabcdf01122334455667788",
            32,
        ),
        ("four SACK blocks", "c00105abcd0c0001017f80800102ffff", 56),
        ("timestamps and three", "c00305abcd08010203040506", 60),
        ("full", "0105f0b000501000ffc12000ff015010003090db0000", 20),
    ];
    for (name, text, uncompressed) in cases {
        let mut bytes = hex(text);
        let len = bytes.len();
        bytes.extend([0x55; 3]);
        let (header, payload) = Header::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(payload, [0x55; 3], "{name}");
        assert_eq!(header.cid(), 5, "{name}");
        assert_eq!(emitted(&header), bytes[..len], "{name}");
        let expected = Lengths {
            compressed: len,
            uncompressed,
        };
        assert_eq!(lengths(&bytes), Ok(expected), "{name}");
        assert!(is_tcphc(bytes[0]), "{name}");
        for cut in 0..len {
            let expected = match text.as_bytes() {
                [b'0', b'1', ..] if cut >= 22 => ParseError::DataOffset,
                _ => ParseError::Truncated,
            };
            assert_eq!(lengths(&bytes[..cut]), Err(expected), "{name} cut to {cut}");
        }
    }
}

#[test]
fn malformed() {
    use ParseError::*;
    let cases = [
        ("nothing", "", Truncated),
        ("one byte", "c8", Truncated),
        ("no checksum", "c40005", Truncated),
        ("no options byte", "c40305000000", Truncated),
        ("no second half of a number", "c00105abcd000180", Truncated),
        ("MH that elides its window", "8f000500", MostlyModes),
        (
            "MH with short timestamps",
            "8fc2051122334411223344ffffabcd60112233",
            MostlyModes,
        ),
        ("MH that elides Seq", "83c005112233440000abcd", Unknown),
        ("reserved option bit", "c40105aabbccdd0180", Reserved),
        (
            "timestamp modes without T",
            "c00105abcd400001",
            ModesWithoutTimestamps,
        ),
        ("SACK count without S", "c00205abcd04", CountWithoutSack),
        (
            "four blocks beside timestamps",
            "c00305abcd0c0001000100010001",
            TooManyBlocks,
        ),
        ("empty block", "c00105abcd000500", EmptyBlock),
        ("empty block in two bytes", "c00105abcd00058000", NonMinimal),
        (
            "small number in two bytes",
            "c00105abcd00807f01",
            NonMinimal,
        ),
        ("GHC, with C = 1", "d00005", Unknown),
        ("UDP", "f00000", Unknown),
        (
            "FH of zeros",
            "01050000000000000000000000000000000000000000",
            DataOffset,
        ),
        (
            "FH beyond its packet",
            "0105f0b000501000ffc12000ff018010003090db0000",
            DataOffset,
        ),
    ];
    for (name, text, reason) in cases {
        assert_eq!(lengths(&hex(text)), Err(reason), "{name}");
    }
}

/// Options: timestamps and SACK compressed, those of SYNs in full headers.
#[test]
fn canonical_areas() {
    let (ts, sack) = ("0101080a0000000100000002", "0101050a0000000300000004");
    let cases = [
        (String::new(), true),
        (ts.into(), true),
        (sack.into(), true),
        (std::format!("{ts}{sack}"), true),
        (std::format!("{sack}{ts}"), false),
        (std::format!("{ts}{ts}"), false),
        ("01010402".into(), false),
        ("080a00000001000000020101".into(), false),
        ("050a0000000300000004".into(), false),
        ("01010502".into(), false),
        ("01010512000000030000000400000005".into(), false),
    ];
    for (text, canonical) in cases {
        assert_eq!(is_canonical(&hex(&text)), canonical, "{text}");
    }
}

#[test]
fn blocks_that_no_number_tells() {
    let block = |left, right| {
        let mut blocks = SackBlocks::default();
        blocks.push(SackBlock { left, right });
        RelativeBlocks::relative_to(1000, &blocks).map(|b| b.as_slice()[0])
    };
    let told = |offset, len| Some(RelativeBlock { offset, len });
    assert_eq!(block(1000, 1001), told(0, 1));
    assert_eq!(block(33767, 66534), told(32767, 32767));
    assert_eq!(block(999, 1001), None, "D-SACK");
    assert_eq!(block(33768, 33769), None, "far");
    assert_eq!(block(1000, 1000), None, "empty");
    assert_eq!(block(1000, 999), None, "reversed");
    assert_eq!(block(1000, 33768), None, "long");
}

/// Full headers for the opening, resets, URG; whole fields for what is sent again.
#[test]
fn flags_that_fit() {
    let ack = Flags::ACK;
    assert!(are_compressible(ack) && are_compressible(ack | CARRIED));
    for wrong in [
        Flags::EMPTY,
        ack | Flags::SYN,
        ack | Flags::RST,
        ack | Flags::URG,
        ack | Flags::AE,
    ] {
        assert!(!are_compressible(wrong), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn parse_never_panics_and_what_it_yields_is_emitted_byte_for_byte(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..4, tidy: bool,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = match kind { 0 => *first, 1 => 0x01, 2 => 0x8f, _ => *first & 0x0f | 0xc0 };
        }
        if let Some(second) = bytes.get_mut(1).filter(|_| kind == 2) {
            *second |= 0xc0;
        }
        // Options rarely parse by chance: their first byte stands behind 15 bytes in an MH.
        if let Some(modes) = bytes.get_mut(15).filter(|_| tidy) {
            *modes = *modes & 0x0c | 0xf0;
        }
        if let Ok((header, rest)) = Header::parse(&bytes) {
            prop_assert_eq!(&emitted(&header)[..], &bytes[..bytes.len() - rest.len()]);
            prop_assert!(header.uncompressed_len() <= tcp::HEADER_LEN_MAX);
            prop_assert!(is_tcphc(bytes[0]));
        }
    }
}
