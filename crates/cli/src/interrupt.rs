//! Ctrl-C and friends as a flag that the main loop looks at.
//!
//! No handler does work: the command sees the flag, returns, and destructors remove what
//! is half done. Namespaces end with the process.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::error::Error;

/// The latest signal that asked this process to stop.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    /// Its number; 0 while there is none.
    number: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Starts noting SIGINT, SIGTERM and SIGHUP instead of dying of them.
    ///
    /// # Errors
    /// When the operating system refuses the handler.
    pub(crate) fn install() -> Result<Self, Error> {
        let number = Arc::new(AtomicUsize::new(0));
        register(&number)
            .map_err(|error| Error::failed(format!("cannot listen for signals: {error}")))?;
        Ok(Self { number })
    }

    /// # Errors
    /// [`Error::Signal`] once a signal has come.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.number.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => Err(Error::Signal(i32::try_from(number).unwrap_or(0))),
        }
    }

    /// The signal noted so far, which is then forgotten.
    pub(crate) fn take(&self) -> Option<i32> {
        match self.number.swap(0, Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }
}

#[cfg(unix)]
fn register(number: &Arc<AtomicUsize>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let value = usize::try_from(signal).unwrap_or(1);
        signal_hook::flag::register_usize(signal, Arc::clone(number), value)?;
    }
    Ok(())
}

/// Elsewhere the system's own handling stands: the process ends at once.
#[cfg(not(unix))]
fn register(_: &Arc<AtomicUsize>) -> io::Result<()> {
    Ok(())
}
