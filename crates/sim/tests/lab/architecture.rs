//! The order of the lab's folders: which may import which. Tests may import what they like.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The lab's modules and, beside themselves, what each may import.
const MODULES: &[(&str, &[&str])] = &[
    ("lib", &[]),
    ("stats", &[]),
    ("parallel", &[]),
    ("streams", &[]),
    ("ordered", &[]),
    ("calendar", &[]),
    // For tests alone.
    ("cases", &[]),
    ("files", &[]),
    ("keys", &[]),
    (
        "air",
        &["calendar", "capture", "files", "ordered", "streams"],
    ),
    ("ble", &["calendar", "capture", "streams"]),
    ("capture", &["files"]),
    ("coap", &[]),
    ("apps", &["coap", "ordered", "streams"]),
    // What a Thread router does, without air and clock.
    ("thread", &[]),
    (
        "net",
        &[
            "air", "apps", "ble", "capture", "keys", "ordered", "streams", "thread",
        ],
    ),
    (
        "experiments",
        &[
            "air", "apps", "ble", "capture", "coap", "keys", "net", "parallel", "scenario",
            "stats", "streams",
        ],
    ),
    (
        "scenario",
        &[
            "air", "apps", "ble", "capture", "coap", "files", "keys", "net", "ordered", "parallel",
            "stats", "streams",
        ],
    ),
    (
        "soak",
        &[
            "air", "apps", "calendar", "keys", "net", "parallel", "scenario", "streams",
        ],
    ),
    (
        "report",
        &["air", "experiments", "net", "ordered", "scenario", "stats"],
    ),
];

#[test]
fn folders_import_only_what_they_may() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    product_files(&source, &mut files);
    assert!(files.len() > 80, "found only {} source files", files.len());
    let names: BTreeSet<&str> = MODULES.iter().map(|(name, _)| *name).collect();
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file is text");
        let relative = file.strip_prefix(&source).expect("found below it");
        let first = relative.iter().next().and_then(|part| part.to_str());
        let own = first.expect("a name").trim_end_matches(".rs");
        let Some((_, may)) = MODULES.iter().find(|(name, _)| *name == own) else {
            wrong.push(format!("{}: `{own}` has no rule", relative.display()));
            continue;
        };
        for other in imports(&text) {
            if names.contains(other) && other != own && !may.contains(&other) {
                wrong.push(format!("{}: `{other}`", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "not allowed:\n{}", wrong.join("\n"));
}

#[test]
fn no_two_folders_import_one_another() {
    // What may import is behind what it imports, once all that nobody imports is taken away.
    let mut left: Vec<_> = MODULES.to_vec();
    loop {
        let imported: BTreeSet<&str> = left.iter().flat_map(|(_, may)| *may).copied().collect();
        let before = left.len();
        left.retain(|(name, _)| imported.contains(name));
        if left.len() == before {
            break;
        }
    }
    assert!(left.is_empty(), "these import one another: {left:?}");
}

/// The modules of this crate that a file names, its comments and its tests aside.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let product = text.split("#[cfg(test)]").next().unwrap_or(text);
    let code = product
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        })
}

fn product_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the source") {
        let path = entry.expect("readable").path();
        if path.is_dir() && !path.ends_with("tests") {
            product_files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}
