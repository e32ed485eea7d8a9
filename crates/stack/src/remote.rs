//! A remote endpoint: an address, a port and, for a link-local address, the link (zone).
//!
//! Place: at the floor, beside [`limits`](crate::limits), because an application passes it to
//! `node` and gets it from `tcp` and `udp`. Left out: the mapping from zone to interface, which is
//! in `ip` ([`InterfaceId::zone`](crate::ip::InterfaceId::zone)). Sources: RFC 4007, RFC 3493 §3.3.

use core::net::{Ipv6Addr, SocketAddrV6};

/// The other end of a connection or of a datagram's way.
///
/// `(address, port)` turns into one where the address is global, or where the node has one link
/// that can lead there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Remote {
    /// The IPv6 address of the other end.
    pub addr: Ipv6Addr,
    /// The UDP or TCP port of the other end.
    pub port: u16,
    /// The link of a link-local `addr`: its number, counted from 1, as in scope ids (RFC 4007 §6).
    /// 0 for a global address; for a link-local one, 0 means the first link that can lead there.
    pub zone: u8,
}

impl From<(Ipv6Addr, u16)> for Remote {
    fn from((addr, port): (Ipv6Addr, u16)) -> Self {
        Self {
            addr,
            port,
            zone: 0,
        }
    }
}

impl From<SocketAddrV6> for Remote {
    /// A scope id too large for a zone turns into 255, which no node has.
    fn from(socket: SocketAddrV6) -> Self {
        Self {
            addr: *socket.ip(),
            port: socket.port(),
            zone: u8::try_from(socket.scope_id()).unwrap_or(u8::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_id_is_a_zone() {
        let addr = "fe80::2".parse().unwrap();
        for (text, zone) in [
            ("[fe80::2]:80", 0),
            ("[fe80::2%2]:80", 2),
            ("[fe80::2%254]:80", 254),
            ("[fe80::2%255]:80", u8::MAX),
            ("[fe80::2%256]:80", u8::MAX),
            ("[fe80::2%4294967295]:80", u8::MAX),
        ] {
            let socket: SocketAddrV6 = text.parse().unwrap();
            let port = 80;
            assert_eq!(Remote::from(socket), Remote { addr, port, zone }, "{text}");
        }
        let plain = Remote::from((addr, 80));
        assert_eq!((plain.addr, plain.port, plain.zone), (addr, 80, 0));
    }
}
