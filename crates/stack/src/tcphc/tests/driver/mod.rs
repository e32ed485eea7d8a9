//! Two ends, a path between them that loses, repeats and reorders, and TCP that does what TCP
//! does: every header that comes out is held against the one that went in, bit for bit.
//!
//! Used by the tests here and by `examples/tcphc_attack.rs`, each with its own `crate`.

mod path;
mod peer;
mod talk;

use core::net::Ipv6Addr;
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use crate::random::Rng;
use crate::tcphc::{Config, Context, End, Flow, Mode, Tcphc};
use crate::time::{Duration, Instant};
use crate::wire::tcp::{Flags, Header};

use path::Flight;
use peer::{Peer, Phase, close};

/// One kind of traffic over one kind of path. Probabilities in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) mode: Mode,
    pub(crate) loss: u32,
    /// Overtaking by one or two segments.
    pub(crate) reorder: u32,
    /// Copies that come 5 to `late_by` segments later.
    pub(crate) late: u32,
    pub(crate) late_by: u32,
    pub(crate) mss: u32,
    pub(crate) window: u32,
    pub(crate) timestamps: bool,
    /// How often a reader leaves what came unread, so that the window closes as the
    /// acknowledgment number rises.
    pub(crate) lazy: u32,
    /// How often one who reads leaves a byte, so that windows differ by one.
    pub(crate) leaves: u32,
    /// Reboots, idle hours, far-away segments, SYNs on live connections: per 100,000 steps.
    pub(crate) trouble: u32,
    pub(crate) frames_expire: bool,
    pub(crate) seed: u64,
}

impl Setup {
    /// Ordinary traffic on a perfect path.
    pub(crate) const CALM: Self = Self {
        mode: Mode::Default,
        loss: 0,
        reorder: 0,
        late: 0,
        late_by: 60,
        mss: 48,
        window: 192,
        timestamps: false,
        lazy: 300,
        leaves: 0,
        trouble: 0,
        frames_expire: true,
        seed: 1,
    };
}

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sent: u64,
    pub(crate) exact: u64,
    /// Segments that a decompressor refused.
    pub(crate) dropped: u64,
    /// Silently wrong: payload or FIN at another offset.
    pub(crate) wrong_data: u64,
    /// Silently wrong: a value that this end never sent in this field.
    pub(crate) never_sent: u64,
    /// Silently wrong otherwise: values that were sent, but not in this segment.
    pub(crate) wrong: u64,
    /// Segments by form: full (FH), mostly compressed (MH), compressed (CH), plain TCP; of each
    /// without payload, then with.
    pub(crate) forms: [[u64; 2]; 4],
    /// Bytes of compressed (CH) headers, without payload and with.
    pub(crate) bytes: [u64; 2],
    /// Headers of up to six bytes.
    pub(crate) short: u64,
    /// The most timeouts in a row of one sender, over all connections.
    pub(crate) timeouts: u32,
    pub(crate) connections: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.exact += other.exact;
        self.dropped += other.dropped;
        self.wrong_data += other.wrong_data;
        self.never_sent += other.never_sent;
        self.wrong += other.wrong;
        for (a, b) in self.forms.iter_mut().zip(other.forms) {
            for (a, b) in a.iter_mut().zip(b) {
                *a += b;
            }
        }
        for (a, b) in self.bytes.iter_mut().zip(other.bytes) {
            *a += b;
        }
        self.short += other.short;
        self.timeouts = self.timeouts.max(other.timeouts);
        self.connections += other.connections;
    }

    pub(crate) fn silent(&self) -> u64 {
        self.wrong_data + self.never_sent + self.wrong
    }
}

/// Small, fast, good enough for dice.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    fn chance(&mut self, thousandths: u32) -> bool {
        self.below(1000) < thousandths
    }
}

struct Connection {
    life: u32,
    peers: [Peer; 2],
    restart_at: u64,
}

/// Two ends and the path between them.
pub(crate) struct World {
    setup: Setup,
    dice: Dice,
    now_us: u64,
    boxes: [Tcphc<'static>; 2],
    slots: usize,
    prepare: fn(&mut Tcphc<'static>),
    connections: Vec<Connection>,
    /// The segments on their way to each end.
    path: [VecDeque<Flight>; 2],
    late: Vec<(u32, usize, Flight)>,
    pub(crate) seen: Seen,
}

pub(crate) const MOTE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x200, 0xff, 0xfe00, 1);
pub(crate) const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x200, 0xff, 0xfe00, 2);

pub(crate) fn flow(end: usize) -> Flow {
    let (local, remote) = if end == 0 {
        (MOTE, ROUTER)
    } else {
        (ROUTER, MOTE)
    };
    Flow {
        local,
        remote,
        within_mesh: false,
    }
}

impl World {
    /// `prepare`: applied to each compressor when it is made.
    pub(crate) fn new(setup: Setup, prepare: fn(&mut Tcphc<'static>)) -> Self {
        let mut dice = Dice(setup.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            dice.next();
        }
        let slots = 3;
        let boxes = [0, 1].map(|end| make(end, &setup, slots, 0, dice.next(), prepare));
        let connections = (0..3)
            .map(|at| Connection {
                life: 0,
                peers: [Peer::closed(), Peer::closed()],
                restart_at: at * 1_000_000,
            })
            .collect();
        Self {
            setup,
            dice,
            now_us: 1_000_000,
            boxes,
            slots,
            prepare,
            connections,
            path: [VecDeque::new(), VecDeque::new()],
            late: Vec::new(),
            seen: Seen::default(),
        }
    }

    pub(crate) fn run(&mut self, segments: u64) {
        while self.seen.sent < segments {
            self.step();
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    fn step(&mut self) {
        self.now_us += 200 + u64::from(self.dice.below(8_000));
        if self.setup.trouble != 0 && self.dice.below(100_000) < self.setup.trouble {
            self.trouble();
        }
        let mut at = 0;
        while at < self.late.len() {
            self.late[at].0 -= 1;
            if self.late[at].0 == 0 {
                let (_, end, flight) = self.late.swap_remove(at);
                self.path[end].push_back(flight);
            } else {
                at += 1;
            }
        }
        let end = self.dice.below(2) as usize;
        if !self.path[end].is_empty() && self.dice.chance(600) {
            self.deliver(end);
        } else {
            let connection = self.dice.below(self.connections.len() as u32) as usize;
            self.act(connection, end);
        }
    }

    fn trouble(&mut self) {
        let which = self.dice.below(7);
        let at = self.dice.below(self.connections.len() as u32) as usize;
        match which {
            // The mote starts again, with everything it knew gone.
            0 => {
                self.boxes[0] = self.make(0);
                for connection in &mut self.connections {
                    close(&mut connection.peers[0]);
                }
                // The old life's segments go on, and what they meet must not mistake them.
                for connection in &mut self.connections {
                    connection.restart_at = self.now_us + 3_000_000;
                }
            }
            // The router forgets its contexts; hosts beyond it know nothing of that.
            1 => self.boxes[1] = self.make(1),
            // Nobody says anything for minutes, or longer than contexts live.
            2 => self.now_us += 61_000_000 + u64::from(self.dice.below(100)) * 1_000_000,
            3 | 4 => self.junk(at),
            5 => self.reset(at),
            _ => self.now_us += u64::from(self.dice.below(20_000)) * 1000,
        }
    }

    fn make(&mut self, end: usize) -> Tcphc<'static> {
        let seed = self.dice.next();
        make(
            end,
            &self.setup,
            self.slots,
            self.now_us,
            seed,
            self.prepare,
        )
    }

    /// Something from outside that is not of this connection, but has its ports.
    fn junk(&mut self, at: usize) {
        let peer = &self.connections[at].peers[1];
        if peer.phase == Phase::Closed {
            return;
        }
        let near = self.dice.chance(500);
        let jump = |dice: &mut Dice| match near {
            true => dice.below(80_000).wrapping_sub(40_000),
            false => dice.next() as u32,
        };
        let mut header = Header {
            src_port: peer.ports.0,
            dst_port: peer.ports.1,
            seq: peer.nxt,
            ack: peer.rcv_nxt,
            flags: Flags::ACK,
            window: self.dice.next() as u16,
            ..Header::default()
        };
        match self.dice.below(3) {
            0 => header.flags = Flags::SYN,
            // Not between what its host has got and what passed here: that would be a host
            // that lies about its own connection.
            1 => match jump(&mut self.dice) {
                1..=20_000 => {}
                by => header.ack = header.ack.wrapping_add(by),
            },
            _ => {}
        }
        header.seq = header.seq.wrapping_add(jump(&mut self.dice));
        self.transmit(at, 1, header, 0, true);
    }

    fn reset(&mut self, at: usize) {
        let end = self.dice.below(2) as usize;
        let peer = &self.connections[at].peers[end];
        if peer.phase == Phase::Open {
            let header = Header {
                src_port: peer.ports.0,
                dst_port: peer.ports.1,
                seq: peer.nxt,
                ack: peer.rcv_nxt,
                flags: Flags::RST | Flags::ACK,
                ..Header::default()
            };
            self.transmit(at, end, header, 0, false);
            self.finish(at);
        }
    }
}

fn make(
    end: usize,
    setup: &Setup,
    slots: usize,
    now_us: u64,
    seed: u64,
    prepare: fn(&mut Tcphc<'static>),
) -> Tcphc<'static> {
    let config = Config {
        mode: setup.mode,
        end: if end == 0 { End::Mote } else { End::Router },
        quiet: Duration::ZERO,
        frames_expire: setup.frames_expire,
        ..Config::DEFAULT
    };
    let contexts = Box::leak(vec![Context::EMPTY; slots].into_boxed_slice());
    let mut rng = Rng::from_seed([seed, 7]);
    let mut tcphc = Tcphc::new(contexts, config, Instant::from_micros(now_us), &mut rng);
    prepare(&mut tcphc);
    tcphc
}

/// Kinds of traffic, on a perfect path.
pub(crate) fn traffic() -> Vec<Setup> {
    let mut all = Vec::new();
    for (mss, window) in [(48, 48), (48, 192), (64, 512), (400, 2000)] {
        for timestamps in [false, true] {
            for lazy in [200, 900] {
                let trouble = if lazy == 200 { 20 } else { 200 };
                all.push(Setup {
                    mss,
                    window,
                    timestamps,
                    lazy,
                    trouble,
                    ..Setup::CALM
                });
            }
        }
    }
    all
}
