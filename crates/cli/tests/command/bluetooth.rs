//! Bluetooth LE on the command line, with this machine's kernel and tshark at the other ends.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener},
    path::Path,
    process::{Command, Output},
    thread,
};

use crate::common::{assert_refused, file, folder, has, motet, objects, report, said};

/// Those packets of a capture that pass `filter`.
fn count(capture: &Path, filter: &str) -> usize {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", filter]);
    let output = command
        .args(["-T", "fields", "-e", "frame.number"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output.stdout.iter().filter(|byte| **byte == b'\n').count()
}

fn send(content: &Path, options: &[&str]) -> Output {
    let mut command = motet();
    command.arg("send").arg(content).args(["--radio", "ble"]);
    command.args(options).output().unwrap()
}

/// Frames that `motet decode` finds in a capture: all, those with TCP, and those that are not as they should be.
fn decoded(capture: &Path) -> [usize; 3] {
    let mut command = motet();
    command.arg("decode").arg(capture).arg("--json");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let frames = objects(&output.stdout);
    let has_tcp = |frame: &&serde_json::Value| frame["layers"].to_string().contains("\"tcp\"");
    let is_odd = |frame: &&serde_json::Value| {
        !["decoded", "fragment"].contains(&frame["status"].as_str().unwrap_or_default())
    };
    [
        frames.len(),
        frames.iter().filter(has_tcp).count(),
        frames.iter().filter(is_odd).count(),
    ]
}

/// Each segment that either end sent is in the capture, and nothing is broken in it.
#[test]
fn the_kernel_takes_and_gives_a_file_and_tshark_sees_every_segment() {
    let folder = folder();
    let content = file(folder.path(), 100_000);
    for (direction, more) in [
        ("up", &["--phy", "1M"][..]),
        ("down", &["--phy", "2M", "--frame-loss", "0.05"]),
        ("up", &["--phy", "2M", "--virtual", "--interval", "15"]),
    ] {
        let capture = folder.path().join("air.pcap");
        let path = capture.to_str().unwrap();
        let options = [
            "--direction",
            direction,
            "--json",
            "--force",
            "--pcap",
            path,
        ];
        let report = report(&send(&content, &[&options[..], more].concat()));
        assert_eq!(report["sha256_sent"], report["sha256_received"]);
        assert_eq!(report["hops"], 1);
        let goodput = report["goodput_kbps"].as_f64().unwrap();
        let bound = report["bound_kbps"].as_f64().unwrap();
        assert!((100.0..bound).contains(&goodput), "{report}");
        let [all, tcp, odd] = decoded(&capture);
        assert!(all > 500 && odd == 0, "{odd} of {all}");
        if has("tshark") {
            if !more.contains(&"--frame-loss") {
                assert_eq!(tcp, count(&capture, "tcp"));
            }
            let segments = report["segments"].as_u64().unwrap() as usize;
            let data = count(&capture, "tcp.len > 0");
            assert!(count(&capture, "tcp") >= segments && data >= 82, "{report}");
            for broken in [
                "_ws.malformed",
                "btle.crc.incorrect",
                "_ws.expert.severity == 8388608",
            ] {
                assert_eq!(count(&capture, broken), 0, "{broken}");
            }
        }
    }
}

/// With TCPlE, whose second channel tshark does not know and `motet decode` does.
#[test]
fn tcple_brings_a_file_and_breaks_no_capture() {
    let folder = folder();
    let content = file(folder.path(), 50_000);
    let capture = folder.path().join("air.pcap");
    let path = capture.to_str().unwrap();
    let options = ["--tcple", "--virtual", "--json", "--force", "--pcap", path];
    let report = report(&send(&content, &options));
    assert_eq!(report["sha256_sent"], report["sha256_received"]);
    let [all, tcp, odd] = decoded(&capture);
    assert!(all > 200 && odd == 0, "{odd} of {all}");
    let segments = report["segments"].as_u64().unwrap() as usize;
    assert!(tcp >= segments, "{tcp} of {segments}");
    if has("tshark") {
        for broken in ["_ws.malformed", "btle.crc.incorrect"] {
            assert_eq!(count(&capture, broken), 0, "{broken}");
        }
        assert!(count(&capture, "btatt") >= 4 && count(&capture, "icmpv6") >= 4);
    }
}

#[test]
fn a_mote_over_bluetooth_answers_ping() {
    if !has("ping") {
        return;
    }
    let mut command = motet();
    let script = "ping -c 3 -W 5 ${MOTET_MOTES%% *}";
    command.args(["up", "--radio", "ble", "--", "sh", "-c", script]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains(" 0% packet loss"));
}

/// A mesh of one mote, and one over Bluetooth LE beside it.
const MIXED: &str = include_str!("../mixed.toml");

/// The last subnet of a site has none behind it for the motes over Bluetooth LE.
#[test]
fn a_prefix_without_another_one_behind_it_is_refused_for_a_mixed_mesh() {
    let folder = folder();
    let scenario = folder.path().join("mixed.toml");
    fs::write(&scenario, MIXED).unwrap();
    let mut command = motet();
    command.args(["router", "--air"]).arg(&scenario);
    command.args(["--prefix", "fd12:3456:1:ffff::/64"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let refusal = "fd12:3456:2::/64, which is another site's";
    assert!(said(&output).contains(refusal), "{}", said(&output));
}

/// The prefix of Bluetooth LE's motes beside a mesh is another one than the mesh's.
#[test]
fn motes_on_either_radio_of_a_mixed_mesh_answer_ping() {
    if !has("ping") {
        return;
    }
    let folder = folder();
    let scenario = folder.path().join("mixed.toml");
    fs::write(&scenario, MIXED).unwrap();
    let script = "for mote in $MOTET_MOTES; do ping -c 2 -W 5 $mote || exit 1; done";
    let mut command = motet();
    command.arg("up").arg("--scenario").arg(&scenario);
    let output = command.args(["--", "sh", "-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let answered = String::from_utf8_lossy(&output.stdout);
    assert_eq!(answered.matches(" 0% packet loss").count(), 2, "{answered}");
}

#[test]
fn a_run_over_bluetooth_writes_a_capture_that_tshark_reads() {
    if !has("tshark") {
        return;
    }
    let folder = folder();
    let scenario = folder.path().join("two.toml");
    let text = "
        duration_s = 6
        [radio]
        kind = \"ble\"
        [topology]
        peripherals = 2
        [[flow]]
        from = 1
        [[flow]]
        kind = \"udp\"
        from = 2";
    fs::write(&scenario, text).unwrap();
    let capture = folder.path().join("air.pcap");
    let mut command = motet();
    command
        .arg("run")
        .arg(&scenario)
        .arg("--pcap")
        .arg(&capture);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(count(&capture, "tcp.len > 1000") > 100 && count(&capture, "udp") >= 5);
    assert_eq!(count(&capture, "_ws.malformed"), 0);
}

#[test]
fn options_of_the_other_radio_are_refused() {
    let folder = folder();
    let content = file(folder.path(), 10);
    let cases: &[(&[&str], &str)] = &[
        (&["--radio", "ble", "--hops", "2"], "--hops above 1"),
        (
            &["--radio", "ble", "--compression", "tcphc"],
            "--compression",
        ),
        (&["--radio", "ble", "--phy", "3M"], "3M"),
        (&["--radio", "ble", "--interval", "8"], "1.25"),
        (&["--phy", "2M"], "--radio ble"),
        (&["--tcple"], "--radio ble"),
        (
            &["--radio", "ble", "--tcple", "--interval", "15"],
            "leave out --interval",
        ),
        (&["--radio", "bluetooth"], "bluetooth"),
    ];
    for (options, words) in cases {
        let mut command = motet();
        command.arg("send").arg(&content).arg("--virtual");
        let output = command.args(*options).output().unwrap();
        assert_refused(&output, 2, &[words]);
    }
}

/// A controller that says `words` to whoever connects, and then nothing more.
fn controller_that_says(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("tcp:{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(words).unwrap();
        // What is left unread when a stream is closed resets it, and what was said is lost.
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    place
}

#[test]
fn a_controller_of_no_use_ends_a_mote_with_one_sentence() {
    let up = |place: &str| {
        let arguments = ["up", "--hci", place, "--role", "peripheral"];
        motet().args(arguments).output().unwrap()
    };
    const RESET_DONE: [u8; 7] = [4, 0x0e, 4, 1, 3, 0x0c, 0];
    const BLUETOOTH_4_0: [u8; 15] = [4, 0x0e, 12, 1, 1, 0x10, 0, 6, 0, 0, 6, 0, 0, 0, 0];
    const OLD: &[u8] = &{
        let (mut all, mut at) = ([0; 22], 0);
        while at < all.len() {
            all[at] = if at < 7 {
                RESET_DONE[at]
            } else {
                BLUETOOTH_4_0[at - 7]
            };
            at += 1;
        }
        all
    };
    let cases: [(&'static [u8], &str); 3] = [
        (&[], "is gone"),
        (b"garbage", "out of step"),
        (OLD, "Bluetooth 4.0"),
    ];
    for (words, sentence) in cases {
        let place = controller_that_says(words);
        assert_refused(&up(&place), 1, &[&place, sentence]);
    }
    assert_refused(&up("tcp:nowhere"), 2, &["tcp:HOST:PORT"]);
    let roleless = motet().args(["up", "--hci", "tcp:127.0.0.1:1"]).output();
    assert_refused(&roleless.unwrap(), 2, &["--role"]);
    let arguments = ["up", "--hci", "tcp:127.0.0.1:1", "--role", "peripheral"];
    let commanded = motet().args(arguments).args(["--", "true"]).output();
    assert_refused(&commanded.unwrap(), 2, &["--role central"]);
    for [name, value] in [
        ["--pacing", "off"],
        ["--key", "none.key"],
        ["--state", "none"],
    ] {
        let useless = motet().args(arguments).args([name, value]).output();
        assert_refused(&useless.unwrap(), 2, &["--hci", name]);
    }
    let alone = motet().args(["up", "--role", "central"]).output();
    assert_refused(&alone.unwrap(), 2, &["--hci"]);
}
