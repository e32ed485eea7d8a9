//! Debian's kernel and busybox, which `cargo xtask ble-peers` runs in an emulator as one of its
//! judges: fetched once, kept for all checkouts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

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
    let cache = tools::once(workspace, "ble-linux", |cache| fetch(workspace, cache))?;
    newest_in(&cache).with_context(|| format!("{} is empty: remove it", cache.display()))
}

/// Fetches the newest kernel and busybox into a folder in `cache`, named by the kernel's version.
fn fetch(workspace: &Workspace, cache: &Path) -> Result<()> {
    let (package, version) = match kernel() {
        Ok(kernel) => kernel,
        Err(_) => {
            tools::update(workspace)?;
            kernel()?
        }
    };
    let log = workspace.scratch()?.join("ble-linux.log");
    let new = cache.join("new");
    // What is left of a fetch that was cut short.
    let _ = fs::remove_dir_all(&new);
    fs::create_dir_all(&new).with_context(|| format!("cannot create {}", new.display()))?;
    let mut fetch = Command::new("apt-get");
    fetch
        .args(["--quiet", "download", "busybox-static"])
        .arg(format!("{package}={version}"))
        .current_dir(&new);
    let (mut good, mut output) = run_logged(&mut fetch, &log)?;
    if !good {
        // Lists of packages may be older than the archive.
        tools::update(workspace)?;
        (good, output) = run_logged(&mut fetch, &log)?;
    }
    ensure!(good, "Debian's kernel cannot be fetched:\n{output}");
    for archive in archives(&new)? {
        let is_kernel = archive
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&package));
        unpack(&archive, &new, if is_kernel { KERNEL } else { BUSYBOX })?;
        fs::remove_file(&archive)
            .with_context(|| format!("cannot remove {}", archive.display()))?;
    }
    let place = cache.join(format!("{package}_{version}"));
    fs::rename(&new, &place).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(())
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

/// The folder that was fetched: complete, since its name is given last.
fn newest_in(cache: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(cache).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find(|path| path.is_dir() && !path.ends_with("new"))
}

/// The package of the kernel that Debian's own names as its newest, and that package's version.
fn kernel() -> Result<(String, String)> {
    let output = Command::new("apt-cache")
        .args(["show", "--no-all-versions", "linux-image-amd64"])
        .stderr(Stdio::null())
        .output()
        .context("cannot run `apt-cache`")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    newest(&printed).context("this system's packages have no linux-image-amd64")
}

/// What a description of linux-image-amd64 depends on, with the version that it asks for.
fn newest(description: &str) -> Option<(String, String)> {
    let depends = description
        .lines()
        .find_map(|line| line.strip_prefix("Depends: "))?;
    let (package, version) = depends.split(',').next()?.split_once(" (= ")?;
    let version = version.trim_end().strip_suffix(')')?;
    Some((package.to_owned(), version.to_owned()))
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.extension().is_some_and(|end| end == "deb"))
        .collect())
}

/// Takes what `wanted` names out of a package. The rest of a kernel's is several hundred megabytes.
fn unpack(package: &Path, folder: &Path, wanted: &[&str]) -> Result<()> {
    let mut open = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `dpkg-deb`")?;
    let files = open.stdout.take().context("`dpkg-deb` has no output")?;
    let status = Command::new("tar")
        .args(["--extract", "--wildcards", "--directory"])
        .arg(folder)
        .args(wanted)
        .stdin(files)
        .status()
        .context("cannot run `tar`")?;
    let is_read = open.wait()?.success();
    ensure!(
        status.success() && is_read,
        "{} cannot be unpacked",
        package.display()
    );
    Ok(())
}

/// Patterns of tar.
const KERNEL: &[&str] = &[
    "*/vmlinuz-*",
    "*/kernel/crypto/*",
    "*/kernel/lib/*",
    "*/kernel/net/6lowpan/*",
    "*/kernel/net/bluetooth/*",
    "*/kernel/net/rfkill/*",
    "*/kernel/drivers/bluetooth/*",
];
const BUSYBOX: &[&str] = &["*/bin/busybox"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_the_one_that_debian_depends_on() {
        let description = "Package: linux-image-amd64\nSource: linux-signed-amd64 (6.1.192+2)\n\
            Version: 6.1.192-2\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\nSection: kernel\n";
        let wanted = (
            "linux-image-6.1.0-56-amd64".to_owned(),
            "6.1.192-2".to_owned(),
        );
        assert_eq!(newest(description), Some(wanted));
        assert_eq!(newest("Package: linux-image-amd64\n"), None);
        assert_eq!(newest("Depends: something-else\n"), None);
    }
}
