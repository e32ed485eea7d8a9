//! The medium: which receiver hears which frame.
//!
//! Purpose: reception is decided at each receiver separately. A receiver sums the power of every
//! frame that reaches it and locks on one preamble at a time. For each stretch of the locked frame
//! with constant interference, the chance of surviving that stretch is multiplied in.
//! Place: radios put frames on it and take what they received; it draws no random number.
//! Left out: propagation delay (0.3 µs per 100 m), Doppler, multipath; a receiver that begins to
//! listen within a preamble does not find it.
//! Sources: IEEE 802.15.4-2006 annex E for errors per stretch of a frame; `phy` names those of the
//! constants.

mod field;
mod paths;
mod receiver;

use std::sync::Arc;

use motet::limits::PSDU_LEN_MAX;
use motet::time::Instant;

use self::field::{Fields, SIGNAL_MAX};
use self::paths::{Packed, Path, Paths};
use self::receiver::{Arrival, Ratios, ReceiverState, sinr};
use crate::air::gains::{Gain, Gains, NEGLIGIBLE_DB};
use crate::air::noise::Noise;
use crate::air::phy;
use crate::air::power::{Power, ratio};

/// The air between all nodes.
#[derive(Debug)]
pub struct Medium {
    /// Paths from each transmitter, by its number.
    paths: Vec<Paths>,
    fields: Fields,
    receivers: Vec<ReceiverState>,
    active: Vec<Option<Active>>,
    /// Transmit power of each node, dBm.
    transmit_dbm: Vec<f64>,
    /// Gains that change once their transmitter is silent.
    later: Vec<(usize, usize, f64)>,
    /// Whether every receiver's chance matters.
    asks_all: bool,
    ratios: Ratios,
}

/// A frame's bytes as on the air: PSDU with FCS, without preamble and length.
///
/// All that a frame passes share them: copies of their own, in each radio, would be in no cache
/// when the next frame comes.
#[derive(Clone)]
pub struct Frame {
    bytes: Arc<[u8]>,
    len: u8,
}

/// A frame on the air, until its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameId(usize);

/// Why a radio does not hear.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deaf {
    /// The radio is switched off.
    Sleeping,
    /// The processor copies a frame into the radio, or prepares to transmit.
    Copying,
    /// The processor copies a received frame out of the radio.
    Unloading,
    /// The radio transmits, or turns around to do so.
    Transmitting,
}

/// The fate of a frame at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// The frame was for nobody in particular, or for a node that is out of range.
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
    /// Received with bit errors.
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
    /// The other changes that the receiver's radio has to hear of.
    pub interest: Interest,
}

/// Which frames for others a radio has to hear of at their end; of most it would only find
/// that they are for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// All: something waits for the end of any frame, or its driver takes every ACK.
    All,
    /// ACKs with this number: it might be meant.
    AcksWith(u8),
    /// No frames.
    Nothing,
}

/// A frame that has left the air.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The transmitting node.
    pub from: usize,
    /// The node that the frame was for, if it was one.
    pub intended: Option<usize>,
    /// The frame's bytes.
    pub frame: Frame,
    /// The frame's fate, unless it arrived: that is for the caller to draw.
    pub fate: Fate,
}

/// One node's place in the air.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The node's transmit power, dBm.
    pub transmit_dbm: f64,
    /// The node's noise floor, dBm.
    pub noise_dbm: f64,
    /// The node's channel.
    pub channel: u8,
}

impl Medium {
    /// The air with these gains and nodes, in the order of the gains; nodes beyond them are not
    /// on the air at all.
    pub fn new(gains: &Gains, placements: &[Placement]) -> Self {
        let mut medium = Self::silent(placements);
        for from in 0..gains.nodes() {
            medium.connect(from, gains.listeners(from));
        }
        medium
    }

    /// The air between nodes of which none hears another yet.
    pub fn silent(placements: &[Placement]) -> Self {
        let noise = |placement: &Placement| Power::from_dbm(placement.noise_dbm);
        Self {
            paths: placements.iter().map(|_| Paths::default()).collect(),
            fields: Fields::new(placements.iter().map(|own| own.channel)),
            receivers: placements
                .iter()
                .map(noise)
                .map(ReceiverState::new)
                .collect(),
            active: Vec::new(),
            transmit_dbm: placements.iter().map(|own| own.transmit_dbm).collect(),
            later: Vec::new(),
            asks_all: true,
            ratios: Ratios {
                co_channel: ratio(phy::CO_CHANNEL_LOSS_DB),
                capture: ratio(phy::CAPTURE_DB),
                sync: ratio(phy::SYNC_SINR_DB),
            },
        }
    }

    /// Adds a transmitter that hears nothing; returns its place.
    pub fn add_transmitter(&mut self, placement: &Placement, listeners: &[Gain]) -> usize {
        let place = self.paths.len();
        self.paths.push(Paths::default());
        self.fields.add(placement.channel);
        self.receivers
            .push(ReceiverState::new(Power::from_dbm(placement.noise_dbm)));
        self.transmit_dbm.push(placement.transmit_dbm);
        self.connect(place, listeners);
        place
    }

    /// Lets these listeners, in ascending order, hear `from`, and nobody else.
    pub fn connect(&mut self, from: usize, listeners: &[Gain]) {
        debug_assert!(
            listeners.is_sorted_by_key(|gain| gain.to),
            "lists of paths ascend"
        );
        let (mut audible, mut faint) = (Vec::new(), Vec::new());
        for gain in listeners {
            let (path, is_audible) = self.path(from, gain.to, gain.db);
            match is_audible {
                true => audible.push(path),
                false => faint.push(path),
            }
        }
        let paths = Paths::new(audible, faint);
        if let Some(place) = self.paths.get_mut(from) {
            *place = paths;
        }
    }

    /// The path with this gain, and whether a preamble is found at its end without any rival.
    fn path(&self, from: usize, to: usize, gain_db: f64) -> (Path, bool) {
        let dbm = self.transmit_dbm.get(from).copied().unwrap_or_default();
        let power = Packed::new(Power::from_dbm(dbm + gain_db).min(SIGNAL_MAX));
        let signal = power.power();
        let noise = self
            .receivers
            .get(to)
            .map_or(Power::ZERO, |receiver| receiver.noise);
        let is_audible = sinr(signal, signal, noise, 1.0) >= self.ratios.sync;
        (Path::new(to, power), is_audible)
    }

    /// Sets the gain by which `to` hears `from` from now on, dB; a frame under way stays as it is.
    pub fn set_gain(&mut self, from: usize, to: usize, gain_db: f64) {
        let mut active = self.active.iter().flatten();
        if active.any(|active| active.from == from) {
            self.later.push((from, to, gain_db));
            return;
        }
        let (path, is_audible) = if gain_db >= NEGLIGIBLE_DB {
            self.path(from, to, gain_db)
        } else {
            (Path::new(to, Packed::default()), false)
        };
        if let Some(paths) = self.paths.get_mut(from) {
            paths.set(path, is_audible);
        }
    }

    /// Sets the power of other systems at `node`.
    pub fn set_noise(&mut self, node: usize, noise: Option<Noise>) {
        if let Some(receiver) = self.receivers.get_mut(node) {
            receiver.replay(noise);
        }
    }

    /// Whether from now on [`Reception::survival`] matters of frames for others, too. Otherwise it
    /// is only right in whether it is below 1, unless the frame is an ACK.
    pub fn ask_all(&mut self, asks_all: bool) {
        self.asks_all = asks_all;
    }

    /// `from` begins to transmit; `intended` is the node the frame is for.
    pub fn start(
        &mut self,
        from: usize,
        frame: Frame,
        intended: Option<usize>,
        now: Instant,
    ) -> FrameId {
        let slot = self.free_slot();
        let channel = self.channel(from);
        let mut fate = self.unheard(from, intended, channel);
        let others_ask = self.asks_all || intended.is_none() || frame.is_ack();
        let Self {
            paths,
            fields,
            receivers,
            active,
            ratios,
            ..
        } = self;
        let paths = &paths[from];
        let (fields, channels) = fields.on(channel);
        paths.faint.each(|to, power| {
            let field = &mut fields[to];
            if let Some(before) = field.add(power) {
                let receiver = &mut receivers[to];
                receiver.settle(before, now, ratios);
                field.set_concern(receiver.concern());
            }
        });
        for path in &paths.audible {
            let (to, power) = (path.to(), path.power());
            let field = &mut fields[to];
            let concerned = field.add(power);
            if channels[to] != channel {
                continue;
            }
            let receiver = &mut receivers[to];
            if let Some(before) = concerned {
                receiver.settle(before, now, ratios);
            }
            let is_mine = intended == Some(to);
            let arrival = Arrival {
                frame: slot,
                power,
                is_asked: others_ask || is_mine,
            };
            let (judged, lost) = receiver.consider(arrival, field.incident(), now, ratios);
            field.set_concern(receiver.concern());
            if is_mine {
                fate = judged;
            }
            if let Some(lost) = lost {
                note_fate(active, lost, to, Fate::Captured);
            }
        }
        self.active[slot] = Some(Active {
            from,
            channel,
            intended,
            others_ask,
            frame,
            fate,
        });
        FrameId(slot)
    }

    /// A place among the frames on the air.
    fn free_slot(&mut self) -> usize {
        let free = self.active.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        })
    }

    /// The fate of a frame from `from` that is not audible at its destination.
    fn unheard(&self, from: usize, intended: Option<usize>, channel: u8) -> Fate {
        match intended {
            Some(to) if self.paths[from].is_faint_to(to) && self.channel(to) == channel => {
                self.receivers[to].deaf.map_or(Fate::TooWeak, Fate::Deaf)
            }
            _ => Fate::Unheard,
        }
    }

    /// The frame's last symbol has passed. Adds each receiver that was locked on it to
    /// `receptions`, except those that received it for certain and whose reception is not needed
    /// ([`Self::ask_all`]).
    pub fn finish(
        &mut self,
        id: FrameId,
        now: Instant,
        receptions: &mut Vec<Reception>,
    ) -> Option<Finished> {
        let active = self.active.get_mut(id.0)?.take()?;
        let Self {
            paths,
            fields,
            receivers,
            ratios,
            asks_all,
            ..
        } = self;
        let paths = &paths[active.from];
        let (fields, _) = fields.on(active.channel);
        let others_ask = *asks_all || active.others_ask;
        paths.faint.each(|to, power| {
            let field = &mut fields[to];
            if let Some(before) = field.take(power) {
                let receiver = &mut receivers[to];
                receiver.settle(before, now, ratios);
                field.set_concern(receiver.concern());
            }
        });
        for path in &paths.audible {
            let (to, power) = (path.to(), path.power());
            let field = &mut fields[to];
            let concerned = field.take(power);
            if field.is_attended() {
                let receiver = &mut receivers[to];
                if let Some(before) = concerned {
                    receiver.settle(before, now, ratios);
                }
                let ended = receiver.lock.take_if(|lock| lock.frame() == id.0);
                field.set_concern(receiver.concern());
                if let Some(lock) = ended {
                    let reception = Reception {
                        at: to,
                        power,
                        survival: lock.survival,
                        intended: active.intended == Some(to),
                        interest: receiver.interest,
                    };
                    if others_ask || reception.has_news() {
                        receptions.push(reception);
                    }
                }
            }
        }
        let Active {
            from,
            intended,
            frame,
            fate,
            ..
        } = active;
        for (from, to, gain_db) in std::mem::take(&mut self.later) {
            self.set_gain(from, to, gain_db);
        }
        Some(Finished {
            from,
            intended,
            frame,
            fate,
        })
    }

    /// `node` hears from now on (`None`), or does not, and why.
    pub fn set_hearing(&mut self, node: usize, deaf: Option<Deaf>, now: Instant) {
        let receiver = &mut self.receivers[node];
        receiver.deaf = deaf;
        let Some(reason) = deaf else { return };
        receiver.settle(self.fields.at(node).incident(), now, &self.ratios);
        let lost = receiver.lock.take();
        self.note_concern(node);
        if let Some(lock) = lost {
            note_fate(&mut self.active, lock.frame(), node, Fate::Deaf(reason));
        }
    }

    /// Which frames for others the radio of `node` has to hear of from now on.
    pub fn set_interest(&mut self, node: usize, interest: Interest) {
        self.receivers[node].interest = interest;
    }

    /// `node` tunes to `channel`, and loses what it was receiving.
    pub fn set_channel(&mut self, node: usize, channel: u8, now: Instant) {
        let deaf = self.receivers[node].deaf;
        self.set_hearing(node, Some(Deaf::Transmitting), now);
        self.receivers[node].deaf = deaf;
        self.fields.tune(node, channel);
        self.note_concern(node);
    }

    /// The channel `node` is tuned to.
    pub fn channel(&self, node: usize) -> u8 {
        self.fields.channel(node)
    }

    /// Whether `node` is locked on a frame.
    pub fn is_receiving(&self, node: usize) -> bool {
        self.receivers[node].lock.is_some()
    }

    /// `node` begins to measure energy.
    pub fn assess(&mut self, node: usize, now: Instant) {
        self.receivers[node].assess(self.fields.at(node).incident(), now, &self.ratios);
        self.note_concern(node);
    }

    /// The energy at `node` since [`Self::assess`]: mean power, noise included, and whether the
    /// node was locked on a frame at the start or is now.
    pub fn assessed(&mut self, node: usize, now: Instant) -> (Power, bool) {
        let measured =
            self.receivers[node].assessed(self.fields.at(node).incident(), now, &self.ratios);
        self.note_concern(node);
        measured
    }

    fn note_concern(&mut self, node: usize) {
        self.fields
            .at(node)
            .set_concern(self.receivers[node].concern());
    }

    /// How strongly `to` hears `from`.
    pub fn power(&self, from: usize, to: usize) -> Option<Power> {
        self.paths.get(from)?.power(to)
    }
}

impl Reception {
    /// Whether anything follows from it, if it is for another node, and that is all one has to know
    /// of it.
    fn has_news(&self) -> bool {
        self.intended || self.survival < 1.0 || self.interest != Interest::Nothing
    }
}

impl Frame {
    /// A frame of these bytes, cut to what a PSDU holds.
    pub fn new(psdu: &[u8]) -> Self {
        let len = psdu.len().min(PSDU_LEN_MAX);
        let bytes = psdu[..len].into();
        // Lossless: it is at most 127.
        let len = len as u8;
        Self { bytes, len }
    }

    /// The frame's first bytes, at most `len`.
    pub(super) fn cut(self, len: usize) -> Self {
        let len = u8::try_from(len).map_or(self.len, |len| len.min(self.len));
        Self { len, ..self }
    }

    fn is_ack(&self) -> bool {
        // IEEE 802.15.4-2006 §7.2.1.1.1: the type is in the lowest three bits.
        self.psdu().first().is_some_and(|first| first & 0b111 == 2)
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

#[derive(Debug)]
struct Active {
    from: usize,
    channel: u8,
    intended: Option<usize>,
    /// Whether the likelihood matters that the frame arrives at nodes that it is not for.
    others_ask: bool,
    frame: Frame,
    fate: Fate,
}

/// Writes down why `node` lost the frame in `slot`, if it was for that node.
fn note_fate(active: &mut [Option<Active>], slot: usize, node: usize, fate: Fate) {
    if let Some(Some(active)) = active.get_mut(slot)
        && active.intended == Some(node)
    {
        active.fate = fate;
    }
}

#[cfg(test)]
#[path = "tests/medium.rs"]
mod tests;
