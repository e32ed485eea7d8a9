//! Spinel: examples of the protocol, a dialogue with OpenThread's radio from the shared data, which
//! `MOTET_SHARED` names, and damage of every kind. The crate `motet-spinel` is the judge.

use std::io::Cursor;
use std::path::PathBuf;

use motet_spinel::frame::{Command, Frame as SpinelFrame, Property, Status as SpinelStatus};
use motet_spinel::hdlc;
use motet_spinel::packed::Reader;
use motet_spinel::raw::{ReceivedFrame, Request};
use proptest::prelude::*;

use super::super::capture::{Capture, CaptureError, LinkType, Record};
use super::super::model::{Frame, Status, Value};
use super::super::{Decoder, Look};
use super::{decoded, field, frame as echo_request};

const USER: LinkType = LinkType(147);

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |n| u8::from_str_radix(&hex[n..n + 2], 16).expect("digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn encoded(frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    hdlc::encode(frame, &mut out);
    out
}

/// Explains what a serial line carried.
fn of_line(line: &[u8]) -> Vec<Frame> {
    let input = Box::new(Cursor::new(line.to_vec()));
    let capture = Capture::of_serial_line(input).expect("no capture");
    let mut decoder = Decoder::new(&[]);
    let records = capture.map(|record| record.expect("memory is read"));
    records.map(|record| decoder.decode(&record)).collect()
}

/// Explains bare frames of one capture.
fn of_frames(frames: &[Vec<u8>]) -> Vec<Frame> {
    let mut decoder = Decoder::new(&[]);
    let record = |data: &Vec<u8>| Record {
        epoch_ns: 0,
        link_type: USER,
        original_len: data.len() as u32,
        data: data.clone(),
    };
    let frames = frames.iter().map(|data| decoder.decode(&record(data)));
    frames.collect()
}

fn layers(frame: &Frame) -> Vec<&str> {
    frame.layers.iter().map(|layer| layer.name).collect()
}

fn title(frame: &Frame) -> &str {
    let layer = frame.layers.iter().find(|layer| layer.name == "spinel");
    &layer.expect("it is Spinel").title
}

fn text(frame: &Frame) -> String {
    let mut out = Vec::new();
    Look::PLAIN.frame(&mut out, frame).expect("memory");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn every_number_that_the_host_knows_has_a_name() {
    for number in 0..0x2000 {
        let (name, _) = explained_name(6, number, &[1; 30]);
        if !matches!(Property::from(number), Property::Other(_)) {
            assert!(!name.contains("property 0x"), "{number:#x}");
        }
        let status = SpinelFrame {
            header: Default::default(),
            command: Command::Is,
            property: Property::LastStatus,
            value: &motet_spinel::packed::Writer::new().packed(number).finish(),
        };
        let frame = decoded(USER, &status.emit());
        assert_eq!(
            field(&frame, "spinel", "status"),
            &Value::Number(number.into())
        );
        let is_named = !text(&frame).contains(&format!("status {number}"));
        if !matches!(SpinelStatus::from(number), SpinelStatus::Other(_)) {
            assert!(is_named, "{}", text(&frame));
        }
    }
    for command in 0..9 {
        let (name, _) = explained_name(command, 2, &[]);
        assert!(!name.contains("command"), "{command}");
    }
    let (name, status) = explained_name(9, 2, &[]);
    assert_eq!(name, "command 9");
    assert!(matches!(status, Status::Undecoded(_)), "{status:?}");
}

/// The title of a frame, and how far it is explained.
fn explained_name(command: u32, property: u32, value: &[u8]) -> (String, Status) {
    let data = motet_spinel::packed::Writer::new()
        .u8(0x81)
        .packed(command)
        .packed(property)
        .rest(value)
        .finish();
    let frame = decoded(USER, &data);
    (title(&frame).to_owned(), frame.status)
}

#[test]
fn values_are_read_by_their_form() {
    for (data, words) in [
        ("800102", "RESET, kind stack (2)"),
        ("80060072", "IS LAST_STATUS, status RESET_SOFTWARE (114)"),
        ("810201", "GET PROTOCOL_VERSION, tid 1"),
        ("8106010403", "IS PROTOCOL_VERSION, tid 1, major 4, minor 3"),
        (
            "8206024f50454e5448524541442f3b2053494d554c4154494f4e00",
            "version OPENTHREAD/; SIMULATION",
        ),
        ("83060303", "type Thread (3)"),
        (
            "840605050c182281044041",
            "caps COUNTERS (5), UNSOL_UPDATE_FILTER (12), 802_15_4_2450MHZ_OQPSK (24)",
        ),
        ("85060818b4300000000001", "address 18:b4:30:00:00:00:00:01"),
        ("8606b0010b", "IS RCP_API_VERSION, tid 6, version 11"),
        ("88068b247f", "radio caps ACK timeout, energy scan, retries"),
        ("8906220b0c1a", "channels 11, 12, 26"),
        ("8b0624b6", "threshold -74 dBm"),
        ("8d068210e3e9174400000000", "clock 1142417891 µs"),
        ("8503210f", "SET PHY_CHAN, tid 5, channel 15"),
        ("860336cdab", "pan 0xabcd"),
        ("870335feff", "address 0xfffe"),
        ("89033802", "mode full (2)"),
        ("8903370100", "enabled yes, further 00"),
        ("8a04842601000200", "addresses 0x0001, 0x0002"),
        ("b1062000", "interface 3"),
        ("8006390bc4", "channel 11, rssi max -60 dBm"),
        ("8006706173736572740a", "text assert"),
        ("8a0381100a00000001", "counter 10, only if larger yes"),
    ] {
        let frame = decoded(USER, &bytes(data));
        assert_eq!(frame.status, Status::Decoded, "{data}");
        // Long lines are folded.
        let shown = text(&frame).replace(",\n           ", ", ");
        assert!(shown.contains(words), "{words}:\n{shown}");
        let json = serde_json::to_string(&frame).expect("serializable");
        assert!(json.contains("\"layer\":\"spinel\""), "{json}");
    }
}

#[test]
fn keys_are_not_shown() {
    let key = "00112233445566778899aabbccddeeff";
    let data = bytes(&format!("81038010080110 00{key}1000{key}1000{key}").replace(' ', ""));
    let frame = decoded(USER, &data);
    assert_eq!(frame.status, Status::Decoded);
    let json = serde_json::to_string(&frame).expect("serializable");
    assert!(json.contains("16 B, not shown"), "{json}");
    for len in 0..=data.len() {
        let frame = decoded(USER, &data[..len]);
        let json = serde_json::to_string(&frame).expect("serializable");
        for shown in [text(&frame), json] {
            assert!(
                !shown.contains("0011") && !shown.contains("00 11"),
                "{shown}"
            );
        }
    }
}

#[test]
fn an_answer_names_its_request_and_holds_the_ack() {
    let request =
        bytes("8c03711000618807cdab0200010068656c6c6f00000f04000100000100000000000000000f");
    let report =
        bytes("8c060000010005001200079244008000000a000f009d3721440000000001000005000000000000");
    let refused = bytes("8c0600110000");
    let frames = of_frames(&[
        request.clone(),
        report.clone(),
        report.clone(),
        request,
        refused,
    ]);
    let [sent, acked, twice, _, failed] = frames.as_slice() else {
        panic!("{} frames", frames.len())
    };
    assert_eq!(title(sent), "SET STREAM_RAW");
    assert_eq!(layers(sent)[..2], ["spinel", "mac"]);
    assert_eq!(field(sent, "spinel", "channel"), &Value::Number(15));
    assert_eq!(field(sent, "spinel", "secured"), &Value::Bool(true));
    assert_eq!(field(sent, "mac", "seq"), &Value::Number(7));
    assert_eq!(field(sent, "mac", "fcs_ok"), &Value::Null);
    assert_eq!(field(acked, "spinel", "answers_frame"), &Value::Number(1));
    assert_eq!(field(acked, "mac", "acknowledges"), &Value::Number(1));
    assert_eq!(field(acked, "mac", "fcs_ok"), &Value::Bool(true));
    assert_eq!(acked.status, Status::Decoded, "{}", text(acked));
    // A second answer has no request any more, and is read all the same.
    assert_eq!(field(twice, "spinel", "answers_frame"), &Value::Null);
    assert_eq!(layers(twice), ["spinel", "mac"]);
    assert!(
        text(failed).contains("status NO_ACK (17)"),
        "{}",
        text(failed)
    );
    assert_eq!(field(failed, "spinel", "answers_frame"), &Value::Number(4));
    assert_eq!(failed.path, "radio → host");
}

/// A frame as a radio hands it out.
fn heard<'a>(psdu: &'a [u8], flags: u16) -> ReceivedFrame<'a> {
    ReceivedFrame {
        psdu,
        rssi_dbm: -71,
        noise_dbm: -128,
        flags: motet_spinel::raw::Flags(flags),
        channel: 26,
        lqi: 200,
        sfd_us: Some(1_234_567),
        error: 0,
    }
}

fn is_stream(heard: &ReceivedFrame<'_>) -> Vec<u8> {
    let value = heard.write(motet_spinel::packed::Writer::new()).finish();
    let frame = SpinelFrame {
        header: Default::default(),
        command: Command::Is,
        property: Property::StreamRaw,
        value: &value,
    };
    frame.emit()
}

#[test]
fn a_received_frame_goes_on_to_the_layers_above() {
    let psdu = echo_request();
    let reference = decoded(LinkType::IEEE802154, &psdu);
    let spinel = is_stream(&heard(&psdu, 0x10));
    for (link_type, data) in [
        (USER, spinel.clone()),
        (LinkType(162), encoded(&spinel)),
        (LinkType::NULL, spinel.clone()),
        (LinkType::NULL, encoded(&spinel)),
        (LinkType::SERIAL_LINE, encoded(&spinel)),
        // The flag before is that which ended another frame.
        (LinkType::SERIAL_LINE, encoded(&spinel)[1..].to_vec()),
    ] {
        let frame = decoded(link_type, &data);
        assert_eq!(frame.summary, reference.summary, "{link_type:?}");
        assert_eq!(frame.status, reference.status, "{link_type:?}");
        assert_eq!(frame.layers.last(), reference.layers.last());
        assert_eq!(field(&frame, "mac", "fcs_ok"), &Value::Bool(true));
        for (key, value) in [
            ("rssi_dbm", Value::Signed(-71)),
            ("noise_dbm", Value::Null),
            ("channel", Value::Number(26)),
            ("lqi", Value::Number(200)),
            ("sfd_us", Value::Number(1_234_567)),
            ("flags", Value::Number(0x10)),
        ] {
            assert_eq!(field(&frame, "spinel", key), &value, "{key}");
        }
    }
}

#[test]
fn bytes_in_place_of_the_fcs_are_no_error_but_a_wrong_fcs_is() {
    let mut psdu = echo_request();
    let last = psdu.len() - 1;
    psdu[last] ^= 0xff;
    let replaced = decoded(USER, &is_stream(&heard(&psdu, 0)));
    let reference = decoded(LinkType::IEEE802154, &echo_request());
    assert_eq!(replaced.status, reference.status, "{}", text(&replaced));
    assert_eq!(field(&replaced, "mac", "fcs_ok"), &Value::Null);
    let wrong = decoded(USER, &is_stream(&heard(&psdu, 4)));
    assert!(matches!(wrong.status, Status::Malformed(_)));
    assert_eq!(field(&wrong, "mac", "fcs_ok"), &Value::Bool(false));
}

#[test]
fn loopback_packets_are_ip() {
    let src = super::mesh::link_local(super::mesh::A);
    let packet = super::mesh::datagram(src, src, 9_999, b"hello");
    let reference = decoded(LinkType::IPV6, &packet);
    for family in [
        [30, 0, 0, 0],
        [24, 0, 0, 0],
        [28, 0, 0, 0],
        [10, 0, 0, 0],
        [0, 0, 0, 30],
    ] {
        let frame = decoded(LinkType::NULL, &[&family[..], &packet].concat());
        assert_eq!(frame.summary, reference.summary, "{family:?}");
        assert_eq!(frame.status, Status::Decoded, "{family:?}");
    }
    let other = decoded(LinkType::NULL, &[7, 0, 0, 0, 1, 2]);
    assert!(matches!(other.status, Status::Undecoded(_)));
    let short = decoded(LinkType::NULL, &[2, 0, 0]);
    assert!(matches!(short.status, Status::Malformed(_)));
}

/// What becomes of a frame, in a word and a reason.
fn outcome(frame: &Frame) -> (&str, &str) {
    let problem = frame.status.problem();
    (
        frame.status.name(),
        problem.map_or("", |problem| problem.reason.as_str()),
    )
}

#[test]
fn noise_is_shown_and_the_next_frame_found() {
    let get = encoded(&[0x81, 2, 1]);
    let mut damaged = get.clone();
    damaged[2] ^= 4;
    let long = vec![0x55; 100_000];
    let line = [
        &b"boot: ok\r\n"[..],
        &get,
        &damaged,
        &[0x7e, 0x7e, 0x7e, 0x7e, 1, 0x7e, 1, 2, 3, 0x7e],
        &[0x7e, 0x81, 2, 0x7d],
        &get,
        &[0x7e],
        &long,
        &get,
        // One flag between two.
        &get[1..],
        &get[..4],
    ]
    .concat();
    let frames = of_line(&line);
    let ok = ("decoded", "");
    let wrong = ("malformed", "check sum wrong");
    let short = ("malformed", "shorter than a Spinel frame");
    let found: Vec<_> = frames.iter().map(outcome).collect();
    let expected = [
        wrong,
        ok,
        wrong,
        short,
        short,
        short,
        ok,
        ("undecoded", "longer than any Spinel frame, 1,300 B"),
        // The flag that ended the noise began the frame.
        ok,
        ok,
        ("malformed", "shorter than a Spinel frame"),
    ];
    assert_eq!(found, expected);
    assert!(
        text(&frames[0]).contains("boot: ok"),
        "{}",
        text(&frames[0])
    );
    assert!(frames[2].summary.contains("Spinel frame, damaged"));
    assert_eq!(frames[7].original_len, 100_002);
    assert!(frames[7].captured_len <= 4_096);
}

#[test]
fn bytes_behind_a_frame_are_not_passed_over_in_silence() {
    let get = encoded(&[0x81, 2, 1]);
    let frame = decoded(USER, &[&get[..], &get].concat());
    assert_eq!(
        outcome(&frame),
        ("undecoded", "more bytes behind the frame")
    );
    assert_eq!(title(&frame), "GET PROTOCOL_VERSION");
    // The flag at the end may be missing, if the check sum is right.
    let frame = decoded(USER, &get[..get.len() - 1]);
    assert_eq!(outcome(&frame), ("decoded", ""));
    let frame = decoded(USER, &get[..get.len() - 2]);
    assert_eq!(outcome(&frame), ("malformed", "cut off: no flag ends it"));
}

#[test]
fn a_capture_is_no_serial_line_and_the_other_way_round() {
    let pcap = super::pcap(false, false, 147, &[0x81, 2, 1]);
    let refused = Capture::of_serial_line(Box::new(Cursor::new(pcap.clone())));
    assert!(matches!(refused, Err(CaptureError::NoLine)));
    let frame = Decoder::new(&[]).decode(&super::records(pcap).expect("a capture")[0]);
    assert_eq!(title(&frame), "GET PROTOCOL_VERSION");
    let refused = Capture::of_bytes(encoded(&[0x81, 2, 1])).err();
    let words = refused.expect("no capture").to_string();
    assert!(words.contains("--spinel"), "{words}");
    assert!(of_line(&[]).is_empty());
    assert!(of_line(&[0x7e; 5_000]).is_empty());
}

/// The dialogue of a host with two radios of OpenThread. `None`: it is not there.
fn dialogue() -> Option<Vec<Vec<u8>>> {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let file = root.join("data/captures/thread/spinel-trace.txt");
    let Ok(text) = std::fs::read_to_string(&file) else {
        let ci = std::env::var_os("CI").is_some();
        assert!(!ci, "{} is missing; set MOTET_SHARED", file.display());
        println!("not run: {} is missing; set MOTET_SHARED", file.display());
        return None;
    };
    let hex = |line: &str| bytes(line.split_whitespace().last().expect("a word"));
    let frames: Vec<_> = text.lines().map(hex).collect();
    assert!(frames.len() > 100, "only {} frames", frames.len());
    Some(frames)
}

#[test]
fn a_real_dialogue_is_explained_as_the_host_reads_it() {
    let Some(frames) = dialogue() else {
        return;
    };
    let line: Vec<u8> = frames.iter().flat_map(|frame| encoded(frame)).collect();
    let explained = of_line(&line);
    assert_eq!(explained.len(), frames.len());
    let mut raw = 0;
    for (explained, data) in explained.iter().zip(&frames) {
        let frame = SpinelFrame::parse(data).expect("a frame");
        let command = field(explained, "spinel", "command");
        assert_eq!(command, &Value::Number(frame.command.number().into()));
        let has_property = frame.command != Command::Reset;
        if has_property {
            let property = field(explained, "spinel", "property");
            assert_eq!(property, &Value::Number(frame.property.number().into()));
        }
        // The frames are of a host's making, and their payload is no 6LoWPAN.
        let at_spinel = explained.status.problem().map(|problem| problem.layer);
        assert!(
            !matches!(at_spinel, Some("spinel" | "hdlc")),
            "{explained:?}"
        );
        match (frame.command, frame.property) {
            (Command::Is, Property::StreamRaw) => {
                let heard = ReceivedFrame::read(&mut Reader::new(frame.value)).expect("a frame");
                let expect = |key, value: Value| {
                    assert_eq!(field(explained, "spinel", key), &value, "{key}");
                };
                expect("rssi_dbm", heard.rssi_dbm.into());
                expect("channel", heard.channel.into());
                expect("lqi", heard.lqi.into());
                expect("sfd_us", heard.sfd_us.expect("a time").into());
                expect("flags", heard.flags.0.into());
                assert_eq!(field(explained, "mac", "fcs_ok"), &Value::Bool(true));
                raw += 1;
            }
            (Command::Set, Property::StreamRaw) => {
                let request = Request::parse(frame.value).expect("a request");
                let expect = |key, value: Value| {
                    assert_eq!(field(explained, "spinel", key), &value, "{key}");
                };
                expect("channel", request.channel.into());
                expect("retries_max", request.retries_max.into());
                expect("csma", request.csma.into());
                expect("secured", request.is_secured.into());
                assert!(layers(explained).contains(&"mac"));
                raw += 1;
            }
            _ => {}
        }
    }
    assert!(raw > 20, "only {raw} frames of 802.15.4");
}

#[test]
fn a_frame_cut_anywhere_is_explained_or_says_where_it_ends() {
    let psdu = echo_request();
    let mut frames = vec![
        is_stream(&heard(&psdu, 0x30)),
        bytes("8c060000010005001200079244008000000a000f009d3721440000000001000005000000000000"),
        bytes("85060818b4300000000001"),
        bytes("8606b0010b"),
        bytes("8a0381100a00000001"),
    ];
    frames.extend(dialogue().unwrap_or_default());
    for whole in frames {
        for len in 0..whole.len() {
            let frame = decoded(USER, &whole[..len]);
            let status = &frame.status;
            let in_header = len < 2;
            let is_malformed = matches!(status, Status::Malformed(_));
            assert!(is_malformed || !in_header, "{len}: {}", text(&frame));
            assert!(!frame.summary.chars().any(char::is_control));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_bytes_of_a_line_are_explained(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..80),
                (0_u8..16, 0_u32..12, 0_u32..0x1400, prop::collection::vec(any::<u8>(), 0..60))
                    .prop_map(|(tid, command, property, value)| encoded(
                        &motet_spinel::packed::Writer::new()
                            .u8(0x80 | tid).packed(command).packed(property).rest(&value).finish()
                    )),
            ],
            0..12,
        ),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut line = pieces.concat();
        for (at, byte) in changes {
            if !line.is_empty() {
                let at = at.index(line.len());
                line[at] = byte;
            }
        }
        prop_assume!(Capture::of_serial_line(Box::new(Cursor::new(line.clone()))).is_ok());
        let frames = of_line(&line);
        let bytes: usize = frames.iter().map(|frame| frame.captured_len).sum();
        prop_assert!(bytes <= line.len());
        for frame in &frames {
            prop_assert!(!frame.summary.is_empty());
            prop_assert!(!frame.summary.chars().any(char::is_control));
            let shown = text(frame);
            prop_assert!(!shown.chars().any(|letter| letter.is_control() && letter != '\n'));
            serde_json::to_string(frame).expect("serializable");
        }
    }

    /// What the host's own decoder takes for frames is explained as frames, and nothing else is.
    #[test]
    fn frames_are_those_that_the_host_finds(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..30),
                prop::collection::vec(any::<u8>(), 2..30).prop_map(|frame| encoded(&frame)),
            ],
            0..12,
        ),
    ) {
        // A last flag ends what is left: the host waits for it, and `decode` does not.
        let line = [&pieces.concat()[..], &[0x7e]].concat();
        prop_assume!(Capture::of_serial_line(Box::new(Cursor::new(line.clone()))).is_ok());
        let mut decoder = hdlc::Decoder::default();
        let (mut rest, mut expected) = (&line[..], 0);
        while decoder.next(&mut rest).is_some() {
            expected += 1;
        }
        let is_frame = |frame: &&Frame| {
            frame.layers.iter().any(|layer| {
                layer.fields.iter().any(|field| {
                    field.key == "crc_ok" && field.value == Value::Bool(true)
                })
            })
        };
        prop_assert_eq!(of_line(&line).iter().filter(is_frame).count(), expected);
    }
}
