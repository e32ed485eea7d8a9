//! Where it has to be learned who understands compression.

use std::vec::Vec;

use super::table::{PORTS, at, receive, segment, send};
use super::*;

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

fn learner() -> Tcphc<'static> {
    let config = Config {
        quiet: Duration::ZERO,
        learned: true,
        ..Config::default()
    };
    let contexts = std::vec![Context::EMPTY; 4].leak();
    let mut rng = Rng::from_seed([5, 6]);
    Tcphc::new(contexts, config, Instant::ORIGIN, &mut rng)
}

/// Whether the SYN of a connection from `port` goes out with a full header.
fn offers(table: &mut Tcphc<'_>, port: u16, isn: u32, now: Instant) -> bool {
    let syn = segment(0, (port, 80), isn, 0, Flags::SYN, 0);
    send(table, 0, &syn, now).is_some()
}

#[test]
fn a_syn_sent_again_is_plain_and_so_is_its_connection() {
    let mut mote = learner();
    assert!(offers(&mut mote, PORTS.0, 100, at(0)));
    for second in [1, 3, 7] {
        assert!(!offers(&mut mote, PORTS.0, 100, at(second)));
    }
    let answer = segment(1, PORTS, 500, 101, SYN_ACK, 0);
    mote.on_plain(&driver::flow(0), &answer, at(8));
    for len in [0, 20] {
        let data = segment(0, PORTS, 101, 501, Flags::ACK, len);
        assert_eq!(send(&mut mote, 0, &data, at(8)), None);
    }
}

#[test]
fn a_plain_answer_makes_the_connection_plain() {
    let mut mote = learner();
    assert!(offers(&mut mote, PORTS.0, 100, at(0)));
    let answer = segment(1, PORTS, 500, 101, SYN_ACK, 0);
    mote.on_plain(&driver::flow(0), &answer, at(1));
    let ack = segment(0, PORTS, 101, 501, Flags::ACK, 0);
    assert_eq!(send(&mut mote, 0, &ack, at(1)), None);
}

#[test]
fn after_three_offers_in_vain_there_is_none_for_an_hour() {
    let mut mote = learner();
    for attempt in 0..3 {
        assert!(offers(
            &mut mote,
            4000 + attempt,
            100 * u32::from(attempt),
            at(0)
        ));
    }
    assert!(!offers(&mut mote, 4003, 5_000, at(60)));
    assert!(!offers(&mut mote, 4004, 6_000, at(3_500)));
    assert!(offers(&mut mote, 4005, 7_000, at(3_700)));
}

#[test]
fn who_has_answered_compressed_is_offered_every_syn() {
    let (mut mote, mut peer) = (learner(), learner());
    let syn = segment(0, PORTS, 100, 0, Flags::SYN, 0);
    let offered = send(&mut mote, 0, &syn, at(0)).unwrap();
    assert_eq!(receive(&mut peer, 1, &offered, at(0)), Ok(syn));
    let answer = segment(1, PORTS, 500, 101, SYN_ACK, 0);
    let answered = send(&mut peer, 1, &answer, at(0)).expect("it understands who offers");
    assert_eq!(receive(&mut mote, 0, &answered, at(0)), Ok(answer));
    for second in [1, 2, 3] {
        assert!(offers(&mut mote, 4001, 900, at(second)));
    }
    let cids: Vec<u8> = mote.contexts.iter().map(|context| context.cid).collect();
    assert!(offers(&mut mote, 4001, 900, at(4)));
    let same: Vec<u8> = mote.contexts.iter().map(|context| context.cid).collect();
    assert_eq!(cids, same, "a SYN sent again keeps its context");
}

#[test]
fn many_peers_take_no_more_memory() {
    let mut peers = Peers::new();
    for remote in 0..100 {
        assert!(peers.may_offer(remote, 7, at(0)));
        peers.note_understanding(remote, at(0));
    }
    assert!(peers.understands(99) && peers.understands(92) && !peers.understands(91));
    assert!(!Peers::new().understands(0), "nobody is known at first");
}
