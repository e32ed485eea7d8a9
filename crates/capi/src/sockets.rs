//! Sockets as numbers, whichever kind they are of; what has changed at them.
//!
//! A number has 31 bits: the index of its place, its kind, and one of two million generations, which
//! start elsewhere at each node. So a number that was closed, that is of another kind or that
//! another node gave out is refused.

use motet::node::Node;
use motet::tcp::{self, Buffers, Changed, Edges, Handle, ListenerHandle, State};
use motet::time::Instant;

use crate::errno::{Errno, MOTET_EBADF, code};
use crate::memory::place;
use crate::node::{motet_node, with, with_clock};

/// There is something to read: bytes, the end of the stream, or why there will be none. Of a
/// listener: a peer that waits to be accepted.
pub const MOTET_READABLE: u8 = 1;
/// There is room again to send; at first: the handshake is done, or has failed.
pub const MOTET_WRITABLE: u8 = 2;
/// The peer has all that was sent.
pub const MOTET_ALL_ACKNOWLEDGED: u8 = 4;
/// The connection is over: motet_close it.
pub const MOTET_OVER: u8 = 8;

/// What became possible at a socket.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_change {
    /// The socket.
    pub socket: i32,
    /// MOTET_READABLE and the others, added up.
    pub events: u8,
}

/// The C interface's state for the TCP connection in the slot of the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    handle: Option<Handle>,
    owner: Owner,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// The application: by this number.
    Number(i32),
    /// A listener: lent in advance to whoever connects next.
    Listener(ListenerHandle),
    /// Nobody: it closes in the background.
    Nobody,
}

/// A listener with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Listening {
    handle: Option<ListenerHandle>,
    number: i32,
}

/// An open UDP port with its number; port 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Port {
    port: u16,
    number: i32,
}

/// All sockets of a node.
#[derive(Debug)]
pub(crate) struct Sockets {
    entries: &'static mut [Entry],
    listening: &'static mut [Listening],
    ports: [Port; UDP_PORTS],
    spare: &'static mut [Option<Buffers<'static>>],
    settings: &'static tcp::Config,
    /// The generation in the socket number that was given out last.
    generation: u32,
}

/// The kind of socket that a number stands for.
#[derive(Clone, Copy)]
enum Kind {
    Connection = 1,
    Listener = 2,
    Port = 3,
}

impl Entry {
    pub(crate) const FREE: Self = Self {
        handle: None,
        owner: Owner::Nobody,
    };
}

impl Listening {
    pub(crate) const FREE: Self = Self {
        handle: None,
        number: 0,
    };
}

impl Sockets {
    /// No sockets yet; `first`: the first generation of socket numbers.
    pub(crate) fn new(
        entries: &'static mut [Entry],
        listening: &'static mut [Listening],
        spare: &'static mut [Option<Buffers<'static>>],
        settings: &'static tcp::Config,
        first: u32,
    ) -> Self {
        Self {
            entries,
            listening,
            ports: [Port { port: 0, number: 0 }; UDP_PORTS],
            spare,
            settings,
            generation: first,
        }
    }

    /// A number that was not given out for a long time.
    fn number(&mut self, kind: Kind, index: usize) -> i32 {
        self.generation = self.generation.wrapping_add(1);
        let number = self.generation << 10 | (kind as u32) << 8 | (index as u32 & 0xff);
        (number & i32::MAX as u32) as i32
    }

    /// The connection with this number.
    pub(crate) fn connection(&self, number: i32) -> Result<Handle, Errno> {
        let entry = self.entries.get((number & 0xff) as usize);
        let entry = entry.filter(|entry| entry.owner == Owner::Number(number));
        entry
            .and_then(|entry| entry.handle)
            .ok_or(Errno(MOTET_EBADF))
    }

    /// The listener with this number.
    pub(crate) fn listener(&self, number: i32) -> Result<ListenerHandle, Errno> {
        let listening = self.listening.get((number & 0xff) as usize);
        let listening = listening.filter(|listening| listening.number == number);
        let handle = listening.and_then(|listening| listening.handle);
        handle.ok_or(Errno(MOTET_EBADF))
    }

    /// The UDP port with this number.
    pub(crate) fn port(&self, number: i32) -> Result<u16, Errno> {
        let port = self
            .ports
            .iter()
            .find(|port| port.port != 0 && port.number == number);
        port.map(|port| port.port).ok_or(Errno(MOTET_EBADF))
    }

    /// Gives a connection to the application.
    pub(crate) fn own(&mut self, handle: Handle) -> i32 {
        let number = self.number(Kind::Connection, handle.slot());
        self.enter(handle, Owner::Number(number));
        number
    }

    fn enter(&mut self, handle: Handle, owner: Owner) {
        if let Some(entry) = self.entries.get_mut(handle.slot()) {
            *entry = Entry {
                handle: Some(handle),
                owner,
            };
        }
    }

    /// Gives a listener to the application.
    pub(crate) fn own_listener(&mut self, handle: ListenerHandle) -> i32 {
        let number = self.number(Kind::Listener, handle.slot());
        if let Some(listening) = self.listening.get_mut(handle.slot()) {
            *listening = Listening {
                handle: Some(handle),
                number,
            };
        }
        number
    }

    /// Gives an open port to the application; `None`: there is no place.
    pub(crate) fn own_port(&mut self, port: u16) -> Option<i32> {
        let index = self.ports.iter().position(|place| place.port == 0)?;
        let number = self.number(Kind::Port, index);
        let place = self.ports.get_mut(index)?;
        *place = Port { port, number };
        Some(number)
    }

    /// The settings of every connection.
    pub(crate) const fn settings(&self) -> &'static tcp::Config {
        self.settings
    }

    /// Buffers for a connection: spare ones, or those lent to a listener that nobody uses yet.
    pub(crate) fn take_buffers(
        &mut self,
        node: &mut Node<'static>,
        now: Instant,
    ) -> Option<Buffers<'static>> {
        self.sweep(node);
        if self.spare.iter().all(Option::is_none)
            && let Some(handle) = self.lent_in_vain(node)
        {
            node.tcp_mut().close(handle, now);
            self.enter(handle, Owner::Nobody);
            self.sweep(node);
        }
        self.take_spare()
    }

    /// Takes buffers that no connection uses.
    pub(crate) fn take_spare(&mut self) -> Option<Buffers<'static>> {
        self.spare.iter_mut().find_map(Option::take)
    }

    pub(crate) fn put_back(&mut self, buffers: Buffers<'static>) {
        // There is a place for each pair that was ever lent.
        if let Some(place) = self.spare.iter_mut().find(|place| place.is_none()) {
            *place = Some(buffers);
        }
    }

    fn lent_in_vain(&self, node: &Node<'static>) -> Option<Handle> {
        let mut entries = self.entries.iter();
        entries.find_map(|entry| {
            let handle = entry
                .handle
                .filter(|_| matches!(entry.owner, Owner::Listener(_)))?;
            let state = node.tcp().connection(handle)?.state();
            (state == State::Listen).then_some(handle)
        })
    }

    /// The connection that was lent to a listener.
    pub(crate) fn lent_to(&self, listener: ListenerHandle) -> Option<Handle> {
        let mut entries = self.entries.iter();
        entries.find_map(|entry| {
            let is_theirs = entry.owner == Owner::Listener(listener);
            entry.handle.filter(|_| is_theirs)
        })
    }

    /// Lends a connection to a listener.
    pub(crate) fn lend(&mut self, handle: Handle, listener: ListenerHandle) {
        self.enter(handle, Owner::Listener(listener));
    }

    /// Takes back the buffers of connections that closed in the background.
    pub(crate) fn sweep(&mut self, node: &mut Node<'static>) {
        for index in 0..self.entries.len() {
            let entry = self.entries.get(index);
            let nobodys = entry.filter(|entry| entry.owner == Owner::Nobody);
            if let Some(handle) = nobodys.and_then(|entry| entry.handle) {
                self.free(handle, node);
            }
        }
    }

    /// Frees the place of a connection that is over; does nothing to another one.
    fn free(&mut self, handle: Handle, node: &mut Node<'static>) {
        if let Some(buffers) = node.tcp_mut().remove(handle) {
            self.put_back(buffers);
            if let Some(entry) = self.entries.get_mut(handle.slot()) {
                *entry = Entry::FREE;
            }
        }
    }

    /// The application has closed a connection: it goes on in the background.
    pub(crate) fn disown(&mut self, handle: Handle) {
        self.enter(handle, Owner::Nobody);
    }

    /// Closes a listener; peers that were not accepted are reset.
    fn close_listener(&mut self, listener: ListenerHandle, node: &mut Node<'static>) {
        node.tcp_mut().unlisten(listener);
        while let Some(handle) = self.lent_to(listener) {
            node.tcp_mut().abort(handle);
            self.enter(handle, Owner::Nobody);
        }
        if let Some(listening) = self.listening.get_mut(listener.slot()) {
            *listening = Listening::FREE;
        }
    }

    fn close_port(&mut self, port: u16, node: &mut Node<'static>) {
        if let Some(inbox) = node.inbox_mut() {
            inbox.unbind(port);
        }
        for place in self.ports.iter_mut().filter(|place| place.port == port) {
            place.port = 0;
        }
    }

    /// The next change at a socket of the application's.
    fn poll_changed(&mut self, node: &mut Node<'static>) -> Option<motet_change> {
        while let Some(changed) = node.tcp_mut().poll_changed() {
            let (listener, socket, events) = match changed {
                Changed::Listener(listener) => (Some(listener), 0, MOTET_READABLE),
                Changed::Connection(handle, edges) => match self.owner(handle) {
                    Owner::Number(number) => (None, number, events_of(edges)),
                    Owner::Listener(listener) => {
                        if edges.is_over() {
                            self.free(handle, node);
                        }
                        (Some(listener), 0, MOTET_READABLE)
                    }
                    Owner::Nobody => {
                        self.free(handle, node);
                        continue;
                    }
                },
            };
            let listening = listener.and_then(|listener| self.listening.get(listener.slot()));
            let socket = listening.map_or(socket, |listening| listening.number);
            if socket != 0 {
                return Some(motet_change { socket, events });
            }
        }
        None
    }

    fn owner(&self, handle: Handle) -> Owner {
        let entry = self.entries.get(handle.slot());
        let entry = entry.filter(|entry| entry.handle == Some(handle));
        entry.map_or(Owner::Nobody, |entry| entry.owner)
    }
}

fn events_of(edges: Edges) -> u8 {
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    bit(edges.is_readable(), MOTET_READABLE)
        | bit(edges.is_writable(), MOTET_WRITABLE)
        | bit(edges.is_all_acknowledged(), MOTET_ALL_ACKNOWLEDGED)
        | bit(edges.is_over(), MOTET_OVER)
}

/// Writes the next thing that became possible at a socket to `change`, each once: ask when
/// motet_poll returns 0, until this returns 0. Returns 1, 0 (nothing), or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll; unless it is null or misaligned, `change` points to room for a change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_poll_changed(
    node: *mut motet_node,
    change: *mut motet_change,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with(node, |node| {
            let place = place(change)?;
            let found = node.sockets.poll_changed(&mut node.node);
            Ok(found.map_or(0, |found| {
                place.write(found);
                1
            }))
        })
    })
}

/// Closes a socket of any kind; its number is of no use from then on. What a connection has sent
/// still arrives; of a listener, peers that were not accepted are reset. Returns 0 or -MOTET_EBADF.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_close(node: *mut motet_node, socket: i32, now_us: u64) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with_clock(node, now_us, |motet_node { node, sockets, .. }, now| {
            if let Ok(handle) = sockets.connection(socket) {
                node.tcp_mut().close(handle, now);
                sockets.disown(handle);
            } else if let Ok(listener) = sockets.listener(socket) {
                sockets.close_listener(listener, node);
            } else {
                let port = sockets.port(socket)?;
                sockets.close_port(port, node);
            }
            Ok(0)
        })
    })
}

/// UDP ports that are open at one time.
pub(crate) const UDP_PORTS: usize = 4;
