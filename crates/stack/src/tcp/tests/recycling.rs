//! Buffers that served one connection serve the next: nothing of the first may be seen there,
//! however it ended, whoever opened either of the two, and whichever kind the send buffer is.

use super::super::{Buffers, Config, Error, IcmpError, RecvError, State};
use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Open {
    /// Buffers lent to a listener in advance.
    Lent,
    /// Accepted once the handshake was done.
    Accepted,
    Active,
}

const OPENS: [Open; 3] = [Open::Lent, Open::Accepted, Open::Active];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Ring,
    Slices,
}

const WINDOW: u16 = 4000;

const SETTINGS: Config = Config {
    accept_window: WINDOW,
    sack: true,
    user_timeout_ms: 0,
    ..PLAIN
};

/// What ended a connection, how far it had come, and how it is done.
type End = (&'static str, Stage, fn(&mut Script));
type Named = (&'static str, fn(&mut Script));

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// SYN sent, or lent to a listener without a client.
    Opened(Open),
    Established,
}

fn lend(kind: Kind) -> Buffers<'static> {
    let mut lent = buffers(4000, WINDOW);
    if kind == Kind::Slices {
        lent.send = memory::slices(4, 1000);
    }
    lent
}

impl Script {
    /// Opens a connection as far as it goes without the peer.
    fn open(&mut self, open: Open, lent: Buffers<'static>, config: Config) {
        let (config, now) = (leak(config), self.now());
        self.irs = self.irs.wrapping_add(1 << 24);
        if open == Open::Active {
            let remote = (PEER, PEER_PORT);
            let handle = self
                .tcp
                .connect(US, remote, lent, config, self.offer, now)
                .unwrap();
            self.handle = Some(handle);
            let syn = self.sent();
            (self.iss, self.local_port) = (syn.header.seq, syn.header.src_port);
            return;
        }
        let listener = *self
            .listener
            .get_or_insert_with(|| self.tcp.listen(None, PORT, config).unwrap());
        self.local_port = PORT;
        if open == Open::Lent {
            self.handle = Some(self.tcp.accept(listener, lent, now).unwrap());
            return;
        }
        self.call();
        self.handle = Some(self.tcp.accept(listener, lent, now).unwrap());
    }

    /// The peer opens a connection to the listener.
    fn call(&mut self) {
        self.peer(say(SYN, 0, 0).mss(1000).sack_permitted())
            .unwrap();
        self.iss = self.sent().header.seq;
        self.peer(say(ACK, 1, 1)).unwrap();
    }

    /// Opens a connection and does the rest of the handshake.
    fn establish(&mut self, open: Open, lent: Buffers<'static>, config: Config) {
        self.open(open, lent, config);
        match open {
            Open::Active => {
                let syn_ack = say(SYN | ACK, 0, 1).mss(1000).sack_permitted();
                self.peer(syn_ack).unwrap();
                self.expect(ACK, 1, 1, 0);
            }
            Open::Lent => self.call(),
            Open::Accepted => {}
        }
        assert_eq!(self.state(), State::Established);
    }

    /// Hands over bytes to send, some by reference where the buffer takes them.
    fn fill(&mut self, kind: Kind) {
        let (handle, now) = (self.handle(), self.now());
        self.tcp.send(handle, &[b'o'; 900], now).unwrap();
        if kind == Kind::Slices {
            self.tcp.send_slice(handle, &[b's'; 2000], now).unwrap();
        }
        self.tcp.send(handle, &[b'p'; 90], now).unwrap();
    }

    /// Leaves bytes wherever a connection can hold some.
    fn dirty(&mut self, kind: Kind) {
        self.fill(kind);
        while self.poll().is_some() {}
        self.peer(say(ACK, 1, 1).data(&[b'u'; 300])).unwrap();
        self.peer(say(ACK, 401, 1).data(&[b'g'; 500])).unwrap();
        self.peer(say(ACK, 1101, 1).data(&[b'h'; 700])).unwrap();
        while self.poll().is_some() {}
        assert!(self.connection().recv.has_gaps());
        assert!(self.connection().can_recv() == 300 && self.connection().unacknowledged() > 900);
    }

    /// Lets time pass until the connection is over.
    fn run_out(&mut self) {
        for _ in 0..10_000 {
            while self.poll().is_some() {}
            if self.state() == State::Closed {
                return;
            }
            self.now_us = self.tcp.next_deadline().expect("a deadline").as_micros();
        }
        panic!("it never ends");
    }

    fn reconfigure(&mut self, config: Config) {
        let (handle, now) = (self.handle(), self.now());
        self.tcp.set_config(handle, leak(config), now);
    }

    fn close(&mut self) {
        let (handle, now) = (self.handle(), self.now());
        self.tcp.close(handle, now);
    }

    /// How much the peer has to acknowledge for all that was sent.
    fn sent_to(&self) -> u32 {
        self.connection().snd_nxt.get().wrapping_sub(self.iss)
    }

    fn acknowledge_all(&mut self) {
        self.peer(say(ACK, 301, self.sent_to())).unwrap();
    }
}

/// Every way in which a connection can end.
fn ends() -> Vec<End> {
    let established: [Named; 14] = [
        ("reset by the peer", |s| {
            s.peer(say(RST, 301, 0)).unwrap_err();
        }),
        ("aborted", |s| s.tcp.abort(s.handle())),
        ("closed with unread data", Script::close),
        ("closed, then data came", |s| {
            s.recv();
            s.close();
            s.peer(say(ACK, 301, 1).data(b"late")).unwrap_err();
        }),
        ("retransmitted too often", Script::run_out),
        ("no progress", |s| {
            s.reconfigure(Config {
                user_timeout_ms: 3000,
                ..SETTINGS
            });
            s.run_out();
            assert_eq!(s.connection().error(), Some(Error::UserTimeout));
        }),
        ("a window that stays shut", |s| {
            let all = s.sent_to();
            s.peer(say(ACK, 301, all).win(0)).unwrap();
            s.fill(Kind::Ring);
            s.run_out();
        }),
        ("keepalives without an answer", |s| {
            s.acknowledge_all();
            s.reconfigure(Config {
                keepalive_idle_s: 10,
                ..SETTINGS
            });
            s.run_out();
            assert_eq!(s.connection().error(), Some(Error::KeepaliveTimedOut));
        }),
        ("FIN-WAIT-2 too long", |s| {
            s.acknowledge_all();
            s.recv();
            s.close();
            while s.poll().is_some() {}
            s.acknowledge_all();
            assert_eq!(s.state(), State::FinWait2);
            s.run_out();
        }),
        ("reset in LAST-ACK", |s| {
            s.peer(say(FIN | ACK, 301, 1)).unwrap();
            s.shutdown();
            assert_eq!(s.state(), State::LastAck);
            s.peer(say(RST, 302, 0)).unwrap_err();
        }),
        ("both closed, unread data left", |s| {
            s.acknowledge_all();
            s.peer(say(FIN | ACK, 301, s.sent_to())).unwrap();
            s.shutdown();
            while s.poll().is_some() {}
            s.peer(say(ACK, 302, s.sent_to())).unwrap();
            assert_eq!((s.state(), s.connection().error()), (State::Closed, None));
        }),
        ("TIME-WAIT, unread data left", |s| {
            s.acknowledge_all();
            s.shutdown();
            while s.poll().is_some() {}
            s.peer(say(FIN | ACK, 301, s.sent_to())).unwrap();
            assert_eq!(s.state(), State::TimeWait);
        }),
        ("TIME-WAIT run out", |s| {
            s.acknowledge_all();
            s.shutdown();
            while s.poll().is_some() {}
            s.peer(say(FIN | ACK, 301, s.sent_to())).unwrap();
            s.run_out();
        }),
        ("reset in TIME-WAIT", |s| {
            s.acknowledge_all();
            s.shutdown();
            while s.poll().is_some() {}
            s.peer(say(FIN | ACK, 301, s.sent_to())).unwrap();
            s.peer(say(RST, 302, 0)).unwrap_err();
        }),
    ];
    let active: [Named; 5] = [
        ("refused", |s| {
            s.peer(say(RST | ACK, 0, 1)).unwrap_err();
            assert_eq!(s.connection().error(), Some(Error::Refused));
        }),
        ("unreachable", |s| {
            let quoted = [s.local_port, PEER_PORT].map(u16::to_be_bytes).concat();
            let quoted = [&quoted[..], &s.iss.to_be_bytes()].concat();
            let now = s.now();
            s.tcp
                .on_icmp_error(&US, &PEER, 0, &quoted, IcmpError::Hard, now);
            assert_eq!(s.connection().error(), Some(Error::Unreachable));
        }),
        ("no answer to the SYN", Script::run_out),
        ("closed before the answer", Script::close),
        ("aborted before the answer", |s| s.tcp.abort(s.handle())),
    ];
    let lent: [Named; 3] = [
        ("the listener closed", |s| {
            s.tcp.unlisten(s.listener.take().unwrap());
        }),
        ("closed in LISTEN", Script::close),
        ("aborted in LISTEN", |s| s.tcp.abort(s.handle())),
    ];
    let at = |stage| move |(name, end)| (name, stage, end);
    let mut all: Vec<End> = established.map(at(Stage::Established)).to_vec();
    all.extend(active.map(at(Stage::Opened(Open::Active))));
    all.extend(lent.map(at(Stage::Opened(Open::Lent))));
    all
}

/// The buffers of a connection that ended so, as they come back.
fn used(open: Open, kind: Kind, (_, stage, end): End) -> (Script, Buffers<'static>) {
    let mut s = Script::new();
    if stage == Stage::Established {
        s.establish(open, lend(kind), SETTINGS);
        s.dirty(kind);
    } else {
        s.open(open, lend(kind), SETTINGS);
        s.fill(kind);
    }
    end(&mut s);
    let handle = s.handle();
    let lent = s.tcp.remove(handle).expect("it is over");
    while s.poll().is_some() {}
    (s, lent)
}

/// A connection that knows nothing of an earlier one.
fn is_fresh(s: &mut Script, name: &str) {
    assert_eq!(s.poll(), None, "{name}: something to send");
    let handle = s.handle();
    assert_eq!(s.tcp.peek(handle), Err(RecvError::Empty), "{name}");
    let connection = s.connection();
    assert_eq!(connection.unacknowledged(), 0, "{name}");
    assert_eq!(connection.can_recv(), 0, "{name}");
    assert_eq!(connection.recv.capacity(), WINDOW, "{name}");
    assert!(!connection.recv.has_gaps(), "{name}");
    // Bytes behind a hole, then those of the hole: no place may claim bytes of the past.
    s.peer(say(ACK, 41, 1).data(b"tail")).unwrap();
    let told = s.expect(ACK, 1, 1, 0).header.options.sack;
    assert_eq!(told.as_slice().len(), 1, "{name}");
    s.peer(say(ACK, 1, 1).data(&[b'n'; 40])).unwrap();
    s.expect(ACK, 1, 45, 0);
    assert_eq!(s.recv(), [&[b'n'; 40], &b"tail"[..]].concat(), "{name}");
    let now = s.now();
    assert_eq!(s.tcp.send(handle, b"answer", now), Ok(6), "{name}");
    assert_eq!(s.expect(ACK, 1, 45, 6).payload, b"answer", "{name}");
    let mut most = vec![b'm'; 5000];
    let room = s.connection().can_send();
    let taken = s.tcp.send(handle, &most, now).unwrap();
    most.truncate(taken);
    assert_eq!(usize::from(room), taken, "{name}");
    s.peer(say(ACK, 45, 7)).unwrap();
    while let Some(seg) = s.poll() {
        assert!(seg.payload.iter().all(|byte| *byte == b'm'), "{name}");
    }
}

#[test]
fn a_connection_starts_with_nothing_of_the_one_before() {
    for kind in [Kind::Ring, Kind::Slices] {
        for end in ends() {
            let firsts = match end.1 {
                Stage::Established => OPENS.to_vec(),
                Stage::Opened(open) => vec![open],
            };
            for first in firsts {
                for second in OPENS {
                    let name = std::format!("{first:?} {kind:?}, {}, {second:?}", end.0);
                    let (mut s, lent) = used(first, kind, end);
                    s.establish(second, lent, SETTINGS);
                    is_fresh(&mut s, &name);
                }
            }
        }
    }
}

/// Buffers that go to another node: a window that header compression kept short there is whole
/// again here.
#[test]
fn buffers_offer_all_of_their_memory_again() {
    let mut s = Script::new();
    s.offer.flight_max = 16_384;
    s.establish(Open::Active, buffers(10, 60_000), SETTINGS);
    let short = s.connection().recv.capacity();
    let handle = s.handle();
    s.tcp.abort(handle);
    let lent = s.tcp.remove(handle).unwrap();
    let mut other = Script::new();
    other.establish(Open::Active, lent, SETTINGS);
    assert!(short < 60_000 && other.connection().recv.capacity() == 60_000);
}
