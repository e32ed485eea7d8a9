//! The dialogue of a host with two simulated RCPs of OpenThread, from the shared data, which
//! `MOTET_SHARED` names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use motet::time::Instant;
use motet_spinel::frame::{Command, Frame, Property, Status};
use motet_spinel::hdlc::{self, Decoder};
use motet_spinel::packed::{Reader, Writer};
use motet_spinel::raw::{ReceivedFrame, Report, Request};
use motet_spinel::{Event, Session};

use crate::bench::SETTINGS;

/// The frames: of which RCP, whether the host wrote it, its bytes. `None`: they are not there.
fn dialogue() -> Option<Vec<(char, bool, Vec<u8>)>> {
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
    let frame = |line: &str| {
        let mut words = line.split_whitespace();
        let rcp = words.next()?.chars().next()?;
        let is_host = words.next()? == ">";
        let hex = words.next()?;
        let digits = |n| u8::from_str_radix(hex.get(n..n + 2)?, 16).ok();
        let bytes = (0..hex.len())
            .step_by(2)
            .map(digits)
            .collect::<Option<_>>()?;
        Some((rcp, is_host, bytes))
    };
    let frames: Vec<_> = text.lines().map(|line| frame(line).expect(line)).collect();
    assert!(frames.len() > 100, "only {} frames", frames.len());
    Some(frames)
}

#[test]
fn a_real_dialogue_is_read_and_written_alike() {
    let Some(frames) = dialogue() else {
        return;
    };
    let mut reports = BTreeMap::new();
    let mut requests = BTreeMap::new();
    let (mut sent, mut heard) = (0, 0);
    for (rcp, is_host, bytes) in &frames {
        let frame = Frame::parse(bytes).expect("a frame");
        assert_eq!(frame.emit(), *bytes);
        assert!(!matches!(frame.command, Command::Other(_)), "{frame:?}");
        assert!(!matches!(frame.property, Property::Other(_)), "{frame:?}");
        let key = (*rcp, frame.header.transaction);
        match (is_host, frame.property) {
            (true, Property::StreamRaw) => {
                let request = Request::parse(frame.value).expect("a request");
                assert_eq!(request.emit(), frame.value);
                assert_eq!((request.channel, request.is_secured), (15, true));
                requests.insert(key, bytes.clone());
                sent += 1;
            }
            (false, Property::StreamRaw) => {
                let mut reader = Reader::new(frame.value);
                let frame_heard = ReceivedFrame::read(&mut reader).expect("a frame heard");
                assert!(reader.is_empty());
                assert_eq!(frame_heard.write(Writer::new()).finish(), frame.value);
                assert_eq!((frame_heard.rssi_dbm, frame_heard.channel), (-20, 15));
                heard += 1;
            }
            (false, Property::LastStatus) if requests.remove(&key).is_some() => {
                let report = Report::parse(frame.value).expect("a report");
                *reports.entry(report.status.number()).or_insert(0) += 1;
                if report.status == Status::Ok {
                    let ack = report.ack.expect("an ACK");
                    assert_eq!(
                        (ack.psdu, report.pending),
                        (&[0x12, 0, 7, 0x92, 0x44][..], true)
                    );
                    assert_eq!(ack.sfd_us, Some(0x4421_379d));
                }
            }
            _ => {}
        }
    }
    assert_eq!((sent, heard), (6, 20));
    assert_eq!(reports, BTreeMap::from([(0, 1), (17, 5)]));
}

#[test]
fn a_session_starts_with_what_a_real_rcp_answered() {
    let Some(frames) = dialogue() else {
        return;
    };
    // What RCP A answered first to each question and setting.
    let mut answers = BTreeMap::new();
    let mut restarts = Vec::new();
    for (_, _, bytes) in frames
        .iter()
        .filter(|(rcp, is_host, _)| *rcp == 'A' && !is_host)
    {
        let frame = Frame::parse(bytes).unwrap();
        match (frame.property, frame.header.transaction) {
            (Property::LastStatus, 0) => restarts.push(bytes.clone()),
            (Property::LastStatus, _) => {}
            (property, _) => {
                answers
                    .entry(property.number())
                    .or_insert(frame.value.to_vec());
            }
        }
    }
    assert_eq!(restarts.len(), 2);
    let mut session = Session::new(SETTINGS);
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    let mut unanswered = Vec::new();
    for turn in 0..100 {
        let now = Instant::from_micros(1_000 * turn);
        let output = session.poll_output(now).to_vec();
        session.on_written(output.len(), now);
        let mut output = &output[..];
        while let Some(bytes) = decoder.next(&mut output) {
            let asked = Frame::parse(bytes).unwrap();
            let mut line = Vec::new();
            if asked.command == Command::Reset {
                restarts
                    .iter()
                    .for_each(|told| hdlc::encode(told, &mut line));
            } else {
                let known = answers.get(&asked.property.number());
                let (property, value) = match known {
                    Some(value) => (asked.property, value.clone()),
                    None => (Property::LastStatus, vec![0]),
                };
                if known.is_none() {
                    unanswered.push(asked.property);
                }
                let answer = Frame {
                    command: Command::Is,
                    property,
                    value: &value,
                    ..asked
                };
                hdlc::encode(&answer.emit(), &mut line);
            }
            session.on_bytes(&line, now);
        }
        events.extend(std::iter::from_fn(|| session.poll_event(now)));
    }
    // The dialogue has neither.
    let tables = [
        Property::SrcMatchEnabled,
        Property::SrcMatchShort,
        Property::SrcMatchExtended,
    ];
    assert_eq!(unanswered, tables);
    let [Event::Ready(radio)] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(
        radio
            .firmware
            .starts_with("OPENTHREAD/; SIMULATION; Nov 27"),
        "{radio:?}"
    );
    assert_eq!((radio.api, radio.capabilities.0), (11, 0x7f));
    assert_eq!(radio.eui64, [0x18, 0xb4, 0x30, 0, 0, 0, 0, 1]);
    assert!(radio.channels.iter().copied().eq(11..=26));
    assert_eq!(session.counters().malformed, 0);
}
