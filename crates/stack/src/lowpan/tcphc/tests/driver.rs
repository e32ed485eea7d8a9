//! Two ends, a path between them that loses, repeats and reorders, and TCP that does what TCP
//! does: every header that comes out is held against the one that went in, bit for bit.
//!
//! Used by the tests here and by `examples/tcphc_attack.rs`, each with its own `crate`.

use core::net::Ipv6Addr;
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use crate::lowpan::tcphc::{Config, Context, End, Flow, Mode, Origin, Tcphc};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::tcp::{self, Flags, Header, SackBlock};
use crate::wire::tcphc;

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
    /// Refused by a decompressor.
    pub(crate) dropped: u64,
    /// Silently wrong: payload or FIN at another offset.
    pub(crate) wrong_data: u64,
    /// Silently wrong: a value that this end never sent in this field.
    pub(crate) never_sent: u64,
    /// Silently wrong otherwise: values that were sent, but not in this segment.
    pub(crate) wrong: u64,
    /// By form: full, mostly compressed, compressed, plain; without payload, with.
    pub(crate) forms: [[u64; 2]; 4],
    /// Bytes of compressed (CH) headers, without payload and with.
    pub(crate) bytes: [u64; 2],
    /// Headers of up to six bytes.
    pub(crate) short: u64,
    /// Most timeouts in a row that a sender needed, on this path.
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

/// A segment on its way.
#[derive(Clone)]
struct Flight {
    connection: usize,
    /// Which life of the connection it belongs to.
    life: u32,
    is_plain: bool,
    sent_at_us: u64,
    bytes: Vec<u8>,
    /// Header as sent, checksum included.
    truth: Vec<u8>,
    /// Not of TCP's own making: for the contexts only.
    is_junk: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Closed,
    Opening,
    Answering,
    Open,
}

/// One end of one connection.
#[derive(Clone)]
struct Peer {
    phase: Phase,
    ports: (u16, u16),
    una: u32,
    nxt: u32,
    rcv_nxt: u32,
    unread: u32,
    window_max: u32,
    edge: u32,
    shift: u32,
    peer_edge: u32,
    peer_shift: u32,
    to_send: u32,
    fin_at: Option<u32>,
    fin_heard: bool,
    out_of_order: Vec<(u32, u32)>,
    due: Option<u64>,
    timeouts: u32,
    ts: Option<Clock>,
    owes_ack: bool,
    /// Headers sent in this life, for what was sent and what never was.
    history: Vec<Header>,
}

#[derive(Clone, Copy)]
struct Clock {
    offset: u32,
    tick_ms: u64,
    recent: u32,
}

/// 8,192 ticks of the fastest timestamp clock here.
const FRAME_AGE_MAX_US: u64 = 8_192_000;

fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Peer {
    fn closed() -> Self {
        Self {
            phase: Phase::Closed,
            ports: (0, 0),
            una: 0,
            nxt: 0,
            rcv_nxt: 0,
            unread: 0,
            window_max: 0,
            edge: 0,
            shift: 0,
            peer_edge: 0,
            peer_shift: 0,
            to_send: 0,
            fin_at: None,
            fin_heard: false,
            out_of_order: Vec::new(),
            due: None,
            timeouts: 0,
            ts: None,
            owes_ack: false,
            history: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.fin_at.is_some_and(|at| before(at, self.una)) && self.fin_heard
    }

    fn window(&mut self) -> u16 {
        let room = self.window_max.saturating_sub(self.unread);
        let kept = self.edge.wrapping_sub(self.rcv_nxt);
        let room = if self.phase == Phase::Open && (kept as i32) > room as i32 {
            kept
        } else {
            room
        };
        let field = (room >> self.shift).min(0xffff);
        let edge = self.rcv_nxt.wrapping_add(field << self.shift);
        if before(self.edge, edge) || self.phase != Phase::Open {
            self.edge = edge;
        }
        field as u16
    }

    fn take(&mut self, seq: u32, len: u32) {
        if before(seq, self.rcv_nxt) && !before(self.rcv_nxt, seq.wrapping_add(len)) {
            return;
        }
        self.out_of_order.push((seq, len));
        self.out_of_order
            .sort_by_key(|(seq, _)| seq.wrapping_sub(self.rcv_nxt) as i32);
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (seq, len) in self.out_of_order.drain(..) {
            match merged.last_mut() {
                Some((s, l)) if !before(s.wrapping_add(*l), seq) => {
                    let end = seq.wrapping_add(len).wrapping_sub(*s);
                    *l = (*l).max(end);
                }
                _ => merged.push((seq, len)),
            }
        }
        if let Some((seq, len)) = merged.first().copied()
            && !before(self.rcv_nxt, seq)
        {
            let new = seq.wrapping_add(len).wrapping_sub(self.rcv_nxt);
            self.rcv_nxt = self.rcv_nxt.wrapping_add(new);
            self.unread += new;
            merged.remove(0);
        }
        self.out_of_order = merged;
    }
}

/// Forgets a life, but for what the next one, and the judge, must know of it.
fn close(peer: &mut Peer) {
    let old = core::mem::replace(peer, Peer::closed());
    peer.ports = old.ports;
    peer.nxt = old.nxt;
    peer.history = old.history;
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
    /// Towards each end.
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

    /// Ends a connection's life at both ends.
    fn finish(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        for peer in &mut connection.peers {
            close(peer);
        }
        connection.restart_at = self.now_us + u64::from(self.dice.below(400)) * 10_000;
    }

    fn start(&mut self, at: usize) {
        let opener = self.dice.below(2) as usize;
        let dice = &mut self.dice;
        let isn = |dice: &mut Dice| match dice.below(4) {
            0 => 0u32.wrapping_sub(dice.below(30_000)),
            1 => (1u32 << 31).wrapping_sub(dice.below(30_000)),
            _ => dice.next() as u32,
        };
        let ports = match self.connections[at].peers[0].ports {
            (0, _) => (10_000 + at as u16, 80),
            ports if dice.chance(500) => ports,
            (port, _) => (port + 3, 80),
        };
        let has_timestamps = self.setup.timestamps;
        let last = self.connections[at].peers.each_ref().map(|peer| peer.nxt);
        let mut peers = [0, 1].map(|end| {
            let mut peer = Peer::closed();
            // As RFC 6528 has it: far from where the life before was.
            let last = last[end];
            peer.una = isn(dice);
            while (peer.una.wrapping_sub(last) as i32).unsigned_abs() < 200_000 {
                peer.una = isn(dice);
            }
            peer.nxt = peer.una;
            peer.ports = if end == 0 { ports } else { (ports.1, ports.0) };
            peer.window_max = if end == 0 {
                self.setup.window
            } else {
                [self.setup.window, 4096, 64_240][dice.below(3) as usize]
            };
            // What fits the contexts' bound of what may be in flight towards a mote.
            peer.shift = if end == 1 && dice.chance(300) { 2 } else { 0 };
            peer.to_send = match dice.below(3) {
                0 => 0,
                1 => dice.below(60) * self.setup.mss,
                _ => dice.below(4_000),
            };
            peer.ts = has_timestamps.then(|| Clock {
                offset: isn(dice),
                tick_ms: [1, 1, 4, 10, 100][dice.below(5) as usize],
                recent: 0,
            });
            peer
        });
        peers[opener].phase = Phase::Opening;
        let connection = &mut self.connections[at];
        connection.peers = peers;
        connection.life += 1;
        self.seen.connections += 1;
        self.send_syn(at, opener);
    }

    fn send_syn(&mut self, at: usize, end: usize) {
        let peer = &mut self.connections[at].peers[end];
        let mut header = Header {
            seq: peer.una,
            flags: Flags::SYN,
            ..Header::default()
        };
        header.options.mss = Some(self.setup.mss as u16);
        header.options.sack_permitted = true;
        header.options.window_scale = Some(peer.shift as u8);
        if peer.phase == Phase::Answering {
            header.flags = Flags::SYN | Flags::ACK;
            header.ack = peer.rcv_nxt;
        }
        header.window = peer.window_max.min(0xffff) as u16;
        peer.edge = peer.rcv_nxt.wrapping_add(u32::from(header.window));
        peer.nxt = peer.una.wrapping_add(1);
        peer.due = Some(self.now_us + 1_500_000);
        self.transmit(at, end, header, 0, false);
    }

    fn act(&mut self, at: usize, end: usize) {
        let phases = self.connections[at].peers.each_ref().map(|peer| peer.phase);
        if phases == [Phase::Closed; 2] {
            if self.now_us >= self.connections[at].restart_at {
                self.start(at);
            }
            return;
        }
        if phases.contains(&Phase::Closed)
            && self.now_us >= self.connections[at].restart_at + 60_000_000
            || self.connections[at].peers.iter().all(Peer::is_done)
        {
            return self.finish(at);
        }
        match phases[end] {
            Phase::Closed => {}
            Phase::Opening | Phase::Answering => {
                if self.connections[at].peers[end]
                    .due
                    .is_some_and(|due| due <= self.now_us)
                {
                    let peer = &mut self.connections[at].peers[end];
                    peer.timeouts += 1;
                    if peer.timeouts > 12 {
                        return self.finish(at);
                    }
                    self.send_syn(at, end);
                }
            }
            Phase::Open => self.act_open(at, end),
        }
    }

    fn act_open(&mut self, at: usize, end: usize) {
        let lazy = self.setup.lazy;
        let (mss, now_us) = (self.setup.mss, self.now_us);
        let peer = &mut self.connections[at].peers[end];
        if peer.due.is_some_and(|due| due <= now_us) {
            peer.timeouts += 1;
            if peer.timeouts > 12 {
                return self.finish(at);
            }
            return self.retransmit(at, end);
        }
        if peer.unread != 0 && !self.dice.chance(lazy) && self.dice.chance(300) {
            peer.unread = if self.dice.chance(600) {
                0
            } else {
                peer.unread / 2
            };
            peer.owes_ack = true;
        }
        let inflight = peer.nxt.wrapping_sub(peer.una);
        let room = (peer.peer_edge.wrapping_sub(peer.nxt) as i32).max(0) as u32;
        let room = room.min((6 * mss).min(16_000).saturating_sub(inflight));
        if peer.fin_at.is_some() {
            if peer.owes_ack {
                self.send_data(at, end, 0, 0);
            }
            return;
        }
        let len = peer.to_send.min(mss);
        if len != 0 && room >= len {
            let len = if self.dice.chance(100) {
                1 + self.dice.below(len)
            } else {
                len
            };
            self.connections[at].peers[end].to_send -= len;
            self.send_data(at, end, 0, len);
        } else if len != 0 && inflight == 0 && self.dice.chance(30) {
            self.probe(at, end);
        } else if self.connections[at].peers[end].owes_ack {
            self.send_data(at, end, 0, 0);
        } else if len == 0 && inflight == 0 && self.dice.chance(20) {
            // Done; or idle, and asking whether the other is still there.
            match self.dice.below(3) {
                0 => self.send_fin(at, end),
                1 => self.probe(at, end),
                _ => self.connections[at].peers[end].to_send += self.dice.below(20) * mss / 4,
            }
        } else if len == 0 && self.dice.chance(10) {
            self.send_fin(at, end);
        }
    }

    /// A window probe or keepalive: a number already acknowledged, or a byte too many.
    fn probe(&mut self, at: usize, end: usize) {
        let peer = &mut self.connections[at].peers[end];
        if peer.to_send != 0 && self.dice.chance(300) {
            peer.to_send -= 1;
            return self.send_data(at, end, 0, 1);
        }
        self.send_data(at, end, 1, 0);
    }

    fn send_fin(&mut self, at: usize, end: usize) {
        let peer = &mut self.connections[at].peers[end];
        if peer.fin_at.is_some() || peer.to_send != 0 {
            return;
        }
        peer.fin_at = Some(peer.nxt);
        self.send_data(at, end, 0, 0);
    }

    fn retransmit(&mut self, at: usize, end: usize) {
        let mss = self.setup.mss;
        let peer = &mut self.connections[at].peers[end];
        let mut inflight = peer.nxt.wrapping_sub(peer.una);
        if inflight == 0 {
            peer.due = None;
            return;
        }
        // What was sent again may go out together with what was not sent yet.
        if inflight < mss && peer.fin_at.is_none() && peer.to_send != 0 && self.dice.chance(300) {
            let more = peer.to_send.min(mss - inflight);
            let room = peer.peer_edge.wrapping_sub(peer.nxt) as i32;
            if room >= more as i32 {
                peer.to_send -= more;
                peer.nxt = peer.nxt.wrapping_add(more);
                inflight += more;
            }
        }
        let data = inflight - u32::from(peer.fin_at.is_some());
        self.send(at, end, peer_una, data.min(mss));
        fn peer_una(peer: &Peer) -> u32 {
            peer.una
        }
    }

    /// Sends `len` bytes at the next number less `back`.
    fn send_data(&mut self, at: usize, end: usize, back: u32, len: u32) {
        match back {
            0 => self.send(at, end, |peer| peer.nxt, len),
            _ => self.send(at, end, |peer| peer.una.wrapping_sub(1), len),
        }
    }

    fn send(&mut self, at: usize, end: usize, seq: fn(&Peer) -> u32, len: u32) {
        let sack = !self.dice.chance(100);
        let peer = &mut self.connections[at].peers[end];
        let seq = match peer.fin_at {
            // Nothing but the FIN is new.
            Some(fin) if seq(peer) == fin.wrapping_add(1) => seq(peer),
            _ => seq(peer),
        };
        let mut header = Header {
            seq,
            ack: peer.rcv_nxt,
            flags: Flags::ACK,
            ..Header::default()
        };
        if len != 0 && seq.wrapping_add(len) == peer.nxt.wrapping_add(len) {
            header.flags = header.flags | Flags::PSH;
        }
        let end_of_data = seq.wrapping_add(len);
        let mut behind = end_of_data;
        if peer.fin_at == Some(end_of_data) {
            header.flags = header.flags | Flags::FIN;
            behind = behind.wrapping_add(1);
        }
        if before(peer.nxt, behind) {
            peer.nxt = behind;
        }
        header.window = peer.window();
        if sack {
            let max = if peer.ts.is_some() { 3 } else { 4 };
            for (seq, len) in peer.out_of_order.iter().take(max) {
                let right = seq.wrapping_add(*len);
                header.options.sack.push(SackBlock { left: *seq, right });
            }
        }
        peer.owes_ack = false;
        if peer.nxt != peer.una {
            let wait = 700_000u64 << peer.timeouts.min(4);
            if behind != seq || peer.due.is_none() {
                peer.due = Some(self.now_us + wait);
            }
        }
        self.transmit(at, end, header, len, false);
    }

    fn transmit(&mut self, at: usize, end: usize, mut header: Header, len: u32, is_junk: bool) {
        let now_us = self.now_us;
        let connection = &mut self.connections[at];
        let life = connection.life;
        let peer = &mut connection.peers[end];
        (header.src_port, header.dst_port) = peer.ports;
        if let Some(clock) = &peer.ts
            && !header.flags.contains(Flags::RST)
        {
            let value = clock
                .offset
                .wrapping_add((now_us / 1000 / clock.tick_ms) as u32);
            let echo = if header.flags.contains(Flags::ACK) {
                clock.recent
            } else {
                0
            };
            header.options.timestamps = Some((value, echo));
        }
        if !is_junk {
            peer.history.push(header);
        }
        let mut segment = vec![0; header.header_len() + len as usize];
        let header_len = header.emit(&mut segment).unwrap();
        for byte in &mut segment[header_len..] {
            *byte = self.dice.0 as u8;
        }
        if let Some(first) = segment[header_len..].first_mut() {
            *first = self.dice.next() as u8;
        }
        let flow = flow(end);
        tcp::fill_checksum(&flow.local, &flow.remote, &mut segment);
        let truth = segment[..header_len].to_vec();
        let origin = if end == 0 {
            Origin::Own
        } else {
            Origin::Outside
        };
        let mut out = [0; 80];
        let now = self.now();
        let compressed = self.boxes[end].compress(&flow, &segment, origin, now, &mut out);
        self.seen.sent += 1;
        let has_payload = usize::from(len != 0);
        let (is_plain, bytes) = match compressed {
            Ok(done) => {
                let form = match out[0] {
                    0x01 => 0,
                    0x8f => 1,
                    _ => {
                        self.seen.bytes[has_payload] += done.compressed_len as u64;
                        2
                    }
                };
                self.seen.forms[form][has_payload] += 1;
                self.seen.short += u64::from(done.compressed_len <= 6);
                let bytes = [&out[..done.compressed_len], &segment[header_len..]].concat();
                let lengths = tcphc::lengths(&bytes).unwrap();
                assert_eq!(lengths.uncompressed, header_len);
                (false, bytes)
            }
            Err(_) => {
                self.seen.forms[3][has_payload] += 1;
                (true, segment)
            }
        };
        let flight = Flight {
            connection: at,
            life,
            is_plain,
            sent_at_us: now_us,
            bytes,
            truth,
            is_junk,
        };
        self.launch(1 - end, flight);
    }

    fn launch(&mut self, to: usize, flight: Flight) {
        if self.dice.chance(self.setup.late) {
            let delay = 5 + self.dice.below(self.setup.late_by);
            self.late.push((2 * delay, to, flight.clone()));
        }
        if self.dice.chance(self.setup.loss) {
            return;
        }
        let queue = &mut self.path[to];
        let mut at = queue.len();
        if self.dice.chance(self.setup.reorder) {
            at = at.saturating_sub(1 + self.dice.below(2) as usize);
        }
        let twice = self.dice.chance(self.setup.loss / 4);
        if twice {
            queue.insert(at, flight.clone());
        }
        queue.insert(at, flight);
    }

    fn deliver(&mut self, end: usize) {
        let Some(flight) = self.path[end].pop_front() else {
            return;
        };
        // What links do where frames expire: see `Config::frames_expire`.
        if self.setup.frames_expire && self.now_us - flight.sent_at_us > FRAME_AGE_MAX_US {
            return;
        }
        let flow = flow(end);
        let now = self.now();
        let header_len = flight.truth.len();
        if flight.is_plain {
            self.boxes[end].on_plain(&flow, &flight.bytes, now);
        } else {
            let mut out = [0; 60];
            let Ok(done) = self.boxes[end].decompress(&flow, &flight.bytes, now, &mut out) else {
                self.seen.dropped += 1;
                return;
            };
            let restored = &out[..done.uncompressed_len];
            if restored != &flight.truth[..] {
                self.judge(end, &flight, restored);
                return;
            }
        }
        self.seen.exact += 1;
        let connection = &self.connections[flight.connection];
        if flight.is_junk || connection.life != flight.life {
            return;
        }
        let (header, _) = Header::parse(&flight.truth).unwrap();
        let payload = (flight.bytes.len()
            - if flight.is_plain {
                header_len
            } else {
                tcphc::lengths(&flight.bytes).unwrap().compressed
            }) as u32;
        self.on_segment(flight.connection, end, &header, payload);
    }

    /// Silently wrong: how badly?
    fn judge(&mut self, end: usize, flight: &Flight, restored: &[u8]) {
        let (sent, _) = Header::parse(&flight.truth).unwrap();
        let (read, _) = Header::parse(restored).unwrap();
        let lengths = tcphc::lengths(&flight.bytes).unwrap();
        let occupies = flight.bytes.len() > lengths.compressed || sent.flags.contains(Flags::FIN);
        if occupies && sent.seq != read.seq {
            self.seen.wrong_data += 1;
            return;
        }
        let history = &self.connections[flight.connection].peers[1 - end].history;
        if self.connections[flight.connection].life != flight.life {
            self.seen.wrong += 1;
            return;
        }
        let was = |matches: &dyn Fn(&Header) -> bool| history.iter().any(matches);
        let all_sent = (read.seq == sent.seq
            || was(&|h| h.seq == read.seq || read.seq.wrapping_sub(h.seq) <= self.setup.mss + 1))
            && was(&|h| h.ack == read.ack)
            && was(&|h| h.window == read.window)
            && was(&|h| h.options.timestamps.map(|t| t.0) == read.options.timestamps.map(|t| t.0))
            && was(&|h| h.options.timestamps.map(|t| t.1) == read.options.timestamps.map(|t| t.1));
        if all_sent {
            self.seen.wrong += 1;
        } else {
            self.seen.never_sent += 1;
        }
    }

    fn on_segment(&mut self, at: usize, end: usize, header: &Header, len: u32) {
        let calm = self.setup.loss + self.setup.reorder + self.setup.late == 0;
        let peer = &mut self.connections[at].peers[end];
        if header.flags.contains(Flags::RST) {
            return;
        }
        if let (Some(clock), Some((value, _))) = (&mut peer.ts, header.options.timestamps)
            && (header.flags.contains(Flags::SYN)
                || !before(value, clock.recent) && !before(peer.rcv_nxt, header.seq))
        {
            clock.recent = value;
        }
        match peer.phase {
            Phase::Closed if header.flags == Flags::SYN => {
                peer.phase = Phase::Answering;
                peer.rcv_nxt = header.seq.wrapping_add(1);
                peer.peer_shift = u32::from(header.options.window_scale.unwrap_or(0));
                return self.send_syn(at, end);
            }
            Phase::Closed => return,
            Phase::Opening if header.flags == Flags::SYN | Flags::ACK => {
                peer.phase = Phase::Open;
                peer.rcv_nxt = header.seq.wrapping_add(1);
                peer.edge = peer.rcv_nxt.wrapping_add(peer.window_max.min(0xffff));
                peer.peer_shift = u32::from(header.options.window_scale.unwrap_or(0));
                peer.una = header.ack;
                peer.peer_edge = header.ack.wrapping_add(u32::from(header.window));
                peer.due = None;
                peer.timeouts = 0;
                return self.send_data(at, end, 0, 0);
            }
            Phase::Opening => return,
            Phase::Answering if header.flags == Flags::SYN => return self.send_syn(at, end),
            Phase::Answering if header.ack != peer.nxt => return,
            Phase::Answering => {
                peer.phase = Phase::Open;
                peer.una = header.ack;
                peer.due = None;
                peer.timeouts = 0;
                peer.peer_edge = header.ack;
            }
            Phase::Open if header.flags.contains(Flags::SYN) => {
                return self.send_data(at, end, 0, 0);
            }
            Phase::Open => {}
        }
        if before(peer.una, header.ack) && !before(peer.nxt, header.ack) {
            peer.una = header.ack;
            if calm {
                self.seen.timeouts = self.seen.timeouts.max(peer.timeouts);
            }
            peer.timeouts = 0;
            peer.due = (peer.una != peer.nxt).then_some(self.now_us + 700_000);
        }
        let edge = header
            .ack
            .wrapping_add(u32::from(header.window) << peer.peer_shift);
        if before(peer.peer_edge, edge) {
            peer.peer_edge = edge;
        }
        let is_old = before(header.seq, peer.rcv_nxt);
        let fin = header.flags.contains(Flags::FIN);
        if len != 0 {
            let within = !before(peer.edge.wrapping_add(1), header.seq.wrapping_add(len));
            if within && !peer.fin_heard {
                peer.take(header.seq, len);
            }
            peer.owes_ack = true;
        }
        if fin && !peer.fin_heard && header.seq.wrapping_add(len) == peer.rcv_nxt {
            peer.fin_heard = true;
            peer.rcv_nxt = peer.rcv_nxt.wrapping_add(1);
        }
        peer.owes_ack |= fin || is_old;
        let at_once = self.connections[at].peers[end].owes_ack && !self.dice.chance(250);
        if at_once {
            if self.dice.chance(1000 - self.setup.lazy) {
                self.connections[at].peers[end].unread = 0;
            }
            self.send_data(at, end, 0, 0);
        }
        // Duplicate acknowledgments with holes: repeat at once, now and then.
        let peer = &self.connections[at].peers[end];
        if !header.options.sack.is_empty() && peer.una != peer.nxt && self.dice.chance(200) {
            self.retransmit(at, end);
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
