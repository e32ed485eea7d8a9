//! `motet send --key`: judged by tshark, and by the nonces on the air.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use crate::common::{assert_refused, file, folder, motet, said};
use motet::wire::ieee802154::{FrameType, Header, check_fcs};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

/// Each data frame of a transfer is sealed, tshark reads each with the key and none without, and no
/// counter of one sender is of two frames.
#[test]
fn a_transfer_with_a_key_is_read_with_the_key_alone() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let (key, air) = (path("team.key"), path("air.pcap"));
    let made = motet().args(["keys", "new"]).arg(&key).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    let sent = motet()
        .args([
            "send",
            "--virtual",
            "--hops=2",
            "--seed=1",
            // tshark does not know compressed headers.
            "--compression=none",
            "--json",
            "--key",
        ])
        .arg(&key)
        .arg("--pcap")
        .args([&air, &file(folder.path(), 4_000)])
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", said(&sent));
    let frames = sealed_frames(&air);
    assert!(frames > 50, "{frames}");

    let setting = motet()
        .args(["keys", "wireshark"])
        .arg(&key)
        .output()
        .unwrap();
    let setting = String::from_utf8(setting.stdout).unwrap();
    let count = |key: Option<&str>, filter: &str| {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&air).args(["-Y", filter]);
        tshark.args(key.into_iter().flat_map(|key| ["-o", key.trim()]));
        let output = tshark.output().ok()?;
        assert!(output.status.success(), "{}", said(&output));
        Some(output.stdout.split(|byte| *byte == b'\n').count() - 1)
    };
    let opened = "wpan.frame_type == 1 && !_ws.expert.message contains \"ecrypt\"";
    let Some(with_key) = count(Some(&setting), opened) else {
        return;
    };
    assert_eq!(with_key, frames);
    assert!(count(Some(&setting), "tcp").unwrap() > 20);
    assert_eq!(count(Some(&setting), "_ws.malformed"), Some(0));
    assert_eq!(count(None, "6lowpan || ipv6 || tcp"), Some(0));
}

/// How many data frames a capture has, each of them sealed with a nonce of its own.
fn sealed_frames(capture: &Path) -> usize {
    let mut reader = PcapReader::new(BufReader::new(File::open(capture).unwrap())).unwrap();
    let is_tapped = reader.header().datalink == DataLink::IEEE802_15_4_TAP;
    let (mut count, mut seen) = (0, HashMap::new());
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap().data;
        let tap_len = match is_tapped {
            true => usize::from(u16::from_le_bytes([record[2], record[3]])),
            false => 0,
        };
        let psdu = &record[tap_len..];
        let (header, auxiliary, _) = Header::parse_secured(check_fcs(psdu).unwrap()).unwrap();
        if header.frame_type == FrameType::Ack {
            continue;
        }
        let auxiliary = auxiliary.expect("it is sealed");
        let nonce = (
            format!("{:?}", header.src),
            auxiliary.key_index,
            auxiliary.counter,
        );
        let bytes = psdu.to_vec();
        assert_eq!(*seen.entry(nonce).or_insert_with(|| bytes.clone()), bytes);
        count += 1;
    }
    count
}

/// A scenario without a key gets one by the command line.
#[test]
fn a_scenario_runs_with_the_key_of_the_command_line() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let made = motet().args(["keys", "new"]).arg(path("team.key")).output();
    assert!(made.unwrap().status.success());
    let scenario = "duration_s = 6\nwarmup_s = 1\n[topology]\nchain = 1\n[[flow]]\n";
    std::fs::write(path("one.toml"), scenario).unwrap();
    let run = |key: &str| {
        let mut command = motet();
        command
            .arg("run")
            .arg(path("one.toml"))
            .arg("--key")
            .arg(path(key));
        command
            .arg("--pcap")
            .arg(path("air.pcap"))
            .output()
            .unwrap()
    };
    assert_refused(&run("none.key"), 2, &["no such file"]);
    let done = run("team.key");
    assert!(done.status.success(), "{}", said(&done));
    assert!(sealed_frames(&path("air.pcap")) > 20);
}

#[test]
fn a_key_that_cannot_be_used_is_refused() {
    let folder = folder();
    let content = file(folder.path(), 100);
    let send = |args: &[&str]| {
        motet()
            .arg("send")
            .args(args)
            .arg(&content)
            .output()
            .unwrap()
    };
    assert_refused(
        &send(&["--virtual", "--key", "/none.key"]),
        2,
        &["/none.key"],
    );
    assert_refused(
        &send(&["--virtual", "--radio=ble", "--key", "/none.key"]),
        2,
        &["--key", "--radio ble"],
    );
}
