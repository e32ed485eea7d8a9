//! The wired links between the border router and its hosts.
//!
//! Purpose: a one-way delay to each host, and the packet loss that experiments inject at the border
//! router, after link retries and reassembly (`TCPlp` §9.4); for the soak, packets that are
//! repeated, late or corrupted too. One end is the border router; the others are simulated hosts,
//! or the outside: a caller with a kernel.
//! Left out: bandwidth and queueing. It is some hundred times faster than the mesh.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv6Addr;

use motet::random::Rng;
use motet::time::{Duration, Instant};

use crate::air::End;
use crate::capture::Capture;
use crate::net::faults::{FaultTally, Faults};
use crate::streams::happens;

/// A host at the far side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireHost {
    /// Where the wire to the host ends: at a simulated node, or outside.
    pub end: End,
    /// The host's address.
    pub addr: Ipv6Addr,
    /// One way, from or to the border router.
    pub delay: Duration,
    /// If several hosts have this address: the range of TCP ports, at either end of a connection,
    /// whose segments go to this host. `None`: all packets that no other host takes.
    pub ports: Option<[u16; 2]>,
    /// Whether its TCP connections have flow labels, as Linux's have (RFC 6437): 6LoWPAN carries a
    /// label in three bytes, none in none.
    pub labels: bool,
}

/// A wire from the border router to each of its hosts.
#[derive(Debug)]
pub struct Wire {
    router: End,
    hosts: Vec<WireHost>,
    faults: Faults,
    /// The effects of the faults.
    pub fault_tally: FaultTally,
    rng: Rng,
    /// The chance that a packet is lost between the border router's policy and its mesh, and what
    /// decides it.
    inner_loss: Option<(f64, Rng)>,
    capture: Option<Capture>,
    outbox: VecDeque<Box<[u8]>>,
    passed: Option<VecDeque<Passed>>,
    /// Packets that the wire carried and lost.
    pub tally: WireTally,
}

/// A packet that passed a wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// When the packet entered the wire.
    pub at: Instant,
    /// Whether the packet goes out of the mesh.
    pub upwards: bool,
    /// The packet.
    pub packet: Box<[u8]>,
}

/// Packets that a wire carried and lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireTally {
    /// Packets from the mesh to the host.
    pub up: u64,
    /// Packets from the host to the mesh.
    pub down: u64,
    /// Packets lost on purpose, not counted above.
    pub lost: u64,
}

impl Wire {
    /// Wires from the border router `router` to `hosts`; the first host gets packets with other
    /// destinations.
    ///
    /// `loss`: the chance that a packet is lost at the border router, either way.
    pub fn new(router: usize, hosts: Vec<WireHost>, loss: f64, rng: Rng) -> Self {
        Self {
            router: End::Mote(router),
            hosts,
            faults: Faults {
                loss,
                ..Faults::NONE
            },
            fault_tally: FaultTally::default(),
            rng,
            inner_loss: None,
            capture: None,
            outbox: VecDeque::new(),
            passed: None,
            tally: WireTally::default(),
        }
    }

    /// The end at the border router.
    pub fn router(&self) -> End {
        self.router
    }

    /// Other faults than the loss it was made with.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Loses packets between the border router's policy and its mesh, too, with the chance `loss`.
    pub fn set_inner_loss(&mut self, loss: f64, rng: Rng) {
        self.inner_loss = (loss > 0.0).then_some((loss, rng));
    }

    /// Whether the next packet between policy and mesh is lost, which counts as lost on the wire.
    pub(crate) fn loses_inside(&mut self) -> bool {
        let Some((loss, rng)) = &mut self.inner_loss else {
            return false;
        };
        let is_lost = happens(rng, *loss);
        self.tally.lost += u64::from(is_lost);
        is_lost
    }

    /// Keeps a copy of every packet that passes, for [`Self::take_passed`].
    pub fn watch(&mut self) {
        self.passed.get_or_insert_default();
    }

    /// The next packet that passed the border router's wired side since [`Self::watch`].
    pub fn take_passed(&mut self) -> Option<Passed> {
        self.passed.as_mut()?.pop_front()
    }

    /// Writes every packet that passes the border router's wired side to `capture`.
    pub fn set_capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// As [`Capture::finish`].
    pub fn finish_capture(&mut self) -> io::Result<()> {
        self.capture.take().map_or(Ok(()), Capture::finish)
    }

    /// `from` sends `packet` at `now`; gives the other end, the instant of arrival there and
    /// what arrives, unless the packet is lost: once, or more often.
    pub fn carry(
        &mut self,
        from: End,
        packet: &[u8],
        now: Instant,
    ) -> impl Iterator<Item = (End, Instant, Box<[u8]>)> + use<> {
        let way = self.way(from, packet);
        let host = way.map(|(host, _)| host);
        let mut labelled = Vec::new();
        let packet = match host {
            Some(host) if host.labels && from == host.end => {
                labelled.extend_from_slice(packet);
                label(&mut labelled);
                &labelled
            }
            _ => packet,
        };
        let copies = way.map(|(_, upwards)| {
            let before = self.fault_tally.lost;
            let copies = self
                .faults
                .judge(packet, INTACT, &mut self.rng, &mut self.fault_tally);
            let is_lost = self.fault_tally.lost > before;
            self.note(packet, upwards, is_lost, now);
            copies
        });
        let router = self.router;
        copies.into_iter().flatten().filter_map(move |copy| {
            let host = host?;
            let to = if from == router { host.end } else { router };
            Some((to, now + host.delay + copy.lag, copy.bytes))
        })
    }

    /// The host at the other end, or at this one, and whether the packet leaves the mesh.
    fn way(&self, from: End, packet: &[u8]) -> Option<(WireHost, bool)> {
        let upwards = from == self.router;
        let host = if upwards {
            self.host_of(packet)
        } else {
            self.hosts.iter().find(|host| host.end == from)
        };
        Some((*host.or(self.hosts.first())?, upwards))
    }

    /// The host that a packet out of the mesh is addressed to.
    fn host_of(&self, packet: &[u8]) -> Option<&WireHost> {
        let dst = destination(packet)?;
        let ports = tcp_ports(packet);
        let of_port = |host: &&WireHost| {
            let is_in = |[first, last]: [u16; 2]| {
                let mut both = ports.into_iter().flatten();
                both.any(|port| (first..=last).contains(&port))
            };
            host.ports.is_some_and(is_in)
        };
        let here = || self.hosts.iter().filter(|host| host.addr == dst);
        here()
            .find(of_port)
            .or_else(|| here().find(|host| host.ports.is_none()))
    }

    /// Counts a packet, and shows it to whoever watches unless it is lost.
    fn note(&mut self, packet: &[u8], upwards: bool, is_lost: bool, now: Instant) {
        if is_lost {
            self.tally.lost += 1;
            return;
        }
        *(if upwards {
            &mut self.tally.up
        } else {
            &mut self.tally.down
        }) += 1;
        if let Some(capture) = &mut self.capture {
            capture.packet(now, packet);
        }
        if let Some(passed) = &mut self.passed {
            passed.push_back(Passed {
                at: now,
                upwards,
                packet: packet.into(),
            });
        }
    }

    /// A packet has reached the outside.
    pub(crate) fn deliver_outside(&mut self, packet: Box<[u8]>) {
        self.outbox.push_back(packet);
    }

    /// The next packet that has reached the outside.
    pub fn take_outside(&mut self) -> Option<Box<[u8]>> {
        self.outbox.pop_front()
    }
}

/// The IPv6 header, most of which no checksum covers: it is never corrupted.
const INTACT: usize = 40;

/// Gives a TCP segment the flow label of its connection: the ports, mixed (RFC 6437 §3 asks for a
/// uniform distribution). No checksum covers it.
fn label(packet: &mut [u8]) {
    const MIXER: u32 = 0x9e37_79b1;
    let Some([[a, b], [c, d]]) = tcp_ports(packet).map(|ports| ports.map(u16::to_be_bytes)) else {
        return;
    };
    let [_, _, low, high] = u32::from_be_bytes([a, b, c, d])
        .wrapping_mul(MIXER)
        .to_le_bytes();
    if let Some([_, first, second, third]) = packet.first_chunk_mut() {
        *first = *first & 0xf0 | (a ^ c) & 0x0f;
        (*second, *third) = (high, low | 1);
    }
}

/// Where an IPv6 packet is to go.
fn destination(packet: &[u8]) -> Option<Ipv6Addr> {
    const DESTINATION_AT: usize = 24;
    let bytes: [u8; 16] = packet.get(DESTINATION_AT..)?.first_chunk().copied()?;
    Some(Ipv6Addr::from(bytes))
}

/// The ports of a TCP segment, or of the one that an `ICMPv6` error quotes (RFC 4443 §2.1).
fn tcp_ports(packet: &[u8]) -> Option<[u16; 2]> {
    const NEXT_HEADER_AT: usize = 6;
    const HEADER_LEN: usize = 40;
    const QUOTE_AT: usize = HEADER_LEN + 8;
    const ERROR_MAX: u8 = 127;
    let ports = |packet: &[u8]| {
        let word: [u8; 4] = packet.get(HEADER_LEN..)?.first_chunk().copied()?;
        let [a, b, c, d] = word;
        Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
    };
    match packet.get(NEXT_HEADER_AT)? {
        6 => ports(packet),
        58 if *packet.get(HEADER_LEN)? <= ERROR_MAX => {
            let quote = packet.get(QUOTE_AT..)?;
            ports(quote).filter(|_| quote.get(NEXT_HEADER_AT) == Some(&6))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::plan;
    use crate::streams::{Purpose, stream};

    #[test]
    fn packets_arrive_later_or_not_at_all() {
        let rng = stream(1, 0, Purpose::PacketLoss);
        let delay = Duration::from_millis(20);
        let mut wire = Wire::new(0, vec![host(0, 4, 20)], 0.25, rng);
        let arrivals = (0..4_000)
            .filter_map(|us| {
                let from = if us % 2 == 0 {
                    End::Mote(0)
                } else {
                    End::Mote(4)
                };
                let now = Instant::from_micros(us);
                let (to, at, _) = wire.carry(from, &[0x60], now).next()?;
                assert!(to != from && at == now + delay);
                Some(())
            })
            .count() as u64;
        assert_eq!(arrivals, wire.tally.up + wire.tally.down);
        assert_eq!(arrivals + wire.tally.lost, 4_000);
        assert!((900..1_100).contains(&wire.tally.lost), "{:?}", wire.tally);
    }

    fn host(number: usize, mote: usize, delay_ms: u64) -> WireHost {
        WireHost {
            end: End::Mote(mote),
            addr: plan::host_addr(number),
            delay: Duration::from_millis(delay_ms),
            ports: None,
            labels: false,
        }
    }

    #[test]
    fn a_connection_of_linux_has_one_label() {
        let rng = stream(1, 0, Purpose::PacketLoss);
        let linux = WireHost {
            labels: true,
            ..host(0, 4, 20)
        };
        let mut wire = Wire::new(0, vec![linux], 0.0, rng);
        let mut carried = |from, next_header: u8, port: u16| {
            let mut packet = vec![0; 60];
            packet[0] = 0x60;
            packet[6] = next_header;
            packet[40..42].copy_from_slice(&port.to_be_bytes());
            let (.., packet) = wire
                .carry(End::Mote(from), &packet, Instant::ORIGIN)
                .next()
                .unwrap();
            assert_eq!(packet[0], 0x60);
            u32::from_be_bytes(*packet.first_chunk().unwrap()) & 0xf_ffff
        };
        let first = carried(4, 6, 443);
        assert_ne!(first, 0);
        assert_eq!(carried(4, 6, 443), first);
        assert_ne!(carried(4, 6, 444), first);
        // Of a mote, and of another protocol.
        assert_eq!((carried(0, 6, 443), carried(4, 17, 443)), (0, 0));
    }

    #[test]
    fn one_address_may_be_several_stacks() {
        let rng = stream(1, 0, Purpose::PacketLoss);
        let part = |mote, ports| WireHost {
            ports,
            ..host(0, mote, 20)
        };
        let hosts = vec![part(4, None), part(5, Some([100, 115])), host(1, 6, 20)];
        let mut wire = Wire::new(0, hosts, 0.0, rng);
        let segment = |dst: Ipv6Addr, next_header: u8, ports: [u16; 2]| {
            let mut packet = vec![0; 24];
            packet[6] = next_header;
            packet.extend(dst.octets());
            packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
            packet
        };
        let quoting = |quoted: Vec<u8>| {
            let mut error = segment(plan::host_addr(0), 58, [0x0100, 0]);
            error.extend([0; 4]);
            error.extend(quoted);
            error
        };
        let own = plan::host_addr(0);
        let cases = [
            (segment(own, 6, [50_000, 100]), 5),
            (segment(own, 6, [115, 50_000]), 5),
            (segment(own, 6, [50_000, 116]), 4),
            (segment(own, 17, [50_000, 100]), 4),
            (segment(plan::host_addr(1), 6, [50_000, 100]), 6),
            (quoting(segment(plan::mesh_addr(1), 6, [100, 50_000])), 5),
            (quoting(segment(plan::mesh_addr(1), 17, [100, 50_000])), 4),
            (segment(own, 6, [100, 0])[..41].to_vec(), 4),
        ];
        for (packet, to) in cases {
            let mut carried = wire.carry(End::Mote(0), &packet, Instant::ORIGIN);
            let (end, ..) = carried.next().unwrap();
            assert_eq!(end, End::Mote(to), "{packet:02x?}");
        }
    }

    #[test]
    fn each_host_gets_its_own_at_its_own_distance() {
        let rng = stream(1, 0, Purpose::PacketLoss);
        let mut wire = Wire::new(0, vec![host(0, 4, 20), host(1, 5, 3)], 0.0, rng);
        let packet = |dst: Ipv6Addr| {
            let mut packet = vec![0; 24];
            packet.extend(dst.octets());
            packet
        };
        // (from, to address, arrives at, after ms)
        for (from, dst, to, ms) in [
            (0, plan::host_addr(0), 4, 20),
            (0, plan::host_addr(1), 5, 3),
            (0, plan::mesh_addr(9), 4, 20),
            (5, plan::mesh_addr(9), 0, 3),
            (4, plan::mesh_addr(9), 0, 20),
        ] {
            let sent = packet(dst);
            let mut carried = wire.carry(End::Mote(from), &sent, Instant::ORIGIN);
            let at = Instant::ORIGIN + Duration::from_millis(ms);
            let expected = (End::Mote(to), at, sent.into());
            assert_eq!(carried.next(), Some(expected), "{from} to {dst}");
            assert_eq!(carried.next(), None);
        }
    }
}
