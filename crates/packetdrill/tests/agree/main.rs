//! Both judges give one outcome: `motet-conformance`, and packetdrill with the library.
//!
//! packetdrill itself is not here, so its part is played: each script in a process of its own,
//! through the library's table of C functions alone, as packetdrill calls them. What the two
//! share is the reading of scripts and the comparison of one segment with one line.
//!
//! `cargo test -p motet-packetdrill --test agree [-- PATH… [--profile freebsd|linux]]`: over
//! those scripts, or over the project's own.

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod player;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use motet_conformance::host::Profile;
use motet_conformance::overlap::{self, Generated};
use motet_conformance::run::{Judge, ScriptOutcome, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [play, profile, script] = arguments.as_slice()
        && play == PLAY
    {
        return match player::play(Path::new(script), profile) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                println!("{message}");
                ExitCode::FAILURE
            }
        };
    }
    // Other arguments are meant for cargo's own test runner; this one ignores them.
    let mut profile = "motet";
    let mut paths = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--profile" => profile = rest.next().map_or("", String::as_str),
            path if Path::new(path).exists() => paths.push(PathBuf::from(path)),
            _ => {}
        }
    }
    let mut work: Vec<(PathBuf, &str)> = Vec::new();
    for path in &paths {
        work.extend(scripts(path).into_iter().map(|script| (script, profile)));
    }
    if paths.is_empty() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let systems = ["freebsd", "linux"].map(|name| (own.join(name), name));
        for (folder, profile) in [(own.clone(), "motet")].into_iter().chain(systems) {
            let mut found = scripts(&folder);
            found.retain(|script| script.parent() == Some(folder.as_path()));
            work.extend(found.into_iter().map(|script| (script, profile)));
        }
    }
    assert!(!work.is_empty(), "no scripts");
    let mut wrong = 0;
    for (script, profile) in &work {
        let both = verdicts(script, profile, !paths.is_empty());
        wrong += usize::from(both.0 != both.1);
    }
    for (at, lines) in BROKEN.iter().enumerate() {
        let name = format!("motet-broken-{}-{at}.pkt", std::process::id());
        let script = std::env::temp_dir().join(name);
        std::fs::write(&script, format!("{OPEN}{lines}")).unwrap();
        // The first one holds: it shows that the others fail for what they add.
        let holds = at == 0;
        wrong += usize::from(verdicts(&script, "motet", false) != (holds, holds));
        std::fs::remove_file(&script).unwrap();
    }
    let generated = match paths.is_empty() {
        true => overlap::scripts(),
        false => Vec::new(),
    };
    for Generated { name, text } in &generated {
        let script = std::env::temp_dir().join(format!("motet-{}-{name}", std::process::id()));
        std::fs::write(&script, text).unwrap();
        let both = verdicts(&script, "motet", false);
        wrong += usize::from(both.0 != both.1);
        std::fs::remove_file(&script).unwrap();
    }
    let played = work.len() + generated.len();
    println!("{played} scripts, {wrong} with two verdicts");
    ExitCode::from(u8::from(wrong > 0))
}

/// Whether a script passes by each judge; says so where they do not agree, or if `loud`.
fn verdicts(script: &Path, profile: &str, loud: bool) -> (bool, bool) {
    let judge = Judge {
        profile: Profile::of(profile).unwrap(),
        strict: true,
        ..Judge::default()
    };
    let outcome = run(&std::fs::read_to_string(script).unwrap(), &judge);
    let state = std::env::temp_dir().join(format!("motet-agree-{}", std::process::id()));
    let played = Command::new(std::env::current_exe().unwrap())
        .args([PLAY, profile])
        .arg(script)
        .env("PD_STATE", &state)
        .output()
        .unwrap();
    let both = (outcome == ScriptOutcome::Passed, played.status.success());
    if loud || both.0 != both.1 {
        let inside = match &outcome {
            ScriptOutcome::Passed => "pass".to_owned(),
            ScriptOutcome::Failed(problem) => format!("fail: {}", problem.message),
            ScriptOutcome::Refused(problem) => format!("unsupported: {}", problem.message),
        };
        let outside = match played.status.success() {
            true => "pass".to_owned(),
            false => {
                let said = [played.stdout.as_slice(), played.stderr.as_slice()].concat();
                format!("fail: {}", String::from_utf8_lossy(&said).trim())
            }
        };
        let mark = if both.0 == both.1 {
            "same"
        } else {
            "TWO VERDICTS"
        };
        println!("{mark} {}: {inside} / {outside}", script.display());
    }
    // It may never have been written.
    let _gone = std::fs::remove_file(&state);
    both
}

/// A script, or those below a folder.
fn scripts(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    let is_script = |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|e| e == "pkt");
    inside.retain(is_script);
    inside.iter().flat_map(|path| scripts(path)).collect()
}

const PLAY: &str = "--play";

const OPEN: &str = "0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 8000 <mss 1000>
+0 > S. 0:0(0) ack 1 win 9760 <mss 1440>
+.1 < . 1:1(0) ack 1 win 8000
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 100) = 100
+0 > P. 1:101(100) ack 1 win 9760
+.1 < . 1:1(0) ack 101 win 8000
+0 %{ assert tcpi_state == TCPI_ESTABLISHED }%
";

/// What no judge may let pass, each behind [`OPEN`]; but the first.
const BROKEN: [&str; 14] = [
    "",
    "+0 write(4, ..., 10) = 11",
    "+0 write(4, ..., 10) = 10\n+0 > P. 102:112(10) ack 1",
    "+0 write(4, ..., 10) = 10\n+0 > . 101:111(10) ack 1",
    "+0 write(4, ..., 10) = 10\n+0 > P. 101:111(10) ack 1 win 1",
    "+0 write(4, ..., 10) = 10\n+0 > P. 101:111(10) ack 1 <nop,nop,sackOK>",
    "+0 write(4, ..., 10) = 10\n+.01 > P. 101:111(10) ack 1",
    "+0 > . 101:101(0) ack 1",
    "+0 read(4, ..., 10) = -1 EPIPE (Broken pipe)",
    "+0...0.2 accept(3, ..., ...) = 5\n+.1 < S 0:0(0) win 8000 <mss 1000>",
    "+0 %{ assert tcpi_state == TCPI_CLOSING }%",
    "+0 getsockopt(4, SOL_SOCKET, SO_RCVBUF, [1], [4]) = 0",
    "+0 `sockstat -6 -P tcp -s | grep -c TIME_WAIT | grep 1`",
    "+0 `sysctl -w net.inet.tcp.unheard_of=1`\n+0 read(4, ..., 10) = -1 EAGAIN (Again)",
];
