//! Outsiders during a run: their actions, and the checks that the network recovers from them.
//!
//! Place: `lab` calls this between two steps of the applications. Left out: the random choice of
//! outsiders ([`super::super::outsiders`]); attackers on the air, which are the world's.

use std::net::Ipv6Addr;

use motet::ip::PacketDrop;
use motet::time::{Duration, Instant};
use motet::wire::icmpv6::Message;
use motet::wire::ipv6::Header;

use super::super::dice::Dice;
use super::super::outsiders::{AT_WORK, OutsiderScenario, OutsiderTally, Outsiders};
use super::{Frames, JOIN_MAX, Lab, routing};
use crate::net::outages::Switch;
use crate::net::plan;
use crate::net::run::{self, Next};
use crate::net::strangers::{self, StrangerTraffic};

/// The outsiders at work in this run.
#[derive(Debug)]
pub(super) struct ActiveOutsiders {
    outsiders: Outsiders,
    traffic: Vec<StrangerTraffic>,
    dice: Dice,
    reboot_at: Instant,
    /// When the child is switched off that is off until the faults end.
    dies_at: Option<Instant>,
    kept_out: bool,
    has_died: bool,
}

impl ActiveOutsiders {
    pub(super) fn new(seed: u64, outsiders: Outsiders, span: Duration) -> Self {
        let mut dice = Dice::new(seed, AT_WORK);
        let dies_after = dice.span(span);
        let is_child = outsiders.what == OutsiderScenario::Children;
        Self {
            outsiders,
            traffic: Vec::new(),
            dice,
            reboot_at: Instant::ORIGIN,
            dies_at: is_child.then(|| Instant::ORIGIN + dies_after),
            kept_out: false,
            has_died: false,
        }
    }

    /// Whether a node may take a repeated frame for another one: it has more neighbours than it
    /// remembers, or others speak in their names.
    pub(super) fn confuses(&self) -> bool {
        matches!(
            self.outsiders.what,
            OutsiderScenario::Floor | OutsiderScenario::Forgers
        )
    }

    /// Whether somebody speaks in the names of others and is believed.
    pub(super) fn misleads(&self) -> bool {
        self.outsiders.what == OutsiderScenario::Forgers
    }
}

impl Lab<'_> {
    /// Lets motes join. A mesh that attackers keep from it, for lack of air or of time, forms when
    /// they have gone.
    pub(super) fn join(&mut self) -> Result<(), String> {
        let mut has_joined = self.network.join(JOIN_MAX);
        if let Some(active) = self.active_outsiders.as_mut().filter(|_| !has_joined) {
            active.kept_out = true;
            let misled = match active.misleads() {
                true => routing::REPEATED_WITHIN,
                false => Duration::ZERO,
            };
            self.network.world.end_attacks();
            has_joined = self.network.join(JOIN_MAX + misled);
        }
        if !has_joined {
            return Err(format!(
                "not every mote had joined after {} s",
                JOIN_MAX.as_secs()
            ));
        }
        let now = self.now();
        if let Some(active) = &mut self.active_outsiders {
            let floods = active.outsiders.floods.iter();
            active.traffic = floods
                .map(|flood| StrangerTraffic::new(*flood, now))
                .collect();
            active.dies_at = active.dies_at.map(|at| now + at.since(Instant::ORIGIN));
            let pause = active.outsiders.reboots_every.unwrap_or_default();
            active.reboot_at = now + pause;
        }
        Ok(())
    }

    /// Lets outsiders act, until the faults end.
    pub(super) fn run_outsiders(&mut self, end: Instant) -> Result<(), String> {
        let now = self.now();
        let Some(active) = &mut self.active_outsiders else {
            return Ok(());
        };
        for traffic in &mut active.traffic {
            traffic.send(&mut self.network);
        }
        // Answers to strangers go nowhere.
        while self.network.world.take_packet().is_some() {}
        let dies = active.dies_at.take_if(|at| *at <= now).is_some();
        active.has_died |= dies;
        let pause = active.outsiders.reboots_every;
        let pause = pause.filter(|_| active.reboot_at <= now);
        let relays = self.network.mesh_nodes() as u32 - 1;
        let relay = active.dice.range(1, relays.min(RELAYS)) as usize;
        active.reboot_at = now.max(active.reboot_at) + pause.unwrap_or_default();
        if dies {
            let child = self.network.mesh_nodes() - 1;
            self.switch_off(child, end);
        }
        match pause {
            Some(_) if self.network.world.is_on(relay) => self.reboot(relay),
            _ => Ok(()),
        }
    }

    /// A node is off until then.
    pub(super) fn switch_off(&mut self, node: usize, until: Instant) {
        let before = Frames::of(self.network.world.node(node));
        self.note_forged(node);
        self.lost_counts.add(&before);
        self.tally.reboots += 1;
        self.network.switch_off(node);
        self.sessions.forget(node);
        (self.ends[node].listener, self.ends[node].tag) = (None, 0);
        self.outages.add(until, node, Switch::On);
    }

    /// Keeps what a border router that forgets everything has counted.
    pub(super) fn note_forged(&mut self, node: usize) {
        let counters = self.network.world.node(node).ip().counters;
        let forged = counters.dropped(PacketDrop::ForgedSource);
        self.tally.outsiders.forged += u64::from(forged);
    }

    /// Once outsiders have gone, every mote answers an echo request within so long.
    ///
    /// # Errors
    /// Which mote does not.
    pub(super) fn check_recovery(&mut self) -> Result<(), String> {
        let Some(active) = &self.active_outsiders else {
            return Ok(());
        };
        let forged: u64 = active.traffic.iter().map(StrangerTraffic::forged).sum();
        let refused = self.outsiders().forged;
        if forged != refused {
            return Err(format!(
                "{forged} packets from outside had the address of a mote, and {refused} were refused"
            ));
        }
        // The last host is the one that is asking.
        let host = plan::host_addr(self.network.hosts() - 1);
        for mote in 1..self.network.mesh_nodes() {
            let addr = self.network.addr(mote);
            let until = self.now() + ANSWERS_WITHIN;
            let mut next = self.now();
            let answers = run::run(&mut self.network, until, |network| {
                while let Some(packet) = network.world.take_packet() {
                    if is_answer(&packet, addr) {
                        return Next::Over;
                    }
                }
                let now = network.world.now();
                if now >= next {
                    network.world.inject_packet(&strangers::ping(host, addr));
                    next = now + ASK_EVERY;
                }
                Next::At((now + LOOK_EVERY).min(next))
            });
            if !answers {
                return Err(format!(
                    "mote {mote} does not answer {} s after outsiders have gone",
                    ANSWERS_WITHIN.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// Counts of what outsiders have done.
    pub(super) fn outsiders(&self) -> OutsiderTally {
        let frames = self.network.world.attack_frames();
        let Some(active) = &self.active_outsiders else {
            return OutsiderTally {
                frames,
                ..OutsiderTally::default()
            };
        };
        let counters = self.network.world.node(0).ip().counters;
        let forged = counters.dropped(PacketDrop::ForgedSource);
        let motes = self.network.mesh_nodes() as u64 - 1;
        OutsiderTally {
            runs: 1,
            frames,
            packets: active
                .traffic
                .iter()
                .map(|traffic| traffic.sent() as u64)
                .sum(),
            forged: self.tally.outsiders.forged + u64::from(forged),
            kept_out: u64::from(active.kept_out),
            dead: u64::from(active.has_died),
            densest: match active.outsiders.what {
                OutsiderScenario::Floor => motes,
                _ => 0,
            },
        }
    }
}

/// Whether a packet is a mote's echo reply.
fn is_answer(packet: &[u8], mote: Ipv6Addr) -> bool {
    let parsed = Header::parse(packet).ok();
    parsed.is_some_and(|(header, message)| {
        header.src == mote && matches!(Message::parse(message), Ok(Message::EchoReply(_)))
    })
}

/// The relays that reboot: those beside which strangers are.
const RELAYS: u32 = 3;

/// A mote that sleeps asks once a minute, or every four.
const ANSWERS_WITHIN: Duration = Duration::from_secs(600);

const ASK_EVERY: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(100);
