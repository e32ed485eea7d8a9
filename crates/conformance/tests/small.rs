//! The smallest TCP, without SACK, RACK, timestamps, ECN and SYN cookies, holds in every script that
//! names none of them: `cargo test -p motet-conformance --no-default-features --test small`.

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

/// Scripts that name nothing of it: seven of ten of ours.
const HOLDING_MIN: usize = 250;

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
