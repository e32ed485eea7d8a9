//! Tasks that wait for the same thing.
//!
//! Place: in [`StackState`], one list for each thing; [`wait`] is how a call waits. A task that
//! finds its list full looks again every [`LOOK_AGAIN`] instead: to wake another task for its
//! place, as lists of wakers commonly do, would keep both of them awake for as long as they wait.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use embassy_time::{Duration, Timer};

use crate::stack::Stack;
use crate::stack_state::StackState;

/// Wakers of the tasks that wait for one thing.
#[derive(Debug)]
pub(crate) struct Waiters {
    wakers: [Option<Waker>; TASKS],
}

/// How a task will hear that it may ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// The task will be woken.
    Woken,
    /// The list is full: it has to look by itself.
    Looks,
}

impl Waiters {
    pub(crate) const fn new() -> Self {
        Self {
            wakers: [const { None }; TASKS],
        }
    }

    /// Keeps the waker of the task that polls now.
    pub(crate) fn register(&mut self, cx: &Context<'_>) -> Waits {
        let mut places = self.wakers.iter_mut();
        let place = places.find(|place| {
            let mut waker = place.iter();
            waker.all(|waker| waker.will_wake(cx.waker()))
        });
        match place {
            Some(place) => {
                *place = Some(cx.waker().clone());
                Waits::Woken
            }
            None => Waits::Looks,
        }
    }

    /// Wakes all of them, and forgets them.
    pub(crate) fn wake(&mut self) {
        for waker in self.wakers.iter_mut().filter_map(Option::take) {
            waker.wake();
        }
    }
}

/// Waits until `ask` gives something.
pub(crate) async fn wait<T>(
    stack: Stack,
    mut ask: impl FnMut(&mut StackState, &Context<'_>) -> Result<T, Waits>,
) -> T {
    let mut look_again = None;
    poll_fn(|cx| {
        loop {
            match ask(&mut stack.state(), cx) {
                Ok(given) => return Poll::Ready(given),
                Err(Waits::Woken) => return Poll::Pending,
                Err(Waits::Looks) => {}
            }
            let timer = look_again.get_or_insert_with(|| Timer::after(LOOK_AGAIN));
            if Pin::new(timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            look_again = None;
        }
    })
    .await
}

/// More of them than an application has ports for datagrams, and than most have tasks at a
/// listener.
const TASKS: usize = 4;

const LOOK_AGAIN: Duration = Duration::from_millis(20);
