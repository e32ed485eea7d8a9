//! The scripts of the shared data, which `MOTET_SHARED` names: each shows what a foreign reader
//! found.

#![cfg(feature = "full")]

use std::fs;
use std::path::PathBuf;

use motet_conformance::run::{Judge, ScriptOutcome, run};

#[test]
fn scripts_of_what_others_found_hold() {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = root.join("data/scripts");
    let Ok(entries) = fs::read_dir(&folder) else {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "{} is missing; set MOTET_SHARED", folder.display());
        println!("not run: {} is missing; set MOTET_SHARED", folder.display());
        return;
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    paths.sort();
    assert!(paths.len() >= 8, "{} scripts", paths.len());
    let mut bad = Vec::new();
    for path in paths {
        match run(&fs::read_to_string(&path).unwrap(), &Judge::default()) {
            ScriptOutcome::Passed => {}
            ScriptOutcome::Failed(problem) | ScriptOutcome::Refused(problem) => {
                bad.push(format!("{}:{problem}", path.display()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
