//! A mote of a Thread network: OpenThread by the crate `openthread`, on a simulated radio
//! co-processor, and Motet's sockets above it.
//!
//! The crate's own runner for embassy-net panics where OpenThread refuses a packet, and hands over
//! more than OpenThread's queue holds; [`move_packets`] stands in its place.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use embassy_time::Timer;
use embedded_io_async::{Read as _, Write as _};
use nix::pty::openpty;
use openthread::spinel::{
    SerialPort, SpinelRadio, SpinelRadioResources, UartSpinelTransport, UartTransportResources,
};
use openthread::{OpenThread, OtResources, SimpleRamSettings};
use rand_core::{TryCryptoRng, TryRng};

use crate::clock::{self, Executor, now_us};
use crate::device::{self, End, Outcome, Task};
use crate::shim::{MTU, Shim};

/// What the mote is asked to do.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// OpenThread's simulated radio co-processor
    #[arg(long)]
    rcp: PathBuf,
    /// The mote's number on the simulated air
    #[arg(long)]
    number: u32,
    /// The network's dataset, hexadecimal
    #[arg(long)]
    dataset: String,
    /// The prefix of the addresses that hosts know motes by
    #[arg(long)]
    prefix: Ipv6Addr,
    /// Where it connects to, one after the other: `send`, `receive` or `survive`, address, port
    tasks: Vec<String>,
}

/// Joins the network and does what it is asked to; prints a line for each.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (path, _rcp) = start_radio(&arguments.rcp, arguments.number)?;
    clock::restart(true);
    let mut executor = Executor::default();
    let ot = join(arguments, &path, &mut executor)?;
    let shim = Shim::default();
    executor.spawn(move_packets(ot, shim.clone()));

    let own = Rc::new(Cell::new(None));
    let seen = own.clone();
    let prefix = arguments.prefix;
    executor.spawn(async move {
        loop {
            seen.set(addresses(ot).into_iter().find(|a| shares(a, &prefix)));
            Timer::after_millis(200).await;
        }
    });
    ensure!(
        executor.run_until(PATIENCE, || own.get().is_some()),
        "the mote does not join the network"
    );
    let own_addr = own.get().context("no address")?;
    println!("joined {own_addr}");
    let stack = device::start_motet(&mut executor, &shim, 16384, 1);
    // The owner's addresses, for as long as this runs: those of Thread change.
    executor.spawn(async move {
        loop {
            let mut all = addresses(ot);
            all.retain(|addr| shares(addr, &prefix) || addr.is_unicast_link_local());
            all.truncate(motet::limits::ADDRESSES_MAX);
            let _ = stack.set_addresses(&all);
            Timer::after_secs(1).await;
        }
    });
    for task in arguments.tasks.chunks(3) {
        let [what, addr, port] = task else {
            bail!("a task has three words");
        };
        let remote = SocketAddrV6::new(addr.parse()?, port.parse()?, 0, 0);
        let task = match what.as_str() {
            "send" => Some(Task::Send(LEN)),
            "receive" => Some(Task::Receive),
            "survive" => None,
            other => bail!("`{other}` is no task"),
        };
        let outcome = Rc::new(Outcome::default());
        let result = outcome.clone();
        let begun = now_us();
        let failed_before = ot.ip_counters().tx_failure;
        executor.spawn(async move {
            let end = match task {
                Some(task) => device::motet(stack, remote.into(), task, &result).await,
                None => send_in_trouble(ot, stack, (own_addr, remote), &result).await,
            };
            result.end.set(end.map_or(End::Failed, |()| End::Done));
        });
        executor.run_until(PATIENCE, || outcome.end.get() != End::Open);
        let seconds = (now_us() - begun) as f64 / 1e6;
        let word = match outcome.end.get() {
            End::Done => "done",
            End::Open => "hangs",
            End::Failed => "failed",
        };
        let failed = ot.ip_counters().tx_failure.wrapping_sub(failed_before);
        println!("{word} {what} {} {seconds:.1} {failed}", outcome.all.get());
    }
    Ok(())
}

/// The radio co-processor on a pseudo-terminal: the terminal's path, and the process.
fn start_radio(rcp: &Path, number: u32) -> Result<(PathBuf, Radio)> {
    let pty = openpty(None, None).context("there is no pseudo-terminal")?;
    let path = nix::unistd::ttyname(pty.slave.as_fd()).context("a terminal without a name")?;
    let child = Command::new(rcp)
        .arg(number.to_string())
        .stdin(Stdio::from(pty.master.try_clone()?))
        .stdout(Stdio::from(pty.master))
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", rcp.display()))?;
    Ok((path, Radio(child, pty.slave)))
}

/// Ends with this value.
struct Radio(
    Child,
    #[expect(dead_code, reason = "held open")] std::os::fd::OwnedFd,
);

impl Drop for Radio {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn join(
    arguments: &Arguments,
    path: &Path,
    executor: &mut Executor,
) -> Result<&'static OpenThread<'static>> {
    let settings = Box::leak(Box::new(SimpleRamSettings::new(vec![0; 4096].leak())));
    let resources = Box::leak(Box::new(OtResources::new()));
    let [a, b, c, d] = arguments.number.to_be_bytes();
    let eui64 = [0x02, 0x4d, 0x54, 0x4f, a, b, c, d];
    let refused = |error| anyhow::anyhow!("OpenThread refuses: {error:?}");
    let rng = Box::leak(Box::new(Random(File::open("/dev/urandom")?)));
    let ot = OpenThread::new(eui64, rng, settings, resources).map_err(refused)?;
    let ot: &'static OpenThread<'static> = Box::leak(Box::new(ot));
    ot.set_active_dataset_tlv_hexstr(&arguments.dataset)
        .map_err(refused)?;
    ot.set_link_mode(true, false, false).map_err(refused)?;
    ot.enable_ipv6(true).map_err(refused)?;
    ot.enable_thread(true).map_err(refused)?;
    ot.enable_ipv6_rx(true);
    let serial = SerialPort::open(path, 115_200).context("the radio's line cannot be opened")?;
    let uart = Box::leak(Box::new(UartTransportResources::new()));
    let buffers = Box::leak(Box::new(SpinelRadioResources::<8>::new()));
    let radio = SpinelRadio::new(UartSpinelTransport::new(serial, uart), buffers);
    executor.spawn(async move {
        ot.run(radio).await;
    });
    Ok(ot)
}

/// Moves packets between OpenThread and the driver. The next packet waits until OpenThread has
/// sent the most of those before it, or takes it: this holds the stack above back. After a second
/// it goes, or is dropped, as in a network.
async fn move_packets(ot: &'static OpenThread<'static>, shim: Shim) {
    let inward = async {
        let mut packet = [0; MTU];
        loop {
            if let Ok(len) = ot.rx(&mut packet).await {
                shim.push(packet[..len].to_vec());
            }
        }
    };
    let outward = async {
        loop {
            let packet = shim.next().await;
            let mut waits = 0;
            while is_busy(ot) && waits < WAITS_MAX {
                waits += 1;
                Timer::after_millis(WAIT_MS).await;
            }
            while ot.tx(&packet).is_err() && waits < 2 * WAITS_MAX {
                waits += 1;
                Timer::after_millis(WAIT_MS).await;
            }
            shim.release();
        }
    };
    let _: ((), ()) = embassy_futures::join::join(inward, outward).await;
}

/// Whether OpenThread has still to send the most of a packet, by its message buffers in use.
fn is_busy(ot: &OpenThread<'_>) -> bool {
    let buffers = ot.buffer_info();
    buffers.total.saturating_sub(buffers.free) > IN_USE_MAX
}

/// Sends. In the middle a burst of datagrams fills OpenThread's queue, which drops what is too
/// much, Motet's packets too; then the mote leaves the network for a while.
async fn send_in_trouble(
    ot: &'static OpenThread<'static>,
    stack: motet_embassy::Stack,
    (own, remote): (Ipv6Addr, SocketAddrV6),
    outcome: &Outcome,
) -> Result<(), motet_embassy::Error> {
    let mut socket = stack.connect(remote.into()).await?;
    let bytes: Vec<u8> = (0..LEN).map(device::pattern).collect();
    let leave = async {
        while outcome.all.get() < LEN / 4 {
            Timer::after_millis(5).await;
        }
        let datagram = datagram(own, *remote.ip());
        for _ in 0..1_000 {
            let _ = ot.tx(&datagram);
        }
        Timer::after_secs(1).await;
        let _ = ot.enable_thread(false);
        Timer::after_secs(5).await;
        let _ = ot.enable_thread(true);
    };
    let send = async {
        for part in bytes.chunks(4096) {
            socket.write_all(part).await?;
            outcome.all.set(outcome.all.get() + part.len());
        }
        socket.flush().await?;
        socket.shutdown();
        while socket.read(&mut [0; 64]).await? > 0 {}
        Ok::<(), motet_embassy::Error>(())
    };
    embassy_futures::join::join(leave, send).await.1
}

/// A datagram of 1,000 bytes to the port that discards (RFC 863), without a checksum.
fn datagram(from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0x03, 0xf0, 17, 64];
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend([0, 9, 0, 9, 0x03, 0xf0, 0, 0]);
    packet.resize(40 + 0x3f0, 0);
    packet
}

fn addresses(ot: &OpenThread<'_>) -> Vec<Ipv6Addr> {
    let mut all = Vec::new();
    let _ = ot.ipv6_addrs(|addr| {
        all.extend(addr.map(|(addr, _)| addr));
        Ok(())
    });
    all
}

fn shares(addr: &Ipv6Addr, prefix: &Ipv6Addr) -> bool {
    addr.to_bits() >> 64 == prefix.to_bits() >> 64
}

/// The kernel's randomness.
struct Random(File);

impl TryRng for Random {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        io::Read::read_exact(&mut self.0, out).expect("the kernel's randomness");
        Ok(())
    }
}

impl TryCryptoRng for Random {}

/// Message buffers (128 bytes each) in use with which OpenThread gets another packet. A packet of
/// 1,280 bytes takes 11 of them, and 13 frames of the 100 that its queue holds
/// (`OPENTHREAD_CONFIG_MAX_FRAMES_IN_DIRECT_TX_QUEUE`). So two packets at most wait there.
const IN_USE_MAX: u16 = 12;
const WAIT_MS: u64 = 5;
/// A second.
const WAITS_MAX: u32 = 200;
/// 250 KiB.
const LEN: usize = 250 * 1024;
/// On a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
