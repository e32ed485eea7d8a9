//! What a node that gives keys makes of what comes in clear.

use super::*;
use crate::ip::ALL_NODES;
use crate::join::{PORT, Porch, Role};
use crate::mac::security::{NetworkKey, Peer, Security, SecurityConfig};
use crate::node::datagram::{DatagramError, head};
use crate::remote::Remote;
use crate::wire::lowpan_dispatch::IPV6;

/// A registrar with a key.
fn registrar() -> Node<'static> {
    let mut rng = Rng::from_seed([1, 1]);
    let mut radio = radio(0, MeshConfig::default(), Duration::ZERO, 8, &mut rng);
    let config = SecurityConfig::new(NetworkKey::new([7; 16]), 1);
    let security = Security::new(&config, memory(Peer::EMPTY, 2));
    if let Link::Mesh(mesh) = &mut radio {
        mesh.set_security(Box::leak(Box::new(security)));
    }
    let interfaces = Vec::leak(std::vec![radio, wire()]);
    let ip = Ip::new(IpConfig::default(), memory(None, 4));
    let tcp = tcp_engine(&mut rng);
    let porch = Porch::new(Role::Registrar, &mut rng);
    let mut node = Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN);
    node.set_porch(Box::leak(Box::new(porch)));
    node
}

/// Hears a datagram in clear, from port to port, with these bits of its checksum changed.
fn hear(node: &mut Node<'_>, ports: (u16, u16), damage: u8) {
    let src = ip::link_local(link(1).iid());
    let mut start = head((src, ALL_NODES), ports, 255, b"what").unwrap();
    start[ipv6::HEADER_LEN + 7] ^= damage;
    let payload = [&[IPV6], &start[..], b"what"].concat();
    let psdu = frame_from(link(1), LinkAddr::BROADCAST, 1, &payload);
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: Instant::ORIGIN,
    };
    let heard = mac::Event::FrameReceived { psdu: &psdu, meta };
    node.on_event(RADIO, Event::Mesh(heard), Instant::ORIGIN);
    let mut out = [0; ACTION_LEN_MAX];
    while node.poll_action(Instant::ORIGIN, &mut out).is_some() {}
}

#[test]
fn what_comes_in_clear_and_is_no_request_is_counted() {
    let mut node = registrar();
    let mut refused = 0;
    for (ports, damage) in [
        ((PORT, PORT), 0),
        ((PORT, PORT), 1),
        ((PORT, 9), 0),
        ((9, PORT), 0),
    ] {
        hear(&mut node, ports, damage);
        refused += 1;
        let counters = node.porch().unwrap().counters();
        assert_eq!(counters.refused, refused, "{ports:?} {damage}");
    }
    assert_eq!(node.porch().unwrap().counters().taken, 0);
}

#[test]
fn nobody_joins_over_a_cable() {
    let mut node = registrar();
    let neighbours = Remote {
        zone: WIRE.zone(),
        ..(ALL_NODES, PORT).into()
    };
    let sent = node.send_join(&neighbours, b"request", Instant::ORIGIN);
    assert_eq!(sent, Err(DatagramError::NoRoute));
}
