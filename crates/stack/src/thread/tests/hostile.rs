//! Messages of strangers: recordings, forgeries, floods.

use super::*;

#[test]
fn the_signal_of_a_recording_says_nothing_of_the_parent() {
    let mut lone = Lone::attached();
    let advertisement = lone.sealed(PARENT, command::ADVERTISEMENT, &[]);
    lone.take((PARENT, local(CHILD)), &advertisement).unwrap();
    let ends = Ends {
        src: local(PARENT),
        dst: local(CHILD),
    };
    let mut again = advertisement;
    let taken = lone
        .child
        .on_message(&ends, &mut again, Some(-99), lone.now);
    assert!(matches!(taken, Err(MleDrop::Replayed)));
    assert_eq!(lone.child.margin, 60);
}

/// All nodes have the key: what the parent has told another child opens, and its counter is new.
#[test]
fn a_message_for_another_child_that_a_stranger_sends_on_has_no_effect() {
    let mut lone = Lone::attached();
    let to = local([0x02, 0, 0, 0, 0, 0, 0, 77]);
    let ends = Ends {
        src: local(PARENT),
        dst: to,
    };
    let numbers = Numbers {
        sequence: 0,
        counter: 5_000,
    };
    let mut out = [0; 80];
    let mut builder = Builder::new(command::CHILD_UPDATE_RESPONSE, &mut out);
    builder.tlv(tlv::STATUS, &[&[1]]);
    let len = builder.seal(&KEY, &ends, numbers).unwrap();
    let taken = lone.take((PARENT, to), &out[..len]);
    assert_eq!(taken, Err(MleDrop::NotLocal));
    assert_eq!(lone.child.state(), ChildState::Attached);
}

/// Ten thousand messages, each changed in a bit, repeated, or of another key, in each state: none of
/// them has an effect, and each is counted.
#[test]
fn mutated_messages_have_no_effect_and_are_counted() {
    let mut lone = Lone::attached();
    let mut searching = Lone::new(None);
    searching.poll();
    let before = lone.now;
    let mut rng = Rng::from_seed([5, 6]);
    let all: [(u8, &[u8]); 6] = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0]),
        (tlv::LEADER_DATA, &[1; 8]),
        (tlv::STATUS, &[1]),
        (tlv::CHALLENGE, &[3; 8]),
        (tlv::NETWORK_DATA, &PREFIX),
        (tlv::ADDRESS16, &[0xa8, 9]),
    ];
    for n in 0..10_000_u32 {
        let command = rng.below(17) as u8;
        let mut bytes = lone.sealed(PARENT, command, &all);
        let at = rng.below(bytes.len() as u32) as usize;
        bytes[at] ^= 1 << rng.below(8);
        if n % 5 == 0 {
            bytes.truncate(at);
        }
        for lone in [&mut lone, &mut searching] {
            // So rare that each is opened.
            lone.now += Duration::from_millis(20);
            assert!(lone.take((PARENT, local(CHILD)), &bytes).is_err());
        }
    }
    (lone.now, searching.now) = (before, before);
    // A recording of what was believed, and a message of one who has the key of another network.
    let bytes = lone.sealed(PARENT, command::ADVERTISEMENT, &all[..1]);
    lone.take((PARENT, local(CHILD)), &bytes).unwrap();
    assert_eq!(
        lone.take((PARENT, local(CHILD)), &bytes),
        Err(MleDrop::Replayed)
    );
    for lone in [&mut lone, &mut searching] {
        let reasons = [
            MleDrop::Malformed,
            MleDrop::Unsecured,
            MleDrop::Forged,
            MleDrop::Replayed,
        ];
        let dropped: u32 = reasons.iter().map(|reason| lone.dropped(*reason)).sum();
        assert!(dropped >= 10_000, "{dropped}");
        assert_eq!(lone.child.due & !Due::PARENT_REQUEST, 0);
    }
    assert!(lone.child.is_attached() && lone.poll().is_empty());
    assert_eq!(lone.child.partition(), 0x0d22_7de2);
    assert_eq!(searching.child.state(), ChildState::Searching);
    assert!(searching.child.candidate.is_none());
}

/// A recording of a request of an earlier key sequence, sent again and again.
#[test]
fn a_request_of_the_past_is_answered_at_once_and_then_rarely() {
    let mut lone = Lone::attached();
    let recorded = lone.sealed(
        PARENT,
        command::CHILD_UPDATE_REQUEST,
        &[(tlv::CHALLENGE, &[9; 8])],
    );
    lone.sequence = 5;
    let leader = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
    ];
    lone.hear(PARENT, command::ADVERTISEMENT, &leader).unwrap();
    lone.poll();
    let mut drawn = 0;
    for n in 0..600 {
        let taken = lone.take((PARENT, local(CHILD)), &recorded);
        assert_eq!(taken.is_ok(), n % 150 == 0, "{n}");
        let sent = lone.poll();
        drawn += sent.len();
        // The parent is there, and answers what it is asked.
        if let Some(challenge) = sent.iter().find_map(|sent| sent.tlv(tlv::CHALLENGE)) {
            let answer = [leader[0], leader[1], (tlv::RESPONSE, &challenge[..])];
            lone.hear(PARENT, command::CHILD_UPDATE_RESPONSE, &answer)
                .unwrap();
        }
        lone.now += Duration::from_millis(100);
    }
    // Two for each of them, and one that keeps the parent.
    assert!((8..=9).contains(&drawn), "{drawn} frames drawn in a minute");
    assert!(lone.child.is_attached());
}

/// The cipher is the battery's: strangers do not say how often it runs.
#[test]
fn a_flood_is_not_opened_and_the_parent_is_heard_again_after_it() {
    let mut lone = Lone::attached();
    let mut searching = Lone::new(None);
    searching.poll();
    for lone in [&mut lone, &mut searching] {
        let mut forged = lone.sealed(PARENT, command::ADVERTISEMENT, &[]);
        *forged.last_mut().unwrap() ^= 1;
        for _ in 0..1_000 {
            assert!(lone.take((PARENT, local(CHILD)), &forged).is_err());
            lone.now += Duration::from_millis(1);
        }
        let opened = lone.dropped(MleDrop::Forged);
        assert!((32..=90).contains(&opened), "{opened} opened");
        assert_eq!(opened + lone.dropped(MleDrop::Rationed), 1_000);
        lone.now += Duration::from_millis(20);
    }
    lone.hear(PARENT, command::ADVERTISEMENT, &[]).unwrap();
    searching.offer(PARENT, 0xa800, 80, 0).unwrap();
    // What is believed costs nothing of that.
    for _ in 0..100 {
        lone.hear(PARENT, command::ADVERTISEMENT, &[]).unwrap();
    }
    // What is for all is no offer, and is not opened.
    let before = searching.dropped(MleDrop::NotParent);
    searching
        .take((OTHER, ALL_NODES), &hex(ADVERTISEMENT))
        .unwrap_err();
    assert_eq!(searching.dropped(MleDrop::NotParent), before + 1);
}

/// It is answered, since the parent may have lost its key sequence; but it may as well be a recording
/// that a stranger sends from afar.
#[test]
fn the_signal_of_a_request_of_the_past_says_nothing_of_the_parent() {
    let mut lone = Lone::attached();
    let challenge = [(tlv::CHALLENGE, &[9; 8][..])];
    let mut recorded = lone.sealed(PARENT, command::CHILD_UPDATE_REQUEST, &challenge);
    lone.sequence = 5;
    lone.hear(PARENT, command::ADVERTISEMENT, &[]).unwrap();
    let ends = Ends {
        src: local(PARENT),
        dst: local(CHILD),
    };
    let taken = lone
        .child
        .on_message(&ends, &mut recorded, Some(-99), lone.now);
    assert!(taken.is_ok());
    assert_eq!(lone.child.margin, 60);
}

/// 110 messages a second in the lost parent's name, while the child rests and while it searches.
/// Routers of `OpenThread` answer within half a second.
#[test]
fn a_flood_keeps_no_offer_of_a_router_from_a_search() {
    let mut lone = Lone::attached();
    (0..3).for_each(|_| lone.child.on_sent(false, lone.now));
    let mut forged = lone.sealed(PARENT, command::ADVERTISEMENT, &[]);
    *forged.last_mut().unwrap() ^= 1;
    let (mut offers, mut asked_at) = (0, None);
    while offers < 20 {
        lone.now += Duration::from_micros(9_090);
        let asks = !lone.poll().is_empty() && lone.child.quest == Quest::Routers;
        asked_at = asks.then_some(lone.now).or(asked_at);
        let _ = lone.take((PARENT, local(CHILD)), &forged);
        if asked_at.is_some_and(|at| lone.now.since(at) > Duration::from_millis(490)) {
            // So weak a one is asked for an address when the round is over, and gives none.
            lone.offer(OTHER, 0x4400, 5, 0).unwrap();
            (offers, asked_at) = (offers + 1, None);
        }
    }
    let rationed = lone.dropped(MleDrop::Rationed);
    assert!(rationed > 500, "the ration was used up: {rationed}");
}
