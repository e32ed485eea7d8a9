//! The last value on each side of a bound, and what follows on it.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use core::net::Ipv6Addr;

use super::lab::{addr, iid, link_local};
use super::messages::{
    Bench, CONFIGURATION, OTHER_PREFIX, ROOT, Says, answer, between_two, bytes_of, daos,
    options_of, says, settled,
};
use crate::rpl::iid::Iid;
use crate::rpl::proven::ProvenNeighbours;
use crate::rpl::{
    Candidate, Config, ControlMessage, Destination, FrameReport, INFINITE_RANK, Leaf, LeafOutcome,
    MessageDrop, Rpl, RplRole, dao,
};
use crate::time::{Duration, Instant};
use crate::wire::cursor::Writer;
use crate::wire::lollipop;
use crate::wire::rpl::{
    Configuration, Dao, Dio, Dis, Message, RplOption, RplOptions, Solicited, configuration, mode,
};
use crate::wire::rpl_option::{TYPE_6553, TYPE_9008};

const TO_ALL: (Destination, ControlMessage) =
    (Destination::All, ControlMessage::Dio { full: true });
const ASKS: (Destination, ControlMessage) = (Destination::All, ControlMessage::Dis);

/// What comes of the messages to send in steps of 10 ms until `span` is over: each with its time.
fn watch(bench: &mut Bench, span: Duration) -> Vec<(Instant, (Destination, ControlMessage))> {
    let mut seen = Vec::new();
    let until = bench.now + span;
    while bench.now < until {
        bench.sent.clear();
        bench.run(Duration::from_millis(10));
        seen.extend(bench.sent.iter().map(|sent| (bench.now, *sent)));
    }
    seen
}

fn count(bench: &Bench, sent: (Destination, ControlMessage)) -> usize {
    bench.sent.iter().filter(|it| **it == sent).count()
}

/// Runs until so many solicitations have gone to all.
fn ask(bench: &mut Bench, times: usize) {
    bench.sent.clear();
    while count(bench, ASKS) < times {
        bench.run(Duration::from_millis(10));
    }
}

/// What `message` is on the air, from the code on, passed to `read`.
fn emitted<T>(bench: &Bench, message: ControlMessage, read: impl FnOnce(Message<'_>) -> T) -> T {
    let mut bytes = [0; 200];
    let mut w = Writer::new(&mut bytes);
    bench.rpl.emit(message, &mut w).unwrap();
    let len = w.written();
    read(Message::parse(bytes[1], &bytes[4..len]).unwrap())
}

fn emitted_dao<T>(bench: &Bench, read: impl FnOnce(Dao<'_>) -> T) -> T {
    emitted(bench, ControlMessage::Dao, |message| match message {
        Message::Dao(dao) => read(dao),
        _ => panic!("a DAO"),
    })
}

pub(super) fn emitted_dio<T>(bench: &Bench, full: bool, read: impl FnOnce(Dio<'_>) -> T) -> T {
    emitted(
        bench,
        ControlMessage::Dio { full },
        |message| match message {
            Message::Dio(dio) => read(dio),
            _ => panic!("a DIO"),
        },
    )
}

/// The transit information of this node's DAO: lifetime and parent.
fn own_transit(bench: &Bench) -> (u8, Option<Ipv6Addr>) {
    emitted_dao(bench, |dao| {
        let mut transits = dao.options.iter().filter_map(|option| match option {
            RplOption::Transit(transit) => Some((transit.lifetime, transit.parent)),
            _ => None,
        });
        transits.next().unwrap()
    })
}

fn etx(bench: &Bench, node: usize) -> u16 {
    bench
        .rpl
        .candidates
        .find(Iid::of(&iid(node)))
        .unwrap()
        .etx()
}

/// The neighbour `from` says a rank, and so the cost of its path, over which this node's costs
/// `cost`.
fn offers(bench: &mut Bench, from: usize, cost: u16) {
    let rank = cost - etx(bench, from);
    bench.dio(&says(from, rank)).unwrap();
}

/// An invented address passes for a proven neighbour once in 255 times at most.
#[test]
fn few_strangers_pass_for_proven_neighbours() {
    let mut proven = ProvenNeighbours::NONE;
    for child in 0..64 {
        proven.note(Iid::of(&iid(child)));
        assert!(proven.has(Iid::of(&iid(child))));
    }
    let mut number = 1u64;
    let strangers = (0..50_000).filter(|_| {
        number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        proven.has(Iid::of(&(number ^ number >> 32).to_be_bytes()))
    });
    let passed = strangers.count();
    assert!(passed * 255 <= 50_000, "{passed}");
}

/// RFC 6550 leaves the pace of DIS to the node: 1 s and up to as much again between the
/// first two, twice as much each time, up to 16 s.
#[test]
fn solicitations_become_ever_more_seldom() {
    let mut bench = Bench::new(RplRole::Router);
    let seen = watch(&mut bench, Duration::from_secs(120));
    let times: Vec<Instant> = seen.iter().map(|(at, _)| *at).collect();
    assert!(seen.iter().all(|(_, sent)| *sent == ASKS));
    let waits = [1, 2, 4, 8, 16, 16].map(Duration::from_secs);
    assert!(times.len() > waits.len() - 1, "{}", times.len());
    for (two, wait) in times.windows(2).zip(waits) {
        let waited = two[1].since(two[0]);
        let slack = Duration::from_millis(20);
        assert!(
            waited + slack >= wait && waited <= wait + wait + slack,
            "{waited:?}"
        );
    }
}

/// After five solicitations any version will do, and after seven another DODAG.
#[test]
fn a_mote_that_asks_in_vain_lowers_its_demands() {
    let alone = |solicitations| {
        let mut bench = Bench::joined(RplRole::Router);
        bench.dio(&says(0, INFINITE_RANK)).unwrap();
        ask(&mut bench, solicitations);
        bench
    };
    let mut old = says(7, 256);
    old.version = 239;
    for (solicitations, taken) in [(4, Err(MessageDrop::OldVersion)), (5, Ok(()))] {
        assert_eq!(alone(solicitations).dio(&old), taken, "{solicitations}");
    }
    let mut other = says(7, 256);
    other.dodag = addr(50);
    for (solicitations, taken) in [(6, Err(MessageDrop::OtherDodag)), (7, Ok(()))] {
        assert_eq!(alone(solicitations).dio(&other), taken, "{solicitations}");
    }
    // Whoever has a parent again is bound again.
    let mut bench = alone(7);
    bench.dio(&says(0, 128)).unwrap();
    bench.run(Duration::from_secs(10));
    bench.acknowledges(0, 1);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    assert_eq!(bench.dio(&other), Err(MessageDrop::OtherDodag));
}

/// No neighbour in the first DODAG has acknowledged a frame: it is kept for two seconds.
#[test]
fn a_dodag_that_nobody_proved_is_kept_two_seconds() {
    let mut other = says(7, 256);
    other.dodag = addr(50);
    for (us, taken) in [
        (1_999_999, Err(MessageDrop::OtherDodag)),
        (2_000_000, Ok(())),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(0, 128)).unwrap();
        bench.run(Duration::from_micros(us));
        assert_eq!(bench.dio(&other), taken, "{us}");
    }
}

/// Nearer neighbours may soon have a place: a weak one is tried later.
#[test]
fn a_weak_neighbour_is_tried_later() {
    for (dbm, from_ms, to_ms) in [
        (-60, 100, 200),
        (-85, 200, 400),
        (-90, 800, 1_600),
        (-97, 1_600, 3_200),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        bench.run(Duration::from_secs(1));
        bench.rpl.on_signal(dbm);
        let since = bench.now;
        bench.dio(&says(1, 300)).unwrap();
        let seen = watch(&mut bench, Duration::from_secs(4));
        let probe = (
            Destination::Neighbour(iid(1)),
            ControlMessage::Dio { full: false },
        );
        let (at, _) = seen.iter().find(|(_, sent)| *sent == probe).unwrap();
        let waited = at.since(since).as_micros() / 1_000;
        assert!((from_ms..=to_ms + 10).contains(&waited), "{dbm}: {waited}");
    }
}

/// While motes join, a weak link counts as bad; later only frames show how good it is.
#[test]
fn signals_grade_links_until_a_place_is_a_minute_old() {
    let etx = |bench: &Bench, n: u8| {
        let mut candidates = bench.rpl.candidates();
        candidates
            .find(|slot| slot.iid() == iid(n.into()))
            .unwrap()
            .etx()
    };
    for (seconds, both) in [(59, 1_024), (61, 256)] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(7, 256)).unwrap();
        bench.acknowledges(7, 1);
        bench.rpl.on_signal(-97);
        bench.dio(&says(8, 256)).unwrap();
        bench.run(Duration::from_secs(seconds));
        bench.acknowledges(7, 1);
        bench.rpl.on_signal(-97);
        bench.dio(&says(9, 256)).unwrap();
        assert_eq!([8, 9].map(|n| etx(&bench, n)), [both; 2], "{seconds}");
        // A node without a place joins again.
        let _ = bench.says_itself(&says(7, INFINITE_RANK));
        assert_eq!(bench.rpl.parent(), None);
        bench.rpl.on_signal(-97);
        bench.dio(&says(9, 256)).unwrap();
        assert_eq!(etx(&bench, 9), 1_024, "{seconds}");
    }
}

/// In a new version all motes join again, whatever they knew of their links.
#[test]
fn signals_grade_links_for_a_minute_of_each_version() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 1);
    bench.run(Duration::from_secs(61));
    bench.acknowledges(7, 1);
    let weak = |bench: &mut Bench, version: u8| {
        let mut weak = says(8, 256);
        weak.version = version;
        bench.rpl.on_signal(-97);
        bench.dio(&weak).unwrap();
        let mut candidates = bench.rpl.candidates();
        candidates.find(|slot| slot.iid() == iid(8)).unwrap().etx()
    };
    assert_eq!(weak(&mut bench, 240), 256);
    let mut newer = says(7, 256);
    newer.version = 241;
    bench.says_itself(&newer).unwrap();
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
    assert_eq!(weak(&mut bench, 241), 1_024);
    for (seconds, etx) in [(58, 1_024), (3, 256)] {
        bench.run(Duration::from_secs(seconds));
        bench.acknowledges(7, 1);
        assert_eq!(weak(&mut bench, 241), etx, "{seconds}");
    }
}

/// A newer version does not make a settled parent one whose poisoning anybody may send.
#[test]
fn a_poisoning_in_the_parents_name_waits_in_a_new_version_too() {
    for (seconds, has_parent) in [(1, false), (61, true)] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(7, 256)).unwrap();
        bench.acknowledges(7, 1);
        bench.run(Duration::from_secs(seconds));
        bench.acknowledges(7, 1);
        let mut newer = says(7, 256);
        newer.version = 241;
        bench.says_itself(&newer).unwrap();
        bench.run(Duration::from_secs(1));
        bench.acknowledges(7, 1);
        newer.rank = INFINITE_RANK;
        let _ = bench.dio(&newer);
        assert_eq!(bench.rpl.parent().is_some(), has_parent, "{seconds}");
    }
}

/// RFC 6550 §8.2.2: a node that is no further up than this one may be its descendant.
#[test]
fn a_neighbour_of_this_nodes_own_rank_is_no_way_out() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 30);
    offers(&mut bench, 7, 700);
    let rank = bench.rpl.rank();
    for (above, is_way) in [(0, false), (1, true)] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(7, 256)).unwrap();
        bench.acknowledges(7, 30);
        offers(&mut bench, 7, 700);
        bench.dio(&says(8, rank - above)).unwrap();
        bench.acknowledges(8, 30);
        assert_eq!(bench.rpl.parent(), Some(iid(7)));
        bench.dio(&says(7, INFINITE_RANK)).unwrap();
        assert_eq!(bench.rpl.parent().is_some(), is_way, "{above}");
    }
}

/// RFC 6550 §8.2.2.4: `MaxRankIncrease` above the lowest rank, and no more.
#[test]
fn a_rank_rises_by_as_much_as_the_root_allows() {
    for (more, is_in) in [(0, true), (1, false)] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(7, 256)).unwrap();
        bench.acknowledges(7, 30);
        let lowest = bench.rpl.rank();
        offers(
            &mut bench,
            7,
            lowest + CONFIGURATION.max_rank_increase + more,
        );
        assert_eq!(bench.rpl.parent().is_some(), is_in, "{more}");
    }
}

/// RFC 6719 §3.3: another parent is taken at once where it saves more than
/// `PARENT_SWITCH_THRESHOLD`; under load twice as much, and a little for 5 s at least.
#[test]
fn a_parent_is_left_for_what_is_enough_cheaper() {
    let moved = |is_loaded: bool, saves: u16| {
        let mut bench = Bench::new(RplRole::Router);
        for (from, rank) in [(7, 1_000), (8, 1_000)] {
            bench.dio(&says(from, rank)).unwrap();
            bench.acknowledges(from, 30);
        }
        assert_eq!(bench.rpl.parent(), Some(iid(7)));
        for _ in 0..80 {
            bench.run(Duration::from_secs(1));
            bench.acknowledges(7, 1);
            bench.acknowledges(8, 1);
        }
        if is_loaded {
            bench.acknowledges(7, 12);
        }
        let cost = bench.rpl.cost;
        offers(&mut bench, 8, cost - saves);
        bench.rpl.parent() == Some(iid(8))
    };
    for (is_loaded, saves, moves) in [
        (false, 192, false),
        (false, 193, true),
        (true, 193, false),
        (true, 384, false),
        (true, 385, true),
    ] {
        assert_eq!(moved(is_loaded, saves), moves, "{is_loaded} {saves}");
    }
}

/// Less than 24 of 128 is noise; that much or more must have been saved for a while.
#[test]
fn a_little_cheaper_is_better_after_a_while() {
    // What 8 saves at first and until when, and whether it is the parent at that moment and after.
    for (saves, micros, moves) in [
        (23, 20_000_000, false),
        (24, 4_999_999, false),
        (24, 5_000_000, true),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        for (from, rank) in [(7, 1_000), (8, 1_100)] {
            bench.dio(&says(from, rank)).unwrap();
            bench.acknowledges(from, 30);
        }
        assert_eq!(bench.rpl.parent(), Some(iid(7)));
        bench.run(Duration::from_secs(10));
        let cost = bench.rpl.cost;
        offers(&mut bench, 8, cost - saves);
        assert_eq!(bench.rpl.parent(), Some(iid(7)));
        let since = bench.now;
        while bench.now.since(since) < Duration::from_micros(micros) {
            let left =
                Duration::from_micros(micros).as_micros() - bench.now.since(since).as_micros();
            bench.now += Duration::from_micros(left.min(1_000_000));
            bench.dio(&says(7, 1_000)).unwrap();
            bench.acknowledges(7, 0);
        }
        assert_eq!(
            bench.rpl.parent() == Some(iid(8)),
            moves,
            "{saves} {micros}"
        );
        // Noise of before does not count when it becomes more.
        if saves < 24 {
            let cost = bench.rpl.cost;
            offers(&mut bench, 8, cost - 30);
            bench.dio(&says(7, 1_000)).unwrap();
            assert_eq!(bench.rpl.parent(), Some(iid(7)));
        }
    }
}

/// Under load a candidate is better after a while that costs less than the parent would without a
/// collision: as one beside the root does for a mote that sends through a relay all the time.
#[test]
fn under_load_too_a_cheaper_path_is_taken_after_a_while() {
    for (saves, seconds, moves) in [(23, 600, false), (24, 18, false), (24, 22, true)] {
        let mut bench = Bench::new(RplRole::Router);
        for (from, rank) in [(7, 1_000), (8, 1_100)] {
            bench.dio(&says(from, rank)).unwrap();
            bench.acknowledges(from, 30);
        }
        for _ in 0..60 {
            bench.run(Duration::from_secs(1));
            bench.acknowledges(7, 1);
        }
        let load = |bench: &mut Bench, seconds: u32| {
            for _ in 0..seconds {
                bench.run(Duration::from_secs(1));
                bench.acknowledges(7, 6);
                for _ in 0..6 {
                    let frame = FrameReport::of(4, true);
                    bench.rpl.on_sent(iid(7), frame, bench.now);
                }
                bench.poll();
            }
        };
        load(&mut bench, 20);
        assert!(etx(&bench, 7) > 128 + 24, "collisions do not count");
        offers(&mut bench, 8, 1_000 + 128 - saves);
        load(&mut bench, seconds);
        assert_eq!(
            bench.rpl.parent() == Some(iid(8)),
            moves,
            "{saves} {seconds}"
        );
    }
}

/// A rank that is a whole rank higher, or four lower, is multicast at once.
#[test]
fn a_rank_that_moves_far_is_told_at_once() {
    for (from, to, is_told) in [
        (800, 927, false),
        (800, 928, true),
        (1_400, 889, false),
        (1_400, 888, true),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(7, 600)).unwrap();
        bench.acknowledges(7, 30);
        offers(&mut bench, 7, from);
        while !bench.rpl.trickle.is_slow() || bench.rpl.advertised != from {
            bench.run(Duration::from_millis(100));
            offers(&mut bench, 7, from);
        }
        offers(&mut bench, 7, to);
        assert_eq!(bench.rpl.rank(), to);
        assert_eq!(!bench.rpl.trickle.is_slow(), is_told, "{from} {to}");
    }
}

/// Without a place in a DODAG there is no route to advertise.
#[test]
fn a_mote_that_loses_its_place_is_reachable_no_more() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    assert!(bench.rpl.is_reachable());
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    bench.sent.clear();
    bench.run(Duration::from_secs(2_000));
    assert_eq!(daos(&bench), 0);
    // It comes back: the root does not know of it yet.
    bench.dio(&says(0, 128)).unwrap();
    bench.acknowledges(0, 3);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    assert!(!bench.rpl.is_reachable());
    bench.run(Duration::from_secs(3));
    assert_eq!(daos(&bench), 1);
}

/// RFC 6550 §7.2: of DAOs that nobody answers two are as they are, then each has a path sequence
/// that is newer than that before.
#[test]
fn path_sequences_of_unanswered_daos_follow_one_another() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(0, 128)).unwrap();
    bench.acknowledges(0, 20);
    let mut sequences = Vec::new();
    while sequences.len() < 10 {
        let before = daos(&bench);
        bench.run(Duration::from_millis(10));
        if daos(&bench) > before {
            sequences.push(bench.rpl.dao.path_sequence);
        }
    }
    assert_eq!(sequences[0], sequences[1]);
    for two in sequences[1..].windows(2) {
        assert!(lollipop::is_newer(two[1], two[0]), "{sequences:?}");
    }
}

/// A DAO that waits already says the same: a cause that would not bring it forward leaves its time
/// as it is.
#[test]
fn a_dao_that_waits_is_brought_forward_by_what_is_urgent_alone() {
    let mut bench = Bench::joined(RplRole::Router);
    let (rpl, rng, now) = (&mut bench.rpl, &mut bench.rng, bench.now);
    for _ in 0..50 {
        rpl.dao = dao::State::NEW;
        rpl.schedule_dao(now, rng);
        let planned = rpl.dao.at();
        rpl.schedule_dao(now, rng);
        assert_eq!(rpl.dao.at(), planned);
    }
    for _ in 0..50 {
        rpl.dao = dao::State::NEW;
        rpl.schedule_asked_dao(now, rng);
        let planned = rpl.dao.at().unwrap();
        let early = now + Duration::from_micros(planned.since(now).as_micros() - 700_000);
        rpl.schedule_dao(early, rng);
        assert_eq!(rpl.dao.at(), Some(planned));
        rpl.schedule_dao(now, rng);
        assert!(rpl.dao.at() < Some(planned));
    }
}

/// A DAO-ACK comes from the root, or over the link from the parent; and it answers what was sent.
#[test]
fn only_an_answer_to_the_last_dao_counts() {
    let mut bench = between_two();
    let ack = answer(241, 0);
    for (name, from) in [
        ("a neighbour", link_local(5)),
        ("the parent from afar", addr(7)),
    ] {
        let drop = bench.message(from, false, &ack);
        assert_eq!(drop, Err(MessageDrop::BadSource), "{name}");
    }
    // A DAO with a new sequence waits, and has not been sent.
    let mut asks = says(7, 256);
    asks.dtsn += 1;
    bench.says_itself(&asks).unwrap();
    let early = bench.message(addr(0), false, &answer(242, 0));
    assert_eq!(early, Err(MessageDrop::Unwanted));
    let mut bench = between_two();
    bench.message(link_local(7), false, &ack).unwrap();
    assert!(bench.rpl.is_reachable());
    let again = bench.message(addr(0), false, &answer(241, 1));
    assert_eq!(again, Err(MessageDrop::Unwanted), "it is answered");
}

/// RFC 6550 §6.5.1: a status of 128 rejects, one of 127 does not.
#[test]
fn statuses_from_128_on_reject() {
    for (status, is_reachable) in [(127, true), (128, false)] {
        let mut bench = Bench::joined(RplRole::Router);
        bench.message(addr(0), false, &answer(241, status)).unwrap();
        assert_eq!(bench.rpl.is_reachable(), is_reachable, "{status}");
    }
}

/// A crowd's first DAOs are rejected and repeated soon; from the ninth on a root that has no room
/// is left alone for a minute.
#[test]
fn a_rejected_dao_is_repeated_soon_eight_times() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(0, 128)).unwrap();
    bench.acknowledges(0, 20);
    for tries in 1..=9 {
        let mut waited = Duration::ZERO;
        while daos(&bench) < tries {
            bench.run(Duration::from_millis(10));
            waited = waited + Duration::from_millis(10);
        }
        let soon = match tries {
            // From its cause, and from the first, second or third rejection on.
            1..=2 => 700,
            3..=4 => 1_400,
            _ => 2_800,
        };
        assert!(
            waited <= Duration::from_millis(soon + 20),
            "{tries}: {waited:?}"
        );
        bench.message(addr(0), false, &answer(241, 128)).unwrap();
    }
    bench.run(Duration::from_secs(59));
    assert_eq!(daos(&bench), 9);
    bench.run(Duration::from_secs(32));
    assert!(daos(&bench) > 9);
}

/// The lifetime of the configuration; for ever, a DAO every six to nine hours.
#[test]
fn routes_last_as_long_as_the_root_says() {
    let mut root = says(0, 128);
    root.configuration = Some(Configuration {
        default_lifetime: 255,
        ..CONFIGURATION
    });
    for (says, lifetime) in [(says(0, 128), 30), (root, 255)] {
        let mut bench = settled(&says);
        assert_eq!(own_transit(&bench).0, lifetime);
        bench.message(addr(0), false, &answer(241, 0)).unwrap();
        bench.sent.clear();
        bench.run(Duration::from_secs(6 * 60 * 60 - 60));
        assert_eq!(daos(&bench) == 0, lifetime == 255);
        bench.run(Duration::from_secs(3 * 60 * 60 + 120));
        assert!(daos(&bench) > 0);
    }
}

/// RFC 6550 §6.7.9: a solicitation may name a DODAG.
#[test]
fn a_solicitation_of_another_dodag_is_not_answered() {
    for (dodag, heard) in [(addr(0), Ok(())), (addr(1), Err(MessageDrop::Unwanted))] {
        let options = options_of(&[RplOption::Solicited(Solicited {
            instance: None,
            dodag: Some(dodag),
            version: None,
        })]);
        let options = RplOptions::parse(&options).unwrap();
        let asks = bytes_of(&Message::Dis(Dis { options }));
        let mut bench = Bench::joined(RplRole::Router);
        assert_eq!(bench.message(link_local(5), false, &asks), heard);
    }
}

/// DIOs without a configuration, of ever other strangers, make a mote ask eight of them, and then
/// one in 4 s.
#[test]
fn strangers_without_a_configuration_are_asked_within_bounds() {
    let mut bench = Bench::new(RplRole::Router);
    for stranger in 0..400 {
        let mut bare = says(100 + stranger, 300);
        bare.configuration = None;
        let drop = bench.dio(&bare);
        assert_eq!(drop, Err(MessageDrop::NoConfiguration));
        bench.run(Duration::from_millis(100));
    }
    let to_one = |sent: &&(Destination, ControlMessage)| {
        sent.1 == ControlMessage::Dis && matches!(sent.0, Destination::Neighbour(_))
    };
    let asked = bench.sent.iter().filter(to_one).count();
    assert!((8..=19).contains(&asked), "{asked}");
}

/// A root that has spoken asks one mote a second that claims another version.
#[test]
fn a_root_asks_again_after_a_second() {
    for (us, asked) in [(999_999, 0), (1_000_000, 1)] {
        let mut bench = Bench::new(ROOT);
        bench.run(Duration::from_secs(5));
        let dodag = bench.rpl.dodag().unwrap();
        let mut news = says(5, 300);
        (news.dodag, news.version) = (dodag.id, dodag.version + 1);
        let heard = bench.dio(&news);
        assert_eq!(heard, Err(MessageDrop::StrangeVersion));
        assert_eq!(bench.questions(5), 1);
        bench.now += Duration::from_micros(us);
        news.from = 6;
        let heard = bench.dio(&news);
        assert_eq!(heard, Err(MessageDrop::StrangeVersion));
        assert_eq!(bench.questions(6), asked, "{us}");
    }
}

/// What neighbours of this node's own rank repeat, whether they have a slot or not, says nothing to
/// those below, and neither does a path of another cost (RFC 6550 §8.3).
#[test]
fn neighbours_that_are_not_above_do_not_make_a_mote_hold_its_tongue() {
    let root = |etx| {
        let mut root = says(0, 128);
        root.etx = etx;
        root
    };
    // How often a mote speaks in five minutes in which many others say something a second each.
    let speaks = |root: &Says, others: usize, says: &dyn Fn(&Bench, usize, usize) -> Says| {
        let mut bench = settled(root);
        bench.sent.clear();
        for turn in 0..300 {
            for from in 1..=others {
                let says = says(&bench, from, turn);
                let _ = bench.dio(&says);
            }
            bench.acknowledges(0, 1);
            bench.run(Duration::from_secs(1));
        }
        count(&bench, TO_ALL)
    };
    let as_high = |bench: &Bench, from, _| says(from, bench.rpl.rank());
    assert!(speaks(&root(None), 24, &as_high) > 0);
    let a_little_above = |bench: &Bench, from, _| says(from, bench.rpl.rank() - 1);
    assert_eq!(speaks(&root(None), 24, &a_little_above), 0);
    let of_other_cost = |_: &Bench, from, turn| {
        let mut says = says(from, 256);
        says.etx = Some((turn % 5) as u16);
        says
    };
    assert!(speaks(&root(Some(0)), 4, &of_other_cost) > 0);
}

/// RFC 6550 §7.2: a counter on its straight part goes back only where its node has begun anew,
/// perhaps at its very beginning.
#[test]
fn a_parent_that_begins_anew_asks_for_daos() {
    for (first, second, asks) in [(130, 128, true), (140, 130, true), (3, 2, false)] {
        let mut root = says(0, 128);
        root.dtsn = first;
        let mut bench = settled(&root);
        bench.message(addr(0), false, &answer(241, 0)).unwrap();
        bench.sent.clear();
        root.dtsn = second;
        bench.says_itself(&root).unwrap();
        bench.run(Duration::from_secs(10));
        assert_eq!(daos(&bench) > 0, asks, "{first} {second}");
    }
}

/// A parent whose rank rises by more than a whole one, or its cost by more than two transmissions,
/// is asked whether it has said so itself.
#[test]
fn a_parent_that_is_far_worse_is_asked() {
    for (name, rank, etx, is_asked) in [
        ("a whole rank", 512 + 128, None, false),
        ("more than that", 512 + 129, None, true),
        ("better", 384, None, false),
        ("two transmissions", 512, Some(500 + 256), false),
        ("more than that", 512, Some(500 + 257), true),
    ] {
        let mut parent = says(0, 512);
        parent.etx = etx.map(|_| 500);
        let mut bench = settled(&parent);
        let asked = bench.questions(0);
        parent.rank = rank;
        parent.etx = etx;
        bench.dio(&parent).unwrap();
        bench.run(Duration::from_millis(200));
        assert_eq!(bench.questions(0) > asked, is_asked, "{name}");
        let candidate = bench.rpl.candidates.find(Iid::of(&iid(0))).unwrap();
        let is_believed = (candidate.rank(), candidate.base) == (rank, etx.unwrap_or(rank));
        assert_eq!(is_believed, !is_asked, "{name}");
    }
}

/// A parent that was heard less than eight steps of 1.05 s ago passes on itself what the root asks.
#[test]
fn a_parent_is_silent_after_eight_seconds() {
    for (steps, daos_sent) in [(7, 0), (8, 1)] {
        let mut bench = between_two();
        bench.message(addr(0), false, &answer(241, 0)).unwrap();
        let next = bench.now.as_micros() / STEP_US + 1;
        bench.now = Instant::from_micros(next * STEP_US);
        bench.dio(&says(7, 256)).unwrap();
        bench.now = Instant::from_micros((next + steps) * STEP_US);
        bench.sent.clear();
        let mut asks = says(8, 300);
        asks.dtsn += 1;
        bench.dio(&asks).unwrap();
        bench.run(Duration::from_secs(1));
        assert_eq!(daos(&bench), daos_sent, "{steps}");
    }
}

/// RFC 9035 and RFC 9008 §4.1.3: what the flags of the configuration say.
#[test]
fn flags_of_the_configuration_say_how_headers_are_written() {
    for (flags, is_compressed, option_type) in [
        (0, false, TYPE_6553),
        (configuration::COMPRESSED, true, TYPE_6553),
        (configuration::RPI_0X23, false, TYPE_9008),
        (
            configuration::COMPRESSED | configuration::RPI_0X23,
            true,
            TYPE_9008,
        ),
    ] {
        let mut root = says(0, 128);
        root.configuration = Some(Configuration {
            flags,
            ..CONFIGURATION
        });
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&root).unwrap();
        let dodag = bench.rpl.dodag().unwrap();
        assert_eq!(dodag.is_compressed(), is_compressed, "{flags}");
        assert_eq!(dodag.option_type(), option_type, "{flags}");
    }
}

/// A metric container goes with a rank, where the DODAG has them.
#[test]
fn a_metric_goes_with_a_rank() {
    for (etx, rank, has_metric) in [(None, 128, false), (Some(0), 128, true)] {
        let mut root = says(0, rank);
        root.etx = etx;
        let mut bench = settled(&root);
        let is_there = |bench: &Bench| {
            emitted_dio(bench, false, |dio| {
                let mut options = dio.options.iter();
                options.any(|option| matches!(option, RplOption::Metrics(_)))
            })
        };
        assert_eq!(is_there(&bench), has_metric);
        bench
            .message(link_local(0), true, &says_nothing(&root))
            .unwrap();
        bench
            .message(link_local(0), true, &says_nothing(&root))
            .unwrap();
        bench.run(Duration::from_secs(20));
        if bench.rpl.parent().is_none() {
            assert!(!is_there(&bench), "none with a poisoning");
        }
    }
}

/// The poisoning of a neighbour.
fn says_nothing(of: &Says) -> Vec<u8> {
    bytes_of(&Message::Dio(Dio {
        instance: of.instance,
        version: of.version,
        rank: INFINITE_RANK,
        grounded: true,
        mode: of.mode,
        preference: 0,
        dtsn: of.dtsn,
        dodag: of.dodag,
        options: RplOptions::default(),
    }))
}

/// The root goes by the DODAG's identifier, whatever its link calls it; other parents by their
/// address in the prefix.
#[test]
fn a_dao_names_the_root_by_its_dodag() {
    for (rank, parent) in [(128, addr(77)), (256, addr(3))] {
        let mut parent_says = says(3, rank);
        parent_says.dodag = addr(77);
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&parent_says).unwrap();
        bench.acknowledges(3, 20);
        assert_eq!(own_transit(&bench).1, Some(parent), "{rank}");
    }
}

/// RFC 6550 §6.4.1: a local instance is named by its DODAG, too.
#[test]
fn a_dao_of_a_local_instance_names_its_dodag() {
    for (instance, is_named) in [(0, false), (127, false), (128, true), (200, true)] {
        let mut root = says(0, 128);
        root.instance = instance;
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&root).unwrap();
        bench.acknowledges(0, 20);
        let dodag = emitted_dao(&bench, |dao| dao.dodag);
        assert_eq!(dodag, is_named.then_some(addr(0)), "{instance}");
    }
}

const LEAF: Leaf = Leaf {
    iid: [0, 0, 0, 0xff, 0xfe, 0, 0, 5],
    sequence: 241,
    lifetime_min: 60,
};

/// A leaf's DAO is due at once, and repeated after 1.5 s, 3 s and 6 s, and up to as much again.
#[test]
fn a_leaf_that_nobody_answers_for_is_repeated_ever_more_seldom() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.rpl.advertise_leaf(LEAF, bench.now);
    assert!(bench.rpl.next_deadline() <= Some(bench.now));
    let seen = watch(&mut bench, Duration::from_secs(60));
    let sent = (Destination::Root, ControlMessage::Leaf);
    let times: Vec<Instant> = seen
        .iter()
        .filter(|(_, it)| *it == sent)
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(times.len(), 4);
    for (two, wait) in times.windows(2).zip([1_500, 3_000, 6_000]) {
        let waited = two[1].since(two[0]);
        let wait = Duration::from_millis(wait);
        let slack = Duration::from_millis(20);
        assert!(
            waited + slack >= wait && waited <= wait + wait + slack,
            "{waited:?}"
        );
    }
    assert_eq!(bench.outcomes, [(LEAF, LeafOutcome::Failed)]);
}

/// Outcomes for leaves are returned by the next poll, which is due now.
#[test]
fn news_of_leaves_is_due_at_once() {
    let mut bench = settled(&says(0, 128));
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    assert!(bench.rpl.next_deadline() > Some(bench.now));
    bench.rpl.leaves.lose();
    assert!(bench.rpl.next_deadline() <= Some(bench.now));
    bench.poll();
    bench.rpl.advertise_leaf(LEAF, bench.now);
    bench.poll();
    let ack = answer(bench.rpl.leaves.sequence(), 0);
    let parts = (ack[1], &ack[4..]);
    let heard = bench
        .rpl
        .on_message(addr(0), false, parts, bench.now, &mut bench.rng);
    assert!(heard.is_ok());
    assert!(bench.rpl.next_deadline() <= Some(bench.now));
}

/// A leaf is spoken for in non-storing mode, over a parent.
#[test]
fn a_leaf_needs_a_way_and_a_root_that_keeps_the_routes() {
    let mut bench = Bench::joined(RplRole::Router);
    assert!(bench.rpl.can_advertise_leaf());
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    assert!(!bench.rpl.can_advertise_leaf(), "no parent");
    let mut root = says(0, 128);
    root.mode = mode::STORING;
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&root).unwrap();
    bench.acknowledges(0, 20);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    assert!(!bench.rpl.can_advertise_leaf(), "in storing mode");
}

/// A root begins with a counter on the straight part that its motes have hardly seen before.
#[test]
fn a_root_begins_with_a_counter_of_its_own() {
    let dtsn = |seed: u64| {
        let config = Config {
            iid: iid(0),
            role: ROOT,
        };
        let slots = Box::leak(vec![Candidate::EMPTY; 1].into_boxed_slice());
        let mut rpl = Rpl::new(&config, slots);
        rpl.start(
            Instant::ORIGIN,
            &mut crate::random::Rng::from_seed([seed, 1]),
        );
        rpl.dtsn
    };
    let all: Vec<u8> = (0..20).map(dtsn).collect();
    assert!(all.iter().all(|dtsn| *dtsn >= lollipop::STRAIGHT));
    assert!(all.iter().any(|dtsn| *dtsn != all[0]));
}

/// Under load half of the repetitions count, of the parent's link alone and where it had a minute
/// to show how good it is without.
#[test]
fn a_minute_after_joining_repetitions_under_load_count_half() {
    let etx_after = |to: usize, seconds: u64| {
        let mut bench = Bench::new(RplRole::Router);
        for from in [7, 8] {
            bench.dio(&says(from, 256)).unwrap();
            bench.acknowledges(from, 1);
        }
        assert_eq!(bench.rpl.parent(), Some(iid(7)));
        bench.now += Duration::from_secs(seconds);
        for _ in 0..20 {
            bench
                .rpl
                .on_sent(iid(to), FrameReport::of(3, true), bench.now);
        }
        etx(&bench, to)
    };
    // 2 attempts assumed, 1 made, and 20 times three; the same with half of the last nine.
    let (whole, half) = ((2 + 1 + 60) * 128 / 22, (2 + 1 + 60 - 9) * 128 / 22);
    assert_eq!(etx_after(7, 59), whole);
    assert_eq!(etx_after(7, 60), half);
    assert_eq!(etx_after(8, 60), whole);
}

/// RFC 6550 §3.2.2: a root begins a new version, which its motes hear of at once; and asks them
/// for their routes by its counter (§9.6). A mote can do neither.
#[test]
fn a_root_repairs_and_asks_for_routes() {
    let mut bench = Bench::new(ROOT);
    bench.run(Duration::from_secs(100));
    for (repairs, version, dtsn) in [(true, 1, 0), (false, 0, 1)] {
        let before = emitted_dio(&bench, true, |dio| (dio.version, dio.dtsn));
        bench.sent.clear();
        match repairs {
            true => bench.rpl.repair(),
            false => bench.rpl.refresh_routes(),
        }
        assert!(bench.rpl.next_deadline() <= Some(bench.now));
        bench.poll();
        bench.run(Duration::from_millis(600));
        assert_eq!(count(&bench, TO_ALL), 1);
        let after = emitted_dio(&bench, true, |dio| (dio.version, dio.dtsn));
        assert_eq!(after, (before.0 + version, lollipop_plus(before.1, dtsn)));
        bench.run(Duration::from_secs(100));
    }
    let mut mote = Bench::joined(RplRole::Router);
    let before = *mote.rpl.dodag().unwrap();
    mote.rpl.repair();
    assert_eq!(*mote.rpl.dodag().unwrap(), before);
}

fn lollipop_plus(counter: u8, steps: u8) -> u8 {
    (0..steps).fold(counter, |counter, _| lollipop::next(counter))
}

/// A question is answered within a second, or not at all.
#[test]
fn an_answer_comes_within_a_second() {
    for (us, counts) in [(999_999, true), (1_000_000, false)] {
        let mut bench = settled(&says(0, 128));
        let news = asked_for_news(&mut bench);
        bench.acknowledges(0, 1);
        bench.now += Duration::from_micros(us);
        bench.message(link_local(0), false, &news.bytes()).unwrap();
        let is_taken = bench.rpl.dodag().unwrap().prefix == news.prefix.map(Into::into);
        assert_eq!(is_taken, counts, "{us}");
    }
}

/// The parent is said to have another prefix, and has just been asked for it; returns what it says.
fn asked_for_news(bench: &mut Bench) -> Says {
    let mut news = says(0, 128);
    news.prefix = Some(OTHER_PREFIX);
    let asked = bench.questions(0);
    bench.dio(&news).unwrap();
    while bench.questions(0) == asked {
        bench.now = bench.rpl.next_deadline().unwrap();
        bench.poll();
    }
    news
}

/// The wait for the next probe doubles up to four times with each one that took more than four
/// attempts, and halves with each other; a mote without a parent waits half as many doublings.
#[test]
fn probes_are_paced_by_what_the_last_ones_took() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.rpl.probe_doublings = 0;
    for (attempts, is_taken, doublings) in [
        (8, false, 1),
        (1, false, 2),
        (5, true, 3),
        (4, true, 2),
        (8, true, 3),
        (8, true, 4),
        (8, true, 4),
        (8, false, 4),
        (4, true, 3),
        (1, true, 2),
        (1, true, 1),
        (1, true, 0),
        (1, true, 0),
    ] {
        bench.rpl.pace_probes(attempts, is_taken);
        assert_eq!(bench.rpl.probe_doublings, doublings, "{attempts}");
    }
    for (doublings, from_ms) in [(0, 100), (1, 100), (2, 200), (3, 200), (4, 400)] {
        let mut bench = Bench::new(RplRole::Router);
        bench.run(Duration::from_secs(1));
        bench.rpl.probe_doublings = doublings;
        bench.dio(&says(1, 300)).unwrap();
        let waits = bench.rpl.probe_at.unwrap().since(bench.now);
        let waits = waits.as_micros() / 1_000;
        assert!(
            (from_ms..2 * from_ms).contains(&waits),
            "{doublings}: {waits}"
        );
    }
}

/// A mote without a parent looks every two to four seconds whom it may try again.
#[test]
fn a_mote_without_a_parent_looks_for_whom_to_try() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(1, 300)).unwrap();
    bench.run(Duration::from_secs(90));
    for _ in 0..3 {
        bench
            .rpl
            .on_sent(iid(1), FrameReport::of(8, false), bench.now);
    }
    bench.poll();
    // It has just been tried in vain, so it is left alone for eight seconds, though it speaks.
    bench.run(Duration::from_secs(2));
    bench.dio(&says(1, 300)).unwrap();
    let waits = bench.rpl.probe_at.unwrap().since(bench.now);
    assert!(waits <= Duration::from_secs(4), "{waits:?}");
}

/// Nothing is due before its time where the parent owes no answer.
#[test]
fn no_probe_is_due_soon_after_an_answer() {
    let mut bench = settled(&says(0, 128));
    let news = asked_for_news(&mut bench);
    bench.message(link_local(0), false, &news.bytes()).unwrap();
    bench.acknowledges(0, 1);
    let waits = bench.rpl.probe_at.unwrap().since(bench.now);
    assert!(waits >= Duration::from_secs(15), "{waits:?}");
}

const STEP_US: u64 = 1 << 20;

/// A router with parent 7, whose path costs what `cost` makes of the neighbour 8: the cost over 8,
/// and what it would be if its link were perfect. Both have just taken a frame; returns the node
/// and the step of the clock, at whose beginning it is.
fn beside_a_weak_neighbour(cost: impl Fn(u16, u16) -> u16) -> (Bench, u64) {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 30);
    bench.dio(&says(8, 400)).unwrap();
    for _ in 0..10 {
        bench
            .rpl
            .on_sent(iid(8), FrameReport::of(5, true), bench.now);
    }
    bench.poll();
    bench.run(Duration::from_secs(3));
    let (over, perfect) = (400 + etx(&bench, 8), 400 + 128);
    offers(&mut bench, 7, cost(over, perfect));
    assert_eq!(bench.rpl.cost, cost(over, perfect));
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
    let step = bench.now.as_micros() / STEP_US + 1;
    bench.now = Instant::from_micros(step * STEP_US);
    for from in [7, 8] {
        bench
            .rpl
            .candidates
            .find_mut(Iid::of(&iid(from)))
            .unwrap()
            .tested = step as u32;
    }
    (bench, step)
}

/// Which neighbour is probed so many steps later, if the parent has just taken a frame.
fn probed_after(bench: &mut Bench, step: u64, steps: u64) -> bool {
    bench.now = Instant::from_micros((step + steps) * STEP_US);
    bench
        .rpl
        .candidates
        .find_mut(Iid::of(&iid(7)))
        .unwrap()
        .tested = (step + steps) as u32;
    bench.rpl.probe_at = Some(bench.now);
    bench.sent.clear();
    bench.poll();
    let probe = ControlMessage::Dio { full: false };
    count(bench, (Destination::Neighbour(iid(8)), probe)) > 0
}

/// RFC 6550 leaves it to the node when a link is measured: after 30 steps of 1.05 s, or 600 where
/// its path costs two transmissions more than the parent's; never where it could not be better.
#[test]
fn idle_links_are_measured_again() {
    for (name, cost, steps, is_probed) in [
        (
            "soon",
            (|over, _| over - 255) as fn(u16, u16) -> u16,
            29,
            false,
        ),
        ("in time", |over, _| over - 255, 30, true),
        ("far worse", |over, _| over - 256, 599, false),
        ("far worse, late", |over, _| over - 256, 600, true),
        ("no better if perfect", |_, perfect| perfect, 700, false),
        (
            "a little better if perfect",
            |_, perfect| perfect + 1,
            700,
            true,
        ),
    ] {
        let (mut bench, step) = beside_a_weak_neighbour(cost);
        assert_eq!(probed_after(&mut bench, step, steps), is_probed, "{name}");
    }
    // The link that was measured longest ago comes first, though its path costs more.
    let (mut bench, step) = beside_a_weak_neighbour(|over, _| over - 200);
    bench.now = Instant::from_micros((step + 40) * STEP_US);
    bench
        .rpl
        .candidates
        .find_mut(Iid::of(&iid(7)))
        .unwrap()
        .tested = step as u32 + 5;
    bench.rpl.probe_at = Some(bench.now);
    bench.sent.clear();
    bench.poll();
    let probe = ControlMessage::Dio { full: false };
    assert_eq!(count(&bench, (Destination::Neighbour(iid(8)), probe)), 1);
}

/// A mote without a place is no hops away; a route that ends needs no answer (RFC 6550 §6.4).
#[test]
fn what_a_mote_says_of_its_place() {
    let mut bench = Bench::joined(RplRole::Router);
    assert_eq!(bench.rpl.hops(), 1);
    assert!(emitted_dao(&bench, |dao| dao.ack_requested));
    let is_answered = emitted(&bench, ControlMessage::NoPath, |message| match message {
        Message::Dao(dao) => dao.ack_requested,
        _ => panic!("a DAO"),
    });
    assert!(!is_answered);
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    assert_eq!(bench.rpl.hops(), 0);
}
