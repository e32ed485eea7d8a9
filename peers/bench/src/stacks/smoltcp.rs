//! smoltcp with Reno and timestamps, over a device of IP packets; otherwise its defaults.

use std::cell::Cell;
use std::fmt;

use motet::time::Instant;
use motet::wire::{ipv6, tcp as tcp_wire};
use smoltcp::iface::{self, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant as SmolInstant;
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::endpoint::{Endpoint, MSS, PACKET_LEN_MAX, Seat, Status};

/// An end with smoltcp's TCP.
pub struct SmoltcpEnd {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    leaving: Box<Leaving>,
}

impl fmt::Debug for SmoltcpEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmoltcpEnd").finish_non_exhaustive()
    }
}

impl SmoltcpEnd {
    /// Opens or listens, as `seat` says.
    pub fn new(seat: &Seat, now: Instant) -> Self {
        let mut config = iface::Config::new(HardwareAddress::Ip);
        config.random_seed = seat.seed;
        let mut leaving = Box::<Leaving>::default();
        let mut device = Port {
            arrived: None,
            leaving: &mut leaving,
            has_room: false,
        };
        let mut interface = Interface::new(config, &mut device, at(now));
        interface.update_ip_addrs(|addresses| {
            let own = IpCidr::new(seat.local.0.into(), 64);
            addresses.push(own).expect("room for one address");
        });
        let routes = interface.routes_mut();
        let route = routes.add_default_ipv6_route(seat.remote.0);
        route.expect("room for one route");
        let recv = SocketBuffer::new(vec![0; seat.recv_len()]);
        let send = SocketBuffer::new(vec![0; seat.send_len()]);
        let mut socket = Socket::new(recv, send);
        socket.set_congestion_control(CongestionControl::Reno);
        // As the others: what a segment carries, and what its header costs, is then the same.
        socket.set_tsval_generator(Some(|| CLOCK_MS.get()));
        socket.set_hop_limit(Some(seat.hop_limit));
        if seat.opens {
            let opened = socket.connect(interface.context(), seat.remote, seat.local.1);
            opened.expect("addresses that can be ends");
        } else {
            socket
                .listen(seat.local.1)
                .expect("a port that can be an end");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self {
            interface,
            sockets,
            handle,
            leaving,
        }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
}

impl Endpoint for SmoltcpEnd {
    fn on_packet(&mut self, packet: &[u8], now: Instant) {
        let mut device = Port {
            arrived: Some(packet),
            leaving: &mut self.leaving,
            has_room: false,
        };
        self.interface
            .poll_ingress_single(at(now), &mut device, &mut self.sockets);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<&[u8]> {
        if self.leaving.count == 0 {
            let mut device = Port {
                arrived: None,
                leaving: &mut self.leaving,
                has_room: true,
            };
            self.interface
                .poll_egress(at(now), &mut device, &mut self.sockets);
        }
        self.leaving.pop()
    }

    fn next_deadline(&mut self, now: Instant) -> Option<Instant> {
        let due = self.interface.poll_at(at(now), &self.sockets)?;
        let due = Instant::from_micros(u64::try_from(due.total_micros()).unwrap_or(0));
        Some(due.max(now))
    }

    fn send(&mut self, data: &[u8], _now: Instant) -> usize {
        self.socket().send_slice(data).unwrap_or(0)
    }

    fn recv(&mut self, out: &mut [u8], _now: Instant) -> usize {
        self.socket().recv_slice(out).unwrap_or(0)
    }

    fn shutdown(&mut self, _now: Instant) {
        self.socket().close();
    }

    fn status(&mut self) -> Status {
        let socket = self.socket();
        let (state, may_send) = (socket.state(), socket.may_send());
        let handshake = matches!(state, State::Listen | State::SynSent | State::SynReceived);
        Status {
            may_send: may_send && !handshake,
            finished: !handshake && !socket.may_recv() && !socket.can_recv(),
            closed: matches!(state, State::Closed | State::TimeWait),
        }
    }
}

thread_local! {
    /// The timestamps' clock, in a static: smoltcp's function for it takes no argument.
    static CLOCK_MS: Cell<u32> = const { Cell::new(0) };
}

fn at(now: Instant) -> SmolInstant {
    CLOCK_MS.set(now.as_millis_wrapping());
    // Lossless: no run lasts 292 thousand years.
    SmolInstant::from_micros(now.as_micros() as i64)
}

/// Packets that wait at the device: the one there was room for, and answers, which the
/// interface gives whether there is room or not.
#[derive(Debug, Default)]
struct Leaving {
    places: [Place; LEAVING_MAX],
    first: usize,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    bytes: [u8; PACKET_LEN_MAX],
    len: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            bytes: [0; PACKET_LEN_MAX],
            len: 0,
        }
    }
}

impl Leaving {
    /// A place for a packet of `len` bytes, at the end; the last one again when all are taken.
    fn place(&mut self, len: usize) -> &mut [u8] {
        self.count = (self.count + 1).min(LEAVING_MAX);
        let place = &mut self.places[(self.first + self.count - 1) % LEAVING_MAX];
        place.len = len;
        &mut place.bytes[..len]
    }

    fn pop(&mut self) -> Option<&[u8]> {
        self.count = self.count.checked_sub(1)?;
        let place = &self.places[self.first];
        self.first = (self.first + 1) % LEAVING_MAX;
        Some(&place.bytes[..place.len])
    }
}

/// The device for one call: a packet that has come, or room for one to go.
#[derive(Debug)]
struct Port<'p> {
    arrived: Option<&'p [u8]>,
    leaving: &'p mut Leaving,
    has_room: bool,
}

impl Device for Port<'_> {
    type RxToken<'a>
        = Arrived<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Room<'a>
    where
        Self: 'a;

    fn receive(&mut self, _now: SmolInstant) -> Option<(Arrived<'_>, Room<'_>)> {
        let packet = self.arrived.take()?;
        let room = Room {
            leaving: self.leaving,
            has_room: &mut self.has_room,
        };
        Some((Arrived(packet), room))
    }

    fn transmit(&mut self, _now: SmolInstant) -> Option<Room<'_>> {
        self.has_room.then_some(Room {
            leaving: self.leaving,
            has_room: &mut self.has_room,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        let headers_len = ipv6::HEADER_LEN + tcp_wire::HEADER_LEN;
        capabilities.max_transmission_unit = headers_len + usize::from(MSS);
        capabilities
    }
}

#[derive(Debug)]
struct Arrived<'a>(&'a [u8]);

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

#[derive(Debug)]
struct Room<'a> {
    leaving: &'a mut Leaving,
    has_room: &'a mut bool,
}

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        *self.has_room = false;
        write(self.leaving.place(len))
    }
}

/// Answers that may wait besides the packet there was room for.
const LEAVING_MAX: usize = 4;
