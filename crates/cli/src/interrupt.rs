//! Ctrl-C and friends as a flag that the main loop looks at.
//!
//! No handler does work: the command sees the flag, returns, and destructors remove what
//! is half done. Namespaces end with the process.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::error::Error;

/// The latest signal that told this process to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    /// The signal's number; 0 while there is none.
    number: Arc<AtomicUsize>,
    /// Whether a signal has ever come.
    has_come: Arc<AtomicBool>,
}

impl Interrupt {
    /// Starts noting SIGINT, SIGTERM and SIGHUP instead of dying of them.
    ///
    /// # Errors
    /// When the operating system refuses the handler.
    pub(crate) fn install() -> Result<Self, Error> {
        let interrupt = Self {
            number: Arc::default(),
            has_come: Arc::default(),
        };
        interrupt
            .register(&STOPS)
            .map_err(|error| Error::failed(format!("cannot listen for signals: {error}")))?;
        Ok(interrupt)
    }

    /// As [`Self::install`], but for SIGHUP, which is noted in a flag of its own.
    ///
    /// # Errors
    /// As [`Self::install`].
    #[cfg(target_os = "linux")]
    pub(crate) fn install_beside_hangup() -> Result<(Self, Arc<AtomicBool>), Error> {
        use signal_hook::{consts::SIGHUP, flag};

        let hung_up = Arc::new(AtomicBool::new(false));
        let cannot =
            |error: io::Error| Error::failed(format!("cannot listen for signals: {error}"));
        flag::register(SIGHUP, Arc::clone(&hung_up)).map_err(cannot)?;
        let interrupt = Self {
            number: Arc::default(),
            has_come: Arc::default(),
        };
        interrupt.register(&STOPS[..2]).map_err(cannot)?;
        Ok((interrupt, hung_up))
    }

    /// # Errors
    /// [`Error::Signal`] once a signal has come.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.number.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => Err(Error::Signal(i32::try_from(number).unwrap_or(0))),
        }
    }

    /// Whether a signal has come, even if it has been forgotten since.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }

    /// The signal noted so far, which is then forgotten.
    pub(crate) fn take(&self) -> Option<i32> {
        match self.number.swap(0, Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }
}

impl Interrupt {
    #[cfg(unix)]
    fn register(&self, signals: &[i32]) -> io::Result<()> {
        use signal_hook::{consts::SIGHUP, flag};

        for &signal in signals {
            // Below nohup(1) a hang-up is no reason to stop.
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            let value = usize::try_from(signal).unwrap_or(1);
            flag::register_usize(signal, Arc::clone(&self.number), value)?;
            flag::register(signal, Arc::clone(&self.has_come))?;
        }
        Ok(())
    }

    /// Elsewhere the system's own handling stands: the process ends at once.
    #[cfg(not(unix))]
    fn register(&self, _: &[i32]) -> io::Result<()> {
        Ok(())
    }
}

/// The signals that end a command.
#[cfg(unix)]
const STOPS: [i32; 3] = [
    signal_hook::consts::SIGINT,
    signal_hook::consts::SIGTERM,
    signal_hook::consts::SIGHUP,
];
#[cfg(not(unix))]
const STOPS: [i32; 0] = [];

#[cfg(target_os = "linux")]
fn is_ignored(signal: i32) -> bool {
    motet_router::guard::is_ignored(signal)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_ignored(_: i32) -> bool {
    false
}
