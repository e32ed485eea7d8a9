//! Motet's TCP alone, its defaults kept but for the MSS: what `Node` does around it is an IPv6
//! header each way.

use motet::random::Rng;
use motet::tcp::{
    Buffers, Config, Connection, HalfOpen, Handle, IncomingSegment, Listener, Memory, Offer,
    RecvError, Slot, State, Tcp, recv_memory_len,
};
use motet::time::Instant;
use motet::wire::ipv6::{self, Header, TrafficClass};
use motet::wire::tcp;
use motet_lab::Arena;

use crate::endpoint::{Endpoint, PACKET_LEN_MAX, Seat, Status};

/// An end with Motet's TCP.
#[derive(Debug)]
pub struct MotetEnd<'m> {
    tcp: Tcp<'m>,
    handle: Handle,
    hop_limit: u8,
    finished: bool,
    packet: [u8; PACKET_LEN_MAX],
}

impl<'m> MotetEnd<'m> {
    /// Opens or listens, as `seat` says.
    pub fn new(seat: &Seat, now: Instant, arena: &'m Arena) -> Self {
        let memory = Memory {
            connections: arena.alloc_slice_fill_with(1, |_| Slot::EMPTY),
            listeners: arena.alloc_slice_fill_with(1, |_| Listener::EMPTY),
            half_open: arena.alloc_slice_fill_with(1, |_| HalfOpen::EMPTY),
        };
        let mut tcp = Tcp::new(memory, &mut Rng::from_seed([seat.seed, 1]));
        // Lossless: windows here are a few segments.
        let window = seat.recv_len() as u16;
        let config = arena.alloc(Config {
            rmss: seat.mss,
            smss: seat.mss,
            ack_every: if seat.acks_each {
                1
            } else {
                Config::DEFAULT.ack_every
            },
            ..Config::DEFAULT
        });
        let buffers = Buffers::new(
            arena.alloc_slice_fill_copy(seat.send_len(), 0),
            arena.alloc_slice_fill_copy(recv_memory_len(window), 0),
        );
        let handle = if seat.opens {
            tcp.connect_from(
                seat.local,
                seat.remote,
                buffers,
                config,
                Offer::UNBOUNDED,
                now,
            )
        } else {
            let listener = tcp.listen(None, seat.local.1, config);
            tcp.accept(listener.expect("a place for a listener"), buffers, now)
        };
        Self {
            tcp,
            handle: handle.expect("a place for a connection"),
            hop_limit: seat.hop_limit,
            finished: false,
            packet: [0; PACKET_LEN_MAX],
        }
    }
}

impl Endpoint for MotetEnd<'_> {
    fn on_packet(&mut self, packet: &[u8], now: Instant) {
        if let Ok((header, segment)) = Header::parse(packet)
            && header.next_header == tcp::NEXT_HEADER
        {
            let ecn = header.traffic_class.0;
            // What is dropped, the engine has counted.
            let incoming = IncomingSegment {
                src: header.src,
                dst: header.dst,
                zone: 0,
                ecn,
                offer: Offer::UNBOUNDED,
                bytes: segment,
            };
            let _ = self.tcp.on_segment(&incoming, now);
        }
    }

    fn poll_packet(&mut self, now: Instant) -> Option<&[u8]> {
        let (head, body) = self.packet.split_at_mut_checked(ipv6::HEADER_LEN)?;
        let segment = self.tcp.poll_segment(now, |_| true, body)?;
        let header = Header {
            traffic_class: TrafficClass(segment.ecn),
            flow_label: 0,
            payload_len: segment.len as u16,
            next_header: tcp::NEXT_HEADER,
            hop_limit: self.hop_limit,
            src: segment.src,
            dst: segment.dst,
        };
        header.emit(head).ok()?;
        self.packet.get(..ipv6::HEADER_LEN + segment.len)
    }

    fn next_deadline(&mut self, _now: Instant) -> Option<Instant> {
        self.tcp.next_deadline()
    }

    fn send(&mut self, data: &[u8], now: Instant) -> usize {
        self.tcp.send(self.handle, data, now).unwrap_or(0)
    }

    fn recv(&mut self, out: &mut [u8], _now: Instant) -> usize {
        let result = self.tcp.recv(self.handle, out);
        self.finished |= result == Err(RecvError::Finished);
        result.unwrap_or(0)
    }

    fn shutdown(&mut self, now: Instant) {
        self.tcp.shutdown(self.handle, now);
    }

    fn status(&mut self) -> Status {
        let connection = self.tcp.connection(self.handle);
        let state = connection.map_or(State::Closed, Connection::state);
        Status {
            may_send: connection.is_some_and(|c| c.is_established() && c.may_send()),
            finished: self.finished,
            closed: matches!(state, State::Closed | State::TimeWait),
        }
    }
}
