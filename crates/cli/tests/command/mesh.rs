//! `motet up` and what travels through it, with the programs that people use: nc, iperf3, tshark.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::common::{self, file, folder, has, motet, report, said};
use serde_json::Value;

/// The nearest mote.
const MOTE: &str = "fd6d:6f74:6574:1:4d:6f74:6574:1";

/// Runs a shell script beside a chain of one hop; `$M` is the mote.
fn up(options: &[&str], script: &str) -> Output {
    let script = format!("M={MOTE}\n{script}");
    let mut command = motet();
    command.args(["up", "--hops", "1"]).args(options);
    command.args(["--", "sh", "-c", &script]).output().unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

/// Six clients that die in the middle of an answer leave every buffer of the mote full of it.
#[test]
fn no_client_reads_what_was_sent_to_another() {
    if !has("nc") {
        return;
    }
    let script = "
        for client in 1 2 3 4 5 6; do timeout -s KILL 1 nc $M 19 > /dev/null; done
        echo still | nc -N -w 30 $M 7";
    let output = up(&[], script);
    assert_eq!(output.stdout, b"still\n", "{}", said(&output));
}

/// Beyond the limit a client is left waiting, and served as soon as another has gone: it is
/// neither refused nor reset, and no connection is made that cannot be served.
#[test]
fn clients_beyond_the_limit_wait_for_a_place() {
    if !has("nc") {
        return;
    }
    // Two clients stay connected until they are killed.
    let script = "
        mkfifo in; exec 3<> in
        nc $M 9 < in > /dev/null & first=$!
        sleep 1; echo one | nc -N -w 30 $M 7
        nc $M 9 < in > /dev/null & second=$!
        sleep 1; nc -v -w 3 $M 7 < /dev/null 2>&1 | grep -o 'timed out\\|refused\\|succeeded'
        kill $first
        sleep 1; echo three | nc -N -w 30 $M 7
        kill $second";
    let folder = folder();
    let script = format!("cd {}\n{script}", folder.path().display());
    let output = up(&["--connections", "2"], &script);
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The text is wrapped where the terminal's lines end.
    let text = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("serves 2 TCP connections"), "{stderr}");
    assert_eq!(
        lines(&output),
        ["one", "timed out", "three"],
        "{}",
        said(&output)
    );
}

/// Whatever the command has started is gone when `up` is, however that was ended.
#[test]
fn a_killed_up_takes_its_command_along() {
    for signal in ["KILL", "TERM"] {
        let mut up = motet()
            .args(["up", "--hops", "1", "--", "sh", "-c"])
            .arg("sleep 1000 & echo $!; (sleep 1000; true) & echo $!; echo $$; wait")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(up.stdout.take().unwrap());
        let processes: Vec<String> = stdout.lines().take(3).map(Result::unwrap).collect();
        let alive = || {
            let mut processes = processes.iter();
            processes.find(|process| Path::new("/proc").join(process).exists())
        };
        assert_eq!(processes.len(), 3);
        kill(&up, signal);
        up.wait().unwrap();
        let give_up = Instant::now() + Duration::from_secs(10);
        while alive().is_some() && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(alive(), None, "after SIG{signal}");
    }
}

fn kill(process: &Child, signal: &str) {
    let kill = format!("kill -{signal} {}", process.id());
    let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(status.success());
}

/// The kernel cuts packets beyond the mesh's MTU, and motes put them together up to what every node
/// has to take. Longer ones are nobody's, and no mote says that they are too big for a link.
#[test]
fn pings_beyond_the_mtu_are_answered() {
    if !has("ping") {
        return;
    }
    for (len, answer) in [
        (1_232, "3 received"),
        (1_400, "3 received"),
        (1_452, "3 received"),
        (1_453, "0 received"),
    ] {
        let output = up(&[], &format!("ping -c 3 -i 0.5 -W 5 -s {len} $M"));
        let text = lines(&output).join("\n");
        assert!(text.contains(answer), "{len}: {}", said(&output));
        assert!(!text.contains("Packet too big"), "{len}: {}", said(&output));
    }
}

/// A mesh that is no chain: a tree of two branches, one mote behind another.
#[test]
fn a_scenario_comes_up_beside_the_kernel() {
    if !has("ping") || !has("nc") {
        return;
    }
    let folder = folder();
    let scenario = folder.path().join("tree.toml");
    let text = "
        [topology]
        positions = [[0, 0], [20, 0], [-20, 0], [40, 0]]
        parents = [0, 0, 1]
        [path_loss]
        exponent = 3.8
        [stack]
        compression = \"tcphc\"
        [[flow]]
        from = 1
        [sweep]
        stack.retry_delay_ms = [40, 5]";
    fs::write(&scenario, text).unwrap();
    let script = "
        for mote in $MOTET_MOTES; do
            ping -c 1 -W 5 $mote > /dev/null && echo $mote | nc -N -w 30 $mote 7
        done";
    let up = |options: &[&str]| {
        let mut command = motet();
        command
            .arg("up")
            .arg("--scenario")
            .arg(&scenario)
            .args(options);
        command.args(["--", "sh", "-c", script]).output().unwrap()
    };
    let output = up(&["--seed", "3"]);
    let motes = [1, 2, 3].map(|mote| format!("{}{mote}", MOTE.strip_suffix('1').unwrap()));
    assert_eq!(lines(&output), motes, "{}", said(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    for words in [
        "flows and duration are left out",
        "first point: stack.retry_delay_ms = 40",
        "mote 2: fd6d:6f74:6574:1:4d:6f74:6574:2 (1 hop)",
        "mote 3: fd6d:6f74:6574:1:4d:6f74:6574:3 (2 hops, by way of mote 1)",
    ] {
        assert!(stderr.contains(words), "{words}: {}", said(&output));
    }
    common::assert_refused(&up(&["--hops", "2"]), 2, &["--scenario", "--hops"]);
    fs::write(&scenario, "[topology]\nchains = 3").unwrap();
    common::assert_refused(&up(&[]), 2, &["tree.toml", "chains"]);
}

/// What iperf3 says of tests of a mote, one object each.
fn iperf3(options: &[&str], tests: &[&str]) -> Vec<Value> {
    let script: Vec<String> = tests
        .iter()
        .map(|test| format!("timeout 60 iperf3 -J -c $M {test} | tr -d '\\n'; echo"))
        .collect();
    let output = up(options, &script.join("\n"));
    let stdout = lines(&output);
    assert_eq!(stdout.len(), tests.len(), "{}", said(&output));
    let parsed = stdout
        .iter()
        .map(|line| serde_json::from_str(line).unwrap());
    parsed.collect()
}

/// iperf3's own client against the mote: both directions, by time and by size, in parallel.
#[test]
fn iperf3_tests_a_mote() {
    if !has("iperf3") {
        return;
    }
    let tests = [
        "-t 2",
        "-t 2 -R",
        "-n 20K",
        "-n 10K -R",
        "-k 4 -l 1K",
        "-t 2 -P 3",
        "-t 2 -P 3 -R",
        "-t 2 -O 1",
        "--bidir -t 2",
    ];
    for (test, result) in tests.iter().zip(iperf3(&[], &tests)) {
        assert_eq!(result["error"], Value::Null, "{test}: {result}");
        let end = &result["end"];
        let [sent, received] = ["sum_sent", "sum_received"].map(|sum| &end[sum]["bytes"]);
        let [sent, received] = [sent, received].map(|bytes| bytes.as_u64().unwrap());
        // What was under way when the omitted seconds ended counts where it arrives alone.
        let counts_apart = test.contains("-O");
        let adds_up = received <= sent || counts_apart;
        assert!(0 < received && adds_up, "{test}: {end}");
        let kbps = end["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e3;
        assert!((10.0..90.0).contains(&kbps), "{test}: {kbps} kb/s");
        // A test by size ends when the mote has everything, not when the kernel has taken it.
        let size = [("-n 20K", 20 << 10), ("-k 4 -l 1K", 4 << 10)];
        if let Some((_, bytes)) = size.iter().find(|(by_size, _)| by_size == test) {
            assert!(received >= *bytes, "{test}: {end}");
        }
        let streams = end["streams"].as_array().unwrap().len();
        let expected = if test.contains("-P 3") { 3 } else { 1 };
        let ways = if test.contains("--bidir") { 2 } else { 1 };
        assert_eq!(streams, expected * ways, "{test}");
    }
}

/// What the mote cannot do it says in iperf3's own way, and goes on with the next test.
#[test]
fn iperf3_tests_that_cannot_be_are_refused() {
    if !has("iperf3") || !has("nc") {
        return;
    }
    let script = "
        iperf3 -c $M -P 3 -t 2 2>&1 | grep error
        iperf3 -c $M -u -t 2 2>&1 | grep error
        (timeout 8 iperf3 -c $M -t 4 | grep -c receiver) &
        sleep 2
        timeout 5 iperf3 -c $M -t 2 2>&1 | grep error
        wait
        timeout -s KILL 2 iperf3 -c $M -t 9 > /dev/null
        head -c 4000 /dev/urandom | timeout 5 nc $M 5201 > /dev/null
        iperf3 -c $M -n 4K | grep -c receiver";
    let output = up(&["--connections", "3"], script);
    let expected = [
        "iperf3: error - number of parallel streams too large (maximum = 128)",
        "iperf3: error - an option you are trying to set is not implemented yet",
        "iperf3: error - the server is busy running a test. try again later",
        "1",
        "1",
    ];
    assert_eq!(lines(&output), expected, "{}", said(&output));
}

/// What tshark has to say of those frames of a capture that pass `filter`, a line a frame.
fn tshark(capture: &Path, filter: &str, columns: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", filter]);
    let output = command.args(columns).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    lines(&output)
}

/// Nothing that Motet puts on the air is taken for a broken message of another protocol.
#[test]
fn tshark_reads_every_payload_as_data() {
    if !has("tshark") {
        return;
    }
    let folder = folder();
    let content = file(folder.path(), 8 << 10);
    let scenario = folder.path().join("flows.toml");
    let text = "
        duration_s = 20
        [topology]
        chain = 2
        [stack]
        compression = \"none\"
        [[flow]]
        [[flow]]
        kind = \"udp\"
        [[flow]]
        from = \"host\"
        to = 1
        [[flow]]
        kind = \"request\"
        from = 1";
    fs::write(&scenario, text).unwrap();
    let [up, down, run] = ["up", "down", "run"].map(|name| folder.path().join(name));
    for (direction, capture) in [("up", &up), ("down", &down)] {
        let mut send = motet();
        // tshark does not know compressed headers.
        send.args(["send", "--compression=none"])
            .arg(&content)
            .args(["--direction", direction]);
        let output = send.arg("--json").arg("--pcap").arg(capture).output();
        let report = report(&output.unwrap());
        let sender = if direction == "up" { "mote" } else { "kernel" };
        assert_eq!(report["sender"], sender, "{report}");
    }
    let mut command = motet();
    command.arg("run").arg(&scenario).arg("--pcap").arg(&run);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for capture in [&up, &down, &run] {
        assert_eq!(tshark(capture, "_ws.malformed", &[]), Vec::<String>::new());
        let protocols = ["-T", "fields", "-e", "frame.protocols"];
        let frames = tshark(capture, "6lowpan", &protocols);
        let known = [
            "wpan-tap", "wpan", "6lowpan", "ipv6", "icmpv6", "udp", "tcp", "data",
        ];
        let others = frames.iter().flat_map(|frame| frame.split(':'));
        let others: Vec<&str> = others.filter(|name| !known.contains(name)).collect();
        assert_eq!(others, Vec::<&str>::new());
        let data = tshark(capture, "data && (tcp || udp)", &[]);
        assert!(data.len() > 10, "{} payloads", data.len());
    }
}

/// Each frame is there to be read as soon as it is on the air, while the command still runs.
#[test]
fn a_capture_can_be_watched_live() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for target in ["-", fifo.to_str().unwrap()] {
        let mut up = motet()
            .args(["up", "--hops", "1", "--pcap", target, "--", "sh", "-c"])
            .arg(format!("echo out; ping -i 0.2 {MOTE}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut capture: Box<dyn std::io::Read> = match target {
            "-" => Box::new(up.stdout.take().unwrap()),
            fifo => Box::new(fs::File::open(fifo).unwrap()),
        };
        // Ends only if the frames come while the command, which never ends, goes on.
        let mut records = vec![0; 4_000];
        capture.read_exact(&mut records).unwrap();
        assert_eq!(records[..4], [0xd4, 0xc3, 0xb2, 0xa1], "{target}");
        // A reader that has seen enough is no failure; the mesh lives on.
        drop(capture);
        thread::sleep(Duration::from_millis(500));
        assert_eq!(up.try_wait().unwrap(), None, "{target}");
        kill(&up, "TERM");
        let output = up.wait_with_output().unwrap();
        let place = if target == "-" {
            &output.stderr
        } else {
            &output.stdout
        };
        let text = String::from_utf8_lossy(place);
        assert!(text.contains("out\n"), "{target}: {}", said(&output));
        assert_eq!(
            output.status.code(),
            Some(143),
            "{target}: {}",
            said(&output)
        );
        // What the reader got is not nothing.
        let stderr = String::from_utf8_lossy(&output.stderr);
        let name = if target == "-" {
            "on standard output"
        } else {
            target
        };
        assert!(stderr.contains("the capture"), "{}", said(&output));
        assert!(stderr.contains(name), "{}", said(&output));
        assert!(!stderr.contains("nothing behind"), "{}", said(&output));
    }
}

/// The records of a capture; panics where it does not end with a whole one.
fn records(capture: &[u8]) -> usize {
    let (head, mut rest) = capture.split_at_checked(24).expect("a head");
    assert_eq!(head[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
    let mut records = 0;
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().unwrap());
        rest = rest.get(16 + len as usize..).expect("a whole record");
        records += 1;
    }
    records
}

/// A capture in a file grows frame by frame under its name, and is whole after the harshest of
/// ends.
#[test]
fn a_capture_file_can_be_followed_and_outlives_a_kill() {
    let folder = folder();
    let path = folder.path().join("air.pcap");
    let command = ["--", "ping", "-i", "0.1", MOTE];
    let mut up = motet();
    up.args(["up", "--hops", "1", "--pcap"]).arg(&path);
    let mut up = up.args(command).stdout(Stdio::null()).spawn().unwrap();
    let mut seen = Vec::new();
    let give_up = Instant::now() + Duration::from_secs(30);
    while seen.len() < 5 && Instant::now() < give_up {
        let now = fs::read(&path).map_or(0, |capture| records(&capture));
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(up.try_wait().unwrap(), None, "it goes on");
    kill(&up, "KILL");
    up.wait().unwrap();
    assert!(seen.len() == 5 && seen.is_sorted(), "it grows: {seen:?}");
    assert!(records(&fs::read(&path).unwrap()) >= seen[4]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A reader that has stopped reading holds the command up until a signal, and no longer.
#[test]
fn a_stalled_reader_is_given_up_for_a_signal() {
    let folder = folder();
    let content = file(folder.path(), 250 << 10);
    let scenario = folder.path().join("chain.toml");
    fs::write(
        &scenario,
        "duration_s = 900\n[topology]\nchain = 3\n[[flow]]",
    )
    .unwrap();
    let (content, scenario) = (content.to_str().unwrap(), scenario.to_str().unwrap());
    let ping = ["ping", "-i", "0.02", "-s", "1000", MOTE];
    let mut up = vec!["up", "--pcap", "-", "--hops", "1", "--"];
    up.extend(ping);
    let cases: [(&[&str], &str, i32); 4] = [
        (&["send", content, "--virtual", "--pcap", "-"], "INT", 130),
        (&["send", content, "--hops", "1", "--pcap", "-"], "INT", 130),
        (&["run", scenario, "--pcap", "-"], "TERM", 143),
        (&up, "INT", 130),
    ];
    let children = cases.map(|(arguments, signal, status)| {
        let child = motet()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        (arguments, signal, status, child)
    });
    // Long enough to fill a pipe.
    thread::sleep(Duration::from_secs(4));
    for (arguments, signal, status, mut child) in children {
        assert_eq!(child.try_wait().unwrap(), None, "{arguments:?} is held up");
        kill(&child, signal);
        let give_up = Instant::now() + Duration::from_secs(10);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < give_up, "{arguments:?} hangs");
            thread::sleep(Duration::from_millis(10));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said_of(&output));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("its reader stopped reading"), "{stderr}");
        // What is in the pipe is whole.
        assert!(records(&output.stdout) > 100, "{arguments:?}");
    }
}

/// As [`said`], without a capture.
fn said_of(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}: {stderr}", output.status)
}

/// Ctrl-C in a terminal is the command's business; a SIGINT to `up` alone ends both.
#[test]
fn ctrl_c_belongs_to_the_command_and_a_sent_signal_to_up() {
    let script = "trap 'exit 9' INT; echo up; while :; do sleep 0.1; done";
    let arguments = ["up", "--hops", "1", "--", "sh", "-c", script];
    let mut child = motet();
    let child = child.args(arguments).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 3];
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut line).unwrap();
    kill(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));

    if !has("script") {
        return;
    }
    // script(1) gives it a terminal, in which ^C is typed. No shell may stay in between: ^C would
    // end that shell, and script(1) would report the shell's status.
    let inner = format!(
        "exec {} up --hops 1 -- sh -c \"{script}\"",
        env!("CARGO_BIN_EXE_motet")
    );
    let mut terminal = Command::new("script")
        .env("SHELL", "/bin/sh")
        .args(["-q", "-e", "-c", &inner, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != "up" {
        line.clear();
        assert!(shown.read_line(&mut line).unwrap() > 0, "it never came up");
    }
    let mut keys = terminal.stdin.take().unwrap();
    std::io::Write::write_all(&mut keys, b"\x03").unwrap();
    assert_eq!(terminal.wait().unwrap().code(), Some(9));
}

/// The report makes room for a capture on standard output.
#[test]
fn a_report_goes_to_stderr_where_a_capture_has_stdout() {
    let folder = folder();
    let content = file(folder.path(), 1_000);
    let send = |options: &[&str]| {
        let mut command = motet();
        command
            .arg("send")
            .arg(&content)
            .args(["--virtual", "--hops", "1"]);
        command.args(options).output().unwrap()
    };
    let path = folder.path().join("air.pcap");
    let filed = send(&["--pcap", path.to_str().unwrap()]);
    assert!(filed.status.success(), "{}", said(&filed));
    let streamed = send(&["--pcap", "-"]);
    assert!(streamed.status.success());
    assert_eq!(streamed.stdout, fs::read(&path).unwrap());
    let report = String::from_utf8_lossy(&streamed.stderr);
    assert!(report.contains("equal at both ends"), "{report}");
    // JSON lines have one place, in every command.
    common::assert_refused(&send(&["--json", "--pcap", "-"]), 2, &["standard output"]);
}

/// The same of a scenario's air and wire: a table, and what cannot share standard output.
#[test]
fn a_scenario_s_captures_can_be_piped() {
    let folder = folder();
    let scenario = folder.path().join("chain.toml");
    fs::write(&scenario, "duration_s = 8\n[topology]\nchain = 1\n[[flow]]").unwrap();
    let run = |options: &[&str]| {
        let mut command = motet();
        command.arg("run").arg(&scenario).args(options);
        command.current_dir(folder.path()).output().unwrap()
    };
    for option in ["--pcap", "--wire-pcap"] {
        let filed = run(&[option, "file", "--force"]);
        assert!(filed.status.success(), "{}", said(&filed));
        let piped = run(&[option, "-", "--json", "lines", "--force"]);
        assert_eq!(piped.status.code(), Some(0), "{}", said_of(&piped));
        assert!(records(&piped.stdout) > 10, "{option}");
        let file = fs::read(folder.path().join("file")).unwrap();
        assert!(piped.stdout == file, "{option}");
        assert_eq!(piped.stderr, filed.stdout, "the table");
        assert!(!folder.path().join("-").exists());
        common::assert_refused(&run(&[option, "-", "--json", "-"]), 2, &["standard output"]);
    }
    let both = run(&["--pcap", "-", "--wire-pcap", "-"]);
    common::assert_refused(&both, 2, &["standard output"]);
}

/// Interrupted, `up` and `send` leave a capture that is whole as far as it goes.
#[test]
fn an_interrupted_capture_is_whole() {
    if !has("tshark") {
        return;
    }
    let folder = folder();
    let content = file(folder.path(), 250 << 10);
    let content = content.to_str().unwrap();
    let cases = [
        (vec!["send", content], 130, "INT"),
        (vec!["up", "--", "ping", "-i", "0.2", MOTE], 143, "TERM"),
    ];
    for (arguments, status, signal) in cases {
        let path = folder.path().join(arguments[0]);
        let mut child = motet();
        child
            .args(&arguments[..1])
            .arg("--pcap")
            .arg(&path)
            .args(&arguments[1..]);
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.unwrap();
        thread::sleep(Duration::from_secs(2));
        kill(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        let sentence = format!("interrupted; kept up to then: {}", path.display());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(&sentence), "{}", said(&output));
        assert!(tshark(&path, "6lowpan", &[]).len() > 5, "{arguments:?}");
        assert_eq!(tshark(&path, "_ws.malformed", &[]), Vec::<String>::new());
    }
}
