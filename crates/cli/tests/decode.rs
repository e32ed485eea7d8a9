//! `motet decode` on captures that nobody of this project made, and on damaged ones.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{assert_refused, folder, motet, said};
use serde_json::Value;

const PLUGTEST: &str = "openthread-plugtest-vectors/frames.pcap";
const RIOT: &str = "riot-zep-tcp/tcp-over-6lowpan-wpan.pcap";
const RIOT_ZEP: &str = "riot-zep-tcp/zep-on-loopback.pcap";

/// A file of the shared captures; where they are not at hand the test says so, but not in CI.
fn capture(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("MOTET_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("data/captures").join(name);
    if path.exists() {
        return Some(path);
    }
    not_run(&format!(
        "{} is not there; set MOTET_SHARED",
        path.display()
    ));
    None
}

fn not_run(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    eprintln!("not run: {why}");
}

fn decode(file: &Path, options: &[&str]) -> Output {
    motet()
        .arg("decode")
        .arg(file)
        .args(options)
        .output()
        .expect("motet starts")
}

/// The frames, each line of the output parsed by itself.
fn frames(file: &Path) -> Vec<Value> {
    let output = decode(file, &["--json"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(output.stderr.is_empty(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn summary(file: &Path) -> Value {
    let output = decode(file, &["--json", "--summary"]);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The innermost layer of a name.
fn layer<'a>(frame: &'a Value, name: &str) -> Option<&'a Value> {
    frame["layers"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .find(|layer| layer["layer"] == name)
}

fn text(frame: &Value) -> &str {
    frame["reason"].as_str().unwrap_or_default()
}

#[test]
fn plugtest_frames_decompress_to_the_given_packets() {
    let Some(file) = capture(PLUGTEST) else {
        return;
    };
    let vectors = fs::read(file.with_file_name("vectors.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_slice(&vectors).unwrap();
    let frames = frames(&file);
    assert_eq!(frames.len(), vectors.len());
    assert_eq!(frames.len(), 8);
    for (frame, vector) in frames.iter().zip(&vectors) {
        let name = &vector["name"];
        assert_eq!(frame["status"], "decoded", "{name}");
        assert_eq!(
            layer(frame, "mac").unwrap()["fcs_ok"],
            vector["fcs_ok"],
            "{name}"
        );
        assert_eq!(
            layer(frame, "ipv6").unwrap()["packet"],
            vector["ipv6"],
            "{name}"
        );
        assert_eq!(
            layer(frame, "icmpv6").unwrap()["checksum_ok"],
            true,
            "{name}"
        );
    }
}

/// The bytes that each end of the first conversation sent, by their place in the stream.
fn streams(frames: &[Value]) -> BTreeMap<u64, Vec<u8>> {
    let mut streams: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for frame in frames {
        let (Some(tcp), Some(payload)) = (layer(frame, "tcp"), layer(frame, "payload")) else {
            continue;
        };
        let data = payload["data"].as_str().unwrap();
        let data: Vec<u8> = (0..data.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&data[at..at + 2], 16).unwrap())
            .collect();
        assert_eq!(tcp["len"], data.len(), "frame {}", frame["frame"]);
        let Some(at) = tcp["seq_relative"].as_u64() else {
            // A repeat of the link: the bytes are counted already.
            assert!(!layer(frame, "mac").unwrap()["repeat_of"].is_null());
            continue;
        };
        let stream = streams
            .entry(tcp["src_port"].as_u64().unwrap())
            .or_default();
        assert_eq!(
            at as usize,
            stream.len() + 1,
            "frame {} is the next in order",
            frame["frame"]
        );
        stream.extend(data);
    }
    streams
}

#[test]
fn the_stream_of_the_riot_capture_is_whole() {
    let Some(file) = capture(RIOT) else { return };
    let frames = frames(&file);
    assert_eq!(frames.len(), 56);
    assert!(
        frames
            .iter()
            .all(|frame| frame["status"] == "decoded" || frame["status"] == "fragment")
    );
    let fragments = frames
        .iter()
        .filter(|frame| frame["status"] == "fragment")
        .count();
    assert_eq!(fragments, 6);

    let last = &frames[40];
    assert_eq!(
        layer(last, "datagram").unwrap()["frames"],
        serde_json::json!([29, 31, 33, 35, 37, 39, 41])
    );
    let tcp = layer(last, "tcp").unwrap();
    assert_eq!(
        (&tcp["len"], &tcp["checksum_ok"]),
        (&600.into(), &true.into())
    );
    assert_eq!(layer(last, "ipv6").unwrap()["payload_len"], 620);

    let streams = streams(&frames);
    assert_eq!(streams.keys().copied().collect::<Vec<_>>(), [45_434]);
    assert_eq!(streams[&45_434].len(), 628);
    assert!(streams[&45_434].starts_with(b"hello-from-riot-over"));
}

#[test]
fn the_conversation_is_summed_up() {
    let Some(file) = capture(RIOT) else { return };
    let Some(zep) = capture(RIOT_ZEP) else { return };
    // ZEP on loopback holds each frame as sent and as passed on: 32 copies, but seven of them
    // are router solicitations to all, which nobody acknowledges.
    for (file, frames, repeats) in [(file, 56, 1), (zep, 111, 25)] {
        let summary = summary(&file);
        assert_eq!(summary["frames"], frames);
        assert_eq!(summary["malformed"], 0);
        assert_eq!(summary["undecoded"], 0);
        assert_eq!(summary["link_repeats"], repeats);
        assert_eq!(summary["incomplete_datagrams"], 0);
        let talks = summary["conversations"].as_array().unwrap();
        let [talk] = talks.as_slice() else {
            panic!("{} conversations", talks.len())
        };
        assert_eq!(talk["client"], "[fe80::1]:45434");
        assert_eq!(talk["server"], "[fe80::2]:8080");
        assert_eq!(talk["ended"], "closed");
        assert_eq!(talk["client_to_server"]["bytes"], 628);
        assert_eq!(talk["client_to_server"]["missing_bytes"], 0);
        assert_eq!(talk["client_to_server"]["retransmissions"], 0);
        assert_eq!(talk["server_to_client"]["bytes"], 0);
    }
}

#[test]
fn zep_carries_the_same_frames() {
    let Some(file) = capture(RIOT_ZEP) else {
        return;
    };
    let Some(reference) = capture(RIOT) else {
        return;
    };
    let frames = frames(&file);
    assert!(
        frames
            .iter()
            .all(|frame| layer(frame, "zep").is_some_and(|zep| zep["channel"] == 26))
    );
    // Nodes send to the hub's port; what comes from it is the hub's copy.
    let sent: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["layers"][2]["dst_port"] == 17_754)
        .collect();
    let reference = self::frames(&reference);
    assert_eq!(sent.len(), reference.len());
    for (zep, plain) in sent.into_iter().zip(&reference) {
        let (mac, expected) = (layer(zep, "mac").unwrap(), layer(plain, "mac").unwrap());
        for key in ["type", "seq", "pan", "src", "dst", "fcs_ok"] {
            assert_eq!(mac[key], expected[key], "{key} of frame {}", plain["frame"]);
        }
    }
}

#[test]
fn frames_that_are_not_read_say_why() {
    let cases = [
        (
            "tcpdump/802_15_4_beacon.pcap",
            "malformed",
            "information elements",
        ),
        ("tcpdump/802_15_4-oobr-1.pcap", "malformed", "FCS wrong"),
        ("tcpdump/802_15_4-oobr-2.pcap", "malformed", "FCS wrong"),
        ("tcpdump/802_15_4-data.pcap", "undecoded", "802.15.4-2015"),
    ];
    for (name, status, reason) in cases {
        let Some(file) = capture(name) else { return };
        let frames = frames(&file);
        assert_eq!(frames.len(), 1, "{name}");
        assert_eq!(frames[0]["status"], status, "{name}");
        assert!(
            text(&frames[0]).contains(reason),
            "{name}: {}",
            frames[0]["reason"]
        );
        let people = decode(&file, &[]);
        assert!(
            String::from_utf8_lossy(&people.stdout).contains(reason),
            "{name}"
        );
    }
}

#[test]
fn rpl_messages_are_named() {
    let cases = [
        ("tcpdump/rpl-14-dao.pcap", "DAO", 1, 1),
        ("tcpdump/rpl-19-pickdag.pcap", "DAO", 42, 10),
        ("tcpdump/rpl-26-senddaoack.pcap", "DAO-ACK", 43, 11),
        ("tcpdump/rpl-dao-oobr.pcap", "DAO", 42, 0),
    ];
    for (name, title, instance, sequence) in cases {
        let Some(file) = capture(name) else { return };
        let frames = frames(&file);
        let rpl = layer(&frames[0], "rpl").unwrap();
        assert_eq!(
            (&rpl["title"], &rpl["instance"], &rpl["sequence"]),
            (&title.into(), &instance.into(), &sequence.into()),
            "{name}"
        );
    }
}

#[test]
fn tcp_over_ipv4_and_cooked_captures_is_read() {
    for (name, frames, client, bytes) in [
        (
            "tcpdump/tcp-handshake-nano.pcap",
            3,
            "131.155.215.69:46656",
            0,
        ),
        (
            "tcpdump/accecn_handshake.pcap",
            6,
            "31.133.146.248:16433",
            78,
        ),
    ] {
        let Some(file) = capture(name) else { return };
        let summary = summary(&file);
        assert_eq!(summary["frames"], frames, "{name}");
        assert_eq!(summary["decoded"], frames, "{name}");
        assert_eq!(summary["conversations"][0]["client"], client, "{name}");
        assert_eq!(
            summary["conversations"][0]["client_to_server"]["bytes"], bytes,
            "{name}"
        );
    }
}

/// What tshark reads from a capture: for each frame the last occurrence of each field.
fn tshark(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(file)
        .args(["-T", "fields", "-E", "occurrence=l", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        not_run("tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(
        text.lines()
            .map(|line| line.split('|').map(str::to_owned).collect())
            .collect(),
    )
}

#[test]
fn tshark_reads_the_same() {
    let fields = [
        ("frame.number", "", "frame"),
        ("wpan.seq_no", "mac", "seq"),
        ("ipv6.src", "ipv6", "src"),
        ("ipv6.dst", "ipv6", "dst"),
        ("ipv6.hlim", "ipv6", "hop_limit"),
        ("icmpv6.type", "icmpv6", "type"),
        ("tcp.seq_raw", "tcp", "seq"),
        ("tcp.ack_raw", "tcp", "ack"),
        ("tcp.seq", "tcp", "seq_relative"),
        ("tcp.ack", "tcp", "ack_relative"),
        ("tcp.window_size_value", "tcp", "window"),
        ("tcp.len", "tcp", "len"),
    ];
    let names: Vec<&str> = fields.iter().map(|(name, ..)| *name).collect();
    for name in [
        PLUGTEST,
        RIOT,
        RIOT_ZEP,
        "tcpdump/accecn_handshake.pcap",
        "tcpdump/tcp-handshake-nano.pcap",
    ] {
        let Some(file) = capture(name) else { return };
        let Some(theirs) = tshark(&file, &names) else {
            return;
        };
        let ours = frames(&file);
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (frame, theirs) in ours.iter().zip(&theirs) {
            let repeat = layer(frame, "mac").is_some_and(|mac| !mac["repeat_of"].is_null());
            for ((their_name, ours_in, key), theirs) in fields.iter().zip(theirs) {
                let ours = match *ours_in {
                    "" => &frame[*key],
                    name => layer(frame, name).map_or(&Value::Null, |layer| &layer[*key]),
                };
                let at = format!("{their_name} of frame {} in {name}", frame["frame"]);
                // tshark counts a frame that the link repeats into the conversation, we do not.
                if repeat && key.ends_with("_relative") {
                    continue;
                }
                // A segment without ACK still has the field; we do not show what means nothing.
                if key.starts_with("ack") && ours.is_null() && (theirs == "0" || theirs.is_empty())
                {
                    continue;
                }
                let ours = match ours {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert_eq!(&ours, theirs, "{at}");
            }
        }
    }
}

#[test]
fn a_truncated_capture_shows_what_is_whole_and_then_says_where_it_ends() {
    let Some(file) = capture(RIOT) else { return };
    let whole = fs::read(&file).unwrap();
    let folder = folder();
    let cut = folder.path().join("cut.pcap");
    // Within the header of the last record, and within its data.
    for missing in [1, 5, 12, 20] {
        fs::write(&cut, &whole[..whole.len() - missing]).unwrap();
        let output = decode(&cut, &["--json"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 55);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains("cut short within record 56"), "{stderr}");
        let people = decode(&cut, &[]);
        assert_eq!(people.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&people.stdout).contains("55 frames"));
    }
    // Within the file's own header.
    for len in [3, 4, 23] {
        fs::write(&cut, &whole[..len]).unwrap();
        assert_refused(
            &decode(&cut, &[]),
            2,
            &["cut.pcap", "cut short within its file header"],
        );
    }
}

#[test]
fn what_is_no_capture_is_refused_in_a_sentence() {
    let folder = folder();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let wifi = [
        &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..],
        &[0; 8],
        &[0, 0, 1, 0, 105, 0, 0, 0],
        &[0; 16],
    ]
    .concat();
    let cases = [
        (file("empty", b""), "the file is empty"),
        (
            file("text", b"This is not a capture.\n"),
            "not a pcap or pcapng capture",
        ),
        (file("gzip", &[0x1f, 0x8b, 8, 0, 0, 0]), "gzip"),
        (file("short", b"hi"), "not a pcap or pcapng capture"),
        (
            file("wifi", &wifi),
            "link type 105 (IEEE802_11) is not supported; supported are IEEE 802.15.4 (195,",
        ),
        (folder.path().to_owned(), "directory"),
        (folder.path().join("absent"), "no such file"),
    ];
    for (path, words) in cases {
        for options in [&[][..], &["--json"]] {
            assert_refused(&decode(&path, options), 2, &["cannot decode", words]);
        }
    }
}

#[test]
fn bad_contexts_are_refused() {
    for wrong in ["16=fd00::/64", "0=fd00::/200", "0", "=", "0=nonsense"] {
        let output = decode(Path::new("absent.pcap"), &["--context", wrong]);
        assert_refused(&output, 2, &["--context"]);
    }
}

#[test]
fn colour_is_for_terminals_and_by_request() {
    let Some(file) = capture(PLUGTEST) else {
        return;
    };
    let coloured = |settings: &[(&str, &str)]| {
        let output = motet()
            .arg("decode")
            .arg(&file)
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(&[]), "a pipe is no terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

/// A pcap file of the same link-local packet, many times: more than a pipe holds.
fn long_capture(folder: &Path) -> PathBuf {
    let mut file = [
        &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..],
        &[0; 8],
        &[0, 0, 1, 0, 101, 0, 0, 0],
    ]
    .concat();
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    packet.extend([0; 32]);
    for second in 0..5_000_u32 {
        for word in [second, 0, 40, 40] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&packet);
    }
    let path = folder.join("long.pcap");
    fs::write(&path, file).unwrap();
    path
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = folder();
    let file = long_capture(folder.path());
    for options in [&[][..], &["--json"]] {
        let mut child = motet()
            .arg("decode")
            .arg(&file)
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("motet starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains('1'), "{line}");
        let status = child.wait().unwrap();
        let mut stderr = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn standard_input_is_read_where_the_file_is_a_dash() {
    let Some(file) = capture(RIOT) else { return };
    let from_file = decode(&file, &["--json"]);
    let output = motet()
        .args(["decode", "-", "--json"])
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .expect("motet starts");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(output.stdout, from_file.stdout);
}
