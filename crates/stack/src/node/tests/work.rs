//! How much is asked about a packet: one parse, one decision, one next hop.

use super::links::{FAR, HOST_NODE, NEAR, on_mesh, three};
use super::zones::{HUB, Links, PORT, buffers};
use super::*;

const fn work(parses: u32, decisions: u32, lookups: u32) -> Tally {
    Tally {
        parses,
        decisions,
        lookups,
        walks: 0,
    }
}

/// The work of each node while node `from` sends `len` bytes to `to`.
fn of_datagram(from: usize, to: Ipv6Addr, len: usize) -> Vec<Tally> {
    let mut links = three([false, false]);
    links.run();
    links.tallies.fill(Tally::default());
    let sent = links.nodes[from].send_datagram((to, PORT), 7, &bytes(len));
    assert_eq!(sent, Ok(()));
    links.run();
    links.tallies
}

/// Header compression works on bytes, and reads the header in them: once for a packet of one frame,
/// and once more where the packet turns out to need several.
const COMPRESSED: [u32; 2] = [1, 2];

/// Where a packet waits in a queue of a mesh link, its route is asked anew when it leaves: one
/// more parse and look-up. In fragments, the first one is judged, and then the whole packet, of
/// which 6LoWPAN, too, reads the header: a UDP checksum may have been left out.
#[test]
fn a_packet_is_parsed_once_and_judged_once() {
    let (by_cable, by_mesh) = ((HOST_NODE, HOST), (FAR, on_mesh(2, FAR)));
    let [whole, cut] = COMPRESSED;
    for (from, to, len, at_hub, at_end) in [
        // From the mesh to a cable, in a frame and in fragments.
        (NEAR, by_cable, 20, work(1, 1, 1), work(1, 1, 0)),
        (NEAR, by_cable, 500, work(3, 2, 2), work(1, 1, 0)),
        // From a cable, and from another mesh, to a mesh.
        (HOST_NODE, by_mesh, 20, work(2 + whole, 1, 2), work(1, 1, 0)),
        (NEAR, by_mesh, 20, work(2 + whole, 1, 2), work(1, 1, 0)),
        (NEAR, by_mesh, 500, work(4 + cut, 2, 3), work(3, 2, 0)),
    ] {
        let tallies = of_datagram(from, to.1, len);
        assert_eq!(tallies[HUB], at_hub, "{from} to {to:?}, {len} bytes");
        assert_eq!(tallies[to.0], at_end, "{from} to {to:?}, {len} bytes");
        if from == NEAR {
            let compressed = COMPRESSED[usize::from(len > 20)];
            let expected = work(1 + compressed, 0, 1);
            assert_eq!(tallies[NEAR], expected, "{to:?}, {len} bytes");
        }
    }
}

/// A relay that passes on a packet in fragments parses the first one only, and compresses that
/// one's header anew.
#[test]
fn a_relay_decides_by_the_first_fragment_alone() {
    for len in [300, 1_000] {
        let mut world = World::chain(2, Relaying::Fragments);
        let fragments = world.radio_of(1).counters().fragments_relayed;
        world.tallies.fill(Tally::default());
        let sent = world.nodes[2].send_datagram((HOST, 7), 7, &bytes(len));
        assert_eq!(sent, Ok(()));
        world.run_for(Duration::from_secs(2));
        assert!(world.radio_of(1).counters().fragments_relayed > fragments + 2);
        // The host says that it has no such port: that comes back as one more packet.
        let back = world.nodes[2]
            .ip()
            .counters
            .dropped(ip::PacketDrop::IgnoredIcmp);
        assert_eq!(back, 1);
        assert_eq!(world.tallies[1], work(2 * 2, 2, 2), "{len} bytes");
    }
}

/// TCP asks for the next hop once for each segment that it sends, and once for each that it
/// receives, for the answer. Only header compression parses what TCP has just written.
#[test]
fn a_segment_asks_for_one_next_hop() {
    let mut links: Links = three([false, false]);
    let settings = &SETTINGS;
    let tcp = links.nodes[HOST_NODE].tcp_mut();
    let listener = tcp.listen(None, PORT, settings).unwrap();
    let accepted = tcp.accept(listener, buffers(), links.now).unwrap();
    let opened = links.nodes[NEAR].connect((HOST, PORT), buffers(), settings, links.now);
    let opened = opened.unwrap();
    links.run();
    let counters = |links: &Links| {
        [NEAR, HOST_NODE].map(|n| {
            let counters = links.nodes[n].tcp().counters();
            (counters.sent, counters.received)
        })
    };
    let before = counters(&links);
    links.tallies.fill(Tally::default());
    for _ in 0..20 {
        links.says(NEAR, opened, &[7; 20]);
        links.run_for(Duration::from_secs(1));
        assert_eq!(links.hears(HOST_NODE, accepted), [7; 20]);
    }
    let compressed = [COMPRESSED[0], 0];
    let after = counters(&links);
    for (side, n) in [NEAR, HOST_NODE].into_iter().enumerate() {
        let sent = after[side].0 - before[side].0;
        let received = after[side].1 - before[side].1;
        assert!(sent >= 20 && received >= 20, "{sent} and {received}");
        let parses = received + sent * compressed[side];
        let expected = work(parses, received, sent + received);
        assert_eq!(links.tallies[n], expected, "{sent} sent");
    }
}
