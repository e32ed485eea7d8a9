//! A child and its parent: updates, keys, a parent that is lost, a better one, the end.

use super::*;

#[test]
fn updates_keep_the_parent_and_four_unanswered_ones_lose_it() {
    let mut lone = Lone::attached();
    let sent = lone.run(Duration::from_secs(41));
    let [update] = &sent[..] else {
        panic!("a third of the timeout has passed: {sent:?}");
    };
    assert_eq!(update.command, command::CHILD_UPDATE_REQUEST);
    assert_eq!(update.types(), [1, 0, 11, 2, 19]);
    assert_eq!(update.tlv(tlv::TIMEOUT).unwrap(), [0, 0, 0, 240]);
    assert_eq!(update.bytes.len(), 34);
    let answer: [(u8, &[u8]); 2] = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0]),
        (tlv::LEADER_DATA, &LEADER),
    ];
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer)
        .unwrap();
    assert!(lone.run(Duration::from_secs(38)).is_empty());
    // From now on the parent is silent.
    let before = lone.now;
    let sent = lone.run(Duration::from_secs(9));
    assert!(
        sent.iter()
            .all(|sent| sent.command == command::CHILD_UPDATE_REQUEST
                || sent.command == command::PARENT_REQUEST)
    );
    assert!(
        sent[1].tlv(tlv::CHALLENGE).is_some(),
        "a repetition is challenged"
    );
    assert_eq!(lone.child.state(), ChildState::Searching);
    assert_eq!(lone.child.counters().lost, 1);
    assert_eq!(sent.last().unwrap().command, command::PARENT_REQUEST);
    assert!(lone.now.since(before) < Duration::from_secs(10));
    // The addresses stay.
    assert_eq!(lone.child.addresses().count(), 1);
    lone.offer(OTHER, 0x4400, 80, 0).unwrap();
    lone.poll();
    lone.address(OTHER, 0x4400, 0x4402).unwrap();
    assert_eq!(lone.child.place().unwrap().rloc16, 0x4402);
}

#[test]
fn a_parent_that_forgot_its_child_is_believed_by_its_answer_to_a_challenge() {
    let mut lone = Lone::attached();
    lone.run(Duration::from_secs(41));
    // It has begun anew, counters and all.
    lone.parent_counter = 0;
    let status: [(u8, &[u8]); 2] = [(tlv::SOURCE_ADDRESS, &[0xa8, 0]), (tlv::STATUS, &[1])];
    let said = lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &status);
    assert_eq!(said, Err(MleDrop::Replayed), "it may be a recording");
    let sent = lone.run(Duration::from_secs(2));
    let challenge = sent.last().unwrap().tlv(tlv::CHALLENGE).unwrap();
    let wrong = [status[0], status[1], (tlv::RESPONSE, &[0; 8][..])];
    let said = lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &wrong);
    assert_eq!(said, Err(MleDrop::Replayed));
    let right = [status[0], status[1], (tlv::RESPONSE, &challenge[..])];
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &right)
        .unwrap();
    assert_eq!(lone.child.state(), ChildState::Searching);
    assert_eq!(lone.child.refusal(), Some(Refusal::Status(1)));
    let sent = lone.run(Duration::from_millis(10));
    assert_eq!(sent[0].command, command::PARENT_REQUEST, "at once");
}

#[test]
fn the_challenge_of_a_parent_is_answered_and_confirmed_at_once() {
    let mut lone = Lone::attached();
    let theirs = [9; 8];
    let request: [(u8, &[u8]); 1] = [(tlv::CHALLENGE, &theirs)];
    lone.hear(PARENT, command::CHILD_UPDATE_REQUEST, &request)
        .unwrap();
    let sent = lone.poll();
    let commands: Vec<_> = sent.iter().map(|sent| sent.command).collect();
    assert_eq!(
        commands,
        [
            command::CHILD_UPDATE_RESPONSE,
            command::CHILD_UPDATE_REQUEST
        ]
    );
    assert_eq!(sent[0].types(), [0, 11, 1, 2, 19, 4]);
    assert_eq!(sent[0].tlv(tlv::RESPONSE).unwrap(), theirs);
}

#[test]
fn a_later_key_of_the_parent_is_followed_and_an_earlier_one_read() {
    let mut lone = Lone::attached();
    let leader: [(u8, &[u8]); 2] = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0]),
        (tlv::LEADER_DATA, &LEADER),
    ];
    // Another router's is not followed.
    lone.sequence = 9;
    assert_eq!(
        lone.hear(OTHER, command::ADVERTISEMENT, &leader),
        Err(MleDrop::NotParent)
    );
    assert_eq!(lone.child.sequence(), 0);
    lone.sequence = 5;
    lone.hear(PARENT, command::ADVERTISEMENT, &leader).unwrap();
    assert_eq!(lone.child.sequence(), 5);
    // A recording of the time before changes nothing.
    lone.sequence = 4;
    assert_eq!(
        lone.hear(PARENT, command::ADVERTISEMENT, &leader),
        Err(MleDrop::Replayed)
    );
    assert_eq!((lone.child.sequence(), lone.poll().len()), (5, 0));
    // The parent has lost its sequence: it asks in an earlier one, is answered in this node's, and
    // asked itself.
    let request: [(u8, &[u8]); 1] = [(tlv::CHALLENGE, &[9; 8])];
    lone.hear(PARENT, command::CHILD_UPDATE_REQUEST, &request)
        .unwrap();
    let sent = lone.poll();
    assert_eq!(sent[0].tlv(tlv::RESPONSE).unwrap(), [9; 8]);
    assert_eq!(sent[0].numbers.sequence, 5);
    let challenge = sent[1].tlv(tlv::CHALLENGE).expect("a challenge");
    let again = lone.hear(PARENT, command::CHILD_UPDATE_REQUEST, &request);
    assert_eq!(again, Err(MleDrop::Replayed), "one at a time");
    let answer = [leader[0], leader[1], (tlv::RESPONSE, &challenge[..])];
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer)
        .unwrap();
    assert_eq!(lone.child.sequence(), 5, "never a lower one");
    lone.hear(PARENT, command::ADVERTISEMENT, &leader).unwrap();
}

#[test]
fn a_mac_that_went_over_to_a_later_key_makes_an_update() {
    let mut lone = Lone::attached();
    lone.child.note(false, 5, 0);
    let sent = lone.poll();
    assert_eq!(sent[0].numbers.sequence, 5);
    assert_eq!(sent[0].command, command::CHILD_UPDATE_REQUEST);
    lone.child.note(false, 4, 0);
    assert!(lone.poll().is_empty());
}

#[test]
fn frames_without_ack_lose_the_parent() {
    let mut lone = Lone::attached();
    for _ in 0..10 {
        lone.child.on_sent(false, lone.now);
        lone.child.on_sent(false, lone.now);
        lone.child.on_sent(true, lone.now);
    }
    assert!(lone.child.is_attached());
    (0..3).for_each(|_| lone.child.on_sent(false, lone.now));
    assert!(!lone.child.is_attached());
    assert_eq!(lone.poll()[0].command, command::PARENT_REQUEST);
}

#[test]
fn a_poor_link_makes_it_look_for_a_better_parent_now_and_then() {
    let mut lone = Lone::attached();
    lone.child.margin = 5;
    // The parent keeps answering.
    let mut searches = Vec::new();
    for second in 0.. {
        for sent in lone.run(Duration::from_secs(1)) {
            if sent.command == command::PARENT_REQUEST {
                searches.push(lone.now);
                continue;
            }
            let mut bytes = lone.sealed(PARENT, command::CHILD_UPDATE_RESPONSE, &[]);
            let ends = Ends {
                src: local(PARENT),
                dst: local(CHILD),
            };
            let taken = lone.child.on_message(&ends, &mut bytes, None, lone.now);
            taken.unwrap();
        }
        if second > 3_600 && lone.child.quest == Quest::All {
            break;
        }
    }
    assert!((4..16).contains(&searches.len()), "{searches:?}");
    // As poor a one is no reason.
    lone.offer(OTHER, 0x4400, 5, 0).unwrap();
    assert!(lone.child.candidate.is_none());
    // Nor is the parent a better one than itself: to join it anew would cost what it keeps.
    lone.offer(PARENT, 0xa800, 50, 0).unwrap();
    assert!(lone.child.candidate.is_none());
    lone.child.margin = 5;
    lone.offer(OTHER, 0x4400, 50, 0).unwrap();
    lone.poll();
    assert_eq!(
        lone.child.place().unwrap().parent.extended,
        PARENT,
        "until it is given an address"
    );
    lone.address(OTHER, 0x4400, 0x4403).unwrap();
    assert_eq!(lone.child.place().unwrap().parent.extended, OTHER);
    // Its frames are new from the counter on that it has told, not from the former parent's.
    let told = lone.child.binding().map(|(it, next)| (it, next.counter));
    assert_eq!(told, Some((OTHER, 5)));
}

#[test]
fn a_child_that_started_again_asks_its_former_parent_first() {
    let place = Place {
        parent: Parent {
            extended: PARENT,
            rloc16: 0xa800,
        },
        rloc16: 0xa801,
    };
    let mut lone = Lone::new(Some(place));
    let sent = lone.poll();
    assert_eq!(sent[0].command, command::CHILD_UPDATE_REQUEST);
    assert_eq!(lone.child.binding(), None, "its recordings would be new");
    let challenge = sent[0].tlv(tlv::CHALLENGE).unwrap();
    let mut answer = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::LINK_FRAME_COUNTER, &[0, 0, 1, 0]),
        (tlv::RESPONSE, &[0; 8]),
    ];
    let said = lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer);
    assert_eq!(said, Err(MleDrop::Unasked));
    answer[3].1 = &challenge;
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer)
        .unwrap();
    assert_eq!(lone.child.place(), Some(place));
    assert_eq!(
        lone.child.binding(),
        Some((
            PARENT,
            Numbers {
                sequence: 0,
                counter: 256
            }
        ))
    );
    assert_eq!(lone.poll()[0].command, command::DATA_REQUEST);
    // One that does not answer is not waited for.
    let mut lone = Lone::new(Some(place));
    let sent = lone.run(Duration::from_secs(4));
    let commands: Vec<_> = sent.iter().map(|sent| sent.command).collect();
    let (update, search) = (command::CHILD_UPDATE_REQUEST, command::PARENT_REQUEST);
    assert_eq!(commands[..3], [update, update, search]);
}

#[test]
fn a_router_that_gave_no_address_is_asked_again_only_where_no_other_offers_itself() {
    for says_so in [false, true] {
        let mut lone = Lone::new(None);
        lone.poll();
        lone.offer(PARENT, 0xa800, 80, 0).unwrap();
        assert_eq!(lone.poll()[0].ends.dst, local(PARENT));
        if says_so {
            let status = [(tlv::STATUS, &[1][..])];
            lone.hear(PARENT, command::CHILD_ID_RESPONSE, &status)
                .unwrap();
        }
        let is_search = |sent: &Sent| sent.command == command::PARENT_REQUEST;
        while !lone.run(Duration::from_millis(100)).iter().any(is_search) {}
        // The better one, and another one that takes it.
        lone.offer(PARENT, 0xa800, 80, 0).unwrap();
        lone.offer(OTHER, 0x4400, 15, 2).unwrap();
        let sent = lone.run(Duration::from_secs(1));
        assert_eq!(sent[0].ends.dst, local(OTHER), "{says_so}");
    }
}

#[test]
fn it_leaves_with_a_timeout_of_zero() {
    let mut lone = Lone::attached();
    lone.child.leave();
    let sent = lone.run(Duration::from_secs(3_600));
    let [update] = &sent[..] else {
        panic!("one message, and no more: {sent:?}");
    };
    assert_eq!(update.tlv(tlv::TIMEOUT).unwrap(), [0; 4]);
    assert_eq!(
        (lone.child.state(), lone.child.next_deadline()),
        (ChildState::Left, None)
    );
}

#[test]
fn a_child_that_sleeps_says_so_and_updates_only_when_nothing_was_heard() {
    let mut lone = Lone::attached();
    lone.child.note(true, 0, 0);
    let sent = lone.poll();
    assert_eq!(sent[0].tlv(tlv::MODE).unwrap(), [0x04]);
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &[])
        .unwrap();
    // For it another part of the network data counts.
    assert_eq!(lone.poll()[0].command, command::DATA_REQUEST);
    lone.hear(PARENT, command::DATA_RESPONSE, &[(tlv::NETWORK_DATA, &[])])
        .unwrap();
    for _ in 0..10 {
        assert!(lone.run(Duration::from_secs(30)).is_empty());
        lone.child.on_heard(0, lone.now);
    }
    assert_eq!(
        lone.run(Duration::from_secs(81))[0].command,
        command::CHILD_UPDATE_REQUEST
    );
}

/// The parent's counters of MAC and MLE begin anew, in the key sequence that is in force.
#[test]
fn a_parent_that_counts_anew_is_bound_anew_by_its_answer_to_a_challenge() {
    let mut lone = Lone::attached();
    lone.parent_counter = 0;
    let leader = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::LINK_FRAME_COUNTER, &[0, 0, 0, 2]),
    ];
    let said = lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &leader);
    assert_eq!(said, Err(MleDrop::Replayed));
    let sent = lone.run(Duration::from_secs(44));
    let challenge = sent.last().unwrap().tlv(tlv::CHALLENGE).unwrap();
    assert!(!lone.child.take_recount());
    let answer = [
        leader[0],
        leader[1],
        leader[2],
        (tlv::RESPONSE, &challenge[..]),
    ];
    lone.child.take_news();
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer)
        .unwrap();
    assert!(lone.child.take_news() && lone.child.take_recount());
    let told = lone.child.binding().map(|(it, next)| (it, next.counter));
    assert_eq!(told, Some((PARENT, 2)));
    // Once; and not by an answer in which nobody's challenge is answered.
    assert!(!lone.child.take_recount());
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &leader)
        .unwrap();
    assert!(!lone.child.take_recount());
    // The same answer once more is a recording.
    let again = lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer);
    assert!(again.is_ok(), "its counter is new");
    assert!(!lone.child.take_recount());
}

#[test]
fn a_search_for_a_better_parent_and_questions_to_this_one_leave_each_other_alone() {
    let mut lone = Lone::attached();
    lone.child.margin = 5;
    // The parent keeps answering until a search begins.
    let search = loop {
        let sent = lone.run(Duration::from_millis(500));
        if let Some(search) = sent.iter().find(|it| it.command == command::PARENT_REQUEST) {
            break search.tlv(tlv::CHALLENGE).unwrap();
        }
        if !sent.is_empty() {
            faintly(&mut lone, command::CHILD_UPDATE_RESPONSE, &[]).unwrap();
        }
    };
    // Then it asks in the past, and is asked itself.
    let request = [(tlv::CHALLENGE, &[9; 8][..])];
    lone.child.note(false, 1, 0);
    lone.sequence = 1;
    faintly(&mut lone, command::ADVERTISEMENT, &[]).unwrap();
    lone.sequence = 0;
    faintly(&mut lone, command::CHILD_UPDATE_REQUEST, &request).unwrap();
    // A perfect router is asked at once, and the parent gets its answer all the same.
    let sent = lone.poll();
    let question = sent.iter().find_map(|it| it.tlv(tlv::CHALLENGE)).unwrap();
    assert_ne!(question, search);
    faintly(&mut lone, command::CHILD_UPDATE_REQUEST, &request).unwrap_err();
    lone.sequence = 1;
    faintly(&mut lone, command::CHILD_UPDATE_REQUEST, &request).unwrap();
    assert_eq!(lone.child.challenge[..], search);
    lone.offer(OTHER, 0x4400, 80, 0).unwrap();
    let commands: Vec<_> = lone.poll().iter().map(|sent| sent.command).collect();
    let (response, asked) = (command::CHILD_UPDATE_RESPONSE, command::CHILD_ID_REQUEST);
    assert_eq!(commands[..2], [response, asked]);
    let answer = [(tlv::RESPONSE, &question[..])];
    faintly(&mut lone, command::CHILD_UPDATE_RESPONSE, &answer).unwrap();
    lone.address(OTHER, 0x4400, 0x4402).unwrap();
    assert_eq!(lone.child.place().unwrap().parent.extended, OTHER);
}

/// A message of the parent, whose link stays poor.
fn faintly(lone: &mut Lone, command: u8, tlvs: &[(u8, &[u8])]) -> Result<(), MleDrop> {
    let taken = lone.hear(PARENT, command, tlvs);
    lone.child.margin = 5;
    taken
}

/// It was away for longer than its children wait for it, and has kept its memory.
#[test]
fn a_parent_that_was_lost_is_asked_as_soon_as_it_is_heard_again() {
    let mut lone = Lone::attached();
    let place = lone.child.place();
    let recorded = lone.sealed(PARENT, command::ADVERTISEMENT, &[]);
    lone.take((PARENT, local(CHILD)), &recorded).unwrap();
    (0..3).for_each(|_| lone.child.on_sent(false, lone.now));
    lone.run(Duration::from_secs(100));
    while lone.child.quest != Quest::Rest {
        lone.run(Duration::from_millis(100));
    }
    // A recording of it says nothing, nor does another router.
    let said = lone.take((PARENT, local(CHILD)), &recorded);
    assert_eq!(said, Err(MleDrop::NotParent));
    let said = lone.hear(OTHER, command::ADVERTISEMENT, &[]);
    assert_eq!(said, Err(MleDrop::NotParent));
    assert!(lone.poll().is_empty());
    let request = [(tlv::CHALLENGE, &[9; 8][..])];
    lone.hear(PARENT, command::CHILD_UPDATE_REQUEST, &request)
        .unwrap();
    let sent = lone.poll();
    assert_eq!(sent[0].command, command::CHILD_UPDATE_REQUEST);
    let challenge = sent[0].tlv(tlv::CHALLENGE).unwrap();
    let answer = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::LINK_FRAME_COUNTER, &[0, 0, 9, 0]),
        (tlv::RESPONSE, &challenge),
    ];
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer)
        .unwrap();
    assert_eq!(lone.child.place(), place);
    assert!(
        lone.child.take_recount(),
        "its frames are new from there on"
    );
}

/// A child that searches for a better parent, whose offer it has and which it asks now; the other
/// one's key sequence is `ahead` of the network's.
fn asking(ahead: u32) -> Lone {
    let mut lone = Lone::attached();
    lone.child.margin = 5;
    while lone.child.quest != Quest::Routers {
        if !lone.run(Duration::from_millis(500)).is_empty() && lone.child.quest == Quest::Rest {
            faintly(&mut lone, command::CHILD_UPDATE_RESPONSE, &[]).unwrap();
        }
    }
    lone.sequence = ahead;
    lone.offer(OTHER, 0x4400, 80, 0).unwrap();
    let sent = lone.poll();
    let asks = |sent: &Sent| sent.command == command::CHILD_ID_REQUEST;
    assert!(sent.iter().any(asks), "{sent:?}");
    lone
}

#[test]
fn the_key_of_a_candidate_is_followed_when_it_has_taken_the_child() {
    for takes in [false, true] {
        let mut lone = asking(1);
        assert_eq!(
            lone.child.sequence(),
            0,
            "its parent may have this one only"
        );
        if takes {
            lone.address(OTHER, 0x4400, 0x4401).unwrap();
        } else {
            let status = [(tlv::STATUS, &[1][..])];
            lone.hear(OTHER, command::CHILD_ID_RESPONSE, &status)
                .unwrap();
        }
        lone.poll();
        assert_eq!(lone.child.sequence(), u32::from(takes));
        let parent = lone.child.place().unwrap().parent.extended;
        assert_eq!(parent, if takes { OTHER } else { PARENT });
    }
    // One without a parent goes over to it: what it asks by is sealed with that key.
    let mut lone = Lone::new(None);
    lone.poll();
    lone.sequence = 3;
    lone.offer(PARENT, 0xa800, 80, 0).unwrap();
    assert_eq!(lone.poll()[0].numbers.sequence, 3);
    assert_eq!(lone.child.sequence(), 3);
}

#[test]
fn the_silence_of_a_candidate_is_none_of_the_parents() {
    let mut lone = asking(0);
    (0..3).for_each(|_| lone.child.on_sent(false, lone.now));
    assert!(lone.child.is_attached());
    // Once it has refused, the parent's counts, and begins at none.
    let status = [(tlv::STATUS, &[1][..])];
    lone.hear(OTHER, command::CHILD_ID_RESPONSE, &status)
        .unwrap();
    lone.poll();
    (0..2).for_each(|_| lone.child.on_sent(false, lone.now));
    assert!(lone.child.is_attached());
    lone.child.on_sent(false, lone.now);
    assert!(!lone.child.is_attached());
}

/// Its answer was held back, or recorded; by then another one had come.
#[test]
fn a_challenge_ends_with_the_first_answer_whatever_that_answers() {
    let mut lone = Lone::attached();
    let sent = lone.run(Duration::from_secs(43));
    let challenge = sent.last().unwrap().tlv(tlv::CHALLENGE).unwrap();
    let answer = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::LINK_FRAME_COUNTER, &[0, 0, 0, 2]),
        (tlv::RESPONSE, &challenge),
    ];
    let recorded = lone.sealed(PARENT, command::CHILD_UPDATE_RESPONSE, &answer);
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer[..2])
        .unwrap();
    let taken = lone.take((PARENT, local(CHILD)), &recorded);
    assert_eq!(taken, Err(MleDrop::Replayed));
    assert!(!lone.child.take_recount());
}

/// The answer to the first one may be a recording by now.
#[test]
fn a_parent_that_was_lost_is_sent_another_challenge_each_time_that_it_is_heard() {
    let mut lone = Lone::attached();
    (0..3).for_each(|_| lone.child.on_sent(false, lone.now));
    let mut challenges = Vec::new();
    for _ in 0..2 {
        while lone.child.quest != Quest::Rest {
            lone.run(Duration::from_millis(100));
        }
        lone.hear(PARENT, command::ADVERTISEMENT, &[]).unwrap();
        challenges.push(lone.poll()[0].tlv(tlv::CHALLENGE).unwrap());
        // It does not answer, and is searched for again.
        lone.run(Duration::from_secs(4));
    }
    assert_ne!(challenges[0], challenges[1]);
}

#[test]
fn promises_that_the_parent_breaks_while_it_is_asked_make_no_further_question() {
    let mut lone = Lone::attached();
    lone.child.note(true, 0, 0);
    assert_eq!(lone.poll()[0].command, command::CHILD_UPDATE_REQUEST);
    lone.child.note(true, 0, 2);
    lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &[])
        .unwrap();
    assert_eq!(lone.poll()[0].command, command::DATA_REQUEST);
    lone.child.note(true, 0, 4);
    lone.hear(PARENT, command::DATA_RESPONSE, &[(tlv::NETWORK_DATA, &[])])
        .unwrap();
    lone.child.note(true, 0, 4);
    assert!(lone.poll().is_empty());
    // Two that it breaks afterwards do.
    lone.child.note(true, 0, 6);
    assert_eq!(lone.poll()[0].command, command::CHILD_UPDATE_REQUEST);
}
