//! A node above a Bluetooth LE controller, whose peer sends whatever it likes: data packets and
//! signals.
//!
//! What the node sends is held against L2CAP: PDUs that are whole, signals that can be read, and no
//! more packets than the controller holds.

use motet::ble::{
    Action, Config, DeviceAddr, Event, EventReport, GapRole, Handle, INWARD_LEN, Peer, PeerMemory,
    Timing,
};
use motet::ip::{Config as IpConfig, InterfaceId, Ip};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Ble, BleConfig, BleMemory, Event as LinkEvent, Link, TcpleMemory};
use motet::node::{ACTION_LEN_MAX, Action as NodeAction, Node};
use motet::random::Rng;
use motet::tcp::{Config as TcpConfig, HalfOpen, Listener, Memory, Slot, Tcp};
use motet::tcple::{HELD_LEN, HeldSlot, TcpleConnection};
use motet::time::{Duration, Instant};
use motet::wire::att;
use motet::wire::cursor::Writer;
use motet::wire::l2cap::{DYNAMIC, End, Header, SIGNALLING, Signal};

use crate::input::Input;

/// Feeds a node what a controller may report, and a peer may send.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let role = match input.flag() {
        true => GapRole::Central,
        false => GapRole::Peripheral,
    };
    let mut inward = [0; INWARD_LEN];
    let mut outward = [0; IPV6_MTU_MIN];
    let (mut waiting, mut queue) = ([0; 2000], [0; 2000]);
    let mut peers = [Peer::new(PeerMemory {
        inward: &mut inward,
        outward: &mut outward,
        queue: &mut waiting,
    })];
    let memory = BleMemory {
        peers: &mut peers,
        queue: &mut queue,
        registrations: &mut [],
    };
    let config = BleConfig {
        host: Config::new(US, role),
        solicits: true,
        registers: true,
        advertised: None,
    };
    // Every second length of input is one of a node with TCPlE.
    let has_tcple = bytes.len() % 2 == 1;
    let (mut sides, mut held) = ([TcpleConnection::NEW], [[0; HELD_LEN]; 2]);
    let mut held = held.each_mut().map(|memory| HeldSlot::new(memory));
    let mut link = Ble::new(config, memory);
    if has_tcple {
        link = link.with_tcple(TcpleMemory {
            sides: &mut sides,
            held: &mut held,
        });
    }
    let mut links = [Link::Ble(link)];
    let (mut connections, mut half_open) = ([Slot::EMPTY], [HalfOpen::EMPTY; 2]);
    let mut listeners = [Listener::EMPTY];
    let memory = Memory {
        connections: &mut connections,
        listeners: &mut listeners,
        half_open: &mut half_open,
    };
    let mut rng = Rng::from_seed([7, 9]);
    let mut tcp = Tcp::new(memory, &mut rng);
    tcp.listen(None, LISTENED, &TcpConfig::DEFAULT)
        .expect("a free place");
    let ip = Ip::new(IpConfig::default(), &mut []);
    let node = Node::new(&mut links, ip, tcp, rng, Instant::ORIGIN);
    let mut bench = Bench {
        node,
        now: Instant::ORIGIN,
        packet_len: 27 + u16::from(input.u8()),
        held: 0,
        part: Vec::new(),
        peer: Seen::default(),
        has_tcple,
        cut: 0,
    };
    bench.tell(Event::Started {
        packet_len: bench.packet_len,
        packets: PACKETS,
    });
    bench.connect(role);
    while !input.is_empty() {
        bench.step(&mut input, role);
    }
}

/// A node, and what its peer knows of it.
struct Bench<'m> {
    node: Node<'m>,
    now: Instant,
    packet_len: u16,
    /// Packets that the controller holds.
    held: u16,
    /// The PDU that is going out, as far as it has left.
    part: Vec<u8>,
    peer: Seen,
    has_tcple: bool,
    /// Bytes in each data packet of a PDU of the peer's; 0: as many as the controller takes.
    cut: u8,
}

/// The packets that the peer has seen.
#[derive(Default)]
struct Seen {
    /// The identifier of the last request of the node's.
    request: u8,
}

impl Bench<'_> {
    fn step(&mut self, input: &mut Input<'_>, role: GapRole) {
        match input.u8() & 15 {
            kind @ 0..5 => self.send_signal(kind, input),
            5 => {
                let payload = input.block().to_vec();
                self.pdu(SIGNALLING, &payload);
            }
            // A K-frame that begins an SDU, which is as long as it says or not.
            kind @ 6..8 => {
                let second = u16::from(self.has_tcple && kind == 7);
                let sdu = input.block();
                let len = (sdu.len() as u16).wrapping_add_signed(i16::from(input.u8() as i8) / 100);
                let frame = [&len.to_le_bytes()[..], sdu].concat();
                self.pdu(NODES + second, &frame);
            }
            8 => {
                let (channel, payload) = (input.u16(), input.block().to_vec());
                self.pdu(channel, &payload);
            }
            9 => {
                let (is_first, bytes) = (input.flag(), input.block().to_vec());
                self.data(is_first, &bytes);
            }
            10 => {
                let packets = u16::from(input.u8() % 16).min(self.held);
                self.held -= packets;
                self.tell(Event::Completed {
                    handle: HANDLE,
                    packets,
                });
            }
            11 => {
                self.now += Duration::from_millis(input.u16().into());
                self.poll();
            }
            12 => {
                self.held = 0;
                self.part.clear();
                self.peer = Seen::default();
                self.tell(Event::Disconnected {
                    handle: HANDLE,
                    reason: 8,
                });
                self.connect(role);
            }
            13 => {
                let sent = input.u16();
                self.tell(Event::DataLength {
                    handle: HANDLE,
                    sent,
                    received: 251,
                });
            }
            14 => self.tell(Event::Report(EventReport {
                handle: HANDLE,
                counter: 0,
                good: input.u8().into(),
                bad: input.u8().into(),
                unacknowledged: 0,
                is_missed: input.flag(),
            })),
            // From here on PDUs are cut otherwise.
            _ => {
                let answer = input.u8();
                self.cut = answer >> 1;
                self.tell(Event::Answered { status: answer & 1 });
            }
        }
    }

    /// A signal of the peer's that can be read.
    fn send_signal(&mut self, kind: u8, input: &mut Input<'_>) {
        match kind {
            0 => self.signal(
                input.u8(),
                Signal::ConnectionRequest {
                    service: match input.flag() {
                        true => 0x23,
                        false if self.has_tcple => 0x80,
                        false => input.u16(),
                    },
                    end: end(input, self.has_tcple),
                },
            ),
            1 => {
                let request = self.peer.request;
                let end = end(input, self.has_tcple);
                let result = u16::from(input.u8() & 3 == 3);
                self.signal(request, Signal::ConnectionResponse { result, end });
            }
            2 => {
                let credits = input.u16();
                let channel = PEERS;
                self.signal(9, Signal::Credits { channel, credits });
            }
            3 => {
                let (destination, source) = (NODES, PEERS);
                self.signal(
                    8,
                    Signal::DisconnectionRequest {
                        destination,
                        source,
                    },
                );
            }
            _ => {
                let request = self.peer.request;
                let (destination, source) = (PEERS, NODES);
                self.signal(
                    request,
                    Signal::DisconnectionResponse {
                        destination,
                        source,
                    },
                );
            }
        }
    }

    fn connect(&mut self, role: GapRole) {
        self.tell(Event::Connected {
            status: 0,
            handle: HANDLE,
            role,
            peer: THEM,
            timing: Timing {
                interval: 40,
                latency: 0,
                timeout: 200,
            },
        });
    }

    fn signal(&mut self, identifier: u8, signal: Signal) {
        let mut out = [0; 30];
        let mut w = Writer::new(&mut out);
        signal.emit(identifier, &mut w).expect("room");
        let len = w.written();
        self.pdu(SIGNALLING, &out[..len]);
    }

    fn pdu(&mut self, channel: u16, payload: &[u8]) {
        let mut bytes = (payload.len() as u16).to_le_bytes().to_vec();
        bytes.extend_from_slice(&channel.to_le_bytes());
        bytes.extend_from_slice(payload);
        let len = match self.cut {
            0 => usize::from(self.packet_len),
            cut => usize::from(cut),
        };
        let mut is_first = true;
        for piece in bytes.chunks(len) {
            self.data(is_first, piece);
            is_first = false;
            if self.cut > 0 {
                self.data(is_first, &[]);
            }
        }
    }

    fn data(&mut self, is_first: bool, bytes: &[u8]) {
        self.tell(Event::Data {
            handle: HANDLE,
            is_first,
            bytes,
        });
    }

    fn tell(&mut self, event: Event<'_>) {
        self.node.on_event(LINK, LinkEvent::Ble(event), self.now);
        self.poll();
    }

    /// Polls the node until it has no more actions; it must stop.
    fn poll(&mut self) {
        let mut out = [0; ACTION_LEN_MAX];
        for _ in 0..1_000 {
            let Some((_, action)) = self.node.poll_action(self.now, &mut out) else {
                return;
            };
            let NodeAction::Ble(action) = action else {
                panic!("no action for a controller: {action:?}");
            };
            let Action::Data { is_first, len, .. } = action else {
                continue;
            };
            self.held += 1;
            assert!(
                self.held <= PACKETS.into(),
                "more than the controller holds"
            );
            assert!(len <= usize::from(self.packet_len));
            assert_eq!(is_first, self.part.is_empty(), "a PDU within another");
            self.part.extend_from_slice(&out[..len]);
            let (header, payload) = Header::parse(&self.part).expect("a header");
            assert!(payload.len() <= usize::from(header.len));
            if payload.len() == usize::from(header.len) {
                let payload = payload.to_vec();
                self.part.clear();
                self.peer.see(header.channel, &payload);
            }
        }
        panic!("the node never rests");
    }
}

impl Seen {
    /// A PDU of the node's.
    fn see(&mut self, channel: u16, payload: &[u8]) {
        if channel != SIGNALLING {
            let is_known = DYNAMIC.contains(&channel) || channel == att::CHANNEL;
            assert!(is_known, "{channel}");
            return;
        }
        let (identifier, signal) = Signal::parse(payload).expect("a signal");
        match signal {
            Signal::ConnectionRequest { .. } | Signal::DisconnectionRequest { .. } => {
                self.request = identifier;
            }
            _ => {}
        }
    }
}

fn end(input: &mut Input<'_>, has_tcple: bool) -> End {
    match input.u8() & 3 {
        0 => End {
            channel: input.u16(),
            mtu: input.u16(),
            mps: input.u16(),
            credits: input.u16(),
        },
        _ => {
            let mps = 23 + u16::from(input.u8()) * 5;
            let credits = u16::from(input.u8());
            End {
                channel: PEERS + if has_tcple { credits & 1 } else { 0 },
                mtu: 1280,
                mps,
                credits,
            }
        }
    }
}

const LINK: InterfaceId = InterfaceId(0);
const HANDLE: Handle = Handle(3);
const LISTENED: u16 = 7;
const PACKETS: u8 = 6;
/// The channel, as its ends call it.
const PEERS: u16 = 0x45;
const NODES: u16 = 0x40;
const US: DeviceAddr = DeviceAddr {
    bytes: [0xc0, 1, 2, 3, 4, 5],
    is_random: true,
};
const THEM: DeviceAddr = DeviceAddr {
    bytes: [0xc0, 1, 2, 3, 4, 6],
    is_random: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs at random, each of a node with TCPlE: mostly signals and SDUs of both channels.
    #[test]
    fn no_peer_breaks_a_node_with_tcple() {
        let mut rng = Rng::from_seed([17, 3]);
        for _ in 0..400 {
            let bytes: Vec<u8> = (0..401).map(|_| rng.next_u32() as u8).collect();
            run(&bytes);
        }
    }
}
