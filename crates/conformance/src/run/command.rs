//! Shell commands of scripts: looked up in a table, never executed.

use super::{Player, Stop, failed, refused};
use crate::host::Settings;
use crate::script::{Action, Position, Script};

impl Player<'_> {
    /// Does what a command would have done, if the command is known.
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
            // Undoing what `set_sysctls.py` changed needs no work: no script runs on this host
            // after this one.
            _ if base.starts_with("sysctl_restore_") => Ok(()),
            // The state from which these suites start is the one that the profiles describe.
            "defaults.sh" | "true" | ":" => Ok(()),
            SYSCTL | SET_SYSCTLS => self.knobs(at, base, &words.collect::<Vec<_>>()),
            SET => self.set(at, words),
            "sockstat" => self.sockstat(at, quiet),
            "ip" if quiet.starts_with("ip tcp_metrics flush") => Ok(()),
            // A queue that holds and drops nothing is what the host has; `limit 0` drops all.
            "tc" if quiet.contains("pfifo") && !quiet.ends_with("limit 0") => Ok(()),
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
        let table = self.host.state_lines("packetdril");
        match finds(line, table.clone()) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let table = table.join(" / ");
                failed(at, format!("`{line}` finds nothing in: {table}"))
            }
            Err(message) => refused(at, message),
        }
    }
}

/// Whether `sockstat … | grep …` finds something among the lines of a state table.
///
/// # Errors
/// A sentence: part of the pipe is not known.
pub fn finds(line: &str, mut lines: Vec<String>) -> Result<bool, String> {
    let mut parts = line.split('|');
    let words: Vec<&str> = parts.next().unwrap_or("").split_whitespace().collect();
    if let Some(port) = words.iter().skip_while(|word| **word != "-p").nth(1) {
        let (bracketed, any) = (format!("]:{port} "), format!("*:{port} "));
        lines.retain(|line| line.contains(&bracketed) || line.contains(&any));
    }
    let mut found = true;
    for part in parts {
        let mut words = part.split_whitespace();
        if words.next() != Some("grep") {
            return Err(format!("`{}` is not known in a pipe", part.trim()));
        }
        let (mut count, mut invert, mut pattern) = (false, false, "");
        for word in words {
            match word {
                "-c" => count = true,
                "-v" => invert = true,
                "-q" => {}
                word if word.starts_with('-') => {
                    return Err(format!("grep's `{word}` is not known"));
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
    Ok(found)
}

/// The settings that a script's commands make, and after how many of its calls and packets each is
/// due.
///
/// packetdrill hands commands to a shell, which cannot reach a library in packetdrill's process.
/// That library counts its calls instead, and makes each setting at its count.
#[derive(Debug, Default)]
pub struct Orders {
    /// Calls and packets before the setting, its name, its value, and whether the name is the
    /// stack's own; the last setting first.
    list: Vec<(usize, String, String, bool)>,
}

impl Orders {
    /// Makes the settings that are due after `passed` calls and packets.
    ///
    /// # Errors
    /// A sentence: a setting is unknown, or this stack does not have it.
    pub fn obey(&mut self, passed: usize, settings: &mut Settings) -> Result<(), String> {
        while let Some((_, name, value, is_own)) = self.list.pop_if(|order| order.0 <= passed) {
            match (is_own, value.parse()) {
                (false, _) => settings.set_knob(&name, &value)?,
                (true, Ok(number)) if settings.set_by_name(&name, number) => {}
                _ => return Err(format!("`{name}={value}` is no setting and number")),
            }
        }
        Ok(())
    }
}

/// The settings that the commands of `script` make; commands that only read are the shell's.
///
/// # Errors
/// A sentence: a command that sets something is not understood.
pub fn orders(script: &Script) -> Result<Orders, String> {
    let mut orders = Orders::default();
    let mut passed = 0;
    let init = script.init.iter().map(|(_, command)| (0, command));
    let mut commands: Vec<(usize, &String)> = init.collect();
    for event in &script.events {
        match &event.action {
            Action::Command(command) => commands.push((passed, command)),
            Action::Call(_) | Action::Inject(_) | Action::InjectIcmp(_) => passed += 1,
            Action::Expect(_) | Action::Code(_) => {}
        }
    }
    for (passed, command) in commands {
        for line in lines(command) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some((program, words)) = words.split_first() else {
                continue;
            };
            let base = program.rsplit('/').next().unwrap_or(program);
            let found = match base {
                SYSCTL | SET_SYSCTLS => knobs(base, words)?,
                SET => words
                    .iter()
                    .map(|word| setting(word))
                    .collect::<Result<_, _>>()?,
                _ => continue,
            };
            let order = |(name, value)| (passed, name, value, base == SET);
            orders.list.extend(found.into_iter().map(order));
        }
    }
    orders.list.reverse();
    Ok(orders)
}

fn setting(word: &str) -> Result<(String, String), String> {
    let pair = word.split_once('=');
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or(format!("`{word}` is no setting and number"))
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
/// Sets the stack's own settings.
const SET: &str = "set";
