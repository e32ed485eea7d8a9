//! Connection events: which end sends when, which packets are received, and when an event closes.
//!
//! An event goes on while an end has more to send and there is time; it closes when a packet is
//! missed, or two in a row have a bad CRC (§4.5.6 and §4.5.1).

use motet::ble::{Event, EventReport, Handle, Phy};
use motet::time::{Duration, Instant};

use super::connection::{CENTRAL, CONTROL, Change, ConnectionEvent, PERIPHERAL, Procedure};
use super::phy::{T_IFS, air_time, packet_len, sync_len};
use super::{Air, Arrival, Due, Report};
use crate::streams::happens;

/// How a packet was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reception {
    Good,
    BadCrc,
    Nothing,
}

impl Reception {
    /// The fate of the packet at an end that was awake or not.
    fn arrival(self, is_awake: bool) -> Arrival {
        match self {
            Self::Good => Arrival::Received,
            _ if is_awake => Arrival::Lost,
            _ => Arrival::Unattended,
        }
    }
}

impl Air {
    /// An event begins, unless a device has no time for it.
    pub(super) fn begin_event(&mut self, at: usize, now: Instant) {
        if self.connections[at].is_over || self.is_lost(at, now) {
            return;
        }
        if let Some(later) = self.apply_change(at).filter(|by| *by > Duration::ZERO) {
            return self
                .calendar
                .schedule(now + later, Due::Anchor { connection: at });
        }
        let interval = self.drifted_interval(at);
        let connection = &mut self.connections[at];
        let counter = connection.counter;
        connection.counter = counter.wrapping_add(1);
        connection.anchor = now + interval;
        let next = connection.anchor;
        self.calendar.schedule(next, Due::Anchor { connection: at });
        let until = self.end_of_event(at, now);
        let connection = &mut self.connections[at];
        let central = connection.ends[CENTRAL].device;
        let peripheral = connection.ends[PERIPHERAL].device;
        let must_yield = until.since(now) < shortest(connection.phy);
        let is_alone = connection.ends[CENTRAL].is_gone;
        if self.devices[central].busy_until > now || must_yield || is_alone {
            connection.skipped += 1;
            // The peripheral listens in vain.
            return self.listen_in_vain(at, now);
        }
        connection.skipped = 0;
        let is_busy =
            self.devices[peripheral].busy_until > now || connection.ends[PERIPHERAL].is_gone;
        let latency = connection.timing.latency;
        let end = &mut connection.ends[PERIPHERAL];
        let leaves_out = end.is_idle() && end.left_out < latency;
        end.left_out = match leaves_out || is_busy {
            true => end.left_out.saturating_add(1),
            false => 0,
        };
        let is_attended = !is_busy && !leaves_out;
        let (lateness, widening) = (self.lateness(at, now), self.widening(at, now));
        let awaited = widening.as_micros().checked_add_signed(lateness);
        let awaited = awaited.filter(|us| *us <= 2 * widening.as_micros());
        let connection = &mut self.connections[at];
        connection.event = Some(ConnectionEvent {
            channel: connection.map.channel(connection.access_address, counter),
            until,
            is_attended,
            is_found: awaited.is_some(),
            bad: [0; 2],
            heard: [[0; 2]; 2],
            missed: [false; 2],
            more: [false; 2],
            started: now,
            begun: now,
            payload_len: 0,
        });
        let phy = connection.phy;
        self.devices[central].usage.wakes += 1;
        self.devices[central].busy_until = until;
        if is_attended {
            let device = &mut self.devices[peripheral];
            device.usage.wakes += 1;
            let awaited = awaited.map_or(widening + widening, Duration::from_micros);
            device.usage.wait(phy, awaited);
            device.busy_until = until;
        }
        self.begin_packet(at, CENTRAL, now);
    }

    /// Whether an end has heard nothing for the supervision timeout; then the connection is over.
    fn is_lost(&mut self, at: usize, now: Instant) -> bool {
        let connection = &self.connections[at];
        let timeout = Duration::from_millis(10 * u64::from(connection.timing.timeout));
        let is_lost = connection
            .ends
            .iter()
            .any(|end| !end.is_gone && now.since(end.heard_at) >= timeout);
        if is_lost {
            self.end_connection(at, [TIMED_OUT; 2]);
        }
        is_lost
    }

    /// Ends a connection. `reasons`: the reason code that the host of each end gets.
    pub(super) fn end_connection(&mut self, at: usize, reasons: [u8; 2]) {
        self.close_event(at);
        self.connections[at].is_over = true;
        for (end, reason) in [CENTRAL, PERIPHERAL].into_iter().zip(reasons) {
            let handle = Handle(at as u16);
            self.report_to(at, end, Event::Disconnected { handle, reason });
        }
    }

    /// Tells the host at an end something, unless that has gone.
    fn report_to(&mut self, at: usize, end: usize, event: Event<'static>) {
        let end = &self.connections[at].ends[end];
        if !end.is_gone {
            let device = end.device;
            self.report(device, Report::Plain(event));
        }
    }

    /// Carries out what was agreed on for this event; how much later it begins.
    fn apply_change(&mut self, at: usize) -> Option<Duration> {
        let connection = &mut self.connections[at];
        let due = |(counter, _): &mut (u16, Change)| *counter == connection.counter;
        let (_, change) = connection.change.take_if(due)?;
        let mut later = None;
        let handle = Handle(at as u16);
        let event = match change {
            Change::Phy(phy) => {
                connection.phy = phy;
                Event::Phy {
                    status: 0,
                    handle,
                    sent: phy,
                    received: phy,
                }
            }
            Change::Timing(timing, event_len, offset) => {
                later = Some(offset);
                connection.anchor += offset;
                connection.timing = timing;
                connection.event_len = event_len;
                Event::Updated {
                    status: 0,
                    handle,
                    timing,
                }
            }
        };
        let procedure = match change {
            Change::Phy(_) => Procedure::Phy,
            Change::Timing(..) => Procedure::Timing,
        };
        for end in [CENTRAL, PERIPHERAL] {
            self.report_to(at, end, event);
            self.complete(at, end, procedure);
        }
        if let Some(next) = self.connections[at].waiting.pop_front() {
            self.propose(at, next);
        }
        later
    }

    /// Until when an event that begins now may go on: until the next one of this connection or of
    /// another one of its devices, and no longer than it may be.
    fn end_of_event(&self, at: usize, now: Instant) -> Instant {
        let connection = &self.connections[at];
        let mut until = now + connection.event_len.min(connection.interval());
        for end in &connection.ends {
            let dead_time = self.devices[end.device].profile.dead_time;
            for (other, found) in self.connections.iter().enumerate() {
                // One that had no time before goes first.
                let yields = other == at || found.skipped >= connection.skipped;
                if found.is_of(end.device) && found.anchor > now && yields {
                    until = until.min(before(found.anchor, dead_time));
                }
            }
        }
        until
    }

    /// How much earlier than the anchor a peripheral begins to listen (§4.2.4).
    fn widening(&self, at: usize, now: Instant) -> Duration {
        let connection = &self.connections[at];
        let ends = &connection.ends;
        let ppm: u32 = ends
            .iter()
            .map(|end| self.devices[end.device].profile.clock_ppm)
            .sum();
        let since = now.since(connection.synchronised_at).as_micros();
        Duration::from_micros(since * u64::from(ppm) / 1_000_000 + JITTER_US)
    }

    /// The peripheral of an event without a central.
    fn listen_in_vain(&mut self, at: usize, now: Instant) {
        let widening = self.widening(at, now);
        let connection = &self.connections[at];
        if connection.ends[PERIPHERAL].is_gone {
            return;
        }
        let device = connection.ends[PERIPHERAL].device;
        let listens = sync_time(connection.phy) + widening + widening;
        let (phy, device) = (connection.phy, &mut self.devices[device]);
        if device.busy_until <= now {
            device.usage.wakes += 1;
            device.usage.receive(phy, listens);
        }
    }

    /// A packet begins: what was not acknowledged, else the next one, else an empty one.
    pub(super) fn begin_packet(&mut self, at: usize, end: usize, now: Instant) {
        let has_mic = self.conditions.has_mic;
        let connection = &mut self.connections[at];
        let phy = connection.phy;
        let Some(event) = &mut connection.event else {
            return;
        };
        let sender = &mut connection.ends[end];
        let fits = |len: usize| {
            // A central needs time for the answer.
            let answer = match end {
                CENTRAL => T_IFS + air_time(0, phy, has_mic),
                _ => Duration::ZERO,
            };
            now + air_time(len, phy, has_mic) + answer <= event.until
        };
        if sender.flying.is_none() {
            let queue = match sender.controls.is_empty() {
                true => &mut sender.data,
                false => &mut sender.controls,
            };
            let next = queue.pop_front_if(|pdu| fits(pdu.bytes.len()));
            // What has no time left waits for the next event, which begins with it.
            let is_cut = next.is_none() && sender.has_more();
            if is_cut && end == CENTRAL && now > event.started {
                return self.close_event(at);
            }
            sender.flying = Some(next);
            sender.is_repeating = false;
        }
        let pdu = sender.flying.as_ref().and_then(Option::as_ref);
        let payload_len = pdu.map_or(0, |pdu| pdu.bytes.len());
        if !fits(payload_len) {
            return self.close_event(at);
        }
        event.begun = now;
        event.payload_len = payload_len;
        event.more[end] = payload_len > 0 && sender.has_more();
        let time = air_time(payload_len, phy, has_mic);
        let is_control = pdu.is_some_and(|pdu| pdu.llid == CONTROL);
        let is_repeated = std::mem::replace(&mut sender.is_repeating, true);
        let device = sender.device;
        let link = (device, connection.ends[1 - end].device);
        self.devices[device].usage.send(time);
        if !is_repeated {
            self.taken_out(at, end);
        }
        if payload_len > 0 {
            let tally = self.tallies.entry(link).or_default();
            tally.packets += 1;
            tally.bytes += payload_len as u64;
            tally.repeated += u64::from(is_repeated);
            if is_control {
                tally.controls += 1;
                tally.controls_us += time.as_micros();
            }
        }
        self.calendar.schedule(
            now + time,
            Due::End {
                connection: at,
                end,
            },
        );
    }

    /// A packet has been sent: the other end hears it, and answers or goes on.
    pub(super) fn end_packet(&mut self, at: usize, end: usize, now: Instant) {
        let connection = &self.connections[at];
        let Some(event) = connection.event else {
            return;
        };
        let other = 1 - end;
        let (phy, device) = (connection.phy, connection.ends[other].device);
        let is_awake = other == CENTRAL || event.is_attended;
        // One that does not find the central's first packet has no other.
        let hears = is_awake && (other == CENTRAL || event.is_found);
        let heard = match hears {
            true => self.draw((at, end), &event),
            false => Reception::Nothing,
        };
        self.note_packet((at, end), &event, (now, heard.arrival(is_awake)));
        if event.payload_len > 0 && heard != Reception::Good {
            let ends = &self.connections[at].ends;
            let link = (ends[end].device, ends[other].device);
            let tally = self.tallies.entry(link).or_default();
            match is_awake {
                true => tally.lost += 1,
                false => tally.unattended += 1,
            }
        }
        if is_awake {
            let time = match heard {
                Reception::Nothing => sync_time(phy),
                Reception::Good | Reception::BadCrc => now.since(event.begun),
            };
            self.devices[device].usage.receive(phy, time);
        }
        if heard == Reception::Nothing {
            let missed = event.missed_by(other, is_awake);
            self.connections[at].event = Some(missed);
            // Without an answer the central hears nothing either.
            if end == CENTRAL {
                let device = self.connections[at].ends[CENTRAL].device;
                self.devices[device].usage.receive(phy, sync_time(phy));
            }
            return self.close_event(at);
        }
        let connection = &mut self.connections[at];
        let Some(event) = &mut connection.event else {
            return;
        };
        match heard {
            Reception::Good => event.bad[other] = 0,
            _ => event.bad[other] += 1,
        }
        event.heard[other][usize::from(heard != Reception::Good)] += 1;
        let is_closed = event.bad[other] >= BAD_MAX;
        let has_more = event.more.contains(&true) || heard == Reception::BadCrc;
        if heard == Reception::Good {
            connection.ends[other].heard_at = now;
            if other == PERIPHERAL {
                connection.synchronised_at = now;
            }
            self.take_packet(at, end);
        }
        if is_closed || (end == PERIPHERAL && !has_more) {
            return self.close_event(at);
        }
        self.calendar.schedule(
            now + T_IFS,
            Due::Begin {
                connection: at,
                end: other,
            },
        );
    }

    /// Draws whether a packet is received. A packet with an error in its preamble or access address
    /// is missed; with an error elsewhere its CRC is wrong.
    fn draw(&mut self, (at, end): (usize, usize), event: &ConnectionEvent) -> Reception {
        let injected = self.conditions.errors[usize::from(event.channel)];
        let connection = &self.connections[at];
        let phy = connection.phy;
        let [from, to] = [end, 1 - end].map(|end| connection.ends[end].device);
        let sent = (event.payload_len, phy);
        let error = self.signal.error((from, to), injected, sent, event.begun);
        if error <= 0.0 || !happens(&mut self.rng, error) {
            let dropped = self.conditions.dropped_by_central;
            let is_dropped = end == PERIPHERAL && dropped > 0.0;
            return match is_dropped && happens(&mut self.rng, dropped) {
                true => Reception::BadCrc,
                false => Reception::Good,
            };
        }
        let all = packet_len(event.payload_len, phy, self.conditions.has_mic);
        match happens(&mut self.rng, sync_len(phy) as f64 / all as f64) {
            true => Reception::Nothing,
            false => Reception::BadCrc,
        }
    }

    /// A packet was received with a right CRC: handles its acknowledgement, and its payload if it
    /// is new (§4.5.9).
    fn take_packet(&mut self, at: usize, end: usize) {
        let ends = &mut self.connections[at].ends;
        let sender = &ends[end];
        let (sn, nesn, pdu) = (sender.sn, sender.nesn, sender.flying.clone().flatten());
        let receiver = &mut ends[1 - end];
        let is_new = sn == receiver.nesn;
        if is_new {
            receiver.nesn = !receiver.nesn;
        }
        if nesn != receiver.sn && receiver.flying.is_some() {
            self.acknowledged(at, 1 - end);
        }
        if let Some(pdu) = pdu.filter(|_| is_new) {
            self.received(at, 1 - end, pdu);
        }
    }

    /// The event is over: its devices have time for others.
    pub(super) fn close_event(&mut self, at: usize) {
        let now = self.now();
        let connection = &mut self.connections[at];
        let Some(event) = connection.event.take() else {
            return;
        };
        let counter = connection.counter.wrapping_sub(1);
        self.devices[connection.ends[CENTRAL].device].busy_until = now;
        if event.is_attended {
            self.devices[connection.ends[PERIPHERAL].device].busy_until = now;
        }
        for end in [CENTRAL, PERIPHERAL] {
            let [good, bad] = event.heard[end];
            let report = EventReport {
                handle: Handle(at as u16),
                counter,
                good,
                bad,
                // Not modelled: the host does not use it.
                unacknowledged: 0,
                is_missed: event.missed[end],
            };
            if end == CENTRAL || event.is_attended {
                self.report_to(at, end, Event::Report(report));
            }
        }
    }
}

/// The shortest event: two empty packets.
fn shortest(phy: Phy) -> Duration {
    let empty = air_time(0, phy, false);
    empty + T_IFS + empty
}

/// How long a receiver listens until it knows that nothing comes.
fn sync_time(phy: Phy) -> Duration {
    air_time(0, phy, false)
}

/// `time` before an instant, or the origin.
fn before(at: Instant, time: Duration) -> Instant {
    let us = at.as_micros().saturating_sub(time.as_micros());
    Instant::from_micros(us)
}

/// Packets in a row with a bad check sum that close an event.
const BAD_MAX: u8 = 2;

/// The jitter of clocks besides their drift, µs (§4.2.2: ±16 µs).
const JITTER_US: u64 = 16;

/// HCI's error code "Connection Timeout" (Bluetooth Core, vol. 1, part F).
const TIMED_OUT: u8 = 0x08;
