//! What runs on simulated nodes: a sender, a receiver, and the small services of old.
//!
//! Place: `world` calls [`App::step`] whenever its node has something new. An application
//! uses the stack as firmware does, with calls that never wait.
//! Datagrams are in [`crate::traffic`], messages over TCP in [`crate::messages`].
//! Sources: RFC 862 (echo), RFC 863 (discard), RFC 864 (character generator).

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::tcp::{
    self, Buffers, Config, Handle, ListenerHandle, RecvError, State, recv_memory_len,
};
use motet::time::Instant;

use crate::Arena;
use crate::content::Content;
use crate::messages::{Client, Server};
use crate::traffic::{Readings, Sink};

/// What runs on a node.
#[derive(Debug, Default)]
pub enum App<'m> {
    /// Nothing.
    #[default]
    None,
    /// Connects, sends, closes.
    Sender(Sender<'m>),
    /// Takes one connection and reads it to its end.
    Receiver(Receiver<'m>),
    /// Echo, discard and chargen.
    Services(Services<'m>),
    /// Sends datagrams at a constant rate.
    Readings(Readings),
    /// Counts datagrams.
    Sink(Sink<'m>),
    /// Sends messages over TCP at a constant rate.
    Client(Client<'m>),
    /// Counts such messages, and may answer them.
    Server(Server<'m>),
}

/// Sends a content over one connection.
#[derive(Debug)]
pub struct Sender<'m> {
    content: Content,
    taken: u64,
    until: Instant,
    to: (Ipv6Addr, u16),
    ends: Ends<'m>,
    handle: Option<Handle>,
    /// How it goes.
    pub progress: Progress,
}

/// Reads one connection to its end.
#[derive(Debug)]
pub struct Receiver<'m> {
    port: u16,
    ends: Ends<'m>,
    handle: Option<Handle>,
    /// All that was read, unless it is only checked.
    pub content: Vec<u8>,
    /// How many bytes were read.
    pub received: u64,
    /// The first of them that is not what it should be.
    pub differs_at: Option<u64>,
    expected: Option<Content>,
    /// How it goes.
    pub progress: Progress,
}

/// Settings and memory of a node's TCP, made once the node knows its link.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'m> {
    arena: &'m Arena,
    base: Config,
    window: Window,
    made: Option<&'m Config>,
}

/// How an end's buffers are measured.
#[derive(Clone, Copy, Debug)]
enum Window {
    /// In full segments towards `peer`.
    Segments { peer: Ipv6Addr, count: usize },
    /// In bytes.
    Bytes(u16),
}

impl<'m> Ends<'m> {
    /// A mote's: full segments towards `peer`, buffers for `window` of them.
    pub fn mote(arena: &'m Arena, peer: Ipv6Addr, window: usize) -> Self {
        let window = Window::Segments {
            peer,
            count: window,
        };
        Self {
            arena,
            base: Config::DEFAULT,
            window,
            made: None,
        }
    }

    /// A wired host's, with the memory of one and Linux's delayed ACKs.
    pub fn host(arena: &'m Arena) -> Self {
        let base = Config {
            ack_delay_ms: LINUX_ACK_DELAY_MS,
            ..Config::DEFAULT
        };
        Self {
            arena,
            base,
            window: Window::Bytes(HOST_WINDOW),
            made: None,
        }
    }

    /// Other settings than the default ones; MSS and window remain the chain's, but for a
    /// smaller MSS.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.base);
        self
    }

    /// The settings, once the node has an address and a route to learn the MSS from.
    fn config(&mut self, node: &Node<'_>) -> Option<&'m Config> {
        if self.made.is_none() {
            node.global_address()?;
            let mut config = self.base;
            if let Window::Segments { peer, .. } = self.window {
                let mss = node.mss(&peer, config.timestamps);
                if mss == 0 {
                    return None;
                }
                config.rmss = mss.min(self.base.rmss);
                config.smss = mss.min(self.base.smss);
            }
            config.accept_window = self.window_bytes(&config);
            self.made = Some(self.arena.alloc(config));
        }
        self.made
    }

    fn window_bytes(&self, config: &Config) -> u16 {
        match self.window {
            Window::Bytes(bytes) => bytes,
            Window::Segments { count, .. } => {
                let options = if config.timestamps { TIMESTAMPS_LEN } else { 0 };
                let segment = usize::from(config.smss.saturating_sub(options));
                u16::try_from(count * segment)
                    .unwrap_or(u16::MAX)
                    .min(HOST_WINDOW)
            }
        }
    }

    fn buffers(&self, config: &Config) -> Buffers<'m> {
        let window = self.window_bytes(config);
        Buffers::new(
            self.arena.alloc_slice_fill_copy(usize::from(window), 0),
            self.arena.alloc_slice_fill_copy(recv_memory_len(window), 0),
        )
    }
}

/// How a transfer goes at one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// When this end asked for the connection, or first had one.
    pub began: Option<Instant>,
    /// Sender: when the peer's close came, hence after everything was read there.
    /// Receiver: when the end of the content was read.
    pub finished: Option<Instant>,
    /// Why it ended before that.
    pub error: Option<tcp::Error>,
    /// The connection is over at this end.
    pub closed: bool,
    /// What the transmission machinery was like when last looked at.
    pub telemetry: tcp::Telemetry,
}

/// Echo, discard and chargen, for as many connections as there are buffers.
#[derive(Debug)]
pub struct Services<'m> {
    ends: Ends<'m>,
    listeners: [Option<ListenerHandle>; 3],
    /// Buffers of connections that are over.
    free: Vec<Buffers<'m>>,
    /// How many more connections may get buffers.
    spare: usize,
    served: Vec<Served>,
}

#[derive(Debug)]
struct Served {
    handle: Handle,
    service: usize,
    /// Place in chargen's endless text.
    place: usize,
    shut: bool,
}

impl<'m> App<'m> {
    /// Does what can be done without waiting; says whether that was anything.
    pub fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Sender(sender) => sender.step(node, now),
            Self::Receiver(receiver) => receiver.step(node, now),
            Self::Services(services) => services.step(node, now),
            Self::Readings(readings) => readings.step(node, now),
            Self::Sink(sink) => sink.step(node, now),
            Self::Client(client) => client.step(node, now),
            Self::Server(server) => server.step(node, now),
        }
    }

    /// When it wants to be called though its node has nothing new.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Readings(readings) => readings.next_deadline(),
            Self::Client(client) => client.next_deadline(),
            _ => None,
        }
    }

    /// How the transfer goes, if this is one end of a transfer.
    pub fn progress(&self) -> Option<&Progress> {
        match self {
            Self::Sender(sender) => Some(&sender.progress),
            Self::Receiver(receiver) => Some(&receiver.progress),
            Self::Client(client) => Some(&client.progress),
            Self::Server(server) => Some(&server.progress),
            _ => None,
        }
    }
}

impl<'m> Sender<'m> {
    /// Sends `content` to a port of somebody, as soon as the node has an address for that.
    pub fn new(content: impl Into<Content>, to: (Ipv6Addr, u16), ends: Ends<'m>) -> Self {
        Self {
            content: content.into(),
            taken: 0,
            until: Instant::from_micros(u64::MAX),
            to,
            ends,
            handle: None,
            progress: Progress::default(),
        }
    }

    /// Sends no more from `until` on, and closes when what it has sent has arrived.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = until;
        self
    }

    /// Bytes that the stack has taken so far, acknowledged or not.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if self.progress.closed {
            return false;
        }
        let Some(handle) = self.handle else {
            self.handle = connect(&mut self.ends, self.to, &mut self.progress, node, now);
            return self.handle.is_some() || self.progress.closed;
        };
        let tcp = node.tcp_mut();
        let before = self.taken;
        let is_over = now >= self.until;
        while !is_over
            && let rest @ [_, ..] = self.content.piece(self.taken)
            && let Ok(taken) = tcp.send(handle, rest, now)
        {
            self.taken += taken as u64;
        }
        if (is_over || self.taken == self.content.len()) && may_send(tcp, handle) {
            tcp.shutdown(handle, now);
        }
        // The peer has nothing to say; what it says nevertheless is thrown away.
        let mut ignored = [0; 64];
        let end = loop {
            match tcp.recv(handle, &mut ignored) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        if end == RecvError::Finished && self.progress.finished.is_none() {
            self.progress.finished = Some(now);
        }
        observe(&mut self.progress, tcp, handle, end);
        self.taken != before || self.progress.closed
    }
}

impl<'m> Receiver<'m> {
    /// Takes one connection to `port`, and keeps what it reads.
    pub fn new(port: u16, ends: Ends<'m>) -> Self {
        Self {
            port,
            ends,
            handle: None,
            content: Vec::new(),
            received: 0,
            differs_at: None,
            expected: None,
            progress: Progress::default(),
        }
    }

    /// Takes one connection to `port`, and holds what it reads against `expected`.
    pub fn checking(port: u16, ends: Ends<'m>, expected: Content) -> Self {
        Self {
            expected: Some(expected),
            ..Self::new(port, ends)
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        match &mut self.expected {
            None => self.content.extend_from_slice(bytes),
            Some(expected) => {
                let difference = expected.difference(self.received, bytes);
                self.differs_at = self.differs_at.or(difference);
            }
        }
        self.received += bytes.len() as u64;
    }

    fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if self.progress.closed {
            return false;
        }
        let Some(handle) = self.handle else {
            self.handle = accept(&mut self.ends, self.port, &mut self.progress, node, now);
            return self.handle.is_some() || self.progress.closed;
        };
        let tcp = node.tcp_mut();
        let before = self.received;
        let mut bytes = [0; 512];
        let end = loop {
            match tcp.recv(handle, &mut bytes) {
                Ok(len) => self.read(&bytes[..len]),
                Err(error) => break error,
            }
        };
        if end == RecvError::Finished && self.progress.finished.is_none() {
            self.progress.finished = Some(now);
            tcp.shutdown(handle, now);
        }
        let connection = tcp.connection(handle);
        if self.progress.began.is_none() && connection.is_some_and(tcp::Connection::is_established)
        {
            self.progress.began = Some(now);
        }
        observe(&mut self.progress, tcp, handle, end);
        self.received != before || self.progress.closed
    }
}

impl<'m> Services<'m> {
    /// The three services, for up to `connections` at a time.
    pub fn new(connections: usize, ends: Ends<'m>) -> Self {
        let (free, served) = (Vec::new(), Vec::new());
        Self {
            ends,
            listeners: [None; 3],
            free,
            spare: connections,
            served,
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.served.len()
    }

    fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        let Some(config) = self.ends.config(node) else {
            return false;
        };
        let tcp = node.tcp_mut();
        let mut acted = false;
        for (service, port) in PORTS.into_iter().enumerate() {
            if self.listeners[service].is_none() {
                self.listeners[service] = tcp.listen(None, port, config).ok();
            }
            acted |= self.accept(service, tcp, config, now);
        }
        let free = &mut self.free;
        self.served.retain_mut(|served| {
            acted |= served.step(tcp, now);
            match served.release(tcp) {
                None => true,
                Some(buffers) => {
                    free.extend(buffers);
                    acted = true;
                    false
                }
            }
        });
        acted
    }

    fn accept(
        &mut self,
        service: usize,
        tcp: &mut tcp::Tcp<'m>,
        config: &'m Config,
        now: Instant,
    ) -> bool {
        let Some(listener) = self.listeners[service] else {
            return false;
        };
        if !tcp.can_accept(listener) {
            return false;
        }
        let buffers = match self.free.pop() {
            Some(buffers) => buffers,
            None if self.spare == 0 => return false,
            None => {
                self.spare -= 1;
                self.ends.buffers(config)
            }
        };
        match tcp.accept(listener, buffers, now) {
            Ok(handle) => {
                self.served.push(Served {
                    handle,
                    service,
                    place: 0,
                    shut: false,
                });
                true
            }
            Err(rejected) => {
                self.free.push(rejected.buffers);
                false
            }
        }
    }
}

impl Served {
    fn step(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        if PORTS[self.service] == CHARGEN {
            acted |= self.generate(tcp, now);
        }
        loop {
            let bytes = match tcp.peek(self.handle) {
                Ok(bytes) => bytes,
                Err(RecvError::Finished) if !self.shut => {
                    self.shut = true;
                    tcp.shutdown(self.handle, now);
                    return true;
                }
                Err(_) => return acted,
            };
            let count = if PORTS[self.service] == ECHO {
                let mut copy = [0; 256];
                let len = bytes.len().min(copy.len());
                copy[..len].copy_from_slice(&bytes[..len]);
                match tcp.send(self.handle, &copy[..len], now) {
                    Ok(taken) => taken,
                    Err(_) => return acted,
                }
            } else {
                bytes.len()
            };
            tcp.consume(self.handle, count);
            acted = true;
        }
    }

    /// Lines of 72 characters, each beginning one further (RFC 864).
    fn generate(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        loop {
            let mut text = [0; 148];
            for (offset, byte) in text.iter_mut().enumerate() {
                *byte = generated(self.place + offset);
            }
            match tcp.send(self.handle, &text, now) {
                Ok(taken) => self.place = (self.place + taken) % GENERATED_PERIOD,
                Err(_) => return acted,
            }
            acted = true;
        }
    }

    /// The buffers, once the connection is over. `Some(None)`: it is gone, and they too.
    fn release<'m>(&self, tcp: &mut tcp::Tcp<'m>) -> Option<Option<Buffers<'m>>> {
        match tcp.connection(self.handle).map(tcp::Connection::state) {
            None => Some(None),
            Some(State::Closed | State::TimeWait) => tcp.remove(self.handle).map(Some),
            Some(_) => None,
        }
    }
}

/// Opens a connection; none while the node has no address, after which it calls again.
pub(crate) fn connect<'m>(
    ends: &mut Ends<'m>,
    to: (Ipv6Addr, u16),
    progress: &mut Progress,
    node: &mut Node<'m>,
    now: Instant,
) -> Option<Handle> {
    let config = ends.config(node)?;
    let buffers = ends.buffers(config);
    let handle = node.connect(to, buffers, config, now).ok();
    // Refused: the plan is at fault, nothing that waiting would change.
    progress.closed = handle.is_none();
    progress.began = handle.map(|_| now);
    handle
}

/// Waits for a connection; none while the node has no address, after which it calls again.
pub(crate) fn accept<'m>(
    ends: &mut Ends<'m>,
    port: u16,
    progress: &mut Progress,
    node: &mut Node<'m>,
    now: Instant,
) -> Option<Handle> {
    let config = ends.config(node)?;
    let tcp = node.tcp_mut();
    // In advance: the peer's first segment may end the handshake and carry data.
    let handle = tcp
        .listen(None, port, config)
        .ok()
        .and_then(|listener| tcp.accept(listener, ends.buffers(config), now).ok());
    progress.closed = handle.is_none();
    handle
}

fn may_send(tcp: &tcp::Tcp<'_>, handle: Handle) -> bool {
    tcp.connection(handle)
        .is_some_and(tcp::Connection::may_send)
}

/// Notes how a connection does, and whether it is over.
pub(crate) fn observe(progress: &mut Progress, tcp: &tcp::Tcp<'_>, handle: Handle, end: RecvError) {
    if let RecvError::Failed(error) = end {
        progress.error.get_or_insert(error);
    }
    match tcp.connection(handle) {
        None => progress.closed = true,
        Some(connection) => {
            progress.telemetry = connection.telemetry();
            progress.closed = matches!(connection.state(), State::Closed | State::TimeWait);
        }
    }
}

/// The character at a place of chargen's text.
fn generated(place: usize) -> u8 {
    let (line, column) = (place / LINE_LEN, place % LINE_LEN);
    match column {
        72 => b'\r',
        73 => b'\n',
        _ => b' ' + ((line + column) % PRINTABLE) as u8,
    }
}

/// Linux's least delayed-ACK timer, which it uses whatever the RTT (`TCP_DELACK_MIN`).
const LINUX_ACK_DELAY_MS: u16 = 40;

/// A host's buffers, bytes: more than any mesh fills, and half of what 16 bits can say.
const HOST_WINDOW: u16 = 32_768;

/// Bytes of each segment that the timestamps option takes (RFC 7323 appendix A).
const TIMESTAMPS_LEN: u16 = 12;

const ECHO: u16 = 7;
const DISCARD: u16 = 9;
const CHARGEN: u16 = 19;
const PORTS: [u16; 3] = [ECHO, DISCARD, CHARGEN];

/// Characters of a line, its end included.
const LINE_LEN: usize = 74;

/// ASCII characters from space to tilde.
const PRINTABLE: usize = 95;

/// After so many characters the text repeats.
const GENERATED_PERIOD: usize = LINE_LEN * PRINTABLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_text_is_that_of_the_rfc() {
        let text: String = (0..2 * LINE_LEN)
            .map(|place| char::from(generated(place)))
            .collect();
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap();
        assert!(first.starts_with(" !\"#$%&'()*+,-./0123456789") && first.len() == 72);
        assert_eq!(lines.next().unwrap()[..71], first[1..]);
        assert_eq!(generated(GENERATED_PERIOD), generated(0));
    }
}
