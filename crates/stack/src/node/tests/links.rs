//! A router of three links: a cable and two meshes, each with a neighbour of its own.

use super::zones::{FIRST, HUB, Links, PORT, SECOND, THEM, US, buffers, node};
use super::*;
use crate::random::Rng;
use crate::udp::Inbox;
use crate::wire::lowpan_dispatch::IPV6;
use proptest::prelude::*;

/// The hub's neighbours, in the order of its links.
pub(super) const HOST_NODE: usize = 1;
pub(super) const NEAR: usize = 2;
pub(super) const FAR: usize = 3;

/// The address of node `n` on link `mesh` of the hub.
pub(super) fn on_mesh(mesh: u8, n: usize) -> Ipv6Addr {
    let prefix = Ipv6Addr::new(0xfd00, 0, 0, u16::from(mesh), 0, 0, 0, 0);
    ip::with_iid(&prefix, link(n).iid())
}

/// A mesh link that asks for no router; `compresses`: TCP headers, as a router or a mote.
fn a_mesh(n: usize, compresses: bool) -> Link<'static> {
    let mut rng = Rng::from_seed([5, n as u64]);
    let config = MeshConfig {
        solicits: false,
        ..MeshConfig::default()
    };
    let mut mesh = radio(n, config, mac::config::RETRY_DELAY_MAX, 32, &mut rng);
    if let Link::Mesh(mesh) = &mut mesh
        && compresses
    {
        let end = if n == 1 { 0 } else { n };
        mesh.set_tcphc(tcphc_table(end, false, &mut rng));
    }
    mesh
}

fn router(links: Vec<Link<'static>>) -> Node<'static> {
    let mut rng = Rng::from_seed([5, 5]);
    let config = IpConfig {
        forwards: true,
        ..IpConfig::default()
    };
    let mut ip = Ip::new(config, memory(None, 8));
    let mut route = |prefix, interface, neighbour| {
        let next_hop = NextHop {
            interface,
            neighbour,
        };
        assert!(ip.add_route(Route { prefix, next_hop }));
    };
    let hosts = Prefix {
        addr: HOST,
        len: 64,
    };
    route(hosts, FIRST, Neighbour::Only);
    for (mesh, mote) in [(1, NEAR), (2, FAR)] {
        for neighbour in [mote, 9] {
            let prefix = Prefix::host(on_mesh(mesh, neighbour));
            let neighbour = Neighbour::One(link(neighbour).iid());
            route(prefix, InterfaceId(mesh), neighbour);
        }
    }
    for mesh in [1, 2] {
        let (addr, interface) = (on_mesh(mesh, 1), InterfaceId(mesh));
        assert!(ip.add_address(Address { addr, interface }));
    }
    let tcp = tcp_engine(&mut rng);
    let mut node = Node::new(Vec::leak(links), ip, tcp, rng, Instant::ORIGIN);
    node.set_inbox(Inbox::new(&[PORT], memory(0, 1_000)));
    node
}

/// The router, a host on its cable and a mote on each of its meshes. `compresses`: TCP headers, on
/// each mesh.
pub(super) fn three(compresses: [bool; 2]) -> Links {
    let [near, far] = compresses;
    let hub = router(std::vec![wire(), a_mesh(1, near), a_mesh(1, far)]);
    let mut nodes = std::vec![hub, node(std::vec![wire()], &[(HOST, FIRST)])];
    for (mesh, mote, compresses) in [(1, NEAR, near), (2, FAR, far)] {
        let mesh_link = a_mesh(mote, compresses);
        nodes.push(node(std::vec![mesh_link], &[(on_mesh(mesh, mote), FIRST)]));
    }
    for (n, node) in nodes.iter_mut().enumerate().skip(1) {
        let neighbour = match n {
            HOST_NODE => Neighbour::Only,
            _ => Neighbour::One(link(1).iid()),
        };
        node.ip_mut().set_default_route(Some(NextHop {
            interface: FIRST,
            neighbour,
        }));
    }
    Links::of(nodes)
}

/// Carries `data` from one node to another, and as much back.
fn carry(links: &mut Links, from: usize, (to, addr): (usize, Ipv6Addr), data: &[u8]) {
    let now = links.now;
    let tcp = links.nodes[to].tcp_mut();
    let listener = tcp.listen(None, PORT, &SETTINGS).unwrap();
    let accepted = tcp.accept(listener, buffers(), now).unwrap();
    let opened = links.nodes[from].connect((addr, PORT), buffers(), &SETTINGS, now);
    let ends = [(from, opened.unwrap()), (to, accepted)];
    let mut sent = [0; 2];
    let mut heard = [Vec::new(), Vec::new()];
    for _ in 0..2_000 {
        for (side, (n, handle)) in ends.into_iter().enumerate() {
            let now = links.now;
            let tcp = links.nodes[n].tcp_mut();
            if let Ok(len) = tcp.send(handle, &data[sent[side]..], now) {
                sent[side] += len;
            }
            let mut out = [0; 600];
            if let Ok(len) = tcp.recv(handle, &mut out) {
                heard[side].extend_from_slice(&out[..len]);
            }
        }
        if heard.iter().all(|heard| heard.len() >= data.len()) {
            break;
        }
        links.run_for(Duration::from_millis(100));
    }
    assert!(heard.iter().all(|heard| heard == data), "{sent:?}");
    for (n, handle) in ends {
        links.nodes[n].tcp_mut().abort(handle);
    }
    links.nodes[to].tcp_mut().unlisten(listener);
    links.run_for(Duration::from_secs(1));
    for (n, handle) in ends {
        assert!(links.nodes[n].tcp_mut().remove(handle).is_some());
    }
}

#[test]
fn streams_cross_from_each_link_to_each_other_whatever_each_compresses() {
    let data = bytes(3_000);
    for compresses in [[false, false], [true, false], [false, true], [true, true]] {
        for lazy in [None, Some(Rng::from_seed([3, 3]))] {
            let mut links = three(compresses);
            links.lazy = lazy;
            for round in 0..2 {
                carry(&mut links, NEAR, (FAR, on_mesh(2, FAR)), &data);
                carry(&mut links, FAR, (NEAR, on_mesh(1, NEAR)), &data);
                carry(&mut links, NEAR, (HOST_NODE, HOST), &data);
                carry(&mut links, HOST_NODE, (FAR, on_mesh(2, FAR)), &data);
                carry(&mut links, FAR, (HUB, on_mesh(1, 1)), &data[round..]);
            }
            for (mesh, compresses) in [1, 2].into_iter().zip(compresses) {
                let mesh = links.nodes[HUB].link(InterfaceId(mesh)).unwrap();
                let mesh = mesh.mesh().unwrap();
                let failed = mesh.counters().dropped(LinkDrop::TcpCompression);
                assert!(links.lazy.is_some() || failed == 0, "{failed}");
                assert_eq!(mesh.tcphc().is_some(), compresses);
            }
        }
    }
}

/// What the source of a packet from mesh to mesh hears, and how: nothing waits for an event.
#[test]
fn an_error_goes_back_over_the_link_that_its_packet_came_by() {
    for (from, to, mote) in [(1, 2, NEAR), (2, 1, FAR)] {
        for len in [10, 600] {
            let nowhere = Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 0, 1);
            for (dst, is_forwarded) in [(nowhere, 0), (on_mesh(to, 9), 1), (on_mesh(from, 1), 0)] {
                let mut links = three([false; 2]);
                let sent = links.nodes[mote].send_datagram((dst, 7), PORT, &bytes(len));
                assert_eq!(sent, Ok(()));
                links.run();
                let hub = links.nodes[HUB].ip().counters;
                assert_eq!((hub.errors_sent, hub.forwarded), (1, is_forwarded), "{dst}");
                assert_eq!(hub.drops.iter().sum::<u32>(), 0, "{dst} {len}");
                let mote = links.nodes[mote].ip().counters;
                assert_eq!(mote.dropped(ip::PacketDrop::IgnoredIcmp), 1, "{dst} {len}");
            }
        }
    }
}

/// A link-local address means something on its own link alone (RFC 4007 §9): no answer bears it
/// on another one.
#[test]
fn no_answer_from_a_link_local_address_leaves_by_another_link() {
    let far = Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 1);
    let (mut echo, mut udp) = ([0; 60], [0; 60]);
    for packet in [&mut echo, &mut udp] {
        let request = Message::EchoRequest(Echo {
            identifier: 1,
            sequence: 1,
            data: &[7; 12],
        });
        ip::icmp::write(&request, far, US, 64, packet).unwrap();
    }
    udp[6] = 17;
    for packet in [&echo, &udp] {
        for out_by in [FIRST, SECOND] {
            let ours = [(US, FIRST), (US, SECOND), (HOST, SECOND)];
            let mut hub = node(std::vec![wire(), wire()], &ours);
            hub.ip_mut().set_default_route(Some(NextHop {
                interface: out_by,
                neighbour: Neighbour::Only,
            }));
            hub.on_event(FIRST, Event::Cable(packet), Instant::ORIGIN);
            let mut out = [0; ACTION_LEN_MAX];
            while let Some((id, action)) = hub.poll_action(Instant::ORIGIN, &mut out) {
                let Action::Cable { len } = action else {
                    panic!("a cable carries packets");
                };
                let (header, _) = Header::parse(&out[..len]).unwrap();
                assert_eq!(id, out_by);
                assert!(
                    id == FIRST || !header.src.is_unicast_link_local(),
                    "{header:?}"
                );
            }
        }
    }
}

#[test]
fn a_driver_that_errs_breaks_nothing() {
    let mut bare = node(Vec::new(), &[]);
    let mut out = [0; 10];
    for id in [0, 1, 255] {
        bare.on_event(InterfaceId(id), Event::Cable(&[0x60; 80]), Instant::ORIGIN);
    }
    assert_eq!(bare.poll_action(Instant::ORIGIN, &mut out), None);
    assert_eq!(bare.next_deadline(), None);
    assert!(
        bare.connect((THEM, PORT), buffers(), &SETTINGS, Instant::ORIGIN)
            .is_err()
    );

    for seed in 0..20 {
        let mut links = three([true, false]);
        let mut rng = Rng::from_seed([8, seed]);
        let opened =
            links.nodes[NEAR].connect((on_mesh(2, FAR), 1), buffers(), &SETTINGS, links.now);
        assert!(opened.is_ok());
        for _ in 0..300 {
            let frame = frame_of(&packet(on_mesh(2, FAR), 9, 60), link(1), 1);
            let now = links.now;
            let meta = RxMeta {
                rssi_dbm: 0,
                lqi: 0,
                channel: 26,
                at: now,
            };
            let id = InterfaceId((rng.next_u32() % 5) as u8);
            let event = match rng.next_u32() % 5 {
                0 => Event::Cable(&frame),
                1 => Event::Mesh(mac::Event::FrameReceived { psdu: &frame, meta }),
                2 => Event::Mesh(mac::Event::Preloaded),
                3 => Event::Mesh(mac::Event::TransmitDone { at: now }),
                _ => Event::Mesh(mac::Event::ChannelAssessed { clear: false }),
            };
            links.nodes[HUB].on_event(id, event, now);
            let mut out = std::vec![0; PSDU_LEN_MAX + rng.next_u32() as usize % 300];
            let _ = links.nodes[HUB].poll_action(now, &mut out);
            links.run_for(Duration::from_micros(u64::from(rng.next_u32() % 3_000)));
        }
        links.run_for(Duration::from_secs(60));
        carry(&mut links, NEAR, (FAR, on_mesh(2, FAR)), &bytes(1_000));
    }
}

fn count(links: &Links) -> (ip::IpCounters, u32) {
    let counters = links.nodes[HUB].ip().counters;
    (counters, counters.drops.iter().sum())
}

proptest! {
    /// Each packet is delivered, passed on, dropped with a count or refused with an error.
    #[test]
    fn no_packet_vanishes_and_none_counts_twice(
        by_cable in any::<bool>(),
        to in 0usize..6,
        hop_limit in 0u8..4,
        next_header in prop::sample::select(std::vec![58u8, 17, 6, 0, 60, 43, 44, 59, 132]),
        upper in prop::collection::vec(any::<u8>(), 0..24),
        from in 0usize..5,
        cut in 0usize..70,
    ) {
        let mut links = three([true, false]);
        let destinations = [
            on_mesh(2, FAR), on_mesh(1, 1), on_mesh(1, NEAR), ip::ALL_NODES, US, Ipv6Addr::LOCALHOST,
        ];
        let sources = [
            on_mesh(1, NEAR), HOST, THEM, Ipv6Addr::UNSPECIFIED, Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 9),
        ];
        let header = Header {
            traffic_class: TrafficClass(0),
            flow_label: 0,
            payload_len: upper.len() as u16,
            next_header,
            hop_limit,
            src: sources[from],
            dst: destinations[to],
        };
        let mut packet = std::vec![0; 40];
        header.emit(&mut packet).unwrap();
        packet.extend_from_slice(&upper);
        packet.truncate(cut.max(30));
        let (before, drops_before) = count(&links);
        if by_cable {
            links.nodes[HUB].on_event(FIRST, Event::Cable(&packet), links.now);
        } else {
            let payload = [&[IPV6], &packet[..]].concat();
            let frame = frame_from(link(NEAR), link(1), 1, &payload);
            let meta = RxMeta { rssi_dbm: 0, lqi: 0, channel: 26, at: links.now };
            let event = Event::Mesh(mac::Event::FrameReceived { psdu: &frame, meta });
            links.nodes[HUB].on_event(SECOND, event, links.now);
            links.poll(HUB);
        }
        let (after, drops_after) = count(&links);
        let drops = drops_after - drops_before;
        let errors = after.errors_sent - before.errors_sent;
        let forwarded = after.forwarded - before.forwarded;
        let delivered = after.delivered - before.delivered;
        let mesh = links.nodes[HUB].link(SECOND).unwrap().mesh().unwrap();
        let undone: u32 = [LinkDrop::Compression, LinkDrop::MalformedPacket, LinkDrop::TcpCompression, LinkDrop::Dispatch]
            .into_iter().map(|reason| mesh.counters().dropped(reason)).sum();
        prop_assert!(forwarded == 0 || drops + errors + delivered == 0);
        prop_assert!(drops + errors + forwarded + delivered + undone > 0, "{header:?}");
        if drops > 0 && errors > 0 {
            // Those that are counted beside their error; and errors that found no way.
            let both = [ip::PacketDrop::Fragment, ip::PacketDrop::SentBack, ip::PacketDrop::NoRoute];
            let named: u32 = both.iter().map(|reason| after.dropped(*reason)).sum();
            prop_assert_eq!(named, drops);
        }
    }
}

/// A connection of NEAR with FAR, whose route is gone before `words` are handed over.
fn without_route(config: &'static tcp::Config, words: &[u8]) -> (Links, [tcp::Handle; 2]) {
    let mut links = three([true, true]);
    let accepted = links.listen(FAR);
    let to = (on_mesh(2, FAR), PORT);
    let opened = links.nodes[NEAR].connect(to, buffers(), config, links.now);
    let opened = opened.unwrap();
    links.run();
    links.nodes[NEAR].ip_mut().set_default_route(None);
    links.says(NEAR, opened, words);
    (links, [opened, accepted])
}

fn up() -> NextHop {
    NextHop {
        interface: FIRST,
        neighbour: Neighbour::One(link(1).iid()),
    }
}

/// A connection whose route is gone waits without waking its node for nothing, and goes on when
/// there is a route again.
#[test]
fn a_connection_outlives_its_route() {
    for seconds in [1, 300] {
        let (mut links, [_, accepted]) = without_route(&SETTINGS, &[7; 80]);
        links.run_for(Duration::from_secs(seconds));
        assert!(links.hears(FAR, accepted).is_empty());
        links.nodes[NEAR].ip_mut().set_default_route(Some(up()));
        links.run();
        assert_eq!(links.hears(FAR, accepted), [7; 80]);
        let counters = links.nodes[NEAR].tcp().counters();
        assert_eq!(counters.retransmissions.iter().sum::<u16>(), 0);
    }
}

/// What cannot leave for want of a route counts as sent and lost: the connection gives up as it
/// does on a path that loses everything, and not before (RFC 1122 §4.2.3.5 and §4.2.3.9).
#[test]
fn a_connection_without_a_route_gives_up_in_time() {
    static IMPATIENT: tcp::Config = tcp::Config {
        user_timeout_ms: 30_000,
        ..SETTINGS
    };
    for (config, error, lives_s, ends_s) in [
        (&SETTINGS, tcp::Error::Unreachable, 100, 700),
        (&IMPATIENT, tcp::Error::UserTimeout, 29, 31),
    ] {
        let (mut links, [opened, _]) = without_route(config, &[7; 80]);
        let error_of = |links: &Links| {
            let connection = links.nodes[NEAR].tcp().connection(opened);
            connection.and_then(tcp::Connection::error)
        };
        links.run_for(Duration::from_secs(lives_s));
        assert_eq!(error_of(&links), None, "{error:?}");
        links.run_for(Duration::from_secs(ends_s - lives_s));
        assert_eq!(error_of(&links), Some(error));
        // Nor does the reset that cannot leave keep its memory.
        assert!(links.nodes[NEAR].tcp_mut().remove(opened).is_some());
        links.run();
        for _ in 0..SLOTS {
            let to = (ip::link_local(link(1).iid()), PORT);
            let opened = links.nodes[NEAR].connect(to, buffers(), config, links.now);
            assert!(opened.is_ok());
        }
    }
}

/// A handshake that has lost its route before its SYN left ends as one that is not answered.
#[test]
fn a_handshake_without_a_route_gives_up_in_time() {
    let mut links = three([false, false]);
    let to = (on_mesh(2, FAR), PORT);
    let opened = links.nodes[NEAR].connect(to, buffers(), &SETTINGS, links.now);
    let opened = opened.unwrap();
    links.nodes[NEAR].ip_mut().set_default_route(None);
    links.run_for(Duration::from_secs(600));
    let connection = links.nodes[NEAR].tcp().connection(opened).unwrap();
    assert_eq!(connection.error(), Some(tcp::Error::Unreachable));
}

/// All nodes of a link are asked, and the answer stays on it, from an address that it has.
#[test]
fn a_group_is_answered_on_the_link_that_asked() {
    for id in [FIRST, SECOND] {
        let ours = [(HOST, SECOND), (US, SECOND), (US, FIRST)];
        let mut hub = node(std::vec![wire(), wire()], &ours);
        let mut ping = [0; 60];
        let request = Message::EchoRequest(Echo {
            identifier: 1,
            sequence: 1,
            data: &[7; 12],
        });
        ip::icmp::write(&request, THEM, ip::ALL_NODES, 1, &mut ping).unwrap();
        hub.on_event(id, Event::Cable(&ping), Instant::ORIGIN);
        let mut out = [0; ACTION_LEN_MAX];
        let action = hub.poll_action(Instant::ORIGIN, &mut out);
        let Some((by, Action::Cable { len })) = action else {
            panic!("no answer by {id:?}");
        };
        assert_eq!(by, id);
        assert_eq!(Header::parse(&out[..len]).unwrap().0.dst, THEM);
        assert_eq!(icmp(&out[..len]).0, US);
        assert_eq!(hub.poll_action(Instant::ORIGIN, &mut out), None);
    }
}
