//! Finding one another: a peripheral advertises, a central scans and connects.
//!
//! Each step is a command, and the next one follows its answer. A refused command begins anew after
//! a while.

use super::event::{Action, Advertisement, DeviceAddr, GapRole, Timing};
use super::{Config, Host, Peer};
use crate::time::{Duration, Instant};
use crate::wire::cursor::copy;

/// The next step of advertising or scanning, or the one under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// The controller has not started.
    Off,
    /// Parameters are to be set.
    Parameters,
    /// The advertising data are to be set.
    Data,
    /// Advertising or scanning is to begin, not before this instant.
    Begin(Instant),
    /// Advertising (a peripheral), or scanning for peripherals (a central).
    Looking,
    /// This device was found, and scanning is to stop.
    Found(DeviceAddr),
    /// Scanning has stopped, and the attempt to connect to this device comes next.
    Connect(DeviceAddr),
    /// An attempt to connect goes on; it is cancelled at this instant.
    Connecting(Instant),
    /// The end of that is on its way.
    Cancelling,
}

impl Gap {
    /// The next command. `is_free`: there is room for a connection.
    pub(super) fn poll(
        &mut self,
        config: &Config,
        is_free: bool,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Action> {
        let is_central = config.role == GapRole::Central;
        match *self {
            Self::Off | Self::Looking | Self::Cancelling => None,
            Self::Parameters if is_central => Some(Action::SetScanParameters {
                interval: SCAN_INTERVAL,
                window: SCAN_INTERVAL,
            }),
            Self::Parameters => Some(Action::SetAdvertisingParameters {
                interval: config.advertising_interval,
            }),
            Self::Data => Some(Action::SetAdvertisingData {
                len: copy(out, &ADVERTISED),
            }),
            Self::Begin(at) if is_free && now >= at => Some(match is_central {
                true => Action::SetScan { is_on: true },
                false => Action::SetAdvertising { is_on: true },
            }),
            Self::Begin(_) => None,
            Self::Found(_) => Some(Action::SetScan { is_on: false }),
            Self::Connect(peer) => Some(Action::Connect {
                peer,
                timing: config.timing,
                event_len: event_len(&config.timing),
            }),
            Self::Connecting(until) if now >= until => Some(Action::CancelConnect),
            Self::Connecting(_) => None,
        }
    }

    /// The answer to the last command.
    pub(super) fn on_answer(&mut self, is_done: bool, role: GapRole, now: Instant) {
        *self = match *self {
            Self::Cancelling | Self::Off => return,
            _ if !is_done => Self::Begin(now + PAUSE),
            Self::Parameters if role == GapRole::Peripheral => Self::Data,
            Self::Parameters | Self::Data => Self::Begin(now),
            Self::Begin(_) => Self::Looking,
            Self::Found(peer) => Self::Connect(peer),
            Self::Connect(_) => Self::Connecting(now + CONNECT_TIMEOUT),
            Self::Connecting(_) => Self::Cancelling,
            Self::Looking => Self::Looking,
        };
    }

    /// A connection was made, or failed: what led to it has ended.
    pub(super) fn on_connected(&mut self, now: Instant) {
        match self {
            Self::Off | Self::Parameters | Self::Data => {}
            _ => *self = Self::Begin(now),
        }
    }

    /// When [`Self::poll`] has something to do.
    pub(super) fn next_deadline(&self, is_free: bool) -> Option<Instant> {
        match *self {
            Self::Begin(at) if is_free => Some(at),
            Self::Connecting(at) => Some(at),
            _ => None,
        }
    }
}

impl Host<'_> {
    /// The connection parameters for a central's connections.
    pub(super) fn timing(&self) -> Timing {
        let interval = self.second.led().unwrap_or_else(|| self.plain_interval());
        self.config.timing.with_interval(interval)
    }

    /// The interval of a central's connections by the settings and, where they allow it, by the
    /// present losses, in units of 1.25 ms.
    pub(crate) fn plain_interval(&self) -> u16 {
        let Config { timing, phy, .. } = self.config;
        if !self.config.is_adaptive {
            return timing.interval;
        }
        let connections = self.connections().count() as u16;
        self.pace.interval(timing.interval, connections, phy)
    }

    /// Whether a central makes intervals shorter because of losses.
    #[cfg(feature = "tcple")]
    pub(crate) const fn is_lossy(&self) -> bool {
        self.config.is_adaptive && self.pace.is_lossy()
    }

    /// A central connects to what carries IPv6 and may be connected to.
    pub(super) fn on_advertised(&mut self, advertisement: &Advertisement<'_>) {
        let is_known = self
            .connections()
            .any(|connection| connection.addr() == advertisement.from);
        let is_wanted = advertisement.is_connectable && carries_ipv6(advertisement.data);
        let is_free = self.peers.iter().any(Peer::is_free);
        if self.gap == Gap::Looking
            && self.config.role == GapRole::Central
            && is_wanted
            && is_free
            && !is_known
        {
            self.gap = Gap::Found(advertisement.from);
        }
    }
}

/// Whether advertising data name the service of IPv6.
fn carries_ipv6(data: &[u8]) -> bool {
    let mut rest = data;
    while let Some((len, after)) = rest.split_first() {
        let Some((field, next)) = after.split_at_checked(usize::from(*len)) else {
            return false;
        };
        if let [SOME_SERVICES | ALL_SERVICES, uuids @ ..] = field {
            let mut uuids = uuids.chunks_exact(2);
            if uuids.any(|uuid| uuid == IPSS) {
                return true;
            }
        }
        rest = next;
    }
    false
}

/// The longest event: its interval, in units of 0.625 ms.
pub(super) const fn event_len(timing: &Timing) -> u16 {
    timing.interval.saturating_mul(2)
}

/// Data types of advertising data: lists of 16-bit UUIDs (Core Supplement Part A §1.1).
const SOME_SERVICES: u8 = 0x02;
const ALL_SERVICES: u8 = 0x03;
/// The Internet Protocol Support Service.
const IPSS: [u8; 2] = 0x1820_u16.to_le_bytes();
/// The advertising data of a peripheral: flags (always discoverable, no BR/EDR, §1.3), and the one
/// service.
const ADVERTISED: [u8; 7] = {
    let [low, high] = IPSS;
    [2, 0x01, 0x06, 3, ALL_SERVICES, low, high]
};

/// A central listens all the time while it looks: 60 ms to each channel.
const SCAN_INTERVAL: u16 = 96;

/// The pause after a refused command.
const PAUSE: Duration = Duration::from_secs(1);

/// How long to try to connect to a device that was heard.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
