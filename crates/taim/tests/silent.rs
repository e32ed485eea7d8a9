//! Flows that are silent for most of their turn: admission keeps no others out for them.
//!
//! Purpose: a mesh in which each acknowledgment is answered after a fixed time, without an air that
//! could be shared wrongly. What the streams get then follows from the order alone in which the
//! router lets flows in. Left out: losses, and real radios, which the lab has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::tcp::{self, Flags};
use motet_taim::{Config, Decision, Direction, Packet, PacketId, Policy, Router};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// How a mote sends: always a segment at a time, and the next behind its acknowledgment.
#[derive(Clone, Copy, Debug)]
enum Mote {
    /// 400 bytes, which arrive so long after the acknowledgment of those before.
    Streams(Duration),
    /// The readings of so many bytes that it makes each second.
    Reads(usize),
    /// The same, but it fetches acknowledgments each 1.5 s only.
    Sleeps(usize),
}

use Mote::{Reads, Sleeps, Streams};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A mote makes a reading.
    Reading(usize),
    /// A mote learns that all it sent has come.
    Learns(usize),
    /// A segment of so many bytes comes out of the mesh.
    Comes(usize, usize),
    /// The acknowledgment of all that has come arrives at the router.
    Answered(usize),
}

#[derive(Debug)]
struct State {
    mote: Mote,
    /// Bytes that wait at the mote, and those that have come.
    waits: usize,
    came: u32,
    is_outstanding: bool,
    /// Whether its acknowledgment has gone into the mesh, and nothing has come since.
    is_inside: bool,
}

/// A mesh, its router and the hosts beyond.
struct World {
    router: Router,
    now: Instant,
    begun: Instant,
    events: BTreeSet<(Instant, u64, Event)>,
    motes: Vec<State>,
    held: BTreeMap<PacketId, usize>,
    /// Packets and events so far.
    number: u64,
    /// The most streams that were inside at a time in the second half.
    inside_most: usize,
}

impl World {
    fn new(motes: &[Mote]) -> Self {
        let now = Instant::ORIGIN + Duration::from_secs(1_000);
        let state = |mote: &Mote| State {
            mote: *mote,
            waits: 0,
            came: 0,
            is_outstanding: false,
            is_inside: false,
        };
        let mut world = Self {
            router: Router::new(Config {
                policy: Policy::Auto,
                ..Config::default()
            }),
            now,
            begun: now,
            events: BTreeSet::new(),
            motes: motes.iter().map(state).collect(),
            held: BTreeMap::new(),
            number: 0,
            inside_most: 0,
        };
        for (place, mote) in motes.iter().enumerate() {
            // No two motes are in step.
            let first = match mote {
                Streams(_) => Event::Learns(place),
                Reads(_) | Sleeps(_) => Event::Reading(place),
            };
            world.plan(ms(137 * place as u64), first);
        }
        world
    }

    fn plan(&mut self, after: Duration, event: Event) {
        self.number += 1;
        self.events.insert((self.now + after, self.number, event));
    }

    /// Bytes a second of each mote in so many seconds.
    fn run(&mut self, seconds: u64) -> Vec<f64> {
        let end = self.begun + Duration::from_secs(seconds);
        let half = self.begun + Duration::from_secs(seconds / 2);
        while self.now < end {
            let event = self.events.first().map_or(end, |(at, ..)| *at);
            let due = self.router.next_deadline().unwrap_or(end);
            self.now = event.min(due).max(self.now + Duration::from_micros(1));
            self.release();
            while let Some((at, _, event)) = self.events.first().copied()
                && at <= self.now
            {
                self.events.pop_first();
                self.handle(event);
                self.release();
            }
            let is_inside = |state: &&State| state.is_inside && matches!(state.mote, Streams(_));
            if self.now > half {
                let inside = self.motes.iter().filter(is_inside).count();
                self.inside_most = self.inside_most.max(inside);
            }
        }
        let rate = |state: &State| f64::from(state.came) / seconds as f64;
        self.motes.iter().map(rate).collect()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Reading(place) => {
                if let Reads(bytes) | Sleeps(bytes) = self.motes[place].mote {
                    self.motes[place].waits += bytes;
                }
                self.plan(Duration::from_secs(1), event);
                self.send(place);
            }
            Event::Learns(place) => {
                self.motes[place].is_outstanding = false;
                self.send(place);
            }
            Event::Comes(place, bytes) => {
                let state = &mut self.motes[place];
                let seq = state.came;
                state.came += bytes as u32;
                state.is_inside = false;
                let decision = self.offer(Direction::Up, place, [seq, 0], bytes);
                assert_eq!(decision, Decision::Pass, "nothing waits out of the mesh");
                self.plan(ms(20), Event::Answered(place));
            }
            Event::Answered(place) => {
                let ack = self.motes[place].came;
                if self.offer(Direction::Down, place, [0, ack], 0) == Decision::Pass {
                    self.enter(place);
                }
            }
        }
    }

    /// Sends what waits at a mote, if all before is acknowledged.
    fn send(&mut self, place: usize) {
        let state = &mut self.motes[place];
        let (after, bytes) = match state.mote {
            Streams(takes) => (takes, 400),
            Reads(_) | Sleeps(_) => (ms(50), state.waits.min(400)),
        };
        if bytes > 0 && !state.is_outstanding {
            state.waits = state.waits.saturating_sub(bytes);
            state.is_outstanding = true;
            self.plan(after, Event::Comes(place, bytes));
        }
    }

    /// The acknowledgment of a mote goes into the mesh.
    fn enter(&mut self, place: usize) {
        self.motes[place].is_inside = true;
        let fetches = Duration::from_millis(1_500).as_micros();
        let since = self.now.since(self.begun).as_micros() + 217_000 * place as u64;
        let after = match self.motes[place].mote {
            Streams(_) | Reads(_) => 0,
            Sleeps(_) => fetches - since % fetches,
        };
        self.plan(Duration::from_micros(after), Event::Learns(place));
    }

    fn offer(&mut self, direction: Direction, place: usize, seq: [u32; 2], len: usize) -> Decision {
        self.number += 1;
        let id = PacketId(self.number);
        let headers = segment(direction, place as u16, seq, len as u16);
        let packet = Packet {
            id,
            direction,
            headers: &headers,
            len: headers.len() + len,
        };
        let decision = self.router.on_packet(&packet, self.now);
        if decision == Decision::Hold {
            self.held.insert(id, place);
        }
        decision
    }

    /// Takes what the router lets go.
    fn release(&mut self) {
        while let Some(id) = self.router.poll(self.now) {
            let place = self.held.remove(&id).expect("it was held, and comes once");
            self.enter(place);
        }
    }
}

/// The headers of a segment of `len` bytes.
fn segment(direction: Direction, mote: u16, [seq, ack]: [u32; 2], len: u16) -> Vec<u8> {
    let is_up = direction == Direction::Up;
    let addr = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    let ends = [(addr(mote + 1), 1_000), (addr(0), 80)];
    let [(src, src_port), (dst, dst_port)] = if is_up { ends } else { [ends[1], ends[0]] };
    let tcp = tcp::Header {
        src_port,
        dst_port,
        seq,
        ack,
        flags: Flags::ACK,
        window: 1_848,
        ..tcp::Header::default()
    };
    let header_len = tcp.header_len() as u16;
    let ip = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: header_len + len,
        next_header: tcp::NEXT_HEADER,
        hop_limit: 64,
        src,
        dst,
    };
    let mut headers = vec![0; 40 + usize::from(header_len)];
    ip.emit(&mut headers).expect("room");
    tcp.emit(&mut headers[40..]).expect("room");
    headers
}

/// Three streams alone have 1,000 bytes a second each. Six sensors beside them once pinned them to
/// their own rate, and leaves asleep still further: each had the only place until its next reading,
/// or until it fetched its acknowledgment.
#[test]
fn a_flow_that_is_silent_keeps_no_others_out() {
    let streams = [Streams(ms(100)); 3];
    let [alone, sensors, leaves] = [None, Some(Reads(200)), Some(Sleeps(150))].map(|other| {
        let others = other.into_iter().flat_map(|other| [other; 6]);
        let motes: Vec<Mote> = streams.into_iter().chain(others).collect();
        World::new(&motes).run(200)
    });
    for (others, bring) in [(&sensors, 200.0), (&leaves, 150.0)] {
        for (rate, alone) in others.iter().zip(&alone) {
            assert!(*rate > 0.7 * alone, "{others:?}, alone {alone:?}");
        }
        for rate in &others[3..] {
            assert!(*rate > 0.97 * bring, "{others:?}");
        }
    }
}

/// Streams from far away answer late beside one from near by, but they are not silent: they take
/// turns, or all would be inside at a time. All have the same.
#[test]
fn streams_from_far_away_take_turns() {
    let mut motes = vec![Streams(ms(800)); 8];
    motes.push(Streams(ms(200)));
    let mut world = World::new(&motes);
    let rates = world.run(400);
    assert!(world.inside_most <= 2, "{}", world.inside_most);
    let [least, most] =
        [f64::min, f64::max].map(|of| rates[1..].iter().copied().fold(rates[0], of));
    assert!(least > 0.9 * most, "{rates:?}");
}
