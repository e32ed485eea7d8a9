//! Pipes, and `splice` between them and sockets.

use std::collections::VecDeque;

use super::{Errno, Fail, File, Host, Kind, Outcome};

/// One end of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// Which of the host's pipes.
    pipe: usize,
    /// Whether this is the end to read from.
    reads: bool,
}

impl Host<'_> {
    /// Opens a pipe: what is written to `write_fd` is read from `read_fd`.
    ///
    /// # Errors
    /// `EEXIST`: a descriptor is one already.
    pub fn pipe(&mut self, read_fd: i32, write_fd: i32) -> Outcome {
        let pipe = self.pipes.len();
        for (fd, reads) in [(read_fd, true), (write_fd, false)] {
            self.socket(fd)?;
            if let Some(file) = self.files.get_mut(&fd) {
                file.kind = Kind::Pipe(End { pipe, reads });
            }
        }
        self.pipes.push(VecDeque::new());
        Ok(0)
    }

    /// Moves up to `len` bytes between a pipe and a socket; `nonblocking`: of the call.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`, those of reading and writing, or it blocks.
    pub fn splice(&mut self, from: i32, to: i32, len: usize, nonblocking: bool) -> Outcome {
        let ends = (self.end(from)?, self.end(to)?);
        let outcome = match ends {
            (Some(end), None) if end.reads => self.splice_out(end, to, len),
            (None, Some(end)) if !end.reads => self.splice_in(from, end, len),
            _ => return Err(Errno::EINVAL.into()),
        };
        match outcome {
            Err(Fail::Block) if nonblocking => Err(Errno::EAGAIN.into()),
            outcome => outcome,
        }
    }

    /// Reads from a pipe, or writes to it, where `fd` is an end of one; `None`: it is not.
    pub(super) fn read_pipe(&mut self, fd: i32, out: &mut [u8]) -> Option<Outcome> {
        let end = self.end(fd).ok().flatten()?;
        if !end.reads {
            return Some(Err(Errno::EBADF.into()));
        }
        let bytes = self.pipes.get_mut(end.pipe)?;
        if bytes.is_empty() {
            return Some(self.wait_for_pipe(fd, end));
        }
        let count = bytes.len().min(out.len());
        for (place, byte) in out.iter_mut().zip(bytes.drain(..count)) {
            *place = byte;
        }
        Some(Ok(count as i64))
    }

    /// As [`Self::read_pipe`], the other way.
    pub(super) fn write_pipe(&mut self, fd: i32, data: &[u8]) -> Option<Outcome> {
        let end = self.end(fd).ok().flatten()?;
        if end.reads {
            return Some(Err(Errno::EBADF.into()));
        }
        let bytes = self.pipes.get_mut(end.pipe)?;
        let count = data.len().min(PIPE_LEN - bytes.len());
        if count == 0 && !data.is_empty() {
            return Some(self.wait_for_pipe(fd, end));
        }
        bytes.extend(data.get(..count).unwrap_or_default());
        Some(Ok(count as i64))
    }

    /// The outcome of a call on an empty or full pipe: it waits, or returns 0 once the other end is
    /// closed.
    fn wait_for_pipe(&self, fd: i32, end: End) -> Outcome {
        let other = End {
            reads: !end.reads,
            ..end
        };
        let is_other = |file: &File| matches!(file.kind, Kind::Pipe(held) if held == other);
        match (self.files.values().any(is_other), end.reads) {
            (false, true) => Ok(0),
            (false, false) => Err(Errno::EPIPE.into()),
            (true, _) if self.is_nonblocking(fd)? => Err(Errno::EAGAIN.into()),
            (true, _) => Err(Fail::Block),
        }
    }

    fn splice_out(&mut self, end: End, socket: i32, len: usize) -> Outcome {
        let Some(bytes) = self.pipes.get(end.pipe) else {
            return Err(Errno::EBADF.into());
        };
        let data: Vec<u8> = bytes.iter().copied().take(len).collect();
        if data.is_empty() {
            return Err(Fail::Block);
        }
        let mut done = 0;
        let outcome = self.write(socket, &data, &mut done);
        if let Some(bytes) = self.pipes.get_mut(end.pipe) {
            bytes.drain(..done.min(bytes.len()));
        }
        match (outcome, done) {
            (Err(Fail::Block), 1..) => Ok(done as i64),
            (outcome, _) => outcome,
        }
    }

    fn splice_in(&mut self, socket: i32, end: End, len: usize) -> Outcome {
        let held = self.pipes.get(end.pipe).map_or(PIPE_LEN, VecDeque::len);
        let room = len.min(PIPE_LEN - held);
        if room == 0 && len > 0 {
            return Err(Fail::Block);
        }
        let mut data = vec![0; room];
        let count = self.read(socket, &mut data, false)?;
        if let Some(bytes) = self.pipes.get_mut(end.pipe) {
            bytes.extend(data.get(..count as usize).unwrap_or_default());
        }
        Ok(count)
    }

    fn end(&self, fd: i32) -> Result<Option<End>, Fail> {
        Ok(match self.files.get(&fd).ok_or(Errno::EBADF)?.kind {
            Kind::Pipe(end) => Some(end),
            _ => None,
        })
    }
}

/// Bytes that a pipe holds, as on Linux.
const PIPE_LEN: usize = 65_536;
