//! Each kind of flow: what arrives, what is answered, and what ends it.

use super::*;

#[test]
fn flows_of_known_length_end_the_run() {
    let text = "duration_s = 300\nwarmup_s = 0\n[topology]\nchain = 1\n\
        [[flow]]\nfrom = \"host\"\nto = 1\nbytes = 5000\nstart_s = 2\n\
        [[flow]]\nfrom = 1\nto = \"host\"\nbytes = 3000\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.seconds < 30.0, "{}", run.seconds);
    assert_eq!(
        run.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(),
        [5000, 3000]
    );
    assert!(
        run.flows
            .iter()
            .all(|flow| flow.finished_s.is_some_and(|s| s < 10.0))
    );
}

#[test]
fn datagrams_arrive_beside_tcp() {
    let text = "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 2\n\
        [[flow]]\nkind = \"udp\"\nfrom = 1\ninterval_s = 0.5\n\
        [[flow]]\nkind = \"udp\"\nfrom = 2\nmessage_bytes = 200\n\
        [[flow]]\nfrom = \"host\"\nto = 1\nbytes = 3000\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.nodes.len() == 4);
    for (flow, made) in [(0, 119..=120), (1, 59..=60)] {
        let flow = &run.flows[flow];
        let [sent, received] = flow.messages.unwrap();
        assert!(
            made.contains(&sent) && received + 2 >= sent,
            "{received} of {sent}"
        );
        assert!(
            flow.latency_ms
                .is_some_and(|ms| (20.0..500.0).contains(&ms))
        );
    }
    assert_eq!(run.flows[1].bytes, 200 * run.flows[1].messages.unwrap()[1]);
    assert!(run.flows[2].finished_s.is_some() && run.flows[2].messages.is_none());
}

#[test]
fn a_mote_receives_several_flows_of_datagrams() {
    let text = "duration_s = 20\nwarmup_s = 0\n[topology]\nchain = 2\n\
        [[flow]]\nkind = \"udp\"\nfrom = \"host\"\nto = 1\n\
        [[flow]]\nkind = \"udp\"\nfrom = 2\nto = 1\ninterval_s = 2\nmessage_bytes = 30\n";
    let run = &results(&plan(text).unwrap())[0];
    let messages: Vec<[u64; 2]> = run.flows.iter().filter_map(|flow| flow.messages).collect();
    assert_eq!(messages, [[20, 20], [10, 10]]);
    assert_eq!(run.flows[1].bytes, 300);
}

#[test]
fn messages_over_tcp_arrive_and_are_answered() {
    let text = "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 2\n\
        [[flow]]\nkind = \"periodic\"\nfrom = 1\ninterval_s = 2\nmessage_bytes = 700\n\
        [[flow]]\nkind = \"request\"\nfrom = \"host\"\nto = 2\nmessage_bytes = 40\nanswer_bytes = 900\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!(run.complete && run.failure.is_none(), "{:?}", run.failure);
    for (flow, due, bytes) in [(0, 29..=30, 700), (1, 59..=60, 940)] {
        let flow = &run.flows[flow];
        let [made, arrived] = flow.messages.unwrap();
        assert!(
            due.contains(&made) && arrived + 2 >= made,
            "{arrived} of {made}"
        );
        assert!(
            flow.bytes.abs_diff(bytes * arrived) < bytes,
            "{}",
            flow.bytes
        );
        let latency = flow.latency_ms.unwrap();
        assert!((50.0..900.0).contains(&latency), "{latency} ms");
        assert!(flow.rtt_ms.is_some() && flow.intact);
    }
}

/// The node's own timer ends these connections, with no frame, packet or deadline of the
/// application at that moment.
#[test]
fn a_flow_that_nobody_answers_times_out_and_fails_the_run() {
    for flow in [
        "from = 1\nto = \"host\"\nbytes = 1000",
        "from = \"host\"\nto = 1\nbytes = 1000",
        "from = 1\nto = \"host\"\nkind = \"periodic\"\ninterval_s = 5000",
    ] {
        let text = format!(
            "duration_s = 400\nwarmup_s = 0\n[topology]\nchain = 1\n\
             [wire]\nloss = 1\n[[flow]]\n{flow}\n"
        );
        let run = &results(&plan(&text).unwrap())[0];
        let outcome = run.flows[0].outcome;
        assert_eq!(outcome, Outcome::TimedOut, "{flow}");
        assert!(!run.complete, "{flow}: a failed flow fails its run");
    }
    // Seven SYNs sent again, the timeout doubling up to 60 s: 1 + 2 + … + 32 + 60 + 60.
    let text = "duration_s = 2000\nwarmup_s = 0\n[topology]\nchain = 1\n\
        [wire]\nloss = 1\n[[flow]]\nfrom = 1\nbytes = 1000\n";
    let run = &results(&plan(text).unwrap())[0];
    assert!((183.0..186.0).contains(&run.seconds), "{}", run.seconds);
}
