//! What TCP costs. Built as it is, a node whose application makes every call that TCP has, so
//! that no feature can be left out; built without the feature `tcp`, the same node without
//! TCP. `cargo xtask sizes` takes the difference of the two images.
#![no_std]
#![no_main]

#[cfg(feature = "tcp-small")]
#[path = "../calls.rs"]
mod calls;
#[path = "../panic.rs"]
mod panic;

use core::hint::black_box;

use cortex_m_rt::entry;
use minimal_node::Storage;
use minimal_node::radio::Radio;
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event};

#[entry]
fn main() -> ! {
    static mut STORAGE: Storage = Storage::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    #[cfg(feature = "tcp-small")]
    let node = {
        let (node, buffers) = minimal_node::start(STORAGE, eui64, seed, now);
        black_box((buffers, calls::calls(), &minimal_node::SETTINGS));
        node
    };
    #[cfg(not(feature = "tcp-small"))]
    let node = minimal_node::start_without_tcp(STORAGE, eui64, seed, now);
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Mesh(event), now);
        }
        // The optimiser must assume that the calls behind the black box use the node, too.
        let node = black_box(&mut *node);
        while let Some((_, action)) = node.poll_action(now, OUT) {
            if let Action::Mesh(action) = action {
                radio.perform(action, OUT);
            }
        }
        radio.wake_at(node.next_deadline());
    }
}
