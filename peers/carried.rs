// A part of the build scripts of `tcplp` and `lwip`, which include this file: where Cargo keeps the
// C sources that a crate carries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The folder of that name in the crate that Cargo.lock names, wherever Cargo keeps it.
pub(crate) fn folder(krate: &str, name: &str) -> Result<PathBuf> {
    let output = Command::new(env::var_os("CARGO").context("CARGO is not set")?)
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == krate)
        .find_map(|package| package["manifest_path"].as_str())
        .with_context(|| format!("Cargo.lock names no {krate}"))?;
    let folder = Path::new(manifest).with_file_name(name);
    ensure!(
        folder.is_dir(),
        "{} is not there: run `cargo fetch` in peers/",
        folder.display()
    );
    Ok(folder)
}
