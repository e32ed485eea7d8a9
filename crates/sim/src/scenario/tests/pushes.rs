//! Flows of kind `push`.

use super::*;
use crate::scenario::FlowResult;

/// The motes of a push over a chain of two hops.
fn pushed(keys: &str, rest: &str) -> Vec<FlowResult> {
    let text = format!(
        "duration_s = 400\nwarmup_s = 0\n[topology]\nchain = 2\n[[flow]]\nkind = \"push\"\nbytes = \
         20_000\n{keys}\n{rest}"
    );
    let mut results = results(&plan(&text).unwrap());
    let result = results.pop().expect("a run");
    assert_eq!(result.failure, None, "{keys}");
    result.flows
}

fn is_done(flow: &FlowResult) -> bool {
    flow.outcome == Outcome::Complete && flow.intact && flow.bytes == 20_000
}

#[test]
fn every_schedule_and_transport_brings_the_image_to_all() {
    for keys in [
        "",
        "schedule = \"parallel\"",
        "schedule = \"tree\"",
        "transport = \"coap\"\nblock_bytes = 256",
        "transport = \"qblock\"\nschedule = \"parallel\"",
    ] {
        let flows = pushed(keys, "");
        assert_eq!(flows.len(), 2, "{keys}");
        for flow in &flows {
            assert!(is_done(flow), "{keys}: {flow:?}");
            // Six pages are erased, and 20,000 bytes sent over a hop.
            assert!(flow.finished_s.is_some_and(|s| s > 1.5), "{keys}");
            assert!(flow.resent_bytes.is_some(), "{keys}");
        }
        let to: Vec<FlowEnd> = flows.iter().map(|flow| flow.to).collect();
        assert_eq!(to, [FlowEnd::Node(1), FlowEnd::Node(2)]);
    }
    let one = pushed("motes = [2]", "");
    assert_eq!(one.len(), 1);
    assert!(is_done(&one[0]));
}

/// Answers that wait behind two uploads for seconds ask for blocks that have come meanwhile, and the
/// host sends these behind the image's end.
#[test]
fn an_image_stays_whatever_late_answers_ask_for() {
    let text = "duration_s = 60\nwarmup_s = 10\n[topology]\nchain = 3\njoining = \"static\"\n[[flow]]\n\
                kind = \"push\"\ntransport = \"qblock\"\nbytes = 10240\nmotes = [3]\nstart_s = 10\n\
                [[flow]]\nfrom = 3\n[[flow]]\nfrom = 2\n";
    let document = Document::parse(text, Path::new("test.toml")).unwrap();
    let overrides = Overrides {
        seed: Some(1),
        seeds: Some(8),
        ..Overrides::default()
    };
    for run in results(&Plan::new(document, overrides).unwrap()) {
        let flow = &run.flows[0];
        let is_whole = flow.outcome == Outcome::Complete && flow.intact;
        assert!(run.failure.is_none() && is_whole, "{}: {flow:?}", run.seed);
    }
}

#[test]
fn a_mote_whose_power_goes_gets_the_rest() {
    let fault = "[[fault]]\nkind = \"reboot\"\nnode = 2\nat_s = 6\n";
    for keys in [
        "motes = [2]",
        "schedule = \"tree\"",
        "motes = [2]\ntransport = \"coap\"",
    ] {
        let flows = pushed(keys, fault);
        assert!(flows.iter().all(is_done), "{keys}: {flows:?}");
    }
}

/// The router forgets all that it knows of connections; a parent is away for half a minute.
#[test]
fn a_router_that_restarts_and_a_parent_that_is_lost_end_no_push() {
    for fault in [
        "kind = \"reboot\"\nnode = 0\nat_s = 2",
        "kind = \"off\"\nnode = 1\nat_s = 3\nfor_s = 30",
    ] {
        for keys in [
            "",
            "schedule = \"tree\"",
            "schedule = \"parallel\"",
            "transport = \"coap\"\nblock_bytes = 256",
        ] {
            let flows = pushed(keys, &format!("[[fault]]\n{fault}\n"));
            assert!(flows.iter().all(is_done), "{keys}, {fault}: {flows:?}");
        }
    }
}

/// A mote that is off costs the others ten seconds, and is given up after two waits of its own.
#[test]
fn a_mote_that_is_off_comes_after_the_others() {
    let fault = "[[fault]]\nkind = \"off\"\nnode = 2\nat_s = 0.01\nfor_s = 399";
    let flows = pushed("motes = [2, 1]", &format!("{fault}\n"));
    assert_eq!(flows[0].outcome, Outcome::TimedOut, "{flows:?}");
    assert!(is_done(&flows[1]), "{flows:?}");
    assert!(flows[1].finished_s.is_some_and(|s| s < 20.0), "{flows:?}");
}

/// One that was off has its turn in the end.
#[test]
fn a_mote_that_comes_back_gets_the_image_after_the_others() {
    let fault = "[[fault]]\nkind = \"off\"\nnode = 2\nat_s = 0.01\nfor_s = 60";
    let flows = pushed("motes = [2, 1]", &format!("{fault}\n"));
    assert!(flows.iter().all(is_done), "{flows:?}");
    assert!(flows[1].finished_s < flows[0].finished_s, "{flows:?}");
}

/// A segment of a push fills twelve frames by default, and fewer by the flow's `mss_frames`.
#[test]
fn long_segments_bring_an_image_sooner() {
    let done_s = |keys: &str| {
        pushed(keys, "")
            .iter()
            .filter_map(|flow| flow.finished_s)
            .fold(0.0, f64::max)
    };
    let (long, short) = (done_s(""), done_s("mss_frames = 5"));
    assert!(long < 0.97 * short, "{long} {short}");
    let given = done_s("mss_frames = 12");
    assert!((given - long).abs() < 1e-9, "{given} {long}");
}

#[test]
fn pushes_that_cannot_be_are_refused() {
    let refusal = |flow: &str| {
        let text = format!("[topology]\nchain = 2\n{flow}");
        plan(&text).expect_err(flow).to_string()
    };
    for (keys, part) in [
        ("from = 1", "flow.from is 1"),
        ("motes = [3]", "flow.motes has 3"),
        ("motes = [1, 1]", "1 twice"),
        ("bytes = 100", "flow.bytes is 100"),
        ("bytes = 500_000", "flow.bytes is 500000"),
        (
            "schedule = \"tree\"\ntransport = \"coap\"",
            "flow.schedule is \"tree\"",
        ),
        ("transport = \"coap\"\nblock_bytes = 100", "power of two"),
        ("interval_s = 3", "flow.interval_s is 3"),
    ] {
        let error = refusal(&format!("[[flow]]\nkind = \"push\"\n{keys}\n"));
        assert!(error.contains(part), "{keys}: {error}");
    }
    let error = refusal("[[flow]]\nschedule = \"tree\"\n");
    assert!(error.contains("flow.schedule"), "{error}");
    let twice = "[[flow]]\nkind = \"push\"\n[[flow]]\nkind = \"push\"\nmotes = [2]\n";
    assert!(
        refusal(twice).contains("in two flows"),
        "{}",
        refusal(twice)
    );
    let mixed =
        "[[flow]]\nkind = \"push\"\ntransport = \"coap\"\n[[flow]]\nkind = \"udp\"\nfrom = 1\n";
    assert!(refusal(mixed).contains("\"udp\""), "{}", refusal(mixed));
}
