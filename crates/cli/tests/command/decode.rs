//! `motet decode` on captures made outside this project, and on damaged ones.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{assert_refused, folder, motet, objects, said};
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
    objects(&output.stdout)
}

fn summary(file: &Path) -> Value {
    let output = decode(file, &["--json", "--summary"]);
    assert!(output.status.success(), "{}", said(&output));
    let [summary] = objects(&output.stdout).try_into().unwrap();
    summary
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
    // ZEP on loopback holds each frame as sent and as passed on: 32 copies, but seven of them are
    // router solicitations to all, which no node acknowledges.
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
            "information element",
        ),
        ("tcpdump/802_15_4-oobr-1.pcap", "malformed", "FCS wrong"),
        ("tcpdump/802_15_4-oobr-2.pcap", "malformed", "FCS wrong"),
        (
            "tcpdump/802_15_4-data.pcap",
            "undecoded",
            "NHC encoding unknown",
        ),
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

/// Data requests, and what ACKs and data frames say of more that waits.
#[test]
fn tshark_reads_the_same_of_a_mote_that_sleeps() {
    let folder = folder();
    let (file, air) = (folder.path().join("file"), folder.path().join("air.pcap"));
    fs::write(&file, [7; 6_000]).unwrap();
    let sent = motet()
        .args([
            "send",
            "--virtual",
            "--json",
            "--hops=1",
            "--direction=down",
        ])
        .args(["--sleep=adaptive", "--pcap"])
        .args([&air, &file])
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", said(&sent));
    let report: Value = serde_json::from_slice(&sent.stdout).unwrap();
    let duty = report["radio_duty"].as_f64().unwrap();
    assert!(duty > 0.0 && duty < 1.0, "{report}");
    assert!(report["energy_mj"].as_f64().unwrap() > 0.0, "{report}");
    let ours = frames(&air);
    let is_request = |frame: &&Value| {
        layer(frame, "command").is_some_and(|command| command["title"] == "data request")
    };
    let pending = |frame: &Value| layer(frame, "mac").unwrap()["frame_pending"] == true;
    assert!(ours.iter().filter(is_request).count() > 5);
    assert!(ours.iter().filter(|frame| pending(frame)).count() > 5);
    let Some(theirs) = tshark(&air, &["wpan.cmd", "wpan.pending", "wpan.frame_type"]) else {
        return;
    };
    assert_eq!(ours.len(), theirs.len());
    for (frame, theirs) in ours.iter().zip(&theirs) {
        let is_theirs = |text: &str| ["1", "True"].contains(&text);
        assert_eq!(
            is_request(&frame),
            theirs[0].ends_with('4'),
            "{frame} {theirs:?}"
        );
        assert_eq!(pending(frame), is_theirs(&theirs[1]), "{frame} {theirs:?}");
    }
}

/// RPL messages of other implementations, the last two malformed: fields, and whether they are
/// in order.
#[test]
fn tshark_reads_the_same_rpl() {
    let fields = [
        ("icmpv6.rpl.dao.instance", "instance", "DAO"),
        ("icmpv6.rpl.dao.sequence", "sequence", "DAO"),
        ("icmpv6.rpl.dao.dodagid", "dodag", "DAO"),
        ("icmpv6.rpl.dao.flag.k", "ack_requested", "DAO"),
        ("icmpv6.rpl.daoack.instance", "instance", "DAO-ACK"),
        ("icmpv6.rpl.daoack.sequence", "sequence", "DAO-ACK"),
        ("icmpv6.rpl.daoack.status", "status", "DAO-ACK"),
        ("icmpv6.rpl.daoack.dodagid", "dodag", "DAO-ACK"),
    ];
    let mut names = vec!["icmpv6.checksum.status", "_ws.malformed"];
    names.extend(fields.iter().map(|(name, ..)| *name));
    let mut malformed = 0;
    for name in ["14-dao", "26-senddaoack", "19-pickdag", "dao-oobr"] {
        let Some(file) = capture(&format!("tcpdump/rpl-{name}.pcap")) else {
            return;
        };
        let Some(theirs) = tshark(&file, &names) else {
            return;
        };
        let ours = frames(&file);
        assert_eq!((ours.len(), theirs.len()), (1, 1), "{name}");
        let rpl = layer(&ours[0], "rpl").unwrap();
        let in_order = theirs[0][0] == "1" && theirs[0][1].is_empty();
        assert_eq!(
            ours[0]["status"] == "decoded",
            in_order,
            "{name}: {theirs:?}"
        );
        malformed += usize::from(!in_order);
        for ((field, key, title), theirs) in fields.iter().zip(&theirs[0][2..]) {
            let ours = match &rpl[*key] {
                Value::Bool(set) => u8::from(*set).to_string(),
                other => shown(other),
            };
            if rpl["title"] == *title {
                assert_eq!(&ours, theirs, "{field} of {name}");
            }
        }
    }
    assert_eq!(malformed, 2);
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
        (file("gzip", &[0x1f, 0x8b, 8, 0, 0, 0]), "end of file"),
        (file("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0]), "zstd"),
        (file("short", b"hi"), "not a pcap or pcapng capture"),
        (
            file("wifi", &wifi),
            "link type 105 (IEEE802_11) is not supported; supported are IEEE 802.15.4 (195,",
        ),
        (
            file("line", b"\x7e\x80\x06\x00\x70\xee\x74\x7e"),
            "motet decode --spinel",
        ),
        (folder.path().to_owned(), "directory"),
        (folder.path().join("absent"), "no such file"),
    ];
    for (path, words) in cases {
        for options in [&[][..], &["--json"]] {
            assert_refused(&decode(&path, options), 2, &["cannot read", words]);
        }
    }
}

#[test]
fn a_gzipped_capture_is_read_as_its_content() {
    let Some(file) = capture(PLUGTEST) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let zipped = folder.path().join("frames.pcap.gz");
    let to = fs::File::create(&zipped).expect("a file");
    let mut encoder = flate2::write::GzEncoder::new(to, flate2::Compression::default());
    let bytes = fs::read(&file).expect("the capture is there");
    std::io::Write::write_all(&mut encoder, &bytes).expect("written");
    encoder.finish().expect("written");
    for options in [&[][..], &["--json"]] {
        let [plain, zipped] = [&file, &zipped].map(|path| decode(path, options));
        assert!(
            plain.status.success() && plain.stdout == zipped.stdout,
            "{zipped:?}"
        );
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

/// A capture of these records, least significant byte first, a millisecond apart.
fn pcap(link_type: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let header = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, link_type];
    let mut file: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
    for (record, at_us) in records.iter().zip((0..).step_by(1_000)) {
        let len = u32::try_from(record.len()).unwrap();
        file.extend([1, at_us, len, len].into_iter().flat_map(u32::to_le_bytes));
        file.extend(record);
    }
    file
}

/// What we and tshark read from 802.15.4 frames without FCS: ours by frame, tshark's by frame
/// and field.
fn both(records: &[Vec<u8>], fields: &[&str]) -> (Vec<Value>, Option<Vec<Vec<String>>>) {
    let folder = folder();
    let file = folder.path().join("frames.pcap");
    fs::write(&file, pcap(230, records)).unwrap();
    let ours = frames(&file);
    assert_eq!(ours.len(), records.len());
    (ours, tshark(&file, fields))
}

/// A frame of 2015: its frame control from the kind, further bits and both modes.
fn control_2015(kind: u16, bits: u16, [dst, src]: [u16; 2]) -> Vec<u8> {
    let control = kind | bits | dst << 10 | 2 << 12 | src << 14;
    control.to_le_bytes().to_vec()
}

const SECURED: u16 = 1 << 3;
const PAN_ID_COMPRESSED: u16 = 1 << 6;
const NO_SEQUENCE: u16 = 1 << 8;
const ELEMENTS: u16 = 1 << 9;

const DST_SHORT: [u8; 2] = [0x02, 0x01];
const SRC_SHORT: [u8; 2] = [0x04, 0x03];
const DST_LONG: [u8; 8] = [8, 7, 6, 5, 4, 3, 2, 1];
const SRC_LONG: [u8; 8] = [0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11];

/// An IPv6 packet with nothing in it: all compressed, next header 59.
const EMPTY_PACKET: [u8; 3] = [0x7a, 0x33, 59];

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Table 7-2 of IEEE 802.15.4-2015: which PAN ids a frame has, by modes and compression.
#[test]
fn frames_of_2015_have_the_pan_ids_that_the_standard_says() {
    let table = [
        ([0, 0], [(false, false), (true, false)]),
        ([2, 0], [(true, false), (false, false)]),
        ([3, 0], [(true, false), (false, false)]),
        ([0, 2], [(false, true), (false, false)]),
        ([0, 3], [(false, true), (false, false)]),
        ([3, 3], [(true, false), (false, false)]),
        ([2, 2], [(true, true), (true, false)]),
        ([2, 3], [(true, true), (true, false)]),
        ([3, 2], [(true, true), (true, false)]),
    ];
    let mut records = Vec::new();
    let mut expected = Vec::new();
    for (modes, pans) in table {
        for (bits, (has_dst_pan, has_src_pan)) in [0, PAN_ID_COMPRESSED].into_iter().zip(pans) {
            for suppressed in [0, NO_SEQUENCE] {
                let mut record = control_2015(1, bits | suppressed, modes);
                let seq = (suppressed == 0).then_some(77);
                record.extend(seq);
                let parts = [
                    (has_dst_pan, [0xcd, 0xab], modes[0], DST_SHORT, DST_LONG),
                    (has_src_pan, [0x34, 0x12], modes[1], SRC_SHORT, SRC_LONG),
                ];
                for (has_pan, pan, mode, short, long) in parts {
                    record.extend(pan.into_iter().filter(|_| has_pan));
                    match mode {
                        0 => {}
                        2 => record.extend(short),
                        _ => record.extend(long),
                    }
                }
                record.extend(EMPTY_PACKET);
                records.push(record);
                expected.push((modes, seq, has_dst_pan, has_src_pan));
            }
        }
    }
    let fields = [
        "wpan.seq_no",
        "wpan.dst_pan",
        "wpan.src_pan",
        "wpan.dst16",
        "wpan.src16",
    ];
    let (ours, theirs) = both(&records, &fields);
    for (at, (frame, (modes, seq, dst_pan, src_pan))) in ours.iter().zip(expected).enumerate() {
        let mac = layer(frame, "mac").unwrap();
        let name = |mode: u16, short: &str, long: &str| match mode {
            0 => Value::Null,
            2 => short.into(),
            _ => long.into(),
        };
        assert_eq!(mac["version"], 2);
        assert_eq!(mac["seq"], serde_json::json!(seq));
        assert_eq!(
            mac["dst"],
            name(modes[0], "0x0102", "01:02:03:04:05:06:07:08")
        );
        assert_eq!(
            mac["src"],
            name(modes[1], "0x0304", "11:12:13:14:15:16:17:18")
        );
        let pans = match (dst_pan, src_pan) {
            (true, true) => [0xabcd.into(), 0x1234.into()],
            (true, false) => [0xabcd.into(), Value::Null],
            (false, true) => [0x1234.into(), Value::Null],
            (false, false) => [Value::Null, Value::Null],
        };
        assert_eq!(
            [&mac["pan"], &mac["src_pan"]],
            [&pans[0], &pans[1]],
            "{frame}"
        );
        assert_eq!(frame["status"], "decoded", "{frame}");
        assert_eq!(layer(frame, "ipv6").unwrap()["next_header"], 59, "{frame}");
        let Some(theirs) = theirs.as_ref().map(|theirs| &theirs[at]) else {
            continue;
        };
        let pan = |has: bool, pan: &str| if has { pan.to_owned() } else { String::new() };
        assert_eq!(theirs[0], shown(&mac["seq"]), "{frame}");
        let both = [pan(dst_pan, "0xabcd"), pan(src_pan, "0x1234")];
        assert_eq!(theirs[1..3], both, "{frame}");
        for (theirs, (mode, ours)) in theirs[3..]
            .iter()
            .zip([(modes[0], "dst"), (modes[1], "src")])
        {
            let ours = if mode == 2 {
                shown(&mac[ours])
            } else {
                String::new()
            };
            assert_eq!(*theirs, ours, "{frame}");
        }
    }
}

/// Level, key and counter are shown of every form of the auxiliary security header, and what is
/// encrypted is said to be.
#[test]
fn the_security_header_is_read() {
    let mut records = Vec::new();
    let mut expected = Vec::new();
    for level in 1..8_u8 {
        for (key_mode, source) in [(0, &[][..]), (1, &[]), (2, &[1, 2, 3, 4]), (3, &[9; 8])] {
            for suppressed in [false, true] {
                let mut record = control_2015(1, SECURED, [2, 2]);
                record.extend([5, 0xcd, 0xab, 2, 1, 0x34, 0x12, 4, 3]);
                record.push(level | key_mode << 3 | u8::from(suppressed) << 5);
                record.extend(
                    67_305_985_u32
                        .to_le_bytes()
                        .into_iter()
                        .filter(|_| !suppressed),
                );
                record.extend(source);
                record.extend((key_mode > 0).then_some(7));
                record.extend(EMPTY_PACKET);
                record.extend(vec![0xee; [0, 4, 8, 16][usize::from(level & 3)]]);
                records.push(record);
                expected.push((level, key_mode, suppressed));
            }
        }
    }
    // The form of 2006.
    let mut record = (1 | SECURED | 2 << 10 | 1 << 12 | 2 << 14)
        .to_le_bytes()
        .to_vec();
    record.extend([
        5,
        0xcd,
        0xab,
        2,
        1,
        0x34,
        0x12,
        4,
        3,
        5 | 1 << 3,
        1,
        2,
        3,
        4,
        7,
        1,
        2,
        3,
        4,
        5,
    ]);
    records.push(record);
    expected.push((5, 1, false));
    let fields = [
        "wpan.aux_sec.sec_level",
        "wpan.aux_sec.key_id_mode",
        "wpan.aux_sec.frame_counter",
        "wpan.aux_sec.key_index",
    ];
    let (ours, theirs) = both(&records, &fields);
    for (at, (frame, (level, key_mode, suppressed))) in ours.iter().zip(expected).enumerate() {
        let security = layer(frame, "security").unwrap();
        assert_eq!(security["level"], level, "{frame}");
        assert_eq!(security["key_id_mode"], key_mode, "{frame}");
        let counter = (!suppressed).then_some(67_305_985);
        assert_eq!(
            security["frame_counter"],
            serde_json::json!(counter),
            "{frame}"
        );
        assert_eq!(
            security["key_index"],
            serde_json::json!((key_mode > 0).then_some(7))
        );
        match level >= 4 {
            true => {
                assert_eq!(frame["status"], "undecoded", "{frame}");
                assert!(text(frame).contains("encrypted"), "{frame}");
            }
            false => assert_eq!(layer(frame, "ipv6").unwrap()["next_header"], 59, "{frame}"),
        }
        let mic_len = layer(frame, "mic").map_or(0, |mic| mic["mic"].as_str().unwrap().len() / 2);
        assert_eq!(mic_len, [0, 4, 8, 16][usize::from(level & 3)], "{frame}");
        if let Some(theirs) = &theirs {
            // What tshark takes for a number it writes in its own base.
            let number = |text: &str| match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            };
            let keys = ["level", "key_id_mode", "frame_counter", "key_index"];
            for (key, theirs) in keys.iter().zip(&theirs[at]) {
                assert_eq!(security[key].as_u64(), number(theirs), "{key}: {frame}");
            }
        }
    }
}

/// Information elements by name, those of header and payload and those within MLME.
#[test]
fn information_elements_are_named() {
    let header = |id: u16, content: &[u8]| {
        let descriptor = content.len() as u16 | id << 7;
        [&descriptor.to_le_bytes()[..], content].concat()
    };
    let payload = |id: u16, content: &[u8]| {
        let descriptor = content.len() as u16 | id << 11 | 1 << 15;
        [&descriptor.to_le_bytes()[..], content].concat()
    };
    let short = |id: u16, content: &[u8]| {
        let descriptor = content.len() as u16 | id << 8;
        [&descriptor.to_le_bytes()[..], content].concat()
    };
    let start = |kind: u16| {
        let mut record = control_2015(kind, ELEMENTS | PAN_ID_COMPRESSED, [3, 3]);
        record.push(9);
        record.extend([DST_LONG, SRC_LONG].concat());
        record
    };
    let mlme = [
        short(0x1a, &[5, 4, 3, 2, 1, 6]),
        short(0x1c, &[0]),
        payload(0x9, &[1]),
    ]
    .concat();
    let data = [
        start(1),
        // -12 µs, and not taken.
        header(0x1e, &[0xf4, 0x8f]),
        header(0x1a, &[1, 0, 0x10, 0x27]),
        header(0x00, &[3, 2, 1, 0xaa]),
        header(0x7e, &[]),
        payload(0x1, &mlme),
        payload(0x5, &[0xbb]),
        payload(0xf, &[]),
        EMPTY_PACKET.to_vec(),
    ]
    .concat();
    let plain = [start(1), header(0x7f, &[]), EMPTY_PACKET.to_vec()].concat();
    let ack = [start(2), header(0x1e, &[12, 0])].concat();
    let beacon = [
        start(0),
        header(0x7e, &[]),
        payload(0x1, &short(0x1e, &[1])),
    ]
    .concat();
    let records = [data.clone(), plain, ack, beacon];
    let fields = ["wpan.header_ie.id", "wpan.payload_ie.id", "wpan.frame_type"];
    let (ours, theirs) = both(&records, &fields);
    let elements = |frame: &Value, which: &str| -> Vec<Value> {
        let mut layers = frame["layers"].as_array().unwrap().iter();
        let found = layers.find(|layer| layer["layer"] == "ie" && layer["title"] == which);
        found.map_or(Vec::new(), |layer| {
            layer["elements"].as_array().unwrap().clone()
        })
    };
    let names = |elements: &[Value]| -> Vec<String> {
        elements
            .iter()
            .map(|element| shown(&element["element"]))
            .collect()
    };
    let of_header = elements(&ours[0], "header");
    let expected = [
        "time correction",
        "CSL",
        "vendor specific",
        "header termination 1",
    ];
    assert_eq!(names(&of_header), expected);
    assert_eq!(of_header[0]["correction_us"], -12);
    assert_eq!(of_header[0]["nack"], true);
    assert_eq!(
        (&of_header[1]["phase"], &of_header[1]["period"]),
        (&1.into(), &10_000.into())
    );
    assert_eq!(
        (&of_header[2]["oui"], &of_header[2]["data"]),
        (&0x010203.into(), &"aa".into())
    );
    let of_payload = elements(&ours[0], "payload");
    assert_eq!(names(&of_payload), ["MLME", "IETF", "payload termination"]);
    let nested = of_payload[0]["nested"].as_array().unwrap();
    let expected = ["TSCH synchronization", "TSCH timeslot", "channel hopping"];
    assert_eq!(names(nested), expected);
    assert_eq!(nested[0]["asn"], 0x01_02_03_04_05_u64);
    assert_eq!(nested[0]["join_metric"], 6);
    for frame in &ours[..2] {
        assert_eq!(frame["status"], "decoded", "{frame}");
        assert_eq!(layer(frame, "ipv6").unwrap()["next_header"], 59, "{frame}");
    }
    assert_eq!(
        shown(&ours[2]["summary"]),
        "11:12:13:14:15:16:17:18 → 01:02:03:04:05:06:07:08  802.15.4 ack, seq 9"
    );
    assert!(
        shown(&ours[3]["summary"]).contains("enhanced beacon"),
        "{}",
        ours[3]
    );
    assert_eq!(names(&elements(&ours[3], "payload")), ["MLME"]);
    if let Some(theirs) = theirs {
        // The last of each, as tshark was asked for.
        for (frame, theirs) in ours.iter().zip(theirs) {
            for (which, theirs) in [("header", &theirs[0]), ("payload", &theirs[1])] {
                let ours = elements(frame, which);
                let last = ours.last().and_then(|element| element["id"].as_u64());
                let theirs = theirs.strip_prefix("0x");
                let theirs = theirs.map(|id| u64::from_str_radix(id, 16).unwrap());
                assert_eq!(last, theirs, "{which} of {frame}");
            }
        }
    }
    // Whatever is missing at the end is said to be, and nothing worse happens.
    let cut: Vec<Vec<u8>> = (1..data.len()).map(|len| data[..len].to_vec()).collect();
    for (frame, len) in both(&cut, &["frame.number"]).0.iter().zip(1..) {
        let is_whole = [19, 23, 29, 35, 37].contains(&len) || len > 51;
        let status = shown(&frame["status"]);
        assert!(is_whole || status == "malformed", "{len}: {frame}");
    }
}

/// Multipurpose frames have a frame control of their own, short or long.
#[test]
fn multipurpose_frames_are_named() {
    let short = [
        &[5 | 2 << 4 | 3 << 6, 42][..],
        &DST_SHORT,
        &SRC_LONG,
        b"wake",
    ]
    .concat();
    // Long: PAN id present, sequence number suppressed, acknowledgment asked for.
    let second = 1 | 1 << 2 | 1 << 6;
    let long = [
        &[5 | 1 << 3 | 3 << 4, second, 0xcd, 0xab][..],
        &DST_LONG,
        b"up",
    ]
    .concat();
    let records = [short, long];
    let (ours, theirs) = both(
        &records,
        &["wpan.frame_type", "wpan.seq_no", "wpan.dst_pan"],
    );
    let expected = [
        ("0x0102", "11:12:13:14:15:16:17:18", "42", "", "77616b65"),
        ("01:02:03:04:05:06:07:08", "", "", "43981", "7570"),
    ];
    for (frame, (dst, src, seq, pan, data)) in ours.iter().zip(expected) {
        let mac = layer(frame, "mac").unwrap();
        assert_eq!(mac["type"], "multipurpose", "{frame}");
        let read = ["dst", "src", "seq", "pan"].map(|key| shown(&mac[key]));
        assert_eq!(read, [dst, src, seq, pan], "{frame}");
        assert_eq!(layer(frame, "payload").unwrap()["data"], data, "{frame}");
        assert!(shown(&frame["summary"]).contains("multipurpose"), "{frame}");
    }
    if let Some(theirs) = theirs {
        assert_eq!(theirs[0], ["0x0005", "42", ""]);
        assert_eq!(theirs[1], ["0x0005", "", "0xabcd"]);
    }
}

/// No network card fills in an ICMPv6 checksum: a wrong one is wrong wherever it was captured.
#[test]
fn a_wrong_icmpv6_checksum_is_malformed() {
    let mut echo = vec![0x60, 0, 0, 0, 0, 8, 58, 64];
    let [src, dst] = [1_u128, 2].map(|last| (0xfe80_u128 << 112 | last).to_be_bytes());
    echo.extend([src, dst].concat());
    echo.extend([128, 0, 0, 0, 0, 0, 0, 0]);
    // Over the pseudo header: addresses, 8 bytes of 58, type and code.
    let sum = !(0xfe80_u32 * 2 + 3 + 8 + 58 + 0x8000);
    let right = !((0xfe80_u32 * 2 + 3 + 8 + 58 + 0x8000) % 0xffff) as u16;
    assert_ne!(sum, 0);
    echo[42..44].copy_from_slice(&right.to_be_bytes());
    let mut wrong = echo.clone();
    wrong[43] ^= 1;
    let folder = folder();
    let file = folder.path().join("raw.pcap");
    fs::write(&file, pcap(229, &[echo, wrong])).unwrap();
    let ours = frames(&file);
    assert_eq!(ours[0]["status"], "decoded", "{}", ours[0]);
    assert_eq!(ours[1]["status"], "malformed", "{}", ours[1]);
    assert_eq!(text(&ours[1]), "ICMPv6 checksum wrong");
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(&file)
        .args(["-T", "fields", "-e", "icmpv6.checksum.status"]);
    if let Ok(theirs) = command.output() {
        assert_eq!(theirs.stdout, b"1\n0\n", "{}", said(&theirs));
    }
}

/// The bytes of a serial line that carries this frame of Spinel; none of them needs an escape.
fn on_a_line(frame: &[u8]) -> Vec<u8> {
    assert!(!frame.iter().any(|byte| [0x7e, 0x7d].contains(byte)));
    let sum = frame.iter().fold(0xffff_u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { 0x8408 } else { 0 }
        })
    });
    let sum = (!sum).to_le_bytes();
    let escaped = sum.iter().flat_map(|byte| match byte {
        0x7e | 0x7d => vec![0x7d, byte ^ 0x20],
        byte => vec![*byte],
    });
    let escaped: Vec<u8> = escaped.collect();
    [&[0x7e][..], frame, &escaped, &[0x7e]].concat()
}

/// What a simulated radio of OpenThread and its host wrote, the host's own frames aside.
fn frames_of_a_radio() -> Option<Vec<Vec<u8>>> {
    let file = capture("thread/spinel-trace.txt")?;
    let text = fs::read_to_string(file).unwrap();
    let of_radio = text.lines().filter_map(|line| line.strip_prefix("B < "));
    let bytes = |hex: &str| {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    Some(of_radio.map(bytes).collect())
}

#[test]
fn the_line_of_a_dongle_is_explained_as_its_capture_is() {
    let Some(spinel) = frames_of_a_radio() else {
        return;
    };
    let folder = folder();
    let line = folder.path().join("dongle.log");
    let lines: Vec<Vec<u8>> = spinel.iter().map(|frame| on_a_line(frame)).collect();
    fs::write(&line, [b"booted\r\n", &lines.concat()[..]].concat()).unwrap();
    let output = decode(&line, &["--spinel", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let mut of_line = objects(&output.stdout);
    let noise = of_line.remove(0);
    assert_eq!(noise["reason"], "check sum wrong", "{noise}");
    for (link_type, records) in [(147, &spinel), (162, &lines), (0, &spinel), (0, &lines)] {
        let file = folder.path().join("dongle.pcap");
        fs::write(&file, pcap(link_type, records)).unwrap();
        let of_capture = frames(&file);
        assert_eq!(of_capture.len(), of_line.len());
        for (ours, theirs) in of_capture.iter().zip(&of_line) {
            assert_eq!(ours["summary"], theirs["summary"], "{link_type}");
            assert_eq!(ours["status"], theirs["status"], "{link_type}");
            let names = |frame: &Value| {
                let layers = frame["layers"].as_array().unwrap().iter();
                let names = layers.map(|layer| layer["layer"].to_string());
                names.filter(|name| name != "\"hdlc\"").collect::<Vec<_>>()
            };
            assert_eq!(names(ours), names(theirs), "{link_type}");
        }
    }
    // From a pipe, too.
    let piped = motet()
        .args(["decode", "--spinel", "--json", "-"])
        .stdin(fs::File::open(&line).unwrap())
        .output()
        .expect("motet starts");
    assert_eq!(piped.stdout, output.stdout);
    // People read the same.
    let output = decode(&line, &["--spinel"]);
    let text = said(&output);
    for words in [
        "IS PHY_CHAN",
        "channel 15",
        "status RESET_POWER_ON (112)",
        "OPENTHREAD",
        "malformed at hdlc: check sum wrong",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // A capture is none.
    let file = folder.path().join("dongle.pcap");
    let refused = decode(&file, &["--spinel"]);
    assert_refused(&refused, 2, &["cannot read", "leave out --spinel"]);
}

/// tshark knows no Spinel. What is around the frame of 802.15.4 is a header and a trailer of fixed
/// length in these frames, which it can be told to pass over.
#[test]
fn tshark_reads_the_same_frames_out_of_spinel() {
    let Some(mut spinel) = frames_of_a_radio() else {
        return;
    };
    spinel.retain(|frame| frame.starts_with(&[0x80, 6, 0x71]));
    assert!(spinel.len() > 10, "only {} frames", spinel.len());
    let folder = folder();
    let file = folder.path().join("dongle.pcap");
    fs::write(&file, pcap(147, &spinel)).unwrap();
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(&file)
        .args([
            "-o",
            r#"uat:user_dlts:"User 0 (DLT=147)","wpan","5","","26","""#,
        ])
        .args(["-T", "fields", "-E", "separator=|"]);
    for field in ["wpan.seq_no", "wpan.dst_pan", "wpan.src16", "wpan.fcs"] {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        not_run("tshark is not installed");
        return;
    };
    assert!(output.status.success(), "{}", said(&output));
    let theirs = String::from_utf8(output.stdout).unwrap();
    let ours = frames(&file);
    assert_eq!(theirs.lines().count(), ours.len());
    for ((frame, theirs), bytes) in ours.iter().zip(theirs.lines()).zip(&spinel) {
        let mac = layer(frame, "mac").unwrap();
        let end = bytes.len() - 26;
        let fcs = u16::from_le_bytes([bytes[end - 2], bytes[end - 1]]);
        let ours = format!(
            "{}|0x{:04x}|{}|0x{fcs:04x}",
            mac["seq"],
            mac["pan"].as_u64().unwrap(),
            mac["src"].as_str().unwrap()
        );
        assert_eq!(mac["fcs_ok"], true);
        assert_eq!(ours, theirs, "frame {}", frame["frame"]);
    }
}

/// A frame of a Wi-SUN field area network, with elements of header and payload.
fn wisun_frame() -> Vec<u8> {
    let header = |id: u16, content: &[u8]| {
        let descriptor = content.len() as u16 | id << 7;
        [&descriptor.to_le_bytes()[..], content].concat()
    };
    let payload = |group: u16, content: &[u8]| {
        let descriptor = content.len() as u16 | group << 11 | 1 << 15;
        [&descriptor.to_le_bytes()[..], content].concat()
    };
    let short = |id: u16, content: &[u8]| {
        let descriptor = content.len() as u16 | id << 8;
        [&descriptor.to_le_bytes()[..], content].concat()
    };
    let control: u16 = 1 | 1 << 9 | 2 << 12 | 3 << 10 | 3 << 14;
    let nested = [
        payload(1, &[100, 20, 10, 2 << 3, 1, 2]),
        payload(2, &[0xe8, 3, 0, 0, 0x42, 0x41, 200, 20, 10, 2 << 3, 1, 2]),
        short(4, &[50, 0, 0x2c, 1, 0x23]),
        short(5, b"My net"),
        short(6, &[0x34, 0x12]),
        short(7, &[7; 32]),
    ];
    [
        control.to_le_bytes().to_vec(),
        vec![
            7, 0xcd, 0xab, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8,
        ],
        header(0x2a, &[1, 4, 0x56, 0x34, 0x12]),
        header(0x2a, &[2, 0x22, 0x11, 0x55, 0x44, 0x33]),
        header(0x2a, &[3, 5, 6]),
        header(0x2a, &[4, 0x50]),
        header(0x2a, &[9, 0, 1, 2, 3, 4, 5, 6, 7]),
        header(0x7e, &[]),
        payload(4, &nested.concat()),
        payload(15, &[]),
    ]
    .concat()
}

#[test]
fn tshark_reads_the_elements_of_wisun_the_same() {
    let frame = wisun_frame();
    let words = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 230, 0, 0];
    let mut file: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    for _ in 0..2 {
        file.extend((frame.len() as u32).to_le_bytes());
    }
    file.extend(&frame);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisun.pcap");
    fs::write(&path, file).unwrap();
    let fields = [
        ("wisun.uttie.ufsi", "ufsi"),
        ("wisun.btie.slot", "slot"),
        ("wisun.btie.bio", "interval_offset_ms"),
        ("wisun.fcie.tx", "transmit_ms"),
        ("wisun.fcie.rx", "receive_ms"),
        ("wisun.bsie.interval", "interval_ms"),
        ("wisun.bsie.schedule", "schedule_id"),
        ("wisun.usie.dwell", "dwell_ms"),
        ("wisun.usie.drift", "drift_ppm"),
        ("wisun.panie.size", "size"),
        ("wisun.panie.cost", "routing_cost"),
        ("wisun.panie.flags.version", "tps_version"),
        ("wisun.netnameie.name", "name"),
        ("wisun.panverie.version", "version"),
    ];
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let Some(theirs) = tshark(&path, &names) else {
        return;
    };
    let output = motet()
        .arg("decode")
        .arg(&path)
        .arg("--json")
        .output()
        .unwrap();
    let own: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    });
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map(|value| value.to_string()),
        None => Ok(text.to_owned()),
    };
    for ((field, key), theirs) in fields.iter().zip(&theirs[0]) {
        let found = last_named(&own, key).unwrap_or_else(|| panic!("{key} in {own}"));
        let found = found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned);
        assert_eq!(&number(theirs).unwrap(), &found, "{field}");
    }
    // What tshark shows in other words.
    let text = own.to_string();
    assert!(
        text.contains("\"rsl_dbm\":-94") && text.contains("\"frame_type\":\"data\""),
        "{text}"
    );
    assert_eq!(own["status"], "decoded", "{own}");
}

/// The last value of this key anywhere below, in the order of the text.
fn last_named<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(all) => all
            .iter()
            .filter_map(|one| last_named(one, key))
            .next_back(),
        Value::Object(all) => {
            let mut found = None;
            for (name, one) in all {
                found = last_named(one, key).or(found);
                if name == key && !one.is_object() && !one.is_array() {
                    found = Some(one);
                }
            }
            found
        }
        _ => None,
    }
}
