//! A sensor's readings, which wait in a queue until a batch of them is there.
//!
//! Purpose: what the applications of TCPlp's anemometer have in common, whatever carries the
//! readings. Once a batch is there the queue is emptied; until then it grows, and while the
//! transport is slower than the sensor it overflows: such a reading is lost, and counted. Left out:
//! storage that outlasts a power cut. Source: `TCPlp` §9.2 and §9.3.

use std::collections::VecDeque;

use motet::random::Rng;
use motet::time::{Duration, Instant};

use super::messages::{MESSAGE_LEN_MIN, filler};

/// The readings of a sensor: how often, how long, and how many may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sensor {
    /// Bytes of a reading, at least [`MESSAGE_LEN_MIN`].
    pub reading_len: usize,
    /// Time from one reading to the next.
    pub interval: Duration,
    /// Readings that the queue has room for.
    pub queue: usize,
    /// Readings that wait before any is sent; one: each is sent at once.
    pub batch: usize,
}

impl Sensor {
    /// The anemometer of `TCPlp` §9.2, over TCP.
    pub const ANEMOMETER: Self = Self {
        reading_len: 82,
        interval: Duration::from_secs(1),
        queue: 64,
        batch: 64,
    };
}

/// One reading of a sensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Counted from 0, lost ones too.
    pub number: u32,
    /// When the reading was made.
    pub made_at: Instant,
}

/// The queue of readings that wait to be sent.
#[derive(Debug)]
pub struct Backlog {
    sensor: Sensor,
    next: Instant,
    until: Instant,
    waiting: VecDeque<Reading>,
    is_drained: bool,
    /// Readings made so far.
    pub made: u32,
    /// How many of these readings found the queue full.
    pub lost: u32,
}

impl Reading {
    /// Appends its bytes, `len` of them: as a message that [`super::messages::Server`] reads.
    pub fn emit(&self, len: usize, bytes: &mut Vec<u8>) {
        let head = self.number.to_be_bytes().into_iter();
        let head = head.chain(self.made_at.as_micros().to_be_bytes());
        let body = (MESSAGE_LEN_MIN..len).map(|place| filler(self.number, place));
        bytes.extend(head.chain(body).take(len));
    }

    /// Reads it back; none where a byte is another one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (made_at, body) = rest.split_first_chunk()?;
        let number = u32::from_be_bytes(*number);
        let mut body = (MESSAGE_LEN_MIN..).zip(body);
        let is_whole = body.all(|(place, byte)| *byte == filler(number, place));
        is_whole.then_some(Self {
            number,
            made_at: Instant::from_micros(u64::from_be_bytes(*made_at)),
        })
    }
}

impl Backlog {
    /// The first reading comes within one interval from `from`: motes are not in step.
    pub fn new(sensor: Sensor, from: Instant, rng: &mut Rng) -> Self {
        let sensor = Sensor {
            reading_len: sensor.reading_len.max(MESSAGE_LEN_MIN),
            interval: sensor.interval.max(Duration::from_micros(1)),
            ..sensor
        };
        Self {
            sensor,
            next: from + rng.uniform(sensor.interval),
            until: Instant::from_micros(u64::MAX),
            waiting: VecDeque::new(),
            is_drained: false,
            made: 0,
            lost: 0,
        }
    }

    /// Makes none from `until` on.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = until;
        self
    }

    /// The sensor that fills the queue.
    pub fn sensor(&self) -> &Sensor {
        &self.sensor
    }

    /// When the next reading is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        (self.next < self.until).then_some(self.next)
    }

    /// The node was off: no reading was made meanwhile, and what waited is gone.
    pub(super) fn switch_on(&mut self, now: Instant) {
        self.waiting.clear();
        self.is_drained = false;
        while self.next <= now {
            self.next += self.sensor.interval;
        }
    }

    /// Makes the readings that are due; returns whether any were.
    pub fn make(&mut self, now: Instant) -> bool {
        let before = self.made;
        while let Some(made_at) = self.next_deadline().filter(|due| *due <= now) {
            let number = self.made;
            self.made += 1;
            self.next += self.sensor.interval;
            if self.waiting.len() >= self.sensor.queue {
                self.lost += 1;
                continue;
            }
            self.waiting.push_back(Reading { number, made_at });
            self.is_drained |= self.waiting.len() >= self.sensor.batch;
        }
        self.made != before
    }

    /// The next reading to be sent, if a batch is there or what is left of one.
    pub fn take(&mut self) -> Option<Reading> {
        if !self.is_drained {
            return None;
        }
        let reading = self.waiting.pop_front();
        self.is_drained = !self.waiting.is_empty();
        reading
    }

    /// Readings that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(queue: usize, batch: usize) -> Backlog {
        let sensor = Sensor {
            queue,
            batch,
            ..Sensor::ANEMOMETER
        };
        Backlog::new(sensor, Instant::ORIGIN, &mut Rng::from_seed([1, 2]))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(seconds)
    }

    #[test]
    fn a_batch_goes_once_it_is_whole_and_takes_what_comes_meanwhile() {
        let mut backlog = backlog(8, 4);
        assert!(backlog.make(at(3)));
        assert_eq!((backlog.waiting(), backlog.take()), (3, None));
        backlog.make(at(4));
        let numbers = |backlog: &mut Backlog, count: usize| -> Vec<u32> {
            let taken = std::iter::from_fn(|| backlog.take());
            taken.take(count).map(|reading| reading.number).collect()
        };
        assert_eq!(numbers(&mut backlog, 3), [0, 1, 2]);
        backlog.make(at(6));
        assert_eq!(numbers(&mut backlog, 9), [3, 4, 5]);
        backlog.make(at(8));
        assert_eq!(backlog.take(), None, "another batch begins");
        assert_eq!((backlog.made, backlog.lost), (8, 0));
    }

    #[test]
    fn a_reading_that_finds_the_queue_full_is_lost_and_counted() {
        let mut backlog = backlog(4, 4);
        backlog.make(at(7));
        assert_eq!((backlog.made, backlog.lost, backlog.waiting()), (7, 3, 4));
        assert_eq!(backlog.take().map(|reading| reading.number), Some(0));
        backlog.make(at(8));
        let last = std::iter::from_fn(|| backlog.take()).last();
        assert_eq!(last.map(|reading| reading.number), Some(7));
    }

    #[test]
    fn a_reading_comes_back_as_it_was_and_no_other() {
        let reading = Reading {
            number: 77,
            made_at: at(5),
        };
        let mut bytes = Vec::new();
        reading.emit(82, &mut bytes);
        assert_eq!((bytes.len(), Reading::parse(&bytes)), (82, Some(reading)));
        bytes[40] ^= 1;
        assert_eq!(Reading::parse(&bytes), None);
        assert_eq!(Reading::parse(&bytes[..11]), None);
    }
}
