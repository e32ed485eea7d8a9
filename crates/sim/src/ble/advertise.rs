//! Legacy advertising, scanning and connecting.
//!
//! A scanner listens to one of three channels at a time, and hears an advertiser when that sends
//! there. Source: Bluetooth Core 5.4 Vol 6 Part B §2.3, §4.4 and §4.5.3.

use std::collections::VecDeque;

use motet::ble::{Action, DeviceAddr, Event, GapRole, Handle, Phy, Timing};
use motet::time::{Duration, Instant};

use super::channel::ChannelMap;
use super::connection::{Connection, End, interval};
use super::phy::T_IFS;
use super::{Air, Due, INVALID_PARAMETERS, NOT_ALLOWED, Report, SUCCESS};
use crate::streams::happens;

/// A device's search for others: advertising or scanning.
#[derive(Debug, Default)]
pub(super) struct Seeking {
    what: Activity,
    /// The interval between advertisements, in units of 0.625 ms.
    advertising_interval: u16,
    scan_interval: u16,
    advertised: Vec<u8>,
    /// The devices heard since scanning began.
    heard: Vec<DeviceAddr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Activity {
    #[default]
    Nothing,
    Advertising(Instant),
    Scanning(Instant),
    Connecting(Wanted),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wanted {
    since: Instant,
    peer: DeviceAddr,
    timing: Timing,
    event_len: u16,
}

impl Air {
    /// A host's command to find others; returns its status.
    pub(super) fn seek(&mut self, at: usize, action: Action, bytes: &[u8], now: Instant) -> u8 {
        self.count_listening(at, now);
        let seeking = &mut self.devices[at].seeking;
        match action {
            Action::SetAdvertisingParameters { interval } => {
                seeking.advertising_interval = interval;
            }
            Action::SetAdvertisingData { .. } => seeking.advertised = bytes.to_vec(),
            Action::SetAdvertising { is_on: true } => {
                seeking.what = Activity::Advertising(now);
                self.advertise_later(at, now, now);
            }
            Action::SetScanParameters { interval, .. } => seeking.scan_interval = interval,
            Action::SetScan { is_on: true } => {
                seeking.heard.clear();
                seeking.what = Activity::Scanning(now);
            }
            Action::SetAdvertising { is_on: false } | Action::SetScan { is_on: false } => {
                seeking.what = Activity::Nothing;
            }
            Action::Connect { timing, .. } if !timing.is_possible() => return INVALID_PARAMETERS,
            Action::Connect {
                peer,
                timing,
                event_len,
            } => {
                seeking.what = Activity::Connecting(Wanted {
                    since: now,
                    peer,
                    timing,
                    event_len,
                });
            }
            Action::CancelConnect => {
                let Activity::Connecting(wanted) = seeking.what else {
                    return NOT_ALLOWED;
                };
                seeking.what = Activity::Nothing;
                let event = Event::Connected {
                    status: CANCELLED,
                    handle: Handle(0),
                    role: GapRole::Central,
                    peer: wanted.peer,
                    timing: wanted.timing,
                };
                self.report(at, Report::Plain(event));
            }
            _ => return NOT_ALLOWED,
        }
        SUCCESS
    }

    /// Counts how long a device has listened since it began to, or since this was counted last.
    fn count_listening(&mut self, at: usize, now: Instant) {
        let device = &mut self.devices[at];
        if let Activity::Scanning(since) | Activity::Connecting(Wanted { since, .. }) =
            &mut device.seeking.what
        {
            device.usage.receive(Phy::Le1M, now.since(*since));
            *since = now;
        }
    }

    /// Plans the next advertisement: after the interval, and up to 10 ms more.
    fn advertise_later(&mut self, device: usize, since: Instant, now: Instant) {
        let interval = self.devices[device].seeking.advertising_interval;
        let interval = Duration::from_micros(625 * u64::from(interval));
        let at = now + interval + self.rng.uniform(DELAY_MAX);
        self.calendar.schedule(at, Due::Advertise { device, since });
    }

    /// A device advertises on all three channels, and listens after each.
    pub(super) fn advertise(&mut self, from: usize, since: Instant, now: Instant) {
        let device = &mut self.devices[from];
        if device.seeking.what != Activity::Advertising(since) {
            return;
        }
        let data = device.seeking.advertised.clone();
        self.advertise_later(from, since, now);
        let device = &mut self.devices[from];
        if device.busy_until > now {
            return;
        }
        device.usage.wakes += 1;
        let time = advertisement_time(data.len());
        for n in 0..3 {
            let at = now + (time + LISTENS).saturating_mul(n);
            let channel = 37 + n as u8;
            let device = &mut self.devices[from];
            device.usage.send(time);
            device.usage.receive(Phy::Le1M, LISTENS);
            self.note_advertisement(at, channel, from, &data);
            for scanner in 0..self.devices.len() {
                if self.hears((from, scanner), (channel, data.len()), at)
                    && self.on_heard(scanner, from, &data, (at + time, channel))
                {
                    return;
                }
            }
        }
    }

    /// Whether a device that scans hears an advertisement on this channel.
    fn hears(
        &mut self,
        (from, scanner): (usize, usize),
        (channel, len): (u8, usize),
        at: Instant,
    ) -> bool {
        let device = &self.devices[scanner];
        let listens = matches!(
            device.seeking.what,
            Activity::Scanning(_) | Activity::Connecting(_)
        );
        if !listens || device.busy_until > at {
            return false;
        }
        let interval = 625 * u64::from(device.seeking.scan_interval.max(4));
        let turn = (at.as_micros() / interval % 3) as u8;
        if turn != channel - 37 {
            return false;
        }
        let injected = self.conditions.advertising_error;
        // The address goes before the data.
        let sent = (6 + len, Phy::Le1M);
        let error = self.signal.error((from, scanner), injected, sent, at);
        !happens(&mut self.rng, error)
    }

    /// A scanner has received an advertisement; returns whether that makes a connection.
    fn on_heard(
        &mut self,
        scanner: usize,
        from: usize,
        data: &[u8],
        (at, channel): (Instant, u8),
    ) -> bool {
        let addr = self.devices[from].addr;
        let rssi = self.signal.told((scanner, from));
        let seeking = &mut self.devices[scanner].seeking;
        match seeking.what {
            Activity::Scanning(_) if !seeking.heard.contains(&addr) => {
                seeking.heard.push(addr);
                self.report(scanner, Report::Advertised(addr, rssi, data.to_vec()));
                false
            }
            Activity::Connecting(wanted) if wanted.peer == addr => {
                self.count_listening(scanner, at);
                self.connect((scanner, from), &wanted, at + T_IFS, channel);
                true
            }
            _ => false,
        }
    }

    /// The central answers an advertisement, at `at`: a connection begins.
    fn connect(&mut self, devices: (usize, usize), wanted: &Wanted, at: Instant, channel: u8) {
        let (central, peripheral) = devices;
        let sent_at = at + CONNECT_TIME;
        let earliest = sent_at + WINDOW_DELAY;
        let (anchor, slot) = self.first_anchor(central, &wanted.timing, earliest);
        let access_address = self.rng.next_u32();
        let crc_init = self.rng.next_u32() & 0x00ff_ffff;
        let ends = [central, peripheral].map(|device| End::new(device, anchor));
        let number = self.connections.len();
        self.connections.push(Connection {
            ends,
            access_address,
            crc_init,
            map: ChannelMap::ALL,
            timing: wanted.timing,
            event_len: Duration::from_micros(625 * u64::from(wanted.event_len)),
            phy: Phy::Le1M,
            counter: 0,
            anchor,
            event: None,
            proposed: None,
            change: None,
            waiting: VecDeque::new(),
            phy_wanted: Phy::Le1M,
            slot,
            skipped: 0,
            synchronised_at: anchor,
            drift_rest: 0,
            is_over: false,
        });
        self.note_connect(number, at, (channel, anchor.since(earliest)));
        self.devices[central].usage.send(CONNECT_TIME);
        self.devices[peripheral]
            .usage
            .receive(Phy::Le1M, CONNECT_TIME);
        self.calendar
            .schedule(anchor, Due::Anchor { connection: number });
        let roles = [
            (central, peripheral, GapRole::Central),
            (peripheral, central, GapRole::Peripheral),
        ];
        for (device, other, role) in roles {
            self.devices[device].seeking.what = Activity::Nothing;
            let event = Event::Connected {
                status: 0,
                handle: Handle(number as u16),
                role,
                peer: self.devices[other].addr,
                timing: wanted.timing,
            };
            self.report(device, Report::Plain(event));
        }
    }

    /// From an instant to the first one at which a central has its part of the interval for a
    /// connection.
    pub(super) fn wait_for_slot(
        &self,
        central: usize,
        slot: usize,
        timing: &Timing,
        earliest: Instant,
    ) -> Duration {
        let parts = self.devices[central].profile.connections.max(1);
        let interval = interval(timing).as_micros();
        let phase = interval * slot as u64 / parts as u64;
        let since = self.by_clock_of(central, earliest) % interval;
        Duration::from_micros((phase + interval - since) % interval)
    }

    /// When a connection's first event begins: in the part of the central's interval that is free,
    /// so that its events do not meet those of its other connections.
    fn first_anchor(&self, central: usize, timing: &Timing, earliest: Instant) -> (Instant, usize) {
        let parts = self.devices[central].profile.connections.max(1);
        let live = self.connections.iter();
        let taken: Vec<usize> = live
            .filter(|found| found.is_of(central))
            .map(|found| found.slot)
            .collect();
        let slot = (0..parts).find(|slot| !taken.contains(slot)).unwrap_or(0);
        let wait = self.wait_for_slot(central, slot, timing, earliest);
        (earliest + wait, slot)
    }
}

/// How long an advertisement is on the air: header, address, data.
pub(super) fn advertisement_time(data_len: usize) -> Duration {
    Duration::from_micros(8 * (1 + 4 + 2 + 6 + data_len as u64 + 3))
}

/// The most that an advertisement is later than its interval.
const DELAY_MAX: Duration = Duration::from_millis(10);

/// How long an advertiser listens for an answer: to a packet's access address, after the gap.
const LISTENS: Duration = Duration::from_micros(150 + 80);

/// A request for a connection: 34 bytes.
pub(super) const CONNECT_TIME: Duration = Duration::from_micros(8 * (1 + 4 + 2 + 34 + 3));

/// From the request to the window in which the first event begins.
const WINDOW_DELAY: Duration = Duration::from_micros(1_250);

/// "Unknown connection identifier": connecting was cancelled.
const CANCELLED: u8 = 0x02;
