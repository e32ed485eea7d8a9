//! What runs on simulated nodes: a sender, a receiver, and the small services of old.
//!
//! Place: `world` calls [`App::step`] whenever its node has something new. An application
//! uses the stack as firmware does, with calls that never wait.
//! Datagrams are in [`crate::apps::readings`], messages over TCP in [`crate::apps::messages`].
//! The small services are [`Services`].

pub mod ages;
pub mod content;
mod iperf3;
pub mod messages;
pub mod readings;
mod services;

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle, RecvError, State, recv_memory_len};
use motet::time::Instant;

use crate::Arena;
use crate::apps::content::Content;
use crate::apps::messages::{Client, Server};
use crate::apps::readings::{Readings, Sink};

pub use self::services::Services;

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
    /// Echo, discard, chargen and iperf3.
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
                config.rmss = node.rmss(&peer, config.timestamps).min(self.base.rmss);
                config.smss = mss.min(self.base.smss);
            }
            config.accept_window = self.window_bytes(config.rmss, config.timestamps);
            self.made = Some(self.arena.alloc(config));
        }
        self.made
    }

    /// Bytes of a window of segments as long as `mss` says.
    fn window_bytes(&self, mss: u16, timestamps: bool) -> u16 {
        match self.window {
            Window::Bytes(bytes) => bytes,
            Window::Segments { count, .. } => {
                let options = if timestamps { TIMESTAMPS_LEN } else { 0 };
                let segment = usize::from(mss.saturating_sub(options));
                u16::try_from(count * segment)
                    .unwrap_or(u16::MAX)
                    .min(HOST_WINDOW)
            }
        }
    }

    fn buffers(&self, config: &Config) -> Buffers<'m> {
        let sent = self.window_bytes(config.smss, config.timestamps);
        let received = self.window_bytes(config.rmss, config.timestamps);
        Buffers::new(
            self.arena.alloc_slice_fill_copy(usize::from(sent), 0),
            self.arena
                .alloc_slice_fill_copy(recv_memory_len(received), 0),
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
            Self::Services(services) => services.next_deadline(),
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

/// Linux's least delayed-ACK timer, which it uses whatever the RTT (`TCP_DELACK_MIN`).
const LINUX_ACK_DELAY_MS: u16 = 40;

/// A host's buffers, bytes: more than any mesh fills, and half of what 16 bits can say.
const HOST_WINDOW: u16 = 32_768;

/// Bytes of each segment that the timestamps option takes (RFC 7323 appendix A).
const TIMESTAMPS_LEN: u16 = 12;
