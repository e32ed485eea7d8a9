//! The smallest TCP, without SACK, RACK, timestamps, ECN, SYN cookies and passive opens, holds in every
//! script that names none of them: `cargo test -p motet-conformance --no-default-features --test
//! small`; with `--features listen` so does one that has passive opens, in many more.

#![cfg(not(feature = "full"))]

use std::fs;
use std::path::Path;

use motet_conformance::run::{Judge, ScriptOutcome, run};

/// The words by which a script names what is left out. The flags E and W are ECN's; CUBIC counts
/// what an undo would restore.
const LEFT_OUT: [&str; 14] = [
    "sack",
    "TS val",
    "timestamps",
    "ECN",
    "ecn",
    "[ect",
    "[ce]",
    " SE",
    " E.",
    "rack",
    "undo",
    "tail_loss_probe",
    "cookie",
    "congestion_algorithm",
];

/// What only a passive open does: another than the usual one, a further one; and a window update of
/// one segment of the peer's, where an active open waits for one of its own, which are longer.
const PASSIVE: [&str; 3] = ["listen(", "+0 > S.", "splice moves bytes"];

/// Scripts that name nothing of it: seven of ten of ours; without passive opens six.
const HOLDING_MIN: usize = match cfg!(feature = "listen") {
    true => 250,
    false => 220,
};

#[test]
fn each_script_holds_that_names_nothing_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let judge = Judge {
        strict: true,
        // A 16th of a millisecond is what deadlines are rounded up by.
        tolerance_us: Some(65),
        ..Judge::default()
    };
    let (mut held, mut bad) = (0, Vec::new());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pkt") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        if LEFT_OUT.iter().any(|name| text.contains(name)) {
            continue;
        }
        let text = match cfg!(feature = "listen") {
            true => text,
            false => actively(&text),
        };
        if !cfg!(feature = "listen") && PASSIVE.iter().any(|name| text.contains(name)) {
            continue;
        }
        match run(&text, &judge) {
            ScriptOutcome::Passed => held += 1,
            ScriptOutcome::Failed(problem) | ScriptOutcome::Refused(problem) => {
                bad.push(format!("{}:{problem}", path.display()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(held >= HOLDING_MIN, "only {held} scripts");
    println!("{held} scripts");
}

/// A script that begins by the usual passive open, with the active open that leads to the same: what
/// the peer's two segments said in one, after the same time. Any other script is as it was.
fn actively(script: &str) -> String {
    let lines: Vec<_> = script.lines().collect();
    let is_open = |some: &[&str]| {
        some.iter()
            .zip(OPEN)
            .all(|(line, part)| line.contains(part))
    };
    let Some(at) = lines.windows(OPEN.len()).position(is_open) else {
        return script.to_owned();
    };
    let (before, rest) = lines.split_at(at);
    let (open, after) = rest.split_at(OPEN.len());
    // Their SYN after its direction, in which another `<` begins the options.
    let options = open[3].splitn(3, '<').nth(2);
    let options = options.map_or_else(String::new, |options| format!(" <{options}"));
    let active = [
        open[0].replace("= 3", "= 4"),
        "+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0".to_owned(),
        "+0 connect(4, ..., ...) = -1 EINPROGRESS (Operation now in progress)".to_owned(),
        open[4].replace(" S. 0:0(0) ack 1 ", " S 0:0(0) "),
        open[5].replace(" . 1:1(0) ", " S. 0:0(0) ") + &options,
        "+0 > . 1:1(0) ack 1 <...>".to_owned(),
        "+0 fcntl(4, F_SETFL, O_RDWR) = 0".to_owned(),
    ];
    [
        &before.join("\n"),
        &active.join("\n"),
        &after.join("\n"),
        "",
    ]
    .join("\n")
}

/// What the lines of the usual passive open contain.
const OPEN: [&str; 7] = [
    "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
    "bind(3, ..., ...) = 0",
    "listen(3, 1) = 0",
    "< S 0:0(0) win ",
    "> S. 0:0(0) ack 1 ",
    "< . 1:1(0) ack 1 win ",
    "+0 accept(3, ..., ...) = 4",
];
