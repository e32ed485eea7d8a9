//! What a capture comes from: a radio co-processor, or a monitor interface of Linux.

use std::time;

use motet::time::Instant;
#[cfg(target_os = "linux")]
use motet_radio::WpanMonitor;
use motet_radio::{Event, SpinelRadio};
#[cfg(target_os = "linux")]
use motet_spinel::{RadioInfo, Received, raw::Flags};

#[cfg(target_os = "linux")]
use crate::real_radio::info_of_linux;
use crate::{error::Error, real_radio::failed};

/// A radio that receives everything.
pub(super) enum Source {
    Rcp(Box<SpinelRadio>),
    /// An interface of Linux, its channel, and what it has handed out.
    #[cfg(target_os = "linux")]
    Monitor(WpanMonitor, u8, Counts),
}

/// What a radio has handed out.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) frames: u64,
    /// Frames that are broken.
    pub(super) broken: u64,
    /// Frames between radio and this program that the line has spoilt.
    pub(super) spoilt: u64,
    /// Restarts of the radio, and times that it was unplugged.
    pub(super) restarts: u64,
}

impl Source {
    /// The monitor of this name.
    ///
    /// # Errors
    /// There is none of use.
    #[cfg(target_os = "linux")]
    pub(super) fn monitor(name: &str, channel: u8) -> Result<(Self, RadioInfo), Error> {
        let monitor = WpanMonitor::open(name, channel).map_err(|error| failed(&error))?;
        let info = info_of_linux(name, monitor.eui64(), channel);
        Ok((Self::Monitor(monitor, channel, Counts::default()), info))
    }

    /// Begins to measure a channel; whether the radio does.
    ///
    /// # Errors
    /// The radio does not have the channel, or cannot measure.
    pub(super) fn scan(
        &mut self,
        channel: u8,
        period_ms: u16,
        now: Instant,
    ) -> Result<bool, Error> {
        match self {
            Self::Rcp(radio) => match radio.scan(channel, period_ms, now) {
                Ok(()) => Ok(true),
                Err(motet_spinel::Refusal::NotReady) => Ok(false),
                Err(refusal) => Err(Error::failed(refusal.to_string())),
            },
            #[cfg(target_os = "linux")]
            Self::Monitor(..) => Err(Error::input(NO_SCAN)),
        }
    }

    /// The next event that is there now.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub(super) fn poll(&mut self, now: Instant) -> Result<Option<Event>, Error> {
        match self {
            Self::Rcp(radio) => radio.poll(now).map_err(|error| failed(&error)),
            #[cfg(target_os = "linux")]
            Self::Monitor(monitor, channel, counts) => {
                let mut buffer = [0; FRAME_MAX];
                loop {
                    let received = monitor.receive(&mut buffer);
                    let received = received.map_err(|error| failed(&error))?;
                    let Some((psdu, is_whole)) = received else {
                        return Ok(None);
                    };
                    let mpdu = psdu.split_last_chunk::<2>().map(|(mpdu, _)| mpdu);
                    if let Some(mpdu) = mpdu.filter(|_| is_whole) {
                        counts.frames += 1;
                        return Ok(Some(Event::Received(heard(mpdu, *channel, now))));
                    }
                    counts.broken += 1;
                }
            }
        }
    }

    /// Waits until there may be an event, or for `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub(super) fn wait(&mut self, timeout: time::Duration, now: Instant) -> Result<(), Error> {
        let waited = match self {
            Self::Rcp(radio) => radio.wait(Some(timeout), &[], now),
            #[cfg(target_os = "linux")]
            Self::Monitor(monitor, ..) => monitor.wait(timeout),
        };
        waited.map_err(|error| failed(&error))
    }

    /// Whether the radio is plugged in.
    pub(super) fn has_line(&self) -> bool {
        match self {
            Self::Rcp(radio) => radio.has_line(),
            #[cfg(target_os = "linux")]
            Self::Monitor(..) => true,
        }
    }

    pub(super) fn counts(&self) -> Counts {
        match self {
            Self::Rcp(radio) => {
                let counters = radio.session().counters();
                let line = counters.line;
                Counts {
                    frames: counters.received,
                    broken: counters.refused + counters.bad_length,
                    spoilt: line.wrong_crc + line.too_long + line.half,
                    restarts: counters.restarts,
                }
            }
            #[cfg(target_os = "linux")]
            Self::Monitor(.., counts) => *counts,
        }
    }
}

/// A frame as a monitor hands it out: with neither strength nor time.
#[cfg(target_os = "linux")]
fn heard(mpdu: &[u8], channel: u8, at: Instant) -> Received {
    Received {
        psdu: mpdu.to_vec(),
        rssi_dbm: RSSI_UNKNOWN,
        lqi: 0,
        channel,
        flags: Flags::default(),
        sfd_us: None,
        at,
    }
}

/// A radio's signal strength where it does not measure it.
pub(super) const RSSI_UNKNOWN: i8 = 127;

/// Why a monitor measures nothing.
#[cfg(target_os = "linux")]
pub(super) const NO_SCAN: &str = "--scan needs a radio co-processor, such as spinel+hdlc+uart://DEVICE: Linux hands out no signal strength";

/// Bytes of a frame, with its FCS.
#[cfg(target_os = "linux")]
const FRAME_MAX: usize = 127;
