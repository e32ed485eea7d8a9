//! When a connection expects an answer, and until when.

use super::super::Economy;
use super::*;
use crate::time::Duration;

const PSH: Flags = Flags::PSH;

fn expected(s: &Script) -> Option<crate::hint::Expectation> {
    s.tcp.expected(s.now())
}

#[test]
fn an_answer_is_expected_while_something_is_on_its_way() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK | PSH, 1, 1).data(b"ask")).unwrap();
    assert_eq!(expected(&s), None, "nothing was sent");
    s.send(300);
    s.expect(ACK, 1, 4, 300);
    let answer = expected(&s).expect("an ACK is due");
    assert!(answer.earliest <= answer.latest && !answer.more);
    assert_eq!(
        Some(answer.latest),
        s.tcp.next_deadline(),
        "then it is sent again"
    );
    s.wait_ms(20);
    s.peer(say(ACK, 4, 301)).unwrap();
    assert_eq!(expected(&s), None, "it has come");
}

/// Linux sends the ACK of the handshake first, then the question: a leaf that rested between them
/// answered a minute later.
#[test]
fn a_peer_that_has_connected_is_expected_to_ask() {
    let mut s = Script::accepted(PLAIN);
    let question = expected(&s).expect("a question");
    assert!(question.more && question.pace <= Duration::from_millis(100));
    let later = s.tcp.expected(s.now() + Duration::from_secs(20));
    assert!(later.expect("still").pace >= Duration::from_secs(5));
    assert_eq!(s.tcp.expected(s.now() + Duration::from_secs(61)), None);
    s.peer(say(ACK | PSH, 1, 1).data(b"ask")).unwrap();
    assert_eq!(expected(&s), None, "only our own ACK is due");
    // One that only listens, and acknowledges what it gets, does not ask.
    let mut s = Script::accepted(Config {
        timestamps: true,
        ..PLAIN
    });
    s.send(300);
    s.expect(ACK, 1, 1, 300);
    s.wait_ms(20);
    s.peer(say(ACK, 1, 301)).unwrap();
    assert_eq!(expected(&s), None, "it has nothing to ask");
    let frugal = Economy::LowestEnergy;
    let s = Script::accepted(Config {
        economy: frugal,
        ..PLAIN
    });
    assert_eq!(expected(&s), None, "it rests");
}

/// A leaf whose way back was lost asked its parent thirty times a second for minutes.
#[test]
fn an_answer_that_stays_away_is_asked_for_ever_more_rarely() {
    let mut s = Script::accepted(PLAIN);
    s.send(300);
    s.expect(ACK, 1, 1, 300);
    s.wait_ms(200);
    s.peer(say(ACK, 1, 301)).unwrap();
    s.send(300);
    s.expect(ACK, 301, 1, 300);
    let first = expected(&s).expect("an ACK is due").pace;
    for doublings in 1..=5 {
        s.wait_for_segment();
        let pace = expected(&s).expect("still").pace;
        let doubled = first.saturating_mul(1 << doublings);
        assert_eq!(pace, doubled.min(Duration::from_secs(1)), "{doublings}");
    }
    s.peer(say(ACK, 1, 601)).unwrap();
    s.send(300);
    s.expect(ACK, 601, 1, 300);
    assert_eq!(expected(&s).expect("the next").pace, first, "as before");
}

#[test]
fn a_syn_expects_its_answer() {
    let (s, _) = Script::connecting(PLAIN);
    let answer = expected(&s).expect("a SYN-ACK is due");
    assert_eq!(Some(answer.latest), s.tcp.next_deadline());
}

/// A peer that connects to a sleeping node would else wait twice for the node's next data request.
#[test]
fn a_syn_ack_expects_its_answer() {
    let mut s = Script::listening(PLAIN);
    assert_eq!(expected(&s), None);
    s.peer(say(SYN, 0, 0)).unwrap();
    assert_eq!(expected(&s), None, "it has not been sent");
    s.iss = s.sent().header.seq;
    let first = expected(&s).expect("an ACK is due");
    assert_eq!(Some(first.latest), s.tcp.next_deadline());
    // It is sent again and again, and its answer asked for ever more rarely.
    s.wait_for_segment();
    let second = expected(&s).expect("still");
    assert_eq!(second.pace, first.pace + first.pace);
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(expected(&s), None, "the handshake is done");
}

#[test]
fn a_stream_is_expected_until_its_end_and_a_delayed_ack_costs_nothing() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(b"beginning")).unwrap();
    let answer = expected(&s).expect("the peer has more");
    assert!(answer.more);
    // The longer it is silent, the more rarely is it asked for.
    let later = s
        .tcp
        .expected(s.now() + Duration::from_secs(40))
        .expect("still");
    assert!(later.pace >= Duration::from_secs(10) && later.pace > answer.pace);
    assert_eq!(s.tcp.expected(s.now() + Duration::from_secs(61)), None);
    s.peer(say(ACK | PSH, 10, 1).data(b"end")).unwrap();
    assert_eq!(expected(&s), None, "only our own ACK is due");
}

/// The end of what the peer had came before a part that was lost: that part is still to come.
#[test]
fn what_is_missing_is_expected_whatever_came_behind_it() {
    for economy in [Economy::LowestEnergy, Economy::Balanced] {
        let mut s = Script::accepted(Config { economy, ..PLAIN });
        s.peer(say(ACK | PSH, 4, 1).data(b"end")).unwrap();
        assert!(expected(&s).is_some_and(|answer| answer.more));
        s.peer(say(ACK, 1, 1).data(b"the")).unwrap();
        s.peer(say(ACK | PSH, 7, 1).data(b".")).unwrap();
        assert_eq!(expected(&s), None);
    }
}

#[test]
fn economy_moves_the_first_request_and_the_pace() {
    let answer = |economy| {
        let mut s = Script::accepted(Config { economy, ..PLAIN });
        for n in 0..3 {
            s.send(300);
            s.expect(ACK, 1 + 300 * n, 1, 300);
            if n < 2 {
                s.wait_ms(80);
                s.peer(say(ACK, 1, 301 + 300 * n)).unwrap();
            }
        }
        let now = s.now();
        let answer = expected(&s).expect("an ACK is due");
        (
            answer.earliest.since(now).as_millis(),
            answer.pace.as_millis(),
        )
    };
    let [lowest, balanced, latency] = [
        Economy::LowestEnergy,
        Economy::Balanced,
        Economy::LowestLatency,
    ]
    .map(answer);
    assert_eq!(lowest, (60, 40));
    assert!(balanced.0 < 60 && balanced.1 == 20, "{balanced:?}");
    assert_eq!(latency, (0, 0));
}

/// A router that holds ACKs for other flows makes round trips of seconds. A leaf that asked ever more
/// rarely for them made them longer still, and three leaves carried a tenth of what they can.
#[test]
fn acks_of_several_segments_are_asked_for_however_long_the_round_trip() {
    for (economy, several_ms) in [(Economy::Balanced, 100), (Economy::LowestEnergy, 1_000)] {
        let mut s = Script::accepted(Config { economy, ..PLAIN });
        let rounds_ms = [900, 1_500, 2_500, 3_500, 4_000, 4_000];
        for (n, round_ms) in (0..).zip(rounds_ms) {
            s.send(300);
            s.expect(ACK, 1 + 300 * n, 1, 300);
            s.wait_ms(round_ms);
            s.peer(say(ACK, 1, 301 + 300 * n)).unwrap();
        }
        s.send(300);
        s.expect(ACK, 1_801, 1, 300);
        let alone = expected(&s).expect("an ACK is due").pace.as_millis();
        assert!(alone > 250, "{economy:?}: {alone} ms");
        s.send(2_000);
        let first = s.sent().payload.len();
        assert!(first > 300, "a full segment, behind the one before");
        let several = expected(&s).expect("ACKs are due").pace.as_millis();
        assert_eq!(several, several_ms, "{economy:?}");
    }
}

/// A mote that sleeps measures what it waits: answers that come when they are asked for, some
/// of them a request later, must not make it wait ever longer.
#[test]
fn what_a_mote_waits_does_not_grow_by_itself() {
    for economy in [Economy::LowestEnergy, Economy::Balanced] {
        let mut s = Script::accepted(Config { economy, ..PLAIN });
        let mut wait = 0;
        for n in 0..200 {
            s.send(300);
            s.expect(ACK, 1 + 300 * n, 1, 300);
            let answer = expected(&s).expect("an ACK is due");
            wait = answer.earliest.since(s.now()).as_millis().max(80);
            let later = if n % 3 == 0 {
                answer.pace.as_millis()
            } else {
                0
            };
            s.wait_ms(wait + later + 10);
            s.peer(say(ACK, 1, 301 + 300 * n)).unwrap();
        }
        assert!(wait <= 160, "{economy:?}: {wait} ms of 80");
    }
}
