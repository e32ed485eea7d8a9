//! A mote with all parts of Motet at once: TCP with compressed headers, RPL, a key, conditional
//! immediate transmission, its own pace, both sides of sleep, and a second link over Bluetooth LE
//! with TCPlE. `cargo xtask sizes` measures its image. Left out: what border routers have, RPL's
//! headers as IPv6 has them among it, and Thread's networks.
#![no_std]
#![no_main]

#[path = "../calls.rs"]
mod calls;
#[path = "../keyed.rs"]
mod keyed;
#[path = "../panic.rs"]
mod panic;
#[path = "../parent.rs"]
mod parent;

use core::hint::black_box;
use core::mem::MaybeUninit;

use cortex_m_rt::entry;
use minimal_node::radio::Radio;
use minimal_node::{BUFFER_LEN, SETTINGS, TwoLinks, start_two_links};
use motet::ip::InterfaceId;
use motet::link::Link;
use motet::node::{ACTION_LEN_MAX, Action, Event, Node};
use motet::random::Rng;
use motet::rpl::{Candidate, RplRole};
use motet::tcphc::{self, Tcphc};
use motet::time::Instant;

/// Neighbours that may become the parent.
const CANDIDATES: usize = 8;

#[entry]
fn main() -> ! {
    static mut STORAGE: TwoLinks = TwoLinks::EMPTY;
    static mut COMPRESSED: Compressed = Compressed::EMPTY;
    static mut NEIGHBOURS: [Candidate; CANDIDATES] = [const { Candidate::EMPTY }; CANDIDATES];
    static mut KEYED: keyed::Memory = keyed::Memory::EMPTY;
    static mut PARENT: parent::Memory = parent::Memory::EMPTY;
    static mut BUFFERS: [[u8; BUFFER_LEN]; 2] = [[0; BUFFER_LEN]; 2];
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let node = start_two_links(STORAGE, eui64, seed, now);
    COMPRESSED.give(node, seed, now);
    node.start_rpl(InterfaceId(0), RplRole::Router, NEIGHBOURS, &mut [], now);
    KEYED.give(node);
    PARENT.serve(node);
    black_box((&mut *BUFFERS, calls::calls(), keyed::calls(), &SETTINGS));
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Mesh(event), now);
        }
        // Behind the black box the controller may have reported anything.
        if let Some(event) = black_box(None::<motet::ble::Event<'static>>) {
            node.on_event(InterfaceId(1), Event::Ble(event), now);
        }
        // The optimiser must assume that the calls behind the black box use the node, too.
        let node = black_box(&mut *node);
        while let Some((_, action)) = node.poll_action(now, OUT) {
            match action {
                Action::Mesh(action) => radio.perform(action, OUT),
                Action::Ble(action) => {
                    black_box((action, &mut *OUT));
                }
                _ => {}
            }
        }
        while let Some((id, bound)) = node.poll_reservation(now) {
            node.on_reserved(id, bound, black_box(true), now);
        }
        radio.wake_at(node.next_deadline());
    }
}

/// The memory of two compressed connections.
struct Compressed {
    contexts: MaybeUninit<[tcphc::Context; 2]>,
    tcphc: MaybeUninit<Tcphc<'static>>,
}

impl Compressed {
    /// Not lent yet.
    const EMPTY: Self = Self {
        contexts: MaybeUninit::uninit(),
        tcphc: MaybeUninit::uninit(),
    };

    #[inline(never)]
    fn give(&'static mut self, node: &mut Node<'static>, seed: [u64; 2], now: Instant) {
        let mut rng = Rng::from_seed(seed);
        let contexts = self.contexts.write([tcphc::Context::EMPTY; 2]);
        let tcphc = Tcphc::new(contexts, tcphc::Config::AGREED, now, &mut rng);
        let tcphc = self.tcphc.write(tcphc);
        if let Some(Link::Mesh(mesh)) = node.link_mut(InterfaceId(0)) {
            mesh.set_tcphc(tcphc);
        }
    }
}
