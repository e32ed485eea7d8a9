//! A radio at this machine: how `sniff`, `mote` and `router --radio` start it, the clock that it is
//! driven by, and its errors in the command's words.

use std::time::{self, SystemTime};

use motet::time::{Duration, Instant};
use motet_radio::{BadUrl, RadioUrl, SpinelRadio};
#[cfg(target_os = "linux")]
use motet_radio::{MacRadio, NodeRadio, WpanRadio};
use motet_spinel::{RadioInfo, Settings};

use crate::{error::Error, interrupt::Interrupt};

/// A clock that never jumps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: time::Instant,
    /// What it showed then.
    start: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub(crate) fn from_zero() -> Self {
        Self::from(Instant::ORIGIN)
    }

    /// A clock that shows the time of day, since 1970.
    pub(crate) fn of_day() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let micros = epoch.unwrap_or_default().as_micros();
        Self::from(Instant::from_micros(u64::try_from(micros).unwrap_or(0)))
    }

    fn from(start: Instant) -> Self {
        Self {
            started: time::Instant::now(),
            start,
        }
    }

    pub(crate) fn now(self) -> Instant {
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.start + Duration::from_micros(micros)
    }
}

/// The radio co-processor with this URL, once it is ready; none where a signal came first.
///
/// # Errors
/// There is no such radio, or none of use.
pub(crate) fn start(
    url: &RadioUrl,
    settings: Settings,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Option<(SpinelRadio, RadioInfo)>, Error> {
    let mut radio = SpinelRadio::open(url, settings).map_err(|error| failed(&error))?;
    match radio.start(|| clock.now(), || interrupt.has_come()) {
        Ok(info) => Ok(Some((radio, info))),
        Err(motet_radio::Error::GivenUp) => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// The radio of a node with this URL, once it is ready, and its description; none where a signal
/// came first. `is_secured`: the node's frames have link security; `sleeps`: it sleeps.
///
/// # Errors
/// The URL is none; there is no such radio, or none of use.
#[cfg(target_os = "linux")]
pub(crate) fn start_for_node(
    url: &str,
    settings: Settings,
    (is_secured, sleeps): (bool, bool),
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Option<(NodeRadio, RadioInfo)>, Error> {
    let (radio, info) = match parse(url)? {
        RadioUrl::Wpan { interface } => {
            let radio = WpanRadio::open(&interface, settings.channel, settings.pan);
            let radio = radio.map_err(|error| failed(&error))?;
            let info = info_of_linux(&interface, radio.eui64(), settings.channel);
            (NodeRadio::Wpan(Box::new(radio)), info)
        }
        url => {
            let Some((radio, info)) = start(&url, settings, clock, interrupt)? else {
                return Ok(None);
            };
            (NodeRadio::Rcp(Box::new(MacRadio::new(radio))), info)
        }
    };
    let fits = radio.check(is_secured, sleeps);
    fits.map_err(|error| failed(&error))?;
    Ok(Some((radio, info)))
}

/// The description of an interface of Linux, which has no firmware to ask.
#[cfg(target_os = "linux")]
pub(crate) fn info_of_linux(interface: &str, eui64: [u8; 8], channel: u8) -> RadioInfo {
    RadioInfo {
        firmware: format!("Linux's {interface}"),
        eui64,
        channels: vec![channel],
        ..RadioInfo::default()
    }
}

/// # Errors
/// It is no URL of a radio.
pub(crate) fn parse(url: &str) -> Result<RadioUrl, Error> {
    let url = url.parse();
    url.map_err(|error: BadUrl| Error::input(format!("--radio: {error}")))
}

/// A radio's error as the command's.
pub(crate) fn failed(error: &motet_radio::Error) -> Error {
    match error.is_input() {
        true => Error::input(error.to_string()),
        false => Error::failed(error.to_string()),
    }
}
