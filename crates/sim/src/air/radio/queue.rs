//! A queue in a radio: first in, first out.

use std::collections::VecDeque;

/// A queue that is short and mostly empty. It then begins anew where it began before: among
/// thousands of radios whatever lies further on is in no cache.
#[derive(Debug)]
pub(super) struct Queue<T>(VecDeque<T>);

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self(VecDeque::with_capacity(USUAL))
    }

    pub(super) fn push(&mut self, item: T) {
        self.0.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let first = self.0.pop_front();
        if self.0.is_empty() {
            self.0.clear();
        }
        first
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.0.front()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// As many as wait at a time, most of the time: more would only lie between what is in use.
const USUAL: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_begins_where_it_began() {
        let mut queue = Queue::new();
        queue.push(1);
        let place = std::ptr::from_ref(queue.first().unwrap());
        for number in 1..4 {
            assert_eq!(queue.pop(), Some(number));
            assert!(queue.is_empty() && queue.pop().is_none());
            queue.push(number + 1);
            assert_eq!(std::ptr::from_ref(queue.first().unwrap()), place);
        }
    }
}
