//! What a router of the mesh needs beside a leaf: memory for the nodes below it, and its part in RPL.
//!
//! Place: part of a node's memory; with `children` 0 it is empty. Left out: the root of a mesh, which
//! is `motet router`.

use motet::ip::{InterfaceId, Registration, Route};
use motet::limits::MESH_PACKET_LEN_MAX;
use motet::link::{Child, Indirect, IndirectConfig, Mesh};
use motet::node::Node;
use motet::rpl::{self, RplRole};
use motet::time::Instant;

use crate::config::motet_config;
use crate::memory::{Carver, Piece};

/// Where everything for nodes below lies.
pub(crate) struct Below {
    registrations: Piece<Registration>,
    routes: Piece<Option<Route>>,
    candidates: Piece<rpl::Candidate>,
    indirect: Piece<Indirect<'static>>,
    children: Piece<Child>,
    packets: Piece<u8>,
    outgoing: Piece<u8>,
}

/// The memory itself.
pub(crate) struct Memory {
    pub(crate) registrations: &'static mut [Registration],
    pub(crate) routes: &'static mut [Option<Route>],
    pub(crate) candidates: Candidates,
    pub(crate) parent: Parent,
}

/// The neighbours that a router may choose as its parent; none: a leaf.
pub(crate) struct Candidates(Option<&'static mut [rpl::Candidate]>);

/// Packets for children that sleep, where the node keeps them.
pub(crate) struct Parent(Option<&'static mut Indirect<'static>>);

impl Below {
    pub(crate) fn of(config: &motet_config, carver: &mut Carver) -> Self {
        let count = match config.is_router() {
            true => usize::from(config.children),
            false => 0,
        };
        let serves = serves(config);
        let per_parent = |len: usize| if serves { len } else { 0 };
        Self {
            registrations: carver.take(count),
            routes: carver.take(count),
            candidates: carver.take(if count > 0 { CANDIDATES } else { 0 }),
            indirect: carver.take(per_parent(1)),
            children: carver.take(per_parent(count)),
            packets: carver.take(per_parent(config.children_len.into())),
            outgoing: carver.take(per_parent(MESH_PACKET_LEN_MAX)),
        }
    }

    /// Fills all of it.
    ///
    /// # Safety
    /// As [`Piece::fill`]; it was cut for `config`.
    pub(crate) unsafe fn fill(self, config: &motet_config) -> Memory {
        // SAFETY: the caller's promises.
        unsafe {
            let candidates = self.candidates.fill(|| rpl::Candidate::EMPTY);
            let children = self.children.fill(|| Child::EMPTY);
            let packets = self.packets.fill(|| 0);
            let outgoing = self.outgoing.fill(|| 0);
            let parent = serves(config).then(|| {
                let settings = IndirectConfig::DEFAULT;
                self.indirect
                    .write(Indirect::new(settings, children, packets, outgoing))
            });
            Memory {
                registrations: self.registrations.fill(|| Registration::EMPTY),
                routes: self.routes.fill(|| None),
                candidates: Candidates(config.is_router().then_some(candidates)),
                parent: Parent(parent),
            }
        }
    }
}

impl Candidates {
    /// Begins a router's part in RPL.
    pub(crate) fn begin(self, node: &mut Node<'static>, now: Instant) {
        if let Self(Some(candidates)) = self {
            node.start_rpl(InterfaceId(0), RplRole::Router, candidates, &mut [], now);
        }
    }
}

impl Parent {
    /// Lets the link keep packets for children that sleep.
    pub(crate) fn serve(self, mesh: &mut Mesh<'static>) {
        if let Self(Some(indirect)) = self {
            mesh.serve_sleepers(indirect);
        }
    }
}

const fn serves(config: &motet_config) -> bool {
    config.is_router() && config.children_len > 0
}

/// Neighbours that are thought of as a parent.
const CANDIDATES: usize = 8;
