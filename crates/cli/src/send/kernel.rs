//! A transfer in real time, against the TCP of this machine's kernel.
//!
//! The main thread runs the air; the kernel's end is a standard blocking socket on a thread
//! of its own. What the kernel's TCP did is read from its counters, which count this
//! transfer alone: the namespace is ours.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time,
};

use motet::time::Instant;
use motet_lab::{Arena, net::plan};
use motet_router::namespace::Namespace;
use sha2::{Digest as _, Sha256};

use super::{
    Direction, OR_VIRTUAL,
    flow::Flow,
    transfer::{
        Follower, Outcome, PORT, SenderFigures, Transfer, check_end, sha256, telemetry_text,
    },
};
use crate::{error::Error, live::Live, output::describe, pacer::Lateness};

/// The longest sleep: how late a signal or the kernel's end may be noticed.
const NAP: time::Duration = time::Duration::from_millis(20);

/// Carries the file, and returns how late the host was.
pub(super) fn carry<'m>(
    transfer: &mut Transfer<'m>,
    namespace: &Namespace,
    arena: &'m Arena,
) -> Result<(Outcome, Lateness), Error> {
    transfer.join()?;
    let live = Live::start(
        namespace,
        &[plan::MESH_PREFIX],
        transfer.chain.world.now(),
        OR_VIRTUAL,
    )?;
    let kernel = match transfer.direction {
        Direction::Up => KernelEnd::receive()?,
        Direction::Down => {
            let to = SocketAddr::from((transfer.chain.mote_addr(), PORT));
            KernelEnd::send(to, Arc::clone(&transfer.content))?
        }
    };
    transfer.start_mote(arena);
    let mut run = Run {
        live,
        kernel,
        kernel_read: None,
        flow: Flow::new(PORT),
        follower: Follower::default(),
    };
    let began = transfer.chain.world.now();
    let finished = run.until_closed(transfer, began)?;
    Ok((run.outcome(transfer, began, finished), run.live.lateness()))
}

/// A transfer between the mote and the kernel.
struct Run {
    live: Live,
    kernel: KernelEnd,
    /// SHA-256 of what the kernel's end has read, and when it read the end, once it has.
    kernel_read: Option<([u8; 32], Instant)>,
    flow: Flow,
    follower: Follower,
}

impl Run {
    /// Runs until the file is through and both ends have closed; returns when the receiver
    /// had read everything.
    fn until_closed(
        &mut self,
        transfer: &mut Transfer<'_>,
        began: Instant,
    ) -> Result<Instant, Error> {
        let mote = transfer.chain.mote();
        loop {
            let flow = &mut self.flow;
            self.live
                .turn(&mut transfer.chain.world, NAP, |packet, now| {
                    flow.on_packet(packet, now);
                })?;
            let now = transfer.chain.world.now();
            let end = transfer.end(mote);
            self.follower.look(&end.telemetry, now);
            transfer.trace(mote, &end.telemetry)?;
            self.listen_to_kernel()?;
            let kernel_finished = self.kernel_read.as_ref().map(|(_, at)| *at);
            let (delivered, finished) = match transfer.direction {
                Direction::Up => (self.kernel.bytes(), kernel_finished),
                Direction::Down => (transfer.received(mote).len() as u64, end.finished),
            };
            if let Some(finished) = finished {
                transfer.interrupt.check()?;
                let (sent, received) = self.segments(transfer);
                let closed = end.closed && kernel_finished.is_some();
                if transfer.is_over(finished, closed, sent.saturating_sub(received)) {
                    return Ok(finished);
                }
            } else {
                check_end("mote", &end, transfer.advice)?;
                transfer.look(delivered)?;
            }
            let direction = transfer.direction;
            transfer.show(began, || match direction {
                Direction::Up => telemetry_text(&end.telemetry),
                Direction::Down => self.kernel_telemetry(),
            });
        }
    }

    fn listen_to_kernel(&mut self) -> Result<(), Error> {
        if let Some(ended) = self.kernel.poll() {
            let reading = ended.map_err(|error| {
                Error::failed(format!(
                    "the kernel's connection failed: {}",
                    describe(&error)
                ))
            })?;
            self.kernel_read = Some((reading.sha256, self.live.at(reading.at)));
        }
        Ok(())
    }

    /// Segments that the sender has sent, and those that the receiver has got.
    fn segments(&self, transfer: &Transfer<'_>) -> (u64, u64) {
        let counters = transfer
            .chain
            .world
            .node(transfer.chain.mote())
            .tcp()
            .counters();
        match transfer.direction {
            Direction::Up => (counters.sent.into(), self.flow.segments()),
            Direction::Down => (self.flow.segments(), counters.received.into()),
        }
    }

    fn outcome(&self, transfer: &Transfer<'_>, began: Instant, finished: Instant) -> Outcome {
        let mote = transfer.chain.mote();
        let (segments_sent, segments_received) = self.segments(transfer);
        let (sha256_received, began, sender) = match transfer.direction {
            Direction::Up => (
                self.kernel_read.map_or([0; 32], |(sha256, _)| sha256),
                began,
                self.follower
                    .figures(transfer.chain.world.node(mote).tcp().counters()),
            ),
            Direction::Down => (
                sha256(transfer.received(mote)),
                self.flow.began().unwrap_or(began),
                SenderFigures {
                    rtt_ms: self.flow.rtt_ms(),
                    ..kernel_figures()
                },
            ),
        };
        let duration = finished.since(began);
        Outcome {
            sha256_received,
            duration,
            segments_sent,
            segments_received,
            sender,
        }
    }

    fn kernel_telemetry(&self) -> String {
        let rtt = self.flow.rtt_ms().unwrap_or(0.0);
        let cwnd = kernel_cwnd(PORT).unwrap_or(0);
        format!("RTT {rtt:.0} ms  cwnd {cwnd} segments")
    }
}

/// The kernel's end of a transfer.
#[derive(Debug)]
struct KernelEnd {
    bytes: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<Reading>>>,
}

/// The bytes read from the kernel's socket until the other end closed.
#[derive(Debug)]
struct Reading {
    sha256: [u8; 32],
    /// When the end was read.
    at: time::Instant,
}

impl KernelEnd {
    /// Listens, and reads one connection to its end.
    fn receive() -> Result<Self, Error> {
        let refused = |error: io::Error| {
            Error::failed(format!(
                "cannot listen at {}: {}",
                plan::HOST,
                describe(&error)
            ))
        };
        // The namespace is ours: the port is free.
        let listener = TcpListener::bind((plan::HOST, PORT)).map_err(refused)?;
        Self::spawn(move |bytes| {
            let (stream, _) = listener.accept()?;
            read_to_end(stream, bytes)
        })
    }

    /// Connects, writes `content`, closes, and waits for the other end's close.
    fn send(to: SocketAddr, content: Arc<[u8]>) -> Result<Self, Error> {
        Self::spawn(move |_| {
            let mut stream = TcpStream::connect(to)?;
            stream.write_all(&content)?;
            stream.shutdown(Shutdown::Write)?;
            // The mote sends no data; its close is what this thread waits for.
            read_to_end(stream, &AtomicU64::new(0))
        })
    }

    fn spawn(
        work: impl FnOnce(&AtomicU64) -> io::Result<Reading> + Send + 'static,
    ) -> Result<Self, Error> {
        let bytes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&bytes);
        let thread = thread::Builder::new()
            .name("kernel end".to_owned())
            .spawn(move || work(&counter))
            .map_err(|error| {
                Error::failed(format!("cannot start a thread: {}", describe(&error)))
            })?;
        Ok(Self {
            bytes,
            thread: Some(thread),
        })
    }

    /// Bytes read from the socket so far.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The outcome of the kernel's end, once it is there; a second call returns nothing.
    fn poll(&mut self) -> Option<io::Result<Reading>> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        Some(
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("its thread panicked"))),
        )
    }
}

fn read_to_end(mut stream: TcpStream, bytes: &AtomicU64) -> io::Result<Reading> {
    let mut hash = Sha256::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            len => {
                hash.update(buffer.get(..len).unwrap_or_default());
                bytes.fetch_add(len as u64, Ordering::Relaxed);
            }
        }
    }
    Ok(Reading {
        sha256: hash.finalize().into(),
        at: time::Instant::now(),
    })
}

/// The counters of the kernel's TCP in this namespace (proc(5), `/proc/net/netstat`).
fn kernel_figures() -> SenderFigures {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (snmp, netstat) = (read("/proc/self/net/snmp"), read("/proc/self/net/netstat"));
    let total = counter(&snmp, "Tcp:", "RetransSegs");
    let extended = |name| counter(&netstat, "TcpExt:", name);
    let mut causes = vec![
        ("fast retransmission", extended("TCPFastRetrans")),
        ("tail loss probe", extended("TCPLossProbes")),
        ("handshake", extended("TCPSynRetrans")),
    ];
    let explained: u64 = causes.iter().map(|(_, count)| count).sum();
    causes.push(("timeout", total.saturating_sub(explained)));
    causes.retain(|(_, count)| *count > 0);
    SenderFigures {
        rtt_ms: None,
        telemetry: None,
        timeouts: extended("TCPTimeouts"),
        retransmissions: causes,
    }
}

/// A counter by its name: the files hold a line of names, then a line of values.
fn counter(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let names = lines.next().unwrap_or_default().split_whitespace();
    let values = lines.next().unwrap_or_default().split_whitespace();
    names
        .zip(values)
        .find(|(this, _)| *this == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

/// The congestion window of the kernel's connection to `port`, segments.
fn kernel_cwnd(port: u16) -> Option<u32> {
    cwnd(&fs::read_to_string("/proc/self/net/tcp6").ok()?, port)
}

/// The 16th column of `/proc/net/tcp6` (`get_tcp6_sock` in `net/ipv6/tcp_ipv6.c`).
fn cwnd(table: &str, port: u16) -> Option<u32> {
    let port = format!(":{port:04X}");
    let row = table.lines().find(|row| {
        row.split_whitespace()
            .nth(2)
            .is_some_and(|to| to.ends_with(&port))
    })?;
    row.split_whitespace().nth(15)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts TCPLossProbes\nTcpExt: 0 3 1\nIpExt: A B\nIpExt: 8 9\n";
        assert_eq!(counter(text, "TcpExt:", "TCPTimeouts"), 3);
        assert_eq!(counter(text, "IpExt:", "B"), 9);
        assert_eq!(counter(text, "TcpExt:", "B"), 0);
        assert_eq!(counter("", "TcpExt:", "B"), 0);
    }

    #[test]
    fn the_window_of_our_connection_is_found() {
        let table = "  sl  local_address remote_address st\n   \
            0: 0100:1F90 0200:0016 01 00000000:00000000 00:00000000 00000000 0 0 1 1 0000 20 4 30 7 -1\n   \
            1: 0100:1F91 0200:1092 01 00000000:00000000 00:00000000 00000000 0 0 2 1 0000 20 4 30 10 -1\n";
        assert_eq!(cwnd(table, 0x1092), Some(10));
        assert_eq!(cwnd(table, 0x9999), None);
    }
}
