//! lwIP, with ESP-IDF's settings: without SACK and without timestamps.

use motet::time::Instant;
use motet_lwip::Socket;

use crate::endpoint::{Endpoint, Seat, Status};

/// An end with lwIP's TCP.
#[derive(Debug)]
pub struct LwipEnd {
    socket: Socket,
}

impl LwipEnd {
    /// Opens or listens, as `seat` says.
    pub fn new(seat: &Seat, now: Instant) -> Self {
        // Lossless: windows here are a few segments.
        Self::with_window(seat, seat.recv_len() as u16, now)
    }

    /// The same, with a window of so many bytes.
    pub fn with_window(seat: &Seat, window: u16, now: Instant) -> Self {
        let seat = motet_lwip::Seat {
            local: seat.local,
            remote: seat.remote,
            opens: seat.opens,
            mss: seat.mss,
            // Lossless: windows here are a few segments.
            send_len: seat.send_len() as u16,
            recv_len: window,
            seed: seat.seed as u32,
            hop_limit: seat.hop_limit,
        };
        Self {
            socket: Socket::new(&seat, now),
        }
    }
}

impl Endpoint for LwipEnd {
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
