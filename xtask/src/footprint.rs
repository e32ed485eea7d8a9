//! What each TCP costs a Cortex-M0+: code and constants, and the structures of a connection.
//!
//! Part of `cargo xtask peers`, never of the check, which needs no C compiler for ARM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use object::{Object, ObjectSymbol};

use crate::firmware::TARGET;
use crate::image::Image;
use crate::sizes;
use crate::step::run_logged;
use crate::tools::{self, ARM_GCC};
use crate::workspace::{Workspace, in_ci, locked};

/// How C is compiled, as small as the compiler can.
const C_FLAGS: [&str; 6] = [
    "-mcpu=cortex-m0plus",
    "-mthumb",
    "-Os",
    "-ffunction-sections",
    "-fdata-sections",
    "-w",
];

/// One stack's bytes.
pub(crate) struct Footprint {
    stack: &'static str,
    code_bytes: u32,
    connection_bytes: u32,
    listener_bytes: u32,
}

/// Builds all, and gives what each stack takes; without a C compiler for ARM, of those in Rust.
pub(crate) fn measure(workspace: &Workspace) -> Result<Vec<Footprint>> {
    tools::provide(workspace, &[ARM_GCC])?;
    let mut footprints = vec![motet(workspace)?, smoltcp(workspace)?];
    if tools::find(ARM_GCC.program).is_some() {
        footprints.insert(1, tcplp(workspace)?);
        footprints.push(lwip(workspace)?);
    } else {
        let advice = ARM_GCC.advice();
        ensure!(!in_ci(), "{advice}");
        eprintln!("TCPlp and lwIP were not measured on a Cortex-M0+: {advice}");
    }
    Ok(footprints)
}

/// A table for people, JSON lines for programs.
pub(crate) fn print(footprints: &[Footprint], json: bool) {
    if !json {
        println!(
            "\nBytes on a Cortex-M0+: code and constants, a connection, a passive socket \
             (Rust: opt-level z, LTO; C: arm-none-eabi-gcc {})\n",
            C_FLAGS.join(" ")
        );
    }
    for footprint in footprints {
        let Footprint {
            stack,
            code_bytes,
            connection_bytes,
            listener_bytes,
        } = *footprint;
        if json {
            let row = serde_json::json!({
                "stack": stack,
                "code_bytes": code_bytes,
                "connection_bytes": connection_bytes,
                "listener_bytes": listener_bytes,
            });
            println!("{row}");
        } else {
            println!("{stack:14}{code_bytes:>9}{connection_bytes:>9}{listener_bytes:>9}");
        }
    }
}

/// The figures of `cargo xtask sizes`.
fn motet(workspace: &Workspace) -> Result<Footprint> {
    let (code_bytes, connection_bytes, listener_bytes) = sizes::measure_tcp(workspace)?;
    Ok(Footprint {
        stack: "motet",
        code_bytes,
        connection_bytes,
        listener_bytes,
    })
}

/// The difference of an interface with TCP and one without.
fn smoltcp(workspace: &Workspace) -> Result<Footprint> {
    let without = smoltcp_image(workspace, &[])?.code_bytes()?;
    let image = smoltcp_image(workspace, &["--features", "tcp"])?;
    let sizes = image.words("SMOLTCP_TYPE_SIZES")?;
    let [socket] = *sizes else {
        bail!("smoltcp-cost holds {} figures instead of 1", sizes.len());
    };
    Ok(Footprint {
        stack: "smoltcp",
        code_bytes: image.code_bytes()?.saturating_sub(without),
        connection_bytes: socket,
        // It listens with a whole connection.
        listener_bytes: socket,
    })
}

/// Flash of smoltcp's interface with TCP, and nothing below it.
pub(crate) fn smoltcp_node(workspace: &Workspace) -> Result<u32> {
    smoltcp_image(workspace, &["--features", "tcp"])?.code_bytes()
}

fn smoltcp_image(workspace: &Workspace, features: &[&str]) -> Result<Image> {
    let mut cargo = workspace.peers_cargo("build");
    cargo
        .args(["--package", "motet-footprint", "--bin", "smoltcp-cost"])
        .args(["--profile", "device", "--target", TARGET])
        .args(features)
        .args(locked());
    run_or_show(&mut cargo, &workspace.scratch()?.join("smoltcp-cost.log"))?;
    Image::open(&workspace.target.join(TARGET).join("device/smoltcp-cost"))
}

/// TCPlp's core: what its host here calls.
fn tcplp(workspace: &Workspace) -> Result<Footprint> {
    let openthread = carried(workspace, "openthread-sys", "openthread")?;
    let core = openthread.join("third_party/tcplp");
    let includes = [
        openthread.join("include"),
        core.clone(),
        core.join("bsdtcp"),
        core.join("lib"),
    ];
    in_c(workspace, "tcplp", &core, &includes, |_| true)
}

/// lwIP's TCP: what its host here and the rest of lwIP call of it. IPv6 and the buffers of packets
/// are the rest's.
fn lwip(workspace: &Workspace) -> Result<Footprint> {
    let core = carried(workspace, "lwip", "src")?;
    let includes = [workspace.root.join("peers/lwip/port"), core.join("include")];
    in_c(workspace, "lwip", &core, &includes, |source| {
        source.starts_with("core/tcp")
    })
}

/// A TCP in C, linked from what the code around it calls, so that nothing uncalled counts. That
/// code, the C library and the compiler's own routines stay out.
///
/// `is_tcp`: which of the sources are the TCP.
fn in_c(
    workspace: &Workspace,
    stack: &'static str,
    core: &Path,
    includes: &[PathBuf],
    is_tcp: impl Fn(&str) -> bool,
) -> Result<Footprint> {
    let here = workspace.root.join("peers").join(stack);
    let folder = workspace.scratch()?.join(stack);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let compile = |source: &Path| -> Result<PathBuf> {
        let name = source.file_name().context("a source without a name")?;
        let out = folder.join(name).with_extension("o");
        let mut gcc = Command::new(ARM_GCC.program);
        gcc.args(C_FLAGS);
        for include in includes {
            gcc.arg("-I").arg(include);
        }
        gcc.arg("-I").arg(here.join("src"));
        gcc.arg("-c").arg(source).arg("-o").arg(&out);
        run_or_show(&mut gcc, &folder.join("gcc.log"))?;
        Ok(out)
    };

    let mut callers = vec![compile(&here.join("src/host.c"))?];
    let mut objects = Vec::new();
    let sources = fs::read_to_string(here.join("sources")).context("cannot read the sources")?;
    for source in sources.lines() {
        let object = compile(&core.join(source))?;
        match is_tcp(source) {
            true => objects.push(object),
            false => callers.push(object),
        }
    }
    let sizes = Image::open(&compile(&here.join("src/sizes.c"))?)?;
    let linked = folder.join("linked");
    let mut gcc = Command::new(ARM_GCC.program);
    gcc.args(["-nostdlib", "-r", "-Wl,--gc-sections"]);
    for caller in callers {
        let caller = Image::open(&caller)?;
        for symbol in caller.elf()?.symbols().filter(ObjectSymbol::is_undefined) {
            // The C library's are undefined in the result, too, and take nothing there.
            gcc.arg(format!("-Wl,--undefined={}", symbol.name()?));
        }
    }
    gcc.args(objects).arg("-o").arg(&linked);
    run_or_show(&mut gcc, &folder.join("gcc.log"))?;
    Ok(Footprint {
        stack,
        code_bytes: Image::open(&linked)?.code_bytes()?,
        connection_bytes: sizes.symbol_bytes(&format!("{stack}_connection"))?,
        listener_bytes: sizes.symbol_bytes(&format!("{stack}_listener"))?,
    })
}

/// The folder of that name in the crate that the peers' Cargo.lock names.
fn carried(workspace: &Workspace, krate: &str, name: &str) -> Result<PathBuf> {
    let output = workspace
        .peers_cargo("metadata")
        .arg("--format-version=1")
        .args(locked())
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(output.status.success(), "`cargo metadata` failed in peers/");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == krate)
        .find_map(|package| package["manifest_path"].as_str())
        .with_context(|| format!("Cargo.lock names no {krate}"))?;
    Ok(Path::new(manifest).with_file_name(name))
}

fn run_or_show(command: &mut Command, log: &Path) -> Result<()> {
    let (good, output) = run_logged(command, log)?;
    ensure!(good, "{output}\nthe code for a Cortex-M0+ does not build");
    Ok(())
}
