//! A program that is spoken to by lines: a mote of OpenThread, or a server of this crate.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// A program, its input and the lines it printed.
///
/// The program ends with this value.
pub(crate) struct Console {
    name: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// All that was printed so far.
    heard: Vec<String>,
    /// So many of the lines were looked at by [`Console::await_line`].
    seen: usize,
}

impl Console {
    /// Starts the program in `folder`.
    pub(crate) fn start(name: &str, command: &mut Command, folder: &Path) -> Result<Self> {
        let mut child = command
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let input = child.stdin.take().context("the program has no input")?;
        let output = child.stdout.take().context("the program has no output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            // Bytes that are no text end the line, not the reader.
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { return };
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end().trim_start_matches("> ").to_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            input,
            lines,
            heard: Vec::new(),
            seen: 0,
        })
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}")
            .and_then(|()| self.input.flush())
            .with_context(|| format!("{} no longer listens", self.name))
    }

    /// Says a command of OpenThread; gives the lines before its `Done`.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Vec<String>> {
        const PATIENCE: Duration = Duration::from_secs(20);
        self.take_lines();
        let start = self.heard.len();
        self.say(command)?;
        let is_end = |line: &str| line == "Done" || line.starts_with("Error ");
        let end = self.find(start, PATIENCE, is_end)?;
        match self.heard.get(end).map(String::as_str) {
            Some("Done") => Ok(self.heard.get(start..end).unwrap_or_default().to_vec()),
            other => bail!(
                "{}: `{command}` gave `{}`",
                self.name,
                other.unwrap_or_default()
            ),
        }
    }

    /// The next line that holds `word`, among those that no earlier call has passed.
    pub(crate) fn await_line(&mut self, word: &str, patience: Duration) -> Result<String> {
        let at = self.find(self.seen, patience, |line| line.contains(word))?;
        self.seen = at + 1;
        Ok(self.heard.get(at).cloned().unwrap_or_default())
    }

    /// Passes all that was printed so far: [`Self::await_line`] looks at what comes from now on.
    pub(crate) fn skip(&mut self) {
        self.take_lines();
        self.seen = self.heard.len();
    }

    /// All that the program has printed.
    pub(crate) fn heard(&mut self) -> &[String] {
        self.take_lines();
        &self.heard
    }

    fn take_lines(&mut self) {
        self.heard.extend(self.lines.try_iter());
    }

    /// The place of the first line from `start` on that is `wanted`.
    fn find(
        &mut self,
        start: usize,
        patience: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<usize> {
        let until = Instant::now() + patience;
        let mut next = start;
        loop {
            while let Some(line) = self.heard.get(next) {
                if wanted(line) {
                    return Ok(next);
                }
                next += 1;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Timeout) => bail!(
                    "{} did not say what was waited for within {} s; its last lines: {}",
                    self.name,
                    patience.as_secs(),
                    self.last_lines()
                ),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!(
                        "{} has ended; its last lines: {}",
                        self.name,
                        self.last_lines()
                    )
                }
            }
        }
    }

    fn last_lines(&self) -> String {
        let from = self.heard.len().saturating_sub(6);
        self.heard.get(from..).unwrap_or_default().join(" / ")
    }
}

impl Console {
    /// Ends the program as a power cut does.
    pub(crate) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.end();
    }
}
