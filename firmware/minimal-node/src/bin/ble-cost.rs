//! What Bluetooth LE costs. Built with the feature `ble`, a mote with TCP and two links, one of
//! IEEE 802.15.4 and one over a Bluetooth LE controller; built without, the same mote with the
//! first link alone. `cargo xtask sizes` takes the difference of the two images: the host above the
//! controller with its L2CAP, and RFC 7668; and, with the feature `tcple` as well, TCPlE beside
//! that. A driver that makes HCI's packets of actions, and events of HCI's packets, is the
//! controller's own.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::hint::black_box;

use cortex_m_rt::entry;
use minimal_node::radio::Radio;
use minimal_node::{TwoLinks, start_two_links};
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event};

#[entry]
fn main() -> ! {
    static mut STORAGE: TwoLinks = TwoLinks::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let node = start_two_links(STORAGE, eui64, seed, now);
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Mesh(event), now);
        }
        // Behind the black box the controller may have reported anything.
        #[cfg(feature = "ble")]
        if let Some(event) = black_box(None::<motet::ble::Event<'static>>) {
            node.on_event(InterfaceId(1), Event::Ble(event), now);
        }
        // The optimiser must assume that the calls behind the black box use the node, too.
        let node = black_box(&mut *node);
        while let Some((_, action)) = node.poll_action(now, OUT) {
            match action {
                Action::Mesh(action) => radio.perform(action, OUT),
                #[cfg(feature = "ble")]
                Action::Ble(action) => {
                    black_box((action, &mut *OUT));
                }
                _ => {}
            }
        }
        radio.wake_at(node.next_deadline());
    }
}
