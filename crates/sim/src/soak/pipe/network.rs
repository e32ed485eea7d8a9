//! The way of a segment between the engines, and the troubles of the engines.

use std::net::Ipv6Addr;

use motet::tcp::{self, IcmpError, IncomingSegment, Offer, OutgoingSegment, State};
use motet::time::Duration;
use motet::wire::tcp::{Flags, Header};

use super::{ADDRS, Counts, Event, Host, OneWay, PORT, Packet, Pipe, engine};
use crate::net::faults::Faults;
use crate::soak::rest::{segment, stranger, stranger_segment};
use crate::soak::trouble::Trouble;

impl Pipe<'_> {
    /// A segment leaves an engine.
    pub(super) fn send(&mut self, host: usize, outgoing: &OutgoingSegment) -> Result<(), String> {
        let now = self.calendar.now();
        let counts = &mut self.hosts[host].counts;
        counts.sent += 1;
        if let Some(cause) = outgoing.cause {
            counts.again[cause as usize] += 1;
        }
        let bytes: Box<[u8]> = self.buffer[..outgoing.len].into();
        let (header, payload) = Header::parse(&bytes)
            .map_err(|error| format!("node {host} sent a malformed segment: {error:?}"))?;
        self.tally.segments += 1;
        if let Some(rate) = self.ways[host].rate {
            let span = Duration::from_micros(bytes.len() as u64 * 1_000_000 / rate.max(1));
            self.ways[host].busy_until = now + span;
        }
        if outgoing.dst != ADDRS[1 - host] {
            self.answer_as_stranger(host, outgoing.dst, &header);
            return Ok(());
        }
        self.monitor.on_sent(host, &header, payload.len())?;
        self.note_handshake(host, &header)?;
        let way = &mut self.ways[host];
        let is_cut = now < way.cut_until;
        let faults = if is_cut { Faults::LOSS } else { way.faults };
        let copies: Vec<_> = faults
            .judge(&bytes, 0, self.dice.rng(), &mut way.tally)
            .collect();
        if copies.is_empty() && self.dice.chance(ICMP_SHARE) {
            self.tell_by_icmp(host, &bytes);
        }
        for copy in copies {
            let way = &self.ways[host];
            let delay = way.delay + self.dice.span(way.jitter) + copy.lag;
            let marked = outgoing.ecn == ECT0 && self.dice.chance(way.marking);
            let packet = Packet {
                to: 1 - host,
                src: ADDRS[host],
                ecn: if marked { CE } else { outgoing.ecn },
                bytes: copy.bytes,
                is_corrupted: copy.is_corrupted,
            };
            self.calendar.schedule(now + delay, Event::Arrive(packet));
        }
        Ok(())
    }

    /// Handshakes of a listener are no connection yet: they are seen by what is sent.
    fn note_handshake(&mut self, host: usize, header: &Header) -> Result<(), String> {
        let ports = (header.src_port, header.dst_port);
        let is_known = self.is_session(host, ports);
        if header.flags.contains(Flags::SYN | Flags::ACK) && !is_known {
            let coverage = &mut self.sessions.coverage;
            coverage.note(State::Listen, State::SynReceived, None)?;
        }
        Ok(())
    }

    fn is_session(&self, host: usize, ports: (u16, u16)) -> bool {
        let mut live = self.sessions.live();
        live.any(|(_, session)| session.host == host && session.ports == ports)
    }

    pub(super) fn arrive(&mut self, packet: &Packet) -> Result<(), String> {
        let host = packet.to;
        let local = self.clock(host).local;
        let Host { tcp, counts, .. } = &mut self.hosts[host];
        let incoming = IncomingSegment {
            src: packet.src,
            dst: ADDRS[host],
            zone: 0,
            ecn: packet.ecn,
            offer: Offer::UNBOUNDED,
            bytes: &packet.bytes,
        };
        let result = tcp.on_segment(&incoming, local);
        counts.received += 1;
        if let Err(reason) = result {
            counts.drops[reason as usize] += 1;
        }
        if packet.is_corrupted && result != Err(tcp::SegmentDrop::Checksum) {
            return Err(format!("node {host} took a corrupted segment: {result:?}"));
        }
        if result == Err(tcp::SegmentDrop::ConnectionReset)
            && let Ok((header, _)) = Header::parse(&packet.bytes)
            && !self.is_session(host, (header.dst_port, header.src_port))
        {
            let coverage = &mut self.sessions.coverage;
            coverage.note(State::SynReceived, State::Listen, None)?;
        }
        self.sessions.now = local;
        self.sessions.note_all(host, &self.hosts[host].tcp)?;
        self.settle(host)
    }

    /// A router says why it lost a segment.
    fn tell_by_icmp(&mut self, host: usize, bytes: &[u8]) {
        let mtu = self.dice.scale(1_280, 1_500);
        let error = self.dice.pick(&[
            IcmpError::Soft,
            IcmpError::Disrupted,
            IcmpError::Hard,
            IcmpError::PacketTooBig(mtu),
        ]);
        let local = self.clock(host).local;
        let tcp = &mut self.hosts[host].tcp;
        tcp.on_icmp_error(&ADDRS[host], &ADDRS[1 - host], 0, bytes, error, local);
        self.tally.icmp_errors += 1;
    }

    /// Answers for an address that was the forged source of a flood: most such addresses do not
    /// exist, and do not answer.
    fn answer_as_stranger(&mut self, host: usize, who: Ipv6Addr, header: &Header) {
        let number = u32::from(who.segments()[7]);
        let (flags, numbers) = match self.dice.range(0, 9) {
            0 => (Flags::RST, (header.ack, 0)),
            // It exists, and says no more than that.
            1 if header.flags.contains(Flags::SYN) => {
                (Flags::ACK, (header.ack, header.seq.wrapping_add(1)))
            }
            _ => return,
        };
        let bytes = stranger_segment(number, (ADDRS[host], PORT), flags, numbers);
        let at = self.calendar.now() + self.ways[host].delay;
        self.calendar.schedule(
            at,
            Event::Arrive(Packet {
                to: host,
                src: who,
                ecn: 0,
                bytes,
                is_corrupted: false,
            }),
        );
    }

    pub(super) fn on_trouble(&mut self, trouble: Trouble) -> Result<(), String> {
        self.tally.troubles += 1;
        match trouble {
            Trouble::Connect => self.connect(),
            Trouble::Simultaneous => self.connect_both(),
            Trouble::Reuse => self.connect_again(),
            Trouble::Cut { ways, len } => {
                let until = self.calendar.now() + len;
                for way in 0..2 {
                    if ways != 1 - way {
                        self.ways[way].cut_until = until;
                    }
                }
                Ok(())
            }
            Trouble::Change => {
                let way = self.dice.range(0, 1) as usize;
                self.ways[way] = OneWay {
                    tally: self.ways[way].tally,
                    ..OneWay::draw(&mut self.dice)
                };
                Ok(())
            }
            Trouble::Reboot => self.reboot(),
            Trouble::Suspend { len } => {
                let host = self.dice.range(0, 1) as usize;
                self.leap(host, len);
                self.settle(host)
            }
            Trouble::Leap { len, tries } => self.leap_both(len, tries),
            Trouble::Flood { segments } => {
                self.flood(segments);
                Ok(())
            }
            Trouble::Forge { segments } => {
                self.forge(segments);
                Ok(())
            }
        }
    }

    fn leap(&mut self, host: usize, len: Duration) {
        let before = self.clock(host).local.as_micros() / 1_000;
        let after = before + len.as_millis();
        self.tally.wraps.clock += (after >> 32) - (before >> 32);
        self.hosts[host].ahead = self.hosts[host].ahead + len;
    }

    /// Days pass in which nobody has anything to do.
    fn leap_both(&mut self, len: Duration, tries: u32) -> Result<(), String> {
        let is_idle = (0..2).all(|host| self.hosts[host].tcp.next_deadline().is_none());
        if !is_idle && tries > 0 {
            let tries = tries - 1;
            let at = self.calendar.now() + Duration::from_secs(1);
            let again = Event::Trouble(Trouble::Leap { len, tries });
            self.calendar.schedule(at, again);
        } else if is_idle {
            self.tally.leaps += 1;
            for host in 0..2 {
                self.leap(host, len);
            }
        }
        Ok(())
    }

    fn reboot(&mut self) -> Result<(), String> {
        let host = self.dice.range(0, 1) as usize;
        self.check_counters(host)?;
        self.tally.reboots += 1;
        self.sessions.forget(host);
        let old = &mut self.hosts[host];
        old.reboots += 1;
        old.tcp = engine(self.arena, old.places, self.seed, (host, old.reboots));
        old.counts = Counts::NONE;
        // Its clock starts anew.
        old.ahead = self.dice.span(Duration::from_secs(1_000));
        old.listener = None;
        self.listen(host)
    }

    /// SYNs from addresses that nobody has, or that answer in their own ways.
    fn flood(&mut self, segments: u32) {
        let host = self.dice.range(0, 1) as usize;
        for _ in 0..segments {
            let number = self.dice.range(0, 0xffff);
            let isn = self.dice.bits() as u32;
            let bytes = stranger_segment(number, (ADDRS[host], PORT), Flags::SYN, (isn, 0));
            let at = self.calendar.now() + self.dice.span(Duration::from_secs(2));
            self.calendar.schedule(
                at,
                Event::Arrive(Packet {
                    to: host,
                    src: stranger(number),
                    ecn: 0,
                    bytes,
                    is_corrupted: false,
                }),
            );
        }
    }

    /// Segments that an off-path attacker forges for a connection whose addresses and ports it
    /// knows.
    fn forge(&mut self, segments: u32) {
        let live: Vec<_> = self
            .sessions
            .live()
            .filter(|(_, session)| session.ports.1 != 0)
            .map(|(_, session)| (session.host, session.ports))
            .collect();
        if live.is_empty() {
            return;
        }
        for _ in 0..segments {
            let (host, (local, remote)) = self.dice.pick(&live);
            let flags = self.dice.pick(&[
                Flags::RST,
                Flags::RST | Flags::ACK,
                Flags::SYN,
                Flags::ACK,
                Flags::ACK | Flags::FIN,
            ]);
            let header = Header {
                src_port: remote,
                dst_port: local,
                seq: self.dice.bits() as u32,
                ack: self.dice.bits() as u32,
                flags,
                window: self.dice.range(0, 65_535) as u16,
                ..Header::default()
            };
            let payload = [0xee; 32];
            let len = if flags == Flags::ACK {
                payload.len()
            } else {
                0
            };
            let bytes = segment(&header, &payload[..len], &ADDRS[1 - host], &ADDRS[host]);
            let at = self.calendar.now() + self.dice.span(Duration::from_secs(2));
            self.calendar.schedule(
                at,
                Event::Arrive(Packet {
                    to: host,
                    src: ADDRS[1 - host],
                    ecn: 0,
                    bytes,
                    is_corrupted: false,
                }),
            );
        }
    }
}

/// The share of lost segments for which an ICMPv6 error is sent.
const ICMP_SHARE: f64 = 0.02;

const ECT0: u8 = 2;
const CE: u8 = 3;
