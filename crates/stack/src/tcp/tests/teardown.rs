//! Closing: both ways, at once, half, by reset; TIME-WAIT and its reuse.

use super::super::{Config, Error, RecvError, SendError, State};
use super::*;

#[test]
fn active_close() {
    let mut s = Script::accepted(PLAIN);
    s.shutdown();
    assert_eq!(s.state(), State::FinWait1);
    s.expect(FIN | ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(s.state(), State::FinWait2);
    s.peer(say(ACK, 1, 2).data(b"still talking")).unwrap();
    assert_eq!(s.recv(), b"still talking");
    s.expect(ACK, 2, 14, 0);
    s.peer(say(FIN | ACK, 14, 2)).unwrap();
    s.expect(ACK, 2, 15, 0);
    assert_eq!(s.state(), State::TimeWait);
    s.wait_ms(59_999);
    assert_eq!(s.state(), State::TimeWait);
    s.wait_ms(1);
    s.silent();
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.connection().error(), None);
}

#[test]
fn passive_close() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(FIN | ACK, 1, 1).data(b"bye")).unwrap();
    assert_eq!(s.state(), State::CloseWait);
    s.expect(ACK, 1, 5, 0);
    assert!(s.connection().peer_closed());
    assert_eq!(s.recv(), b"bye");
    let handle = s.handle();
    assert_eq!(s.tcp.recv(handle, &mut [0]), Err(RecvError::Finished));
    s.send(4);
    s.expect(ACK, 1, 5, 4);
    s.peer(say(ACK, 5, 5)).unwrap();
    s.shutdown();
    assert_eq!(s.state(), State::LastAck);
    s.expect(FIN | ACK, 5, 5, 0);
    s.peer(say(ACK, 5, 6)).unwrap();
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.connection().error(), None);
    assert!(s.tcp.remove(handle).is_some());
}

#[test]
fn simultaneous_close() {
    let mut s = Script::accepted(PLAIN);
    s.shutdown();
    s.expect(FIN | ACK, 1, 1, 0);
    s.peer(say(FIN | ACK, 1, 1)).unwrap();
    assert_eq!(s.state(), State::Closing);
    s.expect(ACK, 2, 2, 0);
    s.peer(say(ACK, 2, 2)).unwrap();
    assert_eq!(s.state(), State::TimeWait);
}

#[test]
fn fin_and_its_ack_in_one() {
    let mut s = Script::accepted(PLAIN);
    s.shutdown();
    s.expect(FIN | ACK, 1, 1, 0);
    s.peer(say(FIN | ACK, 1, 2)).unwrap();
    assert_eq!(s.state(), State::TimeWait);
    s.expect(ACK, 2, 2, 0);
}

#[test]
fn the_fin_follows_the_data_and_rides_on_the_last() {
    let mut s = Script::accepted(PLAIN);
    s.send(2500);
    s.shutdown();
    s.expect(ACK, 1, 1, 1000);
    s.expect(ACK, 1001, 1, 1000);
    s.expect(FIN | ACK, 2001, 1, 500);
    let now = s.now();
    let handle = s.handle();
    assert_eq!(s.tcp.send(handle, b"late", now), Err(SendError::Closing));
    s.peer(say(ACK, 1, 2502)).unwrap();
    assert_eq!(s.state(), State::FinWait2);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut s = Script::accepted(PLAIN);
    s.shutdown();
    s.expect(FIN | ACK, 1, 1, 0);
    let (seg, _) = s.wait_for_segment();
    assert_eq!(seg.header.flags, FIN | ACK);
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(s.state(), State::FinWait2);
    s.wait_ms(100_000);
    assert_eq!(
        s.state(),
        State::FinWait2,
        "a half-closed connection may last"
    );
}

#[test]
fn a_fin_out_of_order_waits_for_the_data() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(FIN | ACK, 4, 1).data(b"def")).unwrap();
    assert_eq!(s.state(), State::Established);
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(b"abc")).unwrap();
    assert_eq!(s.state(), State::CloseWait);
    s.expect(ACK, 1, 8, 0);
    assert_eq!(s.recv(), b"abcdef");
}

#[test]
fn data_behind_a_fin_are_not_taken() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(FIN | ACK, 4, 1).data(b"def")).unwrap();
    s.peer(say(ACK, 7, 1).data(b"ghi")).unwrap();
    s.peer(say(ACK, 1, 1).data(b"abcdefghi")).unwrap();
    assert_eq!(s.recv(), b"abcdef");
    assert_eq!(s.state(), State::CloseWait);
}

#[test]
fn a_fin_into_a_shut_window_is_taken() {
    let syn = say(SYN, 0, 0).mss(1000);
    let config = Config {
        accept_window: 8,
        ..PLAIN
    };
    let mut s = Script::accepted_with(config, syn, 100, 8);
    let window = s.connection().recv.capacity();
    s.peer(say(ACK, 1, 1).data(&pattern(0, usize::from(window))))
        .unwrap();
    s.expect(ACK, 1, 1 + u32::from(window), 0);
    s.peer(say(FIN | ACK, 1 + u32::from(window), 1)).unwrap();
    assert_eq!(s.state(), State::CloseWait);
}

#[test]
fn reset_rules_of_rfc_5961() {
    let mut s = Script::accepted(PLAIN);
    assert_eq!(s.peer(say(RST, 2, 0)), Err(SegmentDrop::InexactReset));
    s.expect(ACK, 1, 1, 0);
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.peer(say(RST, 9001, 0)), Err(SegmentDrop::OutsideWindow));
    s.silent();
    assert_eq!(s.peer(say(RST, 1, 0)), Err(SegmentDrop::ConnectionReset));
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.connection().error(), Some(Error::Reset));
    let (handle, now) = (s.handle(), s.now());
    assert_eq!(
        s.tcp.recv(handle, &mut [0]),
        Err(RecvError::Failed(Error::Reset))
    );
    assert_eq!(
        s.tcp.send(handle, b"x", now),
        Err(SendError::Failed(Error::Reset))
    );
    s.silent();
}

#[test]
fn what_arrived_before_a_reset_can_be_read() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(b"last words")).unwrap();
    let _ = s.peer(say(RST, 11, 0));
    assert_eq!(s.recv(), b"last words");
}

#[test]
fn a_reset_in_each_state() {
    let fin_wait_1 = |s: &mut Script| {
        s.shutdown();
        s.expect(FIN | ACK, 1, 1, 0);
    };
    type Case = (&'static str, fn(&mut Script), u32, Option<Error>);
    let cases: [Case; 4] = [
        ("FIN-WAIT-1", fin_wait_1, 1, Some(Error::Reset)),
        (
            "FIN-WAIT-2",
            |s| {
                s.shutdown();
                s.sent();
                s.peer(say(ACK, 1, 2)).unwrap();
            },
            1,
            Some(Error::Reset),
        ),
        (
            "CLOSE-WAIT",
            |s| {
                s.peer(say(FIN | ACK, 1, 1)).unwrap();
                s.sent();
            },
            2,
            Some(Error::Reset),
        ),
        (
            "LAST-ACK",
            |s| {
                s.peer(say(FIN | ACK, 1, 1)).unwrap();
                s.shutdown();
                s.sent();
            },
            2,
            None,
        ),
    ];
    for (name, prepare, seq, error) in cases {
        let mut s = Script::accepted(PLAIN);
        prepare(&mut s);
        assert_eq!(
            s.peer(say(RST, seq, 0)),
            Err(SegmentDrop::ConnectionReset),
            "{name}"
        );
        assert_eq!(
            (s.state(), s.connection().error()),
            (State::Closed, error),
            "{name}"
        );
    }
}

#[test]
fn abort_sends_a_reset() {
    let mut s = Script::accepted(PLAIN);
    s.send(3000);
    s.expect(ACK, 1, 1, 1000);
    let handle = s.handle();
    s.tcp.abort(handle);
    assert_eq!(s.connection().error(), Some(Error::Aborted));
    s.expect(RST | ACK, 1001, 1, 0);
    s.silent();
    assert_eq!(s.tcp.next_deadline(), None);
    let (mut s, _) = Script::connecting(PLAIN);
    let handle = s.handle();
    s.tcp.abort(handle);
    s.silent();
}

#[test]
fn close_with_unread_data_resets() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(b"unread")).unwrap();
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    s.expect(RST | ACK, 1, 7, 0);
}

#[test]
fn data_after_close_reset() {
    let mut s = Script::accepted(PLAIN);
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    s.expect(FIN | ACK, 1, 1, 0);
    assert_eq!(
        s.peer(say(ACK, 1, 2).data(b"more")),
        Err(SegmentDrop::DataAfterClose)
    );
    assert_eq!(s.connection().error(), Some(Error::Aborted));
    assert!(s.sent().header.flags.contains(RST));
}

#[test]
fn close_bounds_fin_wait_2() {
    let mut s = Script::accepted(PLAIN);
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    s.expect(FIN | ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(s.state(), State::FinWait2);
    s.wait_ms(u64::from(PLAIN.fin_wait_2_ms) + 1);
    s.silent();
    assert_eq!(s.state(), State::Closed);
}

/// A peer that answers every probe and never opens its window.
fn answers_probes(s: &mut Script, seq: u32, until: State) -> u64 {
    let start = s.now_us;
    for _ in 0..1_000 {
        while let Some(seg) = s.poll() {
            if !seg.payload.is_empty() {
                s.peer(say(ACK, seq, 1).win(0)).unwrap();
            }
        }
        if s.state() == until {
            return (s.now_us - start) / 1_000;
        }
        let at = s.tcp.next_deadline().expect("a deadline").as_micros();
        s.now_us = s.now_us.max(at);
    }
    panic!("it lasts for ever, in {:?}", s.state());
}

/// RFC 9293 §3.8.6.1 keeps a connection that is used, and whose window is shut, for ever; one
/// that nobody uses any more once stayed in FIN-WAIT-1 for thirty days and on.
#[test]
fn a_closed_connection_facing_a_shut_window_ends() {
    let close = |s: &mut Script| {
        let (handle, now) = (s.handle(), s.now());
        s.tcp.close(handle, now);
    };
    type Case = (
        &'static str,
        fn(&mut Script, &dyn Fn(&mut Script)),
        u32,
        State,
    );
    let cases: [Case; 4] = [
        ("FIN-WAIT-1", |s, close| close(s), 1, State::FinWait1),
        (
            "LAST-ACK",
            |s, _| {
                s.peer(say(FIN | ACK, 1, 1).win(0)).unwrap();
                s.shutdown();
            },
            2,
            State::LastAck,
        ),
        (
            "CLOSING",
            |s, _| {
                s.shutdown();
                s.peer(say(FIN | ACK, 1, 1).win(0)).unwrap();
            },
            2,
            State::Closing,
        ),
        (
            "close again and again",
            |s, close| (0..100).for_each(|_| close(s)),
            1,
            State::FinWait1,
        ),
    ];
    for (name, end, seq, state) in cases {
        let mut s = Script::accepted(PLAIN);
        s.peer(say(ACK, 1, 1).win(0)).unwrap();
        s.send(5000);
        // It was shut for a while before: that does not count.
        for _ in 0..20 {
            let (_, _) = s.wait_for_segment();
            s.peer(say(ACK, 1, 1).win(0)).unwrap();
        }
        end(&mut s, &close);
        assert_eq!(s.state(), state, "{name}");
        let ms = answers_probes(&mut s, seq, State::Closed);
        assert_eq!(
            ms / 1000,
            u64::from(PLAIN.close_timeout_ms) / 1000,
            "{name}"
        );
        assert_eq!(s.connection().error(), Some(Error::TimedOut), "{name}");
    }
}

#[test]
fn a_closed_connection_lasts_while_the_peer_takes_bytes() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).win(0)).unwrap();
    s.send(100);
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    for taken in 1..=100 {
        // A byte, every four minutes.
        let until = s.now_us + 240_000_000;
        while s.now_us < until {
            let (seg, _) = s.wait_for_segment();
            assert!(!seg.header.flags.contains(RST));
            s.peer(say(ACK, 1, taken).win(0)).unwrap();
        }
        s.peer(say(ACK, 1, 1 + taken).win(0)).unwrap();
    }
    assert_eq!(s.state(), State::FinWait1);
    s.peer(say(ACK, 1, 101)).unwrap();
    s.expect(FIN | ACK, 101, 1, 0);
}

/// Half-closed, an application may still read, and end it when it likes (MUST-37).
#[test]
fn a_half_closed_connection_facing_a_shut_window_lasts() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).win(0)).unwrap();
    s.send(100);
    s.shutdown();
    for _ in 0..500 {
        s.wait_for_segment();
        s.peer(say(ACK, 1, 1).win(0)).unwrap();
    }
    assert_eq!(s.state(), State::FinWait1);
}

#[test]
fn close_before_the_handshake() {
    let (mut s, _) = Script::connecting(PLAIN);
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    assert_eq!(s.state(), State::Closed);
    s.silent();
    assert!(s.tcp.remove(handle).is_some());
    // A half-close waits for it.
    let (mut s, _) = Script::connecting(PLAIN);
    s.send(5);
    s.shutdown();
    s.peer(say(SYN | ACK, 0, 1)).unwrap();
    s.expect(FIN | ACK, 1, 1, 5);
    assert_eq!(s.state(), State::FinWait1);
}

fn time_wait(config: Config, syn: Say) -> Script {
    let mut s = Script::accepted_with(config, syn, 8000, 8000);
    s.shutdown();
    s.sent();
    s.peer(say(FIN | ACK, 1, 2)).unwrap();
    s.sent();
    assert_eq!(s.state(), State::TimeWait);
    s
}

#[test]
fn a_fin_repeated_in_time_wait_is_acknowledged_and_restarts_it() {
    let mut s = time_wait(PLAIN, say(SYN, 0, 0));
    s.wait_ms(50_000);
    let _ = s.peer(say(FIN | ACK, 1, 2));
    s.expect(ACK, 2, 2, 0);
    s.wait_ms(59_999);
    assert_eq!(s.state(), State::TimeWait);
    s.wait_ms(1);
    s.silent();
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn time_wait_gives_way_to_a_later_syn() {
    for (name, seq, reused) in [
        ("later", 500, true),
        ("earlier", 0, false),
        ("far back", (1 << 31) + 100, false),
    ] {
        let mut s = time_wait(PLAIN, say(SYN, 0, 0));
        let _ = s.peer(say(SYN, seq, 0));
        let answer = s.sent();
        assert_eq!(answer.header.flags.contains(SYN), reused, "{name}");
        assert_eq!(s.state() == State::Closed, reused, "{name}");
        if reused {
            let gap = answer.header.seq.wrapping_sub(s.iss) as i32;
            assert!(gap > 0, "the new ISS lies behind the old numbers");
        }
    }
    // Where reuse is off, a challenge ACK (RFC 5961 §4).
    let strict = Config {
        time_wait_reuse: false,
        ..PLAIN
    };
    let mut s = time_wait(strict, say(SYN, 0, 0));
    assert_eq!(s.peer(say(SYN, 500, 0)), Err(SegmentDrop::SynInWindow));
    s.expect(ACK, 2, 2, 0);
    assert_eq!(s.state(), State::TimeWait);
    // By timestamp, whatever the number (RFC 6191).
    let config = Config {
        timestamps: true,
        ..PLAIN
    };
    for (value, reused) in [(1001, true), (999, false)] {
        let mut s = time_wait(config, say(SYN, 0, 0).ts(1000, 0));
        let _ = s.peer(say(SYN, 1 << 31, 0).ts(value, 0));
        assert_eq!(s.sent().header.flags.contains(SYN), reused, "TSval {value}");
    }
}

#[test]
fn time_wait_keeps_its_slot_but_not_its_buffers() {
    let mut s = time_wait(PLAIN, say(SYN, 0, 0));
    let handle = s.handle();
    assert!(
        s.tcp
            .remove(handle)
            .is_some_and(|buffers| buffers.send.room() == 8000)
    );
    assert!(s.tcp.connection(handle).is_none());
    // It still answers.
    let _ = s.peer(say(FIN | ACK, 1, 2));
    s.expect(ACK, 2, 2, 0);
    // Three slots: two free, the third gives way.
    let now = s.now();
    for port in 1..=3 {
        s.tcp
            .connect(
                US,
                (PEER, port),
                buffers(1, 1),
                leak(PLAIN),
                Offer::UNBOUNDED,
                now,
            )
            .unwrap();
    }
    assert!(
        s.tcp
            .connect(
                US,
                (PEER, 4),
                buffers(1, 1),
                leak(PLAIN),
                Offer::UNBOUNDED,
                now
            )
            .is_err()
    );
}

#[test]
fn remove_refuses_a_live_connection() {
    let mut s = Script::accepted(PLAIN);
    let handle = s.handle();
    assert!(s.tcp.remove(handle).is_none());
    s.shutdown();
    assert!(s.tcp.remove(handle).is_none());
}
