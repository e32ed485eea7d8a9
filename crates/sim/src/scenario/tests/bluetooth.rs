//! Scenarios over Bluetooth LE.

use super::*;
use crate::net::network::BleOptions;

const STAR: &str =
    "duration_s = 10\nwarmup_s = 2\n[topology]\nperipherals = 2\n[radio]\nkind = \"ble\"\n";

#[test]
fn keys_of_the_other_radio_are_refused() {
    let mesh = "[topology]\nchain = 1\n[[flow]]\n";
    let star = |more: &str| format!("{STAR}{more}\n[[flow]]\n");
    let cases = [
        (
            format!("{mesh}[radio]\nphy = \"2M\""),
            "radio.phy is \"2M\", but must be left out unless radio.kind is \"ble\", or node.kind is",
        ),
        (
            "[topology]\nperipherals = 2\n[[flow]]".to_owned(),
            "topology.peripherals is 2, but must be left out unless radio.kind is \"ble\"",
        ),
        (
            format!("{mesh}[radio]\nkind = \"ble\""),
            "topology.chain is 1, but must be left out unless radio.kind is \"802.15.4\"",
        ),
        (
            star("channel = 20"),
            "radio.channel is 20, but must be left out unless",
        ),
        (star("phy = \"3M\""), "radio.phy is \"3M\", but must be"),
        (
            star("interval_ms = 5"),
            "radio.interval_ms is 5, but must be",
        ),
        (
            star("interval_ms = 8"),
            "radio.interval_ms is 8, but must be a multiple of 1.25",
        ),
        (
            star("[stack]\nmss_frames = 3"),
            "stack.mss_frames is 3, but must be left out unless",
        ),
        (
            star("[sweep]\nradio.channel = [11, 12]"),
            "sweep.radio.channel is",
        ),
        (
            star("[sweep]\nradio.kind = [\"ble\", \"802.15.4\"]"),
            "radio.kind cannot be swept",
        ),
        (
            star("[[node]]\nid = 1\nprofile = \"telosb\""),
            "[[node]] 1 (id 1): node.profile is \"telosb\", but must be left out",
        ),
        (
            star("[[fault]]\nkind = \"link\"\nnode = 0\nto = 1\nat_s = 3"),
            "[[fault]] 1: fault.kind is \"link\", but must be left out",
        ),
        (
            format!(
                "{}[[flow]]\n",
                STAR.replace("= 2\n[radio]", "= 2\njoining = \"rpl\"\n[radio]")
            ),
            "topology.joining is \"rpl\", but must be left out",
        ),
    ];
    for (text, words) in cases {
        let error = plan(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
}

#[test]
fn keys_become_the_air_and_the_run_measures_it() {
    let text = format!(
        "{STAR}phy = \"2M\"\ninterval_ms = 30\nlatency = 3\nframe_loss = 0.02\n\
         [stack]\nwindow_segments = 8\n[[flow]]\nfrom = 1\n[[flow]]\nfrom = \"host\"\nto = 2\n"
    );
    let plan = plan(&text).unwrap();
    let ble = plan.points[0].scenario.network.ble;
    let expected = BleOptions {
        phy: motet::ble::Phy::Le2M,
        interval: 24,
        latency: 3,
        ..BleOptions::DEFAULT
    };
    assert_eq!(ble, Some(expected));
    let [run] = &results(&plan)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.complete && run.failure.is_none(), "{:?}", run.failure);
    for flow in &run.flows {
        assert!(
            flow.intact && flow.goodput_kbps > 100.0,
            "{}",
            flow.goodput_kbps
        );
        assert!(flow.energy_mj > 0.0);
    }
    let injected = run.fates()[crate::air::medium::Fate::Injected.index()];
    let loss = injected as f64 / run.frames() as f64;
    assert!((0.01..0.03).contains(&loss), "{loss}");
    let mote = &run.nodes[1];
    assert_eq!((mote.parent, mote.hops), (Some(0), 1));
    let time: u64 = mote.counts.states_us.iter().sum();
    assert!(time.abs_diff(8_000_000) < 100_000, "{time} µs");
    assert!((0.2..0.9).contains(&mote.counts.radio_duty()));
    assert!(mote.counts.retries > 0 && mote.counts.transmissions > 1_000);
}

#[test]
fn a_mote_that_is_off_for_a_while_goes_on_afterwards() {
    let text = format!(
        "{STAR}[[flow]]\nkind = \"periodic\"\nfrom = 1\n\
         [[fault]]\nkind = \"reboot\"\nnode = 1\nat_s = 3\n"
    );
    let [run] = &results(&plan(&text).unwrap())[..] else {
        panic!("one point, one seed")
    };
    let delivered = run.flows[0].delivered().unwrap();
    assert!((0.1..0.9).contains(&delivered), "{delivered}");
}

/// With TCPlE the interval is the one that the flow needs, and its bytes are those that were sent;
/// a mote that restarts has it again.
#[test]
fn tcple_sets_the_interval_and_outlives_a_restart() {
    let flow = |more: &str| format!("{STAR}{more}[[flow]]\nfrom = 1\n");
    let with = plan(&flow("tcple = true\n")).unwrap();
    assert_eq!(
        with.points[0]
            .scenario
            .network
            .ble
            .map(|ble| ble.tcple_motes),
        Some(usize::MAX)
    );
    let error = plan("[topology]\nchain = 1\n[radio]\ntcple = true\n[[flow]]\n").unwrap_err();
    assert!(error.to_string().contains("radio.tcple is true"), "{error}");
    let [run] = &results(&with)[..] else {
        panic!("one point, one seed")
    };
    let flow_of = &run.flows[0];
    assert!(
        run.complete && flow_of.intact && flow_of.goodput_kbps > 200.0,
        "{}",
        flow_of.goodput_kbps
    );
    let text = format!(
        "{STAR}tcple = true\n[[flow]]\nkind = \"periodic\"\nfrom = 1\n\
         [[fault]]\nkind = \"reboot\"\nnode = 1\nat_s = 3\n"
    );
    let [run] = &results(&plan(&text).unwrap())[..] else {
        panic!("one point, one seed")
    };
    let delivered = run.flows[0].delivered().unwrap();
    assert!((0.1..0.9).contains(&delivered), "{delivered}");
}

/// A full link carries with TCPlE what it carries without, whichever way its data go.
#[test]
fn tcple_costs_a_full_link_nothing() {
    for (flow, loss) in [("to = 1\nfrom = \"host\"", 0.0), ("from = 1", 0.15)] {
        let goodput = |tcple: bool| {
            let text = format!("{STAR}frame_loss = {loss}\ntcple = {tcple}\n[[flow]]\n{flow}\n");
            let text = text.replace(
                "duration_s = 10\nwarmup_s = 2",
                "duration_s = 30\nwarmup_s = 10",
            );
            let text = format!("{text}[stack]\nwindow_segments = 8\n");
            let [run] = &results(&plan(&text).unwrap())[..] else {
                panic!("one point, one seed")
            };
            run.flows[0].goodput_kbps
        };
        let (with, without) = (goodput(true), goodput(false));
        assert!(with > 0.92 * without, "{flow}: {with} of {without}");
    }
}

#[test]
fn clocks_signals_and_motes_without_tcple_are_keys() {
    let text = format!(
        "{STAR}tcple = true\ndrift_ppm = 40\nrssi_dbm = -85\nrssi_sigma_db = 2.5\n\
         [[node]]\nid = 2\ntcple = false\n[[flow]]\nfrom = 1\n[[flow]]\nfrom = 2\n"
    );
    let plan_of = plan(&text).unwrap();
    let network = &plan_of.points[0].scenario.network;
    let ble = network.ble.unwrap();
    assert_eq!(
        (ble.drift_ppm, ble.rssi_dbm, ble.rssi_sigma_db),
        (40, -85.0, 2.5)
    );
    let lacking: Vec<bool> = network.nodes.iter().map(|node| node.lacks_tcple).collect();
    assert_eq!(lacking, [false, false, true]);
    let [run] = &results(&plan_of)[..] else {
        panic!("one point, one seed")
    };
    assert!(run.complete && run.flows.iter().all(|flow| flow.intact));
    assert!(run.flows.iter().all(|flow| flow.goodput_kbps > 50.0));
    let mesh = "[topology]\nchain = 1\n[[flow]]\n";
    for (text, words) in [
        (
            format!("{STAR}[[node]]\nid = 1\ntcple = true\n[[flow]]\n"),
            "[[node]] 1 (id 1): node.tcple is true, but must be left out unless radio.tcple is true",
        ),
        (
            format!("{STAR}tcple = true\n[[node]]\nid = 0\ntcple = false\n[[flow]]\n"),
            "[[node]] 1 (id 0): node.tcple is false, but must be left out for the border router",
        ),
        (
            format!("{mesh}[[node]]\nid = 1\ntcple = false\n"),
            "node.tcple is false, but must be left out unless radio.tcple is true",
        ),
        (
            format!("{STAR}rssi_dbm = 30\n[[flow]]\n"),
            "radio.rssi_dbm is 30",
        ),
    ] {
        let error = plan(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
}
