//! One host, used by two threads that never run it at once.
//!
//! packetdrill makes a call that may block on a second thread, and notes the time when the call
//! returns, outside every lock. So the thread that makes such a call ready waits until the woken
//! thread has looked at the clock: virtual time stands still until then.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration as RealDuration;

use bumpalo::Bump;
use motet::time::{Duration, Instant};
use motet_conformance::host::{Errno, Fail, Host, Outcome, Settings};
use motet_conformance::packet::Packet;
use motet_conformance::run::kit::Orders;

/// The state behind the lock.
pub struct Inner {
    host: Host<'static>,
    /// The settings that the script's commands will make, and how many of its calls and packets
    /// were made.
    orders: Orders,
    entered: usize,
    /// The thread that drives time; a call that blocks on it can never return.
    main: ThreadId,
    /// A number that grows with each event that blocked calls must look at.
    round: u64,
    /// Blocked calls, and those among them that have not looked since.
    sleeping: usize,
    looking: usize,
    /// Threads that have returned from a blocked call and not looked at the clock.
    stamping: Vec<ThreadId>,
    /// When blocked calls give up by themselves.
    deadlines: Vec<Instant>,
    /// The file of the table of states, and its present content.
    state_path: Option<PathBuf>,
    state_text: String,
    /// The file into which every packet is written, with its time.
    log: Option<File>,
    /// Print nothing on standard error.
    quiet: bool,
}

// SAFETY: everything in it is owned, except the arena behind the host, which nothing else
// refers to; whoever uses either holds the lock.
unsafe impl Send for Inner {}

/// The host behind its lock.
pub struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Shared {
    /// A host with `settings`, to be changed by `orders`; its memory is never given back.
    ///
    /// # Errors
    /// A sentence: the log cannot be written.
    pub fn new(settings: Settings, orders: Orders) -> Result<Self, String> {
        let log = settings.log.as_ref().map(|path| {
            File::create(path).map_err(|e| format!("cannot write {}: {e}", path.display()))
        });
        let (log, quiet) = (log.transpose()?, settings.quiet);
        let arena: &'static Bump = Box::leak(Box::new(Bump::new()));
        let inner = Inner {
            host: Host::new(arena, settings, START),
            orders,
            entered: 0,
            main: std::thread::current().id(),
            round: 0,
            sleeping: 0,
            looking: 0,
            stamping: Vec::new(),
            deadlines: Vec::new(),
            state_path: std::env::var_os("PD_STATE").map(PathBuf::from),
            state_text: String::new(),
            log,
            quiet,
        };
        Ok(Self {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic is answered with an error code; the state that it left is used as it is.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of the script, or a packet, begins.
    pub fn enter(&self) {
        let mut inner = self.lock();
        let Inner {
            host,
            orders,
            entered,
            ..
        } = &mut *inner;
        if let Err(message) = orders.obey(*entered, &mut host.settings) {
            // A script must not be judged by other settings than its own.
            eprintln!("libmotet_packetdrill: {message}");
            std::process::exit(1);
        }
        inner.entered += 1;
    }

    /// Looks at the host without changing it.
    pub fn look<T>(&self, look: impl FnOnce(&mut Host<'static>) -> T) -> T {
        look(&mut self.lock().host)
    }

    /// Does something to the host; blocked calls that this makes ready return first.
    pub fn act<T>(&self, act: impl FnOnce(&mut Host<'static>) -> T) -> T {
        let mut inner = self.lock();
        let result = act(&mut inner.host);
        drop(self.settle(inner));
        result
    }

    /// A packet for the host.
    pub fn deliver(&self, packet: &[u8]) {
        let mut inner = self.lock();
        let now = inner.host.now();
        inner.write_log(now, '<', packet);
        inner.host.deliver(packet);
        drop(self.settle(inner));
    }

    /// Makes a call, again and again until it does not block.
    ///
    /// `timeout`: how long the call itself would wait at most; `attempt` learns whether that time
    /// is over.
    pub fn call(
        &self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Host<'static>, bool) -> Outcome,
    ) -> Outcome {
        let me = std::thread::current().id();
        let mut inner = self.lock();
        let deadline = timeout.map(|span| inner.host.now() + span);
        let mut slept = false;
        loop {
            let is_over = deadline.is_some_and(|deadline| inner.host.now() >= deadline);
            let outcome = attempt(&mut inner.host, is_over);
            if outcome != Err(Fail::Block) {
                if slept {
                    inner.looking = inner.looking.saturating_sub(1);
                    inner.stamping.push(me);
                    self.changed.notify_all();
                } else {
                    drop(self.settle(inner));
                }
                return outcome;
            }
            if me == inner.main {
                return Err(Errno::EDEADLK.into());
            }
            if slept {
                inner.looking = inner.looking.saturating_sub(1);
                self.changed.notify_all();
            }
            inner = self.sleep(inner, deadline);
            slept = true;
        }
    }

    /// Waits until something happened.
    fn sleep<'a>(
        &self,
        mut inner: MutexGuard<'a, Inner>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, Inner> {
        let round = inner.round;
        inner.sleeping += 1;
        inner.deadlines.extend(deadline);
        while inner.round == round {
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inner.sleeping -= 1;
        if let Some(at) = inner.deadlines.iter().position(|d| Some(*d) == deadline) {
            inner.deadlines.swap_remove(at);
        }
        inner
    }

    /// Makes blocked calls look at what happened, and waits until each call that returned has
    /// seen the time; then writes the table of states.
    fn settle<'a>(&self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        if inner.sleeping > 0 && inner.looking == 0 {
            inner.looking = inner.sleeping;
            inner.round += 1;
            self.changed.notify_all();
        }
        while inner.looking > 0 || !inner.stamping.is_empty() {
            let (again, waited) = self
                .changed
                .wait_timeout(inner, RENDEZVOUS_MAX)
                .unwrap_or_else(PoisonError::into_inner);
            inner = again;
            if waited.timed_out() {
                // The woken thread is gone: its script failed meanwhile.
                inner.looking = 0;
                inner.stamping.clear();
            }
        }
        inner.write_state();
        inner
    }

    /// Lets `span` pass; timers and blocked calls on the way have their turn.
    pub fn pass(&self, span: Duration) {
        let mut inner = self.lock();
        let until = inner.host.now() + span;
        while let Some(next) = inner.next_stop().filter(|next| *next < until) {
            inner.host.advance_to(next);
            inner = self.settle(inner);
            if inner.host.is_runaway() {
                return;
            }
        }
        inner.host.advance_to(until);
        drop(self.settle(inner));
    }

    /// The next packet, waiting for it as long as timers run; `None`: none will ever come.
    pub fn receive(&self) -> Option<(Instant, Vec<u8>)> {
        let mut inner = self.lock();
        let horizon = inner.host.now() + HORIZON;
        loop {
            if let Some(sent) = inner.host.take_sent() {
                inner.write_log(sent.at, '>', &sent.bytes);
                return Some((sent.at, sent.bytes));
            }
            let Some(next) = inner.next_stop().filter(|next| *next <= horizon) else {
                inner.say("no segment will ever come: no timer runs");
                return None;
            };
            if inner.host.is_runaway() {
                inner.say("the stack does not come to rest");
                return None;
            }
            inner.host.advance_to(next);
            inner = self.settle(inner);
        }
    }

    /// The time, which creeps: packetdrill spins until it has come.
    pub fn time(&self) -> Instant {
        let mut inner = self.lock();
        let me = std::thread::current().id();
        if let Some(at) = inner.stamping.iter().position(|id| *id == me) {
            // The time of the return itself: nothing has passed since.
            inner.stamping.swap_remove(at);
            let now = inner.host.now();
            self.changed.notify_all();
            return now;
        }
        // A timer may fire within the microseconds that packetdrill spins through. A timer that
        // may end a blocked call is waited for: packetdrill stands still until the call returns.
        let step = match inner.sleeping {
            0 => Duration::from_micros(1),
            _ => NEAR,
        };
        let now = inner.host.now();
        let stop = inner.next_stop().filter(|stop| *stop <= now + step);
        let fires = stop.is_some();
        let next = now + Duration::from_micros(1);
        inner.host.advance_to(stop.unwrap_or(next).max(next));
        let now = inner.host.now();
        if fires && me == inner.main {
            drop(self.settle(inner));
        }
        now
    }
}

impl Inner {
    fn next_stop(&self) -> Option<Instant> {
        let calls = self.deadlines.iter().copied().min();
        // A deadline that has come is handled; only later ones stop time again.
        let calls = calls.filter(|at| *at > self.host.now());
        motet::time::earliest(self.host.next_deadline(), calls)
    }

    /// Prints on standard error why a script is about to fail.
    fn say(&self, why: &str) {
        if !self.quiet {
            eprintln!("libmotet_packetdrill: {why}");
        }
    }

    /// One line: seconds since the host's start, direction, and the segment in the notation of
    /// scripts.
    fn write_log(&mut self, at: Instant, direction: char, packet: &[u8]) {
        let Some(log) = &mut self.log else {
            return;
        };
        let at = at.since(START).as_micros();
        let text = match Packet::parse(packet) {
            Some((packet, _)) => packet.segment.to_string(),
            None => format!("{} bytes that are not TCP", packet.len()),
        };
        let (whole, rest) = (at / 1_000_000, at % 1_000_000);
        // A log that can no longer be written must not fail the script.
        let _written = writeln!(log, "{whole}.{rest:06} {direction} {text}");
    }

    fn write_state(&mut self) {
        let Some(path) = &self.state_path else {
            return;
        };
        let mut text = self.host.state_lines("packetdril").join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        if text != self.state_text || !path.exists() {
            // An error has no reader here: a script that needs the table will find it missing.
            let _written = std::fs::write(path, &text);
            self.state_text = text;
        }
    }
}

/// When the host's clock starts; far from its origin, so that no time looks like zero.
const START: Instant = Instant::from_micros(1_000_000_000);
/// How far ahead a segment is awaited.
const HORIZON: Duration = Duration::from_secs(24 * 3600);
/// How much a timer may be late: each deadline is rounded up to a 16th of a millisecond, and a call
/// begins some microseconds behind its line.
const NEAR: Duration = Duration::from_micros(250);
/// How long, in real time, a woken thread may take to look at the clock.
const RENDEZVOUS_MAX: RealDuration = RealDuration::from_secs(5);
