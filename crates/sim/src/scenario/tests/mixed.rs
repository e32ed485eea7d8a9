//! Motes over Bluetooth LE beside a mesh, on one border router.

use std::sync::atomic::{AtomicBool, AtomicU64};

use motet::link::Link;
use motet::time::Instant;

use super::security::key_file;
use super::*;
use crate::Arena;
use crate::capture::{Records, Tape};
use crate::net::network::{BESIDE, Network, RADIO};
use crate::scenario::{Captures, Watch};

const MESH: &str = "duration_s = 60\nwarmup_s = 10\n[topology]\nchain = 3\n";

fn mixed(more: &str) -> String {
    format!("{MESH}[[node]]\nid = 3\nkind = \"ble\"\n{more}")
}

#[test]
fn keys_that_do_nothing_there_are_refused() {
    let flow = "[[flow]]\nfrom = 2\n";
    let all: String = (1..=3)
        .map(|id| format!("[[node]]\nid = {id}\nkind = \"ble\"\n"))
        .collect();
    let cases = [
        (
            format!("{MESH}{flow}[[node]]\nid = 0\nkind = \"ble\"\n"),
            "[[node]] 1 (id 0): node.kind is \"ble\", but must be left out for the border router",
        ),
        (format!("{MESH}{flow}{all}"), "is \"ble\" at every mote"),
        (
            mixed(&format!("profile = \"telosb\"\n{flow}")),
            "node.profile is \"telosb\", but must be left out unless node.kind is \"802.15.4\"",
        ),
        (
            mixed(&format!("{flow}[[node]]\nid = 2\ntcple = false\n")),
            "[[node]] 2 (id 2): node.tcple is false, but must be left out unless node.kind is \"ble\", or radio.kind",
        ),
        (
            mixed(&format!("{flow}[radio]\ninterval_ms = 31\n")),
            "radio.interval_ms is 31, but must be a multiple of 1.25",
        ),
        (
            format!(
                "{MESH}{flow}[radio]\ninterval_ms = 30\n[[node]]\nid = 3\nkind = \"802.15.4\"\n"
            ),
            "radio.interval_ms is 30.0, but must be left out unless radio.kind is \"ble\"",
        ),
        (
            mixed(&format!("{flow}[[attacker]]\nnear = 3\nkind = \"ra\"\n")),
            "attacker.near is 3, but must be a node of the mesh",
        ),
        (
            mixed(&format!(
                "{flow}[[fault]]\nkind = \"link\"\nnode = 0\nto = 3\nat_s = 20\n"
            )),
            "[[fault]] 1: fault.to is 3, but must be a node of the mesh where fault.kind is \"link\"",
        ),
        (
            "[topology]\nperipherals = 2\n[radio]\nkind = \"ble\"\n[[flow]]\nfrom = 1\n\
             [[node]]\nid = 1\nkind = \"802.15.4\"\n"
                .to_owned(),
            "node.kind is \"802.15.4\", but must be left out unless radio.kind is \"802.15.4\"",
        ),
    ];
    for (text, words) in cases {
        let error = plan(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
}

/// Every kind of path: up, down, between both radios; with the mesh's key, which says nothing to
/// Bluetooth LE, with TCPlE and by every way to join, and after the border router has restarted.
#[test]
fn bytes_pass_between_both_radios_and_the_wire() {
    let (_folder, key) = key_file();
    for joining in ["advertised", "static", "rpl"] {
        let text = format!(
            "seed = 3\nduration_s = 50\nwarmup_s = 10\n[topology]\nchain = 3\njoining = \"{joining}\"\n\
             [radio]\ntcple = true\n[security]\nkey = \"{key}\"\n\
             [[node]]\nid = 3\nkind = \"ble\"\n[[flow]]\nfrom = 3\n[[flow]]\nfrom = \"host\"\nto = 3\n\
             [[flow]]\nfrom = 3\nto = 2\n[[flow]]\nfrom = 2\nto = 3\n[[flow]]\nfrom = 2\n\
             [[fault]]\nkind = \"reboot\"\nnode = 0\nat_s = 20\nfor_s = 1\n"
        );
        let plan = plan(&text).unwrap();
        let run = || results(&plan).remove(0);
        let result = run();
        assert!(result.failure.is_none(), "{joining}: {:?}", result.failure);
        for (number, flow) in result.flows.iter().enumerate() {
            assert!(flow.intact, "{joining}: flow {number}");
            // Of the mesh five share little; Bluetooth LE carries hundreds.
            let least = if number < 2 { 60.0 } else { 1.0 };
            assert!(
                flow.goodput_kbps > least,
                "{joining}: flow {number} has {} kb/s",
                flow.goodput_kbps
            );
        }
        assert_eq!(result.nodes[3].hops, 1, "{joining}");
        assert_eq!(result.nodes[3].parent, Some(0), "{joining}");
        let retries: Vec<_> = result
            .nodes
            .iter()
            .map(|node| node.counts.retries)
            .collect();
        let again: Vec<_> = run().nodes.iter().map(|node| node.counts.retries).collect();
        assert_eq!(retries, again, "the same seed gives the same run");
    }
}

/// A mote's going to the other radio leaves the mesh as it is without that mote.
#[test]
fn the_air_of_the_mesh_has_nothing_of_it() {
    let frames = |text: &str| {
        let [run] = &results(&plan(text).unwrap())[..] else {
            panic!("one point, one seed")
        };
        let on_air = run.nodes[..3].iter();
        on_air.map(|node| node.counts.transmissions).sum::<u64>()
    };
    let beside = frames(&mixed("[[flow]]\nfrom = 2\n"));
    let two = MESH.replace("chain = 3", "chain = 2");
    let alone = frames(&format!("{two}[[flow]]\nfrom = 2\n"));
    let difference = beside.abs_diff(alone) as f64 / alone as f64;
    assert!(difference < 0.05, "{beside} and {alone} frames");
}

/// Flows into either air have queues of their own, before and after the border router has been off.
#[test]
fn each_radio_of_the_border_router_has_flow_queues() {
    let plan = plan(&mixed("[[flow]]\nfrom = 2\n")).unwrap();
    let arena = Arena::new();
    let options = plan.points[0].scenario.network.clone();
    let mut network = Network::new(options, &arena).unwrap();
    let check = |network: &Network<'_>| {
        let node = network.world.node(0);
        assert!(matches!(node.link(RADIO), Some(Link::Mesh(mesh)) if mesh.flow_queues().is_some()));
        assert!(matches!(node.link(BESIDE), Some(Link::Ble(ble)) if ble.flow_queues().is_some()));
    };
    check(&network);
    network.world.run_until(Instant::from_micros(1_000_000));
    network.switch_off(0);
    network.world.run_until(Instant::from_micros(2_000_000));
    network.switch_on(0, &arena);
    check(&network);
}

/// The capture of the air is that of its records: once packets of Bluetooth LE stood in a file of
/// frames, which nothing could read.
#[test]
#[cfg(feature = "captures")]
fn a_capture_of_frames_is_of_the_mesh() {
    let text = mixed("[[flow]]\nfrom = 2\n[[flow]]\nfrom = 3\n");
    let tape = Tape::default();
    let captures = Captures {
        air: tape.capture(Records::TappedFrames).ok(),
        ..Captures::default()
    };
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan(&text).unwrap().run(&watch, captures);
    let mut capture = motet_decode::Capture::of_bytes(tape.bytes()).unwrap();
    let mut decoder = motet_decode::Decoder::new(&[]);
    let (mut frames, mut read) = (0, 0);
    while let Some(Ok(record)) = capture.next_record() {
        let frame = decoder.decode(&record);
        frames += 1;
        read += usize::from(frame.layers.iter().any(|layer| layer.name == "mac"));
    }
    assert!(frames > 1_000 && read == frames, "{read} of {frames}");
}
