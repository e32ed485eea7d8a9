//! What the images share: the radio, and what a small mote is.
#![no_std]

// Only Armv6-M: of the cores with this instruction set it alone has no compare-and-swap.
#[cfg(all(target_arch = "arm", not(target_has_atomic = "32")))]
mod division;
#[cfg(all(target_arch = "arm", not(target_has_atomic = "32")))]
mod memory;
pub mod radio;

use core::mem::MaybeUninit;

#[cfg(feature = "ble")]
use motet::ble::{Config as HostConfig, DeviceAddr, GapRole, INWARD_LEN, Peer, PeerMemory};
use motet::ip::{self, Ip, Route};
#[cfg(feature = "ble")]
use motet::limits::IPV6_MTU_MIN;
#[cfg(feature = "tcple")]
use motet::link::TcpleMemory;
#[cfg(feature = "ble")]
use motet::link::{Ble, BleConfig, BleMemory};
use motet::link::{Link, Mesh, MeshConfig, MeshStorage};
use motet::mac;
use motet::mote::{MoteConfig, MoteStorage};
use motet::node::Node;
use motet::random::Rng;
#[cfg(feature = "tcp-small")]
use motet::tcp::{Buffers, Config, Memory, Slot, Tcp};
#[cfg(feature = "tcple")]
use motet::tcple::{HELD_LEN, HeldSlot, TcpleConnection};
use motet::time::Instant;

use radio::Radio;

/// Each of a connection's two buffers, bytes; eight ninths of the one for what arrives are
/// the window.
pub const BUFFER_LEN: usize = 2048;

/// All memory of a leaf with one connection.
pub type Storage = MoteStorage<'static, 1, BUFFER_LEN>;

/// All memory of a router with eight neighbours that speaks no TCP.
pub struct RouterStorage {
    mesh: MeshStorage<8, 8, 4, 1, 256, 8>,
    routes: [Option<Route>; 8],
    links: MaybeUninit<[Link<'static>; 1]>,
    node: MaybeUninit<Node<'static>>,
}

impl RouterStorage {
    /// Not lent yet.
    pub const EMPTY: Self = Self {
        mesh: MeshStorage::EMPTY,
        routes: [None; 8],
        links: MaybeUninit::uninit(),
        node: MaybeUninit::uninit(),
    };
}

/// All memory of a leaf with a connection of TCP, without its buffers, that has a link of IEEE
/// 802.15.4 and, with the feature `ble`, one over Bluetooth LE to one router.
#[cfg(feature = "tcp-small")]
pub struct TwoLinks {
    mesh: MeshStorage<8, 8, 4, 1, 256, 8>,
    #[cfg(feature = "ble")]
    ble: BleStorage,
    routes: [Option<Route>; ROUTES],
    connections: [Slot<'static>; 1],
    links: MaybeUninit<[Link<'static>; LINKS]>,
    node: MaybeUninit<Node<'static>>,
}

/// The memory of a link over Bluetooth LE to one device.
#[cfg(feature = "ble")]
struct BleStorage {
    inward: [u8; INWARD_LEN],
    outward: [u8; IPV6_MTU_MIN],
    waiting: [u8; IPV6_MTU_MIN],
    queue: [u8; IPV6_MTU_MIN],
    peers: MaybeUninit<[Peer<'static>; 1]>,
    #[cfg(feature = "tcple")]
    tcple: TcpleStorage,
}

/// The memory of TCPlE on such a link, with two places for prefetched segments.
#[cfg(feature = "tcple")]
struct TcpleStorage {
    sides: [TcpleConnection; 1],
    segments: [[u8; HELD_LEN]; 2],
    held: MaybeUninit<[HeldSlot<'static>; 2]>,
}

#[cfg(feature = "tcp-small")]
const LINKS: usize = 1 + cfg!(feature = "ble") as usize;

/// A leaf has none.
#[cfg(feature = "tcp-small")]
const ROUTES: usize = if cfg!(feature = "relay") { 8 } else { 0 };

#[cfg(feature = "tcp-small")]
impl TwoLinks {
    /// Not lent yet.
    pub const EMPTY: Self = Self {
        mesh: MeshStorage::EMPTY,
        #[cfg(feature = "ble")]
        ble: BleStorage {
            inward: [0; INWARD_LEN],
            outward: [0; IPV6_MTU_MIN],
            waiting: [0; IPV6_MTU_MIN],
            queue: [0; IPV6_MTU_MIN],
            peers: MaybeUninit::uninit(),
            #[cfg(feature = "tcple")]
            tcple: TcpleStorage {
                sides: [TcpleConnection::EMPTY],
                segments: [[0; HELD_LEN]; 2],
                held: MaybeUninit::uninit(),
            },
        },
        routes: [None; ROUTES],
        connections: [Slot::EMPTY],
        links: MaybeUninit::uninit(),
        node: MaybeUninit::uninit(),
    };
}

/// The settings of every connection here.
#[cfg(feature = "tcp-small")]
pub static SETTINGS: Config = Config {
    accept_window: (BUFFER_LEN * 8 / 9) as u16,
    ..Config::DEFAULT
};

/// A leaf, and the buffers for its connection.
// Out of line, so that its settings do not stay on the stack of `main`.
#[cfg(feature = "tcp-small")]
#[inline(never)]
pub fn start(
    storage: &'static mut Storage,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> (&'static mut Node<'static>, Buffers<'static>) {
    let lent = storage.lend(&leaf(eui64, seed), now);
    let (node, [buffers]) = lent.unwrap_or_else(|unfit| stop(unfit));
    (node, buffers)
}

/// As `start`, of a leaf that speaks no TCP.
#[inline(never)]
pub fn start_without_tcp(
    storage: &'static mut Storage,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> &'static mut Node<'static> {
    let lent = storage.lend_without_tcp(&leaf(eui64, seed), now);
    lent.unwrap_or_else(|unfit| stop(unfit))
}

/// Nothing can be done on a device whose radio does not fit its settings. This one does, which the
/// compiler finds out.
fn stop(_unfit: mac::Unfit) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// A node that passes packets on for others and speaks no TCP.
#[inline(never)]
pub fn start_router(
    storage: &'static mut RouterStorage,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> &'static mut Node<'static> {
    let mut rng = Rng::from_seed(seed);
    let config = mac::Config::new(PAN, eui64);
    let radio = (config, Radio::CAPABILITIES);
    let memory = storage.mesh.lend();
    let mesh = Mesh::new(MeshConfig::default(), radio, memory, &mut rng);
    let mesh = mesh.unwrap_or_else(|unfit| stop(unfit));
    let links = storage.links.write([Link::Mesh(mesh)]);
    let config = ip::Config {
        forwards: true,
        ..ip::Config::default()
    };
    let ip = Ip::new(config, &mut storage.routes);
    storage.node.write(Node::without_tcp(links, ip, rng, now))
}

/// A node with every link that the build has; with the feature `relay` it passes packets on.
#[cfg(feature = "tcp-small")]
#[inline(never)]
pub fn start_two_links(
    storage: &'static mut TwoLinks,
    eui64: [u8; 8],
    seed: [u64; 2],
    now: Instant,
) -> &'static mut Node<'static> {
    let mut rng = Rng::from_seed(seed);
    let radio = (mac::Config::new(PAN, eui64), Radio::CAPABILITIES);
    let config = MeshConfig {
        #[cfg(feature = "full")]
        forwarding: motet::link::Forwarding::Immediate,
        ..MeshConfig::default()
    };
    let mesh = Mesh::new(config, radio, storage.mesh.lend(), &mut rng);
    let mesh = mesh.unwrap_or_else(|unfit| stop(unfit));
    let links = storage.links.write([
        Link::Mesh(mesh),
        #[cfg(feature = "ble")]
        Link::Ble(storage.ble.lend(eui64)),
    ]);
    let config = ip::Config {
        forwards: cfg!(feature = "relay"),
        ..ip::Config::default()
    };
    let ip = Ip::new(config, &mut storage.routes);
    let memory = Memory {
        connections: &mut storage.connections,
        listeners: &mut [],
        half_open: &mut [],
    };
    let tcp = Tcp::new(memory, &mut rng);
    storage.node.write(Node::new(links, ip, tcp, rng, now))
}

#[cfg(feature = "ble")]
impl BleStorage {
    fn lend(&'static mut self, eui64: [u8; 8]) -> Ble<'static> {
        let [.., a, b, c, d, e, f] = eui64;
        let address = DeviceAddr {
            bytes: [a, b, c, d, e, f],
            is_random: true,
        };
        let peers = self.peers.write([Peer::new(PeerMemory {
            inward: &mut self.inward,
            outward: &mut self.outward,
            queue: &mut self.waiting,
        })]);
        let config = BleConfig {
            host: HostConfig::new(address, GapRole::Peripheral),
            solicits: true,
            registers: true,
            advertised: None,
        };
        let memory = BleMemory {
            peers,
            queue: &mut self.queue,
            registrations: &mut [],
        };
        let link = Ble::new(config, memory);
        #[cfg(feature = "tcple")]
        let link = link.with_tcple(self.tcple.lend());
        link
    }
}

#[cfg(feature = "tcple")]
impl TcpleStorage {
    fn lend(&'static mut self) -> TcpleMemory<'static> {
        let [first, second] = &mut self.segments;
        let held = [HeldSlot::new(first), HeldSlot::new(second)];
        TcpleMemory {
            sides: &mut self.sides,
            held: self.held.write(held),
        }
    }
}

fn leaf(eui64: [u8; 8], seed: [u64; 2]) -> MoteConfig {
    let mut config = MoteConfig::new(PAN, eui64, Radio::CAPABILITIES, seed);
    // No frame of others ever waits here.
    config.mac.reserve_forward = 0;
    config
}

/// The PAN that all images are in.
const PAN: u16 = 0x4d54;
