//! What a driver counts on: the ACK first, the packet after it, and no round too many.

use super::*;

/// A node on its own, with a wire before its radio, so that order cannot help the radio.
fn alone(auto_ack: bool, rng: &mut Rng) -> Node<'static> {
    let config = MeshConfig {
        solicits: false,
        ..MeshConfig::default()
    };
    let capabilities = RadioCapabilities {
        auto_ack,
        ..RadioCapabilities::CC2420
    };
    let mac = (mac::Config::new(0x4d54, eui(1)), capabilities);
    let radio = Link::Mesh(Mesh::new(config, mac, mesh_memory(8, 1), rng).unwrap());
    let interfaces = Vec::leak(std::vec![wire(), radio]);
    let tcp = tcp_engine(rng);
    let ip = Ip::new(IpConfig::default(), memory(None, 2));
    Node::new(interfaces, ip, tcp, rng.clone(), Instant::ORIGIN)
}

const AIR: InterfaceId = InterfaceId(1);

/// An echo request in one frame, from node 2.
fn echo_frame(sequence: u8) -> Vec<u8> {
    let mut bytes = [0; 120];
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: sequence.into(),
        data: b"x",
    });
    let (src, dst) = (ip::link_local(link(2).iid()), ip::link_local(link(1).iid()));
    let len = ip::icmp::write(&request, src, dst, 64, &mut bytes).unwrap();
    let mut payload = std::vec![0b0100_0001];
    payload.extend(&bytes[..len]);
    let header = crate::wire::ieee802154::Header::data(0x4d54, link(1), link(2), sequence);
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit_frame(&payload, &mut out).unwrap();
    out[..len].to_vec()
}

fn hear(node: &mut Node<'_>, psdu: &[u8], now: Instant) {
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: now,
    };
    let event = mac::Event::FrameReceived { psdu, meta };
    node.on_event(AIR, Event::Mesh(event), now);
}

fn delivered(node: &Node<'_>) -> u32 {
    node.ip().counters.delivered
}

/// Actions until there is none.
fn actions(node: &mut Node<'_>, now: Instant) -> Vec<Action> {
    let mut out = [0; ACTION_LEN_MAX];
    core::iter::from_fn(|| node.poll_action(now, &mut out))
        .map(|(_, action)| action)
        .collect()
}

const TRANSMIT: fn(&Action) -> bool =
    |action| matches!(action, Action::Mesh(mac::Action::Transmit { .. }));

#[test]
fn the_ack_leaves_before_the_packet_is_looked_at() {
    let mut node = alone(false, &mut Rng::from_seed([1, 2]));
    let mut now = Instant::from_micros(1_000_000);
    // Tuned and listening.
    actions(&mut node, now);
    let mut out = [0; ACTION_LEN_MAX];
    hear(&mut node, &echo_frame(1), now);
    assert_eq!(delivered(&node), 0, "not while the ACK is owed");
    assert_eq!(node.next_deadline(), Some(Instant::ORIGIN), "at once");
    now += Duration::from_micros(100);
    let first = node.poll_action(now, &mut out).map(|(_, action)| action);
    assert!(first.as_ref().is_some_and(TRANSMIT), "{first:?}");
    assert_eq!(delivered(&node), 0, "nor before it has left");
    let after = actions(&mut node, now);
    assert_eq!(delivered(&node), 1, "{after:?}");
    assert!(!after.iter().any(TRANSMIT));
    // An application that is asked between the two calls finds out in one more round.
    let again = node.next_deadline();
    assert_eq!(again, Some(now + Duration::from_micros(1)));
    now = again.unwrap();
    assert!(!actions(&mut node, now).iter().any(TRANSMIT));
    assert!(node.next_deadline().is_none_or(|at| at > now + TICK));
}

/// Nor does it go on for ever where that application speaks to the node each time.
#[test]
fn one_more_round_is_one() {
    let mut node = alone(false, &mut Rng::from_seed([1, 2]));
    let mut now = Instant::from_micros(1_000_000);
    actions(&mut node, now);
    hear(&mut node, &echo_frame(1), now);
    let mut rounds = 0;
    while node.next_deadline().is_some_and(|at| at <= now + TICK) {
        let _asked = node.tcp_mut();
        actions(&mut node, now);
        now += TICK;
        rounds += 1;
        assert!(rounds < 5);
    }
}

/// Nor where TCP's deadlines come while the radio has no room: room comes by an event.
#[test]
fn a_deadline_that_waits_for_room_lets_a_busy_application_sleep() {
    let mut world = World::with_queue(1, Relaying::Fragments, Duration::ZERO, 4);
    let (mote, host) = (1, world.host());
    let now = world.now;
    let listening = world.nodes[host].tcp_mut().listen(None, 9, &SETTINGS);
    let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
    let sender = world.nodes[mote].connect((HOST, 9), buffers(), &SETTINGS, now);
    let (listening, sender) = (listening.unwrap(), sender.unwrap());
    let accepted = world.nodes[host]
        .tcp_mut()
        .accept(listening, buffers(), now);
    accepted.unwrap();
    world.run_for(Duration::from_secs(1));
    // From now on the radio answers nothing, and its queue stays full.
    let (node, mut now) = (&mut world.nodes[mote], world.now);
    let tcp = node.tcp_mut();
    tcp.send(sender, &bytes(2_000), now).unwrap();
    for _ in 0..100 {
        actions(node, now);
        // As a loop does that asks for news before it sleeps.
        let news = node.tcp_mut().recv(sender, &mut [0; 8]);
        assert_eq!(news, Err(RecvError::Empty));
        let Some(next) = node.next_deadline() else {
            break;
        };
        assert!(next > now, "wakes at once");
        now = next;
    }
}

#[test]
fn frames_that_come_without_a_poll_between_are_dealt_with_in_order() {
    let mut node = alone(false, &mut Rng::from_seed([1, 2]));
    let now = Instant::from_micros(1_000_000);
    actions(&mut node, now);
    for sequence in 1..=3 {
        hear(&mut node, &echo_frame(sequence), now);
        assert_eq!(delivered(&node), u32::from(sequence) - 1);
    }
    actions(&mut node, now);
    assert_eq!(delivered(&node), 3);
}

#[test]
fn where_the_radio_acknowledges_nothing_is_kept() {
    let mut node = alone(true, &mut Rng::from_seed([1, 2]));
    let now = Instant::from_micros(1_000_000);
    actions(&mut node, now);
    hear(&mut node, &echo_frame(1), now);
    assert_eq!(delivered(&node), 1);
}

/// A frame on the air holds the ACK up, and that the packet.
#[test]
fn a_packet_does_not_wait_for_an_ack_that_cannot_leave() {
    let mut node = alone(false, &mut Rng::from_seed([1, 2]));
    let now = Instant::from_micros(1_000_000);
    hear(&mut node, &echo_frame(1), now);
    let mut now = now;
    // Until the answer is on the air.
    for _ in 0..50 {
        for action in actions(&mut node, now) {
            let answer = match action {
                Action::Mesh(mac::Action::Preload { .. }) => mac::Event::Preloaded,
                Action::Mesh(mac::Action::AssessChannel) => {
                    mac::Event::ChannelAssessed { clear: true }
                }
                Action::Mesh(mac::Action::Transmit { .. }) => mac::Event::TransmitDone { at: now },
                Action::Mesh(mac::Action::Fire) => {
                    hear(&mut node, &echo_frame(2), now);
                    let out = actions(&mut node, now);
                    assert!(!out.iter().any(TRANSMIT));
                    assert_eq!(delivered(&node), 2);
                    return;
                }
                _ => continue,
            };
            node.on_event(AIR, Event::Mesh(answer), now);
        }
        now += Duration::from_millis(1);
    }
    panic!("it never answered");
}

/// One image, one seed: the link address makes the difference.
#[test]
fn nodes_with_one_seed_draw_nothing_in_common() {
    let draw = |n| {
        let mut rng = Rng::from_seed([1, 2]);
        let config = MeshConfig::default();
        let mut interfaces = [radio(n, config, Duration::ZERO, 4, &mut rng)];
        let Link::Mesh(radio) = &mut interfaces[0] else {
            unreachable!()
        };
        let tags: Vec<u16> = (0..4).map(|_| radio.datagrams_mut().new_tag()).collect();
        // A generator of its own, made from the seed anew.
        let ip = Ip::new(IpConfig::default(), &mut []);
        let node = Node::without_tcp(
            Vec::leak(Vec::from(interfaces)),
            ip,
            Rng::from_seed([1, 2]),
            Instant::ORIGIN,
        );
        let Link::Mesh(radio) = &node.links[0] else {
            unreachable!()
        };
        let asks_at = radio.asks_at();
        (tags, node.rng.clone().next_u64(), asks_at)
    };
    let (one, other) = (draw(1), draw(2));
    assert!(one.0.iter().all(|tag| !other.0.contains(tag)));
    assert_ne!(one.1, other.1);
    assert_ne!(one.2, other.2, "nor do they ask for a router together");
}

/// After a night without a call.
#[test]
fn a_long_silence_costs_no_more_than_a_short_one() {
    for silence in [1, 3_600, 365 * 86_400, 57 * 365 * 86_400] {
        let mut world = World::chain(1, Relaying::Fragments);
        let host = world.host();
        transfer(&mut world, host, 1, global(1), &bytes(1));
        let mut now = world.now + Duration::from_secs(silence);
        let mut rounds = 0;
        let until = now + Duration::from_secs(1);
        while now < until {
            actions(&mut world.nodes[1], now);
            let Some(next) = world.nodes[1].next_deadline() else {
                break;
            };
            rounds += 1;
            assert!(rounds < 100, "{silence} s: {rounds} rounds");
            now = next.max(now);
        }
    }
}
