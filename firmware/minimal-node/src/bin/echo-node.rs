//! A mote that echoes what arrives at TCP port 7: one radio, one listener, one connection.
//!
//! Its linked image is what `cargo xtask sizes` measures. All its memory stands in `main`.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use cortex_m_rt::entry;
use minimal_node::radio::Radio;
use minimal_node::{SETTINGS, Storage, start};
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event, Node};
use motet::tcp::{Buffers, Handle, ListenerHandle, RecvError, Tcp};
use motet::time::{Duration, Instant};

#[entry]
fn main() -> ! {
    static mut STORAGE: Storage = Storage::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let (node, buffers) = start(STORAGE, eui64, seed, now);
    let mut echo = Echo {
        port: node.tcp_mut().listen(None, 7, &SETTINGS).ok(),
        peer: None,
        spare: Some(buffers),
        active: now,
    };
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Mesh(event), now);
            // An ACK may be due: it goes out before the application takes its time.
            perform(node, &mut radio, now, OUT);
        }
        echo.run(node.tcp_mut(), now);
        perform(node, &mut radio, now, OUT);
        let deadlines = node.next_deadline().into_iter().chain(echo.deadline());
        radio.wake_at(deadlines.min());
    }
}

/// Carries out what the node wants until it wants nothing.
#[inline(never)]
fn perform(node: &mut Node<'_>, radio: &mut Radio, now: Instant, out: &mut [u8]) {
    while let Some((_, action)) = node.poll_action(now, out) {
        if let Action::Mesh(action) = action {
            radio.perform(action, out);
        }
    }
}

/// The application: one peer at a time.
struct Echo {
    port: Option<ListenerHandle>,
    peer: Option<Handle>,
    spare: Option<Buffers<'static>>,
    /// When the peer last sent something that was taken.
    active: Instant,
}

/// A peer that says nothing for so long makes room for another one.
const IDLE_MAX: Duration = Duration::from_secs(120);

impl Echo {
    // Out of line: its buffer would lie below the stack's work otherwise.
    #[inline(never)]
    fn run(&mut self, tcp: &mut Tcp<'static>, now: Instant) {
        let Some(peer) = self.peer else {
            return self.accept(tcp, now);
        };
        // Bytes without room on the way back stay in the receive buffer; the window closes.
        let mut bytes = [0; 64];
        let room = tcp
            .connection(peer)
            .map_or(0, |c| usize::from(c.can_send()));
        let room = room.min(bytes.len());
        match tcp.recv(peer, bytes.get_mut(..room).unwrap_or_default()) {
            Ok(count @ 1..) => {
                let _all = tcp.send(peer, bytes.get(..count).unwrap_or_default(), now);
                self.active = now;
            }
            Err(RecvError::Finished) => tcp.close(peer, now),
            // No data has come, or none will come; the code below ends the latter case.
            Ok(_) | Err(_) => {}
        }
        if now >= self.active + IDLE_MAX {
            tcp.abort(peer);
        }
        if let Some(buffers) = tcp.remove(peer) {
            self.spare = Some(buffers);
            self.peer = None;
        }
    }

    /// When the peer has been idle for too long.
    fn deadline(&self) -> Option<Instant> {
        self.peer.map(|_| self.active + IDLE_MAX)
    }

    fn accept(&mut self, tcp: &mut Tcp<'static>, now: Instant) {
        let Some(port) = self.port.filter(|port| tcp.can_accept(*port)) else {
            return;
        };
        let Some(buffers) = self.spare.take() else {
            return;
        };
        match tcp.accept(port, buffers, now) {
            Ok(peer) => (self.peer, self.active) = (Some(peer), now),
            Err(rejected) => self.spare = Some(rejected.buffers),
        }
    }
}
