//! Frames to send, and received frames.

use motet::time::{Duration, Instant};

use super::event::{Ack, Outcome, Received};
use super::{Event, Phase, Refusal, Session};
use crate::frame::{Command, Frame, Header, Property, Status};
use crate::packed::Reader;
use crate::raw::{BYTE_US, FCS_LEN, Flags, PSDU_LEN_MAX, ReceivedFrame, Report, Request};

/// A frame that is to be sent, or is being sent.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    psdu: Vec<u8>,
    at: Option<Instant>,
    /// Its transaction, and when it is given up; `None`: the radio has not been given it.
    sent: Option<(u8, Instant)>,
}

impl Flight {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sent.map(|(_, until)| until)
    }

    fn frame_control(&self) -> u8 {
        self.psdu.first().copied().unwrap_or(0)
    }
}

impl Session {
    /// Sends a frame; [`Event::Sent`] reports its end. The radio does CSMA, waits for the ACK, and
    /// does not retry.
    ///
    /// `psdu`: the frame without its FCS, 3 to 125 bytes; secured already where it is to be. `at`:
    /// when to begin, as exactly as the firmware can (a simulated RCP: 0.2 ms early to 2.6 ms
    /// late); `None`: at once.
    ///
    /// # Errors
    /// The radio is not configured, its receiver is off, or the transmission before has not ended;
    /// or no frame has such a length.
    pub fn transmit(
        &mut self,
        psdu: &[u8],
        at: Option<Instant>,
        now: Instant,
    ) -> Result<(), Refusal> {
        if self.phase != Phase::Ready || !self.is_listening {
            return Err(Refusal::NotReady);
        }
        if self.flight.is_some() {
            return Err(Refusal::InProgress);
        }
        if !(PSDU_LEN_MIN..=PSDU_LEN_MAX - FCS_LEN).contains(&psdu.len()) {
            return Err(Refusal::Length(psdu.len()));
        }
        self.flight = Some(Flight {
            psdu: psdu.to_vec(),
            at,
            sent: None,
        });
        self.advance(now);
        Ok(())
    }

    /// Whether a transmission is open.
    pub(super) fn is_flying(&self) -> bool {
        let flight = self.flight.as_ref();
        flight.is_some_and(|flight| flight.sent.is_some())
    }

    pub(super) fn is_flight(&self, transaction: u8) -> bool {
        let sent = self.flight.as_ref().and_then(|flight| flight.sent);
        sent.is_some_and(|(sent, _)| sent == transaction)
    }

    /// Hands the waiting frame to the radio, once all settings are written.
    pub(super) fn send_flight(&mut self, now: Instant) {
        let is_held = self.phase != Phase::Ready
            || self.is_suspect
            || self.scan.is_some()
            || self.is_flying()
            || self.is_setting();
        if is_held || self.flight.is_none() {
            return;
        }
        // The receiver was switched off after the call.
        if !self.is_listening {
            return self.end_flight(Outcome::Failed(None), now);
        }
        let transaction = self.new_transaction();
        let Some(flight) = &mut self.flight else {
            return;
        };
        let is_secured = flight.frame_control() & SECURED != 0;
        let delay = flight.at.map_or(Duration::ZERO, |at| at.since(now));
        let (delay_us, base_us) = match self.clock.to_radio(now) {
            Some(base_us) if delay > Duration::ZERO => (
                u32::try_from(delay.as_micros()).unwrap_or(u32::MAX),
                base_us,
            ),
            _ => (0, 0),
        };
        let request = Request {
            psdu: &flight.psdu,
            channel: self.settings.channel,
            csma: true,
            csma_backoffs_max: CSMA_BACKOFFS_MAX,
            // The MAC's random delay before a retry is the MAC's.
            retries_max: 0,
            // `is_secured` is not enough: ot-nrf528xx writes its own key index and counter into
            // every frame with key identifier mode 1 that is no retransmission. A receiver then
            // acknowledges the frame, and drops it.
            is_header_updated: is_secured,
            is_retransmission: is_secured,
            is_secured: true,
            delay_us,
            base_us,
        };
        let frame = Frame {
            header: Header {
                interface: 0,
                transaction,
            },
            command: Command::Set,
            property: Property::StreamRaw,
            value: &request.emit(),
        };
        let delay = Duration::from_micros(delay_us.into());
        flight.sent = Some((transaction, now + delay + ANSWER_WITHIN));
        let frame = frame.emit();
        if self.send(&frame).is_none() {
            self.end_flight(Outcome::Failed(None), now);
        }
    }

    /// Handles the report on a transmission.
    pub(super) fn on_report(&mut self, frame: &Frame<'_>, now: Instant) {
        if (frame.command, frame.property) != (Command::Is, Property::LastStatus) {
            self.counters.mismatched += 1;
            return;
        }
        let Some(report) = Report::parse(frame.value) else {
            self.counters.malformed += 1;
            return;
        };
        let control = self.flight.as_ref().map_or(0, Flight::frame_control);
        let outcome = match report.status {
            Status::Ok if control & ACK_REQUEST == 0 => Outcome::Done,
            Status::Ok => Outcome::Acked(Ack {
                pending: report.pending,
                at: report.ack.map_or(now, |ack| self.end_of(&ack, now)),
                rssi_dbm: report.ack.map(|ack| ack.rssi_dbm),
            }),
            Status::NoAck => Outcome::NoAck,
            Status::ChannelBusy => Outcome::Busy,
            status => Outcome::Failed(Some(status)),
        };
        self.end_flight(outcome, now);
    }

    pub(super) fn watch_flight(&mut self, now: Instant) {
        let until = self.flight.as_ref().and_then(Flight::deadline);
        if until.is_some_and(|until| now >= until) {
            self.end_flight(Outcome::Failed(None), now);
            // A second frame would make the radio forget to answer the first one.
            self.is_suspect = true;
        }
    }

    /// The radio has lost the frame, if it had one.
    pub(super) fn end_flight_lost(&mut self, now: Instant) {
        if self.flight.is_some() {
            self.end_flight(Outcome::Failed(None), now);
        }
    }

    fn end_flight(&mut self, outcome: Outcome, now: Instant) {
        self.flight = None;
        let counter = match outcome {
            Outcome::Acked(_) => &mut self.counters.acked,
            Outcome::Done => &mut self.counters.done,
            Outcome::NoAck => &mut self.counters.no_ack,
            Outcome::Busy => &mut self.counters.busy,
            Outcome::Failed(_) => &mut self.counters.failed,
        };
        *counter += 1;
        let at = match outcome {
            Outcome::Acked(ack) if ack.rssi_dbm.is_some() => {
                let us = ack.at.as_micros().saturating_sub(ACK_US);
                Instant::from_micros(us)
            }
            _ => now,
        };
        self.events.push_back(Event::Sent { outcome, at });
    }

    /// A frame came.
    pub(super) fn on_heard(&mut self, value: &[u8], now: Instant) {
        let Some(heard) = ReceivedFrame::read(&mut Reader::new(value)) else {
            self.counters.malformed += 1;
            return;
        };
        if let Some(counter) = self.dropped_by(&heard) {
            *counter += 1;
            return;
        }
        self.counters.received += 1;
        let len = heard.psdu.len();
        let psdu = heard
            .psdu
            .get(..len.saturating_sub(FCS_LEN))
            .unwrap_or_default();
        let received = Received {
            psdu: psdu.to_vec(),
            rssi_dbm: heard.rssi_dbm,
            lqi: heard.lqi,
            channel: match heard.channel {
                0 => self.settings.channel,
                channel => channel,
            },
            flags: heard.flags,
            sfd_us: heard.sfd_us,
            at: self.end_of(&heard, now),
        };
        self.events.push_back(Event::Received(received));
    }

    /// The counter of a frame that is to be dropped; `None`: the frame is good.
    fn dropped_by(&mut self, heard: &ReceivedFrame<'_>) -> Option<&mut u64> {
        let len = heard.psdu.len();
        let counters = &mut self.counters;
        if self.phase != Phase::Ready {
            Some(&mut counters.early)
        } else if heard.error != 0 || len == 0 || heard.flags.has(Flags::BAD_FCS) {
            Some(&mut counters.refused)
        } else if heard.flags.has(Flags::SENT) {
            Some(&mut counters.own)
        } else if !(PSDU_LEN_MIN + FCS_LEN..=PSDU_LEN_MAX).contains(&len) {
            Some(&mut counters.bad_length)
        } else if self.events.len() >= EVENTS_MAX {
            Some(&mut counters.overrun)
        } else {
            None
        }
    }

    /// When a frame's last symbol was on the air.
    fn end_of(&self, heard: &ReceivedFrame<'_>, now: Instant) -> Instant {
        let at = heard.end_us().and_then(|us| self.clock.to_host(us));
        // Older than any frame in a line or a radio: the time is wrong.
        let at = at.filter(|at| now.since(*at) < AGE_MAX);
        at.map_or(now, |at| at.min(now))
    }
}

/// Frame control and sequence number, bytes: an ACK.
const PSDU_LEN_MIN: usize = 3;

/// Bits of the first byte of a frame (IEEE 802.15.4-2015 §7.2.2).
const SECURED: u8 = 1 << 3;
const ACK_REQUEST: u8 = 1 << 5;

/// macMaxCSMABackoffs (IEEE 802.15.4-2015 §8.4.3.1).
const CSMA_BACKOFFS_MAX: u8 = 4;

/// From the end of a frame to the end of its ACK, µs: a turnaround, and the ACK with preamble, SFD
/// and length.
const ACK_US: u64 = 192 + (6 + 5) * BYTE_US;

/// How long a transmission without retries takes, with a line that is late by hundreds of ms.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A radio or its line that stood still for seconds hands out its frames then.
const AGE_MAX: Duration = Duration::from_secs(10);

/// While so many events wait, frames that come are dropped.
const EVENTS_MAX: usize = 256;
