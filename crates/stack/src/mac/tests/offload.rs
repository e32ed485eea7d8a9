//! Radios that assess the channel, take ACKs, or both, by themselves.

use std::vec::Vec;

use super::bench::*;
use crate::mac::config::{ATTEMPTS_MAX, UNIT_BACKOFF_US};
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::Header;
use AttemptOutcome::{Acked, Busy, Done, Failed, NoAck, Unknown};

/// A co-processor: all by itself.
const WHOLE: RadioCapabilities = RadioCapabilities {
    assesses: true,
    takes_acks: true,
    ..RadioCapabilities::CC2420
};

/// One that leaves the ACK to the MAC.
const ASSESSING: RadioCapabilities = RadioCapabilities {
    takes_acks: false,
    ..WHOLE
};

/// One that leaves CSMA to the MAC.
const TAKING: RadioCapabilities = RadioCapabilities {
    assesses: false,
    ..WHOLE
};

const ALL: [RadioCapabilities; 3] = [WHOLE, ASSESSING, TAKING];

const ACKED: AttemptOutcome = Acked { pending: false };

const fn with_one_buffer(radio: RadioCapabilities) -> RadioCapabilities {
    RadioCapabilities {
        shared_buffer: true,
        ..radio
    }
}

/// Counters of attempts: sent, retried, channel busy, given up for that, without an ACK, resets.
fn counts(bench: &Bench) -> [u32; 6] {
    let counters = bench.mac.counters();
    [
        counters.transmissions,
        counters.retries,
        counters.channel_busy,
        counters.csma_failures,
        counters.ack_timeouts,
        counters.radio_resets,
    ]
}

#[test]
fn a_whole_attempt_is_one_order() {
    for radio in [WHOLE, with_one_buffer(WHOLE), ASSESSING] {
        let mut bench = Bench::new(radio, 1);
        bench.enqueue(PEER, 7, b"payload", Class::Own).unwrap();
        let began = bench.now;
        bench.run();
        let actions: Vec<_> = bench.actions.iter().map(|&(_, action)| action).collect();
        let expected = [
            Action::ChangeChannel { channel: 26 },
            Action::Listen,
            Action::Preload { len: 30 },
            Action::Fire,
        ];
        assert_eq!(actions, expected, "{radio:?}");
        let copied = Duration::from_micros(9 * 30);
        assert_eq!(
            bench.fired[0].0,
            began + copied,
            "the MAC backs off for nothing"
        );
        let outcome = bench.outcomes[0];
        assert!(outcome.delivered && outcome.attempts == 1);
        assert_eq!(counts(&bench), [1, 0, 0, 0, 0, 0]);
        assert_eq!(bench.mac.neighbor(PEER).unwrap().etx(), Some(128));
        assert_eq!(bench.mac.next_deadline(), None);
    }
}

#[test]
fn a_radio_that_only_takes_acks_is_told_when() {
    let mut longest = 0;
    for seed in 0..100 {
        let mut bench = Bench::new(TAKING, seed);
        bench.clear = [false].into();
        bench.send(PEER, 7);
        let began = bench.now;
        bench.run();
        assert_eq!(bench.count(|action| action == Action::AssessChannel), 2);
        assert_eq!(counts(&bench), [1, 0, 1, 0, 0, 0]);
        let waited = bench.fired[0].0.since(began).as_micros();
        longest = longest.max(waited / u64::from(UNIT_BACKOFF_US));
        assert!(bench.outcomes[0].delivered);
    }
    assert!((16..=23).contains(&longest), "two backoffs: {longest}");
}

/// What each outcome of a first attempt leads to where the following ones succeed.
#[test]
fn each_outcome_is_counted_where_it_belongs() {
    // (outcome, counters, attempts, ETX in units of 1/128)
    let cases = [
        (ACKED, [1, 0, 0, 0, 0, 0], 1, 128),
        (Acked { pending: true }, [1, 0, 0, 0, 0, 0], 1, 128),
        // Sent, and no word of the ACK that was asked for.
        (Done, [2, 1, 0, 0, 1, 0], 2, 256),
        (NoAck, [2, 1, 0, 0, 1, 0], 2, 256),
        (Busy, [1, 1, 1, 1, 0, 0], 2, 128),
        (Failed, [1, 1, 0, 0, 0, 1], 2, 128),
    ];
    for radio in [
        WHOLE,
        TAKING,
        with_one_buffer(WHOLE),
        with_one_buffer(TAKING),
    ] {
        for (outcome, expected, attempts, etx) in cases {
            let mut bench = Bench::new(radio, 2);
            bench.attempts = [outcome].into();
            bench.send(PEER, 1);
            bench.run();
            assert_eq!(counts(&bench), expected, "{outcome:?}");
            let of_it = bench.outcomes[0];
            assert_eq!(
                (of_it.delivered, of_it.attempts),
                (true, attempts),
                "{outcome:?}"
            );
            assert_eq!(
                bench.mac.neighbor(PEER).unwrap().etx(),
                Some(etx),
                "{outcome:?}"
            );
            // The same frame again: its receiver must be able to see that it is.
            assert_eq!(bench.fired.len(), usize::from(attempts));
            assert!(
                bench
                    .fired
                    .iter()
                    .all(|(_, psdu)| *psdu == bench.fired[0].1)
            );
            let copies = match radio.shared_buffer || outcome == Failed {
                true => usize::from(attempts),
                false => 1,
            };
            assert_eq!(bench.preloads(), copies, "{outcome:?}");
        }
    }
}

#[test]
fn a_frame_for_all_has_one_attempt_whatever_the_radio_says_of_acks() {
    // (outcome, delivered, counters)
    let cases = [
        (Done, None, [1, 0, 0, 0, 0, 0]),
        (Unknown, None, [1, 0, 0, 0, 0, 0]),
        (ACKED, None, [1, 0, 0, 0, 0, 0]),
        (NoAck, None, [1, 0, 0, 0, 0, 0]),
        (Busy, Some(FrameDrop::ChannelBusy), [0, 0, 1, 1, 0, 0]),
        (Failed, Some(FrameDrop::RadioSilent), [0, 0, 0, 0, 0, 1]),
    ];
    for radio in ALL {
        for (outcome, reason, expected) in cases {
            let mut bench = Bench::new(radio, 3);
            bench.attempts = [outcome].into();
            bench.send(LinkAddr::BROADCAST, 1);
            bench.run();
            assert_eq!(bench.outcomes[0].reason, reason, "{outcome:?}");
            assert_eq!(counts(&bench), expected, "{outcome:?}");
            assert_eq!(bench.fired.len(), 1);
            assert!(bench.mac.neighbor(LinkAddr::BROADCAST).is_none());
        }
    }
}

/// Without ACKs every frame that was sent is delivered, and says nothing of its receiver.
#[test]
fn frames_that_ask_for_no_ack_are_done_when_they_are_sent() {
    for outcome in [Done, ACKED, NoAck, Unknown] {
        let mut config = Config::new(PAN, ME);
        config.acknowledged = false;
        let mut bench = Bench::with(config, WHOLE, 4, 4, 4);
        bench.attempts = [outcome].into();
        bench.send(PEER, 1);
        bench.run();
        assert!(bench.outcomes[0].delivered, "{outcome:?}");
        assert_eq!(counts(&bench), [1, 0, 0, 0, 0, 0]);
        assert!(bench.mac.neighbor(PEER).is_none());
    }
}

/// A frame of which the radio does not know whether it was acknowledged is done with, after one
/// attempt, and leaves what is known of its neighbour as it was.
#[test]
fn an_unknown_outcome_shows_nothing() {
    for radio in [WHOLE, TAKING, with_one_buffer(WHOLE)] {
        let mut bench = Bench::new(radio, 6);
        assert!(bench.mac.neighbors.is_doubtful(PEER));
        bench.attempts = [Unknown; 40].into();
        for token in 1..=20 {
            bench.send(PEER, token);
            bench.run();
        }
        assert_eq!(counts(&bench), [20, 0, 0, 0, 0, 0]);
        for outcome in &bench.outcomes {
            let of_it = (outcome.delivered, outcome.acknowledged, outcome.attempts);
            assert_eq!(of_it, (true, false, 1));
        }
        let etx = |bench: &Bench| bench.mac.neighbor(PEER).and_then(Neighbor::etx);
        assert_eq!(etx(&bench), None);
        // Nobody can show that it is there, so nobody is held for made up.
        assert!(!bench.mac.neighbors.is_doubtful(PEER));
        // The first ACK counts alone, and from then on strangers are doubted again.
        bench.attempts = [ACKED].into();
        bench.send(PEER, 30);
        bench.run();
        assert!(bench.outcomes.last().unwrap().acknowledged);
        assert_eq!(etx(&bench), Some(128));
        assert!(bench.mac.neighbors.is_doubtful(OTHER));
        bench.attempts = [NoAck, Unknown].into();
        bench.send(PEER, 31);
        bench.run();
        assert_eq!(etx(&bench), Some(256), "one attempt of three is unknown");
    }
}

#[test]
fn all_attempts_in_vain_end_with_the_reason_of_the_last() {
    // (outcome, reason, counters, whether the neighbour's link is worse for it)
    let cases = [
        (NoAck, FrameDrop::NoAck, [8, 7, 0, 0, 8, 0], true),
        (Busy, FrameDrop::ChannelBusy, [0, 7, 8, 8, 0, 0], false),
        (Failed, FrameDrop::RadioSilent, [0, 7, 0, 0, 0, 8], false),
    ];
    for radio in [WHOLE, TAKING, with_one_buffer(WHOLE)] {
        for (outcome, reason, expected, is_worse) in cases {
            let mut bench = Bench::new(radio, 5);
            bench.send(PEER, 0);
            bench.run();
            let before = counts(&bench);
            bench.attempts = [outcome; 8].into();
            bench.send(PEER, 1);
            bench.run();
            let failed = bench.outcomes[1];
            assert_eq!(
                (failed.reason, failed.attempts),
                (Some(reason), ATTEMPTS_MAX)
            );
            // What was not sent says nothing of the link, whoever counts its attempts.
            let unsent = if is_worse { 0 } else { ATTEMPTS_MAX };
            assert_eq!(failed.unsent, unsent, "{reason:?}");
            assert_eq!(bench.mac.counters().dropped(reason), 1);
            let after = counts(&bench);
            let counted: Vec<u32> = after.iter().zip(before).map(|(a, b)| a - b).collect();
            assert_eq!(counted, expected);
            let etx = bench.mac.neighbor(PEER).unwrap().etx();
            assert_eq!(
                etx,
                Some(if is_worse { 9 * 128 } else { 128 }),
                "{reason:?}"
            );
            assert!(!bench.mac.neighbors.is_doubtful(PEER));
            // Of one that is there whatever the channel does, all frames have all their attempts.
            for token in 2..8 {
                bench.attempts = [outcome; 8].into();
                bench.send(PEER, token);
                bench.run();
            }
            assert_eq!(
                bench.mac.neighbors.is_doubtful(PEER),
                is_worse,
                "{reason:?}"
            );
            bench.attempts.clear();
            bench.send(PEER, 9);
            bench.run();
            assert!(bench.outcomes.last().unwrap().delivered);
        }
    }
}

#[test]
fn retries_wait_uniformly_in_0_to_d() {
    for outcome in [NoAck, Busy, Failed] {
        let mut waits = Vec::new();
        for seed in 0..200 {
            let mut bench = Bench::new(with_one_buffer(WHOLE), seed);
            bench.attempts = [outcome].into();
            bench.send(PEER, 1);
            bench.run_until(|bench| counts(bench)[2..].iter().any(|count| *count > 0));
            let failed_at = bench.now;
            bench.run();
            let copies = bench.actions.iter().rev();
            let copied = copies
                .clone()
                .find(|(_, action)| matches!(action, Action::Preload { .. }));
            waits.push(copied.unwrap().0.since(failed_at).as_micros());
        }
        let (min, max) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(
            *min < 2_000 && (38_000..=40_000).contains(max),
            "{min}..{max}"
        );
    }
}

/// The ACK comes as a frame, within the time that it always has.
#[test]
fn where_the_radio_only_assesses_the_mac_takes_the_ack() {
    // It cannot know of ACKs, so what it says of them means that the frame was sent.
    for outcome in [Done, ACKED, NoAck] {
        let mut bench = Bench::new(ASSESSING, 6);
        bench.attempts = [outcome; 2].into();
        bench.acked = [false, true].into();
        bench.send(PEER, 1);
        bench.run();
        assert!(bench.outcomes[0].delivered);
        assert_eq!(bench.outcomes[0].attempts, 2);
        assert_eq!(counts(&bench), [2, 1, 0, 0, 1, 0]);
    }
    let mut bench = Bench::new(ASSESSING, 6);
    bench.attempts = [Busy, Failed].into();
    bench.send(PEER, 1);
    bench.run();
    assert_eq!(counts(&bench), [1, 2, 1, 1, 0, 1]);
}

#[test]
fn a_radio_that_never_answers_is_reset() {
    for radio in ALL {
        let mut bench = Bench::new(radio, 7);
        bench.swallow = Some(|answer| matches!(answer, Answer::Sent(..)));
        bench.send(PEER, 1);
        bench.run();
        assert_eq!(bench.outcomes[0].reason, Some(FrameDrop::RadioSilent));
        assert_eq!(bench.mac.counters().radio_resets, 8);
        assert_eq!(bench.count(|action| action == Action::Listen), 9);
        assert_eq!(bench.mac.counters().ack_timeouts, 0);
        let between = bench.fired[1].0.since(bench.fired[0].0);
        let timeout = bench.mac.config().answer_timeout;
        assert!(between >= timeout && between < timeout + Duration::from_millis(60));
        bench.swallow = None;
        bench.send(PEER, 2);
        bench.run();
        assert!(bench.outcomes[1].delivered, "recovers");
    }
}

/// Answers that no attempt waits for: unasked, early, late and twice.
#[test]
fn an_answer_to_nothing_changes_nothing() {
    let answers = [ACKED, Done, NoAck, Busy, Failed];
    for radio in [
        WHOLE,
        TAKING,
        ASSESSING,
        with_one_buffer(WHOLE),
        SHARED,
        SEPARATE,
    ] {
        let reaches: [fn(&Bench) -> bool; 3] = [
            |_| true,
            |bench| bench.preloads() == 1,
            |bench| bench.count(|action| action == Action::AssessChannel) == 1,
        ];
        for reached in reaches {
            let mut bench = Bench::new(radio, 8);
            bench.send(PEER, 1);
            bench.run_until(|bench| reached(bench) || bench.mac.queue_len() == 0);
            let before = std::format!("{:?}", bench.mac);
            for outcome in answers {
                let at = bench.now;
                bench.event(Event::Sent { outcome, at });
                assert_eq!(std::format!("{:?}", bench.mac), before, "{outcome:?}");
            }
            bench.run();
            assert_eq!(bench.outcomes.len(), 1);
            assert!(bench.outcomes[0].delivered);
            // Twice.
            let before = std::format!("{:?}", bench.mac);
            bench.event(Event::Sent {
                outcome: NoAck,
                at: bench.now,
            });
            assert_eq!(std::format!("{:?}", bench.mac), before);
        }
    }
    // Late: the attempt was given up, and the frame waits for its next one.
    let mut bench = Bench::new(WHOLE, 9);
    bench.swallow = Some(|answer| matches!(answer, Answer::Sent(..)));
    bench.send(PEER, 1);
    bench.run_until(|bench| bench.mac.counters().radio_resets == 1);
    let before = std::format!("{:?}", bench.mac);
    bench.event(Event::Sent {
        outcome: ACKED,
        at: bench.now,
    });
    assert_eq!(std::format!("{:?}", bench.mac), before);
}

/// An ACK that comes as a frame to a MAC whose radio takes them: it heard one of another node's.
#[test]
fn acks_as_frames_mean_nothing_to_one_whose_radio_takes_them() {
    let mut bench = Bench::new(WHOLE, 10);
    bench.send(PEER, 1);
    bench.run_until(|bench| !bench.fired.is_empty());
    let dsn = bench.fired[0].1[2];
    assert_eq!(bench.hear(&frame(Header::ack(dsn, false), &[])), None);
    assert_eq!(bench.mac.counters().dropped(FrameDrop::StrayAck), 1);
    assert!(bench.mac.poll_outcome().is_none());
    bench.run();
    assert!(bench.outcomes[0].delivered);
}

/// A driver of the other kind by mistake: it reports that the frame was sent, and no ACK is heard.
#[test]
fn the_report_of_the_other_kind_of_radio_is_no_ack() {
    let mut bench = Bench::new(WHOLE, 11);
    bench.swallow = Some(|answer| matches!(answer, Answer::Sent(..)));
    bench.send(PEER, 1);
    bench.run_until(|bench| !bench.fired.is_empty());
    bench.event(Event::TransmitDone { at: bench.now });
    bench.event(Event::Sent {
        outcome: ACKED,
        at: bench.now,
    });
    bench.swallow = None;
    bench.run();
    assert_eq!(counts(&bench), [2, 1, 0, 0, 1, 0]);
    assert!(bench.outcomes[0].delivered);
}

#[test]
fn the_spacing_is_kept_behind_an_ack_that_the_radio_took() {
    let long = [0; 90];
    for radio in [WHOLE, TAKING] {
        let mut config = Config::new(PAN, ME);
        (config.be_min, config.be_max) = (0, 0);
        let lifs = config.lifs;
        let mut bench = Bench::with(config, radio, 8, 4, 12);
        bench.copy_us_per_byte = 0;
        for token in 0..4 {
            bench.enqueue(PEER, token, &long, Class::Control).unwrap();
        }
        bench.run();
        let (backoff, ahead) = match radio.assesses {
            true => (1_120, Duration::from_micros(128)),
            false => (0, Duration::ZERO),
        };
        for pair in bench.fired.windows(2) {
            let air = 192 + 32 * (6 + pair[0].1.len() as u64);
            let ack_end = pair[0].0 + Duration::from_micros(backoff + air + 192 + 352);
            let next = pair[1].0 + config::TURNAROUND + ahead;
            assert!(next.since(ack_end) >= lifs, "{radio:?}");
            assert!(
                next.since(ack_end) <= lifs + Duration::from_micros(200),
                "{radio:?}"
            );
        }
    }
}

#[test]
fn a_frame_for_all_is_sent_once_on_each_channel() {
    for radio in ALL {
        let mut config = Config::new(PAN, ME);
        config.channels = Channels::of(&[15, 20, 26]);
        let mut bench = Bench::with(config, radio, 8, 4, 13);
        bench.send(LinkAddr::BROADCAST, 1);
        bench.send(PEER, 2);
        bench.run();
        assert!(bench.outcomes.iter().all(|outcome| outcome.delivered));
        let mut tuned = 0;
        let mut fired = Vec::new();
        for &(_, action) in &bench.actions {
            match action {
                Action::ChangeChannel { channel } => tuned = channel,
                Action::Fire => fired.push(tuned),
                _ => {}
            }
        }
        let home = Channels::of(&[15, 20, 26]).home(PEER).unwrap();
        assert_eq!(fired, [15, 20, 26, home]);
        assert_eq!(
            tuned,
            bench.mac.home(),
            "in the end it is where it can be found"
        );
    }
}

/// Nothing waits in such a radio for its condition: it could not be sent at once.
#[test]
fn frames_with_a_condition_take_the_normal_path() {
    for radio in ALL {
        let mut bench = Bench::new(radio, 14);
        assert!(!bench.mac.can_preload());
        let frame = Frame {
            to: PEER,
            token: 1,
            payload: b"x",
            class: Class::Forward,
            since: bench.now,
        };
        let condition = Condition {
            from: OTHER,
            protocol: Protocol::FRAGMENTS,
        };
        let until = bench.now + Duration::from_secs(1);
        bench
            .mac
            .enqueue_conditional(&frame, condition, until)
            .unwrap();
        assert_eq!(bench.mac.waits_until(), None);
        bench.run();
        assert!(bench.outcomes[0].delivered && bench.outcomes[0].attempts == 1);
        assert_eq!(bench.mac.counters().immediate, 0);
    }
}

#[cfg(feature = "sleepy")]
#[test]
fn the_pending_bit_of_an_ack_that_the_radio_took_keeps_a_child_awake() {
    for radio in [WHOLE, TAKING] {
        for pending in [false, true] {
            let mut bench = Bench::new(radio, 15);
            let interval = Duration::from_secs(1);
            bench
                .mac
                .set_sleep(Some(Sleep::new(Policy::Fixed(interval))));
            bench.mac.keep(Some(PEER));
            bench.more = [pending; 3].into();
            bench.run_to(Instant::from_micros(3_900_000));
            let counters = *bench.mac.poll_counters();
            let promised = 3 * u32::from(pending);
            assert_eq!((counters.polls, counters.hits), (3, promised));
            assert_eq!(counters.unanswered, promised, "nothing follows here");
            let (header, _) = Header::parse(&bench.fired[0].1).unwrap();
            assert!(header.ack_request);
            let mut on_since = None;
            let mut longest = Duration::ZERO;
            for &(at, action) in bench.actions.iter().skip(6) {
                match action {
                    Action::Listen => on_since = Some(at),
                    Action::Sleep => {
                        let since = on_since.take().unwrap_or(at);
                        longest = longest.max(at.since(since));
                    }
                    _ => {}
                }
            }
            let waits = longest >= poll::ANSWER_TIMEOUT;
            assert_eq!(waits, pending, "{longest:?}");
        }
    }
}

#[cfg(feature = "sleepy")]
#[test]
fn a_request_that_fails_is_made_again() {
    for (outcome, polls) in [(NoAck, 8), (Busy, 8), (Failed, 8)] {
        let mut bench = Bench::new(WHOLE, 16);
        let interval = Duration::from_secs(100);
        bench
            .mac
            .set_sleep(Some(Sleep::new(Policy::Fixed(interval))));
        bench.mac.keep(Some(PEER));
        bench.attempts = std::vec![outcome; polls].into();
        bench.run_to(Instant::from_micros(3_000_000));
        let counters = *bench.mac.poll_counters();
        assert_eq!((counters.failed, counters.polls), (1, 1), "{outcome:?}");
    }
}

/// A parent whose ACKs any node may send is not trusted because the radio took one.
#[cfg(all(feature = "security", feature = "sleepy"))]
#[test]
fn acks_of_a_parent_that_proves_nothing_do_not_count() {
    use super::secured::{A, B, settings};
    use crate::mac::security::{Peer, Security};
    let mut bench = Bench::with(Config::new(PAN, A), WHOLE, 16, 8, 17);
    let table = std::vec![Peer::EMPTY; 16].leak();
    let security = std::boxed::Box::new(Security::new(&settings(), table));
    bench.mac.set_security(std::boxed::Box::leak(security));
    let parent = LinkAddr::Extended(B);
    bench.mac.keep(Some(parent));
    bench
        .mac
        .set_sleep(Some(Sleep::new(Policy::Fixed(Duration::from_secs(2)))));
    let end = bench.now + Duration::from_secs(30);
    bench.run_to(end);
    let refused = bench.mac.counters().dropped(FrameDrop::StrayAck);
    assert!(refused > 0, "its ACKs do not count");
    assert!(bench.mac.disbelieves(parent) && !bench.mac.is_trusted(parent));
    assert_eq!(bench.mac.counters().ack_timeouts, refused);
}

#[test]
fn a_radio_is_refused_what_it_cannot_do() {
    let plain = Config::new(PAN, ME);
    let unassessed = Config {
        assessed: false,
        ..plain.clone()
    };
    let deaf = Config {
        deaf_backoff: true,
        ..plain.clone()
    };
    let in_software = |radio| RadioCapabilities {
        auto_ack: false,
        ..radio
    };
    let cases = [
        (WHOLE, &plain, Ok(())),
        (ASSESSING, &plain, Ok(())),
        (TAKING, &plain, Ok(())),
        (WHOLE, &unassessed, Err(Unfit::Unassessed)),
        (ASSESSING, &unassessed, Err(Unfit::Unassessed)),
        (TAKING, &unassessed, Ok(())),
        (SHARED, &unassessed, Ok(())),
        (WHOLE, &deaf, Err(Unfit::DeafBackoff)),
        (TAKING, &deaf, Ok(())),
        (SHARED, &deaf, Ok(())),
        (in_software(WHOLE), &plain, Err(Unfit::SoftwareAcks)),
        (in_software(ASSESSING), &plain, Err(Unfit::SoftwareAcks)),
        (in_software(TAKING), &plain, Ok(())),
    ];
    for (radio, config, expected) in cases {
        assert_eq!(radio.check(config), expected, "{radio:?}");
    }
}

/// A driver that reports whatever it likes, whenever: each frame ends once, and none for ever.
#[test]
fn a_hostile_driver_cannot_hang_the_mac() {
    for seed in 0..300 {
        let radio = ALL[seed as usize % 3];
        let mut bench = Bench::new(radio, seed);
        let mut dice = Rng::from_seed([seed, 99]);
        bench.honest = false;
        let any = [ACKED, Acked { pending: true }, Done, NoAck, Busy, Failed];
        let mut sent = 0;
        for _ in 0..300 {
            if dice.below(4) == 0 {
                let to = [PEER, OTHER, LinkAddr::BROADCAST][dice.below(3) as usize];
                sent += usize::from(bench.enqueue(to, 1, b"x", Class::Own).is_ok());
            }
            let outcome = any[dice.below(6) as usize];
            bench.attempts.push_back(any[dice.below(6) as usize]);
            let at = match dice.below(3) {
                0 => bench.now,
                1 => Instant::ORIGIN,
                _ => bench.now + Duration::from_secs(dice.below(3).into()),
            };
            match dice.below(8) {
                0..=2 => bench.event(Event::Sent { outcome, at }),
                3 => bench.event(Event::TransmitDone { at }),
                4 => bench.event(Event::Preloaded),
                5 => bench.event(Event::ChannelAssessed {
                    clear: dice.below(2) == 0,
                }),
                _ => {}
            }
            bench.poll();
            bench.advance();
        }
        bench.attempts.clear();
        // A stamp of the future may hold the next frame back for as long.
        for _ in 0..4 {
            bench.run();
        }
        assert_eq!(bench.outcomes.len(), sent, "{seed}");
        assert_eq!(bench.mac.queue_len(), 0);
    }
}
