//! Compiles lwIP from the sources that the crate `lwip` carries, and the host beneath it
//! (`src/host.c`), at -O2 whatever the profile: the figures are those of optimised C.
//!
//! lwIP's state is in global variables, so that a program has one lwIP. Their sections get names of
//! their own here, by which the host finds them all: it exchanges their contents, and a program has
//! as many lwIPs as it likes.

#[path = "../carried.rs"]
mod carried;

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

fn main() -> Result<()> {
    let lwip = carried::folder("lwip", "src")?;
    let mut core = compiler(&lwip);
    // All variables in the sections that `SECTIONS` names: not a section each, none in common.
    core.flag("-fno-common").flag("-fno-data-sections");
    for file in SOURCES.lines() {
        core.file(lwip.join(file));
    }
    let mut objects = core.compile_intermediates();
    for object in &objects {
        rename_sections(object)?;
    }
    objects.extend(compiler(&lwip).file("src/host.c").compile_intermediates());
    compiler(&lwip).object(joined(&objects)?).compile("lwip");
    for file in [
        "src/host.c",
        "src/host.h",
        "port/lwipopts.h",
        "port/arch/cc.h",
        "../Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed={file}");
    }
    Ok(())
}

fn compiler(lwip: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .opt_level(2)
        .force_frame_pointer(false)
        .warnings(false)
        .include("port")
        .include(lwip.join("include"));
    build
}

/// Gives the sections of an object's variables the names by which the host knows them.
fn rename_sections(object: &Path) -> Result<()> {
    let arguments = SECTIONS.map(|(from, to)| format!("--rename-section={from}={to}"));
    objcopy(object, &arguments)
}

/// One object out of all, in which only what Rust calls has a name: TCPlp's core calls some of its
/// functions as lwIP calls its own.
fn joined(objects: &[PathBuf]) -> Result<PathBuf> {
    let folder = env::var_os("OUT_DIR").context("OUT_DIR is not set")?;
    let joined = Path::new(&folder).join("joined.o");
    let compiler = cc::Build::new().get_compiler();
    let mut link = compiler.to_command();
    link.args(["-nostdlib", "-r", "-o"])
        .arg(&joined)
        .args(objects);
    let status = link.status().context("cannot run the C compiler")?;
    ensure!(status.success(), "lwIP's objects do not link");
    objcopy(&joined, &["--wildcard", "--keep-global-symbol=lwip_host_*"])?;
    Ok(joined)
}

fn objcopy(object: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<()> {
    let status = Command::new("objcopy")
        .args(arguments)
        .arg(object)
        .status()
        .context("cannot run objcopy: `apt-get install binutils`")?;
    ensure!(status.success(), "objcopy failed on {}", object.display());
    Ok(())
}

/// Sections of variables; the second and the third hold those that begin with an address.
const SECTIONS: [(&str, &str); 4] = [
    (".data", "lwip_data"),
    (".data.rel", "lwip_data"),
    (".data.rel.local", "lwip_data"),
    (".bss", "lwip_bss"),
];

/// lwIP's core, relative to `src`, a file a line.
const SOURCES: &str = include_str!("sources");
