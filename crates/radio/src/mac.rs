//! A radio co-processor as the radio of a MAC: [`Action`]s in, [`Event`]s out.
//!
//! The co-processor backs off, assesses the channel and waits for ACKs by itself; each
//! [`Action::Fire`] is one transmission through it, without retries. Frames reach the MAC without
//! their FCS, with the times of the radio's clock.

use std::{collections::VecDeque, os::fd::BorrowedFd, time};

use motet::{
    mac::{Action, AttemptOutcome, Event, Pending, RadioCapabilities, RxMeta},
    time::{Duration, Instant},
    wire::LinkAddr,
};
use motet_spinel::{self as spinel, Outcome, Peer, Received, Refusal};

use crate::{Error, SpinelRadio};

/// A radio co-processor as the radio of a MAC.
///
/// Whoever runs the node carries out its actions by [`Self::perform`], takes all reports by
/// [`Self::poll`], polls the node again, and then waits by [`Self::wait`].
#[derive(Debug)]
pub struct MacRadio {
    radio: SpinelRadio,
    /// The frame of the last [`Action::Preload`].
    loaded: Vec<u8>,
    attempt: Attempt,
    /// A transmission that the MAC has given up is still the radio's.
    has_abandoned: bool,
    /// Answers that the radio is not asked for.
    answers: VecDeque<Event<'static>>,
    /// The MAC's last order to the receiver.
    is_listening: bool,
}

/// The attempt of the MAC at the frame that is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    None,
    /// It waits for the end of an abandoned transmission, or for a radio that is gone.
    Held,
    /// It is the radio's.
    Flying,
}

/// What a radio reports beside the events of its MAC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// It is configured: for the first time, or again.
    Ready(spinel::RadioInfo),
    /// It has restarted, or its line is gone. An attempt waits until it is ready again, or until
    /// the MAC gives it up: so the first frame goes out as soon as there is a radio.
    Restarted(spinel::Cause),
}

impl MacRadio {
    /// The radio has started ([`SpinelRadio::start`]), with the channel, PAN and addresses of the
    /// MAC's settings.
    pub const fn new(radio: SpinelRadio) -> Self {
        Self {
            radio,
            loaded: Vec::new(),
            attempt: Attempt::None,
            has_abandoned: false,
            answers: VecDeque::new(),
            is_listening: true,
        }
    }

    /// What the radio does by itself. The delay of its stamps is that of its line, as measured.
    pub fn capabilities(&self) -> RadioCapabilities {
        let round_trip = self.radio.session().round_trip();
        let longest = round_trip.map_or(Duration::ZERO, |round_trip| round_trip.max);
        RadioCapabilities {
            // For frames that come without a time of the radio's clock.
            stamp_delay_max: longest.max(STAMP_DELAY_MIN),
            pending: Pending::PerNeighbour,
            ..RadioCapabilities::OFFLOADING
        }
    }

    /// For [`motet::mac::Config::answer_timeout`]: longer than the radio takes to answer, or the
    /// session to do so in its place.
    pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_200);

    /// The radio itself.
    pub const fn radio(&self) -> &SpinelRadio {
        &self.radio
    }

    /// The radio itself, for what is done before the MAC's first action.
    pub const fn radio_mut(&mut self) -> &mut SpinelRadio {
        &mut self.radio
    }

    /// Carries out an action of the MAC. `bytes`: those that it speaks of.
    pub fn perform(&mut self, action: Action, bytes: &[u8], now: Instant) {
        match action {
            Action::Preload { .. } => {
                if self.attempt == Attempt::Flying {
                    self.has_abandoned = true;
                }
                self.attempt = Attempt::None;
                self.loaded.clear();
                self.loaded.extend_from_slice(bytes);
                self.answers.push_back(Event::Preloaded);
            }
            Action::Fire => self.fire(now),
            Action::Listen => self.set_listening(true, now),
            Action::Sleep => self.set_listening(false, now),
            Action::ChangeChannel { channel } => {
                // The session has checked the MAC's channel at the start; another one that the
                // radio lacks is as deaf as none.
                let _ = self.radio.set_channel(channel, now);
            }
            Action::SetPending { of, pending } => {
                if let Some(peer) = of.and_then(peer) {
                    self.radio.set_source_match(peer, pending, now);
                }
            }
            // Both are the radio's own: a MAC that knows its capabilities asks for neither.
            Action::AssessChannel => self
                .answers
                .push_back(Event::ChannelAssessed { clear: true }),
            Action::Transmit { at, .. } => self.answers.push_back(Event::TransmitDone { at }),
        }
    }

    /// Reports all that has happened to `report`. A notice ends the turn: call it until it returns
    /// nothing. It does not wait.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub fn poll(
        &mut self,
        now: Instant,
        mut report: impl FnMut(Event<'_>),
    ) -> Result<Option<Notice>, Error> {
        loop {
            while let Some(event) = self.answers.pop_front() {
                report(event);
            }
            let Some(event) = self.radio.poll(now)? else {
                return Ok(None);
            };
            match event {
                crate::Event::Received(received) => report(frame(&received)),
                crate::Event::Sent { outcome, at } => self.on_sent(outcome, at, now),
                crate::Event::Ready(info) => {
                    if self.attempt == Attempt::Held {
                        self.fire(now);
                    }
                    return Ok(Some(Notice::Ready(info)));
                }
                crate::Event::Restarted(cause) => return Ok(Some(Notice::Restarted(cause))),
                crate::Event::Scanned { .. } => {}
            }
        }
    }

    /// Waits until something has come from the radio or from one of `others`, until the radio has
    /// to be polled, or for `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait(
        &mut self,
        timeout: Option<time::Duration>,
        others: &[BorrowedFd<'_>],
        now: Instant,
    ) -> Result<(), Error> {
        let timeout = match self.answers.is_empty() {
            true => timeout,
            false => Some(time::Duration::ZERO),
        };
        self.radio.wait(timeout, others, now)
    }

    fn set_listening(&mut self, is_listening: bool, now: Instant) {
        self.is_listening = is_listening;
        // A receiver that is off ends a transmission: it is switched off after that.
        if is_listening || self.attempt != Attempt::Flying {
            self.radio.set_listening(is_listening, now);
        }
    }

    fn fire(&mut self, now: Instant) {
        // It sends only while its receiver is on.
        if !self.is_listening {
            self.radio.set_listening(true, now);
        }
        match self.radio.transmit(&self.loaded, None, now) {
            Ok(()) => self.attempt = Attempt::Flying,
            Err(Refusal::InProgress) if self.has_abandoned => self.attempt = Attempt::Held,
            Err(Refusal::NotReady) => self.attempt = Attempt::Held,
            Err(_) => {
                self.answer(AttemptOutcome::Failed, now);
                self.rest(now);
            }
        }
    }

    fn on_sent(&mut self, outcome: Outcome, at: Instant, now: Instant) {
        if std::mem::take(&mut self.has_abandoned) {
            match self.attempt {
                Attempt::Held => self.fire(now),
                Attempt::None | Attempt::Flying => self.rest(now),
            }
            return;
        }
        let outcome = match outcome {
            Outcome::Acked(ack) => AttemptOutcome::Acked {
                pending: ack.pending,
            },
            Outcome::Done => AttemptOutcome::Done,
            Outcome::NoAck => AttemptOutcome::NoAck,
            Outcome::Busy => AttemptOutcome::Busy,
            Outcome::Failed(_) => AttemptOutcome::Failed,
        };
        self.answer(outcome, at);
        self.rest(now);
    }

    fn answer(&mut self, outcome: AttemptOutcome, at: Instant) {
        self.attempt = Attempt::None;
        self.answers.push_back(Event::Sent { outcome, at });
    }

    /// The receiver goes back to what was last asked of it.
    fn rest(&mut self, now: Instant) {
        if !self.is_listening {
            self.radio.set_listening(false, now);
        }
    }
}

fn frame(received: &Received) -> Event<'_> {
    Event::FrameReceived {
        psdu: &received.psdu,
        meta: RxMeta {
            rssi_dbm: received.rssi_dbm,
            lqi: received.lqi,
            channel: received.channel,
            at: received.at,
        },
    }
}

/// `None`: no address of IEEE 802.15.4.
fn peer(addr: LinkAddr) -> Option<Peer> {
    if let LinkAddr::Short(short) = addr {
        Some(Peer::Short(short))
    } else if let LinkAddr::Extended(extended) = addr {
        Some(Peer::Extended(extended))
    } else {
        None
    }
}

/// The least delay of a stamp over a line: a turn of this program.
const STAMP_DELAY_MIN: Duration = Duration::from_millis(1);
