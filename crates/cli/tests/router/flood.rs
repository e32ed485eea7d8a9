//! Forged segments, from a mesh that this process plays.

use std::{fs, net::Ipv6Addr, time::Duration};

use motet_router::port::{LinkKind, PacketPort, PortConfig};

use crate::nets::{Router, enter, within};

/// All of other flows.
const SYNS: u32 = 100_000;

/// So many are sent at once. What a full queue has no room for the kernel lets pass unseen, and counts nowhere.
const BURST: u32 = 512;

/// The limit of the table.
const FLOWS_MAX: usize = 8_192;

const SOON: Duration = Duration::from_secs(20);

const MESH: Ipv6Addr = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 1);

/// SYNs, resets and wild numbers from the mesh: all pass, the table stays bounded, and so does the
/// memory.
pub(crate) fn passes_and_leaves_nothing() {
    let namespace = enter();
    let config = PortConfig {
        name: "mesh0",
        host: HOST,
        routes: &[(MESH, 64)],
        link: Some(LinkKind::Tun),
        ..PortConfig::default()
    };
    let mut port = PacketPort::open(&namespace, &config).expect("a TUN device");
    let router = Router::start("mesh0", "");
    let memory = || -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", router.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let mut buf = [0; 1_280];
    let mut flood = |range: std::ops::Range<u32>, flags: u8| {
        for number in range {
            if number % BURST == 0 {
                within(SOON, || waiting() == 0).expect("the router takes what waits");
            }
            port.send(&segment(number, flags)).expect("room");
            // The kernel's resets.
            while let Some(_len) = port.recv(&mut buf).expect("an open port") {}
        }
    };
    const SYN: u8 = 0x02;
    const RST: u8 = 0x04;
    const ACK: u8 = 0x10;
    flood(0..SYNS / 4, SYN);
    let quarter = memory();
    flood(SYNS / 4..SYNS, SYN);
    let all = memory();
    flood(0..SYNS / 10, RST);
    // Each has come through the queue, or the kernel has let it pass unseen; the kernel's own
    // resets come on top.
    let count = |key: &str| router.status()["counters"][key].as_u64().unwrap();
    let flows = || router.status()["flows"].as_array().unwrap().len();
    let are_seen = |sent: u32| {
        let seen = within(SOON, || {
            count("packets") >= u64::from(sent) || count("overruns") > 0
        });
        assert!(seen.is_some(), "{} of {sent}", count("packets"));
    };
    are_seen(SYNS + SYNS / 10);
    assert_eq!(flows(), 0, "a SYN is no flow, nor is a reset");
    // What a mote acknowledges may be a flow that is older than the router.
    flood(0..SYNS, ACK);
    are_seen(2 * SYNS + SYNS / 10);
    assert!(flows() <= FLOWS_MAX, "{}", flows());
    assert!(count("table_full") > 0 || count("overruns") > 0);
    assert_eq!(count("held"), 0);
    assert!(all < quarter + 2_048, "{quarter} KiB, then {all} KiB");
    let most = memory();
    assert!(most < 65_536, "{most} KiB");
    println!(
        "{} packets, {} overruns, {most} KiB",
        count("packets"),
        count("overruns")
    );
    router.end();
}

/// Packets that wait in the kernel's queues for a program of this network namespace.
fn waiting() -> u32 {
    let queues = fs::read_to_string("/proc/net/netfilter/nfnetlink_queue").unwrap();
    let of_queue = |line: &str| line.split_whitespace().nth(2)?.parse::<u32>().ok();
    queues.lines().filter_map(of_queue).sum()
}

/// A TCP segment of mote and port `number`, to a port where nobody listens.
fn segment(number: u32, flags: u8) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
    let mote = Ipv6Addr::from_bits(MESH.to_bits() | u128::from(number % 1_000 + 2));
    packet.extend(mote.octets());
    packet.extend(HOST.octets());
    // Lossless: below 1,001 and 65,536.
    let port = 1_024 + (number / 1_000) as u16;
    packet.extend(port.to_be_bytes());
    packet.extend(81_u16.to_be_bytes());
    packet.extend(number.wrapping_mul(2_654_435_761).to_be_bytes());
    packet.extend([0; 4]);
    packet.extend([5 << 4, flags, 4, 0, 0, 0, 0, 0]);
    let words = packet[8..].chunks(2);
    let words = words.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum = words.sum::<u32>() + 20 + 6;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Lossless: folded above.
    let checksum = !(sum as u16);
    packet[56..58].copy_from_slice(&checksum.to_be_bytes());
    packet
}
