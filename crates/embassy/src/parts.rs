//! The parts of a [`Stack`](crate::Stack) beside its links: the same above a radio and above
//! another stack.

use core::cell::RefCell;

use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{self, Buffers};

use crate::config::StackConfig;
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
    pub(crate) config: StackConfig,
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
        salt,
        config,
    } = parts;
    Shared {
        // Apart from the node's own numbers, and from those of a node with the same seed.
        names: RefCell::new(Names {
            rng: Rng::from_seed([a ^ salt, !b]),
            known: config.names,
            resolver: config.resolver,
            timeout: config.resolve_timeout,
        }),
        state: RefCell::new(StackState::new(node, connections, spare, queues, tcp)),
        connect_timeout: config.connect_timeout,
        slot_timeout: config.slot_timeout,
        #[cfg(feature = "sleepy")]
        passes_on: config.ip.forwards,
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
