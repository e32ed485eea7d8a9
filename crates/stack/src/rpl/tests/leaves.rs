//! A router that speaks for nodes without RPL (RFC 9010).

use super::lab::addr;
use super::messages::{Bench, bytes_of};
use crate::rpl::{ControlMessage, Destination, Leaf, LeafOutcome, MessageDrop, RplRole, status};
use crate::time::Duration;
use crate::wire::cursor::Writer;
use crate::wire::rpl::{DaoAck, Message, RplOption, RplOptions};

const LEAF: Leaf = Leaf {
    iid: [0, 0, 0, 0xff, 0xfe, 0, 0, 5],
    sequence: 241,
    lifetime_min: 60,
};

/// The options of the DAO about the leaf that is on its way, and its sequence.
fn dao(bench: &Bench) -> (u8, std::vec::Vec<std::string::String>) {
    let mut bytes = [0; 100];
    let mut w = Writer::new(&mut bytes);
    bench.rpl.emit(ControlMessage::Leaf, &mut w).unwrap();
    let len = w.written();
    let Ok(Message::Dao(dao)) = Message::parse(bytes[1], &bytes[4..len]) else {
        panic!("a DAO");
    };
    assert!(dao.ack_requested);
    let options = dao.options.iter();
    let options = options.map(|option| match option {
        RplOption::Target(target) => std::format!("{}/{}", target.prefix, target.prefix_len),
        RplOption::Transit(transit) => std::format!(
            "{} {} {} {:?}",
            if transit.external { "external" } else { "own" },
            transit.sequence,
            transit.lifetime,
            transit.parent
        ),
        other => std::format!("{other:?}"),
    });
    (dao.sequence, options.collect())
}

fn answer(bench: &mut Bench, sequence: u8, status: u8) -> Result<(), MessageDrop> {
    let ack = bytes_of(&Message::DaoAck(DaoAck {
        instance: 0,
        sequence,
        status,
        dodag: None,
        options: RplOptions::default(),
    }));
    bench.message(addr(0), false, &ack)
}

fn outcomes(bench: &Bench) -> &[(Leaf, LeafOutcome)] {
    &bench.outcomes
}

fn speak(bench: &mut Bench, leaf: Leaf) {
    assert!(bench.rpl.can_advertise_leaf());
    bench.rpl.advertise_leaf(leaf, bench.now);
    bench.poll();
    assert!(!bench.rpl.can_advertise_leaf(), "one at a time");
}

#[test]
fn a_leaf_has_a_dao_of_its_own_with_its_transaction_as_path_sequence() {
    let mut bench = Bench::joined(RplRole::Router);
    let router = std::format!("{:?}", Some(addr(9)));
    for (lifetime_min, units) in [(60, 60), (0, 0), (u16::MAX, 254)] {
        let leaf = Leaf {
            lifetime_min,
            ..LEAF
        };
        speak(&mut bench, leaf);
        let sent = (Destination::Root, ControlMessage::Leaf);
        assert_eq!(bench.sent.last(), Some(&sent));
        let (sequence, options) = dao(&bench);
        let target = std::format!("{}/128", addr(5));
        let transit = std::format!("external 241 {units} {router}");
        assert_eq!(options, [target, transit]);
        answer(&mut bench, sequence, status::ENTERED).unwrap();
        assert_eq!(outcomes(&bench).last(), Some(&(leaf, LeafOutcome::Entered)));
    }
}

#[test]
fn the_roots_status_says_what_became_of_it_and_touches_no_other_route() {
    for (status, outcome) in [
        (0, LeafOutcome::Entered),
        (1, LeafOutcome::Entered),
        (status::REJECTED, LeafOutcome::Failed),
        (status::LEAF_FULL, LeafOutcome::Failed),
        (status::LEAF_MOVED, LeafOutcome::Moved),
    ] {
        let mut bench = Bench::joined(RplRole::Router);
        speak(&mut bench, LEAF);
        let (sequence, _) = dao(&bench);
        let other = answer(&mut bench, sequence.wrapping_add(9), status);
        assert_eq!(other, Err(MessageDrop::Unwanted));
        assert_eq!(outcomes(&bench), []);
        answer(&mut bench, sequence, status).unwrap();
        assert_eq!(outcomes(&bench), [(LEAF, outcome)]);
        let again = answer(&mut bench, sequence, status);
        assert_eq!(again, Err(MessageDrop::Unwanted), "answered already");
        assert!(bench.rpl.can_advertise_leaf());
    }
}

#[test]
fn without_an_answer_it_is_repeated_a_few_times_and_then_the_next_has_its_turn() {
    let mut bench = Bench::joined(RplRole::Router);
    speak(&mut bench, LEAF);
    bench.run(Duration::from_secs(60));
    let daos = bench
        .sent
        .iter()
        .filter(|(_, m)| *m == ControlMessage::Leaf);
    assert_eq!(daos.count(), 4);
    assert_eq!(outcomes(&bench), [(LEAF, LeafOutcome::Failed)]);
    assert!(bench.rpl.can_advertise_leaf());
}

/// DAOs of the router itself and of its leaf may be under way together: each has its own answer.
#[test]
fn no_answer_is_taken_for_another_routes() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.run(Duration::from_secs(1));
    let own = bench.sent.iter().filter(|(_, m)| *m == ControlMessage::Dao);
    assert!(own.count() > 0 && !bench.rpl.is_reachable());
    speak(&mut bench, LEAF);
    let (sequence, _) = dao(&bench);
    answer(&mut bench, sequence, status::ENTERED).unwrap();
    assert_eq!(outcomes(&bench).len(), 1);
    assert!(!bench.rpl.is_reachable());
    // Its own had the sequence before.
    answer(&mut bench, sequence - 1, status::ENTERED).unwrap();
    assert!(bench.rpl.is_reachable());
}

#[test]
fn a_root_that_asks_for_routes_hears_of_leaves_again() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.lost = 0;
    let mut asks = super::messages::says(0, 128);
    bench.dio(&asks).unwrap();
    assert_eq!(bench.lost, 0, "nothing new");
    asks.dtsn += 1;
    bench.says_itself(&asks).unwrap();
    assert_eq!(bench.lost, 1);
    let alone = Bench::new(RplRole::Router);
    assert!(!alone.rpl.can_advertise_leaf(), "nobody to speak to");
}

/// A root that had begun anew by the same version and counter gave its motes their places back, and
/// never heard of their leaves.
#[test]
fn a_root_that_was_away_hears_of_leaves_again() {
    let mut bench = Bench::joined(RplRole::Router);
    speak(&mut bench, LEAF);
    let (sequence, _) = dao(&bench);
    answer(&mut bench, sequence, status::ENTERED).unwrap();
    bench.poll();
    bench.lost = 0;
    bench.dio(&super::messages::says(0, 0xffff)).unwrap();
    bench.poll();
    assert_eq!((bench.rpl.parent(), bench.lost), (None, 0));
    bench.dio(&super::messages::says(0, 128)).unwrap();
    bench.run(Duration::from_secs(3));
    assert!(bench.rpl.parent().is_some());
    assert_eq!(bench.lost, 1);
}

/// A root began anew by the version of before. A mote heard of it from the root itself, which was
/// not its parent then, and later went over to the root: nobody asked for its leaf any more.
#[test]
fn a_request_that_the_old_parent_never_passed_on_counts_for_the_new_one() {
    // A counter that begins anew is another request, however soon it comes behind one.
    for (passed_on, counter, more) in [(false, 241, 1), (true, 241, 0), (true, 150, 1)] {
        let mut bench = Bench::new(RplRole::Router);
        let mut parents = super::messages::says(2, 256);
        let mut other = super::messages::says(1, 300);
        bench.dio(&parents).unwrap();
        bench.acknowledges(2, 20);
        bench.run(Duration::from_secs(3));
        bench.dio(&other).unwrap();
        bench.acknowledges(1, 20);
        bench.run(Duration::from_secs(10));
        let parent = bench.rpl.parent();
        if passed_on {
            parents.dtsn += 1;
            bench.says_itself(&parents).unwrap();
        }
        bench.lost = 0;
        let before = dtsn(&bench);
        other.dtsn = counter;
        bench.dio(&other).unwrap();
        assert_eq!(
            (bench.lost, dtsn(&bench)),
            (0, before),
            "it is not the parent"
        );
        parents.rank = 0xffff;
        bench.says_itself(&parents).unwrap();
        bench.run(Duration::from_secs(3));
        assert!(bench.rpl.parent().is_some() && bench.rpl.parent() != parent);
        assert_eq!(bench.lost, more, "passed on: {passed_on}");
        assert_eq!(
            dtsn(&bench),
            before + more as u8,
            "and its children are asked"
        );
        // Once: not when it goes back either.
        parents.rank = 256;
        bench.says_itself(&parents).unwrap();
        other.rank = 0xffff;
        bench.says_itself(&other).unwrap();
        bench.run(Duration::from_secs(60));
        assert_eq!((bench.rpl.parent(), bench.lost), (parent, more));
    }
}

fn dtsn(bench: &Bench) -> u8 {
    super::bounds::emitted_dio(bench, true, |dio| dio.dtsn)
}
