//! A device: Motet's sockets or embassy-net's above the shim, with one application.

use std::cell::Cell;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::rc::Rc;

use embassy_net::tcp::TcpSocket;
use embassy_net::{ConfigV6, Ipv6Cidr, StackResources, StaticConfigV6};
use embedded_io_async::{Read, Write};
use motet_embassy::{PacketResources, StackConfig, over};

use crate::clock::Executor;
use crate::shim::Shim;

/// The stack of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Motet,
    EmbassyNet,
}

/// What the device does with a connection that it opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Sends that many bytes, of [`pattern`].
    Send(usize),
    /// Reads to the end.
    Receive,
}

/// How the application ended.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Bytes read, as far as they were the right ones.
    pub(crate) read: Cell<usize>,
    /// Bytes read, whatever they were.
    pub(crate) all: Cell<usize>,
    pub(crate) end: Cell<End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum End {
    #[default]
    Open,
    Done,
    Failed,
}

/// The byte at each place of a stream; the period divides no buffer or segment.
pub(crate) fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// A stack as the checks want to change it while it runs.
pub(crate) enum Stack {
    Motet(motet_embassy::Stack),
    EmbassyNet(embassy_net::Stack<'static>),
}

impl Kind {
    /// Starts a device that connects to `remote` and does `task`.
    pub(crate) fn start(
        self,
        executor: &mut Executor,
        shim: &Shim,
        (remote, task): (SocketAddrV6, Task),
        (buffer, seed): (usize, u64),
    ) -> (Stack, Rc<Outcome>) {
        let outcome = Rc::new(Outcome::default());
        let result = outcome.clone();
        match self {
            Self::Motet => {
                let stack = start_motet(executor, shim, buffer, seed);
                executor.spawn(async move {
                    let end = motet(stack, remote.into(), task, &result).await;
                    result.end.set(end.map_or(End::Failed, |()| End::Done));
                });
                (Stack::Motet(stack), outcome)
            }
            Self::EmbassyNet => {
                let stack = start_embassy_net(executor, shim, seed);
                executor.spawn(async move {
                    let what = (remote, task);
                    let end = embassy_net(stack, what, buffer, &result).await;
                    result.end.set(end.map_or(End::Failed, |()| End::Done));
                });
                (Stack::EmbassyNet(stack), outcome)
            }
        }
    }
}

/// Motet above the shim, with connections of `buffer` bytes each way: one of [`BUFFERS`].
pub(crate) fn start_motet(
    executor: &mut Executor,
    shim: &Shim,
    buffer: usize,
    seed: u64,
) -> motet_embassy::Stack {
    match buffer {
        4096 => start_sized::<4096>(executor, shim, seed),
        6144 => start_sized::<6144>(executor, shim, seed),
        16384 => start_sized::<16384>(executor, shim, seed),
        _ => start_sized::<8192>(executor, shim, seed),
    }
}

fn start_sized<const BUFFER: usize>(
    executor: &mut Executor,
    shim: &Shim,
    seed: u64,
) -> motet_embassy::Stack {
    let memory: &'static PacketResources<1, BUFFER> = Box::leak(Box::new(PacketResources::new()));
    let config = StackConfig::packets();
    let started = over(shim.clone(), memory, &[DEVICE], [seed, 5], config);
    let (stack, mut runner) = started.expect("a driver of packets");
    executor.spawn(async move {
        runner.run().await;
    });
    stack
}

fn start_embassy_net(
    executor: &mut Executor,
    shim: &Shim,
    seed: u64,
) -> embassy_net::Stack<'static> {
    let resources: &'static mut StackResources<2> = Box::leak(Box::new(StackResources::new()));
    let config = embassy_net::Config::ipv6_static(config_of(DEVICE));
    let (stack, mut runner) = embassy_net::new(shim.clone(), config, resources, seed);
    executor.spawn(async move {
        runner.run().await;
    });
    stack
}

fn config_of(address: Ipv6Addr) -> StaticConfigV6 {
    StaticConfigV6 {
        address: Ipv6Cidr::new(address, 64),
        gateway: Some(GATEWAY),
        dns_servers: Default::default(),
    }
}

impl Stack {
    /// The owner of the driver has another address now.
    pub(crate) fn set_address(&self, address: Ipv6Addr) {
        match self {
            Self::Motet(stack) => stack.set_addresses(&[address]).expect("room for one"),
            Self::EmbassyNet(stack) => stack.set_config_v6(ConfigV6::Static(config_of(address))),
        }
    }
}

pub(crate) async fn motet(
    stack: motet_embassy::Stack,
    remote: SocketAddr,
    task: Task,
    outcome: &Outcome,
) -> Result<(), motet_embassy::Error> {
    let mut socket = stack.connect(remote).await?;
    match task {
        Task::Send(len) => {
            send(&mut socket, len).await?;
            socket.flush().await?;
            socket.shutdown();
            receive(&mut socket, outcome).await
        }
        Task::Receive => receive(&mut socket, outcome).await,
    }
}

async fn embassy_net(
    stack: embassy_net::Stack<'static>,
    (remote, task): (SocketAddrV6, Task),
    buffer: usize,
    outcome: &Outcome,
) -> Result<(), embassy_net::tcp::Error> {
    stack.wait_config_up().await;
    let memory = || Box::leak(vec![0; buffer].into_boxed_slice());
    let mut socket = TcpSocket::new(stack, memory(), memory());
    // What Motet's settings have.
    socket.set_timeout(Some(embassy_time::Duration::from_secs(60)));
    socket.set_nagle_enabled(false);
    let connected = socket.connect((*remote.ip(), remote.port())).await;
    connected.map_err(|_| embassy_net::tcp::Error::ConnectionReset)?;
    match task {
        Task::Send(len) => {
            send(&mut socket, len).await?;
            socket.flush().await?;
            socket.close();
            receive(&mut socket, outcome).await
        }
        Task::Receive => receive(&mut socket, outcome).await,
    }
}

async fn send<S: Write>(socket: &mut S, len: usize) -> Result<(), S::Error> {
    let bytes: Vec<u8> = (0..len).map(pattern).collect();
    socket.write_all(&bytes).await
}

async fn receive<S: Read>(socket: &mut S, outcome: &Outcome) -> Result<(), S::Error> {
    let (mut bytes, mut place) = ([0; 512], 0);
    loop {
        let count = socket.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        outcome.all.set(outcome.all.get() + count);
        for byte in &bytes[..count] {
            let is_right = *byte == pattern(place) && outcome.read.get() == place;
            place += 1;
            outcome.read.set(outcome.read.get() + usize::from(is_right));
        }
    }
}

/// Bytes of each of a connection's two buffers; 4 KiB are those of embassy-net's examples.
pub(crate) const BUFFERS: [usize; 3] = [4096, 6144, 8192];

pub(crate) const DEVICE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1);
const GATEWAY: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0xff);
