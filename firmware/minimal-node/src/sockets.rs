//! TCP of a small node: one connection, one listener.

use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{Buffers, Config, HalfOpen, Listener, Memory, Slot, Tcp};
use motet::time::Instant;

use crate::{Layers, Tables, interface, leaf};

/// Each of a connection's two buffers, bytes; eight ninths of the one for what arrives are
/// the window.
pub const BUFFER_LEN: usize = 2048;

/// The settings of every connection here.
pub static SETTINGS: Config = Config {
    accept_window: (BUFFER_LEN * 8 / 9) as u16,
    ..Config::DEFAULT
};

/// TCP's tables. By themselves, because they do not start as zeros: what lies in one static
/// with them costs flash, too.
pub struct Sockets {
    connections: [Slot<'static>; 1],
    listeners: [Listener<'static>; 1],
    half_open: [HalfOpen; 2],
}

pub(crate) struct Bytes {
    send: [u8; BUFFER_LEN],
    recv: [u8; BUFFER_LEN],
}

impl Sockets {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        connections: [Slot::EMPTY],
        listeners: [Listener::EMPTY],
        half_open: [HalfOpen::EMPTY; 2],
    };
}

impl Bytes {
    pub(crate) const EMPTY: Self = Self {
        send: [0; BUFFER_LEN],
        recv: [0; BUFFER_LEN],
    };
}

/// Puts a leaf node together; gives it and the buffers for its one connection.
// Out of line, so that its temporaries do not stay on `main`'s stack.
#[inline(never)]
pub fn start(
    tables: &'static mut Tables,
    sockets: &'static mut Sockets,
    bytes: &'static mut crate::Bytes,
    layers: &'static mut Layers,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> (&'static mut Node<'static>, Buffers<'static>) {
    let mut rng = Rng::from_seed(seed);
    let radio = interface(tables, &mut bytes.radio, eui64, &mut rng);
    let interfaces = layers.interfaces.write([radio]);
    let memory = Memory {
        connections: &mut sockets.connections,
        listeners: &mut sockets.listeners,
        half_open: &mut sockets.half_open,
    };
    let tcp = Tcp::new(memory, &mut rng);
    let node = layers
        .node
        .write(Node::new(interfaces, leaf(), tcp, rng, now));
    let buffers = Buffers::new(&mut bytes.sockets.send, &mut bytes.sockets.recv);
    (node, buffers)
}
