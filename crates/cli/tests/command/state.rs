//! The frame counters of a key outlive a run: judged by the nonces on the air, as tshark reads them, over restarts.
#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{assert_refused, file, folder, motet, said};
use motet::wire::ieee802154::{FrameType, Header, check_fcs};

/// A key, a folder for its counters, and what was sealed with it.
struct Team {
    folder: tempfile::TempDir,
    /// Of each sender, key index and counter: the frame.
    seen: HashMap<(String, u8, u32), Vec<u8>>,
}

impl Team {
    fn new() -> Self {
        let folder = folder();
        let key = folder.path().join("team.key");
        let made = motet().args(["keys", "new"]).arg(key).output().unwrap();
        assert!(made.status.success(), "{}", said(&made));
        file(folder.path(), 2_000);
        Self {
            folder,
            seen: HashMap::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The words of a transfer whose air goes to `capture`.
    fn send(&self, capture: &str) -> Vec<OsString> {
        let words = ["send", "--hops=1", "--force"].map(OsString::from);
        let files = [
            ("", "2000.bin"),
            ("--key", "team.key"),
            ("--state", "state"),
            ("--pcap", capture),
        ];
        let files = files.iter().flat_map(|(option, name)| {
            let option = (!option.is_empty()).then(|| OsString::from(option));
            option.into_iter().chain([self.path(name).into()])
        });
        words.into_iter().chain(files).collect()
    }

    fn run(&self, capture: &str) -> Output {
        motet().args(self.send(capture)).output().unwrap()
    }

    fn sends(&mut self, capture: &str) {
        let sent = self.run(capture);
        assert!(sent.status.success(), "{}", said(&sent));
        let frames = self.look(&self.path(capture));
        assert!(frames > 30, "{frames}");
    }

    /// Adds the frames of a capture, which a kill may have cut short; says how many are sealed. None has a nonce
    /// that another one had, in whatever run.
    fn look(&mut self, capture: &Path) -> usize {
        let bytes = fs::read(capture).unwrap();
        let mut rest = bytes.get(24..).unwrap_or_default();
        let mut frames = 0;
        while let Some((head, more)) = rest.split_at_checked(16) {
            let len = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
            let Some((psdu, more)) = more.split_at_checked(len) else {
                break;
            };
            rest = more;
            frames += usize::from(self.take(psdu));
        }
        frames
    }

    fn take(&mut self, psdu: &[u8]) -> bool {
        let (header, auxiliary, _) = Header::parse_secured(check_fcs(psdu).unwrap()).unwrap();
        if header.frame_type == FrameType::Ack {
            return false;
        }
        let auxiliary = auxiliary.expect("it is sealed");
        let nonce = (
            format!("{:?}", header.src),
            auxiliary.key_index,
            auxiliary.counter,
        );
        let before = self
            .seen
            .entry(nonce.clone())
            .or_insert_with(|| psdu.into());
        assert_eq!(before, psdu, "{nonce:?} is of two frames");
        true
    }
}

/// Sender and counter of each data frame of a capture, as tshark reads them.
fn by_tshark(capture: &Path) -> Option<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture);
    tshark.args(["-Y", "wpan.frame_type != 2", "-Tfields", "-ewpan.src64"]);
    tshark.args(["-ewpan.aux_sec.frame_counter", "-ewpan.fcs"]);
    let Ok(output) = tshark.output() else {
        println!("not run: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn no_run_uses_a_counter_of_another_one() {
    let mut team = Team::new();
    for capture in ["first.pcap", "second.pcap"] {
        team.sends(capture);
    }
    // A link key of its own has other nonces, and the counters go on nevertheless.
    let rotated = motet()
        .args(["keys", "rotate"])
        .arg(team.path("team.key"))
        .output();
    assert!(rotated.unwrap().status.success());
    team.sends("third.pcap");
    let revoked = motet()
        .args(["keys", "revoke"])
        .arg(team.path("team.key"))
        .arg("0000000000000001")
        .output();
    assert!(revoked.unwrap().status.success());
    team.sends("fourth.pcap");
    let captures = ["first", "second", "third", "fourth"];
    let mut counted = HashMap::new();
    for capture in captures {
        let Some(frames) = by_tshark(&team.path(&format!("{capture}.pcap"))) else {
            return;
        };
        for line in frames {
            let (nonce, fcs) = line.rsplit_once('\t').unwrap();
            let before = counted.insert(nonce.to_owned(), fcs.to_owned());
            // A retry has the same bytes.
            assert!(before.is_none_or(|before| before == fcs), "{nonce}");
        }
    }
    assert!(counted.len() > 100, "{}", counted.len());
}

/// A mesh that is killed while it sends, three times.
#[test]
fn a_kill_at_any_moment_gives_no_counter_back() {
    let mut team = Team::new();
    for (run, life_ms) in [(0, 300), (1, 700), (2, 1_100)] {
        let capture = team.path(&format!("{run}.pcap"));
        let mut mesh = up(&team, File::create(&capture).unwrap());
        // From the first frame on.
        while fs::metadata(&capture).unwrap().len() < 1_000 {
            thread::sleep(Duration::from_millis(10));
            assert!(mesh.try_wait().unwrap().is_none(), "it runs");
        }
        thread::sleep(Duration::from_millis(life_ms));
        mesh.kill().unwrap();
        mesh.wait().unwrap();
        assert!(team.look(&capture) > 5);
        // Whatever the command had started is gone, too.
        thread::sleep(Duration::from_millis(200));
    }
    team.sends("last.pcap");
}

fn up(team: &Team, capture: File) -> Child {
    motet()
        .args(["up", "--hops=1", "--pcap=-", "--key"])
        .arg(team.path("team.key"))
        .arg("--state")
        .arg(team.path("state"))
        .args(["--", "sh", "-c", "ping -i .01 ${MOTET_MOTES%% *}"])
        .stdout(capture)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn two_runs_at_once_have_one_key_never() {
    let team = Team::new();
    let mut mesh = up(&team, tempfile::tempfile().unwrap());
    let is_there = || {
        team.path("state/counters")
            .read_dir()
            .is_ok_and(|it| it.count() >= 2)
    };
    while !is_there() {
        thread::sleep(Duration::from_millis(10));
        assert!(mesh.try_wait().unwrap().is_none(), "it runs");
    }
    assert_refused(
        &team.run("second.pcap"),
        2,
        &["is in use", "end that one first"],
    );
    assert!(!team.path("second.pcap").exists());
    mesh.kill().unwrap();
    let mut said = String::new();
    mesh.stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    mesh.wait().unwrap();
}

#[test]
fn a_folder_that_was_put_back_is_refused() {
    let mut team = Team::new();
    let shell = |team: &Team, words: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", words]).current_dir(team.folder.path());
        assert!(shell.status().unwrap().success(), "{words}");
    };
    team.sends("first.pcap");
    shell(&team, "cp -a state kept");
    team.sends("second.pcap");
    shell(&team, "mv state newest && cp -a kept state");
    let words = ["is a copy or an older state", "motet keys new"];
    assert_refused(&team.run("third.pcap"), 2, &words);
    // The newest one is none, and neither is a file that is damaged, a part of it or missing.
    shell(&team, "rm -r state && mv newest state");
    team.sends("third.pcap");
    for (damage, words) in [
        ("truncate -s -3 $r", "is damaged"),
        ("sed -i s/^node.*// $r", "is damaged"),
        (": > $r", "is damaged"),
        ("rm $r", "is missing"),
    ] {
        let find = "r=$(ls state/counters/*-lab)";
        shell(
            &team,
            &format!("rm -rf kept; cp -al state kept; {find}; cp $r $r.x; mv $r.x $r; {damage}"),
        );
        assert_refused(&team.run("fourth.pcap"), 2, &[words, "motet keys new"]);
        shell(&team, "rm -r state; mv kept state");
    }
    team.sends("fourth.pcap");
}

/// A disk that is full, and one that may not be written to: this kernel's own, in a namespace of its own.
#[test]
fn a_disk_that_takes_nothing_is_said_before_anything_is_sent() {
    let mut team = Team::new();
    fs::create_dir(team.path("state")).unwrap();
    let size = "mount -t tmpfs -o size=64k,mode=700 none state";
    let fill = "dd if=/dev/zero of=state/fill bs=4k 2>/dev/null";
    for (mount, words) in [
        (format!("{size}; {fill} || :"), "no space left"),
        (
            format!("{size}; mkdir state/counters; {fill} || :"),
            "no space left",
        ),
        (
            format!("{size}; mount -o remount,ro state"),
            "read-only file system",
        ),
        (
            format!("{size}; \"$@\" >/dev/null || exit 9; {fill} || :"),
            "no space left",
        ),
    ] {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        // What is there afterwards shows that no half file was left.
        let script =
            format!("{mount}\n\"$@\"; status=$?; ls state/counters/*.new >&2; exit $status");
        unshare
            .arg(script)
            .arg("sh")
            .arg(env!("CARGO_BIN_EXE_motet"));
        unshare.args(team.send("air.pcap"));
        unshare.current_dir(team.folder.path()).stdin(Stdio::null());
        let output = unshare.output().unwrap();
        let text = said(&output);
        if text.contains("unshare:") || text.contains("mount:") {
            println!("not run: {text}");
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{mount}: {text}");
        assert!(text.contains(words), "{mount}: {text}");
        assert!(text.contains("would begin at 0"), "{mount}: {text}");
        assert!(
            !text.contains(".new\n") || text.contains("No such file"),
            "{mount}: {text}"
        );
    }
    // Elsewhere there is room.
    team.sends("air.pcap");
}

#[test]
fn what_follows_from_a_seed_keeps_nothing() {
    let team = Team::new();
    let virtually = |state: &str| {
        let mut motet = motet();
        motet.args(["send", "--virtual", "--hops=1", "--force"]);
        motet
            .arg(team.path("2000.bin"))
            .arg("--key")
            .arg(team.path("team.key"));
        motet.arg("--pcap").arg(team.path("air.pcap"));
        if !state.is_empty() {
            motet.arg("--state").arg(team.path(state));
        }
        motet.output().unwrap()
    };
    let airs = [(); 2].map(|()| {
        let sent = virtually("");
        assert!(sent.status.success(), "{}", said(&sent));
        fs::read(team.path("air.pcap")).unwrap()
    });
    assert_eq!(airs[0], airs[1]);
    assert_refused(&virtually("state"), 2, &["--state"]);
    assert!(!team.path("state").exists());
}
