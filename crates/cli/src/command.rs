//! The command that `motet up` runs beside its motes.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use crate::error::Error;

/// The process that stands between `up` and its command, so that a killed `up` takes the
/// command along.
#[derive(Debug, ClapArgs)]
pub(crate) struct GuardArgs {
    /// The process after whose death the command is killed
    #[arg(long)]
    parent: u32,

    /// Command to run, with its arguments
    #[arg(value_name = "CMD", last = true, required = true)]
    command: Vec<OsString>,
}

/// Guards a command: only on Linux, where `up` calls it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn guard(_: &GuardArgs) -> Result<(), Error> {
    Err(Error::failed("only motet up calls this, on Linux"))
}

/// Guards a command.
#[cfg(target_os = "linux")]
pub(crate) fn guard(args: &GuardArgs) -> Result<(), Error> {
    linux::guard(args)
}

#[cfg(target_os = "linux")]
pub(crate) mod linux {
    use std::{
        ffi::OsString,
        io,
        net::Ipv6Addr,
        os::{fd::AsFd as _, unix::process::ExitStatusExt as _},
        process::{Command, ExitStatus, Stdio},
        sync::{Arc, OnceLock},
    };

    use motet_router::{
        guard::{self, Ending, Guard},
        interrupt::{Interrupts, Origin},
    };

    use super::GuardArgs;
    use crate::{
        error::Error,
        interrupt::Interrupt,
        output::{describe, say},
    };

    /// The signals that end `up`.
    #[derive(Clone)]
    pub(crate) struct Signals {
        /// Until the command is started, every signal; SIGTERM and SIGHUP also behind that.
        interrupt: Interrupt,
        /// SIGINT from then on.
        interrupts: Arc<OnceLock<Interrupts>>,
    }

    impl Signals {
        /// Starts noting signals.
        ///
        /// # Errors
        /// When the operating system refuses.
        pub(crate) fn listen() -> Result<Self, Error> {
            Ok(Self {
                interrupt: Interrupt::install()?,
                interrupts: Arc::default(),
            })
        }

        /// The note of every signal that came until a command runs.
        pub(crate) fn interrupt(&self) -> &Interrupt {
            &self.interrupt
        }

        /// Tells Ctrl-C from a SIGINT to this process alone, from now on. Call it before the
        /// command starts: no Ctrl-C that the command gets may end this process.
        pub(crate) fn a_command_will_run(&self) -> Result<(), Error> {
            let interrupts = Interrupts::listen().map_err(|error| {
                Error::failed(format!("cannot listen for signals: {}", describe(&error)))
            })?;
            // Once: it is set nowhere else.
            let _ = self.interrupts.set(interrupts);
            Ok(())
        }

        /// # Errors
        /// [`Error::Signal`] for a signal that ends `up`: all but the terminal's Ctrl-C, which
        /// is the command's business.
        pub(crate) fn check(&self) -> Result<(), Error> {
            self.interrupt.check()?;
            let interrupts = self.interrupts.get();
            match interrupts.and_then(Interrupts::take) {
                Some(Origin::Process) => Err(Error::Signal(signal_hook::consts::SIGINT)),
                Some(Origin::Terminal) | None => Ok(()),
            }
        }

        /// Whether there is a signal of any kind, Ctrl-C too: a write that waits for a stalled
        /// reader gives up then.
        pub(crate) fn is_due(&self) -> bool {
            let interrupts = self.interrupts.get();
            self.interrupt.has_come() || interrupts.is_some_and(Interrupts::is_due)
        }
    }

    /// Starts the command below a guard; with `stdout_taken` what it prints goes to stderr.
    pub(crate) fn start(
        command: &[OsString],
        motes: &[Ipv6Addr],
        stdout_taken: bool,
    ) -> Result<Guard, Error> {
        let failed = |error: io::Error| {
            Error::failed(format!("cannot start the command: {}", describe(&error)))
        };
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let motes: Vec<String> = motes.iter().map(ToString::to_string).collect();
        // This very program, wherever it lies, and even where it has been replaced since.
        let mut guard = Command::new("/proc/self/exe");
        guard
            .arg("guard")
            .arg(format!("--parent={}", std::process::id()))
            .arg("--")
            .env("MOTET_MOTES", motes.join(" "));
        match command {
            [] => guard.arg(shell),
            words => guard.args(words),
        };
        if stdout_taken {
            let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
            guard.stdout(Stdio::from(stderr));
        }
        Guard::start(&mut guard).map_err(failed)
    }

    pub(super) fn guard(args: &GuardArgs) -> Result<(), Error> {
        let Some((program, arguments)) = args.command.split_first() else {
            return Ok(());
        };
        let mut command = Command::new(program);
        command.args(arguments);
        match guard::watch(args.parent, &mut command) {
            Ok(Ending::Exited(0)) => Ok(()),
            Ok(Ending::Exited(status)) => Err(Error::Child(status)),
            Ok(Ending::Killed) => Err(Error::Child(128 + 9)),
            Err(error) => {
                say(&format!(
                    "cannot run {}: {}, check its name",
                    program.display(),
                    describe(&error)
                ));
                // As shells report it: there is no such command, or it cannot be run.
                Err(Error::Child(match error.kind() {
                    io::ErrorKind::NotFound => 127,
                    _ => 126,
                }))
            }
        }
    }

    /// The command's exit status as ours, as a shell would report it.
    pub(crate) fn report(status: ExitStatus) -> Result<(), Error> {
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal));
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(0) => Ok(()),
            Some(code) => Err(Error::Child(code)),
            None => Err(Error::failed("the command ended without an exit status")),
        }
    }
}
