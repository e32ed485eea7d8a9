//! Rules of the diagnosis that the lab's captures cannot try: frames made by hand.

use super::made::{DATA_S, Made, TURNAROUND_S, mac, sentence};
use super::tally::STEPS;
use crate::model::{Layer, Value};

/// A segment's header: its sender's port, flags, the number and length of its data, and what it
/// acknowledges.
fn tcp(port: u64, flags: &[&str], (seq, len): (u64, u64), ack: Option<u64>) -> Layer {
    let flags = flags.iter().map(|flag| Value::from(*flag)).collect();
    Layer::new("tcp", "")
        .with("stream", 0_u64)
        .with("src_port", port)
        .with("dst_port", 3 - port)
        .with("flags", Value::List(flags))
        .with("seq_relative", seq)
        .with("len", len)
        .with("ack_relative", ack)
        .with("window", 4_000_u64)
}

/// One segment of the client, `a`, or of the server, `b`.
fn segment(
    made: &mut Made,
    at_s: f64,
    (port, mac_seq): (u64, u8),
    flags: &[&str],
    data: (u64, u64),
    ack: Option<u64>,
) {
    let ends = if port == 1 { ["a", "b"] } else { ["b", "a"] };
    let layers = vec![
        mac("data", ends, mac_seq, None),
        tcp(port, flags, data, ack),
    ];
    let of = made.frame(at_s, 100, layers);
    made.ack(at_s + 0.0036, of);
}

#[test]
fn a_slow_answer_is_said_for_two_syns_as_well() {
    for syns in [1, 2] {
        let mut made = Made::default();
        for again in 0..syns {
            let at_s = f64::from(again);
            segment(&mut made, at_s, (1, again), &["SYN"], (0, 0), None);
        }
        segment(&mut made, 3.5, (2, 1), &["SYN", "ACK"], (0, 0), Some(1));
        let found = made.findings();
        let text = sentence(&found, "handshake").unwrap_or_default();
        assert!(text.contains("took 3.5 s"), "{syns}: {found:#?}");
    }
}

/// A flow of segments each `rtt_s` from its ACK, with nothing for `pause_s` before the last ACK.
fn stalled(rtt_s: f64, pause_s: f64) -> bool {
    let mut made = Made::default();
    let mut at_s = 1.0;
    for number in 0..10 {
        let seq = 1 + 100 * number;
        segment(
            &mut made,
            at_s,
            (1, number as u8),
            &["ACK"],
            (seq, 100),
            Some(1),
        );
        at_s += if number == 9 { pause_s } else { rtt_s };
        segment(
            &mut made,
            at_s,
            (2, number as u8),
            &["ACK"],
            (1, 0),
            Some(seq + 100),
        );
        at_s += 0.01;
    }
    sentence(&made.findings(), "stall").is_some()
}

#[test]
fn a_stall_is_measured_by_the_flows_round_trip() {
    assert!(stalled(0.1, 9.0));
    assert!(!stalled(0.1, 7.0));
    assert!(!stalled(0.8, 9.0));
    assert!(stalled(0.8, 30.0));
}

#[test]
fn small_steps_back_are_excused_to_another_neighbour_alone() {
    for (to, is_said) in [("b", true), ("c", false)] {
        let mut made = Made::default();
        for number in 0..40_u8 {
            let at_s = f64::from(number) * 0.1;
            made.exchange(at_s, ["a", "b"], number + 10);
            if number % 4 == 3 {
                made.exchange(at_s + 0.05, ["a", to], number + 7);
            }
        }
        let found = made.findings();
        let said = sentence(&found, "impostor").is_some();
        assert_eq!(said, is_said, "{to}: {found:#?}");
    }
}

/// Whether numbers are said to go back of a node that sends a frame, this command `ahead` of it, and
/// the number `then` once more or first.
fn goes_back(command: &str, ahead: u8, then: u8) -> bool {
    let mut made = Made::default();
    for number in 0..40_u8 {
        let (at_s, seq) = (f64::from(number) * 0.1, 5 * number);
        made.exchange(at_s, ["a", "b"], seq);
        let command = Layer::new("command", command);
        let layers = vec![mac("command", ["a", "b"], seq + ahead, None), command];
        made.frame(at_s + 0.02, 30, layers);
        made.exchange(at_s + 0.04, ["a", "b"], seq + then);
    }
    sentence(&made.findings(), "impostor").is_some()
}

#[test]
fn a_poll_may_go_before_a_frame_that_waits() {
    assert!(!goes_back("data request", 1, 0), "tried again");
    assert!(!goes_back("data request", 2, 1), "overtaken");
    assert!(goes_back("data request", 4, 1), "of somebody else");
    assert!(goes_back("data request", 1, 1), "the same number twice");
    assert!(goes_back("beacon request", 1, 0), "no poll");
}

/// Whether numbers are said to go back of a leaf that polls each eight seconds and sends a reading
/// each 80 s, of which one comes again behind a poll: to this neighbour, so many readings later, so
/// many times.
fn replayed(dst: &str, later: usize, times: u8) -> bool {
    let (mut made, mut seq) = (Made::default(), 0_u8);
    let mut readings = Vec::new();
    for number in 0..10_usize {
        let at_s = number as f64 * 80.0;
        made.exchange(at_s, ["a", "b"], seq);
        readings.push(seq);
        for poll in 0..10_u8 {
            seq = seq.wrapping_add(1);
            let at_s = at_s + 0.5 + 8.0 * f64::from(poll);
            let command = Layer::new("command", "data request");
            made.frame(
                at_s,
                18,
                vec![mac("command", ["a", "b"], seq, None), command],
            );
            let old = number.checked_sub(later).filter(|_| poll == 0);
            for again in 0..old.map_or(0, |_| times) {
                let at_s = at_s + 0.02 + 0.1 * f64::from(again);
                let reading = readings[old.unwrap_or_default()];
                made.exchange(at_s, ["a", dst], reading);
                // Behind another poll.
                let command = Layer::new("command", "data request");
                let layers = vec![mac("command", ["a", "b"], seq, None), command];
                made.frame(at_s + 0.05, 18, layers);
            }
        }
        seq = seq.wrapping_add(1);
    }
    sentence(&made.findings(), "impostor").is_some()
}

#[test]
fn a_replay_behind_a_poll_is_named() {
    assert!(!replayed("b", 0, 1), "a reading that waited");
    assert!(replayed("b", 3, 1), "a reading of four minutes before");
    assert!(replayed("b", 0, 2), "twice");
}

/// A node that asks for a router behind pauses with numbers that do not follow, of whose frames
/// each `step`-th is heard.
fn asking(step: u8, pauses: u8) -> Vec<(String, String)> {
    let mut made = Made::default();
    let (mut at_s, mut seq) = (1.0, 0_u8);
    for _ in 0..=pauses {
        for _ in 0..20 {
            made.exchange(at_s, ["a", "b"], seq);
            at_s += 0.05;
            seq = seq.wrapping_add(step);
        }
        at_s += 2.0;
        seq = seq.wrapping_add(60);
        let asks = Layer::new("icmpv6", "router solicitation");
        made.frame(at_s, 60, vec![mac("data", ["a", "b"], seq, None), asks]);
        seq = seq.wrapping_add(step);
        at_s += 0.05;
    }
    made.findings()
}

#[test]
fn a_restart_is_said_of_a_node_that_is_well_heard() {
    let found = asking(1, 0);
    let text = sentence(&found, "reboot").unwrap_or_default();
    assert!(text.ends_with("it has probably restarted"), "{found:#?}");
    // A boot loop.
    let found = asking(1, 3);
    let text = sentence(&found, "reboot").unwrap_or_default();
    assert!(text.ends_with("restarted 4 times"), "{found:#?}");
    let found = asking(5, 3);
    assert_eq!(sentence(&found, "reboot"), None, "{found:#?}");
}

/// A child that polls each four seconds, up to `until_s`, and sends a segment behind each poll, again
/// 3 s later; the ACK comes behind the next poll.
fn sent_again_by_a_child(until_s: f64) -> Vec<(String, String)> {
    let mut made = Made::default();
    let poll = |made: &mut Made, at_s: f64| {
        let asks = Layer::new("command", "data request");
        let header = mac("command", ["a", "b"], (at_s * 2.0) as u8, None);
        made.frame(at_s, 20, vec![header, asks]);
    };
    for number in 0..9_u32 {
        let at_s = 2.0 + 4.0 * f64::from(number);
        if at_s <= until_s {
            poll(&mut made, at_s);
        }
        let (data, seq) = ((u64::from(number) * 100 + 1, 100), number as u8);
        segment(&mut made, at_s + 0.1, (1, 4 * seq), &["ACK"], data, Some(1));
        segment(
            &mut made,
            at_s + 3.1,
            (1, 4 * seq + 1),
            &["ACK"],
            data,
            Some(1),
        );
        if at_s + 4.0 <= until_s {
            poll(&mut made, at_s + 4.0);
        }
        let ack = Some(data.0 + 100);
        segment(&mut made, at_s + 4.05, (2, seq), &["ACK"], (1, 0), ack);
    }
    made.findings()
}

#[test]
fn an_ack_waits_for_a_child_as_long_as_the_child_polls() {
    let found = sent_again_by_a_child(60.0);
    let text = sentence(&found, "retransmissions").unwrap_or_default();
    let waits = "because the ACK waits at its parent until it polls";
    assert!(text.ends_with(waits), "{found:#?}");
    // It polled as it joined, and no more.
    let found = sent_again_by_a_child(11.0);
    let all = found.iter().filter(|(code, _)| code == "retransmissions");
    let all: Vec<&str> = all.map(|(_, text)| text.as_str()).collect();
    assert!(
        all.iter()
            .any(|text| text.contains("beyond") && !text.contains(waits)),
        "{found:#?}"
    );
}

/// The link a → b carries frames up to 10 s, and none from then on: each of four attempts overlaps a
/// frame of c → d, by times that are rounded to `rounded_s`. First `near` exchange frames.
fn broken_while(near: [&str; 2], channel: u64, rounded_s: f64) -> Vec<(String, String)> {
    let time = |at_s: f64| match rounded_s > 0.0 {
        true => (at_s / rounded_s).floor() * rounded_s,
        false => at_s,
    };
    let mut made = Made::default();
    made.channel = Some(11);
    for number in 0..18_u8 {
        let at_s = 1.0 + 0.5 * f64::from(number);
        for (ends, at_s) in [
            (["a", "b"], at_s),
            (near, at_s + 0.1),
            (["c", "d"], at_s + 0.2),
        ] {
            let of = made.data(time(at_s), ends, number, None);
            made.ack(time(at_s + DATA_S + TURNAROUND_S), of);
        }
    }
    for number in 18..58_u8 {
        let at_s = 1.0 + 0.5 * f64::from(number);
        let mut first = None;
        for attempt in 0..4_u8 {
            let at_s = at_s + f64::from(attempt) * 0.01;
            made.channel = Some(11);
            let of = made.data(time(at_s), ["a", "b"], number, first);
            first = first.or(Some(of));
            made.channel = Some(channel);
            let other = 4 * (number % 32) + attempt;
            let of = made.data(time(at_s + 0.001), ["c", "d"], other, None);
            made.ack(time(at_s + 0.001 + DATA_S + TURNAROUND_S), of);
        }
    }
    made.findings()
}

#[test]
fn a_link_is_acquitted_by_collisions_near_its_receiver_alone() {
    // c is heard by b.
    let found = broken_while(["c", "b"], 11, 0.0);
    let text = sentence(&found, "collisions").unwrap_or_default();
    assert!(
        text.ends_with("while others near b send at the same time"),
        "{found:#?}"
    );
    assert_eq!(sentence(&found, "broken-link"), None, "{found:#?}");
    // On another channel; in a branch far away; by times of 5 ms, which overlap at will.
    for (near, channel, rounded_s) in [
        (["c", "b"], 12, 0.0),
        (["c", "e"], 11, 0.0),
        (["c", "b"], 11, 0.005),
    ] {
        let found = broken_while(near, channel, rounded_s);
        let case = format!("{near:?} {channel} {rounded_s}: {found:#?}");
        let text = sentence(&found, "broken-link").unwrap_or_default();
        assert!(text.contains("a → b broke at"), "{case}");
        assert_eq!(sentence(&found, "collisions"), None, "{case}");
    }
}

#[test]
fn times_of_batches_hide_no_node_that_falls_silent() {
    let batched = |at_s: f64| (at_s / 0.005).floor() * 0.005;
    let mut made = Made::default();
    for number in 0..60_u8 {
        let at_s = 1.0 + 0.1 * f64::from(number);
        for (ends, at_s) in [(["a", "b"], at_s), (["b", "a"], at_s + 0.05)] {
            let of = made.data(batched(at_s), ends, number, None);
            made.ack(batched(at_s + DATA_S + TURNAROUND_S), of);
        }
    }
    // b is off; c talks to a meanwhile.
    for number in 60..160_u8 {
        let at_s = 1.0 + 0.1 * f64::from(number);
        let mut first = None;
        for attempt in 0..4 {
            let at_s = at_s + 0.005 * f64::from(attempt);
            let of = made.data(batched(at_s), ["a", "b"], number, first);
            first = first.or(Some(of));
            let of = made.data(
                batched(at_s),
                ["c", "a"],
                4 * (number % 32) + attempt as u8,
                None,
            );
            made.ack(batched(at_s + DATA_S + TURNAROUND_S), of);
        }
    }
    let found = made.findings();
    let text = sentence(&found, "silent").unwrap_or_default();
    assert!(text.starts_with("b fell silent at 7.0"), "{found:#?}");
}

/// Four frames each second from a to b, up to `to_s`, and one to all: at `weak` times heard 30 dB
/// more weakly; there each frame takes `attempts`.
fn moving(to_s: u16, weak: &[[u16; 2]], attempts: u8) -> Vec<(String, String)> {
    let mut made = Made::default();
    let mut seq = 0_u8;
    for second in 0..to_s {
        let is_weak = weak.iter().any(|[from, to]| (*from..*to).contains(&second));
        made.rssi_dbm = Some(if is_weak { -92.0 } else { -62.0 });
        for part in 0..4_u8 {
            let at_s = f64::from(second) + 0.2 * f64::from(part);
            let mut first = None;
            seq = seq.wrapping_add(1);
            for attempt in 1..if is_weak { attempts } else { 1 } {
                let of = made.data(at_s + 0.01 * f64::from(attempt), ["a", "b"], seq, first);
                first = first.or(Some(of));
            }
            let at_s = at_s + 0.1;
            let of = made.data(at_s, ["a", "b"], seq, first);
            made.ack(at_s + DATA_S + TURNAROUND_S, of);
        }
        seq = seq.wrapping_add(1);
        let all = Layer::new("mac", "data").with("type", "data");
        let all = all.with("src", "a").with("dst", "broadcast");
        made.frame(
            f64::from(second) + 0.9,
            60,
            vec![all.with("seq", u64::from(seq))],
        );
    }
    made.findings()
}

#[test]
fn a_weak_sender_is_named_once_and_only_where_its_frames_fail() {
    // The sniffer moved.
    let found = moving(100, &[[10, 40]], 1);
    assert_eq!(sentence(&found, "weak-link"), None, "{found:#?}");
    let found = moving(400, &[[10, 20], [300, 320]], 2);
    let all = found.iter().filter(|(code, _)| code == "weak-link");
    let all: Vec<&str> = all.map(|(_, text)| text.as_str()).collect();
    let text = "a was heard weakly here from 300 to 320 s, -92 dBm instead of -62 dBm, and 100 attempts for 100 \
                frames to b failed instead of 0";
    assert_eq!(all, [text], "{found:#?}");
    // What the retries show by themselves is said as well.
    assert!(sentence(&moving(100, &[[40, 60]], 2), "worse-link").is_some());
}

/// How many rows of tables the examiner looks at while `work` is done.
fn steps(work: impl FnOnce()) -> u64 {
    STEPS.set(0);
    work();
    STEPS.get()
}

#[test]
fn a_hostile_capture_costs_no_more_than_its_frames() {
    // Each frame invents a node and a link.
    let invented = |count: u32| {
        steps(|| {
            let mut made = Made::default();
            for number in 0..count {
                let ends = [format!("s{number}"), format!("d{number}")];
                let at_s = f64::from(number) * 0.01;
                let ends = [ends[0].as_str(), ends[1].as_str()];
                made.data(at_s, ends, number as u8, None);
            }
            made.findings();
        })
    };
    let (some, many) = (invented(500), invented(4_000));
    assert!(many <= 9 * some, "{some} {many}");
    // A node with thousands of links passes segments on, and each is sent again.
    let sent_again = |count: u32| {
        let mut made = Made::default();
        for number in 0..4_000 {
            let dst = format!("d{number}");
            made.data(f64::from(number) * 0.001, ["b", &dst], number as u8, None);
        }
        steps(|| {
            for number in 0..count {
                let (at_s, seq) = (5.0 + f64::from(number), number as u8);
                let data = (u64::from(number) * 100 + 1, 100);
                segment(&mut made, at_s, (1, seq), &["ACK"], data, Some(1));
                segment(&mut made, at_s + 0.5, (1, seq), &["ACK"], data, Some(1));
            }
        })
    };
    assert!(sent_again(100) <= 100 * 300, "{}", sent_again(100));
    // Links of others cost nothing.
    let mut made = Made::default();
    for number in 0..4_000 {
        let ends = [format!("s{number}"), "d".to_owned()];
        let ends = [ends[0].as_str(), ends[1].as_str()];
        made.data(f64::from(number) * 0.001, ends, number as u8, None);
    }
    let data = (1, 100);
    let cost = steps(|| {
        segment(&mut made, 5.0, (1, 1), &["ACK"], data, Some(1));
        segment(&mut made, 5.5, (1, 2), &["ACK"], data, Some(1));
    });
    assert!(cost < 20, "{cost}");
}
