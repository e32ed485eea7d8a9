//! Output to stdout: lines for people, or JSON for programs, never both. When a capture goes to
//! stdout, the lines go to stderr.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::Error;

/// The version of the keys of every JSON object that a command writes.
pub(crate) use motet_lab::report::SCHEMA;

/// Names of rows and other quiet text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The style of the words that the eye should find first.
pub(crate) const BOLD: Style = Style::new().bold();
/// The style of success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// The style of failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Writes one line for people to stdout; styles vanish where no terminal shows them or
/// `NO_COLOR` is set.
///
/// # Errors
/// [`Error::ReaderGone`] when the pipe is closed, [`Error::Failed`] otherwise.
pub(crate) fn line(text: impl std::fmt::Display) -> Result<(), Error> {
    line_to(Out::Stdout, text)
}

/// Standard output or standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    Stdout,
    /// A capture has taken stdout.
    Stderr,
}

/// As [`line`], to `out`.
///
/// # Errors
/// As [`line`].
pub(crate) fn line_to(out: Out, text: impl std::fmt::Display) -> Result<(), Error> {
    let written = match out {
        Out::Stdout => {
            let mut stdout = anstream::stdout().lock();
            writeln!(stdout, "{text}").and_then(|()| stdout.flush())
        }
        Out::Stderr => writeln!(anstream::stderr(), "{text}"),
    };
    written.map_err(|error| stdout_error(&error))
}

/// Writes text that has its line feeds to stdout, as it is.
///
/// # Errors
/// As [`line`].
pub(crate) fn text(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| stdout_error(&error))
}

/// One sentence on stderr, of something that is no end of the work. A closed stderr is no reason to
/// stop.
pub(crate) fn say(sentence: &str) {
    // In one piece: what else writes there does not come between.
    let _ = io::stderr().write_all(format!("motet: {sentence}\n").as_bytes());
}

/// An object for programs, headed by the version of its keys.
#[derive(Debug, Serialize)]
pub(crate) struct Versioned<T> {
    schema: u32,
    /// A struct or a map, without a key `schema` of its own.
    #[serde(flatten)]
    value: T,
}

impl<T> Versioned<T> {
    /// `value` under the present version, [`SCHEMA`].
    pub(crate) fn new(value: T) -> Self {
        Self {
            schema: SCHEMA,
            value,
        }
    }
}

/// Writes `value`, headed by the version of its keys, as one line of JSON to stdout.
///
/// # Errors
/// As [`line`].
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    json_to(Out::Stdout, value)
}

/// As [`json`], to `out`.
///
/// # Errors
/// As [`line`].
pub(crate) fn json_to(out: Out, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(&Versioned::new(value))
        .map_err(|error| Error::failed(format!("cannot write the result as JSON: {error}")))?;
    line_to(out, text)
}

/// The [`Error`] for a failed write to stdout.
pub(crate) fn stdout_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Error::ReaderGone,
        _ => Error::failed(format!(
            "cannot write to standard output: {}",
            describe(error)
        )),
    }
}

/// An I/O error without the operating system's number, to end a sentence with.
pub(crate) fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_heads_an_object() {
        #[derive(Serialize)]
        struct Answer {
            bytes: u64,
            rtt_ms: Option<f64>,
        }
        let answer = Answer {
            bytes: u64::MAX,
            rtt_ms: None,
        };
        let text = serde_json::to_string(&Versioned::new(&answer)).unwrap();
        let expected = format!(
            "{{\"schema\":{SCHEMA},\"bytes\":{},\"rtt_ms\":null}}",
            u64::MAX
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn errors_lose_their_number_and_capital() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(describe(&error), "no such file or directory");
    }
}
