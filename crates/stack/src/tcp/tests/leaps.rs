//! Leaps of the clock: a node that was suspended, or whose clock was set. Nothing healthy ends
//! by them, and they cost no more than any other step.

use super::super::{Buffers, Config, Error, State};
use super::*;

const MINUTE: u64 = 60_000_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// Some end near where 31 or 32 bits of milliseconds, or of what deadlines count, begin again.
const LEAPS: [u64; 14] = [
    3 * MINUTE,
    60 * MINUTE,
    17 * 60 * MINUTE,
    19 * 60 * MINUTE,
    30 * 60 * MINUTE,
    2 * DAY,
    13 * DAY,
    25 * DAY,
    30 * DAY,
    45 * DAY,
    50 * DAY,
    365 * DAY,
    366 * DAY,
    57 * 365 * DAY,
];

/// Every limit of patience is on.
const STRICT: Config = Config {
    timestamps: true,
    sack: true,
    user_timeout_ms: 10_000,
    keepalive_idle_s: 600,
    keepalive_probes: 4,
    close_timeout_ms: 20_000,
    ack_delay_ms: 200,
    ack_every: 2,
    quick_acks: 0,
    ..PLAIN
};

/// [`STRICT`] without a user timeout.
const SLEEPY: Config = Config {
    user_timeout_ms: 0,
    ..STRICT
};

/// A connection in some state; what the state is after a leap; where the peer goes on.
type Case = (&'static str, fn(bool) -> Script, State, u32);

fn accepted(timestamps: bool) -> Script {
    let config = Config {
        timestamps,
        ..STRICT
    };
    let mut syn = say(SYN, 0, 0).mss(1000).sack_permitted();
    if timestamps {
        syn = syn.ts(1_000, 0);
    }
    Script::accepted_with(config, syn, 8000, 8000)
}

fn connecting(timestamps: bool) -> Script {
    let config = Config {
        timestamps,
        ..STRICT
    };
    let (mut s, syn) = Script::connecting(config);
    if let Some((ours, _)) = syn.header.options.timestamps {
        (s.our_ts, s.peer_ts) = (ours, Some(1_000));
    }
    s
}

fn in_flight(timestamps: bool) -> Script {
    let mut s = accepted(timestamps);
    s.send(700);
    s.expect(ACK, 1, 1, 700);
    s
}

fn closed_with_text(timestamps: bool) -> Script {
    let mut s = in_flight(timestamps);
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    while s.poll().is_some() {}
    s
}

fn cases() -> [Case; 12] {
    [
        ("SYN-SENT", connecting, State::SynSent, 0),
        (
            "SYN-RECEIVED",
            |timestamps| {
                let mut s = connecting(timestamps);
                s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
                s.sent();
                s
            },
            State::SynReceived,
            0,
        ),
        ("ESTABLISHED, idle", accepted, State::Established, 1),
        ("ESTABLISHED, text sent", in_flight, State::Established, 1),
        (
            "ESTABLISHED, window shut",
            |timestamps| {
                let mut s = accepted(timestamps);
                s.peer(say(ACK, 1, 1).win(0)).unwrap();
                s.send(700);
                s
            },
            State::Established,
            1,
        ),
        (
            "ESTABLISHED, an ACK delayed",
            |timestamps| {
                let mut s = accepted(timestamps);
                s.peer(say(ACK, 1, 1).data(b"text")).unwrap();
                s.silent();
                s
            },
            State::Established,
            5,
        ),
        (
            "FIN-WAIT-1",
            |timestamps| {
                let mut s = in_flight(timestamps);
                s.shutdown();
                s.sent();
                s
            },
            State::FinWait1,
            1,
        ),
        ("FIN-WAIT-1, closed", closed_with_text, State::FinWait1, 1),
        (
            "FIN-WAIT-2",
            |timestamps| {
                let mut s = accepted(timestamps);
                s.shutdown();
                s.sent();
                s.peer(say(ACK, 1, 2)).unwrap();
                s
            },
            State::FinWait2,
            1,
        ),
        (
            "CLOSE-WAIT",
            |timestamps| {
                let mut s = in_flight(timestamps);
                s.peer(say(FIN | ACK, 1, 1)).unwrap();
                s.sent();
                s
            },
            State::CloseWait,
            2,
        ),
        (
            "CLOSING",
            |timestamps| {
                let mut s = closed_with_text(timestamps);
                s.peer(say(FIN | ACK, 1, 1)).unwrap();
                s.sent();
                s
            },
            State::Closing,
            2,
        ),
        (
            "LAST-ACK",
            |timestamps| {
                let mut s = in_flight(timestamps);
                s.peer(say(FIN | ACK, 1, 1)).unwrap();
                s.shutdown();
                while s.poll().is_some() {}
                s
            },
            State::LastAck,
            2,
        ),
    ]
}

/// Whatever is sent after the leap is no reset, and lies in no peer's past; the node sleeps.
fn check_rest(s: &mut Script, name: &str) {
    let before = s.our_ts;
    for _ in 0..10 {
        let Some(seg) = s.poll() else {
            let next = s.tcp.next_deadline();
            assert!(next.is_none_or(|at| at > s.now()), "{name}: wakes at once");
            return;
        };
        assert!(!seg.header.flags.contains(RST), "{name}: reset");
        if let Some((value, _)) = seg.header.options.timestamps {
            let ahead = value.wrapping_sub(before) as i32;
            assert!(ahead >= 0, "{name}: TSval went back by {ahead}");
        }
    }
    panic!("{name}: does not rest");
}

#[test]
fn a_leap_ends_no_healthy_connection() {
    for timestamps in [false, true] {
        for (name, prepare, state, seq) in cases() {
            for leap in LEAPS {
                for times in 1..=2 {
                    let name = std::format!("{name}, {timestamps}, {times} leaps of {leap} us");
                    let mut s = prepare(timestamps);
                    for _ in 0..times {
                        s.now_us += leap;
                        check_rest(&mut s, &name);
                        assert_eq!(s.state(), state, "{name}");
                    }
                    goes_on(&mut s, state, seq, &name);
                }
            }
        }
    }
}

/// The peer, for whom hardly any time has passed, answers.
fn goes_on(s: &mut Script, state: State, seq: u32, name: &str) {
    if let Some(stamp) = &mut s.peer_ts {
        *stamp += 500;
    }
    let sent = s.connection().snd_nxt.get().wrapping_sub(s.iss);
    match state {
        State::SynSent => s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap(),
        State::SynReceived => s.peer(say(ACK, 1, 1)).unwrap(),
        _ => s.peer(say(ACK, seq, sent)).unwrap(),
    }
    check_rest(s, name);
    if s.state() == State::Established {
        let seq = seq.max(1);
        s.peer(say(ACK, seq, sent).data(b"on")).unwrap();
        assert!(s.recv().ends_with(b"on"), "{name}");
    }
    assert_eq!(s.connection().error(), None, "{name}");
}

/// What waits for time alone is over after a leap: without a reset.
#[test]
fn a_leap_ends_what_only_waits() {
    let fin_wait_2 = |s: &mut Script| {
        let (handle, now) = (s.handle(), s.now());
        s.tcp.close(handle, now);
        s.sent();
        s.peer(say(ACK, 1, 2)).unwrap();
        assert_eq!(s.state(), State::FinWait2);
    };
    let time_wait = |s: &mut Script| {
        s.shutdown();
        s.sent();
        s.peer(say(FIN | ACK, 1, 2)).unwrap();
        s.sent();
        assert_eq!(s.state(), State::TimeWait);
    };
    let ways: [&dyn Fn(&mut Script); 2] = [&fin_wait_2, &time_wait];
    for leap in LEAPS {
        for way in ways {
            let mut s = accepted(true);
            way(&mut s);
            s.now_us += leap;
            s.silent();
            assert_eq!((s.state(), s.tcp.next_deadline()), (State::Closed, None));
        }
    }
}

/// A handshake goes on where it was, half a second later: the SYN-ACK is sent again in its time,
/// the application has its time to accept.
#[test]
fn a_leap_ends_no_handshake() {
    for leap in LEAPS {
        let mut s = Script::half_open(PLAIN, say(SYN, 0, 0).mss(1000));
        s.now_us += 400_000;
        s.silent();
        s.now_us += leap;
        s.silent();
        let (again, waited) = s.wait_for_segment();
        assert_eq!(
            (again.header.flags, waited),
            (SYN | ACK, 600 - 512),
            "{leap}"
        );
        s.peer(say(ACK, 1, 1)).unwrap();
        s.now_us += leap;
        s.silent();
        assert!(s.tcp.can_accept(s.listener.unwrap()), "{leap}");
        s.wait_ms(29_999 - 512);
        assert!(s.tcp.can_accept(s.listener.unwrap()), "{leap}");
        s.wait_ms(2);
        s.silent();
        assert!(!s.tcp.can_accept(s.listener.unwrap()), "{leap}");
    }
}

/// The limits still hold where time passes step by step, and after a leap.
#[test]
fn patience_ends_behind_a_leap() {
    for leap in LEAPS {
        let mut s = in_flight(true);
        s.now_us += leap;
        let start = s.now_us;
        while s.state() != State::Closed {
            while s.poll().is_some() {}
            if let Some(at) = s.tcp.next_deadline() {
                s.now_us = at.as_micros();
            }
        }
        assert_eq!(s.connection().error(), Some(Error::UserTimeout));
        let took = (s.now_us - start) / 1000;
        // A leap counts for a sixteenth.
        assert!((9_275..=9_376).contains(&took), "{leap}: {took} ms");
    }
}

/// A driver that calls far more rarely than it is asked to, so that each step of its clock is a
/// leap, keeps no connection for ever that makes no progress: not even where the peer answers
/// each probe of its shut window.
#[test]
fn patience_ends_for_a_driver_that_always_sleeps_long() {
    for limit in [Error::UserTimeout, Error::TimedOut] {
        for leap in LEAPS {
            let mut s = accepted(true);
            if limit == Error::TimedOut {
                let (handle, now) = (s.handle(), s.now());
                s.tcp.set_config(handle, leak(SLEEPY), now);
            }
            s.peer(say(ACK, 1, 1).win(0)).unwrap();
            s.send(700);
            if limit == Error::TimedOut {
                let (handle, now) = (s.handle(), s.now());
                s.tcp.close(handle, now);
            }
            let mut calls = 0;
            while s.state() != State::Closed {
                calls += 1;
                assert!(calls <= 20, "{limit:?}, {leap}: for ever");
                s.now_us += leap;
                while s.poll().is_some() {}
                if let Some(stamp) = &mut s.peer_ts {
                    *stamp += 500;
                }
                let _over = s.peer(say(ACK, 1, 1).win(0));
            }
            assert_eq!(s.connection().error(), Some(limit), "{leap}");
            assert!(calls >= 10, "{limit:?}, {leap}: {calls} calls");
        }
    }
}

/// Nor any handshake: its SYN-ACK is sent as often as the settings say, and the application has
/// some of its calls to accept.
#[test]
fn handshakes_end_for_a_driver_that_always_sleeps_long() {
    for (is_done, calls_least) in [(false, 200), (true, 50)] {
        let mut s = Script::half_open(PLAIN, say(SYN, 0, 0).mss(1000));
        if is_done {
            s.peer(say(ACK, 1, 1)).unwrap();
        }
        let mut calls = 0;
        while s.tcp.next_deadline().is_some() {
            calls += 1;
            assert!(calls <= 600, "{is_done}: for ever");
            s.now_us += 3 * MINUTE;
            while s.poll().is_some() {}
        }
        assert!(calls >= calls_least, "{is_done}: {calls} calls");
    }
}

/// From a driver whose clock counts from 1970, or has run for an age: once 418,000 rounds, and
/// for the longest 4 billion.
#[test]
fn the_longest_leap_is_bounded_work() {
    let mut s = accepted(true);
    for us in [57 * 365 * DAY, 1 << 63, u64::MAX - 1_000_000] {
        s.now_us = us;
        check_rest(&mut s, "far");
        assert_eq!(s.state(), State::Established);
        assert_eq!(s.tcp.now_ms, (us / 1000) as u32);
    }
    let mut tcp = engine(1, 1, 1);
    let none = Buffers::new(&mut [], &mut []);
    let now = Instant::from_micros(u64::MAX);
    tcp.connect(US, (PEER, 1), none, leak(PLAIN), Offer::UNBOUNDED, now)
        .unwrap();
}
