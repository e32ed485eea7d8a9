//! Whether a command that is not run has the subcommands and options that `--help` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use super::words::simple_commands;
use crate::workspace::own_program;

/// Help texts, each asked for once.
pub(super) struct Help {
    motet: PathBuf,
    /// This program.
    xtask: PathBuf,
    known: Mutex<BTreeMap<Vec<String>, Option<String>>>,
}

impl Help {
    pub(super) fn new(motet: &Path) -> Result<Self> {
        Ok(Self {
            motet: motet.to_owned(),
            xtask: own_program()?,
            known: Mutex::default(),
        })
    }

    /// Judges each call of `motet` and of `cargo xtask` in a line of the shell; gives how many.
    ///
    /// # Errors
    /// A sentence about the first one that `--help` does not know.
    pub(super) fn judge(&self, text: &str) -> Result<usize> {
        let mut judged = 0;
        for command in simple_commands(text) {
            let arguments = match command.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["motet", ..] => &command[1..],
                ["cargo", "xtask", ..] => &command[2..],
                _ => continue,
            };
            self.judge_call(&command[0], arguments)?;
            judged += 1;
        }
        Ok(judged)
    }

    fn judge_call(&self, program: &str, arguments: &[String]) -> Result<()> {
        let mut path = vec![program.to_owned()];
        let mut help = self.text(&path)?.unwrap_or_default();
        let ours = arguments.iter().take_while(|word| *word != "--");
        for (index, word) in ours.enumerate() {
            if let Some(option) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                let name = format!("-{}", option.split('=').next().unwrap_or_default());
                if !names(&help, &name) {
                    bail!("`{} --help` names no {name}", path.join(" "));
                }
            } else if index + 1 == path.len() && names_subcommand(&help, word) {
                path.push(word.clone());
                help = self.text(&path)?.unwrap_or_default();
            } else if index == 0 {
                bail!("`{program} --help` names no {word}");
            }
        }
        Ok(())
    }

    /// What `PATH --help` prints; none where the command knows no such path.
    fn text(&self, path: &[String]) -> Result<Option<String>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.get(path) {
            return Ok(text.clone());
        }
        let program = match path[0].as_str() {
            "motet" => &self.motet,
            _ => &self.xtask,
        };
        let output = Command::new(program)
            .args(&path[1..])
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let text = output.status.success().then_some(text);
        known.insert(path.to_vec(), text.clone());
        Ok(text)
    }
}

/// Whether a help text has that option: the first or second word of a line.
fn names(help: &str, option: &str) -> bool {
    help.lines().any(|line| {
        let words = line.split_whitespace().take(2);
        line.starts_with(' ')
            && words
                .map(|word| word.trim_end_matches(','))
                .any(|word| word.split(['=', '[']).next() == Some(option))
    })
}

/// Whether the commands of a help text have that name.
fn names_subcommand(help: &str, name: &str) -> bool {
    let commands = help.lines().skip_while(|line| *line != "Commands:");
    let mut commands = commands.skip(1).take_while(|line| !line.is_empty());
    commands.any(|line| line.split_whitespace().next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Captures the air

Usage: motet sniff [OPTIONS]

Commands:
  status  Print it

Options:
  -c, --channel <N>  Its channel, or --other
      --json[=PATH]  For programs
";

    #[test]
    fn options_and_subcommands_are_found_where_help_lists_them() {
        for option in ["-c", "--channel", "--json"] {
            assert!(names(HELP, option), "{option}");
        }
        assert!(!names(HELP, "--other"));
        assert!(names_subcommand(HELP, "status"));
        assert!(!names_subcommand(HELP, "Options:"));
    }
}
