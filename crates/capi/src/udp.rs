//! UDP: open a port, send and receive datagrams.

use motet::udp::Inbox;

use crate::errno::{
    Errno, MOTET_EADDRINUSE, MOTET_EAGAIN, MOTET_EINVAL, MOTET_ENFILE, code, count,
};
use crate::memory::{bytes, bytes_mut, place, value};
use crate::node::{motet_node, with};
use crate::tcp::remote;

/// Where a datagram came from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_source {
    /// The address.
    pub address: [u8; 16],
    /// The port.
    pub port: u16,
    /// Of a link-local address: which link, as motet_udp_send takes it back.
    pub zone: u8,
}

/// Opens a port. Returns a socket, or -MOTET_EFAULT, EBADF (the node), EINVAL (port 0), EADDRINUSE,
/// ENFILE (four are open, or the configuration has no memory for datagrams).
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_udp_open(node: *mut motet_node, port: u16) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            if port == 0 {
                return Err(Errno(MOTET_EINVAL));
            }
            let inbox = node.inbox_mut();
            let inbox = inbox.filter(|inbox| inbox.has_place());
            let inbox = inbox.ok_or(Errno(MOTET_ENFILE))?;
            if !inbox.bind(port) {
                return Err(Errno(MOTET_EADDRINUSE));
            }
            sockets.own_port(port).ok_or(Errno(MOTET_ENFILE))
        })
    })
}

/// Sends a datagram of `len` bytes to a port of `address`, 16 bytes; `zone`: 0, or that of a source.
/// Returns 0, or -MOTET_EFAULT, EBADF, EINVAL, ENETUNREACH, EADDRNOTAVAIL, EMSGSIZE, EAGAIN (the link
/// has no room now).
///
/// # Safety
/// As motet_poll; unless they are null, `address` points to 16 bytes and `data` to `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_udp_send(
    node: *mut motet_node,
    socket: i32,
    address: *const [u8; 16],
    port: u16,
    zone: u8,
    data: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            let from = sockets.port(socket)?;
            let to = remote(value(address)?, port, zone)?;
            node.send_datagram(to, from, bytes(data, len)?)?;
            Ok(0)
        })
    })
}

/// Writes the oldest datagram for a port to `data`, cut to `len` bytes, and its source to `source`.
/// Returns how many bytes, or -MOTET_EFAULT, EBADF, EAGAIN (none).
///
/// # Safety
/// As motet_poll; unless it is null, `data` points to room for `len` bytes; unless it is null or
/// misaligned, `source` points to room for a source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_udp_recv(
    node: *mut motet_node,
    socket: i32,
    data: *mut u8,
    len: usize,
    source: *mut motet_source,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with(node, |motet_node { node, sockets, .. }| {
            let port = sockets.port(socket)?;
            let (data, source) = (bytes_mut(data, len)?, place(source)?);
            let take = |inbox: &mut Inbox<'static>| inbox.recv_at(port, data);
            let received = node.inbox_mut().and_then(take);
            let received = received.ok_or(Errno(MOTET_EAGAIN))?;
            source.write(motet_source {
                address: received.from.addr.octets(),
                port: received.from.port,
                zone: received.from.zone,
            });
            Ok(count(received.len))
        })
    })
}
