//! Time for futures: the lab's, as their application's last step had it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use motet::time::{Duration, Instant};

/// Tells futures the time, and their application when the next one wants to be polled.
#[derive(Debug)]
pub(super) struct Clock {
    now: Cell<Instant>,
    due: Cell<Option<Instant>>,
}

impl Clock {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            now: Cell::new(now),
            due: Cell::new(None),
        }
    }

    /// It is `now`, and every future is about to be polled.
    pub(super) fn set(&self, now: Instant) {
        self.now.set(now);
        self.due.set(None);
    }

    pub(super) const fn now(&self) -> Instant {
        self.now.get()
    }

    /// When the next future wants to be polled.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due.get()
    }

    /// Waits.
    pub(super) async fn wait(&self, span: Duration) {
        let at = self.now() + span;
        poll_fn(|_| self.is_past(at)).await;
    }

    /// What the future gives, or `None` after `limit`.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        let at = self.now() + limit;
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.is_past(at).map(|()| None),
        })
        .await
    }

    fn is_past(&self, at: Instant) -> Poll<()> {
        if self.now() >= at {
            return Poll::Ready(());
        }
        let due = self.due.get().map_or(at, |due| due.min(at));
        self.due.set(Some(due));
        Poll::Pending
    }
}
