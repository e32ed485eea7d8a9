//! Rules whose breach shows only where numbers begin again, or where two segments cross.

use super::super::State;
use super::super::listener::cookie;
use super::loss::{RACK, cwnd, in_flight, offering_sack, sacking};
use super::*;

/// A node that has run for so long that deadlines are about to begin again from zero: they are
/// counted in 32nds of a millisecond.
fn before_deadlines_wrap(config: Config, by_us: u64) -> Script {
    const PERIOD_US: u64 = (1 << 32) / 32 * 1000;
    let mut s = Script::new();
    s.now_us = PERIOD_US - by_us;
    s.listener = Some(s.tcp.listen(None, PORT, leak(config)).unwrap());
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    s.iss = s.sent().header.seq;
    s
}

fn accept(s: &mut Script) {
    s.peer(say(ACK, 1, 1)).unwrap();
    let (listener, now) = (s.listener.unwrap(), s.now());
    let lent = buffers(8000, 8000);
    s.handle = Some(s.tcp.accept(listener, lent, now).unwrap());
}

/// With deadlines compared as plain numbers, one behind the wrap is past at once, and one before
/// it never comes.
#[test]
fn deadlines_come_in_their_time_across_the_wrap() {
    // A SYN-ACK's second try.
    let mut s = before_deadlines_wrap(PLAIN, 400_000);
    s.silent();
    let (again, waited) = s.wait_for_segment();
    assert_eq!((again.header.flags, waited), (SYN | ACK, 1_000));
    // A timeout behind the wrap, beside a delayed ACK before it.
    let delayed = Config {
        ack_every: 2,
        quick_acks: 0,
        ..PLAIN
    };
    let mut s = before_deadlines_wrap(delayed, 400_000);
    accept(&mut s);
    s.send(100);
    s.expect(ACK, 1, 1, 100);
    s.peer(say(ACK, 1, 1).data(b"text")).unwrap();
    let (ack, waited) = s.wait_for_segment();
    assert_eq!((ack.payload.len(), waited), (0, 100));
    let (again, waited) = s.wait_for_segment();
    assert_eq!((again.payload.len(), waited), (100, 900));
    // An ACK due before the wrap, and a driver that comes behind it.
    let mut s = before_deadlines_wrap(delayed, 200_000);
    accept(&mut s);
    s.peer(say(ACK, 1, 1).data(b"text")).unwrap();
    s.now_us += 300_000;
    s.expect(ACK, 1, 5, 0);
    s.silent();
}

/// RFC 9293 §3.10.7.4: SND.WND is of the segment with the highest number, not of the one that
/// came last.
#[test]
fn an_older_segment_does_not_change_the_window() {
    for header_prediction in [true, false] {
        let config = Config {
            initial_window: 10,
            header_prediction,
            ..PLAIN
        };
        let mut s = Script::accepted(config);
        s.peer(say(ACK, 1, 1).data(&[1; 100])).unwrap();
        // These two crossed: the second says that the window is smaller by now.
        s.peer(say(ACK, 201, 1).data(&[3; 100]).win(3000)).unwrap();
        s.peer(say(ACK, 101, 1).data(&[2; 100]).win(8000)).unwrap();
        assert_eq!(s.connection().snd_wnd, 3000);
        s.send(8000);
        let mut sent = 0;
        while let Some(seg) = s.poll() {
            sent += seg.payload.len();
        }
        assert_eq!(sent, 3000);
        // Nor does one that opens a shut window.
        s.peer(say(ACK, 401, 3001).data(&[5; 100]).win(0)).unwrap();
        s.peer(say(ACK, 301, 3001).data(&[4; 100]).win(8000))
            .unwrap();
        assert_eq!(s.connection().snd_wnd, 0);
    }
}

/// What was never sent cannot have arrived: such a block says nothing of what was, either.
#[test]
fn a_sack_block_beyond_what_was_sent_reports_nothing() {
    let mut s = in_flight(RACK, offering_sack(), 4);
    let before = cwnd(&s);
    let beyond = s.connection().snd_nxt.get().wrapping_sub(s.iss) + 1;
    for left in [2001, 3001, beyond - 1] {
        sacking(&mut s, 1001, &[(left, beyond)]);
        assert_eq!(s.connection().loss.sacked(), 0, "from {left}");
    }
    assert_eq!(cwnd(&s), before);
    sacking(&mut s, 1001, &[(2001, beyond - 1)]);
    assert_eq!(s.connection().loss.sacked(), 3000, "to the last octet");
}

/// A block that begins below the ACK beside it contradicts that ACK, or is a report of a
/// duplicate (RFC 2883 §4).
#[test]
fn a_sack_block_below_its_own_ack_reports_nothing() {
    let mut s = in_flight(RACK, offering_sack(), 5);
    sacking(&mut s, 3001, &[(2001, 5001)]);
    assert_eq!(s.connection().loss.sacked(), 0);
    sacking(&mut s, 3001, &[(4001, 5001)]);
    assert_eq!(s.connection().loss.sacked(), 1000);
}

/// A cookie is good in its period of 65,536 ms and the next one, also while younger ones are
/// under way.
#[test]
fn a_cookie_one_period_too_old_is_none() {
    const PERIOD_MS: u64 = 1 << 16;
    for (periods, is_good) in [(0, true), (1, true), (2, false), (31, false), (32, true)] {
        let now_ms = (40 + periods) * PERIOD_MS as u32;
        let made = cookie::make(cookie::period(40 * PERIOD_MS as u32), 3, 0x1234);
        assert_eq!(cookie::claims(made, now_ms).is_some(), is_good, "{periods}");
    }
    for (periods, is_good) in [(1, true), (2, false)] {
        let mut s = Script::new();
        s.tcp = engine(1, 0, 1);
        let listener = s.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
        s.now_us = 40 * PERIOD_MS * 1000;
        let (lent, now) = (buffers(100, 100), s.now());
        s.handle = Some(s.tcp.accept(listener, lent, now).unwrap());
        s.peer(say(SYN, 0, 0)).unwrap();
        s.iss = s.sent().header.seq;
        // Somebody else is sent one in each period.
        for _ in 0..periods * 4 {
            s.now_us += PERIOD_MS * 1000 / 4;
            let mut other = s.peer_bytes(&say(SYN, 900, 0));
            other[..2].copy_from_slice(&9u16.to_be_bytes());
            fill_checksum(&PEER, &US, &mut other);
            s.tcp
                .on_segment(&incoming(PEER, US, 0, &other), s.now())
                .unwrap();
            s.sent();
        }
        let expected = match is_good {
            true => Ok(()),
            false => Err(SegmentDrop::UnacceptableAck),
        };
        assert_eq!(s.peer(say(ACK, 1, 1)), expected, "{periods} periods");
        assert_eq!(s.state() == State::Established, is_good);
    }
}
