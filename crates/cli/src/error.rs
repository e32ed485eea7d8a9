//! How a command ends when it does not end well.

use std::{fmt, process::ExitCode};

/// Why a command stopped, which decides the exit status.
#[derive(Debug)]
pub(crate) enum Error {
    /// Bad usage or input: exit status 2. The sentence says what is wrong and what to do.
    Input(String),
    /// The work failed: exit status 1. The sentence says what is wrong and what to do.
    Failed(String),
    /// A signal asked us to stop: exit status 128 + its number, as shells report it.
    Signal(i32),
    /// The same, but something was left behind: the sentence says what.
    Stopped(i32, String),
    /// The exit status of the command that ran inside; it has spoken for itself.
    Child(u8),
    /// Whoever read our output has read enough (`motet … | head`): not a failure.
    ReaderGone,
}

impl Error {
    /// Bad usage or input.
    pub(crate) fn input(sentence: impl Into<String>) -> Self {
        Self::Input(sentence.into())
    }

    /// Work that did not succeed.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self::Failed(sentence.into())
    }

    /// Writes the sentence, where there is one, to stderr; returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let sentence = self.to_string();
        if !sentence.is_empty() {
            use std::io::Write as _;
            // With stderr closed there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "motet: {sentence}");
        }
        ExitCode::from(self.status())
    }

    fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Failed(_) => 1,
            Self::Signal(number) | Self::Stopped(number, _) => {
                128u8.saturating_add(u8::try_from(*number).unwrap_or(0))
            }
            Self::Child(status) => *status,
            Self::ReaderGone => 0,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(sentence) | Self::Failed(sentence) | Self::Stopped(_, sentence) => {
                f.write_str(sentence)
            }
            Self::Signal(_) => f.write_str("interrupted, and left nothing behind"),
            Self::Child(_) | Self::ReaderGone => Ok(()),
        }
    }
}
