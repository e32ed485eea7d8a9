//! Two nodes on the two ends of a pseudo-terminal: 100 kB each way over a line with noise.
//!
//! The bytes go through the kernel. The clock is virtual: it stands while bytes are under way, so
//! that a run is the same on a machine of any speed. Noise, and how bytes are cut into events, come
//! from a seed.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::Ipv6Addr;
use std::os::fd::AsFd as _;

use motet::ip::{self, Address, InterfaceId, Ip, Neighbour, NextHop};
use motet::link::{Action, Event, Link, Serial, SerialCounters, SerialMemory};
use motet::node::{ACTION_LEN_MAX, Node};
use motet::random::Rng;
use motet::tcp::{
    Buffers, Config, Connection, HalfOpen, Handle, Listener, ListenerHandle, Memory, Slot, Tcp,
};
use motet::time::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

/// What each side sends, bytes.
const TRANSFER: usize = 100_000;

#[test]
fn a_hundred_kilobytes_pass_each_way_over_a_noisy_line() {
    for seed in 1..=3 {
        let report = Pair::new(seed, true).run();
        println!("seed {seed}: {report:?}");
        for end in &report.ends {
            // The noise was there, of each kind.
            assert!(end.line.bad_escapes > 0, "{report:?}");
            assert!(end.line.overlong > 0, "{report:?}");
            assert!(end.malformed > 10, "{report:?}");
        }
        assert!(report.cut_frames > 10, "{report:?}");
        assert!(report.several > 10, "{report:?}");
        assert!(report.in_pieces > 10, "{report:?}");
    }
}

#[test]
fn a_quiet_line_loses_nothing() {
    let report = Pair::new(4, false).run();
    for end in &report.ends {
        assert_eq!((end.line.bad_escapes, end.line.overlong), (0, 0));
        assert_eq!(end.malformed, 0, "{report:?}");
    }
}

/// The kernel cuts bytes as it likes; nothing of a run depends on it.
#[test]
fn the_same_seed_takes_the_same_time_and_bytes() {
    assert_eq!(Pair::new(5, true).run(), Pair::new(5, true).run());
}

/// What a run came to.
#[derive(PartialEq, Eq, Debug)]
struct Report {
    ends: [End; 2],
    /// Bytes on the line, noise included.
    carried: usize,
    over_at: Instant,
    /// Frames whose second half never came.
    cut_frames: u32,
    /// Events that held the ends of several frames.
    several: u32,
    /// Actions that ended before their packet did.
    in_pieces: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct End {
    line: SerialCounters,
    malformed: u32,
}

/// Two nodes, each with its end of the line.
struct Pair {
    sides: [Side; 2],
    noise: Option<Noise>,
    now: Instant,
    carried: usize,
    cut_frames: u32,
    several: u32,
    in_pieces: u32,
    /// How bytes from the line are cut into events.
    cuts: Rng,
}

impl Pair {
    fn new(seed: u64, is_noisy: bool) -> Self {
        let line = openpty(None, None).expect("a pseudo-terminal");
        let mut settings = tcgetattr(&line.slave).expect("a terminal");
        cfmakeraw(&mut settings);
        tcsetattr(&line.slave, SetArg::TCSANOW, &settings).expect("raw mode");
        let mut rng = Rng::from_seed([seed, 0]);
        let sides = [
            Side::new(File::from(line.master), 1, &mut rng),
            Side::new(File::from(line.slave), 2, &mut rng),
        ];
        Self {
            sides,
            noise: is_noisy.then(|| Noise::new(seed)),
            now: Instant::ORIGIN,
            carried: 0,
            cut_frames: 0,
            several: 0,
            in_pieces: 0,
            cuts: Rng::from_seed([seed, 2]),
        }
    }

    /// Runs until both sides have all that the other one sent.
    fn run(mut self) -> Report {
        self.sides[0].connect(self.now);
        while !self.is_done() {
            assert!(self.now < END_OF_PATIENCE, "the transfer hangs");
            if !self.turn(0) & !self.turn(1) {
                let deadlines = self.sides.iter().map(|side| side.node.next_deadline());
                self.now = deadlines
                    .flatten()
                    .min()
                    .expect("a node that waits for nothing");
            }
        }
        let [first, second] = &self.sides;
        assert!(
            second.received == first.to_send,
            "other bytes than were sent"
        );
        assert!(
            first.received == second.to_send,
            "other bytes than were sent"
        );
        Report {
            ends: self.sides.each_ref().map(Side::end),
            carried: self.carried,
            over_at: self.now,
            cut_frames: self.cut_frames,
            several: self.several,
            in_pieces: self.in_pieces,
        }
    }

    fn is_done(&self) -> bool {
        let has_all = |side: &Side| side.received.len() >= TRANSFER;
        self.sides.iter().all(has_all)
    }

    /// Carries out whatever one side wants done now; returns whether that was anything.
    fn turn(&mut self, from: usize) -> bool {
        let mut out = [0; ACTION_LEN_MAX];
        let mut bytes = Vec::new();
        let is_busy = self.sides[from].work(self.now);
        while let Some((_, action)) = self.sides[from].node.poll_action(self.now, &mut out) {
            let Action::Serial { len } = action else {
                panic!("no action for a line: {action:?}");
            };
            assert!(len <= out.len());
            self.in_pieces += u32::from(out[len - 1] != FRAME_END);
            match &mut self.noise {
                Some(noise) => noise.upon(&out[..len], &mut bytes, &mut self.cut_frames),
                None => bytes.extend_from_slice(&out[..len]),
            }
        }
        self.carry(from, &bytes);
        is_busy || !bytes.is_empty()
    }

    /// Puts bytes on the line at one end, and hands all that arrives to the node at the other.
    fn carry(&mut self, from: usize, bytes: &[u8]) {
        self.carried += bytes.len();
        // 115,200 bit/s, ten bits for a byte.
        self.now += Duration::from_micros(bytes.len() as u64 * 87);
        // A terminal holds 4,095 bytes that nobody has read.
        for piece in bytes.chunks(3000) {
            self.sides[from]
                .tty
                .write_all(piece)
                .expect("the line takes them");
            let to = &mut self.sides[1 - from];
            let mut read = vec![0; piece.len()];
            to.read(&mut read);
            assert!(read == piece, "the terminal changes bytes");
            // As one event, or cut by chance.
            let max = [1, 7, 200, 3000][self.cuts.below(4) as usize];
            let mut rest = &read[..];
            while !rest.is_empty() {
                let len = rest.len().min(1 + self.cuts.below(max) as usize);
                let (event, later) = rest.split_at(len);
                let is_end = |pair: &&[u8]| pair[0] != FRAME_END && pair[1] == FRAME_END;
                let ends = event.windows(2).filter(is_end);
                self.several += u32::from(ends.count() > 1);
                to.node.on_event(LINE, Event::Serial(event), self.now);
                rest = later;
            }
        }
    }
}

struct Side {
    node: Node<'static>,
    tty: File,
    listener: ListenerHandle,
    connection: Option<Handle>,
    to_send: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

impl Side {
    /// The node with the address `fd00::OURS`.
    fn new(tty: File, ours: u16, rng: &mut Rng) -> Self {
        let line = Serial::new(SerialMemory {
            inward: lasting(0, MTU),
            outward: lasting(0, MTU),
            queue: lasting(0, 2 * MTU),
        });
        let links = Box::leak(Box::new([Link::Serial(line)]));
        let memory = Memory {
            connections: Box::leak(Box::new([Slot::EMPTY])),
            listeners: Box::leak(Box::new([Listener::EMPTY])),
            half_open: Box::leak(Box::new([HalfOpen::EMPTY])),
        };
        let mut tcp = Tcp::new(memory, rng);
        let listener = tcp
            .listen(None, PORT, &Config::DEFAULT)
            .expect("a free place");
        let mut ip = Ip::new(ip::Config::default(), &mut []);
        ip.add_address(Address {
            addr: address(ours),
            interface: LINE,
        });
        ip.set_default_route(Some(NextHop {
            interface: LINE,
            neighbour: Neighbour::Only,
        }));
        // Every third byte is one that the framing doubles.
        let special = [0xc0, 0xdb, 0xdc, 0xdd];
        let byte = |at: usize| match at % 3 {
            0 => special[rng.below(4) as usize],
            _ => rng.below(256) as u8,
        };
        let to_send = (0..TRANSFER).map(byte).collect();
        Self {
            node: Node::new(links, ip, tcp, rng.derive(), Instant::ORIGIN),
            tty,
            listener,
            connection: None,
            to_send,
            sent: 0,
            received: Vec::new(),
        }
    }

    fn connect(&mut self, now: Instant) {
        let handle = self
            .node
            .connect((address(2), PORT), buffers(), &Config::DEFAULT, now);
        self.connection = Some(handle.expect("a way there"));
    }

    /// What the application does: sends what fits, takes what has come. Returns whether there was
    /// any of it.
    fn work(&mut self, now: Instant) -> bool {
        let tcp = self.node.tcp_mut();
        if self.connection.is_none() && tcp.can_accept(self.listener) {
            self.connection = tcp.accept(self.listener, buffers(), now).ok();
        }
        let Some(handle) = self.connection else {
            return false;
        };
        let error = tcp.connection(handle).and_then(Connection::error);
        assert_eq!(error, None, "the connection failed");
        let sent = tcp
            .send(handle, &self.to_send[self.sent..], now)
            .unwrap_or(0);
        self.sent += sent;
        let mut out = [0; 4096];
        let count = tcp.recv(handle, &mut out).unwrap_or(0);
        self.received.extend_from_slice(&out[..count]);
        sent + count > 0
    }

    /// Fills `out` with what comes over the line, and waits for it. Bytes that never come are a
    /// failure of this machine or of the test.
    fn read(&mut self, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let mut ready = [PollFd::new(self.tty.as_fd(), PollFlags::POLLIN)];
            let count = poll(&mut ready, PollTimeout::from(30_000_u16)).expect("poll");
            assert_eq!(count, 1, "the terminal keeps bytes");
            done += self.tty.read(&mut out[done..]).expect("bytes");
        }
    }

    fn end(&self) -> End {
        let Some(Link::Serial(line)) = self.node.link(LINE) else {
            panic!("no line");
        };
        End {
            line: *line.counters(),
            malformed: self.node.ip().counters.dropped(ip::PacketDrop::Malformed),
        }
    }
}

/// What goes wrong on the line, in both directions, by chance from a seed.
struct Noise {
    rng: Rng,
    /// The bytes that were sent last.
    before: Vec<u8>,
}

impl Noise {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::from_seed([seed, 1]),
            before: Vec::new(),
        }
    }

    /// Appends to `line` what becomes of bytes.
    fn upon(&mut self, bytes: &[u8], line: &mut Vec<u8>, cut_frames: &mut u32) {
        match self.rng.below(120) {
            // Garbage between two frames, of which some is longer than any frame.
            0..8 => {
                let len = 1 + self.rng.below(60);
                line.extend((0..len).map(|_| self.rng.below(256) as u8));
            }
            8..10 => line.extend((0..2000).map(|_| self.rng.below(0xc0) as u8)),
            // A half of a frame that was there before, either one.
            10..14 => line.extend_from_slice(&self.before[..self.before.len() / 2]),
            14..18 => line.extend_from_slice(&self.before[self.before.len() / 2..]),
            _ => {}
        }
        let start = line.len();
        line.extend_from_slice(bytes);
        let middle = start + bytes.len() / 2;
        match self.rng.below(80) {
            // The second half is lost.
            0..4 => {
                line.truncate(middle);
                *cut_frames += 1;
            }
            // One bit changes, or an escape has nothing to escape.
            4 => line[middle] ^= 1 << self.rng.below(8),
            5 => line.splice(middle..middle, [0xdb, 0x00]).for_each(drop),
            _ => {}
        }
        self.before = bytes.to_vec();
    }
}

fn lasting<T: Clone>(value: T, count: usize) -> &'static mut [T] {
    Box::leak(vec![value; count].into_boxed_slice())
}

fn buffers() -> Buffers<'static> {
    Buffers::new(lasting(0, 16 * 1024), lasting(0, 16 * 1024))
}

fn address(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n)
}

const LINE: InterfaceId = InterfaceId(0);
const PORT: u16 = 7;
const MTU: usize = 1280;
/// SLIP's END.
const FRAME_END: u8 = 0xc0;
/// Far beyond what the slowest run takes, in virtual time.
const END_OF_PATIENCE: Instant = Instant::from_micros(3_600_000_000);
