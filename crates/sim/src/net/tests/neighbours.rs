//! Silent and hostile neighbours beside an honest transfer.
//!
//! ```text
//! host ===== border router 0 ~~~ relay 1 ~~~ mote 2
//! stranger ==/      |               |
//!                 mote 3 (off)   attacker 4, off or forging
//! ```

use std::net::Ipv6Addr;

use motet::ip::icmp;
use motet::limits::PSDU_LEN_MAX;
use motet::random::Rng;
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::icmpv6::{Echo, Message};
use motet::wire::ieee802154::Header;
use motet::wire::ndp::NdpOptions;
use motet::wire::{lowpan_dispatch, lowpan_frag, tcp};

use super::*;
use crate::air::gains::{ChainAir, Gains, Later};
use crate::cases::some_of;
use crate::stats::Estimate;

const RELAY: usize = 1;
const MOTE: usize = 2;
const OFF: usize = 3;
const ATTACKER: usize = 4;

/// How long transfers are watched: some 200 kB pass undisturbed.
const SPAN: Duration = Duration::from_secs(60);

/// Nodes 0 to 2 are a chain. Node 3 hangs at `parent`, and everybody up to two hops from there
/// hears it until it is switched off; node 4 stands where the relay stands.
fn yard(parent: usize, seed: u64) -> NetworkOptions {
    let names = ["border", "relay", "mote", "off", "attacker"];
    let mut nodes = names.map(NodeOptions::new).to_vec();
    for (node, parent) in [(RELAY, 0), (MOTE, RELAY), (OFF, parent), (ATTACKER, RELAY)] {
        nodes[node].parent = Parent::Node(parent);
    }
    let place = |node: usize| match node {
        OFF => parent,
        ATTACKER => RELAY,
        node => node,
    };
    let gains = Gains::along(5, place, ChainAir::CALIBRATED);
    let mut stranger = HostOptions::new("stranger");
    stranger.kind = Host::Outside;
    let mut options = NetworkOptions::new(nodes, gains);
    options.hosts.push(stranger);
    options.seed = seed;
    options
}

/// What goes on beside the transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Trouble {
    Nothing,
    /// So many pings a second, with so many bytes of data, from the stranger to a mote that is
    /// off.
    Pings(u32, usize),
    /// As many packets of that size, which the relay before that mote throws away at once.
    Discarded(u32, usize),
    /// So many frames a second from link-local addresses that nobody has, to a node.
    Forged(u32, Kind, usize),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Echo,
    /// To all nodes, in a frame for all.
    EchoToAll,
    NeighborSolicitation,
    RouterSolicitation,
    Syn,
    /// First fragments, of packets that never come, by turns from two sources.
    FirstFragment,
    /// The same in the name of the victim's neighbours.
    NeighboursFirstFragment,
}

/// Bytes of a transfer that arrive in [`SPAN`].
fn bytes_beside(trouble: Trouble, (parent, up): (usize, bool), seed: u64) -> f64 {
    let arena = Arena::new();
    let mut options = yard(parent, seed);
    let switched_off = Instant::ORIGIN + Duration::from_secs(60);
    for node in [OFF, ATTACKER] {
        for other in (0..5).filter(|other| *other != node) {
            // The attacker's own stack is silent; what is put on the air in its place is not.
            let mut away = |from, to| {
                options.later.push(Later {
                    at: switched_off,
                    from,
                    to,
                    db: f64::NEG_INFINITY,
                });
            };
            away(other, node);
            if node == OFF {
                away(node, other);
            }
        }
    }
    let mut network = Network::new(options, &arena).unwrap();
    assert!(network.join(Duration::from_secs(59)), "{seed}");
    // It has acknowledged frames when it is switched off, and is no stranger.
    let ping = echo(plan::host_addr(1), network.addr(OFF), 64, 8);
    network.world.inject_packet(&ping);
    network.world.run_until(switched_off);
    let host = network.host(0).unwrap();
    let (from, to) = if up { (MOTE, host) } else { (host, MOTE) };
    transfer::start(&mut network, (from, to), &arena);
    let mut rng = Rng::from_seed([seed, 77]);
    let end = network.world.now() + SPAN;
    while network.world.now() < end {
        let rate = match trouble {
            Trouble::Nothing => 1,
            Trouble::Pings(rate, _) | Trouble::Discarded(rate, _) | Trouble::Forged(rate, ..) => {
                rate
            }
        };
        let next = network.world.now() + Duration::from_micros(1_000_000 / u64::from(rate));
        match trouble {
            Trouble::Nothing => {}
            Trouble::Pings(_, data) => {
                let ping = echo(plan::host_addr(1), network.addr(OFF), 64, data);
                network.world.inject_packet(&ping);
            }
            Trouble::Discarded(_, data) => {
                let mut packet = echo(plan::host_addr(1), network.addr(RELAY), 64, data);
                packet[NEXT_HEADER_AT] = NO_NEXT_HEADER;
                network.world.inject_packet(&packet);
            }
            Trouble::Forged(_, kind, to) => {
                let frame = forged(kind, to, &mut rng);
                // It listens before it talks, as it wants to be heard.
                let until = network.world.now() + Duration::from_millis(30);
                while !network.world.transmit_at(ATTACKER, &frame) && network.world.step(until) {}
            }
        }
        network.world.run_until(next);
    }
    transfer::received(&network, to) as f64
}

fn echo(src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8, data: usize) -> Vec<u8> {
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: &vec![7; data],
    });
    written(&request, src, dst, hop_limit)
}

fn written(message: &Message<'_>, src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
    let mut out = vec![0; 1_280];
    let len = icmp::write(message, src, dst, hop_limit, &mut out).unwrap();
    out.truncate(len);
    out
}

/// A frame to `to` from a neighbour that does not exist.
fn forged(kind: Kind, to: usize, rng: &mut Rng) -> Vec<u8> {
    let [a, b, c, d] = rng.next_u32().to_be_bytes();
    let from = LinkAddr::Extended([2, 0xaa, 0, 0, a, b, c, d]);
    let src = Ipv6Addr::from(0xfe80 << 112 | u128::from(u64::from_be_bytes(from.iid())));
    let dst = plan::link_local(to as u16);
    let packet = match kind {
        Kind::Echo => echo(src, dst, 64, 8),
        Kind::EchoToAll => echo(src, motet::ip::ALL_NODES, 64, 8),
        Kind::NeighborSolicitation => {
            let message = Message::NeighborSolicitation {
                target: dst,
                options: NdpOptions::default(),
            };
            written(&message, src, dst, 255)
        }
        Kind::RouterSolicitation => {
            let options = NdpOptions::default();
            written(&Message::RouterSolicitation { options }, src, dst, 255)
        }
        Kind::Syn => syn(src, dst, rng),
        Kind::FirstFragment => {
            let two = LinkAddr::Extended([2, 0xaa, 0, 0, 0, 0, 0, d & 1]);
            return first_fragment(two, to, rng);
        }
        Kind::NeighboursFirstFragment => {
            let [above, below] = [to.saturating_sub(1), to + 1];
            let neighbour = if d & 1 == 0 || to == MOTE {
                above
            } else {
                below
            };
            let neighbour = if neighbour == to { below } else { neighbour };
            return first_fragment(plan::link_addr(neighbour as u16), to, rng);
        }
    };
    let link_dst = match kind {
        Kind::EchoToAll => LinkAddr::BROADCAST,
        _ => plan::link_addr(to as u16),
    };
    frame(
        from,
        link_dst,
        d,
        &[&[lowpan_dispatch::IPV6], &packet[..]].concat(),
    )
}

/// The first of a packet of 1,000 bytes for the node `to`.
fn first_fragment(from: LinkAddr, to: usize, rng: &mut Rng) -> Vec<u8> {
    let header = lowpan_frag::Header {
        datagram_size: 1_000,
        datagram_tag: rng.next_u32() as u16,
        datagram_offset: None,
    };
    let dst = plan::mesh_addr(to as u16);
    let mut packet = echo(plan::HOST, dst, 64, 952);
    packet.truncate(72);
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit(&mut out).unwrap();
    let payload = [&out[..len], &[lowpan_dispatch::IPV6], &packet].concat();
    frame(
        from,
        plan::link_addr(to as u16),
        rng.next_u32() as u8,
        &payload,
    )
}

fn syn(src: Ipv6Addr, dst: Ipv6Addr, rng: &mut Rng) -> Vec<u8> {
    let header = tcp::Header {
        src_port: rng.next_u32() as u16 | 1,
        dst_port: transfer::PORT,
        flags: tcp::Flags::SYN,
        window: 1_000,
        ..tcp::Header::default()
    };
    let mut packet = vec![
        0x60,
        0,
        0,
        0,
        0,
        tcp::HEADER_LEN as u8,
        tcp::NEXT_HEADER,
        64,
    ];
    packet.extend(src.octets());
    packet.extend(dst.octets());
    let mut segment = vec![0; tcp::HEADER_LEN];
    header.emit(&mut segment).unwrap();
    tcp::fill_checksum(&src, &dst, &mut segment);
    packet.extend(segment);
    packet
}

fn frame(from: LinkAddr, to: LinkAddr, sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = [0; PSDU_LEN_MAX];
    let header = Header::data(plan::PAN, to, from, sequence);
    let len = header.emit_frame(payload, &mut out).unwrap();
    out[..len].to_vec()
}

/// Where an IPv6 header says what follows it, and that nothing does (RFC 8200 §4.7).
const NEXT_HEADER_AT: usize = 6;
const NO_NEXT_HEADER: u8 = 59;

/// Half of them from elsewhere than the others.
const SEEDS: [u64; 6] = [1, 2, 3, 50_001, 50_002, 50_003];

/// What arrives with each seed.
fn runs(trouble: Trouble, way: (usize, bool)) -> [f64; 6] {
    SEEDS.map(|seed| bytes_beside(trouble, way, seed))
}

/// Mean goodput over that of the `others`, of the same seeds, with its interval.
fn share(runs: &[f64; 6], others: &[f64; 6]) -> Estimate {
    let ratio = |left_out: Option<usize>| {
        let sum = |runs: &[f64]| -> f64 {
            let kept = runs.iter().enumerate();
            let kept = kept.filter(|(n, _)| Some(*n) != left_out);
            kept.map(|(_, bytes)| bytes).sum()
        };
        sum(runs) / sum(others)
    };
    let without = [0, 1, 2, 3, 4, 5].map(|n| ratio(Some(n)));
    Estimate::jackknife(ratio(None), &without, SEEDS.len())
}

/// The lower end of the interval.
fn low(share: Estimate) -> f64 {
    share.interval.map_or(f64::NAN, |interval| interval.low)
}

/// The requirement, and what it comes from: where the mote hangs behind a relay, its pings take
/// the air to the relay whatever the relay does with them. What they cost beyond that is what
/// nodes can be blamed for, and all that is left where pings are long.
#[test]
fn a_mote_that_is_off_costs_the_others_little() {
    let ways = [(0, false), (RELAY, false), (0, true), (RELAY, true)];
    for way in some_of(ways, 2) {
        let undisturbed = runs(Trouble::Nothing, way);
        for (rate, data) in [(5, 8), (10, 8), (10, 56)] {
            let beside = runs(Trouble::Pings(rate, data), way);
            let carried = match way.0 {
                RELAY => runs(Trouble::Discarded(rate, data), way),
                _ => undisturbed,
            };
            let [whole, own] = [&undisturbed, &carried].map(|others| share(&beside, others));
            let air = share(&carried, &undisturbed).value;
            let case = format!("{rate} pings a second of {data} bytes, {way:?}");
            println!(
                "{case}: {:.3} in all, {air:.3} for their air, {:.3} beyond",
                whole.value, own.value
            );
            assert!(low(own) >= 0.9, "{case}: {own:?} beyond their air");
            // Ten frames a second of this length take a tenth of the first hop for themselves.
            if data <= 8 || way.0 != RELAY {
                assert!(low(whole) >= 0.85, "{case}: {whole:?}");
            }
        }
    }
}

#[test]
fn forged_neighbours_cost_the_others_little() {
    let undisturbed = [false, true].map(|up| runs(Trouble::Nothing, (0, up)));
    let mut cases = Vec::new();
    for kind in [
        Kind::Echo,
        Kind::EchoToAll,
        Kind::NeighborSolicitation,
        Kind::RouterSolicitation,
        Kind::Syn,
    ] {
        cases.extend([(0, false), (MOTE, false), (RELAY, true), (MOTE, true)].map(|at| (kind, at)));
    }
    for (kind, (victim, up)) in some_of(cases, 7) {
        let beside = runs(Trouble::Forged(10, kind, victim), (0, up));
        let share = share(&beside, &undisturbed[usize::from(up)]);
        assert!(
            low(share) >= 0.85,
            "{kind:?} at {victim}, up {up}: {share:?}"
        );
    }
}

/// Their frames take air besides: at 17 a second a tenth of it.
#[test]
fn forged_fragments_take_no_memory_from_others() {
    let undisturbed = [false, true].map(|up| runs(Trouble::Nothing, (0, up)));
    let mut cases = Vec::new();
    for kind in [Kind::FirstFragment, Kind::NeighboursFirstFragment] {
        for at in [(RELAY, false), (MOTE, false), (0, true), (RELAY, true)] {
            cases.extend([17, 4, 8].map(|rate| (kind, rate, at)));
        }
    }
    for (kind, rate, (victim, up)) in some_of(cases, 7) {
        let beside = runs(Trouble::Forged(rate, kind, victim), (0, up));
        let share = share(&beside, &undisturbed[usize::from(up)]);
        let least = if rate > 10 { 0.8 } else { 0.9 };
        let case = format!("{kind:?}, {rate} at {victim}, up {up}");
        assert!(low(share) >= least, "{case}: {share:?}");
    }
}
