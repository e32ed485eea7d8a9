//! `cargo xtask interop rcp`: OpenThread's simulated radio co-processors as Motet's radios.
//!
//! `motet router`, `mote` and `sniff` run on `ot-rcp` in a network of their own, with sockets of
//! this machine's kernel at the other end. What real lines and firmware do to that, peers/rcp does.
//! That radio has no air time and loses nothing: rates are bounds of the line and this machine.
//!
//! `MOTET_RCP_CHECKS=rates,mesh` runs these groups alone.

mod capture;
mod connection;
pub(in crate::interop) mod echo;
mod firmware;
mod mesh;
mod rates;
mod refusals;
pub(in crate::interop) mod rig;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::interop::report::{Report, Row};
use crate::python::environment;
use crate::thread::openthread;
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, own_program};
use rig::Parts;

/// A group of checks.
struct Group {
    name: &'static str,
    run: fn(&Parts, &mut Report) -> Result<()>,
    /// Whether it needs radios that hear one another.
    needs_air: bool,
}

const GROUPS: &[Group] = &[
    group("refusals", refusals::all, false),
    group("twins", refusals::twins, true),
    group("whole", connection::whole, true),
    group("kills", connection::kills, true),
    group("stops", connection::stops, true),
    group("late", connection::late, true),
    group("rates", rates::all, true),
    group("mesh", mesh::all, true),
    group("firmware", firmware::all, true),
];

const fn group(
    name: &'static str,
    run: fn(&Parts, &mut Report) -> Result<()>,
    needs_air: bool,
) -> Group {
    Group {
        name,
        run,
        needs_air,
    }
}

/// Runs all checks: a table, or JSON alone, goes to stdout.
pub(super) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    if let Some(parts) = env::var_os(PARTS) {
        let parts = serde_json::from_slice(parts.as_encoded_bytes())?;
        return Ok(run_groups(&parts, json, true));
    }
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        bail!("{advice}");
    }
    let parts = parts(workspace)?;
    let is_good = run_groups(&parts, json, false);
    let inside = in_own_network(&parts, json)?;
    Ok(is_good && inside)
}

/// The groups that run inside a network of their own, or those outside.
fn run_groups(parts: &Parts, json: bool, is_inside: bool) -> bool {
    let mut report = Report::new("ot-rcp", json);
    let wanted = env::var(CHECKS).unwrap_or_default();
    let is_wanted =
        |group: &&Group| wanted.is_empty() || wanted.split(',').any(|name| name == group.name);
    let here = GROUPS.iter().filter(|group| group.needs_air == is_inside);
    for group in here.filter(is_wanted) {
        if let Err(error) = (group.run)(parts, &mut report) {
            report.add(Row::failed(group.name, format!("{error:#}")));
        }
    }
    report.is_good()
}

/// Runs this program again, in a network and a space of processes that end with it.
fn in_own_network(parts: &Parts, json: bool) -> Result<bool> {
    let status = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--",
        ])
        .args(["sh", "-c", NETWORK, "sh"])
        .arg(own_program()?)
        .args(["interop", "rcp"])
        .args(json.then_some("--json"))
        .env(PARTS, serde_json::to_string(parts)?)
        .status()
        .context("cannot run unshare")?;
    Ok(status.success())
}

/// Builds and fetches what is not there yet.
fn parts(workspace: &Workspace) -> Result<Parts> {
    let rcp = openthread(workspace)?.join("simulation/examples/apps/ncp/ot-rcp");
    let judges = environment(workspace, "venv-spinel", JUDGES);
    let folder = workspace.scratch()?.join("rcp");
    // Counters and logs of an earlier run would be taken for this one's.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(Parts {
        motet: workspace.debug_motet()?,
        rcp,
        python: python()?,
        scripts: workspace.root.join("peers/rcp"),
        judges: judges.map_err(|error| format!("not judged: {error:#}")),
        folder,
    })
}

/// The interpreter itself, and not a script that looks for it.
fn python() -> Result<PathBuf> {
    let mut ask = Command::new(tools::PYTHON.program);
    let path = rig::run(ask.args(["-c", "import sys; print(sys.executable)"]))?;
    Ok(PathBuf::from(path.trim()))
}

/// What simulated radios need, which speak by multicast over `lo`. The shell stays, so that Ctrl-C
/// ends the program and with it all that runs here.
const NETWORK: &str = "set -e; ip link set lo up; ip link set lo multicast on; \
                       ip route add 224.0.0.0/4 dev lo; \"$@\"; exit 0";

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

/// The judges of the framing, and what they need.
const JUDGES: &[(&str, &str)] = &[
    ("aiospinel", "1.2.0"),
    ("pyserial", "3.5"),
    ("pyspinel", "1.0.3"),
    ("typing_extensions", "4.16.0"),
];

/// Carries [`Parts`] as JSON to the program inside.
const PARTS: &str = "MOTET_RCP_PARTS";
/// Names of groups, with commas between them.
const CHECKS: &str = "MOTET_RCP_CHECKS";
