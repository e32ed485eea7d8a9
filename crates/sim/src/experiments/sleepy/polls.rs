//! The energy that a mote which sleeps spends while nothing goes on, and for one packet.
//!
//! Sources: OpenThread, issue 9763 (297 ms awake for 512 bytes with one frame a request, 57 ms
//! wanted); Nordic's measurement of 18.9 µA with a request a second at 0 dBm. Nothing is fitted to
//! them.

use motet::mac::Policy;
use motet::time::Duration;

use crate::Arena;
use crate::air::energy::Energy;
use crate::air::profile::Profile;
use crate::air::radio::{State, Usage};
use crate::apps::App;
use crate::apps::backlog::{Backlog, Sensor};
use crate::apps::messages::{Server, Shape};
use crate::apps::readings::{Readings, Sink};
use crate::apps::reporter::Reporter;
use crate::experiments::run::{Failure, PORT, Run, joined};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::net::network::NetworkOptions;
use crate::streams::{Purpose, stream};

/// A connection on which nothing goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) policy: Policy,
}

/// A mote that asks once a second, and is sent 512 bytes now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polls {
    /// Whether one request brings all that waits.
    pub(super) drained: bool,
}

/// One hop, the second node a mote that sleeps so.
fn hop(seed: u64, setup: Setup) -> Result<NetworkOptions, Failure> {
    setup.with("topology.joining", "static").network(seed)
}

impl Traffic for Idle {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let mut network = joined(hop(seed, Setup::hops(1).asleep(self.policy))?, &arena)?;
        let host = network.host(0).unwrap_or_default();
        let [mote_addr, host_addr] = [1, host].map(|node| network.addr(node));
        let sensor = Sensor {
            interval: Duration::from_secs(1_000_000),
            ..Sensor::ANEMOMETER
        };
        let mut rng = stream(seed, 1, Purpose::Application);
        let never = network.world.now() + Duration::from_secs(100_000);
        let backlog = Backlog::new(sensor, never, &mut rng);
        let shape = Shape {
            message_len: sensor.reading_len,
            answer_len: 0,
            interval: sensor.interval,
        };
        let server = Server::new(PORT, network.ends(host, mote_addr, &arena), shape);
        network.world.set_app(host, App::Server(server.skipping()));
        let ends = network.ends(1, host_addr, &arena);
        let reporter = Reporter::new((host_addr, PORT), ends, backlog);
        network.world.set_app(1, App::Reporter(reporter));
        let warm = network.world.now() + WARM_UP;
        network.world.run_until(warm);
        let before = network.world.usage(1);
        network.world.run_until(warm + IDLE_FOR);
        let used = before.zip(network.world.usage(1));
        let duty = used.map_or(f64::NAN, |(before, after)| on(&after, &before) / IDLE_FOR_S);
        let is_open = network
            .world
            .app(1)
            .progress()
            .is_some_and(|progress| progress.is_open);
        if !is_open {
            return Err(Failure::Unfinished {
                sent: 0,
                arrived: 0,
            });
        }
        Ok(Run {
            figures: vec![("idle_duty", 100.0 * duty)],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Traffic for Polls {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let [(rest_s, current), (busy_s, _)] = [
            self.second(seed, Duration::from_secs(100_000))?,
            self.second(seed, Duration::from_secs(10))?,
        ];
        // One request in ten brings a datagram.
        let awake_ms = (10.0 * busy_s - 9.0 * rest_s) * 1e3;
        Ok(Run {
            figures: vec![("awake", awake_ms), ("current", current)],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Polls {
    /// Seconds awake in a second, and the current, µA, where a datagram comes at this interval.
    fn second(&self, seed: u64, interval: Duration) -> Result<(f64, f64), Failure> {
        let arena = Arena::new();
        let setup = Setup::hops(1)
            .asleep(Policy::Fixed(Duration::from_secs(1)))
            .with("radio.profile", "nrf52840")
            .with("stack.drain", self.drained);
        let mut network = joined(hop(seed, setup)?, &arena)?;
        let host = network.host(0).unwrap_or_default();
        network
            .world
            .set_app(1, App::Sink(Sink::new(&[PORT], &arena)));
        let mut rng = stream(seed, 1, Purpose::Application);
        // Nothing comes before the measurement, and for ever where the interval is long.
        let warm = network.world.now() + WARM_UP;
        let from = match interval > POLLED_FOR {
            true => warm + interval,
            false => warm,
        };
        let readings = Readings::new(
            (network.addr(1), PORT),
            DATAGRAM_LEN,
            interval,
            from,
            &mut rng,
        );
        network.world.set_app(host, App::Readings(readings));
        network.world.run_until(warm);
        let before = (network.world.usage(1), energy_mj(network.world.energy(1)));
        network.world.run_until(warm + POLLED_FOR);
        let after = (network.world.usage(1), energy_mj(network.world.energy(1)));
        let used = before.0.zip(after.0);
        let awake = used.map_or(f64::NAN, |(before, after)| {
            on(&after, &before) / POLLED_FOR_S
        });
        let milliwatts = (after.1 - before.1) / POLLED_FOR_S;
        Ok((awake, milliwatts / Profile::NRF52840.currents.volts * 1e3))
    }
}

/// How long a radio was on between two looks at it, s.
fn on(after: &Usage, before: &Usage) -> f64 {
    let us = |usage: &Usage| usage.total().as_micros() - usage.span(State::Sleep).as_micros();
    (us(after) - us(before)) as f64 / 1e6
}

fn energy_mj(energy: Option<Energy>) -> f64 {
    energy.map_or(f64::NAN, |energy| energy.radio_mj + energy.cpu_mj)
}

/// The connection is open by then, and the policy at rest.
const WARM_UP: Duration = Duration::from_secs(60);

/// Some requests of 240 s.
const IDLE_FOR: Duration = Duration::from_secs(2_400);
const IDLE_FOR_S: f64 = 2_400.0;

const POLLED_FOR: Duration = Duration::from_secs(200);
const POLLED_FOR_S: f64 = 200.0;

const DATAGRAM_LEN: usize = 512;
