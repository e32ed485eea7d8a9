//! The node: its memory, its beginning and its end.

use core::ptr;

use motet::ip::{self, Ip};
use motet::limits::{IPV6_MTU_MIN, MESH_PACKET_LEN_MAX, PSDU_LEN_MAX};
use motet::link::{Link, Mesh, MeshMemory};
use motet::lowpan::datagram::Record;
use motet::mac::{FrameSlot, Neighbor};
use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{self, Buffers, HalfOpen, Listener, Memory, Slot, Tcp};
use motet::time::Instant;
use motet::udp::Inbox;

use crate::below::{self, Below};
use crate::config::{self, motet_config, read};
use crate::errno::{Errno, MOTET_EBADF, MOTET_EFAULT, MOTET_EINVAL, MOTET_ENOMEM, code};
use crate::headers::Headers;
use crate::joining::Joining;
use crate::memory::{ALIGN, Carver, Piece, place};
use crate::sockets::{Entry, Listening, Sockets, UDP_PORTS};

/// A node. Opaque: it lives in memory of motet_node_size bytes, and must not be moved or copied.
pub struct motet_node {
    /// [`tag_of`] its address, while it lives.
    tag: usize,
    pub(crate) node: Node<'static>,
    pub(crate) sockets: Sockets,
    pub(crate) joining: Joining,
    pub(crate) out: &'static mut [u8],
}

/// Bytes of memory that a node with this configuration takes; 0: the configuration cannot be.
///
/// # Safety
/// Unless it is null or misaligned, `config` points to a configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_node_size(config: *const motet_config) -> usize {
    // SAFETY: the caller's promise.
    let config = unsafe { read(config) };
    config.map_or(0, |config| size_of(&config).unwrap_or(0))
}

/// What the address of that memory has to be a multiple of.
#[unsafe(no_mangle)]
pub extern "C" fn motet_node_align() -> usize {
    ALIGN
}

/// Starts a node in memory that is the node's from then on, until motet_node_end; writes where it
/// is to `node`. Returns 0, or -MOTET_EFAULT, EINVAL (the configuration or the clock),
/// ENOMEM (too small). Every now_us is of one clock that never goes back; a call with 2^63 or more
/// does nothing and returns -MOTET_EINVAL.
///
/// # Safety
/// Unless they are null or misaligned, `memory` points to `size` bytes, `config` to a configuration,
/// `node` to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_node_init(
    memory: *mut core::ffi::c_void,
    size: usize,
    config: *const motet_config,
    now_us: u64,
    node: *mut *mut motet_node,
) -> i32 {
    let begin = || {
        // SAFETY: the caller's promise.
        let node = unsafe { place(node) }?;
        let now = instant(now_us)?;
        if memory.is_null() || !memory.addr().is_multiple_of(ALIGN) {
            return Err(Errno(MOTET_EFAULT));
        }
        // SAFETY: the caller's promise.
        let config = unsafe { read(config) }?;
        if size_of(&config).is_none_or(|needed| size < needed) {
            return Err(Errno(MOTET_ENOMEM));
        }
        // SAFETY: aligned, and as long as the layout is; the caller gives it away.
        node.write(unsafe { start(memory.cast(), &config, now) }?);
        Ok(0)
    };
    code(begin())
}

/// Ends a node: its memory is the caller's again, and every socket of it is closed. Peers hear
/// nothing of it. Returns 0 or -MOTET_EBADF.
///
/// # Safety
/// `node` is null, or what motet_node_init gave, or memory that may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_node_end(node: *mut motet_node) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with(node, |node| {
            node.tag = 0;
            Ok(0)
        })
    })
}

/// Calls `act` with the node.
///
/// # Safety
/// `node` is null, or what `motet_node_init` gave, or memory that may be read; and no other call of
/// this node is under way.
pub(crate) unsafe fn with(
    node: *mut motet_node,
    act: impl FnOnce(&mut motet_node) -> Result<i32, Errno>,
) -> Result<i32, Errno> {
    if node.is_null() || !node.is_aligned() {
        return Err(Errno(MOTET_EFAULT));
    }
    // SAFETY: readable, by the caller's promise; no reference is made before the tag is right.
    if unsafe { (&raw const (*node).tag).read() } != tag_of(node) {
        return Err(Errno(MOTET_EBADF));
    }
    // SAFETY: the tag says that a node was written there, and nobody else uses it now.
    act(unsafe { &mut *node })
}

/// Runs `act` on the node as [`with`] does, at the time `now_us`, µs of the program's clock.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn with_clock(
    node: *mut motet_node,
    now_us: u64,
    act: impl FnOnce(&mut motet_node, Instant) -> Result<i32, Errno>,
) -> Result<i32, Errno> {
    // SAFETY: the caller's promise.
    unsafe { with(node, |node| act(node, instant(now_us)?)) }
}

/// A clock's value that leaves room for deadlines.
pub(crate) fn instant(now_us: u64) -> Result<Instant, Errno> {
    let is_possible = now_us <= CLOCK_US_MAX;
    is_possible
        .then_some(Instant::from_micros(now_us))
        .ok_or(Errno(MOTET_EINVAL))
}

/// The tag of a node at its address: neither other memory nor a copy of a node has it.
fn tag_of(node: *const motet_node) -> usize {
    node.addr() ^ 0x4d6f_7465
}

fn size_of(config: &motet_config) -> Option<usize> {
    let mut carver = Carver::measure();
    Layout::of(config, &mut carver);
    // What follows must not begin in the middle of a word.
    carver.used()?.checked_next_multiple_of(ALIGN)
}

/// Where everything of a node lies.
struct Layout {
    node: Piece<motet_node>,
    links: Piece<Link<'static>>,
    settings: Piece<tcp::Config>,
    frames: Piece<FrameSlot>,
    neighbors: Piece<Neighbor>,
    records: Piece<Record>,
    connections: Piece<Slot<'static>>,
    listeners: Piece<Listener<'static>>,
    half_open: Piece<HalfOpen>,
    entries: Piece<Entry>,
    listening: Piece<Listening>,
    spare: Piece<Option<Buffers<'static>>>,
    ports: Piece<u16>,
    buffers: Piece<u8>,
    bodies: Piece<u8>,
    outgoing: Piece<u8>,
    queue: Piece<u8>,
    out: Piece<u8>,
    datagrams: Piece<u8>,
    below: Below,
    headers: Headers,
}

impl Layout {
    fn of(config: &motet_config, carver: &mut Carver) -> Self {
        let connections = usize::from(config.connections);
        Self {
            node: carver.take(1),
            links: carver.take(1),
            settings: carver.take(1),
            frames: carver.take(config.frames.into()),
            neighbors: carver.take(config.neighbors.into()),
            records: carver.take(config.records.into()),
            connections: carver.take(connections),
            listeners: carver.take(config.listeners.into()),
            half_open: carver.take(config.half_open.into()),
            entries: carver.take(connections),
            listening: carver.take(config.listeners.into()),
            spare: carver.take(connections),
            ports: carver.take(UDP_PORTS),
            buffers: carver.take(2 * connections * usize::from(config.buffer_len)),
            // A router gathers packets for children beside its own.
            bodies: carver.take(MESH_PACKET_LEN_MAX << u32::from(config.is_router())),
            outgoing: carver.take(IPV6_MTU_MIN),
            queue: carver.take(config.queue_len.into()),
            // The node's one link is a mesh: its actions are of frames.
            out: carver.take(PSDU_LEN_MAX),
            datagrams: carver.take(config.datagrams_len.into()),
            below: Below::of(config, carver),
            headers: Headers::of(config, carver),
        }
    }
}

/// Writes a node and all that it works in.
///
/// # Safety
/// `memory` is aligned to [`ALIGN`], valid for writes of [`size_of`] bytes, and nobody else's until
/// the node's end.
unsafe fn start(
    memory: *mut u8,
    config: &motet_config,
    now: Instant,
) -> Result<*mut motet_node, Errno> {
    let layout = Layout::of(config, &mut Carver::of(memory));
    let mut rng = Rng::from_seed(config.seed);
    // SAFETY: all pieces lie in `memory`, one behind the other.
    unsafe {
        let below = layout.below.fill(config);
        let mut mesh = mesh(
            config,
            &mut rng,
            MeshMemory {
                frames: layout.frames.fill(|| FrameSlot::EMPTY),
                neighbors: layout.neighbors.fill(|| Neighbor::EMPTY),
                records: layout.records.fill(|| Record::EMPTY),
                bodies: layout.bodies.fill(|| 0),
                body_len: MESH_PACKET_LEN_MAX,
                outgoing: layout.outgoing.fill(|| 0),
                queue: layout.queue.fill(|| 0),
                registrations: below.registrations,
            },
            below.parent,
        )?;
        layout.headers.give(&mut mesh, now, &mut rng);
        let links = core::slice::from_mut(layout.links.write(Link::Mesh(mesh)));
        let memory = Memory {
            connections: layout.connections.fill(|| Slot::EMPTY),
            listeners: layout.listeners.fill(|| Listener::EMPTY),
            half_open: layout.half_open.fill(|| HalfOpen::EMPTY),
        };
        let tcp = Tcp::new(memory, &mut rng);
        let first = rng.next_u32();
        let joining = Joining::new(&mut rng);
        let ip = ip::Config {
            forwards: config.is_router(),
            ..ip::Config::default()
        };
        let mut node = Node::new(links, Ip::new(ip, below.routes), tcp, rng, now);
        below.candidates.begin(&mut node, now);
        if config.datagrams_len > 0 {
            let ports = layout.ports.fill(|| 0);
            node.set_inbox(Inbox::with_places(ports, layout.datagrams.fill(|| 0)));
        }
        let mut buffers = layout.buffers.fill(|| 0);
        let mut next = || buffers.split_off_mut(..usize::from(config.buffer_len));
        let spare = layout.spare.fill(|| Some(Buffers::new(next()?, next()?)));
        let sockets = Sockets::new(
            layout.entries.fill(|| Entry::FREE),
            layout.listening.fill(|| Listening::FREE),
            spare,
            layout.settings.write(settings(config)),
            first,
        );
        let node = layout.node.write(motet_node {
            tag: 0,
            node,
            sockets,
            joining,
            out: layout.out.fill(|| 0),
        });
        node.tag = tag_of(node);
        Ok(ptr::from_mut(node))
    }
}

fn mesh(
    config: &motet_config,
    rng: &mut Rng,
    memory: MeshMemory<'static>,
    parent: below::Parent,
) -> Result<Mesh<'static>, Errno> {
    let mesh = Mesh::new(config::mesh(config), config::radio(config), memory, rng);
    let mut mesh = mesh.map_err(|_| Errno(MOTET_EINVAL))?;
    parent.serve(&mut mesh);
    Ok(mesh)
}

fn settings(config: &motet_config) -> tcp::Config {
    tcp::Config {
        // What `Buffers::new` makes of that many bytes.
        accept_window: (u32::from(config.buffer_len) * 8 / 9) as u16,
        nagle: config.nagle != 0,
        keepalive_idle_s: config.keepalive_idle_s,
        keepalive_interval_s: 10,
        keepalive_probes: 3,
        user_timeout_ms: config.user_timeout_ms,
        close_timeout_ms: 60_000,
        ..tcp::Config::DEFAULT
    }
}

/// 292,000 years.
const CLOCK_US_MAX: u64 = u64::MAX >> 1;
