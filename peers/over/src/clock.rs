//! embassy's clock, virtual or real, and an executor for one thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

struct Clock;

thread_local! {
    static NOW_US: Cell<u64> = const { Cell::new(0) };
    /// Where time is real: when it began.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    static ALARMS: RefCell<Vec<(u64, Waker)>> = const { RefCell::new(Vec::new()) };
}

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        now_us()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        ALARMS.with_borrow_mut(|alarms| {
            let is_known = |(due, other): &(u64, Waker)| *due == at && other.will_wake(waker);
            if !alarms.iter().any(is_known) {
                alarms.push((at, waker.clone()));
            }
        });
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock);

/// The time since [`restart`], us.
pub(crate) fn now_us() -> u64 {
    match BEGAN.get() {
        Some(began) => began.elapsed().as_micros() as u64,
        None => NOW_US.get(),
    }
}

/// Begins this thread's time anew.
pub(crate) fn restart(is_real: bool) {
    ALARMS.take();
    NOW_US.set(0);
    BEGAN.set(is_real.then(Instant::now));
}

/// The tasks of one thread.
#[derive(Default)]
pub(crate) struct Executor {
    tasks: Vec<(Boxed, Arc<Task>)>,
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    is_ready: AtomicBool,
    thread: Thread,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.is_ready.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Executor {
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        let task = Task {
            is_ready: AtomicBool::new(true),
            thread: thread::current(),
        };
        self.tasks.push((Box::pin(future), Arc::new(task)));
    }

    /// Runs every task until `done`; false where that takes longer than `limit`, or where every
    /// task waits for good.
    pub(crate) fn run_until(&mut self, limit: Duration, done: impl Fn() -> bool) -> bool {
        self.run(limit, done, sleep)
    }

    /// As [`Self::run_until`], in real time; `idle` sleeps for as long as it is told, at most.
    pub(crate) fn run(
        &mut self,
        limit: Duration,
        done: impl Fn() -> bool,
        mut idle: impl FnMut(Option<Duration>),
    ) -> bool {
        let end = now_us() + limit.as_micros() as u64;
        loop {
            while self.step() {}
            if done() {
                return true;
            }
            let next = ALARMS.with_borrow(|alarms| alarms.iter().map(|(at, _)| *at).min());
            match (BEGAN.get(), next) {
                (None, None) => return false,
                (None, Some(at)) => NOW_US.set(at.max(NOW_US.get())),
                (Some(_), at) => {
                    idle(at.map(|at| Duration::from_micros(at.saturating_sub(now_us()))));
                }
            }
            if now_us() > end {
                return false;
            }
            let now = now_us();
            let due = ALARMS.with_borrow_mut(|alarms| {
                let (due, later): (Vec<_>, Vec<_>) = alarms.drain(..).partition(|a| a.0 <= now);
                *alarms = later;
                due
            });
            due.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    fn step(&mut self) -> bool {
        let mut any = false;
        self.tasks.retain_mut(|(future, task)| {
            if !task.is_ready.swap(false, Ordering::AcqRel) {
                return true;
            }
            any = true;
            let waker = Waker::from(task.clone());
            let mut cx = Context::from_waker(&waker);
            future.as_mut().poll(&mut cx).is_pending()
        });
        any
    }
}

/// Until this thread is woken, or that long.
pub(crate) fn sleep(most: Option<Duration>) {
    const LONGEST: Duration = Duration::from_millis(500);
    thread::park_timeout(most.unwrap_or(LONGEST).min(LONGEST));
}
