//! The link's timing, looked at from outside: what a capture shows of interframe spacing, and
//! what becomes of drivers whose stamps and ACKs are late.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use motet::link::Forwarding;
use motet::mac::{Channels, FrameDrop, MacCounters, RadioCapabilities};
use motet::time::Duration;
use motet::wire::ieee802154::{FrameType, Header, check_fcs};
use motet_lab::Arena;
use motet_lab::air::profile::Profile;
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::capture::{Capture, Records};
use motet_lab::net::chain::ChainOptions;
use motet_lab::net::network::{Network, NetworkOptions};

const PORT: u16 = 4_242;

/// A file of this test's own, gone when it is.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let name = format!("motet-timing-{}-{name}.pcap", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// Bytes in which every place differs from its neighbours.
fn content(len: usize) -> Arc<[u8]> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Sends `len` bytes up from the last mote, and as many down, at the same time; every MAC's
/// counters after that.
fn both_ways(options: NetworkOptions, len: usize, capture: Option<&Temporary>) -> Vec<MacCounters> {
    let arena = Arena::new();
    let mut network = Network::new(options, &arena).unwrap();
    if let Some(Temporary(path)) = capture {
        let capture = Capture::create(path, Records::Frames, true).unwrap();
        network.world.set_capture(Some(capture));
    }
    assert!(network.join(Duration::from_secs(600)), "does not come up");
    let (mote, host) = (network.mesh_nodes() - 1, network.host(0).unwrap());
    let mut ends = Vec::new();
    for (from, to) in [(mote, host), (host, mote)] {
        let (src, dst) = (network.addr(from), network.addr(to));
        let receiver = App::Receiver(Receiver::new(PORT, network.ends(to, src, &arena)));
        ends.push((to, network.world.add_app(to, receiver)));
        let sending = network.ends(from, dst, &arena);
        let sender = App::Sender(Sender::new(content(len), (dst, PORT), sending));
        network.world.add_app(from, sender);
    }
    let until = network.world.now() + Duration::from_secs(3_600);
    let received = |network: &Network<'_>, (node, place): (usize, usize)| {
        let App::Receiver(receiver) = &network.world.apps(node)[place] else {
            unreachable!()
        };
        let finished = receiver.progress.finished.is_some();
        finished.then(|| receiver.content == *content(len))
    };
    while ends.iter().any(|end| received(&network, *end).is_none()) {
        assert!(network.world.step(until), "no end");
    }
    for end in ends {
        assert_eq!(received(&network, end), Some(true), "not what was sent");
    }
    if let Some(capture) = network.world.take_capture() {
        capture.finish().unwrap();
    }
    network.macs().map(|mac| mac.counters().clone()).collect()
}

/// What a capture says of the times between frames.
#[derive(Debug, Default)]
struct Spacing {
    /// Pairs of data frames by one sender.
    pairs: usize,
    /// Of them, those too close to each other.
    early: usize,
    /// The closest, µs beyond what the standard asks.
    least_us: i64,
    /// Data frames too close behind an ACK that their own sender sent.
    early_after_own_ack: usize,
}

/// IEEE 802.15.4-2015 §6.2.4: the spacing follows the frame, or its ACK where one was asked for
/// and came. Written from the standard: nothing here is the MAC's.
fn spacing(Temporary(path): &Temporary) -> Spacing {
    let bytes = std::fs::read(path).unwrap();
    // By sender: when its last exchange ended, and the spacing due after it.
    let mut ends = HashMap::new();
    let mut own_acks = HashMap::new();
    // The last frame that asks for an ACK: who, whom, number, end.
    let mut asking = Vec::new();
    let mut seen = Spacing {
        least_us: i64::MAX,
        ..Spacing::default()
    };
    for (start, psdu) in records(&bytes) {
        let len = psdu.len() as i64;
        let end = start + 32 * (6 + len);
        let (header, _) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
        if header.frame_type == FrameType::Ack {
            let is_its = |(_, _, number, ended): &(_, _, u8, i64)| {
                *number == header.sequence && (192..=192 + 400).contains(&(start - ended))
            };
            if let Some(at) = asking.iter().position(is_its) {
                let (src, dst, ..) = asking.remove(at);
                ends.entry(src).and_modify(|(ended, _)| *ended = end);
                own_acks.insert(dst, end);
            }
            continue;
        }
        let src = header.src.unwrap().addr;
        let spacing = if len <= 18 { 192 } else { 640 };
        if let Some((ended, spacing)) = ends.insert(src, (end, spacing)) {
            seen.pairs += 1;
            seen.early += usize::from(start - ended < spacing);
            seen.least_us = seen.least_us.min(start - ended - spacing);
        }
        if let Some(ended) = own_acks.get(&src) {
            seen.early_after_own_ack += usize::from(start - ended < 192);
        }
        if header.ack_request {
            asking.retain(|(_, _, _, ended)| start - ended < 10_000);
            asking.push((src, header.dst.unwrap().addr, header.sequence, end));
        }
    }
    seen
}

/// The records of a little-endian pcap file: when each frame began, µs, and its bytes.
fn records(pcap: &[u8]) -> impl Iterator<Item = (i64, &[u8])> {
    let mut rest = &pcap[24..];
    std::iter::from_fn(move || {
        let (head, after) = rest.split_first_chunk::<16>()?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let (data, next) = after.split_at(word(8) as usize);
        rest = next;
        Some((i64::from(word(0)) * 1_000_000 + i64::from(word(4)), data))
    })
}

/// The chains whose frames are looked at: fast drivers and slow ones, copies and none.
fn chains() -> Vec<(&'static str, ChainOptions)> {
    let chain = |hops, profile| ChainOptions {
        hops,
        profile,
        ..ChainOptions::default()
    };
    let immediate = |profile, channels| ChainOptions {
        forwarding: Forwarding::Immediate,
        channels,
        ..chain(3, profile)
    };
    vec![
        ("nRF52840, one hop", chain(1, Profile::NRF52840)),
        ("nRF52840, three hops", chain(3, Profile::NRF52840)),
        ("a driver of no cost", chain(2, Profile::IDEAL)),
        ("Hamilton", chain(2, Profile::HAMILTON)),
        ("TelosB", chain(2, Profile::TELOSB)),
        (
            "TelosB without copies",
            immediate(Profile::TELOSB, Channels::SINGLE),
        ),
        (
            "nRF52840 without copies",
            immediate(Profile::NRF52840, Channels::SINGLE),
        ),
        (
            "the same, a channel for each link",
            immediate(Profile::NRF52840, Channels::of(&[15, 20, 25, 26])),
        ),
    ]
}

#[test]
fn a_sender_leaves_the_standards_spacing_behind_each_frame() {
    for (at, (name, chain)) in chains().into_iter().enumerate() {
        let capture = Temporary::new(&at.to_string());
        both_ways(chain.network(), 60_000, Some(&capture));
        let seen = spacing(&capture);
        assert!(seen.pairs > 1_000, "{name}: {seen:?}");
        assert_eq!(
            (seen.early, seen.early_after_own_ack),
            (0, 0),
            "{name}: {seen:?}"
        );
    }
}

/// The check sees what it is there for, and the spacing is no longer than asked for.
#[test]
fn a_mac_without_the_spacing_is_caught() {
    let (_, chain) = chains().swap_remove(0);
    let mut network = chain.network();
    for node in &mut network.nodes {
        node.mac.lifs = Duration::ZERO;
    }
    let capture = Temporary::new("without");
    both_ways(network, 60_000, Some(&capture));
    let seen = spacing(&capture);
    let share = seen.early as f64 / seen.pairs as f64;
    assert!(
        (0.05..0.2).contains(&share),
        "{seen:?}: backoffs of no length"
    );
    let capture = Temporary::new("with");
    both_ways(chain.network(), 60_000, Some(&capture));
    let least_us = spacing(&capture).least_us;
    assert!(least_us < 150, "{least_us} µs: what the driver takes");
}

/// Two nodes whose drivers stamp a frame's end up to `late_us` late, and so send their ACKs late;
/// `told_us`: what their MACs know of it.
fn late_drivers(late_us: u64, told_us: u64, fcs_by_radio: bool) -> [u32; 4] {
    let profile = Profile {
        capabilities: RadioCapabilities {
            stamp_delay_max: Duration::from_micros(told_us),
            fcs_by_radio,
            ..Profile::IDEAL.capabilities
        },
        stamp_delay_max: Duration::from_micros(late_us),
        ..Profile::IDEAL
    };
    let chain = ChainOptions {
        hops: 1,
        profile,
        ..ChainOptions::default()
    };
    let counters = both_ways(chain.network(), 20_000, None);
    let sum = |count: &dyn Fn(&MacCounters) -> u32| counters.iter().map(count).sum();
    [
        sum(&|mac| mac.transmissions),
        sum(&|mac| mac.ack_timeouts),
        sum(&|mac| mac.dropped(FrameDrop::MistimedAck)),
        sum(&|mac| mac.dropped(FrameDrop::NoAck)),
    ]
}

#[test]
fn drivers_with_late_stamps_lose_no_ack_once_they_say_so() {
    for late_us in [0, 64, 100, 250, 500] {
        let [frames, timeouts, mistimed, given_up] = late_drivers(late_us, late_us, false);
        assert!(frames > 500, "{late_us} µs: {frames} frames");
        assert_eq!((mistimed, given_up), (0, 0), "{late_us} µs late");
        // Both talk at once: without any lateness as many of their frames meet.
        assert!(
            timeouts < frames / 8,
            "{late_us} µs: {timeouts} of {frames}"
        );
    }
}

/// What used to look like a dead link: each such ACK is counted.
#[test]
fn drivers_with_late_stamps_that_do_not_say_so_are_seen_by_a_counter() {
    let [frames, timeouts, mistimed, _] = late_drivers(64, 0, false);
    assert!(mistimed > frames / 20, "{mistimed} of {frames}");
    assert!(timeouts >= mistimed, "{timeouts} attempts in vain");
}

/// A processor so slow that its ACKs start 300 µs after the frame, whatever its stamps say.
#[test]
fn a_slow_neighbour_is_heard_by_those_that_grant_it_the_time() {
    let chain = ChainOptions {
        hops: 1,
        profile: Profile {
            handle: Duration::from_micros(300),
            ..Profile::IDEAL
        },
        ..ChainOptions::default()
    };
    let mut patient = chain.network();
    for node in &mut patient.nodes {
        node.mac.ack_slack = Duration::from_micros(300 - 192 + 20);
    }
    for mac in both_ways(patient, 20_000, None) {
        assert!(mac.acks_sent > 100);
        assert_eq!((mac.acks_late, mac.dropped(FrameDrop::MistimedAck)), (0, 0));
        assert_eq!(mac.dropped(FrameDrop::NoAck), 0);
    }
}

#[test]
fn radios_that_keep_the_fcs_carry_the_same() {
    let [frames, _, mistimed, given_up] = late_drivers(0, 0, true);
    assert!(frames > 500);
    assert_eq!((mistimed, given_up), (0, 0));
    assert_eq!(late_drivers(0, 0, true), late_drivers(0, 0, false));
}
