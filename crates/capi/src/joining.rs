//! A node's part in joining, and the record of counters that it has with the link's security.
//!
//! Place: part of a node; with the feature `join` alone. Left out: the calls of C, which `join` has.

use motet::mac::security::Reservation;
use motet::node::{JoinState, Joiner, Node};
use motet::random::Rng;
use motet::time::Instant;

use crate::record::{motet_reservation, reservation};

/// A node's part in joining.
pub(crate) struct Joining {
    /// What the joiner's random numbers come from.
    rng: Rng,
    state: Option<&'static mut State>,
}

/// The joiner in the caller's memory, and its record.
pub(crate) struct State {
    joiner: Joiner,
    /// The record that the program was asked to store last, and the last one that it has stored.
    ///
    /// The record has frame counters and the number of a request. Each that is asked for has what the
    /// one before was asked for, so that it may overwrite it.
    asked: motet_reservation,
    stored: motet_reservation,
}

impl State {
    pub(crate) const fn new(joiner: Joiner, stored: motet_reservation) -> Self {
        Self {
            joiner,
            asked: stored,
            stored,
        }
    }
}

impl Joining {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            rng: rng.derive(),
            state: None,
        }
    }

    /// Random numbers that no other node has.
    pub(crate) fn rng(&mut self) -> Rng {
        self.rng.derive()
    }

    /// Joins from now on.
    pub(crate) fn begin(&mut self, state: &'static mut State) {
        self.state = Some(state);
    }

    /// How far it is; `None`: the node does not join.
    pub(crate) fn state(&self) -> Option<JoinState> {
        self.state.as_ref().map(|state| state.joiner.state())
    }

    /// Does what is due; returns whether anything was: then the node has to be polled again.
    pub(crate) fn poll(&mut self, node: &mut Node<'static>, now: Instant) -> bool {
        self.state.as_mut().is_some_and(|state| {
            let stored = reservation(state.stored);
            state.joiner.poll(node, Some(stored), now)
        })
    }

    /// The earlier one of `other` and when to poll it.
    pub(crate) fn or_deadline(&self, other: Option<Instant>) -> Option<Instant> {
        let own = self.state.as_ref();
        let own = own.and_then(|state| state.joiner.next_deadline());
        own.into_iter().chain(other).min()
    }

    /// The record that the program has to store, if `frames` are wanted or the number of a request.
    pub(crate) fn wanted(&mut self, frames: Option<Reservation>) -> Option<motet_reservation> {
        let plain = |frames: Reservation| motet_reservation {
            sequence: frames.sequence,
            counter: frames.counter,
            requests: 0,
        };
        let Some(state) = &mut self.state else {
            return frames.map(plain);
        };
        let number = state.joiner.poll_number();
        if let Some(frames) = frames {
            let requests = state.asked.requests;
            state.asked = motet_reservation {
                requests,
                ..plain(frames)
            };
        }
        if let Some(number) = number {
            state.asked.requests = number;
        }
        (frames.is_some() || number.is_some()).then_some(state.asked)
    }

    /// The program has stored a record, or could not. Returns whether its frame counters are new.
    pub(crate) fn on_answer(
        &mut self,
        record: motet_reservation,
        is_stored: bool,
        now: Instant,
    ) -> bool {
        let Some(state) = &mut self.state else {
            return true;
        };
        let before = state.stored;
        if record.requests != before.requests {
            state.joiner.on_number(record.requests, is_stored, now);
        }
        if is_stored {
            state.stored = record;
        }
        (record.sequence, record.counter) != (before.sequence, before.counter)
    }
}
