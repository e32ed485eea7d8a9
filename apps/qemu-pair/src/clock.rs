//! Virtual time: it stands while a task runs, and jumps to the next alarm when none is left to run.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use critical_section::Mutex;
use embassy_time_driver::{Driver, time_driver_impl};
use embassy_time_queue_utils::Queue;

struct Clock {
    now: Mutex<Cell<u64>>,
    alarms: Mutex<RefCell<Queue>>,
}

time_driver_impl!(static CLOCK: Clock = Clock {
    now: Mutex::new(Cell::new(0)),
    alarms: Mutex::new(RefCell::new(Queue::new())),
});

impl Driver for Clock {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.now.borrow(cs).get())
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            self.alarms.borrow_ref_mut(cs).schedule_wake(at, waker);
        });
    }
}

/// Wakes what is due by now; the time of the next alarm after that, if there is one.
pub(crate) fn ring() -> Option<u64> {
    critical_section::with(|cs| {
        let now = CLOCK.now.borrow(cs).get();
        let next = CLOCK.alarms.borrow_ref_mut(cs).next_expiration(now);
        (next != u64::MAX).then_some(next)
    })
}

/// Goes on to this time.
pub(crate) fn advance_to(at: u64) {
    critical_section::with(|cs| CLOCK.now.borrow(cs).set(at));
}
