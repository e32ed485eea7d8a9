//! Writing to a reader that may stall.
//!
//! A pipe blocks its writer for as long as its reader does not read, and a signal handler that only
//! sets a flag does not end the wait. Here a stalled write regularly calls a function of the
//! caller, which decides whether to give up.
//!
//! Sources: pipe(7); fifo(7); poll(2).

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::Path,
    thread,
};

use nix::{
    errno::Errno,
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

/// A pipe, a FIFO or the like, written to as long as a reader reads it, or may start to.
pub struct Stream {
    file: File,
    /// Whether to stop waiting for the reader.
    gives_up: Box<dyn Fn() -> bool + Send>,
}

impl Stream {
    /// Writes to what is open as `fd`; a reader that stalls is waited for until `gives_up`.
    pub fn new(fd: OwnedFd, gives_up: Box<dyn Fn() -> bool + Send>) -> Self {
        Self {
            file: File::from(fd),
            gives_up,
        }
    }

    /// Opens a FIFO once it has a reader.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when no reader has come before `gives_up` returned true; the
    /// errors of open(2).
    pub fn open_fifo(path: &Path, gives_up: Box<dyn Fn() -> bool + Send>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // Without a reader the call returns instead of waiting for one.
        options.write(true).custom_flags(libc::O_NONBLOCK);
        loop {
            match options.open(path) {
                Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) => {
                    if gives_up() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    thread::sleep(PATIENCE);
                }
                opened => return Ok(Self::new(opened?.into(), gives_up)),
            }
        }
    }

    /// Waits for room for at least [`PIECE_MAX`] bytes, or for the reader's end, which writing
    /// then reports.
    fn wait(&self) -> io::Result<()> {
        loop {
            let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
            let patience = u16::try_from(PATIENCE.as_millis()).unwrap_or(u16::MAX);
            match poll(&mut fds, PollTimeout::from(patience)) {
                Ok(ready) if ready > 0 => return Ok(()),
                Ok(_) | Err(Errno::EINTR) if (self.gives_up)() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Write for Stream {
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the reader does not read by the time it gives up.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.wait()?;
            match self.file.write(bytes.get(..PIECE_MAX).unwrap_or(bytes)) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Ok(written) => return Ok(written),
                // Another writer was faster.
                Err(_) if (self.gives_up)() => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) => thread::sleep(PATIENCE / 50),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("file", &self.file).finish()
    }
}

/// How long a stalled write waits before it calls `gives_up` again.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(50);

/// The longest write that a pipe with room takes as a whole, and at once: `PIPE_BUF`.
const PIECE_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    #[test]
    fn a_stalled_reader_is_waited_for_until_it_is_given_up() {
        let (reader, writer) = io::pipe().unwrap();
        let enough = Arc::new(AtomicBool::new(false));
        let gives_up = Arc::clone(&enough);
        let gives_up = Box::new(move || gives_up.load(Ordering::Relaxed));
        let mut stream = Stream::new(writer.into(), gives_up);
        let patient = thread::spawn(move || {
            let filled = stream.write_all(&[7; 1 << 20]);
            (filled, stream)
        });
        thread::sleep(4 * PATIENCE);
        assert!(!patient.is_finished(), "it waits for the reader");
        enough.store(true, Ordering::Relaxed);
        let (filled, mut stream) = patient.join().unwrap();
        assert_eq!(filled.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(reader);
        let gone = stream.write_all(&[7]).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }
}
