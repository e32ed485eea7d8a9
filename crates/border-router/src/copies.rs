//! Copies of packets, sent into the mesh by the kernel's own routes.
//!
//! Place in the data flow: [`crate::fair`] sends by it what the policy `relay` repeats. A copy
//! passes the packet filter as any packet of this machine does, and so meets the rule that fills
//! the queue. That rule knows a copy by its mark.
//!
//! Sources: raw(7), ipv6(7), socket(7).

use std::{
    net::{Ipv6Addr, SocketAddrV6},
    os::fd::{AsRawFd as _, OwnedFd},
};

use motet::wire::ipv6;
use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt,
        socket, sockopt,
    },
};

/// A way for whole IPv6 packets, with headers.
#[derive(Debug)]
pub(crate) struct Copies {
    socket: OwnedFd,
    failed: u64,
}

impl Copies {
    /// Opens it: it takes CAP_NET_RAW, and for the mark CAP_NET_ADMIN.
    pub(crate) fn open() -> Result<Self, Errno> {
        let socket = socket(
            AddressFamily::Inet6,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::Raw,
        )?;
        setsockopt(&socket, sockopt::Mark, &COPY_MARK)?;
        Ok(Self { socket, failed: 0 })
    }

    /// Sends a packet. One that the kernel refuses is lost, as on the air.
    pub(crate) fn send(&mut self, packet: &[u8]) {
        let to = ipv6::Header::parse_start(packet).map(|(header, _)| header.dst);
        let sent = to.map(|to| self.send_to(packet, to));
        self.failed += u64::from(!matches!(sent, Ok(Ok(_))));
    }

    /// Packets that the kernel refused.
    pub(crate) const fn failed(&self) -> u64 {
        self.failed
    }

    fn send_to(&self, packet: &[u8], to: Ipv6Addr) -> Result<usize, Errno> {
        let to = SockaddrIn6::from(SocketAddrV6::new(to, 0, 0, 0));
        sendto(self.socket.as_raw_fd(), packet, &to, MsgFlags::MSG_DONTWAIT)
    }
}

/// The mark of copies: "Mote" in ASCII.
pub(crate) const COPY_MARK: u32 = 0x4d6f_7465;
