//! Nodes that go off, reboot or lose a link in the middle of a run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::air::gains::{ChainAir, Gains, Later};
use motet_lab::air::radio::State;
use motet_lab::apps::content::Content;
use motet_lab::apps::{App, Receiver, Sender, Services};
use motet_lab::net::network::{Network, NetworkOptions, NodeOptions};
use motet_lab::net::outages::{Outages, Switch};
use motet_lab::net::run::{self, Next};
use motet_lab::report::json_lines;
use motet_lab::scenario::{Captures, Outcome, Overrides, Plan, RunResult, ScenarioError, Watch};

fn plan(text: &str) -> Result<Plan, ScenarioError> {
    Plan::parse(text, Path::new("test.toml"), Overrides::default())
}

fn runs(plan: &Plan) -> Vec<RunResult> {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.run(&watch, Captures::default())
}

fn run(text: &str) -> RunResult {
    runs(&plan(text).unwrap()).remove(0)
}

/// A chain of three hops with one flow and one fault.
fn chain(top: &str, flow: &str, fault: &str) -> String {
    format!("{top}\nwarmup_s = 0\n[topology]\nchain = 3\n[[flow]]\n{flow}\n[[fault]]\n{fault}\n")
}

#[test]
fn a_transfer_of_a_mote_that_reboots_begins_anew() {
    for ends in ["from = 3", "from = \"host\"\nto = 3", "from = 1\nto = 3"] {
        let flow = format!("bytes = 40000\n{ends}");
        let fault = "kind = \"reboot\"\nnode = 3\nat_s = 8";
        let run = run(&chain("duration_s = 200", &flow, fault));
        let [flow] = &run.flows[..] else {
            panic!("{ends}")
        };
        assert_eq!(flow.outcome, Outcome::Complete, "{ends}");
        assert_eq!(flow.connections_lost, Some(1), "{ends}");
        assert!(flow.intact && run.complete, "{ends}");
        assert!(flow.bytes > 40_000, "{ends}: nothing was lost");
        // It had some of its bytes after the eight seconds, and needed as many again for all.
        let kbps = 40_000.0 / 125.0 / flow.finished_s.unwrap();
        assert!((flow.goodput_kbps - kbps).abs() < 1e-9, "{ends}");
    }
}

#[test]
fn messages_and_datagrams_of_a_mote_that_reboots_go_on() {
    for kind in ["periodic", "request", "udp"] {
        for ends in ["from = 3", "from = \"host\"\nto = 3"] {
            let flow = format!("kind = \"{kind}\"\n{ends}");
            let fault = "kind = \"off\"\nnode = 3\nat_s = 20\nfor_s = 10";
            let run = run(&chain("duration_s = 100", &flow, fault));
            let [flow] = &run.flows[..] else {
                panic!("{kind}")
            };
            assert_eq!(flow.outcome, Outcome::Running, "{kind} {ends}");
            let lost = (kind != "udp").then_some(1);
            assert_eq!(flow.connections_lost, lost, "{kind} {ends}");
            assert!(flow.intact && run.complete, "{kind} {ends}");
            let [due, came] = flow.messages.unwrap();
            // A mote that is off makes none.
            let most = if ends == "from = 3" { 91 } else { 100 };
            assert!((most - 2..=most).contains(&due), "{kind} {ends}: {due} due");
            assert!((60..=91).contains(&came), "{kind} {ends}: {came} of {due}");
        }
    }
}

#[test]
fn a_connection_outlives_a_relay_and_the_border_router() {
    for (node, compression) in [(2, "none"), (0, "none"), (2, "tcphc"), (0, "tcphc")] {
        for ends in ["from = 3", "from = \"host\"\nto = 3"] {
            let flow = format!("bytes = 40000\n{ends}");
            let fault = format!(
                "kind = \"off\"\nnode = {node}\nat_s = 5\nfor_s = 10\n\
                 [stack]\ncompression = \"{compression}\""
            );
            let run = run(&chain("duration_s = 200", &flow, &fault));
            let [flow] = &run.flows[..] else {
                panic!("{node}")
            };
            let case = format!("node {node}, {compression}, {ends}");
            assert_eq!(flow.outcome, Outcome::Complete, "{case}");
            assert_eq!(flow.connections_lost, Some(0), "{case}");
            assert_eq!(flow.bytes, 40_000, "{case}");
            assert!(flow.intact && run.complete, "{case}");
            assert!(flow.finished_s.unwrap() > 15.0, "{case}");
        }
    }
}

#[test]
fn a_connection_whose_relay_stays_away_is_lost() {
    let fault = "kind = \"off\"\nnode = 2\nat_s = 5";
    let run = run(&chain("duration_s = 3000", "bytes = 100000", fault));
    let flow = &run.flows[0];
    assert!(flow.outcome.is_failure(), "{:?}", flow.outcome);
    assert_eq!(flow.connections_lost, Some(1));
    assert!(!run.complete && run.trouble().is_some());
}

#[test]
fn a_flow_ends_with_a_mote_that_stays_off() {
    for ends in ["from = 3", "from = \"host\"\nto = 3"] {
        let flow = format!("bytes = 100000\n{ends}");
        let fault = "kind = \"off\"\nnode = 3\nat_s = 5";
        let run = run(&chain("duration_s = 100", &flow, fault));
        let flow = &run.flows[0];
        assert_eq!(flow.outcome, Outcome::SwitchedOff, "{ends}");
        assert_eq!(flow.connections_lost, Some(1), "{ends}");
        assert!(run.complete && run.trouble().is_none(), "{ends}");
        assert!(run.seconds < 7.0, "{ends}: nothing was to come");
    }
}

#[test]
fn a_link_changes_both_ways_and_comes_back() {
    let with = |gain: &str| {
        let fault = format!("kind = \"link\"\nnode = 1\nto = 2\n{gain}\nat_s = 20\nfor_s = 20");
        run(&chain("duration_s = 90\nsample_s = 1", "", &fault))
    };
    let kbps = |run: &RunResult, from: f64, to: f64| {
        let samples = run.samples.iter();
        let within = samples.filter(|sample| sample.at_s > from && sample.at_s <= to);
        within.map(|sample| sample.goodput_kbps).sum::<f64>() / (to - from)
    };
    let broken = with("");
    assert!(kbps(&broken, 5.0, 20.0) > 10.0);
    assert!(kbps(&broken, 21.0, 40.0) == 0.0);
    // Timeouts double: TCP may try just before the link is back, and again after as long as it was away.
    assert!(kbps(&broken, 65.0, 90.0) > 10.0);
    assert_eq!(broken.flows[0].connections_lost, Some(0));
    // At the sensitivity a frame is lost now and then, so that the flow is slower.
    let weak = with("gain_db = -102");
    let meanwhile = kbps(&weak, 21.0, 40.0);
    assert!(
        meanwhile > 0.0 && meanwhile < 0.9 * kbps(&weak, 5.0, 20.0),
        "{meanwhile}"
    );
}

/// What a trace says of a link while that has a fault holds from the fault's end on.
#[test]
fn a_link_comes_back_as_the_trace_has_it_by_then() {
    let fault = "kind = \"link\"\nnode = 1\nto = 2\ngain_db = -110\nat_s = 10\nfor_s = 10";
    let plan = plan(&chain("", "", fault)).unwrap();
    let mut scenario = plan.points[0].scenario.as_ref().clone();
    let from = Instant::ORIGIN + Duration::from_secs(3);
    let at = |seconds: u64| Instant::ORIGIN + Duration::from_secs(seconds);
    let later = |seconds: u64, from: usize, to: usize, db: f64| Later {
        at: at(seconds),
        from,
        to,
        db,
    };
    scenario.network.later = vec![
        later(5, 2, 1, -70.0),
        later(17, 1, 2, -75.0),
        later(18, 1, 2, -80.0),
        later(18, 2, 3, -85.0),
        later(40, 1, 2, -65.0),
    ];
    let changes = scenario.link_faults(from);
    let expected = [
        later(13, 1, 2, -110.0),
        later(17, 1, 2, -110.0),
        later(18, 1, 2, -110.0),
        later(23, 1, 2, -80.0),
        later(13, 2, 1, -110.0),
        later(23, 2, 1, -70.0),
    ];
    assert_eq!(changes, expected);
    scenario.network.later.clear();
    let changes = scenario.link_faults(from);
    let back: Vec<f64> = changes
        .iter()
        .filter(|c| c.at == at(23))
        .map(|c| c.db)
        .collect();
    assert_eq!(back, [ChainAir::CALIBRATED.one_hop_db; 2]);
}

#[test]
fn a_node_that_is_off_is_silent_and_deaf() {
    let fault = "kind = \"off\"\nnode = 2\nat_s = 10\nfor_s = 15";
    let run = run(&chain("duration_s = 60", "", fault));
    let asleep: Vec<f64> = run.nodes[..4]
        .iter()
        .map(|node| node.counts.share(State::Sleep))
        .collect();
    assert!((asleep[2] - 0.25).abs() < 1e-6, "{asleep:?}");
    assert!(asleep[0] == 0.0 && asleep[1] == 0.0 && asleep[3] == 0.0);
    // What a stack counted before it was switched off is not lost.
    let relayed = run.nodes[2].counts.transmissions;
    let sent: u64 = run
        .links
        .iter()
        .filter(|link| link.from == 2)
        .map(|link| link.frames)
        .sum();
    // Frames that it had under way when it was switched off, or when the run ended, may be missing.
    let counted = sent..=sent + 2;
    assert!(counted.contains(&relayed), "{relayed}, {sent} on the air");
}

#[test]
fn faults_are_the_same_in_every_run() {
    let text = chain(
        "duration_s = 40\nseeds = 2",
        "from = 3",
        "kind = \"reboot\"\nnode = 3\nat_s = 10\n\
         [[fault]]\nkind = \"off\"\nnode = 0\nat_s = 20\nfor_s = 1",
    );
    let plan = plan(&text).unwrap();
    let [first, second] = [0, 1].map(|_| json_lines(&plan, &runs(&plan)));
    assert_eq!(first, second);
}

#[test]
fn impossible_faults_are_refused_in_one_sentence() {
    let two = "kind = \"off\"\nnode = 1\nat_s = 1\nfor_s = 5\n[[fault]]\n";
    let off = |rest: &str| format!("{two}{rest}");
    let cases: &[(String, &[&str])] = &[
        (
            "node = 1\nat_s = 1".into(),
            &["no fault.kind", "\"reboot\""],
        ),
        (
            "kind = \"of\"\nnode = 1\nat_s = 1".into(),
            &["fault.kind is \"of\"", "\"link\""],
        ),
        ("kind = \"off\"\nat_s = 1".into(), &["no fault.node"]),
        ("kind = \"off\"\nnode = 1".into(), &["no fault.at_s"]),
        (
            "kind = \"off\"\nnode = 4\nat_s = 1".into(),
            &["fault.node is 4", "0 to 3"],
        ),
        (
            "kind = \"off\"\nnode = -1\nat_s = 1".into(),
            &["fault.node is -1"],
        ),
        (
            "kind = \"off\"\nnode = 1\nat_s = 60".into(),
            &["fault.at_s is 60", "less than duration_s"],
        ),
        (
            "kind = \"off\"\nnode = 1\nat_s = -1".into(),
            &["fault.at_s is -1"],
        ),
        (
            "kind = \"off\"\nnode = 1\nat_s = 1\nfor_s = 0".into(),
            &["fault.for_s is 0", "0.1 to"],
        ),
        (
            "kind = \"off\"\nnode = 1\nat_s = 1\nto = 2".into(),
            &["fault.to is 2", "\"link\""],
        ),
        (
            "kind = \"reboot\"\nnode = 1\nat_s = 1\ngain_db = -9".into(),
            &["fault.gain_db", "\"link\""],
        ),
        (
            "kind = \"link\"\nnode = 1\nat_s = 1".into(),
            &["no fault.to"],
        ),
        (
            "kind = \"link\"\nnode = 1\nto = 9\nat_s = 1".into(),
            &["fault.to is 9", "0 to 3"],
        ),
        (
            "kind = \"link\"\nnode = 1\nto = 1\nat_s = 1".into(),
            &["are both 1", "differ"],
        ),
        (
            "kind = \"link\"\nnode = 1\nto = 2\nat_s = 1\ngain_db = 3".into(),
            &["fault.gain_db is 3"],
        ),
        (
            "kind = \"off\"\nnode = 1\nat_s = 1\nwhen = 3".into(),
            &["called `when`"],
        ),
        (
            off("kind = \"reboot\"\nnode = 1\nat_s = 5.5"),
            &[
                "[[fault]] 2",
                "fault.at_s is 5.5",
                "node 1",
                "[[fault]] 1 from 1 s to 6 s",
            ],
        ),
        (
            "kind = \"link\"\nnode = 1\nto = 2\nat_s = 1\n\
             [[fault]]\nkind = \"link\"\nnode = 2\nto = 1\nat_s = 50"
                .into(),
            &["between nodes 2 and 1", "from 1 s on"],
        ),
    ];
    for (fault, parts) in cases {
        let error = plan(&chain("", "", fault)).expect_err(fault).to_string();
        for part in *parts {
            assert!(error.contains(part), "{fault}\n{error}\nlacks {part}");
        }
        assert_eq!(error.lines().count(), 1);
    }
    // One after the other is no overlap.
    for next in [
        "kind = \"reboot\"\nnode = 1\nat_s = 6",
        "kind = \"reboot\"\nnode = 2\nat_s = 3",
    ] {
        assert!(plan(&chain("", "", &off(next))).is_ok(), "{next}");
    }
}

/// A reboot every second for an hour; everything that runs on a mote has memory of its own.
#[test]
fn reboots_take_no_memory() {
    let arena = Arena::new();
    let nodes = (0..4).map(|n| NodeOptions {
        compression: Some(motet::tcphc::Mode::default()),
        ..NodeOptions::new(n.to_string())
    });
    let gains = Gains::chain(4, ChainAir::CALIBRATED);
    let options = NetworkOptions::new(nodes.collect(), gains);
    let mut network = Network::new(options, &arena).unwrap();
    assert!(network.join(Duration::from_secs(60)));
    let host = network.host(0).unwrap();
    for (from, to, port) in [(3, host, 4_000), (host, 2, 4_001)] {
        let remote = (network.addr(to), port);
        let content = || Content::endless([7, u64::from(port)]);
        let ends = network.ends(to, network.addr(from), &arena);
        let receiver = Receiver::checking(port, ends, content()).beginning_anew();
        network.world.add_app(to, App::Receiver(receiver));
        let ends = network.ends(from, remote.0, &arena);
        let sender = Sender::new(content(), remote, ends).beginning_anew();
        network.world.add_app(from, App::Sender(sender));
    }
    let ends = network.ends(1, network.addr(host), &arena);
    network
        .world
        .add_app(1, App::Services(Box::new(Services::new(2, ends))));
    let from = network.world.now();
    let mut outages = Outages::default();
    for second in 0..3_600 {
        let at = from + Duration::from_secs(second);
        // The motes come back for long enough to connect again.
        let node = [0, 3, 1, 2, 3, 3, 3, 2, 2, 2][second as usize / 10 % 10];
        outages.add(at, node, Switch::Off);
        outages.add(at + Duration::from_millis(400), node, Switch::On);
    }
    let mut allocated = Vec::new();
    let mut next: Instant = from;
    run::run(&mut network, from + Duration::from_secs(3_600), |network| {
        outages.pass(network, &arena, |_, _, _| {});
        if network.world.now() >= next {
            allocated.push(arena.allocated_bytes_including_metadata());
            next += Duration::from_secs(60);
        }
        outages.next_at().map_or(Next::Over, Next::At)
    });
    assert!(allocated.len() >= 59);
    assert!(
        allocated[5..].iter().all(|bytes| *bytes == allocated[5]),
        "{allocated:?}"
    );
    let App::Receiver(receiver) = &network.world.apps(host)[0] else {
        panic!("the host reads")
    };
    assert!(receiver.received > 10_000 && receiver.differs_at.is_none());
    assert!(receiver.progress.lost > 10, "{}", receiver.progress.lost);
}
