//! Builds the firmware's images and runs the pair of nodes under QEMU.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::panics::reachable_panics;
use crate::step::{StepOutcome, run_logged, wait};
use crate::symbols::without_paths;
use crate::tools::{self, QEMU};
use crate::workspace::{Workspace, in_ci, locked};

/// The minimal node.
pub(crate) const ECHO_NODE: &str = "echo-node";

/// The image that is built with TCP and without.
pub(crate) const TCP_COST: &str = "tcp-cost";

/// The image that is built with RPL and without.
pub(crate) const RPL_COST: &str = "rpl-cost";

/// The image that is built with Bluetooth LE and without.
pub(crate) const BLE_COST: &str = "ble-cost";

/// The image that is built with link security and without.
pub(crate) const SECURITY_COST: &str = "security-cost";

/// The image that is built with nodes that sleep and without.
pub(crate) const SLEEPY_COST: &str = "sleepy-cost";

/// The images above a driver of packets, and what they are built for: a Cortex-M4, as Thread's
/// devices have.
pub(crate) const OVER_NODE: &str = "over-node";
pub(crate) const OVER_TARGET: &str = "thumbv7em-none-eabihf";
/// The image that is built as a child of a Thread network and as a mote with a key alone.
pub(crate) const THREAD_COST: &str = "thread-cost";

/// The image with all parts of Motet that a mote may have at once.
pub(crate) const FULL_NODE: &str = "full-node";

/// A Cortex-M0+.
pub(crate) const TARGET: &str = "thumbv6m-none-eabi";

/// Longer than any run on a loaded machine; the guest itself needs seconds.
const QEMU_LIMIT: Duration = Duration::from_secs(120);

/// The images whose sizes are taken.
pub(crate) struct MinimalNode {
    /// Lines that can panic; the image does not ship while there is one.
    pub(crate) panics: Vec<String>,
}

/// Builds the images of `minimal-node`.
///
/// They link only when no panic is reachable. Where one is, they are linked once more with
/// a handler, so that the sizes can still be read and the lines named.
pub(crate) fn build_minimal_node(workspace: &Workspace) -> Result<MinimalNode> {
    let (good, output) = build(workspace, &["--package", "minimal-node"])?;
    if good {
        return Ok(MinimalNode { panics: Vec::new() });
    }
    let trapping = ["--package", "minimal-node", "--features", "trap-panics"];
    if !build(workspace, &trapping)?.0 {
        bail!("{output}\nthe firmware does not build");
    }
    let mut panics = Vec::new();
    for name in [ECHO_NODE, TCP_COST] {
        panics.extend(reachable_panics(
            &image_path(workspace, name),
            &workspace.root,
        )?);
    }
    if panics.is_empty() {
        panics.push(format!("the linker names what it misses:\n{output}"));
    }
    Ok(MinimalNode { panics })
}

/// Builds [`TCP_COST`] without TCP, in place of the one with it.
pub(crate) fn build_without_tcp(workspace: &Workspace) -> Result<()> {
    let (good, output) = build(workspace, &bare(TCP_COST))?;
    ensure!(good, "{output}\nthe node without TCP does not build");
    Ok(())
}

/// Builds [`TCP_COST`] with the smallest TCP; gives the lines that can panic.
pub(crate) fn build_with_small_tcp(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, TCP_COST, ["tcp-small", "tcp-small,trap-panics"])
}

/// Builds the minimal node with the smallest TCP that peers may connect to, in place of the one
/// with all of it; gives the lines that can panic.
pub(crate) fn build_small_node(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, ECHO_NODE, ["listen", "listen,trap-panics"])
}

/// Builds [`RPL_COST`] without RPL.
pub(crate) fn build_without_rpl(workspace: &Workspace) -> Result<()> {
    let (good, output) = build(workspace, &router(RPL_COST, "relay"))?;
    ensure!(good, "{output}\nthe router without RPL does not build");
    Ok(())
}

/// Builds [`RPL_COST`] with RPL, in place of the one without; gives the lines that can panic.
pub(crate) fn build_with_rpl(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, RPL_COST, ["rpl", "rpl,trap-panics"])
}

/// Builds [`RPL_COST`] with RPL's headers as IPv6 has them, too; gives the lines that can panic.
pub(crate) fn build_with_plain_rpl(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, RPL_COST, ["plain-rpl", "plain-rpl,trap-panics"])
}

/// Builds [`RPL_COST`] with router advertisements, too; gives the lines that can panic.
pub(crate) fn build_with_advertise(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, RPL_COST, ["advertise", "advertise,trap-panics"])
}

/// Builds [`RPL_COST`] with leaves, too; gives the lines that can panic.
pub(crate) fn build_with_leaves(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, RPL_COST, ["leaves", "leaves,trap-panics"])
}

/// Builds [`SECURITY_COST`] without link security.
pub(crate) fn build_without_security(workspace: &Workspace) -> Result<()> {
    let (good, output) = build(workspace, &router(SECURITY_COST, "relay"))?;
    ensure!(good, "{output}\nthe router without a key does not build");
    Ok(())
}

/// Builds [`SECURITY_COST`] with link security, in place of the one without; gives the lines that
/// can panic.
pub(crate) fn build_with_security(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(
        workspace,
        SECURITY_COST,
        ["security", "security,trap-panics"],
    )
}

/// Builds [`SECURITY_COST`] with keys that follow one another, too; gives the lines that can panic.
pub(crate) fn build_with_rotation(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(
        workspace,
        SECURITY_COST,
        ["rotation", "rotation,trap-panics"],
    )
}

/// Builds [`SLEEPY_COST`] always on.
pub(crate) fn build_without_sleepy(workspace: &Workspace) -> Result<()> {
    let (good, output) = build(workspace, &router(SLEEPY_COST, "relay"))?;
    ensure!(
        good,
        "{output}\nthe router that is always on does not build"
    );
    Ok(())
}

/// Builds [`SLEEPY_COST`] with both sides of sleep, in place of the one without; gives the lines
/// that can panic.
pub(crate) fn build_with_sleepy(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, SLEEPY_COST, ["sleepy", "sleepy,trap-panics"])
}

/// Builds [`SLEEPY_COST`] with one copy of a segment, too; gives the lines that can panic.
pub(crate) fn build_with_copies(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, SLEEPY_COST, ["copies", "copies,trap-panics"])
}

/// Builds [`THREAD_COST`] with a key and sleep alone.
pub(crate) fn build_without_thread(workspace: &Workspace) -> Result<()> {
    let (good, output) = build(workspace, &router(THREAD_COST, "rotation,sleepy"))?;
    ensure!(good, "{output}\nthe mote with a key does not build");
    Ok(())
}

/// Builds [`THREAD_COST`] as a child, in place of the one without; gives the lines that can panic.
pub(crate) fn build_with_thread(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, THREAD_COST, ["thread", "thread,trap-panics"])
}

/// Builds [`FULL_NODE`]; gives the lines that can panic.
pub(crate) fn build_full_node(workspace: &Workspace) -> Result<Vec<String>> {
    build_router(workspace, FULL_NODE, ["full", "full,trap-panics"])
}

/// Builds an image with the first of these features, or the second where a panic is reachable.
fn build_router(
    workspace: &Workspace,
    image: &'static str,
    [features, trapping]: [&'static str; 2],
) -> Result<Vec<String>> {
    let (good, output) = build(workspace, &router(image, features))?;
    if good {
        return Ok(Vec::new());
    }
    if !build(workspace, &router(image, trapping))?.0 {
        bail!("{output}\nthe router with {features} does not build");
    }
    panics_in(workspace, image, &output)
}

/// Builds [`BLE_COST`] without Bluetooth LE, as [`build_minimal_node`] leaves it too.
pub(crate) fn build_without_ble(workspace: &Workspace) -> Result<()> {
    let (good, output) = build(workspace, &["--package", "minimal-node", "--bin", BLE_COST])?;
    ensure!(
        good,
        "{output}\nthe node without Bluetooth LE does not build"
    );
    Ok(())
}

/// Builds [`BLE_COST`] with Bluetooth LE, in place of the one without; gives the lines that can
/// panic.
pub(crate) fn build_with_ble(workspace: &Workspace) -> Result<Vec<String>> {
    build_over_ble(workspace, ["ble", "ble,trap-panics"])
}

/// Builds [`BLE_COST`] with TCPlE too, in place of the one with Bluetooth LE alone; gives the lines
/// that can panic.
pub(crate) fn build_with_tcple(workspace: &Workspace) -> Result<Vec<String>> {
    build_over_ble(workspace, ["tcple", "tcple,trap-panics"])
}

/// Builds [`BLE_COST`] with the first of these features, or the second where a panic is reachable.
fn build_over_ble(
    workspace: &Workspace,
    [features, trapping]: [&'static str; 2],
) -> Result<Vec<String>> {
    let arguments = |features: &'static str| {
        let package = "minimal-node";
        let ble = ["--bin", BLE_COST, "--features", features];
        ["--package", package]
            .into_iter()
            .chain(ble)
            .collect::<Vec<_>>()
    };
    let (good, output) = build(workspace, &arguments(features))?;
    if good {
        return Ok(Vec::new());
    }
    if !build(workspace, &arguments(trapping))?.0 {
        bail!("{output}\nthe node with {features} does not build");
    }
    panics_in(workspace, BLE_COST, &output)
}

/// Builds the client and server above a driver of packets, with Motet and with embassy-net; gives
/// where both images are.
pub(crate) fn build_over(workspace: &Workspace) -> Result<[PathBuf; 2]> {
    let mut command = workspace.firmware_cargo("build");
    command
        .args(["--release", "--target", OVER_TARGET, "--package", OVER_NODE])
        .args(locked());
    without_paths(workspace, &mut command)?;
    let log = workspace.scratch()?.join("firmware.log");
    let (good, output) = run_logged(&mut command, &log)?;
    ensure!(
        good,
        "{output}
the node above another stack does not build"
    );
    let folder = workspace.target.join(OVER_TARGET).join("release");
    Ok(["over-motet", "over-embassy-net"].map(|name| folder.join(name)))
}

/// What cargo is told to build one image of no protocol beyond those that every node has.
fn bare(image: &'static str) -> [&'static str; 5] {
    let package = "minimal-node";
    [
        "--package",
        package,
        "--no-default-features",
        "--bin",
        image,
    ]
}

/// What cargo is told to build an image of a router, with these features.
fn router(image: &'static str, features: &'static str) -> Vec<&'static str> {
    let chosen = ["--features", features];
    bare(image).into_iter().chain(chosen).collect()
}

/// The lines of an image that can panic, or what the linker said where none is found.
fn panics_in(workspace: &Workspace, image: &str, output: &str) -> Result<Vec<String>> {
    let mut panics = reachable_panics(&image_path(workspace, image), &workspace.root)?;
    if panics.is_empty() {
        panics.push(format!("the linker names what it misses:\n{output}"));
    }
    Ok(panics)
}

/// Where the linker put an image.
pub(crate) fn image_path(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target.join(TARGET).join("release").join(name)
}

/// The pair's run under QEMU is sound, and so are the minimal node's functions for memory.
pub(crate) fn check_pair(workspace: &Workspace) -> Result<StepOutcome> {
    let pair = check_run(workspace, run_pair)?;
    let memory = check_run(workspace, run_memory_check)?;
    Ok(StepOutcome {
        passed: pair.passed + memory.passed,
        failed: pair.failed + memory.failed,
        note: format!("{}; {}", pair.note, memory.note),
        output: pair.output + &memory.output,
        ..StepOutcome::default()
    })
}

/// A run under QEMU is sound; where there is no QEMU, and need not be, nothing is run.
pub(crate) fn check_run(
    workspace: &Workspace,
    run: fn(&Workspace) -> Result<PairRun>,
) -> Result<StepOutcome> {
    if tools::find(QEMU).is_none() && !in_ci() {
        return Ok(StepOutcome {
            passed: 0,
            failed: 0,
            note: format!("not run: no {QEMU}"),
            output: String::new(),
            ..StepOutcome::default()
        });
    }
    let run = run(workspace)?;
    let note = run.output.lines().last().unwrap_or_default().to_owned();
    Ok(StepOutcome::single(run.good, note, run.output))
}

/// What the pair printed.
pub(crate) struct PairRun {
    /// Whether the guest ended with success.
    pub(crate) good: bool,
    /// All its lines.
    pub(crate) output: String,
}

impl PairRun {
    /// The number after `name=` in the output.
    pub(crate) fn figure(&self, name: &str) -> Option<u32> {
        let after = |word: &str| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        self.output.split_whitespace().find_map(after)
    }
}

/// Builds the pair and runs it.
pub(crate) fn run_pair(workspace: &Workspace) -> Result<PairRun> {
    let (good, output) = build(workspace, &["--package", "qemu-pair"])?;
    if !good {
        bail!("{output}\nthe pair of nodes does not build");
    }
    run_image("mps2-an385", &image_path(workspace, "qemu-pair"))
}

/// Builds the check of the minimal node's functions for memory, and runs it on a Cortex-M0: the
/// pair's machine has one that takes addresses which are not aligned.
fn run_memory_check(workspace: &Workspace) -> Result<PairRun> {
    let (good, output) = build(workspace, &["--package", "memory-check"])?;
    if !good {
        bail!("{output}\nthe check of copies and fills does not build");
    }
    run_image("microbit", &image_path(workspace, "memory-check"))
}

/// Runs an image on one of QEMU's machines.
pub(crate) fn run_image(machine: &str, image: &Path) -> Result<PairRun> {
    let mut child = Command::new(QEMU)
        .args(["-M", machine, "-nographic", "-monitor", "none"])
        .args([
            "-serial",
            "none",
            "-semihosting-config",
            "enable=on,target=native",
            "-kernel",
        ])
        .arg(image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {QEMU}: install Debian's qemu-system-arm"))?;
    let ended = wait(&mut child, QEMU_LIMIT)?.is_some();
    if !ended {
        child.kill()?;
    }
    // The guest prints a few lines: they fit the pipe before any reader reads it.
    let run = child.wait_with_output()?;
    let mut text = String::from_utf8_lossy(&run.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&run.stderr));
    if !ended {
        text.push_str("\nstopped: the guest did not end by itself");
    }
    Ok(PairRun {
        good: run.status.success(),
        output: text,
    })
}

/// A release build in the firmware workspace; gives whether it succeeded, and its output.
fn build(workspace: &Workspace, arguments: &[&str]) -> Result<(bool, String)> {
    let mut command = workspace.firmware_cargo("build");
    command
        .args(["--release", "--target", TARGET])
        .args(arguments);
    if in_ci() {
        command.arg("--locked");
    }
    without_paths(workspace, &mut command)?;
    run_logged(&mut command, &workspace.scratch()?.join("firmware.log"))
}
