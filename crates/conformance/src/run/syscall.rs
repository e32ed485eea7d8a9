//! Calls of the application: from a line to the host, and its answer against the line.

use motet::time::{Duration, Instant};

use super::arguments::Args;
use super::{Player, START, Stop, failed, refused, seconds};
use crate::host::{Errno, Fail, Outcome};
use crate::script::{Call, Event, Position, Time, Value};

/// A call under way.
pub(super) struct Pending {
    pub(super) at: Position,
    text: String,
    call: Call,
    /// When the call must have returned, µs since the start.
    pub(super) until: u64,
    /// When the call gives up by itself: a timeout of its own.
    pub(super) deadline: Option<Instant>,
    /// Bytes that a write has handed over.
    pub(super) done: usize,
    blocking: bool,
}

/// The outcome of a try of a call.
pub(super) enum Attempt {
    Blocked,
    Done(Returned),
}

/// The return value of a call.
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
        // Some numbers have two names.
        let wanted = call.errno.as_deref();
        let wanted = wanted.map(|name| match Errno::of(name) {
            Some(errno) => errno.name(),
            None => name,
        });
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

    /// Hands a call to the function that knows its arguments.
    fn dispatch(
        &mut self,
        at: Position,
        call: &Call,
        pending: &mut Pending,
        wrong: &mut Vec<String>,
    ) -> Result<Outcome, Stop> {
        let args = Args { at, call };
        Ok(match call.name.as_str() {
            "socket" => self.socket(&args)?,
            "bind" => self.bind(&args)?,
            "listen" => self.listen(&args)?,
            "accept" | "accept4" => self.accept(&args)?,
            "connect" => self.connect(&args, pending)?,
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.read(&args, call)?,
            "write" | "send" | "sendto" | "writev" | "sendmsg" => {
                self.write(&args, call, pending)?
            }
            "close" => {
                args.count(1)?;
                let fd = args.fd(self)?;
                self.host.close(fd)
            }
            "shutdown" => self.shutdown(&args)?,
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
}
