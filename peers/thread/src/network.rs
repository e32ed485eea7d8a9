//! The Linux side: this network, in which the border router lives, and one beyond it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::mount::{MsFlags, mount};

/// The name of the network beyond the border router.
const BEYOND: &str = "beyond";
/// The border router's own address in it.
const NEAR: &str = "fd99::1";
/// The server's.
pub(crate) const FAR: &str = "fd99::2";

/// Makes both networks, inside a namespace that belongs to this process alone.
pub(crate) fn set_up() -> Result<()> {
    // The names of networks, and the lock of ip6tables.
    mount(
        Some("tmpfs"),
        "/run",
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
    .context("cannot mount a folder of one's own at /run")?;
    std::fs::create_dir("/run/netns")?;
    let far = format!("{FAR}/64");
    let near = format!("{NEAR}/64");
    // OpenThread's simulated radios speak by multicast over `lo`.
    for line in [
        "link set lo multicast on",
        "route add 224.0.0.0/4 dev lo",
        &format!("netns add {BEYOND}"),
        &format!("-n {BEYOND} link set lo up"),
        &format!("link add near0 type veth peer name far0 netns {BEYOND}"),
        &format!("addr add {near} dev near0 nodad"),
        &format!("-n {BEYOND} addr add {far} dev far0 nodad"),
        "link set near0 up",
        &format!("-n {BEYOND} link set far0 up"),
        &format!("-n {BEYOND} -6 route add default via {NEAR}"),
    ] {
        ip(line)?;
    }
    std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
        .context("cannot switch forwarding on")
}

fn ip(line: &str) -> Result<()> {
    run(Command::new("ip").args(line.split(' '))).map(drop)
}

/// `program`, to be run in the network beyond.
pub(crate) fn beyond(program: &Path) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", BEYOND]).arg(program);
    command
}

/// Runs a command to its end; gives what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}").replace('"', "");
    let output = command
        .output()
        .with_context(|| format!("cannot run `{name}`"))?;
    ensure!(
        output.status.success(),
        "`{name}` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The rules of the packet filter's mangle table, as `ip6tables -S` lists them.
pub(crate) fn rules() -> Result<Vec<String>> {
    let text = run(Command::new("ip6tables").args(["-t", "mangle", "-S"]))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Packets that the kernel could not queue, and those it could not report, of all packet queues.
pub(crate) fn lost_by_queues() -> Result<u64> {
    let path = "/proc/net/netfilter/nfnetlink_queue";
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    // After number, port, length, mode and range of copies.
    let counts = text
        .lines()
        .flat_map(|line| line.split_whitespace().skip(5).take(2));
    counts
        .map(str::parse::<u64>)
        .sum::<Result<u64, _>>()
        .with_context(|| format!("{path} is not as expected: {text}"))
}
