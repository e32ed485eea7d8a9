//! One seed, one air: two builds of the command write the same captures and reports, byte for byte.
//!
//! Whether one build repeats itself is tested in `crates/cli/tests/command/determinism.rs`. A debug
//! and a release build that agree rule out what optimisation may change: overflow that wraps where
//! debug builds panic, and floating point in another order. A build of before a change and one of
//! after it that agree show that the change left behaviour as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step::{StepOutcome, run_logged};
use crate::workspace::Workspace;

/// Commands that use the whole stack, losses and both directions of data included; each
/// prints a report for programs and leaves the air in [`CAPTURE`]. `@` is the project's folder.
const FEW: [&str; 3] = [
    "send @/LICENSE-APACHE --virtual --json --frame-loss=0.05 --seed=7",
    "send @/LICENSE-APACHE --virtual --json --direction=down --packet-loss=0.05",
    "run @/scenarios/services.toml --duration=30 --json=-",
];

/// More of them: ten scenarios, and a file over each radio.
const SCENARIOS: [(&str, u32); 10] = [
    ("anemometer-day", 900),
    ("ble-six", 60),
    ("hold", 60),
    ("lossy-wire", 60),
    ("mesh", 60),
    ("office", 60),
    ("readings", 60),
    ("retry-delay", 60),
    ("services", 60),
    ("three-hops", 60),
];

const RADIOS: [&str; 4] = ["hamilton", "telosb", "nrf52840", "ble"];

/// Experiments whose results are compared.
const EXPERIMENTS: [&str; 4] = ["tcplp-mss", "tcphc-size", "cit-latency", "tcple-loss"];

/// A mesh with a key, and one whose motes ask for it: beside the project's scenarios.
const SECURED: [&str; 2] = [
    "run @/scenarios/services.toml --duration=60 --json=- --key=equal.key",
    "run equal.toml --duration=60 --json=-",
];

const KEY: &str = "secret = \"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"\n\
                   network = 0\nsequence = 0\n";

const JOINING: &str = "\n[security]\nkey = \"equal.key\"\njoining = \"cojp\"\n";

/// The file that each run of the lab leaves in its folder.
const CAPTURE: &str = "air.pcap";

/// The folders of the two builds' files.
const BUILDS: [&str; 2] = ["first", "second"];

/// A command line, and whether it leaves a capture.
struct Run {
    line: String,
    is_captured: bool,
}

/// Builds the command twice, lets both run the same in virtual time, and compares.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let debug = workspace.debug_motet()?;
    let release = workspace.release_motet()?;
    let runs = FEW.map(captured);
    let differing = differing(workspace, [&debug, &release], &runs)?;
    let output = format!(
        "debug and release builds wrote different captures or reports, see xtask/determinism in the \
         target folder:\n{}",
        differing.join("\n")
    );
    Ok(StepOutcome::single(differing.is_empty(), "", output))
}

/// Compares `other`, a build of the command, with a release build of these sources; prints the
/// command lines that they answer differently.
pub(crate) fn compare(workspace: &Workspace, other: &Path) -> Result<bool> {
    ensure!(other.is_file(), "{} is no file", other.display());
    let other = fs::canonicalize(other)?;
    let release = workspace.release_motet()?;
    for name in BUILDS {
        write_secured(workspace, &folder(workspace, name)?)?;
    }
    let few = FEW.map(str::to_owned).into_iter();
    let scenarios = SCENARIOS.iter().map(|(name, seconds)| {
        format!("run @/scenarios/{name}.toml --duration={seconds} --json=-")
    });
    let radios = RADIOS
        .iter()
        .map(|radio| format!("send @/LICENSE-APACHE --virtual --json --radio={radio}"));
    let secured = SECURED.map(str::to_owned);
    let lines = few.chain(scenarios).chain(radios).chain(secured);
    let mut runs: Vec<Run> = lines.map(captured).collect();
    runs.extend(EXPERIMENTS.map(|name| Run {
        line: format!("reproduce {name} --json=-"),
        is_captured: false,
    }));
    let differing = differing(workspace, [&other, &release], &runs)?;
    for line in &differing {
        println!("differs: motet {line}");
    }
    println!(
        "{} equal, {} differ",
        runs.len() - differing.len(),
        differing.len()
    );
    Ok(differing.is_empty())
}

fn captured(line: impl Into<String>) -> Run {
    Run {
        line: line.into(),
        is_captured: true,
    }
}

/// The command lines among `runs` for which two builds give different bytes.
fn differing(workspace: &Workspace, builds: [&PathBuf; 2], runs: &[Run]) -> Result<Vec<String>> {
    let mut differing = Vec::new();
    for run in runs {
        let [first, second] = [
            bytes_of(workspace, BUILDS[0], builds[0], run)?,
            bytes_of(workspace, BUILDS[1], builds[1], run)?,
        ];
        if first != second {
            differing.push(run.line.clone());
        }
    }
    Ok(differing)
}

/// What one build prints and writes.
fn bytes_of(
    workspace: &Workspace,
    name: &str,
    binary: &Path,
    run: &Run,
) -> Result<(String, Vec<u8>)> {
    let scratch = folder(workspace, name)?;
    let root = workspace.root.display().to_string();
    let mut command = Command::new(binary);
    command.current_dir(&scratch);
    // A path may have spaces: the line is cut before the folder is put in.
    command.args(run.line.split(' ').map(|word| word.replacen('@', &root, 1)));
    if run.is_captured {
        // The path, being part of some reports, has to be the same for both.
        command.args(["--force", "--pcap", CAPTURE]);
    }
    let (good, report) = run_logged(&mut command, &scratch.join("run.log"))?;
    ensure!(good, "motet {} failed:\n{report}", run.line);
    let capture = match run.is_captured {
        true => fs::read(scratch.join(CAPTURE)).context("it left no capture")?,
        false => Vec::new(),
    };
    Ok((report, capture))
}

/// The folder in which a build runs.
fn folder(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let folder = workspace.scratch()?.join("determinism").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Writes the key file, which its owner alone may read, and the scenario whose motes ask for it.
fn write_secured(workspace: &Workspace, folder: &Path) -> Result<()> {
    let key = folder.join("equal.key");
    fs::write(&key, KEY)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    }
    let scenario = fs::read_to_string(workspace.root.join("scenarios/three-hops.toml"))?;
    fs::write(folder.join("equal.toml"), scenario + JOINING)?;
    Ok(())
}
