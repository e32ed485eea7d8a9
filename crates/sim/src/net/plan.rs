//! The address plan of the lab's meshes.
//!
//! ```text
//! host fd6d:6f74:6574::1 --- ::2 border router 0 ~~~ 1 ~~~ 2 ~~~ ... ~~~ mote n
//!      fd6d:6f74:6574::/64          fd6d:6f74:6574:1::/64, node n: ::4d:6f74:6574:n
//! ```
//!
//! Over Bluetooth LE node n is ::c24d:6fff:fe74:n: its identifier is made of 48 bits. Beside a mesh
//! such nodes are under fd6d:6f74:6574:2::/64.

use std::net::Ipv6Addr;

use motet::ble::DeviceAddr;
use motet::lowpan::Contexts;
use motet::wire::LinkAddr;

/// PAN identifier: "MT".
pub const PAN: u16 = 0x4d54;

/// Channel: the one `TCPlp`'s testbed used, least hit by WiFi.
pub const CHANNEL: u8 = 26;

/// The mesh's prefix, of 64 bits: compression context 0.
pub const MESH_PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0);

/// The prefix of the motes over Bluetooth LE beside a mesh under `prefix`, of 64 bits: the next
/// one, for the subnet of such a star is a link of its own (RFC 7668 §3.2.1).
pub const fn prefix_over_ble(prefix: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.to_bits().wrapping_add(1 << 64))
}

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

/// The device address of node `n` of a network over Bluetooth LE: a static random one.
pub const fn device_addr(n: u16) -> DeviceAddr {
    let [high, low] = n.to_be_bytes();
    DeviceAddr {
        bytes: [0xc2, 0x4d, 0x6f, 0x74, high, low],
        is_random: true,
    }
}

/// The node that calls itself so, by either kind of link address.
pub fn node_of_iid(iid: [u8; 8]) -> Option<usize> {
    let [.., high, low] = iid;
    let n = u16::from_be_bytes([high, low]);
    let device = LinkAddr::Device(device_addr(n).bytes);
    let is_own = [link_addr(n), device].iter().any(|addr| addr.iid() == iid);
    is_own.then_some(usize::from(n))
}

/// The address under a prefix of 64 bits that follows from a link address.
pub fn addr_of(prefix: Ipv6Addr, link_addr: LinkAddr) -> Ipv6Addr {
    let mut octets = prefix.octets();
    octets[8..].copy_from_slice(&link_addr.iid());
    Ipv6Addr::from(octets)
}

/// The address of mesh node `n` under [`MESH_PREFIX`].
pub fn mesh_addr(n: u16) -> Ipv6Addr {
    addr_under(MESH_PREFIX, n)
}

/// The address of mesh node `n` under another prefix of 64 bits.
pub fn addr_under(prefix: Ipv6Addr, n: u16) -> Ipv6Addr {
    addr_of(prefix, link_addr(n))
}

/// The mesh node whose address under [`MESH_PREFIX`] this is, if it is one's.
pub fn mesh_node(addr: Ipv6Addr) -> Option<usize> {
    let octets = addr.octets();
    let (prefix, iid) = octets.split_last_chunk()?;
    (MESH_PREFIX.octets()[..8] == *prefix).then(|| node_of_iid(*iid))?
}

/// The link-local address of mesh node `n`.
pub fn link_local(n: u16) -> Ipv6Addr {
    let mut octets = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0).octets();
    octets[8..].copy_from_slice(&link_addr(n).iid());
    Ipv6Addr::from(octets)
}

/// The mesh's compression contexts.
pub fn contexts() -> Contexts {
    contexts_under(MESH_PREFIX)
}

/// The same of a mesh under another prefix of 64 bits.
pub fn contexts_under(prefix: Ipv6Addr) -> Contexts {
    let mut contexts = Contexts::new();
    contexts.set(0, prefix, 64, true);
    contexts.set(1, WIRED_PREFIX, 64, true);
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_from_the_number() {
        assert_eq!(mesh_addr(3).to_string(), "fd6d:6f74:6574:1:4d:6f74:6574:3");
        assert_eq!(mesh_node(mesh_addr(258)), Some(258));
        assert_eq!(mesh_node(link_local(3)), None);
        let device = LinkAddr::Device(device_addr(259).bytes);
        let over_ble = addr_of(MESH_PREFIX, device);
        assert_eq!(over_ble.to_string(), "fd6d:6f74:6574:1:c24d:6fff:fe74:103");
        assert_eq!(mesh_node(over_ble), Some(259));
        assert_eq!(
            node_of_iid([0xc2, 0x4d, 0x6f, 0xff, 0xff, 0x74, 0, 1]),
            None
        );
        assert_eq!(link_local(0).to_string(), "fe80::4d:6f74:6574:0");
        assert_eq!(eui64(258)[6..], [1, 2]);
        assert_eq!(host_addr(0), HOST);
        assert!((1..9).all(|number| host_addr(number) != ROUTER_WIRED));
    }
}
