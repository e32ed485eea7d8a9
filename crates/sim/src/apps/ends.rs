//! One end of a TCP connection on a simulated node: its settings, its memory, how it goes.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::tcp::{
    self, Buffers, Config, Handle, ListenerHandle, RecvError, State, recv_memory_len,
};
use motet::time::{Duration, Instant};

use crate::Arena;

/// Settings and memory of a node's TCP, made once the node knows its link.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'m> {
    pub(super) arena: &'m Arena,
    base: Config,
    window: Window,
    /// The receive buffer, where it is not as long as the window.
    receiving: Option<u16>,
    made: Option<&'m Config>,
}

/// How an end's buffers are measured.
#[derive(Clone, Copy, Debug)]
enum Window {
    /// A buffer length in full segments towards `peer`.
    Segments { peer: Ipv6Addr, count: usize },
    /// A window of this many bytes.
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
            receiving: None,
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
            receiving: None,
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

    /// Sets a receive buffer of `bytes` bytes: for an end that sends.
    #[must_use]
    pub fn receiving(mut self, bytes: u16) -> Self {
        self.receiving = Some(bytes);
        self
    }

    /// Bytes of both buffers, once the node has an address and a route.
    pub fn memory_len(mut self, node: &Node<'_>) -> Option<usize> {
        let config = self.config(node)?;
        let sent = self.window_bytes(config.smss, config.timestamps);
        Some(usize::from(sent) + recv_memory_len(self.received_bytes(config)))
    }

    /// The settings, once the node has an address and a route to learn the MSS from.
    pub(super) fn config(&mut self, node: &Node<'_>) -> Option<&'m Config> {
        if self.made.is_none() {
            let mut config = self.base;
            if let Window::Segments { peer, .. } = self.window {
                node.global_address()?;
                let [mss, rmss] = node.mss_with((peer, 0), &config);
                if mss == 0 {
                    return None;
                }
                config.rmss = rmss.min(self.base.rmss);
                config.smss = mss.min(self.base.smss);
            }
            config.accept_window = self.received_bytes(&config);
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

    fn received_bytes(&self, config: &Config) -> u16 {
        let window = self.window_bytes(config.rmss, config.timestamps);
        self.receiving.unwrap_or(window)
    }

    pub(super) fn buffers(&self, config: &Config) -> Buffers<'m> {
        let sent = self.window_bytes(config.smss, config.timestamps);
        let received = self.received_bytes(config);
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
    /// Sender: when the peer's FIN arrived, after the peer has read everything. Receiver: when the
    /// end of the content was read.
    pub finished: Option<Instant>,
    /// Why the connection ended before that.
    pub error: Option<tcp::Error>,
    /// The connection is over at this end.
    pub closed: bool,
    /// Whether the connection was established, and has not ended well since.
    pub is_open: bool,
    /// Connections before this one that were established and lost.
    pub lost: u32,
    /// The connection's telemetry when it was last looked at.
    pub telemetry: tcp::Telemetry,
}

/// An application's connection, and the one after it where that begins anew.
#[derive(Debug)]
pub(super) struct Line<'m> {
    ends: Ends<'m>,
    pub(super) handle: Option<Handle>,
    listener: Option<ListenerHandle>,
    /// Buffers of the connection before.
    spare: Option<Buffers<'m>>,
    /// Whether another connection follows one that is lost.
    begins_anew: bool,
    /// When the end tries again to connect.
    retries_at: Option<Instant>,
}

impl<'m> Line<'m> {
    pub(super) fn new(ends: Ends<'m>) -> Self {
        Self {
            ends,
            handle: None,
            listener: None,
            spare: None,
            begins_anew: false,
            retries_at: None,
        }
    }

    /// Lets another connection follow one that is lost.
    pub(super) fn begin_anew(&mut self) {
        self.begins_anew = true;
    }

    /// When the end tries again to connect, if it waits for that.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.retries_at.filter(|_| self.handle.is_none())
    }

    /// Opens a connection; none while the node has no address, after which it calls again.
    pub(super) fn connect(
        &mut self,
        to: (Ipv6Addr, u16),
        progress: &mut Progress,
        node: &mut Node<'m>,
        now: Instant,
    ) -> Option<Handle> {
        if self.retries_at.is_some_and(|at| now < at) {
            return None;
        }
        node.global_address()?;
        let config = self.ends.config(node)?;
        let buffers = self.buffers(config);
        match node.connect(to, buffers, config, now) {
            Ok(handle) => {
                self.handle = Some(handle);
                progress.began.get_or_insert(now);
            }
            Err(rejected) if self.begins_anew => {
                self.spare = Some(rejected.buffers);
                self.retries_at = Some(now + RETRY_AFTER);
            }
            // The plan is at fault, nothing that waiting would change.
            Err(_) => progress.closed = true,
        }
        self.handle
    }

    /// Listens, and waits for a connection; `None` while the node has no address. The caller
    /// repeats the call later.
    pub(super) fn accept(
        &mut self,
        port: u16,
        progress: &mut Progress,
        node: &mut Node<'m>,
        now: Instant,
    ) -> Option<Handle> {
        let config = self.ends.config(node)?;
        let tcp = node.tcp_mut();
        if self.listener.is_none() {
            self.listener = tcp.listen(None, port, config).ok();
        }
        let Some(listener) = self.listener else {
            progress.closed = true;
            return None;
        };
        // In advance: the peer's first segment may end the handshake and carry data.
        match tcp.accept(listener, self.buffers(config), now) {
            Ok(handle) => self.handle = Some(handle),
            // The place of the connection before is free once its reset has gone out.
            Err(rejected) if self.begins_anew => self.spare = Some(rejected.buffers),
            Err(_) => progress.closed = true,
        }
        self.handle
    }

    fn buffers(&mut self, config: &Config) -> Buffers<'m> {
        let spare = self.spare.take();
        spare.unwrap_or_else(|| self.ends.buffers(config))
    }

    /// Whether the peer, which has lost its end, has come back for another connection.
    pub(super) fn is_called_again(&self, tcp: &tcp::Tcp<'_>) -> bool {
        let waits = || self.listener.is_some_and(|own| tcp.can_accept(own));
        self.begins_anew && self.handle.is_some() && waits()
    }

    /// Releases a connection that was lost, if another one is to replace it; returns whether one
    /// is.
    pub(super) fn let_go(
        &mut self,
        progress: &mut Progress,
        tcp: &mut tcp::Tcp<'m>,
        now: Instant,
    ) -> bool {
        if !self.begins_anew || progress.finished.is_some() {
            return false;
        }
        self.forget(progress, tcp);
        self.retries_at = Some(now + RETRY_AFTER);
        true
    }

    /// The node is switched off: its connection is gone, and what listened too.
    pub(super) fn switch_off(&mut self, progress: &mut Progress, node: &mut Node<'m>) {
        if self.handle.is_some() {
            self.forget(progress, node.tcp_mut());
        }
        self.listener = None;
        self.retries_at = None;
    }

    /// Takes the buffers back, and begins to count anew.
    pub(super) fn forget(&mut self, progress: &mut Progress, tcp: &mut tcp::Tcp<'m>) {
        progress.lost += u32::from(progress.is_open);
        progress.is_open = false;
        progress.closed = false;
        progress.error = None;
        progress.telemetry = tcp::Telemetry::default();
        if let Some(handle) = self.handle.take() {
            tcp.abort(handle);
            self.spare = tcp.remove(handle).or(self.spare.take());
        }
    }
}

/// Notes how a connection does, and whether it is over.
pub(super) fn observe(progress: &mut Progress, tcp: &tcp::Tcp<'_>, handle: Handle, end: RecvError) {
    if let RecvError::Failed(error) = end {
        progress.error.get_or_insert(error);
    }
    match tcp.connection(handle) {
        None => progress.closed = true,
        Some(connection) => {
            progress.telemetry = connection.telemetry();
            progress.is_open |= connection.is_established();
            progress.is_open &= progress.finished.is_none();
            progress.closed = matches!(connection.state(), State::Closed | State::TimeWait);
        }
    }
}

/// How long an application waits before it connects again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Linux's least delayed-ACK timer, which it uses whatever the RTT (`TCP_DELACK_MIN`).
const LINUX_ACK_DELAY_MS: u16 = 40;

/// A host's buffers, bytes: more than any mesh fills, and half of the largest window without
/// scaling.
const HOST_WINDOW: u16 = 32_768;

/// Bytes of each segment that the timestamps option takes (RFC 7323 appendix A).
const TIMESTAMPS_LEN: u16 = 12;
