//! A run that is left and looked at gives what one gives that is not; an observer sees what was
//! counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use motet::time::{Duration, Instant};

use super::*;
use crate::air::gains::Gains;
use crate::air::log::{Happening, Seen, Sort};
use crate::air::radio::State;
use crate::capture::{Records, Tape};

fn watched<T>(act: impl FnOnce(&Watch<'_>) -> T) -> T {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    act(&Watch {
        stop: &stop,
        done_ms: &done_ms,
    })
}

fn open(plan: &Plan, captures: Captures) -> Session {
    let scenario = plan.points[0].scenario.clone();
    Session::open(scenario, plan.seeds[0], captures, || false).unwrap()
}

/// Captures of a run, and where their bytes go.
fn captures(plan: &Plan) -> (Captures, [Tape; 2]) {
    let streams = [Tape::default(), Tape::default()];
    let on_air = match plan.points[0].scenario.network.ble.is_some() {
        true => Records::Bluetooth,
        false => Records::TappedFrames,
    };
    let begin = |stream: &Tape, records| stream.capture(records).ok();
    let captures = Captures {
        air: begin(&streams[0], on_air),
        wire: begin(&streams[1], Records::Packets),
        failed: None,
    };
    (captures, streams)
}

/// What a run gives that is left every `step`, looked at and observed then; and what was seen.
fn stepped(plan: &Plan, step: Duration) -> (RunResult, [Vec<u8>; 2], Seen) {
    let (captures, streams) = captures(plan);
    let mut session = open(plan, captures);
    session.observe(usize::MAX);
    let mut seen = Seen::default();
    let mut samples = Vec::new();
    let mut to = Instant::ORIGIN;
    let is_over = |session: &mut Session, to| watched(|watch| session.advance(to, watch));
    while !is_over(&mut session, to) {
        to += step;
        assert!(session.view().now_s <= to.as_micros() as f64 / 1e6);
        seen.all.extend(session.take_seen().all);
        samples.extend(session.take_samples());
    }
    seen.all.extend(session.take_seen().all);
    samples.extend(session.take_samples());
    assert_eq!(session.take_seen(), Seen::default());
    let result = session.finish();
    assert_eq!(result.samples, samples);
    (result, streams.map(|stream| stream.bytes()), seen)
}

fn whole(plan: &Plan) -> (RunResult, [Vec<u8>; 2]) {
    let (captures, streams) = captures(plan);
    let results = watched(|watch| plan.run(watch, captures));
    let [result] = results.try_into().expect("one point, one seed");
    (result, streams.map(|stream| stream.bytes()))
}

const MESH: &str = "duration_s = 6\nwarmup_s = 1\n[topology]\nchain = 3\njoining = \"rpl\"\n\
                    switch_on_s = 4\n[radio]\nframe_loss = 0.05\n[[flow]]\n[[flow]]\nkind = \"udp\"\nfrom = 1\n\
                    [[fault]]\nkind = \"reboot\"\nnode = 2\nat_s = 2\nfor_s = 1\n";
const STAR: &str = "duration_s = 5\nwarmup_s = 1\n[radio]\nkind = \"ble\"\n[topology]\nperipherals = 2\n[[flow]]\n";
const ENDS: &str = "duration_s = 30\nwarmup_s = 0\n[topology]\nchain = 1\njoining = \"static\"\n[[flow]]\nbytes = 3000\n";

#[test]
fn a_run_gives_the_same_however_often_it_is_left() {
    for text in [MESH, STAR, ENDS] {
        let plan = plan(text).unwrap();
        let (result, captured) = whole(&plan);
        assert!(captured[0].len() > 1_000, "{text}");
        for step_us in [4_999, 700_001] {
            let (again, recaptured, _) = stepped(&plan, Duration::from_micros(step_us));
            assert!(again == result, "{text}: every {step_us} µs");
            assert!(recaptured == captured, "{text}: every {step_us} µs");
        }
    }
}

#[test]
fn an_observer_sees_the_frames_that_a_capture_has() {
    for text in [ENDS, MESH, STAR] {
        let plan = plan(text).unwrap();
        let (_, [air, _], seen) = stepped(&plan, Duration::from_millis(50));
        let mut records = BTreeMap::<(u64, Vec<u8>), i64>::new();
        let mut rest = &air[24..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (s, us, len) = (word(0), word(4), word(8) as usize);
            let record = &rest[16..16 + len];
            let tap = match plan.points[0].scenario.network.ble {
                None => usize::from(u16::from_le_bytes([record[2], record[3]])),
                Some(_) => 0,
            };
            let at = u64::from(s) * 1_000_000 + u64::from(us);
            *records.entry((at, record[tap..].to_vec())).or_default() += 1;
            rest = &rest[16 + len..];
        }
        let captured = records.len();
        for happening in &seen.all {
            if let Happening::Frame(frame) = happening {
                assert!(frame.end > frame.start && frame.to != Some(frame.from));
                let key = (frame.start.as_micros(), frame.bytes.to_vec());
                *records.entry(key).or_default() -= 1;
            }
        }
        // Those that are on the air at the end are captured and not seen.
        let last = seen.all.len();
        let left = records.values().filter(|count| **count != 0).count();
        assert!(
            captured > 50 && left <= 4,
            "{text}: {left} of {captured}, {last} seen"
        );
        assert!(records.values().all(|count| *count >= 0), "{text}");
    }
}

#[test]
fn what_an_observer_sees_is_what_is_counted() {
    let plan = plan(ENDS).unwrap();
    let (result, _, seen) = stepped(&plan, Duration::from_millis(50));
    let mut links = BTreeMap::<(usize, usize), [u64; 2]>::new();
    let mut states = [(State::Listen, Instant::ORIGIN); 2];
    let mut spans = [[0_u64; State::COUNT]; 2];
    let mut last = Instant::ORIGIN;
    for happening in &seen.all {
        let at = match happening {
            Happening::Frame(frame) => {
                if let (Sort::Data, Some(to)) = (frame.kind, frame.to) {
                    let counts = links.entry((frame.from, to)).or_default();
                    counts[0] += 1;
                    counts[1] += u64::from(frame.fate == crate::air::medium::Fate::Received);
                }
                frame.end
            }
            Happening::Radio(turn) => {
                let (state, since) = states[turn.node];
                spans[turn.node][state as usize] += turn.at.since(since).as_micros();
                states[turn.node] = (turn.state, turn.at);
                turn.at
            }
        };
        assert!(at >= last, "in the order of time");
        last = at;
    }
    for link in &result.links {
        let received = (link.delivered() * link.frames as f64).round() as u64;
        assert_eq!(links[&(link.from, link.to)], [link.frames, received]);
    }
    for (node, spans) in spans.iter().enumerate() {
        // What was measured begins with the run here, and ends behind the last change.
        let counted = result.nodes[node].counts.states_us;
        let (state, since) = states[node];
        for (at, (own, counted)) in spans.iter().zip(counted).enumerate() {
            let open = at == state as usize;
            assert!(
                own == &counted || (open && own < &counted),
                "{node}: {state:?} {since:?}"
            );
        }
    }
}

#[test]
fn an_observer_keeps_no_more_than_it_wants() {
    let plan = plan(ENDS).unwrap();
    let mut session = open(&plan, Captures::default());
    session.observe(7);
    let to = Instant::from_micros(2_000_000);
    watched(|watch| session.advance(to, watch));
    let seen = session.take_seen();
    assert_eq!(seen.all.len(), 7);
    assert!(seen.missed > 20, "{}", seen.missed);
    assert_eq!(session.take_seen().missed, 0);
}

#[test]
fn a_run_may_end_at_any_moment() {
    let plan = plan(MESH).unwrap();
    let session = open(&plan, Captures::default());
    let early = session.finish();
    assert!(!early.complete && early.failure.is_some());
    let mut session = open(&plan, Captures::default());
    let to = |s: f64| Instant::from_micros((s * 1e6) as u64);
    watched(|watch| {
        while session.view().joined_s.is_none() {
            let next = session.view().now_s + 1.0;
            assert!(!session.advance(to(next), watch));
        }
        let joined_s = session.view().joined_s.unwrap();
        assert!(!session.advance(to(joined_s + 3.5), watch));
    });
    let view = session.view();
    assert!(view.nodes.len() == 4 && view.nodes.iter().all(|node| node.is_on));
    assert!(view.nodes[1].parent == Some(0) && view.nodes[1].radio.is_some());
    assert!(view.flows[1].bytes > 0 && !session.is_over());
    let result = session.finish();
    assert!(!result.complete && result.failure.is_none());
    assert!((2.4..2.6).contains(&result.seconds), "{}", result.seconds);
}

#[test]
fn a_run_that_is_told_to_stop_is_over_within_a_second() {
    let plan = plan(CHAIN).unwrap();
    let mut session = open(&plan, Captures::default());
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let to = |s: u64| Instant::from_micros(s * 1_000_000);
    assert!(!session.advance(to(4), &watch));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(session.advance(to(100), &watch) && session.now() <= to(5));
    assert!(!session.finish().complete);
}

#[test]
fn named_files_may_be_bytes() {
    let text = "duration_s = 5\nwarmup_s = 1\n[topology]\nmatrix = \"links.txt\"\n[[flow]]\n\
                [interference]\ntrace = \"noise.txt\"\n";
    let (links, noise) = ("- -60 -\n-60 - -60\n- -60 -\n", "-50\n-98\n-98\n-98\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    std::fs::write(folder.path().join("links.txt"), links).unwrap();
    std::fs::write(folder.path().join("noise.txt"), noise).unwrap();
    let on_disk = Plan::parse(text, &file, Overrides::default()).unwrap();
    assert_eq!(on_disk.files.len(), 2);
    let given = Files::new()
        .with("links.txt", links.as_bytes())
        .with("noise.txt", noise.as_bytes());
    let elsewhere = Path::new("nowhere/s.toml");
    let plan = |given| Plan::parse_with(text, elsewhere, given, Overrides::default());
    let as_bytes = plan(given.clone()).unwrap();
    assert!(as_bytes.files.is_empty());
    assert!(results(&on_disk) == results(&as_bytes));
    let table: toml::Table = text.parse().unwrap();
    let of_table = Plan::of_table(table, elsewhere, given, Overrides::default()).unwrap();
    assert!(results(&of_table) == results(&on_disk));
    let refused = |given| plan(given).unwrap_err().to_string();
    assert_eq!(
        refused(Files::new().with("links.txt", links.as_bytes())),
        "nowhere/s.toml: interference.trace is \"noise.txt\", but there is no such file: nowhere/noise.txt"
    );
    assert_eq!(
        refused(Files::new().with("links.txt", &b"- \xff"[..])),
        "nowhere/links.txt: not text in UTF-8"
    );
    assert_eq!(
        refused(Files::new().with("links.txt", &b"1 2"[..])),
        "nowhere/links.txt: line 1 has 1, but must have a gain in dB from -1000 to 0, or -"
    );
}

/// A chain of three hops that is changed while it goes on.
const CHANGED: &str =
    "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 3\njoining = \"static\"\n[[flow]]\n";

fn changed() -> (RunResult, [View; 4]) {
    let plan = plan(CHANGED).unwrap();
    let mut session = open(&plan, Captures::default());
    let to = |session: &mut Session, s: u64| {
        watched(|watch| session.advance(Instant::from_micros(s * 1_000_000), watch));
        session.view()
    };
    to(&mut session, 5);
    session.change(&Change::Off(1)).unwrap();
    let off = to(&mut session, 8);
    let silent = to(&mut session, 10);
    session.change(&Change::On(1)).unwrap();
    let on = to(&mut session, 30);
    session.change(&Change::FrameLoss(1.0)).unwrap();
    to(&mut session, 31);
    let lost = to(&mut session, 40);
    (session.finish(), [off, silent, on, lost])
}

#[test]
fn what_a_caller_changes_changes_and_the_same_changes_give_the_same_run() {
    let (result, [off, silent, on, lost]) = changed();
    let bytes = |view: &View| view.flows[0].bytes;
    assert!(!off.nodes[1].is_on && on.nodes[1].is_on);
    assert_eq!(bytes(&off), bytes(&silent));
    assert!(bytes(&on) > bytes(&silent) + 10_000, "{on:?}");
    assert!(bytes(&lost) < bytes(&on) + 5_000, "{lost:?}");
    assert!(on.nodes[1].energy_mj > silent.nodes[1].energy_mj);
    let (again, views) = changed();
    assert!(again == result && views == [off, silent, on, lost]);
}

#[test]
fn a_change_of_what_is_not_there_is_refused_in_a_sentence() {
    let mut session = open(&plan(CHANGED).unwrap(), Captures::default());
    for change in [
        Change::Off(4),
        Change::On(9),
        Change::FrameLoss(1.5),
        Change::Gains(Gains::none(2)),
    ] {
        assert!(session.change(&change).is_err(), "{change:?}");
    }
}

/// Motes at these places, m.
fn placed(places: &[[i32; 2]], flows: &str, joining: &str) -> Plan {
    plan(&format!(
        "duration_s = 60\nwarmup_s = 0\n[topology]\npositions = {places:?}\njoining = \"{joining}\"\n\
         [path_loss]\nexponent = 3.5\n{flows}"
    ))
    .unwrap()
}

/// The views of a run without a mote more and with it before it is there, and 30 s after it is.
fn added(place: [i32; 2], joining: &str) -> [View; 3] {
    let row = [[0, 0], [35, 0], [70, 0]];
    // One that sends as much as TCP takes would leave a mote that it does not hear little time.
    let sends = "[[flow]]\nfrom = 2\nkind = \"periodic\"\ninterval_s = 1\nmessage_bytes = 200\n";
    let small = placed(&row, sends, joining);
    let more = [row[0], row[1], row[2], place];
    let large = placed(&more, "[[flow]]\nfrom = 3\n", joining);
    let large = &large.points[0].scenario;
    let at = Instant::from_micros(20_000_000);
    let mut alone = open(&small, Captures::default());
    watched(|watch| alone.advance(at, watch));
    let alone = alone.view();
    let joined_s = alone.joined_s.expect("joined within 20 s");
    let with = small.points[0].scenario.with_mote(large, 20.2 - joined_s);
    let scenario = Arc::new(with.unwrap());
    let opened = Session::open(scenario, small.seeds[0], Captures::default(), || false);
    let mut session = opened.unwrap();
    watched(|watch| session.advance(at, watch));
    let before = session.view();
    let gains = large.network.gains.clone();
    session.change(&Change::Gains(gains)).unwrap();
    session.change(&Change::On(3)).unwrap();
    watched(|watch| session.advance(at + Duration::from_secs(30), watch));
    [alone, before, session.view()]
}

#[test]
fn a_mote_that_is_added_joins_and_sends() {
    for joining in ["static", "advertised", "rpl"] {
        for place in [[35, 36], [105, 0]] {
            let [_, before, after] = added(place, joining);
            assert!(
                !before.nodes[3].is_on && before.flows[1].bytes == 0,
                "{joining}"
            );
            assert!(after.nodes[3].parent.is_some(), "{joining}: {after:?}");
            assert!(after.flows[1].bytes > 5_000, "{joining}: {after:?}");
            assert!(
                after.flows[0].bytes > before.flows[0].bytes,
                "{joining}: {after:?}"
            );
        }
    }
}

#[test]
fn a_mote_that_is_added_to_a_relay_has_changed_nothing_before() {
    for joining in ["static", "advertised"] {
        let [alone, before, _] = added([35, 36], joining);
        assert_eq!(before.nodes[..3], alone.nodes[..], "{joining}");
        assert_eq!(before.flows[..1], alone.flows[..], "{joining}");
    }
}

#[test]
fn only_one_mote_more_is_added() {
    let row = [[0, 0], [35, 0], [70, 0], [105, 0], [140, 0]];
    let of = |motes: usize| {
        let plan = placed(&row[..=motes], "[[flow]]\nfrom = 1\n", "static");
        plan.points[0].scenario.clone()
    };
    for motes in [1, 2, 4] {
        assert!(of(2).with_mote(&of(motes), 0.0).is_err(), "{motes}");
    }
}
