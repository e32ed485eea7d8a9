//! The head of a page of measurements: which command wrote it, when, and from which revision.

use std::process::Command;

use crate::workspace::Workspace;

/// The first lines of such a page, in Markdown; `command` repeats the measurement.
pub(crate) fn heading(workspace: &Workspace, title: &str, command: &str) -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        printed(git.arg("-C").arg(&workspace.root).args(arguments))
    };
    let source = match git(&["rev-parse", "--short", "HEAD"]) {
        Some(revision) => {
            // Pages of measurements do not change what is measured.
            let status = git(&["status", "--porcelain", "--", ".", ":!docs"]);
            let is_changed = status.is_none_or(|files| !files.is_empty());
            let mark = if is_changed { " with changes" } else { "" };
            format!("revision {revision}{mark}")
        }
        None => concat!("version ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let date = printed(Command::new("date").args(["-u", "+%F"]));
    let date = date.map_or_else(String::new, |date| format!(" on {date}"));
    format!(
        "# {title}\n\n<!-- Written by the command below. Do not edit. -->\n\n\
         Measured with `{command}`{date} at {source}.\n"
    )
}

/// What a program prints, without its line end; `None` where it is missing or fails.
fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
