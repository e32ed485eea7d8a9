//! Motet against this machine's own kernel: through a TUN in a private namespace, with a pipe
//! between them that loses, doubles and reorders packets, in real time.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use anyhow::{Context, Result, bail, ensure};
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_router::namespace;
use motet_router::port::{PacketPort, PortConfig, precise_timers};

use crate::endpoint::{Endpoint, MSS, PACKET_LEN_MAX, Seat, Stack};
use crate::pipe::{Harm, Pipe};
use crate::transfer::{Receiver, Sender, content};

/// Carries the content both ways under each harm, and prints a line for each. To be called
/// before any thread is started.
///
/// # Errors
/// There is no private network to be had, or a transfer did not bring every byte.
pub fn run() -> Result<()> {
    let namespace = namespace::enter()?;
    let config = PortConfig {
        routes: &[(MOTET, 128)],
        mtu: 1_280,
        ..PortConfig::default()
    };
    let mut port = PacketPort::open(&namespace, &config)?;
    precise_timers()?;
    let content = content(CONTENT_LEN, 1);
    // A port of its own for each: the kernel remembers the last connection for a minute.
    let mut ports = MOTET_PORT..;
    for (name, harm) in HARMS {
        for motet_sends in [true, false] {
            let ends = (
                (MOTET, ports.next().context("no port is left")?),
                (config.host, KERNEL_PORT),
            );
            let took = transfer(&mut port, ends, &content, harm, motet_sends)
                .with_context(|| format!("{name}, motet_sends: {motet_sends}"))?;
            let way = match motet_sends {
                true => "Motet to the kernel",
                false => "the kernel to Motet",
            };
            println!("{way:22}{name:36}{:>8.2} s", took.as_secs_f64());
        }
    }
    Ok(())
}

/// One transfer; gives how long it took.
fn transfer(
    port: &mut PacketPort,
    (local, remote): (Place, Place),
    content: &[u8],
    harm: Harm,
    motet_sends: bool,
) -> Result<StdDuration> {
    let listener = TcpListener::bind(remote)?;
    let start = StdInstant::now();
    let kernel = spawn_kernel(listener, content.to_vec(), motet_sends);
    let arena = Arena::new();
    let seat = Seat {
        local,
        remote,
        opens: true,
        mss: MSS,
        window_segments: 8,
        acks_each: false,
        hop_limit: 64,
        seed: 1,
    };
    let mut link = Link {
        end: Stack::Motet.sit(&seat, Instant::ORIGIN, &arena),
        pipe: Pipe::new(harm, DELAY, 1),
        start,
    };
    let mut sender = Sender::new(
        if motet_sends { content } else { &[] },
        Instant::from_micros(u64::MAX),
    );
    let mut receiver = Receiver::default();
    while !link.end.status().closed {
        ensure!(start.elapsed() < LIMIT, "it hangs");
        link.exchange(port)?;
        let now = link.now();
        if motet_sends {
            sender.step(&mut *link.end, now);
        } else {
            receiver.step(&mut *link.end, now);
        }
        link.speak(now);
        link.wait(port)?;
    }
    let Ok(read) = kernel.join() else {
        bail!("the kernel's end has panicked");
    };
    let arrived = if motet_sends { read? } else { receiver.content };
    ensure!(
        arrived == content,
        "{} bytes arrived, not those sent",
        arrived.len()
    );
    Ok(start.elapsed())
}

/// The kernel's end, in a thread of its own: reads all, or writes all. Gives what it read.
fn spawn_kernel(
    listener: TcpListener,
    content: Vec<u8>,
    reads: bool,
) -> JoinHandle<Result<Vec<u8>>> {
    thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut arrived = Vec::new();
        if !reads {
            stream.write_all(&content)?;
            stream.shutdown(Shutdown::Write)?;
        }
        stream.read_to_end(&mut arrived)?;
        Ok(arrived)
    })
}

/// Motet's end and the pipe to the kernel.
struct Link<'m> {
    end: Box<dyn Endpoint + 'm>,
    pipe: Pipe,
    start: StdInstant,
}

impl Link<'_> {
    fn now(&self) -> Instant {
        // Lossless: nothing here lasts half a million years.
        Instant::from_micros(self.start.elapsed().as_micros() as u64)
    }

    /// Moves what the kernel has sent into the pipe, and what has come through it to its end.
    fn exchange(&mut self, port: &mut PacketPort) -> Result<()> {
        let mut packet = [0; 1_280];
        let now = self.now();
        while let Some(len) = port.recv(&mut packet)? {
            // Of the kernel's own multicast nothing is for a TCP.
            if len <= PACKET_LEN_MAX {
                self.pipe.enter(TO_MOTET, &packet[..len], now);
            }
        }
        while let Some((to, packet)) = self.pipe.take(now) {
            if to == TO_MOTET {
                self.end.on_packet(&packet, now);
                self.speak(now);
            } else {
                // A full wire loses the packet, like the pipe.
                let _ = port.send(&packet);
            }
        }
        Ok(())
    }

    /// Motet's packets enter the pipe.
    fn speak(&mut self, now: Instant) {
        while let Some(packet) = self.end.poll_packet(now) {
            self.pipe.enter(TO_KERNEL, packet, now);
        }
    }

    /// Waits for the kernel, the pipe or a timer.
    fn wait(&mut self, port: &PacketPort) -> Result<()> {
        let now = self.now();
        let deadlines = [self.pipe.next_arrival(), self.end.next_deadline(now)];
        let due = deadlines.into_iter().flatten().min();
        let left = due.map_or(IDLE, |due| due.since(now));
        let left = StdDuration::from_micros(left.as_micros().clamp(1, IDLE.as_micros()));
        port.wait(Some(left))?;
        Ok(())
    }
}

/// An address and a port.
type Place = (Ipv6Addr, u16);

/// What the pipe does.
const HARMS: [(&str, Harm); 5] = [
    ("nothing", harm(0.0, 0.0, 0.0)),
    ("5 % lost", harm(0.05, 0.0, 0.0)),
    ("5 % doubled", harm(0.0, 0.05, 0.0)),
    ("20 % reordered", harm(0.0, 0.0, 0.2)),
    ("all of these at once", harm(0.05, 0.05, 0.2)),
];

const fn harm(loss: f64, duplication: f64, reordering: f64) -> Harm {
    Harm {
        loss,
        duplication,
        reordering,
    }
}

const MOTET: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 1);
const MOTET_PORT: u16 = 49_152;
const KERNEL_PORT: u16 = 4_242;
const TO_MOTET: usize = 0;
const TO_KERNEL: usize = 1;
const CONTENT_LEN: usize = 60_000;
/// One way.
const DELAY: Duration = Duration::from_millis(5);
/// The longest sleep: the applications are looked at then.
const IDLE: Duration = Duration::from_millis(20);
/// A transfer that takes longer hangs.
const LIMIT: StdDuration = StdDuration::from_secs(60);
