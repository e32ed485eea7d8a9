//! Bad usage and bad input: exit status 2, one sentence that says what to do.

use std::{fs, path::Path};

use crate::common::{self, assert_refused, file, folder, motet, run};

#[test]
fn bad_arguments_are_refused() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["send"], &["send needs <FILE>", "motet send --help"]),
        (
            &["model", "--mss", "9"],
            &["model needs --rtt <MS> and --loss"],
        ),
        (&["up", "ping"], &["put --", "motet up -- ping"]),
        (&["up", "--hop", "1"], &["did you mean --hops?"]),
        (&["--json"], &["motet --help"]),
        (&["send", "f", "--hops", "0"], &["--hops", "from 1 to 32"]),
        (&["send", "f", "--hops", "200"], &["--hops", "from 1 to 32"]),
        (&["send", "f", "--hops", "three"], &["a whole number"]),
        (&["send", "f", "--hopps", "3"], &["did you mean --hops?"]),
        (
            &["send", "f", "--frame-loss", "1.5"],
            &["--frame-loss", "between 0 and 1"],
        ),
        (
            &["send", "f", "--frame-loss", "-0.1"],
            &["--frame-loss", "between 0 and 1"],
        ),
        (
            &["send", "f", "--packet-loss", "nan"],
            &["--packet-loss", "between 0 and 1"],
        ),
        (
            &["send", "f", "--packet-loss", "much"],
            &["--packet-loss", "between 0 and 1"],
        ),
        (&["send", "f", "--hops", "-1"], &["--hops", "from 1 to 32"]),
        (
            &["send", "f", "--retry-delay", "-1"],
            &["--retry-delay", "from 0 to 2000"],
        ),
        (&["send", "f", "--mss-frames", "0"], &["--mss-frames"]),
        (&["send", "f", "--mss-frames", "100"], &["--mss-frames"]),
        (&["send", "f", "--window", "0"], &["--window"]),
        (&["send", "f", "--seed", "x"], &["--seed"]),
        (&["send", "f", "--seed", "-1"], &["--seed", "from 0 up"]),
        (&["send", "f", "--direction", "left"], &["--direction"]),
        (&["send", "f", "--forwarding", "mail"], &["--forwarding"]),
        (&["send", "f", "--channels", "two"], &["--channels"]),
        (&["send", "f", "--radio", "cb"], &["--radio"]),
        (&["send", "f", "--hold", "-1"], &["--hold", "1000 ms"]),
        (
            &[
                "send",
                "Cargo.toml",
                "--forwarding",
                "cit",
                "--radio",
                "hamilton",
            ],
            &["one buffer", "--radio telosb", "leave out"],
        ),
        (
            &["up", "--forwarding", "cit", "--radio", "hamilton"],
            &["one buffer"],
        ),
        (
            &["send", "f", "--sleep", "nap"],
            &[
                "--sleep",
                "fixed:SECONDS, paper, adaptive, hinted or hinted:SECONDS",
            ],
        ),
        (
            &["send", "f", "--sleep", "fixed:0"],
            &["--sleep", "0.01 to 300 seconds"],
        ),
        (&["send", "f", "--sleep", "fixed:soon"], &["0.01 to 300"]),
        (&["send", "f", "--sleep", "hinted:301"], &["0.01 to 300"]),
        (&["up", "--sleep", "hinted:"], &["0.01 to 300"]),
        (
            &["send", "Cargo.toml", "--sleep", "hinted", "--radio", "ble"],
            &["--sleep is an option of IEEE 802.15.4"],
        ),
        (
            &[
                "send",
                "Cargo.toml",
                "--sleep",
                "hinted",
                "--radio",
                "telosb",
            ],
            &["something waits", "--radio hamilton", "leave out"],
        ),
        (&["send", "f", "--force"], &["--pcap", "--trace"]),
        (&["up", "--hops", "0"], &["--hops"]),
        (
            &["up", "--connections", "0"],
            &["--connections", "from 1 to 64"],
        ),
        (
            &["up", "--scenario", "none.toml", "--window", "4"],
            &["--scenario", "--window"],
        ),
        (
            &["up", "--scenario", "none.toml", "--sleep", "hinted"],
            &["--scenario", "--sleep"],
        ),
        (
            &["up", "--scenario", "none.toml", "--key", "none.key"],
            &["--scenario", "--key"],
        ),
        (
            &["up", "--hops", "1", "--state", "none", "--", "true"],
            &["--state", "has none"],
        ),
        (&["sniff", "--channel", "15"], &["sniff needs", "--radio"]),
        (&["sniff", "--radio", "x"], &["sniff needs", "--scan"]),
        (
            &["sniff", "--radio", "x", "--pcap", "f"],
            &["sniff needs --channel <N>"],
        ),
        (
            &["sniff", "--radio", "x", "--channel", "27", "--pcap", "f"],
            &["--channel", "from 11 to 26"],
        ),
        (
            &["sniff", "--radio", "x", "--scan", "--channel", "15"],
            &["--scan", "--channel"],
        ),
        (
            &["sniff", "--radio", "x", "--scan", "--pcap", "f"],
            &["--scan", "--pcap"],
        ),
        (
            &["sniff", "--radio", "x", "--scan", "--seconds", "3"],
            &["--scan", "--seconds"],
        ),
        (&["mote"], &["mote needs --radio <URL>"]),
        (
            &["mote", "--radio", "x", "--port", "8"],
            &["--port", "7 (echo), 9 (discard), 19 (chargen) and 5201"],
        ),
        (
            &["mote", "--radio", "x", "--sleep", "nap"],
            &["--sleep", "fixed:SECONDS, paper, adaptive"],
        ),
        (
            &["mote", "--radio", "x", "--key", "k", "--join-key", "j"],
            &["--key", "--join-key"],
        ),
        (
            &["mote", "--radio", "x", "--join-key", "Cargo.toml"],
            &["no device's own key", "motet keys device"],
        ),
        (
            &["router", "--radio", "x", "--pan", "1", "--joining", "cojp"],
            &["router needs --key <FILE>"],
        ),
        (&["attach", "1"], &["process 1 is no motet up"]),
        (&["attach", "sh"], &["invalid value 'sh'"]),
        (
            &["router", "status", "--hosts", "--json"],
            &["--hosts", "--json"],
        ),
        (
            &["mote", "--radio", "x", "--pan", "ffff"],
            &["--pan", "four hexadecimal digits"],
        ),
        (&["mote", "--radio", "x"], &["--pan", "--key"]),
        (
            &["mote", "--radio", "x", "--pan", "abcd", "--state", "d"],
            &["--state", "name a key"],
        ),
        (
            &["mote", "--radio", "x", "--pan", "abcd"],
            &["--radio: a radio is at spinel+hdlc+uart"],
        ),
        #[cfg(target_os = "linux")]
        (
            &["mote", "--radio", "wpan:lo", "--pan", "abcd"],
            &["lo is no interface of IEEE 802.15.4", "iwpan dev"],
        ),
        #[cfg(target_os = "linux")]
        (
            &["sniff", "--radio", "wpan:lo", "--scan"],
            &["--scan needs a radio co-processor"],
        ),
        (
            &["router", "--radio", "x", "--pan", "abcd"],
            &["--radio: a radio is at spinel+hdlc+uart"],
        ),
        (
            &["router", "--radio", "x", "--air", "y"],
            &["--radio", "--air"],
        ),
        (
            &[
                "router",
                "--nfqueue",
                "5",
                "--interface",
                "w",
                "--radio",
                "x",
            ],
            &["--radio", "--nfqueue"],
        ),
        // Each of the three is a router, and none of them alone is what is missing.
        (&["router"], &["<--nfqueue <N|auto>|", "--radio <URL>"]),
        (
            &["router", "--air", "x", "--pan", "abcd"],
            &["--air", "--pan"],
        ),
        (&["fly"], &["fly"]),
        (&["reproduc"], &["did you mean reproduce?"]),
        (&["soak", "--seconds", "-1"], &["--seconds", "from 1 to"]),
        (&["run", "f", "--seeds", "-1"], &["--seeds", "from 1 to"]),
    ];
    for (arguments, words) in cases {
        assert_refused(&run(*arguments), 2, words);
    }
}

#[test]
fn nothing_at_all_shows_help() {
    let output = run::<&str>([]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("motet send README.md"));
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let folder = folder();
    let missing = folder.path().join("missing");
    for mode in [&[][..], &["--virtual"]] {
        let send = |path: &Path| motet().arg("send").arg(path).args(mode).output().unwrap();
        assert_refused(&send(&missing), 2, &["missing", "no such file"]);
        assert_refused(&send(folder.path()), 2, &["is a directory"]);
    }
}

/// Root reads everything, so this needs another uid, and root to take it.
#[cfg(unix)]
#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::{fs::PermissionsExt as _, process::CommandExt as _};
    let folder = folder();
    let path = file(folder.path(), 1);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let binary = common::copy_program(env!("CARGO_BIN_EXE_motet").as_ref(), folder.path(), "motet");
    let mut command = common::command(&binary);
    if fs::read(&path).is_ok() {
        command.uid(65534).gid(65534);
    }
    let output = command
        .arg("send")
        .arg(&path)
        .arg("--virtual")
        .output()
        .unwrap();
    assert_refused(&output, 2, &["permission denied"]);
}

#[test]
fn a_capture_is_never_overwritten_unasked() {
    let folder = folder();
    let path = file(folder.path(), 1);
    let pcap = folder.path().join("air.pcap");
    fs::write(&pcap, "precious").unwrap();
    let send = || {
        let mut command = motet();
        command
            .arg("send")
            .arg(&path)
            .args(["--virtual", "--hops", "1", "--pcap"]);
        command
    };
    assert_refused(
        &send().arg(&pcap).output().unwrap(),
        2,
        &["exists", "--force"],
    );
    assert_eq!(fs::read(&pcap).unwrap(), b"precious");
    assert_refused(
        &send().arg(folder.path()).output().unwrap(),
        2,
        &["is a directory, name a file"],
    );
    assert_refused(
        &send()
            .arg(folder.path().join("air.pcap/air.pcap"))
            .output()
            .unwrap(),
        2,
        &["cannot write", "not a directory"],
    );

    let forced = send().arg(&pcap).arg("--force").output().unwrap();
    assert!(forced.status.success(), "{}", common::said(&forced));
    assert_ne!(fs::read(&pcap).unwrap(), b"precious");
    // Nothing but what was asked for: the file, the capture.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A trace has lines for a file; the report has standard output.
#[test]
fn a_trace_wants_a_file() {
    let arguments = ["send", "Cargo.toml", "--virtual", "--trace", "-"];
    assert_refused(&run(arguments), 2, &["a trace goes to a file"]);
    assert!(!Path::new("-").exists());
}

/// A device has no end, and its place is not ours to take, whatever root may do.
#[cfg(unix)]
#[test]
fn devices_are_refused() {
    let send = |file: &str, options: &[&str]| {
        let mut command = motet();
        command.args(["send", file, "--virtual"]).args(options);
        command.output().unwrap()
    };
    assert_refused(&send("/dev/zero", &[]), 2, &["longer than 64 MiB"]);
    let pcap = ["--pcap", "/dev/null", "--force"];
    assert_refused(&send("Cargo.toml", &pcap), 2, &["no regular file"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// `motet … | head -0`: a reader that stops reading is no failure, and no panic.
#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = folder();
    let path = file(folder.path(), 1);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = motet()
        .arg("send")
        .arg(&path)
        .args(["--virtual", "--hops", "1"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    let stderr = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(stderr, "");
}

/// What never gets through ends, with a sentence, in virtual as in real time.
#[test]
fn a_dead_air_is_given_up() {
    let folder = folder();
    let path = file(folder.path(), 1000);
    for loss in ["--frame-loss", "--packet-loss"] {
        let output = motet()
            .arg("send")
            .arg(&path)
            .args(["--virtual", loss, "1"])
            .output()
            .unwrap();
        assert_refused(&output, 1, &["lower", "loss"]);
    }
}

/// A hold so long that frames are too old when they may go is what is wrong, not the losses.
#[test]
fn the_option_that_stops_everything_is_named() {
    let folder = folder();
    let path = file(folder.path(), 1_000);
    let path = path.to_str().unwrap();
    let cases = [
        (["--hold", "500"], "lower --hold"),
        (["--hold", "1000"], "lower --hold"),
        (["--packet-loss", "1"], "lower the losses"),
    ];
    for (option, advice) in cases {
        let output = motet()
            .args(["send", path, "--virtual"])
            .args(option)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(advice), "{option:?}: {stderr}");
    }
}

/// A shell itself completes: what it offers behind `motet de`, and behind `motet run --se`.
#[test]
fn bash_completes_commands_and_options() {
    let script = motet().args(["completions", "bash"]).output().unwrap();
    assert!(script.status.success());
    let folder = folder();
    let path = folder.path().join("motet.bash");
    fs::write(&path, script.stdout).unwrap();
    for (words, offered) in [
        ("motet de", "decode"),
        ("motet run --se", "--seed --seeds"),
        ("motet router st", "status"),
        // The command that only Motet itself starts.
        ("motet gua", ""),
    ] {
        let line = format!(
            "source {path}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _motet motet \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; \
             echo \"${{COMPREPLY[*]}}\"",
            path = path.display()
        );
        let output = std::process::Command::new("bash")
            .args(["--norc", "-c", &line])
            .output()
            .unwrap();
        let got = String::from_utf8_lossy(&output.stdout);
        assert_eq!(got.trim(), offered, "{words}: {output:?}");
    }
}
