use super::*;
use crate::air::medium::Fate;
use crate::scenario::{Direction, Outcome};
use crate::scenario::{FlowEnd, FlowKind};
use crate::scenario::{LinkResult, NodeResult};

fn flow(goodput_kbps: f64, finished_s: Option<f64>) -> FlowResult {
    FlowResult {
        flow: 0,
        from: FlowEnd::Node(1),
        to: FlowEnd::Host,
        likeness: Likeness {
            kind: FlowKind::Bulk,
            direction: Direction::Up,
            hops: 1,
            bytes: if finished_s.is_some() { 9 } else { 0 },
            message: [0; 3],
        },
        resent_bytes: None,
        connections_lost: Some(0),
        outcome: Outcome::Running,
        bytes: 1,
        counted_bytes: (goodput_kbps * 125.0) as u64,
        goodput_kbps,
        rtt_ms: None,
        cwnd_segments: None,
        finished_s,
        messages: None,
        ages: Default::default(),
        latency_ms: None,
        latency_p50_ms: None,
        latency_p95_ms: None,
        latency_max_ms: None,
        energy_mj: 2.0 * goodput_kbps,
        intact: true,
    }
}

fn run(flows: Vec<FlowResult>) -> RunResult {
    RunResult {
        point: 0,
        seed: 1,
        complete: true,
        failure: None,
        joined_s: 0.0,
        seconds: 1.0,
        bound_kbps: None,
        reachable_kbps: None,
        flows,
        nodes: vec![NodeResult::default(); 3],
        links: Vec::new(),
        packets_injected_lost: 0,
        acks_thinned: 0,
        samples: Vec::new(),
        moves: Vec::new(),
        hours: Vec::new(),
    }
}

#[test]
fn figures_of_a_run_follow_from_its_counts() {
    let mut run = run(vec![
        flow(30.0, None),
        flow(10.0, None),
        flow(5.0, Some(2.0)),
    ]);
    assert_eq!(run.goodput_kbps(), 45.0);
    assert_eq!(run.fairness(), Some(0.8));
    run.nodes[1].counts.segments = 50;
    run.nodes[1].counts.retransmissions[0] = 4;
    run.nodes[1].counts.retransmissions[3] = 1;
    // The host answers, and its SYN-ACKs and answers time out, too.
    run.nodes[2].counts.retransmissions[0] = 7;
    run.nodes[0].counts.retransmissions[0] = 100;
    assert_eq!((run.retransmitted(), run.timeouts()), (0.1, 11));
    let mut fates = [0; Fate::COUNT];
    fates[Fate::Received.index()] = 6;
    fates[Fate::Corrupted.index()] = 4;
    run.links.push(LinkResult {
        from: 1,
        to: 0,
        frames: 10,
        fates,
    });
    assert_eq!(run.frame_loss(), 0.4);
}

#[test]
fn means_are_over_flows_that_are_alike_and_have_a_value() {
    let with = |number, rtt_ms, outcome, hops| {
        let mut flow = flow(1.0, None);
        (flow.flow, flow.rtt_ms, flow.outcome) = (number, rtt_ms, outcome);
        flow.likeness.hops = hops;
        flow
    };
    let run = run(vec![
        with(0, Some(300.0), Outcome::Running, 1),
        with(1, None, Outcome::Running, 1),
        with(2, Some(9_000.0), Outcome::Running, 3),
        with(3, Some(500.0), Outcome::Running, 1),
        with(4, Some(7_000.0), Outcome::Reset, 1),
    ]);
    let groups = groups(&[&run]);
    let names: Vec<(&str, &[usize])> = groups
        .iter()
        .map(|group| (group.name.as_str(), group.flows.as_slice()))
        .collect();
    assert_eq!(
        names,
        [
            ("bulk up, 1 hop", &[0, 1, 3, 4][..]),
            ("bulk up, 3 hops", &[2])
        ]
    );
    let rtt = Metric::named("rtt").unwrap();
    let spread = rtt.spread(&groups[0], &[&run]).unwrap();
    assert_eq!((spread.flows, spread.mean.value), (2, 400.0));
    assert_eq!((spread.best, spread.worst), (300.0, 500.0));
    let latency = Metric::named("latency").unwrap();
    assert_eq!(latency.spread(&groups[0], &[&run]), None);
}

/// The mesh formed another tree with another seed: a flow counts to its like in each run.
#[test]
fn a_flow_is_alike_others_with_each_seed_anew() {
    let with = |number, rtt_ms, hops| {
        let mut flow = flow(1.0, None);
        (flow.flow, flow.rtt_ms, flow.likeness.hops) = (number, Some(rtt_ms), hops);
        flow
    };
    let first = run(vec![with(0, 100.0, 1), with(1, 200.0, 2)]);
    let second = run(vec![with(0, 300.0, 2), with(1, 400.0, 2)]);
    let runs = [&first, &second];
    let rtt = Metric::named("rtt").unwrap();
    let found: Vec<(usize, Vec<usize>, f64)> = groups(&runs)
        .into_iter()
        .map(|group| {
            let mean = rtt.spread(&group, &runs).unwrap().mean.value;
            (group.likeness.hops, group.flows, mean)
        })
        .collect();
    // Over flows, then over seeds: 200, and 300 and 400.
    assert_eq!(found, [(2, vec![0, 1], 275.0), (1, vec![0], 100.0)]);
}

#[test]
fn percentiles_go_from_the_best_flow_to_the_worst() {
    let flows = (1..=40).map(|number| {
        let mut flow = flow(f64::from(number), None);
        (flow.flow, flow.latency_ms) = (number as usize - 1, Some(f64::from(number)));
        flow
    });
    let run = run(flows.collect());
    let all = groups(&[&run]).remove(0);
    assert_eq!(all.flows.len(), 40);
    let of = |name: &str| {
        let spread = Metric::named(name).unwrap().spread(&all, &[&run]).unwrap();
        [spread.best, spread.p50, spread.p95, spread.worst]
    };
    assert_eq!(of("goodput"), [40.0, 21.0, 3.0, 1.0]);
    assert_eq!(of("latency"), [1.0, 20.0, 38.0, 40.0]);
    // Twice as many mJ as kb/s, and 125 bytes to the latter.
    assert_eq!(of("flow_energy_per_byte"), [16.0; 4]);
}

#[test]
fn a_failed_flow_fails_its_run_and_is_in_no_mean() {
    let mut refused = run(vec![flow(10.0, None), flow(0.0, None)]);
    (refused.flows[1].flow, refused.flows[1].outcome) = (1, Outcome::Refused);
    let trouble = refused.trouble().unwrap();
    assert_eq!(trouble, "[[flow]] 2 (1 → host) was refused a connection");
    let goodput = Metric::named("goodput").unwrap().summaries(&[&refused]);
    assert_eq!(goodput.len(), 1);
    refused.flows[0].outcome = Outcome::TimedOut;
    let trouble = refused.trouble().unwrap();
    assert!(
        trouble.starts_with("2 of 2 flows failed, the first: [[flow]] 1"),
        "{trouble}"
    );
}

#[test]
fn summaries_are_by_flow_and_leave_failed_runs_out() {
    let runs = [
        run(vec![flow(10.0, None), flow(1.0, None)]),
        run(vec![flow(14.0, None), flow(1.0, None)]),
        RunResult {
            failure: Some("no".into()),
            ..run(vec![flow(900.0, None)])
        },
    ];
    let runs: Vec<&RunResult> = runs.iter().collect();
    let goodput = Metric::named("goodput").unwrap().summaries(&runs);
    let values: Vec<_> = goodput
        .iter()
        .map(|(flow, summary)| (*flow, summary.value))
        .collect();
    assert_eq!(values, [(Some(0), 12.0), (Some(1), 1.0)]);
    assert_eq!(goodput[0].1.runs, 2);
    assert!(Metric::named("rtt").unwrap().summaries(&runs).is_empty());
}
