//! The peer of both stacks: a host whose TCP has what Linux has (SACK, RACK, timestamps, ten
//! segments at first, ACKs after 40 ms), without a kernel's clock: time is virtual here.
//!
//! It is Motet's engine with other settings, the same under both stacks.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use motet::ip::{self, Address, InterfaceId, Ip, Neighbour, NextHop};
use motet::link::{Cable, Link};
use motet::node::{Action, Event, Node};
use motet::random::Rng;
use motet::tcp::{Buffers, Config, Handle, RecvError, Storage, Tcp};
use motet::time::Instant;

use crate::device::pattern;
use crate::shim::MTU;

/// The host, with one connection that it accepts.
pub(crate) struct Host {
    node: Node<'static>,
    handle: Handle,
    /// Bytes that it sends; 0: it reads.
    sends: usize,
    sent: usize,
    /// Bytes read, as far as they were the right ones.
    pub(crate) read: usize,
    /// All came, or all was acknowledged.
    pub(crate) is_done: bool,
    waiting: VecDeque<Vec<u8>>,
}

impl Host {
    pub(crate) fn new(sends: usize, seed: u64) -> Self {
        let (tcp, links): &'static mut (Storage<'static, 1, BUFFER>, [Link<'static>; 1]) =
            Box::leak(Box::new((
                Storage::EMPTY,
                [Link::Cable(Cable::new(vec![0; 2048].leak(), MTU as u16))],
            )));
        let mut ip = Ip::new(ip::Config::default(), &mut []);
        let interface = InterfaceId(0);
        ip.add_address(Address {
            addr: HOST,
            interface,
        });
        ip.set_default_route(Some(NextHop {
            interface,
            neighbour: Neighbour::Only,
        }));
        let mut rng = Rng::from_seed([seed, 4]);
        let (memory, [buffers]): (_, [Buffers<'static>; 1]) = tcp.lend();
        let mut tcp = Tcp::new(memory, &mut rng);
        let now = Instant::ORIGIN;
        let listener = tcp.listen(None, PORT, &SETTINGS).expect("a place");
        let handle = tcp.accept(listener, buffers, now).expect("a place");
        Self {
            node: Node::new(links, ip, tcp, rng, now),
            handle,
            sends,
            sent: 0,
            read: 0,
            is_done: false,
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn on_packet(&mut self, packet: &[u8], now: Instant) {
        self.node
            .on_event(InterfaceId(0), Event::Cable(packet), now);
        // The ACK of each packet is due before the next packet is looked at.
        self.collect(now);
    }

    /// Lets the application run, and queues what TCP wants to send as far as there is room.
    pub(crate) fn poll(&mut self, now: Instant) {
        self.collect(now);
        let tcp = self.node.tcp_mut();
        let mut bytes = [0; 2048];
        loop {
            match tcp.recv(self.handle, &mut bytes) {
                Ok(count) => {
                    let start = self.read;
                    let right = bytes[..count].iter().zip(start..);
                    self.read += right
                        .take_while(|(b, place)| **b == pattern(*place))
                        .count();
                }
                Err(RecvError::Finished) => {
                    tcp.shutdown(self.handle, now);
                    self.is_done |= self.sends == 0;
                    break;
                }
                Err(_) => break,
            }
        }
        while self.sent < self.sends {
            let end = self.sends.min(self.sent + bytes.len());
            let part: Vec<u8> = (self.sent..end).map(pattern).collect();
            match tcp.send(self.handle, &part, now) {
                Ok(count) => self.sent += count,
                Err(_) => break,
            }
            if self.sent == self.sends {
                tcp.shutdown(self.handle, now);
            }
        }
        self.collect(now);
    }

    fn collect(&mut self, now: Instant) {
        let mut out = [0; MTU];
        loop {
            let is_full = self.waiting.len() >= WAITING;
            if let Some(Link::Cable(cable)) = self.node.link_mut(InterfaceId(0)) {
                cable.set_full(is_full);
            }
            let Some((_, Action::Cable { len })) = self.node.poll_action(now, &mut out) else {
                return;
            };
            self.waiting.push_back(out[..len].to_vec());
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.waiting.pop_front()
    }

    pub(crate) fn has_packet(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.node.next_deadline()
    }
}

static SETTINGS: Config = Config {
    initial_window: 10,
    slow_start_segments_max: 10,
    ack_delay_ms: 40,
    accept_window: BUFFER as u16,
    nagle: false,
    ..Config::DEFAULT
};

/// Bytes each way; no device here fills it.
const BUFFER: usize = 60_000;
/// Packets that wait for the link, as in a host's queue.
const WAITING: usize = 16;
pub(crate) const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 2);
pub(crate) const PORT: u16 = 7;
