//! TCP: listen, accept, connect, send, receive.

use motet::Remote;
use motet::tcp::{Connection, Handle, RecvError, State};

use crate::errno::{Errno, MOTET_EAGAIN, MOTET_EINVAL, MOTET_ENFILE, MOTET_ENOTCONN, code, count};
use crate::memory::{bytes, bytes_mut, value};
use crate::node::{motet_node, with, with_clock};

/// Takes connections to `port`. Returns a socket, or -MOTET_EFAULT, EBADF (the node), EINVAL (port 0),
/// EADDRINUSE, ENFILE.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_listen(node: *mut motet_node, port: u16) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            let handle = node.tcp_mut().listen(None, port, sockets.settings())?;
            Ok(sockets.own_listener(handle))
        })
    })
}

/// The peer that has waited longest. Where none waits, buffers are lent to the next one if there are
/// any, so that nothing that it sends first is lost. Returns a socket, or -MOTET_EFAULT, EBADF,
/// EAGAIN (none waits, or there are no buffers for it).
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_accept(
    node: *mut motet_node,
    listener: i32,
    now_us: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with_clock(node, now_us, |motet_node { node, sockets, .. }, now| {
            let listener = sockets.listener(listener)?;
            let handle = match sockets.lent_to(listener) {
                Some(handle) => handle,
                None => {
                    sockets.sweep(node);
                    let buffers = sockets.take_spare().ok_or(Errno(MOTET_EAGAIN))?;
                    match node.tcp_mut().accept(listener, buffers, now) {
                        Ok(handle) => {
                            sockets.lend(handle, listener);
                            handle
                        }
                        Err(rejected) => {
                            sockets.put_back(rejected.buffers);
                            return Err(rejected.error.into());
                        }
                    }
                }
            };
            match node.tcp().connection(handle).map(Connection::state) {
                None | Some(State::Listen | State::SynReceived) => Err(Errno(MOTET_EAGAIN)),
                Some(_) => Ok(sockets.own(handle)),
            }
        })
    })
}

/// Begins a connection to a port of `address`, 16 bytes; `zone`: 0. MOTET_WRITABLE says when the
/// handshake is done; data may be sent before. Returns a socket, or -MOTET_EFAULT, EBADF (the node),
/// EINVAL (port 0, a group, an IPv4 address), ENETUNREACH, EADDRNOTAVAIL, ENFILE.
///
/// # Safety
/// As motet_poll; unless it is null, `address` points to 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_connect(
    node: *mut motet_node,
    address: *const [u8; 16],
    port: u16,
    zone: u8,
    now_us: u64,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with_clock(node, now_us, |motet_node { node, sockets, .. }, now| {
            let remote = remote(value(address)?, port, zone)?;
            let buffers = sockets.take_buffers(node, now);
            let buffers = buffers.ok_or(Errno(MOTET_ENFILE))?;
            match node.connect(remote, buffers, sockets.settings(), now) {
                Ok(handle) => Ok(sockets.own(handle)),
                Err(rejected) => {
                    sockets.put_back(rejected.buffers);
                    Err(rejected.error.into())
                }
            }
        })
    })
}

/// An end of a way that IPv6 has.
pub(crate) fn remote(address: [u8; 16], port: u16, zone: u8) -> Result<Remote, Errno> {
    let addr = core::net::Ipv6Addr::from(address);
    match port == 0 || addr.is_unspecified() || addr.to_ipv4_mapped().is_some() {
        true => Err(Errno(MOTET_EINVAL)),
        false => Ok(Remote { addr, port, zone }),
    }
}

/// Takes bytes to send. Returns how many, or -MOTET_EFAULT, EBADF, EAGAIN (no room), EPIPE,
/// ECONNREFUSED, ECONNRESET, ECONNABORTED, ETIMEDOUT, EHOSTUNREACH.
///
/// # Safety
/// As motet_poll; unless it is null, `data` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_send(
    node: *mut motet_node,
    socket: i32,
    data: *const u8,
    len: usize,
    now_us: u64,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with_clock(node, now_us, |motet_node { node, sockets, .. }, now| {
            let handle = sockets.connection(socket)?;
            let data = bytes(data, len)?;
            Ok(count(node.tcp_mut().send(handle, data, now)?))
        })
    })
}

/// Writes received bytes to `data`, `len` at the most. Returns how many, 0 where the peer has sent
/// everything, or -MOTET_EFAULT, EBADF, EAGAIN (nothing yet), EINVAL (`len` is 0) and the failures
/// of motet_tcp_send.
///
/// # Safety
/// As motet_poll; unless it is null, `data` points to room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_recv(
    node: *mut motet_node,
    socket: i32,
    data: *mut u8,
    len: usize,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            let handle = sockets.connection(socket)?;
            let data = bytes_mut(data, len)?;
            if data.is_empty() {
                return Err(Errno(MOTET_EINVAL));
            }
            match node.tcp_mut().recv(handle, data) {
                Ok(received) => Ok(count(received)),
                Err(RecvError::Finished) => Ok(0),
                Err(error) => Err(error.into()),
            }
        })
    })
}

/// Says that no more will be sent; receiving goes on. Returns 0, or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_shutdown(
    node: *mut motet_node,
    socket: i32,
    now_us: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with_clock(node, now_us, |motet_node { node, sockets, .. }, now| {
            let handle = sockets.connection(socket)?;
            let tcp = node.tcp_mut();
            tcp.shutdown(handle, now);
            Ok(0)
        })
    })
}

/// Resets a connection and closes its socket. Returns 0, or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_abort(node: *mut motet_node, socket: i32) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            let handle = sockets.connection(socket)?;
            node.tcp_mut().abort(handle);
            sockets.disown(handle);
            Ok(0)
        })
    })
}

/// Bytes that the peer's TCP has not acknowledged yet. Returns -MOTET_EFAULT, EBADF where there is no
/// such connection.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_unacknowledged(node: *mut motet_node, socket: i32) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe { ask(node, socket, |c| c.unacknowledged().into()) })
}

/// Whether the handshake is done: 1 or 0; or -MOTET_EFAULT, EBADF and the failures of
/// motet_tcp_send.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_tcp_connected(node: *mut motet_node, socket: i32) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        ask(node, socket, |c| match c.error() {
            Some(error) => Errno::from(error).code(),
            None => i32::from(!c.is_connecting()),
        })
    })
}

/// # Safety
/// As `motet_poll`.
unsafe fn ask(
    node: *mut motet_node,
    socket: i32,
    question: impl FnOnce(&Connection<'static>) -> i32,
) -> Result<i32, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            let handle: Handle = sockets.connection(socket)?;
            let connection = node.tcp().connection(handle);
            connection.map(question).ok_or(Errno(MOTET_ENOTCONN))
        })
    }
}
