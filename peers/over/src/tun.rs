//! Motet above the shim, and behind the shim this machine's kernel, through a TUN in a private
//! namespace, in real time.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddrV6, TcpListener};
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use motet_router::namespace::Namespace;
use motet_router::port::{PacketPort, PortConfig, precise_timers};

use crate::clock::{self, Executor, now_us};
use crate::device::{DEVICE, End, Kind, Task, pattern};
use crate::report::{Report, Row};
use crate::shim::{MTU, Shim};

/// Opens the TUN: this, and the address of this machine behind it.
pub(crate) fn open(namespace: &Namespace) -> Result<(RefCell<PacketPort>, Ipv6Addr)> {
    let config = PortConfig {
        routes: &[(DEVICE, 128)],
        mtu: MTU as u16,
        ..PortConfig::default()
    };
    let port = PacketPort::open(namespace, &config)?;
    precise_timers()?;
    Ok((RefCell::new(port), config.host))
}

/// Both ways, one after the other.
pub(crate) fn run(report: &mut Report, port: &RefCell<PacketPort>, host: Ipv6Addr) -> Result<()> {
    for (check, sends, number) in [
        ("250 KiB to this machine's Linux", true, 4242),
        ("250 KiB from this machine's Linux", false, 4243),
    ] {
        let seconds = transfer(port, (host, number), sends);
        report.add(match seconds {
            Ok(seconds) => {
                let rate = LEN as f64 / 1000.0 / seconds;
                Row::new(check, seconds, "s", true)
                    .by("linux")
                    .note(format!("whole, {rate:.0} kB/s"))
            }
            Err(error) => Row::new(check, None, "s", false)
                .by("linux")
                .note(format!("{error:#}")),
        });
    }
    Ok(())
}

fn transfer(
    port: &RefCell<PacketPort>,
    (host, number): (Ipv6Addr, u16),
    sends: bool,
) -> Result<f64> {
    let kernel = serve(TcpListener::bind((host, number))?, !sends);
    clock::restart(true);
    let mut executor = Executor::default();
    let shim = Shim::default();
    let task = match sends {
        true => Task::Send(LEN),
        false => Task::Receive,
    };
    let remote = SocketAddrV6::new(host, number, 0, 0);
    let (_, outcome) = Kind::Motet.start(&mut executor, &shim, (remote, task), (4096, 1));
    let failed = Rc::new(RefCell::new(None));
    let idle = |most: Option<Duration>| {
        if let Err(error) = exchange(&mut port.borrow_mut(), &shim, most) {
            *failed.borrow_mut() = Some(error);
        }
    };
    let is_over = || outcome.end.get() != End::Open || failed.borrow().is_some();
    let ended = executor.run(LIMIT, is_over, idle);
    let seconds = now_us() as f64 / 1e6;
    if let Some(error) = failed.take() {
        return Err(error);
    }
    if !ended || outcome.end.get() != End::Done {
        bail!("it hangs, or ended by an error");
    }
    let Ok(read) = kernel.join() else {
        bail!("the kernel's end has panicked");
    };
    let read = if sends { read? } else { outcome.read.get() };
    if read != LEN {
        bail!("{read} of {LEN} bytes came");
    }
    Ok(seconds)
}

/// Moves packets both ways, or waits for one.
pub(crate) fn exchange(port: &mut PacketPort, shim: &Shim, most: Option<Duration>) -> Result<()> {
    let mut moved = false;
    while let Some(packet) = shim.pop() {
        // A full wire loses the packet.
        let _ = port.send(&packet);
        moved = true;
    }
    let mut packet = [0; MTU];
    while let Some(len) = port.recv(&mut packet)? {
        shim.push(packet[..len].to_vec());
        moved = true;
    }
    if !moved {
        port.wait(Some(most.unwrap_or(IDLE).min(IDLE)))?;
    }
    Ok(())
}

/// The kernel's end, in a thread of its own: gives how many right bytes it read.
fn serve(listener: TcpListener, writes: bool) -> JoinHandle<Result<usize>> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        if writes {
            let content: Vec<u8> = (0..LEN).map(pattern).collect();
            stream.write_all(&content)?;
            stream.shutdown(Shutdown::Write)?;
        }
        let mut arrived = Vec::new();
        stream
            .read_to_end(&mut arrived)
            .context("the kernel's end cannot read")?;
        let right = arrived.iter().zip(0..);
        Ok(right.take_while(|(b, at)| **b == pattern(*at)).count())
    })
}

/// 250 KiB.
pub(crate) const LEN: usize = 250 * 1024;
const IDLE: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(60);
