//! The medium: who hears what, judged at each receiver.
//!
//! Purpose: a frame is lost where it is lost. Each receiver sums the power of every frame
//! that reaches it, locks on one preamble at a time, and each stretch of the locked frame
//! with constant interference takes its own toll.
//! Place: radios put frames on it and take what they received; it draws no random number.
//! Left out: propagation delay (0.3 µs per 100 m), Doppler, multipath; a receiver that
//! begins to listen within a preamble does not find it.
//! Sources: IEEE 802.15.4-2006 annex E for errors per stretch of a frame; `phy` names those
//! of the constants.

use motet::limits::PSDU_LEN_MAX;
use motet::time::Instant;

use crate::gains::Gains;
use crate::phy;
use crate::power::{Power, ratio};

/// The air between all nodes.
#[derive(Debug)]
pub struct Medium {
    /// By transmitter: who hears it, how strongly; ascending.
    paths: Vec<Vec<Path>>,
    /// Of every node, what each frame in earshot touches: kept apart and small, since a frame
    /// reaches hundreds of nodes that can do nothing with it.
    fields: Vec<Field>,
    ears: Vec<Ear>,
    active: Vec<Option<Active>>,
    /// Co-channel interference as a multiple of its power.
    co_channel: f64,
    capture: f64,
    sync: f64,
}

/// A frame's bytes as on the air: PSDU with FCS, without preamble and length.
#[derive(Clone, Copy)]
pub struct Frame {
    bytes: [u8; PSDU_LEN_MAX],
    len: u8,
}

/// A frame on the air, until its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameId(usize);

/// Why a radio does not hear.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deaf {
    /// Switched off.
    Sleeping,
    /// Its processor copies a frame into it, or prepares to transmit.
    Copying,
    /// Its processor copies a received frame out of it.
    Unloading,
    /// It transmits, or turns around to do so.
    Transmitting,
}

/// What became of a frame at the node it was for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// For nobody in particular, or for a node that is out of range.
    Unheard,
    /// Locked on; still coming in.
    Arriving,
    /// The receiver did not hear when it began, or stopped hearing before its end.
    Deaf(Deaf),
    /// The receiver was locked on another frame.
    LockedOnAnother,
    /// A stronger frame took the receiver over.
    Captured,
    /// Too weak against noise and interference to be found.
    TooWeak,
    /// Bit errors.
    Corrupted,
    /// Loss injected by the scenario.
    Injected,
    /// Received without error.
    Received,
}

impl Fate {
    /// How many places a table of all fates needs.
    pub const COUNT: usize = 12;

    /// A place in such a table.
    pub const fn index(self) -> usize {
        match self {
            Self::Unheard => 0,
            Self::Arriving => 1,
            Self::Deaf(Deaf::Sleeping) => 2,
            Self::Deaf(Deaf::Copying) => 3,
            Self::Deaf(Deaf::Unloading) => 4,
            Self::Deaf(Deaf::Transmitting) => 5,
            Self::LockedOnAnother => 6,
            Self::Captured => 7,
            Self::TooWeak => 8,
            Self::Corrupted => 9,
            Self::Injected => 10,
            Self::Received => 11,
        }
    }

    /// A short name for tables, by place.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "unheard",
        "arriving",
        "asleep",
        "deaf: copying",
        "deaf: unloading",
        "transmitting",
        "locked on another",
        "captured",
        "too weak",
        "bit errors",
        "injected",
        "received",
    ];
}

/// A frame that reached the end at a receiver locked on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reception {
    /// The receiver.
    pub at: usize,
    /// How strongly it was heard.
    pub power: Power,
    /// The chance that it has no bit error.
    pub survival: f64,
    /// The frame was for this very node.
    pub intended: bool,
}

/// What a frame that left the air was.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Who sent it.
    pub from: usize,
    /// For whom, if for one node.
    pub intended: Option<usize>,
    /// Its bytes.
    pub frame: Frame,
    /// What became of it, unless it arrived: then that is for the caller to draw.
    pub fate: Fate,
}

/// One node's place in the air.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// Its transmit power, dBm.
    pub transmit_dbm: f64,
    /// Its noise floor, dBm.
    pub noise_dbm: f64,
    /// Its channel.
    pub channel: u8,
}

impl Medium {
    /// The air with these gains and nodes, in the order of the gains.
    pub fn new(gains: &Gains, placements: &[Placement]) -> Self {
        debug_assert_eq!(gains.nodes(), placements.len(), "every node has its gains");
        let sync = ratio(phy::SYNC_SINR_DB);
        let paths = placements
            .iter()
            .enumerate()
            .map(|(from, placement)| {
                let heard = |gain: &crate::gains::Gain| {
                    let power = Power::from_dbm(placement.transmit_dbm + gain.db);
                    let noise = placements.get(gain.to).map_or(Power::ZERO, noise);
                    Path {
                        // Lossless: no world has four thousand million nodes.
                        to: gain.to as u32,
                        is_audible: sinr(power, power, noise, 1.0) >= sync,
                        power,
                    }
                };
                gains.listeners(from).iter().map(heard).collect()
            })
            .collect();
        Self {
            paths,
            fields: placements.iter().map(Field::new).collect(),
            ears: placements.iter().map(Ear::new).collect(),
            active: Vec::new(),
            co_channel: ratio(phy::CO_CHANNEL_LOSS_DB),
            capture: ratio(phy::CAPTURE_DB),
            sync,
        }
    }

    /// `from` begins to transmit; `intended` is the node the frame is for.
    pub fn start(
        &mut self,
        from: usize,
        frame: Frame,
        intended: Option<usize>,
        now: Instant,
    ) -> FrameId {
        let slot = self
            .active
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.active.push(None);
                self.active.len() - 1
            });
        let channel = self.fields[from].channel;
        let mut fate = Fate::Unheard;
        for path in &self.paths[from] {
            let to = path.to as usize;
            let field = &mut self.fields[to];
            if field.channel != channel {
                continue;
            }
            if field.is_attentive {
                self.ears[to].settle(field.incident, now, self.co_channel);
            }
            field.incident += path.power;
            let is_intended = intended == Some(to);
            if !path.is_audible && !is_intended {
                continue;
            }
            let ear = &mut self.ears[to];
            let factors = [self.co_channel, self.capture, self.sync];
            let (judged, lost) = ear.consider(slot, path.power, field.incident, now, factors);
            field.is_attentive = ear.is_attentive();
            if is_intended {
                fate = judged;
            }
            if let Some(lost) = lost {
                note_fate(&mut self.active, lost, to, Fate::Captured);
            }
        }
        self.active[slot] = Some(Active {
            from,
            channel,
            intended,
            frame,
            fate,
        });
        FrameId(slot)
    }

    /// The frame's last symbol has passed; adds everyone who was locked on it to `receptions`.
    pub fn finish(
        &mut self,
        id: FrameId,
        now: Instant,
        receptions: &mut Vec<Reception>,
    ) -> Option<Finished> {
        let active = self.active.get_mut(id.0)?.take()?;
        for path in &self.paths[active.from] {
            let to = path.to as usize;
            let field = &mut self.fields[to];
            if field.channel != active.channel {
                continue;
            }
            if !field.is_attentive {
                field.incident -= path.power;
                continue;
            }
            let ear = &mut self.ears[to];
            ear.settle(field.incident, now, self.co_channel);
            field.incident -= path.power;
            if let Some(lock) = ear.lock.take_if(|lock| lock.frame == id.0) {
                field.is_attentive = ear.is_attentive();
                receptions.push(Reception {
                    at: to,
                    power: path.power,
                    survival: lock.survival,
                    intended: active.intended == Some(to),
                });
            }
        }
        let Active {
            from,
            intended,
            frame,
            fate,
            ..
        } = active;
        Some(Finished {
            from,
            intended,
            frame,
            fate,
        })
    }

    /// `node` hears from now on (`None`), or does not, and why.
    pub fn set_hearing(&mut self, node: usize, deaf: Option<Deaf>, now: Instant) {
        let (ear, field) = (&mut self.ears[node], &mut self.fields[node]);
        ear.deaf = deaf;
        let Some(reason) = deaf else { return };
        ear.settle(field.incident, now, self.co_channel);
        let lost = ear.lock.take();
        field.is_attentive = ear.is_attentive();
        if let Some(lock) = lost {
            note_fate(&mut self.active, lock.frame, node, Fate::Deaf(reason));
        }
    }

    /// `node` tunes to `channel`, and loses what it was receiving.
    pub fn set_channel(&mut self, node: usize, channel: u8, now: Instant) {
        let deaf = self.ears[node].deaf;
        self.set_hearing(node, Some(Deaf::Transmitting), now);
        let mut incident = Power::ZERO;
        for active in self
            .active
            .iter()
            .flatten()
            .filter(|active| active.channel == channel)
        {
            let heard =
                self.paths[active.from].binary_search_by_key(&node, |path| path.to as usize);
            incident += heard.map_or(Power::ZERO, |at| self.paths[active.from][at].power);
        }
        self.ears[node].deaf = deaf;
        let field = &mut self.fields[node];
        field.channel = channel;
        field.incident = incident;
    }

    /// The channel `node` is tuned to.
    pub fn channel(&self, node: usize) -> u8 {
        self.fields[node].channel
    }

    /// Whether `node` is locked on a frame.
    pub fn is_receiving(&self, node: usize) -> bool {
        self.ears[node].lock.is_some()
    }

    /// `node` begins to measure energy.
    pub fn assess(&mut self, node: usize, now: Instant) {
        let (ear, field) = (&mut self.ears[node], &mut self.fields[node]);
        ear.settle(field.incident, now, self.co_channel);
        field.is_attentive = true;
        ear.assessment = Some(Assessment {
            since: now,
            energy: 0,
            carrier: ear.lock.is_some(),
        });
    }

    /// What `node` measured since [`Self::assess`]: mean power, noise included, and whether
    /// it was locked on a frame at the start or is now.
    pub fn assessed(&mut self, node: usize, now: Instant) -> (Power, bool) {
        let (ear, field) = (&mut self.ears[node], &mut self.fields[node]);
        ear.settle(field.incident, now, self.co_channel);
        let Some(assessment) = ear.assessment.take() else {
            return (Power::ZERO, false);
        };
        field.is_attentive = ear.is_attentive();
        let span = now.since(assessment.since).as_micros().max(1);
        let mean = Power::from_attowatts(
            u64::try_from(assessment.energy / u128::from(span)).unwrap_or(u64::MAX),
        );
        (mean + ear.noise, assessment.carrier || ear.lock.is_some())
    }

    /// How strongly `to` hears `from`.
    pub fn power(&self, from: usize, to: usize) -> Option<Power> {
        let paths = self.paths.get(from)?;
        let found = paths
            .binary_search_by_key(&to, |path| path.to as usize)
            .ok()?;
        paths.get(found).map(|path| path.power)
    }
}

impl Frame {
    /// A frame of these bytes, cut to what a PSDU holds.
    pub fn new(psdu: &[u8]) -> Self {
        let len = psdu.len().min(PSDU_LEN_MAX);
        let mut bytes = [0; PSDU_LEN_MAX];
        bytes[..len].copy_from_slice(&psdu[..len]);
        Self {
            bytes,
            len: len as u8,
        }
    }

    /// PSDU, FCS included.
    pub fn psdu(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Frame({:02x?})", self.psdu())
    }
}

#[derive(Clone, Copy, Debug)]
struct Path {
    to: u32,
    /// Whether a preamble is found there at all, without any rival.
    is_audible: bool,
    power: Power,
}

/// The air at one node.
#[derive(Clone, Copy, Debug)]
struct Field {
    /// Everything on its channel that reaches it.
    incident: Power,
    channel: u8,
    /// Locked on a frame or measuring energy: then each change is accounted for.
    is_attentive: bool,
}

impl Field {
    fn new(placement: &Placement) -> Self {
        Self {
            incident: Power::ZERO,
            channel: placement.channel,
            is_attentive: false,
        }
    }
}

fn noise(placement: &Placement) -> Power {
    Power::from_dbm(placement.noise_dbm)
}

#[derive(Debug)]
struct Active {
    from: usize,
    channel: u8,
    intended: Option<usize>,
    frame: Frame,
    fate: Fate,
}

/// One receiver.
#[derive(Debug)]
struct Ear {
    deaf: Option<Deaf>,
    noise: Power,
    lock: Option<Lock>,
    assessment: Option<Assessment>,
    /// Until when lock and assessment have been accounted for.
    settled: Instant,
}

#[derive(Debug)]
struct Lock {
    frame: usize,
    power: Power,
    since: Instant,
    survival: f64,
}

#[derive(Debug)]
struct Assessment {
    since: Instant,
    /// Attowatts times microseconds.
    energy: u128,
    carrier: bool,
}

impl Ear {
    fn new(placement: &Placement) -> Self {
        Self {
            deaf: None,
            noise: noise(placement),
            lock: None,
            assessment: None,
            settled: Instant::ORIGIN,
        }
    }

    fn is_attentive(&self) -> bool {
        self.lock.is_some() || self.assessment.is_some()
    }

    /// Accounts for the time since the last change of interference, in which `incident`
    /// reached it. Need not be called while it is not attentive.
    fn settle(&mut self, incident: Power, now: Instant, co_channel: f64) {
        let from = std::mem::replace(&mut self.settled, now);
        if let Some(assessment) = &mut self.assessment {
            let span = now.since(from.max(assessment.since)).as_micros();
            assessment.energy += u128::from(incident.attowatts()) * u128::from(span);
        }
        let noise = self.noise;
        if let Some(lock) = &mut self.lock {
            let span = now.since(from.max(lock.since + phy::HEADER)).as_micros();
            if span > 0 {
                let sinr = sinr(lock.power, incident, noise, co_channel);
                lock.survival *= phy::survival(sinr, span as f64 / MICROS_PER_BIT);
            }
        }
    }

    /// A frame begins; gives what becomes of it here, and the frame that loses its place.
    fn consider(
        &mut self,
        frame: usize,
        power: Power,
        incident: Power,
        now: Instant,
        [co_channel, capture, sync]: [f64; 3],
    ) -> (Fate, Option<usize>) {
        if let Some(reason) = self.deaf {
            return (Fate::Deaf(reason), None);
        }
        let found = sinr(power, incident, self.noise, co_channel) >= sync;
        let lock = Lock {
            frame,
            power,
            since: now,
            survival: 1.0,
        };
        match &self.lock {
            None if found => {
                self.lock = Some(lock);
                (Fate::Arriving, None)
            }
            None => (Fate::TooWeak, None),
            Some(held) => {
                let stronger = power.attowatts() as f64 >= held.power.attowatts() as f64 * capture;
                if now < held.since + phy::SHR && stronger && found {
                    let lost = held.frame;
                    self.lock = Some(lock);
                    (Fate::Arriving, Some(lost))
                } else {
                    (Fate::LockedOnAnother, None)
                }
            }
        }
    }
}

/// Signal over noise and interference as the error formula wants it; `incident` holds the
/// signal too.
fn sinr(signal: Power, incident: Power, noise: Power, co_channel: f64) -> f64 {
    let interference = incident.saturating_sub(signal).attowatts() as f64 * co_channel;
    signal.attowatts() as f64 / (noise.attowatts().max(1) as f64 + interference)
}

/// Writes down why `node` lost the frame in `slot`, if it was for that node.
fn note_fate(active: &mut [Option<Active>], slot: usize, node: usize, fate: Fate) {
    if let Some(Some(active)) = active.get_mut(slot)
        && active.intended == Some(node)
    {
        active.fate = fate;
    }
}

/// 250 kb/s.
const MICROS_PER_BIT: f64 = 4.0;

#[cfg(test)]
#[path = "tests/medium.rs"]
mod tests;
