//! A whole network: radios, relays, border router, wire and hosts, with faults at each.
//!
//! Purpose: tests what two TCP engines alone do not have: fragments, relays' tables, link retries,
//! routes, and nodes that reboot during a run.
//! Place: `mod` gives it a seed; it returns a tally of what happened, or the failure. Nodes are
//! those of every other lab run; only the applications and the checks are the soak's.
//! Left out: speed. A lost frame is no failure; a connection that makes no progress is.

mod active_outsiders;
mod judge;

use motet::link::Link;
use motet::tcp::{self, Buffers, Config, ListenerHandle};
use motet::time::{Duration, Instant};

use self::active_outsiders::ActiveOutsiders;
use super::dice::Dice;
use super::frames::{self, Frames};
use super::lender::Lender;
use super::mesh;
use super::routing::{self, Breakage};
use super::seals::Seals;
use super::session::{Clock, Sessions};
use super::settings::{self, Behaviour};
use super::{RunTally, Seen, outsiders};
use crate::Arena;
use crate::air::gains::Gains;
use crate::net::faults::Faults;
use crate::net::network::{BESIDE, HostOptions, Joining, Network, RADIO, Tables};
use crate::net::outages::Outages;
use crate::net::run::{self, Next};
use crate::net::world::World;

/// A network, and what its nodes do.
#[derive(Debug)]
struct Lab<'m> {
    arena: &'m Arena,
    seed: u64,
    dice: Dice,
    network: Network<'m>,
    /// The TCP settings and memory of each node of the world.
    ends: Vec<End<'m>>,
    sessions: Sessions<'m>,
    span: Duration,
    is_quiet: bool,
    /// Whether some motes sleep.
    sleeps: bool,
    /// Nodes of the mesh, in front of those on Bluetooth LE beside it.
    in_mesh: usize,
    /// If motes find their parents by RPL: the path gains without faults.
    gains: Option<Gains>,
    /// Nodes that are off, and when they come back.
    outages: Outages,
    /// The counters of nodes when they rebooted.
    lost_counts: Frames,
    seals: Seals,
    /// The outsiders at work.
    active_outsiders: Option<ActiveOutsiders>,
    tally: RunTally,
}

/// TCP of a node: settings and memory.
#[derive(Debug)]
struct End<'m> {
    config: &'m Config,
    lender: Lender<'m>,
    places: [usize; 2],
    lends_early: bool,
    listener: Option<ListenerHandle>,
    /// The datagram tag seen last.
    tag: u16,
}

/// Runs the network of a seed for about `span`, then until everything has come to rest.
pub(super) fn run(seed: u64, span: Duration) -> Seen {
    let arena = Arena::new();
    let mut dice = Dice::new(seed, PURPOSE);
    let (options, outsiders) = mesh::network(&mut dice, seed);
    let mut seen = Seen::default();
    let is_rpl = options.joining == Joining::Rpl;
    let sleeps = options.has_sleepers();
    let is_all_on = options.is_mixed();
    let in_mesh = match is_all_on {
        true => options.nodes.len() - options.ble_motes(),
        false => options.nodes.len(),
    };
    let attackers = outsiders::names(&options);
    let gains = is_rpl.then(|| options.gains.clone());
    let network = match Network::new(options, &arena) {
        Ok(mut network) => {
            network.world.take_nonces();
            network
        }
        Err(error) => {
            seen.failure = Some(format!("no network: {error}"));
            return seen;
        }
    };
    let mut lab = Lab {
        arena: &arena,
        seed,
        network,
        ends: Vec::new(),
        sessions: Sessions::new(seed, &arena),
        span,
        is_quiet: false,
        sleeps,
        in_mesh,
        gains,
        outages: Outages::default(),
        lost_counts: Frames::default(),
        seals: Seals::default(),
        active_outsiders: outsiders.map(|outsiders| ActiveOutsiders::new(seed, outsiders, span)),
        tally: RunTally {
            networks: 1,
            all_on: u64::from(is_all_on),
            ..RunTally::default()
        },
        dice,
    };
    let failure = lab.go().err();
    let seconds = lab.now().as_micros() as f64 / 1e6;
    seen.failure = failure.map(|what| format!("{what}, {seconds:.3} s into the run{attackers}"));
    seen.seconds = seconds;
    seen.coverage = lab.sessions.coverage.clone();
    seen.sessions = lab.sessions.tally;
    seen.tally = lab.result();
    seen
}

impl<'m> AsMut<World<'m>> for Lab<'m> {
    fn as_mut(&mut self) -> &mut World<'m> {
        &mut self.network.world
    }
}

impl<'m> Lab<'m> {
    fn go(&mut self) -> Result<(), String> {
        self.join()?;
        for node in 0..self.network.world.nodes() {
            let end = self.draw_end(node);
            self.ends.push(end);
            self.listen(node)?;
        }
        let faults = settings::faults(&mut self.dice);
        self.set_faults(faults);
        let end = self.now() + self.span;
        while self.now() < end {
            self.pass()?;
            self.come_back()?;
            self.trouble(end)?;
            self.run_outsiders(end)?;
        }
        self.come_back()?;
        self.calm()?;
        let limit = self.now() + self.patience();
        while self.sessions.live().next().is_some() && self.now() < limit {
            self.pass()?;
        }
        for node in 0..self.ends.len() {
            let clock = self.clock();
            let sessions = &mut self.sessions;
            self.network.world.with_node(node, |stack, _| {
                sessions.close_orphans(node, stack.tcp_mut(), clock)
            })?;
        }
        let limit = self.now() + REST;
        while !self.is_at_rest() && self.now() < limit {
            self.pass()?;
        }
        self.check_rest()?;
        if self.gains.is_some() {
            let is_misled = self
                .active_outsiders
                .as_ref()
                .is_some_and(ActiveOutsiders::misleads);
            routing::check(&mut self.network, self.in_mesh, is_misled)?;
        }
        self.check_recovery()
    }

    fn now(&self) -> Instant {
        self.network.world.now()
    }

    fn clock(&self) -> Clock {
        Clock {
            now: self.now(),
            local: self.now(),
        }
    }

    /// Lets some time pass, then every application act.
    fn pass(&mut self) -> Result<(), String> {
        let most = if self.is_quiet { CALM_STEP } else { STEP };
        let until = self.now() + Duration::from_millis(1) + self.dice.span(most);
        let mut noted = Ok(());
        let mut is_first = true;
        run::run(self, until, |lab| {
            if !std::mem::take(&mut is_first) {
                noted = lab.note_all();
            }
            if noted.is_err() {
                Next::Over
            } else {
                Next::Event
            }
        });
        noted?;
        let clock = self.clock();
        for node in 0..self.ends.len() {
            if !self.network.world.is_on(node) {
                continue;
            }
            self.accept(node)?;
            let sessions = &mut self.sessions;
            self.network
                .world
                .with_node(node, |stack, _| sessions.step(node, stack.tcp_mut(), clock))?;
            self.check_timers(node)?;
            let stack = self.network.world.node(node);
            frames::check(stack, self.now()).map_err(|what| format!("node {node}: {what}"))?;
            self.note_tag(node);
        }
        self.tally.events += 1;
        self.seals.check(&self.network)
    }

    fn note_all(&mut self) -> Result<(), String> {
        for node in 0..self.ends.len() {
            let tcp = self.network.world.node(node).tcp();
            self.sessions.note_all(node, tcp)?;
        }
        Ok(())
    }

    /// Checks that outstanding data have a timer, or wait for room in the radio's queue, or for a
    /// key that the node's host requests by its own timer.
    fn check_timers(&self, number: usize) -> Result<(), String> {
        let node = self.network.world.node(number);
        let is_waiting = [RADIO, BESIDE].iter().any(|id| match node.link(*id) {
            Some(Link::Mesh(radio)) => {
                radio.mac().queue_len() > 0 || self.network.world.awaits_key(number)
            }
            Some(Link::Ble(ble)) => ble.is_busy(),
            _ => false,
        });
        // A node that copies is called when it has done so.
        let is_busy = !self.network.world.may_reboot(number);
        match self.sessions.outstanding(number, node.tcp()) {
            Some((session, state)) if !is_waiting && !is_busy && node.next_deadline().is_none() => {
                Err(format!(
                    "session {session} of node {number} waits in {state:?} without a timer"
                ))
            }
            _ => Ok(()),
        }
    }

    fn note_tag(&mut self, node: usize) {
        if let Some(Link::Mesh(radio)) = self.network.world.node(node).link(RADIO) {
            let tag = radio.datagrams().tags_given();
            let end = &mut self.ends[node];
            self.tally.wraps.tag += u64::from(tag < end.tag);
            end.tag = tag;
        }
    }

    // ---- trouble ----

    fn trouble(&mut self, end: Instant) -> Result<(), String> {
        let draw = self.dice.range(0, 9_999);
        match draw {
            0..=19 => self.connect(),
            20..=21 => {
                let faults = settings::faults(&mut self.dice);
                self.set_faults(faults);
                Ok(())
            }
            22 => {
                let last = self.ends.len() as u32 - 1;
                let node = self.dice.range(0, last) as usize;
                match self.network.world.is_on(node) {
                    true => self.reboot(node),
                    false => Ok(()),
                }
            }
            23..=26 => self.break_something(end),
            _ => Ok(()),
        }
    }

    fn set_faults(&mut self, faults: Faults) {
        if let Some(wire) = self.network.world.wire_mut() {
            wire.set_faults(faults);
        }
    }

    /// A node goes off, or a link is worse for a while, where motes may find other ways.
    fn break_something(&mut self, end: Instant) -> Result<(), String> {
        let (now, nodes) = (self.now(), self.in_mesh);
        let Some(gains) = &self.gains else {
            return Ok(());
        };
        match routing::draw(&mut self.dice, nodes, [now, end]) {
            Some(Breakage::Off(node, len)) if self.network.world.is_on(node) => {
                self.switch_off(node, now + len);
            }
            Some(Breakage::Link(ends, len)) => {
                let span = [now, now + len];
                let changes = routing::link_changes(gains, ends, &mut self.dice, span);
                self.network.world.change_later(changes);
            }
            _ => {}
        }
        Ok(())
    }

    /// Nodes come back whose time has come.
    fn come_back(&mut self) -> Result<(), String> {
        let mut back = Vec::new();
        let note = |_: &Network<'_>, node, _| back.push(node);
        self.outages.pass(&mut self.network, self.arena, note);
        back.into_iter().try_for_each(|node| self.listen(node))
    }

    /// A node forgets everything; the border router too.
    fn reboot(&mut self, node: usize) -> Result<(), String> {
        let limit = self.now() + Duration::from_secs(1);
        let counted = |lab: &Self| Frames::of(lab.network.world.node(node));
        while self.now() < limit {
            let before = counted(self);
            let forged = self.tally.outsiders.forged;
            self.note_forged(node);
            if self.network.reboot(node, self.arena) {
                self.lost_counts.add(&before);
                self.tally.reboots += 1;
                self.sessions.forget(node);
                self.ends[node].tag = 0;
                return self.listen(node);
            }
            self.tally.outsiders.forged = forged;
            let next = self.now() + Duration::from_millis(1);
            self.network.world.run_until(next);
        }
        Ok(())
    }

    // ---- connections ----

    fn draw_end(&mut self, node: usize) -> End<'m> {
        let world = &self.network.world;
        let peer = match self.network.host(0) {
            Some(host) if host != node => self.network.addr(host),
            _ => self.network.addr(0),
        };
        let mss = world.node(node).mss((peer, 0), true).max(64);
        let window = self.dice.scale(64, 8_000) as u16;
        let config = Config {
            rmss: mss.min(world.node(node).rmss((peer, 0), true).max(64)),
            smss: mss,
            rto_min_ms: 200,
            rto_initial_ms: 1_000,
            retransmissions_max: 12,
            syn_retransmissions_max: 6,
            user_timeout_ms: 0,
            ..settings::config(&mut self.dice, window)
        };
        let config = Config {
            ecn: config.ecn || self.tally.all_on > 0,
            ..config
        };
        let places = match node.checked_sub(self.network.mesh_nodes()) {
            Some(_) => [HostOptions::new("").connections, Tables::RELAY.half_open],
            None => self.network.places(node),
        };
        End {
            config: self.arena.alloc(config),
            lender: Lender::new(
                self.arena,
                window,
                self.dice.scale(64, 8_000) as usize,
                (self.seed, node),
            ),
            places,
            lends_early: self.dice.chance(0.5),
            listener: None,
            tag: 0,
        }
    }

    fn listen(&mut self, node: usize) -> Result<(), String> {
        let config = self.ends[node].config;
        let world = &mut self.network.world;
        let listener = world.with_node(node, |stack, _| stack.tcp_mut().listen(None, PORT, config));
        let listener = listener.map_err(|error| format!("listen failed: {error:?}"))?;
        self.ends[node].listener = Some(listener);
        Ok(())
    }

    fn accept(&mut self, node: usize) -> Result<(), String> {
        let Some(listener) = self.ends[node].listener else {
            return Ok(());
        };
        let is_lent = self
            .sessions
            .live()
            .any(|(_, session)| session.host == node && session.is_listening());
        let waits = self.network.world.node(node).tcp().can_accept(listener);
        if !waits && (is_lent || self.is_quiet || !self.ends[node].lends_early) {
            return Ok(());
        }
        let buffers = self.lend(node);
        let accepted = self.network.world.with_node(node, |stack, now| {
            stack.tcp_mut().accept(listener, buffers, now)
        });
        let handle = match accepted {
            Ok(handle) => handle,
            Err(rejected) => {
                self.ends[node].lender.take_back(rejected.buffers);
                return Ok(());
            }
        };
        self.open(node, handle, true)
    }

    /// Buffers for a connection, those of an earlier one where there are some.
    fn lend(&mut self, node: usize) -> Buffers<'m> {
        let lender = &mut self.ends[node].lender;
        for buffers in self.sessions.take_returned(node) {
            lender.take_back(buffers);
        }
        lender.lend()
    }

    fn open(&mut self, node: usize, handle: tcp::Handle, passive: bool) -> Result<(), String> {
        let mut behaviour = Behaviour::draw(&mut self.dice, BYTES_MAX, self.span);
        if self.is_quiet {
            behaviour.hurry(0);
        }
        let now = self.now();
        let kind = (passive, self.ends[node].lender.by_reference);
        let tcp = self.network.world.node(node).tcp();
        self.sessions
            .open((node, handle), behaviour, kind, tcp, now)?;
        Ok(())
    }

    /// Somebody opens a connection to somebody else.
    fn connect(&mut self) -> Result<(), String> {
        let last = self.ends.len() as u32 - 1;
        let (from, to) = (self.dice.range(0, last), self.dice.range(0, last));
        let is_on = |node: u32| self.network.world.is_on(node as usize);
        if from == to || !is_on(from) || !is_on(to) {
            return Ok(());
        }
        let (from, to) = (from as usize, to as usize);
        let buffers = self.lend(from);
        let config = self.ends[from].config;
        let remote = (self.network.addr(to), PORT);
        let opened = self.network.world.with_node(from, |stack, now| {
            stack.connect(remote, buffers, config, now)
        });
        let handle = match opened {
            Ok(handle) => handle,
            Err(rejected) => {
                // A node that has just rebooted may have no address yet, or no room.
                self.ends[from].lender.take_back(rejected.buffers);
                return Ok(());
            }
        };
        self.tally.connects += 1;
        self.open(from, handle, false)
    }

    // ---- the end ----

    fn calm(&mut self) -> Result<(), String> {
        self.is_quiet = true;
        self.set_faults(Faults::NONE);
        self.network.world.set_frame_loss(0.0);
        self.network.world.end_attacks();
        self.sessions.hurry();
        let clock = self.clock();
        for node in 0..self.ends.len() {
            let sessions = &mut self.sessions;
            self.network.world.with_node(node, |stack, _| {
                sessions.stop_listening(node, stack.tcp_mut(), clock)
            })?;
        }
        Ok(())
    }

    fn patience(&self) -> Duration {
        let tries = self.ends.iter().map(|end| {
            let config = end.config;
            u64::from(config.retransmissions_max + 2) * u64::from(config.rto_max_ms)
        });
        let asleep = match self.sleeps {
            true => CALM_ASLEEP,
            false => Duration::ZERO,
        };
        CALM + asleep + Duration::from_millis(tries.max().unwrap_or(0))
    }
}

/// Keeps a lab run's dice apart from those of a pipe.
pub(super) const PURPOSE: u64 = 2;

/// The port that every node listens on.
const PORT: u16 = outsiders::PORT;

/// Bytes that a session sends, at most: seconds of a radio's time.
const BYTES_MAX: u32 = 20_000;

/// How long a mesh may take until everybody has an address: where many frames are lost,
/// solicitations that found no answer come minutes apart (RFC 7559 §2).
const JOIN_MAX: Duration = Duration::from_secs(1_200);

/// The longest time between two looks of applications at their connections.
const STEP: Duration = Duration::from_millis(60);

/// The same while everything comes to its end, which takes TIME-WAIT and more.
const CALM_STEP: Duration = Duration::from_millis(200);

/// Time enough, without faults, to deliver what is left over the slowest path.
const CALM: Duration = Duration::from_secs(900);

/// The same for a mote that sleeps: the most bytes in the smallest windows, each of which takes two
/// polls of two seconds.
const CALM_ASLEEP: Duration = Duration::from_secs(BYTES_MAX as u64 / 64 * 2 * 2);

/// Longer than TIME-WAIT, and than handshakes that nobody ends.
const REST: Duration = Duration::from_secs(1_000);
