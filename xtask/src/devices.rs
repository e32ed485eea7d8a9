//! Images for devices with foreign parts: what each takes beside what it may take, a part of `cargo
//! xtask apps`, and the pair of motes that the check runs under QEMU.
//!
//! The sizes are no part of the check: their images need a C compiler for Arm and a chip's hardware
//! layer.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::apps::Line;
use crate::firmware::{check_run, run_image};
use crate::image::Image;
use crate::step::{StepOutcome, run_logged};
use crate::tools::{self, ARM_GCC};
use crate::workspace::{Workspace, locked};

/// A figure that must not be above its limit.
fn at_most(app: &str, check: &str, value: u32, unit: &str, limit: u32) -> Line {
    Line {
        app: app.to_owned(),
        check: check.to_owned(),
        value: Some(value.into()),
        unit: unit.to_owned(),
        pass: value <= limit,
    }
}

/// A processor for which the C node is measured.
struct Processor {
    target: &'static str,
    check: &'static str,
    gcc: &'static [&'static str],
    limit: u32,
}

const PROCESSORS: [Processor; 2] = [
    Processor {
        target: "thumbv6m-none-eabi",
        check: "c_node_thumbv6m",
        gcc: &["-mcpu=cortex-m0plus", "-mthumb"],
        limit: 70_000,
    },
    Processor {
        target: NRF52840,
        check: "c_node_thumbv7em",
        gcc: &[
            "-mcpu=cortex-m4",
            "-mthumb",
            "-mfloat-abi=hard",
            "-mfpu=fpv4-sp-d16",
        ],
        limit: 65_000,
    },
];

/// The Cortex-M4 of the nRF52840.
const NRF52840: &str = "thumbv7em-none-eabihf";

/// The images that can be built here.
pub(crate) fn measure(workspace: &Workspace) -> Result<Vec<Line>> {
    let (mut rows, echo_node_text) = echo_node(workspace)?;
    if tools::find(ARM_GCC.program).is_none() {
        eprintln!("the C node is not measured: no {}", ARM_GCC.program);
        return Ok(rows);
    }
    for processor in &PROCESSORS {
        let value = c_node(workspace, processor)?.code_bytes()?;
        let check = format!("{}, text, feature tcp alone", processor.check);
        rows.push(at_most("motet-c", &check, value, "B", processor.limit));
        if processor.target == NRF52840 {
            let adapter = echo_node_text.saturating_sub(value);
            let check = "adapter, driver and HAL, text";
            rows.push(at_most("motet-nrf", check, adapter, "B", 6_000));
        }
    }
    Ok(rows)
}

/// Two motes with embassy's executor exchange their bytes under QEMU: a step of the check.
pub(crate) fn check_embassy_pair(workspace: &Workspace) -> Result<StepOutcome> {
    check_run(workspace, |workspace| {
        let image = build_app(workspace, "embassy-pair", "embassy-pair")?;
        run_image("mps2-an386", &image)
    })
}

/// Builds an application for the Cortex-M4; gives where the image is.
fn build_app(workspace: &Workspace, package: &str, image: &str) -> Result<PathBuf> {
    let mut cargo = workspace.apps_cargo("build");
    cargo
        .args(["--package", package, "--profile", "device"])
        .args(["--target", NRF52840])
        .args(locked());
    run(workspace, &mut cargo)?;
    let path: PathBuf = [NRF52840, "device", image].iter().collect();
    Ok(workspace.target.join(path))
}

/// The echo node for the nRF52840: its rows, and its text.
fn echo_node(workspace: &Workspace) -> Result<(Vec<Line>, u32)> {
    let image = Image::open(&build_app(workspace, "nrf52840", "echo")?)?;
    let text = image.code_bytes()?;
    let source = workspace.root.join("apps/nrf52840/src/bin/echo.rs");
    let source = fs::read_to_string(source).context("cannot read the echo node")?;
    let row = |check, value, unit, limit| at_most("motet-nrf", check, value, unit, limit);
    let rows = vec![
        row("echo node, text, feature tcp alone", text, "B", 70_000),
        row("echo node, static RAM", image.ram_bytes()?, "B", 18_500),
        row(
            "lines before the first socket",
            lines_before_application(&source),
            "lines",
            30,
        ),
    ];
    Ok((rows, text))
}

/// Lines of code before the first socket: those above the comment that says so.
fn lines_before_application(source: &str) -> u32 {
    let code = source
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("// The application"))
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.count() as u32
}

/// The C node, linked.
///
/// Cargo optimises the archive at link time only where it is the one kind of library that is built:
/// hence `rustc --crate-type`. Without that the node is 10 KB larger.
fn c_node(workspace: &Workspace, processor: &Processor) -> Result<Image> {
    let mut cargo = workspace.cargo("rustc");
    cargo
        .args(["--package", "motet-c", "--crate-type", "staticlib"])
        .args(["--profile", "device", "--target", processor.target])
        .args(locked());
    run(workspace, &mut cargo)?;
    let folder = workspace.scratch()?.join("c-node");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let image = folder.join(processor.target);
    let archive: PathBuf = [processor.target, "device", "libmotet_c.a"]
        .iter()
        .collect();
    let mut gcc = Command::new(ARM_GCC.program);
    gcc.args(processor.gcc)
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .args(["-Os", "-ffreestanding", "-ffunction-sections", "-nostdlib"])
        .args(["-Wl,--gc-sections", "-Wl,--entry=main"])
        .args(["-Wl,--no-warn-execstack"])
        .arg("-I")
        .arg(workspace.root.join("crates/capi/include"))
        .arg(workspace.root.join("firmware/c-node/node.c"))
        .arg(workspace.target.join(archive))
        .arg("-o")
        .arg(&image);
    run(workspace, &mut gcc)?;
    Image::open(&image)
}

fn run(workspace: &Workspace, command: &mut Command) -> Result<()> {
    let (good, output) = run_logged(command, &workspace.scratch()?.join("devices.log"))?;
    ensure!(good, "{output}\nan image for devices does not build");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::lines_before_application;

    /// Lines of code of one's own: the application that boards share, and what a board adds.
    #[test]
    fn an_led_over_tcp_takes_at_most_30_lines_of_ones_own() {
        let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps");
        let read = |path: &str| fs::read_to_string(apps.join(path)).expect("a source");
        let shared = lines_before_application(&read("shared/led.rs"));
        assert!((10..=30).contains(&shared), "{shared}");
        for board in ["nrf52840/src/bin/led.rs", "esp32/src/bin/led.rs"] {
            let source = read(board);
            let (_, rest) = source.split_once("// The application").expect("a mark");
            let (own, _) = rest.split_once("\n}").expect("the end of main");
            let lines = shared + lines_before_application(own.split_once('\n').expect("code").1);
            assert!((shared + 1..=30).contains(&lines), "{board}: {lines}");
        }
    }

    #[test]
    fn lines_are_those_of_code_above_the_application() {
        let source = "//! About.\n#![no_std]\n\nfn main() {\n    start();\n    // The application.\n    run();\n";
        assert_eq!(lines_before_application(source), 3);
    }
}
