//! Shell commands of scripts: looked up in a table, never executed.

use super::{Player, Stop, failed, refused};
use crate::script::Position;

impl Player<'_> {
    /// Does what a command would have done, if it is known.
    pub(super) fn command(&mut self, at: Position, command: &str) -> Result<(), Stop> {
        let joined = command.replace("\\\n", " ");
        for line in joined.split(['\n', ';']).flat_map(|line| line.split("&&")) {
            let code = line.split_once(" #").map_or(line, |(code, _comment)| code);
            let line = code.trim().trim_end_matches('\\').trim();
            if !line.is_empty() && !line.starts_with('#') {
                self.command_line(at, line)?;
            }
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
            "sysctl" => self.knobs(at, words.filter(|word| !word.starts_with('-'))),
            "set_sysctls.py" => {
                self.knobs(at, words.map(|word| word.trim_start_matches("/proc/sys/")))
            }
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

    fn knobs<'a>(
        &mut self,
        at: Position,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<(), Stop> {
        // A value in quotes may hold blanks: its later words bear no `=`.
        let mut knobs: Vec<(String, String)> = Vec::new();
        for word in words {
            let word = word.replace(['"', '\''], "");
            match word.split_once('=') {
                Some((name, value)) => knobs.push((name.replace('/', "."), value.to_owned())),
                None => match knobs.last_mut() {
                    Some((_, value)) => {
                        value.push(' ');
                        value.push_str(&word);
                    }
                    None => return refused(at, format!("a sysctl is read (`{word}`), not set")),
                },
            }
        }
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
