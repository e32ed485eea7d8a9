//! What the images share: a small node's memory, how it is put together, the radio.
#![no_std]

pub mod radio;

use core::mem::MaybeUninit;

use motet::ip::{self, Ip};
use motet::lowpan::datagram::{Datagrams, Record};
use motet::mac::{self, FrameSlot, Mac, Neighbor};
use motet::node::{Interface, Node, RadioConfig, RadioMemory};
use motet::random::Rng;
use motet::storage::packet_queue::PacketQueue;
use motet::tcp::{self, Buffers, Config, HalfOpen, Listener, Slot, Tcp};
use motet::time::Instant;

use radio::Radio;

/// Each of a connection's two buffers, bytes; eight ninths of the one for what arrives are
/// the window.
pub const BUFFER_LEN: usize = 2048;

/// The settings of every connection here.
pub static SETTINGS: Config = Config {
    accept_window: (BUFFER_LEN * 8 / 9) as u16,
    ..Config::DEFAULT
};

/// What a node keeps lists in. Apart from [`Bytes`], which start as zeros and thus cost no
/// flash.
pub struct Tables {
    /// Frames waiting for the air: one segment of five and a little control traffic.
    frames: [FrameSlot; 8],
    neighbors: [Neighbor; 4],
    /// Packets arriving in pieces.
    records: [Record; 2],
    connections: [Slot<'static>; 1],
    listeners: [Listener<'static>; 1],
    half_open: [HalfOpen; 2],
}

/// What a node keeps packets and streams in.
pub struct Bytes {
    /// The packet being cut into fragments.
    outgoing: [u8; 1280],
    /// A packet being put together from them.
    body: [u8; 1280],
    /// Control packets waiting to be sent.
    queue: [u8; 256],
    send: [u8; BUFFER_LEN],
    recv: [u8; BUFFER_LEN],
}

/// Where the layers themselves live.
pub struct Layers {
    interfaces: MaybeUninit<[Interface<'static>; 1]>,
    node: MaybeUninit<Node<'static>>,
}

impl Tables {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        frames: [FrameSlot::EMPTY; 8],
        neighbors: [Neighbor::EMPTY; 4],
        records: [Record::EMPTY; 2],
        connections: [Slot::EMPTY],
        listeners: [Listener::EMPTY],
        half_open: [HalfOpen::EMPTY; 2],
    };
}

impl Bytes {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        outgoing: [0; 1280],
        body: [0; 1280],
        queue: [0; 256],
        send: [0; BUFFER_LEN],
        recv: [0; BUFFER_LEN],
    };
}

impl Layers {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        interfaces: MaybeUninit::uninit(),
        node: MaybeUninit::uninit(),
    };
}

/// Puts a leaf node together, a host that passes nothing on; gives it and the buffers for
/// its one connection.
// Out of line, so that its temporaries do not stay on `main`'s stack.
#[inline(never)]
pub fn start(
    tables: &'static mut Tables,
    bytes: &'static mut Bytes,
    layers: &'static mut Layers,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> (&'static mut Node<'static>, Buffers<'static>) {
    let mut rng = Rng::from_seed(seed);
    let mut settings = mac::Config::new(PAN, eui64);
    settings.reserve_forward = 0;
    let mac = Mac::new(
        settings,
        Radio::CAPABILITIES,
        &mut tables.frames,
        &mut tables.neighbors,
        &mut rng,
    );
    let body_len = bytes.body.len();
    let memory = RadioMemory {
        outgoing: &mut bytes.outgoing,
        datagrams: Datagrams::new(
            &mut tables.records,
            &mut bytes.body,
            body_len,
            false,
            &mut rng,
        ),
        queue: PacketQueue::new(&mut bytes.queue),
    };
    let radio = motet::node::Radio::new(RadioConfig::default(), mac, memory);
    let interfaces = layers.interfaces.write([Interface::Radio(radio)]);
    let memory = tcp::Memory {
        connections: &mut tables.connections,
        listeners: &mut tables.listeners,
        half_open: &mut tables.half_open,
    };
    let tcp = Tcp::new(memory, &mut rng);
    let ip = Ip::new(ip::Config::default(), &mut []);
    let node = layers.node.write(Node::new(interfaces, ip, tcp, rng, now));
    (node, Buffers::new(&mut bytes.send, &mut bytes.recv))
}

/// The PAN that all images are in.
const PAN: u16 = 0x4d54;
