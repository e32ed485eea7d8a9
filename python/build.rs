//! Says what the package is built from: `MOTET_REVISION`, in results that are kept.
//!
//! That is the commit. Where files differ from it, or without git, a digest of the sources is added: results of
//! two such packages can be told from each other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

mod revision;

/// What a figure depends on, from this folder.
const SOURCES: [&str; 14] = [
    "build.rs",
    "revision.rs",
    "Cargo.lock",
    "Cargo.toml",
    "src",
    "../Cargo.toml",
    "../crates/sim/Cargo.toml",
    "../crates/sim/src",
    "../crates/stack/Cargo.toml",
    "../crates/stack/src",
    "../crates/taim/Cargo.toml",
    "../crates/taim/src",
    "../crates/update/Cargo.toml",
    "../crates/update/src",
];

/// Of a commit, as many as no two objects of a repository share; of a digest as many.
const DIGITS: usize = 12;

fn main() {
    let revision = match revision::of(&SOURCES, DIGITS) {
        Some(commit) if !commit.ends_with(revision::CHANGED) => commit,
        Some(changed) => format!("{changed}, sources {}", digest()),
        None => format!(
            "version {}, sources {}",
            env!("CARGO_PKG_VERSION"),
            digest()
        ),
    };
    println!("cargo::rustc-env=MOTET_REVISION={revision}");
}

/// The beginning of the SHA-256 of all sources: of each its path, its length and its bytes.
fn digest() -> String {
    let mut files = Vec::new();
    for source in SOURCES {
        list(Path::new(source), &mut files).expect("a source can be listed");
    }
    files.sort_unstable();
    let mut digest = Sha256::new();
    for file in files {
        let bytes = fs::read(&file).expect("a source can be read");
        // As far as this machine writes paths as others do.
        let path = file.to_string_lossy().replace('\\', "/");
        for part in [path.as_bytes(), &bytes] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    let digits = digest.finalize().into_iter();
    let digits: String = digits.map(|byte| format!("{byte:02x}")).collect();
    digits[..DIGITS].to_owned()
}

/// The files in a folder and below it; a file is one.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        list(&entry?.path(), files)?;
    }
    Ok(())
}
