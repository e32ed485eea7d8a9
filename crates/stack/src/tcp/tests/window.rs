//! Windows, Nagle, silly windows, zero-window probes, delayed ACKs, keepalive, timeouts.

use super::super::{Config, Error, RetransmissionCause, State};
use super::*;

#[test]
fn sending_stops_at_the_window() {
    let mut s = Script::accepted_with(PLAIN, say(SYN, 0, 0).mss(1000).win(2500), 8000, 8000);
    s.send(5000);
    s.expect(ACK, 1, 1, 1000);
    s.expect(ACK, 1001, 1, 1000);
    s.silent();
    s.peer(say(ACK, 1, 2001).win(2500)).unwrap();
    s.expect(ACK, 2001, 1, 1000);
    s.expect(ACK, 3001, 1, 1000);
    s.silent();
}

#[test]
fn a_retransmission_that_acknowledges_new_data_brings_its_window() {
    let mut s = Script::accepted_with(PLAIN, say(SYN, 0, 0).mss(1000).win(3000), 8000, 8000);
    s.send(8000);
    for seq in [1, 1001, 2001] {
        s.expect(ACK, seq, 1, 1000);
    }
    // Ten octets of the peer's are lost; what it sends behind them acknowledges a segment.
    s.peer(say(ACK, 11, 1001).win(3000)).unwrap();
    s.expect(ACK, 3001, 1, 1000);
    // Sent again, they acknowledge two more, and nothing was read meanwhile.
    s.peer(say(ACK, 1, 3001).win(1000).data(&[7; 10])).unwrap();
    s.expect(ACK, 4001, 11, 0);
    s.silent();
    s.peer(say(ACK, 11, 4001).win(1000)).unwrap();
    s.expect(ACK, 4001, 11, 1000);
    s.silent();
}

#[test]
fn an_acknowledgment_does_not_stand_behind_a_probe_that_was_refused() {
    let mut s = Script::accepted(PLAIN);
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    s.send(100);
    let (probe, _) = s.wait_for_segment();
    assert_eq!(probe.payload.len(), 1);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    // The peer's window is shut: it takes nothing but what begins at 501.
    s.peer(say(ACK, 1, 501).win(0).data(&[7; 10])).unwrap();
    s.expect(ACK, 501, 11, 0);
    // Once the octet is acknowledged it counts.
    s.peer(say(ACK, 11, 502).win(0).data(&[7; 10])).unwrap();
    s.expect(ACK, 502, 21, 0);
}

#[test]
fn probes_that_cross_do_not_hide_acknowledgments() {
    let mut s = Script::accepted(Config {
        challenge_interval_ms: 0,
        ..PLAIN
    });
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    s.send(100);
    let (probe, _) = s.wait_for_segment();
    assert_eq!(probe.payload.len(), 1);
    // The peer probes too, before it has ours; both octets are taken.
    s.peer(say(ACK, 1, 501).win(0).data(&[7])).unwrap();
    s.expect(ACK, 501, 2, 0);
    // The peer does not know yet: its acknowledgment begins before its probe.
    assert_eq!(
        s.peer(say(ACK, 1, 502).win(0)),
        Err(SegmentDrop::OutsideWindow),
        "old, and still the answer to our probe"
    );
    s.expect(ACK, 502, 2, 0);
    // Without an ACK flag, or further back, nothing counts.
    let (probe, _) = s.wait_for_segment();
    assert_eq!(probe.payload.len(), 1);
    assert_eq!(
        s.peer(say(ACK, 0, 503).win(0)),
        Err(SegmentDrop::OutsideWindow)
    );
    s.expect(ACK, 502, 2, 0);
    assert_eq!(
        s.peer(say(Flags::EMPTY, 1, 503).win(0)),
        Err(SegmentDrop::OutsideWindow)
    );
    s.expect(ACK, 502, 2, 0);
}

#[test]
fn nagle_holds_a_short_segment_while_data_are_out() {
    let mut s = Script::accepted(Config {
        nagle: true,
        ..PLAIN
    });
    s.send(10);
    s.expect(ACK, 1, 1, 10);
    s.send(10);
    s.silent();
    s.send(990);
    s.expect(ACK, 11, 1, 1000);
    s.send(5);
    s.silent();
    s.peer(say(ACK, 1, 1011)).unwrap();
    s.expect(ACK, 1011, 1, 5);
    // Off, nothing waits.
    let mut s = Script::accepted(PLAIN);
    s.send(10);
    s.expect(ACK, 1, 1, 10);
    s.send(10);
    s.expect(ACK, 11, 1, 10);
}

#[test]
fn settings_change_while_connected() {
    let mut s = Script::accepted(Config {
        nagle: true,
        ..PLAIN
    });
    s.send(10);
    s.expect(ACK, 1, 1, 10);
    s.send(10);
    s.silent();
    let (handle, now) = (s.handle(), s.now());
    s.tcp.set_config(handle, leak(PLAIN), now);
    s.expect(ACK, 11, 1, 10);
}

#[test]
fn push_marks_the_end_of_what_was_handed_over() {
    let mut s = Script::accepted(PLAIN);
    s.send(1500);
    assert!(!s.sent().header.flags.contains(Flags::PSH));
    assert!(s.sent().header.flags.contains(Flags::PSH));
}

#[test]
fn a_zero_window_is_probed_with_backoff_for_ever() {
    let mut s = Script::accepted(PLAIN);
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    s.send(3000);
    s.silent();
    let mut last = 0;
    for probe in 0..20 {
        let (seg, waited) = s.wait_for_segment();
        assert_eq!(seg.payload.len(), 1, "one octet of new data");
        assert_eq!(seg.header.seq.wrapping_sub(s.iss), 501);
        assert!(waited >= last && waited <= 60_000, "{waited} after {last}");
        assert!(
            probe == 0 || waited >= (last * 2).min(60_000),
            "{waited} after {last}"
        );
        last = waited;
        s.peer(say(ACK, 1, 501).win(0)).unwrap();
        s.silent();
    }
    assert_eq!(
        s.state(),
        State::Established,
        "answered probes never end it (MUST-37)"
    );
    s.peer(say(ACK, 1, 501).win(8000)).unwrap();
    s.expect(ACK, 501, 1, 1000);
}

#[test]
fn an_accepted_probe_octet_is_not_sent_again() {
    let mut s = Script::accepted(PLAIN);
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    s.send(100);
    s.wait_for_segment();
    s.peer(say(ACK, 1, 502).win(8000)).unwrap();
    s.expect(ACK, 502, 1, 99);
}

#[test]
fn unanswered_probes_end_the_connection() {
    let config = Config {
        retransmissions_max: 4,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    s.send(100);
    let mut probes = 0;
    for _ in 0..20 {
        if s.state() != State::Established {
            break;
        }
        let (seg, _) = s.wait_for_segment();
        probes += usize::from(!seg.header.flags.contains(RST));
    }
    assert_eq!(probes, 4);
    assert_eq!(s.connection().error(), Some(Error::TimedOut));
}

#[test]
fn a_lost_window_update_is_found_by_the_probe() {
    let mut s = Script::accepted(PLAIN);
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.peer(say(ACK, 1, 501).win(0)).unwrap();
    s.send(2000);
    s.wait_for_segment();
    // The update was lost; the answer to the probe says so.
    s.peer(say(ACK, 1, 502).win(4000)).unwrap();
    s.expect(ACK, 502, 1, 1000);
    s.expect(ACK, 1502, 1, 999);
}

/// Sender's silly-window avoidance: a sliver of window waits for the override timeout.
#[test]
fn a_sliver_of_window_is_not_used_at_once() {
    let mut s = Script::accepted(PLAIN);
    s.send(500);
    s.expect(ACK, 1, 1, 500);
    s.send(3000);
    s.expect(ACK, 501, 1, 1000);
    s.expect(ACK, 1501, 1, 1000);
    s.expect(ACK, 2501, 1, 1000);
    s.peer(say(ACK, 1, 3501).win(100)).unwrap();
    s.send(3000);
    s.silent();
    let (seg, waited) = s.wait_for_segment();
    assert_eq!(seg.payload.len(), 100, "after the timeout, what fits");
    assert!(waited >= 200);
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(b"abc").win(4000)).unwrap();
    s.sent();
    s.peer(say(ACK, 4, 1).win(1000)).unwrap();
    assert_eq!(s.connection().telemetry().snd_wnd_bytes, 1000);
    // Older in sequence space, though acceptable as a duplicate.
    let _ = s.peer(say(ACK, 1, 1).data(b"abcdef").win(9000));
    assert_eq!(
        s.connection().telemetry().snd_wnd_bytes,
        9000,
        "it reaches beyond RCV.NXT"
    );
    let _ = s.peer(say(ACK, 1, 1).data(b"abc").win(50));
    assert_eq!(s.connection().telemetry().snd_wnd_bytes, 9000);
}

#[test]
fn a_shrinking_window_does_not_break_anything() {
    let mut s = Script::accepted(PLAIN);
    s.send(3000);
    for seq in [1, 1001, 2001] {
        s.expect(ACK, seq, 1, 1000);
    }
    s.peer(say(ACK, 1, 1001).win(500)).unwrap();
    s.silent();
    s.peer(say(ACK, 1, 3001).win(8000)).unwrap();
    s.send(10);
    s.expect(ACK, 3001, 1, 10);
}

#[test]
fn the_window_closes_as_data_wait_and_opens_by_segments() {
    let config = Config {
        accept_window: 4000,
        ..PLAIN
    };
    let mut s = Script::accepted_with(config, say(SYN, 0, 0), 8000, 4000);
    for n in 0..4 {
        s.peer(say(ACK, 1 + n * 1000, 1).data(&pattern(0, 1000)))
            .unwrap();
        let ack = s.expect(ACK, 1, 1 + (n + 1) * 1000, 0);
        assert_eq!(ack.header.window, 3000 - n as u16 * 1000);
    }
    let handle = s.handle();
    let mut out = [0; 600];
    assert_eq!(s.tcp.recv(handle, &mut out), Ok(600));
    s.silent();
    assert_eq!(s.tcp.recv(handle, &mut out), Ok(600));
    let update = s.expect(ACK, 1, 4001, 0);
    assert_eq!(update.header.window, 1200, "a segment fits again: say so");
    assert_eq!(s.tcp.recv(handle, &mut out), Ok(600));
    s.silent();
    // A pure ACK for another reason does not reveal a sliver either.
    let _ = s.peer(say(SYN, 4001, 0));
    assert_eq!(s.expect(ACK, 1, 4001, 0).header.window, 1200);
}

#[test]
fn the_right_edge_never_moves_left() {
    let config = Config {
        accept_window: 4000,
        ..PLAIN
    };
    let mut s = Script::accepted_with(config, say(SYN, 0, 0), 8000, 4000);
    let (mut seq, mut edge) = (1u32, 4001u32);
    let mut rng = Rng::from_seed([5, 5]);
    for _ in 0..500 {
        let room = edge - seq;
        let len = rng.below(room.min(1000) + 1);
        if len > 0 {
            s.peer(say(ACK, seq, 1).data(&pattern(0, len as usize)))
                .unwrap();
            seq += len;
        }
        let mut out = std::vec![0; rng.below(900) as usize];
        let handle = s.handle();
        let _ = s.tcp.recv(handle, &mut out);
        while let Some(seg) = s.poll() {
            let new = seg.header.ack.wrapping_sub(s.irs) + u32::from(seg.header.window);
            assert!(new >= edge, "{new} after {edge}");
            edge = new;
        }
    }
    assert!(seq > 20_000, "it did move: {seq}");
}

/// Wherever in a millisecond a wait begins: it ends when it is over, and at most 1/16 ms later.
#[test]
fn no_timer_comes_early() {
    let config = Config {
        ack_every: 3,
        ack_delay_ms: 100,
        rto_initial_ms: 700,
        keepalive_idle_s: 2,
        ..PLAIN
    };
    let over = |s: &mut Script, wait_us: u64, what: &str, at: u64| {
        let (before, due) = (s.now_us, s.now_us + wait_us);
        // Asked at any other time, it is no sooner.
        for now in [due - 1000, due - 500, due - 63, due - 1] {
            s.now_us = now.max(before);
            s.silent();
        }
        s.wait_for_segment();
        let late = s.now_us - due;
        assert!(late < 63, "{what}, from {at} us on: {late} us late");
    };
    for at in (0..1000).step_by(7) {
        let mut s = Script::accepted(config);
        s.now_us += at;
        s.peer(say(ACK, 1, 1).data(b"a")).unwrap();
        over(&mut s, 100_000, "a delayed ACK", at);
        s.now_us += 10_000;
        s.send(10);
        s.sent();
        over(&mut s, 700_000, "a retransmission", at);
        s.now_us += at;
        s.peer(say(ACK, 2, 11)).unwrap();
        over(&mut s, 2_000_000, "a keepalive", at);

        let mut s = Script::listening(config);
        s.now_us += at;
        s.peer(say(SYN, 0, 0)).unwrap();
        s.sent();
        over(&mut s, 700_000, "a SYN-ACK", at);

        let mut s = Script::new();
        s.now_us += at;
        let to = (PEER, PEER_PORT);
        let opened = s
            .tcp
            .connect(US, to, buffers(100, 100), leak(config), s.offer, s.now());
        s.handle = Some(opened.unwrap());
        s.sent();
        over(&mut s, 700_000, "a SYN", at);
    }
}

#[test]
fn acks_are_delayed_by_count_and_time() {
    let config = Config {
        ack_every: 3,
        ack_delay_ms: 100,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    s.peer(say(ACK, 1, 1).data(b"a")).unwrap();
    s.silent();
    s.peer(say(ACK, 2, 1).data(b"b")).unwrap();
    s.silent();
    s.peer(say(ACK, 3, 1).data(b"c")).unwrap();
    s.expect(ACK, 1, 4, 0);
    s.peer(say(ACK, 4, 1).data(b"d")).unwrap();
    let (seg, waited) = s.wait_for_segment();
    assert_eq!((seg.header.ack.wrapping_sub(s.irs), waited), (5, 100));
    // An ACK that rides on data is no longer due.
    s.peer(say(ACK, 5, 1).data(b"e")).unwrap();
    s.send(1);
    s.expect(ACK, 1, 6, 1);
    s.peer(say(ACK, 6, 2)).unwrap();
    s.wait_ms(1000);
    s.silent();
    // Off: at once.
    let mut s = Script::accepted(Config {
        ack_every: 9,
        ack_delay_ms: 0,
        ..PLAIN
    });
    s.peer(say(ACK, 1, 1).data(b"a")).unwrap();
    s.expect(ACK, 1, 2, 0);
}

/// Full segments bear timestamps, and are shorter for it: a buffer of four of those opens again
/// by one of them, not by an MSS.
#[test]
fn the_window_opens_by_what_a_segment_carries() {
    const SEGMENT: u16 = 1000 - 12;
    let config = Config {
        timestamps: true,
        accept_window: 4 * SEGMENT,
        ..PLAIN
    };
    let syn = say(SYN, 0, 0).mss(1000).ts(5, 0);
    let data = pattern(0, usize::from(SEGMENT));
    let mut s = Script::accepted_with(config, syn, 8000, 4 * SEGMENT);
    let mut next = 1;
    let mut arrive = |s: &mut Script| {
        s.peer(say(ACK, next, 1).data(&data)).unwrap();
        next += u32::from(SEGMENT);
        next
    };
    // Read before its ACK leaves: all of the buffer is free, and the peer learns it.
    for _ in 0..3 {
        let next = arrive(&mut s);
        s.recv();
        assert_eq!(s.expect(ACK, 1, next, 0).header.window, 4 * SEGMENT);
    }
    // Shut, the window opens by one segment too.
    let mut next = 0;
    for left in (0..4).rev() {
        next = arrive(&mut s);
        assert_eq!(s.expect(ACK, 1, next, 0).header.window, left * SEGMENT);
    }
    let handle = s.handle();
    let mut out = [0; SEGMENT as usize - 1];
    assert_eq!(s.tcp.recv(handle, &mut out), Ok(out.len()));
    s.silent();
    assert_eq!(s.tcp.recv(handle, &mut out[..1]), Ok(1));
    assert_eq!(s.expect(ACK, 1, next, 0).header.window, SEGMENT);
}

#[test]
fn out_of_order_data_are_acknowledged_at_once() {
    let config = Config {
        ack_every: 9,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    s.peer(say(ACK, 4, 1).data(b"def")).unwrap();
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 4, 1).data(b"def")).unwrap();
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(b"abc")).unwrap();
    s.expect(ACK, 1, 7, 0);
    assert_eq!(s.recv(), b"abcdef");
}

#[test]
fn keepalive_probes_an_idle_peer() {
    let config = Config {
        keepalive_idle_s: 10,
        keepalive_interval_s: 2,
        keepalive_probes: 3,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    let (probe, waited) = s.wait_for_segment();
    assert_eq!(waited, 10_000);
    assert_eq!(probe.header.seq, s.iss, "SND.NXT - 1");
    assert!(probe.payload.is_empty());
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(s.wait_for_segment().1, 10_000, "an answer starts it again");
    for _ in 0..2 {
        assert_eq!(s.wait_for_segment().1, 2000);
    }
    let (seg, _) = s.wait_for_segment();
    assert!(seg.header.flags.contains(RST));
    assert_eq!(s.connection().error(), Some(Error::KeepaliveTimedOut));
    // Off by default (MUST-25).
    let s = Script::accepted(PLAIN);
    assert_eq!(s.tcp.next_deadline(), None);
}

#[test]
fn a_keepalive_probe_of_the_peer_is_answered() {
    for garbage in [&b""[..], b"\0"] {
        let mut s = Script::accepted(PLAIN);
        assert_eq!(
            s.peer(say(ACK, 0, 1).data(garbage)),
            Err(SegmentDrop::OutsideWindow)
        );
        s.expect(ACK, 1, 1, 0);
        assert_eq!(s.recv(), b"");
    }
}

#[test]
fn retransmissions_back_off_and_end() {
    let config = Config {
        retransmissions_max: 12,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    s.send(100);
    s.expect(ACK, 1, 1, 100);
    let mut last = 0;
    for n in 0..12 {
        let (seg, waited) = s.wait_for_segment();
        assert_eq!(seg.payload.len(), 100);
        assert!(
            n == 0 || waited == (last * 2).min(60_000),
            "{waited} after {last}"
        );
        last = waited;
    }
    assert_eq!(
        s.tcp.counters().retransmitted(RetransmissionCause::Timeout),
        12
    );
    let (seg, _) = s.wait_for_segment();
    assert!(seg.header.flags.contains(RST));
    assert_eq!(s.connection().error(), Some(Error::TimedOut));
}

#[test]
fn the_user_timeout_ends_it_to_the_millisecond() {
    let config = Config {
        user_timeout_ms: 5_000,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    s.wait_ms(20_000);
    s.send(100);
    s.expect(ACK, 1, 1, 100);
    let start = s.now_us;
    loop {
        let (seg, _) = s.wait_for_segment();
        if seg.header.flags.contains(RST) {
            break;
        }
    }
    assert_eq!((s.now_us - start) / 1000, 5_000);
    assert_eq!(s.connection().error(), Some(Error::UserTimeout));
}

#[test]
fn progress_puts_the_user_timeout_off() {
    let config = Config {
        user_timeout_ms: 3_000,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    for n in 0..10 {
        s.send(10);
        s.expect(ACK, 1 + n * 10, 1, 10);
        s.now_us += 100_000;
        s.peer(say(ACK, 1, 11 + n * 10)).unwrap();
        s.wait_ms(900);
    }
    assert_eq!(s.state(), State::Established);
}

/// `next_deadline` is `None` or a time at which something happens; polling then makes
/// progress, so a driver that sleeps until then never spins.
#[test]
fn deadlines_are_truthful() {
    for seed in 0..20 {
        let link = Link {
            loss: 150,
            reorder: 100,
            ..CLEAN
        };
        let outcome = transfer::transfer(
            Config {
                rmss: 474,
                smss: 474,
                accept_window: 1896,
                ..Config::DEFAULT
            },
            link,
            20_000,
            seed,
        );
        // `Net::step` would have stormed or stalled; and the steps stay in proportion.
        assert!(outcome.net.log.len() < 2_000);
    }
}

/// What a gap held back is acknowledged with the window as it was; what the application has
/// read since goes out behind it in window updates, by a quarter of the buffer or a segment:
/// of several, one gets through.
#[test]
fn a_filled_gap_is_acknowledged_and_what_was_read_announced_behind_it() {
    for (buffer, windows) in [
        (4000, &[1000, 2000, 3000, 4000][..]),
        (12_000, &[9000, 12_000]),
    ] {
        let config = Config {
            accept_window: buffer,
            ..PLAIN
        };
        let syn = say(SYN, 0, 0).mss(1000);
        let mut s = Script::accepted_with(config, syn, 4000, buffer);
        for seq in [1001, 2001] {
            s.peer(say(ACK, seq, 1).data(&pattern(1000, 1000))).unwrap();
            assert_eq!(s.expect(ACK, 1, 1, 0).header.window, buffer);
        }
        s.peer(say(ACK, 1, 1).data(&pattern(0, 1000))).unwrap();
        assert_eq!(s.recv().len(), 3000);
        for window in windows {
            assert_eq!(s.expect(ACK, 1, 3001, 0).header.window, *window);
        }
        s.silent();
        // Without gaps for a while, all of it at once.
        let mut seq = 3001;
        for _ in 0..=config.quick_acks {
            s.peer(say(ACK, seq, 1).data(&pattern(0, 1000))).unwrap();
            s.recv();
            seq += 1000;
            assert_eq!(s.expect(ACK, 1, seq, 0).header.window, buffer);
            s.silent();
        }
    }
}

/// Nobody waits for the window who has sent all: after a gap, and a FIN, what the application
/// reads is told by the segment that goes out anyway, and by none behind it.
#[test]
fn the_window_is_not_told_to_who_has_sent_all() {
    let config = Config {
        accept_window: 4000,
        ..PLAIN
    };
    let mut s = Script::accepted_with(config, say(SYN, 0, 0).mss(1000), 4000, 4000);
    s.peer(say(ACK, 1001, 1).data(&pattern(1000, 1000)))
        .unwrap();
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(&pattern(0, 1000))).unwrap();
    s.expect(ACK, 1, 2001, 0);
    s.peer(say(ACK | FIN, 2001, 1).data(&pattern(2000, 2000)))
        .unwrap();
    s.expect(ACK, 1, 4002, 0);
    assert_eq!(s.recv().len(), 4000);
    s.send(100);
    s.expect(ACK, 1, 4002, 100);
    s.silent();
}

/// With buffers of 65,535 bytes and a peer that offers as much: what is offered, taken and
/// in flight where windows are to be short.
#[cfg(feature = "tcphc")]
#[test]
fn windows_stay_short_where_they_have_to() {
    for is_short in [false, true] {
        let most = if is_short { 16_384 } else { 65_535 };
        let config = Config {
            accept_window: 65_535,
            ..PLAIN
        };
        let mut s = Script::new();
        if is_short {
            s.offer.flight_max = 16_384;
        }
        let listener = s.tcp.listen(None, PORT, leak(config)).unwrap();
        s.peer(say(SYN, 0, 0).mss(1000).win(65_535)).unwrap();
        let syn_ack = s.sent().header;
        assert_eq!(syn_ack.window, most);
        s.iss = syn_ack.seq;
        s.peer(say(ACK, 1, 1).win(65_535)).unwrap();
        let (lent, now) = (buffers(65_535, 65_535), s.now());
        s.handle = Some(s.tcp.accept(listener, lent, now).unwrap());
        s.send(65_000);
        let (mut sent, mut acked, mut flight_max) = (0, 0, 0);
        while acked < 65_000 {
            sent += std::iter::from_fn(|| s.poll())
                .map(|segment| segment.payload.len() as u32)
                .sum::<u32>();
            flight_max = flight_max.max(sent - acked);
            acked += 1_000.min(sent - acked);
            s.peer(say(ACK, 1, 1 + acked).win(65_535)).unwrap();
        }
        let is_filled = flight_max >= 16_000 && flight_max <= u32::from(most);
        assert!(is_filled, "{flight_max} bytes in flight");
        assert_eq!(is_short, flight_max <= 16_384);
        let beyond = pattern(0, 1000);
        s.peer(say(ACK, u32::from(most) + 1, 1 + acked).data(&beyond))
            .unwrap_err();
        assert_eq!(s.sent().header.window, most);
        s.peer(say(ACK, 1, 1 + acked).data(&beyond)).unwrap();
        assert_eq!(s.sent().header.window, most - 1000);
        assert_eq!(s.recv(), beyond);

        let lent = buffers(65_535, 65_535);
        let peer = (PEER, PEER_PORT + 1);
        s.tcp
            .connect(US, peer, lent, leak(config), s.offer, now)
            .unwrap();
        assert_eq!(s.sent().header.window, most);
    }
}

/// The window opened before the peer's answer to a probe came: the octet that the probe brought may
/// have been taken, and its acknowledgment counts, though SND.NXT has gone back.
#[test]
fn a_probe_that_crossed_the_window_update_may_have_been_taken() {
    for (ack, result) in [(1002, Ok(())), (1003, Err(SegmentDrop::AckOfUnsent))] {
        let mut s = Script::accepted(PLAIN);
        s.send(1000);
        s.expect(ACK, 1, 1, 1000);
        s.peer(say(ACK, 1, 1001).win(0)).unwrap();
        s.send(10);
        let (probe, _) = s.wait_for_segment();
        assert_eq!(probe.payload.len(), 1);
        // A sliver, which silly-window avoidance does not use.
        s.peer(say(ACK, 1, 1001).win(4)).unwrap();
        s.silent();
        let srtt_ms = s.connection().telemetry().srtt_ms;
        assert_eq!(s.peer(say(ACK, 1, ack)), result);
        if result.is_ok() {
            assert_eq!(s.connection().telemetry().srtt_ms, srtt_ms, "no sample");
            s.expect(ACK, 1002, 1, 9);
            s.peer(say(ACK, 1, 1011)).unwrap();
            assert_eq!(s.connection().unacknowledged(), 0);
        } else {
            s.expect(ACK, 1001, 1, 0);
        }
    }
}

/// Once data have gone out from there anew, the octet is among them; with a window that is open and
/// nothing on the way, nothing is acknowledged that was not sent.
#[test]
fn only_a_probe_may_be_acknowledged_behind_snd_nxt() {
    let mut s = Script::accepted(PLAIN);
    s.send(1000);
    s.expect(ACK, 1, 1, 1000);
    s.peer(say(ACK, 1, 1001).win(0)).unwrap();
    s.send(10);
    s.wait_for_segment();
    s.peer(say(ACK, 1, 1001)).unwrap();
    s.expect(ACK, 1001, 1, 10);
    s.peer(say(ACK, 1, 1001).data(b"x")).unwrap();
    s.expect(ACK, 1011, 2, 0);
    s.peer(say(ACK, 2, 1011)).unwrap();
    assert_eq!(s.peer(say(ACK, 2, 1012)), Err(SegmentDrop::AckOfUnsent));
}
