//! Every script in `conformance/` holds, options byte for byte; those in a folder below under
//! the profile of its name.

use std::fs;
use std::path::{Path, PathBuf};

use motet_conformance::host::Profile;
use motet_conformance::run::{Judge, ScriptOutcome, run};

fn scripts_of(profile: Profile) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let folders = match profile {
        Profile::Motet => vec![folder.clone(), folder.join("overlap")],
        Profile::FreeBsd => vec![folder.join("freebsd")],
        Profile::Linux => vec![folder.join("linux")],
    };
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .collect();
    paths.sort();
    paths
}

fn all_hold(profile: Profile) {
    let judge = Judge {
        profile,
        strict: true,
        // A 16th of a millisecond is what deadlines are rounded up by.
        tolerance_us: Some(65),
        ..Judge::default()
    };
    let mut bad = Vec::new();
    for path in scripts_of(profile) {
        match run(&fs::read_to_string(&path).unwrap(), &judge) {
            ScriptOutcome::Passed => {}
            ScriptOutcome::Failed(problem) | ScriptOutcome::Refused(problem) => {
                bad.push(format!("{}:{problem}", path.display()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn our_scripts_hold() {
    all_hold(Profile::Motet);
}

#[test]
fn what_freebsd_chooses_the_profile_chooses() {
    all_hold(Profile::FreeBsd);
}

#[test]
fn what_linux_chooses_the_profile_chooses() {
    all_hold(Profile::Linux);
}

/// Each script states its requirement in its first line, and expects something.
#[test]
fn our_scripts_say_what_they_show() {
    let profiles = [Profile::Motet, Profile::FreeBsd, Profile::Linux];
    for path in profiles.into_iter().flat_map(scripts_of) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("// "),
            "{}: no requirement",
            path.display()
        );
        let expects = [
            " > ",
            " assert ",
            "= -1 ",
            "getsockopt",
            "sockstat",
            "read(",
        ];
        assert!(
            expects.iter().any(|sign| text.contains(sign)),
            "{}: it cannot fail",
            path.display()
        );
    }
}
