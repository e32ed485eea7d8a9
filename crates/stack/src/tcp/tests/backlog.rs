//! More clients than can be served: whose handshakes wait, whose SYNs are dropped, and that
//! neither is ever answered with a reset.

use super::super::{Config, ListenError, OpenError, RecvError, SendError, State};
use super::*;

/// Two listeners and clients, each from a port of its own.
struct Server {
    tcp: Tcp<'static>,
    listeners: [ListenerHandle; 2],
    now_us: u64,
}

const PORTS: [u16; 2] = [7, 8];

/// A client's handshake so far.
#[derive(Clone, Copy)]
struct Client {
    from: u16,
    to: u16,
    /// The ISS that answered its SYN.
    iss: u32,
}

const IRS: u32 = 77;

impl Server {
    fn new(connections: usize, half_open: usize) -> Self {
        Self::with(PLAIN, connections, half_open)
    }

    fn with(config: Config, connections: usize, half_open: usize) -> Self {
        let mut tcp = engine(connections, half_open, 3);
        let config = leak(config);
        let listeners = PORTS.map(|port| tcp.listen(None, port, config).unwrap());
        Self {
            tcp,
            listeners,
            now_us: 1_000_000,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    fn receives(&mut self, client: Client, flags: Flags, data: &[u8]) -> Result<(), SegmentDrop> {
        let is_syn = flags.contains(SYN);
        let header = Header {
            src_port: client.from,
            dst_port: client.to,
            seq: IRS + u32::from(!is_syn),
            ack: if is_syn {
                0
            } else {
                client.iss.wrapping_add(1)
            },
            flags,
            window: 8000,
            ..Header::default()
        };
        let payload = data.to_vec();
        let bytes = Seg {
            header,
            payload,
            ecn: 0,
        }
        .bytes(&PEER, &US);
        self.tcp
            .on_segment(&incoming(PEER, US, 0, &bytes), self.now())
    }

    fn poll_segment(&mut self) -> Option<Seg> {
        let mut out = [0; 1500];
        let now = self.now();
        let outgoing = self.tcp.poll_segment(now, |_| true, &mut out)?;
        Some(Seg::parse(&outgoing, &out[..outgoing.len]))
    }

    /// A SYN, and what answers it.
    fn open(&mut self, from: u16, to: u16) -> Option<Client> {
        let mut client = Client { from, to, iss: 0 };
        let _dropped = self.receives(client, SYN, &[]);
        while let Some(seg) = self.poll_segment() {
            assert!(!seg.header.flags.contains(RST), "reset");
            if seg.header.dst_port == from {
                client.iss = seg.header.seq;
                return Some(client);
            }
        }
        None
    }

    /// A whole handshake, up to the client's ACK.
    fn handshake(&mut self, from: u16, to: u16) -> Client {
        let client = self.open(from, to).expect("an answer");
        let _dropped = self.receives(client, ACK, &[]);
        client
    }

    fn accept(&mut self, listener: usize) -> Handle {
        let (listener, now) = (self.listeners[listener], self.now());
        self.tcp.accept(listener, buffers(500, 500), now).unwrap()
    }

    fn abort_and_remove(&mut self, handle: Handle) {
        self.tcp.abort(handle);
        while self.poll_segment().is_some() {}
        self.tcp.remove(handle).unwrap();
    }

    fn remote_port(&self, handle: Handle) -> u16 {
        let connection = self.tcp.connection(handle).unwrap();
        assert_eq!(connection.state(), State::Established);
        connection.endpoints().remote_port
    }

    /// Lets time pass, and asserts that no reset is sent.
    fn wait_s(&mut self, seconds: u64) {
        let until = self.now_us + seconds * 1_000_000;
        loop {
            while let Some(seg) = self.poll_segment() {
                assert!(!seg.header.flags.contains(RST), "reset");
            }
            match self.tcp.next_deadline() {
                Some(at) if at.as_micros() < until => self.now_us = at.as_micros(),
                _ => break,
            }
        }
        self.now_us = until;
    }
}

/// A port with a free slot and lent buffers once waited half a minute, until what waited for
/// another port had run out.
#[test]
fn what_waits_for_one_listener_delays_no_other() {
    for places in 1..=4 {
        let mut server = Server::new(3, places);
        for from in 0..6 {
            server.handshake(2000 + from, PORTS[0]);
        }
        let lent = server.accept(1);
        server.handshake(3000, PORTS[1]);
        assert_eq!(server.remote_port(lent), 3000, "{places} places");
        // Without buffers lent in advance, too, where there are as many places as listeners.
        if places >= 2 {
            server.handshake(3001, PORTS[1]);
            let accepted = server.accept(1);
            assert_eq!(server.remote_port(accepted), 3001, "{places} places");
        }
        // Nor are those lost that waited first.
        let first = server.accept(0);
        assert!((2000..2006).contains(&server.remote_port(first)));
    }
}

#[test]
fn whose_handshake_found_no_place_tries_again() {
    let mut server = Server::new(4, 2);
    server.handshake(2000, PORTS[0]);
    let second = server.open(2001, PORTS[0]).unwrap();
    assert_eq!(
        server.receives(second, ACK, &[]),
        Err(SegmentDrop::HalfOpenFull)
    );
    let accepted = server.accept(0);
    assert_eq!(server.remote_port(accepted), 2000);
    server.receives(second, ACK, &[]).unwrap();
    let accepted = server.accept(0);
    assert_eq!(server.remote_port(accepted), 2001);
}

#[test]
fn a_syn_beyond_what_can_be_served_is_dropped_and_served_later() {
    let mut server = Server::new(4, 4);
    let served: Vec<Handle> = (0..4)
        .map(|from| {
            server.handshake(2000 + from, PORTS[0]);
            server.accept(0)
        })
        .collect();
    for listener in PORTS {
        let fifth = Client {
            from: 2004,
            to: listener,
            iss: 0,
        };
        assert_eq!(server.receives(fifth, SYN, &[]), Err(SegmentDrop::NoSlot));
        assert_eq!(server.poll_segment(), None);
    }
    assert_eq!(server.tcp.counters().dropped(SegmentDrop::NoSlot), 2);
    server.abort_and_remove(served[1]);
    server.handshake(2004, PORTS[0]);
    let accepted = server.accept(0);
    assert_eq!(server.remote_port(accepted), 2004);
    // Buffers lent in advance take one more, and one only.
    let mut server = Server::new(1, 4);
    let lent = server.accept(0);
    server.handshake(2000, PORTS[0]);
    assert_eq!(server.remote_port(lent), 2000);
    assert!(server.open(2001, PORTS[0]).is_none());
}

/// A server with one slot after two handshakes: the first client has the slot, and the late one's
/// handshake is done without a slot.
fn one_too_many(config: Config) -> (Server, Client, Handle) {
    let mut server = Server::with(config, 1, 4);
    let late = server.open(2001, PORTS[0]).unwrap();
    server.handshake(2000, PORTS[0]);
    let first = server.accept(0);
    assert_eq!(server.receives(late, ACK, &[]), Ok(()));
    (server, late, first)
}

/// The last slot went to another client between its SYN and its ACK: it waits until there is one,
/// twice as long as the application has to accept, and gets no reset.
#[test]
fn a_handshake_that_no_slot_is_left_for_waits() {
    let (mut server, late, first) = one_too_many(PLAIN);
    for _ in 0..5 {
        server.wait_s(11);
        assert_eq!(
            server.receives(late, ACK, b"hello"),
            Err(SegmentDrop::NotAccepted)
        );
    }
    server.abort_and_remove(first);
    let accepted = server.accept(0);
    assert_eq!(server.remote_port(accepted), 2001);
    // Where a slot is free and nobody accepts, its place is taken back.
    let mut server = Server::new(2, 4);
    server.handshake(2001, PORTS[0]);
    server.wait_s(31);
    assert!(!server.tcp.can_accept(server.listeners[0]));
}

/// The handshake's place was once held as long as the connections that it waited for lived. A
/// client that sends after the place was given up is reset, as by every TCP that knows nothing of
/// a connection.
#[test]
fn a_handshake_that_finds_no_slot_for_long_is_given_up() {
    for accept_timeout_ms in [1_000, PLAIN.accept_timeout_ms, u16::MAX] {
        let config = Config {
            accept_timeout_ms,
            ..PLAIN
        };
        let (mut server, late, _first) = one_too_many(config);
        let (listener, start_us) = (server.listeners[0], server.now_us);
        while server.tcp.can_accept(listener) {
            assert_eq!(server.poll_segment(), None);
            let next = server
                .tcp
                .next_deadline()
                .expect("a place that is held has an end");
            server.now_us = next.as_micros();
            assert_eq!(server.poll_segment(), None);
        }
        let waited_ms = (server.now_us - start_us) / 1000;
        assert_eq!(waited_ms, 2 * u64::from(accept_timeout_ms));
        assert_eq!(server.tcp.next_deadline(), None);
        assert_eq!(
            server.receives(late, ACK, b"x"),
            Err(SegmentDrop::UnacceptableAck)
        );
        assert!(server.poll_segment().unwrap().header.flags.contains(RST));
    }
}

/// However long each has waited for a slot.
#[test]
fn the_handshake_that_waited_longest_is_accepted_first() {
    let mut server = Server::new(1, 4);
    let late = [2001, 2002].map(|from| server.open(from, PORTS[0]).unwrap());
    server.handshake(2000, PORTS[0]);
    let first = server.accept(0);
    for client in late {
        assert_eq!(server.receives(client, ACK, &[]), Ok(()));
        server.wait_s(20);
    }
    server.abort_and_remove(first);
    let accepted = server.accept(0);
    assert_eq!(server.remote_port(accepted), 2001);
}

/// However often the slot served meanwhile.
#[test]
fn a_stale_handle_reaches_no_later_connection() {
    let mut server = Server::new(1, 1);
    let stale = server.accept(0);
    let mut latest = stale;
    for round in 0..70_000 {
        server.tcp.abort(latest);
        server.tcp.remove(latest).unwrap();
        let none = Buffers::new(&mut [], &mut []);
        let now = server.now();
        latest = server.tcp.accept(server.listeners[0], none, now).unwrap();
        assert!(server.tcp.connection(stale).is_none(), "round {round}");
    }
    let now = server.now();
    server.tcp.abort(stale);
    server.tcp.close(stale, now);
    server.tcp.shutdown(stale, now);
    server.tcp.consume(stale, 1);
    assert_eq!(
        server.tcp.send(stale, b"x", now),
        Err(SendError::NoConnection)
    );
    assert_eq!(
        server.tcp.send_slice(stale, b"x", now),
        Err(SendError::NoConnection)
    );
    assert_eq!(
        server.tcp.recv(stale, &mut [0]),
        Err(RecvError::NoConnection)
    );
    assert_eq!(server.tcp.peek(stale), Err(RecvError::NoConnection));
    assert!(server.tcp.remove(stale).is_none());
    let state = server.tcp.connection(latest).unwrap().state();
    assert_eq!(state, State::Listen, "untouched");
}

#[test]
fn a_stale_listener_reaches_no_later_one() {
    let mut server = Server::new(2, 4);
    let (stale, settings) = (server.listeners[0], leak(PLAIN));
    let mut latest = stale;
    for round in 0..70_000 {
        server.tcp.unlisten(latest);
        latest = server.tcp.listen(None, PORTS[0], settings).unwrap();
        assert_ne!(latest, stale, "round {round}");
    }
    server.listeners[0] = latest;
    server.handshake(2000, PORTS[0]);
    server.tcp.unlisten(stale);
    assert!(!server.tcp.can_accept(stale));
    let none = Buffers::new(&mut [], &mut []);
    let rejected = server.tcp.accept(stale, none, server.now()).unwrap_err();
    assert_eq!(rejected.error, OpenError::NoListener);
    assert_eq!(
        server.tcp.listen(None, PORTS[0], leak(PLAIN)),
        Err(ListenError::InUse)
    );
    let accepted = server.accept(0);
    assert_eq!(server.remote_port(accepted), 2000);
}
