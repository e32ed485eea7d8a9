//! The address plan of the lab's meshes.
//!
//! ```text
//! host fd6d:6f74:6574::1 --- ::2 border router 0 ~~~ 1 ~~~ 2 ~~~ ... ~~~ mote n
//!      fd6d:6f74:6574::/64          fd6d:6f74:6574:1::/64, node n: ::4d:6f74:6574:n
//! ```

use std::net::Ipv6Addr;

use motet::lowpan::Contexts;
use motet::wire::LinkAddr;

/// PAN identifier: "MT".
pub const PAN: u16 = 0x4d54;

/// Channel: the one `TCPlp`'s testbed used, least hit by WiFi.
pub const CHANNEL: u8 = 26;

/// The mesh's prefix, of 64 bits: compression context 0.
pub const MESH_PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0);

/// The wired link's prefix, of 64 bits: compression context 1.
pub const WIRED_PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, 0);

/// The wired host.
pub const HOST: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, 1);

/// The border router's wired side.
pub const ROUTER_WIRED: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, 2);

/// The address of wired host `number`; host 0 is [`HOST`].
pub const fn host_addr(number: usize) -> Ipv6Addr {
    // ::2 is the border router's. Lossless in any lab: hosts are few.
    let last = if number == 0 { 1 } else { number as u16 + 2 };
    Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, last)
}

/// The EUI-64 of mesh node `n`; the border router is node 0.
pub const fn eui64(n: u16) -> [u8; 8] {
    let [high, low] = n.to_be_bytes();
    [0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, high, low]
}

/// The link address of mesh node `n`.
pub const fn link_addr(n: u16) -> LinkAddr {
    LinkAddr::Extended(eui64(n))
}

/// The address of mesh node `n` under [`MESH_PREFIX`].
pub fn mesh_addr(n: u16) -> Ipv6Addr {
    let mut octets = MESH_PREFIX.octets();
    octets[8..].copy_from_slice(&link_addr(n).iid());
    Ipv6Addr::from(octets)
}

/// The link-local address of mesh node `n`.
pub fn link_local(n: u16) -> Ipv6Addr {
    let mut octets = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0).octets();
    octets[8..].copy_from_slice(&link_addr(n).iid());
    Ipv6Addr::from(octets)
}

/// The mesh's compression contexts.
pub fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    contexts.set(0, MESH_PREFIX, 64, true);
    contexts.set(1, WIRED_PREFIX, 64, true);
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_from_the_number() {
        assert_eq!(mesh_addr(3).to_string(), "fd6d:6f74:6574:1:4d:6f74:6574:3");
        assert_eq!(link_local(0).to_string(), "fe80::4d:6f74:6574:0");
        assert_eq!(eui64(258)[6..], [1, 2]);
        assert_eq!(host_addr(0), HOST);
        assert!((1..9).all(|number| host_addr(number) != ROUTER_WIRED));
    }
}
