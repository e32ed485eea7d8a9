//! Which connection a line is about, and its numbers in the script and in the stack.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use crate::host::{self, REMOTE};
use crate::packet::{self, ACK, HOP_LIMIT, Packet, SYN, Segment, TcpOption};
use crate::script::{EcnSpec, IcmpSpec, SegmentSpec};

/// One connection as the script sees it.
#[derive(Debug, Default)]
pub struct Flow {
    /// The peer's port.
    pub remote_port: u16,
    /// The local port; 0: the stack chooses one, and has not sent anything yet.
    pub local_port: u16,
    /// The stack's sequence numbers less the script's, once its SYN was seen.
    offset: Option<u32>,
    /// The peer's initial sequence number of the last handshake.
    peer_isn: Option<u32>,
    /// The peer has since sent a SYN with another sequence number. If the stack sends a SYN now, a
    /// new incarnation of the connection begins.
    renewed: bool,
    /// The stack's timestamps, by the values that stand for them in the script.
    stamps: HashMap<u32, u32>,
    /// The first pair: script's and stack's.
    first_stamp: Option<(u32, u32)>,
}

impl Flow {
    /// How far the stack's sequence numbers are ahead of the script's.
    pub fn offset(&self) -> u32 {
        self.offset.unwrap_or(0)
    }

    /// The packet that brings a script's segment to the stack at `local`.
    ///
    /// # Errors
    /// A sentence: the segment echoes a timestamp that was never seen.
    pub fn inbound(&self, spec: &SegmentSpec, local: Ipv6Addr) -> Result<Vec<u8>, String> {
        let mut segment = Segment {
            src_port: self.remote_port,
            dst_port: self.local_port,
            seq: spec.seq.unwrap_or(0),
            ack: spec.ack.unwrap_or(0),
            flags: spec.flags,
            window: spec.window.unwrap_or(0),
            urgent: spec.urgent,
            options: spec.options.clone().unwrap_or_default(),
            len: spec.len,
        };
        self.to_live(&mut segment)?;
        let ecn = match spec.ip.ecn {
            Some(EcnSpec::Is(ecn)) => ecn,
            _ => 0,
        };
        let packet = Packet {
            src: REMOTE,
            dst: local,
            traffic_class: spec.ip.traffic_class.unwrap_or(ecn),
            hop_limit: spec.ip.hop_limit.unwrap_or(HOP_LIMIT),
            segment,
        };
        Ok(packet.emit(&vec![0; spec.len]))
    }

    /// The packet that brings an ICMPv6 error about a segment of this connection to `local`.
    pub fn icmp_error(&self, spec: IcmpSpec, local: Ipv6Addr) -> Vec<u8> {
        let seq = spec.seq.unwrap_or(0).wrapping_add(self.offset());
        let mut quoted = Vec::new();
        quoted.extend(self.local_port.to_be_bytes());
        quoted.extend(self.remote_port.to_be_bytes());
        quoted.extend(seq.to_be_bytes());
        quoted.extend(vec![0; 12 + spec.len]);
        packet::icmp_error(REMOTE, local, spec.kind, spec.mtu, &quoted)
    }

    /// Turns a segment of the script into one for the stack.
    ///
    /// # Errors
    /// A sentence: the segment echoes a timestamp that was never seen.
    fn to_live(&self, segment: &mut Segment) -> Result<(), String> {
        if segment.has(ACK) {
            segment.ack = segment.ack.wrapping_add(self.offset());
        }
        for option in &mut segment.options {
            match option {
                TcpOption::Sack(blocks) => {
                    for (left, right) in blocks {
                        *left = left.wrapping_add(self.offset());
                        *right = right.wrapping_add(self.offset());
                    }
                }
                TcpOption::Timestamps { echo, .. } if segment.flags & ACK != 0 && *echo != 0 => {
                    let said = *echo;
                    *echo = *self
                        .stamps
                        .get(&said)
                        .ok_or_else(|| format!("no segment sent bore the timestamp {said}"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Turns a packet of the stack into the script's numbers; learns the ISN from a SYN.
    pub fn translate(&mut self, packet: &Packet, spec: &SegmentSpec) -> Packet {
        let mut seen = packet.clone();
        if packet.segment.has(SYN) && (self.offset.is_none() || self.renewed) {
            let said = spec.seq.unwrap_or(0);
            self.renewed = false;
            self.offset = Some(packet.segment.seq.wrapping_sub(said));
        }
        seen.segment.seq = seen.segment.seq.wrapping_sub(self.offset());
        // The value of a timestamp matters to the check of ticks alone; otherwise any value
        // matches, and is learned.
        let said = spec.timestamp();
        for option in &mut seen.segment.options {
            if let (TcpOption::Timestamps { value, .. }, Some(said)) = (option, said) {
                *value = said;
            }
        }
        seen
    }

    /// Remembers the script's value for the timestamp of `segment`.
    pub fn learn_timestamp(&mut self, spec: &SegmentSpec, segment: &Segment) {
        let said = spec.timestamp();
        if let (Some(said), Some((value, _))) = (said, segment.timestamps()) {
            self.stamps.insert(said, value);
            self.first_stamp.get_or_insert((said, value));
        }
    }

    /// Checks that timestamps tick as the script says: `tick` µs each; the stack's are ms.
    pub fn check_tick(&self, spec: &SegmentSpec, segment: &Segment, tick: u64) -> Option<String> {
        let said = spec
            .options
            .iter()
            .flatten()
            .find_map(|option| match option {
                TcpOption::Timestamps { value, .. } => Some(*value),
                _ => None,
            })?;
        let (value, _) = segment.timestamps()?;
        let (first_said, first_value) = self.first_stamp?;
        let expected_us = u64::from(said.wrapping_sub(first_said)) * tick;
        let seen_us = u64::from(value.wrapping_sub(first_value)) * 1000;
        (expected_us.abs_diff(seen_us) > tick.max(1000) + 4000).then(|| {
            format!("TS val: expected {expected_us} µs since the first one, seen {seen_us} µs")
        })
    }
}

/// The connections of a script.
#[derive(Debug, Default)]
pub struct Flows {
    flows: Vec<Flow>,
    current: usize,
    /// `listen` was called, and no SYN has come since.
    listening: bool,
    next_port: u16,
    /// The socket that assertions are about.
    under_test: UnderTest,
}

/// The socket that packetdrill's assertions are about: the one made last, or the one of the last
/// SYN, which has no descriptor before `accept`.
#[derive(Clone, Copy, Debug, Default)]
enum UnderTest {
    /// No socket under test yet.
    #[default]
    Nothing,
    /// The socket of a SYN, not accepted yet.
    Child,
    /// A descriptor.
    Socket(i32),
}

impl Flows {
    /// `listen` was called.
    pub fn on_listen(&mut self) {
        self.listening = true;
    }

    /// `socket` has returned.
    pub fn on_socket(&mut self, fd: i32) {
        self.under_test = UnderTest::Socket(fd);
    }

    /// `accept` has returned.
    pub fn on_accept(&mut self, fd: i32) {
        if let UnderTest::Child = self.under_test {
            self.under_test = UnderTest::Socket(fd);
        }
    }

    /// The descriptor of the socket that assertions are about, if there is one.
    pub const fn under_test(&self) -> Option<i32> {
        match self.under_test {
            UnderTest::Socket(fd) => Some(fd),
            UnderTest::Nothing | UnderTest::Child => None,
        }
    }

    /// `connect` was called: the stack's next segment belongs to a new connection.
    pub fn on_connect(&mut self, remote_port: u16, local_port: u16) {
        self.flows.push(Flow {
            remote_port,
            local_port,
            ..Flow::default()
        });
        self.current = self.flows.len() - 1;
        self.listening = false;
    }

    /// The connection that lines are about now.
    pub fn current(&mut self, bind_port: u16) -> &mut Flow {
        if self.flows.is_empty() {
            self.start(bind_port);
        }
        self.at(self.current)
    }

    /// The connection of a segment to inject.
    pub fn for_inbound(&mut self, spec: &SegmentSpec, bind_port: u16) -> &mut Flow {
        let opens = host::is_opening(spec.flags);
        if opens && self.listening {
            self.under_test = UnderTest::Child;
        }
        if let Some((remote, local)) = spec.ports {
            self.switch_to(remote, local);
        } else if self.flows.is_empty() || opens && self.listening {
            self.start(bind_port);
            self.listening = false;
        }
        let flow = self.at(self.current);
        if opens {
            flow.renewed |= flow.peer_isn.is_some() && flow.peer_isn != spec.seq;
            flow.peer_isn = spec.seq;
        }
        flow
    }

    /// The connection of a packet that the stack sent.
    pub fn for_outbound(
        &mut self,
        packet: &Packet,
        spec: &SegmentSpec,
        bind_port: u16,
    ) -> &mut Flow {
        let ports = (packet.segment.dst_port, packet.segment.src_port);
        if spec.ports.is_none()
            && let Some(flow) = self.flows.get_mut(self.current)
            && flow.local_port == 0
            && flow.remote_port == ports.0
        {
            flow.local_port = ports.1;
        }
        let known = |flow: &Flow| (flow.remote_port, flow.local_port) == ports;
        match self.flows.iter().position(known) {
            Some(at) => self.at(at),
            None if self.flows.is_empty() => {
                self.start(bind_port);
                self.at(self.current)
            }
            None => {
                self.flows.push(Flow {
                    remote_port: ports.0,
                    local_port: ports.1,
                    ..Flow::default()
                });
                self.at(self.flows.len() - 1)
            }
        }
    }

    /// Whether a packet belongs to a connection that the script has left behind: packetdrill
    /// looks only at the connection under test.
    pub fn is_past(&self, packet: &Packet) -> bool {
        let ports = (packet.segment.dst_port, packet.segment.src_port);
        let mut past = self.flows.iter().take(self.current);
        past.any(|flow| (flow.remote_port, flow.local_port) == ports)
    }

    fn switch_to(&mut self, remote_port: u16, local_port: u16) {
        let known = |flow: &Flow| (flow.remote_port, flow.local_port) == (remote_port, local_port);
        self.current = self.flows.iter().position(known).unwrap_or_else(|| {
            self.flows.push(Flow {
                remote_port,
                local_port,
                ..Flow::default()
            });
            self.flows.len() - 1
        });
    }

    /// A connection from a new port of the peer.
    fn start(&mut self, bind_port: u16) {
        self.next_port = self.next_port.max(EPHEMERAL_FIRST - 1) + 1;
        self.flows.push(Flow {
            remote_port: self.next_port,
            local_port: bind_port,
            ..Flow::default()
        });
        self.current = self.flows.len() - 1;
    }

    fn at(&mut self, index: usize) -> &mut Flow {
        let last = self.flows.len() - 1;
        let index = index.min(last);
        self.flows.get_mut(index).unwrap_or_else(|| {
            unreachable!("every index handed in is below the number of connections")
        })
    }
}

/// The first port of the peer's side.
const EPHEMERAL_FIRST: u16 = 40_001;
