//! Every script in `conformance/` holds, options byte for byte; those in a folder below under
//! the profile of its name. So do those that [`overlap`] generates.

#![cfg(feature = "full")]

use std::fs;
use std::path::{Path, PathBuf};

use motet_conformance::host::Profile;
use motet_conformance::overlap::{self, Generated};
use motet_conformance::run::{Judge, ScriptOutcome, run};

/// The scripts of a profile: what each is called, and its text.
fn scripts_of(profile: Profile) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let (folder, generated) = match profile {
        Profile::Motet => (folder, overlap::scripts()),
        Profile::FreeBsd => (folder.join("freebsd"), Vec::new()),
        Profile::Linux => (folder.join("linux"), Vec::new()),
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        (
            path.display().to_string(),
            fs::read_to_string(&path).unwrap(),
        )
    };
    let generated = generated
        .into_iter()
        .map(|Generated { name, text }| (name, text));
    paths.into_iter().map(read).chain(generated).collect()
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
    for (name, text) in scripts_of(profile) {
        match run(&text, &judge) {
            ScriptOutcome::Passed => {}
            ScriptOutcome::Failed(problem) | ScriptOutcome::Refused(problem) => {
                bad.push(format!("{name}:{problem}\n{text}"));
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
    for (name, text) in profiles.into_iter().flat_map(scripts_of) {
        assert!(text.starts_with("// "), "{name}: no requirement");
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
            "{name}: it cannot fail"
        );
    }
}
