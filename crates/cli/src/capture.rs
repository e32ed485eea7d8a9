//! Captures of the air and of the wire, to files and to readers.
//!
//! A file grows record by record under its name, so that a program can follow it. A stream, which
//! is standard output or a FIFO, feeds a reader live; when the reader stalls the air waits, until
//! a signal comes.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args as ClapArgs};
use motet::mac::Channels;
use motet_lab::{
    capture::{Capture, Records},
    net::network::{NetworkOptions, NodeOptions},
    net::world::World,
};

use crate::{
    error::{Error, PartialOutput},
    files::write_error,
    output::describe,
};

/// The capture of a mesh's air.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new(WRITTEN).multiple(true))]
pub(crate) struct CaptureArgs {
    /// Write the air, live, as a capture that Wireshark reads: to a file, a FIFO or (-)
    /// standard output
    #[arg(long, value_name = "PATH", group = WRITTEN)]
    pub(crate) pcap: Option<PathBuf>,

    /// Overwrite existing files
    #[arg(long, requires = WRITTEN)]
    pub(crate) force: bool,
}

/// The records that the capture of a mesh's air consists of.
pub(crate) fn records(mesh: &NetworkOptions) -> Records {
    let is_multi = |node: &NodeOptions| node.mac.channels != Channels::SINGLE;
    // A frame does not carry the number of its channel.
    match mesh.nodes.iter().any(is_multi) {
        // Of a network that has both, the mesh's.
        _ if !mesh.has_mesh() => Records::Bluetooth,
        true => Records::TappedFrames,
        false => Records::Frames,
    }
}

/// The options that name files to write.
pub(crate) const WRITTEN: &str = "written";

impl CaptureArgs {
    /// Whether the capture takes standard output.
    pub(crate) fn takes_stdout(&self) -> bool {
        self.pcap.as_deref().is_some_and(is_stdout)
    }

    /// The file that it goes to; none where it goes to a stream, or nowhere.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.pcap.as_deref().filter(|path| !is_stream(path))
    }

    /// Begins the capture, where the command line names one.
    ///
    /// # Errors
    /// As [`create`].
    pub(crate) fn create(
        &self,
        records: Records,
        stops: impl Fn() -> bool + Send + 'static,
    ) -> Result<Option<Capture>, Error> {
        match &self.pcap {
            Some(path) => create(path, records, self.force, stops),
            None => Ok(None),
        }
    }

    /// Takes the capture from the air and ends it; returns which files are whole now.
    ///
    /// # Errors
    /// When not all could be written, unless the reader went away.
    pub(crate) fn finish(&self, world: &mut World<'_>) -> Result<Option<PartialOutput<'_>>, Error> {
        self.end(world.take_capture())
    }

    /// Ends the capture; returns which files are whole now.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub(crate) fn end(&self, capture: Option<Capture>) -> Result<Option<PartialOutput<'_>>, Error> {
        let (Some(path), Some(capture)) = (&self.pcap, capture) else {
            return Ok(None);
        };
        match capture.finish().map_err(|error| failure(path, &error)) {
            Err(Some(error)) => Err(error),
            Err(None) | Ok(()) => Ok(Some(partial_output(path))),
        }
    }
}

/// Begins a capture that goes to `path`; none where it is a stream whose reader has gone
/// already. A stalled reader is waited for until `stops`.
///
/// # Errors
/// [`Error::Input`] when `path` exists (unless `replace`), its folder takes no new file, or
/// standard output is a terminal; when the stream breaks.
pub(crate) fn create(
    path: &Path,
    records: Records,
    replace: bool,
    stops: impl Fn() -> bool + Send + 'static,
) -> Result<Option<Capture>, Error> {
    let begun = if is_stdout(path) {
        if io::IsTerminal::is_terminal(&io::stdout()) {
            return Err(Error::input(
                "a capture is nothing for a terminal, pipe it: --pcap - | wireshark -k -i -",
            ));
        }
        open_stdout(stops).and_then(|stream| Capture::stream(stream, records))
    } else if is_fifo(path) {
        eprintln!("motet: waiting for a reader of {}", path.display());
        open_fifo(path, stops).and_then(|stream| Capture::stream(stream, records))
    } else {
        Capture::create(path, records, replace)
    };
    match begun {
        Ok(capture) => Ok(Some(capture)),
        Err(error) => match failure(path, &error) {
            Some(error) => Err(error),
            None => Ok(None),
        },
    }
}

/// The error to report for a capture to `path` that failed; none where the reader of a stream
/// went away, because it has seen enough.
pub(crate) fn failure(path: &Path, error: &io::Error) -> Option<Error> {
    let shown = path.display();
    match error.kind() {
        _ if !is_stream(path) => Some(write_error(path, error)),
        io::ErrorKind::BrokenPipe => None,
        io::ErrorKind::TimedOut => Some(Error::failed(format!(
            "the capture to {shown} broke off: its reader stopped reading"
        ))),
        _ => Some(Error::failed(format!(
            "the capture to {shown} broke off: {}",
            describe(error)
        ))),
    }
}

/// The partial output that a capture to `path` leaves.
pub(crate) fn partial_output(path: &Path) -> PartialOutput<'_> {
    match path {
        path if is_stdout(path) => PartialOutput::Stream(None),
        path if is_stream(path) => PartialOutput::Stream(Some(path)),
        path => PartialOutput::File(path),
    }
}

/// Whether `path` is a stream with a reader, and not a file.
pub(crate) fn is_stream(path: &Path) -> bool {
    is_stdout(path) || is_fifo(path)
}

/// Whether `path` stands for standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether there is a pipe of that name, which a shell may have made: `--pcap >(wireshark …)`.
#[cfg(unix)]
fn is_fifo(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_fifo(_: &Path) -> bool {
    false
}

type Stream = Box<dyn io::Write + Send>;

#[cfg(target_os = "linux")]
fn open_stdout(stops: impl Fn() -> bool + Send + 'static) -> io::Result<Stream> {
    use std::os::fd::AsFd as _;
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    let stream = motet_router::stream::Stream::new(stdout, Box::new(stops));
    Ok(Box::new(stream))
}

#[cfg(target_os = "linux")]
fn open_fifo(path: &Path, stops: impl Fn() -> bool + Send + 'static) -> io::Result<Stream> {
    let stream = motet_router::stream::Stream::open_fifo(path, Box::new(stops))?;
    Ok(Box::new(stream))
}

/// On other systems a stalled reader is waited for until the process is killed.
#[cfg(not(target_os = "linux"))]
fn open_stdout(_: impl Fn() -> bool + Send + 'static) -> io::Result<Stream> {
    Ok(Box::new(io::stdout()))
}

#[cfg(not(target_os = "linux"))]
fn open_fifo(path: &Path, _: impl Fn() -> bool + Send + 'static) -> io::Result<Stream> {
    let fifo = std::fs::OpenOptions::new().write(true).open(path)?;
    Ok(Box::new(fifo))
}
