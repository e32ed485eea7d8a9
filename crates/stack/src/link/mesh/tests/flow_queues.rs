//! Flows that enter a mesh, without a mesh: who is next, who pays, and what is dropped.

use super::turns::{BYTE_US, IN_USE_FOR, PART_MAX};
use super::*;
use crate::wire::ipv6::TrafficClass;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;
use std::vec::Vec;

fn addr(network: u16, last: u16) -> Ipv6Addr {
    Ipv6Addr::new(network, 0, 0, 0, 0, 0, 0, last)
}

fn packet(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, upper: &[u8]) -> Vec<u8> {
    let header = Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: upper.len() as u16,
        next_header,
        hop_limit: 64,
        src,
        dst,
    };
    let mut packet = std::vec![0; HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend(upper);
    packet
}

fn segment([src_port, dst_port]: [u16; 2], flags: tcp::Flags, len: usize) -> Vec<u8> {
    let header = tcp::Header {
        src_port,
        dst_port,
        flags,
        ..tcp::Header::default()
    };
    let mut bytes = std::vec![0; tcp::HEADER_LEN];
    header.emit(&mut bytes).unwrap();
    bytes.extend(std::iter::repeat_n(0x5a, len));
    bytes
}

/// A segment of connection `number` into the mesh.
fn down(number: u16, flags: tcp::Flags, len: usize) -> Vec<u8> {
    let upper = segment([1_000 + number, 80], flags, len);
    packet(addr(1, number), addr(2, 3), tcp::NEXT_HEADER, &upper)
}

/// A segment of connection `number` into the mesh that acknowledges `ack`.
fn answer(number: u16, flags: tcp::Flags, ack: u32) -> Vec<u8> {
    let mut packet = down(number, flags, 0);
    packet[HEADER_LEN + 8..][..4].copy_from_slice(&ack.to_be_bytes());
    packet
}

/// A segment of connection `number` out of the mesh.
fn up(number: u16, flags: tcp::Flags, ack: u32, len: usize) -> Vec<u8> {
    let mut upper = segment([80, 1_000 + number], flags, len);
    upper[8..12].copy_from_slice(&ack.to_be_bytes());
    packet(addr(2, 3), addr(1, number), tcp::NEXT_HEADER, &upper)
}

/// A datagram of a stranger.
fn datagram(src: u16, dst: u16, len: usize) -> Vec<u8> {
    packet(addr(9, src), addr(2, dst), 17, &std::vec![0; 8 + len])
}

/// Queues whose packets are told apart, and sent as the air would.
struct Router<'m> {
    queues: FlowQueues<'m>,
    now: Instant,
    /// Who a packet is from, by its metadata, which are numbers in order.
    whose: Vec<u16>,
    dropped: u32,
}

impl<'m> Router<'m> {
    fn new(bytes: &'m mut [u8], flows: &'m mut [FlowEntry]) -> Self {
        Self {
            queues: FlowQueues::new(bytes, flows),
            now: Instant::ORIGIN + Duration::from_secs(10),
            whose: Vec::new(),
            dropped: 0,
        }
    }

    /// Lets motes acknowledge data of these connections, so that their flows count as known.
    fn prove(&mut self, numbers: impl IntoIterator<Item = u16>) {
        for number in numbers {
            let data = up(number, tcp::Flags::ACK, 1, 1);
            self.leave(&data);
        }
    }

    /// A packet leaves the mesh.
    fn leave(&mut self, packet: &[u8]) {
        let air = air(packet.len());
        self.queues.on_leaving(packet, air, 3, self.now);
    }

    /// Whether there is a flow that is known.
    fn knows_any(&self) -> bool {
        self.queues.flows.iter().any(|flow| flow.key.is_some())
    }

    fn offer(&mut self, who: u16, packet: &[u8]) {
        let meta = self.whose.len() as u32;
        self.whose.push(who);
        let (head, tail) = packet.split_at(8);
        let mut drops = IpCounters::default();
        let queued = self.queues.push([head, tail], meta, &mut drops, self.now);
        self.dropped += drops.dropped(PacketDrop::QueueFull) + u32::from(queued.is_err());
    }

    /// The next packet, and if it has to be, when it may leave.
    fn next(&mut self) -> Option<Next> {
        let mut out = [0; 1_280];
        self.queues.end_deadline();
        if let Some(next) = self.queues.pop(&mut out, |_| true, self.now) {
            return Some(next);
        }
        let at = self.queues.next_deadline()?;
        assert!(at > self.now, "what may leave has left");
        self.now = at;
        self.queues.pop(&mut out, |_| true, self.now)
    }

    /// Lets the time pass that something takes over three hops.
    fn pass(&mut self, air: usize) {
        // Six tenths of the time frames are on the air.
        self.now += Duration::from_micros(air as u64 * BYTE_US * 10 / 6);
    }

    /// Sends the next packet over three hops; says whose it was, and what it cost.
    fn send(&mut self) -> Option<(u16, usize)> {
        let next = self.next()?;
        self.queues.charge_packet(air(next.len), 3);
        self.queues.end_service();
        let air = 3 * air(next.len);
        self.pass(air);
        Some((self.whose[next.meta as usize], air))
    }

    /// How the air is shared out while everybody in `offers` keeps `kept` packets waiting.
    fn shares(&mut self, offers: &[(u16, Vec<u8>)], packets: usize) -> BTreeMap<u16, usize> {
        let mut spent = BTreeMap::new();
        for _ in 0..4 {
            offers
                .iter()
                .for_each(|(who, bytes)| self.offer(*who, bytes));
        }
        for _ in 0..packets {
            let (who, air) = self.send().expect("everybody keeps some waiting");
            *spent.entry(who).or_default() += air;
            let again = offers.iter().find(|(own, _)| *own == who);
            again
                .into_iter()
                .for_each(|(_, bytes)| self.offer(who, bytes));
        }
        spent
    }
}

const ACK: tcp::Flags = tcp::Flags::ACK;

/// What a connection has of the air beside strangers: half at least, and not so much that these
/// have less than one of their smallest packets for each of its segments.
const HALF_AT_LEAST: std::ops::Range<f64> = 0.5..0.92;

#[test]
fn a_connection_and_a_stranger_share_the_air_whatever_they_send() {
    for len in [20, 100, 500, 1_000] {
        let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
        let mut router = Router::new(&mut bytes, &mut flows);
        router.prove([1]);
        let offers = [(1, down(1, ACK, 462)), (100, datagram(0, 3, len))];
        let spent = router.shares(&offers, 2_000);
        let part = spent[&1] as f64 / spent.values().sum::<usize>() as f64;
        assert!(HALF_AT_LEAST.contains(&part), "{len}: {part}");
        assert_eq!(router.dropped, 0);
    }
}

/// What one host sends to several motes, or over several protocols, is one stranger's.
#[test]
fn a_host_has_one_share_however_many_queues_it_fills() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    let mut offers = std::vec![(1, down(1, ACK, 462))];
    offers.extend((0..4).map(|mote| (100 + mote, datagram(0, mote, 100))));
    let spent = router.shares(&offers, 3_000);
    let part = spent[&1] as f64 / spent.values().sum::<usize>() as f64;
    assert!(HALF_AT_LEAST.contains(&part), "{part}");
    // And its flows share that evenly.
    let others = (100..104).map(|who| spent[&who] as f64).collect::<Vec<_>>();
    let mean = others.iter().sum::<f64>() / 4.0;
    assert!(
        others.iter().all(|own| (own / mean - 1.0).abs() < 0.1),
        "{others:?}"
    );
}

#[test]
fn many_forged_sources_do_no_more_harm_than_eight() {
    let part = |sources: u16| {
        let (mut bytes, mut flows) = ([0; 60_000], [FlowEntry::EMPTY; 4]);
        let mut router = Router::new(&mut bytes, &mut flows);
        router.prove([1]);
        let mut offers = std::vec![(1, down(1, ACK, 462))];
        offers.extend((0..sources).map(|src| (100 + src, datagram(src, 3, 100))));
        let spent = router.shares(&offers, 4_000);
        spent[&1] as f64 / spent.values().sum::<usize>() as f64
    };
    let [one, eight, many] = [1, 8, 64].map(part);
    for part in [one, eight, many] {
        assert!(HALF_AT_LEAST.contains(&part), "{one}, {eight}, {many}");
    }
    assert!(many > 0.99 * eight, "{many} instead of {eight}");
}

#[test]
fn what_a_stranger_is_answered_is_charged_to_it() {
    for sources in [1, 64] {
        let (mut bytes, mut flows) = ([0; 60_000], [FlowEntry::EMPTY; 4]);
        let mut router = Router::new(&mut bytes, &mut flows);
        router.prove([1]);
        let offer = |router: &mut Router<'_>, who: u16| match who.checked_sub(100) {
            None => router.offer(1, &down(1, ACK, 462)),
            Some(src) => router.offer(who, &datagram(src, 3, 500)),
        };
        let (mut own, mut others) = (0, 0);
        for _ in 0..4 {
            offer(&mut router, 1);
        }
        for src in 0..sources {
            offer(&mut router, 100 + src);
        }
        for _ in 0..2_000 {
            let (who, air) = router.send().unwrap();
            match who.checked_sub(100) {
                None => own += air,
                Some(src) => {
                    others += (1 + ANSWER_WEIGHT) * air;
                    router.pass(air * ANSWER_WEIGHT);
                    let reply = packet(addr(2, 3), addr(9, src), 17, &[0; 508]);
                    router.leave(&reply);
                }
            }
            offer(&mut router, who);
        }
        let part = own as f64 / (own + others) as f64;
        assert!(HALF_AT_LEAST.contains(&part), "{sources}: {part}");
    }
}

/// What a mote sends by itself is no stranger's doing.
#[test]
fn what_nobody_asked_for_costs_nobody_anything() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    let reading = packet(addr(2, 3), addr(9, 0), 17, &[0; 508]);
    router.leave(&reading);
    assert!(!router.queues.must_strangers_wait(false, router.now));
    router.offer(100, &datagram(0, 3, 20));
    assert_eq!(router.send().unwrap().0, 100);
    router.leave(&reading);
    assert!(router.queues.must_strangers_wait(false, router.now));
}

/// A flood of small datagrams once kept the turn for as long as its credit was renewed, for ever:
/// no newcomer's SYN came through.
#[test]
fn a_newcomer_has_its_turn_beside_a_flood() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    let offers = [(1, down(1, ACK, 462)), (100, datagram(0, 3, 20))];
    router.shares(&offers, 200);
    router.offer(2, &down(2, tcp::Flags::SYN, 0));
    let (mut before, mut other) = (0, 0);
    while let Some((who, _)) = router.send() {
        match who {
            1 => other += 1,
            100 => before += 1,
            _ => break,
        }
        let again = offers.iter().find(|(own, _)| *own == who);
        again
            .into_iter()
            .for_each(|(_, bytes)| router.offer(who, bytes));
        assert!(
            before < 20,
            "{before} packets of the flood, {other} of the connection"
        );
    }
}

#[test]
fn a_connection_that_had_nothing_waiting_goes_first_and_a_stranger_does_not() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1, 2]);
    for _ in 0..8 {
        router.offer(1, &down(1, ACK, 462));
    }
    assert_eq!(router.send().unwrap().0, 1);
    assert_eq!(router.send().unwrap().0, 1);
    router.offer(100, &datagram(0, 3, 20));
    router.offer(2, &down(2, ACK, 64));
    assert_eq!(router.send().unwrap().0, 2, "the sparse connection");
    let order = std::iter::from_fn(|| router.send()).map(|(who, _)| who);
    let order = order.collect::<Vec<_>>();
    assert_ne!(order[0], 100, "a stranger has no precedence: {order:?}");
    assert!(order[..4].contains(&100), "but its turn: {order:?}");
}

/// A connection that empties its queue again and again has the precedence once a round.
#[test]
fn a_connection_does_not_go_first_for_ever() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1, 2]);
    for _ in 0..20 {
        router.offer(1, &down(1, ACK, 462));
    }
    let mut sent = [0; 2];
    for _ in 0..30 {
        router.offer(2, &down(2, ACK, 462));
        let (who, air) = router.send().unwrap();
        sent[usize::from(who) - 1] += air;
    }
    assert!(sent[0] * 2 > sent[1], "{sent:?}");
}

/// Thirty flows with one ACK each, and room for eight: the flow with the highest number once lost
/// every ACK, whoever's arrived.
#[test]
fn no_flow_starves_where_each_has_one_packet_and_room_is_short() {
    // The ACK of every third flow has an option more.
    let ack = |number: u16| match number % 3 {
        0 => down(number, ACK, 4),
        _ => down(number, ACK, 0),
    };
    let (mut bytes, mut flows) = ([0; 8 * 70], [FlowEntry::EMPTY; 40]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove(0..30);
    let mut sent = BTreeMap::new();
    let mut random = 1_u32;
    for _ in 0..30 * 400 {
        for _ in 0..3 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (random >> 16) as u16 % 30;
            router.offer(number, &ack(number));
        }
        if let Some((who, _)) = router.send() {
            *sent.entry(who).or_insert(0_u32) += 1;
        }
    }
    let mean = sent.values().sum::<u32>() / 30;
    let least = (0..30).map(|number| sent.get(&number).copied().unwrap_or(0));
    assert!(2 * least.min().unwrap() > mean, "mean {mean}: {sent:?}");
}

/// A stranger in debt waits, and its packet with it; nobody else waits for that.
#[test]
fn what_one_stranger_owes_puts_no_handshake_off() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 12]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove(1..=10);
    let flood =
        |router: &mut Router<'_>| (1..=10).for_each(|own| router.offer(own, &down(own, ACK, 462)));
    flood(&mut router);
    router.offer(100, &datagram(0, 3, 1_000));
    while router.send().unwrap().0 != 100 {}
    router.offer(100, &datagram(0, 3, 1_000));
    // Each has one more packet waiting than it will have sent.
    flood(&mut router);
    flood(&mut router);
    router.offer(50, &down(50, tcp::Flags::SYN, 0));
    let before = std::iter::from_fn(|| router.send()).take_while(|(who, _)| *who != 50);
    let before = before.map(|(who, _)| who).collect::<Vec<_>>();
    assert!(before.len() <= 10, "each known flow goes once: {before:?}");
}

/// Packets for motes that sleep fill the memory; the mote that is awake loses nothing to them.
#[test]
fn who_can_send_is_not_refused_for_those_who_can_not() {
    let (mut bytes, mut flows) = ([0; 16 * 560], [FlowEntry::EMPTY; 20]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove(1..=17);
    (1..=16).for_each(|own| router.offer(own, &down(own, ACK, 462)));
    let awake = down(17, ACK, 462);
    let is_awake = |packet: &[u8]| packet == awake;
    let mut out = [0; 1_280];
    for _ in 0..10 {
        router.offer(17, &awake);
        let next = router.queues.pop(&mut out, is_awake, router.now);
        router
            .queues
            .charge_packet(air(next.expect("it has room").len), 3);
        router.queues.end_service();
    }
}

/// While strangers must wait, connections send; what the stranger owes for its last packet is not
/// paid by that.
#[test]
fn a_stranger_owes_behind_its_wait_what_it_owed_before() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    router.offer(100, &datagram(0, 3, 1_000));
    assert_eq!(router.send().unwrap().0, 100);
    router.offer(100, &datagram(0, 3, 1_000));
    let until = router.now + PART_MAX;
    let mut sent = 0;
    while router.queues.must_strangers_wait(false, router.now) {
        router.offer(1, &down(1, ACK, 462));
        assert_eq!(router.send().unwrap().0, 1);
        sent += 1;
        assert!(router.now < until, "strangers have their part");
    }
    assert!(sent > 1, "there was a wait");
    router.offer(1, &down(1, ACK, 462));
    assert_eq!(router.send().unwrap().0, 1, "the stranger's debt");
}

/// What a mote answers to a SYN, and to what does not fit a handshake: none takes more than packets
/// in another host's name.
#[test]
fn no_answer_to_a_stranger_makes_a_connection_known() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    let syn_ack = tcp::Flags::SYN | ACK;
    for (flags, ack) in [
        (syn_ack, 1),
        // The SYN was lost, and an ACK beyond the window is answered.
        (ACK, 1),
        (ACK, 1),
        // A SYN of another number takes its place.
        (syn_ack, 900),
        (ACK, 900),
        (tcp::Flags::RST, 0),
        (tcp::Flags::RST | ACK, 77),
    ] {
        router.leave(&up(1, flags, ack, 0));
        router.offer(1, &down(1, tcp::Flags::SYN, 0));
    }
    // A segment with another number does not prove that its source saw the SYN; a refusal opens
    // nothing.
    router.offer(1, &answer(1, ACK, 900));
    router.offer(1, &answer(1, tcp::Flags::RST | ACK, 1));
    router.offer(1, &answer(1, tcp::Flags::SYN, 1));
    assert!(!router.knows_any());
    router.offer(1, &answer(1, ACK, 1));
    assert!(router.knows_any());
    // What waited among the strangers' came along.
    let waiting = router.queues.flows.iter().map(|flow| flow.lane.packets);
    assert_eq!(waiting.sum::<u16>(), 11);
}

/// A mote that only receives acknowledges more than the SYN; one that only sends has data. Here the
/// SYN was not seen, or its place was given to others.
#[test]
fn a_complete_handshake_makes_a_connection_known() {
    for last in [
        up(1, ACK, 463, 0),
        up(1, ACK, 1, 40),
        up(1, tcp::Flags::FIN | ACK, 1, 0),
    ] {
        let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
        let mut router = Router::new(&mut bytes, &mut flows);
        router.leave(&up(1, ACK, 1, 0));
        router.leave(&last);
        assert!(router.knows_any(), "{last:?}");
    }
}

/// The peer has seen the mote's SYN-ACK. Until the mote answered its first segments, downloads once
/// waited among strangers, and timed out.
#[test]
fn what_answers_a_motes_syn_ack_makes_its_connection_known() {
    let syn = tcp::Flags::SYN;
    // Where the mote has sent its SYN first, it has data, which make the connection known.
    for (own, theirs, expected) in [(syn | ACK, ACK, true), (syn, syn | ACK, false)] {
        let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
        let mut router = Router::new(&mut bytes, &mut flows);
        router.leave(&up(1, own, 1, 0));
        router.offer(1, &answer(1, theirs, 2));
        assert!(!router.knows_any(), "another number");
        router.offer(2, &answer(2, theirs, 1));
        assert!(!router.knows_any(), "another connection");
        router.offer(1, &answer(1, theirs, 1));
        assert_eq!(router.knows_any(), expected);
    }
}

/// However many handshakes begin in others' names, those that are noted are the latest ones.
#[test]
fn handshakes_that_begin_are_noted_in_bounded_memory() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    for number in 0..1_000 {
        router.leave(&up(number, tcp::Flags::SYN | ACK, 1, 0));
    }
    for number in (0..1_000).rev() {
        router.leave(&up(number, ACK, 1, 0));
    }
    assert!(!router.knows_any());
}

/// Readings that motes send for hours, each acknowledged by a datagram down, once used up the time
/// of strangers far ahead.
#[test]
fn answers_use_up_no_time_beyond_the_packets_that_they_answer() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    let reading = packet(addr(2, 3), addr(9, 0), 17, &[0; 108]);
    for _ in 0..3_600 {
        router.prove([1]);
        router.leave(&reading);
        router.leave(&reading);
        router.offer(100, &datagram(0, 3, 4));
        router.now += Duration::from_millis(500);
        let mut out = [0; 1_280];
        if let Some(next) = router.queues.pop(&mut out, |_| true, router.now) {
            router.queues.charge_packet(air(next.len), 3);
        }
        router.now += Duration::from_millis(500);
    }
    assert_eq!(router.queues.waiting(), 0, "one a second passes");
    // Whatever strangers were answered, their time is not used up for long.
    for src in 0..100 {
        router.offer(100, &datagram(src, 3, 1_000));
        if router
            .queues
            .pop(&mut [0; 1_280], |_| true, router.now)
            .is_some()
        {
            router.queues.charge_packet(usize::MAX, 3);
        }
    }
    router.prove([1]);
    assert!(router.queues.must_strangers_wait(false, router.now));
    router.now += PART_MAX;
    router.prove([1]);
    assert!(!router.queues.must_strangers_wait(false, router.now));
}

/// SYNs in anybody's name put no bound on datagrams.
#[test]
fn what_is_no_known_flow_is_no_use_of_tcp() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.offer(100, &datagram(0, 3, 1_000));
    assert_eq!(router.send().unwrap().0, 100);
    for number in 0..20 {
        router.offer(number, &down(number, tcp::Flags::SYN, 0));
        router.leave(&up(number, tcp::Flags::RST | ACK, 1, 0));
        router.leave(&up(number, tcp::Flags::SYN | ACK, 1, 0));
    }
    assert!(!router.queues.must_strangers_wait(false, router.now));
}

/// A host that floods several motes has one queue: another's SYN is never behind its own.
#[test]
fn one_source_has_one_queue() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    let flood = |router: &mut Router<'_>, dst: u16| {
        let upper = segment([9, 80], tcp::Flags::SYN, 0);
        let syn = packet(addr(9, 1), addr(2, dst), tcp::NEXT_HEADER, &upper);
        router.offer(100, &syn);
    };
    for round in 0..100 {
        flood(&mut router, round % 8);
    }
    for number in 0..3 {
        router.offer(number, &down(number, tcp::Flags::SYN, 0));
    }
    let order = std::iter::from_fn(|| router.send()).map(|(who, _)| who);
    let order = order.collect::<Vec<_>>();
    for number in 0..3 {
        let place = order.iter().position(|who| *who == number).unwrap();
        assert!(place < 60, "{number} is number {place} of {}", order.len());
    }
}

/// A packet for a mote that is asleep does not hold up what its source sends to others.
#[test]
fn of_one_source_what_can_go_goes() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    for dst in [1, 1, 2, 1, 2] {
        router.offer(dst, &datagram(0, dst, 20));
    }
    let is_ready = |packet: &[u8]| Key::read(packet).unwrap().0.dst == addr(2, 2);
    let mut out = [0; 1_280];
    let mut pop = |is_ready: &dyn Fn(&[u8]) -> bool| {
        let next = router.queues.pop(&mut out, is_ready, router.now);
        next.map(|next| next.meta)
    };
    let asleep = [pop(&is_ready), pop(&is_ready), pop(&is_ready)];
    assert_eq!(asleep, [Some(2), Some(4), None]);
    let awake = [pop(&|_| true), pop(&|_| true), pop(&|_| true)];
    assert_eq!(awake, [Some(0), Some(1), Some(3)]);
}

/// Much that waits for a mote that asks for nothing holds up little of what its source sends to
/// others: the oldest of it goes.
#[test]
fn what_no_mote_takes_stands_before_few_others() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    for _ in 0..50 {
        router.offer(1, &datagram(0, 1, 600));
    }
    router.offer(2, &datagram(0, 2, 20));
    let is_ready = |packet: &[u8]| Key::read(packet).unwrap().0.dst == addr(2, 2);
    let mut out = [0; 1_280];
    let mut pop = |is_ready: &dyn Fn(&[u8]) -> bool| {
        let next = router.queues.pop(&mut out, is_ready, router.now);
        next.map(|next| next.meta)
    };
    assert_eq!([pop(&is_ready), pop(&is_ready)], [Some(50), None]);
    // Those that came last wait still, in their order.
    assert_eq!([pop(&|_| true), pop(&|_| true)], [Some(43), Some(44)]);
    let counters = *router.queues.counters();
    assert_eq!((counters.sent, counters.dropped), (3, 43));
}

/// A connection whose mote takes nothing for a while loses nothing: TCP counts it as under way.
#[test]
fn a_connection_waits_whole_for_a_mote_that_is_asleep() {
    let (mut bytes, mut flows) = ([0; 40_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    for _ in 0..20 {
        router.offer(1, &down(1, ACK, 462));
    }
    let mut out = [0; 1_280];
    assert_eq!(router.queues.pop(&mut out, |_| false, router.now), None);
    assert_eq!(router.queues.waiting(), 20);
}

/// Where nobody uses TCP strangers have the air for themselves, and with it again once that is long
/// ago.
#[test]
fn strangers_wait_for_nobody_but_tcp() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    let mut out = [0; 1_280];
    let burst = |router: &mut Router<'_>, out: &mut [u8]| {
        (0..10).for_each(|_| router.offer(100, &datagram(0, 3, 1_000)));
        let sent = (0..10).filter(|_| {
            let next = router.queues.pop(out, |_| true, router.now);
            next.is_some_and(|next| {
                router.queues.charge_packet(air(next.len), 3);
                true
            })
        });
        sent.count()
    };
    assert_eq!(burst(&mut router, &mut out), 10);
    router.prove([1]);
    assert_eq!(burst(&mut router, &mut out), 0, "they have had their part");
    assert!(router.queues.next_deadline().is_some());
    router.now += IN_USE_FOR;
    assert_eq!(burst(&mut router, &mut out), 10);
}

#[test]
fn the_longest_queue_pays_when_memory_is_full() {
    let (mut bytes, mut flows) = ([0; 4_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    for _ in 0..2 {
        router.offer(1, &down(1, ACK, 462));
    }
    for _ in 0..50 {
        router.offer(100, &datagram(0, 3, 200));
    }
    router.offer(1, &down(1, ACK, 462));
    let left = std::iter::from_fn(|| router.send()).map(|(who, _)| who);
    let left = left.collect::<Vec<_>>();
    assert_eq!(left.iter().filter(|who| **who == 1).count(), 3, "{left:?}");
    let counters = *router.queues.counters();
    assert_eq!(counters.queued, counters.sent + counters.dropped);
    assert_eq!(router.dropped, counters.dropped + counters.refused);
    // The oldest of a queue go: what is left of the stranger's is the newest.
    assert!(router.dropped > 30);
}

#[test]
fn a_packet_that_can_never_fit_costs_nobody_anything() {
    let (mut bytes, mut flows) = ([0; 600], [FlowEntry::EMPTY; 1]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1]);
    router.offer(1, &down(1, ACK, 462));
    router.offer(100, &datagram(0, 3, 1_000));
    let counters = router.queues.counters();
    assert_eq!((counters.dropped, counters.refused), (0, 1));
    assert_eq!(router.send().unwrap().0, 1);
    let mut none = Router::new(&mut [], &mut []);
    none.prove([1]);
    none.offer(1, &down(1, ACK, 462));
    assert_eq!((none.send(), none.queues.counters().refused), (None, 1));
}

#[test]
fn a_flow_whose_next_hop_is_not_ready_lets_others_go_and_earns_nothing() {
    let (mut bytes, mut flows) = ([0; 20_000], [FlowEntry::EMPTY; 4]);
    let mut router = Router::new(&mut bytes, &mut flows);
    router.prove([1, 2]);
    for _ in 0..10 {
        router.offer(1, &down(1, ACK, 462));
        router.offer(2, &down(2, ACK, 462));
    }
    let mut out = [0; 1_280];
    let is_of = |number: u16| {
        move |packet: &[u8]| {
            packet.get(HEADER_LEN..HEADER_LEN + 2) != Some(&(1_000 + number).to_be_bytes()[..])
        }
    };
    for _ in 0..8 {
        let next = router.queues.pop(&mut out, is_of(1), router.now).unwrap();
        router.queues.charge_packet(air(next.len), 3);
        assert_eq!(router.whose[next.meta as usize], 2);
    }
    // Now it is, and has no more than its share.
    let order = (0..4).map(|_| router.send().unwrap().0).collect::<Vec<_>>();
    assert!(order.contains(&2), "{order:?}");
}

#[derive(Clone, Debug)]
enum Step {
    /// A segment of one of six connections, or a datagram of one of twelve strangers.
    Offer(u16, usize),
    /// The mote of this connection acknowledges data.
    Prove(u16),
    Send,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u16..18, 0usize..600).prop_map(|(who, len)| Step::Offer(who, len)),
        1 => (0u16..6).prop_map(Step::Prove),
        3 => Just(Step::Send),
        1 => (0u64..6_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    /// Memory is bounded, no flow's packets change places, and every packet is sent, waits, or is
    /// counted.
    #[test]
    fn whatever_comes_is_sent_in_order_or_counted(
        capacity in 0usize..6_000,
        places in 0usize..5,
        steps in steps(),
    ) {
        let mut bytes = std::vec![0; capacity];
        let mut flows = std::vec![FlowEntry::EMPTY; places];
        let mut router = Router::new(&mut bytes, &mut flows);
        let mut order: BTreeMap<u16, VecDeque<u32>> = BTreeMap::new();
        let mut sent = 0u32;
        for step in steps {
            match step {
                Step::Offer(who, len) => {
                    let packet = match who {
                        0..6 => down(who, ACK, len),
                        _ => datagram(who, who % 5, len),
                    };
                    order.entry(who).or_default().push_back(router.whose.len() as u32);
                    router.offer(who, &packet);
                }
                Step::Prove(number) => router.prove([number]),
                Step::Send => {
                    if let Some(next) = router.next() {
                        router.queues.charge_packet(air(next.len), 3);
                        sent += 1;
                        let own = order.get_mut(&router.whose[next.meta as usize]).unwrap();
                        // Those before it were dropped, not overtaken.
                        let at = own.iter().position(|meta| *meta == next.meta);
                        prop_assert!(at.is_some(), "{} went before", next.meta);
                        own.drain(..=at.unwrap_or_default());
                    } else {
                        prop_assert_eq!(router.queues.waiting(), 0);
                    }
                }
                Step::Wait(ms) => router.now += Duration::from_millis(ms),
            }
            let queues = &router.queues;
            let kept = queues.lanes().map(|(_, lane)| lane.bytes as usize).sum::<usize>();
            prop_assert_eq!(kept, capacity - queues.queues.room());
            let offered = router.whose.len();
            prop_assert_eq!(offered, sent as usize + queues.waiting() + router.dropped as usize);
            let counters = queues.counters();
            prop_assert_eq!(counters.dropped + counters.refused, router.dropped);
            prop_assert_eq!(counters.sent, sent);
        }
    }
}
