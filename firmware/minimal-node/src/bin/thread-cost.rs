//! What a child of a Thread network costs. Built with the feature `thread`, a mote with a key that
//! may sleep attaches to the routers of such a network; built without, the same mote has its key
//! and its sleep alone. Neither speaks TCP. `cargo xtask sizes` takes the difference of the two
//! images.
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
    static mut KEYED: keyed::Memory = keyed::Memory::EMPTY;

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    let node = start_router(STORAGE, eui64, seed, now);
    KEYED.give(node, eui64);
    black_box(keyed::calls());
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
        while let Some((id, bound)) = node.poll_reservation(now) {
            node.on_reserved(id, bound, black_box(true), now);
        }
        #[cfg(feature = "thread")]
        keyed::look(node);
        radio.wake_at(node.next_deadline());
    }
}

/// A key, memory for the neighbours that have it, and a child with the dataset of that key.
mod keyed {
    use core::hint::black_box;
    use core::mem::MaybeUninit;

    use motet::ip::InterfaceId;
    use motet::link::{Link, Mesh};
    #[cfg(not(feature = "thread"))]
    use motet::mac::security::NetworkKey;
    use motet::mac::security::{Peer, Security, SecurityConfig};
    use motet::mac::{Policy, Sleep};
    use motet::node::Node;
    #[cfg(feature = "thread")]
    use motet::thread::{CHILD_TIMEOUT, Child, ChildConfig, Dataset, Identity};
    use motet::time::Duration;

    /// Neighbours with the key: a parent, and the next one.
    const NEIGHBOURS: usize = 2;

    /// Lent for as long as the mote runs.
    pub(super) struct Memory {
        peers: [Peer; NEIGHBOURS],
        security: MaybeUninit<Security<'static>>,
        #[cfg(feature = "thread")]
        child: MaybeUninit<Child>,
    }

    impl Memory {
        /// Not lent yet.
        pub(super) const EMPTY: Self = Self {
            peers: [Peer::EMPTY; NEIGHBOURS],
            security: MaybeUninit::uninit(),
            #[cfg(feature = "thread")]
            child: MaybeUninit::uninit(),
        };

        /// Gives a node its key; whether it sleeps the optimiser does not know.
        #[inline(never)]
        pub(super) fn give(&'static mut self, node: &mut Node<'static>, eui64: [u8; 8]) {
            let policy = Policy::Hinted(black_box(Duration::ZERO));
            let sleep = black_box(true).then_some(policy).map(Sleep::new);
            let Some(Link::Mesh(mesh)) = node.link_mut(InterfaceId(0)) else {
                return;
            };
            mesh.set_sleep(sleep);
            #[cfg(not(feature = "thread"))]
            let (network, _) = (NetworkKey::new(black_box([1; 16])), eui64);
            #[cfg(feature = "thread")]
            let Ok(dataset) = Dataset::parse(black_box(&[])) else {
                return;
            };
            #[cfg(feature = "thread")]
            let network = dataset.network;
            let config = SecurityConfig::new(network, black_box(0));
            let security = Security::new(&config, &mut self.peers);
            mesh.set_security(self.security.write(security));
            #[cfg(feature = "thread")]
            let _placed = mesh.set_thread(self.child.write(Child::new(&ChildConfig {
                dataset,
                identity: Identity {
                    extended: eui64,
                    iid: black_box([1; 8]),
                },
                timeout: CHILD_TIMEOUT,
                former: black_box(None),
            })));
        }
    }

    /// What an application sees of the network.
    #[cfg(feature = "thread")]
    pub(super) fn look(node: &mut Node<'static>) {
        let mesh = node.link(InterfaceId(0)).and_then(Link::mesh);
        if let Some(child) = mesh.and_then(Mesh::thread) {
            black_box((child.place(), child.refusal(), child.state()));
        }
    }

    /// What an application asks of link security, and of its network, by address: behind the black
    /// box anybody may ask it.
    pub(super) fn calls() -> &'static [*const ()] {
        &[
            Mesh::rotate_key as *const (),
            SecurityConfig::resume as *const (),
            #[cfg(feature = "thread")]
            {
                Mesh::leave_thread as *const ()
            },
        ]
    }
}
