//! The line to a radio: a serial device, or a program behind a pseudo-terminal.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            ffi::OsStringExt as _,
            fs::{MetadataExt as _, OpenOptionsExt as _},
            process::{CommandExt as _, ExitStatusExt as _},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use nix::unistd::{Gid, Group};
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{self, ControlModes, OptionalActions, QueueSelector},
};

use crate::{Error, Parity, Uart};

/// A line that is open. Reading and writing never wait.
#[derive(Debug)]
pub(crate) struct Line {
    file: File,
    /// The program at the other end, where it is one.
    child: Option<Child>,
}

impl Line {
    /// Opens a serial device for this process alone.
    pub(crate) fn uart(uart: &Uart) -> Result<Self, Error> {
        let path = || uart.path.clone();
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags(OFlags::NONBLOCK | OFlags::NOCTTY))
            .open(&uart.path);
        let file = opened.map_err(|error| refused(&uart.path, error))?;
        // Both: TIOCEXCL keeps all out but root, and flock root's programs that ask for it.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(Error::InUse(path()));
        }
        if let Err(Errno::NOTTY | Errno::INVAL) = termios::ioctl_tiocexcl(&file) {
            return Err(Error::NoLine(path()));
        }
        let line = Self { file, child: None };
        match line.set(uart) {
            Ok(()) => Ok(line),
            Err(Errno::NOTTY) => Err(Error::NoLine(path())),
            Err(Errno::INVAL) => Err(Error::NoSuchSetting(path())),
            Err(error) => Err(Error::Unreachable(path(), error.into())),
        }
    }

    fn set(&self, uart: &Uart) -> Result<(), Errno> {
        let mut settings = termios::tcgetattr(&self.file)?;
        settings.make_raw();
        let modes = &mut settings.control_modes;
        // The line may have no carrier.
        modes.insert(ControlModes::CLOCAL | ControlModes::CREAD);
        modes.set(ControlModes::PARENB, uart.parity != Parity::None);
        modes.set(ControlModes::PARODD, uart.parity == Parity::Odd);
        modes.set(ControlModes::CSTOPB, uart.has_two_stop_bits);
        modes.set(ControlModes::CRTSCTS, uart.has_flow_control);
        settings.set_speed(uart.baud)?;
        termios::tcsetattr(&self.file, OptionalActions::Now, &settings)?;
        // What came before is no answer to this session.
        termios::tcflush(&self.file, QueueSelector::IOFlush)
    }

    /// Starts a program behind a pseudo-terminal.
    pub(crate) fn program(program: &Path, arguments: &[String]) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::NoProgram(program.to_owned(), error);
        let (ours, theirs) = pseudo_terminal().map_err(failed)?;
        let stdout = theirs.try_clone().map_err(failed)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(stdout))
            // Ctrl-C ends this process, which then ends the program.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Self {
            file: ours,
            child: Some(child),
        })
    }

    /// Reads what has come, as far as `buffer` goes; `None`: nothing has.
    ///
    /// # Errors
    /// The line is gone.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => Ok(Some(len)),
            Err(error) => no_wait(error),
        }
    }

    /// Writes what the line takes now, which may be nothing.
    ///
    /// # Errors
    /// The line is gone.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match (&self.file).write(bytes) {
            Ok(len) => Ok(len),
            Err(error) => no_wait(error).map(Option::unwrap_or_default),
        }
    }

    /// Closes a line that is gone; how the program ended, if it did so by itself.
    pub(crate) fn end(mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        // Changes nothing where it is ending: its descriptors close after its status is set.
        let _ = child.kill();
        let status = child.wait().ok();
        status.filter(|status| status.signal() != Some(SIGKILL))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        match &mut self.child {
            Some(child) => {
                // Fails where it has ended.
                let _ = child.kill();
                let _ = child.wait();
            }
            // Others may open a device again that lives on, as a pseudo-terminal does.
            None => drop(termios::ioctl_tiocnxcl(&self.file)),
        }
    }
}

/// Both ends of a pseudo-terminal that changes no byte.
fn pseudo_terminal() -> io::Result<(File, File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSE_ON_EXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?.into_bytes();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags(OFlags::NOCTTY))
        .open(PathBuf::from(std::ffi::OsString::from_vec(name)))?;
    let mut settings = termios::tcgetattr(&theirs)?;
    settings.make_raw();
    termios::tcsetattr(&theirs, OptionalActions::Now, &settings)?;
    // Where the flag above is not known.
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
    Ok((File::from(ours), theirs))
}

/// Why a device could not be opened.
fn refused(path: &Path, error: io::Error) -> Error {
    let path_buf = path.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOTDIR) => {
            Error::NoSuchDevice(path_buf)
        }
        Some(Errno::ACCESS | Errno::PERM) => Error::NotPermitted {
            path: path_buf,
            group: group_of(path),
        },
        Some(Errno::BUSY) => Error::InUse(path_buf),
        Some(Errno::ISDIR) => Error::NoLine(path_buf),
        _ => Error::Unreachable(path_buf, error),
    }
}

/// The group that may read and write a device, root's aside.
fn group_of(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    let may = metadata.mode() & GROUP_READS_AND_WRITES == GROUP_READS_AND_WRITES;
    let group = Some(metadata.gid()).filter(|gid| may && *gid != 0)?;
    Some(Group::from_gid(Gid::from_raw(group)).ok()??.name)
}

/// `None` where an operation would wait.
fn no_wait(error: io::Error) -> io::Result<Option<usize>> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

const fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: OpenptFlags = OpenptFlags::empty();

const GROUP_READS_AND_WRITES: u32 = 0o060;

/// What [`Child::kill`] sends.
const SIGKILL: i32 = 9;
