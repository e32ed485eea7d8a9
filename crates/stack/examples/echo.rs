//! An echo service on a mote, and all that an application does with a socket.
//!
//! [`Echo::poll`] is called from the main loop after the node has taken an event. Nothing
//! blocks and nothing calls back: each call says what it did, or why it could not. The rest of
//! the firmware, the driver's loop, is `firmware/minimal-node`.
//!
//! `cargo run --example echo` runs it against a client in the same process, no radio between.

use motet::random::Rng;
use motet::tcp::{
    self, Buffers, Config, Connection, HalfOpen, Handle, IncomingSegment, Listener, ListenerHandle,
    Offer, RecvError, SendError, Slot, State, Tcp,
};
use motet::time::{Duration, Instant};

/// Kept in flash; what is not named has its documented default.
static SETTINGS: Config = Config {
    nagle: false,           // answers are wanted now
    ack_delay_ms: 100,      // an answer will carry the ACK
    keepalive_idle_s: 3600, // notice peers that are gone
    user_timeout_ms: 120_000,
    ..Config::DEFAULT
};

struct Echo<'m> {
    listener: ListenerHandle,
    connection: Option<Handle>,
    buffers: Option<Buffers<'m>>, // lent to a connection while there is one
    active: Instant,              // when the peer last got on
}

/// A peer that says nothing for so long makes room for another one. Whoever polls only at deadlines
/// polls then, too.
const IDLE_MAX: Duration = Duration::from_secs(120);

impl<'m> Echo<'m> {
    fn poll(&mut self, tcp: &mut Tcp<'m>, now: Instant) {
        // In advance, for a peer may talk at once; `can_accept` first would save the memory.
        if let Some(buffers) = self.buffers.take() {
            match tcp.accept(self.listener, buffers, now) {
                Ok(handle) => (self.connection, self.active) = (Some(handle), now),
                Err(rejected) => self.buffers = Some(rejected.buffers),
            }
        }
        let Some(handle) = self.connection else {
            return;
        };
        let mut bytes = [0; 128];
        loop {
            // Take no more than can be given back: then the peer's window closes, nothing is lost.
            let room = tcp
                .connection(handle)
                .map_or(0, |c| usize::from(c.can_send()));
            match tcp.recv(handle, &mut bytes[..room.min(128)]) {
                Ok(0) | Err(RecvError::Empty) => break,
                Ok(count) => match tcp.send(handle, &bytes[..count], now) {
                    Ok(_all) => self.active = now,
                    Err(SendError::BufferFull | SendError::Closing) => break,
                    Err(SendError::Failed(_) | SendError::NoConnection) => break,
                },
                Err(RecvError::Finished) => break tcp.shutdown(handle, now), // half-close
                Err(RecvError::Failed(_) | RecvError::NoConnection) => break, // reset, timeout …
            }
        }
        match tcp.connection(handle).map(Connection::state) {
            Some(State::Listen) => self.active = now, // lent in advance, it waits for a peer
            Some(_) if now.since(self.active) >= IDLE_MAX => tcp.abort(handle), // whatever its state
            _ => {}
        }
        let state = tcp.connection(handle).map(Connection::state);
        if matches!(state, None | Some(State::Closed | State::TimeWait)) {
            self.buffers = tcp.remove(handle);
            self.connection = None;
        }
    }
}

fn main() {
    let (host, mote) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let now = Instant::ORIGIN;
    let (mut memory_here, mut memory_there) = (Memory::new(), Memory::new());
    let mut there = memory_there.engine([1, 2]);
    let mut here = memory_here.engine([3, 4]);

    let listener = there.listen(None, 7, &SETTINGS).unwrap();
    let (mut send, mut recv) = ([0; 2048], [0; 2304]);
    let buffers = Some(Buffers::new(&mut send, &mut recv));
    let mut echo = Echo {
        listener,
        connection: None,
        buffers,
        active: now,
    };

    let (mut send, mut recv) = ([0; 256], [0; 256]);
    let buffers = Buffers::new(&mut send, &mut recv);
    let client = here
        .connect(host, (mote, 7), buffers, &SETTINGS, Offer::UNBOUNDED, now)
        .unwrap();
    here.send(client, b"hello, mote", now).unwrap();
    here.shutdown(client, now);

    let mut answer = Vec::new();
    for round in 0.. {
        let now = Instant::from_micros(round * 20_000);
        carry(&mut here, &mut there, now);
        echo.poll(&mut there, now);
        carry(&mut there, &mut here, now);
        let mut bytes = [0; 64];
        match here.recv(client, &mut bytes) {
            Ok(count) => answer.extend_from_slice(&bytes[..count]),
            Err(RecvError::Empty) => {}
            Err(_finished) => break,
        }
    }
    println!("{}", String::from_utf8_lossy(&answer));
}

/// What a node and a radio do between two engines, here without loss and in no time.
fn carry(from: &mut Tcp<'_>, to: &mut Tcp<'_>, now: Instant) {
    let mut out = [0; 1280];
    while let Some(segment) = from.poll_segment(now, |_| true, &mut out) {
        let incoming = IncomingSegment {
            src: segment.src,
            dst: segment.dst,
            zone: segment.zone,
            ecn: segment.ecn,
            offer: Offer::UNBOUNDED,
            bytes: &out[..segment.len],
        };
        let _ = to.on_segment(&incoming, now);
    }
}

/// An engine's memory: one connection, one listener, two handshakes.
struct Memory<'m> {
    connections: [Slot<'m>; 1],
    listeners: [Listener<'m>; 1],
    half_open: [HalfOpen; 2],
}

impl<'m> Memory<'m> {
    fn new() -> Self {
        let half_open = [HalfOpen::EMPTY; 2];
        Self {
            connections: [Slot::EMPTY],
            listeners: [Listener::EMPTY],
            half_open,
        }
    }

    fn engine(&'m mut self, seed: [u64; 2]) -> Tcp<'m> {
        let memory = tcp::Memory {
            connections: &mut self.connections,
            listeners: &mut self.listeners,
            half_open: &mut self.half_open,
        };
        Tcp::new(memory, &mut Rng::from_seed(seed))
    }
}
