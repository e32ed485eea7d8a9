//! A parent of four, which may be a child, too.

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
