//! A network key, and frame counters that the program stores.

use core::ffi::c_char;
use core::ptr;

use motet::ip::InterfaceId;
use motet::link::Link;
use motet::mac::security::{NetworkKey, Peer, Security, SecurityConfig};

use crate::errno::{Errno, MOTET_EFAULT, MOTET_EINVAL, MOTET_ENOMEM, code};
use crate::memory::{ALIGN, Carver, Piece, place, value};
use crate::node::{motet_node, with, with_clock};
use crate::record::{NEIGHBORS_MIN, motet_reservation, reservation};

/// A network key: what `motet keys network` prints of a key file, for nodes of a mesh whose router
/// has that file (`motet router --key`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_key {
    /// The key's bytes.
    pub network: [u8; 16],
    /// Which link key to begin with; motes follow a router to later ones.
    pub sequence: u32,
    /// The last reservation that was stored; zeros for a node that has never had this key.
    pub stored: motet_reservation,
    /// Neighbours whose frame counters are kept, 4 at least; 16 suit a mote.
    pub neighbors: u8,
}

/// Bytes of memory that a key with this configuration takes; 0: it cannot be. Of an archive with
/// the feature `security`, as all functions with a key or a reservation.
///
/// # Safety
/// Unless it is null or misaligned, `key` points to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_key_size(key: *const motet_key) -> usize {
    // SAFETY: the caller's promise.
    let key = unsafe { value(key) };
    key.map_or(0, |key| size_of(&key).unwrap_or(0))
}

/// What is wrong with a key that cannot be, in words; null: nothing.
///
/// # Safety
/// Unless it is null or misaligned, `key` points to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_key_fault(key: *const motet_key) -> *const c_char {
    // SAFETY: the caller's promise.
    match unsafe { value(key) } {
        Err(_) => c"the pointer is null or misaligned".as_ptr(),
        Ok(key) if key.neighbors < NEIGHBORS_MIN => c"neighbors is below 4".as_ptr(),
        Ok(_) => ptr::null(),
    }
}

/// Gives a node a key, after motet_node_init and before any other call of it: from then on every
/// frame is sealed, and no other believed. Nothing is sent before the first reservation is stored
/// (motet_poll_reservation). The memory, aligned as the node's, is the node's until its end.
/// Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (motet_key_fault says what is wrong; or the node has a
/// key, or short_source), ENOMEM (too small).
///
/// # Safety
/// As motet_poll; unless they are null or misaligned, `memory` points to `size` bytes and `key` to
/// a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_set_key(
    node: *mut motet_node,
    memory: *mut core::ffi::c_void,
    size: usize,
    key: *const motet_key,
) -> i32 {
    let give = |node: &mut motet_node| {
        // SAFETY: the caller's promise.
        let key = unsafe { value(key) }?;
        let needed = size_of(&key).ok_or(Errno(MOTET_EINVAL))?;
        if memory.is_null() || !memory.addr().is_multiple_of(ALIGN) {
            return Err(Errno(MOTET_EFAULT));
        }
        if size < needed {
            return Err(Errno(MOTET_ENOMEM));
        }
        let Some(Link::Mesh(mesh)) = node.node.link_mut(InterfaceId(0)) else {
            return Err(Errno(MOTET_EINVAL));
        };
        let has_key = mesh.mac().security().is_some();
        if has_key || mesh.mac().config().short_source {
            return Err(Errno(MOTET_EINVAL));
        }
        let config = SecurityConfig::new(NetworkKey::new(key.network), key.sequence);
        let config = config.resume(reservation(key.stored));
        let layout = Layout::of(&key, &mut Carver::of(memory.cast()));
        // SAFETY: aligned, as long as the layout is, and the node's from now on.
        let security = unsafe {
            let peers = layout.peers.fill(|| Peer::EMPTY);
            layout.security.write(Security::new(&config, peers))
        };
        mesh.set_security(security);
        Ok(0)
    };
    // SAFETY: the caller's promise.
    code(unsafe { with(node, give) })
}

/// Writes what the program shall store next to `wanted`; call it whenever motet_poll has returned
/// 0. Each is asked once, and answered by motet_on_reserved, at once or later: flash may be slow, and
/// the node goes on meanwhile with the counters stored before. At its start and at another key it
/// has none and sends nothing; later it asks when half of 8,192 are left. A record may overwrite
/// those that were asked for before it, answered or not. Returns 1, 0 (nothing), or
/// -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll; unless it is null or misaligned, `wanted` points to room for a reservation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_poll_reservation(
    node: *mut motet_node,
    now_us: u64,
    wanted: *mut motet_reservation,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with_clock(node, now_us, |node, now| {
            let place = place(wanted)?;
            let frames = node.node.poll_reservation(now).map(|(_, wanted)| wanted);
            Ok(node.joining.wanted(frames).map_or(0, |wanted| {
                place.write(wanted);
                1
            }))
        })
    })
}

/// The reservation of motet_poll_reservation is stored, and no power cut takes it back; or it could
/// not be stored, or nobody knows: then the node stops when the counters before are used up, and
/// asks again after 10 s; it never asks a second time what has no answer. Call motet_poll then.
/// Returns 0, or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll; unless it is null or misaligned, `answered` points to a reservation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_on_reserved(
    node: *mut motet_node,
    answered: *const motet_reservation,
    is_stored: bool,
    now_us: u64,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with_clock(node, now_us, |node, now| {
            let answered = value(answered)?;
            let motet_node { node, joining, .. } = node;
            if joining.on_answer(answered, is_stored, now) {
                node.on_reserved(InterfaceId(0), reservation(answered), is_stored, now);
            }
            Ok(0)
        })
    })
}

fn size_of(key: &motet_key) -> Option<usize> {
    let mut carver = Carver::measure();
    Layout::of(key, &mut carver);
    let is_possible = key.neighbors >= NEIGHBORS_MIN;
    carver.used().filter(|_| is_possible)
}

/// Where everything of a key lies.
struct Layout {
    security: Piece<Security<'static>>,
    peers: Piece<Peer>,
}

impl Layout {
    fn of(key: &motet_key, carver: &mut Carver) -> Self {
        Self {
            security: carver.take(1),
            peers: carver.take(key.neighbors.into()),
        }
    }
}
