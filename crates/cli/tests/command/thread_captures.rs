//! `motet decode` on captures of real Thread networks, with tshark as the judge.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{assert_refused, folder, has, motet, objects, said};

/// The key of the captured networks.
const KEY: &str = "00112233445566778899aabbccddeeff";

/// Their dataset, as `dataset active -x` prints it: all but the key and the mesh-local prefix is
/// made up.
const DATASET: &str = "0e080000000000010000000300000f0708fd000db800000000\
                       051000112233445566778899aabbccddeeff0102abcd\n\
                       0410ffeeddccbbaa99887766554433221100\r\nDone\r\n";

/// Each capture, with the number of its secured frames.
const CAPTURES: [(&str, usize); 6] = [
    ("attach-mtd-rx-on", 4),
    ("attach-mtd-sleepy", 31),
    ("child-ext", 20),
    ("child-rx-on", 20),
    ("child-sleepy", 71),
    ("child-tcp", 381),
];

/// The captures that are at hand; where they are not the test says so, but not in CI.
fn captures() -> Vec<(PathBuf, usize)> {
    let shared = std::env::var_os("MOTET_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data/captures/thread");
    if !folder.exists() {
        let missing = format!("{} is not there; set MOTET_SHARED", folder.display());
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("not run: {missing}");
        return Vec::new();
    }
    CAPTURES
        .map(|(name, secured)| (folder.join(name).with_extension("pcap"), secured))
        .into()
}

fn decode(file: &Path, options: &[&str]) -> Output {
    let output = motet()
        .arg("decode")
        .arg(file)
        .args(options)
        .output()
        .expect("motet starts");
    assert!(output.status.success(), "{}", said(&output));
    output
}

fn frames(file: &Path, options: &[&str]) -> Vec<Value> {
    objects(&decode(file, &[&["--json"], options].concat()).stdout)
}

/// The innermost layer of a name.
fn layer<'a>(frame: &'a Value, name: &str) -> Option<&'a Value> {
    let mut layers = frame["layers"].as_array().unwrap().iter().rev();
    layers.find(|layer| layer["layer"] == name)
}

#[test]
fn every_secured_frame_opens() {
    for (file, secured) in captures() {
        let frames = frames(&file, &["--key", DATASET]);
        let is_open =
            |frame: &Value| ["decoded", "fragment"].contains(&frame["status"].as_str().unwrap());
        let closed: Vec<&Value> = frames.iter().filter(|frame| !is_open(frame)).collect();
        assert!(closed.is_empty(), "{}: {closed:?}", file.display());
        let found = frames
            .iter()
            .filter(|frame| layer(frame, "security").is_some());
        assert_eq!(found.count(), secured, "{}", file.display());
        assert!(frames.iter().any(|frame| layer(frame, "mle").is_some()));
    }
}

#[test]
fn a_wrong_key_opens_nothing_and_a_right_one_is_not_shown() {
    let wrong = "ffeeddccbbaa99887766554433221100";
    for (file, secured) in captures() {
        let frames = frames(&file, &["--key", wrong]);
        let closed = frames.iter().filter(|frame| {
            let reason = frame["reason"].as_str().unwrap_or_default();
            frame["problem_layer"] == "security" && reason.contains("the key")
        });
        assert_eq!(closed.count(), secured, "{}", file.display());
        let messages = frames.iter().filter(|frame| layer(frame, "mle").is_some());
        for message in messages {
            let reason = message["reason"].as_str().unwrap_or_default();
            assert!(reason.contains("the key does not open it"), "{message}");
        }
        for options in [&["--json"][..], &[]] {
            let output = decode(&file, &[&["--key", DATASET], options].concat());
            let shown = String::from_utf8(output.stdout).unwrap();
            for key in [KEY, wrong] {
                assert!(!shown.replace(' ', "").contains(key));
            }
        }
    }
}

#[test]
fn a_dataset_comes_as_digits_in_a_file_or_by_standard_input() {
    let Some((file, _)) = captures().into_iter().next() else {
        return;
    };
    let expected = decode(&file, &["--key", DATASET]).stdout;
    let folder = folder();
    let path = folder.path().join("home.dataset");
    std::fs::write(&path, DATASET).unwrap();
    let of_file = decode(&file, &["--key", path.to_str().unwrap()]).stdout;
    assert!(of_file == expected);
    let mut piped = motet();
    piped.arg("decode").arg(&file).args(["--key", "-"]);
    piped.stdin(std::fs::File::open(&path).unwrap());
    assert!(piped.output().unwrap().stdout == expected);
    // A capture that cannot be read twice: what was ahead of its explanation stays closed.
    let mut live = motet();
    live.args(["decode", "-", "--key", DATASET, "--summary"]);
    live.stdin(std::fs::File::open(&file).unwrap());
    let live = live.output().unwrap();
    assert!(live.status.success(), "{}", said(&live));
    assert!(!String::from_utf8_lossy(&live.stdout).contains("malformed"));
}

#[test]
fn what_is_no_dataset_is_refused() {
    let folder = folder();
    let path = folder.path().join("home.dataset");
    std::fs::write(&path, "0e08").unwrap();
    let without_key = "0e080000000000010000000300000f0708fd000db8000000000102abcd";
    let cases = [
        (path.to_str().unwrap(), "ends too early"),
        (without_key, "no network key"),
        ("001122", "ends too early"),
        ("0011223", "pairs of hexadecimal digits"),
        ("nowhere.dataset", "nowhere.dataset"),
    ];
    for (key, reason) in cases {
        let output = motet()
            .args(["decode", "nothing.pcap", "--key", key])
            .output()
            .unwrap();
        assert_refused(&output, 2, &[reason]);
    }
    let output = motet()
        .args(["decode", "-", "--key", "-"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_refused(&output, 2, &["standard input"]);
}

/// Where a field of tshark's is in ours.
#[derive(Clone, Copy)]
enum Place {
    /// The last field of a layer.
    Of(&'static str, &'static str),
    /// A field of each TLV of MLE that has it.
    Tlv(&'static str),
    /// A field of each entry in a TLV: its list, then the field.
    In(&'static str, &'static str),
}

/// Fields that both name.
const FIELDS: [(&str, Place); 53] = [
    ("wpan.seq_no", Place::Of("mac", "seq")),
    ("wpan.dst_pan", Place::Of("mac", "pan")),
    ("wpan.src16", Place::Of("mac", "src")),
    ("wpan.dst16", Place::Of("mac", "dst")),
    ("6lowpan.frag.tag", Place::Of("fragment", "datagram_tag")),
    ("6lowpan.frag.size", Place::Of("fragment", "datagram_size")),
    ("ipv6.src", Place::Of("ipv6", "src")),
    ("ipv6.dst", Place::Of("ipv6", "dst")),
    ("ipv6.hlim", Place::Of("ipv6", "hop_limit")),
    ("ipv6.plen", Place::Of("ipv6", "payload_len")),
    ("ipv6.nxt", Place::Of("ipv6", "next_header")),
    ("udp.srcport", Place::Of("udp", "src_port")),
    ("udp.dstport", Place::Of("udp", "dst_port")),
    ("tcp.srcport", Place::Of("tcp", "src_port")),
    ("tcp.dstport", Place::Of("tcp", "dst_port")),
    ("tcp.len", Place::Of("tcp", "len")),
    ("tcp.seq_raw", Place::Of("tcp", "seq")),
    ("tcp.ack_raw", Place::Of("tcp", "ack")),
    ("tcp.window_size_value", Place::Of("tcp", "window")),
    ("icmpv6.type", Place::Of("icmpv6", "type")),
    ("icmpv6.code", Place::Of("icmpv6", "code")),
    ("icmpv6.echo.sequence_number", Place::Of("icmpv6", "seq")),
    ("mle.cmd", Place::Of("mle", "command")),
    ("mle.tlv.source_addr", Place::Tlv("source_address")),
    ("mle.tlv.addr16", Place::Tlv("address16")),
    ("mle.tlv.challenge", Place::Tlv("challenge")),
    ("mle.tlv.response", Place::Tlv("response")),
    ("mle.tlv.ll_frm_cntr", Place::Tlv("link_frame_counter")),
    ("mle.tlv.mle_frm_cntr", Place::Tlv("mle_frame_counter")),
    ("mle.tlv.leader_data.partition_id", Place::Tlv("partition")),
    ("mle.tlv.leader_data.weighting", Place::Tlv("weighting")),
    (
        "mle.tlv.leader_data.data_version",
        Place::Tlv("data_version"),
    ),
    (
        "mle.tlv.leader_data.stable_data_version",
        Place::Tlv("stable_data_version"),
    ),
    ("mle.tlv.leader_data.router_id", Place::Tlv("leader_router")),
    ("mle.tlv.conn.flags.pp", Place::Tlv("parent_priority")),
    ("mle.tlv.conn.lq3", Place::Tlv("neighbors_of_quality_3")),
    ("mle.tlv.conn.lq2", Place::Tlv("neighbors_of_quality_2")),
    ("mle.tlv.conn.lq1", Place::Tlv("neighbors_of_quality_1")),
    ("mle.tlv.conn.leader_cost", Place::Tlv("leader_cost")),
    ("mle.tlv.conn.id_seq", Place::Tlv("id_sequence")),
    ("mle.tlv.conn.active_rtrs", Place::Tlv("active_routers")),
    ("mle.tlv.conn.sed_buf_size", Place::Tlv("buffer_bytes")),
    ("mle.tlv.link_margin", Place::Tlv("link_margin_db")),
    ("mle.tlv.version", Place::Tlv("version")),
    ("mle.tlv.timeout", Place::Tlv("timeout_s")),
    ("mle.tlv.status", Place::Tlv("status")),
    ("mle.tlv.route64.id_seq", Place::Tlv("route_id_sequence")),
    ("mle.tlv.route64.cost", Place::In("routers", "cost")),
    ("mle.tlv.addr_reg_iid", Place::In("entries", "iid")),
    ("mle.tlv.addr_reg_ipv6", Place::In("entries", "address")),
    (
        "thread_nwd.tlv.6co.flag.cid",
        Place::In("content", "context"),
    ),
    (
        "thread_meshcop.tlv.commissioner_sess_id",
        Place::In("nested", "commissioner_session"),
    ),
    ("_ws.malformed", Place::Of("none", "none")),
];

/// What tshark says of each frame: the values of each field, and the types of MLE's TLVs behind
/// them.
fn tshark(file: &Path) -> Vec<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    let keys = format!("uat:ieee802154_keys:\"{KEY}\",\"1\",\"Thread hash\"");
    for setting in [
        keys.as_str(),
        "thread.thr_seq_ctr:00000000",
        "thread.thr_use_pan_id_in_key:FALSE",
        "thread.thr_auto_acq_thr_seq_ctr:TRUE",
        "6lowpan.context0:fd00:db8::/64",
        // That of a border router, which we find in network data.
        "6lowpan.context1:fd11:22:33:44::/64",
    ] {
        command.args(["-o", setting]);
    }
    command.arg("-r").arg(file);
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]);
    for (field, _) in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.args(["-e", "mle.tlv.type"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let values = |column: &str| {
        let values = column.split(',').filter(|value| !value.is_empty());
        values.map(plain).collect()
    };
    text.lines()
        .map(|line| line.split('\t').map(values).collect())
        .collect()
}

/// A value without the differences of notation: numbers are decimal, and bytes have no colons.
fn plain(value: &str) -> String {
    if let Some(hex) = value.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).map_or(value.to_owned(), |number| number.to_string());
    }
    // Bytes, not an IPv6 address.
    let is_bytes = !value.contains("::") && value.split(':').all(|part| part.len() == 2);
    if value.contains(':') && is_bytes {
        return value.replace(':', "");
    }
    value.to_owned()
}

/// Our values of a field.
fn ours(frame: &Value, place: Place) -> Vec<String> {
    let tlvs = || layer(frame, "mle").and_then(|mle| mle["tlvs"].as_array().cloned());
    let tlvs = || tlvs().unwrap_or_default().into_iter();
    let entries = |list: &'static str| {
        tlvs().flat_map(move |tlv| tlv[list].as_array().cloned().unwrap_or_default())
    };
    let found: Vec<Value> = match place {
        Place::Of(name, field) => layer(frame, name)
            .map(|layer| layer[field].clone())
            .into_iter()
            .collect(),
        Place::Tlv(field) => tlvs().map(|tlv| tlv[field].clone()).collect(),
        Place::In("nested", field) => entries("content")
            .flat_map(|entry| entry["content"].as_array().cloned().unwrap_or_default())
            .map(|entry| entry[field].clone())
            .collect(),
        Place::In(list, field) => entries(list).map(|entry| entry[field].clone()).collect(),
    };
    let found = found.into_iter().filter(|value| !value.is_null());
    found
        .map(|value| match value.as_str() {
            Some("broadcast") => "65535".to_owned(),
            Some(text) => plain(text),
            None => value.to_string(),
        })
        .collect()
}

/// Whether both say the same: of fields in one layer the last, of those in TLVs all.
fn agree(place: Place, theirs: &[String], ours: &[String]) -> bool {
    match place {
        Place::Of(..) => theirs.last() == ours.last(),
        Place::Tlv(_) | Place::In(..) => {
            // Two bytes are digits at tshark's, and a number at ours.
            let same = |(their, our): (&String, &String)| {
                their == our || u64::from_str_radix(their, 16).is_ok_and(|n| n.to_string() == *our)
            };
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(same)
        }
    }
}

#[test]
fn tshark_reads_the_same() {
    if !has("tshark") {
        return;
    }
    for (file, _) in captures() {
        let theirs = tshark(&file);
        let frames = frames(&file, &["--key", DATASET]);
        assert_eq!(theirs.len(), frames.len(), "{}", file.display());
        for (their, frame) in theirs.iter().zip(&frames) {
            let at = format!("{}, frame {}", file.display(), frame["frame"]);
            for ((field, place), their) in FIELDS.iter().zip(their) {
                let mut our = ours(frame, *place);
                // An extended address has a field of its own at tshark's.
                if field.ends_with("16") && field.starts_with("wpan") {
                    our.retain(|addr| addr.len() < 16);
                }
                // Without the flag ACK the number says nothing; tshark shows it all the same.
                if *field == "tcp.ack_raw" && our.is_empty() {
                    our.extend(their.iter().filter(|ack| *ack == "0").cloned());
                }
                assert!(
                    agree(*place, their, &our),
                    "{at}, {field}: {their:?}, but {our:?}"
                );
            }
            let tlvs = layer(frame, "mle").map(|mle| mle["tlvs"].as_array().unwrap());
            let mut types: Vec<String> = Vec::new();
            for tlv in tlvs.into_iter().flatten() {
                types.push(tlv["type"].to_string());
                // tshark calls what a TLV Request asks for types as well.
                let wanted = tlv["types"].as_array().into_iter().flatten();
                types.extend(wanted.map(Value::to_string));
            }
            assert_eq!(their.last().unwrap(), &types, "{at}");
        }
    }
}
