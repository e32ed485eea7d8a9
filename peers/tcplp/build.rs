//! Compiles TCPlp's protocol core from the sources that the crate `openthread-sys` carries,
//! and the host beneath it (`src/host.c`), at -O2 whatever the profile: the figures are those
//! of optimised C.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

fn main() -> Result<()> {
    let openthread = openthread()?;
    let tcplp = openthread.join("third_party/tcplp");
    let mut build = cc::Build::new();
    build
        .opt_level(2)
        .force_frame_pointer(false)
        .warnings(false)
        .file("src/host.c");
    for file in SOURCES.lines() {
        build.file(tcplp.join(file));
    }
    for folder in [&openthread.join("include"), &tcplp] {
        build.include(folder);
    }
    for folder in ["bsdtcp", "lib"] {
        build.include(tcplp.join(folder));
    }
    build.compile("tcplp");
    println!("cargo::rerun-if-changed=src/host.c");
    println!("cargo::rerun-if-changed=src/host.h");
    println!("cargo::rerun-if-changed=../Cargo.lock");
    Ok(())
}

/// The folder `openthread` of the crate that Cargo.lock names, wherever Cargo keeps it.
fn openthread() -> Result<PathBuf> {
    let output = Command::new(env::var_os("CARGO").context("CARGO is not set")?)
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == "openthread-sys")
        .find_map(|package| package["manifest_path"].as_str())
        .context("Cargo.lock names no openthread-sys")?;
    let folder = Path::new(manifest).with_file_name("openthread");
    ensure!(
        folder.is_dir(),
        "{} is not there: run `cargo fetch` in peers/",
        folder.display()
    );
    Ok(folder)
}

/// The protocol core, relative to `third_party/tcplp`, a file a line.
const SOURCES: &str = include_str!("sources");
