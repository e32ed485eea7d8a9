//! What RPL costs. Built with the feature `rpl`, a mote that finds its place in a mesh and passes
//! packets on for others; built without, a mote that passes packets on along routes that it was
//! given. Neither speaks TCP. `cargo xtask sizes` takes the difference of the two images: RPL, and
//! routing headers in their compressed form (RFC 8138). Built with the feature `plain-rpl` it has
//! their other forms, too; with `advertise` it passes on the contexts of the mesh; with `leaves` it
//! also keeps the registrations of neighbours without RPL (RFC 8505).
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::hint::black_box;

use cortex_m_rt::entry;
use minimal_node::radio::Radio;
use minimal_node::{RouterStorage, start_router};
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event};
#[cfg(feature = "rpl")]
use motet::rpl::{Candidate, RplRole};

/// Neighbours that may become the parent.
#[cfg(feature = "rpl")]
const CANDIDATES: usize = 8;

#[entry]
fn main() -> ! {
    static mut STORAGE: RouterStorage = RouterStorage::EMPTY;
    #[cfg(feature = "rpl")]
    static mut NEIGHBOURS: [Candidate; CANDIDATES] = [const { Candidate::EMPTY }; CANDIDATES];
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let node = start_router(STORAGE, eui64, seed, now);
    #[cfg(feature = "rpl")]
    {
        node.start_rpl(InterfaceId(0), RplRole::Router, NEIGHBOURS, &mut [], now);
        black_box(calls());
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
        radio.wake_at(node.next_deadline());
    }
}

/// What an application asks of RPL, by address: behind the black box anybody may ask it.
#[cfg(feature = "rpl")]
fn calls() -> &'static [*const ()] {
    use motet::node::Node;
    use motet::rpl::Rpl;

    &[
        Node::rpl as *const (),
        Node::rpl_mut as *const (),
        Rpl::leave as *const (),
        Rpl::rank as *const (),
        Rpl::hops as *const (),
        Rpl::is_reachable as *const (),
        Rpl::dropped as *const (),
    ]
}
