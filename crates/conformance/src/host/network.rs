//! Packets into the engine and out of it.
//!
//! Place: the host calls it. Changes that a profile makes to packets are in [`super::edge`],
//! [`super::freebsd`] and [`super::burst`]. Left out: the calls that wait for a packet.

use motet::tcp::{IcmpError, IncomingSegment, Offer, OutgoingSegment, State};
use motet::wire::{icmpv6, ipv6, tcp as wire};

use super::edge::Flow;
use super::freebsd::Fate;
use super::{Errno, Host, MSS_DEFAULT, Profile, SEGMENTS_MAX, Sent};
use crate::packet::{ACK, HOP_LIMIT, Packet, RST, SYN, TcpOption};

impl Host<'_> {
    /// Takes a packet from the network. A packet that is not TCP's business is ignored.
    pub fn deliver(&mut self, bytes: &[u8]) {
        if let Ok((header, upper)) = ipv6::Header::parse(bytes) {
            match header.next_header {
                wire::NEXT_HEADER => self.deliver_segment(bytes, upper),
                icmpv6::NEXT_HEADER => self.deliver_icmp(upper),
                _ => {}
            }
        }
        self.pump();
        self.is_challenged = false;
        self.fin_answered = None;
    }

    /// When the peer's FIN is there, Linux forgets the blocks that it would report by SACK,
    /// duplicates too.
    fn note_fin(&mut self, flow: Flow, before: Option<State>) {
        let received = |state| {
            let after = [
                State::CloseWait,
                State::Closing,
                State::LastAck,
                State::TimeWait,
            ];
            after.contains(&state)
        };
        let now = self.state_of(flow);
        if before.is_some_and(|state| !received(state)) && now.is_some_and(received) {
            self.fin_answered = Some(flow);
        }
    }

    fn deliver_segment(&mut self, bytes: &[u8], upper: &[u8]) {
        let Some((mut packet, payload)) = Packet::parse(bytes) else {
            return;
        };
        let flow = (packet.src, packet.segment.src_port, packet.segment.dst_port);
        let traffic = self.traffic.entry(flow).or_default();
        let has_ack = packet.segment.has(ACK);
        traffic.came(!payload.is_empty(), has_ack, self.now);
        if packet.segment.has(SYN) {
            let mss = packet
                .segment
                .options
                .iter()
                .find_map(|option| match option {
                    TcpOption::Mss(mss) => Some(*mss),
                    _ => None,
                });
            self.peer_mss.insert(flow, mss.unwrap_or(MSS_DEFAULT));
        }
        let ecn = packet.traffic_class & 3;
        let mut rewritten = Vec::new();
        let mut segment = upper;
        if self.settings.lender() != Profile::Motet
            && wire::is_checksum_valid(&packet.src, &packet.dst, upper)
        {
            self.edge.inbound(flow, &mut packet.segment, &self.settings);
            let fate = match self.settings.lender() {
                Profile::FreeBsd => self.freebsd_inbound(flow, &mut packet.segment),
                _ => {
                    self.lend_growth(flow, &packet.segment);
                    Fate::Whole
                }
            };
            rewritten = match fate {
                Fate::Whole => packet.emit(payload),
                Fate::Bare => packet.emit(&[]),
                Fate::Dropped => return,
                Fate::Reset => return self.freebsd_reset(flow, &packet),
            };
        }
        if let Some(upper) = rewritten.get(ipv6::HEADER_LEN..).filter(|u| !u.is_empty()) {
            segment = upper;
        }
        let before = self.state_of(flow);
        // The engine counts its drops; a script sees what follows from them.
        let incoming = IncomingSegment {
            src: packet.src,
            dst: packet.dst,
            zone: 0,
            ecn,
            offer: Offer::UNBOUNDED,
            bytes: segment,
        };
        let _reason = self.tcp.on_segment(&incoming, self.now);
        match self.settings.lender() {
            Profile::Motet => {}
            Profile::FreeBsd => self.freebsd_after(flow, packet.segment.flags, before),
            Profile::Linux => self.note_fin(flow, before),
        }
    }

    fn deliver_icmp(&mut self, upper: &[u8]) {
        use icmpv6::Message::{
            DestinationUnreachable, PacketTooBig, ParameterProblem, TimeExceeded,
        };
        let Ok(message) = icmpv6::Message::parse(upper) else {
            return;
        };
        let (error, errno, invoking) = match message {
            DestinationUnreachable { code, invoking } => match code {
                1 | 4 => (IcmpError::Hard, Errno::ECONNREFUSED, invoking),
                0 | 3 => (IcmpError::Disrupted, Errno::EHOSTUNREACH, invoking),
                _ => (IcmpError::Soft, Errno::EHOSTUNREACH, invoking),
            },
            PacketTooBig { mtu, invoking } => {
                (IcmpError::PacketTooBig(mtu), Errno::EMSGSIZE, invoking)
            }
            TimeExceeded { invoking, .. } => (IcmpError::Soft, Errno::EHOSTUNREACH, invoking),
            ParameterProblem { code, invoking, .. } => match code {
                1 => (IcmpError::Hard, Errno::ECONNREFUSED, invoking),
                _ => (IcmpError::Soft, Errno::EHOSTUNREACH, invoking),
            },
            _ => return,
        };
        let Ok((inner, quoted)) = ipv6::Header::parse_start(invoking) else {
            return;
        };
        if inner.next_header != wire::NEXT_HEADER {
            return;
        }
        let quoted_seq = quoted.first_chunk::<8>().copied();
        let quoted_seq = quoted_seq.map(|[.., a, b, c, d]| u32::from_be_bytes([a, b, c, d]));
        let ports = quoted.first_chunk::<4>().copied().unwrap_or_default();
        let [a, b, c, d] = ports;
        let flow = (
            inner.dst,
            u16::from_be_bytes([c, d]),
            u16::from_be_bytes([a, b]),
        );
        if self.settings.lender() == Profile::FreeBsd {
            if let IcmpError::PacketTooBig(mtu) = error {
                self.freebsd_packet_too_big(flow, mtu, quoted_seq);
            } else if !self.settings.freebsd.icmp_may_rst {
                return;
            }
        }
        if let Some(stream) = self.stream_of(flow) {
            stream.icmp_errno = Some(errno);
        }
        self.tcp
            .on_icmp_error(&inner.src, &inner.dst, 0, quoted, error, self.now);
    }

    /// Lets the stack send what it wants to, now.
    pub(super) fn pump(&mut self) {
        let first = self.sent.len();
        for _ in 0..SEGMENTS_MAX {
            self.note_changes();
            let Some(outgoing) = self.tcp.poll_segment(self.now, |_| true, &mut self.scratch)
            else {
                self.note_changes();
                if self.settings.lender() == Profile::Linux {
                    self.push_bursts(first);
                }
                return;
            };
            self.emit(outgoing);
        }
        self.runaway = true;
    }

    fn emit(&mut self, outgoing: OutgoingSegment) {
        let upper = self.scratch.get(..outgoing.len).unwrap_or_default();
        let plain = crate::packet::in_ipv6(
            (outgoing.src, outgoing.dst),
            (outgoing.ecn, HOP_LIMIT),
            wire::NEXT_HEADER,
            upper,
        );
        let Some((mut packet, payload)) = Packet::parse(&plain) else {
            self.runaway = true;
            return;
        };
        let flow = (
            outgoing.dst,
            packet.segment.dst_port,
            packet.segment.src_port,
        );
        let again = outgoing.cause.is_some();
        let traffic = self.traffic.entry(flow).or_default();
        traffic.went(payload.len(), again, self.now);
        let (class, hop_limit) = self.marks_of(flow);
        packet.traffic_class = class & !3 | outgoing.ecn;
        packet.hop_limit = hop_limit;
        if self.settings.lender() == Profile::FreeBsd && !packet.segment.has(SYN | RST) {
            self.lend_window(flow, &mut packet);
        }
        if self.settings.lender() == Profile::FreeBsd {
            self.freebsd_outbound(flow, &mut packet.segment);
        }
        if self.fin_answered == Some(flow) {
            let is_sack = |option: &TcpOption| matches!(option, TcpOption::Sack(_));
            packet.segment.options.retain(|option| !is_sack(option));
        }
        self.edge
            .outbound(flow, &mut packet.segment, &self.settings);
        if self.settings.lender() == Profile::FreeBsd {
            self.freebsd_options(flow, &mut packet.segment);
        }
        // In the profile `motet` the packet holds the very bytes that the engine wrote.
        let bytes = match self.settings.lender() {
            Profile::Motet => {
                let marks = (packet.traffic_class, packet.hop_limit);
                let upper = self.scratch.get(..outgoing.len).unwrap_or_default();
                crate::packet::in_ipv6((packet.src, packet.dst), marks, wire::NEXT_HEADER, upper)
            }
            _ => packet.emit(payload),
        };
        self.sent.push_back(Sent {
            at: self.now,
            bytes,
        });
    }

    /// FreeBSD announces whatever its socket buffer has free, every time; the engine moves
    /// the right edge only by a segment at once (RFC 9293 §3.8.6.2.2). Both keep to RFC 9293.
    /// The space is there: the engine's own buffer, and what the socket stages beyond it.
    fn lend_window(&mut self, flow: Flow, packet: &mut Packet) {
        let scaled = self.edge.is_scaled(flow);
        let Some(stream) = self.stream_of(flow) else {
            return;
        };
        let (handle, staged) = (stream.handle, stream.staged.len() as u32);
        let space = stream.recv_space;
        let unread = self
            .tcp
            .connection(handle)
            .map_or(0, |connection| u32::from(connection.can_recv()));
        let free = space.saturating_sub(staged + unread);
        let max = 65_535u32;
        if !scaled {
            packet.segment.window = free.min(max) as u16;
        } else if let Some(shift) = self.settings.window_scale {
            self.edge.set_exact_window(free >> shift);
        }
    }
}
