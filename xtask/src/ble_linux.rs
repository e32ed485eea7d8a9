//! Debian's kernel and busybox, which `cargo xtask ble-peers` runs in an emulator as one of its
//! judges.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::debian::{self, Parcel};
use crate::step::run_logged;
use crate::tools::{self, Tool};
use crate::workspace::Workspace;

/// What runs bumble and that Linux, what takes its packages apart, and what compiles the program
/// that gives it a controller.
pub(crate) const NEEDS: &[Tool] = &[
    tools::PYTHON,
    tools::UNSHARE,
    tools::IP,
    tools::QEMU_PC,
    tools::CC,
    tools::DPKG,
    tools::TAR,
    tools::APT_CACHE,
    tools::APT_GET,
];

/// The folder with the kernel, its modules and busybox.
pub(crate) fn parts(workspace: &Workspace) -> Result<PathBuf> {
    debian::parts(workspace, &PARCEL)
}

/// Links the program that gives Linux its controller.
pub(crate) fn attach(workspace: &Workspace) -> Result<PathBuf> {
    let scratch = workspace.scratch()?;
    let program = scratch.join("ble-attach");
    let mut compile = Command::new(tools::CC.program);
    compile
        .args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(workspace.root.join("peers/ble/linux/attach.c"));
    let (good, output) = run_logged(&mut compile, &scratch.join("ble-attach.log"))?;
    ensure!(good, "attach.c does not compile:\n{output}");
    Ok(program)
}

const PARCEL: Parcel = Parcel {
    name: "ble-linux",
    kernel: &[
        "*/vmlinuz-*",
        "*/kernel/crypto/*",
        "*/kernel/lib/*",
        "*/kernel/net/6lowpan/*",
        "*/kernel/net/bluetooth/*",
        "*/kernel/net/rfkill/*",
        "*/kernel/drivers/bluetooth/*",
    ],
    others: &[("busybox-static", &["*/bin/busybox"])],
};
