//! How a command ends when it does not end well.

use std::{fmt, path::Path, process::ExitCode};

/// Why a command stopped, which decides the exit status.
#[derive(Debug)]
pub(crate) enum Error {
    /// Bad usage or input: exit status 2. The sentence says what is wrong and what to do.
    Input(String),
    /// The work failed: exit status 1. The sentence says what is wrong and what to do.
    Failed(String),
    /// A signal told this process to stop: exit status 128 + its number, as shells report it.
    Signal(i32),
    /// As [`Self::Signal`], but files were left behind: the sentence names them.
    Stopped(i32, String),
    /// The exit status of the command that ran inside; it has spoken for itself.
    Child(u8),
    /// The reader of our output has read enough (`motet … | head`): not a failure.
    ReaderGone,
}

impl Error {
    /// An error of usage or input, which ends with status 2.
    pub(crate) fn input(sentence: impl Into<String>) -> Self {
        Self::Input(sentence.into())
    }

    /// Work that did not succeed.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self::Failed(sentence.into())
    }

    /// Joins several errors, in order: one sentence, and the exit status that says most.
    pub(crate) fn all(outcomes: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let errors = outcomes.into_iter().filter_map(Result::err);
        errors.reduce(Self::and).map_or(Ok(()), Err)
    }

    /// Both: what was stopped from outside is that, what failed has failed.
    fn and(self, other: Self) -> Self {
        let sentences = [self.to_string(), other.to_string()];
        let said = sentences.iter().filter(|sentence| !sentence.is_empty());
        let said: Vec<&str> = said.map(String::as_str).collect();
        let both = said.join("; ");
        match (self, other) {
            (Self::Signal(number) | Self::Stopped(number, _), _)
            | (_, Self::Signal(number) | Self::Stopped(number, _)) => Self::Stopped(number, both),
            (Self::Child(status), _) | (_, Self::Child(status)) if both.is_empty() => {
                Self::Child(status)
            }
            (Self::ReaderGone, Self::ReaderGone) => Self::ReaderGone,
            (Self::Input(_) | Self::ReaderGone, Self::Input(_) | Self::ReaderGone) => {
                Self::Input(both)
            }
            _ => Self::Failed(both),
        }
    }

    /// The error with a sentence that also names the output that was kept.
    pub(crate) fn with_partial_output(self, kept: &[PartialOutput<'_>]) -> Self {
        if kept.is_empty() {
            return self;
        }
        let (files, streams): (Vec<_>, Vec<_>) = kept
            .iter()
            .partition(|kept| matches!(kept, PartialOutput::File(_)));
        let names = |kept: Vec<&PartialOutput<'_>>| {
            let names: Vec<String> = kept.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        let files = (!files.is_empty()).then(|| format!("kept up to then: {}", names(files)));
        let streams = (!streams.is_empty()).then(|| format!("{} ends there", names(streams)));
        let kept: Vec<String> = files.into_iter().chain(streams).collect();
        let kept = kept.join("; ");
        match self {
            Self::Signal(number) => Self::Stopped(number, format!("interrupted; {kept}")),
            Self::Stopped(number, sentence) => Self::Stopped(number, format!("{sentence}; {kept}")),
            Self::Input(sentence) => Self::Input(format!("{sentence}; {kept}")),
            Self::Failed(sentence) => Self::Failed(format!("{sentence}; {kept}")),
            silent @ (Self::Child(_) | Self::ReaderGone) => silent,
        }
    }

    /// Writes the sentence, where there is one, to stderr; returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let sentence = self.to_string();
        if !sentence.is_empty() {
            use std::io::Write as _;
            // With stderr closed there is no place left for the sentence.
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

/// Output of a command that stopped half way: it is valid up to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartialOutput<'a> {
    /// A file, complete up to its end.
    File(&'a Path),
    /// A capture that went to a stream; none is the name of standard output.
    Stream(Option<&'a Path>),
}

impl fmt::Display for PartialOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Stream(Some(path)) => write!(f, "the capture to {}", path.display()),
            Self::Stream(None) => f.write_str("the capture on standard output"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_faults_none_goes_unsaid() {
        let full = || Err(Error::failed("the disk is full"));
        let taken = || Err(Error::input("air.pcap exists"));
        let cases = [
            (vec![Ok(()), taken(), Ok(())], 2, "air.pcap exists"),
            (
                vec![taken(), taken()],
                2,
                "air.pcap exists; air.pcap exists",
            ),
            (
                vec![taken(), full()],
                1,
                "air.pcap exists; the disk is full",
            ),
            (
                vec![Err(Error::Stopped(2, "interrupted".into())), full()],
                130,
                "interrupted; the disk is full",
            ),
            (vec![Err(Error::ReaderGone), taken()], 2, "air.pcap exists"),
            (vec![Err(Error::ReaderGone)], 0, ""),
        ];
        for (outcomes, status, sentence) in cases {
            let error = Error::all(outcomes).unwrap_err();
            assert_eq!(
                (error.status(), error.to_string().as_str()),
                (status, sentence)
            );
        }
        assert!(Error::all([Ok(()), Ok(())]).is_ok());
    }

    #[test]
    fn what_is_left_behind_is_named() {
        let (air, fifo) = (Path::new("air.pcap"), Path::new("fifo"));
        let cases: [(&[PartialOutput<'_>], &str); 4] = [
            (&[], "interrupted, and left nothing behind"),
            (
                &[PartialOutput::File(air)],
                "interrupted; kept up to then: air.pcap",
            ),
            (
                &[PartialOutput::Stream(None)],
                "interrupted; the capture on standard output ends there",
            ),
            (
                &[PartialOutput::Stream(Some(fifo)), PartialOutput::File(air)],
                "interrupted; kept up to then: air.pcap; the capture to fifo ends there",
            ),
        ];
        for (kept, sentence) in cases {
            let error = Error::Signal(15).with_partial_output(kept);
            assert_eq!(
                (error.status(), error.to_string().as_str()),
                (143, sentence)
            );
        }
    }
}
