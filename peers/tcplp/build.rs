//! Compiles TCPlp's protocol core from the sources that the crate `openthread-sys` carries,
//! and the host beneath it (`src/host.c`), at -O2 whatever the profile: the figures are those
//! of optimised C.

#[path = "../carried.rs"]
mod carried;

use anyhow::Result;

fn main() -> Result<()> {
    let openthread = carried::folder("openthread-sys", "openthread")?;
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

/// The protocol core, relative to `third_party/tcplp`, a file a line.
const SOURCES: &str = include_str!("sources");
