//! Where measurements come from: which command made them, when, and from which revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use motet_lab::report::{self, Inputs, Provenance};
use sha2::{Digest as _, Sha256};

/// The version of this program, with the revision that it is built from where that is known.
pub(crate) const VERSION: &str = match option_env!("MOTET_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The origin of results that `command` makes today from these files.
pub(crate) fn of(command: String, inputs: Option<Inputs>) -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: option_env!("MOTET_REVISION").map(str::to_owned),
        date: today(),
        command,
        inputs,
    }
}

/// A scenario, the file of its key where the command line gave one, and `others`, the files that
/// the scenario names. A file that is gone meanwhile has no digest.
pub(crate) fn inputs(scenario: &Path, key: Option<&Path>, others: &[PathBuf]) -> Inputs {
    let others = others.iter().filter_map(|path| {
        let digest = digest(path)?;
        Some((path.to_string_lossy().into_owned(), digest))
    });
    Inputs {
        scenario: scenario.to_owned(),
        key: key.map(Path::to_owned),
        others: others.collect(),
    }
}

/// The SHA-256 of a file in hexadecimal; `None` where it cannot be read.
pub(crate) fn digest(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let digest = Sha256::digest(bytes);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The first lines of a page of measurements, in Markdown; `command` repeats the measurement.
pub(crate) fn heading(title: &str, command: &str) -> String {
    let source = option_env!("MOTET_REVISION").map_or_else(
        || concat!("version ", env!("CARGO_PKG_VERSION")).to_owned(),
        |revision| format!("revision {revision}"),
    );
    format!(
        "# {title}\n\n<!-- Written by the command below. Do not edit. -->\n\n\
         Measured with `{command}` on {} at {source}.\n",
        today()
    )
}

/// A cell of a Markdown table: a bar would end it.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Today, in UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    report::date(since.unwrap_or_default().as_secs() / SECONDS_PER_DAY)
}

const SECONDS_PER_DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_command_its_date_and_its_source() {
        let text = heading("Soak", "motet soak --markdown");
        assert!(text.starts_with("# Soak\n"), "{text}");
        let line = text.lines().last().unwrap();
        assert!(
            line.starts_with("Measured with `motet soak --markdown` on 2"),
            "{line}"
        );
        assert!(
            line.contains(" at revision ") || line.contains(" at version "),
            "{line}"
        );
    }
}
