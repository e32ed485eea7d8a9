//! Link-local addresses on more than one link: the same address may be another node on each.

use super::*;
use crate::remote::Remote;
use crate::udp::Inbox;

/// The node with several links.
pub(super) const HUB: usize = 0;
pub(super) const US: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
pub(super) const THEM: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
pub(super) const FIRST: InterfaceId = InterfaceId(0);
pub(super) const SECOND: InterfaceId = InterfaceId(1);
pub(super) const PORT: u16 = 9;

/// The hub and, on link `n` of it, peer `n + 1`, which has that link alone.
pub(super) struct Links {
    pub(super) nodes: Vec<Node<'static>>,
    /// The work of each, in its driver's calls.
    pub(super) tallies: Vec<Tally>,
    pub(super) now: Instant,
    pub(super) events: BTreeMap<(Instant, u64), (usize, InterfaceId, Pending)>,
    sequence: u64,
    /// The frame that each radio was given.
    loaded: BTreeMap<(usize, u8), Vec<u8>>,
    /// Packets that the hub sent down each of its links.
    sent: [usize; 2],
    /// Where it is there, the hub's driver polls every other time only, by chance: events come
    /// two and more at once.
    pub(super) lazy: Option<Rng>,
}

pub(super) fn node(
    interfaces: Vec<Link<'static>>,
    addresses: &[(Ipv6Addr, InterfaceId)],
) -> Node<'static> {
    let mut rng = Rng::from_seed([5, 5]);
    let mut ip = Ip::new(IpConfig::default(), memory(None, 2));
    for (addr, interface) in addresses {
        let (addr, interface) = (*addr, *interface);
        assert!(ip.add_address(Address { addr, interface }));
    }
    let tcp = tcp_engine(&mut rng);
    let mut node = Node::new(Vec::leak(interfaces), ip, tcp, rng, Instant::ORIGIN);
    node.set_inbox(Inbox::new(&[PORT], memory(0, 1_000)));
    node
}

fn a_radio(n: usize) -> Link<'static> {
    let mut rng = Rng::from_seed([5, n as u64]);
    radio(n, MeshConfig::default(), Duration::ZERO, 8, &mut rng)
}

impl Links {
    /// Two wires, with the same addresses on both.
    fn alike() -> Self {
        let hub = node(std::vec![wire(), wire()], &[(US, FIRST), (US, SECOND)]);
        let peer = || node(std::vec![wire()], &[(THEM, FIRST)]);
        Self::of(std::vec![hub, peer(), peer()])
    }

    /// A wire without a link-local address, then a radio.
    fn mixed() -> Self {
        let hub = node(std::vec![wire(), a_radio(1)], &[(HOST, FIRST)]);
        let peer = node(std::vec![wire()], &[(THEM, FIRST)]);
        let mote = node(std::vec![a_radio(2)], &[]);
        Self::of(std::vec![hub, peer, mote])
    }

    pub(super) fn of(nodes: Vec<Node<'static>>) -> Self {
        Self {
            tallies: std::vec![Tally::default(); nodes.len()],
            nodes,
            now: Instant::ORIGIN,
            events: BTreeMap::new(),
            sequence: 0,
            loaded: BTreeMap::new(),
            sent: [0; 2],
            lazy: None,
        }
    }

    pub(super) fn at(&mut self, delay_us: u64, to: (usize, InterfaceId), pending: Pending) {
        self.sequence += 1;
        let at = self.now + Duration::from_micros(delay_us);
        self.events
            .insert((at, self.sequence), (to.0, to.1, pending));
    }

    pub(super) fn poll(&mut self, node: usize) {
        let mut out = [0; 1500];
        loop {
            let (polled, now) = (&mut self.nodes[node], self.now);
            let action = self.tallies[node].add(|| polled.poll_action(now, &mut out));
            let Some((id, action)) = action else {
                break;
            };
            let here = (node, id);
            let there = match node {
                HUB => (usize::from(id.0) + 1, FIRST),
                peer => (HUB, InterfaceId(peer as u8 - 1)),
            };
            let frame = match action {
                Action::Cable { len } => {
                    self.sent[usize::from(id.0)] += usize::from(node == HUB);
                    self.at(100, there, Pending::Packet(out[..len].to_vec()));
                    continue;
                }
                Action::Mesh(mac::Action::Preload { len }) => {
                    self.loaded.insert((node, id.0), out[..len].to_vec());
                    self.at(100, here, Pending::Radio(mac::Event::Preloaded));
                    continue;
                }
                Action::Mesh(mac::Action::AssessChannel) => {
                    let event = mac::Event::ChannelAssessed { clear: true };
                    self.at(128, here, Pending::Radio(event));
                    continue;
                }
                Action::Mesh(mac::Action::Fire) => {
                    self.loaded.get(&(node, id.0)).cloned().unwrap_or_default()
                }
                Action::Mesh(mac::Action::Transmit { len, .. }) => out[..len].to_vec(),
                _ => continue,
            };
            let air_us = 192 + (6 + frame.len() as u64) * 32;
            let at = self.now + Duration::from_micros(air_us);
            self.at(
                air_us,
                here,
                Pending::Radio(mac::Event::TransmitDone { at }),
            );
            self.at(air_us, there, Pending::Frame(frame));
        }
    }

    pub(super) fn run(&mut self) {
        self.run_for(Duration::from_secs(20));
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let dozes = self
                .lazy
                .as_mut()
                .is_some_and(|rng| rng.next_u32() % 2 == 0);
            for node in usize::from(dozes)..self.nodes.len() {
                self.poll(node);
            }
            let event = self.events.keys().next().copied();
            let deadline = self.nodes.iter().filter_map(Node::next_deadline).min();
            let Some(next) = earliest(deadline, event.map(|(at, _)| at)) else {
                break;
            };
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            let Some(key) = event.filter(|(at, _)| *at <= self.now) else {
                continue;
            };
            let (node, id, pending) = self.events.remove(&key).unwrap();
            let (psdu, meta);
            let event = match &pending {
                Pending::Frame(frame) => {
                    (psdu, meta) = (
                        frame,
                        RxMeta {
                            rssi_dbm: -60,
                            lqi: 255,
                            channel: 26,
                            at: self.now,
                        },
                    );
                    Event::Mesh(mac::Event::FrameReceived { psdu, meta })
                }
                Pending::Radio(event) => Event::Mesh(*event),
                Pending::Packet(packet) => Event::Cable(packet),
            };
            let (to, now) = (&mut self.nodes[node], self.now);
            self.tallies[node].add(|| to.on_event(id, event, now));
        }
        self.now = end;
    }

    pub(super) fn listen(&mut self, node: usize) -> tcp::Handle {
        let now = self.now;
        let tcp = self.nodes[node].tcp_mut();
        let listener = tcp.listen(None, PORT, &SETTINGS).unwrap();
        tcp.accept(listener, buffers(), now).unwrap()
    }

    pub(super) fn says(&mut self, node: usize, handle: tcp::Handle, words: &[u8]) {
        let now = self.now;
        let tcp = self.nodes[node].tcp_mut();
        assert_eq!(tcp.send(handle, words, now), Ok(words.len()));
    }

    pub(super) fn hears(&mut self, node: usize, handle: tcp::Handle) -> Vec<u8> {
        let mut out = [0; 100];
        let tcp = self.nodes[node].tcp_mut();
        let len = tcp.recv(handle, &mut out).unwrap_or(0);
        out[..len].to_vec()
    }
}

pub(super) fn buffers() -> Buffers<'static> {
    Buffers::new(memory(0, 512), memory(0, 576))
}

/// The link-local address of a node's radio.
pub(super) fn of_radio(n: usize) -> Ipv6Addr {
    ip::link_local(link(n).iid())
}

#[test]
fn a_link_local_connection_comes_by_the_second_interface() {
    for (mut links, hub) in [(Links::alike(), US), (Links::mixed(), of_radio(1))] {
        let (second, now) = (2, links.now);
        let accepted = links.listen(HUB);
        let opened = links.nodes[second].connect((hub, PORT), buffers(), &SETTINGS, now);
        let opened = opened.unwrap();
        links.says(second, opened, b"from the second");
        links.says(HUB, accepted, b"to it");
        links.run();
        assert_eq!(links.hears(HUB, accepted), b"from the second");
        assert_eq!(links.hears(second, opened), b"to it");
    }
}

/// Without a zone, the first interface serves that has a link-local address to speak from.
#[test]
fn a_link_local_connection_is_opened_over_the_one_link_that_can_carry_it() {
    let mut links = Links::mixed();
    let (mote, now) = (2, links.now);
    let accepted = links.listen(mote);
    let opened = links.nodes[HUB].connect((of_radio(2), PORT), buffers(), &SETTINGS, now);
    let opened = opened.unwrap();
    links.says(HUB, opened, b"over the radio");
    links.run();
    assert_eq!(links.hears(mote, accepted), b"over the radio");
    let sent = links.nodes[HUB].send_datagram((of_radio(2), PORT), PORT, b"a datagram");
    assert_eq!(sent, Ok(()));
    links.run();
    let mut out = [0; 20];
    let inbox = links.nodes[mote].inbox_mut().unwrap();
    assert_eq!(inbox.recv(&mut out).map(|datagram| datagram.len), Some(10));
}

/// The peer on each of two links: one address, one port, two nodes.
fn on(interface: InterfaceId, port: u16) -> Remote {
    Remote {
        addr: THEM,
        port,
        zone: interface.zone(),
    }
}

#[test]
fn equal_ends_on_two_links_are_two_connections() {
    let mut links = Links::alike();
    let now = links.now;
    let listener = links.nodes[HUB].tcp_mut().listen(None, PORT, &SETTINGS);
    let listener = listener.unwrap();
    let opened = [1, 2].map(|peer| {
        let tcp = links.nodes[peer].tcp_mut();
        let remote = Remote {
            addr: US,
            port: PORT,
            zone: FIRST.zone(),
        };
        let path = tcp::Offer::UNBOUNDED;
        let opened = tcp.connect_from((THEM, 5_000), remote, buffers(), &SETTINGS, path, now);
        opened.unwrap()
    });
    links.run();
    let now = links.now;
    let accepted = [(); 2].map(|()| {
        let tcp = links.nodes[HUB].tcp_mut();
        assert!(tcp.can_accept(listener));
        tcp.accept(listener, buffers(), now).unwrap()
    });
    let zones = accepted.map(|handle| {
        let tcp = links.nodes[HUB].tcp();
        let ends = tcp.connection(handle).unwrap().endpoints();
        assert_eq!((ends.local, ends.local_port), (US, PORT));
        assert_eq!((ends.remote, ends.remote_port), (THEM, 5_000));
        ends.zone
    });
    assert_eq!(zones[0] + zones[1], FIRST.zone() + SECOND.zone());
    for (zone, handle) in zones.into_iter().zip(accepted) {
        let peer = usize::from(zone);
        links.says(HUB, handle, &[b'a', zone]);
        links.says(peer, opened[peer - 1], &[b'b', zone]);
    }
    links.run();
    for (zone, handle) in zones.into_iter().zip(accepted) {
        let peer = usize::from(zone);
        assert_eq!(links.hears(HUB, handle), [b'b', zone]);
        assert_eq!(links.hears(peer, opened[peer - 1]), [b'a', zone]);
    }
}

#[test]
fn a_zone_says_over_which_link_a_connection_is_opened() {
    let mut links = Links::alike();
    let now = links.now;
    let accepted = [1, 2].map(|peer| links.listen(peer));
    for (interface, peer) in [(SECOND, 2), (FIRST, 1)] {
        let opened = links.nodes[HUB].connect(on(interface, PORT), buffers(), &SETTINGS, now);
        let opened = opened.unwrap();
        let ends = links.nodes[HUB].tcp().connection(opened).unwrap();
        assert_eq!(ends.endpoints().remote(), on(interface, PORT));
        links.says(HUB, opened, &[peer as u8]);
    }
    links.run();
    for (peer, accepted) in [1, 2].into_iter().zip(accepted) {
        assert_eq!(links.hears(peer, accepted), [peer as u8]);
    }
    let nowhere = on(InterfaceId(2), PORT);
    let refused = links.nodes[HUB].connect(nowhere, buffers(), &SETTINGS, now);
    assert_eq!(refused.unwrap_err().error, ConnectError::NoRoute);
    let refused = links.nodes[HUB].send_datagram(nowhere, PORT, b"");
    assert_eq!(refused, Err(DatagramError::NoRoute));
}

#[test]
fn a_datagram_is_answered_over_the_link_that_it_came_by() {
    for peer in [2, 1] {
        let mut links = Links::alike();
        let sent = links.nodes[peer].send_datagram((US, PORT), PORT, b"ping");
        assert_eq!(sent, Ok(()));
        links.run();
        let mut out = [0; 20];
        let inbox = links.nodes[HUB].inbox_mut().unwrap();
        let datagram = inbox.recv(&mut out).unwrap();
        assert_eq!(datagram.from, on(InterfaceId(peer as u8 - 1), PORT));
        let sent = links.nodes[HUB].send_datagram(datagram.from, PORT, b"pong");
        assert_eq!(sent, Ok(()));
        links.run();
        for other in [1, 2] {
            let inbox = links.nodes[other].inbox_mut().unwrap();
            let answer = inbox.recv(&mut out).map(|datagram| datagram.len);
            assert_eq!(answer, (other == peer).then_some(4));
        }
    }
}

/// Resets and SYN cookies belong to no connection: they leave where the stranger is.
#[test]
fn a_stranger_is_answered_over_its_own_link() {
    for peer in [2, 1] {
        // Nobody listens: a reset.
        let mut links = Links::alike();
        let now = links.now;
        let opened = links.nodes[peer].connect((US, PORT), buffers(), &SETTINGS, now);
        links.run();
        let opened = links.nodes[peer].tcp().connection(opened.unwrap()).unwrap();
        assert_eq!(opened.error(), Some(tcp::Error::Refused));
        let expected = if peer == 1 { [1, 0] } else { [0, 1] };
        assert_eq!(links.sent, expected);

        // The table of handshakes, two of them, is full: a cookie.
        let mut links = Links::alike();
        let listener = links.nodes[HUB].tcp_mut().listen(None, PORT, &SETTINGS);
        for _ in 0..3 {
            let opened = links.nodes[peer].connect((US, PORT), buffers(), &SETTINGS, now);
            assert!(opened.is_ok());
        }
        links.run();
        assert_eq!(links.nodes[HUB].tcp().counters().syn_cookies, 1);
        let is_idle = |n: usize| links.sent[n] == 0;
        assert!(is_idle(2 - peer) && !is_idle(peer - 1), "{:?}", links.sent);
        assert!(links.nodes[HUB].tcp().can_accept(listener.unwrap()));
    }
}

/// A connection in TIME-WAIT acknowledges a FIN that comes again, on its own link.
#[test]
fn time_wait_answers_on_its_own_link() {
    let mut links = Links::alike();
    let accepted = links.listen(2);
    let now = links.now;
    let opened = links.nodes[HUB].connect(on(SECOND, PORT), buffers(), &SETTINGS, now);
    let opened = opened.unwrap();
    links.run();
    let now = links.now;
    links.nodes[HUB].tcp_mut().close(opened, now);
    links.run_for(Duration::from_secs(1));
    let now = links.now;
    links.nodes[2].tcp_mut().close(accepted, now);
    // The last ACK is lost: the FIN comes again.
    links.poll(2);
    let fin = links.events.pop_first().unwrap().1.2;
    let Pending::Packet(fin) = fin else {
        panic!("a wire carries packets");
    };
    for _ in 0..2 {
        let before = links.sent;
        links.nodes[HUB].on_event(SECOND, Event::Cable(&fin), links.now);
        links.poll(HUB);
        links.events.clear();
        assert_eq!(links.sent, [before[0], before[1] + 1]);
        let state = links.nodes[HUB].tcp().connection(opened).unwrap().state();
        assert_eq!(state, tcp::State::TimeWait);
    }
}

/// A port that nobody opened: the error finds the connection of its link alone.
#[test]
fn an_error_ends_the_connection_of_its_own_zone() {
    let mut links = Links::alike();
    let now = links.now;
    let opened = [FIRST, SECOND].map(|interface| {
        let tcp = links.nodes[HUB].tcp_mut();
        let path = tcp::Offer::UNBOUNDED;
        let remote = on(interface, PORT);
        let opened = tcp.connect_from((US, 5_000), remote, buffers(), &SETTINGS, path, now);
        opened.unwrap()
    });
    links.poll(HUB);
    let packets: Vec<_> = std::mem::take(&mut links.events).into_values().collect();
    assert_eq!(packets.len(), 2);
    let (_, _, Pending::Packet(syn)) = packets.iter().find(|(peer, ..)| *peer == 2).unwrap() else {
        panic!("a wire carries packets");
    };
    let kind = ip::icmp::ErrorKind::PortUnreachable;
    let (head, quoted) = ip::icmp::error(kind, syn, US, THEM, 64).unwrap();
    let error = [&head, quoted].concat();
    links.nodes[HUB].on_event(SECOND, Event::Cable(&error), now);
    let tcp = links.nodes[HUB].tcp();
    let errors = opened.map(|handle| tcp.connection(handle).unwrap().error());
    assert_eq!(errors, [None, Some(tcp::Error::Unreachable)]);
}

/// What one link's nodes have seen proves nothing on another.
#[test]
fn a_cookie_of_one_zone_is_none_in_another() {
    for answers_on in [FIRST, SECOND] {
        let mut rng = Rng::from_seed([5, 5]);
        let memory = Memory {
            connections: Vec::leak(std::vec![Slot::EMPTY]),
            listeners: memory(Listener::EMPTY, 1),
            half_open: &mut [],
        };
        let mut tcp = Tcp::new(memory, &mut rng);
        let now = Instant::ORIGIN;
        let listener = tcp.listen(None, PORT, &SETTINGS).unwrap();
        tcp.accept(listener, buffers(), now).unwrap();
        let mut header = crate::wire::tcp::Header {
            src_port: 5_000,
            dst_port: PORT,
            seq: 100,
            flags: crate::wire::tcp::Flags::SYN,
            window: 1_000,
            ..crate::wire::tcp::Header::default()
        };
        let say = |tcp: &mut Tcp<'_>, header: &crate::wire::tcp::Header, zone| {
            let mut bytes = [0; 60];
            let len = header.emit(&mut bytes).unwrap();
            let bytes = &mut bytes[..len];
            crate::wire::tcp::fill_checksum(&THEM, &US, bytes);
            let incoming = tcp::IncomingSegment {
                src: THEM,
                dst: US,
                zone,
                ecn: 0,
                offer: tcp::Offer::UNBOUNDED,
                bytes,
            };
            tcp.on_segment(&incoming, now)
        };
        say(&mut tcp, &header, FIRST.zone()).unwrap();
        let mut out = [0; 60];
        let cookie = tcp.poll_segment(now, |_| true, &mut out).unwrap();
        assert_eq!(cookie.zone, FIRST.zone());
        let (cookie, _) = crate::wire::tcp::Header::parse(&out[..cookie.len]).unwrap();
        header.flags = crate::wire::tcp::Flags::ACK;
        header.seq += 1;
        header.ack = cookie.seq.wrapping_add(1);
        let expected = match answers_on == FIRST {
            true => Ok(()),
            false => Err(tcp::SegmentDrop::UnacceptableAck),
        };
        assert_eq!(say(&mut tcp, &header, answers_on.zone()), expected);
    }
}
