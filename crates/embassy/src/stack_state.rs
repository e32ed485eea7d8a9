//! The state that the tasks of a stack share: the node, who owns each connection, which buffers are
//! free, and which task waits for what.
//!
//! Place: inside [`Stack`](crate::Stack), behind one `RefCell` that no await is held across.
//! [`StackState::note_changes`] turns the edges that TCP reports into wakes: one for each call that
//! would now give something, and only of the task that waits for it.

use core::task::Context;

use embassy_sync::waitqueue::WakerRegistration;
use motet::node::Node;
use motet::tcp::{self, Buffers, Changed, Edges, Handle, ListenerHandle, OpenError, State};
use motet::time::Instant;

use crate::error::Error;
use crate::waiters::{Waiters, Waits};

/// The owner and the waiting tasks of the TCP connection in the slot of the same number.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    handle: Option<Handle>,
    owner: Owner,
    reader: WakerRegistration,
    writer: WakerRegistration,
    awaits: Awaits,
}

/// The owner of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// The connection belongs to a socket.
    Socket,
    /// Lent to a listener in advance, for whoever connects next.
    Lent(ListenerHandle),
    /// A peer has connected, and no task has accepted it yet.
    Arrived(ListenerHandle),
    /// No owner: the connection closes in the background.
    Closing,
}

impl Owner {
    fn is_of(self, listener: ListenerHandle) -> bool {
        self == Self::Lent(listener) || self == Self::Arrived(listener)
    }
}

/// The event that a writing task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaits {
    /// The end of the handshake, or room for bytes to send.
    Room,
    /// The acknowledgment of all bytes.
    Acknowledged,
}

/// The tasks that wait for a connection of one listener.
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    accepting: Waiters,
    /// How many tasks wait in `accept`.
    tasks: u8,
}

/// The state that all tasks share.
#[derive(Debug)]
pub(crate) struct StackState {
    pub(crate) node: &'static mut Node<'static>,
    connections: &'static mut [ConnectionSlot],
    spare: &'static mut [Option<Buffers<'static>>],
    queues: &'static mut [AcceptQueue],
    tcp: &'static tcp::Config,
    runner: WakerRegistration,
    is_kicked: bool,
    /// Tasks that wait for buffers.
    free: Waiters,
    /// Tasks that wait for a datagram.
    pub(crate) datagrams: Waiters,
    /// Tasks that wait for room in the link's queue.
    pub(crate) room: Waiters,
    /// Tasks that wait for an address beyond the link.
    pub(crate) address: Waiters,
    /// Datagrams that have been reported.
    datagrams_seen: usize,
}

impl ConnectionSlot {
    pub(crate) const EMPTY: Self = Self {
        handle: None,
        owner: Owner::Closing,
        reader: WakerRegistration::new(),
        writer: WakerRegistration::new(),
        awaits: Awaits::Room,
    };
}

impl AcceptQueue {
    pub(crate) const EMPTY: Self = Self {
        accepting: Waiters::new(),
        tasks: 0,
    };
}

impl StackState {
    pub(crate) fn new(
        node: &'static mut Node<'static>,
        connections: &'static mut [ConnectionSlot],
        spare: &'static mut [Option<Buffers<'static>>],
        queues: &'static mut [AcceptQueue],
        tcp: &'static tcp::Config,
    ) -> Self {
        Self {
            node,
            connections,
            spare,
            queues,
            tcp,
            runner: WakerRegistration::new(),
            is_kicked: false,
            free: Waiters::new(),
            datagrams: Waiters::new(),
            room: Waiters::new(),
            address: Waiters::new(),
            datagrams_seen: 0,
        }
    }

    /// The node has to be polled: an application has called it.
    pub(crate) fn kick(&mut self) {
        self.is_kicked = true;
        self.runner.wake();
    }

    /// Whether [`Self::kick`] was called since the last time; where not, the runner waits.
    pub(crate) fn poll_kicked(&mut self, cx: &Context<'_>) -> bool {
        if !core::mem::take(&mut self.is_kicked) {
            self.runner.register(cx.waker());
            return false;
        }
        true
    }

    /// The node is about to be polled.
    pub(crate) fn begin_poll(&mut self) {
        self.is_kicked = false;
    }

    /// Wakes the tasks for which the poll that has just ended changed something.
    pub(crate) fn note_changes(&mut self) {
        while let Some(changed) = self.node.tcp_mut().poll_changed() {
            match changed {
                Changed::Connection(handle, edges) => self.note_edges(handle, edges),
                Changed::Listener(listener) => self.wake_listener(listener),
            }
        }
        // A packet leaves the queue in many ways: sent, given up on a busy channel, without a
        // route.
        self.room.wake();
        let waiting = self.datagrams_waiting();
        if waiting > self.datagrams_seen {
            self.datagrams.wake();
        }
        self.datagrams_seen = waiting;
        if self.node.global_address().is_some() {
            self.address.wake();
        }
    }

    /// Datagrams were read: those that are left have been reported.
    pub(crate) fn note_datagrams_read(&mut self) {
        self.datagrams_seen = self.datagrams_waiting();
    }

    fn datagrams_waiting(&mut self) -> usize {
        self.node.inbox_mut().map_or(0, |inbox| inbox.waiting())
    }

    fn note_edges(&mut self, handle: Handle, edges: Edges) {
        let Some(slot) = self.slot(handle) else {
            return;
        };
        match slot.owner {
            Owner::Socket => {
                if edges.is_readable() {
                    slot.reader.wake();
                }
                let is_awaited = match slot.awaits {
                    Awaits::Room => edges.is_writable(),
                    Awaits::Acknowledged => edges.is_all_acknowledged(),
                };
                if is_awaited {
                    slot.writer.wake();
                }
            }
            Owner::Closing if edges.is_over() => self.release(handle),
            Owner::Lent(listener) | Owner::Arrived(listener) if edges.is_over() => {
                self.release(handle);
                // A task that waits for it has to lend another one.
                self.wake_listener(listener);
            }
            Owner::Lent(listener) if edges.is_writable() => {
                slot.owner = Owner::Arrived(listener);
                self.wake_listener(listener);
            }
            Owner::Lent(_) | Owner::Arrived(_) | Owner::Closing => {}
        }
    }

    fn wake_listener(&mut self, listener: ListenerHandle) {
        if let Some(queue) = self.queues.get_mut(listener.slot()) {
            queue.accepting.wake();
        }
    }

    /// The slot of a connection; `None`: it has been given back.
    fn slot(&mut self, handle: Handle) -> Option<&mut ConnectionSlot> {
        let slot = self.connections.get_mut(handle.slot())?;
        (slot.handle == Some(handle)).then_some(slot)
    }

    fn occupy(&mut self, handle: Handle, owner: Owner) {
        if let Some(slot) = self.connections.get_mut(handle.slot()) {
            slot.handle = Some(handle);
            slot.owner = owner;
            slot.awaits = Awaits::Room;
        }
        self.kick();
    }

    /// Takes the buffers back from a connection that is over; does nothing to another one.
    fn release(&mut self, handle: Handle) {
        let Some(buffers) = self.node.tcp_mut().remove(handle) else {
            return;
        };
        self.put_back(buffers);
        if let Some(slot) = self.slot(handle) {
            *slot = ConnectionSlot::EMPTY;
        }
        self.free.wake();
    }

    fn put_back(&mut self, buffers: Buffers<'static>) {
        // There is a slot for each pair that was ever lent.
        if let Some(slot) = self.spare.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(buffers);
        }
    }

    fn take_spare(&mut self) -> Option<Buffers<'static>> {
        self.spare.iter_mut().find_map(Option::take)
    }

    /// How many connections could be opened now.
    pub(crate) fn free_connections(&self) -> usize {
        self.spare.iter().flatten().count()
    }

    /// Opens a connection; where every pair of buffers is in use, the task waits for one.
    pub(crate) fn connect(
        &mut self,
        remote: motet::Remote,
        now: Instant,
        cx: &Context<'_>,
    ) -> Result<Result<Handle, Error>, Waits> {
        let Some(buffers) = self.take_spare() else {
            return Err(self.free.register(cx));
        };
        match self.node.connect(remote, buffers, self.tcp, now) {
            Ok(handle) => {
                self.occupy(handle, Owner::Socket);
                Ok(Ok(handle))
            }
            Err(rejected) => {
                self.put_back(rejected.buffers);
                Ok(Err(rejected.error.into()))
            }
        }
    }

    pub(crate) fn listen(&mut self, port: u16) -> Result<ListenerHandle, Error> {
        Ok(self.node.tcp_mut().listen(None, port, self.tcp)?)
    }

    /// Ends a listener: what was lent to it comes back, and a peer that nobody accepted is reset.
    pub(crate) fn unlisten(&mut self, listener: ListenerHandle) {
        self.node.tcp_mut().unlisten(listener);
        for index in 0..self.connections.len() {
            let slot = self.connections.get(index);
            let theirs = slot.filter(|slot| slot.owner.is_of(listener));
            if let Some(handle) = theirs.and_then(|slot| slot.handle) {
                self.abort(handle);
            }
        }
        self.kick();
    }

    /// A task is about to accept, or has ended to; the connection that was lent in advance comes
    /// back with the last of them.
    pub(crate) fn count_accepting(&mut self, listener: ListenerHandle, begins: bool, now: Instant) {
        let Some(queue) = self.queues.get_mut(listener.slot()) else {
            return;
        };
        queue.tasks = match begins {
            true => queue.tasks.saturating_add(1),
            false => queue.tasks.saturating_sub(1),
        };
        if queue.tasks == 0
            && let Some(handle) = self.find(Owner::Lent(listener))
            && self.state(handle) == Some(State::Listen)
        {
            self.close(handle, now);
        }
    }

    fn find(&self, owner: Owner) -> Option<Handle> {
        let mut connections = self.connections.iter();
        let found = connections.find(|slot| slot.handle.is_some() && slot.owner == owner);
        found.and_then(|slot| slot.handle)
    }

    fn state(&self, handle: Handle) -> Option<State> {
        Some(self.node.tcp().connection(handle)?.state())
    }

    /// The connection that has waited longest; where none waits, one is lent in advance if there
    /// are buffers, and the task waits.
    pub(crate) fn accept(
        &mut self,
        listener: ListenerHandle,
        now: Instant,
        cx: &Context<'_>,
    ) -> Result<Result<Handle, Error>, Waits> {
        if let Some(handle) = self.find(Owner::Arrived(listener)) {
            self.occupy(handle, Owner::Socket);
            return Ok(Ok(handle));
        }
        let lent = self.find(Owner::Lent(listener));
        match lent.map_or_else(|| self.lend(listener, now), |handle| Ok(Some(handle))) {
            Err(error) => return Ok(Err(error.into())),
            Ok(Some(handle)) if self.has_begun(handle) => {
                self.occupy(handle, Owner::Socket);
                return Ok(Ok(handle));
            }
            Ok(Some(_)) => {}
            Ok(None) if self.free.register(cx) == Waits::Looks => return Err(Waits::Looks),
            Ok(None) => {}
        }
        let queue = self.queues.get_mut(listener.slot());
        Err(queue.map_or(Waits::Looks, |queue| queue.accepting.register(cx)))
    }

    fn has_begun(&self, handle: Handle) -> bool {
        let state = self.state(handle);
        state.is_some_and(|state| !matches!(state, State::Listen | State::SynReceived))
    }

    /// Lends buffers to a listener; `None`: none are free.
    fn lend(
        &mut self,
        listener: ListenerHandle,
        now: Instant,
    ) -> Result<Option<Handle>, OpenError> {
        let Some(buffers) = self.take_spare() else {
            return Ok(None);
        };
        match self.node.tcp_mut().accept(listener, buffers, now) {
            Ok(handle) => {
                self.occupy(handle, Owner::Lent(listener));
                Ok(Some(handle))
            }
            Err(rejected) => {
                self.put_back(rejected.buffers);
                Err(rejected.error)
            }
        }
    }

    /// Closes a connection in the background; its slot becomes free when that is done.
    pub(crate) fn close(&mut self, handle: Handle, now: Instant) {
        if !self.is_owned(handle) {
            return;
        }
        let is_silent = self.is_silent(handle);
        self.node.tcp_mut().close(handle, now);
        self.orphan(handle, is_silent);
    }

    /// Resets a connection.
    pub(crate) fn abort(&mut self, handle: Handle) {
        if !self.is_owned(handle) {
            return;
        }
        let is_silent = self.is_silent(handle);
        self.node.tcp_mut().abort(handle);
        self.orphan(handle, is_silent);
    }

    /// Whether somebody has a connection: a socket that was aborted is dropped, too.
    fn is_owned(&mut self, handle: Handle) -> bool {
        let slot = self.slot(handle);
        slot.is_some_and(|slot| slot.owner != Owner::Closing)
    }

    /// Whether a connection that ends now has nothing to say to its peer.
    fn is_silent(&self, handle: Handle) -> bool {
        let state = self.state(handle);
        state.is_some_and(|state| {
            use State::{Closed, Listen, SynSent, TimeWait};
            matches!(state, Closed | Listen | SynSent | TimeWait)
        })
    }

    /// A connection is nobody's from now on. A silent one gives its buffers back at once, also
    /// because TCP does not report twice that it is over; of another one the reset, where it owes
    /// one, leaves before.
    fn orphan(&mut self, handle: Handle, is_silent: bool) {
        if let Some(slot) = self.slot(handle) {
            *slot = ConnectionSlot {
                handle: Some(handle),
                ..ConnectionSlot::EMPTY
            };
        }
        if is_silent {
            self.release(handle);
        }
        self.kick();
    }

    pub(crate) fn await_read(&mut self, handle: Handle, cx: &Context<'_>) {
        if let Some(slot) = self.slot(handle) {
            slot.reader.register(cx.waker());
        }
    }

    pub(crate) fn await_write(&mut self, handle: Handle, awaits: Awaits, cx: &Context<'_>) {
        if let Some(slot) = self.slot(handle) {
            slot.awaits = awaits;
            slot.writer.register(cx.waker());
        }
    }
}
