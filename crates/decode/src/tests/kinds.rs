//! Every kind of capture around the same frames, judged by tshark where it is installed.

use std::process::Command;

use motet::wire::ieee802154::fcs;

use super::super::{Capture, Decoder, Ending, Frame, Status};
use super::{FRAME, field, with_fcs};

/// A pcap file of these records, 10 ms apart.
fn pcap(link_type: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend(word.to_le_bytes());
    }
    for (at, record) in (0_u32..).zip(records) {
        let len = record.len() as u32;
        for word in [1, at * 10_000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(record);
    }
    file
}

fn frames(file: &[u8]) -> Vec<Frame> {
    let mut capture = Capture::of_bytes(file.to_vec()).unwrap();
    let mut decoder = Decoder::new(&[]);
    decoder.end_frames_in(capture.ending());
    capture
        .map(|record| decoder.decode(&record.unwrap()))
        .collect()
}

/// Frames without FCS: an echo request, data requests and acknowledgments.
fn mpdus() -> Vec<Vec<u8>> {
    let echo = |seq: u8| {
        let mut echo = FRAME[..FRAME.len() - 2].to_vec();
        echo[2] = seq;
        // Both addresses are link-local, of ::1 and ::2.
        let (header, body) = echo.split_at_mut(24);
        let words = body.chunks(2).map(|pair| {
            let [high, low] = [pair[0], *pair.get(1).unwrap_or(&0)];
            u32::from(u16::from_be_bytes([high, low]))
        });
        let sum = words.sum::<u32>() + 2 * 0xfe80 + 3 + 58 + body.len() as u32;
        let folded = (sum & 0xffff) + (sum >> 16);
        body[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        assert_eq!(header.len(), 24);
        echo
    };
    let request = |seq| vec![0x63, 0x88, seq, 0xcd, 0xab, 1, 0, 2, 0, 4];
    let ack = |seq| vec![0x02, 0x00, seq];
    (0..12)
        .flat_map(|seq| [echo(seq), ack(seq), request(seq), ack(seq)])
        .collect()
}

fn with_metadata(mpdu: &[u8], is_right: bool) -> Vec<u8> {
    let quality = 0x6a | if is_right { 0x80 } else { 0 };
    [mpdu, &[0xd0, quality]].concat()
}

fn sll(hardware: u16, mpdu: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0];
    record.extend(hardware.to_be_bytes());
    record.extend([0, 8, 1, 1, 1, 1, 1, 1, 1, 1, 0x00, 0xf6]);
    [&record, mpdu].concat()
}

fn sll2(hardware: u16, mpdu: &[u8]) -> Vec<u8> {
    let mut record = vec![0x00, 0xf6, 0, 0, 0, 0, 0, 3];
    record.extend(hardware.to_be_bytes());
    record.extend([0, 8, 1, 1, 1, 1, 1, 1, 1, 1]);
    [&record, mpdu].concat()
}

fn ppi(link_type: u32, fields: &[u8], mpdu: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0];
    record.extend((8 + fields.len() as u16).to_le_bytes());
    record.extend(link_type.to_le_bytes());
    [&record, fields, mpdu].concat()
}

fn tap(kind: Option<u8>, mpdu: &[u8]) -> Vec<u8> {
    let tlv = kind.map_or(Vec::new(), |kind| vec![0, 0, 1, 0, kind, 0, 0, 0]);
    let header = [0, 0, 4 + tlv.len() as u8, 0];
    [&header, &tlv[..], mpdu].concat()
}

/// A ZEP datagram in an IPv4 packet.
fn zep(version: u8, has_fcs: u8, psdu: &[u8]) -> Vec<u8> {
    let mut zep = vec![b'E', b'X', version];
    let (before, after) = if version == 1 {
        (&[][..], 7)
    } else {
        (&[1][..], 22)
    };
    zep.extend(before);
    zep.extend([26, 0, 7, has_fcs, 99]);
    zep.extend(vec![0; after]);
    zep.push(psdu.len() as u8);
    zep.extend(psdu);
    let len = zep.len() as u16 + 8;
    let mut packet = vec![0x45, 0];
    packet.extend((len + 20).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    packet.extend([17_754_u16, 17_754, len, 0].map(u16::to_be_bytes).concat());
    [packet, zep].concat()
}

/// A kind of capture: its name, its link type, its records, tshark's options.
type Kind = (&'static str, u32, Vec<Vec<u8>>, &'static [&'static str]);

const TI: &[&str] = &["-o", "wpan.fcs_format:TI CC24xx metadata"];
const CRC: &[&str] = &[];

fn kinds() -> Vec<Kind> {
    let of = |wrap: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<Vec<u8>> {
        mpdus().iter().map(|mpdu| wrap(mpdu)).collect()
    };
    let crc = |mpdu: &[u8]| with_fcs(mpdu);
    let ti = |mpdu: &[u8]| with_metadata(mpdu, !mpdu[2].is_multiple_of(5));
    vec![
        ("195", 195, of(&|m| crc(m)), CRC),
        ("195 by TI", 195, of(&|m| ti(m)), TI),
        ("230", 230, of(&|m| m.to_vec()), CRC),
        ("cooked 804", 113, of(&|m| sll(804, &crc(m))), CRC),
        ("cooked 805", 113, of(&|m| sll(805, &crc(m))), CRC),
        ("cooked 805 by TI", 113, of(&|m| sll(805, &ti(m))), TI),
        ("cooked 2, 804", 276, of(&|m| sll2(804, &crc(m))), CRC),
        ("cooked 2, 805", 276, of(&|m| sll2(805, &crc(m))), CRC),
        ("PPI, 195", 192, of(&|m| ppi(195, &[], &crc(m))), CRC),
        (
            "PPI by TI",
            192,
            of(&|m| ppi(195, &[2, 0, 0, 0], &ti(m))),
            TI,
        ),
        ("PPI, 230", 192, of(&|m| ppi(230, &[2, 0, 0, 0], m)), CRC),
        ("TAP", 283, of(&|m| tap(None, m)), CRC),
        ("TAP without FCS", 283, of(&|m| tap(Some(0), m)), CRC),
        ("TAP with FCS", 283, of(&|m| tap(Some(1), &crc(m))), CRC),
        ("ZEP 1", 228, of(&|m| zep(1, 1, &crc(m))), CRC),
        ("ZEP 1 by TI", 228, of(&|m| zep(1, 0, &ti(m))), CRC),
        ("ZEP 2", 228, of(&|m| zep(2, 1, &crc(m))), CRC),
        ("ZEP 2 by TI", 228, of(&|m| zep(2, 0, &ti(m))), CRC),
    ]
}

/// Sequence number, whether the FCS was right, and the command, as tshark's columns have them.
fn ours(frame: &Frame) -> [String; 3] {
    let word = |layer, key| match field(frame, layer, key).to_string() {
        word if word == "true" => "1".to_owned(),
        word if word == "false" => "0".to_owned(),
        word => word,
    };
    let is_request = frame.layers.iter().any(|layer| layer.name == "command");
    let command = if is_request { "0x04" } else { "" };
    [
        word("mac", "seq"),
        word("mac", "fcs_ok"),
        command.to_owned(),
    ]
}

#[test]
fn each_kind_holds_the_same_frames() {
    for (name, link_type, records, _) in kinds() {
        let frames = frames(&pcap(link_type, &records));
        assert_eq!(frames.len(), mpdus().len());
        for (frame, mpdu) in frames.iter().zip(mpdus()) {
            let [seq, fcs, command] = ours(frame);
            assert_eq!(seq, mpdu[2].to_string(), "{name}");
            let is_wrong = name.ends_with("TI") && mpdu[2].is_multiple_of(5);
            assert_eq!(fcs == "0", is_wrong, "{name}: {frame:?}");
            assert_eq!(
                matches!(frame.status, Status::Malformed(_)),
                is_wrong,
                "{name}"
            );
            assert_eq!(command == "0x04", mpdu.len() == 10, "{name}");
        }
    }
}

#[test]
fn tshark_reads_each_kind_alike() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, link_type, records, options) in kinds() {
        let path = folder.path().join("kind.pcap");
        let file = pcap(link_type, &records);
        std::fs::write(&path, &file).unwrap();
        let fields = ["wpan.seq_no", "wpan.fcs_ok", "wpan.cmd"];
        let output = Command::new("tshark")
            .arg("-r")
            .arg(&path)
            .args(options)
            .args(["-T", "fields", "-E", "separator=,", "-E", "occurrence=l"])
            .args(fields.iter().flat_map(|field| ["-e", field]))
            .output()
            .unwrap();
        let theirs = String::from_utf8(output.stdout).unwrap();
        let frames = frames(&file);
        assert_eq!(theirs.lines().count(), frames.len(), "{name}");
        for (frame, theirs) in frames.iter().zip(theirs.lines()) {
            let mut ours = ours(frame);
            if ours[1].is_empty() {
                // Without an FCS tshark calls it right.
                ours[1] = "1".into();
            }
            assert_eq!(ours.join(","), theirs, "{name}");
        }
    }
}

#[test]
fn the_first_frames_show_what_they_end_in() {
    let ending = |link_type, records: &[Vec<u8>]| {
        let mut capture = Capture::of_bytes(pcap(link_type, records)).unwrap();
        let ending = capture.ending();
        assert_eq!(
            capture.count(),
            records.len(),
            "what was read ahead is read"
        );
        ending
    };
    let of = |wrap: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<Vec<u8>> {
        mpdus().iter().map(|mpdu| wrap(mpdu)).collect()
    };
    let wrong = |mpdu: &[u8]| [mpdu, &(fcs(mpdu) ^ 1).to_le_bytes()].concat();
    assert_eq!(ending(195, &of(&with_fcs)), Ending::Crc);
    assert_eq!(
        ending(195, &of(&|m| with_metadata(m, true))),
        Ending::Metadata
    );
    assert_eq!(ending(195, &of(&|m| m.to_vec())), Ending::Nothing);
    assert_eq!(ending(113, &of(&|m| sll(804, m))), Ending::Nothing);
    assert_eq!(ending(192, &of(&|m| ppi(195, &[], m))), Ending::Nothing);
    // Wrong FCSs among right ones, and at their begin.
    let mixed = (0..).zip(mpdus()).map(|(at, mpdu)| match at % 3 {
        0 => wrong(&mpdu),
        _ => with_fcs(&mpdu),
    });
    let mixed: Vec<Vec<u8>> = mixed.collect();
    assert_eq!(ending(195, &mixed), Ending::Crc);
    // Data alone: what is two bytes too long is malformed.
    let data: Vec<Vec<u8>> = mpdus().into_iter().filter(|mpdu| mpdu.len() > 10).collect();
    assert_eq!(ending(195, &data), Ending::Nothing);
    let data: Vec<Vec<u8>> = data.iter().map(|mpdu| with_metadata(mpdu, true)).collect();
    assert_eq!(ending(195, &data), Ending::Metadata);
    assert_eq!(ending(195, &[]), Ending::Crc);
    // A live capture is not waited for: two right frames suffice.
    let mut capture = Capture::of_bytes(pcap(195, &of(&with_fcs))).unwrap();
    assert_eq!(capture.ending(), Ending::Crc);
    assert!(capture.kept(2).is_none());
}

/// A packet of Bluetooth LE with its check sum, from the access address on.
fn ble(address: u32, init: u32, pdu: &[u8]) -> Vec<u8> {
    let check = motet_lab::ble::phy::crc(init, pdu);
    [&address.to_le_bytes(), pdu, &check].concat()
}

fn advertisement() -> Vec<u8> {
    let pdu = [0, 9, 6, 5, 4, 3, 2, 1, 2, 1, 6];
    ble(0x8e89_bed6, 0x55_5555, &pdu)
}

/// A record of link type 256.
fn received(flags: u16, packet: &[u8]) -> Vec<u8> {
    let flags = flags | 3;
    [
        &[0, 0xce, 0x80, 0, 0, 0, 0, 0],
        &flags.to_le_bytes()[..],
        packet,
    ]
    .concat()
}

/// A record of link type 272.
fn sniffed(version: u8, flags: u8, packet: &[u8]) -> Vec<u8> {
    let len = 10 + packet.len() as u8;
    let header = match version {
        0 => vec![0xbe, 0xef, 6, 1, 0, 0, 0, packet.len() as u8],
        1 => vec![1, 6, len, 1, 1, 0, 6, 10],
        _ => vec![1, len, 0, version, 1, 0, 2, 10],
    };
    [&header, &[flags, 37, 50, 0, 0, 0x96, 0, 0, 0][..], packet].concat()
}

#[test]
fn the_receivers_word_on_the_check_sum_counts() {
    let right = advertisement();
    let made_up = [&right[..right.len() - 3], &[0, 0, 0]].concat();
    let cases = [
        (256, received(0xc00, &made_up), false),
        (256, received(0x400, &right), true),
        (256, received(0, &made_up), true),
        (256, received(0, &right), false),
        (251, right.clone(), false),
        (272, sniffed(0, 1, &right), false),
        (272, sniffed(1, 1, &made_up), false),
        (272, sniffed(2, 1, &made_up), false),
        (272, sniffed(3, 1, &made_up), false),
        (272, sniffed(3, 0, &right), true),
    ];
    for (link_type, record, is_wrong) in cases {
        let frame = &frames(&pcap(link_type, &[record]))[0];
        let is_malformed = matches!(frame.status, Status::Malformed(_));
        assert_eq!(is_malformed, is_wrong, "{link_type}: {frame:?}");
        // Also what is wrong is shown.
        let from = field(frame, "ble_ll", "from").to_string();
        assert_eq!(from, "01:02:03:04:05:06");
    }
    let coded = [&right[..4], &[0], &right[4..]].concat();
    let frame = &frames(&pcap(272, &[sniffed(3, 0x21, &coded)]))[0];
    assert!(frame.summary.ends_with("ADV_IND"), "{frame:?}");
}

#[test]
fn the_access_address_decides_what_a_packet_of_unspecified_type_is() {
    let mut connect = vec![5, 34];
    connect.extend([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x11, 0x22, 0x33, 0x44]);
    connect.extend([
        0x66, 0x55, 0x44, 2, 3, 0, 24, 0, 0, 0, 100, 0, 255, 255, 255, 255, 31, 5,
    ]);
    let packets = [
        ble(0x8e89_bed6, 0x55_5555, &connect),
        ble(0x4433_2211, 0x44_5566, &[1, 0]),
        ble(0x4433_2211, 0x44_5566, &[5, 0]),
    ];
    let records = packets.map(|packet| received(0, &packet));
    let mut file = pcap(256, &records);
    // The two packets of an event are 230 µs apart.
    let third = 24 + (16 + records[0].len()) + (16 + records[1].len());
    file[third + 4..third + 8].copy_from_slice(&10_230_u32.to_le_bytes());
    let frames = frames(&file);
    let paths: Vec<&str> = frames.iter().map(|frame| frame.path.as_str()).collect();
    let [central, peripheral] = ["01:01:01:01:01:01", "02:02:02:02:02:02"];
    let there = format!("{central} → {peripheral}");
    let back = format!("{peripheral} → {central}");
    assert_eq!(paths, [&there, &there, &back]);
}

#[test]
fn hostile_headers_are_refused_in_words() {
    let cases: [(u32, Vec<u8>); 8] = [
        (192, vec![0, 0, 4, 0, 195, 0, 0, 0, 1]),
        (192, ppi(192, &[], &ppi(195, &[], &[1]))),
        (192, vec![1, 0, 8, 0, 195, 0, 0, 0]),
        (272, vec![1, 2, 3]),
        (
            272,
            vec![1, 200, 0, 3, 0, 0, 2, 10, 1, 37, 50, 0, 0, 0, 0, 0, 0, 1],
        ),
        (113, vec![0; 15]),
        (256, vec![0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 1]),
        (251, vec![0xd6, 0xbe, 0x89, 0x8e, 0]),
    ];
    for (link_type, record) in cases {
        let frame = &frames(&pcap(link_type, &[record]))[0];
        assert!(frame.status.problem().is_some(), "{link_type}: {frame:?}");
    }
}

/// A data frame of 2006 with long addresses, compressed, with a TCP segment.
fn segment() -> Vec<u8> {
    let mut mpdu = vec![0x61, 0xdc, 7, 0x54, 0x4d];
    mpdu.extend([2, 0, 0, 0, 0, 0, 0, 2]);
    mpdu.extend([1, 0, 0, 0, 0, 0, 0, 2]);
    // IPHC: next header in line, hop limit 64, both addresses elided.
    mpdu.extend([0x7a, 0x33, 6]);
    mpdu.extend([0x9c, 0x40, 0x00, 0x50]);
    mpdu.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0x04, 0, 0, 0, 0, 0]);
    mpdu.extend([b'x'; 20]);
    mpdu
}

/// A field as people read it; nothing where there is none.
fn word(frame: &Frame, layer: &str, key: &str) -> String {
    let mut layers = frame.layers.iter().filter(|found| found.name == layer);
    let fields = layers.next().map(|layer| &layer.fields[..]);
    let mut fields = fields.unwrap_or_default().iter();
    let found = fields.find(|found| found.key == key);
    found.map_or_else(String::new, |field| field.value.to_string())
}

/// A capture of one frame of which so many bytes were kept.
fn cut(link_type: u32, whole: &[u8], len: usize) -> Vec<u8> {
    let mut file = pcap(link_type, &[whole[..len].to_vec()]);
    let original_at = file.len() - len - 4;
    file[original_at..original_at + 4].copy_from_slice(&(whole.len() as u32).to_le_bytes());
    file
}

#[test]
fn a_cut_header_shows_the_fields_that_are_there() {
    let whole = segment();
    let shown = |len: usize| {
        let frame = frames(&cut(230, &whole, len)).remove(0);
        assert!(matches!(frame.status, Status::Undecoded(_)), "{len}");
        let word = |layer, key| word(&frame, layer, key);
        [
            word("mac", "seq"),
            word("mac", "dst"),
            word("mac", "src"),
            word("ipv6", "src"),
            word("tcp", "dst_port"),
        ]
    };
    let [to, from] = [2, 1].map(|n| format!("02:00:00:00:00:00:00:{n:02x}"));
    let (to, from) = (to.as_str(), from.as_str());
    for (len, expected) in [
        (2, ["", "", "", "", ""]),
        (3, ["7", "", "", "", ""]),
        (12, ["7", "", "", "", ""]),
        (13, ["7", to, "", "", ""]),
        (20, ["7", to, "", "", ""]),
        (21, ["7", to, from, "", ""]),
        (24, ["7", to, from, "fe80::1", ""]),
        (28, ["7", to, from, "fe80::1", "80"]),
        (40, ["7", to, from, "fe80::1", "80"]),
    ] {
        assert_eq!(shown(len), expected, "{len}");
    }
}

#[test]
fn a_cut_ipv6_header_names_its_sender() {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
    packet.extend([0xfd; 16]);
    packet.extend([0xfe; 16]);
    packet.extend([0; 20]);
    for (len, src) in [(23, ""), (24, "fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd")] {
        let frame = frames(&cut(229, &packet, len)).remove(0);
        assert_eq!(word(&frame, "ipv6", "src"), src);
        assert_eq!(frame.summary, "IPv6, cut");
    }
}

#[test]
fn a_first_fragment_says_whose_packet_it_begins() {
    let mut mpdu = segment()[..21].to_vec();
    mpdu.extend([0xc0, 100, 0, 9]);
    mpdu.extend(&segment()[21..]);
    let frame = frames(&pcap(230, &[mpdu])).remove(0);
    assert_eq!(frame.status, Status::Fragment);
    for (key, value) in [
        ("packet_src", "fe80::1"),
        ("packet_dst", "fe80::2"),
        ("packet_protocol", "6"),
        ("src_port", "40000"),
        ("dst_port", "80"),
    ] {
        assert_eq!(word(&frame, "fragment", key), value, "{key}");
    }
}

#[test]
fn a_cut_frame_that_is_encrypted_is_not_opened_by_a_guess() {
    // Level 5, key index 1; a payload of ten bytes and a MIC of four.
    let mut whole = vec![0x69, 0x98, 7, 0x54, 0x4d, 2, 0, 1, 0, 0x0d, 1, 0, 0, 0, 1];
    whole.extend([0xee; 14]);
    let frame = frames(&cut(230, &whole, 24)).remove(0);
    let reason = frame
        .status
        .problem()
        .map(|problem| problem.reason.as_str());
    assert_eq!(
        reason,
        Some("the payload is encrypted, and was not captured whole")
    );
    assert!(frame.layers.iter().all(|layer| layer.name != "mic"));
    assert_eq!(word(&frame, "security", "frame_counter"), "1");
}
