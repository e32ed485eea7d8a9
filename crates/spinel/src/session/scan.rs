//! Energy scans: the radio measures one channel at a time.

use motet::time::{Duration, Instant};

use super::{Event, Phase, Refusal, Session};
use crate::frame::Property;
use crate::packed::{Reader, Writer};

/// A scan of one channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    channel: u8,
    period_ms: u16,
    step: Step,
    /// When it is given up; `None` before the radio scans.
    until: Option<Instant>,
}

/// The next request of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Mask,
    Period,
    Start,
    /// Nothing: it scans.
    Running,
}

impl Scan {
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.until
    }
}

impl Session {
    /// Measures the strongest power on a channel, for [`Event::ScanResult`]. Meanwhile the radio
    /// receives nothing and sends nothing.
    ///
    /// `period_ms`: how long to measure.
    ///
    /// # Errors
    /// The radio is not configured, scans already, or does not have the channel.
    pub fn scan(&mut self, channel: u8, period_ms: u16, now: Instant) -> Result<(), Refusal> {
        if self.phase != Phase::Ready {
            return Err(Refusal::NotReady);
        }
        if self.scan.is_some() {
            return Err(Refusal::InProgress);
        }
        if !self.radio.channels.contains(&channel) {
            return Err(Refusal::NoSuchChannel(channel));
        }
        self.scan = Some(Scan {
            channel,
            period_ms,
            step: Step::Mask,
            until: None,
        });
        self.advance(now);
        Ok(())
    }

    /// Whether the radio has begun to scan.
    pub(super) fn is_scanning(&self) -> bool {
        self.scan.is_some_and(|scan| scan.step == Step::Running)
    }

    pub(super) fn next_scan_step(&self) -> Option<(Step, Property, Vec<u8>)> {
        let scan = self.scan.filter(|_| !self.is_flying())?;
        let writer = Writer::new();
        let (property, value) = match scan.step {
            Step::Mask => (Property::MacScanMask, writer.u8(scan.channel)),
            Step::Period => (Property::MacScanPeriod, writer.u16(scan.period_ms)),
            Step::Start => (Property::MacScanState, writer.u8(SCAN_ENERGY)),
            Step::Running => return None,
        };
        Some((scan.step, property, value.finish()))
    }

    /// Handles the answer to a step.
    pub(super) fn on_scan_step(&mut self, step: Step, is_taken: bool, now: Instant) {
        let Some(scan) = self.scan.as_mut().filter(|scan| scan.step == step) else {
            return;
        };
        if !is_taken {
            return self.end_scan(None);
        }
        scan.step = match step {
            Step::Mask => Step::Period,
            Step::Period => Step::Start,
            Step::Start | Step::Running => {
                let period = Duration::from_millis(scan.period_ms.into());
                scan.until = Some(now + period + GRACE);
                Step::Running
            }
        };
    }

    /// Handles the result of a scan.
    pub(super) fn on_scanned(&mut self, value: &[u8]) {
        let mut reader = Reader::new(value);
        let (Some(channel), Some(rssi_dbm)) = (reader.u8(), reader.i8()) else {
            self.counters.malformed += 1;
            return;
        };
        // It may come before the answer to the last step.
        let is_wanted = |scan: &Scan| {
            scan.channel == channel && matches!(scan.step, Step::Start | Step::Running)
        };
        if self.scan.as_ref().is_some_and(is_wanted) {
            self.end_scan(Some(rssi_dbm));
        } else {
            self.counters.unexpected += 1;
        }
    }

    pub(super) fn watch_scan(&mut self, now: Instant) {
        let until = self.scan.and_then(|scan| scan.until);
        if until.is_some_and(|until| now >= until) {
            self.end_scan(None);
        }
    }

    pub(super) fn end_scan(&mut self, rssi_dbm: Option<i8>) {
        if let Some(scan) = self.scan.take() {
            let channel = scan.channel;
            self.events
                .push_back(Event::ScanResult { channel, rssi_dbm });
        }
    }
}

/// Value of the state of a scan: of energy.
const SCAN_ENERGY: u8 = 2;
/// How much longer than its period a scan may take.
const GRACE: Duration = Duration::from_secs(2);
