//! The link layer of Bluetooth LE: devices with controllers, and the air between them.
//!
//! Purpose: what a controller does below HCI, packet by packet: advertising and connecting,
//! connection events, acknowledgement and repetition, the procedures that change a connection, and
//! buffers that are reported as they become free. Place: the caller passes in the commands of a
//! [`motet::ble::Host`], lets due events happen, and passes each device's reports back to its host.
//! Left out: other systems on the air, and packets of other connections: each connection draws its
//! own losses. Encryption; only the length of its MIC may be added. Extended advertising, the coded
//! PHY and channel selection algorithm #1. Clocks are exact; a peripheral still starts to listen as
//! early as the allowed clock error requires.
//!
//! Source: Bluetooth Core 5.4 Vol 6 Part B.

mod advertise;
mod capture;
pub mod channel;
mod clocks;
mod connection;
mod control;
pub mod energy;
pub mod estimate;
mod events;
mod packets;
pub mod phy;
mod power;
mod signal;

use std::collections::{BTreeMap, VecDeque};

use motet::ble::{Action, Advertisement, DeviceAddr, Event, Handle};
use motet::random::Rng;
use motet::time::{Duration, Instant};

use crate::calendar::Calendar;
use crate::capture::Capture;
use advertise::Seeking;
pub use capture::{Arrival, Packet};
use channel::DATA_CHANNELS;
use connection::{CENTRAL, Connection, PERIPHERAL};
use energy::Usage;
use signal::Signal;

/// The conditions on the air.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditions {
    /// The chance that a packet on each data channel has an error.
    pub errors: [f64; DATA_CHANNELS as usize],
    /// The same probability for advertisements.
    pub advertising_error: f64,
    /// The chance that a central drops a packet that it received, as though its CRC were wrong.
    pub dropped_by_central: f64,
    /// Whether data packets have a MIC, as encrypted ones do: four bytes more.
    pub has_mic: bool,
}

impl Conditions {
    /// An air on which each packet has this chance of an error.
    pub const fn with_error(error: f64) -> Self {
        Self {
            errors: [error; DATA_CHANNELS as usize],
            advertising_error: error,
            dropped_by_central: 0.0,
            has_mic: false,
        }
    }
}

/// The settings of a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// The longest data packet that it takes from its host, bytes.
    pub packet_len: u16,
    /// Data packets that it holds.
    pub packets: u8,
    /// From a packet's end on the air to the host, and from the host to the packets that may leave.
    pub host_delay: Duration,
    /// The pause that the radio needs between two connection events.
    pub dead_time: Duration,
    /// How far its clock may be off, parts in a million.
    pub clock_ppm: u32,
    /// Connections that it plans for as a central: each has a part of the interval.
    pub connections: usize,
    /// Whether a buffer is filled again only once it is empty: its packets are reported as
    /// completed together, when the last of them is taken out to be sent.
    pub refills_when_empty: bool,
}

impl Profile {
    /// A nRF52840 with host and controller on one chip, for one connection: two packets of the MTU
    /// in its buffers.
    pub const NRF52840: Self = Self {
        packet_len: 251,
        packets: 12,
        host_delay: Duration::from_micros(100),
        dead_time: Duration::from_micros(300),
        clock_ppm: 50,
        connections: 1,
        refills_when_empty: false,
    };
}

/// Devices on one air.
#[derive(Debug)]
pub struct Air {
    calendar: Calendar<Due>,
    devices: Vec<Device>,
    connections: Vec<Connection>,
    conditions: Conditions,
    signal: Signal,
    rng: Rng,
    capture: Option<Capture>,
    /// The packets that an observer has not seen yet, if there is one.
    packets: Option<Vec<Packet>>,
    tallies: BTreeMap<(usize, usize), Tally>,
}

/// Packets with a payload from one device to another, each attempt counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// All packets on the air.
    pub packets: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// Packets that had been sent before.
    pub repeated: u64,
    /// Packets that came with an error, or were not heard because of one.
    pub lost: u64,
    /// Packets sent while the other device did not listen.
    pub unattended: u64,
    /// Packets of the link layer that keep the connection going and carry none of its data.
    pub controls: u64,
    /// How long the packets in `controls` were on the air, µs.
    pub controls_us: u64,
}

/// One device, with its controller.
#[derive(Debug)]
struct Device {
    addr: DeviceAddr,
    profile: Profile,
    seeking: Seeking,
    reports: VecDeque<(Instant, Report)>,
    /// When the radio will have done what it is doing.
    busy_until: Instant,
    usage: Usage,
    is_off: bool,
    /// How much slower its clock is than it should be.
    drift_ppm: i32,
}

/// A report of a controller, with its bytes.
#[derive(Clone, Debug)]
pub enum Report {
    /// All events that bring none.
    Plain(Event<'static>),
    /// [`Event::Data`].
    Data(Handle, bool, Vec<u8>),
    /// [`Event::Advertised`].
    Advertised(DeviceAddr, i8, Vec<u8>),
}

impl Report {
    /// Hands the event over.
    pub fn tell<T>(&self, to: impl FnOnce(Event<'_>) -> T) -> T {
        match self {
            Self::Plain(event) => to(*event),
            Self::Data(handle, is_first, bytes) => to(Event::Data {
                handle: *handle,
                is_first: *is_first,
                bytes,
            }),
            Self::Advertised(from, rssi, data) => to(Event::Advertised(Advertisement {
                from: *from,
                is_connectable: true,
                rssi: *rssi,
                data,
            })),
        }
    }
}

/// An event of the simulation, at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    /// A device advertises, unless it has begun to do so anew since.
    Advertise { device: usize, since: Instant },
    /// A connection event begins, at its anchor point.
    Anchor { connection: usize },
    /// A packet begins in a connection event, from this end.
    Begin { connection: usize, end: usize },
    /// A packet from this end is over.
    End { connection: usize, end: usize },
    /// Data of a host were accepted, or an event waits for a host.
    Report,
}

/// How strong signals are where nothing else is said, dBm: devices in one room.
pub const RSSI_DBM: f64 = -50.0;

impl Air {
    /// An air with these devices, whose controllers have just been reset.
    pub fn new(devices: &[(DeviceAddr, Profile)], conditions: Conditions, rng: Rng) -> Self {
        let device = |&(addr, profile): &(DeviceAddr, Profile)| Device {
            addr,
            profile,
            seeking: Seeking::default(),
            reports: VecDeque::new(),
            busy_until: Instant::ORIGIN,
            usage: Usage::default(),
            is_off: false,
            drift_ppm: 0,
        };
        let mut air = Self {
            calendar: Calendar::new(),
            devices: devices.iter().map(device).collect(),
            connections: Vec::new(),
            conditions,
            signal: Signal::new(RSSI_DBM, 0.0, rng.clone()),
            rng,
            capture: None,
            packets: None,
            tallies: BTreeMap::new(),
        };
        (0..air.devices.len()).for_each(|device| air.report_started(device));
        air
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.calendar.now()
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.calendar.next_at()
    }

    /// Changes how often packets have errors from now on.
    pub fn set_conditions(&mut self, conditions: Conditions) {
        self.conditions = conditions;
    }

    /// Writes each packet to `capture`, of link type 256, from now on.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.capture = capture;
    }

    /// Takes the capture back, to finish it.
    pub fn take_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    /// Keeps each packet from now on for [`Self::take_packets`], or none any more.
    pub fn observe(&mut self, is_observed: bool) {
        self.packets = is_observed.then(Vec::new);
    }

    /// The packets since the last time, for an observer.
    pub fn take_packets(&mut self) -> Vec<Packet> {
        self.packets
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// The tally of packets from each device to each other one, by sender and receiver, in order.
    pub fn tallies(&self) -> impl Iterator<Item = ((usize, usize), &Tally)> {
        self.tallies.iter().map(|(link, tally)| (*link, tally))
    }

    /// Changes the chance that a packet has an error, on all channels.
    pub fn set_error(&mut self, error: f64) {
        self.conditions.errors = [error; DATA_CHANNELS as usize];
        self.conditions.advertising_error = error;
    }

    /// Changes the chance that a central drops a packet that it received.
    pub fn set_dropped_by_central(&mut self, part: f64) {
        self.conditions.dropped_by_central = part;
    }

    /// How strong signals are at every receiver from now on, dBm, and by how much that varies, dB.
    pub fn set_signal(&mut self, mean_dbm: f64, sigma_db: f64, rng: Rng) {
        self.signal = Signal::new(mean_dbm, sigma_db, rng);
    }

    /// Whether data packets have a MIC from now on.
    pub fn set_mic(&mut self, has_mic: bool) {
        self.conditions.has_mic = has_mic;
    }

    /// Moves time to `at`, at most to what happens next.
    pub fn advance_to(&mut self, at: Instant) {
        self.calendar.advance_to(at);
    }

    /// The usage of a device's radio.
    pub fn usage(&self, device: usize) -> Usage {
        self.devices[device].usage
    }

    /// Lets the next thing happen if it is due by `until`, else moves time there; returns whether
    /// there was one.
    pub fn step(&mut self, until: Instant) -> bool {
        let Some((now, due)) = self.calendar.pop_until(until) else {
            self.calendar.advance_to(until);
            return false;
        };
        match due {
            Due::Advertise { device, since } => self.advertise(device, since, now),
            Due::Anchor { connection } => self.begin_event(connection, now),
            Due::Begin { connection, end } => self.begin_packet(connection, end, now),
            Due::End { connection, end } => self.end_packet(connection, end, now),
            Due::Report => {}
        }
        true
    }

    /// The next report of a device that is due.
    pub fn poll_report(&mut self, device: usize) -> Option<Report> {
        let now = self.now();
        let reports = &mut self.devices[device].reports;
        let (_, report) = reports.pop_front_if(|(at, _)| *at <= now)?;
        Some(report)
    }

    /// Whether [`Self::poll_report`] has something now.
    pub fn has_report(&self, device: usize) -> bool {
        let front = self.devices[device].reports.front();
        front.is_some_and(|(at, _)| *at <= self.now())
    }

    /// Carries out an action of a device's host; `bytes`: the data that the action refers to.
    pub fn command(&mut self, device: usize, action: Action, bytes: &[u8]) {
        let now = self.now();
        if self.devices[device].is_off {
            return;
        }
        if let Action::Data {
            handle, is_first, ..
        } = action
        {
            return self.take_data((device, handle), is_first, bytes);
        }
        let status = self.carry_out(device, action, bytes, now);
        self.report(device, Report::Plain(Event::Answered { status }));
        if let Action::ReadRssi { handle } = action {
            let rssi = Some(self.rssi_of((device, handle), now));
            self.report(device, Report::Plain(Event::Rssi { handle, rssi }));
        }
    }

    /// How strongly a device hears the other end of a connection.
    fn rssi_of(&mut self, (device, handle): (usize, Handle), now: Instant) -> i8 {
        let Some(connection) = self.connections.get(usize::from(handle.0)) else {
            return self.signal.told((device, device));
        };
        let ends = [CENTRAL, PERIPHERAL].map(|end| connection.ends[end].device);
        self.signal.level(ends.into(), now);
        self.signal.told(ends.into())
    }

    /// Carries out a command; returns its HCI status.
    fn carry_out(&mut self, device: usize, action: Action, bytes: &[u8], now: Instant) -> u8 {
        match action {
            Action::Connect { .. }
            | Action::CancelConnect
            | Action::SetAdvertisingParameters { .. }
            | Action::SetAdvertisingData { .. }
            | Action::SetAdvertising { .. }
            | Action::SetScanParameters { .. }
            | Action::SetScan { .. } => self.seek(device, action, bytes, now),
            Action::Update { handle, .. }
            | Action::AcceptTiming { handle, .. }
            | Action::SetDataLength { handle, .. }
            | Action::SetPhy { handle, .. }
            | Action::ReadRssi { handle }
            | Action::Disconnect { handle, .. } => match self.end_of(device, handle) {
                Some(at) => self.ask(at, action),
                None => UNKNOWN_CONNECTION,
            },
            Action::Data { .. } => SUCCESS,
        }
    }

    /// The connection and the end that a device calls so.
    fn end_of(&self, device: usize, handle: Handle) -> Option<(usize, usize)> {
        let at = usize::from(handle.0);
        let connection = self.connections.get(at).filter(|found| !found.is_over)?;
        let end = [CENTRAL, PERIPHERAL]
            .into_iter()
            .find(|end| connection.ends[*end].is_of(device))?;
        Some((at, end))
    }

    /// Tells a host that its controller has been reset.
    fn report_started(&mut self, device: usize) {
        let Profile {
            packet_len,
            packets,
            ..
        } = self.devices[device].profile;
        let started = Event::Started {
            packet_len,
            packets,
        };
        self.report(device, Report::Plain(started));
    }

    /// Tells a host something, after the time that it takes.
    fn report(&mut self, device: usize, report: Report) {
        let device = &mut self.devices[device];
        let at = self.calendar.now() + device.profile.host_delay;
        device.reports.push_back((at, report));
        self.calendar.schedule(at, Due::Report);
    }
}

/// Status codes (Vol 1 Part F).
const SUCCESS: u8 = 0;
const UNKNOWN_CONNECTION: u8 = 0x02;
const NOT_ALLOWED: u8 = 0x0c;
const INVALID_PARAMETERS: u8 = 0x12;
