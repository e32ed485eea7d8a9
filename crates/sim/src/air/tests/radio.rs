//! Radios and the MAC that drives them, without anything above.

use motet::mac::{self, Class, Config, FrameSlot, Mac, Neighbor};
use motet::wire::LinkAddr;

use super::*;
use crate::air::filter;
use crate::air::gains::Gains;
use crate::air::medium::{Fate, Medium, Placement};
use crate::stats::Stat;
use crate::streams::{Purpose, stream};

const PAN: u16 = 0x4d54;

/// A few MACs on one air.
struct Bench {
    air: Air,
    motes: Vec<Bare>,
    delivered: Vec<u64>,
}

struct Bare {
    mac: Mac<'static>,
    radio: Radio,
    rng: Rng,
    deadline: Option<Instant>,
    received: usize,
    /// Keeps this neighbour's queue full.
    saturates: Option<(LinkAddr, usize)>,
}

fn addr(node: usize) -> LinkAddr {
    LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, node as u8])
}

fn filter(node: usize) -> Filter {
    let LinkAddr::Extended(extended) = addr(node) else {
        unreachable!()
    };
    Filter {
        pan: PAN,
        extended,
        short: None,
    }
}

impl Bench {
    fn new(gains: &Gains, profile: Profile, seed: u64, configure: impl Fn(&mut Config)) -> Self {
        let nodes = gains.nodes();
        let placement = Placement {
            transmit_dbm: profile.transmit_dbm,
            noise_dbm: profile.noise_dbm(),
            channel: 26,
        };
        let medium = Medium::new(gains, &vec![placement; nodes]);
        let motes = (0..nodes)
            .map(|node| {
                let mut config = Config::new(PAN, filter(node).extended);
                configure(&mut config);
                let mut rng = stream(seed, node as u32, Purpose::Stack);
                let slots = Box::leak(vec![FrameSlot::EMPTY; 8].into_boxed_slice());
                let neighbors = Box::leak(vec![Neighbor::EMPTY; nodes].into_boxed_slice());
                let mac = Mac::new(config, profile.capabilities, slots, neighbors, &mut rng);
                let mac = mac.expect("the profile fits");
                let jitter = stream(seed, node as u32, Purpose::CpuJitter);
                let radio = Radio::new(node, profile, filter(node), jitter);
                Bare {
                    mac,
                    radio,
                    rng,
                    deadline: None,
                    received: 0,
                    saturates: None,
                }
            })
            .collect();
        let addresses = (0..nodes).map(|node| (addr(node), node));
        Self {
            air: Air::new(medium, addresses),
            motes,
            delivered: vec![0; nodes],
        }
    }

    fn run(&mut self, until: Instant) {
        for mote in 0..self.motes.len() {
            self.drive(mote, Instant::ORIGIN);
        }
        while let Some((now, event)) = self.air.calendar.pop_until(until) {
            match event {
                Event::Deadline { mote } => {
                    self.motes[mote].deadline = None;
                    self.drive(mote, now);
                }
                Event::Radio { place: mote, due } => {
                    self.motes[mote].radio.on_due(due, &mut self.air, now);
                    self.drive(mote, now);
                }
                Event::FrameEnd { id } => self.end(id, now),
                Event::Resume { mote } => self.drive(mote, now),
                Event::Packet(_) | Event::Attack { .. } | Event::Gain(_) | Event::Release => {
                    unreachable!("neither wire nor change here")
                }
            }
        }
    }

    fn end(&mut self, id: crate::air::medium::FrameId, now: Instant) {
        let mut receptions = Vec::new();
        let finished = self.air.medium.finish(id, now, &mut receptions).unwrap();
        let (mut fate, sender) = (finished.fate, finished.from);
        let sent = filter::header(finished.frame.psdu());
        let radio = &mut self.motes[sender].radio;
        radio.on_sent(sent.as_ref(), &mut self.air, now);
        self.drive(sender, now);
        for reception in receptions {
            let whole = reception.survival > 0.5;
            if reception.intended {
                fate = if whole {
                    Fate::Received
                } else {
                    Fate::Corrupted
                };
            }
            let header = sent.filter(|_| whole);
            let heard = header.as_ref().map(|header| IncomingFrame {
                frame: &finished.frame,
                header,
                power: reception.power,
                from: sender,
            });
            self.motes[reception.at]
                .radio
                .on_reception(heard, &mut self.air, now);
            self.drive(reception.at, now);
        }
        self.air.count(&finished, sent.as_ref(), fate);
    }

    fn drive(&mut self, node: usize, now: Instant) {
        let Bare {
            mac,
            radio,
            rng,
            deadline,
            received,
            saturates,
        } = &mut self.motes[node];
        if now < radio.cpu_free_at() {
            self.air
                .calendar
                .schedule(radio.cpu_free_at(), Event::Resume { mote: node });
            return;
        }
        while let Some(output) = radio.poll_output(&mut self.air, now) {
            *received += usize::from(output.tell(|event| mac.on_event(event, now, rng).is_some()));
        }
        let mut out = [0; 127];
        loop {
            if let Some((to, len)) = *saturates {
                while mac.room(Class::Own) > 0 {
                    let frame = mac::Frame {
                        to,
                        token: 0,
                        payload: &[0x5a; 127][..len],
                        class: Class::Own,
                        since: now,
                    };
                    mac.enqueue(&frame).unwrap();
                }
            }
            if let Some(outcome) = mac.poll_outcome() {
                self.delivered[node] += u64::from(outcome.delivered);
                continue;
            }
            let Some(action) = mac.poll_action(now, rng, &mut out) else {
                break;
            };
            radio.command(action, &out, &mut self.air, now);
        }
        if let Some(at) = mac.next_deadline()
            && deadline.is_none_or(|planned| at < planned)
        {
            *deadline = Some(at);
            let later = now + Duration::from_micros(1);
            self.air
                .calendar
                .schedule(at.max(later), Event::Deadline { mote: node });
        }
    }
}

fn at_s(s: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(s)
}

/// Mean cycle of one saturated hop, µs, and its bench.
fn one_hop(profile: Profile) -> (f64, Bench) {
    let mut bench = Bench::new(&Gains::from_fn(2, |_, _| -62.0), profile, 1, |_| {});
    let len = bench.motes[0].mac.payload_len_max(addr(1));
    bench.motes[0].saturates = Some((addr(1), len));
    bench.run(at_s(60));
    (60e6 / bench.delivered[0] as f64, bench)
}

#[test]
fn a_saturated_hop_takes_the_measured_frame_cycle() {
    for (name, profile, expected) in [
        ("Hamilton, TCPlp §6.4", Profile::HAMILTON, 8_200.0),
        ("ideal, the standard's own times", Profile::IDEAL, 6_240.0),
    ] {
        let (cycle, bench) = one_hop(profile);
        assert!(
            (cycle / expected - 1.0).abs() < 0.02,
            "{name}: {cycle:.0} µs, not {expected}"
        );
        assert!(
            (profile.cycle(127, 3).as_micros() as f64 / cycle - 1.0).abs() < 0.02,
            "{name}"
        );
        let tally = bench.air.link(0, 1);
        assert_eq!(
            tally.frames,
            tally.frame_fates[Fate::Received.index()],
            "{name}: {tally:?}"
        );
        assert!(
            bench.motes[1].received as u64 >= bench.delivered[0],
            "{name}"
        );
    }
}

#[test]
fn time_in_states_adds_up() {
    let (_, bench) = one_hop(Profile::HAMILTON);
    for mote in &bench.motes {
        let usage = mote.radio.usage(at_s(60));
        assert_eq!(usage.total().as_micros(), 60_000_000);
    }
    let sender = bench.motes[0].radio.usage(at_s(60));
    let sent = bench.air.link(0, 1).frames;
    // All but the last, which may be under way, took 4.256 ms each.
    let expected = sent * phy::air_time(127).as_micros();
    assert!(sender.span(State::Transmit).as_micros().abs_diff(expected) <= 4_256);
    assert!(sender.span(State::Copy).as_micros() > sent * 1_100);
    let receiver = bench.motes[1].radio.usage(at_s(60));
    assert!(receiver.span(State::Unload).as_micros() > sent * 900);
}

/// What two senders on either side of a receiver bring about in a minute.
#[derive(Clone, Copy, Default, Debug)]
struct Both {
    delivered: f64,
    timeouts: f64,
    corrupted: f64,
}

fn both_sides(hidden: bool, retry_delay: Duration, backs_off: bool, seed: u64) -> Both {
    let gains = Gains::from_fn(3, |from, to| match from.abs_diff(to) {
        1 => -62.0,
        _ if hidden => -112.0,
        _ => -66.0,
    });
    let mut bench = Bench::new(&gains, Profile::HAMILTON, seed, |config| {
        config.retry_delay_max = retry_delay;
        config.backs_off_from_silent = backs_off;
    });
    for sender in [0, 2] {
        bench.motes[sender].saturates = Some((addr(1), 104));
    }
    bench.run(at_s(60));
    let mut both = Both::default();
    for sender in [0, 2] {
        let fates = bench.air.link(sender, 1).frame_fates;
        let lost = fates[Fate::Corrupted.index()] + fates[Fate::LockedOnAnother.index()];
        both.delivered += bench.delivered[sender] as f64;
        both.timeouts += f64::from(bench.motes[sender].mac.counters().ack_timeouts);
        both.corrupted += lost as f64;
    }
    both
}

/// The ratio of a figure between two cases of the same seeds, by seed: its mean and interval.
fn ratios(of: impl Fn(u64) -> [f64; 2]) -> [f64; 2] {
    let ratios: Vec<f64> = (1..=8)
        .map(|seed| {
            let [a, b] = of(seed);
            a / b
        })
        .collect();
    let stat = Stat::of(&ratios);
    let half = stat.ci95.unwrap_or(f64::NAN);
    [stat.mean - half, stat.mean + half]
}

#[test]
fn hidden_terminals_collide_and_sensed_ones_seldom() {
    // What the air does is under test, so that no sender may leave its receiver alone.
    let sensed = |seed| both_sides(false, Duration::ZERO, false, seed);
    let hidden = |seed| both_sides(true, Duration::ZERO, false, seed);
    let delayed = |seed| both_sides(true, mac::config::RETRY_DELAY_MAX, false, seed);
    let corrupted = ratios(|seed| [hidden(seed).corrupted, hidden(seed).delivered]);
    let timeouts = ratios(|seed| [hidden(seed).timeouts, sensed(seed).timeouts]);
    let cost = ratios(|seed| [sensed(seed).delivered, hidden(seed).delivered]);
    let cure = ratios(|seed| [delayed(seed).delivered, hidden(seed).delivered]);
    println!("{corrupted:?} {timeouts:?} {cost:?} {cure:?}");
    assert!(corrupted[0] > 1.0, "most attempts collide: {corrupted:?}");
    assert!(timeouts[0] > 2.0, "{timeouts:?}");
    assert!(cost[0] > 1.5, "{cost:?}");
    assert!(cure[0] > 1.0, "the retry delay helps: {cure:?}");
}

/// A neighbour whose frames collide is there: it is not left alone.
#[test]
fn hidden_terminals_are_not_taken_for_silence() {
    let delay = mac::config::RETRY_DELAY_MAX;
    let run = |backs_off, seed| both_sides(true, delay, backs_off, seed).delivered;
    let kept = ratios(|seed| [run(true, seed), run(false, seed)]);
    assert!(kept[0] >= 0.95, "{kept:?}");
}

#[test]
fn a_deaf_receiver_misses_what_comes_while_it_copies() {
    // Both ends of one link saturate it: a frame is often sent to a node that is copying.
    let fates = |profile| {
        let mut bench = Bench::new(&Gains::from_fn(2, |_, _| -62.0), profile, 1, |_| {});
        for sender in [0, 1] {
            bench.motes[sender].saturates = Some((addr(1 - sender), 104));
        }
        bench.run(at_s(30));
        bench.air.link(0, 1).frame_fates
    };
    let deaf = fates(Profile::HAMILTON);
    let hearing = fates(Profile::HAMILTON.hearing());
    let copying = Fate::Deaf(Deaf::Copying).index();
    assert!(deaf[copying] > 100, "{deaf:?}");
    assert_eq!(hearing[copying], 0, "{hearing:?}");
}

#[test]
fn the_same_seed_gives_the_same_air() {
    let digest = || {
        let (_, bench) = one_hop(Profile::HAMILTON);
        let links: Vec<_> = bench
            .air
            .links()
            .map(|(link, tally)| (link, *tally))
            .collect();
        (bench.delivered, links, bench.air.calendar.next_at())
    };
    assert_eq!(digest(), digest());
}

#[test]
fn commands_wait_for_a_reception_and_then_proceed() {
    let gains = Gains::from_fn(2, |_, _| -62.0);
    let mut bench = Bench::new(&gains, Profile::HAMILTON, 1, |_| {});
    let Bench { air, motes, .. } = &mut bench;
    let data = [0x41, 0x88, 1, 0x54, 0x4d, 0xff, 0xff, 1, 0, 0, 0];
    air.transmit(0, Frame::new(&data), None, Instant::ORIGIN);
    assert!(air.medium.is_receiving(1));
    let radio = &mut motes[1].radio;
    radio.command(
        Action::Preload { len: 11 },
        &data,
        air,
        Instant::from_micros(100),
    );
    assert!(
        air.medium.is_receiving(1),
        "the driver waits for the end of the frame"
    );
    assert!(matches!(radio.activity, Activity::Idle));
}
