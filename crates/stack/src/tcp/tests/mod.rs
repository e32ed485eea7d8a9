//! Tests of the engine by topic, over virtual time.
//!
//! Two tools: [`Script`], one engine against segments written by hand; [`Net`], two engines
//! over a link that delays, loses, duplicates and reorders.

mod arrival;
mod backlog;
mod boundaries;
#[cfg(feature = "sleepy")]
mod expect;
mod getters;
mod handshake;
mod hostile;
mod icmp;
mod leaps;
#[cfg(feature = "linux-acks")]
mod linux_acks;
pub(in crate::tcp) mod loss;
mod memory;
mod readiness;
mod recycling;
mod requirements;
mod snapshot;
mod states;
mod syn_received;
mod tasks;
mod teardown;
mod transfer;
mod units;
mod window;

use core::net::Ipv6Addr;
use std::boxed::Box;
use std::collections::BinaryHeap;
use std::vec;
use std::vec::Vec;

use super::{
    Buffers, Config, HalfOpen, Handle, IncomingSegment, Listener, ListenerHandle, Memory, Offer,
    OutgoingSegment, SegmentDrop, Slot, Tcp,
};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::tcp::{Flags, Header, Options, SackBlock, fill_checksum};

pub(in crate::tcp) const US: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub(in crate::tcp) const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
pub(in crate::tcp) const PORT: u16 = 7;
pub(in crate::tcp) const PEER_PORT: u16 = 40_000;

pub(in crate::tcp) const SYN: Flags = Flags::SYN;
pub(in crate::tcp) const ACK: Flags = Flags::ACK;
pub(in crate::tcp) const FIN: Flags = Flags::FIN;
pub(in crate::tcp) const RST: Flags = Flags::RST;

/// A configuration that lives as long as a test.
pub(in crate::tcp) fn leak(config: Config) -> &'static Config {
    Box::leak(Box::new(config))
}

/// Settings that make numbers in scripts simple: MSS 1000, no timestamps, no delay.
pub(in crate::tcp) const PLAIN: Config = Config {
    rmss: 1000,
    smss: 1000,
    accept_window: 8000,
    ack_every: 1,
    timestamps: false,
    sack: false,
    ecn: false,
    nagle: false,
    ..Config::DEFAULT
};

pub(in crate::tcp) fn buffers(send: usize, window: u16) -> Buffers<'static> {
    Buffers::new(
        Box::leak(vec![0; send].into_boxed_slice()),
        Box::leak(vec![0; super::recv_memory_len(window)].into_boxed_slice()),
    )
}

pub(in crate::tcp) fn engine(connections: usize, half_open: usize, seed: u64) -> Tcp<'static> {
    let memory = Memory {
        connections: Box::leak((0..connections).map(|_| Slot::EMPTY).collect()),
        listeners: Box::leak(vec![Listener::EMPTY; 4].into_boxed_slice()),
        half_open: Box::leak(vec![HalfOpen::EMPTY; half_open].into_boxed_slice()),
    };
    Tcp::new(memory, &mut Rng::from_seed([seed, 0]))
}

/// A segment that comes over a path without bounds.
pub(in crate::tcp) const fn incoming(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    ecn: u8,
    bytes: &[u8],
) -> IncomingSegment<'_> {
    IncomingSegment {
        src,
        dst,
        zone: 0,
        ecn,
        offer: Offer::UNBOUNDED,
        bytes,
    }
}

/// A segment with its parts open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Seg {
    pub(in crate::tcp) header: Header,
    pub(in crate::tcp) payload: Vec<u8>,
    pub(in crate::tcp) ecn: u8,
}

impl Seg {
    pub(in crate::tcp) fn parse(outgoing: &OutgoingSegment, bytes: &[u8]) -> Self {
        assert!(crate::wire::tcp::is_checksum_valid(
            &outgoing.src,
            &outgoing.dst,
            bytes
        ));
        let (header, payload) = Header::parse(bytes).unwrap();
        Self {
            header,
            payload: payload.to_vec(),
            ecn: outgoing.ecn,
        }
    }

    /// With TCP_LOG in the environment, prints the segment: numbers relative to ISNs.
    pub(in crate::tcp) fn log(&self, now_us: u64, from: usize, seq: u32, ack: u32) {
        if std::env::var_os("TCP_LOG").is_none() {
            return;
        }
        let h = &self.header;
        let sack = h.options.sack.as_slice().iter();
        let blocks = sack.map(|b| (b.left.wrapping_sub(ack), b.right.wrapping_sub(ack)));
        std::println!(
            "{now_us:>10} {from} flags {:03x} seq {} ack {} win {} len {} ts {:?} sack {:?}",
            h.flags.bits(),
            h.seq.wrapping_sub(seq),
            h.ack.wrapping_sub(ack),
            h.window,
            self.payload.len(),
            h.options.timestamps,
            blocks.collect::<Vec<_>>(),
        );
    }

    pub(in crate::tcp) fn bytes(&self, src: &Ipv6Addr, dst: &Ipv6Addr) -> Vec<u8> {
        let mut out = vec![0; 60 + self.payload.len()];
        let len = self.header.emit(&mut out).unwrap();
        out.truncate(len);
        out.extend(&self.payload);
        fill_checksum(src, dst, &mut out);
        out
    }
}

/// One engine, and a test that plays its peer with numbers relative to both ISNs.
pub(in crate::tcp) struct Script {
    pub(in crate::tcp) tcp: Tcp<'static>,
    pub(in crate::tcp) handle: Option<Handle>,
    pub(in crate::tcp) listener: Option<ListenerHandle>,
    pub(in crate::tcp) now_us: u64,
    /// Our engine's ISS and the peer's, absolute.
    pub(in crate::tcp) iss: u32,
    pub(in crate::tcp) irs: u32,
    pub(in crate::tcp) local_port: u16,
    pub(in crate::tcp) room: bool,
    /// What the path to the peer offers.
    pub(in crate::tcp) offer: Offer,
    /// TSval that the peer sends, if timestamps are in use.
    pub(in crate::tcp) peer_ts: Option<u32>,
    pub(in crate::tcp) our_ts: u32,
}

/// What the peer says: numbers relative to the ISNs (SYN = 0).
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Say {
    pub(in crate::tcp) flags: Flags,
    pub(in crate::tcp) seq: u32,
    pub(in crate::tcp) ack: u32,
    pub(in crate::tcp) win: u16,
    pub(in crate::tcp) options: Options,
    pub(in crate::tcp) payload: Vec<u8>,
    pub(in crate::tcp) ecn: u8,
}

pub(in crate::tcp) fn say(flags: Flags, seq: u32, ack: u32) -> Say {
    Say {
        flags,
        seq,
        ack,
        win: 8000,
        options: Options::NONE,
        payload: Vec::new(),
        ecn: 0,
    }
}

impl Say {
    pub(in crate::tcp) fn win(mut self, win: u16) -> Self {
        self.win = win;
        self
    }
    pub(in crate::tcp) fn mss(mut self, mss: u16) -> Self {
        self.options.mss = Some(mss);
        self
    }
    pub(in crate::tcp) fn sack_permitted(mut self) -> Self {
        self.options.sack_permitted = true;
        self
    }
    pub(in crate::tcp) fn ts(mut self, value: u32, echo: u32) -> Self {
        self.options.timestamps = Some((value, echo));
        self
    }
    /// Blocks relative to our ISS.
    pub(in crate::tcp) fn sack(mut self, script: &Script, blocks: &[(u32, u32)]) -> Self {
        for (left, right) in blocks {
            let block = SackBlock {
                left: script.iss.wrapping_add(*left),
                right: script.iss.wrapping_add(*right),
            };
            assert!(self.options.sack.push(block));
        }
        self
    }
    pub(in crate::tcp) fn data(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }
    pub(in crate::tcp) fn ce(mut self) -> Self {
        self.ecn = 3;
        self
    }
}

impl Script {
    pub(in crate::tcp) fn new() -> Self {
        Self {
            tcp: engine(3, 2, 1),
            handle: None,
            listener: None,
            now_us: 1_000_000,
            iss: 0,
            irs: 5_000_000,
            local_port: PORT,
            room: true,
            offer: Offer::UNBOUNDED,
            peer_ts: None,
            our_ts: 0,
        }
    }

    /// An established connection, opened by the peer: window 8000 at both ends.
    pub(in crate::tcp) fn accepted(config: Config) -> Self {
        Self::accepted_with(config, say(SYN, 0, 0).mss(1000), 8000, 8000)
    }

    /// A listener to which no SYN was sent yet.
    pub(in crate::tcp) fn listening(config: Config) -> Self {
        let mut s = Self::new();
        s.listener = Some(s.tcp.listen(None, PORT, leak(config)).unwrap());
        s
    }

    /// A handshake that the peer began: its SYN is here, our SYN-ACK sent and taken note of.
    pub(in crate::tcp) fn half_open(config: Config, syn: Say) -> Self {
        let mut s = Self::listening(config);
        s.peer(syn).unwrap();
        let syn_ack = s.sent();
        assert!(syn_ack.header.flags.contains(SYN | ACK));
        s.iss = syn_ack.header.seq;
        s
    }

    pub(in crate::tcp) fn accepted_with(
        config: Config,
        syn: Say,
        send: usize,
        window: u16,
    ) -> Self {
        let mut s = Self::listening(config);
        let listener = s.listener.unwrap();
        let timestamps = syn.options.timestamps;
        s.peer_ts = timestamps.map(|(value, _)| value);
        let window_offered = syn.win;
        s.peer(syn).unwrap();
        let syn_ack = s.sent();
        assert!(syn_ack.header.flags.contains(SYN | ACK));
        s.iss = syn_ack.header.seq;
        let mut ack = say(ACK, 1, 1).win(window_offered);
        if let (Some((value, _)), Some((ours, _))) = (timestamps, syn_ack.header.options.timestamps)
        {
            ack = ack.ts(value, ours);
            s.our_ts = ours;
        } else {
            s.peer_ts = None;
        }
        s.peer(ack).unwrap();
        let handle = s
            .tcp
            .accept(listener, buffers(send, window), s.now())
            .unwrap();
        s.handle = Some(handle);
        s
    }

    /// A connection opened by us, SYN sent and taken note of.
    pub(in crate::tcp) fn connecting(config: Config) -> (Self, Seg) {
        let mut s = Self::new();
        let now = s.now();
        let handle = s
            .tcp
            .connect(
                US,
                (PEER, PEER_PORT),
                buffers(8000, 8000),
                leak(config),
                s.offer,
                now,
            )
            .unwrap();
        s.handle = Some(handle);
        let syn = s.sent();
        s.iss = syn.header.seq;
        s.local_port = syn.header.src_port;
        (s, syn)
    }

    pub(in crate::tcp) fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    pub(in crate::tcp) fn handle(&self) -> Handle {
        self.handle.unwrap()
    }

    pub(in crate::tcp) fn state(&self) -> super::State {
        self.tcp.connection(self.handle()).unwrap().state()
    }

    pub(in crate::tcp) fn connection(&self) -> &super::Connection<'static> {
        self.tcp.connection(self.handle()).unwrap()
    }

    /// Delivers a segment of the peer.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a script reads as it is spoken"
    )]
    pub(in crate::tcp) fn peer(&mut self, say: Say) -> Result<(), SegmentDrop> {
        let bytes = self.peer_bytes(&say);
        self.tcp.on_segment(
            &IncomingSegment {
                offer: self.offer,
                ..incoming(PEER, US, say.ecn, &bytes)
            },
            self.now(),
        )
    }

    pub(in crate::tcp) fn peer_bytes(&mut self, say: &Say) -> Vec<u8> {
        let mut options = say.options;
        if options.timestamps.is_none()
            && let Some(value) = self.peer_ts
        {
            options.timestamps = Some((value, self.our_ts));
        }
        let header = Header {
            src_port: PEER_PORT,
            dst_port: self.local_port,
            seq: self.irs.wrapping_add(say.seq),
            ack: match say.flags.contains(ACK) {
                true => self.iss.wrapping_add(say.ack),
                false => 0,
            },
            flags: say.flags,
            window: say.win,
            urgent: 0,
            options,
        };
        let seg = Seg {
            header,
            payload: say.payload.clone(),
            ecn: say.ecn,
        };
        seg.log(self.now_us, 1, self.irs, self.iss);
        seg.bytes(&PEER, &US)
    }

    /// The next segment our engine sends now, if any.
    pub(in crate::tcp) fn poll(&mut self) -> Option<Seg> {
        let mut out = [0; 10_000];
        let room = self.room;
        let outgoing = self.tcp.poll_segment(self.now(), |_| room, &mut out)?;
        assert_eq!((outgoing.src, outgoing.dst), (US, PEER));
        let seg = Seg::parse(&outgoing, &out[..outgoing.len]);
        seg.log(self.now_us, 0, self.iss, self.irs);
        if let Some((value, _)) = seg.header.options.timestamps {
            self.our_ts = value;
        }
        Some(seg)
    }

    #[track_caller]
    pub(in crate::tcp) fn sent(&mut self) -> Seg {
        self.poll().expect("a segment")
    }

    #[track_caller]
    pub(in crate::tcp) fn silent(&mut self) {
        let sent = self.poll();
        assert_eq!(sent, None, "nothing to send");
    }

    /// Asserts that the next segment is as given, numbers relative; returns it.
    #[track_caller]
    pub(in crate::tcp) fn expect(&mut self, flags: Flags, seq: u32, ack: u32, len: usize) -> Seg {
        let seg = self.sent();
        let got = (
            seg.header.flags.without(Flags::PSH),
            seg.header.seq.wrapping_sub(self.iss),
            match seg.header.flags.contains(ACK) {
                true => seg.header.ack.wrapping_sub(self.irs),
                false => 0,
            },
            seg.payload.len(),
        );
        assert_eq!(got, (flags, seq, ack, len), "flags, seq, ack, len");
        seg
    }

    pub(in crate::tcp) fn send(&mut self, len: usize) {
        let data = pattern(0, len);
        let (handle, now) = (self.handle(), self.now());
        assert_eq!(self.tcp.send(handle, &data, now), Ok(len));
    }

    pub(in crate::tcp) fn recv(&mut self) -> Vec<u8> {
        let mut out = vec![0; 20_000];
        let handle = self.handle();
        match self.tcp.recv(handle, &mut out) {
            Ok(count) => out[..count].to_vec(),
            Err(_) => Vec::new(),
        }
    }

    pub(in crate::tcp) fn shutdown(&mut self) {
        let (handle, now) = (self.handle(), self.now());
        self.tcp.shutdown(handle, now);
    }

    /// Lets time pass; asserts that nothing was to be sent in between.
    #[track_caller]
    pub(in crate::tcp) fn wait_ms(&mut self, ms: u64) {
        let until = self.now_us + ms * 1000;
        while let Some(at) = self.tcp.next_deadline() {
            if at.as_micros() >= until {
                break;
            }
            self.now_us = self.now_us.max(at.as_micros());
            let before = self.tcp.next_deadline();
            self.silent();
            assert_ne!(
                self.tcp.next_deadline(),
                before,
                "a deadline at which nothing happens"
            );
        }
        self.now_us = until;
    }

    /// Lets time pass until something is sent; returns it and how long that took, ms.
    #[track_caller]
    pub(in crate::tcp) fn wait_for_segment(&mut self) -> (Seg, u64) {
        let start = self.now_us;
        for _ in 0..100 {
            if let Some(seg) = self.poll() {
                return (seg, (self.now_us - start) / 1000);
            }
            let at = self.tcp.next_deadline().expect("a deadline");
            assert!(
                at.as_micros() > self.now_us,
                "a deadline in the past does nothing"
            );
            self.now_us = at.as_micros();
        }
        panic!("100 deadlines and nothing sent");
    }
}

/// `len` bytes, each of which depends on its position.
pub(in crate::tcp) fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len)
        .map(|i| (i ^ (i >> 8) ^ (i >> 16).wrapping_mul(37)) as u8)
        .collect()
}

/// What a [`Net`] does to segments.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Link {
    pub(in crate::tcp) delay_us: u64,
    /// Chances of loss, duplication and reordering, in 1/1000.
    pub(in crate::tcp) loss: u32,
    pub(in crate::tcp) duplicate: u32,
    pub(in crate::tcp) reorder: u32,
    /// Bytes per second; 0: infinite.
    pub(in crate::tcp) rate: u64,
    pub(in crate::tcp) mark_ce: u32,
}

pub(in crate::tcp) const CLEAN: Link = Link {
    delay_us: 50_000,
    loss: 0,
    duplicate: 0,
    reorder: 0,
    rate: 0,
    mark_ce: 0,
};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: core::cmp::Reverse<(u64, u64)>,
    to: usize,
    ecn: u8,
    bytes: Vec<u8>,
}

/// Two engines, a link, a clock.
pub(in crate::tcp) struct Net {
    pub(in crate::tcp) hosts: [Tcp<'static>; 2],
    pub(in crate::tcp) now_us: u64,
    pub(in crate::tcp) link: Link,
    pub(in crate::tcp) rng: Rng,
    queue: BinaryHeap<Arrival>,
    busy_until: [u64; 2],
    serial: u64,
    pub(in crate::tcp) segments: [u64; 2],
    pub(in crate::tcp) lost: u64,
    /// Segments (counted per sender from 0) to lose for certain: (sender, number).
    pub(in crate::tcp) lose: Vec<(usize, u64)>,
    pub(in crate::tcp) log: Vec<(u64, usize, Seg)>,
}

pub(in crate::tcp) const ADDRS: [Ipv6Addr; 2] = [US, PEER];

impl Net {
    pub(in crate::tcp) fn new(link: Link, seed: u64) -> Self {
        Self {
            hosts: [engine(2, 2, seed), engine(2, 2, seed + 1000)],
            now_us: 1_000_000,
            link,
            rng: Rng::from_seed([seed, 77]),
            queue: BinaryHeap::new(),
            busy_until: [0; 2],
            serial: 0,
            segments: [0; 2],
            lost: 0,
            lose: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(in crate::tcp) fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    fn chance(&mut self, in_1000: u32) -> bool {
        in_1000 > 0 && self.rng.below(1000) < in_1000
    }

    /// Moves every pending segment of both engines onto the link.
    pub(in crate::tcp) fn flush(&mut self) {
        let mut out = [0; 2000];
        for from in 0..2 {
            while let Some(sent) = self.hosts[from].poll_segment(self.now(), |_| true, &mut out) {
                let bytes = out[..sent.len].to_vec();
                Seg::parse(&sent, &bytes).log(self.now_us, from, 0, 0);
                self.log
                    .push((self.now_us, from, Seg::parse(&sent, &bytes)));
                let number = self.segments[from];
                self.segments[from] += 1;
                assert!(number < 200_000, "a storm of segments");
                let mut start = self.now_us.max(self.busy_until[from]);
                if let Some(time) = (sent.len as u64 * 1_000_000).checked_div(self.link.rate) {
                    start += time;
                    self.busy_until[from] = start;
                }
                if self.lose.contains(&(from, number)) || self.chance(self.link.loss) {
                    self.lost += 1;
                    continue;
                }
                let mut delay = self.link.delay_us;
                if self.chance(self.link.reorder) {
                    delay += u64::from(self.rng.below(self.link.delay_us as u32));
                }
                let ecn = match sent.ecn != 0 && self.chance(self.link.mark_ce) {
                    true => 3,
                    false => sent.ecn,
                };
                let copies = 1 + u32::from(self.chance(self.link.duplicate));
                for _ in 0..copies {
                    self.serial += 1;
                    self.queue.push(Arrival {
                        at: core::cmp::Reverse((start + delay, self.serial)),
                        to: 1 - from,
                        ecn,
                        bytes: bytes.clone(),
                    });
                }
            }
        }
    }

    /// Goes on to the next event; false when nothing will ever happen.
    pub(in crate::tcp) fn step(&mut self) -> bool {
        self.flush();
        let deadline =
            crate::time::earliest(self.hosts[0].next_deadline(), self.hosts[1].next_deadline());
        let arrival = self.queue.peek().map(|arrival| arrival.at.0.0);
        match (arrival, deadline.map(Instant::as_micros)) {
            (Some(at), deadline) if deadline.is_none_or(|deadline| at <= deadline) => {
                self.now_us = self.now_us.max(at);
                let arrival = self.queue.pop().unwrap();
                let (src, dst) = (ADDRS[1 - arrival.to], ADDRS[arrival.to]);
                let now = self.now();
                let _ = self.hosts[arrival.to]
                    .on_segment(&incoming(src, dst, arrival.ecn, &arrival.bytes), now);
            }
            (_, Some(deadline)) => self.now_us = self.now_us.max(deadline),
            (Some(_), None) => {}
            (None, None) => return false,
        }
        true
    }
}
