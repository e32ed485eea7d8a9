//! The world: nodes, air and wire under one clock.
//!
//! Purpose: takes the next event, delivers it to its node, carries out the nodes' actions, and
//! notes each node's next deadline.
//! Place: a caller builds nodes over memory of its own and hands them in; it then runs the world to
//! an instant, in virtual time at once or paced by its wall clock, and calls nodes as their
//! application in between.
//! Left out: threads. A world is one run; runs are independent of each other.

mod agenda;
mod attackers;
mod bluetooth;
mod drive;
mod joiner;
mod observe;
mod passage;
mod port;
mod processor;
mod reception;
mod security;
mod thread;

use std::collections::BTreeSet;

use motet::ip::{self, Ip};
use motet::mac;
use motet::node::{self, Node};
use motet::time::{Instant, earliest};

use crate::air::census::Sent;
use crate::air::energy::Energy;
use crate::air::gains::{Gain, Gains, Later};
use crate::air::medium::{Frame, Medium, Reception};
use crate::air::noise::Noise;
use crate::air::radio::{Radio, Usage};
use crate::air::{Air, End, Event, LinkTally};
use crate::apps::App;
use crate::capture::Capture;
use crate::net::fairness::Fairness;
use crate::net::wire::Wire;
use crate::streams::{Draws, Purpose};
use crate::thread::Router;

use self::agenda::{Agenda, Turn};
use self::attackers::Attacker;
use self::bluetooth::Bluetooth;
pub use self::joiner::{Joiner, PledgeState, RegistrarState};
use self::port::{Attached, Attachments, Kind, Places, radio_at};
pub use self::port::{BlePort, Port, RadioPort};
use self::processor::Work;
use self::security::SecurityState;

/// A node as it enters a world.
#[derive(Debug)]
pub struct Resident<'m> {
    /// The node's stack.
    pub node: Node<'m>,
    /// How its interfaces are attached, in any order.
    pub ports: Vec<Port>,
    /// The application that runs on the node.
    pub app: App<'m>,
}

/// The conditions of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Every random choice follows from it.
    pub seed: u64,
    /// The chance that a frame received without error is lost nevertheless, ACKs included.
    pub frame_loss: f64,
}

/// Nodes, air and wire.
#[derive(Debug)]
pub struct World<'m> {
    air: Air,
    /// The air of Bluetooth LE, where a node has a controller.
    ble: Option<Bluetooth>,
    places: Places,
    motes: Vec<Mote<'m>>,
    agenda: Agenda,
    attackers: Vec<Attacker>,
    attacks_ended: bool,
    /// Nodes that are never switched on.
    left_out: BTreeSet<usize>,
    wire: Option<Wire>,
    /// The router that makes the border router fair, if there is one.
    fairness: Option<Fairness>,
    frame_loss: f64,
    /// Whether a node is a Thread router.
    has_thread: bool,
    /// Whether frames survive interference, and injected loss.
    survivals: Draws,
    losses: Draws,
    receptions: Vec<Reception>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Mote<'m> {
    node: Node<'m>,
    ports: Vec<Attached>,
    apps: Vec<App<'m>>,
    /// When the node is called again because its processor was busy.
    resumes: Option<Instant>,
    /// Whether the node is switched off: then nothing reaches it, and it does nothing.
    is_off: bool,
    /// The node's cipher time, and the counters that it has stored.
    security: SecurityState,
    /// The Thread router that is in the place of the stack.
    thread: Option<Box<Router>>,
    /// The work that the node's processor has been charged with.
    work: Work,
}

impl<'m> World<'m> {
    /// A world of these residents; `gains` speaks of their first radios by the order of the
    /// residents, wired ones included, and then of all further radios in the same order.
    pub fn new(
        residents: Vec<Resident<'m>>,
        gains: &Gains,
        wire: Option<Wire>,
        conditions: Conditions,
    ) -> Self {
        let places = Places::of(&residents);
        let medium = Medium::new(gains, &places.placements(&residents));
        let air = Air::new(medium, places.addresses(&residents));
        let mut ble = Bluetooth::of(&residents, conditions);
        let draws = |purpose| Draws::new(conditions.seed, purpose, residents.len());
        let (survivals, losses) = (draws(Purpose::Reception), draws(Purpose::FrameLoss));
        let attachments = &mut Attachments::default();
        let agenda = Agenda::new(residents.len());
        let motes = residents
            .into_iter()
            .enumerate()
            .map(|(at, resident)| Mote::new(at, resident, (&places, attachments), conditions.seed))
            .collect();
        if let Some(ble) = &mut ble {
            ble.nodes = std::mem::take(&mut attachments.devices);
        }
        let mut world = Self {
            air,
            ble,
            places,
            motes,
            agenda,
            attackers: Vec::new(),
            attacks_ended: false,
            left_out: BTreeSet::new(),
            wire,
            fairness: None,
            frame_loss: conditions.frame_loss,
            has_thread: false,
            survivals,
            losses,
            receptions: Vec::new(),
            buffer: vec![0; BUFFER_LEN],
        };
        world.air.medium.ask_all(conditions.frame_loss > 0.0);
        for mote in 0..world.motes.len() {
            world
                .air
                .calendar
                .schedule(Instant::ORIGIN, Event::Resume { mote });
        }
        world
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.air.calendar.now()
    }

    /// When something happens next, unless a caller does something first.
    pub fn next_event_at(&self) -> Option<Instant> {
        let ble = self.ble.as_ref().and_then(|ble| ble.air.next_at());
        earliest(self.air.calendar.next_at(), ble)
    }

    /// Lets everything happen that is due up to `until`, and moves time there.
    pub fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
        self.air.calendar.advance_to(until);
        if let Some(ble) = &mut self.ble {
            ble.air.advance_to(until);
        }
    }

    /// Lets the next event happen if it is due by `until`; returns whether there was one.
    pub fn step(&mut self, until: Instant) -> bool {
        if self.ble.is_some() && self.step_ble(until) {
            return true;
        }
        let Some((now, event)) = self.air.calendar.pop_until(until) else {
            return false;
        };
        match event {
            Event::Deadline { mote } => match self.agenda.turn(mote, now) {
                Turn::Due => self.drive(mote, now),
                Turn::Later(at) => self.air.calendar.schedule(at, Event::Deadline { mote }),
                Turn::Overtaken => {}
            },
            Event::Resume { mote } => {
                self.motes[mote].resumes = None;
                self.drive(mote, now);
            }
            Event::Radio { place, due } => {
                let mote = self.places.node(place);
                if let Some(radio) = radio_at(&mut self.motes, &self.places, place) {
                    radio.on_due(due, &mut self.air, now);
                    self.drive_if_told(mote, now);
                }
            }
            Event::FrameEnd { id } => self.end_frame(id, now),
            Event::Gain(change) => {
                let Later { from, to, db, .. } = *change;
                self.air.medium.set_gain(from, to, db);
            }
            Event::Packet(parcel) => self.arrive(*parcel, now),
            Event::Attack { attacker } => self.attack(attacker, now),
            Event::Release => {
                if let Some(fairness) = &mut self.fairness {
                    fairness.on_due(now);
                }
                self.release(now);
            }
        }
        true
    }

    /// Lets these listeners, in ascending order, hear `from`, and nobody else.
    pub fn connect(&mut self, from: usize, listeners: &[Gain]) {
        self.air.medium.connect(from, listeners);
    }

    /// Lets gains change when their time comes.
    pub fn change_later(&mut self, changes: Vec<Later>) {
        for change in changes {
            self.air
                .calendar
                .schedule(change.at, Event::Gain(Box::new(change)));
        }
    }

    /// Sets the noise of other systems at a node.
    pub fn set_noise(&mut self, mote: usize, noise: Option<Noise>) {
        self.air.medium.set_noise(mote, noise);
    }

    /// A packet from the outside enters the wire.
    pub fn inject_packet(&mut self, packet: &[u8]) {
        self.carry(End::Outside, packet, self.now());
    }

    /// The next packet that has reached the outside.
    pub fn take_packet(&mut self) -> Option<Box<[u8]>> {
        self.wire.as_mut()?.take_outside()
    }

    /// A packet from the caller enters a tapped node by its wire: from a transport that is not
    /// this stack's, or a host that is no node of this world.
    pub fn inject_at(&mut self, mote: usize, packet: &[u8]) {
        self.deliver(mote, packet, self.now());
    }

    /// The next packet that a tapped node has sent down its wire.
    pub fn take_at(&mut self, mote: usize) -> Option<Box<[u8]>> {
        let mut ports = self.motes[mote].ports.iter_mut();
        ports.find_map(|port| match &mut port.kind {
            Kind::Tap(sent) => sent.pop_front(),
            _ => None,
        })
    }

    /// The next order to a radio outside, with the bytes that it speaks of: of a node with a port
    /// [`Port::Outside`].
    pub fn take_order(&mut self, mote: usize) -> Option<(mac::Action, Box<[u8]>)> {
        let mut ports = self.motes[mote].ports.iter_mut();
        ports.find_map(|port| match &mut port.kind {
            Kind::Outside(orders) => orders.pop_front(),
            _ => None,
        })
    }

    /// Tells such a node what that radio reports.
    pub fn hear(&mut self, mote: usize, event: mac::Event<'_>) {
        let now = self.now();
        let Mote { node, ports, .. } = &mut self.motes[mote];
        let is_there = |port: &&Attached| matches!(port.kind, Kind::Outside(_));
        if let Some(port) = ports.iter().find(is_there) {
            node.on_event(port.interface, node::Event::Mesh(event), now);
        }
        self.drive(mote, now);
    }

    /// A frame from the caller goes on the air at the place of a node, which does not know of
    /// it: an attacker's. Nothing happens while that node's own radio is at work; returns
    /// whether it went.
    ///
    /// `psdu`: with its FCS, at most 127 bytes.
    pub fn transmit_at(&mut self, mote: usize, psdu: &[u8]) -> bool {
        let may = self.places.port(mote).is_some() && self.may_reboot(mote);
        if may {
            let now = self.now();
            self.air.transmit(mote, Frame::new(psdu), None, now);
        }
        may
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.motes.len()
    }

    /// A node, to look at.
    pub fn node(&self, mote: usize) -> &Node<'m> {
        &self.motes[mote].node
    }

    /// Lets the caller act as the application of a node, which then does what follows.
    pub fn with_node<T>(
        &mut self,
        mote: usize,
        act: impl FnOnce(&mut Node<'m>, Instant) -> T,
    ) -> T {
        let now = self.now();
        let result = act(&mut self.motes[mote].node, now);
        self.drive(mote, now);
        result
    }

    /// The chance from now on that a frame received without error is lost nevertheless.
    pub fn set_frame_loss(&mut self, frame_loss: f64) {
        self.frame_loss = frame_loss;
        self.air.medium.ask_all(frame_loss > 0.0);
        if let Some(ble) = &mut self.ble {
            ble.air.set_error(frame_loss);
        }
    }

    /// Whether a node may reboot now: nothing is under way between it and its radio.
    pub fn may_reboot(&self, mote: usize) -> bool {
        let mut radios = self.motes[mote].radios();
        radios.all(|radio| radio.is_idle(self.now()))
    }

    /// Replaces a node by one that has just started, as after a reboot. Its applications' state is
    /// lost.
    pub fn reboot(&mut self, mote: usize, node: Node<'m>) {
        debug_assert!(
            self.may_reboot(mote),
            "nothing of before reaches the new node"
        );
        self.motes[mote].node = node;
        self.power_ble(mote, false);
        self.power_ble(mote, true);
        self.set_app(mote, App::None);
    }

    /// Switches a node off at once: a frame that it sends breaks off, and what runs on it waits
    /// to begin anew. Gives back the stack, which has lost nothing but its connections: a node
    /// that starts in its place may have its memory.
    pub fn switch_off(&mut self, at: usize) -> Node<'m> {
        let now = self.now();
        let Self { air, motes, .. } = self;
        let mote = &mut motes[at];
        mote.is_off = true;
        if let Some(joiner) = &mut mote.security.joiner {
            joiner.rest();
        }
        for app in &mut mote.apps {
            app.switch_off(&mut mote.node);
        }
        for radio in mote.ports.iter_mut().filter_map(Attached::radio_mut) {
            radio.switch_off(air, now);
        }
        let node = std::mem::replace(&mut mote.node, absent(now));
        self.agenda.plan(at, None, now);
        self.power_ble(at, false);
        node
    }

    /// Switches a node on again with a stack that has just started, its first radio on
    /// `channel`. It must have been off for [`OFF_MIN`](crate::air::radio::OFF_MIN).
    pub fn switch_on(&mut self, mote: usize, node: Node<'m>, channel: u8) {
        let now = self.now();
        let Self { air, motes, .. } = self;
        let switched = &mut motes[mote];
        switched.node = node;
        switched.is_off = false;
        if let Some(router) = &mut switched.thread {
            router.restart();
        }
        for app in &mut switched.apps {
            app.switch_on(now);
        }
        for radio in switched.ports.iter_mut().filter_map(Attached::radio_mut) {
            radio.switch_on(channel, air, now);
        }
        self.power_ble(mote, true);
        self.drive(mote, now);
    }

    /// Whether a node is switched on, as all are at first.
    pub fn is_on(&self, mote: usize) -> bool {
        !self.motes[mote].is_off
    }

    /// Notes nodes that nobody waits for: they are off from the start to the end.
    pub(crate) fn leave_out(&mut self, nodes: BTreeSet<usize>) {
        self.left_out = nodes;
    }

    /// Whether a node is never switched on.
    pub fn is_left_out(&self, mote: usize) -> bool {
        self.left_out.contains(&mote)
    }

    /// The application of a node, before anything added.
    pub fn app(&self, mote: usize) -> &App<'m> {
        &self.motes[mote].apps[0]
    }

    /// Gives a node something to run, instead of what it ran so far.
    pub fn set_app(&mut self, mote: usize, app: App<'m>) {
        self.motes[mote].apps = vec![app];
        self.drive(mote, self.now());
    }

    /// Gives a node something more to run; its place among [`Self::apps`].
    pub fn add_app(&mut self, mote: usize, app: App<'m>) -> usize {
        let apps = &mut self.motes[mote].apps;
        if let [App::None] = apps[..] {
            apps.clear();
        }
        apps.reserve_exact(1);
        apps.push(app);
        let place = apps.len() - 1;
        self.drive(mote, self.now());
        place
    }

    /// Everything that runs on a node, in the order of adding; never empty.
    pub fn apps(&self, mote: usize) -> &[App<'m>] {
        &self.motes[mote].apps
    }

    /// The tally of each link, by sender and receiver, in order.
    pub fn links(&self) -> impl Iterator<Item = ((usize, usize), LinkTally)> {
        let ble = self.ble.iter().flat_map(Bluetooth::links);
        self.air
            .links()
            .map(|(link, tally)| (link, *tally))
            .chain(ble)
    }

    /// Frames for nobody in particular, and ACKs that nobody is known to have waited for.
    pub fn broadcasts(&self) -> u64 {
        self.air.broadcasts
    }

    /// Counts from now on what frames carry.
    pub fn take_census(&mut self) {
        self.air.census.get_or_insert_default();
    }

    /// Notes from now on which nonces are on the air.
    pub fn take_nonces(&mut self) {
        self.air.nonces.get_or_insert_default();
    }

    /// How many nonces were of two frames since [`Self::take_nonces`], and how many there were.
    pub fn nonces(&self) -> (u64, usize) {
        let nonces = self.air.nonces.as_ref();
        nonces.map_or((0, 0), |nonces| (nonces.repeated, nonces.count()))
    }

    /// The frames that a node has sent by its first radio since [`Self::take_census`].
    pub fn sent(&self, mote: usize) -> Sent {
        let census = self.air.census.as_ref();
        census.map_or(Sent::default(), |census| census.sent(mote))
    }

    /// How long a node's first radio was in each state.
    pub fn usage(&self, mote: usize) -> Option<Usage> {
        let radio = self.motes[mote].radios().next()?;
        Some(radio.usage(self.now()))
    }

    /// The energy that a node's first radio, and the processor for it, have used so far.
    pub fn energy(&self, mote: usize) -> Option<Energy> {
        let radio = self.motes[mote].radios().next()?;
        Some(radio.energy(self.now()))
    }

    /// The wire, if there is one.
    pub fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// The wire, to give it a capture.
    pub fn wire_mut(&mut self) -> Option<&mut Wire> {
        self.wire.as_mut()
    }

    /// Writes every frame of the mesh to `capture` from now on, or every packet of Bluetooth LE's
    /// air, as its records are; `None` ends that.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        let is_of_ble = capture.as_ref().is_some_and(Capture::is_of_bluetooth);
        match &mut self.ble {
            Some(ble) if is_of_ble => ble.air.set_capture(capture),
            _ => self.air.set_capture(capture),
        }
    }

    /// Writes every frame of the mesh to `capture` from now on, be there another air or not.
    #[cfg(all(feature = "captures", feature = "firmware"))]
    pub(crate) fn set_mesh_capture(&mut self, capture: Capture) {
        self.air.set_capture(Some(capture));
    }

    /// Takes the capture of the air back, to finish it.
    pub fn take_capture(&mut self) -> Option<Capture> {
        let of_ble = self.ble.as_mut().and_then(|ble| ble.air.take_capture());
        of_ble.or_else(|| self.air.take_capture())
    }
}

impl<'m> Mote<'m> {
    /// When the node wants to be called though nothing new has come.
    fn next_deadline(&self) -> Option<Instant> {
        let apps = self.apps.iter().filter_map(App::next_deadline).min();
        let joins = self.security.joiner.as_ref().and_then(Joiner::deadline);
        let thread = self
            .thread
            .as_ref()
            .and_then(|router| router.next_deadline());
        earliest(
            earliest(earliest(self.node.next_deadline(), apps), joins),
            thread,
        )
    }

    /// Whether no application could have spoken to its node.
    fn is_quiet(&self) -> bool {
        matches!(self.apps[..], [App::None])
    }

    /// The node's radios, in the order of its ports.
    fn radios(&self) -> impl Iterator<Item = &Radio> {
        self.ports.iter().filter_map(Attached::radio)
    }

    /// `places`: the radios' on the air, and what the nodes before have been attached to.
    fn new(
        at: usize,
        resident: Resident<'m>,
        (places, attachments): (&Places, &mut Attachments),
        seed: u64,
    ) -> Self {
        let Resident { node, ports, app } = resident;
        Self {
            node,
            ports: places.attach(at, &ports, attachments, seed),
            apps: vec![app],
            resumes: None,
            is_off: false,
            security: SecurityState::default(),
            thread: None,
            work: Work::default(),
        }
    }
}

/// A stack in the place of that of a node which is switched off.
fn absent<'m>(now: Instant) -> Node<'m> {
    let ip = Ip::new(ip::Config::default(), &mut []);
    Node::without_tcp(&mut [], ip, motet::random::Rng::from_seed([0; 2]), now)
}

/// The longest packet of a wire, and more than any frame.
const BUFFER_LEN: usize = 2_048;
