//! Two TCP engines and a hostile pipe between them.
//!
//! Purpose: far more of TCP in a second of CPU than a radio carries: every option, numbers about to
//! wrap, floods, reboots, clocks that leap.
//! Place: `mod` gives it a seed; it gives back what was seen, or what went wrong. The engines are
//! the stack's own; the rest of a node is in `lab`.
//! Left out: IPv6 and everything below it.

mod judge;
mod network;
mod open;

use std::net::Ipv6Addr;

use motet::random::Rng;
use motet::tcp::{
    self, Buffers, Config, HalfOpen, Listener, ListenerHandle, Memory, Offer, OutgoingSegment,
    RetransmissionCause, Slot, Tcp,
};
use motet::time::{Duration, Instant};
use motet::wire::tcp::Header;

use super::dice::Dice;
use super::lender::Lender;
use super::monitor::Monitor;
use super::session::{Clock, Sessions};
use super::settings;
use super::trouble::{self, Trouble};
use super::{RunTally, Seen};
use crate::Arena;
use crate::calendar::Calendar;
use crate::net::faults::{FaultTally, Faults};

/// Two engines, what is between them, and what uses them.
#[derive(Debug)]
pub(crate) struct Pipe<'m> {
    arena: &'m Arena,
    seed: u64,
    dice: Dice,
    calendar: Calendar<Event>,
    hosts: [Host<'m>; 2],
    ways: [OneWay; 2],
    sessions: Sessions<'m>,
    monitor: Monitor,
    span: Duration,
    is_quiet: bool,
    buffer: Vec<u8>,
    tally: RunTally,
}

/// One end of the pipe.
#[derive(Debug)]
struct Host<'m> {
    tcp: Tcp<'m>,
    /// How far its clock is ahead of the run's.
    ahead: Duration,
    listener: Option<ListenerHandle>,
    config: &'m Config,
    lender: Lender<'m>,
    /// Connections and half-open ones that it has room for.
    places: [usize; 2],
    /// Lends buffers before a handshake is done.
    lends_early: bool,
    /// The earliest deadline in the calendar.
    planned: Option<Instant>,
    reboots: u64,
    counts: Counts,
}

/// The counters that an engine must have reached since it started.
#[derive(Clone, Debug)]
struct Counts {
    received: u32,
    sent: u32,
    drops: [u32; tcp::SegmentDrop::COUNT],
    again: [u32; RetransmissionCause::COUNT],
}

/// The pipe in one direction.
#[derive(Debug)]
struct OneWay {
    delay: Duration,
    /// Added to the delay, at most.
    jitter: Duration,
    /// Bytes a second; none: as many as come.
    rate: Option<u64>,
    busy_until: Instant,
    faults: Faults,
    /// Nothing gets through before this moment.
    cut_until: Instant,
    /// The chance of a congestion mark where one may be.
    marking: f64,
    tally: FaultTally,
}

#[derive(Debug)]
enum Event {
    /// A deadline of an engine, an application's wish to act, or a pipe that is free again.
    Wake(usize),
    Arrive(Packet),
    Trouble(Trouble),
}

#[derive(Debug)]
struct Packet {
    to: usize,
    src: Ipv6Addr,
    ecn: u8,
    bytes: Box<[u8]>,
    is_corrupted: bool,
}

/// Runs the pipe of a seed for about `span`, then until everything has come to rest.
pub(crate) fn run(seed: u64, span: Duration) -> Seen {
    let arena = Arena::new();
    let mut pipe = Pipe::new(seed, span, &arena);
    let failure = pipe.go().err();
    Seen {
        failure: failure.map(|what| format!("{what}, {:.3} s into the run", pipe.seconds())),
        seconds: pipe.seconds(),
        coverage: pipe.sessions.coverage.clone(),
        sessions: pipe.sessions.tally,
        tally: pipe.result(),
    }
}

impl<'m> Pipe<'m> {
    fn new(seed: u64, span: Duration, arena: &'m Arena) -> Self {
        let mut dice = Dice::new(seed, PURPOSE);
        let hosts = [0, 1].map(|at| Host::draw(at, seed, &mut dice, arena));
        let ways = [0, 1].map(|_| OneWay::draw(&mut dice));
        let mut pipe = Self {
            arena,
            seed,
            calendar: Calendar::new(),
            hosts,
            ways,
            sessions: Sessions::new(seed, arena),
            monitor: Monitor::default(),
            span,
            is_quiet: false,
            buffer: vec![0; SEGMENT_LEN_MAX],
            tally: RunTally::default(),
            dice: dice.derive(),
        };
        let is_aimed = pipe.aim(&mut dice);
        // A connection that a wrap has stopped ends by a timeout, which is a fault where every
        // packet arrives, and both hosts have patience.
        let is_gentle = dice.chance(GENTLE_SHARE) || is_aimed && seed.is_multiple_of(2);
        if is_gentle {
            pipe.be_gentle();
        }
        let strangers = trouble::strangers(seed, span, is_gentle);
        pipe.tally.outsiders.runs = u64::from(!strangers.is_empty());
        let troubles = trouble::draw(&mut dice, span).into_iter();
        for (at, what) in troubles.chain(strangers) {
            if !is_gentle || what.is_gentle() {
                pipe.calendar.schedule(at, Event::Trouble(what));
            }
        }
        pipe
    }

    fn go(&mut self) -> Result<(), String> {
        for host in 0..2 {
            self.listen(host)?;
        }
        self.run_until(Instant::ORIGIN + self.span)?;
        self.calm()?;
        let patience = self.patience();
        self.run_while(patience, |pipe| pipe.sessions.live().next().is_some())?;
        for host in 0..2 {
            let clock = self.clock(host);
            let tcp = &mut self.hosts[host].tcp;
            self.sessions.close_orphans(host, tcp, clock)?;
            self.settle(host)?;
        }
        self.run_while(patience, |pipe| pipe.sessions.live().next().is_some())?;
        self.run_while(REST, |pipe| !pipe.calendar.is_empty())?;
        self.check_rest()
    }

    /// Some runs lose nothing, so that whatever ends early in them is a fault.
    fn be_gentle(&mut self) {
        for way in &mut self.ways {
            way.faults.loss = 0.0;
            way.faults.corruption = 0.0;
        }
        let is_patient = self.hosts.iter().all(|host| {
            let config = host.config;
            config.retransmissions_max >= PATIENT_TRIES && config.user_timeout_ms == 0
        });
        let limits = [0, 1].map(
            |host: usize| match self.hosts[host].config.close_timeout_ms {
                0 => None,
                limit => Some(Duration::from_millis(limit.into())),
            },
        );
        self.sessions.gentle = is_patient.then_some(limits);
    }

    /// Puts the clocks, mostly so that a number of the first connection is about to wrap; whether
    /// that is so.
    fn aim(&mut self, dice: &mut Dice) -> bool {
        let mut is_aimed = false;
        let margin = Duration::from_millis(u64::from(dice.scale(1, 30_000)));
        let few = u64::from(dice.scale(1, 20_000));
        let target = dice.range(0, 1) as usize;
        for host in 0..2 {
            let (iss, stamp) = self.first_numbers(host);
            let ahead = match dice.range(0, 5) {
                0 => Duration::ZERO,
                1 if host == target => {
                    is_aimed = true;
                    CLOCK_PERIOD - margin
                }
                2 if host == target => {
                    is_aimed = true;
                    let left = u64::from(stamp.wrapping_neg());
                    Duration::from_millis(left) - margin
                }
                3 | 4 if host == target => {
                    is_aimed = true;
                    Duration::from_micros((u64::from(iss.wrapping_neg())).saturating_sub(few) * 4)
                }
                _ => dice.span(Duration::from_secs(100_000)),
            };
            self.hosts[host].ahead = ahead;
        }
        is_aimed
    }

    /// ISS and timestamp of a host's first connection if its clock began at zero, computed by a
    /// second engine with the same secret.
    fn first_numbers(&self, host: usize) -> (u32, u32) {
        let (local, remote) = if host == CLIENT {
            (FIRST_PORT, PORT)
        } else {
            (PORT, FIRST_PORT)
        };
        let mut tcp = engine(self.arena, [1, 1], self.seed, (host, 0));
        let config = self.arena.alloc(Config {
            timestamps: true,
            ..Config::DEFAULT
        });
        let ends = ((ADDRS[host], local), (ADDRS[1 - host], remote));
        let buffers = Buffers::new(&mut [], &mut []);
        let mut out = [0; 120];
        let opened = tcp.connect_from(
            ends.0,
            ends.1,
            buffers,
            config,
            Offer::UNBOUNDED,
            Instant::ORIGIN,
        );
        let sent = opened
            .ok()
            .and_then(|_| tcp.poll_segment(Instant::ORIGIN, |_| true, &mut out));
        let header = sent.and_then(|sent| Some(Header::parse(out.get(..sent.len)?).ok()?.0));
        header.map_or((0, 0), |header| {
            (
                header.seq,
                header.options.timestamps.map_or(0, |stamps| stamps.0),
            )
        })
    }

    fn seconds(&self) -> f64 {
        self.calendar.now().as_micros() as f64 / 1e6
    }

    fn clock(&self, host: usize) -> Clock {
        let now = self.calendar.now();
        Clock {
            now,
            local: now + self.hosts[host].ahead,
        }
    }

    fn run_until(&mut self, until: Instant) -> Result<(), String> {
        while let Some((_, event)) = self.calendar.pop_until(until) {
            self.on_event(event)?;
        }
        self.calendar.advance_to(until);
        Ok(())
    }

    /// Runs while `busy`, for at most `limit`.
    fn run_while(&mut self, limit: Duration, busy: impl Fn(&Self) -> bool) -> Result<(), String> {
        let until = self.calendar.now() + limit;
        while busy(self)
            && let Some((_, event)) = self.calendar.pop_until(until)
        {
            self.on_event(event)?;
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) -> Result<(), String> {
        self.tally.events += 1;
        if self.tally.events > EVENTS_MAX {
            return Err(format!("does not come to rest within {EVENTS_MAX} events"));
        }
        match event {
            Event::Wake(host) => {
                if self.hosts[host]
                    .planned
                    .is_some_and(|at| at <= self.calendar.now())
                {
                    self.hosts[host].planned = None;
                    self.settle(host)?;
                }
                Ok(())
            }
            Event::Arrive(packet) => self.arrive(&packet),
            Event::Trouble(trouble) => self.on_trouble(trouble),
        }
    }

    /// Lets applications and engine of a host do all they can, and plans their next call.
    fn settle(&mut self, host: usize) -> Result<(), String> {
        let mut segments = 0;
        loop {
            let clock = self.clock(host);
            self.sessions.now = clock.local;
            let mut acted = self.accept(host)?;
            let tcp = &mut self.hosts[host].tcp;
            acted |= self.sessions.step(host, tcp, clock)?;
            while let Some(outgoing) = self.poll(host)? {
                self.send(host, &outgoing)?;
                segments += 1;
                if segments > BURST_MAX {
                    return Err(format!("node {host} sends {BURST_MAX} segments at once"));
                }
            }
            if !acted && !self.sessions.take_news() {
                break;
            }
        }
        if self.ways[host].busy_until <= self.calendar.now() {
            self.check_timers(host)?;
            self.check_windows(host)?;
        }
        self.plan(host)
    }

    fn poll(&mut self, host: usize) -> Result<Option<OutgoingSegment>, String> {
        let clock = self.clock(host);
        let is_free = self.ways[host].busy_until <= clock.now;
        let tcp = &mut self.hosts[host].tcp;
        let outgoing = tcp.poll_segment(clock.local, |_| is_free, &mut self.buffer);
        self.sessions.note_all(host, &self.hosts[host].tcp)?;
        Ok(outgoing)
    }

    fn plan(&mut self, host: usize) -> Result<(), String> {
        let clock = self.clock(host);
        let ahead = self.hosts[host].ahead;
        let busy_until = self.ways[host].busy_until;
        let deadline = self.hosts[host].tcp.next_deadline().map(|at| {
            let at = Instant::ORIGIN + at.since(Instant::ORIGIN + ahead);
            at.max(busy_until)
        });
        if deadline.is_some_and(|at| at <= clock.now) {
            self.tally.late += 1;
            if self.tally.late > SPINS_MAX {
                return Err(format!(
                    "node {host} wants to be called again at once, for ever"
                ));
            }
        } else {
            self.tally.late = 0;
        }
        let free = (busy_until > clock.now).then_some(busy_until);
        let wake = self.sessions.next_wake(host, clock.now);
        let next = [deadline, free, wake].into_iter().flatten().min();
        let known = self.hosts[host].planned;
        if let Some(next) = next
            && known.is_none_or(|known| next < known || known < clock.now)
        {
            self.hosts[host].planned = Some(next);
            self.calendar.schedule(next, Event::Wake(host));
        }
        Ok(())
    }

    /// Ends all faults, and lets the sessions finish without pauses.
    fn calm(&mut self) -> Result<(), String> {
        self.is_quiet = true;
        for way in &mut self.ways {
            way.faults = Faults::NONE;
            way.cut_until = Instant::ORIGIN;
            way.rate = way.rate.map(|rate| rate.max(CALM_RATE));
        }
        self.sessions.hurry();
        for host in 0..2 {
            let clock = self.clock(host);
            let tcp = &mut self.hosts[host].tcp;
            self.sessions.stop_listening(host, tcp, clock)?;
            self.settle(host)?;
        }
        Ok(())
    }

    /// How long a connection may take to deliver what is left, or to notice that it cannot:
    /// every retransmission that the settings allow at the longest timeout, and every buffer
    /// emptied by windows of the smallest size.
    fn patience(&self) -> Duration {
        let tries = self.hosts.iter().map(|host| {
            let config = host.config;
            let tries = u64::from(
                config
                    .retransmissions_max
                    .max(config.syn_retransmissions_max),
            );
            (tries + 2) * u64::from(config.rto_max_ms)
        });
        let there_and_back = self
            .ways
            .iter()
            .map(|way| (way.delay + way.jitter).as_millis());
        let round_ms = there_and_back.sum::<u64>() + ROUND_EXTRA_MS;
        let rounds = (0..2).map(|host| {
            let held = self.hosts[host].lender.send_max() as u64;
            let step = u64::from(self.hosts[1 - host].lender.window).min(held);
            (held + settings::HURRY_BYTES_MAX) / step.clamp(1, MSS_MIN_DATA)
        });
        let transfer = rounds.max().unwrap_or(0) * round_ms;
        CALM + Duration::from_millis(tries.max().unwrap_or(0) + transfer)
    }

    fn result(&self) -> RunTally {
        let mut tally = self.tally;
        for way in &self.ways {
            tally.faults.add(&way.tally);
        }
        tally.wraps.sequence += self.monitor.wraps.sequence;
        tally.wraps.timestamp += self.monitor.wraps.timestamp;
        tally
    }
}

impl<'m> Host<'m> {
    fn draw(at: usize, seed: u64, dice: &mut Dice, arena: &'m Arena) -> Self {
        let window = dice.scale(1, 40_000) as u16;
        let places = [dice.range(1, 6), dice.range(1, 4)].map(|n| n as usize);
        Self {
            tcp: engine(arena, places, seed, (at, 0)),
            ahead: Duration::ZERO,
            listener: None,
            config: arena.alloc(settings::config(dice, window)),
            lender: Lender::new(arena, window, dice.scale(1, 40_000) as usize, (seed, at)),
            places,
            lends_early: dice.chance(0.5),
            planned: None,
            reboots: 0,
            counts: Counts::NONE,
        }
    }
}

impl Counts {
    const NONE: Self = Self {
        received: 0,
        sent: 0,
        drops: [0; tcp::SegmentDrop::COUNT],
        again: [0; RetransmissionCause::COUNT],
    };
}

impl OneWay {
    fn draw(dice: &mut Dice) -> Self {
        let rate = dice.scale(2_000, 1_000_000);
        Self {
            delay: dice.scale_ms(1, 1_000),
            jitter: if dice.chance(0.5) {
                Duration::ZERO
            } else {
                dice.scale_ms(1, 200)
            },
            rate: dice.chance(0.5).then_some(u64::from(rate)),
            busy_until: Instant::ORIGIN,
            faults: settings::faults(dice),
            cut_until: Instant::ORIGIN,
            marking: if dice.chance(0.3) { 0.1 } else { 0.0 },
            tally: FaultTally::default(),
        }
    }
}

/// The engine of a host's incarnation.
fn engine<'m>(
    arena: &'m Arena,
    [connections, half_open]: [usize; 2],
    seed: u64,
    (host, reboots): (usize, u64),
) -> Tcp<'m> {
    let memory = Memory {
        connections: arena.alloc_slice_fill_with(connections, |_| Slot::EMPTY),
        listeners: arena.alloc_slice_fill_with(1, |_| Listener::EMPTY),
        half_open: arena.alloc_slice_fill_with(half_open, |_| HalfOpen::EMPTY),
    };
    Tcp::new(
        memory,
        &mut Rng::from_seed([seed, reboots << 1 | host as u64]),
    )
}

/// Keeps a pipe's dice apart from those of a lab run.
const PURPOSE: u64 = 1;

const ADDRS: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, 0xa),
    Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, 0xb),
];

/// The host that opens the first connection.
const CLIENT: usize = 0;

/// The port that both ends listen on.
const PORT: u16 = 7;

/// The local port of the first connection; the others follow.
const FIRST_PORT: u16 = 50_000;

/// More than a segment of an MSS of 1220 with its options.
const SEGMENT_LEN_MAX: usize = 1_400;

/// The millisecond clock starts again.
const CLOCK_PERIOD: Duration = Duration::from_millis(1 << 32);

/// Time enough, without faults, to deliver what is left.
const CALM: Duration = Duration::from_secs(600);

/// A delayed ACK, and what timers are rounded by.
const ROUND_EXTRA_MS: u64 = 1_000;

/// Data in a segment of the smallest MSS, all options in it.
const MSS_MIN_DATA: u64 = 24;

/// Longer than TIME-WAIT, and than handshakes that nobody ends.
const REST: Duration = Duration::from_secs(1_000);

/// Bytes a second that the pipe carries at least, when no faults are left.
const CALM_RATE: u64 = 10_000;

/// More than a run has by far.
const EVENTS_MAX: u64 = 5_000_000;

/// More segments than any window holds, but for those of one byte.
const BURST_MAX: u32 = 100_000;

/// Times in a row that a node may ask to be called again at once.
const SPINS_MAX: u64 = 1_000;

/// The share of runs in which nothing is lost.
const GENTLE_SHARE: f64 = 0.3;

/// Retransmissions that outlast the longest delays of a pipe.
const PATIENT_TRIES: u8 = 6;
