//! A session with a radio: bytes and the time in; bytes, events and a deadline out.
//!
//! Two requests may be open at a time: one about a property, and the transmission of one frame. A
//! second transmission before the first one's answer would make firmware forget that answer. The
//! session keeps the wanted settings and those that the radio has acknowledged, and sends the
//! difference. After a restart it forgets the latter, and everything is sent again.

mod air;
mod ask;
mod clock;
mod counters;
mod event;
mod output;
mod scan;
mod settings;
mod source_match;
mod start;

use std::collections::VecDeque;

use motet::time::{Allowance, Duration, Instant, earliest};

use crate::frame::{Command, Frame, Property, Status};
use crate::hdlc::Decoder;

use air::Flight;
use ask::Request;
use clock::Clock;
use counters::RoundTrips;
use output::Output;
use scan::Scan;
use settings::{Applied, Wanted};
use source_match::SourceMatch;

pub use counters::{Counters, RoundTrip};
pub use event::{Ack, Cause, Event, Outcome, RadioCaps, RadioInfo, Received, Refusal};
pub use settings::{Promiscuous, Settings};
pub use source_match::Peer;

/// A session with a radio behind a line.
///
/// The owner of the line calls [`Self::poll_output`] and writes what it gives, hands in what comes
/// by [`Self::on_bytes`], takes all events after either, and waits until [`Self::deadline`] or
/// until bytes come. It has to read always: a radio acknowledges frames that its host then does not
/// read.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    is_listening: bool,
    phase: Phase,
    decoder: Decoder,
    output: Output,
    /// The transaction that was used last.
    transaction: u8,
    asked: Option<Request>,
    radio: RadioInfo,
    /// What the firmware can do: its list of capabilities.
    caps: Vec<u32>,
    applied: Applied,
    source_match: SourceMatch,
    flight: Option<Flight>,
    scan: Option<Scan>,
    clock: Clock,
    /// How often in a row the radio was too busy to take a setting.
    refusals: u8,
    /// A transmission had no answer: the radio has to answer something before the next one.
    is_suspect: bool,
    round_trips: RoundTrips,
    events: VecDeque<Event>,
    counters: Counters,
    log: String,
    /// Restarts of the radio that are put up with.
    restarts: Allowance,
    /// When this session reset the radio last, where the line has not been opened anew since.
    reset_at: Option<Instant>,
    /// Resets since the radio was ready.
    resets: u8,
    /// Restarts that the radio may still report because of resets of this session.
    echoes: u16,
    /// [`Event::Ready`] was reported, and no [`Event::Restarted`] since.
    is_up: bool,
    /// [`Event::Ready`] was reported at least once.
    was_ready: bool,
}

/// Progress of the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It is to be reset.
    Begin,
    /// There is no line to it.
    Away,
    /// A reset was sent, and the radio has not reported it.
    Resetting {
        since: Instant,
        again_at: Instant,
        interval: Duration,
    },
    /// Its properties are read: the index in [`start::QUESTIONS`].
    Asking(usize),
    /// Its settings are written.
    Configuring,
    /// It receives and sends.
    Ready,
    /// It cannot be used.
    Failed,
}

impl Session {
    /// A session with a radio in an unknown state. The first [`Self::poll_output`] resets it.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            is_listening: true,
            phase: Phase::Begin,
            decoder: Decoder::default(),
            output: Output::default(),
            transaction: 0,
            asked: None,
            radio: RadioInfo::default(),
            caps: Vec::new(),
            applied: Applied::default(),
            source_match: SourceMatch::default(),
            flight: None,
            scan: None,
            clock: Clock::default(),
            refusals: 0,
            is_suspect: false,
            round_trips: RoundTrips::default(),
            events: VecDeque::new(),
            counters: Counters::default(),
            log: String::new(),
            restarts: Allowance::new(RESTARTS_MAX, RESTART_INTERVAL_MS),
            reset_at: None,
            resets: 0,
            echoes: 0,
            is_up: false,
            was_ready: false,
        }
    }

    /// Takes bytes from the line, cut anywhere.
    pub fn on_bytes(&mut self, mut bytes: &[u8], now: Instant) {
        let mut decoder = std::mem::take(&mut self.decoder);
        while let Some(bytes) = decoder.next(&mut bytes) {
            match Frame::parse(bytes) {
                Some(frame) => self.on_frame(&frame, now),
                None => self.counters.malformed += 1,
            }
        }
        self.decoder = decoder;
        self.advance(now);
    }

    /// The line is gone: the radio was unplugged, or its process has ended. What was open fails,
    /// and nothing more happens before [`Self::on_restart_of_line`].
    pub fn on_loss_of_line(&mut self, now: Instant) {
        self.decoder.reset();
        self.output.clear();
        self.line_lost(now);
    }

    /// The line was opened anew, whether or not its loss was reported before.
    pub fn on_restart_of_line(&mut self, now: Instant) {
        self.on_loss_of_line(now);
        self.line_restarted(now);
        self.advance(now);
    }

    /// Bytes for the line. [`Self::on_written`] is to be called with the number that it took.
    pub fn poll_output(&mut self, now: Instant) -> &[u8] {
        self.advance(now);
        self.output.bytes()
    }

    /// The line has taken the first `len` bytes of [`Self::poll_output`].
    pub fn on_written(&mut self, len: usize, now: Instant) {
        self.output.on_written(len);
        if let Some(asked) = &mut self.asked {
            asked.on_written(&self.output, now);
        }
    }

    /// The next event; to be called until it returns nothing.
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        self.events.pop_front()
    }

    /// When to call [`Self::poll_output`] next though nothing came. `None`: only the line, or the
    /// caller, goes on.
    pub fn deadline(&self) -> Option<Instant> {
        let start = match self.phase {
            Phase::Resetting {
                since, again_at, ..
            } if !self.was_ready => Some(again_at.min(since + SILENCE_MAX)),
            Phase::Resetting { again_at, .. } => Some(again_at),
            _ => None,
        };
        let asked = self.asked.as_ref().map(Request::deadline);
        let clock = self.clock.due();
        let clock = clock.filter(|_| self.asked.is_none() && self.phase == Phase::Ready);
        let flight = self.flight.as_ref().and_then(Flight::deadline);
        let scan = self.scan.as_ref().and_then(Scan::deadline);
        let lanes = earliest(earliest(asked, clock), earliest(flight, scan));
        earliest(start, lanes)
    }

    /// Whether frames can be sent now, the one in flight aside.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The radio's description of itself; incomplete before the first [`Event::Ready`].
    pub const fn radio(&self) -> &RadioInfo {
        &self.radio
    }

    /// Changes the channel.
    ///
    /// # Errors
    /// The radio does not have it. An RCP itself takes channels that it does not have.
    pub fn set_channel(&mut self, channel: u8, now: Instant) -> Result<(), Refusal> {
        if self.was_ready && !self.radio.channels.contains(&channel) {
            return Err(Refusal::NoSuchChannel(channel));
        }
        self.settings.channel = channel;
        self.advance(now);
        Ok(())
    }

    /// Changes the PAN identifier and the addresses.
    pub fn set_addresses(
        &mut self,
        pan: u16,
        short: Option<u16>,
        eui64: Option<[u8; 8]>,
        now: Instant,
    ) {
        (self.settings.pan, self.settings.short) = (pan, short);
        self.settings.eui64 = eui64;
        self.advance(now);
    }

    /// Changes which frames of others are received.
    pub fn set_promiscuous(&mut self, promiscuous: Promiscuous, now: Instant) {
        self.settings.promiscuous = promiscuous;
        self.advance(now);
    }

    /// Switches the radio's receiver on or off. While it is off nothing is acknowledged or sent.
    pub fn set_listening(&mut self, is_listening: bool, now: Instant) {
        self.is_listening = is_listening;
        self.advance(now);
    }

    /// Sets whether a frame waits for `peer`: the frame pending bit of ACKs to its polls.
    pub fn set_source_match(&mut self, peer: Peer, is_pending: bool, now: Instant) {
        self.source_match.set(peer, is_pending);
        self.advance(now);
    }

    /// Sets all neighbours for which a frame waits.
    pub fn replace_source_match(&mut self, peers: impl IntoIterator<Item = Peer>, now: Instant) {
        self.source_match.replace(peers);
        self.advance(now);
    }

    /// The radio's tables are too small for all neighbours for which a frame waits: source matching
    /// is off, and every ACK to a poll has the frame pending bit.
    pub const fn is_source_match_full(&self) -> bool {
        !self.source_match.is_enabled()
    }

    /// Counters since the session began.
    pub const fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.line = *self.decoder.counters();
        counters
    }

    /// How long requests took over the line lately; `None` before the first answer.
    pub fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trips.summary()
    }

    /// The last text of the firmware for its developers, at most [`LOG_LEN_MAX`] bytes of it.
    pub fn log_line(&self) -> &str {
        &self.log
    }

    /// Performs what is due.
    fn advance(&mut self, now: Instant) {
        self.advance_start(now);
        self.watch_asked(now);
        self.watch_flight(now);
        self.watch_scan(now);
        self.ask_next(now);
        self.send_flight(now);
    }

    fn on_frame(&mut self, frame: &Frame<'_>, now: Instant) {
        if frame.header.interface != 0 {
            self.counters.other_interface += 1;
            return;
        }
        let is_value = frame.command == Command::Is;
        match (frame.property, frame.header.transaction) {
            (Property::LastStatus, _) if is_value && restart(frame).is_some() => {
                self.on_restart(restart(frame).unwrap_or(Status::ResetUnknown), now);
            }
            // Whatever its transaction: it is never asked for.
            (Property::StreamRaw, _) if is_value => self.on_heard(frame.value, now),
            (Property::StreamDebug, _) if is_value => self.on_log(frame.value),
            (Property::EnergyScanResult, _) if is_value => self.on_scanned(frame.value),
            (Property::MacScanState, 0) if is_value => {}
            (_, 0) => self.counters.unexpected += 1,
            (_, transaction) if self.is_flight(transaction) => self.on_report(frame, now),
            (_, transaction) if self.is_asked(transaction) => self.on_answer(frame, now),
            _ => self.counters.stale += 1,
        }
    }

    fn on_log(&mut self, text: &[u8]) {
        self.counters.log_lines += 1;
        let text = String::from_utf8_lossy(text);
        let printable = text.chars().filter(|char| !char.is_control());
        self.log.clear();
        for char in printable {
            if self.log.len() + char.len_utf8() > LOG_LEN_MAX {
                break;
            }
            self.log.push(char);
        }
    }

    /// A number for a new request: not one of those that are open, and the longest out of use.
    fn new_transaction(&mut self) -> u8 {
        loop {
            self.transaction = self.transaction % crate::frame::Header::TRANSACTION_MAX + 1;
            if !self.is_asked(self.transaction) && !self.is_flight(self.transaction) {
                return self.transaction;
            }
        }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            settings: &self.settings,
            chip: self.radio.eui64,
            has_tables: self.source_match.is_enabled(),
            is_listening: self.is_listening,
        }
    }
}

/// The reason of a restart, if the frame reports one.
fn restart(frame: &Frame<'_>) -> Option<Status> {
    Status::parse(frame.value).filter(|status| status.is_restart())
}

/// Bytes of the firmware's text that are kept.
pub const LOG_LEN_MAX: usize = 256;

/// A radio that answers nothing for so long is reset; at the first start it is given up.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Unexpected restarts that are accepted: this many at once, and one more per interval. A radio
/// that restarts more often has failed.
const RESTARTS_MAX: u8 = 5;
const RESTART_INTERVAL_MS: u16 = 20_000;
