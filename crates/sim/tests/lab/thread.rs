//! Children of the lab's Thread router, and that router beside OpenThread's.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use motet::lowpan::{Contexts, LinkPair, decompress};
use motet::mac::security::{NetworkKey, Security};
use motet::mac::{Policy, Sleep};
use motet::thread::Dataset;
use motet::thread::mle::{self, Ends};
use motet::time::{Duration, Instant};
use motet::wire::ieee802154::{Header, check_fcs};
use motet::wire::{ipv6, udp};
use motet_lab::Arena;
use motet_lab::air::gains::{ChainAir, Gains};
use motet_lab::apps::content::Content;
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::capture::{Capture, Records};
use motet_lab::net::network::{Joining, Network, NetworkOptions, NodeOptions, ThreadOptions};
use pcap_file::pcap::PcapReader;

/// The router, and the motes around it.
const AWAKE: usize = 1;
const ASLEEP: usize = 2;

fn options() -> NetworkOptions {
    let gains = Gains::from_fn(ASLEEP + 1, |_, _| ChainAir::CALIBRATED.one_hop_db);
    let nodes = (0..=ASLEEP).map(|n| NodeOptions {
        sleep: (n == ASLEEP).then(|| Sleep::new(Policy::Hinted(Duration::from_secs(5)))),
        ..NodeOptions::new(n.to_string())
    });
    NetworkOptions {
        joining: Joining::Thread,
        thread: Some(ThreadOptions::default()),
        ..NetworkOptions::new(nodes.collect(), gains)
    }
}

fn after(network: &Network<'_>, seconds: u64) -> Instant {
    network.world.now() + Duration::from_secs(seconds)
}

fn attached<'m>(options: NetworkOptions, arena: &'m Arena) -> Network<'m> {
    let mut network = Network::new(options, arena).unwrap();
    assert!(network.join(Duration::from_secs(30)), "motes attach");
    network
}

#[test]
fn children_attach_awake_and_asleep() {
    let arena = Arena::new();
    let mut network = attached(options(), &arena);
    let settled = after(&network, 300);
    network.world.run_until(settled);
    let router = network.world.thread_router(0).unwrap();
    let children: Vec<_> = router.children().map(|(_, _, sleeps)| sleeps).collect();
    assert_eq!(children.len(), ASLEEP, "they report in time");
    assert_eq!(children.iter().filter(|sleeps| **sleeps).count(), 1);
    assert_eq!(router.counters().attached, 2, "once each");
    assert_eq!(router.counters().lost, 0);
    assert!(router.counters().polls > 30);
}

/// Moves bytes between a mote and the host.
fn transfer(mote: usize, is_down: bool) {
    const LEN: u64 = 20_000;
    let arena = Arena::new();
    let mut network = attached(options(), &arena);
    let host = network.host(0).unwrap();
    let (from, to) = if is_down { (host, mote) } else { (mote, host) };
    let content = || Content::made([7, 9], LEN);
    let remote = (network.addr(to), PORT);
    let ends = network.ends(to, network.addr(from), &arena);
    let receiver = Receiver::checking(PORT, ends, content());
    network.world.add_app(to, App::Receiver(receiver));
    let ends = network.ends(from, remote.0, &arena);
    let sender = Sender::new(content(), remote, ends);
    network.world.add_app(from, App::Sender(sender));
    let until = after(&network, 600);
    network.world.run_until(until);
    let App::Receiver(receiver) = &network.world.apps(to)[0] else {
        panic!("there is a receiver");
    };
    assert_eq!(receiver.received, LEN, "mote {mote}, down: {is_down}");
    assert!(receiver.differs_at.is_none());
}

const PORT: u16 = 7_000;

#[test]
fn bytes_go_both_ways_to_a_child_awake() {
    transfer(AWAKE, false);
    transfer(AWAKE, true);
}

#[test]
fn bytes_go_both_ways_to_a_child_asleep() {
    transfer(ASLEEP, false);
    transfer(ASLEEP, true);
}

#[test]
fn children_follow_a_rotation_of_the_key_and_a_restart_of_the_router() {
    let arena = Arena::new();
    let mut network = attached(options(), &arena);
    network.rotate_key(1);
    let settled = after(&network, 120);
    network.world.run_until(settled);
    for mote in [AWAKE, ASLEEP] {
        let security = network.mac(mote).and_then(|mac| mac.security());
        assert_eq!(security.map(Security::sequence), Some(1), "mote {mote}");
    }
    network.switch_off(0);
    let off = after(&network, 2);
    network.world.run_until(off);
    network.switch_on(0, &arena);
    let settled = after(&network, 300);
    network.world.run_until(settled);
    let router = network.world.thread_router(0).unwrap();
    assert_eq!(router.children().count(), 2);
    assert!(network.has_joined());
}

#[test]
fn a_mote_too_many_finds_no_parent() {
    let arena = Arena::new();
    let full = NetworkOptions {
        thread: Some(ThreadOptions {
            children_max: 1,
            ..ThreadOptions::default()
        }),
        ..options()
    };
    let mut network = Network::new(full, &arena).unwrap();
    assert!(!network.join(Duration::from_secs(60)));
    let router = network.world.thread_router(0).unwrap();
    assert_eq!(router.children().count(), 1);
}

#[test]
fn a_network_says_its_dataset() {
    let arena = Arena::new();
    let network = Network::new(options(), &arena).unwrap();
    let dataset = Dataset::parse_hex(&network.dataset_hex().unwrap()).unwrap();
    assert_eq!(dataset.network, ThreadOptions::default().network);
    let plain = Network::new(
        NetworkOptions {
            joining: Joining::Advertised,
            thread: None,
            ..options()
        },
        &arena,
    );
    assert_eq!(plain.unwrap().dataset_hex(), None);
}

/// Commands of MLE, and the types of each one's TLVs as they follow one another; each kind once, and
/// those of routers alone.
type Orders = BTreeMap<u8, Vec<u8>>;

/// The orders in a capture of one parent and one child.
fn orders(path: &Path, key: &NetworkKey) -> Orders {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut found = Orders::new();
    while let Some(packet) = reader.next_packet() {
        let bytes = packet.unwrap().data.into_owned();
        // The lab's frames have a header of their own (TAP), with its length behind two bytes.
        let psdu = match bytes.first_chunk() {
            Some([0, 0, low, high]) => &bytes[usize::from(u16::from_le_bytes([*low, *high]))..],
            _ => &bytes[..],
        };
        let Ok((header, None, payload)) = Header::parse_secured(check_fcs(psdu).unwrap_or(psdu))
        else {
            continue;
        };
        let (Some(src), Some(dst)) = (header.src, header.dst) else {
            continue;
        };
        let link = LinkPair {
            src: src.addr,
            dst: dst.addr,
        };
        let mut packet = vec![0; 1_280];
        let Ok(done) = decompress(payload, link, &Contexts::default(), None, &mut packet) else {
            continue;
        };
        packet.truncate(done.uncompressed_len);
        packet.extend(&payload[done.compressed_len..]);
        let Ok((ip, datagram)) = ipv6::Header::parse_start(&packet) else {
            continue;
        };
        let ends = Ends {
            src: ip.src,
            dst: ip.dst,
        };
        let mut message = datagram[udp::HEADER_LEN..].to_vec();
        if let Ok(message) = mle::open(key, &ends, &mut message) {
            let types = message.tlvs.map(|(kind, _)| kind).collect();
            found.entry(message.command).or_insert(types);
        }
    }
    found
}

fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let file = root.join(format!("data/captures/thread/{name}.pcap"));
    let is_there = file.exists();
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(
        is_there || !ci,
        "{} is missing; set MOTET_SHARED",
        file.display()
    );
    is_there.then_some(file)
}

#[test]
fn messages_and_tlvs_are_in_the_order_of_openthread() {
    // Of the captures with an awake and a sleepy child of OpenThread, and with this project's first child.
    let key = NetworkKey::new([
        0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
        0xff,
    ]);
    let folder = tempfile::tempdir().unwrap();
    for (name, sleeps) in [("attach-mtd-rx-on", false), ("attach-mtd-sleepy", true)] {
        let Some(theirs) = shared(name) else {
            println!("not run: {name} is missing; set MOTET_SHARED");
            return;
        };
        let theirs = orders(&theirs, &key);
        let arena = Arena::new();
        let mut options = options();
        // The other mote sleeps in no case, or the first one as well.
        options.nodes[ASLEEP].sleep = options.nodes[ASLEEP].sleep.filter(|_| sleeps);
        options.nodes[AWAKE].sleep = options.nodes[ASLEEP].sleep;
        let mut network = Network::new(options, &arena).unwrap();
        let path = folder.path().join(format!("{name}.pcap"));
        let capture = Capture::create(&path, Records::TappedFrames, false).unwrap();
        network.world.set_capture(Some(capture));
        assert!(network.join(Duration::from_secs(30)));
        let settled = after(&network, 60);
        network.world.run_until(settled);
        network.world.take_capture().unwrap().finish().unwrap();
        let ours = orders(&path, &ThreadOptions::default().network);
        for command in [
            mle::command::ADVERTISEMENT,
            mle::command::PARENT_RESPONSE,
            mle::command::CHILD_ID_RESPONSE,
        ] {
            // What a child does not ask for it does not get.
            let asked = ours.get(&mle::command::CHILD_ID_REQUEST).unwrap();
            let supervised = mle::tlv_type::SUPERVISION_INTERVAL;
            let theirs = theirs.get(&command).unwrap().iter();
            let theirs = theirs.filter(|kind| **kind != supervised || asked.contains(kind));
            let theirs: Vec<u8> = theirs.copied().collect();
            assert_eq!(
                ours.get(&command),
                Some(&theirs),
                "{name}, command {command}"
            );
        }
        let updates = mle::command::CHILD_UPDATE_RESPONSE;
        if let (Some(ours), false) = (ours.get(&updates), sleeps) {
            let theirs = orders(&shared("child-rx-on").unwrap(), &key);
            assert_eq!(Some(ours), theirs.get(&updates), "{name}");
        }
    }
}
