//! Each call's arguments, to the host and back.
//!
//! Place: `syscall` picks the function by the call's name. A call, a flag or an option that
//! cannot be expressed is refused, never passed over.

use motet::time::Duration;

use super::arguments::{
    Args, F_GETFL, F_SETFL, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, O_NONBLOCK, O_RDWR, SOCK_CLOEXEC,
    SOCK_NONBLOCK, SOCK_STREAM, SPLICE_F_NONBLOCK, first, port_of,
};
use super::syscall::Pending;
use super::{Player, Stop, refused};
use crate::host::{Errno, Fail, How, OptionValue, Outcome, REMOTE};
use crate::script::{Call, Position, Value};

impl Player<'_> {
    /// `socket(..., SOCK_STREAM, IPPROTO_TCP) = 3`
    pub(super) fn socket(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(3)?;
        let kind = self.number(args.at, args.get(1)?)?;
        if kind & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != SOCK_STREAM {
            return refused(
                args.at,
                "a socket of this kind cannot be expressed".to_owned(),
            );
        }
        let fd = self.number(args.at, &args.call.result)? as i32;
        let mut opened = self.host.socket(fd);
        if opened.is_ok() && kind & SOCK_NONBLOCK != 0 {
            opened = self.host.set_nonblocking(fd, true).and(opened);
        }
        if let Ok(fd) = opened {
            self.flows.on_socket(fd as i32);
        }
        Ok(opened)
    }

    /// `bind(3, ..., ...) = 0`
    pub(super) fn bind(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(3)?;
        let port = port_of(args.get(1)?).unwrap_or(self.options.bind_port);
        let fd = args.fd(self)?;
        Ok(self.host.bind(fd, port))
    }

    /// `listen(3, 1) = 0`
    pub(super) fn listen(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(2)?;
        let fd = args.fd(self)?;
        let backlog = self.number(args.at, args.get(1)?)?;
        let outcome = self.host.listen(fd, backlog);
        if outcome.is_ok() {
            self.flows.on_listen();
        }
        Ok(outcome)
    }

    /// `accept(3, ..., ...) = 4`
    pub(super) fn accept(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        let fd = args.fd(self)?;
        let new = match &args.call.result {
            Value::Number(new) if *new >= 0 => *new as i32,
            // The line expects a failure; should the call succeed, any free number will do.
            _ => self.host.descriptors().last().map_or(3, |last| last + 1),
        };
        if self.host.has(new) && new >= 0 {
            return refused(args.at, format!("descriptor {new} is in use"));
        }
        let outcome = self.host.accept(fd, new);
        if outcome.is_ok() {
            self.flows.on_accept(new);
        }
        Ok(outcome.map(|_peer| i64::from(new)))
    }

    /// `connect(3, ..., ...) = 0`; the first try that sends a SYN opens a flow.
    pub(super) fn connect(
        &mut self,
        args: &Args<'_>,
        pending: &mut Pending,
    ) -> Result<Outcome, Stop> {
        args.count(3)?;
        let fd = args.fd(self)?;
        let port = port_of(args.get(1)?).unwrap_or(self.options.connect_port);
        let before = self.host.peek_sent().is_some();
        let outcome = self.host.connect(fd, (REMOTE, port));
        if pending.done == 0 && !before && self.host.peek_sent().is_some() {
            self.flows.on_connect(port, 0);
            pending.done = 1;
        }
        Ok(outcome)
    }

    /// `shutdown(3, SHUT_WR) = 0`
    pub(super) fn shutdown(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(2)?;
        let fd = args.fd(self)?;
        let how = match self.number(args.at, args.get(1)?)? {
            0 => How::Read,
            1 => How::Write,
            2 => How::Both,
            _ => return Ok(Err(Errno::EINVAL.into())),
        };
        Ok(self.host.shutdown(fd, how))
    }

    /// `pipe([5, 6]) = 0`
    pub(super) fn pipe(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(1)?;
        let Value::List(ends) = args.get(0)? else {
            return refused(args.at, "pipe takes a list of two descriptors".to_owned());
        };
        let [read, write] = ends.as_slice() else {
            return refused(args.at, "pipe takes a list of two descriptors".to_owned());
        };
        let (read, write) = (self.number(args.at, read)?, self.number(args.at, write)?);
        Ok(self.host.pipe(read as i32, write as i32))
    }

    /// `splice(4, NULL, 6, NULL, 1000, 0) = 1000`
    pub(super) fn splice(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(6)?;
        for offset in [1, 3] {
            if args.word(offset)? != "NULL" {
                return refused(args.at, "splice takes no offsets: NULL".to_owned());
            }
        }
        let from = args.fd(self)?;
        let to = self.number(args.at, args.get(2)?)?;
        let len = self.number(args.at, args.get(4)?)?;
        let flags = self.number(args.at, args.get(5)?)?;
        let len = len.clamp(0, 1 << 24) as usize;
        let nonblocking = flags & SPLICE_F_NONBLOCK != 0;
        Ok(self.host.splice(from, to as i32, len, nonblocking))
    }

    pub(super) fn read(&mut self, args: &Args<'_>, call: &Call) -> Result<Outcome, Stop> {
        let known = MSG_PEEK | MSG_DONTWAIT;
        let (fd, len, flags) = self.transfer(args, call, ("reading", known))?;
        if args.is_null(1) && len > 0 {
            return Ok(Err(Errno::EFAULT.into()));
        }
        let mut out = vec![0; len];
        let outcome = self.host.read(fd, &mut out, flags & MSG_PEEK != 0);
        Ok(match outcome {
            Err(Fail::Block) if flags & MSG_DONTWAIT != 0 => Err(Errno::EAGAIN.into()),
            outcome => outcome,
        })
    }

    pub(super) fn write(
        &mut self,
        args: &Args<'_>,
        call: &Call,
        pending: &mut Pending,
    ) -> Result<Outcome, Stop> {
        let known = MSG_DONTWAIT | MSG_NOSIGNAL;
        let (fd, len, flags) = self.transfer(args, call, ("writing", known))?;
        if args.is_null(1) && len > 0 {
            return Ok(Err(Errno::EFAULT.into()));
        }
        let data = vec![0; len];
        let outcome = self.host.write(fd, &data, &mut pending.done);
        Ok(match outcome {
            Err(Fail::Block) if flags & MSG_DONTWAIT != 0 => match pending.done {
                0 => Err(Errno::EAGAIN.into()),
                done => Ok(done as i64),
            },
            outcome => outcome,
        })
    }

    /// Socket, length and flags of a call that reads or writes; the last: which of the two it
    /// does, and the flags that can be expressed there.
    fn transfer(
        &mut self,
        args: &Args<'_>,
        call: &Call,
        (does, known): (&str, i64),
    ) -> Result<(i32, usize, i64), Stop> {
        let fd = args.fd(self)?;
        let name = call.name.as_str();
        let len = match name {
            "readv" | "recvmsg" | "writev" | "sendmsg" => args.iov_len(self, 1)?,
            _ => self.number(args.at, args.get(2)?)?,
        };
        let flags = match name {
            "recv" | "recvfrom" | "send" | "sendto" => self.number(args.at, args.get(3)?)?,
            "recvmsg" | "sendmsg" => self.number(args.at, args.get(2)?)?,
            _ => 0,
        };
        if flags & !known != 0 {
            let what = format!("{does} with flags {flags:#x} cannot be expressed");
            return refused(args.at, what);
        }
        Ok((fd, len.clamp(0, 1 << 24) as usize, flags))
    }

    pub(super) fn fcntl(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        let fd = args.fd(self)?;
        Ok(match self.number(args.at, args.get(1)?)? {
            F_GETFL => self
                .host
                .is_nonblocking(fd)
                .map(|on| O_RDWR | if on { O_NONBLOCK } else { 0 }),
            F_SETFL => {
                let flags = self.number(args.at, args.get(2)?)?;
                self.host.set_nonblocking(fd, flags & O_NONBLOCK != 0)
            }
            _ => return refused(args.at, "fcntl knows F_GETFL and F_SETFL only".to_owned()),
        })
    }

    pub(super) fn ioctl(
        &mut self,
        args: &Args<'_>,
        wrong: &mut Vec<String>,
    ) -> Result<Outcome, Stop> {
        let fd = args.fd(self)?;
        let request = args.word(1)?;
        let value = match (request, self.host.queues(fd)) {
            (_, Err(fail)) => return Ok(Err(fail)),
            ("SIOCINQ" | "FIONREAD", Ok((readable, _))) => readable as i64,
            ("SIOCOUTQ" | "TIOCOUTQ", Ok((_, unacknowledged))) => unacknowledged as i64,
            _ => {
                return refused(
                    args.at,
                    format!("the ioctl `{request}` cannot be expressed"),
                );
            }
        };
        self.compare(args.at, args.get(2)?, value, "value", wrong)?;
        Ok(Ok(0))
    }

    pub(super) fn getsockopt(
        &mut self,
        args: &Args<'_>,
        wrong: &mut Vec<String>,
    ) -> Result<Outcome, Stop> {
        args.count(5)?;
        let (fd, name) = (args.fd(self)?, args.word(2)?);
        match self.host.option(fd, name) {
            Err(Fail::Errno(Errno::ENOPROTOOPT)) => {
                refused(args.at, format!("the option `{name}` cannot be expressed"))
            }
            Err(fail) => Ok(Err(fail)),
            Ok(OptionValue::Number(value)) => {
                self.compare(args.at, args.get(3)?, value, "value", wrong)?;
                Ok(Ok(0))
            }
            Ok(OptionValue::Linger(on, time)) => {
                let seen = format!("onoff={}, linger={time}", i64::from(on));
                if let Some((wanted_on, wanted_time)) = self.linger(args, 3)?
                    && (wanted_on, wanted_time) != (on, time)
                {
                    wrong.push(format!("value: got {seen}"));
                }
                Ok(Ok(0))
            }
        }
    }

    pub(super) fn setsockopt(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(5)?;
        let (fd, name) = (args.fd(self)?, args.word(2)?);
        let value = match self.linger(args, 3)? {
            Some((on, time)) => OptionValue::Linger(on, time),
            None => OptionValue::Number(self.number(args.at, first(args.get(3)?))?),
        };
        match self.host.set_option(fd, name, value) {
            Err(Fail::Errno(Errno::ENOPROTOOPT)) => {
                refused(args.at, format!("the option `{name}` cannot be expressed"))
            }
            outcome => Ok(outcome.map(|()| 0)),
        }
    }

    fn linger(&self, args: &Args<'_>, index: usize) -> Result<Option<(bool, u32)>, Stop> {
        let Value::Struct(fields) = first(args.get(index)?) else {
            return Ok(None);
        };
        let on = self.field(args.at, fields, "onoff")?;
        let time = self.field(args.at, fields, "linger")?;
        Ok(on.map(|on| (on != 0, time.unwrap_or(0) as u32)))
    }

    pub(super) fn poll(
        &mut self,
        args: &Args<'_>,
        pending: &mut Pending,
        wrong: &mut Vec<String>,
    ) -> Result<Outcome, Stop> {
        args.count(3)?;
        let Value::List(items) = args.get(0)? else {
            return refused(args.at, "poll takes a list of {fd=…, events=…}".to_owned());
        };
        let (mut watches, mut wanted) = (Vec::new(), Vec::new());
        for item in items {
            let Value::Struct(fields) = item else {
                return refused(args.at, "poll takes a list of {fd=…, events=…}".to_owned());
            };
            let fd = self.field(args.at, fields, "fd")?.unwrap_or(-1) as i32;
            let events = self.field(args.at, fields, "events")?.unwrap_or(0) as u32;
            watches.push((fd, events));
            wanted.push(self.field(args.at, fields, "revents")?);
        }
        let mut seen = vec![0; watches.len()];
        let count = self.host.poll(&watches, &mut seen);
        let timeout = self.number(args.at, args.get(2)?)?;
        if count == 0 && self.waits_on(timeout, pending) {
            return Ok(Err(Fail::Block));
        }
        for (wanted, seen) in wanted.iter().zip(&seen) {
            if let Some(wanted) = wanted
                && *wanted != i64::from(*seen)
            {
                wrong.push(format!("revents: expected {wanted:#x}, got {seen:#x}"));
            }
        }
        Ok(Ok(count))
    }

    /// Whether a call with a timeout, ms, goes on waiting.
    fn waits_on(&self, timeout: i64, pending: &mut Pending) -> bool {
        if timeout < 0 {
            return true;
        }
        let now = self.host.now();
        let span = Duration::from_millis(timeout as u64);
        let deadline = *pending.deadline.get_or_insert(now + span);
        now < deadline
    }

    pub(super) fn epoll_ctl(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
        args.count(4)?;
        let fd = args.fd(self)?;
        let op = self.number(args.at, args.get(1)?)? as i32;
        let target = self.number(args.at, args.get(2)?)? as i32;
        let Value::Struct(fields) = args.get(3)? else {
            return refused(args.at, "epoll_ctl takes {events=…, fd=…}".to_owned());
        };
        let events = self.field(args.at, fields, "events")?.unwrap_or(0) as u32;
        let data = self.epoll_data(args.at, fields)?.unwrap_or(0);
        Ok(self.host.epoll_ctl(fd, op, target, events, data as u64))
    }

    pub(super) fn epoll_wait(
        &mut self,
        args: &Args<'_>,
        pending: &mut Pending,
        wrong: &mut Vec<String>,
    ) -> Result<Outcome, Stop> {
        args.count(4)?;
        let fd = args.fd(self)?;
        let max = self.number(args.at, args.get(2)?)?.max(0) as usize;
        let events = match self.host.epoll_wait(fd, max) {
            Ok(events) => events,
            Err(fail) => return Ok(Err(fail)),
        };
        let timeout = self.number(args.at, args.get(3)?)?;
        if events.is_empty() && self.waits_on(timeout, pending) {
            return Ok(Err(Fail::Block));
        }
        let wanted = match args.get(1)? {
            Value::List(items) => items.clone(),
            Value::Any => Vec::new(),
            one => vec![one.clone()],
        };
        for (wanted, (seen, data)) in wanted.iter().zip(&events) {
            let Value::Struct(fields) = wanted else {
                continue;
            };
            if let Some(mask) = self.field(args.at, fields, "events")?
                && mask != i64::from(*seen)
            {
                wrong.push(format!("events: expected {mask:#x}, got {seen:#x}"));
            }
            if let Some(wanted) = self.epoll_data(args.at, fields)?
                && wanted as u64 != *data
            {
                wrong.push(format!("data: expected {wanted}, got {data}"));
            }
        }
        Ok(Ok(events.len() as i64))
    }

    fn epoll_data(&self, at: Position, fields: &[Value]) -> Result<Option<i64>, Stop> {
        for name in ["fd", "ptr", "u32", "u64"] {
            if let Some(value) = self.field(at, fields, name)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}
