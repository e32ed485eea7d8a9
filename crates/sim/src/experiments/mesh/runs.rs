//! Runs on generated floors: one floor for each seed.

use motet::time::{Duration, Instant};

use super::measure::{self, answers, floor, last};
use crate::Arena;
use crate::apps::content::Content;
use crate::apps::readings::{Readings, Sink};
use crate::apps::{App, Receiver, Sender};
use crate::experiments::run::{FORM_LIMIT, Failure, PORT, Run, received};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::net::moves;
use crate::net::network::{
    Arrivals, Host, Joining, Network, NetworkOptions, Parent, SecurityOptions,
};
use crate::net::outages::Outages;
use crate::net::run::{self, Next};
use crate::streams::{Purpose, stream};

/// The measurement on a floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The time until the last of this many motes answers.
    Join(u64),
    /// The time of a repair: after a parent has gone in the middle of a transfer, and after the
    /// border router has.
    Repair,
    /// The paths of this many motes.
    Path(u64),
    /// The control traffic of this many motes that nobody uses.
    Idle(u64),
    /// The bytes that routing adds to packets over three hops, and the goodput that it takes from a
    /// transfer.
    Cost(Direction),
}

/// The direction of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From a mote to the host.
    Up,
    /// From the host to a mote.
    Down,
}

impl Direction {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The sender and the receiver.
    const fn ends(self, mote: usize, host: usize) -> [usize; 2] {
        match self {
            Self::Up => [mote, host],
            Self::Down => [host, mote],
        }
    }
}

impl Traffic for Kind {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let figures = match *self {
            Self::Join(motes) => join(motes, seed),
            Self::Repair => repair(setup, seed),
            Self::Path(motes) => path(motes, seed, seconds),
            Self::Idle(motes) => idle(motes, seed, seconds),
            Self::Cost(way) => cost(setup, seed, seconds, way),
        }?;
        Ok(Run {
            figures,
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

type Figures = Vec<(&'static str, f64)>;

fn join(motes: u64, seed: u64) -> Result<Figures, Failure> {
    joined(mesh(motes, seed, Host::Outside)?)
}

/// How soon motes join that have a key from the start.
pub(in crate::experiments) fn join_with_key(
    motes: u64,
    seed: u64,
    key: SecurityOptions,
) -> Result<Run, Failure> {
    let mut options = mesh(motes, seed, Host::Outside)?;
    options.security = Some(key);
    Ok(Run {
        figures: joined(options)?,
        ..Run::default()
    })
}

fn joined(options: NetworkOptions) -> Result<Figures, Failure> {
    let arena = Arena::new();
    let deepest = options.tree().map_or(0, |tree| tree.height(0));
    let mut network = network(options, &arena)?;
    let (mut outages, on) = Outages::staggered(&mut network, SWITCHED_ON_WITHIN);
    let answered = answers(&mut network, &arena, &mut outages, on + FORM_LIMIT);
    let joined = last(&answered).map(|at| at.since(on));
    Ok(vec![
        ("joined_s", seconds_of(joined.unwrap_or(FORM_LIMIT))),
        ("deepest_hops", deepest as f64),
    ])
}

/// The figures of a transfer from a mote far away, which stays reachable whichever other mote
/// fails.
fn repair(setup: &Setup, seed: u64) -> Result<Figures, Failure> {
    let arena = Arena::new();
    let (mut formed, mote, hops) = (0..FLOORS_MAX)
        .find_map(|n| {
            let options = mesh(REPAIRED, floor_seed(seed, n), Host::Virtual).ok()?;
            let safe = measure::doubly_reached(&options);
            let mut formed = Formed::of(options, &arena).ok()?;
            let far = safe.into_iter().map(|mote| (formed.hops(mote), mote));
            let (hops, mote) = far.filter_map(|(hops, mote)| Some((hops?, mote))).max()?;
            if hops < 2 {
                return None;
            }
            formed.send(setup, [mote, formed.host], seed, &arena);
            let network = &mut formed.network;
            network.world.run_until(network.world.now() + BEFORE_REPAIR);
            // Nothing is to be mended where the mote has found a way without a relay meanwhile.
            let until = network.world.now() + REPAIR_LIMIT;
            let has_relay = run::run(network, until, |network| {
                match moves::parent(network, mote).is_some_and(|parent| parent > 0) {
                    true => Next::Over,
                    false => Next::Event,
                }
            });
            has_relay.then_some((formed, mote, hops))
        })
        .ok_or(Failure::NotFormed)?;
    let host = formed.host;
    let network = &mut formed.network;
    let until = network.world.now() + REPAIR_LIMIT;
    let mended = measure::repair(network, [mote, host], until).ok_or(Failure::NotFormed)?;
    let limit_s = seconds_of(REPAIR_LIMIT);
    Ok(vec![
        ("hops", hops as f64),
        ("repair_s", mended.seconds.unwrap_or(limit_s)),
        ("connections_lost", f64::from(mended.connections_lost)),
        ("reboot_s", reboot(seed)?),
    ])
}

/// Until all motes answer again whose border router has rebooted.
fn reboot(seed: u64) -> Result<f64, Failure> {
    let arena = Arena::new();
    let mut network = network(mesh(REPAIRED, seed, Host::Outside)?, &arena)?;
    let (mut outages, on) = Outages::staggered(&mut network, SWITCHED_ON_WITHIN);
    let answered = answers(&mut network, &arena, &mut outages, on + FORM_LIMIT);
    last(&answered).ok_or(Failure::NotFormed)?;
    network.world.run_until(network.world.now() + BEFORE_REPAIR);
    let until = network.world.now() + FORM_LIMIT;
    let back = measure::reboot(&mut network, &arena, until);
    Ok(back.unwrap_or(seconds_of(FORM_LIMIT)))
}

fn path(motes: u64, seed: u64, seconds: u64) -> Result<Figures, Failure> {
    let arena = Arena::new();
    let options = mesh(motes, seed, Host::Virtual)?;
    let mut formed = Formed::of(options, &arena)?;
    formed.run_until(formed.on + Duration::from_secs(seconds));
    // At the first moment at which all have a parent.
    let until = formed.network.world.now() + FORM_LIMIT;
    let mut ratio = None;
    let options = &formed.options;
    run::run(&mut formed.network, until, |network| {
        ratio = measure::etx_ratio(options, &parents(network));
        match ratio {
            Some(_) => Next::Over,
            None => Next::At(network.world.now() + Duration::from_secs(1)),
        }
    });
    // Where a mote has no way at all there is no ratio, and that is a miss.
    Ok(vec![("etx_ratio", ratio.unwrap_or(f64::INFINITY))])
}

fn idle(motes: u64, seed: u64, seconds: u64) -> Result<Figures, Failure> {
    let arena = Arena::new();
    let mut formed = Formed::of(mesh(motes, seed, Host::Virtual)?, &arena)?;
    formed.run_until(formed.on + IDLE_FROM);
    let before = measure::sent(&formed.network);
    let span = Duration::from_secs(seconds);
    formed.run_until(formed.network.world.now() + span);
    // A mesh that has not formed is measured too: it sends the more.
    let airtime = measure::control_airtime(&formed.network, &before, span);
    Ok(vec![("control_airtime", airtime)])
}

/// The figures of a mote three hops away: the routing overhead of datagrams in one direction, then
/// the goodput of a transfer, then that of the same transfer on the same floor with static routes.
fn cost(setup: &Setup, seed: u64, seconds: u64, way: Direction) -> Result<Figures, Failure> {
    let arena = Arena::new();
    let (mut formed, mote, given) = (0..FLOORS_MAX)
        .find_map(|n| {
            let options = mesh(COSTED, floor_seed(seed, n), Host::Virtual).ok()?;
            let mut formed = Formed::of(options, &arena).ok()?;
            formed.run_until(formed.on + SETTLED);
            let motes = 1..formed.network.mesh_nodes();
            let mote = motes.rev().find(|mote| formed.hops(*mote) == Some(3))?;
            let given = formed.given_path(mote);
            // A path over a link that fades at times is none that anybody would give.
            given.tree().ok().map(|_| (formed, mote, given))
        })
        .ok_or(Failure::NotFormed)?;
    let ends = way.ends(mote, formed.host);
    let before = measure::sent(&formed.network);
    formed.read(ends, seed, &arena);
    let bytes = measure::routing_bytes(&formed.network, &before).ok_or(Failure::PacketsLost)?;
    let with = formed.goodput(setup, (ends, seed, seconds), &arena)?;
    let mut given = Formed::of(given, &arena)?;
    let without = given.goodput(setup, (ends, seed, seconds), &arena)?;
    Ok(vec![
        ("goodput", with),
        ("goodput_static", without),
        ("routing_bytes", bytes),
    ])
}

/// A mesh all of whose motes the border router has reached, or five times the longest that it may
/// take for that have passed: then it is measured as it is.
pub(super) struct Formed<'m> {
    pub(super) network: Network<'m>,
    options: NetworkOptions,
    /// The host's number among the nodes.
    pub(super) host: usize,
    /// When the last node was switched on.
    on: Instant,
}

impl<'m> Formed<'m> {
    pub(super) fn of(options: NetworkOptions, arena: &'m Arena) -> Result<Self, Failure> {
        let mut network = network(options.clone(), arena)?;
        network.world.take_census();
        let (mut outages, on) = Outages::staggered(&mut network, SWITCHED_ON_WITHIN);
        let mut arrivals = Arrivals::default();
        run::run(&mut network, on + FORM_LIMIT, |network| {
            outages.pass(network, arena, |_, _, _| {});
            match outages.next_at() {
                Some(at) => Next::At(at),
                None if arrivals.look(&network.world, network.mesh_nodes()) => Next::Over,
                None => Next::Event,
            }
        });
        let host = network.host(0).unwrap_or_default();
        Ok(Self {
            network,
            options,
            host,
            on,
        })
    }

    /// Since the last node was switched on, s.
    pub(super) fn age_s(&self) -> f64 {
        seconds_of(self.network.world.now().since(self.on))
    }

    fn run_until(&mut self, at: Instant) {
        self.network.world.run_until(at);
    }

    /// A mote's hops to the border router, by the parents of now.
    fn hops(&self, mote: usize) -> Option<usize> {
        moves::way_up(&self.network, mote).map(|way| way.len())
    }

    /// This floor with given routes: for a mote the path that it has now.
    fn given_path(&self, mote: usize) -> NetworkOptions {
        let mut options = self.options.clone();
        options.joining = Joining::Static;
        let mut at = mote;
        for parent in moves::way_up(&self.network, mote).unwrap_or_default() {
            options.nodes[at].parent = Parent::Node(parent);
            at = parent;
        }
        options
    }

    /// Lets `sender` send to `receiver` without an end.
    fn send(&mut self, setup: &Setup, [sender, receiver]: [usize; 2], seed: u64, arena: &'m Arena) {
        let network = &mut self.network;
        let ends = |node, peer: usize| network.ends(node, network.addr(peer), arena);
        let content = || Content::endless([seed, 0]);
        let receiving = ends(receiver, sender).with(setup.receiver);
        let sending = ends(sender, receiver).with(setup.sender);
        let peer = (network.addr(receiver), PORT);
        let receiving = App::Receiver(Receiver::checking(PORT, receiving, content()));
        network.world.set_app(receiver, receiving);
        let sending = App::Sender(Sender::new(content(), peer, sending));
        network.world.set_app(sender, sending);
    }

    /// Bytes of a transfer that are read in `seconds` after its beginning, kb/s.
    fn goodput(
        &mut self,
        setup: &Setup,
        (ends, seed, seconds): ([usize; 2], u64, u64),
        arena: &'m Arena,
    ) -> Result<f64, Failure> {
        self.send(setup, ends, seed, arena);
        self.run_until(self.network.world.now() + SLOW_START);
        let before = received(&self.network, &ends);
        self.run_until(self.network.world.now() + Duration::from_secs(seconds));
        if let App::Receiver(receiver) = self.network.world.app(ends[1])
            && let Some(at) = receiver.differs_at
        {
            return Err(Failure::BytesDiffer { at });
        }
        let bytes = received(&self.network, &ends) - before;
        Ok(bytes as f64 * 8.0 / 1_000.0 / seconds as f64)
    }

    /// Lets datagrams go from one end to the other for a while.
    fn read(&mut self, [sender, receiver]: [usize; 2], seed: u64, arena: &'m Arena) {
        let now = self.network.world.now();
        let to = (self.network.addr(receiver), PORT);
        let mut rng = stream(seed, 0, Purpose::Application);
        let every = Duration::from_secs(1);
        let readings = Readings::new(to, READING_LEN, every, now, &mut rng).until(now + READ_FOR);
        let sink = App::Sink(Sink::new(&[PORT], arena));
        self.network.world.set_app(receiver, sink);
        self.network.world.set_app(sender, App::Readings(readings));
        self.run_until(now + READ_FOR + every);
    }
}

/// A floor of `motes` motes that find their parents themselves.
pub(super) fn mesh(motes: u64, seed: u64, host: Host) -> Result<NetworkOptions, Failure> {
    let missing = || Failure::Topology(format!("no floor of {motes} motes was found"));
    // Lossless: experiments have a hundred motes at most.
    let mut options = floor(motes as usize, seed).ok_or_else(missing)?;
    options.hosts[0].kind = host;
    options.joining = Joining::Rpl;
    Ok(options)
}

pub(super) fn network(options: NetworkOptions, arena: &Arena) -> Result<Network<'_>, Failure> {
    Network::new(options, arena).map_err(|error| Failure::Topology(error.to_string()))
}

fn parents(network: &Network<'_>) -> Vec<Option<usize>> {
    let nodes = 0..network.mesh_nodes();
    nodes
        .map(|node| moves::parent(network, node).filter(|_| node > 0))
        .collect()
}

/// The seed of the n-th floor that is tried for a run's seed; far from the seeds of other runs.
fn floor_seed(seed: u64, n: u64) -> u64 {
    seed.wrapping_add(n * 1_000_000)
}

fn seconds_of(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

/// Motes of the floors on which this is measured at one size only.
const REPAIRED: u64 = 30;
const COSTED: u64 = 30;

/// The time within which all nodes are switched on.
pub(super) const SWITCHED_ON_WITHIN: Duration = Duration::from_secs(5);

/// The time for which a transfer goes on before its parent fails, and a mesh before its border
/// router does.
const BEFORE_REPAIR: Duration = Duration::from_secs(20);

/// The longest time to repair: a mesh not repaired by then counts as if it were repaired then.
const REPAIR_LIMIT: Duration = Duration::from_secs(300);

/// A mesh has found its paths by then.
const SETTLED: Duration = Duration::from_secs(120);

/// The time from which a mesh is idle, by its criterion.
const IDLE_FROM: Duration = Duration::from_secs(30 * 60);

const SLOW_START: Duration = Duration::from_secs(10);

/// Datagrams whose headers are looked at: for how long, one a second, and their bytes.
const READ_FOR: Duration = Duration::from_secs(30);
const READING_LEN: usize = 20;

/// Floors that are tried for a mote which is far enough away.
const FLOORS_MAX: u64 = 20;
