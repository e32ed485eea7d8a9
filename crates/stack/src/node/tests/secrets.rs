//! What two nodes with one seed draw, as copies of an image may be.

use super::*;
use crate::tcp::{IncomingSegment, Offer};
use crate::wire;
use crate::wire::tcp::Flags;

const US: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0x77);
const PORT: u16 = 7;

/// Node `n`, whose engine drew its secrets before any link address was known, and has no place
/// for handshakes: it answers every SYN with a cookie.
fn node(n: usize) -> Node<'static> {
    let seed = [7, 7];
    let connections = (0..4).map(|_| Slot::EMPTY).collect::<Vec<_>>();
    let memory = Memory {
        connections: Vec::leak(connections),
        listeners: memory(Listener::EMPTY, 1),
        half_open: &mut [],
    };
    let mut tcp = Tcp::new(memory, &mut Rng::from_seed(seed));
    tcp.listen(None, PORT, &SETTINGS).unwrap();
    let mut rng = Rng::from_seed(seed);
    let radio = radio(n, MeshConfig::default(), Duration::ZERO, 4, &mut rng);
    let interfaces = Vec::leak(std::vec![radio]);
    let ip = Ip::new(IpConfig::default(), super::memory(None, 4));
    Node::new(interfaces, ip, tcp, Rng::from_seed(seed), Instant::ORIGIN)
}

/// The header of the next segment.
fn says(node: &mut Node<'_>, now: Instant) -> wire::tcp::Header {
    let mut out = [0; 1500];
    let outgoing = node.tcp.poll_segment(now, |_| true, &mut out).unwrap();
    let mut header = wire::tcp::Header::default();
    header.read(&out[..outgoing.len]).unwrap();
    header
}

/// ISN and timestamp of an active open, the ports of two, and a cookie: between the same ends at
/// the same time, so that nothing but the secrets differs.
fn secrets(n: usize) -> [u32; 5] {
    let (mut node, now) = (node(n), Instant::from_micros(1_000_000));
    let none = || Buffers::new(&mut [], &mut []);
    let opened = node.tcp.connect_from(
        (US, 50_000),
        (HOST, 9),
        none(),
        &SETTINGS,
        Offer::UNBOUNDED,
        now,
    );
    opened.unwrap();
    let syn = says(&mut node, now);
    let ports = [9, 10].map(|port| {
        let opened = node
            .tcp
            .connect(US, (HOST, port), none(), &SETTINGS, Offer::UNBOUNDED, now);
        let handle = opened.unwrap();
        says(&mut node, now);
        let connection = node.tcp.connection(handle).unwrap();
        u32::from(connection.endpoints().local_port)
    });
    let header = wire::tcp::Header {
        src_port: 40_000,
        dst_port: PORT,
        seq: 5,
        flags: Flags::SYN,
        window: 8_000,
        ..wire::tcp::Header::default()
    };
    let mut bytes = [0; 60];
    let len = header.emit(&mut bytes).unwrap();
    wire::tcp::fill_checksum(&HOST, &US, &mut bytes[..len]);
    let incoming = IncomingSegment {
        src: HOST,
        dst: US,
        zone: 0,
        ecn: 0,
        offer: Offer::UNBOUNDED,
        bytes: &bytes[..len],
    };
    node.tcp.on_segment(&incoming, now).unwrap();
    assert_eq!(node.tcp.counters().syn_cookies, 1);
    let (value, _) = syn.options.timestamps.unwrap();
    [syn.seq, value, ports[0], ports[1], says(&mut node, now).seq]
}

#[test]
fn nodes_with_one_seed_share_no_secret_of_tcp() {
    let all = [0, 1, 2, 0].map(secrets);
    assert_eq!(all[0], all[3], "one node is always the same");
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        for (which, (a, b)) in all[a].iter().zip(&all[b]).enumerate() {
            assert_ne!(a, b, "secret {which}");
        }
    }
}
