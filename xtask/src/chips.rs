//! A step of the check that has to be named: radios of chips by their vendors' drivers.
//!
//! Place: tests on this machine, with drivers that are played, then Clippy for the chips' own
//! targets, and the images that link. Not in the whole check: vendors' crates take minutes from
//! nothing, and Nordic's driver a C compiler.

use anyhow::Result;

use crate::oldest::rustup;
use crate::step::{StepOutcome, count_tests, essence, run_logged};
use crate::tools::{self, CLANG, CMAKE};
use crate::workspace::{Workspace, in_ci, locked};

/// A chip for which an adaptor, or an application of `apps`, builds.
struct Chip {
    package: &'static str,
    feature: &'static str,
    target: &'static str,
}

const ESP: [Chip; 2] = [
    Chip {
        package: "motet-esp",
        feature: "esp32c6",
        target: "riscv32imac-unknown-none-elf",
    },
    Chip {
        package: "motet-esp",
        feature: "esp32h2",
        target: "riscv32imac-unknown-none-elf",
    },
];

/// These need a C compiler, and what describes C to Rust.
const NORDIC: [Chip; 2] = [
    Chip {
        package: "motet-nrf-802154",
        feature: "nrf52840",
        target: "thumbv7em-none-eabihf",
    },
    Chip {
        package: "motet-nrf-802154",
        feature: "nrf54l15-app-s",
        target: "thumbv8m.main-none-eabihf",
    },
];

/// Applications that link with what Cargo fetches alone. OpenThread is a library there, for the
/// targets that its crate names: without floats in registers on a Cortex-M4.
const IMAGES: [Chip; 3] = [
    Chip {
        package: "esp32-led",
        feature: "esp32c6",
        target: "riscv32imac-unknown-none-elf",
    },
    Chip {
        package: "esp32-led",
        feature: "esp32h2",
        target: "riscv32imac-unknown-none-elf",
    },
    Chip {
        package: "openthread-node",
        feature: "esp32c6",
        target: "riscv32imac-unknown-none-elf",
    },
];

/// Applications with Nordic's driver in them.
const NORDIC_IMAGES: [Chip; 1] = [Chip {
    package: "openthread-node",
    feature: "nrf52840",
    target: "thumbv7em-none-eabi",
}];

/// The adaptors hold on played drivers, and build for the chips.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let log = workspace.scratch()?.join("chips.log");
    let mut clippy = workspace.chips_cargo("clippy");
    clippy.args(["--workspace", "--all-targets"]);
    clippy.args(locked()).args(["--", "-D", "warnings"]);
    let mut test = workspace.chips_cargo("test");
    test.arg("--workspace").args(locked());
    let mut commands = vec![clippy, test];
    let mut chips: Vec<&Chip> = ESP.iter().collect();
    let mut images: Vec<&Chip> = IMAGES.iter().collect();
    tools::provide(workspace, &[CLANG, CMAKE])?;
    let mut note = String::new();
    match tools::absent(&[CLANG, CMAKE]) {
        Some(advice) if !in_ci() => note = format!("nrf-802154 not built: {advice}"),
        _ => {
            chips.extend(&NORDIC);
            images.extend(&NORDIC_IMAGES);
        }
    }
    for chip in chips {
        let mut target = rustup(workspace);
        target.args(["target", "add", chip.target]);
        let mut clippy = workspace.chips_cargo("clippy");
        clippy.args(["--package", chip.package, "--features", chip.feature]);
        clippy.args(["--target", chip.target]).args(locked());
        clippy.args(["--", "-D", "warnings"]);
        commands.extend([target, clippy]);
    }
    for image in images {
        let mut target = rustup(workspace);
        target.args(["target", "add", image.target]);
        let mut build = workspace.apps_cargo("build");
        build.args(["--package", image.package, "--features", image.feature]);
        build.args(["--target", image.target, "--profile", "device"]);
        build.args(locked());
        commands.extend([target, build]);
    }
    let (mut passed, mut failed, mut output) = (0, 0, String::new());
    for command in &mut commands {
        let (good, text) = run_logged(command, &log)?;
        let tests = count_tests(&text);
        passed += tests.passed + u32::from(good);
        failed += tests.failed.max(u32::from(!good));
        if !good {
            output.push_str(&essence(&text));
        }
    }
    Ok(StepOutcome {
        passed,
        failed,
        note,
        output,
        ..StepOutcome::default()
    })
}
