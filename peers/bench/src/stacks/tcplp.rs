//! `TCPlp`'s protocol core.

use motet::time::Instant;
use motet_tcplp::Socket;

use crate::endpoint::{Endpoint, Seat, Status};

/// An end with `TCPlp`'s TCP.
#[derive(Debug)]
pub struct TcplpEnd {
    socket: Socket,
}

impl TcplpEnd {
    /// Opens or listens, as `seat` says.
    pub fn new(seat: &Seat, now: Instant) -> Self {
        let initial_number = (seat.seed as u32).wrapping_mul(0x9e37_79b9);
        let buffers = (seat.send_len(), seat.recv_len());
        let mut socket = Socket::new(seat.local, buffers, initial_number, seat.hop_limit);
        if seat.opens {
            socket.connect(seat.remote, now);
        } else {
            socket.listen(now);
        }
        Self { socket }
    }
}

impl Endpoint for TcplpEnd {
    fn on_packet(&mut self, packet: &[u8], now: Instant) {
        self.socket.on_packet(packet, now);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<&[u8]> {
        self.socket.poll_packet(now)
    }

    fn next_deadline(&mut self, now: Instant) -> Option<Instant> {
        self.socket.next_deadline(now)
    }

    fn send(&mut self, data: &[u8], now: Instant) -> usize {
        self.socket.send(data, now)
    }

    fn recv(&mut self, out: &mut [u8], now: Instant) -> usize {
        self.socket.recv(out, now)
    }

    fn shutdown(&mut self, now: Instant) {
        self.socket.shutdown(now);
    }

    fn status(&mut self) -> Status {
        let state = self.socket.state();
        Status {
            may_send: state.may_send,
            finished: state.finished,
            closed: state.closed,
        }
    }
}
