//! The commands of a page: its fences marked `console` or `sh`, line by line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A page and its commands, in their order.
pub(super) struct Page {
    /// Below the project's folder.
    pub(super) path: PathBuf,
    pub(super) commands: Vec<Command>,
}

/// A command as written, with the lines that continue it.
pub(super) struct Command {
    /// Where it begins, counted from 1.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) mark: Mark,
}

/// What the fence says behind its language, as in `console hardware`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// Run everywhere.
    None,
    /// Takes longer than the check has: run by `cargo xtask docs` alone.
    Slow,
    /// Needs a radio, root, hours, or runs until somebody ends it: read beside `--help`, never run.
    Read,
}

impl Page {
    pub(super) fn read(root: &Path, path: PathBuf) -> Result<Self> {
        let file = root.join(&path);
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let commands = commands(&text).with_context(|| path.display().to_string())?;
        Ok(Self { path, commands })
    }
}

/// First words of commands: an indented block or a fence without a language that begins with one
/// of them would be missed.
const BEGINNINGS: &[&str] = &[
    "motet ", "cargo ", "curl ", "tshark ", "imgtool ", "pip ", "git ",
];

fn commands(text: &str) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    // The fence that is open.
    let mut fence: Option<Fence> = None;
    let mut continued = Continued::No;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if let Some(words) = line.trim_start().strip_prefix("```") {
            if !matches!(continued, Continued::No) {
                bail!("line {line_number}: the command before the end of the fence is not whole");
            }
            fence = match fence {
                Some(_) => None,
                None => {
                    Some(Fence::of(words).with_context(|| format!("line {line_number}: {line}"))?)
                }
            };
            continue;
        }
        let Some(Fence::Commands(mark)) = fence else {
            let is_block = match fence {
                None => line.starts_with("    "),
                Some(fence) => fence == Fence::Plain,
            };
            if is_block && BEGINNINGS.iter().any(|word| line.trim().starts_with(word)) {
                bail!("line {line_number}: write commands in a fence of the language `console`");
            }
            continue;
        };
        match commands.last_mut() {
            Some(command) if !matches!(continued, Continued::No) => {
                command.text.push('\n');
                command.text.push_str(line);
            }
            _ if line.trim().is_empty() || line.trim_start().starts_with('#') => continue,
            _ => commands.push(Command {
                line: line_number,
                text: line.trim().to_owned(),
                mark,
            }),
        }
        continued = continued.after(line);
    }
    Ok(commands)
}

/// Whether the next line belongs to the same command.
enum Continued {
    No,
    Backslash,
    /// Until a line that is this word.
    Here(String),
}

impl Continued {
    fn after(self, line: &str) -> Self {
        match self {
            Self::Here(word) if line.trim() == word => Self::No,
            Self::Here(word) => Self::Here(word),
            _ if line.ends_with('\\') => Self::Backslash,
            _ => line.split_once("<<").map_or(Self::No, |(_, word)| {
                let quoted = |c: char| !c.is_alphanumeric();
                let word = word.trim_start_matches(quoted);
                Self::Here(word.split(quoted).next().unwrap_or_default().to_owned())
            }),
        }
    }
}

/// What is in a fence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    Commands(Mark),
    /// Without a language.
    Plain,
    /// Another language.
    Other,
}

impl Fence {
    /// By the words at its beginning.
    ///
    /// # Errors
    /// An unknown mark.
    fn of(words: &str) -> Result<Self> {
        let (language, marks) = words.split_once(' ').unwrap_or((words, ""));
        Ok(match language.trim() {
            "console" | "sh" => Self::Commands(mark_of(marks)?),
            "" => Self::Plain,
            _ => Self::Other,
        })
    }
}

fn mark_of(words: &str) -> Result<Mark> {
    let mut mark = Mark::None;
    for word in words.split_whitespace() {
        mark = match word {
            "slow" => Mark::Slow,
            "hardware" | "root" | "long" => Mark::Read,
            _ => bail!("a fence of commands is `slow`, `hardware`, `root` or `long`, not `{word}`"),
        };
    }
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_of_commands_are_read_line_by_line() {
        let text = "\
# Page

```console
motet keys new a.key   # a secret
cat > b <<'END'
x
END
motet run \\
  b
```

```console hardware
motet sniff
```

```toml
motet = 1
```
";
        let read = commands(text).expect("a page");
        let seen: Vec<_> = read
            .iter()
            .map(|command| (command.line, command.text.as_str(), command.mark))
            .collect();
        assert_eq!(
            seen,
            [
                (4, "motet keys new a.key   # a secret", Mark::None),
                (5, "cat > b <<'END'\nx\nEND", Mark::None),
                (8, "motet run \\\n  b", Mark::None),
                (13, "motet sniff", Mark::Read),
            ]
        );
    }

    #[test]
    fn commands_outside_a_fence_and_unknown_marks_are_refused() {
        for text in [
            "    motet send README.md\n",
            "```\ncargo xtask check\n```\n",
            "```console sometimes\nmotet\n```\n",
            "```console\ncat <<END\n```\n",
        ] {
            assert!(commands(text).is_err(), "{text}");
        }
    }
}
