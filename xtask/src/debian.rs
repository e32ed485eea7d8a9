//! Debian's kernel, and programs of Debian's, for the emulators in which they judge Motet: fetched
//! once, kept for all checkouts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::step::run_logged;
use crate::tools;
use crate::workspace::Workspace;

/// What is taken out of Debian's packages.
pub(crate) struct Parcel {
    /// Of the folder that keeps it.
    pub(crate) name: &'static str,
    /// Parts of the kernel's package: patterns of tar.
    pub(crate) kernel: &'static [&'static str],
    /// Other packages, each with its parts.
    pub(crate) others: &'static [(&'static str, &'static [&'static str])],
}

/// The folder with what is in the parcel.
pub(crate) fn parts(workspace: &Workspace, parcel: &Parcel) -> Result<PathBuf> {
    let cache = tools::once(workspace, parcel.name, |cache| {
        fetch(workspace, parcel, cache)
    })?;
    newest_in(&cache).with_context(|| format!("{} is empty: remove it", cache.display()))
}

/// Fetches the newest kernel and the other packages into a folder in `cache`, named by the kernel's
/// version.
fn fetch(workspace: &Workspace, parcel: &Parcel, cache: &Path) -> Result<()> {
    let (package, version) = match kernel() {
        Ok(kernel) => kernel,
        Err(_) => {
            tools::update(workspace)?;
            kernel()?
        }
    };
    let log = workspace.scratch()?.join(format!("{}.log", parcel.name));
    let new = cache.join("new");
    // What is left of a fetch that was cut short.
    let _ = fs::remove_dir_all(&new);
    fs::create_dir_all(&new).with_context(|| format!("cannot create {}", new.display()))?;
    let mut fetch = Command::new("apt-get");
    fetch
        .args(["--quiet", "download"])
        .args(parcel.others.iter().map(|(name, _)| name))
        .arg(format!("{package}={version}"))
        .current_dir(&new);
    let (mut good, mut output) = run_logged(&mut fetch, &log)?;
    if !good {
        // Lists of packages may be older than the archive.
        tools::update(workspace)?;
        (good, output) = run_logged(&mut fetch, &log)?;
    }
    ensure!(good, "Debian's packages cannot be fetched:\n{output}");
    let kernel = [(package.as_str(), parcel.kernel)];
    for archive in archives(&new)? {
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let wanted = parcel.others.iter().chain(&kernel);
        let wanted = wanted.filter(|(package, _)| name.starts_with(&format!("{package}_")));
        for (_, wanted) in wanted {
            unpack(&archive, &new, wanted)?;
        }
        fs::remove_file(&archive)
            .with_context(|| format!("cannot remove {}", archive.display()))?;
    }
    let place = cache.join(format!("{package}_{version}"));
    fs::rename(&new, &place).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(())
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
