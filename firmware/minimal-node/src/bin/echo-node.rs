//! A mote that echoes what it is sent to TCP port 7: one radio, one listener, one connection.
//!
//! Its linked image is what `cargo xtask sizes` measures. All its memory stands in `main`.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::mem::MaybeUninit;

use cortex_m_rt::entry;
use minimal_node::Memory;
use minimal_node::radio::Radio;
use motet::ip::InterfaceId;
use motet::lowpan::datagram::Record;
use motet::mac::{FrameSlot, Neighbor};
use motet::node::{self, ACTION_LEN_MAX, Action, Event, Interface};
use motet::tcp::{self, Buffers, Config, HalfOpen, Listener, RecvError, Slot, Tcp};
use motet::tcp::{Handle, ListenerHandle};
use motet::time::Instant;

/// Bytes that may wait to be sent, and as many for what arrives: eight ninths of those are
/// the window.
const BUFFER_LEN: usize = 2048;

static SETTINGS: Config = Config {
    accept_window: (BUFFER_LEN * 8 / 9) as u16,
    ..Config::DEFAULT
};

#[entry]
fn main() -> ! {
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];
    // The MAC's: one segment of five frames and a little control traffic.
    static mut FRAMES: [FrameSlot; 8] = [FrameSlot::EMPTY; 8];
    static mut NEIGHBORS: [Neighbor; 4] = [Neighbor::EMPTY; 4];
    // 6LoWPAN's: a packet in pieces each way.
    static mut OUTGOING: [u8; 1280] = [0; 1280];
    static mut RECORDS: [Record; 2] = [Record::EMPTY; 2];
    static mut BODY: [u8; 1280] = [0; 1280];
    static mut QUEUE: [u8; 256] = [0; 256];
    // TCP's.
    static mut CONNECTIONS: [Slot<'static>; 1] = [Slot::EMPTY];
    static mut LISTENERS: [Listener<'static>; 1] = [Listener::EMPTY];
    static mut HALF_OPEN: [HalfOpen; 2] = [HalfOpen::EMPTY; 2];
    static mut SEND: [u8; BUFFER_LEN] = [0; BUFFER_LEN];
    static mut RECV: [u8; BUFFER_LEN] = [0; BUFFER_LEN];
    // The layers themselves.
    static mut INTERFACES: MaybeUninit<[Interface<'static>; 1]> = MaybeUninit::uninit();
    static mut NODE: MaybeUninit<node::Node<'static>> = MaybeUninit::uninit();

    let mut radio = Radio::new();
    let memory = Memory {
        frames: FRAMES,
        neighbors: NEIGHBORS,
        outgoing: OUTGOING,
        records: RECORDS,
        body: BODY,
        queue: QUEUE,
        tcp: tcp::Memory {
            connections: CONNECTIONS,
            listeners: LISTENERS,
            half_open: HALF_OPEN,
        },
        interfaces: INTERFACES,
        node: NODE,
    };
    let node = minimal_node::start(
        memory,
        radio.eui64(),
        Radio::CAPABILITIES,
        radio.seed(),
        radio.now(),
    );
    let mut echo = Echo {
        port: node.tcp_mut().listen(None, 7, &SETTINGS).ok(),
        peer: None,
        spare: Some(Buffers::new(SEND, RECV)),
    };
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Radio(event), now);
        }
        echo.run(node.tcp_mut(), now);
        while let Some((_, action)) = node.poll_action(now, OUT) {
            if let Action::Radio(action) = action {
                radio.perform(action, OUT);
            }
        }
        radio.wake_at(node.next_deadline());
    }
}

/// The application: one peer at a time.
struct Echo {
    port: Option<ListenerHandle>,
    peer: Option<Handle>,
    spare: Option<Buffers<'static>>,
}

impl Echo {
    fn run(&mut self, tcp: &mut Tcp<'static>, now: Instant) {
        let Some(peer) = self.peer else {
            return self.accept(tcp, now);
        };
        // What finds no room to go back stays in the window, which closes.
        let mut bytes = [0; 64];
        let room = tcp
            .connection(peer)
            .map_or(0, |c| usize::from(c.can_send()));
        let room = room.min(bytes.len());
        match tcp.recv(peer, bytes.get_mut(..room).unwrap_or_default()) {
            Ok(count) => {
                let _all = tcp.send(peer, bytes.get(..count).unwrap_or_default(), now);
            }
            Err(RecvError::Finished) => tcp.close(peer, now),
            // Nothing has come, or nothing will; the latter ends below.
            Err(_) => {}
        }
        if let Some(buffers) = tcp.remove(peer) {
            self.spare = Some(buffers);
            self.peer = None;
        }
    }

    fn accept(&mut self, tcp: &mut Tcp<'static>, now: Instant) {
        let Some(port) = self.port.filter(|port| tcp.can_accept(*port)) else {
            return;
        };
        let Some(buffers) = self.spare.take() else {
            return;
        };
        match tcp.accept(port, buffers, now) {
            Ok(peer) => self.peer = Some(peer),
            Err(rejected) => self.spare = Some(rejected.buffers),
        }
    }
}
