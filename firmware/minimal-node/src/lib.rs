//! What the images share: how a small node is put together, and the radio's registers.
#![no_std]

pub mod radio;

use core::mem::MaybeUninit;

use motet::ip::{self, Ip};
use motet::lowpan::datagram::{Datagrams, Record};
use motet::mac::{self, FrameSlot, Mac, Neighbor, RadioCapabilities};
use motet::node::{Interface, Node, Radio, RadioConfig, RadioMemory};
use motet::random::Rng;
use motet::storage::packet_queue::PacketQueue;
use motet::tcp::{self, Tcp};
use motet::time::Instant;

/// The memory of a node with one radio, all of it static.
pub struct Memory {
    /// Frames waiting for the air.
    pub frames: &'static mut [FrameSlot],
    /// What the MAC knows of its neighbours.
    pub neighbors: &'static mut [Neighbor],
    /// The packet being fragmented.
    pub outgoing: &'static mut [u8],
    /// Packets arriving in pieces.
    pub records: &'static mut [Record],
    /// Room for one of them to become whole.
    pub body: &'static mut [u8],
    /// Control packets waiting to be sent.
    pub queue: &'static mut [u8],
    /// Connections, listeners, handshakes.
    pub tcp: tcp::Memory<'static>,
    /// Where the interface itself lives.
    pub interfaces: &'static mut MaybeUninit<[Interface<'static>; 1]>,
    /// Where the node itself lives.
    pub node: &'static mut MaybeUninit<Node<'static>>,
}

/// Puts a leaf node together: a host that passes nothing on.
pub fn start(
    memory: Memory,
    eui64: [u8; 8],
    radio: RadioCapabilities,
    seed: [u64; 2],
    now: Instant,
) -> &'static mut Node<'static> {
    let mut rng = Rng::from_seed(seed);
    let mut settings = mac::Config::new(PAN, eui64);
    settings.reserve_forward = 0;
    let mac = Mac::new(settings, radio, memory.frames, memory.neighbors, &mut rng);
    let body_len = memory.body.len();
    let radio_memory = RadioMemory {
        outgoing: memory.outgoing,
        datagrams: Datagrams::new(memory.records, memory.body, body_len, false, &mut rng),
        queue: PacketQueue::new(memory.queue),
    };
    let interface = Radio::new(RadioConfig::default(), mac, radio_memory);
    let interfaces = memory.interfaces.write([Interface::Radio(interface)]);
    let tcp = Tcp::new(memory.tcp, &mut rng);
    let ip = Ip::new(ip::Config::default(), &mut []);
    memory.node.write(Node::new(interfaces, ip, tcp, rng, now))
}

/// The PAN that all images are in.
const PAN: u16 = 0x4d54;
