//! One smoltcp interface for IPv6 packets, with UDP, and with TCP or without: what differs
//! between the two images is what its TCP costs.
#![no_std]

use core::hint::black_box;

use smoltcp::iface::{Config, Interface, SocketSet, SocketStorage};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv6Address};

/// Bytes of an IPv6 packet at most.
const MTU: usize = 1280;

/// Drives the interface for ever. Compiled for a device, linked and measured, never run.
pub fn run() -> ! {
    let mut link = Link([0; MTU]);
    let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut link, now());
    interface.update_ip_addrs(|addresses| {
        // The list is empty and has room.
        let _ = addresses.push(IpCidr::new(Ipv6Address::LOCALHOST.into(), 64));
    });
    let mut storage = [SocketStorage::EMPTY; 1];
    let mut sockets = SocketSet::new(&mut storage[..]);
    #[cfg(feature = "tcp")]
    black_box((tcp::calls(), &tcp::SMOLTCP_TYPE_SIZES));
    loop {
        // The optimiser must assume that the calls behind the black box use both.
        let (interface, sockets) = black_box((&mut interface, &mut sockets));
        black_box(interface.poll(now(), &mut link, sockets));
        black_box(interface.poll_at(now(), sockets));
    }
}

/// A clock that the optimiser cannot look into.
fn now() -> Instant {
    Instant::from_millis(black_box(0_i64))
}

/// A link with one buffer, of whose packets the optimiser knows nothing.
struct Link([u8; MTU]);

impl Device for Link {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Room<'_>)> {
        black_box(true).then(|| (Received(black_box([0; MTU])), Room(&mut self.0)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        black_box(true).then_some(Room(&mut self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

/// A packet that arrived.
struct Received([u8; MTU]);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

/// Room for a packet that departs.
struct Room<'a>(&'a mut [u8; MTU]);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let (packet, _) = self.0.split_at_mut(len.min(MTU));
        let result = write(packet);
        black_box(packet);
        result
    }
}

#[cfg(feature = "tcp")]
mod tcp {
    use smoltcp::iface::SocketSet;
    use smoltcp::socket::tcp::{Socket, SocketBuffer};
    use smoltcp::wire::IpEndpoint;

    /// Bytes of a socket, which is a connection or listens.
    #[unsafe(no_mangle)]
    pub(crate) static SMOLTCP_TYPE_SIZES: [u32; 1] = [size_of::<Socket<'_>>() as u32];

    /// What an application may call, by address, as in Motet's image: the same work, and none
    /// of the questions about a socket that a caller inlines.
    pub(crate) fn calls() -> &'static [*const ()] {
        &[
            Socket::new::<SocketBuffer<'_>> as *const (),
            SocketSet::add::<Socket<'_>> as *const (),
            SocketSet::get_mut::<Socket<'_>> as *const (),
            SocketSet::remove as *const (),
            Socket::connect::<IpEndpoint, u16> as *const (),
            Socket::listen::<u16> as *const (),
            Socket::send_slice as *const (),
            Socket::recv_slice as *const (),
            Socket::peek_slice as *const (),
            Socket::close as *const (),
            Socket::abort as *const (),
            Socket::state as *const (),
            Socket::set_congestion_control as *const (),
            Socket::set_tsval_generator as *const (),
            Socket::set_timeout as *const (),
            Socket::set_keep_alive as *const (),
            Socket::set_ack_delay as *const (),
            Socket::set_nagle_enabled as *const (),
        ]
    }
}
