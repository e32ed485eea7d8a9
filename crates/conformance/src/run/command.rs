//! Shell commands of scripts: looked up in a table, never executed.

use super::{Player, Stop, failed, refused};
use crate::host::Settings;
use crate::script::{self, Action, Position};

impl Player<'_> {
    /// Does what a command would have done, if it is known.
    pub(super) fn command(&mut self, at: Position, command: &str) -> Result<(), Stop> {
        for line in lines(command) {
            self.command_line(at, &line)?;
        }
        Ok(())
    }

    fn command_line(&mut self, at: Position, line: &str) -> Result<(), Stop> {
        let quiet = line
            .split_once("> /dev/null")
            .map_or(line, |(before, _)| before)
            .trim();
        let mut words = quiet.split_whitespace();
        let program = words.next().unwrap_or("");
        let base = program.rsplit('/').next().unwrap_or(program);
        match base {
            // Puts back what `set_sysctls.py` changed: nobody comes after us.
            _ if base.starts_with("sysctl_restore_") => Ok(()),
            // What these suites start from is what the profiles are.
            "defaults.sh" | "true" | ":" => Ok(()),
            SYSCTL | SET_SYSCTLS => self.knobs(at, base, &words.collect::<Vec<_>>()),
            "set" => self.set(at, words),
            "sockstat" => self.sockstat(at, quiet),
            "ip" if quiet.starts_with("ip tcp_metrics flush") => Ok(()),
            "tc" if quiet.contains("pfifo") => Ok(()),
            _ => refused(
                at,
                format!("the command `{line}` is not known, and not executed"),
            ),
        }
    }

    fn knobs(&mut self, at: Position, program: &str, words: &[&str]) -> Result<(), Stop> {
        let knobs = knobs(program, words).or_else(|message| refused(at, message))?;
        for (name, value) in knobs {
            let done = self.host.settings.set_knob(&name, &value);
            done.or_else(|message| refused(at, message))?;
        }
        Ok(())
    }

    /// `set name=value …`: settings of the stack by their own names, for scripts of our own.
    fn set<'a>(&mut self, at: Position, words: impl Iterator<Item = &'a str>) -> Result<(), Stop> {
        for word in words {
            let set = word
                .split_once('=')
                .and_then(|(name, value)| Some((name, value.parse().ok()?)))
                .is_some_and(|(name, value)| self.host.settings.set_by_name(name, value));
            if !set {
                return refused(at, format!("`{word}` is no setting and number"));
            }
        }
        Ok(())
    }

    /// `sockstat … | grep …`: the state table, filtered; the last grep must find something.
    fn sockstat(&mut self, at: Position, line: &str) -> Result<(), Stop> {
        let mut parts = line.split('|');
        let words: Vec<&str> = parts.next().unwrap_or("").split_whitespace().collect();
        let mut lines = self.host.state_lines("packetdril");
        if let Some(port) = words.iter().skip_while(|word| **word != "-p").nth(1) {
            let (bracketed, any) = (format!("]:{port} "), format!("*:{port} "));
            lines.retain(|line| line.contains(&bracketed) || line.contains(&any));
        }
        let mut found = true;
        for part in parts {
            let mut words = part.split_whitespace();
            if words.next() != Some("grep") {
                return refused(at, format!("`{}` is not known in a pipe", part.trim()));
            }
            let (mut count, mut invert, mut pattern) = (false, false, "");
            for word in words {
                match word {
                    "-c" => count = true,
                    "-v" => invert = true,
                    "-q" => {}
                    word if word.starts_with('-') => {
                        return refused(at, format!("grep's `{word}` is not known"));
                    }
                    word => pattern = word.trim_matches(['"', '\'']),
                }
            }
            lines.retain(|line| line.contains(pattern) != invert);
            found = !lines.is_empty();
            if count {
                lines = vec![lines.len().to_string()];
            }
        }
        match found {
            true => Ok(()),
            false => {
                let table = self.host.state_lines("packetdril").join(" / ");
                failed(at, format!("`{line}` finds nothing in: {table}"))
            }
        }
    }
}

/// Sets the knobs that `script` sets before its first call, as a run would; says which it
/// cannot.
///
/// packetdrill hands commands to a shell, which cannot reach a library in its process.
///
/// # Errors
/// A sentence for each knob that is unknown or cannot be expressed; the others are set. A text
/// that is no script is packetdrill's to refuse.
pub fn set_first_knobs(script: &str, settings: &mut Settings) -> Result<(), Vec<String>> {
    let Ok(script) = script::parse(script) else {
        return Ok(());
    };
    let init = script.init.iter().map(|(_, command)| command);
    let first = script.events.iter().map_while(|event| match &event.action {
        Action::Command(command) => Some(command),
        _ => None,
    });
    let mut wrong = Vec::new();
    for line in init.chain(first).flat_map(|command| lines(command)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((program, words)) = words.split_first() else {
            continue;
        };
        let base = program.rsplit('/').next().unwrap_or(program);
        if ![SYSCTL, SET_SYSCTLS].contains(&base) {
            continue;
        }
        for (name, value) in knobs(base, words).unwrap_or_default() {
            wrong.extend(settings.set_knob(&name, &value).err());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// The lines of a command: continued ones joined, without comments.
fn lines(command: &str) -> Vec<String> {
    let joined = command.replace("\\\n", " ");
    let parts = joined.split(['\n', ';']).flat_map(|line| line.split("&&"));
    let code = parts.map(|line| line.split_once(" #").map_or(line, |(code, _comment)| code));
    code.map(|line| line.trim().trim_end_matches('\\').trim())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// The knobs that a command sets: names and values.
fn knobs(program: &str, words: &[&str]) -> Result<Vec<(String, String)>, String> {
    // A value in quotes may hold blanks: its later words bear no `=`.
    let mut knobs: Vec<(String, String)> = Vec::new();
    for word in words {
        let word = match program {
            SET_SYSCTLS => word.trim_start_matches("/proc/sys/"),
            _ if word.starts_with('-') => continue,
            _ => word,
        };
        let word = word.replace(['"', '\''], "");
        match (word.split_once('='), knobs.last_mut()) {
            (Some((name, value)), _) => knobs.push((name.replace('/', "."), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(&word);
            }
            (None, None) => return Err(format!("a sysctl is read (`{word}`), not set")),
        }
    }
    Ok(knobs)
}

/// The programs that set knobs.
const SYSCTL: &str = "sysctl";
const SET_SYSCTLS: &str = "set_sysctls.py";
