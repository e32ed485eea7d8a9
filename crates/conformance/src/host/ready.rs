//! Readiness: `poll` and `epoll`.

use motet::tcp::State;

use super::{Errno, Fail, File, Host, Kind, Outcome};

/// Something can be read, or accepted.
pub const POLLIN: u32 = 0x1;
/// Something can be written.
pub const POLLOUT: u32 = 0x4;
/// An error waits.
pub const POLLERR: u32 = 0x8;
/// Both halves are closed.
pub const POLLHUP: u32 = 0x10;
/// The peer closed its half.
pub const POLLRDHUP: u32 = 0x2000;
const EPOLLONESHOT: u32 = 1 << 30;
const EPOLLET: u32 = 1 << 31;
/// `epoll_ctl`: watch a descriptor.
pub const EPOLL_CTL_ADD: i32 = 1;
/// `epoll_ctl`: watch it no more.
pub const EPOLL_CTL_DEL: i32 = 2;
/// `epoll_ctl`: watch for something else.
pub const EPOLL_CTL_MOD: i32 = 3;

#[derive(Debug)]
struct Watch {
    fd: i32,
    events: u32,
    data: u64,
    /// The last report of an edge-triggered watch: events, and bytes readable.
    told: (u32, usize),
}

/// An epoll instance.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watches: Vec<Watch>,
}

impl Epoll {
    pub(super) fn forget(&mut self, fd: i32) {
        self.watches.retain(|watch| watch.fd != fd);
    }
}

impl Host<'_> {
    /// Which of poll's events hold for `fd`; errors and hang-ups always count.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn readiness(&self, fd: i32) -> Result<u32, Fail> {
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        let stream = match &file.kind {
            Kind::Connected(stream) => stream,
            Kind::Listening { ready, .. } => {
                return Ok(if ready.is_empty() { 0 } else { POLLIN });
            }
            Kind::Fresh => return Ok(POLLOUT | POLLHUP),
            Kind::Epoll(_) => return Ok(0),
            Kind::Pipe(_) => return Ok(POLLIN | POLLOUT),
        };
        let Some(connection) = self.tcp.connection(stream.handle) else {
            return Ok(POLLHUP);
        };
        let mut events = 0;
        let readable = !stream.staged.is_empty() || connection.can_recv() > 0;
        let state = connection.state();
        let connecting = connection.is_connecting();
        if readable || stream.read_closed || !connecting && connection.peer_closed() {
            events |= POLLIN;
        }
        if !connecting && (connection.can_send() > 0 || !connection.may_send()) {
            events |= POLLOUT;
        }
        if connection.error().is_some() && !stream.error_told {
            events |= POLLERR | POLLIN | POLLOUT;
        }
        if !connecting && connection.peer_closed() {
            events |= POLLRDHUP;
        }
        if matches!(state, State::Closed) || !connection.may_send() && connection.peer_closed() {
            events |= POLLHUP;
        }
        Ok(events)
    }

    /// `poll` once: how many of `(fd, events)` have events; those are written to `revents`.
    pub fn poll(&self, watches: &[(i32, u32)], revents: &mut [u32]) -> i64 {
        let mut count = 0;
        for ((fd, events), place) in watches.iter().zip(revents) {
            let found = match self.readiness(*fd) {
                Ok(ready) => ready & (events | POLLERR | POLLHUP),
                Err(_) => 0x20,
            };
            *place = found;
            count += i64::from(found != 0);
        }
        count
    }

    /// Opens an epoll instance under the descriptor `fd`.
    ///
    /// # Errors
    /// `EEXIST`.
    pub fn epoll_create(&mut self, fd: i32) -> Outcome {
        self.socket(fd)?;
        if let Some(file) = self.files.get_mut(&fd) {
            file.kind = Kind::Epoll(Epoll::default());
        }
        Ok(i64::from(fd))
    }

    /// Changes what an epoll instance watches.
    ///
    /// # Errors
    /// `EBADF`, `EEXIST`, `ENOENT`, `EINVAL`.
    pub fn epoll_ctl(&mut self, fd: i32, op: i32, target: i32, events: u32, data: u64) -> Outcome {
        if !self.has(target) {
            return Err(Errno::EBADF.into());
        }
        let Some(File {
            kind: Kind::Epoll(epoll),
            ..
        }) = self.files.get_mut(&fd)
        else {
            return Err(Errno::EBADF.into());
        };
        let known = epoll.watches.iter_mut().find(|watch| watch.fd == target);
        match (op, known) {
            (EPOLL_CTL_ADD, None) => epoll.watches.push(Watch {
                fd: target,
                events,
                data,
                told: (0, 0),
            }),
            (EPOLL_CTL_ADD, Some(_)) => return Err(Errno::EEXIST.into()),
            (EPOLL_CTL_MOD, Some(watch)) => {
                (watch.events, watch.data, watch.told) = (events, data, (0, 0));
            }
            (EPOLL_CTL_DEL, Some(_)) => epoll.forget(target),
            (EPOLL_CTL_MOD | EPOLL_CTL_DEL, None) => return Err(Errno::ENOENT.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(0)
    }

    /// The events of an epoll instance, at most `max`: events and data.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn epoll_wait(&mut self, fd: i32, max: usize) -> Result<Vec<(u32, u64)>, Fail> {
        let Some(File {
            kind: Kind::Epoll(epoll),
            ..
        }) = self.files.get(&fd)
        else {
            return Err(Errno::EBADF.into());
        };
        let now: Vec<(u32, usize)> = epoll
            .watches
            .iter()
            .map(|watch| {
                let ready = self.readiness(watch.fd).unwrap_or(0);
                let bytes = self.queues(watch.fd).map_or(0, |(readable, _)| readable);
                (ready & (watch.events | POLLERR | POLLHUP), bytes)
            })
            .collect();
        let mut events = Vec::new();
        if let Some(File {
            kind: Kind::Epoll(epoll),
            ..
        }) = self.files.get_mut(&fd)
        {
            for (watch, (ready, bytes)) in epoll.watches.iter_mut().zip(now) {
                let edge = watch.events & EPOLLET != 0;
                let news = ready & !watch.told.0 != 0 || bytes > watch.told.1;
                if edge {
                    watch.told = (ready, bytes);
                }
                if ready != 0 && (!edge || news) && events.len() < max {
                    events.push((ready, watch.data));
                    if watch.events & EPOLLONESHOT != 0 {
                        watch.events = 0;
                    }
                }
            }
        }
        Ok(events)
    }
}
