//! The memory of a node: reused from the node's previous start, or newly allocated.
//!
//! Purpose: a node may start a thousand times in a run, and allocated memory is freed only at the
//! end of the run. So the memory lent to one start serves the next one.

use motet::ble::Peer;
use motet::ip::{FragmentSlot, Fragments, Registration, Route, Step};
use motet::limits::{IPV6_MTU_MIN, MESH_PACKET_LEN_MAX};
use motet::link::{
    BleMemory, Cable, FlowEntry, FlowQueues, Indirect, Link, MeshMemory, TcpleMemory, Thinning,
};
use motet::lowpan::datagram::Record;
use motet::mac::security::Security;
use motet::mac::{FrameSlot, Neighbor};
use motet::node::{JoinProxy, Node};
use motet::random::Rng;
use motet::rpl::{Candidate, Rpl};
use motet::tcp::{self, HalfOpen, Listener, Slot, Tcp};
use motet::tcphc::Tcphc;

use super::Joining;
use super::build::Builder;
use crate::Arena;

/// Memory from an earlier start. Parts that are missing or have another size are allocated anew.
#[derive(Debug, Default)]
pub(super) struct NodeMemory<'m> {
    pub(super) links: Option<&'m mut [Link<'m>]>,
    pub(super) frames: Option<&'m mut [FrameSlot]>,
    pub(super) neighbors: Option<&'m mut [Neighbor]>,
    pub(super) records: Option<&'m mut [Record]>,
    pub(super) bodies: Option<&'m mut [u8]>,
    pub(super) outgoing: Option<&'m mut [u8]>,
    pub(super) queue: Option<&'m mut [u8]>,
    pub(super) registrations: Option<&'m mut [Registration]>,
    pub(super) tcphc: Option<&'m mut Tcphc<'m>>,
    pub(super) thinning: Option<&'m mut Thinning>,
    pub(super) flows: Option<&'m mut FlowQueues<'m>>,
    pub(super) indirect: Option<&'m mut Indirect<'m>>,
    pub(super) security: Option<&'m mut Security<'m>>,
    pub(super) join_proxy: Option<&'m mut JoinProxy>,
    pub(super) cable: Option<&'m mut [u8]>,
    pub(super) ble_flows: Option<&'m mut FlowQueues<'m>>,
    pub(super) ble_queue: Option<&'m mut [u8]>,
    pub(super) ble_registrations: Option<&'m mut [Registration]>,
    pub(super) peers: Option<&'m mut [Peer<'m>]>,
    pub(super) tcple: Option<TcpleMemory<'m>>,
    pub(super) routes: Option<&'m mut [Option<Route>]>,
    pub(super) candidates: Option<&'m mut [Candidate]>,
    pub(super) steps: Option<&'m mut [Option<Step>]>,
    pub(super) connections: Option<&'m mut [Slot<'m>]>,
    pub(super) listeners: Option<&'m mut [Listener<'m>]>,
    pub(super) half_open: Option<&'m mut [HalfOpen]>,
    pub(super) fragments: Option<&'m mut [FragmentSlot]>,
}

impl<'m> NodeMemory<'m> {
    /// The memory that a node which is switched off was lent; an inbox is its application's, which
    /// has it.
    pub(super) fn of(mut node: Node<'m>) -> Self {
        let join_proxy = node.take_join_proxy();
        let layers = node.into_layers();
        let tcp::Memory {
            connections,
            listeners,
            half_open,
        } = layers.tcp.into_memory();
        let mut returned = Self {
            routes: Some(layers.ip.into_memory()),
            candidates: layers.rpl.map(Rpl::into_memory),
            steps: Some(layers.steps),
            connections: Some(connections),
            listeners: Some(listeners),
            half_open: Some(half_open),
            fragments: layers.fragments.map(Fragments::into_memory),
            join_proxy,
            ..Self::default()
        };
        for link in layers.links.iter_mut() {
            match std::mem::replace(link, Link::Cable(Cable::new(&mut [], 0))) {
                Link::Mesh(mut mesh) => {
                    returned.indirect = mesh.take_indirect();
                    returned.thinning = mesh.take_thinning();
                    returned.flows = mesh.take_flow_queues();
                    returned.security = mesh.take_security();
                    let (memory, tcphc) = mesh.into_memory();
                    returned.take_mesh(memory);
                    returned.tcphc = tcphc;
                }
                Link::Cable(cable) => returned.cable = Some(cable.into_memory()),
                Link::Ble(mut ble) => {
                    returned.tcple = ble.take_tcple();
                    returned.ble_flows = ble.take_flow_queues();
                    let BleMemory {
                        peers,
                        queue,
                        registrations,
                    } = ble.into_memory();
                    returned.peers = Some(peers);
                    returned.ble_queue = Some(queue);
                    returned.ble_registrations = Some(registrations);
                }
                // No node of the lab has one.
                Link::Serial(_) => {}
            }
        }
        returned.links = Some(layers.links);
        returned
    }

    fn take_mesh(&mut self, memory: MeshMemory<'m>) {
        // Without `..`, so that memory for a new part of a link cannot be forgotten here.
        let MeshMemory {
            frames,
            neighbors,
            records,
            bodies,
            body_len: _,
            outgoing,
            queue,
            registrations,
        } = memory;
        self.frames = Some(frames);
        self.neighbors = Some(neighbors);
        self.records = Some(records);
        self.bodies = Some(bodies);
        self.outgoing = Some(outgoing);
        self.queue = Some(queue);
        self.registrations = Some(registrations);
    }
}

impl<'m> Builder<'_, 'm> {
    /// Allocates, for each mesh node, the buffers that few of its frames touch. They lie side by
    /// side, so that the memory that every frame touches, of thousands of nodes, covers few pages.
    pub(super) fn buffers(self) -> impl Iterator<Item = NodeMemory<'m>> {
        let lens = move |n| match self.options.is_ble(n) {
            true => [0; 2],
            false => self.buffer_lens(n),
        };
        let nodes = 0..self.options.nodes.len();
        let total = nodes.clone().flat_map(lens).sum();
        let mut rest = &mut *self.arena.alloc_slice_fill_copy(total, 0);
        nodes.map(move |n| {
            let [bodies, queue] = lens(n).map(|len| {
                let (buffer, others) = std::mem::take(&mut rest).split_at_mut(len);
                rest = others;
                Some(buffer)
            });
            NodeMemory {
                bodies,
                queue,
                ..NodeMemory::default()
            }
        })
    }

    /// Queues for flows from outside, with as many bytes as the border router's own packets have,
    /// in memory that came back if there is some.
    pub(super) fn flow_queues(
        self,
        memory: Option<&'m mut FlowQueues<'m>>,
    ) -> &'m mut FlowQueues<'m> {
        let Some(place) = memory else {
            let packets = self.options.nodes[0].tables.packet_queue_len;
            let packets = self.arena.alloc_slice_fill_copy(packets, 0);
            let flows = (FLOWS_EACH * self.options.nodes.len()).clamp(FLOWS_MIN, FLOWS_MAX);
            let flows = self
                .arena
                .alloc_slice_fill_with(flows, |_| FlowEntry::EMPTY);
            return self.arena.alloc(FlowQueues::new(packets, flows));
        };
        let before = std::mem::replace(place, FlowQueues::new(&mut [], &mut []));
        let (packets, flows) = before.into_memory();
        *place = FlowQueues::new(packets, flows);
        place
    }

    /// The bytes of mesh node `n` for packets in reassembly, and for packets in its queue.
    pub(super) fn buffer_lens(self, n: usize) -> [usize; 2] {
        let tables = &self.options.nodes[n].tables;
        [
            tables.bodies * self.packet_len_max(),
            tables.packet_queue_len,
        ]
    }

    /// The memory for waiting ACKs, reused from an earlier start if possible.
    pub(super) fn thinning(self, memory: Option<&'m mut Thinning>) -> &'m mut Thinning {
        let place = memory.unwrap_or_else(|| self.arena.alloc(Thinning::new()));
        *place = Thinning::new();
        place
    }

    /// The longest packet of the mesh.
    pub(super) fn packet_len_max(self) -> usize {
        match self.options.joining {
            Joining::Rpl => MESH_PACKET_LEN_MAX,
            Joining::Static | Joining::Advertised | Joining::Thread => IPV6_MTU_MIN,
        }
    }
}

/// Memory for `entries`: returned memory if it has the right size, or new memory of the arena.
pub(super) fn reuse_or_alloc<'m, T>(
    returned: &mut Option<&'m mut [T]>,
    arena: &'m Arena,
    entries: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> &'m mut [T] {
    let entries = entries.into_iter();
    match returned.take() {
        Some(memory) if memory.len() == entries.len() => {
            for (place, entry) in memory.iter_mut().zip(entries) {
                *place = entry;
            }
            memory
        }
        _ => arena.alloc_slice_fill_iter(entries),
    }
}

/// As [`reuse_or_alloc`], with `len` entries of one kind.
pub(super) fn reuse_or_fill<'m, T>(
    returned: &mut Option<&'m mut [T]>,
    arena: &'m Arena,
    len: usize,
    entry: impl Fn() -> T,
) -> &'m mut [T] {
    reuse_or_alloc(returned, arena, (0..len).map(|_| entry()))
}

/// Lends a node memory for packets that come in fragments of IPv6.
pub(super) fn give_fragments<'m>(
    node: &mut Node<'m>,
    returned: &mut NodeMemory<'m>,
    arena: &'m Arena,
) {
    let empty = || FragmentSlot::EMPTY;
    node.lend_fragments(reuse_or_fill(
        &mut returned.fragments,
        arena,
        FRAGMENTED,
        empty,
    ));
}

/// As much, to a node that is alone in its world.
pub(crate) fn give_new_fragments<'m>(node: &mut Node<'m>, arena: &'m Arena) {
    give_fragments(node, &mut NodeMemory::default(), arena);
}

/// Packets in fragments that a node puts together at a time: one of each of two peers.
const FRAGMENTED: usize = 2;

/// TCP flows that a border router can distinguish, for each node of its mesh; from [`FLOWS_MIN`] to
/// [`FLOWS_MAX`] in all.
const FLOWS_EACH: usize = 4;

/// TCP flows that a border router tells apart in a small mesh.
const FLOWS_MIN: usize = 32;

/// The stack numbers its queues by a byte, of which the first eight are those of strangers.
const FLOWS_MAX: usize = 1 + u8::MAX as usize - 8;

/// The TCP of a node with these numbers of connections, listeners and handshakes.
pub(crate) fn new_tcp<'m>(sockets: [usize; 3], rng: &mut Rng, arena: &'m Arena) -> Tcp<'m> {
    tcp(&mut NodeMemory::default(), arena, sockets, rng)
}

pub(super) fn wire<'m>(returned: &mut NodeMemory<'m>, arena: &'m Arena) -> Cable<'m> {
    let queue = reuse_or_fill(&mut returned.cable, arena, WIRE_QUEUE_LEN, || 0);
    Cable::new(queue, WIRED_MTU)
}

pub(super) fn tcp<'m>(
    returned: &mut NodeMemory<'m>,
    arena: &'m Arena,
    [connections, listeners, half_open]: [usize; 3],
    rng: &mut Rng,
) -> Tcp<'m> {
    let free = || Slot::EMPTY;
    let memory = tcp::Memory {
        connections: reuse_or_fill(&mut returned.connections, arena, connections, free),
        listeners: reuse_or_fill(&mut returned.listeners, arena, listeners, || {
            Listener::EMPTY
        }),
        half_open: reuse_or_fill(&mut returned.half_open, arena, half_open, || {
            HalfOpen::EMPTY
        }),
    };
    Tcp::new(memory, rng)
}

/// Bytes of packets that wait for the wire; they never do for long.
const WIRE_QUEUE_LEN: usize = 8 * 1_500;

/// Ethernet's; the mesh's own MTU bounds what comes from the motes.
const WIRED_MTU: u16 = 1_280;
