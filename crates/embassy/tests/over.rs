//! Nodes above a driver that carries whole packets, and what happens to the driver.

mod common;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::rc::Rc;
use std::task::{Context, Waker};

use common::{Executor, block_on, now_us, pattern, restart_clock};
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_time::{Duration, Timer, with_timeout};
use embedded_io_async::{Read, Write};
use motet_embassy::{Error, OverError, PacketResources, Stack, StackConfig, TcpSocket, over};

const CLIENT: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const SERVER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

/// What waits for one end, and what that end's driver can do.
struct End {
    arrived: VecDeque<Vec<u8>>,
    is_up: bool,
    /// Packets that may wait at the other end; 0: the driver is full.
    room: usize,
    waker: Option<Waker>,
}

/// A wire between two drivers, without loss or delay.
struct Wire {
    ends: [End; 2],
    medium: HardwareAddress,
    mtu: usize,
    /// Packets that the first end handed over.
    carried: usize,
}

#[derive(Clone)]
struct Port {
    wire: Rc<RefCell<Wire>>,
    side: usize,
}

struct Arrived(Vec<u8>);

struct Leaving(Port);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, f: F) -> R {
        f(&mut self.0)
    }
}

impl TxToken for Leaving {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        let wire = &mut *self.0.wire.borrow_mut();
        assert!(len <= wire.mtu, "a packet of {len} bytes");
        wire.carried += usize::from(self.0.side == 0);
        let other = &mut wire.ends[1 - self.0.side];
        other.arrived.push_back(packet);
        other.waker.take().into_iter().for_each(Waker::wake);
        result
    }
}

impl Driver for Port {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Arrived, Leaving)> {
        let wire = &mut *self.wire.borrow_mut();
        let end = &mut wire.ends[self.side];
        end.waker = Some(cx.waker().clone());
        let packet = end.arrived.pop_front()?;
        // There is room at this end again.
        let other = &mut wire.ends[1 - self.side];
        other.waker.take().into_iter().for_each(Waker::wake);
        Some((Arrived(packet), Leaving(self.clone())))
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Leaving> {
        let wire = &mut *self.wire.borrow_mut();
        let waiting = wire.ends[1 - self.side].arrived.len();
        let end = &mut wire.ends[self.side];
        end.waker = Some(cx.waker().clone());
        (waiting < end.room).then(|| Leaving(self.clone()))
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        let end = &mut self.wire.borrow_mut().ends[self.side];
        end.waker = Some(cx.waker().clone());
        match end.is_up {
            true => LinkState::Up,
            false => LinkState::Down,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = self.wire.borrow().mtu;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        self.wire.borrow().medium
    }
}

impl Port {
    fn change(&self, change: impl FnOnce(&mut End)) {
        let end = &mut self.wire.borrow_mut().ends[self.side];
        change(end);
        end.waker.take().into_iter().for_each(Waker::wake);
    }
}

type Memory = PacketResources<2, 2048, 512, 2>;

struct Pair {
    executor: Executor,
    stacks: [Stack; 2],
    ports: [Port; 2],
}

fn ports() -> [Port; 2] {
    restart_clock();
    let end = || End {
        arrived: VecDeque::new(),
        is_up: true,
        room: 2,
        waker: None,
    };
    let wire = Rc::new(RefCell::new(Wire {
        ends: [end(), end()],
        medium: HardwareAddress::Ip,
        mtu: 1280,
        carried: 0,
    }));
    [0, 1].map(|side| Port {
        wire: wire.clone(),
        side,
    })
}

fn start(port: &Port, mine: &[Ipv6Addr]) -> Result<(Stack, Runner), OverError> {
    let memory: &'static Memory = Box::leak(Box::new(PacketResources::new()));
    let seed = [7, port.side as u64];
    over(port.clone(), memory, mine, seed, StackConfig::packets())
}

type Runner = motet_embassy::PacketRunner<Port>;

fn pair() -> Pair {
    let ports = ports();
    let mut executor = Executor::default();
    let stacks = [(0, CLIENT), (1, SERVER)].map(|(side, addr)| {
        let (stack, mut runner) = start(&ports[side], &[addr]).unwrap();
        executor.spawn(async move {
            runner.run().await;
        });
        stack
    });
    Pair {
        executor,
        stacks,
        ports,
    }
}

fn at(addr: Ipv6Addr, port: u16) -> SocketAddr {
    SocketAddrV6::new(addr, port, 0, 0).into()
}

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

/// Sends `text` and reads it back.
async fn exchange(socket: &mut TcpSocket, text: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut back, mut sent) = (Vec::new(), 0);
    while back.len() < text.len() {
        let end = text.len().min(sent + 1000);
        socket.write_all(&text[sent..end]).await?;
        sent = end;
        let mut bytes = [0; 1000];
        while back.len() < sent {
            match socket.read(&mut bytes).await? {
                0 => return Err(Error::NotConnected),
                count => back.extend_from_slice(&bytes[..count]),
            }
        }
    }
    Ok(back)
}

#[test]
fn streams_and_datagrams_cross_a_driver() {
    let mut pair = pair();
    let [client, server] = pair.stacks;
    pair.executor.spawn(echo(server, 7));
    let text: Vec<u8> = (0..20_000).map(pattern).collect();
    let sent = text.clone();
    let back = block_on(&mut pair.executor, 60, async move {
        assert_eq!(client.joined().await, CLIENT);
        let mut socket = client.connect(at(SERVER, 7)).await.unwrap();
        exchange(&mut socket, &sent).await.unwrap()
    });
    assert!(back == text);
    let (len, from) = block_on(&mut pair.executor, 60, async move {
        let (to, from) = (server.udp(9).unwrap(), client.udp(8).unwrap());
        from.send_to(b"a datagram", at(SERVER, 9)).await.unwrap();
        to.recv_from(&mut [0; 20]).await
    });
    assert_eq!((len, *from.ip(), from.port()), (10, CLIENT, 8));
}

#[test]
fn a_driver_that_is_full_for_ten_seconds_holds_segments_back_and_ends_nothing() {
    let mut pair = pair();
    let [client, server] = pair.stacks;
    pair.executor.spawn(echo(server, 7));
    let port = pair.ports[0].clone();
    let wire = port.wire.clone();
    let begun = now_us();
    let back = block_on(&mut pair.executor, 60, async move {
        let mut socket = client.connect(at(SERVER, 7)).await.unwrap();
        exchange(&mut socket, b"before").await.unwrap();
        port.change(|end| end.room = 0);
        let carried = wire.borrow().carried;
        socket.write_all(b"meanwhile").await.unwrap();
        Timer::after_secs(10).await;
        assert_eq!(wire.borrow().carried, carried, "the driver has no room");
        port.change(|end| end.room = 2);
        let mut bytes = [0; 9];
        socket.read_exact(&mut bytes).await.unwrap();
        bytes
    });
    assert_eq!(&back, b"meanwhile");
    // The segment was there when the room was, and did not wait for a timer of its own.
    assert!(now_us() - begun < 10_100_000, "{} us", now_us() - begun);
}

#[test]
fn a_driver_that_stays_full_ends_connections_by_their_time_limit() {
    let mut pair = pair();
    let [client, server] = pair.stacks;
    pair.executor.spawn(echo(server, 7));
    let port = pair.ports[0].clone();
    let error = block_on(&mut pair.executor, 90, async move {
        let mut socket = client.connect(at(SERVER, 7)).await.unwrap();
        port.change(|end| end.room = 0);
        exchange(&mut socket, b"never").await.unwrap_err()
    });
    assert_eq!(error, Error::TimedOut);
    assert!((60_000_000..62_000_000).contains(&now_us()));
    // A handshake, too.
    let error = block_on(&mut pair.executor, 90, async move {
        client.connect(at(SERVER, 7)).await.map(drop).unwrap_err()
    });
    assert_eq!(error, Error::TimedOut);
}

#[test]
fn a_full_driver_costs_no_turns() {
    let mut pair = pair();
    let [client, server] = pair.stacks;
    let port = pair.ports[0].clone();
    port.change(|end| end.room = 0);
    let (stack, mut runner) = start(&pair.ports[0], &[CLIENT]).unwrap();
    let task = pair.executor.spawn(async move {
        runner.run().await;
    });
    block_on(&mut pair.executor, 60, async move {
        let _ = with_timeout(Duration::from_secs(20), stack.connect(at(SERVER, 7))).await;
    });
    let _ = (client, server);
    assert!(task.wakes() < 60, "{} turns in 20 s", task.wakes());
}

#[test]
fn a_link_that_goes_down_and_comes_back_has_lost_no_connection() {
    let mut pair = pair();
    let [client, server] = pair.stacks;
    pair.executor.spawn(echo(server, 7));
    let port = pair.ports[0].clone();
    let back = block_on(&mut pair.executor, 60, async move {
        let mut socket = client.connect(at(SERVER, 7)).await.unwrap();
        port.change(|end| end.is_up = false);
        socket.write_all(b"down").await.unwrap();
        Timer::after_secs(20).await;
        port.change(|end| end.is_up = true);
        let mut bytes = [0; 4];
        socket.read_exact(&mut bytes).await.unwrap();
        bytes
    });
    assert_eq!(&back, b"down");
}

#[test]
fn addresses_follow_the_owner_of_the_driver() {
    const OTHER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1);
    let mut pair = pair();
    let [client, server] = pair.stacks;
    pair.executor.spawn(echo(server, 7));
    pair.executor.spawn(echo(server, 8));
    let error = block_on(&mut pair.executor, 200, async move {
        let mut old = client.connect(at(SERVER, 7)).await.unwrap();
        client.set_addresses(&[OTHER]).unwrap();
        assert_eq!(client.global_address(), Some(OTHER));
        let error = exchange(&mut old, b"gone").await.unwrap_err();
        // A new connection is from the new address, and the server answers there.
        let mut new = client.connect(at(SERVER, 8)).await.unwrap();
        assert_eq!(*new.local().unwrap().ip(), OTHER);
        exchange(&mut new, b"here").await.unwrap();
        error
    });
    assert_eq!(error, Error::TimedOut);
    assert_eq!(
        client.set_addresses(&[CLIENT; motet::limits::ADDRESSES_MAX + 1]),
        Err(OverError::Addresses)
    );
    assert_eq!(client.global_address(), Some(OTHER));
}

#[test]
fn an_address_that_comes_back_in_time_keeps_its_connections() {
    let mut pair = pair();
    let [client, server] = pair.stacks;
    pair.executor.spawn(echo(server, 7));
    let back = block_on(&mut pair.executor, 60, async move {
        let mut socket = client.connect(at(SERVER, 7)).await.unwrap();
        client.set_addresses(&[]).unwrap();
        socket.write_all(b"again").await.unwrap();
        Timer::after_secs(10).await;
        client.set_addresses(&[CLIENT]).unwrap();
        let mut bytes = [0; 5];
        socket.read_exact(&mut bytes).await.unwrap();
        bytes
    });
    assert_eq!(&back, b"again");
}

#[test]
fn a_driver_of_frames_or_of_short_packets_is_refused() {
    let [port, _] = ports();
    port.wire.borrow_mut().medium = HardwareAddress::Ethernet([2; 6]);
    assert_eq!(start(&port, &[CLIENT]).err(), Some(OverError::Medium));
    port.wire.borrow_mut().medium = HardwareAddress::Ip;
    port.wire.borrow_mut().mtu = 1279;
    assert_eq!(start(&port, &[CLIENT]).err(), Some(OverError::Mtu));
    port.wire.borrow_mut().mtu = 1500;
    assert_eq!(
        start(&port, &[CLIENT; motet::limits::ADDRESSES_MAX + 1]).err(),
        Some(OverError::Addresses)
    );
    assert!(start(&port, &[CLIENT; motet::limits::ADDRESSES_MAX]).is_ok());
}
