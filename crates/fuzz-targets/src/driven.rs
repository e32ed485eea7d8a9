//! The node that `node` and `mote` drive: one radio, one wire, in memory that the caller owns.
//!
//! [`Store`] owns the memory, [`Setup`] holds the differences between the two nodes, and [`Driven`]
//! is the node with its clock. Each target decides by itself which events reach the node, and how
//! its radio behaves.

use std::net::Ipv6Addr;

use motet::ip::{Address, Config as IpConfig, InterfaceId, Ip, Neighbour, NextHop, Prefix, Route};
use motet::link::{Cable, Link, Mesh, MeshConfig, MeshStorage};
use motet::mac::security::Security;
use motet::mac::{self, AttemptOutcome, RadioCapabilities, RxMeta};
use motet::node::{ACTION_LEN_MAX, Action, Event, Node};
use motet::random::Rng;
use motet::tcp::{self, Config, ListenerHandle, Tcp};
use motet::time::Instant;
use motet::wire::{LinkAddr, ieee802154};

use crate::wire::MESH;

pub(crate) const RADIO: InterfaceId = InterfaceId(0);
pub(crate) const WIRE: InterfaceId = InterfaceId(1);

pub(crate) const PAN: u16 = 0x4d54;
/// The EUI-64 of the node.
pub(crate) const US: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 1];
/// The EUI-64 of a neighbour.
pub(crate) const THEM: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 2];
/// The port on which the node listens.
pub(crate) const LISTENED: u16 = 7;

/// The longest packet on the wire, in bytes.
const WIRE_MTU: u16 = 1500;

/// The settings by which driven nodes differ.
pub(crate) struct Setup {
    pub(crate) capabilities: RadioCapabilities,
    pub(crate) radio: MeshConfig,
    /// The node's address on the wire.
    pub(crate) addr: Ipv6Addr,
    /// Destinations that the wire leads to.
    pub(crate) by_wire: Prefix,
    /// Destinations that a neighbour on the air leads to, and the EUI-64 of that neighbour.
    pub(crate) by_radio: (Prefix, [u8; 8]),
    /// The settings of connections that are accepted.
    pub(crate) settings: &'static Config,
}

/// The memory of one node.
pub(crate) struct Store<'m> {
    interfaces: Option<[Link<'m>; 2]>,
    mesh: MeshStorage<8, 3, 4, 2, 3000>,
    wire_queue: [u8; 3000],
    tcp: tcp::Storage<'m, 2, 0>,
    routes: [Option<Route>; 4],
}

impl<'m> Store<'m> {
    pub(crate) const fn new() -> Self {
        Self {
            interfaces: None,
            mesh: MeshStorage::EMPTY,
            wire_queue: [0; 3000],
            tcp: tcp::Storage::EMPTY,
            routes: [const { None }; 4],
        }
    }

    /// A node in this memory, and its listener on [`LISTENED`].
    pub(crate) fn node(&'m mut self, setup: &Setup) -> (Driven<'m>, ListenerHandle) {
        self.built(setup, None)
    }

    /// A node in this memory that has a key.
    pub(crate) fn sealed(
        &'m mut self,
        setup: &Setup,
        security: &'m mut Security<'m>,
    ) -> Driven<'m> {
        let (driven, _) = self.built(setup, Some(security));
        driven
    }

    fn built(
        &'m mut self,
        setup: &Setup,
        security: Option<&'m mut Security<'m>>,
    ) -> (Driven<'m>, ListenerHandle) {
        let mut rng = Rng::from_seed([5, 6]);
        let mac = (mac::Config::new(PAN, US), setup.capabilities);
        let radio = Mesh::new(setup.radio, mac, self.mesh.lend(), &mut rng);
        let mut radio = radio.expect("the radio can do what these settings ask for");
        radio.contexts_mut().set(0, MESH, 64, true);
        if let Some(security) = security {
            radio.set_security(security);
        }
        let wire = Cable::new(&mut self.wire_queue, WIRE_MTU);
        let interfaces = [Link::Mesh(radio), Link::Cable(wire)];
        let interfaces = self.interfaces.insert(interfaces);
        let (memory, _) = self.tcp.lend();
        let mut tcp = Tcp::new(memory, &mut rng);
        let listener = tcp.listen(None, LISTENED, setup.settings);
        let ip = addressed(setup, &mut self.routes);
        let driven = Driven {
            node: Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN),
            now: Instant::ORIGIN,
        };
        (driven, listener.expect("a free place"))
    }
}

/// A router with an address on the wire, and routes by both interfaces.
fn addressed<'m>(setup: &Setup, routes: &'m mut [Option<Route>]) -> Ip<'m> {
    let config = IpConfig {
        forwards: true,
        ..IpConfig::default()
    };
    let mut ip = Ip::new(config, routes);
    ip.add_address(Address {
        addr: setup.addr,
        interface: WIRE,
    });
    let (by_radio, eui) = setup.by_radio;
    let neighbour = Neighbour::One(LinkAddr::Extended(eui).iid());
    let hops = [
        (setup.by_wire, WIRE, Neighbour::Only),
        (by_radio, RADIO, neighbour),
    ];
    for (prefix, interface, neighbour) in hops {
        let next_hop = NextHop {
            interface,
            neighbour,
        };
        assert!(ip.add_route(Route { prefix, next_hop }));
    }
    ip
}

/// How an attempt of a radio ended that makes attempts by itself.
pub(crate) const fn attempt(choice: u8) -> AttemptOutcome {
    match choice & 7 {
        0 => AttemptOutcome::Acked { pending: true },
        1 => AttemptOutcome::Done,
        2 => AttemptOutcome::NoAck,
        3 => AttemptOutcome::Busy,
        4 => AttemptOutcome::Failed,
        _ => AttemptOutcome::Acked { pending: false },
    }
}

/// A node and its clock.
pub(crate) struct Driven<'m> {
    pub(crate) node: Node<'m>,
    pub(crate) now: Instant,
}

impl<'m> Driven<'m> {
    /// Hands the node an event of its radio.
    pub(crate) fn radio(&mut self, event: mac::Event<'_>) {
        self.node.on_event(RADIO, Event::Mesh(event), self.now);
    }

    /// Hands the node a frame with its FCS; `by_head`: the radio gives its first bytes before
    /// the rest has come.
    pub(crate) fn receive(&mut self, frame: &[u8], by_head: bool) {
        if by_head {
            self.radio(mac::Event::FrameHead { head: frame });
        }
        let meta = RxMeta {
            rssi_dbm: -50,
            lqi: 200,
            channel: 26,
            at: self.now,
        };
        self.radio(mac::Event::FrameReceived { psdu: frame, meta });
    }

    /// Hands the node a packet that came by the wire.
    pub(crate) fn packet(&mut self, packet: &[u8]) {
        self.node.on_event(WIRE, Event::Cable(packet), self.now);
    }

    /// The node's next action, with its bytes in `out`; `None`: the node rests, and its next
    /// deadline lies ahead.
    pub(crate) fn poll(&mut self, out: &mut [u8]) -> Option<Action> {
        assert!(out.len() >= ACTION_LEN_MAX.max(WIRE_MTU.into()));
        let action = self.node.poll_action(self.now, out);
        if action.is_none() {
            let next = self.node.next_deadline();
            assert!(next.is_none_or(|at| at > self.now), "it wakes at once");
        }
        let (_, action) = action?;
        assert!(!matches!(action, Action::Cable { len } if len > WIRE_MTU.into()));
        Some(action)
    }

    /// Moves the clock to the next deadline, where that lies before `end`; returns whether it did.
    pub(crate) fn wakes_before(&mut self, end: Instant) -> bool {
        let next = self.node.next_deadline().filter(|at| *at < end);
        if let Some(at) = next {
            self.now = self.now.max(at);
        }
        next.is_some()
    }

    /// The node's radio, once nothing more comes: the node holds no part of a packet any more.
    pub(crate) fn idle_radio(&self) -> &Mesh<'m> {
        let Some(Link::Mesh(radio)) = self.node.link(RADIO) else {
            panic!("a radio");
        };
        assert!(radio.datagrams().is_empty(), "a record was not given up");
        radio
    }
}

/// A frame as it comes from the radio: a header, as much of `payload` as fits, and an FCS.
pub(crate) fn framed(header: &ieee802154::Header, payload: &[u8]) -> Vec<u8> {
    let mut out = [0; 127];
    let room = header.payload_len_max().min(payload.len());
    let len = header.emit_frame(&payload[..room], &mut out);
    out[..len.expect("it fits")].to_vec()
}
