//! Two motes and what applications ask of them.

mod common;

use std::cell::Cell;
use std::future::pending;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::rc::Rc;

use common::{CONNECTIONS, Pair, block_on, now_us, pattern, with_cancels};
use embassy_futures::join::join;
use embassy_time::{Duration, Timer, with_timeout};
use embedded_io_async::{Error as _, ErrorKind, Read, ReadReady, Write, WriteReady};
use embedded_nal_async::{AddrType, Dns, TcpConnect};
use motet::link::Forwarding;
use motet_embassy::{Config, Error, Radio, Resources, Stack, TcpSocket, mac};
use proptest::prelude::*;

const SERVER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fn config() -> Config {
    Config::mesh(0x4d54)
}

async fn read_to_end(socket: &mut TcpSocket) -> Result<Vec<u8>, Error> {
    let (mut all, mut bytes) = (Vec::new(), [0; 700]);
    loop {
        match socket.read(&mut bytes).await? {
            0 => return Ok(all),
            count => all.extend_from_slice(&bytes[..count]),
        }
    }
}

/// Serves an echo to one peer after the other.
async fn echo(stack: Stack, port: u16) {
    let listener = stack.listen(port).unwrap();
    loop {
        let mut socket = listener.accept().await.unwrap();
        let mut bytes = [0; 300];
        while let Ok(count @ 1..) = socket.read(&mut bytes).await {
            if socket.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    }
}

fn all_free(pair: &mut Pair) {
    let (client, server) = (pair.client, pair.server);
    let is_free = move || {
        client.free_connections() == CONNECTIONS && server.free_connections() == CONNECTIONS
    };
    pair.executor.run_until(200, is_free);
}

#[test]
fn what_one_writes_the_other_reads() {
    let mut pair = Pair::new(1, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(7));
    pair.executor.spawn(echo(server, 7));
    let text = block_on(&mut pair.executor, 60, async move {
        let mut socket = client.connect(remote).await.unwrap();
        assert!(!socket.read_ready().unwrap() && socket.write_ready().unwrap());
        let peer = socket.remote().unwrap();
        assert_eq!((peer.ip(), peer.port()), (&SERVER, remote.port()));
        socket.write_all(b"hello, mote").await.unwrap();
        socket.flush().await.unwrap();
        socket.shutdown();
        assert_eq!(socket.write(b"more").await, Err(Error::Closed));
        read_to_end(&mut socket).await.unwrap()
    });
    assert_eq!(text, b"hello, mote");
}

#[test]
fn halves_read_and_write_at_one_time() {
    const LEN: usize = 20_000;
    let mut pair = Pair::new(2, &config());
    let (client, remote) = (pair.client, pair.at(7));
    pair.executor.spawn(echo(pair.server, 7));
    let received = block_on(&mut pair.executor, 200, async move {
        let mut socket = client.connect(remote).await.unwrap();
        let (mut reader, mut writer) = socket.split();
        let bytes: Vec<u8> = (0..LEN).map(pattern).collect();
        let write = async {
            writer.write_all(&bytes).await.unwrap();
            writer.shutdown();
        };
        let read = async {
            let (mut all, mut bytes) = (Vec::new(), [0; 333]);
            while let Ok(count @ 1..) = reader.read(&mut bytes).await {
                all.extend_from_slice(&bytes[..count]);
            }
            all
        };
        join(write, read).await.1
    });
    assert!(received.iter().copied().eq((0..LEN).map(pattern)));
}

#[test]
fn a_dropped_socket_still_delivers_and_then_frees_its_place() {
    let mut pair = Pair::new(3, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(9));
    let sender = async move {
        let mut socket = client.connect(remote).await.unwrap();
        socket.write_all(&[7; 2000]).await.unwrap();
    };
    let receiver = async move {
        let listener = server.listen(9).unwrap();
        read_to_end(&mut listener.accept().await.unwrap()).await
    };
    let received = block_on(&mut pair.executor, 60, async {
        join(sender, receiver).await.1
    });
    assert_eq!(received, Ok(vec![7; 2000]));
    all_free(&mut pair);
}

#[test]
fn a_thousand_connections_leave_no_place_taken() {
    let mut pair = Pair::new(4, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(7));
    let seen = Rc::new(Cell::new(0));
    for _ in 0..2 {
        let seen = seen.clone();
        // Two tasks at two ports: places go to and fro between them.
        let port = 7 + seen.get();
        seen.set(port - 6);
        pair.executor.spawn(echo(server, port));
    }
    block_on(&mut pair.executor, 3_000, async move {
        for number in 0..1_000_u32 {
            let mut remote = remote;
            remote.set_port(7 + (number % 2) as u16);
            let mut socket = client
                .connect(remote)
                .await
                .expect("a place is free in time");
            match number % 5 {
                // Dropped at once, dropped with an answer unread, reset.
                0 => {}
                1 => socket.write_all(b"unread").await.unwrap(),
                2 => {
                    socket.write_all(b"reset").await.unwrap();
                    socket.abort();
                }
                _ => {
                    let text = number.to_be_bytes();
                    socket.write_all(&text).await.unwrap();
                    socket.shutdown();
                    assert_eq!(read_to_end(&mut socket).await, Ok(text.to_vec()));
                }
            }
        }
    });
    let lent = move || client.free_connections() == CONNECTIONS;
    pair.executor.run_until(200, lent);
    // The two tasks that wait have a place each.
    pair.executor
        .run_until(200, move || server.free_connections() == 0);
}

#[test]
fn each_failure_is_of_the_kind_that_fits() {
    let names = &[("table.example", Ipv6Addr::LOCALHOST)];
    let mut settings = config();
    settings.stack.names = names;
    let mut pair = Pair::new(5, &settings);
    let (client, server, addr) = (pair.client, pair.server, pair.server_addr());
    let at = |addr, port| SocketAddr::V6(SocketAddrV6::new(addr, port, 0, 0));
    let global = "fd00::1".parse().unwrap();
    let mapped = "::ffff:192.0.2.1".parse().unwrap();
    let silent = "fe80::77".parse().unwrap();
    pair.executor.spawn(echo(server, 7));
    let cases = [
        (
            "IPv4",
            "192.0.2.1:80".parse().unwrap(),
            ErrorKind::Unsupported,
        ),
        ("IPv4 in IPv6", at(mapped, 80), ErrorKind::Unsupported),
        ("port 0", at(addr, 0), ErrorKind::InvalidInput),
        (
            "no address",
            at(Ipv6Addr::UNSPECIFIED, 80),
            ErrorKind::InvalidInput,
        ),
        (
            "a group",
            at("ff02::1".parse().unwrap(), 80),
            ErrorKind::InvalidInput,
        ),
        ("no route", at(global, 80), ErrorKind::AddrNotAvailable),
        ("refused", at(addr, 81), ErrorKind::ConnectionRefused),
        ("nobody there", at(silent, 80), ErrorKind::TimedOut),
    ];
    for (name, remote, kind) in cases {
        let begun = now_us();
        let connect = async move { TcpConnect::connect(&client, remote).await.map(drop) };
        let error = block_on(&mut pair.executor, 40, connect).expect_err(name);
        assert_eq!(error.kind(), kind, "{name}: {error}");
        assert!(
            now_us() - begun <= 30_000_000,
            "{name}: within connect_timeout"
        );
    }
    let resolve = [
        ("192.0.2.1", Err(ErrorKind::Unsupported)),
        ("unknown.example", Err(ErrorKind::NotFound)),
        ("[fe80::1", Err(ErrorKind::NotFound)),
        ("[name]", Err(ErrorKind::InvalidData)),
        ("Table.Example.", Ok(Ipv6Addr::LOCALHOST)),
        ("[fd00::1]", Ok(global)),
    ];
    for (host, expected) in resolve {
        let ask = async move { client.get_host_by_name(host, AddrType::Either).await };
        let found = block_on(&mut pair.executor, 40, ask).map_err(|error| error.kind());
        assert_eq!(found, expected.map(Into::into), "{host}");
    }
    assert_eq!(
        client.listen(0).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    let _taken = client.listen(5).unwrap();
    assert_eq!(client.listen(5).unwrap_err().kind(), ErrorKind::AddrInUse);
    let _last = client.listen(6).unwrap();
    assert_eq!(client.listen(8).unwrap_err().kind(), ErrorKind::OutOfMemory);
}

#[test]
fn all_places_taken_is_said_within_the_configured_time() {
    let mut settings = config();
    settings.stack.slot_timeout = Duration::from_millis(700);
    let mut pair = Pair::new(6, &settings);
    let (client, server, remote) = (pair.client, pair.server, pair.at(7));
    let listener = server.listen(7).unwrap();
    let took = block_on(&mut pair.executor, 60, async move {
        let (first, accepted) = join(client.connect(remote), listener.accept()).await;
        let (_second, _accepted) = join(client.connect(remote), listener.accept()).await;
        let begun = now_us();
        let third = client.connect(remote).await.map(drop);
        assert_eq!(
            third.map_err(|error| error.kind()),
            Err(ErrorKind::OutOfMemory)
        );
        let took = now_us() - begun;
        // A place that becomes free meanwhile is taken.
        let connect = async { client.connect(remote).await.map(drop) };
        let free = async {
            Timer::after_millis(500).await;
            first.unwrap().abort();
            drop(accepted);
        };
        assert_eq!(join(connect, free).await.0, Ok(()));
        took
    });
    assert_eq!(took, 700_000);
}

#[test]
fn a_reset_and_a_silent_peer_end_a_read() {
    let mut settings = config();
    settings.stack.tcp.user_timeout_ms = 5_000;
    let mut pair = Pair::new(7, &settings);
    let (client, server, remote) = (pair.client, pair.server, pair.at(7));
    let air = pair.air.clone();
    let listener = server.listen(7).unwrap();
    block_on(&mut pair.executor, 300, async move {
        let (socket, accepted) = join(client.connect(remote), listener.accept()).await;
        let (mut socket, accepted) = (socket.unwrap(), accepted.unwrap());
        let reset = async {
            Timer::after_millis(100).await;
            accepted.abort();
        };
        let mut bytes = [0; 8];
        let (read, ()) = join(socket.read(&mut bytes), reset).await;
        assert_eq!(
            read.map_err(|error| error.kind()),
            Err(ErrorKind::ConnectionReset)
        );
        let (socket, accepted) = join(client.connect(remote), listener.accept()).await;
        let (mut socket, _accepted) = (socket.unwrap(), accepted.unwrap());
        air.borrow_mut().loses_every = 1;
        let begun = now_us();
        socket.write_all(b"anybody?").await.unwrap();
        let read = socket.read(&mut bytes).await;
        assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        assert_eq!(
            socket.flush().await.map_err(|e| e.kind()),
            Err(ErrorKind::TimedOut)
        );
        assert!(now_us() - begun < 7_000_000, "{} µs", now_us() - begun);
    });
}

#[test]
fn a_dropped_accept_loses_no_peer_and_keeps_no_place() {
    let mut pair = Pair::new(8, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(7));
    let listener = server.listen(7).unwrap();
    block_on(&mut pair.executor, 60, async move {
        let accept = with_timeout(Duration::from_millis(20), listener.accept());
        assert!(accept.await.is_err());
        assert_eq!(server.free_connections(), CONNECTIONS);
        // Dropped each millisecond, also in the middle of the handshake.
        let accept = with_cancels(std::iter::repeat(1), async || listener.accept().await);
        let (socket, accepted) = join(client.connect(remote), accept).await;
        let (mut socket, mut accepted) = (socket.unwrap(), accepted.unwrap());
        socket.write_all(b"first").await.unwrap();
        let mut bytes = [0; 5];
        accepted.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"first");
    });
    all_free(&mut pair);
}

#[test]
fn tasks_are_woken_when_a_call_gives_something() {
    const PAGE: usize = 4_000;
    const CALLS: u32 = 40;
    let mut pair = Pair::new(9, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(80));
    let useful = [const { Cell::new(0) }; 2].map(Rc::new);
    let is_done = Rc::new(Cell::new(false));
    let [client_calls, server_calls] = useful.clone();
    let serve = pair.executor.spawn(async move {
        let listener = server.listen(80).unwrap();
        let count = || server_calls.set(server_calls.get() + 1);
        let page: Vec<u8> = (0..PAGE).map(pattern).collect();
        loop {
            let mut socket = listener.accept().await.unwrap();
            count();
            let mut request = [0; 100];
            while let Ok(1..) = socket.read(&mut request).await {
                count();
                let mut rest = &page[..];
                while !rest.is_empty() {
                    rest = &rest[socket.write(rest).await.unwrap()..];
                    count();
                }
                socket.flush().await.unwrap();
                count();
            }
        }
    });
    let done = is_done.clone();
    let ask = pair.executor.spawn(async move {
        let count = || client_calls.set(client_calls.get() + 1);
        for _ in 0..CALLS {
            let mut socket = client.connect(remote).await.unwrap();
            count();
            socket.write_all(b"GET /").await.unwrap();
            count();
            let (mut left, mut bytes) = (PAGE, [0; 1024]);
            while left > 0 {
                left -= socket.read(&mut bytes).await.unwrap();
                count();
            }
        }
        done.set(true);
    });
    pair.executor.run_until(1_000, || is_done.get());
    for (name, task, useful) in [("client", ask, &useful[0]), ("server", serve, &useful[1])] {
        let each = f64::from(task.wakes()) / f64::from(useful.get());
        println!(
            "{name}: {each:.2} wakes per useful call, of {}",
            useful.get()
        );
        assert!(each <= 1.1, "{name}: {each:.2} wakes per useful call");
    }
}

#[test]
fn more_tasks_than_are_woken_wait_quietly_and_are_served() {
    const TASKS: usize = 9;
    let mut pair = Pair::new(13, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(7));
    let listener = Rc::new(server.listen(7).unwrap());
    let served = Rc::new(Cell::new(0));
    let tasks = [(); TASKS].map(|()| {
        let (listener, served) = (listener.clone(), served.clone());
        pair.executor.spawn(async move {
            let mut socket = listener.accept().await.unwrap();
            let mut byte = [0];
            socket.read_exact(&mut byte).await.unwrap();
            served.set(served.get() + 1);
        })
    });
    drop(listener);
    block_on(&mut pair.executor, 60, async move {
        Timer::after(Duration::from_secs(10)).await;
    });
    // Five of them look fifty times a second.
    let wakes: u32 = tasks.iter().map(|task| task.wakes()).sum();
    assert!((1..=3_000).contains(&wakes), "{wakes} wakes in ten seconds");
    block_on(&mut pair.executor, 60, async move {
        for _ in 0..TASKS {
            let mut socket = client.connect(remote).await.unwrap();
            socket.write_all(&[1]).await.unwrap();
            socket.flush().await.unwrap();
        }
    });
    pair.executor.run_until(60, || served.get() == TASKS);
    all_free(&mut pair);
}

#[test]
fn names_are_asked_of_the_resolver() {
    let mut settings = config();
    settings.stack.resolver = Some(SERVER);
    let mut pair = Pair::new(10, &settings);
    assert_eq!(pair.server_addr(), SERVER, "as its EUI-64 says");
    let (client, server) = (pair.client, pair.server);
    pair.executor.spawn(async move {
        let socket = server.udp(53).unwrap();
        let (mut asked, mut has_failed) = (0, false);
        loop {
            let mut message = [0; 300];
            let (len, from) = socket.recv_from(&mut message).await;
            asked += 1;
            let message = &mut message[..len];
            message[2] |= 0x80;
            let mut answer = message.to_vec();
            // "refused.example" is refused, and the first question for "shaky.example" fails.
            match message[13] {
                b'r' => answer[3] |= 5,
                b's' if !std::mem::replace(&mut has_failed, true) => answer[3] |= 2,
                _ => {}
            }
            if b"ms".contains(&message[13]) {
                answer[7] = 1;
                answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
                answer.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9).octets());
            }
            // The first question goes unanswered; before the second answer comes a forged one.
            if asked > 1 {
                let mut forged = answer.clone();
                forged[0] ^= 1;
                socket.send_to(&forged, from.into()).await.unwrap();
                socket.send_to(&answer, from.into()).await.unwrap();
            }
        }
    });
    block_on(&mut pair.executor, 60, async move {
        let begun = now_us();
        assert_eq!(
            client.resolve("mote.example").await,
            Ok("fd00::9".parse().unwrap())
        );
        assert!((3_000_000..3_200_000).contains(&(now_us() - begun)));
        assert_eq!(
            client.resolve("unknown.example").await,
            Err(Error::UnknownName)
        );
        assert_eq!(client.resolve("a..b").await, Err(Error::Malformed));
        let address = Ok("fd00::9".parse().unwrap());
        assert_eq!(client.resolve("shaky.example").await, address);
        let begun = now_us();
        let refused = client.resolve("refused.example").await;
        assert_eq!(refused, Err(Error::Resolver));
        assert!((1_000_000..1_300_000).contains(&(now_us() - begun)));
        // Each question gave its port back.
        let sockets: Vec<_> = std::iter::from_fn(|| client.udp(0).ok()).collect();
        assert_eq!(sockets.len(), 4);
        assert_eq!(client.udp(99).unwrap_err(), Error::NoSlot);
        drop(sockets);
        let _socket = client.udp(99).unwrap();
        assert_eq!(client.udp(99).unwrap_err(), Error::InUse);
    });
}

#[test]
fn a_datagram_that_the_queue_never_holds_is_refused_at_once() {
    let mut pair = Pair::new(11, &config());
    let (client, server, remote) = (pair.client, pair.server, pair.at(9));
    block_on(&mut pair.executor, 60, async move {
        let receiver = server.udp(9).unwrap();
        let sender = client.udp(0).unwrap();
        // Of 256 bytes, 54 are headers and the queue's own.
        let send = async |len: usize| {
            let payload = vec![7; len];
            let sent = sender.send_to(&payload, remote);
            with_timeout(Duration::from_secs(10), sent).await
        };
        assert_eq!(send(203).await, Ok(Err(Error::TooLong)));
        for _ in 0..5 {
            assert_eq!(send(202).await, Ok(Ok(())), "when the last one has left");
            let mut bytes = [0; 300];
            assert_eq!(receiver.recv_from(&mut bytes).await.0, 202);
        }
    });
}

#[test]
fn room_comes_back_though_no_frame_gets_out() {
    let mut pair = Pair::new(12, &config());
    let (client, remote) = (pair.client, pair.at(9));
    pair.air.borrow_mut().is_jammed = true;
    block_on(&mut pair.executor, 60, async move {
        let sender = client.udp(0).unwrap();
        for number in 0..10 {
            let sent = sender.send_to(&[7; 150], remote).await;
            assert_eq!(sent, Ok(()), "datagram {number}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Every call is dropped again and again while it waits, frames are lost, and the bytes are
    /// whole.
    #[test]
    fn nothing_is_lost_with_a_dropped_future(
        seed in any::<u64>(),
        loses_every in prop_oneof![Just(0_u32), 5_u32..20],
        turns in prop::collection::vec(0_u64..30, 1..40),
        len in 1_usize..6_000,
    ) {
        // With none but zeros the clock would stand still for good.
        let turns = [turns, vec![1]].concat();
        let mut pair = Pair::new(seed, &config());
        pair.air.borrow_mut().loses_every = loses_every;
        let (client, server, remote) = (pair.client, pair.server, pair.at(7));
        let forever = turns.clone().into_iter().cycle();
        let write = {
            let turns = turns.clone();
            async move {
                // Long enough at last for a connection to begin.
                let mut socket = with_cancels(turns.clone().into_iter(), async || {
                    client.connect(remote).await
                }).await.unwrap();
                let bytes: Vec<u8> = (0..len).map(pattern).collect();
                let mut rest = &bytes[..];
                let mut cycle = turns.into_iter().cycle();
                while !rest.is_empty() {
                    let count = with_cancels(cycle.by_ref(), async || socket.write(rest).await).await;
                    rest = &rest[count.unwrap()..];
                }
                with_cancels(cycle.by_ref(), async || socket.flush().await).await.unwrap();
            }
        };
        let read = async move {
            let listener = server.listen(7).unwrap();
            let mut turns = forever;
            loop {
                let accept = with_cancels(turns.by_ref(), async || listener.accept().await);
                let mut socket = accept.await.unwrap();
                let (mut all, mut bytes) = (Vec::new(), [0; 90]);
                let end = loop {
                    let read = with_cancels(turns.by_ref(), async || socket.read(&mut bytes).await);
                    match read.await {
                        Ok(0) => break Ok(()),
                        Ok(count) => all.extend_from_slice(&bytes[..count]),
                        Err(error) => break Err(error),
                    }
                };
                // Attempts that the client has given up may have connected, too.
                if end.is_ok() && !all.is_empty() {
                    return all;
                }
            }
        };
        let received = block_on(&mut pair.executor, 900, async { join(write, read).await.1 });
        prop_assert!(received.iter().copied().eq((0..len).map(pattern)), "{} of {len}", received.len());
        all_free(&mut pair);
    }
}

/// A radio that makes attempts by itself, and reports nothing.
struct Whole;

impl Radio for Whole {
    fn capabilities(&self) -> mac::RadioCapabilities {
        mac::RadioCapabilities {
            assesses: true,
            takes_acks: true,
            ..mac::RadioCapabilities::CC2420
        }
    }

    fn perform(&mut self, _: mac::Action, _: &[u8]) {}

    async fn event<'a>(&mut self, _: &'a mut [u8; 127]) -> mac::Event<'a> {
        pending().await
    }
}

#[test]
fn a_radio_is_refused_what_it_cannot_do() {
    let start = |config: Config| {
        let resources: &'static Resources<1, 256> = Box::leak(Box::new(Resources::new()));
        motet_embassy::new(resources, Whole, [2; 8], [1, 2], config).err()
    };
    assert_eq!(start(config()), None);
    let mut immediate = config();
    immediate.mesh.forwarding = Forwarding::Immediate;
    assert_eq!(start(immediate), Some(mac::Unfit::Immediate));
    let mut deaf = config();
    deaf.mac.deaf_backoff = true;
    assert_eq!(start(deaf), Some(mac::Unfit::DeafBackoff));
}
