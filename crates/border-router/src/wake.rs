//! Waiting for several things at once, a signal and another thread among them.
//!
//! Sources: poll(2), signal(7), pipe(7).

use std::{
    io::{self, PipeReader, PipeWriter, Read as _, Write as _},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};

/// Sleeps until one of `fds` is readable, or for `timeout`; `None` is for ever.
///
/// Returns whether one is readable. A signal ends the wait early, with `false`.
/// [`precise_timers`](crate::port::precise_timers) says how late the wake-up may be.
///
/// # Errors
/// What ppoll(2) reports, except `EINTR`.
pub fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
    let entries = fds.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
    let mut entries: Vec<PollFd<'_>> = entries.collect();
    match ppoll(&mut entries, timeout.map(TimeSpec::from_duration), None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A descriptor that becomes readable when somebody rings.
#[derive(Debug)]
pub struct Wake {
    rung: PipeReader,
    bell: Bell,
}

/// Rings a [`Wake`], from any thread.
#[derive(Clone, Debug)]
pub struct Bell {
    pipe: Arc<PipeWriter>,
}

impl Wake {
    /// A wake that nobody has rung.
    ///
    /// # Errors
    /// What pipe(2) reports.
    pub fn new() -> io::Result<Self> {
        let (rung, pipe) = io::pipe()?;
        let pipe = Arc::new(pipe);
        Ok(Self {
            rung,
            bell: Bell { pipe },
        })
    }

    /// Is rung by each of `signals`, by their numbers, from now on.
    ///
    /// # Errors
    /// What sigaction(2) reports.
    pub fn on_signals(&self, signals: &[i32]) -> io::Result<()> {
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, self.bell.pipe.try_clone()?)?;
        }
        Ok(())
    }

    /// A bell that rings it, for other threads.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Forgets that it was rung. Call it once [`wait`] has found it readable, before looking at
    /// what the bell stands for.
    ///
    /// # Errors
    /// What read(2) reports.
    pub fn clear(&mut self) -> io::Result<()> {
        if wait(&[self.rung.as_fd()], Some(Duration::ZERO))? {
            let _ = self.rung.read(&mut [0; 64])?;
        }
        Ok(())
    }
}

impl Bell {
    /// Makes the [`Wake`] readable, which ends a [`wait`] for it.
    pub fn ring(&self) {
        // A pipe that is full, or has lost its reader, needs no further byte.
        let _ = (&*self.pipe).write(&[0]);
    }
}

/// The descriptor, for [`wait`].
impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rung.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_wakes_until_it_is_cleared() {
        let mut wake = Wake::new().unwrap();
        let is_rung = |wake: &Wake| wait(&[wake.as_fd()], Some(Duration::ZERO)).unwrap();
        assert!(!is_rung(&wake));
        wake.clear().unwrap();
        let bell = wake.bell();
        std::thread::spawn(move || bell.ring()).join().unwrap();
        assert!(wait(&[wake.as_fd()], None).unwrap());
        wake.clear().unwrap();
        assert!(!is_rung(&wake));
        wake.on_signals(&[10]).unwrap();
        signal_hook::low_level::raise(10).unwrap();
        assert!(wait(&[wake.as_fd()], Some(Duration::from_secs(5))).unwrap());
    }
}
