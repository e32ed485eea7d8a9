//! A testbed's day: readings by UDP while links change as they were measured.
//!
//! Each seed is another starting hour of the trace, ten in turn. The trace is not a part of
//! Motet; `testbed` says where it is.

use std::sync::Arc;

use motet::time::{Duration, Instant};

use super::runs::Formed;
use crate::Arena;
use crate::air::k7;
use crate::apps::App;
use crate::apps::readings::{Readings, Sink};
use crate::experiments::Case;
use crate::experiments::row::Point;
use crate::experiments::run::{Failure, PORT, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::testbed;
use crate::experiments::traffic::Traffic;
use crate::net::moves::Moves;
use crate::net::network::{Joining, NetworkOptions, NodeOptions, Tables};
use crate::net::run::{self, Next};
use crate::streams::{Purpose, stream};

/// Readings of all motes of the testbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stable;

pub(super) fn case() -> Case {
    let point = Point::default()
        .with("nodes", MOTES)
        .with("transport", "udp");
    Case {
        point,
        setup: Setup::hops(1),
        traffic: Arc::new(Stable),
    }
}

impl Traffic for Stable {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let mut formed = Formed::of(network(seed)?, &arena)?;
        let joined_s = formed.age_s();
        let now = formed.network.world.now();
        let until = now + Duration::from_secs(seconds);
        let ports = read(&mut formed, seed, until, &arena);
        let mut moves = Moves::of(formed.network.mesh_nodes());
        run::run(&mut formed.network, until + LAST_ON_ITS_WAY, |network| {
            moves.look(network);
            let at = network.world.now() + LOOK_EVERY;
            Next::At(at)
        });
        let [made, received] = ports.fold([0, 0], |[made, received], (mote, port)| {
            let reading = match formed.network.world.app(mote) {
                App::Readings(readings) => u64::from(readings.made),
                _ => 0,
            };
            let arrived = match formed.network.world.app(formed.host) {
                App::Sink(sink) => sink.tally(port).map_or(0, |tally| tally.received),
                _ => 0,
            };
            // A message that arrives twice must not make up for a lost one.
            [made + reading, received + arrived.min(reading)]
        });
        let motes = 1..formed.network.mesh_nodes();
        let changes: u64 = motes.clone().map(|mote| moves.changes(mote, now)).sum();
        let hours = (seconds as f64 / 3_600.0) * motes.len() as f64;
        Ok(Run {
            figures: vec![
                ("delivery", received as f64 / made as f64),
                ("parent_changes_per_h", changes as f64 / hours),
                ("joined_s", joined_s),
            ],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// Lets every mote read once a minute; gives the motes, each with its port of the host.
fn read<'m>(
    formed: &mut Formed<'m>,
    seed: u64,
    until: Instant,
    arena: &'m Arena,
) -> impl Iterator<Item = (usize, u16)> + use<> {
    let network = &mut formed.network;
    let ports = (1..network.mesh_nodes()).zip(PORT..);
    let now = network.world.now();
    let host = network.addr(formed.host);
    for (mote, port) in ports.clone() {
        // Lossless: nodes have 16-bit numbers.
        let mut rng = stream(seed, mote as u32, Purpose::Application);
        let readings = Readings::new((host, port), READING_LEN, EVERY, now, &mut rng);
        let app = App::Readings(readings.until(until));
        network.world.set_app(mote, app);
    }
    let all: Vec<u16> = ports.clone().map(|(_, port)| port).collect();
    let sink = App::Sink(Sink::new(&all, arena));
    network.world.set_app(formed.host, sink);
    ports
}

/// The testbed from the starting hour of a seed on.
fn network(seed: u64) -> Result<NetworkOptions, Failure> {
    let trace = testbed::trace()?;
    let hour = HOUR_STEP * (seed % HOURS);
    let noise_dbm = NodeOptions::new("").profile.noise_dbm();
    let (gains, later) = trace.replay(hour * 3_600, noise_dbm, k7::FRAME_LEN);
    let nodes = (0..trace.nodes).map(|n| NodeOptions {
        channel: testbed::CHANNEL,
        tables: if n == 0 { Tables::RELAY } else { Tables::SMALL },
        ..NodeOptions::new(n.to_string())
    });
    Ok(NetworkOptions {
        seed,
        later,
        joining: Joining::Rpl,
        ..NetworkOptions::new(nodes.collect(), gains)
    })
}

/// Motes, the border router not counted.
const MOTES: u64 = testbed::NODES - 1;

/// Starting hours, and hours from one to the next: the last day ends within the trace.
pub(super) const HOURS: u64 = 10;
const HOUR_STEP: u64 = 2;

const EVERY: Duration = Duration::from_secs(60);

/// Bytes of a reading.
const READING_LEN: usize = 50;

/// How often the parents are read: one second is short against the hours of a run.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time after which the last message sent has arrived, if it does.
const LAST_ON_ITS_WAY: Duration = Duration::from_secs(30);
