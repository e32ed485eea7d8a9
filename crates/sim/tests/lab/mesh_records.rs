//! What a run says of a mesh: parents, when nodes joined, frames that carry no data of users.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_lab::report::{json_lines, plots};
use motet_lab::scenario::{Captures, Overrides, Plan, RunResult, Watch};

fn runs(plan: &Plan) -> Vec<RunResult> {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.run(&watch, Captures::default())
}

fn plan(text: &str) -> Plan {
    Plan::parse(text, Path::new("test.toml"), Overrides::default()).unwrap()
}

fn run(text: &str) -> RunResult {
    runs(&plan(text)).remove(0)
}

#[test]
fn no_frame_of_users_data_counts_as_control() {
    for (stack, flow) in [
        ("", ""),
        ("relaying = \"reassembly\"", "from = \"host\"\nto = 3"),
        ("compression = \"tcphc\"", ""),
        ("", "kind = \"udp\"\nmessage_bytes = 300"),
        (
            "",
            "kind = \"udp\"\nmessage_bytes = 20\nfrom = \"host\"\nto = 3",
        ),
        ("", "kind = \"request\"\nfrom = 1\nto = 3"),
    ] {
        let run = run(&format!(
            "duration_s = 20\nwarmup_s = 0\n[topology]\nchain = 3\njoining = \"static\"\n\
             [stack]\n{stack}\n[[flow]]\n{flow}\n"
        ));
        let on_air: u64 = run.nodes.iter().map(|node| node.counts.transmissions).sum();
        assert!(on_air > 50, "{stack} {flow}: {on_air} frames");
        for node in &run.nodes {
            let (frames, us) = (node.counts.control_frames, node.counts.control_us);
            // The border router advertises itself once, in two frames with the offer of compression.
            let most = if node.name == "0" {
                (2, 2 * 4_256)
            } else {
                (0, 0)
            };
            let case = format!("{stack} {flow}, node {}", node.name);
            assert!(
                frames <= most.0 && us <= most.1,
                "{case}: {frames} frames, {us} µs"
            );
        }
    }
}

#[test]
fn what_a_mote_sends_to_join_is_control() {
    let text = "duration_s = 20\nwarmup_s = 0\n[topology]\nchain = 3\n[[flow]]\n\
                [[fault]]\nkind = \"reboot\"\nnode = 2\nat_s = 5\n";
    let run = run(text);
    let control: Vec<u64> = run
        .nodes
        .iter()
        .map(|node| node.counts.control_frames)
        .collect();
    // A solicitation, the answer to it, and an ACK or more of that.
    assert!(control[1] > 0 && control[2] > 0, "{control:?}");
    assert!(control.iter().all(|frames| *frames < 40), "{control:?}");
    let us = run.nodes[2].counts.control_us;
    assert!(us > 500 * control[2] && us < 4_256 * control[2], "{us} µs");
    let moves: Vec<_> = run
        .moves
        .iter()
        .map(|step| (step.node, step.from, step.to))
        .collect();
    assert_eq!(moves, [(2, Some(1), None), (2, None, Some(1))]);
    assert!((run.moves[0].at_s - 5.0).abs() < 1e-6);
    assert!((6.0..9.0).contains(&run.moves[1].at_s), "{:?}", run.moves);
    // It has the parent that it had before.
    assert!(run.nodes.iter().all(|node| node.parent_changes == 0));
}

#[test]
fn a_generated_floor_is_switched_on_and_tells_its_tree() {
    let text = "duration_s = 20\n[topology]\nfloor = 30\nfloor_hops = 4\nswitch_on_s = 5\n\
                join_s = 0\n[path_loss]\nshadowing_db = 4\nnode_db = 1\n[[flow]]\n";
    let text = text.replace("join_s = 0\n", "");
    let plan = plan(&format!("join_s = 600\n{text}"));
    let results = runs(&plan);
    let run = &results[0];
    assert!(run.complete, "{:?}", run.trouble());
    assert_eq!(run.nodes.len(), 32);
    let last = run
        .nodes
        .iter()
        .filter_map(|node| node.joined_s)
        .fold(0.0, f64::max);
    assert!(
        (last - run.joined_s).abs() < 0.011,
        "{last} of {}",
        run.joined_s
    );
    for (number, node) in run.nodes[..31].iter().enumerate() {
        let above = node.parent.map(|parent| run.nodes[parent].hops);
        assert_eq!(
            above.map(|hops| hops + 1),
            (number > 0).then_some(node.hops),
            "{number}"
        );
        assert_eq!(node.joined_s.is_some(), number > 0, "{number}");
    }
    assert!(run.nodes[..31].iter().any(|node| node.hops >= 4));
    // Whoever sends knows how well its parent hears it.
    let etx = run.nodes[30].etx.expect("the last mote has sent data");
    assert!((1.0..8.0).contains(&etx), "{etx}");
    let lines = json_lines(&plan, &results);
    for key in [
        "parent",
        "rank",
        "hops",
        "etx",
        "joined_s",
        "parent_changes",
        "control_frames",
    ] {
        assert!(lines.contains(&format!("\"{key}\":")), "{key}");
    }
    let names: Vec<String> = plots(&plan, &results)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"topology.svg".to_owned()));
}

#[test]
fn impossible_floors_are_refused() {
    for (text, parts) in [
        (
            "floor = 3\nfloor_hops = 9",
            &["topology.floor is 3", "9 hops"][..],
        ),
        ("floor = 0", &["topology.floor is 0", "1 to 1000"]),
        (
            "chain = 2\nfloor = 5",
            &["several of chain, positions, floor"],
        ),
        (
            "chain = 2\nfloor_hops = 5",
            &["topology.floor_hops is 5", "without topology.floor"],
        ),
        (
            "chain = 2\nswitch_on_s = -1",
            &["topology.switch_on_s is -1"],
        ),
    ] {
        let text = format!("[topology]\n{text}\n[[flow]]\n");
        let error = Plan::parse(&text, Path::new("test.toml"), Overrides::default());
        let error = error.expect_err(&text).to_string();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}
