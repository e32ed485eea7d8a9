//! The pace that nodes find for themselves beside frames that follow each other as they can: what
//! it must not cost, wherever packets come from and wherever they go.

use super::*;

/// Runs of a scenario without a pace and with one, several seeds each.
fn both(text: &str) -> [Vec<RunResult>; 2] {
    ["off", "auto"].map(|pacing| {
        let text = format!("seeds = 3\n{text}[stack]\npacing = \"{pacing}\"\n");
        let runs = results(&plan(&text).unwrap_or_else(|why| panic!("{text}: {why}")));
        for run in &runs {
            assert!(run.complete, "{text}: {:?}", run.failure);
            let mut flows = run.flows.iter();
            assert!(flows.all(|flow| flow.intact), "{text}: seed {}", run.seed);
        }
        runs
    })
}

/// The mean of a figure over the runs.
fn mean(runs: &[RunResult], of: impl Fn(&RunResult) -> Option<f64>) -> f64 {
    let all: Vec<f64> = runs.iter().map(|run| of(run).unwrap()).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

fn latency(runs: &[RunResult], flow: usize) -> f64 {
    mean(runs, |run| run.flows[flow].latency_ms)
}

fn goodput(runs: &[RunResult], flow: usize) -> f64 {
    mean(runs, |run| Some(run.flows[flow].goodput_kbps))
}

/// A request finds no frame before it. One frame needs as many ms as its backoffs have drawn, two
/// in a hundred more or less; where there are several, they no longer meet.
#[test]
fn a_lone_request_is_no_slower_than_unpaced() {
    for (hops, answer, part) in [(1, 40, 1.02), (3, 40, 1.02), (3, 400, 1.0), (3, 900, 1.0)] {
        for ends in [
            format!("from = {hops}\nto = \"host\"\n"),
            format!("from = \"host\"\nto = {hops}\n"),
        ] {
            let [off, auto] = both(&format!(
                "duration_s = 120\nwarmup_s = 0\n[topology]\nchain = {hops}\n[[flow]]\n\
                 kind = \"request\"\ninterval_s = 3\nmessage_bytes = 40\nanswer_bytes = {answer}\n{ends}"
            ));
            let [off, auto] = [latency(&off, 0), latency(&auto, 0)];
            assert!(
                auto <= part * off,
                "{ends}{answer} bytes: {auto} ms, {off} without"
            );
        }
    }
}

/// The pace of each frame is its own: short datagrams go between the fragments of long packets.
#[test]
fn short_frames_between_long_ones_keep_their_pace() {
    let [off, auto] = both(
        "duration_s = 30\nwarmup_s = 5\n[topology]\nchain = 3\n[[flow]]\n\
         [[flow]]\nkind = \"udp\"\nfrom = 3\ninterval_s = 0.3\nmessage_bytes = 20\n\
         [[flow]]\nkind = \"udp\"\nfrom = 2\ninterval_s = 0.7\nmessage_bytes = 20\n",
    );
    assert!(goodput(&auto, 0) > 1.2 * goodput(&off, 0));
    for flow in [1, 2] {
        assert!(
            latency(&auto, flow) < latency(&off, flow),
            "flow {flow}: {} ms",
            latency(&auto, flow)
        );
    }
}

/// A neighbour that has gone is neither waited for nor asked without an end, and its pace is found
/// anew when it comes back.
#[test]
fn a_neighbour_that_goes_and_comes_back_costs_no_more_than_unpaced() {
    let [off, auto] = both(
        "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 4\n[[flow]]\nfrom = 4\nbytes = 40_000\n\
         [[fault]]\nkind = \"off\"\nnode = 2\nat_s = 5\nfor_s = 8\n",
    );
    let finished = |runs: &[RunResult]| mean(runs, |run| run.flows[0].finished_s);
    let [off, auto] = [finished(&off), finished(&auto)];
    assert!(auto < off, "{auto} s, {off} without");
}

/// Over another parent the path goes on at the pace of that link: each of two parents is away once.
#[test]
fn a_parent_that_changes_takes_the_pace_along() {
    let [off, auto] = both(
        "duration_s = 60\nwarmup_s = 0\n[topology]\njoining = \"rpl\"\nswitch_on_s = 1\n\
         positions = [[0, 0], [14, 8], [14, -8], [30, 8], [30, -8], [44, 0]]\n\
         [path_loss]\nexponent = 4.5\n[[flow]]\nfrom = 5\nbytes = 100_000\n\
         [[fault]]\nkind = \"off\"\nnode = 3\nat_s = 3\nfor_s = 6\n\
         [[fault]]\nkind = \"off\"\nnode = 4\nat_s = 12\n",
    );
    for run in &auto {
        let mut moves = run.moves.iter();
        assert!(moves.any(|change| change.node == 5), "seed {}", run.seed);
    }
    assert!(goodput(&auto, 0) > goodput(&off, 0));
}

/// A relay with three children, one that sends, one that receives and one that answers.
#[test]
fn several_children_share_a_relay() {
    let [off, auto] = both(
        "duration_s = 40\nwarmup_s = 5\n[topology]\nparents = [0, 1, 1, 1]\n\
         positions = [[0, 0], [14, 0], [28, 6], [28, -6], [28, 0]]\n[path_loss]\nexponent = 3.8\n\
         [[flow]]\nfrom = 2\n[[flow]]\nfrom = \"host\"\nto = 3\n\
         [[flow]]\nkind = \"request\"\nfrom = \"host\"\nto = 4\nmessage_bytes = 40\n",
    );
    let sum = |runs: &[RunResult]| (0..3).map(|flow| goodput(runs, flow)).sum::<f64>();
    assert!(sum(&auto) > sum(&off), "{} kb/s", sum(&auto));
    for flow in 0..2 {
        assert!(goodput(&auto, flow) > 0.2 * sum(&auto), "flow {flow}");
    }
}

/// Frames for a mote that sleeps go when it asks for them. What it sends itself it sends with its
/// radio off in between, and at rest that takes no longer.
#[test]
fn a_mote_that_sleeps_is_served_no_later() {
    let sleepy = |flow: &str| {
        both(&format!(
            "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 3\n[[flow]]\n{flow}\n\
             [[node]]\nid = 3\nsleep = \"hinted\"\n"
        ))
    };
    let [off, auto] = sleepy("from = \"host\"\nto = 3\nbytes = 20_000");
    assert!(goodput(&auto, 0) > goodput(&off, 0));
    let [off, auto] = sleepy("from = 3\nto = \"host\"\nkind = \"request\"\ninterval_s = 3");
    let [off, auto] = [latency(&off, 0), latency(&auto, 0)];
    assert!(auto <= 1.02 * off, "{auto} ms, {off} without");
}
