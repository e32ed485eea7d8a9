//! What the crate `motet` offers to others, as a list that a change of it must change, too.
//!
//! The list is `crates/stack/public-api.txt`: one line for each public item, without what the
//! compiler derives. The compiler writes the description of the crate that the lines are made
//! of (rustdoc's JSON); its form is not stable, so that the pinned compiler has to be asked with
//! `RUSTC_BOOTSTRAP` and `public-api` be of the version that reads this compiler's form.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::step::{StepOutcome, run_logged};
use crate::workspace::{Workspace, locked};

/// The committed list, from the project's folder.
const LIST: &str = "crates/stack/public-api.txt";

/// Compares the crate with the list.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let now = surface(workspace)?;
    let path = workspace.root.join(LIST);
    let listed =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let note = format!("{} public items", now.lines().count());
    Ok(match difference(&listed, &now) {
        None => StepOutcome::single(true, note, ""),
        Some(difference) => StepOutcome::single(
            false,
            note,
            format!(
                "{difference}The public items of `motet` differ from {LIST}. Where that is meant, write the list anew with `cargo xtask surface`."
            ),
        ),
    })
}

/// Writes the list anew and prints what has changed.
pub(crate) fn update(workspace: &Workspace) -> Result<bool> {
    let now = surface(workspace)?;
    let path = workspace.root.join(LIST);
    let listed = fs::read_to_string(&path).unwrap_or_default();
    match difference(&listed, &now) {
        None => println!("{LIST} is up to date: {} items", now.lines().count()),
        Some(difference) => print!("{difference}"),
    }
    fs::write(&path, now).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// The public items of the stack with all its features, a line each, sorted.
fn surface(workspace: &Workspace) -> Result<String> {
    let description = describe(workspace)?;
    let api = public_api::Builder::from_rustdoc_json(&description)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("cannot read {}", description.display()))?;
    let lines: BTreeSet<String> = api.items().map(ToString::to_string).collect();
    Ok(lines.into_iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    }))
}

/// Has the compiler describe the crate; gives the file.
fn describe(workspace: &Workspace) -> Result<PathBuf> {
    // A folder of its own: build scripts look at RUSTC_BOOTSTRAP, and all that depends on them
    // would be built anew each time that it comes and goes.
    let target = workspace.scratch()?.join("surface");
    let mut command = workspace.cargo("rustdoc");
    command
        .args(["--package", "motet", "--lib", "--all-features"])
        .args(locked())
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTC_BOOTSTRAP", "1");
    let log = workspace.scratch()?.join("surface.log");
    let (good, output) = run_logged(&mut command, &log)?;
    if !good {
        bail!("{output}");
    }
    Ok(target.join("doc/motet.json"))
}

/// The lines that only one of two lists has, `-` of the first, `+` of the second.
fn difference(old: &str, new: &str) -> Option<String> {
    let [old, new] = [old, new].map(|text| text.lines().collect::<BTreeSet<_>>());
    let mut text = String::new();
    for line in old.symmetric_difference(&new) {
        let sign = if old.contains(line) { '-' } else { '+' };
        let _ = writeln!(text, "{sign} {line}");
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        assert_eq!(difference("a\nb\n", "b\na\n"), None);
        let shown = difference("a\nb\n", "b\nc\n");
        assert_eq!(shown.as_deref(), Some("- a\n+ c\n"));
    }
}
