//! `--json`, one option with one meaning in all commands.
//!
//! JSON lines on standard output, one object a line, each with the version of its keys, in the
//! place of the text for people. Commands whose work is long write them to a file as well.

use std::path::{Path, PathBuf};

use crate::capture::is_stdout;
use crate::error::Error;

/// `--json` of a command whose output a program may read.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Json {
    /// Print JSON lines, one object a line, in the place of the text
    #[arg(long)]
    json: bool,
}

impl Json {
    /// Whether JSON lines take the place of the text.
    pub(crate) const fn is_on(self) -> bool {
        self.json
    }

    /// Whether JSON lines take the place of the text, where a capture may want standard output.
    ///
    /// # Errors
    /// [`Error::Input`] where both do.
    pub(crate) fn beside(self, takes_stdout: bool) -> Result<bool, Error> {
        match self.json && takes_stdout {
            true => Err(Error::input(
                "standard output takes the capture or the JSON lines: name a file for the capture",
            )),
            false => Ok(self.json),
        }
    }
}

/// `--json` of a command whose work is long: a file may take the lines, and the text stays.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct JsonLines {
    /// Print JSON lines, one object a line, in the place of the text; or write them to this file
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

impl JsonLines {
    /// Whether JSON lines take the place of the text.
    pub(crate) fn is_on(&self) -> bool {
        self.json.as_deref().is_some_and(is_stdout)
    }

    /// Where the lines go: a file, or `-`.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// The file that the lines go to.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.path().filter(|path| !is_stdout(path))
    }

    /// Gives back the word behind `--json` where it `is_operand` of the command, which clap cannot
    /// know; the lines go to standard output then.
    pub(crate) fn give_back(&mut self, is_operand: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let word = self.file().filter(|word| is_operand(word))?.to_owned();
        self.json = Some("-".into());
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn lines(words: &[&str]) -> JsonLines {
        let command = JsonLines::augment_args(clap::Command::new("motet").no_binary_name(true));
        let command = command.arg(clap::Arg::new("operand"));
        JsonLines::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    #[test]
    fn lines_go_to_standard_output_unless_a_file_is_named() {
        for (words, is_on, file) in [
            (&["operand"][..], false, None),
            (&["operand", "--json"], true, None),
            (&["operand", "--json", "-"], true, None),
            (&["--json", "lines", "operand"], false, Some("lines")),
            (&["operand", "--json=lines"], false, Some("lines")),
        ] {
            let lines = lines(words);
            assert_eq!(lines.is_on(), is_on, "{words:?}");
            assert_eq!(lines.file(), file.map(Path::new), "{words:?}");
        }
    }

    #[test]
    fn the_operand_behind_the_option_is_no_file_to_write() {
        let mut lines = lines(&["--json", "operand"]);
        assert_eq!(lines.give_back(|word| word == Path::new("other")), None);
        assert!(!lines.is_on());
        let given = lines.give_back(|word| word == Path::new("operand"));
        assert_eq!(given.as_deref(), Some(Path::new("operand")));
        assert!(lines.is_on() && lines.file().is_none());
        assert_eq!(lines.give_back(|_| true), None);
    }
}
