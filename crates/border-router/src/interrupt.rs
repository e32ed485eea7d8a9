//! SIGINT, and whether the terminal or a process sent it.
//!
//! Ctrl-C goes to every process in the foreground of a terminal: a process that runs a command for
//! the user leaves such a SIGINT to the command. A SIGINT that another process sends to this
//! process alone asks it to end. The kernel reports which of the two it is.
//!
//! Sources: signalfd(2); sigaction(2), `si_code`.

use std::{io, os::fd::AsFd as _};

use nix::{
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};

/// The origin of a SIGINT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A key of the terminal: every process in the terminal's foreground got the signal.
    Terminal,
    /// Another process sent it, by kill(2) or the like.
    Process,
}

/// SIGINT as something to look at, instead of something that happens.
#[derive(Debug)]
pub struct Interrupts {
    signals: SignalFd,
}

impl Interrupts {
    /// Blocks SIGINT for this thread, and for the threads that it starts from now on.
    ///
    /// Call it in a process with one thread. A process that is started afterwards inherits the
    /// blocked SIGINT and has to unblock it, as [`guard::watch`](crate::guard::watch) does.
    ///
    /// # Errors
    /// What signalfd(2) reports.
    pub fn listen() -> io::Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGINT);
        mask.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = SignalFd::with_flags(&mask, flags)?;
        Ok(Self { signals })
    }

    /// Whether a SIGINT waits to be taken.
    pub fn is_due(&self) -> bool {
        let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Takes the latest SIGINT, if one came since the last look.
    pub fn take(&self) -> Option<Origin> {
        let info = self.signals.read_signal().ok().flatten()?;
        Some(match info.ssi_code {
            libc::SI_KERNEL => Origin::Terminal,
            _ => Origin::Process,
        })
    }
}
