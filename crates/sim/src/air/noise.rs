//! Recorded noise, replayed at a receiver.
//!
//! Purpose: realistic interference of other systems, with its bursts: the power that a radio
//! measured while no 802.15.4 frame was on the air.
//! Place: `medium` reads the noise power at an instant; if it exceeds the receiver's own noise, it
//! replaces that.
//! Left out: partial correlation between places: all nodes hear the same noise, or each hears its
//! own.
//! Source: the noise traces of TOSSIM: one sample of RSSI in dBm a line, a thousand a second.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use motet::time::{Duration, Instant};

use crate::air::power::Power;
use crate::files;

/// A recording, repeated for ever.
#[derive(Clone, PartialEq, Debug)]
pub struct Noise {
    samples: Arc<[Power]>,
    /// How far into the recording the origin of time is, µs.
    shift_us: u64,
    /// The recording for the night, and the hours of it.
    night: Option<(Box<Noise>, Hours)>,
}

/// When a recording holds, in hours of the day, 0 to 24.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hours {
    /// First hour in which the recording holds.
    pub from: f64,
    /// Hour at which it stops to hold.
    pub to: f64,
    /// The time of the day at the origin of time.
    pub now: f64,
}

/// The mistake in a recording.
#[derive(Debug)]
pub enum NoiseError {
    /// The file cannot be read.
    Unreadable(std::io::Error),
    /// A line is no sample: its number, counted from 1, and how it begins.
    Line(usize, String),
    /// The file has no sample.
    Empty,
}

impl fmt::Display for NoiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::Line(line, text) => {
                write!(
                    f,
                    "line {line} is {text:?}, but must be a power in dBm from {DBM_MIN} to {DBM_MAX}"
                )
            }
            Self::Empty => f.write_str("has no sample"),
        }
    }
}

impl std::error::Error for NoiseError {}

impl Noise {
    /// Reads a recording, gzipped or not, with `offset_db` added to every sample.
    ///
    /// # Errors
    /// [`NoiseError`]: callers put the file's name before it.
    pub fn read(trace: &[u8], offset_db: f64) -> Result<Self, NoiseError> {
        let plain = files::plain(trace).map_err(NoiseError::Unreadable)?;
        let mut samples = Vec::new();
        for (line, text) in (1..).zip(BufReader::new(plain).lines()) {
            let text = text.map_err(NoiseError::Unreadable)?;
            if text.trim().is_empty() {
                continue;
            }
            let dbm = text.trim().parse().ok();
            let dbm = dbm.filter(|dbm: &f64| (DBM_MIN..=DBM_MAX).contains(dbm));
            let dbm = dbm.ok_or_else(|| NoiseError::Line(line, files::beginning(&text)))?;
            samples.push(Power::from_dbm(dbm + offset_db));
        }
        if samples.is_empty() {
            return Err(NoiseError::Empty);
        }
        Ok(Self {
            samples: samples.into(),
            shift_us: 0,
            night: None,
        })
    }

    /// This recording in these hours of the day, and `night` in the others.
    #[must_use]
    pub fn by_day(self, night: Self, hours: Hours) -> Self {
        Self {
            night: Some((Box::new(night), hours)),
            ..self
        }
    }

    /// This recording from another moment on: `shift` is cut to its length. Hours of the day stay.
    #[must_use]
    pub fn shifted(&self, shift: Duration) -> Self {
        let shift_us = shift.as_micros() % self.len().as_micros();
        let night = self.night.as_ref();
        Self {
            samples: Arc::clone(&self.samples),
            shift_us,
            night: night.map(|(night, hours)| (Box::new(night.shifted(shift)), *hours)),
        }
    }

    /// After which time it repeats.
    pub fn len(&self) -> Duration {
        Duration::from_micros(self.samples.len() as u64 * SAMPLE_US)
    }

    /// Whether the recording has no length; it never is so.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The power at `now`, and when the next sample begins.
    pub fn at(&self, now: Instant) -> (Power, Instant) {
        if let Some((night, hours)) = &self.night
            && !hours.contain(now)
        {
            return night.at(now);
        }
        let place_us = now.as_micros().wrapping_add(self.shift_us);
        let sample = (place_us / SAMPLE_US) as usize % self.samples.len();
        let power = self.samples.get(sample).copied().unwrap_or_default();
        let rest = SAMPLE_US - place_us % SAMPLE_US;
        (power, now + Duration::from_micros(rest))
    }
}

impl Hours {
    fn contain(&self, now: Instant) -> bool {
        let passed_h = now.as_micros() as f64 / HOUR_US;
        (self.from..self.to).contains(&((self.now + passed_h) % 24.0))
    }
}

const HOUR_US: f64 = 3.6e9;

/// A thousand samples a second.
const SAMPLE_US: u64 = 1_000;

/// The least sample, dBm: below what RSSI registers can show.
const DBM_MIN: f64 = -150.0;
const DBM_MAX: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_each_other_and_repeat() {
        let noise = Noise::read(b"-98\n-41\n\n-80\n", 1.0).unwrap();
        let at = |noise: &Noise, us| {
            let (power, next) = noise.at(Instant::from_micros(us));
            (power.dbm().round() as i32, next.as_micros())
        };
        assert_eq!(at(&noise, 0), (-97, 1_000));
        assert_eq!(at(&noise, 1_999), (-40, 2_000));
        assert_eq!(at(&noise, 3_001), (-97, 4_000));
        let later = noise.shifted(Duration::from_micros(3_000 + 1_500));
        assert_eq!(at(&later, 0), (-40, 500));
        assert_eq!(at(&later, 500), (-79, 1_500));
    }

    #[test]
    fn night_is_heard_when_nobody_works() {
        let [day, night] =
            ["-40\n", "-90\n"].map(|line| Noise::read(line.as_bytes(), 0.0).unwrap());
        let hours = Hours {
            from: 8.0,
            to: 18.0,
            now: 6.5,
        };
        let noise = day.by_day(night, hours).shifted(Duration::from_secs(7));
        let at = |hours: f64| {
            let (power, next) = noise.at(Instant::from_micros((hours * HOUR_US) as u64));
            assert!(next.as_micros() as f64 <= hours * HOUR_US + 1_000.0);
            power.dbm().round() as i32
        };
        let heard = [0.0, 1.49, 1.51, 11.49, 11.51, 25.0, 25.51].map(at);
        assert_eq!(heard, [-90, -90, -40, -40, -90, -90, -40]);
    }

    #[test]
    fn broken_lines_are_named() {
        for (text, line) in [("-98\nloud\n", 2), ("-98\n\n900\n", 3), ("nan\n", 1)] {
            let error = Noise::read(text.as_bytes(), 0.0).unwrap_err();
            assert!(
                matches!(error, NoiseError::Line(at, _) if at == line),
                "{text}"
            );
        }
        assert!(matches!(Noise::read(b"\n", 0.0), Err(NoiseError::Empty)));
        let cut = Noise::read(&[0x1f, 0x8b, 8], 0.0);
        assert!(matches!(cut, Err(NoiseError::Unreadable(_))));
    }

    /// One line without an end, which unzips to more than any recording.
    #[test]
    fn a_zipped_line_cannot_fill_the_memory() {
        use std::io::Write as _;
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let block = vec![b'1'; 1 << 20];
        for _ in 0..65 {
            zip.write_all(&block).unwrap();
        }
        let Err(error) = Noise::read(&zip.finish().unwrap(), 0.0) else {
            panic!("read to its end")
        };
        assert!(error.to_string().contains("longer than 64 MiB"), "{error}");
    }
}
