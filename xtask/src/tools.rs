//! The programs that are needed beside Rust: found, installed, or named with advice.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{StepOutcome, run_logged};
use crate::workspace::{Workspace, in_ci};

/// A program and the Debian package that holds it.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    /// Or the packages, with spaces between them.
    package: &'static str,
}

impl Tool {
    /// What to do where it is missing.
    pub(crate) fn advice(&self) -> String {
        advice(&[*self])
    }
}

/// The emulator that runs the linked node pair.
pub(crate) const QEMU: &str = "qemu-system-arm";

/// Counts instructions.
pub(crate) const VALGRIND: Tool = Tool {
    program: "valgrind",
    package: "valgrind",
};

/// Compiles C for a Cortex-M0+, with a C library's headers.
pub(crate) const ARM_GCC: Tool = Tool {
    program: "arm-none-eabi-gcc",
    package: "gcc-arm-none-eabi libnewlib-arm-none-eabi",
};

/// What applications on motes speak with: a browser, a broker, a server of TLS.
pub(crate) const APPLICATIONS: &[Tool] = &[
    CHROMIUM,
    MOSQUITTO,
    Tool {
        program: "openssl",
        package: "openssl",
    },
    ARM_GCC,
];

/// A broker of MQTT.
pub(crate) const MOSQUITTO: Tool = Tool {
    program: "mosquitto",
    package: "mosquitto",
};

/// A browser.
pub(crate) const CHROMIUM: Tool = Tool {
    program: "chromium",
    package: "chromium",
};

/// Build the live page.
pub(crate) const NODE: Tool = Tool {
    program: "node",
    package: "nodejs",
};
pub(crate) const NPM: Tool = Tool {
    program: "npm",
    package: "npm",
};

/// Builds OpenThread.
pub(crate) const CMAKE: Tool = Tool {
    program: "cmake",
    package: "cmake",
};
/// Compiles Nordic's driver, and describes it to Rust.
pub(crate) const CLANG: Tool = Tool {
    program: "clang",
    package: "clang libclang-dev",
};
pub(crate) const NINJA: Tool = Tool {
    program: "ninja",
    package: "ninja-build",
};
pub(crate) const CXX: Tool = Tool {
    program: "c++",
    package: "g++",
};

/// Makes networks, and rules of the packet filter.
pub(crate) const IP: Tool = Tool {
    program: "ip",
    package: "iproute2",
};
pub(crate) const IP6TABLES: Tool = Tool {
    program: "ip6tables",
    package: "iptables",
};
pub(crate) const NFT: Tool = Tool {
    program: "nft",
    package: "nftables",
};

/// Runs bumble, and what builds and tests the Python package.
pub(crate) const PYTHON: Tool = Tool {
    program: "python3",
    package: "python3 python3-venv",
};

/// Emulates the machine on which a foreign Linux runs.
pub(crate) const QEMU_PC: Tool = Tool {
    program: "qemu-system-x86_64",
    package: "qemu-system-x86",
};

/// Compiles C for this machine, with a C library to link statically.
pub(crate) const CC: Tool = Tool {
    program: "cc",
    package: "gcc libc6-dev",
};

/// Fetch packages of Debian and take them apart.
pub(crate) const APT_GET: Tool = Tool {
    program: "apt-get",
    package: "apt",
};
pub(crate) const APT_CACHE: Tool = Tool {
    program: "apt-cache",
    package: "apt",
};
pub(crate) const DPKG: Tool = Tool {
    program: "dpkg-deb",
    package: "dpkg",
};
/// Compresses archives.
pub(crate) const XZ: Tool = Tool {
    program: "xz",
    package: "xz-utils",
};

/// Packs archives of the kind ZIP again, smaller.
pub(crate) const ADVZIP: Tool = Tool {
    program: "advzip",
    package: "advancecomp",
};

/// Judges images for containers.
pub(crate) const SKOPEO: Tool = Tool {
    program: "skopeo",
    package: "skopeo",
};

/// What a release is made and checked with.
pub(crate) const RELEASE: &[Tool] = &[
    SKOPEO,
    DPKG,
    XZ,
    // Runs the binary for the other kind of machine.
    Tool {
        program: "qemu-aarch64-static",
        package: "qemu-user-static",
    },
    // Make and try the Python package.
    PYTHON,
    ADVZIP,
    // Make and look at the live page.
    NODE,
    NPM,
    CHROMIUM,
];

pub(crate) const TAR: Tool = Tool {
    program: "tar",
    package: "tar",
};

/// Gives a program a network of its own.
pub(crate) const UNSHARE: Tool = Tool {
    program: "unshare",
    package: "util-linux",
};

/// What speaks with motes, or judges their frames.
pub(crate) const CLIENTS: &[Tool] = &[TSHARK, IPERF, NC, COAP_SERVER, CURL, PING];

/// Judges the frames that Motet emits.
pub(crate) const TSHARK: Tool = Tool {
    program: "tshark",
    package: "tshark",
};

// Clients of the motes that `motet up` brings up.
pub(crate) const IPERF: Tool = Tool {
    program: "iperf3",
    package: "iperf3",
};
pub(crate) const NC: Tool = Tool {
    program: "nc",
    package: "netcat-openbsd",
};
const COAP_SERVER: Tool = Tool {
    program: "coap-server-notls",
    package: "libcoap3-bin",
};
const CURL: Tool = Tool {
    program: "curl",
    package: "curl",
};
const PING: Tool = Tool {
    program: "ping",
    package: "iputils-ping",
};

const TOOLS: &[Tool] = &[
    Tool {
        program: QEMU,
        package: "qemu-system-arm",
    },
    TSHARK,
    IPERF,
    NC,
    COAP_SERVER,
    CURL,
    PING,
    IP,
    IP6TABLES,
    NFT,
    // Runs the reference of the bound.
    PYTHON,
];

/// All tools are there, after installing the missing ones where that is possible.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let output = provide(workspace, TOOLS)?;
    let missing = missing(TOOLS);
    if missing.is_empty() {
        return Ok(StepOutcome::single(true, "", ""));
    }
    let advice = advice(&missing);
    if in_ci() {
        return Ok(StepOutcome::single(false, "", format!("{output}{advice}")));
    }
    Ok(StepOutcome::single(
        true,
        format!("incomplete: {advice}"),
        "",
    ))
}

/// Installs what is missing of `tools` where that is possible; gives what that printed.
pub(crate) fn provide(workspace: &Workspace, tools: &[Tool]) -> Result<String> {
    if missing(tools).is_empty() || !may_use_apt() {
        return Ok(String::new());
    }
    let _alone = APT.lock();
    // Another thread may have installed it meanwhile.
    let missing = missing(tools);
    if missing.is_empty() {
        return Ok(String::new());
    }
    install(workspace, &missing)
}

/// Held by the thread that installs: apt refuses a second one.
static APT: Mutex<()> = Mutex::new(());

/// What to do about those of `tools` that are missing; none where all are there.
pub(crate) fn absent(tools: &[Tool]) -> Option<String> {
    let missing = missing(tools);
    (!missing.is_empty()).then(|| advice(&missing))
}

/// Where `program` is on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let name = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(&name))
        .find(|candidate| candidate.is_file())
}

/// Packs a wheel again with the smallest Deflate streams, which readers need not know of.
pub(crate) fn pack_again(workspace: &Workspace, wheel: &Path) -> Result<()> {
    let mut advzip = Command::new(ADVZIP.program);
    advzip.args(["--recompress", "-4", "--quiet"]).arg(wheel);
    let log = workspace.scratch()?.join("advzip.log");
    let (good, output) = run_logged(&mut advzip, &log)?;
    ensure!(good, "{} cannot be packed: {output}", wheel.display());
    Ok(())
}

/// cargo-deny: the one on the search path, or one built once on this machine.
pub(crate) fn cargo_deny(workspace: &Workspace) -> Result<PathBuf> {
    cargo_tool(workspace, "cargo-deny", "0.20.2")
}

/// A subcommand of Cargo: the one on the search path, or one built once for each version on this
/// machine.
pub(crate) fn cargo_tool(workspace: &Workspace, name: &str, version: &str) -> Result<PathBuf> {
    if let Some(found) = find(name) {
        return Ok(found);
    }
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let folder = once(workspace, &format!("{name}-{version}"), |folder| {
        // Unoptimised: it runs for a second, and an optimised build takes minutes.
        let mut command = workspace.cargo("install");
        command
            .args([name, "--version", version])
            .args(["--locked", "--debug", "--root"])
            .arg(folder)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        let log = workspace.scratch()?.join(format!("{name}.log"));
        let (good, output) = run_logged(&mut command, &log)?;
        if !good {
            bail!("{output}\n{name} cannot be installed: see above, or install it yourself");
        }
        // Half a gigabyte that nothing needs any more; staying is harmless.
        let _ = fs::remove_dir_all(folder.join("target"));
        Ok(())
    })?;
    Ok(folder.join("bin").join(file))
}

/// The folder of something that others made and that this machine makes ready once, for all
/// checkouts: `make` fills it, and goes on where one that was cut short stopped. `name` has the
/// version in it.
pub(crate) fn once(
    workspace: &Workspace,
    name: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let home = cache(workspace)?;
    let folder = home.join(name);
    // Written last.
    let done = folder.join("done");
    if done.is_file() {
        return Ok(folder);
    }
    // Another checkout may be making it: then this one waits, and takes that.
    let lock = File::create(home.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !done.is_file() {
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        make(&folder)?;
        fs::write(&done, "").with_context(|| format!("cannot write {}", done.display()))?;
    }
    Ok(folder)
}

/// The folder of what others made and this machine builds once, for all checkouts and each version:
/// in the user's folder for such, `$XDG_CACHE_HOME` or `~/.cache`; without one, in the target
/// folder.
fn cache(workspace: &Workspace) -> Result<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from);
    // The standard wants a relative path to count as none.
    let of_user = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let of_user = of_user.or_else(|| Some(set("HOME")?.join(".cache")));
    let folder = match of_user {
        Some(folder) => folder.join("motet"),
        None => workspace.scratch()?,
    };
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

fn advice(missing: &[Tool]) -> String {
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    let programs: Vec<_> = missing.iter().map(|tool| tool.program).collect();
    format!(
        "{} not found: install with `apt-get install {}`, or by your system's own means.",
        programs.join(" and "),
        packages.join(" ")
    )
}

fn missing(tools: &[Tool]) -> Vec<Tool> {
    let absent = |tool: &Tool| find(tool.program).is_none();
    tools.iter().copied().filter(absent).collect()
}

/// Installing packages takes root and a Debian-like system.
fn may_use_apt() -> bool {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    root && find("apt-get").is_some()
}

/// Asks what packages there are now, where that is possible; gives what that printed.
pub(crate) fn update(workspace: &Workspace) -> Result<String> {
    if !may_use_apt() {
        return Ok(String::new());
    }
    let _alone = APT.lock();
    update_lists(workspace)
}

fn update_lists(workspace: &Workspace) -> Result<String> {
    let log = workspace.scratch()?.join("apt.log");
    Ok(run_logged(apt().args(["--quiet", "update"]), &log)?.1)
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn install(workspace: &Workspace, tools: &[Tool]) -> Result<String> {
    let mut output = update_lists(workspace)?;
    let log = workspace.scratch()?.join("apt.log");
    // An installation that was cut short lets apt install nothing more before it is completed.
    let mut complete = Command::new("dpkg");
    complete
        .args(["--configure", "-a"])
        .env("DEBIAN_FRONTEND", "noninteractive");
    output.push_str(&run_logged(&mut complete, &log)?.1);
    let packages = tools.iter().flat_map(|tool| tool.package.split(' '));
    let mut command = apt();
    command
        .args(["--quiet", "--yes", "--no-install-recommends", "install"])
        .args(packages);
    output.push_str(&run_logged(&mut command, &log)?.1);
    Ok(output)
}
