//! A port in the network that this process was started in, beside what others have there.

use std::{fs, io, net::Ipv6Addr};

use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags, unistd::Uid};

use super::PortConfig;

/// A token that allows a port in the network namespace that this process was started in, among the
/// interfaces and routes of others.
///
/// [`PacketPort::open_shared`](super::PacketPort::open_shared) takes one, so that no code opens
/// such a port by mistake.
#[derive(Clone, Copy, Debug)]
pub struct SharedNetwork(());

impl SharedNetwork {
    /// The user has asked for it in so many words.
    pub const fn as_the_user_asks() -> Self {
        Self(())
    }
}

/// The properties that an existing interface lacks, as clauses.
pub(super) fn missing(config: &PortConfig<'_>) -> io::Result<Vec<String>> {
    let name = config.name;
    let is_up = getifaddrs()?.any(|interface| {
        interface.interface_name == name && interface.flags.contains(InterfaceFlags::IFF_UP)
    });
    // Of the network that this process is in, unlike what /sys shows.
    let mtu = fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{name}/mtu"));
    let has_mtu = mtu.is_ok_and(|mtu| mtu.trim() == config.mtu.to_string());
    let table = fs::read_to_string("/proc/self/net/ipv6_route")?;
    let routes = config.routes.iter();
    let no_route = routes.filter(|(prefix, len)| !has_route(&table, name, *prefix, *len));
    let mut missing = Vec::new();
    if !is_up {
        missing.push("is not up".to_owned());
    }
    if !has_mtu {
        missing.push(format!("has not the MTU {}", config.mtu));
    }
    missing.extend(no_route.map(|(prefix, len)| format!("has no route to {prefix}/{len}")));
    Ok(missing)
}

/// Whether `/proc/net/ipv6_route` has a route straight out of an interface: prefix and its length
/// in hexadecimal, six further columns, flags, and the interface.
fn has_route(table: &str, name: &str, prefix: Ipv6Addr, len: u8) -> bool {
    let (prefix, len) = (format!("{:032x}", prefix.to_bits()), format!("{len:02x}"));
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |at: usize, word: &str| words.get(at).is_some_and(|found| *found == word);
        has(0, &prefix) && has(1, &len) && has(9, name)
    })
}

/// The commands with which root makes the interface for this user.
pub(super) fn preparation(config: &PortConfig<'_>) -> String {
    let PortConfig { name, mtu, .. } = config;
    let uid = Uid::effective();
    let routes = config.routes.iter();
    let routes = routes.map(|(prefix, len)| format!("; ip route add {prefix}/{len} dev {name}"));
    format!(
        "ip tuntap add dev {name} mode tun user {uid}; ip link set {name} mtu {mtu} up{}",
        routes.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_one_by_prefix_length_and_interface() {
        let table = "\
fd6d6f74657400010000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 00000001   motet0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";
        let prefix: Ipv6Addr = "fd6d:6f74:6574:1::".parse().expect("an address");
        assert!(has_route(table, "motet0", prefix, 64));
        assert!(!has_route(table, "motet", prefix, 64));
        assert!(!has_route(table, "motet0", prefix, 63));
        assert!(!has_route(table, "motet0", Ipv6Addr::UNSPECIFIED, 64));
    }
}
