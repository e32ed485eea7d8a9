//! What the images share: a small node's memory, how it is put together, the radio.
#![no_std]

pub mod radio;
#[cfg(feature = "tcp")]
mod sockets;

use core::mem::MaybeUninit;

use motet::ip::{self, Ip};
use motet::lowpan::datagram::{Datagrams, Record};
use motet::mac::{self, FrameSlot, Mac, Neighbor};
use motet::link::{Link, MeshConfig, MeshMemory};
use motet::node::Node;
use motet::random::Rng;
use motet::storage::packet_queue::PacketQueue;
use motet::time::Instant;

use radio::Radio;
#[cfg(feature = "tcp")]
pub use sockets::{BUFFER_LEN, SETTINGS, Sockets, start};

/// What a node keeps lists in, TCP's aside.
pub struct Tables {
    /// Frames waiting for the air: one segment of five and a little control traffic.
    frames: [FrameSlot; 8],
    neighbors: [Neighbor; 4],
    /// Packets arriving in pieces.
    records: [Record; 2],
}

/// What a node keeps packets and streams in.
pub struct Bytes {
    radio: RadioBytes,
    #[cfg(feature = "tcp")]
    sockets: sockets::Bytes,
}

/// Where the layers themselves live.
pub struct Layers {
    interfaces: MaybeUninit<[Interface<'static>; 1]>,
    node: MaybeUninit<Node<'static>>,
}

struct RadioBytes {
    /// The packet being cut into fragments.
    outgoing: [u8; 1280],
    /// A packet being put together from them.
    body: [u8; 1280],
    /// Control packets waiting to be sent.
    queue: [u8; 256],
}

impl Tables {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        frames: [FrameSlot::EMPTY; 8],
        neighbors: [Neighbor::EMPTY; 4],
        records: [Record::EMPTY; 2],
    };
}

impl Bytes {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        radio: RadioBytes {
            outgoing: [0; 1280],
            body: [0; 1280],
            queue: [0; 256],
        },
        #[cfg(feature = "tcp")]
        sockets: sockets::Bytes::EMPTY,
    };
}

impl Layers {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        interfaces: MaybeUninit::uninit(),
        node: MaybeUninit::uninit(),
    };
}

/// Puts a leaf node without TCP together.
// Out of line, so that its temporaries do not stay on `main`'s stack.
#[inline(never)]
pub fn start_without_tcp(
    tables: &'static mut Tables,
    bytes: &'static mut Bytes,
    layers: &'static mut Layers,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> &'static mut Node<'static> {
    let mut rng = Rng::from_seed(seed);
    let radio = interface(tables, &mut bytes.radio, eui64, &mut rng);
    let interfaces = layers.interfaces.write([radio]);
    layers
        .node
        .write(Node::without_tcp(interfaces, leaf(), rng, now))
}

fn interface(
    tables: &'static mut Tables,
    bytes: &'static mut RadioBytes,
    eui64: [u8; 8],
    rng: &mut Rng,
) -> Interface<'static> {
    let mut settings = mac::Config::new(PAN, eui64);
    settings.reserve_forward = 0;
    let mac = Mac::new(
        settings,
        Radio::CAPABILITIES,
        &mut tables.frames,
        &mut tables.neighbors,
        rng,
    );
    let body_len = bytes.body.len();
    let memory = MeshMemory {
        outgoing: &mut bytes.outgoing,
        datagrams: Datagrams::new(&mut tables.records, &mut bytes.body, body_len, false, rng),
        queue: PacketQueue::new(&mut bytes.queue),
    };
    Link::Mesh(motet::link::Mesh::new(MeshConfig::default(), mac, memory))
}

/// A host that passes nothing on.
fn leaf() -> Ip<'static> {
    Ip::new(ip::Config::default(), &mut [])
}

/// The PAN that all images are in.
const PAN: u16 = 0x4d54;
