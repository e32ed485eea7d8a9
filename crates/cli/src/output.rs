//! What goes to stdout: lines for people, or JSON for programs, never both.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::Error;

/// Names of rows and other quiet text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What the eye should find first.
pub(crate) const BOLD: Style = Style::new().bold();
/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Writes one line for people to stdout; styles vanish where no terminal shows them or
/// `NO_COLOR` is set.
///
/// # Errors
/// [`Error::ReaderGone`] when the pipe is closed, [`Error::Failed`] otherwise.
pub(crate) fn line(text: impl std::fmt::Display) -> Result<(), Error> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .map_err(|error| stdout_error(&error))
}

/// Writes `value` as one line of JSON to stdout.
///
/// # Errors
/// As [`line`].
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::failed(format!("cannot write the result as JSON: {error}")))?;
    line(text)
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
    fn errors_lose_their_number_and_capital() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(describe(&error), "no such file or directory");
    }
}
