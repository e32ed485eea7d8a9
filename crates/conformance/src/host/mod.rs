//! A host in virtual time: sockets above one [`Tcp`], packets below it.
//!
//! Place: both runners sit on this host. The one in process calls it from a script; the library
//! that packetdrill loads calls it from packetdrill's interface. This file alone decides what a
//! call returns, when a segment leaves and what the segment looks like.
//!
//! Time stands still until [`Host::advance_to`]; timers on the way fire at their own time. A call
//! that would block fails with [`Fail::Block`], and the runner repeats it after the next event.
//!
//! Left out: threads, real descriptors, shell commands.

mod burst;
mod calls;
pub use calls::How;
mod edge;
mod errno;
mod freebsd;
mod growth;
mod network;
mod options;
mod pipe;
mod ready;
mod settings;
mod state;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv6Addr;

use bumpalo::Bump;
use motet::random::Rng;
use motet::tcp::{
    Buffers, Config, Connection, HalfOpen, Handle, Listener, ListenerHandle, Memory, Slot, State,
    Tcp, recv_memory_len,
};
use motet::time::Instant;

use edge::{Edge, Flow};
pub use errno::Errno;
pub use freebsd::Knobs;
pub use options::{OptionValue, SocketOptions};
pub use ready::{
    EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP,
};
pub use settings::{LOCAL, Profile, REMOTE, Settings};
pub use state::TcpInfo;

use crate::packet::{ACK, FIN, HOP_LIMIT, Packet, RST, SYN};

/// Why a call has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fail {
    /// The call failed.
    Errno(Errno),
    /// A blocking socket has nothing to return yet.
    Block,
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// The result of a call.
pub type Outcome = Result<i64, Fail>;

/// A packet that the stack sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When the packet was sent.
    pub at: Instant,
    /// The bytes of the whole IPv6 packet.
    pub bytes: Vec<u8>,
}

/// A connection, as its socket sees it.
#[derive(Debug)]
struct Stream {
    handle: Handle,
    options: SocketOptions,
    /// Bytes taken from the engine that the application has not read: a socket buffer beyond
    /// 65,535 bytes.
    staged: VecDeque<u8>,
    /// How many bytes may be staged.
    stage_max: usize,
    /// Bytes of the socket's receive buffer as `SO_RCVBUF` shows them.
    recv_space: u32,
    /// How the connection came to be.
    opening: Opening,
    /// A second `connect` has returned that the first one succeeded.
    connect_told: bool,
    /// The error was given to the application.
    error_told: bool,
    /// `shutdown` closed the reading half.
    read_closed: bool,
    /// The errno for the last ICMPv6 error.
    icmp_errno: Option<Errno>,
    /// An error of the host's own, of which the engine does not know.
    lent_error: Option<Errno>,
}

/// How a socket's connection is opened (RFC 9293 §3.5): its settings depend on that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opening {
    /// The socket listens.
    Listening,
    /// An active open that has not connected yet.
    Connecting,
    /// An active open that has connected.
    Connected,
    /// A passive open: accepted, or still in the handshake.
    Accepted,
}

#[derive(Debug)]
enum Kind {
    /// Neither connected nor listening; perhaps bound to a port.
    Fresh,
    Listening {
        listener: ListenerHandle,
        /// Connections lent in advance, and those whose handshake is done.
        waiting: Vec<Stream>,
        ready: VecDeque<Stream>,
    },
    Connected(Stream),
    Epoll(ready::Epoll),
    Pipe(pipe::End),
}

#[derive(Debug)]
struct File {
    kind: Kind,
    options: SocketOptions,
    port: u16,
    nonblocking: bool,
}

/// A host: sockets over this stack's TCP, without a kernel.
pub struct Host<'m> {
    arena: &'m Bump,
    /// The host's settings.
    pub settings: Settings,
    tcp: Tcp<'m>,
    now: Instant,
    files: BTreeMap<i32, File>,
    /// Connections whose descriptor is closed.
    orphans: Vec<Stream>,
    /// The bytes in each pipe.
    pipes: Vec<VecDeque<u8>>,
    edge: Edge,
    /// The last numbers sent on each flow, for the profile `freebsd`.
    seen: HashMap<Flow, freebsd::Seen>,
    /// The segment that came last bears SYN or RST.
    is_challenged: bool,
    /// The flow whose peer's FIN came last, for the profile `linux`.
    fin_answered: Option<Flow>,
    peer_mss: HashMap<Flow, u16>,
    /// The traffic of each flow in both directions, for `TCP_INFO`.
    traffic: HashMap<Flow, state::Traffic>,
    sent: VecDeque<Sent>,
    scratch: Vec<u8>,
    runaway: bool,
    next_port: u16,
}

impl<'m> Host<'m> {
    /// A host whose memory comes from `arena`, at `now`.
    pub fn new(arena: &'m Bump, settings: Settings, now: Instant) -> Self {
        let memory = Memory {
            connections: arena.alloc_slice_fill_with(CONNECTIONS_MAX, |_| Slot::EMPTY),
            listeners: arena.alloc_slice_fill_with(LISTENERS_MAX, |_| Listener::EMPTY),
            half_open: arena.alloc_slice_fill_with(HALF_OPEN_MAX, |_| HalfOpen::EMPTY),
        };
        let mut rng = Rng::from_seed(SEED);
        Self {
            arena,
            settings,
            tcp: Tcp::new(memory, &mut rng),
            now,
            files: BTreeMap::new(),
            orphans: Vec::new(),
            pipes: Vec::new(),
            edge: Edge::default(),
            seen: HashMap::new(),
            is_challenged: false,
            fin_answered: None,
            peer_mss: HashMap::new(),
            traffic: HashMap::new(),
            sent: VecDeque::new(),
            scratch: vec![0; 65_536 + 60],
            runaway: false,
            next_port: 49_152,
        }
    }

    // ---- time ----

    /// The present of the script's virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// When the next timer fires, if one runs.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.tcp.next_deadline().map(|at| at.max(self.now))
    }

    /// Lets time pass until `at`; timers on the way fire.
    pub fn advance_to(&mut self, at: Instant) {
        let mut fired = 0;
        while let Some(deadline) = self.next_deadline().filter(|deadline| *deadline <= at) {
            self.now = deadline;
            self.pump();
            fired += 1;
            if fired > TIMERS_MAX {
                self.runaway = true;
                break;
            }
        }
        self.now = self.now.max(at);
    }

    /// Whether the stack sent or woke without end: a defect of the stack.
    pub const fn is_runaway(&self) -> bool {
        self.runaway
    }

    // ---- packets ----

    /// The next packet that the stack has sent.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// The next packet, left in its place.
    pub fn peek_sent(&self) -> Option<&Sent> {
        self.sent.front()
    }

    // ---- connections ----

    /// Stages what the engine received beyond its own buffer, notes finished handshakes, and
    /// frees what is over.
    fn note_changes(&mut self) {
        let host = HostState {
            tcp: &mut self.tcp,
            arena: self.arena,
            settings: &self.settings,
            peer_mss: &self.peer_mss,
            now: self.now,
        };
        let mut host = host;
        for file in self.files.values_mut() {
            match &mut file.kind {
                Kind::Connected(stream) => host.note(stream),
                Kind::Listening { waiting, ready, .. } => {
                    let done = |tcp: &Tcp<'m>, stream: &Stream| {
                        let connection = tcp.connection(stream.handle);
                        connection.is_none_or(|c| c.state() != State::Listen)
                    };
                    while let Some(at) = waiting.iter().position(|s| done(host.tcp, s)) {
                        ready.push_back(waiting.remove(at));
                    }
                    for stream in ready.iter_mut() {
                        host.note(stream);
                    }
                }
                Kind::Fresh | Kind::Epoll(_) | Kind::Pipe(_) => {}
            }
        }
        for stream in &mut self.orphans {
            host.note(stream);
        }
        let tcp = &mut self.tcp;
        self.orphans.retain(|stream| {
            let state = tcp.connection(stream.handle).map(Connection::state);
            let over = matches!(state, None | Some(State::Closed));
            // A reset may still be due: the engine gives the buffers back, and sends it.
            if over {
                tcp.remove(stream.handle);
            }
            !over
        });
    }

    fn streams(&self) -> impl Iterator<Item = (Option<i32>, &Stream)> {
        let files = self.files.iter().flat_map(|(fd, file)| {
            let (one, many) = match &file.kind {
                Kind::Connected(stream) => (Some((Some(*fd), stream)), None),
                Kind::Listening { ready, .. } => (None, Some(ready.iter())),
                Kind::Fresh | Kind::Epoll(_) | Kind::Pipe(_) => (None, None),
            };
            one.into_iter()
                .chain(many.into_iter().flatten().map(|stream| (None, stream)))
        });
        files.chain(self.orphans.iter().map(|stream| (None, stream)))
    }

    fn stream_of(&mut self, flow: Flow) -> Option<&mut Stream> {
        let tcp = &self.tcp;
        let is_it = |stream: &Stream| {
            tcp.connection(stream.handle).is_some_and(|connection| {
                let ends = connection.endpoints();
                (ends.remote, ends.remote_port, ends.local_port) == flow
            })
        };
        for file in self.files.values_mut() {
            let found = match &mut file.kind {
                Kind::Connected(stream) if is_it(stream) => Some(stream),
                Kind::Listening { waiting, ready, .. } => {
                    let mut all = ready.iter_mut().chain(waiting.iter_mut());
                    all.find(|stream| is_it(stream))
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        self.orphans.iter_mut().find(|stream| is_it(stream))
    }

    /// Traffic class and hop limit of what is sent on a flow.
    fn marks_of(&mut self, flow: Flow) -> (u8, u8) {
        if let Some(stream) = self.stream_of(flow) {
            return (stream.options.traffic_class, stream.options.hop_limit);
        }
        let mut files = self.files.values();
        let listening =
            files.find(|f| matches!(f.kind, Kind::Listening { .. }) && f.port == flow.2);
        listening.map_or((0, HOP_LIMIT), |file| {
            (file.options.traffic_class, file.options.hop_limit)
        })
    }

    fn buffers(&self, options: &SocketOptions) -> Buffers<'m> {
        let window = options.recv_space.min(65_535) as u16;
        let send = options.send_space.min(65_535) as usize;
        let send = self.arena.alloc_slice_fill_copy(send, 0);
        let recv = self.arena.alloc_slice_fill_copy(recv_memory_len(window), 0);
        Buffers::new(send, recv)
    }

    /// The engine's settings for a socket.
    fn config(&self, options: &SocketOptions, opening: Opening) -> &'m Config {
        self.arena
            .alloc(config_of(&self.settings, options, opening))
    }
}

/// The parts of a host, beside the sockets, that [`Host::note_changes`] uses.
struct HostState<'a, 'm> {
    tcp: &'a mut Tcp<'m>,
    arena: &'m Bump,
    settings: &'a Settings,
    peer_mss: &'a HashMap<Flow, u16>,
    now: Instant,
}

impl HostState<'_, '_> {
    fn note(&mut self, stream: &mut Stream) {
        let Some(connection) = self.tcp.connection(stream.handle) else {
            return;
        };
        let state = connection.state();
        if matches!(state, State::Listen | State::SynSent | State::Closed) {
            return;
        }
        if self.settings.lender() == Profile::FreeBsd && stream.stage_max == 0 {
            let ends = connection.endpoints();
            let flow = (ends.remote, ends.remote_port, ends.local_port);
            let theirs = self.peer_mss.get(&flow).copied().unwrap_or(MSS_DEFAULT);
            let mss = u32::from(theirs.min(self.settings.config.smss).max(1));
            stream.recv_space = stream.options.recv_space.next_multiple_of(mss);
            stream.stage_max = stream.recv_space.saturating_sub(65_535) as usize;
        }
        if stream.opening == Opening::Connecting && state != State::SynReceived {
            stream.opening = Opening::Connected;
            let config = config_of(self.settings, &stream.options, stream.opening);
            self.tcp
                .set_config(stream.handle, self.arena.alloc(config), self.now);
        }
        while stream.staged.len() < stream.stage_max {
            let mut bytes = [0; 512];
            let most = (stream.stage_max - stream.staged.len()).min(bytes.len());
            let room = bytes.get_mut(..most).unwrap_or_default();
            match self.tcp.recv(stream.handle, room) {
                Ok(count) => stream.staged.extend(bytes.get(..count).unwrap_or_default()),
                Err(_) => return,
            }
        }
    }
}

fn config_of(settings: &Settings, options: &SocketOptions, opening: Opening) -> Config {
    let connects = opening == Opening::Connecting;
    let mut config = settings.config;
    config.nagle = !options.nodelay;
    let (idle, interval, probes) = options.keepalive_times;
    config.keepalive_idle_s = if options.keepalive { idle } else { 0 };
    config.keepalive_interval_s = interval;
    config.keepalive_probes = probes;
    config.user_timeout_ms = match connects {
        true if options.connect_timeout_ms != 0 => options.connect_timeout_ms,
        _ => options.user_timeout_ms,
    };
    if let Some(mss) = options.mss_max {
        config.rmss = config.rmss.min(mss);
        config.smss = config.smss.min(mss);
    }
    config.accept_window = options.recv_space.min(65_535) as u16;
    config.ecn = settings.config.ecn && (!connects || settings.ecn_active);
    // Both systems measure the round trip of a handshake; the engine does not, for on a mesh data
    // take far longer than a handshake. FreeBSD does not measure that of a SYN-ACK.
    let believes = match settings.lender() {
        Profile::Motet => false,
        Profile::FreeBsd => opening == Opening::Connected,
        Profile::Linux => matches!(opening, Opening::Connected | Opening::Accepted),
    };
    if believes {
        config.rto_initial_ms = config.rto_min_ms;
    }
    config
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("now", &self.now)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// Whether a segment opens a connection.
pub(crate) const fn is_opening(flags: u16) -> bool {
    flags & (SYN | ACK) == SYN
}

/// Seed of the random choices: scripts must not depend on them, and runs must repeat.
const SEED: [u64; 2] = [0x6d6f_7465_742d_7464, 0x2026];
const CONNECTIONS_MAX: usize = 64;
const LISTENERS_MAX: usize = 16;
const HALF_OPEN_MAX: usize = 32;
/// Timers that may fire in one stretch of time, and segments sent at one instant: far above
/// what any script provokes, to catch a stack that never comes to rest.
const TIMERS_MAX: usize = 1_000_000;
const SEGMENTS_MAX: usize = 4_096;
/// The MSS of a peer that names none (RFC 9293 §3.7.1).
const MSS_DEFAULT: u16 = 1220;

/// The address a connection's peer has.
pub type Address = (Ipv6Addr, u16);
