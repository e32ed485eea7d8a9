//! Says which revision the program is built from: `MOTET_REVISION`, for pages of measurements, and
//! `MOTET_VERSION`, the version with it.
//!
//! Without git, or outside the project's own repository, nothing is set; the program then gives
//! its version.

mod revision;

/// What a measured figure depends on, from this folder.
const SOURCES: [&str; 14] = [
    "build.rs",
    "revision.rs",
    "Cargo.toml",
    "src",
    "../sim/Cargo.toml",
    "../sim/src",
    "../stack/Cargo.toml",
    "../stack/src",
    "../taim/Cargo.toml",
    "../taim/src",
    "../border-router/Cargo.toml",
    "../border-router/src",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

/// As many as name a commit of this project.
const DIGITS: usize = 7;

fn main() {
    let Some(revision) = revision::of(&SOURCES, DIGITS) else {
        return;
    };
    println!("cargo::rustc-env=MOTET_REVISION={revision}");
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=MOTET_VERSION={version} ({revision})");
}
