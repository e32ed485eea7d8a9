//! What the application can ask: states, readiness, names and counters; and what it hands
//! over without copying.

use super::super::timers::Timer;
use super::super::types::TcpCounters;
use super::super::{
    Config, OpenError, Piece, RetransmissionCause, SendBuffer, SendError, SliceQueue, State,
};
use super::*;

#[test]
fn a_connection_tells_its_readiness() {
    let mut s = Script::accepted(PLAIN);
    let c = s.connection();
    assert!(c.is_established() && c.may_send() && c.may_recv() && !c.peer_closed());
    assert_eq!(
        (c.can_send(), c.can_recv(), c.unacknowledged()),
        (8000, 0, 0)
    );
    s.send(300);
    s.expect(ACK, 1, 1, 300);
    s.peer(say(ACK, 1, 1).data(b"abc")).unwrap();
    let c = s.connection();
    assert_eq!(
        (c.can_send(), c.can_recv(), c.unacknowledged()),
        (7700, 3, 300)
    );
    s.peer(say(ACK | FIN, 4, 301)).unwrap();
    let c = s.connection();
    assert!(!c.is_established() && c.may_send() && c.peer_closed());
    assert!(c.may_recv(), "three bytes wait");
    assert_eq!(s.recv(), b"abc");
    assert!(!s.connection().may_recv());
    s.shutdown();
    let c = s.connection();
    assert!(!c.may_send());
    assert_eq!(c.can_send(), 0);
    let (mut s, _) = Script::connecting(PLAIN);
    assert!(s.connection().may_send() && s.connection().is_connecting());
    s.shutdown();
    assert!(!s.connection().may_send(), "a FIN is queued");
    let (handle, now) = (s.handle(), s.now());
    assert_eq!(s.tcp.send(handle, b"x", now), Err(SendError::Closing));
}

#[test]
fn states_tell_what_they_allow() {
    use State::*;
    for (state, synchronized, may_send, may_receive) in [
        (Closed, false, false, false),
        (Listen, false, true, true),
        (SynSent, false, true, true),
        (SynReceived, false, true, true),
        (Established, true, true, true),
        (FinWait1, true, false, true),
        (FinWait2, true, false, true),
        (CloseWait, true, true, false),
        (Closing, true, false, false),
        (LastAck, true, false, false),
        (TimeWait, true, false, false),
    ] {
        assert_eq!(state.is_synchronized(), synchronized, "{state:?}");
        assert_eq!(state.may_send(), may_send, "{state:?}");
        assert_eq!(state.may_receive(), may_receive, "{state:?}");
    }
}

#[test]
fn reasons_and_causes_have_names_of_their_own() {
    let mut names: Vec<_> = RetransmissionCause::ALL
        .map(RetransmissionCause::name)
        .into();
    names.extend(
        [
            SegmentDrop::Checksum,
            SegmentDrop::Malformed,
            SegmentDrop::DataAfterClose,
        ]
        .map(SegmentDrop::reason),
    );
    assert!(names.iter().all(|name| name.len() > 3));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn counters_are_read_by_reason_and_cause() {
    let mut counters = TcpCounters::NEW;
    counters.drops[SegmentDrop::OldTimestamp as usize] = 7;
    counters.retransmissions[RetransmissionCause::Rack as usize] = 9;
    assert_eq!(counters.dropped(SegmentDrop::OldTimestamp), 7);
    assert_eq!(counters.dropped(SegmentDrop::NoTimestamp), 0);
    assert_eq!(counters.retransmitted(RetransmissionCause::Rack), 9);
    assert_eq!(counters.retransmitted(RetransmissionCause::Sack), 0);
}

#[test]
fn an_ended_connection_gives_its_place_back() {
    let mut s = Script::accepted(PLAIN);
    let handle = s.handle();
    assert!(s.tcp.remove(handle).is_none(), "not over yet");
    s.peer(say(RST, 1, 0)).unwrap_err();
    assert!(s.tcp.remove(handle).is_some());
    assert!(s.tcp.connection(handle).is_none(), "gone for its owner");
    s.tcp.set_now(s.now());
    assert!(s.tcp.memory.connections[0].0.is_none(), "at the next call");
    assert!(s.tcp.remove(handle).is_none(), "stale");
    assert!(s.tcp.connection(handle).is_none());
    assert_eq!(
        s.tcp.send(handle, b"x", s.now()),
        Err(SendError::NoConnection)
    );
}

#[test]
fn only_what_is_closed_is_left_by_a_timer() {
    let lifetime = |s: &Script| s.connection().timers.is_armed(Timer::Lifetime);
    let close = |s: &mut Script| {
        let (handle, now) = (s.handle(), s.now());
        s.tcp.close(handle, now);
    };
    let mut s = Script::accepted(PLAIN);
    close(&mut s);
    assert!(lifetime(&s), "FIN-WAIT-1, closed");
    let mut s = Script::accepted(PLAIN);
    s.shutdown();
    s.expect(ACK | FIN, 1, 1, 0);
    assert!(!lifetime(&s), "FIN-WAIT-1 has its retransmissions");
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(s.state(), State::FinWait2);
    assert!(!lifetime(&s), "still reading");
    close(&mut s);
    assert!(lifetime(&s));
}

/// A connection that waits for its end is not put off by keepalive, whatever the peer says.
#[test]
fn signs_of_life_do_not_prolong_the_end() {
    let config = Config {
        keepalive_idle_s: 7200,
        time_wait_ms: 60_000,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    let lifetime_ms = |s: &Script| {
        let at = s.tcp.next_deadline().expect("a deadline").as_micros();
        (at - s.now_us / 1000 * 1000) / 1000
    };
    assert_eq!(lifetime_ms(&s), 7_200_000);
    s.shutdown();
    s.expect(ACK | FIN, 1, 1, 0);
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(lifetime_ms(&s), 7_200_000, "FIN-WAIT-2, still reading");
    s.peer(say(ACK | FIN, 1, 2)).unwrap();
    s.expect(ACK, 2, 2, 0);
    assert_eq!(s.state(), State::TimeWait);
    s.now_us += 10_000_000;
    s.peer(say(ACK, 2, 2)).unwrap();
    assert_eq!(lifetime_ms(&s), 50_000);

    let mut s = Script::accepted(config);
    let (handle, now) = (s.handle(), s.now());
    s.tcp.close(handle, now);
    s.expect(ACK | FIN, 1, 1, 0);
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(lifetime_ms(&s), 60_000, "FIN-WAIT-2, closed");
    s.now_us += 10_000_000;
    s.peer(say(ACK, 1, 2)).unwrap();
    assert_eq!(lifetime_ms(&s), 50_000);
}

/// RFC 6191 asks for timestamps on both connections; numbers decide without.
#[test]
fn timestamps_count_for_time_wait_only_where_agreed() {
    let mut s = Script::accepted(PLAIN);
    s.shutdown();
    s.expect(ACK | FIN, 1, 1, 0);
    s.peer(say(ACK | FIN, 1, 2)).unwrap();
    s.expect(ACK, 2, 2, 0);
    assert_eq!(s.state(), State::TimeWait);
    let _ = s.peer(say(SYN, 0, 0).ts(1_000_000, 0));
    assert_eq!(s.state(), State::TimeWait, "an old number");
}

#[test]
fn a_listener_that_goes_ends_what_waits_for_it_alone() {
    let mut tcp = engine(2, 2, 1);
    let now = Instant::from_micros(1_000_000);
    let config = leak(PLAIN);
    let first = tcp.listen(None, 7, config).unwrap();
    let second = tcp.listen(None, 9, config).unwrap();
    let a = tcp.accept(first, buffers(100, 100), now).unwrap();
    let b = tcp.accept(second, buffers(100, 100), now).unwrap();
    tcp.unlisten(first);
    assert_eq!(tcp.connection(a).unwrap().state(), State::Closed);
    assert_eq!(tcp.connection(b).unwrap().state(), State::Listen);
    let error = tcp.accept(first, buffers(100, 100), now).unwrap_err().error;
    assert_eq!(error, OpenError::NoListener);
}

/// Handshakes that wait are handed out in their order, each to its own listener.
#[test]
fn the_longest_wait_is_accepted_first() {
    let mut s = Script::new();
    let config = leak(PLAIN);
    let listener = s.tcp.listen(None, PORT, config).unwrap();
    for (n, irs) in [(0, 100), (1, 200)] {
        s.irs = irs;
        let mut syn = s.peer_bytes(&say(SYN, 0, 0));
        syn[..2].copy_from_slice(&(PEER_PORT + n).to_be_bytes());
        fill_checksum(&PEER, &US, &mut syn);
        s.tcp
            .on_segment(&incoming(PEER, US, 0, &syn), s.now())
            .unwrap();
        s.iss = s.sent().header.seq;
        let mut ack = s.peer_bytes(&say(ACK, 1, 1));
        ack[..2].copy_from_slice(&(PEER_PORT + n).to_be_bytes());
        fill_checksum(&PEER, &US, &mut ack);
        s.tcp
            .on_segment(&incoming(PEER, US, 0, &ack), s.now())
            .unwrap();
        s.now_us += 1_000_000;
    }
    for n in 0..2 {
        let now = s.now();
        let handle = s.tcp.accept(listener, buffers(100, 100), now).unwrap();
        let ends = s.tcp.connection(handle).unwrap().endpoints();
        assert_eq!(ends.remote_port, PEER_PORT + n);
    }
}

#[test]
fn a_queue_of_slices_keeps_to_its_limits() {
    let mut pieces = [Piece::EMPTY; 2];
    let mut copies = [0; 8];
    let big: &'static [u8] = Box::leak(vec![1; 65_535].into_boxed_slice());
    let mut queue = SliceQueue::new(&mut pieces, &mut copies);
    assert!(queue.push_slice(&big[..65_530]));
    assert!(!queue.push_slice(&big[..6]), "more than 65,535 in all");
    assert!(queue.push_slice(&big[..5]), "exactly as many");
    let mut pieces = [Piece::EMPTY; 2];
    let mut copies = [0; 8];
    let mut queue = SliceQueue::new(&mut pieces, &mut copies);
    assert!(queue.push_slice(big.get(..3).unwrap()));
    assert!(queue.push_slice(big.get(..3).unwrap()));
    assert!(queue.push_slice(&[]), "nothing takes no place");
    let queue = SendBuffer::slices(Box::leak(Box::new(leaked(&[3, 3]))));
    assert!(!queue.is_empty());
    assert_eq!(queue.room(), 0, "no place for a copied piece");
    let queue = SendBuffer::slices(Box::leak(Box::new(leaked(&[3]))));
    assert_eq!(queue.room(), 8);
    let queue = SendBuffer::slices(Box::leak(Box::new(leaked(&[]))));
    assert_eq!((queue.is_empty(), queue.room()), (true, 8));
}

/// Two places, eight bytes of copies, and slices of these lengths.
fn leaked(lens: &[usize]) -> SliceQueue<'static> {
    let pieces = Box::leak(vec![Piece::EMPTY; 2].into_boxed_slice());
    let copies = Box::leak(vec![0; 8].into_boxed_slice());
    let mut queue = SliceQueue::new(pieces, copies);
    for len in lens {
        assert!(queue.push_slice(Box::leak(vec![7; *len].into_boxed_slice())));
    }
    queue
}

/// Too big is what exceeds the segments sent so far; with nothing in flight nothing is lost.
#[test]
fn packet_too_big_without_flight_only_shrinks_segments() {
    let s = Script::accepted_with(
        Config {
            smss: 1400,
            ..PLAIN
        },
        say(SYN, 0, 0).mss(1400),
        8000,
        8000,
    );
    let seq = s.connection().snd_una;
    let slot = &mut s.tcp.memory.connections[0];
    let connection = slot.0.as_mut().unwrap();
    connection.snd_nxt = seq.plus(1);
    connection.on_icmp_error(seq, super::super::IcmpError::PacketTooBig(1300));
    assert!(connection.loss.is_forced(), "in flight: at once again");
    connection.snd_nxt = seq;
    connection.loss.on_resent(0, 1, 0);
    connection.on_icmp_error(seq, super::super::IcmpError::PacketTooBig(1280));
    assert!(!connection.loss.is_forced());
}
