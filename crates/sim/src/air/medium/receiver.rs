//! One receiver: the frame that it is locked on, its measurements, and the effect of interference.

use std::num::NonZeroU32;

use motet::time::Instant;

use super::field::Concern;
use super::paths::Packed;
use super::{Deaf, Fate, Interest};
use crate::air::noise::Noise;
use crate::air::phy;
use crate::air::power::Power;

/// One receiver. A line of cache: each frame in earshot of hundreds of nodes touches them.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ReceiverState {
    pub(super) lock: Option<Lock>,
    pub(super) noise: Power,
    /// Until when lock and assessment have been accounted for.
    settled: Instant,
    pub(super) deaf: Option<Deaf>,
    pub(super) interest: Interest,
    is_assessing: bool,
    is_replaying: bool,
    /// [`Arrival::is_asked`] for the frame that it is locked on.
    is_asked: bool,
    rare: Box<Rare>,
}

/// The state that most frames do not touch.
#[derive(Debug, Default)]
struct Rare {
    /// The recorded noise of other systems, where it is louder.
    replayed: Option<Noise>,
    assessment: Assessment,
}

/// The frame that a receiver is locked on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    slot: NonZeroU32,
    /// The incident power, this signal included, up to which no bit is wrong; or the highest value
    /// if the chance of arrival is not needed any more.
    calm: Packed,
    pub(super) power: Power,
    since: Instant,
    /// The chance that no bit is wrong so far. If the chance itself is not needed, only that of the
    /// first stretch with interference.
    pub(super) survival: f64,
}

/// A frame that begins at a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The frame's place among those on the air.
    pub(super) frame: usize,
    pub(super) power: Power,
    /// Whether anybody asks how likely it arrives, and not only whether that is certain.
    pub(super) is_asked: bool,
}

#[derive(Debug, Default)]
struct Assessment {
    since: Instant,
    /// Energy since then, in attowatts times microseconds.
    energy: u128,
    carrier: bool,
}

/// Ratios that decide what is received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratios {
    /// Co-channel interference as a multiple of its power.
    pub(super) co_channel: f64,
    pub(super) capture: f64,
    pub(super) sync: f64,
}

impl Lock {
    /// The place of its frame among those on the air.
    pub(super) fn frame(&self) -> usize {
        self.slot.get() as usize - 1
    }

    /// Whether a span changes nothing in which `incident` reaches the receiver.
    fn is_calm_under(&self, incident: Power) -> bool {
        incident <= self.calm.power()
    }

    /// A span with this chance has passed.
    fn endure(&mut self, survival: f64, is_asked: bool) {
        self.survival *= survival;
        if self.survival < 1.0 && !is_asked {
            self.calm = Packed::MAX;
        }
    }
}

impl ReceiverState {
    pub(super) fn new(noise: Power) -> Self {
        Self {
            lock: None,
            noise,
            settled: Instant::ORIGIN,
            deaf: None,
            interest: Interest::All,
            is_assessing: false,
            is_replaying: false,
            is_asked: false,
            rare: Box::default(),
        }
    }

    /// Which changes of interference have to be accounted for.
    pub(super) fn concern(&self) -> Concern {
        match &self.lock {
            _ if self.is_assessing => Concern::ALL,
            // Most neighbours are too faint to cause errors: their frames do not end the present
            // stretch.
            Some(lock) => Concern::above(lock.calm.power()),
            None => Concern::NONE,
        }
    }

    pub(super) fn replay(&mut self, noise: Option<Noise>) {
        self.is_replaying = noise.is_some();
        self.rare.replayed = noise;
    }

    /// Begins to measure energy.
    pub(super) fn assess(&mut self, incident: Power, now: Instant, ratios: &Ratios) {
        self.settle(incident, now, ratios);
        self.is_assessing = true;
        self.rare.assessment = Assessment {
            since: now,
            energy: 0,
            carrier: self.lock.is_some(),
        };
    }

    /// The measurement since [`Self::assess`]: mean power, noise included, and whether the receiver
    /// was locked on a frame at the start or is now.
    pub(super) fn assessed(
        &mut self,
        incident: Power,
        now: Instant,
        ratios: &Ratios,
    ) -> (Power, bool) {
        self.settle(incident, now, ratios);
        if !std::mem::take(&mut self.is_assessing) {
            return (Power::ZERO, false);
        }
        let assessment = &self.rare.assessment;
        let span = now.since(assessment.since).as_micros().max(1);
        let mean = u64::try_from(assessment.energy / u128::from(span)).unwrap_or(u64::MAX);
        let carrier = assessment.carrier || self.lock.is_some();
        (Power::from_attowatts(mean), carrier)
    }

    /// Accounts for the time since the last change of interference, in which `incident`
    /// reached it. Need be called only at changes that are of its [`Self::concern`].
    pub(super) fn settle(&mut self, incident: Power, now: Instant, ratios: &Ratios) {
        let mut from = std::mem::replace(&mut self.settled, now);
        if !self.is_replaying {
            self.account(incident, self.noise, [from, now], ratios);
            return;
        }
        while from < now && (self.lock.is_some() || self.is_assessing) {
            let (noise, until) = self.noise_at(from);
            let until = until.min(now);
            self.account(incident, noise, [from, until], ratios);
            from = until;
        }
    }

    /// The same for a span of constant noise.
    fn account(
        &mut self,
        incident: Power,
        noise: Power,
        [from, until]: [Instant; 2],
        ratios: &Ratios,
    ) {
        if self.is_assessing {
            let assessment = &mut self.rare.assessment;
            let span = until.since(from.max(assessment.since)).as_micros();
            assessment.energy += u128::from((incident + noise).attowatts()) * u128::from(span);
        }
        if let Some(lock) = &mut self.lock
            && !lock.is_calm_under(incident)
        {
            let span = until.since(from.max(lock.since + phy::HEADER)).as_micros();
            if span > 0 {
                let sinr = sinr(lock.power, incident, noise, ratios.co_channel);
                let survival = phy::survival(sinr, span as f64 / MICROS_PER_BIT);
                lock.endure(survival, self.is_asked);
            }
        }
    }

    /// The noise at `now`, and when it changes.
    fn noise_at(&self, now: Instant) -> (Power, Instant) {
        match &self.rare.replayed {
            None => (self.noise, Instant::from_micros(u64::MAX)),
            Some(replayed) => {
                let (power, until) = replayed.at(now);
                (power.max(self.noise), until)
            }
        }
    }

    /// A frame begins; returns its fate here, and the frame that loses its place.
    pub(super) fn consider(
        &mut self,
        Arrival {
            frame,
            power,
            is_asked,
        }: Arrival,
        incident: Power,
        now: Instant,
        ratios: &Ratios,
    ) -> (Fate, Option<usize>) {
        if let Some(reason) = self.deaf {
            return (Fate::Deaf(reason), None);
        }
        let noise = if self.is_replaying {
            self.noise_at(now).0
        } else {
            self.noise
        };
        let found = sinr(power, incident, noise, ratios.co_channel) >= ratios.sync;
        // Lossless: so many frames are never on the air at a time.
        let slot = NonZeroU32::MIN.saturating_add(frame as u32);
        let calm = match self.is_replaying {
            true => Power::ZERO,
            false => calm(power, noise, ratios.co_channel),
        };
        let lock = Lock {
            slot,
            calm: Packed::new(calm),
            power,
            since: now,
            survival: 1.0,
        };
        match &self.lock {
            None if found => {
                self.lock = Some(lock);
                self.is_asked = is_asked;
                (Fate::Arriving, None)
            }
            None => (Fate::TooWeak, None),
            Some(held) => {
                let least = held.power.attowatts() as f64 * ratios.capture;
                let stronger = power.attowatts() as f64 >= least;
                if now < held.since + phy::SHR && stronger && found {
                    let lost = held.frame();
                    self.lock = Some(lock);
                    self.is_asked = is_asked;
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
pub(super) fn sinr(signal: Power, incident: Power, noise: Power, co_channel: f64) -> f64 {
    let interference = incident.saturating_sub(signal).attowatts() as f64 * co_channel;
    signal.attowatts() as f64 / (noise.attowatts().max(1) as f64 + interference)
}

/// The highest incident power, this signal included, at which `phy` gives no bit error. Zero if
/// noise alone causes errors.
fn calm(signal: Power, noise: Power, co_channel: f64) -> Power {
    let tolerated = signal.attowatts() as f64 / phy::ERROR_FREE_SINR * ROUNDED_DOWN;
    let interference = (tolerated - noise.attowatts().max(1) as f64) / co_channel;
    match interference >= 0.0 {
        true => signal + Power::from_attowatts(interference as u64),
        false => Power::ZERO,
    }
}

/// Keeps the result of [`calm`] below that of [`sinr`], however either is rounded.
const ROUNDED_DOWN: f64 = 1.0 - 1e-9;

/// The duration of a bit, µs, at 250 kb/s (IEEE 802.15.4, O-QPSK).
const MICROS_PER_BIT: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_fits_a_line_of_cache() {
        assert_eq!(size_of::<ReceiverState>(), 64);
    }

    #[test]
    fn whatever_counts_as_calm_is_free_of_errors() {
        let co_channel = crate::air::power::ratio(phy::CO_CHANNEL_LOSS_DB);
        for step in 0..8_000 {
            let signal = Packed::new(Power::from_dbm(-105.0 + f64::from(step) * 0.01)).power();
            let noise = Power::from_dbm(-101.4);
            let incident = Packed::new(calm(signal, noise, co_channel)).power();
            let sinr = |incident| sinr(signal, incident, noise, co_channel);
            let alone = sinr(signal);
            if incident == Power::ZERO {
                assert!(alone < phy::ERROR_FREE_SINR * 1.000_001, "{signal:?}");
                continue;
            }
            assert!(incident >= signal, "{signal:?}");
            assert!(phy::is_error_free(sinr(incident)), "{signal:?}");
            let louder = incident + Power::from_attowatts(incident.attowatts() / 1_000 + 4);
            assert!(!phy::is_error_free(sinr(louder)), "{signal:?}");
        }
    }
}
