//! `motet up --app`: what its motes serve besides, asked by curl and nc from this machine's kernel.
#![cfg(target_os = "linux")]

use std::process::Output;

use crate::common::{has, motet, said};
use motet_lab::apps::backlog::Reading;

/// Runs a shell script beside a mote with an application; `$M` is the mote. `None`, with a line that
/// says why, where this machine lets nobody make a network of his own; with `CI=true` that fails.
fn up(app: &str, script: &str) -> Option<Output> {
    up_with(&["--app", app], script)
}

/// The same with any options.
fn up_with(options: &[&str], script: &str) -> Option<Output> {
    let script = format!("M=${{MOTET_MOTES%% *}}\n{script}");
    let mut command = motet();
    command.arg("up").args(options);
    if !options.contains(&"--hops") {
        command.args(["--hops", "1"]);
    }
    let output = command.args(["--", "sh", "-c", &script]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_forbidden = stderr.contains("not permitted") || stderr.contains("namespace");
    if output.status.success() || !is_forbidden {
        return Some(output);
    }
    let is_ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(!is_ci, "{}", said(&output));
    eprintln!("not run: {stderr}");
    None
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn curl_reads_the_pages_of_a_mote() {
    if !has("curl") {
        return;
    }
    let script = "
        curl -sg --max-time 60 http://[$M]/
        curl -sg --max-time 60 -o /dev/null -w '%{http_code} %{size_download}\n' http://[$M]/none
        curl -sgI --max-time 60 http://[$M]/ | head -n 1
        curl -sg --max-time 60 -X DELETE http://[$M]/
        curl -sg --max-time 60 http://[$M]/status | grep -c '^uptime .* s$\\|^connections 1$'";
    let Some(output) = up("http", script) else {
        return;
    };
    let expected = [
        "hello from a mote",
        "404 13",
        "HTTP/1.1 200 OK",
        "GET and HEAD alone",
        "2",
    ];
    assert_eq!(lines(&output), expected, "{}", said(&output));
}

/// Four clients of this kernel that say nothing hold every place of the mote; a fifth one is served at
/// once all the same, another one behind it too, and in the end the four are closed.
#[test]
fn idle_clients_keep_nobody_from_a_motes_pages() {
    if !has("curl") || !has("nc") {
        return;
    }
    let script = "
        begin=$(date +%s)
        clients=
        for client in 1 2 3 4; do
            timeout 150 nc -d $M 80 > /dev/null 2>&1 & clients=\"$clients $!\"
        done
        sleep 12
        for newcomer in 5 6; do
            curl -sg --max-time 20 -w '%{time_total}\n' http://[$M]/
        done
        for client in $clients; do
            wait $client; [ $? = 124 ] && echo stays
        done
        echo $(($(date +%s) - begin))";
    let Some(output) = up("http", script) else {
        return;
    };
    let lines = lines(&output);
    let [first, took, second, took_again, all] = &lines[..] else {
        panic!("{}", said(&output));
    };
    assert_eq!([first, second], ["hello from a mote"; 2]);
    for took in [took, took_again] {
        let seconds: f64 = took.parse().unwrap();
        assert!(seconds < SYN_AGAIN_TWICE_S, "{lines:?}");
    }
    let seconds: u64 = all.parse().unwrap();
    assert!(seconds < HEADER_TIMEOUT_S + 20, "{lines:?}");
}

/// Linux sends a SYN again after 1 s and after 3 s: a newcomer's first finds no place, and makes one.
const SYN_AGAIN_TWICE_S: f64 = 4.0;

/// How long a web server waits for a whole request.
const HEADER_TIMEOUT_S: u64 = 60;

#[test]
fn a_mote_has_a_shell() {
    if !has("nc") {
        return;
    }
    let script = "printf 'echo of a line\nuptime\nrm\nexit\n' | nc -N -w 60 $M 23";
    let Some(output) = up("shell", script) else {
        return;
    };
    let mut lines = lines(&output);
    assert_eq!(lines.len(), 5, "{}", said(&output));
    let uptime = lines.remove(2);
    assert!(
        uptime.starts_with("> ") && uptime.ends_with(" s"),
        "{uptime}"
    );
    let expected = [
        "a mote; try help",
        "> of a line",
        "> no command rm; try help",
        "> bye",
    ];
    assert_eq!(lines, expected);
}

/// Its receiver is off for up to five seconds between two requests.
#[test]
fn a_mote_that_sleeps_answers_pings_and_echoes_over_tcp() {
    if !has("ping") || !has("nc") {
        return;
    }
    let script = "
        ping -c 3 -i 0.2 -W 60 $M | grep -o '3 received'
        printf 'asleep until now\n' | nc -N -w 60 $M 7";
    for policy in ["adaptive", "fixed:0.2"] {
        let Some(output) = up_with(&["--sleep", policy], script) else {
            return;
        };
        let expected = ["3 received", "asleep until now"];
        assert_eq!(lines(&output), expected, "{policy}: {}", said(&output));
    }
}

/// The CoAP that TCP is compared with is what libcoap takes for CoAP: its server puts the blocks of a
/// body together, and its client reads the body back.
#[test]
fn libcoap_takes_the_blocks_of_a_mote() {
    if !has("coap-server-notls") || !has("coap-client-notls") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    let script = format!(
        "coap-server-notls -d 4 > /dev/null 2>&1 & server=$!
        for try in $(seq 120); do
            coap-client-notls -m get -B 2 -o {0} 'coap://[{HOST}]/r' > /dev/null 2>&1
            [ -s {0} ] && break
            sleep 0.5
        done
        kill $server",
        body.display()
    );
    let Some(output) = up("coap", &script) else {
        return;
    };
    let bytes = std::fs::read(&body).unwrap_or_default();
    let readings: Vec<_> = bytes.chunks(82).map(Reading::parse).collect();
    let first = readings
        .first()
        .copied()
        .flatten()
        .map(|reading| reading.number);
    let numbers = (0..4).map(|place| first.map(|first| first + place));
    let read: Vec<_> = readings
        .iter()
        .map(|reading| reading.map(|reading| reading.number))
        .collect();
    assert_eq!(read, numbers.collect::<Vec<_>>(), "{}", said(&output));
    assert_eq!(first.map(|first| first % 4), Some(0), "a batch is a body");
}

/// This machine, as motes name it.
const HOST: &str = "fd6d:6f74:6574::1";

/// An image of MCUboot's format without a signature, of this many bytes.
fn image(len: usize, seed: u8) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let payload = len - 32 - 40;
    let mut image = Vec::new();
    image.extend(0x96f3_b83d_u32.to_le_bytes());
    image.extend([0, 0, 0, 0, 32, 0, 0, 0]);
    image.extend((payload as u32).to_le_bytes());
    image.extend([0, 0, 0, 0, 1, seed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    image.extend((0..payload).map(|at| (at * 7 + at / 251) as u8 ^ seed));
    let hash = Sha256::digest(&image);
    image.extend([0x07, 0x69, 40, 0, 0x10, 0, 32, 0]);
    image.extend(hash);
    image
}

#[test]
fn curl_brings_new_firmware_and_goes_on_where_it_broke_off() {
    if !has("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fw.bin"), image(20_000, 1)).unwrap();
    std::fs::write(folder.path().join("other.bin"), [7; 5_000]).unwrap();
    std::fs::write(folder.path().join("large.bin"), vec![0; 600_000]).unwrap();
    let script = r#"
        cd FOLDER
        URL="http://[$M]/firmware"
        ask() { rm -f said; curl -sg --max-time 60 -o said -w '%{http_code}\n' "$@"; cat said; }
        told() { curl -sgI --max-time 60 "$URL" | tr -d '\r' | sed -n "s/^$1: //p"; }
        told Content-Length
        head -c 9000 fw.bin > part.bin
        ask -T part.bin -H 'Content-Range: bytes 0-8999/20000' "$URL"
        HELD=$(told Content-Length)
        echo "$HELD"
        OWN=$(python3 -c 'import base64, hashlib, sys
            sum = hashlib.sha256(open("fw.bin", "rb").read(int(sys.argv[1])))
            print(base64.b64encode(sum.digest()).decode())' "$HELD")
        [ "$(told Repr-Digest)" = "sha-256=:$OWN:" ] && echo same
        ask -C 100 -T fw.bin "$URL"
        ask -T other.bin "$URL"
        ask -C "$HELD" -T fw.bin "$URL"
        tail -c +101 fw.bin | head -c 100 > range.bin
        curl -sg --max-time 60 -r 100-199 "$URL" | cmp - range.bin && echo range
        curl -sg --max-time 60 "$URL" | cmp - fw.bin && echo whole
        ask -X DELETE "$URL"
        ask -T large.bin "$URL"
        printf data | ask -T - "$URL""#;
    let script = script.replace("FOLDER", folder.path().to_str().unwrap());
    let script = script.replace("\n            ", "\n");
    let Some(output) = up("firmware", &script) else {
        return;
    };
    let expected = [
        "0",
        "202",
        "9000 of 20000 bytes are stored",
        "9000",
        "same",
        "409",
        "9000 of 20000 bytes are stored: go on there, or begin at 0",
        "422",
        "this is no image of MCUboot",
        "201",
        "version 1.1.0+0 is stored, verified and pending",
        "range",
        "whole",
        "405",
        "Method Not Allowed",
        "413",
        "the slot takes 495616 bytes",
        "411",
        "Length Required",
    ];
    assert_eq!(lines(&output), expected, "{}", said(&output));
}

#[test]
fn a_mote_fetches_firmware_from_another_with_the_token_of_both() {
    if !has("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fw.bin"), image(9_000, 2)).unwrap();
    std::fs::write(folder.path().join("token"), "s3cret\n").unwrap();
    let script = r#"
        cd FOLDER
        set -- $MOTET_MOTES
        ask() { rm -f said; curl -sg --max-time 90 -o said -w '%{http_code}\n' "$@"; cat said; }
        token='Authorization: Bearer s3cret'
        list='Content-Type: text/uri-list'
        ask -T fw.bin "http://[$1]/firmware"
        ask -T fw.bin -H "$token" "http://[$1]/firmware"
        ask -H "$token" -H "$list" --data "http://[$1]/firmware" "http://[$2]/firmware"
        curl -sg --max-time 60 -H "$token" "http://[$2]/firmware" | cmp - fw.bin && echo whole
        ask -H "$token" -H "$list" --data "http://[$1]/none" "http://[$2]/firmware""#;
    let script = script.replace("FOLDER", folder.path().to_str().unwrap());
    let token = folder.path().join("token");
    let options = [
        "--hops",
        "2",
        "--app",
        "firmware",
        "--token",
        token.to_str().unwrap(),
    ];
    let Some(output) = up_with(&options, &script) else {
        return;
    };
    let expected = [
        "401",
        "Unauthorized",
        "201",
        "version 1.2.0+0 is stored, verified and pending",
        "201",
        "version 1.2.0+0 is stored, verified and pending",
        "whole",
        "502",
        "the source answered 404",
    ];
    assert_eq!(lines(&output), expected, "{}", said(&output));
}

#[test]
fn push_brings_an_image_to_motes_and_sends_only_what_they_lack() {
    if !has("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fw.bin"), image(12_000, 3)).unwrap();
    std::fs::write(folder.path().join("other.bin"), image(9_000, 4)).unwrap();
    // A router's status, as `motet router` gives it: mote 2 is below mote 1.
    let script = r#"
        cd FOLDER
        set -- $MOTET_MOTES
        PUSH="MOTET push"
        head -c 5000 fw.bin > part.bin
        curl -sg --max-time 60 -o said -T part.bin -H 'Content-Range: bytes 0-4999/12000' "http://[$1]/firmware"
        $PUSH fw.bin --to mote1 | sed 's/  .* s  /  T  /'
        $PUSH fw.bin --to "$1" --schedule parallel
        $PUSH fw.bin --to mote1 mote2 | sed 's/  .* s  /  T  /'
        python3 - "$1" "$2" <<'END' &
import json, socket, sys
traffic = dict(bytes_up=0, bytes_down=0, goodput_1min_kbps=0, goodput_10min_kbps=0, packets=0,
    retransmissions=0, held_now=0, held_packets=0, held_s=0, held_longest_ms=0)
rows = [dict(traffic, mote=mote, flows=0, parent=parent, hops=1)
    for mote, parent in [(sys.argv[1], None), (sys.argv[2], sys.argv[1])]]
counters = dict.fromkeys("packets others strangers held released flows table_full mote_full queue_full"
    " released_early strays clock_steps overruns gone elsewhere rules_restored".split(), 0)
status = dict(schema=1, interface="x", nfqueue=None, uptime_s=1, policy="none", window=None, inside=None,
    spacing_ms=None, jain_1min=None, jain_10min=None, max_min_1min=None, max_min_10min=None, flows=[],
    motes=rows, counters=counters)
listener = socket.socket(socket.AF_UNIX)
listener.bind("router.sock")
listener.listen()
connection, _ = listener.accept()
connection.sendall(json.dumps(status).encode())
connection.close()
END
        until [ -S router.sock ]; do sleep 0.1; done
        $PUSH other.bin --to mote2 mote1 --schedule tree --router router.sock | sed 's/  .* s  /  T  /'
        curl -sg --max-time 60 "http://[$2]/firmware" | cmp - other.bin && echo whole"#;
    let script = script.replace("FOLDER", folder.path().to_str().unwrap());
    let script = script.replace(
        "MOTET push",
        &format!("{} push", env!("CARGO_BIN_EXE_motet")),
    );
    let Some(output) = up_with(&["--hops", "2", "--app", "firmware"], &script) else {
        return;
    };
    let [one, two] = [1, 2].map(|mote| format!("fd6d:6f74:6574:1:4d:6f74:6574:{mote}"));
    let expected = [
        format!("{one}  T  0 B sent again"),
        format!("{one}  had it"),
        format!("{one}  had it"),
        format!("{two}  T  0 B sent again"),
        format!("{one}  T  0 B sent again"),
        format!("{two}  T  from its parent"),
        "whole".to_owned(),
    ];
    assert_eq!(lines(&output), expected, "{}", said(&output));
}

/// The second of two waits until the first is done. An image that is longer than the slot is
/// refused, and what is there stays.
#[test]
fn two_pushes_to_one_mote_and_one_that_does_not_fit() {
    if !has("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fw.bin"), image(20_000, 3)).unwrap();
    std::fs::write(folder.path().join("large.bin"), image(600_000, 4)).unwrap();
    let script = r#"
        cd FOLDER
        PUSH="MOTET push"
        $PUSH fw.bin --to "$M" > one &
        $PUSH fw.bin --to "$M" > two &
        wait
        cat one two | sed 's/.*  .* s  /T  /; s/.*  had/had/' | sort
        $PUSH large.bin --to "$M" 2>&1 | sed 's/.*: //'
        curl -sg --max-time 60 "http://[$M]/firmware" | cmp - fw.bin && echo whole"#;
    let script = script.replace("FOLDER", folder.path().to_str().unwrap());
    let script = script.replace(
        "MOTET push",
        &format!("{} push", env!("CARGO_BIN_EXE_motet")),
    );
    let Some(output) = up("firmware", &script) else {
        return;
    };
    let expected = [
        "T  0 B sent again",
        "had it",
        "the slot takes 495616 bytes (413)",
        "whole",
    ];
    assert_eq!(lines(&output), expected, "{}", said(&output));
}

#[test]
fn push_says_what_it_cannot_bring() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (good, foreign, cut) = (path("good.bin"), path("foreign.bin"), path("cut.bin"));
    std::fs::write(&good, image(500, 1)).unwrap();
    std::fs::write(&foreign, [7; 500]).unwrap();
    std::fs::write(&cut, &image(500, 1)[..300]).unwrap();
    std::fs::write(path("token"), "two words").unwrap();
    for (options, sentence) in [
        (
            vec![&*foreign, "--to", "::1"],
            "is no whole image of MCUboot",
        ),
        (vec![&*cut, "--to", "::1"], "is no whole image of MCUboot"),
        (vec![&*good, "--to", "ff02::1"], "is no single mote"),
        (
            vec![&*good, "--to", "no.such.name.invalid"],
            "is no IPv6 address",
        ),
        (
            vec![&*good, "--to", "::1", "--router", "x"],
            "add --schedule tree",
        ),
        (
            vec![&*good, "--to", "::1", "--token", &path("token")],
            "has no token",
        ),
        (vec![&*good], "needs --to"),
    ] {
        let output = motet().arg("push").args(&options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(sentence), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}
