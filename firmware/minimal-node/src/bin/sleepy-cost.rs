//! What nodes that sleep cost. Built with the feature `sleepy`, a mote that passes packets on keeps
//! those for four nodes that sleep, and may sleep itself; built without, the same mote is always
//! on. Neither speaks TCP. `cargo xtask sizes` takes the difference of the two images.
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

#[entry]
fn main() -> ! {
    static mut STORAGE: RouterStorage = RouterStorage::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];
    #[cfg(feature = "sleepy")]
    static mut PARENT: parent::Memory = parent::Memory::EMPTY;

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let node = start_router(STORAGE, eui64, seed, now);
    #[cfg(feature = "sleepy")]
    PARENT.serve(node);
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

/// A parent of four, which may be a child, too.
#[cfg(feature = "sleepy")]
mod parent {
    use core::hint::black_box;
    use core::mem::MaybeUninit;

    use motet::ip::InterfaceId;
    use motet::limits::IPV6_MTU_MIN;
    use motet::link::{Child, Indirect, IndirectConfig, Link};
    use motet::mac::{Policy, Sleep};
    use motet::node::Node;
    use motet::time::Duration;

    const CHILDREN: usize = 4;

    /// Room for two packets of full length, each with seven bytes of its own.
    const PACKETS_LEN: usize = 2 * (IPV6_MTU_MIN + 7);

    /// Lent for as long as the mote runs.
    pub(super) struct Memory {
        children: [Child; CHILDREN],
        packets: [u8; PACKETS_LEN],
        outgoing: [u8; IPV6_MTU_MIN],
        indirect: MaybeUninit<Indirect<'static>>,
    }

    impl Memory {
        /// Not lent yet.
        pub(super) const EMPTY: Self = Self {
            children: [Child::EMPTY; CHILDREN],
            packets: [0; PACKETS_LEN],
            outgoing: [0; IPV6_MTU_MIN],
            indirect: MaybeUninit::uninit(),
        };

        /// Makes a node a parent; whether and how it sleeps itself the optimiser does not know.
        #[inline(never)]
        pub(super) fn serve(&'static mut self, node: &mut Node<'static>) {
            let indirect = Indirect::new(
                IndirectConfig::DEFAULT,
                &mut self.children,
                &mut self.packets,
                &mut self.outgoing,
            );
            let indirect = self.indirect.write(indirect);
            let policy = match black_box(0) {
                0 => Some(Policy::Hinted(black_box(Duration::ZERO))),
                1 => Some(Policy::Adaptive),
                2 => Some(Policy::Paper),
                3 => Some(Policy::Fixed(black_box(Duration::ZERO))),
                _ => None,
            };
            if let Some(Link::Mesh(mesh)) = node.link_mut(InterfaceId(0)) {
                mesh.serve_sleepers(indirect);
                mesh.set_sleep(policy.map(Sleep::new));
            }
            node.expect_answer(black_box(None));
        }
    }
}
