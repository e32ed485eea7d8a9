//! Documents name files that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below `folder` with this extension; what is built or fetched, and hidden folders, aside.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !FOREIGN.contains(&name) {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// The targets of links, `[text](target)`, without what stands behind `#`; the web's aside.
fn links(text: &str) -> Vec<&str> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// Names of files in backticks, from the project's top folder.
fn quoted(text: &str) -> Vec<&str> {
    let is_path = |piece: &&str| {
        let plain = piece
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let folder = piece.split('/').next().unwrap_or_default();
        plain
            && piece.contains('/')
            && TOP.contains(&folder)
            && Path::new(piece).extension().is_some()
    };
    text.split('`').filter(is_path).collect()
}

/// Folders of what nobody wrote here.
const FOREIGN: [&str; 2] = ["target", "node_modules"];

/// The project's folders.
const TOP: [&str; 8] = [
    "conformance",
    "crates",
    "docs",
    "firmware",
    "fuzz",
    "peers",
    "scenarios",
    "xtask",
];

/// What a document names and does not exist; its links are relative to `folder`.
fn missing(text: &str, folder: &Path) -> Vec<String> {
    // A path of Rust, in a file that a crate's documentation includes, is for rustdoc to check.
    let links = links(text)
        .into_iter()
        .filter(|link| !link.contains("::"))
        .map(|link| (link, folder.join(link)));
    let quoted = quoted(text)
        .into_iter()
        .map(|path| (path, root().join(path)));
    let named = links.chain(quoted).filter(|(_, path)| !path.exists());
    named.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn documents_name_what_exists() {
    let mut wrong = Vec::new();
    for path in files(&root(), "md") {
        // The changelog speaks of what was.
        if path.file_name().is_some_and(|name| name == "CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for name in missing(&text, path.parent().unwrap()) {
            wrong.push(format!("{}: {name}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sources_name_documents_that_exist() {
    let mut wrong = Vec::new();
    for path in files(&root(), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        for name in quoted(&text)
            .into_iter()
            .filter(|name| name.starts_with("docs/"))
        {
            if !root().join(name).exists() {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The check above can fail.
#[test]
fn a_wrong_name_is_found() {
    let text = "[map](ARCHITECTURE.md#map), [no](no.md), [web](https://no.where/no.md), \
                `docs/README.md`, `firmware/no.md`, `xtask/tests/documents.rs`, `a/b.rs`";
    assert_eq!(missing(text, &root()), ["no.md", "firmware/no.md"]);
}
