//! Tasks in virtual time: an executor that counts wakes, and the clock that embassy reads.
//!
//! Left out: what happens on the air, which [`crate::air`] does between two alarms.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};

use motet::time::Instant;

use crate::air::SharedAir;

struct Clock;

thread_local! {
    static NOW_US: Cell<u64> = const { Cell::new(0) };
    static ALARMS: RefCell<Vec<(u64, Waker)>> = const { RefCell::new(Vec::new()) };
}

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        NOW_US.get()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        ALARMS.with_borrow_mut(|alarms| {
            let is_new = |(due, other): &(u64, Waker)| *due != at || !other.will_wake(waker);
            if alarms.iter().all(is_new) {
                alarms.push((at, waker.clone()));
            }
        });
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock);

/// Virtual time, µs.
pub(crate) fn now_us() -> u64 {
    NOW_US.get()
}

/// A task, as whoever spawned it sees it.
#[derive(Default)]
pub(crate) struct Task {
    is_ready: AtomicBool,
    wakes: AtomicU32,
}

impl Task {
    /// How often it was woken while it waited.
    pub(crate) fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Relaxed)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

/// All tasks of one run.
pub(crate) struct Executor {
    tasks: Vec<(Boxed, Arc<Task>)>,
    air: SharedAir,
}

impl Executor {
    /// Begins at the origin of time; alarms of an earlier run on this thread are gone.
    pub(crate) fn new(air: SharedAir) -> Self {
        NOW_US.set(0);
        ALARMS.take();
        Self {
            tasks: Vec::new(),
            air,
        }
    }

    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) -> Arc<Task> {
        let task = Arc::new(Task::default());
        task.is_ready.store(true, Ordering::Relaxed);
        self.tasks.push((Box::pin(future), task.clone()));
        task
    }

    /// Runs all tasks until `future` is done; `None`: it was not within `limit_s` seconds of
    /// virtual time.
    pub(crate) fn block_on<T: 'static>(
        &mut self,
        limit_s: u64,
        future: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        let result = Rc::new(RefCell::new(None));
        let place = result.clone();
        self.spawn(async move {
            let value = future.await;
            *place.borrow_mut() = Some(value);
        });
        let end = now_us() + limit_s * 1_000_000;
        loop {
            while self.step() {}
            if let Some(value) = result.borrow_mut().take() {
                return Some(value);
            }
            if now_us() > end || !self.advance() {
                return None;
            }
        }
    }

    fn step(&mut self) -> bool {
        let mut any = false;
        self.tasks.retain_mut(|(future, task)| {
            if !task.is_ready.swap(false, Ordering::Relaxed) {
                return true;
            }
            any = true;
            let waker = Waker::from(task.clone());
            let mut context = Context::from_waker(&waker);
            future.as_mut().poll(&mut context).is_pending()
        });
        any
    }

    /// Goes on to what is next, on the air or an alarm; false where nothing is.
    fn advance(&mut self) -> bool {
        let alarm = ALARMS.with_borrow(|alarms| alarms.iter().map(|(at, _)| *at).min());
        let alarm = alarm.map(|at| Instant::from_micros(at.max(now_us())));
        let mut air = self.air.borrow_mut();
        match (air.next_at(), alarm) {
            (Some(at), alarm) if alarm.is_none_or(|alarm| at <= alarm) => {
                NOW_US.set(at.as_micros());
                air.step(at);
            }
            (_, Some(at)) => {
                air.advance_to(at);
                NOW_US.set(at.as_micros());
                drop(air);
                ring(at.as_micros());
            }
            (_, None) => return false,
        }
        true
    }
}

/// Wakes whoever waits for a time up to `now`.
fn ring(now: u64) {
    let due: Vec<_> = ALARMS.with_borrow_mut(|alarms| {
        let (due, later) = alarms.drain(..).partition(|(at, _)| *at <= now);
        *alarms = later;
        due
    });
    for (_, waker) in due {
        waker.wake();
    }
}
