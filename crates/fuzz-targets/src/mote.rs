//! A mote among neighbours: it solicits, acknowledges frames in software, passes fragments on by
//! way of its radio, opens and accepts connections, and has an inbox.
//!
//! The input is a program of what neighbours, the network and the application do. The radio carries
//! out each action unless the program says otherwise. [`Reached`] counts the parts of the stack
//! that an input has reached.

use std::net::Ipv6Addr;

use motet::ip::Prefix;
use motet::ip::queue::{Discipline, Red};
use motet::link::{Forwarding, MeshConfig};
use motet::mac::{self, AttemptOutcome, RadioCapabilities};
use motet::node::Action;
use motet::tcp::{
    Buffers, Config, Error, Handle, ListenerHandle, RetransmissionCause, State, recv_memory_len,
};
use motet::time::Duration;
use motet::udp::Inbox;
use motet::wire::icmpv6::{self, Message};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::tcp::{self, Flags};
use motet::wire::{LinkAddr, ieee802154, udp};

use crate::driven::{Driven, LISTENED, PAN, Setup, Store, THEM, US, attempt, framed};
use crate::input::Input;
use crate::wire::HOST;

/// How often an input came to each part of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reached {
    /// Immediate ACKs sent by software.
    pub software_acks: u32,
    /// Whether a router was found by soliciting.
    pub routers: u32,
    /// Connections opened here and established.
    pub connects: u32,
    /// Connections accepted here.
    pub accepts: u32,
    /// Connections in the buffers of an earlier one.
    pub recycled: u32,
    /// Connections that ICMPv6 ended, or whose segments it made smaller.
    pub path_errors: u32,
    /// Datagrams taken from the inbox.
    pub datagrams: u32,
    /// Packets that a long queue marked or dropped.
    pub congestion: u32,
    /// Frames fired by the one before.
    pub immediate: u32,
    /// Attempts that the radio made by itself, and that put a frame on the air.
    pub attempts: u32,
}

/// Runs a mote through a program.
pub(crate) fn run(bytes: &[u8]) {
    let _reached = reach(bytes);
}

/// As [`run`]; returns what the input reached.
pub(crate) fn reach(bytes: &[u8]) -> Reached {
    let mut input = Input::new(bytes);
    let kind = input.u8();
    let (mut send, mut recv) = ([0; 1500], vec![0; recv_memory_len(1500)]);
    let mut inbox = [0; 600];
    let mut store = Store::new();
    let setup = setup(kind);
    let offloads = setup.capabilities.assesses || setup.capabilities.takes_acks;
    let (mut driven, listener) = store.node(&setup);
    driven.node.set_inbox(Inbox::new(&OPEN_PORTS, &mut inbox));
    driven.now += Duration::from_secs(1);
    let mut mote = Mote {
        driven,
        listener,
        handle: None,
        spare: Some(Buffers::new(&mut send, &mut recv)),
        served: 0,
        sent: Vec::new(),
        preloaded: None,
        offloads,
        obeys: OBEYS_ALL,
        sequence: 0,
        reached: Reached::default(),
    };
    mote.rest();
    while !input.is_empty() {
        mote.step(&mut input);
    }
    mote.sleep();
    mote.reached
}

struct Mote<'m> {
    driven: Driven<'m>,
    listener: ListenerHandle,
    handle: Option<Handle>,
    /// The buffers, while no connection has them.
    spare: Option<Buffers<'m>>,
    /// Connections that had the buffers so far.
    served: u32,
    /// The last packet that went down the wire.
    sent: Vec<u8>,
    /// The sequence number of the frame in the radio, where the frame wants an ACK.
    preloaded: Option<u8>,
    /// Whether the radio makes attempts, or parts of them, by itself.
    offloads: bool,
    /// The behaviour of the radio and its neighbours: [`OBEYS_ALL`] and its bits.
    obeys: u8,
    sequence: u8,
    reached: Reached,
}

impl Mote<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        match op & 7 {
            0 => self.hear(input.block(), op),
            1 => self.datagram(input, op),
            2 => self.driven.now += Duration::from_millis(u64::from(input.u16())),
            3 => self.report(input, op),
            4 => self.answer(input, op),
            5 => self.command(input),
            6 => self.advertise(input),
            _ => self.obeys = input.u8(),
        }
        self.look();
        self.rest();
    }

    // ---- what neighbours and the network do ----

    /// A frame: as it is with its FCS, or `body` with a header to us.
    fn hear(&mut self, body: &[u8], op: u8) {
        let mut frame = body.get(..body.len().min(127)).unwrap_or(body).to_vec();
        if op & 8 == 0 {
            self.sequence = self.sequence.wrapping_add(1);
            let dst = match op & 16 {
                0 => LinkAddr::Extended(US),
                _ => LinkAddr::BROADCAST,
            };
            let src = LinkAddr::Extended(if op & 32 == 0 { THEM } else { OTHERS });
            let mut header = ieee802154::Header::data(PAN, dst, src, self.sequence);
            header.frame_pending = op & 128 != 0;
            frame = framed(&header, body);
        }
        self.driven.receive(&frame, op & 64 != 0);
    }

    /// A packet comes by the wire.
    fn packet(&mut self, dst: Ipv6Addr, next_header: u8, traffic_class: u8, upper: &[u8]) {
        let header = ipv6::Header {
            traffic_class: TrafficClass(traffic_class),
            flow_label: 0,
            payload_len: upper.len() as u16,
            next_header,
            hop_limit: 64,
            src: HOST,
            dst,
        };
        let mut packet = vec![0; ipv6::HEADER_LEN];
        header.emit(&mut packet).expect("40 bytes");
        packet.extend(upper);
        self.driven.packet(&packet);
    }

    /// A datagram for a port of ours, open or not, or for another mote.
    fn datagram(&mut self, input: &mut Input<'_>, op: u8) {
        let dst = if op & 8 == 0 { OURS } else { BEYOND };
        let dst_port = [OPEN_PORTS[0], OPEN_PORTS[1], 9, 0xf0b1][usize::from(op >> 4 & 3)];
        let payload = input.block();
        let mut bytes = vec![0; udp::HEADER_LEN];
        let ports = udp::Header {
            src_port: 7000,
            dst_port,
        };
        ports.emit(payload.len(), &mut bytes).expect("eight bytes");
        bytes.extend(payload);
        udp::fill_checksum(&HOST, &dst, &mut bytes);
        if op & 128 != 0 {
            bytes[6] ^= 1;
        }
        self.packet(dst, 17, op >> 5 & 3, &bytes);
    }

    /// An ICMPv6 error quotes the packet sent last.
    fn report(&mut self, input: &mut Input<'_>, op: u8) {
        let number = input.u16();
        let len = usize::from(input.u8()).min(self.sent.len());
        let invoking = self.sent.get(..len).unwrap_or_default().to_vec();
        let invoking = &invoking[..];
        let code = number as u8 & 7;
        let message = match op >> 3 & 3 {
            0 => Message::DestinationUnreachable { code, invoking },
            1 => Message::PacketTooBig {
                mtu: u32::from(number),
                invoking,
            },
            2 => Message::TimeExceeded { code, invoking },
            _ => Message::ParameterProblem {
                code,
                pointer: u32::from(number >> 8),
                invoking,
            },
        };
        let mut bytes = vec![0; 400];
        let written = message.emit(&mut bytes).expect("it fits");
        bytes.truncate(written);
        icmpv6::fill_checksum(&HOST, &OURS, &mut bytes);
        self.packet(OURS, 58, 0, &bytes);
    }

    /// A segment that answers the one sent last, or that opens a connection.
    fn answer(&mut self, input: &mut Input<'_>, op: u8) {
        let flags = Flags::from_bits(u16::from(input.u8()));
        let payload = input.block();
        let mut header = tcp::Header {
            src_port: 4000 + u16::from(op >> 6),
            dst_port: LISTENED,
            seq: 1000,
            flags,
            window: 4000,
            ..tcp::Header::default()
        };
        let last = self.sent.get(ipv6::HEADER_LEN..).unwrap_or_default();
        if op & 8 == 0
            && self.sent.get(6) == Some(&6)
            && let Ok((last, data)) = tcp::Header::parse(last)
        {
            let begins = last.flags.contains(Flags::SYN) && !last.flags.contains(Flags::ACK);
            header.src_port = last.dst_port;
            header.dst_port = last.src_port;
            header.seq = if begins { 1000 } else { last.ack };
            let controls = last.flags.bits() & (Flags::SYN | Flags::FIN).bits();
            let len = data.len() as u32 + controls.count_ones();
            header.ack = last.seq.wrapping_add(len);
            if let Some((value, _)) = last.options.timestamps {
                header.options.timestamps = Some((self.driven.now.as_millis_wrapping(), value));
            }
        }
        header.seq = header.seq.wrapping_add(u32::from(op >> 4 & 3) * 10);
        header.options.mss = flags.contains(Flags::SYN).then_some(1440);
        let mut bytes = vec![0; 60];
        let len = header.emit(&mut bytes).expect("60 bytes suffice");
        bytes.truncate(len);
        bytes.extend(payload);
        tcp::fill_checksum(&HOST, &OURS, &mut bytes);
        self.packet(OURS, 6, 0, &bytes);
    }

    /// A router advertisement from a neighbour: its lifetime, and options as they are.
    fn advertise(&mut self, input: &mut Input<'_>) {
        let lifetime = input.u16();
        let options = input.block();
        let mut message = vec![134, 0, 0, 0, 64, 0];
        message.extend(lifetime.to_be_bytes());
        message.extend([0; 8]);
        message.extend(options);
        let (src, dst) = (link_local(THEM), link_local(US));
        icmpv6::fill_checksum(&src, &dst, &mut message);
        let header = ipv6::Header {
            traffic_class: TrafficClass(0),
            flow_label: 0,
            payload_len: message.len() as u16,
            next_header: 58,
            hop_limit: 255,
            src,
            dst,
        };
        // An uncompressed IPv6 header (RFC 4944 §5.1).
        let mut body = vec![0x41; 1 + ipv6::HEADER_LEN];
        header.emit(&mut body[1..]).expect("40 bytes");
        body.extend(message);
        self.hear(&body, 0);
    }

    // ---- what the application does ----

    fn command(&mut self, input: &mut Input<'_>) {
        let command = input.u8();
        match (command & 7, self.handle) {
            (0, _) => self.open(command & 8 == 0),
            (1, Some(handle)) => {
                let data = input.block();
                let _taken = self
                    .driven
                    .node
                    .tcp_mut()
                    .send(handle, data, self.driven.now);
            }
            (2, Some(handle)) => {
                let _taken = self.driven.node.tcp_mut().recv(handle, &mut [0; 300]);
            }
            (3, Some(handle)) => self.driven.node.tcp_mut().close(handle, self.driven.now),
            (4, Some(handle)) => self.give_back(handle),
            (5, _) => {
                let to = if command & 8 == 0 { HOST } else { BEYOND };
                let _full = self
                    .driven
                    .node
                    .send_datagram((to, 9), OPEN_PORTS[0], input.block());
            }
            _ => {
                let inbox = self.driven.node.inbox_mut().expect("it has one");
                let taken = inbox.recv(&mut [0; 40]);
                self.reached.datagrams += u32::from(taken.is_some());
            }
        }
    }

    fn open(&mut self, active: bool) {
        let Some(buffers) = self.spare.take() else {
            return;
        };
        let opened = if active {
            let remote = (HOST, 80);
            let opened = self
                .driven
                .node
                .connect(remote, buffers, &SETTINGS, self.driven.now);
            opened.map_err(|rejected| rejected.buffers)
        } else {
            let tcp = self.driven.node.tcp_mut();
            let opened = tcp.accept(self.listener, buffers, self.driven.now);
            opened.map_err(|rejected| rejected.buffers)
        };
        match opened {
            Ok(handle) => {
                self.reached.recycled += u32::from(self.served > 0);
                self.served += 1;
                self.handle = Some(handle);
            }
            Err(buffers) => self.spare = Some(buffers),
        }
    }

    /// Ends the connection, and takes its buffers back.
    fn give_back(&mut self, handle: Handle) {
        let tcp = self.driven.node.tcp_mut();
        let connection = tcp.connection(handle).expect("not given back yet");
        let was_active = connection.endpoints().remote_port == 80;
        let is_up = connection.state().is_synchronized();
        self.reached.connects += u32::from(is_up && was_active);
        self.reached.accepts += u32::from(is_up && !was_active);
        if !matches!(connection.state(), State::Closed | State::TimeWait) {
            tcp.abort(handle);
        }
        self.spare = tcp.remove(handle);
        assert!(self.spare.is_some(), "it is over");
        self.handle = None;
    }

    /// Notes a router found, and what ICMPv6 has done to the connection.
    fn look(&mut self) {
        if self.driven.node.ip_mut().default_route().is_some() {
            self.reached.routers = 1;
        }
        let found = self
            .handle
            .and_then(|handle| self.driven.node.tcp().connection(handle));
        let ended = found.is_some_and(|c| c.error() == Some(Error::Unreachable));
        self.reached.path_errors += u32::from(ended);
    }

    // ---- the radio ----

    /// Does whatever is due; the node must come to an end with it.
    fn rest(&mut self) {
        let mut out = [0; 1500];
        for _ in 0..3_000 {
            let Some(action) = self.driven.poll(&mut out) else {
                return;
            };
            if let Action::Mesh(action) = action {
                self.obey(action, &out);
                continue;
            }
            let Action::Cable { len } = action else {
                panic!("a link that the mote has not: {action:?}");
            };
            self.sent = out[..len].to_vec();
        }
        panic!("the mote never rests");
    }

    fn obey(&mut self, action: mac::Action, out: &[u8]) {
        match action {
            mac::Action::Preload { len } => {
                let asks = out[0] & 0x20 != 0 && len > 3;
                self.preloaded = asks.then_some(out[2]);
                if self.obeys & COPIES != 0 {
                    self.driven.radio(mac::Event::Preloaded);
                }
            }
            mac::Action::AssessChannel if self.obeys & ASSESSES != 0 => {
                let clear = self.obeys & CLEAR != 0;
                self.driven.radio(mac::Event::ChannelAssessed { clear });
            }
            mac::Action::Fire if self.offloads && self.obeys & SENDS != 0 => {
                self.driven.now += Duration::from_micros(6_000);
                let outcome = match self.obeys {
                    obeys if obeys & CLEAR == 0 => AttemptOutcome::Busy,
                    obeys if obeys & ANSWERED == 0 => AttemptOutcome::NoAck,
                    obeys => attempt(obeys >> 5),
                };
                let at = self.driven.now;
                self.driven.radio(mac::Event::Sent { outcome, at });
            }
            mac::Action::Fire if self.obeys & SENDS != 0 => {
                self.driven.now += Duration::from_micros(4_000);
                self.driven.radio(mac::Event::TransmitDone {
                    at: self.driven.now,
                });
                if let Some(sequence) = self.preloaded.filter(|_| self.obeys & ANSWERED != 0) {
                    self.driven.now += ACK_AFTER;
                    let ack = framed(&ieee802154::Header::ack(sequence, false), &[]);
                    self.driven.receive(&ack, false);
                }
            }
            mac::Action::Transmit { at, .. } => {
                self.reached.software_acks += 1;
                if self.obeys & SENDS != 0 {
                    self.driven.now = self.driven.now.max(at) + Duration::from_micros(352);
                    self.driven.radio(mac::Event::TransmitDone {
                        at: self.driven.now,
                    });
                }
            }
            _ => {}
        }
    }

    /// Ten minutes without further input; then counts the parts of the stack that were reached.
    fn sleep(&mut self) {
        let end = self.driven.now + Duration::from_secs(600);
        let mut wakes = 0;
        while self.driven.wakes_before(end) {
            self.rest();
            wakes += 1;
            assert!(wakes < 20_000, "it does not sleep");
        }
        let counters = self.driven.node.ip_mut().counters;
        let dropped = counters.dropped(motet::ip::PacketDrop::Congestion);
        self.reached.congestion = counters.marked + dropped;
        let smaller = RetransmissionCause::PacketTooBig;
        self.reached.path_errors +=
            u32::from(self.driven.node.tcp().counters().retransmitted(smaller));
        let radio = self.driven.idle_radio();
        let counters = radio.mac().counters();
        self.reached.immediate = counters.immediate;
        self.reached.attempts = u32::from(self.offloads) * counters.transmissions;
        if let Some(handle) = self.handle {
            self.give_back(handle);
        }
    }
}

/// A router with an address on the wire, and a way to another mote by the radio; the bits of
/// `kind` choose what its radio can do and how it passes packets on.
fn setup(kind: u8) -> Setup {
    let [by_wire, by_radio] = [HOST, BEYOND].map(|addr| Prefix { addr, len: 128 });
    let [assesses, takes_acks] = [32, 64].map(|bit| kind & 128 != 0 && kind & bit != 0);
    let offloads = assesses || takes_acks;
    Setup {
        capabilities: RadioCapabilities {
            auto_ack: kind & 1 != 0 || assesses,
            shared_buffer: kind & 2 != 0,
            assesses,
            takes_acks,
            ..RadioCapabilities::CC2420
        },
        radio: MeshConfig {
            forwarding: match kind & 4 {
                0 if !offloads => Forwarding::Immediate,
                _ => Forwarding::Copy,
            },
            discipline: match kind & 8 {
                0 => Discipline::Red(Red::MOTE),
                _ => Discipline::DropTail,
            },
            solicits: kind & 16 == 0,
            ..MeshConfig::default()
        },
        addr: OURS,
        by_wire,
        by_radio: (by_radio, OTHERS),
        settings: &SETTINGS,
    }
}

fn link_local(eui: [u8; 8]) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&LinkAddr::Extended(eui).iid());
    octets.into()
}

/// Which actions the radio carries out, and whether neighbours acknowledge.
const COPIES: u8 = 1;
const ASSESSES: u8 = 2;
const CLEAR: u8 = 4;
const SENDS: u8 = 8;
const ANSWERED: u8 = 16;
const OBEYS_ALL: u8 = 31;

/// Time from the end of a frame to that of its ACK: a turnaround, and eleven bytes.
const ACK_AFTER: Duration = Duration::from_micros(192 + 352);

const OTHERS: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 3];
const OURS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
/// The destination of the fragments in the seeds.
const BEYOND: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
static OPEN_PORTS: [u16; 2] = [5683, 5684];
static SETTINGS: Config = Config {
    smss: 1440,
    ..Config::DEFAULT
};
