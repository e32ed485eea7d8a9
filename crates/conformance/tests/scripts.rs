//! Every script in `conformance/` holds, options byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use motet_conformance::run::{Judge, Verdict, run};

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn our_scripts_hold() {
    let judge = Judge {
        strict: true,
        ..Judge::default()
    };
    let mut bad = Vec::new();
    for path in scripts() {
        match run(&fs::read_to_string(&path).unwrap(), &judge) {
            Verdict::Passed => {}
            Verdict::Failed(problem) | Verdict::Refused(problem) => {
                bad.push(format!("{}:{problem}", path.display()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Each script states its requirement in its first line, and expects something.
#[test]
fn our_scripts_say_what_they_show() {
    for path in scripts() {
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
