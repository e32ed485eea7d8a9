//! Calls of the application: from a line to the host, and its answer against the line.

use motet::time::{Duration, Instant};

use super::{Player, START, Stop, failed, refused, seconds};
use crate::host::{Errno, Fail, How, OptionValue, Outcome, REMOTE};
use crate::script::{Call, Event, Position, Time, Value};

/// A call under way.
pub(super) struct Pending {
    pub(super) at: Position,
    text: String,
    call: Call,
    /// When it must have returned, µs since the start.
    pub(super) until: u64,
    /// When it gives up by itself: a timeout of its own.
    pub(super) deadline: Option<Instant>,
    /// Bytes that a write has handed over.
    done: usize,
    blocking: bool,
}

/// What a try of a call gave.
pub(super) enum Attempt {
    Blocked,
    Done(Returned),
}

/// What a call returned.
pub(super) struct Returned {
    value: i64,
    errno: Option<Errno>,
    /// Values written through pointers that differ from the line: what, wanted, seen.
    wrong: Vec<String>,
}

impl Player<'_> {
    pub(super) fn call(&mut self, event: &Event, call: &Call) -> Result<(), Stop> {
        if let Some(pending) = &self.pending {
            // packetdrill waits for its other thread before the next call.
            let until = START + Duration::from_micros(pending.until + self.options.tolerance_us);
            let at = pending.at;
            while self.pending.is_some() {
                match self.next_stop().filter(|next| *next <= until) {
                    Some(next) => self.pass_until(next)?,
                    None => return failed(at, "the call has not returned in time".to_owned()),
                }
            }
        }
        let base = match event.time {
            Time::Relative(after) => self.last_time - after.min(self.last_time),
            _ => 0,
        };
        let mut pending = Pending {
            at: event.at,
            text: event.text.clone(),
            call: call.clone(),
            until: call.until.map_or(self.last_time, |until| base + until),
            deadline: None,
            done: 0,
            blocking: call.until.is_some(),
        };
        if pending.until < self.last_time {
            return refused(event.at, "the call returns before it is made".to_owned());
        }
        match self.attempt(&mut pending)? {
            Attempt::Done(result) => self.judge_return(&pending, &result, self.last_time),
            Attempt::Blocked if pending.blocking => {
                self.pending = Some(pending);
                Ok(())
            }
            Attempt::Blocked => failed(
                event.at,
                "the call blocks, though the line says it returns at once".to_owned(),
            ),
        }
    }

    /// Compares what a call returned with its line; `now`: µs since the start.
    pub(super) fn judge_return(
        &mut self,
        pending: &Pending,
        result: &Returned,
        now: u64,
    ) -> Result<(), Stop> {
        let call = &pending.call;
        let mut wrong = result.wrong.clone();
        if call.result != Value::Any {
            let wanted = self.number(pending.at, &call.result)?;
            let is_descriptor = matches!(call.name.as_str(), "socket" | "accept" | "epoll_create")
                && wanted >= 0
                && result.value >= 0;
            if wanted != result.value && !is_descriptor {
                wrong.push(format!("result: expected {wanted}, got {}", result.value));
            }
        }
        let wanted = call.errno.as_deref();
        let seen = result.errno.map(Errno::name);
        if wanted != seen && (wanted.is_some() || result.value < 0) {
            wrong.push(format!(
                "errno: expected {}, got {}",
                wanted.unwrap_or("none"),
                seen.unwrap_or("none")
            ));
        }
        if pending.blocking && now.abs_diff(pending.until) > self.options.tolerance_us {
            wrong.push(format!(
                "time: expected to return at {} s, returned at {} s",
                seconds(pending.until),
                seconds(now)
            ));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let mut problem = super::Problem {
            at: pending.at,
            message: format!("{} went otherwise", call.name),
            details: vec![format!("expected: {}", pending.text)],
        };
        problem.details.append(&mut wrong);
        Err(Stop::Failed(problem))
    }

    /// Makes the call, or makes it again.
    pub(super) fn attempt(&mut self, pending: &mut Pending) -> Result<Attempt, Stop> {
        let call = pending.call.clone();
        let at = pending.at;
        let mut wrong = Vec::new();
        let outcome = self.dispatch(at, &call, pending, &mut wrong)?;
        Ok(match outcome {
            Ok(value) => Attempt::Done(Returned {
                value,
                errno: None,
                wrong,
            }),
            Err(Fail::Errno(errno)) => Attempt::Done(Returned {
                value: -1,
                errno: Some(errno),
                wrong,
            }),
            Err(Fail::Block) => Attempt::Blocked,
        })
    }

    fn dispatch(
        &mut self,
        at: Position,
        call: &Call,
        pending: &mut Pending,
        wrong: &mut Vec<String>,
    ) -> Result<Outcome, Stop> {
        let args = Args { at, call };
        Ok(match call.name.as_str() {
            "socket" => {
                args.count(3)?;
                args.is_one_of(self, 1, &[1])?;
                let fd = self.number(at, &call.result)?;
                self.host.socket(fd as i32)
            }
            "bind" => {
                args.count(3)?;
                let port = match port_of(args.get(1)?) {
                    Some(port) => port,
                    None => self.options.bind_port,
                };
                let fd = args.fd(self)?;
                self.host.bind(fd, port)
            }
            "listen" => {
                args.count(2)?;
                let fd = args.fd(self)?;
                let backlog = self.number(at, args.get(1)?)?;
                let outcome = self.host.listen(fd, backlog);
                if outcome.is_ok() {
                    self.flows.on_listen();
                }
                outcome
            }
            "accept" | "accept4" => {
                let fd = args.fd(self)?;
                let new = match &call.result {
                    Value::Number(new) if *new >= 0 => *new as i32,
                    // The line expects a failure; should it succeed, any number will do.
                    _ => self.host.descriptors().last().map_or(3, |last| last + 1),
                };
                if self.host.has(new) && new >= 0 {
                    return refused(at, format!("descriptor {new} is in use"));
                }
                self.host.accept(fd, new).map(|_peer| i64::from(new))
            }
            "connect" => {
                args.count(3)?;
                let fd = args.fd(self)?;
                let port = match port_of(args.get(1)?) {
                    Some(port) => port,
                    None => self.options.connect_port,
                };
                let before = self.host.peek_sent().is_some();
                let outcome = self.host.connect(fd, (REMOTE, port));
                if pending.done == 0 && !before && self.host.peek_sent().is_some() {
                    self.flows.on_connect(port, 0);
                    pending.done = 1;
                }
                outcome
            }
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.read(&args, call)?,
            "write" | "send" | "sendto" | "writev" | "sendmsg" => {
                self.write(&args, call, pending)?
            }
            "close" => {
                args.count(1)?;
                let fd = args.fd(self)?;
                self.host.close(fd)
            }
            "shutdown" => {
                args.count(2)?;
                let fd = args.fd(self)?;
                let how = match self.number(at, args.get(1)?)? {
                    0 => How::Read,
                    1 => How::Write,
                    2 => How::Both,
                    _ => return Ok(Err(Errno::EINVAL.into())),
                };
                self.host.shutdown(fd, how)
            }
            "fcntl" => self.fcntl(&args)?,
            "ioctl" => self.ioctl(&args, wrong)?,
            "getsockopt" => self.getsockopt(&args, wrong)?,
            "setsockopt" => self.setsockopt(&args)?,
            "poll" => self.poll(&args, pending, wrong)?,
            "epoll_create" => {
                let fd = self.number(at, &call.result)?;
                self.host.epoll_create(fd as i32)
            }
            "epoll_ctl" => self.epoll_ctl(&args)?,
            "epoll_wait" => self.epoll_wait(&args, pending, wrong)?,
            "pipe" => self.pipe(&args)?,
            "splice" => self.splice(&args)?,
            name => return refused(at, format!("the call `{name}` cannot be expressed")),
        })
    }

    /// `pipe([5, 6]) = 0`
    fn pipe(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
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
    fn splice(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
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

    fn read(&mut self, args: &Args<'_>, call: &Call) -> Result<Outcome, Stop> {
        let fd = args.fd(self)?;
        let len = match call.name.as_str() {
            "readv" | "recvmsg" => args.iov_len(self, 1)?,
            _ => self.number(args.at, args.get(2)?)?,
        };
        let flags = match call.name.as_str() {
            "recv" | "recvfrom" => self.number(args.at, args.get(3)?)?,
            "recvmsg" => self.number(args.at, args.get(2)?)?,
            _ => 0,
        };
        let known = MSG_PEEK | MSG_DONTWAIT;
        if flags & !known != 0 {
            return refused(
                args.at,
                format!("reading with flags {flags:#x} cannot be expressed"),
            );
        }
        let mut out = vec![0; len.clamp(0, 1 << 24) as usize];
        let outcome = self.host.read(fd, &mut out, flags & MSG_PEEK != 0);
        Ok(match outcome {
            Err(Fail::Block) if flags & MSG_DONTWAIT != 0 => Err(Errno::EAGAIN.into()),
            outcome => outcome,
        })
    }

    fn write(
        &mut self,
        args: &Args<'_>,
        call: &Call,
        pending: &mut Pending,
    ) -> Result<Outcome, Stop> {
        let fd = args.fd(self)?;
        let len = match call.name.as_str() {
            "writev" | "sendmsg" => args.iov_len(self, 1)?,
            _ => self.number(args.at, args.get(2)?)?,
        };
        let flags = match call.name.as_str() {
            "send" | "sendto" => self.number(args.at, args.get(3)?)?,
            "sendmsg" => self.number(args.at, args.get(2)?)?,
            _ => 0,
        };
        let known = MSG_DONTWAIT | MSG_NOSIGNAL;
        if flags & !known != 0 {
            return refused(
                args.at,
                format!("writing with flags {flags:#x} cannot be expressed"),
            );
        }
        let data = vec![0; len.clamp(0, 1 << 24) as usize];
        let outcome = self.host.write(fd, &data, &mut pending.done);
        Ok(match outcome {
            Err(Fail::Block) if flags & MSG_DONTWAIT != 0 => match pending.done {
                0 => Err(Errno::EAGAIN.into()),
                done => Ok(done as i64),
            },
            outcome => outcome,
        })
    }

    fn fcntl(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
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

    fn ioctl(&mut self, args: &Args<'_>, wrong: &mut Vec<String>) -> Result<Outcome, Stop> {
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

    fn getsockopt(&mut self, args: &Args<'_>, wrong: &mut Vec<String>) -> Result<Outcome, Stop> {
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

    fn setsockopt(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
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

    fn poll(
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

    fn epoll_ctl(&mut self, args: &Args<'_>) -> Result<Outcome, Stop> {
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

    fn epoll_wait(
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

    fn field(&self, at: Position, fields: &[Value], wanted: &str) -> Result<Option<i64>, Stop> {
        for field in fields {
            if let Value::Field(name, value) = field
                && name == wanted
            {
                return Ok(Some(self.number(at, value)?));
            }
        }
        Ok(None)
    }

    /// Compares a value with `[wanted]`, or `...`.
    fn compare(
        &self,
        at: Position,
        wanted: &Value,
        seen: i64,
        what: &str,
        wrong: &mut Vec<String>,
    ) -> Result<(), Stop> {
        let wanted = first(wanted);
        if *wanted == Value::Any {
            return Ok(());
        }
        let number = self.number(at, wanted)?;
        if number != seen {
            wrong.push(format!("{what}: expected {number}, got {seen}"));
        }
        Ok(())
    }

    /// The number that a value is.
    fn number(&self, at: Position, value: &Value) -> Result<i64, Stop> {
        match value {
            Value::Number(number) => Ok(*number),
            Value::Or(parts) => {
                let mut bits = 0;
                for part in parts {
                    bits |= self.number(at, part)?;
                }
                Ok(bits)
            }
            Value::Word(word) => match constant(word) {
                Some(number) => Ok(number),
                None => refused(at, format!("the name `{word}` is not known")),
            },
            _ => refused(at, "a number is expected here".to_owned()),
        }
    }
}

/// A call's arguments.
struct Args<'a> {
    at: Position,
    call: &'a Call,
}

impl<'a> Args<'a> {
    fn count(&self, wanted: usize) -> Result<(), Stop> {
        let (name, seen) = (&self.call.name, self.call.args.len());
        match seen == wanted {
            true => Ok(()),
            false => refused(
                self.at,
                format!("{name} takes {wanted} arguments, not {seen}"),
            ),
        }
    }

    fn get(&self, index: usize) -> Result<&'a Value, Stop> {
        match self.call.args.get(index) {
            Some(value) => Ok(value),
            None => refused(
                self.at,
                format!("{} lacks its argument {}", self.call.name, index + 1),
            ),
        }
    }

    fn fd(&self, player: &Player<'_>) -> Result<i32, Stop> {
        Ok(player.number(self.at, self.get(0)?)? as i32)
    }

    fn word(&self, index: usize) -> Result<&'a str, Stop> {
        match self.get(index)? {
            Value::Word(word) => Ok(word),
            _ => refused(self.at, format!("argument {} must be a name", index + 1)),
        }
    }

    fn is_one_of(&self, player: &Player<'_>, index: usize, known: &[i64]) -> Result<(), Stop> {
        let value = player.number(self.at, self.get(index)?)?;
        match known.contains(&value) {
            true => Ok(()),
            false => refused(
                self.at,
                format!("{} of this kind cannot be expressed", self.call.name),
            ),
        }
    }

    /// The bytes that an iovec list, or a msghdr with one, holds.
    fn iov_len(&self, player: &Player<'_>, index: usize) -> Result<i64, Stop> {
        fn sum(player: &Player<'_>, at: Position, value: &Value) -> Result<Option<i64>, Stop> {
            match value {
                // An iovec: {..., length}.
                Value::Struct(parts) => match parts.as_slice() {
                    [Value::Any, len] => Ok(Some(player.number(at, len)?)),
                    parts => {
                        for part in parts {
                            if let Value::Field(name, inner) = part
                                && name == "msg_iov"
                            {
                                return sum(player, at, inner);
                            }
                        }
                        Ok(None)
                    }
                },
                Value::List(parts) => {
                    let mut total = 0;
                    for part in parts {
                        total += sum(player, at, part)?.unwrap_or(0);
                    }
                    Ok(Some(total))
                }
                _ => Ok(None),
            }
        }
        match sum(player, self.at, self.get(index)?)? {
            Some(len) => Ok(len),
            None => refused(self.at, "expected a list of {..., length}".to_owned()),
        }
    }
}

/// The only element of a list, or the value itself.
fn first(value: &Value) -> &Value {
    match value {
        Value::List(items) => match items.as_slice() {
            [only] => only,
            _ => value,
        },
        value => value,
    }
}

/// The port of a socket address, where the script has one.
fn port_of(value: &Value) -> Option<u16> {
    let Value::Struct(fields) = value else {
        return None;
    };
    fields.iter().find_map(|field| match field {
        Value::Field(name, value) if name.ends_with("_port") => match value.as_ref() {
            Value::Apply(_, args) => match args.as_slice() {
                [Value::Number(port)] => u16::try_from(*port).ok(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// C's names for numbers, as on Linux.
fn constant(word: &str) -> Option<i64> {
    if let Some(errno) = Errno::of(word) {
        return Some(i64::from(errno.0));
    }
    CONSTANTS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, value)| *value)
}

const SPLICE_F_NONBLOCK: i64 = 2;
const MSG_PEEK: i64 = 0x2;
const MSG_DONTWAIT: i64 = 0x40;
const MSG_NOSIGNAL: i64 = 0x4000;
const F_GETFL: i64 = 3;
const F_SETFL: i64 = 4;
const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 0x800;

const CONSTANTS: [(&str, i64); 50] = [
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("IPPROTO_TCP", 6),
    ("MSG_PEEK", MSG_PEEK),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_OOB", 1),
    ("MSG_WAITALL", 0x100),
    ("MSG_EOR", 0x80),
    ("MSG_MORE", 0x8000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("MSG_TRUNC", 0x20),
    ("SPLICE_F_MOVE", 1),
    ("SPLICE_F_NONBLOCK", SPLICE_F_NONBLOCK),
    ("SPLICE_F_MORE", 4),
    ("F_GETFL", F_GETFL),
    ("F_SETFL", F_SETFL),
    ("O_RDWR", O_RDWR),
    ("O_NONBLOCK", O_NONBLOCK),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("POLLIN", 0x1),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLRDHUP", 0x2000),
    ("EPOLLIN", 0x1),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLET", 1 << 31),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("IPTOS_DSCP_CS0", 0),
    ("IPTOS_DSCP_CS1", 0x20),
    ("IPTOS_DSCP_CS2", 0x40),
    ("IPTOS_DSCP_CS3", 0x60),
    ("IPTOS_DSCP_CS4", 0x80),
    ("IPTOS_DSCP_CS5", 0xa0),
    ("IPTOS_DSCP_CS6", 0xc0),
    ("IPTOS_DSCP_CS7", 0xe0),
    ("IPTOS_DSCP_EF", 0xb8),
    ("IPTOS_DSCP_AF11", 0x28),
];
