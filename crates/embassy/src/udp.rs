//! Datagrams.

use core::net::{SocketAddr, SocketAddrV6};

use motet::node::DatagramError;

use crate::error::Error;
use crate::stack::{Stack, remote_of};
use crate::waiters::wait;

/// An open UDP port; closed when it is dropped.
#[derive(Debug)]
pub struct UdpSocket {
    stack: Stack,
    port: u16,
}

impl UdpSocket {
    pub(crate) fn bind(stack: Stack, port: u16) -> Result<Self, Error> {
        let first = stack.names().rng.next_u32() as u16;
        let mut state = stack.state();
        let inbox = state.node.inbox_mut().ok_or(Error::NoSlot)?;
        if port != 0 {
            return match (inbox.bind(port), inbox.has_place()) {
                (true, _) => Ok(Self { stack, port }),
                (false, true) => Err(Error::InUse),
                (false, false) => Err(Error::NoSlot),
            };
        }
        // No more ports are taken than there are places.
        let mut tried = (0..=UDP_PORTS).map(|n| EPHEMERAL_FIRST | first.wrapping_add(n as u16));
        let port = tried.find(|port| inbox.bind(*port)).ok_or(Error::NoSlot)?;
        Ok(Self { stack, port })
    }

    /// The socket's port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Sends a datagram, when the link has room for it.
    ///
    /// # Errors
    /// [`Error::NoRoute`], `TooLong`, `NotIpv6`, `Address`.
    pub async fn send_to(&self, payload: &[u8], remote: SocketAddr) -> Result<(), Error> {
        let remote = remote_of(remote)?;
        wait(self.stack, |state, cx| {
            match state.node.send_datagram(remote, self.port, payload) {
                Ok(()) => {
                    state.kick();
                    Ok(Ok(()))
                }
                Err(DatagramError::QueueFull) => Err(state.room.register(cx)),
                Err(error) => Ok(Err(error.into())),
            }
        })
        .await
    }

    /// Waits for a datagram: how many of its bytes `out` holds now, and its sender. What `out` is
    /// too short for is lost.
    pub async fn recv_from(&self, out: &mut [u8]) -> (usize, SocketAddrV6) {
        wait(self.stack, |state, cx| {
            let inbox = state.node.inbox_mut();
            let received = inbox.and_then(|inbox| inbox.recv_at(self.port, out));
            state.note_datagrams_read();
            match received {
                Some(received) => {
                    let (from, len) = (received.from, received.len);
                    let from = SocketAddrV6::new(from.addr, from.port, 0, from.zone.into());
                    Ok((len, from))
                }
                None => Err(state.datagrams.register(cx)),
            }
        })
        .await
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        let mut state = self.stack.state();
        if let Some(inbox) = state.node.inbox_mut() {
            inbox.unbind(self.port);
        }
        state.note_datagrams_read();
    }
}

/// The dynamic ports 49152 to 65535 (RFC 6335 §6).
const EPHEMERAL_FIRST: u16 = 0xc000;

/// UDP ports that are open at one time.
pub(crate) const UDP_PORTS: usize = 4;
