//! The calls of the application.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use motet::tcp::{Connection, Error, ListenError, Offer, OpenError, RecvError, SendError, State};

use super::settings::Profile;
use super::{Address, Errno, Fail, File, Host, Kind, Opening, Outcome, SocketOptions, Stream};

/// The half of a connection that `shutdown` closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// No more reading (`SHUT_RD`).
    Read,
    /// No more writing: a FIN.
    Write,
    /// Ends both reading and writing (`SHUT_RDWR`).
    Both,
}

impl Host<'_> {
    /// Opens a socket under the descriptor `fd`.
    ///
    /// # Errors
    /// `EEXIST`: the number is a descriptor already.
    pub fn socket(&mut self, fd: i32) -> Outcome {
        if self.files.contains_key(&fd) {
            return Err(Errno::EEXIST.into());
        }
        let file = File {
            kind: Kind::Fresh,
            options: SocketOptions::new(&self.settings),
            port: 0,
            nonblocking: false,
        };
        self.files.insert(fd, file);
        Ok(i64::from(fd))
    }

    /// Whether `fd` is a descriptor of this host.
    pub fn has(&self, fd: i32) -> bool {
        self.files.contains_key(&fd)
    }

    /// The descriptors in use.
    pub fn descriptors(&self) -> Vec<i32> {
        self.files.keys().copied().collect()
    }

    /// Whether calls on `fd` fail rather than wait.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn is_nonblocking(&self, fd: i32) -> Result<bool, Fail> {
        Ok(self.files.get(&fd).ok_or(Errno::EBADF)?.nonblocking)
    }

    /// Makes calls on `fd` fail rather than wait, or wait again.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn set_nonblocking(&mut self, fd: i32, on: bool) -> Outcome {
        self.files.get_mut(&fd).ok_or(Errno::EBADF)?.nonblocking = on;
        Ok(0)
    }

    /// Binds a socket to a port.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`.
    pub fn bind(&mut self, fd: i32, port: u16) -> Outcome {
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        if !matches!(file.kind, Kind::Fresh) || file.port != 0 {
            return Err(Errno::EINVAL.into());
        }
        file.port = match port {
            0 => {
                self.next_port += 1;
                self.next_port
            }
            port => port,
        };
        Ok(0)
    }

    /// Listens.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`, `EADDRINUSE`.
    pub fn listen(&mut self, fd: i32, backlog: i64) -> Outcome {
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        match file.kind {
            Kind::Fresh => {}
            Kind::Listening { .. } => return Ok(0),
            _ => return Err(Errno::EINVAL.into()),
        }
        let (port, options) = (file.port, file.options.clone());
        if port == 0 {
            return Err(Errno::EDESTADDRREQ.into());
        }
        let config = self.config(&options, Opening::Listening);
        let listener = self.tcp.listen(None, port, config).map_err(|e| match e {
            ListenError::InUse => Errno::EADDRINUSE,
            ListenError::NoPlace | ListenError::Address => Errno::ENOBUFS,
        })?;
        if let Some(file) = self.files.get_mut(&fd) {
            file.kind = Kind::Listening {
                listener,
                waiting: Vec::new(),
                ready: VecDeque::new(),
            };
        }
        // Data may come with the handshake's last segment: buffers are lent in advance.
        for _ in 0..backlog.clamp(1, LENT_MAX) {
            self.lend(fd);
        }
        self.pump();
        Ok(0)
    }

    /// Lends the buffers of one more connection to a listener.
    fn lend(&mut self, fd: i32) {
        let Some(file) = self.files.get(&fd) else {
            return;
        };
        let Kind::Listening { listener, .. } = file.kind else {
            return;
        };
        let options = file.options.clone();
        let buffers = self.buffers(&options);
        let Ok(handle) = self.tcp.accept(listener, buffers, self.now) else {
            return;
        };
        let config = self.config(&options, Opening::Accepted);
        self.tcp.set_config(handle, config, self.now);
        if let Some(File {
            kind: Kind::Listening { waiting, .. },
            ..
        }) = self.files.get_mut(&fd)
        {
            waiting.push(new_stream(handle, options, Opening::Accepted));
        }
    }

    /// Accepts a connection under the descriptor `new_fd`; returns the peer's address.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`, `EAGAIN`, or it blocks.
    pub fn accept(&mut self, fd: i32, new_fd: i32) -> Result<Address, Fail> {
        let freebsd = self.settings.lender() == Profile::FreeBsd;
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        let (nonblocking, port) = (file.nonblocking, file.port);
        let Kind::Listening { ready, .. } = &mut file.kind else {
            return Err(Errno::EINVAL.into());
        };
        let mut found = None;
        while let Some(stream) = ready.pop_front() {
            let connection = self.tcp.connection(stream.handle);
            let dead = connection.is_none_or(|c| c.state() == State::Closed);
            // FreeBSD takes a connection that was reset out of the queue.
            if dead && freebsd {
                self.tcp.remove(stream.handle);
                continue;
            }
            let ends = connection.map(Connection::endpoints);
            found = Some((
                stream,
                ends.map_or((Ipv6Addr::UNSPECIFIED, 0), |e| (e.remote, e.remote_port)),
            ));
            break;
        }
        let Some((stream, peer)) = found else {
            return Err(match nonblocking {
                true => Errno::EAGAIN.into(),
                false => Fail::Block,
            });
        };
        let file = File {
            options: stream.options.clone(),
            kind: Kind::Connected(stream),
            port,
            // FreeBSD's connections inherit this setting, Linux's do not; scripts set it
            // themselves.
            nonblocking: nonblocking && freebsd,
        };
        self.files.insert(new_fd, file);
        self.lend(fd);
        self.pump();
        Ok(peer)
    }

    /// Connects.
    ///
    /// # Errors
    /// `EBADF`, `EINPROGRESS`, `EALREADY`, `EISCONN`, the connection's error, or it blocks.
    pub fn connect(&mut self, fd: i32, remote: Address) -> Outcome {
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        let (port, nonblocking) = (file.port, file.nonblocking);
        match &file.kind {
            Kind::Fresh => {}
            Kind::Connected(_) => return self.connect_again(fd),
            _ => return Err(Errno::EOPNOTSUPP.into()),
        }
        let options = file.options.clone();
        let config = self.config(&options, Opening::Connecting);
        let buffers = self.buffers(&options);
        let local = self.settings.local;
        let result = match port {
            0 => self
                .tcp
                .connect(local, remote, buffers, config, Offer::UNBOUNDED, self.now),
            port => self.tcp.connect_from(
                (local, port),
                remote,
                buffers,
                config,
                Offer::UNBOUNDED,
                self.now,
            ),
        };
        let handle = result.map_err(|rejected| match rejected.error {
            OpenError::InUse | OpenError::NoPort => Errno::EADDRINUSE,
            OpenError::Address => Errno::EADDRNOTAVAIL,
            OpenError::NoSlot | OpenError::NoListener => Errno::ENOBUFS,
        })?;
        if let Some(file) = self.files.get_mut(&fd) {
            file.kind = Kind::Connected(new_stream(handle, options, Opening::Connecting));
        }
        self.pump();
        match nonblocking {
            true => Err(Errno::EINPROGRESS.into()),
            false => self.connect_again(fd),
        }
    }

    fn connect_again(&mut self, fd: i32) -> Outcome {
        let error = self.take_error(fd)?;
        let linux = self.settings.lender() != Profile::FreeBsd;
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        let Kind::Connected(stream) = &mut file.kind else {
            return Err(Errno::EINVAL.into());
        };
        if let Some(errno) = error {
            return Err(errno.into());
        }
        let connection = self.tcp.connection(stream.handle);
        match connection.map(|c| (c.state(), c.is_connecting())) {
            Some((_, true)) if file.nonblocking => Err(Errno::EALREADY.into()),
            Some((_, true)) => Err(Fail::Block),
            Some((State::Closed, _)) | None => Err(Errno::ECONNABORTED.into()),
            Some(_) if stream.connect_told || file.nonblocking && !linux => {
                Err(Errno::EISCONN.into())
            }
            Some(_) => {
                stream.connect_told = true;
                Ok(0)
            }
        }
    }

    /// Writes `data`, of which `done` bytes were taken already; `done` grows with each try.
    ///
    /// # Errors
    /// `EBADF`, `ENOTCONN`, `EPIPE`, `EAGAIN`, the connection's error, or it blocks.
    pub fn write(&mut self, fd: i32, data: &[u8], done: &mut usize) -> Outcome {
        if let Some(outcome) = self.write_pipe(fd, data) {
            return outcome;
        }
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        let nonblocking = file.nonblocking;
        let freebsd = self.settings.lender() == Profile::FreeBsd;
        let Kind::Connected(stream) = &file.kind else {
            return Err(if freebsd {
                Errno::ENOTCONN
            } else {
                Errno::EPIPE
            }
            .into());
        };
        let handle = stream.handle;
        let connecting = self
            .tcp
            .connection(handle)
            .is_some_and(Connection::is_connecting);
        let wait = |done: usize| match (nonblocking, done) {
            (true, 0) => Err(Errno::EAGAIN.into()),
            (true, done) => Ok(done as i64),
            (false, _) => Err(Fail::Block),
        };
        if connecting {
            return match nonblocking && freebsd {
                true => Err(Errno::ENOTCONN.into()),
                false => wait(0),
            };
        }
        if let Some(errno) = self.take_error(fd)? {
            return Err(errno.into());
        }
        while *done < data.len() {
            let rest = data.get(*done..).unwrap_or_default();
            match self.tcp.send(handle, rest, self.now) {
                Ok(taken) => *done += taken,
                Err(SendError::BufferFull) => {
                    self.pump();
                    // Sending frees no room in the buffer: only acknowledgments do.
                    return wait(*done);
                }
                Err(SendError::Closing | SendError::Failed(_) | SendError::NoConnection) => {
                    return Err(Errno::EPIPE.into());
                }
            }
        }
        self.pump();
        Ok(data.len() as i64)
    }

    /// Reads up to `out.len()` bytes; 0 at the end of what the peer sent.
    ///
    /// `peek`: leaves them in place.
    ///
    /// # Errors
    /// `EBADF`, `ENOTCONN`, `EAGAIN`, the connection's error, or it blocks.
    pub fn read(&mut self, fd: i32, out: &mut [u8], peek: bool) -> Outcome {
        if let Some(outcome) = self.read_pipe(fd, out) {
            return outcome;
        }
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        let nonblocking = file.nonblocking;
        let Kind::Connected(stream) = &mut file.kind else {
            return Err(Errno::ENOTCONN.into());
        };
        let mut count = 0;
        if peek {
            for (place, byte) in out.iter_mut().zip(&stream.staged) {
                *place = *byte;
                count += 1;
            }
            let front = self.tcp.peek(stream.handle).unwrap_or_default();
            let held = self
                .tcp
                .connection(stream.handle)
                .map_or(0, |connection| usize::from(connection.can_recv()));
            let places = out.get_mut(count..).unwrap_or_default();
            let more = held.min(places.len());
            // The ring may lie in two pieces; the second one is only counted.
            for (place, byte) in places.iter_mut().zip(front) {
                *place = *byte;
            }
            count += more;
        } else {
            while count < out.len() {
                let Some(byte) = stream.staged.pop_front() else {
                    break;
                };
                if let Some(place) = out.get_mut(count) {
                    *place = byte;
                }
                count += 1;
            }
            while count < out.len() {
                let room = out.get_mut(count..).unwrap_or_default();
                match self.tcp.recv(stream.handle, room) {
                    Ok(read) => count += read,
                    Err(_) => break,
                }
            }
        }
        if count > 0 || out.is_empty() {
            self.pump();
            return Ok(count as i64);
        }
        if stream.read_closed {
            return Ok(0);
        }
        let (handle, linux) = (stream.handle, self.settings.lender() == Profile::Linux);
        if let Some(errno) = self.take_error(fd)? {
            return Err(errno.into());
        }
        match self.tcp.recv(handle, &mut [0]) {
            Err(RecvError::Empty) if nonblocking => Err(Errno::EAGAIN.into()),
            Err(RecvError::Empty) => {
                let connection = self.tcp.connection(handle);
                match connection.is_some_and(Connection::is_connecting) && nonblocking && linux {
                    true => Err(Errno::EAGAIN.into()),
                    false => Err(Fail::Block),
                }
            }
            _ => Ok(0),
        }
    }

    /// Closes one half, or both.
    ///
    /// # Errors
    /// `EBADF`, `ENOTCONN`.
    pub fn shutdown(&mut self, fd: i32, how: How) -> Outcome {
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        let Kind::Connected(stream) = &mut file.kind else {
            return Err(Errno::ENOTCONN.into());
        };
        let state = self.tcp.connection(stream.handle).map(Connection::state);
        if matches!(
            state,
            None | Some(State::Closed | State::TimeWait | State::SynSent)
        ) {
            return Err(Errno::ENOTCONN.into());
        }
        if how != How::Write {
            stream.read_closed = true;
        }
        if how != How::Read {
            let handle = stream.handle;
            self.tcp.shutdown(handle, self.now);
        }
        self.pump();
        Ok(0)
    }

    /// Closes a descriptor; what was written is still delivered.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn close(&mut self, fd: i32) -> Outcome {
        let file = self.files.remove(&fd).ok_or(Errno::EBADF)?;
        match file.kind {
            Kind::Fresh | Kind::Epoll(_) | Kind::Pipe(_) => {}
            Kind::Connected(stream) => {
                match stream.options.linger {
                    Some(0) => self.tcp.abort(stream.handle),
                    _ => self.tcp.close(stream.handle, self.now),
                }
                self.orphans.push(stream);
            }
            Kind::Listening {
                listener,
                waiting,
                ready,
            } => {
                self.tcp.unlisten(listener);
                // A connection that was never accepted is reset: its data will never be read.
                for stream in ready {
                    self.tcp.abort(stream.handle);
                    self.orphans.push(stream);
                }
                for stream in waiting {
                    self.tcp.remove(stream.handle);
                }
            }
        }
        for other in self.files.values_mut() {
            if let Kind::Epoll(epoll) = &mut other.kind {
                epoll.forget(fd);
            }
        }
        self.pump();
        Ok(0)
    }

    /// The error that no call has returned yet; taking it clears it.
    pub(super) fn take_error(&mut self, fd: i32) -> Result<Option<Errno>, Fail> {
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        let Kind::Connected(stream) = &mut file.kind else {
            return Ok(None);
        };
        if let Some(errno) = stream.lent_error.take() {
            stream.error_told = true;
            return Ok(Some(errno));
        }
        let error = self
            .tcp
            .connection(stream.handle)
            .and_then(Connection::error);
        if stream.error_told {
            return Ok(None);
        }
        let Some(error) = error else { return Ok(None) };
        stream.error_told = true;
        Ok(Some(match error {
            Error::Refused => Errno::ECONNREFUSED,
            Error::Reset => Errno::ECONNRESET,
            Error::TimedOut | Error::KeepaliveTimedOut | Error::UserTimeout => Errno::ETIMEDOUT,
            Error::Unreachable => stream.icmp_errno.unwrap_or(Errno::EHOSTUNREACH),
            Error::Aborted => Errno::ECONNABORTED,
        }))
    }

    /// Bytes that can be read, and bytes not acknowledged yet.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`.
    pub fn queues(&self, fd: i32) -> Result<(usize, usize), Fail> {
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        let Kind::Connected(stream) = &file.kind else {
            return Err(Errno::EINVAL.into());
        };
        let connection = self.tcp.connection(stream.handle);
        Ok(connection.map_or((stream.staged.len(), 0), |connection| {
            (
                stream.staged.len() + usize::from(connection.can_recv()),
                usize::from(connection.unacknowledged()),
            )
        }))
    }
}

fn new_stream(handle: motet::tcp::Handle, options: SocketOptions, opening: Opening) -> Stream {
    Stream {
        handle,
        recv_space: options.recv_space,
        options,
        staged: VecDeque::new(),
        stage_max: 0,
        opening,
        connect_told: false,
        error_told: false,
        read_closed: false,
        icmp_errno: None,
        lent_error: None,
    }
}

/// Connections whose buffers a listener gets in advance: more than any script opens before it
/// accepts.
const LENT_MAX: i64 = 8;
