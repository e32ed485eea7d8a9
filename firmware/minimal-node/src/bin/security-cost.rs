//! What link security costs. Built with the feature `security`, a mote that passes packets on,
//! seals every frame with AES in software and believes no other; built without, the same mote with
//! no key. Neither speaks TCP. `cargo xtask sizes` takes the difference of the two images.
#![no_std]
#![no_main]

#[cfg(feature = "security")]
#[path = "../keyed.rs"]
mod keyed;
#[path = "../panic.rs"]
mod panic;

use core::hint::black_box;

use cortex_m_rt::entry;
use minimal_node::radio::Radio;
use minimal_node::{RouterStorage, start_router};
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event};

#[entry]
fn main() -> ! {
    static mut STORAGE: RouterStorage = RouterStorage::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];
    #[cfg(feature = "security")]
    static mut KEYED: keyed::Memory = keyed::Memory::EMPTY;

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let node = start_router(STORAGE, eui64, seed, now);
    #[cfg(feature = "security")]
    {
        KEYED.give(node);
        black_box(keyed::calls());
    }
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
        #[cfg(feature = "security")]
        while let Some((id, bound)) = node.poll_reservation(now) {
            node.on_reserved(id, bound, black_box(true), now);
        }
        radio.wake_at(node.next_deadline());
    }
}
