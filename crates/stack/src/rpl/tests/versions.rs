//! A newer version of the DODAG that the parent does not confirm, and how soon a new one is spread.

use core::ops::Range;

use super::lab::{iid, link_local};
use super::messages::{Bench, ROOT, Says, bytes_of, says};
use crate::rpl::{ControlMessage, Destination, FrameReport, MessageDrop, RplRole};
use crate::time::Duration;
use crate::wire::rpl::{Dis, Message};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The DIO of a neighbour that is in the version after the mote's.
fn newer(from: usize, rank: u16) -> Says {
    Says {
        version: 241,
        ..says(from, rank)
    }
}

fn version(bench: &Bench) -> u8 {
    bench.rpl.dodag().unwrap().version
}

/// A mote below 0 that knows neighbours 7 and 8; `proven`: they have acknowledged frames.
fn among_neighbours(proven: bool) -> Bench {
    let mut bench = Bench::joined(RplRole::Router);
    for neighbour in [7, 8] {
        bench.dio(&says(neighbour, 300)).unwrap();
        bench.acknowledges(neighbour, if proven { 5 } else { 0 });
    }
    bench.sent.clear();
    bench
}

/// Neighbours claim a newer version each `every` for `span`. The neighbours in `takes` acknowledge
/// frames, those in `answers` answer a question, too, in the version that they are in.
fn claim(
    bench: &mut Bench,
    claimants: &[usize],
    (every, span): (Duration, Duration),
    takes: &[usize],
    answers: &[Says],
) {
    let until = bench.now + span;
    let mut next = bench.now;
    let mut seen = 0;
    while bench.now < until {
        if bench.now >= next {
            for claimant in claimants {
                let _ = bench.dio(&newer(*claimant, 300));
            }
            next = bench.now + every;
        }
        bench.run(ms(10));
        for (to, message) in bench.sent.split_off(seen) {
            bench.sent.push((to, message));
            for node in 0..60 {
                if to != Destination::Neighbour(iid(node)) {
                    continue;
                }
                let (attempts, passed) = if takes.contains(&node) {
                    (1, true)
                } else {
                    (8, false)
                };
                let report = FrameReport::of(attempts, passed);
                bench.rpl.on_sent(iid(node), report, bench.now);
                let answer = answers.iter().find(|says| says.from == node);
                if let Some(says) = answer.filter(|_| message == ControlMessage::Dis) {
                    let _ = bench.message(link_local(node), false, &says.bytes());
                }
            }
        }
        seen = bench.sent.len();
    }
}

/// The parent acknowledges frames, but its answers are lost on their way: frames of a few bytes
/// pass where those of a hundred do not.
#[test]
fn a_claimant_is_followed_where_the_parent_does_not_answer() {
    for proven in [true, false] {
        for every in [200, 1_500, 6_000] {
            let mut bench = among_neighbours(proven);
            let span = (ms(every), ms(12_000));
            claim(&mut bench, &[7], span, &[0, 7], &[newer(7, 300)]);
            assert_eq!(version(&bench), 241, "each {every} ms, proven: {proven}");
            assert_eq!(bench.rpl.parent(), Some(iid(7)), "each {every} ms");
            assert_eq!((bench.questions(0), bench.questions(7)), (3, 1));
        }
    }
}

/// A claimant that takes no frame keeps nobody from being asked.
#[test]
fn every_claimant_is_asked_once_in_a_round() {
    let mut bench = among_neighbours(true);
    let span = (ms(300), ms(12_000));
    claim(&mut bench, &[8, 7], span, &[0, 7], &[newer(7, 300)]);
    assert_eq!((version(&bench), bench.rpl.parent()), (241, Some(iid(7))));
    assert!(bench.questions(8) <= 1, "{}", bench.questions(8));
}

/// However many claims come, one question a second is sent, and the parent's denial ends them.
#[test]
fn claims_that_nobody_confirms_change_nothing() {
    let invented: &[usize] = &[];
    let deny = [says(7, 300), says(8, 300)];
    for (name, takes, answers) in [
        ("nobody is there", invented, &[][..]),
        ("they do not answer", &[7, 8], &[][..]),
        ("they deny it", &[7, 8], &deny[..]),
    ] {
        let mut bench = among_neighbours(true);
        let takes = [takes, &[0]].concat();
        let span = (ms(50), ms(60_000));
        claim(&mut bench, &[7, 8], span, &takes, answers);
        assert_eq!(
            (version(&bench), bench.rpl.parent()),
            (240, Some(iid(0))),
            "{name}"
        );
        let asked = [0, 7, 8].map(|node| bench.questions(node));
        assert!(asked.iter().sum::<usize>() <= 75, "{name}: {asked:?}");
        assert!(
            asked[1].max(asked[2]) <= 1 + asked[0] / 3,
            "{name}: {asked:?}"
        );
        assert!(asked[0] > 20, "{name}: {asked:?}");
    }
    // The parent knows nothing of it: nobody else is asked.
    let mut bench = among_neighbours(true);
    let answers = [says(0, 128), newer(7, 300)];
    claim(&mut bench, &[7], (ms(500), ms(30_000)), &[0, 7], &answers);
    assert_eq!((version(&bench), bench.rpl.parent()), (240, Some(iid(0))));
    assert_eq!(bench.questions(7), 0);
}

/// Invented neighbours take turns at claims, each 500 ms for so many turns, the first of them after
/// `turn` others. Node 0 takes frames.
fn claim_in_turn(bench: &mut Bench, turns: Range<usize>, answers: &[Says]) {
    for turn in turns {
        for invented in [says, newer] {
            let _ = bench.dio(&invented(20 + turn % INVENTED, 300));
        }
        claim(bench, &[], (ms(500), ms(500)), &[0], answers);
    }
}

/// How many invented neighbours take turns.
const INVENTED: usize = 30;

/// Claims in turn prolong no round of questions: the parent is heard soon.
#[test]
fn invented_claimants_keep_no_question_from_the_parent() {
    for turns in 40..60 {
        let mut bench = Bench::joined(RplRole::Router);
        claim_in_turn(&mut bench, 0..turns, &[]);
        let others: usize = (20..60).map(|node| bench.questions(node)).sum();
        let parent = bench.questions(0);
        assert!(parent + 3 >= others && others > 0, "{parent} {others}");
        let _ = bench.dio(&newer(0, 128));
        claim_in_turn(&mut bench, turns..turns + 14, &[newer(0, 128)]);
        assert_eq!((version(&bench), bench.rpl.parent()), (241, Some(iid(0))));
    }
}

/// The parent speaks once, while claimants are asked: it is asked after them.
#[test]
fn a_parent_that_speaks_while_claimants_are_asked_is_asked_after_them() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.sent.clear();
    claim_in_turn(&mut bench, 0..3, &[]);
    while (20..60).all(|node| bench.questions(node) == 0) {
        bench.run(ms(10));
    }
    assert_eq!(bench.questions(0), 3);
    let _ = bench.dio(&newer(0, 128));
    claim(
        &mut bench,
        &[],
        (ms(500), ms(5_000)),
        &[0],
        &[newer(0, 128)],
    );
    let asked = [0, 20, 21, 22].map(|node| bench.questions(node));
    assert_eq!((version(&bench), asked), (241, [4, 1, 1, 1]));
}

/// A round has few strangers, and all claimants that have acknowledged frames.
#[test]
fn strangers_that_claim_leave_room_for_known_neighbours() {
    let mut bench = among_neighbours(true);
    claim_in_turn(&mut bench, 0..4, &[]);
    let span = (ms(20_000), ms(20_000));
    claim(&mut bench, &[7, 8], span, &[0, 7, 8], &[]);
    let strangers: usize = (20..60).map(|node| bench.questions(node)).sum();
    let asked = [0, 7, 8].map(|node| bench.questions(node));
    assert_eq!((asked, strangers), ([3, 1, 1], 3));
}

/// Where the radio reports no acknowledgement, the answer itself shows that the claimant exists.
#[test]
fn a_claimant_is_followed_over_a_radio_that_ceases_to_report() {
    let unknown = FrameReport {
        acknowledged: None,
        ..FrameReport::of(1, true)
    };
    let mut bench = Bench::joined(RplRole::Router);
    bench.dio(&says(7, 300)).unwrap();
    claim(&mut bench, &[7], (ms(4_000), ms(2_500)), &[0], &[]);
    for _ in 0..200 {
        if bench.questions(7) == 0 {
            bench.run(ms(10));
        }
    }
    bench.rpl.on_sent(iid(7), unknown, bench.now);
    let answer = newer(7, 300).bytes();
    assert_eq!(bench.message(link_local(7), false, &answer), Ok(()));
    assert_eq!(version(&bench), 241);
}

/// The parent denies a newer version late, once a claimant is asked.
#[test]
fn a_late_denial_of_the_parent_ends_the_round() {
    let mut bench = among_neighbours(true);
    claim(&mut bench, &[7, 8], (ms(4_000), ms(2_500)), &[0], &[]);
    for _ in 0..200 {
        if bench.questions(7) == 0 {
            bench.run(ms(10));
        }
    }
    bench
        .message(link_local(0), false, &says(0, 128).bytes())
        .unwrap();
    let confirmed = bench.message(link_local(7), false, &newer(7, 300).bytes());
    assert_eq!(confirmed, Err(MessageDrop::StrangeVersion));
    claim(
        &mut bench,
        &[],
        (ms(4_000), ms(4_000)),
        &[0, 7, 8],
        &[says(0, 128)],
    );
    assert_eq!((version(&bench), bench.questions(8)), (240, 0));
}

/// Messages in the parent's name, which does not answer, keep no question from a claimant.
#[test]
fn claims_in_the_parents_name_keep_no_question_from_a_claimant() {
    let mut bench = among_neighbours(true);
    let span = (ms(100), ms(8_000));
    claim(&mut bench, &[0, 7], span, &[0, 7], &[newer(7, 300)]);
    assert_eq!((version(&bench), bench.rpl.parent()), (241, Some(iid(7))));
}

/// An answer without a question, or without an acknowledgement that shows that somebody is there.
#[test]
fn a_claim_that_was_not_asked_for_changes_nothing() {
    let mut bench = among_neighbours(false);
    claim(&mut bench, &[7], (ms(700), ms(3_000)), &[0], &[]);
    let unasked = bench.message(link_local(8), false, &newer(8, 300).bytes());
    assert_eq!(unasked, Err(MessageDrop::StrangeVersion));
    claim(
        &mut bench,
        &[],
        (ms(700), ms(2_000)),
        &[0],
        &[newer(7, 300)],
    );
    assert!(bench.questions(7) > 0);
    assert_eq!((version(&bench), bench.rpl.parent()), (240, Some(iid(0))));
}

/// Neighbours have made this node send so much that it sends no more for them: a new version is
/// news of its own.
#[test]
fn a_new_version_is_spread_at_once_whatever_was_sent_before() {
    let multicast = (Destination::All, ControlMessage::Dio { full: true });
    let spreads = |bench: &mut Bench| {
        bench.run(ms(600));
        bench.sent.contains(&multicast)
    };
    let exhausted = |mut bench: Bench| {
        bench.run(Duration::from_secs(300));
        let dis = bytes_of(&Message::Dis(Dis::default()));
        for _ in 0..200 {
            bench.message(link_local(30), true, &dis).unwrap();
            bench.run(ms(1_100));
        }
        bench.sent.clear();
        bench
    };
    let mut bench = exhausted(Bench::joined(RplRole::Router));
    bench.says_itself(&newer(0, 128)).unwrap();
    assert!(spreads(&mut bench));
    let mut bench = exhausted(Bench::new(ROOT));
    bench.rpl.repair();
    assert!(spreads(&mut bench));
}
