//! `cargo xtask interop thread-child`: a Motet mote as a child in a Thread network of OpenThread.
//!
//! Parents are `ot-cli-ftd`, the border router is OpenThread's POSIX host, and the radio below
//! `motet mote --thread` is `ot-rcp`. All radios live in a network of their own, `air`; this
//! program is the Linux host behind the border router. That air has no air time and loses
//! nothing: times are bounds of the protocol and this machine.
//!
//! `MOTET_THREAD_CHECKS=attach,linux` runs these groups alone.

mod asleep;
mod attach;
mod capture;
mod full_disk;
mod hostile;
mod openthread;
mod refusals;
mod rig;
mod transfer;
mod trouble;

use std::env;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::interop::report::{Report, Row};
use crate::python::environment;
use crate::thread::openthread;
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, own_program};
use rig::Parts;

/// A name and the checks of that name.
type Group = (&'static str, fn(&Parts, &mut Report) -> Result<()>);

const GROUPS: &[Group] = &[
    ("refusals", refusals::all),
    ("attach", attach::all),
    ("beside", attach::beside),
    ("linux", transfer::linux),
    ("tcplp", transfer::tcplp),
    ("second", transfer::behind_a_second_router),
    ("trouble", trouble::all),
    ("alone", trouble::alone),
    ("full-disk", full_disk::all),
    ("hostile", hostile::all),
    ("asleep", asleep::all),
    ("silent", trouble::silent),
];

/// Runs all checks: a table, or JSON alone, goes to stdout. `is_full`: those that take an hour,
/// too.
pub(super) fn run(workspace: &Workspace, json: bool, is_full: bool) -> Result<bool> {
    if let Some(parts) = env::var_os(PARTS) {
        let parts = serde_json::from_slice(parts.as_encoded_bytes())?;
        return Ok(run_groups(&parts, json));
    }
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        bail!("{advice}");
    }
    let parts = parts(workspace, is_full)?;
    in_own_network(&parts, json)
}

fn run_groups(parts: &Parts, json: bool) -> bool {
    let mut report = Report::new("OpenThread", json);
    let wanted = env::var(CHECKS).unwrap_or_default();
    let is_wanted =
        |(name, _): &&Group| wanted.is_empty() || wanted.split(',').any(|wanted| wanted == *name);
    for (name, group) in GROUPS.iter().filter(is_wanted) {
        if let Err(error) = group(parts, &mut report) {
            report.add(Row::failed(*name, format!("{error:#}")));
        }
    }
    report.is_good()
}

/// Runs this program again behind the border router, in a space of processes that ends with it.
fn in_own_network(parts: &Parts, json: bool) -> Result<bool> {
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount"])
        .args(["--pid", "--fork", "--kill-child", "--"])
        .args(["sh", "-c", NETWORK, "sh"])
        .arg(own_program()?)
        .args(["interop", "thread-child"])
        .args(json.then_some("--json"))
        .env(PARTS, serde_json::to_string(parts)?)
        .status()
        .context("cannot run unshare")?;
    Ok(status.success())
}

/// Builds and fetches what is not there yet.
fn parts(workspace: &Workspace, is_full: bool) -> Result<Parts> {
    let folder = workspace.scratch()?.join("thread-child");
    // Counters and logs of an earlier run would be taken for this one's.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(Parts {
        openthread: openthread(workspace)?,
        motet: workspace.debug_motet()?,
        python: environment(workspace, "venv-thread-child", ATTACKER)?,
        air: workspace.root.join("peers/thread-child/air.py"),
        folder,
        is_full,
    })
}

/// The networks: simulated radios speak by multicast over the `lo` of `air`, where the border
/// router is, too. This program stays outside. The shell stays, so that Ctrl-C ends all.
const NETWORK: &str = "set -e; mount -t tmpfs none /run; mkdir /run/netns; ip netns add air; \
    ip link set lo up; ip -n air link set lo up; ip -n air link set lo multicast on; \
    ip -n air route add 224.0.0.0/4 dev lo; \
    ip link add far0 type veth peer name near0 netns air; \
    ip addr add fd99::2/64 dev far0 nodad; ip -n air addr add fd99::1/64 dev near0 nodad; \
    ip link set far0 up; ip -n air link set near0 up; ip -6 route add default via fd99::1; \
    nsenter --net=/run/netns/air sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'; \
    \"$@\"; exit $?";

/// What builds OpenThread, makes networks, and judges.
const NEEDS: &[Tool] = &[
    tools::CMAKE,
    tools::NINJA,
    tools::CXX,
    tools::IP,
    tools::UNSHARE,
    tools::PYTHON,
    tools::TSHARK,
];

/// What the attacker seals its messages with.
const ATTACKER: &[(&str, &str)] = &[("cryptography", "48.0.0")];

/// Carries [`Parts`] as JSON to the program inside.
const PARTS: &str = "MOTET_THREAD_PARTS";
/// Names of groups, with commas between them.
const CHECKS: &str = "MOTET_THREAD_CHECKS";
