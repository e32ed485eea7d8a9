//! Files that several packages carry, each its own: a package holds nothing from beyond its folder,
//! and links to files become text where a checkout has none.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Which files read as which others: each file at the first path, and any of that name, as the
/// second.
const COPIES: [(&str, &str); 3] = [
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("python/revision.rs", "crates/cli/revision.rs"),
];

/// Notes each copy among `files`, from the project's folder, that differs from its original.
pub(super) fn judge(
    workspace: &Workspace,
    files: &[String],
    faults: &mut Vec<String>,
) -> Result<()> {
    let read = |path: &str| {
        fs::read(workspace.root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    for (copy, original) in COPIES {
        let text = read(original)?;
        let below = format!("/{copy}");
        for file in files {
            if (file == copy || file.ends_with(&below)) && read(file)? != text {
                faults.push(format!("{file} does not read as {original}"));
            }
        }
    }
    Ok(())
}
