//! Edges of connections and listeners, which an application polls: each edge names a call that has
//! become possible.
//!
//! A condition tells whether a call would succeed at once: [`Tcp::recv`], [`Tcp::send`], a flush,
//! [`Tcp::remove`], [`Tcp::accept`]. An edge is the change of a condition from false to true;
//! [`Tcp::poll_changed`] reports it once.
//!
//! Why no edge is lost: a condition becomes false only by the application's own calls, and each
//! such call notes that in the connection's facts. Code for arriving segments notes nothing:
//! polling compares the present conditions with the notes. A half-open entry whose handshake is
//! done has a mark of its own, set when it is reported.
//!
//! Place: [`super::commands`] notes, an adapter polls and wakes its tasks. Left out: wakers, and
//! which task waits for what. A slot that becomes free is no edge: only [`Tcp::remove`] frees one,
//! so that its caller knows.

use super::Tcp;
use super::connection::Connection;
use super::listener::{possible, possible_mut};
use super::state::State;
use super::types::{Changed, Edges, Handle, ListenerHandle, RecvError};

impl Tcp<'_> {
    /// The next thing that became possible; `None`: nothing did since the last call.
    ///
    /// Edges, not levels: each is reported once, and again only after its condition has ceased
    /// and come back. An application that gets an edge repeats the call until that has nothing
    /// more to give ([`RecvError::Empty`], [`SendError::BufferFull`](super::SendError::BufferFull),
    /// nothing to accept) before it waits for the next one.
    ///
    /// To be pulled until it gives `None`, whenever
    /// [`Node::poll_action`](crate::node::Node::poll_action) (or [`Self::poll_segment`]) gives
    /// nothing more: after an event, a deadline, and calls of the application, of which `close`
    /// and `abort` may end another task's wait. One call looks at each slot and each half-open
    /// entry once, so at 255 of each at the most.
    pub fn poll_changed(&mut self) -> Option<Changed> {
        for (index, slot) in (0..u8::MAX).zip(self.memory.connections.iter_mut()) {
            let generation = slot.1;
            if let Some(connection) = &mut slot.0
                && let Some(edges) = connection.take_edges()
            {
                return Some(Changed::Connection(Handle { index, generation }, edges));
            }
        }
        let mut found = None;
        for entry in possible_mut(self.memory.half_open).iter_mut() {
            let listener = entry.listener();
            if found.is_none_or(|index| index == listener) && entry.take_arrived() {
                found = Some(listener);
            }
        }
        let index = found?;
        let generation = possible(self.memory.listeners)
            .get(usize::from(index))?
            .generation;
        Some(Changed::Listener(ListenerHandle { index, generation }))
    }
}

impl Connection<'_> {
    /// Notes that the application has read: it awaits more if nothing is left.
    pub(super) fn note_read(&mut self) {
        if self.recv.is_empty() {
            self.facts.awaits(Edges::READABLE);
        }
    }

    /// Notes that the application has handed data over: it awaits room if none is left.
    pub(super) fn note_taken(&mut self) {
        if !self.send.is_empty() {
            self.facts.awaits(Edges::ALL_ACKNOWLEDGED);
        }
        if !self.send.has_room() {
            self.facts.awaits(Edges::WRITABLE);
        }
    }

    /// The awaited edges whose conditions hold now; they are awaited no more.
    fn take_edges(&mut self) -> Option<Edges> {
        if self.is_orphan() {
            return None;
        }
        let edges = self.facts.take_awaited(self.conditions());
        (edges != Edges(0)).then_some(edges)
    }

    /// The [`Edges`] whose conditions hold now.
    fn conditions(&self) -> Edges {
        if self.is_removable() {
            // Nothing is to come, so that no call would wait.
            return Edges::ALL;
        }
        let mut held = Edges(0);
        held.put(Edges::READABLE, self.check_recv() != Err(RecvError::Empty));
        held.put(Edges::ALL_ACKNOWLEDGED, self.send.is_empty());
        if !self.is_connecting() && self.state() != State::Listen {
            let would_wait = self.may_send() && !self.send.has_room();
            held.put(Edges::WRITABLE, !would_wait);
        }
        held
    }
}
