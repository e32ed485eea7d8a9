//! What a node makes of datagrams about joining, in clear and not: a join proxy, and a
//! JRC.

use proptest::prelude::*;

use super::*;
use crate::ip::ALL_NODES;
use crate::join::{
    Configuration, DATAGRAM_LEN_MAX, JoinError, JoinKey, PORT, Pledge, Request, hear,
};
use crate::mac::security::{KEY_LEN, NetworkKey, Peer, Security, SecurityConfig};
use crate::node::datagram::{DatagramError, head};
use crate::random::Rng;
use crate::remote::Remote;
use crate::wire::lowpan_dispatch::IPV6;

/// A JRC with a key.
fn jrc() -> Node<'static> {
    let mut rng = Rng::from_seed([1, 1]);
    let mut radio = radio(0, MeshConfig::default(), Duration::ZERO, 8, &mut rng);
    let config = SecurityConfig::new(NetworkKey::new([7; 16]), 1);
    let security = Security::new(&config, memory(Peer::EMPTY, 2));
    if let Link::Mesh(mesh) = &mut radio {
        mesh.set_security(Box::leak(Box::new(security)));
    }
    let interfaces = Vec::leak(std::vec![radio, wire()]);
    let ip = Ip::new(IpConfig::default(), memory(None, 4));
    let tcp = tcp_engine(&mut rng);
    let proxy = JoinProxy::new(JoinRole::Jrc, &mut rng);
    let mut node = Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN);
    node.set_join_proxy(Box::leak(Box::new(proxy)));
    node
}

/// Hears a datagram in clear, from port to port, with these bits of its checksum changed.
fn hear_in_clear(node: &mut Node<'_>, ports: (u16, u16), damage: u8) {
    let src = ip::link_local(link(1).iid());
    let mut start = head((src, ALL_NODES), ports, 255, b"what").unwrap();
    start[ipv6::HEADER_LEN + 7] ^= damage;
    let payload = [&[IPV6], &start[..], b"what"].concat();
    let psdu = frame_from(link(1), LinkAddr::BROADCAST, 1, &payload);
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: Instant::ORIGIN,
    };
    let heard = mac::Event::FrameReceived { psdu: &psdu, meta };
    node.on_event(RADIO, Event::Mesh(heard), Instant::ORIGIN);
    let mut out = [0; ACTION_LEN_MAX];
    while node.poll_action(Instant::ORIGIN, &mut out).is_some() {}
}

#[test]
fn what_comes_in_clear_and_is_no_request_is_counted() {
    let mut node = jrc();
    let mut refused = 0;
    for (ports, damage) in [
        ((PORT, PORT), 0),
        ((PORT, PORT), 1),
        ((PORT, 9), 0),
        ((9, PORT), 0),
    ] {
        hear_in_clear(&mut node, ports, damage);
        refused += 1;
        let counters = node.join_proxy().unwrap().counters();
        assert_eq!(counters.refused, refused, "{ports:?} {damage}");
    }
    assert_eq!(node.join_proxy().unwrap().counters().taken, 0);
}

#[test]
fn nobody_joins_over_a_cable() {
    let mut node = jrc();
    let neighbours = Remote {
        zone: WIRE.zone(),
        ..(ALL_NODES, PORT).into()
    };
    let sent = node.send_join(&neighbours, b"request", Instant::ORIGIN);
    assert_eq!(sent, Err(DatagramError::NoRoute));
}

const EUI64: [u8; 8] = [0x02, 0, 0, 0, 0, 0, 0, 7];
const KEY: JoinKey = JoinKey::new([0x11; KEY_LEN]);
const PAN: Request = Request { pan: 0xcafe };
const GIVEN: Configuration = Configuration {
    network: NetworkKey::new([0x77; KEY_LEN]),
    sequence: 300,
};
const JRC: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const IID: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 7];
const NEIGHBOUR: Remote = Remote {
    addr: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7),
    port: PORT,
    zone: 1,
};
const NOW: Instant = Instant::from_micros(5_000_000);

fn join_proxy(seed: u64) -> JoinProxy {
    JoinProxy::new(JoinRole::Proxy(JRC), &mut Rng::from_seed([seed, 0]))
}

fn asked(pledge: &mut Pledge) -> Vec<u8> {
    let mut datagram = [0; DATAGRAM_LEN_MAX];
    let len = pledge.ask(&PAN, &mut datagram).unwrap();
    datagram[..len].to_vec()
}

/// What a join proxy sends the JRC for a neighbour's datagram.
fn outward(proxy: &mut JoinProxy, datagram: &[u8], now: Instant) -> Option<Vec<u8>> {
    let mut out = [0; DATAGRAM_LEN_MAX];
    let (to, len) = proxy.on_neighbour((IID, NEIGHBOUR), datagram, now, &mut out)?;
    assert_eq!(to, JRC);
    Some(out[..len].to_vec())
}

fn answer(request: &[u8]) -> Vec<u8> {
    let heard = hear(request).unwrap();
    assert_eq!(heard.eui64, EUI64);
    let mut out = [0; DATAGRAM_LEN_MAX];
    let len = heard.answer(&KEY, None, |_| Ok(GIVEN), &mut out).unwrap();
    out[..len].to_vec()
}

fn homeward(proxy: &mut JoinProxy, datagram: &[u8], now: Instant) -> Option<Vec<u8>> {
    let remote = Remote::from((JRC, PORT));
    if !proxy.is_meant(&remote, datagram) {
        return None;
    }
    let mut out = [0; DATAGRAM_LEN_MAX];
    let (asker, len) = proxy.on_remote(remote, datagram, now, &mut out)?;
    assert_eq!(asker, (IID, NEIGHBOUR.zone));
    Some(out[..len].to_vec())
}

#[test]
fn a_request_goes_out_and_its_answer_comes_home() {
    let (mut proxy, mut pledge) = (join_proxy(1), Pledge::new(&KEY, EUI64, 9));
    let request = outward(&mut proxy, &asked(&mut pledge), NOW).unwrap();
    let returned = homeward(&mut proxy, &answer(&request), NOW).unwrap();
    assert_eq!(pledge.on_answer(&returned), Ok(GIVEN));
    assert_eq!(
        (proxy.counters().forwarded, proxy.counters().returned),
        (1, 1)
    );
}

#[test]
fn an_answer_that_nobody_asked_for_goes_nowhere() {
    let mut pledge = Pledge::new(&KEY, EUI64, 0);
    let mut proxy = join_proxy(1);
    let request = outward(&mut proxy, &asked(&mut pledge), NOW).unwrap();
    let good = answer(&request);
    let later = |s| NOW + Duration::from_secs(s);
    assert!(
        homeward(&mut join_proxy(2), &good, NOW).is_none(),
        "another proxy's"
    );
    assert!(homeward(&mut proxy, &good, later(94)).is_none(), "too late");
    assert!(homeward(&mut proxy, &good, later(93)).is_some());
    // One bit of the token, which begins behind the header and its length.
    for bit in 5 * 8..(5 + 32) * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(homeward(&mut proxy, &bad, NOW).is_none(), "bit {bit}");
    }
    let elsewhere = Remote::from((Ipv6Addr::LOCALHOST, PORT));
    assert!(!proxy.is_meant(&elsewhere, &good), "not the JRC's");
}

#[test]
fn a_join_proxy_passes_one_request_a_second_and_nothing_else() {
    let (mut proxy, mut pledge) = (join_proxy(1), Pledge::new(&KEY, EUI64, 0));
    for junk in [&b""[..], b"\x50", &[0x51; 60], &[0xff; 90]] {
        assert_eq!(outward(&mut proxy, junk, NOW), None);
    }
    assert_eq!(proxy.counters().refused, 4, "junk takes no share");
    assert!(outward(&mut proxy, &asked(&mut pledge), NOW).is_some());
    for _ in 0..20 {
        assert_eq!(outward(&mut proxy, &asked(&mut pledge), NOW), None);
    }
    assert_eq!(proxy.counters().rationed, 20);
    let later = NOW + Duration::from_secs(1);
    assert!(outward(&mut proxy, &asked(&mut pledge), later).is_some());
}

#[test]
fn what_waits_for_the_application_waits_alone() {
    let mut rng = Rng::from_seed([3, 0]);
    let mut proxy = JoinProxy::new(JoinRole::Jrc, &mut rng);
    let mut pledge = Pledge::new(&KEY, EUI64, 0);
    let (first, second) = (asked(&mut pledge), asked(&mut pledge));
    let mut out = [0; DATAGRAM_LEN_MAX];
    for datagram in [&first, &second] {
        let errand = proxy.on_neighbour((IID, NEIGHBOUR), datagram, NOW, &mut out);
        assert_eq!(errand, None);
    }
    let (from, len) = proxy.take(&mut out).unwrap();
    assert_eq!((from, &out[..len]), (NEIGHBOUR, &first[..]));
    assert_eq!(proxy.take(&mut out), None);
    assert_eq!((proxy.counters().taken, proxy.counters().rationed), (1, 1));
}

proptest! {
    #[test]
    fn no_datagram_makes_a_join_proxy_panic(
        datagram in proptest::collection::vec(any::<u8>(), 0..160),
        token in proptest::collection::vec(any::<u8>(), 0..48),
    ) {
        let mut proxy = join_proxy(1);
        let _sent = outward(&mut proxy, &datagram, NOW);
        let _returned = homeward(&mut proxy, &datagram, NOW);
        let mut message = std::vec![0x50 | token.len().min(12) as u8, 0x44, 0, 1];
        message.extend(&token);
        message.extend([0x90, 0xff, 1]);
        prop_assert_eq!(homeward(&mut proxy, &message, NOW), None);
    }
}

/// A node that has no key.
fn pledge_node() -> Node<'static> {
    let mut rng = Rng::from_seed([2, 1]);
    let mut radio = radio(1, MeshConfig::default(), Duration::ZERO, 8, &mut rng);
    let config = SecurityConfig::new(NetworkKey::new([0; 16]), 0);
    let security = Security::locked(&config, memory(Peer::EMPTY, 4));
    if let Link::Mesh(mesh) = &mut radio {
        mesh.set_security(Box::leak(Box::new(security)));
    }
    let ip = Ip::new(IpConfig::default(), memory(None, 4));
    let tcp = tcp_engine(&mut rng);
    let proxy = JoinProxy::new(JoinRole::Pledge, &mut rng);
    let links = Vec::leak(std::vec![radio]);
    let mut node = Node::new(links, ip, tcp, rng, Instant::ORIGIN);
    node.set_join_proxy(Box::leak(Box::new(proxy)));
    node
}

fn joiner(number: u32) -> Joiner {
    let config = JoinerConfig {
        key: KEY,
        eui64: EUI64,
        pan: PAN.pan,
        number,
        registrar: Some(JRC),
    };
    Joiner::new(config, Rng::from_seed([3, 3]))
}

/// The registrar's answer to the last request of a pledge of which only its number is known.
fn answer_to(sequence: u32) -> Vec<u8> {
    answer(&asked(&mut Pledge::new(&KEY, EUI64, sequence)))
}

/// Puts an answer to where the pledge finds it.
fn deliver(node: &mut Node<'_>, datagram: &[u8]) {
    let proxy = node.join_proxy.as_mut().unwrap();
    let mut out = [0; DATAGRAM_LEN_MAX];
    let errand = proxy.on_neighbour((IID, NEIGHBOUR), datagram, NOW, &mut out);
    assert_eq!(errand, None);
}

#[test]
fn no_request_leaves_before_its_number_is_stored() {
    let (mut node, mut joiner) = (pledge_node(), joiner(7));
    let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
    assert_eq!(joiner.next_deadline(), Some(Instant::ORIGIN));
    assert!(!joiner.poll(&mut node, None, at(0)));
    assert_eq!(joiner.poll_number(), None, "nothing is due yet");
    assert!(!joiner.poll(&mut node, None, at(3)));
    assert_eq!(joiner.poll_number(), Some(71));
    assert_eq!(joiner.poll_number(), None, "once");
    assert_eq!(joiner.next_deadline(), None, "it waits for its host");
    assert!(!joiner.poll(&mut node, None, at(30)));
    // Of another question, and not stored.
    joiner.on_number(70, true, at(30));
    joiner.on_number(71, false, at(30));
    assert_eq!(joiner.state(), JoinState::Unstored);
    assert!(!joiner.poll(&mut node, None, at(39)));
    assert_eq!(joiner.next_deadline(), Some(at(40)));
    assert!(!joiner.poll(&mut node, None, at(40)));
    assert_eq!(joiner.poll_number(), Some(71));
    joiner.on_number(71, true, at(41));
    assert!(joiner.poll(&mut node, None, at(41)), "it asks");
    assert_eq!(joiner.state(), JoinState::Asking);
    // The next numbers need no answer of the host, a request after a restart has another number.
    joiner.restart();
    assert!(!joiner.poll(&mut node, None, at(50)));
    let next = joiner.next_deadline().unwrap();
    assert!(next > at(50) && next <= at(52));
}

#[test]
fn an_answer_gives_the_node_its_key_and_its_role() {
    let (mut node, mut joiner) = (pledge_node(), joiner(0));
    let stored = Some(Reservation {
        sequence: 3,
        counter: 900,
    });
    joiner.poll(&mut node, stored, Instant::ORIGIN);
    assert!(!joiner.poll(&mut node, stored, NOW));
    assert_eq!(joiner.poll_number(), Some(64));
    joiner.on_number(64, true, NOW);
    assert!(joiner.poll(&mut node, stored, NOW));
    // To a request that nobody has sent, then a damaged one.
    deliver(&mut node, &answer_to(5));
    assert!(!joiner.poll(&mut node, stored, NOW));
    assert_eq!(joiner.state(), JoinState::Asking);
    let mut damaged = answer_to(0);
    *damaged.last_mut().unwrap() ^= 1;
    deliver(&mut node, &damaged);
    assert!(!joiner.poll(&mut node, stored, NOW));
    assert_eq!(joiner.state(), JoinState::Refused(JoinError::Forged));
    deliver(&mut node, &answer_to(0));
    assert!(joiner.poll(&mut node, stored, NOW));
    assert_eq!(
        (joiner.state(), joiner.given()),
        (JoinState::Joined, Some(GIVEN))
    );
    assert_eq!(joiner.next_deadline(), None);
    assert_eq!(node.join_proxy().unwrap().role(), JoinRole::Proxy(JRC));
    let security = node.links[0].mesh().unwrap().mac().security().unwrap();
    assert_eq!((security.is_locked(), security.sequence()), (false, 300));
}

#[test]
fn a_device_whose_numbers_are_used_up_asks_no_more() {
    let (mut node, mut joiner) = (pledge_node(), joiner(u32::MAX));
    assert!(!joiner.poll(&mut node, None, NOW));
    assert_eq!(joiner.state(), JoinState::Exhausted);
    assert_eq!((joiner.next_deadline(), joiner.poll_number()), (None, None));
}
