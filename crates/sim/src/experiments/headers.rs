//! TCP headers through compressor and decompressor, each held against the one that was sent.
//!
//! Purpose: two ends of this stack's TCP, with a compressor each, and between them a path that
//! loses and reorders packets and carries one at a time. How long headers are, and whether
//! they come out as they went in.
//! Place: the TCPHC paper's header sizes. Left out: frames, and what headers cost there.

use std::collections::BTreeMap;

use motet::node::{Action, Event, Node};
use motet::random::Rng;
use motet::tcphc::{self, Flow as Ends, Mode, Origin, Tcphc};
use motet::time::{Duration, Instant, earliest};
use motet::wire::ipv6::{HEADER_LEN, Header};
use motet::wire::tcp;

use super::header_tally::HeaderTally;
use super::run::{Failure, PORT, Run};
use super::setup::Setup;
use super::traffic::Traffic;
use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::net::network::{HOST_WIRED, wired_node};
use crate::net::plan;
use crate::streams::{Purpose, happens, stream};

/// The segments that are sent, and the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Bytes from one end to the other.
    pub bytes: u64,
    /// Packets lost, of a thousand.
    pub loss: u16,
    /// Packets that the two behind them overtake, of a thousand.
    pub reordering: u16,
}

/// Sends all of it with the TCP and the mode of the setting.
impl Traffic for Headers {
    fn run(&self, setup: &Setup, seed: u64, _seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let content = Content::made([seed, 0], self.bytes);
        let options = setup.network(seed)?.nodes.remove(0);
        let mut path = Path::new(self, options.compression, seed, &arena);
        let window = options.window_segments;
        let ends = |peer| crate::apps::Ends::mote(&arena, peer, window);
        let [sender, receiver] = path.addrs;
        let sending = ends(receiver).with(setup.sender);
        let receiving = ends(sender).with(setup.receiver);
        path.apps = [
            App::Sender(Sender::new(content.clone(), (receiver, PORT), sending)),
            App::Receiver(Receiver::checking(PORT, receiving, content)),
        ];
        path.run();
        let App::Receiver(receiver) = &path.apps[1] else {
            return Err(Failure::NotJoined);
        };
        if let Some(at) = receiver.differs_at {
            return Err(Failure::BytesDiffer { at });
        }
        if receiver.progress.finished.is_none() || receiver.received != self.bytes {
            return Err(Failure::Unfinished {
                sent: self.bytes,
                arrived: receiver.received,
            });
        }
        Ok(Run {
            bytes: self.bytes,
            headers: path.tally,
            ..Run::default()
        })
    }
}

/// Two ends and what is between them.
struct Path<'m> {
    headers: Headers,
    nodes: [Node<'m>; 2],
    addrs: [std::net::Ipv6Addr; 2],
    apps: [App<'m>; 2],
    boxes: [Tcphc<'m>; 2],
    rng: Rng,
    now: Instant,
    /// When each direction can take the next packet.
    free_at: [Instant; 2],
    under_way: BTreeMap<(Instant, u64), Packet>,
    number: u64,
    tally: HeaderTally,
}

/// A packet on the path.
struct Packet {
    to: usize,
    /// The packet before compression.
    original: Vec<u8>,
    /// The compressed packet that stands for its segment; `None`: the segment itself.
    compressed: Option<Vec<u8>>,
}

impl<'m> Path<'m> {
    fn new(headers: &Headers, mode: Option<Mode>, seed: u64, arena: &'m Arena) -> Self {
        let addrs = [plan::mesh_addr(1), plan::mesh_addr(2)];
        let mut stack = [1, 2].map(|end| stream(seed, end, Purpose::Stack));
        let mut make = |end: usize| {
            let config = tcphc::Config {
                mode: mode.unwrap_or_default(),
                quiet: Duration::ZERO,
                ..tcphc::Config::default()
            };
            let contexts = arena.alloc_slice_fill_with(1, |_| tcphc::Context::EMPTY);
            Tcphc::new(contexts, config, Instant::ORIGIN, &mut stack[end])
        };
        let boxes = [make(0), make(1)];
        let [first, second] = stack;
        Self {
            headers: *headers,
            nodes: [
                wired_node(addrs[0], [1, 4, 4], first, arena),
                wired_node(addrs[1], [1, 4, 4], second, arena),
            ],
            addrs,
            apps: [App::None, App::None],
            boxes,
            rng: stream(seed, 0, Purpose::PacketLoss),
            now: Instant::ORIGIN,
            free_at: [Instant::ORIGIN; 2],
            under_way: BTreeMap::new(),
            number: 0,
            tally: HeaderTally::default(),
        }
    }

    /// Until both ends have closed, or nothing more happens.
    fn run(&mut self) {
        let is_over = |app: &App<'_>| app.progress().is_some_and(|progress| progress.closed);
        while !self.apps.iter().all(is_over) && self.now < Instant::ORIGIN + LIMIT {
            self.drive(0);
            self.drive(1);
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let timers = earliest(self.nodes[0].next_deadline(), self.nodes[1].next_deadline());
            let Some(next) = earliest(arrival, timers) else {
                return;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= self.now
            {
                let packet = entry.remove();
                self.arrive(&packet);
            }
        }
    }

    /// Lets the application act, and takes what the node sends. The application reads first,
    /// so that windows stay as they are.
    fn drive(&mut self, end: usize) {
        let mut buffer = [0; BUFFER_LEN];
        loop {
            let mut acted = self.apps[end].step(&mut self.nodes[end], self.now);
            while let Some((_, action)) = self.nodes[end].poll_action(self.now, &mut buffer) {
                acted = true;
                if let Action::Cable { len } = action {
                    self.depart(end, &buffer[..len]);
                }
            }
            if !acted {
                return;
            }
        }
    }

    fn depart(&mut self, from: usize, packet: &[u8]) {
        let Some(segment) = segment_of(packet) else {
            return;
        };
        let mut out = [0; BUFFER_LEN];
        let ends = self.ends(from);
        let made = self.boxes[from].compress(&ends, segment, Origin::Own, self.now, &mut out);
        let compressed = made.ok().map(|made| {
            *self.tally.lens.entry(made.compressed_len).or_default() += 1;
            [
                &out[..made.compressed_len],
                &segment[made.uncompressed_len..],
            ]
            .concat()
        });
        if compressed.is_none() {
            let len = tcp::header_len(segment).unwrap_or_default();
            *self.tally.lens.entry(len).or_default() += 1;
        }
        self.free_at[from] = self.free_at[from].max(self.now) + SPACING;
        let mut arrival = self.free_at[from] + DELAY;
        let chance = |of_thousand: u16| f64::from(of_thousand) / 1_000.0;
        if happens(&mut self.rng, chance(self.headers.reordering)) {
            arrival += SETBACK;
        }
        if !happens(&mut self.rng, chance(self.headers.loss)) {
            let packet = Packet {
                to: 1 - from,
                original: packet.to_vec(),
                compressed,
            };
            self.under_way.insert((arrival, self.number), packet);
            self.number += 1;
        }
    }

    fn arrive(&mut self, packet: &Packet) {
        let Packet { to, original, .. } = packet;
        let ends = self.ends(*to);
        let (head, segment) = original.split_at(HEADER_LEN);
        let mut restored = head.to_vec();
        match &packet.compressed {
            None => {
                self.boxes[*to].on_plain(&ends, segment, self.now);
                restored.extend_from_slice(segment);
            }
            Some(bytes) => {
                let mut header = [0; tcp::HEADER_LEN_MAX];
                let made = self.boxes[*to].decompress(&ends, bytes, self.now, &mut header);
                let Ok(made) = made else {
                    self.tally.refused += 1;
                    return;
                };
                restored.extend_from_slice(&header[..made.uncompressed_len]);
                restored.extend_from_slice(&bytes[made.compressed_len..]);
            }
        }
        let count = match restored == *original {
            true => &mut self.tally.exact,
            false => &mut self.tally.wrong,
        };
        *count += 1;
        self.nodes[*to].on_event(HOST_WIRED, Event::Cable(&restored), self.now);
    }

    fn ends(&self, local: usize) -> Ends {
        Ends {
            local: self.addrs[local],
            remote: self.addrs[1 - local],
            within_mesh: true,
        }
    }
}

/// The TCP segment of a packet without extension headers.
fn segment_of(packet: &[u8]) -> Option<&[u8]> {
    let (header, payload) = Header::parse(packet).ok()?;
    (header.next_header == tcp::NEXT_HEADER).then_some(payload)
}

/// A packet's time on the path: five frames of one hop.
const SPACING: Duration = Duration::from_millis(40);

/// The delay of a packet that lets the next two overtake it.
const SETBACK: Duration = Duration::from_millis(100);

/// And its way: three hops.
const DELAY: Duration = Duration::from_millis(120);

/// Far longer than any of it takes.
const LIMIT: Duration = Duration::from_secs(1_000_000);

/// The wire's MTU.
const BUFFER_LEN: usize = 1_500;
