//! Bytes from a socket of this machine's kernel to a mote's echo service, and back.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, TcpStream, UdpSocket};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

/// One TCP connection over which bytes go and come back.
pub(in crate::interop) struct Echo {
    stream: TcpStream,
    sent: Vec<u8>,
    got: Vec<u8>,
    /// Pieces of what came back, each with its time.
    pieces: Receiver<(Instant, Vec<u8>)>,
    began: Instant,
    /// When the last piece came.
    last: Instant,
    /// When each piece came.
    arrivals: Vec<Instant>,
    patience: Duration,
}

/// How slowly bytes are given to a connection.
#[derive(Clone, Copy)]
pub(in crate::interop) struct Pace {
    /// Bytes at a time.
    pub(in crate::interop) piece: usize,
    pub(in crate::interop) every: Duration,
    /// A pause once half of the bytes are out.
    pub(in crate::interop) half_time: Duration,
}

impl Pace {
    /// All bytes at once.
    const NONE: Self = Self {
        piece: usize::MAX,
        every: Duration::ZERO,
        half_time: Duration::ZERO,
    };
}

/// How a transfer ended.
pub(in crate::interop) struct Outcome {
    /// What came back has the digest of what was sent.
    pub(in crate::interop) is_whole: bool,
    pub(in crate::interop) bytes: usize,
    /// From the first byte out to the last one back.
    pub(in crate::interop) took: Duration,
    arrivals: Vec<Instant>,
}

impl Outcome {
    /// The longest time after `since` in which nothing came; none: the transfer was over by then.
    pub(in crate::interop) fn silence_after(&self, since: Instant) -> Option<Duration> {
        let later = self.arrivals.iter().filter(|at| **at > since);
        let mut last = since;
        let silences = later.map(|at| {
            let silence = *at - last;
            last = *at;
            silence
        });
        silences.max()
    }

    pub(in crate::interop) fn kib(&self) -> f64 {
        self.bytes as f64 / 1_024.0
    }

    /// Bytes in one direction, which as many went the other way meanwhile, kb/s.
    pub(in crate::interop) fn rate(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1_000.0 / self.took.as_secs_f64().max(1e-6)
    }
}

impl Echo {
    /// Opens the connection and sends `kib` KiB.
    pub(in crate::interop) fn start(mote: Ipv6Addr, kib: usize) -> Result<Self> {
        Self::start_slowly(mote, kib, Pace::NONE)
    }

    /// As [`Self::start`], with bytes that become ready little by little.
    pub(in crate::interop) fn start_slowly(mote: Ipv6Addr, kib: usize, pace: Pace) -> Result<Self> {
        let sent = bytes(kib * 1_024);
        let address = (mote, ECHO).into();
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("no connection to {mote}"))?;
        let (mut reader, mut writer) = (stream.try_clone()?, stream.try_clone()?);
        let (sender, pieces) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(len @ 1..) = reader.read(&mut buffer) {
                let piece = buffer.get(..len).unwrap_or_default().to_vec();
                if sender.send((Instant::now(), piece)).is_err() {
                    return;
                }
            }
        });
        let began = Instant::now();
        let out = sent.clone();
        // An error shows as bytes that do not come back.
        thread::spawn(move || write(&mut writer, &out, pace));
        Ok(Self {
            stream,
            sent,
            got: Vec::new(),
            pieces,
            began,
            last: began,
            arrivals: Vec::new(),
            patience: PATIENCE + pace.half_time,
        })
    }

    /// Waits until `part` of the bytes is back, 1 being all.
    pub(in crate::interop) fn await_part(&mut self, part: f64) -> Result<()> {
        let wanted = (self.sent.len() as f64 * part) as usize;
        while self.got.len() < wanted {
            self.take()?;
        }
        Ok(())
    }

    /// How long after `since` the next byte came.
    pub(in crate::interop) fn await_byte_after(&mut self, since: Instant) -> Result<Duration> {
        while self.last <= since {
            self.take()?;
        }
        Ok(self.last - since)
    }

    /// Waits for the rest. A connection that ends or stands still ends the transfer.
    pub(in crate::interop) fn finish(mut self) -> Outcome {
        while self.got.len() < self.sent.len() && self.take().is_ok() {}
        Outcome {
            is_whole: Sha256::digest(&self.got) == Sha256::digest(&self.sent),
            bytes: self.got.len(),
            took: self.last - self.began,
            arrivals: std::mem::take(&mut self.arrivals),
        }
    }

    fn take(&mut self) -> Result<()> {
        let so_far = self.got.len();
        match self.pieces.recv_timeout(self.patience) {
            Ok((at, piece)) => {
                self.arrivals.push(at);
                self.got.extend(piece);
                self.last = at;
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!(
                    "nothing came for {} s after {so_far} B",
                    self.patience.as_secs()
                )
            }
            Err(RecvTimeoutError::Disconnected) => bail!("the connection ended after {so_far} B"),
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // Lets both threads end.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Gives bytes to a connection.
fn write(stream: &mut TcpStream, bytes: &[u8], pace: Pace) -> io::Result<()> {
    let mut written = 0;
    for piece in bytes.chunks(pace.piece) {
        stream.write_all(piece)?;
        let before = written;
        written += piece.len();
        if before < bytes.len() / 2 && written >= bytes.len() / 2 {
            thread::sleep(pace.half_time);
        }
        thread::sleep(pace.every);
    }
    Ok(())
}

/// Waits until a datagram to the mote's echo service comes back.
pub(in crate::interop) fn await_reachable(mote: Ipv6Addr, patience: Duration) -> Result<()> {
    let until = Instant::now() + patience;
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).context("no socket")?;
    socket.set_read_timeout(Some(ASK_AGAIN))?;
    let mut buffer = [0; 64];
    while Instant::now() < until {
        let asked: io::Result<usize> = socket.send_to(b"Are you there?", (mote, ECHO));
        match asked.and_then(|_| socket.recv(&mut buffer)) {
            Ok(_) => return Ok(()),
            // A way that is not known yet is refused at once.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                thread::sleep(ASK_AGAIN);
            }
            Err(_) => {}
        }
    }
    bail!("{mote} does not answer for {} s", patience.as_secs())
}

/// How long a datagram takes to the mote's echo service and back when nothing else is on its way:
/// the middle one of several.
pub(in crate::interop) fn round_trip(mote: Ipv6Addr) -> Result<Duration> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).context("no socket")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = [0; 64];
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        // What the one before has left to do is done.
        thread::sleep(AT_REST);
        let began = Instant::now();
        socket.send_to(b"How far are you?", (mote, ECHO))?;
        socket.recv(&mut buffer)?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(ROUND_TRIPS / 2).copied().unwrap_or_default())
}

const ROUND_TRIPS: usize = 9;
const AT_REST: Duration = Duration::from_millis(200);

/// Bytes that no compression foresees, the same in each run.
fn bytes(len: usize) -> Vec<u8> {
    let blocks = (0..len.div_ceil(32) as u64).flat_map(|n| Sha256::digest(n.to_le_bytes()));
    blocks.take(len).collect()
}

/// The port of RFC 862.
const ECHO: u16 = 7;

/// How often a mote is asked whether it is there.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A connection on which nothing moves for this time has failed, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(120);
