//! Requests about properties, one at a time.

use motet::time::{Duration, Instant};

use super::scan::Step;
use super::settings::{BEFORE_TABLES, ORDER, Value};
use super::source_match::Change;
use super::start::QUESTIONS;
use super::{Event, Output, Phase, SILENCE_MAX, Session};
use crate::Error;
use crate::frame::{Command, Frame, Header, Property, Status};
use crate::packed::{Reader, Writer};

/// A request that has no answer yet.
#[derive(Clone, Debug)]
pub(super) struct Request {
    what: Purpose,
    property: Property,
    transaction: u8,
    /// As it was sent, to be repeated.
    frame: Vec<u8>,
    asked_at: Instant,
    /// When the line had taken it whole.
    sent_at: Option<Instant>,
    /// Its end in the bytes for the line.
    end: u64,
    again_at: Instant,
    is_repeated: bool,
}

#[derive(Clone, Debug)]
enum Purpose {
    /// A question of the start, or a reading of the clock.
    Read,
    Set(usize, Value),
    Change(Change),
    Scan(Step),
}

impl Request {
    pub(super) fn deadline(&self) -> Instant {
        self.again_at.min(self.asked_at + SILENCE_MAX)
    }

    pub(super) fn on_written(&mut self, output: &Output, now: Instant) {
        if self.sent_at.is_none() && output.is_sent(self.end) {
            self.sent_at = Some(now);
        }
    }
}

impl Session {
    pub(super) fn is_asked(&self, transaction: u8) -> bool {
        let asked = self.asked.as_ref();
        asked.is_some_and(|asked| asked.transaction == transaction)
    }

    /// Whether a setting is being written or has to be: frames wait for it.
    pub(super) fn is_setting(&self) -> bool {
        let asked = self.asked.as_ref();
        asked.is_some_and(|asked| matches!(asked.what, Purpose::Set(..)))
            || self.applied.next(&self.wanted()).is_some()
    }

    /// Sends the next request, if none is open.
    pub(super) fn ask_next(&mut self, now: Instant) {
        if self.asked.is_some() {
            return;
        }
        match self.phase {
            Phase::Asking(n) => self.ask_question(n, now),
            Phase::Configuring | Phase::Ready => self.ask_to_configure(now),
            Phase::Begin | Phase::Away | Phase::Resetting { .. } | Phase::Failed => {}
        }
    }

    fn ask_question(&mut self, n: usize, now: Instant) {
        let questions = QUESTIONS.iter().enumerate().skip(n);
        let mut wanted = questions.filter(|(_, property)| self.is_asked_for(**property));
        let Some((n, property)) = wanted.next() else {
            self.phase = Phase::Configuring;
            return self.ask_to_configure(now);
        };
        self.phase = Phase::Asking(n);
        self.ask(Purpose::Read, Command::Get, *property, &[], now);
    }

    /// Writes a setting or changes a table; when all is done, the steps of a scan and the clock.
    fn ask_to_configure(&mut self, now: Instant) {
        let setting = self.applied.next(&self.wanted());
        // Settings wait for the end of a transmission or a scan.
        let setting = setting.filter(|_| !self.is_flying() && !self.is_scanning());
        let is_early = |setting: &(usize, Value)| setting.0 < BEFORE_TABLES;
        if let Some((n, value)) = setting.filter(is_early) {
            return self.ask_set(n, value, now);
        }
        if let Some(change) = self.source_match.next() {
            return self.ask_change(change, now);
        }
        if let Some((n, value)) = setting {
            return self.ask_set(n, value, now);
        }
        if self.phase == Phase::Configuring {
            self.become_ready();
        }
        if let Some((step, property, value)) = self.next_scan_step() {
            self.ask(Purpose::Scan(step), Command::Set, property, &value, now);
        } else if self.is_suspect || self.clock.due().is_some_and(|due| now >= due) {
            self.ask(
                Purpose::Read,
                Command::Get,
                Property::RcpTimestamp,
                &[],
                now,
            );
        }
    }

    fn become_ready(&mut self) {
        self.phase = Phase::Ready;
        (self.resets, self.echoes) = (0, 0);
        // It has answered since: a line that goes away now is not closed by the reset.
        self.reset_at = None;
        (self.is_up, self.was_ready) = (true, true);
        self.events.push_back(Event::Ready(self.radio.clone()));
    }

    fn ask_set(&mut self, n: usize, value: Value, now: Instant) {
        if let Some(property) = ORDER.get(n) {
            self.ask(
                Purpose::Set(n, value),
                Command::Set,
                *property,
                value.bytes(),
                now,
            );
        }
    }

    fn ask_change(&mut self, change: Change, now: Instant) {
        let (command, is_short, value) = match &change {
            Change::Insert(peer) => (Command::Insert, peer.is_short(), peer.emit(Writer::new())),
            Change::Remove(peer) => (Command::Remove, peer.is_short(), peer.emit(Writer::new())),
            Change::Replace { is_short, peers } => {
                let all = peers.iter().fold(Writer::new(), |all, peer| peer.emit(all));
                (Command::Set, *is_short, all)
            }
        };
        let property = match is_short {
            true => Property::SrcMatchShort,
            false => Property::SrcMatchExtended,
        };
        self.ask(
            Purpose::Change(change),
            command,
            property,
            &value.finish(),
            now,
        );
    }

    fn ask(
        &mut self,
        what: Purpose,
        command: Command,
        property: Property,
        value: &[u8],
        now: Instant,
    ) {
        let transaction = self.new_transaction();
        let frame = Frame {
            header: Header {
                interface: 0,
                transaction,
            },
            command,
            property,
            value,
        }
        .emit();
        let end = self.send(&frame);
        self.asked = Some(Request {
            what,
            property,
            transaction,
            frame,
            asked_at: now,
            sent_at: None,
            // Not sent: the repetition will be.
            end: end.unwrap_or(u64::MAX),
            again_at: now + AGAIN_AFTER,
            is_repeated: end.is_none(),
        });
    }

    /// Queues a frame for the line. Returns the position of its end.
    pub(super) fn send(&mut self, frame: &[u8]) -> Option<u64> {
        let end = self.output.push(frame);
        if end.is_none() {
            self.counters.output_dropped += 1;
        }
        end
    }

    /// Repeats a request that has no answer, and restarts the radio when that is in vain.
    pub(super) fn watch_asked(&mut self, now: Instant) {
        let Some(asked) = &mut self.asked else {
            return;
        };
        if now >= asked.asked_at + SILENCE_MAX {
            return self.on_silence(now);
        }
        if now < asked.again_at {
            return;
        }
        asked.again_at = now + AGAIN_AFTER;
        // While the line takes nothing, one is enough.
        if self.output.is_empty() && self.output.push(&asked.frame).is_some() {
            asked.is_repeated = true;
            self.counters.repeated += 1;
        }
    }

    /// Handles the answer to the request that is open.
    pub(super) fn on_answer(&mut self, frame: &Frame<'_>, now: Instant) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        let answer = match (frame.command, frame.property) {
            (Command::Is, Property::LastStatus) => match Status::parse(frame.value) {
                Some(Status::Ok) => Ok(&[][..]),
                Some(status) => Err(status),
                None => Err(Status::ParseError),
            },
            (Command::Is | Command::Inserted | Command::Removed, property)
                if property == asked.property =>
            {
                Ok(frame.value)
            }
            _ => {
                self.counters.mismatched += 1;
                self.asked = Some(asked);
                return;
            }
        };
        self.is_suspect = false;
        let sent = asked.sent_at.unwrap_or(asked.asked_at);
        // After a repetition it is unknown which of the two is answered.
        if !asked.is_repeated {
            self.round_trips.on_answer(sent, now);
        }
        match asked.what {
            Purpose::Read => self.on_value(asked.property, answer, sent, now),
            Purpose::Set(n, value) => match answer {
                Ok(_) => {
                    self.refusals = 0;
                    self.applied.set(n, value);
                }
                // The radio is busy in the air: the setting is written again.
                Err(Status::Busy | Status::InvalidState | Status::InProgress)
                    if self.refusals < REFUSALS_MAX =>
                {
                    self.refusals += 1;
                }
                Err(status) => {
                    let property = asked.property;
                    self.fail(Error::Refused { property, status }, now);
                }
            },
            Purpose::Change(change) => self.source_match.on_result(&change, answer.map(|_| ())),
            Purpose::Scan(step) => self.on_scan_step(step, answer.is_ok(), now),
        }
    }

    fn on_value(
        &mut self,
        property: Property,
        answer: Result<&[u8], Status>,
        sent: Instant,
        now: Instant,
    ) {
        if self.phase != Phase::Ready {
            return self.on_start_answer(property, answer, sent, now);
        }
        let radio_us = answer.ok().and_then(|value| Reader::new(value).u64());
        if self.clock.on_answer(radio_us, sent, now) {
            self.counters.clock_jumps += 1;
        }
    }
}

/// How long after a request it is repeated. A line that is late by 100 ms is not disturbed.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// How often in a row a radio may be too busy for a setting.
const REFUSALS_MAX: u8 = 10;
