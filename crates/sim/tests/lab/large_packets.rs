//! The largest packet of IPv6's minimum MTU, from outside to motes several hops away: a mesh with
//! RPL puts a tunnel and a source route on top of it.

use std::net::Ipv6Addr;

use motet::limits::IPV6_MTU_MIN;
use motet::rpl::{Candidate, Root, RplRole};
use motet::time::Duration;
use motet::wire::icmpv6;
use motet_lab::Arena;
use motet_lab::air::gains::Gains;
use motet_lab::net::network::{
    Host, HostOptions, Joining, Network, NetworkOptions, NodeOptions, RADIO,
};
use motet_lab::net::plan;

const HOPS: usize = 5;

/// A chain in which nobody hears more than its neighbours, behind a host that the test plays. The
/// root's `flags` say how routing looks on the air.
fn chain(arena: &Arena, flags: u8) -> Network<'_> {
    let nodes = (0..=HOPS).map(|n| NodeOptions::new(n.to_string()));
    let gains = Gains::from_fn(HOPS + 1, |from, to| match from.abs_diff(to) {
        1 => -60.0,
        _ => f64::NEG_INFINITY,
    });
    let mut options = NetworkOptions::new(nodes.collect(), gains);
    options.joining = Joining::Rpl;
    options.hosts = vec![HostOptions {
        kind: Host::Outside,
        ..HostOptions::new("host")
    }];
    let mut network = Network::new(options, arena).unwrap();
    let mut root = Root::new(plan::MESH_PREFIX);
    root.configuration.flags = flags;
    let candidates: &mut [Candidate] = &mut [];
    let steps = arena.alloc_slice_fill_copy(HOPS + 1, None);
    network.world.with_node(0, |node, now| {
        node.start_rpl(RADIO, RplRole::Root(root), candidates, steps, now);
    });
    network
}

/// An echo request of `len` bytes.
fn ping(dst: Ipv6Addr, len: usize, seq: u16) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
    packet[6..8].copy_from_slice(&[icmpv6::NEXT_HEADER, 64]);
    packet[8..24].copy_from_slice(&plan::HOST.octets());
    packet[24..40].copy_from_slice(&dst.octets());
    packet[40] = 128;
    packet[46..48].copy_from_slice(&seq.to_be_bytes());
    for (at, byte) in packet.iter_mut().enumerate().skip(48) {
        *byte = (at * 7) as u8;
    }
    icmpv6::fill_checksum(&plan::HOST, &dst, &mut packet[40..]);
    packet
}

#[test]
fn a_packet_of_the_mtu_reaches_every_mote() {
    for flags in [0x30, 0x20, 0x10, 0] {
        let arena = Arena::new();
        let mut network = chain(&arena, flags);
        assert!(network.join(Duration::from_secs(60)), "flags {flags:#x}");
        for mote in 1..=HOPS {
            let request = ping(network.addr(mote), IPV6_MTU_MIN, mote as u16);
            // A frame may be lost for good to a collision.
            let answered = (0..3).any(|_| {
                network.world.inject_packet(&request);
                let until = network.world.now() + Duration::from_secs(3);
                network.world.run_until(until);
                let answers = std::iter::from_fn(|| network.world.take_packet());
                let same = |answer: &[u8]| answer[40] == 129 && answer[44..] == request[44..];
                // All of them are taken, so that none is left for the next question.
                answers.filter(|answer| same(answer)).count() > 0
            });
            assert!(answered, "flags {flags:#x}, mote {mote}");
        }
    }
}
