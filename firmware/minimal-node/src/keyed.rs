//! A key, and memory for sixteen neighbours that have it.

use core::hint::black_box;
use core::mem::MaybeUninit;

use motet::ip::InterfaceId;
use motet::link::{Link, Mesh};
use motet::mac::security::{NetworkKey, Peer, Security, SecurityConfig};
use motet::node::Node;

/// Neighbours with the key.
const NEIGHBOURS: usize = 16;

/// Lent for as long as the mote runs.
pub(super) struct Memory {
    peers: [Peer; NEIGHBOURS],
    security: MaybeUninit<Security<'static>>,
}

impl Memory {
    /// Not lent yet.
    pub(super) const EMPTY: Self = Self {
        peers: [Peer::EMPTY; NEIGHBOURS],
        security: MaybeUninit::uninit(),
    };

    /// Gives a node its key.
    #[inline(never)]
    pub(super) fn give(&'static mut self, node: &mut Node<'static>) {
        let key = NetworkKey::new(black_box([1; 16]));
        let config = SecurityConfig::new(key, black_box(0));
        let security = Security::new(&config, &mut self.peers);
        let security = self.security.write(security);
        if let Some(Link::Mesh(mesh)) = node.link_mut(InterfaceId(0)) {
            mesh.set_security(security);
        }
    }
}

/// What an application asks of link security, by address: behind the black box anybody may ask
/// it.
pub(super) fn calls() -> &'static [*const ()] {
    &[
        Mesh::rotate_key as *const (),
        SecurityConfig::resume as *const (),
    ]
}
