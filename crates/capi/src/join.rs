//! Joining: a node without the network's key asks for it with a key of its own.

use core::ffi::{CStr, c_char};
use core::net::Ipv6Addr;
use core::ptr;

use motet::ip::InterfaceId;
use motet::join::{JoinError, JoinKey};
use motet::link::Link;
use motet::mac::security::{NetworkKey, Peer, Security, SecurityConfig};
use motet::node::{JoinProxy, JoinRole, JoinState, Joiner, JoinerConfig};

use crate::errno::{Errno, MOTET_EFAULT, MOTET_EINVAL, MOTET_ENOMEM, code};
use crate::joining::State;
use crate::memory::{ALIGN, Carver, Piece, value};
use crate::node::{motet_node, with};
use crate::record::{NEIGHBORS_MIN, motet_reservation};

/// The node asks for the key, and has had no answer: no neighbour with the key is in reach, or the
/// registrar does not know this EUI-64 and join key. It asks again, at first after 2 s, then ever
/// more rarely, up to 18 s.
pub const MOTET_JOIN_ASKS: i32 = 0;
/// The node has the network's key.
pub const MOTET_JOINED: i32 = 1;
/// The registrar refuses: the PAN identifier is another mesh's. It asks again.
pub const MOTET_JOIN_REFUSED: i32 = 2;
/// An answer came that another key sealed: the join key is wrong, or a neighbour forges. It asks
/// again.
pub const MOTET_JOIN_FORGED: i32 = 3;
/// An answer came that is none of this protocol. It asks again.
pub const MOTET_JOIN_MALFORMED: i32 = 4;
/// The node does not ask before the program has stored the number of its requests:
/// motet_poll_reservation gives it, motet_on_reserved answers.
pub const MOTET_JOIN_UNSTORED: i32 = 5;
/// Each number of a request was used: the device needs another join key.
pub const MOTET_JOIN_EXHAUSTED: i32 = 6;

/// A key of the device's own, with which it gets that of the network: what `motet keys device`
/// prints for this EUI-64, for a mesh whose router lets devices join
/// (`motet router --key FILE --joining cojp`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_join_key {
    /// The key's bytes.
    pub key: [u8; 16],
    /// Address of the registrar, to which a router of the mesh passes on the requests of others;
    /// zeros: the root of its mesh, as `motet router` is. A leaf with zeros takes no further key
    /// from the registrar: started again, it joins anew.
    pub registrar: [u8; 16],
    /// The last reservation that was stored; zeros for a device that has never had this join key.
    pub stored: motet_reservation,
    /// Neighbours whose frame counters are kept, 4 at least; 16 suit a mote.
    pub neighbors: u8,
}

/// Bytes of memory that a join key with this configuration takes; 0: it cannot be. Of an archive
/// with the feature `join`, as all functions of joining.
///
/// # Safety
/// Unless it is null or misaligned, `key` points to a join key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_join_key_size(key: *const motet_join_key) -> usize {
    // SAFETY: the caller's promise.
    let key = unsafe { value(key) };
    key.map_or(0, |key| size_of(&key).unwrap_or(0))
}

/// What is wrong with a join key that cannot be, in words; null: nothing.
///
/// # Safety
/// Unless it is null or misaligned, `key` points to a join key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_join_key_fault(key: *const motet_join_key) -> *const c_char {
    // SAFETY: the caller's promise.
    match unsafe { value(key) } {
        Err(_) => c"the pointer is null or misaligned".as_ptr(),
        Ok(key) => fault(&key).map_or(ptr::null(), CStr::as_ptr),
    }
}

/// Lets a node join, after motet_node_init and before any other call of it: it sends only requests
/// for the network's key, to all neighbours, until a registrar has answered; then it is as after
/// motet_set_key. No request is sent before its number is stored (motet_poll_reservation), which the
/// program does as for frame counters. The memory, aligned as the node's, is the node's until its
/// end. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (motet_join_key_fault says what is wrong; or the
/// node has a key, or short_source), ENOMEM (too small).
///
/// # Safety
/// As motet_poll; unless they are null or misaligned, `memory` points to `size` bytes and `key` to
/// a join key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_set_join_key(
    node: *mut motet_node,
    memory: *mut core::ffi::c_void,
    size: usize,
    key: *const motet_join_key,
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
        let layout = Layout::of(&key, &mut Carver::of(memory.cast()));
        // SAFETY: aligned, as long as the layout is, and the node's from now on.
        unsafe { begin(node, layout, &key) }
    };
    // SAFETY: the caller's promise.
    code(unsafe { with(node, give) })
}

/// How far joining is: MOTET_JOIN_ASKS or one of the others; or -MOTET_EFAULT, EBADF, EINVAL (the
/// node does not join). What it says of a failure is of the last answer, and may change.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_join_state(node: *mut motet_node) -> i32 {
    let state = |node: &mut motet_node| {
        let state = node.joining.state().ok_or(Errno(MOTET_EINVAL))?;
        Ok(match state {
            JoinState::Asking => MOTET_JOIN_ASKS,
            JoinState::Joined => MOTET_JOINED,
            JoinState::Refused(JoinError::Refused(_)) => MOTET_JOIN_REFUSED,
            JoinState::Refused(JoinError::Forged | JoinError::Replayed) => MOTET_JOIN_FORGED,
            JoinState::Refused(JoinError::Malformed | JoinError::NotAsked) => MOTET_JOIN_MALFORMED,
            JoinState::Unstored => MOTET_JOIN_UNSTORED,
            JoinState::Exhausted => MOTET_JOIN_EXHAUSTED,
        })
    };
    // SAFETY: the caller's promise.
    code(unsafe { with(node, state) })
}

/// What a value of motet_join_state means, in words.
#[unsafe(no_mangle)]
pub extern "C" fn motet_join_words(state: i32) -> *const c_char {
    let words = match state {
        MOTET_JOIN_ASKS => c"asks for the key; no answer yet",
        MOTET_JOINED => c"has the key",
        MOTET_JOIN_REFUSED => c"the registrar refuses: is the PAN identifier right?",
        MOTET_JOIN_FORGED => c"an answer was sealed with another key: is the join key right?",
        MOTET_JOIN_MALFORMED => c"an answer was no message of CoJP",
        MOTET_JOIN_UNSTORED => c"the number of the next request is not stored yet",
        MOTET_JOIN_EXHAUSTED => c"no number is left: the device needs another join key",
        _ => c"the node does not join",
    };
    words.as_ptr()
}

/// Writes all that joining takes, and lends it to the node.
///
/// # Safety
/// The layout is of memory that is aligned to [`ALIGN`], as long as [`size_of`] says, and the
/// node's until its end.
unsafe fn begin(node: &mut motet_node, layout: Layout, key: &motet_join_key) -> Result<i32, Errno> {
    let motet_node { node, joining, .. } = node;
    let Some(Link::Mesh(mesh)) = node.link_mut(InterfaceId(0)) else {
        return Err(Errno(MOTET_EINVAL));
    };
    let mac = mesh.mac().config();
    let (eui64, pan) = (mac.extended, mac.pan);
    if mesh.mac().security().is_some() || mac.short_source {
        return Err(Errno(MOTET_EINVAL));
    }
    let mut rng = joining.rng();
    // No frame is sealed with it.
    let config = SecurityConfig::new(NetworkKey::new([0; 16]), 0);
    let registrar = Ipv6Addr::from(key.registrar);
    let joiner = JoinerConfig {
        key: JoinKey::new(key.key),
        eui64,
        pan,
        number: key.stored.requests,
        registrar: Some(registrar).filter(|registrar| !registrar.is_unspecified()),
    };
    // SAFETY: the caller's promise.
    let (security, proxy, state) = unsafe {
        let peers = layout.peers.fill(|| Peer::EMPTY);
        (
            layout.security.write(Security::locked(&config, peers)),
            layout
                .proxy
                .write(JoinProxy::new(JoinRole::Pledge, &mut rng)),
            layout
                .state
                .write(State::new(Joiner::new(joiner, rng), key.stored)),
        )
    };
    mesh.set_security(security);
    node.set_join_proxy(proxy);
    joining.begin(state);
    Ok(0)
}

/// What is wrong with a join key.
// Inlined, so that the words are only where they are asked for.
#[inline(always)]
fn fault(key: &motet_join_key) -> Option<&'static CStr> {
    if key.neighbors < NEIGHBORS_MIN {
        return Some(c"neighbors is below 4");
    }
    let registrar = Ipv6Addr::from(key.registrar);
    if registrar.is_multicast() || registrar.is_unicast_link_local() {
        return Some(c"registrar is no address that is valid beyond one link");
    }
    (key.stored.requests == u32::MAX).then_some(c"no number of a request is left in stored")
}

fn size_of(key: &motet_join_key) -> Option<usize> {
    let mut carver = Carver::measure();
    Layout::of(key, &mut carver);
    carver.used().filter(|_| fault(key).is_none())
}

/// Where everything of joining lies.
struct Layout {
    security: Piece<Security<'static>>,
    peers: Piece<Peer>,
    proxy: Piece<JoinProxy>,
    state: Piece<State>,
}

impl Layout {
    fn of(key: &motet_join_key, carver: &mut Carver) -> Self {
        Self {
            security: carver.take(1),
            peers: carver.take(key.neighbors.into()),
            proxy: carver.take(1),
            state: carver.take(1),
        }
    }
}
