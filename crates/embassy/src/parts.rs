//! The parts of a [`Stack`](crate::Stack) beside its links: the same above a radio and above
//! another stack.

use core::cell::RefCell;
use core::net::Ipv6Addr;

use embassy_time::Duration;
use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{self, Buffers};

use crate::stack::{Names, Shared};
use crate::stack_state::{AcceptQueue, ConnectionSlot, StackState};

/// The tables behind the sockets.
pub(crate) struct Tables<const CONNECTIONS: usize, const LISTENERS: usize> {
    connections: [ConnectionSlot; CONNECTIONS],
    spare: [Option<Buffers<'static>>; CONNECTIONS],
    queues: [AcceptQueue; LISTENERS],
    tcp: tcp::Config,
}

impl<const CONNECTIONS: usize, const LISTENERS: usize> Tables<CONNECTIONS, LISTENERS> {
    pub(crate) fn new(buffers: [Buffers<'static>; CONNECTIONS], tcp: tcp::Config) -> Self {
        Self {
            connections: [const { ConnectionSlot::EMPTY }; CONNECTIONS],
            spare: buffers.map(Some),
            queues: [const { AcceptQueue::EMPTY }; LISTENERS],
            tcp,
        }
    }
}

/// What [`share`] makes a stack's state of.
pub(crate) struct Parts<const CONNECTIONS: usize, const LISTENERS: usize> {
    pub(crate) node: &'static mut Node<'static>,
    pub(crate) tables: &'static mut Tables<CONNECTIONS, LISTENERS>,
    pub(crate) seed: [u64; 2],
    /// A number that no other node has, or 0.
    pub(crate) salt: u64,
    pub(crate) known: &'static [(&'static str, Ipv6Addr)],
    pub(crate) resolver: Option<Ipv6Addr>,
    pub(crate) resolve_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) slot_timeout: Duration,
    #[cfg(feature = "sleepy")]
    pub(crate) passes_on: bool,
}

/// The state that all tasks share.
pub(crate) fn share<const CONNECTIONS: usize, const LISTENERS: usize>(
    parts: Parts<CONNECTIONS, LISTENERS>,
) -> Shared {
    let Parts {
        tables:
            Tables {
                connections,
                spare,
                queues,
                tcp,
            },
        node,
        seed: [a, b],
        ..
    } = parts;
    Shared {
        // Apart from the node's own numbers, and from those of a node with the same seed.
        names: RefCell::new(Names {
            rng: Rng::from_seed([a ^ parts.salt, !b]),
            known: parts.known,
            resolver: parts.resolver,
            timeout: parts.resolve_timeout,
        }),
        state: RefCell::new(StackState::new(node, connections, spare, queues, tcp)),
        connect_timeout: parts.connect_timeout,
        slot_timeout: parts.slot_timeout,
        #[cfg(feature = "sleepy")]
        passes_on: parts.passes_on,
    }
}

/// The receive window that a buffer of `bytes` offers: what `Buffers::new` makes of that many.
pub(crate) const fn window_of(bytes: usize) -> u16 {
    let window = bytes / 9 * 8 + bytes % 9 * 8 / 9;
    if window > u16::MAX as usize {
        u16::MAX
    } else {
        window as u16
    }
}

/// What the connections of an application on a device want: answers at once, and slots that do not
/// wait for peers that are gone.
pub(crate) const SOCKETS: tcp::Config = tcp::Config {
    nagle: false,
    keepalive_idle_s: 90,
    keepalive_interval_s: 10,
    keepalive_probes: 3,
    user_timeout_ms: 60_000,
    close_timeout_ms: 60_000,
    ..tcp::Config::DEFAULT
};
