//! Where the two ends of a connection agree on compression.

use std::vec::Vec;

use super::driver::{Setup, World, flow};
use super::table::{PORTS, at, receive, segment};
use super::*;
use crate::wire::tcphc::FULL;

const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
/// The interface identifier of the router of [`flow`].
const ROUTER: [u8; 8] = [2, 0, 0, 0xff, 0xfe, 0, 0, 2];
const ISNS: [u32; 2] = [1_000, 5_000];

fn table(end: End, slots: usize, seed: u64) -> Tcphc<'static> {
    let config = Config {
        end,
        quiet: Duration::ZERO,
        learned: true,
        ..Config::default()
    };
    let contexts = std::vec![Context::EMPTY; slots].leak();
    Tcphc::new(
        contexts,
        config,
        Instant::ORIGIN,
        &mut Rng::from_seed([5, seed]),
    )
}

fn mote(seed: u64) -> Tcphc<'static> {
    let mut mote = table(End::Mote, 4, seed);
    mote.set_offer(Some(ROUTER));
    mote
}

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    Plain,
    Full,
    Compressed,
    /// Restored by nobody.
    Dropped(HeaderDrop),
}

/// A mote, its border router, and a connection whose segments they carry.
struct Pair {
    ends: [Tcphc<'static>; 2],
    ports: (u16, u16),
    /// The next number of the mote, and of the host.
    seq: [u32; 2],
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        Self {
            ends: [mote(1), table(End::Router, 4, 2)],
            ports: PORTS,
            seq: ISNS,
            now: at(1),
        }
    }

    fn segment(&self, end: usize, flags: Flags, len: usize) -> Vec<u8> {
        let ack = match flags.contains(Flags::ACK) {
            true => self.seq[1 - end],
            false => 0,
        };
        segment(end, self.ports, self.seq[end], ack, flags, len)
    }

    /// Compresses a segment, which is then on its way.
    fn send(&mut self, end: usize, segment: &[u8]) -> Option<Vec<u8>> {
        let (origin, mut out) = ([Origin::Own, Origin::Outside][end], [0; 80]);
        let made = self.ends[end].compress(&flow(end), segment, origin, self.now, &mut out);
        let made = made.ok()?;
        let rest = &segment[made.uncompressed_len..];
        Some([&out[..made.compressed_len], rest].concat())
    }

    fn arrive(&mut self, end: usize, segment: &[u8], sent: Option<Vec<u8>>) -> Sent {
        let other = 1 - end;
        let Some(bytes) = sent else {
            self.ends[other].on_plain(&flow(other), segment, self.now);
            return Sent::Plain;
        };
        match receive(&mut self.ends[other], other, &bytes, self.now) {
            Ok(got) => {
                assert_eq!(got, segment);
                match bytes[0] {
                    FULL => Sent::Full,
                    _ => Sent::Compressed,
                }
            }
            Err(reason) => Sent::Dropped(reason),
        }
    }

    /// A segment that arrives, if it can be restored.
    fn pass(&mut self, end: usize, flags: Flags, len: usize) -> Sent {
        let segment = self.segment(end, flags, len);
        let sent = self.send(end, &segment);
        let sent = self.arrive(end, &segment, sent);
        if !matches!(sent, Sent::Dropped(_)) {
            let occupied = len as u32 + u32::from(flags.contains(Flags::SYN));
            self.seq[end] = self.seq[end].wrapping_add(occupied);
        }
        sent
    }

    /// A segment that is lost on the air; returns whether it was plain.
    fn lose(&mut self, end: usize, flags: Flags, len: usize) -> bool {
        let segment = self.segment(end, flags, len);
        self.send(end, &segment).is_none()
    }

    /// Opens the connection; `end`: by the mote or by the host.
    fn open(&mut self, end: usize) -> [Sent; 3] {
        let [syn, answer] = [Flags::SYN, SYN_ACK];
        [
            self.pass(end, syn, 0),
            self.pass(1 - end, answer, 0),
            self.pass(end, Flags::ACK, 0),
        ]
    }

    fn data(&mut self, end: usize) -> Sent {
        self.pass(end, Flags::ACK, 40)
    }

    /// Data both ways, and their forms.
    fn exchange(&mut self) -> [Sent; 2] {
        [self.data(0), self.data(1)]
    }

    fn restart(&mut self, end: usize) {
        self.ends[end] = match end {
            0 => mote(7),
            _ => table(End::Router, 4, 8),
        };
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    /// Goes on until both compress; at most so many exchanges, one each five seconds.
    fn recovers_within(&mut self, exchanges: usize) -> bool {
        (0..exchanges).any(|_| {
            self.wait(5);
            self.exchange() == [Sent::Compressed; 2]
        })
    }
}

const PLAIN: [Sent; 2] = [Sent::Plain; 2];
const COMPRESSED: [Sent; 2] = [Sent::Compressed; 2];

#[test]
fn a_mote_that_has_heard_the_offer_compresses_whoever_opens() {
    let mut pair = Pair::new();
    assert_eq!(pair.open(0), [Sent::Full; 3]);
    assert_eq!(pair.exchange(), COMPRESSED);
    let mut pair = Pair::new();
    assert_eq!(pair.open(1), [Sent::Plain, Sent::Full, Sent::Compressed]);
    assert_eq!(pair.exchange(), COMPRESSED);
}

#[test]
fn without_an_offer_all_is_plain() {
    for end in [0, 1] {
        let mut pair = Pair::new();
        pair.ends[0].set_offer(None);
        assert_eq!(pair.open(end), [Sent::Plain; 3]);
        assert_eq!(pair.exchange(), PLAIN);
        assert!(!pair.ends[0].would_carry(&flow(0), pair.now));
        assert!(!pair.ends[1].would_carry(&flow(1), pair.now));
    }
}

/// The announcement names the border router: towards another mote nothing is compressed.
#[test]
fn other_motes_are_not_meant_by_the_offer() {
    let near = Flow {
        within_mesh: true,
        ..flow(0)
    };
    let mut mote = mote(1);
    assert!(mote.would_carry(&near, at(1)), "the border router itself");
    mote.set_offer(Some([9; 8]));
    assert!(!mote.would_carry(&near, at(1)));
    assert!(mote.would_carry(&flow(0), at(1)), "hosts beyond");
}

/// A host may send what it likes: its router makes no context for it.
#[test]
fn a_router_sends_a_plain_mote_nothing_else() {
    let mut router = table(End::Router, 1, 2);
    for (flags, len) in [(Flags::SYN, 0), (SYN_ACK, 0), (Flags::ACK, 40)] {
        let mut out = [0; 80];
        let bytes = segment(1, PORTS, 7, 9, flags, len);
        let made = router.compress(&flow(1), &bytes, Origin::Outside, at(1), &mut out);
        assert_eq!(made, Err(Plain), "{flags:?}");
        router.on_plain(&flow(1), &segment(0, PORTS, 9, 7, flags, len), at(1));
    }
    assert_eq!(router.counters().sent, [0, 0, 0, 3]);
}

#[test]
fn an_offer_that_is_withdrawn_ends_compression_without_a_loss() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    pair.ends[0].set_offer(None);
    assert_eq!(pair.exchange(), PLAIN);
    pair.ends[0].set_offer(Some(ROUTER));
    assert!(pair.recovers_within(9));
}

/// The router forgets what it knew: its mote's retransmission mends it.
#[test]
fn a_router_that_starts_again_costs_one_retransmission() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    pair.restart(1);
    let lost = pair.data(0);
    assert_eq!(lost, Sent::Dropped(HeaderDrop::NoContext));
    assert_eq!(pair.ends[1].counters().dropped(HeaderDrop::NoContext), 1);
    assert_eq!(pair.data(0), Sent::Full);
    assert_eq!([pair.data(1), pair.data(0)], COMPRESSED);
}

#[test]
fn a_host_that_speaks_first_after_a_restart_of_its_router_loses_nothing() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    pair.restart(1);
    assert_eq!([pair.data(1), pair.data(0)], [Sent::Plain, Sent::Full]);
    assert_eq!([pair.data(1), pair.data(0)], COMPRESSED);
}

/// A relay on the way passes such headers no longer, and nobody knows.
#[test]
fn what_a_relay_does_not_pass_goes_plain_at_the_second_repetition() {
    for end in [0, 1] {
        let mut pair = Pair::new();
        pair.open(0);
        pair.exchange();
        let lost = [(); 2].map(|()| pair.lose(end, Flags::ACK, 40));
        assert_eq!(lost, [false; 2]);
        assert_eq!(pair.data(end), Sent::Plain);
        let answer = pair.segment(1 - end, Flags::ACK, 0);
        match end {
            0 => assert!(pair.lose(1, Flags::ACK, 0), "the router follows"),
            // The mote offers it once more.
            _ => assert!(!pair.lose(0, Flags::ACK, 0)),
        }
        pair.arrive(1 - end, &answer, None);
        // It was a loss, not the way.
        let mut other = pair.exchange();
        other.sort_by_key(|sent| *sent == Sent::Compressed);
        assert_eq!(other, [Sent::Full, Sent::Compressed], "{end}");
    }
}

/// The same, for good, and nobody tells the mote: two segments of its connection are repeated twice,
/// and then none for a minute.
#[test]
fn a_way_that_does_not_pass_headers_is_tried_ever_more_seldom() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    let mut lost = Vec::new();
    for second in 0..300 {
        while !pair.lose(0, Flags::ACK, 40) {
            lost.push(second);
            assert!(lost.len() < 100, "{lost:?}");
        }
        // What is plain arrives, and is answered plain.
        let data = pair.segment(0, Flags::ACK, 40);
        pair.ends[1].on_plain(&flow(1), &data, pair.now);
        pair.seq[0] += 40;
        let answer = pair.segment(1, Flags::ACK, 0);
        assert_eq!(pair.send(1, &answer), None);
        pair.ends[0].on_plain(&flow(0), &answer, pair.now);
        pair.wait(1);
    }
    let seconds: Vec<u64> = lost.iter().step_by(2).copied().collect();
    assert_eq!(lost.len(), 2 * seconds.len(), "{lost:?}");
    assert_eq!(seconds[..2], [0, 1], "{seconds:?}");
    assert!((50..70).contains(&(seconds[2] - seconds[1])), "{seconds:?}");
    assert!(
        (110..137).contains(&(seconds[3] - seconds[2])),
        "{seconds:?}"
    );
    assert_eq!(seconds.len(), 4, "{seconds:?}");
}

#[test]
fn a_syn_that_is_not_passed_goes_plain_at_the_second_repetition() {
    let mut pair = Pair::new();
    assert!(!pair.lose(0, Flags::SYN, 0));
    assert!(!pair.lose(0, Flags::SYN, 0));
    assert_eq!(pair.open(0), [Sent::Plain; 3]);
    assert_eq!(pair.exchange(), PLAIN);
    assert!(pair.recovers_within(15));
}

/// What one connection has found out serves the next ones.
#[test]
fn after_syns_in_vain_other_connections_begin_plain_for_a_while() {
    let mut pair = Pair::new();
    let mut port = PORTS.0;
    let mut opens = |pair: &mut Pair, in_vain: usize| {
        port += 1;
        pair.ports = (port, 80);
        pair.seq = ISNS;
        for _ in 0..in_vain {
            assert!(!pair.lose(0, Flags::SYN, 0));
        }
        pair.open(0)
    };
    for spells in [2, 4] {
        assert_eq!(opens(&mut pair, 2), [Sent::Plain; 3]);
        assert_eq!(opens(&mut pair, 0), [Sent::Plain; 3]);
        pair.wait(spells * 17 - 4);
        assert!(!pair.ends[0].would_carry(&flow(0), pair.now));
        pair.wait(5);
        assert!(pair.ends[0].would_carry(&flow(0), pair.now));
    }
    // What comes compressed, or another offer, ends that.
    assert_eq!(opens(&mut pair, 2), [Sent::Plain; 3]);
    pair.ends[0].set_offer(Some(ROUTER));
    assert!(!pair.ends[0].would_carry(&flow(0), pair.now));
    pair.ends[0].set_offer(None);
    pair.ends[0].set_offer(Some(ROUTER));
    assert_eq!(opens(&mut pair, 0), [Sent::Full; 3]);
    assert_eq!(opens(&mut pair, 2), [Sent::Plain; 3]);
    pair.wait(35);
    assert!(pair.ends[0].would_carry(&flow(0), pair.now));
}

/// Different segments, each for the first time, of which nothing was heard.
#[test]
fn a_burst_of_retransmissions_stays_compressed() {
    for end in [0, 1] {
        let mut pair = Pair::new();
        pair.open(0);
        pair.exchange();
        let segments = [0, 1, 2, 3].map(|_| {
            let segment = pair.segment(end, Flags::ACK, 40);
            pair.send(end, &segment);
            pair.seq[end] += 40;
            segment
        });
        for segment in &segments {
            let sent = pair.send(end, segment);
            let form = pair.arrive(end, segment, sent);
            assert_eq!(form, Sent::Full);
        }
        assert_eq!([pair.data(1 - end), pair.data(end)], COMPRESSED);
    }
}

/// One segment four times: two of them plain. All arrive late, and so do their answers.
#[test]
fn repetitions_that_were_needless_do_no_harm() {
    for end in [0, 1] {
        let mut pair = Pair::new();
        pair.open(0);
        pair.exchange();
        let segment = pair.segment(end, Flags::ACK, 40);
        let sent = [0, 1, 2, 3, 4].map(|_| pair.send(end, &segment));
        let plain = sent.each_ref().map(Option::is_none);
        assert_eq!(plain, [false, false, true, false, true]);
        pair.seq[end] += 40;
        let mut answers = Vec::new();
        for sent in sent {
            pair.arrive(end, &segment, sent);
            let answer = pair.segment(1 - end, Flags::ACK, 0);
            answers.push((answer.clone(), pair.send(1 - end, &answer)));
        }
        for (answer, sent) in answers {
            let arrived = pair.arrive(1 - end, &answer, sent);
            assert!(!matches!(arrived, Sent::Dropped(_)), "{arrived:?}");
            let next = pair.data(end);
            assert!(!matches!(next, Sent::Dropped(_)), "{next:?}");
        }
        assert!(pair.recovers_within(9));
    }
}

/// From the same port: with another number, with the same one, and while the old one lives.
#[test]
fn a_mote_that_starts_again_is_answered_at_once() {
    for (opens, isn) in [(0, 77_000), (0, ISNS[0]), (1, 77_000), (1, ISNS[0])] {
        let mut pair = Pair::new();
        pair.open(opens);
        pair.exchange();
        pair.restart(0);
        pair.seq = [isn, ISNS[1] + 99_000];
        let expected = match opens {
            0 => [Sent::Full; 3],
            _ => [Sent::Plain, Sent::Full, Sent::Compressed],
        };
        assert_eq!(pair.open(opens), expected, "{opens} {isn}");
        assert_eq!(pair.exchange(), COMPRESSED, "{opens} {isn}");
    }
}

/// For as long as its old identifiers may be in use it begins plain, and then in mid-connection.
#[test]
fn a_mote_that_starts_again_and_is_quiet_is_answered_plain() {
    for isn in [77_000, ISNS[0]] {
        let mut pair = Pair::new();
        pair.open(0);
        pair.exchange();
        pair.restart(0);
        pair.ends[0].quiet_until = at(120);
        pair.seq = [isn, ISNS[1] + 99_000];
        assert_eq!(pair.open(0), [Sent::Plain; 3], "{isn}");
        assert_eq!(pair.exchange(), PLAIN, "{isn}");
        pair.wait(125);
        assert_eq!(pair.data(0), Sent::Full);
        assert_eq!([pair.data(1), pair.data(0)], COMPRESSED);
    }
}

/// Both have kept their contexts, and the ports come again.
#[test]
fn another_connection_on_the_same_ports_begins_anew() {
    for opens in [0, 1] {
        let mut pair = Pair::new();
        pair.open(opens);
        pair.exchange();
        pair.seq = [ISNS[0] + 123_456, ISNS[1] + 654_321];
        let expected = match opens {
            0 => [Sent::Full; 3],
            _ => [Sent::Plain, Sent::Full, Sent::Compressed],
        };
        assert_eq!(pair.open(opens), expected);
        assert_eq!(pair.exchange(), COMPRESSED);
    }
}

#[test]
fn a_router_without_room_answers_plain_and_takes_the_mote_up_later() {
    let mut pair = Pair::new();
    pair.ends[1] = table(End::Router, 1, 2);
    let other = Flow {
        remote: Ipv6Addr::LOCALHOST,
        ..flow(1)
    };
    // Another mote has the only context, and uses it.
    let mut syn = [&[FULL, 5], &segment(0, PORTS, 1, 0, Flags::SYN, 0)[..]].concat();
    tcp::fill_checksum(&other.remote, &other.local, &mut syn[2..]);
    let busy = |pair: &mut Pair| {
        let taken = pair.ends[1].decompress(&other, &syn, pair.now, &mut [0; 60]);
        assert!(taken.is_ok());
    };
    busy(&mut pair);
    assert_eq!(pair.open(0), [Sent::Full, Sent::Plain, Sent::Full]);
    // Two bytes for each segment, for half a minute.
    assert_eq!(pair.exchange(), [Sent::Full, Sent::Plain]);
    pair.wait(35);
    busy(&mut pair);
    pair.exchange();
    assert_eq!(pair.exchange(), PLAIN);
    assert!(
        pair.ends[1]
            .find_cid(&pair.ends[1].key(&other), 5)
            .is_some(),
        "nobody has lost what he had"
    );
    // It has vanished: its context is free after a minute.
    assert!(pair.recovers_within(30));
}

/// A host sends what its router does not believe, and what the mote must not believe either.
#[test]
fn a_host_does_not_choose_for_its_mote() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    // Far from all numbers: plain, and without effect.
    let wild = segment(1, PORTS, 0x7000_0000, 0x6000_0000, Flags::ACK, 40);
    let sent = pair.send(1, &wild);
    assert_eq!(pair.arrive(1, &wild, sent), Sent::Plain);
    assert_eq!(pair.exchange(), COMPRESSED);
    // A SYN on the live connection.
    let syn = segment(1, PORTS, 0x0123_4567, 0, Flags::SYN, 0);
    let sent = pair.send(1, &syn);
    assert_eq!(pair.arrive(1, &syn, sent), Sent::Plain);
    assert_eq!(pair.exchange(), COMPRESSED);
    // Whatever made it plain, its next segment offers it again.
    for _ in 0..5 {
        let plain = pair.segment(1, Flags::ACK, 0);
        pair.arrive(1, &plain, None);
        assert_eq!(pair.data(0), Sent::Full);
        assert_eq!([pair.data(1), pair.data(0)], COMPRESSED);
    }
}

/// A SYN that a stranger sends in the name of the host, or the answer to one, with data on their
/// way in both directions.
#[test]
fn a_blind_syn_costs_a_live_connection_nothing() {
    for (opens, flags) in [(0, Flags::SYN), (1, Flags::SYN), (0, SYN_ACK), (1, SYN_ACK)] {
        let mut pair = Pair::new();
        pair.open(opens);
        pair.exchange();
        let next_cid = pair.ends[0].next_cid;
        let on_the_way = [0, 1].map(|end| {
            let segment = pair.segment(end, Flags::ACK, 40);
            let sent = pair.send(end, &segment);
            (end, segment, sent)
        });
        let syn = segment(1, PORTS, 0x0123_4567, 0, flags, 0);
        let sent = pair.send(1, &syn);
        assert_eq!(pair.arrive(1, &syn, sent), Sent::Plain);
        for (end, segment, sent) in on_the_way {
            assert_eq!(pair.arrive(end, &segment, sent), Sent::Compressed);
            pair.seq[end] += 40;
        }
        assert_eq!(pair.exchange(), COMPRESSED);
        assert_eq!(pair.ends[0].next_cid, next_cid, "no identifier is spent");
    }
}

/// The host opens again from its ports, and the mote has no identifier to answer with.
#[test]
fn a_plain_answer_with_another_number_ends_the_context() {
    let mut pair = Pair::new();
    pair.open(1);
    pair.exchange();
    pair.ends[0].quarters = [Some(pair.now); 4];
    pair.seq = ISNS.map(|isn| isn + 10_000);
    assert_eq!(pair.open(1), [Sent::Plain; 3]);
    assert_eq!(pair.exchange(), PLAIN);
    let mut contexts = pair.ends[1].contexts.iter();
    assert!(contexts.all(|context| context.state() == State::Free));
}

/// Its full header might not have fitted its frame: it says nothing of who restores headers.
#[test]
fn a_long_plain_header_makes_nobody_plain() {
    for (options, is_plain) in [(20, true), (24, false)] {
        let mut pair = Pair::new();
        pair.open(0);
        pair.exchange();
        let mut long = pair.segment(1, Flags::ACK, options);
        long[12] = ((tcp::HEADER_LEN + options) as u8) << 2;
        long[tcp::HEADER_LEN..].fill(1);
        let flow = flow(1);
        tcp::fill_checksum(&flow.local, &flow.remote, &mut long);
        pair.arrive(1, &long, None);
        let found = pair.ends[0].find_ports(&pair.ends[0].key(&driver::flow(0)), PORTS);
        let agreement = pair.ends[0].contexts[found.unwrap()].agreement;
        assert_eq!(agreement.is_plain(), is_plain, "{options}");
    }
}

/// A host's SYN that comes again says nothing of its router, whose first header was full.
#[test]
fn a_syn_of_a_host_that_comes_again_makes_nothing_plain() {
    let mut pair = Pair::new();
    let syn = pair.segment(1, Flags::SYN, 0);
    assert_eq!(pair.open(1), [Sent::Plain, Sent::Full, Sent::Compressed]);
    pair.arrive(1, &syn, None);
    assert_eq!(pair.exchange(), COMPRESSED);
}

/// More connections begin within two minutes than there are identifiers.
#[test]
fn without_an_identifier_a_connection_is_plain_and_nothing_is_lost() {
    let mut pair = Pair::new();
    for port in 0..130 {
        pair.ports = (10_000 + port, 80);
        pair.seq = [u32::from(port) * 100_000, 7];
        let syn = pair.segment(0, Flags::SYN, 0);
        pair.send(0, &syn);
        // Its context goes with the connection.
        pair.ends[0].contexts.fill(Context::EMPTY);
    }
    assert!(!pair.ends[0].would_carry(&flow(0), pair.now));
    pair.ports = PORTS;
    assert_eq!(pair.open(0), [Sent::Plain; 3]);
    assert_eq!(pair.exchange(), PLAIN);
    pair.wait(121);
    assert!(pair.ends[0].would_carry(&flow(0), pair.now));
    assert_eq!(pair.data(0), Sent::Full);
}

/// What it held of an earlier connection on the same ports goes all the same.
#[test]
fn without_an_identifier_an_old_context_serves_no_new_connection() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    pair.ends[0].quarters = [Some(pair.now); 4];
    pair.seq = ISNS.map(|isn| isn + 10_000);
    assert_eq!(pair.open(0), [Sent::Plain; 3]);
    assert_eq!(pair.exchange(), PLAIN);
}

/// The mote has started again, and names what another connection of its former life has.
#[test]
fn an_identifier_that_the_router_has_elsewhere_is_left_for_another() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    let taken = pair.ends[1]
        .contexts
        .iter()
        .find(|context| context.state() != State::Free);
    let cid = taken.unwrap().cid;
    pair.restart(0);
    pair.ports = (4_001, 80);
    pair.seq = [77_000, 99_000];
    pair.ends[0].set_offer(None);
    assert_eq!(pair.open(0), [Sent::Plain; 3]);
    pair.ends[0].set_offer(Some(ROUTER));
    pair.ends[0].next_cid = cid;
    assert_eq!(pair.exchange(), [Sent::Full, Sent::Plain]);
    // The other one's router goes on to use it.
    for _ in 0..24 {
        pair.wait(5);
        let contexts = pair.ends[1].contexts.iter_mut();
        contexts.for_each(|context| context.touch(pair.now));
        pair.exchange();
    }
    assert_eq!(pair.exchange(), COMPRESSED);
}

/// The mote has started again, and gives one connection the identifier of another one, whose
/// context the router still keeps in a lower slot.
#[test]
fn an_identifier_of_two_connections_means_the_later_one() {
    let mut pair = Pair::new();
    let ports = [PORTS, (4_001, 80)];
    for ports in ports {
        (pair.ports, pair.seq) = (ports, ISNS);
        assert_eq!(pair.open(0), [Sent::Full; 3]);
    }
    let contexts = &pair.ends[1].contexts;
    let [first, second] = ports.map(|(mote, host)| {
        let is_it = |context: &Context| context.ports == (host, mote);
        contexts.iter().position(is_it).unwrap()
    });
    assert!(second < first);
    let cid = contexts[second].cid;
    pair.restart(0);
    pair.ends[0].next_cid = cid;
    (pair.ports, pair.seq) = (ports[0], [77_000, 99_000]);
    assert_eq!(pair.open(0), [Sent::Full; 3]);
    assert_eq!(pair.exchange(), COMPRESSED);
}

#[test]
fn the_last_syn_decides_how_it_is_answered() {
    let mut pair = Pair::new();
    let syn = pair.segment(0, Flags::SYN, 0);
    for expected in [Sent::Full, Sent::Full, Sent::Plain, Sent::Full] {
        let sent = pair.send(0, &syn);
        assert_eq!(pair.arrive(0, &syn, sent), expected);
        pair.seq[0] = ISNS[0] + 1;
        let answer = pair.segment(1, SYN_ACK, 0);
        let is_plain = pair.send(1, &answer).is_none();
        assert_eq!(is_plain, expected == Sent::Plain);
    }
}

/// Connections of a mote that have gone plain leave their places to others.
#[test]
fn plain_connections_take_no_context_from_others() {
    let mut pair = Pair::new();
    pair.ends[1] = table(End::Router, 8, 2);
    for port in 0..4 {
        pair.ports = (5_000 + port, 80);
        pair.seq = ISNS;
        pair.open(0);
        let plain = pair.segment(1, Flags::ACK, 0);
        pair.arrive(1, &plain, None);
    }
    pair.ports = PORTS;
    pair.seq = ISNS;
    assert!(pair.ends[0].would_carry(&flow(0), pair.now));
    assert_eq!(pair.open(0), [Sent::Full; 3]);
}

/// One slot, and two connections that no header may pass: each would forget how often the other one
/// was refused.
#[test]
fn a_plain_connection_keeps_its_slot_while_it_is_used() {
    let mut pair = Pair::new();
    pair.ends[0] = table(End::Mote, 1, 1);
    pair.ends[0].set_offer(Some(ROUTER));
    pair.ends[1] = table(End::Router, 0, 2);
    let mut full = 0;
    for second in 0..40 {
        for port in [5_000, 5_001] {
            pair.ports = (port, 80);
            pair.wait(1);
            full += usize::from(pair.data(0) == Sent::Full);
            assert_eq!(pair.data(1), Sent::Plain);
        }
        // The grace of the first offer is over.
        if second == 20 {
            full = 0;
        }
    }
    assert!(full <= 2, "{full}");
}

/// What is promised to TCP before the connection, and what each segment then is.
#[test]
fn a_segment_is_cut_to_the_form_that_it_will_have() {
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    let header = |pair: &Pair| pair.segment(0, Flags::ACK, 0);
    let len = |pair: &Pair| pair.ends[0].header_len(&flow(0), &header(pair), pair.now);
    assert!(len(&pair) < tcp::HEADER_LEN);
    assert!(pair.ends[0].carries(&flow(0), PORTS, pair.now));
    let plain = pair.segment(1, Flags::ACK, 0);
    pair.arrive(1, &plain, None);
    assert!(!pair.ends[0].carries(&flow(0), PORTS, pair.now));
    assert_eq!(len(&pair), tcp::HEADER_LEN + 2, "it is offered again");
    pair.data(0);
    pair.wait(35);
    pair.arrive(1, &plain, None);
    assert_eq!(len(&pair), tcp::HEADER_LEN);
    pair.ends[0].set_offer(None);
    assert_eq!(len(&pair), tcp::HEADER_LEN);
    // The offer comes back, and nothing was heard: it is made anew, with a full header.
    let mut pair = Pair::new();
    pair.open(0);
    pair.exchange();
    pair.ends[0].set_offer(None);
    assert_eq!(pair.data(0), Sent::Plain);
    pair.ends[0].set_offer(Some(ROUTER));
    assert_eq!(len(&pair), tcp::HEADER_LEN + 2);
    // A listener promises a host what its answer will offer.
    let mote = mote(3);
    assert!(mote.carries(&flow(0), PORTS, at(1)));
}

/// The random attack of the other tests, with restarts, silent minutes and SYNs on live
/// connections: nothing is restored wrong, and most of it is compressed.
#[test]
fn random_traffic_and_trouble_spoil_nothing() {
    let agree = |table: &mut Tcphc<'static>| {
        table.config.learned = true;
        table.set_offer(Some(ROUTER));
    };
    for (seed, loss, reorder, late, timestamps) in [
        (1, 0, 0, 0, false),
        (2, 100, 0, 0, true),
        (3, 200, 100, 50, true),
        (4, 300, 300, 150, false),
    ] {
        let setup = Setup {
            loss,
            reorder,
            late,
            timestamps,
            trouble: 100,
            seed,
            ..Setup::CALM
        };
        let mut world = World::new(setup, agree);
        world.run(60_000);
        let seen = &world.seen;
        let forms = seen.forms.map(|[bare, data]| bare + data);
        assert_eq!((seen.wrong_data, seen.never_sent), (0, 0), "{seen:?}");
        assert!(seen.timeouts < 8, "{seen:?}");
        assert!(forms[2] > forms[3], "{forms:?}");
        assert!(forms.iter().all(|count| *count > 0), "{forms:?}");
    }
}
