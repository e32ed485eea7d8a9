//! The memory of a node above another stack, and the call that starts it.

use core::mem::MaybeUninit;
use core::net::Ipv6Addr;

use embassy_net_driver::{Driver, HardwareAddress};
use motet::ip::{Ip, Neighbour, NextHop};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Cable, Link};
use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{self, Buffers, Tcp};
use motet::udp::Inbox;
use static_cell::ConstStaticCell;

use crate::clock::now;
use crate::config::StackConfig;
use crate::over_error::OverError;
use crate::packet_runner::PacketRunner;
use crate::parts::{Parts, Tables, share, window_of};
use crate::stack::{LINK, Shared, Stack};
use crate::udp::UDP_PORTS;

/// All memory of a node above another stack, for one static.
///
/// `CONNECTIONS`, `DATAGRAMS`, `LISTENERS` and `HALF_OPEN` are those of
/// [`Resources`](crate::Resources). `BUFFER`: half of the bytes of each connection; 16/17 of it are
/// the window each way, and the rest says which bytes have come out of order. `PACKET`: the longest
/// packet, bytes; with the driver's own limit it makes the MTU. `QUEUE`: bytes of datagrams and of
/// ICMPv6 that wait for the driver, each with six more than its packet has; by default the longest
/// payload of a datagram is 202 bytes.
pub struct PacketResources<
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize = 0,
    const LISTENERS: usize = 1,
    const HALF_OPEN: usize = 2,
    const PACKET: usize = IPV6_MTU_MIN,
    const QUEUE: usize = 256,
> {
    // One cell, because each takes code by itself.
    memory: ConstStaticCell<
        Memory<CONNECTIONS, BUFFER, DATAGRAMS, LISTENERS, HALF_OPEN, PACKET, QUEUE>,
    >,
}

struct Memory<
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
    const PACKET: usize,
    const QUEUE: usize,
> {
    tcp: tcp::Storage<'static, CONNECTIONS, 0, LISTENERS, HALF_OPEN>,
    buffers: [[[u8; BUFFER]; 2]; CONNECTIONS],
    queue: [u8; QUEUE],
    packet: [u8; PACKET],
    links: MaybeUninit<[Link<'static>; 1]>,
    node: MaybeUninit<Node<'static>>,
    tables: MaybeUninit<Tables<CONNECTIONS, LISTENERS>>,
    datagrams: ([u16; UDP_PORTS], [u8; DATAGRAMS]),
    shared: MaybeUninit<Shared>,
}

impl<
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
    const PACKET: usize,
    const QUEUE: usize,
> PacketResources<CONNECTIONS, BUFFER, DATAGRAMS, LISTENERS, HALF_OPEN, PACKET, QUEUE>
{
    /// Memory that no node uses yet. It takes no flash.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            memory: ConstStaticCell::new(Memory {
                tcp: tcp::Storage::EMPTY,
                buffers: [[[0; BUFFER]; 2]; CONNECTIONS],
                queue: [0; QUEUE],
                packet: [0; PACKET],
                links: MaybeUninit::uninit(),
                node: MaybeUninit::uninit(),
                tables: MaybeUninit::uninit(),
                datagrams: ([0; UDP_PORTS], [0; DATAGRAMS]),
                shared: MaybeUninit::uninit(),
            }),
        }
    }

    // Not inlined: what starting needs of the call stack does not stay below `main`.
    #[inline(never)]
    fn start(
        &'static self,
        mtu: usize,
        seed: [u64; 2],
        mut config: StackConfig,
    ) -> (Stack, &'static mut [u8]) {
        config.tcp.accept_window = window_of(recv_len(BUFFER));
        let memory = self.memory.take();
        let mtu = mtu.min(usize::from(u16::MAX)) as u16;
        let links = memory
            .links
            .write([Link::Cable(Cable::new(&mut memory.queue, mtu))]);
        let mut rng = Rng::from_seed(seed);
        let (tables, _) = memory.tcp.lend();
        let buffers = memory.buffers.each_mut().map(|pair| {
            let (recv, send) = pair.as_flattened_mut().split_at_mut(recv_len(BUFFER));
            Buffers::new(send, recv)
        });
        let tcp = Tcp::new(tables, &mut rng);
        let mut ip = Ip::new(config.ip, &mut []);
        ip.set_default_route(Some(NextHop {
            interface: LINK,
            neighbour: Neighbour::Only,
        }));
        let node = memory.node.write(Node::new(links, ip, tcp, rng, now()));
        if DATAGRAMS > 0 {
            let (ports, bytes) = &mut memory.datagrams;
            node.set_inbox(Inbox::with_places(ports, bytes));
        }
        let shared = share(Parts {
            node,
            tables: memory.tables.write(Tables::new(buffers, config.tcp)),
            seed,
            salt: 0,
            config,
        });
        (Stack::new(memory.shared.write(shared)), &mut memory.packet)
    }
}

/// Puts Motet's sockets above a stack that carries IPv6 packets: a [`Stack`] for the application,
/// and the [`PacketRunner`] that one task has to run.
///
/// `driver`: one of embassy-net's, of packets ([`HardwareAddress::Ip`]). `addresses`: those of the
/// driver's owner; where they change later, [`Stack::set_addresses`]. The whole link is one step
/// away: there is no neighbour discovery, and the driver's owner finds routers. `seed`: 128 bits
/// from a true source of randomness, that no other node and no other start has.
///
/// ```
/// use core::net::Ipv6Addr;
/// use motet_embassy::{OverError, PacketResources, PacketRunner, Stack, StackConfig, over};
///
/// static RESOURCES: PacketResources<2, 4096> = PacketResources::new();
///
/// fn start<D: embassy_net_driver::Driver>(
///     driver: D,
///     mine: &[Ipv6Addr],
///     seed: [u64; 2],
/// ) -> Result<(Stack, PacketRunner<D>), OverError> {
///     over(driver, &RESOURCES, mine, seed, StackConfig::packets())
/// }
/// ```
///
/// # Errors
/// [`OverError`]; the resources are not used then.
///
/// # Panics
/// When `resources` are in use already.
pub fn over<
    D: Driver,
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
    const PACKET: usize,
    const QUEUE: usize,
>(
    driver: D,
    resources: &'static PacketResources<
        CONNECTIONS,
        BUFFER,
        DATAGRAMS,
        LISTENERS,
        HALF_OPEN,
        PACKET,
        QUEUE,
    >,
    addresses: &[Ipv6Addr],
    seed: [u64; 2],
    config: StackConfig,
) -> Result<(Stack, PacketRunner<D>), OverError> {
    if driver.hardware_address() != HardwareAddress::Ip {
        return Err(OverError::Medium);
    }
    let mtu = driver.capabilities().max_transmission_unit.min(PACKET);
    if mtu < IPV6_MTU_MIN {
        return Err(OverError::Mtu);
    }
    if addresses.len() > motet::limits::ADDRESSES_MAX {
        return Err(OverError::Addresses);
    }
    let (stack, packet) = resources.start(mtu, seed, config);
    stack.set_addresses(addresses)?;
    Ok((stack, PacketRunner::new(stack, driver, packet)))
}

/// The part of the two buffers of `bytes` each for what arrives: a ninth of it is no window, and
/// both directions get the same.
const fn recv_len(bytes: usize) -> usize {
    bytes * 18 / 17
}
